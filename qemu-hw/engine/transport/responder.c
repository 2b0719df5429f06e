/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The responder of RC, XRC and UC: executes requests (IBA 9.7.4, 9.8.2).
 * Responses are queued; see send_response.c.
 */
#include "transport/rc.h"
#include "transport/tag_qp.h"

/*
 * The request at exp_psn cannot be executed: NAK it and move the QP to ERR.  UC
 * has no NAKs: it drops the message and stays up, unless @event says that its
 * own memory failed.
 */
static void fatal_nak(struct qhca *e, struct qhca_qp *qp, uint8_t nak,
                      uint8_t syndrome, uint8_t event)
{
    struct qhca_xport *xp = qp->xp;

    if (qp->type == QHCA_QPT_UC) {
        xp->rsp_op = QHCA_RSPOP_SKIP;
        return;
    }
    switch (nak) {
    case QHCA_NAK_INV_REQ:
        qhca_count(e, QHCA_STAT_ROCE_INV_REQ_ERRORS);
        break;
    case QHCA_NAK_ACCESS:
        qhca_count(e, QHCA_STAT_ROCE_ACCESS_ERRORS);
        break;
    default:
        qhca_count(e, QHCA_STAT_ROCE_OP_ERRORS);
        break;
    }
    qhca_owe_nak(e, qp, xp->exp_psn, nak);
    xp->fatal_nak = true;
    qhca_qp_error(e, qp, syndrome, event);
}

static void invalid_request(struct qhca *e, struct qhca_qp *qp, uint8_t syn)
{
    fatal_nak(e, qp, QHCA_NAK_INV_REQ, syn, QHCA_EV_QP_REQ_ERR);
}

/* Handle failure @syn of a check or copy with an R_Key. */
static void remote_error(struct qhca *e, struct qhca_qp *qp, uint8_t syn)
{
    if (syn == QHCA_SYN_BAD_PACKET) {
        invalid_request(e, qp, syn);
    } else if (syn < QHCA_SYN_TABLE_INVALID) {
        fatal_nak(e, qp, QHCA_NAK_ACCESS, syn, QHCA_EV_QP_ACCESS_ERR);
    } else {
        fatal_nak(e, qp, QHCA_NAK_OP, syn, QHCA_EV_QP_FATAL);
    }
}

/* The receive WQE held failed with @syn: error CQE here, NAK to the peer. */
static void receive_error(struct qhca *e, struct qhca_qp *qp, uint8_t syn)
{
    struct qhca_xport *xp = qp->xp;
    uint8_t status = QHCA_WC_LOC_PROT_ERR, nak = QHCA_NAK_OP;
    bool held = xp->recv.held;

    if (syn == QHCA_SYN_RQ_LENGTH) {
        status = QHCA_WC_LOC_LEN_ERR;
        nak = QHCA_NAK_INV_REQ;
    } else if (syn == QHCA_SYN_WQE_SGE) {
        status = QHCA_WC_LOC_QP_OP_ERR;
    }
    qhca_recv_error(e, qp, status, syn);
    if (qp->type == QHCA_QPT_UC) {
        qhca_qp_error(e, qp, syn, held ? 0 : QHCA_EV_QP_FATAL);
    } else {
        fatal_nak(e, qp, nak, syn, held ? 0 : QHCA_EV_QP_FATAL);
    }
}

/* No receive WQE for the request at exp_psn. */
static void not_ready(struct qhca *e, struct qhca_qp *qp,
                      const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;

    if (qp->type == QHCA_QPT_UC) {
        qhca_rx_drop(e, rx, QHCA_STAT_UD_DROPPED);
        xp->rsp_op = QHCA_RSPOP_SKIP;
        return;
    }
    if (qhca_owe_nak(e, qp, xp->exp_psn,
                     QHCA_AETH_RNR | (qp->min_rnr_timer & 31))) {
        qhca_count(e, QHCA_STAT_ROCE_RNR_NAK_TX);
        xp->naked = true;       /* silently drop what follows */
    }
}

/* ---- requests in PSN order ---- */

