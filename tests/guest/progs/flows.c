/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What rules can do besides selecting a QP: tags, drops, VLAN stripping; and
 * which headers and actions are refused.  One raw packet QP that sends to a
 * group and has the rule for it.
 *
 * Prints {"tag": N, "cvlan": N, "len": N, "dropped": BOOL, "refused": "..."}:
 * "refused" names a specification that was not answered with EOPNOTSUPP.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "qv.h"

#define LEN 68

static const uint8_t group[6] = { 3, 0, 0, 0, 0, 0x42 };

static struct ibv_cq_ex *cq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;

struct rule {
	struct ibv_flow_attr attr;
	uint8_t specs[256];
};

static struct rule rule_for_group(uint16_t priority)
{
	struct ibv_flow_spec_eth eth = {
		.type = IBV_FLOW_SPEC_ETH,
		.size = sizeof(eth),
	};
	struct rule r = {
		.attr = {
			.type = IBV_FLOW_ATTR_NORMAL,
			.size = sizeof(r.attr) + sizeof(eth),
			.priority = priority,
			.num_of_specs = 1,
			.port = 1,
		},
	};

	memcpy(eth.val.dst_mac, group, 6);
	memset(eth.mask.dst_mac, 0xff, 6);
	memcpy(r.specs, &eth, sizeof(eth));
	return r;
}

static void add(struct rule *r, const void *spec, size_t size)
{
	memcpy(r->specs + r->attr.size - sizeof(r->attr), spec, size);
	r->attr.size += size;
	r->attr.num_of_specs++;
}

static struct ibv_flow *must(struct rule *r)
{
	struct ibv_flow *flow = ibv_create_flow(qp, &r->attr);

	if (!flow)
		qv_die("create_flow", errno);
	return flow;
}

static void make(struct qv_dev *d)
{
	struct ibv_cq_init_attr_ex cq_attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_FLOW_TAG | IBV_WC_EX_WITH_CVLAN |
			    IBV_WC_EX_WITH_BYTE_LEN,
	};
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_RAW_PACKET,
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1,
			 .max_recv_sge = 1, .max_inline_data = LEN },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_CREATE_FLAGS,
		.create_flags = IBV_QP_CREATE_CVLAN_STRIPPING,
		.pd = d->pd,
	};
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	cq = ibv_create_cq_ex(d->ctx, &cq_attr);
	if (!cq)
		qv_die("create_cq_ex", errno);
	init.send_cq = init.recv_cq = ibv_cq_ex_to_cq(cq);
	qp = ibv_create_qp_ex(d->ctx, &init);
	if (!qp)
		qv_die("create_qp_ex", errno);
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PORT))
		qv_die("INIT", errno);
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE))
		qv_die("RTR", errno);
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE))
		qv_die("RTS", errno);
	mr = qv_mr(d, 4096, IBV_ACCESS_LOCAL_WRITE);
}

/* Send a tagged frame to the group; true if it came back. */
static bool round_trip(uint32_t *tag, uint16_t *cvlan, uint32_t *len)
{
	uint8_t frame[LEN] = { [12] = 0x81, 0x00, 0x60, 0x07, 0x88, 0xb5 };
	struct ibv_sge r = { .addr = (uintptr_t)mr->addr, .length = 4096,
			     .lkey = mr->lkey };
	struct ibv_recv_wr rwr = { .sg_list = &r, .num_sge = 1 }, *rbad;
	struct ibv_sge s = { .addr = (uintptr_t)frame, .length = LEN };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .sg_list = &s, .num_sge = 1,
		.send_flags = IBV_SEND_INLINE,
	}, *bad;
	struct timespec start, now;
	struct ibv_poll_cq_attr poll = {};
	bool got = false;

	memcpy(frame, group, 6);
	if (ibv_post_recv(qp, &rwr, &rbad))
		qv_die("post_recv", errno);
	if (ibv_post_send(qp, &wr, &bad))
		qv_die("post_send", errno);
	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		if (!ibv_start_poll(cq, &poll)) {
			if (cq->status)
				qv_die("completion", cq->status);
			*tag = ibv_wc_read_flow_tag(cq);
			*cvlan = ibv_wc_read_cvlan(cq);
			*len = ibv_wc_read_byte_len(cq);
			ibv_end_poll(cq);
			got = true;
		}
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while (!got && now.tv_sec - start.tv_sec < 2);
	return got;
}

/* The name of a specification that was accepted, or failed otherwise; or "". */
static const char *refusals(void)
{
	static const struct ibv_flow_spec_tunnel vxlan = {
		.type = IBV_FLOW_SPEC_VXLAN_TUNNEL, .size = sizeof(vxlan),
	};
	static const struct ibv_flow_spec_gre gre = {
		.type = IBV_FLOW_SPEC_GRE, .size = sizeof(gre),
	};
	static const struct ibv_flow_spec_mpls mpls = {
		.type = IBV_FLOW_SPEC_MPLS, .size = sizeof(mpls),
	};
	static const struct ibv_flow_spec_esp esp = {
		.type = IBV_FLOW_SPEC_ESP, .size = sizeof(esp),
	};
	static const struct ibv_flow_spec_eth inner = {
		.type = IBV_FLOW_SPEC_ETH | IBV_FLOW_SPEC_INNER,
		.size = sizeof(inner),
	};
	static const struct {
		const char *name;
		const void *spec;
		size_t size;
	} no[] = {
		{ "VXLAN", &vxlan, sizeof(vxlan) },
		{ "GRE", &gre, sizeof(gre) },
		{ "MPLS", &mpls, sizeof(mpls) },
		{ "ESP", &esp, sizeof(esp) },
		{ "INNER", &inner, sizeof(inner) },
	};
	size_t i;

	for (i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		struct rule r = rule_for_group(3);

		add(&r, no[i].spec, no[i].size);
		if (ibv_create_flow(qp, &r.attr) || errno != EOPNOTSUPP)
			return no[i].name;
	}
	return "";
}

int main(void)
{
	struct ibv_flow_spec_action_tag tag = {
		.type = IBV_FLOW_SPEC_ACTION_TAG, .size = sizeof(tag),
		.tag_id = 0xabcdef,
	};
	struct ibv_flow_spec_action_drop drop = {
		.type = IBV_FLOW_SPEC_ACTION_DROP, .size = sizeof(drop),
	};
	struct rule tagged = rule_for_group(2), dropped = rule_for_group(1);
	uint32_t got_tag = 0, len = 0, unused;
	struct ibv_flow *t, *d;
	uint16_t cvlan = 0, none;
	struct qv_dev dev;
	bool back;

	qv_open(&dev);
	make(&dev);
	add(&tagged, &tag, sizeof(tag));
	add(&dropped, &drop, sizeof(drop));
	t = must(&tagged);
	if (!round_trip(&got_tag, &cvlan, &len))
		qv_die("no frame", ETIMEDOUT);
	d = must(&dropped);
	back = round_trip(&unused, &none, &unused);
	printf("{\"tag\": %u, \"cvlan\": %u, \"len\": %u, \"dropped\": %s, "
	       "\"refused\": \"%s\"}\n", got_tag, cvlan, len,
	       back ? "false" : "true", refusals());
	if (ibv_destroy_flow(d) || ibv_destroy_flow(t) || ibv_destroy_qp(qp))
		qv_die("destroy", errno);
	return 0;
}
