// SPDX-License-Identifier: GPL-2.0
/*
 * The PCI function: its life from probe to remove, and what may happen in
 * between (function-level reset, bus errors, surprise removal, death).
 *
 * Two levels: probe and remove own what lives as long as the function is
 * bound (BARs, net_device, debugfs); start and stop own what a reset takes
 * away (admin queue, interrupts, EQs, the RDMA child). What stop undoes is
 * exactly the reverse of start.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/module.h>
#include <linux/netdevice.h>

#include "core.h"

#define READY_TIMEOUT_MS	5000

static char *layout = "auto";
module_param(layout, charp, 0444);
MODULE_PARM_DESC(layout,
		 "form of buffer tables: auto|direct|list|flat|tree [hops=N] [page_shift=N] [table_shift=N] [scope=user|kernel|all]");

bool qhca_dev_dead(struct qhca_dev *dev)
{
	return test_bit(QHCA_F_DEAD, &qhca_to_core(dev)->flags);
}
EXPORT_SYMBOL_GPL(qhca_dev_dead);

/* Stop all DMA of the device; it has forgotten everything on return. */
static void device_reset(struct qhca_core *core)
{
	writel(QHCA_CTRL_RESET, core->dev.regs + QHCA_REG_CTRL);
	/* the answer comes when the reset is done */
	readl(core->dev.regs + QHCA_REG_STATUS);
}

/*
 * Declare the device dead: it is reset, commands that wait end with -EIO and
 * everybody hears QHCA_EV_DEVICE_FATAL later. Any context; later calls do
 * nothing. devlink health brings it back then, or a function-level reset.
 */
void qhca_kill(struct qhca_core *core, const char *why)
{
	if (test_and_set_bit(QHCA_F_KILLED, &core->flags))
		return;
	dev_err(qhca_dma_dev(core), "device is dead: %s (status %#x)\n", why,
		readl(core->dev.regs + QHCA_REG_STATUS));
	/* for a dump: after the reset there is nothing to be seen */
	qhca_regs_read(core, core->health.regs);
	core->health.why = why;
	core->health.deaths++;
	/* dead means that it does no DMA any more: so first the reset */
	device_reset(core);
	set_bit(QHCA_F_DEAD, &core->flags);
	qhca_aq_abort(core);
	schedule_work(&core->fatal_work);
}

/*
 * Look whether the device is there and well; kills it if not. Any context.
 * The device has been enabled. Where nothing answers, a read gives all ones on
 * real machines, but zeroes on others: only the magic number proves presence.
 */
bool qhca_check_alive(struct qhca_core *core)
{
	u32 status;

	if (qhca_dev_dead(&core->dev))
		return false;
	status = readl(core->dev.regs + QHCA_REG_STATUS);
	if (readl(core->dev.regs + QHCA_REG_ID) != QHCA_ID_MAGIC)
		qhca_kill(core, "it does not answer");
	else if (status & QHCA_STATUS_FATAL)
		qhca_kill(core, "it reports a fatal error");
	else if (!(status & QHCA_STATUS_READY))
		qhca_kill(core, "somebody has reset it");
	else
		return true;
	return false;
}

static void device_fatal_work(struct work_struct *work)
{
	struct qhca_core *core = container_of(work, struct qhca_core,
					      fatal_work);
	struct qhca_eqe eqe = { .type = QHCA_EV_DEVICE_FATAL };

	qhca_netdev_dead(core);
	blocking_notifier_call_chain(&core->events, eqe.type, &eqe);
	/* only now: recovering takes away who has to hear of it */
	qhca_health_report(core, QHCA_REPORT_DEVICE);
}

/* ------------------------------------------------------ start and stop -- */

static int device_enable(struct qhca_core *core)
{
	void __iomem *regs = core->dev.regs;
	int waited;
	u32 status;

	writel(QHCA_CTRL_ENABLE, regs + QHCA_REG_CTRL);
	for (waited = 0; waited < READY_TIMEOUT_MS; waited++) {
		status = readl(regs + QHCA_REG_STATUS);
		if (status == ~0U || status & QHCA_STATUS_FATAL)
			break;
		if (status & QHCA_STATUS_READY)
			return 0;
		usleep_range(1000, 1500);
	}
	dev_err(qhca_dma_dev(core), "does not get ready, status %#x\n", status);
	return -EIO;
}

