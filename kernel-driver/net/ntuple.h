/* SPDX-License-Identifier: GPL-2.0 */
/* Filters that steer received frames: the rules of ethtool -N. */
#ifndef QHCA_NTUPLE_H
#define QHCA_NTUPLE_H

#include <linux/ethtool.h>

struct qhca_netdev;
struct qhca_rss_ctx;

#define QHCA_NTUPLE_MAX		512	/* locations */

/**
 * struct qhca_ntuple - a rule
 * @fs: as the user gave it, with its location
 * @rss_context: with FLOW_RSS: the destination context
 * @flow: number of the device's flow
 * @made: the device has it
 */
struct qhca_ntuple {
	struct ethtool_rx_flow_spec fs;
	u32 rss_context;
	u32 flow;
	bool made;
};

int qhca_ntuple_insert(struct qhca_netdev *priv,
		       struct ethtool_rx_flow_spec *fs, u32 rss_context);
int qhca_ntuple_delete(struct qhca_netdev *priv, u32 location);
bool qhca_ntuple_uses(struct qhca_netdev *priv, u32 rss_context);
bool qhca_ntuple_fits(struct qhca_netdev *priv, const struct qhca_rss_ctx *rss,
		      u32 channels);
u32 qhca_ntuple_count(struct qhca_netdev *priv);
void qhca_ntuple_start(struct qhca_netdev *priv);
void qhca_ntuple_stop(struct qhca_netdev *priv);
void qhca_ntuple_flush(struct qhca_netdev *priv);

#endif /* QHCA_NTUPLE_H */
