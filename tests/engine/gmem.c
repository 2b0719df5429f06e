/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <string.h>
#include <sys/mman.h>

#include "die.h"
#include "gmem.h"

/* Small pages are scattered over this first part only, to spare the host. */
#define SMALL_SPAN (1ULL << 26)
#define SMALL_MAX  (1ULL << 16)

/*
 * Freed memory of at least this size goes back to the host.  What is smaller is
 * zeroed where it was written: that costs less than fresh pages.
 */
#define GIVE_BACK  (1ULL << 24)

/*
 * Spaces of former guests, zeroed: a simulation creates many guests one after
 * the other, and fresh pages cost the most.
 */
static struct gmem spare[4];
static unsigned spares;
/* After this many guests a space has pages everywhere: discard it. */
#define SPARE_USES 40

static void *reserve(uint64_t len)
{
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    CHECK(p != MAP_FAILED, "no address space");
    return p;
}

void gmem_init(struct gmem *m, uint64_t base, uint64_t seed,
               const char *name)
{
    memset(m, 0, sizeof(*m));
    if (spares) {
        *m = spare[--spares];
    }
    m->base = base;
    m->name = name;
    rng_init(&m->rng, seed);
    if (m->data) {
        return;
    }
    m->data = reserve(GMEM_SPAN);
    m->may[0] = reserve(GMEM_SPAN / 8);
    m->may[1] = reserve(GMEM_SPAN / 8);
    m->mapped = reserve(GMEM_SPAN / GMEM_PAGE / 8);
    m->touched = reserve(GMEM_SPAN / GMEM_PAGE / 8);
    m->allowed = reserve(GMEM_SPAN / GMEM_PAGE / 8);
}

void gmem_fini(struct gmem *m)
{
    if (!m->mapped_pages && spares < sizeof(spare) / sizeof(spare[0]) &&
        m->uses < SPARE_USES) {
        spare[spares] = (struct gmem){ .data = m->data, .mapped = m->mapped,
                                       .may = { m->may[0], m->may[1] },
                                       .touched = m->touched,
                                       .allowed = m->allowed,
                                       .uses = m->uses + 1 };
        spares++;
        memset(m, 0, sizeof(*m));
        return;
    }
    munmap(m->data, GMEM_SPAN);
    munmap(m->may[0], GMEM_SPAN / 8);
    munmap(m->may[1], GMEM_SPAN / 8);
    munmap(m->mapped, GMEM_SPAN / GMEM_PAGE / 8);
    munmap(m->touched, GMEM_SPAN / GMEM_PAGE / 8);
    munmap(m->allowed, GMEM_SPAN / GMEM_PAGE / 8);
    memset(m, 0, sizeof(*m));
}

static bool inside(const struct gmem *m, uint64_t addr, uint64_t len)
{
    uint64_t off = addr - m->base;

    return addr >= m->base && off < GMEM_SPAN && len <= GMEM_SPAN - off;
}

/* Are all pages of the range mapped (or all free)? */
static bool pages_are(const struct gmem *m, uint64_t off, uint64_t len,
                      bool mapped)
{
    uint64_t p = off / GMEM_PAGE;
    uint64_t last = (off + (len ? len - 1 : 0)) / GMEM_PAGE;

    for (; p <= last; p++) {
        if ((m->mapped[p / 64] >> (p % 64) & 1) != mapped) {
            return false;
        }
    }
    return true;
}

static void pages_set(struct gmem *m, uint64_t off, uint64_t len,
                      bool mapped)
{
    uint64_t p = off / GMEM_PAGE;
    uint64_t last = (off + (len ? len - 1 : 0)) / GMEM_PAGE;

    for (; p <= last; p++) {
        if (mapped) {
            m->mapped[p / 64] |= 1ULL << (p % 64);
            m->mapped_pages++;
        } else {
            m->mapped[p / 64] &= ~(1ULL << (p % 64));
            m->mapped_pages--;
        }
    }
}

/* Mark all pages of the range in @map. */
static void note_pages(uint64_t *map, uint64_t off, uint64_t len)
{
    uint64_t p = off / GMEM_PAGE;
    uint64_t last = (off + (len ? len - 1 : 0)) / GMEM_PAGE;

    for (; p <= last; p++) {
        map[p / 64] |= 1ULL << (p % 64);
    }
}

/*
 * Is page @p marked in @map?  @forget clears the mark.  An unused page reads as
 * 0, and finding out by reading costs a fresh page of the host.
 */
static bool page_noted(uint64_t *map, uint64_t p, bool forget)
{
    uint64_t bit = 1ULL << (p % 64);
    bool was = map[p / 64] & bit;

    if (was && forget) {
        map[p / 64] ^= bit;
    }
    return was;
}

