/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What refers to each object, counted again: each reference leads to an object
 * that exists, those that a type must have are there, and the adapter has
 * counted the same.
 */
#ifndef QHCA_TEST_REFS_H
#define QHCA_TEST_REFS_H

#include <stdlib.h>

#include "die.h"
#include "adapter/adapter.h"
#include "ethernet/flow.h"

enum { REFS_UAR, REFS_PD, REFS_XRCD, REFS_EQ, REFS_CQ, REFS_SRQ, REFS_MR,
       REFS_QPN, REFS_RQT, REFS_ETH_RQ, REFS_KINDS };

static const char *const refs_names[] = {
    "UAR", "PD", "XRC domain", "EQ", "CQ", "SRQ", "MR", "QP or WQ", "RQT",
    "Ethernet RQ",
};

struct refs {
    struct qhca *e;
    const struct qhca_idr *table[REFS_KINDS];
    uint32_t *found[REFS_KINDS];        /* by number */
};

/* Something refers to @obj, which has number @num; NULL: whatever has it. */
static inline void refs_to(struct refs *r, unsigned kind, uint32_t num,
                           const void *obj)
{
    const void *is = qhca_idr_get(r->table[kind], num);

    CHECK(is && (!obj || is == obj), "%s %u is referred to and %s",
          refs_names[kind], num, is ? "another" : "does not exist");
    r->found[kind][num]++;
}

static inline void refs_of_qp(struct refs *r, const struct qhca_qp *qp)
{
    bool tgt = qp->type == QHCA_QPT_XRC_TGT, rss = qp->type == QHCA_QPT_RSS;
    bool ini = qp->type == QHCA_QPT_XRC_INI;
    struct qhca_rqt_info info;

    CHECK(qp->ops && qp->ops->run && qp->ops->error && qp->ops->query,
          "QP %u, type %#x: operations are missing", qp->qpn, qp->type);
    CHECK(!qp->scq == (tgt || rss) && !qp->rcq == (tgt || rss || ini) &&
          !qp->xrcd == !tgt && !qp->rss == !rss, "QP %u, type %#x: references "
          "do not match its type", qp->qpn, qp->type);
    refs_to(r, REFS_UAR, qp->uar, NULL);
    if (tgt) {
        refs_to(r, REFS_XRCD, qp->xrcd->xrcd, qp->xrcd);
        CHECK(!qp->srq ||
              (qhca_idr_get(r->table[REFS_SRQ], qp->srq->srqn) == qp->srq &&
               qp->srq->xrcd == qp->xrcd), "QP %u: its SRQ", qp->qpn);
        return;
    }
    refs_to(r, REFS_PD, qp->pd, NULL);
    if (qp->scq) {
        refs_to(r, REFS_CQ, qp->scq->cqn, qp->scq);
    }
    if (qp->rcq) {
        refs_to(r, REFS_CQ, qp->rcq->cqn, qp->rcq);
    }
    if (qp->srq) {
        refs_to(r, REFS_SRQ, qp->srq->srqn, qp->srq);
    }
    if (rss) {
        qhca_rqt_describe(qhca_rss_rqt(qp), &info);
        refs_to(r, REFS_RQT, info.num, qhca_rss_rqt(qp));
    }
}

static inline void refs_of_qps(struct refs *r)
{
    struct qhca_idr *t = &r->e->q->qps;
    const struct qhca_wq *wq;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(t); n++) {
        if (qhca_qp_get(r->e, n)) {
            refs_of_qp(r, qhca_qp_get(r->e, n));
        }
        wq = qhca_wq_get(r->e, n);
        if (wq) {
            refs_to(r, REFS_UAR, wq->uar, NULL);
            refs_to(r, REFS_PD, wq->pd, NULL);
            refs_to(r, REFS_CQ, wq->cq->cqn, wq->cq);
        }
    }
}

static inline void refs_of_queues(struct refs *r)
{
    struct qhca_queues *q = r->e->q;
    const struct qhca_srq *srq;
    const struct qhca_cq *cq;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(&q->cqs); n++) {
        cq = qhca_idr_get(&q->cqs, n);
        if (cq) {
            refs_to(r, REFS_EQ, cq->eq->eqn, cq->eq);
            refs_to(r, REFS_UAR, cq->uar, NULL);
        }
    }
    for (n = 0; n < qhca_idr_end(&q->srqs); n++) {
        srq = qhca_idr_get(&q->srqs, n);
        if (srq) {
            refs_to(r, REFS_UAR, srq->uar, NULL);
            refs_to(r, REFS_PD, srq->pd, NULL);
            CHECK(!srq->cq == !(srq->flags & (QHCA_SRQ_F_TM |
                                              QHCA_SRQ_F_XRC)) &&
                  !srq->xrcd == !(srq->flags & QHCA_SRQ_F_XRC),
                  "SRQ %u: references do not match its type", n);
            if (srq->cq) {
                refs_to(r, REFS_CQ, srq->cq->cqn, srq->cq);
            }
            if (srq->xrcd) {
                refs_to(r, REFS_XRCD, srq->xrcd->xrcd, srq->xrcd);
            }
        }
    }
}

