/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: memory is taken back while the peer is copying from it.  What
 * would tell software so waits until the copy has ended, and nothing else does.
 */
#include "memlinkfix.h"
#include "reborn.h"

/* Submit a command of side 0; nothing waits for its completion. */
static void submit(struct fix *f, uint8_t op, uint32_t obj, const void *in,
                   uint32_t in_len, uint64_t mask)
{
    struct guest *g = &f->s[0].g;
    struct qhca_aq_cmd cmd = { .opcode = op, .obj = obj, .mask = mask };
    uint32_t slot = g->asq_prod++ & ((1u << g->aq_shift) - 1);

    if (in) {
        memcpy(gmem_ptr(g->m, g->in, in_len), in, in_len);
        gmem_allow(g->m, g->in, in_len, GMEM_R);
        cmd.in_addr = g->in;
        cmd.in_len = in_len;
    }
    memcpy(gmem_ptr(g->m, g->asq + 64 * slot, 64), &cmd, 64);
    node_reg_write(f->s[0].n, QHCA_REG_ASQ_DB, g->asq_prod, 4);
}

/*
 * A peer that never stops copying: the command ends after a while, and the
 * link, too.
 */
static void copies_for_ever(void **state)
{
    struct gqp qp[2];
    struct late t;
    struct fix *f;
    uint64_t begun;
    unsigned i;

    (void)state;
    late_begin(&t, false);
    f = t.f;
    t.rec->state = QHCA_SHRING_COPYING;
    begun = f->w.now;
    assert_int_equal(gqp_state(&f->s[0].qp, QHCA_QPS_ERR), QHCA_ST_OK);
    assert_in_range(f->w.now - begun, QHCA_MEMLINK_PATIENCE_NS,
                    QHCA_MEMLINK_PATIENCE_NS + 2 * MS);
    assert_int_equal(f->w.cuts, 1);
    fix_run(f, 1 * US);
    fix_cqe(f, 0, 1, QHCA_WC_WR_FLUSH_ERR);
    assert_null(fix_link(f, 0, 1));
    assert_non_null(fix_link(f, 0, 2));
    /* side 1 continues, over the wire */
    for (i = 0; i < 2; i++) {
        fix_qp(f, i, QHCA_QPT_RC, &qp[i]);
    }
    fix_connect(f, 0, &qp[0], 1, &qp[1]);
    f->packets = 0;
    for (i = 0; i < 3; i++) {
        fix_post_on(f, 1, &qp[1], (struct gwr){
                        .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 4 }, 0, 5000);
        fix_run(f, 1000 * US);
        fix_cqe(f, 1, 4, QHCA_WC_SUCCESS);
    }
    fix_has(f, 0, 1, 0, 5000);
    assert_true(f->packets > 0);
    for (i = 0; i < 2; i++) {
        assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
    }
    fix_drop(f);
}

/* ---- copies that end later ---- */

static struct ending {
    struct late *t;
    unsigned waited;            /* by the engine itself */
    uint64_t at;                /* when it ended, ns; 0: not yet */
    bool reborn;
} ending;

static void end_of_copy(struct late *t)
{
    t->rec->state = QHCA_SHRING_DONE;
    t->l->tx.ring->cons = t->l->tx.sent;
}

/* The peer has finished its copy, and rings if that was asked for. */
static void copy_ends(void *opaque, uint64_t arg)
{
    struct late *t = opaque;
    struct fix *f = t->f;
    struct side *s = &f->s[t->from];
    unsigned id = t->l->id;

    (void)arg;
    /* The command was executed.  Nothing says so yet. */
    fix_no_cqe(f, t->from);
    assert_true(s->e->ad->job.held);
    assert_false(s->n->kicked);
    assert_int_equal(f->w.cuts, 0);
    if (ending.reborn) {
        const struct qhca_ops ops = s->e->ops;

        /* the new adapter has no links, and no peer reads its memory */
        node_reborn(s->n, &ops);
        s->e = s->n->e;
    } else {
        end_of_copy(t);
        assert_true(atomic_exchange(&t->l->tx.ring->wants_room, 0));
        node_memlink_bell(s->n, id);
    }
    ending.at = f->w.now;
}

enum revoker { BY_MR, BY_MODIFY_MR, BY_ERR, BY_RESET, BY_DESTROY_QP,
               REVOKERS };

