/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The driver's buffer-table planner and encoder against a walker written from
 * the contract's text: whatever layout is asked for, each byte of the buffer
 * must be found where the blocks have it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "layout.h"
#include "qhca_buf_table.h"

/* ---- a list of blocks to iterate over ---- */

struct list {
    struct qhca_blocks blocks;
    const u64 *addr;
    u64 n, pos;
};

static void list_begin(struct qhca_blocks *b)
{
    ((struct list *)b)->pos = 0;
}

static bool list_next(struct qhca_blocks *b, u64 *addr)
{
    struct list *l = (struct list *)b;

    if (l->pos == l->n) {
        return false;
    }
    *addr = l->addr[l->pos++];
    return true;
}

static struct list list_of(const u64 *addr, u64 n, u8 shift)
{
    return (struct list) {
        .blocks = { list_begin, list_next, shift }, .addr = addr, .n = n,
    };
}

/* n blocks of 1 << shift bytes, none next to another, in no order */
static u64 *scattered(u64 n, u8 shift)
{
    u64 *a = calloc(n, sizeof(*a));
    u64 i;

    assert_non_null(a);
    for (i = 0; i < n; i++) {
        a[i] = (1 + 2 * ((i * 7919 + 13) % (4 * n + 1))) << shift;
    }
    return a;
}

static u64 *adjacent(u64 n, u8 shift, u64 start)
{
    u64 *a = calloc(n, sizeof(*a));
    u64 i;

    assert_non_null(a);
    for (i = 0; i < n; i++) {
        a[i] = start + (i << shift);
    }
    return a;
}

/* ---- tables in memory with made-up DMA addresses, and a walker ---- */

#define ROOT    0x7000000000ULL

struct mem {
    struct qhca_plan plan;
    struct qhca_buf desc;
    u64 count, size;            /* tables, bytes of each */
    __le64 **table;
    u64 *dma;
};

static int build(struct mem *m, struct list *l, u64 first, u64 len,
                 const struct qhca_layout *want, u64 flat_max)
{
    u64 start[3] = { 0 }, i;
    int h, err;

    memset(m, 0, sizeof(*m));
    err = qhca_plan_make(&m->plan, &l->blocks, first, len, want, flat_max);
    if (err) {
        return err;
    }
    if (m->plan.form == QHCA_BUF_TREE) {
        for (h = 0; h < m->plan.hops; h++) {
            start[h] = m->count;
            m->count += m->plan.ntables[h];
        }
        m->size = 1ULL << m->plan.table_shift;
        assert_int_equal(qhca_plan_bytes(&m->plan), m->count * m->size);
    } else if (m->plan.form != QHCA_BUF_DIRECT) {
        m->count = 1;
        m->size = qhca_plan_bytes(&m->plan);
    } else {
        assert_int_equal(qhca_plan_bytes(&m->plan), 0);
    }
    m->table = calloc(m->count + 1, sizeof(*m->table));
    m->dma = calloc(m->count + 1, sizeof(*m->dma));
    for (i = 0; i < m->count; i++) {
        m->table[i] = calloc(1, m->size);
        assert_non_null(m->table[i]);
        m->dma[i] = ROOT + i * (m->size > 4096 ? 2 * m->size : 8192);
        m->dma[i] &= ~(u64)(m->plan.form == QHCA_BUF_TREE ? m->size - 1 : 0);
    }
    if (m->plan.form == QHCA_BUF_LIST) {
        err = qhca_plan_fill_list(&m->plan, &l->blocks,
                                  (struct qhca_buf_seg *)m->table[0]);
    } else if (m->plan.form != QHCA_BUF_DIRECT) {
        for (h = 1; h < m->plan.hops; h++) {
            qhca_plan_fill_links(&m->plan, m->table + start[h - 1],
                                 m->dma + start[h], m->plan.ntables[h]);
        }
        err = qhca_plan_fill_pages(&m->plan, &l->blocks,
                                   m->table + (m->plan.hops ?
                                               start[m->plan.hops - 1] : 0));
    }
    if (!err) {
        qhca_plan_describe(&m->plan, m->count ? m->dma[0] : 0, &m->desc);
    }
    return err;
}

static void forget(struct mem *m)
{
    u64 i;

    for (i = 0; i < m->count; i++) {
        free(m->table[i]);
    }
    free(m->table);
    free(m->dma);
}

static u64 load(const struct mem *m, u64 dma)
{
    u64 i;

    for (i = 0; i < m->count; i++) {
        if (dma >= m->dma[i] && dma < m->dma[i] + m->size) {
            return le64toh(m->table[i][(dma - m->dma[i]) / 8]);
        }
    }
    fail_msg("read of %#llx, where no table is", (unsigned long long)dma);
    return 0;
}

