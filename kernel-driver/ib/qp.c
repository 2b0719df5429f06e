// SPDX-License-Identifier: GPL-2.0
/*
 * Queue pairs: create and destroy.
 *
 * The device may reuse a destroyed QP's number at once, while the old QP's CQEs
 * have not been removed yet. So the new QP waits until the old one has left
 * dev->qps; until then its creator does not know it, and no CQ has CQEs of it.
 */
#include <linux/log2.h>

#include "qhca_ib.h"
#include "qhca_ib_trace.h"

static int qp_type(struct qhca_ib_dev *dev, enum ib_qp_type type, bool user,
		   u8 *out)
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
	case IB_QPT_XRC_INI:
		/* no kernel user */
		*out = QHCA_QPT_XRC_INI;
		need = user ? QHCA_FEAT_XRC : 0;
		break;
	case IB_QPT_XRC_TGT:
		/* the core creates it on behalf of all sharers */
		*out = QHCA_QPT_XRC_TGT;
		need = QHCA_FEAT_XRC;
		break;
	case IB_QPT_RAW_PACKET:
		/* no kernel user posts frames */
		*out = QHCA_QPT_RAW;
		need = user ? QHCA_FEAT_RAW_PACKET : 0;
		break;
	default:
		return -EOPNOTSUPP;
	}
	return features & need ? 0 : -EOPNOTSUPP;
}

/* Flags other than those of the type. 0 or -EOPNOTSUPP. */
static int qp_create_flags(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			   u32 flags)
{
	u64 features = dev->qdev->caps.features;

	if (flags & IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK) {
		if (qp->type != QHCA_QPT_UD || !(features & QHCA_FEAT_MCAST))
			return -EOPNOTSUPP;
		qp->block_mc_loop = true;
		flags &= ~IB_QP_CREATE_BLOCK_MULTICAST_LOOPBACK;
	}
	if (flags & IB_QP_CREATE_CVLAN_STRIPPING) {
		if (qp->type != QHCA_QPT_RAW)
			return -EOPNOTSUPP;
		qp->strip_vlan = true;
		flags &= ~IB_QP_CREATE_CVLAN_STRIPPING;
	}
	return flags ? -EOPNOTSUPP : 0;
}

static u32 qp_sq_header(const struct qhca_ib_qp *qp)
{
	if (qhca_ib_qp_is_ud(qp))
		return sizeof(struct qhca_ud_wqe);
	return qp->type == QHCA_QPT_XRC_INI ? sizeof(struct qhca_xrc_wqe)
					    : sizeof(struct qhca_sq_wqe);
}

/* What fits into a WQE of this stride, within the device's limits. */
static void qp_sq_capacity(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	const struct qhca_caps *caps = &dev->qdev->caps;
	u32 room = BIT(qp->sq.stride) - min_t(u32, BIT(qp->sq.stride),
					      qp_sq_header(qp));

	qp->sq.max_sge = min_t(u32, room / sizeof(struct qhca_sge),
			       caps->max_sge);
	qp->sq.max_inline = min(room, caps->max_inline);
}

static void qp_rq_capacity(struct qhca_ib_dev *dev, struct qhca_ib_ring *rq)
{
	u32 room = BIT(rq->stride) - sizeof(struct qhca_rq_wqe);

	rq->max_sge = min_t(u32, room / sizeof(struct qhca_sge),
			    dev->qdev->caps.max_sge);
}

