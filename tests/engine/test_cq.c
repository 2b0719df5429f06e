/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Completion and event queues: phase, arming, moderation, overflow, full. */
#include "unit.h"

static struct qhca_cq *cq_of(struct unit *u, const struct gcq *cq)
{
    return qhca_idr_get(&u->e->q->cqs, cq->cqn);
}

static bool push(struct unit *u, const struct gcq *cq, uint64_t wr_id,
                 uint8_t status, bool solicited)
{
    struct qhca_cqe cqe = { .wr_id = wr_id, .status = status, .qpn = 0x77 };

    return qhca_cq_push(u->e, cq_of(u, cq), &cqe, solicited);
}

/* Number of completion events of the queue's EQ; interrupts are served. */
static uint64_t events(struct unit *u)
{
    world_settle(&u->w, 1000000);
    return u->g.eq[1].events;
}

static void take_all(struct gcq *cq)
{
    struct qhca_cqe cqe;
    bool more;

    do {
        more = gcq_poll(cq, &cqe);
    } while (more);
}

/* Arm it and provoke an event; leaves it empty. */
static void fire(struct unit *u, struct gcq *cq)
{
    gcq_arm(cq, false);
    assert_true(push(u, cq, 0, 0, false));
    take_all(cq);
}

static void phase_and_wrap(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    struct gcq cq;
    unsigned shift, i;

    for (shift = 0; shift < 4; shift++) {
        gcq_create(&cq, &u->g, (uint8_t)shift, NULL, 1);
        for (i = 0; i < 5u << shift; i++) {
            assert_false(gcq_poll(&cq, &cqe));
            assert_true(push(u, &cq, i, 0, false));
            assert_true(gcq_poll(&cq, &cqe));
            assert_int_equal(cqe.wr_id, i);
            assert_int_equal(cqe.qpn, 0x77);
            assert_int_equal(cqe.timestamp, u->w.now);
            world_run(&u->w, 10);
        }
        /* full, then empty */
        for (i = 0; i < 1u << shift; i++) {
            assert_true(push(u, &cq, i, 0, false));
        }
        for (i = 0; i < 1u << shift; i++) {
            assert_true(gcq_poll(&cq, &cqe));
        }
        assert_false(gcq_poll(&cq, &cqe));
        assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    }
}

