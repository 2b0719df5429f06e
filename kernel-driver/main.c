// SPDX-License-Identifier: GPL-2.0
/* The module qhca.ko: the core, the net_device on top of it, and debugging. */
#include <linux/module.h>

#include "qhca_core.h"
#include "qhca_debug.h"
#include "qhca_net.h"

static int __init qhca_init(void)
{
	int err;

	qhca_debug_init();
	err = qhca_core_register(&qhca_net_client);
	if (err)
		qhca_debug_exit();
	return err;
}
module_init(qhca_init);

static void __exit qhca_exit(void)
{
	qhca_core_unregister();
	qhca_debug_exit();
}
module_exit(qhca_exit);

MODULE_DESCRIPTION("qhca RDMA adapter: PCI, events and Ethernet");
MODULE_LICENSE("GPL");
