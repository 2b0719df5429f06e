// SPDX-License-Identifier: GPL-2.0
/*
 * The data ring of a receive queue that splits headers from data: payload goes
 * to whole pages, or to the memory of a provider, which the CPU never touches. A
 * provider may want buffers of several pages.
 */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <net/netdev_rx_queue.h>
#include <net/page_pool/helpers.h>

#include "netdev.h"

static netmem_ref *data_buf(const struct qhca_rx_data *d, u32 index)
{
	return &d->bufs[index & (BIT(d->shift) - 1)];
}

/* The memory provider that is bound to queue @index, or NULL. */
static void *data_provider(struct net_device *netdev, u32 index)
{
	return __netif_get_rx_queue(netdev, index)->mp_params.mp_priv;
}

/*
 * Has a memory provider been bound to queue @index? The CPU must not read its
 * memory. Under the core's locks.
 */
bool qhca_rx_data_provided(struct net_device *netdev, u32 index)
{
	return data_provider(netdev, index);
}

/*
 * The number of buffers that @q must have for the largest frame. What the
 * device merges needs more, but arrives as single frames without them.
 */
static u32 data_bufs_needed(const struct qhca_rx_queue *q)
{
	u32 len = QHCA_ETH_MAX_FRAME;

	if (q->large && q->priv->dev->caps.features & QHCA_FEAT_ETH_SUPER)
		len = SZ_64K;
	return min_t(u32, DIV_ROUND_UP(len, q->data.buf_len), MAX_SKB_FRAGS);
}

static int data_make_pool(struct qhca_rx_queue *q, u32 depth)
{
	struct page_pool_params pp = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV |
			 PP_FLAG_ALLOW_UNREADABLE_NETMEM,
		.pool_size = depth,
		.nid = NUMA_NO_NODE,
		.dev = qhca_dma_dev(q->priv->dev),
		.netdev = q->priv->netdev,
		.queue_idx = q->index,
		.dma_dir = DMA_FROM_DEVICE,
		.order = get_order(q->data.buf_len),
		.max_len = q->data.buf_len,
	};
	struct page_pool *pool;

	/* frames up to the threshold would have their data in other buffers */
	if (q->data.hds_thresh)
		pp.flags &= ~PP_FLAG_ALLOW_UNREADABLE_NETMEM;
	else
		q->data.provider = data_provider(q->priv->netdev, q->index);
	q->data.need = q->data.provider ? data_bufs_needed(q) : MAX_SKB_FRAGS;
	pool = page_pool_create(&pp);
	if (IS_ERR(pool))
		return PTR_ERR(pool);
	q->data.pool = pool;
	return 0;
}

/* Allocate the data ring of @q. 0 or an error; the caller always frees it. */
int qhca_rx_data_alloc(struct qhca_rx_queue *q,
		       const struct qhca_net_params *params)
{
	struct qhca_rx_data *d = &q->data;
	u32 depth = params->rx_depth;
	int err;

	q->split = true;
	d->shift = ilog2(depth);
	d->hds_thresh = params->hds_thresh;
	d->buf_len = qhca_queue_page_size(q->priv->netdev, q->index);
	d->dbrec = &q->dbrecs.recs[QHCA_DBREC_DATA];
	err = qhca_queue_buf_alloc(q->priv->dev, &d->buf,
				   depth << QHCA_RX_STRIDE);
	if (err)
		return err;
	d->bufs = kvcalloc(depth, sizeof(*d->bufs), GFP_KERNEL);
	if (!d->bufs)
		return -ENOMEM;
	return data_make_pool(q, depth);
}

/* Undo qhca_rx_data_alloc(), even if it has failed or was not called. */
void qhca_rx_data_free(struct qhca_rx_queue *q)
{
	if (q->data.pool)
		page_pool_destroy(q->data.pool);
	kvfree(q->data.bufs);
	qhca_queue_buf_free(q->priv->dev, &q->data.buf);
}

/*
 * Check that the memory provider of @q, which is to replace @old, has the
 * buffers of one frame left: with less, frames could never arrive. Other queues
 * of the provider may have taken them. An application may hold the buffers of a
 * provider that the queue already has, so that one is not checked. 0 or -ENOMEM.
 */
