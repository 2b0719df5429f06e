/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Calls of the engine whose cost is not accesses to memory but numbers of
 * objects: how many are destroyed, detached or examined in one call.
 */
#include <stdio.h>

#ifdef SANITIZED
#include <sanitizer/allocator_interface.h>
#endif

#include "die.h"
#include "queues/tags.h"
#include "unit.h"

/* The maximum for one call of the engine. */
#define FREED_MAX   1600u       /* parts of objects */
#define COST_MAX    16000u      /* what the engine accounts for */

static struct {
    unsigned freed, most_freed; /* in this call, in the most expensive one */
    uint32_t cost, most_cost;
    unsigned calls;
} t;

#ifdef SANITIZED
static void allocated(const volatile void *p, size_t size)
{
    (void)p;
    (void)size;
}

static void freed(const volatile void *p)
{
    t.freed += p != NULL;
}
#endif

static void called(struct node *n)
{
    uint32_t cost = n->e->cost - t.cost;

    t.calls++;
    t.most_freed = t.freed > t.most_freed ? t.freed : t.most_freed;
    t.most_cost = cost > t.most_cost ? cost : t.most_cost;
    t.freed = 0;
    t.cost = n->e->cost;
}

/* Count from now on. */
static void watch(struct unit *u)
{
    memset(&t, 0, sizeof(t));
    t.cost = u->e->cost;
    u->n->on_call = called;
}

static void within_limits(const char *scene)
{
    printf("%s: %u calls of the engine, at most %u freed, a cost of %u\n",
           scene, t.calls, t.most_freed, t.most_cost);
    assert_in_range(t.most_freed, 0, FREED_MAX);
    assert_in_range(t.most_cost, 0, COST_MAX);
}

static uint32_t make_window(struct unit *u)
{
    struct qhca_mpt c = { .flags = QHCA_MR_F_MW2, .pd = u->g.pd };

    return guest_create(&u->g, QHCA_CMD_CREATE_MW, &c, sizeof(c));
}

/* ---- resets ---- */

#define WINDOWS     5000u
#define QPS         64u

/* Not connected to a peer: their requests get no answer. */
static void make_busy_qps(struct unit *u, struct gqp *qp, struct gcq *cq)
{
    struct gqp_init in = { .type = QHCA_QPT_RC, .sq_shift = 2, .sq_stride = 6,
                           .scq = cq, .rcq = cq };
    struct gwr wr = { .opcode = QHCA_WQE_SEND };
    struct gqp_attr a;
    unsigned i;

    gcq_create(cq, &u->g, 8, NULL, u->g.eq[1].eqn);
    gqp_attr_default(&a);
    for (i = 0; i < QPS; i++) {
        gqp_create(&qp[i], &u->g, &in);
        a.dest_qpn = qp[i].qpn;
        gqp_to_init(&qp[i], &a);
        gqp_to_rtr(&qp[i], &u->w.node[1], &a);
        gqp_to_rts(&qp[i], &a);
        assert_true(gqp_post_send(&qp[i], &wr));
        gqp_ring(&qp[i]);
    }
}

static void drop_qps(struct gqp *qp, struct gcq *cq)
{
    unsigned i;

    for (i = 0; i < QPS; i++) {
        gbuf_free(&qp[i].sq);
    }
    gbuf_free(&cq->buf);
}

/*
 * Resets of an adapter with many objects, of which some have work, timers and
 * events.  New objects with the same numbers work while the old ones go.
 */
