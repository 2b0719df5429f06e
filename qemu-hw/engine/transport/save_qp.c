/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state: QPs and their transport. */
#include <stdlib.h>

#include "transport/rc.h"
#include "transport/tag_qp.h"

#define QPN_GSI             1
#define PSN_OK(psn)         ((psn) <= QHCA_PSN_MASK)

/* ---- the window: send WQEs in flight ---- */

static void save_swqe(struct qhca_io *io, struct qhca_swqe *w)
{
    IO(io, w->wr_id);
    IO(io, w->raddr);
    IO(io, w->laddr);
    IO(io, w->arg0);
    IO(io, w->arg1);
    IO(io, w->rkey);
    IO(io, w->lkey);
    IO(io, w->len);
    IO(io, w->first_psn);
    IO(io, w->npkts);
    IO(io, w->imm);
    IO(io, w->srqn);
    IO(io, w->num);
    IO(io, w->opcode);
    IO(io, w->flags);
    IO(io, w->status);
    IO(io, w->syndrome);
    IO(io, w->marks);
    IO(io, w->chunk);
}

/* Could parse_wqe() have produced this, with this number of packets? */
static bool swqe_ok(const struct qhca_qp *qp, const struct qhca_swqe *w)
{
    uint32_t npkts = qhca_wqe_is_local(w->opcode) ? 0 :
                     qhca_wqe_is_atomic(w->opcode) ? 1 :
                     qhca_packets(w->len, qp->path_mtu);
    uint8_t status;

    if (w->marks & ~(QHCA_SW_STARTED | QHCA_SW_RD | QHCA_SW_DONE |
                     QHCA_SW_SPLIT | QHCA_SW_ALONE) ||
        1u << (w->chunk & 31) > QHCA_WINDOW_PKTS || w->chunk > 31 ||
        ((w->marks & (QHCA_SW_RD | QHCA_SW_SPLIT)) &&
         !qhca_wqe_is_rd(w->opcode)) ||
        ((w->marks & QHCA_SW_DONE) && !qhca_wqe_is_local(w->opcode)) ||
        w->srqn > QHCA_PSN_MASK) {
        return false;
    }
    if (w->status) {
        /* Invalid from the start, or failed in flight. */
        return !w->npkts || w->npkts == npkts;
    }
    return w->npkts == npkts && !qhca_swqe_check(qp, w, &status) &&
           (!(w->flags & QHCA_WQE_F_INLINE) || w->len == w->num) &&
           (!qhca_wqe_is_atomic(w->opcode) || w->len == 8);
}

/* The WQEs' PSNs are contiguous, and the cursor is within them. */
static void saved_check_window(struct qhca_io *io, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;
    bool alive = (qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD) &&
                 !xp->sq_flush;
    uint32_t psn = xp->una_psn, first = psn, at = psn, rd = 0, recv = 0, i;
    uint32_t from, to;
    uint64_t total = 0, reqs = 0;
    struct qhca_swqe *w;

    for (i = qp->sq_tail; i != qp->sq_next && !io->failed; i++) {
        w = qhca_swqe(qp, i);
        if (i == qp->sq_tail) {
            psn = first = w->first_psn;
            NEED(io, !alive || qhca_psn_dist(xp->una_psn, first) < w->npkts ||
                 (!w->npkts && xp->una_psn == first),
                 "its oldest unacknowledged PSN is not in its oldest WQE");
        }
        NEED(io, PSN_OK(w->first_psn) && swqe_ok(qp, w),
             "a WQE in flight is invalid");
        NEED(io, w->first_psn == psn, "its WQEs in flight have a PSN gap");
        if (i == xp->cur) {
            at = qhca_psn_add(psn, xp->cur_pkt);
            NEED(io, !alive || xp->cur_pkt < w->npkts ||
                 (!xp->cur_pkt && !w->npkts) || w->status,
                 "the next packet is not in its WQE");
        }
        NEED(io, !alive || !qhca_wqe_is_local(w->opcode) || w->status ||
             (w->marks & QHCA_SW_DONE) ||
             i - qp->sq_tail >= xp->cur - qp->sq_tail,
             "it went on without having executed a WQE");
        if (qhca_wqe_is_rd(w->opcode) && !io->failed) {
            /* PSNs requested, but not yet answered */
            from = i == qp->sq_tail ? qhca_psn_dist(xp->una_psn, first) : 0;
            to = i == xp->cur ? xp->cur_pkt : i - qp->sq_tail <
                 xp->cur - qp->sq_tail ? w->npkts : 0;
            reqs += qhca_wnd_rd_reqs(w, from, to);
        }
        recv += qhca_wqe_takes_recv(w->opcode) &&
                i - qp->sq_tail < xp->cur - qp->sq_tail;
        rd += !!(w->marks & QHCA_SW_RD);
        total += w->npkts;
        psn = qhca_psn_add(psn, w->npkts);
    }
    if (xp->cur == qp->sq_next) {
        at = psn;
    }
    if (!alive || io->failed) {
        return;
    }
    /* The oldest may be acknowledged in part. */
    NEED(io, total - qhca_psn_dist(xp->una_psn, first) <= QHCA_PSN_MASK,
         "more packets than there are PSNs");
    NEED(io, xp->cur - qp->sq_tail <= qp->sq_next - qp->sq_tail &&
         (xp->cur != qp->sq_next || !xp->cur_pkt) && at == xp->snd_psn,
         "the next packet is not in flight");
    NEED(io, qhca_psn_dist(xp->snd_psn, xp->una_psn) <=
         qhca_psn_dist(xp->max_psn, xp->una_psn) &&
         qhca_psn_dist(xp->max_psn, xp->una_psn) <=
         qhca_psn_dist(psn, xp->una_psn) &&
         xp->rd_psns <= qhca_psn_dist(xp->snd_psn, xp->una_psn),
         "its PSNs are not in order");
    NEED(io, rd == xp->rd_out && reqs <= UINT16_MAX,
         "the number of READs in flight is wrong");
    xp->rd_reqs = (uint16_t)reqs;
    xp->recv_ahead = (uint8_t)recv;
}

