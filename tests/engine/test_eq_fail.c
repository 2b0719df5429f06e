/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Event queues whose memory is not there when an event is written. */
#include "unit.h"
#include "rule.h"

static bool push(struct unit *u, const struct gcq *cq)
{
    struct qhca_cqe cqe = { .qpn = 0x77 };

    return qhca_cq_push(u->e, qhca_idr_get(&u->e->q->cqs, cq->cqn), &cqe,
                        false);
}

static uint64_t first;          /* address of the first entry */

static bool is_first(void *opaque, uint64_t addr)
{
    (void)opaque;
    return addr - first < sizeof(struct qhca_eqe);
}

/* No event can be written any more. */
static void unmap_eq(struct unit *u)
{
    first = gbuf_addr(&u->g.eq[1].buf, 0, NULL);
    u->m->may_fail = is_first;
    u->m->fail_64k = 65536;
}

/* Events that have waited for room: the first cannot be written. */
static void waiting_events_fail(void **state)
{
    struct unit *u = *state;
    struct gcq cq[3];
    unsigned i;

    rule_add(u->e, RULE(STALL_EVENTS));
    for (i = 0; i < 3; i++) {
        gcq_create(&cq[i], &u->g, 3, NULL, 1);
        gcq_arm(&cq[i], false);
        assert_true(push(u, &cq[i]));
    }
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.eq[1].events, 0);
    unmap_eq(u);
    qhca_fault_remove(u->e, 0);
    world_settle(&u->w, 1000000);
    u->m->fail_64k = 0;
    assert_int_equal(u->e->fatal, QHCA_FATAL_EQ);
    assert_int_equal(u->m->injected, 1);        /* the others are not tried */
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.eq[1].events, 0);
    for (i = 0; i < 3; i++) {
        gbuf_free(&cq[i].buf);
    }
}

/* DEVICE_FATAL has been reported @n times. */
static void reported(struct unit *u, unsigned n)
{
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_DEVICE_FATAL], n);
}

/* A second failure in the same call changes nothing: the first is reported. */
static void fatal_once(void **state)
{
    struct unit *u = *state;
    uint64_t errors = unit_stat(u, QHCA_STAT_AQ_ERRORS);
    struct gcq cq[2];
    unsigned i;

    for (i = 0; i < 2; i++) {
        gcq_create(&cq[i], &u->g, 3, NULL, 1);
        gcq_arm(&cq[i], false);
    }
    unmap_eq(u);
    for (i = 0; i < 2; i++) {
        assert_true(push(u, &cq[i]));
    }
    u->m->fail_64k = 0;
    assert_int_equal(u->m->injected, 2);
    assert_int_equal(u->e->fatal, QHCA_FATAL_EQ);
    assert_int_equal(unit_stat(u, QHCA_STAT_AQ_ERRORS), errors + 1);
    reported(u, 1);             /* EQ 0 works */
    for (i = 0; i < 2; i++) {
        gbuf_free(&cq[i].buf);
    }
}

/* EQ 0 itself fails: nothing more is written there. */
static void async_fails(void **state)
{
    struct unit *u = *state;

    first = gbuf_addr(&u->g.eq[0].buf, 0, NULL);
    u->m->may_fail = is_first;
    u->m->fail_64k = 65536;
    qhca_set_link(u->e, !u->e->link);
    u->m->fail_64k = 0;
    assert_int_equal(u->m->injected, 1);
    assert_int_equal(u->e->fatal, QHCA_FATAL_EQ);
    reported(u, 0);
    assert_int_equal(u->g.async_count[QHCA_EV_PORT], 0);
}

/* Events that wait at EQ 0 are not written any more, but do not delay it. */
static void others_wait(void **state)
{
    struct unit *u = *state;

    rule_add(u->e, RULE(STALL_EVENTS));
    qhca_set_link(u->e, !u->e->link);
    assert_false(qhca_list_empty(&u->e->q->port_ev.link));
    qhca_fault_remove(u->e, 0);         /* there is room, and work to do */
    qhca_fatal(u->e, QHCA_FATAL_AQ_DMA);
    reported(u, 1);
    assert_int_equal(u->g.async_count[QHCA_EV_PORT], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT_HOSTILE(waiting_events_fail),
        UNIT_HOSTILE(fatal_once),
        UNIT_HOSTILE(async_fails),
        UNIT_HOSTILE(others_wait),
    };

    return cmocka_run_group_tests_name("eq_fail", tests, NULL, NULL);
}
