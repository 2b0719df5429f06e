/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inspection of what objects have only at times: windows that are bound, events
 * and interrupts that wait, cached tables, and memory that software has broken.
 */
#include "unit.h"
#include "peer.h"
#include "emit.h"
#include "ethfix.h"
#include "rule.h"
#include "observe/inspect_internal.h"

#define IOVA 0x40000000ull
#define LEN (500u * 4096u)
#define RR QHCA_ACCESS_REMOTE_READ

static struct seen s;

static void forget(void)
{
    seen_start(&s);
    free(s.text);
    s.text = NULL;
}

/* Inspection may read anything: the red zones are for the device's work. */
static void look(struct node *n, enum qhca_object object, uint32_t number)
{
    n->mem.unchecked = true;
    assert_null(qhca_inspect(n->e, object, number, seen_start(&s)));
    n->mem.unchecked = false;
    assert_int_equal(s.depth, 0);
}

/* A window belongs to a region, and perhaps to a QP, only while it is bound. */
static void windows(void **state)
{
    struct unit *u = *state;
    struct gqp_init in = { .type = QHCA_QPT_RC, .sq_shift = 2,
                           .sq_stride = 7 };
    struct qhca_mpt c = { .flags = QHCA_MR_F_MW2, .pd = u->g.pd };
    uint32_t window;
    struct gmr mr;
    struct gqp qp;
    struct gcq cq;

    gcq_create(&cq, &u->g, 4, NULL, 1);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    gmr_create(&mr, &u->g, 4096, IOVA,
               QHCA_ACCESS_MW_BIND | QHCA_ACCESS_LOCAL_WRITE, NULL);
    window = guest_create(&u->g, QHCA_CMD_CREATE_MW, &c, sizeof(c));
    look(u->n, QHCA_OBJ_MW, window);
    SEEN(&s, "bound", "false");
    UNSEEN(&s, "region.key");
    assert_null(qhca_inspect_all(u->e, QHCA_OBJ_MW, 0, 9, seen_start(&s)));
    SEEN(&s, "objects.0.bound", "false");
    UNSEEN(&s, "objects.0.qpn");
    assert_int_equal(unit_bind(u, qp.qpn, window, mr.key, IOVA + 64, 128, RR),
                     QHCA_SYN_NONE);
    look(u->n, QHCA_OBJ_MW, window);
    SEEN(&s, "bound", "true");
    SEEN_HEX(&s, "region.key", mr.key);
    SEEN(&s, "region.offset", "0x40");
    SEEN_HEX(&s, "region.va", IOVA + 64);
    assert_null(qhca_inspect_all(u->e, QHCA_OBJ_MW, 0, 9, seen_start(&s)));
    SEEN(&s, "objects.0.bound", "true");
    SEEN_HEX(&s, "objects.0.mr", mr.key);
    SEEN_NUM(&s, "objects.0.qpn", qp.qpn);
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, window),
                     QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    forget();
}

/* A CQ whose event waits, for time to pass or for its EQ. */
static void waiting(void **state)
{
    struct unit *u = *state;
    struct qhca_cqc c = { .mod_count = 4, .mod_usec = 50 };
    struct qhca_cqe cqe = { .qpn = 0x77 };
    struct qhca_cq *q;
    struct gcq cq;
    uint64_t was;

    gcq_create(&cq, &u->g, 4, NULL, 1);
    q = qhca_idr_get(&u->e->q->cqs, cq.cqn);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn,
                              QHCA_CQ_M_MODERATION, &c, sizeof(c), NULL),
                     QHCA_ST_OK);
    gcq_arm(&cq, false);
    look(u->n, QHCA_OBJ_CQ, cq.cqn);
    SEEN(&s, "unreported", "0");
    UNSEEN(&s, "moderation_deadline");
    rule_add(u->e, RULE(STALL_EVENTS, .fields = QHCA_FLT_NUMBER,
                        .number = 1));
    assert_true(qhca_cq_push(u->e, q, &cqe, false));
    qhca_finish(u->e);
    look(u->n, QHCA_OBJ_CQ, cq.cqn);
    SEEN(&s, "unreported", "1");
    SEEN_NUM(&s, "moderation_deadline", u->w.now + 50000);
    look(u->n, QHCA_OBJ_EQ, 1);
    SEEN(&s, "objects_waiting", "0");
    SEEN_HEX(&s, "doorbell_record.address", u->g.eq[1].dbrec);
    world_run(&u->w, 60000);
    look(u->n, QHCA_OBJ_CQ, cq.cqn);
    UNSEEN(&s, "moderation_deadline");
    look(u->n, QHCA_OBJ_EQ, 1);
    SEEN(&s, "objects_waiting", "1");
    assert_true(qhca_fault_remove(u->e, 0));
    world_run(&u->w, 10000);
    look(u->n, QHCA_OBJ_EQ, 1);
    SEEN(&s, "objects_waiting", "0");
    look(u->n, QHCA_OBJ_EQ, 0);
    UNSEEN(&s, "doorbell_record.address");
    /* a record that is not there */
    was = q->dbrec;
    q->dbrec |= 1ULL << 50;
    look(u->n, QHCA_OBJ_CQ, cq.cqn);
    SEEN_HEX(&s, "doorbell_record.address", q->dbrec);
    SEEN(&s, "doorbell_record.error", "the memory cannot be read");
    q->dbrec = was;
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    forget();
}

