// SPDX-License-Identifier: GPL-2.0
/*
 * Multicast groups of UD QPs. The device delivers the packets of a group to the
 * QPs attached to it, regardless of its Ethernet address filter.
 */
#include <linux/slab.h>

#include "qhca_ib.h"

/*
 * A group of a QP. The core has an attachment for each GID and LID, and LIDs
 * mean nothing on Ethernet: @count is how many attachments are for this GID.
 */
struct qhca_ib_mcast {
	struct list_head entry;	/* of qp->mcasts, under qp->mutex */
	union ib_gid gid;
	unsigned int count;
};

static struct qhca_ib_mcast *mcast_find(struct qhca_ib_qp *qp,
					const union ib_gid *gid)
{
	struct qhca_ib_mcast *m;

	list_for_each_entry(m, &qp->mcasts, entry) {
		if (!memcmp(&m->gid, gid, sizeof(*gid)))
			return m;
	}
	return NULL;
}

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
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_ib_mcast *m;
	int err = 0;

	mutex_lock(&qp->mutex);
	m = mcast_find(qp, gid);
	if (m) {
		m->count++;
		goto out;
	}
	err = -ENOMEM;
	m = kmalloc(sizeof(*m), GFP_KERNEL_ACCOUNT);
	if (!m)
		goto out;
	m->gid = *gid;
	m->count = 1;
	err = mcast_cmd(ibqp, QHCA_CMD_ATTACH_MC, gid);
	if (err)
		kfree(m);
	else
		list_add(&m->entry, &qp->mcasts);
out:
	mutex_unlock(&qp->mutex);
	return err;
}

/*
 * ib_device_ops.detach_mcast; -EINVAL if the QP is not attached. Otherwise it
 * succeeds: the core forgets the attachment even on an error, but still counts
 * it as a user of the QP, which could never be destroyed.
 */
int qhca_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid)
{
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_ib_mcast *m;
	int err = -EINVAL;

	mutex_lock(&qp->mutex);
	m = mcast_find(qp, gid);
	if (m) {
		err = 0;
		if (!--m->count) {
			list_del(&m->entry);
			kfree(m);
			/* only a dead device, which delivers nothing, fails */
			mcast_cmd(ibqp, QHCA_CMD_DETACH_MC, gid);
		}
	}
	mutex_unlock(&qp->mutex);
	return err;
}
