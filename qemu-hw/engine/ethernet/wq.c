/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WQs: receive queues that belong to no QP. */
#include <stdlib.h>

#include "ethernet/flow.h"

/* ---- states ---- */

/* Traces and breakpoints use QP states: a WQ that receives is in RTR. */
static void wq_trace_state(struct qhca *e, const struct qhca_wq *wq,
                           uint8_t old)
{
    static const uint8_t qp_state[] = {
        [QHCA_WQS_RESET] = QHCA_QPS_RESET, [QHCA_WQS_RDY] = QHCA_QPS_RTR,
        [QHCA_WQS_ERR] = QHCA_QPS_ERR,
    };
    struct qhca_trace t = {
        .kind = QHCA_TR_QP_STATE, .num = wq->wqn, .a = qp_state[old],
        .b = qp_state[wq->state], .syndrome = wq->syndrome,
    };

    if (qhca_tracing(e)) {
        qhca_trace_emit(e, &t);
    }
}

static void wq_flush_later(struct qhca *e, struct qhca_wq *wq)
{
    if (qhca_list_empty(&wq->flush)) {
        qhca_list_add_tail(&e->eth->wq_flush, &wq->flush);
    }
}

/* Like a QP in ERR: from now on software rings for each receive it posts. */
static void wq_begin_flush(struct qhca *e, struct qhca_wq *wq)
{
    qhca_dbrec_notify(e, QHCA_DMA_RECORD, wq->wqn, wq->ring.dbrec, true);
    e->ops.dma_fence(e->opaque);
    wq_flush_later(e, wq);
}

static void wq_fail(struct qhca *e, struct qhca_wq *wq, uint8_t syndrome,
                    uint8_t event)
{
    if (wq->state != QHCA_WQS_RDY) {
        return;
    }
    wq->state = QHCA_WQS_ERR;
    wq->syndrome = syndrome;
    wq_trace_state(e, wq, QHCA_WQS_RDY);
    if (event) {
        qhca_async_event(e, &wq->ev, event, syndrome);
    }
    wq_begin_flush(e, wq);
}

/* Reset the WQ to what CREATE_WQ set. */
static void wq_reset(struct qhca_wq *wq)
{
    qhca_list_del(&wq->flush);
    qhca_event_forget(&wq->ev);
    qhca_ring_clear(&wq->ring);
    memset(&wq->recv, 0, sizeof(wq->recv));
    wq->syndrome = QHCA_SYN_NONE;
    wq->rx_packets = 0;
}

static void wq_set_state(struct qhca *e, struct qhca_wq *wq, uint8_t state)
{
    uint8_t old = wq->state;

    if (state == QHCA_WQS_RESET) {
        wq_reset(wq);
    }
    wq->state = state;
    wq_trace_state(e, wq, old);
    if (state == QHCA_WQS_ERR && old != state) {
        wq_begin_flush(e, wq);
    }
}

/* ---- receiving ---- */

/* Ensure that a receive WQE is held; returns what is wrong. */
static uint8_t wq_take(struct qhca *e, struct qhca_wq *wq)
{
    struct qhca_recv *r = &wq->recv;
    uint32_t len = 0;
    uint8_t syn;

    qhca_recv_begin(r);
    if (r->held) {
        return QHCA_SYN_NONE;
    }
    if (qhca_faulty(e, QHCA_FLT_AT_RECV) && e->hooks->recv_fails(e, wq->wqn)) {
        return QHCA_SYN_RNR;
    }
    syn = qhca_ring_take(e, &wq->ring, wq->wqn, r->wqe, &len, &r->index);
    return syn ? syn : qhca_recv_hold(r, len);
}

/* Complete the receive WQE held. */
static void wq_complete(struct qhca *e, struct qhca_wq *wq,
                        struct qhca_cqe *cqe, uint8_t opcode, uint8_t status,
                        uint8_t syndrome)
{
    qhca_recv_cqe(&wq->recv, wq->wqn, cqe, opcode, status, syndrome);
    wq->recv.held = false;
    if (!qhca_cq_push(e, wq->cq, cqe, false)) {
        wq_fail(e, wq, QHCA_SYN_CQ_OVERFLOW, QHCA_EV_QP_FATAL);
    }
}

