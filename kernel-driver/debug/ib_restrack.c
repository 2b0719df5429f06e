// SPDX-License-Identifier: GPL-2.0
/*
 * "rdma resource show": -r adds the contexts as the device has them (struct
 * qhca_qpc and so on), -dd the buffer tables.
 */
#include <linux/capability.h>
#include <net/netlink.h>
#include <rdma/rdma_netlink.h>
#include <rdma/restrack.h>

#include "../ib/qhca_ib.h"
#include "debug.h"
#include "ib_debug.h"

static int restrack_fill_raw(struct sk_buff *msg, struct qhca_ib_dev *dev,
			     u8 opcode, u32 num, void *ctx, u32 size)
{
	int err = qhca_aq_query(dev->qdev, opcode, num, ctx, size);

	return err ? err : nla_put(msg, RDMA_NLDEV_ATTR_RES_RAW, size, ctx);
}

static int restrack_fill_qp_raw(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct qhca_qpc qpc;

	return restrack_fill_raw(msg, to_qdev(ibqp->device), QHCA_CMD_QUERY_QP,
				 to_qqp(ibqp)->qpn, &qpc, sizeof(qpc));
}

static int restrack_fill_cq_raw(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct qhca_cqc cqc;

	return restrack_fill_raw(msg, to_qdev(ibcq->device), QHCA_CMD_QUERY_CQ,
				 to_qcq(ibcq)->cqn, &cqc, sizeof(cqc));
}

static int restrack_fill_srq_raw(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct qhca_srqc srqc;

	return restrack_fill_raw(msg, to_qdev(ibsrq->device),
				 QHCA_CMD_QUERY_SRQ, to_qsrq(ibsrq)->srqn,
				 &srqc, sizeof(srqc));
}

static int restrack_fill_mr_raw(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_mpt mpt;

	return restrack_fill_raw(msg, to_qdev(ibmr->device), QHCA_CMD_QUERY_MR,
				 ibmr->rkey, &mpt, sizeof(mpt));
}

/* The names of a buffer's attributes are "sq_form", "rq_hops" and so on. */
static int restrack_put_u32(struct sk_buff *msg, const char *prefix,
			    const char *name, u32 value)
{
	char full[32];

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	return rdma_nl_put_driver_u32(msg, full, value);
}

static int restrack_put_hex(struct sk_buff *msg, const char *prefix,
			    const char *name, u64 value)
{
	char full[32];

	snprintf(full, sizeof(full), "%s%s", prefix, name);
	return rdma_nl_put_driver_u64_hex(msg, full, value);
}

/*
 * Addresses and PSNs are private to the owner: any user may list all objects,
 * and the core, too, shows keys only to privileged users.
 */
static bool restrack_shows_secrets(void)
{
	return capable(CAP_NET_ADMIN);
}

/* An address, virtual or DMA. */
static int restrack_put_addr(struct sk_buff *msg, const char *prefix,
			     const char *name, u64 value)
{
	if (!restrack_shows_secrets())
		return 0;
	return restrack_put_hex(msg, prefix, name, value);
}

static int restrack_fill_table(struct sk_buff *msg, const char *prefix,
			       const struct qhca_buf_table *t)
{
	struct qhca_debug_field f[QHCA_DEBUG_TABLE_FIELDS];
	char full[32];
	unsigned int i;
	int err;

	qhca_debug_table_fields(t, f);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		if (f[i].secret && !restrack_shows_secrets())
			continue;
		snprintf(full, sizeof(full), "%s%s", prefix, f[i].name);
		if (f[i].text)
			err = rdma_nl_put_driver_string(msg, full, f[i].text);
		else if (f[i].hex)
			err = rdma_nl_put_driver_u64_hex(msg, full, f[i].value);
		else
			err = rdma_nl_put_driver_u32(msg, full,
						     min_t(u64, f[i].value,
							   U32_MAX));
		if (err)
			return -EMSGSIZE;
	}
	return 0;
}

/* va: the application's address; kernel queues have none */
static int restrack_fill_buf(struct sk_buff *msg, const char *prefix,
			     const struct qhca_ib_queue_buf *buf)
{
	if (buf->umem && restrack_put_addr(msg, prefix, "va",
					   buf->umem->address))
		return -EMSGSIZE;
	return restrack_fill_table(msg, prefix, qhca_ib_queue_buf_table(buf));
}

