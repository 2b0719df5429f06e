// SPDX-License-Identifier: GPL-2.0
/*
 * Pins memory of applications, of queues and MRs, and describes it to the
 * device by a buffer table.
 */
#include <linux/dma-mapping.h>

#include "qhca_debug.h"
#include "qhca_ib.h"
#include "qhca_ib_trace.h"

/**
 * qhca_ib_umem_get - pin memory of the calling application
 * @dev: device
 * @addr: start
 * @len: bytes
 * @access: IB_ACCESS_*
 *
 * Return: the memory, -EOPNOTSUPP if a mapping would be a copy (bounce buffers)
 * or would need syncing, or as ib_umem_get_va().
 */
struct ib_umem *qhca_ib_umem_get(struct qhca_ib_dev *dev, u64 addr, u64 len,
				 int access)
{
	if (!dev->user_memory) {
		ibdev_dbg(&dev->ibdev, "no RDMA with bounced memory\n");
		return ERR_PTR(-EOPNOTSUPP);
	}
	return ib_umem_get_va(&dev->ibdev, addr, len, access);
}

/* The DMA blocks of a umem, in the form the table builder takes. */
struct umem_blocks {
	struct qhca_blocks blocks;
	struct ib_umem *umem;
	struct ib_block_iter it;
};

static void umem_begin(struct qhca_blocks *b)
{
	struct umem_blocks *ub = container_of(b, struct umem_blocks, blocks);

	__rdma_umem_block_iter_start(&ub->it, ub->umem,
				     BIT(b->page_shift));
}

static bool umem_next(struct qhca_blocks *b, u64 *addr)
{
	struct umem_blocks *ub = container_of(b, struct umem_blocks, blocks);

	if (!__rdma_umem_block_iter_next(&ub->it))
		return false;
	*addr = rdma_block_iter_dma_address(&ub->it);
	return true;
}

/**
 * qhca_ib_buf_table_build - make the buffer table of user memory
 * @dev: device
 * @t: result
 * @umem: pinned memory
 * @iova: address by which the device knows byte 0; queues give 0, as their
 *	first byte must be the first of a page
 * @len: bytes to describe, at most those of @umem
 *
 * Obeys the layout forced for user objects, if there is one.
 *
 * Return: 0, -EINVAL if the memory does not allow that layout, -ENOMEM,
 * -EOPNOTSUPP when the mapping would need syncing, which nothing would do; here
 * this applies to dma-bufs, see qhca_ib_umem_get().
 */
int qhca_ib_buf_table_build(struct qhca_ib_dev *dev, struct qhca_buf_table *t,
			    struct ib_umem *umem, u64 iova, u64 len)
{
	struct umem_blocks ub = {
		.blocks = { .begin = umem_begin, .next = umem_next },
		.umem = umem,
	};
	u64 sizes = dev->qdev->caps.page_size_cap &
		    GENMASK_ULL(QHCA_BUF_PAGE_SHIFT_MAX,
				QHCA_BUF_PAGE_SHIFT_MIN);
	struct qhca_layout want;
	unsigned long page;
	int err;

	if (dma_need_sync(dev->ibdev.dma_device,
			  sg_dma_address(umem->sgt_append.sgt.sgl)))
		return -EOPNOTSUPP;

	qhca_debug_layout(dev->qdev, QHCA_SCOPE_USER, &want);
	if (want.page_shift)
		sizes &= BIT_ULL(want.page_shift);
	else if (want.form == QHCA_BUF_LIST)
		sizes &= BIT_ULL(PAGE_SHIFT);	/* lengths, not sizes */
	page = ib_umem_find_best_pgsz(umem, sizes, iova);
	if (!page) {
		ibdev_dbg(&dev->ibdev,
			  "%llu bytes at %#lx: no page size of %#llx fits\n",
			  len, umem->address, sizes);
		return -EINVAL;
	}
	ub.blocks.page_shift = __ffs(page);
	err = qhca_buf_table_build(dev->qdev, t, &ub.blocks, iova & (page - 1),
				   len, &want);
	if (err)
		ibdev_dbg(&dev->ibdev,
			  "%llu bytes at %#lx: no %s table, page size %#lx: %d\n",
			  len, umem->address, qhca_form_name(want.form), page,
			  err);
	else
		trace_qhca_table(dev, umem->address, t);
	return err;
}

/**
 * qhca_ib_queue_buf_pin - pin the memory of a user's queue and make its table
 * @dev: device
 * @buf: result; on error it holds nothing
 * @addr: start, page aligned
 * @len: bytes mapped, a multiple of the page size
 * @need: bytes the queue takes
 *
 * Return: 0, -EINVAL for a bad address or length, else as ib_umem_get_va().
 */
int qhca_ib_queue_buf_pin(struct qhca_ib_dev *dev,
			  struct qhca_ib_queue_buf *buf, u64 addr, u64 len,
			  u64 need)
{
	struct ib_umem *umem;
	int err;

	if (!addr || !PAGE_ALIGNED(addr) || !len || !PAGE_ALIGNED(len) ||
	    len < need || addr + len < addr)
		return -EINVAL;
	buf->access = IB_ACCESS_LOCAL_WRITE;
	umem = qhca_ib_umem_get(dev, addr, len, buf->access);
	if (IS_ERR(umem))
		return PTR_ERR(umem);
	err = qhca_ib_buf_table_build(dev, &buf->table, umem, 0, need);
	if (err) {
		ib_umem_release(umem);
		return err;
	}
	buf->umem = umem;
	return 0;
}

/*
 * Memory and table of a kernel queue of @len bytes, a power of two; zeroed.
 * 0, -EINVAL, -ENOMEM.
 */
int qhca_ib_queue_buf_alloc(struct qhca_ib_dev *dev,
			    struct qhca_ib_queue_buf *buf, size_t len)
{
	int err = qhca_queue_buf_alloc(dev->qdev, &buf->kbuf, len);

	if (!err)
		trace_qhca_table(dev, 0, &buf->kbuf.table);
	return err;
}

/* Free either kind; harmless on one that is all zero. */
void qhca_ib_queue_buf_free(struct qhca_ib_dev *dev,
			    struct qhca_ib_queue_buf *buf)
{
	if (buf->umem) {
		qhca_buf_table_free(dev->qdev, &buf->table);
		ib_umem_release(buf->umem);
		buf->umem = NULL;
	} else {
		qhca_queue_buf_free(dev->qdev, &buf->kbuf);
	}
}
