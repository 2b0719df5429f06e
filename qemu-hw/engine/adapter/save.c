/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saving and loading an adapter: the state as a whole, the registers, and the
 * lists of objects with work to do.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "adapter/adapter.h"
#include "transport/tag_qp.h"

/* If one of these assertions fails, its message says what to do. */
SAVED_SIZE_OF_MANY(struct qhca_buf_table, 184);
SAVED_SIZE_OF_MANY(struct qhca_event_src, 32);
SAVED_SIZE(struct qhca_eq, 256, eq, 2);
SAVED_SIZE(struct qhca_cq, 328, cq, 2);
SAVED_SIZE(struct qhca_xrcd, 32, xrcd, 1);
SAVED_SIZE(struct qhca_srq, 472, srq, 1);
SAVED_SIZE(struct qhca_mr, 224, mr, 1);
SAVED_SIZE(struct qhca_mw, 264, mw, 1);
SAVED_SIZE(struct qhca_swqe, 80, qp, 3);
SAVED_SIZE(struct qhca_resp, 32, qp, 3);
SAVED_SIZE(struct qhca_xport, 2048, qp, 3);
SAVED_SIZE(struct qhca_qp, 752, qp, 3);
SAVED_SIZE_OF_MANY(struct qhca_eth_q, 1336);
SAVED_SIZE(struct qhca_tag, 104, srq, 1);
SAVED_SIZE(struct qhca_tm, 248, srq, 1);
SAVED_SIZE(struct qhca_tm_job, 48, qp, 3);
SAVED_SIZE(struct qhca_tm_qp, 3120, qp, 3);
SAVED_SIZE_OF_MANY(struct qhca, 1184);
SAVED_SIZE_OF_MANY(struct qhca_memory, 200);
SAVED_SIZE_OF_MANY(struct qhca_queues, 824);
SAVED_SIZE_OF_MANY(struct qhca_xport_dev, 85696);
SAVED_SIZE_OF_MANY(struct qhca_ethernet, 150952);
SAVED_SIZE_OF_MANY(struct qhca_adapter, 320);

/* ---- configuration and registers ---- */

/* Configuration that must be the same in the source and the destination. */
static void save_config(struct qhca_io *io)
{
    struct qhca_config c = io->e->cfg;
    const struct qhca_config *now = &io->e->cfg;

    qhca_io_bytes(io, c.mac, sizeof(c.mac));
    IO(io, c.num_vectors);
    IO(io, c.max_qp);
    IO(io, c.max_cq);
    IO(io, c.max_srq);
    IO(io, c.max_mr);
    IO(io, c.max_pd);
    IO(io, c.max_eq);
    IO(io, c.max_gid);
    IO(io, c.max_eth_queues);
    IO(io, c.speed);
    IO(io, c.dm_size);
    IO(io, c.super_frames);
    NEED(io, !memcmp(c.mac, now->mac, sizeof(c.mac)),
         "this device has another MAC address (mac)");
    NEED(io, c.num_vectors == now->num_vectors,
         "this device has another number of vectors (vectors)");
    NEED(io, c.max_qp == now->max_qp && c.max_cq == now->max_cq &&
         c.max_srq == now->max_srq && c.max_mr == now->max_mr &&
         c.max_pd == now->max_pd && c.max_eq == now->max_eq &&
         c.max_gid == now->max_gid &&
         c.max_eth_queues == now->max_eth_queues,
         "this device has other limits of objects (max-qp, max-cq, ...)");
    NEED(io, c.speed == now->speed && c.dm_size == now->dm_size,
         "this device has another speed or device memory (speed, dm-size)");
    NEED(io, c.super_frames == now->super_frames,
         "only one of the devices has super-frames");
    if (!io->saving && !io->failed) {
        qhca_reset(io->e);      /* what is not loaded keeps these values */
    }
}

