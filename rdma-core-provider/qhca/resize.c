// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Resizing queues, under traffic.  The queue's lock is held during the system
 * call: no thread polls or posts meanwhile, while the device continues.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/driver.h>
#include <rdma/qhca-hw.h>

#include "qhca-abi-cmd.h"
#include "qhca-context.h"
#include "qhca-cq.h"
#include "qhca-doorbell.h"
#include "qhca-lock.h"
#include "qhca-queue-buf.h"
#include "qhca-ring.h"
#include "qhca-srq.h"
#include "qhca-verbs.h"

/*
 * Gives the 1 << @shift entries of a new, zeroed ring the phase of the previous
 * lap: starting at counter @ci, none looks written.
 */
static void qhca_cq_blank(struct qhca_cqe *ring, uint8_t shift, uint32_t ci)
{
	uint32_t i;

	for (i = 0; i < 1U << shift; i++, ci++)
		if (!qhca_phase(ci, shift))
			ring[qhca_slot(ci, shift)].phase = 1;
}

/*
 * ibv_resize_cq().  The depth is rounded up as at creation, so it may not
 * change.  Returns 0, EINVAL for a depth out of range or smaller than the
 * number of pending completions, EOPNOTSUPP, ENOMEM, or the kernel's error.
 */
int qhca_resize_cq(struct ibv_cq *ibv_cq, int cqe)
{
	struct qhca_context *ctx = to_qctx(ibv_cq->context);
	struct ib_uverbs_resize_cq_resp resp = {};
	struct qhca_cq *cq = to_qcq(ibv_cq);
	struct qhca_cmd_resize_cq cmd = {};
	struct qhca_queue_buf buf = {}, old;
	uint8_t shift;
	uint32_t ci;
	size_t len;
	int ret;

	if (!(ctx->features & QHCA_FEAT_CQ_RESIZE))
		return EOPNOTSUPP;
	if (cqe < 1 || !qhca_ring_size(cqe, ctx->max_cqe, QHCA_CQE_SHIFT,
				       ctx->page_size, &shift, &len))
		return EINVAL;
	ret = qhca_queue_buf_alloc(ctx, cq->parent, &buf, len, QHCA_RES_CQ);
	if (ret)
		return ret;

	qhca_lock(&cq->lock);
	old = buf;
	if (shift == cq->shift)
		goto out;
	ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
	qhca_cq_blank(buf.addr, shift, ci);
	qhca_dbrec_store(cq->dbrec, ci);
	cmd.buf_addr = (uintptr_t)buf.addr;
	cmd.buf_len = buf.len;
	cmd.shift = shift;
	ret = ibv_cmd_resize_cq(ibv_cq, 1 << shift, &cmd.ibv_cmd, sizeof(cmd),
				&resp, sizeof(resp));
	if (ret)
		goto out;
	old = cq->buf;
	cq->buf = buf;
	cq->ring = buf.addr;
	cq->shift = shift;
	ibv_cq->cqe = 1 << shift;
out:
	qhca_unlock(&cq->lock);
	qhca_queue_buf_free(&old);
	return ret;
}

/* Number of WQEs posted, or whose completion was not polled. */
static uint32_t qhca_srq_busy(const struct qhca_srq *srq)
{
	uint32_t busy = 1U << srq->shift;
	uint32_t n;

	for (n = srq->first_free; n != QHCA_SRQ_END; n = srq->next[n])
		busy--;
	return busy;
}

/* The parts of an SRQ that depend on its size. */
struct qhca_srq_mem {
	struct qhca_queue_buf	wqes;
	struct qhca_queue_buf	index;
	uint32_t		*next;
	uint8_t			shift;
};

static void qhca_srq_mem_free(struct qhca_srq_mem *m)
{
	qhca_queue_buf_free(&m->wqes);
	qhca_queue_buf_free(&m->index);
	free(m->next);
}

/* Allocates memory for @max_wr WQEs.  Returns 0, EINVAL or ENOMEM. */
static int qhca_srq_mem_alloc(struct qhca_context *ctx,
			      const struct qhca_srq *srq, uint32_t max_wr,
			      struct qhca_srq_mem *m)
{
	size_t len, index_len;
	int ret;

	if (!qhca_ring_size(max_wr, ctx->max_srq_wr, srq->stride,
			    ctx->page_size, &m->shift, &len))
		return EINVAL;
	index_len = sizeof(*srq->index) << m->shift;
	index_len = (index_len + ctx->page_size - 1) & ~(ctx->page_size - 1);
	ret = qhca_queue_buf_alloc(ctx, srq->parent, &m->wqes, len,
				   QHCA_RES_SRQ);
	if (!ret)
		ret = qhca_queue_buf_alloc(ctx, srq->parent, &m->index,
					   index_len, QHCA_RES_SRQ_INDEX);
	if (!ret) {
		m->next = calloc(1U << m->shift, sizeof(*m->next));
		if (!m->next)
			ret = ENOMEM;
	}
	if (ret)
		qhca_srq_mem_free(m);
	return ret;
}

