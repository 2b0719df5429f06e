/* SPDX-License-Identifier: GPL-2.0 */
/* Hardware timestamps, and the PTP clock that they use. */
#ifndef QHCA_PTP_H
#define QHCA_PTP_H

#include <linux/net_tstamp.h>
#include <linux/ptp_clock_kernel.h>
#include <linux/seqlock.h>
#include <linux/skbuff.h>

struct ethtool_ts_stats;
struct kernel_ethtool_ts_info;
struct netlink_ext_ack;
struct qhca_netdev;
struct qhca_tx_queue;

/**
 * struct qhca_ptp - the PTP clock of a net_device
 * @info: its operations
 * @clock: NULL if there is none: then there are no hardware timestamps
 * @lock: protects @base_cycles, @base_ns and @rate
 * @base_cycles: device clock, ns
 * @base_ns: PTP clock at that moment, ns
 * @rate: PTP clock ns per device clock ns, fixed point
 * @tx_type: HWTSTAMP_TX_*; under qhca_netdev_lock(), read without
 * @rx_filter: HWTSTAMP_FILTER_NONE or _ALL; the same
 */
struct qhca_ptp {
	struct ptp_clock_info info;
	struct ptp_clock *clock;
	seqlock_t lock;
	u64 base_cycles;
	u64 base_ns;
	u64 rate;
	int tx_type;
	int rx_filter;
};

void qhca_ptp_create(struct qhca_netdev *priv);
void qhca_ptp_destroy(struct qhca_netdev *priv);
ktime_t qhca_ptp_time(struct qhca_ptp *ptp, u64 cycles);
void qhca_ptp_tx_done(struct qhca_tx_queue *q, struct sk_buff *skb,
		      u64 cycles);

/* Are received frames stamped? */
static inline bool qhca_ptp_rx_on(const struct qhca_ptp *ptp)
{
	return READ_ONCE(ptp->rx_filter) == HWTSTAMP_FILTER_ALL;
}

/* @skb was received when the device clock was @cycles. */
static inline void qhca_ptp_rx(struct qhca_ptp *ptp, struct sk_buff *skb,
			       u64 cycles)
{
	if (qhca_ptp_rx_on(ptp))
		skb_hwtstamps(skb)->hwtstamp = qhca_ptp_time(ptp, cycles);
}

/*
 * @skb is about to be sent. Returns true if its completion must be given to
 * qhca_ptp_tx_done(). Before skb_tx_timestamp().
 */
static inline bool qhca_ptp_tx_begin(const struct qhca_ptp *ptp,
				     struct sk_buff *skb)
{
	if (likely(!(skb_shinfo(skb)->tx_flags & SKBTX_HW_TSTAMP)) ||
	    READ_ONCE(ptp->tx_type) != HWTSTAMP_TX_ON)
		return false;
	skb_shinfo(skb)->tx_flags |= SKBTX_IN_PROGRESS;
	return true;
}

/* operations of the net_device, and of ethtool */
int qhca_hwtstamp_get(struct net_device *netdev,
		      struct kernel_hwtstamp_config *config);
int qhca_hwtstamp_set(struct net_device *netdev,
		      struct kernel_hwtstamp_config *config,
		      struct netlink_ext_ack *extack);
int qhca_get_ts_info(struct net_device *netdev,
		     struct kernel_ethtool_ts_info *info);
void qhca_get_ts_stats(struct net_device *netdev,
		       struct ethtool_ts_stats *stats);

#endif /* QHCA_PTP_H */
