/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ethernet queues: contexts, states and commands. */
#include <stdlib.h>

#include "ethernet/ethernet.h"

#define RQ_STRIDE           4

size_t qhca_eth_q_bad(const struct qhca *e, const struct qhca_eth_q *q)
{
    uint8_t min = q->is_sq ? 6 : RQ_STRIDE, max = q->is_sq ? 9 : RQ_STRIDE;
    uint8_t known = q->is_sq ? 0 : QHCA_ETH_Q_F_HDS | QHCA_ETH_Q_F_GRO |
                    QHCA_ETH_Q_F_UNPAD |
                    (e->cfg.super_frames ? QHCA_ETH_Q_F_SUPER : 0);
    bool hds = q->flags & QHCA_ETH_Q_F_HDS;

    if (q->ring.shift > QHCA_MAX_WQ_SHIFT) {
        return offsetof(struct qhca_eth_qc, shift);
    }
    if (q->ring.stride < min || q->ring.stride > max) {
        return offsetof(struct qhca_eth_qc, stride);
    }
    if (!q->is_sq && (q->ring.dbrec & 7)) {
        return offsetof(struct qhca_eth_qc, dbrec);
    }
    if (q->flags & ~known) {
        return offsetof(struct qhca_eth_qc, flags);
    }
    if (hds ? q->data.shift > QHCA_MAX_WQ_SHIFT : q->data.shift) {
        return offsetof(struct qhca_eth_qc, data_shift);
    }
    if (hds ? q->data.dbrec & 7 : q->data.dbrec) {
        return offsetof(struct qhca_eth_qc, data_dbrec);
    }
    return hds || !q->hds_thresh ? 0 : offsetof(struct qhca_eth_qc, hds_thresh);
}

static uint8_t ring_init(struct qhca_wqe_ring *r, const struct qhca_buf *d)
{
    uint8_t st = qhca_buf_table_init(&r->buf, d, 1ULL << (r->shift + r->stride),
                                     true);

    r->buf.kind = QHCA_DMA_ETH;
    return st;
}

/*
 * Take rings and CQ from the input into @q, whose is_sq and hds_thresh are
 * set; @stride: of the ring.
 */
static uint8_t eth_q_take_rings(struct qhca *e, struct qhca_cmd *c,
                                struct qhca_eth_q *q, uint8_t stride)
{
    static const struct qhca_buf none;
    const struct qhca_eth_qc *in = c->in;
    bool hds = in->flags & QHCA_ETH_Q_F_HDS;
    size_t bad;
    uint8_t st;

    q->ring = (struct qhca_wqe_ring){
        .dbrec = qhca_le64(in->dbrec), .shift = in->shift, .stride = stride,
    };
    q->data = (struct qhca_wqe_ring){
        .dbrec = qhca_le64(in->data_dbrec), .shift = in->data_shift,
        .stride = RQ_STRIDE,
    };
    q->flags = in->flags;
    bad = qhca_eth_q_bad(e, q);
    if (bad) {
        return qhca_bad(c, bad);
    }
    if (!hds && memcmp(&in->data_buf, &none, sizeof(none))) {
        return qhca_bad(c, offsetof(struct qhca_eth_qc, data_buf));
    }
    q->cq = qhca_idr_get(&e->q->cqs, qhca_le32(in->cqn));
    if (!q->cq) {
        return qhca_bad_obj(c, offsetof(struct qhca_eth_qc, cqn));
    }
    st = ring_init(&q->ring, &in->buf);
    return st || !hds ? st : ring_init(&q->data, &in->data_buf);
}

/* Find the shaper of an SQ; *@up is NULL if it has none. */
static bool eth_q_find_shaper(struct qhca *e, const struct qhca_eth_qc *in,
                              struct qhca_shaper **up)
{
    uint32_t num = qhca_le32(in->shaper);

    *up = qhca_idr_get(&e->eth->shapers, num);
    return *up || num == QHCA_SHAPER_NONE;
}

static uint8_t eth_q_create(struct qhca *e, struct qhca_cmd *c, bool is_sq)
{
    const struct qhca_eth_qc *in = c->in;
    struct qhca_eth_q tmp = { .is_sq = is_sq, .state = QHCA_WQS_RDY }, *q;
    struct qhca_shaper *up;
    uint8_t st;

    tmp.hds_thresh = qhca_le32(in->hds_thresh);
    st = eth_q_take_rings(e, c, &tmp, in->stride);
    if (st) {
        return st;
    }
    if (in->state) {
        return qhca_bad(c, offsetof(struct qhca_eth_qc, state));
    }
    if (!is_sq && in->shaper) {
        return qhca_bad(c, offsetof(struct qhca_eth_qc, shaper));
    }
    if (!eth_q_find_shaper(e, in, &up)) {
        return qhca_bad_obj(c, offsetof(struct qhca_eth_qc, shaper));
    }
    q = malloc(sizeof(*q));
    if (!q || !qhca_idr_add(is_sq ? &e->eth->eth_sqs : &e->eth->eth_rqs, q,
                            &tmp.num)) {
        free(q);
        return QHCA_ST_NO_RESOURCES;
    }
    *q = tmp;
    qhca_turn_init(&q->turn, false);
    qhca_turn_move(e, &q->turn, up);
    qhca_event_init(&q->ev, q->num);
    q->cq->refs++;
    c->obj = q->num;
    return QHCA_ST_OK;
}

