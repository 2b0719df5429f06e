/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory regions: every access by key passes here (IBA 10.6.3).  A key is the
 * index of the region in 31:8 and a byte the software chose in 7:0; it must
 * match as a whole.
 */
#include <stdlib.h>

#include "internal.h"
#include "admin.h"

/* A guest CPU that writes without end could fail the swap for ever. */
#define ATOMIC_TRIES        1000

static struct qhca_mr *mr_get(struct qhca *e, uint32_t key)
{
    struct qhca_mr *mr = qhca_table_get(&e->mrs, key >> QHCA_KEY_INDEX_SHIFT);

    return mr && mr->key == key ? mr : NULL;
}

/*
 * The region a command names.  The key byte of a FAST_REG region changes with
 * each REG_MR, which software may have posted in vain: it does not count.
 */
static struct qhca_mr *mr_get_cmd(struct qhca *e, uint32_t key)
{
    struct qhca_mr *mr = qhca_table_get(&e->mrs, key >> QHCA_KEY_INDEX_SHIFT);

    return mr && (mr->key == key || (mr->flags & QHCA_MR_F_FAST_REG)) ?
           mr : NULL;
}

/*
 * The checks of qhca_mr_check(); *@mrp gets the region, NULL if @addr is a
 * DMA address.
 */
static uint8_t mr_find(struct qhca *e, uint32_t pd, bool privileged,
                       uint32_t key, uint64_t addr, uint64_t len,
                       uint32_t access, struct qhca_mr **mrp)
{
    struct qhca_mr *mr;
    uint64_t off;

    *mrp = NULL;
    if (key == QHCA_LKEY_RESERVED) {
        if (!privileged) {
            return QHCA_SYN_KEY_PRIVILEGE;
        }
        return addr + (len - 1) < addr ? QHCA_SYN_KEY_BOUNDS : QHCA_SYN_NONE;
    }
    mr = mr_get(e, key);
    if (!mr || mr->state != QHCA_MR_VALID) {
        return QHCA_SYN_KEY_INVALID;
    }
    if (mr->pd != pd) {
        return QHCA_SYN_KEY_PD;
    }
    if ((mr->access & access) != access) {
        return QHCA_SYN_KEY_ACCESS;
    }
    off = addr - mr->iova;
    if (addr < mr->iova || off > mr->len || len > mr->len - off) {
        return QHCA_SYN_KEY_BOUNDS;
    }
    *mrp = mr->flags & QHCA_MR_F_PHYS ? NULL : mr;
    return QHCA_SYN_NONE;
}

uint8_t qhca_mr_check(struct qhca *e, uint32_t pd, bool privileged,
                      uint32_t key, uint64_t addr, uint64_t len,
                      uint32_t access)
{
    struct qhca_mr *mr;

    if (!len) {
        return QHCA_SYN_NONE;
    }
    return mr_find(e, pd, privileged, key, addr, len, access, &mr);
}

static void trace_data(struct qhca *e, uint32_t qpn, uint64_t addr,
                       uint64_t len, bool write)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_DATA, .num = qpn, .addr = addr, .a = len, .b = write,
    };

    qhca_trace_emit(e, &t);
}

/* One contiguous piece. */
static uint8_t copy_run(struct qhca *e, uint64_t addr, uint8_t *buf,
                        size_t len, bool write, uint32_t qpn)
{
    bool ok = write ? qhca_dma_write(e, addr, buf, len) :
                      qhca_dma_read(e, addr, buf, len);

    if (ok && qhca_tracing(e)) {
        trace_data(e, qpn, addr, len, write);
    }
    return ok ? QHCA_SYN_NONE : QHCA_SYN_DATA_DMA;
}

