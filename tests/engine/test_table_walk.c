/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The buffer-table walker: every form, boundaries, invalid entries. */
#include "unit.h"
#include "rule.h"

static const struct gbuf_shape shapes[] = {
    { QHCA_BUF_DIRECT, 0, 0, 0 },
    { QHCA_BUF_LIST, 0, 0, 0 },
    { QHCA_BUF_FLAT, 1, 12, 0 },
    { QHCA_BUF_FLAT, 1, 13, 0 },
    { QHCA_BUF_FLAT, 1, 16, 0 },
    { QHCA_BUF_FLAT, 1, 21, 0 },
    { QHCA_BUF_TREE, 1, 12, 12 },
    { QHCA_BUF_TREE, 1, 16, 16 },
    { QHCA_BUF_TREE, 2, 12, 12 },
    { QHCA_BUF_TREE, 2, 13, 14 },
    { QHCA_BUF_TREE, 2, 21, 12 },
    { QHCA_BUF_TREE, 3, 12, 12 },
    { QHCA_BUF_TREE, 3, 16, 13 },
    { QHCA_BUF_TREE, 3, 21, 12 },
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))
#define LEN (300u * 4096u + 40u)

static void make(struct unit *u, struct gbuf *b, struct qhca_buf_table *m,
                 uint64_t len, const struct gbuf_shape *s, bool queue,
                 uint64_t first)
{
    gbuf_make(b, u->m, len, s, queue, first, &u->g.rng);
    assert_int_equal(qhca_buf_table_init(m, &b->d, len, queue), QHCA_ST_OK);
}

static void check_at(struct unit *u, const struct gbuf *b,
                     struct qhca_buf_table *m, uint64_t off)
{
    uint64_t addr, run;

    assert_int_equal(qhca_buf_table_walk(u->e, m, off, 1, &addr, &run), 0);
    assert_int_equal(addr, gbuf_addr(b, off, NULL));
    assert_true(run > 0 && run <= b->len - off);
    assert_int_equal(addr + run - 1, gbuf_addr(b, off + run - 1, NULL));
}

static void every_form(void **state)
{
    struct unit *u = *state;
    struct qhca_buf_table m;
    struct gbuf b;
    unsigned i, j;
    uint64_t first, off;

    for (i = 0; i < SHAPES; i++) {
        for (first = 0; first <= 0x708; first += 0x708) {
            make(u, &b, &m, LEN, &shapes[i], false, first);
            for (j = 0; j < 2000; j++) {
                check_at(u, &b, &m, rng_below(&u->g.rng, LEN));
            }
            for (off = 0; off < LEN; off += 1000) {
                check_at(u, &b, &m, off);
            }
            for (off = 4096; off + 4096 < LEN; off += 4096) {
                check_at(u, &b, &m, off - 1);
                check_at(u, &b, &m, off);
            }
            check_at(u, &b, &m, 0);
            check_at(u, &b, &m, LEN - 1);
            gbuf_free(&b);
        }
    }
}

/* Queues: no entry straddles pages, and each form finds each entry. */
static void queue_entries(void **state)
{
    struct unit *u = *state;
    struct qhca_buf_table m;
    uint64_t addr, run, off;
    struct gbuf b;
    unsigned i;

    for (i = 0; i < SHAPES; i++) {
        make(u, &b, &m, 1u << 20, &shapes[i], true, 0);
        for (off = 0; off < 1u << 20; off += 1024) {
            assert_int_equal(qhca_buf_table_walk(u->e, &m, off, 1, &addr, &run),
                             0);
            assert_int_equal(addr, gbuf_addr(&b, off, NULL));
            assert_true(run >= 1024);
        }
        gbuf_free(&b);
    }
}

/* Reads of the table while 64 pages are walked in steps of @step. */
static uint64_t table_reads(struct unit *u, const struct gbuf_shape *s,
                            unsigned step)
{
    struct qhca_buf_table m;
    uint64_t addr, run, off, before;
    struct gbuf b;

    make(u, &b, &m, 64 * 4096, s, true, 0);
    before = u->m->reads;
    for (off = 0; off < 64 * 4096; off += step) {
        assert_int_equal(qhca_buf_table_walk(u->e, &m, off, 1, &addr, &run), 0);
    }
    before = u->m->reads - before;
    gbuf_free(&b);
    return before;
}

static void leaf_cache(void **state)
{
    struct unit *u = *state;
    static const struct gbuf_shape tree3 = { QHCA_BUF_TREE, 3, 12, 12 };

    assert_int_equal(table_reads(u, &gbuf_direct, 64), 0);
    /* eight entries at a time, each once */
    assert_int_equal(table_reads(u, &gbuf_flat4k, 64), 8);
    /* and two hops more, once */
    assert_int_equal(table_reads(u, &tree3, 64), 8 + 2);
}

