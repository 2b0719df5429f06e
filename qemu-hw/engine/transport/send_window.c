/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The window of a QP: how many request packets may be unacknowledged, and how
 * many READ responses outstanding.  It follows ACKs as in TCP (RFC 5681): it
 * doubles per round trip up to wnd_slow, then grows by one packet per round
 * trip; a loss halves it, a timeout quarters it, so that four timeouts reduce
 * any window to one packet.  Thus a peer that is slower than we are or has few
 * buffers costs time, not the connection.
 *
 * A READ larger than the window is split into requests of 1 << chunk PSNs,
 * counted from the message's first.  While responses are outstanding, that size
 * may shrink but never grow: a retry then lies within one request known to the
 * peer, or begins where none did.  A responder may reject anything else as not
 * a duplicate.
 */
#include "transport/rc.h"

/*
 * log2 of the most packets that one READ request asks for in a window of @wnd,
 * at least 1.  Over a memory link no more than over the wire, so that the peer
 * gets the same requests: it executes or refuses each as a whole.
 */
static uint8_t rd_log2(uint32_t wnd)
{
    wnd = wnd < QHCA_WINDOW_PKTS ? wnd : QHCA_WINDOW_PKTS;
    return (uint8_t)(31 - __builtin_clz(wnd));
}

/*
 * A record of a memory link may have as many packets as the largest window: one
 * more can be sent while the peer executes it.
 */
uint32_t qhca_wnd_size(struct qhca *e, const struct qhca_qp *qp)
{
    return qp->xp->wnd == QHCA_WINDOW_PKTS &&
           qhca_memlink_is_up(e, qp->av.dmac) ? QHCA_WINDOW_LINK : qp->xp->wnd;
}

void qhca_wnd_start(struct qhca_xport *xp)
{
    xp->wnd = QHCA_WINDOW_START;
    xp->wnd_slow = QHCA_WINDOW_PKTS;
    xp->wnd_acked = 0;
    xp->backoff = 0;
}

void qhca_wnd_grow(struct qhca_xport *xp, uint32_t n, uint32_t out)
{
    uint32_t by;

    if (xp->wnd == QHCA_WINDOW_PKTS || out < xp->wnd / 2) {
        return;                 /* the window was not the limit */
    }
    if (n > QHCA_WINDOW_PKTS) {
        n = QHCA_WINDOW_PKTS;
    }
    if (xp->wnd < xp->wnd_slow) {
        by = n;
    } else {
        xp->wnd_acked = (uint16_t)(xp->wnd_acked + n);
        by = xp->wnd_acked >= xp->wnd;
        if (by) {
            xp->wnd_acked = 0;
        }
    }
    xp->wnd = (uint16_t)(xp->wnd + by > QHCA_WINDOW_PKTS ?
                         QHCA_WINDOW_PKTS : xp->wnd + by);
}

void qhca_wnd_shrink(struct qhca_xport *xp, bool timeout)
{
    if (!timeout || !xp->backoff) {     /* else wnd_slow was already lowered */
        xp->wnd_slow = xp->wnd > 3 ? xp->wnd / 2 : 2;
    }
    xp->wnd = (uint16_t)(timeout ? (xp->wnd + 3) / 4 : (xp->wnd + 1) / 2);
    xp->wnd_acked = 0;
}

/*
 * Measure the round trip of one packet at a time, never of a retransmitted one.
 * A quarter of the ACK timeout is too long: the next QP in the peer's queue
 * would time out while this one keeps the peer busy.
 */
void qhca_wnd_sent(struct qhca *e, struct qhca_qp *qp, uint32_t last)
{
    struct qhca_xport *xp = qp->xp;

    if (!xp->rtt_start && qp->timeout &&
        qhca_psn_dist(last, xp->una_psn) >=
        qhca_psn_dist(xp->max_psn, xp->una_psn)) {
        xp->rtt_psn = last;
        xp->rtt_start = qhca_now(e) | 1;        /* never 0 */
    }
}

bool qhca_wnd_late(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;
    uint64_t most = UINT64_C(1024) << qhca_timer_ack_code(e, qp);
    bool late;

    if (!xp->rtt_start || qhca_psn_diff(xp->una_psn, xp->rtt_psn) <= 0) {
        return false;
    }
    late = qhca_now(e) > xp->rtt_start + most;
    xp->rtt_start = 0;
    if (late) {
        qhca_wnd_shrink(xp, false);
    }
    return late;
}

