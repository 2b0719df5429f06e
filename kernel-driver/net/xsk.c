// SPDX-License-Identifier: GPL-2.0
/*
 * Zero-copy AF_XDP sockets: a channel takes the pool of a socket, and gives it
 * back. Its queues are replaced for that, while the other channels keep
 * running.
 */
#include <linux/if_vlan.h>
#include <net/xdp_sock_drv.h>

#include "xdp.h"
#include "xsk.h"

/* Called before the net_device is registered. */
void qhca_xsk_init(struct net_device *netdev)
{
	netdev->xdp_zc_max_segs = QHCA_XSK_MAX_SEGS;
	netdev->xsk_tx_metadata_ops = &qhca_xsk_tx_metadata_ops;
}

/* Can queues with @pool receive frames of an MTU of @mtu? */
static bool xsk_holds(struct xsk_buff_pool *pool, u32 mtu)
{
	u32 len = xsk_pool_get_rx_frame_size(pool);

	/* chunk size without the application's headroom */
	if (!len || len > xsk_pool_get_chunk_size(pool))
		return false;
	if (pool->umem->flags & XDP_UMEM_SG_FLAG)
		return len * QHCA_RX_MAX_BUFS >= QHCA_ETH_MAX_FRAME;
	return len >= mtu + VLAN_ETH_HLEN;
}

/* Can all channels with a pool do so? Under qhca_netdev_lock(). */
bool qhca_xsk_mtu_ok(struct qhca_netdev *priv, u32 mtu)
{
	int i;

	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		if (priv->ch[i].xsk_pool &&
		    !xsk_holds(priv->ch[i].xsk_pool, mtu))
			return false;
	}
	return true;
}

/* Does any channel have a pool? Under qhca_netdev_lock(). */
bool qhca_xsk_in_use(const struct qhca_netdev *priv)
{
	int i;

	for (i = 0; i < QHCA_MAX_CHANNELS; i++) {
		if (priv->ch[i].xsk_pool)
			return true;
	}
	return false;
}

/*
 * Returns 0, or the error for the application; bind() has no way to give a
 * reason.
 */
static int xsk_check(struct qhca_netdev *priv, struct xsk_buff_pool *pool,
		     u16 index)
{
	if (index >= priv->params.channels) {
		netdev_dbg(priv->netdev, "no AF_XDP on queue %u of %u\n",
			   index, priv->params.channels);
		return -EINVAL;
	}
	if (priv->ch[index].xsk_pool)
		return -EBUSY;
	if (priv->params.split) {
		netdev_info(priv->netdev,
			    "no AF_XDP without a copy while headers are split from data (tcp-data-split)\n");
		return -EOPNOTSUPP;
	}
	if (!xsk_holds(pool, priv->netdev->mtu)) {
		netdev_info(priv->netdev,
			    "AF_XDP buffers of %u bytes are too small for an MTU of %u without XDP_USE_SG\n",
			    xsk_pool_get_rx_frame_size(pool),
			    priv->netdev->mtu);
		return -EINVAL;
	}
	return 0;
}

/* Stop all posting to the send queue of @ch, whose NAPI is off. */
static void xsk_stop_tx(struct qhca_channel *ch)
{
	struct netdev_queue *txq = ch->tx->txq;

	__netif_tx_lock_bh(txq);
	txq_trans_cond_update(txq);	/* the watchdog may run meanwhile */
	netif_tx_stop_queue(txq);
	__netif_tx_unlock_bh(txq);
	qhca_tx_stop(ch->tx);
}

/*
 * Restart the send queue with or without @pool. On failure, health recovery
 * recreates it.
 */
static void xsk_start_tx(struct qhca_channel *ch, struct xsk_buff_pool *pool)
{
	struct qhca_netdev *priv = ch->priv;

	ch->tx->xsk = pool;
	if (qhca_tx_start(ch->tx, &priv->params.tx_coalesce[ch->index]))
		qhca_health_report(priv->dev, QHCA_NETDEV_REPORT_TX);
}

/*
 * Switch the channel's queues to @ch->xsk_pool, which may be NULL. 0, or an
 * error of the receive queue: queues without a pool continue as before, others
 * may be stopped. Under qhca_netdev_lock().
 */