/* The contract's rules, word by word. */
static u64 walk(const struct mem *m, u64 off)
{
    const struct qhca_buf *d = &m->desc;
    u64 pos = off + le32toh(d->first), at = le64toh(d->addr), e, len;
    unsigned bits = d->table_shift - 3, i;

    assert_true(off < le64toh(d->len));
    switch (d->form) {
    case QHCA_BUF_DIRECT:
        assert_int_equal(d->hops, 0);
        return at + pos;
    case QHCA_BUF_LIST:
        assert_int_equal(d->first, 0);
        for (i = 0; i < le32toh(d->entries); i++) {
            e = load(m, at + i * 16ULL);
            len = load(m, at + i * 16ULL + 8);
            assert_true(len & QHCA_BUF_SEG_VALID);
            len &= ~QHCA_BUF_SEG_VALID;
            if (off < len) {
                return e + off;
            }
            off -= len;
        }
        fail_msg("offset behind the list");
        return 0;
    case QHCA_BUF_FLAT:
        assert_int_equal(d->hops, 1);
        assert_true(pos >> d->page_shift < le32toh(d->entries));
        e = load(m, at + (pos >> d->page_shift) * 8);
        break;
    default:
        assert_int_equal(d->form, QHCA_BUF_TREE);
        e = at | QHCA_BTE_TABLE;
        for (i = 0; i < d->hops; i++) {
            assert_true(e & QHCA_BTE_TABLE);
            at = e & QHCA_BTE_ADDR_MASK;
            assert_int_equal(at & ((1ULL << d->table_shift) - 1), 0);
            e = load(m, at + (((pos >> d->page_shift) >>
                               (bits * (d->hops - 1 - i))) &
                              ((1ULL << bits) - 1)) * 8);
            assert_true(e & QHCA_BTE_VALID);
        }
    }
    assert_true(e & QHCA_BTE_VALID);
    assert_false(e & QHCA_BTE_TABLE);
    e &= QHCA_BTE_ADDR_MASK;
    assert_int_equal(e & ((1ULL << d->page_shift) - 1), 0);
    return e + (pos & ((1ULL << d->page_shift) - 1));
}

/* First and last byte of each block, and some between. */
static void check_all(const struct mem *m, const u64 *addr, u8 shift, u64 first,
                      u64 len)
{
    u64 size = 1ULL << shift, off = 0, pos;

    while (off < len) {
        pos = off + first;
        assert_int_equal(walk(m, off), addr[pos >> shift] + pos % size);
        off += off % 3 == 0 && off + size / 2 < len && pos % size == 0 ?
               size / 2 : size - pos % size > 1 && pos % size != size - 1 ?
               size - 1 - pos % size : 1;
    }
    assert_int_equal(walk(m, len - 1),
                     addr[(first + len - 1) >> shift] +
                     (first + len - 1) % size);
}

struct wish {
    struct qhca_layout l;
    u64 pages;
};

static const struct wish wishes[] = {
    { { QHCA_BUF_LIST, 0, 0, 0, 1 }, 1 },
    { { QHCA_BUF_LIST, 0, 0, 0, 1 }, 100 },
    { { QHCA_BUF_FLAT, 1, 0, 0, 1 }, 1 },
    { { QHCA_BUF_FLAT, 0, 0, 0, 1 }, 513 },
    { { QHCA_BUF_TREE, 1, 0, 12, 1 }, 512 },
    { { QHCA_BUF_TREE, 0, 0, 0, 1 }, 1 },
    { { QHCA_BUF_TREE, 2, 0, 0, 1 }, 1 },
    { { QHCA_BUF_TREE, 2, 0, 12, 1 }, 1025 },
    { { QHCA_BUF_TREE, 3, 0, 12, 1 }, 3 },
    { { QHCA_BUF_TREE, 3, 0, 12, 1 }, 512 * 2 + 7 },
    { { QHCA_BUF_TREE, 3, 0, 13, 1 }, 5000 },
    { { QHCA_BUF_TREE, 1, 0, 21, 1 }, 5000 },
    { { QHCA_BUF_TREE, 0, 0, 14, 1 }, 5000 },
    { { QHCA_LAYOUT_AUTO, 0, 0, 0, 1 }, 77 },
};