static void save_registers(struct qhca_io *io)
{
    struct qhca *e = io->e;
    uint32_t i, n = QHCA_STAT_COUNT;

    IO(io, e->ad->ctrl);
    IO(io, e->ad->aq_ctrl);
    IO(io, e->ad->db_shift);
    IO(io, e->ad->aq_shift);
    IO(io, e->fatal);
    IO(io, e->ready_flag);
    IO(io, e->link);
    IO(io, e->ad->asq_base);
    IO(io, e->ad->acq_base);
    IO(io, e->ad->asq_prod);
    IO(io, e->ad->asq_cons);
    IO(io, e->ad->latch_read);
    IO(io, e->ad->latch_write);
    IO(io, e->ad->latch_read_off);
    IO(io, e->ad->latch_write_off);
    IO(io, e->mem->page_fault_token);
    NEED(io, !(e->ad->ctrl & ~QHCA_CTRL_ENABLE) &&
         !(e->ad->aq_ctrl & ~QHCA_AQ_CTRL_IRQ), "a register has unknown bits");
    NEED(io, e->fatal <= QHCA_FATAL_INTERNAL, "the fatal state is unknown");
    NEED(io, e->ready_flag ? e->ad->ctrl && qhca_enable_ok(e) :
         !e->ad->ctrl || e->fatal, "it cannot be enabled like this");
    NEED(io, io->failed || !e->ready_flag || e->fatal ||
         e->ad->asq_prod - e->ad->asq_cons <= 1u << e->ad->aq_shift,
         "more commands than the admin queue holds");
    IO(io, n);                  /* counters: an older state has fewer */
    NEED(io, n <= QHCA_STAT_COUNT, "it has more counters than this device");
    for (i = 0; i < n && !io->failed; i++) {
        IO(io, e->stats[i]);
    }
}

/* ---- numbers without objects, GIDs ---- */

/* @place: qhca_io_place() or qhca_io_place_low() */
static void save_number(struct qhca_io *io, struct qhca_idr *t, uint32_t *refs,
                        bool (*place)(struct qhca_io *io, struct qhca_idr *t,
                                      void *obj, uint32_t num))
{
    uint32_t i, n = 0, num;

    for (i = 0; io->saving && i < qhca_idr_end(t); i++) {
        n += t->slot[i] != NULL;
    }
    IO(io, n);
    NEED(io, n <= t->max, "more numbers than there can be");
    for (i = 0, num = 0; i < n && !io->failed; i++, num++) {
        while (io->saving && !t->slot[num]) {
            num++;
        }
        IO(io, num);
        if (!io->saving && num < t->size && place(io, t, &refs[num], num)) {
            refs[num] = 0;
        }
    }
}

static void save_numbers(struct qhca_io *io)
{
    struct qhca *e = io->e;

    qhca_io_numbers(io, &e->mem->uars);
    NEED(io, !e->ready_flag || e->mem->uars.max == qhca_db_pages(e),
         "there are not as many UARs as the doorbell pages allow");
    save_number(io, &e->mem->uars, e->mem->uar_refs, qhca_io_place_low);
    qhca_io_numbers_end(io, &e->mem->uars);
    qhca_io_numbers(io, &e->mem->pds);
    save_number(io, &e->mem->pds, e->mem->pd_refs, qhca_io_place);
    qhca_io_numbers_end(io, &e->mem->pds);
}

static void save_xrcd(struct qhca_io *io, void *obj)
{
    struct qhca_xrcd *x = obj;
    uint32_t num = x ? x->xrcd : 0;

    IO(io, num);
    if (io->saving || io->failed) {
        return;
    }
    x = calloc(1, sizeof(*x));
    if (!NEED(io, x, "out of memory")) {
        return;
    }
    x->xrcd = num;
    qhca_list_init(&x->targets);
    if (!qhca_io_place(io, &io->e->q->xrcds, x, num)) {
        free(x);
    }
}

static void save_xrcds(struct qhca_io *io)
{
    qhca_io_numbers(io, &io->e->q->xrcds);
    qhca_io_each(io, &io->e->q->xrcds, NULL, save_xrcd);
    qhca_io_numbers_end(io, &io->e->q->xrcds);
}

