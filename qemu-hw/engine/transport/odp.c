/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On-demand paging: a QP that hits a page fault suspends that work until
 * software has provided the page (struct qhca_page_fault).
 *
 * A QP has four sides, which wait independently.  A request or response that
 * hits the fault is kept and executed when the page is there, so that a lone
 * packet need not even be resent.  Packets that arrive meanwhile are dropped;
 * at the end the peer is asked to resend them.  A peer whose timer expires
 * twice meanwhile gets RNR NAKs.
 */
#include <stdlib.h>

#include "transport/rc.h"

#define WANT_MAX    0x100000U   /* most bytes reported as wanted */

struct qhca_odp_side {
    struct qhca_odp_fault page_fault;
    uint32_t token;
    bool failed;                /* if the same fault recurs, it is an error */
    bool dropped;               /* packets after the one kept were dropped */
    bool asked;                 /* the peer has already retransmitted once */
    uint32_t frame_len;
    uint8_t *frame;             /* the packet kept, or NULL */
};

struct qhca_odp {
    struct qhca_odp_side side[QHCA_PAGE_FAULT_SIDES];
};

static void odp_forget_frame(struct qhca_odp_side *s)
{
    free(s->frame);
    s->frame = NULL;
}

static void odp_trace(struct qhca *e, struct qhca_qp *qp, unsigned side,
                      bool resume)
{
    const struct qhca_odp_side *s = &qp->xp->odp->side[side];
    struct qhca_trace t = {
        .kind = resume ? QHCA_TR_RESUME : QHCA_TR_PAGE_FAULT,
        .num = qp->qpn,
        .peer = s->page_fault.key,
        .index = side,
        .addr = s->page_fault.addr,
        .a = s->page_fault.len,
        .b = resume ? s->failed : s->page_fault.write,
    };

    if (qhca_tracing(e)) {
        qhca_trace_emit(e, &t);
    }
}

/* Is @f the fault for which software could not provide the page? */
static bool odp_same_fault(const struct qhca_odp_side *s,
                           const struct qhca_odp_fault *f)
{
    return s->failed && s->page_fault.key == f->key &&
           f->addr - s->page_fault.addr < s->page_fault.len;
}

bool qhca_odp_stall(struct qhca *e, struct qhca_qp *qp, unsigned side)
{
    struct qhca_odp *odp = qp->xp->odp;
    struct qhca_odp_side *s;

    if (!odp) {
        odp = calloc(1, sizeof(*odp));
        if (!odp) {
            return false;
        }
        qp->xp->odp = odp;
    }
    s = &odp->side[side];
    if (odp_same_fault(s, &e->mem->page_fault)) {
        s->failed = false;
        return false;
    }
    s->failed = false;
    s->page_fault = e->mem->page_fault;
    if (s->page_fault.len > s->page_fault.max) {
        s->page_fault.len = s->page_fault.max;
    }
    if (s->page_fault.len > WANT_MAX) {
        s->page_fault.len = WANT_MAX;
    }
    s->token = ++e->mem->page_fault_token;
    qp->xp->odp_waits |= 1u << side;
    qhca_count(e, QHCA_STAT_PAGE_FAULTS);
    odp_trace(e, qp, side, false);
    qhca_async_event(e, &qp->ev, QHCA_EV_PAGE_FAULT, 0);
    return true;
}

bool qhca_odp_stall_rx(struct qhca *e, struct qhca_qp *qp, unsigned side,
                       const struct qhca_rx *rx)
{
    if (!qhca_odp_stall(e, qp, side)) {
        return false;
    }
    qhca_odp_keep(qp, side, rx);
    return true;
}

void qhca_odp_keep(struct qhca_qp *qp, unsigned side,
                   const struct qhca_rx *rx)
{
    struct qhca_odp_side *s = &qp->xp->odp->side[side];

    odp_forget_frame(s);
    s->frame = malloc(rx->frame_len);
    if (s->frame) {
        qhca_rx_frame(rx, s->frame);
        s->frame_len = rx->frame_len;
    } else {
        s->dropped = true;
    }
}

void qhca_odp_drop(struct qhca *e, struct qhca_qp *qp, unsigned side,
                   const struct qhca_rx *rx)
{
    qp->xp->odp->side[side].dropped = true;
    qhca_rx_drop(e, rx, QHCA_STAT_PAGE_FAULT_DROPS);
}

void qhca_odp_missed(struct qhca_qp *qp, unsigned side)
{
    qp->xp->odp->side[side].dropped = true;
}

bool qhca_odp_impatient(struct qhca_qp *qp, unsigned side)
{
    struct qhca_odp_side *s = &qp->xp->odp->side[side];
    bool again = s->asked;

    s->asked = true;
    return again;
}

void qhca_odp_progress(struct qhca_qp *qp, unsigned side)
{
    qp->xp->odp->side[side].failed = false;
    qp->xp->odp->side[side].asked = false;
}

void qhca_odp_cancel(struct qhca_qp *qp, unsigned sides)
{
    struct qhca_odp *odp = qp->xp->odp;
    unsigned i;

    if (!odp) {
        return;
    }
    qp->xp->odp_waits &= (uint8_t)~sides;
    for (i = 0; i < QHCA_PAGE_FAULT_SIDES; i++) {
        if (sides & (1u << i)) {
            odp_forget_frame(&odp->side[i]);
            odp->side[i].failed = false;
            odp->side[i].dropped = false;
            odp->side[i].asked = false;
        }
    }
}

void qhca_odp_free(struct qhca_qp *qp)
{
    qhca_odp_cancel(qp, QHCA_ODP_ALL);
    free(qp->xp->odp);
    qp->xp->odp = NULL;
}

