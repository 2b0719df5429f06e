/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive WQEs: a QP holds one at a time, from the first packet of a message to
 * the completion.  A WQE taken for a message that was then dropped (UD and UC)
 * is used for the next.
 */
#include "transport/rc.h"
#include "transport/tag_qp.h"

#define RECV_HEADER sizeof(struct qhca_rq_wqe)

uint8_t qhca_recv_take(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t len = 0;
    uint64_t cap;
    uint16_t num;
    uint8_t syn;

    xp->recv_len = 0;
    memset(&xp->recv_pos, 0, sizeof(xp->recv_pos));
    if (xp->recv_held) {
        return QHCA_SYN_NONE;
    }
    if (qhca_faulty(e, QHCA_FLT_AT_RECV) && e->hooks->recv_fails(e, qp)) {
        return QHCA_SYN_RNR;
    }
    syn = qhca_rq_take(e, qp, xp->recv, &len, &xp->recv_index);
    if (syn) {
        return syn;
    }
    xp->recv_held = true;
    xp->recv_cap = 0;
    xp->recv_sges = 0;
    memcpy(&num, xp->recv + 8, 2);
    num = qhca_le16(num);
    if (len < RECV_HEADER || len > sizeof(xp->recv) || num > QHCA_MAX_SGE ||
        num > (len - RECV_HEADER) / sizeof(struct qhca_sge)) {
        return QHCA_SYN_WQE_SGE;
    }
    cap = qhca_sgl_len(xp->recv + RECV_HEADER, num);
    xp->recv_sges = num;
    xp->recv_cap = cap > UINT32_MAX ? UINT32_MAX : (uint32_t)cap;
    return QHCA_SYN_NONE;
}

uint8_t qhca_recv_data(struct qhca *e, struct qhca_qp *qp, const void *buf,
                       uint32_t len)
{
    struct qhca_xport *xp = qp->xp;
    uint8_t syn;

    if (len > xp->recv_cap - xp->recv_len) {
        return QHCA_SYN_RQ_LENGTH;
    }
    /* with write set, the buffer is only read */
    syn = qhca_sgl_copy(e, qp, qp->srq ? qp->srq->pd : qp->pd,
                        xp->recv + RECV_HEADER, xp->recv_sges, &xp->recv_pos,
                        xp->recv_len, (void *)buf, len, true);
    if (!syn) {
        xp->recv_len += len;
    }
    return syn;
}

bool qhca_recv_complete(struct qhca *e, struct qhca_qp *qp,
                        struct qhca_cqe *cqe, uint8_t opcode, uint8_t status,
                        uint8_t syndrome, bool solicited)
{
    struct qhca_xport *xp = qp->xp;

    memcpy(&cqe->wr_id, xp->recv, 8);
    cqe->qpn = qhca_le32(qp->qpn);
    cqe->wqe_index = qhca_le32(xp->recv_index);
    cqe->opcode = opcode;
    cqe->status = status;
    cqe->syndrome = syndrome;
    if (qp->srq) {
        cqe->flags |= qhca_le16(QHCA_CQE_F_SRQ);
        if (qp->srq->cq) {
            cqe->flags |= qhca_le16(QHCA_CQE_F_SRQN);
            cqe->src_qpn = qhca_le32(qp->srq->srqn);
        }
    }
    if (solicited) {
        cqe->flags |= qhca_le16(QHCA_CQE_F_SOLICITED);
    }
    if (qp->tm) {
        qhca_tm_recv_cqe(qp, cqe);
    }
    xp->recv_held = false;
    if (!qhca_cq_push(e, qhca_recv_cq(qp), cqe, solicited)) {
        qhca_qp_error(e, qp, QHCA_SYN_CQ_OVERFLOW, QHCA_EV_QP_FATAL);
        return false;
    }
    return true;
}

void qhca_recv_error(struct qhca *e, struct qhca_qp *qp, uint8_t status,
                     uint8_t syndrome)
{
    struct qhca_cqe cqe = { 0 };

    if (qp->xp->recv_held) {
        qhca_recv_complete(e, qp, &cqe, QHCA_CQE_OP_RECV, status, syndrome,
                           false);
    }
}
