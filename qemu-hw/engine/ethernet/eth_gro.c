/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive coalescing: frames of a TCP flow that arrive for an RQ with
 * QHCA_ETH_Q_F_GRO are merged into one packet, which has the form of a
 * super-frame.
 *
 * A packet is held until it is complete, a frame arrives that must not overtake
 * it, its place is needed, or its time is over: cfg.gro_hold or, if that is 0,
 * the end of the next run of the engine.
 */
#include "ethernet/flow.h"

#define TCP_FLAGS           13
#define TCP_PSH             0x08

/* Deliver @p and remove it. */
static void gro_deliver(struct qhca *e, struct qhca_gro_packet *p)
{
    struct qhca_gro *g = &e->eth->gro;
    uint8_t *data = e->eth->merged;
    struct qhca_eth_frame f = {
        .data = data, .len = p->super.len, .came = p->since,
    };
    struct qhca_large_part all = {
        .len = qhca_gro_payload(p), .total = qhca_gro_payload(p),
    };
    struct qhca_steer steer = p->steer;
    struct qhca_eth_q *q = p->q;

    qhca_gro_gather(g, p, data);
    qhca_cost_bytes(e, p->super.len);
    if (p->super.segs > 1) {
        qhca_large_finish(&p->super.l, data, &all);
        qhca_cost_bytes(e, p->super.len);
        f.super = p->super;
        f.merged = true;
    }
    qhca_gro_remove(g, p);
    qhca_headers_parse(f.data, f.len, &f.h);
    qhca_eth_rq_put(e, q, &f, &steer);
}

/* Append the payload of the next frame, for which there is room. */
static void gro_add(struct qhca *e, struct qhca_gro_packet *p,
                    const struct qhca_eth_frame *f,
                    const struct qhca_gro_frame *x)
{
    struct qhca_gro *g = &e->eth->gro;
    uint32_t len = x->len - x->l.hdr_len;

    qhca_gro_append(g, p, f->data + x->l.hdr_len, len);
    p->super.segs++;
    if (x->push) {
        qhca_gro_headers(g, p)[x->l.l4 + TCP_FLAGS] |= TCP_PSH;
    }
    if (x->push || x->padded || len < p->super.size || qhca_gro_full(p)) {
        gro_deliver(e, p);
    }
}

/*
 * Make room for @len more bytes of @p.  False: @p itself had to be delivered,
 * as the oldest or, at the cost limit of this call, instead of others.
 */
static bool gro_make_room(struct qhca *e, struct qhca_gro_packet *p,
                          uint32_t len)
{
    struct qhca_gro *g = &e->eth->gro;

    /* a queue that stops drops its packets */
    while (p->q && !qhca_gro_room(g, p, len)) {
        gro_deliver(e, qhca_call_exhausted(e) ? p : qhca_gro_oldest(g));
    }
    return p->q;
}

/*
 * Hold @f as the first frame of a packet.  False: its queue has stopped, there
 * is no memory, or its place is taken and the call has reached its cost limit.
 * To deliver only @f costs the least then, and nothing is lost.
 */
static bool gro_begin(struct qhca *e, struct qhca_eth_q *q,
                      const struct qhca_eth_frame *f,
                      const struct qhca_gro_frame *x,
                      const struct qhca_steer *s)
{
    struct qhca_gro *g = &e->eth->gro;
    struct qhca_gro_packet *p;

    for (;;) {
        p = qhca_gro_in_the_way(g, &x->key);
        if (!p && !qhca_gro_room(g, NULL, x->len)) {
            p = qhca_gro_oldest(g);
        }
        if (!p) {
            break;
        }
        if (qhca_call_exhausted(e)) {
            return false;
        }
        gro_deliver(e, p);
    }
    if (q->state != QHCA_WQS_RDY) {
        return false;
    }
    p = qhca_gro_new(g, &x->key);
    if (!p) {
        return false;
    }
    p->q = q;
    p->steer = *s;
    p->since = qhca_now(e);
    p->super = (struct qhca_super){
        .l = x->l, .segs = 1, .size = (uint16_t)(x->len - x->l.hdr_len),
    };
    qhca_gro_append(g, p, f->data, x->len);
    return true;
}

/* Were both steered to the queue in the same way? */
static bool eth_gro_same_steer(const struct qhca_steer *a,
                               const struct qhca_steer *b)
{
    return a->hash == b->hash && a->hash_type == b->hash_type &&
           a->tag == b->tag;
}

