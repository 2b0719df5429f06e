/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive coalescing: frames of one TCP flow that arrive one after another for
 * an RQ with QHCA_ETH_Q_F_GRO become one packet, which is what a super-frame
 * is.
 *
 * A frame joins only if cutting the packet would give back exactly this frame.
 * So there is one rule of what its headers must be, that of large.c.  One
 * packet at a time is held, and no longer than until the next run of the
 * engine.
 */
#include "ethernet/flow.h"
#include "ethernet/csum.h"
#include "base/save.h"

#define TCP_FLAGS           13
#define TCP_SUM             16
#define TCP_PSH             0x08
#define TCP_ACK             0x10
#define TCP_RESERVED        0x0f    /* of the byte before the flags */
#define IP4_SUM             10

/* Bytes of payload held. */
static uint32_t held(const struct qhca_gro *g)
{
    return g->super.len - g->super.l.hdr_len;
}

static uint8_t *held_flags(struct qhca_gro *g)
{
    return g->frame + g->super.l.l4 + TCP_FLAGS;
}

/*
 * 0xffff is as right as 0, but only the latter is computed: the frame could not
 * be made again.
 */
static bool odd_sums(const struct qhca_large *l, const uint8_t *frame)
{
    return qhca_get_be16(frame + l->l4 + TCP_SUM) == 0xffff ||
           (l->version == 4 &&
            qhca_get_be16(frame + l->l3 + IP4_SUM) == 0xffff);
}

/* May @f be part of a packet, or begin one?  *@l gets where its headers are. */
static bool gro_suits(const struct qhca_eth_q *q,
                      const struct qhca_eth_frame *f, struct qhca_large *l)
{
    const uint8_t *tcp = f->h.l4;
    size_t ip = f->h.version == 4 ? QHCA_IP4_HLEN : QHCA_IP6_HLEN;

    return (q->flags & QHCA_ETH_Q_F_GRO) && q->state == QHCA_WQS_RDY &&
           !f->super.segs && f->h.l4_proto == QHCA_PROTO_TCP &&
           qhca_large_from(f->data, &f->h, l) &&
           l->l4 == l->l3 + ip && f->h.l4_len > f->h.l4_hlen &&
           l->l4 + f->h.l4_len == f->len &&
           (tcp[TCP_FLAGS] & ~TCP_PSH) == TCP_ACK &&
           !(tcp[TCP_FLAGS - 1] & TCP_RESERVED) && !odd_sums(l, f->data) &&
           qhca_large_sum_ok(l, f->data, f->len);
}

/* Is @f the frame that follows what is held? */
static bool gro_follows(const struct qhca_gro *g,
                        const struct qhca_eth_frame *f,
                        const struct qhca_large *l)
{
    const struct qhca_super *s = &g->super;
    struct qhca_large_part p = {
        .number = s->segs, .from = held(g),
        .len = (uint32_t)(f->len - l->hdr_len), .total = UINT32_MAX,
    };
    uint8_t want[QHCA_ETH_LSO_HDR_MAX];

    if (l->hdr_len != s->l.hdr_len || p.len > s->size) {
        return false;
    }
    memcpy(want, g->frame, l->hdr_len);
    qhca_large_headers(&s->l, want, &p);
    /* the sums are right; PSH may end the packet */
    want[l->l4 + TCP_FLAGS] |= f->data[l->l4 + TCP_FLAGS] & TCP_PSH;
    memcpy(want + l->l4 + TCP_SUM, f->data + l->l4 + TCP_SUM, 2);
    if (l->version == 4) {
        memcpy(want + l->l3 + IP4_SUM, f->data + l->l3 + IP4_SUM, 2);
    }
    return !memcmp(want, f->data, l->hdr_len);
}

/* Will no other frame fit behind what is held? */
static bool gro_full(const struct qhca_gro *g)
{
    const struct qhca_super *s = &g->super;

    return held(g) + s->size > qhca_super_chunk(&s->l, g->frame, s->size);
}

