/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Event queues.
 *
 * An event that finds its EQ full stays pending at its object: one bit per
 * event type, and the object is on a list of the EQ.  No event is lost, nothing
 * is allocated, and a guest that never reads its EQ costs nothing.
 *
 * With QHCA_EQ_F_RECORD software stores its consumer index in memory instead of
 * ringing.  Each side stores its entry or index, executes a full barrier, and
 * then reads what the other has stored, so that neither misses anything: see
 * the flag in qhca-hw.h.
 */
#include <stdlib.h>

#include "queues/queues.h"

#define EQ_BATCH            64

/*
 * The event types an object can have, in the order in which pending ones are
 * written.
 */
static const uint8_t event_kind[] = {
    QHCA_EV_CQ, /* must be first: see qhca_event_bits() */
    QHCA_EV_COMM_EST, QHCA_EV_SQ_DRAINED, QHCA_EV_SRQ_LIMIT,
    QHCA_EV_CQ_ERR, QHCA_EV_SRQ_ERR, QHCA_EV_QP_REQ_ERR,
    QHCA_EV_QP_ACCESS_ERR, QHCA_EV_QP_FATAL, QHCA_EV_LAST_WQE,
    QHCA_EV_ETH_SQ_ERR, QHCA_EV_ETH_RQ_ERR, QHCA_EV_PORT,
    QHCA_EV_DEVICE_FATAL, QHCA_EV_PAGE_FAULT,
};

uint32_t qhca_event_bits(bool comp)
{
    uint32_t all = (1u << sizeof(event_kind)) - 1;

    return comp ? 1u : all & ~1u;
}

static bool eq_has_syndrome(uint8_t type)
{
    switch (type) {
    case QHCA_EV_CQ_ERR:
    case QHCA_EV_SRQ_ERR:
    case QHCA_EV_QP_REQ_ERR:
    case QHCA_EV_QP_ACCESS_ERR:
    case QHCA_EV_QP_FATAL:
    case QHCA_EV_ETH_SQ_ERR:
    case QHCA_EV_ETH_RQ_ERR:
        return true;
    default:
        return false;
    }
}

static uint32_t event_arg(struct qhca *e, struct qhca_event_src *src,
                          uint8_t type)
{
    if (type == QHCA_EV_CQ) {
        return qhca_container(src, struct qhca_cq, comp)->prod;
    }
    return type == QHCA_EV_PORT ? e->link : 0;
}

static bool eq_full(const struct qhca_eq *eq)
{
    return eq->prod - eq->cons >= 1u << eq->shift;
}

/* Software says it has consumed what is before @cons; false: impossible. */
static bool eq_consumed(struct qhca *e, struct qhca_eq *eq, uint32_t cons)
{
    if (cons - eq->cons > eq->prod - eq->cons) {
        qhca_guest_error(e, QHCA_STAT_DB_BAD_INDEX, eq->eqn,
                         "EQ consumer index out of range");
        return false;
    }
    eq->cons = cons;
    return true;
}

/* Its memory cannot be accessed. */
static void eq_fail(struct qhca *e, struct qhca_eq *eq)
{
    eq->failed = true;
    qhca_fatal(e, QHCA_FATAL_EQ);
}

/* False: the record cannot be read.  An impossible index is ignored. */
static bool eq_read_record(struct qhca *e, struct qhca_eq *eq)
{
    uint32_t cons;

    if (!qhca_dbrec_read(e, QHCA_DMA_EQE, eq->eqn, eq->dbrec, &cons)) {
        eq_fail(e, eq);
        return false;
    }
    eq_consumed(e, eq, cons);
    return true;
}

/* Ask software to ring when it has consumed entries, or no longer. */
static bool eq_ask(struct qhca *e, struct qhca_eq *eq, bool notify)
{
    if (!qhca_dbrec_notify(e, QHCA_DMA_EQE, eq->eqn, eq->dbrec, notify)) {
        eq_fail(e, eq);
        return false;
    }
    eq->notify = notify;
    return true;
}

/*
 * Is there room for an event?  If not, a doorbell or the end of the stall will
 * announce it.  Once software has been asked to ring, the record is not read
 * again: software then rings after storing each new index.
 */