/* Counters that wrap at 2^32. */
static void counter_wrap(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    struct gcq cq;
    unsigned i;

    gcq_create(&cq, &u->g, 2, NULL, 1);
    cq_of(u, &cq)->prod = cq_of(u, &cq)->cons = UINT32_MAX - 7;
    cq.cons = cq.told = UINT32_MAX - 7;
    guest_dbrec_set(&u->g, cq.dbrec, cq.cons);
    for (i = 0; i < 30; i++) {
        gcq_arm(&cq, i & 1);
        assert_true(push(u, &cq, i, 0, true));
        assert_true(push(u, &cq, i, 0, false));
        assert_int_equal(events(u), i + 1);
        assert_true(gcq_poll(&cq, &cqe));
        assert_true(gcq_poll(&cq, &cqe));
    }
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

static void arm_any(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    struct gcq cq;

    gcq_create(&cq, &u->g, 4, NULL, 1);
    push(u, &cq, 1, 0, true);
    assert_int_equal(events(u), 0);     /* not armed */
    gcq_arm(&cq, false);                /* one is pending: event at once */
    assert_int_equal(events(u), 1);
    push(u, &cq, 2, 0, false);
    assert_int_equal(events(u), 1);     /* armed once, one event */
    gcq_poll(&cq, &cqe);
    gcq_poll(&cq, &cqe);
    gcq_arm(&cq, false);
    assert_int_equal(events(u), 1);     /* nothing is pending */
    push(u, &cq, 3, 0, false);
    push(u, &cq, 4, 0, false);
    assert_int_equal(events(u), 2);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* A pending CQE causes one event, however often software arms the CQ. */
static void told_once(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    struct gcq cq;
    unsigned i;

    gcq_create(&cq, &u->g, 4, NULL, 1);
    gcq_arm(&cq, false);
    push(u, &cq, 1, 0, false);
    assert_int_equal(events(u), 1);
    for (i = 0; i < 5; i++) {
        gcq_arm(&cq, false);            /* it has not polled it yet */
    }
    assert_int_equal(events(u), 1);
    push(u, &cq, 2, 0, false);          /* but it is armed */
    assert_int_equal(events(u), 2);
    push(u, &cq, 3, 0, false);          /* between the event and the arming */
    gcq_poll(&cq, &cqe);
    gcq_arm(&cq, false);
    assert_int_equal(events(u), 3);
    gcq_poll(&cq, &cqe);
    gcq_arm(&cq, false);
    assert_int_equal(events(u), 3);
    take_all(&cq);
    /* 2^32 CQEs later: the counters are as at the last event */
    cq_of(u, &cq)->since_event = UINT32_MAX;
    push(u, &cq, 4, 0, false);
    assert_int_equal(events(u), 4);
    cq_of(u, &cq)->since_event = UINT32_MAX;
    push(u, &cq, 5, 0, false);
    gcq_arm(&cq, false);
    assert_int_equal(events(u), 5);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

static void arm_solicited(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    struct gcq cq;

    gcq_create(&cq, &u->g, 4, NULL, 1);
    gcq_arm(&cq, true);
    push(u, &cq, 1, 0, false);
    assert_int_equal(events(u), 0);
    push(u, &cq, 2, 0, true);
    assert_int_equal(events(u), 1);
    gcq_poll(&cq, &cqe);
    gcq_arm(&cq, true);                 /* the solicited one is pending */
    assert_int_equal(events(u), 1);
    gcq_poll(&cq, &cqe);
    push(u, &cq, 3, 0, false);
    gcq_arm(&cq, true);                 /* one is pending, but not solicited */
    assert_int_equal(events(u), 1);
    push(u, &cq, 4, QHCA_WC_WR_FLUSH_ERR, false);       /* errors count */
    assert_int_equal(events(u), 2);
    push(u, &cq, 5, 0, true);
    push(u, &cq, 6, 0, false);
    gcq_poll(&cq, &cqe);
    gcq_arm(&cq, true);                 /* arrived before it was armed again */
    assert_int_equal(events(u), 3);
    take_all(&cq);
    gcq_arm(&cq, true);
    gcq_arm(&cq, false);                /* "any" overrides "solicited" */
    push(u, &cq, 7, 0, false);
    assert_int_equal(events(u), 4);
    take_all(&cq);
    gcq_arm(&cq, false);
    gcq_arm(&cq, true);                 /* and remains */
    push(u, &cq, 8, 0, false);
    assert_int_equal(events(u), 5);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

static void ring_arm(struct unit *u, const struct gcq *cq, uint32_t uar,
                     uint32_t cons)
{
    guest_doorbell(&u->g, uar, QHCA_DB_CQ_ARM, cq->cqn |
                   (uint64_t)cons << QHCA_DB_INDEX_SHIFT);
}

static void arm_wrongly(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    struct gcq cq;
    unsigned i;

    gcq_create(&cq, &u->g, 2, NULL, 1);
    /* beyond the producer: refused and counted */
    ring_arm(u, &cq, cq.uar, 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_INDEX), 1);
    assert_int_equal(cq_of(u, &cq)->arm, QHCA_ARM_NONE);
    /* another page, another number */
    ring_arm(u, &cq, 0, 0);
    ring_arm(u, &cq, cq.uar + 1, 0);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OWNER), 2);
    assert_int_equal(cq_of(u, &cq)->arm, QHCA_ARM_NONE);
    guest_doorbell(&u->g, cq.uar, QHCA_DB_CQ_ARM, 0xffffff);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OBJECT), 1);
    /* an old index: event at once, since later CQEs may be unseen */
    for (i = 0; i < 20; i++) {
        push(u, &cq, i, 0, false);
        gcq_poll(&cq, &cqe);
    }
    ring_arm(u, &cq, cq.uar, 3);
    assert_int_equal(events(u), 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_INDEX), 1);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