static int restrack_fill_ring(struct sk_buff *msg, const char *prefix,
			      const struct qhca_ib_ring *wq)
{
	if (!wq->stride)
		return 0;
	if (restrack_put_u32(msg, prefix, "depth", BIT(wq->shift)) ||
	    restrack_put_u32(msg, prefix, "stride", BIT(wq->stride)))
		return -EMSGSIZE;
	return restrack_fill_buf(msg, prefix, &wq->buf);
}

/* The device's context; a dead device returns none. */
static bool restrack_query(struct ib_device *ibdev, u8 opcode, u32 num,
			   void *ctx, u32 size)
{
	return !qhca_aq_query(to_qdev(ibdev)->qdev, opcode, num, ctx, size);
}

static int restrack_fill_qpc(struct sk_buff *msg, const struct qhca_ib_qp *qp,
			     const struct qhca_qpc *c)
{
	if (restrack_put_u32(msg, "", "uar", le32_to_cpu(c->uar)))
		return -EMSGSIZE;
	if (qp->sq.stride &&
	    (restrack_put_u32(msg, "", "sq_head", le32_to_cpu(c->sq_head)) ||
	     restrack_put_u32(msg, "", "sq_next", le32_to_cpu(c->sq_next)) ||
	     restrack_put_u32(msg, "", "sq_tail", le32_to_cpu(c->sq_tail))))
		return -EMSGSIZE;
	if (qp->rq.stride &&
	    (restrack_put_u32(msg, "", "rq_head", le32_to_cpu(c->rq_head)) ||
	     restrack_put_u32(msg, "", "rq_tail", le32_to_cpu(c->rq_tail)) ||
	     restrack_put_addr(msg, "", "rq_dbrec", le64_to_cpu(c->rq_dbrec))))
		return -EMSGSIZE;
	if (qhca_ib_qp_is_ud(qp) || qhca_ib_qp_is_raw(qp))
		return 0;
	if (restrack_shows_secrets() &&
	    (restrack_put_u32(msg, "", "snd_psn", le32_to_cpu(c->snd_psn)) ||
	     restrack_put_u32(msg, "", "una_psn", le32_to_cpu(c->una_psn)) ||
	     restrack_put_u32(msg, "", "exp_psn", le32_to_cpu(c->exp_psn))))
		return -EMSGSIZE;
	if (restrack_put_u32(msg, "", "msn", le32_to_cpu(c->msn)) ||
	    restrack_put_u32(msg, "", "retry_left", c->retry_left) ||
	    restrack_put_u32(msg, "", "rnr_left", c->rnr_left) ||
	    restrack_put_u32(msg, "", "req_state", c->req_state) ||
	    restrack_put_u32(msg, "", "rsp_state", c->rsp_state) ||
	    restrack_put_u32(msg, "", "rd_outstanding", c->rd_outstanding) ||
	    restrack_put_u32(msg, "", "syndrome", c->syndrome))
		return -EMSGSIZE;
	return 0;
}

static int restrack_fill_cqc(struct sk_buff *msg, const struct qhca_cqc *c)
{
	if (restrack_put_u32(msg, "", "uar", le32_to_cpu(c->uar)) ||
	    restrack_put_u32(msg, "", "eqn", le32_to_cpu(c->eqn)) ||
	    restrack_put_u32(msg, "", "prod", le32_to_cpu(c->prod)) ||
	    restrack_put_u32(msg, "", "cons", le32_to_cpu(c->cons)) ||
	    restrack_put_u32(msg, "", "arm", c->arm) ||
	    restrack_put_u32(msg, "", "state", c->state) ||
	    restrack_put_addr(msg, "", "dbrec", le64_to_cpu(c->dbrec)))
		return -EMSGSIZE;
	return 0;
}

static int restrack_fill_srqc(struct sk_buff *msg, const struct qhca_srqc *c)
{
	if (restrack_put_u32(msg, "", "uar", le32_to_cpu(c->uar)) ||
	    restrack_put_u32(msg, "", "head", le32_to_cpu(c->head)) ||
	    restrack_put_u32(msg, "", "tail", le32_to_cpu(c->tail)) ||
	    restrack_put_u32(msg, "", "limit", le32_to_cpu(c->limit)) ||
	    restrack_put_u32(msg, "", "state", c->state) ||
	    restrack_put_addr(msg, "", "dbrec", le64_to_cpu(c->dbrec)))
		return -EMSGSIZE;
	return 0;
}

static struct nlattr *restrack_begin(struct sk_buff *msg)
{
	return nla_nest_start(msg, RDMA_NLDEV_ATTR_DRIVER);
}

static int restrack_end(struct sk_buff *msg, struct nlattr *nest, int err)
{
	if (err)
		nla_nest_cancel(msg, nest);
	else
		nla_nest_end(msg, nest);
	return err;
}