/* Does the packet fit its predecessor in the message? */
static bool sequence_ok(const struct qhca_xport *xp, uint32_t flags)
{
    uint8_t op = flags & QHCA_OPF_SEND ? QHCA_RSPOP_SEND :
                 flags & QHCA_OPF_WRITE ? QHCA_RSPOP_WRITE : QHCA_RSPOP_NONE;

    if (flags & QHCA_OPF_START) {
        return xp->rsp_op == QHCA_RSPOP_NONE ||
               xp->rsp_op == QHCA_RSPOP_SKIP;
    }
    return op != QHCA_RSPOP_NONE && xp->rsp_op == op;
}

/* Only the last packet of a message may be shorter than the path MTU. */
static bool length_ok(const struct qhca_qp *qp, const struct qhca_rx *rx)
{
    uint32_t mtu = qhca_mtu_bytes(qp->path_mtu);

    if (!(rx->flags & QHCA_OPF_END)) {
        return rx->payload_len == mtu && !rx->pad;
    }
    return rx->payload_len <= mtu &&
           (rx->payload_len || (rx->flags & QHCA_OPF_START));
}

/* A message was received completely. */
static void message_done(struct qhca *e, struct qhca_qp *qp,
                         const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_cqe cqe = { 0 };
    uint8_t op = QHCA_CQE_OP_RECV;
    uint8_t syn;

    xp->rsp_op = QHCA_RSPOP_NONE;
    xp->msn = qhca_psn_add(xp->msn, 1);
    if (rx->flags & QHCA_OPF_INV) {
        uint32_t key = qhca_get_be32(rx->ext);

        syn = qhca_mr_invalidate(e, qp->pd, key, qp->qpn);
        if (syn) {
            qhca_recv_error(e, qp, QHCA_WC_REM_INV_REQ_ERR, syn);
            remote_error(e, qp, syn);
            return;
        }
        cqe.imm = qhca_le32(key);
        cqe.flags = qhca_le16(QHCA_CQE_F_INV);
    } else if (rx->flags & QHCA_OPF_IMM) {
        memcpy(&cqe.imm, rx->ext_end - QHCA_IMM_LEN, 4);
        cqe.flags = qhca_le16(QHCA_CQE_F_IMM);
    } else if (rx->flags & QHCA_OPF_WRITE) {
        return;                 /* no completion */
    }
    if (qp->tm && !(rx->flags & QHCA_OPF_WRITE)) {
        cqe.byte_len = qhca_le32(xp->recv.len);
        qhca_tm_recv_done(e, qp, &cqe, rx->se);
        return;
    }
    if (rx->flags & QHCA_OPF_WRITE) {
        op = QHCA_CQE_OP_RECV_RDMA_IMM;
        cqe.byte_len = qhca_le32(xp->wr_len);
    } else {
        cqe.byte_len = qhca_le32(xp->recv.len);
    }
    qhca_recv_complete(e, qp, &cqe, op, QHCA_WC_SUCCESS, QHCA_SYN_NONE,
                       rx->se);
}

static bool rsp_serving(const struct qhca_qp *qp)
{
    return qp->state == QHCA_QPS_RTR || qp->state == QHCA_QPS_RTS ||
           qp->state == QHCA_QPS_SQD || qp->state == QHCA_QPS_SQE;
}

/*
 * The receive buffer is not present: wait for it?  A receive may be far larger
 * than the message, whose end is known only with the last packet.
 */
static bool recv_fault(struct qhca *e, struct qhca_qp *qp,
                       const struct qhca_rx *rx)
{
    if ((rx->flags & QHCA_OPF_END) &&
        e->mem->page_fault.len > rx->payload_len) {
        e->mem->page_fault.len = rx->payload_len;
    }
    return qhca_odp_stall_rx(e, qp, QHCA_PAGE_FAULT_RECV, rx);
}

