// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Posting of work requests, without a system call: WQEs are written to the
 * ring, then one update of the doorbell record covers them all, with a doorbell
 * if the device requests it.
 */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/qhca-hw.h>

#include "qhca-context.h"
#include "qhca-doorbell.h"
#include "qhca-lock.h"
#include "qhca-post.h"
#include "qhca-qp.h"
#include "qhca-ring.h"
#include "qhca-srq.h"
#include "qhca-wqe.h"
#include "trace.h"

int qhca_post_send(struct ibv_qp *ibv_qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr)
{
	struct qhca_context *ctx = to_qctx(ibv_qp->context);
	struct qhca_qp *qp = to_qqp(ibv_qp);
	struct qhca_sq *sq = &qp->sq;
	uint32_t head, tail;
	bool ring = false;
	int ret = 0;

	if (ibv_qp->state < IBV_QPS_RTS) {
		*bad_wr = wr;
		return EINVAL;
	}
	if (!sq->ring) {
		*bad_wr = wr;
		return EOPNOTSUPP;
	}
	if (qhca_is_gone(ibv_qp->context)) {
		*bad_wr = wr;
		return EIO;
	}

	qhca_lock(&sq->lock);
	head = sq->head;
	for (; wr; wr = wr->next) {
		tail = atomic_load_explicit(&sq->tail, memory_order_acquire);
		if (qhca_ring_full(head, tail, sq->shift))
			ret = ENOMEM;
		else
			ret = qhca_wqe_encode_send(&sq->rules,
						   qhca_sq_slot(sq, head), wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
		qhca_trace_wqe(qp->qpn, head, &sq->rules,
			       qhca_sq_slot(sq, head));
		head++;
	}
	if (head != sq->head) {
		sq->head = head;
		ring = qhca_sq_publish(ctx, sq->dbrec, qp->qpn, head);
	}
	qhca_unlock(&sq->lock);
	if (ring)
		qhca_db_ring(ctx, QHCA_DB_SQ, qp->qpn, 0, head);
	return ret;
}

/* Posts to the RQ of a QP or the ring of a WQ; @num: its number. */
int qhca_rq_post(struct qhca_context *ctx, struct qhca_rq *rq, uint32_t num,
		 struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr)
{
	uint32_t head, tail;
	bool ring = false;
	int ret = 0;

	if (qhca_is_gone(&ctx->vctx.context)) {
		*bad_wr = wr;
		return EIO;
	}

	qhca_lock(&rq->lock);
	head = rq->head;
	for (; wr; wr = wr->next) {
		tail = atomic_load_explicit(&rq->tail, memory_order_acquire);
		if (qhca_ring_full(head, tail, rq->shift))
			ret = ENOMEM;
		else
			ret = qhca_wqe_encode_recv(rq->max_sge,
						   qhca_rq_slot(rq, head), wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
		qhca_trace_recv_wqe(num, head, rq->max_sge,
				    qhca_rq_slot(rq, head));
		head++;
	}
	if (head != rq->head) {
		rq->head = head;
		ring = qhca_dbrec_publish(rq->dbrec, head);
	}
	qhca_unlock(&rq->lock);
	if (ring)
		qhca_db_ring(ctx, QHCA_DB_RQ, num, 0, head);
	return ret;
}

int qhca_post_recv(struct ibv_qp *ibv_qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr)
{
	struct qhca_qp *qp = to_qqp(ibv_qp);

	if (ibv_qp->state == IBV_QPS_RESET || qp->srq || !qp->rq.ring) {
		*bad_wr = wr;
		return EINVAL;
	}
	return qhca_rq_post(to_qctx(ibv_qp->context), &qp->rq, qp->qpn, wr,
			    bad_wr);
}

int qhca_post_srq_recv(struct ibv_srq *ibv_srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr)
{
	struct qhca_srq *srq = to_qsrq(ibv_srq);
	uint32_t head, number;
	int ret = 0;

	if (qhca_is_gone(ibv_srq->context)) {
		*bad_wr = wr;
		return EIO;
	}

	qhca_lock(&srq->lock);
	head = srq->head;
	for (; wr; wr = wr->next) {
		number = srq->first_free;
		if (number == QHCA_SRQ_END)
			ret = ENOMEM;
		else
			ret = qhca_wqe_encode_recv(srq->max_sge, srq->ring +
				((size_t)number << srq->stride), wr);
		if (ret) {
			*bad_wr = wr;
			break;
		}
		srq->first_free = srq->next[number];
		srq->next[number] = QHCA_SRQ_BUSY;
		srq->index[qhca_slot(head++, srq->shift)] = htole32(number);
		qhca_trace_recv_wqe(srq->srqn, number, srq->max_sge, srq->ring +
				    ((size_t)number << srq->stride));
	}
	if (head != srq->head) {
		srq->head = head;
		qhca_dbrec_store(srq->dbrec, head);
	}
	qhca_unlock(&srq->lock);
	return ret;
}