static int restrack_fill_qp(struct sk_buff *msg, struct ib_qp *ibqp)
{
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct nlattr *nest = restrack_begin(msg);
	struct qhca_qpc qpc;
	int err;

	if (!nest)
		return -EMSGSIZE;
	err = restrack_fill_ring(msg, "sq_", &qp->sq);
	if (!err)
		err = restrack_fill_ring(msg, "rq_", &qp->rq);
	if (!err && restrack_query(ibqp->device, QHCA_CMD_QUERY_QP, qp->qpn,
				   &qpc, sizeof(qpc)))
		err = restrack_fill_qpc(msg, qp, &qpc);
	return restrack_end(msg, nest, err);
}

static int restrack_fill_cq(struct sk_buff *msg, struct ib_cq *ibcq)
{
	struct qhca_ib_cq *cq = to_qcq(ibcq);
	struct nlattr *nest = restrack_begin(msg);
	struct qhca_cqc cqc;
	int err;

	if (!nest)
		return -EMSGSIZE;
	err = restrack_put_u32(msg, "", "cqn", cq->cqn);
	if (!err) {
		mutex_lock(&cq->resize);
		err = restrack_put_u32(msg, "", "depth", BIT(cq->shift));
		if (!err)
			err = restrack_fill_buf(msg, "", &cq->buf);
		mutex_unlock(&cq->resize);
	}
	if (!err && restrack_query(ibcq->device, QHCA_CMD_QUERY_CQ, cq->cqn,
				   &cqc, sizeof(cqc)))
		err = restrack_fill_cqc(msg, &cqc);
	return restrack_end(msg, nest, err);
}

static int restrack_fill_srq(struct sk_buff *msg, struct ib_srq *ibsrq)
{
	struct qhca_ib_srq *srq = to_qsrq(ibsrq);
	struct nlattr *nest = restrack_begin(msg);
	struct qhca_srqc srqc;
	int err;

	if (!nest)
		return -EMSGSIZE;
	err = restrack_put_u32(msg, "", "srqn", srq->srqn);
	if (!err) {
		mutex_lock(&srq->resize);
		err = restrack_put_u32(msg, "", "depth", BIT(srq->shift));
		if (!err)
			err = restrack_put_u32(msg, "", "stride",
					       BIT(srq->stride));
		if (!err)
			err = restrack_fill_buf(msg, "", &srq->buf);
		if (!err)
			err = restrack_fill_buf(msg, "index_", &srq->idx);
		mutex_unlock(&srq->resize);
	}
	if (!err && restrack_query(ibsrq->device, QHCA_CMD_QUERY_SRQ, srq->srqn,
				   &srqc, sizeof(srqc)))
		err = restrack_fill_srqc(msg, &srqc);
	return restrack_end(msg, nest, err);
}

static int restrack_fill_mr(struct sk_buff *msg, struct ib_mr *ibmr)
{
	struct qhca_ib_mr *mr = to_qmr(ibmr);
	struct nlattr *nest = restrack_begin(msg);
	int err;

	if (!nest)
		return -EMSGSIZE;
	mutex_lock(&to_qdev(ibmr->device)->mr_lock);
	err = restrack_put_hex(msg, "", "access", mr->access);
	if (!err && mr->umem)
		err = restrack_put_addr(msg, "", "va", mr->umem->address);
	if (!err && (mr->umem || (mr->odp && mr->table.nmem)))
		err = restrack_fill_table(msg, "", &mr->table);
	if (!err && mr->odp)
		err = restrack_put_u32(msg, "", "on_demand", 1);
	if (!err && mr->dm)
		err = restrack_put_hex(msg, "", "dm_offset", mr->dm_offset);
	if (!err && mr->pages)
		err = restrack_put_u32(msg, "", "max_pages", mr->max_pages);
	mutex_unlock(&to_qdev(ibmr->device)->mr_lock);
	return restrack_end(msg, nest, err);
}

const struct ib_device_ops qhca_ib_restrack_ops = {
	.fill_res_cq_entry = restrack_fill_cq,
	.fill_res_cq_entry_raw = restrack_fill_cq_raw,
	.fill_res_mr_entry = restrack_fill_mr,
	.fill_res_mr_entry_raw = restrack_fill_mr_raw,
	.fill_res_qp_entry = restrack_fill_qp,
	.fill_res_qp_entry_raw = restrack_fill_qp_raw,
	.fill_res_srq_entry = restrack_fill_srq,
	.fill_res_srq_entry_raw = restrack_fill_srq_raw,
};
