// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Shared receive queues: WQEs addressed by number, an index ring that tells the
 * device which of them were posted, and a list of free WQEs (srq_list.c).
 */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/driver.h>
#include <rdma/qhca-hw.h>

#include "qhca-abi-cmd.h"
#include "qhca-context.h"
#include "qhca-cq.h"
#include "qhca-doorbell.h"
#include "qhca-idr.h"
#include "qhca-lock.h"
#include "qhca-pd.h"
#include "qhca-queue-buf.h"
#include "qhca-ring.h"
#include "qhca-srq.h"
#include "qhca-tm.h"
#include "qhca-verbs.h"
#include "qhca-wqe.h"

static void qhca_srq_release(struct qhca_context *ctx, struct qhca_srq *srq)
{
	qhca_dbrec_free(ctx, srq->dbrec);
	qhca_queue_buf_free(&srq->buf);
	qhca_queue_buf_free(&srq->index_buf);
	qhca_tm_free(srq->tm);
	free(srq->next);
	qhca_parent_put(srq->parent);
	qhca_lock_destroy(&srq->lock);
	free(srq);
}

/*
 * Creates an SRQ without its kernel object, and fills in @cmd for the kernel.
 * Returns NULL and errno on error.
 */
static struct qhca_srq *qhca_srq_new(struct ibv_pd *pd,
				     const struct ibv_srq_attr *attr,
				     const struct ibv_tm_cap *tm_cap,
				     struct qhca_create_srq_req *cmd)
{
	struct qhca_context *ctx = to_qctx(pd->context);
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

	srq->max_sge = attr->max_sge;
	ret = qhca_wqe_recv_stride(&srq->max_sge, ctx->max_sge, &srq->stride);
	if (ret)
		goto err;
	ret = EINVAL;
	if (!qhca_ring_size(attr->max_wr, ctx->max_srq_wr, srq->stride,
			    ctx->page_size, &srq->shift, &len))
		goto err;
	index_len = sizeof(*srq->index) << srq->shift;
	index_len = (index_len + ctx->page_size - 1) & ~(ctx->page_size - 1);

	ret = qhca_queue_buf_alloc(ctx, srq->parent, &srq->buf, len,
				   QHCA_RES_SRQ);
	if (ret)
		goto err;
	ret = qhca_queue_buf_alloc(ctx, srq->parent, &srq->index_buf, index_len,
				   QHCA_RES_SRQ_INDEX);
	if (ret)
		goto err;
	srq->ring = srq->buf.addr;
	srq->index = srq->index_buf.addr;
	ret = qhca_srq_list_init(srq);
	if (ret)
		goto err;
	ret = ENOMEM;
	srq->dbrec = qhca_dbrec_alloc(ctx);
	if (!srq->dbrec)
		goto err;

	cmd->buf_addr = (uintptr_t)srq->buf.addr;
	cmd->buf_len = srq->buf.len;
	cmd->idx_addr = (uintptr_t)srq->index_buf.addr;
	cmd->idx_len = srq->index_buf.len;
	cmd->dbrec_addr = (uintptr_t)srq->dbrec;
	cmd->shift = srq->shift;
	cmd->stride = srq->stride;
	if (tm_cap) {
		ret = qhca_tm_make(ctx, srq, tm_cap->max_num_tags,
				   tm_cap->max_ops);
		if (ret)
			goto err;
		cmd->ops_addr = (uintptr_t)srq->tm->buf.addr;
		cmd->ops_len = srq->tm->buf.len;
		cmd->ops_shift = srq->tm->shift;
		cmd->ops_stride = srq->tm->stride;
	}
	return srq;

err:
	qhca_srq_release(ctx, srq);
	errno = ret;
	return NULL;
}

struct ibv_srq *qhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr)
{
	struct qhca_cmd_create_srq_resp resp = {};
	struct qhca_cmd_create_srq cmd = {};
	struct qhca_srq *srq;
	int ret;

