// SPDX-License-Identifier: GPL-2.0
/* ethtool: what the net_device reports and allows to change. */
#include <linux/ethtool_netlink.h>
#include <linux/log2.h>

#include "ethtool.h"
#include "netdev.h"
#include "xdp.h"
#include "xsk.h"

static const char * const sw_stat_names[] = {
	"drv_tx_ring_full",
	"drv_tx_linearized",
	"drv_rx_alloc_failed",
	"drv_tx_large",
	"drv_rx_split",
	"drv_rx_large",
};

/* statistics of each channel, after those */
#define QUEUE_STATS	13

static void qhca_ethtool_get_drvinfo(struct net_device *netdev,
				     struct ethtool_drvinfo *info)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	strscpy(info->driver, QHCA_DRV_NAME, sizeof(info->driver));
	strscpy(info->bus_info, pci_name(priv->dev->pdev),
		sizeof(info->bus_info));
	qhca_fw_version(priv->dev, info->fw_version, sizeof(info->fw_version));
}

static int qhca_ethtool_get_link_ksettings(struct net_device *netdev,
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

static void qhca_ethtool_get_pauseparam(struct net_device *netdev,
					struct ethtool_pauseparam *pause)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	pause->rx_pause = priv->rx_pause;
}

/*
 * The device obeys PAUSE frames, but has no buffers that would require it to
 * send any.
 */
static int qhca_ethtool_set_pauseparam(struct net_device *netdev,
				       struct ethtool_pauseparam *pause)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_port port = { .pause_rx = !!pause->rx_pause };
	int err;

	if (!(priv->dev->caps.features & QHCA_FEAT_PAUSE) ||
	    pause->autoneg || pause->tx_pause)
		return -EOPNOTSUPP;
	err = qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_PORT, 0,
			     QHCA_PORT_M_PAUSE, &port, sizeof(port));
	if (!err)
		priv->rx_pause = port.pause_rx;
	return err;
}

static void qhca_ethtool_get_ringparam(struct net_device *netdev,
				       struct ethtool_ringparam *ring,
				       struct kernel_ethtool_ringparam *kring,
				       struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	u32 limit = qhca_netdev_ring_limit(priv->dev);

	ring->rx_max_pending = limit;
	ring->tx_max_pending = limit;
	ring->rx_pending = priv->params.rx_depth;
	ring->tx_pending = priv->params.tx_depth;
	kring->tcp_data_split = priv->params.split ?
				ETHTOOL_TCP_DATA_SPLIT_ENABLED :
				ETHTOOL_TCP_DATA_SPLIT_DISABLED;
	qhca_set_hds_thresh(kring, priv->params.hds_thresh,
			    QHCA_ETH_MAX_FRAME);
	kring->rx_buf_len = priv->params.rx_size;
}

static u32 qhca_ethtool_ring_depth(struct qhca_netdev *priv, u32 want)
{
	want = max(want, 1U);
	return clamp_t(u32, roundup_pow_of_two(want), QHCA_RING_MIN,
		       qhca_netdev_ring_limit(priv->dev));
}

/*
 * Set in @params whether frames are split; they are not if the user leaves it
 * to the driver. 0 or an error.
 */
static int qhca_ethtool_set_split(struct qhca_netdev *priv,
				  struct qhca_net_params *params,
				  const struct kernel_ethtool_ringparam *kring,
				  struct netlink_ext_ack *extack)
{
	u32 i;

	params->split = kring->tcp_data_split == ETHTOOL_TCP_DATA_SPLIT_ENABLED;
	params->hds_thresh = qhca_get_hds_thresh(kring);
	if (params->split &&
	    !(priv->dev->caps.features & QHCA_FEAT_ETH_HDS)) {
		NL_SET_ERR_MSG(extack, "the device cannot split frames");
		return -EOPNOTSUPP;
	}
	if (params->split && priv->xdp_prog) {
		NL_SET_ERR_MSG(extack,
			       "not with an XDP program: it sees whole frames");
		return -EOPNOTSUPP;
	}
	if (params->split && qhca_xsk_in_use(priv)) {
		NL_SET_ERR_MSG(extack,
			       "not with AF_XDP sockets that receive without a copy");
		return -EBUSY;
	}
	if (params->split && !params->hds_thresh)
		return 0;
	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		if (!qhca_rx_data_provided(priv->netdev, i))
			continue;
		NL_SET_ERR_MSG(extack,
			       "a queue has a memory provider, which needs all frames split");
		return -EBUSY;
	}
	return 0;
}

/* Set the size of receive buffers in @params. 0 or an error. */
static int qhca_ethtool_set_rx_size(const struct qhca_netdev *priv,
				    struct qhca_net_params *params, u32 size,
				    struct netlink_ext_ack *extack)
{
	/* not specified by the user; a page may be larger than the maximum */
	if (!size || size == params->rx_size)
		return 0;
	if (!is_power_of_2(size) || size < PAGE_SIZE ||
	    size > QHCA_RX_SIZE_MAX) {
		NL_SET_ERR_MSG_FMT(extack,
				   "receive buffer size must be a power of two from %lu to %u bytes",
				   PAGE_SIZE, QHCA_RX_SIZE_MAX);
		return -EINVAL;
	}
	if (size > PAGE_SIZE && priv->xdp_prog) {
		NL_SET_ERR_MSG(extack,
			       "an XDP program works on buffers of one page");
		return -EOPNOTSUPP;
	}
	params->rx_size = size;
	return 0;
}