static void test_forms(void **state)
{
    static const u8 shifts[] = { 12, 13, 16, 21, 31 };
    unsigned w, s, f;

    for (w = 0; w < ARRAY_SIZE(wishes); w++) {
        for (s = 0; s < ARRAY_SIZE(shifts); s++) {
            u64 n = wishes[w].pages, size = 1ULL << shifts[s];
            u64 *addr = scattered(n, shifts[s]);
            u64 firsts[] = { 0, 1, size - 1 };

            for (f = 0; f < ARRAY_SIZE(firsts); f++) {
                struct list l = list_of(addr, n, shifts[s]);
                u64 len = n * size - firsts[f];
                struct mem m;

                assert_int_equal(build(&m, &l, firsts[f], len,
                                       &wishes[w].l, 1 << 20), 0);
                if (wishes[w].l.hops) {
                    assert_int_equal(m.desc.hops, wishes[w].l.hops);
                }
                check_all(&m, addr, shifts[s], firsts[f], len);
                forget(&m);
            }
            free(addr);
        }
    }
}

static void test_auto_choice(void **state)
{
    u64 *adj = adjacent(64, 12, 0x10000), *sc = scattered(64, 12);
    struct list l = list_of(adj, 64, 12);
    struct mem m;

    assert_int_equal(build(&m, &l, 5, 64 * 4096 - 5, NULL, 4096), 0);
    assert_int_equal(m.desc.form, QHCA_BUF_DIRECT);
    check_all(&m, adj, 12, 5, 64 * 4096 - 5);
    forget(&m);

    l = list_of(sc, 64, 12);
    assert_int_equal(build(&m, &l, 0, 64 * 4096, NULL, 64 * 8), 0);
    assert_int_equal(m.desc.form, QHCA_BUF_FLAT);
    forget(&m);

    assert_int_equal(build(&m, &l, 0, 64 * 4096, NULL, 63 * 8), 0);
    assert_int_equal(m.desc.form, QHCA_BUF_TREE);
    assert_int_equal(m.desc.hops, 1);
    check_all(&m, sc, 12, 0, 64 * 4096);
    forget(&m);
    free(adj);
    free(sc);
}

/* As few hops as fit, and tables no larger than needed for that. */
static void test_tree_choice(void **state)
{
    static const struct {
        u64 pages;
        u8 hops, table_shift;
    } t[] = {
        { 1, 1, 12 }, { 512, 1, 12 }, { 513, 2, 12 },
        { 1ULL << 18, 2, 12 }, { (1ULL << 18) + 1, 2, 13 },
        { 1ULL << 22, 2, 14 }, { 1ULL << 36, 2, 21 },
        { (1ULL << 36) + 1, 3, 16 }, { 1ULL << 54, 3, 21 },
    };
    struct qhca_plan p;
    unsigned i;

    for (i = 0; i < ARRAY_SIZE(t); i++) {
        memset(&p, 0, sizeof(p));
        p.npages = t[i].pages;
        assert_int_equal(qhca_plan_tree(&p, NULL), 0);
        assert_int_equal(p.hops, t[i].hops);
        assert_int_equal(p.table_shift, t[i].table_shift);
        assert_int_equal(p.ntables[0], 1);
    }
    p.npages = (1ULL << 54) + 1;
    assert_int_equal(qhca_plan_tree(&p, NULL), -EINVAL);
}

static void test_list_merges(void **state)
{
    u64 addr[] = { 0x1000, 0x2000, 0x9000, 0xa000, 0xb000, 0x5000 };
    struct qhca_layout want = { .form = QHCA_BUF_LIST, .scope = 1 };
    struct list l = list_of(addr, 6, 12);
    struct mem m;

    assert_int_equal(build(&m, &l, 0x10, 6 * 4096 - 0x10, &want, 0), 0);
    assert_int_equal(le32toh(m.desc.entries), 3);
    assert_int_equal(load(&m, ROOT), 0x1010);
    assert_int_equal(load(&m, ROOT + 8), QHCA_BUF_SEG_VALID | 0x1ff0);
    check_all(&m, addr, 12, 0x10, 6 * 4096 - 0x10);
    forget(&m);

    /* of a queue each segment is a whole number of pages */
    assert_int_equal(build(&m, &l, 0, 64, &want, 0), 0);
    assert_int_equal(load(&m, ROOT + 8), QHCA_BUF_SEG_VALID | 0x1000);
    forget(&m);
}

static int try_plan(u8 form, u8 hops, u8 ps, u8 ts, const u64 *addr, u64 n,
                    u64 first, u64 len)
{
    struct qhca_layout want = { form, hops, ps, ts, 1 };
    struct list l = list_of(addr, n, 12);
    struct qhca_plan p;

    return qhca_plan_make(&p, &l.blocks, first, len, &want, 1 << 20);
}

