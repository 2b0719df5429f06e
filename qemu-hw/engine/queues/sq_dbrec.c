/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Doorbell records of send queues: QHCA_QP_F_SQ_RECORD.
 *
 * Software stores the producer index and rings only if it sees NOTIFY.  The
 * flag is set while only a doorbell would make the device read the index
 * (sq_awake is false).  It is cleared while something else will do so: WQEs
 * that wait to be sent, or packets that the peer is about to acknowledge.
 */
#include "queues/queues.h"

bool qhca_sq_poll_dbrec(struct qhca *e, struct qhca_qp *qp)
{
    uint32_t index;

    if (!qhca_dbrec_read(e, QHCA_DMA_RECORD, qp->qpn, qp->sq_dbrec, &index)) {
        qhca_qp_error(e, qp, QHCA_SYN_WQE_DMA, QHCA_EV_QP_FATAL);
        return false;
    }
    return qhca_sq_produced(e, qp, index);
}

bool qhca_sq_notify(struct qhca *e, struct qhca_qp *qp, bool notify)
{
    if (!qhca_dbrec_notify(e, QHCA_DMA_RECORD, qp->qpn, qp->sq_dbrec,
                           notify)) {
        return false;
    }
    qp->sq_awake = !notify;
    if (notify) {
        e->ops.dma_fence(e->opaque);
    }
    return true;
}
