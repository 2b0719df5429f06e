/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The adapter: life, the run loop, the wire, time.
 *
 * All work is done in batches.  A QP with something to do is on the ready
 * list; the loop takes them in turn, gives each a slice, and whoever has more
 * goes to the end.  A QP that only waits for the wire goes to another list
 * until the wire is ready, so a blocked wire costs nothing.
 */
#include <stdlib.h>

#include "flow.h"
#include "tm.h"

#define RUN_BUDGET          256 /* packets per qhca_run() */
#define DM_MIN              (1ULL << 12)
#define DM_MAX              (1ULL << 36)
#define SLICE               32  /* packets of one QP before the next's turn */
#define LIST_READS          32  /* reads of lists that cost as one packet */

void qhca_config_default(struct qhca_config *cfg)
{
    cfg->num_vectors = 32;
    cfg->max_qp = 1u << 15;
    cfg->max_cq = 1u << 15;
    cfg->max_srq = 1u << 13;
    cfg->max_mr = 1u << 18;
    cfg->max_pd = 1u << 14;
    cfg->max_eq = 64;
    cfg->max_gid = 128;
    cfg->max_eth_queues = 16;
    cfg->speed = 100000;
    cfg->run_budget = 0;
    cfg->min_ack_timeout = 0;
    cfg->dm_size = 16 << 20;
}

static bool pow2_in(uint32_t v, uint32_t min, uint32_t max)
{
    return v >= min && v <= max && !(v & (v - 1));
}

/* What is wrong with @cfg, or NULL. */
static const char *check_config(const struct qhca_config *cfg)
{
    static const uint8_t none[6];

    if ((cfg->mac[0] & 1) || !memcmp(cfg->mac, none, 6)) {
        return "the MAC address must be a unicast address";
    }
    if (cfg->num_vectors < 1 || cfg->num_vectors > 2048) {
        return "the number of vectors must be 1 to 2048";
    }
    if (!pow2_in(cfg->max_qp, 16, 1u << 20) ||
        !pow2_in(cfg->max_cq, 16, 1u << 20) ||
        !pow2_in(cfg->max_srq, 16, 1u << 20) ||
        !pow2_in(cfg->max_mr, 16, 1u << 20) ||
        !pow2_in(cfg->max_pd, 16, 1u << 20)) {
        return "limits of QPs, CQs, SRQs, MRs and PDs must be powers of two "
               "from 16 to 1048576";
    }
    if (!pow2_in(cfg->max_eq, 2, 1u << 12)) {
        return "the limit of EQs must be a power of two from 2 to 4096";
    }
    if (cfg->max_gid < 1 || cfg->max_gid > 256) {
        return "the limit of GIDs must be 1 to 256";
    }
    if (cfg->dm_size && (cfg->dm_size < DM_MIN || cfg->dm_size > DM_MAX ||
                         (cfg->dm_size & (cfg->dm_size - 1)))) {
        return "dm-size must be 0 or a power of two from 4 KiB to 64 GiB";
    }
    if (cfg->min_ack_timeout > 31) {
        return "min-ack-timeout must be 0 to 31";
    }
    if (!pow2_in(cfg->max_eth_queues, 1, 256)) {
        return "the limit of Ethernet queues must be a power of two from 1 "
               "to 256";
    }
    return NULL;
}

static bool alloc_all(struct qhca *e)
{
    const struct qhca_config *cfg = &e->cfg;
    uint32_t uars = QHCA_BAR_DB_SIZE >> 12;

    e->pd_refs = calloc(cfg->max_pd, sizeof(*e->pd_refs));
    e->uar_refs = calloc(uars, sizeof(*e->uar_refs));
    e->gids = calloc(cfg->max_gid, sizeof(*e->gids));
    e->mod_heap = calloc(cfg->max_cq, sizeof(*e->mod_heap));
    return e->pd_refs && e->uar_refs && e->gids && e->mod_heap &&
           qhca_table_init(&e->uars, uars, 1) &&
           qhca_table_init(&e->pds, cfg->max_pd, 1) &&
           qhca_table_init(&e->xrcds, QHCA_MAX_XRCD, 1) &&
           qhca_table_init(&e->eqs, cfg->max_eq, 1) &&
           qhca_table_init(&e->cqs, cfg->max_cq, 1) &&
           qhca_table_init(&e->srqs, cfg->max_srq, 1) &&
           qhca_table_init(&e->mrs, cfg->max_mr, 1) &&
           qhca_table_init(&e->qps, cfg->max_qp, 2) &&
           qhca_table_init(&e->flow_table, QHCA_FLOWS_MAX, 0) &&
           qhca_table_init(&e->rqts, QHCA_RQTS_MAX, 0) &&
           qhca_table_init(&e->eth_sqs, cfg->max_eth_queues, 0) &&
           qhca_table_init(&e->eth_rqs, cfg->max_eth_queues, 0);
}

