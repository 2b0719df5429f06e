/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ethernet queues: contexts and commands. */
#include <stdlib.h>

#include "ethernet/ethernet.h"

static uint8_t eth_q_create(struct qhca *e, struct qhca_cmd *c, bool is_sq)
{
    const struct qhca_eth_qc *in = c->in;
    uint8_t min = is_sq ? 6 : 4, max = is_sq ? 9 : 4, st;
    struct qhca_cq *cq = qhca_idr_get(&e->q->cqs, qhca_le32(in->cqn));
    struct qhca_eth_q *q;

    if (in->shift > QHCA_MAX_WQ_SHIFT) {
        return qhca_bad(c, offsetof(struct qhca_eth_qc, shift));
    }
    if (in->stride < min || in->stride > max) {
        return qhca_bad(c, offsetof(struct qhca_eth_qc, stride));
    }
    if (!is_sq && (qhca_le64(in->dbrec) & 7)) {
        return qhca_bad(c, offsetof(struct qhca_eth_qc, dbrec));
    }
    if (!cq) {
        return qhca_bad_obj(c, offsetof(struct qhca_eth_qc, cqn));
    }
    q = calloc(1, sizeof(*q));
    if (!q) {
        return QHCA_ST_NO_RESOURCES;
    }
    qhca_list_init(&q->ready);
    q->is_sq = is_sq;
    q->shift = in->shift;
    q->stride = in->stride;
    q->dbrec = qhca_le64(in->dbrec);
    st = qhca_table_init(&q->buf, &in->buf, 1ULL << (q->shift + q->stride),
                         true);
    if (!st && !qhca_idr_add(is_sq ? &e->eth->eth_sqs : &e->eth->eth_rqs, q,
                             &q->num)) {
        st = QHCA_ST_NO_RESOURCES;
    }
    if (st) {
        free(q);
        return st;
    }
    qhca_event_init(&q->ev, q->num);
    q->buf.kind = QHCA_DMA_ETH;
    q->cq = cq;
    cq->refs++;
    c->obj = q->num;
    return QHCA_ST_OK;
}

void qhca_eth_q_free(struct qhca *e, struct qhca_eth_q *q)
{
    if (!q->is_sq && e->eth->eth_rqn == q->num) {
        e->eth->eth_rqn = QHCA_ETH_RQ_NONE;
    }
    qhca_list_del(&q->ready);
    qhca_event_forget(&q->ev);
    q->cq->refs--;
    qhca_idr_del(q->is_sq ? &e->eth->eth_sqs : &e->eth->eth_rqs, q->num);
    free(q);
}

void qhca_eth_q_fail(struct qhca *e, struct qhca_eth_q *q, uint8_t syndrome)
{
    if (q->dead) {
        return;
    }
    q->dead = true;
    qhca_list_del(&q->ready);
    qhca_async_event(e, &q->ev, q->is_sq ? QHCA_EV_ETH_SQ_ERR :
                     QHCA_EV_ETH_RQ_ERR, syndrome);
}

static uint8_t eth_q_destroy(struct qhca *e, struct qhca_cmd *c,
                             struct qhca_idr *t)
{
    struct qhca_eth_q *q = qhca_idr_get(t, c->obj);

    if (!q) {
        return QHCA_ST_BAD_OBJ;
    }
    qhca_eth_q_free(e, q);
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_create_eth_sq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_create(e, c, true);
}

uint8_t qhca_cmd_destroy_eth_sq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_destroy(e, c, &e->eth->eth_sqs);
}

uint8_t qhca_cmd_create_eth_rq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_create(e, c, false);
}

uint8_t qhca_cmd_destroy_eth_rq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_destroy(e, c, &e->eth->eth_rqs);
}

static void free_kind(struct qhca *e, struct qhca_idr *t)
{
    struct qhca_eth_q *q;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(t); n++) {
        q = qhca_idr_get(t, n);
        if (q) {
            qhca_eth_q_free(e, q);
        }
    }
}

void qhca_eth_qs_free(struct qhca *e)
{
    free_kind(e, &e->eth->eth_sqs);
    free_kind(e, &e->eth->eth_rqs);
}
