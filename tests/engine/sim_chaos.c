/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chaos: accesses to the guest's memory fail, anywhere, at any time.  What must
 * still hold: order, at most one completion each, and an adapter that can be
 * cleaned up.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim_fx.h"

static bool not_admin(void *opaque, uint64_t addr)
{
    struct guest *g = opaque;
    uint64_t page = addr & ~4095ULL;
    unsigned i;

    /* if these fail, the whole adapter stops: another test covers that */
    if (page == g->asq || page == g->asq + 4096 || page == g->asq + 8192 ||
        page == g->asq + 12288 || page == g->acq || page == g->in ||
        page == g->out) {
        return false;
    }
    for (i = 0; i < g->eqs; i++) {
        struct gbuf *b = &g->eq[i].buf;
        uint64_t rec = g->eq[i].dbrec;
        size_t k;

        if (rec && addr >= rec && addr < rec + sizeof(struct qhca_dbrec)) {
            return false;
        }
        for (k = 0; k < b->chunks + b->tables; k++) {
            struct gbuf_chunk *c = k < b->chunks ? &b->chunk[k] :
                                   &b->table[k - b->chunks];

            if (addr >= c->addr && addr < c->addr + c->len) {
                return false;
            }
        }
    }
    return true;
}

static void may_fail(struct guest *g, unsigned chance)
{
    g->m->fail_64k = chance;
    g->m->may_fail = not_admin;
    g->m->may_fail_opaque = g;
}

/* Completions so far: in order, and after an error only flushes. */
static void chaos_poll(struct fx *f, bool *broken, uint32_t *next)
{
    struct qhca_cqe c;

    while (gcq_poll(&f->a.scq, &c)) {
        CHECK(c.wqe_index - *next < f->a.qp.sq_prod - *next,
              "chaos: WQE %u, %u to %u are out", c.wqe_index, *next,
              f->a.qp.sq_prod);
        while (*next != c.wqe_index) {
            CHECK(!*broken && !(f->wr[*next & (FX_DEPTH - 1)].flags &
                                QHCA_WQE_F_SIGNALED),
                  "chaos: WQE %u is missing", *next);
            ++*next;
        }
        ++*next;
        CHECK(!*broken || c.status == QHCA_WC_WR_FLUSH_ERR,
              "chaos: %s after an error", sim_wc_name(c.status));
        *broken = *broken || c.status != QHCA_WC_SUCCESS;
    }
    while (gcq_poll(&f->b.rcq, &c)) {
        f->b.qp.rq_cons++;
    }
}

static void run_chaos(struct sim *s)
{
    unsigned chance = 1 + (unsigned)rng_log(&s->rng, 2000), i;
    bool broken = false, cq_dead;
    struct qhca_cqc cqc;
    uint32_t next = 0;
    struct fx f;

    fx_open(&f, s);
    f.attr.retry_cnt = f.attr.rnr_retry = 3;
    f.attr.timeout = 8;
    fx_connect(&f);
    may_fail(f.a.g, chance);
    may_fail(f.b.g, rng_pct(f.r, 50) ? chance : 0);
    for (i = 0; i < FX_DEPTH; i++) {
        fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    }
    fx_post_good(&f, FX_DEPTH);
    for (i = 0; i < FX_DEPTH; i++) {
        gqp_ring(&f.a.qp);
    }
    for (i = 0; i < 2000; i++) {
        world_run(&s->w, 50000);
        chaos_poll(&f, &broken, &next);
    }
    may_fail(f.a.g, 0);
    may_fail(f.b.g, 0);
    guest_query(f.a.g, QHCA_CMD_QUERY_CQ, f.a.scq.cqn, &cqc, sizeof(cqc));
    cq_dead = cqc.state == QHCA_CQ_ERR;
    world_run(&s->w, 1000000);
    chaos_poll(&f, &broken, &next);
    if (!cq_dead && !broken) {
        CHECK(fx_state(&f.a) == QHCA_QPS_RTS, "chaos: state %u without an "
              "error completion", fx_state(&f.a));
        for (; next != f.a.qp.sq_prod; next++) {
            CHECK(!(f.wr[next & (FX_DEPTH - 1)].flags & QHCA_WQE_F_SIGNALED),
                  "chaos: WQE %u never completed", next);
        }
    }
    if (!cq_dead && broken) {
        CHECK(next == f.a.qp.sq_prod, "chaos: WQE %u was not flushed", next);
    }
    f.a.qp.sq_cons = f.a.qp.sq_prod;
    fx_close(&f);
}

