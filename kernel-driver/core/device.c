// SPDX-License-Identifier: GPL-2.0
/*
 * Bringing the adapter up and down, and handling its death.
 *
 * Two levels: probe and remove (pci.c) own what lives as long as the function
 * is bound (BARs, net_device, debugfs); start and stop own what a reset
 * destroys (admin queue, interrupts, EQs, the RDMA child). Stop undoes start in
 * reverse order.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>

#include "core.h"
#include "qhca_debug.h"

#define READY_TIMEOUT_MS	5000

/* No device has more: see qhca_device_limit_caps(). */
#define CAPS_MAX_WR		SZ_32K
#define CAPS_MAX_CQE		SZ_4M
#define CAPS_MAX_SGE		64
#define CAPS_MAX_INLINE		SZ_1K
#define CAPS_MAX_GID		1024

bool qhca_dev_dead(struct qhca_dev *dev)
{
	return test_bit(QHCA_F_DEAD, &qhca_to_core(dev)->flags);
}
EXPORT_SYMBOL_GPL(qhca_dev_dead);

/* Stop all DMA of the device; it has forgotten everything on return. */
static void qhca_device_reset(struct qhca_core *core)
{
	writel(QHCA_CTRL_RESET, core->dev.regs + QHCA_REG_CTRL);
	/* the answer comes when the reset is done */
	readl(core->dev.regs + QHCA_REG_STATUS);
}

/*
 * Declare the device dead: reset it, fail pending commands with -EIO, and send
 * QHCA_EV_DEVICE_FATAL to all clients later. Any context; later calls do
 * nothing. Then devlink health or a function-level reset brings it back.
 */
void qhca_kill(struct qhca_core *core, const char *why)
{
	if (test_and_set_bit(QHCA_F_KILLED, &core->flags))
		return;
	dev_err(qhca_dma_dev(&core->dev), "device is dead: %s (status %#x)\n",
		why, readl(core->dev.regs + QHCA_REG_STATUS));
	/* the reset clears the registers */
	qhca_debug_died(&core->dev);
	core->health.why = why;
	core->health.deaths++;
	/* "dead" implies no more DMA, so reset first */
	qhca_device_reset(core);
	set_bit(QHCA_F_DEAD, &core->flags);
	qhca_aq_abort(core);
	schedule_work(&core->fatal_work);
}

/* For callers that see the device violate its contract. */
void qhca_dev_kill(struct qhca_dev *dev, const char *why)
{
	qhca_kill(qhca_to_core(dev), why);
}
EXPORT_SYMBOL_GPL(qhca_dev_kill);

void qhca_dev_kill_sure(struct qhca_dev *dev, const char *why)
{
	struct qhca_core *core = qhca_to_core(dev);

	qhca_kill(core, why);
	/* another CPU may be declaring it dead, but not have reset it yet */
	while (test_bit(QHCA_F_KILLED, &core->flags) && !qhca_dev_dead(dev))
		usleep_range(100, 200);
}
EXPORT_SYMBOL_GPL(qhca_dev_kill_sure);

/*
 * Check that the device is present and healthy; declare it dead if not. Any
 * context. The device has been enabled. If the device is gone, a read returns
 * all ones on real machines, but zeroes on others: only the magic number proves
 * presence.
 */
bool qhca_dev_check_alive(struct qhca_dev *dev)
{
	struct qhca_core *core = qhca_to_core(dev);
	u32 status;

	if (qhca_dev_dead(dev))
		return false;
	status = readl(core->dev.regs + QHCA_REG_STATUS);
	if (readl(core->dev.regs + QHCA_REG_ID) != QHCA_ID_MAGIC)
		qhca_kill(core, "it does not answer");
	else if (status & QHCA_STATUS_FATAL)
		qhca_kill(core, "it reports a fatal error");
	else if (!(status & QHCA_STATUS_READY))
		qhca_kill(core, "it was reset from outside");
	else
		return true;
	return false;
}

void qhca_device_fatal_work(struct work_struct *work)
{
	struct qhca_core *core = container_of(work, struct qhca_core,
					      fatal_work);
	struct qhca_eqe eqe = { .type = QHCA_EV_DEVICE_FATAL };

	core->client->dead(&core->dev);
	blocking_notifier_call_chain(&core->events, eqe.type, &eqe);
	/* only now: recovery removes the clients that must be notified */
	qhca_health_report(&core->dev, QHCA_REPORT_DEVICE);
}

/*
 * Wait for a client's event() and dead() to return, and for the work that
 * follows a death. Sleeps.
 */
void qhca_dev_flush_events(struct qhca_dev *dev)
{
	struct qhca_core *core = qhca_to_core(dev);

	if (core->eqs)
		synchronize_irq(core->eqs[0].irq);
	flush_work(&core->fatal_work);
}

/* ------------------------------------------------------ start and stop -- */

static int qhca_device_enable(struct qhca_core *core)
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
	dev_err(qhca_dma_dev(&core->dev), "not ready, status %#x\n",
		status);
	return -EIO;
}

/*
 * RDMA users divide by some of these and size allocations by others, so reject
 * zeros and clamp the rest.
 */
