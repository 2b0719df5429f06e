/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Multicast groups by plain verbs, on one adapter: which QPs get which
 * datagrams, IPv4 and IPv6, with and without the sender, and what is refused.
 *
 * Prints {"members": N, "blocked": N, "refused": "..."}: bits of the QPs that
 * got the datagram; QP 0 sends, 0 to 2 are attached, 3 is not.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qv.h"

#define QPS 4
#define QKEY 0x11111111
#define BUF 4096

struct member {
	struct ibv_qp *qp;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t buf[BUF];
};

static struct qv_dev dev;
static struct member m[QPS];

static void make(struct member *x, uint32_t flags)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = flags,
		.pd = dev.pd,
	};
	struct ibv_qp_attr a = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = QKEY,
	};

	x->cq = ibv_create_cq(dev.ctx, 8, NULL, NULL, 0);
	if (!x->cq)
		qv_die("create_cq", errno);
	init.send_cq = init.recv_cq = x->cq;
	x->qp = ibv_create_qp_ex(dev.ctx, &init);
	if (!x->qp)
		qv_die("create_qp_ex", errno);
	x->mr = ibv_reg_mr(dev.pd, x->buf, BUF, IBV_ACCESS_LOCAL_WRITE);
	if (!x->mr)
		qv_die("reg_mr", errno);
	if (ibv_modify_qp(x->qp, &a, IBV_QP_STATE | IBV_QP_PORT |
			  IBV_QP_QKEY | IBV_QP_PKEY_INDEX))
		qv_die("INIT", errno);
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(x->qp, &a, IBV_QP_STATE))
		qv_die("RTR", errno);
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(x->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN))
		qv_die("RTS", errno);
}

static void unmake(struct member *x)
{
	if (ibv_destroy_qp(x->qp) || ibv_destroy_cq(x->cq) ||
	    ibv_dereg_mr(x->mr))
		qv_die("destroy", errno);
}

/* QP 0 sends to the group; returns the QPs that got it. */
static unsigned int round_trip(const union ibv_gid *gid)
{
	struct ibv_ah_attr ah_attr = {
		.is_global = 1, .port_num = 1,
		.grh = { .dgid = *gid, .sgid_index = dev.gid_index,
			 .hop_limit = 1 },
	};
	struct ibv_ah *ah = ibv_create_ah(dev.pd, &ah_attr);
	struct ibv_sge sge = { .addr = (uintptr_t)m[0].buf + 2048, .length = 8,
			       .lkey = m[0].mr->lkey };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_SIGNALED,
	}, *bad;
	unsigned int got = 0, i;
	struct ibv_wc wc;

	if (!ah)
		qv_die("create_ah", errno);
	for (i = 0; i < QPS; i++) {
		struct ibv_sge r = { .addr = (uintptr_t)m[i].buf, .length = 48,
				     .lkey = m[i].mr->lkey };
		struct ibv_recv_wr rwr = { .wr_id = 7, .sg_list = &r,
					   .num_sge = 1 }, *rbad;

		memset(m[i].buf, 0, 48);
		if (ibv_post_recv(m[i].qp, &rwr, &rbad))
			qv_die("post_recv", errno);
	}
	memcpy(m[0].buf + 2048, "to all!", 8);
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = 0xffffff;
	wr.wr.ud.remote_qkey = QKEY;
	if (ibv_post_send(m[0].qp, &wr, &bad))
		qv_die("post_send", errno);
	for (i = 0; i < QPS; i++) {
		int n = i ? 1 : 2;

		while (n-- && qv_wait(m[i].cq, &wc, i ? 300 : 1000)) {
			if (wc.status)
				qv_die("completion", wc.status);
			if (wc.opcode == IBV_WC_RECV &&
			    !memcmp(m[i].buf + 40, "to all!", 8) &&
			    wc.src_qp == m[0].qp->qp_num)
				got |= 1u << i;
		}
	}
	ibv_destroy_ah(ah);
	return got;
}

static const char *expect(const char *what, int ret, int want)
{
	static char text[80];

	if (ret == want)
		return NULL;
	snprintf(text, sizeof(text), "%s: %d", what, ret);
	return text;
}

/* What must be refused; NULL if all is. */
static const char *refusals(const union ibv_gid *gid)
{
	union ibv_gid no = { .raw = { 0xfe, 0x80, [15] = 1 } };
	struct ibv_qp_cap cap = { .max_send_wr = 1, .max_send_sge = 1,
				  .max_recv_wr = 1, .max_recv_sge = 1 };
	const char *bad = NULL;
	struct qv_qp rc;

	qv_qp_create(&dev, &rc, IBV_QPT_RC, &cap);
	if (!bad)
		bad = expect("not a group", ibv_attach_mcast(m[0].qp, &no, 0),
			     EINVAL);
	if (!bad)
		bad = expect("RC", ibv_attach_mcast(rc.qp, gid, 0), EINVAL);
	if (!bad)
		bad = expect("not attached", ibv_detach_mcast(m[3].qp, gid, 0),
			     EINVAL);
	if (!bad)
		bad = expect("twice", ibv_attach_mcast(m[0].qp, gid, 0), 0);
	if (!bad)
		bad = expect("a member goes", ibv_destroy_qp(m[1].qp), EBUSY);
	qv_qp_destroy(&rc);
	return bad;
}

int main(int argc, char **argv)
{
	union ibv_gid gid = { .raw = { [10] = 0xff, 0xff, 239, 1, 2, 3 } };
	unsigned int members, blocked, i;
	const char *bad;

	if (argc > 1 && !strcmp(argv[1], "6"))
		gid = (union ibv_gid){ .raw = { 0xff, 0x0e, [15] = 0x77 } };
	qv_open(&dev);
	for (i = 0; i < QPS; i++)
		make(&m[i], 0);
	for (i = 0; i < 3; i++)
		if (ibv_attach_mcast(m[i].qp, &gid, 0))
			qv_die("attach_mcast", errno);
	/* with another LID it is another attachment to the same group */
	if (ibv_attach_mcast(m[1].qp, &gid, 1) ||
	    ibv_detach_mcast(m[1].qp, &gid, 1))
		qv_die("another LID", errno);
	members = round_trip(&gid);
	bad = refusals(&gid);
	for (i = 0; i < 3; i++)
		if (ibv_detach_mcast(m[i].qp, &gid, 0))
			qv_die("detach_mcast", errno);
	if (round_trip(&gid))
		qv_die("received after detach", 0);
	unmake(&m[0]);
	make(&m[0], IBV_QP_CREATE_BLOCK_SELF_MCAST_LB);
	for (i = 0; i < 3; i++)
		if (ibv_attach_mcast(m[i].qp, &gid, 0))
			qv_die("attach_mcast", errno);
	blocked = round_trip(&gid);
	if (ibv_attach_mcast(m[2].qp, &gid, 1))
		qv_die("another LID", errno);
	/* the kernel cleans up the rest: QPs are still attached */
	printf("{\"members\": %u, \"blocked\": %u, \"refused\": \"%s\"}\n",
	       members, blocked, bad ? bad : "");
	return 0;
}
