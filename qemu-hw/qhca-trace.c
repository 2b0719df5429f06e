/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: the engine's trace as QEMU trace events, one for each kind.  Guest
 * errors also go to the log, with -d guest_errors.
 */
#include "qemu/osdep.h"
#include "qemu/log.h"
#include "qemu/timer.h"
#include "engine/base/trace.h"
#include "qhca.h"
#include "trace.h"

static void qhca_trace_error_event(const char *dev,
                                   const struct qhca_trace *t)
{
    const char *text = t->text ? t->text : "";

    qemu_log_mask(LOG_GUEST_ERROR, "%s: 0x%x: %s\n", dev, t->num, text);
    trace_qhca_guest_error(t->num, t->a, text, t->time, dev);
}

/* Is any of the engine's events enabled? */
static bool qhca_trace_enabled(void)
{
    static GPtrArray *events;
    TraceEventIter iter;
    TraceEvent *ev;
    guint i;

    if (!events) {
        events = g_ptr_array_new();
        trace_event_iter_init_pattern(&iter, "qhca_*");
        while ((ev = trace_event_iter_next(&iter)) != NULL) {
            /* This one measures the engine without tracing. */
            if (strcmp(trace_event_get_name(ev), "qhca_call")) {
                g_ptr_array_add(events, ev);
            }
        }
    }
    for (i = 0; i < events->len; i++) {
        if (trace_event_get_state_dynamic(g_ptr_array_index(events, i))) {
            return true;
        }
    }
    return false;
}

bool qhca_trace_wanted(const QhcaState *s)
{
    return s->record || qemu_loglevel_mask(LOG_GUEST_ERROR) ||
           (unlikely(trace_events_enabled_count) && qhca_trace_enabled());
}

static int64_t qhca_cpu_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * NANOSECONDS_PER_SECOND + t.tv_nsec;
}

QhcaCallTime qhca_trace_call_begins(void)
{
    QhcaCallTime t = { 0, 0 };

    if (trace_event_get_state_backends(TRACE_QHCA_CALL)) {
        t.cpu = qhca_cpu_clock();
        t.host = get_clock();
    }
    return t;
}

void qhca_trace_call_done(const char *dev, const char *what,
                          const QhcaCallTime *begin)
{
    if (unlikely(begin->host)) {
        int64_t host = get_clock() - begin->host;

        trace_qhca_call(what, host, qhca_cpu_clock() - begin->cpu,
                        qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL), dev);
    }
}

void qhca_trace_call_ended(QhcaState *s, const char *what,
                           const QhcaCallTime *begin)
{
    qhca_trace_call_done(DEVICE(s)->id ? DEVICE(s)->id : TYPE_QHCA, what,
                         begin);
}

void qhca_op_trace(void *opaque, const struct qhca_trace *t)
{
    QhcaState *s = opaque;
    const char *dev = DEVICE(s)->id ? DEVICE(s)->id : TYPE_QHCA;

    if (s->record) {
        qhca_record_event(s, t);
    }
    switch (t->kind) {
    case QHCA_TR_REG_WRITE:
        trace_qhca_reg_write(t->addr, t->a, t->time, dev);
        break;
    case QHCA_TR_MARKER:
        trace_qhca_marker(t->a, t->time, dev);
        break;
    case QHCA_TR_COMMAND:
        trace_qhca_command(t->a, t->num, t->b, t->time, dev);
        break;
    case QHCA_TR_DOORBELL:
        trace_qhca_doorbell(t->num, t->addr, t->a, t->index, t->time, dev);
        break;
    case QHCA_TR_GUEST_ERROR:
        qhca_trace_error_event(dev, t);
        break;
    case QHCA_TR_QP_STATE:
        trace_qhca_qp_state(t->num, t->a, t->b, t->syndrome, t->time, dev);
        break;
    case QHCA_TR_WALK_HOP:
        trace_qhca_walk_hop(t->num, t->b, t->addr, t->a, t->time, dev);
        break;
    case QHCA_TR_WALK:
        trace_qhca_walk(t->num, t->a, t->addr, t->time, dev);
        break;
    case QHCA_TR_WQE:
        trace_qhca_wqe(t->num, t->index, t->addr, t->a, t->b, t->psn, t->time,
                       dev);
        break;
    case QHCA_TR_RECV_WQE:
        trace_qhca_recv_wqe(t->num, t->index, t->addr, t->b, t->time, dev);
        break;
    case QHCA_TR_TX:
        trace_qhca_tx(t->num, t->peer, t->psn, t->a, t->b, t->syndrome,
                      t->time, dev);
        break;
    case QHCA_TR_RX:
        trace_qhca_rx(t->num, t->peer, t->psn, t->a, t->b, t->syndrome,
                      t->time, dev);
        break;
    case QHCA_TR_RX_DROP:
        trace_qhca_rx_drop(t->num, t->psn, t->a, t->b, t->time, dev);
        break;
    case QHCA_TR_DATA:
        trace_qhca_data(t->num, t->b ? "write" : "read", t->addr, t->a,
                        t->time, dev);
        break;
    case QHCA_TR_RETRANSMIT:
        trace_qhca_retransmit(t->num, t->psn, t->a, t->time, dev);
        break;
    case QHCA_TR_TIMER:
        trace_qhca_timer(t->num, t->a, t->b, t->time, dev);
        break;
    case QHCA_TR_CQE:
        trace_qhca_cqe(t->num, t->peer, t->index, t->a, t->syndrome, t->b,
                       t->op, t->wqe, t->time, dev);
        break;
    case QHCA_TR_EQE:
        trace_qhca_eqe(t->num, t->peer, t->index, t->a, t->time, dev);
        break;
    case QHCA_TR_PAGE_FAULT:
        trace_qhca_page_fault(t->num, t->index, t->peer, t->addr, t->a, t->b,
                              t->time, dev);
        break;
    case QHCA_TR_RESUME:
        trace_qhca_resume(t->num, t->index, t->peer, t->addr, t->b, t->time,
                          dev);
        break;
    case QHCA_TR_MSIX:
        trace_qhca_msix(t->num, t->time, dev);
        break;
    case QHCA_TR_ETH_TX:
        trace_qhca_eth_tx(t->num, t->index, t->b, t->time, dev);
        break;
    case QHCA_TR_ETH_RX:
        trace_qhca_eth_rx(t->num, t->index, t->b, t->time, dev);
        break;
    case QHCA_TR_ETH_DATA:
        trace_qhca_eth_data(t->num, t->index, t->b ? "write" : "read", t->addr,
                            t->a, t->time, dev);
        break;
    case QHCA_TR_FAULT:
        trace_qhca_fault_injected(t->text, t->index, t->b, t->num, t->peer,
                                  t->psn, t->addr, t->time, dev);
        break;
    case QHCA_TR_KINDS:
        break;
    }
}
