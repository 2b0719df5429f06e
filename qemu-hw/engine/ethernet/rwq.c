/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * WQs: receive queues that belong to no QP.  Internally a WQ is a QP with only
 * a receive queue, and RDY is RTR, so that fetching WQEs, flushing and
 * doorbells are shared with QPs.
 */
#include <stdlib.h>

#include "ethernet/flow.h"

static struct qhca_qp *wq_get(struct qhca *e, uint32_t num)
{
    struct qhca_qp *wq = qhca_qp_get(e, num);

    return wq && wq->type == QHCA_QPT_WQ ? wq : NULL;
}

static uint8_t wq_check_create(struct qhca *e, struct qhca_cmd *c,
                               const struct qhca_wqc *in)
{
    if (in->shift > QHCA_MAX_WQ_SHIFT) {
        return qhca_bad(c, offsetof(struct qhca_wqc, shift));
    }
    if (in->stride < 5 || in->stride > 9) {
        return qhca_bad(c, offsetof(struct qhca_wqc, stride));
    }
    if (in->flags & ~QHCA_WQ_F_STRIP_VLAN) {
        return qhca_bad(c, offsetof(struct qhca_wqc, flags));
    }
    if (in->state != QHCA_WQS_RESET) {
        return qhca_bad(c, offsetof(struct qhca_wqc, state));
    }
    if (qhca_le64(in->dbrec) & 7) {
        return qhca_bad(c, offsetof(struct qhca_wqc, dbrec));
    }
    if (!qhca_idr_get(&e->mem->pds, qhca_le32(in->pd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_wqc, pd));
    }
    if (!qhca_idr_get(&e->mem->uars, qhca_le32(in->uar))) {
        return qhca_bad_obj(c, offsetof(struct qhca_wqc, uar));
    }
    if (!qhca_idr_get(&e->q->cqs, qhca_le32(in->cqn))) {
        return qhca_bad_obj(c, offsetof(struct qhca_wqc, cqn));
    }
    return QHCA_ST_OK;
}

static void set_flags(struct qhca_qp *wq, uint8_t flags)
{
    wq->flags = flags & QHCA_WQ_F_STRIP_VLAN ? QHCA_QP_F_STRIP_VLAN : 0;
}

uint8_t qhca_cmd_create_wq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_wqc *in = c->in;
    uint8_t st = wq_check_create(e, c, in);
    struct qhca_qp *wq;

    if (st) {
        return st;
    }
    wq = qhca_qp_alloc(e, QHCA_QPT_WQ);
    if (!wq) {
        return QHCA_ST_NO_RESOURCES;
    }
    wq->rq_shift = in->shift;
    wq->rq_stride = in->stride;
    wq->rq_dbrec = qhca_le64(in->dbrec);
    wq->cookie = qhca_le64(in->cookie);
    set_flags(wq, in->flags);
    st = qhca_table_init(&wq->rq, &in->buf,
                         1ULL << (wq->rq_shift + wq->rq_stride), true);
    if (!st && !qhca_idr_add(&e->q->qps, wq, &wq->qpn)) {
        st = QHCA_ST_NO_RESOURCES;
    }
    if (st) {
        free(wq);
        return st;
    }
    wq->pd = qhca_le32(in->pd);
    e->mem->pd_refs[wq->pd]++;
    wq->uar = qhca_le32(in->uar);
    e->mem->uar_refs[wq->uar]++;
    wq->rcq = qhca_idr_get(&e->q->cqs, qhca_le32(in->cqn));
    wq->rcq->refs++;
    qhca_event_init(&wq->ev, wq->qpn);
    wq->ops->init(e, wq, NULL);
    c->obj = wq->qpn;
    return QHCA_ST_OK;
}

/* RESET, RDY and ERR as QP states. */
static const uint8_t qp_state[] = {
    QHCA_QPS_RESET, QHCA_QPS_RTR, QHCA_QPS_ERR
};

static uint8_t wq_state(const struct qhca_qp *wq)
{
    return wq->state == QHCA_QPS_RESET ? QHCA_WQS_RESET :
           wq->state == QHCA_QPS_ERR ? QHCA_WQS_ERR : QHCA_WQS_RDY;
}

static bool may_go(uint8_t from, uint8_t to)
{
    static const bool table[3][3] = {
        [QHCA_WQS_RESET] = { true, true, false },
        [QHCA_WQS_RDY] = { true, true, true },
        [QHCA_WQS_ERR] = { true, false, true },
    };

    return table[from][to];
}

