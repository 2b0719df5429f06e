// SPDX-License-Identifier: GPL-2.0
/*
 * The admin queue: a ring of commands and a ring of completions.
 *
 * Each command has a slot with its own DMA buffers, allocated once. A slot is
 * reused, and its memory freed, only after the device has answered or has been
 * reset, so a late answer never lands in memory with another owner.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>

#include "core.h"
#include "qhca_trace.h"

#define AQ_TIMEOUT		(30 * HZ)
#define AQ_LOOK_INTERVAL	(HZ / 5)	/* is it still alive? */

static int aq_status_to_errno(u8 status)
{
	switch (status) {
	case QHCA_ST_OK:
		return 0;
	case QHCA_ST_BAD_OPCODE:
	case QHCA_ST_UNSUPPORTED:
		return -EOPNOTSUPP;
	case QHCA_ST_BAD_PARAM:
	case QHCA_ST_BAD_STATE:
	case QHCA_ST_BAD_TABLE:
		return -EINVAL;
	case QHCA_ST_BAD_OBJ:
		return -ENOENT;
	case QHCA_ST_BUSY:
		return -EBUSY;
	case QHCA_ST_NO_RESOURCES:
		return -ENOMEM;
	case QHCA_ST_DMA_ERROR:
		return -EFAULT;
	default:
		return -EPROTO;
	}
}

/* Take one completion, if any. Called with aq->lock held. */
static bool aq_reap_one(struct qhca_core *core, const char **why)
{
	struct qhca_aq *aq = &core->aq;
	struct qhca_aq_cqe *cqe = &aq->cq[aq->cons & (QHCA_AQ_DEPTH - 1)];
	struct qhca_aq_slot *slot;
	u16 id;

	if (aq->cons == aq->prod ||
	    !qhca_phase_ok(READ_ONCE(cqe->phase), aq->cons, QHCA_AQ_SHIFT))
		return false;
	dma_rmb();	/* read the phase before the rest of the entry */
	aq->cons++;
	id = le16_to_cpu(READ_ONCE(cqe->cmd_id));
	if (id >= QHCA_AQ_DEPTH || !aq->slot[id].pending) {
		*why = "completion without a command";
		return false;
	}
	slot = &aq->slot[id];
	slot->cqe = *cqe;
	slot->pending = false;
	slot->err = 0;
	trace_qhca_aq_done(core, slot, id);
	complete(&slot->done);
	return true;
}

/* Take all pending completions. Any context. */
void qhca_aq_reap(struct qhca_core *core)
{
	struct qhca_aq *aq = &core->aq;
	const char *why = NULL;
	unsigned long flags;

	spin_lock_irqsave(&aq->lock, flags);
	while (aq->cq && aq_reap_one(core, &why))
		;
	spin_unlock_irqrestore(&aq->lock, flags);
	if (why)
		qhca_kill(core, why);
}

/* The device is dead: all waiters get -EIO. Any context. */
void qhca_aq_abort(struct qhca_core *core)
{
	struct qhca_aq *aq = &core->aq;
	unsigned long flags;
	int i;

	spin_lock_irqsave(&aq->lock, flags);
	for (i = 0; i < QHCA_AQ_DEPTH; i++) {
		struct qhca_aq_slot *slot = &aq->slot[i];

		if (slot->pending) {
			slot->pending = false;
			slot->err = -EIO;
			trace_qhca_aq_done(core, slot, i);
			complete(&slot->done);
		}
	}
	spin_unlock_irqrestore(&aq->lock, flags);
}

static struct qhca_aq_slot *aq_get_slot(struct qhca_aq *aq)
{
	struct qhca_aq_slot *slot;
	int i;

	down(&aq->free);
	spin_lock_irq(&aq->lock);
	i = ffz(aq->busy);
	__set_bit(i, &aq->busy);
	spin_unlock_irq(&aq->lock);
	slot = &aq->slot[i];
	reinit_completion(&slot->done);
	return slot;
}

static void aq_put_slot(struct qhca_aq *aq, struct qhca_aq_slot *slot)
{
	spin_lock_irq(&aq->lock);
	__clear_bit(slot - aq->slot, &aq->busy);
	spin_unlock_irq(&aq->lock);
	up(&aq->free);
}

/*
 * Put a command into the ring. The device executes it after aq_ring() with
 * @prod, which this sets. Returns 0, or -EIO if the device is dead.
 */
