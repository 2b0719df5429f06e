/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inspecting objects: one, or all of a kind. */
#include "observe/inspect_internal.h"

typedef void summary_fn(const struct qhca_emit *em, const void *obj);

static void inspect_sum_qp(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_qp *qp = obj;

    qhca_emit_dec(em, "qpn", qp->qpn);
    qhca_emit_enum(em, "type", "type_name", qhca_names_qp_type, qp->type,
                   false);
    qhca_emit_enum(em, "state", "state_name", qhca_names_qp_state, qp->state,
                   false);
    qhca_emit_dec(em, "dest_qpn", qp->dest_qpn);
    qhca_emit_dec(em, "uar", qp->uar);
    qhca_emit_dec(em, "sq_head", qp->sq_head);
    qhca_emit_dec(em, "sq_next", qp->sq_next);
    qhca_emit_dec(em, "sq_tail", qp->sq_tail);
    qhca_emit_dec(em, "rq_head", qp->rq.head);
    qhca_emit_dec(em, "rq_tail", qp->rq.tail);
    qhca_emit_dec(em, "tx_packets", qp->tx_packets);
    qhca_emit_dec(em, "rx_packets", qp->rx_packets);
}

static void inspect_sum_cq(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_cq *cq = obj;

    qhca_emit_dec(em, "cqn", cq->cqn);
    qhca_emit_dec(em, "depth", 1u << cq->shift);
    qhca_emit_dec(em, "prod", cq->prod);
    qhca_emit_dec(em, "cons", cq->cons);
    qhca_emit_enum(em, "state", "state_name", qhca_names_cq_state, cq->state,
                   false);
    qhca_emit_enum(em, "arm", "arm_name", qhca_names_arm, cq->arm, false);
    qhca_emit_dec(em, "eqn", cq->eq->eqn);
    qhca_emit_dec(em, "uar", cq->uar);
}

static void inspect_sum_srq(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_srq *srq = obj;

    qhca_emit_dec(em, "srqn", srq->srqn);
    qhca_emit_dec(em, "depth", 1u << srq->shift);
    qhca_emit_dec(em, "head", srq->head);
    qhca_emit_dec(em, "tail", srq->tail);
    qhca_emit_dec(em, "limit", srq->limit);
    qhca_emit_flags(em, "flags_names", qhca_names_srq_flag, srq->flags);
    qhca_emit_dec(em, "pd", srq->pd);
}

static void inspect_sum_eq(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_eq *eq = obj;

    qhca_emit_dec(em, "eqn", eq->eqn);
    qhca_emit_dec(em, "depth", 1u << eq->shift);
    qhca_emit_dec(em, "vector", eq->vector);
    qhca_emit_dec(em, "prod", eq->prod);
    qhca_emit_dec(em, "cons", eq->cons);
    qhca_emit_flags(em, "flags_names", qhca_names_eq_flag, eq->flags);
    if (!(eq->flags & QHCA_EQ_F_RECORD)) {
        qhca_emit_flag(em, "armed", eq->armed);
    }
}

static void inspect_sum_mr(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_mr *mr = obj;

    qhca_emit_hex(em, "key", mr->key);
    qhca_emit_dec(em, "pd", mr->pd);
    qhca_emit_hex(em, "iova", mr->iova);
    qhca_emit_hex(em, "len", mr->len);
    qhca_emit_flags(em, "access_names", qhca_names_access, mr->access);
    qhca_emit_flags(em, "flags_names", qhca_names_mr_flag, mr->flags);
    qhca_emit_enum(em, "state", "state_name", qhca_names_mr_state, mr->state,
                   false);
}

static void inspect_sum_mw(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_mw *mw = obj;

    inspect_sum_mr(em, obj);
    qhca_emit_flag(em, "bound", mw->bound);
    if (mw->bound) {
        qhca_emit_hex(em, "mr", mw->bound->key);
    }
    if (mw->qpn) {
        qhca_emit_dec(em, "qpn", mw->qpn);
    }
}

