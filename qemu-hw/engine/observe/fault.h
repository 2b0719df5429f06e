/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Faults on demand: rules that say what goes wrong, and when.
 *
 * A rule is asked where the trouble would happen, and what it does goes
 * through the same code as the real trouble: a DMA that a rule fails is one
 * that failed.
 * Nothing depends on the clock or on a generator that others use: a rule counts
 * what matches it, for each object by itself, and draws its random numbers from
 * (seed, rule, object, count).  So the same rules and the same traffic of a QP
 * give the same faults, whatever other QPs do meanwhile.
 *
 * No rule set, all this costs a test of one word at each of those places.
 *
 * This is the developer's, not the adapter's state: a reset of the adapter
 * drops the packets and interrupts that are kept back, and nothing else.
 */
#ifndef QHCA_FAULT_H
#define QHCA_FAULT_H

#include "../engine.h"
#include "../base/fault_site.h"

/* What goes wrong. */
enum qhca_fault_action {
    /* at a packet */
    QHCA_FLT_DROP,
    QHCA_FLT_DELAY,             /* by ns */
    QHCA_FLT_DUPLICATE,         /* packets: how many more */
    QHCA_FLT_REORDER,           /* packets: how many go first */
    QHCA_FLT_CORRUPT,           /* some byte of it; the ICRC tells */
    QHCA_FLT_CORRUPT_ICRC,
    QHCA_FLT_CORRUPT_PAYLOAD,   /* with the right ICRC: nothing tells */
    QHCA_FLT_NO_ACK,            /* responses are not sent */
    /* where a receive is taken: there is none */
    QHCA_FLT_RNR,
    /* at a DMA access: it fails */
    QHCA_FLT_DMA_ERROR,
    /* where a buffer table is walked: the entry is not valid */
    QHCA_FLT_TABLE_ERROR,
    /* where a CQE is written: the CQ is full */
    QHCA_FLT_CQ_OVERFLOW,
    /* where an event is written: the EQ is full, until the rule goes */
    QHCA_FLT_STALL_EVENTS,
    /* at an interrupt */
    QHCA_FLT_HOLD_INTERRUPT,    /* sent after ns, or when the rule goes */
    QHCA_FLT_LOSE_INTERRUPT,
    /* anywhere */
    QHCA_FLT_FATAL,             /* the device fails and says so */
    QHCA_FLT_RESET,             /* the device resets itself */
    QHCA_FLT_LINK_DOWN,         /* for ns, or until the rule goes */
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
#define QHCA_FAULT_TEXT     2048    /* enough for any rule as text */

struct qhca_fault_rule {
    uint32_t id;                /* given by qhca_fault_add() */
    uint8_t action;             /* enum qhca_fault_action */
    uint8_t at;                 /* enum qhca_fault_at; with QHCA_FLT_AT */
    uint32_t fields;            /* QHCA_FLT_*: those given */
    /* what must be so */
    uint32_t number, peer;
    uint32_t psn, psn_last;     /* both included; may go round past 2^24 */
    bool psn_relative;          /* counted from the first PSN of the QP */
    uint32_t opcode[8];         /* BTH opcodes: a bit for each of 256 */
    uint8_t syndrome;           /* of the AETH */
    uint8_t qp_type;            /* QHCA_QPT_* */
    uint8_t kind;               /* enum qhca_dma */
    uint8_t access;             /* QHCA_FLT_READ, _WRITE or both */
    uint8_t direction;          /* QHCA_FLT_OUT, _IN or both; default: out */
    uint64_t addr, addr_last;   /* DMA addresses, both included */
    uint64_t index, index_last; /* table entries, both included */
    /* which of those, counted for each object by itself, from 1 */
    uint64_t skip;              /* let so many pass first */
    uint64_t nth;               /* behind those: only this one; 0: any */
    uint64_t every;             /* only each so many-th; 0: any */
    uint32_t chance;            /* parts per million */
    uint64_t count;             /* of all objects: no more hits than this */
    /* more about the action */
    uint64_t ns;                /* of virtual time */
    uint32_t packets;
    /* what happened so far */
    uint64_t matches, hits;
    uint32_t order;             /* rules added before, since the seed was set */
};

/**
 * Add a rule, also while a debugger stops the adapter if it is not for now;
 * @f->id and what is not given are filled in.  Returns NULL, or a static text
 * that says what is wrong and what would be right.
 */
const char *qhca_fault_add(struct qhca *e, struct qhca_fault_rule *f);
/** Fill in what is not given and say what is wrong, but add nothing. */
const char *qhca_fault_check(struct qhca_fault_rule *f);
/**
 * Remove it, and let go what it keeps back; false if there is none with this
 * @id.  0: all of them.  Not while a debugger stops the adapter.
 */
bool qhca_fault_remove(struct qhca *e, uint32_t id);
/** The rule with the least id above @id, or NULL. */
const struct qhca_fault_rule *qhca_fault_next(struct qhca *e, uint32_t id);
/**
 * All counts begin again, and random numbers come from @seed (default: 1).
 * Returns NULL, or a static text that says what is wrong.
 */
const char *qhca_fault_seed(struct qhca *e, uint64_t seed);
/** The seed; packets and interrupts kept back at present. */
uint64_t qhca_fault_get_seed(const struct qhca *e);
unsigned qhca_fault_held(const struct qhca *e);

/** Names as in commands: "drop", "packet", "wqe"; static, NULL past the end. */
const char *qhca_fault_action_name(unsigned action);
const char *qhca_fault_at_name(unsigned at);
const char *qhca_dma_name(unsigned kind);
/** Where a rule with this action is asked if it does not say. */
uint8_t qhca_fault_default_at(uint8_t action);

/* ---- fault_text.c: rules as text, "drop number=17 psn=5-9 nth=2" ---- */

/**
 * Add the opcodes that @name stands for to @opcode: a number, a name
 * ("SEND_ONLY", of any transport) or a group ("request", "response", "send",
 * "write", "read", "read-response", "atomic", "ack"); several with commas.
 */
bool qhca_fault_opcode(const char *name, uint32_t opcode[8]);
/** QHCA_QPT_* of a name like "rc"; false: none. */
bool qhca_fault_qp_type(const char *name, uint8_t *type);
/**
 * Read one rule from @line.  Returns true, or false with a text of what is
 * wrong and how it would be right in @err.
 */
bool qhca_fault_parse(const char *line, struct qhca_fault_rule *f, char *err,
                      size_t len);
/**
 * Add all rules of @text: one a line (or between semicolons), "#" begins a
 * comment, "seed NUMBER" sets the seed.  Nothing is added if anything is wrong.
 */
bool qhca_fault_parse_all(struct qhca *e, const char *text, char *err,
                          size_t len);
/** The rule as text that can be read again; never more than @len bytes. */
void qhca_fault_format(const struct qhca_fault_rule *f, char *buf, size_t len);

#endif /* QHCA_FAULT_H */
