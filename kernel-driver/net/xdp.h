/* SPDX-License-Identifier: GPL-2.0 */
/* XDP programs of the net_device, and sending frames without an skb. */
#ifndef QHCA_XDP_H
#define QHCA_XDP_H

#include "netdev.h"

/* bytes before the frame in a buffer that a program sees */
#define QHCA_XDP_HEADROOM	XDP_PACKET_HEADROOM
/* the largest MTU for a program without fragments */
#define QHCA_XDP_MTU_MAX \
	(SKB_WITH_OVERHEAD(PAGE_SIZE) - QHCA_XDP_HEADROOM - VLAN_ETH_HLEN)

/* xdp.c */
int qhca_bpf(struct net_device *netdev, struct netdev_bpf *bpf);
bool qhca_xdp_mtu_ok(struct qhca_netdev *priv, u32 mtu);
void qhca_xdp_init(struct qhca_netdev *priv);
void qhca_xdp_show_features(struct qhca_netdev *priv);

/* tx_xdp.c */
bool qhca_xdp_tx(struct qhca_channel *ch, struct xdp_frame *frame, bool own,
		 const struct qhca_eth_wqe *offloads);
void qhca_xdp_tx_flush(struct qhca_channel *ch);
int qhca_xdp_xmit(struct net_device *netdev, int n, struct xdp_frame **frames,
		  u32 flags);

#endif /* QHCA_XDP_H */
