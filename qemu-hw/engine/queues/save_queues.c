/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state: EQs, CQs, SRQs, memory windows, receive WQEs. */
#include <stdlib.h>

#include "queues/queues.h"

/* ---- parts common to several kinds of objects ---- */

/* The QP at @o, which may be NULL. */
static struct qhca_qp *save_owner(struct qhca_io *io, struct qhca_qpn_owner *o,
                                  const char *why)
{
    return o && NEED(io, !o->is_wq, why) ?
           qhca_container(o, struct qhca_qp, owner) : NULL;
}

struct qhca_qp *qhca_io_qp(struct qhca_io *io, const struct qhca_qp *qp,
                           const char *why)
{
    return save_owner(io, qhca_io_ref(io, &io->e->q->qps, qp,
                                      qp ? qp->qpn : 0, why), why);
}

struct qhca_qp *qhca_io_must_qp(struct qhca_io *io, const struct qhca_qp *qp,
                                const char *why)
{
    return save_owner(io, qhca_io_must_ref(io, &io->e->q->qps,
                                           qp ? qp->qpn : 0, why), why);
}

void qhca_io_ring(struct qhca_io *io, struct qhca_wqe_ring *r, bool is)
{
    IO(io, r->dbrec);
    IO(io, r->shift);
    IO(io, r->stride);
    IO(io, r->head);
    IO(io, r->tail);
    NEED(io, r->shift <= QHCA_MAX_WQ_SHIFT && r->stride <= 9,
         "its size is out of range");
    qhca_io_buf(io, &r->buf, io->failed ? 0 : 1ULL << (r->shift + r->stride),
                true);
    NEED(io, !r->buf.len == !is,
         "it lacks a buffer, or has one that it must not have");
    NEED(io, r->head - r->tail <= (is ? 1u << r->shift : 0),
         "more WQEs than it holds");
}

void qhca_io_recv(struct qhca_io *io, struct qhca_recv *r)
{
    uint32_t header = sizeof(struct qhca_rq_wqe);
    uint64_t cap;

    IO(io, r->held);
    if (!r->held) {
        return;
    }
    IO(io, r->index);
    IO(io, r->len);
    IO(io, r->sges);
    qhca_io_bytes(io, r->wqe, sizeof(r->wqe));
    if (io->saving ||
        !NEED(io, r->sges <= QHCA_MAX_SGE &&
              r->sges <= (sizeof(r->wqe) - header) / sizeof(struct qhca_sge),
              "its receive has too many SGEs")) {
        return;
    }
    cap = qhca_sgl_len(r->wqe + header, r->sges);
    r->cap = cap > UINT32_MAX ? UINT32_MAX : (uint32_t)cap;
    NEED(io, r->len <= r->cap, "its receive holds more data than fits");
}

/* ---- EQs ---- */

static void save_eq(struct qhca_io *io, void *obj)
{
    struct qhca_eq tmp = { 0 }, *q = obj ? obj : &tmp;

    IO(io, q->eqn);
    qhca_io_about(io, "EQ", q->eqn);
    IO(io, q->shift);
    IO(io, q->vector);
    IO(io, q->prod);
    IO(io, q->cons);
    IO(io, q->armed);
    IO_SINCE(io, 2, q->flags);
    IO_SINCE(io, 2, q->dbrec);
    IO_SINCE(io, 2, q->notify);
    NEED(io, qhca_eq_valid(io->e, q), "no command could have created it");
    qhca_io_buf(io, &q->buf, io->failed ? 0 :
                sizeof(struct qhca_eqe) << q->shift, true);
    NEED(io, q->buf.len, "it has no buffer");
    NEED(io, q->flags & QHCA_EQ_F_RECORD ? !q->armed : !q->notify,
         "its armed flag contradicts its other flags");
    if (io->saving ||
        !NEED(io, q->prod - q->cons <= 1u << q->shift,
              "more events than it holds")) {
        return;
    }
    q = malloc(sizeof(*q));
    if (!NEED(io, q, "out of memory")) {
        return;
    }
    *q = tmp;
    qhca_list_init(&q->pending);
    qhca_list_init(&q->work);
    if (!qhca_io_place_low(io, &io->e->q->eqs, q, q->eqn)) {
        free(q);
    }
}

