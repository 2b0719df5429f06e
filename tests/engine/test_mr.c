/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory regions: the accesses that a key allows. */
#include "unit.h"
#include "rule.h"

#define LW QHCA_ACCESS_LOCAL_WRITE
#define RW QHCA_ACCESS_REMOTE_WRITE
#define RR QHCA_ACCESS_REMOTE_READ
#define RA QHCA_ACCESS_REMOTE_ATOMIC

static uint8_t check(struct unit *u, uint32_t key, uint64_t addr,
                     uint64_t len, uint32_t access)
{
    return qhca_mr_check(u->e, u->g.pd, false, key, addr, len, access, 2);
}

static void keys_and_bounds(void **state)
{
    struct unit *u = *state;
    const uint64_t at = 0x7f0012345678, len = 10000;
    struct gmr mr, top;
    uint32_t pd;

    gmr_create(&mr, &u->g, len, at, LW | RR, NULL);
    assert_int_equal(check(u, mr.key, at, len, 0), QHCA_SYN_NONE);
    assert_int_equal(check(u, mr.key, at + len - 1, 1, LW), QHCA_SYN_NONE);
    assert_int_equal(check(u, mr.key, at, 1, LW | RR), QHCA_SYN_NONE);
    /* another key byte, another index, no index */
    assert_int_equal(check(u, mr.key ^ 1, at, 1, 0), QHCA_SYN_KEY_INVALID);
    assert_int_equal(check(u, mr.key ^ 0x80, at, 1, 0),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(check(u, mr.key + 256, at, 1, 0), QHCA_SYN_KEY_INVALID);
    assert_int_equal(check(u, UINT32_MAX, at, 1, 0), QHCA_SYN_KEY_INVALID);
    assert_int_equal(check(u, mr.key & 0xff, at, 1, 0),
                     mr.key & 0xff ? QHCA_SYN_KEY_INVALID :
                                     QHCA_SYN_KEY_PRIVILEGE);
    /* bounds, also where sums overflow */
    assert_int_equal(check(u, mr.key, at - 1, 1, 0), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(u, mr.key, at - 1, 2, 0), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(u, mr.key, at + len, 1, 0), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(u, mr.key, at, len + 1, 0), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(u, mr.key, at + 1, UINT64_MAX, 0),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(u, mr.key, at + 8, -at, 0), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(u, mr.key, UINT64_MAX, 1, 0),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(u, mr.key, 0, 1, 0), QHCA_SYN_KEY_BOUNDS);
    /* access */
    assert_int_equal(check(u, mr.key, at, 1, RW), QHCA_SYN_KEY_ACCESS);
    assert_int_equal(check(u, mr.key, at, 1, RA), QHCA_SYN_KEY_ACCESS);
    assert_int_equal(check(u, mr.key, at, 1, LW | RW), QHCA_SYN_KEY_ACCESS);
    /* another protection domain */
    pd = guest_create(&u->g, QHCA_CMD_ALLOC_PD, NULL, 0);
    assert_int_equal(qhca_mr_check(u->e, pd, false, mr.key, at, 1, 0,
                                   2),
                     QHCA_SYN_KEY_PD);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_PD, pd), QHCA_ST_OK);
    /* no bytes, no check */
    assert_int_equal(check(u, 0xdeadbeef, 1, 0, RW), QHCA_SYN_NONE);
    /* a region that ends at the end of the address space */
    gmr_create(&top, &u->g, 4096, -4096ULL, 0, NULL);
    assert_int_equal(check(u, top.key, -4096ULL, 4096, 0), QHCA_SYN_NONE);
    assert_int_equal(check(u, top.key, -1ULL, 1, 0), QHCA_SYN_NONE);
    assert_int_equal(check(u, top.key, -1ULL, 2, 0), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(gmr_destroy(&top), QHCA_ST_OK);
    /* destroyed */
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(check(u, mr.key, at, 1, 0), QHCA_SYN_KEY_INVALID);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, mr.key),
                     QHCA_ST_BAD_OBJ);
}

