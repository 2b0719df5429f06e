// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Completion queues: creation, moderation, destruction.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <infiniband/driver.h>
#include <rdma/qhca-hw.h>

#include "qhca-abi-cmd.h"
#include "qhca-context.h"
#include "qhca-cq.h"
#include "qhca-doorbell.h"
#include "qhca-lock.h"
#include "qhca-pd.h"
#include "qhca-poll.h"
#include "qhca-queue-buf.h"
#include "qhca-ring.h"
#include "qhca-verbs.h"

static_assert(sizeof(struct qhca_cqe) == 1 << QHCA_CQE_SHIFT, "CQE size");

static void qhca_cq_release(struct qhca_context *ctx, struct qhca_cq *cq)
{
	qhca_dbrec_free(ctx, cq->dbrec);
	qhca_queue_buf_free(&cq->buf);
	qhca_parent_put(cq->parent);
	qhca_lock_destroy(&cq->lock);
	free(cq);
}

/* Creates a CQ from checked attributes; NULL and errno on error. */
static struct qhca_cq *qhca_cq_new(struct ibv_context *context,
				   const struct ibv_cq_init_attr_ex *in)
{
	struct qhca_context *ctx = to_qctx(context);
	struct qhca_cmd_create_cq_ex_resp resp = {};
	struct ibv_cq_init_attr_ex attr = *in;
	struct qhca_cmd_create_cq_ex cmd = {};
	struct qhca_cq *cq;
	bool unlocked = false;
	size_t len;
	int ret;

	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return NULL;
	if (attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
		unlocked = attr.flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	if (attr.comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
		cq->parent = qhca_parent_get(attr.parent_domain);
		if (!cq->parent) {
			free(cq);
			errno = EINVAL;
			return NULL;
		}
		unlocked |= qhca_pd_unlocked(attr.parent_domain);
	}
	qhca_lock_init(&cq->lock, unlocked);

	ret = EINVAL;
	if (!attr.cqe || !qhca_ring_size(attr.cqe, ctx->max_cqe,
					 QHCA_CQE_SHIFT, ctx->page_size,
					 &cq->shift, &len))
		goto err;
	ret = qhca_queue_buf_alloc(ctx, cq->parent, &cq->buf, len, QHCA_RES_CQ);
	if (ret)
		goto err;
	cq->ring = cq->buf.addr;
	ret = ENOMEM;
	cq->dbrec = qhca_dbrec_alloc(ctx);
	if (!cq->dbrec)
		goto err;

	cmd.buf_addr = (uintptr_t)cq->buf.addr;
	cmd.buf_len = cq->buf.len;
	cmd.dbrec_addr = (uintptr_t)cq->dbrec;
	cmd.shift = cq->shift;
	/* Hide flags from the kernel that only the provider implements. */
	attr.cqe = 1U << cq->shift;
	attr.wc_flags = 0;
	attr.comp_mask = 0;
	ret = ibv_cmd_create_cq_ex(context, &attr, &cq->vcq, &cmd.ibv_cmd,
				   sizeof(cmd), &resp.ibv_resp, sizeof(resp),
				   0);
	if (ret)
		goto err;
	cq->cqn = resp.cqn;
	cq->vcq.cq.cqe = 1 << cq->shift;
	return cq;

err:
	qhca_cq_release(ctx, cq);
	errno = ret;
	return NULL;
}

struct ibv_cq *qhca_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = cqe < 0 ? 0 : cqe,
		.channel = channel,
		.comp_vector = comp_vector,
	};
	struct qhca_cq *cq;

	cq = qhca_cq_new(context, &attr);
	return cq ? &cq->vcq.cq : NULL;
}

struct ibv_cq_ex *qhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr)
{
	const uint64_t known = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN |
			       IBV_WC_EX_WITH_TM_INFO |
			       IBV_WC_EX_WITH_FLOW_TAG |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	struct qhca_cq *cq;

	if (!check_comp_mask(attr->comp_mask, IBV_CQ_INIT_ATTR_MASK_FLAGS |
					      IBV_CQ_INIT_ATTR_MASK_PD) ||
	    !check_comp_mask(attr->wc_flags, known) ||
	    ((attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
	     (attr->flags & ~IBV_CREATE_CQ_ATTR_SINGLE_THREADED))) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	cq = qhca_cq_new(context, attr);
	if (!cq)
		return NULL;
	qhca_cq_set_ex(cq, attr->wc_flags);
	return &cq->vcq.cq_ex;
}

/* Event moderation. */
int qhca_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr)
{
	struct ibv_modify_cq cmd = {};

	return ibv_cmd_modify_cq(cq, attr, &cmd, sizeof(cmd));
}

int qhca_destroy_cq(struct ibv_cq *ibv_cq)
{
	struct qhca_context *ctx = to_qctx(ibv_cq->context);
	int ret;

	ret = ibv_cmd_destroy_cq(ibv_cq);
	if (ret)
		return ret;
	qhca_cq_release(ctx, to_qcq(ibv_cq));
	return 0;
}
