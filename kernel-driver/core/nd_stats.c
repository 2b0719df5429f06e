// SPDX-License-Identifier: GPL-2.0
/*
 * What the stack's own statistics (ip -s link) take from the device's counters:
 * frames that never became a completion. Reading them is an admin command,
 * which sleeps, and those who ask must not: each time somebody asks, a work
 * item fetches the values for the next time.
 */
#include "nd.h"

/* index into QUERY_STATS of each value */
static const u8 counters[QHCA_ND_HW_STATS] = {
	[QHCA_ND_RX_MISSED] = QHCA_STAT_ETH_RX_DROPPED,
	[QHCA_ND_RX_ERRORS] = QHCA_STAT_ETH_RX_ERRORS,
	[QHCA_ND_MULTICAST] = QHCA_STAT_ETH_RX_MULTICAST,
};

/*
 * Take counters that QUERY_STATS has returned. @count: the frames are ours;
 * false for those that came while the net_device was down.
 */
void qhca_nd_stats_feed(struct qhca_nd *nd, const __le64 *hw, bool count)
{
	int i;

	mutex_lock(&nd->stats_lock);
	for (i = 0; i < QHCA_ND_HW_STATS; i++) {
		u64 now = le64_to_cpu(hw[counters[i]]);

		/* two readings may come in the wrong order */
		if (now <= nd->hw_last[i])
			continue;
		if (count)
			atomic64_add(now - nd->hw_last[i], &nd->hw_total[i]);
		nd->hw_last[i] = now;
	}
	mutex_unlock(&nd->stats_lock);
}

/* Read the counters and take them. Sleeps. */
void qhca_nd_stats_read(struct qhca_nd *nd, bool count)
{
	__le64 hw[QHCA_STAT_ETH_RX_MULTICAST + 1];

	if (!qhca_aq_query(&nd->core->dev, QHCA_CMD_QUERY_STATS, 0, hw,
			   sizeof(hw)))
		qhca_nd_stats_feed(nd, hw, count);
}

/*
 * The device was reset and counts from 0; the stack's statistics go on. The
 * net_device is down: nobody feeds.
 */
void qhca_nd_stats_restart(struct qhca_nd *nd)
{
	mutex_lock(&nd->stats_lock);
	memset(nd->hw_last, 0, sizeof(nd->hw_last));
	mutex_unlock(&nd->stats_lock);
}

void qhca_nd_stats_work(struct work_struct *work)
{
	struct qhca_nd *nd = container_of(work, struct qhca_nd, stats_work);

	if (READ_ONCE(nd->up))
		qhca_nd_stats_read(nd, true);
}

/* ndo_get_stats64; any context */
void qhca_nd_get_stats64(struct net_device *netdev,
			 struct rtnl_link_stats64 *stats)
{
	struct qhca_nd *nd = netdev_priv(netdev);

	/* with what DEV_STATS_INC() has counted */
	dev_get_tstats64(netdev, stats);
	stats->rx_missed_errors +=
		atomic64_read(&nd->hw_total[QHCA_ND_RX_MISSED]);
	stats->rx_errors += atomic64_read(&nd->hw_total[QHCA_ND_RX_ERRORS]);
	stats->multicast += atomic64_read(&nd->hw_total[QHCA_ND_MULTICAST]);
	schedule_work(&nd->stats_work);
}
