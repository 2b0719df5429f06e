/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stopping the adapter: break conditions and steps.
 *
 * Conditions are about the events of the trace (trace.h).  When one is met
 * the adapter calls ops->stop() right there, in the middle of its work if need
 * be, and stands until that returns.  So n steps of any kind are exactly n,
 * however many events a packet or a doorbell has.  Only two wait a moment: the
 * stop at a doorbell until the queue's new head is known (nothing has been
 * done about it then), that at a packet sent until it is counted; never past
 * another event.
 *
 * Whoever owns the adapter must keep all other calls away while it stands (see
 * ops->stop()) and catch up on them later.  A condition set or a step under way
 * costs a look at each event; none, and all this costs nothing.
 *
 * This is the developer's, not the adapter's state: a reset of the adapter
 * changes nothing here.
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
    QHCA_ON_STATE,              /* of a QP; code: new state */
    QHCA_ON_FAULT,              /* page fault (peer: key) or bad table */
    QHCA_ON_GUEST_ERROR,        /* code: QHCA_STAT_* counted */
    QHCA_ON_WALK,               /* of a buffer table */
    QHCA_ON_COMMAND,            /* code: opcode, syndrome: status */
    QHCA_ON_RETRANSMIT,         /* code: why */
    QHCA_ON_TIMER,              /* started */
    QHCA_ON_INTERRUPT,          /* number: vector */
    QHCA_ON_FRAME,              /* of the Ethernet function, in or out */
    QHCA_ON_HOP,                /* an entry of a buffer table; code: level */
    QHCA_ON_DATA,               /* by DMA; code: 1 write, 0 read */
    QHCA_ON_RESUME,             /* after a page fault; peer: key */
    QHCA_ON_REGISTER,           /* written; code: offset */
    QHCA_ON_MARKER,             /* code: value */
    QHCA_ON_INJECTED,           /* fault on demand; index: rule, code: action */
    QHCA_ONS
};

/* Which of the fields below a condition asks for. */
#define QHCA_BRK_NUMBER     0x01
#define QHCA_BRK_PEER       0x02
#define QHCA_BRK_INDEX      0x04
#define QHCA_BRK_PSN        0x08
#define QHCA_BRK_CODE       0x10
#define QHCA_BRK_WR_ID      0x20
#define QHCA_BRK_SYNDROME   0x40

struct qhca_break {
    uint32_t id;                /* given by qhca_break_add() */
    uint8_t on;                 /* enum qhca_stop_on */
    uint8_t fields;             /* QHCA_BRK_* */
    bool once;                  /* vanishes with its first stop */
    uint32_t number;            /* QPN where nothing else is said above */
    uint32_t peer, index, psn, code;
    uint64_t wr_id;
    uint8_t syndrome;
    uint64_t ignore;            /* hits to let pass */
    uint64_t hits;              /* so far */
};

#define QHCA_BREAKS_MAX     64

/** Name as in commands: "doorbell", "recv-wqe"; static, NULL past the end. */
const char *qhca_on_name(enum qhca_stop_on on);

/**
 * Set a break condition; @b->id and @b->hits are filled in.  Returns NULL, or a
 * static text that says what is wrong.
 */
const char *qhca_break_add(struct qhca *e, struct qhca_break *b);
/** Remove it; false if there is none with this @id.  0: all of them. */
bool qhca_break_remove(struct qhca *e, uint32_t id);
/** The condition with the least id above @id, or NULL. */
const struct qhca_break *qhca_break_next(struct qhca *e, uint32_t id);

/**
 * Stop at the @count-th event of the kind @on from now on, or earlier, at a
 * break, which ends the step.  If the adapter stands it does not go on by
 * this.  Returns NULL, or a static text that says what is wrong.
 */
const char *qhca_debug_step(struct qhca *e, enum qhca_stop_on on,
                            uint64_t count);
/** Forget a step that has not ended; one that has is a stop like any. */
void qhca_debug_step_cancel(struct qhca *e);
/** May a call of the engine from now on lead to ops->stop()? */
bool qhca_debugging(const struct qhca *e);
/** Does it stand still, within ops->stop()? */
bool qhca_debug_stopped(const struct qhca *e);
/**
 * From now on a stop is told and nothing else: ops.stop() returns at once, and
 * the adapter works on as if nobody looked.  For machines whose run must not
 * depend on a debugger, as in record and replay.
 */
void qhca_debug_watch_only(struct qhca *e);
/**
 * Watching only: the machine goes on after the stop that was told.  May be
 * called within ops.stop().
 */
void qhca_debug_gone_on(struct qhca *e);
/**
 * With @on no event is a stop, so that a call that stands can be brought to its
 * end at once: for a reset, or an unplug.
 */
void qhca_debug_release(struct qhca *e, bool on);
/**
 * Show the stop: why, the event, and, with @trail, the events since the last
 * time it went on (the last 64).
 */
void qhca_debug_show(struct qhca *e, bool trail, const struct qhca_emit *em);

/** The fields (QHCA_BRK_*) a condition on @on can ask for. */
unsigned qhca_on_fields(enum qhca_stop_on on);
/**
 * Show of each kind of event which fields a condition can ask for, and the
 * names of its codes and syndromes.
 */
void qhca_debug_names(const struct qhca_emit *em);

#endif /* QHCA_BREAKPOINT_H */
