/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of the engine know of each other.  Two halves meet here: the
 * object side (registers, commands, tables, queues, memory keys) and the
 * transport side (transport.h: packets, requester, responder, timers).
 */
#ifndef QHCA_INTERNAL_H
#define QHCA_INTERNAL_H

#include <string.h>

#include "engine.h"
#include "trace.h"
#include "list.h"
#include "bytes.h"
#include "fault.h"

#define QHCA_MAX_SQ_WQE     1024
#define QHCA_MAX_RQ_WQE     512
#define QHCA_MAX_SGE        30
#define QHCA_MAX_INLINE     512
#define QHCA_MAX_RD_ATOMIC  16
#define QHCA_MAX_MSG_SIZE   0x80000000U
#define QHCA_MAX_QP_WR      32768
#define QHCA_MAX_CQE        (1U << 22)
#define QHCA_MAX_XRCD       1024    /* a power of two; number 0 is not used */

/* ---- objects and their numbers (table.c) ---- */

/*
 * Numbers first .. max-1 to pointers.  A freed number is reused as late as
 * possible: never used ones first, then the one freed longest ago.  Numbers
 * below first are given out on request only.
 */
struct qhca_table {
    void **slot;
    uint32_t *fifo;             /* freed numbers, oldest first */
    uint32_t size;              /* entries of slot and fifo */
    uint32_t first, max;
    uint32_t fresh;             /* the lowest number never given out */
    uint32_t head, count;       /* of the fifo */
    uint32_t used;
};

/* ---- buffer tables (buf.c): the one walker ---- */

#define QHCA_BUF_BLOCK      8   /* table entries read at once: 64 bytes */

struct qhca_buf_map {
    uint64_t addr, len;         /* of the descriptor, in CPU order */
    uint32_t first, entries;
    uint8_t form, hops, page_shift, table_shift;
    bool queue;                 /* entries may not straddle segments */
    uint8_t kind;               /* QHCA_DMA_*: what is in it */
    bool odp;                   /* entries may be missing: page fault */
    /* last leaf found: the page of page number leaf_page */
    bool leaf_valid;
    bool leaf_write;            /* ODP: it may be written */
    uint64_t leaf;              /* DMA address of byte 0 of the page */
    uint64_t leaf_page;         /* LIST: number of the segment */
    uint64_t leaf_off, leaf_len;/* LIST: where the segment starts, its size */
    /* the last table of the last level that was reached (hops 2 and 3) */
    bool sub_valid;
    uint64_t sub, sub_addr;     /* its number, its DMA address */
    /* the block of last-level entries read last */
    bool block_valid;
    uint64_t block, block_addr; /* its number, its DMA address */
    uint64_t entry[QHCA_BUF_BLOCK];     /* as in memory, little-endian */
};

/* ---- EQ, CQ, SRQ, MR ---- */

struct qhca_event_src {         /* an object that can have events pending */
    struct qhca_list link;      /* in eq->pending */
    uint32_t pending;           /* bit per kind, see eq.c */
    uint32_t obj;
    uint8_t syndrome;           /* of the pending error event */
};

struct qhca_eq;
struct qhca_cq;
struct qhca_xrcd;
struct qhca_srq;
struct qhca_mr;
struct qhca_qp;

struct qhca_eq {
    uint32_t eqn;
    struct qhca_buf_map buf;
    uint8_t shift;
    uint16_t vector;
    uint32_t prod, cons;
    bool armed;
    bool stalled;               /* a fault on demand: as if it were full */
    uint32_t refs;              /* CQs that name it */
    struct qhca_list pending;   /* of struct qhca_event_src: no room yet */
    struct qhca_list work;      /* in e->eq_work: pending, and room again */
};

struct qhca_cq {
    uint32_t cqn;
    struct qhca_event_src ev;   /* errors, on the asynchronous EQ */
    struct qhca_event_src comp; /* completion events, on eq */
    struct qhca_eq *eq;
    uint32_t uar;
    struct qhca_buf_map buf;
    uint64_t dbrec;
    uint8_t shift;
    uint8_t state, arm;
    uint16_t mod_count, mod_usec;
    uint32_t prod, cons;
    uint32_t last_solicited;    /* prod behind the last such or error CQE */
    uint32_t since_event;       /* CQEs that no event told of; saturates */
    uint32_t refs;              /* queues that name it */
    /* moderation */
    uint32_t unreported;
    uint64_t mod_deadline;
    uint32_t mod_pos;           /* in e->mod_heap; QHCA_MOD_NONE: not there */
};

