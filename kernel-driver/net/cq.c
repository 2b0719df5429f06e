// SPDX-License-Identifier: GPL-2.0
/* Completion queues of the net_device, and pages of doorbell records. */
#include <linux/dma-mapping.h>

#include "netdev.h"

static_assert(sizeof(struct qhca_eth_cqe) == sizeof(struct qhca_cqe));

int qhca_net_dbrecs_alloc(struct qhca_netdev *priv, struct qhca_net_dbrecs *d)
{
	d->recs = dma_alloc_coherent(qhca_dma_dev(priv->dev), SZ_4K, &d->dma,
				     GFP_KERNEL);
	return d->recs ? 0 : -ENOMEM;
}

void qhca_net_dbrecs_free(struct qhca_netdev *priv, struct qhca_net_dbrecs *d)
{
	if (d->recs)
		dma_free_coherent(qhca_dma_dev(priv->dev), SZ_4K, d->recs,
				  d->dma);
	d->recs = NULL;
}

static void net_cq_comp(struct qhca_core_cq *core_cq)
{
	struct qhca_net_cq *cq = container_of(core_cq, struct qhca_net_cq, cq);

	WRITE_ONCE(cq->armed, false);
	WRITE_ONCE(cq->events, cq->events + 1);
	napi_schedule_irqoff(&cq->ch->napi);
}

/*
 * Allocate a CQ of 1 << @shift entries for a queue of @ch, with the record
 * QHCA_DBREC_CQ of @dbrecs. 0 or -ENOMEM.
 */
int qhca_net_cq_alloc(struct qhca_net_cq *cq, struct qhca_channel *ch,
		      u8 shift, const struct qhca_net_dbrecs *dbrecs)
{
	cq->ch = ch;
	cq->shift = shift;
	cq->dbrec = &dbrecs->recs[QHCA_DBREC_CQ];
	cq->dbrec_dma = qhca_net_dbrec_dma(dbrecs, QHCA_DBREC_CQ);
	return qhca_queue_buf_alloc(ch->priv->dev, &cq->buf,
				    sizeof(struct qhca_eth_cqe) << shift);
}

/* Also valid if qhca_net_cq_alloc() has failed or was not called. */
void qhca_net_cq_free(struct qhca_net_cq *cq)
{
	if (cq->ch)
		qhca_queue_buf_free(cq->ch->priv->dev, &cq->buf);
}

/* Invalidate all entries: set the phase of the lap before the first. */
static void net_cq_clear(struct qhca_net_cq *cq)
{
	struct qhca_eth_cqe *cqe;
	u32 i;

	for (i = 0; i < BIT(cq->shift); i++) {
		cqe = qhca_queue_buf_ptr(&cq->buf, i * sizeof(*cqe));
		memset(cqe, 0, sizeof(*cqe));
	}
	memset(cq->dbrec, 0, sizeof(*cq->dbrec));
	cq->cons = 0;
}

/* From now on completions schedule NAPI. 0 or an error. */
static int net_cq_attach(struct qhca_net_cq *cq)
{
	int err;

	/* an event before registration is lost */
	WRITE_ONCE(cq->armed, false);
	err = qhca_cq_register(cq->ch->priv->dev, &cq->cq);
	cq->live = !err;
	return err;
}

/* Drop pending CQEs: a lap at most, whatever the device writes. */
static void net_cq_drain(struct qhca_net_cq *cq)
{
	struct qhca_eth_cqe cqe;
	u32 left = BIT(cq->shift);

	while (left-- && qhca_net_cq_next(cq, &cqe))
		;
	qhca_net_cq_publish(cq);
}

/*
 * Create the device's CQ; from now on its completions schedule NAPI. A CQ that
 * was only quiesced is reused, without its pending CQEs. On error nothing is
 * left behind.
 */