void qhca_io_eqs(struct qhca_io *io)
{
    qhca_io_numbers(io, &io->e->q->eqs);
    qhca_io_each(io, &io->e->q->eqs, NULL, save_eq);
    qhca_io_numbers_end(io, &io->e->q->eqs);
}

/* ---- CQs ---- */

static void save_cq(struct qhca_io *io, void *obj)
{
    struct qhca_cq tmp = { 0 }, *c = obj ? obj : &tmp;
    struct qhca *e = io->e;

    IO(io, c->cqn);
    qhca_io_about(io, "CQ", c->cqn);
    c->eq = qhca_io_must_ref(io, &e->q->eqs, c->eq ? c->eq->eqn : 0,
                             "its EQ does not exist");
    IO(io, c->uar);
    IO(io, c->dbrec);
    IO(io, c->shift);
    IO(io, c->state);
    IO(io, c->arm);
    IO(io, c->mod_count);
    IO(io, c->mod_usec);
    IO(io, c->prod);
    IO(io, c->cons);
    IO(io, c->last_solicited);
    IO(io, c->since_event);
    IO(io, c->unreported);
    NEED(io, qhca_cq_valid(e, c), "no command could have created it");
    qhca_io_buf(io, &c->buf, io->failed ? 0 :
                sizeof(struct qhca_cqe) << c->shift, true);
    NEED(io, c->buf.len, "it has no buffer");
    NEED(io, c->state <= QHCA_CQ_ERR && c->arm <= QHCA_ARM_SOLICITED,
         "its state is unknown");
    if (io->saving ||
        !NEED(io, c->prod - c->cons <= 1u << c->shift,
              "more completions than it holds")) {
        return;
    }
    c = malloc(sizeof(*c));
    if (!NEED(io, c, "out of memory")) {
        return;
    }
    *c = tmp;
    c->mod_pos = QHCA_MOD_NONE;
    qhca_event_init(&c->ev, c->cqn);
    qhca_event_init(&c->comp, c->cqn);
    if (!qhca_io_place(io, &e->q->cqs, c, c->cqn)) {
        free(c);
        return;
    }
    c->eq->refs++;
    e->mem->uar_refs[c->uar]++;
}

/* Deferred events, in heap order, so that loading rebuilds the same heap. */
static void save_moderation(struct qhca_io *io)
{
    struct qhca *e = io->e;
    uint32_t n = e->q->mod_used, i, cqn;
    uint64_t deadline;
    struct qhca_cq *c;

    IO(io, n);
    for (i = 0; i < n && !io->failed; i++) {
        cqn = io->saving ? e->q->mod_heap[i]->cqn : 0;
        deadline = io->saving ? e->q->mod_heap[i]->mod_deadline : 0;
        IO(io, cqn);
        IO(io, deadline);
        if (!io->saving) {
            c = qhca_idr_get(&e->q->cqs, cqn);
            if (NEED(io, c && c->mod_pos == QHCA_MOD_NONE,
                     "a moderated event has no CQ, or is a duplicate")) {
                qhca_mod_add(e, c, deadline);
            }
        }
    }
}

void qhca_io_cqs(struct qhca_io *io)
{
    qhca_io_numbers(io, &io->e->q->cqs);
    qhca_io_each(io, &io->e->q->cqs, NULL, save_cq);
    qhca_io_numbers_end(io, &io->e->q->cqs);
    save_moderation(io);
}

/* ---- SRQs ---- */