static void save_window(struct qhca_io *io, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;
    bool is = xp->win;
    uint32_t i;

    IO(io, is);
    NEED(io, !is || qhca_qp_connected(qp), "it has a window, but no peer");
    NEED(io, !is || qp->sq_next - qp->sq_tail <= QHCA_WINDOW_WQES,
         "too many WQEs in flight");
    if (!is || io->failed) {
        return;                 /* see qhca_qp_impossible() */
    }
    if (!io->saving && !NEED(io, qhca_send_window_get(io->e, qp),
                             "out of memory")) {
        return;
    }
    for (i = qp->sq_tail; i != qp->sq_next && !io->failed; i++) {
        save_swqe(io, qhca_swqe(qp, i));
    }
    if (!io->saving && !io->failed) {
        saved_check_window(io, qp);
    }
}

/* ---- requester and responder ---- */

static void save_requester(struct qhca_io *io, struct qhca_xport *xp)
{
    IO(io, xp->snd_psn);
    IO(io, xp->una_psn);
    IO(io, xp->max_psn);
    IO(io, xp->cur);
    IO(io, xp->cur_pkt);
    IO(io, xp->rd_psns);
    IO(io, xp->since_ack);
    IO(io, xp->wnd);
    IO(io, xp->wnd_slow);
    IO(io, xp->wnd_acked);
    IO(io, xp->backoff);
    IO(io, xp->rtt_psn);
    IO(io, xp->rtt_start);
    IO(io, xp->back_psn);
    IO(io, xp->back_valid);
    IO(io, xp->ask);
    IO(io, xp->ask_psn);
    IO(io, xp->retry_left);
    IO(io, xp->rnr_left);
    IO(io, xp->rd_out);
    IO(io, xp->req_state);
    IO(io, xp->credits);
    IO(io, xp->recv_limit);
    IO(io, xp->crc_twice);
    IO(io, xp->sq_flush);
    IO(io, xp->rq_flush);
    IO(io, xp->flush_end);
    IO(io, xp->drain);
    NEED(io, PSN_OK(xp->snd_psn) && PSN_OK(xp->una_psn) &&
         PSN_OK(xp->max_psn) && PSN_OK(xp->back_psn) && PSN_OK(xp->ask_psn),
         "a PSN has more than 24 bits");
    NEED(io, xp->req_state <= QHCA_REQ_WAIT_CREDITS && xp->retry_left <= 7 &&
         xp->rnr_left <= 7 && xp->credits <= QHCA_AETH_CREDITS,
         "its requester's state is unknown");
    NEED(io, PSN_OK(xp->rtt_psn), "a PSN has more than 24 bits");
    NEED(io, xp->wnd && xp->wnd <= QHCA_WINDOW_PKTS &&
         xp->wnd_slow <= QHCA_WINDOW_PKTS &&
         xp->wnd_acked <= QHCA_WINDOW_PKTS &&
         xp->backoff <= QHCA_BACKOFF_MAX, "its window is invalid");
}

