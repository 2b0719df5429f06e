/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lowest layer: the adapter itself, budgets, the interfaces to its host
 * (struct qhca_ops) and to observers, bytes, lists and object numbers.
 */
#ifndef QHCA_BASE_H
#define QHCA_BASE_H

#include <string.h>

#include "engine.h"
#include "base/bytes.h"
#include "base/command.h"
#include "base/csum.h"
#include "base/dma_kind.h"
#include "base/fault_site.h"
#include "base/headers.h"
#include "base/hooks.h"
#include "base/idr.h"
#include "base/list.h"
#include "base/save.h"
#include "base/super_trailer.h"
#include "base/trace.h"

#define QHCA_MAX_SQ_WQE     1024
#define QHCA_MAX_RQ_WQE     512
#define QHCA_MAX_SGE        30
#define QHCA_MAX_INLINE     512
#define QHCA_MAX_RD_ATOMIC  16
#define QHCA_MAX_MSG_SIZE   0x80000000U
#define QHCA_MAX_QP_WR      32768
#define QHCA_MAX_CQE        (1U << 22)
#define QHCA_MAX_XRCD       1024    /* power of two; number 0 is unused */
#define QHCA_HASH_SLOTS     512 /* twice the maximum number of entries */

#define QHCA_MAX_EQ_SHIFT   16
#define QHCA_MAX_CQ_SHIFT   22
#define QHCA_MAX_WQ_SHIFT   15
#define QHCA_MAX_MR_SIZE    (1ULL << 48)
#define QHCA_FW_VERSION     0x01000000U
#define QHCA_MAX_MTU        9216
#define QHCA_MIN_MTU        68

/* Per-layer state; see the headers of the layers. */
struct qhca_io;
struct qhca_memlinks;
struct qhca_memory;
struct qhca_queues;
struct qhca_xport_dev;
struct qhca_ethernet;
struct qhca_adapter;
/* State of the observers (observe/). */
struct qhca_breaks;
struct qhca_faults;

/* An adapter: what all layers share, and pointers to each layer's own state. */
struct qhca {
    struct qhca_config cfg;
    struct qhca_ops ops;
    void *opaque;
    struct qhca_memlinks *ml;
    struct qhca_memory *mem;
    struct qhca_queues *q;
    struct qhca_xport_dev *xd;
    struct qhca_ethernet *eth;
    struct qhca_adapter *ad;
    /* life cycle */
    uint8_t fatal;              /* QHCA_FATAL_* */
    bool ready_flag, link;
    uint8_t mac[6];             /* the port's current address */
    uint32_t mtu;
    bool tx_blocked;            /* send() takes no frame, or paused */
    uint64_t tx_paused;         /* ns: until when, see qhca_tx_pause(); or 0 */
    /* Where the QP that is being run must wait, if not for the wire. */
    struct qhca_list *tx_wait;
    bool trying;                /* if an access fails, it is repeated */
    bool kicked;
    /* budgets */
    uint32_t list_reads;        /* of buffer tables: they cost budget too */
    uint32_t cost;              /* total so far, see qhca_cost() */
    uint32_t command_end;       /* cost at which commands stop in this run */
    uint32_t call_begin;        /* cost at which this call began */
    uint64_t stats[QHCA_STAT_COUNT];
    /* Gets a copy of each frame on the wire; NULL: no capture. */
    void (*sniff)(struct qhca *e, const void *frame, size_t len);
    /* observers */
    const struct qhca_hooks *hooks;     /* NULL: no observer so far */
    bool tracing;               /* events are wanted: qhca_set_tracing() */
    bool debugging;             /* a debugger waits for an event */
    bool halted;                /* inside ops.stop() */
    bool in_read;               /* inside qhca_reg_read() */
    bool watch_only;            /* report stops, but do not halt */
    uint32_t fault_sites;       /* bit per QHCA_FLT_AT_*: has a rule */
    struct qhca_breaks *dbg;     /* NULL: never used */
    struct qhca_faults *faults; /* NULL: there was never a rule */
};

/* ---- budgets ---- */
#define QHCA_COST_SHIFT     10  /* log2 of the bytes that cost one access */
/*
 * Account for work that costs as much as @n memory accesses.  DMA and access to
 * device memory are counted automatically; only other loops must call this.
 */
static inline void qhca_cost(struct qhca *e, uint32_t n)
{
    e->cost += n;
}
/* The same for an access to @len bytes, or for a copy of them. */
static inline void qhca_cost_bytes(struct qhca *e, size_t len)
{
    qhca_cost(e, 1 + (uint32_t)(len >> QHCA_COST_SHIFT));
}
/*
 * Limits on the cost of one call, in memory accesses.  Usually the packet
 * budget ends a call, but a packet can have many receivers and pieces.  Work
 * stops at CALL_COST and continues in a later call.  A frame from the wire
 * cannot wait: it is lost for receivers beyond CALL_COST_MAX.
 */
