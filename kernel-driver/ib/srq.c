// SPDX-License-Identifier: GPL-2.0
/*
 * Shared receive queues. WQEs complete in any order, so there are two rings:
 * WQEs by number, and the index ring of the numbers posted. With tag matching
 * there is a third, of operations on the list of tags.
 */
#include <linux/log2.h>
#include <linux/slab.h>

#include "qhca_ib.h"
#include "qhca_ib_trace.h"

static void srq_capacity(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq)
{
	u32 room = BIT(srq->stride) - sizeof(struct qhca_rq_wqe);

	srq->max_sge = min_t(u32, room / sizeof(struct qhca_sge),
			     dev->qdev->caps.max_sge);
}

static size_t srq_wqes_len(const struct qhca_ib_srq *srq)
{
	return BIT(srq->shift + srq->stride);
}

static size_t srq_index_len(const struct qhca_ib_srq *srq)
{
	return sizeof(__le32) << srq->shift;
}

/* The ring of tag operations, only with IB_SRQT_TM. */
static int srq_user_ops(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			const struct qhca_create_srq_req *req, bool tm)
{
	if (!tm)
		return req->ops_addr || req->ops_len || req->ops_shift ||
		       req->ops_stride ? -EINVAL : 0;
	if (req->ops_shift > QHCA_WQ_SHIFT_MAX ||
	    req->ops_stride < QHCA_OPS_STRIDE_MIN ||
	    req->ops_stride > QHCA_OPS_STRIDE_MAX)
		return -EINVAL;
	srq->ops_shift = req->ops_shift;
	srq->ops_stride = req->ops_stride;
	return qhca_ib_queue_buf_pin(dev, &srq->ops, req->ops_addr,
				     req->ops_len,
				     BIT(srq->ops_shift + srq->ops_stride));
}

static int srq_user_buf(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			const struct ib_srq_init_attr *init,
			struct ib_udata *udata)
{
	const struct ib_srq_attr *attr = &init->attr;
	struct qhca_create_srq_req req;
	int err;

	err = qhca_ib_udata_in_min(udata, &req,
				   offsetof(struct qhca_create_srq_req,
					    ops_addr), sizeof(req));
	if (err)
		return err;
	if (req.comp_mask || req.rsvd[0] || req.rsvd[1] ||
	    memchr_inv(req.rsvd2, 0, sizeof(req.rsvd2)))
		return -EOPNOTSUPP;
	if (req.shift > QHCA_WQ_SHIFT_MAX || BIT(req.shift) < attr->max_wr ||
	    BIT(req.shift) > dev->qdev->caps.max_srq_wr ||
	    req.stride < QHCA_RQ_STRIDE_MIN || req.stride > QHCA_RQ_STRIDE_MAX)
		return -EINVAL;
	srq->shift = req.shift;
	srq->stride = req.stride;
	srq_capacity(dev, srq);
	if (srq->max_sge < attr->max_sge)
		return -EINVAL;
	err = qhca_ib_queue_buf_pin(dev, &srq->buf, req.buf_addr, req.buf_len,
				    srq_wqes_len(srq));
	if (err)
		return err;
	err = qhca_ib_queue_buf_pin(dev, &srq->idx, req.idx_addr, req.idx_len,
				    srq_index_len(srq));
	if (err)
		return err;
	err = srq_user_ops(dev, srq, &req, init->srq_type == IB_SRQT_TM);
	if (err)
		return err;
	return qhca_ib_dbrec_pin(dev, udata_to_quc(udata), &srq->dbrec,
				 req.dbrec_addr);
}