static void reserved_key(void **state)
{
    struct unit *u = *state;
    uint64_t addr = gmem_alloc(u->m, 4096, 12, 0), v = 0;

    gmem_allow(u->m, addr, 8, GMEM_RW);
    memcpy(gmem_ptr(u->m, addr, 8), "qhca1234", 8);
    assert_int_equal(qhca_mr_read(u->e, u->g.pd, false, QHCA_LKEY_RESERVED,
                                  addr, &v, 8, 0, 2),
                     QHCA_SYN_KEY_PRIVILEGE);
    assert_int_equal(qhca_mr_read(u->e, u->g.pd, true, QHCA_LKEY_RESERVED,
                                  addr, &v, 8, 0, 2), QHCA_SYN_NONE);
    assert_memory_equal(&v, "qhca1234", 8);
    assert_int_equal(qhca_mr_check(u->e, 1, true, 0, -8ULL, 9, 0, 2),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(qhca_mr_read(u->e, 1, true, 0,
                                  gmem_unmapped(u->m, 8), &v, 8, 0, 2),
                     QHCA_SYN_DATA_DMA);
    gmem_release(u->m, addr, 4096);
}

/* Copies through every form, across pages and at all offsets. */
static void copies(void **state)
{
    struct unit *u = *state;
    static uint8_t buf[3 * 65536], got[3 * 65536];
    const uint64_t len = 40 * 4096;
    struct gbuf_shape shape;
    struct gmr mr;
    uint64_t off, n, iova;
    unsigned i, j;

    for (i = 0; i < 40; i++) {
        gbuf_shape_random(&shape, &u->g.rng, len);
        iova = rng_u64(&u->g.rng) >> rng_range(&u->g.rng, 1, 40);
        gmr_create(&mr, &u->g, len, iova, LW, &shape);
        gbuf_allow(&mr.buf, 0, len, GMEM_RW);
        for (j = 0; j < 50; j++) {
            off = rng_below(&u->g.rng, len);
            n = rng_log(&u->g.rng, len - off);
            pattern_bytes(i, off, buf, n);
            assert_int_equal(qhca_mr_write(u->e, u->g.pd, false, mr.key,
                                           iova + off, buf, n, LW, 2), 0);
            assert_int_equal(gbuf_verify(&mr.buf, off, i, off, n), n);
            assert_int_equal(qhca_mr_read(u->e, u->g.pd, false, mr.key,
                                          iova + off, got, n, 0, 2), 0);
            assert_memory_equal(buf, got, n);
        }
        assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    }
}

static uint8_t do_add(struct unit *u, uint32_t key, uint64_t at, uint64_t add,
                      uint64_t mask, uint64_t *old)
{
    struct qhca_atomic op = { .cmp_add = add, .mask = mask };

    return qhca_mr_atomic(u->e, u->g.pd, key, at, &op, old, 2);
}

static uint8_t do_swap(struct unit *u, uint32_t key, uint64_t at,
                       uint64_t cmp, uint64_t mask, uint64_t swap,
                       uint64_t swap_mask, uint64_t *old)
{
    struct qhca_atomic op = {
        .swap_op = true, .cmp_add = cmp, .mask = mask, .swap = swap,
        .swap_mask = swap_mask,
    };

    return qhca_mr_atomic(u->e, u->g.pd, key, at, &op, old, 2);
}

static void atomics(void **state)
{
    struct unit *u = *state;
    const uint64_t at = 0x10000, all = UINT64_MAX;
    uint64_t old = 0, v;
    struct gmr mr, no;

    gmr_create(&mr, &u->g, 4096, at, LW | RA, &gbuf_flat4k);
    gmr_create(&no, &u->g, 4096, at, LW | RW | RR, &gbuf_flat4k);
    gbuf_allow(&mr.buf, 0, 4096, GMEM_RW);
    v = 40;
    gbuf_write(&mr.buf, 8, &v, 8);
    assert_int_equal(do_add(u, mr.key, at + 8, 2, 0, &old), QHCA_SYN_NONE);
    assert_int_equal(old, 40);
    gbuf_read(&mr.buf, 8, &v, 8);
    assert_int_equal(v, 42);
    assert_int_equal(do_swap(u, mr.key, at + 8, 41, all, 7, all, &old),
                     QHCA_SYN_NONE);
    assert_int_equal(old, 42);          /* not equal: not swapped */
    gbuf_read(&mr.buf, 8, &v, 8);
    assert_int_equal(v, 42);
    assert_int_equal(do_swap(u, mr.key, at + 8, 42, all, 7, all, &old),
                     QHCA_SYN_NONE);
    gbuf_read(&mr.buf, 8, &v, 8);
    assert_int_equal(v, 7);
    assert_int_equal(do_add(u, mr.key, at + 4, 1, 0, &old),
                     QHCA_SYN_BAD_PACKET);
    assert_int_equal(do_add(u, no.key, at + 8, 1, 0, &old),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(do_add(u, mr.key, at + 4096, 1, 0, &old),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(do_add(u, 0, at, 1, 0, &old), QHCA_SYN_KEY_PRIVILEGE);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&no), QHCA_ST_OK);
}

static bool read_fails(void *opaque, uint64_t addr, void *buf, size_t len)
{
    (void)opaque;
    (void)addr;
    (void)buf;
    (void)len;
    return false;
}

static bool write_fails(void *opaque, uint64_t addr, const void *buf,
                        size_t len)
{
    (void)opaque;
    (void)addr;
    (void)buf;
    (void)len;
    return false;
}

static bool store_fails(void *opaque, uint64_t addr, uint64_t val)
{
    (void)opaque;
    (void)addr;
    (void)val;
    return false;
}

static bool cas_fails(void *opaque, uint64_t addr, uint64_t cmp, uint64_t swap,
                      uint64_t *old)
{
    (void)opaque;
    (void)addr;
    (void)cmp;
    (void)swap;
    *old = 0;
    return false;
}

static unsigned cas_tries;

/* Another CPU always changes the word first. */
static bool cas_loses(void *opaque, uint64_t addr, uint64_t cmp, uint64_t swap,
                      uint64_t *old)
{
    (void)opaque;
    (void)addr;
    (void)swap;
    cas_tries++;
    *old = cmp + 1;
    return true;
}

/* An access that must fail for the reason @syn, and count as an error. */
#define FAILS(call, syn) do {                                           \
        uint64_t was_ = unit_stat(u, QHCA_STAT_DMA_ERRORS);             \
                                                                        \
        assert_int_equal(call, syn);                                    \
        assert_int_equal(unit_stat(u, QHCA_STAT_DMA_ERRORS), was_ + 1); \
    } while (0)

