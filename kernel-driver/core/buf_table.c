// SPDX-License-Identifier: GPL-2.0
/*
 * Memory for buffer tables and kernel queues.
 *
 * All of it is coherent DMA memory: the device may read a table entry at any
 * time while its object lives, and nothing has to be synchronised, with an
 * IOMMU and with bounce buffers (swiotlb=force) alike.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/seq_file.h>
#include <linux/slab.h>

#include "core.h"

/* greatest FLAT table that is made without being asked for */
#define FLAT_MAX	SZ_2M
/* greatest kernel queue in one block, without being asked for */
#define KBUF_DIRECT_MAX	SZ_128K

/* here, as buf_table_plan.c is also compiled in user space */
EXPORT_SYMBOL_GPL(qhca_form_name);

/* One piece of table memory. */
struct qhca_buf_table_mem {
	__le64 *cpu;
	dma_addr_t dma;
	size_t size;
};

static int buf_table_mem_alloc(struct qhca_core *core,
			       struct qhca_buf_table_mem *m, size_t size,
			       size_t align)
{
	m->size = size;
	m->cpu = dma_alloc_coherent(qhca_dma_dev(core), size, &m->dma,
				    GFP_KERNEL | __GFP_NOWARN);
	if (!m->cpu)
		return -ENOMEM;
	/* the API aligns to the size, rounded up to a power of two of pages */
	if (WARN_ON_ONCE(!IS_ALIGNED(m->dma, align)))
		return -EINVAL;
	return 0;
}

/* Without @blocks all pages are missing, for both of these. */
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
	/* memory is in pieces: try with smaller ones */
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

/* most entries shown */
#define SHOW_MAX	65536

/* Entries of one piece of table memory. */
static u64 buf_table_mem_entries(const struct qhca_plan *plan)
{
	if (plan->form != QHCA_BUF_TREE)
		return plan->npages;
	return BIT_ULL(plan->table_shift - 3);
}

/* The level of the tree that table number @i belongs to. */
static int buf_table_mem_level(const struct qhca_plan *plan, u64 i)
{
	int level = 0;

	if (plan->form != QHCA_BUF_TREE)
		return 0;
	while (i >= plan->ntables[level])
		i -= plan->ntables[level++];
	return level;
}

void qhca_buf_table_show(struct seq_file *m, const struct qhca_buf_table *t)
{
	const struct qhca_plan *plan = &t->plan;
	bool list = plan->form == QHCA_BUF_LIST;
	u64 i, j, shown = 0;

	seq_printf(m, "form %s hops %u page_shift %u table_shift %u addr %#llx len %llu first %#x leaves %llu\n",
		   qhca_form_name(plan->form), plan->hops, plan->page_shift,
		   plan->table_shift, le64_to_cpu(t->desc.addr), plan->len,
		   plan->first, plan->npages);
	for (i = 0; i < t->nmem; i++) {
		const struct qhca_buf_table_mem *mem = &t->mem[i];
		int level = buf_table_mem_level(plan, i);
		u64 n = buf_table_mem_entries(plan);

		for (j = 0; j < n; j++) {
			u64 v = le64_to_cpu(READ_ONCE(mem->cpu[list ? 2 * j
								    : j]));

			if (!v)
				continue;
			if (shown++ == SHOW_MAX) {
				seq_puts(m, "...\n");
				return;
			}
			seq_printf(m, "%d %#llx %llu %#llx", level,
				   (u64)mem->dma, j, v);
			if (list)
				seq_printf(m, " %#llx",
					   le64_to_cpu(mem->cpu[2 * j + 1]));
			seq_putc(m, '\n');
		}
	}
}
EXPORT_SYMBOL_GPL(qhca_buf_table_show);

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

/* ----------------------------------------------------- kernel queues -- */

struct queue_buf_blocks {
	struct qhca_blocks blocks;
	const struct qhca_queue_buf *buf;
	u64 pos;
	u64 count;		/* blocks in the buffer */
};

static void queue_buf_begin(struct qhca_blocks *b)
{
	container_of(b, struct queue_buf_blocks, blocks)->pos = 0;
}

/* A chunk may be larger than a block, when it is the only one. */
static bool queue_buf_next(struct qhca_blocks *b, u64 *addr)
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

static void queue_buf_free_chunks(struct qhca_dev *dev,
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

static int queue_buf_alloc_chunks(struct qhca_dev *dev,
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
		queue_buf_free_chunks(dev, buf);
		return -ENOMEM;
	}
	return 0;
}

static int queue_buf_make(struct qhca_dev *dev, struct qhca_queue_buf *buf,
			  size_t len, u8 chunk_shift, u8 page_shift,
			  const struct qhca_layout *want)
{
	struct queue_buf_blocks qb = {
		.blocks = {
			.begin = queue_buf_begin,
			.next = queue_buf_next,
			.page_shift = page_shift,
		},
		.buf = buf,
		.count = DIV_ROUND_UP_ULL(len, BIT_ULL(page_shift)),
	};
	int err;

	err = queue_buf_alloc_chunks(dev, buf, len, chunk_shift);
	if (err)
		return err;
	err = qhca_buf_table_build(dev, &buf->table, &qb.blocks, 0, len, want);
	if (err)
		queue_buf_free_chunks(dev, buf);
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
	qhca_layout_get(dev, QHCA_SCOPE_KERNEL, &want);
	page_shift = want.page_shift ? want.page_shift
				     : QHCA_BUF_PAGE_SHIFT_MIN;

	if (want.form == QHCA_BUF_DIRECT)
		return queue_buf_make(dev, buf, len, max(whole, page_shift),
				      page_shift, &want);
	if (want.form == QHCA_LAYOUT_AUTO && !want.page_shift &&
	    len <= KBUF_DIRECT_MAX) {
		err = queue_buf_make(dev, buf, len, whole, page_shift, NULL);
		if (err != -ENOMEM)
			return err;
	}
	return queue_buf_make(dev, buf, len, page_shift, page_shift, &want);
}
EXPORT_SYMBOL_GPL(qhca_queue_buf_alloc);

void qhca_queue_buf_free(struct qhca_dev *dev, struct qhca_queue_buf *buf)
{
	qhca_buf_table_free(dev, &buf->table);
	queue_buf_free_chunks(dev, buf);
}
EXPORT_SYMBOL_GPL(qhca_queue_buf_free);