static int setup_record(void **state)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6, .records = 2,
    };

    return unit_setup_with(state, NULL, &cfg);
}

/* What the adapter knows of a table by heart. */
static void cached(void **state)
{
    static const struct gbuf_shape tree = { QHCA_BUF_TREE, 2, 12, 12 };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gmr mr;

    (void)state;
    gmr_create(&mr, &p->g, LEN * 2, IOVA, QHCA_ACCESS_MASK, &tree);
    gbuf_allow(&mr.buf, 0, mr.len, GMEM_RW);
    look(p->n, QHCA_OBJ_MR, mr.key);
    UNSEEN(&s, "buffer.cached_leaf.page");
    UNSEEN(&s, "buffer.cached_table.number");
    peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn, .va = IOVA + 600 * 4096,
            .rkey = mr.key, .dmalen = 4, .data = "abcd", .len = 4);
    look(p->n, QHCA_OBJ_MR, mr.key);
    SEEN(&s, "buffer.cached_leaf.page", "600");
    SEEN_HEX(&s, "buffer.cached_leaf.address",
             gbuf_addr(&mr.buf, 600 * 4096, NULL));
    SEEN(&s, "buffer.cached_table.number", "1");
    SEEN_HEX(&s, "buffer.cached_table.address",
             gbuf_entry_addr(&mr.buf, 600 * 4096) - (600 - 512) * 8);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    peer_free(p);
    forget();
}

/* ---- rings ---- */

static void ring(struct node *n, enum qhca_object object, uint32_t number,
                 enum qhca_ring which)
{
    struct qhca_ring_query l = {
        .object = object, .number = number, .ring = which,
    };

    n->mem.unchecked = true;
    assert_null(qhca_inspect_ring(n->e, &l, seen_start(&s)));
    n->mem.unchecked = false;
    assert_int_equal(s.depth, 0);
}

/* Of many WQEs those are shown that complete next. */
static void long_ring(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    unsigned i;

    (void)state;
    for (i = 0; i < 100; i++) {
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = i,
                                   .flags = QHCA_WQE_F_SIGNALED }, 0, 16);
    }
    peer_run(p);
    ring(p->n, QHCA_OBJ_QP, p->qp.qpn, QHCA_RING_SQ);
    SEEN(&s, "entries.0.index", "0");
    SEEN(&s, "entries.63.index", "63");
    UNSEEN(&s, "entries.64.index");
    peer_ack(p, p->a.sq_psn + 4, 0x1f);
    ring(p->n, QHCA_OBJ_QP, p->qp.qpn, QHCA_RING_SQ);
    SEEN(&s, "entries.0.index", "5");
    SEEN(&s, "entries.0.wr_id", "0x5");
    SEEN(&s, "entries.63.index", "68");
    UNSEEN(&s, "entries.64.index");
    p->tail = p->head;
    peer_free(p);
    forget();
}

/* A page of the ring is missing: its entries say so, the others are shown. */
static void broken_ring(void **state)
{
    static const struct gbuf_shape flat = { QHCA_BUF_FLAT, 1, 12, 0 };
    struct unit *u = *state;
    struct qhca_ring_query l = {
        .object = QHCA_OBJ_CQ, .ring = QHCA_RING_CQ, .ranged = true,
        .index = 62, .count = 4,
    };
    uint64_t *entry;
    struct gcq cq;

    u->m->unchecked = true;
    gcq_create(&cq, &u->g, 7, &flat, 1);        /* 64 CQEs on each page */
    l.number = cq.cqn;
    entry = gmem_ptr(u->m, gbuf_entry_addr(&cq.buf, 4096), 8);
    *entry &= ~QHCA_BTE_VALID;
    assert_null(qhca_inspect_ring(u->e, &l, seen_start(&s)));
    SEEN_HEX(&s, "entries.1.address", gbuf_addr(&cq.buf, 63 * 64, NULL));
    UNSEEN(&s, "entries.1.error");
    SEEN(&s, "entries.2.slot", "64");
    SEEN(&s, "entries.2.error", "the entry is not valid");
    UNSEEN(&s, "entries.2.address");
    UNSEEN(&s, "entries.2.raw");
    *entry |= QHCA_BTE_VALID;
    assert_null(qhca_inspect_ring(u->e, &l, seen_start(&s)));
    SEEN_HEX(&s, "entries.2.address", gbuf_addr(&cq.buf, 4096, NULL));
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    forget();
}

/* ---- tables ---- */

static uint64_t cut;            /* memory from here on cannot be read */

static bool (*dma_read)(void *opaque, uint64_t addr, void *buf, size_t len);

static bool read_until(void *opaque, uint64_t addr, void *buf, size_t len)
{
    return addr + len <= cut && dma_read(opaque, addr, buf, len);
}

