/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responses owed by RC QPs and XRC targets: ACKs, NAKs, atomic results and READ
 * responses, in a bounded queue, sent in order as far as the wire takes them.
 */
#include "transport/rc.h"

/* Timeouts from 16.8 ms on: see rspq_ack_waits(). */
#define ACK_WAITS_CODE  12

/* Append an entry; NULL if no more than @reserve are free. */
static struct qhca_resp *rspq_push(struct qhca *e, struct qhca_qp *qp,
                                   uint32_t reserve)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_resp *r;

    if (xp->rspq_head - xp->rspq_tail >= QHCA_RSPQ - reserve) {
        return NULL;
    }
    r = qhca_rspq_at(xp, xp->rspq_head++);
    memset(r, 0, sizeof(*r));
    qhca_qp_schedule(e, qp);
    return r;
}

struct qhca_resp *qhca_rspq_push(struct qhca *e, struct qhca_qp *qp)
{
    return rspq_push(e, qp, 1);      /* the last entry is for a NAK */
}

bool qhca_rspq_full(const struct qhca_xport *xp)
{
    return xp->rspq_head - xp->rspq_tail >= QHCA_RSPQ - 1;
}

/*
 * Queue an ACK by extending the last entry of the queue, if there is one: a
 * queued ACK, or a READ or atomic response, which the ACK then follows at once.
 * Thus ACKs never fill the queue.
 */
void qhca_owe_ack(struct qhca *e, struct qhca_qp *qp, uint32_t psn)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_resp *r;

    if (xp->rspq_head != xp->rspq_tail) {
        r = qhca_rspq_at(xp, xp->rspq_head - 1);
        if (r->kind != QHCA_RESP_ACK) {
            r->ack = true;
            r->ack_psn = psn;
            return;
        }
        if ((r->syndrome & QHCA_AETH_TYPE) == QHCA_AETH_ACK) {
            r->psn = psn;
            return;
        }
    }
    r = rspq_push(e, qp, 1);
    if (r) {
        r->kind = QHCA_RESP_ACK;
        r->syndrome = QHCA_AETH_ACK | QHCA_ACK_UNLIMITED;
        r->psn = psn;
    }
}

bool qhca_owe_nak(struct qhca *e, struct qhca_qp *qp, uint32_t psn,
                  uint8_t syndrome)
{
    struct qhca_resp *r = rspq_push(e, qp, 0);

    if (r) {
        r->kind = QHCA_RESP_ACK;
        r->syndrome = syndrome;
        r->psn = psn;
    }
    return r;
}

/* ---- sending responses ---- */

static uint32_t rsp_put_aeth(struct qhca_frame *f, uint8_t syndrome,
                             uint32_t msn)
{
    qhca_put_be32(f->bth + QHCA_BTH_LEN, (uint32_t)syndrome << 24 | msn);
    return QHCA_AETH_LEN;
}

/* READ @r failed with @syn: replace all queued responses by a NAK. */
static void rsp_read_failed(struct qhca *e, struct qhca_qp *qp,
                            struct qhca_resp *r, uint8_t syn)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t psn = r->psn;
    bool access = syn < QHCA_SYN_TABLE_INVALID;

    xp->rspq_head = 0;
    xp->rspq_tail = 0;
    xp->rd_pending = 0;
    qhca_count(e, access ? QHCA_STAT_ROCE_ACCESS_ERRORS :
               QHCA_STAT_ROCE_OP_ERRORS);
    qhca_owe_nak(e, qp, psn, access ? QHCA_NAK_ACCESS : QHCA_NAK_OP);
    xp->fatal_nak = true;
    qhca_qp_error(e, qp, syn, access ? QHCA_EV_QP_ACCESS_ERR :
                                       QHCA_EV_QP_FATAL);
}

/*
 * How many packets of READ @r may be sent together as @f?  Those of a duplicate
 * are sent one by one: where super-frames were lost, single packets may get
 * through.
 */
static uint32_t rspq_together(struct qhca *e, const struct qhca_qp *qp,
                              const struct qhca_resp *r, struct qhca_frame *f,
                              bool refs)
{
    uint32_t left = qhca_packets(r->left, qp->path_mtu), n;

    if (r->uncounted || r->alone || left < 2) {
        return 1;
    }
    n = qhca_super_packet_most(e, f, qhca_mtu_bytes(qp->path_mtu), refs);
    return n < left ? n : left;
}

