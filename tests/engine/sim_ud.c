/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Datagrams between QPs of all adapters, to others and to themselves.  A
 * message is identified by its first 8 bytes, or by its immediate if it is
 * shorter.  Datagrams may be lost, but never changed, truncated or (on a good
 * wire) duplicated; and the completion identifies the sender correctly.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define MAX_LEN 4096
#define GRH 40
#define MAX_UDS 16

struct um {
    unsigned src, dst;          /* members */
    uint32_t len, imm;
    bool has_imm, solicited;
    unsigned gid, got;
};

struct ud_all {
    struct sim *s;
    struct ud *member[MAX_UDS];
    unsigned members, alive;
    struct um *um;
    uint64_t ums, cap;
    bool enough;                /* never out of receives */
    uint64_t got;
};

struct sent {
    uint64_t wr_id;
    bool signalled, inl;
    unsigned np;
    struct piece p[GUEST_MAX_SGE];
};

struct got {
    uint64_t wr_id;
    struct piece p;
};

struct ud {
    struct ep *ep;
    struct ud_all *all;
    unsigned index;
    uint32_t qkey;
    struct area src, rcv;
    struct sent *sq;
    struct got *rq;
    uint32_t to_send, unsignalled, signalled_out;
};

static void free_sent(struct ud *u, struct sent *x)
{
    unsigned i;

    for (i = 0; i < x->np; i++) {
        gbuf_deny(&u->src.mr.buf, x->p[i].off, x->p[i].len, GMEM_R);
        spans_free(&u->src.spans, x->p[i].handle);
    }
}

static void send_cqe(struct ud *u, const struct qhca_cqe *c)
{
    struct gqp *qp = &u->ep->qp;
    struct sent *x;

    CHECK(c->status == QHCA_WC_SUCCESS, "UD send WQE %u: %s, syndrome %#x",
          c->wqe_index, sim_wc_name(c->status), c->syndrome);
    CHECK(c->wqe_index - qp->sq_cons < qp->sq_prod - qp->sq_cons,
          "completion of WQE %u; %u to %u are out", c->wqe_index,
          qp->sq_cons, qp->sq_prod - 1);
    for (;;) {
        x = &u->sq[qp->sq_cons & ((1u << qp->sq_shift) - 1)];
        free_sent(u, x);
        if (qp->sq_cons++ == c->wqe_index) {
            break;
        }
        CHECK(!x->signalled, "WQE %u was skipped", qp->sq_cons - 1);
    }
    CHECK(x->signalled && x->wr_id == c->wr_id, "wrong completion");
    CHECK(c->opcode == QHCA_CQE_OP_SEND, "opcode %#x", c->opcode);
    u->signalled_out--;
}

/* Check what precedes the payload. */
static void check_grh(struct ud *u, const struct um *m, const uint8_t *h,
                      const struct qhca_cqe *c)
{
    struct ud *from = u->all->member[m->src];
    uint8_t sgid[16], dgid[16];

    guest_gid(from->ep->g->n->id, m->gid, sgid);
    guest_gid(u->ep->g->n->id, m->gid, dgid);
    CHECK(c->flags & QHCA_CQE_F_GRH, "no GRH");
    if (m->gid & 1) {
        CHECK(h[0] >> 4 == 6 && !memcmp(h + 8, sgid, 16) &&
              !memcmp(h + 24, dgid, 16), "not the IPv6 header");
        CHECK(c->net_type == QHCA_NET_IPV6, "net type %u", c->net_type);
    } else {
        CHECK(h[20] == 0x45 && !memcmp(h + 32, sgid + 12, 4) &&
              !memcmp(h + 36, dgid + 12, 4), "not the IPv4 header");
        CHECK(c->net_type == QHCA_NET_IPV4, "net type %u", c->net_type);
    }
    CHECK(!(c->flags & QHCA_CQE_F_SMAC) ||
          !memcmp(c->smac, from->ep->g->n->mac, 6), "wrong source MAC");
    CHECK(!(c->flags & QHCA_CQE_F_VLAN) == !(m->gid & 2),
          "VLAN flag %#x, GID index %u", c->flags, m->gid);
    CHECK(!(m->gid & 2) || (c->vlan & 0xfff) == 5, "VLAN %#x", c->vlan);
}

