/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host has no memory.  Each allocation of an operation fails in turn: the
 * operation reports that, leaves nothing behind, and succeeds when there is
 * memory again.
 */
#include "unit.h"
#include "peer.h"
#include "godp.h"
#include "nomem.h"
#include "reborn.h"
#include "memlink/shared_ring.h"
#include "observe/breakpoint.h"
#include "observe/fault_state.h"
#include "transport/rc.h"

/* ---- the adapter ---- */

static void no_adapter(void **state)
{
    struct qhca_config cfg = { .mac = { 2, 0, 0, 0, 0, 1 } };
    const char *err = NULL;
    struct qhca *e;
    unsigned n;

    (void)state;
    qhca_config_default(&cfg);
    cfg.max_qp = cfg.max_cq = cfg.max_srq = cfg.max_mr = cfg.max_pd = 16;
    for (n = 1;; n++) {
        nomem_at(n);
        e = qhca_new(&cfg, &(struct qhca_ops){ 0 }, NULL, &err);
        if (!nomem_end()) {
            break;
        }
        assert_null(e);
        assert_string_equal(err, "out of memory");
    }
    assert_true(n > 30);        /* two of each of 13 tables, and more */
    assert_non_null(e);
    assert_null(err);
    qhca_free(e);
}

/* A reset sets many objects aside; without memory it destroys them at once. */
static void no_reset(void **state)
{
    struct unit *u = *state;
    unsigned i, n;

    for (n = 1; n <= 2; n++) {
        for (i = 0; i < 600; i++) {
            guest_create(&u->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
        }
        nomem_at(n);
        qhca_reset(u->e);
        assert_true(nomem_end());
        assert_int_equal(u->e->q->xrcds.used, 0);
        assert_null(u->e->ad->remains);
        guest_drop(&u->g);
        guest_start(&u->g, u->n, 1, NULL);
    }
}

/* ---- objects ---- */

/* A command that creates an object, and the one that destroys it. */
struct creation {
    const char *what;
    uint8_t op, undo;
    uint32_t obj;
    uint64_t arg;
    const void *in;
    uint32_t len;
    unsigned allocs;            /* allocations that it makes */
};

static void create(struct unit *u, const struct creation *k)
{
    struct gcmd c;
    uint8_t status;
    unsigned n;

    for (n = 1;; n++) {
        c = (struct gcmd){ .op = k->op, .obj = k->obj, .arg = k->arg,
                           .in = k->in, .in_len = k->len };
        nomem_at(n);
        status = guest_cmd(&u->g, &c);
        if (!nomem_end()) {
            break;
        }
        if (status != QHCA_ST_NO_RESOURCES) {
            fail_msg("%s: status %u at allocation %u", k->what, status, n);
        }
        /* and what is left could be the state of an adapter */
        assert_string_equal(node_loads(u->n, &u->e->cfg), "");
    }
    if (status != QHCA_ST_OK || n != k->allocs + 1) {
        fail_msg("%s: status %u, %u allocations", k->what, status, n - 1);
    }
    c = (struct gcmd){ .op = k->undo, .in = k->in, .in_len = k->len,
                       .obj = k->undo == QHCA_CMD_DETACH_MC ? k->obj :
                                                              c.robj };
    if (k->undo != QHCA_CMD_DETACH_MC) {
        c.in_len = 0;
    }
    assert_int_equal(guest_cmd(&u->g, &c), QHCA_ST_OK);
}

#define CREATION(kind, in, allocs) \
    { #kind, QHCA_CMD_CREATE_##kind, QHCA_CMD_DESTROY_##kind, 0, 0, &(in), \
      sizeof(in), allocs }

/* Buffers and records of the objects. */
struct mem {
    struct gbuf ring, idx;
    uint64_t dbrec, idx_dbrec;
};

static void no_objects(void **state)
{
    struct unit *u = *state;
    struct guest *g = &u->g;
    struct gqp_init ud_in = { .type = QHCA_QPT_UD, .sq_shift = 2,
                              .sq_stride = 7, .rq_shift = 2,
                              .rq_stride = 5 };
    struct qhca_mcg mcg = { .mgid = { 0xff, 0x0e, [15] = 1 } };
    struct gtm_init tm_in = { .max_tags = 8, .ops_shift = 4,
                              .ops_stride = 7 };
    struct mem m;
    struct gcq cq;
    struct gqp ud;
    struct gsrq tm;
    uint32_t rqn, rqtn;
    unsigned i;

    u->m->unchecked = true;
    memset(&m, 0, sizeof(m));
    gbuf_make(&m.ring, u->m, 4096, &gbuf_direct, true, 0, &g->rng);
    gbuf_make(&m.idx, u->m, 4096, &gbuf_direct, true, 0, &g->rng);
    m.dbrec = guest_dbrec(g, true);
    m.idx_dbrec = guest_dbrec(g, true);
    gcq_create(&cq, g, 4, NULL, 1);
    ud_in.scq = ud_in.rcq = &cq;
    gqp_create(&ud, g, &ud_in);
    tm_in.cq = &cq;
    gsrq_create_tm(&tm, g, 3, 6, NULL, NULL, &tm_in);

    struct qhca_eqc eqc = { .buf = m.ring.d, .shift = 4 };
    struct qhca_cqc cqc = { .buf = m.ring.d, .shift = 4, .uar = g->uar,
                            .dbrec = m.dbrec, .eqn = 1 };
    struct qhca_mpt mr = { .buf = m.ring.d, .len = m.ring.d.len,
                           .pd = g->pd };
    struct qhca_mpt mw = { .flags = QHCA_MR_F_MW1, .pd = g->pd };
    struct qhca_srqc srq = { .buf = m.ring.d, .idx = m.idx.d, .shift = 3,
                             .stride = 6, .uar = g->uar, .pd = g->pd,
                             .dbrec = m.dbrec };
    struct qhca_srqc tag_srq = srq;
    struct qhca_qpc rc = { .type = QHCA_QPT_RC, .pd = g->pd, .uar = g->uar,
                           .send_cqn = cq.cqn, .recv_cqn = cq.cqn };
    struct qhca_qpc tag_qp = rc, rss;
    struct qhca_eth_qc esq = { .buf = m.ring.d, .cqn = cq.cqn, .shift = 3,
                               .stride = 6 };
    struct qhca_eth_qc erq = { .buf = m.ring.d, .cqn = cq.cqn, .shift = 3,
                               .stride = 4, .dbrec = m.dbrec };
    struct qhca_shaperc shaper = { .rate = 1000000000, .burst = 100000,
                                   .weight = 1 };
    struct qhca_wqc wq = { .buf = m.ring.d, .cqn = cq.cqn, .shift = 3,
                           .stride = 5, .uar = g->uar, .pd = g->pd,
                           .dbrec = m.dbrec };
    struct qhca_flow flow = { .type = QHCA_FLOW_ALL_DEFAULT };

    mr.buf.len = mr.len;
    srq.buf.len = 8 << 6;
    srq.idx.len = 8 * 4;
    eqc.buf.len = 16 * sizeof(struct qhca_eqe);
    cqc.buf.len = 16 * sizeof(struct qhca_cqe);
    esq.buf.len = 8 << 6;
    erq.buf.len = 8 << 4;
    wq.buf.len = 8 << 5;
    tag_srq = srq;
    tag_srq.flags = QHCA_SRQ_F_TM;
    tag_srq.cqn = cq.cqn;
    tag_srq.ops = m.idx.d;
    tag_srq.ops.len = 16 << 6;
    tag_srq.ops_shift = 4;
    tag_srq.ops_stride = 6;
    tag_srq.max_tags = 8;
    tag_qp.flags = QHCA_QP_F_SRQ;
    tag_qp.srqn = tm.srqn;

    rqn = guest_create(g, QHCA_CMD_CREATE_ETH_RQ, &erq, sizeof(erq));
    struct gcmd rqt = { .op = QHCA_CMD_CREATE_RQT, .arg = QHCA_RQT_ETH_RQ,
                        .in = &rqn, .in_len = sizeof(rqn) };
    rqtn = guest_must(g, &rqt);
    rss = guest_rss_context(g, rqtn, 0);
    flow.qpn = guest_create(g, QHCA_CMD_CREATE_QP, &rss, sizeof(rss));

    {
        const struct creation all[] = {
            { "XRCD", QHCA_CMD_ALLOC_XRCD, QHCA_CMD_FREE_XRCD, .allocs = 1 },
            CREATION(EQ, eqc, 1),
            CREATION(CQ, cqc, 1),
            CREATION(MR, mr, 1),
            { "MW", QHCA_CMD_CREATE_MW, QHCA_CMD_DESTROY_MR, 0, 0, &mw,
              sizeof(mw), 1 },
            CREATION(SRQ, srq, 1),
            CREATION(SRQ, tag_srq, 2),
            CREATION(QP, rc, 1),
            CREATION(QP, tag_qp, 2),
            CREATION(QP, rss, 2),
            CREATION(WQ, wq, 1),
            CREATION(ETH_SQ, esq, 1),
            CREATION(SHAPER, shaper, 1),
            { "RQT", QHCA_CMD_CREATE_RQT, QHCA_CMD_DESTROY_RQT, 0,
              QHCA_RQT_ETH_RQ, &rqn, sizeof(rqn), 1 },
            /* the table of all rules, too, which the last one takes along */
            CREATION(FLOW, flow, 2),
            /* the table of groups stays */
            { "group", QHCA_CMD_ATTACH_MC, QHCA_CMD_DETACH_MC, ud.qpn, 0,
              &mcg, sizeof(mcg), 2 },
        };

        for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
            create(u, &all[i]);
        }
    }
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_QP, flow.qpn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_ETH_RQ, rqn),
                     QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&ud), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&tm), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    assert_int_equal(u->e->mem->pd_refs[g->pd], 0);
    assert_int_equal(u->e->mem->uar_refs[g->uar], 0);
    guest_dbrec_free(g, m.dbrec);
    guest_dbrec_free(g, m.idx_dbrec);
    gbuf_free(&m.ring);
    gbuf_free(&m.idx);
}