uint64_t gmem_try_alloc(struct gmem *m, uint64_t len, unsigned align_shift,
                        uint64_t lead)
{
    uint64_t align = 1ULL << align_shift;
    bool small = align_shift <= 16 && len <= SMALL_MAX;
    uint64_t from = small ? 0 : SMALL_SPAN;
    uint64_t span = small ? SMALL_SPAN : GMEM_SPAN - SMALL_SPAN;
    uint64_t slots, i, off;

    if (align > SMALL_SPAN) {
        from = 0;
        span = GMEM_SPAN;
    }

    CHECK(lead < align, "lead beyond the alignment");
    if (lead + len > span) {
        return 0;
    }
again:
    slots = ((span - lead - len) >> align_shift) + 1;
    for (i = 0; i < 200; i++) {
        /* never offset 0: an address of 0 should look like an error */
        off = (rng_below(&m->rng, slots) << align_shift) + lead + from;
        if (off >= GMEM_PAGE && pages_are(m, off, len, false)) {
            goto found;
        }
    }
    for (i = 0; i < slots; i++) {
        off = (i << align_shift) + lead + from;
        if (off >= GMEM_PAGE && pages_are(m, off, len, false)) {
            goto found;
        }
    }
    /* no room for small pages: use the rest */
    if (small) {
        small = false;
        from = SMALL_SPAN;
        span = GMEM_SPAN - SMALL_SPAN;
        goto again;
    }
    return 0;
found:
    pages_set(m, off, len, true);
    return m->base + off;
}

uint64_t gmem_alloc(struct gmem *m, uint64_t len, unsigned align_shift,
                    uint64_t lead)
{
    uint64_t a = gmem_try_alloc(m, len, align_shift, lead);

    CHECK(a, "%s: no free memory of %llu bytes, alignment 2^%u", m->name,
          (unsigned long long)len, align_shift);
    return a;
}

/* @map may be untouched memory: write only what changes. */
static void set_bits(uint64_t *map, uint64_t off, uint64_t len, bool on)
{
    while (len) {
        unsigned b = off % 64;
        unsigned n = len < 64 - b ? (unsigned)len : 64 - b;
        uint64_t mask = (n == 64 ? ~0ULL : (1ULL << n) - 1) << b;
        uint64_t *w = &map[off / 64];

        if ((*w & mask) != (on ? mask : 0)) {
            *w ^= (*w & mask) ^ (on ? mask : 0);
        }
        off += n;
        len -= n;
    }
}

static bool all_bits(const uint64_t *map, uint64_t off, uint64_t len,
                     uint64_t *bad)
{
    while (len) {
        unsigned b = off % 64;
        unsigned n = len < 64 - b ? (unsigned)len : 64 - b;
        uint64_t mask = (n == 64 ? ~0ULL : (1ULL << n) - 1) << b;
        uint64_t miss = ~map[off / 64] & mask;

        if (miss) {
            *bad = off - b + (unsigned)__builtin_ctzll(miss);
            return false;
        }
        off += n;
        len -= n;
    }
    return true;
}

void gmem_allow(struct gmem *m, uint64_t addr, uint64_t len, unsigned bits)
{
    uint64_t off = addr - m->base;

    if (!len) {
        return;
    }
    CHECK(inside(m, addr, len) && pages_are(m, off, len, true),
          "permission for memory that is not mapped");
    note_pages(m->allowed, off, len);
    if (bits & GMEM_R) {
        set_bits(m->may[0], off, len, true);
    }
    if (bits & GMEM_W) {
        set_bits(m->may[1], off, len, true);
    }
}

void gmem_deny(struct gmem *m, uint64_t addr, uint64_t len, unsigned bits)
{
    uint64_t off = addr - m->base, n;

    if (!len) {
        return;
    }
    CHECK(inside(m, addr, len), "no such memory");
    for (; len; off += n, len -= n) {
        n = GMEM_PAGE - off % GMEM_PAGE;
        n = n < len ? n : len;
        if (!page_noted(m->allowed, off / GMEM_PAGE, false)) {
            continue;
        }
        if (bits & GMEM_R) {
            set_bits(m->may[0], off, n, false);
        }
        if (bits & GMEM_W) {
            set_bits(m->may[1], off, n, false);
        }
    }
}

/* Zero the written pages of the range. */
static void wipe_pages(struct gmem *m, uint64_t off, uint64_t len)
{
    uint64_t p = off / GMEM_PAGE;
    uint64_t last = (off + (len ? len - 1 : 0)) / GMEM_PAGE;

    for (; p <= last; p++) {
        if (p % 64 == 0 && !m->allowed[p / 64] && !m->touched[p / 64]) {
            p += 63;
            continue;
        }
        page_noted(m->allowed, p, true);
        if (page_noted(m->touched, p, true) && len < GIVE_BACK) {
            memset(m->data + p * GMEM_PAGE, 0, GMEM_PAGE);
        }
    }
}