/* Each access to the word may fail; the word remains. */
static void words_fail(void **state)
{
    struct unit *u = *state;
    const uint64_t at = 0x10000;
    const struct qhca_ops good = u->e->ops;
    uint64_t old, v = 40;
    uint8_t buf[8] = { 1, 2, 3 };
    struct gmr mr[2];
    unsigned dm;

    gmr_create(&mr[0], &u->g, 4096, at, LW | RW | RR | RA, &gbuf_direct);
    gmr_create_dm(&mr[1], &u->g, 4096, at, LW | RW | RR | RA);
    for (dm = 0; dm < 2; dm++) {
        uint32_t key = mr[dm].key;

        gbuf_allow(&mr[dm].buf, 0, 4096, GMEM_RW);
        gbuf_write(&mr[dm].buf, 0, &v, 8);
        u->e->ops.dma_read = u->e->ops.dm_read = read_fails;
        FAILS(qhca_mr_read(u->e, u->g.pd, false, key, at, buf, 8, RR, 2),
              QHCA_SYN_DATA_DMA);
        FAILS(do_add(u, key, at, 1, 0, &old), QHCA_SYN_DATA_DMA);
        u->e->ops = good;
        u->e->ops.dma_write = u->e->ops.dm_write = write_fails;
        FAILS(qhca_mr_write(u->e, u->g.pd, false, key, at, buf, 8, RW, 2),
              QHCA_SYN_DATA_DMA);
        u->e->ops = good;
        u->e->ops.dma_cas64 = u->e->ops.dm_cas64 = cas_fails;
        u->e->ops.dma_store64 = store_fails;
        FAILS(do_add(u, key, at, 1, 0, &old), QHCA_SYN_DATA_DMA);
        FAILS(do_swap(u, key, at, 40, UINT64_MAX, 7, UINT64_MAX, &old),
              QHCA_SYN_DATA_DMA);
        FAILS(qhca_mr_store64(u->e, u->g.pd, key, at, buf, 2),
              QHCA_SYN_DATA_DMA);
        /* it does not try forever */
        u->e->ops.dma_cas64 = u->e->ops.dm_cas64 = cas_loses;
        cas_tries = 0;
        FAILS(do_add(u, key, at, 1, 0, &old), QHCA_SYN_DATA_DMA);
        assert_in_range(cas_tries, 2, 10000);
        if (dm) {
            cas_tries = 0;
            FAILS(qhca_mr_store64(u->e, u->g.pd, key, at, buf, 2),
                  QHCA_SYN_DATA_DMA);
            assert_in_range(cas_tries, 2, 10000);
        }
        u->e->ops = good;
        v = 0;
        gbuf_read(&mr[dm].buf, 0, &v, 8);
        assert_int_equal(v, 40);
        assert_int_equal(do_add(u, key, at, 1, 0, &old), QHCA_SYN_NONE);
        assert_int_equal(gmr_destroy(&mr[dm]), QHCA_ST_OK);
    }
}

