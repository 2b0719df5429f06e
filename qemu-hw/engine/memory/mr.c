/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: all access by key is checked here (IBA 10.6.3).  A key is the
 * index of the region in bits 31:8 and a byte chosen by software in 7:0; all 32
 * bits must match.
 */
#include <stdlib.h>

#include "memory/memory.h"

/* Bounds the loop: a guest CPU that keeps writing could fail it forever. */
#define ATOMIC_TRIES        1000

/* Kinds of MR, at most one of them; 0: guest memory described by a table. */
#define MR_KINDS (QHCA_MR_F_PHYS | QHCA_MR_F_FAST_REG | QHCA_MR_F_DM | \
                  QHCA_MR_F_ODP)

/* The verbs require local write wherever the peer may write. */
bool qhca_mr_access_ok(uint32_t access)
{
    return !(access & ~QHCA_ACCESS_MASK) &&
           (!(access & (QHCA_ACCESS_REMOTE_WRITE |
                        QHCA_ACCESS_REMOTE_ATOMIC)) ||
            (access & QHCA_ACCESS_LOCAL_WRITE));
}

struct qhca_mr *qhca_mr_get(struct qhca *e, uint32_t key)
{
    struct qhca_mr *mr = qhca_idr_get(&e->mem->mrs,
                                      key >> QHCA_KEY_INDEX_SHIFT);

    return mr && mr->key == key ? mr : NULL;
}

/*
 * The region that a command specifies.  The key byte of a FAST_REG region or a
 * window is ignored: it changes with each REG_MR or BIND_MW, and software
 * cannot know whether one that it posted was executed.
 */
struct qhca_mr *qhca_mr_get_cmd(struct qhca *e, uint32_t key)
{
    struct qhca_mr *mr = qhca_idr_get(&e->mem->mrs,
                                      key >> QHCA_KEY_INDEX_SHIFT);

    return mr && (mr->key == key ||
                  (mr->flags & (QHCA_MR_F_FAST_REG | QHCA_MR_F_MW))) ?
           mr : NULL;
}

/* An access may use a window only if it needs one of these rights. */
#define REMOTE_ACCESS   (QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ | \
                         QHCA_ACCESS_REMOTE_ATOMIC | \
                         QHCA_ACCESS_FLUSH_GLOBAL | \
                         QHCA_ACCESS_FLUSH_PERSISTENT)

/*
 * The checks of qhca_mr_check().  *@mrp gets the region and *@off the offset in
 * it; NULL and a DMA address if the region has no table.
 */
static uint8_t mr_find(struct qhca *e, uint32_t pd, bool privileged,
                       uint32_t key, uint64_t addr, uint64_t len,
                       uint32_t access, uint32_t qpn, struct qhca_mr **mrp,
                       uint64_t *off)
{
    const struct qhca_mw *mw;
    struct qhca_mr *mr;

    *mrp = NULL;
    *off = addr;
    if (key == QHCA_LKEY_RESERVED) {
        if (!privileged) {
            return QHCA_SYN_KEY_PRIVILEGE;
        }
        return addr + (len - 1) < addr ? QHCA_SYN_KEY_BOUNDS : QHCA_SYN_NONE;
    }
    mr = qhca_mr_get(e, key);
    if (!mr || mr->state != QHCA_MR_VALID) {
        return QHCA_SYN_KEY_INVALID;
    }
    if (mr->pd != pd) {
        return QHCA_SYN_KEY_PD;
    }
    mw = qhca_mr_mw(mr);
    if (mw && !(access & REMOTE_ACCESS)) {
        return QHCA_SYN_KEY_INVALID;    /* a window has no L_Key */
    }
    if (mw && mw->qpn && mw->qpn != qpn) {
        return QHCA_SYN_MW_QP;
    }
    if ((mr->access & access) != access) {
        return QHCA_SYN_KEY_ACCESS;
    }
    *off = addr - mr->iova;
    if (addr < mr->iova || *off > mr->len || len > mr->len - *off) {
        return QHCA_SYN_KEY_BOUNDS;
    }
    if (mw) {
        *off += mw->off;
        mr = mw->bound;
    }
    *mrp = mr->flags & QHCA_MR_F_PHYS ? NULL : mr;
    return QHCA_SYN_NONE;
}

