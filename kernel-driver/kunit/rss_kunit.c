// SPDX-License-Identifier: GPL-2.0
/*
 * Tests RSS contexts: the device's objects of each, whatever command or
 * allocation fails, and the fields that are hashed.
 */
#include "fake_netdev.h"

/* Included, not linked, as the driver exports nothing for tests. */
#include "../net/rss.c"

#define RS_CHANNELS	4
#define RS_CONTEXTS	2

struct rs_rig {
	struct qhca_fake *fake;
	struct qhca_netdev *priv;
	struct qhca_rss_ctx ctx[RS_CONTEXTS];
};

static struct rs_rig *rs_rig_new(struct kunit *test)
{
	struct rs_rig *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->fake = qhca_fake_new(test);
	r->priv = qhca_fake_netdev(test, r->fake, RS_CHANNELS);
	for (i = 0; i < QHCA_MAX_CHANNELS; i++)
		r->priv->ch[i].rqn = 100 + i;
	INIT_LIST_HEAD(&r->priv->rss_list);
	qhca_rss_init(&r->priv->rss, RS_CHANNELS);
	for (i = 0; i < RS_CONTEXTS; i++) {
		qhca_rss_init(&r->ctx[i], RS_CHANNELS);
		r->ctx[i].id = i + 1;
		list_add_tail(&r->ctx[i].list, &r->priv->rss_list);
	}
	return r;
}

/* The device has what @contexts contexts and @direct single queues need. */
static void rs_has(struct kunit *test, struct rs_rig *r, u32 contexts,
		   u32 direct)
{
	u32 qps = contexts + direct;

	KUNIT_ASSERT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_PD), !!qps);
	KUNIT_ASSERT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_RQT), qps);
	KUNIT_ASSERT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_QP), qps);
	KUNIT_ASSERT_EQ(test, r->fake->wrong, 0);
}

static void rs_test_start_and_stop(struct kunit *test)
{
	struct rs_rig *r = rs_rig_new(test);
	const struct qhca_fake_obj *qp, *rqt;
	const __le32 *rqns;
	u32 qpn, again, i;

	KUNIT_ASSERT_EQ(test, qhca_rss_start(r->priv), 0);
	rs_has(test, r, 1 + RS_CONTEXTS, 0);
	KUNIT_ASSERT_EQ(test, qhca_rss_direct(r->priv, 3, &qpn), 0);
	KUNIT_ASSERT_EQ(test, qhca_rss_direct(r->priv, 3, &again), 0);
	KUNIT_EXPECT_EQ(test, qpn, again);
	rs_has(test, r, 1 + RS_CONTEXTS, 1);

	qp = qhca_fake_find(r->fake, QHCA_FAKE_QP, r->priv->rss.qp[0].qpn);
	KUNIT_ASSERT_NOT_NULL(test, qp);
	rqt = qhca_fake_find(r->fake, QHCA_FAKE_RQT, qp->uses[0]);
	KUNIT_ASSERT_NOT_NULL(test, rqt);
	KUNIT_ASSERT_EQ(test, rqt->len, 4 * QHCA_RSS_ENTRIES);
	rqns = (const __le32 *)rqt->state;
	for (i = 0; i < QHCA_RSS_ENTRIES; i++)
		KUNIT_EXPECT_EQ(test, le32_to_cpu(rqns[i]),
				100 + i % RS_CHANNELS);
	qhca_rss_stop(r->priv);
	rs_has(test, r, 0, 0);
}

