/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Whole queues: the real provider, with the test as kernel and device. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake-kernel.h"

#define DB(reg) fake.db[QHCA_DB_##reg / 8]

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

static void destroy(struct qhca_qp *qp, struct qhca_cq *cq, struct ibv_pd *pd)
{
    if (qp) {
        assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    }
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

static struct qhca_cqe send_cqe(struct qhca_qp *qp, uint32_t index)
{
    return (struct qhca_cqe) {
        .wr_id = htole64(1000ULL + index),
        .qpn = htole32(qp->qpn),
        .wqe_index = htole32(index),
        .opcode = QHCA_CQE_OP_SEND,
    };
}

static int post_sends(struct qhca_qp *qp, int n, struct ibv_send_wr **bad)
{
    struct ibv_send_wr wr[256] = {};
    int i;

    for (i = 0; i < n; i++) {
        wr[i].wr_id = i;
        wr[i].opcode = IBV_WR_SEND;
        wr[i].send_flags = IBV_SEND_SIGNALED;
        wr[i].next = i + 1 < n ? &wr[i + 1] : NULL;
    }
    i = qhca_post_send(&qp->vqp.qp, wr, bad);
    if (i) {
        /* the number of the first one refused */
        *bad = (struct ibv_send_wr *)(uintptr_t)(*bad - wr);
    }
    return i;
}

/* Returns the wr_id in a slot of the send queue. */
static uint64_t posted_id(struct qhca_qp *qp, uint32_t slot)
{
    struct qhca_wqe_ctrl *ctrl;

    ctrl = (void *)(qp->sq.ring + (slot << qp->sq.stride));
    return le64toh(ctrl->wr_id);
}

static int post_recvs(struct qhca_qp *qp, int n)
{
    struct ibv_recv_wr wr = {}, *bad;
    int ret = 0;

    while (!ret && n--) {
        ret = qhca_post_recv(&qp->vqp.qp, &wr, &bad);
    }
    return ret;
}

/* What the kernel gets, and what the application gets back. */
static void test_create(void **state)
{
    long page = sysconf(_SC_PAGESIZE);
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(100);
    struct ibv_qp_init_attr attr = {
        .send_cq = &cq->vcq.cq,
        .recv_cq = &cq->vcq.cq,
        .cap = { .max_send_wr = 100, .max_recv_wr = 1, .max_send_sge = 3,
                 .max_recv_sge = 2, .max_inline_data = 10 },
        .qp_type = IBV_QPT_RC,
    };
    struct ibv_qp_attr qattr;
    struct ibv_qp_init_attr init;
    struct ibv_qp *qp;

    assert_int_equal(cq->vcq.cq.cqe, 128);
    assert_int_equal(fake.cq_cqe, 128);
    assert_int_equal(fake.cq.shift, 7);
    assert_int_equal(fake.cq.buf_addr % page, 0);
    assert_int_equal(fake.cq.buf_len % page, 0);
    assert_true(fake.cq.buf_len >= 128 * sizeof(struct qhca_cqe));
    assert_int_equal(fake.cq.dbrec_addr % 8, 0);

    qp = qhca_create_qp(pd, &attr);
    assert_non_null(qp);
    assert_int_equal(fake.qp.sq_stride, 7);
    assert_int_equal(fake.qp.sq_shift, 7);
    assert_int_equal(fake.qp.rq_stride, 6);
    assert_int_equal(1UL << fake.qp.rq_shift, page / 64);
    assert_int_equal(fake.qp.sq_addr % page, 0);
    assert_int_equal(fake.qp.rq_addr % page, 0);
    assert_int_equal(fake.qp.sq_len, 128 * 128);
    assert_int_equal(fake.qp.rq_len, page);
    assert_int_equal(attr.cap.max_send_wr, 128);
    assert_int_equal(attr.cap.max_recv_wr, page / 64);
    assert_int_equal(attr.cap.max_send_sge, 5);
    assert_int_equal(attr.cap.max_recv_sge, 3);
    assert_int_equal(attr.cap.max_inline_data, 80);
    assert_memory_equal(&attr.cap, &fake.qp_cap, sizeof(attr.cap));
    assert_int_equal(qhca_query_qp(qp, &qattr, 0, &init), 0);
    assert_memory_equal(&attr.cap, &init.cap, sizeof(attr.cap));
    destroy(to_qqp(qp), cq, pd);
}

static void expect_no_qp(struct ibv_pd *pd, struct ibv_qp_init_attr attr,
                         int error)
{
    errno = 0;
    assert_null(qhca_create_qp(pd, &attr));
    assert_int_equal(errno, error);
}

/* Refused, with the right error, and nothing left behind (see teardown). */
static void test_create_refused(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(1);
    struct ibv_qp_init_attr good = {
        .send_cq = &cq->vcq.cq,
        .recv_cq = &cq->vcq.cq,
        .qp_type = IBV_QPT_RC,
    }, attr;
    struct ibv_cq_init_attr_ex cqx = { .cqe = 1 };
    struct ibv_srq_init_attr sattr = { .attr.max_wr = 32769 };
    int fail;

    attr = good;
    attr.cap.max_send_wr = 32769;
    expect_no_qp(pd, attr, EINVAL);
    attr = good;
    attr.cap.max_recv_wr = 32769;
    expect_no_qp(pd, attr, EINVAL);
    attr = good;
    attr.cap.max_send_sge = 31;
    expect_no_qp(pd, attr, EINVAL);
    attr = good;
    attr.cap.max_recv_sge = 31;
    expect_no_qp(pd, attr, EINVAL);
    attr = good;
    attr.cap.max_inline_data = 513;
    expect_no_qp(pd, attr, EINVAL);
    attr = good;
    attr.qp_type = IBV_QPT_DRIVER;
    expect_no_qp(pd, attr, EOPNOTSUPP);
    attr = good;
    attr.recv_cq = NULL;
    expect_no_qp(pd, attr, EINVAL);
    for (fail = 1; fail < 3; fail++) {
        fake.fail = fail;
        expect_no_qp(pd, good, fail);
    }

    assert_null(qhca_create_cq(fake.context, 0, NULL, 0));
    assert_int_equal(errno, EINVAL);
    assert_null(qhca_create_cq(fake.context, -1, NULL, 0));
    assert_int_equal(errno, EINVAL);
    assert_null(qhca_create_cq(fake.context, (1 << 22) + 1, NULL, 0));
    assert_int_equal(errno, EINVAL);
    cqx.wc_flags = 1ULL << 40;
    assert_null(qhca_create_cq_ex(fake.context, &cqx));
    assert_int_equal(errno, EOPNOTSUPP);
    fake.fail = ENOSPC;
    assert_null(qhca_create_cq(fake.context, 1, NULL, 0));
    assert_int_equal(errno, ENOSPC);

    assert_null(qhca_create_srq(pd, &sattr));
    assert_int_equal(errno, EINVAL);
    destroy(NULL, cq, pd);
}

static void test_post_states(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct ibv_send_wr *bad;
    static const struct {
        enum ibv_qp_state state;
        int send, recv;
    } expect[] = {
        { IBV_QPS_RESET, EINVAL, EINVAL },
        { IBV_QPS_INIT, EINVAL, 0 },
        { IBV_QPS_RTR, EINVAL, 0 },
        { IBV_QPS_RTS, 0, 0 },
        { IBV_QPS_SQD, 0, 0 },
        { IBV_QPS_SQE, 0, 0 },
        { IBV_QPS_ERR, 0, 0 },
    };
    size_t i;

    for (i = 0; i < sizeof(expect) / sizeof(expect[0]); i++) {
        fake_qp_state(qp, expect[i].state);
        assert_int_equal(post_sends(qp, 1, &bad), expect[i].send);
        assert_int_equal(post_recvs(qp, 1), expect[i].recv);
    }
    destroy(qp, cq, pd);
}

/* One doorbell for a list; a full queue; what fits is posted. */
static void test_send_full(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct ibv_send_wr *bad;
    struct ibv_wc wc[64];
    uint64_t db;
    int i;

    fake_qp_state(qp, IBV_QPS_RTS);
    assert_int_equal(post_sends(qp, 10, &bad), 0);
    db = DB(SQ);
    assert_int_equal(db, (10ULL << 32) | qp->qpn);
    for (i = 0; i < 10; i++) {
        assert_int_equal(posted_id(qp, i), i);
    }

    /* 54 of these 60 fit */
    assert_int_equal(post_sends(qp, 60, &bad), ENOMEM);
    assert_int_equal((uintptr_t)bad, 54);
    assert_int_equal(DB(SQ) >> 32, 64);

    /* nothing fits: no doorbell */
    DB(SQ) = 0;
    assert_int_equal(post_sends(qp, 1, &bad), ENOMEM);
    assert_int_equal(DB(SQ), 0);

    /* one completion tells that 20 WQEs are done */
    fake_cqe(cq, 0, send_cqe(qp, 19));
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 64, wc), 1);
    assert_int_equal(wc[0].wr_id, 1019);
    assert_int_equal(le32toh(cq->dbrec->index), 1);
    assert_int_equal(post_sends(qp, 21, &bad), ENOMEM);
    assert_int_equal((uintptr_t)bad, 20);
    assert_int_equal(DB(SQ) >> 32, 84);
    /* and they went into the slots that were freed */
    assert_int_equal(posted_id(qp, 0), 0);
    assert_int_equal(posted_id(qp, 19), 19);
    destroy(qp, cq, pd);
}

