// SPDX-License-Identifier: GPL-2.0
/* The net_device: its life cycle, starting and stopping its queues. */
#include <linux/if_vlan.h>
#include <linux/log2.h>

#include <net/netdev_queues.h>

#include "netdev.h"
#include "qhca_net.h"
#include "shaper.h"
#include "xdp.h"
#include "xsk.h"

/*
 * Tell the device what the stack has set: address and MTU; and the receiver:
 * @qpn or @rqn, or neither.
 */
static int qhca_netdev_set_port(struct qhca_netdev *priv, u32 rqn, u32 qpn)
{
	u64 mask = QHCA_PORT_M_MAC | QHCA_PORT_M_MTU | QHCA_PORT_M_ETH_RQN;
	struct qhca_port port = {
		.mtu = cpu_to_le32(priv->netdev->mtu),
		.eth_rqn = cpu_to_le32(rqn),
		.eth_qpn = cpu_to_le32(qpn),
		.loopback = !!(priv->netdev->features & NETIF_F_LOOPBACK),
		.pause_rx = priv->rx_pause,
	};

	if (qhca_rss_supported(priv->dev))
		mask |= QHCA_PORT_M_ETH_QPN;
	if (priv->dev->caps.features & QHCA_FEAT_ETH_LOOPBACK)
		mask |= QHCA_PORT_M_LOOPBACK;
	if (priv->dev->caps.features & QHCA_FEAT_PAUSE)
		mask |= QHCA_PORT_M_PAUSE;
	ether_addr_copy(port.mac, priv->netdev->dev_addr);
	return qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_PORT, 0, mask, &port,
			      sizeof(port));
}

/* The queues, contexts and filters exist: let frames in. 0 or an error. */
static int qhca_netdev_attach_port(struct qhca_netdev *priv)
{
	if (priv->rss.qp[0].made)
		return qhca_netdev_set_port(priv, QHCA_ETH_RQ_NONE,
					    priv->rss.qp[0].qpn);
	return qhca_netdev_set_port(priv, priv->ch[0].rqn, QHCA_ETH_QP_NONE);
}

static int qhca_netdev_detach_port(struct qhca_netdev *priv)
{
	return qhca_netdev_set_port(priv, QHCA_ETH_RQ_NONE, QHCA_ETH_QP_NONE);
}

/* Under the locks, as what it reads and what it sets belong together. */
static void qhca_netdev_update_carrier(struct qhca_netdev *priv)
{
	u32 status = readl(priv->dev->regs + QHCA_REG_STATUS);

	if (!qhca_dev_dead(priv->dev) && status != ~0U &&
	    status & QHCA_STATUS_LINK)
		netif_carrier_on(priv->netdev);
	else
		netif_carrier_off(priv->netdev);
}

/* Allocate queues of all channels, without starting them. */
struct netdev_queues {
	struct qhca_tx_queue *tx[QHCA_MAX_CHANNELS];
	struct qhca_rx_queue *rx[QHCA_MAX_CHANNELS];
};

static void qhca_netdev_free_queues(struct netdev_queues *qs)
{
	int i;

	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		qhca_tx_free(qs->tx[i]);
		qhca_rx_free(qs->rx[i]);
	}
	memset(qs, 0, sizeof(*qs));
}

/* Start the channels that have queues. 0 or an error. */
static int qhca_netdev_alloc_queues(struct qhca_netdev *priv,
				    const struct qhca_net_params *params,
				    struct netdev_queues *qs)
{
	struct qhca_tx_queue *tx;
	struct qhca_rx_queue *rx;
	u32 i;

	memset(qs, 0, sizeof(*qs));
	for (i = 0; i < params->channels; i++) {
		tx = qhca_tx_alloc(&priv->ch[i], params);
		if (IS_ERR(tx)) {
			qhca_netdev_free_queues(qs);
			return PTR_ERR(tx);
		}
		qs->tx[i] = tx;
		rx = qhca_rx_alloc(&priv->ch[i], params);
		if (IS_ERR(rx)) {
			qhca_netdev_free_queues(qs);
			return PTR_ERR(rx);
		}
		qs->rx[i] = rx;
	}
	return 0;
}

