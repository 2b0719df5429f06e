/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inspecting a QP: the state that its context does not contain. */
#include "observe/inspect_internal.h"

static const struct qhca_name swqe_marks[] = {
    { QHCA_SW_STARTED, "STARTED" }, { QHCA_SW_RD, "READ_OR_ATOMIC" },
    { QHCA_SW_DONE, "DONE" }, { 0, NULL }
};

static const struct qhca_name resp_kinds[] = {
    { QHCA_RESP_ACK, "ACK" }, { QHCA_RESP_READ, "READ" },
    { QHCA_RESP_ATOMIC, "ATOMIC" }, { 0, NULL }
};

static const struct qhca_name rsp_ops[] = {
    { QHCA_RSPOP_NONE, "NONE" }, { QHCA_RSPOP_SEND, "SEND" },
    { QHCA_RSPOP_WRITE, "WRITE" }, { QHCA_RSPOP_SKIP, "SKIP" }, { 0, NULL }
};

static const char *const page_fault_sides[QHCA_PAGE_FAULT_SIDES] = {
    [QHCA_PAGE_FAULT_SEND] = "send", [QHCA_PAGE_FAULT_LAND] = "land",
    [QHCA_PAGE_FAULT_RECV] = "recv", [QHCA_PAGE_FAULT_READ] = "read",
};