static void test_refusals(void **state)
{
    u64 *sc = scattered(5000, 12);
    u64 crooked[] = { 0x1800 };

    /* the control: what differs in each case below is what is refused */
    assert_int_equal(try_plan(QHCA_BUF_FLAT, 1, 12, 0, sc, 4, 0, 16384), 0);
    /* pieces are not one block */
    assert_int_equal(try_plan(QHCA_BUF_DIRECT, 0, 0, 0, sc, 4, 0, 16384),
                     -EINVAL);
    /* another page size than that of the blocks */
    assert_int_equal(try_plan(QHCA_BUF_FLAT, 1, 13, 0, sc, 4, 0, 16384),
                     -EINVAL);
    /* too few blocks, no length, first outside page 0, overflow */
    assert_int_equal(try_plan(QHCA_BUF_FLAT, 1, 12, 0, sc, 4, 0, 16385),
                     -EINVAL);
    assert_int_equal(try_plan(QHCA_BUF_FLAT, 1, 12, 0, sc, 4, 1, 16384),
                     -EINVAL);
    assert_int_equal(try_plan(QHCA_BUF_FLAT, 1, 12, 0, sc, 4, 0, 0), -EINVAL);
    assert_int_equal(try_plan(QHCA_BUF_FLAT, 1, 12, 0, sc, 4, 4096, 4096),
                     -EINVAL);
    assert_int_equal(try_plan(QHCA_BUF_FLAT, 1, 12, 0, sc, 4, 4095,
                              UINT64_MAX), -EINVAL);
    /* a block that is not aligned to its size */
    assert_int_equal(try_plan(QHCA_BUF_FLAT, 1, 12, 0, crooked, 1, 0, 64),
                     -EINVAL);
    /* more than the hops reach */
    assert_int_equal(try_plan(QHCA_BUF_TREE, 1, 0, 12, sc, 512, 0,
                              512 * 4096), 0);
    assert_int_equal(try_plan(QHCA_BUF_TREE, 1, 0, 12, sc, 513, 0,
                              513 * 4096), -EINVAL);
    /* more segments than a list may have */
    assert_int_equal(try_plan(QHCA_BUF_LIST, 0, 0, 0, sc, 4096, 0,
                              4096 * 4096), 0);
    assert_int_equal(try_plan(QHCA_BUF_LIST, 0, 0, 0, sc, 4097, 0,
                              4097 * 4096), -EINVAL);
    free(sc);
}

static void test_layout_text(void **state)
{
    static const char * const bad[] = {
        "tre", "tree hops=4", "direct hops=1", "flat hops=2", "list hops=1",
        "tree page_shift=11", "flat page_shift=32", "tree table_shift=22",
        "tree table_shift=11", "flat table_shift=12", "auto hops=1",
        "tree hops=", "tree hops=1x", "tree hops=256", "hops", "scope=none",
        "tree scope=", "tree  bogus=1",
    };
    struct qhca_layout l, again;
    char text[96];
    unsigned i;

    assert_int_equal(qhca_layout_parse("", &l), 0);
    assert_int_equal(l.form, QHCA_LAYOUT_AUTO);
    assert_int_equal(l.scope, QHCA_SCOPE_USER);
    assert_int_equal(qhca_layout_parse(
        " tree\thops=2 page_shift=13 table_shift=14 scope=all\n", &l), 0);
    assert_int_equal(l.form, QHCA_BUF_TREE);
    assert_int_equal(l.hops, 2);
    assert_int_equal(l.page_shift, 13);
    assert_int_equal(l.table_shift, 14);
    assert_int_equal(l.scope, QHCA_SCOPE_USER | QHCA_SCOPE_KERNEL);
    assert_true(qhca_layout_print(&l, text, sizeof(text)) <
                (int)sizeof(text));
    assert_int_equal(qhca_layout_parse(text, &again), 0);
    assert_memory_equal(&l, &again, sizeof(l));
    for (i = 0; i < ARRAY_SIZE(bad); i++) {
        if (qhca_layout_parse(bad[i], &again) != -EINVAL) {
            fail_msg("\"%s\" was taken", bad[i]);
        }
    }
    /* a refused text changes nothing */
    assert_memory_equal(&l, &again, sizeof(l));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_auto_choice),
        cmocka_unit_test(test_tree_choice),
        cmocka_unit_test(test_list_merges),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_layout_text),
    };

    return cmocka_run_group_tests_name("buffer tables", tests, NULL, NULL);
}
