// SPDX-License-Identifier: GPL-2.0
/*
 * Tests filters: locations, destinations, and that a filter that cannot be
 * added leaves those that there are, here and in the device.
 */
#include "fake_netdev.h"

/* Included, not linked, as the driver exports nothing for tests. */
#include "../net/ntuple.c"
#ifndef __KERNEL__
/* What it uses: in the module, other tests include these. */
#include "../net/rss.c"
#include "../net/ntuple_match.c"
#endif

#define NT_CHANNELS	4

struct nt_rig {
	struct qhca_fake *fake;
	struct qhca_netdev *priv;
	struct qhca_rss_ctx ctx;
};

static struct nt_rig *nt_rig_new(struct kunit *test)
{
	struct nt_rig *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->fake = qhca_fake_new(test);
	r->priv = qhca_fake_netdev(test, r->fake, NT_CHANNELS);
	r->priv->params.channels = NT_CHANNELS;
	for (i = 0; i < QHCA_MAX_CHANNELS; i++)
		r->priv->ch[i].rqn = 100 + i;
	INIT_LIST_HEAD(&r->priv->rss_list);
	qhca_rss_init(&r->priv->rss, NT_CHANNELS);
	qhca_rss_init(&r->ctx, NT_CHANNELS);
	r->ctx.id = 7;
	list_add_tail(&r->ctx.list, &r->priv->rss_list);
	return r;
}

static void nt_up(struct kunit *test, struct nt_rig *r)
{
	KUNIT_ASSERT_EQ(test, qhca_rss_start(r->priv), 0);
	qhca_ntuple_start(r->priv);
	r->priv->up = true;
}

static void nt_down(struct kunit *test, struct nt_rig *r)
{
	r->priv->up = false;
	qhca_ntuple_stop(r->priv);
	qhca_rss_stop(r->priv);
	KUNIT_EXPECT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_FLOW), 0);
	KUNIT_EXPECT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_QP), 0);
	KUNIT_EXPECT_EQ(test, r->fake->wrong, 0);
}

/* A rule for datagrams to @port. */
static struct ethtool_rx_flow_spec nt_rule(u32 location, u64 cookie, u16 port)
{
	struct ethtool_rx_flow_spec fs;

	memset(&fs, 0, sizeof(fs));
	fs.flow_type = UDP_V4_FLOW;
	fs.location = location;
	fs.ring_cookie = cookie;
	fs.h_u.udp_ip4_spec.pdst = cpu_to_be16(port);
	fs.m_u.udp_ip4_spec.pdst = cpu_to_be16(0xffff);
	return fs;
}

static int nt_insert(struct nt_rig *r, u32 location, u64 cookie, u16 port)
{
	struct ethtool_rx_flow_spec fs = nt_rule(location, cookie, port);

	return qhca_ntuple_insert(r->priv, &fs, 0);
}

/* The device's flow of the rule at @location; NULL: it has none. */
static const struct qhca_flow *nt_flow(struct nt_rig *r, u32 location)
{
	const struct qhca_ntuple *rule = r->priv->ntuple[location];
	const struct qhca_fake_obj *obj;

	if (!rule || !rule->made)
		return NULL;
	obj = qhca_fake_find(r->fake, QHCA_FAKE_FLOW, rule->flow);
	return obj ? (const struct qhca_flow *)obj->state : NULL;
}