/* Swap @qs with the queues of the channels; none is started. */
static void qhca_netdev_swap_queues(struct qhca_netdev *priv,
				    struct netdev_queues *qs)
{
	int i;

	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		swap(priv->ch[i].tx, qs->tx[i]);
		swap(priv->ch[i].rx, qs->rx[i]);
	}
}

/* Make the stack drop the state of removed queues. 0 or an error. */
static int qhca_netdev_set_real_queues(struct qhca_netdev *priv, u32 n)
{
	int err = netif_set_real_num_queues(priv->netdev, n, n);

	if (!err)
		qhca_shaper_shrink(priv, n);
	return err;
}

/*
 * @n channels have queues: add or remove NAPI instances, to have one for each.
 * 0 or an error.
 */
static int qhca_netdev_set_channels(struct qhca_netdev *priv, u32 n)
{
	u32 i;
	int err;

	for (; priv->num_napi > n; priv->num_napi--)
		qhca_channel_del(&priv->ch[priv->num_napi - 1]);
	for (; priv->num_napi < n; priv->num_napi++)
		qhca_channel_add(&priv->ch[priv->num_napi]);
	for (i = 0; i < n; i++)
		qhca_channel_set_vector(&priv->ch[i]);
	priv->num_ch = n;
	err = qhca_netdev_set_real_queues(priv, n);
	if (err)
		netdev_err(priv->netdev, "%u queues not set: %d\n", n, err);
	return err;
}

static void qhca_netdev_stop_queues(struct qhca_netdev *priv)
{
	u32 i;

	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		if (priv->ch[i].rx)
			qhca_rx_stop(priv->ch[i].rx);
		if (priv->ch[i].tx)
			qhca_tx_stop(priv->ch[i].tx);
	}
}

static int qhca_netdev_start_queues(struct qhca_netdev *priv,
				    const struct qhca_net_params *params)
{
	int err = 0;
	u32 i;

	for (i = 0; i < params->channels && !err; i++) {
		err = qhca_tx_start(priv->ch[i].tx,
				    &params->tx_coalesce[i]);
		if (!err)
			err = qhca_rx_start(priv->ch[i].rx,
					    &params->rx_coalesce[i]);
	}
	if (err)
		qhca_netdev_stop_queues(priv);
	return err;
}

/**
 * qhca_netdev_report - a queue has stopped
 * @priv: net_device
 * @what: QHCA_NETDEV_REPORT_*
 *
 * devlink is notified once, as recovery recreates all queues. Any context.
 */
void qhca_netdev_report(struct qhca_netdev *priv, unsigned int what)
{
	if (!test_and_set_bit(what, &priv->reported))
		qhca_health_report(priv->dev, what);
}

/* Has one of the queues stopped? */
static bool qhca_netdev_reported(struct qhca_dev *dev, unsigned int what)
{
	struct qhca_netdev *priv = netdev_priv(dev->netdev);

	return test_bit(what, &priv->reported);
}

/* The queues are new, and work: clear the errors of earlier ones. */
static void qhca_netdev_fixed(struct qhca_netdev *priv)
{
	qhca_health_fixed(priv->dev, QHCA_NETDEV_REPORT_TX,
			  qhca_netdev_reported);
	qhca_health_fixed(priv->dev, QHCA_NETDEV_REPORT_RX,
			  qhca_netdev_reported);
}

/*
 * Start traffic with the channels' queues; leaves the carrier unchanged. On
 * error nothing is started.
 */
