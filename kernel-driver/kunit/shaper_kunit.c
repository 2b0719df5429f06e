// SPDX-License-Identifier: GPL-2.0
/*
 * Tests rate limits of send queues: the device's shapers of a plan, what
 * remains of one that the device refuses, and the arithmetic with the highest
 * rates and weights.
 */
#include "fake_netdev.h"

/* Included, not linked, as the driver exports nothing for tests. */
#include "../net/shaper.c"

#define SH_CHANNELS	4

struct sh_rig {
	struct qhca_fake *fake;
	struct qhca_netdev *priv;
	struct qhca_tx_queue *tx;
	struct qhca_shaper_plan *plan;
};

static struct sh_rig *sh_rig_new(struct kunit *test)
{
	struct sh_rig *r = kunit_kzalloc(test, sizeof(*r), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, r);
	r->fake = qhca_fake_new(test);
	r->tx = kunit_kcalloc(test, SH_CHANNELS, sizeof(*r->tx), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->tx);
	r->plan = kunit_kzalloc(test, sizeof(*r->plan), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, r->plan);
	r->priv = qhca_fake_netdev(test, r->fake, SH_CHANNELS);
	KUNIT_ASSERT_EQ(test, qhca_shaper_init(r->priv), 0);
	for (i = 0; i < SH_CHANNELS; i++) {
		r->tx[i].index = i;
		r->tx[i].num = 100 + i;
		r->priv->ch[i].tx = &r->tx[i];
	}
	return r;
}

/* As the net_device does: the shapers first, then queues that name them. */
static void sh_up(struct kunit *test, struct sh_rig *r)
{
	struct qhca_fake_obj *sq;
	u32 i;

	KUNIT_ASSERT_EQ(test, qhca_shaper_start(r->priv), 0);
	for (i = 0; i < SH_CHANNELS; i++) {
		sq = qhca_fake_add(r->fake, QHCA_FAKE_SQ, r->tx[i].num);
		KUNIT_ASSERT_NOT_NULL(test, sq);
		r->tx[i].shaper = qhca_shaper_of_queue(r->priv, i);
		r->tx[i].made = true;
		sq->uses[0] = r->tx[i].shaper;
	}
	r->priv->up = true;
}

static void sh_down(struct kunit *test, struct sh_rig *r)
{
	struct qhca_fake_obj *sq;
	u32 i;

	r->priv->up = false;
	for (i = 0; i < SH_CHANNELS; i++) {
		sq = qhca_fake_find(r->fake, QHCA_FAKE_SQ, r->tx[i].num);
		if (sq)
			sq->kind = QHCA_FAKE_NONE;
		r->tx[i].made = false;
	}
	qhca_shaper_stop(r->priv);
	KUNIT_EXPECT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_SHAPER), 0);
	KUNIT_EXPECT_EQ(test, r->fake->wrong, 0);
}

static void sh_end(struct sh_rig *r)
{
	qhca_shaper_destroy(r->priv);
}

/* What limits a queue in the device, from the queue up to the port. */
struct sh_path {
	u64 rate[QHCA_SHAPER_DEPTH_MAX];
	u8 weight[QHCA_SHAPER_DEPTH_MAX];
	u32 depth;
};

static struct sh_path sh_path_of(struct kunit *test, struct sh_rig *r, u32 queue)
{
	const struct qhca_fake_obj *obj;
	struct sh_path path;
	u32 num;

	memset(&path, 0, sizeof(path));
	obj = qhca_fake_find(r->fake, QHCA_FAKE_SQ, r->tx[queue].num);
	KUNIT_ASSERT_NOT_NULL(test, obj);
	KUNIT_EXPECT_EQ(test, obj->uses[0], r->tx[queue].shaper);
	for (num = obj->uses[0]; num; num = obj->uses[0]) {
		const struct qhca_shaperc *c;

		obj = qhca_fake_find(r->fake, QHCA_FAKE_SHAPER, num);
		KUNIT_ASSERT_NOT_NULL(test, obj);
		KUNIT_ASSERT_LT(test, path.depth, QHCA_SHAPER_DEPTH_MAX);
		c = (const struct qhca_shaperc *)obj->state;
		path.rate[path.depth] = le64_to_cpu(c->rate);
		path.weight[path.depth++] = c->weight;
	}
	return path;
}

