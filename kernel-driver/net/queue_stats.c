// SPDX-License-Identifier: GPL-2.0
/* Statistics of each queue, as netlink shows them. */
#include <net/netdev_queues.h>

#include "netdev.h"

static void rx_read(struct qhca_rx_stats *s, struct netdev_queue_stats_rx *to)
{
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&s->sync);
		to->packets = u64_stats_read(&s->packets);
		to->bytes = u64_stats_read(&s->bytes);
		to->alloc_fail = u64_stats_read(&s->alloc_failed) +
				 u64_stats_read(&s->dropped);
		to->csum_unnecessary = u64_stats_read(&s->csum_unnecessary);
		to->csum_none = u64_stats_read(&s->csum_none);
		to->hw_gro_packets = u64_stats_read(&s->large_packets);
		to->hw_gro_bytes = u64_stats_read(&s->large_bytes);
		to->hw_gro_wire_packets =
			u64_stats_read(&s->large_wire_packets);
		to->hw_gro_wire_bytes = u64_stats_read(&s->large_wire_bytes);
	} while (u64_stats_fetch_retry(&s->sync, start));
}

static void tx_read(struct qhca_tx_stats *s, struct netdev_queue_stats_tx *to)
{
	unsigned int start;

	do {
		start = u64_stats_fetch_begin(&s->sync);
		to->packets = u64_stats_read(&s->packets);
		to->bytes = u64_stats_read(&s->bytes);
		to->hw_drop_errors = u64_stats_read(&s->errors);
		to->wake = u64_stats_read(&s->wake);
		to->stop = u64_stats_read(&s->stop);
		to->csum_none = u64_stats_read(&s->csum_none);
		to->needs_csum = u64_stats_read(&s->needs_csum);
		to->hw_gso_packets = u64_stats_read(&s->gso_packets);
		to->hw_gso_bytes = u64_stats_read(&s->gso_bytes);
		to->hw_gso_wire_packets =
			u64_stats_read(&s->gso_wire_packets);
		to->hw_gso_wire_bytes = u64_stats_read(&s->gso_wire_bytes);
	} while (u64_stats_fetch_retry(&s->sync, start));
}

static void stat_queue_rx(struct net_device *netdev, int i,
			  struct netdev_queue_stats_rx *stats)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	rx_read(&priv->rx_stats[i], stats);
}

static void stat_queue_tx(struct net_device *netdev, int i,
			  struct netdev_queue_stats_tx *stats)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	tx_read(&priv->tx_stats[i], stats);
}

/* Statistics of queues that no longer exist. */
static void stat_base(struct net_device *netdev,
		      struct netdev_queue_stats_rx *rx,
		      struct netdev_queue_stats_tx *tx)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct netdev_queue_stats_rx r;
	struct netdev_queue_stats_tx t;
	unsigned int i;

	rx->packets = 0;
	rx->bytes = 0;
	rx->alloc_fail = 0;
	rx->csum_unnecessary = 0;
	rx->csum_none = 0;
	rx->hw_gro_packets = 0;
	rx->hw_gro_bytes = 0;
	rx->hw_gro_wire_packets = 0;
	rx->hw_gro_wire_bytes = 0;
	tx->packets = 0;
	tx->bytes = 0;
	tx->hw_drop_errors = 0;
	tx->stop = 0;
	tx->wake = 0;
	tx->csum_none = 0;
	tx->needs_csum = 0;
	tx->hw_gso_packets = 0;
	tx->hw_gso_bytes = 0;
	tx->hw_gso_wire_packets = 0;
	tx->hw_gso_wire_bytes = 0;
	for (i = netdev->real_num_rx_queues; i < QHCA_MAX_CHANNELS; i++) {
		rx_read(&priv->rx_stats[i], &r);
		rx->packets += r.packets;
		rx->bytes += r.bytes;
		rx->alloc_fail += r.alloc_fail;
		rx->csum_unnecessary += r.csum_unnecessary;
		rx->csum_none += r.csum_none;
		rx->hw_gro_packets += r.hw_gro_packets;
		rx->hw_gro_bytes += r.hw_gro_bytes;
		rx->hw_gro_wire_packets += r.hw_gro_wire_packets;
		rx->hw_gro_wire_bytes += r.hw_gro_wire_bytes;
	}
	for (i = netdev->real_num_tx_queues; i < QHCA_MAX_CHANNELS; i++) {
		tx_read(&priv->tx_stats[i], &t);
		tx->packets += t.packets;
		tx->bytes += t.bytes;
		tx->hw_drop_errors += t.hw_drop_errors;
		tx->stop += t.stop;
		tx->wake += t.wake;
		tx->csum_none += t.csum_none;
		tx->needs_csum += t.needs_csum;
		tx->hw_gso_packets += t.hw_gso_packets;
		tx->hw_gso_bytes += t.hw_gso_bytes;
		tx->hw_gso_wire_packets += t.hw_gso_wire_packets;
		tx->hw_gso_wire_bytes += t.hw_gso_wire_bytes;
	}
}

const struct netdev_stat_ops qhca_netdev_stat_ops = {
	.get_queue_stats_rx = stat_queue_rx,
	.get_queue_stats_tx = stat_queue_tx,
	.get_base_stats = stat_base,
};

void qhca_queue_stats_init(struct qhca_netdev *priv)
{
	int i;

	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		u64_stats_init(&priv->tx_stats[i].sync);
		u64_stats_init(&priv->rx_stats[i].sync);
	}
}
