/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Work that is planned: what an end sends and receives, with all keys, lengths
 * and places, is chosen before its QP exists, from random numbers of its own.
 * Time decides only when it is posted.  So the completions of each queue and
 * the contents of memory at the end are the same whatever carries the packets:
 * sim_outcome.h compares them.
 *
 * Writes overlap: their order shows in memory.  A write to bytes that a READ
 * may still read is fenced.  Some plans end with an error and what is flushed.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "sim_outcome.h"

#define SGES 4
#define WORDS 8
#define GRH 40
#define INLINE_MAX 64

/* The last request but those that are flushed. */
enum flaw {
    FLAW_NONE,
    FLAW_OPCODE, FLAW_LKEY,     /* the device finds them, alone */
    FLAW_RKEY, FLAW_END, FLAW_RECV_SMALL,
};

struct req {
    uint8_t op, flags, status;
    uint64_t wr_id, id;
    uint32_t imm, len;
    unsigned np;
    struct piece p[SGES];
    uint64_t roff, arg0, arg1, mask, swap_mask;
    enum flaw flaw;
};

struct rcpt {
    uint64_t wr_id;
    uint8_t status;
    unsigned np;
    struct piece p[SGES];
};

struct end {
    struct ep *ep;
    struct end *peer;
    struct rng r;
    uint8_t type;
    uint64_t max;               /* bytes of a message */
    uint32_t mtu;
    struct req *req;
    unsigned reqs, sent, unsignalled;
    struct rcpt *rcpt;
    unsigned rcpts, posted, received;
    unsigned completions;       /* of receives, expected */
    bool reads;                 /* since the last fence */
    unsigned late_pct;
    /* regions, and how much of them the plan uses */
    struct area src, rd, rcv, rem, word;
    uint64_t src_len, rd_len, rcv_len, rem_len;
    struct gsrq srq;
    bool has_srq;
    uint32_t xrcd, qkey;
    unsigned gid;
};

static bool connected(uint8_t type)
{
    return type == QHCA_QPT_RC || type == QHCA_QPT_XRC_INI ||
           type == QHCA_QPT_XRC_TGT;
}

/* ---- the plan ---- */

/* Divide @len bytes among places behind *@used. */
static unsigned cut(struct rng *r, uint64_t len, unsigned max, uint64_t *used,
                    struct piece *p)
{
    unsigned n = len ? (unsigned)rng_range(r, 1, max) : 0, i;

    for (i = 0; i < n; i++) {
        p[i].len = (uint32_t)(i == n - 1 ? len : rng_log(r, len));
        p[i].off = *used;
        *used += p[i].len + rng_log(r, 64);
        len -= p[i].len;
    }
    return n;
}

static uint32_t plan_len(struct end *a)
{
    struct rng *r = &a->r;
    uint64_t n;

    switch (rng_below(r, 6)) {
    case 0:
        n = rng_below(r, 65);
        break;
    case 1:                     /* around packet boundaries */
        n = a->mtu * rng_range(r, 1, 5) + rng_range(r, 0, 2) - 1;
        break;
    case 2:
        n = rng_log(r, a->max);
        break;
    default:                    /* many packets: their payload is referred to */
        n = rng_below(r, a->max + 1);
    }
    return (uint32_t)(n > a->max ? a->max : n);
}

static uint8_t plan_op(struct end *a)
{
    static const uint8_t ops[] = {
        QHCA_WQE_SEND, QHCA_WQE_SEND_IMM, QHCA_WQE_SEND,
        QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_WRITE_IMM, QHCA_WQE_RDMA_WRITE,
        /* not UC */
        QHCA_WQE_RDMA_READ, QHCA_WQE_RDMA_READ, QHCA_WQE_COMP_SWAP,
        QHCA_WQE_FETCH_ADD, QHCA_WQE_FLUSH, QHCA_WQE_ATOMIC_WRITE,
        /* not XRC */
        QHCA_WQE_MASKED_COMP_SWAP, QHCA_WQE_MASKED_FETCH_ADD,
    };
    unsigned n = a->type == QHCA_QPT_UD ? 2 : a->type == QHCA_QPT_UC ? 6 :
                 a->type == QHCA_QPT_XRC_INI ? 12 : sizeof(ops);

    return ops[rng_below(&a->r, n)];
}