	srq = qhca_srq_new(pd, &attr->attr, NULL, &cmd.drv_payload);
	if (!srq)
		return NULL;
	attr->attr.max_wr = 1U << srq->shift;
	attr->attr.max_sge = srq->max_sge;
	ret = ibv_cmd_create_srq(pd, &srq->vsrq.srq, attr, &cmd.ibv_cmd,
				 sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret) {
		qhca_srq_release(to_qctx(pd->context), srq);
		errno = ret;
		return NULL;
	}
	srq->srqn = resp.srqn;
	attr->attr.max_wr = 1U << srq->shift;
	attr->attr.max_sge = srq->max_sge;
	return &srq->vsrq.srq;
}

/* Checks attributes of SRQs with their own CQ. 0, EINVAL or EOPNOTSUPP. */
static int qhca_srq_check_ex(struct qhca_context *ctx,
			     const struct ibv_srq_init_attr_ex *attr)
{
	uint32_t need = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			IBV_SRQ_INIT_ATTR_CQ;

	switch (attr->srq_type) {
	case IBV_SRQT_TM:
		if (!(ctx->features & QHCA_FEAT_TAG_MATCHING))
			return EOPNOTSUPP;
		need |= IBV_SRQ_INIT_ATTR_TM;
		break;
	case IBV_SRQT_XRC:
		if (!(ctx->features & QHCA_FEAT_XRC))
			return EOPNOTSUPP;
		need |= IBV_SRQ_INIT_ATTR_XRCD;
		if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_XRCD) || !attr->xrcd)
			return EINVAL;
		break;
	default:
		return EOPNOTSUPP;
	}
	return attr->comp_mask == need && attr->pd && attr->cq ? 0 : EINVAL;
}

struct ibv_srq *qhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr)
{
	struct qhca_cmd_create_srq_ex_resp resp = {};
	struct qhca_context *ctx = to_qctx(context);
	struct qhca_cmd_create_srq_ex cmd = {};
	struct ibv_srq_init_attr_ex kattr;
	struct qhca_srq *srq;
	int ret;

	if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_TYPE) ||
	    attr->srq_type == IBV_SRQT_BASIC) {
		if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
			errno = EINVAL;
			return NULL;
		}
		return qhca_create_srq(attr->pd,
				       (struct ibv_srq_init_attr *)attr);
	}
	ret = qhca_srq_check_ex(ctx, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	srq = qhca_srq_new(attr->pd, &attr->attr,
			   attr->srq_type == IBV_SRQT_TM ? &attr->tm_cap : NULL,
			   &cmd.drv_payload);
	if (!srq)
		return NULL;
	srq->cq = to_qcq(attr->cq);
	kattr = *attr;
	kattr.attr.max_wr = 1U << srq->shift;
	kattr.attr.max_sge = srq->max_sge;

	ret = ibv_cmd_create_srq_ex(context, &srq->vsrq, &kattr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (!ret) {
		srq->srqn = resp.srqn;
		ret = qhca_idr_add(&ctx->srqs, srq->srqn, srq);
		if (ret)
			ibv_cmd_destroy_srq(&srq->vsrq.srq);
	}
	if (ret) {
		qhca_srq_release(ctx, srq);
		errno = ret;
		return NULL;
	}
	attr->attr.max_wr = 1U << srq->shift;
	attr->attr.max_sge = srq->max_sge;
	if (srq->tm)
		attr->tm_cap.max_ops = 1U << srq->tm->shift;
	return &srq->vsrq.srq;
}

/* The number that XRC peers use for it. */
int qhca_get_srq_num(struct ibv_srq *ibv_srq, uint32_t *srqn)
{
	struct qhca_srq *srq = to_qsrq(ibv_srq);

	if (srq->vsrq.srq_type != IBV_SRQT_XRC)
		return EOPNOTSUPP;
	*srqn = srq->srqn;
	return 0;
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
	struct qhca_srq *srq = to_qsrq(ibv_srq);
	int ret;

	if (!srq->cq) {
		ret = ibv_cmd_destroy_srq(ibv_srq);
	} else {
		qhca_idr_leave(&ctx->srqs);
		ret = ibv_cmd_destroy_srq(ibv_srq);
		if (!ret)
			qhca_cq_forget_srq(srq->cq, srq);
		qhca_idr_left(&ctx->srqs, srq->srqn, ret ? NULL : srq);
	}
	if (ret)
		return ret;
	qhca_srq_release(ctx, srq);
	return 0;
}
