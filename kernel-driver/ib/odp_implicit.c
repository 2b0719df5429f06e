// SPDX-License-Identifier: GPL-2.0
/*
 * An implicit MR: all memory of a process, including later mappings.
 *
 * Its table is a tree of three levels that begins as an empty root. Where the
 * device accesses memory in use, a child covers 16 MiB (with pages of 4 KiB): a
 * last-level table and an MMU notifier. A child is freed when the process has
 * unmapped all of its memory, and a second-level table with its last child.
 */
#include <linux/dma-mapping.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>

#include "odp.h"

/**
 * struct qhca_odp_child - a piece of an implicit MR
 * @range: its memory; @range.entries is the table
 * @dma: DMA address of the table
 * @users: mappers of pages right now; under odp->lock
 * @dead: no longer in the tree; under umem_mutex
 * @gone: frees it when it is empty; holds a reference to the MR while queued
 */
struct qhca_odp_child {
	struct qhca_odp_range range;
	dma_addr_t dma;
	unsigned int users;
	bool dead;
	struct work_struct gone;
};

struct qhca_odp_middle {
	__le64 *table;
	dma_addr_t dma;
	unsigned int children;	/* under odp->lock */
};

static __le64 *implicit_table_alloc(struct qhca_ib_odp *odp, dma_addr_t *dma)
{
	return dma_alloc_coherent(&odp->dev->qdev->pdev->dev,
				  BIT(QHCA_ODP_TABLE_SHIFT), dma, GFP_KERNEL);
}

static void implicit_table_free(struct qhca_ib_odp *odp, __le64 *table,
				dma_addr_t dma)
{
	if (table)
		dma_free_coherent(&odp->dev->qdev->pdev->dev,
				  BIT(QHCA_ODP_TABLE_SHIFT), table, dma);
}

/* Index of @va in the table of @level, 0 being the root. */
static unsigned int implicit_entry_index(u64 va, unsigned int level)
{
	return (va >> (PAGE_SHIFT + QHCA_ODP_ENTRY_BITS * (2 - level))) &
	       (BIT(QHCA_ODP_ENTRY_BITS) - 1);
}

static void implicit_link_table(__le64 *entry, dma_addr_t dma)
{
	/* the table below is complete before the device can find it */
	dma_wmb();
	WRITE_ONCE(*entry, cpu_to_le64(dma | QHCA_BTE_VALID | QHCA_BTE_TABLE));
}

/* The second-level table for @va, created if necessary. Under odp->lock. */
static struct qhca_odp_middle *implicit_middle_get(struct qhca_ib_odp *odp,
						   u64 va)
{
	struct qhca_odp_middle *m;
	unsigned long index = implicit_entry_index(va, 0);
	int err;

	m = xa_load(&odp->middle, index);
	if (m)
		return m;
	m = kzalloc(sizeof(*m), GFP_KERNEL);
	if (!m)
		return ERR_PTR(-ENOMEM);
	m->table = implicit_table_alloc(odp, &m->dma);
	err = m->table ? xa_err(xa_store(&odp->middle, index, m, GFP_KERNEL))
		       : -ENOMEM;
	if (err) {
		implicit_table_free(odp, m->table, m->dma);
		kfree(m);
		return ERR_PTR(err);
	}
	implicit_link_table(&odp->root[index], m->dma);
	return m;
}

static void implicit_middle_free(struct qhca_ib_odp *odp,
				 struct qhca_odp_middle *m)
{
	if (!m)
		return;
	implicit_table_free(odp, m->table, m->dma);
	kfree(m);
}

/*
 * Unlink the second-level table for @va if it has no child. Under odp->lock.
 * Returns what to free after qhca_odp_sync(), or NULL.
 */
static struct qhca_odp_middle *implicit_middle_put(struct qhca_ib_odp *odp,
						   u64 va)
{
	unsigned long index = implicit_entry_index(va, 0);
	struct qhca_odp_middle *m = xa_load(&odp->middle, index);

	if (m->children)
		return NULL;
	WRITE_ONCE(odp->root[index], 0);
	xa_erase(&odp->middle, index);
	return m;
}

