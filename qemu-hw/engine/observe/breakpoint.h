/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stopping the adapter: break conditions and steps.
 *
 * Conditions match trace events (trace.h).  When one is met, the adapter calls
 * ops->stop() at once, in the middle of its work if need be, and stays stopped
 * until that returns.  So n steps of any kind are exactly n, however many
 * events a packet or a doorbell causes.  Only two stops are deferred, and never
 * past another event: at a doorbell until the queue's new head is known (the
 * adapter has not acted on it yet), at a packet sent until it is counted.  And
 * a read of a register first returns the value: see qhca_break_take().
 *
 * In a call that cannot be stopped (ops->can_stop()) conditions are met, but
 * they and the last step wait for an event that can stop the adapter.
 *
 * While the adapter is stopped, its owner must hold back all other calls (see
 * ops->stop()) and make them later.  Registers may be read, and such a read
 * meets no condition.  While a condition is set or a step is
 * pending, each event costs a comparison; otherwise all this costs nothing.
 *
 * This state belongs to the developer, not to the adapter: a reset of the
 * adapter does not change it.
 */
#ifndef QHCA_BREAKPOINT_H
#define QHCA_BREAKPOINT_H

#include "../engine.h"
#include "inspect.h"

enum qhca_stop_on {
    QHCA_ON_DOORBELL,           /* code: offset in the page, peer: UAR */
    QHCA_ON_WQE,                /* send WQE fetched; code: opcode */
    QHCA_ON_RECV_WQE,           /* receive WQE taken */
    QHCA_ON_PACKET_OUT,         /* code: BTH opcode, syndrome: AETH's */
    QHCA_ON_PACKET_IN,
    QHCA_ON_PACKET,             /* either */
    QHCA_ON_DROP,               /* code: BTH opcode */
    QHCA_ON_CQE,                /* number: CQN, peer: QPN, code: status */
    QHCA_ON_EVENT,              /* number: EQN, peer: object, code: type */
    QHCA_ON_STATE,              /* QP state change; code: new state */
    QHCA_ON_WALK_ERROR,         /* page fault (peer: key) or table error */
    QHCA_ON_GUEST_ERROR,        /* code: QHCA_STAT_* counted */
    QHCA_ON_WALK,               /* walk of a buffer table */
    QHCA_ON_COMMAND,            /* code: opcode, syndrome: status */
    QHCA_ON_RETRANSMIT,         /* code: why */
    QHCA_ON_TIMER,              /* started */
    QHCA_ON_INTERRUPT,          /* number: vector */
    QHCA_ON_FRAME,              /* of the Ethernet function, in or out */
    QHCA_ON_HOP,                /* buffer table entry read; code: level */
    QHCA_ON_DATA,               /* by DMA; code: 1 write, 0 read */
    QHCA_ON_RESUME,             /* after a page fault; peer: key */
    QHCA_ON_REGISTER,           /* register written; code: offset */
    QHCA_ON_MARKER,             /* code: value */
    QHCA_ON_INJECTED,           /* injected fault; index: rule, code: action */
    QHCA_ONS
};

/* Which of the fields below a condition compares. */
#define QHCA_BRK_NUMBER     0x01
#define QHCA_BRK_PEER       0x02
#define QHCA_BRK_INDEX      0x04
#define QHCA_BRK_PSN        0x08
#define QHCA_BRK_CODE       0x10
#define QHCA_BRK_WR_ID      0x20
#define QHCA_BRK_SYNDROME   0x40

struct qhca_break {
    uint32_t id;                /* set by qhca_break_add() */
    uint8_t on;                 /* enum qhca_stop_on */
    uint8_t fields;             /* QHCA_BRK_* */
    bool once;                  /* removed by its first stop */
    uint32_t number;            /* QPN unless stated otherwise above */
    uint32_t peer, index, psn, code;
    uint64_t wr_id;
    uint8_t syndrome;
    uint64_t ignore;            /* hits to ignore first */
    uint64_t hits;              /* so far */
};

#define QHCA_BREAKS_MAX     64

/** Name used in commands: "doorbell", "recv-wqe"; static, NULL past the end. */
const char *qhca_on_name(enum qhca_stop_on on);

/**
 * Add a break condition; sets @b->id and @b->hits.  Returns NULL, or a static
 * error text.
 */
const char *qhca_break_add(struct qhca *e, struct qhca_break *b);
/** Remove condition @id, 0: all; false if there is no such condition. */
bool qhca_break_remove(struct qhca *e, uint32_t id);
/** The condition with the lowest id above @id, or NULL. */
const struct qhca_break *qhca_break_next(struct qhca *e, uint32_t id);

/**
 * Stop at event number @count of kind @on from now on.  A break met earlier
 * stops the adapter and ends the step.  Does not resume a stopped adapter.
 * Returns NULL, or a static error text.
 */
const char *qhca_break_step(struct qhca *e, enum qhca_stop_on on,
                            uint64_t count);
/** Cancel a pending step.  A step that is complete is a stop like any other. */
void qhca_break_step_cancel(struct qhca *e);
/**
 * Stop now, if an event of the preceding qhca_reg_read() demands that.  For the
 * caller of that, who has stored the value by then.
 */
void qhca_break_take(struct qhca *e);
/** Can a call of the engine lead to ops->stop()? */
bool qhca_debugging(const struct qhca *e);
/** Is the adapter stopped, that is, within ops->stop()? */
bool qhca_break_stopped(const struct qhca *e);
/**
 * From now on only report stops: ops.stop() returns at once and the adapter
 * continues as if there were no debugger.  For machines whose execution must
 * not depend on a debugger, as with record and replay.
 */
void qhca_break_watch_only(struct qhca *e);
/**
 * Watch-only mode: the machine has resumed after the reported stop.  May be
 * called from ops.stop().
 */
void qhca_break_gone_on(struct qhca *e);
/**
 * With @on, no event stops the adapter, so that a stopped call can run to its
 * end at once: for a reset or an unplug.
 */
void qhca_break_release(struct qhca *e, bool on);
/**
 * Emit the stop: its reason, the event and, with @trail, the events since the
 * adapter last resumed (at most the last 64).
 */
void qhca_break_show(struct qhca *e, bool trail, const struct qhca_emit *em);

/** The fields (QHCA_BRK_*) that a condition on @on can compare. */
unsigned qhca_on_fields(enum qhca_stop_on on);
/**
 * Emit for each kind of event the fields a condition can compare, and the names
 * of its codes and syndromes.
 */
void qhca_break_names(const struct qhca_emit *em);

#endif /* QHCA_BREAKPOINT_H */
