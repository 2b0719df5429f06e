/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: breaks and steps.  When the engine stops, so does the machine; when the
 * machine goes on, by whatever command, so does the engine.
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
#include "engine/debug.h"
#include "qhca-debug.h"

/* Frames kept while the engine stands and the machine does not yet. */
#define QHCA_HELD_MAX       1024

/* The schema's enumeration is the engine's. */
QEMU_BUILD_BUG_ON((int)QHCA_STOP_ON_PACKET != QHCA_ON_PACKET);
QEMU_BUILD_BUG_ON((int)QHCA_STOP_ON_FRAME != QHCA_ON_FRAME);
QEMU_BUILD_BUG_ON((int)QHCA_STOP_ON__MAX != QHCA_ONS);

struct QhcaHeld {
    size_t len;
    uint8_t data[];
};

/* ---- stopping and going on ---- */

static QhcaLook *qhca_look_wrap(QhcaState *s, QhcaJson *j)
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

    qhca_debug_show(s->engine, trail, &em);
    return qhca_look_wrap(s, &j);
}

/*
 * A store to a device is the last instruction of its block in TCG, and in KVM
 * what the vCPU came out for: so it stops right behind it.  Within an MMIO
 * access or not, the main loop does the rest.
 */
void qhca_op_stop(void *opaque)
{
    QhcaState *s = opaque;
    QhcaLook *look;

    if (s->gone) {
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

bool qhca_stop_hold(QhcaState *s, const uint8_t *buf, size_t size)
{
    struct QhcaHeld *h;

    if (!qhca_debug_stopped(s->engine) && !s->held) {
        return false;
    }
    if (!s->held) {
        s->held = g_queue_new();
    }
    if (g_queue_get_length(s->held) < QHCA_HELD_MAX) {
        h = g_malloc(sizeof(*h) + size);
        h->len = size;
        memcpy(h->data, buf, size);
        g_queue_push_tail(s->held, h);
    }
    return true;
}

void qhca_stop_forget(QhcaState *s)
{
    if (s->held) {
        g_queue_free_full(s->held, g_free);
        s->held = NULL;
    }
}

void qhca_stop_resume(QhcaState *s)
{
    struct QhcaHeld *h;

    if (!s->engine) {
        return;                 /* unplugged */
    }
    if (qhca_debug_stopped(s->engine) && qhca_enter(s)) {
        qhca_debug_continue(s->engine);
        qhca_leave(s);
    }
    while (s->engine && s->held && !qhca_debug_stopped(s->engine) &&
           qhca_enter(s)) {
        h = g_queue_pop_head(s->held);
        qhca_receive(s->engine, h->data, h->len);
        g_free(h);
        if (g_queue_is_empty(s->held)) {
            qhca_stop_forget(s);
        }
        qhca_leave(s);
    }
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
    qhca_leave(s);
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
    qhca_leave(s);
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
    qhca_leave(s);
    return list;
}

void qmp_qhca_step(const char *device, bool has_on, QhcaStopOn on,
                   bool has_count, uint64_t count, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);
    const char *wrong;

    if (!s) {
        return;
    }
    wrong = qhca_debug_step(s->engine, has_on ? on : QHCA_STOP_ON_WQE,
                            has_count ? count : 1);
    qhca_leave(s);
    if (wrong) {
        error_setg(errp, "%s", wrong);
    } else if (!runstate_is_running()) {
        qmp_cont(errp);
    }
}

void qmp_qhca_step_cancel(const char *device, Error **errp)
{
    QhcaState *s = qhca_find(device, errp);

    if (s) {
        qhca_debug_step_cancel(s->engine);
        qhca_leave(s);
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
    qhca_debug_names(&em);
    look = qhca_look_wrap(s, &j);
    qhca_leave(s);
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
    qhca_leave(s);
    return look;
}
