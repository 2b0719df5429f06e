/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The requester of RC, XRC and UC: turns send WQEs into packets.
 *
 * WQEs sq_tail .. sq_next - 1 are in flight and described in the QP's window.
 * A cursor (cur, cur_pkt, snd_psn) designates the next packet; it can pause at
 * any packet and be moved back to the oldest unacknowledged one.
 */
#include "transport/rc.h"
#include "transport/tag_qp.h"

/* Half of the PSN space: the limit for outstanding PSNs (IBA 9.7.1). */
#define PSN_SPAN    0x800000U
/*
 * With this many packets in flight, software need not ring for more: the next
 * acknowledgment arrives before the wire runs idle.
 */
#define ENOUGH_PKTS 32

/* Gather bytes @off .. @off + @len - 1 of the message into @buf. */
static uint8_t req_gather(struct qhca *e, struct qhca_qp *qp,
                          struct qhca_swqe *w, uint32_t off, uint8_t *buf,
                          uint32_t len)
{
    const uint8_t *data;
    uint8_t syn = QHCA_SYN_NONE;

    if (!len) {
        return QHCA_SYN_NONE;
    }
    if (w->num == 1 && !(w->flags & QHCA_WQE_F_INLINE)) {
        syn = qhca_mr_read(e, qhca_sq_pd(qp),
                           qp->flags & QHCA_QP_F_PRIVILEGED, w->lkey,
                           w->laddr + off, buf, len, 0, qp->qpn);
        if (syn == QHCA_SYN_PAGE_FAULT) {
            e->mem->page_fault.len += w->len - off - len;
        }
        return syn;
    }
    data = qhca_req_wqe(e, qp, w, qp->xp->cur, false, &syn);
    if (!data) {
        return syn;
    }
    if (w->flags & QHCA_WQE_F_INLINE) {
        memcpy(buf, data + off, len);
        return QHCA_SYN_NONE;
    }
    return qhca_sgl_copy(e, qhca_sgl_qp(qp, qhca_sq_pd(qp)), data, w->num,
                         &qp->xp->snd_pos, off, buf, len, false);
}

/*
 * Only the payload of messages that are acknowledged may stay where it is:
 * software does not reuse its memory before that.
 */
static bool req_can_share(const struct qhca_qp *qp, const struct qhca_swqe *w)
{
    return qhca_qp_reliable(qp) && !(w->flags & QHCA_WQE_F_INLINE);
}

/*
 * Refer to these bytes in the record of a memory link; *@named: whether that
 * was possible. The caller has asked req_can_share().
 */
static uint8_t req_share(struct qhca *e, struct qhca_qp *qp,
                         struct qhca_swqe *w, uint32_t off, uint32_t len,
                         struct qhca_memlink *ml, bool *named)
{
    const uint8_t *sges;
    uint8_t syn = QHCA_SYN_NONE;

    *named = false;
    if (!qhca_memlink_refs_begin(e, ml, qp->qpn, true)) {
        return QHCA_SYN_NONE;
    }
    if (w->num == 1) {
        syn = qhca_mr_share(e, qhca_sq_pd(qp),
                            qp->flags & QHCA_QP_F_PRIVILEGED, w->lkey,
                            w->laddr + off, len, 0, qp->qpn);
    } else {
        sges = qhca_req_wqe(e, qp, w, qp->xp->cur, false, &syn);
        if (sges) {
            syn = qhca_sgl_share(e, qhca_sgl_qp(qp, qhca_sq_pd(qp)), sges,
                                 w->num, &qp->xp->snd_pos, off, len);
        }
    }
    *named = !syn && !e->ml->out.unfit;
    return syn;
}

/* ---- completion at the tail ---- */