static bool eq_has_room(struct qhca *e, struct qhca_eq *eq)
{
    if (eq->stalled) {
        return false;
    }
    if (!eq_full(eq)) {
        return true;
    }
    if (!(eq->flags & QHCA_EQ_F_RECORD) || eq->notify ||
        !eq_read_record(e, eq)) {
        return false;
    }
    if (!eq_full(eq)) {
        return true;
    }
    if (!eq_ask(e, eq, true)) {
        return false;
    }
    /* Either the index is there now, or software will see the flag. */
    e->ops.dma_fence(e->opaque);
    return eq_read_record(e, eq) && !eq_full(eq);
}

static void eq_interrupt(struct qhca *e, struct qhca_eq *eq)
{
    eq->armed = false;
    qhca_msix(e, eq->vector);
}

/* Write one EQE; the caller has checked that there is room. */
static void eq_write(struct qhca *e, struct qhca_eq *eq,
                     struct qhca_event_src *src, uint8_t type)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_EQE, .num = eq->eqn, .peer = src->obj, .a = type,
        .index = eq->prod,
    };
    struct qhca_eqe eqe = {
        .type = type,
        .syndrome = eq_has_syndrome(type) ? src->syndrome : 0,
        .obj = qhca_le32(src->obj),
        .arg = qhca_le32(event_arg(e, src, type)),
        .phase = !((eq->prod >> eq->shift) & 1),
    };
    uint64_t off = eq->prod & ((1u << eq->shift) - 1), addr, run;

    off *= sizeof(eqe);
    if (qhca_buf_table_walk(e, &eq->buf, off, eq->eqn, &addr, &run) ||
        !qhca_dma_write(e, QHCA_DMA_EQE, eq->eqn, addr, &eqe, 8) ||
        !qhca_dma_store64(e, QHCA_DMA_EQE, eq->eqn, addr + 8,
                          qhca_get_le64((uint8_t *)&eqe + 8))) {
        eq_fail(e, eq);
        return;
    }
    eq->prod++;
    qhca_count(e, QHCA_STAT_EQES);
    if (qhca_tracing(e)) {
        qhca_trace_emit(e, &t);
    }
    if (eq->flags & QHCA_EQ_F_RECORD) {
        /* Either software's index is there now, or it will see the entry. */
        e->ops.dma_fence(e->opaque);
        if (eq_read_record(e, eq) && eq->prod - eq->cons == 1) {
            eq_interrupt(e, eq);
        }
    } else if (eq->armed) {
        eq_interrupt(e, eq);
    }
}

void qhca_event_init(struct qhca_event_src *src, uint32_t obj)
{
    qhca_list_init(&src->link);
    src->pending = 0;
    src->obj = obj;
    src->syndrome = 0;
}

void qhca_event_forget(struct qhca_event_src *src)
{
    qhca_list_del(&src->link);
    src->pending = 0;
}

/* The event is written later. */
static void event_wait(struct qhca_eq *eq, struct qhca_event_src *src,
                       uint8_t type)
{
    unsigned i;

    for (i = 0; i < sizeof(event_kind); i++) {
        if (event_kind[i] == type) {
            src->pending |= 1u << i;
        }
    }
    if (qhca_list_empty(&src->link)) {
        qhca_list_add_tail(&eq->pending, &src->link);
    }
}

void qhca_event(struct qhca *e, struct qhca_eq *eq,
                struct qhca_event_src *src, uint8_t type, uint8_t syndrome)
{
    if (eq_has_syndrome(type)) {
        src->syndrome = syndrome;
    }
    if (qhca_faulty(e, QHCA_FLT_AT_EVENT)) {
        e->hooks->stall_event(e, eq, src->obj);
    }
    /*
     * Pending events go first, to keep the order.  In the fatal state they are
     * not written any more, so its report does not wait for them.
     */
    if ((qhca_list_empty(&eq->pending) || type == QHCA_EV_DEVICE_FATAL) &&
        eq_has_room(e, eq)) {
        eq_write(e, eq, src, type);
        return;
    }
    event_wait(eq, src, type);
}

void qhca_async_event(struct qhca *e, struct qhca_event_src *src,
                      uint8_t type, uint8_t syndrome)
{
    struct qhca_eq *eq = qhca_idr_get(&e->q->eqs, QHCA_EQN_ASYNC);

    /* The asynchronous EQ itself may be missing or broken. */
    if (eq && !eq->failed) {
        qhca_event(e, eq, src, type, syndrome);
    }
}

