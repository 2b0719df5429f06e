/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qhca: what the debugger's side of the device shares: looks over QMP and in
 * the monitor.
 */
#ifndef HW_NET_QHCA_DEBUG_H
#define HW_NET_QHCA_DEBUG_H

#include "qobject/qobject.h"
#include "engine/observe/inspect.h"
#include "qhca.h"

#define QHCA_JSON_DEPTH     16

/* What an emitter makes: root, and what is open. */
typedef struct QhcaJson {
    QObject *root;
    QObject *stack[QHCA_JSON_DEPTH];
    unsigned depth;
} QhcaJson;

/** An emitter that fills @j; @j->root is the caller's then. */
struct qhca_emit qhca_json_emit(QhcaJson *j);

/**
 * The device with id or QOM path @device, or the only one if that is NULL;
 * NULL with *@errp set if that fails.  It can be looked at, also where a
 * debugger has stopped it in the middle of a call, until qhca_find_end().
 */
QhcaState *qhca_find(const char *device, Error **errp);
void qhca_find_end(QhcaState *s);

/** Add the counters as properties. */
void qhca_class_counters(ObjectClass *klass);

#endif /* HW_NET_QHCA_DEBUG_H */
