// SPDX-License-Identifier: GPL-2.0
/*
 * Planner and encoder of buffer tables: pure functions, which also compile in
 * user space.  The formats are those of "buffer tables" in qhca-hw.h.
 */
#ifdef __KERNEL__
#include <linux/bitops.h>
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/string.h>
#endif

#include "qhca_buf_table.h"

static const char * const form_names[] = {
	[QHCA_BUF_DIRECT] = "direct",
	[QHCA_BUF_LIST] = "list",
	[QHCA_BUF_FLAT] = "flat",
	[QHCA_BUF_TREE] = "tree",
};

/* Name of a QHCA_BUF_* form or of QHCA_LAYOUT_AUTO; never NULL. */
const char *qhca_form_name(u8 form)
{
	if (form == QHCA_LAYOUT_AUTO)
		return "auto";
	return form < ARRAY_SIZE(form_names) ? form_names[form] : "?";
}

/* bits needed to number @n things */
static unsigned int plan_index_bits(u64 n)
{
	return n > 1 ? fls64(n - 1) : 0;
}

static u64 plan_shift_up(u64 n, unsigned int shift)
{
	return (n + BIT_ULL(shift) - 1) >> shift;
}

/**
 * qhca_plan_tree - choose hops and table size of a multi-level table
 * @plan: npages is set; form, hops, table_shift and ntables are filled in
 * @want: hops and table_shift, 0 where the caller has no preference; or NULL
 *
 * By default, uses one hop if 4 KiB tables suffice, and otherwise two hops with
 * the smallest tables that suffice.
 *
 * Return: 0, or -EINVAL if the pages do not fit.
 */
int qhca_plan_tree(struct qhca_plan *plan, const struct qhca_layout *want)
{
	unsigned int bits = plan_index_bits(plan->npages);
	unsigned int hops = want ? want->hops : 0;
	unsigned int ts = want ? want->table_shift : 0;
	unsigned int e, i;

	if (!hops && ts) {
		e = ts - 3;
		hops = bits > e ? DIV_ROUND_UP(bits, e) : 1;
	} else if (!hops) {
		if (bits <= QHCA_BUF_TABLE_SHIFT_MIN - 3)
			hops = 1;
		else if (bits <= 2 * (QHCA_BUF_TABLE_SHIFT_MAX - 3))
			hops = 2;
		else
			hops = 3;
	}
	if (!ts) {
		ts = 3 + DIV_ROUND_UP(bits, hops);
		if (ts < QHCA_BUF_TABLE_SHIFT_MIN)
			ts = QHCA_BUF_TABLE_SHIFT_MIN;
	}
	e = ts - 3;
	if (hops > QHCA_BUF_HOPS_MAX || ts > QHCA_BUF_TABLE_SHIFT_MAX ||
	    bits > e * hops)
		return -EINVAL;

	plan->form = QHCA_BUF_TREE;
	plan->hops = hops;
	plan->table_shift = ts;
	for (i = 0; i < QHCA_BUF_HOPS_MAX; i++)
		plan->ntables[i] = i < hops ?
			plan_shift_up(plan->npages, e * (hops - i)) : 0;
	return 0;
}

/* the result of one pass over the blocks */
struct plan_block_facts {
	u64 first_addr;
	u64 segs;	/* runs of adjacent blocks */
};

static int plan_scan_blocks(struct qhca_blocks *b, u64 need,
			    struct plan_block_facts *f)
{
	u64 size = BIT_ULL(b->page_shift);
	u64 addr, end = 0, i;

	f->segs = 0;
	b->begin(b);
	for (i = 0; i < need; i++) {
		if (!b->next(b, &addr) || addr & (size - 1))
			return -EINVAL;
		if (!i)
			f->first_addr = addr;
		if (!i || addr != end)
			f->segs++;
		end = addr + size;
	}
	return 0;
}

/**
 * qhca_plan_make - decide how to describe a buffer
 * @plan: result
 * @blocks: the DMA blocks that hold it
 * @first: byte offset of the buffer in the first block
 * @len: bytes of the buffer, not 0
 * @want: layout demanded; NULL or form AUTO: DIRECT if the blocks are
 *	adjacent, else FLAT up to @flat_max bytes of table, else TREE
 * @flat_max: bytes
 *
 * Return: 0, or -EINVAL if the blocks do not cover the buffer or are not
 * aligned, or the demand cannot be met.
 */
int qhca_plan_make(struct qhca_plan *plan, struct qhca_blocks *blocks,
		   u64 first, u64 len, const struct qhca_layout *want,
		   u64 flat_max)
{
	u8 form = want ? want->form : QHCA_LAYOUT_AUTO;
	struct plan_block_facts facts;
	u64 npages;
	int err;

	memset(plan, 0, sizeof(*plan));
	if (blocks->page_shift < QHCA_BUF_PAGE_SHIFT_MIN ||
	    blocks->page_shift > QHCA_BUF_PAGE_SHIFT_MAX)
		return -EINVAL;
	if (want && want->page_shift && want->page_shift != blocks->page_shift)
		return -EINVAL;
	if (!len || first >> blocks->page_shift || first + len < len)
		return -EINVAL;
	npages = ((first + len - 1) >> blocks->page_shift) + 1;
	err = plan_scan_blocks(blocks, npages, &facts);
	if (err)
		return err;

	plan->first = first;
	plan->len = len;
	plan->npages = npages;
	if (form == QHCA_LAYOUT_AUTO) {
		if (facts.segs == 1)
			form = QHCA_BUF_DIRECT;
		else if (npages <= flat_max / sizeof(__le64))
			form = QHCA_BUF_FLAT;
		else
			form = QHCA_BUF_TREE;
	}
	plan->form = form;
	switch (form) {
	case QHCA_BUF_DIRECT:
		plan->addr = facts.first_addr;
		plan->npages = 1;
		return facts.segs == 1 ? 0 : -EINVAL;
	case QHCA_BUF_LIST:
		plan->npages = facts.segs;
		return facts.segs <= QHCA_BUF_LIST_MAX ? 0 : -EINVAL;
	case QHCA_BUF_FLAT:
		plan->hops = 1;
		plan->page_shift = blocks->page_shift;
		return npages <= U32_MAX ? 0 : -EINVAL;
	case QHCA_BUF_TREE:
		plan->page_shift = blocks->page_shift;
		return qhca_plan_tree(plan, want);
	default:
		return -EINVAL;
	}
}