static void save_srq(struct qhca_io *io, void *obj)
{
    struct qhca_srq tmp = { 0 }, *s = obj ? obj : &tmp;
    struct qhca *e = io->e;

    IO(io, s->srqn);
    qhca_io_about(io, "SRQ", s->srqn);
    s->cq = qhca_io_ref(io, &e->q->cqs, s->cq, s->cq ? s->cq->cqn : 0,
                        "its CQ does not exist");
    s->xrcd = qhca_io_ref(io, &e->q->xrcds, s->xrcd,
                          s->xrcd ? s->xrcd->xrcd : 0,
                          "its XRC domain does not exist");
    IO(io, s->pd);
    IO(io, s->uar);
    IO(io, s->dbrec);
    IO(io, s->shift);
    IO(io, s->stride);
    IO(io, s->flags);
    IO(io, s->state);
    IO(io, s->limit);
    IO(io, s->head);
    IO(io, s->tail);
    NEED(io, qhca_srq_valid(e, s), "no command could have created it");
    qhca_io_buf(io, &s->buf, io->failed ? 0 : 1ULL << (s->shift + s->stride),
                true);
    qhca_io_buf(io, &s->idx, io->failed ? 0 : 4ULL << s->shift, true);
    NEED(io, s->buf.len && s->idx.len, "it has no buffer");
    NEED(io, s->state <= QHCA_SRQ_ERR, "its state is unknown");
    NEED(io, s->head - s->tail <= 1u << s->shift,
         "more receives than it holds");
    if (io->failed) {
        return;
    }
    if (!io->saving) {
        s = malloc(sizeof(*s));
        if (!NEED(io, s, "out of memory")) {
            return;
        }
        *s = tmp;
        qhca_event_init(&s->ev, s->srqn);
        if (!qhca_io_place(io, &e->q->srqs, s, s->srqn)) {
            free(s);
            return;
        }
        e->mem->pd_refs[s->pd]++;
        e->mem->uar_refs[s->uar]++;
        if (s->cq) {
            s->cq->refs++;
        }
        if (s->xrcd) {
            s->xrcd->refs++;
        }
    }
    if (s->flags & QHCA_SRQ_F_TM) {
        qhca_io_tm(io, s);
    }
}

void qhca_io_srqs(struct qhca_io *io)
{
    qhca_io_numbers(io, &io->e->q->srqs);
    qhca_io_each(io, &io->e->q->srqs, NULL, save_srq);
    qhca_io_numbers_end(io, &io->e->q->srqs);
}

/* ---- memory windows: after the QPs, which they refer to ---- */

static bool saved_is_window(const void *obj)
{
    return ((const struct qhca_mr *)obj)->flags & QHCA_MR_F_MW;
}

/* Could a QP have bound the window to @region as it is? */
static bool mw_could_be(const struct qhca_mw *w, const struct qhca_mr *region)
{
    uint64_t addr = region->iova + w->off;
    uint32_t flags = w->mr.access;

    if (w->mr.iova != addr) {
        flags |= QHCA_BIND_ZERO_BASED;
    }
    return (w->mr.iova == addr || !w->mr.iova) && w->mr.len &&
           !qhca_mw_check(w, region, addr, w->mr.len, flags);
}

static void save_mw(struct qhca_io *io, void *obj)
{
    struct qhca_mw tmp = { .bound = NULL }, *w = obj ? obj : &tmp;
    struct qhca_mr *b = w->bound;
    struct qhca_qp *qp = qhca_qp_get(io->e, w->qpn);

    qhca_io_key(io, &w->mr);
    b = qhca_io_ref(io, &io->e->mem->mrs, b,
                    b ? b->key >> QHCA_KEY_INDEX_SHIFT : 0,
                    "its region does not exist");
    qp = qhca_io_qp(io, qp, "its QP does not exist");
    IO(io, w->off);
    NEED(io, w->mr.flags == QHCA_MR_F_MW1 || w->mr.flags == QHCA_MR_F_MW2,
         "it is no window");
    NEED(io, !b == (w->mr.state == QHCA_MR_FREE) &&
         !qp == !(b && w->mr.flags == QHCA_MR_F_MW2),
         "it is half bound");
    NEED(io, !qp || qhca_qp_connected(qp), "its QP cannot bind windows");
    NEED(io, !qp || qp->pd == w->mr.pd, "its QP is in another PD");
    NEED(io, !b || mw_could_be(w, b), "no QP could have bound it so");
    if (io->saving || io->failed) {
        return;
    }
    w = malloc(sizeof(*w));
    if (!NEED(io, w, "out of memory")) {
        return;
    }
    *w = tmp;
    qhca_list_init(&w->link);
    if (!qhca_io_place(io, &io->e->mem->mrs, &w->mr,
                       w->mr.key >> QHCA_KEY_INDEX_SHIFT)) {
        free(w);
        return;
    }
    io->e->mem->pd_refs[w->mr.pd]++;
    w->bound = b;
    w->qpn = qp ? qp->qpn : 0;
    if (b) {
        b->windows++;
    }
    if (qp) {
        qhca_list_add_tail(&qp->windows, &w->link);
    }
}

void qhca_io_mws(struct qhca_io *io)
{
    qhca_io_each(io, &io->e->mem->mrs, saved_is_window, save_mw);
    qhca_io_numbers_end(io, &io->e->mem->mrs);
}
