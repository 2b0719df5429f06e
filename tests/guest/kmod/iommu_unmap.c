// SPDX-License-Identifier: GPL-2.0
/*
 * Takes a page away from a device behind an IOMMU: the one at the I/O virtual
 * address that is written to the parameter iova.  0 gives it back, which must
 * happen before the page's user unmaps it.
 */
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/pci.h>

static char *pci;
module_param(pci, charp, 0444);
MODULE_PARM_DESC(pci, "name of the PCI device");

static struct device *dev;
static struct iommu_domain *domain;
static unsigned long long iova;
static phys_addr_t phys;	/* what was there; 0: nothing was taken */

static int give_back(void)
{
	int err;

	if (!phys)
		return 0;
	err = iommu_map(domain, iova, phys, PAGE_SIZE,
			IOMMU_READ | IOMMU_WRITE, GFP_KERNEL);
	if (!err) {
		phys = 0;
		iova = 0;
	}
	return err;
}

/* Parameters are written one at a time. */
static int iova_set(const char *text, const struct kernel_param *kp)
{
	unsigned long long at;
	int err = kstrtoull(text, 0, &at);

	if (err)
		return err;
	if (!domain)
		return -ENODEV;
	err = give_back();
	if (err || !at)
		return err;
	phys = iommu_iova_to_phys(domain, at) & PAGE_MASK;
	if (!phys)
		return -ENOENT;
	iova = at & PAGE_MASK;
	/* a larger page would go as a whole */
	if (iommu_unmap(domain, iova, PAGE_SIZE) != PAGE_SIZE)
		return -EIO;
	return 0;
}

static const struct kernel_param_ops iova_ops = {
	.set = iova_set,
	.get = param_get_ullong,
};
module_param_cb(iova, &iova_ops, &iova, 0644);
MODULE_PARM_DESC(iova, "page to take; 0: give it back");

static int __init iommu_unmap_init(void)
{
	if (!pci)
		return -EINVAL;
	dev = bus_find_device_by_name(&pci_bus_type, NULL, pci);
	if (!dev)
		return -ENODEV;
	domain = iommu_get_domain_for_dev(dev);
	if (domain && domain->type & __IOMMU_DOMAIN_PAGING)
		return 0;
	put_device(dev);
	return -ENODEV;
}
module_init(iommu_unmap_init);

static void __exit iommu_unmap_exit(void)
{
	WARN_ON(give_back());
	put_device(dev);
}
module_exit(iommu_unmap_exit);

MODULE_DESCRIPTION("Takes a page away from a device behind an IOMMU");
MODULE_LICENSE("GPL");