static int qhca_netdev_start(struct qhca_netdev *priv,
			     const struct qhca_net_params *params)
{
	u32 i;
	int err;

	/* reports about earlier queues are obsolete */
	clear_bit(QHCA_NETDEV_REPORT_TX, &priv->reported);
	clear_bit(QHCA_NETDEV_REPORT_RX, &priv->reported);
	err = qhca_netdev_set_channels(priv, params->channels);
	if (err)
		goto err_channels;
	err = qhca_shaper_start(priv);
	if (err)
		goto err_channels;
	err = qhca_netdev_start_queues(priv, params);
	if (err)
		goto err_shapers;
	err = qhca_rss_start(priv);
	if (err)
		goto err_queues;
	qhca_netdev_stats_read(priv, false);
	err = qhca_netdev_attach_port(priv);
	if (err)
		goto err_rss;
	if (qhca_rss_supported(priv->dev))
		qhca_ntuple_start(priv);
	qhca_netdev_fixed(priv);
	WRITE_ONCE(priv->up, true);
	for (i = 0; i < priv->num_ch; i++)
		qhca_channel_enable(&priv->ch[i]);
	netif_tx_wake_all_queues(priv->netdev);
	return 0;

err_rss:
	qhca_rss_stop(priv);
err_queues:
	qhca_netdev_stop_queues(priv);
err_shapers:
	qhca_shaper_stop(priv);
err_channels:
	priv->num_ch = 0;
	return err;
}

/* Undo qhca_netdev_start(). The channels keep their queues and NAPI instances. */
static void qhca_netdev_halt(struct qhca_netdev *priv)
{
	u32 i;
	int err;

	WRITE_ONCE(priv->up, false);
	netif_tx_disable(priv->netdev);
	err = qhca_netdev_detach_port(priv);
	if (err && err != -EIO)
		netdev_err(priv->netdev, "port not detached: %d\n", err);
	qhca_ntuple_stop(priv);
	qhca_rss_stop(priv);
	qhca_netdev_stats_read(priv, true);
	for (i = 0; i < priv->num_ch; i++)
		qhca_channel_disable(&priv->ch[i]);
	qhca_netdev_stop_queues(priv);
	qhca_shaper_stop(priv);
}

/* Create the queues and start traffic. Under qhca_netdev_lock(). */
static int qhca_netdev_up(struct qhca_netdev *priv)
{
	struct netdev_queues qs;
	int err;

	err = qhca_netdev_alloc_queues(priv, &priv->params, &qs);
	if (err)
		return err;
	qhca_netdev_swap_queues(priv, &qs);
	err = qhca_netdev_start(priv, &priv->params);
	if (err) {
		qhca_netdev_swap_queues(priv, &qs);
		qhca_netdev_free_queues(&qs);
		return err;
	}
	qhca_netdev_update_carrier(priv);
	return 0;
}

/* Undo qhca_netdev_up(), if it is up. Under qhca_netdev_lock(). */
void qhca_netdev_down(struct qhca_netdev *priv)
{
	struct netdev_queues qs = {};

	if (!priv->up)
		return;
	netif_carrier_off(priv->netdev);
	qhca_netdev_halt(priv);
	/* NAPI instances stay: sockets poll them by their IDs */
	priv->num_ch = 0;
	qhca_netdev_swap_queues(priv, &qs);
	qhca_netdev_free_queues(&qs);
}

/**
 * qhca_netdev_change - replace the queues
 * @priv: net_device
 * @params: parameters of the new queues
 *
 * The link stays up. Memory is allocated first: if that fails, nothing changes.
 * If the device refuses the new queues, the old ones are restored; if it
 * refuses these, too, the net_device has no queues until they are recreated,
 * for which devlink health is asked, or it comes up again.
 *
 * Under qhca_netdev_lock(). Sleeps.
 *
 * Return: 0 or an error, with @priv->params as before.
 */
