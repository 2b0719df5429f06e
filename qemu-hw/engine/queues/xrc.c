/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * XRC (IBA annex A14): domains, and how a target QP finds the SRQ of a message.
 *
 * Each request specifies its SRQ.  With the first packet of a message, the
 * target adopts from the SRQ the PD and CQ, which it does not have itself.  It
 * holds no reference: an SRQ that is destroyed is detached from all targets of
 * its domain.
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

bool qhca_xrcd_discard(struct qhca *e, uint32_t num)
{
    struct qhca_xrcd *x = qhca_idr_get(&e->q->xrcds, num);

    if (x) {
        xrcd_free(e, x);
    }
    return x;
}

void qhca_xrc_join(struct qhca_qp *qp)
{
    struct qhca_xrcd *x = qp->xrcd;

    x->refs++;
    /* It has no SRQ that an earlier sweep would have to detach. */
    qp->xrc_sweep = x->sweep;
    qhca_list_add_tail(&x->targets, &qp->xrc_link);
}

struct qhca_srq *qhca_xrc_srq(struct qhca *e, const struct qhca_qp *qp,
                              uint32_t srqn)
{
    struct qhca_srq *srq = qhca_idr_get(&e->q->srqs, srqn);

    return srq && srq->xrcd == qp->xrcd && !srq->going ? srq : NULL;
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

/* Cost of a target: many of its responses may have to be examined. */
#define SWEEP_COST          8

/*
 * There can be many targets, so this is done in parts: those that are done are
 * at the end of the list, with the number of this sweep.
 */
bool qhca_xrc_srq_going(struct qhca *e, struct qhca_srq *srq)
{
    struct qhca_xrcd *x = srq->xrcd;
    struct qhca_qp *qp;

    if (!srq->going) {
        srq->going = true;
        x->sweep++;
    }
    while (!qhca_list_empty(&x->targets)) {
        qp = qhca_container(x->targets.next, struct qhca_qp, xrc_link);
        if (qp->xrc_sweep == x->sweep) {
            break;
        }
        if (qhca_command_spent(e)) {
            return false;
        }
        qhca_cost(e, SWEEP_COST);
        qp->ops->forget_srq(qp, srq);
        qp->xrc_sweep = x->sweep;
        qhca_list_del(&qp->xrc_link);
        qhca_list_add_tail(&x->targets, &qp->xrc_link);
    }
    return true;
}
