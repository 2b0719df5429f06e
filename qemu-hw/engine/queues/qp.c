/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Queue pairs: creation, errors, query, destruction. */
#include <stdlib.h>

#include "queues/queues.h"

#define QPN_GSI             1

static bool qp_type_ok(const struct qhca *e, uint8_t type)
{
    switch (type) {
    case QHCA_QPT_RC:
        return qhca_features(e) & QHCA_FEAT_RC;
    case QHCA_QPT_UC:
        return qhca_features(e) & QHCA_FEAT_UC;
    case QHCA_QPT_UD:
    case QHCA_QPT_GSI:
        return qhca_features(e) & QHCA_FEAT_UD;
    case QHCA_QPT_XRC_INI:
    case QHCA_QPT_XRC_TGT:
        return qhca_features(e) & QHCA_FEAT_XRC;
    case QHCA_QPT_RAW:
        return qhca_features(e) & QHCA_FEAT_RAW_PACKET;
    case QHCA_QPT_RSS:
        return qhca_features(e) & QHCA_FEAT_RSS;
    default:                    /* GCOVR_EXCL_LINE: the caller refuses others */
        return false;           /* GCOVR_EXCL_LINE */
    }
}

/* The header of a UD WQE does not fit in 64 bytes. */
static uint8_t min_sq_stride(uint8_t type)
{
    return type == QHCA_QPT_UD || type == QHCA_QPT_GSI ? 7 : 6;
}

static uint8_t qp_check_rings(struct qhca_cmd *c, const struct qhca_qpc *in)
{
    if (in->sq_shift > QHCA_MAX_WQ_SHIFT) {
        return qhca_bad(c, offsetof(struct qhca_qpc, sq_shift));
    }
    if (in->sq_stride && (in->sq_stride < min_sq_stride(in->type) ||
                          in->sq_stride > 10)) {
        return qhca_bad(c, offsetof(struct qhca_qpc, sq_stride));
    }
    if (in->rq_shift > QHCA_MAX_WQ_SHIFT) {
        return qhca_bad(c, offsetof(struct qhca_qpc, rq_shift));
    }
    if (in->rq_stride && (in->rq_stride < 5 || in->rq_stride > 9 ||
                          (in->flags & QHCA_QP_F_SRQ))) {
        return qhca_bad(c, offsetof(struct qhca_qpc, rq_stride));
    }
    if (in->rq_stride && (qhca_le64(in->rq_dbrec) & 7)) {
        return qhca_bad(c, offsetof(struct qhca_qpc, rq_dbrec));
    }
    if (in->flags & QHCA_QP_F_SQ_RECORD ? qhca_le64(in->sq_dbrec) & 7 :
        in->sq_dbrec) {
        return qhca_bad(c, offsetof(struct qhca_qpc, sq_dbrec));
    }
    return QHCA_ST_OK;
}

/* A target has only a domain; an initiator has no receive side. */
static uint8_t qp_check_xrc(struct qhca *e, struct qhca_cmd *c,
                            const struct qhca_qpc *in)
{
    bool target = in->type == QHCA_QPT_XRC_TGT;

    if (in->flags & (target ? QHCA_QP_F_SRQ | QHCA_QP_F_PRIVILEGED :
                     QHCA_QP_F_SRQ)) {
        return qhca_bad(c, offsetof(struct qhca_qpc, flags));
    }
    if (in->rq_stride) {
        return qhca_bad(c, offsetof(struct qhca_qpc, rq_stride));
    }
    if (in->recv_cqn) {
        return qhca_bad(c, offsetof(struct qhca_qpc, recv_cqn));
    }
    if (!target) {
        return QHCA_ST_OK;
    }
    if (in->sq_stride) {
        return qhca_bad(c, offsetof(struct qhca_qpc, sq_stride));
    }
    if (in->send_cqn) {
        return qhca_bad(c, offsetof(struct qhca_qpc, send_cqn));
    }
    if (in->pd) {
        return qhca_bad(c, offsetof(struct qhca_qpc, pd));
    }
    if (in->uar) {
        return qhca_bad(c, offsetof(struct qhca_qpc, uar));
    }
    if (!qhca_idr_get(&e->q->xrcds, qhca_le32(in->xrcd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_qpc, xrcd));
    }
    return QHCA_ST_OK;
}