void qhca_req_complete(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_swqe *w = qhca_swqe(qp, qp->sq_tail);
    uint32_t index = qp->sq_tail;

    if (w->marks & QHCA_SW_RD) {
        xp->rd_out--;
    }
    if (xp->cur == index) {
        xp->cur++;
        xp->cur_pkt = 0;
    } else if (qhca_wqe_takes_recv(w->opcode) && xp->recv_ahead) {
        xp->recv_ahead--;
    }
    if (qhca_wqe_takes_recv(w->opcode) && xp->recv_limit) {
        xp->recv_limit--;
    }
    qp->sq_tail++;
    if (qp->tm) {
        if (!qhca_tm_sent(e, qp, index, QHCA_WC_SUCCESS, QHCA_SYN_NONE)) {
            qhca_qp_error(e, qp, QHCA_SYN_CQ_OVERFLOW, QHCA_EV_QP_FATAL);
        }
    } else if ((w->flags & QHCA_WQE_F_SIGNALED) &&
               !qhca_send_cqe(e, qp, w->wr_id, index, w->opcode, w->len,
                              QHCA_WC_SUCCESS, QHCA_SYN_NONE)) {
        qhca_qp_error(e, qp, QHCA_SYN_CQ_OVERFLOW, QHCA_EV_QP_FATAL);
    }
}

void qhca_req_fail(struct qhca *e, struct qhca_qp *qp, uint8_t status,
                   uint8_t syndrome)
{
    struct qhca_swqe *w = qhca_swqe(qp, qp->sq_tail);
    uint32_t index = qp->sq_tail;
    bool told;

    /* The completion tells software that its memory is free. */
    qhca_memlink_revoke_qp(e, qp->qpn);
    if (w->marks & QHCA_SW_RD) {
        qp->xp->rd_out--;
    }
    qp->sq_tail++;
    told = qp->tm ? qhca_tm_sent(e, qp, index, status, syndrome) :
                    qhca_send_cqe(e, qp, w->wr_id, index, w->opcode, 0,
                                  status, syndrome);
    if (!told) {
        qhca_qp_error(e, qp, QHCA_SYN_CQ_OVERFLOW, QHCA_EV_QP_FATAL);
    } else if (qhca_wqe_lost(status, syndrome)) {
        qhca_qp_error(e, qp, syndrome, QHCA_EV_QP_FATAL);
    } else if (qhca_qp_reliable(qp)) {
        qhca_qp_error(e, qp, syndrome, 0);
    } else {
        qhca_qp_sqe(e, qp, syndrome);
    }
}

void qhca_req_reap(struct qhca *e, struct qhca_qp *qp)
{
    while (qp->sq_tail != qp->sq_next &&
           (qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD)) {
        struct qhca_swqe *w = qhca_swqe(qp, qp->sq_tail);

        if (w->status) {
            qhca_req_fail(e, qp, w->status, w->syndrome);
            return;
        }
        if (!(w->marks & QHCA_SW_DONE)) {
            return;
        }
        qhca_req_complete(e, qp);
    }
}

void qhca_req_drained(struct qhca *e, struct qhca_qp *qp)
{
    if (qp->xp->drain && qp->state == QHCA_QPS_SQD &&
        qp->sq_tail == qp->sq_next) {
        qp->xp->drain = false;
        qhca_async_event(e, &qp->ev, QHCA_EV_SQ_DRAINED, 0);
    }
}

/* ---- the cursor ---- */

void qhca_req_cursor(struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;

    qhca_xport_unsend(xp);
    xp->cur = qp->sq_tail;
    if (xp->cur != qp->sq_next) {
        struct qhca_swqe *w = qhca_swqe(qp, xp->cur);

        if (w->npkts) {
            xp->cur_pkt = qhca_psn_dist(xp->una_psn, w->first_psn);
        }
    }
}

void qhca_req_go_back(struct qhca *e, struct qhca_qp *qp, uint8_t why)
{
    qhca_req_cursor(qp);
    qp->xp->ask = true;
    qp->xp->ask_psn = qp->xp->max_psn;
    if (qhca_tracing(e)) {
        struct qhca_trace t = {
            .kind = QHCA_TR_RETRANSMIT,
            .num = qp->qpn,
            .psn = qp->xp->una_psn,
            .a = why,
        };

        qhca_trace_emit(e, &t);
    }
}

