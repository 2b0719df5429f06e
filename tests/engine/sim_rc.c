/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Connected QPs under random work.  What must hold: every WQE completes once
 * and in order; a receive gets exactly the message that was sent, in order;
 * earlier writes are in place when a message is reported; atomics are executed
 * exactly once; the device accesses no byte outside the buffers currently
 * posted.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define FIFO 8192

struct wr {
    uint64_t id, wr_id;
    uint8_t op, flags;
    uint32_t len, imm;
    unsigned np;
    struct piece p[GUEST_MAX_SGE];
    struct area *area;          /* of the pieces; NULL: inline */
    bool remote, verified, lent, borrowed;
    uint64_t roff;
    uint32_t rhandle;
    uint64_t old;               /* atomics: expected result */
};

struct msg {
    uint8_t op;
    uint32_t len, imm;
    uint64_t id;
    bool solicited;
    uint32_t index;             /* of the WQE at the sender */
    uint64_t roff;              /* WRITE with immediate: its destination */
};

/* UC: a range at the peer that packets in flight may still write. */
struct late {
    uint32_t index, handle;
};

struct recv {
    uint64_t wr_id;
    uint32_t cap;
    unsigned np;
    struct piece p[GUEST_MAX_SGE];
};

/* An SRQ and what is posted in it. */
struct srqx {
    struct gsrq srq;
    struct area area;
    struct recv *slot;
    bool *posted;
    unsigned users;
    uint64_t cap;
};

/* An XRC domain and its SRQs, which share a CQ. */
#define XRC_SRQS 4
struct xrcx {
    uint32_t xrcd;
    struct srqx *srq[XRC_SRQS];
    unsigned n;
    unsigned users;             /* targets */
    struct cqx *cq;
};

struct rc {
    struct ep *ep;
    struct rc *peer;
    struct rc_profile p;
    struct gqp_attr attr;
    uint64_t seed;
    struct area src, rd, rem, rcv, word;
    struct wr *wr;              /* by slot of the SQ */
    struct recv *rq;            /* by slot of the RQ */
    struct srqx *srq;
    struct xrcx *xrc;           /* target: its domain; initiator: the peer's */
    struct msg *fifo;           /* to the peer, FIFO entries */
    uint32_t fifo_in, fifo_out;
    uint32_t to_send, unsignalled, signalled_out;
    uint32_t streamed;          /* messages sent that consume a receive */
    uint32_t received, recv_posted;
    uint32_t ver_next;          /* next WQE of ours to verify early */
    uint64_t ctr_off, ctr;      /* word at the peer for atomics */
    bool uc;
    struct late *late;          /* FIFO entries */
    uint32_t late_in, late_out;
    bool flushing;
    uint32_t flushed_recv, flushed_send;
    unsigned late_pct;          /* percentage of receives posted late */
    uint32_t mtu;
};

static struct rc *rc_of(struct ep *ep)
{
    return ep->app;
}

/* ---- sizes ---- */

static uint32_t some_len(struct rng *r, uint64_t max, uint32_t mtu)
{
    uint64_t n;

    switch (rng_below(r, 8)) {
    case 0:
        n = 0;
        break;
    case 1:
        n = rng_below(r, 65);
        break;
    case 2:
    case 3:                     /* around packet boundaries */
        n = mtu * rng_range(r, 1, 5) + rng_range(r, 0, 2) - 1;
        break;
    case 4:
        n = rng_below(r, max + 1);
        break;
    default:
        n = rng_log(r, max);
    }
    return (uint32_t)(n > max ? max : n);
}

/*
 * Length of message @n of @a that consumes a receive, known to both
 * ends.
 */
static uint32_t stream_len(struct rc *a, uint32_t n)
{
    struct rng r;

    rng_init(&r, a->seed + n);
    return some_len(&r, a->p.max_msg, a->mtu);
}

/* ---- buffers ---- */

static void free_pieces(struct area *area, const struct piece *p,
                        unsigned np)
{
    unsigned i;

    for (i = 0; i < np; i++) {
        gbuf_deny(&area->mr.buf, p[i].off, p[i].len, GMEM_RW);
        spans_free(&area->spans, p[i].handle);
    }
}

/* Split @len bytes into at most @max ranges of @area. */
static bool take_pieces(struct rc *a, struct area *area, uint64_t len,
                        unsigned max, unsigned bits, struct piece *p,
                        unsigned *np)
{
    struct rng *r = &a->ep->g->rng;
    unsigned n = rng_pct(r, 50) ? 1 : (unsigned)rng_log(r, max), i;
    uint64_t rest = len, part, off;

    if (n > max) {
        n = max;
    }
    if (len && !n) {
        n = 1;
    }
    for (i = 0; i < n; i++) {
        part = i == n - 1 ? rest : rng_pct(r, 10) ? 0 : rng_log(r, rest);
        if (!spans_alloc(&area->spans, part, rng_log(r, 64), &off,
                         &p[i].handle)) {
            free_pieces(area, p, i);
            return false;
        }
        p[i].off = off;
        p[i].len = (uint32_t)part;
        gbuf_allow(&area->mr.buf, off, part, bits);
        rest -= part;
    }
    *np = n;
    return true;
}

static void put_sges(struct rc *a, struct area *area, const struct piece *p,
                     unsigned np, struct qhca_sge *sge)
{
    struct rng *r = &a->ep->g->rng;
    unsigned i;

    for (i = 0; i < np; i++) {
        sge[i].addr = area->mr.iova + p[i].off;
        sge[i].len = p[i].len;
        sge[i].lkey = area->mr.key;
        if (!p[i].len && rng_pct(r, 30)) {
            sge[i].lkey = rng_u32(r);   /* no bytes: any key will do */
            sge[i].addr = rng_u64(r);
        }
    }
}

static void fill(struct area *area, const struct piece *p, unsigned np,
                 uint64_t id)
{
    uint64_t off = 0;
    unsigned i;

    for (i = 0; i < np; i++) {
        gbuf_fill(&area->mr.buf, p[i].off, id, off, p[i].len);
        off += p[i].len;
    }
}

/* Check that the first @len bytes of the pieces are stream @id. */
static void verify(struct rc *a, const char *what, struct area *area,
                   const struct piece *p, unsigned np, uint64_t id,
                   uint64_t len)
{
    uint64_t off = 0, n, good;
    unsigned i;

    for (i = 0; i < np && off < len; i++) {
        n = p[i].len < len - off ? p[i].len : len - off;
        good = gbuf_verify(&area->mr.buf, p[i].off, id, off, n);
        CHECK(good == n, "QP %s/%#x, %s: wrong byte %" PRIu64 " of %" PRIu64,
              a->ep->g->m->name, a->ep->qp.qpn, what, off + good, len);
        off += n;
    }
    CHECK(off >= len, "buffer too small");
}

/* ---- sending ---- */