static void plan_recv(struct end *b, uint32_t cap, uint8_t status)
{
    struct rcpt *x = &b->rcpt[b->rcpts++];

    x->wr_id = rng_u64(&b->r);
    x->status = status;
    x->np = cut(&b->r, cap, SGES, &b->rcv_len, x->p);
}

/* Where at the peer. */
static void plan_remote(struct end *a, struct req *q)
{
    struct rng *r = &a->r;

    if (sim_is_atomic(q->op) || q->op == QHCA_WQE_ATOMIC_WRITE) {
        q->roff = 8 * rng_below(r, WORDS);
        /* words start small, so that comparisons succeed as well */
        q->arg0 = rng_below(r, 3);
        q->arg1 = rng_pct(r, 80) ? rng_below(r, 3) : rng_u64(r);
        q->mask = rng_u64(r) | 1;
        q->swap_mask = rng_u64(r);
        return;
    }
    q->roff = rng_below(r, a->peer->rem_len - q->len + 1);
    if (sim_is_write(q->op) && a->reads) {
        q->flags |= QHCA_WQE_F_FENCE;
    }
    if (q->flags & QHCA_WQE_F_FENCE) {
        a->reads = false;
    }
    a->reads |= q->op == QHCA_WQE_RDMA_READ;
}

/* @depth: of the SQ, which a signaled request must retire. */
static void plan_req(struct end *a, unsigned depth, bool last)
{
    struct req *q = &a->req[a->reqs++];
    struct rng *r = &a->r;

    memset(q, 0, sizeof(*q));
    /* of UC the last receive tells that all writes have arrived */
    q->op = last && a->type == QHCA_QPT_UC ? QHCA_WQE_SEND : plan_op(a);
    q->wr_id = rng_u64(r);
    q->id = rng_u64(r);
    q->imm = rng_u32(r);
    q->len = sim_is_atomic(q->op) || q->op == QHCA_WQE_ATOMIC_WRITE ? 8 :
             q->op == QHCA_WQE_FLUSH ? 0 : plan_len(a);
    if (connected(a->type) && rng_pct(r, 8)) {
        q->flags |= QHCA_WQE_F_FENCE;
    }
    if (sim_takes_recv(q->op)) {
        q->flags |= rng_pct(r, 50) ? QHCA_WQE_F_SOLICITED : 0;
        plan_recv(a->peer, q->len + (a->type == QHCA_QPT_UD ? GRH : 0) +
                  (rng_pct(r, 50) ? (uint32_t)rng_log(r, 200) : 0),
                  QHCA_WC_SUCCESS);
    }
    if (!sim_takes_recv(q->op) || sim_is_write(q->op)) {
        plan_remote(a, q);
    }
    if (q->op == QHCA_WQE_RDMA_READ || sim_is_atomic(q->op)) {
        q->np = cut(r, q->len, sim_is_atomic(q->op) ? 1 : SGES, &a->rd_len,
                    q->p);
    } else if (q->len && q->len <= INLINE_MAX && rng_pct(r, 40)) {
        q->flags |= QHCA_WQE_F_INLINE;
    } else {
        q->np = cut(r, q->len, SGES, &a->src_len, q->p);
    }
    if (last || a->unsignalled + 1 >= depth || rng_pct(r, 50)) {
        q->flags |= QHCA_WQE_F_SIGNALED;
        a->unsignalled = 0;
    } else {
        a->unsignalled++;
    }
}

/*
 * A request that fails, and what is flushed behind it.  @quiet: only errors that
 * need no answer, as a QP that has failed does not repeat it.
 */