static void save_response(struct qhca_io *io, struct qhca_resp *r)
{
    bool ack = r->ack, rnr = r->rnr, alone = r->alone;
    uint32_t srqn = r->srqn;

    IO(io, r->kind);
    IO(io, r->syndrome);
    IO(io, r->started);
    IO(io, r->uncounted);
    IO(io, r->psn);
    IO(io, r->left);
    IO(io, r->rkey);
    IO(io, r->va);
    IO(io, r->ack_psn);
    IO(io, ack);
    IO(io, rnr);
    IO(io, alone);
    IO(io, srqn);
    NEED(io, r->kind <= QHCA_RESP_ATOMIC && PSN_OK(r->psn) &&
         PSN_OK(r->ack_psn) && srqn <= QHCA_PSN_MASK &&
         r->left <= QHCA_MAX_MSG_SIZE, "a response owed is invalid");
    if (!io->saving) {
        r->ack = ack;
        r->rnr = rnr;
        r->alone = alone;
        r->srqn = srqn & QHCA_PSN_MASK;
    }
}

static void save_responses(struct qhca_io *io, struct qhca_xport *xp)
{
    uint32_t n = xp->rspq_head - xp->rspq_tail, i;
    struct qhca_resp *r;

    IO(io, n);
    if (!NEED(io, n <= QHCA_RSPQ, "too many responses owed")) {
        return;
    }
    if (!io->saving) {
        xp->rspq_tail = 0;
        xp->rspq_head = n;
        xp->rd_pending = 0;
    }
    for (i = xp->rspq_tail; i != xp->rspq_head && !io->failed; i++) {
        r = qhca_rspq_at(xp, i);
        save_response(io, r);
        if (!io->saving && r->kind != QHCA_RESP_ACK && !r->uncounted) {
            xp->rd_pending++;
        }
    }
}

static void save_responder(struct qhca_io *io, struct qhca_xport *xp)
{
    unsigned i;

    IO(io, xp->exp_psn);
    IO(io, xp->msn);
    IO(io, xp->rsp_op);
    IO(io, xp->naked);
    IO(io, xp->fatal_nak);
    IO(io, xp->comm_est);
    IO(io, xp->atomic_next);
    IO(io, xp->wr_va);
    IO(io, xp->wr_rkey);
    IO(io, xp->wr_left);
    IO(io, xp->wr_len);
    NEED(io, PSN_OK(xp->exp_psn) && PSN_OK(xp->msn) &&
         xp->rsp_op <= QHCA_RSPOP_SKIP &&
         xp->atomic_next < QHCA_ATOMICS_KEPT,
         "its responder's state is unknown");
    qhca_io_recv(io, &xp->recv);
    save_responses(io, xp);
    for (i = 0; i < QHCA_ATOMICS_KEPT; i++) {
        IO(io, xp->atomics[i].valid);
        IO(io, xp->atomics[i].psn);
        IO(io, xp->atomics[i].old);
    }
}

void qhca_io_xport(struct qhca_io *io, struct qhca_qp *qp)
{
    const char *why;

    save_requester(io, qp->xp);
    save_responder(io, qp->xp);
    save_window(io, qp);
    qhca_io_odp(io, qp);
    if (!io->saving && !io->failed) {
        why = qhca_qp_impossible(qp);
        NEED(io, !why, why);
    }
}

/* ---- QPs ---- */

static void save_attributes(struct qhca_io *io, struct qhca_qp *qp)
{
    qhca_io_bytes(io, &qp->av, sizeof(qp->av));
    IO(io, qp->dest_qpn);
    IO(io, qp->qkey);
    IO(io, qp->sq_psn);
    IO(io, qp->rq_psn);
    IO(io, qp->access);
    IO(io, qp->pkey_index);
    IO(io, qp->path_mtu);
    IO(io, qp->timeout);
    IO(io, qp->retry_cnt);
    IO(io, qp->rnr_retry);
    IO(io, qp->min_rnr_timer);
    IO(io, qp->max_rd_atomic);
    IO(io, qp->max_dest_rd_atomic);
    IO(io, qp->en_sqd_event);
    IO(io, qp->syndrome);
    NEED(io, qhca_qp_attributes_ok(io->e, qp), "an attribute is out of range");
}

