/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "sim_fx.h"

struct guest *fx_guest(struct sim *s)
{
    return &s->g[rng_below(&s->rng, s->w.nodes)];
}

static void make_mr(struct fx *f, struct gmr *mr, struct guest *g,
                    uint32_t access)
{
    struct gbuf_shape shape;
    uint64_t iova = (rng_u64(f->r) >> rng_range(f->r, 4, 40)) | 1ULL << 20;

    do {                        /* a list may split the word for atomics */
        gbuf_shape_random(&shape, f->r, FX_AREA);
    } while (shape.form == QHCA_BUF_LIST &&
             access & QHCA_ACCESS_REMOTE_ATOMIC);
    gmr_create(mr, g, FX_AREA, iova & ~7ULL, access, &shape);
}

static void make_side(struct fx *f, struct side *x, struct guest *g)
{
    struct gbuf_shape shape[4];
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = FX_DEPTH_SHIFT, .sq_stride = 8,
        .rq_shift = FX_DEPTH_SHIFT, .rq_stride = 6,
        .sq = &shape[0], .rq = &shape[1], .scq = &x->scq, .rcq = &x->rcq,
    };
    unsigned i;

    memset(x, 0, sizeof(*x));
    x->g = g;
    for (i = 0; i < 4; i++) {
        gbuf_shape_random(&shape[i], f->r, FX_DEPTH << 8);
    }
    gcq_create(&x->scq, g, FX_DEPTH_SHIFT + 1, &shape[2], g->eq[1].eqn);
    gcq_create(&x->rcq, g, FX_DEPTH_SHIFT + 1, &shape[3], g->eq[1].eqn);
    gqp_create(&x->qp, g, &in);
    make_mr(f, &x->src, g, 0);
    make_mr(f, &x->dst, g, QHCA_ACCESS_LOCAL_WRITE);
    make_mr(f, &x->rem, g, QHCA_ACCESS_LOCAL_WRITE |
            QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ |
            QHCA_ACCESS_REMOTE_ATOMIC | QHCA_ACCESS_FLUSH_GLOBAL);
    gbuf_allow(&x->src.buf, 0, FX_AREA, GMEM_R);
    gbuf_allow(&x->dst.buf, 0, FX_AREA, GMEM_W);
    gbuf_allow(&x->rem.buf, 0, FX_AREA, GMEM_RW);
}

void fx_open(struct fx *f, struct sim *s)
{
    memset(f, 0, sizeof(*f));
    f->s = s;
    f->r = &s->rng;
    make_side(f, &f->a, fx_guest(s));
    make_side(f, &f->b, fx_guest(s));
    gqp_attr_default(&f->attr);
    f->attr.path_mtu = (uint8_t)rng_range(f->r, 1, 5);
    f->attr.sq_psn = 0xffffff - (uint32_t)rng_below(f->r, 30);
    f->attr.rq_psn = rng_u32(f->r) & 0xffffff;
    f->attr.gid_index = (unsigned)rng_below(f->r, GUEST_GIDS);
    f->attr.dest_qpn = f->b.qp.qpn;
    f->battr = f->attr;
    f->battr.sq_psn = f->attr.rq_psn;
    f->battr.rq_psn = f->attr.sq_psn;
    f->battr.dest_qpn = f->a.qp.qpn;
}

void fx_connect(struct fx *f)
{
    gqp_to_init(&f->a.qp, &f->attr);
    gqp_to_init(&f->b.qp, &f->battr);
    gqp_to_rtr(&f->a.qp, f->b.g->n, &f->attr);
    gqp_to_rtr(&f->b.qp, f->a.g->n, &f->battr);
    gqp_to_rts(&f->a.qp, &f->attr);
    gqp_to_rts(&f->b.qp, &f->battr);
}

void fx_destroy_qp(struct side *x)
{
    uint8_t st;

    if (!x->destroyed) {
        st = gqp_destroy(&x->qp);
        CHECK(st == QHCA_ST_OK, "DESTROY_QP: status %u", st);
        x->destroyed = true;
    }
}