/* Bytes of memory all tables of the plan take. */
u64 qhca_plan_bytes(const struct qhca_plan *plan)
{
	u64 n = 0;
	int i;

	switch (plan->form) {
	case QHCA_BUF_LIST:
		return plan->npages * sizeof(struct qhca_buf_seg);
	case QHCA_BUF_FLAT:
		return plan->npages * sizeof(__le64);
	case QHCA_BUF_TREE:
		for (i = 0; i < plan->hops; i++)
			n += plan->ntables[i];
		return n << plan->table_shift;
	default:
		return 0;
	}
}

/**
 * qhca_plan_fill_list - write the segments of a LIST
 * @plan: made by qhca_plan_make() for the same @blocks
 * @blocks: the DMA blocks
 * @segs: @plan->npages segments
 *
 * Adjacent blocks become one segment.  The first segment starts at byte 0 of
 * the buffer, as a list has no "first"; the last one ends with its block.
 *
 * Return: 0, or -EINVAL if the blocks are not what they were.
 */
int qhca_plan_fill_list(const struct qhca_plan *plan,
			struct qhca_blocks *blocks, struct qhca_buf_seg *segs)
{
	u64 size = BIT_ULL(blocks->page_shift);
	u64 need = ((plan->first + plan->len - 1) >> blocks->page_shift) + 1;
	u64 addr, start = 0, end = 0, n = 0, i;

	blocks->begin(blocks);
	for (i = 0; i < need; i++) {
		if (!blocks->next(blocks, &addr))
			return -EINVAL;
		if (!i || addr != end) {
			if (n == plan->npages)
				return -EINVAL;
			n++;
			start = i ? addr : addr + plan->first;
			segs[n - 1].addr = cpu_to_le64(start);
		}
		end = addr + size;
		segs[n - 1].len = cpu_to_le64((end - start) |
					      QHCA_BUF_SEG_VALID);
	}
	return n == plan->npages ? 0 : -EINVAL;
}

/**
 * qhca_plan_fill_pages - write the page entries of a FLAT or TREE table
 * @plan: made by qhca_plan_make() for the same @blocks
 * @blocks: the DMA blocks
 * @tables: the last-level tables, zeroed; for FLAT there is one
 *
 * Return: 0, or -EINVAL if the blocks are not what they were.
 */
int qhca_plan_fill_pages(const struct qhca_plan *plan,
			 struct qhca_blocks *blocks, __le64 **tables)
{
	unsigned int e = plan->form == QHCA_BUF_TREE ? plan->table_shift - 3
						     : 32;
	u64 addr, i;

	blocks->begin(blocks);
	for (i = 0; i < plan->npages; i++) {
		if (!blocks->next(blocks, &addr))
			return -EINVAL;
		tables[i >> e][i & (BIT_ULL(e) - 1)] =
			cpu_to_le64(addr | QHCA_BTE_VALID);
	}
	return 0;
}

/**
 * qhca_plan_fill_links - enter tables into the tables above them
 * @plan: a TREE
 * @parents: the tables one level above
 * @addrs: DMA addresses of the tables, in order
 * @n: their number
 */
void qhca_plan_fill_links(const struct qhca_plan *plan, __le64 **parents,
			  const u64 *addrs, u64 n)
{
	unsigned int e = plan->table_shift - 3;
	u64 i;

	for (i = 0; i < n; i++)
		parents[i >> e][i & (BIT_ULL(e) - 1)] =
			cpu_to_le64(addrs[i] | QHCA_BTE_VALID | QHCA_BTE_TABLE);
}

/**
 * qhca_plan_describe - write the descriptor that goes into a context
 * @plan: the plan
 * @root: DMA address of the list or of the (root) table; unused for DIRECT
 * @desc: result
 */
void qhca_plan_describe(const struct qhca_plan *plan, u64 root,
			struct qhca_buf *desc)
{
	bool direct = plan->form == QHCA_BUF_DIRECT;
	bool list = plan->form == QHCA_BUF_LIST;
	bool flat = plan->form == QHCA_BUF_FLAT;

	memset(desc, 0, sizeof(*desc));
	desc->addr = cpu_to_le64(direct ? plan->addr : root);
	desc->len = cpu_to_le64(plan->len);
	desc->first = cpu_to_le32(list ? 0 : plan->first);
	desc->entries = cpu_to_le32(list || flat ? plan->npages : 0);
	desc->form = plan->form;
	desc->hops = plan->hops;
	desc->page_shift = plan->page_shift;
	desc->table_shift = plan->table_shift;
}
