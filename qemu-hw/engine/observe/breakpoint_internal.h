/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The debugger's own: what its files know of each other. */
#ifndef QHCA_BREAKPOINT_INTERNAL_H
#define QHCA_BREAKPOINT_INTERNAL_H

#include "adapter/adapter.h"
#include "observe/breakpoint.h"

#define QHCA_TRAIL          64  /* events kept, a power of two */

struct qhca_debug {
    struct qhca_break brk[QHCA_BREAKS_MAX];
    unsigned breaks;
    uint32_t last_id;
    uint8_t step_on;
    uint64_t step_left;         /* 0: not stepping */
    bool out;                   /* the trace is wanted outside, too */
    bool due;                   /* a stop waits: see qhca_debug_due() */
    bool released;              /* nothing is a stop */
    bool stood;                 /* watching only: told, the machine stands */
    bool by_break;              /* the last stop: by a break, or a step */
    uint8_t on;                 /* what it waited for */
    struct qhca_break by;
    struct qhca_trace why;
    uint32_t trail_next;
    struct qhca_trace trail[QHCA_TRAIL];
};

/* ---- observe.c ---- */
/* Attach the observers to @e, if they are not. */
void qhca_observe(struct qhca *e);

/* ---- debug.c: see struct qhca_hooks ---- */
bool qhca_debug_event(struct qhca *e, const struct qhca_trace *t);
void qhca_debug_due(struct qhca *e);
void qhca_debug_tracing(struct qhca *e, bool on);
void qhca_debug_forget_stop(struct qhca *e);
void qhca_debug_free(struct qhca *e);

#endif /* QHCA_BREAKPOINT_INTERNAL_H */