static u64 implicit_child_start(const struct qhca_odp_child *c)
{
	return ib_umem_start(c->range.umem);
}

static void implicit_child_free(struct qhca_odp_child *c)
{
	struct qhca_ib_odp *odp = c->range.odp;

	ib_umem_odp_release(c->range.umem);
	implicit_table_free(odp, c->range.entries, c->dma);
	kfree(c);
}

/*
 * The process has unmapped all of a child. A mapper of its pages that comes
 * before this runs keeps it alive.
 */
static void implicit_child_gone(struct work_struct *work)
{
	struct qhca_odp_child *c = container_of(work, struct qhca_odp_child,
						gone);
	struct qhca_ib_odp *odp = c->range.odp;
	struct ib_umem_odp *umem = c->range.umem;
	struct qhca_odp_middle *m = NULL;
	u64 va = implicit_child_start(c);

	mutex_lock(&odp->lock);
	mutex_lock(&umem->umem_mutex);
	c->dead = !c->users && !umem->npages;
	mutex_unlock(&umem->umem_mutex);
	if (c->dead) {
		m = xa_load(&odp->middle, implicit_entry_index(va, 0));
		WRITE_ONCE(m->table[implicit_entry_index(va, 1)], 0);
		xa_erase(&odp->children, va >> QHCA_ODP_CHILD_SHIFT);
		m->children--;
		m = implicit_middle_put(odp, va);
	}
	mutex_unlock(&odp->lock);
	if (c->dead) {
		qhca_odp_sync(odp);
		implicit_middle_free(odp, m);
		/* queued again before it was dead? */
		if (cancel_work(work))
			qhca_ib_ref_put(&odp->ref);
		implicit_child_free(c);
	}
	qhca_ib_ref_put(&odp->ref);
}

/* The child has no pages. Under umem_mutex. */
static void implicit_child_emptied(struct qhca_odp_range *r)
{
	struct qhca_odp_child *c = container_of(r, struct qhca_odp_child,
						range);

	/* no reference: the MR is being destroyed, with its children */
	if (c->dead || !refcount_inc_not_zero(&r->odp->ref.count))
		return;
	if (!queue_work(r->odp->dev->odp_wq, &c->gone))
		qhca_ib_ref_put(&r->odp->ref);
}

static struct qhca_odp_child *implicit_child_make(struct qhca_ib_odp *odp,
						  u64 va)
{
	struct ib_umem_odp *root = odp->range.umem, *umem;
	struct mm_struct *mm = root->umem.owning_mm;
	struct qhca_odp_middle *m;
	struct qhca_odp_child *c;
	int err = -ENOMEM;

	m = implicit_middle_get(odp, va);
	if (IS_ERR(m))
		return ERR_CAST(m);
	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		goto err_middle;
	c->range.odp = odp;
	c->range.emptied = implicit_child_emptied;
	INIT_WORK(&c->gone, implicit_child_gone);
	c->range.entries = implicit_table_alloc(odp, &c->dma);
	if (!c->range.entries)
		goto err_free;
	/* a notifier can only be inserted into a living address space */
	err = -EINVAL;
	if (!mmget_not_zero(mm))
		goto err_table;
	umem = ib_umem_odp_alloc_child(root, va, QHCA_ODP_CHILD_SIZE,
				       &qhca_odp_mn_ops);
	mmput_async(mm);
	if (IS_ERR(umem)) {
		err = PTR_ERR(umem);
		goto err_table;
	}
	c->range.umem = umem;
	err = xa_err(xa_store(&odp->children, va >> QHCA_ODP_CHILD_SHIFT, c,
			      GFP_KERNEL));
	if (err)
		goto err_umem;
	mutex_lock(&umem->umem_mutex);
	umem->private = &c->range;
	mutex_unlock(&umem->umem_mutex);
	implicit_link_table(&m->table[implicit_entry_index(va, 1)], c->dma);
	m->children++;
	return c;

err_umem:
	ib_umem_odp_release(umem);
err_table:
	implicit_table_free(odp, c->range.entries, c->dma);
err_free:
	kfree(c);
err_middle:
	m = implicit_middle_put(odp, va);
	if (m)
		qhca_odp_sync(odp);
	implicit_middle_free(odp, m);
	return ERR_PTR(err);
}

