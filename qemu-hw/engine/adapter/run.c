/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The run loop, the readiness of the wire, time.
 *
 * All work is done in batches.  A QP with work is on the ready list; the loop
 * takes QPs in turn, gives each a slice, and moves those with more to do to the
 * end.  A QP that only waits for the wire is on another list until the wire is
 * ready, so a blocked wire costs nothing.
 */
#include "adapter/adapter.h"

#define SLICE               32  /* packets of one QP per turn */
#define DROP_BUDGET         4096    /* packets of links to be dropped */
#define REMAINS_BUDGET      1024    /* objects from before a reset */
#define LIST_READS          32  /* list reads that count as one packet */

/* Run the first QP of the ready list for a slice; returns the budget used. */
static unsigned run_qp(struct qhca *e, unsigned budget)
{
    struct qhca_qp *qp = qhca_container(e->q->ready.next, struct qhca_qp,
                                        ready);
    /* a frame that sniffers see costs as much as many */
    unsigned most = e->sniff ? 1 : SLICE;
    unsigned slice = budget < most ? budget : most, left = slice, used;
    struct qhca_list *list = &e->q->ready;
    uint32_t reads = e->list_reads;
    bool more;

    qhca_list_del(&qp->ready);
    e->tx_wait = NULL;
    more = qp->ops->run(e, qp, &left);
    if (more) {
        /* at the cost limit it may not wait for the wire: another turn */
        if (left == slice && e->tx_wait) {
            list = e->tx_wait;
        } else if (left == slice && e->tx_blocked && !qhca_call_spent(e)) {
            list = &e->q->blocked;
        }
        qhca_list_del(&qp->ready);
        qhca_list_add_tail(list, &qp->ready);
    }
    /* A QP without work costs 1, or nothing would bound the loop. */
    used = left == slice ? 1 : slice - left;
    /* Searching long lists counts too. */
    return used + (e->list_reads - reads) / LIST_READS;
}

static bool eth_pending(const struct qhca *e)
{
    return !qhca_eth_blocked(e) && !qhca_list_empty(&e->eth->eth_ready);
}

static bool work_pending(struct qhca *e)
{
    return !qhca_list_empty(&e->q->ready) || eth_pending(e) ||
           qhca_loopback_pending(e) || !qhca_list_empty(&e->q->eq_work) ||
           qhca_wqs_pending(e) ||
           !qhca_list_empty(&e->q->tm_work) || qhca_gro_pending(e) ||
           !qhca_list_empty(&e->ml->woken) || e->ml->pending ||
           qhca_admin_pending(e);
}

void qhca_memlinks_woken(struct qhca *e)
{
    qhca_list_splice_tail(&e->q->ready, &e->ml->woken);
}

void qhca_work(struct qhca *e, unsigned budget)
{
    unsigned used;

    while (budget && qhca_active(e) && !qhca_call_spent(e)) {
        used = 0;
        qhca_memlinks_woken(e);
        if (e->ml->pending) {
            used = qhca_memlinks_rx(e, budget < SLICE ? budget : SLICE);
        }
        if (!qhca_list_empty(&e->q->tm_work) && used < budget) {
            used += qhca_tm_run(e, budget - used < SLICE ? budget - used :
                                                           SLICE);
        }
        if (qhca_loopback_pending(e) && used < budget) {
            used += qhca_loopback_run(e, budget - used < SLICE ?
                                      budget - used : SLICE);
        }
        if (!qhca_list_empty(&e->q->ready) && used < budget) {
            used += run_qp(e, budget - used);
        }
        if (qhca_wqs_pending(e) && used < budget) {
            used += qhca_wqs_flush(e, budget - used < SLICE ? budget - used :
                                                              SLICE);
        }
        if (eth_pending(e) && used < budget) {
            used += qhca_eth_run(e, budget - used < SLICE ? budget - used :
                                                            SLICE);
        }
        if (!used) {
            break;
        }
        budget -= used < budget ? used : budget;
    }
}