static void spoil(struct unit *u, struct gbuf *b, uint64_t off, uint64_t set,
                  uint64_t clear)
{
    uint64_t *p = gmem_ptr(u->m, gbuf_entry_addr(b, off), 8);

    *p = (*p | set) & ~clear;
}

static void bad_entries(void **state)
{
    struct unit *u = *state;
    static const struct gbuf_shape bad[] = {
        { QHCA_BUF_FLAT, 1, 16, 0 }, { QHCA_BUF_TREE, 1, 16, 12 },
        { QHCA_BUF_TREE, 2, 16, 12 }, { QHCA_BUF_TREE, 3, 16, 12 },
    };
    static const struct { uint64_t set, clear; } how[] = {
        { 0, QHCA_BTE_VALID }, { QHCA_BTE_TABLE, 0 }, { 0x1000, 0 },
        { 0x8000, 0 }
    };
    uint64_t addr, run, faults = unit_stat(u, QHCA_STAT_TABLE_ERRORS);
    struct qhca_buf_table m;
    struct gbuf b;
    unsigned i, j;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        for (j = 0; j < sizeof(how) / sizeof(how[0]); j++) {
            make(u, &b, &m, 40 << 16, &bad[i], false, 0);
            spoil(u, &b, 20 << 16, how[j].set, how[j].clear);
            check_at(u, &b, &m, (20 << 16) - 1);
            check_at(u, &b, &m, 21 << 16);
            assert_int_equal(qhca_buf_table_walk(u->e, &m, 20 << 16, 1, &addr,
                                                 &run), QHCA_SYN_TABLE_INVALID);
            assert_int_equal(unit_stat(u, QHCA_STAT_TABLE_ERRORS),
                             ++faults);
            /* the neighbours still work, and so does a repaired entry */
            check_at(u, &b, &m, (20 << 16) - 1);
            spoil(u, &b, 20 << 16, how[j].clear, how[j].set);
            check_at(u, &b, &m, 20 << 16);
            gbuf_free(&b);
        }
    }
}

/* An upper level that is invalid, or not a table. */
static void bad_upper_level(void **state)
{
    struct unit *u = *state;
    static const struct gbuf_shape tree3 = { QHCA_BUF_TREE, 3, 12, 12 };
    uint64_t addr, run, *root;
    struct qhca_buf_table m;
    struct gbuf b;

    make(u, &b, &m, LEN, &tree3, false, 0);
    root = gmem_ptr(u->m, b.d.addr, 8);
    *root &= ~QHCA_BTE_VALID;
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 0, 1, &addr, &run),
                     QHCA_SYN_TABLE_INVALID);
    *root |= QHCA_BTE_VALID;
    *root &= ~QHCA_BTE_TABLE;
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 0, 1, &addr, &run),
                     QHCA_SYN_TABLE_INVALID);
    *root = gmem_unmapped(u->m, 4096) | QHCA_BTE_VALID | QHCA_BTE_TABLE;
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 0, 1, &addr, &run),
                     QHCA_SYN_TABLE_DMA);
    gbuf_free(&b);
}

static void bad_list(void **state)
{
    struct unit *u = *state;
    static const struct gbuf_shape list = { QHCA_BUF_LIST, 0, 0, 0 };
    struct qhca_buf_seg *seg, keep;
    struct qhca_buf_table m;
    uint64_t addr, run;
    struct gbuf b;

    make(u, &b, &m, 64 * 4096, &list, true, 0);
    seg = gmem_ptr(u->m, b.d.addr, b.d.entries * sizeof(*seg));
    keep = seg[0];
    check_at(u, &b, &m, 64 * 4096 - 1);

    seg[0].len &= ~QHCA_BUF_SEG_VALID;
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 0, 1, &addr, &run),
                     QHCA_SYN_TABLE_INVALID);
    seg[0].len = QHCA_BUF_SEG_VALID;
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 0, 1, &addr, &run),
                     QHCA_SYN_TABLE_INVALID);
    /* an entry of a queue could straddle */
    seg[0].len = (keep.len & ~QHCA_BUF_SEG_VALID) + 64;
    seg[0].len |= QHCA_BUF_SEG_VALID;
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 0, 1, &addr, &run),
                     QHCA_SYN_TABLE_INVALID);
    /* past the end of the address space */
    seg[0] = keep;
    seg[0].addr = UINT64_MAX - 4095 + 64;
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 0, 1, &addr, &run),
                     QHCA_SYN_TABLE_INVALID);
    seg[0] = keep;
    check_at(u, &b, &m, 0);
    /* lengths that do not add up to the buffer's */
    m.entries = 1;
    qhca_buf_table_forget(&m);
    if (b.d.entries > 1) {
        assert_int_equal(qhca_buf_table_walk(u->e, &m, 64 * 4096 - 1, 1, &addr,
                                             &run), QHCA_SYN_TABLE_INVALID);
    }
    gbuf_free(&b);
}