static void free_all(struct qhca *e)
{
    qhca_table_free(&e->uars);
    qhca_table_free(&e->pds);
    qhca_table_free(&e->xrcds);
    qhca_table_free(&e->eqs);
    qhca_table_free(&e->cqs);
    qhca_table_free(&e->srqs);
    qhca_table_free(&e->mrs);
    qhca_table_free(&e->qps);
    qhca_table_free(&e->flow_table);
    qhca_table_free(&e->rqts);
    qhca_table_free(&e->eth_sqs);
    qhca_table_free(&e->eth_rqs);
    free(e->pd_refs);
    free(e->uar_refs);
    free(e->gids);
    free(e->mcgs);
    free(e->mod_heap);
    free(e);
}

/* The reset values of registers and port; objects are gone already. */
static void reset_values(struct qhca *e)
{
    e->ctrl = 0;
    e->aq_ctrl = 0;
    e->db_shift = 12;
    e->aq_shift = 0;
    e->fatal = QHCA_FATAL_NONE;
    e->ready_flag = false;
    e->asq_base = e->acq_base = 0;
    e->asq_prod = e->asq_cons = 0;
    e->job.busy = false;
    e->latch_read_off = e->latch_write_off = 0;
    memset(e->stats, 0, sizeof(e->stats));
    e->fault_token = 0;
    qhca_port_reset(e);
    qhca_event_init(&e->port_ev, 0);
}

struct qhca *qhca_new(const struct qhca_config *cfg,
                      const struct qhca_ops *ops, void *opaque,
                      const char **err)
{
    struct qhca *e;

    *err = check_config(cfg);
    if (*err) {
        return NULL;
    }
    *err = "out of memory";
    e = calloc(1, sizeof(*e));
    if (!e) {
        return NULL;
    }
    e->cfg = *cfg;
    if (!e->cfg.run_budget) {
        e->cfg.run_budget = RUN_BUDGET;
    }
    e->ops = *ops;
    e->tracing = ops->trace != NULL;
    e->opaque = opaque;
    e->link = true;
    e->timer_set = UINT64_MAX;
    qhca_list_init(&e->ready);
    qhca_list_init(&e->blocked);
    qhca_list_init(&e->eth_ready);
    qhca_list_init(&e->tm_work);
    qhca_list_init(&e->eq_work);
    if (!alloc_all(e)) {
        free_all(e);
        return NULL;
    }
    reset_values(e);
    if (!qhca_xport_dev_init(e)) {
        free_all(e);
        return NULL;
    }
    *err = NULL;
    return e;
}

