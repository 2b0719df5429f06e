/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inspecting RSS and flow steering: WQs, indirection tables, RSS QPs, rules. */
#include "observe/inspect_internal.h"

void qhca_sum_wq(const struct qhca_emit *em, const void *obj)
{
    const struct qhca_qp *wq = obj;

    qhca_emit_dec(em, "wqn", wq->qpn);
    qhca_emit_enum(em, "state", "state_name", qhca_names_qp_state, wq->state,
                   false);
    qhca_emit_dec(em, "depth", 1u << wq->rq_shift);
    qhca_emit_dec(em, "head", wq->rq_head);
    qhca_emit_dec(em, "tail", wq->rq_tail);
    qhca_emit_dec(em, "cqn", wq->rcq->cqn);
    qhca_emit_dec(em, "pd", wq->pd);
    qhca_emit_dec(em, "rx_packets", wq->rx_packets);
}

void qhca_look_wq(struct qhca *e, struct qhca_qp *wq,
                  const struct qhca_emit *em)
{
    qhca_emit_dec(em, "users", wq->users);
    qhca_emit_dec(em, "rx_packets", wq->rx_packets);
    qhca_emit_flag(em, "flushing", wq->xp->rq_flush);
    qhca_look_dbrec(e, wq->rq_dbrec, em);
    qhca_look_map(&wq->rq, "buffer", em);
}

void qhca_sum_rqt(const struct qhca_emit *em, const void *obj)
{
    uint32_t num, users, size = qhca_rqt_size(obj, &num, &users);

    qhca_emit_dec(em, "number", num);
    qhca_emit_dec(em, "size", size);
    qhca_emit_dec(em, "users", users);
}

void qhca_look_rqt(const void *rqt, const struct qhca_emit *em)
{
    uint32_t num, users, size = qhca_rqt_size(rqt, &num, &users), i;

    qhca_emit_dec(em, "size", size);
    qhca_emit_dec(em, "users", users);
    qhca_emit_list(em, "wqs");
    for (i = 0; i < size; i++) {
        qhca_emit_dec(em, NULL, qhca_rqt_wq(rqt, i)->qpn);
    }
    qhca_emit_end(em);
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
    qhca_emit_flags(em, "hash_names", qhca_names_hash,
                    qhca_le32(c.rx_hash_fields));
    qhca_emit_dec(em, "users", qp->users);
}

/* Which WQ receives a frame, by the last bits of its hash. */
void qhca_look_rss(const struct qhca_qp *qp, const struct qhca_emit *em)
{
    struct qhca_qpc c = { 0 };

    qhca_rss_query(qp, &c);
    qhca_emit_begin(em, "rss");
    qhca_emit_dec(em, "rqtn", qhca_le32(c.rqtn));
    qhca_emit_flags(em, "hash_names", qhca_names_hash,
                    qhca_le32(c.rx_hash_fields));
    qhca_emit_bytes(em, "hash_key", c.rx_hash_key, sizeof(c.rx_hash_key));
    qhca_look_rqt(qhca_rss_rqt(qp), em);
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

uint8_t qhca_look_query_flow(struct qhca *e, struct qhca_cmd *c)
{
    const void *rule = qhca_idr_get(&e->eth->flow_table, c->obj);
    uint32_t num;

    if (!rule) {
        return QHCA_ST_BAD_OBJ;
    }
    qhca_flow_get(rule, c->out, &num);
    return QHCA_ST_OK;
}