static int qp_check_caps(struct qhca_ib_dev *dev, const struct ib_qp_cap *cap,
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

static bool qp_has_sq(const struct qhca_ib_qp *qp)
{
	return qp->type != QHCA_QPT_XRC_TGT;
}

static bool qp_has_rq(const struct qhca_ib_qp *qp)
{
	return qp->type != QHCA_QPT_XRC_TGT && qp->type != QHCA_QPT_XRC_INI;
}

/* The device has no queue without a CQ, and no unused queue. */
static int qp_check_objects(const struct qhca_ib_qp *qp,
			    const struct ib_qp_init_attr *attr)
{
	const struct ib_qp_cap *cap = &attr->cap;

	if (qp_has_sq(qp) ? !attr->send_cq : cap->max_send_wr)
		return -EINVAL;
	if (qp_has_rq(qp) ? !attr->recv_cq : cap->max_recv_wr || attr->srq)
		return -EINVAL;
	return qp->type == QHCA_QPT_XRC_TGT && !attr->xrcd ? -EINVAL : 0;
}

/* ------------------------------------------------- memory of the rings -- */

/* Can the SQ have a doorbell record? */
static bool qp_sq_record(const struct qhca_ib_dev *dev,
			 const struct qhca_ib_qp *qp)
{
	return (dev->qdev->caps.features & QHCA_FEAT_SQ_RECORD) &&
	       (qp->type == QHCA_QPT_RC || qp->type == QHCA_QPT_XRC_INI);
}

static int qp_user_sq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		      const struct qhca_create_qp_req *req,
		      const struct ib_qp_cap *cap, struct qhca_ib_ucontext *uc)
{
	struct qhca_ib_ring *sq = &qp->sq;
	int err;

	if (!req->sq_addr)
		return cap->max_send_wr || req->sq_len || req->sq_shift ||
		       req->sq_stride || req->sq_dbrec_addr ? -EINVAL : 0;
	if (req->sq_dbrec_addr && !qp_sq_record(dev, qp))
		return -EOPNOTSUPP;
	if (req->sq_shift > QHCA_WQ_SHIFT_MAX ||
	    req->sq_stride < QHCA_SQ_STRIDE_MIN ||
	    req->sq_stride > QHCA_SQ_STRIDE_MAX ||
	    BIT(req->sq_shift) > dev->qdev->caps.max_qp_wr ||
	    BIT(req->sq_shift) < cap->max_send_wr)
		return -EINVAL;
	sq->shift = req->sq_shift;
	sq->stride = req->sq_stride;
	qp_sq_capacity(dev, qp);
	if (sq->max_sge < cap->max_send_sge ||
	    sq->max_inline < cap->max_inline_data)
		return -EINVAL;
	err = qhca_ib_queue_buf_pin(dev, &sq->buf, req->sq_addr, req->sq_len,
				    1ULL << (sq->shift + sq->stride));
	if (err || !req->sq_dbrec_addr)
		return err;
	return qhca_ib_dbrec_pin(dev, uc, &qp->sq_dbrec, req->sq_dbrec_addr);
}

static int qp_user_rq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		      const struct qhca_create_qp_req *req,
		      const struct ib_qp_cap *cap, struct qhca_ib_ucontext *uc)
{
	struct qhca_ib_ring *rq = &qp->rq;
	int err;

	if (qp->srq || !req->rq_addr)
		return (cap->max_recv_wr && !qp->srq) || req->rq_addr ||
		       req->rq_len || req->dbrec_addr || req->rq_shift ||
		       req->rq_stride ? -EINVAL : 0;
	if (req->rq_shift > QHCA_WQ_SHIFT_MAX ||
	    req->rq_stride < QHCA_RQ_STRIDE_MIN ||
	    req->rq_stride > QHCA_RQ_STRIDE_MAX ||
	    BIT(req->rq_shift) > dev->qdev->caps.max_qp_wr ||
	    BIT(req->rq_shift) < cap->max_recv_wr)
		return -EINVAL;
	rq->shift = req->rq_shift;
	rq->stride = req->rq_stride;
	qp_rq_capacity(dev, rq);
	if (rq->max_sge < cap->max_recv_sge)
		return -EINVAL;
	err = qhca_ib_queue_buf_pin(dev, &rq->buf, req->rq_addr, req->rq_len,
				    1ULL << (rq->shift + rq->stride));
	if (err)
		return err;
	return qhca_ib_dbrec_pin(dev, uc, &qp->rq_dbrec, req->dbrec_addr);
}