/* @masked: the WQEs have room for masks and one SGE. */
static uint8_t choose_op(struct rng *r, bool uc, bool atomics, bool masked)
{
    unsigned x = (unsigned)rng_below(r, uc ? 72 : 116);

    if (x < 30) {
        return QHCA_WQE_SEND;
    } else if (x < 40) {
        return QHCA_WQE_SEND_IMM;
    } else if (x < 62) {
        return QHCA_WQE_RDMA_WRITE;
    } else if (x < 72) {
        return QHCA_WQE_RDMA_WRITE_IMM;
    } else if (x < 90 || !atomics) {
        return QHCA_WQE_RDMA_READ;
    } else if (x < 100) {
        return x < 95 ? QHCA_WQE_COMP_SWAP : QHCA_WQE_FETCH_ADD;
    } else if (x < 110) {
        return x < 105 ? QHCA_WQE_FLUSH : QHCA_WQE_ATOMIC_WRITE;
    } else if (!masked) {
        return QHCA_WQE_FLUSH;
    }
    return x < 113 ? QHCA_WQE_MASKED_COMP_SWAP : QHCA_WQE_MASKED_FETCH_ADD;
}

static bool sq_full(struct rc *a)
{
    return !a->ep->qp.sq_stride || (a->ep->qp.sq_prod - a->ep->qp.sq_cons) >> a->ep->qp.sq_shift;
}

/* Take pieces for the WQE's data; false if there is no room now. */
static bool take_data(struct rc *a, struct wr *w, uint8_t *inl)
{
    struct rng *r = &a->ep->g->rng;
    struct gqp *qp = &a->ep->qp;

    if (w->op == QHCA_WQE_RDMA_READ || sim_is_atomic(w->op)) {
        w->area = &a->rd;
        return take_pieces(a, &a->rd, w->len,
                           sim_is_atomic(w->op) ? 1 : qp->max_send_sge, GMEM_W,
                           w->p, &w->np);
    }
    if (w->op == QHCA_WQE_FLUSH) {
        return true;            /* it has none */
    }
    if (w->len <= qp->max_inline && rng_pct(r, 40)) {
        w->flags |= QHCA_WQE_F_INLINE;
        pattern_bytes(w->id, 0, inl, w->len);
        return true;
    }
    w->area = &a->src;
    if (!take_pieces(a, &a->src, w->len, qp->max_send_sge, GMEM_R, w->p,
                     &w->np)) {
        return false;
    }
    fill(&a->src, w->p, w->np, w->id);
    return true;
}

/* Bit by bit: no carry leaves a field, whose highest bit is in @tops. */
static uint64_t add_fields(uint64_t x, uint64_t y, uint64_t tops)
{
    uint64_t sum = 0;
    unsigned i, carry = 0;

    for (i = 0; i < 64; i++) {
        unsigned bits = (x >> i & 1) + (y >> i & 1) + carry;

        sum |= (uint64_t)(bits & 1) << i;
        carry = tops >> i & 1 ? 0 : bits >> 1;
    }
    return sum;
}

/* Update our copy of the word at the peer for an atomic or ATOMIC WRITE. */
static void use_word(struct rc *a, struct wr *w, struct gwr *g)
{
    struct rng *r = &a->ep->g->rng;

    g->rkey = a->peer->word.mr.key;
    g->remote_addr = a->peer->word.mr.iova + a->ctr_off;
    w->old = a->ctr;
    switch (w->op) {
    case QHCA_WQE_ATOMIC_WRITE:
        pattern_bytes(w->id, 0, (uint8_t *)&a->ctr, 8);
        break;
    case QHCA_WQE_FETCH_ADD:
        g->arg0 = rng_u64(r) >> rng_below(r, 64);
        a->ctr += g->arg0;
        break;
    case QHCA_WQE_MASKED_FETCH_ADD:
        g->arg0 = rng_u64(r);
        g->mask = rng_u64(r) & rng_u64(r);
        a->ctr = add_fields(a->ctr, g->arg0, g->mask);
        break;
    case QHCA_WQE_COMP_SWAP:
        g->arg0 = rng_pct(r, 50) ? a->ctr : rng_u64(r);
        g->arg1 = rng_u64(r);
        if (g->arg0 == a->ctr) {
            a->ctr = g->arg1;
        }
        break;
    default:
        g->mask = rng_u64(r);
        g->arg0 = rng_u64(r);
        if (rng_pct(r, 50)) {
            g->arg0 ^= (g->arg0 ^ a->ctr) & g->mask;
        }
        g->arg1 = rng_u64(r);
        g->swap_mask = rng_u64(r);
        if (!((g->arg0 ^ a->ctr) & g->mask)) {
            a->ctr ^= (a->ctr ^ g->arg1) & g->swap_mask;
        }
        break;
    }
}

/* Take the WQE's range at the peer; false if there is no room now. */
static bool take_remote(struct rc *a, struct wr *w, struct gwr *g)
{
    struct rng *r = &a->ep->g->rng;
    struct area *rem = &a->peer->rem;

    g->rkey = rem->mr.key;
    if (sim_is_atomic(w->op) || w->op == QHCA_WQE_ATOMIC_WRITE) {
        use_word(a, w, g);
        return true;
    }
    if (w->op == QHCA_WQE_FLUSH) {
        uint64_t off = rng_below(r, rem->mr.len + 1);

        g->remote_addr = rem->mr.iova + off;
        g->arg0 = rng_below(r, rem->mr.len - off + 1);
        g->arg1 = QHCA_FLUSH_T_GLOBAL;
        if (rng_pct(r, 30)) {
            g->arg1 |= QHCA_FLUSH_L_MR << QHCA_FLUSH_L_SHIFT;
            g->remote_addr = rng_u64(r);
            g->arg0 = rng_u32(r);
        }
        return true;
    }
    if (a->late_in - a->late_out == FIFO ||
        !spans_alloc(&rem->spans, w->len, rng_log(r, 64), &w->roff,
                     &w->rhandle)) {
        return false;
    }
    w->remote = true;
    g->remote_addr = rem->mr.iova + w->roff;
    if (w->op == QHCA_WQE_RDMA_READ) {
        gbuf_fill(&rem->mr.buf, w->roff, w->id, 0, w->len);
        gbuf_allow(&rem->mr.buf, w->roff, w->len, GMEM_R);
    } else {
        gbuf_allow(&rem->mr.buf, w->roff, w->len, GMEM_W);
    }
    if (!w->len && rng_pct(r, 30)) {
        g->rkey = rng_u32(r);   /* no bytes: any key will do */
        g->remote_addr = rng_u64(r);
    }
    return true;
}

