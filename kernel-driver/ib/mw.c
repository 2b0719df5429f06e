// SPDX-License-Identifier: GPL-2.0
/*
 * Memory windows. Work requests, which the kernel does not see, bind and
 * invalidate them: the kernel only allocates and frees them.
 */
#include "qhca_ib.h"

/**
 * qhca_ib_alloc_mw - ib_device_ops.alloc_mw
 * @ibmw: the window, with PD and type; gets its first key, which allows nothing
 * @udata: must be empty
 *
 * Return: 0, -EINVAL (type), -ENOMEM, -EIO.
 */
int qhca_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibmw->device);
	struct qhca_mpt mpt = {};
	u32 byte;

	if (qhca_ib_udata_none(udata))
		return -EOPNOTSUPP;
	switch (ibmw->type) {
	case IB_MW_TYPE_1:
		mpt.flags = QHCA_MR_F_MW1;
		break;
	case IB_MW_TYPE_2:
		mpt.flags = QHCA_MR_F_MW2;
		break;
	default:
		return -EINVAL;
	}
	byte = atomic_inc_return(&dev->next_key) & QHCA_KEY_BYTE_MASK;
	mpt.key = cpu_to_le32(byte);
	mpt.pd = cpu_to_le32(to_qpd(ibmw->pd)->pdn);
	return qhca_aq_create(dev->qdev, QHCA_CMD_CREATE_MW, &mpt, sizeof(mpt),
			      &ibmw->rkey);
}

/* ib_device_ops.dealloc_mw; bound or not */
int qhca_ib_dealloc_mw(struct ib_mw *ibmw)
{
	/* the low byte of the key has changed with each bind */
	return qhca_ib_destroy(to_qdev(ibmw->device), QHCA_CMD_DESTROY_MR,
			       ibmw->rkey);
}
