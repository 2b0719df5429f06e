/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Buffer tables: the walker that locates the memory of every queue and every
 * memory region (qhca-hw.h, "buffer tables").
 *
 * Cached between walks: the current leaf, so that continuing in the same page
 * reads no table; the block of eight entries that the leaf came from; and the
 * last-level table used last.  The contract allows this: tables do not change
 * while an object uses them, and for on-demand paging software says when to
 * drop what is cached.
 */
#include "memory/memory.h"

#define QHCA_BUF_LEN_MAX    (1ULL << 62)
#define QHCA_LIST_CHUNK     32  /* segments per read while searching */

/* Does addr .. addr + len - 1 not wrap around? len > 0. */
static bool range_ok(uint64_t addr, uint64_t len)
{
    return addr + (len - 1) >= addr;
}

static bool shifts_ok(const struct qhca_buf_table *m)
{
    return m->page_shift >= QHCA_BUF_PAGE_SHIFT_MIN &&
           m->page_shift <= QHCA_BUF_PAGE_SHIFT_MAX &&
           m->first < (1ULL << m->page_shift);
}

static bool direct_ok(const struct qhca_buf_table *m)
{
    return !m->hops && !m->page_shift && !m->table_shift && !m->entries &&
           range_ok(m->addr, m->first + m->len) &&
           !(m->queue && (m->addr & 63));
}

static bool table_list_ok(const struct qhca_buf_table *m)
{
    return !m->hops && !m->page_shift && !m->table_shift && !m->first &&
           m->entries && m->entries <= QHCA_BUF_LIST_MAX &&
           !(m->addr & 7) &&
           range_ok(m->addr, m->entries * sizeof(struct qhca_buf_seg));
}

static bool flat_ok(const struct qhca_buf_table *m)
{
    return m->hops == 1 && !m->table_shift && shifts_ok(m) &&
           !(m->addr & 7) && m->entries &&
           (m->first + m->len - 1) >> m->page_shift < m->entries &&
           range_ok(m->addr, m->entries * 8ULL);
}

static bool tree_ok(const struct qhca_buf_table *m)
{
    unsigned bits;

    if (m->hops < 1 || m->hops > QHCA_BUF_HOPS_MAX || m->entries ||
        m->table_shift < QHCA_BUF_TABLE_SHIFT_MIN ||
        m->table_shift > QHCA_BUF_TABLE_SHIFT_MAX || !shifts_ok(m) ||
        (m->addr & ((1ULL << m->table_shift) - 1))) {
        return false;
    }
    bits = m->page_shift + m->hops * (m->table_shift - 3u);
    return bits >= 63 || (m->first + m->len - 1) >> bits == 0;
}

uint8_t qhca_buf_table_init(struct qhca_buf_table *m, const struct qhca_buf *d,
                            uint64_t need, bool queue)
{
    bool ok = false;

    memset(m, 0, sizeof(*m));
    m->addr = qhca_le64(d->addr);
    m->len = qhca_le64(d->len);
    m->first = qhca_le32(d->first);
    m->entries = qhca_le32(d->entries);
    m->form = d->form;
    m->hops = d->hops;
    m->page_shift = d->page_shift;
    m->table_shift = d->table_shift;
    m->queue = queue;
    m->kind = queue ? QHCA_DMA_WQE : QHCA_DMA_DATA;

    if (!m->len || m->len > QHCA_BUF_LEN_MAX || m->len < need ||
        (queue && m->first)) {
        return QHCA_ST_BAD_TABLE;
    }
    switch (m->form) {
    case QHCA_BUF_DIRECT:
        ok = direct_ok(m);
        break;
    case QHCA_BUF_LIST:
        ok = table_list_ok(m);
        break;
    case QHCA_BUF_FLAT:
        ok = flat_ok(m);
        break;
    case QHCA_BUF_TREE:
        ok = tree_ok(m);
        break;
    }
    return ok ? QHCA_ST_OK : QHCA_ST_BAD_TABLE;
}

