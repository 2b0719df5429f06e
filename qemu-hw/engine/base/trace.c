/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trace events: names and emission. */
#include "base/base.h"

static const char *const names[QHCA_TR_KINDS] = {
    [QHCA_TR_REG_WRITE] = "reg_write",
    [QHCA_TR_MARKER] = "marker",
    [QHCA_TR_COMMAND] = "command",
    [QHCA_TR_DOORBELL] = "doorbell",
    [QHCA_TR_GUEST_ERROR] = "guest_error",
    [QHCA_TR_QP_STATE] = "qp_state",
    [QHCA_TR_WALK_HOP] = "walk_hop",
    [QHCA_TR_WALK] = "walk",
    [QHCA_TR_WQE] = "wqe",
    [QHCA_TR_RECV_WQE] = "recv_wqe",
    [QHCA_TR_TX] = "tx",
    [QHCA_TR_RX] = "rx",
    [QHCA_TR_RX_DROP] = "rx_drop",
    [QHCA_TR_DATA] = "data",
    [QHCA_TR_RETRANSMIT] = "retransmit",
    [QHCA_TR_TIMER] = "timer",
    [QHCA_TR_CQE] = "cqe",
    [QHCA_TR_EQE] = "eqe",
    [QHCA_TR_PAGE_FAULT] = "page_fault",
    [QHCA_TR_RESUME] = "resume",
    [QHCA_TR_MSIX] = "msix",
    [QHCA_TR_ETH_TX] = "eth_tx",
    [QHCA_TR_ETH_RX] = "eth_rx",
    [QHCA_TR_ETH_DATA] = "eth_data",
    [QHCA_TR_FAULT] = "fault_injected",
};

const char *qhca_trace_name(enum qhca_trace_kind kind)
{
    return kind < QHCA_TR_KINDS ? names[kind] : "unknown";
}

void qhca_set_tracing(struct qhca *e, bool on)
{
    e->tracing = on && e->ops.trace;
    if (e->debugging) {
        e->hooks->tracing(e, e->tracing);
    }
}

void qhca_trace_emit(struct qhca *e, struct qhca_trace *t)
{
    t->time = qhca_now(e);
    if (e->debugging && !e->hooks->event(e, t)) {
        return;
    }
    e->ops.trace(e->opaque, t);
}

void qhca_trace_guest_error(struct qhca *e, unsigned stat, uint32_t num,
                            const char *text)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_GUEST_ERROR, .num = num, .a = stat, .text = text,
    };

    qhca_trace_emit(e, &t);
}
