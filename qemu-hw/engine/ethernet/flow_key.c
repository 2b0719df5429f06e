/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What of a frame rules can look at. */
#include "ethernet/flow.h"

#define ETHERTYPE_IP4       0x0800
#define ETHERTYPE_IP6       0x86dd
#define IP4_OFFSET          0x1fff
#define PROTO_TCP           6
#define PROTO_UDP           17

static void parse_l4(const uint8_t *p, size_t left,
                     struct qhca_flow_match *k)
{
    if ((k->proto == PROTO_TCP || k->proto == PROTO_UDP) && left >= 4) {
        k->l4 = k->proto;
        memcpy(&k->src_port, p, 2);
        memcpy(&k->dst_port, p + 2, 2);
    }
}

static void parse_ip4(const uint8_t *ip, size_t left,
                      struct qhca_flow_match *k)
{
    size_t header;

    if (left < QHCA_IP4_HLEN || ip[0] >> 4 != 4) {
        return;
    }
    header = (ip[0] & 15) * 4;
    if (header < QHCA_IP4_HLEN || header > left) {
        return;
    }
    k->l3 = 4;
    k->tos = ip[1];
    k->ip_flags = ip[6] >> 5;
    k->ttl = ip[8];
    k->proto = ip[9];
    memcpy(k->src_ip + 12, ip + 12, 4);
    memcpy(k->dst_ip + 12, ip + 16, 4);
    if (!(qhca_get_be16(ip + 6) & IP4_OFFSET)) {
        parse_l4(ip + header, left - header, k);
    }
}

static void parse_ip6(const uint8_t *ip, size_t left,
                      struct qhca_flow_match *k)
{
    uint32_t first;

    if (left < QHCA_IP6_HLEN || ip[0] >> 4 != 6) {
        return;
    }
    first = qhca_get_be32(ip);
    k->l3 = 6;
    k->tos = (uint8_t)(first >> 20);
    qhca_put_be32((uint8_t *)&k->flow_label, first & 0xfffff);
    k->proto = ip[6];
    k->ttl = ip[7];
    memcpy(k->src_ip, ip + 8, 16);
    memcpy(k->dst_ip, ip + 24, 16);
    parse_l4(ip + QHCA_IP6_HLEN, left - QHCA_IP6_HLEN, k);
}

void qhca_flow_parse(const uint8_t *frame, size_t len,
                     struct qhca_flow_match *k)
{
    const uint8_t *p = frame + 12;
    size_t left = len - QHCA_ETH_HLEN;

    memset(k, 0, sizeof(*k));
    memcpy(k->dmac, frame, 6);
    memcpy(k->smac, frame + 6, 6);
    if (qhca_get_be16(p) == QHCA_ETHERTYPE_VLAN && left >= QHCA_VLAN_HLEN) {
        k->tagged = 1;
        memcpy(&k->vlan, p + 2, 2);
        p += QHCA_VLAN_HLEN;
        left -= QHCA_VLAN_HLEN;
    }
    memcpy(&k->ethertype, p, 2);
    p += 2;
    switch (qhca_get_be16(p - 2)) {
    case ETHERTYPE_IP4:
        parse_ip4(p, left, k);
        break;
    case ETHERTYPE_IP6:
        parse_ip6(p, left, k);
        break;
    }
}
