/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Decoding entries: each kind of WQE and CQE, errors in them, and no access
 * past their end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emit.h"
#include "observe/decode.h"
#include "transport/rc.h"
#include <rdma/qhca-hw.h>

/* Decode a copy that ends where the entry does, so that ASan notices. */
#define LOOK(s, entry, len, call) do { \
        uint8_t *copy = malloc(len); \
        const struct qhca_emit *em; \
        memcpy(copy, entry, len); \
        em = seen_start(s); \
        qhca_emit_begin(em, NULL); \
        call; \
        qhca_emit_end(em); \
        assert_int_equal((s)->depth, 0); \
        free(copy); \
    } while (0)

#define SEND_LOOK(s, type, entry, len) \
    LOOK(s, entry, len, qhca_decode_send_wqe(em, type, copy, len))

static void done(struct seen *s)
{
    seen_start(s);
    free(s->text);
}

/* A send WQE with a header of @hdr bytes followed by two SGEs. */
static void two_sges(uint8_t *b, size_t hdr)
{
    static const struct qhca_sge sge[2] = {
        { .addr = 0x1111, .len = 11, .lkey = 0xa }, { 0x2222, 22, 0xb },
    };

    memcpy(b + hdr, sge, sizeof(sge));
}

/* Where the SGEs begin depends on the QP and on the opcode. */
static void send_wqes(void **state)
{
    struct seen s = { 0 };
    uint8_t b[128] = { 0 };
    struct qhca_sq_wqe rc = {
        .ctrl = { .opcode = QHCA_WQE_RDMA_WRITE, .num_sge = 2,
                  .flags = QHCA_WQE_F_SIGNALED | QHCA_WQE_F_FENCE,
                  .wr_id = 0xabc },
        .remote = { .addr = 0x9999, .rkey = 0x77 },
    };
    struct qhca_ud_wqe ud = {
        .ctrl = { .opcode = QHCA_WQE_SEND, .num_sge = 2 },
        .dest_qpn = 1234, .qkey = 0x11223344,
        .av = { .dmac = { 2, 0, 0, 0, 0, 9 }, .hop_limit = 64 },
    };
    struct qhca_xrc_wqe xrc = {
        .ctrl = { .opcode = QHCA_WQE_SEND, .num_sge = 2 }, .srqn = 99,
    };
    struct qhca_masked_wqe masked = {
        .ctrl = { .opcode = QHCA_WQE_MASKED_COMP_SWAP, .num_sge = 2 },
        .mask = 0xff00, .swap_mask = 0x0ff0,
    };

    (void)state;
    memcpy(b, &rc, sizeof(rc));
    two_sges(b, sizeof(rc));
    SEND_LOOK(&s, QHCA_QPT_RC, b, 128);
    SEEN(&s, "opcode_name", "RDMA_WRITE");
    SEEN(&s, "flags_names", "SIGNALED|FENCE");
    SEEN(&s, "wr_id", "0xabc");
    SEEN(&s, "remote.addr", "0x9999");
    SEEN(&s, "remote.rkey", "0x77");
    SEEN(&s, "sges.0.addr", "0x1111");
    SEEN(&s, "sges.1.lkey", "0xb");
    assert_null(seen_get(&s, "sges.2.addr"));
    assert_null(seen_get(&s, "wrong"));

    memcpy(b, &ud, sizeof(ud));
    two_sges(b, sizeof(ud));
    SEND_LOOK(&s, QHCA_QPT_UD, b, 128);
    SEEN(&s, "dest_qpn", "1234");
    SEEN(&s, "qkey", "0x11223344");
    SEEN(&s, "av.dmac", "02:00:00:00:00:09");
    SEEN(&s, "av.hop_limit", "64");
    SEEN(&s, "sges.1.addr", "0x2222");
    assert_null(seen_get(&s, "remote.addr"));
    SEND_LOOK(&s, QHCA_QPT_GSI, b, 128);
    SEEN(&s, "sges.0.addr", "0x1111");

    memcpy(b, &xrc, sizeof(xrc));
    two_sges(b, sizeof(xrc));
    SEND_LOOK(&s, QHCA_QPT_XRC_INI, b, 128);
    SEEN(&s, "srqn", "99");
    SEEN(&s, "sges.0.len", "11");
    assert_null(seen_get(&s, "mask"));

    memcpy(b, &masked, sizeof(masked));
    two_sges(b, sizeof(masked));
    SEND_LOOK(&s, QHCA_QPT_RC, b, 128);
    SEEN(&s, "opcode_name", "MASKED_COMP_SWAP");
    SEEN(&s, "mask", "0xff00");
    SEEN(&s, "swap_mask", "0xff0");
    SEEN(&s, "sges.1.len", "22");
    b[0] = QHCA_WQE_MASKED_FETCH_ADD;
    SEND_LOOK(&s, QHCA_QPT_RC, b, 128);
    SEEN(&s, "mask", "0xff00");
    SEEN(&s, "sges.0.len", "11");
    done(&s);
}

