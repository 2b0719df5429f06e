/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Doorbell records of send queues (QHCA_QP_F_SQ_RECORD). */
#include "peer.h"
#include "adapter/adapter.h"

#define ENOUGH 32               /* packets under way: software need not ring */
#define SIG QHCA_WQE_F_SIGNALED

static struct peer *open_peer(const struct gqp_attr *a)
{
    return peer_new_with(QHCA_QPT_RC, a, NULL, QHCA_QP_F_SQ_RECORD);
}

static uint32_t psn0(const struct peer *p)
{
    return p->a.sq_psn;
}

static bool asked(struct peer *p)
{
    return guest_dbrec_flags(&p->g, p->qp.sq_dbrec) & QHCA_DBREC_NOTIFY;
}

static uint64_t doorbells(struct peer *p)
{
    return qhca_stat(p->e, QHCA_STAT_DOORBELLS);
}

/* Post an RDMA WRITE of 8 bytes, as software does; did it ring? */
static bool write8(struct peer *p, uint64_t wr_id)
{
    uint64_t before = doorbells(p);

    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = wr_id,
                               .flags = SIG, .remote_addr = 64, .rkey = 1 },
              0, 8);
    return doorbells(p) != before;
}

/* Fill the wire, until software need not ring; returns how many were posted. */
static uint32_t fill(struct peer *p)
{
    uint32_t n;

    for (n = 0; asked(p); n++) {
        assert_true(n < ENOUGH);
        assert_true(write8(p, n));
        peer_expect(p, WRITE_ONLY, psn0(p) + n);
    }
    assert_int_equal(n, ENOUGH);
    return n;
}

