/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receives of a QP: it holds one WQE at a time, from the first packet of a
 * message to the completion.  A WQE taken for a message that was then dropped
 * (UD and UC) is used for the next.
 */
#include "transport/rc.h"
#include "transport/tag_qp.h"

uint8_t qhca_recv_take(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_recv *r = &qp->xp->recv;
    uint32_t len = 0;
    uint8_t syn;

    qhca_recv_begin(r);
    if (r->held) {
        return QHCA_SYN_NONE;
    }
    if (qhca_faulty(e, QHCA_FLT_AT_RECV) && e->hooks->recv_fails(e, qp->qpn)) {
        return QHCA_SYN_RNR;
    }
    syn = qhca_rq_take(e, qp, r->wqe, &len, &r->index);
    return syn ? syn : qhca_recv_hold(r, len);
}

uint8_t qhca_recv_data(struct qhca *e, struct qhca_qp *qp, const void *buf,
                       uint32_t len)
{
    return qhca_recv_store(e, &qp->xp->recv, qhca_sgl_recv(qp), buf, len);
}

bool qhca_recv_complete(struct qhca *e, struct qhca_qp *qp,
                        struct qhca_cqe *cqe, uint8_t opcode, uint8_t status,
                        uint8_t syndrome, bool solicited)
{
    qhca_recv_cqe(&qp->xp->recv, qp->qpn, cqe, opcode, status, syndrome);
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
    qp->xp->recv.held = false;
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

    if (qp->xp->recv.held) {
        qhca_recv_complete(e, qp, &cqe, QHCA_CQE_OP_RECV, status, syndrome,
                           false);
    }
}
