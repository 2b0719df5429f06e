/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Encoders: the bytes of each kind of WQE, written out by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "qhca-wqe.h"

#define JUNK 0xa5

static const uint64_t all_features = QHCA_FEAT_RC | QHCA_FEAT_UC |
    QHCA_FEAT_UD | QHCA_FEAT_XRC | QHCA_FEAT_ATOMIC | QHCA_FEAT_FAST_REG |
    QHCA_FEAT_FLUSH | QHCA_FEAT_ATOMIC_WRITE | QHCA_FEAT_MW;

static struct qhca_wqe_rules rules(enum ibv_qp_type type, uint32_t max_sge,
                                   uint32_t max_inline)
{
    struct qhca_wqe_rules r = {
        .ops = qhca_wqe_ops(type, all_features),
        .max_sge = max_sge,
        .max_inline = max_inline,
        .ud = type == IBV_QPT_UD,
        .xrc = type == IBV_QPT_XRC_SEND,
        .raw = type == IBV_QPT_RAW_PACKET,
    };

    return r;
}

/* Compares a slot with the expected bytes and checks nothing else changed. */
static void check(const uint8_t *slot, size_t size, const uint8_t *want,
                  size_t len)
{
    size_t i;

    assert_memory_equal(slot, want, len);
    for (i = len; i < size; i++) {
        assert_int_equal(slot[i], JUNK);
    }
}

static void test_send_imm(void **state)
{
    struct qhca_wqe_rules r = rules(IBV_QPT_RC, 2, 64);
    struct ibv_sge sge[2] = {
        { .addr = 0x1122334455667788, .length = 0x1000, .lkey = 0xabcdef01 },
        { .addr = 0x10, .length = 3, .lkey = 2 },
    };
    struct ibv_send_wr wr = {
        .wr_id = 0x0102030405060708,
        .opcode = IBV_WR_SEND_WITH_IMM,
        .send_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_FENCE,
        .imm_data = htobe32(0xdeadbeef),
        .sg_list = sge,
        .num_sge = 2,
    };
    static const uint8_t want[0x50] = {
        0x01, 0x07, 0x02, 0x00, 0xde, 0xad, 0xbe, 0xef,
        0x08, 0x07, 0x06, 0x05, 0x04, 0x03, 0x02, 0x01,
        [0x30] = 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11,
        0x00, 0x10, 0x00, 0x00, 0x01, 0xef, 0xcd, 0xab,
        [0x40] = 0x10, [0x48] = 0x03, [0x4c] = 0x02,
    };
    uint8_t slot[128];

    memset(slot, JUNK, sizeof(slot));
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    check(slot, sizeof(slot), want, sizeof(want));
}

static void test_rdma(void **state)
{
    static const struct {
        enum ibv_wr_opcode op;
        uint8_t code;
    } ops[] = {
        { IBV_WR_RDMA_WRITE, 0x08 },
        { IBV_WR_RDMA_WRITE_WITH_IMM, 0x09 },
        { IBV_WR_RDMA_READ, 0x10 },
    };
    struct qhca_wqe_rules r = rules(IBV_QPT_RC, 1, 0);
    size_t i;

    for (i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
        struct ibv_sge sge = { .addr = 0x1000, .length = 8, .lkey = 0x300 };
        struct ibv_send_wr wr = {
            .wr_id = 1,
            .opcode = ops[i].op,
            .imm_data = htobe32(0x01020304),
            .wr.rdma.remote_addr = 0x7766554433221100,
            .wr.rdma.rkey = 0x11223344,
            .sg_list = &sge,
            .num_sge = 1,
        };
        uint8_t want[0x40] = {
            ops[i].code, 0x00, 0x01, 0x00, [0x08] = 0x01,
            [0x20] = 0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77,
            0x44, 0x33, 0x22, 0x11,
            [0x31] = 0x10, [0x38] = 0x08, [0x3d] = 0x03,
        };
        uint8_t slot[64];

        if (ops[i].op == IBV_WR_RDMA_WRITE_WITH_IMM) {
            memcpy(want + 4, "\x01\x02\x03\x04", 4);
        }
        memset(slot, JUNK, sizeof(slot));
        assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
        check(slot, sizeof(slot), want, sizeof(want));
    }
}

