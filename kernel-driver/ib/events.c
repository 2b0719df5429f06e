// SPDX-License-Identifier: GPL-2.0
/*
 * Asynchronous events: from the device's event queue and from the net_device to
 * the consumers of the affected object. Also handles the death of the device.
 */
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>

#include "qhca_ib.h"
#include "qhca_ib_trace.h"

/* Look up an object and take a reference; @ref: offset of its "ref". */
static void *event_obj_get(struct xarray *xa, unsigned long num, size_t ref)
{
	void *obj;

	xa_lock(xa);
	obj = xa_load(xa, num);
	if (obj)
		refcount_inc(&((struct qhca_ib_ref *)(obj + ref))->count);
	xa_unlock(xa);
	return obj;
}

static void event_cq(struct qhca_ib_dev *dev, u32 cqn)
{
	struct qhca_ib_cq *cq = event_obj_get(&dev->cqs, cqn,
					      offsetof(struct qhca_ib_cq, ref));
	struct ib_event ev = {
		.device = &dev->ibdev,
		.event = IB_EVENT_CQ_ERR,
	};

	if (!cq)
		return;
	ibdev_dbg(&dev->ibdev, "CQ %#x: error\n", cqn);
	ev.element.cq = &cq->ibcq;
	if (cq->ibcq.event_handler)
		cq->ibcq.event_handler(&ev, cq->ibcq.cq_context);
	qhca_ib_ref_put(&cq->ref);
}

/* A QP_FATAL event may also specify a WQ. */
static void event_wq(struct qhca_ib_dev *dev, u32 wqn)
{
	struct qhca_ib_wq *wq =
		event_obj_get(&dev->wqs, wqn, offsetof(struct qhca_ib_wq, ref));
	struct ib_event ev = {
		.device = &dev->ibdev,
		.event = IB_EVENT_WQ_FATAL,
	};

	if (!wq)
		return;
	ev.element.wq = &wq->ibwq;
	/* uverbs' handler needs its object, which is set after create_wq() */
	if (wq->ibwq.event_handler && READ_ONCE(wq->ibwq.uobject))
		wq->ibwq.event_handler(&ev, wq->ibwq.wq_context);
	qhca_ib_ref_put(&wq->ref);
}

static void event_qp(struct qhca_ib_dev *dev, u32 qpn, enum ib_event_type type,
		     u8 syndrome)
{
	struct qhca_ib_qp *qp = event_obj_get(&dev->qps, qpn,
					      offsetof(struct qhca_ib_qp, ref));
	struct ib_event ev = { .device = &dev->ibdev, .event = type };

	if (!qp)
		return;
	ibdev_dbg(&dev->ibdev, "QP %#x: %s, syndrome %#x\n", qpn,
		  ib_event_msg(type), syndrome);
	ev.element.qp = &qp->ibqp;
	if (qp->ibqp.event_handler)
		qp->ibqp.event_handler(&ev, qp->ibqp.qp_context);
	qhca_ib_ref_put(&qp->ref);
}

static void event_page_fault(struct qhca_ib_dev *dev, u32 qpn)
{
	struct qhca_ib_qp *qp = event_obj_get(&dev->qps, qpn,
					      offsetof(struct qhca_ib_qp, ref));

	if (qp)
		qhca_ib_page_fault(dev, qp);
}

static void event_srq(struct qhca_ib_dev *dev, u32 srqn,
		      enum ib_event_type type)
{
	struct qhca_ib_srq *srq = event_obj_get(&dev->srqs, srqn,
						offsetof(struct qhca_ib_srq,
							 ref));
	struct ib_event ev = { .device = &dev->ibdev, .event = type };

	if (!srq)
		return;
	ev.element.srq = &srq->ibsrq;
	if (srq->ibsrq.event_handler)
		srq->ibsrq.event_handler(&ev, srq->ibsrq.srq_context);
	qhca_ib_ref_put(&srq->ref);
}

