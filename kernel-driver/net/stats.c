// SPDX-License-Identifier: GPL-2.0
/*
 * The part of the stack's statistics (ip -s link) that comes from the device's
 * counters: frames that never became a completion. Reading them takes an admin
 * command, which sleeps, but ndo_get_stats64 must not: each call starts a work
 * item that fetches the values for the next call.
 */
#include "netdev.h"

/* index into QUERY_STATS of each value */
static const u8 counters[QHCA_NETDEV_HW_STATS] = {
	[QHCA_NETDEV_RX_MISSED] = QHCA_STAT_ETH_RX_DROPPED,
	[QHCA_NETDEV_RX_ERRORS] = QHCA_STAT_ETH_RX_ERRORS,
	[QHCA_NETDEV_MULTICAST] = QHCA_STAT_ETH_RX_MULTICAST,
};

/*
 * Process counters that QUERY_STATS has returned. @count: count the frames;
 * false for those that came while the net_device was down.
 */
void qhca_netdev_stats_feed(struct qhca_netdev *priv, const __le64 *hw,
			    bool count)
{
	int i;

	mutex_lock(&priv->stats_lock);
	for (i = 0; i < QHCA_NETDEV_HW_STATS; i++) {
		u64 now = le64_to_cpu(hw[counters[i]]);

		/* two reads may finish in the wrong order */
		if (now <= priv->hw_last[i])
			continue;
		if (count)
			atomic64_add(now - priv->hw_last[i],
				     &priv->hw_total[i]);
		priv->hw_last[i] = now;
	}
	mutex_unlock(&priv->stats_lock);
}

/* Read the counters and process them. Sleeps. */
void qhca_netdev_stats_read(struct qhca_netdev *priv, bool count)
{
	__le64 hw[QHCA_STAT_ETH_RX_MULTICAST + 1];

	if (!qhca_aq_query(priv->dev, QHCA_CMD_QUERY_STATS, 0, hw,
			   sizeof(hw)))
		qhca_netdev_stats_feed(priv, hw, count);
}

/*
 * The device was reset and counts from 0; the stack's statistics continue. The
 * net_device is down, so nothing updates them.
 */
void qhca_netdev_stats_restart(struct qhca_netdev *priv)
{
	mutex_lock(&priv->stats_lock);
	memset(priv->hw_last, 0, sizeof(priv->hw_last));
	mutex_unlock(&priv->stats_lock);
}

void qhca_netdev_stats_work(struct work_struct *work)
{
	struct qhca_netdev *priv = container_of(work, struct qhca_netdev,
						stats_work);

	if (READ_ONCE(priv->up))
		qhca_netdev_stats_read(priv, true);
}

static void stats_add_tx(struct rtnl_link_stats64 *to, struct qhca_tx_stats *s)
{
	u64 packets, bytes, errors, dropped;
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&s->sync);
		packets = u64_stats_read(&s->packets);
		bytes = u64_stats_read(&s->bytes);
		errors = u64_stats_read(&s->errors);
		dropped = u64_stats_read(&s->dropped);
	} while (u64_stats_fetch_retry(&s->sync, start));
	to->tx_packets += packets;
	to->tx_bytes += bytes;
	to->tx_errors += errors;
	to->tx_dropped += dropped;
}

static void stats_add_rx(struct rtnl_link_stats64 *to, struct qhca_rx_stats *s)
{
	u64 packets, bytes, errors, dropped;
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&s->sync);
		packets = u64_stats_read(&s->packets);
		bytes = u64_stats_read(&s->bytes);
		errors = u64_stats_read(&s->errors);
		dropped = u64_stats_read(&s->dropped);
	} while (u64_stats_fetch_retry(&s->sync, start));
	to->rx_packets += packets;
	to->rx_bytes += bytes;
	to->rx_errors += errors;
	to->rx_dropped += dropped;
}

/* ndo_get_stats64; any context */
void qhca_netdev_get_stats64(struct net_device *netdev,
			     struct rtnl_link_stats64 *stats)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	int i;

	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		stats_add_tx(stats, &priv->tx_stats[i]);
		stats_add_rx(stats, &priv->rx_stats[i]);
	}
	stats->rx_missed_errors +=
		atomic64_read(&priv->hw_total[QHCA_NETDEV_RX_MISSED]);
	stats->rx_errors +=
		atomic64_read(&priv->hw_total[QHCA_NETDEV_RX_ERRORS]);
	stats->multicast +=
		atomic64_read(&priv->hw_total[QHCA_NETDEV_MULTICAST]);
	schedule_work(&priv->stats_work);
}
