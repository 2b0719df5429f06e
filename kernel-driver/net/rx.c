// SPDX-License-Identifier: GPL-2.0
/*
 * Ethernet receive: page-pool pages, one per receive WQE. A frame larger than
 * one buffer takes several in a row; the first becomes the skb's head without
 * a copy, the others its fragments.
 */
#include <linux/dma-mapping.h>
#include <linux/if_vlan.h>
#include <net/page_pool/helpers.h>

#include "netdev.h"

#define RX_HEADROOM	(NET_SKB_PAD + NET_IP_ALIGN)
/* bytes of a frame in one buffer: the tail is for struct skb_shared_info */
#define RX_BUF_LEN	(SKB_WITH_OVERHEAD(PAGE_SIZE) - RX_HEADROOM)
#define RX_FILL_BATCH	16
#define RX_MAX_BUFS	(1 + MAX_SKB_FRAGS)

static struct page **rx_page(struct qhca_rxq *q, u32 index)
{
	return &q->pages[index & (BIT(q->shift) - 1)];
}

/* Post buffers until the ring is full or memory is short. */
static void rx_fill(struct qhca_netdev *priv, struct qhca_rxq *q)
{
	u32 old = q->prod;

	while (q->prod - q->cons < BIT(q->shift)) {
		u32 slot = q->prod & (BIT(q->shift) - 1);
		struct qhca_eth_seg *seg;
		struct page *page;

		page = page_pool_dev_alloc_pages(q->pool);
		if (!page) {
			priv->rx_alloc_failed++;
			break;
		}
		seg = qhca_queue_buf_ptr(&q->buf,
					 (size_t)slot << QHCA_RX_STRIDE);
		memset(seg, 0, sizeof(*seg));
		seg->addr = cpu_to_le64(page_pool_get_dma_addr(page) +
					RX_HEADROOM);
		seg->len = cpu_to_le32(RX_BUF_LEN);
		*rx_page(q, q->prod) = page;
		q->prod++;
	}
	if (q->prod == old)
		return;
	dma_wmb();	/* WQEs before the index */
	WRITE_ONCE(q->dbrec->index, cpu_to_le32(q->prod));
}

/* Give the next @n buffers back to the pool. */
static void rx_drop(struct qhca_rxq *q, u32 n)
{
	while (n--) {
		page_pool_put_full_page(q->pool, *rx_page(q, q->cons), true);
		*rx_page(q, q->cons) = NULL;
		q->cons++;
	}
}

/* Take the next buffer, @len bytes of it for the CPU. */
static struct page *rx_take(struct qhca_netdev *priv, struct qhca_rxq *q,
			    u32 len)
{
	struct page *page = *rx_page(q, q->cons);

	*rx_page(q, q->cons) = NULL;
	q->cons++;
	dma_sync_single_range_for_cpu(qhca_dma_dev(priv->dev),
				      page_pool_get_dma_addr(page),
				      RX_HEADROOM, len, DMA_FROM_DEVICE);
	return page;
}

static struct sk_buff *rx_build(struct qhca_netdev *priv, struct qhca_rxq *q,
				u32 nbufs, u32 len)
{
	u32 part = min_t(u32, len, RX_BUF_LEN);
	struct sk_buff *skb;
	struct page *page;
	u32 i;

	page = *rx_page(q, q->cons);
	skb = napi_build_skb(page_address(page), PAGE_SIZE);
	if (unlikely(!skb)) {
		rx_drop(q, nbufs);
		return NULL;
	}
	rx_take(priv, q, part);
	skb_mark_for_recycle(skb);
	skb_reserve(skb, RX_HEADROOM);
	__skb_put(skb, part);
	for (i = 1; i < nbufs; i++) {
		len -= part;
		part = min_t(u32, len, RX_BUF_LEN);
		page = rx_take(priv, q, part);
		skb_add_rx_frag(skb, i - 1, page, RX_HEADROOM, part, PAGE_SIZE);
	}
	return skb;
}

static void rx_offloads(struct qhca_netdev *priv, struct sk_buff *skb,
			const struct qhca_cqe *cqe)
{
	u16 flags = le16_to_cpu(cqe->flags);

	if (priv->netdev->features & NETIF_F_RXCSUM &&
	    flags & QHCA_CQE_F_L3_OK && flags & QHCA_CQE_F_L4_OK)
		skb->ip_summed = CHECKSUM_UNNECESSARY;
	if (flags & QHCA_CQE_F_VLAN)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q),
				       le16_to_cpu(cqe->vlan));
	skb_record_rx_queue(skb, 0);
	skb->protocol = eth_type_trans(skb, priv->netdev);
}

/* One completion: one frame, or an error that cost buffers. */
static void rx_one(struct qhca_netdev *priv, struct qhca_rxq *q,
		   const struct qhca_cqe *cqe)
{
	u32 nbufs = le16_to_cpu(cqe->num_wqe);
	u32 len = le32_to_cpu(cqe->byte_len);
	struct net_device *netdev = priv->netdev;
	struct sk_buff *skb;

	if (unlikely(nbufs > q->prod - q->cons)) {
		netdev_warn_once(netdev,
				 "frame in %u buffers, %u are posted\n",
				 nbufs, q->prod - q->cons);
		nbufs = q->prod - q->cons;
		goto bad;
	}
	if (unlikely(cqe->status != QHCA_WC_SUCCESS)) {
		/* counted by the device */
		rx_drop(q, nbufs);
		return;
	}
	if (unlikely(len < ETH_HLEN ||
		     nbufs != DIV_ROUND_UP(len, RX_BUF_LEN) ||
		     nbufs > RX_MAX_BUFS))
		goto bad;
	skb = rx_build(priv, q, nbufs, len);
	if (unlikely(!skb)) {
		DEV_STATS_INC(netdev, rx_dropped);
		return;
	}
	rx_offloads(priv, skb, cqe);
	dev_sw_netstats_rx_add(netdev, len);
	napi_gro_receive(&priv->napi, skb);
	return;

bad:
	DEV_STATS_INC(netdev, rx_errors);
	rx_drop(q, nbufs);
}

