/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Breaks and steps: the adapter stops where it is told to, and resumes. */
#include "peer.h"
#include "steps.h"
#include "observe/decode.h"
#include "emit.h"
#include "adapter/adapter.h"
#include "observe/fault.h"

#define MTU 256
#define SIG QHCA_WQE_F_SIGNALED

static uint32_t brk(struct peer *p, struct qhca_break b)
{
    const char *wrong = qhca_break_add(p->e, &b);

    CHECK(!wrong, "%s", wrong);
    return b.id;
}

static void post(struct peer *p, unsigned n, uint64_t wr_id, uint32_t len)
{
    unsigned i;

    for (i = 0; i < n; i++) {
        struct gwr wr = {
            .opcode = QHCA_WQE_SEND, .wr_id = wr_id + i, .flags = SIG,
            .num_sge = 1,
        };

        wr.sge[0].addr = PEER_IOVA;
        wr.sge[0].len = len;
        wr.sge[0].lkey = p->mr.key;
        assert_true(gqp_post_send(&p->qp, &wr));
    }
    gqp_ring(&p->qp);
}

static struct qhca_qpc context(struct peer *p)
{
    struct qhca_qpc c;

    assert_true(qhca_query_qp(p->e, p->qp.qpn, &c));
    return c;
}

static void show(struct peer *p, struct seen *s)
{
    qhca_break_show(p->e, true, seen_start(s));
    assert_int_equal(s->depth, 0);
}

static void step(struct peer *p, enum qhca_stop_on on, uint64_t n)
{
    const char *wrong = qhca_break_step(p->e, on, n);

    CHECK(!wrong, "%s", wrong);
    node_continue(p->n);
    peer_run(p);
}