static void recv_cqe(struct ud *u, const struct qhca_cqe *c)
{
    struct gqp *qp = &u->ep->qp;
    struct ud_all *all = u->all;
    uint8_t h[GRH + 8], want[16];
    struct got *x;
    struct um *m;
    uint64_t id, skip, good;

    CHECK(c->status == QHCA_WC_SUCCESS, "UD receive %u: %s, syndrome %#x",
          c->wqe_index, sim_wc_name(c->status), c->syndrome);
    CHECK(c->wqe_index == qp->rq_cons && qp->rq_cons != qp->rq_prod,
          "receive WQE %u completes, next is %u", c->wqe_index,
          qp->rq_cons);
    x = &u->rq[qp->rq_cons++ & ((1u << qp->rq_shift) - 1)];
    CHECK(x->wr_id == c->wr_id, "another wr_id");
    CHECK(c->byte_len >= GRH && c->byte_len <= GRH + MAX_LEN,
          "%u bytes", c->byte_len);
    gbuf_read(&u->rcv.mr.buf, x->p.off, h, c->byte_len < sizeof(h) ?
              c->byte_len : sizeof(h));
    if (c->byte_len >= GRH + 8) {
        memcpy(&id, h + GRH, 8);
        skip = 8;
    } else {
        CHECK(c->flags & QHCA_CQE_F_IMM, "immediate is missing");
        id = c->imm;
        skip = 0;
    }
    CHECK(id < all->ums, "message %#" PRIx64 " was never sent", id);
    m = &all->um[id];
    CHECK(m->dst == u->index, "message for QP %#x",
          all->member[m->dst]->ep->qp.qpn);
    CHECK(c->byte_len == GRH + m->len, "%u bytes instead of %u",
          c->byte_len - GRH, m->len);
    good = gbuf_verify(&u->rcv.mr.buf, x->p.off + GRH + skip, id, skip,
                       m->len - skip);
    CHECK(good == m->len - skip, "byte %" PRIu64 " of %u is wrong",
          good + skip, m->len);
    CHECK(!m->got || all->s->w.wire.dup, "received twice");
    CHECK(c->src_qpn == all->member[m->src]->ep->qp.qpn, "from QP %#x",
          c->src_qpn);
    CHECK(!(c->flags & QHCA_CQE_F_IMM) == !m->has_imm &&
          (!m->has_imm || c->imm == m->imm), "immediate is wrong");
    if (!all->s->w.wire.corrupt) {
        check_grh(u, m, h, c);  /* the ICRC covers less than this */
    }
    m->got++;
    all->got++;
    /* the receive was larger: nothing is written after the message */
    memset(want, 0x5a, sizeof(want));
    if (x->p.len > c->byte_len) {
        uint64_t n = x->p.len - c->byte_len;
        uint8_t rest[16];

        n = n < sizeof(rest) ? n : sizeof(rest);
        gbuf_read(&u->rcv.mr.buf, x->p.off + c->byte_len, rest, n);
        CHECK(!memcmp(rest, want, n), "written behind the message");
    }
    gbuf_deny(&u->rcv.mr.buf, x->p.off, x->p.len, GMEM_W);
    spans_free(&u->rcv.spans, x->p.handle);
}

static void ud_cqe(struct ep *ep, const struct qhca_cqe *c)
{
    if (c->opcode & 0x80) {
        recv_cqe(ep->app, c);
    } else {
        send_cqe(ep->app, c);
    }
}

