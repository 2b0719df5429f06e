/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Retransmission and RNR timers.  There are only 64 durations: the 32 codes of
 * the local ACK timeout and the 32 RNR codes.  Timers of one duration expire in
 * the order in which they were started, so each duration has a list that is
 * always sorted: start, stop and find-next take constant time, however many QPs
 * there are.
 */
#include "transport/rc.h"

/* IBA table 45, units of 10 us. */
static const uint16_t rnr_units[32] = {
    0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512,
    768, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768,
    49152
};

uint64_t qhca_rnr_ns(uint8_t code)
{
    code &= 31;
    return (code ? rnr_units[code] : UINT64_C(65536)) * 10000;
}

static uint64_t timer_duration(uint8_t cls)
{
    return cls < QHCA_TIMER_RNR ? UINT64_C(4096) << cls
                                : qhca_rnr_ns(cls - QHCA_TIMER_RNR);
}

static void trace_timer(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_TIMER,
        .num = qp->qpn,
        .a = qp->xp->deadline,
        .b = qp->xp->timer_class >= QHCA_TIMER_RNR,
    };

    qhca_trace_emit(e, &t);
}

void qhca_timer_start(struct qhca *e, struct qhca_qp *qp, uint8_t cls)
{
    struct qhca_xport *xp = qp->xp;
    bool was_running = xp->deadline != 0;

    qhca_timer_stop(e, qp);
    xp->timer_class = cls;
    xp->deadline = qhca_now(e) + timer_duration(cls);
    qhca_list_add_tail(&e->xd->timers[cls], &xp->timer);
    e->xd->timer_mask |= UINT64_C(1) << cls;
    /* Entry points of the engine call set_timer() on return. */
    if (qhca_tracing(e) && !was_running) {
        trace_timer(e, qp);
    }
}

uint8_t qhca_timer_ack_code(const struct qhca *e, const struct qhca_qp *qp)
{
    uint8_t code = qp->timeout & 31;

    return code > e->cfg.min_ack_timeout ? code :
                                           (uint8_t)e->cfg.min_ack_timeout;
}

void qhca_timer_start_ack(struct qhca *e, struct qhca_qp *qp)
{
    uint32_t code = qhca_timer_ack_code(e, qp) + qp->xp->backoff;

    qhca_timer_start(e, qp, (uint8_t)(code < QHCA_TIMER_RNR ? code :
                                      QHCA_TIMER_RNR - 1));
}

void qhca_timer_stop(struct qhca *e, struct qhca_qp *qp)
{
    struct qhca_xport *xp = qp->xp;

    if (!xp->deadline) {
        return;
    }
    qhca_list_del(&xp->timer);
    if (qhca_list_empty(&e->xd->timers[xp->timer_class])) {
        e->xd->timer_mask &= ~(UINT64_C(1) << xp->timer_class);
    }
    xp->deadline = 0;
}

static struct qhca_qp *timer_first_of(struct qhca *e, unsigned cls)
{
    return qhca_container(e->xd->timers[cls].next, struct qhca_xport,
                          timer)->qp;
}

uint64_t qhca_xport_deadline(struct qhca *e)
{
    uint64_t mask = e->xd->timer_mask, min = UINT64_MAX;

    while (mask) {
        struct qhca_qp *qp = timer_first_of(e, (unsigned)__builtin_ctzll(mask));

        if (qp->xp->deadline < min) {
            min = qp->xp->deadline;
        }
        mask &= mask - 1;
    }
    return min;
}

void qhca_xport_timer(struct qhca *e, uint64_t now)
{
    uint64_t mask = e->xd->timer_mask;
    unsigned left = QHCA_TIMER_BATCH;

    while (mask && left) {
        unsigned cls = (unsigned)__builtin_ctzll(mask);

        while (left && (e->xd->timer_mask & UINT64_C(1) << cls)) {
            struct qhca_qp *qp = timer_first_of(e, cls);

            if (qp->xp->deadline > now) {
                break;
            }
            qhca_timer_stop(e, qp);
            if (cls < QHCA_TIMER_RNR) {
                qhca_ack_timeout(e, qp);
            } else {
                qhca_ack_rnr_over(e, qp);
            }
            left = qhca_call_spent(e) || !qhca_active(e) ? 0 : left - 1;
        }
        mask &= mask - 1;
    }
    /* Timers left over have expired as well: we are called again at once. */
}
