/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory: DMA, the walker of buffer tables, memory regions and windows,
 * protection domains.
 */
#ifndef QHCA_MEMORY_H
#define QHCA_MEMORY_H

#include "base/base.h"
#include "memlink/memlink.h"

#define QHCA_BUF_BLOCK      8   /* table entries per read: 64 bytes */

/*
 * A buffer as described by its table (struct qhca_buf), and what the walker
 * caches of it.
 */
struct qhca_buf_table {
    uint64_t addr, len;         /* from the descriptor, in CPU order */
    uint32_t first, entries;
    uint8_t form, hops, page_shift, table_shift;
    bool queue;                 /* entries may not straddle segments */
    uint8_t kind;               /* QHCA_DMA_*: its content */
    bool odp;                   /* entries may be missing: page fault */
    /* leaf found last: page number leaf_page */
    bool leaf_valid;
    bool leaf_write;            /* ODP: the page is writable */
    uint64_t leaf;              /* DMA address of the page */
    uint64_t leaf_page;         /* LIST: number of the segment */
    uint64_t leaf_off, leaf_len;/* LIST: start, size of the segment */
    /* last-level table used last (2 or 3 hops) */
    bool sub_valid;
    uint64_t sub, sub_addr;     /* its number and DMA address */
    /* block of last-level entries read last */
    bool block_valid;
    uint64_t block, block_addr; /* its number and DMA address */
    uint64_t entry[QHCA_BUF_BLOCK];     /* as in memory, little-endian */
};

/* ---- regions and windows ---- */

struct qhca_mr {
    uint32_t key;
    uint32_t pd, access;
    uint8_t flags, state;
    uint64_t iova, len;
    uint32_t max_entries;
    uint32_t windows;           /* number of windows bound to it */
    struct qhca_buf_table buf;
};

#define QHCA_MR_F_MW (QHCA_MR_F_MW1 | QHCA_MR_F_MW2)

struct qhca_mw {                /* memory window: mr.flags has QHCA_MR_F_MW* */
    struct qhca_mr mr;          /* key and rights; VALID while bound */
    struct qhca_mr *bound;      /* NULL: not bound */
    uint64_t off;               /* offset of byte 0 in the bound region */
    uint32_t qpn;               /* type 2: QP that bound it; else 0 */
    struct qhca_list link;      /* in the QP's list of windows */
};

/* The access that caused the last page fault (odp.c). */
struct qhca_odp_fault {
    uint64_t addr;              /* first missing byte, as an MR address */
    uint64_t len;               /* bytes wanted from there on */
    uint64_t max;               /* bytes from there to the end of the MR */
    uint32_t key;               /* of the MR */
    bool write;
};

/* The adapter's memory state. */
struct qhca_memory {
    struct qhca_idr uars, pds, mrs;
    uint32_t *pd_refs;          /* per PD: number of users */
    uint32_t *uar_refs;
    struct qhca_odp_fault page_fault;
    uint32_t page_fault_token;  /* of the last page fault reported */
};

/* ---- table_walk.c ---- */
/*
 * Validate descriptor @d for a buffer of @need bytes (0: any length) and unpack
 * it into @m.  @queue: first must be 0, and no entry may straddle a page or
 * segment.  Returns QHCA_ST_OK or QHCA_ST_BAD_TABLE.
 */
uint8_t qhca_buf_table_init(struct qhca_buf_table *m, const struct qhca_buf *d,
                            uint64_t need, bool queue);
/*
 * Find the DMA address of byte @off of the buffer; *@run gets the number of
 * contiguous bytes from there (never past the buffer's end).  @num is the
 * object number for the trace.  The caller has checked that @off < len.
 * Returns QHCA_SYN_NONE or QHCA_SYN_TABLE_*.
 */
uint8_t qhca_buf_table_walk(struct qhca *e, struct qhca_buf_table *m,
                            uint64_t off, uint32_t num, uint64_t *addr,
                            uint64_t *run);
/*
 * The same for a table with odp set.  Returns QHCA_SYN_PAGE_FAULT if the page
 * is missing or, with @write, is read-only.
 */
uint8_t qhca_buf_table_walk_odp(struct qhca *e, struct qhca_buf_table *m,
                                uint64_t off, bool write, uint32_t num,
                                uint64_t *addr, uint64_t *run);
