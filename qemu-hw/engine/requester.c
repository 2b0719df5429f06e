/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The requester of RC and UC: turns send WQEs into packets.
 *
 * WQEs sq_tail .. sq_next - 1 are under way, remembered in the QP's window.
 * A cursor (cur, cur_pkt, snd_psn) says which packet goes out next; it can
 * stop at every packet and be set back to the oldest unacknowledged one.
 */
#include <stdlib.h>

#include "roce.h"

/* Half of the PSN space: more must never be outstanding (IBA 9.7.1). */
#define PSN_SPAN    0x800000U

static inline uint16_t get_le16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, 2);
    return qhca_le16(v);
}

uint8_t qhca_cqe_op(uint8_t wqe_opcode)
{
    switch (wqe_opcode) {
    case QHCA_WQE_RDMA_WRITE:
    case QHCA_WQE_RDMA_WRITE_IMM:
        return QHCA_CQE_OP_RDMA_WRITE;
    case QHCA_WQE_RDMA_READ:
        return QHCA_CQE_OP_RDMA_READ;
    case QHCA_WQE_COMP_SWAP:
        return QHCA_CQE_OP_COMP_SWAP;
    case QHCA_WQE_FETCH_ADD:
        return QHCA_CQE_OP_FETCH_ADD;
    case QHCA_WQE_LOCAL_INV:
        return QHCA_CQE_OP_LOCAL_INV;
    case QHCA_WQE_REG_MR:
        return QHCA_CQE_OP_REG_MR;
    default:
        return QHCA_CQE_OP_SEND;
    }
}

bool qhca_send_cqe(struct qhca *e, struct qhca_qp *qp, uint64_t wr_id,
                   uint32_t index, uint8_t opcode, uint32_t len,
                   uint8_t status, uint8_t syndrome)
{
    struct qhca_cqe cqe = {
        .wr_id = qhca_le64(wr_id),
        .qpn = qhca_le32(qp->qpn),
        .wqe_index = qhca_le32(index),
        .byte_len = qhca_le32(len),
        .opcode = qhca_cqe_op(opcode),
        .status = status,
        .syndrome = syndrome,
    };

    return qhca_cq_push(e, qp->scq, &cqe, false);
}

/* ---- window blocks ---- */

static bool window_get(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_window *win = e->xd.free_windows;

    if (win) {
        e->xd.free_windows = win->next;
    } else {
        win = calloc(1, sizeof(*win));
        if (!win) {
            return false;
        }
    }
    win->snd_valid = false;
    win->rd_valid = false;
    qp->xp.win = win;
    return true;
}

void qhca_window_put(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_window *win = qp->xp.win;

    if (win) {
        win->next = e->xd.free_windows;
        e->xd.free_windows = win;
        qp->xp.win = NULL;
    }
}

/* ---- WQEs ---- */

static bool is_rd(uint8_t opcode)
{
    return opcode == QHCA_WQE_RDMA_READ || opcode == QHCA_WQE_COMP_SWAP ||
           opcode == QHCA_WQE_FETCH_ADD;
}

static bool is_atomic(uint8_t opcode)
{
    return opcode == QHCA_WQE_COMP_SWAP || opcode == QHCA_WQE_FETCH_ADD;
}

static bool is_local(uint8_t opcode)
{
    return opcode == QHCA_WQE_LOCAL_INV || opcode == QHCA_WQE_REG_MR;
}

static uint8_t bad_wqe(struct qhca_swqe *w, uint8_t status, uint8_t syndrome)
{
    w->status = status;
    w->syndrome = syndrome;
    return syndrome;
}

/*
 * Take the WQE at @p apart into @w and check what can be checked without
 * touching memory.  Sets w->status if it is bad.
 */
static uint8_t parse_wqe(const struct qhca_qp *qp, const uint8_t *p,
                         struct qhca_swqe *w)
{
    uint32_t room = (1U << qp->sq_stride) - sizeof(struct qhca_sq_wqe);
    uint64_t total = 0;
    uint32_t i;

    w->opcode = p[0];
    w->flags = p[1];
    w->num = get_le16(p + 2);
    memcpy(&w->imm, p + 4, 4);
    w->wr_id = qhca_get_le64(p + 8);
    w->arg0 = qhca_get_le64(p + 0x10);
    w->arg1 = qhca_get_le64(p + 0x18);
    w->raddr = qhca_get_le64(p + 0x20);
    w->rkey = qhca_get_le32(p + 0x28);
    w->len = 0;