/* Nothing is left behind by a start that fails, wherever that is. */
static void rs_test_failing_start(struct kunit *test)
{
	static const int errors[] = { -ENOMEM, -EINVAL, -EIO };
	struct rs_rig *r = rs_rig_new(test);
	u32 nth, i;
	int err;

	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		for (nth = 1;; nth++) {
			qhca_fake_fail(r->fake, nth, errors[i]);
			err = qhca_rss_start(r->priv);
			if (!err)
				break;
			KUNIT_ASSERT_EQ(test, err, errors[i]);
			rs_has(test, r, 0, 0);
		}
		KUNIT_EXPECT_EQ(test, nth, 2 + 2 * (1 + RS_CONTEXTS));
		qhca_fake_fail(r->fake, 0, 0);
		qhca_rss_stop(r->priv);
		rs_has(test, r, 0, 0);
	}
	for (nth = 1;; nth++) {
		qhca_fake_fail_alloc(nth);
		err = qhca_rss_start(r->priv);
		if (!err)
			break;
		KUNIT_ASSERT_EQ(test, err, -ENOMEM);
		rs_has(test, r, 0, 0);
	}
	KUNIT_EXPECT_EQ(test, nth, 2 + RS_CONTEXTS);
	qhca_fake_fail_alloc(0);
	qhca_rss_stop(r->priv);
}

/* A context that could not be changed is as before, here and in the device. */
static void rs_test_failing_change(struct kunit *test)
{
	struct rs_rig *r = rs_rig_new(test);
	struct qhca_rss_ctx want, was;
	const struct qhca_fake_obj *qp;
	u32 nth, qpn;
	int err;

	KUNIT_ASSERT_EQ(test, qhca_rss_start(r->priv), 0);
	KUNIT_ASSERT_EQ(test, qhca_rss_direct(r->priv, 0, &qpn), 0);
	was = r->priv->rss;
	want = was;
	memset(want.key, 0x77, sizeof(want.key));
	want.indir[5] = 0;
	want.fields = QHCA_HASH_BY_SRC_IP << QHCA_HASH_IPV4_SHIFT;
	/* RQT and MODIFY_QP; what follows is not its business */
	for (nth = 1; nth <= 2; nth++) {
		qhca_fake_fail(r->fake, nth, -ENOMEM);
		err = qhca_rss_change(r->priv, &r->priv->rss, &want);
		KUNIT_ASSERT_EQ(test, err, -ENOMEM);
		KUNIT_EXPECT_MEMEQ(test, r->priv->rss.key, was.key,
				   sizeof(was.key));
		KUNIT_EXPECT_MEMEQ(test, r->priv->rss.indir, was.indir,
				   sizeof(was.indir));
		KUNIT_EXPECT_EQ(test, r->priv->rss.fields, was.fields);
		qp = qhca_fake_find(r->fake, QHCA_FAKE_QP, was.qp[0].qpn);
		KUNIT_ASSERT_NOT_NULL(test, qp);
		KUNIT_EXPECT_EQ(test, qp->uses[0], was.qp[0].rqtn);
		rs_has(test, r, 1 + RS_CONTEXTS, 1);
	}
	qhca_fake_fail(r->fake, 0, 0);
	qhca_fake_fail_alloc(1);
	KUNIT_EXPECT_EQ(test, qhca_rss_change(r->priv, &r->priv->rss, &want),
			-ENOMEM);
	KUNIT_EXPECT_EQ(test, r->priv->rss.fields, was.fields);
	/* a queue that does not exist */
	want.indir[QHCA_RSS_ENTRIES - 1] = RS_CHANNELS;
	KUNIT_EXPECT_EQ(test, qhca_rss_change(r->priv, &r->priv->rss, &want),
			-EINVAL);
	rs_has(test, r, 1 + RS_CONTEXTS, 1);
	want.indir[QHCA_RSS_ENTRIES - 1] = 0;
	KUNIT_EXPECT_EQ(test, qhca_rss_change(r->priv, &r->priv->rss, &want), 0);
	KUNIT_EXPECT_EQ(test, r->priv->rss.fields, want.fields);
	rs_has(test, r, 1 + RS_CONTEXTS, 1);
	qhca_rss_stop(r->priv);
	rs_has(test, r, 0, 0);
}

