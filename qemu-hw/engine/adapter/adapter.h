/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The adapter as a whole: registers, commands, doorbells, the run loop. */
#ifndef QHCA_ADAPTER_H
#define QHCA_ADAPTER_H

#include "ethernet/ethernet.h"

/*
 * An unfinished command, the one at asq_cons.  @busy: its input was read once;
 * the next qhca_admin_run() continues it.  @held: it was executed, and is
 * completed when no peer reads the memory that it has revoked.
 */
struct qhca_aq_job {
    bool busy, held;
    uint8_t status;             /* held: to be completed with, and @result */
    struct qhca_aq_cmd cmd;
    struct qhca_cqc in;
    uint64_t result;
};

/* Objects left over from before a reset, still to be destroyed. */
struct qhca_remains {
    struct qhca_remains *next;
    struct qhca *of;            /* an adapter that holds only these objects */
    unsigned kind;              /* being destroyed, see teardown.c */
    uint32_t num;               /* of the next one */
};

/* This layer's part of the adapter. */
struct qhca_adapter {
    uint32_t ctrl, aq_ctrl, db_shift, aq_shift;
    uint64_t asq_base, acq_base;
    uint32_t asq_prod, asq_cons;
    struct qhca_aq_job job;
    uint32_t latch_read, latch_write;       /* half of a 64-bit register */
    uint64_t latch_read_off, latch_write_off;   /* which register; 0: none */
    uint64_t timer_set;         /* the deadline last given to set_timer */
    struct qhca_remains *remains;       /* oldest first; NULL: none */
    struct qhca_remains *spare; /* without objects */
    struct qhca_remains own;    /* our own objects: qhca_free_part() */
};

/* ---- adapter.c ---- */
/* An adapter with empty tables and without operations; NULL: out of memory. */
struct qhca *qhca_adapter_alloc(const struct qhca_config *cfg);
/* Free an adapter without objects and links. */
void qhca_adapter_free(struct qhca *e);
/* Exchange the objects of two adapters of the same configuration. */
void qhca_swap_contents(struct qhca *a, struct qhca *b);

/* ---- teardown.c ---- */
/* Destroy all objects; the tables are empty then. */
void qhca_objects_free(struct qhca *e);
/*
 * For a reset: empty the tables.  If there are many objects, they are destroyed
 * later, by qhca_remains_free().
 */
void qhca_objects_remove(struct qhca *e);
/*
 * Destroy at most @budget objects, or fewer if they have many parts; true if
 * there are no more.
 */
bool qhca_objects_free_part(struct qhca *e, unsigned budget);
/* The same with objects left over from before a reset. */
void qhca_remains_free(struct qhca *e, unsigned budget);
/* Destroy all of them, and free what they used. */
void qhca_remains_end(struct qhca *e);

/* ---- receive.c ---- */
/* Receive at most @budget packets from memory links. */
unsigned qhca_memlinks_rx(struct qhca *e, unsigned budget);

/* ---- run.c ---- */
/* Work until @budget is used up or nothing is left. */
void qhca_work(struct qhca *e, unsigned budget);
/* QPs that waited for a memory link are ready now. */
void qhca_memlinks_woken(struct qhca *e);
/* Ends each entry point: kick() if work is left, update the timer. */
void qhca_finish(struct qhca *e);
/* The same where more frames may join those that are being merged. */
void qhca_finish_merging(struct qhca *e);
/* Compute the earliest deadline and pass it to set_timer if need be. */
void qhca_timer_update(struct qhca *e);

/* ---- admin.c ---- */
/* Run commands, or continue one, within the cost limit of one call. */
void qhca_admin_run(struct qhca *e);
/* Would it do anything now? */
bool qhca_admin_pending(struct qhca *e);
void qhca_io_admin(struct qhca_io *io);

/* ---- doorbell.c ---- */
uint32_t qhca_db_pages(const struct qhca *e);
/* Do the registers allow the adapter to be enabled? */
bool qhca_enable_ok(const struct qhca *e);

/* ---- query_device.c ---- */
qhca_cmd_fn qhca_cmd_nop, qhca_cmd_query_device, qhca_cmd_query_stats;

#endif /* QHCA_ADAPTER_H */
