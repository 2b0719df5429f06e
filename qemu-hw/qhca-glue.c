/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: calls into the engine, and the services it needs: interrupts, time,
 * deferred work.
 *
 * The engine is not re-entrant, but a guest can direct its effects back at the
 * device: a vIOMMU fault or an MSI-X message may be a write to the
 * configuration space of this very function, and so reset or unplug it.  So
 * within a call of the engine no interrupt is sent, and the engine is neither
 * reset nor freed; nor is an interrupt sent while the net core calls us.
 */
#include "qemu/osdep.h"
#include "qemu/bitmap.h"
#include "qemu/main-loop.h"
#include "qapi/error.h"
#include "hw/pci/msix.h"
#include "system/replay.h"
#include "qhca.h"

bool qhca_replayed(void)
{
    return replay_mode != REPLAY_MODE_NONE;
}

void qhca_later(QhcaState *s)
{
    if (qhca_replayed()) {
        if (!timer_pending(s->soon)) {
            timer_mod_ns(s->soon, qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
        }
    } else {
        qemu_bh_schedule(s->bh);
    }
}

bool qhca_enter(QhcaState *s)
{
    if (unlikely(s->in_engine || !s->engine)) {
        return false;
    }
    s->in_engine = true;
    qhca_set_tracing(s->engine, qhca_trace_wanted(s));
    return true;
}

/*
 * Send pending interrupts.  Any of them may come back as a write, so after each
 * one the device may have been reset or be gone.
 */
static void qhca_notify(QhcaState *s)
{
    unsigned long n = s->cfg.num_vectors;
    unsigned long v;

    if (s->notifying) {
        return;
    }
    object_ref(OBJECT(s));
    s->notifying = true;
    s->any_raised = false;
    for (v = find_first_bit(s->raised, n); v < n;
         v = find_next_bit(s->raised, n, v + 1)) {
        clear_bit(v, s->raised);
        msix_notify(PCI_DEVICE(s), v);
        if (!s->engine) {
            break;
        }
    }
    s->notifying = false;
    if (s->engine && s->any_raised) {
        /* Raised by a message that came back: avoid an endless loop. */
        qhca_later(s);
    }
    object_unref(OBJECT(s));
}

/* Most objects of an unplugged adapter that are destroyed at a time. */
#define QHCA_FREE_BUDGET    256

/* The engine of an adapter that is gone. */
typedef struct QhcaLeaving {
    struct qhca *engine;
    QEMUBH *bh;
} QhcaLeaving;

static void qhca_leaving_bh(void *opaque)
{
    QhcaLeaving *l = opaque;
    QhcaCallTime begin = qhca_trace_call_begins();
    bool gone = qhca_free_part(l->engine, QHCA_FREE_BUDGET);

    qhca_trace_call_done(TYPE_QHCA, "free", &begin);
    if (gone) {
        qemu_bh_delete(l->bh);
        g_free(l);
    } else {
        qemu_bh_schedule(l->bh);
    }
}

/*
 * A guest can unplug an adapter with hundreds of thousands of objects: destroy
 * them little by little, without the device.
 */
static void qhca_engine_free(QhcaState *s)
{
    QhcaLeaving *l = g_new(QhcaLeaving, 1);

    l->engine = s->engine;
    l->bh = qemu_bh_new(qhca_leaving_bh, l);
    qhca_leaving_bh(l);
    s->engine = NULL;
    g_free(s->raised);
    s->raised = NULL;
    s->any_raised = false;
}

void qhca_leave(QhcaState *s)
{
    if (unlikely(s->gone)) {
        s->in_engine = false;
        s->gone = false;
        qhca_engine_free(s);
        object_unref(OBJECT(s));
        return;
    }
    if (unlikely(s->reset_wanted)) {
        QhcaCallTime begin = qhca_trace_call_begins();

        s->reset_wanted = false;
        qhca_reset(s->engine);
        qhca_trace_call_ended(s, "reset", &begin);
        bitmap_zero(s->raised, s->cfg.num_vectors);
        s->any_raised = false;
    }
    if (unlikely(s->revoke_wanted)) {
        s->revoke_wanted = false;
        qhca_memlinks_revoke(s->engine);
    }
    qhca_memlink_update(s);
    s->in_engine = false;
    if (s->any_raised) {
        /*
         * In record and replay only after the store that caused them is
         * complete: a debugger must stop at the store, not in the interrupt
         * handler.  A stopped machine gets them when it runs again.
         */
        if (s->in_net || qhca_replayed() || !runstate_is_running()) {
            qhca_later(s);
        } else {
            qhca_notify(s);
        }
    }
}

void qhca_do_call(QhcaState *s, const QhcaCall *c)
{
    static const char *const names[] = {
        [QHCA_CALL_REG] = "register", [QHCA_CALL_DB] = "doorbell",
        [QHCA_CALL_RX] = "receive", [QHCA_CALL_RUN] = "run",
        [QHCA_CALL_TIMER] = "timer", [QHCA_CALL_LINK] = "link",
        [QHCA_CALL_TX_READY] = "tx-ready", [QHCA_CALL_BELL] = "bell",
        [QHCA_CALL_READ] = "read",
    };
    QhcaCallTime begin = qhca_trace_call_begins();

    switch (c->kind) {
    case QHCA_CALL_REG:
        qhca_reg_write(s->engine, c->addr, c->val, c->size);
        break;
    case QHCA_CALL_READ:
        *c->result = qhca_reg_read(s->engine, c->addr, c->size);
        qhca_stop_take(s);      /* only now: the vCPU has its value */
        break;
    case QHCA_CALL_DB:
        qhca_db_write(s->engine, c->addr, c->val, c->size);
        break;
    case QHCA_CALL_RX:
        if (s->record) {
            qhca_record_frame(s, false, c->data, c->size,
                              qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL));
        }
        qhca_receive(s->engine, c->data, c->size);
        if (s->run_at_once) {
            qhca_run_now(s);
        }
        break;
    case QHCA_CALL_RUN:
        qhca_run(s->engine);
        break;
    case QHCA_CALL_TIMER:
        qhca_timer(s->engine);
        break;
    case QHCA_CALL_LINK:
        qhca_set_link(s->engine, c->val);
        break;
    case QHCA_CALL_TX_READY:
        qhca_tx_ready(s->engine);
        break;
    case QHCA_CALL_BELL:
        qhca_memlink_bell(s->engine, c->val);
        if (s->run_at_once) {
            qhca_run_now(s);
        }
        break;
    }
    qhca_trace_call_ended(s, names[c->kind], &begin);
}