#define QHCA_MOD_NONE       UINT32_MAX

/* MODIFY_CQ at work, which copies CQEs (cq_resize.c). */
struct qhca_cq_resize {
    struct qhca_buf_map from, to;
    uint8_t shift;              /* of the new ring */
    uint32_t cons;              /* as software said when it asked */
    uint32_t pos;               /* counter of the next CQE to be copied */
};

/*
 * The command at asq_cons, when it is not finished yet.  It was read once, and
 * goes on in the next qhca_admin_run().
 */
struct qhca_aq_job {
    bool busy;
    struct qhca_aq_cmd cmd;
    struct qhca_cqc in;
};

struct qhca_xrcd {              /* XRC domain */
    uint32_t xrcd;
    uint32_t refs;              /* SRQs and QPs that name it */
    struct qhca_list targets;   /* its XRC_TGT QPs */
};

struct qhca_srq {
    uint32_t srqn;
    struct qhca_cq *cq;         /* of its receives; NULL: the QP's */
    struct qhca_tm *tm;         /* tag matching (tm.h), or NULL */
    struct qhca_event_src ev;
    uint32_t pd, uar;
    struct qhca_xrcd *xrcd;     /* XRC SRQs; else NULL */
    struct qhca_buf_map buf, idx;
    uint64_t dbrec;
    uint8_t shift, stride, flags, state;
    uint32_t limit;
    uint32_t head, tail;
    uint32_t refs;
};

struct qhca_mr {
    uint32_t key;
    uint32_t pd, access;
    uint8_t flags, state;
    uint64_t iova, len;
    uint32_t max_entries;
    uint32_t windows;           /* bound to it */
    struct qhca_buf_map buf;
};

#define QHCA_MR_F_MW (QHCA_MR_F_MW1 | QHCA_MR_F_MW2)

struct qhca_mw {                /* memory window: mr.flags has QHCA_MR_F_MW* */
    struct qhca_mr mr;          /* its key and rights; VALID: bound */
    struct qhca_mr *bound;      /* NULL: not bound */
    uint64_t off;               /* of byte 0 in that region */
    struct qhca_qp *qp;         /* type 2: who bound it; else NULL */
    struct qhca_list link;      /* in qp->windows */
};

/* ---- QP ---- */

#include "transport.h"          /* struct qhca_xport: its part of a QP */

struct qhca_qp {
    uint32_t qpn;
    struct qhca_event_src ev;
    uint8_t type, state, flags;
    uint32_t pd, uar;
    /*
     * NULL: there is none.  pd and srq of an XRC target are those of the
     * message it receives, or received last; see xrc.c.
     */
    struct qhca_cq *scq, *rcq;
    struct qhca_srq *srq;
    struct qhca_tm_qp *tm;      /* on a TM SRQ (tm.h), or NULL */
    uint8_t sq_shift, sq_stride, rq_shift, rq_stride;
    struct qhca_buf_map sq, rq;
    uint64_t rq_dbrec, cookie;
    /* attributes, CPU order but for av, which is as in memory */
    struct qhca_av av;
    uint32_t dest_qpn, qkey, sq_psn, rq_psn, access;
    uint16_t pkey_index;
    uint8_t path_mtu, timeout, retry_cnt, rnr_retry, min_rnr_timer;
    uint8_t max_rd_atomic, max_dest_rd_atomic, en_sqd_event;
    uint8_t syndrome;
    /* ring counters */
    uint32_t sq_head, sq_next, sq_tail, rq_head, rq_tail;
    /* per QP statistics, as in struct qhca_qpc */
    uint64_t tx_packets, rx_packets, retransmits, timeouts;
    uint64_t rnr_naks_rx, seq_naks_rx, duplicates;
    uint32_t users;             /* groups, flows, RQTs that name it */
    struct qhca_rss *rss;       /* RSS: table and hash; else NULL */
    /* scheduling */
    struct qhca_list ready;     /* in e->ready when it has work */
    struct qhca_xrcd *xrcd;     /* XRC target */
    struct qhca_list xrc_link;  /* in xrcd->targets */
    struct qhca_list windows;   /* type 2 windows it has bound */
    struct qhca_xport xp;
};

