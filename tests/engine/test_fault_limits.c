/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault injection at its limits: more packets than it can hold, more objects
 * than it can count for, packets of no QP.
 */
#include "peer.h"
#include "rule.h"
#include "adapter/adapter.h"
#include "observe/fault_state.h"

#define QKEY 0x11111111u
#define IN .fields = QHCA_FLT_DIRECTION, .direction = QHCA_FLT_IN

static const struct qhca_fault_rule *rule_of(struct peer *p, uint32_t id)
{
    const struct qhca_fault_rule *f = qhca_fault_next(p->e, id - 1);

    assert_int_equal(f->id, id);
    return f;
}

/* More packets are held than there is room for: the rest is lost. */
static void no_room(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    unsigned i;

    (void)state;
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_DIRECTION | QHCA_FLT_NS,
                        .direction = QHCA_FLT_IN, .ns = 1000000000));
    for (i = 0; i < QHCA_FAULT_FRAMES + 8; i++) {
        peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn + i,
                .va = PEER_IOVA + 4 * i, .rkey = p->mr.key, .dmalen = 4,
                .data = "abcd", .len = 4);
    }
    assert_int_equal(qhca_fault_held(p->e), QHCA_FAULT_FRAMES);
    assert_int_equal(p->e->faults->lost, 8);
    qhca_fault_remove(p->e, 0);
    assert_int_equal(qhca_fault_held(p->e), 0);
    /* those held arrive in order */
    peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn + QHCA_FAULT_FRAMES,
            .va = PEER_IOVA, .rkey = p->mr.key, .dmalen = 4, .data = "efgh",
            .len = 4, .ackreq = true);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn + QHCA_FAULT_FRAMES);
    peer_expect_nothing(p);
    peer_free(p);
}

static void flush_nothing(struct qhca *e)
{
    (void)e;
}

/*
 * Those held pass as long as a call may cost; then the next run goes on.  What
 * arrives until then does not overtake the rest.
 */
static void costly_call(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    const struct qhca_hooks *usual;
    struct qhca_hooks hooks;
    char got[4];
    unsigned i;

    (void)state;
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_DIRECTION | QHCA_FLT_NS,
                        .direction = QHCA_FLT_IN, .ns = 1000000000));
    for (i = 0; i < 100; i++) {
        peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn + i,
                .va = PEER_IOVA + 4 * i, .rkey = p->mr.key, .dmalen = 4,
                .data = "abcd", .len = 4);
    }
    assert_int_equal(qhca_fault_held(p->e), 100);
    usual = p->e->hooks;
    hooks = *usual;
    qhca_call_begins(p->e);
    qhca_cost(p->e, QHCA_CALL_COST - 10);   /* what else the call has done */
    qhca_fault_remove(p->e, 0);
    assert_in_range(qhca_fault_held(p->e), 89, 99);
    assert_in_range(p->e->cost - p->e->call_begin, QHCA_CALL_COST,
                    QHCA_CALL_COST + 10);
    hooks.flush = flush_nothing;        /* as if it had reached its limit */
    p->e->hooks = &hooks;
    peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn + 100,
            .va = PEER_IOVA + 400, .rkey = p->mr.key, .dmalen = 4,
            .data = "abcd", .len = 4, .ackreq = true);
    p->e->hooks = usual;
    world_run(&p->w, 1000);
    assert_int_equal(qhca_fault_held(p->e), 0);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn + 100);
    for (i = 0; i < 101; i++) {
        gbuf_read(&p->mr.buf, 4 * i, got, 4);
        assert_memory_equal(got, "abcd", 4);
    }
    peer_free(p);
}

/*
 * A NAK is due, but the call was too costly to deliver it.  It must not come in
 * the middle of sending the next request, which would start the timer of a QP
 * in ERR.
 */
static void not_while_sending(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    const struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    char why[160];
    size_t len;
    void *s;

    (void)state;
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_DIRECTION | QHCA_FLT_NS,
                        .direction = QHCA_FLT_IN, .ns = 1000000000));
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND }, 0, 16);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_ack(p, p->a.sq_psn, 0x62);     /* an access error */
    qhca_call_begins(p->e);
    qhca_cost(p->e, QHCA_CALL_COST);    /* what else the call has done */
    qhca_fault_remove(p->e, 0);
    assert_int_equal(qhca_fault_held(p->e), 1);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND }, 0, 16);
    assert_int_equal(qp->state, QHCA_QPS_RTS);
    world_run(&p->w, 1000);
    assert_int_equal(qhca_fault_held(p->e), 0);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 1);
    peer_expect_nothing(p);
    assert_int_equal(qp->state, QHCA_QPS_ERR);
    assert_int_equal(qp->xp->deadline, 0);
    peer_cqe(p, scq, 0, QHCA_WC_REM_ACCESS_ERR, QHCA_SYN_NAK_ACCESS);
    assert_true(qhca_save(p->e, &s, &len));
    CHECK(qhca_load(p->e, s, len, why, sizeof(why)), "%s", why);
    free(s);
    peer_free(p);
}

/* Copies of a packet to itself wait until there is room for them. */
static void many_copies(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .dest_qpn = p->qp.qpn, .qkey = QKEY,
    };
    unsigned i;

    (void)state;
    guest_av(&p->g, p->n, 0, &wr.av);
    for (i = 0; i < 64; i++) {
        peer_recv(p, i, 4096 * (i + 1), 256);
    }
    rule_add(p->e, RULE(DUPLICATE, .fields = QHCA_FLT_PACKETS,
                        .packets = 2 * QHCA_LOOP_SLOTS));
    peer_post(p, wr, 0, 16);
    world_run(&p->w, 1000000);
    assert_int_equal(qhca_fault_held(p->e), 0);
    assert_int_equal(p->e->faults->lost, 0);
    for (i = 0; i < 64; i++) {
        peer_cqe(p, rcq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        assert_int_equal(gbuf_verify(&p->mr.buf, 4096 * (i + 1) + 40, 7, 0,
                                     16), 16);
    }
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RX_PACKETS),
                     1 + 2 * QHCA_LOOP_SLOTS);
    peer_expect_nothing(p);
    peer_free(p);
}