uint8_t qhca_cmd_modify_wq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_qp *wq = wq_get(e, c->obj);
    const struct qhca_wqc *in = c->in;
    uint8_t from, to;

    if (!wq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (c->mask & ~(QHCA_WQ_M_STATE | QHCA_WQ_M_FLAGS)) {
        return QHCA_ST_BAD_PARAM;
    }
    if ((c->mask & QHCA_WQ_M_FLAGS) && (in->flags & ~QHCA_WQ_F_STRIP_VLAN)) {
        return qhca_bad(c, offsetof(struct qhca_wqc, flags));
    }
    from = wq_state(wq);
    to = c->mask & QHCA_WQ_M_STATE ? in->state : from;
    if (to > QHCA_WQS_ERR) {
        return qhca_bad(c, offsetof(struct qhca_wqc, state));
    }
    if (!may_go(from, to)) {
        return QHCA_ST_BAD_STATE;
    }
    if (from == QHCA_WQS_RESET && to == QHCA_WQS_RDY &&
        !qhca_qp_clear_notify(e, wq)) {
        return QHCA_ST_DMA_FAULT;
    }
    if (c->mask & QHCA_WQ_M_FLAGS) {
        set_flags(wq, in->flags);
    }
    if ((c->mask & QHCA_WQ_M_STATE) && (from != to || !to)) {
        uint8_t old = wq->state;

        if (to == QHCA_WQS_RESET) {
            qhca_qp_clear(wq);
        }
        wq->state = qp_state[to];
        qhca_qp_trace_state(e, wq, old);
        qhca_xport_state(e, wq, old);
    }
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_destroy_wq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_qp *wq = wq_get(e, c->obj);

    if (!wq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (wq->users) {
        return QHCA_ST_BUSY;
    }
    qhca_qp_free(e, wq);
    return QHCA_ST_OK;
}

/* What CREATE_WQ and MODIFY_WQ set. */
static void wq_describe(const struct qhca_qp *wq, struct qhca_wqc *out)
{
    memset(out, 0, sizeof(*out));
    qhca_table_describe(&wq->rq, &out->buf);
    out->dbrec = qhca_le64(wq->rq_dbrec);
    out->cookie = qhca_le64(wq->cookie);
    out->wqn = qhca_le32(wq->qpn);
    out->pd = qhca_le32(wq->pd);
    out->uar = qhca_le32(wq->uar);
    out->cqn = wq->rcq ? qhca_le32(wq->rcq->cqn) : 0;
    out->shift = wq->rq_shift;
    out->stride = wq->rq_stride;
    out->flags = wq->flags & QHCA_QP_F_STRIP_VLAN ? QHCA_WQ_F_STRIP_VLAN : 0;
}

static bool wq_valid(struct qhca *e, const struct qhca_qp *wq)
{
    struct qhca_cmd c = { 0 };
    struct qhca_wqc in;

    wq_describe(wq, &in);
    return wq_check_create(e, &c, &in) == QHCA_ST_OK &&
           wq->state == qp_state[wq_state(wq)] &&
           !(wq->flags & ~QHCA_QP_F_STRIP_VLAN) &&
           !wq->sq_stride && !wq->scq && !wq->srq && !wq->xrcd;
}

uint8_t qhca_cmd_query_wq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_qp *wq = wq_get(e, c->obj);
    struct qhca_wqc *out = c->out;

    if (!wq) {
        return QHCA_ST_BAD_OBJ;
    }
    wq_describe(wq, out);
    out->state = wq_state(wq);
    out->head = qhca_le32(wq->rq_head);
    out->tail = qhca_le32(wq->rq_tail);
    out->syndrome = wq->syndrome;
    return QHCA_ST_OK;
}

/* A WQ sends nothing: its only work is flushing. */
static bool wq_send(struct qhca *e, struct qhca_qp *wq, unsigned *budget)
{
    (void)e;
    (void)wq;
    (void)budget;
    return false;
}

static bool wq_run(struct qhca *e, struct qhca_qp *wq, unsigned *budget)
{
    return qhca_xport_run(e, wq, budget, wq_send);
}

const struct qhca_qp_ops qhca_wq_ops = {
    .valid = wq_valid,
    .init = qhca_xport_init,
    .free = qhca_xport_free,
    .error = qhca_xport_error,
    .run = wq_run,
    .query = qhca_xport_query,
    .save = qhca_io_xport,
};