void qhca_objects_free(struct qhca *e)
{
    uint32_t n;
    struct qhca_cq *cq;

    /* In the order of who refers to whom. */
    qhca_mcgs_free(e);
    qhca_flows_free(e);
    qhca_qps_free(e);
    qhca_rqts_free(e);
    qhca_eth_qs_free(e);
    qhca_srqs_free(e);
    qhca_xrcds_free(e);
    qhca_mrs_free(e);
    for (n = 0; n < qhca_table_end(&e->cqs); n++) {
        cq = qhca_table_get(&e->cqs, n);
        if (cq) {
            qhca_cq_free(e, cq);
        }
    }
    qhca_event_forget(&e->port_ev);
    qhca_eqs_free(e);
    qhca_table_reset(&e->qps, e->qps.size);
    qhca_table_reset(&e->flow_table, e->flow_table.size);
    qhca_table_reset(&e->rqts, e->rqts.size);
    qhca_table_reset(&e->eth_sqs, e->eth_sqs.size);
    qhca_table_reset(&e->eth_rqs, e->eth_rqs.size);
    qhca_table_reset(&e->srqs, e->srqs.size);
    qhca_table_reset(&e->mrs, e->mrs.size);
    qhca_table_reset(&e->cqs, e->cqs.size);
    qhca_table_reset(&e->eqs, e->eqs.size);
    qhca_table_reset(&e->pds, e->pds.size);
    qhca_table_reset(&e->xrcds, e->xrcds.size);
    qhca_table_reset(&e->uars, e->uars.size);
}

void qhca_free(struct qhca *e)
{
    if (!e) {
        return;
    }
    qhca_objects_free(e);
    qhca_xport_dev_free(e);
    qhca_debug_free(e);
    free(e->faults);
    free_all(e);
}

void qhca_reset(struct qhca *e)
{
    qhca_objects_free(e);
    qhca_xport_dev_reset(e);
    reset_values(e);
    /*
     * The surroundings may have been reset too and forgotten that they owe
     * us a qhca_run() or a qhca_tx_ready(): ask anew.
     */
    e->kicked = false;
    e->tx_blocked = false;
    if (e->timer_set != UINT64_MAX) {
        e->timer_set = UINT64_MAX;
        e->ops.set_timer(e->opaque, UINT64_MAX);
    }
    if (e->faults) {
        qhca_fault_reset(e);
        qhca_timer_update(e);
    }
}

void qhca_fatal(struct qhca *e, uint8_t reason)
{
    if (e->fatal) {
        return;
    }
    e->fatal = reason;
    qhca_guest_error(e, QHCA_STAT_AQ_ERRORS, reason, "fatal: reset needed");
    qhca_async_event(e, &e->port_ev, QHCA_EV_DEVICE_FATAL, 0);
}

void qhca_qp_schedule(struct qhca *e, struct qhca_qp *qp)
{
    /* A blocked one may now have something to do that needs no wire. */
    if (!qhca_list_empty(&qp->ready)) {
        if (!e->tx_blocked) {
            return;
        }
        qhca_list_del(&qp->ready);
    }
    qhca_list_add_tail(&e->ready, &qp->ready);
}

void qhca_kick(struct qhca *e)
{
    if (!e->kicked) {
        e->kicked = true;
        e->ops.kick(e->opaque);
    }
}

/* Give the first QP of the ready list its slice; returns what it used. */
static unsigned run_qp(struct qhca *e, unsigned budget)
{
    struct qhca_qp *qp = qhca_container(e->ready.next, struct qhca_qp, ready);
    unsigned slice = budget < SLICE ? budget : SLICE, left = slice, used;
    uint32_t reads = e->list_reads;
    bool more;

    qhca_list_del(&qp->ready);
    more = qhca_xport_run(e, qp, &left);
    if (more) {
        qhca_list_del(&qp->ready);
        qhca_list_add_tail(left == slice && e->tx_blocked ? &e->blocked :
                                                            &e->ready,
                           &qp->ready);
    }
    /* Looking costs something too, or nothing would bound the loop. */
    used = left == slice ? 1 : slice - left;
    /* So does searching long lists. */
    return used + (e->list_reads - reads) / LIST_READS;
}

static bool eth_pending(const struct qhca *e)
{
    return !e->tx_blocked && !qhca_list_empty(&e->eth_ready);
}

static bool work_pending(struct qhca *e)
{
    return !qhca_list_empty(&e->ready) || eth_pending(e) ||
           qhca_loopback_pending(e) || !qhca_list_empty(&e->eq_work) ||
           !qhca_list_empty(&e->tm_work) ||
           e->asq_cons != e->asq_prod;
}

