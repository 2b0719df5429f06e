// SPDX-License-Identifier: GPL-2.0
/*
 * Polling of kernel CQs. Any context; cq->lock, then the lock of a queue or SRQ.
 *
 * A QP leaves dev->qps after its CQEs were cleaned away under cq->lock, so the
 * QP that a CQE names lives as long as that lock is held.
 */
#include "cq_ring.h"
#include "qhca_ib.h"
#include "qhca_ib_trace.h"

/* The CQE with counter @index if the device has written it, else NULL. */
static struct qhca_cqe *poll_cq_entry(struct qhca_ib_cq *cq, u32 index)
{
	u32 slot = index & (BIT(cq->shift) - 1);
	struct qhca_cqe *cqe;

	cqe = qhca_queue_buf_ptr(&cq->buf.kbuf, (size_t)slot * sizeof(*cqe));
	if (!qhca_phase_ok(READ_ONCE(cqe->phase), index, cq->shift))
		return NULL;
	dma_rmb();	/* the rest of the CQE is as old as its phase */
	return cqe;
}

/* True if there is a CQE to poll; under cq->lock. */
bool qhca_ib_cq_has_cqe(struct qhca_ib_cq *cq)
{
	return poll_cq_entry(cq, cq->ci);
}

/* Tell the device what has been taken. */
static void poll_set_ci(struct qhca_ib_cq *cq, u32 ci)
{
	cq->ci = ci;
	/* the CQEs have been read before the device may overwrite them */
	mb();
	WRITE_ONCE(cq->dbrec.rec->index, cpu_to_le32(ci));
}

static enum ib_wc_opcode poll_wc_opcode(u8 op)
{
	switch (op) {
	case QHCA_CQE_OP_RDMA_WRITE:
		return IB_WC_RDMA_WRITE;
	case QHCA_CQE_OP_RDMA_READ:
		return IB_WC_RDMA_READ;
	case QHCA_CQE_OP_COMP_SWAP:
		return IB_WC_COMP_SWAP;
	case QHCA_CQE_OP_FETCH_ADD:
		return IB_WC_FETCH_ADD;
	case QHCA_CQE_OP_LOCAL_INV:
		return IB_WC_LOCAL_INV;
	case QHCA_CQE_OP_REG_MR:
		return IB_WC_REG_MR;
	case QHCA_CQE_OP_FLUSH:
		return IB_WC_FLUSH;
	case QHCA_CQE_OP_ATOMIC_WRITE:
		return IB_WC_ATOMIC_WRITE;
	case QHCA_CQE_OP_MASKED_COMP_SWAP:
		return IB_WC_MASKED_COMP_SWAP;
	case QHCA_CQE_OP_MASKED_FETCH_ADD:
		return IB_WC_MASKED_FETCH_ADD;
	case QHCA_CQE_OP_RECV:
		return IB_WC_RECV;
	case QHCA_CQE_OP_RECV_RDMA_IMM:
		return IB_WC_RECV_RDMA_WITH_IMM;
	default:
		return IB_WC_SEND;
	}
}

static void poll_fill_ud(struct ib_wc *wc, const struct qhca_cqe *cqe,
			 u16 flags)
{
	wc->src_qp = le32_to_cpu(cqe->src_qpn);
	wc->pkey_index = le16_to_cpu(cqe->pkey_index);
	wc->sl = cqe->sl;
	if (flags & QHCA_CQE_F_GRH)
		wc->wc_flags |= IB_WC_GRH;
	if (flags & QHCA_CQE_F_SMAC) {
		memcpy(wc->smac, cqe->smac, sizeof(wc->smac));
		wc->wc_flags |= IB_WC_WITH_SMAC;
	}
	if (flags & QHCA_CQE_F_VLAN) {
		wc->vlan_id = le16_to_cpu(cqe->vlan) & 0xfff;
		wc->wc_flags |= IB_WC_WITH_VLAN;
	}
	switch (cqe->net_type) {
	case QHCA_NET_IPV4:
		wc->network_hdr_type = RDMA_NETWORK_IPV4;
		wc->wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
		break;
	case QHCA_NET_IPV6:
		wc->network_hdr_type = RDMA_NETWORK_IPV6;
		wc->wc_flags |= IB_WC_WITH_NETWORK_HDR_TYPE;
		break;
	}
}

/* What a WQE of a queue was posted with. */
static u64 poll_wqe_wr_id(struct qhca_ib_ring *ring, u32 index, bool sq)
{
	size_t off = (size_t)(index & (BIT(ring->shift) - 1)) << ring->stride;
	void *wqe = qhca_queue_buf_ptr(&ring->buf.kbuf, off);

	return le64_to_cpu(sq ? ((struct qhca_wqe_ctrl *)wqe)->wr_id
			      : ((struct qhca_rq_wqe *)wqe)->wr_id);
}

/*
 * True if the device could not read the WQE of a CQE and so does not know its
 * wr_id. We do: the ring is our memory, and the slot is not free yet.
 */