static bool post_recv(struct ud *u)
{
    struct rng *r = &u->ep->g->rng;
    struct gqp *qp = &u->ep->qp;
    struct qhca_sge sge[2];
    struct got x;
    uint64_t off;
    uint8_t mark[16];
    unsigned n = 1;

    memset(&x, 0, sizeof(x));
    x.p.len = GRH + MAX_LEN + (uint32_t)rng_below(r, 32);
    if ((qp->rq_prod - qp->rq_cons) >> qp->rq_shift ||
        !spans_alloc(&u->rcv.spans, x.p.len, 16, &off, &x.p.handle)) {
        return false;
    }
    x.p.off = off;
    x.wr_id = rng_u64(r);
    gbuf_allow(&u->rcv.mr.buf, off, x.p.len, GMEM_W);
    memset(mark, 0x5a, sizeof(mark));
    for (off = x.p.off; off + 16 <= x.p.off + x.p.len; off += 16) {
        gbuf_write(&u->rcv.mr.buf, off, mark, 16);
    }
    gbuf_write(&u->rcv.mr.buf, off, mark, x.p.off + x.p.len - off);
    sge[0].addr = u->rcv.mr.iova + x.p.off;
    sge[0].len = x.p.len;
    sge[0].lkey = u->rcv.mr.key;
    if (qp->max_recv_sge > 1 && rng_pct(r, 50)) {
        /* split anywhere, in the header too */
        sge[1] = sge[0];
        sge[0].len = (uint32_t)rng_below(r, rng_pct(r, 50) ? GRH :
                                         x.p.len);
        sge[1].addr += sge[0].len;
        sge[1].len -= sge[0].len;
        n = 2;
    }
    u->rq[qp->rq_prod & ((1u << qp->rq_shift) - 1)] = x;
    CHECK(gqp_post_recv(qp, x.wr_id, sge, n), "full");
    return true;
}

static uint64_t new_um(struct ud_all *all)
{
    if (all->ums == all->cap) {
        all->cap = all->cap ? 2 * all->cap : 256;
        all->um = realloc(all->um, all->cap * sizeof(*all->um));
        CHECK(all->um, "no memory");
    }
    memset(&all->um[all->ums], 0, sizeof(*all->um));
    return all->ums++;
}

static bool post_send(struct ud *u)
{
    struct rng *r = &u->ep->g->rng;
    struct gqp *qp = &u->ep->qp;
    uint32_t depth = 1u << qp->sq_shift;
    struct ud_all *all = u->all;
    struct sent *x = &u->sq[qp->sq_prod & (depth - 1)];
    uint8_t data[MAX_LEN];
    struct um m;
    struct gwr g;
    uint64_t id = all->ums, off, rest;
    unsigned i, n;
    struct ud *to;

    if ((qp->sq_prod - qp->sq_cons) >> qp->sq_shift) {
        return false;
    }
    memset(&m, 0, sizeof(m));
    memset(&g, 0, sizeof(g));
    memset(x, 0, sizeof(*x));
    m.src = u->index;
    m.dst = (unsigned)rng_below(r, all->members);
    to = all->member[m.dst];
    m.len = (uint32_t)(rng_pct(r, 10) ? MAX_LEN - rng_below(r, 2) :
                       rng_log(r, MAX_LEN));
    m.gid = (unsigned)rng_below(r, GUEST_GIDS);
    m.has_imm = m.len < 8 || rng_pct(r, 30);
    m.imm = m.len < 8 ? (uint32_t)id : rng_u32(r);
    m.solicited = rng_pct(r, 30);
    pattern_bytes(id, 0, data, m.len);
    if (m.len >= 8) {
        memcpy(data, &id, 8);
    }
    if (m.len <= qp->max_inline && rng_pct(r, 40)) {
        g.flags |= QHCA_WQE_F_INLINE;
        g.inl = data;
        g.inl_len = m.len;
    } else {
        n = 1 + (unsigned)rng_below(r, qp->max_send_sge);
        rest = m.len;
        for (i = 0; i < n; i++) {
            x->p[i].len = (uint32_t)(i == n - 1 ? rest : rng_log(r, rest));
            if (!spans_alloc(&u->src.spans, x->p[i].len, rng_log(r, 32),
                             &off, &x->p[i].handle)) {
                x->np = i;
                free_sent(u, x);
                return false;
            }
            x->p[i].off = off;
            x->np = i + 1;
            gbuf_allow(&u->src.mr.buf, off, x->p[i].len, GMEM_R);
            gbuf_write(&u->src.mr.buf, off, data + (m.len - rest),
                       x->p[i].len);
            rest -= x->p[i].len;
            g.sge[i].addr = u->src.mr.iova + off;
            g.sge[i].len = x->p[i].len;
            g.sge[i].lkey = u->src.mr.key;
        }
        g.num_sge = n;
    }
    x->wr_id = g.wr_id = rng_u64(r);
    if (u->to_send == 1 || u->unsignalled + 1 >= depth || rng_pct(r, 50)) {
        x->signalled = true;
        g.flags |= QHCA_WQE_F_SIGNALED;
        u->unsignalled = 0;
        u->signalled_out++;
    } else {
        u->unsignalled++;
    }
    if (m.solicited) {
        g.flags |= QHCA_WQE_F_SOLICITED;
    }
    g.opcode = m.has_imm ? QHCA_WQE_SEND_IMM : QHCA_WQE_SEND;
    g.imm = m.has_imm ? m.imm : 0;
    guest_av(u->ep->g, to->ep->g->n, m.gid, &g.av);
    g.dest_qpn = to->ep->qp.qpn;
    g.qkey = to->qkey;
    CHECK(new_um(all) == id, "numbers");
    all->um[id] = m;
    CHECK(gqp_post_send(qp, &g), "full");
    u->to_send--;
    all->s->messages++;
    all->s->bytes += m.len;
    return true;
}