/* A fenced SEND directly from the buffer of the preceding READ. */
static bool lend(struct rc *a, struct wr *w)
{
    struct gqp *qp = &a->ep->qp;
    struct wr *before = &a->wr[(qp->sq_prod - 1) &
                               ((1u << qp->sq_shift) - 1)];
    unsigned i;

    if (qp->sq_prod == qp->sq_cons || before->op != QHCA_WQE_RDMA_READ ||
        before->len < w->len || !w->len || before->lent ||
        before->np > qp->max_send_sge) {
        return false;
    }
    before->lent = true;
    w->borrowed = true;
    w->flags |= QHCA_WQE_F_FENCE;
    w->id = before->id;
    w->area = before->area;
    w->np = before->np;
    memcpy(w->p, before->p, sizeof(w->p));
    for (i = 0; i < w->np; i++) {
        gbuf_allow(&w->area->mr.buf, w->p[i].off, w->p[i].len, GMEM_R);
    }
    return true;
}

/* SGEs of a borrowed buffer, cut to the message's length. */
static unsigned cut_sges(struct qhca_sge *sge, unsigned n, uint32_t len)
{
    unsigned i;

    for (i = 0; i < n && len; i++) {
        if (sge[i].len > len) {
            sge[i].len = len;
        }
        len -= sge[i].len;
    }
    return i;
}

static bool post_one(struct rc *a, bool nothing_else)
{
    struct rng *r = &a->ep->g->rng;
    struct gqp *qp = &a->ep->qp;
    uint32_t depth = 1u << qp->sq_shift;
    uint8_t inl[1024];
    struct gwr g;
    struct wr *w;

    if (sq_full(a) || a->fifo_in - a->fifo_out == FIFO) {
        return false;
    }
    w = &a->wr[qp->sq_prod & (depth - 1)];
    memset(w, 0, sizeof(*w));
    memset(&g, 0, sizeof(g));
    w->op = nothing_else ? QHCA_WQE_RDMA_WRITE :
            choose_op(r, a->uc, a->ep->g->caps.features & QHCA_FEAT_ATOMIC,
                      qp->type == QHCA_QPT_RC && qp->sq_stride >= 7);
    w->id = a->ep->s->next_id++;
    w->wr_id = rng_u64(r);
    w->imm = rng_u32(r);
    if (nothing_else || w->op == QHCA_WQE_FLUSH) {
        w->len = 0;
    } else if (sim_is_atomic(w->op) || w->op == QHCA_WQE_ATOMIC_WRITE) {
        w->len = 8;
    } else if (sim_takes_recv(w->op)) {
        w->len = stream_len(a, a->streamed);
    } else {
        w->len = some_len(r, a->p.max_msg, a->mtu);
    }
    if (rng_pct(r, 8)) {
        w->flags |= QHCA_WQE_F_FENCE;
    }
    if (sim_takes_recv(w->op) && rng_pct(r, 50)) {
        w->flags |= QHCA_WQE_F_SOLICITED;
    }
    if (!(w->op == QHCA_WQE_SEND && rng_pct(r, 60) && lend(a, w)) &&
        !take_data(a, w, inl)) {
        return false;
    }
    if (qp->type == QHCA_QPT_XRC_INI) {
        struct srqx *x = a->xrc->srq[rng_below(r, a->xrc->n)];

        g.srqn = x->srq.srqn | rng_u32(r) << 24;    /* only 24 bits are used */
    }
    if (!sim_takes_recv(w->op) || sim_is_write(w->op)) {
        if (!take_remote(a, w, &g)) {
            if (w->area) {
                free_pieces(w->area, w->p, w->np);
            }
            return false;
        }
    }
    /* some must be signaled, or nothing is ever retired */
    if (nothing_else || rng_pct(r, 50) || a->unsignalled + 1 >= depth ||
        a->to_send == 1) {
        w->flags |= QHCA_WQE_F_SIGNALED;
        a->unsignalled = 0;
        a->signalled_out++;
    } else {
        a->unsignalled++;
    }
    g.opcode = w->op;
    g.flags = w->flags;
    g.wr_id = w->wr_id;
    g.imm = w->op == QHCA_WQE_SEND_IMM || w->op == QHCA_WQE_RDMA_WRITE_IMM ?
            w->imm : 0;
    if (w->flags & QHCA_WQE_F_INLINE) {
        g.inl = inl;
        g.inl_len = w->len;
    } else if (w->area) {
        put_sges(a, w->area, w->p, w->np, g.sge);
        g.num_sge = w->np;
        if (w->borrowed) {
            g.num_sge = cut_sges(g.sge, w->np, w->len);
        }
    }
    if (sim_takes_recv(w->op)) {
        a->fifo[a->fifo_in++ % FIFO] = (struct msg){
            .op = w->op, .len = w->len, .imm = w->imm, .id = w->id,
            .solicited = w->flags & QHCA_WQE_F_SOLICITED,
            .index = qp->sq_prod, .roff = w->roff };
        a->streamed++;
    }
    if (a->uc && w->remote) {
        a->late[a->late_in++ % FIFO] = (struct late){ qp->sq_prod,
                                                      w->rhandle };
        w->remote = false;      /* not freed at the completion */
    }
    CHECK(gqp_post_send(qp, &g), "the send queue is full");
    a->ep->s->messages++;
    a->ep->s->bytes += w->len;
    if (!nothing_else) {
        a->to_send--;
    }
    return true;
}

static void check_write(struct rc *a, struct wr *w)
{
    uint64_t good = gbuf_verify(&a->peer->rem.mr.buf, w->roff, w->id, 0,
                                w->len);

    CHECK(good == w->len, "QP %s/%#x: RDMA WRITE of %u bytes, byte %" PRIu64
          " is not in place", a->ep->g->m->name, a->ep->qp.qpn, w->len,
          good);
}

/* The WQE is complete: check the result, free everything. */
static void retire(struct rc *a, struct wr *w, bool ok)
{
    uint64_t v;

    if (ok && sim_is_write(w->op) && !w->verified && w->len && !a->uc) {
        check_write(a, w);
    }
    if (ok && w->op == QHCA_WQE_RDMA_READ) {
        verify(a, "RDMA READ", w->area, w->p, w->np, w->id, w->len);
    }
    if (ok && sim_is_atomic(w->op)) {
        gbuf_read(&w->area->mr.buf, w->p[0].off, &v, 8);
        CHECK(v == w->old, "QP %s/%#x: atomic brought %#" PRIx64
              ", not %#" PRIx64, a->ep->g->m->name, a->ep->qp.qpn, v,
              w->old);
    }
    if (w->remote) {
        /* a late duplicate of a READ may still read */
        gbuf_deny(&a->peer->rem.mr.buf, w->roff, w->len, GMEM_W);
        spans_free(&a->peer->rem.spans, w->rhandle);
    }
    if (w->area) {
        if (w->lent) {
            unsigned i;

            for (i = 0; i < w->np; i++) {
                gbuf_deny(&w->area->mr.buf, w->p[i].off, w->p[i].len,
                          GMEM_W);
            }
        } else {
            free_pieces(w->area, w->p, w->np);
        }
    }
    if (w->flags & QHCA_WQE_F_SIGNALED) {
        a->signalled_out--;
    }
}

