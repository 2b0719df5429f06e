/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Findings of fuzz-device.c, one test each: whatever a hostile device writes,
 * the provider accesses only the memory of its queues.
 *
 * One case is left: a CQE names a QP, WQ or SRQ of another CQ, and is polled at
 * the moment at which another thread destroys that object. It is dropped, but
 * the comparison of the CQs may read memory that was just freed.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "fake-kernel.h"

static int setup(void **state)
{
    fake.features |= QHCA_FEAT_TAG_MATCHING;
    fake_open();
    return 0;
}

static int teardown(void **state)
{
    fake_close();
    return 0;
}

static struct qhca_cqe cqe(uint32_t qpn, uint8_t opcode)
{
    return (struct qhca_cqe) {
        .qpn = htole32(qpn), .opcode = opcode, .wr_id = htole64(5),
    };
}

/*
 * A completion on a CQ that is not the QP's. If it were accepted, the CQ would
 * refer to the QP, but would not be cleaned when the QP is destroyed: the next
 * CQE was looked up in freed memory.
 */
static void test_qp_of_another_cq(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(16), *other = fake_cq(16);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    uint32_t qpn = qp->qpn;
    struct ibv_wc wc[4];

    fake_cqe(other, 0, cqe(qpn, QHCA_CQE_OP_SEND));
    fake_cqe(other, 1, cqe(qpn, QHCA_CQE_OP_RECV));
    assert_int_equal(qhca_poll_cq(&other->vcq.cq, 4, wc), 0);
    assert_int_equal(atomic_load(&other->ci), 2);
    /* its own is another matter */
    fake_cqe(cq, 0, cqe(qpn, QHCA_CQE_OP_SEND));
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 4, wc), 1);
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    fake_cqe(other, 2, cqe(qpn, QHCA_CQE_OP_SEND));
    assert_int_equal(qhca_poll_cq(&other->vcq.cq, 4, wc), 0);
    assert_int_equal(qhca_destroy_cq(&other->vcq.cq), 0);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

