/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Trace events in readable form. */
#include "observe/decode.h"
#include "observe/fault.h"
#include "transport/rc.h"

static void show_doorbell(const struct qhca_emit *em,
                          const struct qhca_trace *t)
{
    qhca_emit_enum(em, "doorbell", "doorbell_name", qhca_names_db, t->addr,
                   true);
    qhca_emit_dec(em, "number", t->num);
    qhca_emit_dec(em, "uar", t->a);
    qhca_emit_dec(em, "index", t->index);
}

static void show_syndrome(const struct qhca_emit *em,
                          const struct qhca_trace *t)
{
    if (t->syndrome) {
        qhca_emit_enum(em, "syndrome", "syndrome_name", qhca_names_syn,
                       t->syndrome, false);
    }
}

static void show_packet(const struct qhca_emit *em, const struct qhca_trace *t)
{
    qhca_emit_dec(em, "qpn", t->num);
    qhca_emit_dec(em, "peer", t->peer);
    qhca_emit_dec(em, "psn", t->psn);
    qhca_emit_bth(em, "opcode", "opcode_name", (uint8_t)t->a);
    qhca_emit_dec(em, "bytes", t->b);
    if (qhca_op_info((uint8_t)t->a).flags & QHCA_OPF_AETH) {
        qhca_emit_hex(em, "aeth", t->syndrome);
    }
}

static void show_wqe(const struct qhca_emit *em, const struct qhca_trace *t)
{
    qhca_emit_dec(em, "qpn", t->num);
    qhca_emit_dec(em, "index", t->index);
    qhca_emit_hex(em, "address", t->addr);
    qhca_emit_hex(em, "wr_id", t->b);
    if (t->kind == QHCA_TR_WQE) {
        qhca_emit_enum(em, "opcode", "opcode_name", qhca_names_wqe_op, t->a,
                       false);
        qhca_emit_dec(em, "psn", t->psn);
        if (t->len) {
            qhca_emit_dec(em, "bytes", t->len);
        }
        show_syndrome(em, t);
    }
}

static void show_cqe(const struct qhca_emit *em, const struct qhca_trace *t)
{
    qhca_emit_dec(em, "cqn", t->num);
    qhca_emit_dec(em, "qpn", t->peer);
    qhca_emit_dec(em, "index", t->index);
    qhca_emit_enum(em, "opcode", "opcode_name", qhca_names_cqe_op, t->op,
                   true);
    qhca_emit_dec(em, "wqe", t->wqe);
    qhca_emit_dec(em, "bytes", t->len);
    qhca_emit_hex(em, "wr_id", t->b);
    qhca_emit_enum(em, "status", "status_name", qhca_names_wc, t->a, false);
    show_syndrome(em, t);
}

static void show_walk(const struct qhca_emit *em, const struct qhca_trace *t)
{
    qhca_emit_dec(em, "number", t->num);
    if (t->kind == QHCA_TR_WALK) {
        qhca_emit_hex(em, "offset", t->a);
        qhca_emit_hex(em, "address", t->addr);
    } else {
        qhca_emit_dec(em, "level", t->b);
        qhca_emit_hex(em, "at", t->addr);
        qhca_emit_hex(em, "entry", t->a);
    }
}

static void show_fault(const struct qhca_emit *em, const struct qhca_trace *t)
{
    qhca_emit_dec(em, "qpn", t->num);
    qhca_emit_dec(em, "side", t->index);
    qhca_emit_hex(em, "key", t->peer);
    qhca_emit_hex(em, "va", t->addr);
    qhca_emit_dec(em, "bytes", t->a);
    qhca_emit_flag(em, t->kind == QHCA_TR_RESUME ? "failed" : "write", t->b);
}

static void show_state(const struct qhca_emit *em, const struct qhca_trace *t)
{
    qhca_emit_dec(em, "qpn", t->num);
    qhca_emit_enum(em, "old", "old_name", qhca_names_qp_state, t->a, false);
    qhca_emit_enum(em, "new", "new_name", qhca_names_qp_state, t->b, false);
    show_syndrome(em, t);
}

static void show_error(const struct qhca_emit *em, const struct qhca_trace *t)
{
    qhca_emit_hex(em, "number", t->num);
    qhca_emit_enum(em, "counter", "counter_name", qhca_names_stat, t->a,
                   false);
    if (t->text) {
        qhca_emit_text(em, "text", t->text);
    }
}

static void show_injected(const struct qhca_emit *em,
                          const struct qhca_trace *t)
{
    const char *action = qhca_fault_action_name((unsigned)t->a);

    qhca_emit_text(em, "action", action ? action : "unknown");
    qhca_emit_dec(em, "rule", t->index);
    qhca_emit_dec(em, "hits", t->b);
    qhca_emit_dec(em, "number", t->num);
    qhca_emit_dec(em, "peer", t->peer);
    qhca_emit_dec(em, "psn", t->psn);
    qhca_emit_hex(em, "address", t->addr);
}

