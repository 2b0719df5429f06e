/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Zero-copy AF_XDP sockets: both queues of a channel use the buffers of one
 * pool, an application's memory. Without CONFIG_XDP_SOCKETS no queue has a
 * pool.
 */
#ifndef QHCA_XSK_H
#define QHCA_XSK_H

#include "rx.h"

#define QHCA_XSK_TX_BUDGET	64U	/* descriptors in a poll */
/* per frame that an application sends */
#define QHCA_XSK_MAX_SEGS	min_t(u32, QHCA_ETH_MAX_SGE, MAX_SKB_FRAGS)

#if IS_ENABLED(CONFIG_XDP_SOCKETS)

#define QHCA_XSK_FEATURES	NETDEV_XDP_ACT_XSK_ZEROCOPY

/* xsk.c */
void qhca_xsk_init(struct net_device *netdev);
int qhca_xsk_setup_pool(struct qhca_netdev *priv, struct xsk_buff_pool *pool,
			u16 index);
int qhca_xsk_wakeup(struct net_device *netdev, u32 index, u32 flags);
bool qhca_xsk_mtu_ok(struct qhca_netdev *priv, u32 mtu);
bool qhca_xsk_in_use(const struct qhca_netdev *priv);

/* rx_xsk.c */
void qhca_xsk_rx_init(struct qhca_rx_queue *q);
void qhca_xsk_fill(struct qhca_rx_queue *q);
bool qhca_xsk_wants_timer(const struct qhca_rx_queue *q);
void qhca_xsk_drop(struct qhca_rx_queue *q, u32 n);
struct sk_buff *qhca_xsk_rx(struct qhca_rx_queue *q, struct bpf_prog *prog,
			    const struct qhca_eth_cqe *cqe,
			    struct qhca_rx_count *count);

/* tx_xsk.c */
bool qhca_xsk_tx(struct qhca_tx_queue *q);
bool qhca_xsk_tx_back(struct qhca_channel *ch, struct xdp_buff *xdp,
		      const struct qhca_eth_wqe *offloads);
u32 qhca_xsk_tx_release(struct qhca_tx_buf *buf);
void qhca_xsk_tx_stamp(struct qhca_tx_queue *q, struct qhca_tx_buf *buf,
		       u64 cycles);
void qhca_xsk_tx_completed(struct qhca_tx_queue *q, u32 descs);
void qhca_xsk_tx_forget(struct qhca_tx_queue *q);
extern const struct xsk_tx_metadata_ops qhca_xsk_tx_metadata_ops;

#else

#define QHCA_XSK_FEATURES	0

static inline void qhca_xsk_init(struct net_device *netdev)
{
}

static inline int qhca_xsk_setup_pool(struct qhca_netdev *priv,
				      struct xsk_buff_pool *pool, u16 index)
{
	return -EOPNOTSUPP;
}

static inline int qhca_xsk_wakeup(struct net_device *netdev, u32 index,
				  u32 flags)
{
	return -EOPNOTSUPP;
}

static inline bool qhca_xsk_mtu_ok(struct qhca_netdev *priv, u32 mtu)
{
	return true;
}

static inline bool qhca_xsk_in_use(const struct qhca_netdev *priv)
{
	return false;
}

static inline void qhca_xsk_rx_init(struct qhca_rx_queue *q)
{
}

static inline void qhca_xsk_fill(struct qhca_rx_queue *q)
{
}

static inline bool qhca_xsk_wants_timer(const struct qhca_rx_queue *q)
{
	return false;
}

static inline void qhca_xsk_drop(struct qhca_rx_queue *q, u32 n)
{
}

static inline struct sk_buff *qhca_xsk_rx(struct qhca_rx_queue *q,
					  struct bpf_prog *prog,
					  const struct qhca_eth_cqe *cqe,
					  struct qhca_rx_count *count)
{
	return NULL;
}

static inline bool qhca_xsk_tx(struct qhca_tx_queue *q)
{
	return false;
}

static inline bool qhca_xsk_tx_back(struct qhca_channel *ch,
				    struct xdp_buff *xdp,
				    const struct qhca_eth_wqe *offloads)
{
	return false;
}

static inline u32 qhca_xsk_tx_release(struct qhca_tx_buf *buf)
{
	return 0;
}

static inline void qhca_xsk_tx_stamp(struct qhca_tx_queue *q,
				     struct qhca_tx_buf *buf, u64 cycles)
{
}

static inline void qhca_xsk_tx_completed(struct qhca_tx_queue *q, u32 descs)
{
}

static inline void qhca_xsk_tx_forget(struct qhca_tx_queue *q)
{
}

#endif

#endif /* QHCA_XSK_H */
