/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames from the wire: passing them to RDMA or Ethernet. */
#include "adapter/adapter.h"
#include "ethernet/flow.h"
#include "transport/roce.h"

/*
 * Most packets of a run's budget that a record of a memory link uses up, as
 * QPs must have their turn in the same run.  What a record costs is limited,
 * too, by the cost of a call.
 */
#define RECORD_PACKETS      128

static void rx_refuse(struct qhca *e, unsigned why, uint32_t frames)
{
    e->stats[QHCA_STAT_ETH_RX_ERRORS] += frames;
    e->stats[why] += frames;
}

void qhca_eth_arrived(struct qhca *e, struct qhca_eth_frame *f)
{
    if (e->eth->loopback) {
        e->stats[QHCA_STAT_ETH_RX_FILTERED] += qhca_eth_frames(f);
    } else {
        qhca_eth_rx(e, f);
    }
}

static void rx_piece(struct qhca *e, void *to, const struct qhca_eth_frame *f,
                     const struct qhca_steer *s)
{
    struct qhca_eth_frame piece = *f;

    (void)to;
    (void)s;
    e->hooks->frame_rx(e, &piece);
}

/* Let faults decide, for each frame of a super-frame. */
static void rx_faulty(struct qhca *e, struct qhca_eth_frame *f)
{
    static const struct qhca_steer nothing;

    if (!f->super.segs) {
        e->hooks->frame_rx(e, f);
    } else if (qhca_super_intact(e, f)) {
        e->stats[QHCA_STAT_ETH_RX_DROPPED] +=
            qhca_super_deliver(e, f, rx_piece, NULL, &nothing);
    } else {
        e->stats[QHCA_STAT_ETH_RX_ERRORS] += f->super.segs;
    }
}

static void rx_frame(struct qhca *e, const void *frame, size_t len,
                     struct qhca_eth_frame *f)
{
    if (e->sniff) {
        e->sniff(e, frame, len);
        if (!qhca_active(e)) {
            return;
        }
    }
    if (qhca_roce_rx(e, frame, len, &f->h)) {
        return;
    }
    if (qhca_pause_rx(e, f)) {
        return;
    }
    if (qhca_faulty(e, QHCA_FLT_AT_FRAME)) {
        rx_faulty(e, f);
    } else {
        qhca_eth_arrived(e, f);
    }
}

/* ---- super-frames of RoCEv2 ---- */

/* Do the frames that it represents fit the port's MTU? */
static bool super_fits(const struct qhca *e, const struct qhca_super_packet *s,
                       const struct qhca_wire_frames *as)
{
    size_t l2 = (size_t)(s->ip - s->eth), most = as->first;

    most = as->len > most ? as->len : most;
    most = as->last > most ? as->last : most;
    return most - l2 <= e->mtu;
}

/* Receive the packets from number @k on, one by one. */
static void super_cut(struct qhca *e, const struct qhca_super_packet *s,
                      uint32_t k)
{
    uint8_t *piece = e->xd->piece;
    struct qhca_eth_frame f;
    uint32_t len;

    for (; k < s->n && qhca_active(e); k++) {
        len = qhca_super_packet_cut(s, k, piece);
        qhca_cost_bytes(e, len);
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
        rx_refuse(e, QHCA_STAT_PORT_RX_OVERSIZE, as.n);
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
        /* Cutting it would produce frames with a correct ICRC. */
        e->stats[QHCA_STAT_ETH_RX_ERRORS] += s->n;
    }
}

/* ---- memory links ---- */

/* Does the adapter receive nothing at all? */
static bool rx_deaf(const struct qhca *e)
{
    return !qhca_active(e) || !e->link;
}

static void rx_record(struct qhca *e, const struct qhca_memlink_frame *f)
{
    struct qhca_super_packet s;
    struct qhca_wire_frames as;
    struct qhca_payload payload;
    struct qhca_headers h;
    uint32_t done = 0;

    qhca_headers_parse(f->head, f->len, &h);
    if (!qhca_super_packet_shared(e, f, &h, &payload, &s)) {
        qhca_count(e, QHCA_STAT_ROCE_RX_MALFORMED);
        return;
    }
    qhca_super_packet_frames(&s, &as);
    if (!super_fits(e, &s, &as)) {
        rx_refuse(e, QHCA_STAT_PORT_RX_OVERSIZE, as.n);
        return;
    }
    if (f->lost) {
        qhca_roce_lost(e, &s, f->len, &h);
        return;
    }
    qhca_wire_count_rx(e, f->head, &as);
    if (e->sniff || qhca_faulty(e, QHCA_FLT_AT_PACKET)) {
        super_cut(e, &s, 0);
    } else if (!qhca_roce_rx_super(e, &s, f->len, &h, &done)) {
        super_cut(e, &s, 0);
    } else {
        super_cut(e, &s, done);
    }
}

/* Receive from @l; returns the budget used. */
static unsigned rx_memlink(struct qhca *e, struct qhca_memlink *l,
                           unsigned budget)
{
    struct qhca_memlink_frame f;
    unsigned used = 0;

    while (used < budget && !qhca_call_spent(e)) {
        if (!qhca_memlink_next(e, l, &f)) {
            qhca_memlink_pause(e, l);
            break;
        }
        if (!rx_deaf(e)) {
            rx_record(e, &f);
        }
        qhca_memlink_done(e, l);
        used += f.packets < RECORD_PACKETS ? f.packets : RECORD_PACKETS;
        qhca_break_point(e);
    }
    return used;
}

unsigned qhca_memlinks_rx(struct qhca *e, unsigned budget)
{
    struct qhca_list *first = e->ml->all.next, *i;
    unsigned used = 0;
    bool pending = false;

    /* Rotate the list, so that each link is the first in turn. */
    if (e->ml->n > 1) {
        qhca_list_del(first);
        qhca_list_add_tail(&e->ml->all, first);
    }
    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (l->pending && used < budget) {
            used += rx_memlink(e, l, budget - used);
        }
        pending |= l->pending;
    }
    e->ml->pending = pending;
    return used;
}

/* ---- all frames ---- */

/* Count a well-formed frame that has arrived. */
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

    if (rx_deaf(e)) {
        return;
    }
    qhca_call_begins(e);
    if (len < QHCA_ETH_HLEN) {
        rx_refuse(e, QHCA_STAT_PORT_RX_UNDERSIZE, 1);
        return;
    }
    qhca_eth_frame_parse(e, &f, frame, len);
    if (qhca_headers_cut(&f.h)) {
        rx_refuse(e, QHCA_STAT_PORT_RX_UNDERSIZE, 1);
        return;
    }
    if (e->cfg.super_frames && qhca_super_packet_find(frame, len, &f.h, &s)) {
        rx_super(e, &s, &f);
    } else if (!qhca_eth_fits(e, &f)) {
        rx_refuse(e, QHCA_STAT_PORT_RX_OVERSIZE, qhca_eth_frames(&f));
        return;
    } else {
        rx_count(e, &f);
        if (!qhca_memlink_marker(e, frame, len)) {
            rx_frame(e, frame, len, &f);
        }
    }
    qhca_finish_merging(e);
}
