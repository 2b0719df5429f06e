/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "gbuf.h"

const struct gbuf_shape gbuf_direct = { .form = QHCA_BUF_DIRECT };
const struct gbuf_shape gbuf_flat4k = { .form = QHCA_BUF_FLAT, .hops = 1,
                                        .page_shift = 12 };

static uint64_t pages_of(uint64_t len, unsigned shift)
{
    /* one more: byte 0 may lie anywhere in the first page */
    return (len >> shift) + 2;
}

void gbuf_shape_random(struct gbuf_shape *s, struct rng *r, uint64_t len)
{
    memset(s, 0, sizeof(*s));
    s->form = (uint8_t)rng_below(r, 4);
    if (rng_pct(r, 20)) {
        s->form = QHCA_BUF_TREE;
    }
    if (s->form == QHCA_BUF_FLAT || s->form == QHCA_BUF_TREE) {
        s->page_shift = 12;
        if (rng_pct(r, 50)) {
            s->page_shift = (uint8_t)rng_range(r, 12, 18);
        }
        if (rng_pct(r, 5)) {
            s->page_shift = (uint8_t)rng_range(r, 19, 31);
        }
        s->hops = 1;
    }
    if (s->form == QHCA_BUF_TREE) {
        s->table_shift = 12;
        if (rng_pct(r, 30)) {
            s->table_shift = (uint8_t)rng_range(r, 12, 15);
        }
        if (rng_pct(r, 2)) {
            s->table_shift = (uint8_t)rng_range(r, 16, 21);
        }
        s->hops = (uint8_t)rng_range(r, 1, 3);
        while (pages_of(len, s->page_shift) >
               1ULL << ((s->table_shift - 3) * s->hops)) {
            if (s->hops < 3) {
                s->hops++;
            } else {
                s->page_shift++;
            }
        }
    }
}

static void *grow(void *p, size_t n, size_t size)
{
    if ((n & (n - 1)) == 0) {   /* 0 and powers of two */
        p = realloc(p, (n ? 2 * n : 1) * size);
        CHECK(p, "no memory");
    }
    return p;
}

static void add_chunk(struct gbuf *b, uint64_t addr, uint64_t len,
                      uint64_t off)
{
    b->chunk = grow(b->chunk, b->chunks, sizeof(*b->chunk));
    b->chunk[b->chunks++] = (struct gbuf_chunk){ addr, len, off };
}

static uint64_t add_table(struct gbuf *b, uint64_t len, unsigned align)
{
    uint64_t a = gmem_alloc(b->m, len, align, 0);

    b->table = grow(b->table, b->tables, sizeof(*b->table));
    b->table[b->tables++] = (struct gbuf_chunk){ a, len, 0 };
    gmem_allow(b->m, a, len, GMEM_R);
    return a;
}

static void store64(struct gbuf *b, uint64_t addr, uint64_t v)
{
    memcpy(gmem_ptr(b->m, addr, 8), &v, 8);
}

static uint64_t load64(const struct gbuf *b, uint64_t addr)
{
    uint64_t v;

    memcpy(&v, gmem_ptr(b->m, addr, 8), 8);
    return v;
}

static void make_list(struct gbuf *b, bool queue, uint64_t first,
                      struct rng *r)
{
    uint64_t off = 0, n, a, t, rest;
    size_t i;

    while (off < b->len) {
        rest = b->len - off;
        if (b->chunks == QHCA_BUF_LIST_MAX - 1) {
            n = rest;
        } else if (queue) {
            n = (rng_log(r, rest / 4096) + 1) * 4096;
        } else {
            n = rng_pct(r, 30) ? rng_range(r, 1, 300) : rng_log(r, rest) + 1;
            if (off && n < QHCA_BUF_SEG_MIN) {
                n += QHCA_BUF_SEG_MIN - 1;
            }
        }
        if (!queue && n > rest) {
            n = rest;
        }
        /* aligned words stay aligned, as the software sees them */
        a = gmem_alloc(b->m, n, 12, queue ? 0 :
                       rng_below(r, 512) * 8 + (first + off) % 8);
        add_chunk(b, a, n, off);
        off += n;
    }
    t = add_table(b, b->chunks * sizeof(struct qhca_buf_seg), 12);
    for (i = 0; i < b->chunks; i++) {
        store64(b, t + 16 * i, b->chunk[i].addr);
        store64(b, t + 16 * i + 8, b->chunk[i].len | QHCA_BUF_SEG_VALID);
    }
    b->d.addr = t;
    b->d.entries = (uint32_t)b->chunks;
}

