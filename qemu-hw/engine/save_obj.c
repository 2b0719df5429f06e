/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state: EQs, CQs, SRQs, memory regions and windows, Ethernet queues. */
#include <stdlib.h>

#include "save.h"
#include "admin.h"

/* ---- EQs ---- */

static void eq(struct qhca_io *io, void *obj)
{
    struct qhca_eq tmp = { 0 }, *q = obj ? obj : &tmp;

    IO(io, q->eqn);
    qhca_io_about(io, "EQ", q->eqn);
    IO(io, q->shift);
    IO(io, q->vector);
    IO(io, q->prod);
    IO(io, q->cons);
    IO(io, q->armed);
    NEED(io, q->shift >= 1 && q->shift <= QHCA_MAX_EQ_SHIFT,
         "its size is out of range");
    qhca_io_map(io, &q->buf, io->failed ? 0 :
                sizeof(struct qhca_eqe) << q->shift, true);
    NEED(io, q->buf.len, "it has no buffer");
    NEED(io, q->vector < io->e->cfg.num_vectors, "there is no such vector");
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
    if (!qhca_io_place(io, &io->e->eqs, q, q->eqn)) {
        free(q);
    }
}

void qhca_io_eqs(struct qhca_io *io)
{
    qhca_io_section(io, "eq", 1);
    qhca_io_table(io, &io->e->eqs);
    qhca_io_each(io, &io->e->eqs, NULL, eq);
    qhca_io_table_end(io, &io->e->eqs);
}

/* ---- CQs ---- */

