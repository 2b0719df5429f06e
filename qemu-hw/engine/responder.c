/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The responder of RC and UC: executes requests (IBA 9.7.4, 9.8.2).  What it
 * answers is put into a queue, see response.c.
 */
#include "roce.h"

/*
 * The request at exp_psn cannot be executed: NAK, and the QP is finished.
 * UC knows no NAK: the message is dropped and the QP lives, unless
 * @event says that it was its own memory that failed.
 */
static void fatal_nak(struct qhca *e, struct qhca_qp *qp, uint8_t nak,
                      uint8_t syndrome, uint8_t event)
{
    struct qhca_xport *xp = &qp->xp;

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

/* A check or copy with a remote key gave @syn. */
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

/* The receive WQE that is held failed with @syn: CQE here, NAK there. */
static void receive_error(struct qhca *e, struct qhca_qp *qp, uint8_t syn)
{
    struct qhca_xport *xp = &qp->xp;
    uint8_t status = QHCA_WC_LOC_PROT_ERR, nak = QHCA_NAK_OP;
    bool held = xp->recv_held;

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
    struct qhca_xport *xp = &qp->xp;

    if (qp->type == QHCA_QPT_UC) {
        qhca_rx_drop(e, rx, QHCA_STAT_UD_DROPPED);
        xp->rsp_op = QHCA_RSPOP_SKIP;
        return;
    }
    if (qhca_owe_nak(e, qp, xp->exp_psn,
                     QHCA_AETH_RNR | (qp->min_rnr_timer & 31))) {
        qhca_count(e, QHCA_STAT_ROCE_RNR_NAK_TX);
        xp->naked = true;       /* what follows is dropped silently */
    }
}

/* ---- requests in order ---- */

/* The packet fits what came before it in its message. */
static bool sequence_ok(const struct qhca_xport *xp, uint16_t flags)
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
    struct qhca_xport *xp = &qp->xp;
    struct qhca_cqe cqe = { 0 };
    uint8_t op = QHCA_CQE_OP_RECV;
    uint8_t syn;

    xp->rsp_op = QHCA_RSPOP_NONE;
    xp->msn = qhca_psn_add(xp->msn, 1);
    if (rx->flags & QHCA_OPF_INV) {
        uint32_t key = qhca_get_be32(rx->ext);

        syn = qhca_mr_invalidate(e, qp->pd, key);
        if (syn) {
            qhca_recv_error(e, qp, QHCA_WC_REM_INV_REQ_ERR, syn);
            remote_error(e, qp, syn);
            return;
        }
        cqe.imm = qhca_le32(key);
        cqe.flags = qhca_le16(QHCA_CQE_F_INV);
    } else if (rx->flags & QHCA_OPF_IMM) {
        memcpy(&cqe.imm, rx->payload - QHCA_IMM_LEN, 4);
        cqe.flags = qhca_le16(QHCA_CQE_F_IMM);
    } else if (rx->flags & QHCA_OPF_WRITE) {
        return;                 /* nobody is told */
    }
    if (rx->flags & QHCA_OPF_WRITE) {
        op = QHCA_CQE_OP_RECV_RDMA_IMM;
        cqe.byte_len = qhca_le32(xp->wr_len);
    } else {
        cqe.byte_len = qhca_le32(xp->recv_len);
    }
    qhca_recv_complete(e, qp, &cqe, op, QHCA_WC_SUCCESS, QHCA_SYN_NONE,
                       rx->se);
}

static bool serving(const struct qhca_qp *qp)
{
    return qp->state == QHCA_QPS_RTR || qp->state == QHCA_QPS_RTS ||
           qp->state == QHCA_QPS_SQD || qp->state == QHCA_QPS_SQE;
}