/* Check that the PD and CQs required by this type exist. */
static uint8_t qp_check_refs(struct qhca *e, struct qhca_cmd *c,
                             const struct qhca_qpc *in)
{
    if (in->type != QHCA_QPT_XRC_TGT && in->xrcd) {
        return qhca_bad(c, offsetof(struct qhca_qpc, xrcd));
    }
    if (in->type == QHCA_QPT_XRC_TGT) {
        return QHCA_ST_OK;
    }
    if (!qhca_idr_get(&e->mem->pds, qhca_le32(in->pd))) {
        return qhca_bad_obj(c, offsetof(struct qhca_qpc, pd));
    }
    if (!qhca_idr_get(&e->q->cqs, qhca_le32(in->send_cqn))) {
        return qhca_bad_obj(c, offsetof(struct qhca_qpc, send_cqn));
    }
    if (in->type != QHCA_QPT_XRC_INI &&
        !qhca_idr_get(&e->q->cqs, qhca_le32(in->recv_cqn))) {
        return qhca_bad_obj(c, offsetof(struct qhca_qpc, recv_cqn));
    }
    return QHCA_ST_OK;
}

static uint8_t qp_check_srq(struct qhca *e, struct qhca_cmd *c,
                            const struct qhca_qpc *in)
{
    const struct qhca_srq *srq;

    if (!(in->flags & QHCA_QP_F_SRQ)) {
        return QHCA_ST_OK;
    }
    srq = qhca_idr_get(&e->q->srqs, qhca_le32(in->srqn));
    if (!srq) {
        return qhca_bad_obj(c, offsetof(struct qhca_qpc, srqn));
    }
    /* An XRC SRQ belongs to a domain, not to QPs. */
    return srq->xrcd ? qhca_bad(c, offsetof(struct qhca_qpc, srqn)) :
                       QHCA_ST_OK;
}

static uint8_t qp_check_create(struct qhca *e, struct qhca_cmd *c,
                               const struct qhca_qpc *in)
{
    uint8_t st;

    if (in->type > QHCA_QPT_RSS) {
        return qhca_bad(c, offsetof(struct qhca_qpc, type));
    }
    if (!qp_type_ok(e, in->type)) {
        return QHCA_ST_UNSUPPORTED; /* GCOVR_EXCL_LINE: no type is optional */
    }
    if (in->state != QHCA_QPS_RESET) {
        return qhca_bad(c, offsetof(struct qhca_qpc, state));
    }
    if (in->flags & ~(QHCA_QP_F_SRQ | QHCA_QP_F_PRIVILEGED |
                      QHCA_QP_F_BLOCK_MC_LOOP | QHCA_QP_F_STRIP_VLAN |
                      QHCA_QP_F_SQ_RECORD)) {
        return qhca_bad(c, offsetof(struct qhca_qpc, flags));
    }
    /* Types with ACKs, which make the device read the record again. */
    if ((in->flags & QHCA_QP_F_SQ_RECORD) &&
        ((in->type != QHCA_QPT_RC && in->type != QHCA_QPT_XRC_INI) ||
         !in->sq_stride)) {
        return qhca_bad(c, offsetof(struct qhca_qpc, flags));
    }
    if (((in->flags & QHCA_QP_F_STRIP_VLAN) && in->type != QHCA_QPT_RAW) ||
        (in->flags && in->type == QHCA_QPT_RSS)) {
        return qhca_bad(c, offsetof(struct qhca_qpc, flags));
    }
    if ((in->flags & QHCA_QP_F_BLOCK_MC_LOOP) && in->type != QHCA_QPT_UD) {
        return qhca_bad(c, offsetof(struct qhca_qpc, flags));
    }
    /* Only the kernel may use DMA addresses in its WQEs. */
    if ((in->flags & QHCA_QP_F_PRIVILEGED) && in->uar) {
        return qhca_bad(c, offsetof(struct qhca_qpc, flags));
    }
    if (in->type == QHCA_QPT_XRC_INI || in->type == QHCA_QPT_XRC_TGT) {
        st = qp_check_xrc(e, c, in);
        if (st) {
            return st;
        }
    }
    if (!qhca_idr_get(&e->mem->uars, qhca_le32(in->uar))) {
        return qhca_bad_obj(c, offsetof(struct qhca_qpc, uar));
    }
    if (e->q->qp_ops[in->type]->check) {
        return e->q->qp_ops[in->type]->check(e, c, in);
    }
    st = qp_check_refs(e, c, in);
    if (!st) {
        st = qp_check_srq(e, c, in);
    }
    return st ? st : qp_check_rings(c, in);
}

