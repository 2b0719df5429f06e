/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inspecting shapers, and what holds a send queue back. */
#include "observe/inspect_internal.h"

void qhca_sum_shaper(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_shaper *s = obj;

    qhca_emit_dec(em, "number", s->num);
    qhca_emit_dec(em, "rate", s->rate);
    qhca_emit_dec(em, "burst", s->burst);
    qhca_emit_dec(em, "parent", s->turn.up ? s->turn.up->num :
                                             QHCA_SHAPER_NONE);
    qhca_emit_dec(em, "weight", s->turn.weight);
    qhca_emit_dec(em, "members", s->members);
    qhca_emit_flag(em, "waits", s->wait_pos != QHCA_SHAPER_AWAKE);
    qhca_emit_dec(em, "bytes", s->bytes);
}

/* Its members of one kind. */
static void inspect_members(const struct qhca_shaper *s,
                            const struct qhca_idr *t, bool shapers,
                            const struct qhca_emit *em)
{
    const struct qhca_shaper *up;
    const void *obj;
    uint32_t n;

    qhca_emit_list(em, shapers ? "shapers" : "eth_sqs");
    for (n = 0; n < qhca_idr_end(t); n++) {
        obj = qhca_idr_get(t, n);
        if (!obj) {
            continue;
        }
        up = shapers ? ((const struct qhca_shaper *)obj)->turn.up :
                       ((const struct qhca_eth_q *)obj)->turn.up;
        if (up == s) {
            qhca_emit_dec(em, NULL, n);
        }
    }
    qhca_emit_end(em);
}

void qhca_inspect_shaper(struct qhca *e, const struct qhca_shaper *s,
                         const struct qhca_emit *em)
{
    const struct qhca_shaper *by = qhca_turn_waits(&s->turn);

    inspect_members(s, &e->eth->eth_sqs, false, em);
    inspect_members(s, &e->eth->shapers, true, em);
    if (s->wait_pos != QHCA_SHAPER_AWAKE) {
        qhca_emit_dec(em, "until", s->until);
    } else if (by) {
        qhca_emit_dec(em, "held_by", by->num);
    }
}

void qhca_inspect_held(const struct qhca_eth_q *q, const struct qhca_emit *em)
{
    const struct qhca_shaper *by = qhca_turn_waits(&q->turn);

    if (by) {
        qhca_emit_dec(em, "held_by", by->num);
        qhca_emit_dec(em, "until", by->until);
    }
}
