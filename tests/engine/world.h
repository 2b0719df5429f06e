/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One to four adapters, virtual time, and the wire between them.
 *
 * Everything happens in one event queue; the same seed gives exactly the same
 * run, byte by byte.  The wire is a switch: a frame goes to the adapter with
 * its destination MAC (or to all others if that is a group address).
 */
#ifndef QHCA_TEST_WORLD_H
#define QHCA_TEST_WORLD_H

#include <stdio.h>

#include "engine.h"
#include "base/trace.h"
#include "gmem.h"
#include "rng.h"

#define WORLD_NODES 4
#define WORLD_VECTORS 32
#define WORLD_FRAME_MAX 9300
#define WORLD_SUPER_MAX 65600   /* a super-frame */

struct world;

/* The wire's effects on frames; probabilities are out of 65536. */
struct wire {
    unsigned drop, dup, reorder, corrupt, truncate, refuse;
    uint64_t latency_ns;        /* one way */
    uint64_t jitter_ns;         /* additional random delay; keeps order */
    uint64_t reorder_ns;        /* maximum delay of a reordered frame */
    uint64_t speed_mbps;        /* 0: no limit */
    uint64_t queue_ns;          /* refuse the sender at this much */
    bool tells;                 /* ... or say so with the last frame taken */
    bool pad;                   /* pad frames to 60 bytes, as Ethernet does */
    /*
     * If set: returns false to drop the frame.  May change @frame within @len;
     * called before the faults above.
     */
    bool (*filter)(struct world *w, unsigned src, uint8_t *frame,
                   size_t *len);
};

struct node {
    struct world *w;
    unsigned id;
    struct qhca *e;
    struct gmem mem;
    uint8_t mac[6];
    /* timer of the engine */
    uint64_t deadline, timer_at;
    bool kicked, tx_waiting;
    uint64_t wire_free;         /* when the sender's queue is empty */
    /*
     * A slow adapter: the time it needs for each frame received, and for each
     * sent; frames beyond the room below are lost.  0: as fast as the wire.
     */
    uint64_t frame_ns;
    unsigned rx_room;           /* frames that may wait; 0: no limit */
    uint64_t rx_free;           /* when the last of them is handled */
    unsigned rx_waiting;
    uint64_t kick_ns;           /* maximum delay of a kick */
    /* interrupts */
    uint64_t msix[WORLD_VECTORS];
    void (*on_msix)(struct node *n, unsigned vector);
    void *opaque;               /* of the guest's software */
    /* statistics */
    uint64_t tx_frames, tx_bytes, rx_frames, rx_bytes, runs, timers;
    uint64_t refused, filled, markers;
    unsigned depth;             /* calls into the engine, to catch re-entry */
    void (*on_call)(struct node *n);    /* after each call into the engine */
    void (*on_fence)(struct node *n);   /* what another CPU does just then */
    /* the debugger: see node_continue() */
    uint64_t stops;
    void (*on_stop)(struct node *n);    /* may inspect, and step */
    bool go_at_once;            /* on_stop() resumes at once */
    uint64_t *traced;           /* number of events of each kind, unless NULL */
    void (*on_trace)(struct node *n, const struct qhca_trace *t);
    struct node_call *stopped;   /* a call within ops.stop(), or NULL */
    struct node_call *later, **later_end;   /* made meanwhile */
};

/* A memory link between two nodes. */
struct world_memlink {
    void *ring[2];              /* written by the first, by the second */
    void *ring_memory[2];       /* to be freed */
    unsigned id[2];             /* as the first and the second know it */
    bool up;
};

struct world_event;
struct frame;