static int device_query_caps(struct qhca_core *core)
{
	struct qhca_caps *c = &core->dev.caps;
	struct qhca_dev_caps d;
	int err;

	err = qhca_aq_query(&core->dev, QHCA_CMD_QUERY_DEVICE, 0, &d,
			    sizeof(d));
	if (err)
		return err;
	c->features = le64_to_cpu(d.features);
	memcpy(c->node_guid, d.node_guid, sizeof(c->node_guid));
	c->max_mr_size = le64_to_cpu(d.max_mr_size);
	c->page_size_cap = le64_to_cpu(d.page_size_cap);
	c->max_qp = le32_to_cpu(d.max_qp);
	c->max_cq = le32_to_cpu(d.max_cq);
	c->max_srq = le32_to_cpu(d.max_srq);
	c->max_mr = le32_to_cpu(d.max_mr);
	c->max_pd = le32_to_cpu(d.max_pd);
	c->max_uar = le32_to_cpu(d.max_uar);
	c->max_eq = le32_to_cpu(d.max_eq);
	c->max_qp_wr = le32_to_cpu(d.max_qp_wr);
	c->max_cqe = le32_to_cpu(d.max_cqe);
	c->max_srq_wr = le32_to_cpu(d.max_srq_wr);
	c->max_sge = le32_to_cpu(d.max_sge);
	c->max_inline = le32_to_cpu(d.max_inline);
	c->max_gid = le32_to_cpu(d.max_gid);
	c->max_eth_queues = le32_to_cpu(d.max_eth_queues);
	c->max_eq_depth = le32_to_cpu(d.max_eq_depth);
	c->max_rd_atomic = le32_to_cpu(d.max_rd_atomic);
	c->max_msg_size = le32_to_cpu(d.max_msg_size);
	c->fw_version = le32_to_cpu(d.fw_version);
	/* its BAR may have found no room */
	c->dm_size = min_t(u64, le64_to_cpu(d.dm_size),
			   pci_resource_len(core->dev.pdev, QHCA_BAR_DM));
	if (!(c->features & QHCA_FEAT_DM) || c->dm_size < PAGE_SIZE) {
		c->features &= ~QHCA_FEAT_DM;
		c->dm_size = 0;
	}
	return 0;
}

/* Bring the device from reset to where the net_device can use it. */
static int device_start(struct qhca_core *core)
{
	struct pci_dev *pdev = core->dev.pdev;
	int err;

	mutex_lock(&core->start_lock);
	pci_set_master(pdev);
	device_reset(core);
	writel(core->dev.db_shift, core->dev.regs + QHCA_REG_DB_SHIFT);
	err = qhca_aq_start(core);
	if (err)
		goto err_master;
	err = qhca_irq_init(core);
	if (err)
		goto err_aq;
	err = device_enable(core);
	if (err)
		goto err_irq;
	/* only now: until it is ready, whoever looks would declare it dead */
	clear_bit(QHCA_F_DEAD, &core->flags);
	clear_bit(QHCA_F_KILLED, &core->flags);
	err = device_query_caps(core);
	if (err)
		goto err_irq;
	err = qhca_eqs_init(core);
	if (err)
		goto err_irq;
	set_bit(QHCA_F_STARTED, &core->flags);
	qhca_health_watch(core, true);
	mutex_unlock(&core->start_lock);
	return 0;

err_irq:
	set_bit(QHCA_F_KILLED, &core->flags);
	device_reset(core);
	set_bit(QHCA_F_DEAD, &core->flags);
	qhca_irq_free(core);
err_aq:
	qhca_aq_stop(core);
	cancel_work_sync(&core->fatal_work);
err_master:
	pci_clear_master(pdev);
	mutex_unlock(&core->start_lock);
	return err;
}

static void device_stop(struct qhca_core *core)
{
	if (!test_and_clear_bit(QHCA_F_STARTED, &core->flags))
		return;
	qhca_health_watch(core, false);
	mutex_lock(&core->start_lock);
	qhca_eqs_free(core);
	set_bit(QHCA_F_KILLED, &core->flags);
	device_reset(core);
	set_bit(QHCA_F_DEAD, &core->flags);
	qhca_irq_free(core);
	qhca_aq_stop(core);
	cancel_work_sync(&core->fatal_work);
	pci_clear_master(core->dev.pdev);
	mutex_unlock(&core->start_lock);
}