/* True: the packet was taken. */
static bool do_send(struct qhca *e, struct qhca_qp *qp,
                    const struct qhca_rx *rx)
{
    uint8_t syn;

    if (rx->flags & QHCA_OPF_START) {
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
    syn = qhca_recv_data(e, qp, rx->payload, rx->payload_len);
    if (syn) {
        receive_error(e, qp, syn);
        return false;
    }
    qp->xp.rsp_op = QHCA_RSPOP_SEND;
    return true;
}

static bool do_write(struct qhca *e, struct qhca_qp *qp,
                     const struct qhca_rx *rx)
{
    struct qhca_xport *xp = &qp->xp;
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
    /* The RETH's length and the packets' must agree. */
    if (rx->flags & QHCA_OPF_END ? n != left : n >= left) {
        invalid_request(e, qp, QHCA_SYN_BAD_PACKET);
        return false;
    }
    if (rx->flags & QHCA_OPF_START) {
        /* the reserved key is no remote key, so never privileged */
        syn = qhca_mr_check(e, qp->pd, false, xp->wr_rkey, xp->wr_va, left,
                            QHCA_ACCESS_REMOTE_WRITE);
        if (syn) {
            remote_error(e, qp, syn);
            return false;
        }
    }
    if (rx->flags & QHCA_OPF_IMM) {
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
    if (syn) {
        remote_error(e, qp, syn);
        return false;
    }
    xp->wr_va += n;
    xp->wr_left = left - n;
    xp->rsp_op = QHCA_RSPOP_WRITE;
    return true;
}

/* Check a READ request; true: *@npkts responses may be owed. */
static uint8_t check_read(struct qhca *e, struct qhca_qp *qp,
                          const struct qhca_rx *rx, uint32_t *npkts)
{
    uint32_t len = qhca_get_be32(rx->ext + 12);

    if (len > QHCA_MAX_MSG_SIZE) {
        return QHCA_SYN_BAD_PACKET;
    }
    *npkts = qhca_packets(len, qp->path_mtu);
    return qhca_mr_check(e, qp->pd, false, qhca_get_be32(rx->ext + 8),
                         qhca_get_be64(rx->ext), len,
                         QHCA_ACCESS_REMOTE_READ);
}

static void fill_read(struct qhca_resp *r, const struct qhca_rx *rx)
{
    r->kind = QHCA_RESP_READ;
    r->psn = rx->psn;
    r->va = qhca_get_be64(rx->ext);
    r->rkey = qhca_get_be32(rx->ext + 8);
    r->left = qhca_get_be32(rx->ext + 12);
}

/* READs and atomics: may one more be in progress? */
static bool resources_ok(struct qhca *e, struct qhca_qp *qp, uint32_t access)
{
    if (!(qp->access & access)) {
        invalid_request(e, qp, QHCA_SYN_QP_ACCESS);
        return false;
    }
    if (qp->xp.rd_pending >= qp->max_dest_rd_atomic) {
        invalid_request(e, qp, QHCA_SYN_RD_ATOMIC);
        return false;
    }
    return true;
}

static void do_read(struct qhca *e, struct qhca_qp *qp,
                    const struct qhca_rx *rx)
{
    struct qhca_xport *xp = &qp->xp;
    struct qhca_resp *r;
    uint32_t npkts = 0;
    uint8_t syn;

    if (!resources_ok(e, qp, QHCA_ACCESS_REMOTE_READ)) {
        return;
    }
    syn = check_read(e, qp, rx, &npkts);
    if (syn) {
        remote_error(e, qp, syn);
        return;
    }
    r = qhca_rspq_push(e, qp);
    if (!r) {
        return;                 /* as if lost on the way: it comes again */
    }
    fill_read(r, rx);
    xp->rd_pending++;
    xp->exp_psn = qhca_psn_add(xp->exp_psn, npkts);
    xp->msn = qhca_psn_add(xp->msn, 1);
}

static void do_atomic(struct qhca *e, struct qhca_qp *qp,
                      const struct qhca_rx *rx)
{
    struct qhca_xport *xp = &qp->xp;
    struct qhca_atomic_res *a;
    bool swap = rx->opcode == QHCA_OP_COMP_SWAP;
    uint64_t va = qhca_get_be64(rx->ext);
    uint32_t rkey = qhca_get_be32(rx->ext + 8);
    uint64_t swap_add = qhca_get_be64(rx->ext + 12);
    uint64_t cmp = qhca_get_be64(rx->ext + 20);
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
        return;                 /* before anything is changed */
    }
    syn = qhca_mr_atomic(e, qp->pd, rkey, va, swap, swap ? cmp : swap_add,
                         swap ? swap_add : 0, &old, qp->qpn);
    if (syn) {
        remote_error(e, qp, syn);
        return;
    }
    a = &xp->atomics[xp->atomic_next];
    xp->atomic_next = (xp->atomic_next + 1) % 16;
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

/* The request with the expected PSN. */
static void request(struct qhca *e, struct qhca_qp *qp,
                    const struct qhca_rx *rx)
{
    struct qhca_xport *xp = &qp->xp;
    bool done;

    if (!sequence_ok(xp, rx->flags) || !length_ok(qp, rx)) {
        invalid_request(e, qp, QHCA_SYN_BAD_PACKET);
        return;
    }
    if (rx->flags & QHCA_OPF_READ) {
        do_read(e, qp, rx);
        return;
    }
    if (rx->flags & QHCA_OPF_ATOMIC) {
        do_atomic(e, qp, rx);
        return;
    }
    done = rx->flags & QHCA_OPF_SEND ? do_send(e, qp, rx) :
                                       do_write(e, qp, rx);
    if (!done) {
        return;
    }
    if (rx->flags & QHCA_OPF_END) {
        message_done(e, qp, rx);
        if (!serving(qp)) {
            return;
        }
    }
    xp->exp_psn = qhca_psn_add(xp->exp_psn, 1);
    if (rx->ackreq && qp->type == QHCA_QPT_RC) {
        qhca_owe_ack(e, qp, rx->psn);
    }
}

/* ---- duplicates (IBA 9.7.5.1.4) ---- */

/*
 * A READ that was answered, at least in part, is asked for again from rx->psn
 * on.  If its answer is still in the queue, that one is set back.
 */
static void duplicate_read(struct qhca *e, struct qhca_qp *qp,
                           const struct qhca_rx *rx)
{
    struct qhca_xport *xp = &qp->xp;
    uint32_t npkts = 0, end, i;
    struct qhca_resp *r;

    if (!(qp->access & QHCA_ACCESS_REMOTE_READ) ||
        check_read(e, qp, rx, &npkts) ||
        npkts > qhca_psn_dist(xp->exp_psn, rx->psn)) {
        return;
    }
    end = qhca_psn_add(rx->psn, npkts);
    for (i = xp->rspq_tail; i != xp->rspq_head; i++) {
        r = qhca_rspq_at(xp, i);
        if (r->kind != QHCA_RESP_READ ||
            qhca_psn_add(r->psn, qhca_packets(r->left, qp->path_mtu)) != end) {
            continue;
        }
        if (qhca_psn_diff(rx->psn, r->psn) < 0) {
            fill_read(r, rx);
            r->started = false;
        }
        return;                 /* it will be answered */
    }
    r = qhca_rspq_push(e, qp);
    if (r) {
        fill_read(r, rx);
        r->dup = true;
    }
}

static void duplicate_atomic(struct qhca *e, struct qhca_qp *qp,
                             const struct qhca_rx *rx)
{
    struct qhca_xport *xp = &qp->xp;
    struct qhca_resp *r;
    uint32_t i;

    for (i = xp->rspq_tail; i != xp->rspq_head; i++) {
        r = qhca_rspq_at(xp, i);
        if (r->kind == QHCA_RESP_ATOMIC && r->psn == rx->psn) {
            return;
        }
    }
    for (i = 0; i < 16; i++) {
        struct qhca_atomic_res *a = &xp->atomics[i];

        if (a->valid && a->psn == rx->psn) {
            r = qhca_rspq_push(e, qp);
            if (r) {
                r->kind = QHCA_RESP_ATOMIC;
                r->psn = rx->psn;
                r->va = a->old;
                r->dup = true;
            }
            return;
        }
    }
}

static void duplicate(struct qhca *e, struct qhca_qp *qp,
                      const struct qhca_rx *rx)
{
    qp->duplicates++;
    qhca_rx_drop(e, rx, QHCA_STAT_ROCE_DUPLICATE);
    if (rx->flags & QHCA_OPF_READ) {
        duplicate_read(e, qp, rx);
    } else if (rx->flags & QHCA_OPF_ATOMIC) {
        duplicate_atomic(e, qp, rx);
    } else if (rx->ackreq) {
        qhca_owe_ack(e, qp, qhca_psn_add(qp->xp.exp_psn, QHCA_PSN_MASK));
    }
}

/* ---- the ways in ---- */

static void rx_rc(struct qhca *e, struct qhca_qp *qp,
                  const struct qhca_rx *rx)
{
    struct qhca_xport *xp = &qp->xp;
    int32_t d = qhca_psn_diff(rx->psn, xp->exp_psn);

    if (d < 0) {
        duplicate(e, qp, rx);
    } else if (d > 0) {
        qhca_rx_drop(e, rx, QHCA_STAT_ROCE_OUT_OF_SEQUENCE);
        /* one NAK per gap (IBA 9.7.5.1.3) */
        if (!xp->naked && qhca_owe_nak(e, qp, xp->exp_psn, QHCA_NAK_SEQ)) {
            qhca_count(e, QHCA_STAT_ROCE_SEQ_NAK_TX);
            xp->naked = true;
        }
    } else {
        xp->naked = false;
        request(e, qp, rx);
    }
}

static void rx_uc(struct qhca *e, struct qhca_qp *qp,
                  const struct qhca_rx *rx)
{
    struct qhca_xport *xp = &qp->xp;

    if (rx->psn != xp->exp_psn || !sequence_ok(xp, rx->flags) ||
        !length_ok(qp, rx)) {
        /* The message under way is lost (IBA 9.8.2.2.3). */
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
    request(e, qp, rx);
    if (serving(qp)) {
        xp->exp_psn = qhca_psn_add(rx->psn, 1);
    }
}

void qhca_rsp_rx(struct qhca *e, struct qhca_qp *qp,
                 const struct qhca_rx *rx)
{
    if (qp->state == QHCA_QPS_RTR && !qp->xp.comm_est) {
        qp->xp.comm_est = true;
        qhca_async_event(e, &qp->ev, QHCA_EV_COMM_EST, 0);
    }
    if (qp->type == QHCA_QPT_UC) {
        rx_uc(e, qp, rx);
    } else {
        rx_rc(e, qp, rx);
    }
}