static void plan_flaw(struct end *a, bool quiet)
{
    enum flaw flaw = (enum flaw)rng_range(&a->r, FLAW_OPCODE,
                                          quiet ? FLAW_LKEY : FLAW_RECV_SMALL);
    struct req *q = &a->req[a->reqs++];
    bool far = flaw >= FLAW_RKEY;
    unsigned n;

    memset(q, 0, sizeof(*q));
    q->flaw = flaw;
    q->op = flaw == FLAW_OPCODE ? 0x3f : flaw == FLAW_RECV_SMALL ?
            QHCA_WQE_SEND : far && rng_pct(&a->r, 40) ? QHCA_WQE_RDMA_READ :
            QHCA_WQE_RDMA_WRITE;
    q->status = flaw == FLAW_OPCODE ? QHCA_WC_LOC_QP_OP_ERR :
                flaw == FLAW_LKEY ? QHCA_WC_LOC_PROT_ERR :
                flaw == FLAW_RECV_SMALL ? QHCA_WC_REM_INV_REQ_ERR :
                QHCA_WC_REM_ACCESS_ERR;
    q->wr_id = rng_u64(&a->r);
    q->id = rng_u64(&a->r);
    q->len = 1 + (uint32_t)rng_below(&a->r, a->max);
    q->np = cut(&a->r, q->len, 1, q->op == QHCA_WQE_RDMA_READ ? &a->rd_len :
                &a->src_len, q->p);
    a->peer->completions = a->peer->rcpts;
    if (flaw == FLAW_RECV_SMALL) {
        plan_recv(a->peer, (uint32_t)rng_below(&a->r, q->len),
                  QHCA_WC_LOC_LEN_ERR);
    }
    for (n = (unsigned)rng_below(&a->r, 6); n; n--) {
        plan_req(a, 1, true);
        a->req[a->reqs - 1].status = QHCA_WC_WR_FLUSH_ERR;
        if (sim_takes_recv(a->req[a->reqs - 1].op)) {
            a->peer->rcpt[a->peer->rcpts - 1].status = QHCA_WC_WR_FLUSH_ERR;
        }
    }
    if (far) {                  /* the peer's QP fails, too */
        a->peer->completions = a->peer->rcpts;
    }
}

static void plan(struct end *a, unsigned n, unsigned depth, bool flawed)
{
    struct sim *s = a->ep->s;
    unsigned i;

    a->req = calloc(n + 8, sizeof(*a->req));
    a->peer->rcpt = calloc(n + 8, sizeof(*a->peer->rcpt));
    CHECK(a->req && a->peer->rcpt, "no memory");
    for (i = 0; i < n; i++) {
        plan_req(a, depth, i == n - 1);
    }
    a->peer->completions = a->peer->rcpts;
    if (flawed) {
        /* an end that waits for a page drops what it gets */
        plan_flaw(a, s->lossy || s->odp_pct);
    }
}

/* ---- posting ---- */

static void put_sges(const struct area *area, const struct piece *p,
                     unsigned np, struct qhca_sge *sge)
{
    unsigned i;

    for (i = 0; i < np; i++) {
        sge[i].addr = area->mr.iova + p[i].off;
        sge[i].len = p[i].len;
        sge[i].lkey = area->mr.key;
    }
}

static bool post_recv(struct end *a)
{
    const struct rcpt *x;
    struct qhca_sge sge[SGES];
    uint32_t wqe;

    if (a->posted == a->rcpts) {
        return false;
    }
    x = &a->rcpt[a->posted];
    put_sges(&a->rcv, x->p, x->np, sge);
    if (a->has_srq ? !gsrq_post(&a->srq, x->wr_id, sge, x->np, &wqe) :
                     !gqp_post_recv(&a->ep->qp, x->wr_id, sge, x->np)) {
        return false;
    }
    a->posted++;
    return true;
}

