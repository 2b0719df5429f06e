// SPDX-License-Identifier: GPL-2.0
/* The net_device: its life, its queues coming up and going down. */
#include <linux/dma-mapping.h>
#include <linux/if_vlan.h>
#include <linux/log2.h>
#include <linux/rtnetlink.h>

#include "netdev.h"
#include "qhca_net.h"

#define WATCHDOG_TIMEOUT	(10 * HZ)

static int netdev_poll(struct napi_struct *napi, int budget)
{
	struct qhca_netdev *priv = container_of(napi, struct qhca_netdev, napi);
	bool more = qhca_tx_poll(priv, budget);
	int done;

	if (!budget)	/* netpoll: sending only */
		return 0;
	done = qhca_rx_poll(priv, budget);
	if (more || done == budget)
		return budget;
	if (napi_complete_done(napi, done)) {
		qhca_net_cq_arm(&priv->txq.cq);
		qhca_net_cq_arm(&priv->rxq.cq);
	}
	return done;
}

/* Tell the device what the stack has set: address, MTU, receive queue. */
static int netdev_set_port(struct qhca_netdev *priv, u32 rqn)
{
	struct qhca_port port = {
		.mtu = cpu_to_le32(priv->netdev->mtu),
		.eth_rqn = cpu_to_le32(rqn),
	};

	ether_addr_copy(port.mac, priv->netdev->dev_addr);
	return qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_PORT, 0,
			      QHCA_PORT_M_MAC | QHCA_PORT_M_MTU |
			      QHCA_PORT_M_ETH_RQN, &port, sizeof(port));
}

/* Under rtnl, as what it looks at and what it sets belong together. */
static void netdev_update_carrier(struct qhca_netdev *priv)
{
	u32 status = readl(priv->dev->regs + QHCA_REG_STATUS);

	if (!qhca_dev_dead(priv->dev) && status != ~0U &&
	    status & QHCA_STATUS_LINK)
		netif_carrier_on(priv->netdev);
	else
		netif_carrier_off(priv->netdev);
}

static void netdev_free_dbrecs(struct qhca_netdev *priv)
{
	dma_free_coherent(qhca_dma_dev(priv->dev), SZ_4K, priv->dbrecs,
			  priv->dbrecs_dma);
	priv->dbrecs = NULL;
}

/* Make the queues and start traffic. Under rtnl. */
int qhca_netdev_up(struct qhca_netdev *priv)
{
	int err;

	priv->dbrecs = dma_alloc_coherent(qhca_dma_dev(priv->dev), SZ_4K,
					  &priv->dbrecs_dma, GFP_KERNEL);
	if (!priv->dbrecs)
		return -ENOMEM;
	netif_napi_add(priv->netdev, &priv->napi, netdev_poll);
	err = qhca_tx_create(priv);
	if (err)
		goto err_napi;
	err = qhca_rx_create(priv);
	if (err)
		goto err_tx;
	qhca_netdev_stats_read(priv, false);
	err = netdev_set_port(priv, priv->rxq.num);
	if (err)
		goto err_rx;
	WRITE_ONCE(priv->up, true);
	napi_enable(&priv->napi);
	qhca_net_cq_arm(&priv->txq.cq);
	qhca_net_cq_arm(&priv->rxq.cq);
	netif_tx_wake_all_queues(priv->netdev);
	netdev_update_carrier(priv);
	return 0;

err_rx:
	qhca_rx_stop(priv);
	qhca_rx_destroy(priv);
err_tx:
	qhca_tx_stop(priv);
	qhca_tx_destroy(priv);
err_napi:
	netif_napi_del(&priv->napi);
	netdev_free_dbrecs(priv);
	return err;
}

/* Undo qhca_netdev_up(); does nothing if it is down. Under rtnl. */
void qhca_netdev_down(struct qhca_netdev *priv)
{
	int err;

	if (!priv->up)
		return;
	WRITE_ONCE(priv->up, false);
	netif_tx_disable(priv->netdev);
	netif_carrier_off(priv->netdev);
	err = netdev_set_port(priv, QHCA_ETH_RQ_NONE);
	if (err && err != -EIO)
		netdev_err(priv->netdev, "port not detached: %d\n", err);
	qhca_netdev_stats_read(priv, true);
	qhca_rx_stop(priv);
	qhca_tx_stop(priv);
	napi_disable(&priv->napi);
	/* NAPI may have woken it in the meantime */
	netif_tx_disable(priv->netdev);
	qhca_rx_destroy(priv);
	qhca_tx_destroy(priv);
	netif_napi_del(&priv->napi);
	netdev_free_dbrecs(priv);
}