/* What is bound, and what the same request says through each interface. */
static void test_windows(void **state)
{
    struct qhca_wqe_rules r = rules(IBV_QPT_RC, 1, 0);
    struct ibv_mr mr = { .lkey = 0x11223344 };
    struct ibv_mw mw = { .type = IBV_MW_TYPE_2 };
    struct ibv_send_wr wr = {
        .wr_id = 9,
        .opcode = IBV_WR_BIND_MW,
        .send_flags = IBV_SEND_SIGNALED,
        .bind_mw = {
            .mw = &mw,
            .rkey = 0x55667788,
            .bind_info = {
                .mr = &mr, .addr = 0x1000, .length = 0x23,
                .mw_access_flags = IBV_ACCESS_LOCAL_WRITE |
                                   IBV_ACCESS_REMOTE_READ |
                                   IBV_ACCESS_ZERO_BASED,
            },
        },
    };
    static const uint8_t bind[0x30] = {
        0x22, 0x01, [0x08] = 0x09, [0x11] = 0x10, [0x18] = 0x23,
        [0x20] = 0x44, 0x33, 0x22, 0x11,
        [0x28] = 0x88, 0x77, 0x66, 0x55, 0x24,
    };
    static const uint8_t inv[0x30] = {
        0x20, 0x01, [0x04] = 0x88, 0x77, 0x66, 0x55, [0x08] = 0x09,
    };
    uint8_t slot[64];

    memset(slot, JUNK, sizeof(slot));
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    check(slot, sizeof(slot), bind, sizeof(bind));
    wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_MW_BIND;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EINVAL);
    wr.bind_mw.bind_info.mw_access_flags = 0;
    wr.bind_mw.bind_info.mr = NULL;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EINVAL);
    wr.bind_mw.bind_info.mr = &mr;
    mw.type = IBV_MW_TYPE_1;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EINVAL);
    wr.opcode = IBV_WR_LOCAL_INV;
    wr.invalidate_rkey = 0x55667788;
    memset(slot, JUNK, sizeof(slot));
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    check(slot, sizeof(slot), inv, sizeof(inv));
    /* not with datagrams, not without the feature */
    r = rules(IBV_QPT_UD, 1, 0);
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EOPNOTSUPP);
    assert_int_equal(qhca_wqe_ops(IBV_QPT_RC, all_features & ~QHCA_FEAT_MW) &
                     (1U << IBV_WR_BIND_MW | 1U << IBV_WR_LOCAL_INV), 0);
}

static void test_atomics_and_invalidate(void **state)
{
    struct qhca_wqe_rules r = rules(IBV_QPT_RC, 1, 0);
    struct ibv_sge sge = { .addr = 0x1000, .length = 8, .lkey = 0x300 };
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
        .wr.atomic = {
            .remote_addr = 0x2000,
            .compare_add = 0x1111111111111111,
            .swap = 0x2222222222222222,
            .rkey = 0x55,
        },
        .sg_list = &sge,
        .num_sge = 1,
    };
    struct qhca_sq_wqe wqe[2];

    assert_int_equal(qhca_wqe_encode_send(&r, wqe, &wr), 0);
    assert_int_equal(wqe->ctrl.opcode, 0x18);
    assert_int_equal(le64toh(wqe->ctrl.arg0), 0x1111111111111111);
    assert_int_equal(le64toh(wqe->ctrl.arg1), 0x2222222222222222);
    assert_int_equal(le64toh(wqe->remote.addr), 0x2000);
    assert_int_equal(le32toh(wqe->remote.rkey), 0x55);

    wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
    assert_int_equal(qhca_wqe_encode_send(&r, wqe, &wr), 0);
    assert_int_equal(wqe->ctrl.opcode, 0x19);
    assert_int_equal(le64toh(wqe->ctrl.arg0), 0x1111111111111111);
    assert_int_equal(wqe->ctrl.arg1, 0);

    wr.opcode = IBV_WR_SEND_WITH_INV;
    wr.invalidate_rkey = 0x01020304;
    assert_int_equal(qhca_wqe_encode_send(&r, wqe, &wr), 0);
    assert_int_equal(wqe->ctrl.opcode, 0x02);
    assert_memory_equal(&wqe->ctrl.imm, "\x04\x03\x02\x01", 4);
}

