// SPDX-License-Identifier: GPL-2.0
/*
 * Shows a buffer table. Only this file lists the fields of the descriptor;
 * debugfs, devlink health and "rdma resource" each print them in their own
 * syntax.
 */
#include <linux/seq_file.h>

#include "debug.h"

/* maximum number of entries shown */
#define SHOW_MAX	65536

/* Fill in QHCA_DEBUG_TABLE_FIELDS fields. */
void qhca_debug_table_fields(const struct qhca_buf_table *t,
			     struct qhca_debug_field *fields)
{
	const struct qhca_plan *plan = &t->plan;
	const struct qhca_debug_field all[QHCA_DEBUG_TABLE_FIELDS] = {
		{ .name = "form", .text = qhca_form_name(plan->form) },
		{ .name = "hops", .value = plan->hops },
		{ .name = "page_shift", .value = plan->page_shift },
		{ .name = "table_shift", .value = plan->table_shift },
		/* of a list: segments */
		{ .name = "pages", .value = plan->npages },
		{ .name = "table_bytes", .value = qhca_plan_bytes(plan) },
		{ .name = "len", .value = plan->len, .hex = true },
		{ .name = "first", .value = plan->first, .hex = true },
		/* address of the table; without one, of the buffer */
		{ .name = "addr", .value = le64_to_cpu(t->desc.addr),
		  .hex = true, .secret = true },
	};

	memcpy(fields, all, sizeof(all));
}
EXPORT_SYMBOL_GPL(qhca_debug_table_fields);

/* "form flat hops 1 ... addr 0x...", without a newline */
void qhca_debug_table_line(struct seq_file *m, const struct qhca_buf_table *t)
{
	struct qhca_debug_field f[QHCA_DEBUG_TABLE_FIELDS];
	unsigned int i;

	qhca_debug_table_fields(t, f);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		if (f[i].text)
			seq_printf(m, "%s %s", f[i].name, f[i].text);
		else
			seq_printf(m, f[i].hex ? " %s %#llx" : " %s %llu",
				   f[i].name, f[i].value);
	}
}
EXPORT_SYMBOL_GPL(qhca_debug_table_line);

/* Entries of one piece of table memory. */
static u64 table_mem_entries(const struct qhca_plan *plan)
{
	if (plan->form != QHCA_BUF_TREE)
		return plan->npages;
	return BIT_ULL(plan->table_shift - 3);
}

/* The level of the tree that table number @i belongs to. */
static int table_mem_level(const struct qhca_plan *plan, u64 i)
{
	int level = 0;

	if (plan->form != QHCA_BUF_TREE)
		return 0;
	while (i >= plan->ntables[level])
		i -= plan->ntables[level++];
	return level;
}

/**
 * qhca_debug_table_entries - print a table as it is in memory
 * @m: output
 * @t: table; the caller keeps it alive
 *
 * Prints its form on one line, then a line for each nonzero entry: level, DMA
 * address of the table, index, entry; for a LIST, address and length.
 */
void qhca_debug_table_entries(struct seq_file *m,
			      const struct qhca_buf_table *t)
{
	const struct qhca_plan *plan = &t->plan;
	bool list = plan->form == QHCA_BUF_LIST;
	u64 i, j, shown = 0;

	qhca_debug_table_line(m, t);
	seq_putc(m, '\n');
	for (i = 0; i < t->nmem; i++) {
		const struct qhca_buf_table_mem *mem = &t->mem[i];
		int level = table_mem_level(plan, i);
		u64 n = table_mem_entries(plan);

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
EXPORT_SYMBOL_GPL(qhca_debug_table_entries);