static uint8_t cqe_op(uint8_t wqe_op)
{
    switch (wqe_op) {
    case QHCA_WQE_RDMA_WRITE:
    case QHCA_WQE_RDMA_WRITE_IMM:
        return QHCA_CQE_OP_RDMA_WRITE;
    case QHCA_WQE_RDMA_READ:
        return QHCA_CQE_OP_RDMA_READ;
    case QHCA_WQE_COMP_SWAP:
        return QHCA_CQE_OP_COMP_SWAP;
    case QHCA_WQE_FETCH_ADD:
        return QHCA_CQE_OP_FETCH_ADD;
    case QHCA_WQE_MASKED_COMP_SWAP:
        return QHCA_CQE_OP_MASKED_COMP_SWAP;
    case QHCA_WQE_MASKED_FETCH_ADD:
        return QHCA_CQE_OP_MASKED_FETCH_ADD;
    case QHCA_WQE_FLUSH:
        return QHCA_CQE_OP_FLUSH;
    case QHCA_WQE_ATOMIC_WRITE:
        return QHCA_CQE_OP_ATOMIC_WRITE;
    default:
        return QHCA_CQE_OP_SEND;
    }
}

static void send_cqe(struct rc *a, const struct qhca_cqe *c)
{
    struct gqp *qp = &a->ep->qp;
    uint32_t mask = (1u << qp->sq_shift) - 1;
    bool flush = c->status == QHCA_WC_WR_FLUSH_ERR;
    struct wr *w;

    CHECK(c->status == QHCA_WC_SUCCESS || (a->flushing && flush),
          "QP %s/%#x: send WQE %u ends with %s, syndrome %#x",
          a->ep->g->m->name, qp->qpn, c->wqe_index, sim_wc_name(c->status),
          c->syndrome);
    CHECK(c->wqe_index - qp->sq_cons < qp->sq_prod - qp->sq_cons,
          "QP %s/%#x: completion of WQE %u; %u to %u are out",
          a->ep->g->m->name, qp->qpn, c->wqe_index, qp->sq_cons,
          qp->sq_prod - 1);
    for (;;) {
        w = &a->wr[qp->sq_cons & mask];
        if (qp->sq_cons == c->wqe_index) {
            break;
        }
        CHECK(!(w->flags & QHCA_WQE_F_SIGNALED) && !flush,
              "QP %s/%#x: WQE %u completes, %u has not", a->ep->g->m->name,
              qp->qpn, c->wqe_index, qp->sq_cons);
        retire(a, w, true);
        qp->sq_cons++;
    }
    CHECK(flush || w->flags & QHCA_WQE_F_SIGNALED,
          "QP %s/%#x: completion of unsignalled WQE %u", a->ep->g->m->name,
          qp->qpn, c->wqe_index);
    CHECK(c->wr_id == w->wr_id, "QP %s/%#x: WQE %u with another wr_id",
          a->ep->g->m->name, qp->qpn, c->wqe_index);
    if (!flush) {
        CHECK(c->opcode == cqe_op(w->op), "WQE opcode %#x, CQE opcode %#x",
              w->op, c->opcode);
        if (w->op == QHCA_WQE_RDMA_READ || sim_is_atomic(w->op)) {
            CHECK(c->byte_len == w->len, "%u bytes read, %u reported",
                  w->len, c->byte_len);
        }
        CHECK(c->syndrome == QHCA_SYN_NONE, "syndrome %#x with success",
              c->syndrome);
    } else {
        a->flushed_send++;
    }
    retire(a, w, !flush);
    qp->sq_cons++;
}

/* ---- receiving ---- */

/* UC promises nothing on a bad wire, or if a receive is late. */
static bool may_lose(struct rc *a)
{
    return a->ep->s->lossy || !a->p.eager_recv;
}

/* Does the completion belong to this message? */
static bool same(struct rc *a, const struct msg *m, const struct qhca_cqe *c,
                 struct area *area, const struct recv *rv)
{
    uint64_t off = 0, n;
    unsigned i;

    (void)a;
    if (c->byte_len != m->len || !(c->flags & QHCA_CQE_F_IMM) !=
        (m->op == QHCA_WQE_SEND) || (m->op != QHCA_WQE_SEND &&
                                     c->imm != m->imm)) {
        return false;
    }
    for (i = 0; m->op != QHCA_WQE_RDMA_WRITE_IMM && i < rv->np &&
         off < m->len; i++, off += n) {
        n = rv->p[i].len < m->len - off ? rv->p[i].len : m->len - off;
        if (gbuf_verify(&area->mr.buf, rv->p[i].off, m->id, off, n) != n) {
            return false;
        }
    }
    return true;
}

/* Messages sent before @m have arrived, or never will. */
static void uc_received(struct rc *a, const struct msg *m)
{
    struct rc *from = a->peer;
    uint64_t good;

    if (m->op == QHCA_WQE_RDMA_WRITE_IMM) {
        good = gbuf_verify(&a->rem.mr.buf, m->roff, m->id, 0, m->len);
        CHECK(good == m->len, "UC QP %s/%#x: WRITE of %u bytes, byte %"
              PRIu64 " is wrong", a->ep->g->m->name, a->ep->qp.qpn, m->len,
              good);
    }
    while (from->late_out != from->late_in) {
        struct late *l = &from->late[from->late_out % FIFO];

        if ((int32_t)(l->index - m->index) > 0) {
            break;
        }
        spans_free(&a->rem.spans, l->handle);
        from->late_out++;
    }
}

/* The SRQ a receive came from; NULL: from the RQ. */
static struct srqx *srq_of(struct rc *a, const struct qhca_cqe *c)
{
    unsigned i;

    CHECK(!(c->flags & QHCA_CQE_F_SRQN) == !a->xrc, "wrong SRQN flag");
    if (!a->xrc) {
        return a->srq;
    }
    for (i = 0; i < a->xrc->n; i++) {
        if (a->xrc->srq[i]->srq.srqn == c->src_qpn) {
            return a->xrc->srq[i];
        }
    }
    CHECK(false, "QP %s/%#x: SRQ %#x is not one of the domain",
          a->ep->g->m->name, a->ep->qp.qpn, c->src_qpn);
    return NULL;
}

