/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ring of tag operations of a TM SRQ: long batches, doorbells out of order,
 * memory that is not there, a full CQ.
 */
#include "unit.h"

#define OPS_SHIFT 6
#define OPS (1u << OPS_SHIFT)
#define STRIDE_SHIFT 7
#define PER_PAGE (4096u >> STRIDE_SHIFT)

struct ops {
    struct unit *u;
    struct gcq cq;
    struct gsrq srq;
};

static struct qhca_eqe last;    /* the last event of an SRQ */

static void on_async(struct guest *g, const struct qhca_eqe *eqe)
{
    (void)g;
    if (eqe->type == QHCA_EV_SRQ_ERR) {
        last = *eqe;
    }
}

static void make(struct unit *u, struct ops *o)
{
    struct gtm_init ti = {
        .cq = &o->cq, .max_tags = OPS, .ops_shift = OPS_SHIFT,
        .ops_stride = STRIDE_SHIFT, .ops = &gbuf_flat4k,
    };

    memset(o, 0, sizeof(*o));
    memset(&last, 0, sizeof(last));
    o->u = u;
    u->g.on_async = on_async;
    gcq_create(&o->cq, &u->g, 2, NULL, 1);
    gsrq_create_tm(&o->srq, &u->g, 3, 6, NULL, NULL, &ti);
}

static void unmake(struct ops *o)
{
    o->u->m->fail_64k = 0;
    o->u->m->may_fail = NULL;
    assert_int_equal(gsrq_destroy(&o->srq), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&o->cq), QHCA_ST_OK);
}

static struct qhca_srqc query(struct ops *o)
{
    struct qhca_srqc c;

    guest_query(&o->u->g, QHCA_CMD_QUERY_SRQ, o->srq.srqn, &c, sizeof(c));
    return c;
}

static void doorbell(struct ops *o, uint32_t index)
{
    guest_doorbell(&o->u->g, o->u->g.uar, QHCA_DB_TM, o->srq.srqn |
                   (uint64_t)index << QHCA_DB_INDEX_SHIFT);
}

/* Post @n operations that add entry @first and the next ones. */
static void add(struct ops *o, uint32_t first, uint32_t n, uint8_t flags)
{
    struct gtm_op op = { .opcode = QHCA_WQE_TAG_ADD, .flags = flags };
    uint32_t i;

    for (i = first; i < first + n; i++) {
        op.handle = i;
        op.wr_id = i;
        assert_true(gtm_post(&o->srq, &op, NULL));
    }
}

/* Operations @first and the next are executed (@done) or not. */
static void are(struct ops *o, uint32_t first, uint32_t n, bool done)
{
    uint32_t i;

    for (i = first; i < first + n; i++) {
        assert_int_equal(gtm_result(&o->srq, i), done ? QHCA_TM_DONE : 0);
    }
}

/* One doorbell for more operations than are executed at once. */
static void long_batch(void **state)
{
    struct unit *u = *state;
    struct ops o;

    make(u, &o);
    add(&o, 0, OPS, 0);
    /* not the doorbell nor the next run, but some later one ends it */
    gtm_ring(&o.srq);
    are(&o, OPS - 1, 1, false);
    world_settle(&u->w, 1000000);
    are(&o, 0, OPS, true);
    assert_int_equal(query(&o).tags, OPS);
    assert_int_equal(query(&o).state, QHCA_SRQ_OK);
    unmake(&o);
}

/* A doorbell that was overtaken changes nothing. */
static void overtaken(void **state)
{
    struct unit *u = *state;
    struct ops o;

    make(u, &o);
    add(&o, 0, OPS, 0);
    gtm_ring(&o.srq);
    doorbell(&o, OPS / 2);              /* some were executed, some not */
    doorbell(&o, OPS);
    doorbell(&o, 1);
    world_settle(&u->w, 1000000);
    are(&o, 0, OPS, true);
    doorbell(&o, OPS);
    world_settle(&u->w, 1000000);
    assert_int_equal(query(&o).tags, OPS);
    assert_int_equal(query(&o).state, QHCA_SRQ_OK);
    unmake(&o);
}

/* Operation @at fails with @syndrome: it and the later ones do not count. */
static void fails(struct ops *o, uint32_t at, uint8_t syndrome)
{
    struct unit *u = o->u;
    struct qhca_srqc c;

    gtm_ring(&o->srq);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_SRQ_ERR], 1);
    assert_int_equal(last.obj, o->srq.srqn);
    assert_int_equal(last.syndrome, syndrome);
    c = query(o);
    assert_int_equal(c.state, QHCA_SRQ_ERR);
    are(o, 0, at, true);
    are(o, at + 1, OPS - at - 1, false);
    /* nor does a doorbell help */
    u->m->fail_64k = 0;
    gtm_ring(&o->srq);
    world_settle(&u->w, 1000000);
    assert_int_equal(query(o).tags, c.tags);
    are(o, at + 1, OPS - at - 1, false);
    assert_int_equal(u->g.async_count[QHCA_EV_SRQ_ERR], 1);
}

/* The second page of the ring is not in its table. */
static void no_page(void **state)
{
    struct unit *u = *state;
    struct ops o;
    uint64_t *entry;

    make(u, &o);
    add(&o, 0, OPS, 0);
    entry = gmem_ptr(u->m, gbuf_entry_addr(&o.srq.ops, 4096), 8);
    *entry &= ~QHCA_BTE_VALID;
    fails(&o, PER_PAGE, QHCA_SYN_TABLE_INVALID);
    assert_int_equal(query(&o).tags, PER_PAGE);
    unmake(&o);
}

static bool is_it(void *opaque, uint64_t addr)
{
    return addr == *(uint64_t *)opaque;
}

/* An access to byte @off of operation 5 fails. */
static void no_access(struct unit *u, uint64_t off, uint32_t tags)
{
    uint64_t bad;
    struct ops o;

    make(u, &o);
    add(&o, 0, OPS, 0);
    bad = gbuf_addr(&o.srq.ops, 5 << STRIDE_SHIFT, NULL) + off;
    u->m->may_fail = is_it;
    u->m->may_fail_opaque = &bad;
    u->m->fail_64k = 65536;
    fails(&o, 5, QHCA_SYN_WQE_DMA);
    are(&o, 5, 1, false);
    assert_int_equal(query(&o).tags, tags);
    unmake(&o);
}

static void unreadable(void **state)
{
    no_access(*state, 0, 5);
}

/* Its result cannot be written; the entry was added by then. */
static void unwritable(void **state)
{
    no_access(*state, offsetof(struct qhca_tm_wqe, handle), 6);
}

/* The CQ has room for four completions. */
static void cq_full(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    struct ops o;
    unsigned i;

    make(u, &o);
    add(&o, 0, OPS, QHCA_WQE_F_SIGNALED);
    fails(&o, 4, QHCA_SYN_CQ_OVERFLOW);
    assert_int_equal(u->g.async_count[QHCA_EV_CQ_ERR], 1);
    for (i = 0; i < 4; i++) {
        assert_true(gcq_poll(&o.cq, &cqe));
        assert_int_equal(cqe.opcode, QHCA_CQE_OP_TM_ADD);
        assert_int_equal(cqe.wr_id, i);
    }
    assert_false(gcq_poll(&o.cq, &cqe));
    unmake(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(long_batch),
        UNIT(overtaken),
        UNIT(no_page),
        UNIT(unreadable),
        UNIT(unwritable),
        UNIT(cq_full),
    };

    return cmocka_run_group_tests_name("tag_ops", tests, NULL, NULL);
}
