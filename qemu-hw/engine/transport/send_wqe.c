/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Send WQEs of RC, XRC and UC: fetched from the ring into the QP's window,
 * checked, and completed.
 */
#include <stdlib.h>

#include "transport/rc.h"
#include "transport/tag_qp.h"

uint8_t qhca_req_fetch(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                       void *wqe, uint64_t *addr)
{
    if (qp->tm) {
        qhca_tm_wqe(qp, index, wqe);
        *addr = 0;
        return QHCA_SYN_NONE;
    }
    return qhca_sq_fetch(e, qp, index, wqe, addr);
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
    case QHCA_WQE_BIND_MW:
        return QHCA_CQE_OP_BIND_MW;
    case QHCA_WQE_FLUSH:
        return QHCA_CQE_OP_FLUSH;
    case QHCA_WQE_ATOMIC_WRITE:
        return QHCA_CQE_OP_ATOMIC_WRITE;
    case QHCA_WQE_MASKED_COMP_SWAP:
        return QHCA_CQE_OP_MASKED_COMP_SWAP;
    case QHCA_WQE_MASKED_FETCH_ADD:
        return QHCA_CQE_OP_MASKED_FETCH_ADD;
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

bool qhca_send_window_get(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_send_window *win = e->xd->free_windows;

    if (win) {
        e->xd->free_windows = win->next;
        e->xd->free_count--;
    } else {
        win = calloc(1, sizeof(*win));
        if (!win) {
            return false;
        }
    }
    win->snd_valid = false;
    win->rd_valid = false;
    qp->xp->win = win;
    return true;
}

void qhca_send_window_put(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_send_window *win = qp->xp->win;

    if (!win) {
        return;
    }
    qp->xp->win = NULL;
    if (e->xd->free_count < QHCA_WINDOWS_KEPT) {
        win->next = e->xd->free_windows;
        e->xd->free_windows = win;
        e->xd->free_count++;
    } else {
        free(win);
    }
}

/* ---- WQEs ---- */

/* The arguments of a FLUSH must fit a FETH. */
static uint8_t swqe_check_flush(const struct qhca_swqe *w, uint8_t *status)
{
    uint64_t level = w->arg1 >> QHCA_FLUSH_L_SHIFT;
    uint64_t kind = w->arg1 & QHCA_FLUSH_T_MASK;

    if (!kind || level > QHCA_FLUSH_L_MR ||
        (kind & ~(uint64_t)(QHCA_FLUSH_T_GLOBAL | QHCA_FLUSH_T_PERSISTENT))) {
        *status = QHCA_WC_LOC_QP_OP_ERR;
        return QHCA_SYN_WQE_FLAGS;
    }
    if (w->arg0 > UINT32_MAX) {
        *status = QHCA_WC_LOC_LEN_ERR;
        return QHCA_SYN_WQE_LENGTH;
    }
    return QHCA_SYN_NONE;
}

uint8_t qhca_swqe_check(const struct qhca_qp *qp, const struct qhca_swqe *w,
                        uint8_t *status)
{
    struct qhca_wqe_head h = { w->opcode, w->flags, w->num, w->len };
    uint8_t syn = qhca_wqe_check(qp, &h, status);

    if (!syn && w->opcode == QHCA_WQE_FLUSH) {
        syn = swqe_check_flush(w, status);
    }
    return syn;
}

static void unpack_wqe(const struct qhca_qp *qp, const uint8_t *p,
                       struct qhca_swqe *w)
{
    struct qhca_wqe_head h;

    qhca_wqe_unpack(qp, p, &h);
    if (qhca_wqe_is_local(h.opcode)) {
        h.num = 0;              /* these have no data */
        h.len = 0;
    }
    w->opcode = h.opcode;
    w->flags = h.flags;
    w->num = h.num;
    w->len = h.len;
    memcpy(&w->imm, p + 4, 4);
    w->wr_id = qhca_get_le64(p + 8);
    w->arg0 = qhca_get_le64(p + 0x10);
    w->arg1 = qhca_get_le64(p + 0x18);
    w->raddr = qhca_get_le64(p + 0x20);
    w->rkey = qhca_get_le32(p + 0x28);
    w->srqn = 0;
    if (qp->type == QHCA_QPT_XRC_INI) {
        w->srqn = qhca_get_le32(p + 0x30) & QHCA_PSN_MASK;
    }
}

/*
 * Unpack the WQE at @p into @w and check all that needs no memory access.  Sets
 * w->status if the WQE is invalid.
 */
static uint8_t swqe_parse(const struct qhca_qp *qp, const uint8_t *p,
                          struct qhca_swqe *w)
{
    const uint8_t *sge = p + qhca_wqe_header(qp, p[0]);
    uint8_t syn, status;

    unpack_wqe(qp, p, w);
    syn = qhca_swqe_check(qp, w, &status);
    if (syn) {
        w->len = 0;
        return qhca_swqe_fail(w, status, syn);
    }
    if (w->num && !(w->flags & QHCA_WQE_F_INLINE)) {
        w->laddr = qhca_get_le64(sge);
        w->lkey = qhca_get_le32(sge + 12);
    }
    if (qhca_wqe_is_atomic(w->opcode)) {
        w->len = 8;             /* there may be room for more */
    }
    return QHCA_SYN_NONE;
}

static void swqe_trace(struct qhca *e, struct qhca_qp *qp,
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
        .psn = w->first_psn,
        .len = w->len,
        .syndrome = w->syndrome,
    };

    qhca_trace_emit(e, &t);
}

