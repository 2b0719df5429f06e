/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The end of all objects of a loaded state. */
#ifndef QHCA_TEST_FUZZ_SAVE_END_H
#define QHCA_TEST_FUZZ_SAVE_END_H

#include "fuzz_arena.h"

static bool end_wq(const void *obj)
{
    return ((const struct qhca_qpn_owner *)obj)->is_wq;
}

static bool end_qp(const void *obj)
{
    return !end_wq(obj);
}

static bool end_rss(const void *obj)
{
    return end_qp(obj) &&
           ((const struct qhca_qp *)obj)->type == QHCA_QPT_RSS;
}

static bool end_window(const void *obj)
{
    return ((const struct qhca_mr *)obj)->flags & QHCA_MR_F_MW;
}

/*
 * Destroy all objects of @t, or those that are @is; nothing refers to them any
 * more but, in the case of shapers, one to another.  UAR 0 cannot be freed.
 */
static void end_kind(struct qhca *e, struct arena *a, struct qhca_idr *t,
                     uint8_t op, bool (*is)(const void *obj))
{
    bool keys = op == QHCA_CMD_DESTROY_MR;
    uint32_t n, left, turns;

    for (turns = 0; turns < 3; turns++) {
        left = 0;
        for (n = qhca_idr_end(t); n-- > (op == QHCA_CMD_FREE_UAR); ) {
            const void *obj = qhca_active(e) ? qhca_idr_get(t, n) : NULL;

            if (obj && (!is || is(obj))) {
                command(e, a, op, keys ? ((const struct qhca_mr *)obj)->key :
                                         n, 0, NULL, 0);
                left += qhca_idr_get(t, n) != NULL;
            }
        }
        if (!left || !qhca_active(e)) {
            return;
        }
    }
    CHECK(false, "%u objects are left by command %#x", left, op);
}

static void end_all(struct qhca *e, struct arena *a)
{
    struct qhca_port port = { .eth_rqn = QHCA_ETH_RQ_NONE,
                              .eth_qpn = QHCA_ETH_QP_NONE };
    struct qhca_queues *q = e->q;

    command(e, a, QHCA_CMD_MODIFY_PORT, 0,
            QHCA_PORT_M_ETH_RQN | QHCA_PORT_M_ETH_QPN, &port, sizeof(port));
    end_kind(e, a, &e->eth->flow_idr, QHCA_CMD_DESTROY_FLOW, NULL);
    end_kind(e, a, &q->qps, QHCA_CMD_DESTROY_QP, end_rss);
    end_kind(e, a, &e->eth->rqts, QHCA_CMD_DESTROY_RQT, NULL);
    end_kind(e, a, &q->qps, QHCA_CMD_DESTROY_WQ, end_wq);
    end_kind(e, a, &q->qps, QHCA_CMD_DESTROY_QP, end_qp);
    end_kind(e, a, &e->mem->mrs, QHCA_CMD_DESTROY_MR, end_window);
    end_kind(e, a, &e->mem->mrs, QHCA_CMD_DESTROY_MR, NULL);
    end_kind(e, a, &q->srqs, QHCA_CMD_DESTROY_SRQ, NULL);
    end_kind(e, a, &q->xrcds, QHCA_CMD_FREE_XRCD, NULL);
    end_kind(e, a, &e->eth->eth_sqs, QHCA_CMD_DESTROY_ETH_SQ, NULL);
    end_kind(e, a, &e->eth->eth_rqs, QHCA_CMD_DESTROY_ETH_RQ, NULL);
    end_kind(e, a, &e->eth->shapers, QHCA_CMD_DESTROY_SHAPER, NULL);
    end_kind(e, a, &q->cqs, QHCA_CMD_DESTROY_CQ, NULL);
    end_kind(e, a, &q->eqs, QHCA_CMD_DESTROY_EQ, NULL);
    end_kind(e, a, &e->mem->pds, QHCA_CMD_FREE_PD, NULL);
    end_kind(e, a, &e->mem->uars, QHCA_CMD_FREE_UAR, NULL);
}

#endif