/* The PD of the local keys of what @qp sends and READs. */
static inline uint32_t qhca_sq_pd(const struct qhca_qp *qp)
{
    return qp->tm ? qp->srq->pd : qp->pd;
}

/* The CQ of the receives of @qp. */
static inline struct qhca_cq *qhca_recv_cq(const struct qhca_qp *qp)
{
    return qp->srq && qp->srq->cq ? qp->srq->cq : qp->rcq;
}

/* The access that met the last page fault (odp.c). */
struct qhca_page_fault {
    uint64_t addr;              /* first byte not reached, as the MR names it */
    uint64_t len;               /* bytes from there that are wanted */
    uint64_t max;               /* bytes from there to the MR's end */
    uint32_t key;               /* of the MR */
    bool write;
};

struct qhca_eth_q {
    uint32_t num;
    struct qhca_event_src ev;
    struct qhca_cq *cq;
    struct qhca_buf_map buf;
    uint64_t dbrec;
    uint8_t shift, stride;
    uint32_t head, tail;
    bool is_sq;
    bool dead;                  /* its CQ or its ring failed */
    struct qhca_list ready;     /* SQ: in e->eth_ready when it has work */
};

/* ---- the adapter ---- */

#define QHCA_ETHERTYPE_VLAN 0x8100
#define QHCA_HASH_SLOTS     512 /* twice the greatest number of entries */
#define QHCA_ETH_FRAME_BUF  (QHCA_ETH_MAX_FRAME + 8)

struct qhca {
    struct qhca_config cfg;
    struct qhca_ops ops;
    void *opaque;
    /* registers */
    uint32_t ctrl, aq_ctrl, db_shift, aq_shift;
    uint8_t fatal;
    bool ready_flag, link;
    uint64_t asq_base, acq_base;
    uint32_t asq_prod, asq_cons;
    struct qhca_aq_job job;
    struct qhca_cq_resize resize;           /* while job.busy */
    uint32_t latch_read, latch_write;       /* half of a 64-bit register */
    uint64_t latch_read_off, latch_write_off;   /* which one; 0: none */
    /* objects */
    struct qhca_table uars, pds, xrcds, eqs, cqs, srqs, mrs, qps;
    struct qhca_table eth_sqs, eth_rqs;
    uint32_t tm_tags;           /* of all TM SRQs */
    uint32_t *pd_refs;
    uint32_t *uar_refs;
    struct qhca_gid *gids;      /* cfg.max_gid entries */
    int16_t gid_hash[QHCA_HASH_SLOTS];      /* index of the GID, -1: none */
    struct qhca_mcg_group **mcgs;   /* hash of groups; NULL: never used */
    uint32_t mc_groups;         /* groups with a member */
    struct qhca_flows *flows;   /* flow.c; NULL: there is none */
    struct qhca_table flow_table, rqts;
    struct qhca_event_src port_ev;
    /* Ethernet function */
    uint8_t mac[6];
    bool promisc, allmulti;
    uint32_t mtu, eth_rqn;
    uint64_t mc_hash[QHCA_HASH_SLOTS];      /* addresses, 0: none */
    uint8_t eth_frame[QHCA_ETH_FRAME_BUF];  /* being built or taken apart */
    /* work */
    struct qhca_list ready;     /* QPs with something to do */
    struct qhca_list blocked;   /* QPs that wait for the wire only */
    struct qhca_list eth_ready;
    struct qhca_list tm_work;   /* TM SRQs with operations to execute */
    struct qhca_list eq_work;   /* EQs with pending events and room */
    struct qhca_cq **mod_heap;  /* by mod_deadline, earliest first */
    uint32_t mod_used;
    bool tx_blocked;            /* send() said no */
    bool kicked;
    uint32_t list_reads;        /* of buffer tables: they cost budget, too */
    uint32_t cost;              /* of all so far, see qhca_cost() */
    uint32_t admin_end;         /* where commands stop until the next run */
    uint64_t timer_set;         /* what set_timer was last told */
    uint64_t stats[QHCA_STAT_COUNT];
    bool tracing;               /* somebody listens: qhca_set_tracing() */
    /* the debugger's (debug.h) */
    bool debugging;             /* it waits for an event */
    bool halted;                /* within ops.stop() */
    bool watch_only;            /* a stop is told, and that is all */
    struct qhca_debug *dbg;     /* NULL: it was never asked for */
    /* faults on demand (fault.h) */
    uint32_t fault_sites;       /* bit per QHCA_FLT_AT_*: some rule is there */
    struct qhca_faults *faults; /* NULL: there never was a rule */
    struct qhca_page_fault fault;
    uint32_t fault_token;       /* of the last one that was told */
    struct qhca_xport_dev xd;   /* the transport's part of the adapter */
};