static int qhca_ethtool_set_ringparam(struct net_device *netdev,
				      struct ethtool_ringparam *ring,
				      struct kernel_ethtool_ringparam *kring,
				      struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_net_params params = priv->params;
	int err;

	if (ring->rx_mini_pending || ring->rx_jumbo_pending)
		return -EINVAL;
	if (ring->rx_pending < QHCA_RING_MIN ||
	    ring->tx_pending < QHCA_RING_MIN) {
		NL_SET_ERR_MSG_FMT(extack, "a ring must have at least %u entries",
				   QHCA_RING_MIN);
		return -EINVAL;
	}
	params.rx_depth = qhca_ethtool_ring_depth(priv, ring->rx_pending);
	params.tx_depth = qhca_ethtool_ring_depth(priv, ring->tx_pending);
	err = qhca_ethtool_set_split(priv, &params, kring, extack);
	if (!err)
		err = qhca_ethtool_set_rx_size(priv, &params, kring->rx_buf_len,
					       extack);
	if (err)
		return err;
	if (params.rx_depth == priv->params.rx_depth &&
	    params.tx_depth == priv->params.tx_depth &&
	    params.rx_size == priv->params.rx_size &&
	    params.split == priv->params.split &&
	    params.hds_thresh == priv->params.hds_thresh)
		return 0;
	err = qhca_netdev_change(priv, &params);
	if (err)
		NL_SET_ERR_MSG(extack, "the new queues could not be created");
	else
		qhca_xdp_show_features(priv);
	return err;
}

static void qhca_ethtool_get_channels(struct net_device *netdev,
				      struct ethtool_channels *ch)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	ch->max_combined = priv->max_ch;
	ch->combined_count = priv->params.channels;
}

/*
 * Would filters that add a queue to the entries of a context lead to queues
 * below @n? Not all kernels check that.
 */
static bool qhca_ethtool_filters_fit(struct qhca_netdev *priv, u32 n)
{
	const struct qhca_rss_ctx *rss;

	if (!qhca_ntuple_fits(priv, &priv->rss, n))
		return false;
	list_for_each_entry(rss, &priv->rss_list, list) {
		if (!qhca_ntuple_fits(priv, rss, n))
			return false;
	}
	return true;
}

/*
 * The core has checked the limit and the tables, and filters without a table;
 * it has no text for an error here.
 */
static int qhca_ethtool_set_channels(struct net_device *netdev,
				     struct ethtool_channels *ch)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_net_params params = priv->params;

	params.channels = ch->combined_count;
	if (params.channels == priv->params.channels)
		return 0;
	if (!qhca_ethtool_filters_fit(priv, params.channels))
		return -EINVAL;
	return qhca_netdev_change(priv, &params);
}

static int qhca_ethtool_get_sset_count(struct net_device *netdev, int sset)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	int i, n = ARRAY_SIZE(sw_stat_names);

	if (sset != ETH_SS_STATS)
		return -EOPNOTSUPP;
	n += priv->params.channels * QUEUE_STATS;
	for (i = 0; i < QHCA_STAT_COUNT; i++)
		n += !!qhca_stat_names[i];
	return n;
}

static void qhca_ethtool_get_strings(struct net_device *netdev, u32 sset,
				     u8 *data)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	int i;

	if (sset != ETH_SS_STATS)
		return;
	for (i = 0; i < QHCA_STAT_COUNT; i++) {
		if (qhca_stat_names[i])
			ethtool_puts(&data, qhca_stat_names[i]);
	}
	for (i = 0; i < ARRAY_SIZE(sw_stat_names); i++)
		ethtool_puts(&data, sw_stat_names[i]);
	for (i = 0; i < priv->params.channels; i++) {
		ethtool_sprintf(&data, "rx%d_packets", i);
		ethtool_sprintf(&data, "rx%d_bytes", i);
		ethtool_sprintf(&data, "rx%d_xdp_packets", i);
		ethtool_sprintf(&data, "rx%d_xdp_drops", i);
		ethtool_sprintf(&data, "rx%d_xdp_tx", i);
		ethtool_sprintf(&data, "rx%d_xdp_redirects", i);
		ethtool_sprintf(&data, "rx%d_xsk_packets", i);
		ethtool_sprintf(&data, "rx%d_xsk_starved", i);
		ethtool_sprintf(&data, "tx%d_packets", i);
		ethtool_sprintf(&data, "tx%d_bytes", i);
		ethtool_sprintf(&data, "tx%d_xdp_xmit", i);
		ethtool_sprintf(&data, "tx%d_xdp_drops", i);
		ethtool_sprintf(&data, "tx%d_xsk_packets", i);
	}
}