static void nt_test_locations(struct kunit *test)
{
	struct nt_rig *r = nt_rig_new(test);
	struct ethtool_rx_flow_spec fs;
	u32 i;

	fs = nt_rule(RX_CLS_LOC_FIRST, 0, 1);
	KUNIT_ASSERT_EQ(test, qhca_ntuple_insert(r->priv, &fs, 0), 0);
	KUNIT_EXPECT_EQ(test, fs.location, 0);
	fs = nt_rule(RX_CLS_LOC_LAST, 0, 2);
	KUNIT_ASSERT_EQ(test, qhca_ntuple_insert(r->priv, &fs, 0), 0);
	KUNIT_EXPECT_EQ(test, fs.location, QHCA_NTUPLE_MAX - 1);
	fs = nt_rule(RX_CLS_LOC_ANY, 0, 3);
	KUNIT_ASSERT_EQ(test, qhca_ntuple_insert(r->priv, &fs, 0), 0);
	KUNIT_EXPECT_EQ(test, fs.location, 1);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_count(r->priv), 3);

	KUNIT_EXPECT_EQ(test, nt_insert(r, QHCA_NTUPLE_MAX, 0, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, nt_insert(r, RX_CLS_LOC_SPECIAL - 1, 0, 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, nt_insert(r, RX_CLS_LOC_SPECIAL | 5, 0, 1),
			-EINVAL);
	for (i = 0; i < QHCA_NTUPLE_MAX - 3; i++)
		KUNIT_ASSERT_EQ(test, nt_insert(r, RX_CLS_LOC_ANY, 0, 10 + i),
				0);
	KUNIT_EXPECT_EQ(test, nt_insert(r, RX_CLS_LOC_ANY, 0, 9), -ENOSPC);
	KUNIT_EXPECT_EQ(test, nt_insert(r, RX_CLS_LOC_FIRST, 0, 9), -ENOSPC);
	KUNIT_EXPECT_EQ(test, nt_insert(r, RX_CLS_LOC_LAST, 0, 9), -ENOSPC);
	/* the same frames have another destination now */
	fs = nt_rule(RX_CLS_LOC_ANY, 2, 2);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_insert(r->priv, &fs, 0), 0);
	KUNIT_EXPECT_EQ(test, fs.location, QHCA_NTUPLE_MAX - 1);
	KUNIT_EXPECT_EQ(test, r->priv->ntuple[fs.location]->fs.ring_cookie, 2);
	/* one that is there is replaced */
	KUNIT_EXPECT_EQ(test, nt_insert(r, 17, 1, 1), 0);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_count(r->priv), QHCA_NTUPLE_MAX);

	KUNIT_EXPECT_EQ(test, qhca_ntuple_delete(r->priv, QHCA_NTUPLE_MAX),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_delete(r->priv, ~0U), -EINVAL);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_delete(r->priv, 17), 0);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_delete(r->priv, 17), -ENOENT);
	qhca_ntuple_flush(r->priv);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_count(r->priv), 0);
}

static void nt_test_destinations(struct kunit *test)
{
	struct nt_rig *r = nt_rig_new(test);
	struct ethtool_rx_flow_spec fs;

	KUNIT_EXPECT_EQ(test, nt_insert(r, 0, NT_CHANNELS, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, nt_insert(r, 0, 0xffffffff, 1), -EINVAL);
	/* queue 0 of the first VF */
	KUNIT_EXPECT_EQ(test, nt_insert(r, 0, 1ULL << 32, 1), -EINVAL);
	KUNIT_EXPECT_EQ(test, nt_insert(r, 0, RX_CLS_FLOW_WAKE, 1),
			-EOPNOTSUPP);
	fs = nt_rule(0, 0, 1);
	fs.flow_type |= FLOW_RSS;
	KUNIT_EXPECT_EQ(test, qhca_ntuple_insert(r->priv, &fs, 8), -ENOENT);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_insert(r->priv, &fs, ~0U), -ENOENT);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_count(r->priv), 0);

	KUNIT_ASSERT_EQ(test, qhca_ntuple_insert(r->priv, &fs, 7), 0);
	KUNIT_EXPECT_TRUE(test, qhca_ntuple_uses(r->priv, 7));
	KUNIT_EXPECT_FALSE(test, qhca_ntuple_uses(r->priv, 0));
	KUNIT_ASSERT_EQ(test, nt_insert(r, 1, 2, 2), 0);
	KUNIT_ASSERT_EQ(test, nt_insert(r, 2, RX_CLS_FLOW_DISC, 3), 0);
	nt_up(test, r);
	KUNIT_ASSERT_NOT_NULL(test, nt_flow(r, 0));
	KUNIT_EXPECT_EQ(test, le32_to_cpu(nt_flow(r, 0)->qpn),
			r->ctx.qp[0].qpn);
	KUNIT_ASSERT_NOT_NULL(test, nt_flow(r, 1));
	KUNIT_EXPECT_EQ(test, le32_to_cpu(nt_flow(r, 1)->qpn),
			r->priv->ch[2].direct.qpn);
	KUNIT_EXPECT_EQ(test, le16_to_cpu(nt_flow(r, 1)->priority), 1);
	KUNIT_ASSERT_NOT_NULL(test, nt_flow(r, 2));
	KUNIT_EXPECT_EQ(test, nt_flow(r, 2)->flags & QHCA_FLOW_F_DROP,
			QHCA_FLOW_F_DROP);
	nt_down(test, r);
	/* rules outlive the queues */
	nt_up(test, r);
	KUNIT_EXPECT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_FLOW), 3);
	nt_down(test, r);
	qhca_ntuple_flush(r->priv);
}

