// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Polling and arming of completion queues.
 */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/qhca-hw.h>
#include <util/compiler.h>

#include "qhca-context.h"
#include "qhca-cq.h"
#include "qhca-doorbell.h"
#include "qhca-lock.h"
#include "qhca-poll.h"
#include "qhca-qp.h"
#include "qhca-srq.h"
#include "qhca-tm.h"
#include "trace.h"

static_assert((int)QHCA_WC_LOC_PROT_ERR == (int)IBV_WC_LOC_PROT_ERR &&
	      (int)QHCA_WC_WR_FLUSH_ERR == (int)IBV_WC_WR_FLUSH_ERR &&
	      (int)QHCA_WC_REM_OP_ERR == (int)IBV_WC_REM_OP_ERR &&
	      (int)QHCA_WC_RNR_RETRY_EXC_ERR == (int)IBV_WC_RNR_RETRY_EXC_ERR &&
	      (int)QHCA_WC_FATAL_ERR == (int)IBV_WC_FATAL_ERR &&
	      (int)QHCA_WC_GENERAL_ERR == (int)IBV_WC_GENERAL_ERR,
	      "the device's status codes must equal those of the verbs");

/*
 * The device could not read the WQE, so it does not know its wr_id.  The
 * provider does: the ring is its memory, and the slot is not free before the
 * completion is taken.  A QP whose send side is used by the device has no ring.
 */
static void qhca_cqe_fill_wr_id(const struct qhca_qp *qp, struct qhca_cqe *cqe,
				uint32_t index)
{
	const struct qhca_wqe_ctrl *ctrl;

	if (!QHCA_SYN_IS_WQE_LOST(cqe->syndrome) || !qp->sq.ring)
		return;
	if (cqe->status != QHCA_WC_LOC_QP_OP_ERR &&
	    cqe->status != QHCA_WC_WR_FLUSH_ERR)
		return;
	ctrl = (const void *)qhca_sq_slot(&qp->sq, index);
	cqe->wr_id = ctrl->wr_id;
}

/*
 * Sets the consumer index to @ci, and only then frees @retired: a free WQE may
 * be posted, and there must be room for its completion.
 */
void qhca_cq_advance(struct qhca_cq *cq, uint32_t ci,
		     struct qhca_retired *retired)
{
	atomic_store_explicit(&cq->ci, ci, memory_order_relaxed);
	qhca_dbrec_store(cq->dbrec, ci);
	/*
	 * Release: a thread that sees the tail may overwrite what was read
	 * here.
	 */
	if (retired->sq)
		atomic_store_explicit(&retired->qp->sq.tail, retired->sq_tail,
				      memory_order_release);
	if (retired->rq)
		atomic_store_explicit(&retired->qp->rq.tail, retired->rq_tail,
				      memory_order_release);
	if (retired->srq && retired->tag)
		qhca_tm_give_back(retired->srq, retired->number);
	else if (retired->srq)
		qhca_srq_give_back(retired->srq, retired->number);
	*retired = (struct qhca_retired){};
}

/* Retires one WQE of an SRQ, or with @tag an entry of its tag list. */
static void qhca_cqe_retire_shared(struct qhca_cq *cq, struct qhca_srq *srq,
				   const struct qhca_cqe *cqe, bool tag,
				   uint32_t ci, struct qhca_retired *retired)
{
	if (retired->srq)
		qhca_cq_advance(cq, ci, retired);
	retired->srq = srq;
	retired->number = le32toh(cqe->wqe_index);
	retired->tag = tag;
}

/*
 * Retires a WQE of @qp and all earlier ones: a completion covers the preceding
 * WQEs that requested none.
 */
static void qhca_cqe_retire_own(struct qhca_cq *cq, struct qhca_qp *qp,
				const struct qhca_cqe *cqe, uint32_t ci,
				struct qhca_retired *retired)
{
	uint32_t tail = le32toh(cqe->wqe_index) + 1;

	if (retired->qp && retired->qp != qp)
		qhca_cq_advance(cq, ci, retired);
	retired->qp = qp;
	if (cqe->opcode & QHCA_CQE_OP_RECV) {
		retired->rq = true;
		retired->rq_tail = tail;
	} else {
		retired->sq = true;
		retired->sq_tail = tail;
	}
}

/*
 * The same for a receive of an SRQ with its own CQ.  The QP may belong to
 * another process or be gone: only the SRQ counts.
 */
