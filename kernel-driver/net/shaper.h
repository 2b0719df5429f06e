/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Rate limits of send queues: a plan keeps the stack's settings, and the
 * device's shapers are created from it whenever the net_device is up. So the
 * limits survive changes of rings and channels, and resets.
 */
#ifndef QHCA_SHAPER_H
#define QHCA_SHAPER_H

#include "netdev.h"

/* Places in a plan: the net_device, queues, nodes between them. */
#define QHCA_SHAPE_ROOT		0
#define QHCA_SHAPE_QUEUE	1
#define QHCA_SHAPE_NODE		(QHCA_SHAPE_QUEUE + QHCA_MAX_CHANNELS)
#define QHCA_SHAPE_NODES	64
#define QHCA_SHAPES		(QHCA_SHAPE_NODE + QHCA_SHAPE_NODES)

/* Maximum number of nodes between a queue and the net_device. */
#define QHCA_SHAPE_DEPTH	(QHCA_SHAPER_DEPTH_MAX - 2)

/**
 * struct qhca_shape - the stack's settings of one shaper
 * @rate: bits per second, or 0
 * @burst: bytes; 0: the driver chooses
 * @id: ID of a node
 * @parent: its place
 * @weight: 0 is 1
 * @used: it exists in the stack
 */
struct qhca_shape {
	u64 rate;
	u32 burst;
	u32 id;
	u8 parent;
	u8 weight;
	bool used;
};

struct qhca_shaper_plan {
	struct qhca_shape shape[QHCA_SHAPES];
	u32 maxrate[QHCA_MAX_CHANNELS];	/* Mb/s, or 0: tx_maxrate */
};

int qhca_shaper_init(struct qhca_netdev *priv);
void qhca_shaper_destroy(struct qhca_netdev *priv);
int qhca_shaper_start(struct qhca_netdev *priv);
void qhca_shaper_stop(struct qhca_netdev *priv);
u32 qhca_shaper_of_queue(struct qhca_netdev *priv, u32 queue);
void qhca_shaper_shrink(struct qhca_netdev *priv, u32 channels);
const struct qhca_shaper_plan *qhca_shaper_plan(struct qhca_netdev *priv);
int qhca_shaper_apply(struct qhca_netdev *priv,
		      const struct qhca_shaper_plan *plan);
u32 qhca_shape_depth(const struct qhca_shaper_plan *plan, u32 place);
int qhca_set_tx_maxrate(struct net_device *netdev, int queue, u32 maxrate);

static inline bool qhca_shaper_supported(const struct qhca_dev *dev)
{
	return dev->caps.features & QHCA_FEAT_ETH_SHAPER;
}

/* shaper_ops.c */
struct net_shaper_ops;
extern const struct net_shaper_ops qhca_shaper_ops;

#endif /* QHCA_SHAPER_H */
