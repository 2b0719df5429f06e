/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fault injection: rules that say what goes wrong, and when.
 *
 * A rule is evaluated where the real error would occur and takes the same code
 * path: a DMA access that a rule fails is a failed DMA access.  Nothing depends
 * on the clock or on a shared random number generator: a rule counts its
 * matches for each object separately and derives its random numbers from (seed,
 * rule, object, count).  So the same rules and the same traffic of a QP give
 * the same faults, whatever other QPs do meanwhile.
 *
 * Without rules each of these places costs a test of one word.
 *
 * This state belongs to the developer, not to the adapter: a reset of the
 * adapter drops the held packets and interrupts, and changes nothing else.
 */
#ifndef QHCA_FAULT_H
#define QHCA_FAULT_H

#include "../engine.h"
#include "../base/dma_kind.h"
#include "../base/fault_site.h"

/* What goes wrong. */
enum qhca_fault_action {
    /* at a packet */
    QHCA_FLT_DROP,
    QHCA_FLT_DELAY,             /* by ns */
    QHCA_FLT_DUPLICATE,         /* packets: how many extra copies */
    QHCA_FLT_REORDER,           /* packets: how many overtake it */
    QHCA_FLT_CORRUPT,           /* some byte of it; the ICRC detects it */
    QHCA_FLT_CORRUPT_ICRC,
    QHCA_FLT_CORRUPT_PAYLOAD,   /* with a correct ICRC: undetected */
    QHCA_FLT_NO_ACK,            /* responses are not sent */
    /* where a receive WQE is taken: there is none */
    QHCA_FLT_RNR,
    /* at a DMA access: it fails */
    QHCA_FLT_DMA_ERROR,
    /* where a buffer table is walked: the entry is invalid */
    QHCA_FLT_TABLE_ERROR,
    /* where a CQE is written: the CQ is full */
    QHCA_FLT_CQ_OVERFLOW,
    /* where an event is written: the EQ is full, until the rule is removed */
    QHCA_FLT_STALL_EVENTS,
    /* at an interrupt */
    QHCA_FLT_HOLD_INTERRUPT,    /* sent after ns, or when the rule is removed */
    QHCA_FLT_LOSE_INTERRUPT,
    /* anywhere */
    QHCA_FLT_FATAL,             /* fatal device error, reported */
    QHCA_FLT_RESET,             /* the device resets itself */
    QHCA_FLT_LINK_DOWN,         /* for ns, or until the rule is removed */
    /* at a DMA write, or where a register is read: other bytes instead */
    QHCA_FLT_GARBAGE,
    QHCA_FLT_ACTIONS
};

/* Which fields of a rule were given. */
#define QHCA_FLT_NUMBER     0x0001
#define QHCA_FLT_PEER       0x0002
#define QHCA_FLT_PSN        0x0004
#define QHCA_FLT_OPCODE     0x0008
#define QHCA_FLT_SYNDROME   0x0010
#define QHCA_FLT_QP_TYPE    0x0020
#define QHCA_FLT_KIND       0x0040
#define QHCA_FLT_ADDR       0x0080
#define QHCA_FLT_INDEX      0x0100
#define QHCA_FLT_ACCESS     0x0200
#define QHCA_FLT_DIRECTION  0x0400
#define QHCA_FLT_CHANCE     0x0800
#define QHCA_FLT_COUNT      0x1000
#define QHCA_FLT_AT         0x2000
#define QHCA_FLT_NS         0x4000
#define QHCA_FLT_PACKETS    0x8000

#define QHCA_FLT_OUT        1   /* directions */
#define QHCA_FLT_IN         2
#define QHCA_FLT_READ       1   /* accesses */
#define QHCA_FLT_WRITE      2

#define QHCA_FAULTS_MAX     64
#define QHCA_FAULT_PPM      1000000

struct qhca_fault_rule {
    uint32_t id;                /* set by qhca_fault_add() */
    uint8_t action;             /* enum qhca_fault_action */
    uint8_t at;                 /* enum qhca_fault_at; with QHCA_FLT_AT */
    uint32_t fields;            /* QHCA_FLT_*: which fields are given */
    /* what must match */
    uint32_t number, peer;
    uint32_t psn, psn_last;     /* inclusive; may wrap at 2^24 */
    bool psn_relative;          /* relative to the QP's first PSN */
    uint32_t opcode[8];         /* BTH opcodes: a bitmap of 256 */
    uint8_t syndrome;           /* of the AETH */
    uint8_t qp_type;            /* QHCA_QPT_* */
    uint8_t kind;               /* enum qhca_dma */
    uint8_t access;             /* QHCA_FLT_READ, _WRITE or both */
    uint8_t direction;          /* QHCA_FLT_OUT, _IN or both; default: out */
    uint64_t addr, addr_last;   /* DMA addresses, inclusive */
    uint64_t index, index_last; /* table entries, inclusive */
    /* which matches, counted per object, from 1 */
    uint64_t skip;              /* let this many pass first */
    uint64_t nth;               /* after those: only this one; 0: any */
    uint64_t every;             /* one occurrence in this many; 0: all */
    uint32_t chance;            /* parts per million */
    uint64_t count;             /* at most this many hits, of all objects */
    /* parameters of the action */
    uint64_t ns;                /* of virtual time */
    uint32_t packets;
    /* so far */
    uint64_t matches, hits;
    uint32_t order;             /* rules added before, since the seed was set */
};

/**
 * Add a rule.  Sets @f->id and the defaults of fields not given.  Returns NULL,
 * or a static text that says what is wrong and what would be right; its first
 * word in quotes is the wrong member of QhcaFault in QEMU's schema.  While a
 * debugger stops the adapter, rules that act at once are refused.
 */
const char *qhca_fault_add(struct qhca *e, struct qhca_fault_rule *f);
/** Check a rule and set the defaults of fields not given, without adding it. */
const char *qhca_fault_check(struct qhca_fault_rule *f);
/**
 * Remove rule @id, 0: all, and release what it holds; false if there is no such
 * rule.  Not while a debugger stops the adapter.
 */
bool qhca_fault_remove(struct qhca *e, uint32_t id);
/** The rule with the lowest id above @id, or NULL. */
const struct qhca_fault_rule *qhca_fault_next(struct qhca *e, uint32_t id);
/**
 * Restart all counts and derive random numbers from @seed (default: 1).
 * Returns NULL, or a static error text.
 */
const char *qhca_fault_seed(struct qhca *e, uint64_t seed);
/** The seed; the number of packets and interrupts held. */
uint64_t qhca_fault_get_seed(const struct qhca *e);
unsigned qhca_fault_held(const struct qhca *e);

/** The name in QEMU's schema, "drop"; static, NULL past the end. */
const char *qhca_fault_action_name(unsigned action);
/**
 * Set the bits of the opcodes that @name designates in @opcode: a name as in
 * traces ("SEND_ONLY", of any transport), or a group ("request",
 * "response", "send", "write", "read", "read-response", "atomic").  False if it
 * is neither.
 */
bool qhca_fault_opcode(const char *name, uint32_t opcode[8]);

#endif /* QHCA_FAULT_H */