enum step {
    STEP_AGAIN,                 /* progress was made, no packet sent */
    STEP_SENT,
    STEP_WAIT,                  /* until an event for this QP */
    STEP_BLOCKED                /* the wire is blocked */
};

static enum step req_wait_for(struct qhca_xport *xp, uint8_t why)
{
    xp->req_state = why;
    return STEP_WAIT;
}

/* The WQE at the cursor cannot be sent, or not be continued. */
static enum step local_error(struct qhca *e, struct qhca_qp *qp,
                             struct qhca_swqe *w, uint8_t syndrome)
{
    bool wqe = syndrome >= QHCA_SYN_WQE_DMA && syndrome < QHCA_SYN_DB_INDEX;

    qhca_swqe_fail(w, wqe ? QHCA_WC_LOC_QP_OP_ERR : QHCA_WC_LOC_PROT_ERR,
                   syndrome);
    qhca_req_reap(e, qp);
    return STEP_AGAIN;
}

static uint8_t req_do_local(struct qhca *e, struct qhca_qp *qp,
                            struct qhca_swqe *w)
{
    struct qhca_sq_wqe wqe;
    uint8_t syn = QHCA_SYN_NONE;
    uint32_t key;

    if (w->opcode == QHCA_WQE_LOCAL_INV) {
        memcpy(&key, &w->imm, 4);
        return qhca_mr_invalidate(e, qp->pd, qhca_le32(key), qp->qpn);
    }
    if (!qhca_req_wqe(e, qp, w, qp->xp->cur, false, &syn)) {
        return syn;
    }
    memcpy(&wqe, qp->xp->win->snd_wqe, sizeof(wqe));
    if (w->opcode == QHCA_WQE_BIND_MW) {
        return qhca_mw_bind(e, qp->pd, qp->qpn, &qp->windows, &wqe);
    }
    return qhca_mr_fast_reg(e, qp->pd, &wqe);
}

/* The BTH operation, without the class. */
static uint8_t bth_op(const struct qhca_swqe *w, bool first, bool last)
{
    switch (w->opcode) {
    case QHCA_WQE_FLUSH:
        return QHCA_OP_FLUSH;
    case QHCA_WQE_ATOMIC_WRITE:
        return QHCA_OP_ATOMIC_WRITE;
    case QHCA_WQE_RDMA_READ:
        return QHCA_OP_READ_REQUEST;
    case QHCA_WQE_COMP_SWAP:
    case QHCA_WQE_MASKED_COMP_SWAP:
        return QHCA_OP_COMP_SWAP;
    case QHCA_WQE_FETCH_ADD:
    case QHCA_WQE_MASKED_FETCH_ADD:
        return QHCA_OP_FETCH_ADD;
    case QHCA_WQE_RDMA_WRITE:
        return last ? (first ? QHCA_OP_WRITE_ONLY : QHCA_OP_WRITE_LAST) :
               first ? QHCA_OP_WRITE_FIRST : QHCA_OP_WRITE_MIDDLE;
    case QHCA_WQE_RDMA_WRITE_IMM:
        return last ? (first ? QHCA_OP_WRITE_ONLY_IMM :
                       QHCA_OP_WRITE_LAST_IMM) :
               first ? QHCA_OP_WRITE_FIRST : QHCA_OP_WRITE_MIDDLE;
    case QHCA_WQE_SEND_IMM:
        return last ? (first ? QHCA_OP_SEND_ONLY_IMM :
                       QHCA_OP_SEND_LAST_IMM) :
               first ? QHCA_OP_SEND_FIRST : QHCA_OP_SEND_MIDDLE;
    case QHCA_WQE_SEND_INV:
        return last ? (first ? QHCA_OP_SEND_ONLY_INV :
                       QHCA_OP_SEND_LAST_INV) :
               first ? QHCA_OP_SEND_FIRST : QHCA_OP_SEND_MIDDLE;
    default:
        return last ? (first ? QHCA_OP_SEND_ONLY : QHCA_OP_SEND_LAST) :
               first ? QHCA_OP_SEND_FIRST : QHCA_OP_SEND_MIDDLE;
    }
}

