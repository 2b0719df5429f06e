// SPDX-License-Identifier: GPL-2.0
/*
 * "rdma resource show": with -r the contexts as the device has them
 * (struct qhca_qpc and so on), with -dd how their buffers are described.
 */
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "qhca_ib.h"

static int fill_raw(struct sk_buff *msg, struct qhca_ib_dev *dev, u8 opcode,
		    u32 num, void *ctx, u32 size)
{
	int err = qhca_aq_query(dev->qdev, opcode, num, ctx, size);

	return err ? err : nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, size, ctx);
}

int qhca_ib_fill_res_qp_entry_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct qhca_qpc qpc;

	return fill_raw(msg, to_qdev(ibqp->device), QHCA_CMD_QUERY_QP,
			to_qqp(ibqp)->qpn, &qpc, sizeof(qpc));
}

int qhca_ib_fill_res_cq_entry_raw(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct qhca_cqc cqc;

	return fill_raw(msg, to_qdev(ibcq->device), QHCA_CMD_QUERY_CQ,
			to_qcq(ibcq)->cqn, &cqc, sizeof(cqc));
}

int qhca_ib_fill_res_srq_entry_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct qhca_srqc srqc;

	return fill_raw(msg, to_qdev(ibsrq->device), QHCA_CMD_QUERY_SRQ,
			to_qsrq(ibsrq)->srqn, &srqc, sizeof(srqc));
}

int qhca_ib_fill_res_mr_entry_raw(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_mpt mpt;

	return fill_raw(msg, to_qdev(ibmr->device), QHCA_CMD_QUERY_MR,
			ibmr->rkey, &mpt, sizeof(mpt));
}

/* The names of a buffer's attributes are "sq_form", "rq_hops" and so on. */
static int put_u32(struct sk_buff *msg, const char *prefix, const char *name,
		   u32 value)
{
	char full[32];

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	return rdma_nl_put_driver_u32(msg, full, value);
}

static int fill_table(struct sk_buff *msg, const char *prefix,
		      const struct qhca_table *t)
{
	char full[32];

	snprintf(full, sizeof(full), "%sform", prefix);
	if (rdma_nl_put_driver_string(msg, full,
				      qhca_form_name(t->plan.form)) ||
	    put_u32(msg, prefix, "hops", t->plan.hops) ||
	    put_u32(msg, prefix, "page_shift", t->plan.page_shift) ||
	    put_u32(msg, prefix, "table_shift", t->plan.table_shift) ||
	    put_u32(msg, prefix, "pages",
		    min_t(u64, t->plan.npages, U32_MAX)))
		return -EMSGSIZE;
	return 0;
}

static int fill_wq(struct sk_buff *msg, const char *prefix,
		   const struct qhca_ib_wq *wq)
{
	if (!wq->stride)
		return 0;
	if (put_u32(msg, prefix, "depth", BIT(wq->shift)) ||
	    put_u32(msg, prefix, "stride", BIT(wq->stride)))
		return -EMSGSIZE;
	return fill_table(msg, prefix, qhca_ib_buf_table(&wq->buf));
}

static struct nlattr *driver_begin(struct sk_buff *msg)
{
	return nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
}

static int driver_end(struct sk_buff *msg, struct nlattr *nest, int err)
{
	if (err)
		nla_nest_cancel(msg, nest);
	else
		nla_nest_end(msg, nest);
	return err;
}

int qhca_ib_fill_res_qp_entry(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct nlattr *nest = driver_begin(msg);
	int err;

	if (!nest)
		return -EMSGSIZE;
	err = fill_wq(msg, "sq_", &qp->sq);
	if (!err)
		err = fill_wq(msg, "rq_", &qp->rq);
	return driver_end(msg, nest, err);
}

int qhca_ib_fill_res_cq_entry(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	struct nlattr *nest = driver_begin(msg);
	int err;

	if (!nest)
		return -EMSGSIZE;
	err = put_u32(msg, "", "cqn", cq->cqn);
	if (!err) {
		mutex_lock(&cq->resize);
		err = fill_table(msg, "", qhca_ib_buf_table(&cq->buf));
		mutex_unlock(&cq->resize);
	}
	return driver_end(msg, nest, err);
}

int qhca_ib_fill_res_srq_entry(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	struct nlattr *nest = driver_begin(msg);
	int err;

	if (!nest)
		return -EMSGSIZE;
	err = put_u32(msg, "", "srqn", srq->srqn);
	if (!err) {
		mutex_lock(&srq->resize);
		err = fill_table(msg, "", qhca_ib_buf_table(&srq->buf));
		mutex_unlock(&srq->resize);
	}
	return driver_end(msg, nest, err);
}

int qhca_ib_fill_res_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_ib_mr *mr = to_qmr(ibmr);
	struct nlattr *nest = driver_begin(msg);
	int err = 0;

	if (!nest)
		return -EMSGSIZE;
	mutex_lock(&to_qdev(ibmr->device)->mr_lock);
	if (mr->umem)
		err = fill_table(msg, "", &mr->table);
	else if (mr->dm)
		err = rdma_nl_put_driver_u64_hex(msg, "dm_offset",
						 mr->dm_offset);
	mutex_unlock(&to_qdev(ibmr->device)->mr_lock);
	return driver_end(msg, nest, err);
}