/* Free the memory of a side; the adapter has forgotten it. */
static void drop_side(struct side *x)
{
    gbuf_free(&x->qp.sq);
    gbuf_free(&x->qp.rq);
    guest_dbrec_free(x->g, x->qp.dbrec);
    if (x->qp.sq_dbrec) {
        guest_dbrec_free(x->g, x->qp.sq_dbrec);
    }
    gbuf_free(&x->scq.buf);
    guest_dbrec_free(x->g, x->scq.dbrec);
    gbuf_free(&x->rcq.buf);
    guest_dbrec_free(x->g, x->rcq.dbrec);
    gmr_drop(&x->src);
    gmr_drop(&x->dst);
    gmr_drop(&x->rem);
}

static void close_side(struct side *x)
{
    CHECK(gqp_destroy(&x->qp) == QHCA_ST_OK, "DESTROY_QP");
    CHECK(gcq_destroy(&x->scq) == QHCA_ST_OK &&
          gcq_destroy(&x->rcq) == QHCA_ST_OK, "DESTROY_CQ");
    CHECK(gmr_destroy(&x->src) == QHCA_ST_OK &&
          gmr_destroy(&x->dst) == QHCA_ST_OK &&
          gmr_destroy(&x->rem) == QHCA_ST_OK, "DESTROY_MR");
}

/*
 * Reset an adapter in the middle of its work, in one of three ways: from then
 * on no memory access, no interrupt, no frame.  The peer notices without help,
 * and the adapter can be used again.
 */
static void run_reset(struct sim *s)
{
    bool requester = rng_pct(&s->rng, 50);
    uint64_t faults, reads, writes, frames, irqs = 0, now = 0;
    struct side *x, *other;
    struct qhca_cqe c;
    struct node *n;
    struct fx f;
    unsigned i;

    fx_open(&f, s);
    f.attr.timeout = 8;
    f.attr.retry_cnt = 2;
    fx_connect(&f);
    for (i = 0; i < FX_DEPTH; i++) {
        fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    }
    fx_post_good(&f, FX_DEPTH);
    gqp_ring(&f.a.qp);
    world_run(&s->w, rng_log(f.r, 40000));
    x = requester ? &f.a : &f.b;
    other = requester ? &f.b : &f.a;
    n = x->g->n;
    switch (rng_below(f.r, 3)) {
    case 0:
        node_reg_write(n, QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
        break;
    case 1:
        node_reg_write(n, QHCA_REG_CTRL, 0, 4);
        break;
    default:
        node_flr(n);
    }
    faults = n->mem.faults;
    reads = n->mem.reads;
    writes = n->mem.writes;
    frames = n->tx_frames;
    for (i = 0; i < WORLD_VECTORS; i++) {
        irqs += n->msix[i];
    }
    drop_side(x);
    if (other->g == x->g) {
        drop_side(other);
    }
    guest_drop(x->g);
    world_run(&s->w, 50000000);
    for (i = 0; i < WORLD_VECTORS; i++) {
        now += n->msix[i];
    }
    CHECK(n->mem.faults == faults && n->mem.reads == reads &&
          n->mem.writes == writes, "memory is used after a reset");
    CHECK(n->tx_frames == frames, "a frame is sent after a reset");
    CHECK(now == irqs, "an interrupt after a reset");
    if (other->g != x->g) {
        bool broken = false;

        while (!requester && gcq_poll(&f.a.scq, &c)) {
            broken = broken || c.status == QHCA_WC_RETRY_EXC_ERR;
        }
        CHECK(requester || broken || s->lossy ||
              fx_state(&f.a) != QHCA_QPS_ERR, "the peer fails, but not by "
              "silence");
        close_side(other);
    }
    sim_start_guest(s, n->id);
}

void chaos_script(struct sim *s)
{
    unsigned n;

    for (n = 0; n < 10; n++) {
        if (rng_pct(&s->rng, 70)) {
            run_chaos(s);
        } else {
            run_reset(s);
        }
    }
}
