// SPDX-License-Identifier: GPL-2.0
/* The stack's shapers (net/shaper), set by netlink. */
#include <linux/slab.h>
#include <net/net_shaper.h>

#include "shaper.h"

static struct qhca_netdev *shaper_priv(const struct net_shaper_binding *binding)
{
	return netdev_priv(binding->netdev);
}

/* Its place in @plan, or -ENOENT. */
static int shaper_place(const struct qhca_shaper_plan *plan,
			const struct net_shaper_handle *handle)
{
	int i;

	switch (handle->scope) {
	case NET_SHAPER_SCOPE_NETDEV:
		return QHCA_SHAPE_ROOT;
	case NET_SHAPER_SCOPE_QUEUE:
		if (handle->id < QHCA_MAX_CHANNELS)
			return QHCA_SHAPE_QUEUE + handle->id;
		break;
	case NET_SHAPER_SCOPE_NODE:
		for (i = QHCA_SHAPE_NODE; i < QHCA_SHAPES; i++)
			if (plan->shape[i].used &&
			    plan->shape[i].id == handle->id)
				return i;
		break;
	default:
		break;
	}
	return -ENOENT;
}

static int shaper_free_place(const struct qhca_shaper_plan *plan,
			     struct netlink_ext_ack *extack)
{
	int i;

	for (i = QHCA_SHAPE_NODE; i < QHCA_SHAPES; i++)
		if (!plan->shape[i].used)
			return i;
	NL_SET_ERR_MSG_FMT(extack, "at most %u nodes", QHCA_SHAPE_NODES);
	return -ENOSPC;
}

/* Copy the settings of @from, except its parent. 0 or an error. */
static int shaper_take(struct qhca_shape *shape, const struct net_shaper *from,
		       struct netlink_ext_ack *extack)
{
	if (from->bw_max > QHCA_SHAPER_RATE_MAX) {
		NL_SET_ERR_MSG_FMT(extack, "bw-max is at most %llu",
				   QHCA_SHAPER_RATE_MAX);
		return -EINVAL;
	}
	if (from->burst > QHCA_SHAPER_BURST_MAX * 8ULL) {
		NL_SET_ERR_MSG_FMT(extack, "burst is at most %llu",
				   QHCA_SHAPER_BURST_MAX * 8ULL);
		return -EINVAL;
	}
	if (from->weight > U8_MAX) {
		NL_SET_ERR_MSG_FMT(extack, "weight is at most %u", U8_MAX);
		return -EINVAL;
	}
	shape->rate = from->bw_max;
	shape->burst = DIV_ROUND_UP_ULL(from->burst, 8);
	shape->weight = from->weight;
	shape->id = from->handle.id;
	/*
	 * the core groups below it even if it does not exist: it has no limit
	 * then
	 */
	shape->used = from->handle.scope != NET_SHAPER_SCOPE_NETDEV ||
		      from->bw_max;
	return 0;
}

static int shaper_too_deep(const struct qhca_shaper_plan *plan,
			   struct netlink_ext_ack *extack)
{
	u32 i;

	for (i = QHCA_SHAPE_NODE; i < QHCA_SHAPES; i++) {
		if (!plan->shape[i].used ||
		    qhca_shape_depth(plan, i) <= QHCA_SHAPE_DEPTH)
			continue;
		NL_SET_ERR_MSG_FMT(extack, "nodes nest at most %u deep",
				   QHCA_SHAPE_DEPTH);
		return -EOPNOTSUPP;
	}
	return 0;
}

static struct qhca_shaper_plan *shaper_copy_plan(struct qhca_netdev *priv)
{
	return kmemdup(qhca_shaper_plan(priv), sizeof(struct qhca_shaper_plan),
		       GFP_KERNEL);
}

/* Apply @plan unless there is an error already, and free it. */
static int shaper_finish(struct qhca_netdev *priv,
			 struct qhca_shaper_plan *plan, int err,
			 struct netlink_ext_ack *extack)
{
	if (!err) {
		err = qhca_shaper_apply(priv, plan);
		if (err)
			NL_SET_ERR_MSG(extack, "the device rejected it");
	}
	kfree(plan);
	return err;
}