/* Reconstruct the descriptor, for queries. */
void qhca_buf_table_describe(const struct qhca_buf_table *m,
                             struct qhca_buf *d);
/* Drop all cached state: the buffer is used from its start again. */
void qhca_buf_table_forget(struct qhca_buf_table *m);

/* ---- DMA; failures are counted (dma.c) ---- */
/*
 * Return false on failure.  @kind: QHCA_DMA_*, purpose of the access; @num:
 * object it is done for.  Both matter to fault injection only.
 */
bool qhca_dma_read(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                   void *buf, size_t len);
bool qhca_dma_write(struct qhca *e, uint8_t kind, uint32_t num, uint64_t addr,
                    const void *buf, size_t len);
/* The same for device memory; @off is a byte offset. */
bool qhca_dm_read(struct qhca *e, uint64_t off, void *buf, size_t len);
bool qhca_dm_write(struct qhca *e, uint64_t off, const void *buf,
                   size_t len);
/* Store 8 bytes atomically (ops->dma_store64). */
bool qhca_dma_store64(struct qhca *e, uint8_t kind, uint32_t num,
                      uint64_t addr, uint64_t val);
/* Read the index of the doorbell record at @addr; false: DMA failed. */
bool qhca_dbrec_read(struct qhca *e, uint8_t kind, uint32_t num,
                     uint64_t addr, uint32_t *index);
/* Set or clear QHCA_DBREC_NOTIFY in the record at @addr; false: DMA failed. */
bool qhca_dbrec_notify(struct qhca *e, uint8_t kind, uint32_t num,
                       uint64_t addr, bool notify);

/* ---- mr.c: all memory access by key ---- */
/*
 * An access through an ODP MR may return QHCA_SYN_PAGE_FAULT; then
 * e->mem->page_fault says where, and bytes copied before stay copied.  See
 * qhca_odp_stall().
 */
/*
 * Check that @len bytes at @addr may be accessed with @key.  @access: the
 * QHCA_ACCESS_* needed, 0 for a local read; windows allow remote access only.
 * @pd: of the QP or SRQ; @qpn: of the QP, for type 2 windows.  @privileged
 * allows QHCA_LKEY_RESERVED.  With @len 0 nothing is checked and any key is
 * allowed (IBA 9.7.4.1.3 / 10.6.3).  Returns QHCA_SYN_*.
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
 * Check as for qhca_mr_read(), then describe the bytes for a memory link's
 * record (qhca_memlink_refs_add()) in place of copying them.
 */
uint8_t qhca_mr_share(struct qhca *e, uint32_t pd, bool privileged,
                      uint32_t key, uint64_t addr, size_t len,
                      uint32_t access, uint32_t qpn);
/*
 * An atomic operation on 8 bytes. swap_op: if they equal cmp_add in the bits of
 * mask, replace the bits of swap_mask by those of swap.  Otherwise add cmp_add;
 * each bit set in mask is the top bit of a field, out of which no carry
 * propagates.
 */
struct qhca_atomic {
    bool swap_op;
    uint64_t cmp_add, swap, mask, swap_mask;
};

/*
 * Check for REMOTE_ATOMIC and 8-byte alignment, then execute @op; *@old gets
 * the previous value.  Returns QHCA_SYN_*.
 */
uint8_t qhca_mr_atomic(struct qhca *e, uint32_t pd, uint32_t key,
                       uint64_t addr, const struct qhca_atomic *op,
                       uint64_t *old, uint32_t qpn);
/*
 * Check for REMOTE_WRITE and 8-byte alignment, then store the 8 bytes of @buf
 * atomically.  Returns QHCA_SYN_*.
 */
uint8_t qhca_mr_store64(struct qhca *e, uint32_t pd, uint32_t key,
                        uint64_t addr, const uint8_t buf[8], uint32_t qpn);
/*
 * Check that @len bytes at @addr, or the @whole region, allow @access
 * (QHCA_ACCESS_FLUSH_*), then make all earlier writes visible.  The key must be
 * valid even if @len is 0.  Returns QHCA_SYN_*.
 */
uint8_t qhca_mr_flush(struct qhca *e, uint32_t pd, uint32_t key,
                      uint64_t addr, uint32_t len, bool whole,
                      uint32_t access, uint32_t qpn);