/* ---- table.c ---- */
bool qhca_table_init(struct qhca_table *t, uint32_t max, uint32_t first);
void qhca_table_free(struct qhca_table *t);
/* Forget all numbers; from now on those below @max (<= size) exist. */
void qhca_table_reset(struct qhca_table *t, uint32_t max);
/* Walk: for (n = 0; n < qhca_table_end(t); n++) qhca_table_get(t, n) */
static inline uint32_t qhca_table_end(const struct qhca_table *t)
{
    return t->fresh;
}
/* Take the oldest free number; false when full. */
bool qhca_table_add(struct qhca_table *t, void *obj, uint32_t *num);
/* Take exactly @num < first (GSI QP, EQ 0); false when it is not free. */
bool qhca_table_add_at(struct qhca_table *t, void *obj, uint32_t num);
void *qhca_table_del(struct qhca_table *t, uint32_t num);
static inline void *qhca_table_get(const struct qhca_table *t, uint32_t num)
{
    return num < t->max ? t->slot[num] : NULL;
}

/* ---- buf.c ---- */
/*
 * Check descriptor @d for a buffer of @need bytes (0: any length) and unpack
 * it.  @queue: first must be 0, no entry may straddle a page or segment.
 * Returns QHCA_ST_OK or QHCA_ST_BAD_TABLE.
 */
uint8_t qhca_buf_init(struct qhca_buf_map *m, const struct qhca_buf *d,
                      uint64_t need, bool queue);
/*
 * Find the DMA address of byte @off of the buffer; *@run gets the number of
 * contiguous bytes from there (never past the buffer's end).
 * @num: object number for the trace.  Returns QHCA_SYN_NONE or
 * QHCA_SYN_TABLE_*.  Caller has checked off < len.
 */
uint8_t qhca_buf_walk(struct qhca *e, struct qhca_buf_map *m, uint64_t off,
                      uint32_t num, uint64_t *addr, uint64_t *run);
/*
 * The same for a map with odp set: QHCA_SYN_PAGE_FAULT if there is no page, or
 * (@write) none that may be written.
 */
uint8_t qhca_buf_walk_odp(struct qhca *e, struct qhca_buf_map *m,
                          uint64_t off, bool write, uint32_t num,
                          uint64_t *addr, uint64_t *run);
/* The descriptor again, for queries. */
void qhca_buf_get(const struct qhca_buf_map *m, struct qhca_buf *d);
/* The buffer is used from its start again: forget what was cached. */
void qhca_buf_forget(struct qhca_buf_map *m);

/* ---- DMA with accounting (dma.c) ---- */
/*
 * Work was done that costs as much as @n accesses to memory.  DMA counts by
 * itself, so only loops that do without must call this.
 */
static inline void qhca_cost(struct qhca *e, uint32_t n)
{
    e->cost += n;
}
/*
 * @kind: QHCA_DMA_*, what for; @num: of the object it is done for.  They matter
 * to faults on demand only.
 */
bool qhca_dma_read(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                   void *buf, size_t len);
bool qhca_dma_write(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                    const void *buf, size_t len);
/* Device memory, with the same accounting. */
bool qhca_dm_read(struct qhca *e, uint64_t off, void *buf, size_t len);
bool qhca_dm_write(struct qhca *e, uint64_t off, const void *buf,
                   size_t len);
/* ops->dma_store64 with accounting. */
bool qhca_dma_store64(struct qhca *e, uint8_t kind, uint32_t num,
                      uint64_t addr, uint64_t val);
/* Read a doorbell record's index. */
bool qhca_dbrec_read(struct qhca *e, uint8_t kind, uint32_t num,
                     uint64_t addr, uint32_t *index);

/* ---- mr.c: every access to memory by key ---- */
/*
 * An access through an ODP MR can end with QHCA_SYN_PAGE_FAULT; e->fault then
 * says where.  What was copied before stays copied.  See qhca_odp_stall().
 */