/* The caller has checked; the loop makes progress by at least a byte. */
static uint8_t mr_copy(struct qhca *e, struct qhca_mr *mr, uint64_t addr,
                       uint8_t *buf, size_t len, bool write, uint32_t qpn)
{
    uint64_t off, at, run;
    uint8_t syn;
    size_t n;

    if (!mr) {
        return copy_run(e, addr, buf, len, write, qpn);
    }
    off = addr - mr->iova;
    while (len) {
        syn = qhca_buf_walk(e, &mr->buf, off, mr->key, &at, &run);
        if (syn) {
            return syn;
        }
        n = run < len ? (size_t)run : len;
        syn = copy_run(e, at, buf, n, write, qpn);
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
    uint8_t syn;

    if (!len) {
        return QHCA_SYN_NONE;
    }
    syn = mr_find(e, pd, privileged, key, addr, len, access, &mr);
    return syn ? syn : mr_copy(e, mr, addr, buf, len, false, qpn);
}

uint8_t qhca_mr_write(struct qhca *e, uint32_t pd, bool privileged,
                      uint32_t key, uint64_t addr, const void *buf,
                      size_t len, uint32_t access, uint32_t qpn)
{
    struct qhca_mr *mr;
    uint8_t syn;

    if (!len) {
        return QHCA_SYN_NONE;
    }
    syn = mr_find(e, pd, privileged, key, addr, len, access, &mr);
    /* mr_copy() does not change what it writes from. */
    return syn ? syn : mr_copy(e, mr, addr, (void *)buf, len, true, qpn);
}

/* Compare-and-swap or fetch-and-add on the 8 bytes at DMA address @addr. */
static bool atomic_at(struct qhca *e, uint64_t addr, bool swap_op,
                      uint64_t cmp_or_add, uint64_t swap, uint64_t *old)
{
    uint64_t expect, seen;
    unsigned i;

    if (swap_op) {
        return e->ops.dma_cas64(e->opaque, addr, cmp_or_add, swap, old);
    }
    if (!e->ops.dma_read(e->opaque, addr, &expect, sizeof(expect))) {
        return false;
    }
    expect = qhca_le64(expect);
    for (i = 0; i < ATOMIC_TRIES; i++) {
        if (!e->ops.dma_cas64(e->opaque, addr, expect, expect + cmp_or_add,
                              &seen)) {
            return false;
        }
        if (seen == expect) {
            *old = expect;
            return true;
        }
        expect = seen;
    }
    return false;
}

uint8_t qhca_mr_atomic(struct qhca *e, uint32_t pd, uint32_t key,
                       uint64_t addr, bool swap_op, uint64_t cmp_or_add,
                       uint64_t swap, uint64_t *old, uint32_t qpn)
{
    struct qhca_mr *mr;
    uint64_t at = addr, run = 8;
    uint8_t syn;

    if (addr & 7) {
        return QHCA_SYN_BAD_PACKET;
    }
    syn = mr_find(e, pd, false, key, addr, 8, QHCA_ACCESS_REMOTE_ATOMIC, &mr);
    if (!syn && mr) {
        syn = qhca_buf_walk(e, &mr->buf, addr - mr->iova, mr->key, &at,
                            &run);
    }
    if (syn) {
        return syn;
    }
    /* A region may begin anywhere in its page: aligned twice is rare. */
    if ((at & 7) || run < 8 ||
        !atomic_at(e, at, swap_op, cmp_or_add, swap, old)) {
        qhca_count(e, QHCA_STAT_DMA_ERRORS);
        return QHCA_SYN_DATA_DMA;
    }
    if (qhca_tracing(e)) {
        trace_data(e, qpn, at, 8, true);
    }
    return QHCA_SYN_NONE;
}

uint8_t qhca_mr_invalidate(struct qhca *e, uint32_t pd, uint32_t key)
{
    struct qhca_mr *mr = mr_get(e, key);

    if (!mr) {
        return QHCA_SYN_KEY_INVALID;
    }
    if (mr->pd != pd) {
        return QHCA_SYN_KEY_PD;
    }
    if (!(mr->flags & QHCA_MR_F_FAST_REG)) {
        return QHCA_SYN_KEY_ACCESS;
    }
    /* The peer may have been first: a free one stays free. */
    mr->state = QHCA_MR_FREE;
    return QHCA_SYN_NONE;
}

/* See struct qhca_wqe_remote for where REG_MR keeps its arguments. */
uint8_t qhca_mr_fast_reg(struct qhca *e, uint32_t pd,
                         const struct qhca_sq_wqe *wqe)
{
    uint32_t key = qhca_le32(wqe->remote.rkey);
    uint32_t arg = qhca_le32(wqe->remote.arg), pages = arg >> 16;
    uint64_t iova = qhca_le64(wqe->ctrl.arg0);
    uint64_t len = qhca_le64(wqe->ctrl.arg1);
    struct qhca_mr *mr = qhca_table_get(&e->mrs, key >> QHCA_KEY_INDEX_SHIFT);
    struct qhca_buf d = { .form = QHCA_BUF_FLAT, .hops = 1 };
    struct qhca_buf_map map;

    if (!mr || !(mr->flags & QHCA_MR_F_FAST_REG) ||
        mr->state != QHCA_MR_FREE) {
        return QHCA_SYN_KEY_INVALID;
    }
    if (mr->pd != pd) {
        return QHCA_SYN_KEY_PD;
    }
    if ((arg & 0xff & ~QHCA_ACCESS_MASK) || pages > mr->max_entries ||
        iova + (len - 1) < iova || len > QHCA_MAX_MR_SIZE) {
        return QHCA_SYN_KEY_BOUNDS;
    }
    d.addr = wqe->remote.addr;
    d.len = qhca_le64(len);
    d.page_shift = (arg >> 8) & 0xff;
    d.entries = qhca_le32(pages);
    /* Byte 0 lies in its page where its address says. */
    d.first = d.page_shift <= QHCA_BUF_PAGE_SHIFT_MAX ?
              qhca_le32((uint32_t)(iova & ((1ULL << d.page_shift) - 1))) : 0;
    if (qhca_buf_init(&map, &d, 0, false)) {
        return QHCA_SYN_TABLE_INVALID;
    }
    mr->buf = map;
    mr->key = key;
    mr->iova = iova;
    mr->len = len;
    mr->access = arg & QHCA_ACCESS_MASK;
    mr->state = QHCA_MR_VALID;
    return QHCA_SYN_NONE;
}

static uint8_t check_create(struct qhca *e, struct qhca_cmd *c,
                            const struct qhca_mpt *in)
{
    uint64_t iova = qhca_le64(in->iova), len = qhca_le64(in->len);
    uint32_t max_entries = qhca_le32(in->max_entries);

    if (qhca_le32(in->access) & ~QHCA_ACCESS_MASK) {
        return qhca_bad(c, offsetof(struct qhca_mpt, access));
    }
    if ((in->flags & ~(QHCA_MR_F_PHYS | QHCA_MR_F_FAST_REG)) ||
        in->flags == (QHCA_MR_F_PHYS | QHCA_MR_F_FAST_REG)) {
        return qhca_bad(c, offsetof(struct qhca_mpt, flags));
    }
    if (!qhca_table_get(&e->pds, qhca_le32(in->pd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_mpt, pd));
    }
    if (in->flags & QHCA_MR_F_FAST_REG) {
        if (!max_entries || max_entries > 65535) {
            return qhca_bad(c, offsetof(struct qhca_mpt, max_entries));
        }
        return QHCA_ST_OK;
    }
    if (in->flags & QHCA_MR_F_PHYS) {
        if (iova) {
            return qhca_bad(c, offsetof(struct qhca_mpt, iova));
        }
        return QHCA_ST_OK;
    }
    if (!len || len > QHCA_MAX_MR_SIZE || len != qhca_le64(in->buf.len)) {
        return qhca_bad(c, offsetof(struct qhca_mpt, len));
    }
    if (iova + (len - 1) < iova) {
        return qhca_bad(c, offsetof(struct qhca_mpt, iova));
    }
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_create_mr(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_mpt *in = c->in;
    uint8_t st = check_create(e, c, in);
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
        st = qhca_buf_init(&mr->buf, &in->buf, mr->len, false);
    }
    if (!st && !qhca_table_add(&e->mrs, mr, &index)) {
        st = QHCA_ST_NO_RESOURCES;
    }
    if (st) {
        free(mr);
        return st;
    }
    mr->key = index << QHCA_KEY_INDEX_SHIFT |
              (qhca_le32(in->key) & QHCA_KEY_BYTE_MASK);
    mr->pd = qhca_le32(in->pd);
    e->pd_refs[mr->pd]++;
    mr->access = qhca_le32(in->access);
    mr->flags = in->flags;
    c->obj = mr->key;
    return QHCA_ST_OK;
}

static void mr_free(struct qhca *e, struct qhca_mr *mr)
{
    e->pd_refs[mr->pd]--;
    qhca_table_del(&e->mrs, mr->key >> QHCA_KEY_INDEX_SHIFT);
    free(mr);
}

uint8_t qhca_cmd_destroy_mr(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_mr *mr = mr_get_cmd(e, c->obj);

    if (!mr) {
        return QHCA_ST_BAD_OBJ;
    }
    mr_free(e, mr);
    return QHCA_ST_OK;
}

bool qhca_query_mr(struct qhca *e, uint32_t key, struct qhca_mpt *out)
{
    const struct qhca_mr *mr = mr_get_cmd(e, key);

    if (!mr) {
        return false;
    }
    memset(out, 0, sizeof(*out));
    qhca_buf_get(&mr->buf, &out->buf);
    out->iova = qhca_le64(mr->iova);
    out->len = qhca_le64(mr->len);
    out->key = qhca_le32(mr->key);
    out->pd = qhca_le32(mr->pd);
    out->access = qhca_le32(mr->access);
    out->flags = mr->flags;
    out->state = mr->state;
    out->max_entries = qhca_le32(mr->max_entries);
    return true;
}

uint8_t qhca_cmd_query_mr(struct qhca *e, struct qhca_cmd *c)
{
    return qhca_query_mr(e, c->obj, c->out) ? QHCA_ST_OK : QHCA_ST_BAD_OBJ;
}

void qhca_mrs_free(struct qhca *e)
{
    struct qhca_mr *mr;
    uint32_t n;

    for (n = 0; n < qhca_table_end(&e->mrs); n++) {
        mr = qhca_table_get(&e->mrs, n);
        if (mr) {
            mr_free(e, mr);
        }
    }
}
