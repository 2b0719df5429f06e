/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared receive queues (IBA 10.2.9). */
#include <stdlib.h>

#include "queues/queues.h"

/* ---- taking receive WQEs ---- */

uint8_t qhca_srq_fail(struct qhca *e, struct qhca_srq *srq, uint8_t syn)
{
    srq->state = QHCA_SRQ_ERR;
    qhca_async_event(e, &srq->ev, QHCA_EV_SRQ_ERR, syn);
    return syn;
}

static uint8_t srq_read_head(struct qhca *e, struct qhca_srq *srq)
{
    return qhca_ring_head(e, srq->dbrec, 1u << srq->shift, srq->tail,
                          srq->srqn, &srq->head);
}

void qhca_srq_check_limit(struct qhca *e, struct qhca_srq *srq)
{
    uint8_t syn;

    if (!srq->limit || srq->head - srq->tail >= srq->limit) {
        return;
    }
    /* Software may have posted more since. */
    syn = srq_read_head(e, srq);
    if (syn) {
        qhca_srq_fail(e, srq, syn);
    } else if (srq->head - srq->tail < srq->limit) {
        srq->limit = 0;
        qhca_async_event(e, &srq->ev, QHCA_EV_SRQ_LIMIT, 0);
    }
}

uint8_t qhca_srq_take(struct qhca *e, struct qhca_qp *qp, void *wqe,
                      uint32_t *len, uint32_t *index)
{
    struct qhca_srq *srq = qp->srq;
    uint32_t depth = 1u << srq->shift, number;
    uint64_t off, addr;
    uint8_t syn;

    if (srq->state != QHCA_SRQ_OK) {
        return QHCA_SYN_WQE_DMA;
    }
    if (srq->head == srq->tail) {
        syn = srq_read_head(e, srq);
        if (syn) {
            return qhca_srq_fail(e, srq, syn);
        }
        if (srq->head == srq->tail) {
            return QHCA_SYN_RNR;
        }
    }
    off = (srq->tail & (depth - 1)) * sizeof(number);
    syn = qhca_wqe_read(e, &srq->idx, off, srq->srqn, &number, sizeof(number),
                        &addr);
    if (syn) {
        return qhca_srq_fail(e, srq, syn);
    }
    number = qhca_le32(number);
    if (number >= depth) {
        qhca_guest_error(e, QHCA_STAT_DB_BAD_INDEX, srq->srqn,
                         "SRQ index ring names no WQE");
        return qhca_srq_fail(e, srq, QHCA_SYN_DB_INDEX);
    }
    *index = number;
    *len = 1u << srq->stride;
    syn = qhca_wqe_read(e, &srq->buf, (uint64_t)number << srq->stride,
                        srq->srqn, wqe, *len, &addr);
    if (syn) {
        return qhca_srq_fail(e, srq, syn);
    }
    srq->tail++;
    qhca_recv_trace(e, qp->qpn, number, addr, wqe);
    qhca_srq_check_limit(e, srq);
    return QHCA_SYN_NONE;
}

/* ---- contexts and commands ---- */

/* Does the SRQ have its own CQ? */
static bool srq_has_cq(uint8_t flags)
{
    return flags & (QHCA_SRQ_F_TM | QHCA_SRQ_F_XRC);
}