static void save_gids(struct qhca_io *io)
{
    struct qhca *e = io->e;
    uint32_t i;
    bool is;

    for (i = 0; i < e->cfg.max_gid && !io->failed; i++) {
        is = e->xd->gids[i].type != QHCA_GID_NONE;
        IO(io, is);
        if (is) {
            qhca_io_about(io, "GID", i);
            qhca_io_bytes(io, &e->xd->gids[i], sizeof(e->xd->gids[i]));
            NEED(io, !qhca_gid_bad(&e->xd->gids[i]), "it is not allowed");
        }
    }
    if (!io->saving) {
        if (io->failed) {
            memset(e->xd->gids, 0, e->cfg.max_gid * sizeof(*e->xd->gids));
        }
        qhca_gid_rehash(e);
    }
}

/* ---- events waiting for room in an EQ ---- */

enum source { SRC_PORT, SRC_QP, SRC_CQ, SRC_COMP, SRC_SRQ, SRC_ETH_SQ,
              SRC_ETH_RQ, SRCS };

/* The event source of object @num of this kind, or NULL. */
static struct qhca_event_src *save_source(struct qhca *e, unsigned kind,
                                          uint32_t num)
{
    struct qhca_eth_q *q;
    struct qhca_srq *s;
    struct qhca_qp *qp;
    struct qhca_wq *wq;
    struct qhca_cq *cq;

    switch (kind) {
    case SRC_PORT:
        return num ? NULL : &e->q->port_ev;
    case SRC_QP:
        qp = qhca_qp_get(e, num);
        wq = qhca_wq_get(e, num);
        return qp ? &qp->ev : wq ? &wq->ev : NULL;
    case SRC_CQ:
    case SRC_COMP:
        cq = qhca_idr_get(&e->q->cqs, num);
        return cq ? kind == SRC_CQ ? &cq->ev : &cq->comp : NULL;
    case SRC_SRQ:
        s = qhca_idr_get(&e->q->srqs, num);
        return s ? &s->ev : NULL;
    case SRC_ETH_SQ:
    case SRC_ETH_RQ:
        q = qhca_idr_get(kind == SRC_ETH_SQ ? &e->eth->eth_sqs :
                                              &e->eth->eth_rqs,
                         num);
        return q ? &q->ev : NULL;
    default:
        return NULL;
    }
}

static uint8_t kind_of(struct qhca *e, const struct qhca_event_src *src)
{
    uint8_t kind = 0;

    while (kind < SRCS && save_source(e, kind, src->obj) != src) {
        kind++;
    }
    return kind;
}

static void save_event(struct qhca_io *io, struct qhca_eq *eq,
                       struct qhca_event_src *src)
{
    uint8_t kind = src ? kind_of(io->e, src) : 0;
    uint8_t syndrome = src ? src->syndrome : 0;
    uint32_t num = src ? src->obj : 0, pending = src ? src->pending : 0;
    const struct qhca_cq *cq;

    IO(io, kind);
    IO(io, num);
    IO(io, pending);
    IO(io, syndrome);
    if (io->saving || io->failed) {
        return;
    }
    src = save_source(io->e, kind, num);
    if (!NEED(io, src && qhca_list_empty(&src->link),
              "a pending event has no object, or is there twice") ||
        !NEED(io, pending && !(pending & ~qhca_event_bits(kind == SRC_COMP)),
              "a pending event is unknown")) {
        return;
    }
    cq = qhca_idr_get(&io->e->q->cqs, num);
    if (NEED(io, kind == SRC_COMP ? cq->eq == eq : eq->eqn == QHCA_EQN_ASYNC,
             "an event is pending at the wrong EQ")) {
        src->pending = pending;
        src->syndrome = syndrome;
        qhca_list_add_tail(&eq->pending, &src->link);
    }
}

static void eq_events(struct qhca_io *io, void *obj)
{
    struct qhca_eq *eq = obj;
    uint32_t eqn = eq ? eq->eqn : 0, n = 0, i;
    struct qhca_list *l;

    IO(io, eqn);
    if (!io->saving) {
        eq = qhca_idr_get(&io->e->q->eqs, eqn);
        NEED(io, eq && qhca_list_empty(&eq->pending),
             "events without an EQ, or there twice");
    }
    for (l = io->saving ? eq->pending.next : NULL; l && l != &eq->pending;
         l = l->next) {
        n++;
    }
    IO(io, n);
    if (io->saving) {
        for (l = eq->pending.next; l != &eq->pending; l = l->next) {
            save_event(io, eq, qhca_container(l, struct qhca_event_src, link));
        }
        return;
    }
    for (i = 0; i < n && !io->failed; i++) {
        save_event(io, eq, NULL);
    }
}

