// SPDX-License-Identifier: GPL-2.0
/* ethtool's view of RSS: tables, keys, contexts, fields that are hashed. */
#include <linux/ethtool.h>

#include "ethtool.h"
#include "netdev.h"

static_assert(sizeof_field(struct qhca_qpc, rx_hash_key) == QHCA_RSS_KEY_LEN);

u32 qhca_get_rxfh_key_size(struct net_device *netdev)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	return qhca_rss_supported(priv->dev) ? QHCA_RSS_KEY_LEN : 0;
}

u32 qhca_get_rxfh_indir_size(struct net_device *netdev)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	return qhca_rss_supported(priv->dev) ? QHCA_RSS_ENTRIES : 0;
}

int qhca_get_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_rss_ctx *rss;

	if (!qhca_rss_supported(priv->dev))
		return -EOPNOTSUPP;
	rss = qhca_rss_find(priv, rxfh->rss_context);
	if (!rss)
		return -ENOENT;
	rxfh->hfunc = ETH_RSS_HASH_TOP;
	rxfh->input_xfrm = rss->input_xfrm;
	if (rxfh->indir)
		memcpy(rxfh->indir, rss->indir, sizeof(rss->indir));
	if (rxfh->key)
		memcpy(rxfh->key, rss->key, sizeof(rss->key));
	return 0;
}

/* Apply the changes of @rxfh to @want. 0 or an error. */
static int rxfh_merge(struct qhca_netdev *priv, struct qhca_rss_ctx *want,
		      const struct ethtool_rxfh_param *rxfh,
		      struct netlink_ext_ack *extack)
{
	if (!qhca_rss_supported(priv->dev)) {
		NL_SET_ERR_MSG(extack, "the device has no RSS");
		return -EOPNOTSUPP;
	}
	if (rxfh->hfunc != ETH_RSS_HASH_NO_CHANGE &&
	    rxfh->hfunc != ETH_RSS_HASH_TOP) {
		NL_SET_ERR_MSG(extack, "the only hash function is Toeplitz");
		return -EOPNOTSUPP;
	}
	if (rxfh->indir && rxfh->indir_size == QHCA_RSS_ENTRIES)
		memcpy(want->indir, rxfh->indir, sizeof(want->indir));
	if (!qhca_ntuple_fits(priv, want, priv->params.channels)) {
		NL_SET_ERR_MSG(extack,
			       "a filter adds its queue to the entries: the sum would go beyond the last queue");
		return -EINVAL;
	}
	if (rxfh->key && rxfh->key_size == QHCA_RSS_KEY_LEN)
		memcpy(want->key, rxfh->key, sizeof(want->key));
	if (rxfh->input_xfrm != RXH_XFRM_NO_CHANGE) {
		if (rxfh->input_xfrm & ~QHCA_RXH_XFRM_SUPPORTED) {
			NL_SET_ERR_MSG(extack, "unsupported transformation");
			return -EOPNOTSUPP;
		}
		want->input_xfrm = rxfh->input_xfrm;
	}
	if (want->input_xfrm && !qhca_rss_fields_symmetric(want->fields)) {
		NL_SET_ERR_MSG(extack,
			       "a symmetric hash needs source and destination together, and no flow label");
		return -EINVAL;
	}
	return 0;
}

int qhca_set_rxfh(struct net_device *netdev, struct ethtool_rxfh_param *rxfh,
		  struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_rss_ctx want = priv->rss;
	int err;

	err = rxfh_merge(priv, &want, rxfh, extack);
	if (err)
		return err;
	return qhca_rss_change(priv, &priv->rss, &want);
}

/* Report back to the core what the user did not specify. */
static void rxfh_tell(struct ethtool_rxfh_context *ctx,
		      const struct qhca_rss_ctx *rss)
{
	memcpy(ethtool_rxfh_context_indir(ctx), rss->indir, sizeof(rss->indir));
	memcpy(ethtool_rxfh_context_key(ctx), rss->key, sizeof(rss->key));
	ctx->hfunc = ETH_RSS_HASH_TOP;
	ctx->input_xfrm = rss->input_xfrm;
}

int qhca_create_rxfh_context(struct net_device *netdev,
			     struct ethtool_rxfh_context *ctx,
			     const struct ethtool_rxfh_param *rxfh,
			     struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_rss_ctx *rss = ethtool_rxfh_context_priv(ctx);
	int err;

	qhca_rss_init(rss, priv->params.channels);
	rss->id = rxfh->rss_context;
	/* like the default one, except for the table */
	memcpy(rss->key, priv->rss.key, sizeof(rss->key));
	rss->fields = priv->rss.fields;
	rss->input_xfrm = priv->rss.input_xfrm;
	err = rxfh_merge(priv, rss, rxfh, extack);
	if (err)
		return err;
	err = qhca_rss_add(priv, rss);
	if (!err)
		rxfh_tell(ctx, rss);
	return err;
}

int qhca_modify_rxfh_context(struct net_device *netdev,
			     struct ethtool_rxfh_context *ctx,
			     const struct ethtool_rxfh_param *rxfh,
			     struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_rss_ctx *rss = ethtool_rxfh_context_priv(ctx);
	struct qhca_rss_ctx want = *rss;
	int err;

	err = rxfh_merge(priv, &want, rxfh, extack);
	if (err)
		return err;
	return qhca_rss_change(priv, rss, &want);
}

