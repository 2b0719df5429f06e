// SPDX-License-Identifier: GPL-2.0
/* The net_device: its life, its queues coming up and going down. */
#include <linux/dma-mapping.h>
#include <linux/if_vlan.h>
#include <linux/log2.h>
#include <linux/rtnetlink.h>

#include "nd.h"

#define WATCHDOG_TIMEOUT	(10 * HZ)

static int netdev_poll(struct napi_struct *napi, int budget)
{
	struct qhca_nd *nd = container_of(napi, struct qhca_nd, napi);
	bool more = qhca_tx_poll(nd, budget);
	int done;

	if (!budget)	/* netpoll: sending only */
		return 0;
	done = qhca_rx_poll(nd, budget);
	if (more || done == budget)
		return budget;
	if (napi_complete_done(napi, done)) {
		qhca_ncq_arm(&nd->txq.cq);
		qhca_ncq_arm(&nd->rxq.cq);
	}
	return done;
}

/* Tell the device what the stack has set: address, MTU, receive queue. */
static int netdev_set_port(struct qhca_nd *nd, u32 rqn)
{
	struct qhca_port port = {
		.mtu = cpu_to_le32(nd->netdev->mtu),
		.eth_rqn = cpu_to_le32(rqn),
	};

	ether_addr_copy(port.mac, nd->netdev->dev_addr);
	return qhca_aq_modify(&nd->core->dev, QHCA_CMD_MODIFY_PORT, 0,
			      QHCA_PORT_M_MAC | QHCA_PORT_M_MTU |
			      QHCA_PORT_M_ETH_RQN, &port, sizeof(port));
}

/* Under rtnl, as what it looks at and what it sets belong together. */
static void netdev_update_carrier(struct qhca_nd *nd)
{
	u32 status = readl(nd->core->dev.regs + QHCA_REG_STATUS);

	if (!qhca_dev_dead(&nd->core->dev) && status != ~0U &&
	    status & QHCA_STATUS_LINK)
		netif_carrier_on(nd->netdev);
	else
		netif_carrier_off(nd->netdev);
}

static void netdev_free_dbrecs(struct qhca_nd *nd)
{
	dma_free_coherent(qhca_dma_dev(nd->core), SZ_4K, nd->dbrecs,
			  nd->dbrecs_dma);
	nd->dbrecs = NULL;
}

/* Make the queues and start traffic. Under rtnl. */
int qhca_nd_up(struct qhca_nd *nd)
{
	int err;

	nd->dbrecs = dma_alloc_coherent(qhca_dma_dev(nd->core), SZ_4K,
					&nd->dbrecs_dma, GFP_KERNEL);
	if (!nd->dbrecs)
		return -ENOMEM;
	netif_napi_add(nd->netdev, &nd->napi, netdev_poll);
	err = qhca_tx_create(nd);
	if (err)
		goto err_napi;
	err = qhca_rx_create(nd);
	if (err)
		goto err_tx;
	qhca_nd_stats_read(nd, false);
	err = netdev_set_port(nd, nd->rxq.num);
	if (err)
		goto err_rx;
	WRITE_ONCE(nd->up, true);
	napi_enable(&nd->napi);
	qhca_ncq_arm(&nd->txq.cq);
	qhca_ncq_arm(&nd->rxq.cq);
	netif_tx_wake_all_queues(nd->netdev);
	netdev_update_carrier(nd);
	return 0;

err_rx:
	qhca_rx_stop(nd);
	qhca_rx_destroy(nd);
err_tx:
	qhca_tx_stop(nd);
	qhca_tx_destroy(nd);
err_napi:
	netif_napi_del(&nd->napi);
	netdev_free_dbrecs(nd);
	return err;
}

/* Undo qhca_nd_up(); does nothing if it is down. Under rtnl. */
void qhca_nd_down(struct qhca_nd *nd)
{
	int err;

	if (!nd->up)
		return;
	WRITE_ONCE(nd->up, false);
	netif_tx_disable(nd->netdev);
	netif_carrier_off(nd->netdev);
	err = netdev_set_port(nd, QHCA_ETH_RQ_NONE);
	if (err && err != -EIO)
		netdev_err(nd->netdev, "port not detached: %d\n", err);
	qhca_nd_stats_read(nd, true);
	qhca_rx_stop(nd);
	qhca_tx_stop(nd);
	napi_disable(&nd->napi);
	/* NAPI may have woken it in the meantime */
	netif_tx_disable(nd->netdev);
	qhca_rx_destroy(nd);
	qhca_tx_destroy(nd);
	netif_napi_del(&nd->napi);
	netdev_free_dbrecs(nd);
}

