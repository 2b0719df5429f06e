// SPDX-License-Identifier: GPL-2.0
/*
 * Channels: each is a NAPI instance on a completion vector, for a pair of
 * queues.
 */
#include "netdev.h"
#include "xsk.h"

/* interval after which applications may have returned buffers */
#define REFILL_WAIT	(HZ / 50 + 1)

static int channel_poll(struct napi_struct *napi, int budget)
{
	struct qhca_channel *ch = container_of(napi, struct qhca_channel, napi);
	bool more = qhca_tx_poll(ch->tx, budget);
	int done;

	if (!budget)	/* netpoll: sending only */
		return 0;
	if (ch->tx->xsk)
		more |= qhca_xsk_tx(ch->tx);
	done = qhca_rx_poll(ch->rx, budget);
	if (more || done == budget)
		return budget;
	if (qhca_rx_short(ch->rx) ||
	    (ch->rx->xsk && qhca_xsk_wants_timer(ch->rx)))
		mod_timer(&ch->refill, jiffies + REFILL_WAIT);
	qhca_dim_poll(ch);
	if (napi_complete_done(napi, done)) {
		if (likely(qhca_rx_works(ch->rx)))
			qhca_net_cq_arm(&ch->rx->cq);
		qhca_tx_arm(ch->tx);
	}
	return done;
}

static void channel_refill(struct timer_list *timer)
{
	struct qhca_channel *ch = container_of(timer, struct qhca_channel,
					       refill);

	napi_schedule(&ch->napi);
}

/* Initialize channel @index of @priv, once in the life of the net_device. */
void qhca_channel_init(struct qhca_netdev *priv, u32 index)
{
	struct qhca_channel *ch = &priv->ch[index];

	ch->priv = priv;
	ch->index = index;
	ch->rqn = QHCA_ETH_RQ_NONE;
	ch->sqn = QHCA_ETH_SQ_NONE;
	qhca_dim_init(ch);
	timer_setup(&ch->refill, channel_refill, 0);
}

/* Create its NAPI instance, disabled. Under qhca_netdev_lock(). */
void qhca_channel_add(struct qhca_channel *ch)
{
	qhca_napi_add(ch->priv->netdev, &ch->napi, channel_poll, ch->index);
}

/* Undo qhca_channel_add(). NAPI must be off. */
void qhca_channel_del(struct qhca_channel *ch)
{
	qhca_napi_del(&ch->napi);
}

/* Choose the vector of its queues. NAPI is off. */
void qhca_channel_set_vector(struct qhca_channel *ch)
{
	struct qhca_dev *dev = ch->priv->dev;

	/* the vectors may differ after a reset */
	ch->vector = ch->index % dev->num_comp_vectors;
	qhca_napi_set_irq(&ch->napi, qhca_comp_vector_irq(dev, ch->vector));
}

/* Make it poll now. Process context. */
void qhca_channel_look(struct qhca_channel *ch)
{
	local_bh_disable();
	napi_schedule(&ch->napi);
	local_bh_enable();	/* NAPI runs here */
}

/*
 * With started queues: take completions, and associate the queues with this
 * NAPI.
 */
void qhca_channel_enable(struct qhca_channel *ch)
{
	struct net_device *netdev = ch->priv->netdev;

	qhca_dim_start(ch);
	qhca_napi_enable(&ch->napi);
	netif_queue_set_napi(netdev, ch->index, NETDEV_QUEUE_TYPE_RX,
			     &ch->napi);
	netif_queue_set_napi(netdev, ch->index, NETDEV_QUEUE_TYPE_TX,
			     &ch->napi);
	/*
	 * An event while NAPI was off was ignored, and does not come again:
	 * poll, and arm the CQs afterwards.
	 */
	qhca_channel_look(ch);
}

/* NAPI neither runs nor starts after this returns. Sleeps. */
void qhca_channel_disable(struct qhca_channel *ch)
{
	struct net_device *netdev = ch->priv->netdev;

	netif_queue_set_napi(netdev, ch->index, NETDEV_QUEUE_TYPE_RX, NULL);
	netif_queue_set_napi(netdev, ch->index, NETDEV_QUEUE_TYPE_TX, NULL);
	qhca_napi_disable(&ch->napi);
	qhca_dim_cancel(ch);
	timer_delete_sync(&ch->refill);
}