void qhca_work(struct qhca *e, unsigned budget)
{
    unsigned used;

    while (budget && qhca_active(e)) {
        used = 0;
        if (!qhca_list_empty(&e->tm_work)) {
            used = qhca_tm_run(e, budget < SLICE ? budget : SLICE);
        }
        if (qhca_loopback_pending(e) && used < budget) {
            used += qhca_loopback_run(e, budget - used < SLICE ?
                                         budget - used : SLICE);
        }
        if (!qhca_list_empty(&e->ready) && used < budget) {
            used += run_qp(e, budget - used);
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
    if (e->faults) {
        qhca_fault_finish(e);
    }
    qhca_debug_point(e);
    if (qhca_active(e) && work_pending(e)) {
        qhca_kick(e);
    }
    qhca_timer_update(e);
}

void qhca_run(struct qhca *e)
{
    e->kicked = false;
    if (qhca_active(e)) {
        if (e->faults) {
            qhca_fault_flush(e);
        }
        qhca_admin_run(e);
        qhca_eq_run(e);
        qhca_work(e, e->cfg.run_budget);
    }
    qhca_finish(e);
}

void qhca_timer_update(struct qhca *e)
{
    uint64_t deadline = UINT64_MAX, next;

    if (e->faults) {
        deadline = qhca_fault_deadline(e);
    }
    if (qhca_active(e)) {
        next = qhca_xport_deadline(e);
        deadline = next < deadline ? next : deadline;
        next = qhca_cq_deadline(e);
        deadline = next < deadline ? next : deadline;
    }
    /*
     * Only ever earlier: deadlines mostly move away (each ACK does that), and
     * a timer that fires for nothing is cheaper than one set anew each time.
     */
    if (deadline < e->timer_set) {
        e->timer_set = deadline;
        e->ops.set_timer(e->opaque, deadline);
    }
}

void qhca_timer(struct qhca *e)
{
    uint64_t now = qhca_now(e);

    e->timer_set = UINT64_MAX;
    if (e->faults) {
        qhca_fault_timer(e, now);
    }
    if (qhca_active(e)) {
        qhca_xport_timer(e, now);
        qhca_cq_timer(e, now);
        qhca_work(e, e->cfg.run_budget);
    }
    qhca_finish(e);
}

bool qhca_tx(struct qhca *e, const void *frame, size_t len)
{
    if (!e->link) {
        return true;            /* it falls out of the socket */
    }
    if (e->tx_blocked) {
        return false;
    }
    if (!e->ops.send(e->opaque, frame, len)) {
        e->tx_blocked = true;
        return false;
    }
    if (e->flows) {
        qhca_flow_sniff(e, frame, len);
    }
    return true;
}

void qhca_tx_ready(struct qhca *e)
{
    struct qhca_list *l;

    e->tx_blocked = false;
    if (e->faults) {
        qhca_fault_flush(e);    /* they came first */
    }
    while (!e->tx_blocked && !qhca_list_empty(&e->blocked)) {
        l = e->blocked.next;
        qhca_list_del(l);
        qhca_list_add_tail(&e->ready, l);
    }
    qhca_finish(e);
}

void qhca_set_link(struct qhca *e, bool up)
{
    if (e->faults && !qhca_fault_set_link(e, up)) {
        return;
    }
    if (e->link == up) {
        return;
    }
    e->link = up;
    if (qhca_active(e)) {
        qhca_async_event(e, &e->port_ev, QHCA_EV_PORT, 0);
    }
    qhca_debug_point(e);
}

void qhca_receive(struct qhca *e, const void *frame, size_t len)
{
    const uint8_t *f = frame;
    size_t header = 14;

    if (!qhca_active(e) || !e->link) {
        return;
    }
    if (len >= 14 && qhca_get_be16(f + 12) == QHCA_ETHERTYPE_VLAN) {
        header = 18;
    }
    if (len < header || len > header + e->mtu) {
        qhca_count(e, QHCA_STAT_ETH_RX_ERRORS);
        return;
    }
    if (e->flows) {
        qhca_flow_sniff(e, f, len);
    }
    if (!qhca_roce_rx(e, f, len) &&
        !(e->flows && qhca_flow_rx(e, f, len, false))) {
        qhca_eth_rx(e, f, len);
    }
    qhca_finish(e);
}