static void free_side(struct side *x)
{
    fx_destroy_qp(x);
    CHECK(gcq_destroy(&x->scq) == QHCA_ST_OK &&
          gcq_destroy(&x->rcq) == QHCA_ST_OK, "DESTROY_CQ");
    /* a script may have destroyed one */
    CHECK((!x->src.buf.chunks || gmr_destroy(&x->src) == QHCA_ST_OK) &&
          (!x->dst.buf.chunks || gmr_destroy(&x->dst) == QHCA_ST_OK) &&
          (!x->rem.buf.chunks || gmr_destroy(&x->rem) == QHCA_ST_OK),
          "DESTROY_MR");
}

void fx_close(struct fx *f)
{
    struct qhca_cqe c;

    CHECK(!gcq_poll(&f->a.scq, &c), "one completion too many: WQE %u, %s",
          c.wqe_index, sim_wc_name(c.status));
    free_side(&f->a);
    free_side(&f->b);
}

/* ---- posting ---- */

void fx_post_recv(struct fx *f, uint32_t cap, uint32_t lkey)
{
    struct qhca_sge sge = { .addr = f->b.dst.iova, .len = cap,
                            .lkey = lkey };

    CHECK(gqp_post_recv(&f->b.qp, 0xbe00 + f->b.qp.rq_prod, &sge, 1),
          "RQ full");
    f->recvs++;
}

/* A valid request; the caller may corrupt it. */
struct gwr fx_good_wr(struct fx *f, uint8_t op, uint32_t len)
{
    struct gwr w = {
        .opcode = op, .wr_id = rng_u64(f->r),
        .num_sge = op != QHCA_WQE_FLUSH, .rkey = f->b.rem.key,
        .mask = rng_u64(f->r),
    };
    bool atomic = op >= QHCA_WQE_COMP_SWAP && op <= QHCA_WQE_MASKED_FETCH_ADD;
    bool in = op == QHCA_WQE_RDMA_READ || atomic;

    w.sge[0].addr = in ? f->a.dst.iova : f->a.src.iova;
    w.sge[0].lkey = in ? f->a.dst.key : f->a.src.key;
    w.sge[0].len = atomic || op == QHCA_WQE_ATOMIC_WRITE ? 8 : len;
    if (op == QHCA_WQE_FLUSH) {
        w.arg0 = len;
        w.arg1 = QHCA_FLUSH_T_GLOBAL;
    }
    w.remote_addr = op >= QHCA_WQE_RDMA_WRITE ? f->b.rem.iova : 0;
    if (op < QHCA_WQE_RDMA_WRITE) {
        w.rkey = 0;
    }
    if (rng_pct(f->r, 50)) {
        w.flags = QHCA_WQE_F_SIGNALED;
    }
    return w;
}

void fx_post(struct fx *f, const struct gwr *w)
{
    uint32_t i = f->a.qp.sq_prod & (FX_DEPTH - 1);

    f->wr[i].wr_id = w->wr_id;
    f->wr[i].flags = w->flags;
    f->wr[i].recv = w->opcode <= QHCA_WQE_SEND_INV ||
                    w->opcode == QHCA_WQE_RDMA_WRITE_IMM;
    CHECK(gqp_post_send(&f->a.qp, w), "SQ full");
}

uint8_t fx_some_op(struct fx *f)
{
    static const uint8_t ops[] = {
        QHCA_WQE_SEND, QHCA_WQE_SEND_IMM, QHCA_WQE_RDMA_WRITE,
        QHCA_WQE_RDMA_WRITE_IMM, QHCA_WQE_RDMA_READ, QHCA_WQE_COMP_SWAP,
        QHCA_WQE_FETCH_ADD, QHCA_WQE_MASKED_COMP_SWAP,
        QHCA_WQE_MASKED_FETCH_ADD, QHCA_WQE_FLUSH, QHCA_WQE_ATOMIC_WRITE
    };

    return ops[rng_below(f->r, sizeof(ops))];
}

void fx_post_good(struct fx *f, unsigned n)
{
    while (n--) {
        struct gwr w = fx_good_wr(f, fx_some_op(f),
                                  (uint32_t)rng_below(f->r, FX_RECV_CAP + 1));

        fx_post(f, &w);
    }
}

/* ---- waiting ---- */

