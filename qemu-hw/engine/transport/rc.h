/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Internals of a QP's transport, shared by the files of this folder. */
#ifndef QHCA_RC_H
#define QHCA_RC_H

#include "transport/roce.h"

/* ---- send_wqe.c ---- */
/* Returns a value from the peer. */
static inline bool qhca_wqe_is_atomic(uint8_t opcode)
{
    return opcode == QHCA_WQE_COMP_SWAP || opcode == QHCA_WQE_FETCH_ADD ||
           qhca_wqe_is_masked(opcode);
}

/* READs, atomics and other requests that are not answered by an ACK. */
static inline bool qhca_wqe_is_rd(uint8_t opcode)
{
    return opcode == QHCA_WQE_RDMA_READ || qhca_wqe_is_atomic(opcode) ||
           opcode == QHCA_WQE_FLUSH || opcode == QHCA_WQE_ATOMIC_WRITE;
}

/* Consumes a receive WQE at the peer. */
static inline bool qhca_wqe_takes_recv(uint8_t opcode)
{
    return opcode == QHCA_WQE_SEND || opcode == QHCA_WQE_SEND_IMM ||
           opcode == QHCA_WQE_SEND_INV || opcode == QHCA_WQE_RDMA_WRITE_IMM;
}

/* Executed locally, without a packet. */
static inline bool qhca_wqe_is_local(uint8_t opcode)
{
    return opcode == QHCA_WQE_LOCAL_INV || opcode == QHCA_WQE_REG_MR ||
           opcode == QHCA_WQE_BIND_MW;
}

/* Make the WQE fail with this once it is the oldest; returns @syndrome. */
static inline uint8_t qhca_swqe_fail(struct qhca_swqe *w, uint8_t status,
                                     uint8_t syndrome)
{
    w->status = status;
    w->syndrome = syndrome;
    return syndrome;
}

/*
 * Fetch WQE @index from the ring or, for a TM SRQ's QP, from the device.
 * *@addr gets its DMA address.  Returns QHCA_SYN_*.
 */
uint8_t qhca_req_fetch(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                       void *wqe, uint64_t *addr);
/*
 * Fetch WQE sq_next into the window.  False: not now; either out of memory (QP
 * in ERR), or a debugger stopped the adapter.
 */
bool qhca_req_load(struct qhca *e, struct qhca_qp *qp);
/*
 * The SGEs of @w, WQE counter @index, from the cached copy for READ responses
 * (@reading) or for sending, refetched if necessary.  NULL: unreadable or
 * changed; *@syn gets the reason.
 */
const uint8_t *qhca_req_wqe(struct qhca *e, struct qhca_qp *qp,
                            struct qhca_swqe *w, uint32_t index,
                            bool reading, uint8_t *syn);
/* Return the QP's window to the free list, if it has one. */
void qhca_send_window_put(struct qhca *e, struct qhca_qp *qp);
/* Allocate a window for @qp, which has none; false: out of memory. */
bool qhca_send_window_get(struct qhca *e, struct qhca_qp *qp);
/*
 * Check what needs no memory access of @w, unpacked or in a saved state.
 * Returns QHCA_SYN_*, and in *@status the QHCA_WC_* to fail with.
 */
uint8_t qhca_swqe_check(const struct qhca_qp *qp, const struct qhca_swqe *w,
                        uint8_t *status);
/* The WQE in flight with counter @index. */
static inline struct qhca_swqe *qhca_swqe(struct qhca_qp *qp, uint32_t index)
{
    return &qp->xp->win->w[index & (QHCA_WINDOW_WQES - 1)];
}
/*
 * Did the WQE fail because it could not be read?  That is a failure of the
 * queue: a local work queue catastrophic error (IBA 11.6.3.2).
 */
static inline bool qhca_wqe_lost(uint8_t status, uint8_t syndrome)
{
    return status == QHCA_WC_LOC_QP_OP_ERR && QHCA_SYN_IS_WQE_LOST(syndrome);
}
/* QHCA_CQE_OP_* for the opcode of a send WQE. */
uint8_t qhca_cqe_op(uint8_t wqe_opcode);
/* Write a send CQE; false: not delivered. */
bool qhca_send_cqe(struct qhca *e, struct qhca_qp *qp, uint64_t wr_id,
                   uint32_t index, uint8_t opcode, uint32_t len,
                   uint8_t status, uint8_t syndrome);