void qhca_buf_table_describe(const struct qhca_buf_table *m,
                             struct qhca_buf *d)
{
    memset(d, 0, sizeof(*d));
    d->addr = qhca_le64(m->addr);
    d->len = qhca_le64(m->len);
    d->first = qhca_le32(m->first);
    d->entries = qhca_le32(m->entries);
    d->form = m->form;
    d->hops = m->hops;
    d->page_shift = m->page_shift;
    d->table_shift = m->table_shift;
}

void qhca_buf_table_forget(struct qhca_buf_table *m)
{
    m->leaf_valid = false;
    m->sub_valid = false;
    m->block_valid = false;
}

static void table_trace_hop(struct qhca *e, uint32_t num, uint64_t addr,
                            uint64_t entry, unsigned level)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_WALK_HOP, .num = num, .addr = addr, .a = entry,
        .b = level,
    };

    qhca_trace_emit(e, &t);
}

static void table_trace_walk(struct qhca *e, uint32_t num, uint64_t off,
                             uint64_t addr)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_WALK, .num = num, .a = off, .addr = addr,
    };

    qhca_trace_emit(e, &t);
}

static uint8_t table_error(struct qhca *e, uint32_t num, uint8_t syndrome)
{
    if (!e->trying) {
        qhca_guest_error(e, QHCA_STAT_TABLE_ERRORS, num,
                         syndrome == QHCA_SYN_TABLE_DMA ?
                         "buffer table not readable" :
                         "buffer-table entry not valid");
    }
    return syndrome;
}

/* Does @entry hold the address of a table (or page) of 1 << @shift bytes? */
static bool entry_ok(uint64_t entry, bool table, unsigned shift)
{
    uint64_t low = (1ULL << shift) - 1;

    return (entry & QHCA_BTE_VALID) &&
           !!(entry & QHCA_BTE_TABLE) == table &&
           !(entry & QHCA_BTE_ADDR_MASK & low);
}

/* TREE: walk from the root to the last-level table with @page's entry. */
static uint8_t table_find_sub(struct qhca *e, struct qhca_buf_table *m,
                              uint64_t page, uint32_t num)
{
    unsigned bits = m->table_shift - 3, level;
    uint64_t mask = (1ULL << bits) - 1;
    uint64_t table = m->addr, at, entry;

    if (m->sub_valid && m->sub == page >> bits) {
        return QHCA_SYN_NONE;
    }
    m->sub_valid = false;
    for (level = 0; level + 1 < m->hops; level++) {
        at = table + ((page >> (bits * (m->hops - 1 - level))) & mask) * 8;
        if (!qhca_dma_read(e, QHCA_DMA_TABLE, num, at, &entry,
                           sizeof(entry))) {
            return QHCA_SYN_TABLE_DMA;
        }
        entry = qhca_le64(entry);
        if (qhca_tracing(e)) {
            table_trace_hop(e, num, at, entry, level);
        }
        if (m->odp && !(entry & QHCA_BTE_VALID)) {
            return QHCA_SYN_PAGE_FAULT;
        }
        if (!entry_ok(entry, true, m->table_shift)) {
            return QHCA_SYN_TABLE_INVALID;
        }
        table = entry & QHCA_BTE_ADDR_MASK;
    }
    m->sub = page >> bits;
    m->sub_addr = table;
    m->sub_valid = true;
    return QHCA_SYN_NONE;
}

/* Read the block of last-level entries with @page's entry. */
static uint8_t table_read_block(struct qhca *e, struct qhca_buf_table *m,
                                uint64_t page, uint32_t num)
{
    uint64_t block = page / QHCA_BUF_BLOCK, at, n = QHCA_BUF_BLOCK;
    uint8_t syn;

    qhca_count(e, QHCA_STAT_TABLE_WALKS);
    m->block_valid = false;
    if (m->form == QHCA_BUF_FLAT) {
        at = m->addr + block * sizeof(m->entry);
        if (m->entries - block * QHCA_BUF_BLOCK < n) {
            n = m->entries - block * QHCA_BUF_BLOCK;
        }
    } else {
        syn = table_find_sub(e, m, page, num);
        if (syn) {
            return syn;
        }
        at = page & ((1ULL << (m->table_shift - 3)) - 1);
        at = m->sub_addr + at / QHCA_BUF_BLOCK * sizeof(m->entry);
    }
    if (!qhca_dma_read(e, QHCA_DMA_TABLE, num, at, m->entry, n * 8)) {
        return QHCA_SYN_TABLE_DMA;
    }
    m->block = block;
    m->block_addr = at;
    m->block_valid = true;
    return QHCA_SYN_NONE;
}

