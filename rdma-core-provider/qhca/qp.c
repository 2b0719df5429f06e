// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Queue pairs: their rings and life cycle. */
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
#include "qhca-idr.h"
#include "qhca-lock.h"
#include "qhca-pd.h"
#include "qhca-post.h"
#include "qhca-qp.h"
#include "qhca-queue-buf.h"
#include "qhca-ring.h"
#include "qhca-srq.h"
#include "qhca-verbs.h"
#include "qhca-wqe.h"

static void qhca_qp_release(struct qhca_context *ctx, struct qhca_qp *qp)
{
	qhca_dbrec_free(ctx, qp->rq.dbrec);
	qhca_dbrec_free(ctx, qp->sq.dbrec);
	qhca_queue_buf_free(&qp->sq.buf);
	qhca_queue_buf_free(&qp->rq.buf);
	qhca_parent_put(qp->parent);
	qhca_lock_destroy(&qp->sq.lock);
	qhca_lock_destroy(&qp->rq.lock);
	free(qp);
}

/* Returns the enum ibv_qp_create_flags that a type of QP can have. */
static uint32_t qhca_qp_create_flags(struct qhca_context *ctx,
				     enum ibv_qp_type type)
{
	if (type == IBV_QPT_UD && (ctx->features & QHCA_FEAT_MCAST))
		return IBV_QP_CREATE_BLOCK_SELF_MCAST_LB;
	if (type == IBV_QPT_RAW_PACKET)
		return IBV_QP_CREATE_CVLAN_STRIPPING;
	return 0;
}

/* Returns 0, EINVAL or EOPNOTSUPP. */
static int qhca_qp_check(struct qhca_context *ctx,
			 const struct ibv_qp_init_attr_ex *attr)
{
	uint64_t feature;

	if (!check_comp_mask(attr->comp_mask,
			     IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_XRCD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS))
		return EOPNOTSUPP;
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	    (attr->create_flags & ~qhca_qp_create_flags(ctx, attr->qp_type)))
		return EOPNOTSUPP;
	if (attr->qp_type == IBV_QPT_XRC_RECV) {
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_XRCD) || !attr->xrcd)
			return EINVAL;
	} else {
		if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) || !attr->pd ||
		    !attr->send_cq)
			return EINVAL;
		if (attr->qp_type != IBV_QPT_XRC_SEND && !attr->recv_cq)
			return EINVAL;
	}
	switch (attr->qp_type) {
	case IBV_QPT_XRC_SEND:
	case IBV_QPT_XRC_RECV:
		feature = QHCA_FEAT_XRC;
		break;
	case IBV_QPT_RC:
		feature = QHCA_FEAT_RC;
		break;
	case IBV_QPT_UC:
		feature = QHCA_FEAT_UC;
		break;
	case IBV_QPT_UD:
		feature = QHCA_FEAT_UD;
		break;
	case IBV_QPT_RAW_PACKET:
		feature = QHCA_FEAT_RAW_PACKET;
		break;
	default:
		return EOPNOTSUPP;
	}
	return ctx->features & feature ? 0 : EOPNOTSUPP;
}

