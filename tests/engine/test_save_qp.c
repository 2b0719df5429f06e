/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QPs that no command and no packet could have produced are not loaded.  A QP
 * is corrupted in memory, then saved; or one of its send WQEs in flight is.
 */
#include "peer.h"
#include "adapter/adapter.h"
#include "transport/rc.h"
#include "reborn.h"

/* Does the state of @p load into another adapter? */
static bool loads(struct peer *p)
{
    return !*node_loads(&p->w.node[0], &p->e->cfg);
}

/* A QP of @type in @state. */
static struct peer *peer_in(uint8_t type, uint8_t state)
{
    struct peer *p = peer_new(type, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);

    switch (state) {
    case QHCA_QPS_RESET:
    case QHCA_QPS_INIT:
    case QHCA_QPS_RTR:
        assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
        gqp_clear(&p->qp);
        if (state >= QHCA_QPS_INIT) {
            gqp_to_init(&p->qp, &p->a);
        }
        if (state == QHCA_QPS_RTR) {
            gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
        }
        break;
    case QHCA_QPS_SQD:
        assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
        break;
    case QHCA_QPS_SQE:
        qhca_qp_sqe(p->e, qp, QHCA_SYN_WQE_SGE);
        qhca_run(p->e);
        break;
    case QHCA_QPS_ERR:
        assert_int_equal(gqp_state(&p->qp, QHCA_QPS_ERR), QHCA_ST_OK);
        break;
    }
    peer_run(p);
    assert_int_equal(qp->state, state);
    return p;
}

#define RC QHCA_QPT_RC
#define UC QHCA_QPT_UC
#define UD QHCA_QPT_UD
#define XRC QHCA_QPT_XRC_INI

/* In turn: the state it is in, and what is corrupted. */
#define SPOILT(X)                                                            \
    X(RC, RTR, qp->sq_head = 10; qp->sq_next = 5)                            \
    X(RC, RTR, qp->sq_head = 10)                                             \
    X(RC, RTR, qp->xp->rd_out = 1)                                            \
    X(RC, RTR, qp->xp->req_state = QHCA_REQ_WAIT_RNR)                         \
    X(RC, RTR, qp->xp->sq_flush = true)                                       \
    X(RC, RTR, qp->xp->snd_psn++)                                             \
    X(RC, RTR, qp->path_mtu = 0)                                             \
    X(UC, SQE, qp->sq_head = 10; qp->sq_next = 5)                            \
    X(UC, SQE, qp->sq_head = 10; qp->sq_next = 5; qp->xp->sq_flush = true)    \
    X(UC, SQE, qp->sq_head = 10)                                             \
    X(UC, SQE, qp->xp->rd_out = 1)                                            \
    X(UC, SQE, qp->xp->cur++)                                                 \
    X(UD, SQE, qp->sq_head = 10)                                             \
    X(RC, ERR, qp->sq_head = 10)                                             \
    X(RC, ERR, qp->xp->drain = true)                                          \
    X(RC, ERR, qp->path_mtu = 0; qp->xp->fatal_nak = true;                   \
               qp->xp->rspq_head++)                                          \
    X(RC, RTS, qp->state = QHCA_QPS_SQE)                                     \
    X(RC, RTS, qp->xp->sq_flush = true)                                       \
    X(RC, RTS, qp->xp->rq_flush = true)                                       \
    X(RC, RTS, qp->xp->drain = true)                                          \
    X(RC, RTS, qp->xp->req_state = QHCA_REQ_WAIT_RNR)                         \
    X(RC, RTS, qp->xp->rsp_op = QHCA_RSPOP_SEND)                              \
    X(RC, SQD, qp->sq_head = 10; qp->sq_next = 5)                            \
    X(RC, INIT, qp->rq.head = 1)                                             \
    X(RC, INIT, qp->xp->rspq_head++)                                         \
    X(RC, INIT, qp->xp->naked = true)                                         \
    X(RC, RESET, qp->xp->exp_psn = 1)                                         \
    X(RC, RTS, qp->flags |= QHCA_QP_F_STRIP_VLAN)                            \
    X(RC, RTS, qp->flags |= QHCA_QP_F_BLOCK_MC_LOOP)                         \
    X(RC, RTS, qp->access = 1U << 31)                                        \
    X(RC, RTS, qp->pkey_index = 1)                                           \
    X(RC, RTS, qp->en_sqd_event = 2)                                         \
    X(RC, RTS, qp->av.sl = 8)                                                \
    X(RC, RTS, qp->av.flags = 1)                                             \
    X(RC, RTS, qp->av.dgid[0] = 0xff)                                        \
    X(RC, RTS, qp->av.sgid_index = qhca_le16(60000))                         \
    X(UD, RTS, qp->rq.stride = 4)                                            \
    X(UD, RTS, qp->xp->rspq_head++)                                          \
    X(UC, RTS, qp->xp->rspq_head++)                                          \
    X(RC, RTR, qp->xp->recv.held = true; qp->path_mtu = 0)                   \
    X(RC, RTR, qp->xp->recv.held = true; qp->rcq = NULL)                     \
    X(UC, RTS, qp->xp->sq_flush = true; qp->xp->flush_end = qp->sq_tail + 1) \
    X(XRC, RTS, qp->xp->recv.held = true)                                    \
    X(UD, RTS, qp->xp->sq_flush = true; qp->xp->flush_end = qp->sq_head + 1)

