// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: create and destroy.
 *
 * The device may give a destroyed QP's number to a new one at once. So the
 * number and its entry in dev->qps come and go together under qp_mutex, and
 * CQEs of the old QP are cleaned away under it.
 */
#include <linux/log2.h>

#include "qhca_ib.h"

static int qp_type(struct qhca_ib_dev *dev, enum ib_qp_type type, u8 *out)
{
	u64 features = dev->qdev->caps.features;
	u64 need;

	switch (type) {
	case IB_QPT_RC:
		*out = QHCA_QPT_RC;
		need = QHCA_FEAT_RC;
		break;
	case IB_QPT_UC:
		*out = QHCA_QPT_UC;
		need = QHCA_FEAT_UC;
		break;
	case IB_QPT_UD:
		*out = QHCA_QPT_UD;
		need = QHCA_FEAT_UD;
		break;
	case IB_QPT_GSI:
		*out = QHCA_QPT_GSI;
		need = QHCA_FEAT_UD;
		break;
	default:
		return -EOPNOTSUPP;
	}
	return features & need ? 0 : -EOPNOTSUPP;
}

static u32 sq_header(const struct qhca_ib_qp *qp)
{
	return qhca_ib_qp_is_ud(qp) ? sizeof(struct qhca_ud_wqe)
				    : sizeof(struct qhca_sq_wqe);
}

/* What fits into a WQE of this stride, within the device's limits. */
static void sq_capacity(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	const struct qhca_caps *caps = &dev->qdev->caps;
	u32 room = BIT(qp->sq.stride) - min_t(u32, BIT(qp->sq.stride),
					      sq_header(qp));

	qp->sq.max_sge = min_t(u32, room / sizeof(struct qhca_sge),
			       caps->max_sge);
	qp->sq.max_inline = min(room, caps->max_inline);
}

static void rq_capacity(struct qhca_ib_dev *dev, struct qhca_ib_wq *rq)
{
	u32 room = BIT(rq->stride) - sizeof(struct qhca_rq_wqe);

	rq->max_sge = min_t(u32, room / sizeof(struct qhca_sge),
			    dev->qdev->caps.max_sge);
}

static int check_caps(struct qhca_ib_dev *dev, const struct ib_qp_cap *cap,
		      bool has_srq)
{
	const struct qhca_caps *caps = &dev->qdev->caps;

	if (cap->max_send_wr > caps->max_qp_wr ||
	    cap->max_send_sge > caps->max_sge ||
	    cap->max_inline_data > caps->max_inline)
		return -EINVAL;
	if (!has_srq && (cap->max_recv_wr > caps->max_qp_wr ||
			 cap->max_recv_sge > caps->max_sge))
		return -EINVAL;
	return 0;
}

/* ------------------------------------------------- memory of the rings -- */

static int user_sq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		   const struct qhca_create_qp_req *req,
		   const struct ib_qp_cap *cap)
{
	struct qhca_ib_wq *sq = &qp->sq;

	if (!req->sq_addr)
		return cap->max_send_wr || req->sq_len || req->sq_shift ||
		       req->sq_stride ? -EINVAL : 0;
	if (req->sq_shift > QHCA_WQ_SHIFT_MAX ||
	    req->sq_stride < QHCA_SQ_STRIDE_MIN ||
	    req->sq_stride > QHCA_SQ_STRIDE_MAX ||
	    BIT(req->sq_shift) > dev->qdev->caps.max_qp_wr ||
	    BIT(req->sq_shift) < cap->max_send_wr)
		return -EINVAL;
	sq->shift = req->sq_shift;
	sq->stride = req->sq_stride;
	sq_capacity(dev, qp);
	if (sq->max_sge < cap->max_send_sge ||
	    sq->max_inline < cap->max_inline_data)
		return -EINVAL;
	return qhca_ib_ubuf_get(dev, &sq->buf, req->sq_addr, req->sq_len,
				1ULL << (sq->shift + sq->stride));
}

static int user_rq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		   const struct qhca_create_qp_req *req,
		   const struct ib_qp_cap *cap, struct qhca_ib_ucontext *uc)
{
	struct qhca_ib_wq *rq = &qp->rq;
	int err;

	if (qp->srq || !req->rq_addr)
		return (cap->max_recv_wr && !qp->srq) || req->rq_addr ||
		       req->rq_len || req->db_addr || req->rq_shift ||
		       req->rq_stride ? -EINVAL : 0;
	if (req->rq_shift > QHCA_WQ_SHIFT_MAX ||
	    req->rq_stride < QHCA_RQ_STRIDE_MIN ||
	    req->rq_stride > QHCA_RQ_STRIDE_MAX ||
	    BIT(req->rq_shift) > dev->qdev->caps.max_qp_wr ||
	    BIT(req->rq_shift) < cap->max_recv_wr)
		return -EINVAL;
	rq->shift = req->rq_shift;
	rq->stride = req->rq_stride;
	rq_capacity(dev, rq);
	if (rq->max_sge < cap->max_recv_sge)
		return -EINVAL;
	err = qhca_ib_ubuf_get(dev, &rq->buf, req->rq_addr, req->rq_len,
			       1ULL << (rq->shift + rq->stride));
	if (err)
		return err;
	return qhca_ib_udb_get(dev, uc, &qp->rq_db, req->db_addr);
}