/* One at a time: each rings, and leaves at once. */
static void alone(void **state)
{
    struct peer *p = open_peer(NULL);
    uint32_t i;

    (void)state;
    for (i = 0; i < 5; i++) {
        assert_true(asked(p));
        assert_true(write8(p, i));
        peer_expect(p, WRITE_ONLY, psn0(p) + i);
        peer_ack(p, psn0(p) + i, 0x1f);
        peer_cqe(p, scq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    peer_free(p);
}

/* On a busy queue software does not ring: an ACK triggers what is posted. */
static void busy(void **state)
{
    struct peer *p = open_peer(NULL);
    uint32_t n = fill(p), i;

    (void)state;
    assert_false(write8(p, n));
    assert_false(write8(p, n + 1));
    peer_expect_nothing(p);
    peer_ack(p, psn0(p) + 3, 0x1f);
    peer_expect(p, WRITE_ONLY, psn0(p) + n);
    peer_expect(p, WRITE_ONLY, psn0(p) + n + 1);
    /* 30 are under way: an ACK may come too late to be waited for */
    assert_true(asked(p));
    assert_true(write8(p, n + 2));
    peer_expect(p, WRITE_ONLY, psn0(p) + n + 2);
    peer_ack(p, psn0(p) + n + 2, 0x1f);
    for (i = 0; i < n + 3; i++) {
        peer_cqe(p, scq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    assert_true(asked(p));
    peer_free(p);
}

/* Many in one message count as well, and a window that is closed. */
static void window(void **state)
{
    struct peer *p = open_peer(NULL);
    uint32_t i;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 0,
                               .flags = SIG, .remote_addr = 64, .rkey = 1 },
              0, 100 * 256);
    peer_run(p);
    assert_false(asked(p));
    assert_false(write8(p, 1));
    while (peer_waiting(p)) {
        peer_next(p);
    }
    for (i = 63; i < 99; i += 12) {
        peer_ack(p, psn0(p) + i, 0x1f);
    }
    while (peer_waiting(p)) {
        peer_next(p);
    }
    peer_ack(p, psn0(p) + 99, 0x1f);
    if (!peer_waiting(p)) {
        peer_ack(p, psn0(p) + 100, 0x1f);
    }
    peer_ack(p, psn0(p) + 100, 0x1f);
    peer_cqe(p, scq, 0, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_true(asked(p));
    while (peer_waiting(p)) {
        peer_next(p);
    }
    peer_free(p);
}

/* Without an ACK timeout a lost ACK would end the queue: software rings. */
static void no_timeout(void **state)
{
    struct gqp_attr a;
    struct peer *p;
    uint32_t i;

    (void)state;
    peer_attr_default(&a);
    a.timeout = 0;
    p = open_peer(&a);
    for (i = 0; i < 2 * ENOUGH - 1; i++) {
        assert_true(write8(p, i));
        peer_expect(p, WRITE_ONLY, psn0(p) + i);
    }
    peer_free(p);
}

static struct peer *racer;

/* Another CPU has seen no NOTIFY, and stores its index just now. */
static void post_silently(struct node *n)
{
    struct peer *p = racer;
    struct gwr wr = { .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 77, .flags = SIG,
                      .remote_addr = 64, .rkey = 1, .num_sge = 1,
                      .sge[0] = { .addr = PEER_IOVA, .len = 8,
                                  .lkey = p->mr.key } };

    n->on_fence = NULL;
    assert_true(gqp_post_send(&p->qp, &wr));
    p->qp.sq_rung = p->qp.sq_prod;
    guest_dbrec_set(&p->g, p->qp.sq_dbrec, p->qp.sq_prod);
}

/* An index stored while the device asks for doorbells is seen. */
static void race(void **state)
{
    struct peer *p = racer = open_peer(NULL);
    uint32_t n = fill(p), i;

    (void)state;
    p->n->on_fence = post_silently;
    peer_ack(p, psn0(p) + n - 1, 0x1f);
    assert_null(p->n->on_fence);
    peer_expect(p, WRITE_ONLY, psn0(p) + n);
    peer_ack(p, psn0(p) + n, 0x1f);
    for (i = 0; i < n; i++) {
        peer_cqe(p, scq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    peer_cqe(p, scq, 77, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* In ERR all that was posted is flushed, even without a doorbell. */
static void error(void **state)
{
    struct peer *p = open_peer(NULL);
    uint32_t n = fill(p), i;

    (void)state;
    assert_false(write8(p, n));
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_ERR), QHCA_ST_OK);
    peer_run(p);
    for (i = 0; i <= n; i++) {
        peer_cqe(p, scq, i, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    }
    assert_true(write8(p, 99));
    peer_run(p);
    peer_cqe(p, scq, 99, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    /* and again from the start */
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    gqp_to_rts(&p->qp, &p->a);
    assert_true(asked(p));
    assert_true(write8(p, 5));
    peer_expect(p, WRITE_ONLY, psn0(p));
    peer_free(p);
}

/* WQEs posted without a doorbell before or in SQD are sent in RTS. */
static void drained(void **state)
{
    struct peer *p = open_peer(NULL);
    uint32_t n = fill(p), i;

    (void)state;
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
    assert_false(write8(p, n));
    peer_ack(p, psn0(p) + n - 1, 0x1f);
    assert_false(write8(p, n + 1));
    peer_expect_nothing(p);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RTS), QHCA_ST_OK);
    for (i = 0; i < 2; i++) {
        peer_expect(p, WRITE_ONLY, psn0(p) + n + i);
    }
    assert_true(asked(p));
    peer_free(p);
}

/*
 * Without an ACK timeout nothing makes the device read the record if the packets
 * in flight are lost, so it asks for doorbells; with one that is set later, the
 * timer does.
 */
static void late_timeout(void **state)
{
    struct qhca_qpc c = { .state = QHCA_QPS_SQD, .timeout = 14 };
    struct gqp_attr a;
    struct peer *p;
    uint32_t i;

    (void)state;
    peer_attr_default(&a);
    a.timeout = 0;
    p = open_peer(&a);
    for (i = 0; i < ENOUGH + 8; i++) {
        assert_true(write8(p, i));
        peer_expect(p, WRITE_ONLY, psn0(p) + i);
    }
    assert_true(asked(p));
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
    assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_STATE |
                                QHCA_QP_M_TIMEOUT), QHCA_ST_OK);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RTS), QHCA_ST_OK);
    peer_expect_nothing(p);
    assert_false(write8(p, i));
    peer_expect_nothing(p);
    world_run(&p->w, 70000000);
    peer_expect(p, WRITE_ONLY, psn0(p));
    p->tail = p->head;
    peer_ack(p, psn0(p) + i - 1, 0x1f);
    peer_expect(p, WRITE_ONLY, psn0(p) + i);
    peer_free(p);
}

static uint8_t syndrome(struct peer *p)
{
    struct qhca_qpc c;

    guest_query(&p->g, QHCA_CMD_QUERY_QP, p->qp.qpn, &c, sizeof(c));
    assert_int_equal(c.state, QHCA_QPS_ERR);
    return c.syndrome;
}

/* An index beyond the ring, found without a doorbell. */
static void bad_index(void **state)
{
    struct peer *p = open_peer(NULL);
    uint32_t n = fill(p);

    (void)state;
    guest_dbrec_set(&p->g, p->qp.sq_dbrec, n + 513);
    peer_ack(p, psn0(p), 0x1f);
    assert_int_equal(syndrome(p), QHCA_SYN_DB_INDEX);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_DB_BAD_INDEX), 2);
    peer_free(p);
}

