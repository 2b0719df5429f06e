// SPDX-License-Identifier: GPL-2.0
/*
 * Interrupts and event queues.
 *
 * Vector 0 carries admin completions, taken in the interrupt handler, and the
 * asynchronous EQ, drained in its thread: handlers of asynchronous events may
 * sleep and run admin commands. Vectors 1..N carry one completion EQ each,
 * drained in the interrupt handler.
 *
 * A doorbell write causes a VM exit, so none is rung if the device supports EQ
 * records (QHCA_FEAT_EQ_RECORD): the consumer index is then kept in memory.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/log2.h>

#include "core.h"
#include "qhca_trace.h"

#define EQ_ASYNC_SHIFT	10
#define EQ_COMP_SHIFT	11
#define EQ_REC_STRIDE	64	/* CPUs do not share a cache line */

/* The entry at the consumer index if it is valid, else NULL. */
static struct qhca_eqe *eq_peek(struct qhca_eq *eq)
{
	u32 cons = READ_ONCE(eq->cons);
	u32 slot = cons & (BIT(eq->shift) - 1);
	struct qhca_eqe *eqe;

	eqe = qhca_queue_buf_ptr(&eq->buf, slot * sizeof(*eqe));
	if (!qhca_phase_ok(READ_ONCE(eqe->phase), cons, eq->shift))
		return NULL;
	dma_rmb();	/* read the phase before the rest of the entry */
	return eqe;
}

static void eq_ring(struct qhca_eq *eq, u64 flags)
{
	qhca_db_ring(&eq->core->dev, QHCA_DB_EQ, eq->eqn, flags, eq->cons);
}

/*
 * Publish the consumer index; from now on the next event raises the vector.
 * Returns false if an event is pending that does not raise it; the caller must
 * take that event. If the caller can take no more (@budget is 0), returns true,
 * and the vector is raised again at once. See QHCA_EQ_F_RECORD for the
 * protocol.
 */
static bool eq_done(struct qhca_eq *eq, u32 budget)
{
	if (!eq->rec) {
		/* more than a lap at once: arming raises the vector again */
		eq_ring(eq, QHCA_DB_EQ_ARM);
		return true;
	}
	dma_mb();	/* the entries have been read */
	WRITE_ONCE(eq->rec->index, cpu_to_le32(eq->cons));
	mb();		/* index before looking at flags and ring */
	if (le32_to_cpu(READ_ONCE(eq->rec->flags)) & QHCA_DBREC_NOTIFY)
		eq_ring(eq, 0);
	if (!eq_peek(eq))
		return true;
	if (budget)
		return false;
	eq_ring(eq, QHCA_DB_EQ_ARM);
	return true;
}

static irqreturn_t eq_async_irq(int irq, void *data)
{
	struct qhca_eq *eq = data;

	trace_qhca_irq(eq);
	qhca_aq_reap(eq->core);
	/* pairs with eq_create(): buffer and shift are valid */
	if (smp_load_acquire(&eq->made) && eq_peek(eq))
		return IRQ_WAKE_THREAD;
	return IRQ_HANDLED;
}

static void eq_async_event(struct qhca_core *core, struct qhca_eqe *eqe)
{
	if (eqe->type == QHCA_EV_DEVICE_FATAL) {
		/* which notifies everyone */
		qhca_kill(core, "device reports a fatal error");
		return;
	}
	core->client->event(&core->dev, eqe);
	blocking_notifier_call_chain(&core->events, eqe->type, eqe);
}

static irqreturn_t eq_async_thread(int irq, void *data)
{
	struct qhca_eq *eq = data;
	u32 budget = BIT(eq->shift);
	struct qhca_eqe *eqe, copy;

	WRITE_ONCE(eq->busy, true);
	do {
		for (; budget && (eqe = eq_peek(eq)); budget--) {
			copy = *eqe;
			trace_qhca_eqe(eq, eq->cons, &copy);
			WRITE_ONCE(eq->cons, eq->cons + 1);
			eq->events++;
			eq_async_event(eq->core, &copy);
		}
	} while (!eq_done(eq, budget));
	WRITE_ONCE(eq->busy, false);
	return IRQ_HANDLED;
}