/*
 * Copy the data of the packets of READ @r to @f, or refer to it in a memory
 * link's record: then f->refs is set.  @copy: always copy.
 */
static uint8_t rspq_read(struct qhca *e, struct qhca_qp *qp,
                         const struct qhca_resp *r, struct qhca_frame *f,
                         uint32_t ext, uint32_t len, bool copy)
{
    uint32_t pd = qhca_qp_pd(e, qp, r->srqn);
    uint8_t syn;

    f->refs = false;
    if (copy) {
        return qhca_mr_read(e, pd, false, r->rkey, r->va,
                            qhca_frame_payload(f, ext), len,
                            QHCA_ACCESS_REMOTE_READ, qp->qpn);
    }
    if (!qhca_memlink_refs_begin(e, f->ml, qp->qpn, false)) {
        return QHCA_SYN_NONE;
    }
    syn = qhca_mr_share(e, pd, false, r->rkey, r->va, len,
                        QHCA_ACCESS_REMOTE_READ, qp->qpn);
    f->refs = !syn && !e->ml->out.unfit;
    return syn;
}

/*
 * May an ACK over a memory link arrive some milliseconds later?  Not if the
 * peer may take that for a loss, or for congestion.  Its timeout is usually
 * ours.
 */
static bool rspq_ack_waits(const struct qhca *e, const struct qhca_qp *qp,
                           uint8_t aeth)
{
    uint8_t code = qhca_timer_ack_code(e, qp);

    return (aeth & QHCA_AETH_TYPE) == QHCA_AETH_ACK &&
           (!code || code >= ACK_WAITS_CODE);
}

/*
 * Send the next packets of @r; *@packets gets their number.  *@done: the last
 * was among them.
 */
static enum qhca_send rspq_respond(struct qhca *e, struct qhca_qp *qp,
                                   struct qhca_resp *r, uint32_t *packets,
                                   bool *done)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t mtu = qhca_mtu_bytes(qp->path_mtu), len = 0, ext = 0, n = 1;
    uint8_t op = QHCA_OP_ACK, aeth = QHCA_AETH_ACK | QHCA_ACK_UNLIMITED, syn;
    enum qhca_send sent;
    struct qhca_frame f;
    bool copy = false;

    sent = qhca_frame_begin(e, &qp->av, qp->qpn, qp->dest_qpn, &f);
    if (sent != QHCA_SENT) {
        return sent;
    }
    *done = true;
    *packets = 1;
    switch (r->kind) {
    case QHCA_RESP_ACK:
        aeth = r->syndrome;
        f.ack_waits = rspq_ack_waits(e, qp, aeth);
        ext = rsp_put_aeth(&f, aeth, xp->msn);
        break;
    case QHCA_RESP_ATOMIC:
        op = QHCA_OP_ATOMIC_ACK;
        ext = rsp_put_aeth(&f, aeth, xp->msn);
        qhca_put_be64(f.bth + QHCA_BTH_LEN + ext, r->va);
        ext += QHCA_ATACK_LEN;
        break;
    case QHCA_RESP_READ:
        n = rspq_together(e, qp, r, &f, true);
    again:
        *done = r->left <= n * mtu;
        len = *done ? r->left : n * mtu;
        op = r->started ? (*done ? QHCA_OP_READ_RESP_LAST :
                           QHCA_OP_READ_RESP_MIDDLE) :
             *done ? QHCA_OP_READ_RESP_ONLY : QHCA_OP_READ_RESP_FIRST;
        ext = op == QHCA_OP_READ_RESP_MIDDLE ? 0 :
              rsp_put_aeth(&f, aeth, xp->msn);
        e->trying = n > 1;
        copy |= !f.ml || len < QHCA_MEMLINK_REFS_MIN;
        syn = len ? rspq_read(e, qp, r, &f, ext, len, copy) : QHCA_SYN_NONE;
        e->trying = false;
        if (!syn && !copy && !f.refs) {
            copy = true;
            n = rspq_together(e, qp, r, &f, false);
            goto again;
        }
        if (syn && n > 1) {
            r->alone = true;    /* send what there is before it */
            n = 1;
            goto again;
        }
        if (syn == QHCA_SYN_PAGE_FAULT) {
            e->mem->page_fault.len += r->left - len;
            if (qhca_odp_stall(e, qp, QHCA_PAGE_FAULT_READ)) {
                *done = false;
                return QHCA_SENT;       /* nothing to send for now */
            }
        }
        if (syn) {
            rsp_read_failed(e, qp, r, syn);
            *done = false;      /* the queue has changed */
            return QHCA_SENT;
        }
        f.packets = (uint16_t)n;
        break;
    }
    qhca_frame_bth(&f, op | qhca_qp_class(qp), false, false, len, qp->dest_qpn,
                   r->psn);
    sent = qhca_frame_end(e, &f, qp->qpn, ext, len);
    if (sent != QHCA_SENT) {
        return sent;
    }
    *packets = n;
    qp->tx_packets += n;
    qhca_odp_passed(qp, QHCA_PAGE_FAULT_READ);
    if (r->kind == QHCA_RESP_ACK) {
        qhca_count(e, QHCA_STAT_ROCE_ACK_TX);
    }
    if (!*done) {
        r->started = true;
        r->psn = qhca_psn_add(r->psn, n);
        r->va += len;
        r->left -= len;
    }
    return QHCA_SENT;
}

