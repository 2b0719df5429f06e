/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue pairs and work queues: their send and receive rings.
 */
#ifndef QHCA_QP_H
#define QHCA_QP_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/container_of.h>
#include <infiniband/driver.h>
#include <rdma/qhca-hw.h>

#include "qhca-context.h"
#include "qhca-idr.h"
#include "qhca-lock.h"
#include "qhca-queue-buf.h"
#include "qhca-ring.h"
#include "qhca-wqe.h"

struct qhca_cq;
struct qhca_pd;
struct qhca_srq;

struct qhca_sq {
	struct qhca_lock	lock;
	char			*ring;
	uint8_t			shift;		/* log2 of the depth */
	uint8_t			stride;		/* log2 of WQE bytes */
	uint32_t		head;		/* under the lock */
	atomic_uint		tail;		/* written when polling */
	struct qhca_dbrec	*dbrec;		/* or NULL */
	struct qhca_wqe_rules	rules;
	/* extended posting, between wr_start and wr_complete */
	uint32_t		new_head;
	void			*cur;		/* the WQE being built */
	uint32_t		inline_len;	/* data in it */
	int			err;
	struct qhca_queue_buf	buf;
};

struct qhca_rq {
	struct qhca_lock	lock;
	char			*ring;
	uint8_t			shift;
	uint8_t			stride;
	uint32_t		head;		/* under the lock */
	atomic_uint		tail;		/* written when polling */
	uint32_t		max_sge;
	struct qhca_dbrec	*dbrec;
	struct qhca_queue_buf	buf;
};

struct qhca_qp {
	struct verbs_qp		vqp;
	uint32_t		qpn;
	struct qhca_sq		sq;
	struct qhca_rq		rq;		/* unused with an SRQ */
	struct qhca_srq		*srq;
	struct qhca_cq		*send_cq;	/* NULL: XRC target */
	struct qhca_cq		*recv_cq;	/* NULL: XRC */
	struct ibv_qp_cap	cap;		/* actual ring capacity */
	struct qhca_pd		*parent;	/* parent domain, may be NULL */
};

/* A separate receive queue, see wq.c. */
struct qhca_wq {
	struct ibv_wq		ibv_wq;
	struct qhca_qp		as_qp;		/* only the receive side */
};

static inline struct qhca_qp *to_qqp(struct ibv_qp *qp)
{
	return container_of(qp, struct qhca_qp, vqp.qp);
}

static inline struct qhca_qp *to_qqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct qhca_qp, vqp.qp_ex);
}

static inline struct qhca_wq *to_qwq(struct ibv_wq *wq)
{
	return container_of(wq, struct qhca_wq, ibv_wq);
}

/* Returns the slot of the WQE with counter @index. */
static inline char *qhca_sq_slot(const struct qhca_sq *sq, uint32_t index)
{
	return sq->ring + ((size_t)qhca_slot(index, sq->shift) << sq->stride);
}

static inline char *qhca_rq_slot(const struct qhca_rq *rq, uint32_t index)
{
	return rq->ring + ((size_t)qhca_slot(index, rq->shift) << rq->stride);
}

/* Returns the QP with this number, or NULL. */
static inline struct qhca_qp *qhca_qp_find(struct qhca_context *ctx,
					   uint32_t qpn)
{
	return qhca_idr_find(&ctx->qps, qpn);
}

#endif /* QHCA_QP_H */
