// SPDX-License-Identifier: GPL-2.0
/*
 * Receive filtering. The stack sets the filter in atomic context, but the admin
 * queue sleeps, so a work item does it.
 */
#include <linux/slab.h>

#include "netdev.h"

struct rx_mode {
	u32 count;
	struct qhca_mac list[QHCA_MC_LIST_MAX];
};

QHCA_RX_MODE_RETURNS
qhca_set_rx_mode(struct net_device *netdev QHCA_RX_MODE_PARAMS)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	schedule_work(&priv->rx_mode_work);
	return QHCA_RX_MODE_OK;
}

/* Without @m, for which memory was short, all multicast is wanted. */
static void rx_mode_snapshot(struct net_device *netdev, struct qhca_port *port,
			     struct rx_mode *m)
{
	struct netdev_hw_addr *ha;

	netif_addr_lock_bh(netdev);
	/* the device has a filter for one unicast address only */
	port->promisc = netdev->flags & IFF_PROMISC || !netdev_uc_empty(netdev);
	port->allmulti = netdev->flags & IFF_ALLMULTI ||
			 netdev_mc_count(netdev) > QHCA_MC_LIST_MAX || !m;
	if (!port->allmulti) {
		netdev_for_each_mc_addr(ha, netdev)
			ether_addr_copy(m->list[m->count++].mac, ha->addr);
	}
	netif_addr_unlock_bh(netdev);
}

void qhca_rx_mode_work(struct work_struct *work)
{
	struct qhca_netdev *priv = container_of(work, struct qhca_netdev,
						rx_mode_work);
	struct qhca_dev *dev = priv->dev;
	struct qhca_port port = {};
	struct rx_mode *m;
	int err = 0;

	m = kzalloc(sizeof(*m), GFP_KERNEL);
	rx_mode_snapshot(priv->netdev, &port, m);
	/*
	 * No frame that is wanted may be dropped in between: the list is there
	 * before allmulti ends, and stays when it begins.
	 */
	if (!port.allmulti)
		err = qhca_aq_modify(dev, QHCA_CMD_SET_MC_LIST, 0, 0, m->list,
				     m->count * sizeof(m->list[0]));
	if (!err)
		err = qhca_aq_modify(dev, QHCA_CMD_MODIFY_PORT, 0,
				     QHCA_PORT_M_PROMISC |
				     QHCA_PORT_M_ALLMULTI,
				     &port, sizeof(port));
	if (err && err != -EIO)
		netdev_err(priv->netdev, "receive filter not set: %d\n", err);
	kfree(m);
}
