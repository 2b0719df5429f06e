/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: breaks and steps.  When the engine stops, so does the machine; when the
 * machine is resumed, by whatever command, so is the engine.
 */
#include "qemu/osdep.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "qapi/qapi-commands-misc.h"
#include "qapi/qapi-commands-qhca.h"
#include "qapi/qapi-events-qhca.h"
#include "exec/gdbstub.h"
#include "hw/core/cpu.h"
#include "system/cpus.h"
#include "system/runstate.h"
#include "system/replay.h"
#include "engine/observe/breakpoint.h"
#include "qhca-inspect.h"

/* Frames kept while the engine is stopped and the machine not yet. */
#define QHCA_LATER_MAX      1024

/* The enumeration of the schema must match that of the engine. */
QEMU_BUILD_BUG_ON((int)QHCA_STOP_ON_PACKET != QHCA_ON_PACKET);
QEMU_BUILD_BUG_ON((int)QHCA_STOP_ON_INJECTED != QHCA_ON_INJECTED);
QEMU_BUILD_BUG_ON((int)QHCA_STOP_ON__MAX != QHCA_ONS);

/* ---- stopping and resuming ---- */

static QhcaLook *qhca_inspect_wrap(QhcaState *s, QhcaJson *j)
{
    QhcaLook *look = g_new0(QhcaLook, 1);

    look->device = object_get_canonical_path(OBJECT(s));
    look->time = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    look->look = j->root;
    return look;
}

static QhcaLook *qhca_stop_look(QhcaState *s, bool trail)
{
    QhcaJson j;
    struct qhca_emit em = qhca_json_emit(&j);

    qhca_break_show(s->engine, trail, &em);
    return qhca_inspect_wrap(s, &j);
}

/*
 * With TCG a store to a device is the last instruction of its block, with KVM
 * it is the reason for the vCPU's exit: so the vCPU stops right after it.
 */
static void qhca_stop_cpu(CPUState *cpu)
{
    if (cpu) {
        cpu->stop = true;
        cpu_exit(cpu);
    }
}

/* In the main loop, so no command comes between the event and the stop. */
static void qhca_stop_bh(void *opaque)
{
    QhcaState *s = opaque;
    QhcaLook *look;

    if (!s->stopped) {
        return;                 /* reset in the meantime */
    }
    if (!runstate_is_running()) {
        return;                 /* stopped for another reason: reported later */
    }
    s->told = true;
    look = qhca_stop_look(s, false);
    qapi_event_send_qhca_stop(look);
    qapi_free_QhcaLook(look);
    if (s->owner) {
        gdb_set_stop_cpu(s->owner);
    }
    vm_stop(RUN_STATE_DEBUG);
}

/*
 * The adapter continues, since this run must not differ from the recorded one,
 * and the machine stops after the store, if there is one.
 */
static void qhca_stop_replayed(QhcaState *s)
{
    QhcaLook *look;

    if (replay_mode == REPLAY_MODE_PLAY && replay_running_debug()) {
        /* gdb searches backwards for the last stop: report this one. */
        replay_breakpoint();
        qhca_break_gone_on(s->engine);
        return;
    }
    look = qhca_stop_look(s, false);
    qapi_event_send_qhca_stop(look);
    qapi_free_QhcaLook(look);
    if (current_cpu) {
        gdb_set_stop_cpu(current_cpu);
    }
    qemu_system_vmstop_request_prepare();
    qemu_system_vmstop_request(RUN_STATE_DEBUG);
    cpu_stop_current();
}

/* Not, for example, in a QMP command that lets packets go. */
bool qhca_op_can_stop(void *opaque)
{
    QhcaState *s = opaque;

    return !s->gone && (qhca_replayed() || (qemu_in_coroutine() &&
                                            qemu_coroutine_self() == s->co));
}

void qhca_op_stop(void *opaque)
{
    QhcaState *s = opaque;

    if (qhca_replayed()) {
        qhca_stop_replayed(s);
        return;
    }
    s->stopped = true;
    s->told = false;
    s->go_on = false;
    qhca_stop_cpu(s->owner);
    qemu_bh_schedule(s->stop_bh);
    qemu_coroutine_yield();
}

static void coroutine_fn qhca_stop_entry(void *opaque)
{
    QhcaState *s = opaque;
    QhcaCall *c = g_queue_pop_head(s->later);

    qhca_do_call(s, c);
    g_free(c);
}

/* Run the call until it is over or stopped. */
static void qhca_stop_enter(QhcaState *s)
{
    s->stopped = false;
    qemu_coroutine_enter(s->co);
    if (!s->stopped) {
        s->co = NULL;
        if (s->owner) {
            object_unref(OBJECT(s->owner));
            s->owner = NULL;
        }
        qhca_leave(s);
    }
}