static int qp_kernel_sq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			const struct ib_qp_cap *cap)
{
	struct qhca_ib_ring *sq = &qp->sq;
	u32 bytes;
	int err;

	if (!cap->max_send_wr)
		return 0;
	bytes = qp_sq_header(qp) + max_t(u32, cap->max_inline_data,
					 cap->max_send_sge *
					 sizeof(struct qhca_sge));
	/* a masked atomic has a longer header and one SGE */
	if (qp->type == QHCA_QPT_RC &&
	    (dev->qdev->caps.features & QHCA_FEAT_MASKED_ATOMIC))
		bytes = max_t(u32, bytes, sizeof(struct qhca_masked_wqe) +
			      sizeof(struct qhca_sge));
	sq->shift = order_base_2(cap->max_send_wr);
	sq->stride = max_t(u8, order_base_2(bytes), QHCA_SQ_STRIDE_MIN);
	if (sq->stride > QHCA_SQ_STRIDE_MAX || sq->shift > QHCA_WQ_SHIFT_MAX ||
	    BIT(sq->shift) > dev->qdev->caps.max_qp_wr)
		return -EINVAL;
	qp_sq_capacity(dev, qp);
	sq->wr = kvcalloc(BIT(sq->shift), sizeof(*sq->wr), GFP_KERNEL);
	if (!sq->wr)
		return -ENOMEM;
	err = qhca_ib_queue_buf_alloc(dev, &sq->buf,
				      BIT(sq->shift + sq->stride));
	if (err || !qp_sq_record(dev, qp))
		return err;
	return qhca_ib_dbrec_alloc(dev, &qp->sq_dbrec);
}

static int qp_kernel_rq(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			const struct ib_qp_cap *cap)
{
	struct qhca_ib_ring *rq = &qp->rq;
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
	qp_rq_capacity(dev, rq);
	rq->wr = kvcalloc(BIT(rq->shift), sizeof(*rq->wr), GFP_KERNEL);
	if (!rq->wr)
		return -ENOMEM;
	err = qhca_ib_queue_buf_alloc(dev, &rq->buf,
				      BIT(rq->shift + rq->stride));
	if (err)
		return err;
	return qhca_ib_dbrec_alloc(dev, &qp->rq_dbrec);
}

static int qp_get_bufs(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
		       const struct ib_qp_cap *cap,
		       const struct qhca_create_qp_req *req,
		       struct qhca_ib_ucontext *uc)
{
	int err;

	if (uc) {
		err = qp_user_sq(dev, qp, req, cap, uc);
		return err ? err : qp_user_rq(dev, qp, req, cap, uc);
	}
	err = qp_kernel_sq(dev, qp, cap);
	return err ? err : qp_kernel_rq(dev, qp, cap);
}

static void qp_put_bufs(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			struct qhca_ib_ucontext *uc)
{
	qhca_ib_queue_buf_free(dev, &qp->sq.buf);
	qhca_ib_queue_buf_free(dev, &qp->rq.buf);
	qhca_ib_dbrec_free(dev, uc, &qp->rq_dbrec);
	qhca_ib_dbrec_free(dev, uc, &qp->sq_dbrec);
	kvfree(qp->sq.wr);
	kvfree(qp->rq.wr);
}

/* ------------------------------------------------------ in the device -- */

/*
 * From now on polling finds the QP. 0 or -ENOMEM; undo by qp_unlink_cqs()
 * either way.
 */
