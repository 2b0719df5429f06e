/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Break conditions and steps, which are compared with trace events. */
#include <stdlib.h>

#include "observe/breakpoint_internal.h"
#include "observe/decode.h"

/*
 * The kind of each trace event, and the field that conditions call the code.
 * Numbers, indices and PSNs have fields of their own.
 */
static const struct kind {
    uint8_t on;                 /* enum qhca_stop_on, + 1; 0: none */
    uint8_t fields;             /* QHCA_BRK_* it has */
    enum { NONE, IN_A, IN_B, IN_ADDR } code;
} kinds[QHCA_TR_KINDS] = {
    [QHCA_TR_REG_WRITE] = { QHCA_ON_REGISTER + 1, QHCA_BRK_CODE, IN_ADDR },
    [QHCA_TR_MARKER] = { QHCA_ON_MARKER + 1, QHCA_BRK_CODE, IN_A },
    [QHCA_TR_COMMAND] = {
        QHCA_ON_COMMAND + 1,
        QHCA_BRK_NUMBER | QHCA_BRK_CODE | QHCA_BRK_SYNDROME, IN_A },
    [QHCA_TR_DOORBELL] = {
        QHCA_ON_DOORBELL + 1, QHCA_BRK_NUMBER | QHCA_BRK_PEER |
        QHCA_BRK_INDEX | QHCA_BRK_CODE, IN_ADDR },
    [QHCA_TR_GUEST_ERROR] = {
        QHCA_ON_GUEST_ERROR + 1, QHCA_BRK_NUMBER | QHCA_BRK_CODE, IN_A },
    [QHCA_TR_QP_STATE] = {
        QHCA_ON_STATE + 1,
        QHCA_BRK_NUMBER | QHCA_BRK_CODE | QHCA_BRK_SYNDROME, IN_B },
    [QHCA_TR_WALK_HOP] = {
        QHCA_ON_HOP + 1, QHCA_BRK_NUMBER | QHCA_BRK_CODE, IN_B },
    [QHCA_TR_WALK] = { QHCA_ON_WALK + 1, QHCA_BRK_NUMBER, NONE },
    [QHCA_TR_WQE] = {
        QHCA_ON_WQE + 1, QHCA_BRK_NUMBER | QHCA_BRK_INDEX | QHCA_BRK_CODE |
        QHCA_BRK_WR_ID | QHCA_BRK_SYNDROME, IN_A },
    [QHCA_TR_RECV_WQE] = {
        QHCA_ON_RECV_WQE + 1,
        QHCA_BRK_NUMBER | QHCA_BRK_INDEX | QHCA_BRK_WR_ID, NONE },
    [QHCA_TR_TX] = {
        QHCA_ON_PACKET_OUT + 1, QHCA_BRK_NUMBER | QHCA_BRK_PEER |
        QHCA_BRK_PSN | QHCA_BRK_CODE | QHCA_BRK_SYNDROME, IN_A },
    [QHCA_TR_RX] = {
        QHCA_ON_PACKET_IN + 1, QHCA_BRK_NUMBER | QHCA_BRK_PEER |
        QHCA_BRK_PSN | QHCA_BRK_CODE | QHCA_BRK_SYNDROME, IN_A },
    [QHCA_TR_RX_DROP] = {
        QHCA_ON_DROP + 1, QHCA_BRK_NUMBER | QHCA_BRK_PSN | QHCA_BRK_CODE,
        IN_A },
    [QHCA_TR_DATA] = {
        QHCA_ON_DATA + 1, QHCA_BRK_NUMBER | QHCA_BRK_CODE, IN_B },
    [QHCA_TR_RETRANSMIT] = {
        QHCA_ON_RETRANSMIT + 1,
        QHCA_BRK_NUMBER | QHCA_BRK_PSN | QHCA_BRK_CODE, IN_A },
    [QHCA_TR_TIMER] = {
        QHCA_ON_TIMER + 1, QHCA_BRK_NUMBER | QHCA_BRK_CODE, IN_B },
    [QHCA_TR_CQE] = {
        QHCA_ON_CQE + 1, QHCA_BRK_NUMBER | QHCA_BRK_PEER | QHCA_BRK_INDEX |
        QHCA_BRK_CODE | QHCA_BRK_WR_ID | QHCA_BRK_SYNDROME, IN_A },
    [QHCA_TR_EQE] = {
        QHCA_ON_EVENT + 1, QHCA_BRK_NUMBER | QHCA_BRK_PEER |
        QHCA_BRK_INDEX | QHCA_BRK_CODE, IN_A },
    [QHCA_TR_PAGE_FAULT] = {
        QHCA_ON_WALK_ERROR + 1, QHCA_BRK_NUMBER | QHCA_BRK_PEER, NONE },
    [QHCA_TR_RESUME] = {
        QHCA_ON_RESUME + 1, QHCA_BRK_NUMBER | QHCA_BRK_PEER, NONE },
    [QHCA_TR_MSIX] = { QHCA_ON_INTERRUPT + 1, QHCA_BRK_NUMBER, NONE },
    [QHCA_TR_ETH_TX] = {
        QHCA_ON_FRAME + 1, QHCA_BRK_NUMBER | QHCA_BRK_INDEX, NONE },
    [QHCA_TR_ETH_RX] = {
        QHCA_ON_FRAME + 1, QHCA_BRK_NUMBER | QHCA_BRK_INDEX, NONE },
    [QHCA_TR_FAULT] = {
        QHCA_ON_INJECTED + 1, QHCA_BRK_NUMBER | QHCA_BRK_PEER |
        QHCA_BRK_INDEX | QHCA_BRK_PSN | QHCA_BRK_CODE, IN_A },
};