uint8_t qhca_mr_check(struct qhca *e, uint32_t pd, bool privileged,
                      uint32_t key, uint64_t addr, uint64_t len,
                      uint32_t access, uint32_t qpn)
{
    struct qhca_mr *mr;
    uint64_t off;

    if (!len) {
        return QHCA_SYN_NONE;
    }
    return mr_find(e, pd, privileged, key, addr, len, access, qpn, &mr, &off);
}

/* Are the addresses in its table offsets in device memory? */
static bool mr_is_dm(const struct qhca_mr *mr)
{
    return mr && (mr->flags & QHCA_MR_F_DM);
}

static void mr_trace_data(struct qhca *e, uint32_t qpn, uint64_t addr,
                          uint64_t len, bool write)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_DATA, .num = qpn, .addr = addr, .a = len, .b = write,
    };

    qhca_trace_emit(e, &t);
}

/* Copy one contiguous piece. */
static uint8_t mr_copy_run(struct qhca *e, bool dm, uint64_t addr,
                           uint8_t *buf, size_t len, bool write, uint32_t qpn)
{
    bool ok;

    if (dm) {
        ok = write ? qhca_dm_write(e, addr, buf, len) :
                     qhca_dm_read(e, addr, buf, len);
    } else {
        ok = write ? qhca_dma_write(e, QHCA_DMA_DATA, qpn, addr, buf, len) :
                     qhca_dma_read(e, QHCA_DMA_DATA, qpn, addr, buf, len);
    }

    if (ok && qhca_tracing(e)) {
        mr_trace_data(e, qpn, addr, len, write);
    }
    return ok ? QHCA_SYN_NONE : QHCA_SYN_DATA_DMA;
}

/*
 * Find byte @off of the region; @want bytes from there on are to be copied.
 * Records a missing page in e->mem->page_fault.
 */
static uint8_t mr_walk(struct qhca *e, struct qhca_mr *mr, uint64_t off,
                       uint64_t want, bool write, uint64_t *at,
                       uint64_t *run)
{
    uint8_t syn;

    if (!(mr->flags & QHCA_MR_F_ODP)) {
        return qhca_buf_table_walk(e, &mr->buf, off, mr->key, at, run);
    }
    syn = qhca_buf_table_walk_odp(e, &mr->buf, off, write, mr->key, at, run);
    if (syn == QHCA_SYN_PAGE_FAULT) {
        e->mem->page_fault.addr = mr->iova + off;
        e->mem->page_fault.len = want;
        e->mem->page_fault.max = mr->len - off;
        e->mem->page_fault.key = mr->key;
        e->mem->page_fault.write = write;
    }
    return syn;
}

/* The caller has checked the range; each iteration copies at least one byte. */
static uint8_t mr_copy(struct qhca *e, struct qhca_mr *mr, uint64_t off,
                       uint8_t *buf, size_t len, bool write, uint32_t qpn)
{
    uint64_t at, run;
    uint8_t syn;
    size_t n;

    if (!mr) {
        return mr_copy_run(e, false, off, buf, len, write, qpn);
    }
    while (len) {
        syn = mr_walk(e, mr, off, len, write, &at, &run);
        if (syn) {
            return syn;
        }
        n = run < len ? (size_t)run : len;
        syn = mr_copy_run(e, mr_is_dm(mr), at, buf, n, write, qpn);
        if (syn) {
            return syn;
        }
        off += n;
        buf += n;
        len -= n;
    }
    return QHCA_SYN_NONE;
}

