/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: for a device built without observers (CONFIG_QHCA_OBSERVE=n).  Nothing
 * stops it, injects faults or records it.
 */
#include "qemu/osdep.h"
#include "qhca.h"

/* ---- qhca-stop.c ---- */

void qhca_stop_init(QhcaState *s)
{
}

void qhca_stop_exit(QhcaState *s)
{
}

void qhca_op_stop(void *opaque)
{
}

bool qhca_op_can_stop(void *opaque)
{
    return false;
}

void qhca_stop_take(QhcaState *s)
{
}

bool qhca_stop_wanted(const QhcaState *s)
{
    return false;
}

/* Never called: see qhca_stop_wanted(). */
void qhca_stop_call(QhcaState *s, const QhcaCall *c)
{
    g_assert_not_reached();
}

/* Never called: no call is ever stopped. */
void qhca_stop_later(QhcaState *s, const QhcaCall *c)
{
    g_assert_not_reached();
}

bool qhca_stop_ready(QhcaState *s)
{
    return true;
}

void qhca_stop_vm_change(QhcaState *s, bool running)
{
}

void qhca_stop_abandon(QhcaState *s)
{
}

/* ---- qhca-fault.c ---- */

void qhca_class_faults(ObjectClass *klass)
{
}

bool qhca_faults_load(QhcaState *s, Error **errp)
{
    return true;
}

/* ---- qhca-record.c: s->record is never set ---- */

void qhca_record_event(QhcaState *s, const struct qhca_trace *t)
{
}

void qhca_record_frame(QhcaState *s, bool out, const void *frame, size_t len,
                       uint64_t time)
{
}

void qhca_record_sync(QhcaState *s, bool running)
{
}

void qhca_record_end(QhcaState *s)
{
}

/* ---- qhca-qmp.c ---- */

void qhca_class_counters(ObjectClass *klass)
{
}
