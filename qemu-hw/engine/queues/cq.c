/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completion queues: adding CQEs, arming, moderation. */
#include <stdlib.h>

#include "queues/queues.h"

#define CQ_TIMER_BATCH      64

static void cq_fire(struct qhca *e, struct qhca_cq *cq)
{
    cq->arm = QHCA_ARM_NONE;
    cq->unreported = 0;
    cq->since_event = 0;
    qhca_mod_del(e, cq);
    qhca_event(e, cq->eq, &cq->comp, QHCA_EV_CQ, 0);
}

/* A CQE matched the arm condition: send the event now, or moderate it. */
static void cq_hit(struct qhca *e, struct qhca_cq *cq)
{
    cq->unreported++;
    if (cq->mod_count <= 1 || !cq->mod_usec ||
        cq->unreported >= cq->mod_count) {
        cq_fire(e, cq);
    } else if (cq->mod_pos == QHCA_MOD_NONE) {
        qhca_mod_add(e, cq, qhca_now(e) + cq->mod_usec * 1000ULL);
    }
}

/* The CQ stops accepting CQEs; its QPs notice at their next completion. */
static bool cq_fail(struct qhca *e, struct qhca_cq *cq, uint8_t syndrome)
{
    cq->state = QHCA_CQ_ERR;
    if (syndrome == QHCA_SYN_CQ_OVERFLOW) {
        qhca_guest_error(e, QHCA_STAT_CQ_OVERFLOWS, cq->cqn, "CQ overflow");
    }
    qhca_async_event(e, &cq->ev, QHCA_EV_CQ_ERR, syndrome);
    return false;
}

/* Check for a free slot; read the doorbell record only if none seems free. */
static uint8_t cq_room(struct qhca *e, struct qhca_cq *cq,
                       const struct qhca_cqe *cqe)
{
    uint32_t depth = 1u << cq->shift, cons;

    if (qhca_faulty(e, QHCA_FLT_AT_CQE) && e->hooks->cqe_fails(e, cq, cqe)) {
        return QHCA_SYN_CQ_OVERFLOW;
    }
    if (cq->prod - cq->cons < depth) {
        return QHCA_SYN_NONE;
    }
    if (!qhca_dbrec_read(e, QHCA_DMA_RECORD, cq->cqn, cq->dbrec, &cons)) {
        return QHCA_SYN_CQ_DMA;
    }
    /* A bogus index in the record must not make a full CQ look less full. */
    if (cq->prod - cons >= depth) {
        return QHCA_SYN_CQ_OVERFLOW;
    }
    cq->cons = cons;
    return QHCA_SYN_NONE;
}

/* Trace the CQE produced last. */
static void trace_cqe(struct qhca *e, const struct qhca_cq *cq,
                      const struct qhca_cqe *cqe)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_CQE, .num = cq->cqn, .peer = qhca_le32(cqe->qpn),
        .index = cq->prod - 1, .a = cqe->status, .b = qhca_le64(cqe->wr_id),
        .syndrome = cqe->syndrome, .op = cqe->opcode,
        .wqe = qhca_le32(cqe->wqe_index), .len = qhca_le32(cqe->byte_len),
    };

    qhca_trace_emit(e, &t);
}

bool qhca_cq_push(struct qhca *e, struct qhca_cq *cq, struct qhca_cqe *cqe,
                  bool solicited)
{
    uint64_t off, addr, run;
    uint8_t syn, kind = qhca_cqe_is_eth(cqe) ? QHCA_DMA_ETH : QHCA_DMA_CQE;

    if (cq->state != QHCA_CQ_OK) {
        return false;
    }
    syn = cq_room(e, cq, cqe);
    if (syn) {
        return cq_fail(e, cq, syn);
    }
    if (!cqe->timestamp) {
        cqe->timestamp = qhca_le64(qhca_now(e));
    }
    cqe->phase = !((cq->prod >> cq->shift) & 1);
    off = cq->prod & ((1u << cq->shift) - 1);
    off *= sizeof(*cqe);
    if (qhca_buf_table_walk(e, &cq->buf, off, cq->cqn, &addr, &run) ||
        !qhca_dma_write(e, kind, cq->cqn, addr, cqe, sizeof(*cqe) - 8) ||
        !qhca_dma_store64(e, kind, cq->cqn, addr + sizeof(*cqe) - 8,
                          qhca_get_le64((uint8_t *)cqe +
                                        sizeof(*cqe) - 8))) {
        return cq_fail(e, cq, QHCA_SYN_CQ_DMA);
    }
    cq->prod++;
    cq->since_event += cq->since_event < UINT32_MAX;
    qhca_count(e, QHCA_STAT_CQES);
    if (qhca_tracing(e)) {
        trace_cqe(e, cq, cqe);
    }
    solicited = solicited || cqe->status != QHCA_WC_SUCCESS;
    if (solicited) {
        cq->last_solicited = cq->prod;
    }
    if (cq->arm == QHCA_ARM_ANY ||
        (cq->arm == QHCA_ARM_SOLICITED && solicited)) {
        cq_hit(e, cq);
    }
    return true;
}

