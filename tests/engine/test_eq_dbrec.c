/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * EQs whose consumer index is in a doorbell record: when software is
 * interrupted.  The actions of another CPU in the middle of the engine's work
 * take place when the engine executes its fence: there, either order is
 * possible.
 */
#include "reborn.h"
#include "unit.h"

#define DEPTH 4u
#define CQS 7u

static struct {
    struct unit *u;
    struct geq *q;
    struct gcq cq[CQS * 20];
    unsigned cqs;
    uint64_t *irq, irqs, bad;
    uint64_t reads;             /* of the record's index */
    uint32_t index;             /* for at_fence() */
    bool only_notify;
    uint64_t failing;
} t;

static struct qhca_eq *eq_of(void)
{
    return qhca_idr_get(&t.u->e->q->eqs, t.q->eqn);
}

static void count_reads(void *opaque, uint64_t addr, size_t len, bool write)
{
    (void)opaque;
    t.reads += !write && addr == t.q->dbrec && len == 4;
}

static void begin(void **state, unsigned cqs)
{
    struct unit *u = *state;

    memset(&t, 0, sizeof(t));
    t.u = u;
    t.q = &u->g.eq[1];
    t.irq = &u->n->msix[2];
    u->n->on_msix = NULL;       /* each test is the software */
    u->m->watch = count_reads;
    for (t.cqs = 0; t.cqs < cqs; t.cqs++) {
        gcq_create(&t.cq[t.cqs], &u->g, 2, NULL, 1);
    }
}

static void end(void)
{
    t.u->m->watch = NULL;
    while (t.cqs) {
        assert_int_equal(gcq_destroy(&t.cq[--t.cqs]), QHCA_ST_OK);
    }
}

/* An event of CQ @i. */
static void fire(unsigned i)
{
    struct qhca_cq *cq = qhca_idr_get(&t.u->e->q->cqs, t.cq[i].cqn);
    struct qhca_cqe cqe = { .qpn = 0x77 }, got;

    gcq_arm(&t.cq[i], false);
    assert_true(qhca_cq_push(t.u->e, cq, &cqe, false));
    while (gcq_poll(&t.cq[i], &got)) {
    }
}

static void fire_some(unsigned first, unsigned n)
{
    while (n--) {
        fire(first++);
    }
}

/* Software consumes @n entries, which are there. */
static void consume(unsigned n)
{
    struct qhca_eqe e;

    for (; n; n--) {
        assert_true(geq_peek(t.q, &e));
        t.q->cons++;
    }
}

static bool entry_waits(void)
{
    struct qhca_eqe e;

    return geq_peek(t.q, &e);
}

static void store(uint32_t index)
{
    guest_dbrec_set(&t.u->g, t.q->dbrec, index);
}

static uint32_t flags(void)
{
    return guest_dbrec_flags(&t.u->g, t.q->dbrec);
}

/* The index of the doorbell is ignored. */
static void bell(bool arm)
{
    guest_doorbell(&t.u->g, 0, QHCA_DB_EQ, t.q->eqn |
                   (arm ? QHCA_DB_EQ_ARM : 0) |
                   (uint64_t)0xbadbad << QHCA_DB_INDEX_SHIFT);
}

/* How many interrupts there were since the last call. */
static unsigned irqs(void)
{
    uint64_t n = *t.irq - t.irqs;

    t.irqs = *t.irq;
    return (unsigned)n;
}

static unsigned bad_indices(void)
{
    uint64_t n = unit_stat(t.u, QHCA_STAT_DB_BAD_INDEX) - t.bad;

    t.bad += n;
    return (unsigned)n;
}

static void tell_all(void)
{
    while (entry_waits()) {
        t.q->cons++;
        geq_tell(t.q);
    }
    irqs();
}

/* An interrupt if software had consumed everything, and only then. */
static void when_idle(void **state)
{
    begin(state, 1);
    fire(0);                    /* nothing was armed */
    assert_int_equal(irqs(), 1);
    fire(0);                    /* the handler has not run yet */
    fire(0);
    assert_int_equal(irqs(), 0);
    consume(2);
    store(2);
    assert_true(entry_waits());
    fire(0);                    /* it sees the third, and so the fourth */
    assert_int_equal(irqs(), 0);
    consume(2);
    store(4);
    assert_false(entry_waits());
    fire(0);
    assert_int_equal(irqs(), 1);
    consume(1);
    store(5);
    /* one read of the record for each event */
    assert_int_equal(t.reads, 5);
    assert_int_equal(flags(), 0);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), 5);
    assert_int_equal(bad_indices(), 0);
    end();
}