static void inspect_sum_eth(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_eth_q *q = obj;

    qhca_emit_dec(em, "number", q->num);
    qhca_emit_enum(em, "state", "state_name", qhca_names_wq_state, q->state,
                   false);
    qhca_emit_dec(em, "depth", 1u << q->ring.shift);
    qhca_emit_dec(em, "head", q->ring.head);
    qhca_emit_dec(em, "tail", q->ring.tail);
    qhca_emit_dec(em, "cqn", q->cq->cqn);
    qhca_emit_flag(em, "dead", q->state == QHCA_WQS_ERR);
    if (q->is_sq) {
        qhca_emit_dec(em, "shaper", q->turn.up ? q->turn.up->num :
                                                 QHCA_SHAPER_NONE);
        qhca_emit_flag(em, "waits", qhca_turn_waits(&q->turn));
    } else {
        qhca_emit_flag(em, "split", q->flags & QHCA_ETH_Q_F_HDS);
        qhca_emit_dec(em, "dropped", q->dropped);
    }
}

/* Some tables hold objects of more than one kind. */
static bool inspect_is_qp(const void *obj)
{
    return !((const struct qhca_qpn_owner *)obj)->is_wq;
}

static bool inspect_is_wq(const void *obj)
{
    return !inspect_is_qp(obj);
}

static bool inspect_is_rss(const void *obj)
{
    return inspect_is_qp(obj) && ((const struct qhca_qp *)obj)->rss;
}

static bool inspect_is_mw(const void *obj)
{
    return ((const struct qhca_mr *)obj)->flags & QHCA_MR_F_MW;
}

static bool inspect_is_mr(const void *obj)
{
    return !inspect_is_mw(obj);
}

#define TABLE(name, part)                                               \
    static const struct qhca_idr *name(const struct qhca *e)            \
    {                                                                   \
        return &e->part->name;                                          \
    }

TABLE(uars, mem)
TABLE(pds, mem)
TABLE(mrs, mem)
TABLE(xrcds, q)
TABLE(eqs, q)
TABLE(cqs, q)
TABLE(srqs, q)
TABLE(qps, q)
TABLE(eth_sqs, eth)
TABLE(eth_rqs, eth)
TABLE(rqts, eth)
TABLE(flow_idr, eth)
TABLE(shapers, eth)

