// SPDX-License-Identifier: GPL-2.0
/*
 * Widens a narrow race: while devlink takes the events of a lost interrupt, the
 * callback of the CQ is held until the application's destroy has reached
 * qhca_cq_unregister(), and a second longer. The counters record what happened.
 */
#include <linux/delay.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

static int callbacks;
module_param(callbacks, int, 0444);
MODULE_PARM_DESC(callbacks, "calls that were held");
static int entered;
module_param(entered, int, 0444);
MODULE_PARM_DESC(entered, "qhca_cq_unregister() was called meanwhile");
static int early;
module_param(early, int, 0444);
MODULE_PARM_DESC(early, "and has returned before the callback did");

static bool held;

static int comp_entry(struct kprobe *p, struct pt_regs *regs)
{
	int ms, after = 1000;

	if (strcmp(current->comm, "devlink"))
		return 0;
	WRITE_ONCE(callbacks, callbacks + 1);
	WRITE_ONCE(held, true);
	for (ms = 0; ms < 20000 && after && !READ_ONCE(early); ms++) {
		mdelay(1);
		after -= READ_ONCE(entered);
	}
	WRITE_ONCE(held, false);
	return 0;
}

static int unregister_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (!READ_ONCE(held))
		return 1;
	WRITE_ONCE(entered, 1);
	return 0;
}

static int unregister_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (READ_ONCE(held))
		WRITE_ONCE(early, 1);
	return 0;
}

static struct kprobe comp = {
	.symbol_name = "qhca_ib:cq_comp",
	.pre_handler = comp_entry,
};

static struct kretprobe unregister = {
	.kp.symbol_name = "qhca_cq_unregister",
	.entry_handler = unregister_entry,
	.handler = unregister_return,
};

static int __init rescue_race_init(void)
{
	int err = register_kprobe(&comp);

	if (err)
		return err;
	err = register_kretprobe(&unregister);
	if (err)
		unregister_kprobe(&comp);
	return err;
}
module_init(rescue_race_init);

static void __exit rescue_race_exit(void)
{
	unregister_kretprobe(&unregister);
	unregister_kprobe(&comp);
}
module_exit(rescue_race_exit);

MODULE_DESCRIPTION("Holds the callback of a CQ whose event is rescued");
MODULE_LICENSE("GPL");
