// SPDX-License-Identifier: GPL-2.0
/*
 * What a process needs to import a context and a PD that another one made:
 * both use the same device file, and so the same kernel objects.
 */
#include "qhca_ib.h"

#define UVERBS_MODULE_NAME qhca_ib
#include <rdma/uverbs_named_ioctl.h>

/* ib_device_ops.query_ucontext: what alloc_ucontext said, once more */
int qhca_ib_query_ucontext(struct ib_ucontext *ibuc,
			   struct uverbs_attr_bundle *attrs)
{
	struct qhca_alloc_ucontext_resp resp;

	qhca_ib_ucontext_resp(to_quc(ibuc), &resp);
	return uverbs_copy_to_struct_or_zero(attrs,
					     QHCA_ATTR_QUERY_CONTEXT_RESP,
					     &resp, sizeof(resp));
}

static int UVERBS_HANDLER(QHCA_METHOD_PD_QUERY)(struct uverbs_attr_bundle *attrs)
{
	struct ib_pd *ibpd = uverbs_attr_get_obj(attrs,
						 QHCA_ATTR_PD_QUERY_HANDLE);

	if (IS_ERR(ibpd))
		return PTR_ERR(ibpd);
	return uverbs_copy_to(attrs, QHCA_ATTR_PD_QUERY_RESP_PDN,
			      &to_qpd(ibpd)->pdn, sizeof(to_qpd(ibpd)->pdn));
}

ADD_UVERBS_ATTRIBUTES_SIMPLE(qhca_ib_query_context,
			     UVERBS_OBJECT_DEVICE,
			     UVERBS_METHOD_QUERY_CONTEXT,
			     UVERBS_ATTR_PTR_OUT(QHCA_ATTR_QUERY_CONTEXT_RESP,
						 UVERBS_ATTR_STRUCT(struct qhca_alloc_ucontext_resp,
								    features),
						 UA_MANDATORY));

DECLARE_UVERBS_NAMED_METHOD(QHCA_METHOD_PD_QUERY,
			    UVERBS_ATTR_IDR(QHCA_ATTR_PD_QUERY_HANDLE, UVERBS_OBJECT_PD,
					    UVERBS_ACCESS_READ, UA_MANDATORY),
			    UVERBS_ATTR_PTR_OUT(QHCA_ATTR_PD_QUERY_RESP_PDN,
						UVERBS_ATTR_TYPE(u32), UA_MANDATORY));

DECLARE_UVERBS_GLOBAL_METHODS(UVERBS_OBJECT_PD,
			      &UVERBS_METHOD(QHCA_METHOD_PD_QUERY));

const struct uapi_definition qhca_ib_import_defs[] = {
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_DEVICE, &qhca_ib_query_context),
	UAPI_DEF_CHAIN_OBJ_TREE(UVERBS_OBJECT_PD,
				&UVERBS_OBJECT(UVERBS_OBJECT_PD)),
	{}
};
