/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tag matching: the ring of operations and the entries, with the test as
 * kernel and device.
 */
#include <errno.h>
#include <string.h>

#include "fake-kernel.h"

#define TAGS 4

struct env {
    struct ibv_pd *pd;
    struct ibv_cq_ex *cq_ex;
    struct qhca_cq *cq;
    struct qhca_srq *srq;
    uint32_t prod;              /* CQEs written */
    uint32_t done;              /* operations executed */
};

static struct env env;

static struct ibv_srq_init_attr_ex srq_attr(void)
{
    return (struct ibv_srq_init_attr_ex) {
        .attr = { .max_wr = 16, .max_sge = 1 },
        .comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
                     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
        .srq_type = IBV_SRQT_TM,
        .pd = env.pd,
        .cq = &env.cq->vcq.cq,
        .tm_cap = { .max_num_tags = TAGS, .max_ops = 8 },
    };
}

static int setup(void **state)
{
    struct ibv_cq_init_attr_ex cattr = {
        .cqe = 64, .wc_flags = IBV_WC_EX_WITH_TM_INFO | IBV_WC_EX_WITH_CVLAN,
    };
    struct ibv_srq_init_attr_ex attr;
    struct ibv_srq *srq;

    fake.features |= QHCA_FEAT_TAG_MATCHING;
    fake_open();
    memset(&env, 0, sizeof(env));
    env.pd = fake_pd();
    env.cq_ex = qhca_create_cq_ex(fake.context, &cattr);
    assert_non_null(env.cq_ex);
    env.cq = to_qcq_ex(env.cq_ex);
    attr = srq_attr();
    srq = qhca_create_srq_ex(fake.context, &attr);
    assert_non_null(srq);
    env.srq = to_qsrq(srq);
    return 0;
}

static int teardown(void **state)
{
    assert_int_equal(qhca_destroy_srq(&env.srq->vsrq.srq), 0);
    assert_int_equal(qhca_destroy_cq(&env.cq->vcq.cq), 0);
    assert_int_equal(qhca_dealloc_pd(env.pd), 0);
    fake_close();
    return 0;
}

static int post(int opcode, int flags, uint64_t tag, uint32_t *handle)
{
    struct ibv_sge sge = { .addr = 0x1000, .length = 64, .lkey = 5 };
    struct ibv_ops_wr wr = { .wr_id = 77, .opcode = opcode, .flags = flags },
                      *bad = NULL;
    int ret;

    wr.tm.unexpected_cnt = 3;
    wr.tm.handle = *handle;
    wr.tm.add.recv_wr_id = tag + 1000;
    wr.tm.add.sg_list = &sge;
    wr.tm.add.num_sge = 1;
    wr.tm.add.tag = tag;
    wr.tm.add.mask = 0xff;
    ret = qhca_post_srq_ops(&env.srq->vsrq.srq, &wr, &bad);
    assert_ptr_equal(bad, ret ? &wr : NULL);
    *handle = wr.tm.handle;
    return ret;
}

static int add(uint64_t tag, uint32_t *handle)
{
    *handle = 0xffffffff;
    return post(IBV_WR_TAG_ADD, 0, tag, handle);
}

static struct qhca_tm_wqe *slot(uint32_t counter)
{
    struct qhca_tm *tm = env.srq->tm;

    return (void *)(tm->ring + ((size_t)qhca_slot(counter, tm->shift) <<
                                tm->stride));
}

/* The device: executes the next operation, with @syn. */
static void execute(uint8_t syn)
{
    slot(env.done++)->result = htole32(QHCA_TM_DONE | syn);
}

/* The device: a CQE of the SRQ. */
static void cqe(uint8_t opcode, uint8_t status, uint16_t flags,
                uint32_t index)
{
    union {
        struct qhca_tm_cqe tm;
        struct qhca_cqe cqe;
    } c = { .tm = {
        .wr_id = htole64(9), .srqn = htole32(env.srq->srqn),
        .qpn = htole32(0x123456),       /* not one of this process */
        .wqe_index = htole32(index), .opcode = opcode, .status = status,
        .flags = htole16(flags | QHCA_CQE_F_SRQN),
        .app_ctx = htobe32(0x11223344),
        .tag = htobe64(0x5566778899aabbcc),
    } };

    fake_cqe(env.cq, env.prod++, c.cqe);
}

