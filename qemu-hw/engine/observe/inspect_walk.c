/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inspecting buffer tables: a second walker, which reads everything anew and
 * records each hop.  It must not disturb the adapter's own walker
 * (memory/table_walk.c), and any difference between the two is a bug.
 */
#include "observe/inspect_internal.h"

#define LIST_CHUNK          64
#define BYTES_MAX           256

bool qhca_peek(struct qhca *e, bool dm, uint64_t addr, void *buf, size_t len)
{
    if (addr + len < addr) {
        return false;
    }
    if (!dm) {
        return e->ops.dma_read(e->opaque, addr, buf, len);
    }
    return addr + len <= e->cfg.dm_size && e->ops.dm_read &&
           e->ops.dm_read(e->opaque, addr, buf, len);
}

const char *qhca_inspect_entry_error(const struct qhca_buf_table *m,
                                     uint64_t entry, bool leaf)
{
    uint64_t low = (1ULL << (leaf ? m->page_shift : m->table_shift)) - 1;

    if (!(entry & QHCA_BTE_VALID)) {
        return m->odp ? "page fault: the entry is not valid" :
                        "the entry is not valid";
    }
    if (!!(entry & QHCA_BTE_TABLE) == leaf) {
        return leaf ? "the entry names a table, not a page" :
                      "the entry names a page, not a table";
    }
    return entry & QHCA_BTE_ADDR_MASK & low ?
           "the entry's address is not aligned" : NULL;
}

static void peek_list(struct qhca *e, const struct qhca_buf_table *m,
                      uint64_t off, struct qhca_path *p)
{
    struct qhca_buf_seg seg[LIST_CHUNK];
    struct qhca_hop *h = &p->hop[0];
    uint64_t start = 0, len;
    uint32_t i, n = 0;

    p->hops = 1;
    h->table = m->addr;
    h->used = m->entries;
    for (i = 0; i < m->entries; i++) {
        if (!(i % LIST_CHUNK)) {
            n = m->entries - i < LIST_CHUNK ? m->entries - i : LIST_CHUNK;
            if (!qhca_peek(e, false, m->addr + i * sizeof(seg[0]), seg,
                           n * sizeof(seg[0]))) {
                p->error = "the list cannot be read";
                return;
            }
        }
        h->index = i;
        h->entry = qhca_le64(seg[i % LIST_CHUNK].addr);
        h->len = qhca_le64(seg[i % LIST_CHUNK].len);
        len = h->len & ~QHCA_BUF_SEG_VALID;
        if (!(h->len & QHCA_BUF_SEG_VALID) || !len || start + len < start) {
            p->error = "a segment is not valid";
            return;
        }
        if (off - start < len) {
            p->addr = h->entry + (off - start);
            p->run = len - (off - start);
            return;
        }
        start += len;
    }
    p->error = "the list ends before the byte";
}

static void peek_tables(struct qhca *e, const struct qhca_buf_table *m,
                        uint64_t off, struct qhca_path *p)
{
    uint64_t pos = off + m->first, page = pos >> m->page_shift;
    uint64_t last = (m->len - 1 + m->first) >> m->page_shift;
    uint64_t table = m->addr, mask, low;
    unsigned bits = m->form == QHCA_BUF_TREE ? m->table_shift - 3u : 0;
    unsigned level, up;
    bool leaf;

    for (level = 0; level < m->hops; level++) {
        struct qhca_hop *h = &p->hop[level];
        uint64_t entry;

        leaf = level + 1 == m->hops;
        up = bits * (m->hops - 1 - level);
        mask = m->form == QHCA_BUF_TREE ? (1ULL << bits) - 1 : UINT64_MAX;
        p->hops = level + 1;
        h->table = table;
        h->index = (page >> up) & mask;
        /* The last table of a level may be partly unused. */
        h->used = m->form == QHCA_BUF_FLAT ? m->entries :
                  page >> up >> bits == last >> up >> bits ?
                  ((last >> up) & mask) + 1 : mask + 1;
        if (!qhca_peek(e, false, table + h->index * 8, &entry, 8)) {
            p->error = "the table cannot be read";
            return;
        }
        h->entry = qhca_le64(entry);
        p->error = qhca_inspect_entry_error(m, h->entry, leaf);
        if (p->error) {
            return;
        }
        table = h->entry & QHCA_BTE_ADDR_MASK;
    }
    low = (1ULL << m->page_shift) - 1;
    p->addr = table + (pos & low);
    p->run = low + 1 - (pos & low);
}