/*
 * Check that @len bytes at @addr may be accessed with @key.  @access: the
 * QHCA_ACCESS_* needed, 0 for a local read; windows are for remote access
 * only.  @pd: of the QP or SRQ; @qpn: of the QP, for type 2 windows.
 * @privileged allows QHCA_LKEY_RESERVED.  len 0 checks nothing and is
 * allowed with any key (IBA 9.7.4.1.3 / 10.6.3).  Returns QHCA_SYN_*.
 */
uint8_t qhca_mr_check(struct qhca *e, uint32_t pd, bool privileged,
                      uint32_t key, uint64_t addr, uint64_t len,
                      uint32_t access, uint32_t qpn);
/* Check as above, then copy between guest memory and @buf. */
uint8_t qhca_mr_read(struct qhca *e, uint32_t pd, bool privileged,
                     uint32_t key, uint64_t addr, void *buf, size_t len,
                     uint32_t access, uint32_t qpn);
uint8_t qhca_mr_write(struct qhca *e, uint32_t pd, bool privileged,
                      uint32_t key, uint64_t addr, const void *buf,
                      size_t len, uint32_t access, uint32_t qpn);
/*
 * What an atomic does to 8 bytes.  swap_op: where they equal cmp_add in the
 * bits of mask, the bits of swap_mask become those of swap.  Else cmp_add is
 * added; set bits of mask are the highest ones of their fields, which no
 * carry leaves.
 */
struct qhca_atomic {
    bool swap_op;
    uint64_t cmp_add, swap, mask, swap_mask;
};

/* Check for REMOTE_ATOMIC and 8-byte alignment, then act on 8 bytes. */
uint8_t qhca_mr_atomic(struct qhca *e, uint32_t pd, uint32_t key,
                       uint64_t addr, const struct qhca_atomic *op,
                       uint64_t *old, uint32_t qpn);
/*
 * Check for REMOTE_WRITE and 8-byte alignment, then store 8 bytes, @buf, in
 * one piece.
 */
uint8_t qhca_mr_store64(struct qhca *e, uint32_t pd, uint32_t key,
                        uint64_t addr, const uint8_t buf[8], uint32_t qpn);
/*
 * Check for @access, QHCA_ACCESS_FLUSH_*, to @len bytes at @addr, or to the
 * @whole region; then all that was written before is visible.  A key is
 * needed even if len is 0.
 */
uint8_t qhca_mr_flush(struct qhca *e, uint32_t pd, uint32_t key,
                      uint64_t addr, uint32_t len, bool whole,
                      uint32_t access, uint32_t qpn);
/*
 * LOCAL_INV of QP @qpn, or remote invalidate by its peer: only FAST_REG MRs of
 * @pd without windows, and type 2 windows that this QP has bound.
 */
uint8_t qhca_mr_invalidate(struct qhca *e, uint32_t pd, uint32_t key,
                           uint32_t qpn);
/*
 * QHCA_DB_MR_SYNC for the MR with key index @index: nothing of its table is
 * remembered.  Nothing is under way either: the engine is not in a copy.
 */
void qhca_mr_sync(struct qhca *e, uint32_t index);
/* REG_MR with the fields of the WQE; QHCA_SYN_*. */
uint8_t qhca_mr_fast_reg(struct qhca *e, uint32_t pd,
                         const struct qhca_sq_wqe *wqe);

/* The region or window with this key, all of it; NULL: none. */
struct qhca_mr *qhca_mr_get(struct qhca *e, uint32_t key);
/* The same for commands, to which some keys' low bytes do not matter. */
struct qhca_mr *qhca_mr_get_cmd(struct qhca *e, uint32_t key);
/* Is @mr, no window, one that commands and work requests could make? */
bool qhca_mr_valid(const struct qhca *e, const struct qhca_mr *mr);
/* May a region have these QHCA_ACCESS_* together? */
bool qhca_mr_access_ok(uint32_t access);

/* ---- mw.c: memory windows ---- */
static inline struct qhca_mw *qhca_mr_mw(struct qhca_mr *mr)
{
    return mr->flags & QHCA_MR_F_MW ? (struct qhca_mw *)mr : NULL;
}
/* BIND_MW by @qp with the fields of the WQE; QHCA_SYN_*. */
uint8_t qhca_mw_bind(struct qhca *e, struct qhca_qp *qp,
                     const struct qhca_sq_wqe *wqe);
/* It gives no more access. */
void qhca_mw_unbind(struct qhca_mw *mw);
/* @qp vanishes: so does what its type 2 windows allow. */
void qhca_mw_qp_gone(struct qhca *e, struct qhca_qp *qp);

