/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages to a QP on a TM SRQ.  The QP holds a matched entry like a receive
 * WQE: recv_wqe.c scatters to it, and any error that fails a receive WQE fails
 * the entry.
 */
#include "transport/rc.h"
#include "transport/tag_qp.h"

/* Classify a message by its first bytes, at @p. */
static enum qhca_tm_kind tm_recv_classify(const uint8_t *p, uint32_t len,
                                          bool whole)
{
    if (len >= sizeof(struct qhca_tmh) && p[0] == QHCA_TMH_EAGER) {
        return QHCA_TM_EAGER;
    }
    if (len >= QHCA_TM_HEADERS && p[0] == QHCA_TMH_RNDV && whole &&
        len <= QHCA_TM_MAX_RNDV) {
        return QHCA_TM_RNDV;
    }
    return QHCA_TM_NO_TAG;
}

/* Hold @t in the form of a receive WQE. */
static void tm_recv_hold(struct qhca *e, struct qhca_qp *qp, struct qhca_tag *t)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_rq_wqe wqe = {
        .wr_id = qhca_le64(t->wr_id),
        .num_sge = qhca_le16(t->num_sge),
    };

    qhca_tm_unlink(qp->srq->tm, t);
    t->state = QHCA_TAG_TAKEN;
    qp->tm->tag = t;
    memcpy(xp->recv.wqe, &wqe, sizeof(wqe));
    memcpy(xp->recv.wqe + sizeof(wqe), t->sge, t->num_sge * sizeof(t->sge[0]));
    memset(&xp->recv.pos, 0, sizeof(xp->recv.pos));
    xp->recv.held = true;
    xp->recv.index = t->handle;
    xp->recv.len = 0;
    xp->recv.cap = t->cap;
    xp->recv.sges = t->num_sge;
    qhca_recv_trace(e, qp->qpn, t->handle, 0, xp->recv.wqe);
}

/* No matching entry: take the next receive WQE of the SRQ. */
static uint8_t tm_recv_unmatched(struct qhca *e, struct qhca_qp *qp,
                                 bool counts)
{
    uint8_t syn = qhca_recv_take(e, qp);

    if (syn != QHCA_SYN_RNR && qp->xp->recv.held) {
        qp->tm->kind = QHCA_TM_NO_TAG;
    }
    if (!syn && counts) {
        qp->tm->kind = QHCA_TM_UNEXPECTED;
        qp->srq->tm->seen++;
    }
    return syn;
}

/*
 * A replay after a page fault: the earlier decision is kept.  A peer that sends
 * a different packet instead gains nothing: only its data is used.
 */
static uint8_t tm_recv_again(struct qhca_qp *qp, const uint8_t **data,
                             uint32_t *len)
{
    struct qhca_tm_qp *tq = qp->tm;

    qp->xp->recv.len = 0;
    memset(&qp->xp->recv.pos, 0, sizeof(qp->xp->recv.pos));
    if (tq->kind == QHCA_TM_EAGER) {
        if (*len < sizeof(struct qhca_tmh)) {
            return QHCA_SYN_BAD_PACKET;
        }
        *data += sizeof(struct qhca_tmh);
        *len -= sizeof(struct qhca_tmh);
    } else if (tq->kind == QHCA_TM_INCOMPLETE) {
        *data = tq->headers;
        *len = qp->xp->recv.cap < QHCA_TM_HEADERS ? qp->xp->recv.cap :
                                                   QHCA_TM_HEADERS;
    }
    return QHCA_SYN_NONE;
}

uint8_t qhca_tm_recv_start(struct qhca *e, struct qhca_qp *qp,
                           const uint8_t **data, uint32_t *len,
                           bool whole)
{
    struct qhca_tm_qp *tq = qp->tm;
    enum qhca_tm_kind kind;
    struct qhca_tag *t;

    if (qp->srq->state != QHCA_SRQ_OK) {
        return QHCA_SYN_WQE_DMA;
    }
    if (tq->kind != QHCA_TM_PLAIN) {
        return tm_recv_again(qp, data, len);
    }
    tq->told = false;
    kind = tm_recv_classify(*data, *len, whole);
    /* With the WQE of a WRITE, if the peer sends this instead of that again. */
    t = kind == QHCA_TM_NO_TAG || qp->xp->recv.held ? NULL :
        qhca_tm_match(e, qp->srq->tm, qhca_get_be64(*data + 8));
    if (!t) {
        return tm_recv_unmatched(e, qp, kind != QHCA_TM_NO_TAG);
    }
    if (kind == QHCA_TM_EAGER) {
        memcpy(tq->headers, *data, sizeof(struct qhca_tmh));
        *data += sizeof(struct qhca_tmh);
        *len -= sizeof(struct qhca_tmh);
    } else {
        if (!qhca_tm_rndv_room(qp)) {
            return QHCA_SYN_RNR;
        }
        memcpy(tq->headers, *data, sizeof(tq->headers));
        *len = 0;
        if (qhca_get_be32(tq->headers + sizeof(struct qhca_tmh) + 12) >
            t->cap) {
            kind = QHCA_TM_INCOMPLETE;
            *len = t->cap < QHCA_TM_HEADERS ? t->cap : QHCA_TM_HEADERS;
        }
    }
    tq->kind = kind;
    tm_recv_hold(e, qp, t);
    return QHCA_SYN_NONE;
}

