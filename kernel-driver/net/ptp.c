// SPDX-License-Identifier: GPL-2.0
/*
 * Hardware timestamps, and the PTP clock that they use.
 *
 * The device stamps each completion with its clock: nanoseconds, 64 bits, never
 * set. The PTP clock that users set and steer is the device clock with an
 * offset and a rate. The multiplication loses no bits, however long ago the
 * last change was. So unlike a struct timecounter it needs no periodic update,
 * and the time is right even after a guest was stopped for an hour.
 */
#include <linux/ethtool.h>
#include <linux/math64.h>
#include <linux/timekeeping.h>

#include "netdev.h"

#define RATE_SHIFT	40	/* steps of 10^-12 */
#define RATE_ONE	BIT_ULL(RATE_SHIFT)
#define MAX_ADJ		100000000	/* ppb */

/* Under the lock. */
static u64 ptp_ns(const struct qhca_ptp *ptp, u64 cycles)
{
	return ptp->base_ns + mul_s64_u64_shr(cycles - ptp->base_cycles,
					      ptp->rate, RATE_SHIFT);
}

/* Convert the device clock @cycles to the PTP clock. Any context. */
ktime_t qhca_ptp_time(struct qhca_ptp *ptp, u64 cycles)
{
	unsigned int seq;
	u64 ns;

	do {
		seq = read_seqbegin(&ptp->lock);
		ns = ptp_ns(ptp, cycles);
	} while (read_seqretry(&ptp->lock, seq));
	return ns_to_ktime(ns);
}

/*
 * Read the device clock, and the system clock before and after into @sts, which
 * may be NULL. -EIO if the device is gone.
 */
static int ptp_read(struct qhca_ptp *ptp, struct ptp_system_timestamp *sts,
		    u64 *cycles)
{
	struct qhca_netdev *priv = container_of(ptp, struct qhca_netdev, ptp);

	ptp_read_system_prets(sts);
	*cycles = readq(priv->dev->regs + QHCA_REG_CLOCK);
	ptp_read_system_postts(sts);
	return *cycles == U64_MAX ? -EIO : 0;
}

static int ptp_gettimex64(struct ptp_clock_info *info, struct timespec64 *ts,
			  struct ptp_system_timestamp *sts)
{
	struct qhca_ptp *ptp = container_of(info, struct qhca_ptp, info);
	u64 cycles;
	int err = ptp_read(ptp, sts, &cycles);

	if (!err)
		*ts = ktime_to_timespec64(qhca_ptp_time(ptp, cycles));
	return err;
}

static int ptp_settime64(struct ptp_clock_info *info,
			 const struct timespec64 *ts)
{
	struct qhca_ptp *ptp = container_of(info, struct qhca_ptp, info);
	unsigned long flags;
	u64 cycles;
	int err;

	write_seqlock_irqsave(&ptp->lock, flags);
	err = ptp_read(ptp, NULL, &cycles);
	if (!err) {
		ptp->base_cycles = cycles;
		ptp->base_ns = timespec64_to_ns(ts);
	}
	write_sequnlock_irqrestore(&ptp->lock, flags);
	return err;
}

static int ptp_adjtime(struct ptp_clock_info *info, s64 delta)
{
	struct qhca_ptp *ptp = container_of(info, struct qhca_ptp, info);
	unsigned long flags;

	write_seqlock_irqsave(&ptp->lock, flags);
	ptp->base_ns += delta;
	write_sequnlock_irqrestore(&ptp->lock, flags);
	return 0;
}

static int ptp_adjfine(struct ptp_clock_info *info, long scaled_ppm)
{
	struct qhca_ptp *ptp = container_of(info, struct qhca_ptp, info);
	unsigned long flags;
	u64 cycles;
	int err;

	write_seqlock_irqsave(&ptp->lock, flags);
	err = ptp_read(ptp, NULL, &cycles);
	if (!err) {
		/* the old rate applies up to now */
		ptp->base_ns = ptp_ns(ptp, cycles);
		ptp->base_cycles = cycles;
		ptp->rate = adjust_by_scaled_ppm(RATE_ONE, scaled_ppm);
	}
	write_sequnlock_irqrestore(&ptp->lock, flags);
	return err;
}

static const struct ptp_clock_info ptp_template = {
	.owner = THIS_MODULE,
	.name = QHCA_DRV_NAME,
	.max_adj = MAX_ADJ,
	.adjfine = ptp_adjfine,
	.adjtime = ptp_adjtime,
	.gettimex64 = ptp_gettimex64,
	.settime64 = ptp_settime64,
};

