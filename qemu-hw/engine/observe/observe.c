/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Attaching the observers to an adapter. */
#include <stdlib.h>

#include "observe/breakpoint_internal.h"
#include "observe/fault_state.h"

static void observers_free(struct qhca *e)
{
    qhca_break_free(e);
    if (e->faults) {
        qhca_fault_drop_frames(e);
        free(e->faults);
        e->faults = NULL;
    }
}

static const struct qhca_hooks observers = {
    .event = qhca_break_event,
    .stop_due = qhca_break_due,
    .tracing = qhca_break_tracing,
    .dma_fails = qhca_fault_dma,
    .table_fails = qhca_fault_table,
    .recv_fails = qhca_fault_recv,
    .cqe_fails = qhca_fault_cqe,
    .stall_event = qhca_fault_event,
    .irq_fails = qhca_fault_irq,
    .command_late = qhca_fault_command,
    .reg_value = qhca_fault_register,
    .tx = qhca_fault_tx,
    .rx = qhca_fault_rx,
    .frame_tx = qhca_fault_frame_tx,
    .frame_rx = qhca_fault_frame_rx,
    .set_link = qhca_fault_set_link,
    .reset = qhca_fault_reset,
    .finish = qhca_fault_finish,
    .deadline = qhca_fault_deadline,
    .timer = qhca_fault_timer,
    .command_waits = qhca_fault_command_waits,
    .flush = qhca_fault_flush,
    .forget_stop = qhca_break_forget_stop,
    .free = observers_free,
};

void qhca_observe(struct qhca *e)
{
    e->hooks = &observers;
}
