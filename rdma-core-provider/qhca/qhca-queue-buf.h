/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Queue buffers: memory of rings.
 */
#ifndef QHCA_QUEUE_BUF_H
#define QHCA_QUEUE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct qhca_context;
struct qhca_pd;

/*
 * The purpose of a ring: the resource_type for the allocators of a parent
 * domain.
 */
enum qhca_resource {
	QHCA_RES_SQ = 1,
	QHCA_RES_RQ,
	QHCA_RES_CQ,
	QHCA_RES_SRQ,
	QHCA_RES_SRQ_INDEX,
	QHCA_RES_SRQ_OPS,
};

/* Memory of a ring: whole pages, not shared, pinned by the kernel. */
struct qhca_queue_buf {
	void			*addr;
	size_t			len;		/* passed to the kernel */
	size_t			map_len;	/* what is mapped */
	struct qhca_pd		*owner;		/* allocated by its allocator */
	enum qhca_resource	type;
};

int qhca_queue_buf_map(struct qhca_queue_buf *buf, size_t len, bool huge);
int qhca_queue_buf_alloc(struct qhca_context *ctx, struct qhca_pd *parent,
			 struct qhca_queue_buf *buf, size_t len,
			 enum qhca_resource type);
void qhca_queue_buf_free(struct qhca_queue_buf *buf);

#endif /* QHCA_QUEUE_BUF_H */