/* An injected fault of the word's memory. */
static void word_faulty(void **state)
{
    struct unit *u = *state;
    struct gmr mr;
    uint64_t old, v;

    gmr_create(&mr, &u->g, 4096, 0, LW | RW | RA, &gbuf_flat4k);
    gbuf_allow(&mr.buf, 0, 4096, GMEM_RW);
    rule_add(u->e, RULE(DMA_ERROR, .fields = QHCA_FLT_KIND,
                        .kind = QHCA_DMA_DATA));
    FAILS(do_add(u, mr.key, 8, 1, 0, &old), QHCA_SYN_DATA_DMA);
    FAILS(do_swap(u, mr.key, 8, 0, UINT64_MAX, 7, UINT64_MAX, &old),
          QHCA_SYN_DATA_DMA);
    qhca_fault_remove(u->e, 0);
    gbuf_read(&mr.buf, 8, &v, 8);
    assert_int_equal(v, 0);
    assert_int_equal(do_add(u, mr.key, 8, 1, 0, &old), QHCA_SYN_NONE);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
}

/* An aligned address whose memory is not, since the region begins anywhere. */
static void word_misaligned(void **state)
{
    struct unit *u = *state;
    uint64_t addr = gmem_alloc(u->m, 4096, 12, 0), old;
    struct qhca_mpt c = {
        .buf = { .addr = addr + 4, .len = 64 }, .len = 64, .pd = u->g.pd,
        .access = LW | RW | RA,
    };
    uint32_t key = guest_create(&u->g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
    const uint8_t buf[8] = { 1 };

    FAILS(do_add(u, key, 8, 1, 0, &old), QHCA_SYN_DATA_DMA);
    FAILS(qhca_mr_store64(u->e, u->g.pd, key, 8, buf, 2), QHCA_SYN_DATA_DMA);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, key),
                     QHCA_ST_OK);
    gmem_release(u->m, addr, 4096);
}

/* Work requests write where CPUs read it, and nowhere else. */
static void device_memory(void **state)
{
    struct unit *u = *state;
    const uint64_t at = 0x10000;
    uint64_t old = 0, v = 40;
    uint8_t buf[5000], got[5000];
    struct qhca_mpt out;
    struct gmr mr;

    assert_int_equal(u->g.caps.dm_size, GMEM_SPAN);
    assert_true(u->g.caps.features & QHCA_FEAT_DM);
    gmr_create_dm(&mr, &u->g, 8192, at, LW | RW | RR | RA);
    gbuf_allow(&mr.buf, 0, 8192, GMEM_RW);
    pattern_bytes(1, 0, buf, sizeof(buf));
    assert_int_equal(qhca_mr_write(u->e, u->g.pd, false, mr.key, at + 3,
                                   buf, sizeof(buf), RW, 2), 0);
    assert_int_equal(gbuf_verify(&mr.buf, 3, 1, 0, sizeof(buf)),
                     sizeof(buf));
    assert_int_equal(qhca_mr_read(u->e, u->g.pd, false, mr.key, at + 3, got,
                                  sizeof(got), RR, 2), 0);
    assert_memory_equal(buf, got, sizeof(buf));
    gbuf_write(&mr.buf, 8, &v, 8);
    assert_int_equal(do_add(u, mr.key, at + 8, 2, 0, &old), QHCA_SYN_NONE);
    assert_int_equal(old, 40);
    assert_int_equal(do_swap(u, mr.key, at + 8, 42, UINT64_MAX, 7,
                             UINT64_MAX, &old), QHCA_SYN_NONE);
    assert_int_equal(old, 42);
    gbuf_read(&mr.buf, 8, &v, 8);
    assert_int_equal(v, 7);
    assert_int_equal(qhca_mr_store64(u->e, u->g.pd, mr.key, at + 16, buf, 2),
                     QHCA_SYN_NONE);
    gbuf_read(&mr.buf, 16, got, 8);
    assert_memory_equal(got, buf, 8);
    assert_int_equal(check(u, mr.key, at, 8193, RR), QHCA_SYN_KEY_BOUNDS);
    guest_query(&u->g, QHCA_CMD_QUERY_MR, mr.key, &out, sizeof(out));
    assert_int_equal(out.flags, QHCA_MR_F_DM);
    assert_int_equal(out.buf.addr, mr.buf.d.addr ^ GMEM_SPAN / 2);
    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd, mr.key, 2),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(check(u, mr.key, at, 1, RR), QHCA_SYN_KEY_INVALID);
}