/* With a doorbell record: rung only if the device asks for it, old API and new. */
static void test_send_record(void **state)
{
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RC, .cap = { .max_send_wr = 64, .max_send_sge = 1 },
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND,
    };
    struct ibv_mw_bind bind = { .send_flags = IBV_SEND_SIGNALED };
    struct qhca_dbrec *rec;
    struct ibv_send_wr *bad;
    struct ibv_qp_ex *ex;
    struct ibv_qp *made;
    struct ibv_mw *mw;
    struct ibv_pd *pd;
    struct qhca_cq *cq;
    struct qhca_qp *qp;

    fake_close();
    fake.features |= QHCA_FEAT_SQ_RECORD;
    fake.old_driver = true;
    fake_open();
    pd = fake_pd();
    cq = fake_cq(64);
    qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    assert_int_equal(fake.qp.sq_dbrec_addr, 0);
    destroy(qp, cq, pd);

    fake_close();
    fake.old_driver = false;
    setenv("QHCA_ALWAYS_RING", "1", 1);
    fake_open();
    assert_false(to_qctx(fake.context)->features & QHCA_FEAT_SQ_RECORD);
    unsetenv("QHCA_ALWAYS_RING");

    fake_close();
    fake_open();
    pd = fake_pd();
    cq = fake_cq(64);
    qp = fake_qp(pd, cq, NULL, IBV_QPT_UD);
    assert_int_equal(fake.qp.sq_dbrec_addr, 0);
    assert_null(qp->sq.dbrec);
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);

    attr.pd = pd;
    attr.send_cq = attr.recv_cq = &cq->vcq.cq;
    made = qhca_create_qp_ex(fake.context, &attr);
    assert_non_null(made);
    qp = to_qqp(made);
    ex = &qp->vqp.qp_ex;
    rec = qp->sq.dbrec;
    assert_ptr_equal((void *)(uintptr_t)fake.qp.sq_dbrec_addr, rec);
    assert_ptr_not_equal(rec, qp->rq.dbrec);
    fake_qp_state(qp, IBV_QPS_RTS);

    DB(SQ) = 0;
    assert_int_equal(post_sends(qp, 3, &bad), 0);
    assert_int_equal(le32toh(rec->index), 3);
    assert_int_equal(DB(SQ), 0);
    rec->flags = htole32(QHCA_DBREC_NOTIFY);
    assert_int_equal(post_sends(qp, 2, &bad), 0);
    assert_int_equal(le32toh(rec->index), 5);
    assert_int_equal(DB(SQ), 5ULL << 32 | qp->qpn);

    DB(SQ) = 0;
    rec->flags = 0;
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    assert_int_equal(ibv_wr_complete(ex), 0);
    assert_int_equal(le32toh(rec->index), 6);
    assert_int_equal(DB(SQ), 0);
    rec->flags = htole32(QHCA_DBREC_NOTIFY);
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    assert_int_equal(ibv_wr_complete(ex), 0);
    assert_int_equal(DB(SQ), 7ULL << 32 | qp->qpn);

    /* so does the third way to post, binding a window */
    mw = qhca_alloc_mw(pd, IBV_MW_TYPE_1);
    assert_non_null(mw);
    assert_int_equal(qhca_bind_mw(made, mw, &bind), 0);
    assert_int_equal(le32toh(rec->index), 8);
    assert_int_equal(DB(SQ), 8ULL << 32 | qp->qpn);
    rec->flags = 0;
    assert_int_equal(qhca_bind_mw(made, mw, &bind), 0);
    assert_int_equal(le32toh(rec->index), 9);
    assert_int_equal(DB(SQ), 8ULL << 32 | qp->qpn);
    assert_int_equal(qhca_dealloc_mw(mw), 0);

    /* a QP in RESET has no WQE */
    qhca_qp_reset(qp);
    assert_int_equal(rec->index, 0);
    destroy(qp, cq, pd);
    fake.features &= ~QHCA_FEAT_SQ_RECORD;
}

/* A bad request in a list: those before it are posted, it changes nothing. */
static void test_send_bad(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct ibv_send_wr wr[3] = {
        { .opcode = IBV_WR_SEND, .next = &wr[1] },
        { .opcode = IBV_WR_TSO, .next = &wr[2] },
        { .opcode = IBV_WR_SEND },
    }, *bad = NULL;

    fake_qp_state(qp, IBV_QPS_RTS);
    assert_int_equal(qhca_post_send(&qp->vqp.qp, wr, &bad), EOPNOTSUPP);
    assert_ptr_equal(bad, &wr[1]);
    assert_int_equal(DB(SQ) >> 32, 1);
    destroy(qp, cq, pd);
}

/* Counters run over 2^32 and rings wrap many times. */
static void test_wrap(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct ibv_send_wr *bad;
    struct ibv_wc wc[64];
    uint32_t start = -640U, n, i;

    /* the state after 2^32 - 640 completions; the phases of the lap before */
    qp->sq.head = start;
    atomic_store(&qp->sq.tail, start);
    atomic_store(&cq->ci, start);
    for (i = 0; i < 64; i++) {
        fake_cqe(cq, start - 64 + i, (struct qhca_cqe) {});
    }
    fake_qp_state(qp, IBV_QPS_RTS);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 64, wc), 0);

    for (n = start; n != start + 1280; n += 64) {
        assert_int_equal(post_sends(qp, 64, &bad), 0);
        assert_int_equal(DB(SQ) >> 32, n + 64);
        assert_int_equal(post_sends(qp, 1, &bad), ENOMEM);
        for (i = 0; i < 64; i++) {
            fake_cqe(cq, n + i, send_cqe(qp, n + i));
        }
        assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 64, wc), 64);
        assert_int_equal(wc[63].wr_id, 1000ULL + (uint32_t)(n + 63));
        assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 64, wc), 0);
        assert_int_equal(le32toh(cq->dbrec->index), n + 64);
    }
    destroy(qp, cq, pd);
}

static void test_recv_notify(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    uint32_t depth = 1U << qp->rq.shift;
    struct ibv_wc wc;

    fake_qp_state(qp, IBV_QPS_INIT);
    assert_int_equal(post_recvs(qp, 3), 0);
    assert_int_equal(le32toh(qp->rq.dbrec->index), 3);
    assert_int_equal(DB(RQ), 0);    /* the normal case: no doorbell */

    qp->rq.dbrec->flags = htole32(QHCA_DBREC_NOTIFY);
    assert_int_equal(post_recvs(qp, 1), 0);
    assert_int_equal(le32toh(qp->rq.dbrec->index), 4);
    assert_int_equal(DB(RQ) & QHCA_DB_NUM_MASK, qp->qpn);
    qp->rq.dbrec->flags = 0;
    DB(RQ) = 0;

    assert_int_equal(post_recvs(qp, depth - 4), 0);
    assert_int_equal(post_recvs(qp, 1), ENOMEM);
    assert_int_equal(le32toh(qp->rq.dbrec->index), depth);
    assert_int_equal(DB(RQ), 0);

    /* a receive completes and frees its slot */
    fake_cqe(cq, 0, (struct qhca_cqe) {
        .wr_id = htole64(5), .qpn = htole32(qp->qpn),
        .opcode = QHCA_CQE_OP_RECV, .byte_len = htole32(77),
        .flags = htole16(QHCA_CQE_F_IMM | QHCA_CQE_F_GRH),
        .imm = htobe32(0x01020304), .src_qpn = htole32(9),
        .pkey_index = htole16(3), .sl = 6, .net_type = QHCA_NET_IPV4,
    });
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
    assert_int_equal(wc.opcode, IBV_WC_RECV);
    assert_int_equal(wc.status, IBV_WC_SUCCESS);
    assert_int_equal(wc.byte_len, 77);
    assert_int_equal(wc.wc_flags, IBV_WC_WITH_IMM | IBV_WC_GRH);
    assert_int_equal(be32toh(wc.imm_data), 0x01020304);
    assert_int_equal(wc.qp_num, qp->qpn);
    assert_int_equal(wc.src_qp, 9);
    assert_int_equal(wc.pkey_index, 3);
    assert_int_equal(wc.sl, 2);
    assert_int_equal(post_recvs(qp, 1), 0);
    assert_int_equal(post_recvs(qp, 1), ENOMEM);
    destroy(qp, cq, pd);
}

static void test_errors_and_arm(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct qhca_cqe cqe = send_cqe(qp, 0);
    struct ibv_wc wc[3];

    cqe.opcode = QHCA_CQE_OP_RDMA_READ;
    cqe.status = QHCA_WC_REM_ACCESS_ERR;
    cqe.syndrome = QHCA_SYN_NAK_ACCESS;
    fake_cqe(cq, 0, cqe);
    /* of an unknown QP: dropped, and the next one still comes */
    cqe.qpn = htole32(0xfffff0);
    fake_cqe(cq, 1, cqe);
    cqe = (struct qhca_cqe) {
        .qpn = htole32(qp->qpn), .opcode = QHCA_CQE_OP_RECV,
        .flags = htole16(QHCA_CQE_F_INV), .imm = (__be32)htole32(0x01020304),
    };
    fake_cqe(cq, 2, cqe);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 3, wc), 2);
    assert_int_equal(wc[0].status, IBV_WC_REM_ACCESS_ERR);
    assert_int_equal(wc[0].opcode, IBV_WC_RDMA_READ);
    assert_int_equal(wc[0].vendor_err, QHCA_SYN_NAK_ACCESS);
    assert_int_equal(wc[1].wc_flags, IBV_WC_WITH_INV);
    assert_int_equal(wc[1].invalidated_rkey, 0x01020304);
    assert_int_equal(le32toh(cq->dbrec->index), 3);

    assert_int_equal(qhca_req_notify_cq(&cq->vcq.cq, 0), 0);
    assert_int_equal(DB(CQ_ARM), (3ULL << 32) | cq->cqn);
    assert_int_equal(qhca_req_notify_cq(&cq->vcq.cq, 1), 0);
    assert_int_equal(DB(CQ_ARM), (3ULL << 32) | (1 << 24) | cq->cqn);
    destroy(qp, cq, pd);
}