static int srq_kernel_buf(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			  const struct ib_srq_attr *attr)
{
	u32 bytes = sizeof(struct qhca_rq_wqe) +
		    attr->max_sge * sizeof(struct qhca_sge);
	u32 i;
	int err;

	srq->shift = order_base_2(attr->max_wr);
	srq->stride = max_t(u8, order_base_2(bytes), QHCA_RQ_STRIDE_MIN);
	if (srq->shift > QHCA_WQ_SHIFT_MAX ||
	    srq->stride > QHCA_RQ_STRIDE_MAX ||
	    BIT(srq->shift) > dev->qdev->caps.max_srq_wr)
		return -EINVAL;
	srq_capacity(dev, srq);
	srq->wr = kvcalloc(BIT(srq->shift), sizeof(*srq->wr), GFP_KERNEL);
	srq->next_free = kvcalloc(BIT(srq->shift), sizeof(u32), GFP_KERNEL);
	if (!srq->wr || !srq->next_free)
		return -ENOMEM;
	for (i = 0; i < BIT(srq->shift); i++)
		srq->next_free[i] = i + 1;
	srq->next_free[i - 1] = QHCA_IB_SRQ_END;

	err = qhca_ib_queue_buf_alloc(dev, &srq->buf, srq_wqes_len(srq));
	if (err)
		return err;
	err = qhca_ib_queue_buf_alloc(dev, &srq->idx, srq_index_len(srq));
	if (err)
		return err;
	return qhca_ib_dbrec_alloc(dev, &srq->dbrec);
}

static void srq_put_bufs(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			 struct qhca_ib_ucontext *uc)
{
	qhca_ib_dbrec_free(dev, uc, &srq->dbrec);
	if (srq->ops_stride)
		qhca_ib_queue_buf_free(dev, &srq->ops);
	qhca_ib_queue_buf_free(dev, &srq->idx);
	qhca_ib_queue_buf_free(dev, &srq->buf);
	kvfree(srq->next_free);
	srq->next_free = NULL;
	kvfree(srq->wr);
	srq->wr = NULL;
}

/* For paths that cannot fail. */
static void srq_destroy_sure(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq)
{
	qhca_aq_destroy_sure(dev->qdev, QHCA_CMD_DESTROY_SRQ, srq->srqn);
	trace_qhca_destroy_srq(dev, srq->srqn, 0);
}

static int srq_create(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
		      u32 pdn, u32 uar, const struct ib_srq_init_attr *attr)
{
	struct qhca_srqc srqc = {};
	int err;

	qhca_ib_fill_srqc(&srqc, srq, attr, pdn, uar);
	err = qhca_aq_create(dev->qdev, QHCA_CMD_CREATE_SRQ, &srqc,
			     sizeof(srqc), &srq->srqn);
	if (err)
		return err;
	trace_qhca_create_srq(dev, srq);
	/* only events look it up, for which a late entry is harmless */
	err = xa_err(xa_store(&dev->srqs, srq->srqn, srq, GFP_KERNEL));
	if (err)
		srq_destroy_sure(dev, srq);
	return err;
}

static void srq_gone(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq)
{
	/* its number may already belong to a new SRQ */
	xa_cmpxchg(&dev->srqs, srq->srqn, srq, NULL, GFP_KERNEL);
	qhca_ib_ref_kill(&srq->ref);
}

/*
 * 0 or -EOPNOTSUPP; kernel users have no verb for tag operations, and none of
 * them uses XRC
 */
static int srq_check_type(struct qhca_ib_dev *dev, enum ib_srq_type type,
			  bool user)
{
	switch (type) {
	case IB_SRQT_BASIC:
		return 0;
	case IB_SRQT_TM:
		if (user && (dev->qdev->caps.features & QHCA_FEAT_TAG_MATCHING))
			return 0;
		return -EOPNOTSUPP;
	case IB_SRQT_XRC:
		if (user && (dev->qdev->caps.features & QHCA_FEAT_XRC))
			return 0;
		return -EOPNOTSUPP;
	default:
		return -EOPNOTSUPP;
	}
}

/**
 * qhca_ib_create_srq - ib_device_ops.create_srq
 * @ibsrq: the SRQ
 * @attr: what is wanted; gets the real capacity
 * @udata: the application's request; NULL for a kernel user
 *
 * Return: 0, -EINVAL (limits, sizes, addresses), -EOPNOTSUPP (type), -ENOMEM,
 * -EFAULT, -EIO.
 */
