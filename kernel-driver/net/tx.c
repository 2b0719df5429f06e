// SPDX-License-Identifier: GPL-2.0
/* Ethernet transmit: skb to WQE, and back when it is sent. */
#include <linux/dma-mapping.h>
#include <linux/if_vlan.h>
#include <net/netdev_queues.h>

#include "netdev.h"

#define TX_MAX_SEGS	QHCA_ETH_MAX_SGE
/* wake the queue when this much is free again */
#define TX_WAKE(q)	(BIT((q)->shift) / 4)

static struct qhca_eth_wqe *tx_wqe(struct qhca_txq *q, u32 index)
{
	u32 slot = index & (BIT(q->shift) - 1);

	return qhca_queue_buf_ptr(&q->buf, (size_t)slot << QHCA_TX_STRIDE);
}

static struct qhca_tx_buf *tx_buf(struct qhca_txq *q, u32 index)
{
	return &q->bufs[index & (BIT(q->shift) - 1)];
}

static struct qhca_tx_seg *tx_segs(struct qhca_txq *q, u32 index)
{
	return &q->segs[(index & (BIT(q->shift) - 1)) * (size_t)TX_MAX_SEGS];
}

static u32 tx_free_entries(struct qhca_txq *q)
{
	return BIT(q->shift) - (q->prod - READ_ONCE(q->cons));
}

/* The first segment was mapped as one piece, the others are page fragments. */
static void tx_unmap(struct qhca_netdev *priv, const struct qhca_tx_seg *segs,
		     u16 nsegs)
{
	struct device *dma = qhca_dma_dev(priv->dev);
	u16 i;

	for (i = 0; i < nsegs; i++) {
		if (i)
			dma_unmap_page(dma, segs[i].addr, segs[i].len,
				       DMA_TO_DEVICE);
		else
			dma_unmap_single(dma, segs[i].addr, segs[i].len,
					 DMA_TO_DEVICE);
	}
}

/* Returns the number of segments, or -ENOMEM with nothing left mapped. */
static int tx_map(struct qhca_netdev *priv, struct sk_buff *skb,
		  struct qhca_tx_seg *segs)
{
	struct device *dma = qhca_dma_dev(priv->dev);
	dma_addr_t addr;
	int i, n = 0;

	addr = dma_map_single(dma, skb->data, skb_headlen(skb), DMA_TO_DEVICE);
	if (dma_mapping_error(dma, addr))
		return -ENOMEM;
	segs[n].addr = addr;
	segs[n++].len = skb_headlen(skb);
	for (i = 0; i < skb_shinfo(skb)->nr_frags; i++) {
		skb_frag_t *frag = &skb_shinfo(skb)->frags[i];
		u32 len = skb_frag_size(frag);

		if (!len)
			continue;
		addr = skb_frag_dma_map(dma, frag, 0, len, DMA_TO_DEVICE);
		if (dma_mapping_error(dma, addr)) {
			tx_unmap(priv, segs, n);
			return -ENOMEM;
		}
		segs[n].addr = addr;
		segs[n++].len = len;
	}
	return n;
}

static void tx_fill_segs(struct qhca_eth_wqe *wqe,
			 const struct qhca_tx_seg *segs, u16 nsegs)
{
	struct qhca_eth_seg *seg = (struct qhca_eth_seg *)(wqe + 1);
	u16 i;

	memset(seg, 0, nsegs * sizeof(*seg));
	for (i = 0; i < nsegs; i++) {
		seg[i].addr = cpu_to_le64(segs[i].addr);
		seg[i].len = cpu_to_le32(segs[i].len);
	}
}

static void tx_fill_header(struct sk_buff *skb, struct qhca_eth_wqe *wqe,
			   u16 nsegs)
{
	memset(wqe, 0, sizeof(*wqe));
	wqe->opcode = QHCA_WQE_ETH_SEND;
	wqe->flags = QHCA_WQE_F_SIGNALED;
	wqe->num_sge = cpu_to_le16(nsegs);
	if (skb->ip_summed == CHECKSUM_PARTIAL) {
		wqe->flags |= QHCA_WQE_F_ETH_CSUM;
		wqe->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
		wqe->csum_offset = cpu_to_le16(skb->csum_offset);
	}
	if (skb_vlan_tag_present(skb)) {
		wqe->flags |= QHCA_WQE_F_ETH_VLAN;
		wqe->vlan = cpu_to_le16(skb_vlan_tag_get(skb));
	}
}

