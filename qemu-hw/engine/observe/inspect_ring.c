/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Inspecting rings: the entries and the state of each. */
#include "observe/inspect_internal.h"

#define SHOW_MIN            8
#define SHOW_MAX            64

static const char *const ring_name[QHCA_RINGS] = {
    [QHCA_RING_SQ] = "sq",
    [QHCA_RING_RQ] = "rq",
    [QHCA_RING_CQ] = "cq",
    [QHCA_RING_EQ] = "eq",
    [QHCA_RING_SRQ] = "srq",
    [QHCA_RING_INDEX] = "index",
    [QHCA_RING_OPS] = "ops",
    [QHCA_RING_DATA] = "data",
    [QHCA_RING_MR] = "mr",
};

const char *qhca_ring_name(enum qhca_ring ring)
{
    return ring < QHCA_RINGS ? ring_name[ring] : NULL;
}

enum qhca_ring qhca_ring_default(enum qhca_object object)
{
    switch (object) {
    case QHCA_OBJ_CQ:
        return QHCA_RING_CQ;
    case QHCA_OBJ_EQ:
        return QHCA_RING_EQ;
    case QHCA_OBJ_SRQ:
        return QHCA_RING_SRQ;
    case QHCA_OBJ_MR:
        return QHCA_RING_MR;
    case QHCA_OBJ_MW:
        return QHCA_RING_MR;
    case QHCA_OBJ_ETH_RQ:
    case QHCA_OBJ_WQ:
        return QHCA_RING_RQ;
    default:
        return QHCA_RING_SQ;
    }
}

static const char no_ring[] = "the object has no such ring";

static const char *wqe_ring(struct qhca_wqe_ring *q, struct qhca_ring_info *r)
{
    if (!q->buf.len) {
        return no_ring;
    }
    r->map = &q->buf;
    r->shift = q->shift;
    r->stride = q->stride;
    r->head = q->head;
    r->tail = q->tail;
    r->dbrec = q->dbrec;
    return NULL;
}

static const char *qp_ring(struct qhca_qp *qp, enum qhca_ring ring,
                           struct qhca_ring_info *r)
{
    r->qp_type = qp->type;
    if (ring == QHCA_RING_SQ && qp->sq_stride && !qp->tm) {
        r->map = &qp->sq;
        r->shift = qp->sq_shift;
        r->stride = qp->sq_stride;
        r->dbrec = qp->sq_dbrec;
        r->head = qp->sq_head;
        r->next = qp->sq_next;
        r->tail = qp->sq_tail;
        return NULL;
    }
    return ring == QHCA_RING_RQ ? wqe_ring(&qp->rq, r) : no_ring;
}

static const char *srq_ring(struct qhca_srq *srq, enum qhca_ring ring,
                            struct qhca_ring_info *r)
{
    if (ring == QHCA_RING_SRQ) {
        r->map = &srq->buf;
        r->shift = srq->shift;
        r->stride = srq->stride;
        r->unordered = true;
        return NULL;
    }
    if (ring == QHCA_RING_INDEX) {
        r->map = &srq->idx;
        r->shift = srq->shift;
        r->stride = 2;
        r->head = srq->head;
        r->tail = srq->tail;
        r->dbrec = srq->dbrec;
        return NULL;
    }
    if (ring == QHCA_RING_OPS && srq->tm) {
        r->map = &srq->tm->ops;
        r->shift = srq->tm->ops_shift;
        r->stride = srq->tm->ops_stride;
        r->head = srq->tm->ops_head;
        r->tail = srq->tm->ops_tail;
        return NULL;
    }
    return no_ring;
}

static const char *device_ring(void *obj, enum qhca_ring ring,
                               struct qhca_ring_info *r)
{
    struct qhca_cq *cq = obj;
    struct qhca_eq *eq = obj;