/* On a TM SRQ?  Only RC can be, and the device owns its send queue. */
static uint8_t qp_check_tm(struct qhca *e, struct qhca_cmd *c,
                           const struct qhca_qpc *in)
{
    const struct qhca_srq *srq;

    if (!(in->flags & QHCA_QP_F_SRQ)) {
        return QHCA_ST_OK;
    }
    srq = qhca_idr_get(&e->q->srqs, qhca_le32(in->srqn));
    if (!srq->tm) {
        return QHCA_ST_OK;
    }
    if (in->type != QHCA_QPT_RC) {
        return qhca_bad(c, offsetof(struct qhca_qpc, type));
    }
    if (in->sq_stride) {
        return qhca_bad(c, offsetof(struct qhca_qpc, sq_stride));
    }
    return QHCA_ST_OK;
}

static uint8_t init_rings(struct qhca_qp *qp, const struct qhca_qpc *in)
{
    uint8_t st = QHCA_ST_OK;

    qp->sq_shift = in->sq_shift;
    qp->sq_stride = in->sq_stride;
    qp->rq.shift = in->rq_shift;
    qp->rq.stride = in->rq_stride;
    if (qp->sq_stride) {
        qp->sq_dbrec = qhca_le64(in->sq_dbrec);
        st = qhca_buf_table_init(&qp->sq, &in->sq,
                                 1ULL << (qp->sq_shift + qp->sq_stride), true);
    }
    if (!st && qp->rq.stride) {
        qp->rq.dbrec = qhca_le64(in->rq_dbrec);
        st = qhca_buf_table_init(&qp->rq.buf, &in->rq,
                                 1ULL << (qp->rq.shift + qp->rq.stride), true);
    }
    return st;
}

/* Assign a number to the QP and take its references. */
static bool qp_attach(struct qhca *e, struct qhca_qp *qp,
                      const struct qhca_qpc *in)
{
    if (qp->type == QHCA_QPT_GSI) {
        qp->qpn = QPN_GSI;
        if (!qhca_idr_add_at(&e->q->qps, &qp->owner, QPN_GSI)) {
            return false;
        }
    } else if (!qhca_idr_add(&e->q->qps, &qp->owner, &qp->qpn)) {
        return false;
    }
    qp->uar = qhca_le32(in->uar);
    e->mem->uar_refs[qp->uar]++;
    if (qp->type == QHCA_QPT_XRC_TGT) {
        qp->xrcd = qhca_idr_get(&e->q->xrcds, qhca_le32(in->xrcd));
        qhca_xrc_join(qp);
        return true;
    }
    qp->pd = qhca_le32(in->pd);
    e->mem->pd_refs[qp->pd]++;
    if (qp->type == QHCA_QPT_RSS) {
        return true;
    }
    qp->scq = qhca_idr_get(&e->q->cqs, qhca_le32(in->send_cqn));
    qp->scq->refs++;
    if (qp->type != QHCA_QPT_XRC_INI) {
        qp->rcq = qhca_idr_get(&e->q->cqs, qhca_le32(in->recv_cqn));
        qp->rcq->refs++;
    }
    if (qp->flags & QHCA_QP_F_SRQ) {
        qp->srq = qhca_idr_get(&e->q->srqs, qhca_le32(in->srqn));
        qp->srq->refs++;
    }
    return true;
}