static void wq_receive_failed(struct qhca *e, struct qhca_wq *wq, uint8_t syn)
{
    struct qhca_cqe cqe = { 0 };
    bool held = wq->recv.held;

    if (held) {
        wq_complete(e, wq, &cqe, QHCA_CQE_OP_RECV,
                    syn == QHCA_SYN_WQE_SGE ? QHCA_WC_LOC_QP_OP_ERR :
                                              QHCA_WC_LOC_PROT_ERR, syn);
    }
    wq_fail(e, wq, syn, held ? 0 : QHCA_EV_QP_FATAL);
}

void qhca_wq_rx(struct qhca *e, void *to, const struct qhca_eth_frame *f,
                const struct qhca_steer *s)
{
    struct qhca_wq *wq = to;
    struct qhca_raw_recv r = {
        .f = f, .recv = &wq->recv,
        .user = { .num = wq->wqn, .pd = wq->pd },
        .strip = wq->flags & QHCA_WQ_F_STRIP_VLAN,
    };
    struct qhca_cqe cqe = { 0 };
    uint8_t syn = QHCA_SYN_RNR;

    if (wq->state == QHCA_WQS_RDY) {
        syn = wq_take(e, wq);
    }
    if (syn == QHCA_SYN_RNR || (!syn && qhca_raw_too_long(&r))) {
        qhca_count(e, QHCA_STAT_RAW_RX_DROPPED);
        return;
    }
    if (!syn) {
        syn = qhca_raw_store(e, &r);
    }
    /* Page faults are reported by QPN only, and a WQ has none: an error. */
    if (syn) {
        wq_receive_failed(e, wq, syn);
        return;
    }
    wq->rx_packets++;
    qhca_raw_stored(e, &r, s->tag, &cqe);
    wq_complete(e, wq, &cqe, QHCA_CQE_OP_RAW_RECV, QHCA_WC_SUCCESS,
                QHCA_SYN_NONE);
}

/* ---- flushing: see transport/flush.c ---- */

/* Flush one receive; false: none left for now. */
static bool wq_flush_one(struct qhca *e, struct qhca_wq *wq)
{
    struct qhca_recv *r = &wq->recv;
    struct qhca_cqe cqe = { 0 };
    uint32_t len;

    if (!r->held &&
        qhca_ring_take(e, &wq->ring, wq->wqn, r->wqe, &len, &r->index)) {
        return false;
    }
    wq_complete(e, wq, &cqe, QHCA_CQE_OP_RECV, QHCA_WC_WR_FLUSH_ERR,
                QHCA_SYN_FLUSH);
    return true;
}

unsigned qhca_wqs_flush(struct qhca *e, unsigned budget)
{
    struct qhca_wq *wq;
    unsigned used;

    for (used = 0; used < budget && qhca_wqs_pending(e) && qhca_active(e);
         used++) {
        wq = qhca_container(e->eth->wq_flush.next, struct qhca_wq, flush);
        qhca_list_del(&wq->flush);
        if (wq_flush_one(e, wq)) {
            qhca_list_add_tail(&e->eth->wq_flush, &wq->flush);
        }
    }
    return used;
}

void qhca_wq_doorbell(struct qhca *e, struct qhca_wq *wq)
{
    if (wq->state == QHCA_WQS_ERR) {
        wq_flush_later(e, wq);
    }
}

/* ---- commands ---- */

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

void qhca_wq_attach(struct qhca *e, struct qhca_wq *wq)
{
    e->mem->pd_refs[wq->pd]++;
    e->mem->uar_refs[wq->uar]++;
    wq->cq->refs++;
    qhca_event_init(&wq->ev, wq->wqn);
    qhca_list_init(&wq->flush);
}

uint8_t qhca_cmd_create_wq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_wqc *in = c->in;
    uint8_t st = wq_check_create(e, c, in);
    struct qhca_wq *wq;

    if (st) {
        return st;
    }
    wq = calloc(1, sizeof(*wq));
    if (!wq) {
        return QHCA_ST_NO_RESOURCES;
    }
    wq->owner.is_wq = true;
    wq->ring.shift = in->shift;
    wq->ring.stride = in->stride;
    wq->ring.dbrec = qhca_le64(in->dbrec);
    wq->cookie = qhca_le64(in->cookie);
    wq->flags = in->flags;
    wq->pd = qhca_le32(in->pd);
    wq->uar = qhca_le32(in->uar);
    wq->cq = qhca_idr_get(&e->q->cqs, qhca_le32(in->cqn));
    st = qhca_buf_table_init(&wq->ring.buf, &in->buf,
                             1ULL << (in->shift + in->stride), true);
    if (!st && !qhca_idr_add(&e->q->qps, &wq->owner, &wq->wqn)) {
        st = QHCA_ST_NO_RESOURCES;
    }
    if (st) {
        free(wq);
        return st;
    }
    qhca_wq_attach(e, wq);
    c->obj = wq->wqn;
    return QHCA_ST_OK;
}