static void at_fence(struct node *n)
{
    struct qhca_eqe e;

    (void)n;
    if (t.only_notify) {
        if (!(flags() & QHCA_DBREC_NOTIFY)) {
            return;
        }
    } else {                    /* the entry is there: software sees it */
        assert_true(geq_peek(t.q, &e));
    }
    store(t.index);
    t.u->n->on_fence = NULL;
}

/* Software stores its index after the entry is written, before it is read. */
static void stores_meanwhile(void **state)
{
    begin(state, 1);
    fire(0);
    assert_int_equal(irqs(), 1);
    consume(1);
    /* the index of before: software sees the entry, and is interrupted too */
    t.index = 1;
    t.u->n->on_fence = at_fence;
    fire(0);
    assert_null(t.u->n->on_fence);
    assert_int_equal(irqs(), 1);
    assert_true(entry_waits());
    consume(1);
    store(2);
    /* it has even consumed the entry */
    t.index = 3;
    t.u->n->on_fence = at_fence;
    fire(0);
    assert_null(t.u->n->on_fence);
    assert_int_equal(irqs(), 0);
    consume(1);
    fire(0);
    assert_int_equal(irqs(), 1);
    consume(1);
    store(4);
    end();
}

/* A full EQ: the record shows whether it is full. */
static void full_only_for_the_device(void **state)
{
    unsigned i;

    begin(state, CQS);
    for (i = 0; i < 3; i++) {
        fire_some(0, DEPTH);
        assert_int_equal(irqs(), 1);
        consume(DEPTH);
        store(t.q->cons);       /* and does not ring */
    }
    assert_int_equal(flags(), 0);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), 3 * DEPTH);
    end();
}

static void full(void **state)
{
    begin(state, CQS);
    fire_some(0, DEPTH);
    assert_int_equal(flags(), 0);       /* no event waits */
    fire(4);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    /* software will ring: the record is not read for more events */
    t.reads = 0;
    fire_some(4, 3);
    assert_int_equal(t.reads, 0);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH);
    assert_int_equal(irqs(), 1);
    /* room for two of three */
    consume(2);
    geq_tell(t.q);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH + 2);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    consume(1);
    geq_tell(t.q);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH + 3);
    assert_int_equal(flags(), 0);
    assert_int_equal(irqs(), 0);        /* software has not caught up */
    consume(4);
    geq_tell(t.q);
    assert_false(entry_waits());
    fire(0);
    assert_int_equal(irqs(), 1);
    tell_all();
    end();
}

/* Waiting events are written when software has consumed all: an interrupt. */
static void full_then_idle(void **state)
{
    unsigned arm;

    begin(state, CQS);
    for (arm = 0; arm < 2; arm++) {
        fire_some(0, DEPTH + 2);
        assert_int_equal(irqs(), 1);
        consume(DEPTH);
        store(t.q->cons);
        assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
        bell(arm);
        assert_int_equal(flags(), 0);
        assert_int_equal(irqs(), 1);
        tell_all();
    }
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), 2 * (DEPTH + 2));
    end();
}

/* Software consumes an entry while the device asks for a doorbell. */
static void room_meanwhile(void **state)
{
    begin(state, CQS);
    fire_some(0, DEPTH);
    consume(1);
    t.only_notify = true;
    t.index = 1;
    t.u->n->on_fence = at_fence;
    fire(4);
    assert_null(t.u->n->on_fence);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH + 1);
    assert_true(qhca_list_empty(&eq_of()->pending));
    /* no harm: software rings once, for nothing */
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    fire(5);                    /* full again, and still asked for */
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH + 1);
    consume(1);
    geq_tell(t.q);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH + 2);
    assert_int_equal(flags(), 0);
    tell_all();
    end();
}

/* Software stops with entries left. */
static void interrupt_at_once(void **state)
{
    begin(state, CQS);
    fire_some(0, 2);
    assert_int_equal(irqs(), 1);
    consume(1);
    store(1);
    bell(false);
    assert_int_equal(irqs(), 0);
    bell(true);
    assert_int_equal(irqs(), 1);
    consume(1);
    store(2);
    bell(true);                 /* nothing is left */
    assert_int_equal(irqs(), 0);
    fire(0);
    assert_int_equal(irqs(), 1);
    assert_int_equal(bad_indices(), 0);
    /* with entries, and with events that wait: one interrupt */
    fire_some(0, DEPTH + 1);
    assert_int_equal(irqs(), 0);
    consume(2);
    store(4);
    bell(true);
    assert_int_equal(irqs(), 1);
    tell_all();
    end();
}