int qhca_netdev_change(struct qhca_netdev *priv,
		       const struct qhca_net_params *params)
{
	struct netdev_queues qs;
	int err;

	if (!priv->up) {
		err = qhca_netdev_set_real_queues(priv, params->channels);
		if (err)
			return err;
		priv->params = *params;
		if (!netif_is_rxfh_configured(priv->netdev))
			qhca_rss_set_default(&priv->rss, params->channels);
		return 0;
	}
	err = qhca_netdev_alloc_queues(priv, params, &qs);
	if (err)
		return err;
	qhca_netdev_halt(priv);
	qhca_netdev_swap_queues(priv, &qs);
	err = qhca_netdev_start(priv, params);
	if (!err) {
		priv->params = *params;
		qhca_netdev_free_queues(&qs);
		return 0;
	}
	qhca_netdev_swap_queues(priv, &qs);
	qhca_netdev_free_queues(&qs);
	if (qhca_netdev_start(priv, &priv->params)) {
		netdev_err(priv->netdev, "and the old queues could not be restored\n");
		netif_carrier_off(priv->netdev);
		qhca_netdev_swap_queues(priv, &qs);
		qhca_netdev_free_queues(&qs);
		/* to recover is the same for both; a dead device says so */
		if (!qhca_dev_dead(priv->dev))
			qhca_health_report(priv->dev, QHCA_NETDEV_REPORT_RX);
	}
	return err;
}

static int qhca_netdev_open(struct net_device *netdev)
{
	return qhca_netdev_up(netdev_priv(netdev));
}

static int qhca_netdev_stop(struct net_device *netdev)
{
	qhca_netdev_down(netdev_priv(netdev));
	return 0;
}

static int qhca_netdev_set_mac_address(struct net_device *netdev, void *p)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_port port = {};
	struct sockaddr *sa = p;
	int err;

	err = eth_prepare_mac_addr_change(netdev, p);
	if (err)
		return err;
	ether_addr_copy(port.mac, sa->sa_data);
	err = qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_PORT, 0,
			     QHCA_PORT_M_MAC, &port, sizeof(port));
	if (!err)
		eth_commit_mac_addr_change(netdev, p);
	return err;
}

/* Receive buffers do not depend on the MTU: nothing needs to stop. */
static int qhca_netdev_change_mtu(struct net_device *netdev, int mtu)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_port port = { .mtu = cpu_to_le32(mtu) };
	int err;

	if (!qhca_xdp_mtu_ok(priv, mtu)) {
		netdev_dbg(netdev, "an MTU of %d is too large for XDP\n", mtu);
		return -EINVAL;
	}
	if (!qhca_xsk_mtu_ok(priv, mtu)) {
		netdev_info(netdev,
			    "an MTU of %d is too large for the buffers of AF_XDP sockets\n",
			    mtu);
		return -EINVAL;
	}
	err = qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_PORT, 0,
			     QHCA_PORT_M_MTU, &port, sizeof(port));
	if (!err)
		WRITE_ONCE(netdev->mtu, mtu);
	return err;
}

/*
 * A user that wants single frames gets them. LRO and hardware GRO are the same
 * for the device: it merges only what can be segmented again.
 */
static netdev_features_t qhca_netdev_fix_features(struct net_device *netdev,
						  netdev_features_t features)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	if (!(features & NETIF_F_GRO))
		features &= ~NETIF_F_GRO_HW;
	/* what is merged was checked; the core knows that of GRO_HW only */
	if (!(features & NETIF_F_RXCSUM))
		features &= ~(NETIF_F_GRO_HW | NETIF_F_LRO);
	if (features & NETIF_F_GRO_HW)
		features &= ~NETIF_F_LRO;
	if (priv->xdp_prog)
		features &= ~(NETIF_F_GRO_HW | NETIF_F_LRO);
	return features;
}

/* Set loopback on or off. 0 or an error. */
static int qhca_netdev_set_loopback(struct qhca_netdev *priv, bool on)
{
	struct qhca_port port = { .loopback = on };

	return qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_PORT, 0,
			      QHCA_PORT_M_LOOPBACK, &port, sizeof(port));
}