int qhca_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
		       struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct qhca_ib_ucontext *uc = udata_to_quc(udata);
	const struct qhca_caps *caps = &dev->qdev->caps;
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	struct qhca_create_srq_resp resp = {};
	int err;

	err = srq_check_type(dev, attr->srq_type, udata);
	if (err)
		return err;
	if (!attr->attr.max_wr || attr->attr.max_wr > caps->max_srq_wr ||
	    attr->attr.max_sge > caps->max_sge)
		return -EINVAL;

	srq->user = udata;
	spin_lock_init(&srq->lock);
	mutex_init(&srq->resize);
	qhca_ib_ref_init(&srq->ref);
	if (udata)
		err = srq_user_buf(dev, srq, attr, udata);
	else
		err = srq_kernel_buf(dev, srq, &attr->attr);
	if (err)
		goto err_bufs;
	err = srq_create(dev, srq, to_qpd(ibsrq->pd)->pdn, uc ? uc->uar : 0,
			 attr);
	if (err)
		goto err_bufs;

	if (attr->srq_type == IB_SRQT_XRC)
		ibsrq->ext.xrc.srq_num = srq->srqn;
	attr->attr.max_wr = BIT(srq->shift);
	attr->attr.max_sge = srq->max_sge;
	if (udata) {
		resp.srqn = srq->srqn;
		err = qhca_ib_udata_out(udata, &resp, sizeof(resp));
		if (err)
			goto err_srq;
	}
	qhca_ib_debug_add_srq(dev, srq);
	return 0;

err_srq:
	srq_destroy_sure(dev, srq);
	srq_gone(dev, srq);
err_bufs:
	srq_put_bufs(dev, srq, uc);
	return err;
}

/**
 * qhca_ib_modify_srq - ib_device_ops.modify_srq
 * @ibsrq: the SRQ
 * @attr: values
 * @mask: IB_SRQ_LIMIT: arm the limit event; IB_SRQ_MAX_WR: enlarge, for
 *	applications only
 * @udata: with IB_SRQ_MAX_WR the request
 *
 * Return: 0, -EINVAL (out of range, or less room than now), -EOPNOTSUPP,
 * -ENOMEM, -EFAULT, -EIO.
 */
int qhca_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct ib_udata *udata)
{
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	struct qhca_srqc srqc = {};

	if (mask & ~(IB_SRQ_LIMIT | IB_SRQ_MAX_WR))
		return -EOPNOTSUPP;
	if (mask & IB_SRQ_MAX_WR)
		return qhca_ib_srq_grow(srq, attr, mask & IB_SRQ_LIMIT, udata);
	if (qhca_ib_udata_none(udata))
		return -EOPNOTSUPP;
	if (!(mask & IB_SRQ_LIMIT))
		return 0;
	if (attr->srq_limit > BIT(srq->shift))
		return -EINVAL;
	srqc.limit = cpu_to_le32(attr->srq_limit);
	return qhca_aq_modify(to_qdev(ibsrq->device)->qdev,
			      QHCA_CMD_MODIFY_SRQ, srq->srqn,
			      QHCA_SRQ_M_LIMIT, &srqc, sizeof(srqc));
}

/* ib_device_ops.query_srq */
int qhca_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr)
{
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	struct qhca_srqc srqc;
	int err;

	err = qhca_aq_query(to_qdev(ibsrq->device)->qdev, QHCA_CMD_QUERY_SRQ,
			    srq->srqn, &srqc, sizeof(srqc));
	if (err)
		return err;
	attr->max_wr = BIT(srq->shift);
	attr->max_sge = srq->max_sge;
	attr->srq_limit = le32_to_cpu(srqc.limit);
	return 0;
}