static bool poll_wqe_lost(const struct qhca_cqe *cqe)
{
	return !(cqe->opcode & QHCA_CQE_OP_RECV) &&
	       (cqe->status == QHCA_WC_LOC_QP_OP_ERR ||
		cqe->status == QHCA_WC_WR_FLUSH_ERR) &&
	       QHCA_SYN_IS_WQE_LOST(cqe->syndrome);
}

static void poll_fill_wc(struct ib_wc *wc, const struct qhca_cqe *cqe,
			 struct qhca_ib_qp *qp)
{
	u16 flags = le16_to_cpu(cqe->flags);

	memset(wc, 0, sizeof(*wc));
	if (unlikely(poll_wqe_lost(cqe)))
		wc->wr_id = poll_wqe_wr_id(&qp->sq, le32_to_cpu(cqe->wqe_index),
					   true);
	else
		wc->wr_id = le64_to_cpu(cqe->wr_id);
	/* the values follow the verbs' */
	wc->status = cqe->status <= IB_WC_GENERAL_ERR ? cqe->status
						      : IB_WC_GENERAL_ERR;
	wc->opcode = poll_wc_opcode(cqe->opcode);
	wc->vendor_err = cqe->syndrome;
	wc->byte_len = le32_to_cpu(cqe->byte_len);
	wc->qp = &qp->ibqp;
	wc->port_num = QHCA_IB_PORT;
	if (flags & QHCA_CQE_F_IMM) {
		wc->ex.imm_data = cqe->imm;
		wc->wc_flags |= IB_WC_WITH_IMM;
	} else if (flags & QHCA_CQE_F_INV) {
		wc->ex.invalidate_rkey =
			le32_to_cpu((__force __le32)cqe->imm);
		wc->wc_flags |= IB_WC_WITH_INVALIDATE;
	}
	if (qhca_ib_qp_is_ud(qp) && cqe->opcode == QHCA_CQE_OP_RECV)
		poll_fill_ud(wc, cqe, flags);
}

/*
 * WQEs whose CQEs were read, until their places are given back to who posts. A
 * completion covers all the WQEs before it that asked for none.
 */
struct retired {
	struct qhca_ib_qp *qp;		/* sq, rq */
	struct qhca_ib_srq *srq;	/* NULL: none of an SRQ */
	u32 sq_tail;
	u32 rq_tail;
	u32 srq_wqe;
	bool sq;
	bool rq;
};

/*
 * Tell the device that the CQEs before @ci have been read, and only then give
 * back their WQEs: a WQE that can be posted must have room for its completion.
 */
static void poll_cq_advance(struct qhca_ib_cq *cq, u32 ci, struct retired *done)
{
	poll_set_ci(cq, ci);
	if (done->sq) {
		/* pairs with post_ring_full() */
		smp_store_release(&done->qp->sq.tail, done->sq_tail);
	}
	if (done->rq) {
		/* pairs with post_ring_full() */
		smp_store_release(&done->qp->rq.tail, done->rq_tail);
	}
	if (done->srq)
		qhca_ib_srq_free_wqe(done->srq, done->srq_wqe);
	memset(done, 0, sizeof(*done));
}

/*
 * Add the WQE of a CQE, the one at @ci, to those retired. What does not go
 * together with it is given back now, as the CQEs before this one were read.
 */
static void poll_retire_wqe(struct qhca_ib_cq *cq, struct qhca_ib_qp *qp,
			    const struct qhca_cqe *cqe, u32 ci,
			    struct retired *done)
{
	u32 index = le32_to_cpu(cqe->wqe_index);
	bool recv = cqe->opcode & QHCA_CQE_OP_RECV;

	if (recv && (le16_to_cpu(cqe->flags) & QHCA_CQE_F_SRQ)) {
		if (done->srq)
			poll_cq_advance(cq, ci, done);
		done->srq = qp->srq;
		done->srq_wqe = index;
		return;
	}
	if (done->qp && done->qp != qp)
		poll_cq_advance(cq, ci, done);
	done->qp = qp;
	if (recv) {
		done->rq = true;
		done->rq_tail = index + 1;
	} else {
		done->sq = true;
		done->sq_tail = index + 1;
	}
}

static int poll_device(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq, int num,
		       struct ib_wc *wc)
{
	struct qhca_ib_qp *qp = NULL;
	struct retired done = {};
	struct qhca_cqe *cqe;
	u32 ci = cq->ci;
	int n = 0;

	for (; n < num && (cqe = poll_cq_entry(cq, ci)); ci++) {
		u32 qpn = le32_to_cpu(cqe->qpn);

		if (!qp || qp->qpn != qpn)
			qp = xa_load(&dev->qps, qpn);
		if (WARN_ON_ONCE(!qp))
			continue;
		trace_qhca_poll_cq(dev, cq->cqn, ci, cqe);
		poll_fill_wc(&wc[n++], cqe, qp);
		poll_retire_wqe(cq, qp, cqe, ci, &done);
	}
	if (ci != cq->ci)
		poll_cq_advance(cq, ci, &done);
	return n;
}

