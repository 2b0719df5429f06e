// SPDX-License-Identifier: GPL-2.0
/*
 * Makes the DMA mapping of a scatterlist fail: the nth one with more than 256
 * entries of the process named comm after nth was set.
 *
 * It is for RDS of Linux 6.12, which keeps a pointer to a list that could not
 * be mapped: rdma.c frees it and its pages at once, and ib_rdma.c does so again
 * when the region is flushed.  So that the guest survives, the list and its
 * pages get one more reference each.  A list of that length is not from a slab,
 * so it has a reference count.
 */
#include <linux/dma-mapping.h>
#include <linux/kprobes.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/scatterlist.h>
#include <linux/sched.h>

#define MORE_THAN	256

static char *comm = "rdstest";
module_param(comm, charp, 0444);
MODULE_PARM_DESC(comm, "whose mappings");
static int nth;
module_param(nth, int, 0644);
MODULE_PARM_DESC(nth, "which one fails; 0: none, also after it has failed");

struct mapping {
	struct scatterlist *sg;
	int nents;
};

static int map_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mapping *m = (void *)ri->data;

	m->sg = (void *)regs_get_kernel_argument(regs, 1);
	m->nents = regs_get_kernel_argument(regs, 2);
	return m->nents <= MORE_THAN || strcmp(current->comm, comm) || !nth;
}
NOKPROBE_SYMBOL(map_entry);

static int map_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct mapping *m = (void *)ri->data;
	struct scatterlist *s;
	int i;

	if (nth <= 0 || --nth)
		return 0;
	for_each_sg(m->sg, s, m->nents, i)
		get_page(sg_page(s));
	get_page(virt_to_page(m->sg));
	regs_set_return_value(regs, 0);
	return 0;
}
NOKPROBE_SYMBOL(map_return);

static struct kretprobe map = {
	.kp.symbol_name = "dma_map_sg_attrs",
	.entry_handler = map_entry,
	.handler = map_return,
	.data_size = sizeof(struct mapping),
};

static int __init fail_map_sg_init(void)
{
	return register_kretprobe(&map);
}
module_init(fail_map_sg_init);

static void __exit fail_map_sg_exit(void)
{
	unregister_kretprobe(&map);
}
module_exit(fail_map_sg_exit);

MODULE_DESCRIPTION("Lets a mapping of a scatterlist for DMA fail");
MODULE_LICENSE("GPL");