/* The kind of L3 header of a datagram, by the numbers of mlx5's completions. */
static void test_l3_header(void **state)
{
    static const struct {
        uint8_t net_type, sl;
    } cases[] = {
        { QHCA_NET_IB, 0 }, { QHCA_NET_IPV6, 1 }, { QHCA_NET_IPV4, 2 },
        { 0xff, 0 },
    };
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 64, .wc_flags = IBV_WC_EX_WITH_SL,
    };
    struct ibv_cq_ex *ex = qhca_create_cq_ex(fake.context, &attr);
    struct ibv_poll_cq_attr poll = {};
    struct qhca_cq *cq = to_qcq_ex(ex);
    struct ibv_pd *pd = fake_pd();
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_UD);
    struct qhca_cqe cqe = {
        .qpn = htole32(qp->qpn), .opcode = QHCA_CQE_OP_RECV,
        .flags = htole16(QHCA_CQE_F_GRH), .sl = 5,
    };
    struct ibv_wc wc;
    uint32_t i, prod = 0;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cqe.net_type = cases[i].net_type;
        fake_cqe(cq, prod++, cqe);
        assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
        assert_int_equal(wc.sl, cases[i].sl);
        fake_cqe(cq, prod++, cqe);
        assert_int_equal(ex->start_poll(ex, &poll), 0);
        assert_int_equal(ex->read_sl(ex), cases[i].sl);
        ex->end_poll(ex);
    }
    destroy(qp, cq, pd);
}

/* Destroying a QP leaves the others' completions, in order. */
static void clean_at(uint32_t start, bool reset)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *a = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct qhca_qp *b = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct ibv_wc wc[128];
    uint32_t i, nb = 0;

    atomic_store(&cq->ci, start);
    for (i = 0; i < 64; i++) {
        fake_cqe(cq, start - 64 + i, (struct qhca_cqe) {});
    }
    /* a full CQ: two of a, one of b, and so on */
    for (i = 0; i < 64; i++) {
        if (i % 3 == 2) {
            fake_cqe(cq, start + i, send_cqe(b, nb++));
        } else {
            fake_cqe(cq, start + i, send_cqe(a, i));
        }
    }
    if (reset) {
        fake_qp_state(a, IBV_QPS_RESET);
    } else {
        assert_int_equal(qhca_destroy_qp(&a->vqp.qp), 0);
    }
    assert_int_equal(atomic_load(&cq->ci), start + 64 - nb);
    assert_int_equal(le32toh(cq->dbrec->index), start + 64 - nb);

    /* the device goes on with its next lap, over the gap */
    for (i = 0; i < 64 - nb; i++) {
        fake_cqe(cq, start + 64 + i, send_cqe(b, nb + i));
    }
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 128, wc), 64);
    for (i = 0; i < 64; i++) {
        assert_int_equal(wc[i].qp_num, b->qpn);
        assert_int_equal(wc[i].wr_id, 1000 + i);
    }
    assert_int_equal(le32toh(cq->dbrec->index), start + 128 - nb);
    if (reset) {
        assert_int_equal(qhca_destroy_qp(&a->vqp.qp), 0);
    }
    destroy(b, cq, pd);
}

static void test_clean(void **state)
{
    uint32_t i;

    for (i = 0; i < 66; i++) {
        clean_at(i, false);
        clean_at(64 + i, true);
        clean_at(-70 + i, i & 1);
    }
}

/* After ERR -> RESET a QP starts again from 0. */
static void test_reset(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    fake_qp_state(qp, IBV_QPS_RTS);
    assert_int_equal(post_sends(qp, 64, &bad), 0);
    assert_int_equal(post_recvs(qp, 5), 0);
    fake_cqe(cq, 0, send_cqe(qp, 0));
    fake_qp_state(qp, IBV_QPS_ERR);
    fake_qp_state(qp, IBV_QPS_RESET);
    assert_int_equal(le32toh(qp->rq.dbrec->index), 0);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 0);
    fake_qp_state(qp, IBV_QPS_RTS);
    assert_int_equal(post_sends(qp, 64, &bad), 0);
    assert_int_equal(DB(SQ) >> 32, 64);
    assert_int_equal(post_recvs(qp, 1 << qp->rq.shift), 0);

    /* a refused change resets nothing */
    fake.fail = EINVAL;
    assert_int_equal(qhca_modify_qp(&qp->vqp.qp, &(struct ibv_qp_attr) {
        .qp_state = IBV_QPS_RESET }, IBV_QP_STATE), EINVAL);
    assert_int_equal(qp->sq.head, 64);
    destroy(qp, cq, pd);
}

static void test_srq(void **state)
{
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = 128,
                                                .max_sge = 1 } };
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(256);
    struct ibv_srq *ibv_srq = qhca_create_srq(pd, &attr);
    struct ibv_recv_wr wr = {}, *bad;
    struct qhca_srq *srq;
    struct qhca_qp *qp;
    struct ibv_wc wc[128];
    bool seen[128] = {};
    uint32_t number, i, prod = 0;

    assert_non_null(ibv_srq);
    srq = to_qsrq(ibv_srq);
    assert_int_equal(attr.attr.max_wr, 128);
    assert_int_equal(fake.srq.shift, 7);
    assert_int_equal(fake.srq.stride, 5);
    assert_true(fake.srq.idx_len >= 128 * 4);
    qp = fake_qp(pd, cq, ibv_srq, IBV_QPT_RC);
    assert_int_equal(fake.qp.rq_addr, 0);
    assert_int_equal(fake.qp.rq_stride, 0);
    assert_int_equal(fake.qp.dbrec_addr, 0);
    fake_qp_state(qp, IBV_QPS_RTR);
    assert_int_equal(qhca_post_recv(&qp->vqp.qp, &wr, &bad), EINVAL);

    for (i = 0; i < 128; i++) {
        wr.wr_id = i;
        assert_int_equal(qhca_post_srq_recv(ibv_srq, &wr, &bad), 0);
        number = le32toh(srq->index[i]);
        assert_true(number < 128);
        assert_false(seen[number]);     /* each WQE once */
        seen[number] = true;
        assert_int_equal(le64toh(*(__le64 *)(srq->ring + number * 32)), i);
    }
    assert_int_equal(qhca_post_srq_recv(ibv_srq, &wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr);
    assert_int_equal(le32toh(srq->dbrec->index), 128);

    /* completions in another order than the posting free the WQEs */
    for (i = 0; i < 64; i++) {
        fake_cqe(cq, prod++, (struct qhca_cqe) {
            .qpn = htole32(qp->qpn), .wqe_index = htole32(127 - 2 * i),
            .opcode = QHCA_CQE_OP_RECV, .flags = htole16(QHCA_CQE_F_SRQ),
        });
    }
    /* the device is not trusted: a repeated number, or one out of range */
    for (i = 0; i < 2; i++) {
        fake_cqe(cq, prod++, (struct qhca_cqe) {
            .qpn = htole32(qp->qpn), .wqe_index = htole32(i ? 0xffffff : 127),
            .opcode = QHCA_CQE_OP_RECV, .flags = htole16(QHCA_CQE_F_SRQ),
        });
    }
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 128, wc), 66);
    for (i = 0; i < 64; i++) {
        assert_int_equal(qhca_post_srq_recv(ibv_srq, &wr, &bad), 0);
        assert_int_equal(le32toh(srq->index[i]) & 1, 1);
    }
    assert_int_equal(qhca_post_srq_recv(ibv_srq, &wr, &bad), ENOMEM);

    /* CQEs removed with their QP free their WQEs, too */
    for (i = 0; i < 3; i++) {
        fake_cqe(cq, prod++, (struct qhca_cqe) {
            .qpn = htole32(qp->qpn), .wqe_index = htole32(i),
            .opcode = QHCA_CQE_OP_RECV, .flags = htole16(QHCA_CQE_F_SRQ),
        });
    }
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    for (i = 0; i < 3; i++) {
        assert_int_equal(qhca_post_srq_recv(ibv_srq, &wr, &bad), 0);
    }
    assert_int_equal(qhca_post_srq_recv(ibv_srq, &wr, &bad), ENOMEM);
    assert_int_equal(qhca_destroy_srq(ibv_srq), 0);
    destroy(NULL, cq, pd);
}

static struct ibv_srq *xrc_srq(struct ibv_pd *pd, struct qhca_cq *cq,
                               struct ibv_xrcd *xrcd)
{
    struct ibv_srq_init_attr_ex attr = {
        .attr = { .max_wr = 128, .max_sge = 1 },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
        .srq_type = IBV_SRQT_XRC,
        .pd = pd,
        .xrcd = xrcd,
        .cq = &cq->vcq.cq,
    };

    return qhca_create_srq_ex(fake.context, &attr);
}

static struct qhca_cqe xrc_cqe(uint32_t qpn, uint32_t srqn, uint32_t index)
{
    return (struct qhca_cqe) {
        .wr_id = htole64(index), .qpn = htole32(qpn),
        .src_qpn = htole32(srqn), .wqe_index = htole32(index),
        .opcode = QHCA_CQE_OP_RECV,
        .flags = htole16(QHCA_CQE_F_SRQ | QHCA_CQE_F_SRQN),
    };
}

/*
 * XRC receives find their SRQ without a QP, which may belong to another
 * process, and are removed with the SRQ, not with a QP that has the same number
 * by now.
 */