/* A limit for all, one for queue 1, and queues 2 and 3 in a node. */
static void sh_plan(struct qhca_shaper_plan *plan)
{
	memset(plan, 0, sizeof(*plan));
	plan->shape[QHCA_SHAPE_ROOT].used = true;
	plan->shape[QHCA_SHAPE_ROOT].rate = 1000000000;
	plan->shape[QHCA_SHAPE_QUEUE + 1].used = true;
	plan->shape[QHCA_SHAPE_QUEUE + 1].rate = 5000000;
	plan->shape[QHCA_SHAPE_NODE].used = true;
	plan->shape[QHCA_SHAPE_NODE].id = 77;
	plan->shape[QHCA_SHAPE_NODE].rate = 300000000;
	plan->shape[QHCA_SHAPE_QUEUE + 2].used = true;
	plan->shape[QHCA_SHAPE_QUEUE + 2].weight = 3;
	plan->shape[QHCA_SHAPE_QUEUE + 2].parent = QHCA_SHAPE_NODE;
	plan->shape[QHCA_SHAPE_QUEUE + 3].used = true;
	plan->shape[QHCA_SHAPE_QUEUE + 3].parent = QHCA_SHAPE_NODE;
	plan->maxrate[0] = 7;
}

/* Does the device limit the queues like that? */
static void sh_planned(struct kunit *test, struct sh_rig *r)
{
	struct sh_path path = sh_path_of(test, r, 0);

	KUNIT_ASSERT_EQ(test, path.depth, 2);
	KUNIT_EXPECT_EQ(test, path.rate[0], 7000000);
	KUNIT_EXPECT_EQ(test, path.rate[1], 1000000000);
	path = sh_path_of(test, r, 1);
	KUNIT_ASSERT_EQ(test, path.depth, 2);
	KUNIT_EXPECT_EQ(test, path.rate[0], 5000000);
	path = sh_path_of(test, r, 2);
	KUNIT_ASSERT_EQ(test, path.depth, 3);
	KUNIT_EXPECT_EQ(test, path.weight[0], 3);
	KUNIT_EXPECT_EQ(test, path.rate[0], 0);
	KUNIT_EXPECT_EQ(test, path.rate[1], 300000000);
	path = sh_path_of(test, r, 3);
	KUNIT_ASSERT_EQ(test, path.depth, 3);
	KUNIT_EXPECT_EQ(test, path.weight[0], 1);
	KUNIT_EXPECT_EQ(test, r->fake->wrong, 0);
}

static void sh_test_apply(struct kunit *test)
{
	struct sh_rig *r = sh_rig_new(test);
	struct sh_path path;
	u32 i;

	/* before it is up, and while it is */
	sh_plan(r->plan);
	KUNIT_ASSERT_EQ(test, qhca_shaper_apply(r->priv, r->plan), 0);
	KUNIT_EXPECT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_SHAPER), 0);
	sh_up(test, r);
	sh_planned(test, r);
	KUNIT_EXPECT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_SHAPER), 6);
	memset(r->plan, 0, sizeof(*r->plan));
	KUNIT_ASSERT_EQ(test, qhca_shaper_apply(r->priv, r->plan), 0);
	KUNIT_EXPECT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_SHAPER), 0);
	for (i = 0; i < SH_CHANNELS; i++)
		KUNIT_EXPECT_EQ(test, sh_path_of(test, r, i).depth, 0);
	sh_plan(r->plan);
	KUNIT_ASSERT_EQ(test, qhca_shaper_apply(r->priv, r->plan), 0);
	sh_planned(test, r);
	/* a queue that moves to another parent */
	r->plan->shape[QHCA_SHAPE_QUEUE + 3].parent = QHCA_SHAPE_ROOT;
	KUNIT_ASSERT_EQ(test, qhca_shaper_apply(r->priv, r->plan), 0);
	path = sh_path_of(test, r, 3);
	KUNIT_EXPECT_EQ(test, path.depth, 2);
	KUNIT_EXPECT_EQ(test, path.rate[1], 1000000000);
	sh_down(test, r);
	sh_end(r);
}