static void save_counters(struct qhca_io *io, struct qhca_qp *qp)
{
    IO(io, qp->sq_head);
    IO(io, qp->sq_next);
    IO(io, qp->sq_tail);
    IO(io, qp->rq.head);
    IO(io, qp->rq.tail);
    IO(io, qp->tx_packets);
    IO(io, qp->rx_packets);
    IO(io, qp->retransmits);
    IO(io, qp->timeouts);
    IO(io, qp->rnr_naks_rx);
    IO(io, qp->seq_naks_rx);
    IO(io, qp->duplicates);
}

/* The objects the QP refers to. */
static void save_refs(struct qhca_io *io, struct qhca_qp *qp)
{
    struct qhca *e = io->e;

    IO(io, qp->pd);
    IO(io, qp->uar);
    qp->scq = qhca_io_ref(io, &e->q->cqs, qp->scq, qp->scq ? qp->scq->cqn : 0,
                          "its send CQ does not exist");
    qp->rcq = qhca_io_ref(io, &e->q->cqs, qp->rcq, qp->rcq ? qp->rcq->cqn : 0,
                          "its receive CQ does not exist");
    qp->srq = qhca_io_ref(io, &e->q->srqs, qp->srq, qp->srq ? qp->srq->srqn : 0,
                          "its SRQ does not exist");
    qp->xrcd = qhca_io_ref(io, &e->q->xrcds, qp->xrcd,
                           qp->xrcd ? qp->xrcd->xrcd : 0,
                           "its XRC domain does not exist");
}

/*
 * Does the QP refer to what its type has?  RSS QPs and WQs of older states are
 * checked elsewhere.
 */
static bool save_refs_ok(const struct qhca_qp *qp)
{
    bool tgt = qp->type == QHCA_QPT_XRC_TGT;

    /* A target borrows the SRQ of the message it receives. */
    return !qp->xrcd == !tgt && !qp->scq == tgt &&
           !qp->rcq == (tgt || qp->type == QHCA_QPT_XRC_INI) &&
           (tgt ? !qp->srq || qp->srq->xrcd == qp->xrcd :
                  !qp->srq == !(qp->flags & QHCA_QP_F_SRQ));
}

/* Could CREATE_QP have made this QP? */
static const char *saved_check_type(struct qhca *e, const struct qhca_qp *qp)
{
    struct qhca_cmd c = { 0 };
    struct qhca_qpc in;

    if ((qp->type == QHCA_QPT_GSI) != (qp->qpn == QPN_GSI) || !qp->qpn) {
        return "its number is reserved";
    }
    if (qp->ops->valid) {
        return qp->ops->valid(e, qp) ? NULL :
               "no command could have created it";
    }
    if (qp->state > QHCA_QPS_ERR) {
        return "its state is unknown";
    }
    if (!save_refs_ok(qp)) {
        return "its CQs, SRQ or XRC domain do not match its type";
    }
    qhca_qp_describe(qp, &in);
    in.state = QHCA_QPS_RESET;
    return qhca_qp_check_create(e, &c, &in) ?
           "no command could have created it" : NULL;
}

static void save_check_rings(struct qhca_io *io, const struct qhca_qp *qp)
{
    uint32_t depth = qp->sq_stride || qp->tm ? 1u << qp->sq_shift : 0;

    NEED(io, qp->sq_head - qp->sq_tail <= depth &&
         qp->sq_next - qp->sq_tail <= qp->sq_head - qp->sq_tail,
         "its send ring's counters are inconsistent");
    NEED(io, qp->rq.head - qp->rq.tail <=
         (qp->rq.stride ? 1u << qp->rq.shift : 0),
         "its receive ring's counters are inconsistent");
}

/* Assign its number to a loaded QP and take its references. */
static bool save_attach(struct qhca_io *io, struct qhca_qp *qp)
{
    struct qhca *e = io->e;

    if (!qhca_io_place_low(io, &e->q->qps, &qp->owner, qp->qpn)) {
        return false;
    }
    e->mem->uar_refs[qp->uar]++;
    if (qp->xrcd) {
        qhca_xrc_join(qp);
        qp->pd = qp->srq ? qp->srq->pd : 0;
        return true;
    }
    e->mem->pd_refs[qp->pd]++;
    if (qp->scq) {
        qp->scq->refs++;
    }
    if (qp->rcq) {
        qp->rcq->refs++;
    }
    if (qp->srq) {
        qp->srq->refs++;
    }
    return true;
}

/* RSS QPs have a section of their own; WQs were QPs up to version 2. */
static bool save_type_ok(const struct qhca_io *io, uint8_t type, bool rss)
{
    return (type == QHCA_QPT_RSS) == rss &&
           (type != QHCA_QPT_SAVED_WQ || io->version < 3);
}

