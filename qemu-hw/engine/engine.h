/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The qhca engine: a whole RDMA adapter in portable C11.
 *
 * It has no thread, no global, no clock of its own and knows nothing of QEMU:
 * whatever it does to the world goes through struct qhca_ops.  The same code
 * runs inside QEMU, in unit tests, in fuzzers and in the network simulation.
 *
 * Contract of calls: single-threaded, not re-entrant.  An operation may not
 * call back into the engine (but kick, set_timer may of course lead to a call
 * later).
 */
#ifndef QHCA_ENGINE_H
#define QHCA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/qhca-hw.h"

struct qhca;                    /* one adapter */
struct qhca_trace;

/* What the engine asks of its surroundings. */
struct qhca_ops {
    /*
     * Read or write @len bytes of guest memory at DMA address @addr.
     * Return false when any byte could not be accessed (unmapped IOVA, bus
     * master off); the buffer is then undefined.
     */
    bool (*dma_read)(void *opaque, uint64_t addr, void *buf, size_t len);
    bool (*dma_write)(void *opaque, uint64_t addr, const void *buf,
                      size_t len);
    /*
     * Store the 8 bytes of @val, given in CPU order and stored
     * little-endian, at the 8-byte aligned @addr: one store, which becomes
     * visible to the guest's CPUs after every earlier dma_write.
     */
    bool (*dma_store64)(void *opaque, uint64_t addr, uint64_t val);
    /*
     * Full memory barrier between the engine's DMA writes and its later
     * reads, as seen by the guest's CPUs (doorbell record NOTIFY protocol).
     */
    void (*dma_fence)(void *opaque);
    /*
     * Compare-and-swap of the 8 bytes at the aligned @addr, atomic against
     * the guest's CPUs.  Values are the CPU-order reading of the
     * little-endian memory.  *@old gets what was there.
     */
    bool (*dma_cas64)(void *opaque, uint64_t addr, uint64_t cmp,
                      uint64_t swap, uint64_t *old);
    /*
     * The same three for device memory, which is reached by offset; the
     * engine stays within config.dm_size.  NULL without device memory.
     */
    bool (*dm_read)(void *opaque, uint64_t off, void *buf, size_t len);
    bool (*dm_write)(void *opaque, uint64_t off, const void *buf,
                     size_t len);
    bool (*dm_cas64)(void *opaque, uint64_t off, uint64_t cmp,
                     uint64_t swap, uint64_t *old);
    /* Raise MSI-X vector @vector, 0 .. config.num_vectors - 1. */
    void (*msix)(void *opaque, unsigned vector);
    /*
     * Send one Ethernet frame (no FCS), complete in @frame.  The frame is
     * the engine's again on return.  False: the wire takes nothing now, and
     * qhca_tx_ready() will be called when it does; the frame was not sent.
     */
    bool (*send)(void *opaque, const void *frame, size_t len);
    /* The device clock: nanoseconds of virtual time, never goes back. */
    uint64_t (*clock)(void *opaque);
    /* Call qhca_timer() at @deadline (absolute); UINT64_MAX: never. */
    void (*set_timer)(void *opaque, uint64_t deadline);
    /* Call qhca_run() soon, but not from within this call. */
    void (*kick)(void *opaque);
    /* May be NULL.  One event of the trace; see trace.h.  @t is on loan. */
    void (*trace)(void *opaque, const struct qhca_trace *t);
    /*
     * May be NULL.  A break was met or a step done, see debug.h.  The engine
     * is in the middle of its work and goes on with it when this returns.
     * Until then only looks (inspect.h), what is in debug.h and
     * qhca_reg_read() may be called.
     */
    void (*stop)(void *opaque);
};

/* What is fixed for the life of an adapter. */
struct qhca_config {
    uint8_t mac[6];             /* permanent MAC address, unicast */
    uint32_t num_vectors;       /* MSI-X vectors, 1..2048 */
    uint32_t max_qp;            /* 16..1 << 20, a power of two like all below */
    uint32_t max_cq;
    uint32_t max_srq;
    uint32_t max_mr;
    uint32_t max_pd;
    uint32_t max_eq;
    uint32_t max_gid;           /* 1..256 */
    uint32_t max_eth_queues;
    uint32_t speed;             /* Mb/s told to the guest */
    uint32_t run_budget;        /* packets sent per qhca_run(), 0: default */
    uint32_t min_ack_timeout;   /* shorter ACK timeouts last as long, 0..31 */
    uint64_t dm_size;           /* device memory: 0, or a power of two */
};

/** Fill @cfg with the default limits; mac stays as it is. */
void qhca_config_default(struct qhca_config *cfg);

/**
 * Make an adapter in reset state.
 * Returns NULL with *@err set to a static text when @cfg is out of range or
 * memory is short.  @ops is copied; @opaque goes to each operation.
 */
struct qhca *qhca_new(const struct qhca_config *cfg,
                      const struct qhca_ops *ops, void *opaque,
                      const char **err);
/** Destroy every object and the adapter.  No operation is called. */
void qhca_free(struct qhca *e);
/** Function-level reset: as QHCA_CTRL_RESET.  Link state stays. */
void qhca_reset(struct qhca *e);

/** Register access, BAR 0.  @size is 4 or 8; a bad access reads as 0. */
uint64_t qhca_reg_read(struct qhca *e, uint64_t off, unsigned size);
void qhca_reg_write(struct qhca *e, uint64_t off, uint64_t val,
                    unsigned size);
/** Doorbell store, BAR 2.  Handles a bounded batch of work before return. */
void qhca_db_write(struct qhca *e, uint64_t off, uint64_t val,
                   unsigned size);

/** A frame came from the wire (no FCS).  Never fails: full means dropped. */
void qhca_receive(struct qhca *e, const void *frame, size_t len);
/** Do pending work, a bounded batch; asks for kick() if there is more. */
void qhca_run(struct qhca *e);
/** The deadline given to set_timer() has passed. */
void qhca_timer(struct qhca *e);
/** The wire takes frames again after send() returned false. */
void qhca_tx_ready(struct qhca *e);
/** Link up or down; raises the port event. */
void qhca_set_link(struct qhca *e, bool up);

/**
 * Whether the trace operation is called at all; it is, to begin with, if there
 * is one.  Not a part of the adapter's state: it changes nothing else.
 */
void qhca_set_tracing(struct qhca *e, bool on);

/**
 * The whole state as bytes, for snapshots and migration; see save.h.  *@buf is
 * the caller's to free().  False: no memory.  Only between calls.
 */
bool qhca_save(struct qhca *e, void **buf, size_t *len);
/**
 * Take over a saved state, of an adapter with the same configuration.  @buf is
 * not trusted.  The ops kick and set_timer are called for what was owed; what
 * the wire, the vectors and a debugger do is not part of the state.  False:
 * the adapter is reset, and @why (@size bytes) says what was wrong.
 */
bool qhca_load(struct qhca *e, const void *buf, size_t len, char *why,
               size_t size);

/** Introspection for properties, tests and tools: false if no such object. */
bool qhca_query_qp(struct qhca *e, uint32_t qpn, struct qhca_qpc *out);
bool qhca_query_cq(struct qhca *e, uint32_t cqn, struct qhca_cqc *out);
bool qhca_query_mr(struct qhca *e, uint32_t key, struct qhca_mpt *out);
uint64_t qhca_stat(struct qhca *e, unsigned index);
/** Bytes the engine itself keeps for one idle QP (bench and limits test). */
size_t qhca_qp_footprint(void);

#endif /* QHCA_ENGINE_H */
