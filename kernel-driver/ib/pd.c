// SPDX-License-Identifier: GPL-2.0
/* Protection domains: only numbers to the device. */
#include "qhca_ib.h"

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

/* ib_device_ops.alloc_pd; applications get the number */
int qhca_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata)
{
	struct qhca_ib_dev *dev = to_qdev(ibpd->device);
	struct qhca_ib_pd *pd = to_qpd(ibpd);
	struct qhca_alloc_pd_resp resp = {};
	int err;

	if (qhca_ib_udata_none(udata))
		return -EOPNOTSUPP;
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

/* What a process needs to import a PD: it shares the kernel object. */
static int UVERBS_HANDLER(QHCA_METHOD_PD_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_pd *ibpd = uverbs_attr_get_obj(attrs,
						 QHCA_ATTR_PD_QUERY_HANDLE);

	if (IS_ERR(ibpd))
		return PTR_ERR(ibpd);
	return uverbs_copy_to(attrs, QHCA_ATTR_PD_QUERY_RESP_PDN,
			      &to_qpd(ibpd)->pdn, sizeof(to_qpd(ibpd)->pdn));
}

DECLARE_UVERBS_NAMED_METHOD(QHCA_METHOD_PD_QUERY,
			    UVERBS_ATTR_IDR(QHCA_ATTR_PD_QUERY_HANDLE, UVERBS_OBJECT_PD,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(QHCA_ATTR_PD_QUERY_RESP_PDN,
						UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_PD,
			      &UVERBS_METHOD(QHCA_METHOD_PD_QUERY));

const struct uapi_definition qhca_ib_pd_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD,
				&UVERBS_OBJECT(UVERBS_OBJECT_PD)),
	{}
};