int qhca_remove_rxfh_context(struct net_device *netdev,
			     struct ethtool_rxfh_context *ctx, u32 rss_context,
			     struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_rss_ctx *rss = ethtool_rxfh_context_priv(ctx);

	/* an unregistered netdev frees its contexts before its filters */
	if (netdev->reg_state == NETREG_REGISTERED &&
	    qhca_ntuple_uses(priv, rss_context)) {
		NL_SET_ERR_MSG(extack, "filters use this context");
		return -EBUSY;
	}
	qhca_rss_remove(priv, rss);
	return 0;
}

/* ------------------------------------------------------------- fields -- */

/* Index of the fields of a type of frame; -1: the device does not hash it. */
static int rxfh_shift(u32 flow_type)
{
	switch (flow_type) {
	case TCP_V4_FLOW:
		return QHCA_HASH_TCP4_SHIFT;
	case UDP_V4_FLOW:
		return QHCA_HASH_UDP4_SHIFT;
	case IPV4_FLOW:
	case SCTP_V4_FLOW:
	case AH_ESP_V4_FLOW:
	case AH_V4_FLOW:
	case ESP_V4_FLOW:
		return QHCA_HASH_IPV4_SHIFT;
	case TCP_V6_FLOW:
		return QHCA_HASH_TCP6_SHIFT;
	case UDP_V6_FLOW:
		return QHCA_HASH_UDP6_SHIFT;
	case IPV6_FLOW:
	case SCTP_V6_FLOW:
	case AH_ESP_V6_FLOW:
	case AH_V6_FLOW:
	case ESP_V6_FLOW:
		return QHCA_HASH_IPV6_SHIFT;
	default:
		return -1;
	}
}

static const struct {
	u32 rxh;
	u32 by;
} rxfh_bits[] = {
	{ RXH_IP_SRC, QHCA_HASH_BY_SRC_IP },
	{ RXH_IP_DST, QHCA_HASH_BY_DST_IP },
	{ RXH_L4_B_0_1, QHCA_HASH_BY_SRC_PORT },
	{ RXH_L4_B_2_3, QHCA_HASH_BY_DST_PORT },
};

/* The bit for the flow label of a type of frame; 0: there is none. */
static u32 rxfh_label(const struct qhca_netdev *priv, u32 flow_type)
{
	if (!(priv->dev->caps.features & QHCA_FEAT_ETH_HASH_LABEL))
		return 0;
	switch (rxfh_shift(flow_type)) {
	case QHCA_HASH_TCP6_SHIFT:
		return QHCA_HASH_LABEL_TCP6;
	case QHCA_HASH_UDP6_SHIFT:
		return QHCA_HASH_LABEL_UDP6;
	case QHCA_HASH_IPV6_SHIFT:
		return QHCA_HASH_LABEL_IPV6;
	default:
		return 0;
	}
}

int qhca_get_rxfh_fields(struct net_device *netdev,
			 struct ethtool_rxfh_fields *f)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	int i, shift = rxfh_shift(f->flow_type);
	struct qhca_rss_ctx *rss;

	f->data = 0;
	if (!qhca_rss_supported(priv->dev))
		return -EOPNOTSUPP;
	rss = qhca_rss_find(priv, f->rss_context);
	if (!rss)
		return -ENOENT;
	if (shift < 0)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(rxfh_bits); i++) {
		if (rss->fields >> shift & rxfh_bits[i].by)
			f->data |= rxfh_bits[i].rxh;
	}
	if (rss->fields & rxfh_label(priv, f->flow_type))
		f->data |= RXH_IP6_FL;
	return 0;
}

int qhca_set_rxfh_fields(struct net_device *netdev,
			 const struct ethtool_rxfh_fields *f,
			 struct netlink_ext_ack *extack)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	int i, shift = rxfh_shift(f->flow_type);
	u32 by = 0, data = f->data, label = rxfh_label(priv, f->flow_type);
	struct qhca_rss_ctx *rss, want;

	if (!qhca_rss_supported(priv->dev))
		return -EOPNOTSUPP;
	rss = qhca_rss_find(priv, f->rss_context);
	if (!rss)
		return -ENOENT;
	switch (f->flow_type) {
	case TCP_V4_FLOW:
	case UDP_V4_FLOW:
	case TCP_V6_FLOW:
	case UDP_V6_FLOW:
		break;
	case IPV4_FLOW:
	case IPV6_FLOW:
		if (!(data & (RXH_L4_B_0_1 | RXH_L4_B_2_3)))
			break;
		NL_SET_ERR_MSG(extack, "frames of this type have no ports");
		return -EINVAL;
	default:
		NL_SET_ERR_MSG(extack, "hashed as any IP packet, if at all");
		return -EOPNOTSUPP;
	}
	for (i = 0; i < ARRAY_SIZE(rxfh_bits); i++) {
		if (data & rxfh_bits[i].rxh)
			by |= rxfh_bits[i].by;
		data &= ~rxfh_bits[i].rxh;
	}
	want = *rss;
	want.fields &= ~(QHCA_HASH_BY_MASK << shift | label);
	if (label && data & RXH_IP6_FL) {
		want.fields |= label;
		data &= ~RXH_IP6_FL;
	}
	if (data) {
		NL_SET_ERR_MSG(extack,
			       "only IP addresses, ports and IPv6 flow labels are hashed");
		return -EINVAL;
	}
	want.fields |= by << shift;
	if (want.input_xfrm && !qhca_rss_fields_symmetric(want.fields)) {
		NL_SET_ERR_MSG(extack,
			       "a symmetric hash needs source and destination together, and no flow label");
		return -EINVAL;
	}
	return qhca_rss_change(priv, rss, &want);
}