void qhca_eth_q_free(struct qhca *e, struct qhca_eth_q *q)
{
    if (!q->is_sq && e->eth->eth_rqn == q->num) {
        e->eth->eth_rqn = QHCA_ETH_RQ_NONE;
    }
    qhca_gro_stop(e, q);
    qhca_turn_del(e, &q->turn);
    qhca_turn_move(e, &q->turn, NULL);
    qhca_event_forget(&q->ev);
    q->cq->refs--;
    qhca_idr_del(q->is_sq ? &e->eth->eth_sqs : &e->eth->eth_rqs, q->num);
    free(q);
}

void qhca_eth_q_fail(struct qhca *e, struct qhca_eth_q *q, uint8_t syndrome)
{
    if (q->state != QHCA_WQS_RDY) {
        return;
    }
    q->state = QHCA_WQS_ERR;
    q->syndrome = syndrome;
    qhca_turn_del(e, &q->turn);
    qhca_gro_stop(e, q);
    qhca_async_event(e, &q->ev, q->is_sq ? QHCA_EV_ETH_SQ_ERR :
                     QHCA_EV_ETH_RQ_ERR, syndrome);
}

void qhca_eth_trace_data(struct qhca *e, const struct qhca_eth_q *q,
                         uint64_t addr, size_t len, bool write)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_ETH_DATA, .num = q->num, .index = q->ring.tail,
        .addr = addr, .a = len, .b = write,
    };

    qhca_trace_emit(e, &t);
}

/* ---- MODIFY_ETH_RQ ---- */

#define RQ_MASK (QHCA_ETH_RQ_M_STATE | QHCA_ETH_RQ_M_RINGS |            \
                 QHCA_ETH_RQ_M_HDS_THRESH)

/* Check everything; *@next, a copy of @q, gets rings, CQ and threshold. */
static uint8_t rq_check_modify(struct qhca *e, struct qhca_cmd *c,
                               const struct qhca_eth_q *q,
                               struct qhca_eth_q *next)
{
    const struct qhca_eth_qc *in = c->in;
    bool rings = c->mask & QHCA_ETH_RQ_M_RINGS;
    size_t bad;

    if (c->mask & ~RQ_MASK) {
        return QHCA_ST_BAD_PARAM;
    }
    if (c->mask & QHCA_ETH_RQ_M_STATE) {
        if (in->state > QHCA_WQS_RDY) {
            return qhca_bad(c, offsetof(struct qhca_eth_qc, state));
        }
        if (in->state == QHCA_WQS_RDY && q->state != QHCA_WQS_RESET) {
            return QHCA_ST_BAD_STATE;
        }
    }
    if (rings && q->state != QHCA_WQS_RESET) {
        return QHCA_ST_BAD_STATE;
    }
    if (c->mask & QHCA_ETH_RQ_M_HDS_THRESH) {
        next->hds_thresh = qhca_le32(in->hds_thresh);
    } else if (rings && !(in->flags & QHCA_ETH_Q_F_HDS)) {
        next->hds_thresh = 0;
    }
    if (rings) {
        return eth_q_take_rings(e, c, next, RQ_STRIDE);
    }
    bad = qhca_eth_q_bad(e, next);
    return bad ? qhca_bad(c, bad) : QHCA_ST_OK;
}

/* Nothing is in flight, as no command runs while frames are merged. */
static void rq_set_state(struct qhca_eth_q *q, uint8_t state)
{
    if (state == QHCA_WQS_RESET) {
        qhca_event_forget(&q->ev);
        qhca_ring_clear(&q->ring);
        qhca_ring_clear(&q->data);
        q->syndrome = QHCA_SYN_NONE;
    }
    q->state = state;
}

