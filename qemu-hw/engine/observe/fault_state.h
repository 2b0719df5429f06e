/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What faults on demand keep: flat, with no pointer, so that it can be saved as
 * it is.
 */
#ifndef QHCA_FAULT_STATE_H
#define QHCA_FAULT_STATE_H

#include "adapter/adapter.h"
#include "transport/rc.h"
#include "observe/fault.h"

#define QHCA_FAULT_STREAMS  2048    /* a power of two */
#define QHCA_FAULT_FRAMES   512
#define QHCA_FAULT_VECTORS  2048

/* What a rule has counted of one object. */
struct qhca_fault_stream {
    uint32_t rule;              /* id; 0: free */
    uint64_t key;               /* number, and which kind of it */
    uint32_t ordinal;           /* objects the rule met before it */
    uint64_t count;
};

/* A packet that is kept back. */
struct qhca_fault_frame {
    bool used;
    bool in;                    /* it came; else it goes out */
    bool wire, loop;            /* it goes: where to */
    bool looping;               /* it came: from ourselves */
    uint32_t rule, qpn;
    uint32_t after;             /* so many of the QP's packets go first */
    uint64_t deadline;          /* 0: it is due; UINT64_MAX: no deadline */
    uint64_t seq;
    uint32_t len;
    uint8_t data[QHCA_FRAME_MAX];
};

struct qhca_faults {
    uint64_t seed;
    uint32_t last_id, order;
    unsigned rules;
    struct qhca_fault_rule rule[QHCA_FAULTS_MAX];
    unsigned streams;
    struct qhca_fault_stream stream[QHCA_FAULT_STREAMS];
    unsigned frames;            /* used */
    uint64_t seq;
    uint64_t lost;              /* packets there was no room to keep */
    bool flushing;
    bool reset_wanted;
    /* the link */
    uint32_t link_rule;         /* id of the rule that pulled it; 0: none */
    bool link_wire;             /* what it would be */
    uint64_t link_until;        /* UINT64_MAX: until the rule goes */
    /* interrupts kept back: a bit for each vector, and when they go */
    unsigned irqs;
    uint64_t irq[QHCA_FAULT_VECTORS / 64];
    uint32_t irq_rule[QHCA_FAULT_VECTORS];
    uint64_t irq_until[QHCA_FAULT_VECTORS];
    uint8_t spoilt[QHCA_ETH_MAX_FRAME];     /* a packet that came, changed */
    struct qhca_fault_frame frame[QHCA_FAULT_FRAMES];
};

/* What is asked about: the site and what is known there. */
struct qhca_fault_site {
    uint8_t at;
    uint8_t direction, kind, access, opcode, syndrome;
    uint8_t qp_type;
    bool has_qp;                /* qp_type is valid */
    bool has_rel;               /* rel is valid */
    bool has_payload;
    bool spared;                /* a rule that names nothing does not mean it */
    uint32_t number, peer, psn, rel;
    uint64_t addr, len, index;
};

/* What hit. */
struct qhca_fault_hits {
    uint32_t actions;           /* bit per enum qhca_fault_action */
    uint32_t rule[QHCA_FLT_ACTIONS];    /* the first that did it */
    uint64_t ns;                /* the longest delay */
    uint64_t hold_ns;
    uint32_t copies, after;
    uint64_t draw;              /* a random number */
};

static inline bool qhca_fault_has(const struct qhca_fault_hits *h,
                                  unsigned action)
{
    return h->actions & 1u << action;
}

/* Ask all rules; what concerns the whole adapter is done at once. */
bool qhca_fault_ask(struct qhca *e, const struct qhca_fault_site *s,
                    struct qhca_fault_hits *h);
/* Which places have rules changed. */
void qhca_fault_sites(struct qhca *e);
/* Let go the packets that @rule (0: any) keeps back. */
void qhca_fault_release(struct qhca *e, uint32_t rule);
/* Forget all packets. */
void qhca_fault_drop_frames(struct qhca *e);
/* The earliest deadline of a packet. */
uint64_t qhca_fault_frames_deadline(const struct qhca *e);
/* Packets whose time has come are due. */
void qhca_fault_frames_due(struct qhca *e, uint64_t now);

/* ---- see struct qhca_hooks ---- */
bool qhca_fault_dma(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                    size_t len, bool write);
bool qhca_fault_table(struct qhca *e, const struct qhca_table *t,
                      uint32_t num, uint64_t index);
bool qhca_fault_recv(struct qhca *e, const struct qhca_qp *qp);
bool qhca_fault_cqe(struct qhca *e, const struct qhca_cq *cq,
                    const struct qhca_cqe *cqe);
bool qhca_fault_event(struct qhca *e, uint32_t eqn, uint32_t obj);
bool qhca_fault_irq(struct qhca *e, uint32_t vector);
void qhca_fault_tx(struct qhca *e, struct qhca_frame *f, uint32_t num,
                   uint32_t ext, uint32_t payload, uint32_t len);
void qhca_fault_rx(struct qhca *e, const struct qhca_rx *rx);
bool qhca_fault_set_link(struct qhca *e, bool up);
void qhca_fault_reset(struct qhca *e);
void qhca_fault_finish(struct qhca *e);
uint64_t qhca_fault_deadline(const struct qhca *e);
void qhca_fault_timer(struct qhca *e, uint64_t now);
void qhca_fault_flush(struct qhca *e);

#endif /* QHCA_FAULT_STATE_H */
