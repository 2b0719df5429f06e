// SPDX-License-Identifier: GPL-2.0
/*
 * Makes DMA mappings of memory for both directions, as for on-demand paging,
 * fail: the nth one after nth was set, or each, of processes whose names begin
 * with comm.
 */
#include <linux/dma-mapping.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/version.h>

/* all mappings of pages call it, also those of umems with on-demand paging */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define MAPS "dma_map_phys"
#define ARG_SIZE 2
#else
#define MAPS "dma_map_page_attrs"
#define ARG_SIZE 3
#endif

static char *comm = "python3";
module_param(comm, charp, 0444);
MODULE_PARM_DESC(comm, "whose mappings");
static int nth;
module_param(nth, int, 0644);
MODULE_PARM_DESC(nth, "which one fails; 0: none, also after it has failed; -1: each");

struct mapping {
	struct device *dev;
	size_t size;
	enum dma_data_direction dir;
};

/* 0: look at what it returns */
static int map_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mapping *m = (void *)ri->data;

	m->dev = (void *)regs_get_kernel_argument(regs, 0);
	m->size = regs_get_kernel_argument(regs, ARG_SIZE);
	m->dir = regs_get_kernel_argument(regs, ARG_SIZE + 1);
	return m->dir != DMA_BIDIRECTIONAL || !nth ||
	       strncmp(current->comm, comm, strlen(comm));
}
NOKPROBE_SYMBOL(map_entry);

static int map_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mapping *m = (void *)ri->data;
	dma_addr_t addr = regs_return_value(regs);

	if (nth > 0 && --nth)
		return 0;
	/* the caller will not undo it */
	if (!dma_mapping_error(m->dev, addr))
		dma_unmap_page_attrs(m->dev, addr, m->size, m->dir, 0);
	regs_set_return_value(regs, DMA_MAPPING_ERROR);
	return 0;
}
NOKPROBE_SYMBOL(map_return);

static struct kretprobe map = {
	.kp.symbol_name = MAPS,
	.entry_handler = map_entry,
	.handler = map_return,
	.data_size = sizeof(struct mapping),
};

static int __init fail_map_init(void)
{
	return register_kretprobe(&map);
}
module_init(fail_map_init);

static void __exit fail_map_exit(void)
{
	unregister_kretprobe(&map);
}
module_exit(fail_map_exit);

MODULE_DESCRIPTION("Lets a mapping for DMA fail");
MODULE_LICENSE("GPL");