/* "On error nothing has changed": the old filter works, whatever failed. */
static void nt_test_failing_insert(struct kunit *test)
{
	struct nt_rig *r = nt_rig_new(test);
	u32 nth;
	int err;

	nt_up(test, r);
	KUNIT_ASSERT_EQ(test, nt_insert(r, 3, 0, 1111), 0);
	/* without another one there */
	for (nth = 1;; nth++) {
		qhca_fake_fail(r->fake, nth, -EINVAL);
		err = nt_insert(r, 4, 1, 2222);
		qhca_fake_fail(r->fake, 0, 0);
		if (!err)
			break;
		KUNIT_ASSERT_EQ(test, err, -EINVAL);
		KUNIT_EXPECT_TRUE(test, !r->priv->ntuple[4]);
		KUNIT_EXPECT_EQ(test,
				qhca_fake_count(r->fake, QHCA_FAKE_FLOW), 1);
	}
	/* RQT and QP of the queue, and the flow */
	KUNIT_EXPECT_EQ(test, nth, 4);
	/* in place of one: its removal, RQT, QP, flow; the first cannot fail */
	for (nth = 2;; nth++) {
		qhca_fake_fail(r->fake, nth, -ENOMEM);
		err = nt_insert(r, 3, 2, 3333);
		qhca_fake_fail(r->fake, 0, 0);
		if (!err)
			break;
		/* the device's table is full, or memory is short */
		KUNIT_ASSERT_TRUE(test, err == -ENOSPC || err == -ENOMEM);
		KUNIT_ASSERT_NOT_NULL(test, nt_flow(r, 3));
		KUNIT_EXPECT_EQ(test, nt_flow(r, 3)->value.dst_port,
				cpu_to_be16(1111));
	}
	KUNIT_EXPECT_EQ(test, nth, 5);
	KUNIT_EXPECT_EQ(test, nt_flow(r, 3)->value.dst_port, cpu_to_be16(3333));
	for (nth = 1;; nth++) {
		qhca_fake_fail_alloc(nth);
		err = nt_insert(r, 3, 3, 4444);
		qhca_fake_fail_alloc(0);
		if (!err)
			break;
		KUNIT_ASSERT_EQ(test, err, -ENOMEM);
		KUNIT_ASSERT_NOT_NULL(test, nt_flow(r, 3));
		KUNIT_EXPECT_EQ(test, nt_flow(r, 3)->value.dst_port,
				cpu_to_be16(3333));
	}
	/* the rule, and the QP's context */
	KUNIT_EXPECT_EQ(test, nth, 3);
	nt_down(test, r);
	qhca_ntuple_flush(r->priv);
}

/* A dead device: rules stay, and nothing is leaked or destroyed twice. */
static void nt_test_dead(struct kunit *test)
{
	struct nt_rig *r = nt_rig_new(test);
	u32 i;

	nt_up(test, r);
	for (i = 0; i < 8; i++)
		KUNIT_ASSERT_EQ(test, nt_insert(r, i, i % NT_CHANNELS, i), 0);
	qhca_fake_fail(r->fake, 1, -EIO);
	KUNIT_EXPECT_EQ(test, nt_insert(r, 2, 1, 99), -EIO);
	KUNIT_EXPECT_EQ(test, qhca_ntuple_delete(r->priv, 3), 0);
	r->priv->up = false;
	qhca_ntuple_stop(r->priv);
	qhca_rss_stop(r->priv);
	qhca_fake_fail(r->fake, 0, 0);
	nt_up(test, r);
	KUNIT_EXPECT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_FLOW), 7);
	nt_down(test, r);
	qhca_ntuple_flush(r->priv);
}

static struct kunit_case nt_cases[] = {
	KUNIT_CASE(nt_test_locations),
	KUNIT_CASE(nt_test_destinations),
	KUNIT_CASE(nt_test_failing_insert),
	KUNIT_CASE(nt_test_dead),
	{}
};

static struct kunit_suite nt_suite = {
	.name = "qhca_ntuple",
	.test_cases = nt_cases,
};

kunit_test_suite(nt_suite);
