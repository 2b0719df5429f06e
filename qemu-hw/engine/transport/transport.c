/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Entry points to the transport from the QP object: creation, state changes,
 * doorbells, running a QP.
 */
#include <stdlib.h>

#include "transport/rc.h"
#include "transport/tag_qp.h"

bool qhca_xport_dev_init(struct qhca *e)
{
    struct qhca_xport_dev *xd = e->xd;
    unsigned i;

    for (i = 0; i < QHCA_TIMER_CLASSES; i++) {
        qhca_list_init(&xd->timers[i]);
    }
    xd->timer_mask = 0;
    xd->free_windows = NULL;
    xd->free_count = 0;
    xd->loop_head = 0;
    xd->loop_tail = 0;
    xd->loop = calloc(QHCA_LOOP_SLOTS, sizeof(*xd->loop));
    return xd->loop != NULL;
}

void qhca_xport_dev_free(struct qhca *e)
{
    struct qhca_send_window *win = e->xd->free_windows, *next;

    while (win) {
        next = win->next;
        free(win);
        win = next;
    }
    e->xd->free_windows = NULL;
    free(e->xd->loop);
    e->xd->loop = NULL;
}

void qhca_xport_dev_reset(struct qhca *e)
{
    /* Timers and windows were released with their QPs. */
    e->xd->loop_tail = e->xd->loop_head;
    e->xd->last_ack_tail = e->xd->last_ack_head;
}

void qhca_xport_fresh(struct qhca_xport *xp)
{
    memset(xp, 0, sizeof(*xp));
    xp->credits = QHCA_ACK_UNLIMITED;
    qhca_wnd_start(xp);
}

void qhca_xport_unsend(struct qhca_xport *xp)
{
    xp->snd_psn = xp->una_psn;
    xp->cur_pkt = 0;
    xp->rd_psns = 0;
    xp->rd_reqs = 0;
    xp->recv_ahead = 0;
    xp->rtt_start = 0;
    xp->since_ack = 0;
}

/* Initial state of a new QP. */
static void xport_start(struct qhca_qp *qp)
{
    qhca_xport_fresh(qp->xp);
    qp->xp->qp = qp;
    qhca_list_init(&qp->xp->timer);
}

/* Discard everything: the QP is in RESET, or being destroyed. */
static void xport_clear(struct qhca *e, struct qhca_qp *qp)
{
    qhca_memlink_revoke_qp(e, qp->qpn);
    qhca_timer_stop(e, qp);
    qhca_send_window_put(e, qp);
    qhca_odp_free(qp);
    xport_start(qp);
}

bool qhca_xport_init(struct qhca *e, struct qhca_qp *qp,
                     const struct qhca_qpc *in)
{
    (void)e;
    (void)in;
    xport_start(qp);
    return true;
}

void qhca_xport_free(struct qhca *e, struct qhca_qp *qp)
{
    xport_clear(e, qp);
}

/*
 * Make software ring for each receive it posts from now on.  The fence makes
 * the flag visible before the device looks for receives (see qhca_dbrec).
 */
static void ask_for_rq_doorbell(struct qhca *e, struct qhca_qp *qp)
{
    if (qp->rq.stride && !qp->srq) {
        qhca_dbrec_notify(e, QHCA_DMA_RECORD, qp->qpn, qp->rq.dbrec, true);
        e->ops.dma_fence(e->opaque);
    }
}

void qhca_xport_error(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;

    qhca_memlink_revoke_qp(e, qp->qpn);
    qhca_timer_stop(e, qp);
    qhca_odp_cancel(qp, QHCA_ODP_SEND | QHCA_ODP_LAND);
    xp->req_state = QHCA_REQ_IDLE;
    xp->drain = false;
    xp->una_psn = xp->max_psn;
    qhca_xport_unsend(xp);      /* UC: abandon the current message */
    xp->ask = false;
    xp->took_back = false;
    xp->rd_out = 0;
    if (qp->flags & QHCA_QP_F_SQ_RECORD) {
        qhca_sq_notify(e, qp, true);
        qhca_sq_poll_dbrec(e, qp);
    }
    xp->sq_flush = true;
    if (qp->state == QHCA_QPS_ERR) {
        qhca_odp_cancel(qp, QHCA_ODP_RECV);
        if (!xp->fatal_nak) {
            qhca_odp_cancel(qp, QHCA_ODP_READ);
            xp->rspq_tail = xp->rspq_head;
            xp->rd_pending = 0;
        }
        ask_for_rq_doorbell(e, qp);
        xp->rq_flush = true;
    }
    qhca_qp_schedule(e, qp);
}