static int aq_post(struct qhca_core *core, struct qhca_aq_slot *slot,
		   const struct qhca_aq_req *req, u32 *prod)
{
	struct qhca_aq *aq = &core->aq;
	struct qhca_aq_cmd *cmd;

	spin_lock_irq(&aq->lock);
	/* the flag's setter takes the lock afterwards, see qhca_aq_abort() */
	if (qhca_dev_dead(&core->dev)) {
		spin_unlock_irq(&aq->lock);
		return -EIO;
	}
	if (req->in_len)
		memcpy(slot->buf, req->in, req->in_len);
	/* there are no more slots than ring entries, so there is room */
	cmd = &aq->sq[aq->prod & (QHCA_AQ_DEPTH - 1)];
	memset(cmd, 0, sizeof(*cmd));
	cmd->opcode = req->opcode;
	cmd->cmd_id = cpu_to_le16(slot - aq->slot);
	cmd->obj = cpu_to_le32(req->obj);
	if (req->in_len)
		cmd->in_addr = cpu_to_le64(slot->dma);
	if (req->out_len)
		cmd->out_addr = cpu_to_le64(slot->dma + QHCA_AQ_MAX_DATA);
	cmd->in_len = cpu_to_le32(req->in_len);
	cmd->out_len = cpu_to_le32(req->out_len);
	cmd->mask = cpu_to_le64(req->mask);
	cmd->arg = cpu_to_le64(req->arg);
	slot->opcode = req->opcode;
	slot->posted = trace_qhca_aq_done_enabled() ?
		       ktime_get_mono_fast_ns() : 0;
	slot->pending = true;
	*prod = ++aq->prod;
	aq->commands++;
	trace_qhca_aq_cmd(core, cmd, *prod);
	spin_unlock_irq(&aq->lock);
	return 0;
}

/*
 * Ring the doorbell for all commands before @prod, unless that has been done:
 * a store announces all that is in the ring by then, also for other callers.
 *
 * The device executes commands before the store returns, and in a virtual
 * machine the store is an exit. aq->lock is therefore not held meanwhile:
 * others would spin on it with interrupts disabled, and so would the interrupt
 * handler. The mutex keeps the index from going backwards, which the device
 * treats as fatal. Its waiters spin only while its owner runs and nothing else
 * is to be scheduled, and most of them find their command announced.
 *
 * The caller has a slot, so the queue is not stopped, freed or restarted before
 * this returns.
 */
static void aq_ring(struct qhca_core *core, u32 prod)
{
	struct qhca_aq *aq = &core->aq;

	mutex_lock(&aq->reg_lock);
	/* the two differ by no more than the ring's depth */
	if ((s32)(prod - aq->rung) > 0 && !qhca_dev_dead(&core->dev)) {
		/* what other CPUs put into the ring is visible to the device */
		spin_lock_irq(&aq->lock);
		aq->rung = aq->prod;
		spin_unlock_irq(&aq->lock);
		writel(aq->rung, core->dev.regs + QHCA_REG_ASQ_DB);
	}
	mutex_unlock(&aq->reg_lock);
}

/*
 * Adjust the number of waiters that need the interrupt. Most commands are
 * answered before the doorbell write returns, and need none.
 */
static void aq_want_irq(struct qhca_core *core, int more)
{
	struct qhca_aq *aq = &core->aq;
	bool wanted;

	mutex_lock(&aq->reg_lock);
	wanted = aq->waiters;
	aq->waiters += more;
	if (aq->use_irq && wanted != !!aq->waiters)
		writel(aq->waiters ? QHCA_AQ_CTRL_IRQ : 0,
		       core->dev.regs + QHCA_REG_AQ_CTRL);
	mutex_unlock(&aq->reg_lock);
}

/* Start or stop using the interrupt. May sleep. */
void qhca_aq_use_irq(struct qhca_core *core, bool use)
{
	struct qhca_aq *aq = &core->aq;

	mutex_lock(&aq->reg_lock);
	WRITE_ONCE(aq->use_irq, use);
	if (use && aq->waiters)
		writel(QHCA_AQ_CTRL_IRQ, core->dev.regs + QHCA_REG_AQ_CTRL);
	mutex_unlock(&aq->reg_lock);
}

/* Has the device answered? */
static bool aq_answered(struct qhca_core *core, struct qhca_aq_slot *slot)
{
	qhca_aq_reap(core);
	return try_wait_for_completion(&slot->done);
}

/*
 * A command has waited for @waited jiffies. A device that answers each command
 * just before its timeout would keep callers, and with them rtnl, for minutes.
 * Half of the time that passes is forgiven, so it may keep commands waiting for
 * a minute on end.
 */