/* Switching filters off deletes them. 0 or an error. */
static int qhca_netdev_set_features(struct net_device *netdev,
				    netdev_features_t features)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_net_params params = priv->params;
	int err;

	if ((features ^ netdev->features) & NETIF_F_LOOPBACK) {
		err = qhca_netdev_set_loopback(priv,
					       features & NETIF_F_LOOPBACK);
		if (err)
			return err;
		/* this takes effect even if the rest fails */
		netdev->features ^= NETIF_F_LOOPBACK;
	}
	params.large = features & (NETIF_F_GRO_HW | NETIF_F_LRO);
	if (params.xdp) {	/* queues for that lack it */
		priv->params.large = params.large;
	} else if (params.large != priv->params.large) {
		err = qhca_netdev_change(priv, &params);
		if (err)
			return err;
	}
	if (!(features & NETIF_F_NTUPLE))
		qhca_ntuple_flush(priv);
	return 0;
}

static void qhca_netdev_tx_timeout(struct net_device *netdev,
				   unsigned int queue)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	const struct qhca_tx_queue *q;

	/* queues are being exchanged; qhca_netdev_halt() has waited for us */
	if (!READ_ONCE(priv->up))
		return;
	q = priv->ch[queue].tx;
	netdev_warn(netdev,
		    "transmit timeout, queue %u: %u posted, %u rung, %u completed\n",
		    queue, q->prod, q->rung, q->cons);
	qhca_health_report(priv->dev, QHCA_NETDEV_REPORT_TX);
}

/* Recreate the queues, if there are any. 0 or an error. Takes the locks. */
int qhca_netdev_remake(struct qhca_dev *dev)
{
	struct qhca_netdev *priv = netdev_priv(dev->netdev);
	int err = 0;

	if (!qhca_dev_check_alive(dev))
		return -EIO;
	qhca_netdev_lock(priv->netdev);
	if (netif_device_present(priv->netdev)) {
		qhca_netdev_down(priv);
		/* also if creating them failed the last time */
		if (netif_running(priv->netdev))
			err = qhca_netdev_up(priv);
	}
	qhca_netdev_unlock(priv->netdev);
	if (err)
		netdev_err(priv->netdev, "queues not recreated: %d\n", err);
	return err;
}

static const struct net_device_ops qhca_netdev_ops = {
	.ndo_open = qhca_netdev_open,
	.ndo_stop = qhca_netdev_stop,
	.ndo_start_xmit = qhca_xmit,
	.QHCA_RX_MODE_OP = qhca_set_rx_mode,
	.ndo_set_mac_address = qhca_netdev_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = qhca_netdev_change_mtu,
	.ndo_fix_features = qhca_netdev_fix_features,
	.ndo_set_features = qhca_netdev_set_features,
	.ndo_features_check = qhca_features_check,
	.ndo_tx_timeout = qhca_netdev_tx_timeout,
	.ndo_get_stats64 = qhca_netdev_get_stats64,
	.ndo_set_tx_maxrate = qhca_set_tx_maxrate,
	QHCA_NETDEV_SHAPER_OPS
	.ndo_hwtstamp_get = qhca_hwtstamp_get,
	.ndo_hwtstamp_set = qhca_hwtstamp_set,
	.ndo_bpf = qhca_bpf,
	.ndo_xdp_xmit = qhca_xdp_xmit,
	.ndo_xsk_wakeup = qhca_xsk_wakeup,
};

static void qhca_netdev_link_work(struct work_struct *work)
{
	struct qhca_netdev *priv = container_of(work, struct qhca_netdev,
						link_work);

	qhca_netdev_lock(priv->netdev);
	if (priv->up)
		qhca_netdev_update_carrier(priv);
	qhca_netdev_unlock(priv->netdev);
}

/* Does one of the queues have the number @num? Without the locks. */
static bool qhca_netdev_has_queue(struct qhca_netdev *priv, bool tx, u32 num)
{
	const struct qhca_channel *ch;

	if (num == QHCA_ETH_RQ_NONE)
		return false;
	for (ch = priv->ch; ch < priv->ch + QHCA_MAX_CHANNELS; ch++) {
		if (num == (tx ? READ_ONCE(ch->sqn) : READ_ONCE(ch->rqn)))
			return true;
	}
	return false;
}