static const char *const on_name[QHCA_ONS] = {
    [QHCA_ON_DOORBELL] = "doorbell",
    [QHCA_ON_WQE] = "wqe",
    [QHCA_ON_RECV_WQE] = "recv-wqe",
    [QHCA_ON_PACKET_OUT] = "packet-out",
    [QHCA_ON_PACKET_IN] = "packet-in",
    [QHCA_ON_PACKET] = "packet",
    [QHCA_ON_DROP] = "drop",
    [QHCA_ON_CQE] = "cqe",
    [QHCA_ON_EVENT] = "event",
    [QHCA_ON_STATE] = "state",
    [QHCA_ON_WALK_ERROR] = "walk-error",
    [QHCA_ON_GUEST_ERROR] = "guest-error",
    [QHCA_ON_WALK] = "walk",
    [QHCA_ON_COMMAND] = "command",
    [QHCA_ON_RETRANSMIT] = "retransmit",
    [QHCA_ON_TIMER] = "timer",
    [QHCA_ON_INTERRUPT] = "interrupt",
    [QHCA_ON_FRAME] = "frame",
    [QHCA_ON_HOP] = "hop",
    [QHCA_ON_DATA] = "data",
    [QHCA_ON_RESUME] = "resume",
    [QHCA_ON_REGISTER] = "register",
    [QHCA_ON_MARKER] = "marker",
    [QHCA_ON_INJECTED] = "injected",
};

const char *qhca_on_name(enum qhca_stop_on on)
{
    return on < QHCA_ONS ? on_name[on] : NULL;
}

/* ---- on and off ---- */

static struct qhca_breaks *break_get(struct qhca *e)
{
    if (!e->dbg) {
        e->dbg = calloc(1, sizeof(*e->dbg));
        if (e->dbg) {
            e->dbg->out = e->tracing;
            qhca_observe(e);
        }
    }
    return e->dbg;
}

/* Watch events only while a condition, step or stop is pending. */
static void break_update(struct qhca *e)
{
    struct qhca_breaks *d = e->dbg;

    if (!e->debugging) {
        d->out = e->tracing;
    }
    e->debugging = d->breaks || d->step_left || d->due || e->halted;
    e->tracing = d->out || e->debugging;
}

/* ---- comparing ---- */

/* Is @t an event of the kind @on? */
static bool break_is_on(const struct qhca_trace *t, unsigned on)
{
    unsigned is = kinds[t->kind].on;

    if (!is) {
        return false;
    }
    is--;
    if (on == QHCA_ON_PACKET) {
        return is == QHCA_ON_PACKET_OUT || is == QHCA_ON_PACKET_IN;
    }
    if (on == QHCA_ON_WALK_ERROR && t->kind == QHCA_TR_GUEST_ERROR) {
        return t->a == QHCA_STAT_TABLE_ERRORS;
    }
    return is == on;
}

static uint64_t code_of(const struct qhca_trace *t)
{
    switch (kinds[t->kind].code) {
    case IN_A:
        return t->a;
    case IN_B:
        return t->b;
    default:                    /* IN_ADDR: with NONE there is no such field */
        return t->addr;
    }
}

static uint64_t peer_of(const struct qhca_trace *t)
{
    return t->kind == QHCA_TR_DOORBELL ? t->a : t->peer;
}

static uint64_t syndrome_of(const struct qhca_trace *t)
{
    return t->kind == QHCA_TR_COMMAND ? t->b : t->syndrome;
}