/* Each command of a change fails in turn: the old limits stay. */
static void sh_test_failing_apply(struct kunit *test)
{
	struct sh_rig *r = sh_rig_new(test);
	u32 nth, shapers;
	int err;

	sh_plan(r->plan);
	KUNIT_ASSERT_EQ(test, qhca_shaper_apply(r->priv, r->plan), 0);
	sh_up(test, r);
	shapers = qhca_fake_count(r->fake, QHCA_FAKE_SHAPER);
	r->plan->shape[QHCA_SHAPE_ROOT].rate = 2000000000;
	r->plan->shape[QHCA_SHAPE_QUEUE + 1].parent = QHCA_SHAPE_NODE + 1;
	r->plan->shape[QHCA_SHAPE_QUEUE + 2].weight = 200;
	r->plan->shape[QHCA_SHAPE_NODE + 1].used = true;
	r->plan->shape[QHCA_SHAPE_NODE + 1].parent = QHCA_SHAPE_NODE;
	r->plan->maxrate[0] = 0;
	for (nth = 1;; nth++) {
		qhca_fake_fail(r->fake, nth, -ENOMEM);
		err = qhca_shaper_apply(r->priv, r->plan);
		if (!err)
			break;
		qhca_fake_fail(r->fake, 0, 0);
		KUNIT_ASSERT_EQ(test, err, -ENOMEM);
		sh_planned(test, r);
		KUNIT_EXPECT_EQ(test,
				qhca_fake_count(r->fake, QHCA_FAKE_SHAPER),
				shapers);
		KUNIT_ASSERT_LT(test, nth, 100);
	}
	KUNIT_EXPECT_LT(test, 4, nth);
	/*
	 * This one would have destroyed what is no longer needed: a device that
	 * refuses that is dead. After a reset it gets the new plan.
	 */
	KUNIT_EXPECT_EQ(test, r->fake->fail_err, -EIO);
	sh_down(test, r);
	qhca_fake_fail(r->fake, 0, 0);
	sh_up(test, r);
	KUNIT_EXPECT_EQ(test, sh_path_of(test, r, 1).depth, 4);
	qhca_fake_fail_alloc(1);
	sh_plan(r->plan);
	KUNIT_EXPECT_EQ(test, qhca_shaper_apply(r->priv, r->plan), -ENOMEM);
	KUNIT_EXPECT_EQ(test, sh_path_of(test, r, 1).depth, 4);
	sh_down(test, r);
	sh_end(r);
}

/* When the queues start: all or none. */
static void sh_test_failing_start(struct kunit *test)
{
	static const int errors[] = { -ENOMEM, -EIO };
	struct sh_rig *r = sh_rig_new(test);
	u32 nth, i;
	int err;

	sh_plan(r->plan);
	KUNIT_ASSERT_EQ(test, qhca_shaper_apply(r->priv, r->plan), 0);
	for (i = 0; i < ARRAY_SIZE(errors); i++) {
		for (nth = 1;; nth++) {
			qhca_fake_fail(r->fake, nth, errors[i]);
			err = qhca_shaper_start(r->priv);
			qhca_fake_fail(r->fake, 0, 0);
			if (!err)
				break;
			KUNIT_ASSERT_EQ(test, err, errors[i]);
			KUNIT_EXPECT_EQ(test,
					qhca_fake_count(r->fake,
							QHCA_FAKE_SHAPER), 0);
		}
		KUNIT_EXPECT_EQ(test, nth, 7);
		sh_down(test, r);
	}
	sh_end(r);
}

