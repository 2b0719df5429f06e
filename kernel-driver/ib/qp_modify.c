// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: modify and query. The device keeps the attributes. */
#include "qhca_ib.h"
#include "qhca_ib_trace.h"

/* the values are the same: QPC states, path MTU codes */
static_assert(QHCA_QPS_RESET == IB_QPS_RESET);
static_assert(QHCA_QPS_ERR == IB_QPS_ERR);
static_assert(QHCA_QPS_SQE == IB_QPS_SQE);

#define MASK_KNOWN (IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY | \
		    IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT |	\
		    IB_QP_QKEY | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_TIMEOUT |	\
		    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_RQ_PSN |		\
		    IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC |		\
		    IB_QP_MIN_RNR_TIMER | IB_QP_SQ_PSN | IB_QP_DEST_QPN)

/* The device's ranges; it checks them too, but does not say which failed. */
static int qp_check_numbers(const struct qhca_caps *caps,
			    const struct ib_qp_attr *attr, int mask)
{
	if (((mask & IB_QP_PORT) && attr->port_num != QHCA_IB_PORT) ||
	    ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index) ||
	    ((mask & IB_QP_PATH_MTU) && (attr->path_mtu < IB_MTU_256 ||
					 attr->path_mtu > IB_MTU_4096)) ||
	    ((mask & IB_QP_TIMEOUT) && attr->timeout > 31) ||
	    ((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > 7) ||
	    ((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > 7) ||
	    ((mask & IB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31) ||
	    ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
	     attr->max_dest_rd_atomic > caps->max_rd_atomic) ||
	    ((mask & IB_QP_DEST_QPN) && attr->dest_qp_num > 0xffffff))
		return -EINVAL;
	return 0;
}

/* the verbs' mask and the device's, for numeric attributes */
static const struct {
	int verbs;
	u64 dev;
} number_masks[] = {
	{ IB_QP_PKEY_INDEX, QHCA_QP_M_PKEY_INDEX },
	{ IB_QP_QKEY, QHCA_QP_M_QKEY },
	{ IB_QP_PATH_MTU, QHCA_QP_M_PATH_MTU },
	{ IB_QP_TIMEOUT, QHCA_QP_M_TIMEOUT },
	{ IB_QP_RETRY_CNT, QHCA_QP_M_RETRY_CNT },
	{ IB_QP_RNR_RETRY, QHCA_QP_M_RNR_RETRY },
	{ IB_QP_RQ_PSN, QHCA_QP_M_RQ_PSN },
	{ IB_QP_SQ_PSN, QHCA_QP_M_SQ_PSN },
	{ IB_QP_MAX_QP_RD_ATOMIC, QHCA_QP_M_MAX_RD_ATOMIC },
	{ IB_QP_MAX_DEST_RD_ATOMIC, QHCA_QP_M_MAX_DEST_RD_ATOMIC },
	{ IB_QP_MIN_RNR_TIMER, QHCA_QP_M_MIN_RNR_TIMER },
	{ IB_QP_DEST_QPN, QHCA_QP_M_DEST_QPN },
	{ IB_QP_EN_SQD_ASYNC_NOTIFY, QHCA_QP_M_SQD_EVENT },
};

/* The device reads only the fields selected by the mask. Returns that mask. */
static u64 qp_fill_numbers(const struct qhca_caps *caps, struct qhca_qpc *qpc,
			   const struct ib_qp_attr *attr, int mask)
{
	u64 dev_mask = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(number_masks); i++) {
		if (mask & number_masks[i].verbs)
			dev_mask |= number_masks[i].dev;
	}
	if (mask & IB_QP_QKEY)
		qpc->qkey = cpu_to_le32(attr->qkey);
	if (mask & IB_QP_PATH_MTU)
		qpc->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		qpc->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		qpc->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		qpc->rnr_retry = attr->rnr_retry;
	/* consumers pass PSNs of more than 24 bits; the rest is ignored */
	if (mask & IB_QP_RQ_PSN)
		qpc->rq_psn = cpu_to_le32(attr->rq_psn & 0xffffff);
	if (mask & IB_QP_SQ_PSN)
		qpc->sq_psn = cpu_to_le32(attr->sq_psn & 0xffffff);
	/*
	 * Limit of the peer for requests in flight; fewer is always fine.
	 * perftest asks for the peer's maximum, which is 128 for Soft-RoCE.
	 */
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		qpc->max_rd_atomic = min_t(u32, attr->max_rd_atomic,
					   caps->max_rd_atomic);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		qpc->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		qpc->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		qpc->dest_qpn = cpu_to_le32(attr->dest_qp_num);
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		qpc->en_sqd_event = !!attr->en_sqd_async_notify;
	return dev_mask;
}

