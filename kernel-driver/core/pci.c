// SPDX-License-Identifier: GPL-2.0
/*
 * The PCI function: probe and remove, sleep, function-level reset, bus errors
 * and surprise removal.
 */
#include <linux/dma-mapping.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/slab.h>

#include "core.h"
#include "qhca_debug.h"

static const struct qhca_client *pci_client;

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
	struct device *d = qhca_dma_dev(&core->dev);
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

static struct qhca_core *qhca_core_alloc(struct pci_dev *pdev)
{
	struct qhca_core *core = kzalloc(sizeof(*core), GFP_KERNEL);

	if (!core)
		return NULL;
	core->dev.pdev = pdev;
	core->dev.core = core;
	core->client = pci_client;
	core->dev.db_shift = clamp(PAGE_SHIFT, 12, 16);
	core->flags = BIT(QHCA_F_DEAD) | BIT(QHCA_F_KILLED);
	xa_init_flags(&core->cqs, XA_FLAGS_LOCK_IRQ);
	BLOCKING_INIT_NOTIFIER_HEAD(&core->events);
	INIT_WORK(&core->fatal_work, qhca_device_fatal_work);
	mutex_init(&core->start_lock);
	mutex_init(&core->life_lock);
	qhca_aq_init(core);
	qhca_health_setup(core);
	return core;
}

static void qhca_core_free(struct qhca_core *core)
{
	WARN_ON_ONCE(!xa_empty(&core->cqs));
	xa_destroy(&core->cqs);
	mutex_destroy(&core->health.lock);
	mutex_destroy(&core->life_lock);
	mutex_destroy(&core->start_lock);
	kfree(core);
}

static int qhca_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct qhca_core *core;
	int err;

	/* an application's page must not contain doorbells of another */
	BUILD_BUG_ON(PAGE_SHIFT > 16);

	core = qhca_core_alloc(pdev);
	if (!core)
		return -ENOMEM;
	err = qhca_debug_create(&core->dev);
	if (err)
		goto err_free;
	err = qhca_pci_enable(core);
	if (err)
		goto err_debug;
	err = dma_set_mask_and_coherent(&pdev->dev, DMA_BIT_MASK(64));
	if (err)
		goto err_disable;
	/* the largest page of a buffer table; segments of it keep its alignment */
	dma_set_max_seg_size(&pdev->dev, SZ_2G);
	/* page lists (REG_MR) of bounced memory need the page offset */
	dma_set_min_align_mask(&pdev->dev, PAGE_SIZE - 1);
	err = qhca_map_bars(core);
	if (err)
		goto err_disable;
	err = qhca_pci_check_identity(core);
	if (err)
		goto err_bars;
	/* restores what a bus reset clears; see qhca_slot_reset() */
	pci_save_state(pdev);
	pci_set_drvdata(pdev, core);
	err = qhca_device_start(core);
	if (err)
		goto err_bars;
	err = core->client->create(&core->dev);
	if (err)
		goto err_hw;
	qhca_debug_add_files(&core->dev);
	err = qhca_adev_add(core);
	if (err)
		goto err_client;
	/* last: from now on recovery may run, which tears all of this down */
	err = qhca_health_init(core);
	if (err)
		goto err_adev;
	dev_info(&pdev->dev, "%s: %u completion vectors, %u QPs\n",
		 netdev_name(core->dev.netdev), core->dev.num_comp_vectors,
		 core->dev.caps.max_qp);
	return 0;

err_adev:
	qhca_adev_del(core);
err_client:
	qhca_debug_remove_files(&core->dev);
	core->client->destroy(&core->dev);
err_hw:
	qhca_device_stop(core);
err_bars:
	qhca_unmap_bars(core);
err_disable:
	qhca_pci_disable(core);
err_debug:
	qhca_debug_destroy(&core->dev);
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
	qhca_adev_del(core);
	qhca_debug_remove_files(&core->dev);
	core->client->destroy(&core->dev);
	qhca_device_stop(core);
	qhca_unmap_bars(core);
	qhca_pci_disable(core);
	qhca_debug_destroy(&core->dev);
	qhca_core_free(core);
}

/* The device must do no DMA when the next kernel starts. */
static void qhca_shutdown(struct pci_dev *pdev)
{
	qhca_device_quiesce(pci_get_drvdata(pdev));
}

/* -------------------------------------------------------- system sleep -- */

/* The device loses all state: RDMA users see it removed and added again. */
static int qhca_pm_suspend(struct device *d)
{
	qhca_device_quiesce(dev_get_drvdata(d));
	return 0;
}

static int qhca_pm_resume(struct device *d)
{
	return qhca_device_wake(dev_get_drvdata(d));
}

static DEFINE_SIMPLE_DEV_PM_OPS(qhca_pm_ops, qhca_pm_suspend, qhca_pm_resume);

/* ------------------------------------------------ resets and bus errors -- */

static void qhca_reset_prepare(struct pci_dev *pdev)
{
	qhca_device_quiesce(pci_get_drvdata(pdev));
}

static void qhca_reset_done(struct pci_dev *pdev)
{
	int err = qhca_device_wake(pci_get_drvdata(pdev));

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
	qhca_device_quiesce(core);
	qhca_pci_disable(core);
	return PCI_ERS_RESULT_NEED_RESET;
}

static pci_ers_result_t qhca_slot_reset(struct pci_dev *pdev)
{
	struct qhca_core *core = pci_get_drvdata(pdev);

	/* the error was not fatal, but the driver of another function wanted it */
	if (!core->off) {
		qhca_kill(core, "bus error");
		qhca_device_quiesce(core);
	}
	if (!core->enabled && qhca_pci_enable(core))
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

/* Bind to adapters; each calls @client. 0 or an error. */
int qhca_core_register(const struct qhca_client *client)
{
	pci_client = client;
	return pci_register_driver(&qhca_pci_driver);
}

void qhca_core_unregister(void)
{
	pci_unregister_driver(&qhca_pci_driver);
}
