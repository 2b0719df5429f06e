/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QPs that no command and no packet could have produced are not loaded.  A QP
 * is corrupted in memory, then saved.
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
    X(RC, RTS, qp->state = QHCA_QPS_SQE)                                     \
    X(RC, RTS, qp->xp->sq_flush = true)                                       \
    X(RC, RTS, qp->xp->rq_flush = true)                                       \
    X(RC, RTS, qp->xp->drain = true)                                          \
    X(RC, RTS, qp->xp->req_state = QHCA_REQ_WAIT_RNR)                         \
    X(RC, RTS, qp->xp->rsp_op = QHCA_RSPOP_SEND)                              \
    X(RC, SQD, qp->sq_head = 10; qp->sq_next = 5)                            \
    X(RC, INIT, qp->rq.head = 1)                                             \
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
    X(UD, RTS, qp->rq.stride = 4)

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(impossible),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