static void device_memory_bounds(void **state)
{
    struct unit *u = *state;
    const struct {
        uint64_t addr, len;
        uint32_t first;
        uint8_t form, want;
    } t[] = {
        { GMEM_SPAN - 4096, 4096, 0, QHCA_BUF_DIRECT, QHCA_ST_OK },
        { GMEM_SPAN - 4096, 4095, 1, QHCA_BUF_DIRECT, QHCA_ST_OK },
        { 1, 1, 0, QHCA_BUF_DIRECT, QHCA_ST_OK },
        { 1, 0, 0, QHCA_BUF_DIRECT, QHCA_ST_OK },
        { GMEM_SPAN - 4096, 4096, 1, QHCA_BUF_DIRECT, QHCA_ST_BAD_TABLE },
        { GMEM_SPAN - 4096, 4097, 0, QHCA_BUF_DIRECT, QHCA_ST_BAD_TABLE },
        { GMEM_SPAN, 1, 0, QHCA_BUF_DIRECT, QHCA_ST_BAD_TABLE },
        { 0, GMEM_SPAN + 1, 0, QHCA_BUF_DIRECT, QHCA_ST_BAD_TABLE },
        { -4096ULL, 4096, 0, QHCA_BUF_DIRECT, QHCA_ST_BAD_TABLE },
        { 0, 4096, UINT32_MAX, QHCA_BUF_LIST, QHCA_ST_BAD_TABLE },
        { 0, 4096, 0, QHCA_BUF_FLAT, QHCA_ST_BAD_TABLE },
        { 0, 4096, 0, QHCA_BUF_TREE, QHCA_ST_BAD_TABLE },
    };
    unsigned i;

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct qhca_mpt c = {
            .buf = { .addr = t[i].addr, .len = t[i].len, .form = t[i].form,
                     .first = t[i].first },
            .len = t[i].len, .pd = u->g.pd, .flags = QHCA_MR_F_DM,
        };
        struct gcmd cmd = {
            .op = QHCA_CMD_CREATE_MR, .in = &c, .in_len = sizeof(c),
        };

        if (t[i].form == QHCA_BUF_FLAT) {       /* valid except for the form */
            c.buf.hops = 1;
            c.buf.page_shift = 12;
            c.buf.entries = 1;
        } else if (t[i].form == QHCA_BUF_TREE) {
            c.buf.hops = 1;
            c.buf.page_shift = c.buf.table_shift = 12;
        }
        assert_int_equal(guest_cmd(&u->g, &cmd), t[i].want);
        if (t[i].want == QHCA_ST_OK) {
            assert_int_equal(check(u, cmd.robj, 0, t[i].len, 0),
                             QHCA_SYN_NONE);
            assert_int_equal(check(u, cmd.robj, 0, t[i].len + 1, 0),
                             QHCA_SYN_KEY_BOUNDS);
            assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR,
                                          cmd.robj), QHCA_ST_OK);
        }
    }
}

/* Add field by field, in a slow and simple way. */
static uint64_t add_fields(uint64_t a, uint64_t b, uint64_t tops)
{
    uint64_t sum = 0;
    unsigned i, carry = 0;

    for (i = 0; i < 64; i++) {
        unsigned bits = (a >> i & 1) + (b >> i & 1) + carry;

        sum |= (uint64_t)(bits & 1) << i;
        carry = tops >> i & 1 ? 0 : bits >> 1;
    }
    return sum;
}