/* Properties of each kind; NULL if a kind does not have one. */
static const struct kind {
    const char *name;
    /* The table with their numbers; NULL: not numbered. */
    const struct qhca_idr *(*idr)(const struct qhca *e);
    bool (*is)(const void *obj);        /* NULL: all objects of the table */
    summary_fn *summary;
    qhca_cmd_fn *query;
    const struct qhca_field *fields;
    size_t size;                /* of the context */
} kinds[QHCA_OBJECTS] = {
    [QHCA_OBJ_DEVICE] = {
        .name = "device", .query = qhca_cmd_query_device,
        .fields = qhca_fields_caps, .size = sizeof(struct qhca_dev_caps),
    },
    [QHCA_OBJ_QP] = {
        .name = "qp", .idr = qps, .is = inspect_is_qp,
        .summary = inspect_sum_qp, .query = qhca_cmd_query_qp,
        .fields = qhca_fields_qpc, .size = sizeof(struct qhca_qpc),
    },
    [QHCA_OBJ_CQ] = {
        .name = "cq", .idr = cqs,
        .summary = inspect_sum_cq, .query = qhca_cmd_query_cq,
        .fields = qhca_fields_cqc, .size = sizeof(struct qhca_cqc),
    },
    [QHCA_OBJ_SRQ] = {
        .name = "srq", .idr = srqs,
        .summary = inspect_sum_srq, .query = qhca_cmd_query_srq,
        .fields = qhca_fields_srqc, .size = sizeof(struct qhca_srqc),
    },
    [QHCA_OBJ_EQ] = {
        .name = "eq", .idr = eqs,
        .summary = inspect_sum_eq, .query = qhca_cmd_query_eq,
        .fields = qhca_fields_eqc, .size = sizeof(struct qhca_eqc),
    },
    [QHCA_OBJ_MR] = {
        .name = "mr", .idr = mrs, .is = inspect_is_mr,
        .summary = inspect_sum_mr, .query = qhca_cmd_query_mr,
        .fields = qhca_fields_mpt, .size = sizeof(struct qhca_mpt),
    },
    [QHCA_OBJ_PD] = { .name = "pd", .idr = pds },
    [QHCA_OBJ_UAR] = { .name = "uar", .idr = uars },
    [QHCA_OBJ_XRCD] = {
        .name = "xrcd", .idr = xrcds,
    },
    [QHCA_OBJ_GID] = {
        .name = "gid", .query = qhca_cmd_query_gid,
        .fields = qhca_fields_gid, .size = sizeof(struct qhca_gid),
    },
    [QHCA_OBJ_MCG] = { .name = "mcg" },
    [QHCA_OBJ_ETH_SQ] = {
        .name = "eth-sq", .idr = eth_sqs,
        .summary = inspect_sum_eth,
    },
    [QHCA_OBJ_ETH_RQ] = {
        .name = "eth-rq", .idr = eth_rqs,
        .summary = inspect_sum_eth,
    },
    [QHCA_OBJ_WQ] = {
        .name = "wq", .idr = qps, .is = inspect_is_wq,
        .summary = qhca_sum_wq, .query = qhca_cmd_query_wq,
        .fields = qhca_fields_wqc, .size = sizeof(struct qhca_wqc),
    },
    [QHCA_OBJ_RQT] = {
        .name = "rqt", .idr = rqts,
        .summary = qhca_sum_rqt,
    },
    [QHCA_OBJ_RSS] = {
        .name = "rss", .idr = qps, .is = inspect_is_rss,
        .summary = qhca_sum_rss, .query = qhca_cmd_query_qp,
        .fields = qhca_fields_qpc, .size = sizeof(struct qhca_qpc),
    },
    [QHCA_OBJ_FLOW] = {
        .name = "flow", .idr = flow_idr,
        .summary = qhca_sum_flow, .query = qhca_inspect_query_flow,
        .fields = qhca_fields_flow, .size = sizeof(struct qhca_flow),
    },
    [QHCA_OBJ_MW] = {
        .name = "mw", .idr = mrs, .is = inspect_is_mw,
        .summary = inspect_sum_mw, .query = qhca_cmd_query_mr,
        .fields = qhca_fields_mpt, .size = sizeof(struct qhca_mpt),
    },
    [QHCA_OBJ_SHAPER] = {
        .name = "shaper", .idr = shapers,
        .summary = qhca_sum_shaper, .query = qhca_cmd_query_shaper,
        .fields = qhca_fields_shaperc, .size = sizeof(struct qhca_shaperc),
    },
};

const char *qhca_object_name(enum qhca_object object)
{
    return object < QHCA_OBJECTS ? kinds[object].name : NULL;
}

const char *qhca_stat_name(unsigned index)
{
    return qhca_name_of(qhca_names_stat, index);
}

static const struct qhca_idr *idr_of(struct qhca *e,
                                     enum qhca_object object)
{
    return kinds[object].idr ? kinds[object].idr(e) : NULL;
}

void qhca_inspect_dbrec(struct qhca *e, uint64_t addr,
                        const struct qhca_emit *em)
{
    struct qhca_dbrec rec;

    qhca_emit_begin(em, "doorbell_record");
    qhca_emit_hex(em, "address", addr);
    if (qhca_peek(e, false, addr, &rec, sizeof(rec))) {
        qhca_decode(em, qhca_fields_dbrec, &rec);
    } else {
        qhca_emit_text(em, "error", "the memory cannot be read");
    }
    qhca_emit_end(em);
}

