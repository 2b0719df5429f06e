/* SPDX-License-Identifier: GPL-2.0 */
/* The net_device: private to this folder, and to debug/. */
#ifndef QHCA_NETDEV_H
#define QHCA_NETDEV_H

#include <linux/etherdevice.h>
#include <linux/netdevice.h>

#include "qhca_core.h"

struct page_pool;

#define QHCA_TX_DEPTH_DEF	512U
#define QHCA_RX_DEPTH_DEF	1024U
#define QHCA_RING_MIN		64U
#define QHCA_RING_MAX		8192U

#define QHCA_TX_STRIDE		9	/* header and QHCA_ETH_MAX_SGE segments */
#define QHCA_RX_STRIDE		4	/* one segment */

/* A CQ of an Ethernet queue. */
struct qhca_net_cq {
	struct qhca_core_cq cq;
	struct qhca_netdev *priv;
	struct qhca_queue_buf buf;
	struct qhca_dbrec *dbrec;
	u32 cons;
	u8 shift;
	bool made;
};

/* A mapped segment; our own note of it: the device can write into WQEs. */
struct qhca_tx_seg {
	dma_addr_t addr;
	u32 len;
};

struct qhca_tx_buf {
	struct sk_buff *skb;
	u32 bytes;		/* as reported to BQL */
	u16 nsegs;
};

struct qhca_txq {
	struct qhca_net_cq cq;
	struct qhca_queue_buf buf;
	struct qhca_tx_buf *bufs;
	struct qhca_tx_seg *segs;	/* QHCA_ETH_MAX_SGE per WQE */
	u32 num;
	u32 prod;		/* next WQE to write */
	u32 rung;		/* prod at the last doorbell */
	u32 cons;		/* oldest WQE not completed; by NAPI */
	u8 shift;
	bool made;
};

struct qhca_rxq {
	struct qhca_net_cq cq;
	struct qhca_queue_buf buf;
	struct page_pool *pool;
	struct page **pages;
	struct qhca_dbrec *dbrec;
	u32 num;
	u32 prod;
	u32 cons;
	u8 shift;
	bool made;
};

/* Event moderation, for struct qhca_cqc. */
struct qhca_coalesce {
	u16 count;
	u16 usec;
};

/* Counters of the device that the stack's statistics show. */
enum {
	QHCA_NETDEV_RX_MISSED,
	QHCA_NETDEV_RX_ERRORS,
	QHCA_NETDEV_MULTICAST,
	QHCA_NETDEV_HW_STATS
};

struct qhca_netdev {
	struct qhca_dev *dev;
	struct net_device *netdev;
	struct napi_struct napi;
	struct qhca_txq txq;
	struct qhca_rxq rxq;
	struct qhca_dbrec *dbrecs;	/* a page of records */
	dma_addr_t dbrecs_dma;
	bool up;			/* under rtnl */
	u32 tx_depth;			/* for the next time it comes up */
	u32 rx_depth;
	struct qhca_coalesce tx_coalesce;
	struct qhca_coalesce rx_coalesce;
	u32 speed;			/* Mb/s */
	struct work_struct rx_mode_work;
	struct work_struct link_work;
	struct work_struct stats_work;
	struct mutex stats_lock;	/* protects hw_last */
	u64 hw_last[QHCA_NETDEV_HW_STATS];	/* as last read from the device */
	atomic64_t hw_total[QHCA_NETDEV_HW_STATS];	/* over all its resets */
	u64 tx_busy;			/* queue stopped: ring full */
	u64 rx_alloc_failed;
	u64 tx_linearized;
};

/* records are a cache line apart */
enum {
	QHCA_DBREC_TX_CQ = 0,
	QHCA_DBREC_RX_CQ = 8,
	QHCA_DBREC_RX_RQ = 16,
};

static inline dma_addr_t qhca_netdev_dbrec_dma(struct qhca_netdev *priv,
					       struct qhca_dbrec *rec)
{
	return priv->dbrecs_dma + (rec - priv->dbrecs) * sizeof(*rec);
}

/* netdev.c */
int qhca_netdev_up(struct qhca_netdev *priv);
void qhca_netdev_down(struct qhca_netdev *priv);
u32 qhca_netdev_ring_limit(struct qhca_dev *dev);
int qhca_netdev_remake(struct qhca_dev *dev);
int qhca_netdev_restart(struct qhca_netdev *priv);

/* cq.c */
int qhca_net_cq_create(struct qhca_netdev *priv, struct qhca_net_cq *cq,
		       u8 shift, int dbrec,
		       const struct qhca_coalesce *coalesce);
void qhca_net_cq_quiesce(struct qhca_net_cq *cq);
void qhca_net_cq_destroy(struct qhca_net_cq *cq);
struct qhca_cqe *qhca_net_cq_next(struct qhca_net_cq *cq);
void qhca_net_cq_publish(struct qhca_net_cq *cq);
void qhca_net_cq_arm(struct qhca_net_cq *cq);
int qhca_net_cq_moderate(struct qhca_net_cq *cq,
			 const struct qhca_coalesce *coalesce);

/* tx.c */
int qhca_tx_create(struct qhca_netdev *priv);
void qhca_tx_stop(struct qhca_netdev *priv);
void qhca_tx_destroy(struct qhca_netdev *priv);
netdev_tx_t qhca_xmit(struct sk_buff *skb, struct net_device *netdev);
bool qhca_tx_poll(struct qhca_netdev *priv, int budget);

/* rx.c */
int qhca_rx_create(struct qhca_netdev *priv);
void qhca_rx_stop(struct qhca_netdev *priv);
void qhca_rx_destroy(struct qhca_netdev *priv);
int qhca_rx_poll(struct qhca_netdev *priv, int budget);

/* rx_mode.c */
void qhca_set_rx_mode(struct net_device *netdev);
void qhca_rx_mode_work(struct work_struct *work);

/* stats.c */
void qhca_netdev_stats_feed(struct qhca_netdev *priv, const __le64 *hw,
			    bool count);
void qhca_netdev_stats_read(struct qhca_netdev *priv, bool count);
void qhca_netdev_stats_restart(struct qhca_netdev *priv);
void qhca_netdev_stats_work(struct work_struct *work);
void qhca_netdev_get_stats64(struct net_device *netdev,
			     struct rtnl_link_stats64 *stats);

/* what the net_device reports to devlink health */
enum {
	QHCA_NETDEV_REPORT_TX = QHCA_REPORT_CLIENT,
	QHCA_NETDEV_REPORT_RX,
	QHCA_NETDEV_REPORTERS = 2
};

/* health.c */
extern const struct qhca_reporter qhca_netdev_reporters[QHCA_NETDEV_REPORTERS];

/* ethtool.c */
extern const struct ethtool_ops qhca_ethtool_ops;

#endif /* QHCA_NETDEV_H */