/* Events wait for many laps. */
static void many_wait(void **state)
{
    unsigned n = CQS * 20;

    begin(state, n);
    fire_some(0, n);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    consume(16);
    while (unit_stat(t.u, QHCA_STAT_EQES) < n) {
        assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
        geq_tell(t.q);
        node_drain(t.u->n);
        consume(8);
    }
    geq_tell(t.q);
    assert_int_equal(flags(), 0);
    tell_all();
    end();
}

/* More events wait, and have room, than one doorbell writes. */
static void batches(void **state)
{
    unsigned n = CQS * 20, i;

    begin(state, n);
    for (i = 0; i < 128; i++) {
        fire(0);
    }
    fire_some(0, n);            /* 140 wait */
    consume(128);
    geq_tell(t.q);
    assert_true(unit_stat(t.u, QHCA_STAT_EQES) < 128 + 128);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    node_drain(t.u->n);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), 128 + 128);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    consume(128);
    geq_tell(t.q);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), 128 + n);
    assert_int_equal(flags(), 0);
    tell_all();
    end();
}

/* The event that waits goes with its object; software rings once in vain. */
static void nothing_waits_any_more(void **state)
{
    begin(state, CQS);
    fire_some(0, DEPTH + 1);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    while (t.cqs > DEPTH) {
        assert_int_equal(gcq_destroy(&t.cq[--t.cqs]), QHCA_ST_OK);
    }
    fire(0);                    /* full as before */
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH);
    consume(1);
    geq_tell(t.q);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH + 1);
    assert_int_equal(flags(), 0);
    tell_all();
    end();
}

static void hostile(void **state)
{
    static const uint32_t bad[] = { 0, 4, 0x80000001, UINT32_MAX };
    struct qhca_eqc c;
    unsigned i;

    begin(state, CQS);
    fire(0);
    consume(1);
    store(1);
    fire(0);
    assert_int_equal(irqs(), 2);
    for (i = 0; i < 4; i++) {   /* the device knows 1, and has written 2 */
        store(bad[i]);
        bell(true);
        assert_int_equal(bad_indices(), 1);
        assert_int_equal(eq_of()->cons, 1);
        irqs();
    }
    store(7);
    fire(0);
    assert_int_equal(bad_indices(), 1);
    assert_int_equal(irqs(), 0);
    /* full: read twice, and software is asked to ring */
    fire_some(0, 2);
    assert_int_equal(bad_indices(), 2);
    assert_int_equal(flags(), 0);
    fire(0);
    assert_int_equal(bad_indices(), 2);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    guest_query(&t.u->g, QHCA_CMD_QUERY_EQ, 1, &c, sizeof(c));
    assert_int_equal(c.cons, 1);
    assert_int_equal(c.prod, 5);
    assert_int_equal(node_reg_read(t.u->n, QHCA_REG_STATUS, 4) &
                     QHCA_STATUS_FATAL, 0);
    /* sane again: nothing is lost */
    consume(4);
    geq_tell(t.q);
    assert_int_equal(bad_indices(), 0);
    assert_int_equal(flags(), 0);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), 6);
    tell_all();
    end();
}

/* Counters pass 2^32. */
static void wraps(void **state)
{
    uint32_t from = UINT32_MAX - 5;
    struct qhca_eqe e = { .phase = 1 };
    unsigned i;

    begin(state, CQS);
    for (i = 0; i < DEPTH; i++) {       /* as the lap before left them */
        e.phase = !((from - DEPTH + i) >> t.q->shift & 1);
        gbuf_write(&t.q->buf, ((from + i) & (DEPTH - 1)) * sizeof(e), &e,
                   sizeof(e));
    }
    eq_of()->prod = eq_of()->cons = t.q->cons = from;
    store(from);
    for (i = 0; i < 5; i++) {
        fire_some(0, DEPTH + 2);
        assert_int_equal(irqs(), 1);
        consume(1);
        geq_tell(t.q);
        consume(DEPTH - 1);
        geq_tell(t.q);
        consume(2);
        geq_tell(t.q);
        assert_false(entry_waits());
        irqs();
    }
    assert_int_equal(eq_of()->prod, from + 5 * (DEPTH + 2));
    assert_int_equal(bad_indices(), 0);
    end();
}

/* ---- memory that is gone ---- */