uint8_t qhca_mr_read(struct qhca *e, uint32_t pd, bool privileged,
                     uint32_t key, uint64_t addr, void *buf, size_t len,
                     uint32_t access, uint32_t qpn)
{
    struct qhca_mr *mr;
    uint64_t off;
    uint8_t syn;

    if (!len) {
        return QHCA_SYN_NONE;
    }
    syn = mr_find(e, pd, privileged, key, addr, len, access, qpn, &mr, &off);
    return syn ? syn : mr_copy(e, mr, off, buf, len, false, qpn);
}

uint8_t qhca_mr_share(struct qhca *e, uint32_t pd, bool privileged,
                      uint32_t key, uint64_t addr, size_t len,
                      uint32_t access, uint32_t qpn)
{
    uint64_t off, at, run = len;
    struct qhca_mr *mr;
    uint8_t syn = mr_find(e, pd, privileged, key, addr, len, access, qpn, &mr,
                          &off);
    uint32_t n;

    /* a region of all memory, or a window of one, has a key but no table */
    if (!syn && key != QHCA_LKEY_RESERVED) {
        qhca_memlink_refs_key(e, key >> QHCA_KEY_INDEX_SHIFT);
    }
    if (!syn && mr) {
        qhca_memlink_refs_key(e, mr->key >> QHCA_KEY_INDEX_SHIFT);
        if (mr_is_dm(mr)) {
            e->ml->out.unfit = true;
        }
    }
    at = off;
    while (!syn && len && !e->ml->out.unfit) {
        if (mr) {
            syn = mr_walk(e, mr, off, len, false, &at, &run);
            if (syn) {
                break;
            }
        }
        n = (uint32_t)(run < len ? run : len);
        qhca_memlink_refs_add(e, at, n);
        if (qhca_tracing(e) && !e->ml->out.unfit) {
            mr_trace_data(e, qpn, at, n, false);
        }
        off += n;
        len -= n;
    }
    return syn;
}

uint8_t qhca_mr_write(struct qhca *e, uint32_t pd, bool privileged,
                      uint32_t key, uint64_t addr, const void *buf,
                      size_t len, uint32_t access, uint32_t qpn)
{
    struct qhca_mr *mr;
    uint64_t off;
    uint8_t syn;

    if (!len) {
        return QHCA_SYN_NONE;
    }
    syn = mr_find(e, pd, privileged, key, addr, len, access, qpn, &mr, &off);
    /* With write set, mr_copy() only reads from buf. */
    return syn ? syn : mr_copy(e, mr, off, (void *)buf, len, true, qpn);
}

/* Compute the new value; false: the compare failed, no change. */
static bool atomic_next(const struct qhca_atomic *op, uint64_t old,
                        uint64_t *next)
{
    uint64_t tops = op->mask;

    if (op->swap_op) {
        *next = (old & ~op->swap_mask) | (op->swap & op->swap_mask);
        return !((old ^ op->cmp_add) & op->mask);
    }
    /* Adding without the top bits keeps carries inside their fields. */
    *next = (old & ~tops) + (op->cmp_add & ~tops);
    *next ^= (old ^ op->cmp_add) & tops;
    return true;
}

/* Execute @op on the 8 bytes at @addr (DMA, or device memory if @dm). */
static bool atomic_at(struct qhca *e, bool dm, uint64_t addr,
                      const struct qhca_atomic *op, uint64_t *old)
{
    bool (*cas)(void *opaque, uint64_t addr, uint64_t cmp, uint64_t swap,
                uint64_t *old) = dm ? e->ops.dm_cas64 : e->ops.dma_cas64;
    bool (*get)(void *opaque, uint64_t addr, void *buf, size_t len) =
        dm ? e->ops.dm_read : e->ops.dma_read;
    uint64_t expect, next, seen;
    unsigned i;

    qhca_cost(e, 1);
    if (op->swap_op && op->mask == UINT64_MAX &&
        op->swap_mask == UINT64_MAX) {
        return cas(e->opaque, addr, op->cmp_add, op->swap, old);
    }
    if (!get(e->opaque, addr, &expect, sizeof(expect))) {
        return false;
    }
    expect = qhca_le64(expect);
    for (i = 0; i < ATOMIC_TRIES; i++) {
        *old = expect;
        /* even with no change, the 8 bytes must be read atomically */
        if (!atomic_next(op, expect, &next)) {
            next = expect;
        }
        qhca_cost(e, 1);
        if (!cas(e->opaque, addr, expect, next, &seen)) {
            return false;
        }
        if (seen == expect) {
            return true;
        }
        expect = seen;
    }
    return false;
}