/*
 * A rule counts for each QP on its own, as long as it can; then the others
 * share one count.  Packets of QPs that do not exist count, too.
 */
static void many_streams(void **state)
{
    const unsigned most = QHCA_FAULT_STREAMS / 4 * 3;
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t id, qpn = p->qp.qpn, i;

    (void)state;
    id = rule_add(p->e, RULE(DROP, .nth = 1, IN));
    for (i = 0; i < most + 100; i++) {
        p->qp.qpn = 0x8000 + i;
        peer_tx(p, .op = SEND_ONLY, .psn = 5);
    }
    assert_int_equal(rule_of(p, id)->matches, most + 100);
    assert_int_equal(rule_of(p, id)->hits, most + 1);
    /* one that has been counted for on its own still is */
    p->qp.qpn = 0x8000;
    peer_tx(p, .op = SEND_ONLY, .psn = 5);
    assert_int_equal(rule_of(p, id)->hits, most + 1);
    /* and none is, when they are forgotten */
    assert_null(qhca_fault_seed(p->e, 1));
    peer_tx(p, .op = SEND_ONLY, .psn = 5);
    assert_int_equal(rule_of(p, id)->hits, 1);
    p->qp.qpn = qpn;
    peer_free(p);
}

/* The sender of a datagram is in the datagram. */
static void by_sender(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_DIRECTION | QHCA_FLT_PEER,
                            .direction = QHCA_FLT_IN,
                            .peer = PEER_QPN + 1 - i));
        peer_recv(p, i, 0, 256);
        peer_tx(p, .op = UD_ONLY, .psn = i, .rkey = QKEY, .data = "abcd",
                .len = 4);
        if (i == 0) {
            peer_cqe(p, rcq, 0, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        } else {
            peer_no_cqe(p, rcq);
        }
    }
    assert_int_equal(rule_of(p, 1)->hits, 0);
    assert_int_equal(rule_of(p, 2)->hits, 1);
    peer_free(p);
}

/* Ethernet's completions are spared, unless their CQ is named. */
static void ethernet_cqe(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_cq *cq = qhca_idr_get(&p->e->q->cqs, p->scq.cqn);
    struct qhca_cqe cqe = { .opcode = QHCA_CQE_OP_ETH_SEND };
    uint32_t id;

    (void)state;
    id = rule_add(p->e, RULE(CQ_OVERFLOW));
    assert_true(qhca_cq_push(p->e, cq, &cqe, false));
    assert_int_equal(rule_of(p, id)->matches, 0);
    qhca_fault_remove(p->e, 0);
    id = rule_add(p->e, RULE(CQ_OVERFLOW, .fields = QHCA_FLT_NUMBER,
                             .number = p->scq.cqn));
    assert_false(qhca_cq_push(p->e, cq, &cqe, false));
    assert_int_equal(rule_of(p, id)->hits, 1);
    world_run(&p->w, 10000);
    assert_int_equal(p->g.async_count[QHCA_EV_CQ_ERR], 1);
    peer_free(p);
}

/* The link goes down at an interrupt, which is sent nevertheless. */
static void link_at_interrupt(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_cq *cq = qhca_idr_get(&p->e->q->cqs, p->scq.cqn);
    struct qhca_cqe cqe = { .qpn = p->qp.qpn };
    uint64_t before = 0, after = 0;
    unsigned v;

    (void)state;
    for (v = 0; v < WORLD_VECTORS; v++) {
        before += p->n->msix[v];
    }
    rule_add(p->e, RULE(LINK_DOWN, .fields = QHCA_FLT_AT | QHCA_FLT_COUNT,
                        .at = QHCA_FLT_AT_INTERRUPT, .count = 1));
    gcq_arm(&p->scq, false);
    assert_true(p->e->link);
    assert_true(qhca_cq_push(p->e, cq, &cqe, false));
    qhca_finish(p->e);
    assert_false(p->e->link);
    world_run(&p->w, 10000);
    for (v = 0; v < WORLD_VECTORS; v++) {
        after += p->n->msix[v];
    }
    /* the completion's, and that of the port's event */
    assert_int_equal(after, before + 2);
    qhca_fault_remove(p->e, 0);
    assert_true(p->e->link);
    peer_free(p);
}

/* What draws depend on can be asked for, and chosen. */
static void seeds(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint64_t usual = qhca_fault_get_seed(p->e);
    struct qhca_fault_rule f = RULE(DMA_ERROR, .fields = QHCA_FLT_KIND,
                                    .kind = QHCA_DMAS);

    (void)state;
    assert_null(p->e->faults);
    assert_string_equal(qhca_fault_add(p->e, &f),
                        "'kind' is not a kind of DMA");
    rule_add(p->e, RULE(DROP, .nth = 1000));
    assert_int_equal(qhca_fault_get_seed(p->e), usual);
    assert_null(qhca_fault_seed(p->e, usual + 1));
    assert_int_equal(qhca_fault_get_seed(p->e), usual + 1);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_room),
        cmocka_unit_test(costly_call),
        cmocka_unit_test(not_while_sending),
        cmocka_unit_test(many_copies),
        cmocka_unit_test(many_streams),
        cmocka_unit_test(by_sender),
        cmocka_unit_test(ethernet_cqe),
        cmocka_unit_test(link_at_interrupt),
        cmocka_unit_test(seeds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