static uint8_t srq_check_create(struct qhca *e, struct qhca_cmd *c,
                                const struct qhca_srqc *in)
{
    if (in->shift > QHCA_MAX_WQ_SHIFT) {
        return qhca_bad(c, offsetof(struct qhca_srqc, shift));
    }
    if (in->stride < 5 || in->stride > 9) {
        return qhca_bad(c, offsetof(struct qhca_srqc, stride));
    }
    if (in->flags & ~(QHCA_SRQ_F_TM | QHCA_SRQ_F_XRC) ||
        in->flags == (QHCA_SRQ_F_TM | QHCA_SRQ_F_XRC)) {
        return qhca_bad(c, offsetof(struct qhca_srqc, flags));
    }
    if ((in->flags & QHCA_SRQ_F_TM) &&
        !(qhca_features(e) & QHCA_FEAT_TAG_MATCHING)) {
        return QHCA_ST_UNSUPPORTED; /* GCOVR_EXCL_LINE: not optional yet */
    }
    if (qhca_le64(in->dbrec) & 7) {
        return qhca_bad(c, offsetof(struct qhca_srqc, dbrec));
    }
    if (qhca_le32(in->limit) > 1u << in->shift) {
        return qhca_bad(c, offsetof(struct qhca_srqc, limit));
    }
    if (!qhca_idr_get(&e->mem->pds, qhca_le32(in->pd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_srqc, pd));
    }
    if (!qhca_idr_get(&e->mem->uars, qhca_le32(in->uar))) {
        return qhca_bad_obj(c, offsetof(struct qhca_srqc, uar));
    }
    if (!(in->flags & QHCA_SRQ_F_XRC) && in->xrcd) {
        return qhca_bad(c, offsetof(struct qhca_srqc, xrcd));
    }
    if ((in->flags & QHCA_SRQ_F_XRC) &&
        !qhca_idr_get(&e->q->xrcds, qhca_le32(in->xrcd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_srqc, xrcd));
    }
    if (!srq_has_cq(in->flags) && in->cqn) {
        return qhca_bad(c, offsetof(struct qhca_srqc, cqn));
    }
    if (srq_has_cq(in->flags) &&
        !qhca_idr_get(&e->q->cqs, qhca_le32(in->cqn))) {
        return qhca_bad_obj(c, offsetof(struct qhca_srqc, cqn));
    }
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_create_srq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_srqc *in = c->in;
    uint8_t st = srq_check_create(e, c, in);
    struct qhca_srq *srq;

    if (st) {
        return st;
    }
    srq = calloc(1, sizeof(*srq));
    if (!srq) {
        return QHCA_ST_NO_RESOURCES;
    }
    st = qhca_buf_table_init(&srq->buf, &in->buf,
                             1ULL << (in->shift + in->stride), true);
    if (!st) {
        st = qhca_buf_table_init(&srq->idx, &in->idx, 4ULL << in->shift, true);
    }
    if (!st && (in->flags & QHCA_SRQ_F_TM)) {
        size_t bad = 0;

        st = qhca_tm_create(e, srq, in, &bad);
        c->result = bad;
    }
    if (!st && !qhca_idr_add(&e->q->srqs, srq, &srq->srqn)) {
        st = QHCA_ST_NO_RESOURCES;
    }
    if (st) {
        qhca_tm_free(e, srq);
        free(srq);
        return st;
    }
    srq->pd = qhca_le32(in->pd);
    e->mem->pd_refs[srq->pd]++;
    srq->uar = qhca_le32(in->uar);
    e->mem->uar_refs[srq->uar]++;
    srq->dbrec = qhca_le64(in->dbrec);
    srq->shift = in->shift;
    srq->stride = in->stride;
    srq->flags = in->flags;
    if (srq_has_cq(srq->flags)) {
        srq->cq = qhca_idr_get(&e->q->cqs, qhca_le32(in->cqn));
        srq->cq->refs++;
    }
    srq->limit = qhca_le32(in->limit);
    if (in->flags & QHCA_SRQ_F_XRC) {
        srq->xrcd = qhca_idr_get(&e->q->xrcds, qhca_le32(in->xrcd));
        srq->xrcd->refs++;
    }
    qhca_event_init(&srq->ev, srq->srqn);
    c->obj = srq->srqn;
    return QHCA_ST_OK;
}

/*
 * Nothing is copied: WQEs keep their numbers and counters their values.
 * Shrinking is impossible, since any WQE may be posted.
 */
static uint8_t srq_check_resize(struct qhca_cmd *c, const struct qhca_srq *srq,
                                struct qhca_buf_table *buf,
                                struct qhca_buf_table *idx)
{
    const struct qhca_srqc *in = c->in;
    uint8_t st;

    if (in->shift > QHCA_MAX_WQ_SHIFT || in->shift < srq->shift) {
        return qhca_bad(c, offsetof(struct qhca_srqc, shift));
    }
    st = qhca_buf_table_init(buf, &in->buf, 1ULL << (in->shift + srq->stride),
                             true);
    return st ? st :
           qhca_buf_table_init(idx, &in->idx, 4ULL << in->shift, true);
}