static bool qhca_cqe_retire_srq(struct qhca_cq *cq, struct qhca_cqe *cqe,
				uint32_t ci, struct qhca_retired *retired)
{
	struct qhca_srq *srq;

	srq = qhca_srq_find(to_qctx(cq->vcq.cq.context),
			    le32toh(cqe->src_qpn));
	if (!srq || srq->cq != cq)
		return false;
	if (le16toh(cqe->flags) & QHCA_CQE_F_SRQ)
		qhca_cqe_retire_shared(cq, srq, cqe, false, ci, retired);
	else if (cqe->opcode == QHCA_CQE_OP_TM_RECV &&
		 (cqe->status ||
		  (le16toh(cqe->flags) & QHCA_CQE_F_TM_DATA_VALID)))
		qhca_cqe_retire_shared(cq, srq, cqe, true, ci, retired);
	return true;
}

/*
 * Finds the WQE of a CQE; the CQ's lock is held.  It is added to @retired,
 * which qhca_cq_advance() frees when the CQE was read.  If the two cannot be
 * combined, the WQEs retired earlier are freed now.
 *
 * @cqe: the CQE at counter @ci; those before it were read
 *
 * Returns false if no QP of this process has the number, or its queue uses a
 * different CQ, which does not happen with a working device; the caller then
 * drops the CQE.  So only a QP's own CQs refer to it, which are cleaned when it
 * is destroyed.
 */
bool qhca_cqe_retire(struct qhca_cq *cq, struct qhca_cqe *cqe, uint32_t ci,
		     struct qhca_retired *retired)
{
	uint32_t qpn = le32toh(cqe->qpn);
	struct qhca_qp *qp = cq->last_qp;
	bool recv;

	if (unlikely(le16toh(cqe->flags) & QHCA_CQE_F_SRQN))
		return qhca_cqe_retire_srq(cq, cqe, ci, retired);
	if (!qp || qp->qpn != qpn) {
		qp = qhca_qp_find(to_qctx(cq->vcq.cq.context), qpn);
		if (!qp)
			return false;
	}
	recv = cqe->opcode & QHCA_CQE_OP_RECV;
	if (unlikely((recv ? qp->recv_cq : qp->send_cq) != cq))
		return false;
	cq->last_qp = qp;
	if (!recv) {
		if (unlikely(cqe->status))
			qhca_cqe_fill_wr_id(qp, cqe, le32toh(cqe->wqe_index));
		qhca_cqe_retire_own(cq, qp, cqe, ci, retired);
	} else if (!(le16toh(cqe->flags) & QHCA_CQE_F_SRQ)) {
		qhca_cqe_retire_own(cq, qp, cqe, ci, retired);
	} else if (qp->srq) {
		qhca_cqe_retire_shared(cq, qp->srq, cqe, false, ci, retired);
	}
	return true;
}

enum ibv_wc_opcode qhca_cqe_wc_opcode(const struct qhca_cqe *cqe)
{
	switch (cqe->opcode) {
	case QHCA_CQE_OP_RDMA_WRITE:
		return IBV_WC_RDMA_WRITE;
	case QHCA_CQE_OP_RDMA_READ:
		return IBV_WC_RDMA_READ;
	case QHCA_CQE_OP_COMP_SWAP:
		return IBV_WC_COMP_SWAP;
	case QHCA_CQE_OP_FETCH_ADD:
		return IBV_WC_FETCH_ADD;
	case QHCA_CQE_OP_LOCAL_INV:
		return IBV_WC_LOCAL_INV;
	case QHCA_CQE_OP_BIND_MW:
		return IBV_WC_BIND_MW;
	case QHCA_CQE_OP_FLUSH:
		return IBV_WC_FLUSH;
	case QHCA_CQE_OP_ATOMIC_WRITE:
		return IBV_WC_ATOMIC_WRITE;
	case QHCA_CQE_OP_RECV:
	case QHCA_CQE_OP_RAW_RECV:
		return IBV_WC_RECV;
	case QHCA_CQE_OP_RECV_RDMA_IMM:
		return IBV_WC_RECV_RDMA_WITH_IMM;
	case QHCA_CQE_OP_TM_RECV:
		return IBV_WC_TM_RECV;
	case QHCA_CQE_OP_TM_NO_TAG:
		return IBV_WC_TM_NO_TAG;
	case QHCA_CQE_OP_TM_ADD:
		return IBV_WC_TM_ADD;
	case QHCA_CQE_OP_TM_DEL:
		return IBV_WC_TM_DEL;
	case QHCA_CQE_OP_TM_SYNC:
		return IBV_WC_TM_SYNC;
	default:
		return IBV_WC_SEND;
	}
}