/* A count that exceeds the entry is reported, and what is there is shown. */
static void too_much(void **state)
{
    struct seen s = { 0 };
    uint8_t b[128] = { 0 };
    struct qhca_sq_wqe *w = (struct qhca_sq_wqe *)b;

    (void)state;
    w->ctrl.num_sge = 6;
    SEND_LOOK(&s, QHCA_QPT_RC, b, 128);
    SEEN(&s, "sges.4.len", "0");
    assert_null(seen_get(&s, "sges.5.len"));
    SEEN(&s, "wrong", "more SGEs than the entry holds");
    w->ctrl.num_sge = 5;
    SEND_LOOK(&s, QHCA_QPT_RC, b, 128);
    assert_null(seen_get(&s, "wrong"));

    w->ctrl.flags = QHCA_WQE_F_INLINE;
    memcpy(b + sizeof(*w), "\1\2\3\4", 4);
    SEND_LOOK(&s, QHCA_QPT_RC, b, 128);
    SEEN(&s, "inline", "0102030400");
    assert_null(seen_get(&s, "wrong"));
    assert_null(seen_get(&s, "sges.0.len"));
    w->ctrl.num_sge = 0xffff;
    SEND_LOOK(&s, QHCA_QPT_RC, b, 64);
    SEEN(&s, "inline", "01020304000000000000000000000000");
    SEEN(&s, "wrong", "more bytes than the entry holds");

    /* a UD header does not fit into the shortest entry */
    w->ctrl.flags = 0;
    SEND_LOOK(&s, QHCA_QPT_UD, b, 64);
    SEEN(&s, "wrong", "the entry is too short for its header");
    assert_null(seen_get(&s, "dest_qpn"));
    assert_null(seen_get(&s, "sges.0.len"));
    done(&s);
}

static void receives(void **state)
{
    struct seen s = { 0 };
    struct {
        struct qhca_rq_wqe h;
        struct qhca_sge sge;
    } w = {
        .h = { .wr_id = 0xfeed, .num_sge = 1 },
        .sge = { .addr = 0x3333, .len = 33, .lkey = 0xc },
    };

    (void)state;
    LOOK(&s, &w, sizeof(w), qhca_decode_recv_wqe(em, copy, sizeof(w)));
    SEEN(&s, "wr_id", "0xfeed");
    SEEN(&s, "sges.0.addr", "0x3333");
    assert_null(seen_get(&s, "wrong"));
    w.h.num_sge = 256;          /* the upper byte counts */
    LOOK(&s, &w, sizeof(w), qhca_decode_recv_wqe(em, copy, sizeof(w)));
    SEEN(&s, "num_sge", "256");
    assert_null(seen_get(&s, "sges.1.addr"));
    SEEN(&s, "wrong", "more SGEs than the entry holds");
    done(&s);
}

