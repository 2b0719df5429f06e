/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rendezvous: the device owns the send side of a QP on a TM SRQ.  It READs the
 * data of a matched message, then SENDs FIN.  The WQEs are not in memory: the
 * requester gets them from here and treats them like any others.
 */
#include <stdlib.h>

#include "transport/rc.h"
#include "transport/tag_qp.h"

/* One WQE: the header and QHCA_TM_MAX_SGE SGEs. */
#define STRIDE_SHIFT        7
#define SLOT_SHIFT          6

_Static_assert(1 << SLOT_SHIFT == QHCA_TM_SLOTS, "slots");
_Static_assert(sizeof(struct qhca_sq_wqe) +
               QHCA_TM_MAX_SGE * sizeof(struct qhca_sge) <= 1 << STRIDE_SHIFT,
               "a WQE fits");

bool qhca_tm_qp_init(struct qhca_qp *qp)
{
    qp->tm = calloc(1, sizeof(*qp->tm));
    qp->sq_shift = SLOT_SHIFT;
    qp->sq_stride = STRIDE_SHIFT;
    return qp->tm;
}

static struct qhca_tm_job *rndv_job(struct qhca_qp *qp, uint32_t index)
{
    return &qp->tm->job[index & (QHCA_TM_SLOTS - 1)];
}

static void rndv_release(struct qhca_tag *t)
{
    t->state = QHCA_TAG_FREE;
}

/* Write the CQE that completes the entry of the READ @j. */
static bool rndv_tell(struct qhca *e, struct qhca_qp *qp,
                      const struct qhca_tm_job *j, uint8_t status,
                      uint8_t syndrome)
{
    const uint8_t *rvh = j->headers + sizeof(struct qhca_tmh);
    struct qhca_cqe cqe = {
        .wr_id = qhca_le64(j->tag->wr_id),
        .qpn = qhca_le32(qp->qpn),
        .wqe_index = qhca_le32(j->tag->handle),
        .src_qpn = qhca_le32(qp->srq->srqn),
        .opcode = QHCA_CQE_OP_TM_RECV,
        .status = status,
        .syndrome = syndrome,
    };
    uint16_t flags = QHCA_CQE_F_SRQN;

    if (!status) {
        flags |= QHCA_CQE_F_TM_DATA_VALID | j->flags;
        cqe.byte_len = qhca_le32(qhca_get_be32(rvh + 12));
        cqe.imm = j->imm;
    }
    if (j->solicited) {
        flags |= QHCA_CQE_F_SOLICITED;
    }
    cqe.flags = qhca_le16(flags);
    return qhca_cq_push(e, qp->srq->cq, &cqe, j->solicited);
}