/* Returns enum ibv_wc_flags. */
unsigned int qhca_cqe_wc_flags(const struct qhca_cqe *cqe)
{
	uint16_t flags = le16toh(cqe->flags);
	unsigned int wc_flags = 0;

	if (flags & QHCA_CQE_F_GRH)
		wc_flags |= IBV_WC_GRH;
	if (flags & QHCA_CQE_F_IMM)
		wc_flags |= IBV_WC_WITH_IMM;
	if (flags & QHCA_CQE_F_INV)
		wc_flags |= IBV_WC_WITH_INV;
	if (flags & QHCA_CQE_F_TM_SYNC_REQ)
		wc_flags |= IBV_WC_TM_SYNC_REQ;
	if (flags & QHCA_CQE_F_TM_MATCH)
		wc_flags |= IBV_WC_TM_MATCH;
	if (flags & QHCA_CQE_F_TM_DATA_VALID)
		wc_flags |= IBV_WC_TM_DATA_VALID;
	/*
	 * A raw packet: the device checks checksums only for those.  The CQE
	 * does not tell IPv6, for which the verbs do not define the flag.
	 */
	if ((flags & QHCA_CQE_F_L3_OK) && (flags & QHCA_CQE_F_L4_OK))
		wc_flags |= IBV_WC_IP_CSUM_OK;
	return wc_flags;
}

/*
 * RoCE has no service level.  A UD completion reports the L3 header type of the
 * packet instead, by the numbers that mlx5 and others use: the layout of the
 * GRH's 40 bytes depends on it, and UCX before 1.19 uses it to find its GID.
 * The priority of a tagged packet is in the VLAN tag, see ibv_wc_read_cvlan().
 */
uint8_t qhca_cqe_wc_sl(const struct qhca_cqe *cqe)
{
	switch (cqe->net_type) {
	case QHCA_NET_IPV6:
		return 1;
	case QHCA_NET_IPV4:
		return 2;
	default:
		return 0;
	}
}

static void qhca_poll_fill_wc(const struct qhca_cqe *cqe, struct ibv_wc *wc)
{
	wc->wr_id = le64toh(cqe->wr_id);
	wc->status = cqe->status;
	wc->opcode = qhca_cqe_wc_opcode(cqe);
	wc->vendor_err = cqe->syndrome;
	wc->byte_len = le32toh(cqe->byte_len);
	wc->wc_flags = qhca_cqe_wc_flags(cqe);
	if (wc->wc_flags & IBV_WC_WITH_INV)
		wc->invalidated_rkey = le32toh((__force __le32)cqe->imm);
	else
		wc->imm_data = cqe->imm;
	wc->qp_num = le32toh(cqe->qpn);
	wc->src_qp = qhca_cqe_src_qp(cqe);
	wc->pkey_index = le16toh(cqe->pkey_index);
	wc->slid = 0;
	wc->sl = qhca_cqe_wc_sl(cqe);
	wc->dlid_path_bits = 0;
}

int qhca_poll_cq(struct ibv_cq *ibv_cq, int num, struct ibv_wc *wc)
{
	struct qhca_cq *cq = to_qcq(ibv_cq);
	struct qhca_retired retired = {};
	struct qhca_cqe *cqe;
	uint32_t ci, start;
	int n = 0;

	qhca_lock(&cq->lock);
	start = atomic_load_explicit(&cq->ci, memory_order_relaxed);
	/* A lap at most: a device that keeps writing must not hold us here. */
	for (ci = start; n < num && ci - start < 1U << cq->shift; ci++) {
		cqe = qhca_cq_peek(cq, ci);
		if (!cqe)
			break;
		if (!qhca_cqe_retire(cq, cqe, ci, &retired))
			continue;
		qhca_trace_poll(cq->cqn, ci, cqe);
		qhca_poll_fill_wc(cqe, wc + n++);
	}
	if (ci != start)
		qhca_cq_advance(cq, ci, &retired);
	qhca_unlock(&cq->lock);
	if (!n && qhca_is_gone(ibv_cq->context) && qhca_cq_gone(cq))
		return -EIO;
	return n;
}

/*
 * Arms the CQ.  The doorbell carries the consumer index, so the device knows
 * about CQEs the application has not seen, and then raises an event at once:
 * none is missed between the last poll and the arming.  No lock: a stale index
 * causes an extra event, but never loses one.
 */
int qhca_req_notify_cq(struct ibv_cq *ibv_cq, int solicited_only)
{
	struct qhca_cq *cq = to_qcq(ibv_cq);
	uint32_t ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);

	if (qhca_is_gone(ibv_cq->context))
		return EIO;
	qhca_db_ring(to_qctx(ibv_cq->context), QHCA_DB_CQ_ARM, cq->cqn,
		     solicited_only ? QHCA_DB_SOLICITED : 0, ci);
	return 0;
}