static void test_xrc_receive(void **state)
{
    struct ibv_xrcd_init_attr xattr = { 0 };
    struct ibv_xrcd *xrcd = qhca_open_xrcd(fake.context, &xattr);
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(256);
    struct ibv_srq *a, *b, *basic;
    struct ibv_srq_init_attr battr = { .attr = { .max_wr = 1 } };
    struct ibv_recv_wr wr = {}, *bad;
    struct ibv_wc wc[16];
    uint32_t i, n, srqn[2], prod = 0;
    struct qhca_qp *qp;

    assert_non_null(xrcd);
    a = xrc_srq(pd, cq, xrcd);
    b = xrc_srq(pd, cq, xrcd);
    assert_non_null(a);
    assert_non_null(b);
    assert_int_equal(qhca_get_srq_num(a, &srqn[0]), 0);
    assert_int_equal(qhca_get_srq_num(b, &srqn[1]), 0);
    assert_int_not_equal(srqn[0], srqn[1]);
    basic = qhca_create_srq(pd, &battr);
    assert_int_equal(qhca_get_srq_num(basic, &n), EOPNOTSUPP);
    assert_int_equal(qhca_destroy_srq(basic), 0);

    for (i = 0; i < 128; i++) {
        assert_int_equal(qhca_post_srq_recv(a, &wr, &bad), 0);
        assert_int_equal(qhca_post_srq_recv(b, &wr, &bad), 0);
    }
    assert_int_equal(qhca_post_srq_recv(a, &wr, &bad), ENOMEM);
    /* a QP that is unknown here */
    fake_cqe(cq, prod++, xrc_cqe(0x4711, srqn[0], 5));
    fake_cqe(cq, prod++, xrc_cqe(0x4711, srqn[1], 6));
    fake_cqe(cq, prod++, xrc_cqe(0x4711, 0x999, 7));    /* no such SRQ */
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 16, wc), 2);
    assert_int_equal(wc[0].qp_num, 0x4711);
    assert_int_equal(wc[0].wr_id, 5);
    assert_int_equal(wc[1].wr_id, 6);
    assert_int_equal(qhca_post_srq_recv(a, &wr, &bad), 0);
    assert_int_equal(qhca_post_srq_recv(a, &wr, &bad), ENOMEM);

    qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    fake_cqe(cq, prod++, xrc_cqe(qp->qpn, srqn[0], 1));
    fake_cqe(cq, prod++, xrc_cqe(qp->qpn, srqn[1], 2));
    fake_cqe(cq, prod++, send_cqe(qp, 0));
    fake_cqe(cq, prod++, xrc_cqe(0x4711, srqn[0], 3));
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    assert_int_equal(qhca_destroy_srq(a), 0);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 16, wc), 1);
    assert_int_equal(wc[0].wr_id, 2);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 16, wc), 0);
    assert_int_equal(qhca_destroy_srq(b), 0);
    assert_int_equal(qhca_close_xrcd(xrcd), 0);
    destroy(NULL, cq, pd);
}

/* XRC QPs have the queues they need and no others. */
static void test_xrc_qps(void **state)
{
    struct ibv_xrcd_init_attr xattr = { 0 };
    struct ibv_xrcd *xrcd = qhca_open_xrcd(fake.context, &xattr);
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(16);
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_XRC_RECV,
        .comp_mask = IBV_QP_INIT_ATTR_XRCD,
        .xrcd = xrcd,
    };
    struct ibv_qp_open_attr oattr = { .qp_type = IBV_QPT_XRC_RECV };
    struct ibv_send_wr swr = { .opcode = IBV_WR_SEND }, *sbad;
    struct ibv_recv_wr wr = {}, *bad;
    struct ibv_qp *tgt, *again, *ini;
    struct qhca_wqe_ctrl *ctrl;
    struct qhca_xrc_wqe *wqe;
    struct ibv_qp_ex *ex;
    uint64_t word = 0x0102030405060708;

    tgt = qhca_create_qp_ex(fake.context, &attr);
    assert_non_null(tgt);
    assert_int_equal(fake.qp.sq_addr | fake.qp.rq_addr | fake.qp.dbrec_addr, 0);
    oattr.qp_num = tgt->qp_num;
    again = qhca_open_qp(fake.context, &oattr);
    assert_non_null(again);
    fake_qp_state(to_qqp(tgt), IBV_QPS_RTS);
    assert_int_equal(qhca_post_recv(tgt, &wr, &bad), EINVAL);
    assert_int_equal(qhca_post_send(tgt, &swr, &sbad), EOPNOTSUPP);
    fake_qp_state(to_qqp(tgt), IBV_QPS_RESET);
    fake_qp_state(to_qqp(again), IBV_QPS_RTS);
    assert_int_equal(qhca_post_recv(again, &wr, &bad), EINVAL);
    assert_int_equal(qhca_post_send(again, &swr, &sbad), EOPNOTSUPP);

    memset(&attr, 0, sizeof(attr));
    attr.qp_type = IBV_QPT_XRC_SEND;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.send_ops_flags = IBV_QP_EX_WITH_ATOMIC_WRITE | IBV_QP_EX_WITH_FLUSH;
    attr.pd = pd;
    attr.send_cq = &cq->vcq.cq;
    attr.cap.max_send_wr = 4;
    ini = qhca_create_qp_ex(fake.context, &attr);
    assert_non_null(ini);
    assert_int_equal(fake.qp.rq_addr | fake.qp.dbrec_addr, 0);
    assert_true(fake.qp.sq_stride >= 7);    /* 64 bytes and the data */
    fake_qp_state(to_qqp(ini), IBV_QPS_RTS);
    assert_int_equal(qhca_post_recv(ini, &wr, &bad), EINVAL);
    ex = &to_qqp(ini)->vqp.qp_ex;
    ibv_wr_start(ex);
    ex->wr_id = 1;
    ibv_wr_atomic_write(ex, 0x77, 0x1238, &word);
    ibv_wr_set_xrc_srqn(ex, 0x456);
    ibv_wr_flush(ex, 0x77, 0x1000, 64, IBV_FLUSH_GLOBAL, IBV_FLUSH_RANGE);
    ibv_wr_set_xrc_srqn(ex, 0x457);
    assert_int_equal(ibv_wr_complete(ex), 0);
    wqe = (void *)to_qqp(ini)->sq.ring;
    assert_int_equal(wqe->ctrl.opcode, QHCA_WQE_ATOMIC_WRITE);
    assert_int_equal(wqe->ctrl.flags, QHCA_WQE_F_INLINE);
    assert_int_equal(le16toh(wqe->ctrl.num_sge), 8);
    assert_int_equal(le32toh(wqe->srqn), 0x456);
    assert_memory_equal(wqe + 1, &word, 8);
    ctrl = (void *)(to_qqp(ini)->sq.ring + (1 << to_qqp(ini)->sq.stride));
    assert_int_equal(ctrl->opcode, QHCA_WQE_FLUSH);
    assert_int_equal(le32toh(((struct qhca_xrc_wqe *)ctrl)->srqn), 0x457);
    assert_int_equal(le64toh(ctrl->arg0), 64);
    /* what a WQE cannot carry posts nothing */
    ibv_wr_start(ex);
    ibv_wr_flush(ex, 0x77, 0x1000, 64, 0, IBV_FLUSH_RANGE);
    assert_int_equal(ibv_wr_complete(ex), EINVAL);

    assert_int_equal(qhca_destroy_qp(ini), 0);
    assert_int_equal(qhca_destroy_qp(again), 0);
    assert_int_equal(qhca_destroy_qp(tgt), 0);
    assert_int_equal(qhca_close_xrcd(xrcd), 0);
    destroy(NULL, cq, pd);
}