/*
 * Create the PTP clock, set to the system's time. Without one, the net_device
 * still works.
 */
void qhca_ptp_create(struct qhca_netdev *priv)
{
	struct qhca_ptp *ptp = &priv->ptp;
	struct ptp_clock *clock;
	struct timespec64 now;

	seqlock_init(&ptp->lock);
	ptp->rate = RATE_ONE;
	ptp->tx_type = HWTSTAMP_TX_OFF;
	ptp->rx_filter = HWTSTAMP_FILTER_NONE;
	ptp->info = ptp_template;
	ktime_get_real_ts64(&now);
	if (ptp_settime64(&ptp->info, &now))
		return;
	clock = ptp_clock_register(&ptp->info, qhca_dma_dev(priv->dev));
	if (IS_ERR(clock))
		dev_warn(qhca_dma_dev(priv->dev), "no PTP clock: %ld\n",
			 PTR_ERR(clock));
	else	/* NULL if the kernel does not support PTP clocks */
		ptp->clock = clock;
}

/* Undo qhca_ptp_create(); the net_device is no longer registered. */
void qhca_ptp_destroy(struct qhca_netdev *priv)
{
	if (priv->ptp.clock)
		ptp_clock_unregister(priv->ptp.clock);
	priv->ptp.clock = NULL;
}

/*
 * @skb of @q, for which qhca_ptp_tx_begin() returned true, was sent when the
 * device clock was @cycles. Under the lock of the stack's queue.
 */
void qhca_ptp_tx_done(struct qhca_tx_queue *q, struct sk_buff *skb, u64 cycles)
{
	struct skb_shared_hwtstamps stamps = {
		.hwtstamp = qhca_ptp_time(&q->priv->ptp, cycles),
	};

	skb_tstamp_tx(skb, &stamps);
	qhca_stat_inc(&q->stats->sync, &q->stats->stamped);
}

/* ndo_hwtstamp_get */
int qhca_hwtstamp_get(struct net_device *netdev,
		      struct kernel_hwtstamp_config *config)
{
	const struct qhca_netdev *priv = netdev_priv(netdev);

	if (!priv->ptp.clock)
		return -EOPNOTSUPP;
	config->flags = 0;
	config->tx_type = priv->ptp.tx_type;
	config->rx_filter = priv->ptp.rx_filter;
	return 0;
}

/*
 * ndo_hwtstamp_set. The device stamps all frames, so a request for some of them
 * enables all.
 */
int qhca_hwtstamp_set(struct net_device *netdev,
		      struct kernel_hwtstamp_config *config,
		      struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	if (!priv->ptp.clock) {
		NL_SET_ERR_MSG(extack, "there is no PTP clock");
		return -EOPNOTSUPP;
	}
	if (config->tx_type != HWTSTAMP_TX_OFF &&
	    config->tx_type != HWTSTAMP_TX_ON) {
		NL_SET_ERR_MSG(extack,
			       "the device does not write stamps into frames");
		return -ERANGE;
	}
	if (config->rx_filter != HWTSTAMP_FILTER_NONE)
		config->rx_filter = HWTSTAMP_FILTER_ALL;
	WRITE_ONCE(priv->ptp.tx_type, config->tx_type);
	WRITE_ONCE(priv->ptp.rx_filter, config->rx_filter);
	return 0;
}

/* ethtool -T */
int qhca_get_ts_info(struct net_device *netdev,
		     struct kernel_ethtool_ts_info *info)
{
	const struct qhca_netdev *priv = netdev_priv(netdev);
	int err = ethtool_op_get_ts_info(netdev, info);

	if (err || !priv->ptp.clock)
		return err;
	info->so_timestamping |= SOF_TIMESTAMPING_TX_SOFTWARE |
				 SOF_TIMESTAMPING_HARDWARE_MASK;
	info->phc_index = ptp_clock_index(priv->ptp.clock);
	info->tx_types = BIT(HWTSTAMP_TX_OFF) | BIT(HWTSTAMP_TX_ON);
	info->rx_filters = BIT(HWTSTAMP_FILTER_NONE) | BIT(HWTSTAMP_FILTER_ALL);
	return 0;
}

/* ethtool -I -T */
void qhca_get_ts_stats(struct net_device *netdev,
		       struct ethtool_ts_stats *stats)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	int i;

	stats->pkts = 0;
	stats->lost = 0;
	stats->err = 0;
	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		stats->pkts += u64_stats_read(&priv->tx_stats[i].stamped);
		stats->lost += u64_stats_read(&priv->tx_stats[i].unstamped);
	}
}
