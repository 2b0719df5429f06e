// SPDX-License-Identifier: GPL-2.0
/*
 * Resizing queues of applications, under traffic. The memory comes from the
 * application; the device switches from the old to the new within the command,
 * and if that fails nothing has changed.
 */
#include <linux/minmax.h>

#include "qhca_ib.h"

/**
 * qhca_ib_resize_cq - ib_device_ops.resize_cq
 * @ibcq: a CQ of an application; its cqe becomes the real depth
 * @cqe: depth wanted
 * @udata: the request
 *
 * Kernel users get -EOPNOTSUPP: they would have to stop polling meanwhile, and
 * none of them resizes.
 *
 * Return: 0, -EINVAL (out of range, or more CQEs are pending than that),
 * -EOPNOTSUPP, -ENOMEM, -EFAULT, -EIO.
 */
int qhca_ib_resize_cq(struct ib_cq *ibcq, QHCA_RESIZE_CQE cqe,
		      struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibcq->device);
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	struct qhca_resize_cq_req req;
	struct qhca_ib_queue_buf buf = {};
	struct qhca_cqc cqc = {};
	int err;

	if (!udata || !cq->user)
		return -EOPNOTSUPP;
	err = qhca_ib_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask)
		return -EOPNOTSUPP;
	if (cqe < 1 || req.shift > QHCA_CQ_SHIFT_MAX ||
	    BIT(req.shift) < cqe || BIT(req.shift) > dev->qdev->caps.max_cqe)
		return -EINVAL;
	err = qhca_ib_queue_buf_pin(dev, &buf, req.buf_addr, req.buf_len,
				    sizeof(struct qhca_cqe) << req.shift);
	if (err)
		return err;
	cqc.buf = qhca_ib_queue_buf_desc(&buf);
	cqc.shift = req.shift;

	mutex_lock(&cq->resize);
	err = qhca_aq_modify(dev->qdev, QHCA_CMD_MODIFY_CQ, cq->cqn,
			     QHCA_CQ_M_RESIZE, &cqc, sizeof(cqc));
	if (!err) {
		swap(cq->buf, buf);
		cq->shift = req.shift;
		ibcq->cqe = BIT(req.shift);
	}
	mutex_unlock(&cq->resize);
	qhca_ib_queue_buf_free(dev, &buf);	/* the one the device does not use */
	return err;
}

/**
 * qhca_ib_srq_grow - enlarge an SRQ
 * @srq: an SRQ of an application
 * @attr: max_wr, and srq_limit if that is to be armed as well
 * @limit: arm it
 * @udata: the request
 *
 * Return: as qhca_ib_modify_srq().
 */
int qhca_ib_srq_grow(struct qhca_ib_srq *srq, const struct ib_srq_attr *attr,
		     bool limit, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(srq->ibsrq.device);
	u64 mask = QHCA_SRQ_M_RESIZE | (limit ? QHCA_SRQ_M_LIMIT : 0);
	struct qhca_ib_queue_buf buf = {}, idx = {};
	struct qhca_modify_srq_req req;
	struct qhca_srqc srqc = {};
	int err;

	if (!udata || !srq->user ||
	    !(dev->qdev->caps.features & QHCA_FEAT_SRQ_RESIZE))
		return -EOPNOTSUPP;
	err = qhca_ib_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask || req.rsvd[0] || req.rsvd[1] || req.rsvd[2])
		return -EOPNOTSUPP;
	if (!attr->max_wr || req.shift > QHCA_WQ_SHIFT_MAX ||
	    BIT(req.shift) < attr->max_wr ||
	    BIT(req.shift) > dev->qdev->caps.max_srq_wr ||
	    (limit && attr->srq_limit > attr->max_wr))
		return -EINVAL;
	err = qhca_ib_queue_buf_pin(dev, &buf, req.buf_addr, req.buf_len,
				    BIT(req.shift + srq->stride));
	if (err)
		return err;
	err = qhca_ib_queue_buf_pin(dev, &idx, req.idx_addr, req.idx_len,
				    sizeof(__le32) << req.shift);
	if (err)
		goto out;
	srqc.buf = qhca_ib_queue_buf_desc(&buf);
	srqc.idx = qhca_ib_queue_buf_desc(&idx);
	srqc.shift = req.shift;
	if (limit)
		srqc.limit = cpu_to_le32(attr->srq_limit);

	mutex_lock(&srq->resize);
	err = qhca_aq_modify(dev->qdev, QHCA_CMD_MODIFY_SRQ, srq->srqn, mask,
			     &srqc, sizeof(srqc));
	if (!err) {
		swap(srq->buf, buf);
		swap(srq->idx, idx);
		srq->shift = req.shift;
	}
	mutex_unlock(&srq->resize);
out:
	qhca_ib_queue_buf_free(dev, &idx);
	qhca_ib_queue_buf_free(dev, &buf);
	return err;
}
