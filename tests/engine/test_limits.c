/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Very many objects at once: 10,000 QPs and 100,000 MRs of one adapter, all
 * usable, at a bounded cost, and none left over.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest.h"
#include "die.h"
#include "footprint.h"

#define QPS 10000
#define MRS 100000

static const struct guest_config cfg = {
    .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
};

static void idle_qp_is_small(void **state)
{
    (void)state;
    assert_true(qp_footprint() < 4096);
    assert_true(qp_footprint() > 256);     /* a plausible value */
}

/* Create QPs in pairs, connect them in loopback, use one pair in a hundred. */
static void ten_thousand_qps(void **state)
{
    struct gqp *qp = calloc(QPS, sizeof(*qp));
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = 2, .sq_stride = 6, .rq_shift = 2,
        .rq_stride = 5,
    };
    struct gqp_attr a;
    struct qhca_cqe c;
    struct guest g;
    struct world w;
    struct gcq cq;
    struct gmr mr;
    unsigned i, done = 0;

    (void)state;
    assert_non_null(qp);
    world_init(&w, 1, 1, NULL);
    guest_start(&g, &w.node[0], 1, &cfg);
    gcq_create(&cq, &g, 12, NULL, g.eq[1].eqn);
    gmr_create(&mr, &g, 4096, 4096, QHCA_ACCESS_MASK, NULL);
    gbuf_allow(&mr.buf, 0, 4096, GMEM_RW);
    in.scq = in.rcq = &cq;
    for (i = 0; i < QPS; i++) {
        gqp_create(&qp[i], &g, &in);
    }
    gqp_attr_default(&a);
    for (i = 0; i < QPS; i++) {
        a.dest_qpn = qp[i ^ 1].qpn;
        a.timeout = 8 + i % 8;
        gqp_to_init(&qp[i], &a);
        gqp_to_rtr(&qp[i], &w.node[0], &a);
        gqp_to_rts(&qp[i], &a);
    }
    for (i = 0; i < QPS; i += 100) {
        struct gwr wr = {
            .opcode = QHCA_WQE_RDMA_WRITE, .flags = QHCA_WQE_F_SIGNALED,
            .wr_id = i, .num_sge = 1, .sge[0] = { 4096, 64, mr.key },
            .remote_addr = 4096 + 128, .rkey = mr.key,
        };

        assert_true(gqp_post_send(&qp[i], &wr));
        gqp_ring(&qp[i]);
    }
    assert_true(world_settle(&w, 1000000000));
    while (gcq_poll(&cq, &c)) {
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
        done++;
    }
    assert_int_equal(done, QPS / 100);
    for (i = 0; i < QPS; i++) {
        assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
    }
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    guest_stop(&g);
    assert_int_equal(w.node[0].mem.mapped_pages, 0);
    world_fini(&w);
    free(qp);
}

/* All QPs wait for an ACK at once: timers must not require a search. */
static void ten_thousand_timeouts(void **state)
{
    struct gqp *qp = calloc(QPS, sizeof(*qp));
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = 0, .sq_stride = 6,
    };
    unsigned i, done = 0, failed = 0;
    struct gqp_attr a;
    struct qhca_cqe c;
    struct guest g;
    struct world w;
    struct gcq cq;

    (void)state;
    assert_non_null(qp);
    world_init(&w, 2, 1, NULL);
    w.wire.drop = 65536;        /* a dead wire */
    guest_start(&g, &w.node[0], 1, &cfg);
    gcq_create(&cq, &g, 14, NULL, g.eq[1].eqn);
    in.scq = in.rcq = &cq;
    gqp_attr_default(&a);
    a.retry_cnt = 3;
    for (i = 0; i < QPS; i++) {
        struct gwr wr = {
            .opcode = QHCA_WQE_RDMA_WRITE, .flags = QHCA_WQE_F_SIGNALED,
        };

        gqp_create(&qp[i], &g, &in);
        a.timeout = 8 + i % 8;
        a.dest_qpn = 77;
        gqp_to_init(&qp[i], &a);
        gqp_to_rtr(&qp[i], &w.node[1], &a);
        gqp_to_rts(&qp[i], &a);
        assert_true(gqp_post_send(&qp[i], &wr));
        gqp_ring(&qp[i]);
    }
    assert_true(world_settle(&w, 60000000000ULL));
    while (gcq_poll(&cq, &c)) {
        failed += c.status == QHCA_WC_RETRY_EXC_ERR;
        done++;
    }
    assert_int_equal(done, QPS);
    assert_int_equal(failed, QPS);
    assert_int_equal(w.node[0].tx_frames, QPS * 4);
    for (i = 0; i < QPS; i++) {
        assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
    }
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    guest_stop(&g);
    world_fini(&w);
    free(qp);
}