/* Removed queues lose their limits, except for tx_maxrate. */
static void sh_test_shrink(struct kunit *test)
{
	struct sh_rig *r = sh_rig_new(test);

	sh_plan(r->plan);
	r->plan->maxrate[3] = 9;
	KUNIT_ASSERT_EQ(test, qhca_shaper_apply(r->priv, r->plan), 0);
	qhca_shaper_shrink(r->priv, 2);
	KUNIT_EXPECT_TRUE(test, qhca_shaper_plan(r->priv)->shape[QHCA_SHAPE_QUEUE + 1].used);
	KUNIT_EXPECT_FALSE(test, qhca_shaper_plan(r->priv)->shape[QHCA_SHAPE_QUEUE + 2].used);
	KUNIT_EXPECT_EQ(test, qhca_shaper_plan(r->priv)->maxrate[3], 9);
	/* the node stays; it is the stack's to delete */
	KUNIT_EXPECT_TRUE(test, qhca_shaper_plan(r->priv)->shape[QHCA_SHAPE_NODE].used);
	/* none at all, and more than there are */
	qhca_shaper_shrink(r->priv, 0);
	qhca_shaper_shrink(r->priv, QHCA_MAX_CHANNELS);
	r->priv->num_ch = 2;
	sh_up(test, r);
	sh_down(test, r);
	sh_end(r);
}

static void sh_test_maxrate(struct kunit *test)
{
	struct sh_rig *r = sh_rig_new(test);
	struct net_device *netdev = r->priv->netdev;
	u32 most = QHCA_SHAPER_RATE_MAX / 1000000;

	sh_up(test, r);
	KUNIT_EXPECT_EQ(test, qhca_set_tx_maxrate(netdev, 2, most + 1),
			-EINVAL);
	KUNIT_EXPECT_EQ(test, qhca_set_tx_maxrate(netdev, 2, ~0U), -EINVAL);
	KUNIT_EXPECT_EQ(test, sh_path_of(test, r, 2).depth, 0);
	KUNIT_EXPECT_EQ(test, qhca_set_tx_maxrate(netdev, 2, most), 0);
	KUNIT_EXPECT_EQ(test, sh_path_of(test, r, 2).rate[0],
			QHCA_SHAPER_RATE_MAX);
	qhca_fake_fail_alloc(1);
	KUNIT_EXPECT_EQ(test, qhca_set_tx_maxrate(netdev, 2, 1), -ENOMEM);
	qhca_fake_fail_alloc(2);
	KUNIT_EXPECT_EQ(test, qhca_set_tx_maxrate(netdev, 2, 1), -ENOMEM);
	KUNIT_EXPECT_EQ(test, sh_path_of(test, r, 2).rate[0],
			QHCA_SHAPER_RATE_MAX);
	KUNIT_EXPECT_EQ(test, qhca_set_tx_maxrate(netdev, 2, 0), 0);
	KUNIT_EXPECT_EQ(test, qhca_fake_count(r->fake, QHCA_FAKE_SHAPER), 0);
	sh_down(test, r);
	r->fake->dev.caps.features &= ~QHCA_FEAT_ETH_SHAPER;
	KUNIT_EXPECT_EQ(test, qhca_set_tx_maxrate(netdev, 2, 1), -EOPNOTSUPP);
	sh_end(r);
}

static void sh_test_depth(struct kunit *test)
{
	struct sh_rig *r = sh_rig_new(test);
	u32 i;

	for (i = 0; i < QHCA_SHAPE_NODES; i++)
		r->plan->shape[QHCA_SHAPE_NODE + i].parent =
			i ? QHCA_SHAPE_NODE + i - 1 : 0;
	for (i = 0; i < QHCA_SHAPE_NODES; i++)
		KUNIT_EXPECT_EQ(test,
				qhca_shape_depth(r->plan, QHCA_SHAPE_NODE + i),
				i + 1);
	KUNIT_EXPECT_EQ(test, qhca_shape_depth(r->plan, QHCA_SHAPE_ROOT), 0);
	KUNIT_EXPECT_EQ(test, qhca_shape_depth(r->plan, QHCA_SHAPE_QUEUE), 0);
	/* cycles end: of all, and of one node with itself */
	r->plan->shape[QHCA_SHAPE_NODE].parent = QHCA_SHAPES - 1;
	KUNIT_EXPECT_EQ(test, qhca_shape_depth(r->plan, QHCA_SHAPE_NODE + 5),
			QHCA_SHAPE_NODES);
	r->plan->shape[QHCA_SHAPE_NODE].parent = QHCA_SHAPE_NODE;
	KUNIT_EXPECT_EQ(test, qhca_shape_depth(r->plan, QHCA_SHAPE_NODE),
			QHCA_SHAPE_NODES);
	sh_end(r);
}

