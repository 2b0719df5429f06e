// SPDX-License-Identifier: GPL-2.0
/*
 * Tests flow steering: the device's match of the verbs' lists of headers, and
 * which lists are refused.
 */
#include "fake_device.h"

/* Included, not linked, as the driver exports nothing for tests. */
#include "../ib/flow.c"

/* What flow.c uses from other files of the driver. */
int qhca_ib_destroy(struct qhca_ib_dev *dev, u8 opcode, u32 obj)
{
	qhca_aq_destroy_sure(dev->qdev, opcode, obj);
	return 0;
}

#ifndef __KERNEL__
/* In the module, qp_attr_kunit.c has it. */
int qhca_ib_udata_none(struct ib_udata *udata)
{
	return 0;
}
#endif

#define FL_SPECS	6

/* A rule and the buffer for its specs, as uverbs passes them: packed. */
struct fl_rule {
	struct ib_flow_attr *attr;
	u8 *next;
};

static struct fl_rule fl_rule_new(struct kunit *test)
{
	size_t size = sizeof(struct ib_flow_attr) +
		      FL_SPECS * sizeof(union ib_flow_spec);
	struct fl_rule rule;

	rule.attr = kunit_kzalloc(test, size, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, rule.attr);
	rule.attr->port = QHCA_IB_PORT;
	rule.next = (u8 *)rule.attr->flows;
	return rule;
}

static void *fl_add(struct fl_rule *rule, u32 type, u16 size)
{
	union ib_flow_spec *spec = (void *)rule->next;

	memset(spec, 0, size);
	spec->type = type;
	spec->size = size;
	rule->next += size;
	rule->attr->num_of_specs++;
	return spec;
}

static int fl_fill(const struct fl_rule *rule, struct qhca_flow *flow)
{
	memset(flow, 0, sizeof(*flow));
	return flow_fill(flow, rule->attr);
}

static void fl_test_datagrams(struct kunit *test)
{
	struct fl_rule rule = fl_rule_new(test);
	struct ib_flow_spec_tcp_udp *ports;
	struct ib_flow_spec_action_tag *tag;
	struct ib_flow_spec_ipv4 *ip;
	struct ib_flow_spec_eth *eth;
	struct qhca_flow flow;

	eth = fl_add(&rule, IB_FLOW_SPEC_ETH, sizeof(*eth));
	memcpy(eth->val.dst_mac, "\x02\x03\x04\x05\x06\x07", 6);
	memset(eth->mask.dst_mac, 0xff, 6);
	ip = fl_add(&rule, IB_FLOW_SPEC_IPV4, sizeof(*ip));
	ip->val.dst_ip = cpu_to_be32(0x0a000002);
	ip->mask.dst_ip = cpu_to_be32(~0U);
	ip->val.flags = IB_IPV4_DONT_FRAG;
	ip->mask.flags = IB_IPV4_DONT_FRAG | IB_IPV4_MORE_FRAG;
	ip->val.ttl = 1;
	ports = fl_add(&rule, IB_FLOW_SPEC_UDP, sizeof(*ports));
	ports->val.dst_port = cpu_to_be16(4791);
	ports->mask.dst_port = cpu_to_be16(0xffff);
	tag = fl_add(&rule, IB_FLOW_SPEC_ACTION_TAG, sizeof(*tag));
	tag->tag_id = 0x01020304;
	fl_add(&rule, IB_FLOW_SPEC_ACTION_DROP, 8);
	rule.attr->priority = 0xfffe;
	rule.attr->flags = IB_FLOW_ATTR_FLAGS_DONT_TRAP;
	KUNIT_ASSERT_EQ(test, fl_fill(&rule, &flow), 0);
	KUNIT_EXPECT_EQ(test, flow.type, QHCA_FLOW_NORMAL);
	KUNIT_EXPECT_EQ(test, flow.flags,
			QHCA_FLOW_F_DROP | QHCA_FLOW_F_DONT_TRAP);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(flow.priority), 0xfffe);
	KUNIT_EXPECT_EQ(test, le32_to_cpu(flow.tag), 0x01020304);
	KUNIT_EXPECT_EQ(test, flow.value.dmac[5], 7);
	KUNIT_EXPECT_EQ(test, flow.mask.dmac[0], 0xff);
	KUNIT_EXPECT_EQ(test, flow.mask.tagged, 0);
	KUNIT_EXPECT_MEMEQ(test, flow.value.dst_ip + 12, "\x0a\x00\x00\x02", 4);
	KUNIT_EXPECT_EQ(test, flow.value.dst_ip[0] | flow.mask.dst_ip[0], 0);
	/* the device has the flags as on the wire */
	KUNIT_EXPECT_EQ(test, flow.value.ip_flags, 2);
	KUNIT_EXPECT_EQ(test, flow.mask.ip_flags, 3);
	KUNIT_EXPECT_EQ(test, flow.value.ttl, 1);
	KUNIT_EXPECT_EQ(test, flow.mask.ttl, 0);
	KUNIT_EXPECT_EQ(test, flow.value.l3, 4);
	KUNIT_EXPECT_EQ(test, flow.value.l4, IPPROTO_UDP);
	KUNIT_EXPECT_EQ(test, flow.mask.l3 & flow.mask.l4, 0xff);
	KUNIT_EXPECT_EQ(test, flow.value.dst_port, cpu_to_be16(4791));
	KUNIT_EXPECT_EQ(test, flow.mask.src_port, 0);
}