/* True: the packet was executed. */
static bool rsp_do_send(struct qhca *e, struct qhca_qp *qp,
                        const struct qhca_rx *rx)
{
    bool whole = rx->flags & QHCA_OPF_END;
    const uint8_t *data = rx->payload;
    uint32_t len = rx->payload_len;
    uint8_t syn;

    if (qp->tm && (rx->flags & QHCA_OPF_START) && rx->super &&
        rx->super->shared) {
        /* It has headers, and its sender could change them meanwhile. */
        memmove(e->xd->bounce, data, len);
        data = e->xd->bounce;
    }
    if (rx->flags & QHCA_OPF_START) {
        syn = qp->tm ? qhca_tm_recv_start(e, qp, &data, &len, whole) :
                       qhca_recv_take(e, qp);
        if (syn == QHCA_SYN_RNR) {
            not_ready(e, qp, rx);
            return false;
        }
        if (syn) {
            receive_error(e, qp, syn);
            return false;
        }
    }
    syn = qhca_recv_data(e, qp, data, len);
    if (syn == QHCA_SYN_PAGE_FAULT && recv_fault(e, qp, rx)) {
        return false;
    }
    if (syn) {
        receive_error(e, qp, syn);
        return false;
    }
    if (qp->tm && (rx->flags & QHCA_OPF_START) && !whole &&
        !qhca_tm_recv_more(e, qp)) {
        return false;
    }
    qp->xp->rsp_op = QHCA_RSPOP_SEND;
    return true;
}

static bool rsp_do_write(struct qhca *e, struct qhca_qp *qp,
                         const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t n = rx->payload_len, left = xp->wr_left;
    uint8_t syn;

    if (rx->flags & QHCA_OPF_START) {
        if (!(qp->access & QHCA_ACCESS_REMOTE_WRITE)) {
            invalid_request(e, qp, QHCA_SYN_QP_ACCESS);
            return false;
        }
        xp->wr_va = qhca_get_be64(rx->ext);
        xp->wr_rkey = qhca_get_be32(rx->ext + 8);
        xp->wr_len = qhca_get_be32(rx->ext + 12);
        left = xp->wr_len;
        if (left > QHCA_MAX_MSG_SIZE) {
            invalid_request(e, qp, QHCA_SYN_BAD_PACKET);
            return false;
        }
    }
    /* The RETH length must match the length of the packets. */
    if (rx->flags & QHCA_OPF_END ? n != left : n >= left) {
        invalid_request(e, qp, QHCA_SYN_BAD_PACKET);
        return false;
    }
    if (rx->flags & QHCA_OPF_START) {
        /* privileged is false: the reserved key is no R_Key */
        syn = qhca_mr_check(e, qp->pd, false, xp->wr_rkey, xp->wr_va, left,
                            QHCA_ACCESS_REMOTE_WRITE, qp->qpn);
        if (syn) {
            remote_error(e, qp, syn);
            return false;
        }
    }
    if (rx->flags & QHCA_OPF_IMM) {
        if (qp->tm && qp->tm->kind != QHCA_TM_PLAIN) {
            /* It is not the one that waited for a page. */
            invalid_request(e, qp, QHCA_SYN_BAD_PACKET);
            return false;
        }
        syn = qhca_recv_take(e, qp);
        if (syn == QHCA_SYN_RNR) {
            not_ready(e, qp, rx);
            return false;
        }
        if (syn) {
            receive_error(e, qp, syn);
            return false;
        }
    }
    syn = qhca_mr_write(e, qp->pd, false, xp->wr_rkey, xp->wr_va, rx->payload,
                        n, QHCA_ACCESS_REMOTE_WRITE, qp->qpn);
    if (syn == QHCA_SYN_PAGE_FAULT) {
        e->mem->page_fault.len += left - n;
        if (qhca_odp_stall_rx(e, qp, QHCA_PAGE_FAULT_RECV, rx)) {
            return false;
        }
    }
    if (syn) {
        remote_error(e, qp, syn);
        return false;
    }
    xp->wr_va += n;
    xp->wr_left = left - n;
    xp->rsp_op = QHCA_RSPOP_WRITE;
    return true;
}

/* Check a READ request in @pd; *@npkts gets the number of responses. */
static uint8_t rsp_check_read(struct qhca *e, struct qhca_qp *qp, uint32_t pd,
                              const struct qhca_rx *rx, uint32_t *npkts)
{
    uint32_t len = qhca_get_be32(rx->ext + 12);

    if (len > QHCA_MAX_MSG_SIZE) {
        return QHCA_SYN_BAD_PACKET;
    }
    *npkts = qhca_packets(len, qp->path_mtu);
    return qhca_mr_check(e, pd, false, qhca_get_be32(rx->ext + 8),
                         qhca_get_be64(rx->ext), len,
                         QHCA_ACCESS_REMOTE_READ, qp->qpn);
}

