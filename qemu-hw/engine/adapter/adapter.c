/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Creating, resetting and destroying an adapter. */
#include <stdlib.h>

#include "adapter/adapter.h"

#define RUN_BUDGET          256 /* packets per qhca_run() */
#define RESET_BUDGET        512 /* objects per qhca_reset() */

/* The parts of an adapter that have objects: a reset can replace them. */
struct contents {
    struct qhca_memory mem;
    struct qhca_queues q;
    struct qhca_xport_dev xd;
    struct qhca_ethernet eth;
};

/* The other parts, in a single allocation. */
struct shell {
    struct qhca e;
    struct qhca_memlinks ml;
    struct qhca_adapter ad;
};

static void use_contents(struct qhca *e, struct contents *c)
{
    e->mem = &c->mem;
    e->q = &c->q;
    e->xd = &c->xd;
    e->eth = &c->eth;
}

static struct qhca *alloc_parts(void)
{
    struct shell *s = calloc(1, sizeof(*s));
    struct contents *c = calloc(1, sizeof(*c));

    if (!s || !c) {
        free(s);
        free(c);
        return NULL;
    }
    s->e.ml = &s->ml;
    s->e.ad = &s->ad;
    use_contents(&s->e, c);
    return &s->e;
}

/* The operations of each QP type. */
static void adapter_set_qp_ops(struct qhca *e)
{
    const struct qhca_qp_ops **ops = e->q->qp_ops;

    ops[QHCA_QPT_RC] = &qhca_connected_qp_ops;
    ops[QHCA_QPT_UC] = &qhca_connected_qp_ops;
    ops[QHCA_QPT_XRC_INI] = &qhca_connected_qp_ops;
    ops[QHCA_QPT_XRC_TGT] = &qhca_connected_qp_ops;
    ops[QHCA_QPT_UD] = &qhca_ud_qp_ops;
    ops[QHCA_QPT_GSI] = &qhca_ud_qp_ops;
    ops[QHCA_QPT_RAW] = &qhca_raw_qp_ops;
    ops[QHCA_QPT_RSS] = &qhca_rss_qp_ops;
    e->q->saved_wq_ops = &qhca_saved_wq_ops;
    e->q->xport_size = sizeof(struct qhca_xport);
}

/* Object numbers of each kind. */
struct numbers {
    struct qhca_idr *idr;
    uint32_t max, first;        /* numbers: first .. max - 1 */
};

#define UARS    (QHCA_BAR_DB_SIZE >> 12)

/* Call @fn for each kind, until it returns false. */
static bool each_numbers(struct qhca *e, bool (*fn)(const struct numbers *t))
{
    const struct qhca_config *cfg = &e->cfg;
    const struct numbers all[] = {
        { &e->mem->uars, UARS, 1 },
        { &e->mem->pds, cfg->max_pd, 1 },
        { &e->q->xrcds, QHCA_MAX_XRCD, 1 },
        { &e->q->eqs, cfg->max_eq, 1 },
        { &e->q->cqs, cfg->max_cq, 1 },
        { &e->q->srqs, cfg->max_srq, 1 },
        { &e->mem->mrs, cfg->max_mr, 1 },
        { &e->q->qps, cfg->max_qp, 2 },
        { &e->eth->flow_idr, QHCA_FLOWS_MAX, 0 },
        { &e->eth->rqts, QHCA_RQTS_MAX, 0 },
        { &e->eth->shapers, QHCA_MAX_SHAPERS, 1 },
        { &e->eth->eth_sqs, cfg->max_eth_queues, 0 },
        { &e->eth->eth_rqs, cfg->max_eth_queues, 0 },
    };
    unsigned i;

    for (i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        if (!fn(&all[i])) {
            return false;
        }
    }
    return true;
}

static bool numbers_init(const struct numbers *t)
{
    return qhca_idr_init(t->idr, t->max, t->first);
}

static bool numbers_free(const struct numbers *t)
{
    qhca_idr_free(t->idr);
    return true;
}

static bool alloc_all(struct qhca *e)
{
    const struct qhca_config *cfg = &e->cfg;

    e->mem->pd_refs = calloc(cfg->max_pd, sizeof(*e->mem->pd_refs));
    e->mem->uar_refs = calloc(UARS, sizeof(*e->mem->uar_refs));
    e->xd->gids = calloc(cfg->max_gid, sizeof(*e->xd->gids));
    e->q->mod_heap = calloc(cfg->max_cq, sizeof(*e->q->mod_heap));
    return e->mem->pd_refs && e->mem->uar_refs && e->xd->gids &&
           e->q->mod_heap && each_numbers(e, numbers_init);
}

