/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared receive queues (IBA 10.2.9): contexts and commands. */
#include <stdlib.h>

#include "internal.h"
#include "admin.h"

static uint8_t check_create(struct qhca *e, struct qhca_cmd *c,
                            const struct qhca_srqc *in)
{
    if (in->shift > QHCA_MAX_WQ_SHIFT) {
        return qhca_bad(c, offsetof(struct qhca_srqc, shift));
    }
    if (in->stride < 5 || in->stride > 9) {
        return qhca_bad(c, offsetof(struct qhca_srqc, stride));
    }
    if (in->flags) {
        return qhca_bad(c, offsetof(struct qhca_srqc, flags));
    }
    if (qhca_le64(in->dbrec) & 7) {
        return qhca_bad(c, offsetof(struct qhca_srqc, dbrec));
    }
    if (qhca_le32(in->limit) > 1u << in->shift) {
        return qhca_bad(c, offsetof(struct qhca_srqc, limit));
    }
    if (!qhca_table_get(&e->pds, qhca_le32(in->pd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_srqc, pd));
    }
    if (!qhca_table_get(&e->uars, qhca_le32(in->uar))) {
        return qhca_bad_obj(c, offsetof(struct qhca_srqc, uar));
    }
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_create_srq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_srqc *in = c->in;
    uint8_t st = check_create(e, c, in);
    struct qhca_srq *srq;

    if (st) {
        return st;
    }
    srq = calloc(1, sizeof(*srq));
    if (!srq) {
        return QHCA_ST_NO_RESOURCES;
    }
    st = qhca_buf_init(&srq->buf, &in->buf,
                       1ULL << (in->shift + in->stride), true);
    if (!st) {
        st = qhca_buf_init(&srq->idx, &in->idx, 4ULL << in->shift, true);
    }
    if (!st && !qhca_table_add(&e->srqs, srq, &srq->srqn)) {
        st = QHCA_ST_NO_RESOURCES;
    }
    if (st) {
        free(srq);
        return st;
    }
    srq->pd = qhca_le32(in->pd);
    e->pd_refs[srq->pd]++;
    srq->uar = qhca_le32(in->uar);
    e->uar_refs[srq->uar]++;
    srq->dbrec = qhca_le64(in->dbrec);
    srq->shift = in->shift;
    srq->stride = in->stride;
    srq->limit = qhca_le32(in->limit);
    qhca_event_init(&srq->ev, srq->srqn);
    c->obj = srq->srqn;
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_modify_srq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_srq *srq = qhca_table_get(&e->srqs, c->obj);
    const struct qhca_srqc *in = c->in;
    uint32_t limit = qhca_le32(in->limit);

    if (!srq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (c->mask & ~QHCA_SRQ_M_LIMIT) {
        return QHCA_ST_BAD_PARAM;
    }
    if (srq->state != QHCA_SRQ_OK) {
        return QHCA_ST_BAD_STATE;
    }
    if (c->mask & QHCA_SRQ_M_LIMIT) {
        if (limit > 1u << srq->shift) {
            return qhca_bad(c, offsetof(struct qhca_srqc, limit));
        }
        srq->limit = limit;
        qhca_srq_check_limit(e, srq);
    }
    return QHCA_ST_OK;
}

static void srq_free(struct qhca *e, struct qhca_srq *srq)
{
    qhca_event_forget(&srq->ev);
    e->pd_refs[srq->pd]--;
    e->uar_refs[srq->uar]--;
    qhca_table_del(&e->srqs, srq->srqn);
    free(srq);
}

uint8_t qhca_cmd_destroy_srq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_srq *srq = qhca_table_get(&e->srqs, c->obj);

    if (!srq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (srq->refs) {
        return QHCA_ST_BUSY;
    }
    srq_free(e, srq);
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_query_srq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_srq *srq = qhca_table_get(&e->srqs, c->obj);
    struct qhca_srqc *out = c->out;

    if (!srq) {
        return QHCA_ST_BAD_OBJ;
    }
    qhca_buf_get(&srq->buf, &out->buf);
    qhca_buf_get(&srq->idx, &out->idx);
    out->dbrec = qhca_le64(srq->dbrec);
    out->srqn = qhca_le32(srq->srqn);
    out->pd = qhca_le32(srq->pd);
    out->uar = qhca_le32(srq->uar);
    out->shift = srq->shift;
    out->stride = srq->stride;
    out->state = srq->state;
    out->limit = qhca_le32(srq->limit);
    out->head = qhca_le32(srq->head);
    out->tail = qhca_le32(srq->tail);
    return QHCA_ST_OK;
}

void qhca_srqs_free(struct qhca *e)
{
    struct qhca_srq *srq;
    uint32_t n;

    for (n = 0; n < qhca_table_end(&e->srqs); n++) {
        srq = qhca_table_get(&e->srqs, n);
        if (srq) {
            srq_free(e, srq);
        }
    }
}