static void qp_detach(struct qhca *e, struct qhca_qp *qp)
{
    qhca_idr_del(&e->q->qps, qp->qpn);
    e->mem->uar_refs[qp->uar]--;
    if (qp->xrcd) {
        qhca_list_del(&qp->xrc_link);
        qp->xrcd->refs--;
        return;                 /* the others are borrowed */
    }
    e->mem->pd_refs[qp->pd]--;
    if (qp->scq) {
        qp->scq->refs--;
    }
    if (qp->rcq) {
        qp->rcq->refs--;
    }
    if (qp->srq) {
        qp->srq->refs--;
    }
}

void qhca_qp_set_type(struct qhca *e, struct qhca_qp *qp, uint8_t type)
{
    qp->type = type;
    qp->ops = type == QHCA_QPT_SAVED_WQ ? e->q->saved_wq_ops :
              type <= QHCA_QPT_RSS ? e->q->qp_ops[type] : NULL;
}

struct qhca_qp *qhca_qp_alloc(struct qhca *e, uint8_t type)
{
    struct qhca_qp *qp = calloc(1, QHCA_XPORT_OFF + e->q->xport_size);

    if (qp) {
        qp->xp = (struct qhca_xport *)((uint8_t *)qp + QHCA_XPORT_OFF);
        qhca_qp_set_type(e, qp, type);
        qhca_list_init(&qp->ready);
        qhca_list_init(&qp->windows);
        qhca_list_init(&qp->xrc_link);
    }
    return qp;
}

uint8_t qhca_qp_check_create(struct qhca *e, struct qhca_cmd *c,
                             const struct qhca_qpc *in)
{
    uint8_t st = qp_check_create(e, c, in);

    return st ? st : qp_check_tm(e, c, in);
}

uint8_t qhca_cmd_create_qp(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_qpc *in = c->in;
    uint8_t st = qhca_qp_check_create(e, c, in);
    struct qhca_qp *qp;

    if (st) {
        return st;
    }
    qp = qhca_qp_alloc(e, in->type);
    if (!qp) {
        return QHCA_ST_NO_RESOURCES;
    }
    qp->flags = in->flags;
    qp->cookie = qhca_le64(in->cookie);
    st = init_rings(qp, in);
    if (!st && !qp_attach(e, qp, in)) {
        st = QHCA_ST_NO_RESOURCES;
    }
    if (st) {
        free(qp);
        return st;
    }
    qhca_event_init(&qp->ev, qp->qpn);
    if (!qp->ops->init(e, qp, in)) {
        qp_detach(e, qp);
        free(qp);
        return QHCA_ST_NO_RESOURCES;
    }
    if (qp->type == QHCA_QPT_RSS) {
        qp->state = QHCA_QPS_RTR;
    }
    c->obj = qp->qpn;
    return QHCA_ST_OK;
}

