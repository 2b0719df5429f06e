/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responses of the peer: ACKs, NAKs, READ responses, and the lack of one: how
 * they affect WQEs in flight (IBA 9.7.5, 9.9.2).
 */
#include "transport/rc.h"

static bool ack_alive(const struct qhca_qp *qp)
{
    return qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD;
}

/* Advance una_psn by @n. */
static void una_step(struct qhca_xport *xp, uint32_t n)
{
    uint32_t ahead = qhca_psn_dist(xp->snd_psn, xp->una_psn);

    xp->una_psn = qhca_psn_add(xp->una_psn, n);
    if (ahead < n) {
        /* ACKed after going back: the cursor is corrected later */
        xp->snd_psn = xp->una_psn;
    }
}

/*
 * Acknowledge everything before @target, una_psn .. max_psn.  Stops at a READ
 * or atomic whose response is missing, or if the QP fails; true: reached.
 */
static bool ack_advance(struct qhca *e, struct qhca_qp *qp, uint32_t target)
{
    struct qhca_xport *xp = qp->xp;

    while (xp->una_psn != target && ack_alive(qp)) {
        struct qhca_swqe *w;
        uint32_t left, n;

        if (qp->sq_tail == qp->sq_next) {
            return false;   /* GCOVR_EXCL_LINE: PSNs sent belong to WQEs */
        }
        w = qhca_swqe(qp, qp->sq_tail);
        if (qhca_wqe_is_rd(w->opcode)) {
            return false;
        }
        left = w->npkts - qhca_psn_dist(xp->una_psn, w->first_psn);
        n = qhca_psn_dist(target, xp->una_psn);
        if (n < left) {
            una_step(xp, n);
        } else {
            una_step(xp, left);
            qhca_req_complete(e, qp);
            qhca_req_reap(e, qp);
        }
    }
    return xp->una_psn == target;
}

/* Handle an advance of una_psn from @una; snd_psn was @snd before. */
static void ack_progress(struct qhca *e, struct qhca_qp *qp, uint32_t snd,
                         uint32_t una)
{
    struct qhca_xport *xp = qp->xp;

    if (xp->una_psn == una || !ack_alive(qp)) {
        return;
    }
    xp->retry_left = qp->retry_cnt;
    xp->rnr_left = qp->rnr_retry;
    xp->back_valid = false;
    xp->backoff = 0;
    if (!qhca_wnd_late(e, qp)) {
        qhca_wnd_grow(xp, qhca_psn_dist(xp->una_psn, una),
                      qhca_psn_dist(snd, una));
    }
    if (xp->ask && qhca_psn_diff(xp->una_psn, xp->ask_psn) >= 0) {
        xp->ask = false;
    }
    if (xp->una_psn == xp->max_psn) {
        xp->took_back = false;  /* it had arrived before */
    }
    if (qhca_psn_dist(xp->una_psn, una) > qhca_psn_dist(snd, una)) {
        qhca_req_cursor(qp);
    }
    if (xp->req_state != QHCA_REQ_WAIT_RNR) {
        if (xp->una_psn == xp->max_psn) {
            qhca_timer_stop(e, qp);
        } else if (qp->timeout) {
            qhca_timer_start_ack(e, qp);
        }
    }
    qhca_qp_schedule(e, qp);
}

/* Packets were lost: use up a retry.  False: there is none, QP in error. */
static bool ack_use_retry(struct qhca *e, struct qhca_qp *qp, uint8_t why)
{
    struct qhca_xport *xp = qp->xp;

    if (!xp->retry_left) {
        qhca_count(e, QHCA_STAT_ROCE_RETRY_EXCEEDED);
        qhca_req_fail(e, qp, QHCA_WC_RETRY_EXC_ERR, why);
        return false;
    }
    xp->retry_left--;
    qhca_wnd_shrink(xp, why == QHCA_SYN_TIMEOUT);
    if (why == QHCA_SYN_TIMEOUT && xp->backoff < QHCA_BACKOFF_MAX) {
        xp->backoff++;
    }
    return true;
}

