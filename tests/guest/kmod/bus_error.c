// SPDX-License-Identifier: GPL-2.0
/*
 * Reports a bus error to a PCI function's driver as the kernel's error recovery
 * does: with the device's lock held, error_detected() first. Loading fails with
 * EAGAIN when done, so that the module can be loaded again.
 */
#include <linux/device.h>
#include <linux/module.h>
#include <linux/pci.h>

static char *function;
module_param(function, charp, 0);
MODULE_PARM_DESC(function, "0000:01:00.0");
static bool recovers;
module_param(recovers, bool, 0);
MODULE_PARM_DESC(recovers, "the bus comes back; else the function is given up");

static int tell(struct pci_dev *pdev)
{
	const struct pci_error_handlers *h = pdev->driver->err_handler;

	if (h->error_detected(pdev, pci_channel_io_frozen) !=
	    PCI_ERS_RESULT_NEED_RESET)
		return -EPROTO;
	if (!recovers)
		return -EAGAIN;
	if (h->slot_reset(pdev) != PCI_ERS_RESULT_RECOVERED)
		return -EIO;
	h->resume(pdev);
	return -EAGAIN;
}

static int __init bus_error_init(void)
{
	struct device *d = bus_find_device_by_name(&pci_bus_type, NULL, function);
	int err = -ENODEV;

	if (!d)
		return err;
	device_lock(d);
	if (to_pci_dev(d)->driver)
		err = tell(to_pci_dev(d));
	device_unlock(d);
	put_device(d);
	return err;
}
module_init(bus_error_init);

MODULE_DESCRIPTION("Tells a PCI driver of a bus error");
MODULE_LICENSE("GPL");