static int kernel_sq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		     const struct ib_qp_cap *cap)
{
	struct qhca_ib_wq *sq = &qp->sq;
	u32 bytes;

	if (!cap->max_send_wr)
		return 0;
	bytes = sq_header(qp) + max_t(u32, cap->max_inline_data,
				      cap->max_send_sge *
				      sizeof(struct qhca_sge));
	sq->shift = order_base_2(cap->max_send_wr);
	sq->stride = max_t(u8, order_base_2(bytes), QHCA_SQ_STRIDE_MIN);
	if (sq->stride > QHCA_SQ_STRIDE_MAX || sq->shift > QHCA_WQ_SHIFT_MAX ||
	    BIT(sq->shift) > dev->qdev->caps.max_qp_wr)
		return -EINVAL;
	sq_capacity(dev, qp);
	return qhca_ib_kbuf_get(dev, &sq->buf,
				BIT(sq->shift + sq->stride));
}

static int kernel_rq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		     const struct ib_qp_cap *cap)
{
	struct qhca_ib_wq *rq = &qp->rq;
	u32 bytes;
	int err;

	if (qp->srq || !cap->max_recv_wr)
		return 0;
	bytes = sizeof(struct qhca_rq_wqe) +
		cap->max_recv_sge * sizeof(struct qhca_sge);
	rq->shift = order_base_2(cap->max_recv_wr);
	rq->stride = max_t(u8, order_base_2(bytes), QHCA_RQ_STRIDE_MIN);
	if (rq->stride > QHCA_RQ_STRIDE_MAX || rq->shift > QHCA_WQ_SHIFT_MAX ||
	    BIT(rq->shift) > dev->qdev->caps.max_qp_wr)
		return -EINVAL;
	rq_capacity(dev, rq);
	err = qhca_ib_kbuf_get(dev, &rq->buf, BIT(rq->shift + rq->stride));
	if (err)
		return err;
	return qhca_ib_kdb_get(dev, &qp->rq_db);
}

static int get_bufs(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		    const struct ib_qp_cap *cap,
		    const struct qhca_create_qp_req *req,
		    struct qhca_ib_ucontext *uc)
{
	int err;

	if (uc) {
		err = user_sq(dev, qp, req, cap);
		return err ? err : user_rq(dev, qp, req, cap, uc);
	}
	err = kernel_sq(dev, qp, cap);
	return err ? err : kernel_rq(dev, qp, cap);
}

static void put_bufs(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		     struct qhca_ib_ucontext *uc)
{
	qhca_ib_buf_put(dev, &qp->sq.buf);
	qhca_ib_buf_put(dev, &qp->rq.buf);
	qhca_ib_db_put(dev, uc, &qp->rq_db);
}

/* ------------------------------------------------------ in the device -- */

static void fill_qpc(struct qhca_qpc *qpc, const struct qhca_ib_qp *qp,
		     u32 pdn, u32 uar, u64 cookie)
{
	qpc->type = qp->type;
	qpc->state = QHCA_QPS_RESET;
	if (!qp->user)
		qpc->flags |= QHCA_QP_F_PRIVILEGED;
	qpc->pd = cpu_to_le32(pdn);
	qpc->uar = cpu_to_le32(uar);
	qpc->send_cqn = cpu_to_le32(qp->scq->cqn);
	qpc->recv_cqn = cpu_to_le32(qp->rcq->cqn);
	if (qp->srq) {
		qpc->flags |= QHCA_QP_F_SRQ;
		qpc->srqn = cpu_to_le32(qp->srq->srqn);
	}
	if (qp->sq.stride) {
		qpc->sq_shift = qp->sq.shift;
		qpc->sq_stride = qp->sq.stride;
		qpc->sq = qhca_ib_buf_desc(&qp->sq.buf);
	}
	if (qp->rq.stride) {
		qpc->rq_shift = qp->rq.shift;
		qpc->rq_stride = qp->rq.stride;
		qpc->rq = qhca_ib_buf_desc(&qp->rq.buf);
		qpc->rq_dbrec = cpu_to_le64(qp->rq_db.dma);
	}
	qpc->cookie = cpu_to_le64(cookie);
}

static void link_cqs(struct qhca_ib_qp *qp)
{
	unsigned long irq;

	spin_lock_irqsave(&qp->scq->lock, irq);
	list_add_tail(&qp->scq_entry, &qp->scq->send_qps);
	spin_unlock_irqrestore(&qp->scq->lock, irq);
	spin_lock_irqsave(&qp->rcq->lock, irq);
	list_add_tail(&qp->rcq_entry, &qp->rcq->recv_qps);
	spin_unlock_irqrestore(&qp->rcq->lock, irq);
}