/* ---- requester.c ---- */
/* Send requests of an RC or UC QP; true: more can be sent now. */
bool qhca_req_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);
/* Set the cursor to una_psn. */
void qhca_req_cursor(struct qhca_qp *qp);
/* Go back to una_psn; @why (QHCA_SYN_*) is for the trace. */
void qhca_req_go_back(struct qhca *e, struct qhca_qp *qp, uint8_t why);
/*
 * Complete what is finished at the tail: local operations, and a failed WQE,
 * which moves the QP to an error state.
 */
void qhca_req_reap(struct qhca *e, struct qhca_qp *qp);
/* Complete the oldest WQE with success. */
void qhca_req_complete(struct qhca *e, struct qhca_qp *qp);
/* Complete the oldest WQE with an error, then go to ERR (SQE on UC and UD). */
void qhca_req_fail(struct qhca *e, struct qhca_qp *qp, uint8_t status,
                   uint8_t syndrome);

/* Initialize @xp, except for the list link of its timer. */
void qhca_xport_fresh(struct qhca_xport *xp);
/* Treat PSNs from una_psn on as never sent. */
void qhca_xport_unsend(struct qhca_xport *xp);

/* ---- send_window.c: how much of a QP may be outstanding ---- */
/* Reset the window to its initial size. */
void qhca_wnd_start(struct qhca_xport *xp);
/* @n of @out outstanding PSNs were acknowledged. */
void qhca_wnd_grow(struct qhca_xport *xp, uint32_t n, uint32_t out);
/* Packets were lost, according to a NAK or a @timeout. */
void qhca_wnd_shrink(struct qhca_xport *xp, bool timeout);
/* A packet up to PSN @last, with AckReq set, was sent. */
void qhca_wnd_sent(struct qhca *e, struct qhca_qp *qp, uint32_t last);
/* After una_psn moved: was the ACK so late that the window was shrunk? */
bool qhca_wnd_late(struct qhca *e, struct qhca_qp *qp);
/* Most packets that may be sent without AckReq. */
uint32_t qhca_wnd_ack_interval(const struct qhca_xport *xp);
/*
 * The window of @qp, in packets: at least 1.  It may change from one call to
 * the next, as a peer decides whether its memory link is used: a step of the
 * requester asks once.
 */
uint32_t qhca_wnd_size(struct qhca *e, const struct qhca_qp *qp);
/*
 * May the next request of @w, the READ or atomic at the cursor, be sent in a
 * window of @wnd?
 */
bool qhca_wnd_rd_ready(const struct qhca_qp *qp, const struct qhca_swqe *w,
                       uint32_t wnd);
/* Number of PSNs that the next request of READ @w covers. */
uint32_t qhca_wnd_rd_psns(const struct qhca_xport *xp, struct qhca_swqe *w,
                          uint32_t wnd);
/* Is PSN number @n of @w the last one covered by a request? */
static inline bool qhca_wnd_rd_end(const struct qhca_swqe *w, uint32_t n)
{
    return n + 1 == w->npkts || !((n + 1) & ((1u << w->chunk) - 1));
}
/* AETH credit code @code came with the ACK of all before una_psn. */
void qhca_wnd_credits(struct qhca_xport *xp, uint8_t code);
/* The peer had no receive WQE for the message at una_psn. */
void qhca_wnd_rnr(struct qhca_xport *xp);
/*
 * Do the peer's credits not cover message @w, which is at the cursor?  If so,
 * *@probe is set if its next packet may be sent nevertheless.
 */
bool qhca_wnd_limited(const struct qhca_xport *xp, const struct qhca_swqe *w,
                      bool *probe);
/* Number of requests that cover PSNs @from .. @to - 1 of @w. */
uint32_t qhca_wnd_rd_reqs(const struct qhca_swqe *w, uint32_t from,
                          uint32_t to);

/* ---- recv_ack.c ---- */
/* Process a response to an RC QP or XRC initiator. */
void qhca_ack_rx(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_rx *rx);
/* The QP's ACK timer expired. */
void qhca_ack_timeout(struct qhca *e, struct qhca_qp *qp);
/* The response @psn has come, but the peer has revoked its data. */
void qhca_ack_lost(struct qhca *e, struct qhca_qp *qp, uint32_t psn);
/* The QP's RNR timer expired. */
void qhca_ack_rnr_over(struct qhca *e, struct qhca_qp *qp);
/* qp->timeout has changed: it applies to the packets in flight, too. */
void qhca_ack_new_timeout(struct qhca *e, struct qhca_qp *qp);
/*
 * The requester no longer waits for a page: start its timer.  @again: request
 * responses that were dropped deliberately; does not count as a retry.
 */
void qhca_ack_resume(struct qhca *e, struct qhca_qp *qp, bool again);