void gmem_release(struct gmem *m, uint64_t addr, uint64_t len)
{
    uint64_t off = addr - m->base;

    CHECK(inside(m, addr, len) && pages_are(m, off, len, true),
          "release of memory that is not mapped");
    gmem_deny(m, addr, len, GMEM_RW);
    if (len >= GIVE_BACK) {
        uint64_t from = off / GMEM_PAGE * GMEM_PAGE;
        uint64_t to = (off + len + GMEM_PAGE - 1) / GMEM_PAGE * GMEM_PAGE;

        CHECK(!madvise(m->data + from, to - from, MADV_DONTNEED), "madvise");
    }
    wipe_pages(m, off, len);
    pages_set(m, off, len, false);
}

bool gmem_next_page(const struct gmem *m, uint64_t *addr)
{
    uint64_t p = (*addr - m->base) / GMEM_PAGE;

    for (; p < GMEM_SPAN / GMEM_PAGE; p++) {
        if (p % 64 == 0 && !m->mapped[p / 64]) {
            p += 63;
        } else if (m->mapped[p / 64] >> p % 64 & 1) {
            *addr = m->base + p * GMEM_PAGE;
            return true;
        }
    }
    return false;
}

void gmem_map_page(struct gmem *m, uint64_t addr)
{
    uint64_t off = addr - m->base;

    CHECK(addr % GMEM_PAGE == 0 && inside(m, addr, GMEM_PAGE) &&
          pages_are(m, off, GMEM_PAGE, false), "no free page at %#llx",
          (unsigned long long)addr);
    pages_set(m, off, GMEM_PAGE, true);
}

void *gmem_ptr(struct gmem *m, uint64_t addr, uint64_t len)
{
    CHECK(inside(m, addr, len) &&
          pages_are(m, addr - m->base, len, true),
          "%s: the software itself reaches for %#llx + %llu", m->name,
          (unsigned long long)addr, (unsigned long long)len);
    note_pages(m->touched, addr - m->base, len);
    return m->data + (addr - m->base);
}

uint64_t gmem_unmapped(struct gmem *m, uint64_t len)
{
    uint64_t a = gmem_alloc(m, len, 12, 0);

    gmem_release(m, a, len);
    return a;
}

static bool dev_access(struct gmem *m, uint64_t addr, size_t len, bool write)
{
    uint64_t bad;

    if (m->watch) {
        m->watch(m->watch_opaque, addr, len, write);
    }
    if (write) {
        m->writes++;
        m->write_bytes += len;
    } else {
        m->reads++;
        m->read_bytes += len;
    }
    if (!inside(m, addr, len) ||
        (len && !pages_are(m, addr - m->base, len, true))) {
        m->faults++;
        return false;
    }
    if (m->fail_64k && (!m->may_fail ||
                        m->may_fail(m->may_fail_opaque, addr)) &&
        rng_64k(&m->rng, m->fail_64k)) {
        m->injected++;
        return false;
    }
    if (!m->unchecked &&
        !all_bits(m->may[write], addr - m->base, len, &bad)) {
        die("%s: the device %s %#llx + %zu; it has no right to %#llx",
            m->name, write ? "writes to" : "reads from",
            (unsigned long long)addr, len,
            (unsigned long long)(m->base + bad));
    }
    return true;
}

bool gmem_dev_read(struct gmem *m, uint64_t addr, void *buf, size_t len)
{
    if (!dev_access(m, addr, len, false)) {
        memset(buf, 0xee, len); /* undefined: make any use visible */
        return false;
    }
    memcpy(buf, m->data + (addr - m->base), len);
    return true;
}

bool gmem_dev_share(struct gmem *m, uint64_t addr, size_t len, uint64_t *off)
{
    *off = addr - m->base;
    return dev_access(m, addr, len, false);
}

bool gmem_dev_write(struct gmem *m, uint64_t addr, const void *buf,
                    size_t len)
{
    if (!dev_access(m, addr, len, true)) {
        return false;
    }
    note_pages(m->touched, addr - m->base, len);
    memcpy(m->data + (addr - m->base), buf, len);
    return true;
}

bool gmem_dev_cas64(struct gmem *m, uint64_t addr, uint64_t cmp,
                    uint64_t swap, uint64_t *old)
{
    uint64_t v;

    CHECK(addr % 8 == 0, "compare-and-swap at %#llx",
          (unsigned long long)addr);
    if (!dev_access(m, addr, 8, false) || !dev_access(m, addr, 8, true)) {
        return false;
    }
    memcpy(&v, m->data + (addr - m->base), 8);
    *old = v;
    if (v == cmp) {
        note_pages(m->touched, addr - m->base, 8);
        memcpy(m->data + (addr - m->base), &swap, 8);
    }
    return true;
}

void gmem_copy(struct gmem *m, uint64_t from, uint64_t to, uint64_t len)
{
    uint64_t i, f = from - m->base, t = to - m->base;
    unsigned k;

    memcpy(gmem_ptr(m, to, len), gmem_ptr(m, from, len), len);
    note_pages(m->allowed, t, len);
    for (i = 0; i < len; i++) {
        for (k = 0; k < 2; k++) {
            bool on = m->may[k][(f + i) / 64] >> (f + i) % 64 & 1;

            set_bits(m->may[k], t + i, 1, on);
        }
    }
}
