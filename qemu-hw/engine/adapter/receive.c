/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames from the wire: which of them are the RDMA engine's. */
#include "adapter/adapter.h"
#include "ethernet/flow.h"
#include "transport/roce.h"

static void rx_refuse(struct qhca *e, unsigned why)
{
    qhca_count(e, QHCA_STAT_ETH_RX_ERRORS);
    qhca_count(e, why);
}

static void rx_frame(struct qhca *e, const void *frame, size_t len,
                     struct qhca_eth_frame *f)
{
    if (e->sniff) {
        e->sniff(e, frame, len);
    }
    if (!qhca_roce_rx(e, frame, len, &f->h)) {
        qhca_eth_rx(e, f);
    }
}

/* ---- super-frames of RoCEv2 ---- */

/* Do the frames that it stands for fit the port's MTU? */
static bool super_fits(const struct qhca *e, const struct qhca_super_packet *s,
                       const struct qhca_wire_frames *as)
{
    size_t l2 = (size_t)(s->ip - s->eth), most = as->first;

    most = as->len > most ? as->len : most;
    most = as->last > most ? as->last : most;
    return most - l2 <= e->mtu;
}

/* Receive packets from number @k on one by one: somebody looks at them. */
static void super_cut(struct qhca *e, const struct qhca_super_packet *s,
                      uint32_t k)
{
    uint8_t *piece = e->xd->piece;
    struct qhca_eth_frame f;
    uint32_t len;

    for (; k < s->n && qhca_active(e); k++) {
        len = qhca_super_packet_cut(s, k, piece);
        qhca_eth_frame_parse(e, &f, piece, len);
        rx_frame(e, piece, len, &f);
    }
}

static void rx_super(struct qhca *e, const struct qhca_super_packet *s,
                     const struct qhca_eth_frame *f)
{
    struct qhca_wire_frames as;
    uint32_t done = 0;

    qhca_super_packet_frames(s, &as);
    if (!super_fits(e, s, &as)) {
        rx_refuse(e, QHCA_STAT_PORT_RX_OVERSIZE);
        return;
    }
    qhca_wire_count_rx(e, f->data, &as);
    if ((e->sniff || qhca_faulty(e, QHCA_FLT_AT_PACKET)) &&
        qhca_super_packet_intact(s)) {
        super_cut(e, s, 0);
    } else if (qhca_roce_rx_super(e, s, f->len, &f->h, &done)) {
        super_cut(e, s, done);
    } else if (qhca_super_packet_intact(s)) {
        super_cut(e, s, 0);
    } else {
        /* Cut, its frames would be correct. */
        e->stats[QHCA_STAT_ETH_RX_ERRORS] += s->n;
    }
}

/* ---- all frames ---- */

/* Does the frame fit the port's MTU, or do those that it represents? */
static bool rx_fits(const struct qhca *e, const struct qhca_eth_frame *f)
{
    const struct qhca_super *s = &f->super;

    return f->h.l3_len <= e->mtu ||
           (s->segs && (uint32_t)s->l.hdr_len - s->l.l3 + s->size <= e->mtu);
}

/* A frame has arrived that is well formed. */
static void rx_count(struct qhca *e, const struct qhca_eth_frame *f)
{
    const struct qhca_super *s = &f->super;
    struct qhca_wire_frames as = { .n = 1, .last = f->len };

    if (s->segs) {
        as.n = s->segs;
        as.first = as.len = (size_t)s->l.hdr_len + s->size;
        as.last = s->len - (s->segs - 1) * (size_t)s->size;
    }
    qhca_wire_count_rx(e, f->data, &as);
}

void qhca_receive(struct qhca *e, const void *frame, size_t len)
{
    struct qhca_super_packet s;
    struct qhca_eth_frame f;

    if (!qhca_active(e) || !e->link) {
        return;
    }
    if (len < QHCA_ETH_HLEN) {
        rx_refuse(e, QHCA_STAT_PORT_RX_UNDERSIZE);
        return;
    }
    qhca_eth_frame_parse(e, &f, frame, len);
    if (qhca_headers_cut(&f.h)) {
        rx_refuse(e, QHCA_STAT_PORT_RX_UNDERSIZE);
        return;
    }
    if (e->cfg.super_frames && qhca_super_packet_find(frame, len, &f.h, &s)) {
        rx_super(e, &s, &f);
    } else if (!rx_fits(e, &f)) {
        rx_refuse(e, QHCA_STAT_PORT_RX_OVERSIZE);
        return;
    } else {
        rx_count(e, &f);
        rx_frame(e, frame, len, &f);
    }
    qhca_finish_merging(e);
}