/*
 * Check the local buffers of the whole message before its first packet is sent:
 * a later error would occur after the remote side has acted on part of it.  A
 * message of one packet is checked when it is read.
 */
static uint8_t swqe_check_local(struct qhca *e, struct qhca_qp *qp,
                                const struct qhca_swqe *w, const uint8_t *sges)
{
    bool privileged = qp->flags & QHCA_QP_F_PRIVILEGED;
    uint32_t access = qhca_wqe_is_rd(w->opcode) &&
                      w->opcode != QHCA_WQE_ATOMIC_WRITE ?
                      QHCA_ACCESS_LOCAL_WRITE : 0;
    uint32_t i, left = w->len;

    if ((w->flags & QHCA_WQE_F_INLINE) || qhca_wqe_is_local(w->opcode) ||
        (!access && left <= qhca_mtu_bytes(qp->path_mtu))) {
        return QHCA_SYN_NONE;
    }

    for (i = 0; i < w->num && left; i++) {
        const uint8_t *s = sges + i * sizeof(struct qhca_sge);
        uint32_t n = qhca_get_le32(s + 8);
        uint8_t syn;

        n = n < left ? n : left;
        syn = qhca_mr_check(e, qhca_sq_pd(qp), privileged,
                            qhca_get_le32(s + 12), qhca_get_le64(s), n, access,
                            qp->qpn);
        if (syn) {
            return syn;
        }
        left -= n;
    }
    return QHCA_SYN_NONE;
}

/*
 * Check what a WQE needs when it begins.  When it is fetched again, the limit
 * of READs may be 0 already.
 */
static void swqe_check_start(struct qhca *e, struct qhca_qp *qp,
                             struct qhca_swqe *w, const uint8_t *sges)
{
    uint8_t syn;

    if (qhca_wqe_is_rd(w->opcode) && !qp->max_rd_atomic) {
        w->len = 0;
        qhca_swqe_fail(w, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_RD_ATOMIC);
        return;
    }
    syn = swqe_check_local(e, qp, w, sges);
    if (syn) {
        qhca_swqe_fail(w, QHCA_WC_LOC_PROT_ERR, syn);
    }
}

bool qhca_req_load(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t index = qp->sq_next;
    struct qhca_send_window *win;
    struct qhca_swqe *w;
    uint64_t addr = 0;
    uint8_t syn;

    if (!xp->win && !qhca_send_window_get(e, qp)) {
        qhca_qp_error(e, qp, QHCA_SYN_WQE_DMA, QHCA_EV_QP_FATAL);
        return false;
    }
    win = xp->win;
    w = qhca_swqe(qp, index);
    memset(w, 0, sizeof(*w));
    win->snd_valid = false;
    syn = qhca_req_fetch(e, qp, index, win->snd_wqe, &addr);
    if (syn) {
        qhca_swqe_fail(w, QHCA_WC_LOC_QP_OP_ERR, syn);
    } else {
        win->snd_valid = true;
        win->snd_index = index;
        memset(&xp->snd_pos, 0, sizeof(xp->snd_pos));
        if (!swqe_parse(qp, win->snd_wqe, w)) {
            swqe_check_start(e, qp, w, win->snd_wqe +
                             qhca_wqe_header(qp, w->opcode));
        }
    }
    w->first_psn = xp->snd_psn;
    if (!w->status && !qhca_wqe_is_local(w->opcode)) {
        w->npkts = qhca_wqe_is_atomic(w->opcode) ? 1 :
                   qhca_packets(w->len, qp->path_mtu);
    }
    qp->sq_next = index + 1;
    if (qhca_tracing(e)) {
        swqe_trace(e, qp, w, index, addr);
    }
    return true;
}

const uint8_t *qhca_req_wqe(struct qhca *e, struct qhca_qp *qp,
                            struct qhca_swqe *w, uint32_t index,
                            bool reading, uint8_t *syn)
{
    struct qhca_send_window *win = qp->xp->win;
    uint8_t *copy = reading ? win->rd_wqe : win->snd_wqe;
    bool *valid = reading ? &win->rd_valid : &win->snd_valid;
    uint32_t *which = reading ? &win->rd_index : &win->snd_index;
    struct qhca_sgpos *pos = reading ? &qp->xp->rd_pos : &qp->xp->snd_pos;
    struct qhca_swqe again = { 0 };
    uint64_t addr;

    if (!*valid || *which != index) {
        memset(pos, 0, sizeof(*pos));
        *valid = false;
        if (win->snd_valid && win->snd_index == index) {
            memcpy(copy, win->snd_wqe, 1U << qp->sq_stride);
        } else {
            if (qhca_req_fetch(e, qp, index, copy, &addr)) {
                /* SYN_TABLE_* would be taken for an MR's. */
                *syn = QHCA_SYN_WQE_DMA;
                return NULL;
            }
            /* Software may have changed it meanwhile; its size must match. */
            *syn = swqe_parse(qp, copy, &again);
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
    return copy + qhca_wqe_header(qp, w->opcode);
}