/* Forget everything except what CREATE_QP set. */
void qhca_qp_clear(struct qhca_qp *qp)
{
    qhca_list_del(&qp->ready);
    qhca_event_forget(&qp->ev);
    qhca_buf_table_forget(&qp->sq);
    qhca_ring_clear(&qp->rq);
    memset(&qp->av, 0, sizeof(qp->av));
    qp->dest_qpn = qp->qkey = qp->sq_psn = qp->rq_psn = qp->access = 0;
    qp->pkey_index = 0;
    qp->path_mtu = qp->timeout = qp->retry_cnt = qp->rnr_retry = 0;
    qp->min_rnr_timer = qp->max_rd_atomic = qp->max_dest_rd_atomic = 0;
    qp->en_sqd_event = qp->syndrome = 0;
    qp->sq_head = qp->sq_next = qp->sq_tail = 0;
    qp->sq_awake = false;
    qp->tx_packets = qp->rx_packets = qp->retransmits = qp->timeouts = 0;
    qp->rnr_naks_rx = qp->seq_naks_rx = qp->duplicates = 0;
}

bool qhca_qp_clear_notify(struct qhca *e, const struct qhca_qp *qp)
{
    return !qp->rq.stride ||
           qhca_dbrec_notify(e, QHCA_DMA_RECORD, qp->qpn, qp->rq.dbrec, false);
}

void qhca_qp_free(struct qhca *e, struct qhca_qp *qp)
{
    qp->ops->free(e, qp);
    qhca_list_del(&qp->ready);
    qhca_event_forget(&qp->ev);
    qp_detach(e, qp);
    free(qp);
}

uint8_t qhca_cmd_destroy_qp(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_qp *qp = qhca_qp_get(e, c->obj);

    if (!qp) {
        return QHCA_ST_BAD_OBJ;
    }
    if (qp->users) {
        return QHCA_ST_BUSY;
    }
    /* First of all, or it could bind windows while they are taken away. */
    if (qp->ops->give_up) {
        qp->ops->give_up(e, qp);
    }
    if (!qhca_mw_unbind_all(e, &qp->windows)) {
        return QHCA_ST_AGAIN;
    }
    qhca_qp_free(e, qp);
    return QHCA_ST_OK;
}

bool qhca_qp_discard(struct qhca *e, uint32_t num)
{
    struct qhca_qp *qp = qhca_qp_get(e, num);

    if (qp) {
        qhca_qp_free(e, qp);
    }
    return qp;
}

void qhca_qp_trace_state(struct qhca *e, struct qhca_qp *qp, uint8_t old)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_QP_STATE, .num = qp->qpn, .a = old, .b = qp->state,
        .syndrome = qp->syndrome,
    };

    if (qhca_tracing(e)) {
        qhca_trace_emit(e, &t);
    }
}

static void qp_fail(struct qhca *e, struct qhca_qp *qp, uint8_t state,
                    uint8_t syndrome, uint8_t event)
{
    uint8_t old = qp->state;

    qp->state = state;
    qp->syndrome = syndrome;
    qhca_qp_trace_state(e, qp, old);
    if (event) {
        qhca_async_event(e, &qp->ev, event, syndrome);
    }
    qp->ops->error(e, qp);
}

void qhca_qp_error(struct qhca *e, struct qhca_qp *qp, uint8_t syndrome,
                   uint8_t event)
{
    if (qp->state != QHCA_QPS_ERR && qp->state != QHCA_QPS_RESET) {
        qp_fail(e, qp, QHCA_QPS_ERR, syndrome, event);
    }
}

void qhca_qp_sqe(struct qhca *e, struct qhca_qp *qp, uint8_t syndrome)
{
    if (qp->state == QHCA_QPS_RTS || qp->state == QHCA_QPS_SQD) {
        qp_fail(e, qp, QHCA_QPS_SQE, syndrome, 0);
    }
}