/*
 * Check a remote access to the 8 bytes at @addr and find their DMA address or
 * (*@dm) offset in device memory.  That may be misaligned even if @addr is not,
 * since a region may begin anywhere in its page.
 */
static uint8_t mr_find_word(struct qhca *e, uint32_t pd, uint32_t key,
                            uint64_t addr, uint32_t access, uint32_t qpn,
                            bool *dm, uint64_t *at)
{
    struct qhca_mr *mr;
    uint64_t run = 8, off;
    uint8_t syn;

    if (addr & 7) {
        return QHCA_SYN_BAD_PACKET;
    }
    *dm = false;
    syn = mr_find(e, pd, false, key, addr, 8, access, qpn, &mr, &off);
    *at = off;
    if (!syn && mr) {
        *dm = mr_is_dm(mr);
        syn = mr_walk(e, mr, off, 8, true, at, &run);
    }
    if (!syn && ((*at & 7) || run < 8)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        syn = QHCA_SYN_DATA_DMA;
    }
    return syn;
}

uint8_t qhca_mr_atomic(struct qhca *e, uint32_t pd, uint32_t key,
                       uint64_t addr, const struct qhca_atomic *op,
                       uint64_t *old, uint32_t qpn)
{
    uint64_t at;
    bool dm;
    uint8_t syn = mr_find_word(e, pd, key, addr, QHCA_ACCESS_REMOTE_ATOMIC, qpn,
                               &dm, &at);

    if (syn) {
        return syn;
    }
    if ((!dm && qhca_faulty(e, QHCA_FLT_AT_DMA) &&
         e->hooks->dma_fails(e, QHCA_DMA_DATA, qpn, at, 8, true,
                             NULL)) ||
        !atomic_at(e, dm, at, op, old)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return QHCA_SYN_DATA_DMA;
    }
    if (qhca_tracing(e)) {
        mr_trace_data(e, qpn, at, 8, true);
    }
    return QHCA_SYN_NONE;
}

/* Device memory has no atomic store, only compare-and-swap. */
static bool dm_store64(struct qhca *e, uint64_t addr, uint64_t val)
{
    uint64_t expect = 0, seen;
    unsigned i;

    for (i = 0; i < ATOMIC_TRIES; i++) {
        qhca_cost(e, 1);
        if (!e->ops.dm_cas64(e->opaque, addr, expect, val, &seen)) {
            break;
        }
        if (seen == expect) {
            return true;
        }
        expect = seen;
    }
    qhca_count(e, QHCA_STAT_DMA_ERRORS);
    return false;
}

uint8_t qhca_mr_store64(struct qhca *e, uint32_t pd, uint32_t key,
                        uint64_t addr, const uint8_t buf[8], uint32_t qpn)
{
    uint64_t at;
    bool dm;
    uint8_t syn = mr_find_word(e, pd, key, addr, QHCA_ACCESS_REMOTE_WRITE, qpn,
                               &dm, &at);

    if (syn) {
        return syn;
    }
    if (dm ? !dm_store64(e, at, qhca_get_le64(buf)) :
        !qhca_dma_store64(e, QHCA_DMA_DATA, qpn, at, qhca_get_le64(buf))) {
        return QHCA_SYN_DATA_DMA;
    }
    if (qhca_tracing(e)) {
        mr_trace_data(e, qpn, at, 8, true);
    }
    return QHCA_SYN_NONE;
}