/* At a doorbell: it is known, but not acted on yet. */
static void doorbell(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct seen s = { 0 };
    uint64_t reads;
    uint32_t id;

    (void)state;
    id = brk(p, (struct qhca_break){
        .on = QHCA_ON_DOORBELL, .number = p->qp.qpn, .code = QHCA_DB_SQ,
        .fields = QHCA_BRK_NUMBER | QHCA_BRK_CODE });
    gcq_arm(&p->scq, false);            /* another kind */
    assert_int_equal(p->n->stops, 0);
    reads = p->n->mem.reads;
    post(p, 3, 0x100, 10);
    assert_int_equal(p->n->stops, 1);
    assert_true(qhca_break_stopped(p->e));
    peer_expect_nothing(p);
    assert_int_equal(p->n->mem.reads, reads);
    assert_int_equal(context(p).sq_head, 3);
    assert_int_equal(context(p).sq_next, 0);
    show(p, &s);
    SEEN(&s, "stopped", "true");
    SEEN(&s, "why", "break");
    SEEN(&s, "on", "doorbell");
    SEEN(&s, "event.doorbell_name", "SQ");
    SEEN(&s, "event.index", "3");
    /* a doorbell rung meanwhile is delivered on resume, and is a stop */
    post(p, 1, 0x103, 10);
    assert_int_equal(p->n->stops, 1);
    assert_int_equal(context(p).sq_head, 3);
    node_continue(p->n);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 1);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 2);
    peer_expect_nothing(p);
    assert_int_equal(p->n->stops, 2);
    assert_int_equal(context(p).sq_head, 4);
    assert_int_equal(context(p).sq_next, 3);
    node_continue(p->n);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 3);
    peer_expect_nothing(p);
    assert_int_equal(qhca_break_next(p->e, 0)->hits, 2);
    assert_true(qhca_break_remove(p->e, id));
    assert_false(qhca_break_remove(p->e, id));
    assert_null(qhca_break_next(p->e, 0));
    post(p, 1, 0x104, 10);
    assert_int_equal(p->n->stops, 2);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 4);
    peer_ack(p, p->a.sq_psn + 4, 0x1f);
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* n WQEs are n WQEs; the last is fetched but not sent yet. */
static void step_wqe(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct seen s = { 0 };
    unsigned n, done = 0;

    (void)state;
    qhca_qp_get(p->e, p->qp.qpn)->xp->wnd = QHCA_WINDOW_PKTS;
    brk(p, (struct qhca_break){ .on = QHCA_ON_DOORBELL, .once = true });
    post(p, 60, 0, 2 * MTU + 1);
    assert_true(qhca_break_stopped(p->e));
    assert_null(qhca_break_next(p->e, 0));      /* removed by its hit */
    for (n = 1; n <= 8; n++) {
        step(p, QHCA_ON_WQE, n);
        done += n;
        assert_true(qhca_break_stopped(p->e));
        assert_int_equal(context(p).sq_next, done);
        assert_int_equal(peer_waiting(p), 3 * (done - 1));
    }
    show(p, &s);
    SEEN(&s, "why", "step");
    SEEN(&s, "event.kind", "wqe");
    SEEN(&s, "event.index", "35");
    SEEN(&s, "event.wr_id", "0x23");
    assert_non_null(seen_get(&s, "trail.0.kind"));
    node_continue(p->n);
    peer_run(p);
    assert_false(qhca_break_stopped(p->e));
    assert_int_equal(context(p).sq_next, 60);
    assert_int_equal(peer_waiting(p), 180);
    p->tail = p->head;
    peer_ack(p, p->a.sq_psn + 179, 0x1f);
    for (n = 0; n < 60; n++) {
        peer_cqe(p, scq, n, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* Stopped at CQE @index: it is in the ring, but software has not seen it. */
static void cqe_waits(struct peer *p, uint32_t index)
{
    struct qhca_ring_query l = {
        .object = QHCA_OBJ_CQ, .number = p->scq.cqn, .ring = QHCA_RING_CQ,
        .ranged = true, .index = index, .count = 2,
    };
    struct seen s = { 0 };

    p->n->mem.unchecked = true;
    assert_null(qhca_inspect_ring(p->e, &l, seen_start(&s)));
    p->n->mem.unchecked = false;
    assert_int_equal(strtoul(seen_get(&s, "producer"), NULL, 0), index + 1);
    SEEN(&s, "entries.0.mark", "waiting");
    SEEN(&s, "entries.1.mark", "consumed");
    seen_start(&s);
    free(s.text);
}

/* Packets, both ways, one by one. */
static void step_packet(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    unsigned n;

    (void)state;
    brk(p, (struct qhca_break){ .on = QHCA_ON_DOORBELL, .once = true });
    post(p, 10, 0, 2 * MTU);
    for (n = 1; n <= 20; n++) {
        step(p, QHCA_ON_PACKET, 1);
        assert_true(qhca_break_stopped(p->e));
        assert_int_equal(peer_waiting(p), n);
    }
    /* the next is the ACK, not acted on yet */
    step(p, QHCA_ON_PACKET, 1);
    assert_false(qhca_break_stopped(p->e));
    peer_ack(p, p->a.sq_psn + 19, 0x1f);
    assert_true(qhca_break_stopped(p->e));
    assert_int_equal(context(p).sq_tail, 0);
    /* it completes ten WQEs: ten steps */
    for (n = 0; n < 10; n++) {
        assert_int_equal(context(p).sq_tail, n);
        step(p, QHCA_ON_CQE, 1);
        assert_true(qhca_break_stopped(p->e));
        cqe_waits(p, n);
    }
    step(p, QHCA_ON_CQE, 1);
    assert_false(qhca_break_stopped(p->e));
    for (n = 0; n < 10; n++) {
        peer_cqe(p, scq, n, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    p->tail = p->head;
    peer_free(p);
}

/* Each condition stops at its event and at no other. */
static void conditions(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn;
    struct seen s = { 0 };
    const struct qhca_break list[] = {
        { .on = QHCA_ON_WQE, .wr_id = 7, .fields = QHCA_BRK_WR_ID },
        { .on = QHCA_ON_WQE, .index = 9, .code = QHCA_WQE_SEND,
          .fields = QHCA_BRK_INDEX | QHCA_BRK_CODE },
        { .on = QHCA_ON_PACKET_OUT, .psn = (psn + 12) & 0xffffff,
          .fields = QHCA_BRK_PSN },
        { .on = QHCA_ON_PACKET_IN, .code = ACK, .syndrome = 0x60,
          .fields = QHCA_BRK_CODE | QHCA_BRK_SYNDROME },
        { .on = QHCA_ON_RETRANSMIT },
        { .on = QHCA_ON_CQE, .code = QHCA_WC_REM_ACCESS_ERR,
          .peer = p->qp.qpn, .fields = QHCA_BRK_CODE | QHCA_BRK_PEER },
        { .on = QHCA_ON_STATE, .code = QHCA_QPS_ERR,
          .fields = QHCA_BRK_CODE },
        /* none of these ever happens */
        { .on = QHCA_ON_WQE, .code = QHCA_WQE_RDMA_READ,
          .fields = QHCA_BRK_CODE },
        { .on = QHCA_ON_PACKET_IN, .number = 12345,
          .fields = QHCA_BRK_NUMBER },
        { .on = QHCA_ON_WALK_ERROR },
    };
    static const char *const want[] = {
        "wqe", "wqe", "tx", "rx", "retransmit", "tx", "cqe", "qp_state",
    };
    struct qhca_break wrong = {
        .on = QHCA_ON_DOORBELL, .fields = QHCA_BRK_PSN,
    };
    unsigned i;

    (void)state;
    assert_non_null(qhca_break_add(p->e, &wrong));
    wrong.on = QHCA_ONS;
    assert_non_null(qhca_break_add(p->e, &wrong));
    for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        assert_int_equal(brk(p, list[i]), i + 1);
    }
    post(p, 20, 0, 10);
    for (i = 0; i < 8; i++) {
        assert_int_equal(p->n->stops, i + 1);
        show(p, &s);
        SEEN(&s, "event.kind", want[i]);
        node_continue(p->n);
        peer_run(p);
        if (i == 2) {
            assert_int_equal(peer_waiting(p), 20);
            peer_ack(p, psn + 4, 0x60);
        }
        if (i == 5) {
            peer_ack(p, psn + 4, 0x62);
        }
    }
    assert_int_equal(p->n->stops, 8);
    for (i = 8; i < 11; i++) {
        assert_int_equal(qhca_break_next(p->e, i - 1)->id, i);
        assert_int_equal(qhca_break_next(p->e, i - 1)->hits, 0);
    }
    assert_true(qhca_break_remove(p->e, 0));
    p->tail = p->head;
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

static void ignore_and_limits(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_break b = { .on = QHCA_ON_WQE, .ignore = 5 };
    unsigned i;

    (void)state;
    brk(p, b);
    post(p, 10, 0, 10);
    assert_true(qhca_break_stopped(p->e));
    assert_int_equal(context(p).sq_next, 6);
    node_continue(p->n);
    peer_run(p);
    assert_int_equal(context(p).sq_next, 7);
    assert_true(qhca_break_remove(p->e, 0));
    node_continue(p->n);
    peer_run(p);
    assert_int_equal(context(p).sq_next, 10);
    for (i = 0; i < QHCA_BREAKS_MAX; i++) {
        assert_null(qhca_break_add(p->e, &b));
    }
    assert_non_null(qhca_break_add(p->e, &b));
    assert_non_null(qhca_break_step(p->e, QHCA_ON_WQE, 0));
    assert_non_null(qhca_break_step(p->e, QHCA_ONS, 1));
    assert_true(qhca_break_remove(p->e, 0));
    peer_ack(p, p->a.sq_psn + 9, 0x1f);
    p->tail = p->head;
    peer_free(p);
}

/* Timers do not expire while it is stopped, and do their work afterwards. */
static void timers(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    post(p, 1, 0, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    brk(p, (struct qhca_break){ .on = QHCA_ON_DOORBELL, .once = true });
    post(p, 1, 1, 10);
    world_run(&p->w, 60000000000ull);
    assert_int_equal(peer_waiting(p), 0);
    assert_int_equal(context(p).timeouts, 0);
    node_continue(p->n);
    world_run(&p->w, 10000);
    assert_int_equal(context(p).timeouts, 1);
    assert_int_equal(context(p).state, QHCA_QPS_RTS);
    assert_true(peer_waiting(p) >= 2);
    peer_ack(p, p->a.sq_psn + 1, 0x1f);
    p->tail = p->head;
    peer_free(p);
}

/* A reset of the adapter keeps the debugger's breaks. */
static void reset(void **state)
{
    struct qhca_break b = { .on = QHCA_ON_COMMAND };
    struct world w;

    (void)state;
    world_init(&w, 1, 1, NULL);
    assert_null(qhca_break_add(w.node[0].e, &b));
    qhca_reset(w.node[0].e);
    assert_int_equal(qhca_break_next(w.node[0].e, 0)->id, b.id);
    assert_true(qhca_break_remove(w.node[0].e, b.id));
    world_fini(&w);
}

/*
 * What a CPU or a developer does wrong while the adapter is stopped is no stop
 * within the stop.
 */
static void bad_read_inside(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_fault_rule f = { .action = QHCA_FLT_RESET };
    struct seen s = { 0 };
    uint64_t errors;

    (void)state;
    brk(p, (struct qhca_break){ .on = QHCA_ON_WQE, .once = true });
    brk(p, (struct qhca_break){ .on = QHCA_ON_GUEST_ERROR, .once = true });
    post(p, 2, 0x10, 10);
    assert_true(qhca_break_stopped(p->e));
    assert_null(qhca_break_step(p->e, QHCA_ON_GUEST_ERROR, 1));
    errors = qhca_stat(p->e, QHCA_STAT_DB_BAD_ACCESS);
    assert_int_equal(qhca_reg_read(p->e, QHCA_REG_ASQ_DB, 8), 0);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_DB_BAD_ACCESS), errors + 1);
    assert_true(qhca_break_stopped(p->e));
    assert_non_null(qhca_fault_add(p->e, &f));
    assert_int_equal(qhca_break_next(p->e, 0)->hits, 0);
    show(p, &s);
    SEEN(&s, "stopped", "true");
    SEEN(&s, "on", "wqe");
    SEEN(&s, "event.wr_id", "0x10");
    assert_non_null(strstr(s.text, "= wqe\n"));
    assert_null(strstr(s.text, "guest_error"));
    assert_int_equal(peer_waiting(p), 0);
    assert_true(qhca_break_remove(p->e, 0));
    qhca_break_step_cancel(p->e);
    node_continue(p->n);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 1);
    assert_int_equal(p->n->stops, 1);
    peer_ack(p, p->a.sq_psn + 1, 0x1f);
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* A register is read: the value comes first, then the stop. */
static void reads(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_fault_rule f = {
        .action = QHCA_FLT_GARBAGE, .fields = QHCA_FLT_AT | QHCA_FLT_NUMBER,
        .at = QHCA_FLT_AT_REGISTER, .number = QHCA_REG_ID,
    };
    struct seen s = { 0 };

    (void)state;
    brk(p, (struct qhca_break){ .on = QHCA_ON_GUEST_ERROR, .once = true });
    assert_int_equal(node_reg_read(p->n, QHCA_REG_ID, 4), QHCA_ID_MAGIC);
    assert_false(qhca_break_stopped(p->e));
    assert_int_equal(node_reg_read(p->n, QHCA_REG_ASQ_DB, 8), 0);
    assert_true(qhca_break_stopped(p->e));
    assert_null(qhca_break_next(p->e, 0));
    show(p, &s);
    SEEN(&s, "on", "guest-error");
    node_continue(p->n);
    assert_null(qhca_fault_add(p->e, &f));
    assert_null(qhca_break_step(p->e, QHCA_ON_INJECTED, 2));
    assert_true(node_reg_read(p->n, QHCA_REG_ID, 4) != QHCA_ID_MAGIC);
    assert_false(qhca_break_stopped(p->e));
    assert_true(node_reg_read(p->n, QHCA_REG_ID, 4) != QHCA_ID_MAGIC);
    assert_true(qhca_break_stopped(p->e));
    assert_int_equal(node_reg_read(p->n, QHCA_REG_ID, 4), QHCA_ID_MAGIC);
    show(p, &s);
    SEEN(&s, "why", "step");
    SEEN(&s, "event.kind", "fault_injected");
    /* both happen in one read: the first is the reason */
    f.number = QHCA_REG_ASQ_DB;
    assert_null(qhca_fault_add(p->e, &f));
    assert_null(qhca_break_step(p->e, QHCA_ON_INJECTED, 1));
    brk(p, (struct qhca_break){ .on = QHCA_ON_GUEST_ERROR });
    node_continue(p->n);
    assert_false(qhca_break_stopped(p->e));
    assert_true(node_reg_read(p->n, QHCA_REG_ASQ_DB, 8) != 0);
    assert_true(qhca_break_stopped(p->e));
    show(p, &s);
    SEEN(&s, "event.kind", "guest_error");
    SEEN(&s, "trail.1.kind", "fault_injected");
    node_continue(p->n);
    assert_int_equal(p->n->stops, 3);
    assert_true(qhca_fault_remove(p->e, 0));
    assert_true(qhca_break_remove(p->e, 0));
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* What happens where nothing can stop keeps breaks and steps waiting. */
static void cannot_stop(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_fault_rule late = {
        .action = QHCA_FLT_DELAY, .fields = QHCA_FLT_NS | QHCA_FLT_DIRECTION,
        .ns = 1000000000, .direction = QHCA_FLT_IN,
    };
    struct qhca_fault_rule down = { .action = QHCA_FLT_LINK_DOWN };
    struct seen s = { 0 };
    uint32_t id;

    (void)state;
    id = brk(p, (struct qhca_break){ .on = QHCA_ON_EVENT, .once = true });
    assert_null(qhca_break_step(p->e, QHCA_ON_EVENT, 1));
    /* commands of the developer: the port goes down and up */
    assert_null(qhca_fault_add(p->e, &down));
    assert_true(qhca_fault_remove(p->e, 0));
    assert_int_equal(p->n->stops, 0);
    assert_false(qhca_break_stopped(p->e));
    assert_int_equal(qhca_break_next(p->e, 0)->id, id);
    assert_int_equal(qhca_break_next(p->e, 0)->hits, 2);
    show(p, &s);
    SEEN(&s, "stopped", "false");
    SEEN(&s, "steps_left", "1");
    SEEN(&s, "trail.0.kind", "fault_injected");
    /* the same where the adapter can stop */
    node_set_link(p->n, false);
    assert_true(qhca_break_stopped(p->e));
    assert_null(qhca_break_next(p->e, 0));
    show(p, &s);
    SEEN(&s, "why", "break");
    SEEN(&s, "hits", "3");
    node_continue(p->n);
    node_set_link(p->n, true);
    assert_int_equal(p->n->stops, 1);
    /* a packet that is released, and one that arrives */
    assert_null(qhca_fault_add(p->e, &late));
    post(p, 2, 0, 10);
    peer_ack(p, p->a.sq_psn, 0x1f);
    assert_int_equal(context(p).sq_tail, 0);
    assert_null(qhca_break_step(p->e, QHCA_ON_PACKET_IN, 2));
    assert_true(qhca_fault_remove(p->e, 0));
    assert_int_equal(context(p).sq_tail, 1);
    assert_null(qhca_fault_add(p->e, &late));
    peer_ack(p, p->a.sq_psn, 0x1f);
    assert_true(qhca_fault_remove(p->e, 0));
    assert_int_equal(p->n->stops, 1);
    peer_ack(p, p->a.sq_psn + 1, 0x1f);
    assert_int_equal(p->n->stops, 2);
    assert_int_equal(context(p).sq_tail, 1);
    node_continue(p->n);
    assert_int_equal(context(p).sq_tail, 2);
    p->tail = p->head;
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* A reset in the middle of a table walk: the call runs to its end. */
static void reset_inside(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_break b = { .on = QHCA_ON_WALK };
    struct qhca_qpc c;

    (void)state;
    assert_null(qhca_break_add(p->e, &b));
    post(p, 5, 0, 3 * MTU);
    assert_true(qhca_break_stopped(p->e));
    node_db_write(p->n, 0, 0, 8);       /* queued, and then dropped */
    node_flr(p->n);
    assert_false(qhca_break_stopped(p->e));
    assert_false(qhca_query_qp(p->e, p->qp.qpn, &c));
    assert_int_equal(p->n->stops, 1);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_DOORBELLS), 0);
    assert_true(qhca_break_remove(p->e, 0));
    guest_drop(&p->g);
    gbuf_free(&p->qp.sq);
    gbuf_free(&p->qp.rq);
    gbuf_free(&p->scq.buf);
    gbuf_free(&p->rcq.buf);
    gbuf_free(&p->mr.buf);
    world_fini(&p->w);
    free(p->f);
    free(p);
}

/* ---- two adapters that are stopped again and again ---- */

static void go_on(void *opaque, uint64_t arg)
{
    (void)arg;
    node_continue(opaque);
}

static void stopped(struct node *n)
{
    world_call(n->w, n->w->now + 700, go_on, n, 0);
}

struct duo {
    struct world w;
    struct guest g[2];
    struct gcq cq[2];
    struct gqp qp[2];
    struct gmr mr[2];
};

/* Two adapters and a connection, all tables of two levels. */
static struct duo *duo_new(void)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    static const struct gbuf_shape tree = {
        .form = QHCA_BUF_TREE, .hops = 2, .page_shift = 12,
        .table_shift = 12,
    };
    struct duo *q = calloc(1, sizeof(*q));
    struct gqp_attr a;
    unsigned i;

    world_init(&q->w, 2, 5, NULL);
    wire_perfect(&q->w.wire);
    for (i = 0; i < 2; i++) {
        struct gqp_init qi = {
            .type = QHCA_QPT_RC, .sq_shift = 6, .sq_stride = 7,
            .rq_shift = 6, .rq_stride = 6, .sq = &tree,
            .rq = &tree,
        };

        guest_start(&q->g[i], &q->w.node[i], 1 + i, &cfg);
        gcq_create(&q->cq[i], &q->g[i], 8, &tree, 1);
        gmr_create(&q->mr[i], &q->g[i], 65536, PEER_IOVA, QHCA_ACCESS_MASK,
                   &tree);
        gbuf_allow(&q->mr[i].buf, 0, 65536, GMEM_RW);
        gbuf_fill(&q->mr[i].buf, 0, 7 + i, 0, 65536);
        qi.scq = qi.rcq = &q->cq[i];
        gqp_create(&q->qp[i], &q->g[i], &qi);
    }
    for (i = 0; i < 2; i++) {
        gqp_attr_default(&a);
        a.dest_qpn = q->qp[!i].qpn;
        a.sq_psn = 100 + i;
        a.rq_psn = 100 + !i;
        gqp_to_init(&q->qp[i], &a);
        gqp_to_rtr(&q->qp[i], &q->w.node[!i], &a);
        gqp_to_rts(&q->qp[i], &a);
    }
    return q;
}

/* Sends and READs both ways, 20 each. */
static void duo_post(struct duo *q)
{
    unsigned i, j;

    for (i = 0; i < 2; i++) {
        for (j = 0; j < 20; j++) {
            struct gwr wr = {
                .opcode = j % 3 == 2 ? QHCA_WQE_RDMA_READ : QHCA_WQE_SEND,
                .flags = SIG, .wr_id = j, .num_sge = 1,
                .remote_addr = PEER_IOVA, .rkey = q->mr[!i].key,
            };
            struct qhca_sge sge = { PEER_IOVA + 32768, 5000, q->mr[i].key };

            wr.sge[0] = sge;
            assert_true(gqp_post_recv(&q->qp[i], 1000 + j, &sge, 1));
            assert_true(gqp_post_send(&q->qp[i], &wr));
        }
        gcq_arm(&q->cq[i], false);
    }
    gqp_ring(&q->qp[0]);
    gqp_ring(&q->qp[1]);
}

/* Everything has arrived, and nothing was retransmitted. */
static void duo_check(struct duo *q)
{
    struct qhca_cqe cqe;
    struct qhca_qpc c;
    unsigned i, got;

    for (i = 0; i < 2; i++) {
        for (got = 0; gcq_poll(&q->cq[i], &cqe); got++) {
            assert_int_equal(cqe.status, QHCA_WC_SUCCESS);
        }
        assert_int_equal(got, 20 + 14);
        assert_true(qhca_query_qp(q->w.node[i].e, q->qp[i].qpn, &c));
        assert_int_equal(c.retransmits, 0);
    }
}

static void duo_free(struct duo *q)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        assert_int_equal(gqp_destroy(&q->qp[i]), QHCA_ST_OK);
        assert_int_equal(gmr_destroy(&q->mr[i]), QHCA_ST_OK);
        assert_int_equal(gcq_destroy(&q->cq[i]), QHCA_ST_OK);
        guest_stop(&q->g[i]);
    }
    world_fini(&q->w);
    free(q);
}

/* Frequent stops, while time passes, lose nothing. */
static void all_stops(void **state)
{
    static const uint8_t ons[] = {
        QHCA_ON_PACKET, QHCA_ON_WQE, QHCA_ON_DOORBELL, QHCA_ON_CQE,
        QHCA_ON_COMMAND, QHCA_ON_EVENT, QHCA_ON_WALK, QHCA_ON_DATA,
    };
    struct duo *q = duo_new();
    unsigned i, j;

    (void)state;
    for (i = 0; i < 2; i++) {
        q->w.node[i].on_stop = stopped;
        for (j = 0; j < sizeof(ons); j++) {
            struct qhca_break b = { .on = ons[j] };

            assert_null(qhca_break_add(q->w.node[i].e, &b));
        }
    }
    duo_post(q);
    world_run(&q->w, 3000000);
    duo_check(q);
    for (i = 0; i < 2; i++) {
        assert_true(q->w.node[i].stops > 300);
        assert_false(qhca_break_stopped(q->w.node[i].e));
        assert_true(qhca_break_remove(q->w.node[i].e, 0));
    }
    duo_free(q);
}

/* ---- n steps of any kind are n ---- */

static struct {
    enum qhca_stop_on on;
    unsigned n;
} stepping;

/* At each stop: n events of the kind since the last one; then n more. */
static void step_again(struct node *n)
{
    const struct qhca_breaks *d = n->e->dbg;
    unsigned i, of_kind = 0;

    assert_false(d->by_break);
    assert_int_equal(d->why.kind, kind_of[stepping.on]);
    for (i = 0; i < d->trail_next && i < QHCA_TRAIL; i++) {
        of_kind += d->trail[i].kind == kind_of[stepping.on];
    }
    if (d->trail_next <= QHCA_TRAIL) {
        assert_int_equal(of_kind, stepping.n);
    }
    assert_null(qhca_break_step(n->e, stepping.on, stepping.n));
    n->go_at_once = true;
}

static void step_over(struct node *n)
{
    n->go_at_once = true;
}

static uint64_t run_steps(enum qhca_stop_on on, unsigned n,
                          uint64_t frames[2])
{
    struct duo *q = duo_new();
    uint64_t stops;
    unsigned i;

    stepping.on = on;
    stepping.n = n;
    for (i = 0; i < 2; i++) {
        q->w.node[i].traced = calloc(QHCA_TR_KINDS, sizeof(uint64_t));
    }
    if (n) {
        q->w.node[0].on_stop = step_again;
        assert_null(qhca_break_step(q->w.node[0].e, on, n));
    }
    duo_post(q);
    world_run(&q->w, 3000000);
    duo_check(q);
    stops = n ? q->w.node[0].stops : q->w.node[0].traced[kind_of[on]];
    frames[0] = q->w.frames;
    frames[1] = q->w.node[0].traced[QHCA_TR_WALK];
    for (i = 0; i < 2; i++) {
        free(q->w.node[i].traced);
        q->w.node[i].traced = NULL;
    }
    q->w.node[0].on_stop = step_over;   /* one more may follow */
    duo_free(q);
    return stops;
}

/*
 * The same traffic with and without stops, which take no time: as many stops as
 * events of the kind, whatever else the same call does.
 */
static void exact(void **state)
{
    unsigned on, n;

    (void)state;
    for (on = 0; on < QHCA_ONS; on++) {
        uint64_t plain[2], frames[2], events, stops;

        if (!kind_of[on] || on == QHCA_ON_DROP) {
            continue;           /* nothing is dropped here */
        }
        events = run_steps(on, 0, plain);
        CHECK(events, "no event of kind %s", qhca_on_name(on));
        for (n = 1; n <= 3; n++) {
            stops = run_steps(on, n, frames);
            CHECK(stops == events / n, "%s: %u events, %u stops of %u",
                  qhca_on_name(on), (unsigned)events, (unsigned)stops, n);
            assert_int_equal(frames[0], plain[0]);
            assert_int_equal(frames[1], plain[1]);
        }
    }
}

/* Every kind of event can be shown. */
static void events(void **state)
{
    struct seen s = { 0 };
    unsigned i;

    (void)state;
    for (i = 0; i < QHCA_TR_KINDS; i++) {
        struct qhca_trace t = { .kind = i, .a = 1, .b = 2, .addr = 8 };
        const struct qhca_emit *em = seen_start(&s);

        em->begin(em->opaque, NULL, false);
        qhca_emit_trace(em, &t);
        em->end(em->opaque);
        SEEN(&s, "kind", qhca_trace_name(i));
        assert_true(strchr(strchr(s.text + 1, '=') + 1, '=') != NULL);
    }
    for (i = 0; i < QHCA_ONS; i++) {
        assert_non_null(qhca_on_name(i));
    }
    assert_null(qhca_on_name(QHCA_ONS));
    seen_start(&s);
    free(s.text);
}

/* Conditions accept the fields that are listed for them. */
static void names(void **state)
{
    static const char *const field[] = {
        "number", "peer", "index", "psn", "code", "wr-id", "syndrome",
    };
    struct seen s = { 0 };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    unsigned i, bit, n;
    char path[64];

    (void)state;
    qhca_break_names(seen_start(&s));
    assert_int_equal(s.depth, 0);
    for (i = 0; i < QHCA_ONS; i++) {
        snprintf(path, sizeof(path), "events.%u.on", i);
        SEEN(&s, path, qhca_on_name(i));
        for (n = bit = 0; bit < 7; bit++) {
            struct qhca_break b = { .on = i, .fields = 1 << bit };

            if (!qhca_break_add(p->e, &b)) {
                snprintf(path, sizeof(path), "events.%u.fields.%u", i, n++);
                SEEN(&s, path, field[bit]);
            }
        }
        snprintf(path, sizeof(path), "\nevents.%u.fields.%u =", i, n);
        assert_null(strstr(s.text, path));
        qhca_break_remove(p->e, 0);
    }
    SEEN(&s, "events.1.codes.0.name", "SEND");
    assert_non_null(strstr(s.text, " = RC SEND_ONLY\n"));
    assert_non_null(strstr(s.text, " = XRC ACK\n"));
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* A cancelled step does not stop the adapter later. */
static void cancel(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    qhca_break_step_cancel(p->e);       /* nothing was ever set */
    step(p, QHCA_ON_WQE, 3);
    post(p, 2, 0, 8);
    peer_run(p);
    assert_false(qhca_break_stopped(p->e));
    qhca_break_step_cancel(p->e);
    post(p, 2, 2, 8);
    peer_run(p);
    assert_false(qhca_break_stopped(p->e));
    step(p, QHCA_ON_WQE, 1);
    post(p, 1, 4, 8);
    peer_run(p);
    assert_true(qhca_break_stopped(p->e));
    qhca_break_step_cancel(p->e);       /* stays stopped */
    assert_true(qhca_break_stopped(p->e));
    node_continue(p->n);
    peer_run(p);
    assert_false(qhca_break_stopped(p->e));
    peer_free(p);
}

static void report(struct node *n)
{
    n->go_at_once = true;       /* as in a replayed machine */
}

/* Of a machine that is replayed, only the first stop is reported. */
static void watched_once(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct seen s = { 0 };
    uint32_t id;

    (void)state;
    p->n->on_stop = report;
    qhca_break_watch_only(p->e);
    brk(p, (struct qhca_break){ .on = QHCA_ON_WQE, .once = true });
    id = brk(p, (struct qhca_break){ .on = QHCA_ON_WQE });
    post(p, 3, 0x10, 10);
    assert_int_equal(p->n->stops, 1);
    /* it has reported itself, and is gone; the other one waits */
    assert_int_equal(qhca_break_next(p->e, 0)->id, id);
    assert_int_equal(qhca_break_next(p->e, 0)->hits, 3);
    show(p, &s);
    SEEN(&s, "stopped", "true");
    SEEN(&s, "why", "break");
    SEEN(&s, "event.wr_id", "0x10");
    qhca_break_gone_on(p->e);
    show(p, &s);
    SEEN(&s, "stopped", "false");
    post(p, 1, 0x13, 10);
    assert_int_equal(p->n->stops, 2);
    show(p, &s);
    SEEN(&s, "event.wr_id", "0x13");
    assert_int_equal(peer_waiting(p), 4);
    p->tail = p->head;
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* Between stops, the steps left are shown. */
static void steps_shown(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct seen s = { 0 };

    (void)state;
    assert_null(qhca_break_step(p->e, QHCA_ON_WQE, 3));
    show(p, &s);
    SEEN(&s, "stepping", "wqe");
    SEEN(&s, "steps_left", "3");
    post(p, 2, 0, 8);
    show(p, &s);
    SEEN(&s, "stopped", "false");
    SEEN(&s, "steps_left", "1");
    post(p, 1, 2, 8);
    assert_true(qhca_break_stopped(p->e));
    show(p, &s);
    SEEN(&s, "why", "step");
    assert_null(seen_get(&s, "steps_left"));
    node_continue(p->n);
    peer_run(p);
    show(p, &s);
    SEEN(&s, "stopped", "false");
    assert_null(seen_get(&s, "stepping"));
    p->tail = p->head;
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(doorbell),
        cmocka_unit_test(step_wqe),
        cmocka_unit_test(step_packet),
        cmocka_unit_test(conditions),
        cmocka_unit_test(ignore_and_limits),
        cmocka_unit_test(timers),
        cmocka_unit_test(reset),
        cmocka_unit_test(bad_read_inside),
        cmocka_unit_test(reads),
        cmocka_unit_test(cannot_stop),
        cmocka_unit_test(reset_inside),
        cmocka_unit_test(all_stops),
        cmocka_unit_test(exact),
        cmocka_unit_test(events),
        cmocka_unit_test(names),
        cmocka_unit_test(cancel),
        cmocka_unit_test(watched_once),
        cmocka_unit_test(steps_shown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
