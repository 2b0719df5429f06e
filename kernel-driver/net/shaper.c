// SPDX-License-Identifier: GPL-2.0
/* Rate limits of send queues: the plan, and the device's shapers. */
#include <linux/etherdevice.h>
#include <linux/math64.h>
#include <linux/sizes.h>
#include <linux/slab.h>

#include "shaper.h"

/* Default burst of a shaper: this long at its rate, at least some frames. */
#define BURST_MS	2
#define BURST_MIN	(2 * ETH_FRAME_LEN)

#define WATCHDOG_MAX	(3600 * HZ)

/* A shaper of the device. */
struct shaper_obj {
	struct qhca_shaperc has;	/* its state in the device */
	u32 parent;	/* its place; the device's numbers need not differ */
	u32 num;
	bool made;
};

struct qhca_shapers {
	struct qhca_shaper_plan plan;
	struct shaper_obj obj[QHCA_SHAPES];
};

/* Number of nodes above @place, or QHCA_SHAPE_NODES if there is a cycle. */
u32 qhca_shape_depth(const struct qhca_shaper_plan *plan, u32 place)
{
	u32 depth = 0;

	while (place && depth < QHCA_SHAPE_NODES) {
		depth += place >= QHCA_SHAPE_NODE;
		place = plan->shape[place].parent;
	}
	return depth;
}

static u64 shape_rate(const struct qhca_shaper_plan *plan, u32 place)
{
	u64 rate = plan->shape[place].rate, max = 0;

	if (place >= QHCA_SHAPE_QUEUE && place < QHCA_SHAPE_NODE)
		max = plan->maxrate[place - QHCA_SHAPE_QUEUE] * 1000000ULL;
	return !max || (rate && rate < max) ? rate : max;
}

static u32 shape_burst(u32 burst, u64 rate)
{
	u64 bytes = div_u64(rate, 8 * MSEC_PER_SEC / BURST_MS);

	if (burst || !rate)
		return burst;
	return clamp_t(u64, bytes, BURST_MIN, QHCA_SHAPER_BURST_MAX);
}

/* Does the device need a shaper for it, given the current queues? */
static bool shape_wanted(struct qhca_netdev *priv, u32 place)
{
	const struct qhca_shaper_plan *plan = &priv->shapers->plan;
	u32 i;

	if (place >= QHCA_SHAPE_NODE)
		return plan->shape[place].used;
	if (place >= QHCA_SHAPE_QUEUE)
		return place - QHCA_SHAPE_QUEUE < priv->num_ch &&
		       (plan->shape[place].used || shape_rate(plan, place));
	/* all others are its members, so it also exists for their weights */
	for (i = QHCA_SHAPE_QUEUE; i < QHCA_SHAPES; i++)
		if (shape_wanted(priv, i))
			return true;
	return plan->shape[place].used;
}

/* Create or change the shaper at @place; its parent exists. 0 or an error. */
static int shaper_put(struct qhca_netdev *priv, u32 place)
{
	const struct qhca_shaper_plan *plan = &priv->shapers->plan;
	const struct qhca_shape *shape = &plan->shape[place];
	struct shaper_obj *obj = &priv->shapers->obj[place];
	u64 rate = shape_rate(plan, place), mask = 0;
	struct qhca_shaperc c = {
		.rate = cpu_to_le64(rate),
		.burst = cpu_to_le32(shape_burst(shape->burst, rate)),
		.weight = shape->weight ?: 1,
	};
	int err;

	if (place)
		c.parent = cpu_to_le32(priv->shapers->obj[shape->parent].num);
	if (!obj->made) {
		err = qhca_aq_create(priv->dev, QHCA_CMD_CREATE_SHAPER, &c,
				     sizeof(c), &obj->num);
	} else {
		if (c.rate != obj->has.rate || c.burst != obj->has.burst)
			mask |= QHCA_SHAPER_M_RATE;
		if (c.parent != obj->has.parent)
			mask |= QHCA_SHAPER_M_PARENT;
		if (c.weight != obj->has.weight)
			mask |= QHCA_SHAPER_M_WEIGHT;
		err = mask ? qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_SHAPER,
					    obj->num, mask, &c, sizeof(c)) : 0;
	}
	if (err)
		return err;
	obj->made = true;
	obj->parent = shape->parent;
	obj->has = c;
	return 0;
}