/* ---- lists of objects with work to do ---- */

struct listing {
    uint32_t (*num)(struct qhca_list *l);
    struct qhca_list *(*link)(struct qhca *e, uint32_t num);
};

static uint32_t qp_num(struct qhca_list *l)
{
    return qhca_container(l, struct qhca_qp, ready)->qpn;
}

static struct qhca_list *qp_link(struct qhca *e, uint32_t num)
{
    struct qhca_qp *qp = qhca_qp_get(e, num);

    return qp ? &qp->ready : NULL;
}

static uint32_t timer_num(struct qhca_list *l)
{
    return qhca_container(l, struct qhca_xport, timer)->qp->qpn;
}

static struct qhca_list *timer_link(struct qhca *e, uint32_t num)
{
    struct qhca_qp *qp = qhca_qp_get(e, num);

    /* An RSS QP has no transport. */
    return qp && qp->type != QHCA_QPT_RSS ? &qp->xp->timer : NULL;
}

static uint32_t tm_num(struct qhca_list *l)
{
    return qhca_container(l, struct qhca_tm, work)->srq->srqn;
}

static struct qhca_list *tm_link(struct qhca *e, uint32_t num)
{
    struct qhca_srq *srq = qhca_idr_get(&e->q->srqs, num);

    return srq && srq->tm ? &srq->tm->work : NULL;
}

static uint32_t eq_num(struct qhca_list *l)
{
    return qhca_container(l, struct qhca_eq, work)->eqn;
}

static struct qhca_list *eq_link(struct qhca *e, uint32_t num)
{
    struct qhca_eq *eq = qhca_idr_get(&e->q->eqs, num);

    return eq ? &eq->work : NULL;
}

static const struct listing by_qp = { qp_num, qp_link };
static const struct listing by_timer = { timer_num, timer_link };
static const struct listing by_eth = { qhca_turn_num, qhca_turn_link };
static const struct listing by_tm = { tm_num, tm_link };
static const struct listing by_eq = { eq_num, eq_link };

static void save_list(struct qhca_io *io, struct qhca_list *head,
                      const struct listing *by)
{
    struct qhca_list *l = head->next;
    uint32_t n = 0, num = 0, i;

    for (; io->saving && l != head; l = l->next) {
        n++;
    }
    IO(io, n);
    l = head->next;
    for (i = 0; i < n && !io->failed; i++) {
        if (io->saving) {
            num = by->num(l);
            l = l->next;
        }
        IO(io, num);
        /* WQs of older states: those that flush are known already. */
        if (!io->saving && by == &by_qp && qhca_wq_get(io->e, num)) {
            continue;
        }
        if (!io->saving) {
            l = by->link(io->e, num);
            if (NEED(io, l && qhca_list_empty(l),
                     "the work list has a wrong object, or one twice")) {
                qhca_list_add_tail(head, l);
            }
        }
    }
}

/* Timers of one duration, the earliest first; one too late only fires late. */
static void save_timers(struct qhca_io *io, unsigned cls)
{
    struct qhca_list *head = &io->e->xd->timers[cls], *l;
    struct qhca_qp *qp;

    save_list(io, head, &by_timer);
    for (l = head->next; l != head; l = l->next) {
        qp = qhca_container(l, struct qhca_xport, timer)->qp;
        IO(io, qp->xp->deadline);
        if (!io->saving) {
            qp->xp->timer_class = (uint8_t)cls;
            NEED(io, qp->xp->deadline, "a timer has no deadline");
            NEED(io, qhca_qp_reliable(qp) && (qp->state == QHCA_QPS_RTS ||
                                              qp->state == QHCA_QPS_SQD),
                 "a timer runs on a QP that needs none");
            qp->xp->deadline |= !qp->xp->deadline;        /* it is in a list */
            io->e->xd->timer_mask |= UINT64_C(1) << cls;
        }
    }
}

