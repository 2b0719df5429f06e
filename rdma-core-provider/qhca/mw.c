// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Memory windows.  The kernel allocates them; binding is a work request. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

#include <infiniband/driver.h>
#include <rdma/qhca-hw.h>

#include "qhca-context.h"
#include "qhca-doorbell.h"
#include "qhca-lock.h"
#include "qhca-qp.h"
#include "qhca-ring.h"
#include "qhca-verbs.h"
#include "qhca-wqe.h"
#include "trace.h"

struct ibv_mw *qhca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct qhca_context *ctx = to_qctx(pd->context);
	struct ib_uverbs_alloc_mw_resp resp = {};
	struct ibv_alloc_mw cmd = {};
	struct ibv_mw *mw;
	int ret;

	if (!(ctx->features & QHCA_FEAT_MW)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return NULL;
	ret = ibv_cmd_alloc_mw(pd, type, mw, &cmd, sizeof(cmd), &resp,
			       sizeof(resp));
	if (ret) {
		free(mw);
		errno = ret;
		return NULL;
	}
	return mw;
}

int qhca_dealloc_mw(struct ibv_mw *mw)
{
	int ret;

	ret = ibv_cmd_dealloc_mw(mw);
	if (ret)
		return ret;
	free(mw);
	return 0;
}

/*
 * Binds a type 1 window under the next key; libibverbs has checked type and
 * PDs.  The key is valid for the peer once the request has completed.
 *
 * Returns 0; EINVAL for a QP that cannot send, or bad flags; EOPNOTSUPP for a
 * QP type without windows; ENOMEM for a full queue; EIO when the device is
 * gone.
 */
int qhca_bind_mw(struct ibv_qp *ibv_qp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind)
{
	struct qhca_context *ctx = to_qctx(ibv_qp->context);
	struct qhca_qp *qp = to_qqp(ibv_qp);
	uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct qhca_sq *sq = &qp->sq;
	uint32_t head = 0, tail;
	bool ring = false;
	void *slot;
	int ret;

	if (!(sq->rules.ops & 1U << IBV_WR_BIND_MW))
		return EOPNOTSUPP;
	if (ibv_qp->state < IBV_QPS_RTS)
		return EINVAL;
	if (qhca_is_gone(ibv_qp->context))
		return EIO;

	qhca_lock(&sq->lock);
	tail = atomic_load_explicit(&sq->tail, memory_order_acquire);
	if (qhca_ring_full(sq->head, tail, sq->shift)) {
		ret = ENOMEM;
		goto out;
	}
	slot = qhca_sq_slot(sq, sq->head);
	qhca_wqe_begin(&sq->rules, slot, bind->wr_id, QHCA_WQE_BIND_MW,
		       qhca_wqe_flags(bind->send_flags, sq->rules.sig_all));
	ret = qhca_wqe_set_bind(slot, rkey, &bind->bind_info);
	if (ret)
		goto out;
	qhca_trace_wqe(qp->qpn, sq->head, &sq->rules, slot);
	head = ++sq->head;
	ring = qhca_sq_publish(ctx, sq->dbrec, qp->qpn, head);
	mw->rkey = rkey;
out:
	qhca_unlock(&sq->lock);
	if (ring)
		qhca_db_ring(ctx, QHCA_DB_SQ, qp->qpn, 0, head);
	return ret;
}