static int qp_link_cqs(struct qhca_ib_qp *qp)
{
	unsigned long irq;
	int err;

	err = xa_insert_irq(&qp->scq->qps, qp->qpn, qp, GFP_KERNEL);
	if (!err && qp->rcq != qp->scq)
		err = xa_insert_irq(&qp->rcq->qps, qp->qpn, qp, GFP_KERNEL);
	if (err)
		return err;
	spin_lock_irqsave(&qp->scq->lock, irq);
	list_add_tail(&qp->scq_entry, &qp->scq->send_qps);
	spin_unlock_irqrestore(&qp->scq->lock, irq);
	spin_lock_irqsave(&qp->rcq->lock, irq);
	list_add_tail(&qp->rcq_entry, &qp->rcq->recv_qps);
	spin_unlock_irqrestore(&qp->rcq->lock, irq);
	return 0;
}

/* No poller uses the QP when this returns. */
static void qp_unlink_cqs(struct qhca_ib_qp *qp)
{
	unsigned long irq;

	spin_lock_irqsave(&qp->scq->lock, irq);
	xa_erase(&qp->scq->qps, qp->qpn);
	list_del(&qp->scq_entry);
	spin_unlock_irqrestore(&qp->scq->lock, irq);
	spin_lock_irqsave(&qp->rcq->lock, irq);
	xa_erase(&qp->rcq->qps, qp->qpn);
	list_del(&qp->rcq_entry);
	spin_unlock_irqrestore(&qp->rcq->lock, irq);
}

/* Kernel QPs: CQEs of a destroyed QP must not be seen. */
void qhca_ib_qp_clean_cqs(struct qhca_ib_qp *qp)
{
	qhca_ib_cq_clean(qp->rcq, qp->qpn, qp->srq);
	if (qp->scq != qp->rcq)
		qhca_ib_cq_clean(qp->scq, qp->qpn, NULL);
}

/**
 * qhca_ib_qpn_add - enter a new QP or WQ under the number the device gave it
 * @dev: the adapter
 * @xa: dev->qps or dev->wqs
 * @num: its number
 * @obj: the QP or WQ
 *
 * Waits for the old owner of the number between qhca_ib_qpn_leave() and
 * qhca_ib_qpn_left().
 *
 * Return: 0, -ENOMEM, or -EIO if the number's owner is not leaving: then the
 * device has used it twice, and is declared dead.
 */
int qhca_ib_qpn_add(struct qhca_ib_dev *dev, struct xarray *xa, u32 num,
		    void *obj)
{
	int err;

	wait_event(dev->qpn_wait, !xa_load(xa, num) ||
		   !atomic_read(&dev->qpn_leaving));
	err = xa_insert(xa, num, obj, GFP_KERNEL);
	if (err != -EBUSY)
		return err;
	qhca_dev_kill_sure(dev->qdev, "it used a number twice");
	return -EIO;
}

/* A QP or WQ is about to be destroyed, and its number with it. */
void qhca_ib_qpn_leave(struct qhca_ib_dev *dev)
{
	atomic_inc(&dev->qpn_leaving);
}

/* It has left its xarray, or the device could not destroy it. */
void qhca_ib_qpn_left(struct qhca_ib_dev *dev)
{
	atomic_dec(&dev->qpn_leaving);
	wake_up_all(&dev->qpn_wait);
}

static int qp_hw_create(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			const struct qhca_qpc *qpc)
{
	int err;

	err = qhca_aq_create(dev->qdev, QHCA_CMD_CREATE_QP, qpc, sizeof(*qpc),
			     &qp->qpn);
	if (err)
		return err;
	err = qhca_ib_qpn_add(dev, &dev->qps, qp->qpn, qp);
	if (err)
		qhca_aq_destroy_sure(dev->qdev, QHCA_CMD_DESTROY_QP, qp->qpn);
	return err;
}

/* The device has destroyed the QP: free ours. */
static void qp_forget(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	if (!qp->user) {
		qhca_ib_qp_clean_cqs(qp);
		qp_unlink_cqs(qp);
	}
	xa_erase(&dev->qps, qp->qpn);
}

