// SPDX-License-Identifier: GPL-2.0
/* Loses an object when it is loaded, which kmemleak must report. */
#include <linux/module.h>
#include <linux/slab.h>

static void *volatile lost;

static int __init leak_init(void)
{
	lost = kzalloc(1234, GFP_KERNEL);
	if (!lost)
		return -ENOMEM;
	lost = NULL;
	return 0;
}
module_init(leak_init);

static void __exit leak_exit(void)
{
}
module_exit(leak_exit);

MODULE_DESCRIPTION("Loses an object");
MODULE_LICENSE("GPL");
