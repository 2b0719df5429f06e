/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory regions: who may access what through which key. */
#include "unit.h"

#define LW QHCA_ACCESS_LOCAL_WRITE
#define RW QHCA_ACCESS_REMOTE_WRITE
#define RR QHCA_ACCESS_REMOTE_READ
#define RA QHCA_ACCESS_REMOTE_ATOMIC

static uint8_t check(struct unit *u, uint32_t key, uint64_t addr,
                     uint64_t len, uint32_t access)
{
    return qhca_mr_check(u->e, u->g.pd, false, key, addr, len, access);
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
    assert_int_equal(qhca_mr_check(u->e, pd, false, mr.key, at, 1, 0),
                     QHCA_SYN_KEY_PD);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_PD, pd), QHCA_ST_OK);
    /* no bytes, no check */
    assert_int_equal(check(u, 0xdeadbeef, 1, 0, RW), QHCA_SYN_NONE);
    /* the region that ends where addresses end */
    gmr_create(&top, &u->g, 4096, -4096ULL, 0, NULL);
    assert_int_equal(check(u, top.key, -4096ULL, 4096, 0), QHCA_SYN_NONE);
    assert_int_equal(check(u, top.key, -1ULL, 1, 0), QHCA_SYN_NONE);
    assert_int_equal(check(u, top.key, -1ULL, 2, 0), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(gmr_destroy(&top), QHCA_ST_OK);
    /* gone is gone */
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
    assert_int_equal(qhca_mr_check(u->e, 1, true, 0, -8ULL, 9, 0),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(qhca_mr_read(u->e, 1, true, 0,
                                  gmem_unmapped(u->m, 8), &v, 8, 0, 2),
                     QHCA_SYN_DATA_DMA);
    gmem_release(u->m, addr, 4096);
}

/* Copies through every form, over pages and with all offsets. */
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

static void atomics(void **state)
{
    struct unit *u = *state;
    const uint64_t at = 0x10000;
    uint64_t old = 0, v;
    struct gmr mr, no;

    gmr_create(&mr, &u->g, 4096, at, LW | RA, &gbuf_flat4k);
    gmr_create(&no, &u->g, 4096, at, LW | RW | RR, &gbuf_flat4k);
    gbuf_allow(&mr.buf, 0, 4096, GMEM_RW);
    v = 40;
    gbuf_write(&mr.buf, 8, &v, 8);
    assert_int_equal(qhca_mr_atomic(u->e, u->g.pd, mr.key, at + 8, false, 2,
                                    0, &old, 2), QHCA_SYN_NONE);
    assert_int_equal(old, 40);
    gbuf_read(&mr.buf, 8, &v, 8);
    assert_int_equal(v, 42);
    assert_int_equal(qhca_mr_atomic(u->e, u->g.pd, mr.key, at + 8, true, 41,
                                    7, &old, 2), QHCA_SYN_NONE);
    assert_int_equal(old, 42);          /* not equal: not swapped */
    gbuf_read(&mr.buf, 8, &v, 8);
    assert_int_equal(v, 42);
    assert_int_equal(qhca_mr_atomic(u->e, u->g.pd, mr.key, at + 8, true, 42,
                                    7, &old, 2), QHCA_SYN_NONE);
    gbuf_read(&mr.buf, 8, &v, 8);
    assert_int_equal(v, 7);
    assert_int_equal(qhca_mr_atomic(u->e, u->g.pd, mr.key, at + 4, false, 1,
                                    0, &old, 2), QHCA_SYN_BAD_PACKET);
    assert_int_equal(qhca_mr_atomic(u->e, u->g.pd, no.key, at + 8, false, 1,
                                    0, &old, 2), QHCA_SYN_KEY_ACCESS);
    assert_int_equal(qhca_mr_atomic(u->e, u->g.pd, mr.key, at + 4096, false,
                                    1, 0, &old, 2), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(qhca_mr_atomic(u->e, u->g.pd, 0, at, false, 1, 0, &old,
                                    2), QHCA_SYN_KEY_PRIVILEGE);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&no), QHCA_ST_OK);
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
    /* free: no access, and nothing to invalidate away */
    assert_int_equal(check(u, key, iova, 1, 0), QHCA_SYN_KEY_INVALID);
    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd, key), QHCA_SYN_NONE);

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
    w = reg_wqe(key, b.d.addr, iova, b.len, 0x10, 12, 4);
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &w),
                     QHCA_SYN_KEY_BOUNDS);
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

    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd + 1, key),
                     QHCA_SYN_KEY_PD);
    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd, key ^ 1),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd, key), QHCA_SYN_NONE);
    assert_int_equal(check(u, key, iova, 1, 0), QHCA_SYN_KEY_INVALID);
    /* software may know a later key byte than the device */
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, key + 1),
                     QHCA_ST_OK);
    gbuf_free(&b);
}

static void ordinary_is_not_invalidated(void **state)
{
    struct unit *u = *state;
    struct gmr mr;

    gmr_create(&mr, &u->g, 4096, 0, RR, NULL);
    assert_int_equal(qhca_mr_invalidate(u->e, u->g.pd, mr.key),
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
    REFUSED(c.access = 0x10, QHCA_ST_BAD_PARAM, access);
    REFUSED(c.flags = 4, QHCA_ST_BAD_PARAM, flags);
    REFUSED(c.flags = 3, QHCA_ST_BAD_PARAM, flags);
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
                     QHCA_ST_OK);       /* nothing was left behind */
    u->g.pd = guest_create(&u->g, QHCA_CMD_ALLOC_PD, NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(keys_and_bounds),
        UNIT(reserved_key),
        UNIT(copies),
        UNIT(atomics),
        UNIT(fast_reg),
        UNIT(ordinary_is_not_invalidated),
        UNIT(phys),
        UNIT(bad_contexts),
    };

    return cmocka_run_group_tests_name("mr", tests, NULL, NULL);
}