static void event_port(struct qhca_ib_dev *dev, enum ib_event_type type)
{
	struct ib_event ev = {
		.device = &dev->ibdev,
		.event = type,
		.element.port_num = QHCA_IB_PORT,
	};

	ib_dispatch_event(&ev);
}

/*
 * Notify users of the ib_device, if it is registered, once. Under the lock, so
 * that unregistering it, which flushes events, comes after the event.
 */
static void event_tell_fatal(struct qhca_ib_dev *dev)
{
	mutex_lock(&dev->fatal_lock);
	if (dev->registered && !dev->fatal_told) {
		dev->fatal_told = true;
		event_port(dev, IB_EVENT_DEVICE_FATAL);
	}
	mutex_unlock(&dev->fatal_lock);
}

/* Call the handlers of all CQs of applications, so that they are polled. */
static void event_call_user_cqs(struct qhca_ib_dev *dev)
{
	struct qhca_ib_cq *cq;
	unsigned long n;

	xa_for_each(&dev->cqs, n, cq) {
		cq = event_obj_get(&dev->cqs, n,
				   offsetof(struct qhca_ib_cq, ref));
		if (!cq)
			continue;
		if (cq->user)
			qhca_ib_cq_call(cq);
		qhca_ib_ref_put(&cq->ref);
	}
}

static void event_device_fatal(struct qhca_ib_dev *dev)
{
	struct qhca_ib_qp *qp;
	unsigned long n;

	/* before consumers are notified and check it */
	qhca_ib_status_gone(dev);
	event_tell_fatal(dev);
	/*
	 * Wake applications that wait for a completion, so that they poll once
	 * more, and notify them: the device will not wake them, and may never
	 * be removed.
	 */
	event_call_user_cqs(dev);
	/* draining a QP on an SRQ waits for this */
	xa_for_each(&dev->qps, n, qp) {
		bool kernel_srq;

		qp = event_obj_get(&dev->qps, n,
				   offsetof(struct qhca_ib_qp, ref));
		if (!qp)
			continue;
		kernel_srq = !qp->user && qp->srq;
		qhca_ib_ref_put(&qp->ref);
		if (kernel_srq)
			event_qp(dev, n, IB_EVENT_QP_LAST_WQE_REACHED, 0);
	}
	qhca_ib_flush_kernel(dev);
}

static int event_device(struct notifier_block *nb, unsigned long type,
			void *data)
{
	struct qhca_ib_dev *dev = container_of(nb, struct qhca_ib_dev, events);
	const struct qhca_eqe *eqe = data;
	u32 num;

	if (type == QHCA_EV_DEVICE_FATAL) {
		trace_qhca_async_event(dev, type, 0, 0);
		event_device_fatal(dev);
		return NOTIFY_OK;
	}
	num = le32_to_cpu(eqe->obj);
	trace_qhca_async_event(dev, type, num, eqe->syndrome);
	switch (type) {
	case QHCA_EV_CQ_ERR:
		event_cq(dev, num);
		break;
	case QHCA_EV_QP_FATAL:
		event_qp(dev, num, IB_EVENT_QP_FATAL, eqe->syndrome);
		event_wq(dev, num);
		break;
	case QHCA_EV_QP_REQ_ERR:
		event_qp(dev, num, IB_EVENT_QP_REQ_ERR, eqe->syndrome);
		break;
	case QHCA_EV_QP_ACCESS_ERR:
		event_qp(dev, num, IB_EVENT_QP_ACCESS_ERR, eqe->syndrome);
		break;
	case QHCA_EV_COMM_EST:
		event_qp(dev, num, IB_EVENT_COMM_EST, 0);
		break;
	case QHCA_EV_SQ_DRAINED:
		event_qp(dev, num, IB_EVENT_SQ_DRAINED, 0);
		break;
	case QHCA_EV_LAST_WQE:
		event_qp(dev, num, IB_EVENT_QP_LAST_WQE_REACHED, 0);
		break;
	case QHCA_EV_PAGE_FAULT:
		event_page_fault(dev, num);
		break;
	case QHCA_EV_SRQ_ERR:
		event_srq(dev, num, IB_EVENT_SRQ_ERR);
		break;
	case QHCA_EV_SRQ_LIMIT:
		event_srq(dev, num, IB_EVENT_SRQ_LIMIT_REACHED);
		break;
	default:
		/* the port's state comes from the net_device */
		return NOTIFY_DONE;
	}
	return NOTIFY_OK;
}