/* Remake the queues, with new sizes for example. Under rtnl. */
int qhca_nd_restart(struct qhca_nd *nd)
{
	if (!nd->up)
		return 0;
	qhca_nd_down(nd);
	return qhca_nd_up(nd);
}

static int netdev_open(struct net_device *netdev)
{
	return qhca_nd_up(netdev_priv(netdev));
}

static int netdev_stop(struct net_device *netdev)
{
	qhca_nd_down(netdev_priv(netdev));
	return 0;
}

static int netdev_set_mac_address(struct net_device *netdev, void *p)
{
	struct qhca_nd *nd = netdev_priv(netdev);
	struct qhca_port port = {};
	struct sockaddr *sa = p;
	int err;

	err = eth_prepare_mac_addr_change(netdev, p);
	if (err)
		return err;
	ether_addr_copy(port.mac, sa->sa_data);
	err = qhca_aq_modify(&nd->core->dev, QHCA_CMD_MODIFY_PORT, 0,
			     QHCA_PORT_M_MAC, &port, sizeof(port));
	if (!err)
		eth_commit_mac_addr_change(netdev, p);
	return err;
}

/* Receive buffers do not depend on the MTU: nothing has to stop. */
static int netdev_change_mtu(struct net_device *netdev, int mtu)
{
	struct qhca_nd *nd = netdev_priv(netdev);
	struct qhca_port port = { .mtu = cpu_to_le32(mtu) };
	int err;

	err = qhca_aq_modify(&nd->core->dev, QHCA_CMD_MODIFY_PORT, 0,
			     QHCA_PORT_M_MTU, &port, sizeof(port));
	if (!err)
		WRITE_ONCE(netdev->mtu, mtu);
	return err;
}

static void netdev_tx_timeout(struct net_device *netdev, unsigned int queue)
{
	struct qhca_nd *nd = netdev_priv(netdev);

	netdev_warn(netdev, "sending hangs: %u posted, %u told, %u done\n",
		    nd->txq.prod, nd->txq.rung, nd->txq.cons);
	qhca_health_report(nd->core, QHCA_REPORT_TX);
}

/* Make the queues anew, if there are any. 0 or an error. Takes rtnl. */
int qhca_netdev_remake(struct qhca_core *core)
{
	struct qhca_nd *nd = netdev_priv(core->dev.netdev);
	int err = 0;

	if (!qhca_check_alive(core))
		return -EIO;
	rtnl_lock();
	if (netif_device_present(nd->netdev)) {
		qhca_nd_down(nd);
		/* also if they could not be made the last time */
		if (netif_running(nd->netdev))
			err = qhca_nd_up(nd);
	}
	rtnl_unlock();
	if (err)
		netdev_err(nd->netdev, "queues not remade: %d\n", err);
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
	.ndo_get_stats64 = qhca_nd_get_stats64,
};

static void netdev_link_work(struct work_struct *work)
{
	struct qhca_nd *nd = container_of(work, struct qhca_nd, link_work);

	rtnl_lock();
	if (nd->up)
		netdev_update_carrier(nd);
	rtnl_unlock();
}

/*
 * The link may have changed. From the thread of asynchronous events, which
 * must not wait for rtnl: others wait for the thread.
 */
void qhca_netdev_link(struct qhca_core *core)
{
	struct net_device *netdev = READ_ONCE(core->dev.netdev);
	struct qhca_nd *nd;

	if (!netdev)
		return;
	nd = netdev_priv(netdev);
	schedule_work(&nd->link_work);
}

/*
 * The device stopped a queue for good: make them anew. From the thread of
 * asynchronous events; see qhca_netdev_link().
 */
void qhca_netdev_queue_error(struct qhca_core *core,
			     const struct qhca_eqe *eqe)
{
	struct net_device *netdev = READ_ONCE(core->dev.netdev);
	bool tx = eqe->type == QHCA_EV_ETH_SQ_ERR;

	if (!netdev)
		return;
	netdev_err(netdev, "%s queue %u stopped, syndrome %#x\n",
		   tx ? "send" : "receive", le32_to_cpu(eqe->obj),
		   eqe->syndrome);
	qhca_health_report(core, tx ? QHCA_REPORT_TX : QHCA_REPORT_RX);
}

