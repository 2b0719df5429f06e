/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The machines of a QP: what the files of this floor know of each other. */
#ifndef QHCA_RC_H
#define QHCA_RC_H

#include "transport/roce.h"

/* ---- send_wqe.c ---- */
static inline bool qhca_wqe_is_masked(uint8_t opcode)
{
    return opcode == QHCA_WQE_MASKED_COMP_SWAP ||
           opcode == QHCA_WQE_MASKED_FETCH_ADD;
}

/* Brings a value back from the peer. */
static inline bool qhca_wqe_is_atomic(uint8_t opcode)
{
    return opcode == QHCA_WQE_COMP_SWAP || opcode == QHCA_WQE_FETCH_ADD ||
           qhca_wqe_is_masked(opcode);
}

/* READs and atomics, and what is answered like them: not by an ACK. */
static inline bool qhca_wqe_is_rd(uint8_t opcode)
{
    return opcode == QHCA_WQE_RDMA_READ || qhca_wqe_is_atomic(opcode) ||
           opcode == QHCA_WQE_FLUSH || opcode == QHCA_WQE_ATOMIC_WRITE;
}

/* Takes a receive at the peer. */
static inline bool qhca_wqe_takes_recv(uint8_t opcode)
{
    return opcode == QHCA_WQE_SEND || opcode == QHCA_WQE_SEND_IMM ||
           opcode == QHCA_WQE_SEND_INV || opcode == QHCA_WQE_RDMA_WRITE_IMM;
}

static inline bool qhca_wqe_is_local(uint8_t opcode)
{
    return opcode == QHCA_WQE_LOCAL_INV || opcode == QHCA_WQE_REG_MR ||
           opcode == QHCA_WQE_BIND_MW;
}

/* The WQE fails, when it is the oldest, with this; returns @syndrome. */
static inline uint8_t qhca_swqe_fail(struct qhca_swqe *w, uint8_t status,
                                     uint8_t syndrome)
{
    w->status = status;
    w->syndrome = syndrome;
    return syndrome;
}

/* qhca_sq_fetch(), or the device's own WQE of a QP on a tag matching SRQ. */
uint8_t qhca_req_fetch(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                       void *wqe, uint64_t *addr);
/*
 * Fetch WQE sq_next into the window.  False: not now; there was no memory and
 * the QP is in ERR, or a debugger stopped the adapter.
 */
bool qhca_req_load(struct qhca *e, struct qhca_qp *qp);
/*
 * The SGEs of @w, WQE counter @index, from the cached copy @reading (READ
 * responses) or the one being sent; fetched again if need be.  NULL: it
 * cannot be read or has changed; *@syn says why.
 */
const uint8_t *qhca_req_wqe(struct qhca *e, struct qhca_qp *qp,
                            struct qhca_swqe *w, uint32_t index,
                            bool reading, uint8_t *syn);
void qhca_window_put(struct qhca *e, struct qhca_qp *qp);
/* Give @qp, which has none, a window; false: no memory. */
bool qhca_window_get(struct qhca *e, struct qhca_qp *qp);
/* May a connected QP such as @qp send that? */
bool qhca_send_opcode_ok(const struct qhca_qp *qp, uint8_t opcode);
static inline struct qhca_swqe *qhca_swqe(struct qhca_qp *qp, uint32_t index)
{
    return &qp->xp->win->w[index & (QHCA_WINDOW_WQES - 1)];
}
/*
 * Is this what comes of a WQE that could not be read?  That is the queue's own
 * failure: a local work queue catastrophic error (IBA 11.6.3.2).
 */
static inline bool qhca_wqe_lost(uint8_t status, uint8_t syndrome)
{
    return status == QHCA_WC_LOC_QP_OP_ERR && QHCA_SYN_IS_WQE_LOST(syndrome);
}
/* Bytes of a send WQE of a connected QP before SGEs or data. */
static inline uint32_t qhca_wqe_header(const struct qhca_qp *qp,
                                       uint8_t opcode)
{
    if (qp->type == QHCA_QPT_XRC_INI) {
        return sizeof(struct qhca_xrc_wqe);
    }
    return qhca_wqe_is_masked(opcode) ? sizeof(struct qhca_masked_wqe) :
                                        sizeof(struct qhca_sq_wqe);
}
/* QHCA_CQE_OP_* of a send WQE's opcode. */
uint8_t qhca_cqe_op(uint8_t wqe_opcode);
/* Send CQE with a status; true: delivered. */
bool qhca_send_cqe(struct qhca *e, struct qhca_qp *qp, uint64_t wr_id,
                   uint32_t index, uint8_t opcode, uint32_t len,
                   uint8_t status, uint8_t syndrome);