/*
 * Copies everything posted, with the same numbers and places.  The device's
 * position is unknown, so the whole ring is copied, used up or not.
 */
static void qhca_srq_mem_copy(const struct qhca_srq *srq,
			      struct qhca_srq_mem *m)
{
	uint32_t depth = 1U << srq->shift;
	uint32_t new_depth = 1U << m->shift;
	__le32 *index = m->index.addr;
	uint32_t i;

	memcpy(m->wqes.addr, srq->ring, (size_t)depth << srq->stride);
	for (i = srq->head - depth; i != srq->head; i++)
		index[qhca_slot(i, m->shift)] =
			srq->index[qhca_slot(i, srq->shift)];
	memcpy(m->next, srq->next, depth * sizeof(*m->next));
	for (i = depth; i < new_depth; i++)
		m->next[i] = i + 1 < new_depth ? i + 1 : srq->first_free;
}

/* Swaps @m with the current memory. */
static void qhca_srq_mem_swap(struct qhca_srq *srq, struct qhca_srq_mem *m)
{
	struct qhca_srq_mem old = {
		.wqes = srq->buf,
		.index = srq->index_buf,
		.next = srq->next,
	};

	srq->first_free = 1U << srq->shift;	/* the first of the new ones */
	srq->shift = m->shift;
	srq->buf = m->wqes;
	srq->index_buf = m->index;
	srq->next = m->next;
	srq->ring = srq->buf.addr;
	srq->index = srq->index_buf.addr;
	*m = old;
}

/* Enlarges the SRQ to @m, which gets its old memory; the lock is held. */
static int qhca_srq_grow(struct qhca_srq *srq, struct ibv_srq_attr *attr,
			 int mask, struct qhca_srq_mem *m)
{
	struct qhca_cmd_modify_srq cmd = {};
	int ret;

	qhca_srq_mem_copy(srq, m);
	cmd.buf_addr = (uintptr_t)m->wqes.addr;
	cmd.buf_len = m->wqes.len;
	cmd.idx_addr = (uintptr_t)m->index.addr;
	cmd.idx_len = m->index.len;
	cmd.shift = m->shift;
	ret = ibv_cmd_modify_srq(&srq->vsrq.srq, attr, mask, &cmd.ibv_cmd,
				 sizeof(cmd));
	if (!ret)
		qhca_srq_mem_swap(srq, m);
	return ret;
}

/* Has the SRQ less room than @max_wr WQEs?  The lock is held. */
static bool qhca_srq_must_grow(const struct qhca_srq *srq, uint32_t max_wr)
{
	return max_wr > 1U << srq->shift;
}

/*
 * ibv_modify_srq().  An SRQ may have more room than requested, so when shrunk
 * it keeps its size: only a size below the number of posted WQEs is rejected.
 * The application's allocators are called without the lock.
 *
 * Returns 0, EINVAL, EOPNOTSUPP, ENOMEM, or the kernel's error.
 */
int qhca_modify_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr,
		    int mask)
{
	struct qhca_context *ctx = to_qctx(ibv_srq->context);
	struct qhca_srq *srq = to_qsrq(ibv_srq);
	struct ibv_modify_srq cmd = {};
	struct qhca_srq_mem m = {};
	bool grow;
	int ret;

	if (!(mask & IBV_SRQ_MAX_WR))
		return ibv_cmd_modify_srq(ibv_srq, attr, mask, &cmd,
					  sizeof(cmd));
	if (!attr->max_wr ||
	    ((mask & IBV_SRQ_LIMIT) && attr->srq_limit > attr->max_wr))
		return EINVAL;
	qhca_lock(&srq->lock);
	grow = qhca_srq_must_grow(srq, attr->max_wr);
	qhca_unlock(&srq->lock);
	if (grow) {
		if (!(ctx->features & QHCA_FEAT_SRQ_RESIZE))
			return EOPNOTSUPP;
		ret = qhca_srq_mem_alloc(ctx, srq, attr->max_wr, &m);
		if (ret)
			return ret;
	}

	qhca_lock(&srq->lock);
	/* Another thread may have enlarged it meanwhile; it never shrinks. */
	if (qhca_srq_must_grow(srq, attr->max_wr)) {
		ret = qhca_srq_grow(srq, attr, mask, &m);
	} else if (attr->max_wr < qhca_srq_busy(srq)) {
		ret = EINVAL;
	} else {
		mask &= ~IBV_SRQ_MAX_WR;
		ret = mask ? ibv_cmd_modify_srq(ibv_srq, attr, mask, &cmd,
						sizeof(cmd)) : 0;
	}
	qhca_unlock(&srq->lock);
	qhca_srq_mem_free(&m);
	return ret;
}
