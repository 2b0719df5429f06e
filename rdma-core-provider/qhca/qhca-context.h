/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* A process's context of the device, and whether the device still exists. */
#ifndef QHCA_CONTEXT_H
#define QHCA_CONTEXT_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/container_of.h>
#include <ccan/list.h>
#include <infiniband/driver.h>
#include <rdma/qhca-abi.h>
#include <util/compiler.h>

#include "qhca-idr.h"

struct qhca_context {
	struct verbs_context	vctx;
	void			*db;		/* doorbell page */
	size_t			db_len;
	const struct qhca_status_page *status;	/* the kernel's, see status.c */
	size_t			status_len;	/* 0: there is none */
	size_t			page_size;
	uint64_t		features;	/* QHCA_FEAT_* */
	uint32_t		max_qp_wr;
	uint32_t		max_cqe;
	uint32_t		max_srq_wr;
	uint32_t		max_sge;
	uint32_t		max_inline;
	bool			huge;		/* rings in huge pages */

	struct qhca_idr		qps;
	struct qhca_idr		srqs;		/* those with their own CQ */

	pthread_mutex_t		dbrec_mutex;
	struct list_head	dbrec_pages;

	/* wall clock minus device clock, ns; and when it was queried */
	_Atomic uint64_t	wall_offset;
	_Atomic uint64_t	wall_asked;	/* CLOCK_MONOTONIC, ns; 0: never */
};

static inline struct qhca_context *to_qctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct qhca_context, vctx.context);
}

/* status.c */
int qhca_status_map(struct qhca_context *ctx, int cmd_fd, uint64_t key,
		    size_t len);
void qhca_status_unmap(struct qhca_context *ctx);

/*
 * Returns true once the device is gone: posting fails, and requests without a
 * completion get none.  Costs a load of a cache line that changes only once.
 */
static inline bool qhca_is_gone(struct ibv_context *context)
{
	const struct qhca_status_page *status = to_qctx(context)->status;

	return unlikely(!atomic_load_explicit((const _Atomic(uint32_t) *)
					      &status->works,
					      memory_order_relaxed));
}

#endif /* QHCA_CONTEXT_H */
