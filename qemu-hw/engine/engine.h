/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The qhca engine: a whole RDMA adapter in portable C11.
 *
 * It has no threads, no globals and no clock of its own, and knows nothing of
 * QEMU: everything it does to the outside world goes through struct qhca_ops.
 * The same code runs in QEMU, in unit tests, in fuzzers and in the network
 * simulation.
 *
 * The engine is single-threaded and not re-entrant: an operation must not call
 * back into it.  (kick and set_timer do lead to a call, but a later one.)
 */
#ifndef QHCA_ENGINE_H
#define QHCA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rdma/qhca-hw.h"

struct qhca;                    /* one adapter */
struct qhca_trace;

/* What the wire answers to a frame. */
enum qhca_wire {
    QHCA_WIRE_BUSY,             /* not sent */
    QHCA_WIRE_READY,            /* sent */
    QHCA_WIRE_FULL,             /* sent, but the next would not be */
};

/* What the engine needs from its environment. */
struct qhca_ops {
    /*
     * Read or write @len bytes of guest memory at DMA address @addr.  Return
     * false if any byte could not be accessed (unmapped IOVA, bus master off);
     * the contents of the buffer are then undefined.
     */
    bool (*dma_read)(void *opaque, uint64_t addr, void *buf, size_t len);
    bool (*dma_write)(void *opaque, uint64_t addr, const void *buf,
                      size_t len);
    /*
     * Store @val, given in CPU order, as 8 little-endian bytes at the 8-byte
     * aligned @addr: a single store, which the guest's CPUs see after every
     * earlier dma_write.
     */
    bool (*dma_store64)(void *opaque, uint64_t addr, uint64_t val);
    /*
     * Full memory barrier between the engine's DMA writes and its later
     * reads, as seen by the guest's CPUs (doorbell record NOTIFY protocol).
     */
    void (*dma_fence)(void *opaque);
    /*
     * Compare-and-swap of the 8 bytes at the aligned @addr, atomic against the
     * guest's CPUs.  Values are the little-endian memory read in CPU order.
     * *@old gets the previous value.
     */
    bool (*dma_cas64)(void *opaque, uint64_t addr, uint64_t cmp,
                      uint64_t swap, uint64_t *old);
    /*
     * The same three for device memory, addressed by offset; the engine stays
     * within config.dm_size.  NULL without device memory.
     */
    bool (*dm_read)(void *opaque, uint64_t off, void *buf, size_t len);
    bool (*dm_write)(void *opaque, uint64_t off, const void *buf,
                     size_t len);
    bool (*dm_cas64)(void *opaque, uint64_t off, uint64_t cmp,
                     uint64_t swap, uint64_t *old);
    /* Raise MSI-X vector @vector, 0 .. config.num_vectors - 1. */
    void (*msix)(void *opaque, unsigned vector);
    /*
     * Send one complete Ethernet frame (no FCS).  @frame belongs to the engine
     * again on return.  Unless the answer is QHCA_WIRE_READY, qhca_tx_ready()
     * will be called when the wire is free.
     */
    enum qhca_wire (*send)(void *opaque, const void *frame, size_t len);
    /* The device clock: virtual time in ns, monotonic. */
    uint64_t (*clock)(void *opaque);
    /* Call qhca_timer() at @deadline (absolute); UINT64_MAX: never. */
    void (*set_timer)(void *opaque, uint64_t deadline);
    /* Call qhca_run() soon, but not from within this call. */
    void (*kick)(void *opaque);
    /*
     * Memory links; all NULL if there are none.  Say where the @len bytes of
     * guest memory at DMA address @addr are in the regions that the peers of
     * all links may read.  False: not there, or not in one piece.
     */
    bool (*dma_share)(void *opaque, uint64_t addr, size_t len,
                      uint32_t *region, uint64_t *off);
    /* Ring the bell of the peer of link @id: it calls qhca_memlink_bell(). */
    void (*memlink_bell)(void *opaque, unsigned id);
    /*
     * Optional.  The peer of link @id sleeps, and was sent an acknowledgment:
     * ring its bell after a millisecond or so, unless memlink_bell() rings it
     * before.  False: not possible, or the one before had to be rung like that;
     * the engine calls memlink_bell().
     */
    bool (*memlink_bell_soon)(void *opaque, unsigned id);
    /*
     * The peer of link @id is copying from memory that must be revoked: wait a
     * moment.  False: it has taken too long.
     */
    bool (*memlink_wait)(void *opaque, unsigned id);
    /*
     * Link @id is no longer used: detach it when the peer has stopped, but not
     * from within this call.  @why: static text.
     */
    void (*memlink_cut)(void *opaque, unsigned id, const char *why);
    /* May be NULL.  One trace event, valid during the call; see trace.h. */
    void (*trace)(void *opaque, const struct qhca_trace *t);
    /*
     * May be NULL.  A break condition was met or a step is complete; see
     * breakpoint.h.  The engine is in the middle of its work and continues
     * when this returns.  Until then only inspect.h, breakpoint.h and
     * qhca_reg_read() may be called.
     */
    void (*stop)(void *opaque);
    /* With stop(), which is only called if this call can be stopped: can it? */
    bool (*can_stop)(void *opaque);
};