static void rsp_fill_read(struct qhca_resp *r, const struct qhca_rx *rx)
{
    r->kind = QHCA_RESP_READ;
    r->psn = rx->psn;
    r->va = qhca_get_be64(rx->ext);
    r->rkey = qhca_get_be32(rx->ext + 8);
    r->left = qhca_get_be32(rx->ext + 12);
    r->srqn = rx->srqn;
}

/* READs and atomics: is there room for one more in progress? */
static bool resources_ok(struct qhca *e, struct qhca_qp *qp, uint32_t access)
{
    if (!(qp->access & access)) {
        invalid_request(e, qp, QHCA_SYN_QP_ACCESS);
        return false;
    }
    if (qp->xp->rd_pending >= qp->max_dest_rd_atomic) {
        invalid_request(e, qp, QHCA_SYN_RD_ATOMIC);
        return false;
    }
    return true;
}

static void rsp_do_read(struct qhca *e, struct qhca_qp *qp,
                        const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_resp *r;
    uint32_t npkts = 0;
    uint8_t syn;

    if (!resources_ok(e, qp, QHCA_ACCESS_REMOTE_READ)) {
        return;
    }
    syn = rsp_check_read(e, qp, qp->pd, rx, &npkts);
    if (syn) {
        remote_error(e, qp, syn);
        return;
    }
    r = qhca_rspq_push(e, qp);
    if (!r) {
        return;                 /* as if lost: the peer resends it */
    }
    rsp_fill_read(r, rx);
    xp->rd_pending++;
    xp->exp_psn = qhca_psn_add(xp->exp_psn, npkts);
    xp->msn = qhca_psn_add(xp->msn, 1);
}

/*
 * Drop a result with this PSN, left from before the PSNs wrapped: it must not
 * answer a duplicate of the current atomic.
 */
static void rsp_forget_atomic(struct qhca_xport *xp, uint32_t psn)
{
    unsigned i;

    for (i = 0; i < QHCA_ATOMICS_KEPT; i++) {
        if (xp->atomics[i].psn == psn) {
            xp->atomics[i].valid = false;
        }
    }
}

/* Parse an atomic request: AtomicETH, masks after it if it is a masked one. */
static void rsp_parse_atomic(const struct qhca_rx *rx, struct qhca_atomic *op)
{
    const uint8_t *masks = rx->ext + QHCA_ATETH_LEN;

    op->swap_op = (rx->opcode & QHCA_OP_MASK) == QHCA_OP_COMP_SWAP;
    op->cmp_add = qhca_get_be64(rx->ext + (op->swap_op ? 20 : 12));
    op->swap = op->swap_op ? qhca_get_be64(rx->ext + 12) : 0;
    if (rx->flags & QHCA_OPF_MASKED) {
        op->mask = qhca_get_be64(masks);
        op->swap_mask = qhca_get_be64(masks + 8);
    } else {
        op->mask = op->swap_op ? UINT64_MAX : 0;
        op->swap_mask = UINT64_MAX;
    }
}

static void rsp_do_atomic(struct qhca *e, struct qhca_qp *qp,
                          const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_atomic_res *a;
    uint64_t va = qhca_get_be64(rx->ext);
    uint32_t rkey = qhca_get_be32(rx->ext + 8);
    struct qhca_atomic op;
    struct qhca_resp *r;
    uint64_t old = 0;
    uint8_t syn;

    if (!resources_ok(e, qp, QHCA_ACCESS_REMOTE_ATOMIC)) {
        return;
    }
    if (va & 7) {
        invalid_request(e, qp, QHCA_SYN_BAD_PACKET);
        return;
    }
    if (qhca_rspq_full(xp)) {
        return;                 /* before anything has changed */
    }
    rsp_parse_atomic(rx, &op);
    syn = qhca_mr_atomic(e, qp->pd, rkey, va, &op, &old, qp->qpn);
    if (syn == QHCA_SYN_PAGE_FAULT &&
        qhca_odp_stall_rx(e, qp, QHCA_PAGE_FAULT_RECV, rx)) {
        return;
    }
    if (syn) {
        remote_error(e, qp, syn);
        return;
    }
    rsp_forget_atomic(xp, rx->psn);
    a = &xp->atomics[xp->atomic_next];
    xp->atomic_next = (xp->atomic_next + 1) % QHCA_ATOMICS_KEPT;
    a->psn = rx->psn;
    a->old = old;
    a->valid = true;
    r = qhca_rspq_push(e, qp);
    r->kind = QHCA_RESP_ATOMIC;
    r->psn = rx->psn;
    r->va = old;
    xp->rd_pending++;
    xp->exp_psn = qhca_psn_add(xp->exp_psn, 1);
    xp->msn = qhca_psn_add(xp->msn, 1);
}

