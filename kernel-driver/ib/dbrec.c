// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell records. An application's records share pages, which are pinned
 * once. Records of kernel queues share pages, too; unlike a DMA pool, the list
 * of free records is not kept in the page, as the device can write there.
 */
#include <linux/dma-mapping.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "qhca_ib.h"

/* a cache line each: no false sharing between kernel queues */
#define DBREC_STRIDE	64
#define DBRECS_PER_PAGE	(PAGE_SIZE / DBREC_STRIDE)

static struct qhca_ib_dbrec_page *dbrec_page_new(struct qhca_ib_dev *dev,
						 unsigned long va)
{
	struct qhca_ib_dbrec_page *page;

	page = kzalloc(sizeof(*page), GFP_KERNEL);
	if (!page)
		return ERR_PTR(-ENOMEM);
	/* the device writes the flags */
	page->umem = qhca_ib_umem_get(dev, va, PAGE_SIZE,
				      IB_ACCESS_LOCAL_WRITE);
	if (IS_ERR(page->umem)) {
		int err = PTR_ERR(page->umem);

		kfree(page);
		return ERR_PTR(err);
	}
	page->va = va;
	page->mm = current->mm;
	mmgrab(page->mm);
	return page;
}

/**
 * qhca_ib_dbrec_pin - pin an application's doorbell record
 * @dev: device
 * @uc: its context
 * @dbrec: result
 * @addr: user address, 8-byte aligned
 *
 * Return: 0, -EINVAL, -ENOMEM or as qhca_ib_umem_get().
 */
int qhca_ib_dbrec_pin(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *uc,
		      struct qhca_ib_dbrec *dbrec, u64 addr)
{
	unsigned long va = addr & PAGE_MASK;
	struct qhca_ib_dbrec_page *page;
	int err = 0;

	if (!addr || !IS_ALIGNED(addr, sizeof(struct qhca_dbrec)))
		return -EINVAL;

	mutex_lock(&uc->dbrec_lock);
	list_for_each_entry(page, &uc->dbrec_pages, list) {
		/* after fork() the same address may be a different page */
		if (page->va == va && page->mm == current->mm)
			goto found;
	}
	page = dbrec_page_new(dev, va);
	if (IS_ERR(page)) {
		err = PTR_ERR(page);
		goto out;
	}
	list_add(&page->list, &uc->dbrec_pages);
found:
	page->users++;
	dbrec->page = page;
	dbrec->dma = sg_dma_address(page->umem->sgt_append.sgt.sgl) +
		  offset_in_page(addr);
out:
	mutex_unlock(&uc->dbrec_lock);
	return err;
}

/* A page with records of kernel queues. */
struct dbrec_chunk {
	struct list_head list;
	void *cpu;
	dma_addr_t dma;
	DECLARE_BITMAP(busy, DBRECS_PER_PAGE);
};

/* A chunk with a free record. Under dev->dbrec_lock. */
static struct dbrec_chunk *dbrec_chunk_get(struct qhca_ib_dev *dev)
{
	struct dbrec_chunk *chunk;

	list_for_each_entry(chunk, &dev->dbrec_chunks, list) {
		if (!bitmap_full(chunk->busy, DBRECS_PER_PAGE))
			return chunk;
	}
	chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return NULL;
	chunk->cpu = dma_alloc_coherent(qhca_dma_dev(dev->qdev), PAGE_SIZE,
					&chunk->dma, GFP_KERNEL);
	if (!chunk->cpu) {
		kfree(chunk);
		return NULL;
	}
	list_add(&chunk->list, &dev->dbrec_chunks);
	return chunk;
}

/* A doorbell record for a kernel queue, zero. 0 or -ENOMEM. */
int qhca_ib_dbrec_alloc(struct qhca_ib_dev *dev, struct qhca_ib_dbrec *dbrec)
{
	struct dbrec_chunk *chunk;
	unsigned long n;

	mutex_lock(&dev->dbrec_lock);
	chunk = dbrec_chunk_get(dev);
	if (chunk) {
		n = find_first_zero_bit(chunk->busy, DBRECS_PER_PAGE);
		__set_bit(n, chunk->busy);
		dbrec->rec = chunk->cpu + n * DBREC_STRIDE;
		dbrec->dma = chunk->dma + n * DBREC_STRIDE;
		memset(dbrec->rec, 0, DBREC_STRIDE);
	}
	mutex_unlock(&dev->dbrec_lock);
	return chunk ? 0 : -ENOMEM;
}

static void dbrec_put(struct qhca_ib_dev *dev, struct qhca_ib_dbrec *dbrec)
{
	struct dbrec_chunk *chunk;

	mutex_lock(&dev->dbrec_lock);
	list_for_each_entry(chunk, &dev->dbrec_chunks, list) {
		unsigned long at = (void *)dbrec->rec - chunk->cpu;

		if (at >= PAGE_SIZE)
			continue;
		__clear_bit(at / DBREC_STRIDE, chunk->busy);
		if (bitmap_empty(chunk->busy, DBRECS_PER_PAGE)) {
			list_del(&chunk->list);
			dma_free_coherent(qhca_dma_dev(dev->qdev), PAGE_SIZE,
					  chunk->cpu, chunk->dma);
			kfree(chunk);
		}
		break;
	}
	mutex_unlock(&dev->dbrec_lock);
}

/* Free either kind; harmless on one that is all zero. */
void qhca_ib_dbrec_free(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *uc,
			struct qhca_ib_dbrec *dbrec)
{
	struct qhca_ib_dbrec_page *page = dbrec->page;

	if (dbrec->rec)
		dbrec_put(dev, dbrec);
	if (page) {
		mutex_lock(&uc->dbrec_lock);
		if (!--page->users) {
			list_del(&page->list);
			ib_umem_release(page->umem);
			mmdrop(page->mm);
			kfree(page);
		}
		mutex_unlock(&uc->dbrec_lock);
	}
	memset(dbrec, 0, sizeof(*dbrec));
}