/* The same for the CQ of an SRQ. */
static void test_srq_of_another_cq(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(16), *other = fake_cq(16);
    struct ibv_srq_init_attr_ex attr = {
        .attr = { .max_wr = 16, .max_sge = 1 },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
        .srq_type = IBV_SRQT_TM, .pd = pd, .cq = &cq->vcq.cq,
        .tm_cap = { .max_num_tags = 4, .max_ops = 8 },
    };
    struct ibv_srq *srq = qhca_create_srq_ex(fake.context, &attr);
    struct qhca_cqe of_srq = cqe(1, QHCA_CQE_OP_RECV);
    struct ibv_wc wc;

    assert_non_null(srq);
    of_srq.src_qpn = htole32(to_qsrq(srq)->srqn);
    of_srq.flags = htole16(QHCA_CQE_F_SRQN | QHCA_CQE_F_SRQ);
    fake_cqe(other, 0, of_srq);
    assert_int_equal(qhca_poll_cq(&other->vcq.cq, 1, &wc), 0);
    fake_cqe(cq, 0, of_srq);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
    assert_int_equal(qhca_destroy_srq(srq), 0);
    assert_int_equal(qhca_destroy_cq(&other->vcq.cq), 0);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

static void *destroy_qp(void *qp)
{
    return (void *)(intptr_t)qhca_destroy_qp(qp);
}

/*
 * A completion of a QP that is being destroyed, on a CQ that is clean already:
 * the CQ referred to the QP again, and later to freed memory.
 */
static void test_qp_being_destroyed(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *recv_cq = fake_cq(16), *send_cq = fake_cq(16);
    struct ibv_qp_init_attr attr = {
        .send_cq = &send_cq->vcq.cq, .recv_cq = &recv_cq->vcq.cq,
        .qp_type = IBV_QPT_RC, .cap = { 4, 4, 1, 1 },
    };
    struct ibv_qp *qp = qhca_create_qp(pd, &attr);
    struct qhca_cqe late;
    pthread_t thread;
    struct ibv_wc wc;
    void *ret;

    assert_non_null(qp);
    late = cqe(to_qqp(qp)->qpn, QHCA_CQE_OP_RECV);
    fake_cqe(recv_cq, 0, late);
    /* as if the application were polling this CQ */
    qhca_lock(&send_cq->lock);
    assert_int_equal(pthread_create(&thread, NULL, destroy_qp, qp), 0);
    while (atomic_load(&recv_cq->ci) != 1) {
        sched_yield();
    }
    fake_cqe(recv_cq, 1, late);
    assert_int_equal(qhca_poll_cq(&recv_cq->vcq.cq, 1, &wc), 0);
    qhca_unlock(&send_cq->lock);
    pthread_join(thread, &ret);
    assert_null(ret);
    fake_cqe(recv_cq, 2, late);
    assert_int_equal(qhca_poll_cq(&recv_cq->vcq.cq, 1, &wc), 0);
    assert_int_equal(qhca_destroy_cq(&send_cq->vcq.cq), 0);
    assert_int_equal(qhca_destroy_cq(&recv_cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

static _Atomic bool started, stop;

/* Completions without requests, as fast as the application polls. */
static void *flood(void *arg)
{
    struct qhca_cq *cq = arg;
    uint32_t depth = 1U << cq->shift, prod = depth;

    atomic_store(&started, true);
    while (!atomic_load(&stop)) {
        if (prod - atomic_load(&cq->ci) < depth) {
            fake_cqe(cq, prod++, cqe(0xabcdef, QHCA_CQE_OP_SEND));
        }
    }
    return NULL;
}

/*
 * A device that never stops writing does not keep the application in a call. An
 * error is only likely to be found: that depends on the threads' speed.
 */
static void test_flood(void **state)
{
    struct ibv_cq_init_attr_ex attr = { .cqe = 4096 };
    struct ibv_cq_ex *ex = qhca_create_cq_ex(fake.context, &attr);
    struct ibv_poll_cq_attr poll = {};
    struct qhca_cq *cq = to_qcq_ex(ex);
    uint32_t depth = 1U << cq->shift, i;
    pthread_t thread;
    struct ibv_wc wc;

    atomic_store(&stop, false);
    for (i = 0; i < depth; i++) {
        fake_cqe(cq, i, cqe(0xabcdef, QHCA_CQE_OP_SEND));
    }
    assert_int_equal(pthread_create(&thread, NULL, flood, cq), 0);
    while (!atomic_load(&started)) {
        sched_yield();
    }
    assert_int_equal(ex->start_poll(ex, &poll), ENOENT);
    assert_in_range(atomic_load(&cq->ci), 0, depth);
    i = atomic_load(&cq->ci);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 0);
    assert_in_range(atomic_load(&cq->ci) - i, 0, depth);
    atomic_store(&stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
}

/* "A WQE of your send queue was lost", to a QP that has none, and to a WQ. */
static void test_lost_wqe_without_a_ring(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(16);
    struct ibv_srq_init_attr_ex sattr = {
        .attr = { .max_wr = 16, .max_sge = 1 },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
        .srq_type = IBV_SRQT_TM, .pd = pd, .cq = &cq->vcq.cq,
        .tm_cap = { .max_num_tags = 4, .max_ops = 8 },
    };
    struct ibv_srq *srq = qhca_create_srq_ex(fake.context, &sattr);
    struct ibv_qp_init_attr attr = {
        .send_cq = &cq->vcq.cq, .recv_cq = &cq->vcq.cq, .srq = srq,
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_wq_init_attr wattr = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd,
        .cq = &cq->vcq.cq,
    };
    struct ibv_qp *qp = qhca_create_qp(pd, &attr);
    struct ibv_wq *wq = qhca_create_wq(fake.context, &wattr);
    struct ibv_wc wc[2];
    struct qhca_cqe lost;

    assert_non_null(qp);
    assert_non_null(wq);
    lost = cqe(to_qqp(qp)->qpn, QHCA_CQE_OP_SEND);
    lost.status = QHCA_WC_LOC_QP_OP_ERR;
    lost.syndrome = QHCA_SYN_WQE_DMA;
    lost.wqe_index = htole32(0x12345);
    fake_cqe(cq, 0, lost);
    lost.qpn = htole32(wq->wq_num);
    fake_cqe(cq, 1, lost);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 2, wc), 1);
    assert_int_equal(wc[0].wr_id, 5);
    assert_int_equal(qhca_destroy_wq(wq), 0);
    assert_int_equal(qhca_destroy_qp(qp), 0);
    assert_int_equal(qhca_destroy_srq(srq), 0);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

/*
 * The end of inline data is not read from the ring, which the device can write:
 * it once was, and the application's next bytes were written 64 KiB behind it.
 */
static void test_inline_length_is_our_own(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(16);
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = &cq->vcq.cq, .recv_cq = &cq->vcq.cq, .pd = pd,
        .qp_type = IBV_QPT_RC, .cap = { .max_inline_data = 64 },
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct ibv_qp *qp = qhca_create_qp_ex(fake.context, &attr);
    struct qhca_sq *sq = &to_qqp(qp)->sq;
    struct ibv_qp_ex *ex = &to_qqp(qp)->vqp.qp_ex;
    struct qhca_wqe_ctrl *ctrl = (void *)sq->ring;
    char data[256] = "0123456789abcdef";

    fake_qp_state(to_qqp(qp), IBV_QPS_RTS);
    ex->wr_start(ex);
    ex->wr_send(ex);
    ex->wr_set_inline_data(ex, data, 8);
    ctrl->num_sge = htole16(0xffff);
    ex->wr_set_inline_data(ex, data + 8, 8);
    assert_int_equal(ex->wr_complete(ex), 0);
    assert_int_equal(le16toh(ctrl->num_sge), 16);
    assert_memory_equal(sq->ring + QHCA_RC_WQE_HEADER, data, 16);
    /* and the next one begins anew */
    ex->wr_start(ex);
    ex->wr_send(ex);
    ex->wr_set_inline_data(ex, data, attr.cap.max_inline_data);
    assert_int_equal(ex->wr_complete(ex), 0);
    assert_int_equal(qhca_destroy_qp(qp), 0);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

static void *heap_alloc(struct ibv_pd *pd, void *context, size_t size,
                        size_t alignment, uint64_t type)
{
    return aligned_alloc(alignment, size);
}

static void heap_free(struct ibv_pd *pd, void *context, void *ring,
                      uint64_t type)
{
    free(ring);
}

/* A traced WQE claims more SGEs than fit: none is read. */
static void test_trace_within_the_ring(void **state)
{
    struct ibv_parent_domain_init_attr pattr = {
        .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS,
        .alloc = heap_alloc, .free = heap_free, .pd = fake_pd(),
    };
    struct ibv_pd *pd = qhca_alloc_parent_domain(fake.context, &pattr);
    struct qhca_cq *cq = fake_cq(16);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    uint32_t last = (1U << qp->sq.shift) - 1;
    struct qhca_wqe_ctrl *ctrl;
    struct qhca_rq_wqe *wqe;

    ctrl = (void *)(qp->sq.ring + ((size_t)last << qp->sq.stride));
    ctrl->num_sge = htole16(0xffff);
    qhca_trace_wqe_at(qp->qpn, last, &qp->sq.rules, ctrl);
    last = (1U << qp->rq.shift) - 1;
    wqe = (void *)(qp->rq.ring + ((size_t)last << qp->rq.stride));
    wqe->num_sge = htole16(0xffff);
    qhca_trace_recv_wqe_at(qp->qpn, last, qp->rq.max_sge, wqe);
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
    assert_int_equal(qhca_dealloc_pd(pattr.pd), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_qp_of_another_cq, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_qp_being_destroyed, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_flood, setup, teardown),
        cmocka_unit_test_setup_teardown(test_srq_of_another_cq, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_lost_wqe_without_a_ring, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_inline_length_is_our_own, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_trace_within_the_ring, setup,
                                        teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