/* ---- cq.c, eq.c ---- */
/*
 * Append a CQE.  @cqe is complete but for timestamp and phase.  @solicited:
 * the event condition of a solicited-only arm (errors count as such by
 * themselves).  A full CQ goes to QHCA_CQ_ERR with an event, and all QPs
 * attached to it go to ERR with QHCA_EV_QP_FATAL when they next complete.
 * Returns false if the CQE could not be delivered.
 */
bool qhca_cq_push(struct qhca *e, struct qhca_cq *cq, struct qhca_cqe *cqe,
                  bool solicited);
/* Of an Ethernet queue? */
static inline bool qhca_cqe_is_eth(const struct qhca_cqe *cqe)
{
    return cqe->opcode == QHCA_CQE_OP_ETH_SEND ||
           cqe->opcode == QHCA_CQE_OP_ETH_RECV;
}
void qhca_cq_timer(struct qhca *e, uint64_t now); /* moderation */
uint64_t qhca_cq_deadline(struct qhca *e);        /* UINT64_MAX: none */
/* The heap of moderation deadlines (cq_mod.c): O(log n) each. */
void qhca_mod_add(struct qhca *e, struct qhca_cq *cq, uint64_t deadline);
void qhca_mod_del(struct qhca *e, struct qhca_cq *cq);
/* QHCA_DB_CQ_ARM; bad indices are counted here. */
void qhca_cq_arm(struct qhca *e, struct qhca_cq *cq, uint32_t cons,
                 bool solicited);
/* QHCA_DB_EQ. */
void qhca_eq_doorbell(struct qhca *e, struct qhca_eq *eq, uint32_t cons,
                      bool arm);
/* Tell a batch of the events that waited for room. */
void qhca_eq_run(struct qhca *e);
/* No EQ is stalled any more. */
void qhca_eqs_go_on(struct qhca *e);
/*
 * What bits of pending there are: of a CQ's completion events, or of all other
 * sources.
 */
uint32_t qhca_event_bits(bool comp);
/* Make @src an object without events; forget those that still wait. */
void qhca_event_init(struct qhca_event_src *src, uint32_t obj);
void qhca_event_forget(struct qhca_event_src *src);
/* Report @type of @src on @eq; when @eq is full it waits. */
void qhca_event(struct qhca *e, struct qhca_eq *eq,
                struct qhca_event_src *src, uint8_t type, uint8_t syndrome);
/* Report an event of @src on the async EQ; never lost, one per kind. */
void qhca_async_event(struct qhca *e, struct qhca_event_src *src,
                      uint8_t type, uint8_t syndrome);

/* ---- wq.c ---- */
/* The SRQ takes no more part; returns @syn. */
uint8_t qhca_srq_fail(struct qhca *e, struct qhca_srq *srq, uint8_t syn);
/* Raise QHCA_EV_SRQ_LIMIT if fewer are left than armed for. */
void qhca_srq_check_limit(struct qhca *e, struct qhca_srq *srq);

/* ---- xrc.c ---- */
/*
 * The SRQ @srqn if XRC target @qp may receive into it, else NULL.
 */
struct qhca_srq *qhca_xrc_srq(struct qhca *e, const struct qhca_qp *qp,
                              uint32_t srqn);
/* A message for @srq begins: pd and srq of target @qp are its own. */
void qhca_xrc_bind(struct qhca_qp *qp, struct qhca_srq *srq);
void qhca_xrc_unbind(struct qhca_qp *qp);
/* XRC SRQ @srq is about to vanish: its targets must forget it. */
void qhca_xrc_srq_gone(struct qhca *e, struct qhca_srq *srq);
/* PD by which target or other QP @qp serves a request for @srqn; 0: none. */
static inline uint32_t qhca_qp_pd(struct qhca *e, const struct qhca_qp *qp,
                                  uint32_t srqn)
{
    const struct qhca_srq *srq;

    if (qp->type != QHCA_QPT_XRC_TGT) {
        return qp->pd;
    }
    srq = qhca_xrc_srq(e, qp, srqn);
    return srq ? srq->pd : 0;
}