/* The device has stopped queue @num permanently: have the queues recreated. */
static void qhca_netdev_queue_stopped(struct qhca_netdev *priv, bool tx,
				      u32 num, u8 syndrome)
{
	/* ignore events of a destroyed queue, which may have been pending */
	if (!qhca_netdev_has_queue(priv, tx, num))
		return;
	if (net_ratelimit())
		netdev_err(priv->netdev, "%s queue %u stopped, syndrome %#x\n",
			   tx ? "send" : "receive", num, syndrome);
	qhca_netdev_report(priv, tx ? QHCA_NETDEV_REPORT_TX :
				      QHCA_NETDEV_REPORT_RX);
}

/*
 * An asynchronous event. The thread that takes events must not wait for rtnl,
 * as holders of rtnl wait for the thread.
 */
static void qhca_netdev_event(struct qhca_dev *dev, const struct qhca_eqe *eqe)
{
	struct net_device *netdev = READ_ONCE(dev->netdev);
	struct qhca_netdev *priv;

	if (!netdev)
		return;
	priv = netdev_priv(netdev);
	switch (eqe->type) {
	case QHCA_EV_PORT:
		schedule_work(&priv->link_work);
		break;
	case QHCA_EV_ETH_SQ_ERR:
	case QHCA_EV_ETH_RQ_ERR:
		qhca_netdev_queue_stopped(priv, eqe->type == QHCA_EV_ETH_SQ_ERR,
					  le32_to_cpu(eqe->obj), eqe->syndrome);
		break;
	}
}

/* The device is dead: no traffic until a reset or a new probe. */
static void qhca_netdev_dead(struct qhca_dev *dev)
{
	struct net_device *netdev;

	rtnl_lock();
	netdev = READ_ONCE(dev->netdev);
	if (netdev) {
		netif_device_detach(netdev);
		netif_carrier_off(netdev);
	}
	rtnl_unlock();
}

/* Before a reset: destroy the queues, keep the net_device. */
static void qhca_netdev_pause(struct qhca_dev *dev)
{
	struct net_device *netdev = dev->netdev;
	struct qhca_netdev *priv = netdev_priv(netdev);

	qhca_netdev_lock(netdev);
	netif_device_detach(netdev);
	qhca_netdev_down(priv);
	qhca_netdev_unlock(netdev);
	cancel_work_sync(&priv->rx_mode_work);
	cancel_work_sync(&priv->link_work);
	cancel_work_sync(&priv->stats_work);
}

/* After a reset: restore everything. 0 or an error. */
static int qhca_netdev_resume(struct qhca_dev *dev)
{
	struct net_device *netdev = dev->netdev;
	struct qhca_netdev *priv = netdev_priv(netdev);
	int err;

	qhca_netdev_stats_restart(priv);
	qhca_netdev_lock(netdev);
	err = qhca_netdev_detach_port(priv);
	if (!err && netif_running(netdev))
		err = qhca_netdev_up(priv);
	if (!err)
		netif_device_attach(netdev);
	qhca_netdev_unlock(netdev);
	if (!err)
		schedule_work(&priv->rx_mode_work);
	return err;
}

/*
 * Maximum depth of a ring, a power of two; 0 if the device has no queues of a
 * usable size. A ring's CQ has as many entries as the ring.
 */
u32 qhca_netdev_ring_limit(struct qhca_dev *dev)
{
	const struct qhca_caps *caps = &dev->caps;
	u32 limit = min3(caps->max_qp_wr, caps->max_cqe, QHCA_RING_MAX);

	if (!caps->max_eth_queues || limit < QHCA_RING_MIN)
		return 0;
	return rounddown_pow_of_two(limit);
}

