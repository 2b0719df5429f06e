/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flushing: in ERR every WQE posted now or later completes with WR_FLUSH_ERR,
 * in order (IBA 10.3.1.7); in SQE only the send queue is flushed.  If software
 * leaves SQE early, flushing continues in RTS, but excludes WQEs posted there.
 */
#include "transport/rc.h"
#include "transport/tag_qp.h"

/* Flush WQE sq_tail: from the window if in flight, else read from the ring. */
static void flush_send(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t index = qp->sq_tail;
    uint8_t opcode = QHCA_WQE_SEND;
    uint8_t syn = QHCA_SYN_FLUSH;
    uint64_t wr_id = 0, addr;

    if (qp->tm) {
        if (index == qp->sq_next) {
            qp->sq_next++;
        }
        qp->sq_tail++;
        qhca_tm_sent(e, qp, index, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        return;
    }
    if (index != qp->sq_next && xp->win) {
        opcode = qhca_swqe(qp, index)->opcode;
        wr_id = qhca_swqe(qp, index)->wr_id;
    } else {
        syn = qhca_req_fetch(e, qp, index, e->xd->wqe, &addr);
        if (!syn) {
            opcode = e->xd->wqe[0];
            wr_id = qhca_get_le64(e->xd->wqe + 8);
            syn = QHCA_SYN_FLUSH;
        }
    }
    if (index == qp->sq_next) {
        qp->sq_next++;
    }
    qp->sq_tail++;
    /* If the CQ has overflowed, the CQE is lost; the QP is in error anyway. */
    qhca_send_cqe(e, qp, wr_id, index, opcode, 0, QHCA_WC_WR_FLUSH_ERR,
                  syn);
}

/* Counter at which flushing the send queue currently ends. */
static uint32_t flush_send_end(const struct qhca_qp *qp)
{
    return qp->state == QHCA_QPS_ERR || qp->state == QHCA_QPS_SQE ?
           qp->sq_head : qp->xp->flush_end;
}

/* Flush one receive; false: none left for now. */
static bool flush_recv(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t len;

    if (!xp->recv.held) {
        if (qp->srq ||
            qhca_rq_take(e, qp, xp->recv.wqe, &len, &xp->recv.index)) {
            return false;
        }
        xp->recv.held = true;
    }
    qhca_recv_error(e, qp, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    return true;
}

bool qhca_flush_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget)
{
    struct qhca_xport *xp = qp->xp;

    /* Completions tell software that its memory is free. */
    if (!qhca_memlinks_settled_for_qp(e, qp->qpn)) {
        return true;
    }
    while (xp->sq_flush) {
        if (qp->sq_tail == flush_send_end(qp)) {
            xp->sq_flush = false;
            xp->cur = qp->sq_tail;
            qhca_send_window_put(e, qp);
            break;
        }
        if (!*budget || !qhca_active(e)) {
            return true;
        }
        --*budget;
        flush_send(e, qp);
    }
    while (xp->rq_flush) {
        if (!*budget || !qhca_active(e)) {
            return true;
        }
        --*budget;
        if (!flush_recv(e, qp)) {
            xp->rq_flush = false;
            if (qp->flags & QHCA_QP_F_SRQ) {
                qhca_async_event(e, &qp->ev, QHCA_EV_LAST_WQE, 0);
            }
        }
    }
    return false;
}