void qhca_peek_walk(struct qhca *e, const struct qhca_buf_table *m,
                    uint64_t off, struct qhca_path *p)
{
    memset(p, 0, sizeof(*p));
    if (off >= m->len) {
        p->error = "past the end of the buffer";
        return;
    }
    switch (m->form) {
    case QHCA_BUF_DIRECT:
        p->addr = m->addr + m->first + off;
        p->run = m->len;
        break;
    case QHCA_BUF_LIST:
        peek_list(e, m, off, p);
        break;
    default:
        peek_tables(e, m, off, p);
        break;
    }
    if (p->run > m->len - off) {
        p->run = m->len - off;
    }
}

const char *qhca_peek_entry(struct qhca *e, const struct qhca_buf_table *m,
                            uint64_t off, void *buf, size_t len,
                            uint64_t *addr)
{
    struct qhca_path p;

    qhca_peek_walk(e, m, off, &p);
    if (p.error) {
        return p.error;
    }
    *addr = p.addr;
    return qhca_peek(e, false, p.addr, buf, len) ? NULL :
           "the memory cannot be read";
}

/* ---- showing it ---- */

void qhca_inspect_entry(const struct qhca_emit *em,
                        const struct qhca_buf_table *m, uint64_t table,
                        uint64_t index, uint64_t entry, uint64_t len)
{
    qhca_emit_dec(em, "index", index);
    if (m->form == QHCA_BUF_LIST) {
        qhca_emit_hex(em, "at", table + index * sizeof(struct qhca_buf_seg));
        qhca_emit_hex(em, "address", entry);
        qhca_emit_dec(em, "length", len & ~QHCA_BUF_SEG_VALID);
        qhca_emit_flag(em, "valid", len & QHCA_BUF_SEG_VALID);
        return;
    }
    qhca_emit_hex(em, "at", table + index * 8);
    qhca_emit_hex(em, "entry", entry);
    qhca_emit_flag(em, "valid", entry & QHCA_BTE_VALID);
    if (entry & QHCA_BTE_VALID) {
        qhca_emit_text(em, "kind", entry & QHCA_BTE_TABLE ? "table" : "page");
        qhca_emit_hex(em, "address", entry & QHCA_BTE_ADDR_MASK);
        if (m->odp) {
            qhca_emit_flag(em, "write", entry & QHCA_BTE_WRITE);
        }
    }
}