/* Sizes and allocates the send queue.  Returns 0 or an error number. */
static int qhca_sq_make(struct qhca_context *ctx, struct qhca_pd *parent,
			struct qhca_sq *sq,
			const struct ibv_qp_init_attr_ex *attr)
{
	size_t len;
	int ret;

	/* With tag matching, the device uses the send side: no opcodes. */
	if (attr->srq && to_qsrq(attr->srq)->tm)
		return attr->cap.max_send_wr || attr->cap.max_inline_data ||
		       attr->qp_type != IBV_QPT_RC ? EINVAL : 0;

	sq->rules.ud = attr->qp_type == IBV_QPT_UD;
	sq->rules.xrc = attr->qp_type == IBV_QPT_XRC_SEND;
	sq->rules.raw = attr->qp_type == IBV_QPT_RAW_PACKET;
	sq->rules.sig_all = attr->sq_sig_all;
	sq->rules.ops = qhca_wqe_ops(attr->qp_type, ctx->features);
	sq->rules.max_sge = attr->cap.max_send_sge;
	sq->rules.max_inline = attr->cap.max_inline_data;
	/* Its eight bytes are in the WQE. */
	if ((attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) &&
	    (attr->send_ops_flags & IBV_QP_EX_WITH_ATOMIC_WRITE) &&
	    sq->rules.max_inline < sizeof(uint64_t))
		sq->rules.max_inline = sizeof(uint64_t);
	ret = qhca_wqe_send_stride(&sq->rules, ctx->max_sge, ctx->max_inline,
				   &sq->stride);
	if (ret)
		return ret;
	if (!qhca_ring_size(attr->cap.max_send_wr, ctx->max_qp_wr, sq->stride,
			    ctx->page_size, &sq->shift, &len))
		return EINVAL;
	ret = qhca_queue_buf_alloc(ctx, parent, &sq->buf, len, QHCA_RES_SQ);
	if (ret)
		return ret;
	sq->ring = sq->buf.addr;
	if (!(ctx->features & QHCA_FEAT_SQ_RECORD) ||
	    (attr->qp_type != IBV_QPT_RC && !sq->rules.xrc))
		return 0;
	sq->dbrec = qhca_dbrec_alloc(ctx);
	return sq->dbrec ? 0 : ENOMEM;
}

/* Sizes and allocates a receive queue.  Returns 0 or an error number. */
int qhca_rq_make(struct qhca_context *ctx, struct qhca_pd *parent,
		 struct qhca_rq *rq, uint32_t max_wr, uint32_t max_sge)
{
	size_t len;
	int ret;

	rq->max_sge = max_sge;
	ret = qhca_wqe_recv_stride(&rq->max_sge, ctx->max_sge, &rq->stride);
	if (ret)
		return ret;
	if (!qhca_ring_size(max_wr, ctx->max_qp_wr, rq->stride, ctx->page_size,
			    &rq->shift, &len))
		return EINVAL;
	ret = qhca_queue_buf_alloc(ctx, parent, &rq->buf, len, QHCA_RES_RQ);
	if (ret)
		return ret;
	rq->ring = rq->buf.addr;
	rq->dbrec = qhca_dbrec_alloc(ctx);
	return rq->dbrec ? 0 : ENOMEM;
}

/*
 * A raw packet QP that distributes what it receives over the WQs of an
 * indirection table.  It has no queue, so nothing completes on it.
 */
static struct ibv_qp *qhca_create_rss_qp(struct ibv_context *context,
					 struct ibv_qp_init_attr_ex *attr)
{
	const struct ibv_rx_hash_conf *hash = &attr->rx_hash_conf;
	struct qhca_context *ctx = to_qctx(context);
	struct qhca_cmd_create_rss_qp_resp resp = {};
	struct qhca_cmd_create_rss_qp cmd = {};
	struct qhca_qp *qp;
	int ret = 0;

	if (attr->qp_type != IBV_QPT_RAW_PACKET || attr->cap.max_send_wr ||
	    !check_comp_mask(attr->comp_mask, IBV_QP_INIT_ATTR_PD |
					      IBV_QP_INIT_ATTR_CREATE_FLAGS |
					      IBV_QP_INIT_ATTR_IND_TABLE |
					      IBV_QP_INIT_ATTR_RX_HASH) ||
	    ((attr->comp_mask & IBV_QP_INIT_ATTR_CREATE_FLAGS) &&
	     attr->create_flags) ||
	    !(ctx->features & QHCA_FEAT_RSS))
		ret = EOPNOTSUPP;
	else if (!(attr->comp_mask & IBV_QP_INIT_ATTR_PD) ||
		 !(attr->comp_mask & IBV_QP_INIT_ATTR_RX_HASH) ||
		 attr->srq || attr->recv_cq ||
		 hash->rx_hash_key_len != sizeof(cmd.rx_hash_key))
		ret = EINVAL;
	else if (hash->rx_hash_function != IBV_RX_HASH_FUNC_TOEPLITZ ||
		 (hash->rx_hash_fields_mask & ~(uint64_t)QHCA_HASH_MASK))
		ret = EOPNOTSUPP;
	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	qhca_lock_init(&qp->sq.lock, false);
	qhca_lock_init(&qp->rq.lock, false);
	cmd.cookie = (uintptr_t)qp;
	cmd.rx_hash_fields = hash->rx_hash_fields_mask;
	cmd.rx_hash_func = QHCA_HASH_TOEPLITZ;
	memcpy(cmd.rx_hash_key, hash->rx_hash_key, sizeof(cmd.rx_hash_key));
	ret = ibv_cmd_create_qp_ex2(context, &qp->vqp, attr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (ret) {
		qhca_qp_release(ctx, qp);
		errno = ret;
		return NULL;
	}
	qp->qpn = resp.qpn;
	return &qp->vqp.qp;
}

struct ibv_qp *qhca_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr)
{
	struct qhca_context *ctx = to_qctx(context);
	struct qhca_cmd_create_qp_ex_resp resp = {};
	struct qhca_cmd_create_qp_ex cmd = {};
	bool target = attr->qp_type == IBV_QPT_XRC_RECV;
	bool has_rq = !target && attr->qp_type != IBV_QPT_XRC_SEND;
	struct ibv_qp_init_attr_ex kattr;
	bool unlocked = false;
	struct qhca_qp *qp;
	int ret;

