/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ethernet (IEEE 802.3), VLAN tag (802.1Q), IPv4 (RFC 791), IPv6 (RFC 8200). */
#include "base/bytes.h"
#include "base/headers.h"

static void parse_ip4(struct qhca_headers *h)
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
    total = qhca_get_be16(ip + 2);
    h->whole = total >= h->ip_len && total <= h->l3_len;
    h->payload = total - h->ip_len;
}

static void parse_ip6(struct qhca_headers *h)
{
    const uint8_t *ip = h->l3;

    if (h->l3_len < QHCA_IP6_HLEN || ip[0] >> 4 != 6) {
        return;
    }
    h->version = 6;
    h->ip_len = QHCA_IP6_HLEN;
    h->proto = ip[6];
    h->frag = 0;
    h->payload = qhca_get_be16(ip + 4);
    h->whole = h->payload <= h->l3_len - QHCA_IP6_HLEN;
}

void qhca_headers_parse(const uint8_t *frame, size_t len,
                        struct qhca_headers *h)
{
    h->tagged = false;
    h->ethertype = qhca_get_be16(frame + 12);
    h->l3 = frame + QHCA_ETH_HLEN;
    h->l3_len = len - QHCA_ETH_HLEN;
    h->version = 0;
    if (h->ethertype == QHCA_ETHERTYPE_VLAN && h->l3_len >= QHCA_VLAN_HLEN) {
        h->tagged = true;
        h->tci = qhca_get_be16(h->l3);
        h->ethertype = qhca_get_be16(h->l3 + 2);
        h->l3 += QHCA_VLAN_HLEN;
        h->l3_len -= QHCA_VLAN_HLEN;
    }
    if (h->ethertype == QHCA_ETHERTYPE_IP4) {
        parse_ip4(h);
    } else if (h->ethertype == QHCA_ETHERTYPE_IP6) {
        parse_ip6(h);
    }
}
