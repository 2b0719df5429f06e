/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state: WQs. */
#include <stdlib.h>

#include "ethernet/ethernet.h"

SAVED_SIZE(struct qhca_wq, 856, wq, 1);

/* Why commands could not have led to this state; NULL: they could. */
static const char *wq_impossible(struct qhca *e, const struct qhca_wq *wq,
                                 bool flushing)
{
    /* the lowest numbers are those of special QPs */
    if (wq->wqn < e->q->qps.first || !qhca_wq_valid(e, wq)) {
        return "no command could have created it";
    }
    if (wq->state == QHCA_WQS_RESET &&
        (wq->recv.held || wq->ring.head | wq->ring.tail)) {
        return "it is not in use, but has WQEs";
    }
    if (flushing && wq->state != QHCA_WQS_ERR) {
        return "its receives are flushed outside of ERR";
    }
    return wq->state == QHCA_WQS_ERR && wq->recv.held && !flushing ?
           "it is in error, but does not flush" : NULL;
}

/* Give a loaded WQ its number and references, or free it. */
static void wq_place(struct qhca_io *io, struct qhca_wq *wq, bool flushing)
{
    struct qhca *e = io->e;
    const char *why = io->failed ? NULL : wq_impossible(e, wq, flushing);

    wq->owner.is_wq = true;
    if (!NEED(io, !why, why) ||
        !qhca_io_place(io, &e->q->qps, &wq->owner, wq->wqn)) {
        free(wq);
        return;
    }
    qhca_wq_attach(e, wq);
    if (flushing) {
        qhca_list_add_tail(&e->eth->wq_flush, &wq->flush);
    }
}

static void io_wq(struct qhca_io *io, void *obj)
{
    struct qhca_wq *wq = obj ? qhca_container((struct qhca_qpn_owner *)obj,
                                              struct qhca_wq, owner) :
                               calloc(1, sizeof(*wq));
    bool flushing;

    if (!NEED(io, wq, "out of memory")) {
        return;
    }
    IO(io, wq->wqn);
    qhca_io_about(io, "WQ", wq->wqn);
    IO(io, wq->state);
    IO(io, wq->flags);
    IO(io, wq->syndrome);
    IO(io, wq->pd);
    IO(io, wq->uar);
    wq->cq = qhca_io_must_ref(io, &io->e->q->cqs, wq->cq ? wq->cq->cqn : 0,
                              "its CQ does not exist");
    IO(io, wq->cookie);
    IO(io, wq->rx_packets);
    qhca_io_ring(io, &wq->ring, true);
    qhca_io_recv(io, &wq->recv);
    flushing = io->saving && !qhca_list_empty(&wq->flush);
    IO(io, flushing);
    if (!io->saving) {
        wq_place(io, wq, flushing);
    }
}

static bool save_is_wq(const void *obj)
{
    return ((const struct qhca_qpn_owner *)obj)->is_wq;
}

void qhca_io_wqs(struct qhca_io *io)
{
    qhca_io_each(io, &io->e->q->qps, save_is_wq, io_wq);
}

/* ---- older states: a QP in RESET, RTR or ERR with only an RQ ---- */

static void wq_fill(struct qhca_wq *wq, const struct qhca_qp *qp)
{
    wq->wqn = qp->qpn;
    wq->state = qp->state == QHCA_QPS_RESET ? QHCA_WQS_RESET :
                qp->state == QHCA_QPS_ERR ? QHCA_WQS_ERR : QHCA_WQS_RDY;
    wq->flags = qp->flags & QHCA_QP_F_STRIP_VLAN ? QHCA_WQ_F_STRIP_VLAN : 0;
    wq->syndrome = qp->syndrome;
    wq->pd = qp->pd;
    wq->uar = qp->uar;
    wq->cq = qp->rcq;
    wq->cookie = qp->cookie;
    wq->rx_packets = qp->rx_packets;
    wq->ring = qp->rq;
    wq->recv = qp->xp->recv;
}

static bool saved_wq_valid(struct qhca *e, const struct qhca_qp *qp)
{
    struct qhca_wq wq = { .wqn = 0 };

    wq_fill(&wq, qp);
    return (qp->state == QHCA_QPS_RESET || qp->state == QHCA_QPS_RTR ||
            qp->state == QHCA_QPS_ERR) &&
           !(qp->flags & ~QHCA_QP_F_STRIP_VLAN) && !qp->sq_stride &&
           !qp->scq && !qp->srq && !qp->xrcd && qhca_wq_valid(e, &wq);
}

const struct qhca_qp_ops qhca_saved_wq_ops = {
    .valid = saved_wq_valid,
    .init = qhca_xport_init,
    .free = qhca_xport_free,
    .save = qhca_io_xport,
};

static void wq_of_qp(struct qhca_io *io, struct qhca_qp *qp)
{
    struct qhca *e = io->e;
    struct qhca_wq *wq = calloc(1, sizeof(*wq));
    bool flushing = qp->xp->rq_flush;

    if (!NEED(io, wq, "out of memory")) {
        return;
    }
    qhca_io_about(io, "WQ", qp->qpn);
    wq_fill(wq, qp);
    /* The WQ keeps the QP's number, so no number is freed. */
    e->q->qps.slot[qp->qpn] = NULL;
    e->q->qps.used--;
    e->mem->pd_refs[qp->pd]--;
    e->mem->uar_refs[qp->uar]--;
    qp->rcq->refs--;
    qhca_xport_free(e, qp);
    free(qp);
    wq_place(io, wq, flushing);
}

void qhca_io_wqs_of_qps(struct qhca_io *io)
{
    struct qhca_qp *qp;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(&io->e->q->qps) && !io->failed; n++) {
        qp = io->saving ? NULL : qhca_qp_get(io->e, n);
        if (qp && qp->type == QHCA_QPT_SAVED_WQ) {
            wq_of_qp(io, qp);
        }
    }
}