static void overflow(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    struct gcq cq;
    unsigned i;

    gcq_create(&cq, &u->g, 3, NULL, 1);
    for (i = 0; i < 8; i++) {
        assert_true(push(u, &cq, i, 0, false));
    }
    assert_int_equal(cq_of(u, &cq)->state, QHCA_CQ_OK);
    assert_false(push(u, &cq, 8, 0, false));
    assert_int_equal(cq_of(u, &cq)->state, QHCA_CQ_ERR);
    assert_false(push(u, &cq, 9, 0, false));
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_CQ_ERR], 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_CQ_OVERFLOWS), 1);
    /* earlier CQEs are intact */
    for (i = 0; i < 8; i++) {
        assert_true(gcq_poll(&cq, &cqe));
        assert_int_equal(cqe.wr_id, i);
    }
    assert_false(gcq_poll(&cq, &cqe));
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* An invalid doorbell record makes no room. */
static void wild_record(void **state)
{
    struct unit *u = *state;
    static const uint32_t wild[] = { 9, 0x80000000, UINT32_MAX, 0xfffffff8 };
    struct gcq cq;
    unsigned i, j;

    for (j = 0; j < 4; j++) {
        gcq_create(&cq, &u->g, 3, NULL, 1);
        guest_dbrec_set(&u->g, cq.dbrec, wild[j]);
        for (i = 0; i < 8; i++) {
            assert_true(push(u, &cq, i, 0, false));
        }
        assert_false(push(u, &cq, 8, 0, false));
        assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    }
}

static uint64_t broken_from, broken_to;

static void break_range(void *opaque, uint64_t addr, size_t len, bool write)
{
    struct unit *u = opaque;

    (void)len;
    (void)write;
    u->m->fail_64k = addr >= broken_from && addr < broken_to ? 65536 : 0;
}

/* The ring or the record is inaccessible: the CQ is in error, with an event. */
static void ring_memory_gone(void **state)
{
    struct unit *u = *state;
    struct qhca_cqc c;
    struct gcq cq;
    unsigned i, n;

    u->m->watch = break_range;
    u->m->watch_opaque = u;
    for (i = 0; i < 2; i++) {
        gcq_create(&cq, &u->g, 3, NULL, 1);
        broken_from = i ? cq.dbrec : gbuf_addr(&cq.buf, 64 * 5, NULL);
        broken_to = broken_from + 64;
        for (n = 0; push(u, &cq, n, 0, false);) {
            n++;
        }
        assert_int_equal(n, i ? 8 : 5);
        assert_true(qhca_query_cq(u->e, cq.cqn, &c));
        assert_int_equal(c.state, QHCA_CQ_ERR);
        assert_int_equal(c.prod, n);
        world_settle(&u->w, 1000000);
        assert_int_equal(u->g.async_count[QHCA_EV_CQ_ERR], i + 1);
        assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    }
    broken_to = 0;
    u->m->fail_64k = 0;
    assert_int_equal(unit_stat(u, QHCA_STAT_CQ_OVERFLOWS), 0);
    assert_int_equal(unit_stat(u, QHCA_STAT_DMA_ERRORS), 2);
}

static void moderation(void **state)
{
    struct unit *u = *state;
    struct qhca_cqc c = { .mod_count = 4, .mod_usec = 50 };
    struct gcq cq;
    unsigned i;

    gcq_create(&cq, &u->g, 6, NULL, 1);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn,
                              QHCA_CQ_M_MODERATION, &c, sizeof(c), NULL),
                     QHCA_ST_OK);
    /* by count */
    gcq_arm(&cq, false);
    for (i = 0; i < 3; i++) {
        push(u, &cq, i, 0, false);
    }
    qhca_finish(u->e);
    world_run(&u->w, 10000);
    assert_int_equal(u->g.eq[1].events, 0);
    push(u, &cq, 3, 0, false);
    assert_int_equal(events(u), 1);
    /* by time: 50 us after the first, not a ns before */
    take_all(&cq);
    gcq_arm(&cq, false);
    push(u, &cq, 4, 0, false);
    qhca_finish(u->e);
    world_run(&u->w, 49999);
    push(u, &cq, 5, 0, false);
    assert_int_equal(u->g.eq[1].events, 1);
    world_run(&u->w, 2000);
    assert_int_equal(u->g.eq[1].events, 2);
    /* an arm for solicited ones cancels none of a CQ that is armed for any */
    take_all(&cq);
    gcq_arm(&cq, false);
    push(u, &cq, 7, 0, false);
    qhca_finish(u->e);
    assert_int_equal(u->g.eq[1].events, 2);
    gcq_arm(&cq, true);
    assert_int_equal(events(u), 3);
    take_all(&cq);
    gcq_arm(&cq, true);
    push(u, &cq, 8, 0, false);
    assert_int_equal(events(u), 3);
    /* off again: each */
    c.mod_count = 0;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn,
                              QHCA_CQ_M_MODERATION, &c, sizeof(c), NULL),
                     QHCA_ST_OK);
    take_all(&cq);
    gcq_arm(&cq, false);
    push(u, &cq, 6, 0, false);
    assert_int_equal(events(u), 4);
    /* what does not exist */
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn, 1 << 2, &c,
                              sizeof(c), NULL), QHCA_ST_BAD_PARAM);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* Other parameters: an event that waits by the old ones is sent at once. */