static void aq_waited(struct qhca_core *core, unsigned long waited)
{
	struct qhca_aq *aq = &core->aq;
	unsigned long forgiven;
	bool too_long;

	mutex_lock(&aq->reg_lock);
	/* what others waited for meanwhile is counted already */
	waited = min(waited, jiffies - aq->waited_at);
	forgiven = (jiffies - aq->waited_at) / 2;
	aq->waited -= min(aq->waited, forgiven);
	aq->waited += waited;
	aq->waited_at = jiffies;
	too_long = aq->waited > AQ_TIMEOUT;
	mutex_unlock(&aq->reg_lock);
	if (too_long)
		qhca_kill(core, "admin commands take too long");
}

/*
 * Wait for an answer that has not come yet. The ring is also polled from time
 * to time: interrupts may not be set up yet, and one may be lost.
 */
static void aq_wait_done(struct qhca_core *core, struct qhca_aq_slot *slot)
{
	struct qhca_aq *aq = &core->aq;
	unsigned long last = jiffies, waited = 0, now;

	/* earlier answers raise no interrupt */
	aq_want_irq(core, 1);
	while (!aq_answered(core, slot)) {
		bool irq = READ_ONCE(aq->use_irq);

		if (irq) {
			if (wait_for_completion_timeout(&slot->done,
							AQ_LOOK_INTERVAL))
				break;
			if (aq_answered(core, slot)) {
				aq->late++;
				break;
			}
		} else {
			usleep_range(20, 100);
		}
		qhca_dev_check_alive(&core->dev);
		/* while the machine is stopped, the clock may go on */
		now = jiffies;
		waited += min(now - last, HZ);
		last = now;
		if (waited > AQ_TIMEOUT)
			qhca_kill(core, "admin command timed out");
	}
	aq_want_irq(core, -1);
	aq_waited(core, waited);
}

int qhca_aq_exec(struct qhca_dev *dev, struct qhca_aq_req *req)
{
	struct qhca_core *core = qhca_to_core(dev);
	struct qhca_aq *aq = &core->aq;
	struct qhca_aq_slot *slot;
	u32 prod;
	int err;

	might_sleep();
	if (req->in_len > QHCA_AQ_MAX_DATA || req->out_len > QHCA_AQ_MAX_DATA)
		return -EMSGSIZE;
	if (qhca_dev_dead(dev))
		return -EIO;

	slot = aq_get_slot(aq);
	err = aq_post(core, slot, req, &prod);
	if (!err) {
		aq_ring(core, prod);
		if (!aq_answered(core, slot))
			aq_wait_done(core, slot);
		err = slot->err;
	}
	if (!err) {
		req->status = slot->cqe.status;
		req->result = le64_to_cpu(slot->cqe.result);
		err = aq_status_to_errno(req->status);
		if (!err) {
			req->obj = le32_to_cpu(slot->cqe.obj);
			if (req->out_len)
				memcpy(req->out, slot->buf + QHCA_AQ_MAX_DATA,
				       req->out_len);
		} else {
			dev_dbg(qhca_dma_dev(&core->dev),
				"command %#x obj %#x: status %u result %#llx\n",
				req->opcode, req->obj, req->status,
				req->result);
		}
	}
	aq_put_slot(aq, slot);
	return err;
}
EXPORT_SYMBOL_GPL(qhca_aq_exec);

int qhca_aq_create_arg(struct qhca_dev *dev, u8 opcode, u64 arg, const void *in,
		       u32 in_len, u32 *obj)
{
	struct qhca_aq_req req = {
		.opcode = opcode, .arg = arg, .in = in, .in_len = in_len,
	};
	int err = qhca_aq_exec(dev, &req);

	if (err)
		return err;
	/* doorbells, packets and the RDMA core use 24 bits */
	if (req.obj > QHCA_DB_NUM_MASK && opcode != QHCA_CMD_CREATE_MR &&
	    opcode != QHCA_CMD_CREATE_MW) {
		dev_err(qhca_dma_dev(dev), "command %#x made object %#x\n",
			opcode, req.obj);
		qhca_dev_kill_sure(dev, "it returned an invalid object number");
		return -EIO;
	}
	*obj = req.obj;
	return 0;
}
EXPORT_SYMBOL_GPL(qhca_aq_create_arg);

void qhca_aq_destroyed(struct qhca_dev *dev, u8 opcode, u32 obj, int err)
{
	/*
	 * A dead device uses nothing. If the device does not know the object,
	 * that does not mean it has stopped using it: one side has the wrong
	 * number.
	 */
	if (!err || err == -EIO)
		return;
	dev_err(qhca_dma_dev(dev), "command %#x on object %u refused: %d\n",
		opcode, obj, err);
	qhca_dev_kill_sure(dev, "it refused to destroy an object");
}
EXPORT_SYMBOL_GPL(qhca_aq_destroyed);