/* A QP waits for an RNR timer if and only if that timer runs. */
static void saved_check_waiting(struct qhca_io *io)
{
    const struct qhca_qp *qp;
    uint32_t n;

    for (n = 0; !io->saving && n < qhca_idr_end(&io->e->q->qps); n++) {
        qp = qhca_qp_get(io->e, n);
        if (qp && qp->type != QHCA_QPT_RSS) {
            NEED(io, (qp->xp->req_state == QHCA_REQ_WAIT_RNR) ==
                 (qp->xp->deadline && qp->xp->timer_class >= QHCA_TIMER_RNR),
                 "a QP has an invalid wait");
        }
    }
}

static void save_loopback(struct qhca_io *io)
{
    struct qhca_xport_dev *xd = io->e->xd;
    uint32_t n = xd->loop_head - xd->loop_tail, i;
    struct qhca_loop_frame *f;

    IO(io, n);
    if (!NEED(io, n <= QHCA_LOOP_SLOTS, "too many loopback frames")) {
        return;
    }
    if (!io->saving) {
        xd->loop_tail = 0;
        xd->loop_head = n;
    }
    for (i = xd->loop_tail; i != xd->loop_head && !io->failed; i++) {
        f = &xd->loop[i % QHCA_LOOP_SLOTS];
        IO(io, f->len);
        if (NEED(io, f->len >= QHCA_ETH_HLEN && f->len <= sizeof(f->data),
                 "a loopback frame has a wrong length")) {
            qhca_io_bytes(io, f->data, f->len);
        }
    }
}

static void save_last_acks(struct qhca_io *io)
{
    struct qhca_xport_dev *xd = io->e->xd;
    uint32_t n = xd->last_ack_head - xd->last_ack_tail, i;
    struct qhca_last_ack *a;

    IO(io, n);
    if (!NEED(io, n <= QHCA_LAST_ACKS, "too many last acknowledges")) {
        return;
    }
    if (!io->saving) {
        xd->last_ack_tail = 0;
        xd->last_ack_head = n;
    }
    for (i = xd->last_ack_tail; i != xd->last_ack_head && !io->failed; i++) {
        a = &xd->last_ack[i % QHCA_LAST_ACKS];
        IO(io, a->len);
        if (NEED(io, a->len >= QHCA_ETH_HLEN && a->len <= sizeof(a->data),
                 "a last acknowledge is too long or too short")) {
            qhca_io_bytes(io, a->data, a->len);
        }
    }
}

static void save_events(struct qhca_io *io)
{
    qhca_io_each(io, &io->e->q->eqs, NULL, eq_events);
}

static void save_work(struct qhca_io *io)
{
    struct qhca *e = io->e;
    unsigned i;

    save_list(io, &e->q->ready, &by_qp);
    save_list(io, &e->q->blocked, &by_qp);
    save_list(io, &e->eth->eth_ready, &by_eth);
    save_list(io, &e->q->tm_work, &by_tm);
    save_list(io, &e->q->eq_work, &by_eq);
    for (i = 0; i < QHCA_TIMER_CLASSES; i++) {
        save_timers(io, i);
    }
    saved_check_waiting(io);
    save_loopback(io);
    save_last_acks(io);
    IO(io, e->kicked);
    IO(io, e->ad->timer_set);
}

/* ---- the whole ---- */

/* Check the whole: nothing exists before the adapter is enabled. */
static void saved_check_whole(struct qhca_io *io)
{
    struct qhca *e = io->e;

    NEED(io, qhca_shapers_loaded_ok(e),
         "a shaper has an invalid wait");
    NEED(io, e->ready_flag ||
         !(e->mem->uars.used | e->mem->pds.used | e->mem->mrs.used |
           e->q->xrcds.used | e->q->eqs.used | e->q->cqs.used |
           e->q->srqs.used | e->q->qps.used | e->eth->eth_sqs.used |
           e->eth->eth_rqs.used | e->eth->shapers.used |
           (e->xd->last_ack_head - e->xd->last_ack_tail)),
         "it has objects and was never enabled");
    NEED(io, !e->ready_flag || e->mem->uars.slot[0], "UAR 0 does not exist");
}