    switch (w->opcode) {
    case QHCA_WQE_SEND:
    case QHCA_WQE_SEND_IMM:
    case QHCA_WQE_RDMA_WRITE:
    case QHCA_WQE_RDMA_WRITE_IMM:
        break;
    case QHCA_WQE_SEND_INV:
    case QHCA_WQE_RDMA_READ:
    case QHCA_WQE_COMP_SWAP:
    case QHCA_WQE_FETCH_ADD:
        if (qp->type == QHCA_QPT_RC) {
            break;
        }
        return bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_OPCODE);
    case QHCA_WQE_REG_MR:
        /* It names DMA addresses: for the kernel's queues only. */
        if (!(qp->flags & QHCA_QP_F_PRIVILEGED)) {
            return bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_OPCODE);
        }
        /* fall through */
    case QHCA_WQE_LOCAL_INV:
        if (w->flags & QHCA_WQE_F_INLINE) {
            return bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_FLAGS);
        }
        w->num = 0;
        return QHCA_SYN_NONE;
    default:
        return bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_OPCODE);
    }
    if ((w->flags & ~(QHCA_WQE_F_SIGNALED | QHCA_WQE_F_SOLICITED |
                      QHCA_WQE_F_FENCE | QHCA_WQE_F_INLINE)) ||
        ((w->flags & QHCA_WQE_F_INLINE) && is_rd(w->opcode))) {
        return bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_FLAGS);
    }
    if (w->flags & QHCA_WQE_F_INLINE) {
        if (w->num > room || w->num > QHCA_MAX_INLINE) {
            return bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE);
        }
        total = w->num;
    } else {
        if (w->num > room / sizeof(struct qhca_sge) ||
            w->num > QHCA_MAX_SGE) {
            return bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE);
        }
        p += sizeof(struct qhca_sq_wqe);
        if (w->num) {
            w->laddr = qhca_get_le64(p);
            w->lkey = qhca_get_le32(p + 12);
        }
        for (i = 0; i < w->num; i++) {
            total += qhca_get_le32(p + i * sizeof(struct qhca_sge) + 8);
        }
    }
    if (total > QHCA_MAX_MSG_SIZE) {
        return bad_wqe(w, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH);
    }
    if (is_atomic(w->opcode)) {
        if (total < 8) {
            return bad_wqe(w, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH);
        }
        total = 8;
    }
    if (is_rd(w->opcode) && !qp->max_rd_atomic) {
        return bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_RD_ATOMIC);
    }
    w->len = (uint32_t)total;
    return QHCA_SYN_NONE;
}

static void trace_wqe(struct qhca *e, struct qhca_qp *qp,
                      const struct qhca_swqe *w, uint32_t index,
                      uint64_t addr)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_WQE,
        .num = qp->qpn,
        .index = index,
        .addr = addr,
        .a = w->opcode,
        .b = w->wr_id,
        .syndrome = w->syndrome,
    };

    qhca_trace_emit(e, &t);
}

/*
 * Check the local side of the whole message before its first packet goes
 * out: an error found later would come after the remote side has acted on a
 * part.  A message of one packet is checked when it is read.
 */
static uint8_t check_local(struct qhca *e, struct qhca_qp *qp,
                           const struct qhca_swqe *w, const uint8_t *sges)
{
    bool privileged = qp->flags & QHCA_QP_F_PRIVILEGED;
    uint32_t access = is_rd(w->opcode) ? QHCA_ACCESS_LOCAL_WRITE : 0;
    uint32_t i, left = w->len;

    if ((w->flags & QHCA_WQE_F_INLINE) || is_local(w->opcode) ||
        (!access && left <= qhca_mtu_bytes(qp->path_mtu))) {
        return QHCA_SYN_NONE;
    }

    for (i = 0; i < w->num && left; i++) {
        const uint8_t *s = sges + i * sizeof(struct qhca_sge);
        uint32_t n = qhca_get_le32(s + 8);
        uint8_t syn;

        n = n < left ? n : left;
        syn = qhca_mr_check(e, qp->pd, privileged, qhca_get_le32(s + 12),
                            qhca_get_le64(s), n, access);
        if (syn) {
            return syn;
        }
        left -= n;
    }
    return QHCA_SYN_NONE;
}

