// SPDX-License-Identifier: GPL-2.0
/*
 * On-demand paging: pages are entered into the device's table and removed from
 * it.
 *
 * The kernel (ib_umem_odp) finds the pages and maps them for DMA. Every page in
 * the device's table is mapped, and both change only under the umem_mutex.
 * Removing a page takes three steps: clear its entry, invalidate it in the
 * device, unmap it. If a page cannot be mapped, those before it may be mapped
 * without being in the table.
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "odp.h"
#include "qhca_ib_trace.h"

static __le64 *odp_range_entry(struct qhca_odp_range *r, unsigned long page)
{
	return r->entries ? &r->entries[page]
			  : qhca_buf_table_entry(r->table, page);
}

/*
 * Make the device drop what it caches of the MR's table. When this returns, no
 * access that used an entry cleared before is in progress. Does not sleep.
 */
void qhca_odp_sync(struct qhca_ib_odp *odp)
{
	struct qhca_dev *qdev = odp->dev->qdev;

	u32 index = odp->key >> QHCA_KEY_INDEX_SHIFT;

	trace_qhca_doorbell(odp->dev, QHCA_DB_MR_SYNC, index, 0, 0);
	qhca_db_ring(qdev, QHCA_DB_MR_SYNC, index, 0, 0);
	readl(qdev->regs + QHCA_REG_STATUS);
}

/* Remove the present pages of @start .. @end - 1. Under umem_mutex. */
static void odp_range_unmap(struct qhca_odp_range *r, u64 start, u64 end)
{
	struct ib_umem_odp *umem = r->umem;
	u64 first = ib_umem_start(umem), va;
	unsigned int shift = umem->page_shift;
	unsigned long n = 0;
	__le64 *entry;

	start = max(round_down(start, BIT_ULL(shift)), first);
	end = min_t(u64, end, ib_umem_end(umem));
	for (va = start; va < end; va += BIT_ULL(shift)) {
		entry = odp_range_entry(r, (va - first) >> shift);
		if (!*entry)
			continue;
		if (le64_to_cpu(*entry) & QHCA_BTE_WRITE)
			qhca_odp_page_dirty(umem, (va - first) >> shift);
		WRITE_ONCE(*entry, 0);
		n++;
	}
	if (n) {
		trace_qhca_invalidate(r->odp->dev, r->odp->key, start, end, n);
		qhca_odp_sync(r->odp);
		atomic64_add(n, &r->odp->invalidations);
	}
	if (umem->npages)
		ib_umem_odp_unmap_dma_pages(umem, start, end);
}

static bool odp_invalidate(struct mmu_interval_notifier *mni,
			   const struct mmu_notifier_range *range,
			   unsigned long cur_seq)
{
	struct ib_umem_odp *umem = container_of(mni, struct ib_umem_odp,
						notifier);
	struct qhca_odp_range *r;

	if (!mmu_notifier_range_blockable(range))
		return false;
	mutex_lock(&umem->umem_mutex);
	mmu_interval_set_seq(mni, cur_seq);
	/* not set yet: then nothing is mapped yet */
	r = umem->private;
	if (r) {
		odp_range_unmap(r, range->start, range->end);
		if (r->emptied && !umem->npages &&
		    (range->event == MMU_NOTIFY_UNMAP ||
		     range->event == MMU_NOTIFY_RELEASE))
			r->emptied(r);
	}
	mutex_unlock(&umem->umem_mutex);
	return true;
}

const struct mmu_interval_notifier_ops qhca_odp_mn_ops = {
	.invalidate = odp_invalidate,
};

/*
 * Enter mapped pages into the device's table. Under umem_mutex. Returns the
 * number of those that were not in it, or -EFAULT.
 */
static int odp_range_enter(struct qhca_odp_range *r, u64 va, u64 len)
{
	struct ib_umem_odp *umem = r->umem;
	u64 start = ib_umem_start(umem);
	unsigned long page = (va - start) >> umem->page_shift;
	unsigned long last = (va + len - 1 - start) >> umem->page_shift;
	int n = 0;

	/* what the pages contain, before the device can find them */
	dma_wmb();
	for (; page <= last; page++) {
		__le64 *entry = odp_range_entry(r, page);
		u64 old = le64_to_cpu(*entry);
		bool write = old & QHCA_BTE_WRITE;
		dma_addr_t addr;
		int ret;

		ret = qhca_odp_page(umem, page, &write, &addr);
		if (ret < 0)
			return ret;
		if (!ret)
			continue;
		WRITE_ONCE(*entry, cpu_to_le64(addr | QHCA_BTE_VALID |
					       (write ? QHCA_BTE_WRITE : 0)));
		n += !old;
	}
	return n;
}

/**
 * qhca_odp_range_map - provide pages of a range
 * @r: range
 * @va: address in the process
 * @len: bytes, all inside the range
 * @flags: QHCA_ODP_*
 *
 * Return: number of pages that were not present before; -EAGAIN if the memory
 * keeps changing, -EFAULT if there is no memory, it does not allow the access
 * or it cannot be mapped for DMA, -EINVAL if the process is gone or a page is
 * too small for an MR of huge pages, -ENOMEM.
 */
int qhca_odp_range_map(struct qhca_odp_range *r, u64 va, u64 len,
		       unsigned int flags)
{
	u64 access = ODP_READ_ALLOWED_BIT;
	int ret;

	if (flags & QHCA_ODP_WRITE)
		access |= ODP_WRITE_ALLOWED_BIT;
	ret = ib_umem_odp_map_dma_and_lock(r->umem, va, len, access,
					   !(flags & QHCA_ODP_SNAPSHOT));
	if (ret < 0)
		return ret == -EBUSY ? -EAGAIN : ret;
	ret = odp_range_enter(r, va, len);
	mutex_unlock(&r->umem->umem_mutex);
	return ret;
}