static void test_ud(void **state)
{
    struct qhca_wqe_rules r = rules(IBV_QPT_UD, 2, 32);
    struct qhca_ah ah;
    struct ibv_sge sge = { .addr = 0x1000, .length = 8, .lkey = 0x300 };
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.ud = { .ah = &ah.ibv_ah, .remote_qpn = 0x123456,
                   .remote_qkey = 0x80010000 },
        .sg_list = &sge,
        .num_sge = 1,
    };
    uint8_t want[0x70] = {
        0x00, 0x01, 0x01, 0x00,
        [0x20] = 0x56, 0x34, 0x12, 0x00, 0x00, 0x00, 0x01, 0x80,
        [0x61] = 0x10, [0x68] = 0x08, [0x6d] = 0x03,
    };
    uint8_t slot[128];
    size_t i;

    for (i = 0; i < sizeof(ah.av); i++) {
        ((uint8_t *)&ah.av)[i] = want[0x30 + i] = i + 1;
    }
    memset(slot, JUNK, sizeof(slot));
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    check(slot, sizeof(slot), want, sizeof(want));

    wr.wr.ud.ah = NULL;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EINVAL);
}

static void test_inline(void **state)
{
    struct qhca_wqe_rules r = rules(IBV_QPT_RC, 1, 16);
    char a[] = "abcdefgh", b[] = "ijklmnopq";
    struct ibv_sge sge[2] = {
        { .addr = (uintptr_t)a, .length = 8 },
        { .addr = (uintptr_t)b, .length = 8 },
    };
    struct ibv_send_wr wr = {
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_INLINE,
        .sg_list = sge,
        .num_sge = 2,       /* more than max_sge: inline has no SGEs */
    };
    uint8_t slot[64];
    uint8_t want[0x40] = { 0x08, 0x08, 0x10 };

    memcpy(want + 0x30, "abcdefghijklmnop", 16);
    memset(slot, JUNK, sizeof(slot));
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    check(slot, sizeof(slot), want, 0x40);

    sge[1].length = 9;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), ENOMEM);
    sge[1].length = UINT32_MAX;     /* the sum must not wrap */
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), ENOMEM);

    sge[1].length = 8;
    wr.opcode = IBV_WR_RDMA_READ;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EINVAL);

    /* an empty message is still inline */
    wr.opcode = IBV_WR_SEND;
    wr.num_sge = 0;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    assert_int_equal(slot[1], QHCA_WQE_F_INLINE);
    assert_int_equal(slot[2], 0);
}

static void test_refusals(void **state)
{
    struct qhca_wqe_rules r = rules(IBV_QPT_RC, 2, 0);
    struct ibv_sge sge[3] = { { .length = 1 } };
    struct ibv_send_wr wr = { .opcode = IBV_WR_SEND, .sg_list = sge,
                              .num_sge = 3 };
    uint8_t slot[128];
    unsigned int op;

    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EINVAL);
    wr.num_sge = -1;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EINVAL);
    wr.num_sge = 2;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    wr.send_flags = IBV_SEND_IP_CSUM;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EOPNOTSUPP);
    wr.send_flags = 0;

    wr.num_sge = 0;
    for (op = IBV_WR_TSO; op < 64; op++) {
        if (op == IBV_WR_ATOMIC_WRITE) {
            continue;
        }
        wr.opcode = op;
        assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EOPNOTSUPP);
    }

    /* by type and by feature */
    wr.opcode = IBV_WR_RDMA_READ;
    r = rules(IBV_QPT_UC, 2, 0);
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EOPNOTSUPP);
    wr.opcode = IBV_WR_SEND_WITH_INV;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EOPNOTSUPP);
    wr.opcode = IBV_WR_RDMA_WRITE;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    r = rules(IBV_QPT_UD, 2, 0);
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EOPNOTSUPP);
    assert_int_equal(qhca_wqe_ops(IBV_QPT_RC, QHCA_FEAT_RC) &
                     (1U << IBV_WR_ATOMIC_CMP_AND_SWP |
                      1U << IBV_WR_SEND_WITH_INV), 0);
}