static void unlink_cqs(struct qhca_ib_qp *qp)
{
	unsigned long irq;

	spin_lock_irqsave(&qp->scq->lock, irq);
	list_del(&qp->scq_entry);
	spin_unlock_irqrestore(&qp->scq->lock, irq);
	spin_lock_irqsave(&qp->rcq->lock, irq);
	list_del(&qp->rcq_entry);
	spin_unlock_irqrestore(&qp->rcq->lock, irq);
}

/* Kernel QPs: CQEs of what is gone must not be seen. */
void qhca_ib_qp_clean_cqs(struct qhca_ib_qp *qp)
{
	qhca_ib_cq_clean(qp->rcq, qp->qpn, qp->srq);
	if (qp->scq != qp->rcq)
		qhca_ib_cq_clean(qp->scq, qp->qpn, NULL);
}

static int hw_create(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		     const struct qhca_qpc *qpc)
{
	int err;

	mutex_lock(&dev->qp_mutex);
	err = qhca_aq_create(dev->qdev, QHCA_CMD_CREATE_QP, qpc, sizeof(*qpc),
			     &qp->qpn);
	if (err)
		goto out;
	err = xa_insert(&dev->qps, qp->qpn, qp, GFP_KERNEL);
	if (err)
		qhca_ib_destroy(dev, QHCA_CMD_DESTROY_QP, qp->qpn);
out:
	mutex_unlock(&dev->qp_mutex);
	return err;
}

static int hw_destroy(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	int err;

	mutex_lock(&dev->qp_mutex);
	err = qhca_ib_destroy(dev, QHCA_CMD_DESTROY_QP, qp->qpn);
	if (!err) {
		if (!qp->user) {
			qhca_ib_qp_clean_cqs(qp);
			unlink_cqs(qp);
		}
		xa_erase(&dev->qps, qp->qpn);
	}
	mutex_unlock(&dev->qp_mutex);
	return err;
}

static void report_caps(const struct qhca_ib_qp *qp, struct ib_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.stride ? BIT(qp->sq.shift) : 0;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	cap->max_recv_wr = qp->rq.stride ? BIT(qp->rq.shift) : 0;
	cap->max_recv_sge = qp->rq.max_sge;
}

/**
 * qhca_ib_create_qp - ib_device_ops.create_qp
 * @ibqp: the QP
 * @attr: what is wanted; its cap gets the real capacity
 * @udata: the application's request; NULL for a kernel user
 *
 * Return: 0, -EINVAL (limits, sizes, addresses), -EOPNOTSUPP (type, flags),
 * -ENOMEM, -EFAULT, -EIO.
 */
int qhca_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		      struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_ucontext *uc = udata_to_quc(udata);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_create_qp_resp resp = {};
	struct qhca_create_qp_req req = {};
	struct qhca_qpc qpc = {};
	int err;

	if (attr->create_flags)
		return -EOPNOTSUPP;
	err = qp_type(dev, attr->qp_type, &qp->type);
	if (err)
		return err;
	/* the device keeps no QP without completions */
	if (!attr->send_cq || !attr->recv_cq)
		return -EINVAL;
	err = check_caps(dev, &attr->cap, attr->srq);
	if (err)
		return err;
	if (udata) {
		err = qhca_ib_udata_in(udata, &req, sizeof(req));
		if (err)
			return err;
		if (req.comp_mask)
			return -EOPNOTSUPP;
	}

	qp->user = udata;
	qp->scq = to_qcq(attr->send_cq);
	qp->rcq = to_qcq(attr->recv_cq);
	qp->srq = attr->srq ? to_qsrq(attr->srq) : NULL;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;
	qp->state = IB_QPS_RESET;
	mutex_init(&qp->mutex);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	qhca_ib_ref_init(&qp->ref);

	err = get_bufs(dev, qp, &attr->cap, &req, uc);
	if (err)
		goto err_bufs;
	fill_qpc(&qpc, qp, to_qpd(ibqp->pd)->pdn, uc ? uc->uar : 0,
		 req.cookie);
	err = hw_create(dev, qp, &qpc);
	if (err)
		goto err_bufs;
	if (!qp->user)
		link_cqs(qp);
	ibqp->qp_num = qp->qpn;
	report_caps(qp, &attr->cap);

	if (udata) {
		resp.qpn = qp->qpn;
		err = qhca_ib_udata_out(udata, &resp, sizeof(resp));
		if (err)
			goto err_qp;
	}
	qhca_ib_debugfs_add_qp(dev, qp);
	return 0;

err_qp:
	hw_destroy(dev, qp);
	qhca_ib_ref_kill(&qp->ref);
err_bufs:
	put_bufs(dev, qp, uc);
	return err;
}

/* ib_device_ops.destroy_qp; the device does no DMA for it when it returns */
int qhca_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	int err;

	err = hw_destroy(dev, qp);
	if (err)
		return err;
	qhca_ib_debugfs_del(qp->dbg);
	qhca_ib_ref_kill(&qp->ref);
	put_bufs(dev, qp, udata_to_quc(udata));
	return 0;
}
