// SPDX-License-Identifier: GPL-2.0
/* ethtool -c, -C: event moderation, of all queues or of one. */
#include <linux/ethtool.h>

#include "ethtool.h"
#include "netdev.h"

static void coalesce_show(const struct qhca_netdev *priv, u32 queue,
			  struct ethtool_coalesce *c)
{
	const struct qhca_coalesce *rx = &priv->params.rx_coalesce[queue];
	const struct qhca_coalesce *tx = &priv->params.tx_coalesce[queue];

	c->use_adaptive_rx_coalesce = rx->adaptive;
	c->rx_coalesce_usecs = rx->usec;
	c->rx_max_coalesced_frames = rx->count;
	c->use_adaptive_tx_coalesce = tx->adaptive;
	c->tx_coalesce_usecs = tx->usec;
	c->tx_max_coalesced_frames = tx->count;
}

/*
 * @shown is what the user saw, and may have changed only in part. 0, or an
 * error with @extack, which may be NULL.
 */
static int coalesce_take(struct qhca_coalesce *to,
			 const struct qhca_coalesce *shown,
			 u32 usecs, u32 frames, bool adaptive,
			 struct netlink_ext_ack *extack)
{
	if (usecs > U16_MAX || frames > U16_MAX) {
		NL_SET_ERR_MSG(extack, "at most 65535 us or frames");
		return -ERANGE;
	}
	if (shown->adaptive && adaptive &&
	    (usecs != shown->usec || frames != shown->count)) {
		NL_SET_ERR_MSG(extack,
			       "moderation is adaptive: switch that off first");
		return -EINVAL;
	}
	to->usec = usecs;
	to->count = frames;
	to->adaptive = adaptive;
	return 0;
}

/*
 * Set the moderation of the CQs of @ch in the device; the algorithm is stopped.
 * 0 or an error.
 */
static int coalesce_tell(struct qhca_channel *ch)
{
	struct qhca_coalesce rx = ch->priv->params.rx_coalesce[ch->index];
	struct qhca_coalesce tx = ch->priv->params.tx_coalesce[ch->index];
	int err;

	qhca_dim_rx_now(ch, &rx);
	qhca_dim_tx_now(ch, &tx);
	err = qhca_net_cq_moderate(&ch->rx->cq, &rx);
	return err ?: qhca_net_cq_moderate(&ch->tx->cq, &tx);
}

/* The same for channels @from to before @to, until one fails. */
static int coalesce_tell_all(struct qhca_netdev *priv, u32 from, u32 to)
{
	int err = 0;
	u32 i;

	for (i = from; i < to && !err; i++)
		err = coalesce_tell(&priv->ch[i]);
	return err;
}

/*
 * Change that of channels @from to before @to, which are up, from @old, without
 * the algorithm: it would change it at the same time. 0 or an error.
 */
static int coalesce_apply(struct qhca_netdev *priv, u32 from, u32 to,
			  const struct qhca_net_params *old)
{
	u32 i;
	int err;

	for (i = from; i < to; i++)
		qhca_dim_stop(&priv->ch[i]);
	synchronize_net();
	for (i = from; i < to; i++)
		qhca_dim_cancel(&priv->ch[i]);
	err = coalesce_tell_all(priv, from, to);
	if (err) {
		priv->params = *old;
		/* a device that refuses this too is dead */
		coalesce_tell_all(priv, from, to);
	}
	for (i = from; i < to; i++)
		qhca_dim_start(&priv->ch[i]);
	return err;
}

/*
 * Set that of queues @from to before @to, of which the user saw the first. 0 or
 * an error: then nothing changes.
 */
static int coalesce_set(struct qhca_netdev *priv, u32 from, u32 to,
			const struct ethtool_coalesce *c,
			struct netlink_ext_ack *extack)
{
	struct qhca_net_params *p = &priv->params, old = *p;
	int err = 0;
	u32 i;

	for (i = from; i < to && !err; i++) {
		err = coalesce_take(&p->rx_coalesce[i], &old.rx_coalesce[from],
				    c->rx_coalesce_usecs,
				    c->rx_max_coalesced_frames,
				    c->use_adaptive_rx_coalesce, extack);
		if (!err)
			err = coalesce_take(&p->tx_coalesce[i],
					    &old.tx_coalesce[from],
					    c->tx_coalesce_usecs,
					    c->tx_max_coalesced_frames,
					    c->use_adaptive_tx_coalesce,
					    extack);
	}
	if (err)
		*p = old;
	else if (priv->up)
		err = coalesce_apply(priv, from, min(to, priv->num_ch), &old);
	return err;
}

/* ethtool_ops.get_coalesce: if queues differ, that of the first. */
int qhca_get_coalesce(struct net_device *netdev, struct ethtool_coalesce *c,
		      struct kernel_ethtool_coalesce *kc,
		      struct netlink_ext_ack *extack)
{
	coalesce_show(netdev_priv(netdev), 0, c);
	return 0;
}

/* ethtool_ops.set_coalesce: also applies to future queues. */
int qhca_set_coalesce(struct net_device *netdev, struct ethtool_coalesce *c,
		      struct kernel_ethtool_coalesce *kc,
		      struct netlink_ext_ack *extack)
{
	return coalesce_set(netdev_priv(netdev), 0, QHCA_MAX_CHANNELS, c,
			    extack);
}

int qhca_get_queue_coalesce(struct net_device *netdev, u32 queue,
			    struct ethtool_coalesce *c)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	if (queue >= priv->params.channels)
		return -EINVAL;
	coalesce_show(priv, queue, c);
	return 0;
}

int qhca_set_queue_coalesce(struct net_device *netdev, u32 queue,
			    struct ethtool_coalesce *c)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	if (queue >= priv->params.channels)
		return -EINVAL;
	return coalesce_set(priv, queue, queue + 1, c, NULL);
}