/* The index of a CQ in core->cqs. */
static unsigned long eq_cq_key(u32 comp_vector, u32 cqn)
{
	return (unsigned long)comp_vector << 32 | cqn;
}

static void eq_comp_event(struct qhca_eq *eq, const struct qhca_eqe *eqe)
{
	u32 cqn = le32_to_cpu(READ_ONCE(eqe->obj));
	u8 type = READ_ONCE(eqe->type);
	struct qhca_core_cq *cq;

	trace_qhca_eqe(eq, eq->cons, eqe);
	WRITE_ONCE(eq->cons, eq->cons + 1);
	eq->events++;
	/*
	 * qhca_cq_unregister() waits for this interrupt handler and for
	 * qhca_eq_rescue(), so the CQ found stays valid. CQs of other EQs,
	 * which have no such guarantee, are not found.
	 */
	cq = type == QHCA_EV_CQ ?
	     xa_load(&eq->core->cqs, eq_cq_key(eq->vector - 1, cqn)) : NULL;
	if (cq)
		cq->comp(cq);
	else
		eq->stray++;
}

static irqreturn_t eq_comp_irq(int irq, void *data)
{
	struct qhca_eq *eq = data;
	u32 budget = BIT(eq->shift);
	struct qhca_eqe *eqe;

	/* pairs with eq_create(): buffer and shift are valid */
	if (!smp_load_acquire(&eq->made))
		return IRQ_NONE;
	trace_qhca_irq(eq);
	do {
		for (; budget && (eqe = eq_peek(eq)); budget--)
			eq_comp_event(eq, eqe);
	} while (!eq_done(eq, budget));
	return IRQ_HANDLED;
}

/* Is an event pending? The caller keeps the EQ alive. */
bool qhca_eq_waits(struct qhca_eq *eq)
{
	/* pairs with eq_create(): buffer and shift are valid */
	return smp_load_acquire(&eq->made) && eq_peek(eq);
}

/*
 * Take the pending events, as the interrupt handler would. The caller keeps the
 * EQ alive. Sleeps.
 */
void qhca_eq_rescue(struct qhca_eq *eq)
{
	unsigned long flags;

	if (!qhca_eq_waits(eq))
		return;
	if (!eq->vector) {
		eq->lost++;
		irq_wake_thread(eq->irq, eq);
		return;
	}
	/* synchronize_irq() does not wait for this code */
	mutex_lock(&eq->rescue_lock);
	/* the handler does not run now; emulate its context for the callees */
	disable_irq(eq->irq);
	/* softirqs raised here run when bottom halves are enabled again */
	local_bh_disable();
	local_irq_save(flags);
	if (qhca_eq_waits(eq)) {
		eq->lost++;
		eq_comp_irq(eq->irq, eq);
	}
	local_irq_restore(flags);
	local_bh_enable();
	enable_irq(eq->irq);
	mutex_unlock(&eq->rescue_lock);
}

u32 qhca_comp_vector_eqn(struct qhca_dev *dev, u32 comp_vector)
{
	return qhca_to_core(dev)->eqs[comp_vector + 1].eqn;
}
EXPORT_SYMBOL_GPL(qhca_comp_vector_eqn);

int qhca_comp_vector_irq(struct qhca_dev *dev, u32 comp_vector)
{
	return qhca_to_core(dev)->eqs[comp_vector + 1].irq;
}
EXPORT_SYMBOL_GPL(qhca_comp_vector_irq);

int qhca_cq_register(struct qhca_dev *dev, struct qhca_core_cq *cq)
{
	unsigned long key = eq_cq_key(cq->comp_vector, cq->cqn);
	int tries = 1000;
	int err;

	might_sleep();
	if (WARN_ON_ONCE(cq->comp_vector >= dev->num_comp_vectors))
		return -EINVAL;
	do {
		err = xa_insert_irq(&qhca_to_core(dev)->cqs, key, cq,
				    GFP_KERNEL);
		if (err != -EBUSY)
			return err;
		usleep_range(1000, 2000);
	} while (--tries);
	return err;
}
EXPORT_SYMBOL_GPL(qhca_cq_register);