static void qhca_netdev_init_features(struct net_device *netdev, u64 caps)
{
	netdev->hw_features = NETIF_F_SG | NETIF_F_HW_VLAN_CTAG_TX;
	if (caps & QHCA_FEAT_ETH_CSUM)
		netdev->hw_features |= NETIF_F_HW_CSUM | NETIF_F_RXCSUM;
	if (caps & QHCA_FEAT_ETH_LSO && caps & QHCA_FEAT_ETH_CSUM)
		netdev->hw_features |= NETIF_F_TSO | NETIF_F_TSO6 |
				       NETIF_F_TSO_ECN | NETIF_F_GSO_UDP_L4;
	if (caps & QHCA_FEAT_ETH_TUNNEL && netdev->hw_features & NETIF_F_TSO)
		netdev->hw_features |= NETIF_F_GSO_UDP_TUNNEL |
				       NETIF_F_GSO_UDP_TUNNEL_CSUM |
				       NETIF_F_GSO_GRE | NETIF_F_GSO_IPXIP4 |
				       NETIF_F_GSO_IPXIP6;
	if (caps & QHCA_FEAT_ETH_RSS)
		netdev->hw_features |= NETIF_F_RXHASH | NETIF_F_NTUPLE;
	if (caps & (QHCA_FEAT_ETH_SUPER | QHCA_FEAT_ETH_GRO) &&
	    caps & QHCA_FEAT_ETH_CSUM)
		netdev->hw_features |= NETIF_F_GRO_HW;
	netdev->features = netdev->hw_features | NETIF_F_HIGHDMA;
	/* features that users may switch on */
	if (netdev->hw_features & NETIF_F_GRO_HW)
		netdev->hw_features |= NETIF_F_LRO;
	if (caps & QHCA_FEAT_ETH_LOOPBACK)
		netdev->hw_features |= NETIF_F_LOOPBACK;
	netdev->vlan_features = netdev->features &
				~(NETIF_F_HW_VLAN_CTAG_TX | NETIF_F_NTUPLE |
				  NETIF_F_GRO_HW);
	netdev->hw_enc_features = netdev->vlan_features |
				  NETIF_F_HW_VLAN_CTAG_TX;
	/* the device always strips the tag */
	netdev->features |= NETIF_F_HW_VLAN_CTAG_RX;
	netdev->priv_flags |= IFF_UNICAST_FLT | IFF_LIVE_ADDR_CHANGE;
}

/* The default parameters; @limit is from qhca_netdev_ring_limit(). */
static void qhca_netdev_init_queues(struct qhca_netdev *priv, u32 limit)
{
	struct qhca_net_params *p = &priv->params;
	u32 i;

	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		qhca_channel_init(priv, i);
		p->rx_coalesce[i].adaptive = QHCA_COALESCE_ADAPTIVE;
		/* senders need not learn soon that a frame was sent */
		p->tx_coalesce[i].count = 32;
		p->tx_coalesce[i].usec = 50;
	}
	qhca_queue_stats_init(priv);
	INIT_LIST_HEAD(&priv->rss_list);
	priv->max_ch = 1;
	if (qhca_rss_supported(priv->dev))
		priv->max_ch = min(QHCA_MAX_CHANNELS,
				   priv->dev->caps.max_eth_queues);
	p->channels = min3((u32)netif_get_num_default_rss_queues(),
			   priv->max_ch, priv->dev->num_comp_vectors);
	qhca_rss_init(&priv->rss, p->channels);
	p->tx_depth = min(limit, QHCA_TX_DEPTH_DEF);
	p->rx_depth = min(limit, QHCA_RX_DEPTH_DEF);
	p->rx_size = PAGE_SIZE;
}

/* Undo qhca_netdev_create(). */
static void qhca_netdev_destroy(struct qhca_dev *dev)
{
	struct net_device *netdev = dev->netdev;
	struct qhca_netdev *priv = netdev_priv(netdev);

	if (netdev->reg_state == NETREG_REGISTERED)
		unregister_netdev(netdev);
	WRITE_ONCE(dev->netdev, NULL);
	/* wait for handlers that have seen the pointer */
	qhca_dev_flush_events(dev);
	cancel_work_sync(&priv->rx_mode_work);
	cancel_work_sync(&priv->link_work);
	cancel_work_sync(&priv->stats_work);
	qhca_ptp_destroy(priv);
	qhca_ntuple_flush(priv);
	qhca_shaper_destroy(priv);
	/* also deletes the NAPI instances */
	free_netdev(netdev);
}

