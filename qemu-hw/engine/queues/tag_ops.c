/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tag operations: from the ring of a TM SRQ to its tag list. */
#include "queues/queues.h"

#define KNOWN_FLAGS (QHCA_WQE_F_SIGNALED | QHCA_WQE_F_TM_SYNC)

/* The longest operation: a stride of 512. */
union op {
    struct qhca_tm_wqe h;
    uint8_t bytes[512];
};

bool qhca_tag_fits(const struct qhca_tm *tm, uint32_t n)
{
    uint32_t room = (1u << tm->ops_stride) - sizeof(struct qhca_tm_wqe);

    return n <= QHCA_TM_MAX_SGE && n <= room / sizeof(struct qhca_sge);
}

void qhca_tag_measure(struct qhca_tag *t)
{
    uint64_t cap = 0;
    unsigned i;

    for (i = 0; i < t->num_sge; i++) {
        cap += qhca_le32(t->sge[i].len);
    }
    t->cap = cap > UINT32_MAX ? UINT32_MAX : (uint32_t)cap;
}

/* The entry with the number in @handle, or NULL. */
static struct qhca_tag *tag_op_entry(struct qhca_tm *tm, uint32_t handle)
{
    uint32_t num = handle & 0xffff;

    return num < tm->max_tags ? &tm->tags[num] : NULL;
}

static uint8_t tag_op_add(struct qhca_tm *tm, const union op *op)
{
    uint32_t handle = qhca_le32(op->h.handle);
    uint32_t n = qhca_le16(op->h.num_sge);
    struct qhca_tag *t = tag_op_entry(tm, handle);

    if (!qhca_tag_fits(tm, n)) {
        return QHCA_SYN_WQE_SGE;
    }
    if (!t || t->state != QHCA_TAG_FREE) {
        return QHCA_SYN_TM_HANDLE;
    }
    t->handle = handle;
    t->tag = qhca_le64(op->h.tag);
    t->mask = qhca_le64(op->h.mask);
    t->wr_id = qhca_le64(op->h.recv_wr_id);
    t->num_sge = (uint8_t)n;
    memcpy(t->sge, op->bytes + sizeof(op->h), n * sizeof(t->sge[0]));
    qhca_tag_measure(t);
    qhca_tm_append(tm, (uint16_t)(handle & 0xffff));
    return QHCA_SYN_NONE;
}

static uint8_t tag_op_del(struct qhca_tm *tm, const union op *op)
{
    uint32_t handle = qhca_le32(op->h.handle);
    struct qhca_tag *t = tag_op_entry(tm, handle);

    if (op->h.num_sge) {
        return QHCA_SYN_WQE_SGE;
    }
    if (!t || t->state != QHCA_TAG_LISTED || t->handle != handle) {
        return QHCA_SYN_TM_HANDLE;
    }
    qhca_tm_unlink(tm, t);
    t->state = QHCA_TAG_FREE;
    return QHCA_SYN_NONE;
}

static uint8_t tag_op_execute(struct qhca_tm *tm, const union op *op)
{
    uint8_t syn = QHCA_SYN_NONE;

    if (op->h.flags & ~KNOWN_FLAGS) {
        return QHCA_SYN_WQE_FLAGS;
    }
    if ((op->h.flags & QHCA_WQE_F_TM_SYNC) ||
        op->h.opcode == QHCA_WQE_TAG_SYNC) {
        tm->told = qhca_le32(op->h.unexp);
        qhca_tm_sync(tm);
    }
    switch (op->h.opcode) {
    case QHCA_WQE_TAG_ADD:
        return tag_op_add(tm, op);
    case QHCA_WQE_TAG_DEL:
        return tag_op_del(tm, op);
    case QHCA_WQE_TAG_SYNC:
        return op->h.num_sge ? QHCA_SYN_WQE_SGE : syn;
    default:
        return QHCA_SYN_WQE_OPCODE;
    }
}

