// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: WQEs addressed by number, an index ring that tells
 * the device which of them were posted, and a list of the free ones.
 */
#include <errno.h>
#include <stdlib.h>

#include "qhca.h"
#include "qhca-abi-cmd.h"

/* Makes the free list, with all WQEs in it.  Returns 0 or ENOMEM. */
int qhca_srq_list_init(struct qhca_srq *srq)
{
	uint32_t depth = 1U << srq->shift;
	uint32_t i;

	srq->next = calloc(depth, sizeof(*srq->next));
	if (!srq->next)
		return ENOMEM;
	for (i = 0; i < depth; i++)
		srq->next[i] = i + 1 < depth ? i + 1 : QHCA_SRQ_END;
	srq->first_free = 0;
	return 0;
}

/*
 * Puts a WQE back into the free list.  A number the device made up, or told
 * twice, would spoil the list, so it is ignored.
 */
void qhca_srq_give_back(struct qhca_srq *srq, uint32_t number)
{
	qhca_lock(&srq->lock);
	if (number < 1U << srq->shift &&
	    srq->next[number] == QHCA_SRQ_BUSY) {
		srq->next[number] = srq->first_free;
		srq->first_free = number;
	}
	qhca_unlock(&srq->lock);
}

static void qhca_srq_release(struct qhca_context *ctx, struct qhca_srq *srq)
{
	qhca_dbrec_free(ctx, srq->dbrec);
	qhca_buf_free(&srq->mem);
	qhca_buf_free(&srq->index_mem);
	free(srq->next);
	qhca_parent_put(srq->parent);
	qhca_lock_destroy(&srq->lock);
	free(srq);
}

struct ibv_srq *qhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr)
{
	struct qhca_context *ctx = to_qctx(pd->context);
	struct qhca_cmd_create_srq_resp resp = {};
	struct qhca_cmd_create_srq cmd = {};
	size_t index_len, len;
	struct qhca_srq *srq;
	int ret;

	if (!(ctx->features & QHCA_FEAT_SRQ)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	srq = calloc(1, sizeof(*srq));
	if (!srq)
		return NULL;
	qhca_lock_init(&srq->lock, qhca_pd_unlocked(pd));
	srq->parent = qhca_parent_get(pd);

	srq->max_sge = attr->attr.max_sge;
	ret = qhca_wqe_recv_stride(&srq->max_sge, ctx->max_sge, &srq->stride);
	if (ret)
		goto err;
	ret = EINVAL;
	if (!qhca_ring_size(attr->attr.max_wr, ctx->max_srq_wr, srq->stride,
			    ctx->page_size, &srq->shift, &len))
		goto err;
	index_len = sizeof(*srq->index) << srq->shift;
	index_len = (index_len + ctx->page_size - 1) & ~(ctx->page_size - 1);

	ret = qhca_buf_alloc(ctx, srq->parent, &srq->mem, len, QHCA_RES_SRQ);
	if (ret)
		goto err;
	ret = qhca_buf_alloc(ctx, srq->parent, &srq->index_mem, index_len,
			     QHCA_RES_SRQ_INDEX);
	if (ret)
		goto err;
	srq->ring = srq->mem.addr;
	srq->index = srq->index_mem.addr;
	ret = qhca_srq_list_init(srq);
	if (ret)
		goto err;
	ret = ENOMEM;
	srq->dbrec = qhca_dbrec_alloc(ctx);
	if (!srq->dbrec)
		goto err;

	cmd.buf_addr = (uintptr_t)srq->mem.addr;
	cmd.buf_len = srq->mem.len;
	cmd.idx_addr = (uintptr_t)srq->index_mem.addr;
	cmd.idx_len = srq->index_mem.len;
	cmd.db_addr = (uintptr_t)srq->dbrec;
	cmd.shift = srq->shift;
	cmd.stride = srq->stride;
	attr->attr.max_wr = 1U << srq->shift;
	attr->attr.max_sge = srq->max_sge;
	ret = ibv_cmd_create_srq(pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd,
				 sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret)
		goto err;
	srq->srqn = resp.srqn;
	attr->attr.max_wr = 1U << srq->shift;
	attr->attr.max_sge = srq->max_sge;
	return &srq->vsrq.srq;

err:
	qhca_srq_release(ctx, srq);
	errno = ret;
	return NULL;
}

int qhca_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask)
{
	struct ibv_modify_srq cmd = {};

	if (mask & IBV_SRQ_MAX_WR)
		return EOPNOTSUPP;
	return ibv_cmd_modify_srq(srq, attr, mask, &cmd, sizeof(cmd));
}

int qhca_query_srq(struct ibv_srq *ibv_srq, struct ibv_srq_attr *attr)
{
	struct qhca_srq *srq = to_qsrq(ibv_srq);
	struct ibv_query_srq cmd = {};
	int ret;

	ret = ibv_cmd_query_srq(ibv_srq, attr, &cmd, sizeof(cmd));
	if (ret)
		return ret;
	attr->max_wr = 1U << srq->shift;
	attr->max_sge = srq->max_sge;
	return 0;
}

int qhca_destroy_srq(struct ibv_srq *ibv_srq)
{
	struct qhca_context *ctx = to_qctx(ibv_srq->context);
	int ret;

	ret = ibv_cmd_destroy_srq(ibv_srq);
	if (ret)
		return ret;
	qhca_srq_release(ctx, to_qsrq(ibv_srq));
	return 0;
}