static void moderation_changes(void **state)
{
    struct unit *u = *state;
    struct qhca_cqc c = { .mod_count = 4, .mod_usec = 50 };
    struct gcq cq;

    gcq_create(&cq, &u->g, 6, NULL, 1);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn,
                              QHCA_CQ_M_MODERATION, &c, sizeof(c), NULL),
                     QHCA_ST_OK);
    gcq_arm(&cq, false);
    push(u, &cq, 0, 0, false);
    qhca_finish(u->e);
    world_run(&u->w, 10000);
    assert_int_equal(u->g.eq[1].events, 0);
    c.mod_count = 1000;
    c.mod_usec = 60000;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn,
                              QHCA_CQ_M_MODERATION, &c, sizeof(c), NULL),
                     QHCA_ST_OK);
    world_run(&u->w, 10000);
    assert_int_equal(u->g.eq[1].events, 1);
    /* and none of both is left over */
    take_all(&cq);
    world_run(&u->w, 100000000);
    assert_int_equal(u->g.eq[1].events, 1);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* From any depth to any other, in any lap, with any number of CQEs in it. */
static void resize(void **state)
{
    struct unit *u = *state;
    struct gbuf_shape shape;
    uint32_t want = 0, next = 0;
    struct qhca_cqe cqe;
    struct gcq cq;
    unsigned n, i;
    uint8_t to;

    gcq_create(&cq, &u->g, 3, NULL, 1);
    cq_of(u, &cq)->prod = cq_of(u, &cq)->cons = UINT32_MAX - 700;
    cq.cons = cq.told = UINT32_MAX - 700;
    for (i = 0; i < 8; i++) {
        cqe.phase = (cq.cons + i) >> 3 & 1;
        gbuf_write(&cq.buf, ((cq.cons + i) & 7) * 64ULL + 63, &cqe.phase, 1);
    }
    guest_dbrec_set(&u->g, cq.dbrec, cq.cons);
    for (n = 0; n < 300; n++) {
        uint32_t depth = 1u << cq.shift;

        for (i = rng_below(&u->g.rng, depth + 1 - (want - next)); i; i--) {
            assert_true(push(u, &cq, want++, 0, false));
        }
        to = (uint8_t)rng_below(&u->g.rng, 9);
        gbuf_shape_random(&shape, &u->g.rng, 64ULL << to);
        assert_int_equal(gcq_resize(&cq, to, &shape),
                         want - next > 1u << to ? QHCA_ST_BAD_PARAM :
                                                  QHCA_ST_OK);
        depth = 1u << cq.shift;
        if (rng_pct(&u->g.rng, 50) && want - next < depth) {
            assert_true(push(u, &cq, want++, 0, false));
        }
        for (i = rng_below(&u->g.rng, want - next + 1); i; i--) {
            assert_true(gcq_poll(&cq, &cqe));
            assert_int_equal(cqe.wr_id, next++);
        }
        /* unwritten entries must not look written */
        if (rng_pct(&u->g.rng, 30)) {
            while (next != want) {
                assert_true(gcq_poll(&cq, &cqe));
                assert_int_equal(cqe.wr_id, next++);
            }
            assert_false(gcq_poll(&cq, &cqe));
        }
    }
    /* an event requested before arrives after it */
    take_all(&cq);
    gcq_arm(&cq, false);
    assert_int_equal(events(u), 0);
    assert_int_equal(gcq_resize(&cq, 6, NULL), QHCA_ST_OK);
    assert_int_equal(events(u), 0);
    assert_true(push(u, &cq, 0, 0, false));
    assert_int_equal(events(u), 1);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

static uint64_t failing[3];
static unsigned fail;

static bool fails_now(void *opaque, uint64_t addr)
{
    (void)opaque;
    return addr - failing[fail] < 64;
}

static void resize_refused(void **state)
{
    struct unit *u = *state;
    struct qhca_cqc c, before, after;
    struct gbuf buf;
    struct gcq cq;
    uint64_t off;
    unsigned i;

    gcq_create(&cq, &u->g, 3, NULL, 1);
    for (i = 0; i < 5; i++) {
        push(u, &cq, i, 0, false);
    }
    guest_query(&u->g, QHCA_CMD_QUERY_CQ, cq.cqn, &before, sizeof(before));
    gbuf_make(&buf, u->m, 64 << 4, &gbuf_direct, true, 0, &u->g.rng);
    memset(&c, 0, sizeof(c));
    c.buf = buf.d;
    c.shift = 23;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn, QHCA_CQ_M_RESIZE,
                              &c, sizeof(c), &off), QHCA_ST_BAD_PARAM);
    assert_int_equal(off, offsetof(struct qhca_cqc, shift));
    c.shift = 5;                        /* the buffer is for 4 */
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn, QHCA_CQ_M_RESIZE,
                              &c, sizeof(c), NULL), QHCA_ST_BAD_TABLE);
    c.shift = 4;                        /* old, new, record: each may fail */
    gbuf_allow(&buf, 0, buf.len, GMEM_W);
    gbuf_allow(&cq.buf, 0, cq.buf.len, GMEM_R);
    failing[0] = gbuf_addr(&cq.buf, 0, NULL);
    failing[1] = gbuf_addr(&buf, 0, NULL);
    failing[2] = cq.dbrec;
    u->m->may_fail = fails_now;
    u->m->fail_64k = 65536;
    for (fail = 0; fail < 3; fail++) {
        assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn,
                                  QHCA_CQ_M_RESIZE, &c, sizeof(c), NULL),
                         QHCA_ST_DMA_ERROR);
    }
    u->m->fail_64k = 0;
    gbuf_free(&buf);
    /* a record beyond the producer */
    guest_dbrec_set(&u->g, cq.dbrec, 6);
    cq.cons = 6;
    assert_int_equal(gcq_resize(&cq, 4, NULL), QHCA_ST_BAD_STATE);
    cq.cons = 0;
    guest_dbrec_set(&u->g, cq.dbrec, 0);
    guest_query(&u->g, QHCA_CMD_QUERY_CQ, cq.cqn, &after, sizeof(after));
    assert_memory_equal(&before, &after, sizeof(before));
    /* overflown */
    for (i = 5; i < 9; i++) {
        push(u, &cq, i, 0, false);
    }
    assert_int_equal(gcq_resize(&cq, 4, NULL), QHCA_ST_BAD_STATE);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* A page is missing in the table of the old ring, or of the new one. */
