/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Buffer tables: how a queue or memory region is described to the device.
 *
 * qhca_layout is the request, qhca_plan what will be built, and the encoder
 * writes it. Planner and encoder are pure: they touch no device and also
 * compile in user space. The allocator around them (qhca_buf_table_build()) is
 * kernel only.
 */
#ifndef QHCA_BUF_TABLE_H
#define QHCA_BUF_TABLE_H

#ifdef __KERNEL__
#include <linux/types.h>
#include <linux/bits.h>
#else
#include "buf_table_user.h"
#endif
#include <rdma/qhca-hw.h>

#define QHCA_LAYOUT_AUTO	0xff

/* struct qhca_layout.scope */
#define QHCA_SCOPE_USER		BIT(0)	/* queues and MRs of applications */
#define QHCA_SCOPE_KERNEL	BIT(1)	/* kernel queues (qhca_queue_buf) */

/**
 * struct qhca_layout - a requested form of buffer tables
 * @form: QHCA_BUF_*, or QHCA_LAYOUT_AUTO for the driver's choice
 * @hops: TREE: 1..3; 0: as few as fit
 * @page_shift: log2 of the page size, 12..31; 0: the largest that fits
 * @table_shift: TREE: log2 of the table size, 12..21; 0: chosen
 * @scope: QHCA_SCOPE_*: which objects the request applies to
 *
 * A request other than AUTO is strict: if it cannot be met, the result is
 * -EINVAL.
 */
struct qhca_layout {
	u8 form;
	u8 hops;
	u8 page_shift;
	u8 table_shift;
	u8 scope;
};

/**
 * struct qhca_blocks - the DMA blocks of a buffer, in order
 * @begin: go back to the first block
 * @next: store the next block's DMA address in *@addr; false: no more
 * @page_shift: log2 of the size of each block; each is aligned to it
 *
 * Embed it and use container_of() in the callbacks.  @begin may be called
 * more than once: the builder first counts, then writes.
 */
struct qhca_blocks {
	void (*begin)(struct qhca_blocks *b);
	bool (*next)(struct qhca_blocks *b, u64 *addr);
	u8 page_shift;
};

/**
 * struct qhca_plan - the table that will be built
 * @form: QHCA_BUF_*
 * @hops: number of tables read to find a page
 * @page_shift: log2 of the page size
 * @table_shift: log2 of the table size (TREE)
 * @first: position of byte 0 in the first page
 * @len: bytes described
 * @npages: pages, or segments of a LIST
 * @addr: DIRECT: DMA address of the block that holds byte 0
 * @ntables: TREE: tables on each level, root first
 */
struct qhca_plan {
	u8 form;
	u8 hops;
	u8 page_shift;
	u8 table_shift;
	u32 first;
	u64 len;
	u64 npages;
	u64 addr;
	u64 ntables[QHCA_BUF_HOPS_MAX];
};

int qhca_plan_make(struct qhca_plan *plan, struct qhca_blocks *blocks,
		   u64 first, u64 len, const struct qhca_layout *want,
		   u64 flat_max);
int qhca_plan_tree(struct qhca_plan *plan, const struct qhca_layout *want);
u64 qhca_plan_bytes(const struct qhca_plan *plan);
int qhca_plan_fill_list(const struct qhca_plan *plan,
			struct qhca_blocks *blocks, struct qhca_buf_seg *segs);
int qhca_plan_fill_pages(const struct qhca_plan *plan,
			 struct qhca_blocks *blocks, __le64 **tables);
void qhca_plan_fill_links(const struct qhca_plan *plan, __le64 **parents,
			  const u64 *addrs, u64 n);
void qhca_plan_describe(const struct qhca_plan *plan, u64 root,
			struct qhca_buf *desc);
const char *qhca_form_name(u8 form);

#ifdef __KERNEL__
struct qhca_dev;

/* One piece of table memory. */
struct qhca_buf_table_mem {
	__le64 *cpu;
	dma_addr_t dma;
	size_t size;
};