static void tx_ring(struct qhca_netdev *priv, struct qhca_txq *q)
{
	if (q->rung == q->prod)
		return;
	q->rung = q->prod;
	qhca_db_ring(priv->dev, QHCA_DB_ETH_SQ, q->num, 0, q->prod);
}

netdev_tx_t qhca_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct netdev_queue *txq = netdev_get_tx_queue(netdev, 0);
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_txq *q = &priv->txq;
	struct qhca_eth_wqe *wqe;
	struct qhca_tx_buf *buf;
	int nsegs;

	if (unlikely(!tx_free_entries(q))) {
		/* cannot be: the queue was stopped before */
		netif_tx_stop_queue(txq);
		tx_ring(priv, q);
		return NETDEV_TX_BUSY;
	}
	if (skb_put_padto(skb, ETH_ZLEN))
		goto dropped;
	if (unlikely(skb_shinfo(skb)->nr_frags >= TX_MAX_SEGS)) {
		/* only on kernels with more fragments than the device takes */
		priv->tx_linearized++;
		if (skb_linearize(skb))
			goto drop;
	}

	nsegs = tx_map(priv, skb, tx_segs(q, q->prod));
	if (nsegs < 0)
		goto drop;
	wqe = tx_wqe(q, q->prod);
	tx_fill_header(skb, wqe, nsegs);
	tx_fill_segs(wqe, tx_segs(q, q->prod), nsegs);
	buf = tx_buf(q, q->prod);
	buf->skb = skb;
	buf->nsegs = nsegs;
	buf->bytes = skb->len;
	skb_tx_timestamp(skb);
	q->prod++;
	if (!netif_txq_maybe_stop(txq, tx_free_entries(q), 1, TX_WAKE(q)))
		priv->tx_busy++;
	if (__netdev_tx_sent_queue(txq, buf->bytes, netdev_xmit_more()))
		tx_ring(priv, q);
	return NETDEV_TX_OK;

drop:
	dev_kfree_skb_any(skb);
dropped:
	DEV_STATS_INC(netdev, tx_dropped);
	/* those before it may have waited for this one's doorbell */
	if (!netdev_xmit_more())
		tx_ring(priv, q);
	return NETDEV_TX_OK;
}

static void tx_complete_one(struct qhca_netdev *priv, struct qhca_txq *q,
			    u32 index, int budget, u32 *bytes)
{
	struct qhca_tx_buf *buf = tx_buf(q, index);

	tx_unmap(priv, tx_segs(q, index), buf->nsegs);
	*bytes += buf->bytes;
	napi_consume_skb(buf->skb, budget);
	buf->skb = NULL;
}

/*
 * Take completions of sent frames, a lap of the ring at most. Returns true if
 * there may be more. Runs in NAPI context, with budget 0 from netpoll.
 */