static void resets(void **state)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    static struct gqp qp[QPS];
    struct unit u = { 0 };
    struct gcq cq;
    unsigned i, n;

    (void)state;
    world_init(&u.w, 2, 1, NULL);
    wire_perfect(&u.w.wire);
    u.n = &u.w.node[0];
    u.e = u.n->e;
    u.m = &u.n->mem;
    watch(&u);
    for (n = 0; n < 3; n++) {
        guest_start(&u.g, u.n, n, &cfg);
        make_busy_qps(&u, qp, &cq);
        for (i = 0; i < WINDOWS; i++) {
            make_window(&u);
        }
        t.freed = 0;
        qhca_reg_write(u.e, QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
        called(u.n);
        assert_int_equal(u.e->q->qps.used, 0);
        assert_int_equal(u.e->mem->mrs.used, 0);
        assert_non_null(u.e->ad->remains);
        guest_drop(&u.g);
        drop_qps(qp, &cq);
        if (n == 1) {
            world_run(&u.w, 1000000);
            assert_null(u.e->ad->remains);
        }
    }
    guest_start(&u.g, u.n, n, &cfg);
    make_busy_qps(&u, qp, &cq);
    world_run(&u.w, 1000000000);
    assert_null(u.e->ad->remains);
    /* they retry, and are alone */
    assert_int_equal(u.e->q->qps.used, QPS);
    assert_int_equal(u.e->mem->mrs.used, 0);
    within_limits("resets");
    qhca_reg_write(u.e, QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
    guest_drop(&u.g);
    drop_qps(qp, &cq);
    u.n->on_call = NULL;
    world_fini(&u.w);
}

/* An adapter that ends before all are destroyed leaks none. */
static void reset_and_end(void **state)
{
    struct unit *u = *state;
    unsigned i;

    for (i = 0; i < WINDOWS; i++) {
        make_window(u);
    }
    qhca_reset(u->e);
    assert_non_null(u->e->ad->remains);
    guest_drop(&u->g);
    guest_start(&u->g, u->n, 1, NULL);
}

/* An adapter that is unplugged: its objects, and those of before a reset. */
static void freed_in_parts(void **state)
{
    static struct gqp qp[QPS];
    struct unit u = { 0 };
    unsigned i, n, parts = 0;
    struct gcq cq;
    bool gone;

    (void)state;
    world_init(&u.w, 2, 1, NULL);
    u.n = &u.w.node[0];
    u.e = u.n->e;
    for (n = 0; n < 2; n++) {
        guest_start(&u.g, u.n, n, NULL);
        make_busy_qps(&u, qp, &cq);
        for (i = 0; i < WINDOWS; i++) {
            make_window(&u);
        }
        if (n == 0) {
            qhca_reset(u.e);
            assert_non_null(u.e->ad->remains);
        }
        guest_drop(&u.g);
        drop_qps(qp, &cq);
    }
    memset(&t, 0, sizeof(t));
    do {
        t.freed = 0;
        gone = qhca_free_part(u.e, 512);
        t.most_freed = t.freed > t.most_freed ? t.freed : t.most_freed;
        parts++;
    } while (!gone);
    u.n->e = NULL;
    printf("%u parts, at most %u freed\n", parts, t.most_freed);
    assert_in_range(parts, WINDOWS / 512, 4 * WINDOWS / 512);
    assert_in_range(t.most_freed, 0, FREED_MAX);
    world_fini(&u.w);
}

/* ---- commands that are done in parts ---- */

#define BOUND       3000u
#define IOVA        0x7000000ull

/* What happens between the parts of DESTROY_QP. */
static struct {
    struct unit *u;
    struct gqp *qp;
    uint32_t window;            /* the first that is taken away */
    bool reborn;
    unsigned rung;
} between;

/* Save the adapter and load it. */
static void save_and_load(struct qhca *e)
{
    char why[160];
    size_t len;
    void *buf;

    assert_true(qhca_save(e, &buf, &len));
    CHECK(qhca_load(e, buf, len, why, sizeof(why)), "%s", why);
    free(buf);
}

static struct qhca_mw *window_at(struct qhca *e, uint32_t key)
{
    return qhca_mr_mw(qhca_idr_get(&e->mem->mrs,
                                   key >> QHCA_KEY_INDEX_SHIFT));
}

/* Another thread rings for a WQE that binds @between.window again. */
static void part_done(struct node *n)
{
    uint32_t qpn = between.qp->qpn;

    called(n);
    if (!qhca_qp_get(n->e, qpn) || !n->e->ad->job.busy) {
        return;
    }
    if (between.reborn) {
        save_and_load(n->e);
    }
    CHECK(!window_at(n->e, between.window)->bound, "it is the first");
    qhca_db_write(n->e, ((uint64_t)between.qp->uar << between.u->g.db_shift) +
                  QHCA_DB_SQ, qpn | UINT64_C(1) << QHCA_DB_INDEX_SHIFT, 8);
    CHECK(!window_at(n->e, between.window)->bound, "it was bound again");
    between.rung++;
    called(n);
}

/* A QP is destroyed that has bound thousands of windows. */
static void windows_of(struct unit *u, bool reborn)
{
    struct gqp_init in = { .type = QHCA_QPT_RC, .sq_shift = 2,
                           .sq_stride = 6 };
    struct gwr wr = { .opcode = QHCA_WQE_BIND_MW, .arg0 = IOVA, .arg1 = 64,
                      .rarg = QHCA_ACCESS_REMOTE_READ };
    static uint32_t window[BOUND];
    struct gqp_attr a;
    struct gmr mr;
    struct gqp qp;
    struct gcq cq;
    unsigned i;

    gcq_create(&cq, &u->g, 4, NULL, u->g.eq[1].eqn);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    gqp_attr_default(&a);
    a.dest_qpn = qp.qpn;
    gqp_to_init(&qp, &a);
    gqp_to_rtr(&qp, u->n, &a);
    gqp_to_rts(&qp, &a);
    gmr_create(&mr, &u->g, 4096, IOVA,
               QHCA_ACCESS_MW_BIND | QHCA_ACCESS_LOCAL_WRITE, NULL);
    for (i = 0; i < BOUND; i++) {
        window[i] = make_window(u);
        assert_int_equal(unit_bind(u, qp.qpn, window[i], mr.key, IOVA, 64,
                                   QHCA_ACCESS_REMOTE_READ), QHCA_SYN_NONE);
    }
    wr.rkey = window[0];
    wr.remote_addr = mr.key;
    assert_true(gqp_post_send(&qp, &wr));
    watch(u);
    between.u = u;
    between.qp = &qp;
    between.window = window[0];
    between.reborn = reborn;
    between.rung = 0;
    u->n->on_call = part_done;
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_in_range(between.rung, BOUND / 1100, 100);
    if (!reborn) {
        within_limits("windows of a QP");
        assert_in_range(t.calls, BOUND / 1100, 100);
    }
    u->n->on_call = NULL;
    /* they are not bound any more, so their region can go */
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    for (i = 0; i < BOUND; i++) {
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, window[i]),
                         QHCA_ST_OK);
    }
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