uint8_t qhca_mr_flush(struct qhca *e, uint32_t pd, uint32_t key,
                      uint64_t addr, uint32_t len, bool whole,
                      uint32_t access, uint32_t qpn)
{
    struct qhca_mr *mr = qhca_mr_get(e, key);
    uint64_t off;
    uint8_t syn;

    if (whole && mr) {
        addr = mr->iova;
        len = 0;
    }
    syn = mr_find(e, pd, false, key, addr, len, access, qpn, &mr, &off);
    if (!syn) {
        /* DMA is not buffered: only ordering remains to be ensured. */
        e->ops.dma_fence(e->opaque);
    }
    return syn;
}

uint8_t qhca_mr_invalidate(struct qhca *e, uint32_t pd, uint32_t key,
                           uint32_t qpn)
{
    struct qhca_mr *mr = qhca_mr_get(e, key);

    if (!mr) {
        return QHCA_SYN_KEY_INVALID;
    }
    if (mr->pd != pd) {
        return QHCA_SYN_KEY_PD;
    }
    if (mr->flags & QHCA_MR_F_MW2) {
        struct qhca_mw *mw = qhca_mr_mw(mr);

        if (mw->qpn && mw->qpn != qpn) {
            return QHCA_SYN_MW_QP;
        }
        qhca_mw_unbind(e, mw);
        return QHCA_SYN_NONE;
    }
    if (!(mr->flags & QHCA_MR_F_FAST_REG)) {
        return QHCA_SYN_KEY_ACCESS;
    }
    if (mr->windows) {
        return QHCA_SYN_MW_BOUND;
    }
    /* If the peer invalidated it first, it just stays free. */
    mr->state = QHCA_MR_FREE;
    qhca_memlink_revoke_key(e, key >> QHCA_KEY_INDEX_SHIFT);
    return QHCA_SYN_NONE;
}

void qhca_mr_sync(struct qhca *e, uint32_t index)
{
    struct qhca_mr *mr = qhca_idr_get(&e->mem->mrs, index);

    /* It may have been destroyed before the doorbell was handled. */
    if (mr && (mr->flags & QHCA_MR_F_ODP)) {
        qhca_buf_table_forget(&mr->buf);
        qhca_memlink_revoke_key(e, index);
    }
}

/* See struct qhca_wqe_remote for the arguments of REG_MR. */
uint8_t qhca_mr_fast_reg(struct qhca *e, uint32_t pd,
                         const struct qhca_sq_wqe *wqe)
{
    uint32_t key = qhca_le32(wqe->remote.rkey);
    uint32_t arg = qhca_le32(wqe->remote.arg), pages = arg >> 16;
    uint64_t iova = qhca_le64(wqe->ctrl.arg0);
    uint64_t len = qhca_le64(wqe->ctrl.arg1);
    struct qhca_mr *mr = qhca_idr_get(&e->mem->mrs,
                                      key >> QHCA_KEY_INDEX_SHIFT);
    struct qhca_buf d = { .form = QHCA_BUF_FLAT, .hops = 1 };
    struct qhca_buf_table map;

    if (!mr || !(mr->flags & QHCA_MR_F_FAST_REG) ||
        mr->state != QHCA_MR_FREE) {
        return QHCA_SYN_KEY_INVALID;
    }
    if (mr->pd != pd) {
        return QHCA_SYN_KEY_PD;
    }
    if (!qhca_mr_access_ok(arg & 0xff)) {
        return QHCA_SYN_KEY_ACCESS;
    }
    if (pages > mr->max_entries ||
        iova + (len - 1) < iova || len > QHCA_MAX_MR_SIZE) {
        return QHCA_SYN_KEY_BOUNDS;
    }
    d.addr = wqe->remote.addr;
    d.len = qhca_le64(len);
    d.page_shift = (arg >> 8) & 0xff;
    d.entries = qhca_le32(pages);
    /* The offset of byte 0 in its page is that of its address. */
    d.first = d.page_shift <= QHCA_BUF_PAGE_SHIFT_MAX ?
              qhca_le32((uint32_t)(iova & ((1ULL << d.page_shift) - 1))) : 0;
    if (qhca_buf_table_init(&map, &d, 0, false)) {
        return QHCA_SYN_TABLE_INVALID;
    }
    mr->buf = map;
    mr->key = key;
    mr->iova = iova;
    mr->len = len;
    mr->access = arg & 0xff & QHCA_ACCESS_MASK;
    mr->state = QHCA_MR_VALID;
    return QHCA_SYN_NONE;
}