static void cq(struct qhca_io *io, void *obj)
{
    struct qhca_cq tmp = { 0 }, *c = obj ? obj : &tmp;
    struct qhca *e = io->e;

    IO(io, c->cqn);
    qhca_io_about(io, "CQ", c->cqn);
    c->eq = qhca_io_ref(io, &e->eqs, true, c->eq ? c->eq->eqn : 0,
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
    NEED(io, c->shift <= QHCA_MAX_CQ_SHIFT, "its size is out of range");
    qhca_io_map(io, &c->buf, io->failed ? 0 :
                sizeof(struct qhca_cqe) << c->shift, true);
    NEED(io, c->eq && c->buf.len, "it has no EQ or no buffer");
    NEED(io, qhca_table_get(&e->uars, c->uar), "its UAR does not exist");
    NEED(io, !(c->dbrec & 7), "its doorbell record is misaligned");
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
    if (!qhca_io_place(io, &e->cqs, c, c->cqn)) {
        free(c);
        return;
    }
    c->eq->refs++;
    e->uar_refs[c->uar]++;
}

/* Events held back, in the order of the heap: so it becomes the same. */
static void moderation(struct qhca_io *io)
{
    struct qhca *e = io->e;
    uint32_t n = e->mod_used, i, cqn;
    uint64_t deadline;
    struct qhca_cq *c;

    IO(io, n);
    for (i = 0; i < n && !io->failed; i++) {
        cqn = io->saving ? e->mod_heap[i]->cqn : 0;
        deadline = io->saving ? e->mod_heap[i]->mod_deadline : 0;
        IO(io, cqn);
        IO(io, deadline);
        if (!io->saving) {
            c = qhca_table_get(&e->cqs, cqn);
            if (NEED(io, c && c->mod_pos == QHCA_MOD_NONE,
                     "an event is held back for no CQ, or twice")) {
                qhca_mod_add(e, c, deadline);
            }
        }
    }
}

void qhca_io_cqs(struct qhca_io *io)
{
    qhca_io_section(io, "cq", 2);
    qhca_io_table(io, &io->e->cqs);
    qhca_io_each(io, &io->e->cqs, NULL, cq);
    qhca_io_table_end(io, &io->e->cqs);
    moderation(io);
}

/* ---- SRQs ---- */

static void srq(struct qhca_io *io, void *obj)
{
    struct qhca_srq tmp = { 0 }, *s = obj ? obj : &tmp;
    struct qhca *e = io->e;
    bool own_cq;

    IO(io, s->srqn);
    qhca_io_about(io, "SRQ", s->srqn);
    s->cq = qhca_io_ref(io, &e->cqs, s->cq, s->cq ? s->cq->cqn : 0,
                        "its CQ does not exist");
    s->xrcd = qhca_io_ref(io, &e->xrcds, s->xrcd,
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
    NEED(io, s->shift <= QHCA_MAX_WQ_SHIFT && s->stride >= 5 &&
         s->stride <= 9, "its size is out of range");
    qhca_io_map(io, &s->buf, io->failed ? 0 : 1ULL << (s->shift + s->stride),
                true);
    qhca_io_map(io, &s->idx, io->failed ? 0 : 4ULL << s->shift, true);
    NEED(io, s->buf.len && s->idx.len, "it has no buffer");
    NEED(io, qhca_table_get(&e->pds, s->pd) &&
         qhca_table_get(&e->uars, s->uar), "its PD or UAR does not exist");
    NEED(io, !(s->dbrec & 7), "its doorbell record is misaligned");
    NEED(io, !s->flags || s->flags == QHCA_SRQ_F_TM ||
         s->flags == QHCA_SRQ_F_XRC, "its flags are unknown");
    own_cq = s->flags & (QHCA_SRQ_F_TM | QHCA_SRQ_F_XRC);
    NEED(io, own_cq == !!s->cq && !(s->flags & QHCA_SRQ_F_XRC) == !s->xrcd,
         "it has not what its flags say");
    NEED(io, s->state <= QHCA_SRQ_ERR, "its state is unknown");
    NEED(io, io->failed || (s->limit <= 1u << s->shift &&
                            s->head - s->tail <= 1u << s->shift),
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
        if (!qhca_io_place(io, &e->srqs, s, s->srqn)) {
            free(s);
            return;
        }
        e->pd_refs[s->pd]++;
        e->uar_refs[s->uar]++;
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
    qhca_io_section(io, "srq", 1);
    qhca_io_table(io, &io->e->srqs);
    qhca_io_each(io, &io->e->srqs, NULL, srq);
    qhca_io_table_end(io, &io->e->srqs);
}

/* ---- memory regions ---- */

static bool is_window(const void *obj)
{
    return ((const struct qhca_mr *)obj)->flags & QHCA_MR_F_MW;
}

static bool is_region(const void *obj)
{
    return !is_window(obj);
}

/* What regions and windows have in common. */
static void key_fields(struct qhca_io *io, struct qhca_mr *m)
{
    IO(io, m->key);
    qhca_io_about(io, "MR", m->key >> QHCA_KEY_INDEX_SHIFT);
    IO(io, m->pd);
    IO(io, m->access);
    IO(io, m->flags);
    IO(io, m->state);
    IO(io, m->iova);
    IO(io, m->len);
    NEED(io, qhca_table_get(&io->e->pds, m->pd), "its PD does not exist");
    NEED(io, m->state == QHCA_MR_VALID || m->state == QHCA_MR_FREE,
         "its state is unknown");
}

static void mr(struct qhca_io *io, void *obj)
{
    struct qhca_mr tmp = { 0 }, *m = obj ? obj : &tmp;

    key_fields(io, m);
    IO(io, m->max_entries);
    qhca_io_map(io, &m->buf, 0, false);
    if (io->saving || !NEED(io, qhca_mr_valid(io->e, m),
                            "it is none that could be made")) {
        return;
    }
    m = malloc(sizeof(*m));
    if (!NEED(io, m, "out of memory")) {
        return;
    }
    *m = tmp;
    m->buf.odp = m->flags & QHCA_MR_F_ODP;
    if (qhca_io_place(io, &io->e->mrs, m, m->key >> QHCA_KEY_INDEX_SHIFT)) {
        io->e->pd_refs[m->pd]++;
    } else {
        free(m);
    }
}

static void mw(struct qhca_io *io, void *obj)
{
    struct qhca_mw tmp = { .bound = NULL }, *w = obj ? obj : &tmp;
    struct qhca_mr *b = w->bound;
    struct qhca_qp *qp = w->qp;

    key_fields(io, &w->mr);
    b = qhca_io_ref(io, &io->e->mrs, b, b ? b->key >> QHCA_KEY_INDEX_SHIFT :
                    0, "its region does not exist");
    qp = qhca_io_ref(io, &io->e->qps, qp, qp ? qp->qpn : 0,
                     "its QP does not exist");
    IO(io, w->off);
    NEED(io, w->mr.flags == QHCA_MR_F_MW1 || w->mr.flags == QHCA_MR_F_MW2,
         "it is no window");
    NEED(io, !b == (w->mr.state == QHCA_MR_FREE) &&
         !qp == !(b && w->mr.flags == QHCA_MR_F_MW2),
         "it is half bound");
    NEED(io, !b || (!is_window(b) && b->state == QHCA_MR_VALID &&
                    w->off <= b->len && w->mr.len &&
                    w->mr.len <= b->len - w->off &&
                    w->mr.iova + (w->mr.len - 1) >= w->mr.iova),
         "it does not lie in its region");
    if (io->saving || io->failed) {
        return;
    }
    w = malloc(sizeof(*w));
    if (!NEED(io, w, "out of memory")) {
        return;
    }
    *w = tmp;
    qhca_list_init(&w->link);
    if (!qhca_io_place(io, &io->e->mrs, &w->mr,
                       w->mr.key >> QHCA_KEY_INDEX_SHIFT)) {
        free(w);
        return;
    }
    io->e->pd_refs[w->mr.pd]++;
    w->bound = b;
    w->qp = qp;
    if (b) {
        b->windows++;
    }
    if (qp) {
        qhca_list_add_tail(&qp->windows, &w->link);
    }
}

void qhca_io_mrs(struct qhca_io *io)
{
    qhca_io_section(io, "mr", 1);
    qhca_io_table(io, &io->e->mrs);
    qhca_io_each(io, &io->e->mrs, is_region, mr);
}

void qhca_io_mws(struct qhca_io *io)
{
    qhca_io_section(io, "mw", 1);
    qhca_io_each(io, &io->e->mrs, is_window, mw);
    qhca_io_table_end(io, &io->e->mrs);
}

/* ---- Ethernet queues ---- */

static void eth_q(struct qhca_io *io, struct qhca_eth_q *obj, bool is_sq)
{
    struct qhca_eth_q tmp = { 0 }, *q = obj ? obj : &tmp;
    struct qhca *e = io->e;

    IO(io, q->num);
    qhca_io_about(io, is_sq ? "Ethernet SQ" : "Ethernet RQ", q->num);
    q->cq = qhca_io_ref(io, &e->cqs, true, q->cq ? q->cq->cqn : 0,
                        "its CQ does not exist");
    IO(io, q->dbrec);
    IO(io, q->shift);
    IO(io, q->stride);
    IO(io, q->head);
    IO(io, q->tail);
    IO(io, q->dead);
    NEED(io, q->shift <= QHCA_MAX_WQ_SHIFT &&
         (is_sq ? q->stride >= 6 && q->stride <= 9 : q->stride == 4),
         "its size is out of range");
    NEED(io, is_sq || !(q->dbrec & 7), "its doorbell record is misaligned");
    qhca_io_map(io, &q->buf, io->failed ? 0 : 1ULL << (q->shift + q->stride),
                true);
    NEED(io, q->cq && q->buf.len, "it has no CQ or no buffer");
    if (io->saving ||
        !NEED(io, q->head - q->tail <= 1u << q->shift,
              "more frames than it holds")) {
        return;
    }
    q = malloc(sizeof(*q));
    if (!NEED(io, q, "out of memory")) {
        return;
    }
    *q = tmp;
    q->is_sq = is_sq;
    qhca_list_init(&q->ready);
    qhca_event_init(&q->ev, q->num);
    if (qhca_io_place(io, is_sq ? &e->eth_sqs : &e->eth_rqs, q, q->num)) {
        q->cq->refs++;
    } else {
        free(q);
    }
}

static void eth_sq(struct qhca_io *io, void *obj)
{
    eth_q(io, obj, true);
}

static void eth_rq(struct qhca_io *io, void *obj)
{
    eth_q(io, obj, false);
}

/* The address filter: addresses, which find their places again. */
static void mc_list(struct qhca_io *io)
{
    struct qhca *e = io->e;
    struct qhca_mac list[QHCA_HASH_SLOTS / 2];
    uint32_t n = 0, i;

    memset(list, 0, sizeof(list));
    for (i = 0; io->saving && i < QHCA_HASH_SLOTS; i++) {
        if (e->mc_hash[i]) {
            qhca_put_be16(list[n].mac, (uint16_t)(e->mc_hash[i] >> 32));
            qhca_put_be32(list[n].mac + 2, (uint32_t)e->mc_hash[i]);
            n++;
        }
    }
    IO(io, n);
    NEED(io, n <= QHCA_HASH_SLOTS / 2, "too many multicast addresses");
    for (i = 0; i < n && !io->failed; i++) {
        qhca_io_bytes(io, list[i].mac, sizeof(list[i].mac));
        NEED(io, list[i].mac[0] & 1, "an address is no multicast address");
    }
    if (!io->saving && !io->failed) {
        qhca_mc_set(e, list, n);
    }
}

void qhca_io_eth(struct qhca_io *io)
{
    struct qhca *e = io->e;

    qhca_io_section(io, "eth", 1);
    qhca_io_table(io, &e->eth_sqs);
    qhca_io_each(io, &e->eth_sqs, NULL, eth_sq);
    qhca_io_table_end(io, &e->eth_sqs);
    qhca_io_table(io, &e->eth_rqs);
    qhca_io_each(io, &e->eth_rqs, NULL, eth_rq);
    qhca_io_table_end(io, &e->eth_rqs);
    qhca_io_about(io, "port", 0);
    qhca_io_bytes(io, e->mac, sizeof(e->mac));
    IO(io, e->promisc);
    IO(io, e->allmulti);
    IO(io, e->mtu);
    IO(io, e->eth_rqn);
    NEED(io, !(e->mac[0] & 1), "its address is a group's");
    NEED(io, e->mtu <= QHCA_MAX_MTU, "its MTU is out of range");
    NEED(io, e->eth_rqn == QHCA_ETH_RQ_NONE ||
         qhca_table_get(&e->eth_rqs, e->eth_rqn),
         "its receive queue does not exist");
    mc_list(io);
}