static void spoil(struct end *a, const struct req *q, struct gwr *g)
{
    switch (q->flaw) {
    case FLAW_LKEY:
        g->sge[0].lkey ^= 0x10;
        break;
    case FLAW_RKEY:
        g->rkey ^= 0x10;
        break;
    case FLAW_END:
        g->remote_addr += a->peer->rem.mr.len - q->len + 1;
        break;
    default:
        break;
    }
}

static bool post_req(struct end *a, const struct req *q)
{
    bool in = q->op == QHCA_WQE_RDMA_READ || sim_is_atomic(q->op);
    const struct area *at = sim_is_atomic(q->op) ||
                            q->op == QHCA_WQE_ATOMIC_WRITE ? &a->peer->word :
                            &a->peer->rem;
    uint8_t inl[INLINE_MAX];
    struct gwr g;

    memset(&g, 0, sizeof(g));
    g.opcode = q->op;
    g.flags = q->flags;
    g.wr_id = q->wr_id;
    g.imm = q->op == QHCA_WQE_SEND_IMM || q->op == QHCA_WQE_RDMA_WRITE_IMM ?
            q->imm : 0;
    if (!sim_takes_recv(q->op) || sim_is_write(q->op)) {
        g.rkey = at->mr.key;
        g.remote_addr = at->mr.iova + q->roff;
    }
    g.arg0 = q->arg0;
    g.arg1 = q->arg1;
    g.mask = q->mask;
    g.swap_mask = q->swap_mask;
    if (q->op == QHCA_WQE_FLUSH) {
        g.arg0 = 1;
        g.arg1 = QHCA_FLUSH_T_GLOBAL;
    }
    if (q->flags & QHCA_WQE_F_INLINE) {
        pattern_bytes(q->id, 0, inl, q->len);
        g.inl = inl;
        g.inl_len = q->len;
    } else {
        put_sges(in ? &a->rd : &a->src, q->p, q->np, g.sge);
        g.num_sge = q->np;
    }
    if (a->type == QHCA_QPT_UD) {
        guest_av(a->ep->g, a->peer->ep->g->n, a->gid, &g.av);
        g.dest_qpn = a->peer->ep->qp.qpn;
        g.qkey = a->peer->qkey;
    } else if (a->type == QHCA_QPT_XRC_INI) {
        g.srqn = a->peer->srq.srqn;
    }
    spoil(a, q, &g);
    if (!gqp_post_send(&a->ep->qp, &g)) {
        return false;
    }
    a->sent++;
    a->ep->s->messages++;
    a->ep->s->bytes += q->len;
    return true;
}

/* Where these random numbers matter is only when something is posted. */
static void plan_pump(struct ep *ep)
{
    struct end *a = ep->app;
    struct rng *r = &ep->g->rng;
    bool late = rng_pct(r, a->late_pct);
    unsigned n = 1 + (unsigned)rng_log(r, 16), i;

    while (!late && post_recv(a)) {
    }
    for (i = 0; i < n && a->sent < a->reqs && post_req(a, &a->req[a->sent]);
         i++) {
        if (rng_pct(r, 20)) {
            gqp_ring(&ep->qp);
        }
    }
    if (ep->qp.sq_rung != ep->qp.sq_prod) {
        gqp_ring(&ep->qp);
    }
    if (late || i == n) {
        sim_tick(ep, 1 + rng_log(r, 60000));
    }
}

static bool plan_idle(struct ep *ep)
{
    struct end *a = ep->app;

    return a->sent == a->reqs && ep->qp.sq_cons == ep->qp.sq_prod &&
           a->received == a->completions;
}

/* ---- completions ---- */

