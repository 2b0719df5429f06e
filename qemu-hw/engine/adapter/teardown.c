/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Destroying all objects.  A guest can have hundreds of thousands and reset the
 * adapter by a single store, so the reset only puts them aside, as an adapter
 * of their own with nothing to do.  Later calls of the engine destroy them.
 *
 * This leaves megabytes of empty tables, which the next such reset reuses:
 * allocating them takes milliseconds.  There are few of them, as creating
 * objects destroys eight times as many that were put aside.
 */
#include <limits.h>
#include <stdlib.h>

#include "adapter/adapter.h"

/* A number without an object costs a fraction of an object. */
#define NONE_COST           1
#define OBJECT_COST         64

#define TABLE(name, part, idr)                                          \
    static const struct qhca_idr *name##_idr(const struct qhca *e)    \
    {                                                                   \
        return &e->part->idr;                                           \
    }

TABLE(flow, eth, flow_idr)
TABLE(mr, mem, mrs)
TABLE(qp, q, qps)
TABLE(rqt, eth, rqts)
TABLE(eth_sq, eth, eth_sqs)
TABLE(eth_rq, eth, eth_rqs)
TABLE(shaper, eth, shapers)
TABLE(srq, q, srqs)
TABLE(xrcd, q, xrcds)
TABLE(cq, q, cqs)
TABLE(eq, q, eqs)

/* QPs and WQs share their numbers. */
static bool qpn_discard(struct qhca *e, uint32_t num)
{
    return qhca_qp_discard(e, num) || qhca_wq_discard(e, num);
}

/*
 * Users before the objects that they use.  Multicast groups have no numbers,
 * but slots of a hash.  A QP has several parts, so it costs as much as several
 * objects.
 */