static void sh_test_numbers(struct kunit *test)
{
	struct sh_rig *r = sh_rig_new(test);
	struct qhca_shape *shape = r->priv->shapers->plan.shape;
	u32 i;

	/* the default burst: 2 ms, within limits */
	KUNIT_EXPECT_EQ(test, shape_burst(0, 0), 0);
	KUNIT_EXPECT_EQ(test, shape_burst(5, 1), 5);
	KUNIT_EXPECT_EQ(test, shape_burst(0, 1), BURST_MIN);
	KUNIT_EXPECT_EQ(test, shape_burst(0, 1000000000), 250000);
	KUNIT_EXPECT_EQ(test, shape_burst(0, QHCA_SHAPER_RATE_MAX), 250000000);
	KUNIT_EXPECT_EQ(test, shape_burst(0, U64_MAX), QHCA_SHAPER_BURST_MAX);

	/* the lower one of both limits */
	shape[QHCA_SHAPE_QUEUE].rate = 3000000;
	KUNIT_EXPECT_EQ(test, shape_rate(&r->priv->shapers->plan,
					 QHCA_SHAPE_QUEUE), 3000000);
	r->priv->shapers->plan.maxrate[0] = 2;
	KUNIT_EXPECT_EQ(test, shape_rate(&r->priv->shapers->plan,
					 QHCA_SHAPE_QUEUE), 2000000);
	r->priv->shapers->plan.maxrate[0] = ~0U;
	KUNIT_EXPECT_EQ(test, shape_rate(&r->priv->shapers->plan,
					 QHCA_SHAPE_QUEUE), 3000000);
	shape[QHCA_SHAPE_QUEUE].rate = 0;
	KUNIT_EXPECT_EQ(test, shape_rate(&r->priv->shapers->plan,
					 QHCA_SHAPE_QUEUE),
			~0U * 1000000ULL);

	/* the slowest of all: 1 bit/s, below the heaviest siblings, deep down */
	r->priv->num_ch = QHCA_MAX_CHANNELS;
	for (i = QHCA_SHAPE_QUEUE; i < QHCA_SHAPES; i++) {
		shape[i].used = true;
		shape[i].rate = 1;
		shape[i].weight = 255;
		shape[i].parent = 0;
	}
	shape[QHCA_SHAPE_QUEUE].weight = 1;
	KUNIT_EXPECT_EQ(test, shape_parts(r->priv, QHCA_SHAPE_QUEUE),
			1 + 255 * (QHCA_SHAPES - 2));
	for (i = 0; i < QHCA_SHAPE_DEPTH; i++)
		shape[QHCA_SHAPE_NODE + i].parent = i ? QHCA_SHAPE_NODE + i - 1 :
							0;
	shape[QHCA_SHAPE_QUEUE].parent = QHCA_SHAPE_NODE + QHCA_SHAPE_DEPTH - 1;
	shape[0].used = true;
	shape[0].rate = 1;
	KUNIT_EXPECT_LT(test, (u64)WATCHDOG_MAX, shaper_patience(r->priv, 0));
	shaper_set_watchdog(r->priv);
	KUNIT_EXPECT_EQ(test, r->priv->netdev->watchdog_timeo, WATCHDOG_MAX);
	memset(shape, 0, sizeof(r->priv->shapers->plan.shape));
	r->priv->shapers->plan.maxrate[0] = 0;
	shaper_set_watchdog(r->priv);
	KUNIT_EXPECT_EQ(test, r->priv->netdev->watchdog_timeo,
			QHCA_WATCHDOG_TIMEOUT);
	sh_end(r);
}

static struct kunit_case sh_cases[] = {
	KUNIT_CASE(sh_test_apply),
	KUNIT_CASE(sh_test_failing_apply),
	KUNIT_CASE(sh_test_failing_start),
	KUNIT_CASE(sh_test_shrink),
	KUNIT_CASE(sh_test_maxrate),
	KUNIT_CASE(sh_test_depth),
	KUNIT_CASE(sh_test_numbers),
	{}
};

static struct kunit_suite sh_suite = {
	.name = "qhca_shaper",
	.test_cases = sh_cases,
};

kunit_test_suite(sh_suite);