static void windows_of_a_qp(void **state)
{
    windows_of(*state, false);
}

/* The adapter is saved and loaded between the parts of the command. */
static void windows_of_a_qp_reborn(void **state)
{
    windows_of(*state, true);
}

#define TARGETS     1000u

/* An SRQ is destroyed that thousands of XRC targets may be receiving from. */
static void targets_of(struct unit *u, unsigned reborn)
{
    static struct gqp qp[TARGETS];
    struct gqp_init in = { .type = QHCA_QPT_XRC_TGT };
    struct gsrq srq, other;
    struct gcq cq;
    unsigned i;

    gcq_create(&cq, &u->g, 4, NULL, u->g.eq[1].eqn);
    in.xrcd = guest_create(&u->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    gsrq_create_xrc(&srq, &u->g, 4, 6, u->g.pd, in.xrcd, &cq);
    gsrq_create_xrc(&other, &u->g, 4, 6, u->g.pd, in.xrcd, &cq);
    for (i = 0; i < TARGETS; i++) {
        struct qhca_srq *of = qhca_idr_get(&u->e->q->srqs,
                                           i & 1 ? srq.srqn : other.srqn);

        gqp_create(&qp[i], &u->g, &in);
        qhca_xrc_bind(qhca_qp_get(u->e, qp[i].qpn), of);
    }
    watch(u);
    u->w.reborn = reborn;
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    u->w.reborn = 0;
    if (!reborn) {
        within_limits("targets of an SRQ");
        assert_in_range(t.calls, TARGETS / 140, 100);
    }
    u->n->on_call = NULL;
    for (i = 0; i < TARGETS; i++) {
        assert_int_equal(!qhca_qp_get(u->e, qp[i].qpn)->srq, i & 1);
    }
    /* again, with some of them */
    for (i = 0; i < TARGETS; i += 3) {
        assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
    }
    assert_int_equal(gsrq_destroy(&other), QHCA_ST_OK);
    for (i = 0; i < TARGETS; i++) {
        if (i % 3) {
            assert_null(qhca_qp_get(u->e, qp[i].qpn)->srq);
            assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
        }
    }
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_XRCD, in.xrcd),
                     QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

static void targets_of_an_srq(void **state)
{
    targets_of(*state, 0);
}

static void targets_of_an_srq_reborn(void **state)
{
    targets_of(*state, 1);
}

#define EVENTS      3000u

/* An EQ is destroyed at which thousands of objects have events pending. */
static void events_of_an_eq(void **state)
{
    static struct qhca_event_src src[EVENTS];
    struct unit *u = *state;
    struct qhca_eqc c = { .shift = 1 };
    struct gbuf ring;
    struct qhca_eq *eq;
    uint32_t eqn;
    unsigned i;

    gbuf_make(&ring, u->m, 2 * sizeof(struct qhca_eqe), &gbuf_flat4k, true, 0,
              &u->g.rng);
    gbuf_allow(&ring, 0, ring.len, GMEM_RW);
    c.buf = ring.d;
    eqn = guest_create(&u->g, QHCA_CMD_CREATE_EQ, &c, sizeof(c));
    eq = qhca_idr_get(&u->e->q->eqs, eqn);
    for (i = 0; i < EVENTS; i++) {
        qhca_event_init(&src[i], i);
        qhca_event(u->e, eq, &src[i], QHCA_EV_PORT, 0);
    }
    assert_false(qhca_list_empty(&eq->pending));
    watch(u);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_EQ, eqn),
                     QHCA_ST_OK);
    within_limits("events of an EQ");
    assert_in_range(t.calls, EVENTS / 1100, 100);
    u->n->on_call = NULL;
    gbuf_free(&ring);
}

