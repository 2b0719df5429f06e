// SPDX-License-Identifier: GPL-2.0
/* ethtool -n and -N: filters; before 6.17 also the fields that are hashed. */
#include "ethtool.h"
#include "netdev.h"

u32 qhca_get_rx_ring_count(struct net_device *netdev)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	return priv->params.channels;
}

static int rxnfc_get_rule(struct qhca_netdev *priv, struct ethtool_rxnfc *nfc)
{
	const struct qhca_ntuple *r;

	if (nfc->fs.location >= QHCA_NTUPLE_MAX)
		return -EINVAL;
	r = priv->ntuple[nfc->fs.location];
	if (!r)
		return -ENOENT;
	nfc->fs = r->fs;
	nfc->rss_context = r->rss_context;
	return 0;
}

static int rxnfc_get_all(struct qhca_netdev *priv, struct ethtool_rxnfc *nfc,
			 u32 *locs)
{
	u32 i, n = 0;

	nfc->data = QHCA_NTUPLE_MAX;
	for (i = 0; i < QHCA_NTUPLE_MAX; i++) {
		if (!priv->ntuple[i])
			continue;
		if (n == nfc->rule_cnt)
			return -EMSGSIZE;
		locs[n++] = i;
	}
	nfc->rule_cnt = n;
	return 0;
}

#ifdef QHCA_RXFH_FIELDS_BY_RXNFC
static int rxnfc_get_fields(struct net_device *netdev,
			    struct ethtool_rxnfc *nfc)
{
	struct ethtool_rxfh_fields f = qhca_rxfh_fields(nfc);
	int err = qhca_get_rxfh_fields(netdev, &f);

	nfc->data = f.data;
	return err;
}

static int rxnfc_set_fields(struct net_device *netdev,
			    const struct ethtool_rxnfc *nfc)
{
	struct ethtool_rxfh_fields f = qhca_rxfh_fields(nfc);

	return qhca_set_rxfh_fields(netdev, &f, NULL);
}
#endif

int qhca_get_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *nfc,
		   u32 *locs)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	switch (nfc->cmd) {
	case ETHTOOL_GRXRINGS:
		nfc->data = qhca_get_rx_ring_count(netdev);
		return 0;
	case ETHTOOL_GRXCLSRLCNT:
		nfc->rule_cnt = qhca_ntuple_count(priv);
		nfc->data = QHCA_NTUPLE_MAX | RX_CLS_LOC_SPECIAL;
		return 0;
	case ETHTOOL_GRXCLSRULE:
		return rxnfc_get_rule(priv, nfc);
	case ETHTOOL_GRXCLSRLALL:
		return rxnfc_get_all(priv, nfc, locs);
#ifdef QHCA_RXFH_FIELDS_BY_RXNFC
	case ETHTOOL_GRXFH:
		return rxnfc_get_fields(netdev, nfc);
#endif
	default:
		return -EOPNOTSUPP;
	}
}

int qhca_set_rxnfc(struct net_device *netdev, struct ethtool_rxnfc *nfc)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	switch (nfc->cmd) {
	case ETHTOOL_SRXCLSRLINS:
		if (!(netdev->features & NETIF_F_NTUPLE))
			return -EOPNOTSUPP;
		return qhca_ntuple_insert(priv, &nfc->fs, nfc->rss_context);
	case ETHTOOL_SRXCLSRLDEL:
		return qhca_ntuple_delete(priv, nfc->fs.location);
#ifdef QHCA_RXFH_FIELDS_BY_RXNFC
	case ETHTOOL_SRXFH:
		return rxnfc_set_fields(netdev, nfc);
#endif
	default:
		return -EOPNOTSUPP;
	}
}