/* The RTNL lock serializes these events. */
static int event_netdev(struct notifier_block *nb, unsigned long type,
			void *data)
{
	struct qhca_ib_dev *dev = container_of(nb, struct qhca_ib_dev,
					       netdev_nb);
	bool up;

	if (netdev_notifier_info_to_dev(data) != dev->qdev->netdev)
		return NOTIFY_DONE;
	switch (type) {
	case NETDEV_UP:
	case NETDEV_DOWN:
	case NETDEV_CHANGE:
	case NETDEV_GOING_DOWN:
	case NETDEV_UNREGISTER:
		break;
	default:
		return NOTIFY_DONE;
	}
	up = qhca_ib_port_is_up(dev) && !QHCA_PORT_GOES_DOWN(type);
	if (up == dev->port_active)
		return NOTIFY_DONE;
	dev->port_active = up;
	if (dev->registered)
		event_port(dev, up ? IB_EVENT_PORT_ACTIVE : IB_EVENT_PORT_ERR);
	else
		dev->port_changed = true;
	return NOTIFY_DONE;
}

#ifdef QHCA_PORT_EVENTS_BY_DRIVER
/*
 * ib_device_ops.report_port_event: having it keeps the core from sending each
 * event a second time. event_netdev() sends them, also while the net_device
 * belongs to a bond and the core ignores it.
 */
void qhca_ib_report_port_event(struct ib_device *ibdev,
			       struct net_device *netdev, unsigned long type)
{
}
#endif

/*
 * Subscribe to events of the device and of the net_device. From now on
 * consumers get events of objects; those of the port and of the device begin
 * with qhca_ib_events_start().
 */
int qhca_ib_events_init(struct qhca_ib_dev *dev)
{
	int err;

	dev->events.notifier_call = event_device;
	err = qhca_event_register(dev->qdev, &dev->events);
	if (err)
		return err;
	/* the core replays the present state, which sets port_active */
	dev->netdev_nb.notifier_call = event_netdev;
	err = register_netdevice_notifier(&dev->netdev_nb);
	if (err) {
		qhca_ib_events_exit_device(dev);
		return err;
	}
	/* the port has not been queried yet */
	rtnl_lock();
	dev->port_changed = false;
	rtnl_unlock();
	return 0;
}

/*
 * The ib_device is registered. The core may have queried the port before a
 * change for which no event could be sent: send it now.
 */
void qhca_ib_events_start(struct qhca_ib_dev *dev)
{
	rtnl_lock();
	mutex_lock(&dev->fatal_lock);
	dev->registered = true;
	mutex_unlock(&dev->fatal_lock);
	if (dev->port_changed)
		event_port(dev, dev->port_active ? IB_EVENT_PORT_ACTIVE
						 : IB_EVENT_PORT_ERR);
	rtnl_unlock();
	/* event_device_fatal() either sees it registered, or ran before */
	if (qhca_dev_dead(dev->qdev)) {
		qhca_ib_status_gone(dev);
		event_tell_fatal(dev);
	}
}

/* Stop events of the port and of the device. */
void qhca_ib_events_exit_netdev(struct qhca_ib_dev *dev)
{
	/* unregistering replays NETDEV_DOWN once more */
	unregister_netdevice_notifier(&dev->netdev_nb);
	mutex_lock(&dev->fatal_lock);
	dev->registered = false;
	mutex_unlock(&dev->fatal_lock);
}