void qhca_inspect_map(const struct qhca_buf_table *m, const char *name,
                      const struct qhca_emit *em)
{
    struct qhca_buf d;

    qhca_buf_table_describe(m, &d);
    qhca_emit_begin(em, name);
    qhca_decode(em, qhca_fields_buf, &d);
    if (m->leaf_valid) {
        qhca_emit_begin(em, "cached_leaf");
        qhca_emit_dec(em, "page", m->leaf_page);
        qhca_emit_hex(em, "address", m->leaf);
        qhca_emit_end(em);
    }
    if (m->sub_valid) {
        qhca_emit_begin(em, "cached_table");
        qhca_emit_dec(em, "number", m->sub);
        qhca_emit_hex(em, "address", m->sub_addr);
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
}

/* Object @number, if it is of this kind; only for kinds with a table. */
static void *object_get(struct qhca *e, enum qhca_object object,
                        uint32_t number)
{
    const struct kind *k = &kinds[object];
    void *obj = k->is == inspect_is_mr || k->is == inspect_is_mw ?
                (void *)qhca_mr_get_cmd(e, number) :
                qhca_idr_get(idr_of(e, object), number);

    return obj && k->is && !k->is(obj) ? NULL : obj;
}

/* ---- what contexts do not contain ---- */

static uint32_t inspect_count_of(struct qhca *e, enum qhca_object object)
{
    const struct qhca_idr *t = idr_of(e, object);
    const struct kind *k = &kinds[object];
    uint32_t n, count = 0;

    if (!k->is) {
        return t->used;
    }
    for (n = 0; n < qhca_idr_end(t); n++) {
        const void *obj = qhca_idr_get(t, n);

        count += obj && k->is(obj);
    }
    return count;
}

/* The frames that the Ethernet function accepts. */
static void inspect_filter(struct qhca *e, const struct qhca_emit *em)
{
    uint8_t mac[8];
    unsigned i;

    qhca_emit_begin(em, "filter");
    qhca_emit_flag(em, "promiscuous", e->eth->promisc);
    qhca_emit_flag(em, "all_multicast", e->eth->allmulti);
    qhca_emit_flag(em, "loopback", e->eth->loopback);
    qhca_emit_list(em, "multicast");
    for (i = 0; i < QHCA_HASH_SLOTS; i++) {
        uint64_t a = e->eth->mc_hash[i];

        if (a) {
            qhca_put_be64(mac, a);
            qhca_emit_mac(em, NULL, mac + 2);
        }
    }
    qhca_emit_end(em);
    qhca_emit_end(em);
}

/* Links to the memory of other adapters. */
static void inspect_memlinks(const struct qhca *e, const struct qhca_emit *em)
{
    static const char *const states[] = {
        [QHCA_MEMLINK_WIRE] = "wire",
        [QHCA_MEMLINK_PROBE] = "probe",
        [QHCA_MEMLINK_HOLD] = "hold",
        [QHCA_MEMLINK_UP] = "up",
        [QHCA_MEMLINK_DRAIN] = "drain",
    };
    struct qhca_list *i;

    qhca_emit_list(em, "memlinks");
    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        qhca_emit_begin(em, NULL);
        qhca_emit_mac(em, "peer", l->mac);
        qhca_emit_text(em, "state", l->dead ? "cut" : states[l->state]);
        qhca_emit_dec(em, "sent", l->sent);
        qhca_emit_dec(em, "named", l->sent_refs);
        qhca_emit_dec(em, "revoked", l->revoked);
        qhca_emit_dec(em, "received", l->received);
        qhca_emit_dec(em, "lost", l->lost);
        qhca_emit_end(em);
    }
    qhca_emit_end(em);
}

static void inspect_device(struct qhca *e, const struct qhca_emit *em)
{
    struct qhca_port port = { 0 };
    struct qhca_cmd c = { .out = &port };
    enum qhca_object o;
    unsigned i;

    qhca_cmd_query_port(e, &c);
    qhca_decode_as(em, "port", qhca_fields_port, &port);
    qhca_emit_begin(em, "registers");
    qhca_emit_hex(em, "ctrl", e->ad->ctrl);
    qhca_emit_flag(em, "ready", qhca_active(e));
    qhca_emit_enum(em, "fatal", "fatal_name", qhca_names_fatal, e->fatal,
                   false);
    qhca_emit_dec(em, "db_shift", e->ad->db_shift);
    qhca_emit_hex(em, "asq_base", e->ad->asq_base);
    qhca_emit_hex(em, "acq_base", e->ad->acq_base);
    qhca_emit_dec(em, "aq_shift", e->ad->aq_shift);
    qhca_emit_dec(em, "asq_prod", e->ad->asq_prod);
    qhca_emit_dec(em, "asq_cons", e->ad->asq_cons);
    qhca_emit_end(em);
    qhca_emit_dec(em, "clock", qhca_now(e));
    qhca_emit_flag(em, "wire_blocked", e->tx_blocked);
    qhca_emit_flag(em, "obeys_pause", e->eth->pause_rx);
    qhca_emit_flag(em, "paused", e->tx_paused);
    qhca_emit_dec(em, "device_memory", e->cfg.dm_size);
    inspect_filter(e, em);
    inspect_memlinks(e, em);
    qhca_emit_begin(em, "objects");
    for (o = 0; o < QHCA_OBJECTS; o++) {
        if (idr_of(e, o)) {
            qhca_emit_dec(em, kinds[o].name, inspect_count_of(e, o));
        }
    }
    qhca_emit_dec(em, "mcg", e->xd->mc_groups);
    qhca_emit_end(em);
    qhca_emit_begin(em, "counters");
    for (i = 0; i < QHCA_STAT_COUNT; i++) {
        if (qhca_stat_name(i)) {
            qhca_emit_dec(em, qhca_stat_name(i), e->stats[i]);
        }
    }
    qhca_emit_end(em);
}

