// SPDX-License-Identifier: GPL-2.0
/*
 * Polling of kernel CQs. Any context; cq->lock, then the lock of a queue or SRQ.
 *
 * A QP is removed from cq->qps under cq->lock, so the QP of a CQE is valid
 * while that lock is held.
 *
 * The device can write the rings at any time, and may be broken or hostile. So
 * a CQE is copied and the copy checked: it must specify a QP of this CQ and a
 * WQE that this QP has posted. The user then gets the saved wr_id. A device
 * that completes anything else is declared dead.
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
	dma_rmb();	/* read the phase before the rest of the CQE */
	return cqe;
}

/* Copy that CQE: what is checked is what is used. False: there is none. */
static bool poll_copy_cqe(struct qhca_ib_cq *cq, u32 index,
			  struct qhca_cqe *copy)
{
	struct qhca_cqe *cqe = poll_cq_entry(cq, index);

	if (!cqe)
		return false;
	*copy = *cqe;
	barrier();	/* keep the compiler from reading the ring again */
	return true;
}

/* True if there is a CQE to poll; under cq->lock. */
bool qhca_ib_cq_has_cqe(struct qhca_ib_cq *cq)
{
	return poll_cq_entry(cq, cq->ci);
}

/* Tell the device which CQEs have been taken. */
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

static void poll_fill_wc(struct ib_wc *wc, const struct qhca_cqe *cqe,
			 struct qhca_ib_qp *qp, u64 wr_id)
{
	u16 flags = le16_to_cpu(cqe->flags);

	memset(wc, 0, sizeof(*wc));
	wc->wr_id = wr_id;
	/* same values as in the verbs */
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
 * WQEs whose CQEs were read, until their slots can be reused for posting. A
 * completion covers all earlier WQEs that requested none.
 */
struct retired {
	struct qhca_ib_qp *qp;		/* sq, rq */
	struct qhca_ib_srq *srq;	/* NULL: no WQEs of an SRQ */
	u32 sq_tail;
	u32 rq_tail;
	u32 srq_wqe;
	bool sq;
	bool rq;
};

/*
 * Tell the device that the CQEs before @ci have been read, and only then free
 * their WQEs: a WQE that can be posted must have room for its completion.
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

/* The device has violated the contract: stop it. */
static void poll_nonsense(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq,
			  const struct qhca_cqe *cqe)
{
	if (qhca_dev_dead(dev->qdev))
		return;
	ibdev_err_ratelimited(&dev->ibdev,
			      "CQ %#x: no such WR: QP %#x, opcode %#x, WQE %u, %u bytes\n",
			      cq->cqn, le32_to_cpu(cqe->qpn), cqe->opcode,
			      le32_to_cpu(cqe->wqe_index),
			      le32_to_cpu(cqe->byte_len));
	qhca_dev_kill(dev->qdev, "it completed a WR that was not posted");
}

static bool poll_is_recv(const struct qhca_cqe *cqe)
{
	return cqe->opcode & QHCA_CQE_OP_RECV;
}

static bool poll_is_srq(const struct qhca_cqe *cqe)
{
	return poll_is_recv(cqe) && (le16_to_cpu(cqe->flags) & QHCA_CQE_F_SRQ);
}

/* The QP of this CQ that a CQE refers to, or NULL. @last: of the last CQE. */
static struct qhca_ib_qp *poll_qp(struct qhca_ib_cq *cq,
				  const struct qhca_cqe *cqe,
				  struct qhca_ib_qp *last)
{
	u32 qpn = le32_to_cpu(cqe->qpn);
	struct qhca_ib_qp *qp = last;

	if (!qp || qp->qpn != qpn)
		qp = xa_load(&cq->qps, qpn);
	if (!qp || (poll_is_recv(cqe) ? qp->rcq : qp->scq) != cq)
		return NULL;
	return poll_is_srq(cqe) == (poll_is_recv(cqe) && qp->srq) ? qp : NULL;
}

/* Can a receive with room for @room bytes have completed like this? */
static bool poll_recv_ok(const struct qhca_ib_qp *qp,
			 const struct qhca_cqe *cqe, u32 room)
{
	u32 len = le32_to_cpu(cqe->byte_len);

	switch (cqe->opcode) {
	case QHCA_CQE_OP_RECV:
		/* on failure the length is not read */
		if (cqe->status != QHCA_WC_SUCCESS)
			return true;
		/* users strip the GRH without checking */
		if (qhca_ib_qp_is_ud(qp) && len < sizeof(struct ib_grh))
			return false;
		return len <= room;
	case QHCA_CQE_OP_RECV_RDMA_IMM:
		/* the length is that of the peer's RDMA write */
		return !qhca_ib_qp_is_ud(qp);
	default:
		return false;
	}
}

/*
 * Take the WQE of the CQE at @ci from its SQ or RQ; @wr gets what was posted.
 * It is added to the retired ones; if it cannot be combined with them, they are
 * freed first, as the CQEs before this one were read. False if the CQE is
 * invalid.
 */
static bool poll_take_ring(struct qhca_ib_cq *cq, struct qhca_ib_qp *qp,
			   const struct qhca_cqe *cqe, u32 ci,
			   struct retired *done, struct qhca_ib_wr *wr)
{
	u32 index = le32_to_cpu(cqe->wqe_index);
	bool recv = poll_is_recv(cqe);
	struct qhca_ib_ring *ring = recv ? &qp->rq : &qp->sq;
	u32 tail, posted;

