/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The interface to the environment: sending frames, requesting a run. */
#include "base/base.h"

void qhca_kick(struct qhca *e)
{
    if (!e->kicked) {
        e->kicked = true;
        e->ops.kick(e->opaque);
    }
}

bool qhca_tx(struct qhca *e, const void *frame, size_t len)
{
    if (!e->link) {
        return true;            /* link down: the frame is lost */
    }
    if (e->tx_blocked) {
        return false;
    }
    if (!e->ops.send(e->opaque, frame, len)) {
        e->tx_blocked = true;
        return false;
    }
    if (e->sniff) {
        e->sniff(e, frame, len);
    }
    return true;
}
