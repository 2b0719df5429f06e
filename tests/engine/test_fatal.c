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
static unsigned stores;

/* Of the first CQE's event. */
static bool second_store_fails(void *opaque, uint64_t addr, uint64_t val)
{
    return ++stores != 2 && ops.dma_store64(opaque, addr, val);
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
    stores = 0;
    ops = p->e->ops;
    p->e->ops.dma_store64 = second_store_fails;
    gqp_ring(qp);
    peer_run(p);
    p->e->ops = ops;
    assert_int_equal(p->e->fatal, QHCA_FATAL_EQ);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uc),
        cmocka_unit_test(ud),
        cmocka_unit_test(raw),
        cmocka_unit_test(loopback),
        cmocka_unit_test(flush),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