static void qhca_ethtool_get_stats(struct net_device *netdev,
				   struct ethtool_stats *stats, u64 *data)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	__le64 hw[QHCA_STAT_COUNT] = {};
	int i;

	/* a dead device has no counters: report zeroes */
	if (!qhca_aq_query(priv->dev, QHCA_CMD_QUERY_STATS, 0, hw,
			   sizeof(hw)))
		qhca_netdev_stats_feed(priv, hw, priv->up);
	for (i = 0; i < QHCA_STAT_COUNT; i++) {
		if (qhca_stat_names[i])
			*data++ = le64_to_cpu(hw[i]);
	}
	memset(data, 0, ARRAY_SIZE(sw_stat_names) * sizeof(*data));
	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		data[0] += u64_stats_read(&priv->tx_stats[i].stop);
		data[1] += u64_stats_read(&priv->tx_stats[i].linearized);
		data[2] += u64_stats_read(&priv->rx_stats[i].alloc_failed);
		data[3] += u64_stats_read(&priv->tx_stats[i].gso_packets);
		data[4] += u64_stats_read(&priv->rx_stats[i].split);
		data[5] += u64_stats_read(&priv->rx_stats[i].large_packets);
	}
	data += ARRAY_SIZE(sw_stat_names);
	for (i = 0; i < priv->params.channels; i++) {
		struct qhca_rx_stats *rx = &priv->rx_stats[i];
		struct qhca_tx_stats *tx = &priv->tx_stats[i];

		*data++ = u64_stats_read(&rx->packets);
		*data++ = u64_stats_read(&rx->bytes);
		*data++ = u64_stats_read(&rx->xdp_packets);
		*data++ = u64_stats_read(&rx->xdp_drops);
		*data++ = u64_stats_read(&rx->xdp_tx);
		*data++ = u64_stats_read(&rx->xdp_redirects);
		*data++ = u64_stats_read(&rx->xsk_packets);
		*data++ = u64_stats_read(&rx->xsk_starved);
		*data++ = u64_stats_read(&tx->packets);
		*data++ = u64_stats_read(&tx->bytes);
		*data++ = u64_stats_read(&tx->xdp_xmit);
		*data++ = u64_stats_read(&tx->xdp_drops);
		*data++ = u64_stats_read(&tx->xsk_packets);
	}
}

const struct ethtool_ops qhca_ethtool_ops = {
	QHCA_ETHTOOL_NEEDS_RTNL
	QHCA_ETHTOOL_RSS
	QHCA_ETHTOOL_RXNFC_ADDS
	.rxfh_per_ctx_key = 1,
	.rxfh_priv_size = sizeof(struct qhca_rss_ctx),
	.rxfh_max_num_contexts = QHCA_RSS_CONTEXTS,
	.supported_ring_params = ETHTOOL_RING_USE_RX_BUF_LEN |
				 ETHTOOL_RING_USE_TCP_DATA_SPLIT |
				 QHCA_ETHTOOL_HDS_THRS,
	.supported_coalesce_params = ETHTOOL_COALESCE_USECS |
				     ETHTOOL_COALESCE_MAX_FRAMES |
				     QHCA_COALESCE_ADAPTIVE,
	.get_drvinfo = qhca_ethtool_get_drvinfo,
	.get_link = ethtool_op_get_link,
	.get_link_ksettings = qhca_ethtool_get_link_ksettings,
	.get_ringparam = qhca_ethtool_get_ringparam,
	.set_ringparam = qhca_ethtool_set_ringparam,
	.get_pauseparam = qhca_ethtool_get_pauseparam,
	.set_pauseparam = qhca_ethtool_set_pauseparam,
	.get_pause_stats = qhca_get_pause_stats,
	.get_channels = qhca_ethtool_get_channels,
	.set_channels = qhca_ethtool_set_channels,
	.get_coalesce = qhca_get_coalesce,
	.set_coalesce = qhca_set_coalesce,
	.get_per_queue_coalesce = qhca_get_queue_coalesce,
	.set_per_queue_coalesce = qhca_set_queue_coalesce,
	.get_sset_count = qhca_ethtool_get_sset_count,
	.get_strings = qhca_ethtool_get_strings,
	.get_ethtool_stats = qhca_ethtool_get_stats,
	.get_eth_mac_stats = qhca_get_eth_mac_stats,
	.get_eth_ctrl_stats = qhca_get_eth_ctrl_stats,
	.get_rmon_stats = qhca_get_rmon_stats,
	.get_rxnfc = qhca_get_rxnfc,
	.set_rxnfc = qhca_set_rxnfc,
	.get_rxfh_key_size = qhca_get_rxfh_key_size,
	.get_rxfh_indir_size = qhca_get_rxfh_indir_size,
	.get_rxfh = qhca_get_rxfh,
	.set_rxfh = qhca_set_rxfh,
	.create_rxfh_context = qhca_create_rxfh_context,
	.modify_rxfh_context = qhca_modify_rxfh_context,
	.remove_rxfh_context = qhca_remove_rxfh_context,
	.get_ts_info = qhca_get_ts_info,
	.get_ts_stats = qhca_get_ts_stats,
};
