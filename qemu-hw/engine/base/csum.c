/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The checksums of IP, TCP and UDP.
 *
 * The sum is independent of byte order (RFC 1071, 2 (B)): summing little-endian
 * words gives the big-endian sum with its bytes swapped.  So everything here is
 * little-endian, and a checksum is stored in a packet the same way.
 */
#include <stdbool.h>

#include "base/csum.h"
#include "base/bytes.h"

/* Both addresses of an IP header. */
#define IP4_ADDRS           12
#define IP4_ADDRS_LEN       8
#define IP6_ADDRS           8
#define IP6_ADDRS_LEN       32
#define UDP_HLEN            8
#define UDP_LEN             4
#define UDP_SUM             6

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

    /* No overflow: that would take 2^32 words, and frames are short. */
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

/*
 * The sum of the pseudo header of RFC 9293 3.1 and RFC 8200 8.1, for @len bytes
 * of @proto in the packet at @ip.
 */
static uint16_t csum_pseudo(const uint8_t *ip, uint8_t version, uint8_t proto,
                            size_t len)
{
    bool v4 = version == 4;
    uint8_t tail[8] = { 0 };

    qhca_put_be32(tail, (uint32_t)len);
    tail[7] = proto;
    return qhca_csum(tail, sizeof(tail),
                     qhca_csum(ip + (v4 ? IP4_ADDRS : IP6_ADDRS),
                               v4 ? IP4_ADDRS_LEN : IP6_ADDRS_LEN, 0));
}

bool qhca_csum_ip_ok(const uint8_t *ip, uint8_t version, size_t len)
{
    return version == 6 || qhca_csum(ip, len, 0) == 0xffff;
}

bool qhca_csum_l4_ok(const uint8_t *ip, uint8_t version, const uint8_t *l4,
                     size_t len, uint8_t proto)
{
    switch (proto) {
    case QHCA_PROTO_TCP:
        if (len < 20) {
            return false;
        }
        break;
    case QHCA_PROTO_UDP:
        /* A checksum of 0 means that there is none. */
        if (len < UDP_HLEN || qhca_get_be16(l4 + UDP_LEN) != len ||
            !qhca_get_be16(l4 + UDP_SUM)) {
            return false;
        }
        break;
    default:
        return false;
    }
    return qhca_csum(l4, len, csum_pseudo(ip, version, proto, len)) == 0xffff;
}

/*
 * Can the checksum be computed?  A fragment lacks the rest of the payload, a
 * packet with a routing header the address for the pseudo header.
 */
static bool csum_known(const struct qhca_headers *h)
{
    return h->l4_proto && !h->fragment && !h->routed;
}

void qhca_csum_verdict(const struct qhca_headers *h, size_t len,
                       struct qhca_csum_verdict *v)
{
    v->sum = qhca_csum(h->l3, len, 0);
    v->l3_ok = h->version && h->whole &&
               qhca_csum_ip_ok(h->l3, h->version, h->ip_len);
    v->l4_ok = v->l3_ok && csum_known(h) &&
               qhca_csum_l4_ok(h->l3, h->version, h->l4, h->l4_len,
                               h->l4_proto);
}

static void csum_put(uint8_t *at, uint16_t sum)
{
    sum = qhca_le16((uint16_t)~sum);
    memcpy(at, &sum, 2);
}

void qhca_csum_fill_ip(uint8_t *ip, uint8_t version, size_t len)
{
    if (version == 4) {
        memset(ip + 10, 0, 2);
        csum_put(ip + 10, qhca_csum(ip, len, 0));
    }
}

void qhca_csum_fill_l4(const uint8_t *ip, uint8_t version, uint8_t *l4,
                       size_t len, uint8_t proto)
{
    size_t at = proto == QHCA_PROTO_TCP ? 16 : UDP_SUM;
    uint16_t sum;

    if ((proto != QHCA_PROTO_TCP && proto != QHCA_PROTO_UDP) || len < at + 2) {
        return;
    }
    memset(l4 + at, 0, 2);
    sum = qhca_csum(l4, len, csum_pseudo(ip, version, proto, len));
    /* In UDP 0 means "no checksum"; 0xffff is the same number */
    csum_put(l4 + at, sum == 0xffff && proto == QHCA_PROTO_UDP ? 0 : sum);
}

/*
 * Bytes that the checksum of @h covers; 0: none are known.  An IP packet may be
 * longer than the UDP datagram in it (RFC 9868): the datagram's length counts.
 */
static size_t csum_covers(const struct qhca_headers *h)
{
    size_t len;

    if (!csum_known(h)) {
        return 0;
    }
    if (h->l4_proto != QHCA_PROTO_UDP) {
        return h->l4_len;
    }
    len = h->l4_len < UDP_HLEN ? 0 : qhca_get_be16(h->l4 + UDP_LEN);
    return len < UDP_HLEN || len > h->l4_len ? 0 : len;
}

void qhca_csum_fill(uint8_t *frame, size_t len)
{
    struct qhca_headers h;
    size_t covers;

    qhca_headers_parse(frame, len, &h);
    if (!h.version || !h.whole) {
        return;
    }
    qhca_csum_fill_ip(frame + (h.l3 - frame), h.version, h.ip_len);
    covers = csum_covers(&h);
    if (covers) {
        qhca_csum_fill_l4(h.l3, h.version, frame + (h.l4 - frame), covers,
                          h.l4_proto);
    }
}