static struct ibv_wc poll_one(void)
{
    struct ibv_wc wc;

    assert_int_equal(qhca_poll_cq(&env.cq->vcq.cq, 1, &wc), 1);
    return wc;
}

/* What the kernel and the device get. */
static void test_create(void **state)
{
    struct ibv_srq_init_attr_ex attr = srq_attr();
    struct ibv_qp_init_attr qattr = {
        .send_cq = &env.cq->vcq.cq, .recv_cq = &env.cq->vcq.cq,
        .srq = &env.srq->vsrq.srq, .qp_type = IBV_QPT_RC,
    };
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
    struct ibv_qp *qp;

    assert_int_equal(fake.srq_attr.srq_type, IBV_SRQT_TM);
    assert_int_equal(fake.srq_attr.tm_cap.max_num_tags, TAGS);
    assert_true(1U << fake.srq.ops_shift >= 8);
    assert_true(1U << fake.srq.ops_stride >= sizeof(struct qhca_tm_wqe) +
                QHCA_TM_MAX_SGE * sizeof(struct qhca_sge));
    assert_true(fake.srq.ops_len >=
                1U << (fake.srq.ops_shift + fake.srq.ops_stride));

    /* The send side is the device's. */
    qp = qhca_create_qp(env.pd, &qattr);
    assert_non_null(qp);
    assert_int_equal(fake.qp.sq_addr, 0);
    assert_int_equal(fake.qp.sq_stride, 0);
    assert_int_equal(fake.qp_cap.max_send_wr, 0);
    qp->state = IBV_QPS_RTS;
    assert_int_equal(qhca_post_send(qp, &wr, &bad), EOPNOTSUPP);
    assert_int_equal(qhca_destroy_qp(qp), 0);
    qattr.cap.max_send_wr = 1;
    errno = 0;
    assert_null(qhca_create_qp(env.pd, &qattr));
    assert_int_equal(errno, EINVAL);
    qattr.cap.max_send_wr = 0;
    qattr.qp_type = IBV_QPT_UC;
    assert_null(qhca_create_qp(env.pd, &qattr));
    assert_int_equal(errno, EINVAL);

    attr.tm_cap.max_num_tags = QHCA_TM_MAX_TAGS + 1;
    assert_null(qhca_create_srq_ex(fake.context, &attr));
    assert_int_equal(errno, EINVAL);
    attr = srq_attr();
    attr.comp_mask &= ~IBV_SRQ_INIT_ATTR_CQ;
    assert_null(qhca_create_srq_ex(fake.context, &attr));
    assert_int_equal(errno, EINVAL);
    attr = srq_attr();
    fake.fail = ENOMEM;
    assert_null(qhca_create_srq_ex(fake.context, &attr));
    assert_int_equal(errno, ENOMEM);
}

/* An operation in the ring. */
static void test_encode(void **state)
{
    const struct qhca_tm_wqe *w = slot(0);
    const struct qhca_sge *sge = (const void *)(w + 1);
    uint32_t handle = 0xffffffff;

    assert_int_equal(post(IBV_WR_TAG_ADD, IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC,
                          0x42, &handle), 0);
    assert_int_equal(w->opcode, QHCA_WQE_TAG_ADD);
    assert_int_equal(w->flags, QHCA_WQE_F_SIGNALED | QHCA_WQE_F_TM_SYNC);
    assert_int_equal(le16toh(w->num_sge), 1);
    assert_int_equal(le32toh(w->unexp), 3);
    assert_int_equal(le64toh(w->wr_id), 77);
    assert_int_equal(le64toh(w->recv_wr_id), 0x42 + 1000);
    assert_int_equal(le64toh(w->tag), 0x42);
    assert_int_equal(le64toh(w->mask), 0xff);
    assert_int_equal(le32toh(w->handle), handle);
    assert_int_equal(w->result, 0);
    assert_int_equal(le64toh(sge->addr), 0x1000);
    assert_int_equal(le32toh(sge->len), 64);
    assert_int_equal(le32toh(sge->lkey), 5);
    assert_int_equal(fake.db[QHCA_DB_TM / 8],
                     env.srq->srqn | 1ULL << QHCA_DB_INDEX_SHIFT);
    assert_int_equal(post(IBV_WR_TAG_SYNC, 0, 0, &handle), 0);
    assert_int_equal(slot(1)->opcode, QHCA_WQE_TAG_SYNC);

    assert_int_equal(post(99, 0, 0, &handle), EINVAL);
    assert_int_equal(post(IBV_WR_TAG_SYNC, 1 << 5, 0, &handle), EINVAL);
    handle = TAGS;
    assert_int_equal(post(IBV_WR_TAG_DEL, 0, 0, &handle), EINVAL);
}