	if (done->qp && done->qp != qp)
		poll_cq_advance(cq, ci, done);
	tail = ring->tail;
	if (recv && done->rq)
		tail = done->rq_tail;
	else if (!recv && done->sq)
		tail = done->sq_tail;
	/* pairs with post_ring_add() */
	posted = smp_load_acquire(&ring->head) - tail;
	/* receives complete one by one, a send with all before it */
	if (index - tail >= (recv ? min(posted, 1U) : posted))
		return false;
	*wr = ring->wr[index & (BIT(ring->shift) - 1)];
	if (recv && !poll_recv_ok(qp, cqe, wr->len))
		return false;
	done->qp = qp;
	if (recv) {
		done->rq = true;
		done->rq_tail = index + 1;
	} else {
		done->sq = true;
		done->sq_tail = index + 1;
	}
	return true;
}

/* The same for a receive of an SRQ. */
static bool poll_take_srq(struct qhca_ib_cq *cq, struct qhca_ib_qp *qp,
			  const struct qhca_cqe *cqe, u32 ci,
			  struct retired *done, struct qhca_ib_wr *wr)
{
	u32 index = le32_to_cpu(cqe->wqe_index);

	if (done->srq)
		poll_cq_advance(cq, ci, done);
	if (!qhca_ib_srq_take_wqe(qp->srq, index, wr))
		return false;
	/* an invalid one stays taken: the device is declared dead anyway */
	if (!poll_recv_ok(qp, cqe, wr->len))
		return false;
	done->srq = qp->srq;
	done->srq_wqe = index;
	return true;
}

static bool poll_take_wqe(struct qhca_ib_cq *cq, struct qhca_ib_qp *qp,
			  const struct qhca_cqe *cqe, u32 ci,
			  struct retired *done, struct qhca_ib_wr *wr)
{
	if (poll_is_srq(cqe))
		return poll_take_srq(cq, qp, cqe, ci, done, wr);
	return poll_take_ring(cq, qp, cqe, ci, done, wr);
}

static int poll_device(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq, int num,
		       struct ib_wc *wc)
{
	u32 ci = cq->ci, end = ci + BIT(cq->shift);
	struct qhca_ib_qp *qp = NULL;
	struct retired done = {};
	struct qhca_ib_wr wr;
	struct qhca_cqe cqe;
	int n = 0;

	/* a lap at most: a device that keeps writing must not hold us here */
	for (; n < num && ci != end && poll_copy_cqe(cq, ci, &cqe); ci++) {
		trace_qhca_poll_cq(dev, cq->cqn, ci, &cqe);
		qp = poll_qp(cq, &cqe, qp);
		if (likely(qp && poll_take_wqe(cq, qp, &cqe, ci, &done, &wr)))
			poll_fill_wc(&wc[n++], &cqe, qp, wr.wr_id);
		else
			poll_nonsense(dev, cq, &cqe);
	}
	if (ci != cq->ci)
		poll_cq_advance(cq, ci, &done);
	return n;
}

static int poll_flush_ring(struct qhca_ib_qp *qp, bool sq, int num,
			   struct ib_wc *wc)
{
	struct qhca_ib_ring *ring = sq ? &qp->sq : &qp->rq;
	u32 mask = BIT(ring->shift) - 1, left;
	int n = 0;

	spin_lock(&ring->lock);
	/* posting respects the depth, but the loop must end in any case */
	left = min(ring->head - ring->tail, mask + 1);
	for (; n < num && left; left--) {
		memset(&wc[n], 0, sizeof(*wc));
		wc[n].wr_id = ring->wr[ring->tail & mask].wr_id;
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
 * The device is dead: flush all WRs that it has not completed, so that kernel
 * users can drain their QPs.
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
	/* first: a dead device writes no CQE after this check */
	dead = qhca_dev_dead(dev->qdev);
	dma_rmb();	/* check for death before reading the CQEs */
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
	u32 index = le32_to_cpu(cqe->wqe_index);
	struct qhca_ib_wr wr;

	if (!c->srq || !poll_is_srq(cqe))
		return;
	if (qhca_ib_srq_take_wqe(c->srq, index, &wr))
		qhca_ib_srq_free_wqe_locked(c->srq, index);
	else
		poll_nonsense(to_qdev(c->cq->ibcq.device), c->cq, cqe);
}

static void poll_clean_locked(struct clean *c, u32 qpn)
{
	struct qhca_ib_cq *cq = c->cq;
	u32 freed = qhca_cq_ring_clean(&c->ring, cq->ci, qpn);

	if (freed)
		poll_set_ci(cq, cq->ci + freed);
}

/**
 * qhca_ib_cq_clean - remove the CQEs of a QP from a kernel CQ
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
		/* make room in the CQ before the WQEs can be posted again */
		spin_lock(&srq->lock);
		poll_clean_locked(&c, qpn);
		spin_unlock(&srq->lock);
	} else {
		poll_clean_locked(&c, qpn);
	}
	spin_unlock_irqrestore(&cq->lock, irq);
}