static int odp_explicit_map(struct qhca_ib_odp *odp, u64 va, u64 len,
			    unsigned int flags)
{
	int total = 0;

	while (len) {
		/* limited, so that others do not wait long for the locks */
		u64 n = min_t(u64, len, SZ_16M - (va & (SZ_16M - 1)));
		int ret = qhca_odp_range_map(&odp->range, va, n, flags);

		if (ret < 0)
			return ret;
		total += ret;
		va += n;
		len -= n;
	}
	return total;
}

/* The same with an address of the device; bounds are checked. */
int qhca_odp_map(struct qhca_ib_odp *odp, u64 addr, u64 len,
		 unsigned int flags)
{
	u64 off = addr - odp->iova;

	if (addr < odp->iova || off > odp->length || len > odp->length - off)
		return -EFAULT;
	if (!len)
		return 0;
	if ((flags & QHCA_ODP_WRITE) && !odp->writable)
		return -EPERM;
	if (odp->implicit)
		return qhca_odp_implicit_map(odp, odp->start + off, len,
					     flags);
	return odp_explicit_map(odp, odp->start + off, len, flags);
}

static int odp_explicit_init(struct qhca_ib_odp *odp, struct qhca_ib_mr *mr,
			     int access)
{
	struct qhca_ib_dev *dev = odp->dev;
	struct qhca_odp_range *r = &odp->range;
	struct ib_umem_odp *umem;
	int err;

	umem = ib_umem_odp_get(&dev->ibdev, odp->start, odp->length, access,
			       &qhca_odp_mn_ops);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = -EOPNOTSUPP;
	if (!(dev->qdev->caps.page_size_cap & BIT_ULL(umem->page_shift)) ||
	    (umem->page_shift != PAGE_SHIFT && !QHCA_ODP_HUGE))
		goto err;
	err = qhca_buf_table_alloc(dev->qdev, &mr->table, umem->page_shift,
				   odp->start - ib_umem_start(umem),
				   odp->length);
	if (err)
		goto err;
	trace_qhca_table(dev, odp->start, &mr->table);
	r->odp = odp;
	r->umem = umem;
	r->table = &mr->table;
	mutex_lock(&umem->umem_mutex);
	umem->private = r;
	mutex_unlock(&umem->umem_mutex);
	return 0;

err:
	ib_umem_odp_release(umem);
	return err;
}

/* Stop mapping pages, and free those that are mapped. */
static void odp_free(struct qhca_ib_odp *odp)
{
	if (odp->implicit)
		qhca_odp_implicit_free(odp);
	else
		ib_umem_odp_release(odp->range.umem);
	kfree(odp);
}

/**
 * qhca_ib_odp_init - set up an MR with on-demand paging
 * @mr: new, not in the device yet
 * @start: user address; 0 and @length U64_MAX: all of the process
 * @length: bytes
 * @iova: address in SGEs and remote requests
 * @access: IB_ACCESS_*, with ON_DEMAND
 * @mpt: filled in for the device
 *
 * The range of @start, @length and @iova has been checked, except in that case.
 * The caller announces by qhca_ib_odp_set_key() that mr->key is set.
 *
 * Return: 0; -EOPNOTSUPP (access flags), -EINVAL, -ENOMEM.
 */
int qhca_ib_odp_init(struct qhca_ib_mr *mr, u64 start, u64 length, u64 iova,
		     int access, struct qhca_mpt *mpt)
{
	struct qhca_ib_dev *dev = to_qdev(mr->ibmr.device);
	struct qhca_ib_odp *odp;
	int err;

	odp = kzalloc(sizeof(*odp), GFP_KERNEL);
	if (!odp)
		return -ENOMEM;
	odp->dev = dev;
	qhca_ib_ref_init(&odp->ref);
	odp->start = start;
	odp->length = length;
	odp->iova = iova;
	odp->writable = ib_access_writable(access);
	odp->implicit = !start && length == U64_MAX;
	if (odp->implicit) {
		odp->length = BIT_ULL(QHCA_ODP_SPAN_SHIFT);
		err = iova ? -EINVAL :
			     qhca_odp_implicit_init(odp, &mpt->buf, access);
	} else {
		err = odp_explicit_init(odp, mr, access);
		mpt->buf = mr->table.desc;
	}
	if (err) {
		kfree(odp);
		return err;
	}
	mpt->iova = cpu_to_le64(iova);
	mpt->len = cpu_to_le64(odp->length);
	mpt->flags = QHCA_MR_F_ODP;
	mr->odp = odp;
	mr->ibmr.page_size = odp->implicit ? PAGE_SIZE :
			     BIT(odp->range.umem->page_shift);
	return 0;
}

/* The MR has its key, which no user knows yet. */
void qhca_ib_odp_set_key(struct qhca_ib_mr *mr)
{
	if (mr->odp)
		mr->odp->key = mr->key;
}

/*
 * The MR is no longer in the device, and lookups no longer find it: wait for
 * current users, and free everything but the table, which is the caller's. Does
 * nothing for an MR without on-demand paging.
 */
void qhca_ib_odp_exit(struct qhca_ib_mr *mr)
{
	if (!mr->odp)
		return;
	qhca_ib_ref_kill(&mr->odp->ref);
	odp_free(mr->odp);
	mr->odp = NULL;
}