/* ---- searches ---- */

/* Multicast groups that share a slot of the hash: some are refused. */
static void groups_alike(void **state)
{
    struct unit *u = *state;
    struct gqp_init in = { .type = QHCA_QPT_UD };
    struct qhca_mcg mcg = { .mgid = { 0xff, 0x0e } };
    unsigned refused = 0, taken = 0;
    struct gqp qp;
    struct gcq cq;
    uint32_t i;

    gcq_create(&cq, &u->g, 4, NULL, u->g.eq[1].eqn);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    for (i = 0; taken + refused < 100; i++) {
        memcpy(mcg.mgid + 12, &i, sizeof(i));
        if (qhca_mcg_slot(mcg.mgid)) {
            continue;
        }
        if (unit_cmd(u, QHCA_CMD_ATTACH_MC, qp.qpn, 0, &mcg, sizeof(mcg),
                     NULL) == QHCA_ST_OK) {
            taken++;
        } else {
            refused++;
        }
    }
    assert_int_equal(taken, 64);
    /* another slot has room */
    while (!qhca_mcg_slot(mcg.mgid)) {
        mcg.mgid[15]++;
    }
    assert_int_equal(unit_cmd(u, QHCA_CMD_ATTACH_MC, qp.qpn, 0, &mcg,
                              sizeof(mcg), NULL), QHCA_ST_OK);
    qhca_reset(u->e);
    guest_drop(&u->g);
    guest_start(&u->g, u->n, 1, NULL);
    gbuf_free(&cq.buf);
}

