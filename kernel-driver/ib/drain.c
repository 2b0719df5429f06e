// SPDX-License-Identifier: GPL-2.0
/*
 * Draining a kernel user's QP: it enters the error state, and when a last WR
 * has completed, so have all earlier ones. Unlike the core's version, this has
 * a timeout: a device that does not complete that WR is declared dead, and then
 * polling completes it (poll_dead()).
 */
#include "qhca_ib.h"

/* A working device flushes at once; the CQ's user has to poll, too. */
#define DRAIN_TIMEOUT		(30 * HZ)
/* How many timeouts are allowed while the user has CQEs to poll. */
#define DRAIN_TRIES		4
/* Interval for polling a CQ that no other context polls. */
#define DRAIN_POLL_INTERVAL	(HZ / 20)

struct drain {
	struct ib_cqe cqe;
	struct completion done;
};

static void drain_done(struct ib_cq *cq, struct ib_wc *wc)
{
	complete(&container_of(wc->wr_cqe, struct drain, cqe)->done);
}

/*
 * Stop the QP. True if there is something to drain, with a last WR that uses
 * @drain as its CQE.
 */
static bool drain_begin(struct ib_qp *ibqp, struct drain *drain)
{
	struct ib_qp_attr attr = { .qp_state = IB_QPS_ERR };
	int err;

	drain->cqe.done = drain_done;
	init_completion(&drain->done);
	/* nothing has been posted, and there is no transition to ERR */
	if (READ_ONCE(to_qqp(ibqp)->state) == IB_QPS_RESET)
		return false;
	err = ib_modify_qp(ibqp, &attr, IB_QP_STATE);
	if (!err)
		return true;
	/* all other states allow it, and on a dead device it is done */
	qhca_dev_kill_sure(to_qdev(ibqp->device)->qdev, "it keeps a QP going");
	err = ib_modify_qp(ibqp, &attr, IB_QP_STATE);
	WARN_ONCE(err, "cannot drain QP %#x: %d\n", ibqp->qp_num, err);
	return !err;
}

/* Has the last WR completed within @timeout jiffies? */
static bool drain_wait_for(struct ib_cq *cq, struct drain *drain,
			   unsigned long timeout)
{
	unsigned long end = jiffies + timeout;

	if (cq->poll_ctx != IB_POLL_DIRECT)
		return wait_for_completion_timeout(&drain->done, timeout);
	do {
		ib_process_cq_direct(cq, -1);
		if (wait_for_completion_timeout(&drain->done,
						DRAIN_POLL_INTERVAL))
			return true;
	} while (time_before(jiffies, end));
	return false;
}

/*
 * Is the last WR of @ring waiting for the device? Not if it has been polled,
 * and hardly if there is something else to poll: then the CQ's user is slow,
 * unless the device failed to notify it.
 */
static bool drain_is_device_late(struct qhca_ib_cq *cq,
				 struct qhca_ib_ring *ring, bool patient)
{
	bool late;

	spin_lock_irq(&cq->lock);
	late = READ_ONCE(ring->head) != ring->tail &&
	       !(patient && qhca_ib_cq_has_cqe(cq));
	spin_unlock_irq(&cq->lock);
	return late;
}

/* Posting the last WR to @ring returned @err: if 0, wait for that WR. */
static void drain_end(struct ib_qp *ibqp, struct qhca_ib_ring *ring,
		      struct ib_cq *cq, struct drain *drain, int err)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	int tries = 0;

	if (WARN_ONCE(err, "cannot drain QP %#x: %d\n", ibqp->qp_num, err))
		return;
	/* the WR is on our stack: it must complete in any case */
	while (!drain_wait_for(cq, drain, DRAIN_TIMEOUT)) {
		if (qhca_dev_dead(dev->qdev)) {
			qhca_ib_wake_if_dead(dev);
		} else if (drain_is_device_late(to_qcq(cq), ring,
						++tries < DRAIN_TRIES)) {
			ibdev_err(&dev->ibdev, "QP %#x is not flushed\n",
				  ibqp->qp_num);
			qhca_dev_kill(dev->qdev, "it does not flush a QP");
		}
	}
}

/* ib_device_ops.drain_sq; connected QPs only, as a datagram needs an address */
void qhca_ib_drain_sq(struct ib_qp *ibqp)
{
	struct ib_ud_wr wr = { .wr.opcode = IB_WR_SEND };
	const struct ib_send_wr *bad;
	struct drain drain;

	wr.wr.wr_cqe = &drain.cqe;
	if (drain_begin(ibqp, &drain))
		drain_end(ibqp, &to_qqp(ibqp)->sq, ibqp->send_cq, &drain,
			  ib_post_send(ibqp, &wr.wr, &bad));
}

/* ib_device_ops.drain_rq; QPs without an SRQ only */
void qhca_ib_drain_rq(struct ib_qp *ibqp)
{
	const struct ib_recv_wr *bad;
	struct ib_recv_wr wr = {};
	struct drain drain;

	wr.wr_cqe = &drain.cqe;
	if (drain_begin(ibqp, &drain))
		drain_end(ibqp, &to_qqp(ibqp)->rq, ibqp->recv_cq, &drain,
			  ib_post_recv(ibqp, &wr, &bad));
}