/* ---- requester.c ---- */
/* Send requests of an RC or UC QP; true: more to do right now. */
bool qhca_req_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);
/* Point the cursor at una_psn: send from there again. */
void qhca_req_cursor(struct qhca_qp *qp);
/* Go back to una_psn because of @why (QHCA_SYN_*). */
void qhca_req_go_back(struct qhca *e, struct qhca_qp *qp, uint8_t why);
/*
 * Complete what is finished at the tail: local operations, and a WQE that
 * failed, which ends the QP.
 */
void qhca_req_reap(struct qhca *e, struct qhca_qp *qp);
/* The oldest WQE succeeded. */
void qhca_req_complete(struct qhca *e, struct qhca_qp *qp);
/* The oldest WQE failed: CQE, then ERR (SQE on UC and UD). */
void qhca_req_fail(struct qhca *e, struct qhca_qp *qp, uint8_t status,
                   uint8_t syndrome);

/* @xp as a new QP has it, but for the list of its timer. */
void qhca_xport_fresh(struct qhca_xport *xp);
/* What is behind una_psn counts as never sent. */
void qhca_xport_unsend(struct qhca_xport *xp);

/* ---- window.c: how much of a QP may be under way ---- */
void qhca_wnd_start(struct qhca_xport *xp);
/* @n PSNs were acknowledged, of @out that were outstanding. */
void qhca_wnd_grow(struct qhca_xport *xp, uint32_t n, uint32_t out);
/* The peer lost packets: as it says, or as its silence does (@timeout). */
void qhca_wnd_shrink(struct qhca_xport *xp, bool timeout);
/* A packet that goes up to PSN @last goes out, and asks for an acknowledge. */
void qhca_wnd_sent(struct qhca *e, struct qhca_qp *qp, uint32_t last);
/* Something was acknowledged: did it take so long that the window shrank? */
bool qhca_wnd_late(struct qhca *e, struct qhca_qp *qp);
/* Ask for an acknowledge at least after so many packets. */
uint32_t qhca_wnd_ack_interval(const struct qhca_xport *xp);
/* May the next request of the READ or atomic under the cursor go out? */
bool qhca_wnd_rd_ready(const struct qhca_qp *qp, const struct qhca_swqe *w);
/* How many PSNs the next request of @w, a READ, asks for. */
uint32_t qhca_wnd_rd_psns(const struct qhca_xport *xp, struct qhca_swqe *w);
/* Is PSN number @n of @w the last that a request has asked for? */
static inline bool qhca_wnd_rd_end(const struct qhca_swqe *w, uint32_t n)
{
    return n + 1 == w->npkts || !((n + 1) & ((1u << w->chunk) - 1));
}
/* An acknowledge of all before una_psn has the AETH credit code @code. */
void qhca_wnd_credits(struct qhca_xport *xp, uint8_t code);
/* The peer had no receive for the message at una_psn. */
void qhca_wnd_rnr(struct qhca_xport *xp);
/*
 * Has the peer told of no receive for message @w, which is under the cursor?
 * Then *@probe says whether its next packet may go out nevertheless.
 */
bool qhca_wnd_limited(const struct qhca_xport *xp, const struct qhca_swqe *w,
                      bool *probe);
/* Requests that ask for the PSNs @from .. @to - 1 of @w. */
uint32_t qhca_wnd_rd_reqs(const struct qhca_swqe *w, uint32_t from,
                          uint32_t to);

/* ---- completer.c ---- */
void qhca_comp_rx(struct qhca *e, struct qhca_qp *qp,
                  const struct qhca_rx *rx);
/* The QP's timer fired. */
void qhca_comp_timeout(struct qhca *e, struct qhca_qp *qp);
void qhca_comp_rnr_over(struct qhca *e, struct qhca_qp *qp);
/*
 * The requester waits for a page no more: its timer runs again.  @again:
 * responses were dropped on purpose, ask for them; that is no retry.
 */