static uint8_t *req_put_reth(uint8_t *p, uint64_t va, uint32_t rkey,
                             uint32_t len)
{
    qhca_put_be64(p, va);
    qhca_put_be32(p + 8, rkey);
    qhca_put_be32(p + 12, len);
    return p + QHCA_RETH_LEN;
}

/* Write the AtomicETH, and the masks at @masks if it is a masked one. */
static uint8_t *req_put_atomic(uint8_t *p, const struct qhca_swqe *w,
                               const uint8_t *masks)
{
    bool swap = w->opcode == QHCA_WQE_COMP_SWAP ||
                w->opcode == QHCA_WQE_MASKED_COMP_SWAP;

    qhca_put_be64(p, w->raddr);
    qhca_put_be32(p + 8, w->rkey);
    qhca_put_be64(p + 12, swap ? w->arg1 : w->arg0);
    qhca_put_be64(p + 20, swap ? w->arg0 : 0);
    p += QHCA_ATETH_LEN;
    if (masks) {
        qhca_put_be64(p, qhca_get_le64(masks));
        qhca_put_be64(p + 8, swap ? qhca_get_le64(masks + 8) : 0);
        p += QHCA_MASKS_LEN;
    }
    return p;
}

/*
 * Write the extended headers of a request for @len bytes from @off on; returns
 * their length.  @masks: of a masked atomic, else NULL.
 */
static uint32_t req_put_ext(uint8_t *p, const struct qhca_swqe *w,
                            struct qhca_op_info info, uint32_t off,
                            uint32_t len, const uint8_t *masks)
{
    uint8_t *start = p;

    if (info.flags & QHCA_OPF_XRCETH) {
        qhca_put_be32(p, w->srqn);
        p += QHCA_XRCETH_LEN;
    }
    if (info.flags & QHCA_OPF_RETH) {
        p = req_put_reth(p, w->raddr + off, w->rkey, len);
    }
    if (info.flags & QHCA_OPF_FLUSH) {
        qhca_put_be32(p, (uint32_t)w->arg1);
        p = req_put_reth(p + QHCA_FETH_LEN, w->raddr, w->rkey,
                         (uint32_t)w->arg0);
    }
    if (info.flags & QHCA_OPF_ATOMIC) {
        p = req_put_atomic(p, w, masks);
    }
    if (info.flags & QHCA_OPF_IMM) {
        memcpy(p, &w->imm, 4);  /* software stored it in network byte order */
        p += QHCA_IMM_LEN;
    }
    if (info.flags & QHCA_OPF_INV) {
        qhca_put_be32(p, qhca_le32(w->imm));
        p += QHCA_IETH_LEN;
    }
    return (uint32_t)(p - start);
}

/*
 * Should AckReq be set, in the last of @n packets?  Yes where software waits
 * for the ACK: signaled messages, READs and atomics, and the last message
 * posted.  Otherwise, and within long messages, at least twice per window, so
 * that it advances before it is used up.  Other unsignaled messages are covered
 * by a later ACK; see ask_now() for when none comes.
 */
static bool req_want_ack(const struct qhca_qp *qp, const struct qhca_swqe *w,
                         uint32_t n, bool last)
{
    const struct qhca_xport *xp = qp->xp;
    bool probe;

    return xp->ask || qhca_wnd_limited(xp, w, &probe) ||
           xp->since_ack + n >= qhca_wnd_ack_interval(xp) ||
           (last && ((w->flags & QHCA_WQE_F_SIGNALED) ||
                     qhca_wqe_is_rd(w->opcode) ||
                     xp->cur + 1 == qp->sq_head));
}