	if (attr->comp_mask & IBV_QP_INIT_ATTR_IND_TABLE)
		return qhca_create_rss_qp(context, attr);
	ret = qhca_qp_check(ctx, attr);
	if (ret) {
		errno = ret;
		return NULL;
	}
	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	if (!target)
		unlocked = qhca_pd_unlocked(attr->pd);
	qhca_lock_init(&qp->sq.lock, unlocked);
	qhca_lock_init(&qp->rq.lock, unlocked);
	if (!target) {
		qp->parent = qhca_parent_get(attr->pd);
		qp->send_cq = to_qcq(attr->send_cq);
	}
	if (has_rq) {
		qp->recv_cq = to_qcq(attr->recv_cq);
		qp->srq = attr->srq ? to_qsrq(attr->srq) : NULL;
	}

	ret = target ? 0 : qhca_sq_make(ctx, qp->parent, &qp->sq, attr);
	if (!ret && has_rq && !qp->srq)
		ret = qhca_rq_make(ctx, qp->parent, &qp->rq,
				   attr->cap.max_recv_wr,
				   attr->cap.max_recv_sge);
	if (ret)
		goto err;
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS) {
		ret = qhca_qp_set_ex(qp, attr->send_ops_flags);
		if (ret)
			goto err;
	}

	qp->cap.max_send_wr = qp->sq.ring ? 1U << qp->sq.shift : 0;
	qp->cap.max_send_sge = qp->sq.rules.max_sge;
	qp->cap.max_inline_data = qp->sq.rules.max_inline;
	if (qp->rq.ring) {
		qp->cap.max_recv_wr = 1U << qp->rq.shift;
		qp->cap.max_recv_sge = qp->rq.max_sge;
	}

	cmd.sq_addr = (uintptr_t)qp->sq.buf.addr;
	cmd.sq_len = qp->sq.buf.len;
	cmd.sq_shift = qp->sq.shift;
	cmd.sq_stride = qp->sq.stride;
	cmd.rq_addr = (uintptr_t)qp->rq.buf.addr;
	cmd.rq_len = qp->rq.buf.len;
	cmd.rq_shift = qp->rq.shift;
	cmd.rq_stride = qp->rq.stride;
	cmd.dbrec_addr = (uintptr_t)qp->rq.dbrec;
	cmd.sq_dbrec_addr = (uintptr_t)qp->sq.dbrec;
	cmd.cookie = (uintptr_t)qp;
	kattr = *attr;
	kattr.comp_mask &= (target ? IBV_QP_INIT_ATTR_XRCD :
				     IBV_QP_INIT_ATTR_PD) |
			   IBV_QP_INIT_ATTR_CREATE_FLAGS;
	kattr.cap = qp->cap;
	if (!has_rq)
		kattr.srq = NULL;

	ret = ibv_cmd_create_qp_ex2(context, &qp->vqp, &kattr, &cmd.ibv_cmd,
				    sizeof(cmd), &resp.ibv_resp, sizeof(resp));
	if (!ret) {
		/*
		 * No CQE refers to a target QP, as several handles may share
		 * it.  For the same reason the driver does not know the caller.
		 */
		qp->qpn = target ? qp->vqp.qp.qp_num : resp.qpn;
		if (!target)
			ret = qhca_idr_add(&ctx->qps, qp->qpn, qp);
		if (ret)
			ibv_cmd_destroy_qp(&qp->vqp.qp);
	}
	if (ret)
		goto err;
	/* The command has set the mask again. */
	if (attr->comp_mask & IBV_QP_INIT_ATTR_SEND_OPS_FLAGS)
		qp->vqp.comp_mask |= VERBS_QP_EX;
	attr->cap = qp->cap;
	return &qp->vqp.qp;