/* Fixed for the life of an adapter. */
struct qhca_config {
    uint8_t mac[6];             /* permanent MAC address, unicast */
    uint32_t num_vectors;       /* MSI-X vectors, 1..2048 */
    uint32_t max_qp;            /* 16..1 << 20; a power of two, as all below */
    uint32_t max_cq;
    uint32_t max_srq;
    uint32_t max_mr;
    uint32_t max_pd;
    uint32_t max_eq;
    uint32_t max_gid;           /* 1..256 */
    uint32_t max_eth_queues;
    uint32_t speed;             /* Mb/s, as reported to the guest */
    uint32_t run_budget;        /* packets sent per qhca_run(), 0: default */
    /* most objects that a reset destroys at once, 0: default */
    uint32_t reset_budget;
    uint32_t min_ack_timeout;   /* minimum ACK timeout exponent, 0..31 */
    uint64_t dm_size;           /* device memory: 0, or a power of two */
    bool super_frames;          /* all peers accept super-frames */
                                /* of Ethernet and of RoCEv2 */
    /*
     * How long frames are held to be merged with later ones, in microseconds,
     * 0..1000000.  0: only until the end of the next run.
     */
    uint32_t gro_hold;
};

/** Fill @cfg with the default limits; leaves mac alone. */
void qhca_config_default(struct qhca_config *cfg);

/**
 * Create an adapter in the reset state.  Returns NULL with *@err set to a
 * static text if @cfg is out of range or memory is short.  @ops is copied;
 * @opaque is passed to each operation.
 */
struct qhca *qhca_new(const struct qhca_config *cfg,
                      const struct qhca_ops *ops, void *opaque,
                      const char **err);
/** Destroy every object and the adapter.  Calls no operation. */
void qhca_free(struct qhca *e);
/**
 * The same in parts of at most @budget objects: true when all is gone, else
 * call it again, and nothing else.
 */
bool qhca_free_part(struct qhca *e, unsigned budget);
/** Function-level reset: as QHCA_CTRL_RESET.  Keeps the link state. */
void qhca_reset(struct qhca *e);

/** Register access, BAR 0.  @size is 4 or 8; a bad access reads as 0. */
uint64_t qhca_reg_read(struct qhca *e, uint64_t off, unsigned size);
void qhca_reg_write(struct qhca *e, uint64_t off, uint64_t val,
                    unsigned size);
/** Doorbell store, BAR 2.  Does a bounded batch of work before it returns. */
void qhca_db_write(struct qhca *e, uint64_t off, uint64_t val,
                   unsigned size);

/**
 * Receive a frame from the wire (no FCS); drops it if there is no room.  It may
 * be held to be merged with frames that follow: until the next qhca_run(), for
 * which kick() is called then, or as long as gro_hold says.
 */