static void xport_start_responder(struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;

    xp->exp_psn = qp->rq_psn & QHCA_PSN_MASK;
    xp->msn = 0;
}

static void xport_start_requester(struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;

    xp->snd_psn = qp->sq_psn & QHCA_PSN_MASK;
    xp->una_psn = xp->snd_psn;
    xp->max_psn = xp->snd_psn;
    xp->cur = qp->sq_tail;
    xp->cur_pkt = 0;
}

void qhca_xport_state(struct qhca *e, struct qhca_qp *qp, uint8_t old)
{
    struct qhca_xport *xp = qp->xp;

    switch (qp->state) {
    case QHCA_QPS_RESET:
        xport_clear(e, qp);
        break;
    case QHCA_QPS_RTR:
        if (old == QHCA_QPS_INIT) {
            xport_start_responder(qp);
        }
        break;
    case QHCA_QPS_RTS:
        if (old == QHCA_QPS_RTR) {
            xport_start_requester(qp);
        }
        /* Leaving SQE: do not flush WQEs posted from now on. */
        if (old == QHCA_QPS_SQE) {
            xp->flush_end = qp->sq_head;
        }
        xp->drain = false;
        xp->retry_left = qp->retry_cnt;
        xp->rnr_left = qp->rnr_retry;
        qhca_qp_schedule(e, qp);
        break;
    case QHCA_QPS_SQD:
        if (old != QHCA_QPS_SQD) {
            xp->drain = qp->en_sqd_event;
            qhca_qp_schedule(e, qp);
        }
        break;
    case QHCA_QPS_SQE:
    case QHCA_QPS_ERR:
        if (old != qp->state) {
            qhca_xport_error(e, qp);
        }
        break;
    default:
        break;
    }
}

void qhca_xport_sq_doorbell(struct qhca *e, struct qhca_qp *qp)
{
    if (qp->state == QHCA_QPS_ERR || qp->state == QHCA_QPS_SQE) {
        qp->xp->sq_flush = true;
    } else if (qp->state != QHCA_QPS_RTS) {
        return;                 /* SQD: do not start them */
    }
    qhca_qp_schedule(e, qp);
}

void qhca_xport_rq_doorbell(struct qhca *e, struct qhca_qp *qp)
{
    if (qp->state == QHCA_QPS_ERR && !qp->srq) {
        qp->xp->rq_flush = true;
        qhca_qp_schedule(e, qp);
    }
}

static bool xport_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget,
                      bool (*send)(struct qhca *e, struct qhca_qp *qp,
                                   unsigned *budget))
{
    struct qhca_xport *xp = qp->xp;
    bool more = false;

    /* A flush that waits for a peer does not delay the NAK. */
    if ((xp->sq_flush || xp->rq_flush) && qhca_flush_run(e, qp, budget) &&
        !(e->tx_wait && qhca_rsp_owed(qp))) {
        return true;
    }
    if (qhca_rsp_owed(qp)) {
        /* Long READ responses must not starve our own requests. */
        unsigned spare = *budget / 4;

        *budget -= spare;
        if (qhca_rsp_run(e, qp, budget) == QHCA_BLOCKED) {
            *budget += spare;
            return true;
        }
        *budget += spare;
        if (xp->sq_flush || xp->rq_flush) {
            return true;
        }
    }
    if (qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD) {
        more = send(e, qp, budget);
    }
    return more || qhca_rsp_owed(qp);
}

bool qhca_xport_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget,
                    bool (*send)(struct qhca *e, struct qhca_qp *qp,
                                 unsigned *budget))
{
    bool more;

    if (!qhca_active(e)) {
        return true;            /* since others have had their turn */
    }
    e->xd->loop_full = false;
    more = xport_run(e, qp, budget, send);
    if (more && e->xd->loop_full && *budget) {
        /* Not blocked by the wire: loopback will have room very soon. */
        --*budget;
    }
    return more;
}