static void send_cqe(struct end *a, const struct qhca_cqe *c)
{
    struct gqp *qp = &a->ep->qp;
    const struct req *q;

    CHECK(c->wqe_index - qp->sq_cons < qp->sq_prod - qp->sq_cons,
          "QP %#x: completion of WQE %u; %u to %u are out", qp->qpn,
          c->wqe_index, qp->sq_cons, qp->sq_prod - 1);
    for (; qp->sq_cons != c->wqe_index; qp->sq_cons++) {
        CHECK(!(a->req[qp->sq_cons].flags & QHCA_WQE_F_SIGNALED),
              "QP %#x: WQE %u was skipped", qp->qpn, qp->sq_cons);
    }
    q = &a->req[qp->sq_cons++];
    CHECK(c->status == q->status && c->wr_id == q->wr_id,
          "QP %#x, WQE %u, opcode %#x: %s, syndrome %#x, want %s", qp->qpn,
          c->wqe_index, q->op, sim_wc_name(c->status), c->syndrome,
          sim_wc_name(q->status));
}

static void recv_cqe(struct end *a, const struct qhca_cqe *c)
{
    const struct rcpt *x;

    CHECK(a->received < a->posted, "QP %#x: a receive too many",
          a->ep->qp.qpn);
    x = &a->rcpt[a->received++];
    CHECK(c->status == x->status && c->wr_id == x->wr_id,
          "QP %#x, receive %u: %s, syndrome %#x, want %s", a->ep->qp.qpn,
          a->received - 1, sim_wc_name(c->status), c->syndrome,
          sim_wc_name(x->status));
    if (a->has_srq) {
        gsrq_release(&a->srq, c->wqe_index);
    } else {
        a->ep->qp.rq_cons++;
    }
}

static void plan_cqe(struct ep *ep, const struct qhca_cqe *c)
{
    if (c->opcode & 0x80) {
        recv_cqe(ep->app, c);
    } else {
        send_cqe(ep->app, c);
    }
}

/* An error of the plan: the completions tell. */
static void plan_async(struct ep *ep, const struct qhca_eqe *eqe)
{
    struct end *a = ep->app;
    const struct end *from = a->peer->reqs ? a->peer : a;

    CHECK(eqe->type == QHCA_EV_COMM_EST || eqe->type == QHCA_EV_LAST_WQE ||
          from->req[from->reqs - 1].status != QHCA_WC_SUCCESS,
          "QP %#x: event %#x, syndrome %#x", ep->qp.qpn, eqe->type,
          eqe->syndrome);
}

static void plan_dump(struct ep *ep)
{
    struct end *a = ep->app;

    fprintf(stderr, "QP %s/%#x, type %u: %u of %u sent, SQ %u..%u, receives: "
            "%u of %u posted, %u of %u complete\n", ep->g->m->name,
            ep->qp.qpn, a->type, a->sent, a->reqs, ep->qp.sq_cons,
            ep->qp.sq_prod, a->posted, a->rcpts, a->received,
            a->completions);
}

/*
 * Clear what READs that failed have stored.  A long READ is requested in parts,
 * whose size depends on the window: the parts before the one that fails have
 * arrived, and how many these are differs from wire to wire.
 */
static void forget_failed_reads(struct end *a)
{
    static const uint8_t none[4096];
    uint64_t at, n, left;
    unsigned i, k;

    for (i = 0; i < a->reqs; i++) {
        const struct req *q = &a->req[i];

        for (k = 0; q->status && q->op == QHCA_WQE_RDMA_READ && k < q->np;
             k++) {
            at = q->p[k].off;
            for (left = q->p[k].len; left; left -= n, at += n) {
                n = left < sizeof(none) ? left : sizeof(none);
                gbuf_write(&a->rd.mr.buf, at, none, n);
            }
        }
    }
}

static void plan_record(struct ep *ep, struct outcome *o)
{
    struct end *a = ep->app;
    const struct {
        const char *name;
        struct area *area;
    } areas[] = {
        { "source", &a->src }, { "read", &a->rd }, { "received", &a->rcv },
        { "remote", &a->rem }, { "words", &a->word },
    };
    char name[OUTCOME_NAME];
    unsigned i;

    forget_failed_reads(a);
    for (i = 0; i < sizeof(areas) / sizeof(areas[0]); i++) {
        snprintf(name, sizeof(name), "end %u, QP %s/%#x, %s", ep->number,
                 ep->g->m->name, ep->qp.qpn, areas[i].name);
        outcome_memory(o, name, &areas[i].area->mr.buf);
    }
}