/* Create and register the net_device. 0 or an error. */
static int qhca_netdev_create(struct qhca_dev *dev)
{
	u32 limit = qhca_netdev_ring_limit(dev);
	struct net_device *netdev;
	struct qhca_port port;
	struct qhca_netdev *priv;
	int err;

	err = qhca_aq_query(dev, QHCA_CMD_QUERY_PORT, 0, &port, sizeof(port));
	if (err)
		return err;
	if (!is_valid_ether_addr(port.perm_mac)) {
		dev_err(qhca_dma_dev(dev), "bad MAC address %pM\n",
			port.perm_mac);
		return -EPROTO;
	}
	if (!limit) {
		dev_err(qhca_dma_dev(dev),
			"no Ethernet queues of %u entries (WQEs %u, CQEs %u)\n",
			QHCA_RING_MIN, dev->caps.max_qp_wr, dev->caps.max_cqe);
		return -EPROTO;
	}
	netdev = alloc_etherdev_mqs(sizeof(*priv), QHCA_MAX_CHANNELS,
				    QHCA_MAX_CHANNELS);
	if (!netdev)
		return -ENOMEM;
	SET_NETDEV_DEV(netdev, qhca_dma_dev(dev));
	priv = netdev_priv(netdev);
	priv->dev = dev;
	priv->netdev = netdev;
	err = qhca_shaper_init(priv);
	if (err) {
		free_netdev(netdev);
		return err;
	}
	qhca_netdev_init_queues(priv, limit);
	priv->speed = le32_to_cpu(port.speed);
	INIT_WORK(&priv->rx_mode_work, qhca_rx_mode_work);
	INIT_WORK(&priv->link_work, qhca_netdev_link_work);
	INIT_WORK(&priv->stats_work, qhca_netdev_stats_work);
	mutex_init(&priv->stats_lock);

	eth_hw_addr_set(netdev, port.perm_mac);
	ether_addr_copy(netdev->perm_addr, port.perm_mac);
	netdev->netdev_ops = &qhca_netdev_ops;
	netdev->ethtool_ops = &qhca_ethtool_ops;
	netdev->watchdog_timeo = QHCA_WATCHDOG_TIMEOUT;
	netdev->stat_ops = &qhca_netdev_stat_ops;
	netdev->queue_mgmt_ops = &qhca_queue_mgmt_ops;
	qhca_netdev_request_lock(netdev);
	qhca_netdev_send_netmem(netdev);
	netdev->min_mtu = ETH_MIN_MTU;
	netdev->max_mtu = clamp_t(u32, le32_to_cpu(port.max_mtu), ETH_DATA_LEN,
				  QHCA_ETH_MAX_FRAME - VLAN_ETH_HLEN);
	qhca_netdev_init_features(netdev, dev->caps.features);
	priv->params.large = netdev->features & NETIF_F_GRO_HW;
	qhca_xdp_init(priv);
	netif_carrier_off(netdev);
	qhca_ptp_create(priv);
	/* before it can be opened: link events read this */
	WRITE_ONCE(dev->netdev, netdev);
	err = netif_set_real_num_queues(netdev, priv->params.channels,
					priv->params.channels) ?:
	      register_netdev(netdev);
	if (err)
		qhca_netdev_destroy(dev);
	return err;
}

const struct qhca_client qhca_net_client = {
	.reporters = qhca_netdev_reporters,
	.num_reporters = QHCA_NETDEV_REPORTERS,
	.create = qhca_netdev_create,
	.destroy = qhca_netdev_destroy,
	.pause = qhca_netdev_pause,
	.resume = qhca_netdev_resume,
	.event = qhca_netdev_event,
	.dead = qhca_netdev_dead,
};
