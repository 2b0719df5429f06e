// SPDX-License-Identifier: GPL-2.0
/*
 * Repairs Soft-RoCE of Linux 6.12: a CQ that is armed for solicited completions
 * also reports those with an error.  Soft-RoCE reports flushed receives as not
 * solicited, so waiting for them, as RDS does before it ends a connection,
 * never ends: rds_ib_conn_path_shutdown() does not return, nor does rmmod.  The
 * parameter mended counts such completions.
 */
#include <linux/atomic.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <rdma/ib_verbs.h>

static atomic_t mended = ATOMIC_INIT(0);

static int mended_get(char *buffer, const struct kernel_param *kp)
{
	return sysfs_emit(buffer, "%d\n", atomic_read(&mended));
}

static const struct kernel_param_ops mended_ops = { .get = mended_get };
module_param_cb(mended, &mended_ops, NULL, 0444);
MODULE_PARM_DESC(mended, "completions with an error that were not solicited");

/* int rxe_cq_post(struct rxe_cq *cq, struct rxe_cqe *cqe, int solicited) */
static int post_entry(struct kprobe *p, struct pt_regs *regs)
{
	/* the work completion comes first in it, also that of an application */
	const struct ib_wc *wc = (void *)regs_get_kernel_argument(regs, 1);

	/* the third argument, solicited, is in rdx */
	if (wc->status != IB_WC_SUCCESS && !(u32)regs->dx) {
		regs->dx = 1;
		atomic_inc(&mended);
	}
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