static int poll_flush_ring(struct qhca_ib_qp *qp, bool sq, int num,
			   struct ib_wc *wc)
{
	struct qhca_ib_ring *ring = sq ? &qp->sq : &qp->rq;
	int n = 0;

	spin_lock(&ring->lock);
	while (n < num && ring->tail != ring->head) {
		memset(&wc[n], 0, sizeof(*wc));
		wc[n].wr_id = poll_wqe_wr_id(ring, ring->tail, sq);
		wc[n].status = IB_WC_WR_FLUSH_ERR;
		wc[n].vendor_err = QHCA_SYN_FLUSH;
		wc[n].opcode = sq ? IB_WC_SEND : IB_WC_RECV;
		wc[n].qp = &qp->ibqp;
		trace_qhca_flush_wr(to_qdev(qp->ibqp.device), qp->qpn, sq,
				    ring->tail, wc[n].wr_id);
		ring->tail++;
		n++;
	}
	spin_unlock(&ring->lock);
	return n;
}

/*
 * The device is dead: all WRs that it has not completed end as flushed, so
 * that kernel users who drain their QPs get through.
 */
static int poll_dead(struct qhca_ib_cq *cq, int num, struct ib_wc *wc)
{
	struct qhca_ib_qp *qp;
	int n = 0;

	list_for_each_entry(qp, &cq->send_qps, scq_entry)
		n += poll_flush_ring(qp, true, num - n, wc + n);
	list_for_each_entry(qp, &cq->recv_qps, rcq_entry)
		n += poll_flush_ring(qp, false, num - n, wc + n);
	return n;
}

/* True if poll_dead() would return something; under cq->lock. */
bool qhca_ib_cq_has_flush(struct qhca_ib_cq *cq)
{
	struct qhca_ib_qp *qp;

	list_for_each_entry(qp, &cq->send_qps, scq_entry) {
		if (READ_ONCE(qp->sq.head) != qp->sq.tail)
			return true;
	}
	list_for_each_entry(qp, &cq->recv_qps, rcq_entry) {
		if (READ_ONCE(qp->rq.head) != qp->rq.tail)
			return true;
	}
	return false;
}

/**
 * qhca_ib_poll_cq - ib_device_ops.poll_cq
 * @ibcq: a kernel user's CQ
 * @num: room in @wc
 * @wc: completions
 *
 * Return: number of completions.
 */
int qhca_ib_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc)
{
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	unsigned long irq;
	bool dead;
	int n;

	spin_lock_irqsave(&cq->lock, irq);
	/* first: a dead device writes no CQE after we have looked for them */
	dead = qhca_dev_dead(dev->qdev);
	dma_rmb();	/* dead before the CQEs, which the device has written */
	n = poll_device(dev, cq, num, wc);
	if (unlikely(n < num && dead))
		n += poll_dead(cq, num - n, wc + n);
	spin_unlock_irqrestore(&cq->lock, irq);
	return n;
}

struct clean {
	struct qhca_cq_ring ring;
	struct qhca_ib_cq *cq;
	struct qhca_ib_srq *srq;
};

static struct qhca_cqe *poll_clean_at(struct qhca_cq_ring *ring, u32 slot)
{
	struct clean *c = container_of(ring, struct clean, ring);

	return qhca_queue_buf_ptr(&c->cq->buf.kbuf,
				  (size_t)slot * sizeof(struct qhca_cqe));
}

static void poll_clean_dropped(struct qhca_cq_ring *ring,
			       const struct qhca_cqe *cqe)
{
	struct clean *c = container_of(ring, struct clean, ring);

	if (c->srq && (le16_to_cpu(cqe->flags) & QHCA_CQE_F_SRQ))
		qhca_ib_srq_free_wqe_locked(c->srq,
					    le32_to_cpu(cqe->wqe_index));
}

static void poll_clean_locked(struct clean *c, u32 qpn)
{
	struct qhca_ib_cq *cq = c->cq;
	u32 freed = qhca_cq_ring_clean(&c->ring, cq->ci, qpn);

	if (freed)
		poll_set_ci(cq, cq->ci + freed);
}

/**
 * qhca_ib_cq_clean - take the CQEs of a QP out of a kernel CQ
 * @cq: the CQ
 * @qpn: the QP; it has been destroyed or reset, no more CQEs come
 * @srq: where its receives came from, or NULL
 */
void qhca_ib_cq_clean(struct qhca_ib_cq *cq, u32 qpn, struct qhca_ib_srq *srq)
{
	struct clean c = {
		.ring = {
			.at = poll_clean_at,
			.dropped = poll_clean_dropped,
			.shift = cq->shift,
		},
		.cq = cq,
		.srq = srq,
	};
	unsigned long irq;

	spin_lock_irqsave(&cq->lock, irq);
	if (srq) {
		/* nobody posts what comes back before there is room in the CQ */
		spin_lock(&srq->lock);
		poll_clean_locked(&c, qpn);
		spin_unlock(&srq->lock);
	} else {
		poll_clean_locked(&c, qpn);
	}
	spin_unlock_irqrestore(&cq->lock, irq);
}