/*
 * Answer an executed FLUSH or ATOMIC WRITE: a READ response without data (annex
 * A19).
 */
static void answer_empty(struct qhca *e, struct qhca_qp *qp,
                         const struct qhca_rx *rx, bool uncounted)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_resp *r = qhca_rspq_push(e, qp);

    r->kind = QHCA_RESP_READ;
    r->psn = rx->psn;
    r->uncounted = uncounted;
    if (!uncounted) {
        xp->rd_pending++;
    }
    xp->exp_psn = qhca_psn_add(xp->exp_psn, 1);
    xp->msn = qhca_psn_add(xp->msn, 1);
}

static void rsp_do_atomic_write(struct qhca *e, struct qhca_qp *qp,
                                const struct qhca_rx *rx)
{
    uint64_t va = qhca_get_be64(rx->ext);
    uint8_t syn;

    if (!resources_ok(e, qp, QHCA_ACCESS_REMOTE_WRITE)) {
        return;
    }
    if ((va & 7) || rx->payload_len != 8 ||
        qhca_get_be32(rx->ext + 12) != 8) {
        invalid_request(e, qp, QHCA_SYN_BAD_PACKET);
        return;
    }
    if (qhca_rspq_full(qp->xp)) {
        return;
    }
    syn = qhca_mr_store64(e, qp->pd, qhca_get_be32(rx->ext + 8), va,
                          rx->payload, qp->qpn);
    if (syn == QHCA_SYN_PAGE_FAULT &&
        qhca_odp_stall_rx(e, qp, QHCA_PAGE_FAULT_RECV, rx)) {
        return;
    }
    if (syn) {
        remote_error(e, qp, syn);
        return;
    }
    answer_empty(e, qp, rx, false);
}

/*
 * All earlier requests on this QP were executed on arrival, so FLUSH has little
 * to wait for.  Peers differ in whether they count it as an outstanding READ,
 * so it takes no resource.
 */
static void rsp_do_flush(struct qhca *e, struct qhca_qp *qp,
                         const struct qhca_rx *rx)
{
    uint32_t feth = qhca_get_be32(rx->ext);
    uint32_t kind = feth & QHCA_FLUSH_T_MASK;
    uint32_t level = (feth >> QHCA_FLUSH_L_SHIFT) & 3;
    const uint8_t *reth = rx->ext + QHCA_FETH_LEN;
    uint32_t access = (kind & QHCA_FLUSH_T_GLOBAL ?
                       QHCA_ACCESS_FLUSH_GLOBAL : 0) |
                      (kind & QHCA_FLUSH_T_PERSISTENT ?
                       QHCA_ACCESS_FLUSH_PERSISTENT : 0);
    uint8_t syn;

    qp->xp->crc_twice = rx->crc_twice;   /* use the variant the peer uses */
    if (!kind || level > QHCA_FLUSH_L_MR ||
        (kind & ~(QHCA_FLUSH_T_GLOBAL | QHCA_FLUSH_T_PERSISTENT))) {
        invalid_request(e, qp, QHCA_SYN_BAD_PACKET);
        return;
    }
    if ((qp->access & access) != access) {
        invalid_request(e, qp, QHCA_SYN_QP_ACCESS);
        return;
    }
    if (qhca_rspq_full(qp->xp)) {
        return;
    }
    syn = qhca_mr_flush(e, qp->pd, qhca_get_be32(reth + 8),
                        qhca_get_be64(reth), qhca_get_be32(reth + 12),
                        level == QHCA_FLUSH_L_MR, access, qp->qpn);
    if (syn) {
        remote_error(e, qp, syn);
        return;
    }
    answer_empty(e, qp, rx, true);
}