/* ---- work ---- */

/* Without a window for what is in flight, a QP cannot send: it fails. */
static void no_window(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gwr send = { .opcode = QHCA_WQE_SEND, .wr_id = 5,
                        .flags = QHCA_WQE_F_SIGNALED };

    (void)state;
    assert_null(p->e->xd->free_windows);
    nomem_at(1);
    peer_post(p, send, 0, 64);
    peer_run(p);
    assert_true(nomem_end());
    peer_cqe(p, scq, 5, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_FATAL], 1);
    peer_expect_nothing(p);
    peer_free(p);
}

#define ODP_IOVA 0x700000000000ull

/* A page is missing, and what is needed to wait for it, too: an error. */
static void no_waiting(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gwr send = { .opcode = QHCA_WQE_SEND, .wr_id = 5, .num_sge = 1,
                        .flags = QHCA_WQE_F_SIGNALED };
    struct godp odp;
    struct gmr mr;

    (void)state;
    godp_create(&odp, &mr, &p->g, 8192, ODP_IOVA, QHCA_ACCESS_MASK,
                &gbuf_flat4k);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND }, 0, 64);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_ack(p, p->a.sq_psn, 0x1f);
    send.sge[0] = (struct qhca_sge){ ODP_IOVA, 64, mr.key };
    nomem_at(1);
    peer_post(p, send, 0, 0);
    peer_run(p);
    assert_true(nomem_end());
    peer_cqe(p, scq, 5, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_PAGE_FAULT);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_PAGE_FAULTS), 0);
    peer_expect_nothing(p);
    assert_int_equal(godp_destroy(&odp), QHCA_ST_OK);
    peer_free(p);
}

