// SPDX-License-Identifier: GPL-2.0
/*
 * XRC domains: only numbers to the device. The core keeps the list of target
 * QPs in each and their openers.
 */
#include "qhca_ib.h"

/* ib_device_ops.alloc_xrcd */
int qhca_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	if (qhca_ib_udata_none(udata))
		return -EOPNOTSUPP;
	return qhca_aq_create(to_qdev(ibxrcd->device)->qdev,
			      QHCA_CMD_ALLOC_XRCD, NULL, 0,
			      &to_qxrcd(ibxrcd)->xrcd);
}

/* ib_device_ops.dealloc_xrcd */
int qhca_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata)
{
	return qhca_ib_destroy(to_qdev(ibxrcd->device), QHCA_CMD_FREE_XRCD,
			       to_qxrcd(ibxrcd)->xrcd);
}