/* ---- responder.c ---- */
/* Process a request to a connected QP. */
void qhca_rsp_rx(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_rx *rx);
/* Requests were dropped deliberately: make the peer go back at once. */
void qhca_rsp_ask_again(struct qhca *e, struct qhca_qp *qp);
/* Requests @psn .. @psn + @n - 1 have come, but the peer has revoked them. */
void qhca_rsp_lost(struct qhca *e, struct qhca_qp *qp, uint32_t psn,
                   uint32_t n);

/* ---- send_response.c ---- */
/* The entry with counter @index of the response queue. */
static inline struct qhca_resp *qhca_rspq_at(struct qhca_xport *xp,
                                             uint32_t index)
{
    return &xp->rspq[index & (QHCA_RSPQ - 1)];
}
/* Append a zeroed entry; NULL: queue full. */
struct qhca_resp *qhca_rspq_push(struct qhca *e, struct qhca_qp *qp);
/* Is there no room for another response? */
bool qhca_rspq_full(const struct qhca_xport *xp);
/* Queue an ACK up to @psn; if the queue is full, the peer will ask again. */
void qhca_owe_ack(struct qhca *e, struct qhca_qp *qp, uint32_t psn);
/* Queue a NAK with AETH @syndrome; false: queue full, none will be sent. */
bool qhca_owe_nak(struct qhca *e, struct qhca_qp *qp, uint32_t psn,
                  uint8_t syndrome);
/* Send queued responses.  QHCA_SENT: none left to send, or budget used up. */
enum qhca_send qhca_rsp_run(struct qhca *e, struct qhca_qp *qp,
                            unsigned *budget);
/*
 * Software destroys @qp, resets it or moves it to ERR: send the queued
 * responses up to the first READ with data, even if the wire is blocked
 * (last_acks.c).
 */
void qhca_rsp_send_last(struct qhca *e, struct qhca_qp *qp);
/* Are there responses that can be sent now? */
static inline bool qhca_rsp_owed(const struct qhca_qp *qp)
{
    const struct qhca_xport *xp = qp->xp;

    return xp->rspq_head != xp->rspq_tail &&
           (!qhca_odp_waits(qp, QHCA_ODP_READ) ||
            xp->rspq[xp->rspq_tail & (QHCA_RSPQ - 1)].rnr);
}

/* ---- ud.c ---- */
/* Send datagrams of @qp; true: more can be sent now. */
bool qhca_ud_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);
/* Receive a datagram. */
void qhca_ud_rx(struct qhca *e, struct qhca_qp *qp,
                const struct qhca_rx *rx);

/* ---- mcast.c ---- */
/*
 * The multicast group @gid, if it has members and @dmac is its MAC address;
 * else NULL.
 */
struct qhca_mcg_group *qhca_mcg_find(struct qhca *e, const uint8_t gid[16],
                                     const uint8_t *dmac);
/* Is @qp a member of the group? */
bool qhca_mcg_has(const struct qhca_mcg_group *g, const struct qhca_qp *qp);
/* Deliver the packet to all members of rx->mcg that can receive it. */
void qhca_mcg_rx(struct qhca *e, const struct qhca_rx *rx);

/* ---- last_acks.c ---- */
/* Keep @frame until the wire is ready; false: too long, or too many kept. */
bool qhca_last_ack_keep(struct qhca *e, const void *frame, size_t len);

/* ---- flush.c ---- */
/* Flush while the budget lasts; true: more to flush. */
bool qhca_flush_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);

/* ---- timer.c ---- */
/* (Re)start the QP's timer in class @cls: 0..31, or QHCA_TIMER_RNR + code. */
void qhca_timer_start(struct qhca *e, struct qhca_qp *qp, uint8_t cls);
/* The same for the QP's local ACK timeout, which must not be 0. */
void qhca_timer_start_ack(struct qhca *e, struct qhca_qp *qp);
/* Stop the QP's timer, if it is running. */
void qhca_timer_stop(struct qhca *e, struct qhca_qp *qp);
/* The QP's ACK timeout code, without backoff. */
uint8_t qhca_timer_ack_code(const struct qhca *e, const struct qhca_qp *qp);
/* Duration of RNR timer @code (IBA table 45), ns. */
uint64_t qhca_rnr_ns(uint8_t code);

/* ---- save or load a QP's page faults and tag matching ---- */
void qhca_io_odp(struct qhca_io *io, struct qhca_qp *qp);
void qhca_io_tm_qp(struct qhca_io *io, struct qhca_qp *qp);

#endif /* QHCA_RC_H */