/* Packet @p is lost. */
static void gro_drop(struct qhca *e, struct qhca_gro_packet *p)
{
    qhca_eth_rq_drop(e, p->q, p->super.segs);
    qhca_gro_remove(&e->eth->gro, p);
}

/*
 * Deliver all that is held, for a frame that cannot wait; what exceeds the cost
 * limit of this call is lost.
 */
static void gro_flush_now(struct qhca *e)
{
    struct qhca_gro_packet *p;

    while ((p = qhca_gro_oldest(&e->eth->gro))) {
        if (qhca_call_exhausted(e) || !qhca_active(e)) {
            gro_drop(e, p);
        } else {
            gro_deliver(e, p);
        }
    }
}

bool qhca_gro_take(struct qhca *e, struct qhca_eth_q *q,
                   const struct qhca_eth_frame *f, const struct qhca_steer *s)
{
    struct qhca_gro *g = &e->eth->gro;
    struct qhca_gro_packet *p = NULL;
    struct qhca_gro_frame x;

    if (!(q->flags & QHCA_ETH_Q_F_GRO)) {
        return false;
    }
    qhca_gro_look(q, f, &x);
    if (x.suits) {
        qhca_cost_bytes(e, x.len);      /* its sum was checked */
    }
    if (x.order == QHCA_GRO_ALL) {
        gro_flush_now(e);
    } else if (x.order == QHCA_GRO_FLOW) {
        p = qhca_gro_find(g, &x.key);
    }
    if (p && x.suits && eth_gro_same_steer(&p->steer, s) &&
        qhca_gro_follows(g, p, f, &x)) {
        if (gro_make_room(e, p, x.len - x.l.hdr_len)) {
            gro_add(e, p, f, &x);
            return true;
        }
    } else if (p) {
        gro_deliver(e, p);
    }
    /* a padded frame ends a packet, and so does PSH */
    return x.suits && !x.push && !x.padded && gro_begin(e, q, f, &x, s);
}

bool qhca_gro_flush(struct qhca *e)
{
    struct qhca_gro_packet *p = qhca_gro_oldest(&e->eth->gro);

    while (p) {
        gro_deliver(e, p);
        p = qhca_gro_oldest(&e->eth->gro);
        if (qhca_call_spent(e) || !qhca_active(e)) {
            break;
        }
    }
    return !p;
}

static uint64_t hold_ns(const struct qhca *e)
{
    return e->cfg.gro_hold * 1000ULL;
}

void qhca_gro_run(struct qhca *e)
{
    struct qhca_gro *g = &e->eth->gro;
    struct qhca_gro_packet *p;
    uint64_t now;

    if (!g->held) {
        return;
    }
    now = qhca_now(e);
    /* a loaded packet may have a time in the future: it waits no longer */
    while ((p = qhca_gro_oldest(g)) && now - p->since >= hold_ns(e)) {
        gro_deliver(e, p);
        if (qhca_call_spent(e) || !qhca_active(e)) {
            break;              /* a kick or the timer continues it */
        }
    }
}

void qhca_gro_stop(struct qhca *e, struct qhca_eth_q *q)
{
    struct qhca_gro *g = &e->eth->gro;
    unsigned i;

    for (i = 0; g->held && i < g->packets_new; i++) {
        if (g->store->packet[i].q == q) {
            gro_drop(e, &g->store->packet[i]);
        }
    }
}

void qhca_gro_forget(struct qhca *e)
{
    if (e->eth->gro.held) {
        qhca_gro_init(&e->eth->gro);
    }
}

bool qhca_gro_pending(const struct qhca *e)
{
    return e->eth->gro.held && !e->cfg.gro_hold;
}

uint64_t qhca_gro_deadline(struct qhca *e)
{
    const struct qhca_gro_packet *p = qhca_gro_oldest(&e->eth->gro);
    uint64_t now;

    if (!p || !e->cfg.gro_hold) {
        return UINT64_MAX;
    }
    now = qhca_now(e);
    return p->since > now ? now : p->since + hold_ns(e);
}

/* ---- saved state ---- */

SAVED_SIZE(struct qhca_gro_packet, 160, gro, 2);
SAVED_SIZE(struct qhca_gro_store, 2263040, gro, 2);
SAVED_SIZE(struct qhca_gro, 4144, gro, 2);

#define SINCE_MAX           (1ULL << 62)

