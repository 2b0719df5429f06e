/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A frame: its headers, and the fields that flow rules match on. */
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

void qhca_eth_frame_parse(const struct qhca *e, struct qhca_eth_frame *f,
                          const uint8_t *data, size_t len)
{
    f->data = data;
    f->len = len;
    f->merged = false;
    f->came = 0;
    memset(&f->super, 0, sizeof(f->super));
    qhca_headers_parse(data, len, &f->h);
    if (e->cfg.super_frames &&
        qhca_super_parse(data, len, &f->h, &f->super)) {
        f->len = f->super.len;
        f->h.l3_len = f->len - f->super.l.l3;
    }
}

bool qhca_eth_fits(const struct qhca *e, const struct qhca_eth_frame *f)
{
    const struct qhca_super *s = &f->super;
    /* one tag does not count; the other kind is not parsed */
    bool other_tag = f->h.ethertype == QHCA_ETHERTYPE_SERVICE_VLAN &&
                     !f->h.tagged;

    return f->h.l3_len <= e->mtu + (other_tag ? QHCA_VLAN_HLEN : 0) ||
           (s->segs && (uint32_t)s->l.hdr_len - s->l.l3 + s->size <= e->mtu);
}

void qhca_eth_frame_key(struct qhca_eth_frame *f)
{
    const struct qhca_headers *h = &f->h;
    struct qhca_flow_match *k = &f->k;

    memset(k, 0, sizeof(*k));
    memcpy(k->dmac, f->data, 6);
    memcpy(k->smac, f->data + 6, 6);
    if (h->tagged) {
        k->tagged = 1;
        qhca_put_be16((uint8_t *)&k->vlan, h->tci);
    }
    qhca_put_be16((uint8_t *)&k->ethertype, h->ethertype);
    if (!h->version) {
        return;
    }
    k->l3 = h->version;
    k->proto = h->proto;
    if (h->version == 4) {
        key_ip4(h->l3, k);
    } else {
        key_ip6(h->l3, k);
    }
    if (h->l4_proto) {
        k->l4 = h->l4_proto;
        memcpy(&k->src_port, h->l4, 2);
        memcpy(&k->dst_port, h->l4 + 2, 2);
    }
}
