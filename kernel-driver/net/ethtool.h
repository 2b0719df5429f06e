/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files of ethtool operations. */
#ifndef QHCA_ETHTOOL_H
#define QHCA_ETHTOOL_H

#include <linux/ethtool.h>

#include "qhca_compat.h"

/* ethtool_rxfh.c */
u32 qhca_get_rxfh_key_size(struct net_device *netdev);
u32 qhca_get_rxfh_indir_size(struct net_device *netdev);
int qhca_get_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh);
int qhca_set_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh,
		  struct netlink_ext_ack *extack);
int qhca_create_rxfh_context(struct net_device *netdev,
			     struct ethtool_rxfh_context *ctx,
			     const struct ethtool_rxfh_param *rxfh,
			     struct netlink_ext_ack *extack);
int qhca_modify_rxfh_context(struct net_device *netdev,
			     struct ethtool_rxfh_context *ctx,
			     const struct ethtool_rxfh_param *rxfh,
			     struct netlink_ext_ack *extack);
int qhca_remove_rxfh_context(struct net_device *netdev,
			     struct ethtool_rxfh_context *ctx, u32 rss_context,
			     struct netlink_ext_ack *extack);
int qhca_get_rxfh_fields(struct net_device *netdev,
			 struct ethtool_rxfh_fields *f);
int qhca_set_rxfh_fields(struct net_device *netdev,
			 const struct ethtool_rxfh_fields *f,
			 struct netlink_ext_ack *extack);

/* ethtool_rxnfc.c */
u32 qhca_get_rx_ring_count(struct net_device *netdev);
int qhca_get_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *nfc,
		   u32 *locs);
int qhca_set_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *nfc);

/* ethtool_coalesce.c */
int qhca_get_coalesce(struct net_device *netdev, struct ethtool_coalesce *c,
		      struct kernel_ethtool_coalesce *kc,
		      struct netlink_ext_ack *extack);
int qhca_set_coalesce(struct net_device *netdev, struct ethtool_coalesce *c,
		      struct kernel_ethtool_coalesce *kc,
		      struct netlink_ext_ack *extack);
int qhca_get_queue_coalesce(struct net_device *netdev, u32 queue,
			    struct ethtool_coalesce *c);
int qhca_set_queue_coalesce(struct net_device *netdev, u32 queue,
			    struct ethtool_coalesce *c);

/* ethtool_stats.c */
void qhca_get_eth_mac_stats(struct net_device *netdev,
			    struct ethtool_eth_mac_stats *s);
void qhca_get_eth_ctrl_stats(struct net_device *netdev,
			     struct ethtool_eth_ctrl_stats *s);
void qhca_get_pause_stats(struct net_device *netdev,
			  struct ethtool_pause_stats *s);
void qhca_get_rmon_stats(struct net_device *netdev,
			 struct ethtool_rmon_stats *s,
			 const struct ethtool_rmon_hist_range **ranges);

#endif /* QHCA_ETHTOOL_H */