    r->phase = true;
    if (ring == QHCA_RING_CQ) {
        r->map = &cq->buf;
        r->shift = cq->shift;
        r->stride = 6;
        r->head = cq->prod;
        r->tail = cq->cons;
        r->dbrec = cq->dbrec;
    } else {
        r->map = &eq->buf;
        r->shift = eq->shift;
        r->stride = 4;
        r->head = eq->prod;
        r->tail = eq->cons;
        r->dbrec = eq->dbrec;
    }
    return NULL;
}

_Static_assert(sizeof(struct qhca_cqe) == 1 << 6 &&
               sizeof(struct qhca_eqe) == 1 << 4, "strides");

static const char *eth_ring(struct qhca_eth_q *obj, enum qhca_ring ring,
                            struct qhca_ring_info *r)
{
    return wqe_ring(ring == QHCA_RING_DATA ? &obj->data : &obj->ring, r);
}

const char *qhca_ring_find(struct qhca *e, enum qhca_object object,
                           uint32_t number, enum qhca_ring ring,
                           struct qhca_ring_info *r)
{
    struct qhca_wq *wq;
    void *obj = NULL;

    switch (object) {
    case QHCA_OBJ_QP:
        obj = qhca_qp_get(e, number);
        return obj ? qp_ring(obj, ring, r) : "no such object";
    case QHCA_OBJ_WQ:
        wq = qhca_wq_get(e, number);
        return !wq ? "no such object" :
               ring == QHCA_RING_RQ ? wqe_ring(&wq->ring, r) : no_ring;
    case QHCA_OBJ_SRQ:
        obj = qhca_idr_get(&e->q->srqs, number);
        return obj ? srq_ring(obj, ring, r) : "no such object";
    case QHCA_OBJ_CQ:
        obj = ring == QHCA_RING_CQ ? qhca_idr_get(&e->q->cqs, number) : NULL;
        break;
    case QHCA_OBJ_EQ:
        obj = ring == QHCA_RING_EQ ? qhca_idr_get(&e->q->eqs, number) : NULL;
        break;
    case QHCA_OBJ_ETH_SQ:
        obj = qhca_idr_get(&e->eth->eth_sqs, number);
        return obj ? eth_ring(obj, ring, r) : "no such object";
    case QHCA_OBJ_ETH_RQ:
        obj = qhca_idr_get(&e->eth->eth_rqs, number);
        return obj ? eth_ring(obj, ring, r) : "no such object";
    default:
        return no_ring;
    }
    return obj ? device_ring(obj, ring, r) : "no such object";
}

/* ---- showing it ---- */

/* State of the entry with free-running @index, as far as the device knows. */
static const char *inspect_mark(const struct qhca_ring_query *look,
                                const struct qhca_ring_info *r, uint32_t index)
{
    uint32_t held = r->head - r->tail;

    if (r->unordered) {
        return NULL;
    }
    if (index - r->tail >= held) {
        return r->phase ? "consumed" : "free";
    }
    if (r->phase) {
        return "waiting";       /* not consumed, as far as the device knows */
    }
    if (look->object == QHCA_OBJ_QP && look->ring == QHCA_RING_SQ) {
        return index - r->tail < r->next - r->tail ? "in-flight" : "posted";
    }
    return "posted";
}

static void decode_entry(const struct qhca_emit *em,
                         const struct qhca_ring_query *look,
                         const struct qhca_ring_info *r, const uint8_t *p)
{
    size_t len = (size_t)1 << r->stride;

    switch (look->object) {
    case QHCA_OBJ_QP:
        if (look->ring == QHCA_RING_SQ) {
            qhca_decode_send_wqe(em, r->qp_type, p, len);
        } else {
            qhca_decode_recv_wqe(em, p, len);
        }
        break;
    case QHCA_OBJ_WQ:
        qhca_decode_recv_wqe(em, p, len);
        break;
    case QHCA_OBJ_SRQ:
        if (look->ring == QHCA_RING_SRQ) {
            qhca_decode_recv_wqe(em, p, len);
        } else if (look->ring == QHCA_RING_OPS) {
            qhca_decode_tm_wqe(em, p, len);
        } else {
            qhca_emit_dec(em, "wqe", qhca_get_le32(p));
        }
        break;
    case QHCA_OBJ_CQ:
        qhca_decode_cqe(em, p);
        break;
    case QHCA_OBJ_EQ:
        qhca_decode(em, qhca_fields_eqe, p);
        break;
    case QHCA_OBJ_ETH_SQ:
        qhca_decode_eth_wqe(em, p, len);
        break;
    default:                    /* QHCA_OBJ_ETH_RQ: others have no rings */
        qhca_decode(em, qhca_fields_eth_seg, p);
        break;
    }
}