void qhca_cq_unregister(struct qhca_dev *dev, struct qhca_core_cq *cq)
{
	struct qhca_core *core = qhca_to_core(dev);
	struct qhca_eq *eq = &core->eqs[cq->comp_vector + 1];

	xa_erase_irq(&core->cqs, eq_cq_key(cq->comp_vector, cq->cqn));
	synchronize_irq(eq->irq);
	/* a rescue from now on does not find the CQ */
	mutex_lock(&eq->rescue_lock);
	mutex_unlock(&eq->rescue_lock);
}
EXPORT_SYMBOL_GPL(qhca_cq_unregister);

int qhca_event_register(struct qhca_dev *dev, struct notifier_block *nb)
{
	return blocking_notifier_chain_register(&qhca_to_core(dev)->events, nb);
}
EXPORT_SYMBOL_GPL(qhca_event_register);

void qhca_event_unregister(struct qhca_dev *dev, struct notifier_block *nb)
{
	blocking_notifier_chain_unregister(&qhca_to_core(dev)->events, nb);
}
EXPORT_SYMBOL_GPL(qhca_event_unregister);

/*
 * Allocate the vectors and request their interrupts; no EQ exists yet, but
 * late admin completions come by interrupt from now on. 0 or an error.
 */
int qhca_irq_init(struct qhca_core *core)
{
	struct pci_dev *pdev = core->dev.pdev;
	u32 have = readl(core->dev.regs + QHCA_REG_VECTORS);
	u32 want = min3(num_online_cpus() + 1, have, 2048U);
	int node = dev_to_node(&pdev->dev);
	int n, i, cpu, err;

	if (want < 2) {
		dev_err(&pdev->dev, "%u MSI-X vectors, needs 2\n", have);
		return -ENOSPC;
	}
	n = pci_alloc_irq_vectors(pdev, 2, want, PCI_IRQ_MSIX);
	if (n < 0)
		return dev_err_probe(&pdev->dev, n, "no MSI-X vectors\n");

	core->eqs = kcalloc(n, sizeof(*core->eqs), GFP_KERNEL);
	if (!core->eqs) {
		pci_free_irq_vectors(pdev);
		return -ENOMEM;
	}
	core->num_irqs = n;
	for (i = 0; i < n; i++) {
		struct qhca_eq *eq = &core->eqs[i];

		eq->core = core;
		eq->vector = i;
		mutex_init(&eq->rescue_lock);
		eq->irq = pci_irq_vector(pdev, i);
		if (i) {
			snprintf(eq->name, sizeof(eq->name), "qhca-comp%d@%s",
				 i - 1, pci_name(pdev));
			err = request_irq(eq->irq, eq_comp_irq, 0, eq->name,
					  eq);
		} else {
			snprintf(eq->name, sizeof(eq->name), "qhca-async@%s",
				 pci_name(pdev));
			err = request_threaded_irq(eq->irq, eq_async_irq,
						   eq_async_thread, 0, eq->name,
						   eq);
		}
		if (err) {
			qhca_irq_free(core);
			return err;
		}
		eq->has_irq = true;
		if (i) {
			cpu = cpumask_local_spread(i - 1, node);
			irq_set_affinity_and_hint(eq->irq, cpumask_of(cpu));
		}
	}
	qhca_aq_use_irq(core, true);
	return 0;
}

/* Undo qhca_irq_init(); no handler runs any more when it returns. */
void qhca_irq_free(struct qhca_core *core)
{
	u32 i;

	/* callers still waiting for a command poll */
	qhca_aq_use_irq(core, false);
	for (i = core->num_irqs; i-- > 0;) {
		struct qhca_eq *eq = &core->eqs[i];

		if (!eq->has_irq)
			continue;
		if (i)
			irq_update_affinity_hint(eq->irq, NULL);
		free_irq(eq->irq, eq);
	}
	pci_free_irq_vectors(core->dev.pdev);
	kfree(core->eqs);
	core->eqs = NULL;
	core->num_irqs = 0;
}

