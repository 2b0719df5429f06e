// SPDX-License-Identifier: GPL-2.0
/*
 * WQs - receive queues that belong to no QP - and indirection tables of them,
 * from which RSS QPs are made (qp.c). For applications only.
 */
#include <linux/log2.h>

#include "qhca_ib.h"

static_assert(QHCA_WQS_RESET == IB_WQS_RESET);
static_assert(QHCA_WQS_RDY == IB_WQS_RDY);
static_assert(QHCA_WQS_ERR == IB_WQS_ERR);

/* The device's QHCA_WQ_F_*, or -EOPNOTSUPP. */
static int wq_flags(u32 flags)
{
	if (flags & ~IB_WQ_FLAGS_CVLAN_STRIPPING)
		return -EOPNOTSUPP;
	return flags ? QHCA_WQ_F_STRIP_VLAN : 0;
}

static int wq_check_sizes(struct qhca_ib_dev *dev,
			  const struct ib_wq_init_attr *attr,
			  const struct qhca_create_wq_req *req)
{
	const struct qhca_caps *caps = &dev->qdev->caps;
	u32 sges;

	if (req->shift > QHCA_WQ_SHIFT_MAX ||
	    req->stride < QHCA_RQ_STRIDE_MIN ||
	    req->stride > QHCA_RQ_STRIDE_MAX ||
	    BIT(req->shift) > caps->max_qp_wr ||
	    BIT(req->shift) < attr->max_wr)
		return -EINVAL;
	sges = (BIT(req->stride) - sizeof(struct qhca_rq_wqe)) /
	       sizeof(struct qhca_sge);
	return min(sges, caps->max_sge) < attr->max_sge ? -EINVAL : 0;
}

static int wq_hw_create(struct qhca_ib_dev *dev, struct qhca_ib_wq *wq,
			const struct qhca_wqc *wqc)
{
	int err;

	err = qhca_aq_create(dev->qdev, QHCA_CMD_CREATE_WQ, wqc, sizeof(*wqc),
			     &wq->wqn);
	if (err)
		return err;
	err = qhca_ib_qpn_add(dev, &dev->wqs, wq->wqn, wq);
	if (err)
		qhca_aq_destroy_sure(dev->qdev, QHCA_CMD_DESTROY_WQ, wq->wqn);
	return err;
}

static void wq_put_bufs(struct qhca_ib_dev *dev, struct qhca_ib_wq *wq,
			struct qhca_ib_ucontext *uc)
{
	qhca_ib_queue_buf_free(dev, &wq->buf);
	qhca_ib_dbrec_free(dev, uc, &wq->dbrec);
}

static int wq_make(struct qhca_ib_dev *dev, struct qhca_ib_wq *wq,
		   struct qhca_ib_ucontext *uc,
		   const struct qhca_create_wq_req *req, u32 pdn, u32 cqn,
		   u8 flags)
{
	struct qhca_wqc wqc = {};
	int err;

	err = qhca_ib_queue_buf_pin(dev, &wq->buf, req->buf_addr, req->buf_len,
				    1ULL << (req->shift + req->stride));
	if (err)
		return err;
	err = qhca_ib_dbrec_pin(dev, uc, &wq->dbrec, req->dbrec_addr);
	if (err)
		return err;
	qhca_ib_fill_wqc(&wqc, wq, req, pdn, uc->uar, cqn, flags);
	return wq_hw_create(dev, wq, &wqc);
}

/**
 * qhca_ib_create_wq - ib_device_ops.create_wq
 * @ibpd: its PD
 * @attr: what is wanted
 * @udata: the application's request
 *
 * Return: the WQ in state RESET, or -EINVAL (sizes, addresses), -EOPNOTSUPP
 * (type, flags), -ENOMEM, -EFAULT, -EIO.
 */
struct ib_wq *qhca_ib_create_wq(struct ib_pd *ibpd,
				struct ib_wq_init_attr *attr,
				struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_ib_ucontext *uc = udata_to_quc(udata);
	struct qhca_create_wq_resp resp = {};
	struct qhca_create_wq_req req = {};
	struct qhca_ib_wq *wq;
	int flags, err;

	flags = wq_flags(attr->create_flags);
	if (attr->wq_type != IB_WQT_RQ || flags < 0 || !udata)
		return ERR_PTR(-EOPNOTSUPP);
	err = qhca_ib_udata_in(udata, &req, sizeof(req));
	if (err)
		return ERR_PTR(err);
	if (req.comp_mask || req.rsvd[0] || req.rsvd[1])
		return ERR_PTR(-EOPNOTSUPP);
	err = wq_check_sizes(dev, attr, &req);
	if (err)
		return ERR_PTR(err);
	wq = kzalloc(sizeof(*wq), GFP_KERNEL);
	if (!wq)
		return ERR_PTR(-ENOMEM);
	/* the core sets it on return, but lookups may find the WQ earlier */
	wq->ibwq.device = ibpd->device;
	wq->ibwq.event_handler = attr->event_handler;
	wq->ibwq.wq_context = attr->wq_context;
	qhca_ib_ref_init(&wq->ref);
	err = wq_make(dev, wq, uc, &req, to_qpd(ibpd)->pdn,
		      to_qcq(attr->cq)->cqn, flags);
	if (err)
		goto err_bufs;
	wq->ibwq.wq_num = wq->wqn;
	resp.wqn = wq->wqn;
	err = qhca_ib_udata_out(udata, &resp, sizeof(resp));
	if (!err)
		return &wq->ibwq;

	qhca_ib_qpn_leave(dev);
	qhca_aq_destroy_sure(dev->qdev, QHCA_CMD_DESTROY_WQ, wq->wqn);
	xa_erase(&dev->wqs, wq->wqn);
	qhca_ib_qpn_left(dev);
	qhca_ib_ref_kill(&wq->ref);
err_bufs:
	wq_put_bufs(dev, wq, uc);
	kfree(wq);
	return ERR_PTR(err);
}

