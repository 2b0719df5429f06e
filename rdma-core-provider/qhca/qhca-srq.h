/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Shared receive queues: WQEs by number, an index ring, and a list of free
 * WQEs.
 */
#ifndef QHCA_SRQ_H
#define QHCA_SRQ_H

#include <stdint.h>

#include <ccan/container_of.h>
#include <infiniband/driver.h>
#include <rdma/qhca-hw.h>

#include "qhca-context.h"
#include "qhca-idr.h"
#include "qhca-lock.h"
#include "qhca-queue-buf.h"

struct qhca_cq;
struct qhca_pd;
struct qhca_tm;

struct qhca_srq {
	struct verbs_srq	vsrq;
	struct qhca_lock	lock;
	char			*ring;		/* WQEs by number */
	__le32			*index;		/* index ring */
	uint8_t			shift;
	uint8_t			stride;
	uint32_t		head;		/* of the index ring */
	uint32_t		max_sge;
	uint32_t		srqn;
	uint32_t		*next;		/* free list by WQE number */
	uint32_t		first_free;	/* QHCA_SRQ_END: none */
	struct qhca_cq		*cq;		/* its own, or NULL */
	struct qhca_tm		*tm;		/* tag matching, or NULL */
	struct qhca_pd		*parent;	/* parent domain, may be NULL */
	struct qhca_dbrec	*dbrec;
	struct qhca_queue_buf	buf;
	struct qhca_queue_buf	index_buf;
};

#define QHCA_SRQ_END		0xffffffffU	/* end of the free list */
#define QHCA_SRQ_BUSY		0xfffffffeU	/* posted, not in the list */

static inline struct qhca_srq *to_qsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct qhca_srq, vsrq.srq);
}

/* Returns the SRQ with this number if it has its own CQ, or NULL. */
static inline struct qhca_srq *qhca_srq_find(struct qhca_context *ctx,
					     uint32_t srqn)
{
	return qhca_idr_find(&ctx->srqs, srqn);
}

/* srq_list.c */
int qhca_srq_list_init(struct qhca_srq *srq);
void qhca_srq_give_back(struct qhca_srq *srq, uint32_t number);
void qhca_srq_give_back_locked(struct qhca_srq *srq, uint32_t number);

#endif /* QHCA_SRQ_H */
