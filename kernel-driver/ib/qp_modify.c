// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: modify and query. The device keeps the attributes. */
#include "qhca_ib.h"
#include "qhca_ib_trace.h"

#define MASK_KNOWN (IB_QP_STATE | IB_QP_CUR_STATE | IB_QP_EN_SQD_ASYNC_NOTIFY | \
		    IB_QP_ACCESS_FLAGS | IB_QP_PKEY_INDEX | IB_QP_PORT |	\
		    IB_QP_QKEY | IB_QP_AV | IB_QP_PATH_MTU | IB_QP_TIMEOUT |	\
		    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY | IB_QP_RQ_PSN |		\
		    IB_QP_MAX_QP_RD_ATOMIC | IB_QP_MAX_DEST_RD_ATOMIC |		\
		    IB_QP_MIN_RNR_TIMER | IB_QP_SQ_PSN | IB_QP_DEST_QPN)

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
	bool reset;
	int err;

	err = qp_current_state(qp, attr, mask, &cur);
	if (err)
		return err;
	next = mask & IB_QP_STATE ? attr->qp_state : cur;
	if (!ib_modify_qp_is_ok(cur, next, qp->ibqp.qp_type, mask))
		return -EINVAL;
	err = qhca_ib_qp_attr_fill(&dev->qdev->caps, &qpc, &dev_mask, attr,
				   mask);
	if (err)
		return err;
	if (mask & IB_QP_STATE) {
		qpc.state = next;
		dev_mask |= QHCA_QP_M_STATE;
	}
	if (!dev_mask)
		return 0;

	reset = (mask & IB_QP_STATE) && next == IB_QPS_RESET;
	/* no posting to a ring that is being reset */
	if (reset) {
		WRITE_ONCE(qp->state, IB_QPS_RESET);
		qhca_ib_qp_stats_reset_begin(qp);
	}
	err = qhca_aq_modify(dev->qdev, QHCA_CMD_MODIFY_QP, qp->qpn, dev_mask,
			     &qpc, sizeof(qpc));
	if (reset)
		qhca_ib_qp_stats_reset_end(qp, err);
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
		if (reset && !qp->user)
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
 * @udata: must be empty
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
	if (mask & ~MASK_KNOWN || qp->type == QHCA_QPT_RSS ||
	    qhca_ib_udata_none(udata))
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
	qhca_ib_qp_attr_read(&qpc, attr);
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