/* -------------------------------------------------- the RDMA child ------ */

/* A PCI address has more bits than an auxiliary device's number. */
static DEFINE_IDA(adev_ids);

static void adev_release(struct device *d)
{
	struct qhca_adev *a = container_of(d, struct qhca_adev, adev.dev);

	ida_free(&adev_ids, a->adev.id);
	kfree(a);
}

static int adev_add(struct qhca_core *core)
{
	struct qhca_adev *a;
	int id, err;

	a = kzalloc(sizeof(*a), GFP_KERNEL);
	if (!a)
		return -ENOMEM;
	id = ida_alloc(&adev_ids, GFP_KERNEL);
	if (id < 0) {
		kfree(a);
		return id;
	}
	a->dev = &core->dev;
	a->adev.name = QHCA_ADEV_NAME_IB;
	a->adev.id = id;
	a->adev.dev.parent = qhca_dma_dev(core);
	a->adev.dev.release = adev_release;
	err = auxiliary_device_init(&a->adev);
	if (err) {
		ida_free(&adev_ids, id);
		kfree(a);
		return err;
	}
	err = auxiliary_device_add(&a->adev);
	if (err) {
		auxiliary_device_uninit(&a->adev);
		return err;
	}
	core->adev = a;
	return 0;
}

static void adev_del(struct qhca_core *core)
{
	struct qhca_adev *a = core->adev;

	if (!a)
		return;
	core->adev = NULL;
	auxiliary_device_delete(&a->adev);
	auxiliary_device_uninit(&a->adev);
}

/* Quiet: no child, no traffic, no interrupt, no DMA. The netdev stays. */
static void device_suspend(struct qhca_core *core)
{
	/* commands to a device that is not there need not be tried */
	if (!pci_device_is_present(core->dev.pdev))
		qhca_kill(core, "it has left the bus");
	adev_del(core);
	qhca_netdev_pause(core);
	device_stop(core);
}

static int device_resume(struct qhca_core *core)
{
	int err;

	err = device_start(core);
	if (err)
		return err;
	err = qhca_netdev_resume(core);
	if (err)
		goto err_hw;
	err = adev_add(core);
	if (err)
		goto err_netdev;
	return 0;

err_netdev:
	qhca_netdev_pause(core);
err_hw:
	device_stop(core);
	return err;
}

/* Before a reset or sleep: stop all, until device_wake() */
static void device_quiesce(struct qhca_core *core)
{
	mutex_lock(&core->life_lock);
	core->off = true;
	device_suspend(core);
	mutex_unlock(&core->life_lock);
}

static int device_wake(struct qhca_core *core)
{
	int err;

	mutex_lock(&core->life_lock);
	core->off = false;
	err = device_resume(core);
	mutex_unlock(&core->life_lock);
	if (!err)
		qhca_health_well(core);
	return err;
}

/**
 * qhca_recover - reset a device that is dead, and start all anew
 * @core: adapter; if it works nothing happens
 *
 * For RDMA users it goes and comes. Not in an interrupt, not under rtnl.
 *
 * Return: 0; -EBUSY (somebody else has stopped it and will start it), -ENODEV
 * (its registers do not answer), or why it does not start.
 */
int qhca_recover(struct qhca_core *core)
{
	int err;

	mutex_lock(&core->life_lock);
	if (core->off) {
		err = -EBUSY;
	} else if (test_bit(QHCA_F_STARTED, &core->flags) &&
		   !qhca_dev_dead(&core->dev)) {
		err = 0;
	} else if (readl(core->dev.regs + QHCA_REG_ID) != QHCA_ID_MAGIC) {
		err = -ENODEV;
	} else {
		device_suspend(core);
		err = device_resume(core);
	}
	mutex_unlock(&core->life_lock);
	if (err) {
		dev_err(qhca_dma_dev(core), "not recovered: %d\n", err);
		return err;
	}
	dev_info(qhca_dma_dev(core), "recovered\n");
	qhca_health_well(core);
	return 0;
}

/* --------------------------------------------------- probe and remove -- */

static int qhca_pci_enable(struct qhca_core *core)
{
	int err = pci_enable_device(core->dev.pdev);

	core->enabled = !err;
	return err;
}

/*
 * Once for each qhca_pci_enable(): after a bus error the function may be
 * removed without having been enabled again.
 */