/* Entries: given once, back when the message or the removal is done. */
static void test_entries(void **state)
{
    uint32_t h[TAGS], more, i;
    struct ibv_wc wc;

    for (i = 0; i < TAGS; i++) {
        assert_int_equal(add(i, &h[i]), 0);
        execute(0);
    }
    assert_int_equal(add(9, &more), ENOMEM);

    /* a match alone gives nothing back; the data does */
    cqe(QHCA_CQE_OP_TM_RECV, 0, QHCA_CQE_F_TM_MATCH, h[1]);
    wc = poll_one();
    assert_int_equal(wc.opcode, IBV_WC_TM_RECV);
    assert_int_equal(wc.wc_flags, IBV_WC_TM_MATCH);
    assert_int_equal(add(9, &more), ENOMEM);
    cqe(QHCA_CQE_OP_TM_RECV, 0, QHCA_CQE_F_TM_DATA_VALID, h[1]);
    assert_int_equal(poll_one().wc_flags, IBV_WC_TM_DATA_VALID);
    /* told twice: once counts */
    cqe(QHCA_CQE_OP_TM_RECV, 0, QHCA_CQE_F_TM_DATA_VALID, h[1]);
    poll_one();
    assert_int_equal(add(9, &more), 0);
    assert_true(more != h[1]);
    assert_int_equal(more & 0xffff, h[1] & 0xffff);
    execute(0);
    /* an old handle is not the new one's */
    cqe(QHCA_CQE_OP_TM_RECV, 0, QHCA_CQE_F_TM_DATA_VALID, h[1]);
    poll_one();
    assert_int_equal(add(9, &more), ENOMEM);

    /* an error ends an entry too */
    cqe(QHCA_CQE_OP_TM_RECV, QHCA_WC_TM_RNDV_INCOMPLETE, QHCA_CQE_F_TM_MATCH,
        h[2]);
    assert_int_equal(poll_one().status, IBV_WC_TM_RNDV_INCOMPLETE);
    assert_int_equal(add(9, &more), 0);
    execute(0);

    /* removal: not before the device has done it, and only if it could */
    assert_int_equal(post(IBV_WR_TAG_DEL, 0, 0, &h[0]), 0);
    assert_int_equal(add(9, &more), ENOMEM);
    execute(QHCA_SYN_TM_HANDLE);
    assert_int_equal(add(9, &more), ENOMEM);
    assert_int_equal(post(IBV_WR_TAG_DEL, 0, 0, &h[3]), 0);
    execute(0);
    assert_int_equal(add(9, &more), 0);
    assert_int_equal(more & 0xffff, h[3] & 0xffff);

    /* one the device did not take */
    execute(QHCA_SYN_TM_HANDLE);
    assert_int_equal(add(9, &more), 0);
    execute(0);
}

/* The ring: full until the device has executed the oldest. */
static void test_ring(void **state)
{
    uint32_t depth = 1U << env.srq->tm->shift, handle = 0, i;

    for (i = 0; i < depth; i++) {
        assert_int_equal(post(IBV_WR_TAG_SYNC, 0, 0, &handle), 0);
    }
    assert_int_equal(post(IBV_WR_TAG_SYNC, 0, 0, &handle), ENOMEM);
    execute(0);
    assert_int_equal(post(IBV_WR_TAG_SYNC, 0, 0, &handle), 0);
    assert_int_equal(slot(0)->result, 0);
    assert_int_equal(post(IBV_WR_TAG_SYNC, 0, 0, &handle), ENOMEM);
    assert_int_equal(fake.db[QHCA_DB_TM / 8] >> QHCA_DB_INDEX_SHIFT,
                     depth + 1);
}