static void recv_cqe(struct rc *a, const struct qhca_cqe *c)
{
    struct gqp *qp = &a->ep->qp;
    bool flush = c->status == QHCA_WC_WR_FLUSH_ERR;
    struct srqx *srq = srq_of(a, c);
    struct area *area = srq ? &srq->area : &a->rcv;
    struct recv *rv;
    struct msg *m;
    uint32_t mask;

    CHECK(c->status == QHCA_WC_SUCCESS || (a->flushing && flush),
          "QP %s/%#x: receive WQE %u ends with %s, syndrome %#x",
          a->ep->g->m->name, qp->qpn, c->wqe_index, sim_wc_name(c->status),
          c->syndrome);
    CHECK(!(c->flags & QHCA_CQE_F_SRQ) == !srq, "wrong SRQ flag");
    if (srq) {
        CHECK(c->wqe_index < 1u << srq->srq.shift &&
              srq->posted[c->wqe_index], "QP %s/%#x: SRQ WQE %u is not "
              "posted", a->ep->g->m->name, qp->qpn, c->wqe_index);
        rv = &srq->slot[c->wqe_index];
        srq->posted[c->wqe_index] = false;
        gsrq_release(&srq->srq, c->wqe_index);
    } else {
        CHECK(c->wqe_index == qp->rq_cons && qp->rq_cons != qp->rq_prod,
              "QP %s/%#x: receive WQE %u completes, next is %u",
              a->ep->g->m->name, qp->qpn, c->wqe_index, qp->rq_cons);
        rv = &a->rq[qp->rq_cons & ((1u << qp->rq_shift) - 1)];
        qp->rq_cons++;
    }
    CHECK(c->wr_id == rv->wr_id, "QP %s/%#x: receive with another wr_id",
          a->ep->g->m->name, qp->qpn);
    if (flush) {
        a->flushed_recv++;
        free_pieces(area, rv->p, rv->np);
        return;
    }
    CHECK(a->peer->fifo_out != a->peer->fifo_in,
          "QP %s/%#x: received what was not sent", a->ep->g->m->name,
          qp->qpn);
    m = &a->peer->fifo[a->peer->fifo_out++ % FIFO];
    while (a->uc && may_lose(a) && !same(a, m, c, area, rv)) {
        CHECK(a->peer->fifo_out != a->peer->fifo_in, "UC QP %s/%#x: a "
              "message of %u bytes that was not sent", a->ep->g->m->name,
              qp->qpn, c->byte_len);
        m = &a->peer->fifo[a->peer->fifo_out++ % FIFO];
    }
    a->received++;
    CHECK(c->byte_len == m->len, "QP %s/%#x: message %u of %u bytes "
          "reported as %u", a->ep->g->m->name, qp->qpn, a->received, m->len,
          c->byte_len);
    CHECK(c->opcode == (m->op == QHCA_WQE_RDMA_WRITE_IMM ?
                        QHCA_CQE_OP_RECV_RDMA_IMM : QHCA_CQE_OP_RECV),
          "sent %#x, received %#x", m->op, c->opcode);
    CHECK(!(c->flags & QHCA_CQE_F_IMM) == (m->op == QHCA_WQE_SEND),
          "immediate flag of opcode %#x", m->op);
    CHECK(m->op == QHCA_WQE_SEND || c->imm == m->imm,
          "immediate %#x instead of %#x", c->imm, m->imm);
    CHECK(!(c->flags & QHCA_CQE_F_INV), "invalidate flag");
    if (m->op != QHCA_WQE_RDMA_WRITE_IMM) {
        verify(a, "receive", area, rv->p, rv->np, m->id, m->len);
    }
    free_pieces(area, rv->p, rv->np);
    if (a->uc) {
        uc_received(a, m);
        return;
    }
    /* everything written before this message must be there */
    mask = (1u << a->peer->ep->qp.sq_shift) - 1;
    if ((int32_t)(a->peer->ver_next - a->peer->ep->qp.sq_cons) < 0) {
        a->peer->ver_next = a->peer->ep->qp.sq_cons;
    }
    while ((int32_t)(m->index - a->peer->ver_next) >= 0) {
        struct wr *w = &a->peer->wr[a->peer->ver_next++ & mask];

        if (sim_is_write(w->op) && w->len) {
            check_write(a->peer, w);
            w->verified = !rng_pct(&a->ep->g->rng, 25);
        }
    }
}

static void rc_cqe(struct ep *ep, const struct qhca_cqe *c)
{
    if (c->opcode & 0x80) {
        recv_cqe(rc_of(ep), c);
    } else {
        send_cqe(rc_of(ep), c);
    }
}

static bool post_srq(struct rc *a, struct srqx *srq)
{
    unsigned max = ((1u << srq->srq.stride) - 16) / 16;
    struct qhca_sge sge[GUEST_MAX_SGE];
    struct recv rv;
    uint32_t wqe;

    memset(&rv, 0, sizeof(rv));
    rv.wr_id = rng_u64(&a->ep->g->rng);
    if (max > a->ep->g->caps.max_sge) {
        max = a->ep->g->caps.max_sge;
    }
    if (!srq->srq.nfree ||
        !take_pieces(a, &srq->area, srq->cap, max, GMEM_W, rv.p, &rv.np)) {
        return false;
    }
    put_sges(a, &srq->area, rv.p, rv.np, sge);
    CHECK(gsrq_post(&srq->srq, rv.wr_id, sge, rv.np, &wqe), "full");
    srq->slot[wqe] = rv;
    srq->posted[wqe] = true;
    return true;
}

/* Post a receive to each SRQ that has room. */
static bool post_xrc(struct rc *a)
{
    unsigned i;
    bool any = false;

    for (i = 0; i < a->xrc->n; i++) {
        any |= post_srq(a, a->xrc->srq[i]);
    }
    return any;
}

static bool post_recv(struct rc *a)
{
    struct rng *r = &a->ep->g->rng;
    struct gqp *qp = &a->ep->qp;
    struct qhca_sge sge[GUEST_MAX_SGE];
    struct recv rv;

    if (qp->type == QHCA_QPT_XRC_TGT) {
        return post_xrc(a);
    }
    if (a->srq) {
        return post_srq(a, a->srq);
    }
    if (!qp->rq_stride) {
        return false;
    }
    memset(&rv, 0, sizeof(rv));
    rv.wr_id = rng_u64(r);
    if ((qp->rq_prod - qp->rq_cons) >> qp->rq_shift) {
        return false;
    }
    rv.cap = stream_len(a->peer, a->recv_posted);
    if (a->uc) {
        rv.cap = (uint32_t)a->p.max_msg;
    } else if (rng_pct(r, 50)) {
        rv.cap += (uint32_t)rng_log(r, 200);
    }
    if (!take_pieces(a, &a->rcv, rv.cap, qp->max_recv_sge, GMEM_W, rv.p,
                     &rv.np)) {
        return false;
    }
    put_sges(a, &a->rcv, rv.p, rv.np, sge);
    a->rq[qp->rq_prod & ((1u << qp->rq_shift) - 1)] = rv;
    CHECK(gqp_post_recv(qp, rv.wr_id, sge, rv.np), "full");
    a->recv_posted++;
    return true;
}

/* ---- the application ---- */