/* An injected fault of one entry of a list. */
static void list_faulty(void **state)
{
    struct unit *u = *state;
    static const struct gbuf_shape list = { QHCA_BUF_LIST, 0, 0, 0 };
    uint64_t addr, run, errors = unit_stat(u, QHCA_STAT_TABLE_ERRORS);
    struct qhca_buf_table m;
    struct gbuf b;
    uint32_t i;

    make(u, &b, &m, 64 * 4096, &list, true, 0);
    for (i = 0; i < b.chunks; i++) {
        rule_add(u->e, RULE(TABLE_ERROR, .fields = QHCA_FLT_INDEX, .index = i,
                            .index_last = i));
        assert_int_equal(qhca_buf_table_walk(u->e, &m, b.chunk[i].off, 1,
                                             &addr, &run),
                         QHCA_SYN_TABLE_INVALID);
        assert_int_equal(unit_stat(u, QHCA_STAT_TABLE_ERRORS), ++errors);
        /* not the others, and not this one without the rule */
        if (i) {
            check_at(u, &b, &m, b.chunk[i].off - 1);
        }
        qhca_fault_remove(u->e, 0);
        check_at(u, &b, &m, b.chunk[i].off);
    }
    gbuf_free(&b);
}

/* Regions: only the first and the last segment may be very short. */
static void short_segments(void **state)
{
    struct unit *u = *state;
    const struct qhca_buf_seg segs[] = {
        { 0x10001, 1 | QHCA_BUF_SEG_VALID },
        { 0x20000, QHCA_BUF_SEG_MIN | QHCA_BUF_SEG_VALID },
        { 0x30000, 4096 | QHCA_BUF_SEG_VALID },
        { 0x40000, 2 | QHCA_BUF_SEG_VALID },
    };
    uint64_t t = gmem_alloc(u->m, sizeof(segs), 12, 0), addr, run;
    struct qhca_buf d = {
        .addr = t, .len = 4096 + QHCA_BUF_SEG_MIN + 3, .entries = 4,
        .form = QHCA_BUF_LIST,
    };
    struct qhca_buf_seg *seg = gmem_ptr(u->m, t, sizeof(segs));
    struct qhca_buf_table m;

    gmem_allow(u->m, t, sizeof(segs), GMEM_R);
    memcpy(seg, segs, sizeof(segs));
    assert_int_equal(qhca_buf_table_init(&m, &d, 0, false), QHCA_ST_OK);
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 0, 1, &addr, &run), 0);
    assert_int_equal(addr, 0x10001);
    assert_int_equal(qhca_buf_table_walk(u->e, &m, d.len - 1, 1, &addr, &run),
                     0);
    assert_int_equal(addr, 0x40001);
    seg[1].len--;
    qhca_buf_table_forget(&m);
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 0, 1, &addr, &run), 0);
    assert_int_equal(qhca_buf_table_walk(u->e, &m, 1, 1, &addr, &run),
                     QHCA_SYN_TABLE_INVALID);
    assert_int_equal(qhca_buf_table_walk(u->e, &m, d.len - 2, 1, &addr, &run),
                     QHCA_SYN_TABLE_INVALID);
    gmem_release(u->m, t, sizeof(segs));
}