static inline void refs_of_keys(struct refs *r)
{
    struct qhca_idr *t = &r->e->mem->mrs;
    const struct qhca_mr *b;
    struct qhca_mr *m;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(t); n++) {
        m = qhca_idr_get(t, n);
        if (m) {
            refs_to(r, REFS_PD, m->pd, NULL);
            b = m->flags & QHCA_MR_F_MW ? qhca_mr_mw(m)->bound : NULL;
            if (b) {
                refs_to(r, REFS_MR, b->key >> QHCA_KEY_INDEX_SHIFT, b);
            }
        }
    }
}

static inline void refs_of_group(void *opaque, const uint8_t gid[16],
                                 struct qhca_qp *const *qp, unsigned n)
{
    unsigned i;

    (void)gid;
    CHECK(n, "a multicast group is empty");
    for (i = 0; i < n; i++) {
        refs_to(opaque, REFS_QPN, qp[i]->qpn, &qp[i]->owner);
    }
}

static inline void refs_of_rqt(struct refs *r, const void *rqt)
{
    struct qhca_rqt_info info;
    uint32_t i;

    qhca_rqt_describe(rqt, &info);
    for (i = 0; i < info.size; i++) {
        refs_to(r, info.kind == QHCA_RQT_WQ ? REFS_QPN : REFS_ETH_RQ,
                qhca_rqt_queue(rqt, i), NULL);
    }
}

static inline void refs_of_ethernet(struct refs *r)
{
    struct qhca_ethernet *eth = r->e->eth;
    const struct qhca_eth_q *q;
    struct qhca_flow flow;
    uint32_t n, num;

    for (n = 0; n < qhca_idr_end(&eth->flow_idr); n++) {
        if (qhca_idr_get(&eth->flow_idr, n)) {
            qhca_flow_get(qhca_idr_get(&eth->flow_idr, n), &flow, &num);
            refs_to(r, REFS_QPN, flow.qpn, NULL);
        }
    }
    for (n = 0; n < qhca_idr_end(&eth->rqts); n++) {
        if (qhca_idr_get(&eth->rqts, n)) {
            refs_of_rqt(r, qhca_idr_get(&eth->rqts, n));
        }
    }
    for (n = 0; n < qhca_idr_end(&eth->eth_sqs); n++) {
        q = qhca_idr_get(&eth->eth_sqs, n);
        if (q) {
            refs_to(r, REFS_CQ, q->cq->cqn, q->cq);
        }
    }
    for (n = 0; n < qhca_idr_end(&eth->eth_rqs); n++) {
        q = qhca_idr_get(&eth->eth_rqs, n);
        if (q) {
            refs_to(r, REFS_CQ, q->cq->cqn, q->cq);
        }
    }
    if (eth->eth_qp) {
        refs_to(r, REFS_QPN, eth->eth_qp->qpn, &eth->eth_qp->owner);
    }
}

/* How often @obj, number @num, is referred to according to the adapter. */
static inline uint32_t refs_counted(const struct refs *r, unsigned kind,
                                    uint32_t num, const void *obj)
{
    struct qhca_rqt_info info;

    switch (kind) {
    case REFS_UAR:
        return r->e->mem->uar_refs[num];
    case REFS_PD:
        return r->e->mem->pd_refs[num];
    case REFS_XRCD:
        return ((const struct qhca_xrcd *)obj)->refs;
    case REFS_EQ:
        return ((const struct qhca_eq *)obj)->refs;
    case REFS_CQ:
        return ((const struct qhca_cq *)obj)->refs;
    case REFS_SRQ:
        return ((const struct qhca_srq *)obj)->refs;
    case REFS_MR:
        return ((const struct qhca_mr *)obj)->windows;
    case REFS_QPN:
        return qhca_qp_get(r->e, num) ? qhca_qp_get(r->e, num)->users :
                                        qhca_wq_get(r->e, num)->users;
    case REFS_RQT:
        qhca_rqt_describe(obj, &info);
        return info.users;
    default:
        return ((const struct qhca_eth_q *)obj)->users;
    }
}

static inline void refs_check(struct qhca *e)
{
    struct refs r = {
        .e = e,
        .table = { &e->mem->uars, &e->mem->pds, &e->q->xrcds, &e->q->eqs,
                   &e->q->cqs, &e->q->srqs, &e->mem->mrs, &e->q->qps,
                   &e->eth->rqts, &e->eth->eth_rqs },
    };
    uint32_t n, is;
    unsigned kind;
    void *obj;

    for (kind = 0; kind < REFS_KINDS; kind++) {
        r.found[kind] = calloc(r.table[kind]->size, sizeof(uint32_t));
        CHECK(r.found[kind], "no memory");
    }
    refs_of_queues(&r);
    refs_of_qps(&r);
    refs_of_keys(&r);
    refs_of_ethernet(&r);
    qhca_mcg_each(e, refs_of_group, &r);
    for (kind = 0; kind < REFS_KINDS; kind++) {
        for (n = 0; n < qhca_idr_end(r.table[kind]); n++) {
            obj = qhca_idr_get(r.table[kind], n);
            is = obj ? refs_counted(&r, kind, n, obj) : 0;
            CHECK(is == r.found[kind][n], "%s %u has %u references, and "
                  "counts %u", refs_names[kind], n, r.found[kind][n], is);
        }
        free(r.found[kind]);
    }
}

#endif
