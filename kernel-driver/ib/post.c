// SPDX-License-Identifier: GPL-2.0
/*
 * Posting by kernel users. Any context. Each call rings one doorbell, for all
 * WRs that it has taken.
 */
#include "qhca_ib.h"
#include "qhca_ib_trace.h"

#define OPCODE_BAD	0xff

/* QHCA_WQE_* for a WR, or OPCODE_BAD if QP type or device do not support it. */
static u8 post_wqe_opcode(struct qhca_ib_dev *dev, const struct qhca_ib_qp *qp,
			  enum ib_wr_opcode op)
{
	u64 features = dev->qdev->caps.features;
	bool fast_reg = features & QHCA_FEAT_FAST_REG;
	bool rc = qp->type == QHCA_QPT_RC;
	bool masked = rc && (features & QHCA_FEAT_MASKED_ATOMIC);

	switch (op) {
	case IB_WR_SEND:
		return QHCA_WQE_SEND;
	case IB_WR_SEND_WITH_IMM:
		return QHCA_WQE_SEND_IMM;
	default:
		break;
	}
	if (qhca_ib_qp_is_ud(qp))
		return OPCODE_BAD;

	switch (op) {
	case IB_WR_RDMA_WRITE:
		return QHCA_WQE_RDMA_WRITE;
	case IB_WR_RDMA_WRITE_WITH_IMM:
		return QHCA_WQE_RDMA_WRITE_IMM;
	case IB_WR_RDMA_READ:
		return rc ? QHCA_WQE_RDMA_READ : OPCODE_BAD;
	case IB_WR_ATOMIC_CMP_AND_SWP:
		return rc && (features & QHCA_FEAT_ATOMIC) ? QHCA_WQE_COMP_SWAP
							   : OPCODE_BAD;
	case IB_WR_ATOMIC_FETCH_AND_ADD:
		return rc && (features & QHCA_FEAT_ATOMIC) ? QHCA_WQE_FETCH_ADD
							   : OPCODE_BAD;
	case IB_WR_MASKED_ATOMIC_CMP_AND_SWP:
		return masked ? QHCA_WQE_MASKED_COMP_SWAP : OPCODE_BAD;
	case IB_WR_MASKED_ATOMIC_FETCH_AND_ADD:
		return masked ? QHCA_WQE_MASKED_FETCH_ADD : OPCODE_BAD;
	case IB_WR_SEND_WITH_INV:
		return rc && fast_reg ? QHCA_WQE_SEND_INV : OPCODE_BAD;
	case IB_WR_LOCAL_INV:
		return fast_reg ? QHCA_WQE_LOCAL_INV : OPCODE_BAD;
	case IB_WR_REG_MR:
		return fast_reg ? QHCA_WQE_REG_MR : OPCODE_BAD;
	default:
		return OPCODE_BAD;
	}
}

static void post_write_sges(struct qhca_sge *to, const struct ib_sge *from,
			    int n)
{
	for (; n > 0; n--, to++, from++) {
		to->addr = cpu_to_le64(from->addr);
		to->len = cpu_to_le32(from->length);
		to->lkey = cpu_to_le32(from->lkey);
	}
}

/* Copy the data into the WQE; its length, or -EINVAL if it does not fit. */
static int post_write_inline(u8 *to, const struct ib_send_wr *wr, u32 room)
{
	u32 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++) {
		const struct ib_sge *sge = &wr->sg_list[i];

		if (sge->length > room - len)
			return -EINVAL;
		memcpy(to + len, (void *)(uintptr_t)sge->addr, sge->length);
		len += sge->length;
	}
	return len;
}

static int post_write_ud(struct qhca_ud_wqe *wqe, const struct ib_ud_wr *wr)
{
	if (!wr->ah || wr->pkey_index)
		return -EINVAL;
	wqe->dest_qpn = cpu_to_le32(wr->remote_qpn & 0xffffff);
	wqe->qkey = cpu_to_le32(wr->remote_qkey);
	wqe->av = to_qah(wr->ah)->av;
	return 0;
}