/* The part set by CREATE_QP; @rss: in the section of RSS QPs.  NULL: failed. */
static struct qhca_qp *save_context(struct qhca_io *io, struct qhca_qp *obj,
                                    bool rss)
{
    struct qhca_qp *qp = obj ? obj : qhca_qp_alloc(io->e, 0);
    uint8_t sq_stride, sq_shift;
    const char *why;

    if (!NEED(io, qp, "out of memory")) {
        return NULL;
    }
    IO(io, qp->qpn);
    qhca_io_about(io, "QP", qp->qpn);
    IO(io, qp->type);
    qhca_qp_set_type(io->e, qp, qp->type);
    NEED(io, qp->ops, "its type is unknown");
    NEED(io, save_type_ok(io, qp->type, rss),
         "another section has QPs of its type");
    IO(io, qp->state);
    IO(io, qp->flags);
    save_refs(io, qp);
    /* The device owns a TM QP's send ring: see qhca_tm_qp_init(). */
    sq_shift = qp->tm ? 0 : qp->sq_shift;
    sq_stride = qp->tm ? 0 : qp->sq_stride;
    IO(io, sq_shift);
    IO(io, sq_stride);
    IO(io, qp->rq.shift);
    IO(io, qp->rq.stride);
    IO(io, qp->rq.dbrec);
    IO(io, qp->cookie);
    IO_SINCE(io, 3, qp->sq_dbrec);
    IO_SINCE(io, 3, qp->sq_awake);
    NEED(io, (qp->flags & QHCA_QP_F_SQ_RECORD) || !qp->sq_awake,
         "it looks into a record that it does not have");
    if (!io->saving) {
        qp->sq_shift = sq_shift;
        qp->sq_stride = sq_stride;
        why = io->failed ? NULL : saved_check_type(io->e, qp);
        NEED(io, !why, why);
    }
    qhca_io_buf(io, &qp->sq, io->failed || !sq_stride ? 0 :
                1ULL << (sq_shift + sq_stride), true);
    qhca_io_buf(io, &qp->rq.buf, io->failed || !qp->rq.stride ? 0 :
                1ULL << (qp->rq.shift + qp->rq.stride), true);
    NEED(io, !sq_stride == !qp->sq.len && !qp->rq.stride == !qp->rq.buf.len,
         "its buffers do not match its rings");
    if (io->saving) {
        return qp;
    }
    if (!io->failed) {
        qhca_event_init(&qp->ev, qp->qpn);
    }
    if (io->failed || !save_attach(io, qp)) {
        free(qp);
        return NULL;
    }
    NEED(io, qp->ops->init(io->e, qp, NULL), "out of memory");
    return qp;
}

static void save_qp(struct qhca_io *io, struct qhca_qp *obj, bool rss)
{
    struct qhca_qp *qp = save_context(io, obj, rss);

    if (!qp) {
        return;
    }
    save_attributes(io, qp);
    save_counters(io, qp);
    if (!io->saving && !io->failed) {
        save_check_rings(io, qp);
    }
    qp->ops->save(io, qp);
    if (!io->saving && io->failed) {
        /* Discard a partly loaded QP: nothing may be in flight. */
        qp->sq_head = qp->sq_next = qp->sq_tail;
        qp->xp->rspq_head = qp->xp->rspq_tail;
    }
}

static void save_rss_qp(struct qhca_io *io, void *obj)
{
    save_qp(io, obj, true);
}

static void save_other_qp(struct qhca_io *io, void *obj)
{
    save_qp(io, obj, false);
}

static bool save_is_rss(const void *obj)
{
    const struct qhca_qpn_owner *o = obj;

    return !o->is_wq && qhca_container(o, const struct qhca_qp, owner)->type ==
           QHCA_QPT_RSS;
}

static bool saved_is_other_qp(const void *obj)
{
    return !((const struct qhca_qpn_owner *)obj)->is_wq && !save_is_rss(obj);
}

void qhca_io_qps(struct qhca_io *io)
{
    qhca_io_numbers(io, &io->e->q->qps);
    qhca_io_each(io, &io->e->q->qps, saved_is_other_qp, save_other_qp);
}

void qhca_io_rss_qps(struct qhca_io *io)
{
    qhca_io_each(io, &io->e->q->qps, save_is_rss, save_rss_qp);
    qhca_io_numbers_end(io, &io->e->q->qps);
}
