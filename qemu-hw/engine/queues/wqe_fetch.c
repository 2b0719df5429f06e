/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fetching WQEs from guest memory. */
#include "queues/queues.h"

/* Entries do not straddle pages: one contiguous piece. */
uint8_t qhca_wqe_read(struct qhca *e, struct qhca_buf_table *m, uint64_t off,
                      uint32_t num, void *buf, size_t len, uint64_t *addr)
{
    uint64_t run;
    uint8_t syn = qhca_buf_table_walk(e, m, off, num, addr, &run);

    if (syn) {
        return syn;
    }
    return qhca_dma_read(e, QHCA_DMA_WQE, num, *addr, buf, len) ?
           QHCA_SYN_NONE : QHCA_SYN_WQE_DMA;
}

bool qhca_sq_produced(struct qhca *e, struct qhca_qp *qp, uint32_t index)
{
    /* Late: the WQEs of a newer doorbell are completed already. */
    if (index - qp->sq_tail > UINT32_MAX - (1u << qp->sq_shift)) {
        return false;
    }
    if (index - qp->sq_tail > 1u << qp->sq_shift) {
        qhca_guest_error(e, QHCA_STAT_DB_BAD_INDEX, qp->qpn,
                         "SQ producer index beyond the ring");
        qhca_qp_error(e, qp, QHCA_SYN_DB_INDEX, QHCA_EV_QP_FATAL);
        return false;
    }
    /* Late: a newer doorbell has announced these WQEs already. */
    if (index - qp->sq_tail <= qp->sq_head - qp->sq_tail) {
        return false;
    }
    qp->sq_head = index;
    return true;
}

uint8_t qhca_sq_fetch(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                      void *wqe, uint64_t *addr)
{
    uint64_t off = index & ((1u << qp->sq_shift) - 1);

    qhca_count(e, QHCA_STAT_WQES);
    return qhca_wqe_read(e, &qp->sq, off << qp->sq_stride, qp->qpn, wqe,
                         1u << qp->sq_stride, addr);
}

void qhca_recv_trace(struct qhca *e, uint32_t qpn, uint32_t index,
                     uint64_t addr, const void *wqe)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_RECV_WQE, .num = qpn, .index = index, .addr = addr,
        .b = qhca_get_le64(wqe),
    };

    if (qhca_tracing(e)) {
        qhca_trace_emit(e, &t);
    }
}

uint8_t qhca_ring_head(struct qhca *e, uint64_t dbrec, uint32_t depth,
                       uint32_t tail, uint32_t num, uint32_t *head)
{
    uint32_t index;

    if (!qhca_dbrec_read(e, QHCA_DMA_RECORD, num, dbrec, &index)) {
        return QHCA_SYN_WQE_DMA;
    }
    if (index - tail > depth) {
        qhca_guest_error(e, QHCA_STAT_DB_BAD_INDEX, num,
                         "doorbell record beyond the ring");
        return QHCA_SYN_DB_INDEX;
    }
    *head = index;
    return QHCA_SYN_NONE;
}

uint8_t qhca_ring_take(struct qhca *e, struct qhca_wqe_ring *r, uint32_t num,
                       void *wqe, uint32_t *len, uint32_t *index)
{
    uint32_t depth = 1u << r->shift;
    uint64_t off, addr;
    uint8_t syn;

    if (!r->stride) {
        return QHCA_SYN_RNR;
    }
    if (r->head == r->tail) {
        syn = qhca_ring_head(e, r->dbrec, depth, r->tail, num, &r->head);
        if (syn) {
            return syn;
        }
        if (r->head == r->tail) {
            return QHCA_SYN_RNR;
        }
    }
    *index = r->tail;
    *len = 1u << r->stride;
    off = r->tail & (depth - 1);
    syn = qhca_wqe_read(e, &r->buf, off << r->stride, num, wqe, *len, &addr);
    if (!syn) {
        r->tail++;
        qhca_recv_trace(e, num, *index, addr, wqe);
    }
    return syn;
}

uint8_t qhca_rq_take(struct qhca *e, struct qhca_qp *qp, void *wqe,
                     uint32_t *len, uint32_t *index)
{
    return qp->srq ? qhca_srq_take(e, qp, wqe, len, index) :
                     qhca_ring_take(e, &qp->rq, qp->qpn, wqe, len, index);
}
