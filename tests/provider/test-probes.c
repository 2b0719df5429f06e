/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exercises each probe point of the provider. probes.py runs this under gdb,
 * which traces the points, and compares what gdb saw with what this prints:
 * "point argument...".
 */
#include <stdio.h>
#include <string.h>

#include "fake-kernel.h"

static void test_posts(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct ibv_qp_init_attr attr = {
        .qp_type = IBV_QPT_RC, .send_cq = &cq->vcq.cq,
        .recv_cq = &cq->vcq.cq,
        .cap = { .max_send_wr = 8, .max_send_sge = 2, .max_recv_wr = 1,
                 .max_recv_sge = 1, .max_inline_data = 8 },
    };
    struct qhca_qp *qp = to_qqp(qhca_create_qp(pd, &attr));
    char data[] = "some";
    struct ibv_sge sge[2] = {
        { .addr = 0x1000, .length = 100, .lkey = 7 },
        { .addr = 0x2000, .length = 11, .lkey = 7 },
    }, text = { .addr = (uintptr_t)data, .length = 4 };
    struct ibv_send_wr wr[2] = {
        { .wr_id = 0x1122334455667788, .opcode = IBV_WR_SEND,
          .send_flags = IBV_SEND_SIGNALED, .sg_list = sge, .num_sge = 2,
          .next = &wr[1] },
        { .wr_id = 2, .opcode = IBV_WR_SEND, .sg_list = &text, .num_sge = 1,
          .send_flags = IBV_SEND_INLINE },
    }, *bad;
    struct ibv_recv_wr recv = { .wr_id = 0x99, .sg_list = sge, .num_sge = 1 };
    struct ibv_recv_wr *bad_recv;
    struct ibv_wc wc[2];
    struct qhca_cqe cqe = {
        .wr_id = htole64(0x99), .qpn = htole32(qp->qpn),
        .opcode = QHCA_CQE_OP_RECV, .byte_len = htole32(64),
    };

    qp->vqp.qp.state = IBV_QPS_RTS;
    assert_int_equal(qhca_post_send(&qp->vqp.qp, wr, &bad), 0);
    printf("wqe %u 0 %u %u %llu 111\n", qp->qpn, QHCA_WQE_SEND,
           QHCA_WQE_F_SIGNALED, 0x1122334455667788ULL);
    printf("wqe %u 1 %u %u 2 4\n", qp->qpn, QHCA_WQE_SEND, QHCA_WQE_F_INLINE);
    printf("doorbell %u %u 2\n", QHCA_DB_SQ, qp->qpn);

    assert_int_equal(qhca_post_recv(&qp->vqp.qp, &recv, &bad_recv), 0);
    printf("recv_wqe %u 0 %u 100\n", qp->qpn, 0x99);

    assert_int_equal(qhca_req_notify_cq(&cq->vcq.cq, 1), 0);
    printf("doorbell %u %u 0\n", QHCA_DB_CQ_ARM, cq->cqn);

    fake_cqe(cq, 0, cqe);
    cqe.opcode = QHCA_CQE_OP_SEND;
    cqe.status = QHCA_WC_REM_ACCESS_ERR;
    cqe.wr_id = htole64(2);
    cqe.wqe_index = htole32(1);
    cqe.byte_len = 0;
    fake_cqe(cq, 1, cqe);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 2, wc), 2);
    printf("poll %u 0 %u 0 %u 0 %u 64\n", cq->cqn, qp->qpn, QHCA_CQE_OP_RECV,
           0x99);
    printf("poll %u 1 %u 1 %u %u 2 0\n", cq->cqn, qp->qpn, QHCA_CQE_OP_SEND,
           QHCA_WC_REM_ACCESS_ERR);

    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

/*
 * Extended posting: a WQE is reported when it is complete, and if it is posted.
 */
static void test_extended(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct ibv_cq_init_attr_ex cq_attr = { .cqe = 64 };
    struct ibv_cq_ex *cqx = fake.ops->create_cq_ex(fake.context, &cq_attr);
    struct ibv_poll_cq_attr poll = {};
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC, .send_cq = ibv_cq_ex_to_cq(cqx),
        .recv_cq = ibv_cq_ex_to_cq(cqx), .pd = pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
        .cap = { .max_send_wr = 8, .max_send_sge = 2, .max_recv_wr = 1,
                 .max_recv_sge = 1 },
    };
    struct ibv_qp *ibv = fake.ops->create_qp_ex(fake.context, &attr);
    struct ibv_qp_ex *ex = &to_qqp(ibv)->vqp.qp_ex;
    struct qhca_qp *qp = to_qqp(ibv);
    struct qhca_cq *cq = to_qcq_ex(cqx);

    ibv->state = IBV_QPS_RTS;
    ex->wr_start(ex);
    ex->wr_id = 5;
    ex->wr_send(ex);
    ex->wr_set_sge(ex, 7, 0x1000, 77);
    ex->wr_abort(ex);

    ex->wr_start(ex);
    ex->wr_id = 6;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ex->wr_rdma_write(ex, 1, 0x5000);
    ex->wr_set_sge(ex, 7, 0x1000, 123);
    assert_int_equal(ex->wr_complete(ex), 0);
    printf("wqe %u 0 %u %u 6 123\n", qp->qpn, QHCA_WQE_RDMA_WRITE,
           QHCA_WQE_F_SIGNALED);
    printf("doorbell %u %u 1\n", QHCA_DB_SQ, qp->qpn);

    fake_cqe(cq, 0, (struct qhca_cqe) {
        .wr_id = htole64(6), .qpn = htole32(qp->qpn),
        .opcode = QHCA_CQE_OP_RDMA_WRITE,
    });
    assert_int_equal(cqx->start_poll(cqx, &poll), 0);
    cqx->end_poll(cqx);
    printf("poll %u 0 %u 0 %u 0 6 0\n", cq->cqn, qp->qpn,
           QHCA_CQE_OP_RDMA_WRITE);

    assert_int_equal(qhca_destroy_qp(ibv), 0);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

static int setup(void **state)
{
    fake_open();
    return 0;
}

static int teardown(void **state)
{
    fake_close();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_posts, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extended, setup, teardown),
    };

    setvbuf(stdout, NULL, _IONBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