void qhca_adapter_free(struct qhca *e)
{
    qhca_xport_dev_free(e);
    each_numbers(e, numbers_free);
    free(e->mem->pd_refs);
    free(e->mem->uar_refs);
    free(e->xd->gids);
    free(e->xd->mcgs);
    free(e->q->mod_heap);
    qhca_gro_free(&e->eth->gro);
    free(qhca_container(e->mem, struct contents, mem));
    free(e);
}

/* Set registers and port to their reset values; the objects are gone. */
static void reset_values(struct qhca *e)
{
    e->ad->ctrl = 0;
    e->ad->aq_ctrl = 0;
    e->ad->db_shift = 12;
    e->ad->aq_shift = 0;
    e->fatal = QHCA_FATAL_NONE;
    e->ready_flag = false;
    e->ad->asq_base = e->ad->acq_base = 0;
    e->ad->asq_prod = e->ad->asq_cons = 0;
    e->ad->job.busy = false;
    e->ad->job.held = false;
    e->ad->latch_read_off = e->ad->latch_write_off = 0;
    memset(e->stats, 0, sizeof(e->stats));
    e->mem->page_fault_token = 0;
    qhca_port_reset(e);
    qhca_event_init(&e->q->port_ev, 0);
}

struct qhca *qhca_adapter_alloc(const struct qhca_config *cfg)
{
    struct qhca *e = alloc_parts();

    if (!e) {
        return NULL;
    }
    e->cfg = *cfg;
    adapter_set_qp_ops(e);
    qhca_memlinks_init(e, qhca_xport_took_back);
    qhca_list_init(&e->q->ready);
    qhca_list_init(&e->q->blocked);
    qhca_list_init(&e->eth->eth_ready);
    qhca_list_init(&e->eth->wq_flush);
    qhca_list_init(&e->q->tm_work);
    qhca_list_init(&e->q->eq_work);
    qhca_gro_init(&e->eth->gro);
    if (!alloc_all(e) || !qhca_xport_dev_init(e)) {
        qhca_adapter_free(e);
        return NULL;
    }
    return e;
}

void qhca_swap_contents(struct qhca *a, struct qhca *b)
{
    struct contents *of_a = qhca_container(a->mem, struct contents, mem);
    struct contents *of_b = qhca_container(b->mem, struct contents, mem);

    use_contents(a, of_b);
    use_contents(b, of_a);
}

struct qhca *qhca_new(const struct qhca_config *cfg,
                      const struct qhca_ops *ops, void *opaque,
                      const char **err)
{
    struct qhca *e;

    *err = qhca_config_bad(cfg);
    if (*err) {
        return NULL;
    }
    *err = "out of memory";
    e = qhca_adapter_alloc(cfg);
    if (!e) {
        return NULL;
    }
    if (!e->cfg.run_budget) {
        e->cfg.run_budget = RUN_BUDGET;
    }
    if (!e->cfg.reset_budget) {
        e->cfg.reset_budget = RESET_BUDGET;
    }
    e->ops = *ops;
    e->tracing = ops->trace != NULL;
    e->opaque = opaque;
    e->link = true;
    e->ad->timer_set = UINT64_MAX;
    reset_values(e);
    *err = NULL;
    return e;
}

void qhca_free(struct qhca *e)
{
    if (!e) {
        return;
    }
    qhca_memlinks_free(e);
    qhca_remains_end(e);
    qhca_objects_free(e);
    if (e->hooks) {
        e->hooks->free(e);
    }
    qhca_adapter_free(e);
}

bool qhca_free_part(struct qhca *e, unsigned budget)
{
    qhca_memlinks_free(e);
    if (e->ad->remains) {
        qhca_remains_free(e, budget);
        return false;
    }
    if (!qhca_objects_free_part(e, budget)) {
        return false;
    }
    qhca_free(e);
    return true;
}

void qhca_reset(struct qhca *e)
{
    qhca_memlink_revoke_all(e);
    qhca_objects_remove(e);
    qhca_xport_dev_reset(e);
    reset_values(e);
    /*
     * The environment may have been reset too and forgotten that it owes us a
     * qhca_run() or a qhca_tx_ready(): ask again.
     */
    e->kicked = false;
    e->tx_blocked = false;
    if (e->ad->timer_set != UINT64_MAX) {
        e->ad->timer_set = UINT64_MAX;
        e->ops.set_timer(e->opaque, UINT64_MAX);
    }
    qhca_memlinks_reset(e);
    if (e->faults) {
        e->hooks->reset(e);
        qhca_timer_update(e);
    }
    if (e->ad->remains) {
        qhca_kick(e);
    }
}