/* Retransmit from una_psn on.  False: retries exhausted, QP in error. */
static bool ack_retry(struct qhca *e, struct qhca_qp *qp, uint8_t why)
{
    if (!qp->xp->took_back && !ack_use_retry(e, qp, why)) {
        return false;
    }
    qp->xp->took_back = false;
    /* The peer may expect the other ICRC of a FLUSH; see icrc.c. */
    if (qp->sq_tail != qp->sq_next &&
        qhca_swqe(qp, qp->sq_tail)->opcode == QHCA_WQE_FLUSH) {
        qp->xp->crc_twice = !qp->xp->crc_twice;
    }
    qhca_req_go_back(e, qp, why);
    if (qp->timeout) {
        qhca_timer_start_ack(e, qp);
    }
    qhca_qp_schedule(e, qp);
    return true;
}

/*
 * The peer lacks una_psn, according to a NAK or a response to a later PSN
 * (implied NAK).  It may repeat that; go back only once per PSN, then rely on
 * the timer, unless what was sent after going back has been taken back, too.
 */
static void ack_lacks(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;

    if (xp->req_state == QHCA_REQ_WAIT_RNR ||
        (xp->back_valid && xp->back_psn == xp->una_psn && !xp->took_back)) {
        return;
    }
    if (ack_retry(e, qp, QHCA_SYN_PSN_SEQ)) {
        xp->back_valid = true;
        xp->back_psn = xp->una_psn;
    }
}

static void ack_rnr(struct qhca *e, struct qhca_qp *qp, uint8_t code)
{
    struct qhca_xport *xp = qp->xp;

    qp->rnr_naks_rx++;
    qhca_count(e, QHCA_STAT_ROCE_RNR_NAK_RX);
    if (xp->req_state == QHCA_REQ_WAIT_RNR) {
        return;                 /* duplicate RNR NAK */
    }
    if (!xp->rnr_left) {
        qhca_count(e, QHCA_STAT_ROCE_RNR_EXCEEDED);
        qhca_req_fail(e, qp, QHCA_WC_RNR_RETRY_EXC_ERR, QHCA_SYN_RNR);
        return;
    }
    if (qp->rnr_retry != 7) {
        xp->rnr_left--;
    }
    qhca_wnd_rnr(xp);
    qhca_req_go_back(e, qp, QHCA_SYN_RNR);
    xp->req_state = QHCA_REQ_WAIT_RNR;
    qhca_timer_start(e, qp, QHCA_TIMER_RNR + code);
}

void qhca_ack_rnr_over(struct qhca *e, struct qhca_qp *qp)
{
    qp->xp->req_state = QHCA_REQ_ACTIVE;
    if (ack_alive(qp)) {
        /* una_psn is sent next; until then nothing is outstanding */
        qhca_qp_schedule(e, qp);
    }
}

void qhca_ack_timeout(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;

    if (!ack_alive(qp) || xp->una_psn == xp->max_psn) {
        return;
    }
    if (qhca_odp_waits(qp, QHCA_ODP_SEND | QHCA_ODP_LAND)) {
        /*
         * Waiting for a page, possibly before an ACK was requested.  The timer
         * restarts when the page is there.
         */
        return;
    }
    if (xp->snd_psn == xp->una_psn) {
        /*
         * Nothing was sent since going back (the wire is blocked), so the peer
         * is not to blame.  The next packet sent starts the timer.
         */
        qhca_qp_schedule(e, qp);
        return;
    }
    qp->timeouts++;
    qhca_count(e, QHCA_STAT_ROCE_TIMEOUTS);
    xp->back_valid = false;
    ack_retry(e, qp, QHCA_SYN_TIMEOUT);
}