/* The QP gives up the entry @t. */
static void rndv_flush(struct qhca *e, struct qhca_qp *qp, struct qhca_tag *t,
                       bool write)
{
    const struct qhca_tm_job j = { .tag = t };

    if (write) {
        rndv_tell(e, qp, &j, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    }
    rndv_release(t);
}

void qhca_tm_qp_drop(struct qhca *e, struct qhca_qp *qp, bool write)
{
    struct qhca_tm_qp *tq = qp->tm;
    uint32_t i;

    for (i = qp->sq_tail; i != qp->sq_head; i++) {
        if (rndv_job(qp, i)->tag) {
            rndv_flush(e, qp, rndv_job(qp, i)->tag, write);
        }
    }
    qp->sq_tail = qp->sq_next = qp->sq_head;
    tq->reads = 0;
    if (tq->tag) {
        rndv_flush(e, qp, tq->tag, write);
        tq->tag = NULL;
        qp->xp->recv.held = false;
    } else if (tq->kind == QHCA_TM_UNEXPECTED) {
        qp->srq->tm->seen--;
        qhca_tm_sync(qp->srq->tm);
    }
    tq->kind = QHCA_TM_PLAIN;
}

void qhca_tm_qp_free(struct qhca_qp *qp)
{
    free(qp->tm);
    qp->tm = NULL;
}

bool qhca_tm_rndv_room(const struct qhca_qp *qp)
{
    return qp->sq_head - qp->sq_tail + qp->tm->reads + 2 <= QHCA_TM_SLOTS;
}

static void rndv_queue(struct qhca *e, struct qhca_qp *qp,
                       const struct qhca_tm_job *j)
{
    *rndv_job(qp, qp->sq_head++) = *j;
    qhca_xport_sq_doorbell(e, qp);
}

void qhca_tm_rndv_start(struct qhca *e, struct qhca_qp *qp,
                        const struct qhca_cqe *cqe, bool solicited)
{
    struct qhca_tm_qp *tq = qp->tm;
    struct qhca_tm_job j = {
        .tag = tq->tag, .solicited = solicited,
        .flags = qhca_le16(cqe->flags) & QHCA_TM_IMM, .imm = cqe->imm,
    };

    memcpy(j.headers, tq->headers, sizeof(j.headers));
    tq->reads++;
    rndv_queue(e, qp, &j);
    tq->tag = NULL;
    tq->kind = QHCA_TM_PLAIN;
    qp->xp->recv.held = false;
}

void qhca_tm_wqe(const struct qhca_qp *qp, uint32_t index, void *wqe)
{
    const struct qhca_tm_job *j =
        &qp->tm->job[index & (QHCA_TM_SLOTS - 1)];
    const uint8_t *rvh = j->headers + sizeof(struct qhca_tmh);
    struct qhca_sq_wqe w = { 0 };
    struct qhca_sge sge[QHCA_TM_MAX_SGE];
    uint32_t left, n, len;

    if (!j->tag) {
        uint8_t *data = (uint8_t *)wqe + sizeof(w);

        w.ctrl.opcode = QHCA_WQE_SEND;
        w.ctrl.flags = QHCA_WQE_F_INLINE;
        w.ctrl.num_sge = qhca_le16(sizeof(j->headers));
        memcpy(wqe, &w, sizeof(w));
        memcpy(data, j->headers, sizeof(j->headers));
        data[0] = QHCA_TMH_FIN;
        return;
    }
    left = qhca_get_be32(rvh + 12);
    for (n = 0; n < j->tag->num_sge && left; n++) {
        sge[n] = j->tag->sge[n];
        len = qhca_le32(sge[n].len);
        len = len < left ? len : left;
        sge[n].len = qhca_le32(len);
        left -= len;
    }
    w.ctrl.opcode = QHCA_WQE_RDMA_READ;
    w.ctrl.flags = QHCA_WQE_F_SIGNALED;
    w.ctrl.num_sge = qhca_le16((uint16_t)n);
    w.ctrl.wr_id = qhca_le64(j->tag->wr_id);
    w.remote.addr = qhca_le64(qhca_get_be64(rvh));
    w.remote.rkey = qhca_le32(qhca_get_be32(rvh + 8));
    memcpy(wqe, &w, sizeof(w));
    memcpy((uint8_t *)wqe + sizeof(w), sge, n * sizeof(sge[0]));
}

bool qhca_tm_sent(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                  uint8_t status, uint8_t syndrome)
{
    struct qhca_tm_job j = *rndv_job(qp, index), fin = { 0 };
    bool ok;

    if (!j.tag) {
        /* No CQE reports a failed FIN, so raise an event. */
        if (status && status != QHCA_WC_WR_FLUSH_ERR) {
            qhca_async_event(e, &qp->ev, QHCA_EV_QP_FATAL, syndrome);
        }
        return true;
    }
    qp->tm->reads--;
    ok = rndv_tell(e, qp, &j, status, syndrome);
    rndv_release(j.tag);
    if (ok && !status) {
        memcpy(fin.headers, j.headers, sizeof(fin.headers));
        rndv_queue(e, qp, &fin);
    }
    return ok;
}