/* Fetch WQE sq_next into the window.  False: no memory, the QP is in ERR. */
static bool load_wqe(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = &qp->xp;
    uint32_t index = qp->sq_next;
    struct qhca_window *win;
    struct qhca_swqe *w;
    uint64_t addr = 0;
    uint8_t syn;

    if (!xp->win && !window_get(e, qp)) {
        qhca_qp_error(e, qp, QHCA_SYN_WQE_DMA, QHCA_EV_QP_FATAL);
        return false;
    }
    win = xp->win;
    w = qhca_swqe(qp, index);
    memset(w, 0, sizeof(*w));
    win->snd_valid = false;
    syn = qhca_sq_fetch(e, qp, index, win->snd_wqe, &addr);
    if (syn) {
        bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, syn);
    } else {
        win->snd_valid = true;
        win->snd_index = index;
        memset(&xp->snd_pos, 0, sizeof(xp->snd_pos));
        if (!parse_wqe(qp, win->snd_wqe, w)) {
            syn = check_local(e, qp, w,
                              win->snd_wqe + sizeof(struct qhca_sq_wqe));
            if (syn) {
                bad_wqe(w, QHCA_WC_LOC_PROT_ERR, syn);
            }
        }
    }
    w->first_psn = xp->snd_psn;
    if (!w->status && !is_local(w->opcode)) {
        w->npkts = is_atomic(w->opcode) ? 1 :
                   qhca_packets(w->len, qp->path_mtu);
    }
    qp->sq_next = index + 1;
    if (qhca_tracing(e)) {
        trace_wqe(e, qp, w, index, addr);
    }
    return true;
}

const uint8_t *qhca_req_wqe(struct qhca *e, struct qhca_qp *qp,
                            struct qhca_swqe *w, uint32_t index,
                            bool reading, uint8_t *syn)
{
    struct qhca_window *win = qp->xp.win;
    uint8_t *copy = reading ? win->rd_wqe : win->snd_wqe;
    bool *valid = reading ? &win->rd_valid : &win->snd_valid;
    uint32_t *which = reading ? &win->rd_index : &win->snd_index;
    struct qhca_sgpos *pos = reading ? &qp->xp.rd_pos : &qp->xp.snd_pos;
    struct qhca_swqe again = { 0 };
    uint64_t addr;

    if (!*valid || *which != index) {
        memset(pos, 0, sizeof(*pos));
        *valid = false;
        if (win->snd_valid && win->snd_index == index) {
            memcpy(copy, win->snd_wqe, 1U << qp->sq_stride);
        } else {
            *syn = qhca_sq_fetch(e, qp, index, copy, &addr);
            if (*syn) {
                return NULL;
            }
            /* Software may have changed it meanwhile, but not its size. */
            *syn = parse_wqe(qp, copy, &again);
            if (*syn) {
                return NULL;
            }
            if (again.opcode != w->opcode || again.len != w->len ||
                again.num != w->num ||
                ((again.flags ^ w->flags) & QHCA_WQE_F_INLINE)) {
                *syn = QHCA_SYN_WQE_LENGTH;
                return NULL;
            }
        }
        *valid = true;
        *which = index;
    }
    return copy + sizeof(struct qhca_sq_wqe);
}

/* Put bytes @off .. @off + @len - 1 of the message into @buf. */
static uint8_t gather(struct qhca *e, struct qhca_qp *qp,
                      struct qhca_swqe *w, uint32_t off, uint8_t *buf,
                      uint32_t len)
{
    const uint8_t *data;
    uint8_t syn = QHCA_SYN_NONE;

    if (!len) {
        return QHCA_SYN_NONE;
    }
    if (w->num == 1 && !(w->flags & QHCA_WQE_F_INLINE)) {
        return qhca_mr_read(e, qp->pd, qp->flags & QHCA_QP_F_PRIVILEGED,
                            w->lkey, w->laddr + off, buf, len, 0, qp->qpn);
    }
    data = qhca_req_wqe(e, qp, w, qp->xp.cur, false, &syn);
    if (!data) {
        return syn;
    }
    if (w->flags & QHCA_WQE_F_INLINE) {
        memcpy(buf, data + off, len);
        return QHCA_SYN_NONE;
    }
    return qhca_sgl_copy(e, qp, qp->pd, data, w->num, &qp->xp.snd_pos, off,
                         buf, len, false);
}

/* ---- completion at the tail ---- */

