// SPDX-License-Identifier: GPL-2.0
/*
 * Makes a DMA mapping fail: the nth one after nth was set, or each, of
 * processes whose names begin with comm.
 */
#include <linux/dma-mapping.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/version.h>

/* all mappings of pages call it, also those of umems with on-demand paging */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 18, 0)
#define MAPS "dma_map_phys"
#else
#define MAPS "dma_map_page_attrs"
#endif

static char *comm = "python3";
module_param(comm, charp, 0444);
MODULE_PARM_DESC(comm, "whose mappings");
static int nth;
module_param(nth, int, 0644);
MODULE_PARM_DESC(nth, "which one fails; 0: none, also after it has failed; -1: each");

static int map_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (strncmp(current->comm, comm, strlen(comm)) || !nth)
		return 0;
	if (nth > 0 && --nth)
		return 0;
	regs_set_return_value(regs, DMA_MAPPING_ERROR);
	return 0;
}

static struct kretprobe map = {
	.kp.symbol_name = MAPS,
	.handler = map_return,
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