/* Posted WQEs survive, each with its number. */
static void test_srq_grow(void **state)
{
    struct ibv_srq_init_attr init = { .attr = { .max_wr = 128,
                                                .max_sge = 1 } };
    struct ibv_pd *pd = fake_pd();
    struct ibv_srq *ibv_srq = qhca_create_srq(pd, &init);
    struct qhca_srq *srq = to_qsrq(ibv_srq);
    struct ibv_srq_attr attr = { .max_wr = 300, .srq_limit = 200 };
    struct ibv_recv_wr wr = {}, *bad;
    int mapped = fake.mapped;
    uint32_t i, number;
    bool seen[512] = {};
    void *ring;

    for (i = 0; i < 100; i++) {
        wr.wr_id = i;
        assert_int_equal(qhca_post_srq_recv(ibv_srq, &wr, &bad), 0);
    }
    /* the kernel refuses: nothing has changed */
    ring = srq->ring;
    fake.fail = ENOMEM;
    assert_int_equal(qhca_modify_srq(ibv_srq, &attr, IBV_SRQ_MAX_WR), ENOMEM);
    assert_ptr_equal(srq->ring, ring);
    assert_int_equal(srq->shift, 7);
    assert_int_equal(fake.mapped, mapped);
    /* less than is posted, or a limit beyond the room */
    attr.max_wr = 99;
    assert_int_equal(qhca_modify_srq(ibv_srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
    attr.max_wr = 0;
    assert_int_equal(qhca_modify_srq(ibv_srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
    attr.max_wr = 40000;
    assert_int_equal(qhca_modify_srq(ibv_srq, &attr, IBV_SRQ_MAX_WR), EINVAL);
    attr.max_wr = 199;
    assert_int_equal(qhca_modify_srq(ibv_srq, &attr, IBV_SRQ_MAX_WR |
                                     IBV_SRQ_LIMIT), EINVAL);
    /* smaller, but not too small: there is room enough */
    attr.max_wr = 100;
    attr.srq_limit = 50;
    fake.srq_mask = 0;
    assert_int_equal(qhca_modify_srq(ibv_srq, &attr, IBV_SRQ_MAX_WR), 0);
    assert_int_equal(fake.srq_mask, 0);
    assert_int_equal(qhca_modify_srq(ibv_srq, &attr, IBV_SRQ_MAX_WR |
                                     IBV_SRQ_LIMIT), 0);
    assert_int_equal(fake.srq_mask, IBV_SRQ_LIMIT);
    /* more */
    attr.max_wr = 300;
    assert_int_equal(qhca_modify_srq(ibv_srq, &attr, IBV_SRQ_MAX_WR |
                                     IBV_SRQ_LIMIT), 0);
    assert_int_equal(fake.srq_mask, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT);
    assert_int_equal(fake.grow.shift, 9);
    assert_ptr_equal((void *)(uintptr_t)fake.grow.buf_addr, srq->ring);
    assert_ptr_equal((void *)(uintptr_t)fake.grow.idx_addr, srq->index);
    assert_int_equal(fake.mapped, mapped);
    for (; i < 512; i++) {
        wr.wr_id = i;
        assert_int_equal(qhca_post_srq_recv(ibv_srq, &wr, &bad), 0);
    }
    assert_int_equal(qhca_post_srq_recv(ibv_srq, &wr, &bad), ENOMEM);
    for (i = 0; i < 512; i++) {
        number = le32toh(srq->index[i]);
        assert_true(number < 512 && !seen[number]);
        seen[number] = true;
        assert_int_equal(le64toh(*(__le64 *)(srq->ring + number * 32)), i);
    }
    assert_int_equal(qhca_query_srq(ibv_srq, &attr), 0);
    assert_int_equal(attr.max_wr, 512);
    assert_int_equal(qhca_destroy_srq(ibv_srq), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

/* The device's part: copy CQEs @device_ci .. @device_prod to the new ring. */
static uint32_t device_prod;

static void device_resizes(struct qhca_cq *cq)
{
    struct qhca_cqe *ring = (void *)(uintptr_t)fake.resize.buf_addr;
    uint32_t depth = 1U << fake.resize.shift, i, k;
    uint32_t ci = le32toh(cq->dbrec->index);

    for (i = 0; i < depth; i++) {
        k = (ci + i) & (depth - 1);
        if (ci + i == device_prod) {
            break;
        }
        ring[k] = cq->ring[(ci + i) & ((1U << cq->shift) - 1)];
        ring[k].phase = !((ci + i) / depth & 1);
    }
}

static void test_cq_resize(void **state)
{
    static const int sizes[] = { 512, 64, 100, 2000, 1, 256, 200 };
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    int mapped = fake.mapped;
    uint32_t i, n, next = 0;
    struct ibv_wc wc;
    void *ring;

    device_prod = 0;
    fake.on_resize = device_resizes;
    for (n = 0; n < 70; n++) {
        for (i = 0; i < 37; i++, device_prod++) {
            fake_cqe(cq, device_prod, (struct qhca_cqe) {
                .qpn = htole32(qp->qpn), .wqe_index = htole32(device_prod),
                .wr_id = htole64(device_prod), .opcode = QHCA_CQE_OP_SEND,
            });
            if (i & 1) {
                assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
                assert_int_equal(wc.wr_id, next++);
            }
        }
        assert_int_equal(qhca_resize_cq(&cq->vcq.cq, sizes[n % 7]), 0);
        assert_true(cq->vcq.cq.cqe >= sizes[n % 7]);
        assert_int_equal(cq->vcq.cq.cqe, 1 << cq->shift);
        assert_int_equal(fake.mapped, mapped);
        while (next != device_prod) {
            assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
            assert_int_equal(wc.wr_id, next++);
        }
        assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 0);
    }
    ring = cq->ring;
    fake.fail = EINVAL;
    assert_int_equal(qhca_resize_cq(&cq->vcq.cq, 4000), EINVAL);
    assert_ptr_equal(cq->ring, ring);
    assert_int_equal(fake.mapped, mapped);
    assert_int_equal(qhca_resize_cq(&cq->vcq.cq, 0), EINVAL);
    assert_int_equal(qhca_resize_cq(&cq->vcq.cq, (1 << 22) + 1), EINVAL);
    fake.on_resize = NULL;
    destroy(qp, cq, pd);
}

/* Each bind of a type 1 window uses the next key, if it was posted. */
static void test_bind_mw(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct ibv_mr mr = { .lkey = 0x77, .pd = pd };
    struct ibv_mw_bind bind = {
        .wr_id = 3, .send_flags = IBV_SEND_SIGNALED,
        .bind_info = { .mr = &mr, .addr = 0x500, .length = 10,
                       .mw_access_flags = IBV_ACCESS_REMOTE_WRITE },
    };
    struct ibv_mw *mw;
    struct qhca_sq_wqe *wqe;
    struct ibv_qp_ex *ex;
    uint32_t n = 0;
    struct ibv_wc wc;

    fake.fail = EPERM;
    assert_null(qhca_alloc_mw(pd, IBV_MW_TYPE_1));
    assert_int_equal(errno, EPERM);
    mw = qhca_alloc_mw(pd, IBV_MW_TYPE_1);
    assert_non_null(mw);
    assert_int_equal(qhca_bind_mw(&qp->vqp.qp, mw, &bind), EINVAL);
    fake_qp_state(qp, IBV_QPS_RTS);
    assert_int_equal(qhca_bind_mw(&qp->vqp.qp, mw, &bind), 0);
    assert_int_equal(mw->rkey, 0x123400);
    wqe = (void *)qp->sq.ring;
    assert_int_equal(wqe->ctrl.opcode, QHCA_WQE_BIND_MW);
    assert_int_equal(le32toh(wqe->remote.rkey), 0x123400);
    assert_int_equal(qp->sq.head, 1);
    bind.bind_info.mw_access_flags = 1 << 10;
    assert_int_equal(qhca_bind_mw(&qp->vqp.qp, mw, &bind), EINVAL);
    assert_int_equal(mw->rkey, 0x123400);
    bind.bind_info.mw_access_flags = 0;
    while (!qhca_bind_mw(&qp->vqp.qp, mw, &bind)) {
        n++;
    }
    assert_int_equal(n + 1, 1 << qp->sq.shift);
    assert_int_equal(mw->rkey, 0x123400 | (n & 0xff));
    fake_cqe(cq, 0, (struct qhca_cqe) {
        .qpn = htole32(qp->qpn), .wqe_index = htole32(n),
        .opcode = QHCA_CQE_OP_BIND_MW, .status = QHCA_WC_MW_BIND_ERR,
    });
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
    assert_int_equal(wc.opcode, IBV_WC_BIND_MW);
    assert_int_equal(wc.status, IBV_WC_MW_BIND_ERR);
    /* the extended way is for type 2 */
    assert_int_equal(qhca_qp_set_ex(qp, IBV_QP_EX_WITH_BIND_MW |
                                    IBV_QP_EX_WITH_LOCAL_INV), 0);
    ex = &qp->vqp.qp_ex;
    ibv_wr_start(ex);
    ibv_wr_bind_mw(ex, mw, 5, &bind.bind_info);
    assert_int_equal(ibv_wr_complete(ex), EINVAL);
    mw->type = IBV_MW_TYPE_2;
    n = qp->sq.head;
    ibv_wr_start(ex);
    ex->wr_flags = 0;
    ibv_wr_local_inv(ex, 0x99);
    ibv_wr_bind_mw(ex, mw, 5, &bind.bind_info);
    assert_int_equal(ibv_wr_complete(ex), 0);
    assert_int_equal(qp->sq.head, n + 2);
    fake.fail = EBUSY;
    assert_int_equal(qhca_dealloc_mw(mw), EBUSY);
    assert_int_equal(qhca_dealloc_mw(mw), 0);
    destroy(qp, cq, pd);
}

/* ibv_wr_*: the same WQEs as ibv_post_send() makes. */
static void test_extended_post(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct ibv_qp_init_attr_ex attr = {
        .send_cq = &cq->vcq.cq, .recv_cq = &cq->vcq.cq, .pd = pd,
        .qp_type = IBV_QPT_RC,
        .cap = { .max_send_sge = 5, .max_inline_data = 64 },
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE |
                          IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM |
                          IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP,
    };
    struct ibv_data_buf bufs[2] = { { "abc", 3 }, { "defg", 4 } };
    struct ibv_sge sges[6] = { { 0x1000, 16, 5 }, { 0x2000, 32, 6 } };
    struct ibv_send_wr wr[2] = { { .next = &wr[1] } }, *bad;
    uint8_t want[2][128];
    struct qhca_qp *qp;
    struct ibv_qp_ex *ex;
    struct ibv_qp *ibv_qp;
    uint32_t i, depth;

    ibv_qp = qhca_create_qp_ex(fake.context, &attr);
    assert_non_null(ibv_qp);
    qp = to_qqp(ibv_qp);
    assert_true(qp->vqp.comp_mask & VERBS_QP_EX);   /* ibv_qp_to_qp_ex() */
    ex = &qp->vqp.qp_ex;
    assert_int_equal(qp->sq.stride, 7);
    depth = attr.cap.max_send_wr;
    fake_qp_state(qp, IBV_QPS_RTS);

    /* by ibv_post_send() */
    wr[0].wr_id = 11;
    wr[0].opcode = IBV_WR_RDMA_WRITE_WITH_IMM;
    wr[0].send_flags = IBV_SEND_SIGNALED;
    wr[0].imm_data = 0x55;
    wr[0].wr.rdma.remote_addr = 0x9000;
    wr[0].wr.rdma.rkey = 0x77;
    wr[0].sg_list = sges;
    wr[0].num_sge = 2;
    wr[1].wr_id = 12;
    wr[1].opcode = IBV_WR_SEND;
    wr[1].send_flags = IBV_SEND_INLINE;
    wr[1].sg_list = (struct ibv_sge[]) { { (uintptr_t)"abcdefg", 7 } };
    wr[1].num_sge = 1;
    assert_int_equal(qhca_post_send(ibv_qp, wr, &bad), 0);
    memcpy(want, qp->sq.ring, sizeof(want));

    /* step by step */
    ex->wr_start(ex);
    ex->wr_id = 11;
    ex->wr_flags = IBV_SEND_SIGNALED;
    ex->wr_rdma_write_imm(ex, 0x77, 0x9000, 0x55);
    ex->wr_set_sge_list(ex, 2, sges);
    ex->wr_id = 12;
    ex->wr_flags = 0;
    ex->wr_send(ex);
    ex->wr_set_inline_data_list(ex, 2, bufs);
    assert_int_equal(DB(SQ) >> 32, 2);      /* not yet */
    assert_int_equal(ex->wr_complete(ex), 0);
    assert_int_equal(DB(SQ) >> 32, 4);
    assert_memory_equal(qp->sq.ring + 256, want[0], 0x50);
    assert_memory_equal(qp->sq.ring + 384, want[1], 0x37);

    /* abort and errors post nothing and leave the lock free */
    ex->wr_start(ex);
    ex->wr_send(ex);
    ex->wr_set_sge(ex, 1, 2, 3);
    ex->wr_abort(ex);
    ex->wr_start(ex);
    ex->wr_send(ex);
    ex->wr_set_sge_list(ex, 6, sges);
    ex->wr_send(ex);
    ex->wr_set_sge(ex, 1, 2, 3);
    assert_int_equal(ex->wr_complete(ex), EINVAL);
    ex->wr_start(ex);
    for (i = 0; i < depth - 3; i++) {
        ex->wr_rdma_write(ex, 1, 2);
        ex->wr_set_sge(ex, 1, 2, 3);
    }
    assert_int_equal(ex->wr_complete(ex), ENOMEM);
    assert_int_equal(DB(SQ) >> 32, 4);
    assert_int_equal(qp->sq.head, 4);

    /* requests what a UD QP cannot do */
    attr.qp_type = IBV_QPT_UD;
    assert_null(qhca_create_qp_ex(fake.context, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    destroy(qp, cq, pd);
}

static void test_extended_poll(void **state)
{
    struct ibv_cq_init_attr_ex attr = {
        .cqe = 64,
        .wc_flags = IBV_WC_STANDARD_FLAGS |
                    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP,
    };
    struct ibv_poll_cq_attr poll = {};
    struct ibv_cq_ex *ex = qhca_create_cq_ex(fake.context, &attr);
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq;
    struct qhca_qp *qp;
    struct qhca_cqe cqe;
    uint32_t i;

    assert_non_null(ex);
    cq = to_qcq_ex(ex);
    qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    assert_int_equal(ex->start_poll(ex, &poll), ENOENT);
    for (i = 0; i < 3; i++) {
        cqe = send_cqe(qp, i);
        cqe.timestamp = htole64(1ULL << (40 + i));
        cqe.byte_len = htole32(i);
        cqe.status = i == 1 ? QHCA_WC_WR_FLUSH_ERR : 0;
        fake_cqe(cq, i, cqe);
    }
    assert_int_equal(ex->start_poll(ex, &poll), 0);
    for (i = 0; i < 3; i++) {
        assert_int_equal(ex->wr_id, 1000 + i);
        assert_int_equal(ex->status, i == 1 ? IBV_WC_WR_FLUSH_ERR : 0);
        assert_int_equal(ex->read_opcode(ex), IBV_WC_SEND);
        assert_int_equal(ex->read_byte_len(ex), i);
        assert_int_equal(ex->read_qp_num(ex), qp->qpn);
        assert_int_equal(ex->read_completion_ts(ex), 1ULL << (40 + i));
        assert_int_equal(ex->next_poll(ex), i < 2 ? 0 : ENOENT);
    }
    assert_int_equal(le32toh(cq->dbrec->index), 3);
    ex->end_poll(ex);
    assert_int_equal(le32toh(cq->dbrec->index), 3);
    assert_int_equal(atomic_load(&qp->sq.tail), 3);
    assert_int_equal(ex->start_poll(ex, &poll), ENOENT);
    destroy(qp, cq, pd);
}

static void test_ah(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct ibv_ah_attr attr = {
        .is_global = 1, .sl = 3,
        .grh = { .sgid_index = 0x12, .flow_label = 0xabcde,
                 .traffic_class = 4, .hop_limit = 64,
                 .dgid.raw = { 1, [15] = 16 } },
    };
    struct ibv_ah *ah = qhca_create_ah(pd, &attr);
    struct qhca_av *av = &container_of(ah, struct qhca_ah, ibv_ah)->av;

    assert_non_null(ah);
    assert_memory_equal(av->dgid, attr.grh.dgid.raw, 16);
    assert_memory_equal(av->dmac, "\x02\x11\x22\x33\x44\x55", 6);
    assert_int_equal(le16toh(av->sgid_index), 0x12);
    assert_int_equal(le32toh(av->flow_label), 0xabcde);
    assert_int_equal(av->traffic_class, 4);
    assert_int_equal(av->hop_limit, 64);
    assert_int_equal(av->sl, 3);
    assert_true(le16toh(av->udp_sport) >= 0xc000);
    assert_int_equal(qhca_destroy_ah(ah), 0);
    attr.is_global = 0;
    assert_null(qhca_create_ah(pd, &attr));
    assert_int_equal(errno, EINVAL);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

/* Many objects: QPNs far apart, many pages of doorbell records. */
static void test_many(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp[300];
    struct ibv_wc wc;
    uint32_t i, j, prod = 0;

    for (i = 0; i < 300; i++) {
        fake.next_qpn = 2 + i * 55555;
        qp[i] = fake_qp(pd, cq, NULL, IBV_QPT_UD);
        /* no two share a record */
        for (j = 0; j < i; j++) {
            assert_ptr_not_equal(qp[i]->rq.dbrec, qp[j]->rq.dbrec);
        }
    }
    for (i = 0; i < 300; i++) {
        fake_cqe(cq, prod++, send_cqe(qp[i], i));
        assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 1);
        assert_int_equal(wc.qp_num, 2 + i * 55555);
        assert_int_equal(atomic_load(&qp[i]->sq.tail), i + 1);
    }
    /* in an order that empties pages in the middle of the list */
    for (i = 0; i < 300; i++) {
        j = i * 7 % 300;
        assert_int_equal(qhca_destroy_qp(&qp[j]->vqp.qp), 0);
        assert_null(qhca_qp_find(to_qctx(fake.context), 2 + j * 55555));
    }
    fake.next_qpn = 2;
    destroy(NULL, cq, pd);
}

static void test_domains(void **state)
{
    struct ibv_pd *pd = fake_pd(), *parent;
    struct ibv_td_init_attr tattr = {};
    struct ibv_td *td = qhca_alloc_td(fake.context, &tattr);
    struct ibv_parent_domain_init_attr pattr = { .pd = pd, .td = td };
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp;

    assert_non_null(td);
    parent = qhca_alloc_parent_domain(fake.context, &pattr);
    assert_non_null(parent);
    assert_int_equal(parent->handle, pd->handle);
    qp = fake_qp(parent, cq, NULL, IBV_QPT_RC);
    assert_true(qp->sq.lock.off);
    assert_int_equal(qhca_dealloc_pd(pd), EBUSY);
    assert_int_equal(qhca_dealloc_td(td), EBUSY);
    assert_int_equal(qhca_dealloc_pd(parent), EBUSY);
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    assert_int_equal(qhca_dealloc_pd(parent), 0);
    assert_int_equal(qhca_dealloc_td(td), 0);
    qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    assert_false(qp->sq.lock.off);

    pattr.comp_mask = 1 << 30;
    assert_null(qhca_alloc_parent_domain(fake.context, &pattr));
    assert_int_equal(errno, EOPNOTSUPP);
    pattr.comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;
    assert_null(qhca_alloc_parent_domain(fake.context, &pattr));
    assert_int_equal(errno, EINVAL);    /* the functions are missing */
    destroy(qp, cq, pd);
}

/* A parent domain of a parent domain is one of the same PD. */
static void test_nested_domains(void **state)
{
    struct ibv_pd *pd = fake_pd(), *inner, *outer;
    struct ibv_td_init_attr tattr = {};
    struct ibv_td *td = qhca_alloc_td(fake.context, &tattr);
    struct ibv_parent_domain_init_attr pattr = { .pd = pd, .td = td };
    struct qhca_cq *cq = fake_cq(64);
    struct qhca_qp *qp;

    inner = qhca_alloc_parent_domain(fake.context, &pattr);
    assert_non_null(inner);
    pattr = (struct ibv_parent_domain_init_attr) { .pd = inner };
    outer = qhca_alloc_parent_domain(fake.context, &pattr);
    assert_non_null(outer);
    assert_int_equal(outer->handle, pd->handle);
    assert_ptr_equal(outer->context, fake.context);
    /* the thread domain is that of the inner one */
    qp = fake_qp(outer, cq, NULL, IBV_QPT_RC);
    assert_false(qp->sq.lock.off);
    assert_int_equal(qhca_dealloc_pd(outer), EBUSY);
    assert_int_equal(qhca_dealloc_pd(inner), 0);
    assert_int_equal(qhca_dealloc_td(td), 0);
    assert_int_equal(qhca_dealloc_pd(pd), EBUSY);
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    assert_int_equal(qhca_dealloc_pd(outer), 0);
    destroy(NULL, cq, pd);
}

/* An application's allocator: its arguments and possible results. */
struct pool {
    enum { OWN, DEFAULT, NOTHING, MISALIGNED } answer;
    int held;
    unsigned int types;         /* bit per resource type asked for */
    struct qhca_lock *lock;     /* not held by the caller, or NULL */
};

static void pool_check_lock(struct pool *pool)
{
    if (pool->lock) {
        assert_int_equal(pthread_spin_trylock(&pool->lock->spin), 0);
        pthread_spin_unlock(&pool->lock->spin);
    }
}

static void *pool_alloc(struct ibv_pd *pd, void *context, size_t size,
                        size_t alignment, uint64_t type)
{
    struct pool *pool = context;
    char *p;

    assert_int_equal(alignment, sysconf(_SC_PAGESIZE));
    assert_int_equal(size % alignment, 0);
    pool_check_lock(pool);
    pool->types |= 1U << type;
    switch (pool->answer) {
    case DEFAULT:
        return IBV_ALLOCATOR_USE_DEFAULT;
    case NOTHING:
        return NULL;
    default:
        break;
    }
    assert_int_equal(posix_memalign((void **)&p, alignment,
                                    size + alignment), 0);
    memset(p, 0xff, size + alignment);
    pool->held++;
    return pool->answer == MISALIGNED ? p + 64 : p;
}

static void pool_free(struct ibv_pd *pd, void *context, void *ptr,
                      uint64_t type)
{
    struct pool *pool = context;

    pool_check_lock(pool);
    pool->held--;
    free(pool->answer == MISALIGNED ? (char *)ptr - 64 : ptr);
}

/* They are called without the lock of the queue, which they might want to use. */
static void resize_allocators(struct pool *pool, struct qhca_cq *cq,
                              struct ibv_srq *srq)
{
    struct ibv_srq_attr attr = { .max_wr = 1000 };
    int held = pool->held;

    pool->lock = &to_qsrq(srq)->lock;
    assert_int_equal(qhca_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), 0);
    assert_int_equal(pool->held, held);
    attr.max_wr = 5000;
    fake.fail = EIO;
    assert_int_equal(qhca_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), EIO);
    pool->answer = NOTHING;
    assert_int_equal(qhca_modify_srq(srq, &attr, IBV_SRQ_MAX_WR), ENOMEM);
    pool->answer = OWN;
    assert_int_equal(pool->held, held);
    assert_int_equal(qhca_query_srq(srq, &attr), 0);
    assert_int_equal(attr.max_wr, 1024);

    pool->lock = &cq->lock;
    assert_int_equal(qhca_resize_cq(&cq->vcq.cq, 1000), 0);
    assert_int_equal(pool->held, held);
    pool->lock = NULL;
}

static void test_allocators(void **state)
{
    struct pool pool = {};
    struct ibv_pd *pd = fake_pd(), *parent;
    struct ibv_parent_domain_init_attr pattr = {
        .pd = pd, .alloc = pool_alloc, .free = pool_free, .pd_context = &pool,
        .comp_mask = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
                     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT,
    };
    struct ibv_cq_init_attr_ex cattr = {
        .cqe = 10, .comp_mask = IBV_CQ_INIT_ATTR_MASK_PD,
    };
    struct ibv_srq_init_attr sattr = { .attr.max_wr = 10 };
    struct ibv_srq *srq;
    struct ibv_cq_ex *ex;
    struct qhca_cq *cq;
    struct qhca_qp *qp;
    struct ibv_wc wc;
    int i;

    parent = qhca_alloc_parent_domain(fake.context, &pattr);
    assert_non_null(parent);
    cattr.parent_domain = parent;
    ex = qhca_create_cq_ex(fake.context, &cattr);
    assert_non_null(ex);
    cq = to_qcq_ex(ex);
    assert_int_equal(pool.held, 1);
    /* the ring was cleared: nothing looks like a CQE */
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 0);
    srq = qhca_create_srq(parent, &sattr);
    assert_non_null(srq);
    qp = fake_qp(parent, cq, NULL, IBV_QPT_RC);
    assert_int_equal(pool.held, 5);
    assert_int_equal(pool.types, 1 << QHCA_RES_SQ | 1 << QHCA_RES_RQ |
                     1 << QHCA_RES_CQ | 1 << QHCA_RES_SRQ |
                     1 << QHCA_RES_SRQ_INDEX);
    assert_int_equal(qhca_dealloc_pd(parent), EBUSY);
    assert_int_equal(qhca_destroy_qp(&qp->vqp.qp), 0);
    resize_allocators(&pool, cq, srq);
    assert_int_equal(qhca_destroy_srq(srq), 0);
    assert_int_equal(pool.held, 1);

    for (i = DEFAULT; i <= MISALIGNED; i++) {
        struct ibv_qp_init_attr attr = {
            .send_cq = &cq->vcq.cq, .recv_cq = &cq->vcq.cq,
            .qp_type = IBV_QPT_RC,
        };
        struct ibv_qp *ibv_qp;

        pool.answer = i;
        errno = 0;
        ibv_qp = qhca_create_qp(parent, &attr);
        if (i == DEFAULT) {
            assert_non_null(ibv_qp);
            assert_int_equal(qhca_destroy_qp(ibv_qp), 0);
        } else {
            assert_null(ibv_qp);
            assert_int_equal(errno, i == NOTHING ? ENOMEM : EINVAL);
        }
        assert_int_equal(pool.held, 1);
    }
    pool.answer = OWN;
    assert_int_equal(qhca_destroy_cq(&cq->vcq.cq), 0);
    assert_int_equal(pool.held, 0);
    assert_int_equal(qhca_dealloc_pd(parent), 0);
    assert_int_equal(qhca_dealloc_pd(pd), 0);
}

static void test_device_memory(void **state)
{
    struct ibv_alloc_dm_attr attr = { .length = 5000 };
    struct ibv_dm *dm, *second;
    char buf[5000], got[5000];
    int i;

    for (i = 0; i < 5000; i++) {
        buf[i] = (char)(i * 7);
    }
    dm = qhca_alloc_dm(fake.context, &attr);
    assert_non_null(dm);
    assert_int_equal(ibv_memcpy_to_dm(dm, 0, buf, 5000), 0);
    assert_int_equal(ibv_memcpy_from_dm(got, dm, 0, 5000), 0);
    assert_memory_equal(buf, got, 5000);
    assert_int_equal(ibv_memcpy_from_dm(got, dm, 4096, 904), 0);
    assert_memory_equal(buf + 4096, got, 904);
    assert_int_equal(ibv_memcpy_to_dm(dm, 5000, buf, 0), 0);
    assert_int_equal(ibv_memcpy_to_dm(dm, 5000, buf, 4), EFAULT);
    assert_int_equal(ibv_memcpy_to_dm(dm, 4, buf, 5000), EFAULT);
    assert_int_equal(ibv_memcpy_from_dm(got, dm, UINT64_MAX - 3, 8), EFAULT);
    assert_int_equal(ibv_memcpy_to_dm(dm, 2, buf, 4), EINVAL);
    assert_int_equal(ibv_memcpy_from_dm(got, dm, 4, 3), EINVAL);

    /* the same memory by its handle */
    second = qhca_import_dm(fake.context, FAKE_HANDLE);
    assert_non_null(second);
    assert_int_equal(ibv_memcpy_from_dm(got, second, 0, 5000), 0);
    assert_memory_equal(buf, got, 5000);
    assert_int_equal(ibv_memcpy_from_dm(got, second, 5000, 4), EFAULT);
    qhca_unimport_dm(second);
    assert_null(qhca_import_dm(fake.context, FAKE_HANDLE + 1));
    assert_int_equal(errno, ENOENT);

    fake.fail = EBUSY;
    assert_int_equal(qhca_free_dm(dm), EBUSY);
    assert_int_equal(ibv_memcpy_from_dm(got, dm, 0, 4), 0);
    assert_int_equal(qhca_free_dm(dm), 0);

    attr.comp_mask = 1;
    assert_null(qhca_alloc_dm(fake.context, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    attr.comp_mask = 0;
    attr.length = 1 << 20;
    assert_null(qhca_alloc_dm(fake.context, &attr));
    assert_int_equal(errno, ENOMEM);
}

static void test_import(void **state)
{
    struct ibv_pd *pd = qhca_import_pd(fake.context, FAKE_HANDLE);
    struct ibv_mr *mr;

    assert_non_null(pd);
    assert_int_equal(pd->handle, FAKE_HANDLE);
    mr = qhca_import_mr(pd, FAKE_HANDLE);
    assert_non_null(mr);
    qhca_unimport_mr(mr);
    assert_null(qhca_import_mr(pd, 1));
    qhca_unimport_pd(pd);
    assert_null(qhca_import_pd(fake.context, 1));
    assert_int_equal(errno, ENOENT);
}

static struct ibv_wq *make_wq(struct ibv_pd *pd, struct qhca_cq *cq)
{
    struct ibv_wq_init_attr attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = 5, .max_sge = 1, .pd = pd,
        .cq = &cq->vcq.cq,
    };
    struct ibv_wq *wq = qhca_create_wq(fake.context, &attr);

    assert_non_null(wq);
    assert_true(attr.max_wr >= 5 && attr.max_sge >= 1);
    assert_int_equal(1U << fake.wq.shift, attr.max_wr);
    return wq;
}

static struct qhca_cqe wq_cqe(struct ibv_wq *wq, uint32_t index)
{
    return (struct qhca_cqe) {
        .wr_id = htole64(index), .qpn = htole32(wq->wq_num),
        .wqe_index = htole32(index), .opcode = QHCA_CQE_OP_RAW_RECV,
        .byte_len = htole32(60), .src_qpn = htole32(0x1234),
        .flags = htole16(QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK),
    };
}

/* Posting to a WQ, its completions, its way to ERR and back. */
static void test_work_queue(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(256);
    struct ibv_wq *ibv_wq = make_wq(pd, cq);
    struct qhca_wq *wq = to_qwq(ibv_wq);
    struct qhca_dbrec *rec = (void *)(uintptr_t)fake.wq.dbrec_addr;
    struct ibv_wq_attr attr = {
        .attr_mask = IBV_WQ_ATTR_STATE, .wq_state = IBV_WQS_RDY,
    };
    struct ibv_wq_init_attr bad_attr = {
        .wq_type = IBV_WQT_RQ, .max_wr = 1, .max_sge = 1, .pd = pd,
        .cq = &cq->vcq.cq, .comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
        .create_flags = IBV_WQ_FLAGS_SCATTER_FCS,
    };
    struct ibv_recv_wr wr = { .wr_id = 9 }, *bad;
    uint32_t depth = 1U << fake.wq.shift, i;
    struct ibv_wc wc[2];

    assert_int_equal(ibv_post_wq_recv(ibv_wq, &wr, &bad), EINVAL);
    assert_int_equal(qhca_modify_wq(ibv_wq, &attr), 0);
    for (i = 0; i < depth; i++) {
        assert_int_equal(ibv_post_wq_recv(ibv_wq, &wr, &bad), 0);
    }
    assert_int_equal(ibv_post_wq_recv(ibv_wq, &wr, &bad), ENOMEM);
    assert_ptr_equal(bad, &wr);
    assert_int_equal(le32toh(rec->index), depth);
    assert_int_equal(DB(RQ), 0);
    fake_cqe(cq, 0, wq_cqe(ibv_wq, 0));
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 2, wc), 1);
    assert_int_equal(wc[0].opcode, IBV_WC_RECV);
    assert_int_equal(wc[0].byte_len, 60);
    assert_int_equal(wc[0].qp_num, ibv_wq->wq_num);
    assert_int_equal(wc[0].src_qp, 0);
    assert_int_equal(wc[0].wc_flags, IBV_WC_IP_CSUM_OK);
    assert_int_equal(ibv_post_wq_recv(ibv_wq, &wr, &bad), 0);
    /* in ERR the device requests a doorbell */
    rec->flags = htole32(QHCA_DBREC_NOTIFY);
    fake_cqe(cq, 1, wq_cqe(ibv_wq, 1));
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 2, wc), 1);
    assert_int_equal(ibv_post_wq_recv(ibv_wq, &wr, &bad), 0);
    assert_int_equal(DB(RQ) & QHCA_DB_NUM_MASK, ibv_wq->wq_num);
    /* RESET: remaining CQEs are removed, counters are 0 */
    fake_cqe(cq, 2, wq_cqe(ibv_wq, 2));
    attr.wq_state = IBV_WQS_RESET;
    assert_int_equal(qhca_modify_wq(ibv_wq, &attr), 0);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 2, wc), 0);
    assert_int_equal(le32toh(rec->index), 0);
    assert_int_equal(wq->as_qp.rq.head, 0);
    attr.attr_mask = 1 << 20;
    assert_int_equal(qhca_modify_wq(ibv_wq, &attr), EOPNOTSUPP);

    assert_null(qhca_create_wq(fake.context, &bad_attr));
    assert_int_equal(errno, EOPNOTSUPP);
    fake.fail = EBUSY;
    assert_int_equal(qhca_destroy_wq(ibv_wq), EBUSY);
    assert_int_equal(qhca_destroy_wq(ibv_wq), 0);
    assert_null(qhca_qp_find(to_qctx(fake.context), fake.next_qpn - 1));
    destroy(NULL, cq, pd);
}