static bool tag_op_tell(struct qhca *e, struct qhca_tm *tm, const union op *op,
                        uint8_t syn)
{
    union {
        struct qhca_tm_cqe tm;
        struct qhca_cqe cqe;
    } c = { 0 };

    if (!(op->h.flags & QHCA_WQE_F_SIGNALED) &&
        (!syn || op->h.opcode == QHCA_WQE_TAG_DEL)) {
        return true;
    }
    c.tm.wr_id = op->h.wr_id;
    c.tm.wqe_index = qhca_le32(tm->ops_tail);
    c.tm.srqn = qhca_le32(tm->srq->srqn);
    c.tm.opcode = op->h.opcode == QHCA_WQE_TAG_ADD ? QHCA_CQE_OP_TM_ADD :
                  op->h.opcode == QHCA_WQE_TAG_DEL ? QHCA_CQE_OP_TM_DEL :
                                                     QHCA_CQE_OP_TM_SYNC;
    c.tm.status = syn ? QHCA_WC_TM_ERR : QHCA_WC_SUCCESS;
    c.tm.syndrome = syn;
    c.tm.flags = QHCA_CQE_F_SRQN;
    if (tm->seen != tm->told) {
        c.tm.flags |= QHCA_CQE_F_TM_SYNC_REQ;
    }
    c.tm.flags = qhca_le16(c.tm.flags);
    return qhca_cq_push(e, tm->srq->cq, &c.cqe, false);
}

/* Execute the operation at ops_tail.  QHCA_SYN_*: ring or CQ failed. */
static uint8_t tag_op_step(struct qhca *e, struct qhca_tm *tm)
{
    uint64_t off = tm->ops_tail & ((1u << tm->ops_shift) - 1), addr, run;
    union op op;
    uint8_t syn;

    syn = qhca_buf_table_walk(e, &tm->ops, off << tm->ops_stride, tm->srq->srqn,
                              &addr, &run);
    if (syn) {
        return syn;
    }
    if (!qhca_dma_read(e, QHCA_DMA_WQE, tm->srq->srqn, addr, &op,
                       1u << tm->ops_stride)) {
        return QHCA_SYN_WQE_DMA;
    }
    syn = tag_op_execute(tm, &op);
    /* Before the CQE: once software sees that, it may reuse the slot. */
    if (!qhca_dma_store64(e, QHCA_DMA_WQE, tm->srq->srqn,
                          addr + offsetof(struct qhca_tm_wqe, handle),
                          qhca_le32(op.h.handle) |
                          (uint64_t)(QHCA_TM_DONE | syn) << 32)) {
        return QHCA_SYN_WQE_DMA;
    }
    if (!tag_op_tell(e, tm, &op, syn)) {
        return QHCA_SYN_CQ_OVERFLOW;
    }
    tm->ops_tail++;
    return QHCA_SYN_NONE;
}

unsigned qhca_tm_run(struct qhca *e, unsigned budget)
{
    unsigned used = 0;

    while (used < budget && !qhca_list_empty(&e->q->tm_work) &&
           qhca_active(e)) {
        struct qhca_tm *tm = qhca_container(e->q->tm_work.next, struct qhca_tm,
                                            work);
        uint8_t syn = QHCA_SYN_NONE;

        while (used < budget && !syn && tm->ops_tail != tm->ops_head &&
               qhca_active(e)) {
            used++;
            syn = tag_op_step(e, tm);
        }
        if (syn) {
            qhca_srq_fail(e, tm->srq, syn);
        }
        qhca_list_del(&tm->work);
        if (!syn && tm->ops_tail != tm->ops_head) {
            qhca_list_add_tail(&e->q->tm_work, &tm->work);
        }
    }
    return used;
}

void qhca_tm_doorbell(struct qhca *e, struct qhca_srq *srq, uint32_t index)
{
    struct qhca_tm *tm = srq->tm;
    uint32_t depth = 1u << tm->ops_shift;

    if (srq->state != QHCA_SRQ_OK) {
        return;
    }
    /* Stale: a later doorbell overtook it. */
    if (index - tm->ops_tail > UINT32_MAX - depth) {
        return;
    }
    if (index - tm->ops_tail > depth) {
        qhca_guest_error(e, QHCA_STAT_DB_BAD_INDEX, srq->srqn,
                         "tag operations beyond the ring");
        qhca_list_del(&tm->work);
        qhca_srq_fail(e, srq, QHCA_SYN_DB_INDEX);
        return;
    }
    if (index - tm->ops_tail <= tm->ops_head - tm->ops_tail) {
        return;
    }
    tm->ops_head = index;
    if (qhca_list_empty(&tm->work)) {
        qhca_list_add_tail(&e->q->tm_work, &tm->work);
    }
}
