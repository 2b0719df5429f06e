/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Protection domains, thread domains, and parent domains, which join the two.
 */
#ifndef QHCA_PD_H
#define QHCA_PD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/container_of.h>
#include <infiniband/verbs.h>

struct qhca_td {
	struct ibv_td		ibv_td;
	atomic_int		refs;
};

struct qhca_pd {
	struct ibv_pd		ibv_pd;
	atomic_int		refs;		/* parent domains on it */
	/* of a parent domain only */
	struct qhca_pd		*protection;
	struct qhca_td		*td;		/* may be NULL */
	void			*(*alloc)(struct ibv_pd *pd, void *pd_context,
					  size_t size, size_t alignment,
					  uint64_t resource_type);
	void			(*free)(struct ibv_pd *pd, void *pd_context,
					void *ptr, uint64_t resource_type);
	void			*pd_context;
};

static inline struct qhca_pd *to_qpd(struct ibv_pd *pd)
{
	return container_of(pd, struct qhca_pd, ibv_pd);
}

struct qhca_pd *qhca_parent_get(struct ibv_pd *pd);
void qhca_parent_put(struct qhca_pd *parent);
bool qhca_pd_unlocked(struct ibv_pd *pd);

/* verbs */
struct ibv_pd *qhca_alloc_pd(struct ibv_context *context);
int qhca_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *qhca_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr);
int qhca_dealloc_td(struct ibv_td *td);
struct ibv_pd *
qhca_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr);
struct ibv_pd *qhca_import_pd(struct ibv_context *context, uint32_t handle);
void qhca_unimport_pd(struct ibv_pd *pd);

#endif /* QHCA_PD_H */