static void test_rss(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq(256);
    struct ibv_wq *wq = make_wq(pd, cq);
    struct ibv_rwq_ind_table_init_attr tattr = { .ind_tbl = &wq };
    struct ibv_rwq_ind_table *table;
    uint8_t key[40] = { 1, 2, 3, [39] = 4 };
    struct ibv_qp_init_attr_ex attr = {
        .qp_type = IBV_QPT_RAW_PACKET, .pd = pd,
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS |
                     IBV_QP_INIT_ATTR_IND_TABLE | IBV_QP_INIT_ATTR_RX_HASH,
        .rx_hash_conf = {
            .rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
            .rx_hash_key_len = 40, .rx_hash_key = key,
            .rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 |
                                   IBV_RX_HASH_DST_PORT_UDP,
        },
    };
    struct ibv_send_wr swr = { .opcode = IBV_WR_SEND }, *sbad;
    struct ibv_recv_wr rwr = {}, *rbad;
    struct ibv_qp *qp;

    tattr.log_ind_tbl_size = 20;
    assert_null(qhca_create_rwq_ind_table(fake.context, &tattr));
    assert_int_equal(errno, EINVAL);
    tattr.log_ind_tbl_size = 0;
    table = qhca_create_rwq_ind_table(fake.context, &tattr);
    assert_non_null(table);
    attr.rwq_ind_tbl = table;
    qp = qhca_create_qp_ex(fake.context, &attr);
    assert_non_null(qp);
    assert_int_equal(fake.rss.rx_hash_func, QHCA_HASH_TOEPLITZ);
    assert_int_equal(fake.rss.rx_hash_fields,
                     QHCA_HASH_SRC_IPV4 | QHCA_HASH_DST_PORT_UDP);
    assert_memory_equal(fake.rss.rx_hash_key, key, 40);
    /* it has no queue, whatever state libibverbs believes it in */
    qp->state = IBV_QPS_RTS;
    assert_int_equal(qhca_post_send(qp, &swr, &sbad), EOPNOTSUPP);
    assert_int_equal(qhca_post_recv(qp, &rwr, &rbad), EINVAL);
    assert_int_equal(qhca_destroy_qp(qp), 0);

    attr.rx_hash_conf.rx_hash_key_len = 16;
    assert_null(qhca_create_qp_ex(fake.context, &attr));
    assert_int_equal(errno, EINVAL);
    attr.rx_hash_conf.rx_hash_key_len = 40;
    attr.rx_hash_conf.rx_hash_fields_mask = IBV_RX_HASH_INNER;
    assert_null(qhca_create_qp_ex(fake.context, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    attr.rx_hash_conf.rx_hash_fields_mask = 0;
    attr.qp_type = IBV_QPT_UD;
    assert_null(qhca_create_qp_ex(fake.context, &attr));
    assert_int_equal(errno, EOPNOTSUPP);
    assert_int_equal(qhca_destroy_rwq_ind_table(table), 0);
    assert_int_equal(qhca_destroy_wq(wq), 0);
    destroy(NULL, cq, pd);
}

static struct qhca_cq *fake_cq_ex(void)
{
    struct ibv_cq_init_attr_ex attr = { .cqe = 8 };
    struct ibv_cq_ex *cq = qhca_create_cq_ex(fake.context, &attr);

    assert_non_null(cq);
    return to_qcq_ex(cq);
}

static int start_poll(struct qhca_cq *cq)
{
    struct ibv_poll_cq_attr attr = {};

    return cq->vcq.cq_ex.start_poll(&cq->vcq.cq_ex, &attr);
}

static int wr_send(struct qhca_qp *qp)
{
    struct ibv_qp_ex *ex = &qp->vqp.qp_ex;

    ex->wr_start(ex);
    ex->wr_send(ex);
    ex->wr_set_sge(ex, 1, 0x1000, 8);
    return ex->wr_complete(ex);
}

/* No work is pending when the device goes away: all calls report that. */
static void test_gone_idle(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq_ex();
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
    struct ibv_srq *srq = qhca_create_srq(pd, &attr);
    struct ibv_recv_wr wr = {}, *bad_recv = NULL;
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    assert_non_null(srq);
    assert_int_equal(qhca_qp_set_ex(qp, IBV_QP_EX_WITH_SEND), 0);
    fake_qp_state(qp, IBV_QPS_RTS);
    /* it works: nothing to poll, that is all */
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 0);
    assert_int_equal(start_poll(cq), ENOENT);
    assert_int_equal(qhca_req_notify_cq(&cq->vcq.cq, 0), 0);

    fake.status->works = 0;
    fake.db[QHCA_DB_SQ / 8] = fake.db[QHCA_DB_CQ_ARM / 8] = 0;
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), -EIO);
    assert_int_equal(start_poll(cq), EIO);
    /* the lock was released */
    assert_int_equal(start_poll(cq), EIO);
    assert_int_equal(qhca_req_notify_cq(&cq->vcq.cq, 0), EIO);
    assert_int_equal(post_sends(qp, 2, &bad), EIO);
    assert_int_equal((uintptr_t)bad, 0);
    assert_int_equal(wr_send(qp), EIO);
    assert_int_equal(qhca_post_recv(&qp->vqp.qp, &wr, &bad_recv), EIO);
    assert_ptr_equal(bad_recv, &wr);
    bad_recv = NULL;
    assert_int_equal(qhca_post_srq_recv(srq, &wr, &bad_recv), EIO);
    assert_ptr_equal(bad_recv, &wr);
    /* a doorbell would go to an unmapped page */
    assert_int_equal(DB(SQ), 0);
    assert_int_equal(DB(CQ_ARM), 0);

    assert_int_equal(qhca_destroy_srq(srq), 0);
    destroy(qp, cq, pd);
}

