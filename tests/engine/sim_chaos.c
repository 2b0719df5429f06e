/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Chaos: the guest's memory itself fails, anywhere, at any time.  What is
 * left to promise: order, at most one completion each, and an adapter that
 * can be cleaned up.
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

    /* when these fail, the whole adapter stops: another test */
    if (page == g->asq || page == g->asq + 4096 || page == g->asq + 8192 ||
        page == g->asq + 12288 || page == g->acq || page == g->in ||
        page == g->out) {
        return false;
    }
    for (i = 0; i < g->eqs; i++) {
        struct gbuf *b = &g->eq[i].buf;
        size_t k;

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

void chaos_script(struct sim *s)
{
    unsigned n;

    for (n = 0; n < 10; n++) {
        run_chaos(s);
    }
}