/* ---- life ---- */

static void free_end(struct end *a)
{
    if (a->has_srq) {
        CHECK(gsrq_destroy(&a->srq) == QHCA_ST_OK, "DESTROY_SRQ");
    }
    if (a->type == QHCA_QPT_XRC_TGT) {
        CHECK(guest_simple(a->ep->g, QHCA_CMD_FREE_XRCD, a->xrcd) ==
              QHCA_ST_OK, "FREE_XRCD");
    }
    sim_area_free(&a->src);
    sim_area_free(&a->rd);
    sim_area_free(&a->rcv);
    sim_area_free(&a->rem);
    sim_area_free(&a->word);
    free(a->req);
    free(a->rcpt);
    free(a);
}

static void plan_finish(struct ep *ep)
{
    struct end *a = ep->app;
    uint8_t st = gqp_destroy(&ep->qp);

    CHECK(st == QHCA_ST_OK, "DESTROY_QP: status %u", st);
    if (ep->scq) {
        sim_drain(ep->scq);
    }
    if (ep->rcq) {
        sim_drain(ep->rcq);
    }
    sim_ep_unbind(ep);
    ep->app = NULL;
    if (!a->peer->ep->app) {    /* its areas were in use until now */
        free_end(a->peer);
        free_end(a);
    }
}

/*
 * A region that the device may access with @bits.  Its form is random, but not
 * how its bytes are aligned.
 */
static void make_area(struct end *a, struct area *area, uint64_t len,
                      uint32_t access, unsigned bits, bool plain)
{
    struct guest *g = a->ep->g;
    struct sim *s = a->ep->s;
    uint64_t iova = (rng_u64(&a->r) >> rng_range(&a->r, 4, 40)) & ~0xfffULL;
    bool paged = !plain && connected(a->type) && rng_pct(&a->r, s->odp_pct);
    struct gbuf_shape shape = gbuf_direct;

    len += 64;                  /* never empty */
    if (paged) {
        godp_shape_random(&shape, &a->r);
        area->odp = odp_add(s);
        godp_create(area->odp, &area->mr, g, len, iova, access, &shape);
    } else if (rng_pct(&a->r, 15)) {
        gmr_create_dm(&area->mr, g, len, iova, access);
    } else {
        if (!plain) {
            gbuf_shape_random(&shape, &a->r, len);
        }
        gmr_create(&area->mr, g, len, iova, access, &shape);
    }
    gbuf_allow(&area->mr.buf, 0, len, bits);
}

static void make_areas(struct end *a)
{
    const uint32_t rem = QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE |
                         QHCA_ACCESS_REMOTE_READ | QHCA_ACCESS_FLUSH_GLOBAL;
    uint64_t off, v;
    unsigned i, k;

    make_area(a, &a->src, a->src_len, 0, GMEM_R, false);
    make_area(a, &a->rd, a->rd_len, QHCA_ACCESS_LOCAL_WRITE, GMEM_W, false);
    make_area(a, &a->rcv, a->rcv_len, QHCA_ACCESS_LOCAL_WRITE, GMEM_W, false);
    make_area(a, &a->rem, a->rem_len, rem, GMEM_RW, false);
    make_area(a, &a->word, 8 * WORDS, rem | QHCA_ACCESS_REMOTE_ATOMIC,
              GMEM_RW, true);
    gbuf_fill(&a->rem.mr.buf, 0, a->ep->number, 0, a->rem_len);
    for (i = 0; i < WORDS; i++) {
        v = rng_below(&a->r, 3);
        gbuf_write(&a->word.mr.buf, 8 * i, &v, 8);
    }
    for (i = 0; i < a->reqs; i++) {
        const struct req *q = &a->req[i];

        if (q->op == QHCA_WQE_RDMA_READ || sim_is_atomic(q->op)) {
            continue;
        }
        for (k = 0, off = 0; k < q->np; off += q->p[k++].len) {
            gbuf_fill(&a->src.mr.buf, q->p[k].off, q->id, off, q->p[k].len);
        }
    }
}