void qhca_call(QhcaState *s, const QhcaCall *c)
{
    if (unlikely(s->stopped) && !qhca_stop_ready(s)) {
        qhca_stop_later(s, c);
    } else if (qhca_enter(s)) {
        if (likely(!qhca_stop_wanted(s) || qhca_replayed())) {
            qhca_do_call(s, c);
            qhca_leave(s);
        } else {
            qhca_stop_call(s, c);
        }
    }
}

static void qhca_op_msix(void *opaque, unsigned vector)
{
    QhcaState *s = opaque;

    if (!s->gone && vector < s->cfg.num_vectors) {
        set_bit(vector, s->raised);
        s->any_raised = true;
    }
}

static uint64_t qhca_op_clock(void *opaque)
{
    return qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
}

/*
 * Deadlines mostly move away (each ACK restarts a timer), so the QEMU timer is
 * only set when the new deadline is earlier.  If it fires too early, it is set
 * again.
 */
static void qhca_op_set_timer(void *opaque, uint64_t deadline)
{
    QhcaState *s = opaque;

    s->deadline = deadline;
    if (deadline < s->timer_at && !s->gone) {
        s->timer_at = deadline;
        timer_mod_ns(s->timer, MIN(deadline, INT64_MAX));
    }
}

static void qhca_timer_cb(void *opaque)
{
    QhcaState *s = opaque;
    uint64_t now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    uint64_t deadline = s->deadline;

    s->timer_at = UINT64_MAX;
    if (deadline > now) {
        if (deadline != UINT64_MAX) {
            qhca_op_set_timer(s, deadline);
        }
        return;
    }
    if (s->stopped ? !qhca_stop_ready(s) : s->in_engine) {
        /* Stopped by a debugger, or in a nested event loop: retry. */
        qhca_op_set_timer(s, now + 1);
        return;
    }
    s->deadline = UINT64_MAX;
    qhca_call(s, &(QhcaCall) { .kind = QHCA_CALL_TIMER });
}

static void qhca_op_kick(void *opaque)
{
    QhcaState *s = opaque;

    s->run_wanted = true;
    if (!s->gone && !s->run_at_once && !qhca_memlink_runs(s)) {
        qhca_later(s);
    }
}

void qhca_run_now(QhcaState *s)
{
    s->run_at_once = false;
    if (s->run_wanted && !s->reset_wanted && !s->gone) {
        s->run_wanted = false;
        qhca_run(s->engine);
    }
}