static void show_eth(const struct qhca_emit *em, const struct qhca_trace *t)
{
    qhca_emit_dec(em, "queue", t->num);
    qhca_emit_dec(em, "index", t->index);
    qhca_emit_dec(em, "bytes", t->b);
    if (t->len) {
        qhca_emit_dec(em, "frames", t->len);
    }
    if (t->kind == QHCA_TR_ETH_RX && t->a) {
        qhca_emit_dec(em, "header_bytes", t->a);
        qhca_emit_dec(em, "data_index", t->wqe);
    }
    if (t->kind == QHCA_TR_ETH_RX && t->op) {
        qhca_emit_hex(em, "hash", t->psn);
        qhca_emit_enum(em, "hash_type", "hash_type_name",
                       qhca_names_hash_type, t->op, false);
    }
}

void qhca_emit_trace(const struct qhca_emit *em, const struct qhca_trace *t)
{
    qhca_emit_text(em, "kind", qhca_trace_name(t->kind));
    qhca_emit_dec(em, "time", t->time);
    switch (t->kind) {
    case QHCA_TR_DOORBELL:
        show_doorbell(em, t);
        return;
    case QHCA_TR_GUEST_ERROR:
        show_error(em, t);
        return;
    case QHCA_TR_QP_STATE:
        show_state(em, t);
        return;
    case QHCA_TR_WALK_HOP:
    case QHCA_TR_WALK:
        show_walk(em, t);
        return;
    case QHCA_TR_WQE:
    case QHCA_TR_RECV_WQE:
        show_wqe(em, t);
        return;
    case QHCA_TR_TX:
    case QHCA_TR_RX:
        show_packet(em, t);
        return;
    case QHCA_TR_CQE:
        show_cqe(em, t);
        return;
    case QHCA_TR_PAGE_FAULT:
    case QHCA_TR_RESUME:
        show_fault(em, t);
        return;
    case QHCA_TR_COMMAND:
        qhca_emit_enum(em, "opcode", "opcode_name", qhca_names_cmd, t->a,
                       true);
        qhca_emit_hex(em, "object", t->num);
        qhca_emit_enum(em, "status", "status_name", qhca_names_st, t->b,
                       false);
        return;
    case QHCA_TR_RX_DROP:
        qhca_emit_dec(em, "qpn", t->num);
        qhca_emit_dec(em, "psn", t->psn);
        qhca_emit_bth(em, "opcode", "opcode_name", (uint8_t)t->a);
        qhca_emit_enum(em, "counter", "counter_name", qhca_names_stat, t->b,
                       false);
        return;
    case QHCA_TR_DATA:
        qhca_emit_dec(em, "qpn", t->num);
        qhca_emit_hex(em, "address", t->addr);
        qhca_emit_dec(em, "bytes", t->a);
        qhca_emit_flag(em, "write", t->b);
        return;
    case QHCA_TR_RETRANSMIT:
        qhca_emit_dec(em, "qpn", t->num);
        qhca_emit_dec(em, "psn", t->psn);
        qhca_emit_enum(em, "reason", "reason_name", qhca_names_syn, t->a,
                       false);
        return;
    case QHCA_TR_TIMER:
        qhca_emit_dec(em, "qpn", t->num);
        qhca_emit_dec(em, "deadline", t->a);
        qhca_emit_text(em, "timer", t->b ? "rnr" : "ack");
        return;
    case QHCA_TR_EQE:
        qhca_emit_dec(em, "eqn", t->num);
        qhca_emit_dec(em, "object", t->peer);
        qhca_emit_dec(em, "index", t->index);
        qhca_emit_enum(em, "type", "type_name", qhca_names_event, t->a, true);
        return;
    case QHCA_TR_MSIX:
        qhca_emit_dec(em, "vector", t->num);
        return;
    case QHCA_TR_ETH_TX:
    case QHCA_TR_ETH_RX:
        show_eth(em, t);
        return;
    case QHCA_TR_ETH_DATA:
        qhca_emit_dec(em, "queue", t->num);
        qhca_emit_dec(em, "index", t->index);
        qhca_emit_hex(em, "address", t->addr);
        qhca_emit_dec(em, "bytes", t->a);
        qhca_emit_flag(em, "write", t->b);
        return;
    case QHCA_TR_FAULT:
        show_injected(em, t);
        return;
    case QHCA_TR_REG_WRITE:
        qhca_emit_hex(em, "offset", t->addr);
        qhca_emit_hex(em, "value", t->a);
        return;
    case QHCA_TR_MARKER:
        qhca_emit_hex(em, "value", t->a);
        return;
    case QHCA_TR_KINDS:
        return;
    }
}