/* ib_device_ops.destroy_srq */
int qhca_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	int err;

	/* first: the next SRQ may get the same number and file name */
	qhca_ib_debug_del(&srq->debug);
	err = qhca_ib_destroy(dev, QHCA_CMD_DESTROY_SRQ, srq->srqn);
	trace_qhca_destroy_srq(dev, srq->srqn, err);
	if (err) {
		qhca_ib_debug_add_srq(dev, srq);
		return err;
	}
	srq_gone(dev, srq);
	srq_put_bufs(dev, srq, udata_to_quc(udata));
	return 0;
}

/**
 * qhca_ib_srq_take_wqe - a receive of a kernel SRQ has completed
 * @srq: the SRQ
 * @index: number of the WQE, as the device says
 * @wr: what it was posted with
 *
 * Other CQs may be polled at the same time, so the first taker gets the WQE: if
 * the device completes it twice, there is no second completion, and its number
 * is not added to the free list twice.
 *
 * Return: true; the caller frees the WQE with qhca_ib_srq_free_wqe(). False if
 * the device does not have this WQE.
 */
bool qhca_ib_srq_take_wqe(struct qhca_ib_srq *srq, u32 index,
			  struct qhca_ib_wr *wr)
{
	/* pairs with srq_post_one() */
	if (index >= BIT(srq->shift) ||
	    cmpxchg(&srq->next_free[index], QHCA_IB_SRQ_POSTED,
		    QHCA_IB_SRQ_TAKEN) != QHCA_IB_SRQ_POSTED)
		return false;
	*wr = srq->wr[index];
	return true;
}

/* A WQE that was taken can be posted again. Under srq->lock. */
void qhca_ib_srq_free_wqe_locked(struct qhca_ib_srq *srq, u32 index)
{
	WRITE_ONCE(srq->next_free[index], srq->first_free);
	srq->first_free = index;
}

void qhca_ib_srq_free_wqe(struct qhca_ib_srq *srq, u32 index)
{
	unsigned long irq;

	spin_lock_irqsave(&srq->lock, irq);
	qhca_ib_srq_free_wqe_locked(srq, index);
	spin_unlock_irqrestore(&srq->lock, irq);
}

/* Post one receive; under srq->lock. */
static int srq_post_one(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq,
			const struct ib_recv_wr *wr)
{
	u32 index = srq->first_free;
	__le32 *slot;

	if (wr->num_sge < 0 || wr->num_sge > srq->max_sge)
		return -EINVAL;
	if (index == QHCA_IB_SRQ_END)
		return -ENOMEM;
	srq->first_free = srq->next_free[index];
	qhca_ib_write_rq_wqe(qhca_queue_buf_ptr(&srq->buf.kbuf,
						(size_t)index << srq->stride),
			     &srq->wr[index], wr);
	/* pairs with qhca_ib_srq_take_wqe(): what was posted is in srq->wr */
	smp_store_release(&srq->next_free[index], QHCA_IB_SRQ_POSTED);
	slot = qhca_queue_buf_ptr(&srq->idx.kbuf,
				  (srq->head & (BIT(srq->shift) - 1)) *
				  sizeof(*slot));
	*slot = cpu_to_le32(index);
	trace_qhca_post_srq_recv(dev, srq->srqn, srq->head, index, wr);
	srq->head++;
	return 0;
}

/**
 * qhca_ib_post_srq_recv - ib_device_ops.post_srq_recv
 * @ibsrq: a kernel user's SRQ
 * @wr: chain of work requests
 * @bad: the first one not taken, on error
 *
 * Return: 0, -EINVAL (too many SGEs), -ENOMEM (queue full).
 */
int qhca_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad)
{
	struct qhca_ib_dev *dev = to_qdev(ibsrq->device);
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	unsigned long irq;
	int err = 0;

	spin_lock_irqsave(&srq->lock, irq);
	for (; wr; wr = wr->next) {
		err = srq_post_one(dev, srq, wr);
		if (err) {
			*bad = wr;
			break;
		}
	}
	dma_wmb();	/* WQEs and their numbers before the index */
	WRITE_ONCE(srq->dbrec.rec->index, cpu_to_le32(srq->head));
	spin_unlock_irqrestore(&srq->lock, irq);
	return err;
}
