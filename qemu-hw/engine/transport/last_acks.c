/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responses of QPs that software destroyed, reset or moved to ERR while the
 * wire was blocked.  The CQE of the message may have been polled already, so
 * the application considers it done; without the ACK its peer would retransmit
 * until its retries are exhausted.  They are sent before everything else when
 * the wire is ready, however late that is: as with any adapter, software must
 * not reuse a QPN with the same PSNs at once (the CM's TimeWait state).
 */
#include "transport/rc.h"

bool qhca_last_ack_keep(struct qhca *e, const void *frame, size_t len)
{
    struct qhca_xport_dev *xd = e->xd;
    struct qhca_last_ack *a;

    if (len > sizeof(a->data) ||
        xd->last_ack_head - xd->last_ack_tail == QHCA_LAST_ACKS) {
        return false;
    }
    a = &xd->last_ack[xd->last_ack_head++ % QHCA_LAST_ACKS];
    memcpy(a->data, frame, len);
    a->len = (uint32_t)len;
    return true;
}

void qhca_last_acks_send(struct qhca *e)
{
    struct qhca_xport_dev *xd = e->xd;
    struct qhca_last_ack *a;

    while (xd->last_ack_tail != xd->last_ack_head) {
        a = &xd->last_ack[xd->last_ack_tail % QHCA_LAST_ACKS];
        if (!qhca_tx(e, a->data, a->len)) {
            return;
        }
        xd->last_ack_tail++;
    }
}