static void save_qps(struct qhca_io *io)
{
    qhca_io_qps(io);
    qhca_io_wqs_of_qps(io);
}

/* In this order: an object comes after those it refers to. */
static const struct qhca_section sections[] = {
    QHCA_SECTION(config, save_config),
    QHCA_SECTION(regs, save_registers),
    QHCA_SECTION(numbers, save_numbers),
    QHCA_SECTION(gid, save_gids),
    QHCA_SECTION(xrcd, save_xrcds),
    QHCA_SECTION(eq, qhca_io_eqs),
    QHCA_SECTION(cq, qhca_io_cqs),
    QHCA_SECTION(admin, qhca_io_admin),
    QHCA_SECTION(srq, qhca_io_srqs),
    QHCA_SECTION(mr, qhca_io_mrs),
    QHCA_SECTION(qp, save_qps),
    QHCA_SECTION(wq, qhca_io_wqs),
    QHCA_SECTION(mw, qhca_io_mws),
    QHCA_SECTION(ethq, qhca_io_eth_qs),
    QHCA_SECTION(shaper, qhca_io_shapers),
    QHCA_SECTION(rqt, qhca_io_rqts),
    QHCA_SECTION(rss, qhca_io_rss_qps),
    QHCA_SECTION(port, qhca_io_port),
    QHCA_SECTION(mcg, qhca_io_mcgs),
    QHCA_SECTION(flow, qhca_io_flows),
    QHCA_SECTION(events, save_events),
    QHCA_SECTION(work, save_work),
    QHCA_SECTION(gro, qhca_io_gro),
    QHCA_SECTION(end, saved_check_whole),
};

#define SECTIONS (sizeof(sections) / sizeof(sections[0]))

bool qhca_save(struct qhca *e, void **buf, size_t *len)
{
    struct qhca_io io = { .e = e, .saving = true };

    /* Links are not saved: make the QPs that wait for one run. */
    qhca_memlinks_wake(e);
    qhca_memlinks_woken(e);
    qhca_io_sections(&io, sections, SECTIONS);
    if (io.failed) {
        free(io.out);
        return false;
    }
    *buf = io.out;
    *len = io.len;
    return true;
}

/* A fault that holds the link down is not part of a state. */
static void load_link(struct qhca *e)
{
    if (e->faults && !e->hooks->set_link(e, e->link) && e->link) {
        e->link = false;
        qhca_async_event_loaded(e, &e->q->port_ev, QHCA_EV_PORT);
    }
}

/* Ask again for the calls that were due before the adapter was saved. */
static void load_owe(struct qhca *e)
{
    uint64_t deadline = e->ad->timer_set;
    bool kicked = e->kicked || e->xd->last_ack_head != e->xd->last_ack_tail;

    /* Assume that the wire is free; the next send will find out. */
    qhca_qps_unblock(e);
    if (qhca_eqs_loaded(e)) {
        kicked = true;
    }
    e->kicked = false;
    if (deadline != UINT64_MAX) {
        e->ops.set_timer(e->opaque, deadline);
    }
    if (kicked) {
        qhca_kick(e);
    }
    qhca_finish_merging(e);
}

bool qhca_load(struct qhca *e, const void *buf, size_t len, char *why,
               size_t size)
{
    struct qhca_io io = { .e = e, .in = buf, .len = len };

    if (e->hooks) {
        e->hooks->forget_stop(e);
    }
    qhca_io_sections(&io, sections, SECTIONS);
    NEED(&io, io.pos == io.len, "there is more than a state");
    if (!io.failed) {
        /* Free the remains of resets now: no call may be due for them. */
        qhca_remains_free(e, UINT_MAX);
        load_link(e);
        load_owe(e);
        return true;
    }
    if (io.num) {
        snprintf(why, size, "%s %u: %s", io.what, (unsigned)io.num, io.why);
    } else {
        snprintf(why, size, "%s: %s", io.what, io.why);
    }
    qhca_reset(e);
    load_link(e);
    return false;
}
