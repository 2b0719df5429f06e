/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every floor stands on: the adapter as such, budgets, the way to the
 * surroundings (struct qhca_ops) and to observers, bytes, lists, numbers.
 */
#ifndef QHCA_BASE_H
#define QHCA_BASE_H

#include <string.h>

#include "engine.h"
#include "base/bytes.h"
#include "base/command.h"
#include "base/headers.h"
#include "base/hooks.h"
#include "base/idr.h"
#include "base/list.h"
#include "base/trace.h"

#define QHCA_MAX_SQ_WQE     1024
#define QHCA_MAX_RQ_WQE     512
#define QHCA_MAX_SGE        30
#define QHCA_MAX_INLINE     512
#define QHCA_MAX_RD_ATOMIC  16
#define QHCA_MAX_MSG_SIZE   0x80000000U
#define QHCA_MAX_QP_WR      32768
#define QHCA_MAX_CQE        (1U << 22)
#define QHCA_MAX_XRCD       1024    /* a power of two; number 0 is not used */
#define QHCA_HASH_SLOTS     512 /* twice the greatest number of entries */

#define QHCA_MAX_EQ_SHIFT   16
#define QHCA_MAX_CQ_SHIFT   22
#define QHCA_MAX_WQ_SHIFT   15
#define QHCA_MAX_MR_SIZE    (1ULL << 48)
#define QHCA_FW_VERSION     0x01000000U
#define QHCA_MAX_MTU        9216
#define QHCA_MIN_MTU        68

/* The parts of the floors above; see their headers. */
struct qhca_io;
struct qhca_memory;
struct qhca_queues;
struct qhca_xport_dev;
struct qhca_ethernet;
struct qhca_adapter;
/* The observers' own (observe/). */
struct qhca_debug;
struct qhca_faults;

/* An adapter: what every floor needs of it, and the way to each floor's own. */
struct qhca {
    struct qhca_config cfg;
    struct qhca_ops ops;
    void *opaque;
    struct qhca_memory *mem;
    struct qhca_queues *q;
    struct qhca_xport_dev *xd;
    struct qhca_ethernet *eth;
    struct qhca_adapter *ad;
    /* life */
    uint8_t fatal;              /* QHCA_FATAL_* */
    bool ready_flag, link;
    uint8_t mac[6];             /* the port's address at present */
    uint32_t mtu;
    bool tx_blocked;            /* send() said no */
    bool kicked;
    /* budgets */
    uint32_t list_reads;        /* of buffer tables: they cost budget, too */
    uint32_t cost;              /* of all so far, see qhca_cost() */
    uint32_t command_end;       /* cost at which commands stop for this run */
    uint64_t stats[QHCA_STAT_COUNT];
    /* Gets a copy of each frame of the wire; NULL: nobody wants one. */
    void (*sniff)(struct qhca *e, const void *frame, size_t len);
    /* observers */
    const struct qhca_hooks *hooks;     /* NULL: there never was one */
    bool tracing;               /* somebody listens: qhca_set_tracing() */
    bool debugging;             /* a debugger waits for an event */
    bool halted;                /* within ops.stop() */
    bool watch_only;            /* a stop is told, and that is all */
    uint32_t fault_sites;       /* bit per QHCA_FLT_AT_*: some rule is there */
    struct qhca_debug *dbg;     /* NULL: it was never asked for */
    struct qhca_faults *faults; /* NULL: there never was a rule */
};

/* ---- budgets ---- */
/*
 * Work was done that costs as much as @n accesses to memory.  DMA counts by
 * itself, so only loops that do without must call this.
 */
static inline void qhca_cost(struct qhca *e, uint32_t n)
{
    e->cost += n;
}
/* Has the command done what may be done at once? */
static inline bool qhca_command_spent(const struct qhca *e)
{
    return (int32_t)(e->cost - e->command_end) >= 0;
}

/* ---- life ---- */
/* Enabled and not in the fatal state. */
static inline bool qhca_active(const struct qhca *e)
{
    return e->ready_flag && !e->fatal;
}
/* QHCA_FEAT_*, by the configuration alone. */
uint64_t qhca_features(const struct qhca *e);
/* What is wrong with @cfg, or NULL. */
const char *qhca_config_bad(const struct qhca_config *cfg);
/* Ask for kick() once until the next qhca_run(). */
void qhca_kick(struct qhca *e);
static inline uint64_t qhca_now(struct qhca *e)
{
    return e->ops.clock(e->opaque);
}

/* ---- wire.c ---- */
/*
 * Hand a complete frame to the wire.  False: blocked, keep it and try again
 * when run next (the caller stays on the ready list).
 */
bool qhca_tx(struct qhca *e, const void *frame, size_t len);

/* ---- statistics, trace.c ---- */
static inline void qhca_count(struct qhca *e, unsigned stat)
{
    e->stats[stat]++;
}
static inline bool qhca_tracing(const struct qhca *e)
{
    return e->tracing;
}
/* Fill time and hand to the operation; call only if qhca_tracing(). */
void qhca_trace_emit(struct qhca *e, struct qhca_trace *t);
/* Count @stat and trace a guest error about object @num. */
void qhca_guest_error(struct qhca *e, unsigned stat, uint32_t num,
                      const char *text);

/* ---- observers: see base/hooks.h ---- */
/* Is there a rule for what happens @at (QHCA_FLT_AT_*)?  Ask before calling. */
static inline bool qhca_faulty(const struct qhca *e, unsigned at)
{
    return e->fault_sites & 1u << at;
}
static inline void qhca_debug_point(struct qhca *e)
{
    if (e->debugging) {
        e->hooks->stop_due(e);
    }
}

#endif /* QHCA_BASE_H */