static void resize_without_page(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    uint64_t *entry;
    struct qhca_cqc c;
    struct gbuf buf;
    struct gcq cq;
    unsigned i;

    gcq_create(&cq, &u->g, 10, &gbuf_flat4k, 1);
    gbuf_allow(&cq.buf, 0, cq.buf.len, GMEM_RW);
    gbuf_make(&buf, u->m, 64 << 11, &gbuf_flat4k, true, 0, &u->g.rng);
    gbuf_allow(&buf, 0, buf.len, GMEM_RW);
    /* far from the first page, whose table entry is not kept then */
    for (i = 0; i < 700; i++) {
        assert_true(push(u, &cq, i, 0, false));
    }
    c = (struct qhca_cqc){ .buf = buf.d, .shift = 11 };
    for (i = 0; i < 2; i++) {
        entry = gmem_ptr(u->m, gbuf_entry_addr(i ? &buf : &cq.buf, 0), 8);
        *entry &= ~QHCA_BTE_VALID;
        assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, cq.cqn,
                                  QHCA_CQ_M_RESIZE, &c, sizeof(c), NULL),
                         QHCA_ST_DMA_ERROR);
        *entry |= QHCA_BTE_VALID;
    }
    gbuf_free(&buf);
    /* nothing has changed */
    assert_true(push(u, &cq, 700, 0, false));
    for (i = 0; i <= 700; i++) {
        assert_true(gcq_poll(&cq, &cqe));
        assert_int_equal(cqe.wr_id, i);
    }
    assert_false(gcq_poll(&cq, &cqe));
    assert_int_equal(gcq_resize(&cq, 11, NULL), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* The heap of deadlines compared with a linear search. */
static void moderation_heap(void **state)
{
    struct unit *u = *state;
    struct qhca_cq cq[64];
    uint64_t least;
    unsigned n, i, k;

    for (i = 0; i < 64; i++) {
        cq[i].mod_pos = QHCA_MOD_NONE;
    }
    for (n = 0; n < 20000; n++) {
        k = (unsigned)rng_below(&u->g.rng, 64);
        if (cq[k].mod_pos == QHCA_MOD_NONE) {
            qhca_mod_add(u->e, &cq[k], rng_below(&u->g.rng, 100));
        } else {
            qhca_mod_del(u->e, &cq[k]);
            assert_int_equal(cq[k].mod_pos, QHCA_MOD_NONE);
        }
        for (least = UINT64_MAX, i = 0; i < 64; i++) {
            if (cq[i].mod_pos != QHCA_MOD_NONE &&
                cq[i].mod_deadline < least) {
                least = cq[i].mod_deadline;
            }
        }
        assert_int_equal(qhca_cq_deadline(u->e), least);
    }
    for (i = 0; i < 64; i++) {
        qhca_mod_del(u->e, &cq[i]);
    }
    assert_int_equal(qhca_cq_deadline(u->e), UINT64_MAX);
}

/* ---- event queues ---- */

static struct qhca_eqe eqe_at(struct unit *u, const struct geq *eq,
                              uint32_t index)
{
    struct qhca_eqe e;

    gbuf_read(&eq->buf, (index & ((1u << eq->shift) - 1)) * sizeof(e), &e,
              sizeof(e));
    (void)u;
    return e;
}

static void eq_bell(struct unit *u, uint32_t cons, bool arm)
{
    guest_doorbell(&u->g, 0, QHCA_DB_EQ, 1 | (arm ? QHCA_DB_EQ_ARM : 0) |
                   (uint64_t)cons << QHCA_DB_INDEX_SHIFT);
}

/*
 * A full EQ loses nothing: each CQ's event is written once there is room, once,
 * in the original order.
 */
static void eq_full(void **state)
{
    struct unit *u = *state;
    struct geq *eq = &u->g.eq[1];
    uint32_t depth = 1u << eq->shift, total = depth * 3, i, cons = 0;
    struct gcq *cq = calloc(total, sizeof(*cq));
    struct qhca_eqe e;

    u->n->on_msix = NULL;               /* the EQ is not read */
    for (i = 0; i < total; i++) {
        gcq_create(&cq[i], &u->g, 2, NULL, 1);
    }
    for (i = 0; i < total; i++) {
        fire(u, &cq[i]);
        fire(u, &cq[i]);                /* again, but still one event */
    }
    for (i = 0; i < depth / 2; i++) {
        e = eqe_at(u, eq, i);
        assert_int_equal(e.obj, cq[i / 2].cqn);
        assert_int_equal(e.type, QHCA_EV_CQ);
        assert_int_equal(e.arg, 1 + i % 2);
        assert_int_equal(e.phase, 1);
    }
    assert_int_equal(unit_stat(u, QHCA_STAT_EQES), depth);
    /* two at a time; each CQ without an event gets one */
    for (i = depth / 2; cons < depth; cons += 2) {
        eq_bell(u, cons + 2, false);
        e = eqe_at(u, eq, cons + depth);
        assert_int_equal(e.phase, 0);
        assert_int_equal(e.obj, cq[i].cqn);
        e = eqe_at(u, eq, cons + depth + 1);
        assert_int_equal(e.obj, cq[i + 1].cqn);
        i += 2;
    }
    /* the rest, and then nothing */
    while (i < total) {
        cons += depth;
        eq_bell(u, cons, false);
        node_drain(u->n);
        i += depth;
    }
    assert_int_equal(unit_stat(u, QHCA_STAT_EQES), depth / 2 + total);
    eq->cons = depth / 2 + total;
    eq_bell(u, eq->cons, false);
    for (i = 0; i < total; i++) {
        assert_int_equal(gcq_destroy(&cq[i]), QHCA_ST_OK);
    }
    free(cq);
}

static void eq_arming(void **state)
{
    struct unit *u = *state;
    struct geq *eq = &u->g.eq[1];
    uint64_t *irq = &u->n->msix[2], bad;
    struct gcq cq;

    u->n->on_msix = NULL;
    gcq_create(&cq, &u->g, 4, NULL, 1);
    *irq = 0;
    fire(u, &cq);
    assert_int_equal(*irq, 1);          /* it was armed */
    fire(u, &cq);
    assert_int_equal(*irq, 1);          /* and no longer is */
    eq_bell(u, 1, true);
    assert_int_equal(*irq, 2);          /* one is pending: at once */
    eq_bell(u, 2, false);
    fire(u, &cq);
    assert_int_equal(*irq, 2);
    eq_bell(u, 3, true);
    assert_int_equal(*irq, 2);
    fire(u, &cq);
    assert_int_equal(*irq, 3);
    /* invalid indices */
    bad = unit_stat(u, QHCA_STAT_DB_BAD_INDEX);
    eq_bell(u, 5, true);
    eq_bell(u, 2, true);
    eq_bell(u, UINT32_MAX, true);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_INDEX), bad + 3);
    assert_int_equal(*irq, 3);
    /* another's page, no such EQ */
    bad = unit_stat(u, QHCA_STAT_DB_BAD_OWNER);
    guest_doorbell(&u->g, u->g.uar, QHCA_DB_EQ, 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OWNER), bad + 1);
    bad = unit_stat(u, QHCA_STAT_DB_BAD_OBJECT);
    guest_doorbell(&u->g, 0, QHCA_DB_EQ, 7);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OBJECT), bad + 1);
    eq->cons = 4;
    eq_bell(u, 4, false);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* Destroying a CQ withdraws its pending event. */