static void masked_atomics(void **state)
{
    struct unit *u = *state;
    uint64_t old, v, was, cmp, mask, swap, swap_mask;
    struct gmr mr;
    unsigned i;

    gmr_create(&mr, &u->g, 4096, 0, LW | RA, &gbuf_flat4k);
    gbuf_allow(&mr.buf, 0, 4096, GMEM_RW);
    v = 0x00ff00ff00ff00ffULL;
    gbuf_write(&mr.buf, 0, &v, 8);
    /* four fields of 16 bits, and one of 8 in each that is full */
    assert_int_equal(do_add(u, mr.key, 0, 0x0001000100010001ULL,
                            0x8080808080808080ULL, &old), QHCA_SYN_NONE);
    assert_true(old == 0x00ff00ff00ff00ffULL);
    gbuf_read(&mr.buf, 0, &v, 8);
    assert_true(v == 0);
    for (i = 0; i < 500; i++) {
        was = rng_u64(&u->g.rng);
        cmp = rng_u64(&u->g.rng);
        mask = rng_u64(&u->g.rng) & rng_u64(&u->g.rng);
        swap = rng_u64(&u->g.rng);
        swap_mask = rng_u64(&u->g.rng);
        gbuf_write(&mr.buf, 0, &was, 8);
        assert_int_equal(do_add(u, mr.key, 0, cmp, mask, &old), 0);
        assert_true(old == was);
        gbuf_read(&mr.buf, 0, &v, 8);
        assert_true(v == add_fields(was, cmp, mask));

        if (i & 1) {            /* equal in the bits that count */
            cmp = (cmp & ~mask) | (was & mask);
        }
        gbuf_write(&mr.buf, 0, &was, 8);
        assert_int_equal(do_swap(u, mr.key, 0, cmp, mask, swap, swap_mask,
                                 &old), 0);
        assert_true(old == was);
        gbuf_read(&mr.buf, 0, &v, 8);
        assert_true(v == ((cmp ^ was) & mask ? was :
                          (was & ~swap_mask) | (swap & swap_mask)));
    }
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
}

static void store_and_flush(void **state)
{
    enum { FG = QHCA_ACCESS_FLUSH_GLOBAL, FP = QHCA_ACCESS_FLUSH_PERSISTENT };
    static const uint8_t word[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    struct unit *u = *state;
    const uint64_t at = 0x20000;
    struct gmr mr, fl;
    uint8_t got[8];
    struct {
        uint32_t key, len, access;
        uint64_t addr;
        bool whole;
        uint8_t want;
    } f[12];
    unsigned i, n = 0;

    gmr_create(&mr, &u->g, 4096, at, LW | RW, &gbuf_flat4k);
    gmr_create(&fl, &u->g, 4096, at, FG, &gbuf_flat4k);
    gbuf_allow(&mr.buf, 16, 8, GMEM_RW);
    assert_int_equal(qhca_mr_store64(u->e, u->g.pd, mr.key, at + 16, word, 2),
                     QHCA_SYN_NONE);
    gbuf_read(&mr.buf, 16, got, 8);
    assert_memory_equal(got, word, 8);
    assert_int_equal(qhca_mr_store64(u->e, u->g.pd, mr.key, at + 12, word, 2),
                     QHCA_SYN_BAD_PACKET);
    assert_int_equal(qhca_mr_store64(u->e, u->g.pd, mr.key, at + 4096, word,
                                     2), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(qhca_mr_store64(u->e, u->g.pd, fl.key, at, word, 2),
                     QHCA_SYN_KEY_ACCESS);
#define CASE(k, a, l, w, acc, r) \
    f[n].key = (k), f[n].addr = (a), f[n].len = (l), f[n].whole = (w), \
    f[n].access = (acc), f[n].want = (r), n++
    CASE(fl.key, at, 4096, false, FG, QHCA_SYN_NONE);
    CASE(fl.key, at + 4096, 0, false, FG, QHCA_SYN_NONE);
    CASE(fl.key, at, 4097, false, FG, QHCA_SYN_KEY_BOUNDS);
    CASE(fl.key, at - 1, 0, false, FG, QHCA_SYN_KEY_BOUNDS);
    CASE(fl.key, 0, 4097, true, FG, QHCA_SYN_NONE);
    CASE(fl.key, at, 8, false, FP, QHCA_SYN_KEY_ACCESS);
    CASE(fl.key, 0, 0, true, FG | FP, QHCA_SYN_KEY_ACCESS);
    CASE(mr.key, at, 8, false, FG, QHCA_SYN_KEY_ACCESS);
    /* unlike a READ or WRITE of nothing, it needs a key */
    CASE(fl.key ^ 1, at, 0, false, FG, QHCA_SYN_KEY_INVALID);
    CASE(fl.key ^ 1, at, 0, true, FG, QHCA_SYN_KEY_INVALID);
    CASE(0, at, 0, true, FG, QHCA_SYN_KEY_PRIVILEGE);
#undef CASE
    for (i = 0; i < n; i++) {
        assert_int_equal(qhca_mr_flush(u->e, u->g.pd, f[i].key, f[i].addr,
                                       f[i].len, f[i].whole, f[i].access, 2),
                         f[i].want);
    }
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&fl), QHCA_ST_OK);
}

