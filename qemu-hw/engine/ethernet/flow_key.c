/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields of a frame that flow rules match on. */
#include "ethernet/flow.h"

static void key_ip4(const uint8_t *ip, struct qhca_flow_match *k)
{
    k->tos = ip[1];
    k->ip_flags = ip[6] >> 5;
    k->ttl = ip[8];
    memcpy(k->src_ip + 12, ip + 12, 4);
    memcpy(k->dst_ip + 12, ip + 16, 4);
}

static void key_ip6(const uint8_t *ip, struct qhca_flow_match *k)
{
    uint32_t first = qhca_get_be32(ip);

    k->tos = (uint8_t)(first >> 20);
    qhca_put_be32((uint8_t *)&k->flow_label, first & 0xfffff);
    k->ttl = ip[7];
    memcpy(k->src_ip, ip + 8, 16);
    memcpy(k->dst_ip, ip + 24, 16);
}

/* The ports, which only a first fragment has. */
static void key_l4(const struct qhca_headers *h, struct qhca_flow_match *k)
{
    const uint8_t *l4 = h->l3 + h->ip_len;

    if ((h->proto == QHCA_PROTO_TCP || h->proto == QHCA_PROTO_UDP) &&
        !(h->frag & QHCA_IP4_OFFSET) && h->l3_len - h->ip_len >= 4) {
        k->l4 = h->proto;
        memcpy(&k->src_port, l4, 2);
        memcpy(&k->dst_port, l4 + 2, 2);
    }
}

void qhca_flow_parse(const uint8_t *frame, size_t len,
                     struct qhca_flow_match *k)
{
    struct qhca_headers h;

    qhca_headers_parse(frame, len, &h);
    memset(k, 0, sizeof(*k));
    memcpy(k->dmac, frame, 6);
    memcpy(k->smac, frame + 6, 6);
    if (h.tagged) {
        k->tagged = 1;
        qhca_put_be16((uint8_t *)&k->vlan, h.tci);
    }
    qhca_put_be16((uint8_t *)&k->ethertype, h.ethertype);
    if (!h.version) {
        return;
    }
    k->l3 = h.version;
    k->proto = h.proto;
    if (h.version == 4) {
        key_ip4(h.l3, k);
    } else {
        key_ip6(h.l3, k);
    }
    key_l4(&h, k);
}
