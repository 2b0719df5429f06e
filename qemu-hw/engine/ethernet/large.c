/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Segmentation: the headers of a large packet, and those of the frames that it
 * is cut into.  TCP: RFC 9293 and, for CWR, RFC 3168 6.1.2; IPv6 extension
 * headers: RFC 8200 4.
 */
#include "ethernet/large.h"
#include "ethernet/csum.h"
#include "rdma/qhca-hw.h"
#include "base/bytes.h"
#include "base/headers.h"

#define TCP_HLEN            20
#define UDP_HLEN            8

/* Offsets in the headers, and flags of TCP. */
#define TCP_SEQ             4
#define TCP_OFFSET          12
#define TCP_FLAGS           13
#define TCP_FIN             0x01
#define TCP_PSH             0x08
#define TCP_CWR             0x80
#define UDP_DEST            2
#define UDP_LEN             4
#define IP4_LEN             2
#define IP4_ID              4
#define IP4_ADDRS           12
#define IP6_LEN             4
#define IP6_ADDRS           8

/* Next header: those that may stand before TCP and UDP. */
#define IP6_HOP_BY_HOP      0
#define IP6_ROUTING         43
#define IP6_DEST_OPTIONS    60

static bool large_ip4(const uint8_t *hdr, size_t len, struct qhca_large *l)
{
    const uint8_t *ip = hdr + l->l3;
    size_t end = l->l3 + QHCA_IP4_HLEN, ihl;

    if (len < end || ip[0] >> 4 != 4) {
        return false;
    }
    ihl = (ip[0] & 15) * 4;
    if (ihl < QHCA_IP4_HLEN || (qhca_get_be16(ip + 6) & QHCA_IP4_FRAGMENT)) {
        return false;
    }
    l->version = 4;
    l->proto = ip[9];
    l->l4 = (uint16_t)(l->l3 + ihl);
    return true;
}

static bool large_ip6(const uint8_t *hdr, size_t len, struct qhca_large *l)
{
    const uint8_t *ip = hdr + l->l3;
    size_t at = l->l3 + QHCA_IP6_HLEN;

    if (len < at || ip[0] >> 4 != 6) {
        return false;
    }
    l->version = 6;
    l->proto = ip[6];
    while (l->proto == IP6_HOP_BY_HOP || l->proto == IP6_ROUTING ||
           l->proto == IP6_DEST_OPTIONS) {
        if (at + 8 > len) {
            return false;
        }
        l->proto = hdr[at];
        at += 8 + hdr[at + 1] * 8;
    }
    if (at > len) {
        return false;
    }
    l->l4 = (uint16_t)at;
    return true;
}

bool qhca_large_parse(const uint8_t *hdr, size_t len, bool tag,
                      struct qhca_large *l)
{
    uint16_t type;
    size_t need;

    l->l3 = QHCA_ETH_HLEN;
    if (len < QHCA_ETH_HLEN + QHCA_VLAN_HLEN) {
        return false;
    }
    type = qhca_get_be16(hdr + 12);
    if (type == QHCA_ETHERTYPE_VLAN && tag) {
        type = qhca_get_be16(hdr + 16);
        l->l3 += QHCA_VLAN_HLEN;
    }
    if (!(type == QHCA_ETHERTYPE_IP4 && large_ip4(hdr, len, l)) &&
        !(type == QHCA_ETHERTYPE_IP6 && large_ip6(hdr, len, l))) {
        return false;
    }
    need = l->l4 + (l->proto == QHCA_PROTO_TCP ? TCP_HLEN : UDP_HLEN);
    if (need > len) {
        return false;
    }
    if (l->proto == QHCA_PROTO_TCP) {
        l->hdr_len = (uint16_t)(l->l4 + (hdr[l->l4 + TCP_OFFSET] >> 4) * 4);
        return l->hdr_len >= need && l->hdr_len <= len;
    }
    l->hdr_len = (uint16_t)need;
    return l->proto == QHCA_PROTO_UDP;
}

uint32_t qhca_large_ip_len(const struct qhca_large *l, const uint8_t *frame)
{
    const uint8_t *ip = frame + l->l3;

    return l->version == 4 ? qhca_get_be16(ip + IP4_LEN) :
                             qhca_get_be16(ip + IP6_LEN) + QHCA_IP6_HLEN;
}

bool qhca_large_sum_ok(const struct qhca_large *l, const uint8_t *frame,
                       size_t len)
{
    const uint8_t *ip = frame + l->l3, *l4 = frame + l->l4;
    size_t l4_len = len - l->l4;

    if (l->version == 6) {
        return qhca_csum_l4_ok(l4, l4_len, l->proto, ip + IP6_ADDRS, 32);
    }
    return qhca_csum(ip, l->l4 - l->l3, 0) == 0xffff &&
           qhca_csum_l4_ok(l4, l4_len, l->proto, ip + IP4_ADDRS, 8);
}

bool qhca_large_is_roce(const struct qhca_large *l, const uint8_t *frame)
{
    return l->proto == QHCA_PROTO_UDP &&
           qhca_get_be16(frame + l->l4 + UDP_DEST) == QHCA_ROCE_UDP_PORT;
}

static void large_l3(const struct qhca_large *l, uint8_t *ip, uint32_t bytes,
                     uint32_t number)
{
    uint16_t id;

    if (l->version == 4) {
        id = qhca_get_be16(ip + IP4_ID);
        qhca_put_be16(ip + IP4_LEN, (uint16_t)bytes);
        qhca_put_be16(ip + IP4_ID, (uint16_t)(id + number));
    } else {
        qhca_put_be16(ip + IP6_LEN, (uint16_t)(bytes - QHCA_IP6_HLEN));
    }
}

static void large_tcp(uint8_t *tcp, const struct qhca_large_part *p)
{
    qhca_put_be32(tcp + TCP_SEQ, qhca_get_be32(tcp + TCP_SEQ) + p->from);
    if (p->from) {
        tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
    }
    if (p->from + p->len < p->total) {
        tcp[TCP_FLAGS] &= (uint8_t)~(TCP_FIN | TCP_PSH);
    }
}

void qhca_large_finish(const struct qhca_large *l, uint8_t *frame,
                       const struct qhca_large_part *p)
{
    uint8_t *ip = frame + l->l3, *l4 = frame + l->l4;
    size_t l4_len = l->hdr_len - l->l4 + p->len;

    large_l3(l, ip, l->hdr_len - l->l3 + p->len, p->number);
    if (l->proto == QHCA_PROTO_TCP) {
        large_tcp(l4, p);
    } else {
        qhca_put_be16(l4 + UDP_LEN, (uint16_t)l4_len);
    }
    if (l->version == 4) {
        qhca_csum_fill_ip4(ip, l->l4 - l->l3);
        qhca_csum_fill_l4(l4, l4_len, l->proto, ip + IP4_ADDRS, 8);
    } else {
        qhca_csum_fill_l4(l4, l4_len, l->proto, ip + IP6_ADDRS, 32);
    }
}
