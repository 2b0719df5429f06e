// SPDX-License-Identifier: GPL-2.0
/*
 * Repairs Soft-RoCE of Linux 6.12: a CQ that is armed for solicited completions
 * also reports those with an error.  rxe_resp.c posts receives that are flushed
 * as if they were not solicited, so whoever waits for them, as RDS does before it
 * ends a connection, waits for ever.
 */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

/* int rxe_cq_post(struct rxe_cq *cq, struct rxe_cqe *cqe, int solicited) */
static int post_entry(struct kprobe *p, struct pt_regs *regs)
{
	/* the work completion comes first in it, also that of an application */
	const struct ib_wc *wc = (void *)regs_get_kernel_argument(regs, 1);

	if (wc->status != IB_WC_SUCCESS)
		regs->dx = 1;
	return 0;
}
NOKPROBE_SYMBOL(post_entry);

static struct kprobe post = {
	.symbol_name = "rxe_cq_post",
	.pre_handler = post_entry,
};

static int __init rxe_flush_init(void)
{
	return register_kprobe(&post);
}
module_init(rxe_flush_init);

static void __exit rxe_flush_exit(void)
{
	unregister_kprobe(&post);
}
module_exit(rxe_flush_exit);

MODULE_DESCRIPTION("Soft-RoCE reports completions with an error");
MODULE_LICENSE("GPL");