static const struct {
    bool (*discard)(struct qhca *e, uint32_t num);
    const struct qhca_idr *(*idr)(const struct qhca *e);
    unsigned weight;
} kinds[] = {
    { qhca_mcg_discard, NULL, 4 },
    { qhca_flow_discard, flow_idr, 1 },
    { qhca_mw_discard, mr_idr, 1 },
    { qpn_discard, qp_idr, 4 },
    { qhca_rqt_discard, rqt_idr, 1 },
    { qhca_eth_sq_discard, eth_sq_idr, 1 },
    { qhca_eth_rq_discard, eth_rq_idr, 1 },
    { qhca_shaper_isolate, shaper_idr, 1 },
    { qhca_shaper_discard, shaper_idr, 1 },
    { qhca_srq_discard, srq_idr, 1 },
    { qhca_xrcd_discard, xrcd_idr, 1 },
    { qhca_mr_discard, mr_idr, 1 },
    { qhca_cq_discard, cq_idr, 1 },
    { qhca_eq_discard, eq_idr, 1 },
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static uint32_t kind_end(const struct qhca *e, unsigned kind)
{
    if (!kinds[kind].idr) {
        return e->xd->mc_groups ? QHCA_MCG_SLOTS : 0;
    }
    return qhca_idr_end(kinds[kind].idr(e));
}

/* All objects are gone. */
static void numbers_reset(struct qhca *e)
{
    qhca_idr_reset(&e->q->qps, e->q->qps.size);
    qhca_idr_reset(&e->eth->flow_idr, e->eth->flow_idr.size);
    qhca_idr_reset(&e->eth->rqts, e->eth->rqts.size);
    qhca_idr_reset(&e->eth->shapers, e->eth->shapers.size);
    qhca_idr_reset(&e->eth->eth_sqs, e->eth->eth_sqs.size);
    qhca_idr_reset(&e->eth->eth_rqs, e->eth->eth_rqs.size);
    qhca_idr_reset(&e->q->srqs, e->q->srqs.size);
    qhca_idr_reset(&e->mem->mrs, e->mem->mrs.size);
    qhca_idr_reset(&e->q->cqs, e->q->cqs.size);
    qhca_idr_reset(&e->q->eqs, e->q->eqs.size);
    qhca_idr_reset(&e->mem->pds, e->mem->pds.size);
    qhca_idr_reset(&e->q->xrcds, e->q->xrcds.size);
    qhca_idr_reset(&e->mem->uars, e->mem->uars.size);
}

void qhca_objects_free(struct qhca *e)
{
    unsigned kind;
    uint32_t n;

    for (kind = 0; kind < KINDS; kind++) {
        for (n = 0; n < kind_end(e, kind); n++) {
            kinds[kind].discard(e, n);
        }
    }
    qhca_event_forget(&e->q->port_ev);
    numbers_reset(e);
}

/* ---- in parts ---- */

static bool objects_few(const struct qhca *e)
{
    uint64_t cost = (uint64_t)e->xd->mc_groups * OBJECT_COST;
    unsigned kind;

    for (kind = 0; kind < KINDS; kind++) {
        if (kinds[kind].idr) {
            const struct qhca_idr *t = kinds[kind].idr(e);

            cost += (uint64_t)t->used * kinds[kind].weight * OBJECT_COST +
                    qhca_idr_end(t) * NONE_COST;
        }
    }
    return cost <= (uint64_t)e->cfg.reset_budget * OBJECT_COST;
}

/* Empty tables, used before or not; NULL: out of memory. */
static struct qhca_remains *empty_contents(struct qhca *e)
{
    struct qhca_remains *r = e->ad->spare;

    if (r) {
        e->ad->spare = r->next;
        r->next = NULL;
        r->kind = 0;
        r->num = 0;
        return r;
    }
    r = calloc(1, sizeof(*r));
    if (r) {
        r->of = qhca_adapter_alloc(&e->cfg);
        if (r->of) {
            return r;
        }
        free(r);
    }
    return NULL;
}

/* Detach the objects from the adapter; false: out of memory. */
static bool objects_put_aside(struct qhca *e)
{
    struct qhca_remains *r = empty_contents(e), **p = &e->ad->remains;
    struct qhca *of;

    if (!r) {
        return false;
    }
    of = r->of;
    /* QPs that wait for a memory link are in lists of the link. */
    qhca_memlinks_wake(e);
    qhca_memlinks_woken(e);
    qhca_swap_contents(e, of);
    /* Frames that are held will not be delivered. */
    qhca_gro_init(&of->eth->gro);
    qhca_event_forget(&of->q->port_ev);
    of->kicked = true;          /* it is never run */
    e->sniff = NULL;
    e->tx_wait = NULL;
    while (*p) {
        p = &(*p)->next;
    }
    *p = r;
    return true;
}

void qhca_objects_remove(struct qhca *e)
{
    if (objects_few(e) || !objects_put_aside(e)) {
        qhca_objects_free(e);
    }
}

/* Process the next number; returns the cost, or 0 if there is none. */
static unsigned remains_step(struct qhca_remains *r)
{
    while (r->kind < KINDS && r->num >= kind_end(r->of, r->kind)) {
        r->kind++;
        r->num = 0;
    }
    if (r->kind == KINDS) {
        return 0;
    }
    return kinds[r->kind].discard(r->of, r->num++) ?
           kinds[r->kind].weight * OBJECT_COST : NONE_COST;
}

/* The oldest remains have no objects any more: keep their tables. */
static void remains_spare(struct qhca *e)
{
    struct qhca_remains *r = e->ad->remains;

    numbers_reset(r->of);
    e->ad->remains = r->next;
    r->next = e->ad->spare;
    e->ad->spare = r;
}

bool qhca_objects_free_part(struct qhca *e, unsigned budget)
{
    uint64_t most = (uint64_t)budget * OBJECT_COST, cost = 0;
    unsigned step = 1;

    e->ad->own.of = e;
    while (step && cost < most) {
        step = remains_step(&e->ad->own);
        cost += step;
    }
    return !step;
}

void qhca_remains_free(struct qhca *e, unsigned budget)
{
    uint64_t most = (uint64_t)budget * OBJECT_COST, cost = 0;
    unsigned step;

    while (e->ad->remains && cost < most) {
        step = remains_step(e->ad->remains);
        cost += step;
        if (!step) {
            remains_spare(e);
        }
    }
    qhca_cost(e, (uint32_t)(cost / OBJECT_COST));
}

void qhca_remains_end(struct qhca *e)
{
    struct qhca_remains *r;

    qhca_remains_free(e, UINT_MAX);
    while ((r = e->ad->spare)) {
        e->ad->spare = r->next;
        qhca_adapter_free(r->of);
        free(r);
    }
}