/* Check length and addresses of a region with a table. */
static uint8_t mr_check_range(struct qhca_cmd *c, const struct qhca_mpt *in,
                              uint8_t flags)
{
    uint64_t iova = qhca_le64(in->iova), len = qhca_le64(in->len);

    if (!len && !in->buf.len && (flags & QHCA_MR_F_DM)) {
        return QHCA_ST_OK;      /* zero-length DM regions exist in verbs */
    }
    if (!len || len > QHCA_MAX_MR_SIZE || len != qhca_le64(in->buf.len)) {
        return qhca_bad(c, offsetof(struct qhca_mpt, len));
    }
    if (iova + (len - 1) < iova) {
        return qhca_bad(c, offsetof(struct qhca_mpt, iova));
    }
    return QHCA_ST_OK;
}

static uint8_t mr_check_create(struct qhca *e, struct qhca_cmd *c,
                               const struct qhca_mpt *in)
{
    uint32_t max_entries = qhca_le32(in->max_entries);

    if (!qhca_mr_access_ok(qhca_le32(in->access))) {
        return qhca_bad(c, offsetof(struct qhca_mpt, access));
    }
    if ((in->flags & ~MR_KINDS) || (in->flags & (in->flags - 1))) {
        return qhca_bad(c, offsetof(struct qhca_mpt, flags));
    }
    if ((in->flags & QHCA_MR_F_DM) && !e->cfg.dm_size) {
        return QHCA_ST_UNSUPPORTED;
    }
    if (!qhca_idr_get(&e->mem->pds, qhca_le32(in->pd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_mpt, pd));
    }
    if (in->flags & QHCA_MR_F_FAST_REG) {
        if (!max_entries || max_entries > 65535) {
            return qhca_bad(c, offsetof(struct qhca_mpt, max_entries));
        }
        return QHCA_ST_OK;
    }
    if (in->flags & QHCA_MR_F_PHYS) {
        if (in->iova) {
            return qhca_bad(c, offsetof(struct qhca_mpt, iova));
        }
        return QHCA_ST_OK;
    }
    return mr_check_range(c, in, in->flags);
}

/* Device memory is one block, which must contain the region. */
static bool dm_ok(const struct qhca *e, const struct qhca_buf_table *m)
{
    return m->form == QHCA_BUF_DIRECT && m->len <= e->cfg.dm_size &&
           m->addr <= e->cfg.dm_size - m->len &&
           m->first <= e->cfg.dm_size - m->len - m->addr;
}

/* May table @m be that of a region with @flags (neither PHYS nor FAST_REG)? */
static bool mr_table_ok(const struct qhca *e, const struct qhca_buf_table *m,
                        uint8_t flags)
{
    if (flags & QHCA_MR_F_DM) {
        return dm_ok(e, m);
    }
    return !(flags & QHCA_MR_F_ODP) || m->form == QHCA_BUF_FLAT ||
           m->form == QHCA_BUF_TREE;
}

/* Set up the table of such a region. */
static uint8_t init_table(const struct qhca *e, struct qhca_buf_table *m,
                          const struct qhca_mpt *in, uint8_t flags)
{
    uint64_t len = qhca_le64(in->len);
    uint8_t st;

    if (!len) {
        return QHCA_ST_OK;              /* zero length: no table */
    }
    st = qhca_buf_table_init(m, &in->buf, len, false);
    m->odp = flags & QHCA_MR_F_ODP;
    return !st && !mr_table_ok(e, m, flags) ? QHCA_ST_BAD_TABLE : st;
}

