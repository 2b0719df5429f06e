/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Completion queues: the ring, and removal of CQEs. */
#ifndef QHCA_CQ_H
#define QHCA_CQ_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <ccan/container_of.h>
#include <infiniband/driver.h>
#include <rdma/qhca-hw.h>
#include <util/udma_barrier.h>

#include "qhca-lock.h"
#include "qhca-queue-buf.h"
#include "qhca-ring.h"

struct qhca_pd;
struct qhca_qp;
struct qhca_srq;

#define QHCA_CQE_SHIFT		6	/* log2 of sizeof(struct qhca_cqe) */

struct qhca_cq {
	struct verbs_cq		vcq;
	struct qhca_lock	lock;
	struct qhca_cqe		*ring;
	uint8_t			shift;		/* log2 of the depth */
	atomic_uint		ci;		/* consumer index */
	uint32_t		cqn;
	struct qhca_dbrec	*dbrec;
	struct qhca_qp		*last_qp;	/* of the previous CQE */
	struct qhca_cqe		cur;		/* extended polling: this CQE */
	struct qhca_pd		*parent;	/* parent domain, may be NULL */
	struct qhca_queue_buf	buf;
};

static inline struct qhca_cq *to_qcq(struct ibv_cq *cq)
{
	return container_of(cq, struct qhca_cq, vcq.cq);
}

static inline struct qhca_cq *to_qcq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct qhca_cq, vcq.cq_ex);
}

/*
 * Returns the CQE with counter @ci, or NULL if the device has not yet
 * written it.
 */
static inline struct qhca_cqe *qhca_cq_peek(struct qhca_cq *cq, uint32_t ci)
{
	struct qhca_cqe *cqe = &cq->ring[qhca_slot(ci, cq->shift)];
	uint8_t phase;

	phase = atomic_load_explicit((_Atomic(uint8_t) *)&cqe->phase,
				     memory_order_relaxed);
	if ((phase & 1) != qhca_phase(ci, cq->shift))
		return NULL;
	/* The phase is written last: from here on the CQE is complete. */
	udma_from_device_barrier();
	return cqe;
}

/* cq_ring.c */
int qhca_cq_gone(struct qhca_cq *cq);
void qhca_cq_clean(struct qhca_cq *cq, struct qhca_qp *qp);
void qhca_cq_forget(struct qhca_cq *cq, struct qhca_qp *qp);
void qhca_cq_forget_srq(struct qhca_cq *cq, struct qhca_srq *srq);

#endif /* QHCA_CQ_H */