static void inspect_cq(struct qhca *e, const struct qhca_cq *cq,
                       const struct qhca_emit *em)
{
    qhca_inspect_dbrec(e, cq->dbrec, em);
    qhca_inspect_map(&cq->buf, "buffer", em);
    qhca_emit_dec(em, "users", cq->refs);
    qhca_emit_dec(em, "unreported", cq->unreported);
    if (cq->mod_pos != QHCA_MOD_NONE) {
        qhca_emit_dec(em, "moderation_deadline", cq->mod_deadline);
    }
}

static void inspect_srq(struct qhca *e, const struct qhca_srq *srq,
                        const struct qhca_emit *em)
{
    qhca_inspect_dbrec(e, srq->dbrec, em);
    qhca_inspect_map(&srq->buf, "wqe_buffer", em);
    qhca_inspect_map(&srq->idx, "index_buffer", em);
    qhca_emit_dec(em, "users", srq->refs);
    if (srq->tm) {
        qhca_inspect_tm(srq, em);
    }
}

static void inspect_eq(struct qhca *e, const struct qhca_eq *eq,
                       const struct qhca_emit *em)
{
    const struct qhca_list *l;
    unsigned n = 0;

    if (eq->flags & QHCA_EQ_F_RECORD) {
        qhca_inspect_dbrec(e, eq->dbrec, em);
    }
    qhca_inspect_map(&eq->buf, "buffer", em);
    qhca_emit_dec(em, "users", eq->refs);
    for (l = eq->pending.next; l != &eq->pending; l = l->next) {
        n++;
    }
    qhca_emit_dec(em, "objects_waiting", n);
}

static void inspect_xrcd(const struct qhca_xrcd *x, const struct qhca_emit *em)
{
    const struct qhca_list *l;

    qhca_emit_dec(em, "users", x->refs);
    qhca_emit_list(em, "targets");
    for (l = x->targets.next; l != &x->targets; l = l->next) {
        qhca_emit_dec(em, NULL, qhca_container(l, struct qhca_qp,
                                               xrc_link)->qpn);
    }
    qhca_emit_end(em);
}

/* The packets that are held for @q. */
static void inspect_merging(const struct qhca_gro *g,
                            const struct qhca_eth_q *q,
                            const struct qhca_emit *em)
{
    uint32_t packets = 0, frames = 0, bytes = 0;
    const struct qhca_gro_packet *p;
    const struct qhca_list *l;

    for (l = g->oldest.next; l != &g->oldest; l = l->next) {
        p = qhca_container(l, struct qhca_gro_packet, age);
        if (p->q == q) {
            packets++;
            frames += p->super.segs;
            bytes += p->super.len;
        }
    }
    if (packets) {
        qhca_emit_begin(em, "merging");
        qhca_emit_dec(em, "packets", packets);
        qhca_emit_dec(em, "frames", frames);
        qhca_emit_dec(em, "bytes", bytes);
        qhca_emit_end(em);
    }
}