static int post_write_reg_mr(struct qhca_sq_wqe *wqe,
			     const struct ib_reg_wr *wr)
{
	struct qhca_ib_mr *mr = to_qmr(wr->mr);

	if (!mr->pages || !mr->npages)
		return -EINVAL;
	if (wr->access & ~(IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE |
			   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC |
			   IB_ACCESS_OPTIONAL))
		return -EOPNOTSUPP;
	wqe->ctrl.arg0 = cpu_to_le64(mr->ibmr.iova);
	wqe->ctrl.arg1 = cpu_to_le64(mr->ibmr.length);
	wqe->remote.addr = cpu_to_le64(mr->pages_dma);
	wqe->remote.rkey = cpu_to_le32(wr->key);
	wqe->remote.arg = cpu_to_le32(qhca_ib_access(wr->access) |
				      ilog2(mr->ibmr.page_size) << 8 |
				      mr->npages << 16);
	return 0;
}

/* The stride of kernel RC queues has room for it, see kernel_sq(). */
static void post_write_masked(struct qhca_masked_wqe *wqe, u8 op,
			      const struct ib_atomic_wr *wr)
{
	wqe->remote.addr = cpu_to_le64(wr->remote_addr);
	wqe->remote.rkey = cpu_to_le32(wr->rkey);
	wqe->ctrl.arg0 = cpu_to_le64(wr->compare_add);
	wqe->mask = cpu_to_le64(wr->compare_add_mask);
	if (op == QHCA_WQE_MASKED_COMP_SWAP) {
		wqe->ctrl.arg1 = cpu_to_le64(wr->swap);
		wqe->swap_mask = cpu_to_le64(wr->swap_mask);
	}
}

/* The fields that depend on the opcode, for connected QPs. */
static int post_write_connected(struct qhca_sq_wqe *wqe, u8 op,
				const struct ib_send_wr *wr)
{
	switch (op) {
	case QHCA_WQE_RDMA_WRITE:
	case QHCA_WQE_RDMA_WRITE_IMM:
	case QHCA_WQE_RDMA_READ:
		wqe->remote.addr = cpu_to_le64(rdma_wr(wr)->remote_addr);
		wqe->remote.rkey = cpu_to_le32(rdma_wr(wr)->rkey);
		return 0;
	case QHCA_WQE_COMP_SWAP:
	case QHCA_WQE_FETCH_ADD:
		wqe->remote.addr = cpu_to_le64(atomic_wr(wr)->remote_addr);
		wqe->remote.rkey = cpu_to_le32(atomic_wr(wr)->rkey);
		wqe->ctrl.arg0 = cpu_to_le64(atomic_wr(wr)->compare_add);
		if (op == QHCA_WQE_COMP_SWAP)
			wqe->ctrl.arg1 = cpu_to_le64(atomic_wr(wr)->swap);
		return 0;
	case QHCA_WQE_MASKED_COMP_SWAP:
	case QHCA_WQE_MASKED_FETCH_ADD:
		post_write_masked((struct qhca_masked_wqe *)wqe, op,
				  atomic_wr(wr));
		return 0;
	case QHCA_WQE_REG_MR:
		return post_write_reg_mr(wqe, reg_wr(wr));
	default:
		return 0;
	}
}

static __be32 post_wqe_imm(u8 opcode, const struct ib_send_wr *wr)
{
	switch (opcode) {
	case QHCA_WQE_SEND_IMM:
	case QHCA_WQE_RDMA_WRITE_IMM:
		return wr->ex.imm_data;
	case QHCA_WQE_SEND_INV:
	case QHCA_WQE_LOCAL_INV:
		return (__force __be32)cpu_to_le32(wr->ex.invalidate_rkey);
	default:
		return 0;
	}
}

static u8 post_wqe_flags(const struct qhca_ib_qp *qp,
			 const struct ib_send_wr *wr)
{
	u8 flags = 0;

	if (qp->sig_all || (wr->send_flags & IB_SEND_SIGNALED))
		flags |= QHCA_WQE_F_SIGNALED;
	if (wr->send_flags & IB_SEND_SOLICITED)
		flags |= QHCA_WQE_F_SOLICITED;
	if (wr->send_flags & IB_SEND_FENCE)
		flags |= QHCA_WQE_F_FENCE;
	return flags;
}

/*
 * Write one WQE into the slot at sq.head. Nothing is read back, as the device
 * can write there, too.
 */