static void query_static(const struct qhca_qp *qp, struct qhca_qpc *out)
{
    out->qpn = qhca_le32(qp->qpn);
    out->type = qp->type;
    out->state = qp->state;
    out->flags = qp->flags;
    out->uar = qhca_le32(qp->uar);
    out->send_cqn = qp->scq ? qhca_le32(qp->scq->cqn) : 0;
    if (qp->xrcd) {
        out->xrcd = qhca_le32(qp->xrcd->xrcd);
    } else {
        out->pd = qhca_le32(qp->pd);
        out->recv_cqn = qp->rcq ? qhca_le32(qp->rcq->cqn) : 0;
    }
    out->srqn = qp->srq ? qhca_le32(qp->srq->srqn) : 0;
    if (!qp->tm) {              /* else the device owns the ring */
        out->sq_shift = qp->sq_shift;
        out->sq_stride = qp->sq_stride;
    }
    out->rq_shift = qp->rq.shift;
    out->rq_stride = qp->rq.stride;
    qhca_buf_table_describe(&qp->sq, &out->sq);
    qhca_buf_table_describe(&qp->rq.buf, &out->rq);
    out->rq_dbrec = qhca_le64(qp->rq.dbrec);
    out->sq_dbrec = qhca_le64(qp->sq_dbrec);
    out->cookie = qhca_le64(qp->cookie);
}

static void query_attributes(const struct qhca_qp *qp, struct qhca_qpc *out)
{
    out->av = qp->av;
    out->dest_qpn = qhca_le32(qp->dest_qpn);
    out->qkey = qhca_le32(qp->qkey);
    out->sq_psn = qhca_le32(qp->sq_psn);
    out->rq_psn = qhca_le32(qp->rq_psn);
    out->access = qhca_le32(qp->access);
    out->pkey_index = qhca_le16(qp->pkey_index);
    out->path_mtu = qp->path_mtu;
    out->timeout = qp->timeout;
    out->retry_cnt = qp->retry_cnt;
    out->rnr_retry = qp->rnr_retry;
    out->min_rnr_timer = qp->min_rnr_timer;
    out->max_rd_atomic = qp->max_rd_atomic;
    out->max_dest_rd_atomic = qp->max_dest_rd_atomic;
    out->en_sqd_event = qp->en_sqd_event;
}

void qhca_qp_describe(const struct qhca_qp *qp, struct qhca_qpc *out)
{
    memset(out, 0, sizeof(*out));
    query_static(qp, out);
    query_attributes(qp, out);
}

static void query_leaf(const struct qhca_buf_table *m, __le64 *leaf,
                       __le32 *page)
{
    if (m->leaf_valid) {
        *leaf = qhca_le64(m->leaf);
        *page = qhca_le32((uint32_t)m->leaf_page);
    }
}

bool qhca_query_qp(struct qhca *e, uint32_t qpn, struct qhca_qpc *out)
{
    struct qhca_qp *qp = qhca_qp_get(e, qpn);

    if (!qp) {
        return false;
    }
    qhca_qp_describe(qp, out);
    out->sq_head = qhca_le32(qp->sq_head);
    out->sq_next = qhca_le32(qp->sq_next);
    out->sq_tail = qhca_le32(qp->sq_tail);
    out->rq_head = qhca_le32(qp->rq.head);
    out->rq_tail = qhca_le32(qp->rq.tail);
    out->syndrome = qp->syndrome;
    query_leaf(&qp->sq, &out->sq_leaf, &out->sq_leaf_page);
    query_leaf(&qp->rq.buf, &out->rq_leaf, &out->rq_leaf_page);
    out->tx_packets = qhca_le64(qp->tx_packets);
    out->rx_packets = qhca_le64(qp->rx_packets);
    out->retransmits = qhca_le64(qp->retransmits);
    out->timeouts = qhca_le64(qp->timeouts);
    out->rnr_naks_rx = qhca_le64(qp->rnr_naks_rx);
    out->seq_naks_rx = qhca_le64(qp->seq_naks_rx);
    out->duplicates = qhca_le64(qp->duplicates);
    qp->ops->query(e, qp, out);
    return true;
}

uint8_t qhca_cmd_query_qp(struct qhca *e, struct qhca_cmd *c)
{
    return qhca_query_qp(e, c->obj, c->out) ? QHCA_ST_OK : QHCA_ST_BAD_OBJ;
}