/* ---- qp.c ---- */
/* RC and XRC: what is sent is acknowledged. */
static inline bool qhca_qp_reliable(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_RC || qp->type == QHCA_QPT_XRC_INI ||
           qp->type == QHCA_QPT_XRC_TGT;
}
/* RC, XRC and UC: has one peer. */
static inline bool qhca_qp_connected(const struct qhca_qp *qp)
{
    return qp->type == QHCA_QPT_UC || qhca_qp_reliable(qp);
}
static inline struct qhca_qp *qhca_qp_get(struct qhca *e, uint32_t qpn)
{
    return qhca_table_get(&e->qps, qpn);
}
/*
 * Fetch send WQE @index (whole stride, 1 << sq_stride bytes) into @wqe.
 * *@addr gets its DMA address for the trace.  QHCA_SYN_*.
 */
uint8_t qhca_sq_fetch(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                      void *wqe, uint64_t *addr);
/*
 * Take the next receive WQE of the QP's RQ or SRQ into @wqe (whole stride,
 * up to QHCA_MAX_RQ_WQE bytes; *@len gets it).  *@index gets the counter
 * (RQ) or the WQE number (SRQ).  Returns QHCA_SYN_NONE, QHCA_SYN_RNR when
 * there is none, or another syndrome (then the QP must go to ERR).
 * Raises the SRQ limit event.
 */
uint8_t qhca_rq_take(struct qhca *e, struct qhca_qp *qp, void *wqe,
                     uint32_t *len, uint32_t *index);
/* Trace that a receive WQE (or an entry of its form) was taken. */
void qhca_recv_trace(struct qhca *e, uint32_t qpn, uint32_t index,
                     uint64_t addr, const void *wqe);
/*
 * The one way into ERR (or SQE): state change, trace, event.  @event is a
 * QHCA_EV_* or 0.  Calls qhca_xport_error(), which flushes.
 */
void qhca_qp_error(struct qhca *e, struct qhca_qp *qp, uint8_t syndrome,
                   uint8_t event);
/* Trace a change from @old to qp->state. */
void qhca_qp_trace_state(struct qhca *e, struct qhca_qp *qp, uint8_t old);
/* A QP of @type that is nowhere yet, all zero, lists empty; NULL: no memory. */
struct qhca_qp *qhca_qp_alloc(uint8_t type);
/* Destroy without asking whether somebody refers to it. */
void qhca_qp_free(struct qhca *e, struct qhca_qp *qp);
void qhca_eth_q_free(struct qhca *e, struct qhca_eth_q *q);
/* The queue stops for good, and software is told why (QHCA_SYN_*). */
void qhca_eth_q_fail(struct qhca *e, struct qhca_eth_q *q, uint8_t syndrome);
void qhca_cq_free(struct qhca *e, struct qhca_cq *cq);
/* All but what CREATE_QP set is forgotten: the QP goes to RESET. */
void qhca_qp_clear(struct qhca_qp *qp);
/* From now on nobody has to ring for receives; false: no access. */
bool qhca_qp_clear_notify(struct qhca *e, const struct qhca_qp *qp);
void qhca_qp_sqe(struct qhca *e, struct qhca_qp *qp, uint8_t syndrome);

/* ---- engine.c ---- */
/*
 * Put @qp on the ready list (once); it runs before the present entry point
 * returns, or after a kick().
 */
void qhca_qp_schedule(struct qhca *e, struct qhca_qp *qp);
/* Ask for kick() once until the next qhca_run(). */
void qhca_kick(struct qhca *e);
/* Enabled and not in the fatal state. */
static inline bool qhca_active(const struct qhca *e)
{
    return e->ready_flag && !e->fatal;
}
/* Only a reset helps: stop everything, tell @reason (QHCA_FATAL_*). */
void qhca_fatal(struct qhca *e, uint8_t reason);
/* Do work until @budget is used up. */
void qhca_work(struct qhca *e, unsigned budget);
/* The end of each entry point: kick() if work is left, set the timer. */
void qhca_finish(struct qhca *e);
/* Destroy all objects (reset, free). */
void qhca_objects_free(struct qhca *e);
/* Recompute the earliest deadline and tell set_timer. */
void qhca_timer_update(struct qhca *e);
/*
 * Hand a complete frame to the wire.  False: blocked, keep it and try again
 * when run next (the caller stays on the ready list).
 */
bool qhca_tx(struct qhca *e, const void *frame, size_t len);
static inline uint64_t qhca_now(struct qhca *e)
{
    return e->ops.clock(e->opaque);
}
static inline void qhca_count(struct qhca *e, unsigned stat)
{
    e->stats[stat]++;
}
static inline bool qhca_tracing(const struct qhca *e)
{
    return e->tracing;
}
/* Fill time and hand to the operation; call only if qhca_tracing(). */
void qhca_trace_emit(struct qhca *e, struct qhca_trace *t);
/* Count @stat and trace a guest error about object @num. */
void qhca_guest_error(struct qhca *e, unsigned stat, uint32_t num,
                      const char *text);