/*
 * @n packets of @w, covering @psns PSNs, were sent: advance the cursor.
 * Packets are resent one by one.
 */
static void req_sent(struct qhca *e, struct qhca_qp *qp, struct qhca_swqe *w,
                     uint32_t n, uint32_t psns, bool ack)
{
    struct qhca_xport *xp = qp->xp;
    bool last;

    qp->tx_packets += n;
    xp->since_ack = ack ? 0 : xp->since_ack + n;
    if (qhca_qp_reliable(qp) &&
        qhca_psn_dist(xp->snd_psn, xp->una_psn) <
        qhca_psn_dist(xp->max_psn, xp->una_psn)) {
        qp->retransmits++;
        qhca_count(e, QHCA_STAT_ROCE_RETRANSMITS);
    }
    w->marks |= QHCA_SW_STARTED;
    if (qhca_wqe_is_rd(w->opcode)) {
        if (!(w->marks & QHCA_SW_RD)) {
            w->marks |= QHCA_SW_RD;
            xp->rd_out++;
        }
        xp->rd_psns += psns;
        xp->rd_reqs++;
    }
    if (ack) {
        qhca_wnd_sent(e, qp, qhca_psn_add(xp->snd_psn, psns - 1));
    }
    xp->snd_psn = qhca_psn_add(xp->snd_psn, psns);
    if (qhca_psn_dist(xp->snd_psn, xp->una_psn) >
        qhca_psn_dist(xp->max_psn, xp->una_psn)) {
        xp->max_psn = xp->snd_psn;
    }
    xp->cur_pkt += psns;
    last = xp->cur_pkt == w->npkts;
    if (last) {
        xp->recv_ahead += qhca_wqe_takes_recv(w->opcode);
        xp->cur++;
        xp->cur_pkt = 0;
    }
    if (qp->type == QHCA_QPT_UC) {
        xp->una_psn = xp->snd_psn;
        xp->max_psn = xp->snd_psn;
        if (last) {
            qhca_req_complete(e, qp);
            qhca_req_reap(e, qp);
        }
    } else if (!xp->deadline && qp->timeout) {
        qhca_timer_start_ack(e, qp);
    }
}

/*
 * How many packets of @w, from the cursor on, may be sent together as @f, whose
 * payload is copied or, with @refs, referred to?  They fit into a window of
 * @wnd, which is open.  Packets are resent one by one: where super-frames were
 * lost, single packets may get through.
 */
static uint32_t req_together(struct qhca *e, const struct qhca_qp *qp,
                             const struct qhca_swqe *w, uint32_t wnd,
                             struct qhca_frame *f, bool refs)
{
    const struct qhca_xport *xp = qp->xp;
    uint32_t left = w->npkts - xp->cur_pkt, n, room;
    bool probe;

    if (qhca_wqe_is_rd(w->opcode) || left < 2 || xp->snd_psn != xp->max_psn ||
        (w->marks & QHCA_SW_ALONE) || qhca_wnd_limited(xp, w, &probe)) {
        return 1;
    }
    n = qhca_super_packet_most(e, f, qhca_mtu_bytes(qp->path_mtu), refs);
    room = wnd + xp->rd_psns - qhca_psn_dist(xp->snd_psn, xp->una_psn);
    n = n < room ? n : room;
    return n < left ? n : left;
}

/*
 * Send what is at the cursor, in a window of @wnd that is open; *@packets gets
 * how many packets that was.
 */