/*
 * Find the SRQ of a request: within a message it must be that of the message,
 * for a new one any of the target's domain.
 */
static bool bind_srq(struct qhca *e, struct qhca_qp *qp,
                     const struct qhca_rx *rx)
{
    struct qhca_srq *srq = qhca_xrc_srq(e, qp, rx->srqn);

    if (!srq || (!(rx->flags & QHCA_OPF_START) && srq != qp->srq)) {
        return false;
    }
    /* A request that waited for a page has a WQE; this is not that request. */
    if (qp->xp->recv.held && srq != qp->srq) {
        return false;
    }
    qhca_xrc_bind(qp, srq);
    return true;
}

/* Execute the request with the expected PSN. */
static void rsp_request(struct qhca *e, struct qhca_qp *qp,
                        const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    bool done;

    if (!sequence_ok(xp, rx->flags) || !length_ok(qp, rx)) {
        invalid_request(e, qp, QHCA_SYN_BAD_PACKET);
        return;
    }
    if (qp->type == QHCA_QPT_XRC_TGT && !bind_srq(e, qp, rx)) {
        invalid_request(e, qp, QHCA_SYN_XRC_SRQ);
        return;
    }
    if (rx->flags & QHCA_OPF_READ) {
        rsp_do_read(e, qp, rx);
        return;
    }
    if (rx->flags & QHCA_OPF_ATOMIC) {
        rsp_do_atomic(e, qp, rx);
        return;
    }
    if (rx->flags & QHCA_OPF_AWRITE) {
        rsp_do_atomic_write(e, qp, rx);
        return;
    }
    if (rx->flags & QHCA_OPF_FLUSH) {
        rsp_do_flush(e, qp, rx);
        return;
    }
    done = rx->flags & QHCA_OPF_SEND ? rsp_do_send(e, qp, rx) :
                                       rsp_do_write(e, qp, rx);
    if (!done) {
        return;
    }
    if (rx->flags & QHCA_OPF_END) {
        message_done(e, qp, rx);
        if (!rsp_serving(qp)) {
            return;
        }
    }
    xp->exp_psn = qhca_psn_add(xp->exp_psn, 1);
    if (rx->ackreq && qhca_qp_reliable(qp)) {
        qhca_owe_ack(e, qp, rx->psn);
    }
}

/* ---- duplicates (IBA 9.7.5.1.4) ---- */

/*
 * READ @r waits for a page.  Does the peer request some of it again, maybe in
 * smaller parts, as its window has shrunk?
 */
static bool odp_repeats(struct qhca *e, struct qhca_qp *qp,
                        struct qhca_resp *r, const struct qhca_rx *rx,
                        uint32_t npkts)
{
    int32_t ahead = qhca_psn_diff(rx->psn, r->psn);
    uint64_t left;

    if (ahead >= (int32_t)qhca_packets(r->left, qp->path_mtu) ||
        ahead + (int32_t)npkts <= 0) {
        return false;
    }
    if (ahead < 0) {
        left = r->left + (uint64_t)-ahead * qhca_mtu_bytes(qp->path_mtu);
        rsp_fill_read(r, rx);
        if (left <= QHCA_MAX_MSG_SIZE) {
            r->left = (uint32_t)left;
        }
        r->started = false;
        r->alone = true;
    }
    /* Later parts may come at the same time: they are no sign of a timeout. */
    if (ahead <= 0 && qhca_odp_impatient(qp, QHCA_PAGE_FAULT_READ)) {
        r->rnr = true;
        qhca_qp_schedule(e, qp);
    }
    return true;
}

/*
 * A READ that was answered, at least in part, is requested again from rx->psn
 * on.  If it is still in the response queue, restart it there.
 */