static void test_recv(void **state)
{
    struct ibv_sge sge[2] = {
        { .addr = 0x1000, .length = 0x2000, .lkey = 0x3000 },
        { .addr = 1, .length = 2, .lkey = 3 },
    };
    struct ibv_recv_wr wr = { .wr_id = 0x1234, .sg_list = sge, .num_sge = 2 };
    static const uint8_t want[0x30] = {
        0x34, 0x12, [0x08] = 0x02,
        [0x11] = 0x10, [0x19] = 0x20, [0x1d] = 0x30,
        [0x20] = 0x01, [0x28] = 0x02, [0x2c] = 0x03,
    };
    uint8_t slot[64];

    memset(slot, JUNK, sizeof(slot));
    assert_int_equal(qhca_wqe_encode_recv(3, slot, &wr), 0);
    check(slot, sizeof(slot), want, sizeof(want));
    assert_int_equal(qhca_wqe_encode_recv(1, slot, &wr), EINVAL);
    wr.num_sge = -1;
    assert_int_equal(qhca_wqe_encode_recv(3, slot, &wr), EINVAL);
}

static void test_strides(void **state)
{
    struct qhca_wqe_rules r;
    uint8_t stride;
    uint32_t sge;

    r = rules(IBV_QPT_RC, 0, 0);
    assert_int_equal(qhca_wqe_send_stride(&r, 30, 512, &stride), 0);
    assert_int_equal(stride, 6);
    assert_int_equal(r.max_sge, 1);         /* (64 - 48) / 16 */
    assert_int_equal(r.max_inline, 16);

    r = rules(IBV_QPT_RC, 2, 0);
    assert_int_equal(qhca_wqe_send_stride(&r, 30, 512, &stride), 0);
    assert_int_equal(stride, 7);
    assert_int_equal(r.max_sge, 5);         /* (128 - 48) / 16 */
    assert_int_equal(r.max_inline, 80);

    r = rules(IBV_QPT_RC, 1, 512);
    assert_int_equal(qhca_wqe_send_stride(&r, 30, 512, &stride), 0);
    assert_int_equal(stride, 10);
    assert_int_equal(r.max_sge, 30);        /* 61 fit, but the limit is 30 */
    assert_int_equal(r.max_inline, 512);

    r = rules(IBV_QPT_UD, 1, 0);
    assert_int_equal(qhca_wqe_send_stride(&r, 30, 512, &stride), 0);
    assert_int_equal(stride, 7);
    assert_int_equal(r.max_sge, 2);         /* (128 - 96) / 16 */

    r = rules(IBV_QPT_RC, 31, 0);
    assert_int_equal(qhca_wqe_send_stride(&r, 30, 512, &stride), EINVAL);
    r = rules(IBV_QPT_RC, 1, 513);
    assert_int_equal(qhca_wqe_send_stride(&r, 30, 512, &stride), EINVAL);
    /* limits that no WQE can hold */
    r = rules(IBV_QPT_RC, 62, 0);
    assert_int_equal(qhca_wqe_send_stride(&r, 100, 2048, &stride), EINVAL);

    sge = 0;
    assert_int_equal(qhca_wqe_recv_stride(&sge, 30, &stride), 0);
    assert_int_equal(stride, 5);
    assert_int_equal(sge, 1);
    sge = 4;
    assert_int_equal(qhca_wqe_recv_stride(&sge, 30, &stride), 0);
    assert_int_equal(stride, 7);
    assert_int_equal(sge, 7);
    sge = 30;
    assert_int_equal(qhca_wqe_recv_stride(&sge, 30, &stride), 0);
    assert_int_equal(stride, 9);
    assert_int_equal(sge, 30);
    sge = 31;
    assert_int_equal(qhca_wqe_recv_stride(&sge, 30, &stride), EINVAL);
}

/* XRC: the SRQ comes after the remote part, SGEs or data after that. */
static void test_xrc(void **state)
{
    struct qhca_wqe_rules r = rules(IBV_QPT_XRC_SEND, 1, 16);
    struct ibv_sge sge = { .addr = 0x99, .length = 7, .lkey = 0x55 };
    struct ibv_send_wr wr = {
        .wr_id = 3,
        .opcode = IBV_WR_RDMA_WRITE,
        .wr.rdma = { .remote_addr = 0x1234, .rkey = 0x77 },
        .qp_type.xrc.remote_srqn = 0xabcdef,
        .sg_list = &sge,
        .num_sge = 1,
    };
    static const uint8_t want[0x50] = {
        0x08, 0x00, 0x01, 0x00, [0x08] = 0x03,
        [0x20] = 0x34, 0x12, [0x28] = 0x77,
        [0x30] = 0xef, 0xcd, 0xab,
        [0x40] = 0x99, [0x48] = 0x07, [0x4c] = 0x55,
    };
    uint8_t slot[128], stride;

    memset(slot, JUNK, sizeof(slot));
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    check(slot, sizeof(slot), want, sizeof(want));
    assert_int_equal(qhca_wqe_send_stride(&r, 30, 512, &stride), 0);
    assert_int_equal(stride, 7);
    assert_int_equal(r.max_sge, 4);         /* (128 - 64) / 16 */
    /* a target sends nothing */
    assert_int_equal(qhca_wqe_ops(IBV_QPT_XRC_RECV, all_features), 0);
}