/* Fill in the fields that CREATE_MR, MODIFY_MR and REG_MR set. */
static void mr_describe(const struct qhca_mr *mr, struct qhca_mpt *out)
{
    memset(out, 0, sizeof(*out));
    qhca_buf_table_describe(&mr->buf, &out->buf);
    out->iova = qhca_le64(mr->iova);
    out->len = qhca_le64(mr->len);
    out->key = qhca_le32(mr->key);
    out->pd = qhca_le32(mr->pd);
    out->access = qhca_le32(mr->access);
    out->flags = mr->flags;
    out->max_entries = qhca_le32(mr->max_entries);
}

bool qhca_mr_valid(struct qhca *e, const struct qhca_mr *mr)
{
    const struct qhca_buf_table *m = &mr->buf;
    struct qhca_cmd c = { 0 };
    struct qhca_mpt in;

    mr_describe(mr, &in);
    if (mr_check_create(e, &c, &in)) {
        return false;
    }
    if (mr->flags & QHCA_MR_F_FAST_REG) {
        /* The range is that of REG_MR. */
        return mr->state == QHCA_MR_FREE ||
               (!mr_check_range(&c, &in, 0) && m->form == QHCA_BUF_FLAT &&
                m->entries <= mr->max_entries);
    }
    if (mr->state != QHCA_MR_VALID) {
        return false;
    }
    if (mr->flags & QHCA_MR_F_PHYS) {
        return mr->len == UINT64_MAX && !m->len;
    }
    return !m->len || mr_table_ok(e, m, mr->flags);
}

uint8_t qhca_cmd_create_mr(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_mpt *in = c->in;
    uint8_t st = mr_check_create(e, c, in);
    struct qhca_mr *mr;
    uint32_t index;

    if (st) {
        return st;
    }
    mr = calloc(1, sizeof(*mr));
    if (!mr) {
        return QHCA_ST_NO_RESOURCES;
    }
    if (in->flags & QHCA_MR_F_PHYS) {
        mr->len = UINT64_MAX;
        mr->state = QHCA_MR_VALID;
    } else if (in->flags & QHCA_MR_F_FAST_REG) {
        mr->max_entries = qhca_le32(in->max_entries);
        mr->state = QHCA_MR_FREE;
    } else {
        mr->iova = qhca_le64(in->iova);
        mr->len = qhca_le64(in->len);
        mr->state = QHCA_MR_VALID;
        st = init_table(e, &mr->buf, in, in->flags);
    }
    if (!st && !qhca_idr_add(&e->mem->mrs, mr, &index)) {
        st = QHCA_ST_NO_RESOURCES;
    }
    if (st) {
        free(mr);
        return st;
    }
    mr->key = index << QHCA_KEY_INDEX_SHIFT |
              (qhca_le32(in->key) & QHCA_KEY_BYTE_MASK);
    mr->pd = qhca_le32(in->pd);
    e->mem->pd_refs[mr->pd]++;
    mr->access = qhca_le32(in->access);
    mr->flags = in->flags;
    c->obj = mr->key;
    return QHCA_ST_OK;
}

/* Check @mask for this region and the values that it selects. */
static uint8_t mr_check_modify(struct qhca *e, struct qhca_cmd *c,
                               const struct qhca_mr *mr)
{
    const struct qhca_mpt *in = c->in;

    if (c->mask & ~(QHCA_MR_M_PD | QHCA_MR_M_ACCESS | QHCA_MR_M_TRANS)) {
        return QHCA_ST_BAD_PARAM;
    }
    if ((mr->flags & (QHCA_MR_F_PHYS | QHCA_MR_F_FAST_REG | QHCA_MR_F_MW)) ||
        ((c->mask & QHCA_MR_M_TRANS) &&
         (mr->flags & (QHCA_MR_F_DM | QHCA_MR_F_ODP)))) {
        return QHCA_ST_BAD_STATE;
    }
    if (mr->windows) {
        return QHCA_ST_BUSY;
    }
    if ((c->mask & QHCA_MR_M_PD) &&
        !qhca_idr_get(&e->mem->pds, qhca_le32(in->pd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_mpt, pd));
    }
    if ((c->mask & QHCA_MR_M_ACCESS) &&
        !qhca_mr_access_ok(qhca_le32(in->access))) {
        return qhca_bad(c, offsetof(struct qhca_mpt, access));
    }
    return c->mask & QHCA_MR_M_TRANS ? mr_check_range(c, in, mr->flags) :
                                       QHCA_ST_OK;
}