static int post_write_sq_wqe(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			     const struct ib_send_wr *wr)
{
	size_t slot = qp->sq.head & (BIT(qp->sq.shift) - 1);
	void *wqe = qhca_queue_buf_ptr(&qp->sq.buf.kbuf, slot << qp->sq.stride);
	u8 op = post_wqe_opcode(dev, qp, wr->opcode);
	struct qhca_wqe_ctrl *ctrl = wqe;
	bool local = op == QHCA_WQE_REG_MR || op == QHCA_WQE_LOCAL_INV;
	bool masked = op == QHCA_WQE_MASKED_COMP_SWAP ||
		      op == QHCA_WQE_MASKED_FETCH_ADD;
	size_t header = sizeof(struct qhca_sq_wqe);
	u8 flags = post_wqe_flags(qp, wr);
	void *data;
	int n;

	if (op == OPCODE_BAD || (wr->send_flags & IB_SEND_IP_CSUM))
		return -EOPNOTSUPP;
	if (wr->num_sge < 0 || (local && wr->num_sge))
		return -EINVAL;
	/* the response has 8 bytes; more SGEs may not fit behind the masks */
	if (masked && (wr->num_sge > 1 || (wr->send_flags & IB_SEND_INLINE)))
		return -EINVAL;

	if (qhca_ib_qp_is_ud(qp))
		header = sizeof(struct qhca_ud_wqe);
	else if (masked)
		header = sizeof(struct qhca_masked_wqe);
	data = wqe + header;
	memset(wqe, 0, header);
	ctrl->opcode = op;
	ctrl->imm = post_wqe_imm(op, wr);
	ctrl->wr_id = cpu_to_le64(wr->wr_id);
	if (qhca_ib_qp_is_ud(qp))
		n = post_write_ud(wqe, ud_wr(wr));
	else
		n = post_write_connected(wqe, op, wr);
	if (n)
		return n;

	if ((wr->send_flags & IB_SEND_INLINE) && !local) {
		n = post_write_inline(data, wr, qp->sq.max_inline);
		if (n < 0)
			return n;
		flags |= QHCA_WQE_F_INLINE;
	} else {
		n = wr->num_sge;
		if (n > qp->sq.max_sge)
			return -EINVAL;
		post_write_sges(data, wr->sg_list, n);
	}
	ctrl->flags = flags;
	ctrl->num_sge = cpu_to_le16(n);
	qp->sq.wr[slot].wr_id = wr->wr_id;
	trace_qhca_post_send(dev, qp, qp->sq.head, wr, ctrl);
	return 0;
}

static void post_ring_doorbell(struct qhca_ib_dev *dev, u32 reg, u32 qpn,
			       u32 index)
{
	trace_qhca_doorbell(dev, reg, qpn, 0, index);
	qhca_db_ring(dev->qdev, reg, qpn, 0, index);
}

static bool post_ring_full(struct qhca_ib_ring *ring)
{
	/* pairs with poll_cq_advance(): write a slot only when it is free */
	u32 tail = smp_load_acquire(&ring->tail);

	return ring->head - tail >= BIT(ring->shift);
}

/* The slot at head is written. */
static void post_ring_add(struct qhca_ib_ring *ring)
{
	/* pairs with poll_take_ring(): what was posted is in ring->wr */
	smp_store_release(&ring->head, ring->head + 1);
}

/*
 * Tell the device; see QHCA_QP_F_SQ_RECORD. Under the SQ's lock, though the
 * order of doorbells does not matter with a record: a thread that drains the
 * queue posts, and may destroy the QP when its WR has completed.
 */
static void post_publish_sq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	struct qhca_dbrec *rec = qp->sq_dbrec.rec;

	if (rec) {
		dma_wmb();	/* WQEs before the index */
		WRITE_ONCE(rec->index, cpu_to_le32(qp->sq.head));
		mb();		/* index before looking at the flags */
		if (!(le32_to_cpu(READ_ONCE(rec->flags)) & QHCA_DBREC_NOTIFY))
			return;
	}
	post_ring_doorbell(dev, QHCA_DB_SQ, qp->qpn, qp->sq.head);
}