static bool wq_may_go(uint8_t from, uint8_t to)
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
    struct qhca_wq *wq = qhca_wq_get(e, c->obj);
    const struct qhca_wqc *in = c->in;
    uint8_t to;

    if (!wq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (c->mask & ~(QHCA_WQ_M_STATE | QHCA_WQ_M_FLAGS)) {
        return QHCA_ST_BAD_PARAM;
    }
    if ((c->mask & QHCA_WQ_M_FLAGS) && (in->flags & ~QHCA_WQ_F_STRIP_VLAN)) {
        return qhca_bad(c, offsetof(struct qhca_wqc, flags));
    }
    to = c->mask & QHCA_WQ_M_STATE ? in->state : wq->state;
    if (to > QHCA_WQS_ERR) {
        return qhca_bad(c, offsetof(struct qhca_wqc, state));
    }
    if (!wq_may_go(wq->state, to)) {
        return QHCA_ST_BAD_STATE;
    }
    if (wq->state == QHCA_WQS_RESET && to == QHCA_WQS_RDY &&
        !qhca_dbrec_notify(e, QHCA_DMA_RECORD, wq->wqn, wq->ring.dbrec,
                           false)) {
        return QHCA_ST_DMA_ERROR;
    }
    if (c->mask & QHCA_WQ_M_FLAGS) {
        wq->flags = in->flags;
    }
    if ((c->mask & QHCA_WQ_M_STATE) &&
        (wq->state != to || to == QHCA_WQS_RESET)) {
        wq_set_state(e, wq, to);
    }
    return QHCA_ST_OK;
}

static void wq_free(struct qhca *e, struct qhca_wq *wq)
{
    qhca_list_del(&wq->flush);
    qhca_event_forget(&wq->ev);
    qhca_idr_del(&e->q->qps, wq->wqn);
    e->mem->pd_refs[wq->pd]--;
    e->mem->uar_refs[wq->uar]--;
    wq->cq->refs--;
    free(wq);
}

uint8_t qhca_cmd_destroy_wq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_wq *wq = qhca_wq_get(e, c->obj);

    if (!wq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (wq->users) {
        return QHCA_ST_BUSY;
    }
    wq_free(e, wq);
    return QHCA_ST_OK;
}

bool qhca_wq_discard(struct qhca *e, uint32_t num)
{
    struct qhca_wq *wq = qhca_wq_get(e, num);

    if (wq) {
        wq_free(e, wq);
    }
    return wq;
}

/* Fill in the fields that CREATE_WQ and MODIFY_WQ set. */
static void wq_describe(const struct qhca_wq *wq, struct qhca_wqc *out)
{
    memset(out, 0, sizeof(*out));
    qhca_buf_table_describe(&wq->ring.buf, &out->buf);
    out->dbrec = qhca_le64(wq->ring.dbrec);
    out->cookie = qhca_le64(wq->cookie);
    out->wqn = qhca_le32(wq->wqn);
    out->pd = qhca_le32(wq->pd);
    out->uar = qhca_le32(wq->uar);
    out->cqn = wq->cq ? qhca_le32(wq->cq->cqn) : 0;
    out->shift = wq->ring.shift;
    out->stride = wq->ring.stride;
    out->flags = wq->flags;
}

bool qhca_wq_valid(struct qhca *e, const struct qhca_wq *wq)
{
    struct qhca_cmd c = { 0 };
    struct qhca_wqc in;

    wq_describe(wq, &in);
    return wq_check_create(e, &c, &in) == QHCA_ST_OK &&
           wq->state <= QHCA_WQS_ERR;
}

uint8_t qhca_cmd_query_wq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_wq *wq = qhca_wq_get(e, c->obj);
    struct qhca_wqc *out = c->out;

    if (!wq) {
        return QHCA_ST_BAD_OBJ;
    }
    wq_describe(wq, out);
    out->state = wq->state;
    out->head = qhca_le32(wq->ring.head);
    out->tail = qhca_le32(wq->ring.tail);
    out->syndrome = wq->syndrome;
    return QHCA_ST_OK;
}