static void revoke(struct late *t, enum revoker how)
{
    struct side *s = &t->f->s[t->from];
    struct qhca_mpt m = { .access = QHCA_ACCESS_MASK };
    struct gcmd c = {
        .op = QHCA_CMD_MODIFY_MR, .obj = s->mr.key, .in = &m,
        .in_len = sizeof(m), .mask = QHCA_MR_M_ACCESS,
    };

    switch (how) {
    case BY_MR:
        assert_int_equal(gmr_destroy(&s->mr), QHCA_ST_OK);
        s->mr.key = 0;
        break;
    case BY_MODIFY_MR:
        guest_must(&s->g, &c);
        break;
    case BY_ERR:
        assert_int_equal(gqp_state(&s->qp, QHCA_QPS_ERR), QHCA_ST_OK);
        break;
    case BY_RESET:
        assert_int_equal(gqp_state(&s->qp, QHCA_QPS_RESET), QHCA_ST_OK);
        break;
    default:
        assert_int_equal(gqp_destroy(&s->qp), QHCA_ST_OK);
        s->qp.qpn = 0;
        break;
    }
}

static bool no_wait(void *opaque, unsigned id)
{
    (void)opaque;
    (void)id;
    ending.waited++;
    return false;
}

/*
 * A command that revokes what the peer is copying is completed when the copy
 * has ended; so are the WQEs of its QP.  The adapter does not wait meanwhile.
 */
static void completed_later(bool reborn)
{
    struct late t;
    unsigned how, reads;

    for (how = 0; how < 2 * REVOKERS; how++) {
        reads = how / REVOKERS;
        late_begin(&t, reads);
        ending = (struct ending){ .t = &t, .reborn = reborn };
        t.f->s[t.from].e->ops.memlink_wait = no_wait;
        t.rec->state = QHCA_SHRING_COPYING;
        world_call(&t.f->w, t.f->w.now + 300 * US, copy_ends, &t, 0);
        revoke(&t, how % REVOKERS);
        assert_true(ending.at && t.f->w.now - ending.at < 10 * US);
        assert_int_equal(ending.waited, 0);
        assert_int_equal(t.f->w.cuts, 0);
        if (how == BY_ERR) {
            fix_run(t.f, 10 * US);
            fix_cqe(t.f, 0, 1, QHCA_WC_WR_FLUSH_ERR);
        }
        assert_false(t.f->s[t.from].e->ad->job.held);
        fix_drop(t.f);
    }
}

static void command_later(void **state)
{
    (void)state;
    completed_later(false);
}

/* Saved meanwhile, and continued by another adapter. */
static void command_reborn(void **state)
{
    (void)state;
    completed_later(true);
}

/* The link is gone before the copy: there is nothing left to wait for. */
static void link_goes(void *opaque, uint64_t arg)
{
    struct late *t = opaque;

    (void)arg;
    fix_no_cqe(t->f, 0);
    assert_true(t->f->s[0].e->ad->job.held);
    ending.at = t->f->w.now;
    world_memlink_down(&t->f->w, 0, 1);
}

static void link_ends(void **state)
{
    struct late t;
    unsigned cut;

    (void)state;
    for (cut = 0; cut < 2; cut++) {
        late_begin(&t, false);
        ending = (struct ending){ .t = &t };
        t.f->s[0].e->ops.memlink_wait = no_wait;
        t.rec->state = QHCA_SHRING_COPYING;
        if (cut) {
            /* it is no longer used, but the peer may not know that yet */
            qhca_memlink_end(t.f->s[0].e, t.l->id);
            assert_true(t.l->dead);
        }
        world_call(&t.f->w, t.f->w.now + 300 * US, link_goes, &t, 0);
        revoke(&t, BY_ERR);
        assert_true(ending.at && t.f->w.now - ending.at < 10 * US);
        assert_int_equal(ending.waited, 0);
        fix_run(t.f, 10 * US);
        fix_cqe(t.f, 0, 1, QHCA_WC_WR_FLUSH_ERR);
        fix_drop(t.f);
    }
}

/* Reset while a command is held: it is forgotten, and the copy is waited for. */
static bool done_at_last(void *opaque, unsigned id)
{
    (void)opaque;
    assert_int_equal(id, ending.t->l->id);
    if (++ending.waited == 5) {
        end_of_copy(ending.t);
    }
    return true;
}

static void reset_waits(void **state)
{
    struct late t;
    unsigned how;
    bool held;

    (void)state;
    for (how = 0; how < 4; how++) {
        held = how & 1;
        late_begin(&t, false);
        ending = (struct ending){ .t = &t };
        t.f->s[0].e->ops.memlink_wait = done_at_last;
        t.rec->state = QHCA_SHRING_COPYING;
        if (how & 2) {
            qhca_memlink_end(t.f->s[0].e, t.l->id);
        }
        if (held) {
            submit(t.f, QHCA_CMD_DESTROY_QP, t.f->s[0].qp.qpn, NULL, 0, 0);
        }
        assert_int_equal(t.f->s[0].e->ad->job.held, held);
        node_flr(t.f->s[0].n);
        assert_false(t.f->s[0].e->ad->job.held);
        assert_int_equal(ending.waited, 5);
        assert_int_equal(t.f->w.cuts, 0);
        assert_int_equal(t.rec->state, QHCA_SHRING_DONE);
        /* nothing is left of it when the adapter is used again */
        fix_run(t.f, 2000 * MS);
        assert_int_equal(t.f->w.cuts, 0);
        fix_drop(t.f);
    }
}