static void make_pages(struct gbuf *b, unsigned shift, uint64_t first)
{
    uint64_t size = 1ULL << shift, off = 0, n, lead = first;

    while (off < b->len) {
        n = size - lead;
        if (n > b->len - off) {
            n = b->len - off;
        }
        add_chunk(b, gmem_alloc(b->m, n, shift, lead), n, off);
        off += n;
        lead = 0;
    }
}

/* Address of the last-level entry of page @page; creates missing tables. */
static uint64_t tree_entry(struct gbuf *b, uint64_t page, bool make)
{
    unsigned bits = b->d.table_shift - 3u;
    uint64_t table = b->d.addr, at;
    unsigned i;

    for (i = 0; ; i++) {
        at = table + 8 * (page >> bits * (b->d.hops - 1u - i) &
                          ((1ULL << bits) - 1));
        if (i == b->d.hops - 1u) {
            return at;
        }
        if (!load64(b, at)) {
            CHECK(make, "no such entry");
            table = add_table(b, 1ULL << b->d.table_shift, b->d.table_shift);
            store64(b, at, table | QHCA_BTE_VALID | QHCA_BTE_TABLE);
        }
        table = load64(b, at) & QHCA_BTE_ADDR_MASK;
    }
}

void gbuf_make(struct gbuf *b, struct gmem *m, uint64_t len,
               const struct gbuf_shape *s, bool queue, uint64_t first,
               struct rng *r)
{
    uint64_t size = 1ULL << s->page_shift;
    size_t i;

    memset(b, 0, sizeof(*b));
    b->m = m;
    b->len = len;
    b->d.form = s->form;
    b->d.len = len;
    CHECK(len, "an empty buffer");
    switch (s->form) {
    case QHCA_BUF_DIRECT:
        first &= 0xfff;
        if (queue) {
            first &= ~63ULL;
        }
        add_chunk(b, gmem_alloc(m, len, 12, first), len, 0);
        b->d.addr = b->chunk[0].addr;
        if (!queue && rng_pct(r, 50)) {
            b->d.addr -= first;
            b->d.first = (uint32_t)first;
        }
        break;
    case QHCA_BUF_LIST:
        make_list(b, queue, first, r);
        break;
    default:
        b->d.page_shift = s->page_shift;
        b->d.hops = s->hops;
        b->d.first = queue ? 0 : (uint32_t)(first & (size - 1));
        make_pages(b, s->page_shift, b->d.first);
        if (s->form == QHCA_BUF_FLAT) {
            b->d.addr = add_table(b, 8 * b->chunks, 12);
            b->d.entries = (uint32_t)b->chunks;
        } else {
            b->d.table_shift = s->table_shift;
            b->d.addr = add_table(b, 1ULL << s->table_shift,
                                  s->table_shift);
        }
        for (i = 0; i < b->chunks; i++) {
            store64(b, s->form == QHCA_BUF_FLAT ? b->d.addr + 8 * i :
                    tree_entry(b, i, true),
                    (b->chunk[i].addr & ~(size - 1)) | QHCA_BTE_VALID);
        }
    }
}

void gbuf_free(struct gbuf *b)
{
    size_t i;

    for (i = 0; i < b->chunks; i++) {
        gmem_release(b->m, b->chunk[i].addr, b->chunk[i].len);
    }
    for (i = 0; i < b->tables; i++) {
        gmem_release(b->m, b->table[i].addr, b->table[i].len);
    }
    free(b->chunk);
    free(b->table);
    memset(b, 0, sizeof(*b));
}