static int qp_hw_destroy(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	int err;

	qhca_ib_qpn_leave(dev);
	err = qhca_ib_destroy(dev, QHCA_CMD_DESTROY_QP, qp->qpn);
	trace_qhca_destroy_qp(dev, qp->qpn, err);
	if (!err)
		qp_forget(dev, qp);
	qhca_ib_qpn_left(dev);
	return err;
}

/* For paths that cannot fail. */
static void qp_hw_destroy_sure(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	qhca_ib_qpn_leave(dev);
	qhca_aq_destroy_sure(dev->qdev, QHCA_CMD_DESTROY_QP, qp->qpn);
	trace_qhca_destroy_qp(dev, qp->qpn, 0);
	qp_forget(dev, qp);
	qhca_ib_qpn_left(dev);
}

static void qp_report_caps(const struct qhca_ib_qp *qp, struct ib_qp_cap *cap)
{
	cap->max_send_wr = qp->sq.stride ? BIT(qp->sq.shift) : 0;
	cap->max_send_sge = qp->sq.max_sge;
	cap->max_inline_data = qp->sq.max_inline;
	cap->max_recv_wr = qp->rq.stride ? BIT(qp->rq.shift) : 0;
	cap->max_recv_sge = qp->rq.max_sge;
}

/* Initialize the fields that all types of QP have. */
static void qp_init(struct qhca_ib_qp *qp, bool user)
{
	qp->user = user;
	qp->state = IB_QPS_RESET;
	mutex_init(&qp->mutex);
	spin_lock_init(&qp->sq.lock);
	spin_lock_init(&qp->rq.lock);
	INIT_LIST_HEAD(&qp->scq_entry);
	INIT_LIST_HEAD(&qp->rcq_entry);
	INIT_LIST_HEAD(&qp->mcasts);
	qhca_ib_ref_init(&qp->ref);
	INIT_WORK(&qp->page_fault_work, qhca_ib_page_fault_work);
}

/*
 * A raw packet QP with an indirection table: it spreads frames over WQs and has
 * no queue of its own.
 */