/* ---- what must not wait, and what must not be told ---- */

static struct fix *copied;      /* for the operation memlink_wait */

/* Software is not told anything while the adapter waits for the copy. */
static bool told_nothing(void *opaque, unsigned id)
{
    (void)opaque;
    (void)id;
    ending.waited++;
    fix_no_cqe(copied, 0);
    return false;
}

/* A WRITE of side 0, which side 1 is copying. */
static void copying(struct late *t)
{
    late_begin(t, false);
    ending = (struct ending){ .t = t };
    copied = t->f;
    t->rec->state = QHCA_SHRING_COPYING;
    t->f->s[0].e->ops.memlink_wait = no_wait;
}

/* MODIFY_QP to ERR is held. */
static void hold_err(struct late *t)
{
    struct qhca_qpc c = { .state = QHCA_QPS_ERR };

    submit(t->f, QHCA_CMD_MODIFY_QP, t->f->s[0].qp.qpn, &c, sizeof(c),
           QHCA_QP_M_STATE);
    assert_true(t->f->s[0].e->ad->job.held);
}

static bool held(const struct late *t)
{
    return t->f->s[0].e->ad->job.held;
}

/* The submitted command is completed now. */
static void take(struct late *t)
{
    struct guest *g = &t->f->s[0].g;
    uint32_t slot = g->acq_cons & ((1u << g->aq_shift) - 1);
    const struct qhca_aq_cqe *cqe = gmem_ptr(g->m, g->acq + 16 * slot, 16);

    assert_int_equal(cqe->phase, !(g->acq_cons >> g->aq_shift & 1));
    assert_int_equal(cqe->status, QHCA_ST_OK);
    g->acq_cons++;
}

/* A link has ended during a copy.  Other commands are completed at once. */
static void other_commands(void **state)
{
    struct gmr other;
    struct late t;

    (void)state;
    copying(&t);
    qhca_memlink_end(t.f->s[0].e, t.l->id);
    submit(t.f, QHCA_CMD_NOP, 0, NULL, 0, 0);
    take(&t);
    gmr_create(&other, &t.f->s[0].g, 8192, IOVA, QHCA_ACCESS_MASK, NULL);
    assert_int_equal(gmr_destroy(&other), QHCA_ST_OK);
    assert_int_equal(ending.waited, 0);
    assert_true(t.l->unsettled);
    submit(t.f, QHCA_CMD_DESTROY_MR, t.f->s[0].mr.key, NULL, 0, 0);
    assert_true(held(&t));
    assert_string_equal(node_loads(t.f->s[0].n, &t.f->s[0].e->cfg), "");
    fix_drop(t.f);
}

/* The peer of a link that has ended neither finishes nor leaves. */
static void patience(void **state)
{
    struct late t;
    unsigned sync;

    (void)state;
    for (sync = 0; sync < 2; sync++) {
        copying(&t);
        qhca_memlink_end(t.f->s[0].e, t.l->id);
        hold_err(&t);
        fix_run(t.f, 900 * MS);
        assert_true(held(&t));
        fix_no_cqe(t.f, 0);
        if (sync) {
            qhca_memlinks_revoke(t.f->s[0].e);
            assert_int_equal(ending.waited, 1);
            fix_run(t.f, 1 * MS);
        } else {
            fix_run(t.f, 200 * MS);
        }
        take(&t);
        fix_cqe(t.f, 0, 1, QHCA_WC_WR_FLUSH_ERR);
        /* it is not waited for again */
        assert_int_equal(gmr_destroy(&t.f->s[0].mr), QHCA_ST_OK);
        t.f->s[0].mr.key = 0;
        assert_int_equal(ending.waited, sync);
        fix_drop(t.f);
    }
}

/* Commands are completed in order, so those behind cut the patience short. */
static void command_behind(void **state)
{
    struct late t;

    (void)state;
    copying(&t);
    hold_err(&t);
    fix_run(t.f, 100 * MS);
    submit(t.f, QHCA_CMD_NOP, 0, NULL, 0, 0);
    fix_run(t.f, QHCA_MEMLINK_HURRY_NS - MS);
    assert_true(held(&t));
    assert_int_equal(t.f->w.cuts, 0);
    fix_run(t.f, 2 * MS);
    take(&t);
    take(&t);
    assert_int_equal(t.f->w.cuts, 1);
    fix_cqe(t.f, 0, 1, QHCA_WC_WR_FLUSH_ERR);
    assert_int_equal(ending.waited, 0);
    fix_drop(t.f);
}