void qhca_aq_destroy_sure(struct qhca_dev *dev, u8 opcode, u32 obj)
{
	qhca_aq_destroyed(dev, opcode, obj, qhca_aq_destroy(dev, opcode, obj));
}
EXPORT_SYMBOL_GPL(qhca_aq_destroy_sure);

static void aq_free_memory(struct qhca_core *core)
{
	struct device *dma = qhca_dma_dev(&core->dev);
	struct qhca_aq *aq = &core->aq;
	struct qhca_aq_cmd *sq;
	struct qhca_aq_cqe *cq;
	int i;

	for (i = 0; i < QHCA_AQ_DEPTH; i++) {
		struct qhca_aq_slot *slot = &aq->slot[i];

		if (slot->buf)
			dma_free_coherent(dma, 2 * QHCA_AQ_MAX_DATA, slot->buf,
					  slot->dma);
		slot->buf = NULL;
	}
	/* the rings may be being dumped, under the lock */
	spin_lock_irq(&aq->lock);
	sq = aq->sq;
	cq = aq->cq;
	aq->sq = NULL;
	aq->cq = NULL;
	spin_unlock_irq(&aq->lock);
	if (cq)
		dma_free_coherent(dma, SZ_4K, cq, aq->cq_dma);
	if (sq)
		dma_free_coherent(dma, SZ_4K, sq, aq->sq_dma);
}

/*
 * Stop the queue and free its memory. The device is marked dead, has been reset
 * or is gone, and there is no interrupt handler any more. Waits until all
 * callers have left qhca_aq_exec().
 */
void qhca_aq_stop(struct qhca_core *core)
{
	struct qhca_aq *aq = &core->aq;
	int i;

	qhca_aq_abort(core);
	for (i = 0; i < QHCA_AQ_DEPTH; i++)
		down(&aq->free);
	aq_free_memory(core);
	for (i = 0; i < QHCA_AQ_DEPTH; i++)
		up(&aq->free);
}

/*
 * Set up empty rings in the device, which is disabled and marked dead. Returns
 * 0 or -ENOMEM.
 */
int qhca_aq_start(struct qhca_core *core)
{
	struct device *dma = qhca_dma_dev(&core->dev);
	void __iomem *regs = core->dev.regs;
	struct qhca_aq *aq = &core->aq;
	int i;

	BUILD_BUG_ON(QHCA_AQ_DEPTH > BITS_PER_LONG);
	BUILD_BUG_ON(QHCA_AQ_DEPTH * sizeof(*aq->sq) > SZ_4K);
	BUILD_BUG_ON(QHCA_AQ_DEPTH * sizeof(*aq->cq) > SZ_4K);

	aq->waited = 0;
	aq->waited_at = jiffies;
	aq->prod = 0;
	aq->rung = 0;
	aq->cons = 0;
	aq->sq = dma_alloc_coherent(dma, SZ_4K, &aq->sq_dma, GFP_KERNEL);
	aq->cq = dma_alloc_coherent(dma, SZ_4K, &aq->cq_dma, GFP_KERNEL);
	if (!aq->sq || !aq->cq)
		goto err;
	for (i = 0; i < QHCA_AQ_DEPTH; i++) {
		struct qhca_aq_slot *slot = &aq->slot[i];

		slot->buf = dma_alloc_coherent(dma, 2 * QHCA_AQ_MAX_DATA,
					       &slot->dma, GFP_KERNEL);
		if (!slot->buf)
			goto err;
	}
	writeq(aq->sq_dma, regs + QHCA_REG_ASQ_BASE);
	writeq(aq->cq_dma, regs + QHCA_REG_ACQ_BASE);
	writel(QHCA_AQ_SHIFT, regs + QHCA_REG_AQ_SHIFT);
	return 0;

err:
	aq_free_memory(core);
	return -ENOMEM;
}

/* Once for the life of @core. */
void qhca_aq_init(struct qhca_core *core)
{
	struct qhca_aq *aq = &core->aq;
	int i;

	spin_lock_init(&aq->lock);
	mutex_init(&aq->reg_lock);
	sema_init(&aq->free, QHCA_AQ_DEPTH);
	for (i = 0; i < QHCA_AQ_DEPTH; i++)
		init_completion(&aq->slot[i].done);
}