static void qhca_pci_disable(struct qhca_core *core)
{
	if (!core->enabled)
		return;
	core->enabled = false;
	pci_disable_device(core->dev.pdev);
}

static int qhca_pci_check_identity(struct qhca_core *core)
{
	struct device *d = qhca_dma_dev(core);
	u32 id = readl(core->dev.regs + QHCA_REG_ID);
	u32 version = readl(core->dev.regs + QHCA_REG_VERSION);

	if (id != QHCA_ID_MAGIC)
		return dev_err_probe(d, -ENODEV, "not a qhca: id %#x\n", id);
	if (version >> 16 != QHCA_VERSION_MAJOR)
		return dev_err_probe(d, -ENODEV,
				     "interface version %u.%u, driver knows %u\n",
				     version >> 16, version & 0xffff,
				     QHCA_VERSION_MAJOR);
	return 0;
}

static int qhca_map_bars(struct qhca_core *core)
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

static void qhca_unmap_bars(struct qhca_core *core)
{
	iounmap(core->dev.db);
	iounmap(core->dev.regs);
	pci_release_regions(core->dev.pdev);
}

static struct qhca_core *qhca_core_alloc(struct pci_dev *pdev)
{
	struct qhca_core *core = kzalloc(sizeof(*core), GFP_KERNEL);

	if (!core)
		return NULL;
	core->dev.pdev = pdev;
	core->dev.core = core;
	core->dev.db_shift = clamp(PAGE_SHIFT, 12, 16);
	core->flags = BIT(QHCA_F_DEAD) | BIT(QHCA_F_KILLED);
	xa_init_flags(&core->cqs, XA_FLAGS_LOCK_IRQ);
	BLOCKING_INIT_NOTIFIER_HEAD(&core->events);
	INIT_WORK(&core->fatal_work, device_fatal_work);
	mutex_init(&core->start_lock);
	mutex_init(&core->life_lock);
	mutex_init(&core->layout_lock);
	qhca_aq_init(core);
	qhca_health_setup(core);
	return core;
}

static void qhca_core_free(struct qhca_core *core)
{
	WARN_ON_ONCE(!xa_empty(&core->cqs));
	xa_destroy(&core->cqs);
	mutex_destroy(&core->layout_lock);
	mutex_destroy(&core->life_lock);
	mutex_destroy(&core->start_lock);
	kfree(core);
}

static int qhca_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct qhca_core *core;
	int err;

	/* a page of an application must not hold another one's doorbells */
	BUILD_BUG_ON(PAGE_SHIFT > 16);

	core = qhca_core_alloc(pdev);
	if (!core)
		return -ENOMEM;
	err = qhca_layout_parse(layout, &core->layout);
	if (err) {
		dev_err_probe(&pdev->dev, err, "bad parameter layout=\"%s\"\n",
			      layout);
		goto err_free;
	}
	err = qhca_pci_enable(core);
	if (err)
		goto err_free;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_disable;
	/* the largest page of a buffer table; segments of it keep its alignment */
	dma_set_max_seg_size(&pdev->dev, SZ_2G);
	/* page lists (REG_MR) of bounced memory need the offset in the page */
	dma_set_min_align_mask(&pdev->dev, PAGE_SIZE - 1);
	err = qhca_map_bars(core);
	if (err)
		goto err_disable;
	err = qhca_pci_check_identity(core);
	if (err)
		goto err_bars;
	/* what a bus reset takes away; see qhca_slot_reset() */
	pci_save_state(pdev);
	pci_set_drvdata(pdev, core);
	err = device_start(core);
	if (err)
		goto err_bars;
	err = qhca_netdev_create(core);
	if (err)
		goto err_hw;
	qhca_debugfs_add(core);
	err = adev_add(core);
	if (err)
		goto err_netdev;
	/* last: from now on it may be recovered, which takes all away */
	err = qhca_health_init(core);
	if (err)
		goto err_adev;
	dev_info(&pdev->dev, "%s: %u completion vectors, %u QPs\n",
		 netdev_name(core->dev.netdev), core->dev.num_comp_vectors,
		 core->dev.caps.max_qp);
	return 0;

err_adev:
	adev_del(core);
err_netdev:
	qhca_debugfs_remove(core);
	qhca_netdev_destroy(core);