/* The copy includes the frame. */
static QhcaCall *qhca_call_copy(const QhcaCall *c)
{
    size_t size = c->data ? c->size : 0;
    QhcaCall *copy = g_malloc(sizeof(*copy) + size);

    *copy = *c;
    if (size) {
        copy->data = memcpy(copy + 1, c->data, size);
    }
    if (copy->cpu) {
        object_ref(OBJECT(copy->cpu));
    }
    return copy;
}

/* Undo qhca_stop_cpu(), unless the machine is stopped anyway. */
static void qhca_stop_let(CPUState *cpu)
{
    if (cpu && runstate_is_running()) {
        cpu_resume(cpu);
    }
}

static void qhca_call_free(QhcaCall *c)
{
    if (c->cpu) {
        object_unref(OBJECT(c->cpu));
    }
    g_free(c);
}

void qhca_stop_call(QhcaState *s, const QhcaCall *c)
{
    QhcaCall *copy = qhca_call_copy(c);

    s->owner = copy->cpu;
    s->co = qemu_coroutine_create(qhca_stop_entry, s);
    g_queue_push_head(s->later, copy);
    qhca_stop_enter(s);
}

void qhca_stop_later(QhcaState *s, const QhcaCall *c)
{
    if (c->kind == QHCA_CALL_RX &&
        g_queue_get_length(s->later) >= QHCA_LATER_MAX) {
        return;                 /* dropped, as on the wire */
    }
    g_queue_push_tail(s->later, qhca_call_copy(c));
    qhca_stop_cpu(c->cpu);
}

bool qhca_stop_ready(QhcaState *s)
{
    QhcaCall *c;

    if (!s->go_on) {
        return !s->stopped;
    }
    s->go_on = false;
    object_ref(OBJECT(s));
    qhca_stop_enter(s);
    while (s->engine && !s->stopped && !g_queue_is_empty(s->later)) {
        c = g_queue_pop_head(s->later);
        qhca_call(s, c);
        qhca_call_free(c);
    }
    if (!s->stopped && s->bh) {
        qemu_bh_schedule(s->bh);
    }
    object_unref(OBJECT(s));
    return !s->stopped;
}

/*
 * Runs in the thread of a vCPU whose call is stopped or queued, before the
 * guest's next instruction: the effects of the store come first.  If the call
 * stops once more, the vCPU is still right after its store.
 */
static void qhca_stop_work(CPUState *cpu, run_on_cpu_data data)
{
    QhcaState *s = data.host_ptr;

    if (s->stopped && runstate_is_running() && !qhca_stop_ready(s)) {
        qhca_stop_cpu(cpu);
    }
    object_unref(OBJECT(s));
}

static void qhca_stop_wake(QhcaState *s, CPUState *cpu)
{
    if (cpu) {
        object_ref(OBJECT(s));
        async_run_on_cpu(cpu, qhca_stop_work, RUN_ON_CPU_HOST_PTR(s));
    }
}

static void qhca_stop_wake_later(gpointer data, gpointer opaque)
{
    QhcaCall *c = data;

    qhca_stop_wake(opaque, c->cpu);
}

void qhca_stop_vm_change(QhcaState *s, bool running)
{
    if (qhca_replayed()) {
        if (running && s->engine && !s->in_engine) {
            qhca_break_gone_on(s->engine);
        }
        return;
    }
    if (!running || !s->stopped) {
        s->go_on = false;
        return;
    }
    s->go_on = s->told;
    qhca_stop_wake(s, s->owner);
    g_queue_foreach(s->later, qhca_stop_wake_later, s);
    if (!s->told) {
        qemu_bh_schedule(s->stop_bh);
    }
}

void qhca_stop_abandon(QhcaState *s)
{
    QhcaCall *c;

    /* A queued call, which is being made, may be the reason. */
    while (s->later && (c = g_queue_pop_head(s->later))) {
        qhca_stop_let(c->cpu);
        qhca_call_free(c);
    }
    if (!s->stopped) {
        return;
    }
    qhca_stop_let(s->owner);
    s->go_on = false;
    s->reset_wanted = true;     /* no interrupts either */
    qhca_break_release(s->engine, true);
    qhca_stop_enter(s);
    if (s->engine) {
        qhca_break_release(s->engine, false);
        qhca_later(s);          /* for what waited for the call's end */
    }
}

void qhca_stop_take(QhcaState *s)
{
    qhca_break_take(s->engine);
}

bool qhca_stop_wanted(const QhcaState *s)
{
    return qhca_debugging(s->engine);
}

void qhca_stop_init(QhcaState *s)
{
    if (qhca_replayed()) {
        qhca_break_watch_only(s->engine);
    }
    s->later = g_queue_new();
    s->stop_bh = qemu_bh_new(qhca_stop_bh, s);
}

void qhca_stop_exit(QhcaState *s)
{
    qhca_stop_abandon(s);
    qemu_bh_delete(s->stop_bh);
    s->stop_bh = NULL;
    g_queue_free(s->later);
    s->later = NULL;
}

/* ---- commands ---- */

