/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The fields that break conditions can compare, and the names of the codes. */
#include "observe/breakpoint_internal.h"
#include "observe/decode.h"
#include "transport/rc.h"

static const struct qhca_name timer_names[] = {
    { 0, "ACK" }, { 1, "RNR" }, { 0, NULL }
};

static const struct qhca_name data_names[] = {
    { 0, "READ" }, { 1, "WRITE" }, { 0, NULL }
};

static const char *const field_name[] = {
    "number", "peer", "index", "psn", "code", "wr-id", "syndrome",
};

_Static_assert(QHCA_BRK_SYNDROME == 1 << 6, "field_name is of the bits");

/* Names of codes and syndromes; NULL for plain numbers.  BTH: see below. */
static const struct {
    const struct qhca_name *codes, *syndromes;
} names_of[QHCA_ONS] = {
    [QHCA_ON_DOORBELL] = { qhca_names_db, NULL },
    [QHCA_ON_WQE] = { qhca_names_wqe_op, qhca_names_syn },
    [QHCA_ON_CQE] = { qhca_names_wc, qhca_names_syn },
    [QHCA_ON_EVENT] = { qhca_names_event, NULL },
    [QHCA_ON_STATE] = { qhca_names_qp_state, qhca_names_syn },
    [QHCA_ON_WALK_ERROR] = { qhca_names_stat, NULL },
    [QHCA_ON_GUEST_ERROR] = { qhca_names_stat, NULL },
    [QHCA_ON_COMMAND] = { qhca_names_cmd, qhca_names_st },
    [QHCA_ON_RETRANSMIT] = { qhca_names_syn, NULL },
    [QHCA_ON_TIMER] = { timer_names, NULL },
    [QHCA_ON_DATA] = { data_names, NULL },
    [QHCA_ON_INJECTED] = { qhca_names_fault_action, NULL },
};

static void show_names(const char *list, const struct qhca_name *names,
                       const struct qhca_emit *em)
{
    qhca_emit_list(em, list);
    for (; names && names->name; names++) {
        qhca_emit_begin(em, NULL);
        qhca_emit_dec(em, "code", names->val);
        qhca_emit_text(em, "name", names->name);
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
}

/* The name of a BTH opcode has two parts. */
static void show_opcodes(const struct qhca_emit *em)
{
    unsigned op;

    qhca_emit_list(em, "codes");
    for (op = 0; op < 256; op++) {
        if (qhca_op_info((uint8_t)op).flags & QHCA_OPF_VALID) {
            qhca_emit_begin(em, NULL);
            qhca_emit_bth(em, "code", "name", (uint8_t)op);
            qhca_emit_end(em);
        }
    }
    qhca_emit_end(em);
}

void qhca_break_names(const struct qhca_emit *em)
{
    enum qhca_stop_on on;
    unsigned fields, i;

    qhca_emit_begin(em, NULL);
    qhca_emit_list(em, "events");
    for (on = 0; on < QHCA_ONS; on++) {
        fields = qhca_on_fields(on);
        qhca_emit_begin(em, NULL);
        qhca_emit_text(em, "on", qhca_on_name(on));
        qhca_emit_list(em, "fields");
        for (i = 0; i < sizeof(field_name) / sizeof(field_name[0]); i++) {
            if (fields >> i & 1) {
                qhca_emit_text(em, NULL, field_name[i]);
            }
        }
        qhca_emit_end(em);
        if (on == QHCA_ON_PACKET || on == QHCA_ON_PACKET_IN ||
            on == QHCA_ON_PACKET_OUT || on == QHCA_ON_DROP) {
            show_opcodes(em);
        } else {
            show_names("codes", names_of[on].codes, em);
        }
        show_names("syndromes", names_of[on].syndromes, em);
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
    qhca_emit_end(em);
}
