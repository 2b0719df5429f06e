/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Are n steps of any kind exactly n?  The same traffic runs without stops, and
 * then with stops at every event of each kind of kind_of[], at every second and
 * at every third.  A stop must show the event that caused it.
 */
#ifndef QHCA_TEST_STEPS_H
#define QHCA_TEST_STEPS_H

#include "peer.h"
#include "observe/breakpoint_internal.h"
#include "die.h"

#define STEPS_MAX 1024

struct steps {
    struct qhca_trace event[STEPS_MAX]; /* all, without stops */
    unsigned events;
    struct qhca_trace stop[STEPS_MAX];  /* the events that caused stops */
    unsigned stops;
    enum qhca_stop_on on;
    unsigned n;                         /* 0: no stops */
};

static struct steps steps;

/* The trace event of each kind of stop; 0: not just one. */
static const uint8_t kind_of[QHCA_ONS] = {
    [QHCA_ON_DOORBELL] = QHCA_TR_DOORBELL,
    [QHCA_ON_WQE] = QHCA_TR_WQE,
    [QHCA_ON_RECV_WQE] = QHCA_TR_RECV_WQE,
    [QHCA_ON_PACKET_OUT] = QHCA_TR_TX,
    [QHCA_ON_PACKET_IN] = QHCA_TR_RX,
    [QHCA_ON_DROP] = QHCA_TR_RX_DROP,
    [QHCA_ON_CQE] = QHCA_TR_CQE,
    [QHCA_ON_EVENT] = QHCA_TR_EQE,
    [QHCA_ON_WALK] = QHCA_TR_WALK,
    [QHCA_ON_INTERRUPT] = QHCA_TR_MSIX,
    [QHCA_ON_HOP] = QHCA_TR_WALK_HOP,
    [QHCA_ON_DATA] = QHCA_TR_DATA,
    [QHCA_ON_TIMER] = QHCA_TR_TIMER,
};

/* Is @t an event of the kind @on? */
static inline bool steps_is(const struct qhca_trace *t, enum qhca_stop_on on)
{
    return on == QHCA_ON_PACKET ?
           t->kind == QHCA_TR_RX || t->kind == QHCA_TR_TX :
           kind_of[on] && t->kind == kind_of[on];
}

static inline void steps_seen(struct node *n, const struct qhca_trace *t)
{
    (void)n;
    CHECK(steps.events < STEPS_MAX, "more than %u events", STEPS_MAX);
    steps.event[steps.events++] = *t;
}

static inline void steps_stopped(struct node *n)
{
    const struct qhca_breaks *d = n->e->dbg;

    CHECK(!d->by_break && d->on == steps.on, "a stop that was not requested");
    CHECK(steps.stops < STEPS_MAX, "more than %u stops", STEPS_MAX);
    steps.stop[steps.stops++] = d->why;
    qhca_break_step(n->e, steps.on, steps.n);
    n->go_at_once = true;
}

/* Start the traffic of @n. */
static inline void steps_begin(struct node *n)
{
    if (steps.n) {
        n->on_stop = steps_stopped;
        CHECK(!qhca_break_step(n->e, steps.on, steps.n), "no step");
    } else {
        n->on_trace = steps_seen;
    }
}

/* The traffic is over. */
static inline void steps_end(struct node *n)
{
    n->on_trace = NULL;
    n->on_stop = NULL;
    qhca_break_step_cancel(n->e);
}

/* Only the position in the trail and host addresses may differ. */
static inline bool steps_same(const struct qhca_trace *a,
                              const struct qhca_trace *b)
{
    return a->kind == b->kind && a->num == b->num && a->peer == b->peer &&
           a->index == b->index && a->psn == b->psn && a->a == b->a &&
           a->b == b->b && a->addr == b->addr && a->len == b->len &&
           a->wqe == b->wqe && a->op == b->op &&
           a->syndrome == b->syndrome && a->time == b->time;
}

/* Step through @traffic, which calls steps_begin() and steps_end(). */
static inline void steps_check(void (*traffic)(void))
{
    unsigned on, n, i, k;

    memset(&steps, 0, sizeof(steps));
    traffic();
    CHECK(steps.events, "no event at all");
    for (on = 0; on < QHCA_ONS; on++) {
        for (i = k = 0; i < steps.events; i++) {
            k += steps_is(&steps.event[i], on);
        }
        for (n = 1; k && n <= 3; n++) {
            steps.on = on;
            steps.n = n;
            steps.stops = 0;
            traffic();
            steps.n = 0;
            CHECK(steps.stops == k / n, "%s: %u events, %u stops of %u each",
                  qhca_on_name(on), k, steps.stops, n);
            for (i = k = 0; i < steps.events; i++) {
                const struct qhca_trace *t = &steps.event[i];

                if (!steps_is(t, on) || ++k % n) {
                    continue;
                }
                CHECK(steps_same(t, &steps.stop[k / n - 1]),
                      "%s: stop %u of %u each is another event",
                      qhca_on_name(on), k / n, n);
            }
        }
    }
}

/* Event number @i of the kind @on, without stops. */
static inline const struct qhca_trace *steps_event(enum qhca_stop_on on,
                                                   unsigned i)
{
    unsigned at, left = i;

    for (at = 0; at < steps.events; at++) {
        if (steps_is(&steps.event[at], on) && !left--) {
            return &steps.event[at];
        }
    }
    die("no event %s %u", qhca_on_name(on), i);
}

static inline unsigned steps_count(enum qhca_stop_on on)
{
    unsigned i, k = 0;

    for (i = 0; i < steps.events; i++) {
        k += steps_is(&steps.event[i], on);
    }
    return k;
}

/*
 * Check that exactly these packets have come in: to @qpn, from PEER_QPN, with
 * PSNs from @psn on and the BTH opcodes @op.
 */
static inline void steps_packets_in(uint32_t qpn, uint32_t psn,
                                    const uint8_t *op, unsigned count)
{
    unsigned i;

    assert_int_equal(steps_count(QHCA_ON_PACKET_IN), count);
    for (i = 0; i < count; i++) {
        const struct qhca_trace *t = steps_event(QHCA_ON_PACKET_IN, i);

        assert_int_equal(t->num, qpn);
        assert_int_equal(t->peer, PEER_QPN);
        assert_int_equal(t->psn, (psn + i) & 0xffffff);
        assert_int_equal(t->a, op[i]);
    }
}

#endif /* QHCA_TEST_STEPS_H */