static void eth(void **state)
{
    struct seen s = { 0 };
    struct {
        struct qhca_eth_wqe h;
        struct qhca_eth_seg seg[2];
    } w = {
        .h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 2, .vlan = 42,
               .flags = QHCA_WQE_F_SIGNALED | QHCA_WQE_F_ETH_CSUM |
                        QHCA_WQE_F_ETH_VLAN,
               .csum_start = 34, .csum_offset = 6 },
        .seg = { { .addr = 0x4000, .len = 14 },
                 { .addr = 0x5000, .len = 86 } },
    };

    (void)state;
    LOOK(&s, &w, sizeof(w), qhca_decode_eth_wqe(em, copy, sizeof(w)));
    SEEN(&s, "opcode_name", "ETH_SEND");
    SEEN(&s, "vlan", "42");
    SEEN(&s, "csum_start", "34");
    SEEN(&s, "csum_offset", "6");
    SEEN(&s, "segs.0.addr", "0x4000");
    SEEN(&s, "segs.1.len", "86");
    assert_null(seen_get(&s, "segs.2.len"));
    w.h.num_sge = 0xff01;
    LOOK(&s, &w, sizeof(w), qhca_decode_eth_wqe(em, copy, sizeof(w)));
    SEEN(&s, "segs.1.addr", "0x5000");
    assert_null(seen_get(&s, "segs.2.len"));
    w.h.flags = QHCA_WQE_F_ETH_LSO;
    w.h.mss = 1448;
    w.h.hdr_len = 66;
    LOOK(&s, &w, sizeof(w), qhca_decode_eth_wqe(em, copy, sizeof(w)));
    SEEN(&s, "flags_names", "ETH_LSO");
    SEEN(&s, "mss", "1448");
    SEEN(&s, "hdr_len", "66");
    SEEN(&s, "inner_l3", "0");
    done(&s);
}

static void tag_matching(void **state)
{
    struct seen s = { 0 };
    struct {
        struct qhca_tm_wqe h;
        struct qhca_sge sge[1];
    } w = {
        .h = { .opcode = QHCA_WQE_TAG_ADD, .num_sge = 1, .tag = 0x1234,
               .mask = 0xffff, .handle = 0x50003, .recv_wr_id = 0x99 },
        .sge = { { .addr = 0x6000, .len = 66, .lkey = 0xd } },
    };

    (void)state;
    LOOK(&s, &w, sizeof(w), qhca_decode_tm_wqe(em, copy, sizeof(w)));
    SEEN(&s, "opcode_name", "TAG_ADD");
    SEEN(&s, "tag", "0x1234");
    SEEN(&s, "mask", "0xffff");
    SEEN(&s, "handle", "0x50003");
    SEEN(&s, "recv_wr_id", "0x99");
    SEEN(&s, "sges.0.len", "66");
    w.h.opcode = QHCA_WQE_TAG_DEL;      /* has a handle, no buffers */
    LOOK(&s, &w, sizeof(w), qhca_decode_tm_wqe(em, copy, sizeof(w)));
    SEEN(&s, "opcode_name", "TAG_DEL");
    SEEN(&s, "handle", "0x50003");
    assert_null(seen_get(&s, "sges.0.len"));
    done(&s);
}

/* Where an ordinary CQE has frame addresses, a tag matching CQE has the tag. */
static void cqes(void **state)
{
    static const uint8_t tm[] = {
        QHCA_CQE_OP_TM_RECV, QHCA_CQE_OP_TM_NO_TAG, QHCA_CQE_OP_TM_ADD,
        QHCA_CQE_OP_TM_DEL, QHCA_CQE_OP_TM_SYNC,
    };
    static const uint8_t others[] = {
        QHCA_CQE_OP_SEND, QHCA_CQE_OP_RECV, QHCA_CQE_OP_RAW_RECV,
    };
    static const uint8_t eths[] = {
        QHCA_CQE_OP_ETH_SEND, QHCA_CQE_OP_ETH_RECV,
    };
    struct seen s = { 0 };
    struct qhca_tm_cqe c = {
        .wr_id = 0x77, .qpn = 5, .wqe_index = 6, .srqn = 321,
        .byte_len = 1000,
    };
    size_t i;

    (void)state;
    memcpy(&c.tag, "\0\0\0\0\0\0\x12\x34", 8);
    for (i = 0; i < sizeof(tm); i++) {
        c.opcode = tm[i];
        LOOK(&s, &c, sizeof(c), qhca_decode_cqe(em, copy));
        SEEN(&s, "tag", "0x1234");
        SEEN(&s, "srqn", "321");
        SEEN(&s, "byte_len", "1000");
        assert_non_null(seen_get(&s, "opcode_name"));
        assert_null(seen_get(&s, "smac"));
    }
    for (i = 0; i < sizeof(others); i++) {
        c.opcode = others[i];
        LOOK(&s, &c, sizeof(c), qhca_decode_cqe(em, copy));
        SEEN(&s, "src_qpn", "321");
        SEEN(&s, "wr_id", "0x77");
        assert_non_null(seen_get(&s, "opcode_name"));
        assert_non_null(seen_get(&s, "smac"));
        assert_null(seen_get(&s, "tag"));
    }
    for (i = 0; i < sizeof(eths); i++) {
        c.opcode = eths[i];
        LOOK(&s, &c, sizeof(c), qhca_decode_cqe(em, copy));
        SEEN(&s, "num", "5");
        SEEN(&s, "wqe_index", "6");
        SEEN(&s, "byte_len", "1000");
        assert_non_null(seen_get(&s, "opcode_name"));
        assert_non_null(seen_get(&s, "rss_hash"));
        assert_null(seen_get(&s, "src_qpn"));
    }
    done(&s);
}