static QhcaBreakInfo *qhca_break_info(const struct qhca_break *b)
{
    QhcaBreakInfo *info = g_new0(QhcaBreakInfo, 1);
    QhcaCondition *c = g_new0(QhcaCondition, 1);

    c->on = b->on;
    c->has_number = b->fields & QHCA_BRK_NUMBER;
    c->number = b->number;
    c->has_peer = b->fields & QHCA_BRK_PEER;
    c->peer = b->peer;
    c->has_index = b->fields & QHCA_BRK_INDEX;
    c->index = b->index;
    c->has_psn = b->fields & QHCA_BRK_PSN;
    c->psn = b->psn;
    c->has_code = b->fields & QHCA_BRK_CODE;
    c->code = b->code;
    c->has_wr_id = b->fields & QHCA_BRK_WR_ID;
    c->wr_id = b->wr_id;
    c->has_syndrome = b->fields & QHCA_BRK_SYNDROME;
    c->syndrome = b->syndrome;
    c->has_ignore = b->ignore;
    c->ignore = b->ignore;
    c->has_once = b->once;
    c->once = b->once;
    info->id = b->id;
    info->hits = b->hits;
    info->condition = c;
    return info;
}

QhcaBreakInfo *qmp_qhca_break_add(const char *device, QhcaCondition *c,
                                  Error **errp)
{
    struct qhca_break b = {
        .on = c->on,
        .fields = (c->has_number ? QHCA_BRK_NUMBER : 0) |
                  (c->has_peer ? QHCA_BRK_PEER : 0) |
                  (c->has_index ? QHCA_BRK_INDEX : 0) |
                  (c->has_psn ? QHCA_BRK_PSN : 0) |
                  (c->has_code ? QHCA_BRK_CODE : 0) |
                  (c->has_wr_id ? QHCA_BRK_WR_ID : 0) |
                  (c->has_syndrome ? QHCA_BRK_SYNDROME : 0),
        .number = c->number,
        .peer = c->peer,
        .index = c->index,
        .psn = c->psn,
        .code = c->code,
        .wr_id = c->wr_id,
        .syndrome = c->syndrome,
        .ignore = c->has_ignore ? c->ignore : 0,
        .once = c->has_once && c->once,
    };
    QhcaState *s = qhca_find(device, errp);
    QhcaBreakInfo *info = NULL;
    const char *wrong;

    if (!s) {
        return NULL;
    }
    wrong = qhca_break_add(s->engine, &b);
    if (wrong) {
        error_setg(errp, "%s", wrong);
    } else {
        info = qhca_break_info(&b);
    }
    qhca_find_end(s);
    return info;
}

void qmp_qhca_break_remove(const char *device, bool has_id, uint32_t id,
                           Error **errp)
{
    QhcaState *s = qhca_find(device, errp);

    if (!s) {
        return;
    }
    if ((has_id && !id) || !qhca_break_remove(s->engine, has_id ? id : 0)) {
        error_setg(errp, "There is no break %u", id);
    }
    qhca_find_end(s);
}

QhcaBreakInfoList *qmp_qhca_break_list(const char *device, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    QhcaBreakInfoList *list = NULL, **tail = &list;
    const struct qhca_break *b;

    if (!s) {
        return NULL;
    }
    for (b = qhca_break_next(s->engine, 0); b;
         b = qhca_break_next(s->engine, b->id)) {
        QAPI_LIST_APPEND(tail, qhca_break_info(b));
    }
    qhca_find_end(s);
    return list;
}

void qmp_qhca_step(const char *device, bool has_on, QhcaStopOn on,
                   bool has_count, uint64_t count, Error **errp)
{
    ERRP_GUARD();
    QhcaState *s = qhca_find(device, errp);
    const char *wrong;

    if (!s) {
        return;
    }
    wrong = qhca_break_step(s->engine, has_on ? on : QHCA_STOP_ON_WQE,
                            has_count ? count : 1);
    qhca_find_end(s);
    if (wrong) {
        error_setg(errp, "%s", wrong);
    } else if (!runstate_is_running()) {
        qmp_cont(errp);
        if (*errp) {
            qmp_qhca_step_cancel(device, NULL);
        }
    }
}

void qmp_qhca_step_cancel(const char *device, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);

    if (s) {
        qhca_break_step_cancel(s->engine);
        qhca_find_end(s);
    }
}

QhcaLook *qmp_qhca_query_names(const char *device, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    QhcaLook *look;
    QhcaJson j;
    struct qhca_emit em = qhca_json_emit(&j);

    if (!s) {
        return NULL;
    }
    qhca_break_names(&em);
    look = qhca_inspect_wrap(s, &j);
    qhca_find_end(s);
    return look;
}

QhcaLook *qmp_qhca_query_stop(const char *device, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    QhcaLook *look;

    if (!s) {
        return NULL;
    }
    look = qhca_stop_look(s, true);
    qhca_find_end(s);
    return look;
}