/*
 * LOCAL_INV of QP @qpn, or remote invalidate by its peer.  Allowed for FAST_REG
 * MRs of @pd without windows, and for type 2 windows that this QP has bound.
 * Returns QHCA_SYN_*.
 */
uint8_t qhca_mr_invalidate(struct qhca *e, uint32_t pd, uint32_t key,
                           uint32_t qpn);
/*
 * QHCA_DB_MR_SYNC for the MR with key index @index: drop what is cached of its
 * table.  Never called during a copy, so nothing is in flight.
 */
void qhca_mr_sync(struct qhca *e, uint32_t index);
/* REG_MR with the fields of @wqe; returns QHCA_SYN_*. */
uint8_t qhca_mr_fast_reg(struct qhca *e, uint32_t pd,
                         const struct qhca_sq_wqe *wqe);

/* The region or window whose full key is @key, or NULL. */
struct qhca_mr *qhca_mr_get(struct qhca *e, uint32_t key);
/* The same for commands, which ignore the low byte of some keys. */
struct qhca_mr *qhca_mr_get_cmd(struct qhca *e, uint32_t key);
/* Could commands and work requests have produced region @mr (no window)? */
bool qhca_mr_valid(struct qhca *e, const struct qhca_mr *mr);
/* Is this combination of QHCA_ACCESS_* allowed for a region? */
bool qhca_mr_access_ok(uint32_t access);

/* ---- mw.c: memory windows ---- */
/* The window that contains @mr, or NULL if @mr is a region. */
static inline struct qhca_mw *qhca_mr_mw(struct qhca_mr *mr)
{
    return mr->flags & QHCA_MR_F_MW ? (struct qhca_mw *)mr : NULL;
}
/*
 * May a QP of the PD of @mw bind it to @len bytes at @addr of region @mr (NULL:
 * there is none), with @flags: access and QHCA_BIND_*?  Returns QHCA_SYN_*.
 */
uint8_t qhca_mw_check(const struct qhca_mw *mw, const struct qhca_mr *mr,
                      uint64_t addr, uint64_t len, uint32_t flags);
/*
 * BIND_MW with the fields of @wqe, by QP @qpn of @pd, whose list of type 2
 * windows is @windows.  Returns QHCA_SYN_*.
 */
uint8_t qhca_mw_bind(struct qhca *e, uint32_t pd, uint32_t qpn,
                     struct qhca_list *windows,
                     const struct qhca_sq_wqe *wqe);
/* Unbind @mw: it no longer grants access. */
void qhca_mw_unbind(struct qhca *e, struct qhca_mw *mw);
/*
 * Unbind the type 2 windows of a QP that is to be destroyed.  False: the
 * command's budget is used up, and not all are done.
 */
bool qhca_mw_unbind_all(struct qhca *e, struct qhca_list *windows);

/* ---- pd_uar.c: protection domains and user access regions ---- */
qhca_cmd_fn qhca_cmd_alloc_uar, qhca_cmd_free_uar;
qhca_cmd_fn qhca_cmd_alloc_pd, qhca_cmd_free_pd;
/* mr.c, mw.c */
qhca_cmd_fn qhca_cmd_create_mr, qhca_cmd_destroy_mr, qhca_cmd_query_mr;
qhca_cmd_fn qhca_cmd_modify_mr;
qhca_cmd_fn qhca_cmd_create_mw;
/*
 * Destroy region or window @num without asking for references; false: there is
 * none.  qhca_mw_discard() destroys windows only, which go first.
 */
bool qhca_mw_discard(struct qhca *e, uint32_t num);
bool qhca_mr_discard(struct qhca *e, uint32_t num);

/* ---- save_mr.c ---- */
/*
 * Save or load the descriptor of a buffer, not what is cached.  @need, @queue:
 * see qhca_buf_table_init().
 */
void qhca_io_buf(struct qhca_io *io, struct qhca_buf_table *m, uint64_t need,
                 bool queue);
void qhca_io_mrs(struct qhca_io *io);   /* regions only */
/* Save or load the part common to regions and windows. */
void qhca_io_key(struct qhca_io *io, struct qhca_mr *m);

#endif /* QHCA_MEMORY_H */
