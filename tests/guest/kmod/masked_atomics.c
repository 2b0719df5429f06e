// SPDX-License-Identifier: GPL-2.0
/*
 * Masked atomics, which only kernel verbs have: loading this module executes
 * some between two RC QPs of one adapter and fails if a result is wrong. The
 * log tells which one.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/etherdevice.h>
#include <linux/module.h>
#include <rdma/ib_cache.h>
#include <rdma/ib_verbs.h>

static char *netdev;
module_param(netdev, charp, 0444);
MODULE_PARM_DESC(netdev, "interface of the RDMA device");
static int gid_index;
module_param(gid_index, int, 0444);
MODULE_PARM_DESC(gid_index, "index of its GID");

#define WORD	512		/* offset of the remote word */
#define CMP	IB_WR_MASKED_ATOMIC_CMP_AND_SWP
#define ADD	IB_WR_MASKED_ATOMIC_FETCH_AND_ADD
#define ALL	U64_MAX

static const struct {
	enum ib_wr_opcode op;
	u64 before, compare_add, mask, swap, swap_mask, after;
} cases[] = {
	/* masks of all ones: as without */
	{ CMP, 5, 5, ALL, 6, ALL, 6 },
	{ CMP, 5, 4, ALL, 6, ALL, 5 },
	/* compare one byte, change another */
	{ CMP, 0x1122334455667788, 0xff88, 0xff, 0xaabbccddeeff0011,
	  0xff00000000000000, 0xaa22334455667788 },
	{ CMP, 0x1122334455667788, 0x87, 0xff, 0, ALL, 0x1122334455667788 },
	/* nothing to compare: always; nothing to change: never */
	{ CMP, 0x1234, 0x9999, 0, 0x5678, ALL, 0x5678 },
	{ CMP, 0x1234, 0x1234, ALL, 0x5678, 0, 0x1234 },
	/* no boundaries: a plain addition */
	{ ADD, ALL, 2, 0, 0, 0, 1 },
	/* each byte separately: no carry leaves it */
	{ ADD, 0x00ff00ff00ff00ff, 0x0101010101010101, 0x8080808080808080,
	  0, 0, 0x0100010001000100 },
	/* two halves */
	{ ADD, 0x00000001ffffffff, 0x0000000100000001, 0x8000000080000000,
	  0, 0, 0x0000000200000000 },
	/* each bit separately: exclusive or */
	{ ADD, 0xff00ff00f0f0f0f0, 0xffffffff00ff00ff, ALL, 0, 0,
	  0x00ff00fff00ff00f },
};

struct done {
	struct ib_cqe cqe;
	bool came;
	enum ib_wc_status status;
	enum ib_wc_opcode opcode;
};

static void on_done(struct ib_cq *cq, struct ib_wc *wc)
{
	struct done *d = container_of(wc->wr_cqe, struct done, cqe);

	d->status = wc->status;
	d->opcode = wc->opcode;
	d->came = true;
}

struct test {
	struct ib_device *dev;
	struct ib_pd *pd;
	struct ib_cq *cq;
	struct ib_qp *qp[2];
	struct ib_mr *mr;
	u8 *mem;
	dma_addr_t dma;
};

/* Post @wr and wait for its success. */
static int do_wr(struct test *t, struct ib_qp *qp, struct ib_send_wr *wr,
		 enum ib_wc_opcode opcode)
{
	struct done d = { .cqe.done = on_done };
	int i, ret;

	wr->wr_cqe = &d.cqe;
	wr->send_flags = IB_SEND_SIGNALED;
	ret = ib_post_send(qp, wr, NULL);
	if (ret) {
		pr_err("masked_atomics: post: %d\n", ret);
		return ret;
	}
	/* d may be reused only after the completion */
	for (i = 0; !d.came; i++) {
		ib_process_cq_direct(t->cq, -1);
		if (i == 5000)
			ib_drain_qp(qp);
		else if (!d.came)
			usleep_range(1000, 2000);
	}
	if (d.status || d.opcode != opcode) {
		pr_err("masked_atomics: status %s, opcode %d, not %d\n",
		       ib_wc_status_msg(d.status), d.opcode, opcode);
		return -EIO;
	}
	return 0;
}