static void rc_pump(struct ep *ep)
{
    struct rc *a = rc_of(ep);
    struct rng *r = &ep->g->rng;
    unsigned n, posted = 0;
    bool more = false;

    if (a->flushing) {
        return;
    }
    /* post receives while there is room, or late */
    if (!rng_pct(r, a->late_pct)) {
        while (post_recv(a)) {
        }
    } else {
        more = true;
    }
    n = (unsigned)rng_log(r, 1u << ep->qp.sq_shift) + 1;
    while (a->to_send && posted < n) {
        if (a->p.eager_recv && !a->srq &&
            (int32_t)(a->peer->recv_posted - a->streamed) <= 0) {
            break;              /* the peer announces when it is ready */
        }
        if (!post_one(a, false)) {
            break;
        }
        posted++;
        if (rng_pct(r, 20)) {
            gqp_ring(&ep->qp);
        }
    }
    /* everything in flight is unsignaled: a signaled WQE must retire it */
    if (!a->signalled_out && ep->qp.sq_prod != ep->qp.sq_cons &&
        (!a->to_send || posted < n)) {
        CHECK(post_one(a, true), "no room for the last one");
        posted++;
    }
    if (ep->qp.sq_rung != ep->qp.sq_prod) {
        gqp_ring(&ep->qp);
    }
    if (a->to_send && (posted == n || a->uc)) {
        more = true;            /* UC: the peer does not announce room */
    }
    if (a->p.eager_recv && a->to_send &&
        (int32_t)(a->peer->recv_posted - a->streamed) <= 0) {
        more = true;
    }
    if (more) {
        sim_tick(ep, 1 + rng_log(r, 60000));
    }
}

static bool rc_idle(struct ep *ep)
{
    struct rc *a = rc_of(ep);

    return !a->to_send && ep->qp.sq_prod == ep->qp.sq_cons &&
           (a->uc || a->fifo_in == a->fifo_out);
}

static void rc_dump(struct ep *ep)
{
    struct rc *a = rc_of(ep);
    struct qhca_qpc q;

    fprintf(stderr, "QP %s/%#x peer %s/%#x: %u to send, SQ %u..%u (%u "
            "rung), RQ %u..%u, sent %u received %u\n", ep->g->m->name,
            ep->qp.qpn, a->peer->ep->g->m->name, a->peer->ep->qp.qpn,
            a->to_send, ep->qp.sq_cons, ep->qp.sq_prod, ep->qp.sq_rung,
            ep->qp.rq_cons, ep->qp.rq_prod, a->streamed, a->received);
    if (qhca_query_qp(ep->g->n->e, ep->qp.qpn, &q)) {
        fprintf(stderr, "  device: state %u req %u rsp %u, sq %u %u %u, "
                "rq %u %u, psn snd %u una %u exp %u, msn %u, retry %u rnr "
                "%u, reads %u, deadline %" PRIu64 ", syndrome %#x, "
                "retransmits %" PRIu64 ", timeouts %" PRIu64 "\n", q.state,
                q.req_state, q.rsp_state, q.sq_head, q.sq_next, q.sq_tail,
                q.rq_head, q.rq_tail, q.snd_psn, q.una_psn, q.exp_psn,
                q.msn, q.retry_left, q.rnr_left, q.rd_outstanding,
                (uint64_t)q.deadline, q.syndrome, (uint64_t)q.retransmits,
                (uint64_t)q.timeouts);
    }
}

/* XRC ends have only one of the two CQs. */
static void drain(struct ep *ep)
{
    if (ep->scq) {
        sim_drain(ep->scq);
    }
    if (ep->rcq) {
        sim_drain(ep->rcq);
    }
}

static void check_ctr(struct rc *a)
{
    uint64_t v;

    gbuf_read(&a->peer->word.mr.buf, a->ctr_off, &v, 8);
    CHECK(v == a->ctr, "QP %s/%#x: the word of the atomics is %#" PRIx64
          ", not %#" PRIx64, a->ep->g->m->name, a->ep->qp.qpn, v, a->ctr);
}

/* Move to ERR: everything posted, before or after, is flushed in order. */
static void flush(struct rc *a)
{
    struct ep *ep = a->ep;
    struct rng *r = &ep->g->rng;
    uint32_t want_recv = ep->qp.rq_stride ?
                         ep->qp.rq_prod - ep->qp.rq_cons : 0;
    uint32_t want_send = 0;
    unsigned i;
    uint8_t st;

    a->flushing = true;
    st = gqp_state(&ep->qp, QHCA_QPS_ERR);
    CHECK(st == QHCA_ST_OK, "QP to ERR: status %u", st);
    if (rng_pct(r, 50)) {
        world_run(&ep->s->w, rng_log(r, 5000));
        drain(ep);
    }
    a->to_send = 1000;
    for (i = (unsigned)rng_below(r, 4); i && post_one(a, false); i--) {
        want_send++;
    }
    if (want_send) {
        gqp_ring(&ep->qp);
    }
    for (i = (unsigned)rng_below(r, 4); ep->qp.rq_stride && i &&
         post_recv(a); i--) {
        want_recv++;
    }
    for (i = 0; i < 1000 && (a->flushed_recv < want_recv ||
                             a->flushed_send < want_send); i++) {
        world_run(&ep->s->w, 1000);
        drain(ep);
    }
    CHECK(a->flushed_recv == want_recv && a->flushed_send == want_send,
          "QP %s/%#x: %u of %u receives and %u of %u sends flushed",
          ep->g->m->name, ep->qp.qpn, a->flushed_recv, want_recv,
          a->flushed_send, want_send);
}

/* Everything of @a in flight goes back to the test. */
static void give_up(struct rc *a)
{
    struct gqp *qp = &a->ep->qp;

    while (qp->sq_cons != qp->sq_prod) {
        retire(a, &a->wr[qp->sq_cons++ & ((1u << qp->sq_shift) - 1)],
               false);
    }
    while (!a->srq && qp->rq_cons != qp->rq_prod) {
        struct recv *rv = &a->rq[qp->rq_cons++ & ((1u << qp->rq_shift) - 1)];

        free_pieces(&a->rcv, rv->p, rv->np);
    }
}

static void srq_free(struct srqx *x)
{
    unsigned i;
    uint8_t st = gsrq_destroy(&x->srq);

    CHECK(st == QHCA_ST_OK, "DESTROY_SRQ: status %u", st);
    for (i = 0; i < 1u << x->srq.shift; i++) {
        if (x->posted[i]) {
            free_pieces(&x->area, x->slot[i].p, x->slot[i].np);
        }
    }
    sim_area_free(&x->area);
    free(x->slot);
    free(x->posted);
    free(x);
}

static void xrc_free(struct guest *g, struct xrcx *x)
{
    uint8_t st;

    while (x->n) {
        srq_free(x->srq[--x->n]);
    }
    st = guest_simple(g, QHCA_CMD_FREE_XRCD, x->xrcd);
    CHECK(st == QHCA_ST_OK, "FREE_XRCD: status %u", st);
    free(x);
}