static int qp_create_rss(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			 struct ib_qp_init_attr *attr, struct ib_udata *udata)
{
	struct qhca_ib_ucontext *uc = udata_to_quc(udata);
	struct qhca_create_rss_qp_req req = {};
	struct qhca_create_qp_resp resp = {};
	struct qhca_qpc qpc = {};
	int err;

	if (qp->type != QHCA_QPT_RAW || attr->create_flags ||
	    attr->cap.max_send_wr || !udata ||
	    !(dev->qdev->caps.features & QHCA_FEAT_RSS))
		return -EOPNOTSUPP;
	err = qhca_ib_udata_in(udata, &req, sizeof(req));
	if (err)
		return err;
	if (req.comp_mask || memchr_inv(req.rsvd, 0, sizeof(req.rsvd)) ||
	    req.rx_hash_fields & ~QHCA_HASH_MASK ||
	    req.rx_hash_func != QHCA_HASH_TOEPLITZ)
		return -EOPNOTSUPP;
	qp->type = QHCA_QPT_RSS;
	qp_init(qp, true);
	qpc.type = QHCA_QPT_RSS;
	qpc.pd = cpu_to_le32(to_qpd(qp->ibqp.pd)->pdn);
	qpc.uar = cpu_to_le32(uc->uar);
	qpc.cookie = cpu_to_le64(req.cookie);
	qpc.rqtn = cpu_to_le32(to_qrqt(attr->rwq_ind_tbl)->rqtn);
	qpc.rx_hash_fields = cpu_to_le32(req.rx_hash_fields);
	qpc.rx_hash_func = req.rx_hash_func;
	memcpy(qpc.rx_hash_key, req.rx_hash_key, sizeof(qpc.rx_hash_key));
	err = qp_hw_create(dev, qp, &qpc);
	if (err)
		return err;
	trace_qhca_create_qp(dev, qp, &qpc);
	qp->ibqp.qp_num = qp->qpn;
	resp.qpn = qp->qpn;
	err = qhca_ib_udata_out(udata, &resp, sizeof(resp));
	if (err) {
		qp_hw_destroy_sure(dev, qp);
		qhca_ib_ref_kill(&qp->ref);
		return err;
	}
	qhca_ib_debug_add_qp(dev, qp);
	return 0;
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

	err = qp_type(dev, attr->qp_type, udata, &qp->type);
	if (err)
		return err;
	if (attr->rwq_ind_tbl)
		return qp_create_rss(dev, qp, attr, udata);
	err = qp_create_flags(dev, qp, attr->create_flags);
	if (err)
		return err;
	err = qp_check_objects(qp, attr);
	if (err)
		return err;
	err = qp_check_caps(dev, &attr->cap, attr->srq);
	if (err)
		return err;
	if (udata) {
		/*
		 * an older provider's request ends before the SQ's doorbell
		 * record
		 */
		err = qhca_ib_udata_in_min(udata, &req,
					   offsetof(struct qhca_create_qp_req,
						    sq_dbrec_addr),
					   sizeof(req));
		if (err)
			return err;
		if (req.comp_mask)
			return -EOPNOTSUPP;
	}

	/* a target has no queue that a kernel user could post to or poll */
	qp_init(qp, udata || qp->type == QHCA_QPT_XRC_TGT);
	qp->scq = qp_has_sq(qp) ? to_qcq(attr->send_cq) : NULL;
	qp->rcq = qp_has_rq(qp) ? to_qcq(attr->recv_cq) : NULL;
	qp->srq = attr->srq ? to_qsrq(attr->srq) : NULL;
	qp->sig_all = attr->sq_sig_type == IB_SIGNAL_ALL_WR;

	if (!qp_has_sq(qp) && (req.sq_addr || req.sq_dbrec_addr ||
			       req.rq_addr || req.dbrec_addr))
		err = -EINVAL;
	else if (!qp_has_rq(qp) && (req.rq_addr || req.dbrec_addr))
		err = -EINVAL;
	else
		err = qp_get_bufs(dev, qp, &attr->cap, &req, uc);
	if (err)
		goto err_bufs;
	if (qp->type == QHCA_QPT_XRC_TGT) {
		/* it may outlive the process that creates it */
		qhca_ib_fill_qpc(&qpc, qp, 0, 0, 0);
		qpc.xrcd = cpu_to_le32(to_qxrcd(attr->xrcd)->xrcd);
	} else {
		qhca_ib_fill_qpc(&qpc, qp, to_qpd(ibqp->pd)->pdn,
				 uc ? uc->uar : 0, req.cookie);
	}
	err = qp_hw_create(dev, qp, &qpc);
	if (err)
		goto err_bufs;
	trace_qhca_create_qp(dev, qp, &qpc);
	if (!qp->user) {
		err = qp_link_cqs(qp);
		if (err)
			goto err_qp;
	}
	ibqp->qp_num = qp->qpn;
	qp_report_caps(qp, &attr->cap);

	if (udata) {
		resp.qpn = qp->qpn;
		err = qhca_ib_udata_out(udata, &resp, sizeof(resp));
		if (err)
			goto err_qp;
	}
	qhca_ib_debug_add_qp(dev, qp);
	return 0;

err_qp:
	qp_hw_destroy_sure(dev, qp);
	qhca_ib_ref_kill(&qp->ref);
err_bufs:
	qp_put_bufs(dev, qp, uc);
	return err;
}

/* ib_device_ops.destroy_qp; the device does no DMA for it when it returns */
int qhca_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	int err;

	/* first: the next QP may get the same number and file name */
	qhca_ib_debug_del(&qp->debug);
	err = qp_hw_destroy(dev, qp);
	if (err) {
		qhca_ib_debug_add_qp(dev, qp);
		return err;
	}
	qhca_ib_ref_kill(&qp->ref);
	qp_put_bufs(dev, qp, udata_to_quc(udata));
	return 0;
}
