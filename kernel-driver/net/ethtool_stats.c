// SPDX-License-Identifier: GPL-2.0
/*
 * The port's counters as defined by standards: ethtool -S --groups, and -a with
 * -I. Counters of what cannot happen on the device's wire (collisions, symbol
 * errors, checksum errors of frames) are missing.
 */
#include <linux/ethtool.h>

#include "ethtool.h"
#include "netdev.h"

/* Bytes with FCS; the counters follow each other in this order. */
static const struct ethtool_rmon_hist_range rmon_ranges[] = {
	{ 0, 64 },
	{ 65, 127 },
	{ 128, 255 },
	{ 256, 511 },
	{ 512, 1023 },
	{ 1024, 1518 },
	{ 1519, QHCA_ETH_MAX_FRAME + ETH_FCS_LEN },
	{}
};

/* Read the device's counters. False if there are none. Sleeps. */
static bool port_stats_read(struct net_device *netdev, __le64 *hw)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	return priv->dev->caps.features & QHCA_FEAT_PORT_STATS &&
	       !qhca_aq_query(priv->dev, QHCA_CMD_QUERY_STATS, 0, hw,
			      QHCA_STAT_COUNT * sizeof(*hw));
}

/*
 * ethtool_ops.get_eth_mac_stats. The octets are those of whole frames with FCS,
 * as the kernel's own test of these counters expects and other adapters report;
 * 802.3 counts data and padding only. A frame is lost in the MAC if the device
 * cannot read it from memory, or refuses its WQE.
 */
void qhca_get_eth_mac_stats(struct net_device *netdev,
			    struct ethtool_eth_mac_stats *s)
{
	__le64 hw[QHCA_STAT_COUNT];

	if (!port_stats_read(netdev, hw))
		return;
	s->FramesTransmittedOK = le64_to_cpu(hw[QHCA_STAT_PORT_TX_FRAMES]);
	s->FramesReceivedOK = le64_to_cpu(hw[QHCA_STAT_PORT_RX_FRAMES]);
	s->OctetsTransmittedOK = le64_to_cpu(hw[QHCA_STAT_PORT_TX_OCTETS]);
	s->OctetsReceivedOK = le64_to_cpu(hw[QHCA_STAT_PORT_RX_OCTETS]);
	s->MulticastFramesXmittedOK =
		le64_to_cpu(hw[QHCA_STAT_PORT_TX_MULTICAST]);
	s->BroadcastFramesXmittedOK =
		le64_to_cpu(hw[QHCA_STAT_PORT_TX_BROADCAST]);
	s->MulticastFramesReceivedOK =
		le64_to_cpu(hw[QHCA_STAT_PORT_RX_MULTICAST]);
	s->BroadcastFramesReceivedOK =
		le64_to_cpu(hw[QHCA_STAT_PORT_RX_BROADCAST]);
	s->FramesLostDueToIntMACXmitError =
		le64_to_cpu(hw[QHCA_STAT_ETH_TX_ERRORS]);
	s->FrameTooLongErrors = le64_to_cpu(hw[QHCA_STAT_PORT_RX_OVERSIZE]);
}

/* ethtool_ops.get_eth_ctrl_stats */
void qhca_get_eth_ctrl_stats(struct net_device *netdev,
			     struct ethtool_eth_ctrl_stats *s)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	__le64 hw[QHCA_STAT_COUNT];

	if (!(priv->dev->caps.features & QHCA_FEAT_PAUSE) ||
	    !port_stats_read(netdev, hw))
		return;
	s->MACControlFramesTransmitted =
		le64_to_cpu(hw[QHCA_STAT_PORT_TX_CONTROL]);
	s->MACControlFramesReceived =
		le64_to_cpu(hw[QHCA_STAT_PORT_RX_CONTROL]);
}

/* ethtool_ops.get_pause_stats */
void qhca_get_pause_stats(struct net_device *netdev,
			  struct ethtool_pause_stats *s)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	__le64 hw[QHCA_STAT_COUNT];

	if (!(priv->dev->caps.features & QHCA_FEAT_PAUSE) ||
	    !port_stats_read(netdev, hw))
		return;
	s->tx_pause_frames = le64_to_cpu(hw[QHCA_STAT_PORT_TX_PAUSE]);
	s->rx_pause_frames = le64_to_cpu(hw[QHCA_STAT_PORT_RX_PAUSE]);
}

/* ethtool_ops.get_rmon_stats */
void qhca_get_rmon_stats(struct net_device *netdev,
			 struct ethtool_rmon_stats *s,
			 const struct ethtool_rmon_hist_range **ranges)
{
	__le64 hw[QHCA_STAT_COUNT];
	unsigned int i;

	BUILD_BUG_ON(ARRAY_SIZE(rmon_ranges) > ETHTOOL_RMON_HIST_MAX);

	if (!port_stats_read(netdev, hw))
		return;
	s->undersize_pkts = le64_to_cpu(hw[QHCA_STAT_PORT_RX_UNDERSIZE]);
	s->oversize_pkts = le64_to_cpu(hw[QHCA_STAT_PORT_RX_OVERSIZE]);
	for (i = 0; i < ARRAY_SIZE(rmon_ranges) - 1; i++) {
		s->hist[i] = le64_to_cpu(hw[QHCA_STAT_PORT_RX_64 + i]);
		s->hist_tx[i] = le64_to_cpu(hw[QHCA_STAT_PORT_TX_64 + i]);
	}
	*ranges = rmon_ranges;
}
