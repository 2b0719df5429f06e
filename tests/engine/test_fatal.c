/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fatal state ends what is under way, also within a batch: the event of a
 * CQE cannot be written, and no work follows that CQE.
 */
#include "peer.h"
#include "adapter/adapter.h"

#define QKEY 0x11111111u
#define BATCH 8

static struct qhca_ops ops;
static unsigned stores, bad;

static bool store_fails(void *opaque, uint64_t addr, uint64_t val)
{
    return ++stores != bad && ops.dma_store64(opaque, addr, val);
}

/* From now on, the store of the event after @cqes CQEs fails. */
static void no_event(struct peer *p, unsigned cqes)
{
    stores = 0;
    bad = cqes + 1;
    ops = p->e->ops;
    p->e->ops.dma_store64 = store_fails;
}

/*
 * It has failed, the adapter is fatal, and there was no further store but that
 * of DEVICE_FATAL, to the asynchronous EQ.
 */
static void ended(struct peer *p)
{
    p->e->ops = ops;
    assert_int_equal(p->e->fatal, QHCA_FATAL_EQ);
    assert_int_equal(stores, bad + 1);
}

/* Post BATCH times @wr with 64 bytes of data, without ringing. */
static void post_batch(struct peer *p, struct gqp *qp, struct gwr wr)
{
    wr.num_sge = 1;
    wr.sge[0].addr = PEER_IOVA;
    wr.sge[0].len = 64;
    wr.sge[0].lkey = p->mr.key;
    for (wr.wr_id = 1; wr.wr_id <= BATCH; wr.wr_id++) {
        assert_true(gqp_post_send(qp, &wr));
    }
}

/* @qp is rung, and the first CQE of @cq makes the adapter fatal. */
static void until_fatal(struct peer *p, struct gqp *qp, struct gcq *cq)
{
    struct qhca_cqe second;

    gcq_arm(cq, false);
    no_event(p, 1);
    gqp_ring(qp);
    peer_run(p);
    ended(p);
    assert_true(gcq_poll(cq, &p->cqe));
    assert_int_equal(p->cqe.wr_id, 1);
    assert_false(gcq_poll(cq, &second));
}

static void drop(struct peer *p)
{
    qhca_reset(p->e);
    peer_drop(p);
}

static void uc(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UC, NULL);

    (void)state;
    post_batch(p, &p->qp, (struct gwr){ .opcode = QHCA_WQE_SEND,
                                        .flags = QHCA_WQE_F_SIGNALED });
    until_fatal(p, &p->qp, &p->scq);
    assert_int_equal(peer_waiting(p), 1);
    drop(p);
}

static void ud(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .flags = QHCA_WQE_F_SIGNALED,
        .dest_qpn = PEER_QPN, .qkey = QKEY,
    };

    (void)state;
    guest_av(&p->g, &p->w.node[1], 0, &wr.av);
    post_batch(p, &p->qp, wr);
    until_fatal(p, &p->qp, &p->scq);
    assert_int_equal(peer_waiting(p), 1);
    drop(p);
}

static unsigned frames;

static bool count_frames(struct world *w, unsigned src, uint8_t *frame,
                         size_t *len)
{
    (void)w;
    (void)src;
    (void)frame;
    (void)len;
    frames++;
    return false;
}

static void raw(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .sq_shift = 4, .sq_stride = 8, .rq_shift = 4,
        .rq_stride = 6, .scq = &p->scq, .rcq = &p->rcq,
    };
    struct gqp qp;
    uint8_t st;

    (void)state;
    p->w.wire.filter = count_frames;
    frames = 0;
    gqp_create(&qp, &p->g, &in);
    for (st = QHCA_QPS_INIT; st <= QHCA_QPS_RTS; st++) {
        assert_int_equal(gqp_state(&qp, st), QHCA_ST_OK);
    }
    post_batch(p, &qp, (struct gwr){ .opcode = QHCA_WQE_RAW_SEND,
                                     .flags = QHCA_WQE_F_SIGNALED });
    until_fatal(p, &qp, &p->scq);
    assert_int_equal(frames, 1);
    gbuf_free(&qp.sq);
    gbuf_free(&qp.rq);
    drop(p);
}

/* To itself: only the first packet is received. */
static void loopback(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .dest_qpn = p->qp.qpn, .qkey = QKEY,
    };
    unsigned i;

    (void)state;
    guest_av(&p->g, p->n, 0, &wr.av);
    for (i = 1; i <= BATCH; i++) {
        peer_recv(p, i, 4096 * i, 256);
    }
    post_batch(p, &p->qp, wr);
    until_fatal(p, &p->qp, &p->rcq);
    drop(p);
}

static void flush(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_ERR), QHCA_ST_OK);
    post_batch(p, &p->qp, (struct gwr){ .opcode = QHCA_WQE_SEND });
    until_fatal(p, &p->qp, &p->scq);
    assert_int_equal(p->cqe.status, QHCA_WC_WR_FLUSH_ERR);
    drop(p);
}

/* A QP like that of the peer, with its CQs or those given. */
static void make_qp(struct peer *p, struct gqp *qp, uint8_t type,
                    struct gcq *scq, struct gcq *rcq)
{
    struct gqp_init in = {
        .type = type, .sq_shift = 4, .sq_stride = 8, .rq_shift = 4,
        .rq_stride = 6, .scq = scq, .rcq = rcq,
    };
    struct gqp_attr a = p->a;

