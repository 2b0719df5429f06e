// SPDX-License-Identifier: GPL-2.0
/*
 * The adapter's BARs: registers; doorbell pages (user access regions), page 0
 * for the kernel and one for each user context; device memory.
 */
#include <linux/io.h>

#include "core.h"

/* Map the registers and the kernel's doorbell page. Returns 0 or an error. */
int qhca_map_bars(struct qhca_core *core)
{
	struct qhca_dev *dev = &core->dev;
	struct pci_dev *pdev = dev->pdev;
	int err;

	if (pci_resource_len(pdev, QHCA_BAR_REGS) < QHCA_BAR_REGS_SIZE ||
	    pci_resource_len(pdev, QHCA_BAR_DB) < BIT(dev->db_shift))
		return dev_err_probe(&pdev->dev, -ENODEV, "BARs too small\n");
	err = pci_request_regions(pdev, QHCA_DRV_NAME);
	if (err)
		return err;
	dev->db_phys = pci_resource_start(pdev, QHCA_BAR_DB);
	dev->dm_phys = pci_resource_start(pdev, QHCA_BAR_DM);
	dev->regs = ioremap(pci_resource_start(pdev, QHCA_BAR_REGS),
			    QHCA_BAR_REGS_SIZE);
	dev->db = ioremap(dev->db_phys, BIT(dev->db_shift));
	if (dev->regs && dev->db)
		return 0;
	if (dev->regs)
		iounmap(dev->regs);
	if (dev->db)
		iounmap(dev->db);
	pci_release_regions(pdev);
	return -ENOMEM;
}

void qhca_unmap_bars(struct qhca_core *core)
{
	iounmap(core->dev.db);
	iounmap(core->dev.regs);
	pci_release_regions(core->dev.pdev);
}

/* ------------------------------------- doorbell pages of applications -- */

int qhca_uar_alloc(struct qhca_dev *dev, u32 *uar, phys_addr_t *phys)
{
	u64 end = pci_resource_len(dev->pdev, QHCA_BAR_DB);
	u32 n;
	int err;

	err = qhca_aq_create(dev, QHCA_CMD_ALLOC_UAR, NULL, 0, &n);
	if (err)
		return err;
	/* page 0 is the kernel's, and an application may only map doorbells */
	if (!n || ((u64)n + 1) << dev->db_shift > end) {
		qhca_uar_free(dev, n);
		return -EPROTO;
	}
	*uar = n;
	*phys = dev->db_phys + ((phys_addr_t)n << dev->db_shift);
	return 0;
}
EXPORT_SYMBOL_GPL(qhca_uar_alloc);

void qhca_uar_free(struct qhca_dev *dev, u32 uar)
{
	int err = qhca_aq_destroy(dev, QHCA_CMD_FREE_UAR, uar);

	if (err && err != -EIO)
		dev_err(&dev->pdev->dev, "UAR %u not freed: %d\n", uar, err);
}
EXPORT_SYMBOL_GPL(qhca_uar_free);