static void rs_test_contexts(struct kunit *test)
{
	struct rs_rig *r = rs_rig_new(test);
	struct qhca_rss_ctx extra;
	u32 nth, qpn;

	KUNIT_EXPECT_TRUE(test, qhca_rss_find(r->priv, 0) == &r->priv->rss);
	KUNIT_EXPECT_TRUE(test, qhca_rss_find(r->priv, 2) == &r->ctx[1]);
	KUNIT_EXPECT_TRUE(test, !qhca_rss_find(r->priv, 3));
	KUNIT_EXPECT_TRUE(test, !qhca_rss_find(r->priv, ~0U));
	KUNIT_ASSERT_EQ(test, qhca_rss_start(r->priv), 0);
	r->priv->up = true;
	for (nth = 1; nth <= 2; nth++) {
		qhca_rss_init(&extra, RS_CHANNELS);
		extra.id = 3;
		qhca_fake_fail(r->fake, nth, -ENOMEM);
		KUNIT_ASSERT_EQ(test, qhca_rss_add(r->priv, &extra), -ENOMEM);
		KUNIT_EXPECT_TRUE(test, !qhca_rss_find(r->priv, 3));
		rs_has(test, r, 1 + RS_CONTEXTS, 0);
	}
	qhca_fake_fail(r->fake, 0, 0);
	KUNIT_ASSERT_EQ(test, qhca_rss_add(r->priv, &extra), 0);
	rs_has(test, r, 2 + RS_CONTEXTS, 0);
	qhca_rss_remove(r->priv, &extra);
	rs_has(test, r, 1 + RS_CONTEXTS, 0);
	KUNIT_EXPECT_EQ(test, qhca_rss_direct(r->priv, RS_CHANNELS, &qpn),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, qhca_rss_direct(r->priv, ~0U, &qpn), -EINVAL);
	qhca_rss_stop(r->priv);
}

/* The highest and the lowest number of queues, and tables that do not divide. */
static void rs_test_default_table(struct kunit *test)
{
	struct rs_rig *r = rs_rig_new(test);
	u32 n, i;

	for (n = 1; n <= QHCA_MAX_CHANNELS; n++) {
		qhca_rss_set_default(&r->priv->rss, n);
		for (i = 0; i < QHCA_RSS_ENTRIES; i++)
			KUNIT_ASSERT_EQ(test, r->priv->rss.indir[i], i % n);
	}
}

static void rs_test_symmetric_fields(struct kunit *test)
{
	static const u32 both = QHCA_HASH_BY_SRC_IP | QHCA_HASH_BY_DST_IP;
	static const u32 ports = QHCA_HASH_BY_SRC_PORT | QHCA_HASH_BY_DST_PORT;
	int i;
	u32 f;

	KUNIT_EXPECT_TRUE(test, qhca_rss_fields_symmetric(RSS_FIELDS_DEF));
	KUNIT_EXPECT_TRUE(test, qhca_rss_fields_symmetric(0));
	for (i = 0; i < ARRAY_SIZE(rss_shifts); i++) {
		for (f = 0; f <= QHCA_HASH_BY_MASK; f++) {
			bool fair = ((f & both) == both || !(f & both)) &&
				    ((f & ports) == ports || !(f & ports));

			KUNIT_EXPECT_EQ(test,
					qhca_rss_fields_symmetric(f << rss_shifts[i]),
					fair);
		}
	}
	KUNIT_EXPECT_FALSE(test, qhca_rss_fields_symmetric(QHCA_HASH_LABEL_TCP6));
	KUNIT_EXPECT_FALSE(test, qhca_rss_fields_symmetric(QHCA_HASH_LABEL_UDP6));
	KUNIT_EXPECT_FALSE(test, qhca_rss_fields_symmetric(QHCA_HASH_LABEL_IPV6));
}

static struct kunit_case rs_cases[] = {
	KUNIT_CASE(rs_test_start_and_stop),
	KUNIT_CASE(rs_test_failing_start),
	KUNIT_CASE(rs_test_failing_change),
	KUNIT_CASE(rs_test_contexts),
	KUNIT_CASE(rs_test_default_table),
	KUNIT_CASE(rs_test_symmetric_fields),
	{}
};

static struct kunit_suite rs_suite = {
	.name = "qhca_rss",
	.test_cases = rs_cases,
};

kunit_test_suite(rs_suite);