void qhca_async_event_loaded(struct qhca *e, struct qhca_event_src *src,
                             uint8_t type)
{
    struct qhca_eq *eq = qhca_idr_get(&e->q->eqs, QHCA_EQN_ASYNC);

    if (eq && qhca_active(e)) {
        event_wait(eq, src, type);
    }
}

/* Write pending events while there is room; true: batch used up, more left. */
static bool eq_drain(struct qhca *e, struct qhca_eq *eq)
{
    struct qhca_event_src *src;
    unsigned n, kind;

    for (n = 0; !qhca_list_empty(&eq->pending) && eq_has_room(e, eq); n++) {
        if (n == EQ_BATCH) {
            return true;
        }
        src = qhca_container(eq->pending.next, struct qhca_event_src, link);
        kind = (unsigned)__builtin_ctz(src->pending);
        src->pending &= ~(1u << kind);
        if (!src->pending) {
            qhca_list_del(&src->link);
        }
        eq_write(e, eq, src, event_kind[kind]);
        if (e->fatal) {
            return false;
        }
    }
    if (eq->notify && qhca_list_empty(&eq->pending)) {
        eq_ask(e, eq, false);
    }
    return false;
}

void qhca_eq_run(struct qhca *e)
{
    struct qhca_eq *eq;

    if (qhca_list_empty(&e->q->eq_work)) {
        return;
    }
    eq = qhca_container(e->q->eq_work.next, struct qhca_eq, work);
    qhca_list_del(&eq->work);
    if (eq_drain(e, eq)) {
        qhca_list_add_tail(&e->q->eq_work, &eq->work);
    }
}

void qhca_eqs_go_on(struct qhca *e, uint32_t rule)
{
    struct qhca_eq *eq;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(&e->q->eqs); n++) {
        eq = qhca_idr_get(&e->q->eqs, n);
        if (eq && eq->stalled == rule) {
            eq->stalled = 0;
            if (qhca_list_empty(&eq->work)) {
                qhca_list_add_tail(&e->q->eq_work, &eq->work);
            }
        }
    }
}

bool qhca_eqs_loaded(struct qhca *e)
{
    bool any = false;
    struct qhca_eq *eq;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(&e->q->eqs); n++) {
        eq = qhca_idr_get(&e->q->eqs, n);
        if (eq && !qhca_list_empty(&eq->pending) &&
            qhca_list_empty(&eq->work) && !eq->notify &&
            (eq->flags & QHCA_EQ_F_RECORD || !eq_full(eq))) {
            qhca_list_add_tail(&e->q->eq_work, &eq->work);
            any = true;
        }
    }
    return any;
}

void qhca_eq_doorbell(struct qhca *e, struct qhca_eq *eq, uint32_t cons,
                      bool arm)
{
    bool record = eq->flags & QHCA_EQ_F_RECORD, waits;

    if (record ? !eq_read_record(e, eq) : !eq_consumed(e, eq, cons)) {
        return;
    }
    waits = eq->prod != eq->cons;
    if (eq_drain(e, eq) && qhca_list_empty(&eq->work)) {
        qhca_list_add_tail(&e->q->eq_work, &eq->work);
    }
    if (e->fatal || !arm) {
        return;
    }
    if (record ? waits : eq->prod != eq->cons) {
        eq_interrupt(e, eq);
    } else if (!record) {
        /* with a record, the next event raises the vector in any case */
        eq->armed = true;
    }
}

static void eq_forget_first(struct qhca_eq *eq)
{
    qhca_event_forget(qhca_container(eq->pending.next, struct qhca_event_src,
                                     link));
}

static void eq_free(struct qhca_eq *eq)
{
    /* Pending events can no longer be delivered. */
    while (!qhca_list_empty(&eq->pending)) {
        eq_forget_first(eq);
    }
    qhca_list_del(&eq->work);
    free(eq);
}