static void test_flush(void **state)
{
    struct qhca_wqe_rules r = rules(IBV_QPT_RC, 1, 16);
    struct ibv_send_wr wr = { .opcode = IBV_WR_FLUSH };
    static const uint8_t want[0x30] = {
        0x30, 0x01, [0x08] = 0x09, [0x10] = 0x00, 0x10, [0x18] = 0x12,
        [0x20] = 0x34, 0x12, [0x28] = 0x77,
    };
    uint8_t slot[64];

    memset(slot, JUNK, sizeof(slot));
    qhca_wqe_begin(&r, slot, 9, qhca_wqe_opcode(IBV_WR_FLUSH),
                   QHCA_WQE_F_SIGNALED);
    assert_int_equal(qhca_wqe_set_flush(slot, 0x1234, 0x77, 4096,
                                        IBV_FLUSH_PERSISTENT, IBV_FLUSH_MR),
                     0);
    check(slot, sizeof(slot), want, sizeof(want));
    assert_int_equal(qhca_wqe_set_flush(slot, 0, 0, 1, 0, 0), EINVAL);
    assert_int_equal(qhca_wqe_set_flush(slot, 0, 0, 1, 4, 0), EINVAL);
    assert_int_equal(qhca_wqe_set_flush(slot, 0, 0, 1, 1, 2), EINVAL);
    assert_int_equal(qhca_wqe_set_flush(slot, 0, 0, 1ULL << 32, 1, 0),
                     EINVAL);
    /* the old way of posting cannot say what to flush */
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EOPNOTSUPP);
}

static void test_raw(void **state)
{
    struct qhca_wqe_rules r = rules(IBV_QPT_RAW_PACKET, 2, 80);
    struct ibv_sge sge = { .addr = 0x1000, .length = 60, .lkey = 7 };
    struct ibv_send_wr wr = {
        .wr_id = 3,
        .opcode = IBV_WR_SEND,
        .send_flags = IBV_SEND_SIGNALED | IBV_SEND_IP_CSUM,
        .sg_list = &sge,
        .num_sge = 1,
    };
    static const uint8_t want[0x40] = {
        0x41, 0x11, 0x01, 0x00, [0x08] = 0x03,
        [0x31] = 0x10, [0x38] = 60, [0x3c] = 0x07,
    };
    static const uint8_t frame[14] = { 1, 2, 3, 4, 5, 6 };
    static const uint8_t inl[0x3e] = {
        0x41, 0x08, 0x0e, 0x00, [0x08] = 0x03, [0x30] = 1, 2, 3, 4, 5, 6,
    };
    uint8_t slot[128];

    memset(slot, JUNK, sizeof(slot));
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    check(slot, sizeof(slot), want, sizeof(want));
    memset(slot, JUNK, sizeof(slot));
    sge.addr = (uintptr_t)frame;
    sge.length = sizeof(frame);
    wr.send_flags = IBV_SEND_INLINE;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), 0);
    check(slot, sizeof(slot), inl, sizeof(inl));
    wr.opcode = IBV_WR_SEND_WITH_IMM;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EOPNOTSUPP);
    /* checksums are a matter of frames */
    r = rules(IBV_QPT_RC, 2, 80);
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_IP_CSUM;
    assert_int_equal(qhca_wqe_encode_send(&r, slot, &wr), EOPNOTSUPP);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_send_imm),
        cmocka_unit_test(test_rdma),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_atomics_and_invalidate),
        cmocka_unit_test(test_ud),
        cmocka_unit_test(test_inline),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_recv),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_xrc),
        cmocka_unit_test(test_flush),
        cmocka_unit_test(test_raw),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