err_hw:
	device_stop(core);
err_bars:
	qhca_unmap_bars(core);
err_disable:
	qhca_pci_disable(core);
err_free:
	qhca_core_free(core);
	return err;
}

static void qhca_remove(struct pci_dev *pdev)
{
	struct qhca_core *core = pci_get_drvdata(pdev);

	if (!pci_device_is_present(pdev))
		qhca_kill(core, "it has left the bus");
	qhca_health_exit(core);
	adev_del(core);
	qhca_debugfs_remove(core);
	qhca_netdev_destroy(core);
	device_stop(core);
	qhca_unmap_bars(core);
	qhca_pci_disable(core);
	qhca_core_free(core);
}

/* The next kernel must find a device that does no DMA. */
static void qhca_shutdown(struct pci_dev *pdev)
{
	device_quiesce(pci_get_drvdata(pdev));
}

/* -------------------------------------------------------- system sleep -- */

/* The device forgets everything: RDMA users see it go and come. */
static int qhca_pm_suspend(struct device *d)
{
	device_quiesce(dev_get_drvdata(d));
	return 0;
}

static int qhca_pm_resume(struct device *d)
{
	return device_wake(dev_get_drvdata(d));
}

static DEFINE_SIMPLE_DEV_PM_OPS(qhca_pm_ops, qhca_pm_suspend, qhca_pm_resume);

/* ------------------------------------------------ resets and bus errors -- */

static void qhca_reset_prepare(struct pci_dev *pdev)
{
	device_quiesce(pci_get_drvdata(pdev));
}

static void qhca_reset_done(struct pci_dev *pdev)
{
	int err = device_wake(pci_get_drvdata(pdev));

	if (err)
		dev_err(&pdev->dev, "not usable after the reset: %d\n", err);
}

static pci_ers_result_t qhca_error_detected(struct pci_dev *pdev,
					    pci_channel_state_t state)
{
	struct qhca_core *core = pci_get_drvdata(pdev);

	if (state == pci_channel_io_normal)
		return PCI_ERS_RESULT_CAN_RECOVER;
	qhca_kill(core, "bus error");
	if (state == pci_channel_io_perm_failure)
		return PCI_ERS_RESULT_DISCONNECT;
	device_quiesce(core);
	qhca_pci_disable(core);
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t qhca_slot_reset(struct pci_dev *pdev)
{
	if (qhca_pci_enable(pci_get_drvdata(pdev)))
		return PCI_ERS_RESULT_DISCONNECT;
	pci_restore_state(pdev);
	pci_save_state(pdev);
	return PCI_ERS_RESULT_RECOVERED;
}

static void qhca_resume(struct pci_dev *pdev)
{
	struct qhca_core *core = pci_get_drvdata(pdev);

	if (!test_bit(QHCA_F_STARTED, &core->flags))
		qhca_reset_done(pdev);
}

static const struct pci_error_handlers qhca_err_handlers = {
	.error_detected = qhca_error_detected,
	.slot_reset = qhca_slot_reset,
	.resume = qhca_resume,
	.reset_prepare = qhca_reset_prepare,
	.reset_done = qhca_reset_done,
};

static const struct pci_device_id qhca_ids[] = {
	{ PCI_DEVICE(QHCA_PCI_VENDOR_ID, QHCA_PCI_DEVICE_ID) },
	{}
};
MODULE_DEVICE_TABLE(pci, qhca_ids);

static struct pci_driver qhca_pci_driver = {
	.name = QHCA_DRV_NAME,
	.id_table = qhca_ids,
	.probe = qhca_probe,
	.remove = qhca_remove,
	.shutdown = qhca_shutdown,
	.err_handler = &qhca_err_handlers,
	.driver.pm = pm_sleep_ptr(&qhca_pm_ops),
};

static int __init qhca_init(void)
{
	int err;

	qhca_debugfs_init();
	err = pci_register_driver(&qhca_pci_driver);
	if (err)
		qhca_debugfs_exit();
	return err;
}
module_init(qhca_init);

static void __exit qhca_exit(void)
{
	pci_unregister_driver(&qhca_pci_driver);
	qhca_debugfs_exit();
}
module_exit(qhca_exit);

MODULE_DESCRIPTION("qhca RDMA adapter: PCI, events and Ethernet");
MODULE_LICENSE("GPL");