static uint8_t depth_for(unsigned n)
{
    uint8_t shift = 0;

    while (1u << shift < n) {
        shift++;
    }
    return shift;
}

static struct end *new_end(struct sim *s, struct guest *g, uint8_t type,
                           uint64_t max, uint32_t mtu)
{
    struct ep *ep = sim_ep(s, g);
    struct end *a = calloc(1, sizeof(*a));

    CHECK(a, "no memory");
    ep->app = a;
    ep->on_cqe = plan_cqe;
    ep->pump = plan_pump;
    ep->idle = plan_idle;
    ep->dump = plan_dump;
    ep->finish = plan_finish;
    ep->on_async = plan_async;
    ep->record = plan_record;
    a->ep = ep;
    rng_init(&a->r, s->seed ^ (uint64_t)ep->number << 48);
    a->type = type;
    a->max = max;
    a->mtu = mtu;
    a->rem_len = max + rng_log(&a->r, 2 * max);
    a->qkey = 0x5eed00 + ep->number;
    a->late_pct = rng_pct(&a->r, 50) ? 0 : (unsigned)rng_below(&a->r, 70);
    return a;
}

/* The QP of an end and what it needs; @sq_shift: of its SQ. */
static void make_qp(struct end *a, uint8_t sq_shift, bool srq)
{
    struct sim *s = a->ep->s;
    struct guest *g = a->ep->g;
    struct ep *ep = a->ep;
    struct rng *r = &a->r;
    bool ready = !connected(a->type);
    bool xrc = a->type == QHCA_QPT_XRC_TGT;
    uint8_t rq_shift = ready ? depth_for(a->rcpts) :
                       (uint8_t)rng_range(r, 0, 6);
    enum cq_mode smode = (enum cq_mode)rng_below(r, 3);
    enum cq_mode rmode = (enum cq_mode)rng_below(r, 3);
    bool one_cq = rng_pct(r, 40) && a->type != QHCA_QPT_XRC_INI && !xrc;
    struct gbuf_shape sq, rq;
    struct gqp_init in;

    memset(&in, 0, sizeof(in));
    in.type = a->type;
    if (!xrc) {
        ep->scq = sim_cq(s, g, smode, (1u << sq_shift) + (1u << rq_shift));
        in.scq = &ep->scq->cq;
        in.sq_shift = sq_shift;
        in.sq_stride = (uint8_t)rng_range(r, 8, 9);
        gbuf_shape_random(&sq, r, 1ULL << (in.sq_shift + in.sq_stride));
        in.sq = &sq;
    }
    if (a->type != QHCA_QPT_XRC_INI) {
        ep->rcq = one_cq ? ep->scq : sim_cq(s, g, rmode, 1u << rq_shift);
        in.rcq = &ep->rcq->cq;
    }
    if (xrc) {
        in.rcq = NULL;
        in.xrcd = a->xrcd = guest_create(g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
        gsrq_create_xrc(&a->srq, g, rq_shift, 7, g->pd, a->xrcd,
                        &ep->rcq->cq);
        a->has_srq = true;
    } else if (srq) {
        gsrq_create(&a->srq, g, rq_shift, 7, NULL, NULL);
        a->has_srq = true;
        in.srq = &a->srq;
    } else if (a->type != QHCA_QPT_XRC_INI) {
        in.rq_shift = rq_shift;
        in.rq_stride = 7;
        gbuf_shape_random(&rq, r, 1ULL << (in.rq_shift + in.rq_stride));
        in.rq = &rq;
    }
    gqp_create(&ep->qp, g, &in);
    CHECK(xrc || (ep->qp.max_send_sge >= SGES &&
                  ep->qp.max_inline >= INLINE_MAX), "WQEs are too small");
    sim_ep_bind(ep);
    make_areas(a);
}

static void connect(struct end *a, struct end *b, uint8_t mtu)
{
    struct rng *r = &a->r;
    struct sim *s = a->ep->s;
    struct gqp_attr x, y;

    gqp_attr_default(&x);
    x.path_mtu = mtu;
    x.gid_index = a->gid = (unsigned)rng_below(r, GUEST_GIDS);
    x.timeout = (uint8_t)(s->w.wire.speed_mbps == 1000 ? 14 :
                          rng_range(r, 10, 12));
    x.min_rnr_timer = (uint8_t)rng_range(r, 1, 12);
    x.max_rd_atomic = x.max_dest_rd_atomic = (uint8_t)rng_range(r, 1, 16);
    x.sq_psn = rng_pct(r, 50) ? rng_u32(r) & 0xffffff :
               0xffffff - (uint32_t)rng_below(r, 200);
    x.rq_psn = rng_u32(r) & 0xffffff;
    x.dest_qpn = b->ep->qp.qpn;
    y = x;
    y.sq_psn = x.rq_psn;
    y.rq_psn = x.sq_psn;
    y.dest_qpn = a->ep->qp.qpn;
    x.qkey = a->qkey;
    y.qkey = b->qkey;
    gqp_to_init(&a->ep->qp, &x);
    gqp_to_init(&b->ep->qp, &y);
    gqp_to_rtr(&a->ep->qp, a->type == QHCA_QPT_UD ? NULL : b->ep->g->n, &x);
    gqp_to_rtr(&b->ep->qp, a->type == QHCA_QPT_UD ? NULL : a->ep->g->n, &y);
    gqp_to_rts(&a->ep->qp, &x);
    gqp_to_rts(&b->ep->qp, &y);
}

static void plan_pair(struct sim *s)
{
    struct rng *r = &s->rng;
    unsigned from = (unsigned)rng_below(r, s->w.nodes), kind, n;
    unsigned to = (from + (unsigned)rng_range(r, 1, s->w.nodes)) % s->w.nodes;
    uint8_t mtu = (uint8_t)rng_range(r, 1, 5), type = QHCA_QPT_RC;
    uint8_t sq_shift = (uint8_t)rng_range(r, 0, 6);
    bool flawed = rng_pct(r, 30), big = rng_pct(r, 15), srq;
    struct end *a, *b;
    uint64_t max;

    /* what is lost is lost, without acknowledgments */
    kind = (unsigned)rng_below(r, s->lossy ? 80 : 100);
    srq = kind >= 50 && kind < 65;
    if (kind >= 65) {
        type = kind < 80 ? QHCA_QPT_XRC_INI : kind < 90 ? QHCA_QPT_UC :
               QHCA_QPT_UD;
    }
    if (type == QHCA_QPT_UD) {
        mtu = 5;
    }
    max = type == QHCA_QPT_UD ? 4096 : big ? rng_range(r, 1 << 18, 1 << 20) :
          1 + rng_below(r, 60000);
    n = (unsigned)rng_range(r, 1, big ? 4 : 50);
    flawed &= type == QHCA_QPT_RC && !srq;
    a = new_end(s, &s->g[from], type, max, 128u << mtu);
    b = new_end(s, &s->g[to], type == QHCA_QPT_XRC_INI ? QHCA_QPT_XRC_TGT :
                type, max, 128u << mtu);
    a->peer = b;
    b->peer = a;
    plan(a, n, 1u << sq_shift, flawed);
    if (type == QHCA_QPT_RC && !flawed) {
        plan(b, (unsigned)rng_range(r, 1, n), 1u << sq_shift, false);
    }
    make_qp(a, sq_shift, false);
    make_qp(b, sq_shift, srq);
    connect(a, b, mtu);
    while (!connected(type) && (post_recv(a) || post_recv(b))) {
    }
}

void plan_pairs(struct sim *s, unsigned pairs)
{
    while (pairs--) {
        plan_pair(s);
    }
}