/* ---- debug.c; all but the last only while e->debugging ---- */
/* An event of the trace: does somebody wait for it?  Then it stops here. */
void qhca_debug_event(struct qhca *e, const struct qhca_trace *t);
/* A stop that waited until what it is about is accounted for. */
void qhca_debug_due(struct qhca *e);
static inline void qhca_debug_point(struct qhca *e)
{
    if (e->debugging) {
        qhca_debug_due(e);
    }
}
/* Another state comes: what was stopped for is no more.  Breaks stay. */
void qhca_debug_forget_stop(struct qhca *e);
/* qhca_set_tracing() */
void qhca_debug_tracing(struct qhca *e, bool on);
void qhca_debug_free(struct qhca *e);

/* ---- fault.c: faults on demand ---- */
/* Is there a rule for what happens @at (QHCA_FLT_AT_*)?  Ask before calling. */
static inline bool qhca_faulty(const struct qhca *e, unsigned at)
{
    return e->fault_sites & 1u << at;
}
/* Must this fail?  True has been counted and traced. */
bool qhca_fault_dma(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                    size_t len, bool write);
bool qhca_fault_table(struct qhca *e, const struct qhca_buf_map *m,
                      uint32_t num, uint64_t index);
bool qhca_fault_recv(struct qhca *e, const struct qhca_qp *qp);
bool qhca_fault_cqe(struct qhca *e, const struct qhca_cq *cq,
                    const struct qhca_cqe *cqe);
bool qhca_fault_event(struct qhca *e, uint32_t eqn, uint32_t obj);
/* Raise @vector: counted and traced, and sent if nothing keeps it back. */
void qhca_msix(struct qhca *e, uint32_t vector);
/* The link's state as the wire has it; false: a fault hides it. */
bool qhca_fault_set_link(struct qhca *e, bool up);
/* The adapter was reset: forget what was under way. */
void qhca_fault_reset(struct qhca *e);
/* At the end of an entry point: reset the adapter if that is due. */
void qhca_fault_finish(struct qhca *e);
uint64_t qhca_fault_deadline(const struct qhca *e);     /* UINT64_MAX: none */
void qhca_fault_timer(struct qhca *e, uint64_t now);
/* Frames that are due go on, as far as the wire takes them. */
void qhca_fault_flush(struct qhca *e);

/* ---- gid.c, port.c ---- */
/* Where @in, an entry in use, is wrong: offset of the field + 1, or 0. */
size_t qhca_gid_bad(const struct qhca_gid *in);
/* The table changed: make the hash anew. */
void qhca_gid_rehash(struct qhca *e);
/*
 * Index of the GID table entry with @gid (RoCE v2) on @vlan (QHCA_VLAN_NONE:
 * untagged), or -1. O(1).
 */
int qhca_gid_find(struct qhca *e, const uint8_t gid[16], uint16_t vlan);

/* Does the address filter let a frame to @dmac pass? */
bool qhca_mac_accept(struct qhca *e, const uint8_t *dmac);
/* The multicast filter: these @n <= QHCA_MC_LIST_MAX group addresses. */
void qhca_mc_set(struct qhca *e, const struct qhca_mac *in, unsigned n);
/* Back to what a reset gives. */
void qhca_port_reset(struct qhca *e);

/* ---- admin.c ---- */
/* Run commands, as many as may be run at once, or go on with one. */
void qhca_admin_run(struct qhca *e);

/* ---- device.c ---- */
uint64_t qhca_features(const struct qhca *e);   /* QHCA_FEAT_* */

/* ---- doorbell.c ---- */
uint32_t qhca_db_pages(const struct qhca *e);
/* May the adapter be enabled with its registers as they are? */
bool qhca_enable_ok(const struct qhca *e);

/* ---- eth_rx.c, eth_tx.c ---- */
void qhca_eth_rx(struct qhca *e, const uint8_t *frame, size_t len);
/* Run Ethernet send queues, at most @budget frames; returns frames sent. */
unsigned qhca_eth_run(struct qhca *e, unsigned budget);

#endif /* QHCA_INTERNAL_H */