/* QPs of sides 0 and 2, which have nothing to do with the copy. */
static void connect_others(struct late *t, struct gqp qp[2])
{
    fix_qp(t->f, 0, QHCA_QPT_RC, &qp[0]);
    fix_qp(t->f, 2, QHCA_QPT_RC, &qp[1]);
    fix_connect(t->f, 0, &qp[0], 2, &qp[1]);
}

static void drop_others(struct late *t, struct gqp qp[2])
{
    unsigned i;

    end_of_copy(t);
    node_memlink_bell(t->f->s[0].n, t->l->id);
    fix_run(t->f, 10 * US);
    take(t);
    for (i = 0; i < 2; i++) {
        assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
    }
    fix_drop(t->f);
}

/* Another QP fails meanwhile: its completions do not wait. */
static void other_qp_fails(void **state)
{
    struct gqp qp[2];
    struct late t;
    unsigned i;

    (void)state;
    copying(&t);
    connect_others(&t, qp);
    hold_err(&t);
    for (i = 0; i < 2; i++) {
        fix_post_on(t.f, 0, &qp[0], (struct gwr){
                        .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 9 + i,
                        .num_sge = 1, .sge[0] = { IOVA, 64, 0xdead00 },
                        .remote_addr = IOVA, .rkey = 1 }, 0, 64);
    }
    fix_run(t.f, 10 * US);
    fix_cqe(t.f, 0, 9, QHCA_WC_LOC_PROT_ERR);
    fix_cqe(t.f, 0, 10, QHCA_WC_WR_FLUSH_ERR);
    assert_true(held(&t));
    assert_int_equal(ending.waited, 0);
    assert_int_equal(t.f->w.cuts, 0);
    drop_others(&t, qp);
}

/* Another adapter's bad request is rejected meanwhile. */
static void nak_on_time(void **state)
{
    struct gqp qp[2];
    struct late t;

    (void)state;
    copying(&t);
    connect_others(&t, qp);
    hold_err(&t);
    fix_post_on(t.f, 2, &qp[1], (struct gwr){
                    .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 9,
                    .remote_addr = IOVA, .rkey = 1 }, 0, 64);
    fix_run(t.f, 20 * MS);
    fix_cqe(t.f, 2, 9, QHCA_WC_REM_ACCESS_ERR);
    assert_true(held(&t));
    drop_others(&t, qp);
}

/*
 * The WQE fails whose memory is being copied: by its retries, or because its
 * region is gone.  Its completion follows the end of the copy.
 */
static void own_wqe_fails(void **state)
{
    struct late t;
    unsigned how;

    (void)state;
    for (how = 0; how < 3; how++) {
        copying(&t);
        t.f->s[0].e->ops.memlink_wait = told_nothing;
        if (how == 2) {
            qhca_memlink_end(t.f->s[0].e, t.l->id);
        }
        if (how) {
            submit(t.f, QHCA_CMD_DESTROY_MR, t.f->s[0].mr.key, NULL, 0, 0);
            assert_true(held(&t));
        }
        fix_run(t.f, how ? 900 * MS : 20000 * MS);
        assert_true(ending.waited > 0);
        fix_cqe(t.f, 0, 1, how ? QHCA_WC_LOC_PROT_ERR :
                                 QHCA_WC_RETRY_EXC_ERR);
        assert_false(held(&t));
        fix_drop(t.f);
    }
}

/* The doorbell goes backwards past the command: fatal, and it can be saved. */
static void doorbell_backwards(void **state)
{
    struct late t;

    (void)state;
    copying(&t);
    submit(t.f, QHCA_CMD_DESTROY_QP, t.f->s[0].qp.qpn, NULL, 0, 0);
    assert_true(held(&t));
    node_reg_write(t.f->s[0].n, QHCA_REG_ASQ_DB,
                   t.f->s[0].e->ad->asq_cons, 4);
    assert_int_equal(t.f->s[0].e->fatal, QHCA_FATAL_AQ_INDEX);
    assert_string_equal(node_loads(t.f->s[0].n, &t.f->s[0].e->cfg), "");
    fix_drop(t.f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_for_ever), cmocka_unit_test(command_later),
        cmocka_unit_test(command_reborn), cmocka_unit_test(link_ends),
        cmocka_unit_test(reset_waits), cmocka_unit_test(other_commands),
        cmocka_unit_test(patience),
        cmocka_unit_test(command_behind), cmocka_unit_test(other_qp_fails),
        cmocka_unit_test(nak_on_time), cmocka_unit_test(own_wqe_fails),
        cmocka_unit_test(doorbell_backwards),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
