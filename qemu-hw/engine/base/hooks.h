/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Where observers are attached: the only way from the adapter to them. */
#ifndef QHCA_HOOKS_H
#define QHCA_HOOKS_H

#include "engine.h"
#include "base/fault_site.h"

struct qhca_cq;
struct qhca_cqe;
struct qhca_frame;
struct qhca_qp;
struct qhca_rx;
struct qhca_table;
struct qhca_trace;

/*
 * Where the observers (observe/) look into the adapter's work, and change it on
 * demand.  The adapter calls a hook only while its flag in struct qhca is set,
 * which only an observer does: without observers there is nothing to call.
 */
struct qhca_hooks {
    /* ---- while debugging ---- */
    /* An event of the trace.  Is it wanted outside, too? */
    bool (*event)(struct qhca *e, const struct qhca_trace *t);
    /* A stop that waited until what it is about is accounted for. */
    void (*stop_due)(struct qhca *e);
    /* qhca_set_tracing() */
    void (*tracing)(struct qhca *e, bool on);
    /* ---- with a rule for the site, see qhca_faulty(): must this fail? ---- */
    bool (*dma_fails)(struct qhca *e, uint8_t kind, uint32_t num,
                      uint64_t addr, size_t len, bool write);
    bool (*table_fails)(struct qhca *e, const struct qhca_table *t,
                        uint32_t num, uint64_t index);
    bool (*recv_fails)(struct qhca *e, const struct qhca_qp *qp);
    bool (*cqe_fails)(struct qhca *e, const struct qhca_cq *cq,
                      const struct qhca_cqe *cqe);
    bool (*event_fails)(struct qhca *e, uint32_t eqn, uint32_t obj);
    /* The interrupt is lost, or sent later by the observer. */
    bool (*irq_fails)(struct qhca *e, uint32_t vector);
    /*
     * Send a finished frame of @num as the rules have it.  It counts as sent
     * whatever happens to it.
     */
    void (*tx)(struct qhca *e, struct qhca_frame *f, uint32_t num,
               uint32_t ext, uint32_t payload, uint32_t len);
    /* A packet came: drop, spoil, keep or deliver it. */
    void (*rx)(struct qhca *e, const struct qhca_rx *rx);
    /* ---- while e->faults: there are rules, or there were ---- */
    /* The link's state as the wire has it; false: a fault hides it. */
    bool (*set_link)(struct qhca *e, bool up);
    /* The adapter was reset: forget what was under way. */
    void (*reset)(struct qhca *e);
    /* At the end of an entry point: reset the adapter if that is due. */
    void (*finish)(struct qhca *e);
    uint64_t (*deadline)(const struct qhca *e);     /* UINT64_MAX: none */
    void (*timer)(struct qhca *e, uint64_t now);
    /* Frames that are due go on, as far as the wire takes them. */
    void (*flush)(struct qhca *e);
    /* ---- whenever there are hooks ---- */
    /* Another state comes: what was stopped for is no more.  Breaks stay. */
    void (*forget_stop)(struct qhca *e);
    /* The adapter goes. */
    void (*free)(struct qhca *e);
};

#endif /* QHCA_HOOKS_H */