static int shaper_set(struct net_shaper_binding *binding,
		      const struct net_shaper *shaper,
		      struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = shaper_priv(binding);
	struct qhca_shaper_plan *plan = shaper_copy_plan(priv);
	int place, err;

	if (!plan)
		return -ENOMEM;
	place = shaper_place(plan, &shaper->handle);
	err = place < 0 ? place :
			  shaper_take(&plan->shape[place], shaper, extack);
	return shaper_finish(priv, plan, err, extack);
}

/* Add a whole group to @plan. 0 or an error. */
static int shaper_plan_group(struct qhca_shaper_plan *plan, int n,
			     const struct net_shaper *leaves,
			     const struct net_shaper *node,
			     struct netlink_ext_ack *extack)
{
	int place = shaper_place(plan, &node->handle), parent, leaf, i, err;

	if (place < 0 && node->handle.scope == NET_SHAPER_SCOPE_NODE)
		place = shaper_free_place(plan, extack);
	if (place < 0)
		return place;
	err = shaper_take(&plan->shape[place], node, extack);
	if (err)
		return err;
	if (place >= QHCA_SHAPE_NODE) {
		parent = shaper_place(plan, &node->parent);
		if (parent < 0)
			return parent;
		plan->shape[place].parent = parent;
	}
	for (i = 0; i < n; i++) {
		leaf = shaper_place(plan, &leaves[i].handle);
		err = leaf < 0 ? leaf :
				 shaper_take(&plan->shape[leaf], &leaves[i],
					     extack);
		if (err)
			return err;
		plan->shape[leaf].parent = place;
	}
	return shaper_too_deep(plan, extack);
}

static int shaper_group(struct net_shaper_binding *binding, int leaves_count,
			const struct net_shaper *leaves,
			const struct net_shaper *node,
			struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = shaper_priv(binding);
	struct qhca_shaper_plan *plan = shaper_copy_plan(priv);
	int err;

	if (!plan)
		return -ENOMEM;
	err = shaper_plan_group(plan, leaves_count, leaves, node, extack);
	return shaper_finish(priv, plan, err, extack);
}

static int shaper_delete(struct net_shaper_binding *binding,
			 const struct net_shaper_handle *handle,
			 struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = shaper_priv(binding);
	struct qhca_shaper_plan *plan = shaper_copy_plan(priv);
	struct qhca_shape *shape;
	int place, i;

	if (!plan)
		return -ENOMEM;
	place = shaper_place(plan, handle);
	if (place < 0) {
		kfree(plan);
		return 0;
	}
	shape = &plan->shape[place];
	/* removed queues may still be its members */
	for (i = 1; place && i < QHCA_SHAPES; i++)
		if (plan->shape[i].parent == place)
			plan->shape[i].parent = shape->parent;
	memset(shape, 0, sizeof(*shape));
	return shaper_finish(priv, plan, 0, extack);
}

static void shaper_capabilities(struct net_shaper_binding *binding,
				enum net_shaper_scope scope,
				unsigned long *cap)
{
	*cap = 0;
	if (!qhca_shaper_supported(shaper_priv(binding)->dev))
		return;
	switch (scope) {
	case NET_SHAPER_SCOPE_QUEUE:
	case NET_SHAPER_SCOPE_NODE:
		*cap |= BIT(NET_SHAPER_A_CAPS_SUPPORT_NESTING) |
			BIT(NET_SHAPER_A_CAPS_SUPPORT_WEIGHT);
		fallthrough;
	case NET_SHAPER_SCOPE_NETDEV:
		*cap |= BIT(NET_SHAPER_A_CAPS_SUPPORT_METRIC_BPS) |
			BIT(NET_SHAPER_A_CAPS_SUPPORT_BW_MAX) |
			BIT(NET_SHAPER_A_CAPS_SUPPORT_BURST);
		break;
	default:
		break;
	}
}

const struct net_shaper_ops qhca_shaper_ops = {
	.group = shaper_group,
	.set = shaper_set,
	.delete = shaper_delete,
	.capabilities = shaper_capabilities,
};
