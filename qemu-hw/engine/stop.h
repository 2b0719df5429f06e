/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The debugger's part of the adapter, and its ways in from the engine. */
#ifndef QHCA_STOP_H
#define QHCA_STOP_H

#include "internal.h"
#include "debug.h"

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

#endif /* QHCA_STOP_H */