/* Numbers, flags and packets without a name are shown as numbers. */
static void unnamed(void **state)
{
    struct seen s = { 0 };

    (void)state;
    qhca_emit_begin(seen_start(&s), NULL);
    qhca_emit_enum(&s.em, "op", "op_name", qhca_names_wqe_op, 0xee, false);
    qhca_emit_flags(&s.em, "flags", qhca_names_wqe_flag,
                    QHCA_WQE_F_FENCE | 0x40);
    qhca_emit_flags(&s.em, "none", qhca_names_wqe_flag, 0);
    qhca_emit_bth(&s.em, "uc", "uc_name", QHCA_CLASS_UC);
    qhca_emit_bth(&s.em, "xrc", "xrc_name", QHCA_CLASS_XRC | 12);
    qhca_emit_bth(&s.em, "rd", "rd_name", 0x40);
    qhca_emit_bytes(&s.em, "empty", "", 0);
    qhca_emit_end(&s.em);
    SEEN(&s, "op", "238");
    assert_null(seen_get(&s, "op_name"));
    SEEN(&s, "flags", "FENCE|0x40");
    SEEN(&s, "uc_name", "UC SEND_FIRST");
    SEEN(&s, "xrc", "0xac");
    SEEN(&s, "xrc_name", "XRC READ_REQUEST");
    SEEN(&s, "rd", "0x40");
    SEEN(&s, "empty", "");
    done(&s);
}

#define TRACE_LOOK(s, ...) do { \
        const struct qhca_trace t_ = { __VA_ARGS__ }; \
        const struct qhca_emit *em_ = seen_start(s); \
        qhca_emit_begin(em_, NULL); \
        qhca_emit_trace(em_, &t_); \
        qhca_emit_end(em_); \
        assert_int_equal((s)->depth, 0); \
    } while (0)

/* What only some events of a kind have. */
static void traces(void **state)
{
    struct seen s = { 0 };

    (void)state;
    TRACE_LOOK(&s, .kind = QHCA_TR_GUEST_ERROR, .num = 0x77,
               .a = QHCA_STAT_DB_BAD_OBJECT, .text = "no such thing");
    SEEN(&s, "number", "0x77");
    SEEN(&s, "counter_name", "db-bad-object");
    SEEN(&s, "text", "no such thing");
    TRACE_LOOK(&s, .kind = QHCA_TR_GUEST_ERROR);
    assert_null(seen_get(&s, "text"));

    TRACE_LOOK(&s, .kind = QHCA_TR_ETH_RX, .num = 3, .index = 4, .b = 9000,
               .len = 6, .a = 54, .wqe = 17, .op = QHCA_HASH_TYPE_L4,
               .psn = 0xabc);
    SEEN(&s, "queue", "3");
    SEEN(&s, "bytes", "9000");
    SEEN(&s, "frames", "6");
    SEEN(&s, "header_bytes", "54");
    SEEN(&s, "data_index", "17");
    SEEN(&s, "hash", "0xabc");
    SEEN(&s, "hash_type_name", "L4");
    TRACE_LOOK(&s, .kind = QHCA_TR_ETH_TX, .num = 3, .b = 60,
               .op = QHCA_HASH_TYPE_L4, .a = 54);
    assert_null(seen_get(&s, "frames"));
    assert_null(seen_get(&s, "header_bytes"));
    assert_null(seen_get(&s, "hash"));

    TRACE_LOOK(&s, .kind = QHCA_TR_KINDS, .time = 5);
    SEEN(&s, "kind", "unknown");
    SEEN(&s, "time", "5");
    done(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_wqes),
        cmocka_unit_test(too_much),
        cmocka_unit_test(receives),
        cmocka_unit_test(eth),
        cmocka_unit_test(tag_matching),
        cmocka_unit_test(cqes),
        cmocka_unit_test(unnamed),
        cmocka_unit_test(traces),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
