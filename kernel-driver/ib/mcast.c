// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups of UD QPs. The device delivers the packets of a group to the
 * QPs attached to it, regardless of its Ethernet address filter.
 */
#include "qhca_ib.h"

static int mcast_cmd(struct ib_qp *ibqp, u8 opcode, const union ib_gid *gid)
{
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_mcg mcg = {};

	memcpy(mcg.mgid, gid->raw, sizeof(mcg.mgid));
	return qhca_aq_modify(to_qdev(ibqp->device)->qdev, opcode, qp->qpn, 0,
			      &mcg, sizeof(mcg));
}

/**
 * qhca_ib_attach_mcast - ib_device_ops.attach_mcast
 * @ibqp: UD QP
 * @gid: multicast GID; IPv4 groups are v4-mapped
 * @lid: means nothing on Ethernet
 *
 * rdma_cm also joins the group on the net_device (IGMP, MLD).
 *
 * Return: 0, also if it is attached already; -EINVAL for a GID that is not
 * multicast or a QP that is not UD; -ENOMEM when the device is full; -EIO.
 */
int qhca_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	return mcast_cmd(ibqp, QHCA_CMD_ATTACH_MC, gid);
}

/* ib_device_ops.detach_mcast; -EINVAL if the QP is not attached */
int qhca_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	int err = mcast_cmd(ibqp, QHCA_CMD_DETACH_MC, gid);

	/* a dead device no longer delivers anything */
	if (err == -EIO)
		return 0;
	return err == -ENOENT ? -EINVAL : err;
}
