/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "godp.h"

static void store64(struct godp *o, uint64_t at, uint64_t v)
{
    memcpy(gmem_ptr(o->mr->g->m, at, 8), &v, 8);
}

static uint64_t load64(struct godp *o, uint64_t at)
{
    uint64_t v;

    memcpy(&v, gmem_ptr(o->mr->g->m, at, 8), 8);
    return v;
}

static uint64_t page_of(const struct godp *o, uint64_t off)
{
    return (off + o->mr->buf.d.first) >> o->mr->buf.d.page_shift;
}

/* Offset in the region of the start of page @page. */
static uint64_t start_of(const struct godp *o, uint64_t page)
{
    return o->mr->buf.chunk[page].off;
}

/* The path to the entry of @page: *@n entries that point to tables. */
static void way(struct godp *o, uint64_t page, uint64_t at[3], unsigned *n)
{
    const struct qhca_buf *d = &o->mr->buf.d;
    unsigned bits = d->table_shift - 3u, i;
    uint64_t table = d->addr;
    size_t k;

    *n = d->form == QHCA_BUF_TREE ? d->hops - 1u : 0;
    for (i = 0; i < *n; i++) {
        at[i] = table + 8 * (page >> bits * (d->hops - 1u - i) &
                             ((1ULL << bits) - 1));
        for (k = 0; k < o->links && o->link[k].at != at[i]; k++) {
        }
        if (k == o->links) {            /* not removed yet */
            o->link = realloc(o->link, (k + 1) * sizeof(*o->link));
            CHECK(o->link, "no memory");
            o->link[k] = (struct godp_link){ at[i], load64(o, at[i]) };
            o->links++;
        }
        table = o->link[k].value & QHCA_BTE_ADDR_MASK;
    }
    at[i] = d->form == QHCA_BUF_TREE ?
            table + 8 * (page & ((1ULL << bits) - 1)) : d->addr + 8 * page;
}

static uint64_t link_value(struct godp *o, uint64_t at)
{
    size_t k;

    for (k = 0; o->link[k].at != at; k++) {
    }
    return o->link[k].value;
}

/* Make the device forget what it cached of the table. */
static void sync_device(struct godp *o)
{
    struct guest *g = o->mr->g;

    guest_doorbell(g, 0, QHCA_DB_MR_SYNC,
                   o->mr->key >> QHCA_KEY_INDEX_SHIFT);
    node_reg_read(g->n, QHCA_REG_STATUS, 4);
}

/* Move the page to another address. */
static void move(struct godp *o, uint64_t page)
{
    struct gbuf_chunk *c = &o->mr->buf.chunk[page];
    unsigned shift = o->mr->buf.d.page_shift;
    uint64_t a;

    a = gmem_alloc(o->mr->g->m, c->len, shift,
                   c->addr & ((1ULL << shift) - 1));
    gmem_copy(o->mr->g->m, c->addr, a, c->len);
    gmem_release(o->mr->g->m, c->addr, c->len);
    c->addr = a;
}

void godp_shape_random(struct gbuf_shape *s, struct rng *r)
{
    *s = (struct gbuf_shape){
        .form = QHCA_BUF_FLAT, .hops = 1,
        .page_shift = (uint8_t)rng_range(r, 12, 14),
    };
    if (rng_pct(r, 60)) {
        s->form = QHCA_BUF_TREE;
        s->hops = (uint8_t)rng_range(r, 2, 3);
        s->table_shift = 12;
    }
}