uint32_t qhca_wnd_ack_interval(const struct qhca_xport *xp)
{
    uint32_t half = (xp->wnd + 1u) / 2;

    return half < QHCA_ACK_INTERVAL ? half : QHCA_ACK_INTERVAL;
}

/* The PSNs after the cursor were never requested. */
static bool rd_is_new(const struct qhca_xport *xp)
{
    return xp->snd_psn == xp->max_psn;
}

/* No response or ACK outstanding. */
static bool window_all_answered(const struct qhca_xport *xp)
{
    return xp->snd_psn == xp->una_psn;
}

bool qhca_wnd_rd_ready(const struct qhca_qp *qp, const struct qhca_swqe *w,
                       uint32_t wnd)
{
    const struct qhca_xport *xp = qp->xp;
    uint32_t limit = qp->max_rd_atomic ? qp->max_rd_atomic : 1, part;

    /* Those in flight are counted by the chunk: it must not shrink yet. */
    if (xp->rd_reqs && (xp->rd_reqs >= limit || xp->rd_psns >= wnd ||
                        ((w->marks & QHCA_SW_STARTED) &&
                         w->chunk > rd_log2(wnd)))) {
        return false;
    }
    /* Soft-RoCE serves a QP as long as it has requests: send few ahead. */
    part = w->npkts - xp->cur_pkt < wnd ? w->npkts - xp->cur_pkt : wnd;
    if (xp->rd_reqs && wnd < QHCA_WINDOW_START && xp->rd_psns + part > wnd) {
        return false;
    }
    /* If the chunk has become too small, wait until it can grow again. */
    return !(w->marks & QHCA_SW_STARTED) || w->npkts == 1 ||
           !rd_is_new(xp) || window_all_answered(xp) ||
           rd_log2(wnd) <= w->chunk + 1;
}

uint32_t qhca_wnd_rd_psns(const struct qhca_xport *xp, struct qhca_swqe *w,
                          uint32_t wnd)
{
    uint8_t most = rd_log2(wnd);
    uint32_t left = w->npkts - xp->cur_pkt, n;

    if (!(w->marks & QHCA_SW_STARTED) || w->chunk > most ||
        (rd_is_new(xp) && window_all_answered(xp))) {
        w->chunk = most;
    }
    n = (1u << w->chunk) - (xp->cur_pkt & ((1u << w->chunk) - 1));
    if (n < left) {
        w->marks |= QHCA_SW_SPLIT;
        return n;
    }
    return left;
}

/*
 * End-to-end flow control (IBA 9.7.7.2).  Message number recv_limit + 1 from
 * the oldest on is "limited": only that one may be tried, up to the packet that
 * consumes a receive, to find out whether the peer has one.
 */
void qhca_wnd_credits(struct qhca_xport *xp, uint8_t code)
{
    uint32_t half;

    xp->credits = code & QHCA_AETH_CREDITS;
    /* 0, 1, 2, 3, 4, 6, 8, 12, 16, ... 32768 */
    half = xp->credits / 2u;
    xp->recv_limit = (uint16_t)(xp->credits < 2 ? xp->credits :
                                (2u + xp->credits % 2u) << half >> 1);
}

void qhca_wnd_rnr(struct qhca_xport *xp)
{
    xp->recv_limit = 0;
}

bool qhca_wnd_limited(const struct qhca_xport *xp, const struct qhca_swqe *w,
                      bool *probe)
{
    if (xp->credits == QHCA_ACK_UNLIMITED ||
        !qhca_wqe_takes_recv(w->opcode) || xp->recv_ahead < xp->recv_limit) {
        return false;
    }
    if (w->opcode != QHCA_WQE_RDMA_WRITE_IMM && xp->cur_pkt &&
        qhca_psn_diff(xp->una_psn, w->first_psn) > 0) {
        return false;           /* ACKed in part: it has its receive */
    }
    *probe = xp->recv_ahead == xp->recv_limit &&
             (!xp->cur_pkt || w->opcode == QHCA_WQE_RDMA_WRITE_IMM);
    return true;
}

uint32_t qhca_wnd_rd_reqs(const struct qhca_swqe *w, uint32_t from,
                          uint32_t to)
{
    return from < to ? ((to - 1) >> w->chunk) - (from >> w->chunk) + 1 : 0;
}
