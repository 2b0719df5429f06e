/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Doorbells (BAR 2).  User space rings them without the kernel: each specifies
 * its object, and is accepted only in the page of the UAR that owns the object.
 */
#include "adapter/adapter.h"

/* Packets sent before the store returns, so a small message leaves at once. */
#define DB_BUDGET           32

static void db_bad_object(struct qhca *e, uint32_t num)
{
    qhca_guest_error(e, QHCA_STAT_DB_BAD_OBJECT, num,
                     "doorbell for an object that does not exist");
}

static void db_bad_owner(struct qhca *e, uint32_t num)
{
    qhca_guest_error(e, QHCA_STAT_DB_BAD_OWNER, num,
                     "doorbell in a page of another owner");
}

/* May @uar ring the doorbells of QP or WQ @num? */
static bool may_ring(struct qhca *e, uint32_t uar, uint32_t num)
{
    const struct qhca_qp *qp = qhca_qp_get(e, num);
    const struct qhca_wq *wq = qhca_wq_get(e, num);

    if (!qp && !wq) {
        db_bad_object(e, num);
        return false;
    }
    if ((wq ? wq->uar : qp->uar) != uar) {
        db_bad_owner(e, num);
        return false;
    }
    return true;
}

static void db_sq(struct qhca *e, uint32_t uar, uint32_t num, uint32_t index)
{
    struct qhca_qp *qp = qhca_qp_get(e, num);

    if (!may_ring(e, uar, num)) {
        return;
    }
    if (!qp || !qp->sq_stride || qp->tm || qp->state < QHCA_QPS_RTS) {
        qhca_guest_error(e, QHCA_STAT_DB_BAD_STATE, num,
                         "SQ doorbell in a state that sends nothing");
    } else if (qp->flags & QHCA_QP_F_SQ_RECORD ? qhca_sq_poll_dbrec(e, qp) :
               qhca_sq_produced(e, qp, index)) {
        qhca_xport_sq_doorbell(e, qp);
    }
}

static void db_rq(struct qhca *e, uint32_t uar, uint32_t num)
{
    struct qhca_qp *qp = qhca_qp_get(e, num);

    if (!may_ring(e, uar, num)) {
        return;
    }
    if (qp) {
        qhca_xport_rq_doorbell(e, qp);
    } else {
        qhca_wq_doorbell(e, qhca_wq_get(e, num));
    }
}

static void db_cq(struct qhca *e, uint32_t uar, uint64_t val, uint32_t index)
{
    uint32_t num = val & QHCA_DB_NUM_MASK;
    struct qhca_cq *cq = qhca_idr_get(&e->q->cqs, num);

    if (!cq) {
        db_bad_object(e, num);
    } else if (cq->uar != uar) {
        db_bad_owner(e, num);
    } else {
        qhca_cq_arm(e, cq, index, val & QHCA_DB_SOLICITED);
    }
}

static void db_eq(struct qhca *e, uint32_t uar, uint64_t val, uint32_t index)
{
    uint32_t num = val & QHCA_DB_NUM_MASK;
    struct qhca_eq *eq;

    if (uar) {
        db_bad_owner(e, num);
        return;
    }
    eq = qhca_idr_get(&e->q->eqs, num);
    if (!eq) {
        db_bad_object(e, num);
        return;
    }
    qhca_eq_doorbell(e, eq, index, val & QHCA_DB_EQ_ARM);
}

static void db_eth(struct qhca *e, uint32_t uar, uint32_t num, uint32_t index)
{
    struct qhca_eth_q *q;

    if (uar) {
        db_bad_owner(e, num);
        return;
    }
    q = qhca_idr_get(&e->eth->eth_sqs, num);
    if (!q) {
        db_bad_object(e, num);
        return;
    }
    if (index - q->ring.tail > 1u << q->ring.shift) {
        qhca_guest_error(e, QHCA_STAT_DB_BAD_INDEX, num,
                         "Ethernet producer index beyond the ring");
        return;
    }
    if (index - q->ring.tail <= q->ring.head - q->ring.tail) {
        return;
    }
    q->ring.head = index;
    qhca_eth_wake(e, q);
}

static void db_mr_sync(struct qhca *e, uint32_t uar, uint32_t num)
{
    if (uar) {
        db_bad_owner(e, num);
    } else {
        qhca_mr_sync(e, num);
    }
}

static void db_tm(struct qhca *e, uint32_t uar, uint32_t num, uint32_t index)
{
    struct qhca_srq *srq = qhca_idr_get(&e->q->srqs, num);

    if (!srq || !srq->tm) {
        db_bad_object(e, num);
    } else if (srq->uar != uar) {
        db_bad_owner(e, num);
    } else {
        qhca_tm_doorbell(e, srq, index);
    }
}

static void trace_doorbell(struct qhca *e, uint32_t page, uint64_t reg,
                           uint32_t num, uint32_t index)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_DOORBELL, .num = num, .addr = reg, .a = page,
        .index = index,
    };

    qhca_trace_emit(e, &t);
}

void qhca_db_write(struct qhca *e, uint64_t off, uint64_t val, unsigned size)
{
    uint32_t num = val & QHCA_DB_NUM_MASK;
    uint32_t index = (uint32_t)(val >> QHCA_DB_INDEX_SHIFT);
    uint32_t page;
    uint64_t reg;

    qhca_call_begins(e);
    qhca_count(e, QHCA_STAT_DOORBELLS);
    if (!qhca_active(e) || off >= QHCA_BAR_DB_SIZE) {
        db_bad_object(e, num);
        return;
    }
    page = (uint32_t)(off >> e->ad->db_shift);
    reg = off & ((1u << e->ad->db_shift) - 1);
    if (size != 8 || (reg & 7) || reg > QHCA_DB_TM) {
        qhca_guest_error(e, QHCA_STAT_DB_BAD_ACCESS, (uint32_t)off,
                         "doorbell store of a wrong size or place");
        return;
    }
    if (qhca_tracing(e)) {
        trace_doorbell(e, page, reg, num, index);
    }
    switch (reg) {
    case QHCA_DB_SQ:
        db_sq(e, page, num, index);
        break;
    case QHCA_DB_CQ_ARM:
        db_cq(e, page, val, index);
        break;
    case QHCA_DB_EQ:
        db_eq(e, page, val, index);
        break;
    case QHCA_DB_ETH_SQ:
        db_eth(e, page, num, index);
        break;
    case QHCA_DB_RQ:
        db_rq(e, page, num);
        break;
    case QHCA_DB_MR_SYNC:
        db_mr_sync(e, page, num);
        qhca_break_point(e);
        return;                 /* the driver holds locks: no other work */
    case QHCA_DB_TM:
        db_tm(e, page, num, index);
        break;
    }
    qhca_break_point(e);
    qhca_work(e, DB_BUDGET);
    qhca_finish(e);
}