void godp_create(struct godp *o, struct gmr *mr, struct guest *g,
                 uint64_t len, uint64_t iova, uint32_t access,
                 const struct gbuf_shape *shape)
{
    struct qhca_mpt c;
    uint64_t at[3], page;
    unsigned n, i;

    memset(o, 0, sizeof(*o));
    memset(mr, 0, sizeof(*mr));
    o->mr = mr;
    o->mr->g = g;
    o->mr->len = len;
    o->mr->iova = iova;
    o->mr->access = access;
    o->mr->pd = g->pd;
    gbuf_make(&o->mr->buf, g->m, len, shape, false, iova, &g->rng);
    o->pages = o->mr->buf.chunks;
    o->page = calloc(o->pages, 1);
    CHECK(o->page, "no memory");
    for (page = 0; page < o->pages; page++) {
        way(o, page, at, &n);
        store64(o, at[n], 0);
    }
    for (page = 0; page < o->pages; page++) {
        way(o, page, at, &n);
        for (i = 0; i < n; i++) {
            store64(o, at[i], 0);
        }
    }
    memset(&c, 0, sizeof(c));
    c.buf = o->mr->buf.d;
    c.iova = iova;
    c.len = len;
    c.key = rng_u32(&g->rng) & QHCA_KEY_BYTE_MASK;
    c.pd = g->pd;
    c.access = access;
    c.flags = QHCA_MR_F_ODP;
    o->mr->key = guest_create(g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
}

uint8_t godp_destroy(struct godp *o)
{
    uint8_t s = gmr_destroy(o->mr);

    if (s == QHCA_ST_OK) {
        free(o->page);
        free(o->link);
    }
    return s;
}

static void page_out(struct godp *o, uint64_t page)
{
    uint64_t at[3];
    unsigned n;

    way(o, page, at, &n);
    store64(o, at[n], 0);
    o->page[page] = 0;
    o->out++;
}

void godp_in(struct godp *o, uint64_t off, uint64_t len, bool write)
{
    uint64_t page, at[3], addr;
    unsigned n, i;

    for (page = page_of(o, off); page <= page_of(o, off + len - 1); page++) {
        if (o->page[page] == 3 || (o->page[page] && !write)) {
            continue;
        }
        if (o->page[page] && rng_pct(&o->mr->g->rng, 50)) {
            page_out(o, page);
            sync_device(o);
            move(o, page);
        }
        way(o, page, at, &n);
        addr = o->mr->buf.chunk[page].addr &
               ~((1ULL << o->mr->buf.d.page_shift) - 1);
        store64(o, at[n], addr | QHCA_BTE_VALID |
                          (write ? QHCA_BTE_WRITE : 0));
        for (i = n; i-- > 0;) {         /* from the leaf upwards */
            store64(o, at[i], link_value(o, at[i]));
        }
        o->page[page] = write ? 3 : 1;
        o->in++;
    }
}

void godp_out(struct godp *o, uint64_t off, uint64_t len)
{
    uint64_t first = page_of(o, off), last = page_of(o, off + len - 1), page;
    bool *gone = calloc(last - first + 1, sizeof(*gone));

    CHECK(gone, "no memory");
    for (page = first; page <= last; page++) {
        if (o->page[page]) {
            page_out(o, page);
            gone[page - first] = true;
        }
    }
    sync_device(o);
    for (page = first; page <= last; page++) {
        if (gone[page - first]) {
            move(o, page);
        }
    }
    free(gone);
}

void godp_out_table(struct godp *o, uint64_t off)
{
    uint64_t page = page_of(o, off), at[3], entries, first, end;
    unsigned n;

    way(o, page, at, &n);
    if (!n) {
        godp_out(o, off, 1);
        return;
    }
    entries = 1ULL << (o->mr->buf.d.table_shift - 3);
    first = page & ~(entries - 1);
    end = first + entries < o->pages ? first + entries : o->pages;
    store64(o, at[n - 1], 0);
    godp_out(o, start_of(o, first),
             (end < o->pages ? start_of(o, end) : o->mr->len) -
             start_of(o, first));
}

void guest_faults(struct guest *g, uint32_t qpn,
                  struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES])
{
    guest_query(g, QHCA_CMD_QUERY_PAGE_FAULT, qpn, f,
                QHCA_PAGE_FAULT_SIDES * sizeof(f[0]));
}

uint8_t guest_resume(struct guest *g, uint32_t qpn, unsigned side,
                     uint32_t token, bool failed)
{
    struct gcmd c = {
        .op = QHCA_CMD_RESUME_PAGE_FAULT, .obj = qpn,
        .arg = side | (failed ? QHCA_RESUME_FAILED : 0) |
               (uint64_t)token << QHCA_RESUME_TOKEN_SHIFT,
    };

    return guest_cmd(g, &c);
}