/* Add the payload of the frame that follows. */
static void gro_add(struct qhca *e, const struct qhca_eth_frame *f)
{
    struct qhca_gro *g = &e->eth->gro;
    uint16_t hdr_len = g->super.l.hdr_len;
    uint32_t len = (uint32_t)f->len - hdr_len;
    bool push = f->data[g->super.l.l4 + TCP_FLAGS] & TCP_PSH;

    memcpy(g->frame + g->super.len, f->data + hdr_len, len);
    g->super.len += len;
    g->super.segs++;
    if (push) {
        *held_flags(g) |= TCP_PSH;
    }
    if (push || len < g->super.size || gro_full(g)) {
        qhca_gro_flush(e);
    }
}

bool qhca_gro_take(struct qhca *e, struct qhca_eth_q *q,
                   const struct qhca_eth_frame *f, const struct qhca_steer *s)
{
    struct qhca_gro *g = &e->eth->gro;
    struct qhca_large l;
    bool suits = gro_suits(q, f, &l);

    if (suits && g->q == q && g->steer.hash == s->hash &&
        g->steer.hash_type == s->hash_type && g->steer.tag == s->tag &&
        gro_follows(g, f, &l)) {
        gro_add(e, f);
        return true;
    }
    qhca_gro_flush(e);
    if (!suits || (f->h.l4[TCP_FLAGS] & TCP_PSH)) {
        return false;
    }
    g->q = q;
    g->steer = *s;
    g->super = (struct qhca_super){
        .l = l, .len = (uint32_t)f->len, .segs = 1,
        .size = (uint16_t)(f->len - l.hdr_len),
    };
    memcpy(g->frame, f->data, f->len);
    return true;
}

void qhca_gro_flush(struct qhca *e)
{
    struct qhca_gro *g = &e->eth->gro;
    struct qhca_eth_frame f = { .data = g->frame, .len = g->super.len };
    struct qhca_large_part all = { .len = held(g), .total = held(g) };
    struct qhca_eth_q *q = g->q;

    if (!q) {
        return;
    }
    g->q = NULL;
    if (g->super.segs > 1) {
        qhca_large_finish(&g->super.l, g->frame, &all);
        f.super = g->super;
        f.merged = true;
    }
    qhca_headers_parse(f.data, f.len, &f.h);
    qhca_eth_rq_put(e, q, &f, &g->steer);
}

void qhca_gro_forget(struct qhca *e, const struct qhca_eth_q *q)
{
    if (!q || e->eth->gro.q == q) {
        e->eth->gro.q = NULL;
    }
}

/* ---- saved state ---- */

SAVED_SIZE(struct qhca_gro, 65600, gro, 1);

/* Could frames have become what is held? */
static bool gro_valid(struct qhca_gro *g)
{
    struct qhca_super *s = &g->super;
    uint32_t head = s->len < QHCA_ETH_LSO_HDR_MAX ? s->len :
                                                    QHCA_ETH_LSO_HDR_MAX;

    return (g->q->flags & QHCA_ETH_Q_F_GRO) && s->segs && s->size &&
           s->size <= QHCA_ETH_MAX_FRAME &&
           qhca_large_parse(g->frame, head, true, &s->l) &&
           s->l.proto == QHCA_PROTO_TCP &&
           s->len == s->l.hdr_len + (uint32_t)s->segs * s->size &&
           !gro_full(g);
}

void qhca_io_gro(struct qhca_io *io)
{
    struct qhca_gro *g = &io->e->eth->gro;

    g->q = qhca_io_ref(io, &io->e->eth->eth_rqs, g->q, g->q ? g->q->num : 0,
                       "frames are merged for no queue");
    if (!g->q) {
        return;
    }
    IO(io, g->steer.hash);
    IO(io, g->steer.hash_type);
    IO(io, g->steer.tag);
    IO(io, g->super.size);
    IO(io, g->super.segs);
    IO(io, g->super.len);
    if (NEED(io, g->super.len <= sizeof(g->frame),
             "what is merged is too long")) {
        qhca_io_bytes(io, g->frame, g->super.len);
    }
    NEED(io, gro_valid(g), "what is merged cannot have been received");
    if (io->failed) {
        g->q = NULL;
    }
}