static int connect_qp(struct test *t, struct ib_qp *qp, u32 dqpn)
{
	const struct ib_gid_attr *gid;
	struct ib_qp_attr attr = {
		.qp_state = IB_QPS_INIT, .port_num = 1,
		.qp_access_flags = IB_ACCESS_REMOTE_ATOMIC |
				   IB_ACCESS_REMOTE_READ |
				   IB_ACCESS_REMOTE_WRITE,
	};
	struct net_device *ndev;
	int ret;

	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_PORT |
			   IB_QP_PKEY_INDEX | IB_QP_ACCESS_FLAGS);
	if (ret)
		return ret;
	gid = rdma_get_gid_attr(t->dev, 1, gid_index);
	if (IS_ERR(gid))
		return PTR_ERR(gid);
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IB_QPS_RTR;
	attr.path_mtu = IB_MTU_1024;
	attr.dest_qp_num = dqpn;
	attr.max_dest_rd_atomic = 4;
	attr.min_rnr_timer = 12;
	attr.ah_attr.type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_port_num(&attr.ah_attr, 1);
	rdma_ah_set_grh(&attr.ah_attr, (union ib_gid *)&gid->gid, 0,
			gid_index, 64, 0);
	rcu_read_lock();
	ndev = rdma_read_gid_attr_ndev_rcu(gid);
	if (!IS_ERR(ndev))
		ether_addr_copy(attr.ah_attr.roce.dmac, ndev->dev_addr);
	rcu_read_unlock();
	ret = ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_AV |
			   IB_QP_PATH_MTU | IB_QP_DEST_QPN | IB_QP_RQ_PSN |
			   IB_QP_MAX_DEST_RD_ATOMIC | IB_QP_MIN_RNR_TIMER);
	rdma_put_gid_attr(gid);
	if (ret)
		return ret;
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IB_QPS_RTS;
	attr.timeout = 16;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.max_rd_atomic = 4;
	return ib_modify_qp(qp, &attr, IB_QP_STATE | IB_QP_TIMEOUT |
			    IB_QP_RETRY_CNT | IB_QP_RNR_RETRY |
			    IB_QP_SQ_PSN | IB_QP_MAX_QP_RD_ATOMIC);
}

static int reg_mr(struct test *t)
{
	struct ib_reg_wr wr = {
		.wr.opcode = IB_WR_REG_MR,
		.access = IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_ATOMIC,
	};
	struct scatterlist sg;
	int n;

	sg_init_table(&sg, 1);
	sg_dma_address(&sg) = t->dma;
	sg_dma_len(&sg) = PAGE_SIZE;
	t->mr = ib_alloc_mr(t->pd, IB_MR_TYPE_MEM_REG, 1);
	if (IS_ERR(t->mr)) {
		n = PTR_ERR(t->mr);
		t->mr = NULL;
		return n;
	}
	n = ib_map_mr_sg(t->mr, &sg, 1, NULL, PAGE_SIZE);
	if (n != 1)
		return -EINVAL;
	wr.mr = t->mr;
	wr.key = t->mr->rkey;
	return do_wr(t, t->qp[1], &wr.wr, IB_WC_REG_MR);
}

