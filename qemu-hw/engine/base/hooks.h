/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hooks for observers: the only interface from the adapter to them. */
#ifndef QHCA_HOOKS_H
#define QHCA_HOOKS_H

#include "engine.h"
#include "base/fault_site.h"

struct qhca_cq;
struct qhca_cqe;
struct qhca_eq;
struct qhca_eth_frame;
struct qhca_frame;
struct qhca_qp;
struct qhca_rx;
struct qhca_buf_table;
struct qhca_trace;

/*
 * Points at which observers (observe/) inspect the adapter's work or change it.
 * The adapter calls a hook only while its flag in struct qhca is set, which
 * only observers do: without them no hook is called.
 */
struct qhca_hooks {
    /* ---- while debugging ---- */
    /* A trace event.  Returns true if ops.trace() should get it as well. */
    bool (*event)(struct qhca *e, const struct qhca_trace *t);
    /* Take the stop that was deferred until its cause was accounted for. */
    void (*stop_due)(struct qhca *e);
    /* qhca_set_tracing() */
    void (*tracing)(struct qhca *e, bool on);
    /* ---- with a rule for the site, see qhca_faulty(); true: must fail ---- */
    /*
     * @data: of a write, what is written; *@data may be replaced. NULL: it is
     * not known yet, or a read.
     */
    bool (*dma_fails)(struct qhca *e, uint8_t kind, uint32_t num,
                      uint64_t addr, size_t len, bool write,
                      const void **data);
    bool (*table_fails)(struct qhca *e, const struct qhca_buf_table *t,
                        uint32_t num, uint64_t index);
    bool (*recv_fails)(struct qhca *e, uint32_t num);
    bool (*cqe_fails)(struct qhca *e, const struct qhca_cq *cq,
                      const struct qhca_cqe *cqe);
    /* An event of object @obj is to be written: stall @eq, or do nothing. */
    void (*stall_event)(struct qhca *e, struct qhca_eq *eq, uint32_t obj);
    /* True: the interrupt is lost, or the observer will send it later. */
    bool (*irq_fails)(struct qhca *e, uint32_t vector);
    /* True: do not execute the next admin command yet. */
    bool (*command_late)(struct qhca *e, uint8_t opcode);
    /* Returns the value that the driver reads instead of @val. */
    uint64_t (*reg_value)(struct qhca *e, uint64_t off, unsigned size,
                          uint64_t val);
    /*
     * Send a finished frame of QP @num as the rules demand.  It counts as sent
     * whatever happens to it.
     */
    void (*tx)(struct qhca *e, struct qhca_frame *f, uint32_t num,
               uint32_t ext, uint32_t payload, uint32_t len);
    /* A packet was received: drop, corrupt, hold or deliver it. */
    void (*rx)(struct qhca *e, const struct qhca_rx *rx);
    /*
     * The same for frames of the Ethernet function.  One to be sent goes to the
     * wire; @own: to ourselves instead; @group: to our own rules as well.
     */
    void (*frame_tx)(struct qhca *e, const uint8_t *frame, size_t len,
                     bool own, bool group);
    void (*frame_rx)(struct qhca *e, struct qhca_eth_frame *f);
    /* ---- while e->faults is set: there are, or were, rules ---- */
    /* The wire's link state changed; false: a fault hides the change. */
    bool (*set_link)(struct qhca *e, bool up);
    /* The adapter was reset: discard held frames and interrupts. */
    void (*reset)(struct qhca *e);
    /* At the end of an entry point: reset the adapter if a fault says so. */
    void (*finish)(struct qhca *e);
    uint64_t (*deadline)(const struct qhca *e);     /* ns; UINT64_MAX: none */
    void (*timer)(struct qhca *e, uint64_t now);
    /* Is the next admin command late? */
    bool (*command_waits)(struct qhca *e);
    /* Send frames that are due, as far as the wire takes them. */
    void (*flush)(struct qhca *e);
    /* ---- whenever hooks are set ---- */
    /* A new state is loaded: end the current stop.  Breaks are kept. */
    void (*forget_stop)(struct qhca *e);
    /* The adapter is being destroyed. */
    void (*free)(struct qhca *e);
};

#endif /* QHCA_HOOKS_H */