/* A message whose tag no entry of a long list has. */
static void tags_alike(void **state)
{
    struct unit *u = *state;
    struct gtm_init ti = { .max_tags = QHCA_TM_MAX_TAGS, .ops_shift = 4,
                           .ops_stride = 7 };
    struct gtm_op o = { .opcode = QHCA_WQE_TAG_ADD, .mask = UINT64_MAX };
    struct qhca_srq *inside;
    struct gsrq srq;
    struct gcq cq;
    uint32_t cost;
    unsigned i;

    gcq_create(&cq, &u->g, 4, NULL, u->g.eq[1].eqn);
    ti.cq = &cq;
    gsrq_create_tm(&srq, &u->g, 4, 6, NULL, NULL, &ti);
    for (i = 0; i < QHCA_TM_MAX_TAGS; i++) {
        o.handle = i;
        o.tag = i;
        assert_true(gtm_post(&srq, &o, NULL));
        gtm_ring(&srq);
        assert_true(world_settle(&u->w, 1000000000));
    }
    inside = qhca_idr_get(&u->e->q->srqs, srq.srqn);
    assert_int_equal(inside->tm->count, QHCA_TM_MAX_TAGS);
    cost = u->e->cost;
    assert_null(qhca_tm_match(u->e, inside->tm, UINT64_MAX));
    assert_int_equal(u->e->cost - cost, QHCA_TM_MAX_TAGS / 8);
    cost = u->e->cost;
    assert_non_null(qhca_tm_match(u->e, inside->tm, 15));
    assert_int_equal(u->e->cost - cost, 2);
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

#define RULES       4000u
#define TRAPS       64u

/*
 * Rules that differ in nothing that a lookup could use: they apply to accepted
 * frames only, and are followed by others that all want a copy.
 */
static void rules_alike(void **state)
{
    static uint32_t flow[RULES + TRAPS];
    struct unit *u = *state;
    struct gqp_init in = { .type = QHCA_QPT_RAW, .rq_shift = 7,
                           .rq_stride = 5 };
    struct qhca_flow f = { .type = QHCA_FLOW_NORMAL,
                           .flags = QHCA_FLOW_F_ADDR_FILTER };
    uint8_t frame[64] = { 2, 0, 0, 0, 0, 0x77, 2, 0, 0, 0, 0, 7, 0x88, 0xb5 };
    uint64_t dropped;
    struct gqp qp;
    struct gcq cq;
    uint8_t st;
    unsigned i;

    gcq_create(&cq, &u->g, 8, NULL, u->g.eq[1].eqn);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    for (st = QHCA_QPS_INIT; st <= QHCA_QPS_RTR; st++) {
        assert_int_equal(gqp_state(&qp, st), QHCA_ST_OK);
    }
    f.qpn = qp.qpn;
    for (i = 0; i < RULES + TRAPS; i++) {
        if (i >= RULES) {
            f.flags = QHCA_FLOW_F_DONT_TRAP;
        }
        flow[i] = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &f, sizeof(f));
    }
    dropped = unit_stat(u, QHCA_STAT_RAW_RX_DROPPED);
    watch(u);
    world_inject(&u->w, 0, frame, sizeof(frame));
    within_limits("rules alike");
    /* a few that had no receive WQE, and one for those that were too many */
    dropped = unit_stat(u, QHCA_STAT_RAW_RX_DROPPED) - dropped;
    assert_in_range(dropped, 2, TRAPS / 2);
    u->n->on_call = NULL;
    /* without most rules that do not apply, all others get a copy */
    while (i-- > 100) {
        if (i < RULES) {
            assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW,
                                          flow[i]), QHCA_ST_OK);
        }
    }
    dropped = unit_stat(u, QHCA_STAT_RAW_RX_DROPPED);
    world_inject(&u->w, 0, frame, sizeof(frame));
    assert_int_equal(unit_stat(u, QHCA_STAT_RAW_RX_DROPPED) - dropped, TRAPS);
    for (i = 0; i < RULES + TRAPS; i++) {
        if (i < 100 || i >= RULES) {
            assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW,
                                          flow[i]), QHCA_ST_OK);
        }
    }
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resets), cmocka_unit_test(freed_in_parts),
        cmocka_unit_test_setup_teardown(reset_and_end, unit_setup,
                                        unit_abandon),
        UNIT(windows_of_a_qp),
        UNIT(windows_of_a_qp_reborn),
        UNIT(targets_of_an_srq),
        UNIT(targets_of_an_srq_reborn),
        UNIT(events_of_an_eq),
        UNIT(groups_alike),
        UNIT(tags_alike),
        UNIT(rules_alike),
    };

#ifdef SANITIZED
    __sanitizer_install_malloc_and_free_hooks(allocated, freed);
#endif
    return cmocka_run_group_tests(tests, NULL, NULL);
}