/* The shaper in the device for a send queue. */
u32 qhca_shaper_of_queue(struct qhca_netdev *priv, u32 queue)
{
	const struct shaper_obj *obj = priv->shapers->obj;

	if (shape_wanted(priv, QHCA_SHAPE_QUEUE + queue))
		return obj[QHCA_SHAPE_QUEUE + queue].num;
	if (shape_wanted(priv, QHCA_SHAPE_ROOT))
		return obj[QHCA_SHAPE_ROOT].num;
	return QHCA_SHAPER_NONE;
}

static int shaper_attach(struct qhca_netdev *priv, struct qhca_tx_queue *q)
{
	u32 num = qhca_shaper_of_queue(priv, q->index);
	struct qhca_eth_qc qc = { .shaper = cpu_to_le32(num) };
	int err;

	if (!q->made || q->shaper == num)
		return 0;
	err = qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_ETH_SQ, q->num,
			     QHCA_ETH_SQ_M_SHAPER, &qc, sizeof(qc));
	if (!err)
		q->shaper = num;
	return err;
}

/* Does the shaper at @place have another shaper as a member in the device? */
static bool shaper_has_members(struct qhca_netdev *priv, u32 place)
{
	const struct shaper_obj *obj = priv->shapers->obj;
	u32 i;

	for (i = 1; i < QHCA_SHAPES; i++)
		if (obj[i].made && obj[i].parent == place)
			return true;
	return false;
}

/* Destroy the unneeded ones, or all; members before their parents. */
static void shaper_prune(struct qhca_netdev *priv, bool all)
{
	struct shaper_obj *obj = priv->shapers->obj;
	bool more;
	u32 i;

	do {
		more = false;
		for (i = 0; i < QHCA_SHAPES; i++) {
			if (!obj[i].made || shaper_has_members(priv, i) ||
			    (!all && shape_wanted(priv, i)))
				continue;
			qhca_aq_destroy_sure(priv->dev,
					     QHCA_CMD_DESTROY_SHAPER,
					     obj[i].num);
			obj[i].made = false;
			obj[i].num = QHCA_SHAPER_NONE;
			more = true;
		}
	} while (more);
}

/* The divisor of the parent's rate for @place, if all members send. */
static u64 shape_parts(struct qhca_netdev *priv, u32 place)
{
	const struct qhca_shaper_plan *plan = &priv->shapers->plan;
	const struct qhca_shape *shape = &plan->shape[place];
	u32 i, sum = 0;

	for (i = QHCA_SHAPE_QUEUE; i < QHCA_SHAPES; i++)
		if (plan->shape[i].parent == shape->parent &&
		    (i < QHCA_SHAPE_NODE ?
		     i - QHCA_SHAPE_QUEUE < priv->num_ch :
		     plan->shape[i].used))
			sum += plan->shape[i].weight ?: 1;
	return DIV_ROUND_UP(sum, shape->weight ?: 1);
}

/* Jiffies that a large send of a queue may take if all others send, too. */
static u64 shaper_patience(struct qhca_netdev *priv, u32 queue)
{
	const struct qhca_shaper_plan *plan = &priv->shapers->plan;
	u64 parts = 1, rate, most = 0;
	u32 place = QHCA_SHAPE_QUEUE + queue, depth;

	for (depth = 0; depth < QHCA_SHAPER_DEPTH_MAX; depth++) {
		rate = shape_wanted(priv, place) ? shape_rate(plan, place) : 0;
		if (rate)
			most = max(most, div64_u64(SZ_64K * 8ULL * HZ * parts,
						   rate));
		if (!place)
			break;
		parts = min(parts * shape_parts(priv, place), BIT_ULL(24));
		place = plan->shape[place].parent;
	}
	return most;
}

/* A queue may make no progress for that long: the watchdog has to wait. */
static void shaper_set_watchdog(struct qhca_netdev *priv)
{
	u64 most = 0;
	u32 i;

	for (i = 0; i < priv->num_ch; i++)
		most = max(most, shaper_patience(priv, i));
	WRITE_ONCE(priv->netdev->watchdog_timeo,
		   clamp_t(u64, 2 * most, QHCA_WATCHDOG_TIMEOUT, WATCHDOG_MAX));
}