/*
 * Hand up at most @budget frames; returns how many, or @budget to be called
 * again because no buffer could be posted.
 */
int qhca_rx_poll(struct qhca_netdev *priv, int budget)
{
	struct qhca_rxq *q = &priv->rxq;
	struct qhca_cqe *cqe;
	int done = 0;

	while (done < budget && (cqe = qhca_net_cq_next(&q->cq))) {
		rx_one(priv, q, cqe);
		done++;
		if (BIT(q->shift) - (q->prod - q->cons) >= RX_FILL_BATCH) {
			/*
			 * The CQ has room for as many completions as there are
			 * buffers: no buffer is posted anew before it is told
			 * that the completion of the old one was taken.
			 */
			qhca_net_cq_publish(&q->cq);
			rx_fill(priv, q);
		}
	}
	if (done)
		qhca_net_cq_publish(&q->cq);
	rx_fill(priv, q);
	return q->prod == q->cons ? budget : done;
}

int qhca_rx_create(struct qhca_netdev *priv)
{
	struct page_pool_params pp = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.pool_size = priv->rx_depth,
		.nid = NUMA_NO_NODE,
		.dev = qhca_dma_dev(priv->dev),
		.napi = &priv->napi,
		.netdev = priv->netdev,
		.dma_dir = DMA_FROM_DEVICE,
		.offset = RX_HEADROOM,
		.max_len = RX_BUF_LEN,
	};
	struct qhca_dev *dev = priv->dev;
	struct qhca_rxq *q = &priv->rxq;
	struct qhca_eth_qc qc = {};
	int err;

	BUILD_BUG_ON(RX_BUF_LEN * RX_MAX_BUFS < QHCA_ETH_MAX_FRAME);

	memset(q, 0, sizeof(*q));
	q->shift = ilog2(priv->rx_depth);
	q->dbrec = &priv->dbrecs[QHCA_DBREC_RX_RQ];
	memset(q->dbrec, 0, sizeof(*q->dbrec));
	err = qhca_net_cq_create(priv, &q->cq, q->shift, QHCA_DBREC_RX_CQ,
				 &priv->rx_coalesce);
	if (err)
		return err;
	q->pages = kvcalloc(priv->rx_depth, sizeof(*q->pages), GFP_KERNEL);
	if (!q->pages) {
		err = -ENOMEM;
		goto err;
	}
	q->pool = page_pool_create(&pp);
	if (IS_ERR(q->pool)) {
		err = PTR_ERR(q->pool);
		q->pool = NULL;
		goto err;
	}
	err = qhca_queue_buf_alloc(dev, &q->buf,
				   priv->rx_depth << QHCA_RX_STRIDE);
	if (err)
		goto err;
	qc.buf = q->buf.table.desc;
	qc.dbrec = cpu_to_le64(qhca_netdev_dbrec_dma(priv, q->dbrec));
	qc.cqn = cpu_to_le32(q->cq.cq.cqn);
	qc.shift = q->shift;
	qc.stride = QHCA_RX_STRIDE;
	err = qhca_aq_create(dev, QHCA_CMD_CREATE_ETH_RQ, &qc, sizeof(qc),
			     &q->num);
	if (err)
		goto err;
	q->made = true;
	/* NAPI is off; softirqs off is what the pool's fast path wants */
	local_bh_disable();
	rx_fill(priv, q);
	local_bh_enable();
	if (q->prod == q->cons) {
		err = -ENOMEM;
		qhca_rx_stop(priv);
		qhca_rx_destroy(priv);
		return err;
	}
	return 0;

err:
	qhca_net_cq_quiesce(&q->cq);
	qhca_rx_destroy(priv);
	return err;
}

/* The device writes no buffer any more; no interrupt of this queue comes. */
void qhca_rx_stop(struct qhca_netdev *priv)
{
	struct qhca_rxq *q = &priv->rxq;

	if (!q->made)
		return;
	qhca_aq_destroy_sure(priv->dev, QHCA_CMD_DESTROY_ETH_RQ, q->num);
	q->made = false;
	qhca_net_cq_quiesce(&q->cq);
}

/* After qhca_rx_stop(), with NAPI off. */
void qhca_rx_destroy(struct qhca_netdev *priv)
{
	struct qhca_rxq *q = &priv->rxq;

	for (; q->pages && q->cons != q->prod; q->cons++)
		page_pool_put_full_page(q->pool, *rx_page(q, q->cons), false);
	if (q->pool)
		page_pool_destroy(q->pool);
	q->pool = NULL;
	qhca_net_cq_destroy(&q->cq);
	qhca_queue_buf_free(priv->dev, &q->buf);
	kvfree(q->pages);
	q->pages = NULL;
}
