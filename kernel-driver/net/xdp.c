// SPDX-License-Identifier: GPL-2.0
/*
 * Attaching XDP programs. With a program, all receive queues have buffers with
 * headroom that it can write, and packets that hold many frames are disabled.
 */
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/if_vlan.h>

#include "rx.h"
#include "xdp.h"
#include "xsk.h"

/* Can the net_device's program handle frames of an MTU of @mtu? */
bool qhca_xdp_mtu_ok(struct qhca_netdev *priv, u32 mtu)
{
	const struct bpf_prog *prog = priv->xdp_prog;

	return !prog || prog->aux->xdp_has_frags || mtu <= QHCA_XDP_MTU_MAX;
}

/* Returns 0, or an error and its reason. */
static int xdp_check(struct qhca_netdev *priv, const struct bpf_prog *prog,
		     struct netlink_ext_ack *extack)
{
	if (priv->params.split) {
		NL_SET_ERR_MSG(extack,
			       "not while headers are split from data (tcp-data-split)");
		return -EOPNOTSUPP;
	}
	if (priv->params.rx_size > PAGE_SIZE) {
		NL_SET_ERR_MSG(extack,
			       "not with receive buffers of more than a page (rx-buf-len)");
		return -EOPNOTSUPP;
	}
	if (!prog->aux->xdp_has_frags &&
	    priv->netdev->mtu > QHCA_XDP_MTU_MAX) {
		NL_SET_ERR_MSG_FMT(extack,
				   "a program without fragments needs an MTU of %lu at most",
				   QHCA_XDP_MTU_MAX);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Switch to buffers with or without room for programs. 0 or an error. */
static int xdp_change_queues(struct qhca_netdev *priv, bool xdp)
{
	struct qhca_net_params params = priv->params;

	params.xdp = xdp;
	if (params.xdp == priv->params.xdp)
		return 0;
	return qhca_netdev_change(priv, &params);
}

static void xdp_swap(struct qhca_netdev *priv, struct bpf_prog *prog)
{
	struct bpf_prog *old = xchg(&priv->xdp_prog, prog);

	if (old)
		bpf_prog_put(old);
}

static int xdp_attach(struct qhca_netdev *priv, struct bpf_prog *prog,
		      struct netlink_ext_ack *extack)
{
	bool first = !priv->xdp_prog;
	int err;

	err = xdp_check(priv, prog, extack);
	if (err)
		return err;
	err = xdp_change_queues(priv, true);
	if (err) {
		NL_SET_ERR_MSG(extack, "queues for XDP could not be created");
		return err;
	}
	xdp_swap(priv, prog);
	if (first)	/* some are disabled */
		netdev_update_features(priv->netdev);
	return 0;
}

/* It cannot fail: if memory is short, the buffers stay as for XDP. */
static void xdp_detach(struct qhca_netdev *priv)
{
	if (!priv->xdp_prog)
		return;
	xdp_swap(priv, NULL);
	netdev_update_features(priv->netdev);
	if (xdp_change_queues(priv, false))
		netdev_dbg(priv->netdev, "queues stay as for XDP\n");
}

/* ndo_bpf */
int qhca_bpf(struct net_device *netdev, struct netdev_bpf *bpf)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	switch (bpf->command) {
	case XDP_SETUP_PROG:
		if (bpf->prog)
			return xdp_attach(priv, bpf->prog, bpf->extack);
		xdp_detach(priv);
		return 0;
	case XDP_SETUP_XSK_POOL:
		return qhca_xsk_setup_pool(priv, bpf->xsk.pool,
					   bpf->xsk.queue_id);
	default:
		return -EINVAL;
	}
}

static xdp_features_t xdp_features(const struct qhca_netdev *priv)
{
	xdp_features_t send = NETDEV_XDP_ACT_NDO_XMIT |
			      NETDEV_XDP_ACT_NDO_XMIT_SG;

	if (priv->params.split)
		return send;
	return send | NETDEV_XDP_ACT_BASIC | NETDEV_XDP_ACT_REDIRECT |
	       NETDEV_XDP_ACT_RX_SG | QHCA_XSK_FEATURES;
}

/* Called before the net_device is registered. */
void qhca_xdp_init(struct qhca_netdev *priv)
{
	priv->netdev->xdp_features = xdp_features(priv);
	priv->netdev->xdp_metadata_ops = &qhca_xdp_metadata_ops;
	qhca_xsk_init(priv->netdev);
}

/* The queues have changed: update the XDP features. Under the locks. */
void qhca_xdp_show_features(struct qhca_netdev *priv)
{
	qhca_xdp_set_features(priv->netdev, xdp_features(priv));
}