static int xsk_exchange(struct qhca_channel *ch)
{
	const struct qhca_net_params *params = &ch->priv->params;
	const struct qhca_coalesce *c = &params->rx_coalesce[ch->index];
	struct qhca_rx_queue *rx, *was = ch->rx;
	int err;

	rx = qhca_rx_alloc(ch, params);
	if (IS_ERR(rx))
		return PTR_ERR(rx);
	qhca_channel_disable(ch);
	err = qhca_rx_suspend(was);
	if (err) {
		qhca_rx_free(rx);
		qhca_channel_enable(ch);
		return err;
	}
	xsk_stop_tx(ch);
	err = qhca_rx_start(rx, c);
	if (!err) {
		ch->rx = rx;
		qhca_rx_free(was);
	} else {
		qhca_rx_free(rx);
		if (!was->xsk && qhca_rx_start(was, c))
			qhca_health_report(ch->priv->dev,
					   QHCA_NETDEV_REPORT_RX);
	}
	xsk_start_tx(ch, err ? NULL : ch->xsk_pool);
	qhca_channel_enable(ch);
	if (ch->tx->made)
		netif_tx_wake_queue(ch->tx->txq);
	return err;
}

/*
 * Map the pool for the device, and tell its buffers their channel. 0 or an
 * error.
 */
static int xsk_prepare(struct qhca_channel *ch, struct xsk_buff_pool *pool)
{
	struct device *dma = qhca_dma_dev(ch->priv->dev);
	int err;

	err = xsk_pool_dma_map(pool, dma, DMA_ATTR_SKIP_CPU_SYNC);
	if (err)
		return err;
	err = __xdp_rxq_info_reg(&ch->xsk_rxq, ch->priv->netdev, ch->index,
				 ch->napi.napi_id, qhca_xsk_frag_step(pool));
	if (err)
		goto err_map;
	err = xdp_rxq_info_reg_mem_model(&ch->xsk_rxq, MEM_TYPE_XSK_BUFF_POOL,
					 NULL);
	if (err)
		goto err_rxq;
	xsk_pool_set_rxq_info(pool, &ch->xsk_rxq);
	return 0;

err_rxq:
	xdp_rxq_info_unreg(&ch->xsk_rxq);
err_map:
	xsk_pool_dma_unmap(pool, DMA_ATTR_SKIP_CPU_SYNC);
	return err;
}

/* Undo xsk_prepare(). */
static void xsk_release(struct qhca_channel *ch, struct xsk_buff_pool *pool)
{
	xdp_rxq_info_unreg(&ch->xsk_rxq);
	xsk_pool_dma_unmap(pool, DMA_ATTR_SKIP_CPU_SYNC);
}

static int xsk_join(struct qhca_channel *ch, struct xsk_buff_pool *pool)
{
	struct qhca_netdev *priv = ch->priv;
	int err;

	err = xsk_check(priv, pool, ch->index) ?: xsk_prepare(ch, pool);
	if (err)
		return err;
	ch->xsk_pool = pool;
	/* otherwise its queues are created with the pool */
	err = priv->up ? xsk_exchange(ch) : 0;
	if (err) {
		netdev_info(priv->netdev, "queue %u not changed for AF_XDP: %d\n",
			    ch->index, err);
		ch->xsk_pool = NULL;
		xsk_release(ch, pool);
	}
	return err;
}

/* It cannot fail: the memory goes away, so the device must use none of it. */
static void xsk_leave(struct qhca_channel *ch)
{
	struct xsk_buff_pool *pool = ch->xsk_pool;
	struct qhca_netdev *priv = ch->priv;

	if (!pool)
		return;
	ch->xsk_pool = NULL;
	if (priv->up && xsk_exchange(ch)) {
		/* memory is short, or the device refuses: no queues */
		netdev_err(priv->netdev, "queue %u does not leave AF_XDP\n",
			   ch->index);
		qhca_netdev_down(priv);
		qhca_health_report(priv->dev, QHCA_NETDEV_REPORT_RX);
	}
	xsk_release(ch, pool);
}

/**
 * qhca_xsk_setup_pool - a channel takes a pool, or gives back the one it has
 * @priv: net_device
 * @pool: pool, NULL to give back
 * @index: channel
 *
 * Under qhca_netdev_lock(). Sleeps.
 *
 * Return: 0 or an error, always 0 without @pool.
 */
int qhca_xsk_setup_pool(struct qhca_netdev *priv, struct xsk_buff_pool *pool,
			u16 index)
{
	if (index >= QHCA_MAX_CHANNELS)
		return -EINVAL;
	if (pool)
		return xsk_join(&priv->ch[index], pool);
	xsk_leave(&priv->ch[index]);
	return 0;
}

/* ndo_xsk_wakeup: an application has filled a ring. */
int qhca_xsk_wakeup(struct net_device *netdev, u32 index, u32 flags)
{
	struct qhca_netdev *priv = netdev_priv(netdev);

	if (unlikely(!READ_ONCE(priv->up)))
		return -ENETDOWN;
	if (unlikely(index >= READ_ONCE(priv->num_ch) ||
		     !READ_ONCE(priv->ch[index].xsk_pool)))
		return -EINVAL;
	/* NAPI polls when it is enabled again */
	qhca_channel_look(&priv->ch[index]);
	return 0;
}
