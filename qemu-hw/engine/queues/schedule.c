/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The ready list: QPs with work to do. */
#include "queues/queues.h"

void qhca_qp_schedule(struct qhca *e, struct qhca_qp *qp)
{
    /* A blocked QP may now have work that does not need the wire. */
    if (!qhca_list_empty(&qp->ready)) {
        if (!e->tx_blocked && !e->ml->waiting) {
            return;
        }
        qhca_list_del(&qp->ready);
    }
    qhca_list_add_tail(&e->q->ready, &qp->ready);
}

void qhca_qps_unblock(struct qhca *e)
{
    qhca_list_splice_tail(&e->q->ready, &e->q->blocked);
}