/* Execute the packet that was kept.  It may fault again. */
static void odp_replay(struct qhca *e, struct qhca_qp *qp, unsigned side)
{
    struct qhca_odp_side *s = &qp->xp->odp->side[side];
    uint8_t *frame = s->frame;
    struct qhca_rx rx;

    /* Take ownership: the QP may drop all that is kept. */
    s->frame = NULL;
    if (!frame) {
        return;
    }
    /*
     * If the GID was cleared meanwhile, or the QP has left the group, the
     * packet is lost.
     */
    if (qhca_parse(e, frame, s->frame_len, &rx) != QHCA_PARSE_OK ||
        !qhca_class_fits(qp, &rx) ||
        (rx.mcg && !qhca_mcg_has(rx.mcg, qp))) {
        s->dropped = true;
    } else if (rx.flags & QHCA_OPF_DETH) {
        qhca_ud_rx(e, qp, &rx);
    } else if (rx.flags & QHCA_OPF_RESP) {
        qhca_ack_rx(e, qp, &rx);
    } else {
        qhca_rsp_rx(e, qp, &rx);
    }
    free(frame);
}

/* Resume the side: have the peer resend what was dropped while it waited. */
static void odp_resume(struct qhca *e, struct qhca_qp *qp, unsigned side)
{
    struct qhca_odp_side *s = &qp->xp->odp->side[side];
    bool again;

    odp_replay(e, qp, side);
    if (!qhca_odp_waits(qp, 1u << side)) {
        again = s->dropped;
        s->dropped = false;
        if (side == QHCA_PAGE_FAULT_SEND || side == QHCA_PAGE_FAULT_LAND) {
            qhca_ack_resume(e, qp, again);
        } else if (again) {
            qhca_rsp_ask_again(e, qp);
        }
    }
    qhca_qp_schedule(e, qp);
}

uint8_t qhca_cmd_query_page_fault(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_qp *qp = qhca_qp_get(e, c->obj);
    struct qhca_page_fault *out = c->out;
    const struct qhca_odp_side *s;
    unsigned i;

    if (!qp) {
        return QHCA_ST_BAD_OBJ;
    }
    for (i = 0; i < QHCA_PAGE_FAULT_SIDES; i++) {
        if (!qhca_odp_waits(qp, 1u << i)) {
            continue;
        }
        s = &qp->xp->odp->side[i];
        out[i].addr = qhca_le64(s->page_fault.addr);
        out[i].len = qhca_le64(s->page_fault.len);
        out[i].key = qhca_le32(s->page_fault.key);
        out[i].token = qhca_le32(s->token);
        out[i].flags = QHCA_PAGE_FAULT_VALID |
                       (s->page_fault.write ? QHCA_PAGE_FAULT_WRITE : 0);
    }
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_resume_page_fault(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_qp *qp = qhca_qp_get(e, c->obj);
    uint64_t known = QHCA_RESUME_SIDE_MASK | QHCA_RESUME_FAILED |
                     (uint64_t)UINT32_MAX << QHCA_RESUME_TOKEN_SHIFT;
    unsigned side = c->arg & QHCA_RESUME_SIDE_MASK;
    struct qhca_odp_side *s;

    if (!qp) {
        return QHCA_ST_BAD_OBJ;
    }
    if ((c->arg & ~known) || side >= QHCA_PAGE_FAULT_SIDES) {
        return QHCA_ST_BAD_PARAM;
    }
    if (!qhca_odp_waits(qp, 1u << side) ||
        qp->xp->odp->side[side].token != c->arg >> QHCA_RESUME_TOKEN_SHIFT) {
        return QHCA_ST_BAD_STATE;
    }
    s = &qp->xp->odp->side[side];
    s->failed = c->arg & QHCA_RESUME_FAILED;
    qp->xp->odp_waits &= (uint8_t)~(1u << side);
    odp_trace(e, qp, side, true);
    odp_resume(e, qp, side);
    return QHCA_ST_OK;
}

/* ---- saved state ---- */

SAVED_SIZE(struct qhca_odp_side, 56, qp, 3);

static void io_side(struct qhca_io *io, struct qhca_odp_side *s)
{
    bool is = s->frame;

    IO(io, s->page_fault.addr);
    IO(io, s->page_fault.len);
    IO(io, s->page_fault.max);
    IO(io, s->page_fault.key);
    IO(io, s->page_fault.write);
    IO(io, s->token);
    IO(io, s->failed);
    IO(io, s->dropped);
    IO(io, s->asked);
    IO(io, is);
    if (!is) {
        return;
    }
    IO(io, s->frame_len);
    NEED(io, s->frame_len && s->frame_len <= QHCA_FRAME_MAX,
         "the packet kept is too long");
    if (!io->saving && !io->failed) {
        s->frame = malloc(s->frame_len);
        NEED(io, s->frame, "out of memory");
    }
    if (!io->failed) {
        qhca_io_bytes(io, s->frame, s->frame_len);
    }
}

void qhca_io_odp(struct qhca_io *io, struct qhca_qp *qp)
{
    struct qhca_odp *odp = qp->xp->odp;
    bool is = odp;
    unsigned i;

    IO(io, is);
    if (!is) {
        return;
    }
    if (!io->saving) {
        odp = calloc(1, sizeof(*odp));
        if (!NEED(io, odp, "out of memory")) {
            free(odp);
            return;
        }
        qp->xp->odp = odp;
    }
    IO(io, qp->xp->odp_waits);
    NEED(io, !(qp->xp->odp_waits & ~QHCA_ODP_ALL),
         "a nonexistent side waits for a page");
    for (i = 0; i < QHCA_PAGE_FAULT_SIDES && !io->failed; i++) {
        io_side(io, &odp->side[i]);
    }
}
