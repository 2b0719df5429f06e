/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Consistency checks for a QP in each state.  Transitions set only what changes
 * and rely on the rest, so a loaded QP must be in a condition that transitions
 * could have produced.
 */
#include "transport/rc.h"
#include "transport/tag_qp.h"

static bool qp_is_ud(const struct qhca_qp *qp)
{
    return !qhca_qp_connected(qp);
}

/* Is the QP as qhca_qp_clear() and a new struct qhca_xport leave it? */
static bool qp_untouched(const struct qhca_qp *qp)
{
    struct qhca_xport fresh, xp;

    qhca_xport_fresh(&fresh);
    memcpy(&xp, qp->xp, sizeof(xp));
    xp.qp = NULL;
    memset(&xp.timer, 0, sizeof(xp.timer));     /* points to itself */
    return !memcmp(&xp, &fresh, sizeof(xp)) &&
           !(qp->sq_head | qp->sq_next | qp->sq_tail |
             qp->rq.head | qp->rq.tail);
}

/* Nothing in flight, no ACK outstanding. */
static bool requester_rests(const struct qhca_xport *xp)
{
    return xp->una_psn == xp->max_psn && xp->snd_psn == xp->una_psn &&
           !xp->cur_pkt && !xp->rd_psns && !xp->rd_out;
}

static const char *qp_check_rtr(const struct qhca_qp *qp)
{
    const struct qhca_xport *xp = qp->xp;

    if (!requester_rests(xp) || xp->win || xp->back_valid ||
        xp->since_ack || xp->ask ||
        xp->req_state != QHCA_REQ_IDLE || qp->sq_next != qp->sq_tail ||
        (qp->sq_head != qp->sq_tail && !qp->tm) ||
        qhca_odp_waits(qp, QHCA_ODP_SEND | QHCA_ODP_LAND)) {
        return "it sends before RTS";
    }
    return xp->sq_flush || xp->rq_flush || xp->drain || xp->fatal_nak ?
           "it flushes before RTS" : NULL;
}

static const char *qp_check_rts(const struct qhca_qp *qp)
{
    const struct qhca_xport *xp = qp->xp;

    if (xp->drain && qp->state != QHCA_QPS_SQD) {
        return "it drains outside of SQD";
    }
    if (xp->rq_flush || xp->fatal_nak) {
        return "its receives are flushed outside of ERR";
    }
    if (!xp->sq_flush) {
        return qp_is_ud(qp) || xp->win ||
               (requester_rests(xp) && xp->cur == qp->sq_next) ?
               NULL : "the WQEs in flight are missing";
    }
    /* It left SQE before everything was flushed. */
    if (qhca_qp_reliable(qp) || !requester_rests(xp)) {
        return "it flushes but cannot have been in SQE";
    }
    return xp->flush_end - qp->sq_tail <= qp->sq_head - qp->sq_tail &&
           qp->sq_next - qp->sq_tail <= xp->flush_end - qp->sq_tail ?
           NULL : "flushing would never end";
}

/* SQE and ERR: nothing is sent any more. */
static const char *qp_check_failed(const struct qhca_qp *qp)
{
    const struct qhca_xport *xp = qp->xp;
    bool sqe = qp->state == QHCA_QPS_SQE;

    if (!requester_rests(xp) || xp->since_ack || xp->ask || xp->drain ||
        xp->req_state == QHCA_REQ_WAIT_RNR ||
        qhca_odp_waits(qp, QHCA_ODP_SEND | QHCA_ODP_LAND)) {
        return "it is in error, but waits for ACKs";
    }
    /* RTS would continue from there. */
    if (!xp->sq_flush && (qp->sq_head != qp->sq_tail ||
                          (sqe && xp->cur != qp->sq_tail))) {
        return "it is in error, but does not flush";
    }
    if (sqe && (qhca_qp_reliable(qp) || xp->rq_flush || xp->fatal_nak)) {
        return "it cannot be in SQE";
    }
    return !sqe && (qhca_odp_waits(qp, QHCA_ODP_RECV) ||
                    (xp->rspq_head != xp->rspq_tail && !xp->fatal_nak)) ?
           "it is in error, but owes responses" : NULL;
}

/* Checks for all states. */
static const char *qp_always(const struct qhca_qp *qp)
{
    const struct qhca_xport *xp = qp->xp;
    bool under_way = qp->sq_next != qp->sq_tail;
    bool live = qp->state != QHCA_QPS_ERR;

    if (qp_is_ud(qp) && (under_way || xp->win || xp->una_psn != xp->max_psn ||
                         xp->snd_psn != xp->una_psn)) {
        return "it is a datagram QP with WQEs in flight";
    }
    if (under_way && !xp->win) {
        return "the WQEs in flight are missing";
    }
    if ((!qhca_qp_reliable(qp) || qp->type == QHCA_QPT_XRC_INI) &&
        xp->rspq_head != xp->rspq_tail) {
        return "it owes responses, but acknowledges nothing";
    }
    if (qhca_qp_connected(qp) && !qp->path_mtu &&
        (xp->win || xp->recv.held || xp->rspq_head != xp->rspq_tail)) {
        return "it has no path MTU";
    }
    /* The SRQ of a target may have been destroyed during its message. */
    if (live && xp->rsp_op == QHCA_RSPOP_SEND && !xp->recv.held &&
        !qp->xrcd) {
        return "it receives a message without a receive WQE";
    }
    if (qp->tm && qp->tm->kind >= QHCA_TM_EAGER && !xp->recv.held) {
        return "it holds a tag, but no receive";
    }
    /* The rendezvous begins with the packet, or the QP goes to ERR. */
    if (live && qp->tm && qp->tm->kind == QHCA_TM_RNDV) {
        return "it holds a tag for a rendezvous that has not begun";
    }
    if (xp->recv.held && !qhca_recv_cq(qp)) {
        return "it holds a receive, but has no CQ for it";
    }
    return NULL;
}

const char *qhca_qp_impossible(const struct qhca_qp *qp)
{
    const char *why = qp_always(qp);

    if (why) {
        return why;
    }
    switch (qp->state) {
    case QHCA_QPS_RESET:
    case QHCA_QPS_INIT:
        return qp_untouched(qp) ? NULL :
               "it is not in use, but has state";
    case QHCA_QPS_RTR:
        return qp_check_rtr(qp);
    case QHCA_QPS_RTS:
    case QHCA_QPS_SQD:
        return qp_check_rts(qp);
    default:
        return qp_check_failed(qp);
    }
}
