/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inspecting RSS and flow steering: WQs, indirection tables, RSS QPs, rules. */
#include "observe/inspect_internal.h"

void qhca_sum_wq(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_wq *wq = obj;

    qhca_emit_dec(em, "wqn", wq->wqn);
    qhca_emit_enum(em, "state", "state_name", qhca_names_wq_state, wq->state,
                   false);
    qhca_emit_dec(em, "depth", 1u << wq->ring.shift);
    qhca_emit_dec(em, "head", wq->ring.head);
    qhca_emit_dec(em, "tail", wq->ring.tail);
    qhca_emit_dec(em, "cqn", wq->cq->cqn);
    qhca_emit_dec(em, "pd", wq->pd);
    qhca_emit_dec(em, "rx_packets", wq->rx_packets);
}

void qhca_inspect_wq(struct qhca *e, struct qhca_wq *wq,
                     const struct qhca_emit *em)
{
    qhca_emit_dec(em, "users", wq->users);
    qhca_emit_dec(em, "rx_packets", wq->rx_packets);
    qhca_emit_flag(em, "flushing", !qhca_list_empty(&wq->flush));
    qhca_inspect_dbrec(e, wq->ring.dbrec, em);
    qhca_inspect_map(&wq->ring.buf, "buffer", em);
}

void qhca_sum_rqt(const struct qhca_emit *em, const void *obj)
{
    struct qhca_rqt_info t;

    qhca_rqt_describe(obj, &t);
    qhca_emit_dec(em, "number", t.num);
    qhca_emit_enum(em, "kind", "kind_name", qhca_names_rqt, t.kind, false);
    qhca_emit_dec(em, "size", t.size);
    qhca_emit_dec(em, "users", t.users);
}

void qhca_inspect_rqt(const void *rqt, const struct qhca_emit *em)
{
    struct qhca_rqt_info t;
    uint32_t i;

    qhca_rqt_describe(rqt, &t);
    qhca_emit_enum(em, "kind", "kind_name", qhca_names_rqt, t.kind, false);
    qhca_emit_dec(em, "size", t.size);
    qhca_emit_dec(em, "users", t.users);
    qhca_emit_list(em, t.kind == QHCA_RQT_WQ ? "wqs" : "eth_rqs");
    for (i = 0; i < t.size; i++) {
        qhca_emit_dec(em, NULL, qhca_rqt_queue(rqt, i));
    }
    qhca_emit_end(em);
}

void qhca_inspect_rqt_users(struct qhca *e, const void *rqt,
                            const struct qhca_emit *em)
{
    const struct qhca_qp *qp;
    uint32_t n;

    qhca_emit_list(em, "rss_qps");
    for (n = 0; n < qhca_idr_end(&e->q->qps); n++) {
        qp = qhca_qp_get(e, n);
        if (qp && qp->type == QHCA_QPT_RSS && qhca_rss_rqt(qp) == rqt) {
            qhca_emit_dec(em, NULL, qp->qpn);
        }
    }
    qhca_emit_end(em);
}

static bool rqt_lists(const void *rqt, const struct qhca_eth_q *q)
{
    struct qhca_rqt_info t;
    uint32_t i;

    qhca_rqt_describe(rqt, &t);
    for (i = 0; t.kind == QHCA_RQT_ETH_RQ && i < t.size; i++) {
        if (qhca_rqt_queue(rqt, i) == q->num) {
            return true;
        }
    }
    return false;
}

void qhca_inspect_steered(struct qhca *e, const struct qhca_eth_q *q,
                          const struct qhca_emit *em)
{
    const void *rqt;
    uint32_t n;

    qhca_emit_flag(em, "port", !e->eth->eth_qp && e->eth->eth_rqn == q->num);
    qhca_emit_list(em, "rqts");
    for (n = 0; n < qhca_idr_end(&e->eth->rqts); n++) {
        rqt = qhca_idr_get(&e->eth->rqts, n);
        if (rqt && rqt_lists(rqt, q)) {
            qhca_emit_dec(em, NULL, n);
        }
    }
    qhca_emit_end(em);
}

/* Fields by type of frame, in the order of their bits. */
static const struct {
    const char *name;
    uint8_t shift;
} hash_by[] = {
    { "tcp4", QHCA_HASH_TCP4_SHIFT }, { "udp4", QHCA_HASH_UDP4_SHIFT },
    { "ipv4", QHCA_HASH_IPV4_SHIFT }, { "tcp6", QHCA_HASH_TCP6_SHIFT },
    { "udp6", QHCA_HASH_UDP6_SHIFT }, { "ipv6", QHCA_HASH_IPV6_SHIFT },
};

/* The fields of the hash: one list, or one for each type of frame. */
static void inspect_hash(uint32_t fields, const struct qhca_emit *em)
{
    const uint32_t modes = QHCA_HASH_BY_TYPE | QHCA_HASH_SYM_XOR |
                           QHCA_HASH_SYM_OR_XOR | QHCA_HASH_LABEL_TCP6 |
                           QHCA_HASH_LABEL_UDP6 | QHCA_HASH_LABEL_IPV6;
    unsigned i;

    if (!(fields & QHCA_HASH_BY_TYPE)) {
        qhca_emit_flags(em, "hash_names", qhca_names_hash, fields);
        return;
    }
    qhca_emit_flags(em, "hash_names", qhca_names_hash_mode, fields & modes);
    for (i = 0; i < sizeof(hash_by) / sizeof(hash_by[0]); i++) {
        qhca_emit_flags(em, hash_by[i].name, qhca_names_hash_by,
                        fields >> hash_by[i].shift & QHCA_HASH_BY_MASK);
    }
}

void qhca_sum_rss(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_qp *qp = obj;
    struct qhca_qpc c = { 0 };

    qhca_rss_query(qp, &c);
    qhca_emit_dec(em, "qpn", qp->qpn);
    qhca_emit_enum(em, "state", "state_name", qhca_names_qp_state, qp->state,
                   false);
    qhca_emit_dec(em, "rqtn", qhca_le32(c.rqtn));
    inspect_hash(qhca_le32(c.rx_hash_fields), em);
    qhca_emit_dec(em, "rx_packets", qp->rx_packets);
    qhca_emit_dec(em, "users", qp->users);
}

/* The queue that receives a frame, by the last bits of its hash. */
void qhca_inspect_rss(const struct qhca_qp *qp, const struct qhca_emit *em)
{
    struct qhca_qpc c = { 0 };

    qhca_rss_query(qp, &c);
    qhca_emit_begin(em, "rss");
    qhca_emit_dec(em, "rqtn", qhca_le32(c.rqtn));
    inspect_hash(qhca_le32(c.rx_hash_fields), em);
    qhca_emit_bytes(em, "hash_key", c.rx_hash_key, sizeof(c.rx_hash_key));
    qhca_inspect_rqt(qhca_rss_rqt(qp), em);
    qhca_emit_end(em);
}

void qhca_sum_flow(const struct qhca_emit *em, const void *obj)
{
    struct qhca_flow f;
    uint32_t num;

    qhca_flow_get(obj, &f, &num);
    qhca_emit_dec(em, "number", num);
    qhca_decode(em, qhca_fields_flow, &f);
}

uint8_t qhca_inspect_query_flow(struct qhca *e, struct qhca_cmd *c)
{
    const void *rule = qhca_idr_get(&e->eth->flow_idr, c->obj);
    uint32_t num;

    if (!rule) {
        return QHCA_ST_BAD_OBJ;
    }
    qhca_flow_get(rule, c->out, &num);
    return QHCA_ST_OK;
}