/* The packet cannot be kept until its page is there: the peer resends it. */
static void no_packet_kept(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct pkt k = { .op = WRITE_ONLY, .dmalen = 4, .data = "data", .len = 4,
                     .ackreq = true, .psn = p->a.rq_psn, .va = ODP_IOVA };
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct godp odp;
    struct gmr mr;
    uint8_t b[4400];
    unsigned i;
    size_t len;

    (void)state;
    godp_create(&odp, &mr, &p->g, 8192, ODP_IOVA, QHCA_ACCESS_MASK,
                &gbuf_flat4k);
    gbuf_allow(&mr.buf, 0, 8192, GMEM_RW);
    k.rkey = mr.key;
    for (i = 0; i < 2; i++) {
        k.psn = p->a.rq_psn + i;
        k.va = ODP_IOVA + 4096 * i;
        len = peer_build(p, &k, b);
        if (i) {
            nomem_at(1);
        }
        qhca_receive(p->e, b, len);
        if (i) {
            assert_true(nomem_end());
        }
        guest_faults(&p->g, p->qp.qpn, f);
        assert_true(f[QHCA_PAGE_FAULT_RECV].flags & QHCA_PAGE_FAULT_VALID);
        godp_in(&odp, 4096 * i, 4096, true);
        assert_int_equal(guest_resume(&p->g, p->qp.qpn, QHCA_PAGE_FAULT_RECV,
                                      f[QHCA_PAGE_FAULT_RECV].token, false),
                         QHCA_ST_OK);
        if (i) {
            peer_expect_aeth(p, 0x60, k.psn);
            peer_send(p, k);
        }
        peer_expect_aeth(p, 0x1f, k.psn);
        gbuf_read(&mr.buf, 4096 * i, b, 4);
        assert_memory_equal(b, "data", 4);
    }
    peer_expect_nothing(p);
    assert_int_equal(godp_destroy(&odp), QHCA_ST_OK);
    peer_free(p);
}

