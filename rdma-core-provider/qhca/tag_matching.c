// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Tag matching: the ring of operations of a TM SRQ, and which entries of the
 * device's list are in use.
 *
 * An entry is free again when the completion of its message was polled, or when
 * the device has executed its removal.  The device reports the latter in the
 * operation's slot, so that operations need no completion.  All of this runs
 * under the SRQ's lock.
 */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/qhca-hw.h>
#include <util/compiler.h>

#include "qhca-context.h"
#include "qhca-doorbell.h"
#include "qhca-lock.h"
#include "qhca-queue-buf.h"
#include "qhca-ring.h"
#include "qhca-srq.h"
#include "qhca-tm.h"

#define QHCA_TM_NUM(handle)	((handle) & 0xffffU)

static_assert((int)QHCA_WC_TM_ERR == (int)IBV_WC_TM_ERR &&
	      (int)QHCA_WC_TM_RNDV_INCOMPLETE ==
	      (int)IBV_WC_TM_RNDV_INCOMPLETE,
	      "the device's status codes must equal those of the verbs");

/*
 * Sizes and allocates ring and entries.
 *
 * @max_ops: maximum operations posted and not executed
 * @max_tags: number of entries
 *
 * Returns 0 or an error number; in that case, call qhca_tm_free(), too.
 */
int qhca_tm_make(struct qhca_context *ctx, struct qhca_srq *srq,
		 uint32_t max_tags, uint32_t max_ops)
{
	struct qhca_tm *tm;
	size_t len;
	uint32_t i;
	int ret;

	if (!max_tags || max_tags > QHCA_TM_MAX_TAGS)
		return EINVAL;
	tm = calloc(1, sizeof(*tm) + max_tags * sizeof(tm->entry[0]));
	if (!tm)
		return ENOMEM;
	srq->tm = tm;
	tm->max_tags = max_tags;
	for (i = 0; i < max_tags; i++) {
		tm->entry[i].handle = i;
		tm->entry[i].next = i + 1 < max_tags ? i + 1 : QHCA_SRQ_END;
	}
	tm->stride = qhca_log2_up(sizeof(struct qhca_tm_wqe) +
				  QHCA_TM_MAX_SGE * sizeof(struct qhca_sge));
	if (!qhca_ring_size(max_ops, ctx->max_srq_wr, tm->stride,
			    ctx->page_size, &tm->shift, &len))
		return EINVAL;
	ret = qhca_queue_buf_alloc(ctx, srq->parent, &tm->buf, len,
				   QHCA_RES_SRQ_OPS);
	if (ret)
		return ret;
	tm->ring = tm->buf.addr;
	return 0;
}

/* Frees it; NULL is allowed. */
void qhca_tm_free(struct qhca_tm *tm)
{
	if (!tm)
		return;
	qhca_queue_buf_free(&tm->buf);
	free(tm);
}

static struct qhca_tm_wqe *qhca_tm_slot(struct qhca_tm *tm, uint32_t counter)
{
	return (void *)(tm->ring + ((size_t)qhca_slot(counter, tm->shift) <<
				    tm->stride));
}

/* The entry is free; the next handle with its number differs. */
static void qhca_tm_release(struct qhca_tm *tm, uint32_t handle)
{
	uint32_t num = QHCA_TM_NUM(handle);
	struct qhca_tm_entry *entry = &tm->entry[num];

	/* A bogus or repeated handle from the device would corrupt the list. */
	if (num >= tm->max_tags || entry->next != QHCA_SRQ_BUSY ||
	    entry->handle != handle)
		return;
	entry->handle += 0x10000;
	entry->next = tm->first_free;
	tm->first_free = num;
}

/* Processes the operations that the device has executed. */
static void qhca_tm_reclaim(struct qhca_tm *tm)
{
	struct qhca_tm_wqe *wqe;
	uint32_t result;
	bool ok;

	for (; tm->tail != tm->head; tm->tail++) {
		wqe = qhca_tm_slot(tm, tm->tail);
		result = atomic_load_explicit(
				(__force _Atomic(uint32_t) *)&wqe->result,
				memory_order_acquire);
		result = le32toh((__force __le32)result);
		if (!(result & QHCA_TM_DONE))
			break;
		ok = result == QHCA_TM_DONE;
		/* A removal succeeded, or the entry was never added. */
		if (wqe->opcode == QHCA_WQE_TAG_DEL ? ok :
		    wqe->opcode == QHCA_WQE_TAG_ADD && !ok)
			qhca_tm_release(tm, le32toh(wqe->handle));
	}
}