/* READ @r waits for a page, and the peer has requested it again. */
static enum qhca_send rsp_send_rnr(struct qhca *e, struct qhca_qp *qp,
                                   struct qhca_resp *r)
{
    enum qhca_send sent;
    struct qhca_frame f;
    uint32_t ext;

    sent = qhca_frame_begin(e, &qp->av, qp->qpn, qp->dest_qpn, &f);
    if (sent == QHCA_SENT) {
        ext = rsp_put_aeth(&f, QHCA_AETH_RNR | (qp->min_rnr_timer & 31),
                           qp->xp->msn);
        qhca_frame_bth(&f, QHCA_OP_ACK | qhca_qp_class(qp), false, false, 0,
                       qp->dest_qpn, r->psn);
        sent = qhca_frame_end(e, &f, qp->qpn, ext, 0);
    }
    if (sent == QHCA_SENT) {
        qp->tx_packets++;
        qhca_count(e, QHCA_STAT_ROCE_ACK_TX);
        qhca_count(e, QHCA_STAT_ROCE_RNR_NAK_TX);
    }
    r->rnr = sent == QHCA_BLOCKED;
    return sent;
}

/* All of @r, the oldest, was sent. */
static void rspq_done(struct qhca_xport *xp, struct qhca_resp *r)
{
    if (r->kind != QHCA_RESP_ACK && !r->uncounted && xp->rd_pending) {
        xp->rd_pending--;
    }
    if (r->ack) {
        r->kind = QHCA_RESP_ACK;
        r->syndrome = QHCA_AETH_ACK | QHCA_ACK_UNLIMITED;
        r->psn = r->ack_psn;
        r->ack = false;
    } else {
        xp->rspq_tail++;
    }
}

enum qhca_send qhca_rsp_run(struct qhca *e, struct qhca_qp *qp,
                            unsigned *budget)
{
    struct qhca_xport *xp = qp->xp;

    while (qhca_rsp_owed(qp) && *budget) {
        struct qhca_resp *r = qhca_rspq_at(xp, xp->rspq_tail);
        uint32_t packets = 1;
        bool done = false;

        if (qhca_odp_waits(qp, QHCA_ODP_READ)) {
            if (rsp_send_rnr(e, qp, r) == QHCA_BLOCKED) {
                return QHCA_BLOCKED;
            }
            --*budget;
            qhca_break_point(e);
            continue;
        }
        r->rnr = false;
        switch (rspq_respond(e, qp, r, &packets, &done)) {
        case QHCA_BLOCKED:
            return QHCA_BLOCKED;
        case QHCA_BAD_AV:
            /* our own address is gone: no response can be sent */
            done = true;
            break;
        case QHCA_SENT:
            break;
        }
        *budget -= packets < *budget ? packets : *budget;
        if (done) {
            rspq_done(xp, r);
        }
        qhca_break_point(e);
    }
    return QHCA_SENT;
}

void qhca_rsp_send_last(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_resp *r;
    uint32_t tail, packets;
    bool done;

    e->xd->parting = true;
    while (qhca_rsp_owed(qp)) {
        tail = xp->rspq_tail;
        r = qhca_rspq_at(xp, tail);
        /* FLUSH and ATOMIC WRITE are answered by a READ without data. */
        if ((r->kind == QHCA_RESP_READ && r->left) ||
            rspq_respond(e, qp, r, &packets, &done) != QHCA_SENT ||
            xp->rspq_tail != tail) {
            break;
        }
        rspq_done(xp, r);
        qhca_cost(e, 1);
        qhca_break_point(e);
    }
    e->xd->parting = false;
}