static void qhca_bh(void *opaque)
{
    QhcaState *s = opaque;

    if ((s->in_engine && !s->stopped) || s->in_net) {
        qhca_later(s); /* in a nested event loop: later */
        return;
    }
    /*
     * Do not change a stopped machine, nor one that is being loaded: see
     * qhca_vm_change().
     */
    if (!runstate_is_running()) {
        return;
    }
    object_ref(OBJECT(s));      /* an interrupt may unplug us */
    if (s->any_raised && !s->stopped) {
        qhca_notify(s);
    }
    if (s->stopped) {
        qhca_stop_ready(s);     /* continues if that was asked for */
    }
    if (s->run_wanted && s->engine && !s->stopped) {
        s->run_wanted = false;
        qhca_call(s, &(QhcaCall) { .kind = QHCA_CALL_RUN });
    }
    if (s->engine && !s->stopped) {
        qhca_net_resume(s);
        qhca_memlink_resume(s);
    }
    object_unref(OBJECT(s));
}

static void qhca_vm_change(void *opaque, bool running, RunState state)
{
    QhcaState *s = opaque;

    if (s->record) {
        qhca_record_sync(s, running);
    }
    qhca_stop_vm_change(s, running);
    qhca_memlink_vm_change(s);
    if (running && !qhca_replayed()) {
        qhca_later(s);
    }
}

/* A suspended guest runs again: no handler of VM changes is told. */
static void qhca_wakeup(Notifier *n, void *data)
{
    QhcaState *s = container_of(n, QhcaState, wakeup);

    if (!qhca_replayed()) {
        qhca_later(s);
    }
}

const struct qhca_ops qhca_glue_ops = {
    .dma_read = qhca_op_dma_read,
    .dma_write = qhca_op_dma_write,
    .dma_store64 = qhca_op_dma_store64,
    .dma_fence = qhca_op_dma_fence,
    .dma_cas64 = qhca_op_dma_cas64,
    .dm_read = qhca_op_dm_read,
    .dm_write = qhca_op_dm_write,
    .dm_cas64 = qhca_op_dm_cas64,
    .msix = qhca_op_msix,
    .send = qhca_op_send,
    .clock = qhca_op_clock,
    .set_timer = qhca_op_set_timer,
    .kick = qhca_op_kick,
    .dma_share = qhca_op_dma_share,
    .memlink_bell = qhca_op_memlink_bell,
    .memlink_bell_soon = qhca_op_memlink_bell_soon,
    .memlink_wait = qhca_op_memlink_wait,
    .memlink_cut = qhca_op_memlink_cut,
    .trace = qhca_op_trace,
    .stop = qhca_op_stop,
    .can_stop = qhca_op_can_stop,
};

bool qhca_glue_init(QhcaState *s, Error **errp)
{
    const char *err = "out of memory";

    s->deadline = UINT64_MAX;
    s->timer_at = UINT64_MAX;
    s->engine = qhca_new(&s->cfg, &qhca_glue_ops, s, &err);
    if (!s->engine) {
        error_setg(errp, "qhca: %s", err);
        return false;
    }
    qhca_dma_cache_init(s);
    s->raised = bitmap_new(s->cfg.num_vectors);
    s->bh = qemu_bh_new_guarded(qhca_bh, s,
                                &DEVICE(s)->mem_reentrancy_guard);
    s->soon = timer_new_ns(QEMU_CLOCK_VIRTUAL, qhca_bh, s);
    s->timer = timer_new_ns(QEMU_CLOCK_VIRTUAL, qhca_timer_cb, s);
    qhca_stop_init(s);
    s->vm_change = qdev_add_vm_change_state_handler(DEVICE(s),
                                                    qhca_vm_change, s);
    s->wakeup.notify = qhca_wakeup;
    qemu_register_wakeup_notifier(&s->wakeup);
    return true;
}

void qhca_glue_exit(QhcaState *s)
{
    qhca_record_end(s);
    qhca_stop_exit(s);
    qhca_vm_forget(s);
    qemu_del_vm_change_state_handler(s->vm_change);
    notifier_remove(&s->wakeup);
    timer_free(s->timer);
    s->timer = NULL;
    timer_free(s->soon);
    s->soon = NULL;
    qemu_bh_delete(s->bh);
    s->bh = NULL;
    qhca_dma_cache_exit(s);
    if (s->in_engine) {
        /* From now on no operation uses the device; see qhca_leave(). */
        s->gone = true;
        object_ref(OBJECT(s));
    } else {
        qhca_engine_free(s);
    }
}

void qhca_glue_reset(QhcaState *s)
{
    s->run_wanted = false;
    qhca_stop_abandon(s);
    if (qhca_enter(s)) {
        s->reset_wanted = true;
        qhca_leave(s);
    } else {
        s->reset_wanted = true;
    }
}