static void rc_free(struct rc *a)
{
    sim_area_free(&a->src);
    sim_area_free(&a->rd);
    sim_area_free(&a->rem);
    sim_area_free(&a->word);
    if (a->srq && !--a->srq->users) {
        srq_free(a->srq);
    } else if (!a->srq && !a->xrc) {
        sim_area_free(&a->rcv);
    }
    if (a->ep->qp.type == QHCA_QPT_XRC_TGT && !--a->xrc->users) {
        xrc_free(a->ep->g, a->xrc);
    }
    free(a->wr);
    free(a->rq);
    free(a->fifo);
    free(a->late);
    free(a);
}

static void rc_finish(struct ep *ep)
{
    struct rc *a = rc_of(ep);
    struct rng *r = &ep->g->rng;
    bool last = a->peer == a || a->peer->ep->app == NULL;
    uint8_t st;

    check_ctr(a);
    if (a->uc) {
        world_run(&ep->s->w, 1000000);
        drain(ep);
        CHECK(may_lose(a) || a->peer->flushing ||
              a->peer->fifo_in == a->peer->fifo_out,
              "UC QP %s/%#x: %u messages lost on a good wire",
              ep->g->m->name, ep->qp.qpn,
              a->peer->fifo_in - a->peer->fifo_out);
    }
    switch (rng_below(r, 3)) {
    case 0:
        flush(a);
        break;
    case 1:
        st = gqp_state(&ep->qp, QHCA_QPS_RESET);
        CHECK(st == QHCA_ST_OK, "QP to RESET: status %u", st);
        break;
    default:
        break;
    }
    st = gqp_destroy(&ep->qp);
    CHECK(st == QHCA_ST_OK, "DESTROY_QP: status %u", st);
    drain(ep);
    sim_ep_unbind(ep);
    give_up(a);
    ep->app = NULL;
    if (last) {                 /* the peer's areas were in use until now */
        if (a->peer != a) {
            rc_free(a->peer);
        }
        rc_free(a);
    }
}

/* ---- making pairs ---- */

static enum cq_mode some_mode(struct rng *r)
{
    return (enum cq_mode)rng_below(r, 3);
}

/* One of the guest's CQs with enough room, or a new one. */
static struct cqx *some_cq(struct sim *s, struct guest *g, uint32_t need)
{
    struct rng *r = &g->rng;
    struct cqx *c;
    unsigned i;

    for (i = 0; i < s->cqs && rng_pct(r, 60); i++) {
        c = s->cq[rng_below(r, s->cqs)];
        if (c->g == g && c->room >= need) {
            c->room -= need;
            return c;
        }
    }
    c = sim_cq(s, g, some_mode(r), need + (uint32_t)rng_log(r, 4 * need));
    c->room -= need;
    return c;
}

/* The CQs of an end, with room for everything it can have in flight. */
static void take_cqs(struct sim *s, struct ep *ep, uint32_t send_need,
                     uint32_t recv_need)
{
    if (!recv_need) {
        ep->scq = some_cq(s, ep->g, send_need);
    } else if (rng_pct(&ep->g->rng, 40)) {
        ep->scq = ep->rcq = some_cq(s, ep->g, send_need + recv_need);
    } else {
        ep->scq = some_cq(s, ep->g, send_need);
        ep->rcq = some_cq(s, ep->g, recv_need);
    }
}

static struct rc *make_end(struct sim *s, struct guest *g,
                           const struct rc_profile *p, uint8_t type,
                           struct srqx *srq, struct xrcx *xrc)
{
    struct rng *r = &g->rng;
    struct ep *ep = sim_ep(s, g);
    struct rc *a = calloc(1, sizeof(*a));
    uint64_t size = 3 * p->max_msg + 65536;
    uint64_t (*in_area)(struct area *, struct guest *, uint64_t, uint32_t,
                        bool);
    struct gbuf_shape sq, rq;
    uint32_t send_need, recv_need;
    struct gqp_init in;

    CHECK(a, "no memory");
    ep->app = a;
    ep->on_cqe = rc_cqe;
    ep->pump = rc_pump;
    ep->idle = rc_idle;
    ep->dump = rc_dump;
    ep->finish = rc_finish;
    a->ep = ep;
    a->p = *p;
    a->uc = p->type == QHCA_QPT_UC;
    a->srq = srq;
    a->xrc = xrc;
    a->seed = rng_u64(r);
    a->to_send = type == QHCA_QPT_XRC_TGT ? 0 : p->messages;
    a->late_pct = p->eager_recv || rng_pct(r, 40) ? 0 :
                  (unsigned)rng_below(r, 70);
    memset(&in, 0, sizeof(in));
    in.type = type;
    in.sq_shift = (uint8_t)rng_range(r, 0, 8);
    in.sq_stride = (uint8_t)rng_range(r, xrc ? 7 : 6, 10);
    in.rq_shift = (uint8_t)rng_range(r, 0, 8);
    in.rq_stride = (uint8_t)rng_range(r, 5, 9);
    gbuf_shape_random(&sq, r, 1ULL << (in.sq_shift + in.sq_stride));
    gbuf_shape_random(&rq, r, 1ULL << (in.rq_shift + in.rq_stride));
    in.sq = p->plain ? NULL : &sq;
    in.rq = p->plain ? NULL : &rq;
    send_need = 1u << in.sq_shift;
    recv_need = xrc ? 0 : srq ? 1u << srq->srq.shift : 1u << in.rq_shift;
    if (type == QHCA_QPT_XRC_TGT) {
        ep->rcq = xrc->cq;
        in.sq_stride = in.sq_shift = 0;
        in.xrcd = xrc->xrcd;
        xrc->users++;
    } else {
        take_cqs(s, ep, send_need, recv_need);
        in.scq = &ep->scq->cq;
        in.rcq = xrc ? NULL : &ep->rcq->cq;
    }
    if (xrc) {
        in.rq_stride = in.rq_shift = 0;
    }
    in.srq = srq ? &srq->srq : NULL;
    if (srq) {
        srq->users++;
        in.rq_shift = in.rq_stride = 0;
    }
    gqp_create(&ep->qp, g, &in);
    sim_ep_bind(ep);
    a->wr = calloc(1u << in.sq_shift, sizeof(*a->wr));
    a->rq = calloc(1u << in.rq_shift, sizeof(*a->rq));
    a->fifo = calloc(FIFO, sizeof(*a->fifo));
    a->late = calloc(FIFO, sizeof(*a->late));
    CHECK(a->wr && a->rq && a->fifo && a->late, "no memory");
    sim_area_odp(&a->src, g, size,
                 rng_pct(r, 50) ? 0 : QHCA_ACCESS_LOCAL_WRITE, p->plain);
    /* UC loses messages while it waits for a page */
    in_area = a->uc ? sim_area : sim_area_odp;
    in_area(&a->rd, g, size, QHCA_ACCESS_LOCAL_WRITE, p->plain);
    in_area(&a->rem, g, size, QHCA_ACCESS_LOCAL_WRITE |
            QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ |
            QHCA_ACCESS_FLUSH_GLOBAL, p->plain);
    in_area(&a->word, g, 8192, QHCA_ACCESS_LOCAL_WRITE |
            QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_ATOMIC, p->plain);
    if (!srq && !xrc) {
        in_area(&a->rcv, g, size, QHCA_ACCESS_LOCAL_WRITE, p->plain);
    }
    return a;
}