uint8_t qhca_cmd_modify_mr(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_mr *mr = qhca_mr_get_cmd(e, c->obj);
    const struct qhca_mpt *in = c->in;
    struct qhca_buf_table map;
    uint8_t st;

    if (!mr) {
        return QHCA_ST_BAD_OBJ;
    }
    st = mr_check_modify(e, c, mr);
    if (!st && (c->mask & QHCA_MR_M_TRANS)) {
        memset(&map, 0, sizeof(map));
        st = init_table(e, &map, in, mr->flags);
    }
    if (st) {
        return st;
    }
    qhca_memlink_revoke_key(e, mr->key >> QHCA_KEY_INDEX_SHIFT);
    if (c->mask & QHCA_MR_M_TRANS) {
        mr->buf = map;
        mr->iova = qhca_le64(in->iova);
        mr->len = qhca_le64(in->len);
    }
    if (c->mask & QHCA_MR_M_ACCESS) {
        mr->access = qhca_le32(in->access);
    }
    if (c->mask & QHCA_MR_M_PD) {
        e->mem->pd_refs[mr->pd]--;
        mr->pd = qhca_le32(in->pd);
        e->mem->pd_refs[mr->pd]++;
    }
    return QHCA_ST_OK;
}

static void mr_free(struct qhca *e, struct qhca_mr *mr)
{
    if (mr->flags & QHCA_MR_F_MW) {
        qhca_mw_unbind(e, qhca_mr_mw(mr));
    }
    qhca_memlink_revoke_key(e, mr->key >> QHCA_KEY_INDEX_SHIFT);
    e->mem->pd_refs[mr->pd]--;
    qhca_idr_del(&e->mem->mrs, mr->key >> QHCA_KEY_INDEX_SHIFT);
    free(mr);
}

uint8_t qhca_cmd_destroy_mr(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_mr *mr = qhca_mr_get_cmd(e, c->obj);

    if (!mr) {
        return QHCA_ST_BAD_OBJ;
    }
    if (mr->windows) {
        return QHCA_ST_BUSY;
    }
    mr_free(e, mr);
    return QHCA_ST_OK;
}

bool qhca_query_mr(struct qhca *e, uint32_t key, struct qhca_mpt *out)
{
    struct qhca_mr *mr = qhca_mr_get_cmd(e, key);
    const struct qhca_mw *mw;

    if (!mr) {
        return false;
    }
    mr_describe(mr, out);
    out->state = mr->state;
    mw = qhca_mr_mw(mr);
    if (mw && mw->bound) {
        out->mw_mr_key = qhca_le32(mw->bound->key);
        out->mw_qpn = qhca_le32(mw->qpn);
    }
    return true;
}

uint8_t qhca_cmd_query_mr(struct qhca *e, struct qhca_cmd *c)
{
    return qhca_query_mr(e, c->obj, c->out) ? QHCA_ST_OK : QHCA_ST_BAD_OBJ;
}

bool qhca_mw_discard(struct qhca *e, uint32_t num)
{
    struct qhca_mr *mr = qhca_idr_get(&e->mem->mrs, num);

    if (!mr || !(mr->flags & QHCA_MR_F_MW)) {
        return false;
    }
    mr_free(e, mr);
    return true;
}

bool qhca_mr_discard(struct qhca *e, uint32_t num)
{
    struct qhca_mr *mr = qhca_idr_get(&e->mem->mrs, num);

    if (mr) {
        mr_free(e, mr);
    }
    return mr;
}