static void ud_pump(struct ep *ep)
{
    struct ud *u = ep->app;
    struct rng *r = &ep->g->rng;
    unsigned n = 1 + (unsigned)rng_log(r, 1u << ep->qp.sq_shift), i;
    bool ready = true;

    while (post_recv(u)) {
    }
    if (u->all->enough) {
        /* one flight at a time: nothing can overrun the receives */
        for (i = 0; i < u->all->members; i++) {
            ready = ready && u->all->member[i]->ep->qp.rq_prod;
        }
        ready = ready && u->all->got == u->all->ums;
        n = 1;
    }
    for (i = 0; ready && i < n && u->to_send; i++) {
        if (!post_send(u)) {
            break;
        }
    }
    if (ep->qp.sq_rung != ep->qp.sq_prod) {
        gqp_ring(&ep->qp);
    }
    /*
     * unsignaled ones retire with the next signaled one: never stop while there
     * is something to send
     */
    if (u->to_send && (u->signalled_out == 0 || !ready || i == n)) {
        sim_tick(ep, 1 + rng_log(r, 30000));
    }
}

static bool ud_idle(struct ep *ep)
{
    struct ud *u = ep->app;

    return !u->to_send && ep->qp.sq_prod == ep->qp.sq_cons;
}

static void ud_dump(struct ep *ep)
{
    struct ud *u = ep->app;

    fprintf(stderr, "UD QP %s/%#x: %u to send, SQ %u..%u, RQ %u..%u\n",
            ep->g->m->name, ep->qp.qpn, u->to_send, ep->qp.sq_cons,
            ep->qp.sq_prod, ep->qp.rq_cons, ep->qp.rq_prod);
}

/* Sent equals received plus the losses that are counted. */
static void balance(struct ud_all *all)
{
    struct sim *s = all->s;
    uint64_t dropped = 0, st[QHCA_STAT_COUNT];
    unsigned i;

    if (s->lossy || s->peer) {  /* which sends datagrams, too */
        return;
    }
    for (i = 0; i < s->w.nodes; i++) {
        guest_stats(&s->g[i], st);
        dropped += st[QHCA_STAT_UD_DROPPED];
    }
    CHECK(all->got + dropped == all->ums, "%" PRIu64 " sent, %" PRIu64
          " received, %" PRIu64 " counted as dropped", all->ums, all->got,
          dropped);
    CHECK(!all->enough || !dropped, "%" PRIu64 " dropped though receives "
          "were there", dropped);
}