/* Create the device's shapers as planned. 0 or an error. Sleeps. */
static int shaper_sync(struct qhca_netdev *priv)
{
	const struct qhca_shaper_plan *plan = &priv->shapers->plan;
	u32 depth, i;
	int err = 0;

	if (shape_wanted(priv, QHCA_SHAPE_ROOT))
		err = shaper_put(priv, QHCA_SHAPE_ROOT);
	for (depth = 1; depth <= QHCA_SHAPE_DEPTH && !err; depth++)
		for (i = QHCA_SHAPE_NODE; i < QHCA_SHAPES && !err; i++)
			if (shape_wanted(priv, i) &&
			    qhca_shape_depth(plan, i) == depth)
				err = shaper_put(priv, i);
	for (i = 0; i < priv->num_ch && !err; i++)
		if (shape_wanted(priv, QHCA_SHAPE_QUEUE + i))
			err = shaper_put(priv, QHCA_SHAPE_QUEUE + i);
	for (i = 0; i < priv->num_ch && !err; i++)
		err = shaper_attach(priv, priv->ch[i].tx);
	if (err)
		return err;
	shaper_prune(priv, false);
	shaper_set_watchdog(priv);
	return 0;
}

const struct qhca_shaper_plan *qhca_shaper_plan(struct qhca_netdev *priv)
{
	return &priv->shapers->plan;
}

/*
 * Switch to @plan. 0, or an error with nothing changed. Under the lock of the
 * net_device. Sleeps.
 */
int qhca_shaper_apply(struct qhca_netdev *priv,
		      const struct qhca_shaper_plan *plan)
{
	struct qhca_shaper_plan *was;
	int err = 0;

	was = kmemdup(&priv->shapers->plan, sizeof(*was), GFP_KERNEL);
	if (!was)
		return -ENOMEM;
	priv->shapers->plan = *plan;
	if (priv->up)
		err = shaper_sync(priv);
	if (err) {
		priv->shapers->plan = *was;
		if (shaper_sync(priv))
			netdev_warn(priv->netdev,
				    "neither the new nor the old shapers could be set\n");
	}
	kfree(was);
	return err;
}

/* Called before the queues are started, one for each channel. 0 or an error. */
int qhca_shaper_start(struct qhca_netdev *priv)
{
	int err;

	if (!qhca_shaper_supported(priv->dev))
		return 0;
	err = shaper_sync(priv);
	if (err) {
		netdev_err(priv->netdev, "shapers not created: %d\n", err);
		qhca_shaper_stop(priv);
	}
	return err;
}

/* Undo qhca_shaper_start(); the queues are stopped. */
void qhca_shaper_stop(struct qhca_netdev *priv)
{
	shaper_prune(priv, true);
}

/*
 * The stack drops the shapers of removed queues without telling the driver;
 * their tx_maxrate stays.
 */
void qhca_shaper_shrink(struct qhca_netdev *priv, u32 channels)
{
	struct qhca_shape *shape = priv->shapers->plan.shape;
	u32 i;

	for (i = channels; i < QHCA_MAX_CHANNELS; i++)
		memset(&shape[QHCA_SHAPE_QUEUE + i], 0, sizeof(*shape));
}

/* ndo_set_tx_maxrate: @maxrate in Mb/s; 0: no limit */
int qhca_set_tx_maxrate(struct net_device *netdev, int queue, u32 maxrate)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_shaper_plan *plan;
	int err;

	if (!qhca_shaper_supported(priv->dev))
		return -EOPNOTSUPP;
	if (maxrate > QHCA_SHAPER_RATE_MAX / 1000000)
		return -EINVAL;
	plan = kmemdup(qhca_shaper_plan(priv), sizeof(*plan), GFP_KERNEL);
	if (!plan)
		return -ENOMEM;
	plan->maxrate[queue] = maxrate;
	err = qhca_shaper_apply(priv, plan);
	kfree(plan);
	return err;
}

/* Called once in the life of the net_device. 0 or an error. */
int qhca_shaper_init(struct qhca_netdev *priv)
{
	priv->shapers = kzalloc(sizeof(*priv->shapers), GFP_KERNEL);
	return priv->shapers ? 0 : -ENOMEM;
}

void qhca_shaper_destroy(struct qhca_netdev *priv)
{
	kfree(priv->shapers);
}
