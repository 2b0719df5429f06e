/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links at their limits: memory that cannot be named, records that name
 * too much, too many links, and a link that is cut while it is received from.
 */
#include "memlinkfix.h"

#define LEN 40000u
#define OTHER 500000u            /* elsewhere in the regions */

static bool not_shared(void *opaque, uint64_t addr, size_t len,
                       uint32_t *region, uint64_t *off)
{
    (void)opaque;
    (void)addr;
    (void)len;
    (void)region;
    (void)off;
    return false;
}

/* Memory that peers cannot read is copied instead. */
static void not_in_reach(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);

    (void)state;
    fix_go_up(f);
    f->s[0].e->ops.dma_share = not_shared;
    f->s[0].read = 0;
    fix_write(f, 0, 1, 0, LEN);
    fix_run(f, 1 * MS);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    fix_has(f, 1, 0, 0, LEN);
    assert_int_equal(f->s[0].read, LEN);
    /* responses, too */
    fix_spoil(f, 1, 0, LEN);
    gbuf_fill(&f->s[1].mr.buf, 0, 2, 0, BUF);
    f->s[1].e->ops.dma_share = not_shared;
    f->s[1].read = 0;
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 2 },
             0, LEN);
    fix_run(f, 1 * MS);
    fix_cqe(f, 0, 2, QHCA_WC_SUCCESS);
    fix_has(f, 0, 1, 0, LEN);
    assert_int_equal(f->s[1].read, LEN);
    assert_int_equal(f->w.cuts, 0);
    fix_free(f);
}

/* All of it is shared. */
static bool shared(void *opaque, uint64_t addr, size_t len, uint32_t *region,
                   uint64_t *off)
{
    (void)opaque;
    (void)len;
    *region = 0;
    *off = addr;
    return true;
}

/* A record names a limited number of pieces, and of regions and windows. */
static void too_much(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct qhca *e = f->s[0].e;
    struct qhca_memlink *l = fix_link(f, 0, 1);
    const struct qhca_memlink_refs *r = &e->ml->out;
    const struct qhca_ops ops = e->ops;
    uint32_t i;

    (void)state;
    e->ops.dma_share = shared;
    assert_true(qhca_memlink_refs_begin(e, l, 5, true));
    for (i = 0; i < QHCA_MEMLINK_SEGS; i++) {
        qhca_memlink_refs_add(e, i * 100, 10);
        /* what follows directly is the same piece */
        qhca_memlink_refs_add(e, i * 100 + 10, 10);
        assert_false(r->unfit);
        assert_int_equal(r->segs, i + 1);
        assert_int_equal(r->seg[i].off, i * 100);
        assert_int_equal(r->seg[i].len, 20);
    }
    qhca_memlink_refs_add(e, i * 100, 10);
    assert_true(r->unfit);
    assert_int_equal(r->segs, QHCA_MEMLINK_SEGS);
    qhca_memlink_refs_add(e, 0, 10);
    assert_true(r->unfit);

    assert_true(qhca_memlink_refs_begin(e, l, 5, true));
    for (i = 0; i < QHCA_MEMLINK_KEYS; i++) {
        qhca_memlink_refs_key(e, 100 + i);
        qhca_memlink_refs_key(e, 100);
        assert_false(r->unfit);
        assert_int_equal(r->keys, i + 1);
    }
    qhca_memlink_refs_key(e, 99);
    assert_true(r->unfit);
    assert_int_equal(r->keys, QHCA_MEMLINK_KEYS);
    e->ops = ops;
    fix_go_up(f);
    fix_free(f);
}

