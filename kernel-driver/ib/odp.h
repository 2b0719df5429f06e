/* SPDX-License-Identifier: GPL-2.0 */
/*
 * On-demand paging: pages of an MR are provided when the device asks for them,
 * and removed when the process or the kernel wants them back.
 *
 * odp.c: pages in and out of the device's tables; explicit MRs.
 * odp_implicit.c: MRs of a whole address space.
 * odp_fault.c: page faults of the device, and prefetching.
 *
 * Locks: odp->lock is taken before umem_mutex, and neither while the mmap_lock
 * is held, but umem_mutex is taken in MMU notifiers, so no memory is allocated
 * under it.
 */
#ifndef QHCA_IB_ODP_H
#define QHCA_IB_ODP_H

#include <linux/mmu_notifier.h>
#include <rdma/ib_umem_odp.h>

#include "qhca_ib.h"

/* An implicit MR is split into children of this many bytes: one table each. */
#define QHCA_ODP_TABLE_SHIFT	15
#define QHCA_ODP_ENTRY_BITS	(QHCA_ODP_TABLE_SHIFT - 3)
#define QHCA_ODP_CHILD_SHIFT	(QHCA_ODP_ENTRY_BITS + PAGE_SHIFT)
#define QHCA_ODP_CHILD_SIZE	BIT_ULL(QHCA_ODP_CHILD_SHIFT)
/* bytes that three levels can address */
#define QHCA_ODP_SPAN_SHIFT	min(3 * QHCA_ODP_ENTRY_BITS + PAGE_SHIFT, 48)

/**
 * struct qhca_odp_range - user memory and its entries in the device's table
 * @odp: MR it belongs to
 * @umem: the memory; its umem_mutex protects the entries
 * @table: explicit MR: its table
 * @entries: child of an implicit MR: the last-level table
 * @emptied: called with umem_mutex held when the process has unmapped all of
 *	it; may be NULL
 */
struct qhca_odp_range {
	struct qhca_ib_odp *odp;
	struct ib_umem_odp *umem;
	const struct qhca_buf_table *table;
	__le64 *entries;
	void (*emptied)(struct qhca_odp_range *r);
};

/**
 * struct qhca_ib_odp - additional state of an MR with on-demand paging
 * @dev: device
 * @key: of the MR
 * @ref: held while working on the MR without owning it
 * @iova: address of byte 0 for the device
 * @start: address of byte 0 in the process
 * @length: bytes
 * @implicit: the MR of a whole address space
 * @writable: it may be written, locally or by the peer
 * @range: explicit MR: its only range; implicit: @range.umem is the anchor
 * @faults: pages provided because the device asked
 * @invalidations: pages removed
 * @prefetched: pages provided because the application asked
 * @lock: implicit MR: protects what follows
 * @root: table of the first level
 * @root_dma: its DMA address
 * @middle: address >> (child shift + entry bits) -> struct qhca_odp_middle
 * @children: address >> child shift -> struct qhca_odp_child
 */
struct qhca_ib_odp {
	struct qhca_ib_dev *dev;
	u32 key;
	struct qhca_ib_ref ref;
	u64 iova;
	u64 start;
	u64 length;
	bool implicit;
	bool writable;
	struct qhca_odp_range range;
	atomic64_t faults;
	atomic64_t invalidations;
	atomic64_t prefetched;
	struct mutex lock;	/* see above */
	__le64 *root;
	dma_addr_t root_dma;
	struct xarray middle;
	struct xarray children;
};

/* How qhca_odp_map() gets pages. */
#define QHCA_ODP_WRITE		BIT(0)	/* they will be written */
#define QHCA_ODP_SNAPSHOT	BIT(1)	/* only those already present */

/* odp.c */
extern const struct mmu_interval_notifier_ops qhca_odp_mn_ops;
int qhca_odp_range_map(struct qhca_odp_range *r, u64 va, u64 len,
		       unsigned int flags);
int qhca_odp_map(struct qhca_ib_odp *odp, u64 addr, u64 len,
		 unsigned int flags);
void qhca_odp_sync(struct qhca_ib_odp *odp);

/* odp_implicit.c */
int qhca_odp_implicit_init(struct qhca_ib_odp *odp, struct qhca_buf *desc,
			   int access);
void qhca_odp_implicit_free(struct qhca_ib_odp *odp);
int qhca_odp_implicit_map(struct qhca_ib_odp *odp, u64 va, u64 len,
			  unsigned int flags);

#endif /* QHCA_IB_ODP_H */