static struct qhca_sq_wqe reg_wqe(uint32_t key, uint64_t table,
                                  uint64_t iova, uint64_t len,
                                  uint32_t access, uint32_t shift,
                                  uint32_t pages)
{
    struct qhca_sq_wqe w = {
        .ctrl = { .opcode = QHCA_WQE_REG_MR, .arg0 = iova, .arg1 = len },
        .remote = { .addr = table, .rkey = key,
                    .arg = access | shift << 8 | pages << 16 },
    };

    return w;
}

static void fast_reg(void **state)
{
    struct unit *u = *state;
    struct qhca_mpt c = {
        .flags = QHCA_MR_F_FAST_REG, .max_entries = 16, .pd = u->g.pd,
        .key = 5,
    }, out;
    const uint64_t iova = 0x50000123;
    struct qhca_sq_wqe w;
    struct gbuf b;
    uint32_t key;
    uint8_t byte = 0x5a;

    gbuf_make(&b, u->m, 3 * 4096, &gbuf_flat4k, false, iova & 4095,
              &u->g.rng);
    gbuf_allow(&b, 0, b.len, GMEM_RW);
    key = guest_create(&u->g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
    assert_int_equal(key & 0xff, 5);
    /* free: no access, and nothing to invalidate */
    assert_int_equal(check(u, key, iova, 1, 0), QHCA_SYN_KEY_INVALID);
    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd, key, 2), QHCA_SYN_NONE);

    w = reg_wqe(key, b.d.addr, iova, b.len, LW | RR, 12, b.d.entries);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd + 1, &w),
                     QHCA_SYN_KEY_PD);
    w = reg_wqe(key, b.d.addr, iova, b.len, LW | RR, 12, 17);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_KEY_BOUNDS);
    w = reg_wqe(key, b.d.addr, iova, b.len, LW | RR, 12, 2);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_TABLE_INVALID);
    w = reg_wqe(key, b.d.addr, iova, b.len, LW | RR, 200, 4);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_TABLE_INVALID);
    w = reg_wqe(key, b.d.addr, -4096ULL, 4097, LW | RR, 12, 4);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_KEY_BOUNDS);
    /* access: no such bit; remote write and atomics without local write */
    w = reg_wqe(key, b.d.addr, iova, b.len, 0x20, 12, 4);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_KEY_ACCESS);
    w = reg_wqe(key, b.d.addr, iova, b.len, RW, 12, 4);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_KEY_ACCESS);
    w = reg_wqe(key, b.d.addr, iova, b.len, RA | RR, 12, 4);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_KEY_ACCESS);
    w = reg_wqe(key, b.d.addr, iova, 0, LW, 12, 4);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(u, key, iova, 1, 0), QHCA_SYN_KEY_INVALID);

    /* the key byte changes with the registration */
    key = (key & ~0xffu) | 6;
    w = reg_wqe(key, b.d.addr, iova, b.len, LW | RR, 12, b.d.entries);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w), QHCA_SYN_NONE);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_KEY_INVALID);    /* not free any more */
    assert_int_equal(check(u, key, iova, b.len, RR), QHCA_SYN_NONE);
    assert_int_equal(check(u, key, iova, b.len + 1, RR),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(u, key - 1, iova, 1, 0), QHCA_SYN_KEY_INVALID);
    assert_int_equal(qhca_mr_write(u->e, u->g.pd, false, key,
                                   iova + b.len - 1, &byte, 1, LW, 2), 0);
    byte = 0;
    gbuf_read(&b, b.len - 1, &byte, 1);
    assert_int_equal(byte, 0x5a);
    guest_query(&u->g, QHCA_CMD_QUERY_MR, key, &out, sizeof(out));
    assert_int_equal(out.state, QHCA_MR_VALID);
    assert_int_equal(out.iova, iova);

    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd + 1, key, 2),
                     QHCA_SYN_KEY_PD);
    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd, key ^ 1, 2),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd, key, 2), QHCA_SYN_NONE);
    assert_int_equal(check(u, key, iova, 1, 0), QHCA_SYN_KEY_INVALID);
    /* software may know a newer key byte than the device */
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, key + 1),
                     QHCA_ST_OK);
    gbuf_free(&b);
}