/* Completions: opcodes, flags, tag, and receive WQEs given back. */
static void test_poll(void **state)
{
    static const struct {
        uint8_t opcode;
        int wc;
    } ops[] = {
        { QHCA_CQE_OP_TM_ADD, IBV_WC_TM_ADD },
        { QHCA_CQE_OP_TM_DEL, IBV_WC_TM_DEL },
        { QHCA_CQE_OP_TM_SYNC, IBV_WC_TM_SYNC },
        { QHCA_CQE_OP_TM_NO_TAG, IBV_WC_TM_NO_TAG },
        { QHCA_CQE_OP_TM_RECV, IBV_WC_TM_RECV },
    };
    struct ibv_poll_cq_attr pattr = {};
    struct ibv_recv_wr wr = { .wr_id = 4 }, *bad;
    struct ibv_wc_tm_info info;
    uint32_t depth = 1U << env.srq->shift, number, i;
    struct ibv_wc wc;

    for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        cqe(ops[i].opcode, 0, QHCA_CQE_F_TM_SYNC_REQ, 0);
        wc = poll_one();
        assert_int_equal(wc.opcode, ops[i].wc);
        assert_int_equal(wc.wc_flags, IBV_WC_TM_SYNC_REQ);
        assert_int_equal(wc.src_qp, 0);
    }
    cqe(QHCA_CQE_OP_TM_DEL, QHCA_WC_TM_ERR, 0, 0);
    assert_int_equal(poll_one().status, IBV_WC_TM_ERR);

    /* an unexpected message gives its receive WQE back */
    for (i = 0; i < depth; i++) {
        assert_int_equal(qhca_post_srq_recv(&env.srq->vsrq.srq, &wr, &bad),
                         0);
    }
    assert_int_equal(qhca_post_srq_recv(&env.srq->vsrq.srq, &wr, &bad),
                     ENOMEM);
    number = le32toh(env.srq->index[3]);
    cqe(QHCA_CQE_OP_TM_RECV, 0, QHCA_CQE_F_SRQ, number);
    assert_int_equal(poll_one().wc_flags, 0);
    assert_int_equal(qhca_post_srq_recv(&env.srq->vsrq.srq, &wr, &bad), 0);

    cqe(QHCA_CQE_OP_TM_RECV, 0, QHCA_CQE_F_TM_MATCH, 0);
    cqe(QHCA_CQE_OP_TM_RECV, 0, QHCA_CQE_F_TM_DATA_VALID, 0);
    assert_int_equal(ibv_start_poll(env.cq_ex, &pattr), 0);
    ibv_wc_read_tm_info(env.cq_ex, &info);
    assert_true(info.tag == 0x5566778899aabbcc);
    assert_int_equal(info.priv, 0x11223344);
    assert_int_equal(ibv_wc_read_cvlan(env.cq_ex), QHCA_VLAN_NONE);
    assert_int_equal(ibv_next_poll(env.cq_ex), 0);
    ibv_wc_read_tm_info(env.cq_ex, &info);
    assert_true(info.tag == 0 && info.priv == 0);
    ibv_end_poll(env.cq_ex);
}

/* Destroying an SRQ removes its CQEs, and no others. */
static void test_destroy(void **state)
{
    struct ibv_srq_init_attr_ex attr = srq_attr();
    struct ibv_srq *srq;
    struct ibv_wc wc;

    cqe(QHCA_CQE_OP_TM_SYNC, 0, 0, 0);
    assert_int_equal(qhca_destroy_srq(&env.srq->vsrq.srq), 0);
    srq = qhca_create_srq_ex(fake.context, &attr);
    assert_non_null(srq);
    env.srq = to_qsrq(srq);
    assert_int_equal(qhca_poll_cq(&env.cq->vcq.cq, 1, &wc), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_create),
        TEST(test_encode),
        TEST(test_entries),
        TEST(test_ring),
        TEST(test_poll),
        TEST(test_destroy),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