static enum step req_send_packet(struct qhca *e, struct qhca_qp *qp,
                                 struct qhca_swqe *w, uint32_t wnd,
                                 uint32_t *packets)
{
    struct qhca_xport *xp = qp->xp;
    bool rd = qhca_wqe_is_rd(w->opcode), first, last, ack, copy;
    uint32_t mtu = qhca_mtu_bytes(qp->path_mtu), off, len, ext, psns, dma_len;
    struct qhca_op_info info;
    const uint8_t *masks = NULL;
    struct qhca_frame f;
    uint8_t op, syn = QHCA_SYN_NONE;
    uint32_t n;

    if (qhca_wqe_is_masked(w->opcode)) {
        masks = qhca_req_wqe(e, qp, w, xp->cur, false, &syn);
        if (!masks) {
            return local_error(e, qp, w, syn);
        }
        masks -= QHCA_MASKS_LEN;    /* the masks are at the end of the header */
    }

    switch (qhca_frame_begin(e, &qp->av, qp->qpn, qp->dest_qpn, &f)) {
    case QHCA_SENT:
        break;
    case QHCA_BLOCKED:
        return STEP_BLOCKED;
    case QHCA_BAD_AV:
        return local_error(e, qp, w, QHCA_SYN_WQE_AV);
    }
    copy = !f.ml || !req_can_share(qp, w);
    n = req_together(e, qp, w, wnd, &f, !copy);
again:
    off = xp->cur_pkt * mtu;
    first = rd || xp->cur_pkt == 0;
    last = rd || xp->cur_pkt + n == w->npkts;
    len = rd && w->opcode != QHCA_WQE_ATOMIC_WRITE ? 0 :
          last ? w->len - off : n * mtu;
    psns = rd ? qhca_wnd_rd_psns(xp, w, wnd) : n;
    /* part of a READ; other requests cover the whole message */
    dma_len = rd && xp->cur_pkt + psns != w->npkts ? psns * mtu :
              w->len - off;
    f.packets = (uint16_t)n;
    f.crc_twice = w->opcode == QHCA_WQE_FLUSH && xp->crc_twice &&
                  qp->type == QHCA_QPT_RC;
    op = bth_op(w, first, last) | (masks ? QHCA_CLASS_OWN :
                                   qhca_qp_class(qp));
    info = qhca_op_info(op);
    ack = qhca_qp_reliable(qp) && req_want_ack(qp, w, n, last);
    qhca_frame_bth(&f, op, last && (w->flags & QHCA_WQE_F_SOLICITED) &&
                   ((info.flags & QHCA_OPF_SEND) ||
                    (info.flags & QHCA_OPF_IMM)),
                   ack, len, qp->dest_qpn, xp->snd_psn);
    ext = req_put_ext(f.bth + QHCA_BTH_LEN, w, info, off, dma_len, masks);
    e->trying = n > 1;
    if (!copy && len >= QHCA_MEMLINK_REFS_MIN) {
        syn = req_share(e, qp, w, off, len, f.ml, &f.refs);
        if (!syn && !f.refs) {
            e->trying = false;
            copy = true;
            n = req_together(e, qp, w, wnd, &f, false);
            goto again;
        }
    } else {
        f.refs = false;
        syn = req_gather(e, qp, w, off, qhca_frame_payload(&f, ext), len);
    }
    e->trying = false;
    if (syn && n > 1) {
        w->marks |= QHCA_SW_ALONE;      /* send what there is before it */
        n = 1;
        goto again;
    }
    if (syn == QHCA_SYN_PAGE_FAULT &&
        qhca_odp_stall(e, qp, QHCA_PAGE_FAULT_SEND)) {
        return STEP_WAIT;
    }
    if (syn) {
        return local_error(e, qp, w, syn);
    }
    if (qhca_frame_end(e, &f, qp->qpn, ext, len) != QHCA_SENT) {
        return STEP_BLOCKED;
    }

    qhca_odp_passed(qp, QHCA_PAGE_FAULT_SEND);
    req_sent(e, qp, w, n, psns, ack);
    *packets = n;
    return STEP_SENT;
}

/*
 * The cursor must wait until everything outstanding is acknowledged.  If the
 * last packets were sent without AckReq, since more was to follow, resend them
 * with it.
 */
