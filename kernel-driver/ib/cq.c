// SPDX-License-Identifier: GPL-2.0
/* Completion queues: create, destroy, moderate, arm. poll.c polls. */
#include <linux/delay.h>
#include <linux/log2.h>

#include "qhca_ib.h"
#include "qhca_ib_trace.h"

/**
 * qhca_ib_cq_call - call the handler of a CQ
 * @cq: the CQ
 *
 * Calls a kernel user's handler only if the CQ is armed: what the handler needs
 * may not exist before the user arms the CQ (ib_alloc_cq()), and the handler of
 * a CQ that is only polled warns. An event for an earlier arming that comes
 * after the call is dropped: the user is about to arm the CQ again, and polls
 * after that.
 */
void qhca_ib_cq_call(struct qhca_ib_cq *cq)
{
	if (!cq->user && !xchg(&cq->armed, 0))
		return;
	if (cq->ibcq.comp_handler)
		cq->ibcq.comp_handler(&cq->ibcq, cq->ibcq.cq_context);
}

/* hard interrupt context */
static void cq_comp(struct qhca_core_cq *core)
{
	struct qhca_ib_cq *cq = container_of(core, struct qhca_ib_cq, core);

	trace_qhca_cq_event(to_qdev(cq->ibcq.device), core->cqn);
	qhca_ib_cq_call(cq);
}

static int cq_user_buf(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq,
		       u32 cqe, struct ib_udata *udata)
{
	struct qhca_create_cq_req req;
	int err;

	err = qhca_ib_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask)
		return -EOPNOTSUPP;
	if (req.shift > QHCA_CQ_SHIFT_MAX || BIT(req.shift) < cqe ||
	    BIT(req.shift) > dev->qdev->caps.max_cqe)
		return -EINVAL;
	cq->shift = req.shift;
	err = qhca_ib_queue_buf_pin(dev, &cq->buf, req.buf_addr, req.buf_len,
				    sizeof(struct qhca_cqe) << cq->shift);
	if (err)
		return err;
	return qhca_ib_dbrec_pin(dev, udata_to_quc(udata), &cq->dbrec,
				 req.dbrec_addr);
}

static int cq_kernel_buf(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq,
			 u32 cqe)
{
	int err;

	cq->shift = order_base_2(cqe);
	if (cq->shift > QHCA_CQ_SHIFT_MAX ||
	    BIT(cq->shift) > dev->qdev->caps.max_cqe)
		return -EINVAL;
	err = qhca_ib_queue_buf_alloc(dev, &cq->buf,
				      sizeof(struct qhca_cqe) << cq->shift);
	if (err)
		return err;
	return qhca_ib_dbrec_alloc(dev, &cq->dbrec);
}

/*
 * The number may still be that of its previous owner, which is between
 * DESTROY_CQ and leaving the table: wait for that.
 */
static int cq_register(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq)
{
	int tries = 1000;
	int err;

	for (;;) {
		err = xa_insert(&dev->cqs, cq->cqn, cq, GFP_KERNEL);
		if (!err)
			break;
		if (err != -EBUSY || !--tries)
			return err;
		usleep_range(1000, 2000);
	}
	err = qhca_cq_register(dev->qdev, &cq->core);
	if (err) {
		xa_erase(&dev->cqs, cq->cqn);
		/* a handler may have found it */
		qhca_ib_ref_kill(&cq->ref);
	}
	return err;
}

static int cq_create(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq, u32 uar,
		     u32 vector)
{
	u32 eqn = qhca_comp_vector_eqn(dev->qdev, vector);
	struct qhca_cqc cqc = {};
	int err;

	qhca_ib_fill_cqc(&cqc, cq, eqn, uar);
	err = qhca_aq_create(dev->qdev, QHCA_CMD_CREATE_CQ, &cqc, sizeof(cqc),
			     &cq->cqn);
	if (err)
		return err;

	trace_qhca_create_cq(dev, cq, eqn, uar);
	cq->core.cqn = cq->cqn;
	cq->core.comp_vector = vector;
	cq->core.comp = cq_comp;
	err = cq_register(dev, cq);
	if (!err)
		return 0;
	qhca_aq_destroy_sure(dev->qdev, QHCA_CMD_DESTROY_CQ, cq->cqn);
	trace_qhca_destroy_cq(dev, cq->cqn, 0);
	return err;
}

static void cq_gone(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq)
{
	xa_erase(&dev->cqs, cq->cqn);
	qhca_cq_unregister(dev->qdev, &cq->core);
	qhca_ib_ref_kill(&cq->ref);
}

/**
 * qhca_ib_create_cq - ib_device_ops.create_cq
 * @ibcq: the CQ; its cqe becomes the real depth
 * @attr: depth wanted, completion vector, flags
 * @attrs: the application's request; NULL for a kernel user
 *
 * Return: 0, -EINVAL for a depth, vector or buffer out of range, -EOPNOTSUPP,
 * -ENOMEM, -EIO.
 */