static void impossible(void **state)
{
    unsigned bad = 0;

    (void)state;
#define ONE(type, st, ...) do {                                             \
        struct peer *p = peer_in(type, QHCA_QPS_ ## st);                    \
        struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn), keep = *qp;      \
                                                                            \
        if (!loads(p)) {                                                    \
            print_error("a good QP in %s does not load\n", #st);            \
            bad++;                                                          \
        }                                                                   \
        __VA_ARGS__;                                                        \
        if (loads(p)) {                                                     \
            print_error("in %s this loads: %s\n", #st, #__VA_ARGS__);       \
            bad++;                                                          \
        }                                                                   \
        *qp = keep;                                                         \
        peer_free(p);                                                       \
    } while (0);
    SPOILT(ONE)
    assert_int_equal(bad, 0);
}

/*
 * In turn: what is corrupted in an XRC target, which has a domain and borrows
 * everything else, or in @qp, which has no domain.
 */
#define SPOILT_TARGETS(X)                                                    \
    X(tgt->rcq = qp->rcq)                                                    \
    X(tgt->scq = qp->rcq)                                                    \
    X(tgt->rcq = qp->rcq; tgt->xp->recv.held = true; tgt->path_mtu = 1)      \
    X(tgt->xp->recv.held = true; tgt->path_mtu = 1)                          \
    X(tgt->xrcd = NULL)                                                      \
    X(qp->rcq = NULL)                                                        \
    X(qp->scq = NULL)                                                        \
    X(qp->xrcd = tgt->xrcd)

static void impossible_targets(void **state)
{
    struct peer *p = peer_new(UD, NULL);
    uint32_t xrcd = guest_create(&p->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    struct gqp_init in = { .type = QHCA_QPT_XRC_TGT, .xrcd = xrcd };
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn), *tgt;
    struct gqp made;
    unsigned bad = 0;

    (void)state;
    gqp_create(&made, &p->g, &in);
    gqp_to_init(&made, &p->a);
    gqp_to_rtr(&made, &p->w.node[1], &p->a);
    tgt = qhca_qp_get(p->e, made.qpn);
    assert_true(loads(p));
#define ONE_TARGET(...) do {                                                \
        struct qhca_qp was[2] = { *tgt, *qp };                              \
                                                                            \
        __VA_ARGS__;                                                        \
        if (loads(p)) {                                                     \
            print_error("this loads: %s\n", #__VA_ARGS__);                  \
            bad++;                                                          \
        }                                                                   \
        *tgt = was[0];                                                      \
        *qp = was[1];                                                       \
        tgt->xp->recv.held = false;                                         \
    } while (0);
    SPOILT_TARGETS(ONE_TARGET)
    assert_int_equal(bad, 0);
    assert_true(loads(p));
    assert_int_equal(gqp_destroy(&made), QHCA_ST_OK);
    assert_int_equal(guest_simple(&p->g, QHCA_CMD_FREE_XRCD, xrcd),
                     QHCA_ST_OK);
    peer_free(p);
}

enum { A_SEND, AN_INLINE, A_SWAP, A_FLUSH, A_LOCAL };

/*
 * In turn: a WQE in flight, a field of it, and a value that cannot be posted.
 */
#define SPOILT_WQES(X)                                                       \
    X(A_SEND, flags, 0x10)                                                   \
    X(A_SEND, flags, 0x80 | QHCA_WQE_F_SIGNALED)                             \
    X(A_SEND, flags, QHCA_WQE_F_INLINE)                                      \
    X(A_SEND, opcode, QHCA_WQE_RAW_SEND)                                     \
    X(A_SEND, opcode, 0xff)                                                  \
    X(A_SEND, num, QHCA_MAX_SGE + 1)                                         \
    X(A_SEND, len, 0x80000001)                                               \
    X(AN_INLINE, num, 9)                                                     \
    X(AN_INLINE, flags, 0x20 | QHCA_WQE_F_INLINE)                            \
    X(AN_INLINE, opcode, QHCA_WQE_RDMA_READ)                                 \
    X(A_SWAP, flags, QHCA_WQE_F_INLINE)                                      \
    X(A_SWAP, flags, 0x40)                                                   \
    X(A_SWAP, len, 7)                                                        \
    X(A_SWAP, len, 16)                                                       \
    X(A_FLUSH, num, 1)                                                       \
    X(A_FLUSH, flags, 0x80)                                                  \
    X(A_FLUSH, arg0, 1ull << 32)                                             \
    X(A_FLUSH, arg1, 0)                                                      \
    X(A_FLUSH, arg1, QHCA_FLUSH_T_GLOBAL | 2ull << QHCA_FLUSH_L_SHIFT)       \
    X(A_LOCAL, flags, QHCA_WQE_F_INLINE)                                     \
    X(A_LOCAL, opcode, QHCA_WQE_REG_MR)                                      \
    X(A_LOCAL, num, 1)

/* One WQE of each kind that is checked in its own way, all in flight. */
static void fill_window(struct peer *p, uint32_t key)
{
    struct gwr send = { .opcode = QHCA_WQE_SEND };
    struct gwr is_inline = { .opcode = QHCA_WQE_SEND, .inl = "12345678",
                             .inl_len = 8, .flags = QHCA_WQE_F_INLINE };
    struct gwr swap = { .opcode = QHCA_WQE_COMP_SWAP, .rkey = 1 };
    struct gwr flush = { .opcode = QHCA_WQE_FLUSH, .rkey = 1, .arg0 = 64,
                         .arg1 = QHCA_FLUSH_T_GLOBAL };
    /* flags that a local operation does not know are ignored */
    struct gwr local = { .opcode = QHCA_WQE_LOCAL_INV, .rkey = key,
                         .flags = 0x80 };

    peer_post(p, send, 0, 64);
    peer_post(p, is_inline, 0, 0);
    peer_post(p, swap, 64, 8);
    peer_post(p, flush, 0, 0);
    peer_post(p, local, 0, 0);
    peer_run(p);
}

static void impossible_wqes(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    struct qhca_mpt fast = { .flags = QHCA_MR_F_FAST_REG, .pd = p->g.pd,
                             .max_entries = qhca_le32(1) };
    uint32_t key = guest_create(&p->g, QHCA_CMD_CREATE_MR, &fast,
                                sizeof(fast));
    unsigned bad = 0, i;

    (void)state;
    fill_window(p, key);
    assert_int_equal(qp->sq_tail, 0);
    assert_int_equal(qp->sq_next, A_LOCAL + 1);
    for (i = A_SEND; i <= A_LOCAL; i++) {
        assert_int_equal(qhca_swqe(qp, i)->status, QHCA_WC_SUCCESS);
    }
    assert_true(loads(p));
#define ONE_WQE(which, field, val) do {                                     \
        struct qhca_swqe *w = qhca_swqe(qp, which), keep = *w;              \
                                                                            \
        w->field = (__typeof__(w->field))(val);                             \
        if (loads(p)) {                                                     \
            print_error("%s with %s = %s loads\n", #which, #field, #val);   \
            bad++;                                                          \
        }                                                                   \
        *w = keep;                                                          \
    } while (0);
    SPOILT_WQES(ONE_WQE)
    assert_int_equal(bad, 0);
    assert_true(loads(p));
    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    p->qp.qpn = 0;
    assert_int_equal(guest_simple(&p->g, QHCA_CMD_DESTROY_MR, key),
                     QHCA_ST_OK);
    peer_free(p);
}

/* Only a local operation is complete before its packets are acknowledged. */
static void done_too_early(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    struct gwr send = { .opcode = QHCA_WQE_SEND };

    (void)state;
    peer_post(p, send, 0, 64);
    peer_post(p, send, 0, 64);
    peer_run(p);
    assert_true(loads(p));
    qhca_swqe(qp, 1)->marks |= QHCA_SW_DONE;
    assert_false(loads(p));
    qhca_swqe(qp, 1)->marks &= ~QHCA_SW_DONE;
    peer_free(p);
}

/* A WQE whose packets are all acknowledged is complete, not the oldest. */
static void oldest_is_acknowledged(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    struct gwr is_inline = { .opcode = QHCA_WQE_SEND, .inl = "12345678",
                             .inl_len = 8, .flags = QHCA_WQE_F_INLINE };

    (void)state;
    peer_post(p, is_inline, 0, 0);
    peer_run(p);
    assert_true(loads(p));
    qp->xp->una_psn = qp->xp->max_psn;
    assert_false(loads(p));
    peer_free(p);
}

/*
 * Three of the longest messages with the smallest MTU have half of the PSNs
 * each.  The second has begun, the last packet of the first is not acknowledged
 * yet; those before it do not count any more.
 */
static void long_messages(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    struct gwr send = { .opcode = QHCA_WQE_SEND };
    struct qhca_xport keep;
    uint32_t half = 1u << 23, first;
    struct qhca_swqe *w;
    unsigned i;

    (void)state;
    assert_int_equal(qhca_mtu_bytes(qp->path_mtu), 256);
    for (i = 0; i < 3; i++) {
        peer_post(p, send, 0, 64);
    }
    peer_run(p);
    assert_true(loads(p));
    keep = *qp->xp;
    first = qhca_swqe(qp, 0)->first_psn;
    for (i = 0; i < 3; i++) {
        w = qhca_swqe(qp, i);
        w->len = QHCA_MAX_MSG_SIZE;
        w->npkts = half;
        w->first_psn = qhca_psn_add(first, i * half);
    }
    qp->xp->una_psn = qhca_psn_add(first, half - 1);
    qp->xp->cur = 1;
    qp->xp->cur_pkt = 1;
    qp->xp->snd_psn = qp->xp->max_psn = qhca_psn_add(first, half + 1);
    assert_false(loads(p));
    qp->sq_next = 2;
    assert_true(loads(p));
    qp->xp->una_psn = first;
    assert_false(loads(p));
    qp->sq_next = 3;
    for (i = 0; i < 3; i++) {
        w = qhca_swqe(qp, i);
        w->len = 64;
        w->npkts = 1;
        w->first_psn = qhca_psn_add(first, i);
    }
    *qp->xp = keep;
    assert_true(loads(p));
    peer_free(p);
}

/*
 * A QP that has left SQE flushes what was posted before, which includes all
 * that was in flight.
 */
static void flushes_after_sqe(void **state)
{
    struct peer *p = peer_new(UC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    unsigned i;

    (void)state;
    assert_true(qhca_send_window_get(p->e, qp));
    for (i = 0; i < 5; i++) {
        memset(qhca_swqe(qp, i), 0, sizeof(struct qhca_swqe));
        qhca_swqe(qp, i)->status = QHCA_WC_LOC_QP_OP_ERR;
    }
    qp->sq_head = 10;
    qp->sq_next = 5;
    qp->xp->sq_flush = true;
    for (i = 0; i < 12; i++) {
        qp->xp->flush_end = i;
        assert_int_equal(loads(p), i >= qp->sq_next && i <= qp->sq_head);
    }
    qp->sq_head = qp->sq_next = 0;
    qp->xp->sq_flush = false;
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible),
        cmocka_unit_test(impossible_targets),
        cmocka_unit_test(impossible_wqes),
        cmocka_unit_test(done_too_early),
        cmocka_unit_test(oldest_is_acknowledged),
        cmocka_unit_test(long_messages),
        cmocka_unit_test(flushes_after_sqe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