static void destroy_with_pending(void **state)
{
    struct unit *u = *state;
    struct geq *eq = &u->g.eq[1];
    uint32_t depth = 1u << eq->shift, i;
    struct gcq a, b;

    u->n->on_msix = NULL;
    gcq_create(&a, &u->g, 2, NULL, 1);
    gcq_create(&b, &u->g, 2, NULL, 1);
    for (i = 0; i < depth; i++) {
        fire(u, &a);
    }
    fire(u, &b);
    fire(u, &a);
    assert_int_equal(unit_stat(u, QHCA_STAT_EQES), depth);
    assert_int_equal(gcq_destroy(&b), QHCA_ST_OK);
    eq_bell(u, depth, false);
    assert_int_equal(unit_stat(u, QHCA_STAT_EQES), depth + 1);
    assert_int_equal(eqe_at(u, eq, depth).obj, a.cqn);
    eq->cons = depth + 1;
    eq_bell(u, eq->cons, false);
    assert_int_equal(gcq_destroy(&a), QHCA_ST_OK);
}

static void link_events(void **state)
{
    struct unit *u = *state;

    qhca_set_link(u->e, false);
    qhca_set_link(u->e, false);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_PORT], 1);
    assert_int_equal(eqe_at(u, &u->g.eq[0], 0).arg, 0);
    qhca_set_link(u->e, true);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_PORT], 2);
    assert_int_equal(eqe_at(u, &u->g.eq[0], 1).arg, 1);
}

