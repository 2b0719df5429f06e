/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Segmentation: the headers of a large packet, and those of the frames that it
 * is cut into.  TCP: RFC 9293 and, for CWR, RFC 3168 6.1.2; IPv6 extension
 * headers: RFC 8200 4.
 */
#include "ethernet/large.h"
#include "rdma/qhca-hw.h"

/* Offsets in the headers, and flags of TCP. */
#define TCP_SEQ             4
#define TCP_FLAGS           13
#define TCP_FIN             0x01
#define TCP_PSH             0x08
#define TCP_CWR             0x80
#define UDP_DEST            2
#define UDP_LEN             4
#define UDP_SUM             6
#define IP4_LEN             2
#define IP4_ID              4
#define IP6_LEN             4

bool qhca_large_from(const uint8_t *frame, const struct qhca_headers *h,
                     struct qhca_large *l)
{
    if (!h->version || !h->l4_hlen) {
        return false;
    }
    *l = (struct qhca_large){
        .l3 = (uint16_t)(h->l3 - frame), .l4 = (uint16_t)(h->l4 - frame),
        .hdr_len = (uint16_t)(h->l4 - frame + h->l4_hlen),
        .version = h->version, .proto = h->l4_proto,
    };
    return true;
}

bool qhca_large_parse(const uint8_t *hdr, size_t len, bool tag,
                      struct qhca_large *l)
{
    struct qhca_headers h;

    if (len < QHCA_ETH_HLEN) {
        return false;
    }
    qhca_headers_parse_unsized(hdr, len, &h);
    return (tag || !h.tagged) && qhca_large_from(hdr, &h, l);
}

bool qhca_large_parse_tunnel(const uint8_t *hdr, size_t len, bool tag,
                             uint16_t inner_l3, struct qhca_large *l)
{
    struct qhca_headers h, inner;

    if (inner_l3 < QHCA_ETH_HLEN || inner_l3 > len) {
        return false;
    }
    qhca_headers_parse_unsized(hdr, inner_l3, &h);
    qhca_headers_parse_ip_unsized(hdr + inner_l3, len - inner_l3, &inner);
    if ((h.tagged && !tag) || !h.version || h.fragment || !h.upper_at ||
        (h.upper == QHCA_PROTO_UDP && !h.l4_hlen) ||
        !qhca_large_from(hdr, &inner, l)) {
        return false;
    }
    l->outer_version = h.version;
    l->outer = (uint16_t)(h.l3 - hdr);
    l->outer_l4 = (uint16_t)(l->outer + h.upper_at);
    l->outer_udp = h.upper == QHCA_PROTO_UDP;
    return true;
}

bool qhca_large_sum_ok(const struct qhca_large *l, const uint8_t *frame,
                       size_t len)
{
    const uint8_t *ip = frame + l->l3;

    return qhca_csum_ip_ok(ip, l->version, l->l4 - l->l3) &&
           (!l->outer_version ||
            qhca_csum_ip_ok(frame + l->outer, l->outer_version,
                            l->outer_l4 - l->outer)) &&
           qhca_csum_l4_ok(ip, l->version, frame + l->l4, len - l->l4,
                           l->proto);
}

bool qhca_large_is_roce(const struct qhca_large *l, const uint8_t *frame)
{
    return l->proto == QHCA_PROTO_UDP &&
           qhca_get_be16(frame + l->l4 + UDP_DEST) == QHCA_ROCE_UDP_PORT;
}

/* Set the length of the packet at @ip; add @number to its identification. */
static void large_l3(uint8_t version, uint8_t *ip, uint32_t bytes,
                     uint32_t number)
{
    uint16_t id;

    if (version == 4) {
        id = qhca_get_be16(ip + IP4_ID);
        qhca_put_be16(ip + IP4_LEN, (uint16_t)bytes);
        qhca_put_be16(ip + IP4_ID, (uint16_t)(id + number));
    } else {
        qhca_put_be16(ip + IP6_LEN, (uint16_t)(bytes - QHCA_IP6_HLEN));
    }
}

static void large_tcp(const struct qhca_large *l, uint8_t *tcp,
                      const struct qhca_large_part *p)
{
    qhca_put_be32(tcp + TCP_SEQ, qhca_get_be32(tcp + TCP_SEQ) + p->from);
    if (p->from && !l->cwr) {
        tcp[TCP_FLAGS] &= (uint8_t)~TCP_CWR;
    }
    if (p->from + p->len < p->total) {
        tcp[TCP_FLAGS] &= (uint8_t)~(TCP_FIN | TCP_PSH);
    }
}

/* Set the length of the UDP datagram at @udp. */
static void large_udp(uint8_t *udp, uint32_t bytes)
{
    qhca_put_be16(udp + UDP_LEN, (uint16_t)bytes);
}

void qhca_large_headers(const struct qhca_large *l, uint8_t *hdr,
                        const struct qhca_large_part *p)
{
    uint8_t *l4 = hdr + l->l4;

    if (l->outer_version) {
        large_l3(l->outer_version, hdr + l->outer,
                 l->hdr_len - l->outer + p->len,
                 l->same_outer_id ? 0 : p->number);
    }
    if (l->outer_udp) {
        large_udp(hdr + l->outer_l4, l->hdr_len - l->outer_l4 + p->len);
    }
    large_l3(l->version, hdr + l->l3, l->hdr_len - l->l3 + p->len,
             l->same_id ? 0 : p->number);
    if (l->proto == QHCA_PROTO_TCP) {
        large_tcp(l, l4, p);
    } else {
        large_udp(l4, l->hdr_len - l->l4 + p->len);
    }
}

/*
 * Fill in the outer checksums of a frame of @len bytes; the inner ones are
 * right.
 */
static void large_finish_outer(const struct qhca_large *l, uint8_t *frame,
                               size_t len)
{
    uint8_t *ip = frame + l->outer, *l4 = frame + l->outer_l4;

    qhca_csum_fill_ip(ip, l->outer_version, l->outer_l4 - l->outer);
    /* A tunnel need not have a checksum of its own. */
    if (l->outer_udp && qhca_get_be16(l4 + UDP_SUM)) {
        qhca_csum_fill_l4(ip, l->outer_version, l4, len - l->outer_l4,
                          QHCA_PROTO_UDP);
    }
}

void qhca_large_finish(const struct qhca_large *l, uint8_t *frame,
                       const struct qhca_large_part *p)
{
    uint8_t *ip = frame + l->l3, *l4 = frame + l->l4;
    size_t l4_len = l->hdr_len - l->l4 + p->len;

    qhca_large_headers(l, frame, p);
    qhca_csum_fill_ip(ip, l->version, l->l4 - l->l3);
    qhca_csum_fill_l4(ip, l->version, l4, l4_len, l->proto);
    if (l->outer_version) {
        large_finish_outer(l, frame, l->hdr_len + p->len);
    }
}