/* Descriptors that must be rejected. */
static void bad_descriptors(void **state)
{
    static const struct {
        struct qhca_buf d;
        uint64_t need;
        bool queue;
    } bad[] = {
        { { .addr = 0x1000, .len = 0, .form = QHCA_BUF_DIRECT }, 0, 0 },
        { { .addr = 0x1000, .len = 1ULL << 63 }, 0, 0 },
        { { .addr = 0x1000, .len = 4095 }, 4096, 1 },
        { { .addr = 0x1020, .len = 4096 }, 4096, 1 },
        { { .addr = 0x1000, .len = 4096, .first = 64 }, 4096, 1 },
        { { .addr = -4096ULL, .len = 4097 }, 0, 0 },
        { { .addr = -4096ULL, .len = 4096, .first = 1 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .hops = 1 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .page_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .table_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .entries = 1 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 4 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 255 }, 0, 0 },
        /* LIST */
        { { .addr = 0x1000, .len = 4096, .form = 1 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 1, .entries = 4097 }, 0, 0 },
        { { .addr = 0x1004, .len = 4096, .form = 1, .entries = 1 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 1, .entries = 1,
            .first = 8 }, 0, 0 },
        { { .addr = -8ULL, .len = 4096, .form = 1, .entries = 1 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 1, .entries = 1,
            .hops = 1 }, 0, 0 },
        /* FLAT */
        { { .addr = 0x1000, .len = 4096, .form = 2, .hops = 0, .entries = 1,
            .page_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 2, .hops = 2, .entries = 1,
            .page_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 2, .hops = 1, .entries = 0,
            .page_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4097, .form = 2, .hops = 1, .entries = 1,
            .page_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .first = 1, .form = 2, .hops = 1,
            .entries = 1, .page_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 64, .first = 4096, .form = 2, .hops = 1,
            .entries = 2, .page_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 2, .hops = 1, .entries = 1,
            .page_shift = 11 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 2, .hops = 1, .entries = 1,
            .page_shift = 32 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 2, .hops = 1, .entries = 1,
            .page_shift = 255 }, 0, 0 },
        { { .addr = 0x1004, .len = 4096, .form = 2, .hops = 1, .entries = 1,
            .page_shift = 12 }, 0, 0 },
        { { .addr = -8ULL, .len = 8192, .form = 2, .hops = 1, .entries = 2,
            .page_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 2, .hops = 1, .entries = 1,
            .page_shift = 12, .table_shift = 12 }, 0, 0 },
        /* TREE */
        { { .addr = 0x1000, .len = 4096, .form = 3, .hops = 0,
            .page_shift = 12, .table_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 3, .hops = 4,
            .page_shift = 12, .table_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 3, .hops = 255,
            .page_shift = 12, .table_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 3, .hops = 1,
            .page_shift = 12, .table_shift = 11 }, 0, 0 },
        { { .addr = 0x400000, .len = 4096, .form = 3, .hops = 1,
            .page_shift = 12, .table_shift = 22 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 3, .hops = 1,
            .page_shift = 12, .table_shift = 13 }, 0, 0 },
        { { .addr = 0x1008, .len = 4096, .form = 3, .hops = 1,
            .page_shift = 12, .table_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 4096, .form = 3, .hops = 1,
            .page_shift = 12, .table_shift = 12, .entries = 1 }, 0, 0 },
        /* more than 512 pages with one hop; 512 * 512 with two */
        { { .addr = 0x1000, .len = 512 * 4096 + 1, .form = 3, .hops = 1,
            .page_shift = 12, .table_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = (1ULL << 30) + 1, .form = 3, .hops = 2,
            .page_shift = 12, .table_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = (1ULL << 39) + 1, .form = 3, .hops = 3,
            .page_shift = 12, .table_shift = 12 }, 0, 0 },
        { { .addr = 0x1000, .len = 512 * 4096, .first = 8, .form = 3,
            .hops = 1, .page_shift = 12, .table_shift = 12 }, 0, 0 },
    };
    static const struct qhca_buf good[] = {
        { .addr = 0x1000, .len = 512 * 4096, .form = 3, .hops = 1,
          .page_shift = 12, .table_shift = 12 },
        { .addr = 0x1000, .len = 1ULL << 39, .form = 3, .hops = 3,
          .page_shift = 12, .table_shift = 12 },
        { .addr = 0x200000, .len = 1ULL << 62, .form = 3, .hops = 3,
          .page_shift = 31, .table_shift = 21 },
        { .addr = -4096ULL, .len = 4096 },
        { .addr = 0x1000, .len = 1ULL << 31, .form = 2, .hops = 1,
          .entries = 1, .page_shift = 31 },
    };
    struct qhca_buf_table m;
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (qhca_buf_table_init(&m, &bad[i].d, bad[i].need, bad[i].queue) !=
            QHCA_ST_BAD_TABLE) {
            fail_msg("bad descriptor %u taken", i);
        }
    }
    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        if (qhca_buf_table_init(&m, &good[i], 0, false) != QHCA_ST_OK) {
            fail_msg("good descriptor %u refused", i);
        }
    }
}

/* A query returns what was given. */
static void round_trip(void **state)
{
    struct unit *u = *state;
    struct qhca_buf_table m;
    struct qhca_buf d;
    struct gbuf b;
    unsigned i;

    for (i = 0; i < SHAPES; i++) {
        make(u, &b, &m, LEN, &shapes[i], false, 0);
        qhca_buf_table_describe(&m, &d);
        assert_memory_equal(&d, &b.d, sizeof(d));
        gbuf_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(every_form),
        UNIT(queue_entries),
        UNIT(leaf_cache),
        UNIT(bad_entries),
        UNIT(bad_upper_level),
        UNIT(bad_list),
        UNIT(list_faulty),
        UNIT(short_segments),
        UNIT(bad_descriptors),
        UNIT(round_trip),
    };

    return cmocka_run_group_tests_name("buf", tests, NULL, NULL);
}