static void show_entry(struct qhca *e, const struct qhca_emit *em,
                       const struct qhca_ring_query *look,
                       const struct qhca_ring_info *r, uint32_t index)
{
    uint32_t slot = index & ((1u << r->shift) - 1);
    uint8_t entry[QHCA_MAX_SQ_WQE];
    const char *text = inspect_mark(look, r, index);
    uint64_t addr = 0;

    qhca_emit_begin(em, NULL);
    if (!r->unordered) {
        qhca_emit_dec(em, "index", index);
    }
    qhca_emit_dec(em, "slot", slot);
    if (text) {
        qhca_emit_text(em, "mark", text);
    }
    text = qhca_peek_entry(e, r->map, (uint64_t)slot << r->stride, entry,
                           (size_t)1 << r->stride, &addr);
    if (text) {
        qhca_emit_text(em, "error", text);
    } else {
        qhca_emit_hex(em, "address", addr);
        decode_entry(em, look, r, entry);
        qhca_emit_bytes(em, "raw", entry, (size_t)1 << r->stride);
    }
    qhca_emit_end(em);
}

/* Default range of entries to show. */
static void usual_range(const struct qhca_ring_info *r, uint32_t *from,
                        uint32_t *count)
{
    uint32_t depth = 1u << r->shift, held = r->head - r->tail;

    if (r->unordered) {
        *from = 0;
        *count = SHOW_MAX;
        return;
    }
    *count = held < SHOW_MIN ? SHOW_MIN : held > SHOW_MAX ? SHOW_MAX : held;
    *count = *count < depth ? *count : depth;
    if (held >= *count && !r->phase) {
        *from = r->tail;        /* the entries that the device takes next */
    } else {
        *from = r->head >= *count ? r->head - *count : 0;
    }
}

const char *qhca_inspect_ring(struct qhca *e,
                              const struct qhca_ring_query *look,
                              const struct qhca_emit *em)
{
    struct qhca_ring_info r = { 0 };
    uint32_t from = look->index, count = look->count, i;
    const char *wrong = qhca_ring_find(e, look->object, look->number,
                                       look->ring, &r);

    if (wrong) {
        return wrong;
    }
    if (!look->ranged) {
        usual_range(&r, &from, &count);
    }
    count = count < QHCA_LOOK_MAX ? count : QHCA_LOOK_MAX;
    count = count < 1u << r.shift ? count : 1u << r.shift;
    qhca_emit_begin(em, NULL);
    qhca_emit_text(em, "object", qhca_object_name(look->object));
    qhca_emit_dec(em, "number", look->number);
    qhca_emit_text(em, "ring", qhca_ring_name(look->ring));
    qhca_emit_dec(em, "depth", 1u << r.shift);
    qhca_emit_dec(em, "stride", 1u << r.stride);
    if (!r.unordered) {
        qhca_emit_dec(em, "producer", r.head);
        if (look->object == QHCA_OBJ_QP && look->ring == QHCA_RING_SQ) {
            qhca_emit_dec(em, "next", r.next);
        }
        qhca_emit_dec(em, "consumer", r.tail);
    }
    if (r.dbrec) {
        qhca_inspect_dbrec(e, r.dbrec, em);
    }
    qhca_inspect_map(r.map, "buffer", em);
    qhca_emit_list(em, "entries");
    for (i = 0; i < count; i++) {
        show_entry(e, em, look, &r, from + i);
    }
    qhca_emit_end(em);
    qhca_emit_end(em);
    return NULL;
}
