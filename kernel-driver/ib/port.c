// SPDX-License-Identifier: GPL-2.0
/* The one port: its state is that of the net_device. */
#include <linux/netdevice.h>
#include <rdma/ib_addr.h>
#include <rdma/ib_mad.h>

#include "qhca_ib.h"

/* physical port states of IBA PortInfo */
#define PHYS_STATE_DISABLED	3
#define PHYS_STATE_LINK_UP	5

/* True if packets can be sent: the net_device is up and has a carrier. */
bool qhca_ib_port_is_up(struct qhca_ib_dev *dev)
{
	struct net_device *netdev = dev->qdev->netdev;

	return netif_running(netdev) && netif_carrier_ok(netdev);
}

/* ib_device_ops.query_port */
int qhca_ib_query_port(struct ib_device *ibdev, u32 port,
		       struct ib_port_attr *attr)
{
	struct qhca_ib_dev *dev = to_qdev(ibdev);
	const struct qhca_caps *caps = &dev->qdev->caps;
	int mtu = READ_ONCE(dev->qdev->netdev->mtu);
	int err;

	if (port != QHCA_IB_PORT)
		return -EINVAL;

	if (qhca_ib_port_is_up(dev)) {
		attr->state = IB_PORT_ACTIVE;
		attr->phys_state = PHYS_STATE_LINK_UP;
	} else {
		attr->state = IB_PORT_DOWN;
		attr->phys_state = PHYS_STATE_DISABLED;
	}
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = iboe_get_mtu(mtu);
	/* the net_device's MTU is below any path MTU: packets cannot be sent */
	if (!attr->active_mtu)
		attr->active_mtu = IB_MTU_256;
	attr->phys_mtu = ib_mtu_enum_to_int(attr->active_mtu);
	attr->gid_tbl_len = caps->max_gid;
	attr->ip_gids = true;
	attr->port_cap_flags = IB_PORT_CM_SUP;
	attr->max_msg_sz = caps->max_msg_size;
	attr->pkey_tbl_len = 1;
	attr->max_vl_num = 1;
	err = ib_get_eth_speed(ibdev, port, &attr->active_speed,
			       &attr->active_width);
	if (err == -ENODEV) {
		/* while we are being unregistered the core has no net_device */
		attr->active_speed = IB_SPEED_SDR;
		attr->active_width = IB_WIDTH_1X;
		err = 0;
	}
	return err;
}

/* ib_device_ops.get_port_immutable: RoCEv2 only */
int qhca_ib_get_port_immutable(struct ib_device *ibdev, u32 port,
			       struct ib_port_immutable *imm)
{
	imm->core_cap_flags = RDMA_CORE_PORT_IBA_ROCE_UDP_ENCAP;
	if (to_qdev(ibdev)->qdev->caps.features & QHCA_FEAT_RAW_PACKET)
		imm->core_cap_flags |= RDMA_CORE_PORT_RAW_PACKET;
	imm->max_mad_size = IB_MGMT_MAD_SIZE;
	imm->pkey_tbl_len = 1;
	imm->gid_tbl_len = to_qdev(ibdev)->qdev->caps.max_gid;
	return 0;
}

/* ib_device_ops.query_pkey: RoCE has the default partition only */
int qhca_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey)
{
	if (index)
		return -EINVAL;
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

/* ib_device_ops.get_link_layer */
enum rdma_link_layer qhca_ib_get_link_layer(struct ib_device *ibdev, u32 port)
{
	return IB_LINK_LAYER_ETHERNET;
}
