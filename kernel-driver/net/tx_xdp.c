// SPDX-License-Identifier: GPL-2.0
/*
 * Sending frames without an skb: those that XDP programs send back, and those
 * redirected from other devices. They use the stack's queues, under their
 * locks.
 */
#include <linux/dma-mapping.h>
#include <net/page_pool/helpers.h>

#include "tx.h"
#include "xdp.h"

static struct skb_frag *frame_frags(struct xdp_frame *frame, u32 *n)
{
	struct skb_shared_info *info = xdp_get_shared_info_from_frame(frame);

	*n = xdp_frame_has_frags(frame) ? info->nr_frags : 0;
	return info->frags;
}

/* A piece of a page of our receive pool, which stays mapped. */
static void xdp_map_own(struct qhca_tx_queue *q, struct page *page, u32 off,
			u32 len, struct qhca_tx_seg *seg)
{
	seg->addr = page_pool_get_dma_addr(page) + off;
	seg->len = len;
	dma_sync_single_for_device(qhca_dma_dev(q->priv->dev), seg->addr, len,
				   DMA_BIDIRECTIONAL);
}

static u16 xdp_fill_own(struct qhca_tx_queue *q, struct xdp_frame *frame,
			struct qhca_tx_seg *segs)
{
	struct page *page = virt_to_head_page(frame->data);
	u32 i, n;
	skb_frag_t *frags = frame_frags(frame, &n);

	xdp_map_own(q, page, frame->data - page_address(page), frame->len,
		    &segs[0]);
	for (i = 0; i < n; i++)
		xdp_map_own(q, skb_frag_page(&frags[i]),
			    skb_frag_off(&frags[i]), skb_frag_size(&frags[i]),
			    &segs[i + 1]);
	return n + 1;
}

/* Number of segments, or -ENOMEM. */
static int xdp_map(struct qhca_tx_queue *q, struct xdp_frame *frame,
		   struct qhca_tx_seg *segs)
{
	u32 n;
	skb_frag_t *frags = frame_frags(frame, &n);

	return qhca_tx_map(q, frame->data, frame->len, frags, n, segs);
}

/* Under the lock of the stack's queue. False: the caller keeps the frame. */
static bool xdp_post(struct qhca_tx_queue *q, struct xdp_frame *frame, bool own,
		     const struct qhca_eth_wqe *offloads)
{
	struct qhca_tx_buf buf = {
		.frame = frame,
		.kind = own ? QHCA_TX_OWN_FRAME : QHCA_TX_FRAME,
		.bytes = xdp_get_frame_len(frame),
		.packets = 1,
	};
	struct qhca_tx_seg *segs;
	u32 nfrags;
	int n;

	frame_frags(frame, &nfrags);
	/* only kernels with larger frames have more fragments than that */
	if (unlikely(!qhca_tx_room(q) || nfrags >= QHCA_ETH_MAX_SGE))
		goto dropped;
	segs = qhca_tx_segs(q);
	n = own ? xdp_fill_own(q, frame, segs) : xdp_map(q, frame, segs);
	if (unlikely(n < 0))
		goto dropped;
	buf.nsegs = n;
	qhca_tx_post(q, &buf, offloads);
	qhca_stat_inc(&q->stats->sync, &q->stats->xdp_xmit);
	return true;

dropped:
	qhca_stat_inc(&q->stats->sync, &q->stats->xdp_drops);
	return false;
}

/**
 * qhca_xdp_tx - send back a frame that a queue of the channel received
 * @ch: channel
 * @frame: the frame
 * @own: its buffers are of the queue's pool
 * @offloads: flags and fields of its WQE
 *
 * In the channel's NAPI; qhca_xdp_tx_flush() follows.
 *
 * Return: false if there is no room; the caller keeps the frame.
 */
bool qhca_xdp_tx(struct qhca_channel *ch, struct xdp_frame *frame, bool own,
		 const struct qhca_eth_wqe *offloads)
{
	struct qhca_tx_queue *q = ch->tx;
	bool sent;

	__netif_tx_lock(q->txq, smp_processor_id());
	/* it may have failed to restart */
	sent = q->made && xdp_post(q, frame, own, offloads);
	__netif_tx_unlock(q->txq);
	return sent;
}

/* Tell the device about what qhca_xdp_tx() has posted. */
void qhca_xdp_tx_flush(struct qhca_channel *ch)
{
	struct qhca_tx_queue *q = ch->tx;

	__netif_tx_lock(q->txq, smp_processor_id());
	qhca_tx_flush(q);
	__netif_tx_unlock(q->txq);
}

/* ndo_xdp_xmit: returns the number taken; the caller keeps the others. */
int qhca_xdp_xmit(struct net_device *netdev, int n, struct xdp_frame **frames,
		  u32 flags)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	u32 i = smp_processor_id() % netdev->real_num_tx_queues;
	struct netdev_queue *txq = netdev_get_tx_queue(netdev, i);
	struct qhca_tx_queue *q;
	int sent = -ENETDOWN;

	if (unlikely(flags & ~XDP_XMIT_FLAGS_MASK))
		return -EINVAL;
	if (unlikely(!netif_carrier_ok(netdev)))
		return sent;
	__netif_tx_lock(txq, smp_processor_id());
	/* removing queues clears "up" and then takes all these locks */
	q = READ_ONCE(priv->up) ? priv->ch[i].tx : NULL;
	if (q && q->made) {
		for (sent = 0; sent < n; sent++) {
			if (!xdp_post(q, frames[sent], false, NULL))
				break;
		}
		if (flags & XDP_XMIT_FLUSH)
			qhca_tx_flush(q);
	}
	__netif_tx_unlock(txq);
	return sent;
}