/* The device is dead: no traffic until a reset or a new probe. */
void qhca_netdev_dead(struct qhca_core *core)
{
	struct net_device *netdev;

	rtnl_lock();
	netdev = READ_ONCE(core->dev.netdev);
	if (netdev) {
		netif_device_detach(netdev);
		netif_carrier_off(netdev);
	}
	rtnl_unlock();
}

/* Before a reset: take the queues away, keep the net_device. */
void qhca_netdev_pause(struct qhca_core *core)
{
	struct net_device *netdev = core->dev.netdev;
	struct qhca_nd *nd = netdev_priv(netdev);

	rtnl_lock();
	netif_device_detach(netdev);
	qhca_nd_down(nd);
	rtnl_unlock();
	cancel_work_sync(&nd->rx_mode_work);
	cancel_work_sync(&nd->link_work);
	cancel_work_sync(&nd->stats_work);
}

/* After a reset: everything as before. 0 or an error. */
int qhca_netdev_resume(struct qhca_core *core)
{
	struct net_device *netdev = core->dev.netdev;
	struct qhca_nd *nd = netdev_priv(netdev);
	int err;

	qhca_nd_stats_restart(nd);
	rtnl_lock();
	err = netdev_set_port(nd, QHCA_ETH_RQ_NONE);
	if (!err && netif_running(netdev))
		err = qhca_nd_up(nd);
	if (!err)
		netif_device_attach(netdev);
	rtnl_unlock();
	if (!err)
		schedule_work(&nd->rx_mode_work);
	return err;
}

/*
 * Greatest depth of a ring, a power of two; 0 if the device has no queues of
 * a size that is of use. A ring's CQ has as many entries as the ring.
 */
u32 qhca_nd_ring_limit(struct qhca_core *core)
{
	const struct qhca_caps *caps = &core->dev.caps;
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

/* Make and register the net_device. 0 or an error. */
int qhca_netdev_create(struct qhca_core *core)
{
	struct qhca_dev *dev = &core->dev;
	u32 limit = qhca_nd_ring_limit(core);
	struct net_device *netdev;
	struct qhca_port port;
	struct qhca_nd *nd;
	int err;

	err = qhca_aq_query(dev, QHCA_CMD_QUERY_PORT, 0, &port, sizeof(port));
	if (err)
		return err;
	if (!is_valid_ether_addr(port.perm_mac)) {
		dev_err(qhca_dma_dev(core), "bad MAC address %pM\n",
			port.perm_mac);
		return -EPROTO;
	}
	if (!limit) {
		dev_err(qhca_dma_dev(core),
			"no Ethernet queues of %u entries (WQEs %u, CQEs %u)\n",
			QHCA_RING_MIN, dev->caps.max_qp_wr, dev->caps.max_cqe);
		return -EPROTO;
	}
	netdev = alloc_etherdev(sizeof(*nd));
	if (!netdev)
		return -ENOMEM;
	SET_NETDEV_DEV(netdev, qhca_dma_dev(core));
	nd = netdev_priv(netdev);
	nd->core = core;
	nd->netdev = netdev;
	nd->tx_depth = min(limit, QHCA_TX_DEPTH_DEF);
	nd->rx_depth = min(limit, QHCA_RX_DEPTH_DEF);
	/* a sender is in no hurry to learn that a frame has gone */
	nd->tx_mod.count = 32;
	nd->tx_mod.usec = 50;
	nd->speed = le32_to_cpu(port.speed);
	INIT_WORK(&nd->rx_mode_work, qhca_rx_mode_work);
	INIT_WORK(&nd->link_work, netdev_link_work);
	INIT_WORK(&nd->stats_work, qhca_nd_stats_work);
	mutex_init(&nd->stats_lock);

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
		qhca_netdev_destroy(core);
	return err;
}

/* Undo qhca_netdev_create(). */
void qhca_netdev_destroy(struct qhca_core *core)
{
	struct net_device *netdev = core->dev.netdev;
	struct qhca_nd *nd = netdev_priv(netdev);

	if (netdev->reg_state == NETREG_REGISTERED)
		unregister_netdev(netdev);
	WRITE_ONCE(core->dev.netdev, NULL);
	/* whoever has seen the pointer is through */
	if (core->eqs)
		synchronize_irq(core->eqs[0].irq);
	flush_work(&core->fatal_work);
	cancel_work_sync(&nd->rx_mode_work);
	cancel_work_sync(&nd->link_work);
	cancel_work_sync(&nd->stats_work);
	free_netdev(netdev);
}
