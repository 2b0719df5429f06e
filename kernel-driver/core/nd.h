/* SPDX-License-Identifier: GPL-2.0 */
/* The net_device, between its files. */
#ifndef QHCA_ND_H
#define QHCA_ND_H

#include <linux/etherdevice.h>
#include <linux/netdevice.h>

#include "core.h"

struct page_pool;

#define QHCA_TX_DEPTH_DEF	512U
#define QHCA_RX_DEPTH_DEF	1024U
#define QHCA_RING_MIN		64U
#define QHCA_RING_MAX		8192U

#define QHCA_TX_STRIDE		9	/* header and QHCA_ETH_MAX_SGE segments */
#define QHCA_RX_STRIDE		4	/* one segment */

/* A CQ of an Ethernet queue. */
struct qhca_ncq {
	struct qhca_core_cq cq;
	struct qhca_nd *nd;
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
	u32 bytes;		/* as told to BQL */
	u16 nsegs;
};

struct qhca_txq {
	struct qhca_ncq cq;
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
	struct qhca_ncq cq;
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
struct qhca_mod {
	u16 count;
	u16 usec;
};

/* Counters of the device that the stack's statistics show. */
enum {
	QHCA_ND_RX_MISSED,
	QHCA_ND_RX_ERRORS,
	QHCA_ND_MULTICAST,
	QHCA_ND_HW_STATS
};

struct qhca_nd {
	struct qhca_core *core;
	struct net_device *netdev;
	struct napi_struct napi;
	struct qhca_txq txq;
	struct qhca_rxq rxq;
	struct qhca_dbrec *dbrecs;	/* a page of records */
	dma_addr_t dbrecs_dma;
	bool up;			/* under rtnl */
	u32 tx_depth;			/* for the next time it comes up */
	u32 rx_depth;
	struct qhca_mod tx_mod;
	struct qhca_mod rx_mod;
	u32 speed;			/* Mb/s */
	u32 fw_version;
	struct work_struct rx_mode_work;
	struct work_struct link_work;
	struct work_struct stats_work;
	struct mutex stats_lock;	/* protects hw_last */
	u64 hw_last[QHCA_ND_HW_STATS];	/* as last read from the device */
	atomic64_t hw_total[QHCA_ND_HW_STATS];	/* over all its resets */
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

static inline dma_addr_t qhca_nd_dbrec_dma(struct qhca_nd *nd,
					   struct qhca_dbrec *rec)
{
	return nd->dbrecs_dma + (rec - nd->dbrecs) * sizeof(*rec);
}

/* netdev.c */
int qhca_nd_up(struct qhca_nd *nd);
void qhca_nd_down(struct qhca_nd *nd);
u32 qhca_nd_ring_limit(struct qhca_core *core);
int qhca_nd_restart(struct qhca_nd *nd);

/* ncq.c */
int qhca_ncq_create(struct qhca_nd *nd, struct qhca_ncq *cq, u8 shift,
		    int dbrec, const struct qhca_mod *mod);
void qhca_ncq_quiesce(struct qhca_ncq *cq);
void qhca_ncq_destroy(struct qhca_ncq *cq);
struct qhca_cqe *qhca_ncq_next(struct qhca_ncq *cq);
void qhca_ncq_publish(struct qhca_ncq *cq);
void qhca_ncq_arm(struct qhca_ncq *cq);
int qhca_ncq_moderate(struct qhca_ncq *cq, const struct qhca_mod *mod);

/* tx.c */
int qhca_tx_create(struct qhca_nd *nd);
void qhca_tx_stop(struct qhca_nd *nd);
void qhca_tx_destroy(struct qhca_nd *nd);
netdev_tx_t qhca_xmit(struct sk_buff *skb, struct net_device *netdev);
bool qhca_tx_poll(struct qhca_nd *nd, int budget);

/* rx.c */
int qhca_rx_create(struct qhca_nd *nd);
void qhca_rx_stop(struct qhca_nd *nd);
void qhca_rx_destroy(struct qhca_nd *nd);
int qhca_rx_poll(struct qhca_nd *nd, int budget);

/* rx_mode.c */
void qhca_set_rx_mode(struct net_device *netdev);
void qhca_rx_mode_work(struct work_struct *work);

/* nd_stats.c */
void qhca_nd_stats_feed(struct qhca_nd *nd, const __le64 *hw, bool count);
void qhca_nd_stats_read(struct qhca_nd *nd, bool count);
void qhca_nd_stats_restart(struct qhca_nd *nd);
void qhca_nd_stats_work(struct work_struct *work);
void qhca_nd_get_stats64(struct net_device *netdev,
			 struct rtnl_link_stats64 *stats);

/* ethtool.c */
extern const struct ethtool_ops qhca_ethtool_ops;

#endif /* QHCA_ND_H */