static void inspect_eth(struct qhca *e, const struct qhca_eth_q *q,
                        const struct qhca_emit *em)
{
    struct qhca_eth_qc qc = { .state = 0 };

    qhca_eth_q_query(q, &qc);
    qhca_decode_as(em, "context", qhca_fields_eth_qc, &qc);
    qhca_emit_bytes(em, "raw", &qc, sizeof(qc));
    qhca_emit_dec(em, "head", q->ring.head);
    qhca_emit_dec(em, "tail", q->ring.tail);
    qhca_emit_flag(em, "dead", q->state == QHCA_WQS_ERR);
    if (q->lso.active) {
        qhca_emit_begin(em, "large_send");
        qhca_emit_dec(em, "payload", q->lso.total);
        qhca_emit_dec(em, "sent", q->lso.sent);
        qhca_emit_dec(em, "mss", q->lso.mss);
        if (q->lso.l.outer_version) {
            qhca_emit_dec(em, "inner_l3", q->lso.l.l3);
        }
        qhca_emit_end(em);
    }
    inspect_merging(&e->eth->gro, q, em);
    if (q->ring.dbrec) {
        qhca_inspect_dbrec(e, q->ring.dbrec, em);
    }
    qhca_inspect_map(&q->ring.buf, "buffer", em);
    if (q->flags & QHCA_ETH_Q_F_HDS) {
        qhca_emit_begin(em, "data_ring");
        qhca_inspect_dbrec(e, q->data.dbrec, em);
        qhca_inspect_map(&q->data.buf, "buffer", em);
        qhca_emit_end(em);
    }
    if (q->is_sq) {
        qhca_inspect_held(q, em);
    } else {
        qhca_inspect_steered(e, q, em);
    }
}

static void inspect_mr(struct qhca *e, const struct qhca_mr *mr,
                       const struct qhca_emit *em)
{
    uint32_t n;

    if (!(mr->flags & QHCA_MR_F_PHYS)) {
        qhca_inspect_map(&mr->buf, "buffer", em);
    }
    qhca_emit_list(em, "windows");
    for (n = 0; mr->windows && n < qhca_idr_end(&e->mem->mrs); n++) {
        struct qhca_mr *other = qhca_idr_get(&e->mem->mrs, n);
        const struct qhca_mw *mw = other ? qhca_mr_mw(other) : NULL;

        if (mw && mw->bound == mr) {
            qhca_emit_hex(em, NULL, mw->mr.key);
        }
    }
    qhca_emit_end(em);
}

static void inspect_mw(const struct qhca_mw *mw, const struct qhca_emit *em)
{
    qhca_emit_flag(em, "bound", mw->bound);
    if (!mw->bound) {
        return;
    }
    qhca_emit_begin(em, "region");
    inspect_sum_mr(em, mw->bound);
    qhca_emit_hex(em, "offset", mw->off);
    qhca_emit_hex(em, "va", mw->bound->iova + mw->off);
    qhca_emit_end(em);
}

static void inspect_more(struct qhca *e, enum qhca_object object,
                         uint32_t number, const struct qhca_emit *em)
{
    void *obj = idr_of(e, object) ? object_get(e, object, number) : NULL;

    switch (object) {
    case QHCA_OBJ_DEVICE:
        inspect_device(e, em);
        break;
    case QHCA_OBJ_QP:
        qhca_inspect_qp(e, obj, em);
        break;
    case QHCA_OBJ_CQ:
        inspect_cq(e, obj, em);
        break;
    case QHCA_OBJ_SRQ:
        inspect_srq(e, obj, em);
        break;
    case QHCA_OBJ_EQ:
        inspect_eq(e, obj, em);
        break;
    case QHCA_OBJ_MR:
        inspect_mr(e, obj, em);
        break;
    case QHCA_OBJ_MW:
        inspect_mw(obj, em);
        break;
    case QHCA_OBJ_WQ:
        qhca_inspect_wq(e, obj, em);
        break;
    case QHCA_OBJ_RQT:
        qhca_inspect_rqt(obj, em);
        qhca_inspect_rqt_users(e, obj, em);
        break;
    case QHCA_OBJ_RSS:
        qhca_inspect_rss(obj, em);
        break;
    case QHCA_OBJ_PD:
        qhca_emit_dec(em, "users", e->mem->pd_refs[number]);
        break;
    case QHCA_OBJ_UAR:
        qhca_emit_dec(em, "users", e->mem->uar_refs[number]);
        qhca_emit_hex(em, "page", (uint64_t)number << e->ad->db_shift);
        break;
    case QHCA_OBJ_XRCD:
        inspect_xrcd(obj, em);
        break;
    case QHCA_OBJ_ETH_SQ:
    case QHCA_OBJ_ETH_RQ:
        inspect_eth(e, obj, em);
        break;
    case QHCA_OBJ_SHAPER:
        qhca_inspect_shaper(e, obj, em);
        break;
    default:
        break;
    }
}