static void fl_test_ipv6_and_tag(struct kunit *test)
{
	struct fl_rule rule = fl_rule_new(test);
	struct ib_flow_spec_ipv6 *ip;
	struct ib_flow_spec_eth *eth;
	struct qhca_flow flow;

	/* specs in any order */
	ip = fl_add(&rule, IB_FLOW_SPEC_IPV6, sizeof(*ip));
	memset(ip->val.src_ip, 0xfd, 16);
	memset(ip->mask.src_ip, 0xff, 16);
	ip->val.flow_label = cpu_to_be32(0xfff12345);
	ip->mask.flow_label = cpu_to_be32(~0U);
	ip->val.hop_limit = 255;
	ip->mask.hop_limit = 255;
	eth = fl_add(&rule, IB_FLOW_SPEC_ETH, sizeof(*eth));
	eth->val.vlan_tag = cpu_to_be16(42);
	eth->mask.vlan_tag = cpu_to_be16(0xfff);
	KUNIT_ASSERT_EQ(test, fl_fill(&rule, &flow), 0);
	KUNIT_EXPECT_EQ(test, flow.value.l3, 6);
	KUNIT_EXPECT_EQ(test, flow.mask.l4, 0);
	/* a label has 20 bits: the device refuses more */
	KUNIT_EXPECT_EQ(test, flow.value.flow_label, cpu_to_be32(0x12345));
	KUNIT_EXPECT_EQ(test, flow.mask.flow_label, cpu_to_be32(0xfffff));
	KUNIT_EXPECT_EQ(test, flow.value.ttl & flow.mask.ttl, 255);
	KUNIT_EXPECT_EQ(test, flow.value.vlan, cpu_to_be16(42));
	KUNIT_EXPECT_EQ(test, flow.value.tagged & flow.mask.tagged, 1);
}

/* A layer twice, in both versions, and what no rule may have. */
static void fl_test_refused(struct kunit *test)
{
	static const u32 layers[][2] = {
		{ IB_FLOW_SPEC_ETH, IB_FLOW_SPEC_ETH },
		{ IB_FLOW_SPEC_IPV4, IB_FLOW_SPEC_IPV6 },
		{ IB_FLOW_SPEC_IPV4, IB_FLOW_SPEC_IPV4 },
		{ IB_FLOW_SPEC_TCP, IB_FLOW_SPEC_UDP },
		{ IB_FLOW_SPEC_ACTION_TAG, IB_FLOW_SPEC_ACTION_TAG },
	};
	static const u32 unknown[] = {
		0, IB_FLOW_SPEC_ESP, IB_FLOW_SPEC_INNER | IB_FLOW_SPEC_ETH,
		IB_FLOW_SPEC_ACTION_COUNT, ~0U,
	};
	struct ib_flow_spec_ipv4 *ip;
	struct fl_rule rule;
	struct qhca_flow flow;
	int i;

	for (i = 0; i < ARRAY_SIZE(layers); i++) {
		rule = fl_rule_new(test);
		fl_add(&rule, layers[i][0], sizeof(union ib_flow_spec));
		KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), 0);
		fl_add(&rule, layers[i][1], sizeof(union ib_flow_spec));
		KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), -EINVAL);
	}
	for (i = 0; i < ARRAY_SIZE(unknown); i++) {
		rule = fl_rule_new(test);
		fl_add(&rule, unknown[i], sizeof(union ib_flow_spec));
		KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), -EOPNOTSUPP);
	}
	rule = fl_rule_new(test);
	ip = fl_add(&rule, IB_FLOW_SPEC_IPV4, sizeof(*ip));
	ip->mask.flags = 1;
	KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), -EINVAL);
	ip->mask.flags = 0xff;
	KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), -EINVAL);

	rule = fl_rule_new(test);
	rule.attr->port = 0;
	KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), -EINVAL);
	rule.attr->port = QHCA_IB_PORT + 1;
	KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), -EINVAL);
	rule.attr->port = QHCA_IB_PORT;
	rule.attr->type = IB_FLOW_ATTR_SNIFFER + 1;
	KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), -EINVAL);
	rule.attr->type = IB_FLOW_ATTR_NORMAL;
	rule.attr->flags = IB_FLOW_ATTR_FLAGS_EGRESS;
	KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), -EOPNOTSUPP);
	rule.attr->flags = 0;
	/* no header at all: every frame */
	KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), 0);
}

