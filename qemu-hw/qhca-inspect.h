/* SPDX-License-Identifier: GPL-2.0-or-later */
/* qhca: shared by inspection and debugging over QMP and in the monitor. */
#ifndef HW_NET_QHCA_INSPECT_H
#define HW_NET_QHCA_INSPECT_H

#include "qobject/qobject.h"
#include "engine/observe/inspect.h"
#include "qhca.h"

#define QHCA_JSON_DEPTH     16

/* The output of an emitter: the root, and the open containers. */
typedef struct QhcaJson {
    QObject *root;
    QObject *stack[QHCA_JSON_DEPTH];
    unsigned depth;
} QhcaJson;

/** An emitter that builds @j.  The caller owns @j->root afterwards. */
struct qhca_emit qhca_json_emit(QhcaJson *j);

/**
 * Find the device with id or QOM path @device, or the only one if NULL; returns
 * NULL with *@errp set on error.  The device can be inspected until
 * qhca_find_end(), even if a debugger has stopped it in the middle of a call.
 */
QhcaState *qhca_find(const char *device, Error **errp);
void qhca_find_end(QhcaState *s);

#endif /* HW_NET_QHCA_INSPECT_H */