void qhca_comp_resume(struct qhca *e, struct qhca_qp *qp, bool again);

/* ---- responder.c ---- */
void qhca_rsp_rx(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_rx *rx);
/* Requests were dropped on purpose: tell the peer to go back at once. */
void qhca_rsp_ask_again(struct qhca *e, struct qhca_qp *qp);

/* ---- response.c ---- */
static inline struct qhca_resp *qhca_rspq_at(struct qhca_xport *xp,
                                             uint32_t index)
{
    return &xp->rspq[index & (QHCA_RSPQ - 1)];
}
/* A zeroed entry at the end of the queue, or NULL: full. */
struct qhca_resp *qhca_rspq_push(struct qhca *e, struct qhca_qp *qp);
bool qhca_rspq_full(const struct qhca_xport *xp);
/* Owe an acknowledge up to @psn; with the queue full the peer asks again. */
void qhca_owe_ack(struct qhca *e, struct qhca_qp *qp, uint32_t psn);
/* Owe a NAK with AETH @syndrome; false: the queue is full, none will go. */
bool qhca_owe_nak(struct qhca *e, struct qhca_qp *qp, uint32_t psn,
                  uint8_t syndrome);
/* Send owed responses. QHCA_SENT: none to send now or budget used up. */
enum qhca_send qhca_rsp_run(struct qhca *e, struct qhca_qp *qp,
                            unsigned *budget);
/*
 * Software destroys @qp, resets it or moves it to ERR: send the acknowledges it
 * owes, up to the first READ, even if the wire is busy.
 */
void qhca_rsp_part(struct qhca *e, struct qhca_qp *qp);
/* ---- last_acks.c ---- */
/* Keep @frame until the wire is ready; false: it is too long, or too many. */
bool qhca_last_ack_keep(struct qhca *e, const void *frame, size_t len);
/* ---- send_response.c ---- */
/* Are there responses that could be sent now? */
static inline bool qhca_rsp_owed(const struct qhca_qp *qp)
{
    const struct qhca_xport *xp = qp->xp;

    return xp->rspq_head != xp->rspq_tail &&
           (!qhca_odp_waits(qp, QHCA_ODP_READ) ||
            xp->rspq[xp->rspq_tail & (QHCA_RSPQ - 1)].rnr);
}

/* ---- ud.c ---- */
bool qhca_ud_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);
void qhca_ud_rx(struct qhca *e, struct qhca_qp *qp,
                const struct qhca_rx *rx);

/* ---- mcast.c ---- */
/*
 * The multicast group of @gid that has members, for a frame to @dmac; NULL:
 * none, or the MAC address is not the one that belongs to the group.
 */
struct qhca_mcg_group *qhca_mcg_find(struct qhca *e, const uint8_t gid[16],
                                     const uint8_t *dmac);
/* A packet for rx->mcg: to each member that can receive it. */
void qhca_mcg_rx(struct qhca *e, const struct qhca_rx *rx);

/* ---- flush.c ---- */
/* Flush while the budget lasts; true: there is more. */
bool qhca_flush_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);

/* ---- timer.c ---- */
/* (Re)start the QP's timer in a class: 0..31, or QHCA_TIMER_RNR + code. */
void qhca_timer_start(struct qhca *e, struct qhca_qp *qp, uint8_t cls);
/* The same, for the QP's local ACK timeout; it must have one. */
void qhca_timer_start_ack(struct qhca *e, struct qhca_qp *qp);
void qhca_timer_stop(struct qhca *e, struct qhca_qp *qp);
/* Code of the QP's ACK timeout, without back-off. */
uint8_t qhca_timer_ack_code(const struct qhca *e, const struct qhca_qp *qp);
/* Nanoseconds of an RNR timer code (IBA table 45). */
uint64_t qhca_rnr_ns(uint8_t code);

/* ---- saved state ---- */
void qhca_io_odp(struct qhca_io *io, struct qhca_qp *qp);
void qhca_io_tm_qp(struct qhca_io *io, struct qhca_qp *qp);

#endif /* QHCA_RC_H */