static uint8_t eq_check_create(struct qhca *e, struct qhca_cmd *c,
                               const struct qhca_eqc *in)
{
    if (in->shift < 1 || in->shift > QHCA_MAX_EQ_SHIFT) {
        return qhca_bad(c, offsetof(struct qhca_eqc, shift));
    }
    if (in->flags & ~QHCA_EQ_F_RECORD) {
        return qhca_bad(c, offsetof(struct qhca_eqc, flags));
    }
    if (in->flags & QHCA_EQ_F_RECORD ? qhca_le64(in->dbrec) & 7 : in->dbrec) {
        return qhca_bad(c, offsetof(struct qhca_eqc, dbrec));
    }
    if (qhca_le16(in->vector) >= e->cfg.num_vectors) {
        return qhca_bad(c, offsetof(struct qhca_eqc, vector));
    }
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_create_eq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_eqc *in = c->in;
    uint8_t st = eq_check_create(e, c, in);
    struct qhca_eq *eq;
    bool ok;

    if (st) {
        return st;
    }
    eq = calloc(1, sizeof(*eq));
    if (!eq) {
        return QHCA_ST_NO_RESOURCES;
    }
    qhca_list_init(&eq->pending);
    qhca_list_init(&eq->work);
    eq->shift = in->shift;
    eq->flags = in->flags;
    eq->dbrec = qhca_le64(in->dbrec);
    eq->vector = qhca_le16(in->vector);
    if (qhca_buf_table_init(&eq->buf, &in->buf,
                            sizeof(struct qhca_eqe) << eq->shift, true)) {
        free(eq);
        return QHCA_ST_BAD_TABLE;
    }
    eq->buf.kind = QHCA_DMA_EQE;
    if (!qhca_idr_get(&e->q->eqs, QHCA_EQN_ASYNC)) {
        eq->eqn = QHCA_EQN_ASYNC;
        ok = qhca_idr_add_at(&e->q->eqs, eq, eq->eqn);
    } else {
        ok = qhca_idr_add(&e->q->eqs, eq, &eq->eqn);
    }
    if (!ok) {
        free(eq);
        return QHCA_ST_NO_RESOURCES;
    }
    c->obj = eq->eqn;
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_destroy_eq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_eq *eq = qhca_idr_get(&e->q->eqs, c->obj);

    if (!eq) {
        return QHCA_ST_BAD_OBJ;
    }
    if (eq->refs) {
        return QHCA_ST_BUSY;
    }
    /* Each object of the adapter may have an event pending here. */
    while (!qhca_list_empty(&eq->pending)) {
        if (qhca_command_spent(e)) {
            return QHCA_ST_AGAIN;
        }
        qhca_cost(e, 1);
        eq_forget_first(eq);
    }
    qhca_idr_del(&e->q->eqs, c->obj);
    eq_free(eq);
    return QHCA_ST_OK;
}

/* Fill in the fields that CREATE_EQ set. */
static void eq_describe(const struct qhca_eq *eq, struct qhca_eqc *out)
{
    memset(out, 0, sizeof(*out));
    qhca_buf_table_describe(&eq->buf, &out->buf);
    out->eqn = qhca_le32(eq->eqn);
    out->shift = eq->shift;
    out->flags = eq->flags;
    out->dbrec = qhca_le64(eq->dbrec);
    out->vector = qhca_le16(eq->vector);
}

bool qhca_eq_valid(struct qhca *e, const struct qhca_eq *eq)
{
    struct qhca_cmd c = { 0 };
    struct qhca_eqc in;

    eq_describe(eq, &in);
    return eq_check_create(e, &c, &in) == QHCA_ST_OK;
}

uint8_t qhca_cmd_query_eq(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_eq *eq = qhca_idr_get(&e->q->eqs, c->obj);
    struct qhca_eqc *out = c->out;

    if (!eq) {
        return QHCA_ST_BAD_OBJ;
    }
    eq_describe(eq, out);
    out->prod = qhca_le32(eq->prod);
    out->cons = qhca_le32(eq->cons);
    out->armed = eq->armed;
    return QHCA_ST_OK;
}

bool qhca_eq_discard(struct qhca *e, uint32_t num)
{
    struct qhca_eq *eq = qhca_idr_del(&e->q->eqs, num);

    if (eq) {
        eq_free(eq);
    }
    return eq;
}

void qhca_fatal(struct qhca *e, uint8_t reason)
{
    if (e->fatal) {
        return;
    }
    e->fatal = reason;
    qhca_guest_error(e, QHCA_STAT_AQ_ERRORS, reason, "fatal: reset needed");
    qhca_async_event(e, &e->q->port_ev, QHCA_EV_DEVICE_FATAL, 0);
}