/* The WQEs in flight, oldest first. */
static void inspect_window(struct qhca_qp *qp, const struct qhca_emit *em)
{
    uint32_t i;

    qhca_emit_list(em, "window");
    for (i = qp->sq_tail; qp->xp->win && i != qp->sq_next; i++) {
        const struct qhca_swqe *w = qhca_swqe(qp, i);

        qhca_emit_begin(em, NULL);
        qhca_emit_dec(em, "index", i);
        qhca_emit_enum(em, "opcode", "opcode_name", qhca_names_wqe_op,
                       w->opcode, false);
        qhca_emit_flags(em, "flags_names", qhca_names_wqe_flag, w->flags);
        qhca_emit_hex(em, "wr_id", w->wr_id);
        qhca_emit_dec(em, "len", w->len);
        qhca_emit_dec(em, "first_psn", w->first_psn);
        qhca_emit_dec(em, "psns", w->npkts);
        qhca_emit_hex(em, "remote_addr", w->raddr);
        qhca_emit_hex(em, "rkey", w->rkey);
        if (qp->type == QHCA_QPT_XRC_INI) {
            qhca_emit_dec(em, "srqn", w->srqn);
        }
        qhca_emit_flags(em, "marks", swqe_marks, w->marks);
        if (w->status) {
            qhca_emit_enum(em, "status", "status_name", qhca_names_wc,
                           w->status, false);
            qhca_emit_enum(em, "syndrome", "syndrome_name", qhca_names_syn,
                           w->syndrome, false);
        }
        if (i == qp->xp->cur) {
            qhca_emit_flag(em, "cursor", true);
        }
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
}

/* READs and atomics sent whose responses are missing. */
static void inspect_outstanding(struct qhca_qp *qp, const struct qhca_emit *em)
{
    struct qhca_xport *xp = qp->xp;
    uint32_t i, mtu = qhca_mtu_bytes(qp->path_mtu);

    qhca_emit_list(em, "reads");
    for (i = qp->sq_tail; xp->win && i != qp->sq_next; i++) {
        const struct qhca_swqe *w = qhca_swqe(qp, i);
        uint32_t here = 0;

        if (!(w->marks & QHCA_SW_RD) || (w->marks & QHCA_SW_DONE)) {
            continue;
        }
        if (i == qp->sq_tail) {
            here = qhca_psn_dist(xp->una_psn, w->first_psn);
            here = here < w->npkts ? here : 0;
        }
        qhca_emit_begin(em, NULL);
        qhca_emit_dec(em, "index", i);
        qhca_emit_enum(em, "opcode", "opcode_name", qhca_names_wqe_op,
                       w->opcode, false);
        qhca_emit_hex(em, "wr_id", w->wr_id);
        qhca_emit_hex(em, "remote_addr", w->raddr);
        qhca_emit_hex(em, "rkey", w->rkey);
        qhca_emit_dec(em, "first_psn", w->first_psn);
        qhca_emit_dec(em, "last_psn", qhca_psn_add(w->first_psn,
                                                   w->npkts - 1));
        qhca_emit_dec(em, "responses_awaited", w->npkts - here);
        qhca_emit_dec(em, "len", w->len);
        qhca_emit_dec(em, "received", here * mtu);
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
}

static void inspect_retransmission(struct qhca *e, struct qhca_qp *qp,
                                   const struct qhca_emit *em)
{
    struct qhca_xport *xp = qp->xp;
    uint64_t now = qhca_now(e);

    qhca_emit_begin(em, "retransmission");
    qhca_emit_dec(em, "retry_left", xp->retry_left);
    qhca_emit_dec(em, "rnr_left", xp->rnr_left);
    qhca_emit_flag(em, "timer_running", xp->deadline);
    if (xp->deadline) {
        bool rnr = xp->timer_class >= QHCA_TIMER_RNR;

        qhca_emit_text(em, "timer", rnr ? "rnr" : "ack");
        qhca_emit_dec(em, "timer_code", rnr ? xp->timer_class -
                                        QHCA_TIMER_RNR : xp->timer_class);
        qhca_emit_dec(em, "deadline", xp->deadline);
        qhca_emit_dec(em, "remaining_ns", xp->deadline > now ?
                                          xp->deadline - now : 0);
    }
    qhca_emit_flag(em, "went_back", xp->back_valid);
    if (xp->back_valid) {
        qhca_emit_dec(em, "back_psn", xp->back_psn);
    }
    qhca_emit_flag(em, "asks_each", xp->ask);
    if (xp->ask) {
        qhca_emit_dec(em, "ask_psn", xp->ask_psn);
    }
    qhca_emit_end(em);
}

static void inspect_requester(struct qhca *e, struct qhca_qp *qp,
                              const struct qhca_emit *em)
{
    struct qhca_xport *xp = qp->xp;

    qhca_emit_begin(em, "requester");
    qhca_emit_enum(em, "state", "state_name", qhca_names_req_state,
                   xp->req_state, false);
    qhca_emit_dec(em, "snd_psn", xp->snd_psn);
    qhca_emit_dec(em, "una_psn", xp->una_psn);
    qhca_emit_dec(em, "max_psn", xp->max_psn);
    qhca_emit_dec(em, "outstanding_psns",
                  qhca_psn_dist(xp->snd_psn, xp->una_psn));
    qhca_emit_dec(em, "window_packets", xp->wnd);
    qhca_emit_dec(em, "window_wqes", QHCA_WINDOW_WQES);
    qhca_emit_dec(em, "cursor", xp->cur);
    qhca_emit_dec(em, "cursor_packet", xp->cur_pkt);
    qhca_emit_dec(em, "reads_outstanding", xp->rd_out);
    qhca_emit_dec(em, "response_psns_awaited", xp->rd_psns);
    qhca_emit_dec(em, "packets_since_ack_request", xp->since_ack);
    qhca_emit_dec(em, "credits", xp->credits);
    qhca_emit_flag(em, "flushing", xp->sq_flush);
    qhca_emit_flag(em, "drain_event_owed", xp->drain);
    inspect_retransmission(e, qp, em);
    inspect_outstanding(qp, em);
    inspect_window(qp, em);
    qhca_emit_end(em);
}

static void inspect_responses(struct qhca_xport *xp, const struct qhca_emit *em)
{
    uint32_t i;

    qhca_emit_list(em, "responses_owed");
    for (i = xp->rspq_tail; i != xp->rspq_head; i++) {
        const struct qhca_resp *r = qhca_rspq_at(xp, i);

        qhca_emit_begin(em, NULL);
        qhca_emit_enum(em, "kind", "kind_name", resp_kinds, r->kind, false);
        qhca_emit_dec(em, "psn", r->psn);
        if (r->kind == QHCA_RESP_ACK) {
            qhca_emit_hex(em, "aeth", r->syndrome);
        } else if (r->kind == QHCA_RESP_READ) {
            qhca_emit_hex(em, "va", r->va);
            qhca_emit_hex(em, "rkey", r->rkey);
            qhca_emit_dec(em, "left", r->left);
            qhca_emit_flag(em, "started", r->started);
        } else {
            qhca_emit_hex(em, "value", r->va);
        }
        qhca_emit_flag(em, "counted", !r->uncounted);
        if (r->ack) {
            qhca_emit_dec(em, "then_ack_psn", r->ack_psn);
        }
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
}

static void inspect_responder(struct qhca_qp *qp, const struct qhca_emit *em)
{
    struct qhca_xport *xp = qp->xp;
    unsigned i;

    qhca_emit_begin(em, "responder");
    qhca_emit_dec(em, "exp_psn", xp->exp_psn);
    qhca_emit_dec(em, "msn", xp->msn);
    qhca_emit_enum(em, "message", "message_name", rsp_ops, xp->rsp_op, false);
    if (xp->rsp_op == QHCA_RSPOP_WRITE) {
        qhca_emit_begin(em, "write");
        qhca_emit_hex(em, "va", xp->wr_va);
        qhca_emit_hex(em, "rkey", xp->wr_rkey);
        qhca_emit_dec(em, "len", xp->wr_len);
        qhca_emit_dec(em, "left", xp->wr_left);
        qhca_emit_end(em);
    }
    if (xp->recv.held) {
        qhca_emit_begin(em, "receive");
        qhca_emit_dec(em, "index", xp->recv.index);
        qhca_emit_dec(em, "received", xp->recv.len);
        qhca_emit_dec(em, "capacity", xp->recv.cap);
        qhca_decode_recv_wqe(em, xp->recv.wqe, sizeof(xp->recv.wqe));
        qhca_emit_end(em);
    }
    qhca_emit_flag(em, "nak_sent", xp->naked);
    qhca_emit_dec(em, "reads_pending", xp->rd_pending);
    qhca_emit_flag(em, "flushing", xp->rq_flush);
    inspect_responses(xp, em);
    qhca_emit_list(em, "atomics_kept");
    for (i = 0; i < QHCA_ATOMICS_KEPT; i++) {
        if (xp->atomics[i].valid) {
            qhca_emit_begin(em, NULL);
            qhca_emit_dec(em, "psn", xp->atomics[i].psn);
            qhca_emit_hex(em, "value", xp->atomics[i].old);
            qhca_emit_end(em);
        }
    }
    qhca_emit_end(em);
    qhca_emit_end(em);
}

static void inspect_page_faults(struct qhca *e, struct qhca_qp *qp,
                           const struct qhca_emit *em)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES] = { { 0 } };
    struct qhca_cmd c = { .obj = qp->qpn, .out = f };
    unsigned i;

    if (!qp->xp->odp || qhca_cmd_query_page_fault(e, &c)) {
        return;
    }
    qhca_emit_begin(em, "page_faults");
    for (i = 0; i < QHCA_PAGE_FAULT_SIDES; i++) {
        if (f[i].flags & QHCA_PAGE_FAULT_VALID) {
            qhca_decode_as(em, page_fault_sides[i], qhca_fields_page_fault,
                           &f[i]);
        }
    }
    qhca_emit_end(em);
}

/* Our address and the peer's. */
static void inspect_path(struct qhca *e, struct qhca_qp *qp,
                         const struct qhca_emit *em)
{
    uint16_t index = qhca_le16(qp->av.sgid_index);

    qhca_emit_begin(em, "path");
    if (index < e->cfg.max_gid) {
        qhca_decode_as(em, "source", qhca_fields_gid, &e->xd->gids[index]);
    } else {
        qhca_emit_text(em, "error", "there is no such GID index");
    }
    qhca_decode_as(em, "destination", qhca_fields_av, &qp->av);
    qhca_emit_dec(em, "mtu_bytes", qhca_mtu_bytes(qp->path_mtu));
    qhca_emit_end(em);
}

void qhca_inspect_qp(struct qhca *e, struct qhca_qp *qp,
                     const struct qhca_emit *em)
{
    qhca_emit_flag(em, "has_work", !qhca_list_empty(&qp->ready));
    qhca_emit_dec(em, "users", qp->users);
    if (qp->sq_stride && !qp->tm) {
        qhca_inspect_map(&qp->sq, "sq_buffer", em);
    }
    if (qp->rq.stride) {
        qhca_inspect_dbrec(e, qp->rq.dbrec, em);
        qhca_inspect_map(&qp->rq.buf, "rq_buffer", em);
    }
    inspect_requester(e, qp, em);
    if (qhca_qp_connected(qp)) {
        inspect_responder(qp, em);
        if (qp->state >= QHCA_QPS_RTR) {
            inspect_path(e, qp, em);
        }
    }
    if (qp->rss) {
        qhca_inspect_rss(qp, em);
    }
    inspect_page_faults(e, qp, em);
    if (qp->tm) {
        qhca_emit_begin(em, "tag_matching");
        qhca_emit_dec(em, "receives", qp->tm->kind);
        qhca_emit_dec(em, "rendezvous_reads", qp->tm->reads);
        qhca_emit_end(em);
    }
}

/* The tag list, in search order. */
void qhca_inspect_tm(const struct qhca_srq *srq, const struct qhca_emit *em)
{
    const struct qhca_tm *tm = srq->tm;
    bool active = true;
    uint16_t i;

    qhca_emit_begin(em, "tag_matching");
    qhca_inspect_map(&tm->ops, "ops_buffer", em);
    qhca_emit_list(em, "tags");
    for (i = tm->first; i != QHCA_TM_NONE; i = tm->tags[i].next) {
        const struct qhca_tag *t = &tm->tags[i];

        active = active && i != tm->inactive;
        qhca_emit_begin(em, NULL);
        qhca_emit_dec(em, "entry", i);
        qhca_emit_hex(em, "tag", t->tag);
        qhca_emit_hex(em, "mask", t->mask);
        qhca_emit_hex(em, "wr_id", t->wr_id);
        qhca_emit_dec(em, "capacity", t->cap);
        qhca_emit_flag(em, "active", active);
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
    qhca_emit_end(em);
}
