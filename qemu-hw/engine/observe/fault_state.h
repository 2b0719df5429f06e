/* SPDX-License-Identifier: GPL-2.0-or-later */
/* State of fault injection. */
#ifndef QHCA_FAULT_STATE_H
#define QHCA_FAULT_STATE_H

#include "adapter/adapter.h"
#include "ethernet/flow.h"
#include "transport/rc.h"
#include "observe/fault.h"

#define QHCA_FAULT_STREAMS  2048    /* a power of two */
#define QHCA_FAULT_FRAMES   512
#define QHCA_FAULT_VECTORS  2048
#define QHCA_FAULT_GARBAGE  (1 << 17)   /* bytes; longer writes do not match */

/* What a rule has counted for one object. */
struct qhca_fault_stream {
    uint32_t rule;              /* id; 0: free */
    uint64_t key;               /* object number, and its kind */
    uint32_t ordinal;           /* objects this rule matched before it */
    uint64_t count;
};

/* A held packet, or frame of the Ethernet function. */
struct qhca_fault_frame {
    bool used;
    bool ethernet;
    bool in;                    /* received; else to be sent */
    bool wire, loop;            /* to be sent: where to */
    bool group;                 /* Ethernet, loop: by our own rules only */
    bool looping;               /* received: from ourselves */
    uint32_t rule;
    uint32_t qpn;               /* Ethernet: its key, see fault_frame.c */
    uint32_t after;             /* this many of the QP's packets go first */
    uint64_t deadline;          /* 0: it is due; UINT64_MAX: no deadline */
    uint64_t seq;
    uint32_t len;
    uint8_t *data;
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
    uint64_t lost;              /* packets dropped for want of room */
    bool flushing;
    bool reset_wanted;
    /* the link */
    uint32_t link_rule;         /* id of the rule that pulled it; 0: none */
    bool link_wire;             /* the link state without the rule */
    uint64_t link_until;        /* UINT64_MAX: until the rule is removed */
    /* the next admin command */
    bool command_asked;         /* it is late, or was and is due */
    uint32_t command_rule;      /* id of the rule that made it late */
    uint64_t command_until;     /* 0: it is due */
    /* held interrupts: a bit for each vector, and when they are sent */
    unsigned irqs;
    uint64_t irq[QHCA_FAULT_VECTORS / 64];
    uint32_t irq_rule[QHCA_FAULT_VECTORS];
    uint64_t irq_until[QHCA_FAULT_VECTORS];
    uint8_t spoilt[QHCA_ETH_MAX_FRAME];     /* a packet, modified */
    uint8_t garbage[QHCA_FAULT_GARBAGE];    /* written instead */
    struct qhca_fault_frame frame[QHCA_FAULT_FRAMES];
};

/* What a rule is matched against: the place and what is known there. */
struct qhca_fault_site {
    uint8_t at;
    uint8_t direction, kind, access, opcode, syndrome;
    uint8_t qp_type;
    bool has_qp;                /* qp_type is valid */
    bool has_rel;               /* rel is valid */
    bool has_payload;
    bool can_be_garbage;
    bool spared;                /* only by rules with number, kind or address */
    uint32_t number, peer, psn, rel;
    uint64_t addr, len, index;
};

/* The result: which actions hit. */
struct qhca_fault_hits {
    uint32_t actions;           /* bit per enum qhca_fault_action */
    uint32_t rule[QHCA_FLT_ACTIONS];    /* the first rule with that action */
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

/* Evaluate all rules; acts at once on what concerns the whole adapter. */
bool qhca_fault_ask(struct qhca *e, const struct qhca_fault_site *s,
                    struct qhca_fault_hits *h);
/* Recompute which places have rules. */
void qhca_fault_sites(struct qhca *e);

/* ---- fault_held.c: held packets ---- */
/* Hold back a packet, described by @what, if the faults @h want that. */
bool qhca_fault_holds_back(struct qhca *e, const struct qhca_fault_hits *h,
                           struct qhca_fault_frame *what, const uint8_t *data,
                           uint32_t len);
/*
 * What follows a packet that has passed or is held back: its copies, and those
 * held with a seq less than @before that it had to overtake.
 */
void qhca_fault_behind(struct qhca *e, const struct qhca_fault_hits *h,
                       struct qhca_fault_frame *what, const uint8_t *data,
                       uint32_t len, uint64_t before);
/*
 * Send a packet, or hold it back, and what follows it.  A RoCE packet to
 * ourselves lies in the next loop slot.
 */
void qhca_fault_send(struct qhca *e, const struct qhca_fault_hits *h,
                     struct qhca_fault_frame *what, const uint8_t *data,
                     uint32_t len);
/* Release the packets that @rule (0: any) holds. */
void qhca_fault_release(struct qhca *e, uint32_t rule);
/* Drop all held packets. */
void qhca_fault_drop_frames(struct qhca *e);
/* The earliest deadline of a held packet. */
uint64_t qhca_fault_frames_deadline(const struct qhca *e);
/* Mark the packets whose deadline has passed as due. */
void qhca_fault_frames_due(struct qhca *e, uint64_t now);

/* ---- see struct qhca_hooks ---- */
bool qhca_fault_dma(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                    size_t len, bool write, const void **data);
bool qhca_fault_table(struct qhca *e, const struct qhca_buf_table *t,
                      uint32_t num, uint64_t index);
bool qhca_fault_recv(struct qhca *e, uint32_t num);
bool qhca_fault_cqe(struct qhca *e, const struct qhca_cq *cq,
                    const struct qhca_cqe *cqe);
void qhca_fault_event(struct qhca *e, struct qhca_eq *eq, uint32_t obj);
bool qhca_fault_irq(struct qhca *e, uint32_t vector);
bool qhca_fault_command(struct qhca *e, uint8_t opcode);
bool qhca_fault_command_waits(struct qhca *e);
uint64_t qhca_fault_register(struct qhca *e, uint64_t off, unsigned size,
                             uint64_t val);
void qhca_fault_tx(struct qhca *e, struct qhca_frame *f, uint32_t num,
                   uint32_t ext, uint32_t payload, uint32_t len);
void qhca_fault_rx(struct qhca *e, const struct qhca_rx *rx);
void qhca_fault_frame_tx(struct qhca *e, const uint8_t *frame, size_t len,
                         bool own, bool group);
void qhca_fault_frame_rx(struct qhca *e, struct qhca_eth_frame *f);
bool qhca_fault_set_link(struct qhca *e, bool up);
void qhca_fault_reset(struct qhca *e);
void qhca_fault_finish(struct qhca *e);
uint64_t qhca_fault_deadline(const struct qhca *e);
void qhca_fault_timer(struct qhca *e, uint64_t now);
void qhca_fault_flush(struct qhca *e);

#endif /* QHCA_FAULT_STATE_H */
