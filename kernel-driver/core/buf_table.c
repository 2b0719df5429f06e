// SPDX-License-Identifier: GPL-2.0
/*
 * Memory of buffer tables.
 *
 * All of it is coherent DMA memory: the device may read a table entry at any
 * time while its object lives, and no syncing is needed, even with an IOMMU or
 * bounce buffers (swiotlb=force).
 */
#include <linux/dma-mapping.h>
#include <linux/slab.h>

#include "core.h"

/* largest FLAT table chosen automatically */
#define FLAT_MAX	SZ_2M

/* here, as buf_table_plan.c is also compiled in user space */
EXPORT_SYMBOL_GPL(qhca_form_name);

static int buf_table_mem_alloc(struct qhca_core *core,
			       struct qhca_buf_table_mem *m, size_t size,
			       size_t align)
{
	m->size = size;
	m->cpu = dma_alloc_coherent(qhca_dma_dev(&core->dev), size, &m->dma,
				    GFP_KERNEL | __GFP_NOWARN);
	if (!m->cpu)
		return -ENOMEM;
	/*
	 * the DMA API aligns to the size, rounded up to a power-of-two number
	 * of pages
	 */
	if (WARN_ON_ONCE(!IS_ALIGNED(m->dma, align)))
		return -EINVAL;
	return 0;
}

/* Without @blocks, both functions leave all pages missing. */
static int buf_table_build_one(struct qhca_core *core, struct qhca_buf_table *t,
			       struct qhca_blocks *blocks)
{
	int err;

	t->mem = kvcalloc(1, sizeof(*t->mem), GFP_KERNEL);
	if (!t->mem)
		return -ENOMEM;
	t->nmem = 1;
	err = buf_table_mem_alloc(core, t->mem, qhca_plan_bytes(&t->plan), 8);
	if (err)
		return err;
	if (blocks && t->plan.form == QHCA_BUF_LIST)
		err = qhca_plan_fill_list(&t->plan, blocks,
					  (struct qhca_buf_seg *)t->mem->cpu);
	else if (blocks)
		err = qhca_plan_fill_pages(&t->plan, blocks, &t->mem->cpu);
	if (!err)
		qhca_plan_describe(&t->plan, t->mem->dma, &t->desc);
	return err;
}

static int buf_table_build_tree(struct qhca_core *core,
				struct qhca_buf_table *t,
				struct qhca_blocks *blocks)
{
	struct qhca_plan *plan = &t->plan;
	size_t size = BIT(plan->table_shift);
	u64 start[QHCA_BUF_HOPS_MAX];	/* first table of each level */
	u64 total = 0, i;
	__le64 **cpu;
	u64 *dma;
	int level, err = -ENOMEM;

	for (level = 0; level < plan->hops; level++) {
		start[level] = total;
		total += plan->ntables[level];
	}
	t->mem = kvcalloc(total, sizeof(*t->mem), GFP_KERNEL);
	cpu = kvcalloc(total, sizeof(*cpu), GFP_KERNEL);
	dma = kvcalloc(total, sizeof(*dma), GFP_KERNEL);
	if (!t->mem || !cpu || !dma)
		goto out;
	for (i = 0; i < total; i++) {
		t->nmem = i + 1;
		err = buf_table_mem_alloc(core, &t->mem[i], size, size);
		if (err)
			goto out;
		cpu[i] = t->mem[i].cpu;
		dma[i] = t->mem[i].dma;
	}
	for (level = 1; level < plan->hops; level++)
		qhca_plan_fill_links(plan, cpu + start[level - 1],
				     dma + start[level], plan->ntables[level]);
	if (blocks)
		err = qhca_plan_fill_pages(plan, blocks,
					   cpu + start[plan->hops - 1]);
	if (!err)
		qhca_plan_describe(plan, dma[0], &t->desc);
out:
	kvfree(dma);
	kvfree(cpu);
	return err;
}

static int buf_table_build_planned(struct qhca_dev *dev,
				   struct qhca_buf_table *t,
				   struct qhca_blocks *blocks)
{
	struct qhca_core *core = qhca_to_core(dev);
	int err = 0;

	switch (t->plan.form) {
	case QHCA_BUF_DIRECT:
		qhca_plan_describe(&t->plan, 0, &t->desc);
		break;
	case QHCA_BUF_TREE:
		err = buf_table_build_tree(core, t, blocks);
		break;
	default:
		err = buf_table_build_one(core, t, blocks);
	}
	if (err)
		qhca_buf_table_free(dev, t);
	return err;
}

int qhca_buf_table_build(struct qhca_dev *dev, struct qhca_buf_table *t,
			 struct qhca_blocks *blocks, u64 first, u64 len,
			 const struct qhca_layout *want)
{
	bool chosen = !want || want->form == QHCA_LAYOUT_AUTO;
	struct qhca_plan plan;
	int err;

	memset(t, 0, sizeof(*t));
	err = qhca_plan_make(&plan, blocks, first, len, want, FLAT_MAX);
	if (err)
		return err;
	t->plan = plan;
	err = buf_table_build_planned(dev, t, blocks);
	if (err != -ENOMEM || !chosen || plan.form != QHCA_BUF_FLAT)
		return err;
	/* memory is fragmented: try smaller tables */
	err = qhca_plan_tree(&plan, NULL);
	if (err)
		return err;
	t->plan = plan;
	return buf_table_build_planned(dev, t, blocks);
}
EXPORT_SYMBOL_GPL(qhca_buf_table_build);

int qhca_buf_table_alloc(struct qhca_dev *dev, struct qhca_buf_table *t,
			 u8 page_shift, u64 first, u64 len)
{
	struct qhca_plan *plan = &t->plan;
	int err = 0;

	memset(t, 0, sizeof(*t));
	plan->page_shift = page_shift;
	plan->first = first;
	plan->len = len;
	plan->npages = ((first + len - 1) >> page_shift) + 1;
	if (plan->npages <= FLAT_MAX / sizeof(__le64)) {
		plan->form = QHCA_BUF_FLAT;
		plan->hops = 1;
	} else {
		err = qhca_plan_tree(plan, NULL);
	}
	return err ?: buf_table_build_planned(dev, t, NULL);
}
EXPORT_SYMBOL_GPL(qhca_buf_table_alloc);

__le64 *qhca_buf_table_entry(const struct qhca_buf_table *t, u64 page)
{
	const struct qhca_plan *plan = &t->plan;
	unsigned int e = plan->table_shift - 3;
	u64 i;

	if (plan->form != QHCA_BUF_TREE)
		return &t->mem->cpu[page];
	/* the tables of the last level are the last */
	i = t->nmem - plan->ntables[plan->hops - 1] + (page >> e);
	return &t->mem[i].cpu[page & (BIT_ULL(e) - 1)];
}
EXPORT_SYMBOL_GPL(qhca_buf_table_entry);

void qhca_buf_table_free(struct qhca_dev *dev, struct qhca_buf_table *t)
{
	u64 i;

	for (i = 0; i < t->nmem; i++) {
		struct qhca_buf_table_mem *m = &t->mem[i];

		if (m->cpu)
			dma_free_coherent(&dev->pdev->dev, m->size, m->cpu,
					  m->dma);
	}
	kvfree(t->mem);
	memset(t, 0, sizeof(*t));
}
EXPORT_SYMBOL_GPL(qhca_buf_table_free);