void qhca_xport_took_back(struct qhca *e, uint32_t qpn)
{
    struct qhca_qp *qp = qhca_qp_get(e, qpn);

    if (qp && qhca_qp_reliable(qp)) {
        qp->xp->took_back = qp->xp->una_psn != qp->xp->max_psn;
    }
}

void qhca_ack_lost(struct qhca *e, struct qhca_qp *qp, uint32_t psn)
{
    struct qhca_xport *xp = qp->xp;
    bool took_back = xp->took_back;

    if (!ack_alive(qp) || qhca_psn_dist(psn, xp->una_psn) >=
                          qhca_psn_dist(xp->max_psn, xp->una_psn)) {
        return;
    }
    if (qhca_odp_waits(qp, QHCA_ODP_LAND)) {
        qhca_odp_missed(qp, QHCA_PAGE_FAULT_LAND);
        return;
    }
    if (psn == xp->una_psn) {
        xp->back_valid = false; /* this may be the answer after going back */
    } else if (xp->back_valid && xp->back_psn == xp->una_psn) {
        return;
    }
    /* The peer took it back; no retry either, if we ask at once. */
    xp->took_back = true;
    ack_lacks(e, qp);
    xp->took_back &= took_back;
}

void qhca_ack_resume(struct qhca *e, struct qhca_qp *qp, bool again)
{
    struct qhca_xport *xp = qp->xp;

    if (!ack_alive(qp) || xp->una_psn == xp->max_psn ||
        xp->req_state == QHCA_REQ_WAIT_RNR) {
        return;
    }
    if (again) {
        qhca_req_go_back(e, qp, QHCA_SYN_PAGE_FAULT);
    }
    if (qp->timeout && (again || !xp->deadline)) {
        qhca_timer_start_ack(e, qp);
    }
}

void qhca_ack_new_timeout(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;

    xp->rtt_start = 0;          /* a quarter of the old one is the limit */
    if (xp->req_state == QHCA_REQ_WAIT_RNR) {
        return;                 /* the next packet sent starts it */
    }
    qhca_timer_stop(e, qp);
    if (qp->timeout && ack_alive(qp) && xp->una_psn != xp->max_psn) {
        qhca_timer_start_ack(e, qp);
    }
}

/* ACK or NAK with AETH @syn; @psn is within the outstanding range. */
static void rx_ack(struct qhca *e, struct qhca_qp *qp, uint32_t psn,
                   uint8_t syn)
{
    static const struct {
        uint8_t status, syndrome;
    } fatal[] = {
        [QHCA_NAK_INV_REQ - QHCA_NAK_SEQ] = { QHCA_WC_REM_INV_REQ_ERR,
                                              QHCA_SYN_NAK_INV_REQ },
        [QHCA_NAK_ACCESS - QHCA_NAK_SEQ] = { QHCA_WC_REM_ACCESS_ERR,
                                             QHCA_SYN_NAK_ACCESS },
        [QHCA_NAK_OP - QHCA_NAK_SEQ] = { QHCA_WC_REM_OP_ERR,
                                         QHCA_SYN_NAK_OP },
    };
    struct qhca_xport *xp = qp->xp;
    uint32_t una = xp->una_psn, snd = xp->snd_psn;
    bool there;

    switch (syn & QHCA_AETH_TYPE) {
    case QHCA_AETH_ACK:
        there = ack_advance(e, qp, qhca_psn_add(psn, 1));
        if (there) {
            qhca_wnd_credits(xp, syn);
        }
        ack_progress(e, qp, snd, una);
        if (!there && ack_alive(qp)) {
            ack_lacks(e, qp);
        }
        return;
    case QHCA_AETH_RNR:
    case QHCA_AETH_NAK:
        /* all earlier PSNs have arrived */
        there = ack_advance(e, qp, psn);
        ack_progress(e, qp, snd, una);
        break;
    default:                    /* reserved */
        there = ack_advance(e, qp, psn);
        ack_progress(e, qp, snd, una);
        if (there && ack_alive(qp)) {
            qhca_req_fail(e, qp, QHCA_WC_BAD_RESP_ERR, QHCA_SYN_BAD_PACKET);
        }
        return;
    }
    if (!ack_alive(qp)) {
        return;
    }
    if (!there) {
        ack_lacks(e, qp);
        return;
    }
    if ((syn & QHCA_AETH_TYPE) == QHCA_AETH_RNR) {
        ack_rnr(e, qp, syn & 31);
    } else if (syn == QHCA_NAK_SEQ) {
        qp->seq_naks_rx++;
        qhca_count(e, QHCA_STAT_ROCE_SEQ_NAK_RX);
        ack_lacks(e, qp);
    } else if (syn <= QHCA_NAK_OP) {
        qhca_req_fail(e, qp, fatal[syn - QHCA_NAK_SEQ].status,
                      fatal[syn - QHCA_NAK_SEQ].syndrome);
    } else {
        qhca_req_fail(e, qp, QHCA_WC_BAD_RESP_ERR, QHCA_SYN_BAD_PACKET);
    }
}