static enum step ask_now(struct qhca *e, struct qhca_qp *qp, uint8_t state)
{
    struct qhca_xport *xp = qp->xp;

    if (qhca_qp_reliable(qp) && xp->since_ack &&
        xp->snd_psn != xp->una_psn) {
        qhca_req_go_back(e, qp, QHCA_SYN_NONE);
        return STEP_AGAIN;
    }
    return req_wait_for(xp, state);
}

/* Will an acknowledgment, or the timer, make us check for WQEs again? */
static bool req_looks_again(const struct qhca_qp *qp)
{
    const struct qhca_xport *xp = qp->xp;

    return xp->deadline &&
           qhca_psn_dist(xp->snd_psn, xp->una_psn) >= ENOUGH_PKTS;
}

/*
 * All WQEs known are sent.  Has software posted more without ringing?  If not,
 * and nothing makes us check again, it has to ring from now on.
 */
static bool req_more_posted(struct qhca *e, struct qhca_qp *qp)
{
    if (!qp->sq_awake) {
        return false;
    }
    if (qhca_sq_poll_dbrec(e, qp)) {
        return true;
    }
    if (qp->state != QHCA_QPS_RTS || req_looks_again(qp)) {
        return false;
    }
    if (!qhca_sq_notify(e, qp, true)) {
        qhca_qp_error(e, qp, QHCA_SYN_WQE_DMA, QHCA_EV_QP_FATAL);
        return false;
    }
    return qhca_sq_poll_dbrec(e, qp);
}

/* Do the next step at the cursor; *@packets: how many were sent. */
static enum step req_step(struct qhca *e, struct qhca_qp *qp,
                          uint32_t *packets)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t outstanding, wnd;
    struct qhca_swqe *w;
    uint8_t syn;
    bool probe;

    if (xp->req_state == QHCA_REQ_WAIT_RNR ||
        qhca_odp_waits(qp, QHCA_ODP_SEND | QHCA_ODP_LAND)) {
        return STEP_WAIT;
    }
    if (xp->cur == qp->sq_next) {
        if (qp->state != QHCA_QPS_RTS ||
            (qp->sq_next == qp->sq_head && !req_more_posted(e, qp))) {
            if (qp->state == QHCA_QPS_ERR) {
                return STEP_AGAIN;      /* the record is invalid */
            }
            return qp->sq_tail == qp->sq_next ?
                   req_wait_for(xp, QHCA_REQ_IDLE) :
                   ask_now(e, qp, QHCA_REQ_WAIT_ACK);
        }
        if (qp->sq_next - qp->sq_tail == QHCA_WINDOW_WQES) {
            return ask_now(e, qp, QHCA_REQ_WAIT_ACK);
        }
        if (!qhca_req_load(e, qp)) {
            return STEP_WAIT;
        }
    }
    w = qhca_swqe(qp, xp->cur);
    if (w->status) {
        qhca_req_reap(e, qp);   /* immediately, if it is the oldest */
        return qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD ?
               ask_now(e, qp, QHCA_REQ_WAIT_ACK) : STEP_AGAIN;
    }
    if (w->marks & QHCA_SW_DONE) {
        xp->cur++;
        return STEP_AGAIN;
    }
    if (qhca_wqe_is_local(w->opcode)) {
        /*
         * A local invalidate must not revoke memory that may be needed for a
         * retransmission; a fence requires less.
         */
        if (w->opcode == QHCA_WQE_LOCAL_INV && xp->cur != qp->sq_tail) {
            return ask_now(e, qp, QHCA_REQ_WAIT_FENCE);
        }
        if ((w->flags & QHCA_WQE_F_FENCE) && xp->rd_out) {
            return req_wait_for(xp, QHCA_REQ_WAIT_FENCE);
        }
        syn = req_do_local(e, qp, w);
        if (syn) {
            qhca_swqe_fail(w, w->opcode == QHCA_WQE_BIND_MW &&
                           !QHCA_SYN_IS_WQE_LOST(syn) ?
                           QHCA_WC_MW_BIND_ERR : QHCA_WC_LOC_QP_OP_ERR, syn);
        } else {
            w->marks |= QHCA_SW_DONE;
            xp->cur++;
        }
        qhca_req_reap(e, qp);
        return STEP_AGAIN;
    }
    if (!(w->marks & QHCA_SW_STARTED)) {
        if ((w->flags & QHCA_WQE_F_FENCE) && xp->rd_out) {
            return req_wait_for(xp, QHCA_REQ_WAIT_FENCE);
        }
        if (qhca_wqe_is_rd(w->opcode) && !qp->max_rd_atomic) {
            /* Set to 0 while the WQE waited: it would wait forever. */
            qhca_swqe_fail(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_RD_ATOMIC);
            qhca_req_reap(e, qp);
            return STEP_AGAIN;
        }
        if (qhca_wqe_is_rd(w->opcode) && xp->rd_out >= qp->max_rd_atomic) {
            return req_wait_for(xp, QHCA_REQ_WAIT_RD);
        }
    }
    outstanding = qhca_psn_dist(xp->snd_psn, xp->una_psn);
    wnd = qhca_wnd_size(e, qp);
    if (qhca_wqe_is_rd(w->opcode)) {
        if (outstanding && outstanding + QHCA_WINDOW_LINK > PSN_SPAN) {
            return ask_now(e, qp, QHCA_REQ_WAIT_ACK);
        }
        if (!qhca_wnd_rd_ready(qp, w, wnd)) {
            return req_wait_for(xp, QHCA_REQ_WAIT_RD);
        }
    } else if (outstanding - xp->rd_psns >= wnd ||
               outstanding + 1 >= PSN_SPAN) {
        return req_wait_for(xp, QHCA_REQ_WAIT_ACK);
    }
    if (qhca_wnd_limited(xp, w, &probe) && !probe) {
        return ask_now(e, qp, QHCA_REQ_WAIT_CREDITS);
    }
    return req_send_packet(e, qp, w, wnd, packets);
}

