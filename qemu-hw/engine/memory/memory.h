/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory: DMA, the one walker of buffer tables, memory regions and
 * windows, protection domains.
 */
#ifndef QHCA_MEMORY_H
#define QHCA_MEMORY_H

#include "base/base.h"

#define QHCA_BUF_BLOCK      8   /* table entries read at once: 64 bytes */

/*
 * A buffer as its table describes it (struct qhca_buf), and what is remembered
 * of the way to where it was used last.
 */
struct qhca_table {
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

/* ---- regions and windows ---- */

struct qhca_mr {
    uint32_t key;
    uint32_t pd, access;
    uint8_t flags, state;
    uint64_t iova, len;
    uint32_t max_entries;
    uint32_t windows;           /* bound to it */
    struct qhca_table buf;
};

#define QHCA_MR_F_MW (QHCA_MR_F_MW1 | QHCA_MR_F_MW2)

struct qhca_mw {                /* memory window: mr.flags has QHCA_MR_F_MW* */
    struct qhca_mr mr;          /* its key and rights; VALID: bound */
    struct qhca_mr *bound;      /* NULL: not bound */
    uint64_t off;               /* of byte 0 in that region */
    uint32_t qpn;               /* type 2: who bound it; else 0 */
    struct qhca_list link;      /* in that QP's list of windows */
};

/* The access that met the last page fault (odp.c). */
struct qhca_page_fault {
    uint64_t addr;              /* first byte not reached, as the MR names it */
    uint64_t len;               /* bytes from there that are wanted */
    uint64_t max;               /* bytes from there to the MR's end */
    uint32_t key;               /* of the MR */
    bool write;
};

/* This floor's part of the adapter. */
struct qhca_memory {
    struct qhca_idr uars, pds, mrs;
    uint32_t *pd_refs;          /* objects that name the PD */
    uint32_t *uar_refs;
    struct qhca_page_fault fault;
    uint32_t fault_token;       /* of the last page fault that was told */
};

/* ---- table_walk.c ---- */
/*
 * Check descriptor @d for a buffer of @need bytes (0: any length) and unpack
 * it.  @queue: first must be 0, no entry may straddle a page or segment.
 * Returns QHCA_ST_OK or QHCA_ST_BAD_TABLE.
 */
uint8_t qhca_table_init(struct qhca_table *m, const struct qhca_buf *d,
                        uint64_t need, bool queue);
/*
 * Find the DMA address of byte @off of the buffer; *@run gets the number of
 * contiguous bytes from there (never past the buffer's end).
 * @num: object number for the trace.  Returns QHCA_SYN_NONE or
 * QHCA_SYN_TABLE_*.  Caller has checked off < len.
 */
uint8_t qhca_table_walk(struct qhca *e, struct qhca_table *m, uint64_t off,
                        uint32_t num, uint64_t *addr, uint64_t *run);
/*
 * The same for a table with odp set: QHCA_SYN_PAGE_FAULT if there is no page,
 * or (@write) none that may be written.
 */
uint8_t qhca_table_walk_odp(struct qhca *e, struct qhca_table *m,
                            uint64_t off, bool write, uint32_t num,
                            uint64_t *addr, uint64_t *run);
/* The descriptor again, for queries. */
void qhca_table_describe(const struct qhca_table *m, struct qhca_buf *d);
/* The buffer is used from its start again: forget what was cached. */
void qhca_table_forget(struct qhca_table *m);

/* ---- DMA with accounting (dma.c) ---- */
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
 * An access through an ODP MR can end with QHCA_SYN_PAGE_FAULT; e->mem->fault
 * then says where.  What was copied before stays copied.  See qhca_odp_stall().
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
/*
 * BIND_MW with the fields of the WQE, by QP @qpn of @pd, whose list of type 2
 * windows is @windows; QHCA_SYN_*.
 */
uint8_t qhca_mw_bind(struct qhca *e, uint32_t pd, uint32_t qpn,
                     struct qhca_list *windows,
                     const struct qhca_sq_wqe *wqe);
/* It gives no more access. */
void qhca_mw_unbind(struct qhca_mw *mw);
/* A QP vanishes: so does what its type 2 windows allow. */
void qhca_mw_unbind_all(struct qhca *e, struct qhca_list *windows);

/* ---- pd.c: protection domains and user access regions ---- */
qhca_cmd_fn qhca_cmd_alloc_uar, qhca_cmd_free_uar;
qhca_cmd_fn qhca_cmd_alloc_pd, qhca_cmd_free_pd;
/* mr.c, mw.c */
qhca_cmd_fn qhca_cmd_create_mr, qhca_cmd_destroy_mr, qhca_cmd_query_mr;
qhca_cmd_fn qhca_cmd_modify_mr, qhca_cmd_create_mw;
void qhca_mrs_free(struct qhca *e);

/* ---- save_mr.c ---- */
/*
 * A buffer's descriptor; nothing of what is cached.  @need, @queue: see
 * qhca_table_init().
 */
void qhca_io_buf(struct qhca_io *io, struct qhca_table *m, uint64_t need,
                 bool queue);
void qhca_io_mrs(struct qhca_io *io);   /* without windows */
/* What regions and windows have in common. */
void qhca_io_key(struct qhca_io *io, struct qhca_mr *m);

#endif /* QHCA_MEMORY_H */