/*
 * Accept the right of a peer to bind, which no packet can request: programs set
 * all flags and use what is supported. The same holds for rights that only MRs
 * have.
 */
#define QP_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
		   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
		   IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_GLOBAL |	\
		   IB_ACCESS_FLUSH_PERSISTENT | IB_ACCESS_ON_DEMAND | \
		   IB_ACCESS_OPTIONAL)

/* Verbs attributes to a QPC and the device's mask; 0, -EINVAL, -EOPNOTSUPP. */
static int qp_fill_attrs(struct qhca_ib_dev *dev, struct qhca_qpc *qpc,
			 u64 *dev_mask, const struct ib_qp_attr *attr, int mask)
{
	int err;

	err = qp_check_numbers(&dev->qdev->caps, attr, mask);
	if (err)
		return err;
	*dev_mask = qp_fill_numbers(&dev->qdev->caps, qpc, attr, mask);
	if (mask & IB_QP_ACCESS_FLAGS) {
		if (attr->qp_access_flags & ~QP_ACCESS)
			return -EOPNOTSUPP;
		/* local rights are a matter of MRs */
		qpc->access = cpu_to_le32(qhca_ib_access(attr->qp_access_flags) &
					  ~QHCA_ACCESS_LOCAL_WRITE);
		*dev_mask |= QHCA_QP_M_ACCESS;
	}
	if (mask & IB_QP_AV) {
		err = qhca_ib_av_fill(&qpc->av, &attr->ah_attr);
		if (err)
			return err;
		*dev_mask |= QHCA_QP_M_AV;
	}
	return 0;
}

static int qp_query_qpc(struct qhca_ib_qp *qp, struct qhca_qpc *qpc)
{
	return qhca_aq_query(to_qdev(qp->ibqp.device)->qdev, QHCA_CMD_QUERY_QP,
			     qp->qpn, qpc, sizeof(*qpc));
}

/*
 * The current state. The device changes it on errors; its state counts when the
 * consumer specifies one.
 */
static int qp_current_state(struct qhca_ib_qp *qp,
			    const struct ib_qp_attr *attr, int mask,
			    enum ib_qp_state *cur)
{
	struct qhca_qpc qpc;
	int err;

	*cur = qp->state;
	if (!(mask & IB_QP_CUR_STATE))
		return 0;
	err = qp_query_qpc(qp, &qpc);
	if (err)
		return err;
	*cur = qpc.state;
	return *cur == attr->cur_qp_state ? 0 : -EINVAL;
}

/*
 * The device has reset the QP: the rings are empty, old CQEs are void. Tails
 * change only under the CQ's lock, so that polling can check an index against
 * head and tail.
 */
static void qp_forget_wqes(struct qhca_ib_qp *qp)
{
	unsigned long irq;

	qhca_ib_qp_clean_cqs(qp);
	spin_lock_irqsave(&qp->scq->lock, irq);
	spin_lock(&qp->sq.lock);
	qp->sq.head = 0;
	qp->sq.tail = 0;
	if (qp->sq_dbrec.rec)
		WRITE_ONCE(qp->sq_dbrec.rec->index, 0);
	spin_unlock(&qp->sq.lock);
	spin_unlock_irqrestore(&qp->scq->lock, irq);
	spin_lock_irqsave(&qp->rcq->lock, irq);
	spin_lock(&qp->rq.lock);
	qp->rq.head = 0;
	qp->rq.tail = 0;
	if (qp->rq_dbrec.rec)
		WRITE_ONCE(qp->rq_dbrec.rec->index, 0);
	spin_unlock(&qp->rq.lock);
	spin_unlock_irqrestore(&qp->rcq->lock, irq);
}