uint8_t qhca_cmd_modify_eth_rq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_eth_q *q = qhca_idr_get(&e->eth->eth_rqs, c->obj), next;
    const struct qhca_eth_qc *in = c->in;
    uint8_t st;

    if (!q) {
        return QHCA_ST_BAD_OBJ;
    }
    next = *q;
    st = rq_check_modify(e, c, q, &next);
    if (st) {
        return st;
    }
    q->hds_thresh = next.hds_thresh;
    if (c->mask & QHCA_ETH_RQ_M_RINGS) {
        q->cq->refs--;
        q->cq = next.cq;
        q->cq->refs++;
        q->ring = next.ring;
        q->data = next.data;
        q->flags = next.flags;
    }
    if (c->mask & QHCA_ETH_RQ_M_STATE) {
        rq_set_state(q, in->state);
    }
    return QHCA_ST_OK;
}

/* ---- the other commands ---- */

uint8_t qhca_cmd_modify_eth_sq(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_eth_q *q = qhca_idr_get(&e->eth->eth_sqs, c->obj);
    const struct qhca_eth_qc *in = c->in;
    struct qhca_shaper *up;

    if (!q) {
        return QHCA_ST_BAD_OBJ;
    }
    if (c->mask & ~QHCA_ETH_SQ_M_SHAPER) {
        return QHCA_ST_BAD_PARAM;
    }
    if (c->mask & QHCA_ETH_SQ_M_SHAPER) {
        if (!eth_q_find_shaper(e, in, &up)) {
            return qhca_bad_obj(c, offsetof(struct qhca_eth_qc, shaper));
        }
        qhca_turn_move(e, &q->turn, up);
    }
    return QHCA_ST_OK;
}

static uint8_t eth_q_destroy(struct qhca *e, struct qhca_cmd *c,
                             struct qhca_idr *t)
{
    struct qhca_eth_q *q = qhca_idr_get(t, c->obj);

    if (!q) {
        return QHCA_ST_BAD_OBJ;
    }
    if (q->users) {
        return QHCA_ST_BUSY;
    }
    qhca_eth_q_free(e, q);
    return QHCA_ST_OK;
}

void qhca_eth_q_query(const struct qhca_eth_q *q, struct qhca_eth_qc *out)
{
    qhca_buf_table_describe(&q->ring.buf, &out->buf);
    out->dbrec = qhca_le64(q->ring.dbrec);
    out->cqn = qhca_le32(q->cq->cqn);
    out->shift = q->ring.shift;
    out->stride = q->ring.stride;
    out->flags = q->flags;
    out->state = q->state;
    if (q->flags & QHCA_ETH_Q_F_HDS) {
        qhca_buf_table_describe(&q->data.buf, &out->data_buf);
        out->data_dbrec = qhca_le64(q->data.dbrec);
        out->data_shift = q->data.shift;
        out->hds_thresh = qhca_le32(q->hds_thresh);
        out->data_head = qhca_le32(q->data.head);
        out->data_tail = qhca_le32(q->data.tail);
    }
    out->head = qhca_le32(q->ring.head);
    out->tail = qhca_le32(q->ring.tail);
    out->dropped = qhca_le64(q->dropped);
    out->syndrome = q->syndrome;
    out->waits = qhca_turn_waits(&q->turn) != NULL;
    out->shaper = qhca_le32(q->turn.up ? q->turn.up->num : QHCA_SHAPER_NONE);
}

static uint8_t eth_q_query(struct qhca_cmd *c, const struct qhca_idr *t)
{
    const struct qhca_eth_q *q = qhca_idr_get(t, c->obj);

    if (!q) {
        return QHCA_ST_BAD_OBJ;
    }
    qhca_eth_q_query(q, c->out);
    return QHCA_ST_OK;
}

uint8_t qhca_cmd_create_eth_sq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_create(e, c, true);
}

uint8_t qhca_cmd_destroy_eth_sq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_destroy(e, c, &e->eth->eth_sqs);
}

uint8_t qhca_cmd_query_eth_sq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_query(c, &e->eth->eth_sqs);
}

uint8_t qhca_cmd_create_eth_rq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_create(e, c, false);
}

uint8_t qhca_cmd_destroy_eth_rq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_destroy(e, c, &e->eth->eth_rqs);
}

uint8_t qhca_cmd_query_eth_rq(struct qhca *e, struct qhca_cmd *c)
{
    return eth_q_query(c, &e->eth->eth_rqs);
}

static bool eth_q_discard(struct qhca *e, struct qhca_eth_q *q)
{
    if (q) {
        qhca_eth_q_free(e, q);
    }
    return q;
}

bool qhca_eth_sq_discard(struct qhca *e, uint32_t num)
{
    return eth_q_discard(e, qhca_idr_get(&e->eth->eth_sqs, num));
}

bool qhca_eth_rq_discard(struct qhca *e, uint32_t num)
{
    return eth_q_discard(e, qhca_idr_get(&e->eth->eth_rqs, num));
}
