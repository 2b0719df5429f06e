// SPDX-License-Identifier: GPL-2.0
/* The life cycle of a send queue. */
#include <linux/log2.h>
#include <linux/slab.h>

#include "shaper.h"
#include "tx.h"
#include "xsk.h"

/* Undo qhca_tx_alloc(). NULL does nothing. */
void qhca_tx_free(struct qhca_tx_queue *q)
{
	if (!q)
		return;
	kvfree(q->segs);
	kvfree(q->bufs);
	qhca_queue_buf_free(q->priv->dev, &q->buf);
	qhca_net_cq_free(&q->cq);
	qhca_net_dbrecs_free(q->priv, &q->dbrecs);
	kfree(q);
}

/*
 * Allocate a send queue for @ch, which keeps using its current one. Returns the
 * queue, or an error pointer. Sleeps.
 */
struct qhca_tx_queue *qhca_tx_alloc(struct qhca_channel *ch,
				    const struct qhca_net_params *params)
{
	struct qhca_netdev *priv = ch->priv;
	u32 depth = params->tx_depth;
	struct qhca_tx_queue *q;
	int err;

	BUILD_BUG_ON(sizeof(struct qhca_eth_wqe) +
		     QHCA_ETH_MAX_SGE * sizeof(struct qhca_eth_seg) >
		     BIT(QHCA_TX_STRIDE));

	q = kzalloc(sizeof(*q), GFP_KERNEL);
	if (!q)
		return ERR_PTR(-ENOMEM);
	q->priv = priv;
	q->index = ch->index;
	q->txq = netdev_get_tx_queue(priv->netdev, ch->index);
	q->stats = &priv->tx_stats[ch->index];
	q->shift = ilog2(depth);
	q->xsk = ch->xsk_pool;
	err = qhca_net_dbrecs_alloc(priv, &q->dbrecs);
	if (err)
		goto err;
	err = qhca_net_cq_alloc(&q->cq, ch, q->shift, &q->dbrecs);
	if (err)
		goto err;
	err = qhca_queue_buf_alloc(priv->dev, &q->buf, depth << QHCA_TX_STRIDE);
	if (err)
		goto err;
	err = -ENOMEM;
	q->bufs = kvcalloc(depth, sizeof(*q->bufs), GFP_KERNEL);
	q->segs = kvcalloc((size_t)depth * QHCA_ETH_MAX_SGE, sizeof(*q->segs),
			   GFP_KERNEL);
	if (q->bufs && q->segs)
		return q;
err:
	qhca_tx_free(q);
	return ERR_PTR(err);
}

/*
 * Create the device's objects, with event moderation @c; sending may begin. On
 * error nothing is left behind. NAPI is off, and the stack's queue stopped.
 */
int qhca_tx_start(struct qhca_tx_queue *q, const struct qhca_coalesce *c)
{
	struct qhca_coalesce now = *c;
	struct qhca_eth_qc qc = {};
	int err;

	qhca_dim_tx_now(q->cq.ch, &now);
	q->prod = 0;
	q->rung = 0;
	q->cons = 0;
	qhca_xsk_tx_forget(q);
	err = qhca_net_cq_start(&q->cq, &now);
	if (err)
		return err;
	qc.buf = q->buf.table.desc;
	qc.cqn = cpu_to_le32(q->cq.cq.cqn);
	qc.shift = q->shift;
	qc.stride = QHCA_TX_STRIDE;
	q->shaper = qhca_shaper_of_queue(q->priv, q->index);
	qc.shaper = cpu_to_le32(q->shaper);
	err = qhca_aq_create(q->priv->dev, QHCA_CMD_CREATE_ETH_SQ, &qc,
			     sizeof(qc), &q->num);
	if (err) {
		qhca_net_cq_stop(&q->cq);
		return err;
	}
	WRITE_ONCE(q->cq.ch->sqn, q->num);
	netdev_tx_reset_queue(q->txq);
	/* frames without an skb also come while the stack's queue is stopped */
	__netif_tx_lock_bh(q->txq);
	q->made = true;
	__netif_tx_unlock_bh(q->txq);
	return 0;
}

/*
 * Undo qhca_tx_start(); frames not sent are dropped. NAPI is off, and the
 * stack's queue stopped. Does nothing if the queue was not started.
 */
void qhca_tx_stop(struct qhca_tx_queue *q)
{
	if (!q->made)
		return;
	__netif_tx_lock_bh(q->txq);
	q->made = false;
	/* a redirected frame may have woken it when it took completions */
	netif_tx_stop_queue(q->txq);
	__netif_tx_unlock_bh(q->txq);
	qhca_aq_destroy_sure(q->priv->dev, QHCA_CMD_DESTROY_ETH_SQ, q->num);
	WRITE_ONCE(q->cq.ch->sqn, QHCA_ETH_SQ_NONE);
	qhca_net_cq_stop(&q->cq);
	qhca_tx_drop_all(q);
	qhca_xsk_tx_forget(q);
	netdev_tx_reset_queue(q->txq);
}