static int run_case(struct test *t, int i)
{
	struct ib_sge sge = { .addr = t->dma, .length = 8,
			      .lkey = t->pd->local_dma_lkey };
	struct ib_atomic_wr wr = {
		.wr = { .opcode = cases[i].op, .sg_list = &sge, .num_sge = 1 },
		.remote_addr = t->mr->iova + WORD, .rkey = t->mr->rkey,
		.compare_add = cases[i].compare_add, .swap = cases[i].swap,
		.compare_add_mask = cases[i].mask,
		.swap_mask = cases[i].swap_mask,
	};
	u64 *old = (u64 *)t->mem, *word = (u64 *)(t->mem + WORD);
	int ret;

	WRITE_ONCE(*old, ~cases[i].before);
	WRITE_ONCE(*word, cases[i].before);
	ret = do_wr(t, t->qp[0], &wr.wr, cases[i].op == CMP ?
		    IB_WC_MASKED_COMP_SWAP : IB_WC_MASKED_FETCH_ADD);
	if (ret)
		return ret;
	if (READ_ONCE(*old) != cases[i].before ||
	    READ_ONCE(*word) != cases[i].after) {
		pr_err("masked_atomics: case %d: %#llx came back, %#llx is there\n",
		       i, *old, *word);
		return -EBADMSG;
	}
	return 0;
}

static int run(struct test *t)
{
	struct ib_qp_init_attr init = {
		.qp_type = IB_QPT_RC, .sq_sig_type = IB_SIGNAL_REQ_WR,
		.cap = { .max_send_wr = 8, .max_recv_wr = 8,
			 .max_send_sge = 1, .max_recv_sge = 1 },
	};
	int i, ret;

	if (t->dev->attrs.masked_atomic_cap != IB_ATOMIC_HCA)
		return -EOPNOTSUPP;
	t->pd = ib_alloc_pd(t->dev, 0);
	if (IS_ERR(t->pd)) {
		ret = PTR_ERR(t->pd);
		t->pd = NULL;
		return ret;
	}
	t->cq = ib_alloc_cq(t->dev, NULL, 64, 0, IB_POLL_DIRECT);
	if (IS_ERR(t->cq)) {
		ret = PTR_ERR(t->cq);
		t->cq = NULL;
		return ret;
	}
	t->mem = dma_alloc_coherent(t->dev->dma_device, PAGE_SIZE, &t->dma,
				    GFP_KERNEL);
	if (!t->mem)
		return -ENOMEM;
	init.send_cq = t->cq;
	init.recv_cq = t->cq;
	for (i = 0; i < 2; i++) {
		t->qp[i] = ib_create_qp(t->pd, &init);
		if (IS_ERR(t->qp[i])) {
			ret = PTR_ERR(t->qp[i]);
			t->qp[i] = NULL;
			return ret;
		}
	}
	for (i = 0; i < 2; i++) {
		ret = connect_qp(t, t->qp[i], t->qp[!i]->qp_num);
		if (ret) {
			pr_err("masked_atomics: connect: %d\n", ret);
			return ret;
		}
	}
	ret = reg_mr(t);
	for (i = 0; !ret && i < ARRAY_SIZE(cases); i++)
		ret = run_case(t, i);
	if (!ret)
		pr_info("masked_atomics: %d cases are right\n", i);
	return ret;
}

static void take_down(struct test *t)
{
	int i;

	for (i = 0; i < 2; i++)
		if (t->qp[i])
			ib_destroy_qp(t->qp[i]);
	if (t->mr)
		ib_dereg_mr(t->mr);
	if (t->mem)
		dma_free_coherent(t->dev->dma_device, PAGE_SIZE, t->mem,
				  t->dma);
	if (t->cq)
		ib_free_cq(t->cq);
	if (t->pd)
		ib_dealloc_pd(t->pd);
}

static int __init masked_atomics_init(void)
{
	struct net_device *ndev;
	struct test t = { 0 };
	int ret;

	/* newer kernels do not export a lookup by name */
	ndev = netdev ? dev_get_by_name(&init_net, netdev) : NULL;
	if (!ndev)
		return -ENODEV;
	t.dev = ib_device_get_by_netdev(ndev, RDMA_DRIVER_UNKNOWN);
	dev_put(ndev);
	if (!t.dev)
		return -ENODEV;
	ret = run(&t);
	take_down(&t);
	ib_device_put(t.dev);
	return ret;
}

static void __exit masked_atomics_exit(void)
{
}

module_init(masked_atomics_init);
module_exit(masked_atomics_exit);
MODULE_DESCRIPTION("Test of masked atomics");
MODULE_LICENSE("GPL");