void qhca_cq_arm(struct qhca *e, struct qhca_cq *cq, uint32_t cons,
                 bool solicited)
{
    uint32_t waiting = cq->prod - cons;

    if (waiting > 1u << cq->shift) {
        if (waiting > UINT32_MAX / 2) {
            qhca_guest_error(e, QHCA_STAT_DB_BAD_INDEX, cq->cqn,
                             "CQ armed beyond its producer");
            return;
        }
        /*
         * Stale index: two threads armed the CQ, and the slower one's doorbell
         * arrived last.  A spurious event is harmless, a lost one is not.
         */
    } else if (waiting < cq->prod - cq->cons) {
        cq->cons = cons;
    }
    /* An earlier arm for any completion stays in force (IBA 11.4.2.2). */
    if (!solicited) {
        cq->arm = QHCA_ARM_ANY;
    } else if (cq->arm == QHCA_ARM_NONE) {
        cq->arm = QHCA_ARM_SOLICITED;
    }
    cq->unreported = 0;
    qhca_mod_del(e, cq);
    /*
     * Did CQEs arrive that software had not seen when it armed?  CQEs reported
     * by an event count as seen, even if not polled yet.
     */
    if (waiting > cq->since_event) {
        waiting = cq->since_event;
    }
    if (waiting && (cq->arm == QHCA_ARM_ANY ||
                    cq->prod - cq->last_solicited < waiting)) {
        cq_fire(e, cq);
    }
}

void qhca_cq_timer(struct qhca *e, uint64_t now)
{
    unsigned n;

    for (n = 0; n < CQ_TIMER_BATCH && qhca_cq_deadline(e) <= now &&
         qhca_active(e); n++) {
        cq_fire(e, e->q->mod_heap[0]);
    }
}