/* Choose the word at the peer for the atomics of @a. */
static void make_ctr(struct rc *a)
{
    struct area *word = &a->peer->word;
    struct rng *r = &a->ep->g->rng;
    uint64_t off, run;

    /* aligned, and in one piece of memory */
    do {
        off = rng_below(r, word->mr.len - 16);
        off += -(word->mr.iova + off) & 7;
        gbuf_addr(&word->mr.buf, off, &run);
    } while (run < 8);
    a->ctr_off = off;
    a->ctr = rng_u64(r);
    gbuf_write(&word->mr.buf, off, &a->ctr, 8);
    gbuf_allow(&word->mr.buf, off, 8, GMEM_RW);
}

static void connect(struct rc *a, struct rc *b)
{
    struct rng *r = &a->ep->g->rng;
    struct sim *s = a->ep->s;
    struct gqp_attr *x = &a->attr, *y = &b->attr;

    a->peer = b;
    b->peer = a;
    gqp_attr_default(x);
    x->path_mtu = (uint8_t)rng_range(r, 1, 5);
    x->gid_index = (unsigned)rng_below(r, GUEST_GIDS);
    x->timeout = (uint8_t)rng_range(r, 10, 12);
    if (s->w.wire.speed_mbps == 1000) {
        x->timeout = 14;
    }
    if (s->timeout) {
        x->timeout = s->timeout;
    }
    x->min_rnr_timer = (uint8_t)rng_range(r, 1, 12);
    x->max_rd_atomic = (uint8_t)rng_range(r, 1, 16);
    x->max_dest_rd_atomic = 16;
    x->sq_psn = rng_u32(r) & 0xffffff;
    if (rng_pct(r, 50)) {       /* will wrap soon */
        x->sq_psn = 0xffffff - (uint32_t)rng_below(r, 200);
    }
    *y = *x;
    y->sq_psn = rng_u32(r) & 0xffffff;
    y->max_rd_atomic = (uint8_t)rng_range(r, 1, 16);
    if (a == b) {
        y->max_rd_atomic = x->max_rd_atomic;
    }
    if (rng_pct(r, 70)) {       /* never more than the peer may request */
        x->max_dest_rd_atomic = y->max_rd_atomic;
        y->max_dest_rd_atomic = x->max_rd_atomic;
    }
    x->dest_qpn = b->ep->qp.qpn;
    y->dest_qpn = a->ep->qp.qpn;
    if (a == b) {
        x->rq_psn = x->sq_psn = y->sq_psn;
    } else {
        x->rq_psn = y->sq_psn;
        y->rq_psn = x->sq_psn;
    }
    a->mtu = b->mtu = 128u << x->path_mtu;
    gqp_to_init(&a->ep->qp, x);
    if (a != b) {
        gqp_to_init(&b->ep->qp, y);
    }
    gqp_to_rtr(&a->ep->qp, b->ep->g->n, x);
    if (a != b) {
        gqp_to_rtr(&b->ep->qp, a->ep->g->n, y);
    }
    gqp_to_rts(&a->ep->qp, x);
    if (a != b) {
        gqp_to_rts(&b->ep->qp, y);
    }
    make_ctr(a);
    if (a != b) {
        make_ctr(b);
    }
}

void rc_pair(struct sim *s, struct guest *ga, struct guest *gb,
             const struct rc_profile *p)
{
    struct rc *a = make_end(s, ga, p, p->type, NULL, NULL);

    if (ga == gb && rng_pct(&ga->rng, 30)) {
        connect(a, a);          /* a QP that talks to itself */
    } else {
        connect(a, make_end(s, gb, p, p->type, NULL, NULL));
    }
}

/* An SRQ of random size, with memory for receives of @p; its rings' shapes. */
static struct srqx *make_srq(struct guest *g, const struct rc_profile *p,
                             uint8_t shift)
{
    struct srqx *x = calloc(1, sizeof(*x));

    CHECK(x, "no memory");
    x->slot = calloc(1u << shift, sizeof(*x->slot));
    x->posted = calloc(1u << shift, sizeof(*x->posted));
    CHECK(x->slot && x->posted, "no memory");
    x->cap = p->max_msg;
    sim_area_odp(&x->area, g,
                 (p->max_msg + 4096) * (2 + rng_log(&g->rng, 64)),
                 QHCA_ACCESS_LOCAL_WRITE, p->plain);
    return x;
}

void rc_srq_group(struct sim *s, struct guest *a, struct guest *b,
                  unsigned n, const struct rc_profile *p)
{
    struct rng *r = &b->rng;
    struct gbuf_shape buf, idx;
    uint8_t shift = (uint8_t)rng_range(r, 0, 7);
    uint8_t stride = (uint8_t)rng_range(r, 5, 9);
    struct srqx *x = make_srq(b, p, shift);

    gbuf_shape_random(&buf, r, 1ULL << (shift + stride));
    gbuf_shape_random(&idx, r, 4ULL << shift);
    gsrq_create(&x->srq, b, shift, stride, &buf, &idx);
    while (n--) {
        struct rc *ea = make_end(s, a, p, p->type, NULL, NULL);

        connect(ea, make_end(s, b, p, p->type, x, NULL));
    }
}

void rc_xrc_group(struct sim *s, struct guest *a, struct guest *b,
                  unsigned n, const struct rc_profile *p)
{
    struct rng *r = &b->rng;
    struct xrcx *x = calloc(1, sizeof(*x));
    uint8_t shift[XRC_SRQS];
    uint32_t need = 0;
    unsigned i;

    CHECK(x, "no memory");
    x->xrcd = guest_create(b, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    x->n = (unsigned)rng_range(r, 1, XRC_SRQS);
    for (i = 0; i < x->n; i++) {
        shift[i] = (uint8_t)rng_range(r, 0, 6);
        need += 1u << shift[i];
    }
    x->cq = some_cq(s, b, need);
    for (i = 0; i < x->n; i++) {
        x->srq[i] = make_srq(b, p, shift[i]);
        gsrq_create_xrc(&x->srq[i]->srq, b, shift[i],
                        (uint8_t)rng_range(r, 5, 9), b->pd, x->xrcd,
                        &x->cq->cq);
    }
    while (n--) {
        struct rc *ea = make_end(s, a, p, QHCA_QPT_XRC_INI, NULL, x);

        connect(ea, make_end(s, b, p, QHCA_QPT_XRC_TGT, NULL, x));
    }
}