static void duplicate_read(struct qhca *e, struct qhca_qp *qp,
                           const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t npkts = 0, end, i;
    struct qhca_resp *r;

    if (!(qp->access & QHCA_ACCESS_REMOTE_READ) ||
        rsp_check_read(e, qp, qhca_qp_pd(e, qp, rx->srqn), rx, &npkts) ||
        npkts > qhca_psn_dist(xp->exp_psn, rx->psn)) {
        return;
    }
    end = qhca_psn_add(rx->psn, npkts);
    for (i = xp->rspq_tail; i != xp->rspq_head; i++) {
        r = qhca_rspq_at(xp, i);
        if (r->kind != QHCA_RESP_READ) {
            continue;
        }
        if (i == xp->rspq_tail && qhca_odp_waits(qp, QHCA_ODP_READ) &&
            odp_repeats(e, qp, r, rx, npkts)) {
            return;
        }
        if (qhca_psn_add(r->psn, qhca_packets(r->left, qp->path_mtu)) != end) {
            continue;
        }
        if (qhca_psn_diff(rx->psn, r->psn) < 0) {
            rsp_fill_read(r, rx);
            r->started = false;
            r->alone = true;
        }
        return;                 /* will be answered */
    }
    r = qhca_rspq_push(e, qp);
    if (r) {
        rsp_fill_read(r, rx);
        r->uncounted = true;
    }
}

static void duplicate_atomic(struct qhca *e, struct qhca_qp *qp,
                             const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_resp *r;
    uint32_t i;

    for (i = xp->rspq_tail; i != xp->rspq_head; i++) {
        r = qhca_rspq_at(xp, i);
        if (r->kind == QHCA_RESP_ATOMIC && r->psn == rx->psn) {
            return;
        }
    }
    for (i = 0; i < QHCA_ATOMICS_KEPT; i++) {
        struct qhca_atomic_res *a = &xp->atomics[i];

        if (a->valid && a->psn == rx->psn) {
            r = qhca_rspq_push(e, qp);
            if (r) {
                r->kind = QHCA_RESP_ATOMIC;
                r->psn = rx->psn;
                r->va = a->old;
                r->uncounted = true;
            }
            return;
        }
    }
}

/*
 * An executed FLUSH or ATOMIC WRITE must not be executed again, as others may
 * have written since.
 */
static void duplicate_empty(struct qhca *e, struct qhca_qp *qp,
                            const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    struct qhca_resp *r;
    uint32_t i;

    for (i = xp->rspq_tail; i != xp->rspq_head; i++) {
        r = qhca_rspq_at(xp, i);
        if (r->kind == QHCA_RESP_READ && r->psn == rx->psn) {
            return;             /* will be answered */
        }
    }
    r = qhca_rspq_push(e, qp);
    if (r) {
        r->kind = QHCA_RESP_READ;
        r->psn = rx->psn;
        r->uncounted = true;
    }
}

static void rsp_duplicate(struct qhca *e, struct qhca_qp *qp,
                          const struct qhca_rx *rx)
{
    qp->duplicates++;
    qhca_rx_drop(e, rx, QHCA_STAT_ROCE_DUPLICATE);
    if (rx->flags & QHCA_OPF_READ) {
        duplicate_read(e, qp, rx);
    } else if (rx->flags & QHCA_OPF_ATOMIC) {
        duplicate_atomic(e, qp, rx);
    } else if (rx->flags & (QHCA_OPF_AWRITE | QHCA_OPF_FLUSH)) {
        duplicate_empty(e, qp, rx);
    } else if (rx->ackreq) {
        qhca_owe_ack(e, qp, qhca_psn_add(qp->xp->exp_psn, QHCA_PSN_MASK));
    }
}

/* ---- entry points ---- */

