// SPDX-License-Identifier: GPL-2.0
/* ethtool: what the net_device reports and lets change. */
#include <linux/ethtool.h>
#include <linux/log2.h>

#include "netdev.h"

static const char * const sw_stat_names[] = {
	"drv_tx_ring_full",
	"drv_tx_linearized",
	"drv_rx_alloc_failed",
};

static void ethtool_get_drvinfo(struct net_device *netdev,
				struct ethtool_drvinfo *info)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	strscpy(info->driver, QHCA_DRV_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(priv->dev->pdev),
		sizeof(info->bus_info));
	qhca_fw_version(priv->dev, info->fw_version, sizeof(info->fw_version));
}

static int ethtool_get_link_ksettings(struct net_device *netdev,
				      struct ethtool_link_ksettings *ks)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	ethtool_link_ksettings_zero_link_mode(ks, supported);
	ethtool_link_ksettings_zero_link_mode(ks, advertising);
	ks->base.autoneg = AUTONEG_DISABLE;
	ks->base.port = PORT_OTHER;
	ks->base.speed = SPEED_UNKNOWN;
	ks->base.duplex = DUPLEX_UNKNOWN;
	if (netif_carrier_ok(netdev)) {
		ks->base.speed = priv->speed;
		ks->base.duplex = DUPLEX_FULL;
	}
	return 0;
}

static void ethtool_get_ringparam(struct net_device *netdev,
				  struct ethtool_ringparam *ring,
				  struct kernel_ethtool_ringparam *kring,
				  struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	u32 limit = qhca_netdev_ring_limit(priv->dev);

	ring->rx_max_pending = limit;
	ring->tx_max_pending = limit;
	ring->rx_pending = priv->rx_depth;
	ring->tx_pending = priv->tx_depth;
}

static u32 ethtool_ring_depth(struct qhca_netdev *priv, u32 want)
{
	return clamp_t(u32, roundup_pow_of_two(max(want, 1U)), QHCA_RING_MIN,
		       qhca_netdev_ring_limit(priv->dev));
}

static int ethtool_set_ringparam(struct net_device *netdev,
				 struct ethtool_ringparam *ring,
				 struct kernel_ethtool_ringparam *kring,
				 struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	u32 rx = priv->rx_depth, tx = priv->tx_depth;
	int err;

	if (ring->rx_mini_pending || ring->rx_jumbo_pending)
		return -EINVAL;
	priv->rx_depth = ethtool_ring_depth(priv, ring->rx_pending);
	priv->tx_depth = ethtool_ring_depth(priv, ring->tx_pending);
	if (priv->rx_depth == rx && priv->tx_depth == tx)
		return 0;
	err = qhca_netdev_restart(priv);
	if (!err)
		return 0;
	NL_SET_ERR_MSG(extack, "queues of that size could not be made");
	priv->rx_depth = rx;
	priv->tx_depth = tx;
	if (netif_running(netdev) && !priv->up && qhca_netdev_up(priv))
		netdev_err(netdev, "and neither those of the old size\n");
	return err;
}

static void ethtool_get_channels(struct net_device *netdev,
				 struct ethtool_channels *ch)
{
	ch->max_combined = 1;
	ch->combined_count = 1;
}

static int ethtool_get_coalesce(struct net_device *netdev,
				struct ethtool_coalesce *c,
				struct kernel_ethtool_coalesce *kc,
				struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	c->rx_coalesce_usecs = priv->rx_coalesce.usec;
	c->rx_max_coalesced_frames = priv->rx_coalesce.count;
	c->tx_coalesce_usecs = priv->tx_coalesce.usec;
	c->tx_max_coalesced_frames = priv->tx_coalesce.count;
	return 0;
}

static int ethtool_set_coalesce(struct net_device *netdev,
				struct ethtool_coalesce *c,
				struct kernel_ethtool_coalesce *kc,
				struct netlink_ext_ack *extack)
{
	struct qhca_coalesce rx = {
		.usec = c->rx_coalesce_usecs,
		.count = c->rx_max_coalesced_frames,
	};
	struct qhca_coalesce tx = {
		.usec = c->tx_coalesce_usecs,
		.count = c->tx_max_coalesced_frames,
	};
	struct qhca_netdev *priv = netdev_priv(netdev);
	int err;

	if (c->rx_coalesce_usecs > U16_MAX || c->tx_coalesce_usecs > U16_MAX ||
	    c->rx_max_coalesced_frames > U16_MAX ||
	    c->tx_max_coalesced_frames > U16_MAX) {
		NL_SET_ERR_MSG(extack, "at most 65535 us or frames");
		return -ERANGE;
	}
	if (priv->up) {
		err = qhca_net_cq_moderate(&priv->rxq.cq, &rx);
		if (err)
			return err;
		err = qhca_net_cq_moderate(&priv->txq.cq, &tx);
		if (err) {
			/* a device that refuses this too is dead */
			qhca_net_cq_moderate(&priv->rxq.cq, &priv->rx_coalesce);
			return err;
		}
	}
	/* for the queues to come as well */
	priv->rx_coalesce = rx;
	priv->tx_coalesce = tx;
	return 0;
}

static int ethtool_get_sset_count(struct net_device *netdev, int sset)
{
	int i, n = ARRAY_SIZE(sw_stat_names);

	if (sset != ETH_SS_STATS)
		return -EOPNOTSUPP;
	for (i = 0; i < QHCA_STAT_COUNT; i++)
		n += !!qhca_stat_names[i];
	return n;
}

static void ethtool_get_strings(struct net_device *netdev, u32 sset, u8 *data)
{
	int i;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < QHCA_STAT_COUNT; i++) {
		if (qhca_stat_names[i])
			ethtool_puts(&data, qhca_stat_names[i]);
	}
	for (i = 0; i < ARRAY_SIZE(sw_stat_names); i++)
		ethtool_puts(&data, sw_stat_names[i]);
}

static void ethtool_get_stats(struct net_device *netdev,
			      struct ethtool_stats *stats, u64 *data)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	__le64 hw[QHCA_STAT_COUNT] = {};
	int i;

	/* a dead device has no numbers any more: zeroes */
	if (!qhca_aq_query(priv->dev, QHCA_CMD_QUERY_STATS, 0, hw,
			   sizeof(hw)))
		qhca_netdev_stats_feed(priv, hw, priv->up);
	for (i = 0; i < QHCA_STAT_COUNT; i++) {
		if (qhca_stat_names[i])
			*data++ = le64_to_cpu(hw[i]);
	}
	*data++ = priv->tx_busy;
	*data++ = priv->tx_linearized;
	*data++ = priv->rx_alloc_failed;
}

const struct ethtool_ops qhca_ethtool_ops = {
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS |
				     ETHTOOL_COALESCE_MAX_FRAMES,
	.get_drvinfo = ethtool_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = ethtool_get_link_ksettings,
	.get_ringparam = ethtool_get_ringparam,
	.set_ringparam = ethtool_set_ringparam,
	.get_channels = ethtool_get_channels,
	.get_coalesce = ethtool_get_coalesce,
	.set_coalesce = ethtool_set_coalesce,
	.get_sset_count = ethtool_get_sset_count,
	.get_strings = ethtool_get_strings,
	.get_ethtool_stats = ethtool_get_stats,
	.get_ts_info = ethtool_op_get_ts_info,
};
