// SPDX-License-Identifier: GPL-2.0
/*
 * Page faults of the device, and prefetching for the application.
 *
 * Each QP has a work item of its own on an unbound workqueue: one that waits
 * for a page from the disk does not hold up the others.
 */
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <rdma/restrack.h>

#include "odp.h"
#include "qhca_ib_trace.h"

/* Look up an ODP MR by key; the caller puts its ref when done. */
static struct qhca_ib_odp *odp_get_by_key(struct qhca_ib_dev *dev, u32 key,
					  struct ib_pd *pd, int *err)
{
	struct qhca_ib_odp *odp = NULL;
	struct qhca_ib_mr *mr;

	*err = -ENOENT;
	mutex_lock(&dev->mr_lock);
	mr = xa_load(&dev->mrs, key >> QHCA_KEY_INDEX_SHIFT);
	if (mr && mr->key == key) {
		if (!mr->odp)
			*err = -EINVAL;
		else if (pd && mr->ibmr.pd != pd)
			*err = -EPERM;
		else
			odp = mr->odp;
	}
	if (odp)
		refcount_inc(&odp->ref.count);
	mutex_unlock(&dev->mr_lock);
	return odp;
}

/* Provide what the device asks for; 0 also if it should ask again. */
static int odp_provide(struct qhca_ib_dev *dev, const struct qhca_page_fault *f)
{
	u64 len = min_t(u64, le64_to_cpu(f->len), SZ_1M);
	u64 addr = le64_to_cpu(f->addr);
	unsigned int flags = f->flags & QHCA_PAGE_FAULT_WRITE ? QHCA_ODP_WRITE : 0;
	struct qhca_ib_odp *odp;
	int ret;

	odp = odp_get_by_key(dev, le32_to_cpu(f->key), NULL, &ret);
	if (!odp)
		return ret;
	ret = qhca_odp_map(odp, addr, len, flags);
	/* There may be no memory past the faulting page. */
	if (ret < 0 && ret != -EAGAIN)
		ret = qhca_odp_map(odp, addr, 1, flags);
	trace_qhca_page_fault(dev, odp->key, addr, len,
			      flags & QHCA_ODP_WRITE, ret);
	if (ret > 0)
		atomic64_add(ret, &odp->faults);
	if (ret < 0 && ret != -EAGAIN)
		ibdev_dbg(&dev->ibdev, "MR %#x: no page at %#llx, %s: %d\n",
			  odp->key, addr, flags ? "write" : "read", ret);
	qhca_ib_ref_put(&odp->ref);
	return ret == -EAGAIN ? 0 : min(ret, 0);
}

static void odp_resume(struct qhca_ib_qp *qp, unsigned int side,
		       const struct qhca_page_fault *f, bool failed)
{
	struct qhca_ib_dev *dev = to_qdev(qp->ibqp.device);
	struct qhca_aq_req req = {
		.opcode = QHCA_CMD_RESUME_PAGE_FAULT,
		.obj = qp->qpn,
		.arg = side | (failed ? QHCA_RESUME_FAILED : 0) |
		       (u64)le32_to_cpu(f->token) << QHCA_RESUME_TOKEN_SHIFT,
	};

	/* failing because the QP no longer waits is fine */
	qhca_aq_exec(dev->qdev, &req);
}

/* INIT_WORK() function of qp->page_fault_work; owns a reference to the QP. */
void qhca_ib_page_fault_work(struct work_struct *work)
{
	struct qhca_ib_qp *qp = container_of(work, struct qhca_ib_qp,
					     page_fault_work);
	struct qhca_ib_dev *dev = to_qdev(qp->ibqp.device);
	struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
	unsigned int side;

	if (!qhca_aq_query(dev->qdev, QHCA_CMD_QUERY_PAGE_FAULT, qp->qpn, f,
			   sizeof(f))) {
		for (side = 0; side < QHCA_PAGE_FAULT_SIDES; side++) {
			if (f[side].flags & QHCA_PAGE_FAULT_VALID)
				odp_resume(qp, side, &f[side],
					   odp_provide(dev, &f[side]));
		}
	}
	qhca_ib_ref_put(&qp->ref);
}

/* QHCA_EV_PAGE_FAULT; takes over a reference to @qp. */
void qhca_ib_page_fault(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	/* If it is queued, it will handle this fault, too. */
	if (!queue_work(dev->odp_wq, &qp->page_fault_work))
		qhca_ib_ref_put(&qp->ref);
}

/* ------------------------------------------------------------- advice -- */

struct advice {
	struct work_struct work;
	unsigned int flags;
	u32 n;
	struct {
		struct qhca_ib_odp *odp;
		u64 addr;
		u32 len;
	} item[] __counted_by(n);
};