/* An adapter has 64 links; a host without bells or memory has none. */
static void too_many(void **state)
{
    static _Alignas(4096) uint8_t ring[2][QHCA_MEMLINK_RING_BYTES];
    struct qhca_memlink_region region = { .base = ring[0], .len = 4096 };
    struct qhca_memlink_config c = { .tx = (void *)ring[0],
                                     .rx = (void *)ring[1],
                                     .region = &region, .regions = 1 };
    struct fix *f = fix_new(QHCA_QPT_RC, false);
    struct qhca *e = f->s[0].e;
    const struct qhca_ops ops = e->ops;
    unsigned id[100], n;

    (void)state;
    e->ops.memlink_bell = NULL;
    assert_int_equal(qhca_memlink_attach(e, &c), 0);
    e->ops = ops;
    e->ops.dma_share = NULL;
    assert_int_equal(qhca_memlink_attach(e, &c), 0);
    e->ops = ops;
    for (n = 0; n < 100; n++) {
        c.mac[5] = (uint8_t)n;
        id[n] = qhca_memlink_attach(e, &c);
        if (!id[n]) {
            break;
        }
    }
    assert_int_equal(n, 64);
    qhca_memlink_detach(e, id[7]);
    id[7] = qhca_memlink_attach(e, &c);
    assert_int_not_equal(id[7], 0);
    while (n--) {
        qhca_memlink_detach(e, id[n]);
    }
    fix_free(f);
}

static unsigned cuts;

static void count_cut(void *opaque, unsigned id, const char *why)
{
    (void)opaque;
    (void)id;
    assert_non_null(why);
    cuts++;
}

/*
 * Two messages wait.  The first takes memory back that the peer is reading and
 * does not stop to read, so the link ends: the second is not received from it.
 */
static void cut_meanwhile(void **state)
{
    struct late t = { .f = fix_new(QHCA_QPT_RC, true), .from = 1 };
    struct fix *f = t.f;
    struct qhca_mpt m = { .pd = f->s[1].g.pd, .flags = QHCA_MR_F_MW2 };
    uint32_t mw = guest_create(&f->s[1].g, QHCA_CMD_CREATE_MW, &m, sizeof(m));
    struct gwr bind = {
        .opcode = QHCA_WQE_BIND_MW, .wr_id = 5, .arg0 = IOVA, .arg1 = BUF,
        .remote_addr = f->s[1].mr.key, .rkey = mw + 1,
        .rarg = QHCA_ACCESS_REMOTE_READ,
    };
    struct qhca_memlink *l;
    uint8_t b[64];

    (void)state;
    fix_go_up(f);
    fix_post(f, 1, bind, 0, 0);
    fix_run(f, 10 * US);
    fix_cqe(f, 1, 5, QHCA_WC_SUCCESS);
    fix_recv(f, 1, 6, OTHER + 4096, 64);
    fix_doze(f, 0, 1);
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                                 .remote_addr = IOVA, .rkey = mw + 1 },
             0, LATE_LEN);
    late_sent(&t);
    t.rec->state = QHCA_SHRING_COPYING;
    fix_spoil(f, 1, OTHER, 64);
    fix_doze(f, 1, 0);
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_SEND_INV, .wr_id = 7,
                                 .imm = mw + 1 }, OTHER, 8);
    fix_write(f, 0, 8, OTHER, 64);
    fix_run(f, 10 * US);
    l = fix_link(f, 1, 0);
    f->s[1].e->ops.memlink_cut = count_cut;
    cuts = 0;
    fix_look(f, 1, 0);
    assert_int_equal(cuts, 1);
    assert_true(l->dead);
    fix_cqe(f, 1, 6, QHCA_WC_SUCCESS);
    assert_int_equal(f->cqe.flags & QHCA_CQE_F_INV, QHCA_CQE_F_INV);
    gbuf_read(&f->s[1].mr.buf, OTHER, b, sizeof(b));
    assert_int_equal(b[0], GARBAGE);
    assert_int_equal(b[63], GARBAGE);
    fix_drop(f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(not_in_reach), cmocka_unit_test(too_much),
        cmocka_unit_test(too_many), cmocka_unit_test(cut_meanwhile),
    };

    return cmocka_run_group_tests_name("memlink_limits", tests, NULL, NULL);
}