void qhca_receive(struct qhca *e, const void *frame, size_t len);
/**
 * Call @fn for each packet that a frame on the wire represents: for all packets
 * of a super-frame of RoCEv2, else for the frame itself.  Needs no adapter.
 */
void qhca_each_packet(const void *frame, size_t len,
                      void (*fn)(void *opaque, const void *frame, size_t len),
                      void *opaque);
/** Do a bounded batch of pending work; calls kick() if there is more. */
void qhca_run(struct qhca *e);
/** To be called when the deadline given to set_timer() has passed. */
void qhca_timer(struct qhca *e);
/** To be called when the wire is free again, see send(). */
void qhca_tx_ready(struct qhca *e);
/** Set the link up or down; raises the port event. */
void qhca_set_link(struct qhca *e, bool up);

/* A region of a peer's memory, readable here. */
struct qhca_memlink_region {
    const uint8_t *base;
    uint64_t len;
};

/* Size of a ring; it begins as zeros, aligned to 4096. */
#define QHCA_MEMLINK_RING_BYTES 0x101000

/* A memory link to another adapter of this host; see memlink/memlink.h. */
struct qhca_memlink_config {
    uint8_t mac[6];             /* of the peer */
    uint64_t token;             /* random, the same at both ends */
    uint64_t secret;            /* random, unknown to the peer */
    void *tx, *rx;              /* the rings: the peer's rx and tx */
    const struct qhca_memlink_region *region;   /* copied */
    unsigned regions;
};

/**
 * Use a memory link; returns its number, or 0 if there are too many or memory
 * is short.  Rings and regions stay until qhca_memlink_detach() or qhca_free().
 */
unsigned qhca_memlink_attach(struct qhca *e,
                             const struct qhca_memlink_config *c);
/**
 * Stop using the link; packets take the wire.  The peer may still be copying
 * from memory, so qhca_memlink_detach() follows when it cannot any more.
 */
void qhca_memlink_end(struct qhca *e, unsigned id);
/** The link is gone: the peer reads no memory, or is not waited for. */
void qhca_memlink_detach(struct qhca *e, unsigned id);
/** The peer of link @id, if there is still one, has rung our bell. */
void qhca_memlink_bell(struct qhca *e, unsigned id);
/** How many records have come over link @id; 0 if there is none. */
uint64_t qhca_memlink_received(struct qhca *e, unsigned id);
/**
 * DMA has been switched off: revoke what peers may still read, and wait until
 * none reads it.  dma_share() must refuse from now on.
 */
void qhca_memlinks_revoke(struct qhca *e);
/** May packets use links?  Initially not.  Else they use the wire. */
void qhca_memlinks_allow(struct qhca *e, bool allowed);

/**
 * Turn the trace operation on or off; initially on, if there is one.  Not part
 * of the adapter's state and affects nothing else.
 */
void qhca_set_tracing(struct qhca *e, bool on);

/**
 * Save the whole state for snapshots and migration; see save.h.  The caller
 * must free() *@buf.  Returns false if out of memory.  Call only between calls
 * of the engine.
 */
bool qhca_save(struct qhca *e, void **buf, size_t *len);
/**
 * Load the saved state of an adapter with the same configuration, which this
 * release or an earlier one has saved.  @buf is not trusted.  Calls kick and
 * set_timer again for whatever was pending; the state of the wire, the vectors
 * and a debugger is not included.  On failure returns false, resets the adapter
 * and puts the reason into @why (@size bytes).
 */
bool qhca_load(struct qhca *e, const void *buf, size_t len, char *why,
               size_t size);

/** For properties, tests and tools.  Returns false if no such object exists. */
bool qhca_query_qp(struct qhca *e, uint32_t qpn, struct qhca_qpc *out);
bool qhca_query_cq(struct qhca *e, uint32_t cqn, struct qhca_cqc *out);
bool qhca_query_mr(struct qhca *e, uint32_t key, struct qhca_mpt *out);
uint64_t qhca_stat(struct qhca *e, unsigned index);

#endif /* QHCA_ENGINE_H */