/*
 * As qhca_odp_map(). Memory that changes while it is mapped is tried again: HMM
 * gives up after a second, which a CPU that the host does not run may spend on
 * a single change, and applications do not expect -EAGAIN of advice.
 */
static int odp_advice_map(struct qhca_ib_odp *odp, u64 addr, u32 len,
			  unsigned int flags)
{
	int ret, tries = 5;

	do {
		ret = qhca_odp_map(odp, addr, len, flags);
	} while (ret == -EAGAIN && --tries && !fatal_signal_pending(current));
	return ret;
}

static int odp_advice_do(struct advice *a)
{
	int err = 0, ret;
	u32 i;

	for (i = 0; i < a->n; i++) {
		ret = odp_advice_map(a->item[i].odp, a->item[i].addr,
				     a->item[i].len, a->flags);
		if (ret > 0)
			atomic64_add(ret, &a->item[i].odp->prefetched);
		else if (ret && !err)
			err = ret;
	}
	return err;
}

static void odp_advice_free(struct advice *a)
{
	u32 i;

	for (i = 0; i < a->n; i++) {
		if (a->item[i].odp)
			qhca_ib_ref_put(&a->item[i].odp->ref);
	}
	kvfree(a);
}

static void odp_advice_work(struct work_struct *work)
{
	struct advice *a = container_of(work, struct advice, work);

	odp_advice_do(a);
	odp_advice_free(a);
}

static int odp_advice_fill(struct qhca_ib_dev *dev, struct ib_pd *pd,
			   struct advice *a, const struct ib_sge *sge)
{
	struct qhca_ib_odp *odp;
	int err;
	u32 i;

	for (i = 0; i < a->n; i++) {
		odp = odp_get_by_key(dev, sge[i].lkey, pd, &err);
		if (!odp)
			return err;
		a->item[i].odp = odp;
		a->item[i].addr = sge[i].addr;
		a->item[i].len = sge[i].length;
		if ((a->flags & QHCA_ODP_WRITE) && !odp->writable)
			return -EPERM;
	}
	return 0;
}

/**
 * qhca_ib_advise_mr - ib_device_ops.advise_mr: prefetch
 * @pd: PD of the MRs
 * @advice: PREFETCH (to read), PREFETCH_WRITE, PREFETCH_NO_FAULT (only what is
 *	in memory)
 * @flags: FLUSH: return when it is done; else it is done asynchronously
 * @sge: ranges
 * @num_sge: their number
 * @attrs: unused
 *
 * Return: 0; -EOPNOTSUPP (advice), -EINVAL (an MR without paging), -ENOENT (no
 * such MR), -EPERM (an MR of another PD, or one that may not be written); with
 * FLUSH also as qhca_odp_map(); -ENOMEM.
 */
int qhca_ib_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		      u32 flags, struct ib_sge *sge, u32 num_sge,
		      struct uverbs_attr_bundle *attrs)
{
	struct qhca_ib_dev *dev = to_qdev(pd->device);
	unsigned int how = 0;
	struct advice *a;
	int err;

	switch (advice) {
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH:
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_WRITE:
		how = QHCA_ODP_WRITE;
		break;
	case IB_UVERBS_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		how = QHCA_ODP_SNAPSHOT;
		break;
	default:
		return -EOPNOTSUPP;
	}
	a = kvzalloc(struct_size(a, item, num_sge), GFP_KERNEL_ACCOUNT);
	if (!a)
		return -ENOMEM;
	a->n = num_sge;
	a->flags = how;
	err = odp_advice_fill(dev, pd, a, sge);
	if (!err && !(flags & IB_UVERBS_ADVISE_MR_FLAG_FLUSH)) {
		INIT_WORK(&a->work, odp_advice_work);
		queue_work(dev->odp_wq, &a->work);
		return 0;
	}
	if (!err)
		err = odp_advice_do(a);
	odp_advice_free(a);
	return err;
}

/* ib_device_ops.fill_stat_mr_entry: counters for "rdma statistic show mr" */
int qhca_ib_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_ib_odp *odp = to_qmr(ibmr)->odp;
	struct nlattr *nest;

	if (!odp)
		return 0;
	nest = nla_nest_start(msg, RDMA_NLDEV_ATTR_STAT_HWCOUNTERS);
	if (!nest)
		return -EMSGSIZE;
	if (rdma_nl_stat_hwcounter_entry(msg, "page_faults",
					 atomic64_read(&odp->faults)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_invalidations",
					 atomic64_read(&odp->invalidations)) ||
	    rdma_nl_stat_hwcounter_entry(msg, "page_prefetch",
					 atomic64_read(&odp->prefetched))) {
		nla_nest_cancel(msg, nest);
		return -EMSGSIZE;
	}
	nla_nest_end(msg, nest);
	return 0;
}