void qhca_xport_query(struct qhca *e, struct qhca_qp *qp,
                      struct qhca_qpc *out)
{
    struct qhca_xport *xp = qp->xp;
    uint8_t rsp = QHCA_RSP_IDLE;

    (void)e;
    if (qhca_odp_waits(qp, QHCA_ODP_RECV | QHCA_ODP_READ)) {
        rsp = QHCA_RSP_WAIT_PAGE;
    } else if (xp->naked) {
        rsp = QHCA_RSP_NAKED;
    } else if (xp->rd_pending) {
        rsp = QHCA_RSP_READ;
    } else if (xp->rsp_op == QHCA_RSPOP_SEND ||
               xp->rsp_op == QHCA_RSPOP_WRITE) {
        rsp = QHCA_RSP_MESSAGE;
    }
    out->snd_psn = qhca_le32(xp->snd_psn);
    out->una_psn = qhca_le32(xp->una_psn);
    out->exp_psn = qhca_le32(xp->exp_psn);
    out->msn = qhca_le32(xp->msn);
    out->credits = qhca_le32(xp->credits);
    out->retry_left = xp->retry_left;
    out->rnr_left = xp->rnr_left;
    out->req_state =
        qhca_odp_waits(qp, QHCA_ODP_SEND | QHCA_ODP_LAND) ?
        QHCA_REQ_WAIT_PAGE : xp->req_state;
    out->rsp_state = rsp;
    out->rd_outstanding = xp->rd_out;
    out->deadline = qhca_le64(xp->deadline);
}

/* ---- QP types ---- */

static bool connected_init(struct qhca *e, struct qhca_qp *qp,
                           const struct qhca_qpc *in)
{
    return qhca_xport_init(e, qp, in) &&
           (!qp->srq || !qp->srq->tm || qp->xrcd || qhca_tm_qp_init(qp));
}

static void connected_give_up(struct qhca *e, struct qhca_qp *qp)
{
    qhca_rsp_send_last(e, qp);
    if (qp->tm) {
        qhca_tm_qp_drop(e, qp, true);
    }
    qhca_qp_clear(qp);
    qhca_xrc_unbind(qp);
    qp->state = QHCA_QPS_RESET;
    xport_clear(e, qp);
}

static void connected_free(struct qhca *e, struct qhca_qp *qp)
{
    if (qp->tm) {
        qhca_tm_qp_drop(e, qp, false);
        qhca_tm_qp_free(qp);
    }
    qhca_xport_free(e, qp);
}

/* See qhca_xrc_srq_going(). */
static void connected_forget_srq(struct qhca_qp *qp,
                                 const struct qhca_srq *srq)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_resp *r;
    uint32_t i;

    if (qp->srq == srq) {
        qhca_xrc_unbind(qp);
        xp->recv.held = false;
    }
    /* Its number may be reused. */
    for (i = xp->rspq_tail; i != xp->rspq_head; i++) {
        r = qhca_rspq_at(xp, i);
        if (r->srqn == srq->srqn) {
            r->srqn = 0;
        }
    }
}

static void connected_save(struct qhca_io *io, struct qhca_qp *qp)
{
    if (qp->tm) {
        qhca_io_tm_qp(io, qp);
    }
    qhca_io_xport(io, qp);
}

static bool connected_run(struct qhca *e, struct qhca_qp *qp,
                          unsigned *budget)
{
    return qhca_xport_run(e, qp, budget, qhca_req_run);
}

static bool ud_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget)
{
    return qhca_xport_run(e, qp, budget, qhca_ud_run);
}

const struct qhca_qp_ops qhca_connected_qp_ops = {
    .init = connected_init,
    .give_up = connected_give_up,
    .free = connected_free,
    .error = qhca_xport_error,
    .run = connected_run,
    .forget_srq = connected_forget_srq,
    .query = qhca_xport_query,
    .save = connected_save,
};

const struct qhca_qp_ops qhca_ud_qp_ops = {
    .init = qhca_xport_init,
    .free = qhca_xport_free,
    .error = qhca_xport_error,
    .run = ud_run,
    .query = qhca_xport_query,
    .save = qhca_io_xport,
};
