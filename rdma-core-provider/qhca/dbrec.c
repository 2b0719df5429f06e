// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Doorbell records, many in a page: the kernel pins the page once.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/list.h>

#include "qhca-context.h"
#include "qhca-doorbell.h"
#include "qhca-queue-buf.h"

/* A cache line each, to avoid false sharing between threads. */
#define QHCA_DBREC_SPACING	64

struct qhca_dbrec_page {
	struct list_node	entry;
	struct qhca_queue_buf	buf;
	unsigned int		used;
	uint64_t		free[];		/* bit set: record is free */
};

static unsigned int qhca_dbrecs_per_page(struct qhca_context *ctx)
{
	return ctx->page_size / QHCA_DBREC_SPACING;
}

static struct qhca_dbrec_page *qhca_dbrec_page_new(struct qhca_context *ctx)
{
	unsigned int n = qhca_dbrecs_per_page(ctx);
	struct qhca_dbrec_page *page;
	unsigned int i;

	page = calloc(1, sizeof(*page) + (n + 63) / 64 * sizeof(page->free[0]));
	if (!page)
		return NULL;
	if (qhca_queue_buf_map(&page->buf, ctx->page_size, false)) {
		free(page);
		return NULL;
	}
	for (i = 0; i < n; i++)
		page->free[i / 64] |= 1ULL << i % 64;
	list_add(&ctx->dbrec_pages, &page->entry);
	return page;
}

/*
 * Returns a record with index and flags 0, or NULL with errno set.
 * Free with qhca_dbrec_free().
 */
struct qhca_dbrec *qhca_dbrec_alloc(struct qhca_context *ctx)
{
	unsigned int n = qhca_dbrecs_per_page(ctx);
	struct qhca_dbrec *rec = NULL;
	struct qhca_dbrec_page *page;
	unsigned int i = 0;

	pthread_mutex_lock(&ctx->dbrec_mutex);
	/* Full pages move to the end, so the first one decides. */
	page = list_top(&ctx->dbrec_pages, struct qhca_dbrec_page, entry);
	if (!page || page->used == n)
		page = qhca_dbrec_page_new(ctx);
	if (!page) {
		errno = ENOMEM;
		goto out;
	}
	while (!page->free[i])
		i++;
	i = i * 64 + __builtin_ctzll(page->free[i]);
	page->free[i / 64] &= ~(1ULL << i % 64);
	if (++page->used == n) {
		list_del(&page->entry);
		list_add_tail(&ctx->dbrec_pages, &page->entry);
	}
	rec = (struct qhca_dbrec *)((char *)page->buf.addr +
				    i * QHCA_DBREC_SPACING);
	memset(rec, 0, sizeof(*rec));
out:
	pthread_mutex_unlock(&ctx->dbrec_mutex);
	return rec;
}

/* Frees a record; NULL is allowed. */
void qhca_dbrec_free(struct qhca_context *ctx, struct qhca_dbrec *rec)
{
	struct qhca_dbrec_page *page;
	uintptr_t base;
	unsigned int i;

	if (!rec)
		return;
	base = (uintptr_t)rec & ~(ctx->page_size - 1);
	pthread_mutex_lock(&ctx->dbrec_mutex);
	list_for_each(&ctx->dbrec_pages, page, entry)
		if ((uintptr_t)page->buf.addr == base)
			break;
	i = ((uintptr_t)rec - base) / QHCA_DBREC_SPACING;
	page->free[i / 64] |= 1ULL << i % 64;
	page->used--;
	list_del(&page->entry);
	if (page->used) {
		list_add(&ctx->dbrec_pages, &page->entry);
	} else {
		qhca_queue_buf_free(&page->buf);
		free(page);
	}
	pthread_mutex_unlock(&ctx->dbrec_mutex);
}