/* On-demand paging: is the page present and, for @write, writable? */
static bool table_present(const struct qhca_buf_table *m, uint64_t entry,
                          bool write)
{
    return !m->odp || ((entry & QHCA_BTE_VALID) &&
                       (!write || (entry & QHCA_BTE_WRITE)));
}

/* Make @page's leaf the current one. */
static uint8_t table_walk_hops(struct qhca *e, struct qhca_buf_table *m,
                               uint64_t page, bool write, uint32_t num)
{
    uint64_t entry;
    unsigned slot = page % QHCA_BUF_BLOCK;
    uint8_t syn;

    m->leaf_valid = false;
    /* An entry read ahead may be stale if it was not in use at that time. */
    if (!m->block_valid || m->block != page / QHCA_BUF_BLOCK ||
        !entry_ok(qhca_le64(m->entry[slot]), false, m->page_shift) ||
        !table_present(m, qhca_le64(m->entry[slot]), write)) {
        syn = table_read_block(e, m, page, num);
        if (syn) {
            return syn == QHCA_SYN_PAGE_FAULT ? syn : table_error(e, num, syn);
        }
    }
    entry = qhca_le64(m->entry[slot]);
    if (qhca_tracing(e)) {
        table_trace_hop(e, num, m->block_addr + slot * 8, entry, m->hops - 1);
    }
    if (!table_present(m, entry, write)) {
        return QHCA_SYN_PAGE_FAULT;
    }
    if (!entry_ok(entry, false, m->page_shift)) {
        return table_error(e, num, QHCA_SYN_TABLE_INVALID);
    }
    m->leaf = entry & QHCA_BTE_ADDR_MASK;
    m->leaf_write = entry & QHCA_BTE_WRITE;
    m->leaf_page = page;
    m->leaf_valid = true;
    return QHCA_SYN_NONE;
}

/* The minimum length keeps packets from spanning thousands of segments. */
static bool seg_ok(const struct qhca_buf_table *m, uint32_t i, uint64_t addr,
                   uint64_t len, uint64_t start)
{
    if (!len || !range_ok(addr, len) || start + len < start) {
        return false;
    }
    if (m->queue) {
        return !(len & 4095) && !(addr & 63);
    }
    return len >= QHCA_BUF_SEG_MIN || !i || i == m->entries - 1;
}

/*
 * LIST: add up lengths until the segment with byte @off is found, starting at
 * the segment found last if that precedes @off.
 */
static uint8_t table_walk_list(struct qhca *e, struct qhca_buf_table *m,
                               uint64_t off, uint32_t num)
{
    struct qhca_buf_seg seg[QHCA_LIST_CHUNK];
    uint64_t start = 0, addr, len, at;
    uint32_t i = 0, j, n;

    if (m->leaf_valid && off >= m->leaf_off) {
        start = m->leaf_off + m->leaf_len;
        i = (uint32_t)m->leaf_page + 1;
    }
    m->leaf_valid = false;
    qhca_count(e, QHCA_STAT_TABLE_WALKS);
    while (i < m->entries) {
        n = m->entries - i < QHCA_LIST_CHUNK ? m->entries - i :
                                               QHCA_LIST_CHUNK;
        at = m->addr + i * sizeof(seg[0]);
        e->list_reads++;
        if (!qhca_dma_read(e, QHCA_DMA_TABLE, num, at, seg,
                           n * sizeof(seg[0]))) {
            return table_error(e, num, QHCA_SYN_TABLE_DMA);
        }
        for (j = 0; j < n; j++, i++) {
            addr = qhca_le64(seg[j].addr);
            len = qhca_le64(seg[j].len);
            if (qhca_tracing(e)) {
                table_trace_hop(e, num, at + j * sizeof(seg[0]), addr, i);
            }
            if (!(len & QHCA_BUF_SEG_VALID)) {
                return table_error(e, num, QHCA_SYN_TABLE_INVALID);
            }
            len &= ~QHCA_BUF_SEG_VALID;
            if (!seg_ok(m, i, addr, len, start)) {
                return table_error(e, num, QHCA_SYN_TABLE_INVALID);
            }
            if (off - start < len) {
                m->leaf = addr;
                m->leaf_page = i;
                m->leaf_off = start;
                m->leaf_len = len;
                m->leaf_valid = true;
                return QHCA_SYN_NONE;
            }
            start += len;
        }
    }
    return table_error(e, num, QHCA_SYN_TABLE_INVALID);
}