static void hundred_thousand_mrs(void **state)
{
    uint32_t *key = calloc(MRS, sizeof(*key)), i;
    uint64_t mem;
    struct guest g;
    struct world w;

    (void)state;
    assert_non_null(key);
    world_init(&w, 1, 1, NULL);
    guest_start(&g, &w.node[0], 1, &cfg);
    assert_true(g.caps.max_mr > MRS && g.caps.max_qp > QPS);
    mem = gmem_alloc(g.m, 4096, 12, 0);
    for (i = 0; i < MRS; i++) {
        struct qhca_mpt c;

        memset(&c, 0, sizeof(c));
        c.buf.addr = mem;
        c.buf.len = c.len = 4096;
        c.iova = (uint64_t)i << 12;
        c.key = i & 0xff;
        c.pd = g.pd;
        c.access = QHCA_ACCESS_LOCAL_WRITE;
        key[i] = guest_create(&g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
        assert_int_equal(key[i] & 0xff, i & 0xff);
    }
    for (i = 0; i < MRS; i += 997) {
        struct qhca_mpt c;

        guest_query(&g, QHCA_CMD_QUERY_MR, key[i], &c, sizeof(c));
        assert_int_equal(c.key, key[i]);
        assert_true(c.iova == (uint64_t)i << 12);
    }
    for (i = 0; i < MRS; i++) {
        assert_int_equal(guest_simple(&g, QHCA_CMD_DESTROY_MR, key[i]),
                         QHCA_ST_OK);
        assert_int_equal(guest_simple(&g, QHCA_CMD_DESTROY_MR, key[i]),
                         QHCA_ST_BAD_OBJ);
    }
    gmem_release(g.m, mem, 4096);
    guest_stop(&g);
    world_fini(&w);
    free(key);
}

/* Create @op with @in until there is no number left; how many there were. */
static unsigned create_all(struct guest *g, uint8_t op, const void *in,
                           uint32_t len, uint32_t *last)
{
    struct gcmd c = { .op = op, .in = in, .in_len = len };
    uint8_t st;
    unsigned n;

    for (n = 0; (st = guest_cmd(g, &c)) == QHCA_ST_OK; n++) {
        *last = c.robj;
    }
    assert_int_equal(st, QHCA_ST_NO_RESOURCES);
    return n;
}

/* All numbers are in use; with one that is free again, one more succeeds. */
static void no_numbers(void **state)
{
    struct qhca_config small;
    struct qhca_mpt mw = { .flags = QHCA_MR_F_MW1 };
    uint32_t last = 0, again = 0;
    struct guest g;
    struct world w;

    (void)state;
    memset(&small, 0, sizeof(small));
    qhca_config_default(&small);
    small.max_mr = 16;
    world_init(&w, 1, 1, &small);
    guest_start(&g, &w.node[0], 1, &cfg);
    mw.pd = g.pd;
    assert_int_equal(create_all(&g, QHCA_CMD_CREATE_MW, &mw, sizeof(mw),
                                &last), 15);
    assert_int_equal(guest_simple(&g, QHCA_CMD_DESTROY_MR, last), QHCA_ST_OK);
    assert_int_equal(create_all(&g, QHCA_CMD_CREATE_MW, &mw, sizeof(mw),
                                &again), 1);
    assert_int_equal(again, last);
    assert_int_equal(create_all(&g, QHCA_CMD_ALLOC_XRCD, NULL, 0, &last),
                     1023);
    assert_int_equal(guest_simple(&g, QHCA_CMD_FREE_XRCD, last), QHCA_ST_OK);
    assert_int_equal(create_all(&g, QHCA_CMD_ALLOC_XRCD, NULL, 0, &again), 1);
    assert_int_equal(again, last);
    qhca_reset(w.node[0].e);
    guest_drop(&g);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_qp_is_small),
        cmocka_unit_test(ten_thousand_qps),
        cmocka_unit_test(ten_thousand_timeouts),
        cmocka_unit_test(hundred_thousand_mrs),
        cmocka_unit_test(no_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
