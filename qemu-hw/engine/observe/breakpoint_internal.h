/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Debugger internals, shared by its files. */
#ifndef QHCA_BREAKPOINT_INTERNAL_H
#define QHCA_BREAKPOINT_INTERNAL_H

#include "adapter/adapter.h"
#include "observe/breakpoint.h"

#define QHCA_TRAIL          64  /* events kept, a power of two */

struct qhca_breaks {
    struct qhca_break brk[QHCA_BREAKS_MAX];
    unsigned breaks;
    uint32_t last_id;
    uint8_t step_on;
    uint64_t step_left;         /* 0: not stepping */
    bool out;                   /* the owner wants the trace, too */
    bool due;                   /* a stop is pending: see qhca_break_due() */
    bool released;              /* no event stops the adapter */
    bool reported;              /* watch-only: the machine has been stopped */
    bool by_break;              /* cause of the last stop: a break, or a step */
    uint8_t on;                 /* the kind of event it matched */
    struct qhca_break by;
    struct qhca_trace why;
    uint32_t trail_next;
    struct qhca_trace trail[QHCA_TRAIL];
};

/* ---- observe.c ---- */
/* Attach the observers to @e, unless they are attached. */
void qhca_observe(struct qhca *e);

/* ---- breakpoint.c: see struct qhca_hooks ---- */
bool qhca_break_event(struct qhca *e, const struct qhca_trace *t);
void qhca_break_due(struct qhca *e);
void qhca_break_tracing(struct qhca *e, bool on);
void qhca_break_forget_stop(struct qhca *e);
void qhca_break_free(struct qhca *e);

#endif /* QHCA_BREAKPOINT_INTERNAL_H */