    gqp_create(qp, &p->g, &in);
    if (type == QHCA_QPT_RAW) {
        assert_int_equal(gqp_state(qp, QHCA_QPS_INIT), QHCA_ST_OK);
        assert_int_equal(gqp_state(qp, QHCA_QPS_RTR), QHCA_ST_OK);
    } else {
        gqp_to_init(qp, &a);
        gqp_to_rtr(qp, &p->w.node[1], &a);
        gqp_to_rts(qp, &a);
    }
}

static void free_qp(struct gqp *qp)
{
    gbuf_free(&qp->sq);
    gbuf_free(&qp->rq);
}

/* A packet arrives that a sniffer gets first. */
static void sniffed(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_flow flow = { .type = QHCA_FLOW_SNIFFER };
    struct qhca_sge sge = { .addr = PEER_IOVA, .len = 4096,
                            .lkey = p->mr.key };
    struct qhca_cqe second;
    struct gqp qp;

    (void)state;
    make_qp(p, &qp, QHCA_QPT_RAW, &p->scq, &p->rcq);
    assert_true(gqp_post_recv(&qp, 1, &sge, 1));
    flow.qpn = qp.qpn;
    guest_create(&p->g, QHCA_CMD_CREATE_FLOW, &flow, sizeof(flow));
    peer_recv(p, 2, 8192, 100);
    gcq_arm(&p->rcq, false);
    no_event(p, 1);
    peer_tx(p, .op = SEND_ONLY, .psn = p->a.rq_psn, .ackreq = true,
            .data = peer_data(0, 10), .len = 10);
    peer_run(p);
    ended(p);
    assert_true(gcq_poll(&p->rcq, &p->cqe));
    assert_int_equal(p->cqe.wr_id, 1);
    assert_false(gcq_poll(&p->rcq, &second));
    assert_int_equal(peer_waiting(p), 0);
    free_qp(&qp);
    drop(p);
}

/* Two QPs have waited for their peers for too long. */
static void timers(void **state)
{
    struct gwr wr = { .opcode = QHCA_WQE_SEND };
    struct gqp_attr a;
    struct peer *p;
    struct gqp qp;

    (void)state;
    peer_attr_default(&a);
    a.retry_cnt = 0;
    p = peer_new(QHCA_QPT_RC, &a);
    make_qp(p, &qp, QHCA_QPT_RC, &p->scq, &p->rcq);
    assert_true(gqp_post_send(&p->qp, &wr));
    assert_true(gqp_post_send(&qp, &wr));
    gcq_arm(&p->scq, false);
    no_event(p, 1);
    gqp_ring(&p->qp);
    gqp_ring(&qp);
    world_run(&p->w, 100000000);
    ended(p);
    free_qp(&qp);
    drop(p);
}

/* Two moderated CQs have waited for more CQEs for long enough. */
static void moderation(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UC, NULL);
    struct qhca_cqc c = { .mod_count = 9, .mod_usec = 100 };
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .flags = QHCA_WQE_F_SIGNALED,
    };
    struct gcmd m = {
        .op = QHCA_CMD_MODIFY_CQ, .in = &c, .in_len = sizeof(c),
        .mask = QHCA_CQ_M_MODERATION,
    };
    struct gqp qp;

    (void)state;
    make_qp(p, &qp, QHCA_QPT_UC, &p->rcq, &p->rcq);
    m.obj = p->scq.cqn;
    guest_must(&p->g, &m);
    m.obj = p->rcq.cqn;
    guest_must(&p->g, &m);
    assert_true(gqp_post_send(&p->qp, &wr));
    assert_true(gqp_post_send(&qp, &wr));
    gcq_arm(&p->scq, false);
    gcq_arm(&p->rcq, false);
    no_event(p, 2);
    gqp_ring(&p->qp);
    gqp_ring(&qp);
    world_run(&p->w, 1000000);
    ended(p);
    free_qp(&qp);
    drop(p);
}

/* A QP is answering a READ when a loopback packet for another arrives. */
static void answers(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct pkt k = {
        .op = READ_REQ, .psn = p->a.rq_psn, .va = PEER_IOVA,
        .rkey = p->mr.key, .dmalen = 100000,
    };
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .qkey = p->a.qkey };
    static uint8_t b[4400];
    struct gcq cq;
    struct gqp qp;

    (void)state;
    gcq_create(&cq, &p->g, 4, NULL, 1);
    make_qp(p, &qp, QHCA_QPT_UD, &cq, &cq);
    guest_av(&p->g, p->n, 0, &wr.av);
    wr.dest_qpn = qp.qpn;
    assert_true(gqp_post_recv(&qp, 1, &(struct qhca_sge){
        .addr = PEER_IOVA + 4096, .len = 100, .lkey = p->mr.key }, 1));
    assert_true(gqp_post_send(&qp, &wr));
    gcq_arm(&cq, false);
    no_event(p, 1);
    world_inject(&p->w, 0, b, peer_build(p, &k, b));
    gqp_ring(&qp);
    peer_run(p);
    ended(p);
    /* those of its first turn, of 32 packets: a quarter is for requests */
    assert_int_equal(peer_waiting(p), 24);
    free_qp(&qp);
    gbuf_free(&cq.buf);
    drop(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uc),
        cmocka_unit_test(ud),
        cmocka_unit_test(raw),
        cmocka_unit_test(loopback),
        cmocka_unit_test(flush),
        cmocka_unit_test(sniffed),
        cmocka_unit_test(timers),
        cmocka_unit_test(moderation),
        cmocka_unit_test(answers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