/* The other types do not match by headers, but have actions. */
static void fl_test_types(struct kunit *test)
{
	struct qhca_flow flow;
	struct fl_rule rule;
	int type;

	for (type = IB_FLOW_ATTR_ALL_DEFAULT; type <= IB_FLOW_ATTR_SNIFFER;
	     type++) {
		rule = fl_rule_new(test);
		rule.attr->type = type;
		fl_add(&rule, IB_FLOW_SPEC_ACTION_TAG,
		       sizeof(struct ib_flow_spec_action_tag));
		KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), 0);
		KUNIT_EXPECT_EQ(test, flow.type, type);
		fl_add(&rule, IB_FLOW_SPEC_TCP,
		       sizeof(struct ib_flow_spec_tcp_udp));
		KUNIT_EXPECT_EQ(test, fl_fill(&rule, &flow), -EINVAL);
	}
}

/* The object: made and destroyed, and nothing left if that fails. */
static void fl_test_create(struct kunit *test)
{
	static const u8 types[] = { QHCA_QPT_RAW, QHCA_QPT_RSS };
	struct qhca_fake *fake = qhca_fake_new(test);
	struct fl_rule rule = fl_rule_new(test);
	struct qhca_ib_dev *dev;
	struct qhca_ib_qp *qp;
	struct ib_flow *flow;
	int i;

	dev = kunit_kzalloc(test, sizeof(*dev), GFP_KERNEL);
	qp = kunit_kzalloc(test, sizeof(*qp), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dev);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	dev->qdev = &fake->dev;
	qp->ibqp.device = &dev->ibdev;
	qp->qpn = 55;
	KUNIT_ASSERT_NOT_NULL(test, qhca_fake_add(fake, QHCA_FAKE_QP, 55));
	qp->type = QHCA_QPT_RC;
	flow = qhca_ib_create_flow(&qp->ibqp, rule.attr, NULL);
	KUNIT_EXPECT_EQ(test, PTR_ERR(flow), -EOPNOTSUPP);
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		qp->type = types[i];
		qhca_fake_fail(fake, 1, -ENOMEM);
		flow = qhca_ib_create_flow(&qp->ibqp, rule.attr, NULL);
		KUNIT_EXPECT_EQ(test, PTR_ERR(flow), -ENOMEM);
		qhca_fake_fail(fake, 0, 0);
		qhca_fake_fail_alloc(1);
		flow = qhca_ib_create_flow(&qp->ibqp, rule.attr, NULL);
		KUNIT_EXPECT_EQ(test, PTR_ERR(flow), -ENOMEM);
		KUNIT_EXPECT_EQ(test, qhca_fake_count(fake, QHCA_FAKE_FLOW), 0);
		flow = qhca_ib_create_flow(&qp->ibqp, rule.attr, NULL);
		KUNIT_ASSERT_FALSE(test, IS_ERR(flow));
		flow->device = &dev->ibdev;	/* as the core does */
		KUNIT_EXPECT_EQ(test, qhca_fake_count(fake, QHCA_FAKE_FLOW), 1);
		KUNIT_EXPECT_EQ(test, qhca_ib_destroy_flow(flow), 0);
		KUNIT_EXPECT_EQ(test, qhca_fake_count(fake, QHCA_FAKE_FLOW), 0);
	}
	KUNIT_EXPECT_EQ(test, fake->wrong, 0);
}

static struct kunit_case fl_cases[] = {
	KUNIT_CASE(fl_test_datagrams),
	KUNIT_CASE(fl_test_ipv6_and_tag),
	KUNIT_CASE(fl_test_refused),
	KUNIT_CASE(fl_test_types),
	KUNIT_CASE(fl_test_create),
	{}
};

static struct kunit_suite fl_suite = {
	.name = "qhca_flow",
	.test_cases = fl_cases,
};

kunit_test_suite(fl_suite);