struct world {
    uint64_t now;               /* ns */
    struct rng rng;             /* of the wire */
    struct node node[WORLD_NODES];
    unsigned nodes;
    size_t frame_max;           /* bytes that an adapter may send */
    struct wire wire;
    struct world_event *heap;
    size_t heap_len, heap_cap;
    uint64_t seq;
    void *free_frames;
    uint64_t last_arrival[WORLD_NODES][WORLD_NODES];
    /* outputs, may be NULL */
    FILE *log;                  /* a line per packet */
    FILE *pcap;
    bool trace;                 /* the engines' trace events too */
    /* between nodes i < j: [i][j]; see world_memlinks() */
    struct world_memlink memlink[WORLD_NODES][WORLD_NODES];
    bool memlinks;
    uint64_t bell_ns;           /* maximum delay of a bell */
    struct rng memlink_rng;
    /* one event in @reborn saves the adapter and loads it anew; 0: none */
    unsigned reborn;
    struct rng reborn_rng;
    /* a guest waits for a command; NULL: let time pass */
    void (*wait)(struct world *w);
    /* statistics */
    uint64_t events, frames, dropped, duplicated, reordered, corrupted;
    uint64_t truncated, filtered, delivered, births, overrun;
    uint64_t bells, bells_soon, cuts;
};

/* Create @nodes adapters, with MACs; @cfg may be NULL. */
void world_init(struct world *w, unsigned nodes, uint64_t seed,
                const struct qhca_config *cfg);
/* Free everything; work in progress is lost. */
void world_fini(struct world *w);
/* A wire without loss and with negligible delay. */
void wire_perfect(struct wire *wire);
/* A random wire; @loss: also drops and corruption. */
void wire_random(struct wire *wire, struct rng *r, bool loss);

/* Connect all adapters by memory links, and allow their use. */
void world_memlinks(struct world *w);
/*
 * A new ring, zeroed, at a page; @memory is what to free.  Its pages are the
 * host's until they are used, as clearing a MiB takes longer than many a test.
 */
void *world_ring(void **memory);
/* Connect two, which are not; the rings are new. */
void world_memlink_up(struct world *w, unsigned a, unsigned b);
/* Both ends lose their link, and what is in the rings. */
void world_memlink_down(struct world *w, unsigned a, unsigned b);
/* One end's ring for what it sends to the other. */
struct qhca_shring *world_memlink_ring(struct world *w, unsigned from,
                                       unsigned to);
void node_memlinks_allow(struct node *n, bool allowed);
void node_memlink_bell(struct node *n, unsigned id);
/* When the next event is due, ns; UINT64_MAX: there is none. */
uint64_t world_next(const struct world *w);
/* Run one event; false if none is left. */
bool world_step(struct world *w);
/* Run events until @t (absolute, ns); time is then @t. */
void world_run_until(struct world *w, uint64_t t);
/* Run for @ns. */
static inline void world_run(struct world *w, uint64_t ns)
{
    world_run_until(w, w->now + ns);
}
/* Run until nothing is pending, at most @ns; false if that never happens. */
bool world_settle(struct world *w, uint64_t ns);
/* Call @fn(@opaque, @arg) at @t. */
void world_call(struct world *w, uint64_t t,
                void (*fn)(void *opaque, uint64_t arg), void *opaque,
                uint64_t arg);
/* Put a handmade frame on the wire; it arrives at @node at once. */
void world_inject(struct world *w, unsigned node, const void *frame,
                  size_t len);
/* Let the engine do its pending work now, without time passing. */
void node_drain(struct node *n);
/* Resume after a stop, then make the calls queued meanwhile. */
void node_continue(struct node *n);
/* Calls into the engine that detect a re-entrant one. */
/* Where the memory at @addr is in device memory; see world.c. */
uint64_t node_dm_off(const struct node *n, uint64_t addr);
uint64_t node_reg_read(struct node *n, uint64_t off, unsigned size);
void node_reg_write(struct node *n, uint64_t off, uint64_t v, unsigned size);
void node_db_write(struct node *n, uint64_t off, uint64_t v, unsigned size);
void node_set_link(struct node *n, bool up);
void node_flr(struct node *n);

/* pktlog.c: one line about the frame, as "RC SEND_ONLY qpn 0x11 psn 5". */
void pkt_describe(char *out, size_t size, const uint8_t *f, size_t len);
void pcap_header(FILE *f);
void pcap_frame(FILE *f, uint64_t ns, const uint8_t *frame, size_t len);

#endif