static uint8_t table_walk(struct qhca *e, struct qhca_buf_table *m,
                          uint64_t off, bool write, uint32_t num,
                          uint64_t *addr, uint64_t *run)
{
    uint64_t left = m->len - off, pos = off + m->first, in, n;
    uint8_t syn;

    switch (m->form) {
    case QHCA_BUF_DIRECT:
        *addr = m->addr + pos;
        n = left;
        break;
    case QHCA_BUF_LIST:
        if (!m->leaf_valid || off - m->leaf_off >= m->leaf_len) {
            syn = table_walk_list(e, m, off, num);
            if (syn) {
                return syn;
            }
        }
        if (qhca_faulty(e, QHCA_FLT_AT_TABLE) &&
            e->hooks->table_fails(e, m, num, m->leaf_page)) {
            return table_error(e, num, QHCA_SYN_TABLE_INVALID);
        }
        in = off - m->leaf_off;
        *addr = m->leaf + in;
        n = m->leaf_len - in;
        break;
    default:
        if (qhca_faulty(e, QHCA_FLT_AT_TABLE) &&
            e->hooks->table_fails(e, m, num, pos >> m->page_shift)) {
            return m->odp ? QHCA_SYN_PAGE_FAULT :
                            table_error(e, num, QHCA_SYN_TABLE_INVALID);
        }
        if (!m->leaf_valid || m->leaf_page != pos >> m->page_shift ||
            (write && !m->leaf_write)) {
            syn = table_walk_hops(e, m, pos >> m->page_shift, write, num);
            if (syn) {
                return syn;
            }
        }
        in = pos & ((1ULL << m->page_shift) - 1);
        *addr = m->leaf + in;
        n = (1ULL << m->page_shift) - in;
        break;
    }
    *run = n < left ? n : left;
    if (qhca_tracing(e)) {
        table_trace_walk(e, num, off, *addr);
    }
    return QHCA_SYN_NONE;
}

uint8_t qhca_buf_table_walk(struct qhca *e, struct qhca_buf_table *m,
                            uint64_t off, uint32_t num, uint64_t *addr,
                            uint64_t *run)
{
    uint64_t pos = off + m->first, size = 1ULL << m->page_shift;
    uint64_t left = m->len - off, in = pos & (size - 1);

    /* Fast path: same page; neither tracing nor faults want to see the walk. */
    if (m->leaf_valid && m->form >= QHCA_BUF_FLAT && !qhca_tracing(e) &&
        !qhca_faulty(e, QHCA_FLT_AT_TABLE) &&
        m->leaf_page == pos >> m->page_shift) {
        *addr = m->leaf + in;
        *run = size - in < left ? size - in : left;
        return QHCA_SYN_NONE;
    }
    return table_walk(e, m, off, false, num, addr, run);
}

uint8_t qhca_buf_table_walk_odp(struct qhca *e, struct qhca_buf_table *m,
                                uint64_t off, bool write, uint32_t num,
                                uint64_t *addr, uint64_t *run)
{
    return table_walk(e, m, off, write, num, addr, run);
}
