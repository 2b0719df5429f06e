/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Tag matching of an SRQ: a list of tags and its ring of operations; under the
 * SRQ's lock.
 */
#ifndef QHCA_TM_H
#define QHCA_TM_H

#include <stdint.h>

#include <infiniband/verbs.h>

#include "qhca-queue-buf.h"

struct qhca_context;
struct qhca_srq;

struct qhca_tm_entry {
	uint32_t		handle;		/* of its current or next use */
	uint32_t		next;		/* free list, as in qhca_srq.next */
};

struct qhca_tm {
	char			*ring;		/* operations */
	uint8_t			shift;
	uint8_t			stride;
	uint32_t		head;
	uint32_t		tail;		/* oldest not known as executed */
	uint32_t		max_tags;
	uint32_t		first_free;	/* entry, or QHCA_SRQ_END */
	struct qhca_queue_buf	buf;
	struct qhca_tm_entry	entry[];
};

int qhca_tm_make(struct qhca_context *ctx, struct qhca_srq *srq,
		 uint32_t max_tags, uint32_t max_ops);
void qhca_tm_free(struct qhca_tm *tm);
void qhca_tm_give_back(struct qhca_srq *srq, uint32_t handle);
int qhca_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr,
		      struct ibv_ops_wr **bad_wr);

#endif /* QHCA_TM_H */