/* Stop events of objects. */
void qhca_ib_events_exit_device(struct qhca_ib_dev *dev)
{
	qhca_event_unregister(dev->qdev, &dev->events);
}

/*
 * The device is dead: call the CQs of all kernel QPs, so that their users poll.
 * Polling then finds every WR flushed (poll.c). A CQ without a QP is not
 * called: ib_free_cq() has perhaps cancelled its work already. It does so only
 * after the CQ's QPs are gone, and those that are referenced stay.
 */
void qhca_ib_flush_work(struct work_struct *work)
{
	struct qhca_ib_dev *dev = container_of(work, struct qhca_ib_dev,
					       flush_work);
	struct qhca_ib_qp *qp;
	unsigned long n;

	xa_for_each(&dev->qps, n, qp) {
		qp = event_obj_get(&dev->qps, n,
				   offsetof(struct qhca_ib_qp, ref));
		if (!qp)
			continue;
		if (!qp->user && qp->scq)
			qhca_ib_cq_call(qp->scq);
		if (!qp->user && qp->rcq && qp->rcq != qp->scq)
			qhca_ib_cq_call(qp->rcq);
		qhca_ib_ref_put(&qp->ref);
	}
}

/* Kernel users of a dead device get their WRs back as flushed. Any context. */
void qhca_ib_flush_kernel(struct qhca_ib_dev *dev)
{
	queue_work(dev->flush_wq, &dev->flush_work);
}

/* After posting: a dead device completes nothing, so the driver does. */
void qhca_ib_wake_if_dead(struct qhca_ib_dev *dev)
{
	if (unlikely(qhca_dev_dead(dev->qdev)))
		qhca_ib_flush_kernel(dev);
}

/*
 * The driver is being removed, and the device still works: flush all WRs of
 * applications. Otherwise they would only learn from the status page that the
 * device is gone, and not the fate of their WRs.
 */
void qhca_ib_flush_users(struct qhca_ib_dev *dev)
{
	struct ib_wq_attr wq_attr = { .wq_state = IB_WQS_ERR };
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	struct qhca_ib_wq *wq;
	struct qhca_ib_qp *qp;
	unsigned long n;

	xa_for_each(&dev->wqs, n, wq) {
		wq = event_obj_get(&dev->wqs, n,
				   offsetof(struct qhca_ib_wq, ref));
		if (!wq)
			continue;
		qhca_ib_modify_wq(&wq->ibwq, &wq_attr, IB_WQ_STATE, NULL);
		qhca_ib_ref_put(&wq->ref);
	}
	xa_for_each(&dev->qps, n, qp) {
		qp = event_obj_get(&dev->qps, n,
				   offsetof(struct qhca_ib_qp, ref));
		if (!qp)
			continue;
		/* fails in states that have nothing to flush */
		if (qp->user)
			qhca_ib_modify_qp(&qp->ibqp, &attr, IB_QP_STATE, NULL);
		qhca_ib_ref_put(&qp->ref);
	}
}

/**
 * qhca_ib_destroy - destroy an object in the device
 * @dev: device
 * @opcode: QHCA_CMD_DESTROY_*, QHCA_CMD_FREE_*
 * @obj: its number
 *
 * The core does not destroy objects that others use, so the device has no
 * reason to refuse. If it does, it is declared dead: kernel users and exiting
 * processes cannot keep an object.
 *
 * Return: 0 if the device no longer uses the object; -EBUSY for an MR that has
 * memory windows and so is kept.
 */
int qhca_ib_destroy(struct qhca_ib_dev *dev, u8 opcode, u32 obj)
{
	int err = qhca_aq_destroy(dev->qdev, opcode, obj);

	if (err == -EBUSY && opcode == QHCA_CMD_DESTROY_MR)
		return err;
	qhca_aq_destroyed(dev->qdev, opcode, obj, err);
	return 0;
}