/* An older index announces nothing new. */
static void old_index(void **state)
{
    struct peer *p = open_peer(NULL);
    uint32_t n = fill(p);

    (void)state;
    guest_dbrec_set(&p->g, p->qp.sq_dbrec, n - 5);
    peer_ack(p, psn0(p) + n - 1, 0x1f);
    peer_expect_nothing(p);
    assert_true(asked(p));
    peer_free(p);
}

static uint64_t lost, lost_len;

static bool is_lost(void *opaque, uint64_t addr)
{
    (void)opaque;
    return addr - lost < lost_len;
}

/*
 * Memory that fails: at a doorbell, without one, and when the flag is written.
 */
static void failing(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 3; i++) {
        struct peer *p = open_peer(NULL);

        if (i) {
            fill(p);
        }
        lost = p->qp.sq_dbrec + (i < 2 ? 0 : 4);
        lost_len = i < 2 ? 8 : 4;
        p->g.m->may_fail = is_lost;
        p->g.m->fail_64k = 65536;
        if (i) {
            peer_ack(p, psn0(p) + ENOUGH - 1, 0x1f);
        } else {
            guest_doorbell(&p->g, p->g.uar, QHCA_DB_SQ, p->qp.qpn);
        }
        p->g.m->fail_64k = 0;
        assert_int_equal(syndrome(p), QHCA_SYN_WQE_DMA);
        peer_free(p);
    }
}

/* Which QPs can have one. */
static void checked(void **state)
{
    struct peer *p = open_peer(NULL);
    struct qhca_qpc c, good;

    (void)state;
    guest_query(&p->g, QHCA_CMD_QUERY_QP, p->qp.qpn, &good, sizeof(good));
    assert_int_equal(good.sq_dbrec, p->qp.sq_dbrec);
    assert_true(good.flags & QHCA_QP_F_SQ_RECORD);
    good.state = QHCA_QPS_RESET;
#define NO(change, name) do { \
        struct gcmd cmd = { .op = QHCA_CMD_CREATE_QP, .in = &c, \
                            .in_len = sizeof(c) }; \
        c = good; \
        change; \
        assert_int_equal(guest_cmd(&p->g, &cmd), QHCA_ST_BAD_PARAM); \
        assert_int_equal(cmd.result, offsetof(struct qhca_qpc, name)); \
    } while (0)
    NO(c.sq_dbrec |= 4, sq_dbrec);
    NO(c.flags &= (uint8_t)~QHCA_QP_F_SQ_RECORD, sq_dbrec);
    NO(c.type = QHCA_QPT_UC, flags);
    NO((c.type = QHCA_QPT_UD, c.sq_stride = 7), flags);
    NO(c.sq_stride = 0, flags);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(alone),
        cmocka_unit_test(busy),
        cmocka_unit_test(window),
        cmocka_unit_test(no_timeout),
        cmocka_unit_test(race),
        cmocka_unit_test(error),
        cmocka_unit_test(drained),
        cmocka_unit_test(late_timeout),
        cmocka_unit_test(bad_index),
        cmocka_unit_test(old_index),
        cmocka_unit_test(failing),
        cmocka_unit_test(checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
