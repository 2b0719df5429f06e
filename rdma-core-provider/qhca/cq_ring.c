// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The ring of a CQ: its entries, and the removal of those of a destroyed QP or
 * SRQ.
 */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/qhca-hw.h>
#include <util/udma_barrier.h>

#include "qhca-cq.h"
#include "qhca-doorbell.h"
#include "qhca-lock.h"
#include "qhca-qp.h"
#include "qhca-ring.h"
#include "qhca-srq.h"

/*
 * The CQ was empty, and then the device gone.  Returns EIO, or 0 if there is a
 * CQE after all: those written in between come first.
 */
int qhca_cq_gone(struct qhca_cq *cq)
{
	bool more;

	/* From here on, all that the device has written is visible. */
	udma_from_device_barrier();
	qhca_lock(&cq->lock);
	more = qhca_cq_peek(cq, atomic_load_explicit(&cq->ci,
						     memory_order_relaxed));
	qhca_unlock(&cq->lock);
	return more ? 0 : EIO;
}

/* Is this a CQE of the QP @obj?  Those of an SRQ's own CQ are the SRQ's. */
static bool qhca_cqe_of_qp(const struct qhca_cqe *cqe, const void *obj)
{
	const struct qhca_qp *qp = obj;

	return le32toh(cqe->qpn) == qp->qpn &&
	       !(le16toh(cqe->flags) & QHCA_CQE_F_SRQN);
}

/* Is this a CQE of the SRQ @obj, which has a CQ of its own? */
static bool qhca_cqe_of_srq(const struct qhca_cqe *cqe, const void *obj)
{
	const struct qhca_srq *srq = obj;

	return (le16toh(cqe->flags) & QHCA_CQE_F_SRQN) &&
	       le32toh(cqe->src_qpn) == srq->srqn;
}

/*
 * Removes the CQEs of @obj from @cq, once the device writes no more of them;
 * the CQ's lock is held.  WQEs of @srq, if it is not NULL, are returned to it.
 *
 * The others move towards the producer, in order, each with the phase of its
 * new place; then the consumer index skips the gap.  The entries in the gap
 * keep their old phase, which the device's next lap overwrites, so they never
 * look new.
 *
 * The SRQ's lock is held until the device may use the gap, so that no returned
 * WQE is posted before there is room for its completion.
 */
static void qhca_cq_drop(struct qhca_cq *cq,
			 bool (*gone)(const struct qhca_cqe *, const void *),
			 const void *obj, struct qhca_srq *srq)
{
	uint32_t ci, prod, from, to;
	struct qhca_cqe *src, *dst;

	if (srq)
		qhca_lock(&srq->lock);
	ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
	prod = ci;
	while (prod - ci < 1U << cq->shift && qhca_cq_peek(cq, prod))
		prod++;

	to = prod;
	for (from = prod; from != ci; ) {
		src = &cq->ring[qhca_slot(--from, cq->shift)];
		if (gone(src, obj)) {
			if (srq && (src->opcode & QHCA_CQE_OP_RECV) &&
			    (le16toh(src->flags) & QHCA_CQE_F_SRQ))
				qhca_srq_give_back_locked(srq,
						le32toh(src->wqe_index));
			continue;
		}
		if (--to == from)
			continue;
		dst = &cq->ring[qhca_slot(to, cq->shift)];
		*dst = *src;
		dst->phase = qhca_phase(to, cq->shift);
	}
	if (to != ci) {
		atomic_store_explicit(&cq->ci, to, memory_order_relaxed);
		qhca_dbrec_store(cq->dbrec, to);
	}
	if (srq)
		qhca_unlock(&srq->lock);
}

/* Removes the CQEs of a QP that is back in RESET from @cq. */
void qhca_cq_clean(struct qhca_cq *cq, struct qhca_qp *qp)
{
	qhca_lock(&cq->lock);
	qhca_cq_drop(cq, qhca_cqe_of_qp, qp, qp->srq);
	qhca_unlock(&cq->lock);
}

/*
 * The same for a QP that is destroyed.  The device writes no more CQEs of it;
 * if it does, polling finds the QP in the table until it has left, but no
 * longer accepts them.  So @cq does not refer to it again.
 */
void qhca_cq_forget(struct qhca_cq *cq, struct qhca_qp *qp)
{
	qhca_lock(&cq->lock);
	qhca_cq_drop(cq, qhca_cqe_of_qp, qp, qp->srq);
	if (cq->last_qp == qp)
		cq->last_qp = NULL;
	if (qp->recv_cq == cq)
		qp->recv_cq = NULL;
	if (qp->send_cq == cq)
		qp->send_cq = NULL;
	qhca_unlock(&cq->lock);
}

/* The same for a destroyed SRQ and @cq, its own CQ. */
void qhca_cq_forget_srq(struct qhca_cq *cq, struct qhca_srq *srq)
{
	qhca_lock(&cq->lock);
	qhca_cq_drop(cq, qhca_cqe_of_srq, srq, NULL);
	srq->cq = NULL;
	qhca_unlock(&cq->lock);
}
