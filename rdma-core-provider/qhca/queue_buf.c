// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Memory of rings: anonymous mappings of whole pages, which contain no other
 * data.  On a kernel that does not copy pinned pages at fork() (before 5.12),
 * ibv_dontfork_range() keeps them from child processes, if the application has
 * called ibv_fork_init(); on others it does nothing.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#include <infiniband/verbs.h>

#include "qhca-context.h"
#include "qhca-pd.h"
#include "qhca-queue-buf.h"

#define QHCA_HUGE_PAGE	(2UL << 20)

/* Maps @len bytes aligned to QHCA_HUGE_PAGE; the rest is unmapped. */
static void *qhca_queue_buf_map_aligned(size_t len)
{
	char *map, *start;
	size_t head;

	map = mmap(NULL, len + QHCA_HUGE_PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (map == MAP_FAILED)
		return map;
	head = -(uintptr_t)map & (QHCA_HUGE_PAGE - 1);
	start = map + head;
	if (head)
		munmap(map, head);
	munmap(start + len, QHCA_HUGE_PAGE - head);
	return start;
}

/*
 * Maps zeroed memory.
 *
 * @len: bytes, a multiple of the page size
 * @huge: align it to a huge page and request huge pages
 *
 * Returns 0 or a positive error number.  Free with qhca_queue_buf_free().
 */
int qhca_queue_buf_map(struct qhca_queue_buf *buf, size_t len, bool huge)
{
	size_t map_len = len;
	void *map;
	int ret;

	if (huge) {
		map_len = (len + QHCA_HUGE_PAGE - 1) & ~(QHCA_HUGE_PAGE - 1);
		map = qhca_queue_buf_map_aligned(map_len);
	} else {
		map = mmap(NULL, len, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	}
	if (map == MAP_FAILED)
		return errno;
	/* Only a hint: small pages work as well. */
	if (huge)
		madvise(map, map_len, MADV_HUGEPAGE);

	ret = ibv_dontfork_range(map, map_len);
	if (ret) {
		munmap(map, map_len);
		return ret < 0 ? errno : ret;
	}
	buf->addr = map;
	buf->len = len;
	buf->map_len = map_len;
	return 0;
}

/* Calls the application's allocator.  Returns 0, or a positive error number. */
static int qhca_queue_buf_ask(struct qhca_context *ctx, struct qhca_pd *parent,
			      struct qhca_queue_buf *buf, size_t len,
			      enum qhca_resource type, bool *made)
{
	void *addr;
	int ret;

	*made = false;
	addr = parent->alloc(&parent->ibv_pd, parent->pd_context, len,
			     ctx->page_size, type);
	if (addr == IBV_ALLOCATOR_USE_DEFAULT)
		return 0;
	if (!addr)
		return ENOMEM;
	ret = (uintptr_t)addr % ctx->page_size ? EINVAL :
	      ibv_dontfork_range(addr, len);
	if (ret) {
		parent->free(&parent->ibv_pd, parent->pd_context, addr, type);
		return ret < 0 ? errno : ret;
	}
	memset(addr, 0, len);
	buf->addr = addr;
	buf->len = len;
	buf->map_len = len;
	buf->owner = parent;
	buf->type = type;
	*made = true;
	return 0;
}

/*
 * Allocates zeroed memory for a ring.
 *
 * @parent: parent domain whose allocator is tried first, or NULL; it must live
 *	    until qhca_queue_buf_free()
 * @len: bytes, a multiple of the page size
 * @type: what the ring is for
 *
 * A ring of a huge page or more is aligned to it, so that it can use huge pages
 * and a shorter buffer table.  QHCA_HUGE_PAGES=1 also does so for small rings,
 * at the cost of a huge page each.
 *
 * Returns 0 or a positive error number.
 */
int qhca_queue_buf_alloc(struct qhca_context *ctx, struct qhca_pd *parent,
			 struct qhca_queue_buf *buf, size_t len,
			 enum qhca_resource type)
{
	bool made;
	int ret;

	if (parent && parent->alloc) {
		ret = qhca_queue_buf_ask(ctx, parent, buf, len, type, &made);
		if (ret || made)
			return ret;
	}
	return qhca_queue_buf_map(buf, len, ctx->huge || len >= QHCA_HUGE_PAGE);
}

/* Frees what the functions above allocated; does nothing if they did not. */
void qhca_queue_buf_free(struct qhca_queue_buf *buf)
{
	struct qhca_pd *owner = buf->owner;

	if (!buf->addr)
		return;
	ibv_dofork_range(buf->addr, buf->map_len);
	if (owner)
		owner->free(&owner->ibv_pd, owner->pd_context, buf->addr,
			    buf->type);
	else
		munmap(buf->addr, buf->map_len);
	memset(buf, 0, sizeof(*buf));
}