static void ordinary_is_not_invalidated(void **state)
{
    struct unit *u = *state;
    struct gmr mr;

    gmr_create(&mr, &u->g, 4096, 0, RR, NULL);
    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd, mr.key, 2),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(check(u, mr.key, 0, 4096, RR), QHCA_SYN_NONE);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
}

static void phys(void **state)
{
    struct unit *u = *state;
    struct qhca_mpt c = {
        .flags = QHCA_MR_F_PHYS, .pd = u->g.pd, .key = 9, .access = LW,
    };
    uint64_t addr = gmem_alloc(u->m, 4096, 12, 0);
    uint32_t key;

    gmem_allow(u->m, addr, 4, GMEM_RW);
    key = guest_create(&u->g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
    assert_int_equal(qhca_mr_write(u->e, u->g.pd, false, key, addr, "abcd",
                                   4, LW, 2), QHCA_SYN_NONE);
    assert_memory_equal(gmem_ptr(u->m, addr, 4), "abcd", 4);
    assert_int_equal(check(u, key, addr, 4, RR), QHCA_SYN_KEY_ACCESS);
    assert_int_equal(check(u, key, -4ULL, 8, 0), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, key),
                     QHCA_ST_OK);
    c.iova = 1;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_MR, 0, 0, &c, sizeof(c),
                              NULL), QHCA_ST_BAD_PARAM);
    gmem_release(u->m, addr, 4096);
}

static void bad_contexts(void **state)
{
    struct unit *u = *state;
    struct qhca_mpt ok = {
        .buf = { .addr = 0x1000, .len = 8192 }, .len = 8192, .iova = 0x4000,
        .pd = u->g.pd,
    }, c;
    uint64_t at;

#define REFUSED(set, want, field) do {                                  \
        c = ok;                                                         \
        set;                                                            \
        assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_MR, 0, 0, &c,      \
                                  sizeof(c), &at), want);               \
        assert_int_equal(at, offsetof(struct qhca_mpt, field));         \
    } while (0)
    REFUSED(c.access = 0x20, QHCA_ST_BAD_PARAM, access);
    REFUSED(c.access = RW | RR, QHCA_ST_BAD_PARAM, access);
    REFUSED(c.access = RA, QHCA_ST_BAD_PARAM, access);
    REFUSED(c.flags = 4, QHCA_ST_BAD_PARAM, flags);
    REFUSED(c.flags = 3, QHCA_ST_BAD_PARAM, flags);
    REFUSED(c.flags = QHCA_MR_F_DM | QHCA_MR_F_PHYS, QHCA_ST_BAD_PARAM,
            flags);
    REFUSED(c.pd = 0, QHCA_ST_BAD_OBJ, pd);
    REFUSED(c.pd = UINT32_MAX, QHCA_ST_BAD_OBJ, pd);
    REFUSED(c.len = 8191, QHCA_ST_BAD_PARAM, len);
    REFUSED(c.len = c.buf.len = 0, QHCA_ST_BAD_PARAM, len);
    REFUSED(c.len = c.buf.len = u->g.caps.max_mr_size + 1,
            QHCA_ST_BAD_PARAM, len);
    REFUSED(c.iova = -8191ULL, QHCA_ST_BAD_PARAM, iova);
    REFUSED(c.buf.form = 9, QHCA_ST_BAD_TABLE, buf);
    REFUSED(c.flags = QHCA_MR_F_FAST_REG, QHCA_ST_BAD_PARAM, max_entries);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_PD, u->g.pd),
                     QHCA_ST_OK);       /* nothing was left over */
    u->g.pd = guest_create(&u->g, QHCA_CMD_ALLOC_PD, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(keys_and_bounds),
        UNIT(reserved_key),
        UNIT(copies),
        UNIT(atomics),
        UNIT(words_fail),
        UNIT(word_faulty),
        UNIT(word_misaligned),
        UNIT(device_memory),
        UNIT(device_memory_bounds),
        UNIT(masked_atomics),
        UNIT(store_and_flush),
        UNIT(fast_reg),
        UNIT(ordinary_is_not_invalidated),
        UNIT(phys),
        UNIT(bad_contexts),
    };

    return cmocka_run_group_tests_name("mr", tests, NULL, NULL);
}