static void eq_memory_gone(void **state)
{
    struct unit *u = *state;

    u->m->fail_64k = 65536;
    qhca_set_link(u->e, false);
    u->m->fail_64k = 0;
    assert_int_equal(node_reg_read(u->n, QHCA_REG_STATUS, 4),
                     QHCA_STATUS_FATAL |
                     QHCA_FATAL_EQ << QHCA_STATUS_FATAL_SHIFT);
    qhca_set_link(u->e, true);          /* no further event */
    assert_int_equal(unit_stat(u, QHCA_STAT_EQES), 0);
}

static void bad_contexts(void **state)
{
    struct unit *u = *state;
    struct gbuf b;
    struct qhca_cqc cq = { .shift = 4, .uar = u->g.uar, .dbrec = 0x1000 };
    struct qhca_eqc eq = { .shift = 4 };
    struct qhca_cqc c;
    struct qhca_eqc q;
    uint64_t at;

    gbuf_make(&b, u->m, 4096, &gbuf_direct, true, 0, &u->g.rng);
    cq.buf = eq.buf = b.d;
#define REFUSED(op, ctx, set, want, off) do {                           \
        set;                                                            \
        assert_int_equal(unit_cmd(u, op, 0, 0, &ctx, sizeof(ctx), &at), \
                         want);                                         \
        assert_int_equal(at, off);                                      \
    } while (0)