/* What was completed before is polled first, then the error comes. */
static void test_gone_after_completions(void **state)
{
    struct ibv_pd *pd = fake_pd();
    struct qhca_cq *cq = fake_cq_ex();
    struct qhca_qp *qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    struct ibv_send_wr *bad;
    struct ibv_wc wc[4];

    fake_qp_state(qp, IBV_QPS_RTS);
    assert_int_equal(post_sends(qp, 4, &bad), 0);
    fake_cqe(cq, 0, send_cqe(qp, 0));
    fake_cqe(cq, 1, send_cqe(qp, 1));
    fake_cqe(cq, 2, send_cqe(qp, 2));
    fake.status->works = 0;
    /* one that is written between the reads of the ring and of the page */
    assert_int_equal(qhca_cq_gone(cq), 0);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 2, wc), 2);
    assert_int_equal(start_poll(cq), 0);
    assert_int_equal(cq->vcq.cq_ex.wr_id, 1002);
    assert_int_equal(cq->vcq.cq_ex.next_poll(&cq->vcq.cq_ex), ENOENT);
    cq->vcq.cq_ex.end_poll(&cq->vcq.cq_ex);
    assert_int_equal(start_poll(cq), EIO);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 4, wc), -EIO);
    destroy(qp, cq, pd);
}