/* At most @max entries of the hop's table, including the one on the path. */
static void show_around(struct qhca *e, const struct qhca_emit *em,
                        const struct qhca_buf_table *m,
                        const struct qhca_hop *h, uint32_t max)
{
    bool list = m->form == QHCA_BUF_LIST;
    uint64_t size = list ? sizeof(struct qhca_buf_seg) : 8;
    uint64_t from = 0, n = h->used < max ? h->used : max, i;
    uint64_t raw[2] = { 0, 0 };

    if (h->index >= n / 2) {
        from = h->index - n / 2;
    }
    if (from + n > h->used) {
        from = h->used - n;
    }
    qhca_emit_list(em, "entries");
    for (i = from; i < from + n; i++) {
        if (!qhca_peek(e, false, h->table + i * size, raw, size)) {
            break;
        }
        qhca_emit_begin(em, NULL);
        qhca_inspect_entry(em, m, h->table, i, qhca_le64(raw[0]),
                           qhca_le64(raw[1]));
        if (i == h->index) {
            qhca_emit_flag(em, "marked", true);
        }
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
}

static void show_path(struct qhca *e, const struct qhca_emit *em,
                      const struct qhca_buf_table *m,
                      const struct qhca_path *p, uint32_t entries)
{
    unsigned i;

    qhca_emit_list(em, "hops");
    for (i = 0; i < p->hops; i++) {
        const struct qhca_hop *h = &p->hop[i];

        qhca_emit_begin(em, NULL);
        qhca_emit_dec(em, "level", i);
        qhca_emit_hex(em, "table", h->table);
        qhca_emit_dec(em, "used", h->used);
        qhca_inspect_entry(em, m, h->table, h->index, h->entry, h->len);
        if (entries) {
            show_around(e, em, m, h, entries);
        }
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
}

static void show_bytes(struct qhca *e, const struct qhca_emit *em, bool dm,
                       const struct qhca_path *p, uint32_t bytes)
{
    uint8_t buf[BYTES_MAX];
    size_t n = bytes < BYTES_MAX ? bytes : BYTES_MAX;

    n = n < p->run ? n : (size_t)p->run;
    if (!n) {
        return;
    }
    if (qhca_peek(e, dm, p->addr, buf, n)) {
        qhca_emit_bytes(em, "bytes", buf, n);
    } else {
        qhca_emit_text(em, "error", "the memory cannot be read");
    }
}

/* Offset in the buffer that is to be shown; returns NULL or an error text. */
static const char *inspect_find_off(const struct qhca_walk_look *look,
                                    const struct qhca_ring_info *r,
                                    const struct qhca_mr *mr, uint64_t *off)
{
    switch (look->by) {
    case QHCA_WALK_INDEX:
        if (mr) {
            return "a memory region has no entries: give an offset or an "
                   "address";
        }
        *off = (look->at & ((1ULL << r->shift) - 1)) << r->stride;
        return NULL;
    case QHCA_WALK_VA:
        if (!mr) {
            return "only a memory region is reached by addresses";
        }
        if (look->at - mr->iova >= mr->len) {
            return "the address lies outside of the memory region";
        }
        *off = look->at - mr->iova;
        return NULL;
    default:
        *off = look->at;
        return look->at < r->map->len ? NULL :
               "the offset lies past the end of the buffer";
    }
}

const char *qhca_inspect_find(struct qhca *e, enum qhca_object object,
                              uint32_t number, enum qhca_ring ring,
                              struct qhca_ring_info *r,
                              struct qhca_buf_table *phys,
                              const struct qhca_mr **mrp)
{
    const struct qhca_mr *mr;

    memset(r, 0, sizeof(*r));
    *phys = (struct qhca_buf_table){ .len = UINT64_MAX };
    *mrp = NULL;
    if (object == QHCA_OBJ_MW) {
        return "a window has no table of its own: look at its region";
    }
    if (object != QHCA_OBJ_MR) {
        return qhca_ring_find(e, object, number, ring, r);
    }
    mr = qhca_mr_get_cmd(e, number);
    if (!mr || (mr->flags & QHCA_MR_F_MW)) {
        return "no such object";
    }
    if (mr->state != QHCA_MR_VALID) {
        return "the memory region is not valid now";
    }
    r->map = mr->flags & QHCA_MR_F_PHYS ? phys : &mr->buf;
    *mrp = mr;
    return NULL;
}

const char *qhca_inspect_walk(struct qhca *e,
                              const struct qhca_walk_look *look,
                              const struct qhca_emit *em)
{
    const struct qhca_mr *mr;
    struct qhca_ring_info r;
    struct qhca_buf_table phys;
    struct qhca_path p;
    const char *wrong = qhca_inspect_find(e, look->object, look->number,
                                          look->ring, &r, &phys, &mr);
    uint64_t off;
    bool dm;

    if (wrong) {
        return wrong;
    }
    wrong = inspect_find_off(look, &r, mr, &off);
    if (wrong) {
        return wrong;
    }
    dm = mr && (mr->flags & QHCA_MR_F_DM);
    qhca_peek_walk(e, r.map, off, &p);
    qhca_emit_begin(em, NULL);
    qhca_emit_text(em, "object", qhca_object_name(look->object));
    qhca_emit_dec(em, "number", look->number);
    if (!mr) {
        qhca_emit_text(em, "ring", qhca_ring_name(look->ring));
        qhca_emit_dec(em, "slot", off >> r.stride);
    } else {
        qhca_emit_hex(em, "va", mr->iova + off);
    }
    qhca_emit_hex(em, "offset", off);
    qhca_inspect_map(r.map, "buffer", em);
    show_path(e, em, r.map, &p, look->entries < QHCA_LOOK_MAX ?
                                look->entries : QHCA_LOOK_MAX);
    if (p.error) {
        qhca_emit_text(em, "error", p.error);
    } else {
        qhca_emit_hex(em, dm ? "device_memory" : "address", p.addr);
        qhca_emit_dec(em, "contiguous", p.run);
        show_bytes(e, em, dm, &p, look->bytes);
    }
    qhca_emit_end(em);
    return NULL;
}
