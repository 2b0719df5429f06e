// SPDX-License-Identifier: GPL-2.0
/* User access regions: one doorbell page for each user context. */
#include "core.h"

int qhca_uar_alloc(struct qhca_dev *dev, u32 *uar, phys_addr_t *phys)
{
	u64 end = pci_resource_len(dev->pdev, QHCA_BAR_DB);
	u32 n;
	int err;

	err = qhca_aq_create(dev, QHCA_CMD_ALLOC_UAR, NULL, 0, &n);
	if (err)
		return err;
	/* page 0 is ours, and an application must get nothing but a doorbell */
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