int qhca_net_cq_start(struct qhca_net_cq *cq,
		      const struct qhca_coalesce *coalesce)
{
	struct qhca_dev *dev = cq->ch->priv->dev;
	u16 vector = cq->ch->vector;
	struct qhca_cqc cqc = {};
	int err;

	if (cq->made) {
		net_cq_drain(cq);
		return net_cq_attach(cq);
	}
	net_cq_clear(cq);
	cqc.buf = cq->buf.table.desc;
	cqc.dbrec = cpu_to_le64(cq->dbrec_dma);
	cqc.eqn = cpu_to_le32(qhca_comp_vector_eqn(dev, vector));
	cqc.shift = cq->shift;
	cqc.mod_count = cpu_to_le16(coalesce->count);
	cqc.mod_usec = cpu_to_le16(coalesce->usec);
	err = qhca_aq_create(dev, QHCA_CMD_CREATE_CQ, &cqc, sizeof(cqc),
			     &cq->cq.cqn);
	if (err)
		return err;
	cq->cq.comp_vector = vector;
	cq->cq.comp = net_cq_comp;
	err = net_cq_attach(cq);
	if (err) {
		qhca_aq_destroy_sure(dev, QHCA_CMD_DESTROY_CQ, cq->cq.cqn);
		return err;
	}
	cq->made = true;
	return 0;
}

/* From now on completions no longer schedule NAPI. Sleeps. */
void qhca_net_cq_quiesce(struct qhca_net_cq *cq)
{
	if (cq->live)
		qhca_cq_unregister(cq->ch->priv->dev, &cq->cq);
	cq->live = false;
}

/* Undo qhca_net_cq_start(); NAPI is off and the queue destroyed. Sleeps. */
void qhca_net_cq_stop(struct qhca_net_cq *cq)
{
	struct qhca_dev *dev;

	if (!cq->made)
		return;
	dev = cq->ch->priv->dev;
	qhca_net_cq_quiesce(cq);
	qhca_aq_destroy_sure(dev, QHCA_CMD_DESTROY_CQ, cq->cq.cqn);
	cq->made = false;
}

/*
 * Take the next CQE, if there is one: a copy, so that checked data cannot
 * change, whatever the device writes.
 */
bool qhca_net_cq_next(struct qhca_net_cq *cq, struct qhca_eth_cqe *cqe)
{
	u32 slot = cq->cons & (BIT(cq->shift) - 1);
	const struct qhca_eth_cqe *entry;

	entry = qhca_queue_buf_ptr(&cq->buf, slot * sizeof(*entry));
	if (!qhca_phase_ok(READ_ONCE(entry->phase), cq->cons, cq->shift))
		return false;
	dma_rmb();	/* read the phase before the rest of the entry */
	*cqe = *entry;
	barrier();	/* the compiler must not read the entry again */
	cq->cons++;
	return true;
}

/* Let the device overwrite all CQEs taken. */
void qhca_net_cq_publish(struct qhca_net_cq *cq)
{
	dma_mb();	/* they have been read */
	WRITE_ONCE(cq->dbrec->index, cpu_to_le32(cq->cons));
}

/*
 * Request an event; it comes at once if there is a CQE not yet taken and not
 * yet reported. A CQ that is still armed, because another one caused the poll,
 * needs no doorbell.
 */
void qhca_net_cq_arm(struct qhca_net_cq *cq)
{
	if (READ_ONCE(cq->armed) && READ_ONCE(cq->armed_cons) == cq->cons)
		return;
	WRITE_ONCE(cq->armed_cons, cq->cons);
	/* before the event can come */
	WRITE_ONCE(cq->armed, true);
	qhca_db_ring(cq->ch->priv->dev, QHCA_DB_CQ_ARM, cq->cq.cqn, 0,
		     cq->cons);
}

/* Change the event moderation. 0 or an error. */
int qhca_net_cq_moderate(struct qhca_net_cq *cq,
			 const struct qhca_coalesce *coalesce)
{
	struct qhca_cqc cqc = {
		.mod_count = cpu_to_le16(coalesce->count),
		.mod_usec = cpu_to_le16(coalesce->usec),
	};

	/* one that could not be restarted gets it when it is */
	if (!cq->made)
		return 0;
	return qhca_aq_modify(cq->ch->priv->dev, QHCA_CMD_MODIFY_CQ,
			      cq->cq.cqn, QHCA_CQ_M_MODERATION, &cqc,
			      sizeof(cqc));
}