static bool fails_at(void *opaque, uint64_t addr)
{
    (void)opaque;
    return addr == t.failing;
}

static void record_fails(bool of_flags)
{
    t.failing = t.q->dbrec + (of_flags ? 4 : 0);
    t.u->m->may_fail = fails_at;
    t.u->m->fail_64k = 65536;
}

static void is_fatal(void)
{
    t.u->m->fail_64k = 0;
    t.u->m->watch = NULL;
    assert_int_equal(node_reg_read(t.u->n, QHCA_REG_STATUS, 4) &
                     ~QHCA_STATUS_LINK, QHCA_STATUS_FATAL |
                     QHCA_FATAL_EQ << QHCA_STATUS_FATAL_SHIFT);
    assert_int_equal(irqs(), 0);
    qhca_reset(t.u->e);
    while (t.cqs) {
        struct gcq *cq = &t.cq[--t.cqs];

        gbuf_free(&cq->buf);
        guest_dbrec_free(&t.u->g, cq->dbrec);
    }
}

static void no_index_after_an_entry(void **state)
{
    begin(state, 1);
    record_fails(false);
    fire(0);
    is_fatal();
}

static void no_index_at_a_doorbell(void **state)
{
    begin(state, 1);
    fire(0);
    irqs();
    record_fails(false);
    bell(true);
    is_fatal();
}

static void no_index_when_full(void **state)
{
    begin(state, CQS);
    fire_some(0, DEPTH);
    irqs();
    record_fails(false);
    fire(4);
    is_fatal();
    assert_int_equal(flags(), 0);
}

static void no_flags_when_full(void **state)
{
    begin(state, CQS);
    fire_some(0, DEPTH);
    irqs();
    record_fails(true);
    fire(4);
    is_fatal();
}

static void no_flags_when_drained(void **state)
{
    begin(state, CQS);
    fire_some(0, DEPTH + 1);
    irqs();
    consume(2);
    store(2);
    record_fails(true);
    bell(false);
    /* the last is on the asynchronous EQ: DEVICE_FATAL */
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH + 2);
    is_fatal();
}

/* ---- commands ---- */

static void contexts(void **state)
{
    struct unit *u = *state;
    struct qhca_eqc eq = { .shift = 4 }, c;
    struct gbuf b;
    uint64_t at;

    gbuf_make(&b, u->m, 4096, &gbuf_direct, true, 0, &u->g.rng);
    eq.buf = b.d;
#define REFUSED(set, field) do {                                            \
        c = eq;                                                             \
        set;                                                                \
        assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_EQ, 0, 0, &c,          \
                                  sizeof(c), &at), QHCA_ST_BAD_PARAM);      \
        assert_int_equal(at, offsetof(struct qhca_eqc, field));             \
    } while (0)
    REFUSED(c.flags = 2, flags);
    REFUSED(c.flags = QHCA_EQ_F_RECORD | 0x80, flags);
    REFUSED(c.dbrec = 8, dbrec);
    REFUSED((c.flags = QHCA_EQ_F_RECORD, c.dbrec = 4), dbrec);
#undef REFUSED
    gbuf_free(&b);
    guest_query(&u->g, QHCA_CMD_QUERY_EQ, 1, &c, sizeof(c));
    assert_int_equal(c.flags, QHCA_EQ_F_RECORD);
    assert_int_equal(c.dbrec, u->g.eq[1].dbrec);
    assert_int_equal(c.armed, 0);
    assert_int_equal(c.prod | c.cons, 0);
    assert_true(u->g.caps.features & QHCA_FEAT_EQ_RECORD);
}

/* ---- saved state ---- */

/* From now on with an adapter that has loaded the state of the other. */
static void again(void)
{
    struct qhca *e, *old = t.u->e;
    const char *err;
    char why[160];
    void *buf;
    size_t len;

    assert_true(qhca_save(old, &buf, &len));
    e = qhca_new(&old->cfg, &old->ops, t.u->n, &err);
    assert_non_null(e);
    assert_true(qhca_load(e, buf, len, why, sizeof(why)));
    free(buf);
    qhca_free(old);
    t.u->n->e = t.u->e = e;
}