static bool debug_matches(const struct qhca_break *b,
                          const struct qhca_trace *t)
{
    return break_is_on(t, b->on) && !(b->fields & ~kinds[t->kind].fields) &&
           (!(b->fields & QHCA_BRK_NUMBER) || b->number == t->num) &&
           (!(b->fields & QHCA_BRK_PEER) || b->peer == peer_of(t)) &&
           (!(b->fields & QHCA_BRK_INDEX) || b->index == t->index) &&
           (!(b->fields & QHCA_BRK_PSN) || b->psn == t->psn) &&
           (!(b->fields & QHCA_BRK_CODE) || b->code == code_of(t)) &&
           (!(b->fields & QHCA_BRK_WR_ID) || b->wr_id == t->b) &&
           (!(b->fields & QHCA_BRK_SYNDROME) ||
            b->syndrome == syndrome_of(t));
}

/* Report the stop and continue. */
static void break_watch(struct qhca *e)
{
    struct qhca_breaks *d = e->dbg;

    d->reported = true;
    d->step_left = 0;
    e->ops.stop(e->opaque);
    if (d->by_break && d->by.once) {
        qhca_break_remove(e, d->by.id);
    }
}

/*
 * Stop until the developer resumes the adapter.  If this call cannot be
 * stopped, break and step wait for the next event.
 */
static void break_wait(struct qhca *e)
{
    struct qhca_breaks *d = e->dbg;

    d->due = false;
    if (d->released || !e->ops.stop || !e->ops.can_stop(e->opaque)) {
        return;
    }
    if (e->watch_only) {
        break_watch(e);
        return;
    }
    e->halted = true;
    d->step_left = 0;
    if (d->by_break && d->by.once) {
        qhca_break_remove(e, d->by.id);
    }
    e->ops.stop(e->opaque);
    e->halted = false;
    d->trail_next = 0;
    break_update(e);
}

/*
 * A stop at a doorbell waits until the QP's new head is set, a stop at a packet
 * sent until it is counted; neither waits past another event.  A stop while a
 * register is read waits until its value is known.
 */
static bool break_waits(const struct qhca_trace *t)
{
    return t->kind == QHCA_TR_DOORBELL || t->kind == QHCA_TR_TX;
}

/* Record the event @t and stop, now or soon. */
static void break_stop(struct qhca *e, const struct qhca_trace *t,
                       const struct qhca_break *b)
{
    struct qhca_breaks *d = e->dbg;

    if (d->reported || d->due) {
        return;                 /* it is stopping already */
    }
    d->why = *t;
    d->by_break = b != NULL;
    d->on = b ? b->on : d->step_on;
    if (b) {
        d->by = *b;
    }
    if (e->in_read || break_waits(t)) {
        d->due = true;
    } else {
        break_wait(e);
    }
}

void qhca_break_due(struct qhca *e)
{
    if (e->dbg->due && !e->in_read) {
        break_wait(e);
    }
}

void qhca_break_take(struct qhca *e)
{
    qhca_break_point(e);
}

static void watch_event(struct qhca *e, const struct qhca_trace *t)
{
    struct qhca_breaks *d = e->dbg;
    const struct qhca_break *by = NULL;
    bool step;
    unsigned i;

    if (e->halted) {
        return;                 /* a register is being read meanwhile */
    }
    qhca_break_due(e);
    if (t->again) {
        return;                 /* a retry: the wire was busy */
    }
    d->trail[d->trail_next++ % QHCA_TRAIL] = *t;
    for (i = 0; i < d->breaks; i++) {
        struct qhca_break *b = &d->brk[i];

        if (debug_matches(b, t) && ++b->hits > b->ignore && !by) {
            by = b;
        }
    }
    /* The last step is taken by the stop. */
    step = d->step_left && break_is_on(t, d->step_on);
    if (step && d->step_left > 1) {
        d->step_left--;
        step = false;
    }
    if (by || step) {
        break_stop(e, t, by);
    }
}

bool qhca_break_event(struct qhca *e, const struct qhca_trace *t)
{
    watch_event(e, t);
    return e->dbg->out;
}

/* ---- breaks ---- */

unsigned qhca_on_fields(enum qhca_stop_on on)
{
    unsigned i, has = 0;

    for (i = 0; i < QHCA_TR_KINDS; i++) {
        struct qhca_trace t = {
            .kind = i, .a = QHCA_STAT_TABLE_ERRORS,
        };

        if (break_is_on(&t, on)) {
            has |= kinds[i].fields;
        }
    }
    return has;
}