static bool req_steps(struct qhca *e, struct qhca_qp *qp, unsigned *budget)
{
    unsigned had = *budget;
    uint32_t packets = 0;

    while (qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD) {
        /* A local invalidate may cost as much as many packets. */
        if (!*budget || !qhca_active(e) ||
            (*budget != had && qhca_call_spent(e))) {
            return true;
        }
        switch (req_step(e, qp, &packets)) {
        case STEP_SENT:
            qp->xp->req_state = QHCA_REQ_ACTIVE;
            *budget -= packets < *budget ? packets : *budget;
            qhca_break_point(e);
            break;
        case STEP_AGAIN:
            --*budget;
            break;
        case STEP_BLOCKED:
            qp->xp->req_state = QHCA_REQ_ACTIVE;
            return true;
        case STEP_WAIT:
            if (qp->sq_tail == qp->sq_next) {
                qhca_req_drained(e, qp);
                if (qp->state == QHCA_QPS_RTS ||
                    qp->state == QHCA_QPS_SQD) {
                    qhca_send_window_put(e, qp);
                }
            }
            /* A local error may have started flushing. */
            return qp->xp->sq_flush || qp->xp->rq_flush;
        }
    }
    return true;
}

bool qhca_req_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget)
{
    bool more = req_steps(e, qp, budget);

    if ((qp->flags & QHCA_QP_F_SQ_RECORD) && !qp->sq_awake &&
        qp->state == QHCA_QPS_RTS &&
        (qp->xp->cur != qp->sq_head || req_looks_again(qp)) &&
        !qhca_sq_notify(e, qp, false)) {
        qhca_qp_error(e, qp, QHCA_SYN_WQE_DMA, QHCA_EV_QP_FATAL);
        return true;
    }
    return more;
}