/* Add to @cqe the fields of a CQE with MATCH. */
static void tm_recv_put_match(const struct qhca_tm_qp *tq, struct qhca_cqe *cqe)
{
    struct qhca_tm_cqe c;

    memcpy(&c, cqe, sizeof(c));
    memcpy(&c.app_ctx, tq->headers + offsetof(struct qhca_tmh, app_ctx), 4);
    memcpy(&c.tag, tq->headers + offsetof(struct qhca_tmh, tag), 8);
    c.flags |= qhca_le16(QHCA_CQE_F_TM_MATCH);
    memcpy(cqe, &c, sizeof(c));
}

/* Write a CQE with MATCH; the entry remains held. */
static bool tell_match(struct qhca *e, struct qhca_qp *qp,
                       struct qhca_cqe *cqe, bool solicited)
{
    struct qhca_tm_qp *tq = qp->tm;

    cqe->wr_id = qhca_le64(tq->tag->wr_id);
    cqe->qpn = qhca_le32(qp->qpn);
    cqe->wqe_index = qhca_le32(tq->tag->handle);
    cqe->byte_len = qhca_le32(qp->xp->recv.len);
    cqe->src_qpn = qhca_le32(qp->srq->srqn);
    cqe->opcode = QHCA_CQE_OP_TM_RECV;
    cqe->flags |= qhca_le16(QHCA_CQE_F_SRQN);
    if (solicited) {
        cqe->flags |= qhca_le16(QHCA_CQE_F_SOLICITED);
    }
    tm_recv_put_match(tq, cqe);
    tq->told = true;
    if (!qhca_cq_push(e, qp->srq->cq, cqe, solicited)) {
        qhca_qp_error(e, qp, QHCA_SYN_CQ_OVERFLOW, QHCA_EV_QP_FATAL);
        return false;
    }
    return true;
}

bool qhca_tm_recv_more(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_cqe cqe = { 0 };

    return qp->tm->kind != QHCA_TM_EAGER ||
           tell_match(e, qp, &cqe, false);
}

void qhca_tm_recv_done(struct qhca *e, struct qhca_qp *qp,
                       struct qhca_cqe *cqe, bool solicited)
{
    struct qhca_tm_qp *tq = qp->tm;
    uint8_t status = QHCA_WC_SUCCESS;
    struct qhca_cqe match = { 0 };

    switch (tq->kind) {
    case QHCA_TM_RNDV:
        if (tell_match(e, qp, &match, solicited)) {
            qhca_tm_rndv_start(e, qp, cqe, solicited);
        }
        return;
    case QHCA_TM_INCOMPLETE:
        status = QHCA_WC_TM_RNDV_INCOMPLETE;
        tm_recv_put_match(tq, cqe);
        break;
    case QHCA_TM_EAGER:
        cqe->flags |= qhca_le16(QHCA_CQE_F_TM_DATA_VALID);
        if (!tq->told) {
            tm_recv_put_match(tq, cqe);
        }
        break;
    }
    qhca_recv_complete(e, qp, cqe, QHCA_CQE_OP_RECV, status, QHCA_SYN_NONE,
                       solicited);
}

void qhca_tm_recv_cqe(struct qhca_qp *qp, struct qhca_cqe *cqe)
{
    struct qhca_tm_qp *tq = qp->tm;
    bool failed = cqe->status != QHCA_WC_SUCCESS;

    switch (tq->kind) {
    case QHCA_TM_PLAIN:
        return;
    case QHCA_TM_NO_TAG:
        cqe->opcode = QHCA_CQE_OP_TM_NO_TAG;
        break;
    case QHCA_TM_UNEXPECTED:
        cqe->opcode = QHCA_CQE_OP_TM_RECV;
        if (failed) {
            /* Software will not count it as unexpected. */
            qp->srq->tm->seen--;
            qhca_tm_sync(qp->srq->tm);
        }
        break;
    default:
        cqe->opcode = QHCA_CQE_OP_TM_RECV;
        cqe->flags &= qhca_le16((uint16_t)~QHCA_CQE_F_SRQ);
        tq->tag->state = QHCA_TAG_FREE;
        tq->tag = NULL;
        break;
    }
    tq->kind = QHCA_TM_PLAIN;
}