/**
 * struct qhca_buf_table - a buffer table in memory, and its descriptor
 * @desc: for the context of the object, little-endian, complete
 * @plan: its form (for debugfs and for tests)
 * @mem: the tables
 * @nmem: their number
 */
struct qhca_buf_table {
	struct qhca_buf desc;
	struct qhca_plan plan;
	struct qhca_buf_table_mem *mem;
	u64 nmem;
};

/**
 * qhca_buf_table_build - describe a buffer to the device
 * @dev: device that will read the table
 * @t: result; on error it holds nothing
 * @blocks: the DMA blocks that hold the buffer
 * @first: byte offset of the buffer in the first block
 * @len: bytes of the buffer
 * @want: layout; NULL for the driver's choice.  Its page_shift is checked
 *	against @blocks->page_shift: the iterator chooses the page size.
 *
 * Sleeps.  The table must live until the object that uses it is destroyed.
 *
 * Return: 0, -EINVAL if @want cannot be met or the blocks do not cover the
 * buffer, -ENOMEM.
 */
int qhca_buf_table_build(struct qhca_dev *dev, struct qhca_buf_table *t,
			 struct qhca_blocks *blocks, u64 first, u64 len,
			 const struct qhca_layout *want);

/**
 * qhca_buf_table_alloc - make a FLAT or TREE table without pages
 * @dev: device that will read the table
 * @t: result; on error it holds nothing
 * @page_shift: log2 of the page size
 * @first: byte offset of the region in its first page
 * @len: bytes of the region, not 0
 *
 * For on-demand paging: the tables exist, but all pages are missing. Sleeps.
 *
 * Return: 0, -EINVAL if no table fits, -ENOMEM.
 */
int qhca_buf_table_alloc(struct qhca_dev *dev, struct qhca_buf_table *t,
			 u8 page_shift, u64 first, u64 len);

/* The last-level entry of page @page of a FLAT or TREE table. */
__le64 *qhca_buf_table_entry(const struct qhca_buf_table *t, u64 page);

/* Free a table; harmless on one that is all zero. */
void qhca_buf_table_free(struct qhca_dev *dev, struct qhca_buf_table *t);

/**
 * struct qhca_queue_buf - memory of a kernel queue, coherent, and its table
 * @table: descriptor in @table.desc
 * @len: bytes
 * @chunk: CPU addresses of the chunks
 * @dma: their DMA addresses
 * @nchunks: their number
 * @chunk_shift: log2 of the size of each chunk
 *
 * Not contiguous for the CPU: access entries by qhca_queue_buf_ptr().
 */
struct qhca_queue_buf {
	struct qhca_buf_table table;
	size_t len;
	void **chunk;
	dma_addr_t *dma;
	u32 nchunks;
	u8 chunk_shift;
};

/**
 * qhca_queue_buf_alloc - allocate a kernel queue, zeroed, with its table
 * @dev: device
 * @kb: result
 * @len: bytes, a power of two
 *
 * Obeys the forced layout if it applies to kernel queues.  Sleeps.
 *
 * Return: 0, -EINVAL, -ENOMEM.
 */
int qhca_queue_buf_alloc(struct qhca_dev *dev, struct qhca_queue_buf *kb,
			 size_t len);

/* Free it; harmless if all zero.  The device must no longer use it. */
void qhca_queue_buf_free(struct qhca_dev *dev, struct qhca_queue_buf *kb);

/*
 * CPU address of the byte at @off.  Chunks are at least 4 KiB or the whole
 * buffer, so an entry of a power-of-two size up to that does not straddle.
 */
static inline void *qhca_queue_buf_ptr(const struct qhca_queue_buf *kb,
				       size_t off)
{
	return kb->chunk[off >> kb->chunk_shift] +
	       (off & (BIT_ULL(kb->chunk_shift) - 1));
}
#endif /* __KERNEL__ */

#endif /* QHCA_BUF_TABLE_H */