static void ud_finish(struct ep *ep)
{
    struct ud *u = ep->app;
    struct ud_all *all = u->all;
    unsigned i;
    uint8_t st;

    if (all->alive == all->members) {
        world_run(&all->s->w, 1000000);
        for (i = 0; i < all->members; i++) {
            sim_drain(all->member[i]->ep->scq);
            sim_drain(all->member[i]->ep->rcq);
        }
        balance(all);
    }
    st = gqp_destroy(&ep->qp);
    CHECK(st == QHCA_ST_OK, "DESTROY_QP: status %u", st);
    sim_drain(ep->scq);
    sim_drain(ep->rcq);
    sim_ep_unbind(ep);
    sim_area_free(&u->src);
    sim_area_free(&u->rcv);
    ep->app = NULL;
    free(u->sq);
    free(u->rq);
    free(u);
    if (!--all->alive) {
        free(all->um);
        free(all);
    }
}

static void make(struct ud_all *all, struct guest *g, unsigned messages)
{
    struct rng *r = &g->rng;
    struct ep *ep = sim_ep(all->s, g);
    struct ud *u = calloc(1, sizeof(*u));
    struct gbuf_shape sq, rq;
    struct gqp_attr attr;
    struct gqp_init in;

    CHECK(u && all->members < MAX_UDS, "too many");
    ep->app = u;
    ep->on_cqe = ud_cqe;
    ep->pump = ud_pump;
    ep->idle = ud_idle;
    ep->dump = ud_dump;
    ep->finish = ud_finish;
    u->ep = ep;
    u->all = all;
    u->index = all->members++;
    all->member[u->index] = u;
    all->alive++;
    u->qkey = rng_u32(r) & 0x7fffffff;
    u->to_send = messages;
    memset(&in, 0, sizeof(in));
    in.type = QHCA_QPT_UD;
    in.sq_shift = (uint8_t)rng_range(r, 0, 7);
    in.sq_stride = (uint8_t)rng_range(r, 7, 10);
    in.rq_shift = (uint8_t)rng_range(r, all->enough ? 6 : 0, 7);
    in.rq_stride = (uint8_t)rng_range(r, 5, 9);
    gbuf_shape_random(&sq, r, 1ULL << (in.sq_shift + in.sq_stride));
    gbuf_shape_random(&rq, r, 1ULL << (in.rq_shift + in.rq_stride));
    in.sq = &sq;
    in.rq = &rq;
    ep->scq = sim_cq(all->s, g, (enum cq_mode)rng_below(r, 3),
                     1u << in.sq_shift);
    ep->rcq = sim_cq(all->s, g, (enum cq_mode)rng_below(r, 3),
                     1u << in.rq_shift);
    ep->scq->room -= 1u << in.sq_shift;
    ep->rcq->room -= 1u << in.rq_shift;
    in.scq = &ep->scq->cq;
    in.rcq = &ep->rcq->cq;
    gqp_create(&ep->qp, g, &in);
    sim_ep_bind(ep);
    u->sq = calloc(1u << in.sq_shift, sizeof(*u->sq));
    u->rq = calloc(1u << in.rq_shift, sizeof(*u->rq));
    CHECK(u->sq && u->rq, "no memory");
    sim_area_odp(&u->src, g, 3 * MAX_LEN + rng_log(r, 1 << 18), 0, false);
    sim_area(&u->rcv, g, (2 * GRH + MAX_LEN) << in.rq_shift,
             QHCA_ACCESS_LOCAL_WRITE, false);
    gqp_attr_default(&attr);
    attr.qkey = u->qkey;
    attr.sq_psn = rng_u32(r) & 0xffffff;
    gqp_to_init(&ep->qp, &attr);
    gqp_to_rtr(&ep->qp, NULL, &attr);
    gqp_to_rts(&ep->qp, &attr);
}

void ud_group(struct sim *s, unsigned per_node, unsigned messages,
              bool enough_receives)
{
    struct ud_all *all = calloc(1, sizeof(*all));
    unsigned i, k;

    CHECK(all, "no memory");
    all->s = s;
    all->enough = enough_receives;
    for (i = 0; i < s->w.nodes; i++) {
        for (k = 0; k < per_node; k++) {
            make(all, &s->g[i], messages);
        }
    }
}
