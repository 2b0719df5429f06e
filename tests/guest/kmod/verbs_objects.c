// SPDX-License-Identifier: GPL-2.0
/*
 * Objects of a kernel user: loading this module creates one of each kind and
 * destroys all of them again. It fails if one could not be created, with
 * nothing left behind; the driver's allocations can be made to fail meanwhile.
 */
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static char *netdev;
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "interface of the RDMA device");

/* Rings that do not fit into the smallest allocation. */
#define DEPTH		300
#define PAGES		600

struct objects {
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_srq *srq;
	struct ib_qp *qp[3];
	struct ib_mr *mr;
};

/* An error pointer counts as none; returns its error. */
#define KEEP(p)						\
({							\
	int err_ = PTR_ERR_OR_ZERO(p);			\
							\
	if (err_)					\
		(p) = NULL;				\
	err_;						\
})

static int create_qp(struct objects *o, int i, enum ib_qp_type type,
		     struct ib_srq *srq)
{
	struct ib_qp_init_attr attr = {
		.qp_type = type, .send_cq = o->cq, .recv_cq = o->cq,
		.srq = srq, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = {
			.max_send_wr = DEPTH, .max_recv_wr = srq ? 0 : DEPTH,
			.max_send_sge = 2, .max_recv_sge = srq ? 0 : 2,
		},
	};

	o->qp[i] = ib_create_qp(o->pd, &attr);
	return KEEP(o->qp[i]);
}

static int create_all(struct ib_device *dev, struct objects *o)
{
	struct ib_srq_init_attr srq = {
		.attr = { .max_wr = DEPTH, .max_sge = 2 },
		.srq_type = IB_SRQT_BASIC,
	};
	int err;

	o->pd = ib_alloc_pd(dev, 0);
	err = KEEP(o->pd);
	if (err)
		return err;
	o->cq = ib_alloc_cq(dev, NULL, 4 * DEPTH, 0, IB_POLL_WORKQUEUE);
	err = KEEP(o->cq);
	if (err)
		return err;
	o->srq = ib_create_srq(o->pd, &srq);
	err = KEEP(o->srq);
	if (err)
		return err;
	err = create_qp(o, 0, IB_QPT_RC, NULL);
	if (!err)
		err = create_qp(o, 1, IB_QPT_RC, o->srq);
	if (!err)
		err = create_qp(o, 2, IB_QPT_UD, NULL);
	if (err)
		return err;
	o->mr = ib_alloc_mr(o->pd, IB_MR_TYPE_MEM_REG, PAGES);
	return KEEP(o->mr);
}

static void destroy_all(struct objects *o)
{
	int i;

	if (o->mr)
		ib_dereg_mr(o->mr);
	for (i = ARRAY_SIZE(o->qp) - 1; i >= 0; i--) {
		if (o->qp[i])
			ib_destroy_qp(o->qp[i]);
	}
	if (o->srq)
		ib_destroy_srq(o->srq);
	if (o->cq)
		ib_free_cq(o->cq);
	if (o->pd)
		ib_dealloc_pd(o->pd);
}

static int __init verbs_objects_init(void)
{
	struct objects o = {};
	struct net_device *ndev;
	struct ib_device *dev;
	int err;

	if (!netdev)
		return -EINVAL;
	ndev = dev_get_by_name(&init_net, netdev);
	if (!ndev)
		return -ENODEV;
	dev = ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN);
	dev_put(ndev);
	if (!dev)
		return -ENODEV;
	err = create_all(dev, &o);
	destroy_all(&o);
	ib_device_put(dev);
	return err;
}
module_init(verbs_objects_init);

static void __exit verbs_objects_exit(void)
{
}
module_exit(verbs_objects_exit);

MODULE_DESCRIPTION("Creates and destroys objects of a kernel user");
MODULE_LICENSE("GPL");