const char *qhca_break_add(struct qhca *e, struct qhca_break *b)
{
    struct qhca_breaks *d = break_get(e);

    if (!d) {
        return "out of memory";
    }
    if (b->on >= QHCA_ONS) {
        return "no such kind of event";
    }
    if (b->fields & ~qhca_on_fields(b->on)) {
        return "events of this kind have no such field";
    }
    if (d->breaks == QHCA_BREAKS_MAX) {
        return "too many breaks: remove one";
    }
    b->id = ++d->last_id;
    b->hits = 0;
    d->brk[d->breaks++] = *b;
    break_update(e);
    return NULL;
}

static void remove_at(struct qhca_breaks *d, unsigned i)
{
    d->breaks--;
    memmove(&d->brk[i], &d->brk[i + 1], (d->breaks - i) * sizeof(d->brk[0]));
}

bool qhca_break_remove(struct qhca *e, uint32_t id)
{
    struct qhca_breaks *d = e->dbg;
    bool found = !id;
    unsigned i;

    for (i = 0; d && i < d->breaks; i++) {
        if (!id || d->brk[i].id == id) {
            remove_at(d, i--);
            found = true;
        }
    }
    if (d) {
        break_update(e);
    }
    return found;
}

const struct qhca_break *qhca_break_next(struct qhca *e, uint32_t id)
{
    struct qhca_breaks *d = e->dbg;
    unsigned i;

    for (i = 0; d && i < d->breaks; i++) {
        if (d->brk[i].id > id) {
            return &d->brk[i];
        }
    }
    return NULL;
}

void qhca_break_tracing(struct qhca *e, bool on)
{
    e->dbg->out = on;
    e->tracing = on || e->debugging;
}

void qhca_break_free(struct qhca *e)
{
    free(e->dbg);
    e->dbg = NULL;
}

/* ---- stopping and resuming ---- */

bool qhca_break_stopped(const struct qhca *e)
{
    return e->halted;
}

bool qhca_debugging(const struct qhca *e)
{
    return e->debugging;
}

void qhca_break_watch_only(struct qhca *e)
{
    e->watch_only = true;
}

void qhca_break_gone_on(struct qhca *e)
{
    if (e->dbg && e->dbg->reported) {
        e->dbg->reported = false;
        e->dbg->trail_next = 0;
        break_update(e);
    }
}

void qhca_break_forget_stop(struct qhca *e)
{
    if (e->dbg) {
        e->dbg->due = false;
        qhca_break_gone_on(e);
    }
}

void qhca_break_release(struct qhca *e, bool on)
{
    if (e->dbg) {
        e->dbg->released = on;
        e->dbg->due = false;
    }
}

const char *qhca_break_step(struct qhca *e, enum qhca_stop_on on,
                            uint64_t count)
{
    struct qhca_breaks *d = break_get(e);

    if (!d) {
        return "out of memory";
    }
    if (on >= QHCA_ONS) {
        return "no such kind of event";
    }
    if (!count) {
        return "the number of steps must be at least 1";
    }
    if (!e->halted) {
        d->trail_next = 0;
    }
    d->step_on = on;
    d->step_left = count;
    break_update(e);
    return NULL;
}

void qhca_break_step_cancel(struct qhca *e)
{
    if (e->dbg) {
        e->dbg->step_left = 0;
        break_update(e);
    }
}

/* ---- showing ---- */

void qhca_break_show(struct qhca *e, bool trail, const struct qhca_emit *em)
{
    struct qhca_breaks *d = e->dbg;
    bool stopped = e->halted || (d && d->reported);
    uint32_t i;

    qhca_emit_begin(em, NULL);
    qhca_emit_flag(em, "stopped", stopped);
    if (stopped) {
        qhca_emit_text(em, "why", d->by_break ? "break" : "step");
        if (d->by_break) {
            qhca_emit_dec(em, "id", d->by.id);
            qhca_emit_dec(em, "hits", d->by.hits);
        }
        qhca_emit_text(em, "on", on_name[d->on]);
        qhca_emit_begin(em, "event");
        qhca_emit_trace(em, &d->why);
        qhca_emit_end(em);
    } else if (d && d->step_left) {
        qhca_emit_text(em, "stepping", on_name[d->step_on]);
        qhca_emit_dec(em, "steps_left", d->step_left);
    }
    if (trail && d) {
        i = d->trail_next > QHCA_TRAIL ? d->trail_next - QHCA_TRAIL : 0;
        qhca_emit_list(em, "trail");
        for (; i < d->trail_next; i++) {
            qhca_emit_begin(em, NULL);
            qhca_emit_trace(em, &d->trail[i % QHCA_TRAIL]);
            qhca_emit_end(em);
        }
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
}