#define QHCA_CALL_COST      4096
#define QHCA_CALL_COST_MAX  12288
static inline void qhca_call_begins(struct qhca *e)
{
    e->call_begin = e->cost;
}
static inline bool qhca_call_spent(const struct qhca *e)
{
    return e->cost - e->call_begin >= QHCA_CALL_COST;
}
static inline bool qhca_call_exhausted(const struct qhca *e)
{
    return e->cost - e->call_begin >= QHCA_CALL_COST_MAX;
}
/* Has the command used up its share of this run? */
static inline bool qhca_command_spent(const struct qhca *e)
{
    return (int32_t)(e->cost - e->command_end) >= 0;
}

/* ---- life cycle ---- */
/* Enabled and not in the fatal state. */
static inline bool qhca_active(const struct qhca *e)
{
    return e->ready_flag && !e->fatal;
}
/* The QHCA_FEAT_* bits, which depend on the configuration only. */
uint64_t qhca_features(const struct qhca *e);
/* Can the port have this address, this MTU? */
bool qhca_mac_ok(const uint8_t mac[6]);
static inline bool qhca_mtu_ok(uint32_t mtu)
{
    return mtu >= QHCA_MIN_MTU && mtu <= QHCA_MAX_MTU;
}
/* Describe what is wrong with @cfg (static text); NULL if it is valid. */
const char *qhca_config_bad(const struct qhca_config *cfg);
/* Request kick(), at most once per qhca_run(). */
void qhca_kick(struct qhca *e);
/* Device clock, ns. */
static inline uint64_t qhca_now(struct qhca *e)
{
    return e->ops.clock(e->opaque);
}

/* ---- wire.c ---- */
/*
 * Send a complete frame.  Returns false if the wire is blocked: keep the frame
 * and retry in the next run (the caller stays on the ready list).
 */
bool qhca_tx(struct qhca *e, const void *frame, size_t len);
/* The frames that a frame represents, and their lengths. */
struct qhca_wire_frames {
    uint32_t n;
    size_t first, len, last;    /* if n is 1, only last is used */
};
/* qhca_tx() for a frame that represents several. */
bool qhca_tx_super(struct qhca *e, const void *frame, size_t len,
                   const struct qhca_wire_frames *as);
/* Count frames that have arrived; @frame has the header of all. */
void qhca_wire_count_rx(struct qhca *e, const void *frame,
                        const struct qhca_wire_frames *as);
/**
 * Send nothing for @quanta of 512 bit times, or resume if @quanta is 0.
 * Senders wait as for a busy wire.
 */
void qhca_tx_pause(struct qhca *e, uint16_t quanta);
/** When the current pause (e->tx_paused) ends, in ns; @now: the time. */
uint64_t qhca_tx_pause_deadline(const struct qhca *e, uint64_t now);
/* Count frames that were sent by other means than qhca_tx(). */
void qhca_wire_count_tx(struct qhca *e, const void *frame,
                        const struct qhca_wire_frames *as);

/* ---- statistics, trace.c ---- */
/* Increment counter @stat (QHCA_STAT_*). */
static inline void qhca_count(struct qhca *e, unsigned stat)
{
    e->stats[stat]++;
}
/* Are trace events wanted?  Check before building one. */
static inline bool qhca_tracing(const struct qhca *e)
{
    return e->tracing;
}
/* Set the time of @t and emit it; call only if qhca_tracing(). */
void qhca_trace_emit(struct qhca *e, struct qhca_trace *t);
void qhca_trace_guest_error(struct qhca *e, unsigned stat, uint32_t num,
                            const char *text);
/* Count @stat and trace a guest error on object @num; @text is static. */
static inline void qhca_guest_error(struct qhca *e, unsigned stat,
                                    uint32_t num, const char *text)
{
    qhca_count(e, stat);
    if (qhca_tracing(e)) {
        qhca_trace_guest_error(e, stat, num, text);
    }
}

/* ---- observers: see base/hooks.h ---- */
/* Does @at (QHCA_FLT_AT_*) have a rule?  Check before calling a hook. */
static inline bool qhca_faulty(const struct qhca *e, unsigned at)
{
    return e->fault_sites & 1u << at;
}
/* Take a pending stop, now that its cause is fully accounted for. */
static inline void qhca_break_point(struct qhca *e)
{
    if (e->debugging) {
        e->hooks->stop_due(e);
    }
}

#endif /* QHCA_BASE_H */