uint8_t qhca_cmd_modify_srq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_srq *srq = qhca_idr_get(&e->q->srqs, c->obj);
    const struct qhca_srqc *in = c->in;
    uint32_t limit = qhca_le32(in->limit);
    struct qhca_buf_table buf, idx;
    uint8_t shift, st;

    if (!srq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (c->mask & ~(QHCA_SRQ_M_LIMIT | QHCA_SRQ_M_RESIZE)) {
        return QHCA_ST_BAD_PARAM;
    }
    if (srq->state != QHCA_SRQ_OK) {
        return QHCA_ST_BAD_STATE;
    }
    shift = srq->shift;
    if (c->mask & QHCA_SRQ_M_RESIZE) {
        st = srq_check_resize(c, srq, &buf, &idx);
        if (st) {
            return st;
        }
        shift = in->shift;
    }
    if ((c->mask & QHCA_SRQ_M_LIMIT) && limit > 1u << shift) {
        return qhca_bad(c, offsetof(struct qhca_srqc, limit));
    }
    if (c->mask & QHCA_SRQ_M_RESIZE) {
        srq->buf = buf;
        srq->idx = idx;
        srq->shift = shift;
    }
    if (c->mask & QHCA_SRQ_M_LIMIT) {
        srq->limit = limit;
        qhca_srq_check_limit(e, srq);
    }
    return QHCA_ST_OK;
}

static void srq_free(struct qhca *e, struct qhca_srq *srq)
{
    if (srq->xrcd) {
        srq->xrcd->refs--;
    }
    qhca_event_forget(&srq->ev);
    qhca_tm_free(e, srq);
    e->mem->pd_refs[srq->pd]--;
    e->mem->uar_refs[srq->uar]--;
    if (srq->cq) {
        srq->cq->refs--;
    }
    qhca_idr_del(&e->q->srqs, srq->srqn);
    free(srq);
}

uint8_t qhca_cmd_destroy_srq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_srq *srq = qhca_idr_get(&e->q->srqs, c->obj);

    if (!srq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (srq->refs) {
        return QHCA_ST_BUSY;
    }
    if (srq->xrcd && !qhca_xrc_srq_going(e, srq)) {
        return QHCA_ST_AGAIN;
    }
    srq_free(e, srq);
    return QHCA_ST_OK;
}

/* Fill in what CREATE_SRQ and MODIFY_SRQ set, except tag matching. */
static void srq_describe(const struct qhca_srq *srq, struct qhca_srqc *out)
{
    memset(out, 0, sizeof(*out));
    qhca_buf_table_describe(&srq->buf, &out->buf);
    qhca_buf_table_describe(&srq->idx, &out->idx);
    out->dbrec = qhca_le64(srq->dbrec);
    out->srqn = qhca_le32(srq->srqn);
    out->pd = qhca_le32(srq->pd);
    out->uar = qhca_le32(srq->uar);
    out->shift = srq->shift;
    out->stride = srq->stride;
    out->flags = srq->flags;
    out->xrcd = srq->xrcd ? qhca_le32(srq->xrcd->xrcd) : 0;
    out->cqn = srq->cq ? qhca_le32(srq->cq->cqn) : 0;
    out->limit = qhca_le32(srq->limit);
}

bool qhca_srq_valid(struct qhca *e, const struct qhca_srq *srq)
{
    struct qhca_cmd c = { 0 };
    struct qhca_srqc in;

    srq_describe(srq, &in);
    return !srq->cq == !srq_has_cq(srq->flags) &&
           !srq->xrcd == !(srq->flags & QHCA_SRQ_F_XRC) &&
           srq_check_create(e, &c, &in) == QHCA_ST_OK;
}

uint8_t qhca_cmd_query_srq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_srq *srq = qhca_idr_get(&e->q->srqs, c->obj);
    struct qhca_srqc *out = c->out;

    if (!srq) {
        return QHCA_ST_BAD_OBJ;
    }
    srq_describe(srq, out);
    out->state = srq->state;
    out->head = qhca_le32(srq->head);
    out->tail = qhca_le32(srq->tail);
    if (srq->tm) {
        qhca_tm_query(srq, out);
    }
    return QHCA_ST_OK;
}

bool qhca_srq_discard(struct qhca *e, uint32_t num)
{
    struct qhca_srq *srq = qhca_idr_get(&e->q->srqs, num);

    if (srq) {
        srq_free(e, srq);
    }
    return srq;
}