bool fx_wait(struct fx *f, struct gcq *cq, struct qhca_cqe *c,
             uint64_t ns)
{
    uint64_t end = f->s->w.now + ns;

    while (!gcq_poll(cq, c)) {
        if (f->s->w.now >= end) {
            return false;
        }
        world_run(&f->s->w, 5000);
    }
    return true;
}

uint8_t fx_state(struct side *x)
{
    struct qhca_qpc c;

    guest_query(x->g, QHCA_CMD_QUERY_QP, x->qp.qpn, &c, sizeof(c));
    return c.state;
}

/*
 * Read completions at the requester until all WQEs are accounted for: those
 * before @bad succeed, @bad has @status, the rest is flushed.
 */
void fx_expect_sends(struct fx *f, const char *name, uint32_t bad,
                     uint8_t status)
{
    struct gqp *qp = &f->a.qp;
    struct qhca_cqe c;
    uint8_t want;
    uint32_t i;

    for (i = qp->sq_cons; i != qp->sq_prod; i++) {
        bool before = (int32_t)(i - bad) < 0;

        if (before && !(f->wr[i & (FX_DEPTH - 1)].flags &
                        QHCA_WQE_F_SIGNALED)) {
            continue;
        }
        want = before ? QHCA_WC_SUCCESS : i == bad ? status :
               QHCA_WC_WR_FLUSH_ERR;
        CHECK(fx_wait(f, &f->a.scq, &c, FX_LONG),
              "%s: no completion of WQE %u, want %s", name, i,
              sim_wc_name(want));
        CHECK(c.wqe_index == i, "%s: completion of WQE %u (%s), want %u "
              "(%s)", name, c.wqe_index, sim_wc_name(c.status), i,
              sim_wc_name(want));
        CHECK(c.status == want,
              "%s: WQE %u (bad is %u): %s, syndrome %#x, want %s", name, i,
              bad, sim_wc_name(c.status), c.syndrome, sim_wc_name(want));
        CHECK(c.wr_id == f->wr[i & (FX_DEPTH - 1)].wr_id, "%s: wr_id", name);
        CHECK((c.syndrome == QHCA_SYN_NONE) == (c.status == 0),
              "%s: %s with syndrome %#x", name, sim_wc_name(c.status),
              c.syndrome);
        CHECK(want != QHCA_WC_WR_FLUSH_ERR || c.syndrome == QHCA_SYN_FLUSH,
              "%s: flushed with syndrome %#x", name, c.syndrome);
    }
    qp->sq_cons = qp->sq_prod;
    world_run(&f->s->w, 100000);
    CHECK(!gcq_poll(&f->a.scq, &c), "%s: completion of WQE %u too many",
          name, c.wqe_index);
}

/* Receives at the responder: @ok succeed, then (if any) @status, then, if
 * @err, the rest is flushed. */
void fx_expect_recvs(struct fx *f, const char *name, uint32_t ok,
                     uint8_t status, bool err)
{
    struct gqp *qp = &f->b.qp;
    struct qhca_cqe c;
    uint8_t want;
    uint32_t i;

    for (i = 0; i < f->recvs; i++) {
        want = i < ok ? QHCA_WC_SUCCESS : i == ok && status ? status :
               QHCA_WC_WR_FLUSH_ERR;
        if (want == QHCA_WC_WR_FLUSH_ERR && !err) {
            break;
        }
        CHECK(fx_wait(f, &f->b.rcq, &c, FX_LONG),
              "%s: no completion of receive %u, want %s", name, i,
              sim_wc_name(want));
        CHECK(c.wqe_index == i && c.status == want &&
              c.wr_id == 0xbe00 + i,
              "%s: receive %u (%s, syndrome %#x), want %u (%s)", name,
              c.wqe_index, sim_wc_name(c.status), c.syndrome, i,
              sim_wc_name(want));
        qp->rq_cons++;
    }
    world_run(&f->s->w, 100000);
    CHECK(!gcq_poll(&f->b.rcq, &c), "%s: completion of receive %u (%s) too "
          "many", name, c.wqe_index, sim_wc_name(c.status));
}

uint32_t fx_async(struct side *x, uint8_t type)
{
    guest_poll_eq(x->g, 0);
    return (uint32_t)x->g->async_count[type];
}