static uint8_t cq_check_create(struct qhca *e, struct qhca_cmd *c,
                               const struct qhca_cqc *in)
{
    if (in->shift > QHCA_MAX_CQ_SHIFT) {
        return qhca_bad(c, offsetof(struct qhca_cqc, shift));
    }
    if (in->flags) {
        return qhca_bad(c, offsetof(struct qhca_cqc, flags));
    }
    if (qhca_le64(in->dbrec) & 7) {
        return qhca_bad(c, offsetof(struct qhca_cqc, dbrec));
    }
    if (!qhca_idr_get(&e->q->eqs, qhca_le32(in->eqn))) {
        return qhca_bad_obj(c, offsetof(struct qhca_cqc, eqn));
    }
    if (!qhca_idr_get(&e->mem->uars, qhca_le32(in->uar))) {
        return qhca_bad_obj(c, offsetof(struct qhca_cqc, uar));
    }
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_create_cq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_cqc *in = c->in;
    uint8_t st = cq_check_create(e, c, in);
    struct qhca_cq *cq;

    if (st) {
        return st;
    }
    cq = calloc(1, sizeof(*cq));
    if (!cq) {
        return QHCA_ST_NO_RESOURCES;
    }
    st = qhca_buf_table_init(&cq->buf, &in->buf,
                             sizeof(struct qhca_cqe) << in->shift, true);
    if (!st && !qhca_idr_add(&e->q->cqs, cq, &cq->cqn)) {
        st = QHCA_ST_NO_RESOURCES;
    }
    if (st) {
        free(cq);
        return st;
    }
    cq->buf.kind = QHCA_DMA_CQE;
    cq->eq = qhca_idr_get(&e->q->eqs, qhca_le32(in->eqn));
    cq->eq->refs++;
    cq->uar = qhca_le32(in->uar);
    e->mem->uar_refs[cq->uar]++;
    cq->dbrec = qhca_le64(in->dbrec);
    cq->shift = in->shift;
    cq->mod_count = qhca_le16(in->mod_count);
    cq->mod_usec = qhca_le16(in->mod_usec);
    cq->mod_pos = QHCA_MOD_NONE;
    qhca_event_init(&cq->ev, cq->cqn);
    qhca_event_init(&cq->comp, cq->cqn);
    c->obj = cq->cqn;
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_modify_cq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_cq *cq = qhca_idr_get(&e->q->cqs, c->obj);
    const struct qhca_cqc *in = c->in;
    uint8_t st;

    if (!cq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (c->mask & ~(QHCA_CQ_M_MODERATION | QHCA_CQ_M_RESIZE)) {
        return QHCA_ST_BAD_PARAM;
    }
    if (c->mask & QHCA_CQ_M_RESIZE) {
        st = qhca_cq_resize(e, c, cq);
        if (st) {
            return st;
        }
    }
    if (c->mask & QHCA_CQ_M_MODERATION) {
        cq->mod_count = qhca_le16(in->mod_count);
        cq->mod_usec = qhca_le16(in->mod_usec);
        if (cq->mod_pos != QHCA_MOD_NONE) {
            /* A pending event must not wait by the old parameters. */
            cq_fire(e, cq);
        }
    }
    return QHCA_ST_OK;
}

void qhca_cq_free(struct qhca *e, struct qhca_cq *cq)
{
    qhca_mod_del(e, cq);
    qhca_event_forget(&cq->ev);
    qhca_event_forget(&cq->comp);
    cq->eq->refs--;
    e->mem->uar_refs[cq->uar]--;
    qhca_idr_del(&e->q->cqs, cq->cqn);
    free(cq);
}

uint8_t qhca_cmd_destroy_cq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_cq *cq = qhca_idr_get(&e->q->cqs, c->obj);

    if (!cq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (cq->refs) {
        return QHCA_ST_BUSY;
    }
    qhca_cq_free(e, cq);
    return QHCA_ST_OK;
}

/* Fill in the fields that CREATE_CQ and MODIFY_CQ set. */
static void cq_describe(const struct qhca_cq *cq, struct qhca_cqc *out)
{
    memset(out, 0, sizeof(*out));
    qhca_buf_table_describe(&cq->buf, &out->buf);
    out->dbrec = qhca_le64(cq->dbrec);
    out->cqn = qhca_le32(cq->cqn);
    out->eqn = qhca_le32(cq->eq->eqn);
    out->uar = qhca_le32(cq->uar);
    out->shift = cq->shift;
    out->mod_count = qhca_le16(cq->mod_count);
    out->mod_usec = qhca_le16(cq->mod_usec);
}

bool qhca_cq_valid(struct qhca *e, const struct qhca_cq *cq)
{
    struct qhca_cmd c = { 0 };
    struct qhca_cqc in;

    cq_describe(cq, &in);
    return cq_check_create(e, &c, &in) == QHCA_ST_OK;
}

bool qhca_query_cq(struct qhca *e, uint32_t cqn, struct qhca_cqc *out)
{
    const struct qhca_cq *cq = qhca_idr_get(&e->q->cqs, cqn);

    if (!cq) {
        return false;
    }
    cq_describe(cq, out);
    out->state = cq->state;
    out->arm = cq->arm;
    out->prod = qhca_le32(cq->prod);
    out->cons = qhca_le32(cq->cons);
    return true;
}

uint8_t qhca_cmd_query_cq(struct qhca *e, struct qhca_cmd *c)
{
    return qhca_query_cq(e, c->obj, c->out) ? QHCA_ST_OK : QHCA_ST_BAD_OBJ;
}

bool qhca_cq_discard(struct qhca *e, uint32_t num)
{
    struct qhca_cq *cq = qhca_idr_get(&e->q->cqs, num);

    if (cq) {
        qhca_cq_free(e, cq);
    }
    return cq;
}
