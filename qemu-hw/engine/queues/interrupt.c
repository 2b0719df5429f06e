/* SPDX-License-Identifier: GPL-2.0-or-later */
/* MSI-X vectors. */
#include "queues/queues.h"

void qhca_msix(struct qhca *e, uint32_t vector)
{
    struct qhca_trace t = { .kind = QHCA_TR_MSIX, .num = vector };

    qhca_count(e, QHCA_STAT_INTERRUPTS);
    if (qhca_tracing(e)) {
        qhca_trace_emit(e, &t);
    }
    if (qhca_faulty(e, QHCA_FLT_AT_INTERRUPT) &&
        e->hooks->irq_fails(e, vector)) {
        return;
    }
    e->ops.msix(e->opaque, vector);
}