/* Store response data at offset @off of the oldest WQE. */
static uint8_t ack_store(struct qhca *e, struct qhca_qp *qp,
                         struct qhca_swqe *w,
                         uint32_t off, const void *data, uint32_t len)
{
    const uint8_t *sges;
    uint8_t syn = QHCA_SYN_NONE;

    if (!len) {
        return QHCA_SYN_NONE;
    }
    if (w->num == 1) {
        syn = qhca_mr_write(e, qhca_sq_pd(qp),
                            qp->flags & QHCA_QP_F_PRIVILEGED, w->lkey,
                            w->laddr + off, data, len,
                            QHCA_ACCESS_LOCAL_WRITE, qp->qpn);
        if (syn == QHCA_SYN_PAGE_FAULT) {
            e->mem->page_fault.len += w->len - off - len;
        }
        return syn;
    }
    sges = qhca_req_wqe(e, qp, w, qp->sq_tail, true, &syn);
    if (!sges) {
        return syn;
    }
    return qhca_sgl_copy(e, qhca_sgl_qp(qp, qhca_sq_pd(qp)), sges, w->num,
                         &qp->xp->rd_pos, off, (void *)data, len, true);
}

static void store_failed(struct qhca *e, struct qhca_qp *qp, uint8_t syn)
{
    bool wqe = syn >= QHCA_SYN_WQE_DMA && syn < QHCA_SYN_DB_INDEX;

    qhca_req_fail(e, qp, wqe ? QHCA_WC_LOC_QP_OP_ERR : QHCA_WC_LOC_PROT_ERR,
                  syn);
}

/* Is @opcode answered by READ responses? */
static bool wants_read(uint8_t opcode)
{
    return opcode == QHCA_WQE_RDMA_READ || opcode == QHCA_WQE_FLUSH ||
           opcode == QHCA_WQE_ATOMIC_WRITE;
}