/**
 * qhca_ib_modify_wq - ib_device_ops.modify_wq
 * @ibwq: the WQ
 * @attr: new state, flags
 * @mask: IB_WQ_STATE, IB_WQ_CUR_STATE, IB_WQ_FLAGS
 * @udata: unused
 *
 * The device decides on transitions: it also changes the state on errors.
 *
 * Return: 0, -EINVAL, -EOPNOTSUPP (flags), -EIO.
 */
int qhca_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		      struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibwq->device);
	struct qhca_ib_wq *wq = to_qwq(ibwq);
	struct qhca_wqc wqc = {};
	u64 dev_mask = 0;
	int flags, err;

	if (mask & ~(IB_WQ_STATE | IB_WQ_CUR_STATE | IB_WQ_FLAGS) ||
	    qhca_ib_udata_none(udata))
		return -EOPNOTSUPP;
	if (mask & IB_WQ_CUR_STATE) {
		err = qhca_aq_query(dev->qdev, QHCA_CMD_QUERY_WQ, wq->wqn,
				    &wqc, sizeof(wqc));
		if (err)
			return err;
		if (wqc.state != attr->curr_wq_state)
			return -EINVAL;
		memset(&wqc, 0, sizeof(wqc));
	}
	if (mask & IB_WQ_FLAGS) {
		if (attr->flags_mask & ~IB_WQ_FLAGS_CVLAN_STRIPPING)
			return -EOPNOTSUPP;
		flags = wq_flags(attr->flags & attr->flags_mask);
		if (flags < 0)
			return flags;
		wqc.flags = flags;
		if (attr->flags_mask)
			dev_mask |= QHCA_WQ_M_FLAGS;
	}
	if (mask & IB_WQ_STATE) {
		if (attr->wq_state > IB_WQS_ERR)
			return -EINVAL;
		wqc.state = attr->wq_state;
		dev_mask |= QHCA_WQ_M_STATE;
	}
	if (!dev_mask)
		return 0;
	err = qhca_aq_modify(dev->qdev, QHCA_CMD_MODIFY_WQ, wq->wqn, dev_mask,
			     &wqc, sizeof(wqc));
	if (!err && (mask & IB_WQ_STATE))
		ibwq->state = attr->wq_state;
	return err;
}

/* ib_device_ops.destroy_wq; the device does no DMA for it when it returns */
int qhca_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibwq->device);
	struct qhca_ib_wq *wq = to_qwq(ibwq);
	int err;

	qhca_ib_qpn_leave(dev);
	err = qhca_ib_destroy(dev, QHCA_CMD_DESTROY_WQ, wq->wqn);
	if (!err)
		xa_erase(&dev->wqs, wq->wqn);
	qhca_ib_qpn_left(dev);
	if (err)
		return err;
	qhca_ib_ref_kill(&wq->ref);
	wq_put_bufs(dev, wq, udata_to_quc(udata));
	kfree(wq);
	return 0;
}

/* ib_device_ops.create_rwq_ind_table; the core keeps the WQs while it lives */
int qhca_ib_create_rwq_ind_table(struct ib_rwq_ind_table *ibtbl,
				 struct ib_rwq_ind_table_init_attr *attr,
				 struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibtbl->device);
	struct qhca_ib_rqt *rqt = to_qrqt(ibtbl);
	u32 i, n;
	__le32 *wqns;
	int err;

	if (qhca_ib_udata_none(udata))
		return -EOPNOTSUPP;
	if (attr->log_ind_tbl_size > ilog2(QHCA_RQT_WQS_MAX))
		return -EINVAL;
	n = BIT(attr->log_ind_tbl_size);
	wqns = kcalloc(n, sizeof(*wqns), GFP_KERNEL);
	if (!wqns)
		return -ENOMEM;
	for (i = 0; i < n; i++)
		wqns[i] = cpu_to_le32(to_qwq(attr->ind_tbl[i])->wqn);
	err = qhca_aq_create(dev->qdev, QHCA_CMD_CREATE_RQT, wqns,
			     n * sizeof(*wqns), &rqt->rqtn);
	kfree(wqns);
	ibtbl->ind_tbl_num = rqt->rqtn;
	return err;
}

/* ib_device_ops.destroy_rwq_ind_table */
int qhca_ib_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtbl)
{
	return qhca_ib_destroy(to_qdev(ibtbl->device), QHCA_CMD_DESTROY_RQT,
			       to_qrqt(ibtbl)->rqtn);
}
