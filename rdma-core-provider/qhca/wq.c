// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Work queues - receive queues that belong to no QP - and the indirection
 * tables by which RSS QPs distribute frames.
 *
 * A work queue has a struct qhca_qp that represents it in the table of QPs: its
 * completions carry a number like a QP's, which leads to the ring in the same
 * way.
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
#include "qhca-post.h"
#include "qhca-qp.h"
#include "qhca-queue-buf.h"
#include "qhca-ring.h"
#include "qhca-verbs.h"

static void qhca_wq_release(struct qhca_context *ctx, struct qhca_wq *wq)
{
	qhca_dbrec_free(ctx, wq->as_qp.rq.dbrec);
	qhca_queue_buf_free(&wq->as_qp.rq.buf);
	qhca_parent_put(wq->as_qp.parent);
	qhca_lock_destroy(&wq->as_qp.rq.lock);
	free(wq);
}

static int qhca_post_wq_recv(struct ibv_wq *ibv_wq, struct ibv_recv_wr *wr,
			     struct ibv_recv_wr **bad_wr)
{
	struct qhca_wq *wq = to_qwq(ibv_wq);

	if (ibv_wq->state == IBV_WQS_RESET) {
		*bad_wr = wr;
		return EINVAL;
	}
	return qhca_rq_post(to_qctx(ibv_wq->context), &wq->as_qp.rq,
			    wq->as_qp.qpn, wr, bad_wr);
}

/* Creates it in the kernel; it must enter the table before it completes. */
static int qhca_wq_create_cmd(struct qhca_context *ctx, struct qhca_wq *wq,
			      struct ibv_wq_init_attr *attr)
{
	struct qhca_cmd_create_wq_resp resp = {};
	struct qhca_cmd_create_wq cmd = {};
	struct qhca_rq *rq = &wq->as_qp.rq;
	int ret;

	cmd.buf_addr = (uintptr_t)rq->buf.addr;
	cmd.buf_len = rq->buf.len;
	cmd.dbrec_addr = (uintptr_t)rq->dbrec;
	cmd.cookie = (uintptr_t)wq;
	cmd.shift = rq->shift;
	cmd.stride = rq->stride;
	ret = ibv_cmd_create_wq(&ctx->vctx.context, attr, &wq->ibv_wq,
				&cmd.ibv_cmd, sizeof(cmd), &resp.ibv_resp,
				sizeof(resp));
	if (!ret) {
		wq->as_qp.qpn = resp.wqn;
		ret = qhca_idr_add(&ctx->qps, resp.wqn, &wq->as_qp);
		if (ret)
			ibv_cmd_destroy_wq(&wq->ibv_wq);
	}
	return ret;
}

struct ibv_wq *qhca_create_wq(struct ibv_context *context,
			      struct ibv_wq_init_attr *attr)
{
	struct qhca_context *ctx = to_qctx(context);
	struct ibv_wq_init_attr kattr = *attr;
	struct qhca_wq *wq;
	int ret;

	if (attr->wq_type != IBV_WQT_RQ ||
	    !check_comp_mask(attr->comp_mask, IBV_WQ_INIT_ATTR_FLAGS) ||
	    ((attr->comp_mask & IBV_WQ_INIT_ATTR_FLAGS) &&
	     (attr->create_flags & ~IBV_WQ_FLAGS_CVLAN_STRIPPING))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	wq = calloc(1, sizeof(*wq));
	if (!wq)
		return NULL;
	wq->as_qp.parent = qhca_parent_get(attr->pd);
	qhca_lock_init(&wq->as_qp.rq.lock, qhca_pd_unlocked(attr->pd));
	wq->as_qp.recv_cq = to_qcq(attr->cq);
	ret = qhca_rq_make(ctx, wq->as_qp.parent, &wq->as_qp.rq, attr->max_wr,
			   attr->max_sge);
	if (ret)
		goto err;
	kattr.max_wr = 1U << wq->as_qp.rq.shift;
	kattr.max_sge = wq->as_qp.rq.max_sge;
	ret = qhca_wq_create_cmd(ctx, wq, &kattr);
	if (ret)
		goto err;
	attr->max_wr = 1U << wq->as_qp.rq.shift;
	attr->max_sge = wq->as_qp.rq.max_sge;
	wq->ibv_wq.context = context;
	wq->ibv_wq.pd = attr->pd;
	wq->ibv_wq.cq = attr->cq;
	wq->ibv_wq.wq_type = IBV_WQT_RQ;
	wq->ibv_wq.state = IBV_WQS_RESET;
	wq->ibv_wq.post_recv = qhca_post_wq_recv;
	return &wq->ibv_wq;

err:
	qhca_wq_release(ctx, wq);
	errno = ret;
	return NULL;
}

int qhca_modify_wq(struct ibv_wq *ibv_wq, struct ibv_wq_attr *attr)
{
	struct qhca_wq *wq = to_qwq(ibv_wq);
	struct ibv_modify_wq cmd = {};
	int ret;

	if (!check_comp_mask(attr->attr_mask,
			     IBV_WQ_ATTR_STATE | IBV_WQ_ATTR_CURR_STATE |
			     IBV_WQ_ATTR_FLAGS))
		return EOPNOTSUPP;
	ret = ibv_cmd_modify_wq(ibv_wq, attr, &cmd, sizeof(cmd));
	if (!ret && (attr->attr_mask & IBV_WQ_ATTR_STATE) &&
	    attr->wq_state == IBV_WQS_RESET)
		qhca_qp_reset(&wq->as_qp);
	return ret;
}

int qhca_destroy_wq(struct ibv_wq *ibv_wq)
{
	struct qhca_context *ctx = to_qctx(ibv_wq->context);
	struct qhca_wq *wq = to_qwq(ibv_wq);
	int ret;

	qhca_idr_leave(&ctx->qps);
	ret = ibv_cmd_destroy_wq(ibv_wq);
	if (!ret)
		qhca_cq_forget(wq->as_qp.recv_cq, &wq->as_qp);
	qhca_idr_left(&ctx->qps, wq->as_qp.qpn, ret ? NULL : &wq->as_qp);
	if (ret)
		return ret;
	qhca_wq_release(ctx, wq);
	return 0;
}

struct ibv_rwq_ind_table *
qhca_create_rwq_ind_table(struct ibv_context *context,
			  struct ibv_rwq_ind_table_init_attr *attr)
{
	struct ib_uverbs_ex_create_rwq_ind_table_resp resp = {};
	struct ibv_rwq_ind_table *table;
	int ret;

	if (attr->log_ind_tbl_size > qhca_log2_up(QHCA_RQT_WQS_MAX)) {
		errno = EINVAL;
		return NULL;
	}
	table = calloc(1, sizeof(*table));
	if (!table)
		return NULL;
	ret = ibv_cmd_create_rwq_ind_table(context, attr, table, &resp,
					   sizeof(resp));
	if (ret) {
		free(table);
		errno = ret;
		return NULL;
	}
	return table;
}

int qhca_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table)
{
	int ret = ibv_cmd_destroy_rwq_ind_table(table);

	if (!ret)
		free(table);
	return ret;
}