static int eq_create(struct qhca_core *core, struct qhca_eq *eq, u8 shift)
{
	struct qhca_eqc eqc = {};
	int err;

	shift = min_t(u8, shift, ilog2(core->dev.caps.max_eq_depth));
	err = qhca_queue_buf_alloc(&core->dev, &eq->buf,
				   sizeof(struct qhca_eqe) << shift);
	if (err)
		return err;
	eq->shift = shift;
	eq->cons = 0;
	eqc.buf = eq->buf.table.desc;
	eqc.shift = shift;
	eqc.vector = cpu_to_le16(eq->vector);
	if (core->eq_recs) {
		u32 offset = eq->vector * EQ_REC_STRIDE;

		eq->rec = core->eq_recs + offset;
		eqc.flags = QHCA_EQ_F_RECORD;
		eqc.dbrec = cpu_to_le64(core->eq_recs_dma + offset);
	}
	err = qhca_aq_create(&core->dev, QHCA_CMD_CREATE_EQ, &eqc, sizeof(eqc),
			     &eq->eqn);
	if (err) {
		qhca_queue_buf_free(&core->dev, &eq->buf);
		return err;
	}
	/* pairs with the interrupt handlers */
	smp_store_release(&eq->made, true);
	/* earlier events raised a vector before there was a handler */
	eq_ring(eq, QHCA_DB_EQ_ARM);
	return 0;
}

static void eq_destroy(struct qhca_core *core, struct qhca_eq *eq)
{
	if (!eq->made)
		return;
	qhca_aq_destroy_sure(&core->dev, QHCA_CMD_DESTROY_EQ, eq->eqn);
	WRITE_ONCE(eq->made, false);
	synchronize_irq(eq->irq);
	eq->rec = NULL;
	qhca_queue_buf_free(&core->dev, &eq->buf);
}

/* Allocate the records of @n EQs, if the device supports them. 0 or -ENOMEM. */
static int eq_recs_alloc(struct qhca_core *core, u32 n)
{
	if (!(core->dev.caps.features & QHCA_FEAT_EQ_RECORD))
		return 0;
	core->eq_recs_len = n * EQ_REC_STRIDE;
	core->eq_recs = dma_alloc_coherent(qhca_dma_dev(&core->dev),
					   core->eq_recs_len,
					   &core->eq_recs_dma, GFP_KERNEL);
	return core->eq_recs ? 0 : -ENOMEM;
}

/* Create the asynchronous EQ and a completion EQ for each vector. */
int qhca_eqs_init(struct qhca_core *core)
{
	u32 n = min(core->num_irqs, core->dev.caps.max_eq);
	u32 i;
	int err;

	if (n < 2 || core->dev.caps.max_eq_depth < 2) {
		dev_err(qhca_dma_dev(&core->dev), "%u event queues, needs 2\n",
			core->dev.caps.max_eq);
		return -ENOSPC;
	}
	err = eq_recs_alloc(core, n);
	if (err)
		return err;
	for (i = 0; i < n; i++) {
		err = eq_create(core, &core->eqs[i],
				i ? EQ_COMP_SHIFT : EQ_ASYNC_SHIFT);
		if (err)
			goto err;
		core->num_eqs++;
		if (!i && core->eqs[0].eqn != QHCA_EQN_ASYNC) {
			dev_err(qhca_dma_dev(&core->dev),
				"asynchronous EQ got number %u\n",
				core->eqs[0].eqn);
			err = -EPROTO;
			goto err;
		}
	}
	core->dev.num_comp_vectors = n - 1;
	return 0;

err:
	qhca_eqs_free(core);
	return err;
}

/* Undo qhca_eqs_init(), completion EQs first. */
void qhca_eqs_free(struct qhca_core *core)
{
	while (core->num_eqs)
		eq_destroy(core, &core->eqs[--core->num_eqs]);
	if (core->eq_recs)
		dma_free_coherent(qhca_dma_dev(&core->dev), core->eq_recs_len,
				  core->eq_recs, core->eq_recs_dma);
	core->eq_recs = NULL;
}
