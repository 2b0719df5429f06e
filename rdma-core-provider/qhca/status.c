// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Detects that the device is gone: it died, was reset or removed.  The kernel
 * reports this in its status page, which the data path reads: an application
 * that only posts and polls would not notice otherwise.
 */
#include <errno.h>
#include <sys/mman.h>

#include <rdma/qhca-abi.h>

#include "qhca-context.h"

/* For a driver without such a page. */
static const struct qhca_status_page qhca_always = { .works = 1 };

/*
 * Maps the status page; @len is 0 if there is none.  Returns 0 or an errno.
 * Undo with qhca_status_unmap().
 */
int qhca_status_map(struct qhca_context *ctx, int cmd_fd, uint64_t key,
		    size_t len)
{
	void *page;

	ctx->status = &qhca_always;
	ctx->status_len = 0;
	if (!len)
		return 0;
	page = mmap(NULL, len, PROT_READ, MAP_SHARED, cmd_fd, key);
	if (page == MAP_FAILED)
		return errno;
	ctx->status = page;
	ctx->status_len = len;
	return 0;
}

void qhca_status_unmap(struct qhca_context *ctx)
{
	if (ctx->status_len)
		munmap((void *)ctx->status, ctx->status_len);
}
