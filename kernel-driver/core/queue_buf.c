// SPDX-License-Identifier: GPL-2.0
/* Coherent memory of the kernel's own queues, with its buffer table. */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>

#include "core.h"
#include "qhca_debug.h"

/* largest queue placed in one block by default */
#define QUEUE_BUF_DIRECT_MAX	SZ_128K

struct queue_buf_blocks {
	struct qhca_blocks blocks;
	const struct qhca_queue_buf *buf;
	u64 pos;
	u64 count;		/* blocks in the buffer */
};

static void qhca_queue_buf_begin(struct qhca_blocks *b)
{
	container_of(b, struct queue_buf_blocks, blocks)->pos = 0;
}

/* A chunk may be larger than a block if it is the only one. */
static bool qhca_queue_buf_next(struct qhca_blocks *b, u64 *addr)
{
	struct queue_buf_blocks *qb = container_of(b, struct queue_buf_blocks,
						   blocks);
	u64 off = qb->pos << b->page_shift;

	if (qb->pos == qb->count)
		return false;
	qb->pos++;
	*addr = qb->buf->dma[off >> qb->buf->chunk_shift] +
		(off & (BIT_ULL(qb->buf->chunk_shift) - 1));
	return true;
}

static void qhca_queue_buf_free_chunks(struct qhca_dev *dev,
				       struct qhca_queue_buf *buf)
{
	u32 i;

	for (i = 0; buf->chunk && buf->dma && i < buf->nchunks; i++) {
		if (buf->chunk[i])
			dma_free_coherent(&dev->pdev->dev,
					  BIT(buf->chunk_shift), buf->chunk[i],
					  buf->dma[i]);
	}
	kvfree(buf->dma);
	kvfree(buf->chunk);
	memset(buf, 0, sizeof(*buf));
}

static int qhca_queue_buf_alloc_chunks(struct qhca_dev *dev,
				       struct qhca_queue_buf *buf, size_t len,
				       u8 chunk_shift)
{
	u32 i;

	buf->len = len;
	buf->chunk_shift = chunk_shift;
	buf->nchunks = DIV_ROUND_UP_ULL(len, BIT_ULL(chunk_shift));
	buf->chunk = kvcalloc(buf->nchunks, sizeof(*buf->chunk), GFP_KERNEL);
	buf->dma = kvcalloc(buf->nchunks, sizeof(*buf->dma), GFP_KERNEL);
	for (i = 0; buf->chunk && buf->dma && i < buf->nchunks; i++) {
		buf->chunk[i] = dma_alloc_coherent(&dev->pdev->dev,
						   BIT(chunk_shift),
						   &buf->dma[i],
						   GFP_KERNEL | __GFP_NOWARN);
		if (!buf->chunk[i])
			break;
	}
	if (i < buf->nchunks) {
		qhca_queue_buf_free_chunks(dev, buf);
		return -ENOMEM;
	}
	return 0;
}

static int qhca_queue_buf_make(struct qhca_dev *dev, struct qhca_queue_buf *buf,
			       size_t len, u8 chunk_shift, u8 page_shift,
			       const struct qhca_layout *want)
{
	struct queue_buf_blocks qb = {
		.blocks = {
			.begin = qhca_queue_buf_begin,
			.next = qhca_queue_buf_next,
			.page_shift = page_shift,
		},
		.buf = buf,
		.count = DIV_ROUND_UP_ULL(len, BIT_ULL(page_shift)),
	};
	int err;

	err = qhca_queue_buf_alloc_chunks(dev, buf, len, chunk_shift);
	if (err)
		return err;
	err = qhca_buf_table_build(dev, &buf->table, &qb.blocks, 0, len, want);
	if (err)
		qhca_queue_buf_free_chunks(dev, buf);
	return err;
}

int qhca_queue_buf_alloc(struct qhca_dev *dev, struct qhca_queue_buf *buf,
			 size_t len)
{
	u8 whole = max_t(u8, order_base_2(len), QHCA_BUF_PAGE_SHIFT_MIN);
	struct qhca_layout want;
	u8 page_shift;
	int err;

	memset(buf, 0, sizeof(*buf));
	if (!len || !is_power_of_2(len))
		return -EINVAL;
	qhca_debug_layout(dev, QHCA_SCOPE_KERNEL, &want);
	page_shift = want.page_shift ? want.page_shift
				     : QHCA_BUF_PAGE_SHIFT_MIN;

	if (want.form == QHCA_BUF_DIRECT)
		return qhca_queue_buf_make(dev, buf, len,
					   max(whole, page_shift),
					   page_shift, &want);
	if (want.form == QHCA_LAYOUT_AUTO && !want.page_shift &&
	    len <= QUEUE_BUF_DIRECT_MAX) {
		err = qhca_queue_buf_make(dev, buf, len, whole, page_shift,
					  NULL);
		if (err != -ENOMEM)
			return err;
	}
	return qhca_queue_buf_make(dev, buf, len, page_shift, page_shift,
				   &want);
}
EXPORT_SYMBOL_GPL(qhca_queue_buf_alloc);

void qhca_queue_buf_free(struct qhca_dev *dev, struct qhca_queue_buf *buf)
{
	qhca_buf_table_free(dev, &buf->table);
	qhca_queue_buf_free_chunks(dev, buf);
}
EXPORT_SYMBOL_GPL(qhca_queue_buf_free);