const char *qhca_inspect(struct qhca *e, enum qhca_object object,
                         uint32_t number, const struct qhca_emit *em)
{
    _Alignas(8) uint8_t context[1024] = { 0 };
    struct qhca_cmd c = { .obj = number, .out = context };
    const struct kind *k;

    if (object >= QHCA_OBJECTS || object == QHCA_OBJ_MCG) {
        return "objects of this kind are only shown all at once";
    }
    k = &kinds[object];
    if ((idr_of(e, object) && !object_get(e, object, number)) ||
        (k->query && k->query(e, &c) != QHCA_ST_OK)) {
        return "no such object";
    }
    qhca_emit_begin(em, NULL);
    qhca_emit_text(em, "object", k->name);
    if (object != QHCA_OBJ_DEVICE) {
        qhca_emit_dec(em, "number", number);
    }
    if (k->query) {
        qhca_decode_as(em, "context", k->fields, context);
        qhca_emit_bytes(em, "raw", context, k->size);
    }
    inspect_more(e, object, number, em);
    qhca_emit_end(em);
    return NULL;
}

/* ---- all of a kind ---- */

static void show_group(void *opaque, const uint8_t gid[16],
                       struct qhca_qp *const *qp, unsigned n)
{
    const struct qhca_emit *em = opaque;
    struct qhca_gid g = { 0 };
    unsigned i;

    memcpy(g.gid, gid, 16);
    qhca_emit_begin(em, NULL);
    qhca_decode(em, qhca_fields_gid, &g);
    qhca_emit_list(em, "qps");
    for (i = 0; i < n; i++) {
        qhca_emit_dec(em, NULL, qp[i]->qpn);
    }
    qhca_emit_end(em);
    qhca_emit_end(em);
}

static bool inspect_list_gids(struct qhca *e, uint32_t from, uint32_t max,
                              const struct qhca_emit *em)
{
    uint32_t i;

    for (i = from; i < e->cfg.max_gid; i++) {
        if (e->xd->gids[i].type == QHCA_GID_NONE) {
            continue;
        }
        if (!max--) {
            return true;
        }
        qhca_emit_begin(em, NULL);
        qhca_emit_dec(em, "index", i);
        qhca_decode(em, qhca_fields_gid, &e->xd->gids[i]);
        qhca_emit_end(em);
    }
    return false;
}

static bool inspect_list_idr(const struct qhca_idr *t, const struct kind *k,
                             uint32_t from, uint32_t max,
                             const struct qhca_emit *em)
{
    uint32_t n;

    for (n = from; n < qhca_idr_end(t); n++) {
        const void *obj = qhca_idr_get(t, n);

        if (!obj || (k->is && !k->is(obj))) {
            continue;
        }
        if (!max--) {
            return true;
        }
        qhca_emit_begin(em, NULL);
        if (k->summary) {
            k->summary(em, obj);
        } else {
            qhca_emit_dec(em, "number", n);
        }
        qhca_emit_end(em);
    }
    return false;
}

const char *qhca_inspect_all(struct qhca *e, enum qhca_object object,
                             uint32_t from, uint32_t max,
                             const struct qhca_emit *em)
{
    const struct qhca_idr *t;
    bool more = false;

    if (object >= QHCA_OBJECTS || object == QHCA_OBJ_DEVICE) {
        return "there is one device";
    }
    t = idr_of(e, object);
    max = max < QHCA_LOOK_MAX ? max : QHCA_LOOK_MAX;
    /* The upper bits of a key are the number. */
    if (object == QHCA_OBJ_MR || object == QHCA_OBJ_MW) {
        from >>= QHCA_KEY_INDEX_SHIFT;
    }
    qhca_emit_begin(em, NULL);
    qhca_emit_text(em, "object", kinds[object].name);
    qhca_emit_list(em, "objects");
    if (t) {
        more = inspect_list_idr(t, &kinds[object], from, max, em);
    } else if (object == QHCA_OBJ_GID) {
        more = inspect_list_gids(e, from, max, em);
    } else {
        qhca_mcg_each(e, show_group, (void *)em);
    }
    qhca_emit_end(em);
    qhca_emit_flag(em, "more", more);
    qhca_emit_end(em);
    return NULL;
}