bool qhca_tx_poll(struct qhca_netdev *priv, int budget)
{
	struct netdev_queue *txq = netdev_get_tx_queue(priv->netdev, 0);
	struct qhca_txq *q = &priv->txq;
	u32 left = BIT(q->shift), cons = q->cons, packets = 0, bytes = 0;
	struct qhca_cqe *cqe = NULL;
	bool taken = false;

	while (left-- && (cqe = qhca_net_cq_next(&q->cq))) {
		u32 index = le32_to_cpu(cqe->wqe_index);
		u32 n = index - cons + 1;

		taken = true;
		if (unlikely(cqe->status != QHCA_WC_SUCCESS)) {
			DEV_STATS_INC(priv->netdev, tx_errors);
			netdev_dbg(priv->netdev,
				   "send: status %u syndrome %#x\n",
				   cqe->status, cqe->syndrome);
		}
		/* pairs with nothing: prod is only compared, never trusted */
		if (unlikely(!n || n > READ_ONCE(q->prod) - cons)) {
			netdev_warn_once(priv->netdev,
					 "completion of send WQE %u, which is not there\n",
					 index);
			continue;
		}
		while (n--) {
			tx_complete_one(priv, q, cons++, budget, &bytes);
			packets++;
		}
	}
	/* also those that made no sense: they do not come again */
	if (taken)
		qhca_net_cq_publish(&q->cq);
	if (!packets)
		return cqe;
	/*
	 * The slots may be written again once this is seen. The CQ has room for
	 * as many completions as there are slots, so not before it is told.
	 */
	smp_store_release(&q->cons, cons);
	dev_sw_netstats_tx_add(priv->netdev, packets, bytes);
	__netif_txq_completed_wake(txq, packets, bytes, tx_free_entries(q),
				   TX_WAKE(q), !READ_ONCE(priv->up));
	return cqe;
}

int qhca_tx_create(struct qhca_netdev *priv)
{
	struct qhca_dev *dev = priv->dev;
	struct qhca_txq *q = &priv->txq;
	struct qhca_eth_qc qc = {};
	int err;

	BUILD_BUG_ON(sizeof(struct qhca_eth_wqe) +
		     TX_MAX_SEGS * sizeof(struct qhca_eth_seg) >
		     BIT(QHCA_TX_STRIDE));

	memset(q, 0, sizeof(*q));
	q->shift = ilog2(priv->tx_depth);
	err = qhca_net_cq_create(priv, &q->cq, q->shift, QHCA_DBREC_TX_CQ,
				 &priv->tx_coalesce);
	if (err)
		return err;
	q->bufs = kvcalloc(priv->tx_depth, sizeof(*q->bufs), GFP_KERNEL);
	q->segs = kvcalloc((size_t)priv->tx_depth * TX_MAX_SEGS,
			   sizeof(*q->segs), GFP_KERNEL);
	if (!q->bufs || !q->segs) {
		err = -ENOMEM;
		goto err;
	}
	err = qhca_queue_buf_alloc(dev, &q->buf,
				   priv->tx_depth << QHCA_TX_STRIDE);
	if (err)
		goto err;
	qc.buf = q->buf.table.desc;
	qc.cqn = cpu_to_le32(q->cq.cq.cqn);
	qc.shift = q->shift;
	qc.stride = QHCA_TX_STRIDE;
	err = qhca_aq_create(dev, QHCA_CMD_CREATE_ETH_SQ, &qc, sizeof(qc),
			     &q->num);
	if (err)
		goto err;
	q->made = true;
	netdev_tx_reset_queue(netdev_get_tx_queue(priv->netdev, 0));
	return 0;

err:
	qhca_net_cq_quiesce(&q->cq);
	qhca_tx_destroy(priv);
	return err;
}

/* The device stops sending; no interrupt of this queue comes any more. */
void qhca_tx_stop(struct qhca_netdev *priv)
{
	struct qhca_txq *q = &priv->txq;

	if (!q->made)
		return;
	qhca_aq_destroy_sure(priv->dev, QHCA_CMD_DESTROY_ETH_SQ, q->num);
	q->made = false;
	qhca_net_cq_quiesce(&q->cq);
}

/* After qhca_tx_stop(), with NAPI off: frames not sent are dropped. */
void qhca_tx_destroy(struct qhca_netdev *priv)
{
	struct qhca_txq *q = &priv->txq;
	u32 bytes = 0;

	for (; q->bufs && q->cons != q->prod; q->cons++) {
		tx_complete_one(priv, q, q->cons, 0, &bytes);
		DEV_STATS_INC(priv->netdev, tx_dropped);
	}
	netdev_tx_reset_queue(netdev_get_tx_queue(priv->netdev, 0));
	qhca_net_cq_destroy(&q->cq);
	qhca_queue_buf_free(priv->dev, &q->buf);
	kvfree(q->segs);
	kvfree(q->bufs);
	q->segs = NULL;
	q->bufs = NULL;
}