static void saved(void **state)
{
    begin(state, CQS);
    again();                    /* idle */
    fire(0);
    assert_int_equal(irqs(), 1);
    again();                    /* entries, not consumed */
    fire(0);
    assert_int_equal(irqs(), 0);
    consume(2);
    store(2);
    again();                    /* consumed, and not read yet */
    assert_int_equal(eq_of()->cons, 0);
    fire(0);
    assert_int_equal(irqs(), 1);
    consume(1);
    store(3);
    fire_some(0, DEPTH + 2);
    assert_int_equal(irqs(), 1);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    again();                    /* events wait, and software is to ring */
    t.reads = 0;
    fire(6);
    assert_int_equal(t.reads, 0);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    consume(4);
    geq_tell(t.q);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), 3 + DEPTH + 3);
    assert_int_equal(flags(), 0);
    assert_int_equal(irqs(), 1);
    tell_all();
    end();
}

/* A stall is not saved; what it held back must be delivered. */
static void saved_while_stalled(void **state)
{
    begin(state, CQS);
    eq_of()->stalled = 1;
    fire_some(0, DEPTH + 1);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), 0);
    assert_int_equal(flags(), 0);
    again();
    node_drain(t.u->n);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    assert_int_equal(irqs(), 1);
    consume(DEPTH);
    geq_tell(t.q);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH + 1);
    assert_int_equal(flags(), 0);
    assert_int_equal(irqs(), 1);
    tell_all();
    end();
}

/* The same without a save: the end of the stall continues the work. */
static void stalled(void **state)
{
    begin(state, CQS);
    eq_of()->stalled = 1;
    fire_some(0, DEPTH + 1);
    bell(true);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), 0);
    assert_int_equal(t.reads, 1);       /* by the doorbell */
    qhca_eqs_go_on(t.u->e, 1);
    qhca_run(t.u->e);
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH);
    assert_int_equal(flags(), QHCA_DBREC_NOTIFY);
    assert_int_equal(irqs(), 1);
    tell_all();
    assert_int_equal(unit_stat(t.u, QHCA_STAT_EQES), DEPTH + 1);
    end();
}

static void refused(const char *want)
{
    const char *why = node_loads(t.u->n, &t.u->e->cfg);

    if (*want ? !strstr(why, want) : *why) {
        fail_msg("\"%s\", not \"%s\"", why, want);
    }
}

static void spoilt(void **state)
{
    begin(state, 1);
    refused("");
    eq_of()->armed = true;
    refused("its armed flag contradicts its other flags");
    eq_of()->armed = false;
    eq_of()->dbrec += 4;
    refused("no command could have created it");
    eq_of()->dbrec -= 4;
    eq_of()->flags = 0;
    refused("no command could have created it");
    eq_of()->flags = QHCA_EQ_F_RECORD | 2;
    refused("no command could have created it");
    eq_of()->flags = QHCA_EQ_F_RECORD;
    eq_of()->notify = true;
    refused("");
    eq_of()->notify = false;
    end();
}

/* ---- main ---- */

static int setup(void **state)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 2, .records = 3,
    };

    return unit_setup_with(state, NULL, &cfg);
}

static int setup_with_many(void **state, uint32_t eq_shift)
{
    struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = eq_shift,
        .records = 3,
    };

    return unit_setup_with(state, NULL, &cfg);
}

static int setup_16(void **state)
{
    return setup_with_many(state, 4);
}

static int setup_128(void **state)
{
    return setup_with_many(state, 7);
}

#define RECORD(f) cmocka_unit_test_setup_teardown(f, setup, unit_teardown)
#define RECORD_FATAL(f) cmocka_unit_test_setup_teardown(f, setup, unit_abandon)

int main(void)
{
    const struct CMUnitTest tests[] = {
        RECORD(when_idle),
        RECORD(stores_meanwhile),
        RECORD(full_only_for_the_device),
        RECORD(full),
        RECORD(full_then_idle),
        RECORD(room_meanwhile),
        RECORD(interrupt_at_once),
        cmocka_unit_test_setup_teardown(many_wait, setup_16, unit_teardown),
        cmocka_unit_test_setup_teardown(batches, setup_128, unit_teardown),
        RECORD(nothing_waits_any_more),
        RECORD(hostile),
        RECORD(wraps),
        RECORD_FATAL(no_index_after_an_entry),
        RECORD_FATAL(no_index_at_a_doorbell),
        RECORD_FATAL(no_index_when_full),
        RECORD_FATAL(no_flags_when_full),
        RECORD_FATAL(no_flags_when_drained),
        RECORD(contexts),
        RECORD(saved),
        RECORD(saved_while_stalled),
        RECORD(stalled),
        RECORD(spoilt),
    };

    return cmocka_run_group_tests_name("eq record", tests, NULL, NULL);
}
