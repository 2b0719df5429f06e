// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Protection domains; thread domains, which switch locks off; and parent
 * domains, which join the two.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <infiniband/cmd_ioctl.h>
#include <infiniband/driver.h>
#include <rdma/qhca-abi.h>

#include "qhca-abi-cmd.h"
#include "qhca-pd.h"

struct ibv_pd *qhca_alloc_pd(struct ibv_context *context)
{
	struct qhca_cmd_alloc_pd_resp resp = {};
	struct ibv_alloc_pd cmd = {};
	struct qhca_pd *pd;
	int ret;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	ret = ibv_cmd_alloc_pd(context, &pd->ibv_pd, &cmd, sizeof(cmd),
			       &resp.ibv_resp, sizeof(resp));
	if (ret) {
		free(pd);
		errno = ret;
		return NULL;
	}
	return &pd->ibv_pd;
}

/* The kernel checks whether the PD exists. */
struct ibv_pd *qhca_import_pd(struct ibv_context *context, uint32_t handle)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_PD, QHCA_METHOD_PD_QUERY, 2);
	struct qhca_pd *pd;
	uint32_t pdn;

	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return NULL;
	fill_attr_in_obj(cmd, QHCA_ATTR_PD_QUERY_HANDLE, handle);
	fill_attr_out(cmd, QHCA_ATTR_PD_QUERY_RESP_PDN, &pdn, sizeof(pdn));
	if (execute_ioctl(context, cmd)) {
		free(pd);
		return NULL;
	}
	pd->ibv_pd.context = context;
	pd->ibv_pd.handle = handle;
	return &pd->ibv_pd;
}

/*
 * The PD itself stays.  This cannot fail, so a PD that parent domains use is
 * kept until the process ends.
 */
void qhca_unimport_pd(struct ibv_pd *ibv_pd)
{
	struct qhca_pd *pd = to_qpd(ibv_pd);

	if (!atomic_load(&pd->refs))
		free(pd);
}

/* Also frees a parent domain. */
int qhca_dealloc_pd(struct ibv_pd *ibv_pd)
{
	struct qhca_pd *pd = to_qpd(ibv_pd);
	int ret;

	if (atomic_load(&pd->refs))
		return EBUSY;
	if (pd->protection) {
		if (pd->td)
			atomic_fetch_sub(&pd->td->refs, 1);
		atomic_fetch_sub(&pd->protection->refs, 1);
	} else {
		ret = ibv_cmd_dealloc_pd(ibv_pd);
		if (ret)
			return ret;
	}
	free(pd);
	return 0;
}

struct ibv_td *qhca_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr)
{
	struct qhca_td *td;

	if (attr->comp_mask) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	td = calloc(1, sizeof(*td));
	if (!td)
		return NULL;
	td->ibv_td.context = context;
	return &td->ibv_td;
}

int qhca_dealloc_td(struct ibv_td *ibv_td)
{
	struct qhca_td *td = container_of(ibv_td, struct qhca_td, ibv_td);

	if (atomic_load(&td->refs))
		return EBUSY;
	free(td);
	return 0;
}

/*
 * The application's allocators, if there are any, allocate the rings of objects
 * in this domain; see enum qhca_resource.  Of another parent domain, this one
 * takes only the PD: its allocators and its thread domain are its own.
 */
struct ibv_pd *
qhca_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr)
{
	struct qhca_pd *parent, *pd;

	if (ibv_check_alloc_parent_domain(attr))
		return NULL;
	if (!check_comp_mask(attr->comp_mask,
			     IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			     IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) &&
	    (!attr->alloc || !attr->free)) {
		errno = EINVAL;
		return NULL;
	}
	parent = calloc(1, sizeof(*parent));
	if (!parent)
		return NULL;
	pd = to_qpd(attr->pd);
	parent->protection = pd->protection ? pd->protection : pd;
	atomic_fetch_add(&parent->protection->refs, 1);
	if (attr->td) {
		parent->td = container_of(attr->td, struct qhca_td, ibv_td);
		atomic_fetch_add(&parent->td->refs, 1);
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
		parent->alloc = attr->alloc;
		parent->free = attr->free;
	}
	if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
		parent->pd_context = attr->pd_context;
	ibv_initialize_parent_domain(&parent->ibv_pd,
				     &parent->protection->ibv_pd);
	return &parent->ibv_pd;
}

/*
 * If @pd is a parent domain, takes a reference and returns it, so that it
 * stays while an object uses it; else returns NULL.
 */
struct qhca_pd *qhca_parent_get(struct ibv_pd *pd)
{
	struct qhca_pd *parent = to_qpd(pd);

	if (!parent->protection)
		return NULL;
	atomic_fetch_add(&parent->refs, 1);
	return parent;
}

/* Drops the reference of qhca_parent_get(); NULL is allowed. */
void qhca_parent_put(struct qhca_pd *parent)
{
	if (parent)
		atomic_fetch_sub(&parent->refs, 1);
}

/* Returns true if objects in @pd need no lock. */
bool qhca_pd_unlocked(struct ibv_pd *pd)
{
	return to_qpd(pd)->td;
}