/* Remake the queues, with new sizes for example. Under rtnl. */
int qhca_netdev_restart(struct qhca_netdev *priv)
{
	if (!priv->up)
		return 0;
	qhca_netdev_down(priv);
	return qhca_netdev_up(priv);
}

static int netdev_open(struct net_device *netdev)
{
	return qhca_netdev_up(netdev_priv(netdev));
}

static int netdev_stop(struct net_device *netdev)
{
	qhca_netdev_down(netdev_priv(netdev));
	return 0;
}

static int netdev_set_mac_address(struct net_device *netdev, void *p)
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

/* Receive buffers do not depend on the MTU: nothing has to stop. */
static int netdev_change_mtu(struct net_device *netdev, int mtu)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_port port = { .mtu = cpu_to_le32(mtu) };
	int err;

	err = qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_PORT, 0,
			     QHCA_PORT_M_MTU, &port, sizeof(port));
	if (!err)
		WRITE_ONCE(netdev->mtu, mtu);
	return err;
}

static void netdev_tx_timeout(struct net_device *netdev, unsigned int queue)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	netdev_warn(netdev, "transmit timeout: %u posted, %u rung, %u completed\n",
		    priv->txq.prod, priv->txq.rung, priv->txq.cons);
	qhca_health_report(priv->dev, QHCA_NETDEV_REPORT_TX);
}

/* Recreate the queues, if there are any. 0 or an error. Takes rtnl. */
int qhca_netdev_remake(struct qhca_dev *dev)
{
	struct qhca_netdev *priv = netdev_priv(dev->netdev);
	int err = 0;

	if (!qhca_dev_check_alive(dev))
		return -EIO;
	rtnl_lock();
	if (netif_device_present(priv->netdev)) {
		qhca_netdev_down(priv);
		/* also if they could not be made the last time */
		if (netif_running(priv->netdev))
			err = qhca_netdev_up(priv);
	}
	rtnl_unlock();
	if (err)
		netdev_err(priv->netdev, "queues not remade: %d\n", err);
	return err;
}

static const struct net_device_ops qhca_netdev_ops = {
	.ndo_open = netdev_open,
	.ndo_stop = netdev_stop,
	.ndo_start_xmit = qhca_xmit,
	.ndo_set_rx_mode = qhca_set_rx_mode,
	.ndo_set_mac_address = netdev_set_mac_address,
	.ndo_validate_addr = eth_validate_addr,
	.ndo_change_mtu = netdev_change_mtu,
	.ndo_tx_timeout = netdev_tx_timeout,
	.ndo_get_stats64 = qhca_netdev_get_stats64,
};

static void netdev_link_work(struct work_struct *work)
{
	struct qhca_netdev *priv = container_of(work, struct qhca_netdev,
						link_work);

	rtnl_lock();
	if (priv->up)
		netdev_update_carrier(priv);
	rtnl_unlock();
}

/*
 * An asynchronous event. The thread that takes them must not wait for rtnl:
 * others wait for the thread.
 */
static void netdev_event(struct qhca_dev *dev, const struct qhca_eqe *eqe)
{
	struct net_device *netdev = READ_ONCE(dev->netdev);
	struct qhca_netdev *priv;
	bool tx = false;

	if (!netdev)
		return;
	priv = netdev_priv(netdev);
	switch (eqe->type) {
	case QHCA_EV_PORT:
		schedule_work(&priv->link_work);
		break;
	case QHCA_EV_ETH_SQ_ERR:
		tx = true;
		fallthrough;
	case QHCA_EV_ETH_RQ_ERR:
		/* the device stopped a queue for good: recreate them */
		netdev_err(netdev, "%s queue %u stopped, syndrome %#x\n",
			   tx ? "send" : "receive", le32_to_cpu(eqe->obj),
			   eqe->syndrome);
		qhca_health_report(dev, tx ? QHCA_NETDEV_REPORT_TX
					   : QHCA_NETDEV_REPORT_RX);
		break;
	}
}

/* The device is dead: no traffic until a reset or a new probe. */
static void netdev_dead(struct qhca_dev *dev)
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

/* Before a reset: take the queues away, keep the net_device. */
static void netdev_pause(struct qhca_dev *dev)
{
	struct net_device *netdev = dev->netdev;
	struct qhca_netdev *priv = netdev_priv(netdev);

	rtnl_lock();
	netif_device_detach(netdev);
	qhca_netdev_down(priv);
	rtnl_unlock();
	cancel_work_sync(&priv->rx_mode_work);
	cancel_work_sync(&priv->link_work);
	cancel_work_sync(&priv->stats_work);
}