/* A driver without the page: nothing changes. */
static void test_no_status_page(void **state)
{
    struct ibv_pd *pd;
    struct qhca_cq *cq;
    struct qhca_qp *qp;
    struct ibv_send_wr *bad;
    struct ibv_wc wc;

    fake_close();
    fake.no_status = true;
    fake_open();
    fake.no_status = false;
    fake.status->works = 0;     /* it is not checked */
    pd = fake_pd();
    cq = fake_cq(8);
    qp = fake_qp(pd, cq, NULL, IBV_QPT_RC);
    fake_qp_state(qp, IBV_QPS_RTS);
    assert_int_equal(post_sends(qp, 1, &bad), 0);
    assert_int_equal(qhca_poll_cq(&cq->vcq.cq, 1, &wc), 0);
    assert_int_equal(qhca_req_notify_cq(&cq->vcq.cq, 0), 0);
    destroy(qp, cq, pd);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_create),
        TEST(test_gone_idle),
        TEST(test_gone_after_completions),
        TEST(test_no_status_page),
        TEST(test_create_refused),
        TEST(test_post_states),
        TEST(test_send_full),
        TEST(test_send_record),
        TEST(test_send_bad),
        TEST(test_wrap),
        TEST(test_recv_notify),
        TEST(test_errors_and_arm),
        TEST(test_l3_header),
        TEST(test_clean),
        TEST(test_reset),
        TEST(test_srq),
        TEST(test_xrc_receive),
        TEST(test_xrc_qps),
        TEST(test_srq_grow),
        TEST(test_bind_mw),
        TEST(test_cq_resize),
        TEST(test_extended_post),
        TEST(test_extended_poll),
        TEST(test_ah),
        TEST(test_many),
        TEST(test_domains),
        TEST(test_nested_domains),
        TEST(test_allocators),
        TEST(test_device_memory),
        TEST(test_import),
        TEST(test_work_queue),
        TEST(test_rss),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