static void rx_rc(struct qhca *e, struct qhca_qp *qp,
                  const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;
    int32_t d = qhca_psn_diff(rx->psn, xp->exp_psn);

    if (d < 0) {
        rsp_duplicate(e, qp, rx);
    } else if (qhca_odp_waits(qp, QHCA_ODP_RECV)) {
        if (d > 0) {
            qhca_odp_drop(e, qp, QHCA_PAGE_FAULT_RECV, rx);
        } else {
            /* Resent, possibly with AckReq set. */
            qhca_odp_keep(qp, QHCA_PAGE_FAULT_RECV, rx);
            if (qhca_odp_impatient(qp, QHCA_PAGE_FAULT_RECV) &&
                qhca_owe_nak(e, qp, xp->exp_psn, QHCA_AETH_RNR |
                             (qp->min_rnr_timer & 31))) {
                qhca_count(e, QHCA_STAT_ROCE_RNR_NAK_TX);
            }
        }
    } else if (d > 0) {
        qhca_rx_drop(e, rx, QHCA_STAT_ROCE_OUT_OF_SEQUENCE);
        /* one NAK per gap (IBA 9.7.5.1.3) */
        if (!xp->naked && qhca_owe_nak(e, qp, xp->exp_psn, QHCA_NAK_SEQ)) {
            qhca_count(e, QHCA_STAT_ROCE_SEQ_NAK_TX);
            xp->naked = true;
        }
    } else {
        xp->naked = false;
        rsp_request(e, qp, rx);
        if (xp->exp_psn != rx->psn) {
            qhca_odp_passed(qp, QHCA_PAGE_FAULT_RECV);
        }
    }
}

void qhca_rsp_ask_again(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;

    if (qhca_qp_reliable(qp) && rsp_serving(qp) && !xp->naked &&
        qhca_owe_nak(e, qp, xp->exp_psn, QHCA_NAK_SEQ)) {
        qhca_count(e, QHCA_STAT_ROCE_SEQ_NAK_TX);
        xp->naked = true;
    }
}

void qhca_rsp_lost(struct qhca *e, struct qhca_qp *qp, uint32_t psn,
                   uint32_t n)
{
    struct qhca_xport *xp = qp->xp;

    if (qhca_odp_waits(qp, QHCA_ODP_RECV)) {
        /* The packet at exp_psn is kept. */
        if (qhca_psn_diff(qhca_psn_add(psn, n - 1), xp->exp_psn) > 0) {
            qhca_odp_missed(qp, QHCA_PAGE_FAULT_RECV);
        }
    } else if (qhca_psn_dist(xp->exp_psn, psn) < n) {
        xp->naked = false;      /* this may be what a NAK asked for */
        qhca_rsp_ask_again(e, qp);
    }
}

static void rx_uc(struct qhca *e, struct qhca_qp *qp,
                  const struct qhca_rx *rx)
{
    struct qhca_xport *xp = qp->xp;

    if (qhca_odp_waits(qp, QHCA_ODP_RECV)) {
        qhca_odp_drop(e, qp, QHCA_PAGE_FAULT_RECV, rx);
        return;
    }
    if (rx->psn != xp->exp_psn || !sequence_ok(xp, rx->flags) ||
        !length_ok(qp, rx)) {
        /* The message in progress is lost (IBA 9.8.2.2.3). */
        qhca_rx_drop(e, rx, rx->psn != xp->exp_psn ||
                     xp->rsp_op == QHCA_RSPOP_SKIP ?
                     QHCA_STAT_ROCE_OUT_OF_SEQUENCE :
                     QHCA_STAT_ROCE_RX_MALFORMED);
        xp->rsp_op = QHCA_RSPOP_SKIP;
        xp->exp_psn = qhca_psn_add(rx->psn, 1);
        if (!(rx->flags & QHCA_OPF_START) || !length_ok(qp, rx)) {
            return;
        }
        xp->exp_psn = rx->psn;
    }
    rsp_request(e, qp, rx);
    if (rsp_serving(qp) && !qhca_odp_waits(qp, QHCA_ODP_RECV)) {
        qhca_odp_passed(qp, QHCA_PAGE_FAULT_RECV);
        xp->exp_psn = qhca_psn_add(rx->psn, 1);
    }
}

void qhca_rsp_rx(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_rx *rx)
{
    if (qp->state == QHCA_QPS_RTR && !qp->xp->comm_est) {
        qp->xp->comm_est = true;
        qhca_async_event(e, &qp->ev, QHCA_EV_COMM_EST, 0);
    }
    if (qp->type == QHCA_QPT_UC) {
        rx_uc(e, qp, rx);
    } else {
        rx_rc(e, qp, rx);
    }
}