void qhca_finish(struct qhca *e)
{
    if (qhca_active(e)) {
        qhca_gro_run(e);
    } else {
        qhca_gro_forget(e);
    }
    qhca_finish_merging(e);
}

void qhca_finish_merging(struct qhca *e)
{
    if (e->faults) {
        e->hooks->finish(e);
    }
    qhca_break_point(e);
    qhca_memlinks_update(e);
    if ((qhca_active(e) && work_pending(e)) || e->ad->remains) {
        qhca_kick(e);
    }
    qhca_timer_update(e);
}

void qhca_run(struct qhca *e)
{
    qhca_call_begins(e);
    e->kicked = false;
    qhca_remains_free(e, REMAINS_BUDGET);
    if (qhca_active(e)) {
        if (e->faults) {
            e->hooks->flush(e);
        }
        qhca_last_acks_send(e);
        qhca_admin_run(e);
        qhca_eq_run(e);
        qhca_work(e, e->cfg.run_budget);
    } else if (e->ml->pending) {
        /* Drop what has arrived. */
        qhca_memlinks_rx(e, DROP_BUDGET);
        if (e->ml->pending) {
            qhca_kick(e);
        }
    }
    qhca_finish(e);
}

void qhca_timer_update(struct qhca *e)
{
    uint64_t deadline = UINT64_MAX, next;

    if (e->faults) {
        deadline = e->hooks->deadline(e);
    }
    if (e->tx_paused) {
        next = qhca_tx_pause_deadline(e, qhca_now(e));
        deadline = next < deadline ? next : deadline;
    }
    if (qhca_active(e)) {
        next = qhca_xport_deadline(e);
        deadline = next < deadline ? next : deadline;
        next = qhca_cq_deadline(e);
        deadline = next < deadline ? next : deadline;
        next = qhca_memlinks_deadline(e);
        deadline = next < deadline ? next : deadline;
        next = qhca_shaper_deadline(e);
        deadline = next < deadline ? next : deadline;
        next = qhca_gro_deadline(e);
        deadline = next < deadline ? next : deadline;
    }
    /*
     * Only ever move it earlier: deadlines mostly move away (each ACK does
     * that), and a spurious timer is cheaper than setting it anew each time.
     */
    if (deadline < e->ad->timer_set) {
        e->ad->timer_set = deadline;
        e->ops.set_timer(e->opaque, deadline);
    }
}

/* The wire accepts frames again: resume what waits for it. */
static void tx_resume(struct qhca *e)
{
    e->tx_blocked = false;
    if (e->faults) {
        e->hooks->flush(e);    /* these frames are older */
    }
    if (qhca_active(e)) {
        qhca_last_acks_send(e);
    }
    if (!e->tx_blocked) {
        qhca_qps_unblock(e);
    }
}

void qhca_timer(struct qhca *e)
{
    uint64_t now = qhca_now(e);

    qhca_call_begins(e);
    e->ad->timer_set = UINT64_MAX;
    if (e->tx_paused && now >= qhca_tx_pause_deadline(e, now)) {
        e->tx_paused = 0;
        tx_resume(e);
    }
    if (e->faults) {
        e->hooks->timer(e, now);
    }
    if (qhca_active(e)) {
        qhca_memlinks_timer(e, now);
        qhca_xport_timer(e, now);
        qhca_cq_timer(e, now);
        qhca_shaper_timer(e, now);
        qhca_work(e, e->cfg.run_budget);
    }
    qhca_finish(e);
}

void qhca_tx_ready(struct qhca *e)
{
    qhca_call_begins(e);
    tx_resume(e);
    qhca_finish(e);
}

void qhca_set_link(struct qhca *e, bool up)
{
    if (e->faults && !e->hooks->set_link(e, up)) {
        return;
    }
    if (e->link == up) {
        return;
    }
    e->link = up;
    if (qhca_active(e)) {
        qhca_async_event(e, &e->q->port_ev, QHCA_EV_PORT, 0);
    }
    qhca_break_point(e);
}
