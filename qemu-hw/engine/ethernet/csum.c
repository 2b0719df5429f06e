/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checksums of the Ethernet function.
 *
 * The sum does not care for byte order (RFC 1071, 2 (B)): summing little-endian
 * words gives the bytes of the big-endian sum swapped.  So everything here is
 * little-endian, and what goes into a packet is stored that way too.
 */
#include <stdbool.h>

#include "ethernet/csum.h"
#include "base/bytes.h"

#define ETHERTYPE_IPV4      0x0800
#define ETHERTYPE_IPV6      0x86dd
#define ETHERTYPE_VLAN      0x8100
#define PROTO_TCP           6
#define PROTO_UDP           17

static uint16_t csum_fold(uint64_t sum)
{
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)((sum & 0xffff) + (sum >> 16));
}

uint16_t qhca_csum(const void *buf, size_t len, uint16_t seed)
{
    const uint8_t *p = buf;
    uint64_t sum = seed, tail = 0;

    /* Frames are short: 2^32 words would be needed to overflow. */
    for (; len >= 8; len -= 8, p += 8) {
        sum += qhca_get_le32(p);
        sum += qhca_get_le32(p + 4);
    }
    memcpy(&tail, p, len);
    tail = qhca_le64(tail);
    sum += tail & 0xffffffff;
    sum += tail >> 32;
    return csum_fold(sum);
}

/* The pseudo header of RFC 9293 3.1 and RFC 8200 8.1. */
static uint16_t csum_pseudo(const uint8_t *addrs, size_t addr_len,
                            uint8_t proto, size_t len)
{
    uint8_t tail[8] = { 0 };

    qhca_put_be32(tail, (uint32_t)len);
    tail[7] = proto;
    return qhca_csum(tail, sizeof(tail), qhca_csum(addrs, addr_len, 0));
}

static bool l4_ok(const uint8_t *l4, size_t len, uint8_t proto,
                  const uint8_t *addrs, size_t addr_len)
{
    switch (proto) {
    case PROTO_TCP:
        if (len < 20) {
            return false;
        }
        break;
    case PROTO_UDP:
        /* A sum of 0 says that there is none. */
        if (len < 8 || qhca_get_be16(l4 + 4) != len ||
            !qhca_get_be16(l4 + 6)) {
            return false;
        }
        break;
    default:
        return false;
    }
    return qhca_csum(l4, len, csum_pseudo(addrs, addr_len, proto, len)) ==
           0xffff;
}

static void judge_ipv4(const uint8_t *ip, size_t len,
                       struct qhca_csum_verdict *v)
{
    size_t header, total;

    if (len < 20 || ip[0] >> 4 != 4) {
        return;
    }
    header = (ip[0] & 15) * 4;
    total = qhca_get_be16(ip + 2);
    if (header < 20 || header > total || total > len) {
        return;
    }
    v->l3_ok = qhca_csum(ip, header, 0) == 0xffff;
    /* Of a fragment nobody can tell; 0x3fff: MF and the offset. */
    if (v->l3_ok && !(qhca_get_be16(ip + 6) & 0x3fff)) {
        v->l4_ok = l4_ok(ip + header, total - header, ip[9], ip + 12, 8);
    }
}

static void judge_ipv6(const uint8_t *ip, size_t len,
                       struct qhca_csum_verdict *v)
{
    size_t payload;

    if (len < 40 || ip[0] >> 4 != 6) {
        return;
    }
    payload = qhca_get_be16(ip + 4);
    if (payload > len - 40) {
        return;
    }
    v->l3_ok = true;
    v->l4_ok = l4_ok(ip + 40, payload, ip[6], ip + 8, 32);
}

void qhca_csum_verdict(const uint8_t *frame, size_t len,
                       struct qhca_csum_verdict *v)
{
    v->sum = qhca_csum(frame + 14, len - 14, 0);
    v->l3_ok = false;
    v->l4_ok = false;
    switch (qhca_get_be16(frame + 12)) {
    case ETHERTYPE_IPV4:
        judge_ipv4(frame + 14, len - 14, v);
        break;
    case ETHERTYPE_IPV6:
        judge_ipv6(frame + 14, len - 14, v);
        break;
    }
}

static void put_sum(uint8_t *at, uint16_t sum)
{
    sum = qhca_le16((uint16_t)~sum);
    memcpy(at, &sum, 2);
}

static void fill_l4(uint8_t *l4, size_t len, uint8_t proto,
                    const uint8_t *addrs, size_t addr_len)
{
    size_t at = proto == PROTO_TCP ? 16 : 6;
    uint16_t sum;

    if ((proto != PROTO_TCP && proto != PROTO_UDP) || len < at + 2) {
        return;
    }
    memset(l4 + at, 0, 2);
    sum = qhca_csum(l4, len, csum_pseudo(addrs, addr_len, proto, len));
    /* 0 would say "no checksum" in UDP; 0xffff means the same number */
    put_sum(l4 + at, sum == 0xffff && proto == PROTO_UDP ? 0 : sum);
}

static void fill_ipv4(uint8_t *ip, size_t len)
{
    size_t header, total;

    if (len < 20 || ip[0] >> 4 != 4) {
        return;
    }
    header = (ip[0] & 15) * 4;
    total = qhca_get_be16(ip + 2);
    if (header < 20 || header > total || total > len) {
        return;
    }
    memset(ip + 10, 0, 2);
    put_sum(ip + 10, qhca_csum(ip, header, 0));
    if (!(qhca_get_be16(ip + 6) & 0x3fff)) {
        fill_l4(ip + header, total - header, ip[9], ip + 12, 8);
    }
}

void qhca_csum_fill(uint8_t *frame, size_t len)
{
    uint8_t *p = frame + 12;
    size_t left = len - 14, payload;

    if (qhca_get_be16(p) == ETHERTYPE_VLAN && left >= 4) {
        p += 4;
        left -= 4;
    }
    switch (qhca_get_be16(p)) {
    case ETHERTYPE_IPV4:
        fill_ipv4(p + 2, left);
        break;
    case ETHERTYPE_IPV6:
        if (left < 40 || p[2] >> 4 != 6) {
            break;
        }
        payload = qhca_get_be16(p + 6);
        if (payload <= left - 40) {
            fill_l4(p + 42, payload, p[8], p + 10, 32);
        }
        break;
    }
}
