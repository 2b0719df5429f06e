/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trace: which events, in which order, with which numbers. */
#include "peer.h"
#include "adapter/adapter.h"
#include "base/trace.h"
#include "observe/breakpoint.h"

#define SIG QHCA_WQE_F_SIGNALED
#define MAX 256

static struct qhca_trace event[MAX];
static unsigned events;

static void keep(struct node *n, const struct qhca_trace *t)
{
    (void)n;
    assert_true(events < MAX);
    event[events++] = *t;
}

static struct peer *begin(void)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    events = 0;
    p->n->on_trace = keep;
    qhca_set_tracing(p->e, true);
    return p;
}

/* The next event of that kind from *@at on; *@at moves past it. */
static const struct qhca_trace *next(enum qhca_trace_kind kind, unsigned *at)
{
    while (*at < events) {
        const struct qhca_trace *t = &event[(*at)++];

        if (t->kind == kind) {
            return t;
        }
    }
    fail_msg("no event %s", qhca_trace_name(kind));
    return NULL;
}

static bool any(enum qhca_trace_kind kind)
{
    unsigned i;

    for (i = 0; i < events && event[i].kind != kind; i++) {
    }
    return i < events;
}

static void send_one(struct peer *p, uint64_t wr_id, uint32_t psn)
{
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = wr_id,
                               .flags = SIG }, 0, 16);
    peer_expect(p, SEND_ONLY, psn);
    peer_ack(p, psn, 0x1f);
    peer_cqe(p, scq, wr_id, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
}

/* A message is traced in the order of its processing. */
static void message(void **state)
{
    static const enum qhca_trace_kind order[] = {
        QHCA_TR_DOORBELL, QHCA_TR_WQE, QHCA_TR_TX, QHCA_TR_RX, QHCA_TR_CQE,
    };
    struct peer *p = begin();
    unsigned i, at = 0;
    uint64_t time = qhca_now(p->e);

    (void)state;
    send_one(p, 0xab, p->a.sq_psn);
    for (i = 0; i < sizeof(order) / sizeof(order[0]); i++) {
        const struct qhca_trace *t = next(order[i], &at);

        assert_true(t->time >= time);
        time = t->time;
        if (t->kind == QHCA_TR_CQE) {
            assert_int_equal(t->num, p->scq.cqn);
        } else {
            assert_int_equal(t->num, p->qp.qpn);
        }
    }
    assert_true(time <= qhca_now(p->e));
    peer_free(p);
}

/* No event before, and none after. */
static void switched(void **state)
{
    struct peer *p = begin();
    unsigned n;

    (void)state;
    qhca_set_tracing(p->e, false);
    send_one(p, 1, p->a.sq_psn);
    assert_int_equal(events, 0);
    qhca_set_tracing(p->e, true);
    send_one(p, 2, p->a.sq_psn + 1);
    assert_true(any(QHCA_TR_TX));
    qhca_set_tracing(p->e, false);
    n = events;
    send_one(p, 3, p->a.sq_psn + 2);
    assert_int_equal(events, n);
    peer_free(p);
}

/* Guest errors are reported by a text, and also counted. */
static void mistakes(void **state)
{
    struct peer *p = begin();
    const struct qhca_trace *t;
    unsigned at = 0;

    (void)state;
    guest_doorbell(&p->g, p->g.uar, QHCA_DB_SQ, 0xfffff);
    t = next(QHCA_TR_GUEST_ERROR, &at);
    assert_int_equal(t->num, 0xfffff);
    assert_int_equal(t->a, QHCA_STAT_DB_BAD_OBJECT);
    assert_non_null(t->text);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_DB_BAD_OBJECT), 1);
    qhca_set_tracing(p->e, false);
    guest_doorbell(&p->g, p->g.uar, QHCA_DB_SQ, 0xfffff);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_DB_BAD_OBJECT), 2);
    assert_int_equal(events, at);
    peer_free(p);
}

/*
 * A break needs the events for itself.  They are passed on only if the trace is
 * wanted, and that continues after the break is removed.
 */
static void with_breaks(void **state)
{
    struct qhca_break b = { .on = QHCA_ON_DROP };
    struct peer *p = begin();
    uint32_t psn = p->a.sq_psn;
    unsigned n;

    (void)state;
    assert_null(qhca_break_add(p->e, &b));
    send_one(p, 1, psn);
    assert_true(any(QHCA_TR_TX));
    qhca_set_tracing(p->e, false);
    n = events;
    send_one(p, 2, psn + 1);
    assert_int_equal(events, n);
    qhca_set_tracing(p->e, true);
    send_one(p, 3, psn + 2);
    assert_true(events > n);
    assert_true(qhca_break_remove(p->e, b.id));
    n = events;
    send_one(p, 4, psn + 3);
    assert_true(events > n);
    qhca_set_tracing(p->e, false);
    n = events;
    send_one(p, 5, psn + 4);
    assert_int_equal(events, n);
    peer_free(p);
}

/* Each kind has a name of its own; an invalid number has none. */
static void names(void **state)
{
    unsigned i, j;

    (void)state;
    for (i = 0; i < QHCA_TR_KINDS; i++) {
        assert_non_null(qhca_trace_name(i));
        for (j = 0; j < i; j++) {
            assert_string_not_equal(qhca_trace_name(i), qhca_trace_name(j));
        }
    }
    assert_string_equal(qhca_trace_name(QHCA_TR_KINDS), "unknown");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(message),
        cmocka_unit_test(switched),
        cmocka_unit_test(mistakes),
        cmocka_unit_test(with_breaks),
        cmocka_unit_test(names),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