void qhca_req_complete(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = &qp->xp;
    struct qhca_swqe *w = qhca_swqe(qp, qp->sq_tail);
    uint32_t index = qp->sq_tail;

    if (w->marks & QHCA_SW_RD) {
        xp->rd_out--;
    }
    if (xp->cur == index) {
        xp->cur++;
        xp->cur_pkt = 0;
    }
    qp->sq_tail++;
    if ((w->flags & QHCA_WQE_F_SIGNALED) &&
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

    if (w->marks & QHCA_SW_RD) {
        qp->xp.rd_out--;
    }
    qp->sq_tail++;
    if (!qhca_send_cqe(e, qp, w->wr_id, index, w->opcode, 0, status,
                       syndrome)) {
        qhca_qp_error(e, qp, QHCA_SYN_CQ_OVERFLOW, QHCA_EV_QP_FATAL);
    } else if (qp->type == QHCA_QPT_RC) {
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
    if (qp->xp.drain && qp->state == QHCA_QPS_SQD &&
        qp->sq_tail == qp->sq_next) {
        qp->xp.drain = false;
        qhca_async_event(e, &qp->ev, QHCA_EV_SQ_DRAINED, 0);
    }
}

/* ---- the cursor ---- */

void qhca_req_cursor(struct qhca_qp *qp)
{
    struct qhca_xport *xp = &qp->xp;

    xp->snd_psn = xp->una_psn;
    xp->rd_psns = 0;
    xp->since_ack = 0;
    xp->cur = qp->sq_tail;
    xp->cur_pkt = 0;
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
    qp->xp.ask = true;
    qp->xp.ask_psn = qp->xp.max_psn;
    if (qhca_tracing(e)) {
        struct qhca_trace t = {
            .kind = QHCA_TR_RETRANSMIT,
            .num = qp->qpn,
            .psn = qp->xp.una_psn,
            .a = why,
        };

        qhca_trace_emit(e, &t);
    }
}

enum step {
    STEP_AGAIN,                 /* something was done, no packet sent */
    STEP_SENT,
    STEP_WAIT,                  /* until something happens to the QP */
    STEP_BLOCKED                /* the wire takes nothing */
};

static enum step wait_for(struct qhca_xport *xp, uint8_t why)
{
    xp->req_state = why;
    return STEP_WAIT;
}

/* The WQE under the cursor cannot be sent (any further). */
static enum step local_error(struct qhca *e, struct qhca_qp *qp,
                             struct qhca_swqe *w, uint8_t syndrome)
{
    bool wqe = syndrome >= QHCA_SYN_WQE_DMA && syndrome < QHCA_SYN_DB_INDEX;

    bad_wqe(w, wqe ? QHCA_WC_LOC_QP_OP_ERR : QHCA_WC_LOC_PROT_ERR, syndrome);
    qhca_req_reap(e, qp);
    return STEP_AGAIN;
}

static uint8_t do_local(struct qhca *e, struct qhca_qp *qp,
                        struct qhca_swqe *w)
{
    struct qhca_sq_wqe wqe;
    uint8_t syn = QHCA_SYN_NONE;
    uint32_t key;

    if (w->opcode == QHCA_WQE_LOCAL_INV) {
        memcpy(&key, &w->imm, 4);
        return qhca_mr_invalidate(e, qp->pd, qhca_le32(key));
    }
    if (!qhca_req_wqe(e, qp, w, qp->xp.cur, false, &syn)) {
        return syn;
    }
    memcpy(&wqe, qp->xp.win->snd_wqe, sizeof(wqe));
    return qhca_mr_fast_reg(e, qp->pd, &wqe);
}

static uint8_t bth_opcode(const struct qhca_swqe *w, bool first, bool last)
{
    switch (w->opcode) {
    case QHCA_WQE_RDMA_READ:
        return QHCA_OP_READ_REQUEST;
    case QHCA_WQE_COMP_SWAP:
        return QHCA_OP_COMP_SWAP;
    case QHCA_WQE_FETCH_ADD:
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

/* Write the extended headers of a request; returns their length. */
static uint32_t put_ext(uint8_t *p, const struct qhca_swqe *w,
                        struct qhca_op_info info, uint32_t off)
{
    uint8_t *start = p;

    if (info.flags & QHCA_OPF_RETH) {
        qhca_put_be64(p, w->raddr + off);
        qhca_put_be32(p + 8, w->rkey);
        qhca_put_be32(p + 12, w->len - off);
        p += QHCA_RETH_LEN;
    }
    if (is_atomic(w->opcode)) {
        bool swap = w->opcode == QHCA_WQE_COMP_SWAP;

        qhca_put_be64(p, w->raddr);
        qhca_put_be32(p + 8, w->rkey);
        qhca_put_be64(p + 12, swap ? w->arg1 : w->arg0);
        qhca_put_be64(p + 20, swap ? w->arg0 : 0);
        p += QHCA_ATETH_LEN;
    }
    if (info.flags & QHCA_OPF_IMM) {
        memcpy(p, &w->imm, 4);  /* software stored it in network order */
        p += QHCA_IMM_LEN;
    }
    if (info.flags & QHCA_OPF_INV) {
        qhca_put_be32(p, qhca_le32(w->imm));
        p += QHCA_IETH_LEN;
    }
    return (uint32_t)(p - start);
}

/*
 * Must the peer acknowledge this packet?  Yes where software waits for it:
 * signaled messages, READs and atomics, and the last message posted.  Long
 * messages also between, lest the window closes for a whole round trip.
 * Other unsignaled messages are covered by a later acknowledge; see ask_now()
 * for when none comes.
 */
static bool want_ack(const struct qhca_qp *qp, const struct qhca_swqe *w,
                     bool last)
{
    const struct qhca_xport *xp = &qp->xp;

    return xp->ask || xp->since_ack + 1 >= QHCA_ACK_INTERVAL ||
           (last && ((w->flags & QHCA_WQE_F_SIGNALED) || is_rd(w->opcode) ||
                     xp->cur + 1 == qp->sq_head));
}

static enum step send_packet(struct qhca *e, struct qhca_qp *qp,
                             struct qhca_swqe *w)
{
    struct qhca_xport *xp = &qp->xp;
    bool rd = is_rd(w->opcode), first, last, ack;
    uint32_t mtu = qhca_mtu_bytes(qp->path_mtu), off, len, ext, psns;
    struct qhca_op_info info;
    struct qhca_frame f;
    uint8_t op, syn;

    off = xp->cur_pkt * mtu;
    first = rd || xp->cur_pkt == 0;
    last = rd || xp->cur_pkt + 1 == w->npkts;
    len = rd ? 0 : last ? w->len - off : mtu;
    psns = rd ? w->npkts - xp->cur_pkt : 1;

    switch (qhca_frame_begin(e, &qp->av, qp->qpn, qp->dest_qpn, &f)) {
    case QHCA_SENT:
        break;
    case QHCA_BLOCKED:
        return STEP_BLOCKED;
    case QHCA_BAD_AV:
        return local_error(e, qp, w, QHCA_SYN_WQE_AV);
    }
    op = bth_opcode(w, first, last);
    info = qhca_op_info(op);
    ack = qp->type == QHCA_QPT_RC && want_ack(qp, w, last);
    qhca_frame_bth(&f, op | (qp->type == QHCA_QPT_UC ? QHCA_CLASS_UC : 0),
                   last && (w->flags & QHCA_WQE_F_SOLICITED) &&
                   ((info.flags & QHCA_OPF_SEND) ||
                    (info.flags & QHCA_OPF_IMM)),
                   ack, len, qp->dest_qpn, xp->snd_psn);
    ext = put_ext(f.bth + QHCA_BTH_LEN, w, info, off);
    syn = gather(e, qp, w, off, f.bth + QHCA_BTH_LEN + ext, len);
    if (syn) {
        return local_error(e, qp, w, syn);
    }
    if (qhca_frame_end(e, &f, qp->qpn, ext, len) != QHCA_SENT) {
        return STEP_BLOCKED;
    }

    qp->tx_packets++;
    xp->since_ack = ack ? 0 : xp->since_ack + 1;
    if (qp->type == QHCA_QPT_RC &&
        qhca_psn_dist(xp->snd_psn, xp->una_psn) <
        qhca_psn_dist(xp->max_psn, xp->una_psn)) {
        qp->retransmits++;
        qhca_count(e, QHCA_STAT_ROCE_RETRANSMITS);
    }
    w->marks |= QHCA_SW_STARTED;
    if (rd) {
        if (!(w->marks & QHCA_SW_RD)) {
            w->marks |= QHCA_SW_RD;
            xp->rd_out++;
        }
        xp->rd_psns += psns;
    }
    xp->snd_psn = qhca_psn_add(xp->snd_psn, psns);
    if (qhca_psn_dist(xp->snd_psn, xp->una_psn) >
        qhca_psn_dist(xp->max_psn, xp->una_psn)) {
        xp->max_psn = xp->snd_psn;
    }
    xp->cur_pkt += psns;
    if (xp->cur_pkt == w->npkts) {
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
        qhca_timer_start(e, qp, qp->timeout & 31);
    }
    return STEP_SENT;
}

/*
 * The cursor has to wait until what is out is acknowledged.  If the last
 * packets did not ask for it, because more was to come, send them again and
 * ask.
 */
static enum step ask_now(struct qhca *e, struct qhca_qp *qp, uint8_t state)
{
    struct qhca_xport *xp = &qp->xp;

    if (qp->type == QHCA_QPT_RC && xp->since_ack &&
        xp->snd_psn != xp->una_psn) {
        qhca_req_go_back(e, qp, QHCA_SYN_NONE);
        return STEP_AGAIN;
    }
    return wait_for(xp, state);
}

/* Do the next thing the cursor points to. */
static enum step step(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = &qp->xp;
    uint32_t outstanding;
    struct qhca_swqe *w;
    uint8_t syn;

    if (xp->req_state == QHCA_REQ_WAIT_RNR) {
        return STEP_WAIT;
    }
    if (xp->cur == qp->sq_next) {
        if (qp->sq_next == qp->sq_head || qp->state != QHCA_QPS_RTS) {
            return qp->sq_tail == qp->sq_next ?
                   wait_for(xp, QHCA_REQ_IDLE) :
                   ask_now(e, qp, QHCA_REQ_WAIT_ACK);
        }
        if (qp->sq_next - qp->sq_tail == QHCA_WINDOW_WQES) {
            return wait_for(xp, QHCA_REQ_WAIT_ACK);
        }
        if (!load_wqe(e, qp)) {
            return STEP_WAIT;
        }
    }
    w = qhca_swqe(qp, xp->cur);
    if (w->status) {
        qhca_req_reap(e, qp);   /* at once if it is the oldest */
        return ask_now(e, qp, QHCA_REQ_WAIT_ACK);
    }
    if (w->marks & QHCA_SW_DONE) {
        xp->cur++;
        return STEP_AGAIN;
    }
    if (is_local(w->opcode)) {
        /*
         * A local invalidate must not pull memory from under requests that
         * may yet be sent again; a fence asks for less.
         */
        if (w->opcode == QHCA_WQE_LOCAL_INV && xp->cur != qp->sq_tail) {
            return ask_now(e, qp, QHCA_REQ_WAIT_FENCE);
        }
        if ((w->flags & QHCA_WQE_F_FENCE) && xp->rd_out) {
            return wait_for(xp, QHCA_REQ_WAIT_FENCE);
        }
        syn = do_local(e, qp, w);
        if (syn) {
            bad_wqe(w, QHCA_WC_LOC_QP_OP_ERR, syn);
        } else {
            w->marks |= QHCA_SW_DONE;
            xp->cur++;
        }
        qhca_req_reap(e, qp);
        return STEP_AGAIN;
    }
    if (!(w->marks & QHCA_SW_STARTED)) {
        if ((w->flags & QHCA_WQE_F_FENCE) && xp->rd_out) {
            return wait_for(xp, QHCA_REQ_WAIT_FENCE);
        }
        if (is_rd(w->opcode) && xp->rd_out >= qp->max_rd_atomic) {
            return wait_for(xp, QHCA_REQ_WAIT_RD);
        }
    }
    outstanding = qhca_psn_dist(xp->snd_psn, xp->una_psn);
    if (is_rd(w->opcode)) {
        if (outstanding && outstanding + w->npkts > PSN_SPAN) {
            return ask_now(e, qp, QHCA_REQ_WAIT_ACK);
        }
    } else if (outstanding - xp->rd_psns >= QHCA_WINDOW_PKTS ||
               outstanding + 1 >= PSN_SPAN) {
        return wait_for(xp, QHCA_REQ_WAIT_ACK);
    }
    return send_packet(e, qp, w);
}

bool qhca_req_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget)
{
    while (qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD) {
        if (!*budget) {
            return true;
        }
        switch (step(e, qp)) {
        case STEP_SENT:
            qp->xp.req_state = QHCA_REQ_ACTIVE;
            --*budget;
            break;
        case STEP_AGAIN:
            --*budget;
            break;
        case STEP_BLOCKED:
            qp->xp.req_state = QHCA_REQ_ACTIVE;
            return true;
        case STEP_WAIT:
            if (qp->sq_tail == qp->sq_next) {
                qhca_req_drained(e, qp);
                if (qp->state == QHCA_QPS_RTS ||
                    qp->state == QHCA_QPS_SQD) {
                    qhca_window_put(e, qp);
                }
            }
            /* A local error may have left flushing to do. */
            return qp->xp.sq_flush || qp->xp.rq_flush;
        }
    }
    return true;
}