/* After a reset: everything as before. 0 or an error. */
static int netdev_resume(struct qhca_dev *dev)
{
	struct net_device *netdev = dev->netdev;
	struct qhca_netdev *priv = netdev_priv(netdev);
	int err;

	qhca_netdev_stats_restart(priv);
	rtnl_lock();
	err = netdev_set_port(priv, QHCA_ETH_RQ_NONE);
	if (!err && netif_running(netdev))
		err = qhca_netdev_up(priv);
	if (!err)
		netif_device_attach(netdev);
	rtnl_unlock();
	if (!err)
		schedule_work(&priv->rx_mode_work);
	return err;
}

/*
 * Greatest depth of a ring, a power of two; 0 if the device has no queues of
 * a size that is of use. A ring's CQ has as many entries as the ring.
 */
u32 qhca_netdev_ring_limit(struct qhca_dev *dev)
{
	const struct qhca_caps *caps = &dev->caps;
	u32 limit = min3(caps->max_qp_wr, caps->max_cqe, QHCA_RING_MAX);

	if (!caps->max_eth_queues || limit < QHCA_RING_MIN)
		return 0;
	return rounddown_pow_of_two(limit);
}

static void netdev_init_features(struct net_device *netdev, u64 caps)
{
	netdev->hw_features = NETIF_F_SG | NETIF_F_HW_VLAN_CTAG_TX;
	if (caps & QHCA_FEAT_ETH_CSUM)
		netdev->hw_features |= NETIF_F_HW_CSUM | NETIF_F_RXCSUM;
	netdev->features = netdev->hw_features | NETIF_F_HIGHDMA;
	netdev->vlan_features = netdev->features & ~NETIF_F_HW_VLAN_CTAG_TX;
	/* the device always takes the tag out */
	netdev->features |= NETIF_F_HW_VLAN_CTAG_RX;
	netdev->priv_flags |= IFF_UNICAST_FLT | IFF_LIVE_ADDR_CHANGE;
}

/* Undo netdev_create(). */
static void netdev_destroy(struct qhca_dev *dev)
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
	free_netdev(netdev);
}

/* Make and register the net_device. 0 or an error. */
static int netdev_create(struct qhca_dev *dev)
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
	netdev = alloc_etherdev(sizeof(*priv));
	if (!netdev)
		return -ENOMEM;
	SET_NETDEV_DEV(netdev, qhca_dma_dev(dev));
	priv = netdev_priv(netdev);
	priv->dev = dev;
	priv->netdev = netdev;
	priv->tx_depth = min(limit, QHCA_TX_DEPTH_DEF);
	priv->rx_depth = min(limit, QHCA_RX_DEPTH_DEF);
	/* a sender is in no hurry to learn that a frame has gone */
	priv->tx_coalesce.count = 32;
	priv->tx_coalesce.usec = 50;
	priv->speed = le32_to_cpu(port.speed);
	INIT_WORK(&priv->rx_mode_work, qhca_rx_mode_work);
	INIT_WORK(&priv->link_work, netdev_link_work);
	INIT_WORK(&priv->stats_work, qhca_netdev_stats_work);
	mutex_init(&priv->stats_lock);

	eth_hw_addr_set(netdev, port.perm_mac);
	ether_addr_copy(netdev->perm_addr, port.perm_mac);
	netdev->netdev_ops = &qhca_netdev_ops;
	netdev->ethtool_ops = &qhca_ethtool_ops;
	netdev->watchdog_timeo = WATCHDOG_TIMEOUT;
	netdev->pcpu_stat_type = NETDEV_PCPU_STAT_TSTATS;
	netdev->min_mtu = ETH_MIN_MTU;
	netdev->max_mtu = clamp_t(u32, le32_to_cpu(port.max_mtu), ETH_DATA_LEN,
				  QHCA_ETH_MAX_FRAME - VLAN_ETH_HLEN);
	netdev_init_features(netdev, dev->caps.features);
	netif_carrier_off(netdev);
	/* before others can open it: events of the link look here */
	WRITE_ONCE(dev->netdev, netdev);
	err = register_netdev(netdev);
	if (err)
		netdev_destroy(dev);
	return err;
}

const struct qhca_client qhca_net_client = {
	.reporters = qhca_netdev_reporters,
	.num_reporters = QHCA_NETDEV_REPORTERS,
	.create = netdev_create,
	.destroy = netdev_destroy,
	.pause = netdev_pause,
	.resume = netdev_resume,
	.event = netdev_event,
	.dead = netdev_dead,
};