/* The table ends too early: the entries that are there are shown. */
static void short_table(void **state)
{
    static const struct gbuf_shape flat = { QHCA_BUF_FLAT, 1, 12, 0 };
    struct unit *u = *state;
    struct qhca_walk_look l = {
        .object = QHCA_OBJ_MR, .by = QHCA_WALK_OFFSET, .at = 4 * 4096,
        .entries = 8,
    };
    struct qhca_path path;
    struct gmr mr;

    u->m->unchecked = true;
    gmr_create(&mr, &u->g, LEN, 0, QHCA_ACCESS_MASK, &flat);
    l.number = mr.key;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "hops.0.entries.4.marked", "true");
    SEEN(&s, "hops.0.entries.7.index", "7");
    UNSEEN(&s, "hops.0.entries.8.index");
    dma_read = u->e->ops.dma_read;
    u->e->ops.dma_read = read_until;
    cut = gbuf_entry_addr(&mr.buf, 5 * 4096) + 8;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "hops.0.entries.4.marked", "true");
    SEEN(&s, "hops.0.entries.5.index", "5");
    UNSEEN(&s, "hops.0.entries.6.index");
    UNSEEN(&s, "error");
    u->e->ops.dma_read = dma_read;
    /* behind the last byte */
    qhca_peek_walk(u->e, &qhca_mr_get_cmd(u->e, mr.key)->buf, LEN, &path);
    assert_string_equal(path.error, "past the end of the buffer");
    qhca_peek_walk(u->e, &qhca_mr_get_cmd(u->e, mr.key)->buf, LEN - 1, &path);
    assert_null(path.error);
    assert_int_equal(path.run, 1);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    forget();
}

/* Pages that come and go may be read-only. */
static void paged(void **state)
{
    static const struct gbuf_shape flat = { QHCA_BUF_FLAT, 1, 12, 0 };
    struct unit *u = *state;
    struct qhca_walk_look l = {
        .object = QHCA_OBJ_MR, .by = QHCA_WALK_OFFSET,
    };
    struct gmr mr;
    uint64_t *entry;
    unsigned i;

    u->m->unchecked = true;
    gmr_create(&mr, &u->g, LEN, IOVA, QHCA_ACCESS_MASK, &flat);
    l.number = mr.key;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    UNSEEN(&s, "hops.0.write");
    qhca_mr_get_cmd(u->e, mr.key)->buf.odp = true;
    entry = gmem_ptr(u->m, gbuf_entry_addr(&mr.buf, 0), 8);
    for (i = 0; i < 2; i++) {
        *entry &= ~QHCA_BTE_WRITE;
        *entry |= i ? QHCA_BTE_WRITE : 0;
        assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
        SEEN(&s, "hops.0.write", i ? "true" : "false");
    }
    *entry &= ~(QHCA_BTE_WRITE | QHCA_BTE_VALID);
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "error", "page fault: the entry is not valid");
    UNSEEN(&s, "hops.0.write");
    *entry |= QHCA_BTE_VALID;
    qhca_mr_get_cmd(u->e, mr.key)->buf.odp = false;
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    forget();
}

/* A receive queue shows the tables that spread frames over it, and no other. */
static void spread(void **state)
{
    struct unit *u = *state;
    struct erq q[3];
    struct erss two, one;
    unsigned i;

    for (i = 0; i < 3; i++) {
        erq_make(u, &q[i], 0);
    }
    erss_make(u, &two, q, 2, 2, 0);
    erss_make(u, &one, q + 1, 1, 0, 0);
    look(u->n, QHCA_OBJ_ETH_RQ, q[0].num);
    SEEN_NUM(&s, "rqts.0", two.rqtn);
    UNSEEN(&s, "rqts.1");
    look(u->n, QHCA_OBJ_ETH_RQ, q[1].num);
    SEEN_NUM(&s, "rqts.0", two.rqtn);
    SEEN_NUM(&s, "rqts.1", one.rqtn);
    look(u->n, QHCA_OBJ_ETH_RQ, q[2].num);
    UNSEEN(&s, "rqts.0");
    erss_free(&one);
    erss_free(&two);
    for (i = 0; i < 3; i++) {
        erq_free(&q[i]);
    }
    forget();
}

/* There is no rule with this number. */
static void no_rule(void **state)
{
    struct unit *u = *state;
    struct qhca_flow flow = { .type = 0 };
    struct qhca_cmd c = { .obj = 4711, .out = &flow };

    assert_string_equal(qhca_inspect(u->e, QHCA_OBJ_FLOW, 4711,
                                     seen_start(&s)), "no such object");
    assert_string_equal(s.text, "");
    assert_int_equal(qhca_inspect_query_flow(u->e, &c), QHCA_ST_BAD_OBJ);
    forget();
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        UNIT(windows),
        cmocka_unit_test_setup_teardown(waiting, setup_record, unit_teardown),
        cmocka_unit_test(cached),
        cmocka_unit_test(long_ring),
        UNIT(broken_ring),
        UNIT(short_table),
        UNIT(paged),
        UNIT(spread),
        UNIT(no_rule),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