static int qhca_device_limit_caps(struct qhca_core *core, struct qhca_caps *c)
{
	if (!c->max_qp_wr || !c->max_cqe || !c->max_sge || !c->max_gid) {
		dev_err(qhca_dma_dev(&core->dev),
			"device supports no WQEs, CQEs, SGEs or GIDs\n");
		return -EPROTO;
	}
	c->max_qp_wr = min_t(u32, c->max_qp_wr, CAPS_MAX_WR);
	c->max_srq_wr = min_t(u32, c->max_srq_wr, CAPS_MAX_WR);
	c->max_cqe = min_t(u32, c->max_cqe, CAPS_MAX_CQE);
	c->max_sge = min_t(u32, c->max_sge, CAPS_MAX_SGE);
	c->max_inline = min_t(u32, c->max_inline, CAPS_MAX_INLINE);
	c->max_gid = min_t(u32, c->max_gid, CAPS_MAX_GID);
	c->max_rd_atomic = min_t(u32, c->max_rd_atomic, U8_MAX);
	return 0;
}

static int qhca_device_query_caps(struct qhca_core *core)
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
	err = qhca_device_limit_caps(core, c);
	if (err)
		return err;
	/* its BAR may not have been assigned */
	c->dm_size = min_t(u64, le64_to_cpu(d.dm_size),
			   pci_resource_len(core->dev.pdev, QHCA_BAR_DM));
	if (!(c->features & QHCA_FEAT_DM) || c->dm_size < PAGE_SIZE) {
		c->features &= ~QHCA_FEAT_DM;
		c->dm_size = 0;
	}
	return 0;
}

/* Bring the device from reset to a state in which the client can use it. */
int qhca_device_start(struct qhca_core *core)
{
	struct pci_dev *pdev = core->dev.pdev;
	int err;

	mutex_lock(&core->start_lock);
	pci_set_master(pdev);
	qhca_device_reset(core);
	writel(core->dev.db_shift, core->dev.regs + QHCA_REG_DB_SHIFT);
	err = qhca_aq_start(core);
	if (err)
		goto err_master;
	err = qhca_irq_init(core);
	if (err)
		goto err_aq;
	err = qhca_device_enable(core);
	if (err)
		goto err_irq;
	/* only now: before it is ready, a check would declare it dead */
	clear_bit(QHCA_F_DEAD, &core->flags);
	clear_bit(QHCA_F_KILLED, &core->flags);
	err = qhca_device_query_caps(core);
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
	qhca_device_reset(core);
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

void qhca_device_stop(struct qhca_core *core)
{
	if (!test_and_clear_bit(QHCA_F_STARTED, &core->flags))
		return;
	qhca_health_watch(core, false);
	mutex_lock(&core->start_lock);
	qhca_eqs_free(core);
	set_bit(QHCA_F_KILLED, &core->flags);
	qhca_device_reset(core);
	set_bit(QHCA_F_DEAD, &core->flags);
	qhca_irq_free(core);
	qhca_aq_stop(core);
	cancel_work_sync(&core->fatal_work);
	pci_clear_master(core->dev.pdev);
	mutex_unlock(&core->start_lock);
}

/* Quiesce: no child, no traffic, no interrupts, no DMA. The netdev stays. */
static void qhca_device_suspend(struct qhca_core *core)
{
	/* do not send commands to a device that is gone */
	if (!pci_device_is_present(core->dev.pdev))
		qhca_kill(core, "it has left the bus");
	qhca_adev_del(core);
	core->client->pause(&core->dev);
	qhca_device_stop(core);
	qhca_health_renew(core);
}

static int qhca_device_resume(struct qhca_core *core)
{
	int err;

	err = qhca_device_start(core);
	if (err)
		return err;
	err = core->client->resume(&core->dev);
	if (err)
		goto err_hw;
	err = qhca_adev_add(core);
	if (err)
		goto err_netdev;
	return 0;

err_netdev:
	core->client->pause(&core->dev);
err_hw:
	qhca_device_stop(core);
	return err;
}

/* Before a reset or sleep: stop everything until qhca_device_wake() */
void qhca_device_quiesce(struct qhca_core *core)
{
	mutex_lock(&core->life_lock);
	core->off = true;
	qhca_device_suspend(core);
	mutex_unlock(&core->life_lock);
}

int qhca_device_wake(struct qhca_core *core)
{
	int err;

	mutex_lock(&core->life_lock);
	core->off = false;
	err = qhca_device_resume(core);
	mutex_unlock(&core->life_lock);
	if (!err)
		qhca_health_well(core);
	return err;
}

/**
 * qhca_recover - reset a dead device and start it again
 * @core: adapter; does nothing if it works
 *
 * RDMA users see the device removed and added again. Not in interrupt context,
 * not under rtnl.
 *
 * Return: 0; -EBUSY (stopped for a reset or sleep that will start it), -ENODEV
 * (its registers do not answer), or the error that keeps it from starting.
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
		qhca_device_suspend(core);
		err = qhca_device_resume(core);
	}
	mutex_unlock(&core->life_lock);
	if (err) {
		dev_err(qhca_dma_dev(&core->dev), "not recovered: %d\n", err);
		return err;
	}
	dev_info(qhca_dma_dev(&core->dev), "recovered\n");
	qhca_health_well(core);
	return 0;
}