/*
 * Could frames have been merged into packet @p of @q, which is not in the table
 * yet and whose bytes are at @data?  The first of the frames is still there
 * unchanged.  *@x describes it.
 */
static bool gro_valid(const struct qhca_gro_packet *p, struct qhca_eth_q *q,
                      const uint8_t *data, struct qhca_gro_frame *x)
{
    const struct qhca_super *s = &p->super;
    uint32_t rest = (s->segs - 1) * (uint32_t)s->size;
    struct qhca_eth_frame f = { .data = data };
    struct qhca_gro_packet as = *p;

    if (!s->segs || !s->size || s->len < rest ||
        s->len - rest < QHCA_ETH_HLEN || s->len - rest > QHCA_ETH_MAX_FRAME) {
        return false;
    }
    f.len = s->len - rest;
    qhca_headers_parse(data, f.len, &f.h);
    qhca_gro_look(q, &f, x);
    if (!x->suits || x->padded || x->push ||
        s->size != f.len - x->l.hdr_len) {
        return false;
    }
    as.super.l = x->l;
    return !qhca_gro_full(&as) &&
           (!s->l.same_id || x->l.version == 4) &&
           (!s->l.same_outer_id || x->l.outer_version == 4) &&
           (s->segs > 1 || !(s->l.same_id | s->l.same_outer_id));
}

/* Hold a loaded packet, if it is valid. */
static void gro_loaded(struct qhca_io *io, const struct qhca_gro_packet *was,
                       struct qhca_eth_q *q, const uint8_t *data)
{
    struct qhca_gro *g = &io->e->eth->gro;
    struct qhca_gro_packet *p = qhca_gro_oldest(g);
    struct qhca_gro_frame x;

    if (!NEED(io, gro_valid(was, q, data, &x),
              "what is merged cannot have been received") ||
        !NEED(io, was->since < SINCE_MAX && (!p || was->since >=
              qhca_container(g->oldest.prev, struct qhca_gro_packet,
                             age)->since), "what is merged is out of order") ||
        !NEED(io, !qhca_gro_find(g, &x.key) &&
              !qhca_gro_in_the_way(g, &x.key) &&
              qhca_gro_room(g, NULL, was->super.len),
              "more is merged than there is room for")) {
        return;
    }
    p = qhca_gro_new(g, &x.key);
    if (!NEED(io, p, "out of memory")) {
        return;
    }
    p->q = q;
    p->steer = was->steer;
    p->since = was->since;
    p->super = was->super;
    p->super.l = x.l;
    p->super.l.same_id = was->super.l.same_id;
    p->super.l.same_outer_id = was->super.l.same_outer_id;
    p->super.len = 0;
    qhca_gro_append(g, p, data, was->super.len);
}

static void io_packet(struct qhca_io *io, struct qhca_gro_packet *p)
{
    struct qhca_gro *g = &io->e->eth->gro;
    uint8_t *data = io->e->eth->merged;
    struct qhca_gro_packet was = { .q = NULL };
    struct qhca_eth_q *q = p ? p->q : NULL;

    if (p) {
        was = *p;
        qhca_gro_gather(g, p, data);
    }
    q = qhca_io_must_ref(io, &io->e->eth->eth_rqs, q ? q->num : 0,
                         "frames are merged for no queue");
    IO(io, was.steer.hash);
    IO(io, was.steer.hash_type);
    IO(io, was.steer.tag);
    IO(io, was.since);
    IO(io, was.super.size);
    IO(io, was.super.segs);
    IO(io, was.super.l.same_id);
    IO(io, was.super.l.same_outer_id);
    IO(io, was.super.len);
    if (NEED(io, was.super.len <= sizeof(io->e->eth->merged),
             "what is merged is too long")) {
        qhca_io_bytes(io, data, was.super.len);
    }
    if (!io->saving && !io->failed) {
        gro_loaded(io, &was, q, data);
    }
}

void qhca_io_gro(struct qhca_io *io)
{
    struct qhca_gro *g = &io->e->eth->gro;
    struct qhca_list *l = &g->oldest;
    uint32_t n = g->held, i;

    IO(io, n);
    NEED(io, n <= QHCA_GRO_PACKETS, "too many packets are merged");
    for (i = 0; i < n && !io->failed; i++) {
        l = l->next;
        io_packet(io, io->saving ? qhca_container(l, struct qhca_gro_packet,
                                                  age) : NULL);
    }
    if (io->failed) {
        qhca_gro_init(g);
    }
}