err:
	qhca_qp_release(ctx, qp);
	errno = ret;
	return NULL;
}

struct ibv_qp *qhca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
	struct ibv_qp_init_attr_ex attr_ex = {
		.qp_context = attr->qp_context,
		.send_cq = attr->send_cq,
		.recv_cq = attr->recv_cq,
		.srq = attr->srq,
		.cap = attr->cap,
		.qp_type = attr->qp_type,
		.sq_sig_all = attr->sq_sig_all,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.pd = pd,
	};
	struct ibv_qp *qp;

	qp = qhca_create_qp_ex(pd->context, &attr_ex);
	if (qp)
		attr->cap = attr_ex.cap;
	return qp;
}

/* A QP (or WQ) in RESET has counters of 0 on both sides, and no CQEs. */
void qhca_qp_reset(struct qhca_qp *qp)
{
	if (qp->recv_cq)
		qhca_cq_clean(qp->recv_cq, qp);
	if (qp->send_cq && qp->send_cq != qp->recv_cq)
		qhca_cq_clean(qp->send_cq, qp);

	if (qp->sq.ring) {
		qhca_lock(&qp->sq.lock);
		qp->sq.head = 0;
		atomic_store(&qp->sq.tail, 0);
		if (qp->sq.dbrec)
			qhca_dbrec_store(qp->sq.dbrec, 0);
		qhca_unlock(&qp->sq.lock);
	}
	if (!qp->rq.ring)
		return;
	qhca_lock(&qp->rq.lock);
	qp->rq.head = 0;
	atomic_store(&qp->rq.tail, 0);
	qhca_dbrec_store(qp->rq.dbrec, 0);
	qhca_unlock(&qp->rq.lock);
}

int qhca_modify_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask)
{
	struct ibv_modify_qp cmd = {};
	int ret;

	ret = ibv_cmd_modify_qp(ibv_qp, attr, mask, &cmd, sizeof(cmd));
	if (!ret && (mask & IBV_QP_STATE) && attr->qp_state == IBV_QPS_RESET)
		qhca_qp_reset(to_qqp(ibv_qp));
	return ret;
}

int qhca_query_qp(struct ibv_qp *ibv_qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr)
{
	struct qhca_qp *qp = to_qqp(ibv_qp);
	struct ibv_query_qp cmd = {};
	int ret;

	ret = ibv_cmd_query_qp(ibv_qp, attr, mask, init_attr, &cmd,
			       sizeof(cmd));
	if (ret)
		return ret;
	attr->cap = qp->cap;
	init_attr->cap = qp->cap;
	return 0;
}

int qhca_destroy_qp(struct ibv_qp *ibv_qp)
{
	struct qhca_context *ctx = to_qctx(ibv_qp->context);
	struct qhca_qp *qp = to_qqp(ibv_qp);
	int ret;

	qhca_idr_leave(&ctx->qps);
	ret = ibv_cmd_destroy_qp(ibv_qp);
	if (!ret && qp->recv_cq)
		qhca_cq_forget(qp->recv_cq, qp);
	/* NULL now if it was the same. */
	if (!ret && qp->send_cq)
		qhca_cq_forget(qp->send_cq, qp);
	/* RSS QPs and XRC targets are not in the table. */
	qhca_idr_left(&ctx->qps, qp->qpn, ret ? NULL : qp);
	if (ret)
		return ret;
	qhca_qp_release(ctx, qp);
	return 0;
}