static const struct gbuf_chunk *find(const struct gbuf *b, uint64_t off)
{
    size_t lo = 0, hi = b->chunks, mid;

    CHECK(off < b->len, "byte %llu of a buffer of %llu",
          (unsigned long long)off, (unsigned long long)b->len);
    if (b->d.page_shift) {
        return &b->chunk[(off + b->d.first) >> b->d.page_shift];
    }
    while (hi - lo > 1) {
        mid = (lo + hi) / 2;
        if (b->chunk[mid].off <= off) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return &b->chunk[lo];
}

uint64_t gbuf_addr(const struct gbuf *b, uint64_t off, uint64_t *run)
{
    const struct gbuf_chunk *c = find(b, off);
    uint64_t n = c->len - (off - c->off);

    if (run) {
        *run = n < b->len - off ? n : b->len - off;
    }
    return c->addr + (off - c->off);
}

uint64_t gbuf_entry_addr(const struct gbuf *b, uint64_t off)
{
    uint64_t i = (uint64_t)(find(b, off) - b->chunk);

    switch (b->d.form) {
    case QHCA_BUF_LIST:
        return b->d.addr + 16 * i;
    case QHCA_BUF_FLAT:
        return b->d.addr + 8 * i;
    case QHCA_BUF_TREE:
        return tree_entry((struct gbuf *)b, i, false);
    default:
        die("a direct buffer has no entries");
    }
}

void gbuf_write(struct gbuf *b, uint64_t off, const void *src, uint64_t len)
{
    uint64_t a, n;

    for (; len; len -= n, off += n, src = (const uint8_t *)src + n) {
        a = gbuf_addr(b, off, &n);
        n = n < len ? n : len;
        memcpy(gmem_ptr(b->m, a, n), src, n);
    }
}

void gbuf_read(const struct gbuf *b, uint64_t off, void *dst, uint64_t len)
{
    uint64_t a, n;

    for (; len; len -= n, off += n, dst = (uint8_t *)dst + n) {
        a = gbuf_addr(b, off, &n);
        n = n < len ? n : len;
        memcpy(dst, gmem_ptr(b->m, a, n), n);
    }
}

void gbuf_allow(struct gbuf *b, uint64_t off, uint64_t len, unsigned bits)
{
    uint64_t a, n;

    for (; len; len -= n, off += n) {
        a = gbuf_addr(b, off, &n);
        n = n < len ? n : len;
        gmem_allow(b->m, a, n, bits);
    }
}

void gbuf_deny(struct gbuf *b, uint64_t off, uint64_t len, unsigned bits)
{
    uint64_t a, n;

    for (; len; len -= n, off += n) {
        a = gbuf_addr(b, off, &n);
        n = n < len ? n : len;
        gmem_deny(b->m, a, n, bits);
    }
}

void pattern_bytes(uint64_t id, uint64_t off, void *dst, uint64_t len)
{
    uint8_t *d = dst;
    uint64_t key = rng_mix(id + 1), v;

    while (len) {
        unsigned skip = off % 8;
        unsigned n = 8 - skip < len ? 8 - skip : (unsigned)len;

        /* one multiplication suffices to make any two words differ */
        v = (key + off / 8) * 0x9e3779b97f4a7c15ULL;
        v ^= v >> 29;
        if (n == 8) {
            memcpy(d, &v, 8);
        } else {
            v >>= 8 * skip;
            memcpy(d, &v, n);
        }
        d += n;
        off += n;
        len -= n;
    }
}

void gbuf_fill(struct gbuf *b, uint64_t at, uint64_t id, uint64_t off,
               uint64_t len)
{
    uint64_t a, n;

    for (; len; len -= n, at += n, off += n) {
        a = gbuf_addr(b, at, &n);
        n = n < len ? n : len;
        pattern_bytes(id, off, gmem_ptr(b->m, a, n), n);
    }
}

uint64_t gbuf_verify(const struct gbuf *b, uint64_t at, uint64_t id,
                     uint64_t off, uint64_t len)
{
    uint8_t want[1024];
    uint64_t done = 0, a, n, i;
    const uint8_t *p;

    for (; done < len; done += n) {
        a = gbuf_addr(b, at + done, &n);
        n = n < len - done ? n : len - done;
        n = n < sizeof(want) ? n : sizeof(want);
        pattern_bytes(id, off + done, want, n);
        p = gmem_ptr(b->m, a, n);
        if (memcmp(p, want, n)) {
            for (i = 0; p[i] == want[i]; i++) {
            }
            return done + i;
        }
    }
    return len;
}