static void no_memlink(void **state)
{
    static _Alignas(4096) uint8_t ring[2][QHCA_MEMLINK_RING_BYTES];
    struct qhca_memlink_region region = { .base = ring[0], .len = 4096 };
    struct qhca_memlink_config c = { .tx = ring[0], .rx = ring[1],
                                     .region = &region, .regions = 1 };
    struct unit *u = *state;
    unsigned id;

    nomem_at(1);
    assert_int_equal(qhca_memlink_attach(u->e, &c), 0);
    assert_true(nomem_end());
    id = qhca_memlink_attach(u->e, &c);
    assert_int_not_equal(id, 0);
    assert_int_equal(qhca_memlink_received(u->e, id), 0);
    assert_int_equal(qhca_memlink_received(u->e, id + 1), 0);
    qhca_memlink_detach(u->e, id);
}

/* ---- the state ---- */

static void no_save(void **state)
{
    struct unit *u = *state;
    void *buf = NULL;
    unsigned n;
    size_t len;
    bool ok;

    for (n = 1;; n++) {
        nomem_at(n);
        ok = qhca_save(u->e, &buf, &len);
        if (!nomem_end()) {
            break;
        }
        assert_false(ok);
        assert_null(buf);
    }
    assert_true(ok);
    assert_true(n > 1);
    free(buf);
}

/* ---- the developer's tools ---- */

static void no_tools(void **state)
{
    struct unit *u = *state;
    struct qhca_fault_rule drop = { .action = QHCA_FLT_DROP };
    struct qhca_break b = { .on = QHCA_ON_DOORBELL };

    nomem_at(1);
    assert_string_equal(qhca_fault_add(u->e, &drop), "out of memory");
    assert_true(nomem_end());
    nomem_at(1);
    assert_string_equal(qhca_fault_seed(u->e, 1), "out of memory");
    assert_true(nomem_end());
    assert_null(u->e->faults);
    nomem_at(1);
    assert_string_equal(qhca_break_add(u->e, &b), "out of memory");
    assert_true(nomem_end());
    nomem_at(1);
    assert_string_equal(qhca_break_step(u->e, QHCA_ON_WQE, 1),
                        "out of memory");
    assert_true(nomem_end());
    assert_null(u->e->dbg);
    assert_null(qhca_break_next(u->e, 0));
}

/* A rule is removed although what it has counted cannot be taken apart. */
static void no_forgetting(void **state)
{
    struct unit *u = *state;
    struct qhca_fault_rule rule[2];
    unsigned i;

    for (i = 0; i < 2; i++) {
        rule[i] = (struct qhca_fault_rule){
            .action = QHCA_FLT_LOSE_INTERRUPT, .nth = 3,
        };
        assert_null(qhca_fault_add(u->e, &rule[i]));
    }
    assert_false(qhca_fault_irq(u->e, 1));
    assert_false(qhca_fault_irq(u->e, 1));
    nomem_at(1);
    assert_true(qhca_fault_remove(u->e, rule[0].id));
    assert_true(nomem_end());
    assert_int_equal(qhca_fault_next(u->e, 0)->id, rule[1].id);
    /* the other one has not forgotten */
    assert_true(qhca_fault_irq(u->e, 1));
    assert_int_equal(qhca_fault_next(u->e, 0)->hits, 1);
    assert_true(qhca_fault_remove(u->e, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_adapter),
        UNIT(no_reset),
        UNIT_HOSTILE(no_objects),   /* so that a failure is reported */
        cmocka_unit_test(no_window),
        cmocka_unit_test(no_waiting),
        cmocka_unit_test(no_packet_kept),
        UNIT(no_memlink),
        UNIT(no_save),
        UNIT(no_tools),
        UNIT(no_forgetting),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