#define CQ(set, want, field)                                            \
    REFUSED(QHCA_CMD_CREATE_CQ, c, c = cq; set, want,                   \
            offsetof(struct qhca_cqc, field))
#define EQ(set, want, field)                                            \
    REFUSED(QHCA_CMD_CREATE_EQ, q, q = eq; set, want,                   \
            offsetof(struct qhca_eqc, field))
    CQ(c.shift = 23, QHCA_ST_BAD_PARAM, shift);
    CQ(c.shift = 255, QHCA_ST_BAD_PARAM, shift);
    CQ(c.flags = 1, QHCA_ST_BAD_PARAM, flags);
    CQ(c.dbrec = 4, QHCA_ST_BAD_PARAM, dbrec);
    CQ(c.eqn = 2, QHCA_ST_BAD_OBJ, eqn);
    CQ(c.eqn = UINT32_MAX, QHCA_ST_BAD_OBJ, eqn);
    CQ(c.uar = 77, QHCA_ST_BAD_OBJ, uar);
    CQ(c.shift = 7, QHCA_ST_BAD_TABLE, buf);    /* 128 * 64 > 4096 */
    EQ(q.shift = 0, QHCA_ST_BAD_PARAM, shift);
    EQ(q.shift = 17, QHCA_ST_BAD_PARAM, shift);
    EQ(q.flags = 2, QHCA_ST_BAD_PARAM, flags);
    EQ(q.dbrec = 8, QHCA_ST_BAD_PARAM, dbrec);
    EQ(q.vector = WORLD_VECTORS, QHCA_ST_BAD_PARAM, vector);
    EQ(q.shift = 9, QHCA_ST_BAD_TABLE, buf);
    gbuf_free(&b);
}

/* A buffer may be longer than its ring, which wraps nevertheless. */
static void resize_long(void **state)
{
    struct unit *u = *state;
    struct qhca_cqe cqe;
    struct qhca_cqc c;
    struct gcq cq;
    unsigned i;

    memset(&cq, 0, sizeof(cq));
    cq.g = &u->g;
    cq.shift = 3;
    cq.uar = u->g.uar;
    cq.lazy = 1;
    gbuf_make(&cq.buf, u->g.m, 4096, &gbuf_direct, true, 0, &u->g.rng);
    gbuf_allow(&cq.buf, 0, 4096, GMEM_RW);
    cq.dbrec = guest_dbrec(&u->g, false);
    memset(&c, 0, sizeof(c));
    c.buf = cq.buf.d;
    c.dbrec = cq.dbrec;
    c.eqn = 1;
    c.uar = cq.uar;
    c.shift = 3;
    cq.cqn = guest_create(&u->g, QHCA_CMD_CREATE_CQ, &c, sizeof(c));
    for (i = 0; i < 6; i++) {
        assert_true(push(u, &cq, i, 0, false));
    }
    for (i = 0; i < 6; i++) {
        assert_true(gcq_poll(&cq, &cqe));
        assert_int_equal(cqe.wr_id, i);
    }
    for (i = 6; i < 12; i++) {
        assert_true(push(u, &cq, i, 0, false));
    }
    assert_int_equal(gcq_resize(&cq, 4, NULL), QHCA_ST_OK);
    for (i = 6; i < 12; i++) {
        assert_true(gcq_poll(&cq, &cqe));
        assert_int_equal(cqe.wr_id, i);
    }
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(phase_and_wrap),
        UNIT(counter_wrap),
        UNIT(arm_any),
        UNIT(told_once),
        UNIT(arm_solicited),
        UNIT(arm_wrongly),
        UNIT(overflow),
        UNIT(wild_record),
        UNIT(ring_memory_gone),
        UNIT(moderation),
        UNIT(moderation_changes),
        UNIT(resize),
        UNIT(resize_refused),
        UNIT(resize_without_page),
        UNIT(resize_long),
        UNIT(moderation_heap),
        UNIT(eq_full),
        UNIT(eq_arming),
        UNIT(destroy_with_pending),
        UNIT(link_events),
        UNIT_HOSTILE(eq_memory_gone),
        UNIT(bad_contexts),
    };

    return cmocka_run_group_tests_name("cq", tests, NULL, NULL);
}
