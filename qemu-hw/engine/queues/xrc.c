/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * XRC (IBA annex A14): domains, and how a target QP finds the SRQ of a message.
 *
 * Each request names its SRQ.  With the first packet of a message, the target
 * adopts what it lacks from the SRQ: PD and CQ.  It holds no reference: an SRQ
 * that is destroyed is detached from all targets of its domain.
 */
#include <stdlib.h>

#include "queues/queues.h"

uint8_t qhca_cmd_alloc_xrcd(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_xrcd *x = calloc(1, sizeof(*x));

    if (!x) {
        return QHCA_ST_NO_RESOURCES;
    }
    if (!qhca_idr_add(&e->q->xrcds, x, &x->xrcd)) {
        free(x);
        return QHCA_ST_NO_RESOURCES;
    }
    qhca_list_init(&x->targets);
    c->obj = x->xrcd;
    return QHCA_ST_OK;
}

static void xrcd_free(struct qhca *e, struct qhca_xrcd *x)
{
    qhca_idr_del(&e->q->xrcds, x->xrcd);
    free(x);
}

uint8_t qhca_cmd_free_xrcd(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_xrcd *x = qhca_idr_get(&e->q->xrcds, c->obj);

    if (!x) {
        return QHCA_ST_BAD_OBJ;
    }
    if (x->refs) {
        return QHCA_ST_BUSY;
    }
    xrcd_free(e, x);
    return QHCA_ST_OK;
}

void qhca_xrcds_free(struct qhca *e)
{
    struct qhca_xrcd *x;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(&e->q->xrcds); n++) {
        x = qhca_idr_get(&e->q->xrcds, n);
        if (x) {
            xrcd_free(e, x);
        }
    }
}

struct qhca_srq *qhca_xrc_srq(struct qhca *e, const struct qhca_qp *qp,
                              uint32_t srqn)
{
    struct qhca_srq *srq = qhca_idr_get(&e->q->srqs, srqn);

    return srq && srq->xrcd == qp->xrcd ? srq : NULL;
}

void qhca_xrc_bind(struct qhca_qp *qp, struct qhca_srq *srq)
{
    qp->srq = srq;
    qp->pd = srq->pd;
}

void qhca_xrc_unbind(struct qhca_qp *qp)
{
    if (qp->xrcd) {
        qp->srq = NULL;
        qp->pd = 0;             /* contains no regions */
    }
}

void qhca_xrc_srq_gone(struct qhca *e, struct qhca_srq *srq)
{
    struct qhca_list *l;

    for (l = srq->xrcd->targets.next; l != &srq->xrcd->targets; l = l->next) {
        struct qhca_qp *qp = qhca_container(l, struct qhca_qp, xrc_link);

        qhca_cost(e, 1);
        qp->ops->forget_srq(qp, srq);
    }
}