/**
 * qhca_ib_post_send - ib_device_ops.post_send
 * @ibqp: a kernel user's QP
 * @wr: chain of work requests
 * @bad: the first one not taken, on error
 *
 * Return: 0, -EINVAL (state, too many SGEs, too much inline data), -ENOMEM
 * (queue full), -EOPNOTSUPP (opcode or flag).
 */
int qhca_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	unsigned long irq;
	u32 first;
	int err = 0;

	spin_lock_irqsave(&qp->sq.lock, irq);
	if (unlikely(!qp->sq.stride || READ_ONCE(qp->state) < IB_QPS_RTS)) {
		err = -EINVAL;
		*bad = wr;
		goto out;
	}
	first = qp->sq.head;
	for (; wr; wr = wr->next) {
		err = post_ring_full(&qp->sq) ?
		      -ENOMEM : post_write_sq_wqe(dev, qp, wr);
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
		post_ring_add(&qp->sq);
	}
	if (qp->sq.head != first)
		post_publish_sq(dev, qp);
out:
	spin_unlock_irqrestore(&qp->sq.lock, irq);
	qhca_ib_wake_if_dead(dev);
	return err;
}

/*
 * Write a receive WQE for RQ or SRQ, and save data for polling; the SGEs fit.
 */
void qhca_ib_write_rq_wqe(void *wqe, struct qhca_ib_wr *kept,
			  const struct ib_recv_wr *wr)
{
	struct qhca_rq_wqe *rq = wqe;
	u64 len = 0;
	int i;

	for (i = 0; i < wr->num_sge; i++)
		len += wr->sg_list[i].length;
	kept->wr_id = wr->wr_id;
	kept->len = min_t(u64, len, U32_MAX);
	memset(rq, 0, sizeof(*rq));
	rq->wr_id = cpu_to_le64(wr->wr_id);
	rq->num_sge = cpu_to_le16(wr->num_sge);
	post_write_sges(wqe + sizeof(*rq), wr->sg_list, wr->num_sge);
}

/* Tell the device; see struct qhca_dbrec for the protocol. */
static void post_publish_rq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	dma_wmb();	/* WQEs before the index */
	WRITE_ONCE(qp->rq_dbrec.rec->index, cpu_to_le32(qp->rq.head));
	mb();		/* index before looking at the flags */
	if (le32_to_cpu(READ_ONCE(qp->rq_dbrec.rec->flags)) & QHCA_DBREC_NOTIFY)
		post_ring_doorbell(dev, QHCA_DB_RQ, qp->qpn, 0);
}

/**
 * qhca_ib_post_recv - ib_device_ops.post_recv
 * @ibqp: a kernel user's QP
 * @wr: chain of work requests
 * @bad: the first one not taken, on error
 *
 * Return: 0, -EINVAL (QP in RESET or on an SRQ, too many SGEs), -ENOMEM (queue
 * full).
 */
int qhca_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	unsigned long irq;
	size_t slot;
	u32 first;
	int err = 0;

	spin_lock_irqsave(&qp->rq.lock, irq);
	if (unlikely(!qp->rq.stride ||
		     READ_ONCE(qp->state) == IB_QPS_RESET)) {
		err = -EINVAL;
		*bad = wr;
		goto out;
	}
	first = qp->rq.head;
	for (; wr; wr = wr->next) {
		if (post_ring_full(&qp->rq))
			err = -ENOMEM;
		else if (wr->num_sge < 0 || wr->num_sge > qp->rq.max_sge)
			err = -EINVAL;
		if (unlikely(err)) {
			*bad = wr;
			break;
		}
		slot = qp->rq.head & (BIT(qp->rq.shift) - 1);
		qhca_ib_write_rq_wqe(qhca_queue_buf_ptr(&qp->rq.buf.kbuf,
							slot << qp->rq.stride),
				     &qp->rq.wr[slot], wr);
		trace_qhca_post_recv(dev, qp->qpn, qp->rq.head, slot, wr);
		post_ring_add(&qp->rq);
	}
	if (qp->rq.head != first)
		post_publish_rq(dev, qp);
out:
	spin_unlock_irqrestore(&qp->rq.lock, irq);
	qhca_ib_wake_if_dead(dev);
	return err;
}
