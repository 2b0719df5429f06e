// SPDX-License-Identifier: GPL-2.0
/*
 * The device's GID table follows the core's, which follows the addresses of
 * the net_device and of its VLAN and bonding relatives.
 */
#include <linux/if_vlan.h>
#include <rdma/ib_cache.h>

#include "qhca_ib.h"

/**
 * qhca_ib_add_gid - ib_device_ops.add_gid
 * @attr: the GID, its index and its net_device
 * @context: unused
 *
 * Runs under the mutex of the core's table, also during registration.
 *
 * Return: 0, -EOPNOTSUPP for other types than RoCEv2, or an error.
 */
int qhca_ib_add_gid(const struct ib_gid_attr *attr, void **context)
{
	struct qhca_ib_dev *dev = to_qdev(attr->device);
	struct qhca_gid gid = { .type = QHCA_GID_ROCE_V2 };
	u16 vlan = QHCA_VLAN_NONE;
	int err;

	if (attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EOPNOTSUPP;
	err = rdma_read_gid_l2_fields(attr, &vlan, gid.mac);
	if (err)
		return err;
	/* the core uses an invalid VLAN ID for "no VLAN" */
	if (vlan >= VLAN_N_VID)
		vlan = QHCA_VLAN_NONE;
	memcpy(gid.gid, attr->gid.raw, sizeof(gid.gid));
	gid.vlan = cpu_to_le16(vlan);
	return qhca_aq_modify(dev->qdev, QHCA_CMD_SET_GID, attr->index, 0,
			      &gid, sizeof(gid));
}

/* ib_device_ops.del_gid: on a dead device the GID is gone already */
int qhca_ib_del_gid(const struct ib_gid_attr *attr, void **context)
{
	struct qhca_ib_dev *dev = to_qdev(attr->device);
	struct qhca_gid gid = {
		.type = QHCA_GID_NONE,
		.vlan = cpu_to_le16(QHCA_VLAN_NONE),
	};
	int err;

	err = qhca_aq_modify(dev->qdev, QHCA_CMD_SET_GID, attr->index, 0,
			     &gid, sizeof(gid));
	return err == -EIO ? 0 : err;
}
