// SPDX-License-Identifier: GPL-2.0
/* Completion queues of the net_device. */
#include "netdev.h"

static void net_cq_comp(struct qhca_core_cq *core_cq)
{
	struct qhca_net_cq *cq = container_of(core_cq, struct qhca_net_cq, cq);

	napi_schedule_irqoff(&cq->priv->napi);
}

/*
 * Make a CQ of 1 << @shift entries with its record at index @dbrec of
 * priv->dbrecs; on error nothing is left behind.
 */
int qhca_net_cq_create(struct qhca_netdev *priv, struct qhca_net_cq *cq,
		       u8 shift, int dbrec,
		       const struct qhca_coalesce *coalesce)
{
	struct qhca_dev *dev = priv->dev;
	struct qhca_cqc cqc = {};
	int err;

	memset(cq, 0, sizeof(*cq));
	cq->priv = priv;
	cq->shift = shift;
	cq->dbrec = &priv->dbrecs[dbrec];
	memset(cq->dbrec, 0, sizeof(*cq->dbrec));
	err = qhca_queue_buf_alloc(dev, &cq->buf,
				   sizeof(struct qhca_cqe) << shift);
	if (err)
		return err;
	cqc.buf = cq->buf.table.desc;
	cqc.dbrec = cpu_to_le64(qhca_netdev_dbrec_dma(priv, cq->dbrec));
	cqc.eqn = cpu_to_le32(qhca_comp_vector_eqn(dev, 0));
	cqc.shift = shift;
	cqc.mod_count = cpu_to_le16(coalesce->count);
	cqc.mod_usec = cpu_to_le16(coalesce->usec);
	err = qhca_aq_create(dev, QHCA_CMD_CREATE_CQ, &cqc, sizeof(cqc),
			     &cq->cq.cqn);
	if (err)
		goto err_buf;
	cq->cq.comp_vector = 0;
	cq->cq.comp = net_cq_comp;
	err = qhca_cq_register(dev, &cq->cq);
	if (err)
		goto err_cq;
	cq->made = true;
	return 0;

err_cq:
	qhca_aq_destroy_sure(dev, QHCA_CMD_DESTROY_CQ, cq->cq.cqn);
err_buf:
	qhca_queue_buf_free(dev, &cq->buf);
	return err;
}

/* From now on completions do not schedule NAPI any more. Sleeps. */
void qhca_net_cq_quiesce(struct qhca_net_cq *cq)
{
	if (cq->made)
		qhca_cq_unregister(cq->priv->dev, &cq->cq);
}

/* After qhca_net_cq_quiesce(), with NAPI off and the queue gone. */
void qhca_net_cq_destroy(struct qhca_net_cq *cq)
{
	struct qhca_dev *dev;

	if (!cq->made)
		return;
	dev = cq->priv->dev;
	qhca_aq_destroy_sure(dev, QHCA_CMD_DESTROY_CQ, cq->cq.cqn);
	cq->made = false;
	qhca_queue_buf_free(dev, &cq->buf);
}

/* Take the next CQE, or NULL. It stays valid until qhca_net_cq_publish(). */
struct qhca_cqe *qhca_net_cq_next(struct qhca_net_cq *cq)
{
	u32 slot = cq->cons & (BIT(cq->shift) - 1);
	struct qhca_cqe *cqe;

	cqe = qhca_queue_buf_ptr(&cq->buf, slot * sizeof(*cqe));
	if (!qhca_phase_ok(READ_ONCE(cqe->phase), cq->cons, cq->shift))
		return NULL;
	dma_rmb();	/* the rest of the entry is as old as the phase */
	cq->cons++;
	return cqe;
}

/* Let the device write over all CQEs taken. */
void qhca_net_cq_publish(struct qhca_net_cq *cq)
{
	dma_mb();	/* they have been read */
	WRITE_ONCE(cq->dbrec->index, cpu_to_le32(cq->cons));
}

/* Ask for an event; it comes at once if there is a CQE not yet taken. */
void qhca_net_cq_arm(struct qhca_net_cq *cq)
{
	qhca_db_ring(cq->priv->dev, QHCA_DB_CQ_ARM, cq->cq.cqn, 0,
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

	return qhca_aq_modify(cq->priv->dev, QHCA_CMD_MODIFY_CQ,
			      cq->cq.cqn, QHCA_CQ_M_MODERATION, &cqc,
			      sizeof(cqc));
}
