// SPDX-License-Identifier: GPL-2.0
/*
 * Doorbell records. An application's records share pages, which are pinned
 * once; a kernel queue's come from a DMA pool.
 */
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "qhca_ib.h"

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
		/* after fork() the same address can be another page */
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

/* A doorbell record for a kernel queue, zero. 0 or -ENOMEM. */
int qhca_ib_dbrec_alloc(struct qhca_ib_dev *dev, struct qhca_ib_dbrec *dbrec)
{
	dbrec->rec = dma_pool_zalloc(dev->dbrecs, GFP_KERNEL, &dbrec->dma);
	return dbrec->rec ? 0 : -ENOMEM;
}

/* Give back either; harmless on one that is all zero. */
void qhca_ib_dbrec_free(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *uc,
			struct qhca_ib_dbrec *dbrec)
{
	struct qhca_ib_dbrec_page *page = dbrec->page;

	if (dbrec->rec)
		dma_pool_free(dev->dbrecs, dbrec->rec, dbrec->dma);
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