int qhca_rx_data_check(struct qhca_rx_queue *q, const struct qhca_rx_queue *old)
{
	struct page_pool *pool = q->data.pool;
	u32 n, need = q->data.need;
	netmem_ref bufs[MAX_SKB_FRAGS];

	if (!q->data.provider || (old && old->data.provider == q->data.provider))
		return 0;
	local_bh_disable();
	for (n = 0; n < need; n++) {
		bufs[n] = qhca_pool_alloc_netmem(pool,
						 GFP_ATOMIC | __GFP_NOWARN);
		if (!bufs[n])
			break;
	}
	local_bh_enable();
	if (n < need)
		netdev_notice(q->priv->netdev,
			      "queue %u: only %u buffers of %u bytes are free in the memory provider, a frame may need %u\n",
			      q->index, n, q->data.buf_len, need);
	need -= n;
	while (n)
		page_pool_put_full_netmem(pool, bufs[--n], false);
	return need ? -ENOMEM : 0;
}

/* Fill in the data ring in the queue's context. */
void qhca_rx_data_describe(const struct qhca_rx_queue *q,
			   struct qhca_eth_qc *qc)
{
	dma_addr_t dbrec = qhca_net_dbrec_dma(&q->dbrecs, QHCA_DBREC_DATA);

	qc->flags |= QHCA_ETH_Q_F_HDS;
	qc->data_buf = q->data.buf.table.desc;
	qc->data_dbrec = cpu_to_le64(dbrec);
	qc->hds_thresh = cpu_to_le32(q->data.hds_thresh);
	qc->data_shift = q->data.shift;
}

/* Before the start: the ring is empty. */
void qhca_rx_data_reset(struct qhca_rx_queue *q)
{
	q->data.prod = 0;
	q->data.cons = 0;
	memset(q->data.dbrec, 0, sizeof(*q->data.dbrec));
}

/*
 * After qhca_rx_data_fill(): can the queue start? An application may hold all
 * buffers of a provider, and return them later.
 */
bool qhca_rx_data_ready(const struct qhca_rx_queue *q)
{
	return qhca_rx_data_posted(q) ||
	       qhca_rx_data_provided(q->priv->netdev, q->index);
}

/* Post buffers until the ring is full or there is none. In NAPI context. */
void qhca_rx_data_fill(struct qhca_rx_queue *q)
{
	struct qhca_rx_data *d = &q->data;
	u32 old = d->prod;

	while (qhca_rx_data_posted(q) < BIT(d->shift)) {
		netmem_ref mem;

		mem = qhca_pool_alloc_netmem(d->pool, GFP_ATOMIC | __GFP_NOWARN);
		if (!mem) {
			qhca_stat_inc(&q->stats->sync, &q->stats->alloc_failed);
			break;
		}
		qhca_rx_write(&d->buf, d->prod & (BIT(d->shift) - 1),
			      page_pool_get_dma_addr_netmem(mem), d->buf_len);
		*data_buf(d, d->prod) = mem;
		d->prod++;
	}
	if (d->prod != old)
		qhca_rx_publish(d->dbrec, d->prod);
}

static void data_put(struct qhca_rx_data *d, u32 n, bool napi)
{
	while (n--) {
		netmem_ref *mem = data_buf(d, d->cons++);

		page_pool_put_full_netmem(d->pool, *mem, napi);
		*mem = 0;
	}
}

/* Give the next @n buffers back to the pool. In NAPI context. */
void qhca_rx_data_drop(struct qhca_rx_queue *q, u32 n)
{
	data_put(&q->data, n, true);
}

/* With NAPI off: release the pool from NAPI, and return the buffers. */
void qhca_rx_data_drop_all(struct qhca_rx_queue *q)
{
	page_pool_disable_direct_recycling(q->data.pool);
	data_put(&q->data, qhca_rx_data_posted(q), false);
}

/*
 * Make the next @n buffers, @len bytes, fragments of @skb, which has none. At
 * most MAX_SKB_FRAGS buffers.
 */
void qhca_rx_data_add(struct qhca_rx_queue *q, struct sk_buff *skb, u32 n,
		      u32 len)
{
	struct qhca_rx_data *d = &q->data;
	u32 i;

	for (i = 0; i < n; i++) {
		netmem_ref mem = *data_buf(d, d->cons);
		u32 part = min_t(u32, len, d->buf_len);
		dma_addr_t dma = page_pool_get_dma_addr_netmem(mem);

		*data_buf(d, d->cons++) = 0;
		if (!netmem_is_net_iov(mem))
			dma_sync_single_for_cpu(qhca_dma_dev(q->priv->dev), dma,
						part, DMA_FROM_DEVICE);
		skb_add_rx_frag_netmem(skb, i, mem, 0, part, d->buf_len);
		len -= part;
	}
}
