// SPDX-License-Identifier: GPL-2.0
/* Protection domains. */
#include "qhca_ib.h"

/* ib_device_ops.alloc_pd; applications are told the number */
int qhca_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_ib_pd *pd = to_qpd(ibpd);
	struct qhca_alloc_pd_resp resp = {};
	int err;

	err = qhca_aq_create(dev->qdev, QHCA_CMD_ALLOC_PD, NULL, 0, &pd->pdn);
	if (err || !udata)
		return err;
	resp.pdn = pd->pdn;
	err = qhca_ib_udata_out(udata, &resp, sizeof(resp));
	if (err)
		qhca_ib_destroy(dev, QHCA_CMD_FREE_PD, pd->pdn);
	return err;
}

/* ib_device_ops.dealloc_pd */
int qhca_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	return qhca_ib_destroy(to_qdev(ibpd->device), QHCA_CMD_FREE_PD,
			       to_qpd(ibpd)->pdn);
}