/* The last completion of an entry was polled. */
void qhca_tm_give_back(struct qhca_srq *srq, uint32_t handle)
{
	qhca_lock(&srq->lock);
	if (srq->tm)
		qhca_tm_release(srq->tm, handle);
	qhca_unlock(&srq->lock);
}

/* Fills in TAG_ADD.  Returns 0, EINVAL, or ENOMEM if all entries are used. */
static int qhca_tm_add(struct qhca_tm *tm, struct qhca_tm_wqe *wqe,
		       struct ibv_ops_wr *wr)
{
	struct qhca_sge *sge = (struct qhca_sge *)(wqe + 1);
	struct qhca_tm_entry *entry;
	int i;

	if (wr->tm.add.num_sge < 0 || wr->tm.add.num_sge > QHCA_TM_MAX_SGE)
		return EINVAL;
	if (tm->first_free == QHCA_SRQ_END)
		qhca_tm_reclaim(tm);
	if (tm->first_free == QHCA_SRQ_END)
		return ENOMEM;
	entry = &tm->entry[tm->first_free];
	tm->first_free = entry->next;
	entry->next = QHCA_SRQ_BUSY;
	wr->tm.handle = entry->handle;

	wqe->handle = htole32(entry->handle);
	wqe->num_sge = htole16(wr->tm.add.num_sge);
	wqe->recv_wr_id = htole64(wr->tm.add.recv_wr_id);
	wqe->tag = htole64(wr->tm.add.tag);
	wqe->mask = htole64(wr->tm.add.mask);
	for (i = 0; i < wr->tm.add.num_sge; i++) {
		sge[i].addr = htole64(wr->tm.add.sg_list[i].addr);
		sge[i].len = htole32(wr->tm.add.sg_list[i].length);
		sge[i].lkey = htole32(wr->tm.add.sg_list[i].lkey);
	}
	return 0;
}

static int qhca_tm_post(struct qhca_tm *tm, struct ibv_ops_wr *wr)
{
	struct qhca_tm_wqe *wqe = qhca_tm_slot(tm, tm->head);
	int ret;

	if (wr->flags & ~(IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC))
		return EINVAL;
	if (qhca_ring_full(tm->head, tm->tail, tm->shift))
		qhca_tm_reclaim(tm);
	if (qhca_ring_full(tm->head, tm->tail, tm->shift))
		return ENOMEM;

	memset(wqe, 0, sizeof(*wqe));
	wqe->wr_id = htole64(wr->wr_id);
	wqe->unexp = htole32(wr->tm.unexpected_cnt);
	if (wr->flags & IBV_OPS_SIGNALED)
		wqe->flags |= QHCA_WQE_F_SIGNALED;
	if (wr->flags & IBV_OPS_TM_SYNC)
		wqe->flags |= QHCA_WQE_F_TM_SYNC;
	switch (wr->opcode) {
	case IBV_WR_TAG_ADD:
		wqe->opcode = QHCA_WQE_TAG_ADD;
		ret = qhca_tm_add(tm, wqe, wr);
		if (ret)
			return ret;
		break;
	case IBV_WR_TAG_DEL:
		if (QHCA_TM_NUM(wr->tm.handle) >= tm->max_tags)
			return EINVAL;
		wqe->opcode = QHCA_WQE_TAG_DEL;
		wqe->handle = htole32(wr->tm.handle);
		break;
	case IBV_WR_TAG_SYNC:
		wqe->opcode = QHCA_WQE_TAG_SYNC;
		break;
	default:
		return EINVAL;
	}
	tm->head++;
	return 0;
}

/*
 * ibv_post_srq_ops().  Returns 0; EOPNOTSUPP if the SRQ has no tag matching;
 * EINVAL for a bad opcode, flag, handle or number of SGEs; ENOMEM when the ring
 * or the list is full.
 */
int qhca_post_srq_ops(struct ibv_srq *ibv_srq, struct ibv_ops_wr *wr,
		      struct ibv_ops_wr **bad_wr)
{
	struct qhca_srq *srq = to_qsrq(ibv_srq);
	struct qhca_tm *tm = srq->tm;
	uint32_t head;
	int ret = 0;

	if (!tm) {
		*bad_wr = wr;
		return EOPNOTSUPP;
	}
	if (qhca_is_gone(ibv_srq->context)) {
		*bad_wr = wr;
		return EIO;
	}
	qhca_lock(&srq->lock);
	head = tm->head;
	for (; wr; wr = wr->next) {
		ret = qhca_tm_post(tm, wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
	}
	if (tm->head != head)
		qhca_db_ring(to_qctx(ibv_srq->context), QHCA_DB_TM, srq->srqn,
			     0, tm->head);
	qhca_unlock(&srq->lock);
	return ret;
}