static struct qhca_odp_child *implicit_child_get(struct qhca_ib_odp *odp,
						 u64 va)
{
	struct qhca_odp_child *c;

	mutex_lock(&odp->lock);
	c = xa_load(&odp->children, va >> QHCA_ODP_CHILD_SHIFT);
	if (!c)
		c = implicit_child_make(odp, va & ~(QHCA_ODP_CHILD_SIZE - 1));
	if (!IS_ERR(c))
		c->users++;
	mutex_unlock(&odp->lock);
	return c;
}

/*
 * Leave no child behind after an access that found no memory: otherwise a peer
 * could exhaust our memory with them.
 */
static void implicit_child_put(struct qhca_odp_child *c)
{
	struct qhca_ib_odp *odp = c->range.odp;
	struct ib_umem_odp *umem = c->range.umem;

	mutex_lock(&odp->lock);
	if (!--c->users) {
		mutex_lock(&umem->umem_mutex);
		if (!umem->npages)
			implicit_child_emptied(&c->range);
		mutex_unlock(&umem->umem_mutex);
	}
	mutex_unlock(&odp->lock);
}

/* As qhca_odp_range_map(), over as many children as needed. */
int qhca_odp_implicit_map(struct qhca_ib_odp *odp, u64 va, u64 len,
			  unsigned int flags)
{
	int total = 0;

	while (len) {
		u64 n = min(len, QHCA_ODP_CHILD_SIZE -
				 (va & (QHCA_ODP_CHILD_SIZE - 1)));
		struct qhca_odp_child *c = implicit_child_get(odp, va);
		int ret;

		if (IS_ERR(c))
			return PTR_ERR(c);
		ret = qhca_odp_range_map(&c->range, va, n, flags);
		implicit_child_put(c);
		if (ret < 0)
			return ret;
		total += ret;
		va += n;
		len -= n;
	}
	return total;
}

/* Make the empty root; *@desc describes it. 0, -EINVAL, -ENOMEM. */
int qhca_odp_implicit_init(struct qhca_ib_odp *odp, struct qhca_buf *desc,
			   int access)
{
	struct ib_umem_odp *umem;

	mutex_init(&odp->lock);
	xa_init(&odp->middle);
	xa_init(&odp->children);
	odp->root = implicit_table_alloc(odp, &odp->root_dma);
	if (!odp->root)
		return -ENOMEM;
	umem = ib_umem_odp_alloc_implicit(&odp->dev->ibdev, access);
	if (IS_ERR(umem)) {
		implicit_table_free(odp, odp->root, odp->root_dma);
		return PTR_ERR(umem);
	}
	/* the root has no notifier, which would hold it for the children */
	mmgrab(umem->umem.owning_mm);
	odp->range.umem = umem;
	desc->addr = cpu_to_le64(odp->root_dma);
	desc->len = cpu_to_le64(odp->length);
	desc->form = QHCA_BUF_TREE;
	desc->hops = 3;
	desc->page_shift = PAGE_SHIFT;
	desc->table_shift = QHCA_ODP_TABLE_SHIFT;
	return 0;
}

/* The MR is unused, and no work for it is queued. */
void qhca_odp_implicit_free(struct qhca_ib_odp *odp)
{
	struct qhca_odp_middle *m;
	struct qhca_odp_child *c;
	struct mm_struct *mm;
	unsigned long i;

	xa_for_each(&odp->children, i, c)
		implicit_child_free(c);
	xa_for_each(&odp->middle, i, m)
		implicit_middle_free(odp, m);
	xa_destroy(&odp->children);
	xa_destroy(&odp->middle);
	mm = odp->range.umem->umem.owning_mm;
	ib_umem_odp_release(odp->range.umem);
	mmdrop(mm);
	implicit_table_free(odp, odp->root, odp->root_dma);
}
