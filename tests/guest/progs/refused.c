// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * refused: what docs/reference/verbs.md says is not supported.  Prints one JSON object:
 * for each the name of the error (0: it was not refused).
 */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>

#include "qv.h"

static struct qv_dev dev;
static struct ibv_cq *cq;
static const char *comma = "{";

static void say(const char *what, int err)
{
	printf("%s\"%s\": \"%s\"", comma, what, err ? strerrorname_np(err) : "0");
	comma = ",\n ";
}

static struct ibv_qp_init_attr_ex qp_attr(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type, .send_cq = cq, .recv_cq = cq, .pd = dev.pd,
		.comp_mask = IBV_QP_INIT_ATTR_PD,
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	return attr;
}

static void try_qp(const char *what, struct ibv_qp_init_attr_ex *attr)
{
	struct ibv_qp *qp;

	errno = 0;
	qp = ibv_create_qp_ex(dev.ctx, attr);
	say(what, qp ? 0 : errno);
	if (qp)
		ibv_destroy_qp(qp);
}

static void create(void)
{
	struct ibv_qp_init_attr_ex attr = qp_attr(IBV_QPT_DRIVER);
	static const struct {
		const char *name;
		enum ibv_qp_type type;
		uint32_t flags;
	} flags[] = {
		{ "IBV_QP_CREATE_SCATTER_FCS", IBV_QPT_RAW_PACKET,
		  IBV_QP_CREATE_SCATTER_FCS },
		{ "IBV_QP_CREATE_SOURCE_QPN", IBV_QPT_UD,
		  IBV_QP_CREATE_SOURCE_QPN },
		{ "IBV_QP_CREATE_PCI_WRITE_END_PADDING", IBV_QPT_RAW_PACKET,
		  IBV_QP_CREATE_PCI_WRITE_END_PADDING },
		{ "IBV_QP_CREATE_CVLAN_STRIPPING of RC", IBV_QPT_RC,
		  IBV_QP_CREATE_CVLAN_STRIPPING },
		{ "IBV_QP_CREATE_BLOCK_SELF_MCAST_LB of RC", IBV_QPT_RC,
		  IBV_QP_CREATE_BLOCK_SELF_MCAST_LB },
	};
	unsigned i;

	try_qp("IBV_QPT_DRIVER", &attr);
	attr = qp_attr(IBV_QPT_RAW_PACKET);
	attr.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
	attr.max_tso_header = 64;
	try_qp("IBV_QP_INIT_ATTR_MAX_TSO_HEADER", &attr);
	attr = qp_attr(IBV_QPT_UD);
	attr.comp_mask |= IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
	attr.send_ops_flags = IBV_QP_EX_WITH_TSO;
	try_qp("ibv_wr_send_tso", &attr);
	attr.send_ops_flags = IBV_QP_EX_WITH_RDMA_READ;
	try_qp("ibv_wr_rdma_read of UD", &attr);
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		attr = qp_attr(flags[i].type);
		attr.comp_mask |= IBV_QP_INIT_ATTR_CREATE_FLAGS;
		attr.create_flags = flags[i].flags;
		try_qp(flags[i].name, &attr);
	}
}

static void queues(void)
{
	struct ibv_cq_init_attr_ex cq_ex = {
		.cqe = 4, .comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS,
		.flags = IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN,
	};
	static const struct {
		const char *name;
		uint32_t flags;
	} flags[] = {
		{ "IBV_WQ_FLAGS_SCATTER_FCS", IBV_WQ_FLAGS_SCATTER_FCS },
		{ "IBV_WQ_FLAGS_DELAY_DROP", IBV_WQ_FLAGS_DELAY_DROP },
		{ "IBV_WQ_FLAGS_PCI_WRITE_END_PADDING",
		  IBV_WQ_FLAGS_PCI_WRITE_END_PADDING },
	};
	unsigned i;

	errno = 0;
	say("IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN",
	    ibv_create_cq_ex(dev.ctx, &cq_ex) ? 0 : errno);
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++) {
		struct ibv_wq_init_attr attr = {
			.wq_type = IBV_WQT_RQ, .max_wr = 4, .max_sge = 1,
			.pd = dev.pd, .cq = cq,
			.comp_mask = IBV_WQ_INIT_ATTR_FLAGS,
			.create_flags = flags[i].flags,
		};

		errno = 0;
		say(flags[i].name, ibv_create_wq(dev.ctx, &attr) ? 0 : errno);
	}
}

static void modify(void)
{
	const struct ibv_qp_cap cap = {
		.max_send_wr = 4, .max_recv_wr = 4,
		.max_send_sge = 1, .max_recv_sge = 1,
	};
	struct ibv_qp_rate_limit_attr limit = { .rate_limit = 1000 };
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS, .rate_limit = 1000,
		.path_mig_state = IBV_MIG_REARM, .cap = cap,
		.alt_port_num = 1, .alt_ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = dev.gid, .sgid_index = dev.gid_index,
				.hop_limit = 64,
			},
		},
	};
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_TSO, .send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_ece ece = {};
	struct qv_qp a, b;

	qv_rc_pair(&dev, &a, &b, &cap);
	say("IBV_QP_ALT_PATH",
	    ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_ALT_PATH));
	say("IBV_QP_PATH_MIG_STATE",
	    ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_PATH_MIG_STATE));
	say("IBV_QP_CAP", ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_CAP));
	say("IBV_QP_RATE_LIMIT",
	    ibv_modify_qp(a.qp, &attr, IBV_QP_STATE | IBV_QP_RATE_LIMIT));
	say("ibv_modify_qp_rate_limit", ibv_modify_qp_rate_limit(a.qp, &limit));
	say("ibv_query_ece", ibv_query_ece(a.qp, &ece));
	say("ibv_set_ece", ibv_set_ece(a.qp, &ece));
	say("IBV_WR_TSO", ibv_post_send(a.qp, &wr, &bad));
	wr.opcode = IBV_WR_DRIVER1;
	say("IBV_WR_DRIVER1", ibv_post_send(a.qp, &wr, &bad));
	wr.opcode = IBV_WR_SEND;
	wr.send_flags |= IBV_SEND_IP_CSUM;
	say("IBV_SEND_IP_CSUM of RC", ibv_post_send(a.qp, &wr, &bad));
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
}

int main(void)
{
	struct ibv_counters_init_attr counters = {};
	struct ibv_flow_action_esp_attr esp = {};

	qv_open(&dev);
	cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	if (!cq)
		qv_die("ibv_create_cq", errno);
	create();
	queues();
	modify();
	errno = 0;
	say("ibv_alloc_null_mr", ibv_alloc_null_mr(dev.pd) ? 0 : errno);
	errno = 0;
	say("ibv_create_counters",
	    ibv_create_counters(dev.ctx, &counters) ? 0 : errno);
	errno = 0;
	say("ibv_create_flow_action_esp",
	    ibv_create_flow_action_esp(dev.ctx, &esp) ? 0 : errno);
	printf("}\n");
	return 0;
}