static int qp_modify_locked(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp,
			    const struct ib_qp_attr *attr, int mask)
{
	enum ib_qp_state cur, next;
	struct qhca_qpc qpc = {};
	u64 dev_mask = 0;
	int err;

	err = qp_current_state(qp, attr, mask, &cur);
	if (err)
		return err;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, qp->ibqp.qp_type, mask))
		return -EINVAL;
	err = qp_fill_attrs(dev, &qpc, &dev_mask, attr, mask);
	if (err)
		return err;
	if (mask & IB_QP_STATE) {
		qpc.state = next;
		dev_mask |= QHCA_QP_M_STATE;
	}
	if (!dev_mask)
		return 0;

	/* no posting to a ring that is being reset */
	if ((mask & IB_QP_STATE) && next == IB_QPS_RESET) {
		WRITE_ONCE(qp->state, IB_QPS_RESET);
		qhca_ib_qp_stats_reset(qp);
	}
	err = qhca_aq_modify(dev->qdev, QHCA_CMD_MODIFY_QP, qp->qpn, dev_mask,
			     &qpc, sizeof(qpc));
	/*
	 * A dead device has stopped, so transitions to ERR and RESET succeed.
	 * This lets draining proceed, see poll_dead().
	 */
	if (err == -EIO && (mask & IB_QP_STATE) &&
	    (next == IB_QPS_ERR || next == IB_QPS_RESET))
		err = 0;
	trace_qhca_modify_qp(dev, qp, cur, next, mask, &qpc, err);
	if (err) {
		WRITE_ONCE(qp->state, cur);
		return err;
	}
	if (mask & IB_QP_STATE) {
		if (next == IB_QPS_RESET && !qp->user)
			qp_forget_wqes(qp);
		WRITE_ONCE(qp->state, next);
	}
	return 0;
}

/**
 * qhca_ib_modify_qp - ib_device_ops.modify_qp
 * @ibqp: the QP
 * @attr: new values; the core has resolved the address
 * @mask: IB_QP_*
 * @udata: unused
 *
 * Return: 0, -EINVAL for an illegal transition or value, -EOPNOTSUPP for
 * attributes that the device lacks (alternate path, rate limit, resizing),
 * -EIO.
 */
int qhca_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	int err;

	/* an RSS QP has only one state: ready */
	if (mask & ~MASK_KNOWN || qp->type == QHCA_QPT_RSS)
		return -EOPNOTSUPP;
	mutex_lock(&qp->mutex);
	err = qp_modify_locked(dev, qp, attr, mask);
	mutex_unlock(&qp->mutex);
	return err;
}

/* ib_device_ops.query_qp: all attributes, whatever the mask, from the device */
int qhca_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_qp_init_attr *init)
{
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_qpc qpc;
	int err;

	err = qp_query_qpc(qp, &qpc);
	if (err)
		return err;

	memset(attr, 0, sizeof(*attr));
	memset(init, 0, sizeof(*init));
	attr->qp_state = qpc.state;
	attr->cur_qp_state = qpc.state;
	attr->path_mtu = qpc.path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = le32_to_cpu(qpc.qkey);
	attr->rq_psn = le32_to_cpu(qpc.rq_psn);
	attr->sq_psn = le32_to_cpu(qpc.sq_psn);
	attr->dest_qp_num = le32_to_cpu(qpc.dest_qpn);
	/* same bits as in the verbs */
	attr->qp_access_flags = le32_to_cpu(qpc.access) & QHCA_ACCESS_MASK;
	attr->pkey_index = le16_to_cpu(qpc.pkey_index);
	attr->en_sqd_async_notify = qpc.en_sqd_event;
	attr->sq_draining = qpc.state == QHCA_QPS_SQD &&
			    qpc.sq_tail != qpc.sq_next;
	attr->max_rd_atomic = qpc.max_rd_atomic;
	attr->max_dest_rd_atomic = qpc.max_dest_rd_atomic;
	attr->min_rnr_timer = qpc.min_rnr_timer;
	attr->port_num = QHCA_IB_PORT;
	attr->timeout = qpc.timeout;
	attr->retry_cnt = qpc.retry_cnt;
	attr->rnr_retry = qpc.rnr_retry;
	if (!qhca_ib_qp_is_ud(qp) && !qhca_ib_qp_is_raw(qp))
		qhca_ib_av_read(&qpc.av, &attr->ah_attr);

	attr->cap.max_send_wr = qp->sq.stride ? BIT(qp->sq.shift) : 0;
	attr->cap.max_send_sge = qp->sq.max_sge;
	attr->cap.max_inline_data = qp->sq.max_inline;
	attr->cap.max_recv_wr = qp->rq.stride ? BIT(qp->rq.shift) : 0;
	attr->cap.max_recv_sge = qp->rq.max_sge;

	init->event_handler = ibqp->event_handler;
	init->qp_context = ibqp->qp_context;
	init->send_cq = ibqp->send_cq;
	init->recv_cq = ibqp->recv_cq;
	init->srq = ibqp->srq;
	init->cap = attr->cap;
	init->sq_sig_type = qp->sig_all ? IB_SIGNAL_ALL_WR : IB_SIGNAL_REQ_WR;
	init->qp_type = ibqp->qp_type;
	init->port_num = QHCA_IB_PORT;
	return 0;
}