/* READ response or atomic ACK for the oldest WQE, at una_psn. */
static void rx_data(struct qhca *e, struct qhca_qp *qp,
                    const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_swqe *w = qhca_swqe(qp, qp->sq_tail);
    uint32_t una = xp->una_psn, snd = xp->snd_psn;
    bool last, end, read = rx->flags & QHCA_OPF_READ;
    uint8_t syn;

    if (wants_read(w->opcode) != read || !qhca_wqe_is_rd(w->opcode) ||
        ((rx->flags & QHCA_OPF_AETH) &&
         (rx->ext[0] & QHCA_AETH_TYPE) != QHCA_AETH_ACK)) {
        qhca_req_fail(e, qp, QHCA_WC_BAD_RESP_ERR, QHCA_SYN_BAD_PACKET);
        return;
    }
    if (read) {
        uint32_t mtu = qhca_mtu_bytes(qp->path_mtu);
        uint32_t n = qhca_psn_dist(una, w->first_psn);
        uint32_t off = n * mtu;
        uint32_t len = w->opcode == QHCA_WQE_RDMA_READ ? w->len : 0;

        last = n + 1 == w->npkts;
        /*
         * A responder may begin a repeated response with First or Middle, so
         * only the end is checked.  Even the end of a part may be off, if the
         * parts were larger when the responder was asked.
         */
        if ((last != !!(rx->flags & QHCA_OPF_END) &&
             (last || !(w->marks & QHCA_SW_SPLIT))) ||
            rx->payload_len != (last ? len - off : mtu)) {
            qhca_req_fail(e, qp, QHCA_WC_BAD_RESP_ERR, QHCA_SYN_BAD_PACKET);
            return;
        }
        syn = ack_store(e, qp, w, off, rx->payload, rx->payload_len);
    } else {
        uint64_t old = qhca_get_be64(rx->ext + QHCA_AETH_LEN);

        last = true;
        old = qhca_le64(old);
        syn = ack_store(e, qp, w, 0, &old, sizeof(old));
    }
    if (syn == QHCA_SYN_PAGE_FAULT &&
        qhca_odp_stall_rx(e, qp, QHCA_PAGE_FAULT_LAND, rx)) {
        return;
    }
    if (syn) {
        store_failed(e, qp, syn);
        return;
    }
    qhca_odp_passed(qp, QHCA_PAGE_FAULT_LAND);
    end = qhca_wnd_rd_end(w, qhca_psn_dist(una, w->first_psn));
    if (qhca_psn_dist(snd, una) && xp->rd_psns) {
        xp->rd_psns--;
        if (end && xp->rd_reqs) {
            xp->rd_reqs--;
        }
    }
    una_step(xp, 1);
    if (last) {
        qhca_req_complete(e, qp);
        qhca_req_reap(e, qp);
    }
    if ((rx->flags & QHCA_OPF_AETH) && ack_alive(qp)) {
        qhca_wnd_credits(xp, rx->ext[0]);
    }
    ack_progress(e, qp, snd, una);
}

void qhca_ack_rx(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    bool ack = (rx->opcode & QHCA_OP_MASK) == QHCA_OP_ACK;
    uint32_t una, snd;

    if (!ack_alive(qp)) {
        return;
    }
    if (ack) {
        qhca_count(e, QHCA_STAT_ROCE_ACK_RX);
    }
    if (ack && qhca_psn_add(rx->psn, 1) == xp->una_psn &&
        (rx->ext[0] & QHCA_AETH_TYPE) == QHCA_AETH_ACK) {
        /* Repeated ACK: the peer has posted receives (IBA 9.7.7.2). */
        qhca_wnd_credits(xp, rx->ext[0]);
        qhca_qp_schedule(e, qp);
        return;
    }
    /* Ghost: not outstanding (IBA 9.7.5.1.2). */
    if (qhca_psn_dist(rx->psn, xp->una_psn) >=
        qhca_psn_dist(xp->max_psn, xp->una_psn)) {
        return;
    }
    if (qhca_odp_waits(qp, QHCA_ODP_LAND)) {
        qhca_odp_drop(e, qp, QHCA_PAGE_FAULT_LAND, rx);
        return;
    }
    if (ack) {
        rx_ack(e, qp, rx->psn, rx->ext[0]);
        return;
    }
    una = xp->una_psn;
    snd = xp->snd_psn;
    /* A response acknowledges everything before it. */
    if (ack_advance(e, qp, rx->psn)) {
        ack_progress(e, qp, snd, una);
        if (ack_alive(qp)) {
            rx_data(e, qp, rx);
        }
    } else {
        ack_progress(e, qp, snd, una);
        if (ack_alive(qp)) {
            ack_lacks(e, qp);
        }
    }
}
