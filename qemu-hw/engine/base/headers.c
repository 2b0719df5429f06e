/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet (IEEE 802.3), VLAN tag (802.1Q), IPv4 (RFC 791), IPv6 and its
 * extension headers (RFC 8200), TCP (RFC 9293), UDP (RFC 768).
 */
#include "base/bytes.h"
#include "base/headers.h"

#define PORTS_LEN           4
#define TCP_HLEN            20
#define UDP_HLEN            8

/* Extension headers of IPv6; the shortest has 8 bytes. */
#define EXT_HOP_BY_HOP      0
#define EXT_ROUTING         43
#define EXT_FRAGMENT        44
#define EXT_DESTINATION     60
#define EXT_UNIT            8

/*
 * Exact length of the TCP or UDP header at h->l4; 0: inconsistent.  @sized: the
 * lengths in the headers count.
 */
static size_t l4_hlen(const struct qhca_headers *h, bool sized)
{
    size_t len;

    if (h->l4_proto == QHCA_PROTO_UDP) {
        return h->l4_len >= UDP_HLEN &&
               (!sized || qhca_get_be16(h->l4 + 4) == h->l4_len) ? UDP_HLEN :
                                                                   0;
    }
    if (h->l4_len < TCP_HLEN) {
        return 0;
    }
    len = (h->l4[12] >> 4) * 4;
    return len >= TCP_HLEN && len <= h->l4_len ? len : 0;
}

/*
 * IP and its extension headers are followed by @proto, perhaps TCP or UDP, at
 * byte @at of the IP packet, of @end bytes.
 */
static void parse_l4(struct qhca_headers *h, uint8_t proto, size_t at,
                     size_t end, bool sized)
{
    if (at <= end) {
        h->upper = proto;
        h->upper_at = at;
    }
    if ((proto != QHCA_PROTO_TCP && proto != QHCA_PROTO_UDP) ||
        end < at + PORTS_LEN) {
        return;
    }
    h->l4_proto = proto;
    h->l4 = h->l3 + at;
    h->l4_len = end - at;
    if (h->whole && !h->fragment) {
        h->l4_hlen = l4_hlen(h, sized);
    }
}

static void parse_ip4(struct qhca_headers *h, bool sized)
{
    const uint8_t *ip = h->l3;
    size_t total;

    if (h->l3_len < QHCA_IP4_HLEN || ip[0] >> 4 != 4) {
        return;
    }
    h->ip_len = (ip[0] & 15) * 4;
    if (h->ip_len < QHCA_IP4_HLEN || h->ip_len > h->l3_len) {
        return;
    }
    h->version = 4;
    h->proto = ip[9];
    h->frag = qhca_get_be16(ip + 6);
    h->fragment = h->frag & QHCA_IP4_FRAGMENT;
    total = sized ? qhca_get_be16(ip + 2) : h->l3_len;
    h->whole = total >= h->ip_len && total <= h->l3_len;
    h->payload = total - h->ip_len;
    if (!(h->frag & QHCA_IP4_OFFSET)) {
        parse_l4(h, h->proto, h->ip_len, h->whole ? total : h->l3_len,
                 sized);
    }
}

bool qhca_headers_is_ext(uint8_t proto)
{
    return proto == EXT_HOP_BY_HOP || proto == EXT_ROUTING ||
           proto == EXT_FRAGMENT || proto == EXT_DESTINATION;
}

/* Follow the extension headers of an IPv6 packet of @end bytes. */
static void parse_ext(struct qhca_headers *h, size_t end, bool sized)
{
    size_t at = QHCA_IP6_HLEN, len;
    uint8_t proto = h->proto;
    const uint8_t *ext;
    unsigned n;

    for (n = 0; qhca_headers_is_ext(proto); n++) {
        if (n == QHCA_IP6_EXT_MAX || end < at + EXT_UNIT) {
            return;
        }
        ext = h->l3 + at;
        len = EXT_UNIT;
        if (proto == EXT_FRAGMENT) {
            h->fragment = true;
            if (qhca_get_be16(ext + 2) & ~7u) {
                return;         /* not the first */
            }
        } else {
            len += ext[1] * EXT_UNIT;
            h->routed |= proto == EXT_ROUTING && ext[3];
        }
        proto = ext[0];
        at += len;
    }
    parse_l4(h, proto, at, end, sized);
}

static void parse_ip6(struct qhca_headers *h, bool sized)
{
    const uint8_t *ip = h->l3;

    if (h->l3_len < QHCA_IP6_HLEN || ip[0] >> 4 != 6) {
        return;
    }
    h->version = 6;
    h->ip_len = QHCA_IP6_HLEN;
    h->proto = ip[6];
    h->payload = sized ? qhca_get_be16(ip + 4) : h->l3_len - QHCA_IP6_HLEN;
    h->whole = h->payload <= h->l3_len - QHCA_IP6_HLEN;
    parse_ext(h, h->whole ? QHCA_IP6_HLEN + h->payload : h->l3_len, sized);
}

static void headers_parse(const uint8_t *frame, size_t len, bool sized,
                          struct qhca_headers *h)
{
    *h = (struct qhca_headers){
        .ethertype = qhca_get_be16(frame + 12),
        .l3 = frame + QHCA_ETH_HLEN, .l3_len = len - QHCA_ETH_HLEN,
    };
    if (h->ethertype == QHCA_ETHERTYPE_VLAN && h->l3_len >= QHCA_VLAN_HLEN) {
        h->tagged = true;
        h->tci = qhca_get_be16(h->l3);
        h->ethertype = qhca_get_be16(h->l3 + 2);
        h->l3 += QHCA_VLAN_HLEN;
        h->l3_len -= QHCA_VLAN_HLEN;
    }
    if (h->ethertype == QHCA_ETHERTYPE_IP4) {
        parse_ip4(h, sized);
    } else if (h->ethertype == QHCA_ETHERTYPE_IP6) {
        parse_ip6(h, sized);
    }
}

bool qhca_headers_parse_inner(const struct qhca_headers *h,
                              struct qhca_headers *inner)
{
    if (!h->version || !h->whole || h->fragment ||
        (h->proto != QHCA_PROTO_IP4 && h->proto != QHCA_PROTO_IP6)) {
        return false;
    }
    *inner = (struct qhca_headers){
        .l3 = h->l3 + h->ip_len, .l3_len = h->payload,
    };
    if (h->proto == QHCA_PROTO_IP4) {
        parse_ip4(inner, true);
    } else {
        parse_ip6(inner, true);
    }
    return true;
}

void qhca_headers_parse_ip_unsized(const uint8_t *ip, size_t len,
                                   struct qhca_headers *h)
{
    *h = (struct qhca_headers){ .l3 = ip, .l3_len = len };
    /* at most one of them accepts it */
    parse_ip4(h, false);
    parse_ip6(h, false);
}

void qhca_headers_parse(const uint8_t *frame, size_t len,
                        struct qhca_headers *h)
{
    headers_parse(frame, len, true, h);
}

void qhca_headers_parse_unsized(const uint8_t *frame, size_t len,
                                struct qhca_headers *h)
{
    headers_parse(frame, len, false, h);
}