int qhca_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		      struct uverbs_attr_bundle *attrs)
{
	struct ib_udata *udata = attrs ? &attrs->driver_udata : NULL;
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_ucontext *uc = udata_to_quc(udata);
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	struct qhca_create_cq_resp resp = {};
	int err;

	/* every CQE has a timestamp */
	if (attr->flags & ~IB_UVERBS_CQ_FLAGS_TIMESTAMP_COMPLETION)
		return -EOPNOTSUPP;
	if (!attr->cqe || attr->cqe > dev->qdev->caps.max_cqe ||
	    attr->comp_vector >= dev->qdev->num_comp_vectors)
		return -EINVAL;

	cq->user = udata;
	spin_lock_init(&cq->lock);
	mutex_init(&cq->resize);
	xa_init_flags(&cq->qps, XA_FLAGS_LOCK_IRQ);
	INIT_LIST_HEAD(&cq->send_qps);
	INIT_LIST_HEAD(&cq->recv_qps);
	qhca_ib_ref_init(&cq->ref);

	if (udata)
		err = cq_user_buf(dev, cq, attr->cqe, udata);
	else
		err = cq_kernel_buf(dev, cq, attr->cqe);
	if (err)
		goto err_buf;
	err = cq_create(dev, cq, uc ? uc->uar : 0, attr->comp_vector);
	if (err)
		goto err_buf;

	ibcq->cqe = BIT(cq->shift);
	if (udata) {
		resp.cqn = cq->cqn;
		err = qhca_ib_udata_out(udata, &resp, sizeof(resp));
		if (err)
			goto err_cq;
	}
	qhca_ib_debug_add_cq(dev, cq);
	return 0;

err_cq:
	qhca_aq_destroy_sure(dev->qdev, QHCA_CMD_DESTROY_CQ, cq->cqn);
	trace_qhca_destroy_cq(dev, cq->cqn, 0);
	cq_gone(dev, cq);
err_buf:
	qhca_ib_dbrec_free(dev, uc, &cq->dbrec);
	qhca_ib_queue_buf_free(dev, &cq->buf);
	return err;
}

/* ib_device_ops.destroy_cq; no callback of the CQ runs when it returns */
int qhca_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	int err;

	/* first: the next CQ may get the same number and file name */
	qhca_ib_debug_del(&cq->debug);
	err = qhca_ib_destroy(dev, QHCA_CMD_DESTROY_CQ, cq->cqn);
	trace_qhca_destroy_cq(dev, cq->cqn, err);
	if (err) {
		qhca_ib_debug_add_cq(dev, cq);
		return err;
	}
	cq_gone(dev, cq);
	xa_destroy(&cq->qps);
	qhca_ib_dbrec_free(dev, udata_to_quc(udata), &cq->dbrec);
	qhca_ib_queue_buf_free(dev, &cq->buf);
	return 0;
}

/* ib_device_ops.modify_cq: event moderation; @period in microseconds */
int qhca_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period)
{
	struct qhca_cqc cqc = {
		.mod_count = cpu_to_le16(count),
		.mod_usec = cpu_to_le16(period),
	};

	return qhca_aq_modify(to_qdev(ibcq->device)->qdev, QHCA_CMD_MODIFY_CQ,
			      to_qcq(ibcq)->cqn, QHCA_CQ_M_MODERATION, &cqc,
			      sizeof(cqc));
}

/**
 * qhca_ib_req_notify_cq - ib_device_ops.req_notify_cq
 * @ibcq: a kernel user's CQ
 * @flags: IB_CQ_SOLICITED or IB_CQ_NEXT_COMP, IB_CQ_REPORT_MISSED_EVENTS
 *
 * The doorbell carries the consumer index. If the device has written CQEs past
 * it that no event has reported, it raises an event at once, so no completion
 * is lost between poll and arm.
 *
 * Return: 0, or 1 with IB_CQ_REPORT_MISSED_EVENTS if there is a CQE to poll.
 */
int qhca_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags)
{
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	u64 arm = (flags & IB_CQ_SOLICITED_MASK) == IB_CQ_SOLICITED ?
		  QHCA_DB_SOLICITED : 0;
	bool missed, dead;
	unsigned long irq;

	spin_lock_irqsave(&cq->lock, irq);
	/*
	 * Before the doorbell, which may raise an event at once, and before
	 * checking whether the device is dead: the code that wakes the CQs of a
	 * dead device skips those that are not armed.
	 */
	smp_store_mb(cq->armed, 1);
	trace_qhca_doorbell(dev, QHCA_DB_CQ_ARM, cq->cqn, arm, cq->ci);
	qhca_db_ring(dev->qdev, QHCA_DB_CQ_ARM, cq->cqn, arm, cq->ci);
	missed = qhca_ib_cq_has_cqe(cq);
	dead = qhca_dev_dead(dev->qdev) && qhca_ib_cq_has_flush(cq);
	spin_unlock_irqrestore(&cq->lock, irq);
	if (flags & IB_CQ_REPORT_MISSED_EVENTS)
		return missed || dead;
	if (dead)
		qhca_ib_flush_kernel(dev);
	return 0;
}
