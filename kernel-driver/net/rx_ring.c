// SPDX-License-Identifier: GPL-2.0
/* The life cycle of a receive queue, and posting its buffers. */
#include <linux/dma-mapping.h>
#include <linux/log2.h>
#include <linux/slab.h>
#include <net/page_pool/helpers.h>

#include "netdev.h"
#include "xdp.h"
#include "xsk.h"

/* Write the WQE in slot @slot of a receive ring: a buffer of @len bytes. */
void qhca_rx_write(struct qhca_queue_buf *ring, u32 slot, dma_addr_t addr,
		   u32 len)
{
	struct qhca_eth_seg *seg;

	seg = qhca_queue_buf_ptr(ring, (size_t)slot << QHCA_RX_STRIDE);
	memset(seg, 0, sizeof(*seg));
	seg->addr = cpu_to_le64(addr);
	seg->len = cpu_to_le32(len);
}

/* Hand the WQEs before @prod to the device. */
void qhca_rx_publish(struct qhca_dbrec *dbrec, u32 prod)
{
	dma_wmb();	/* WQEs before the index */
	WRITE_ONCE(dbrec->index, cpu_to_le32(prod));
}

/* Post buffers until the rings are full or memory is short. In NAPI context. */
void qhca_rx_fill(struct qhca_rx_queue *q)
{
	u32 old = q->prod;

	if (q->xsk) {
		qhca_xsk_fill(q);
		return;
	}
	if (q->split)
		qhca_rx_data_fill(q);
	while (qhca_rx_room(q)) {
		struct page *page;

		page = page_pool_dev_alloc_pages(q->pool);
		if (!page) {
			qhca_stat_inc(&q->stats->sync, &q->stats->alloc_failed);
			break;
		}
		qhca_rx_write(&q->buf, q->prod & (BIT(q->shift) - 1),
			      page_pool_get_dma_addr(page) + q->headroom,
			      q->buf_len);
		*qhca_rx_page(q, q->prod) = page;
		q->prod++;
	}
	if (q->prod != old)
		qhca_rx_publish(q->dbrec, q->prod);
}

/*
 * Undo qhca_rx_alloc(), of a queue that is stopped, or was suspended and has
 * been replaced. NULL does nothing.
 */
void qhca_rx_free(struct qhca_rx_queue *q)
{
	if (!q)
		return;
	qhca_net_cq_stop(&q->cq);
	if (xdp_rxq_info_is_reg(&q->xdp_rxq))
		xdp_rxq_info_unreg(&q->xdp_rxq);
	if (q->pool)
		page_pool_destroy(q->pool);
	kvfree(q->pages);
	qhca_rx_data_free(q);
	qhca_queue_buf_free(q->priv->dev, &q->buf);
	qhca_net_cq_free(&q->cq);
	qhca_net_dbrecs_free(q->priv, &q->dbrecs);
	kfree(q);
}

static int rx_make_pool(struct qhca_rx_queue *q, u32 depth)
{
	struct page_pool_params pp = {
		.flags = PP_FLAG_DMA_MAP | PP_FLAG_DMA_SYNC_DEV,
		.order = get_order(q->buf_size),
		.pool_size = depth,
		.nid = NUMA_NO_NODE,
		.dev = qhca_dma_dev(q->priv->dev),
		.netdev = q->priv->netdev,
		.queue_idx = q->index,
		/* a program may send back what it has written */
		.dma_dir = q->xdp ? DMA_BIDIRECTIONAL : DMA_FROM_DEVICE,
		.offset = q->headroom,
		.max_len = q->buf_len,
	};
	struct page_pool *pool = page_pool_create(&pp);
	int err;

	if (IS_ERR(pool))
		return PTR_ERR(pool);
	q->pool = pool;
	if (!q->xdp)
		return 0;
	err = __xdp_rxq_info_reg(&q->xdp_rxq, q->priv->netdev, q->index, 0,
				 PAGE_SIZE);
	if (err)
		return err;
	return xdp_rxq_info_reg_mem_model(&q->xdp_rxq, MEM_TYPE_PAGE_POOL,
					  pool);
}

/*
 * Allocate a receive queue for @ch, which keeps using its current one. Returns
 * the queue, or an error pointer. Sleeps.
 */
struct qhca_rx_queue *qhca_rx_alloc(struct qhca_channel *ch,
				    const struct qhca_net_params *params)
{
	struct qhca_netdev *priv = ch->priv;
	u32 depth = params->rx_depth;
	struct qhca_rx_queue *q;
	int err;

	q = kzalloc(sizeof(*q), GFP_KERNEL);
	if (!q)
		return ERR_PTR(-ENOMEM);
	q->priv = priv;
	q->ch = ch;
	q->index = ch->index;
	q->stats = &priv->rx_stats[ch->index];
	q->shift = ilog2(depth);
	q->xdp = params->xdp;
	q->xsk = ch->xsk_pool;
	q->large = params->large && !q->xdp && !q->xsk;
	q->headroom = q->xdp ? QHCA_XDP_HEADROOM : QHCA_RX_HEADROOM;
	q->buf_size = params->rx_size;
	q->buf_len = QHCA_RX_BUF_LEN(q->buf_size, q->headroom);
	err = qhca_net_dbrecs_alloc(priv, &q->dbrecs);
	if (err)
		goto err;
	q->dbrec = &q->dbrecs.recs[QHCA_DBREC_RQ];
	err = qhca_net_cq_alloc(&q->cq, ch, q->shift, &q->dbrecs);
	if (err)
		goto err;
	err = qhca_queue_buf_alloc(priv->dev, &q->buf, depth << QHCA_RX_STRIDE);
	if (err)
		goto err;
	q->pages = kvcalloc(depth, sizeof(*q->pages), GFP_KERNEL);
	if (!q->pages) {
		err = -ENOMEM;
		goto err;
	}
	if (q->xsk)
		qhca_xsk_rx_init(q);
	else
		err = rx_make_pool(q, depth);
	if (!err && params->split)
		err = qhca_rx_data_alloc(q, params);
	if (!err)
		return q;
err:
	qhca_rx_free(q);
	return ERR_PTR(err);
}

/* With NAPI off: release the pool from NAPI, and return the buffers. */
static void rx_drop_all(struct qhca_rx_queue *q)
{
	if (q->xsk) {
		qhca_xsk_drop(q, q->prod - q->cons);
		return;
	}
	page_pool_disable_direct_recycling(q->pool);
	for (; q->cons != q->prod; q->cons++) {
		page_pool_put_full_page(q->pool, *qhca_rx_page(q, q->cons),
					false);
		*qhca_rx_page(q, q->cons) = NULL;
	}
	if (q->split)
		qhca_rx_data_drop_all(q);
}

/* The types of packets that hold many frames that the device may deliver. */
static u32 rx_large_flags(u64 features)
{
	u32 flags = 0;

	if (features & QHCA_FEAT_ETH_SUPER)
		flags |= QHCA_ETH_Q_F_SUPER;
	if (features & QHCA_FEAT_ETH_GRO)
		flags |= QHCA_ETH_Q_F_GRO;
	return flags;
}

/* Create the device's queue, or give the channel's existing one new rings. */
static int rx_make(struct qhca_rx_queue *q)
{
	u64 mask = QHCA_ETH_RQ_M_RINGS | QHCA_ETH_RQ_M_STATE;
	struct qhca_dev *dev = q->priv->dev;
	struct qhca_channel *ch = q->ch;
	struct qhca_eth_qc qc = {};
	u32 num;
	int err;

	qc.buf = q->buf.table.desc;
	qc.dbrec = cpu_to_le64(qhca_net_dbrec_dma(&q->dbrecs, QHCA_DBREC_RQ));
	qc.cqn = cpu_to_le32(q->cq.cq.cqn);
	qc.shift = q->shift;
	qc.stride = QHCA_RX_STRIDE;
	if (q->large)
		qc.flags |= rx_large_flags(dev->caps.features);
	/* GRO merges no IPv4 packet with trailing data */
	if (dev->caps.features & QHCA_FEAT_ETH_UNPAD)
		qc.flags |= QHCA_ETH_Q_F_UNPAD;
	if (q->split) {
		qhca_rx_data_describe(q, &qc);
		mask |= QHCA_ETH_RQ_M_HDS_THRESH;
	}
	if (ch->rqn == QHCA_ETH_RQ_NONE) {
		err = qhca_aq_create(dev, QHCA_CMD_CREATE_ETH_RQ, &qc,
				     sizeof(qc), &num);
		if (!err && num == QHCA_ETH_RQ_NONE)
			err = -EPROTO;	/* it would count as not created */
		if (!err)
			WRITE_ONCE(ch->rqn, num);
		return err;
	}
	qc.state = QHCA_WQS_RDY;
	return qhca_aq_modify(dev, QHCA_CMD_MODIFY_ETH_RQ, ch->rqn, mask, &qc,
			      sizeof(qc));
}

/*
 * Create the device's objects, with event moderation @c, and post buffers. If
 * the channel has a suspended queue, this one takes its place and number. On
 * error everything is as before. NAPI is off.
 */
int qhca_rx_start(struct qhca_rx_queue *q, const struct qhca_coalesce *c)
{
	struct qhca_coalesce now = *c;
	bool had_cq = q->cq.made;
	int err;

	qhca_dim_rx_now(q->ch, &now);
	q->broken = false;
	q->prod = 0;
	q->cons = 0;
	memset(q->dbrec, 0, sizeof(*q->dbrec));
	/* it may not have existed when they were registered */
	qhca_xdp_set_napi(&q->xdp_rxq, &q->ch->napi);
	qhca_xdp_set_napi(&q->ch->xsk_rxq, &q->ch->napi);
	if (q->split)
		qhca_rx_data_reset(q);
	err = qhca_net_cq_start(&q->cq, &now);
	if (err)
		return err;
	if (!q->xsk)
		qhca_pool_use_napi(q->pool, &q->ch->napi);
	if (q->split)
		qhca_pool_use_napi(q->data.pool, &q->ch->napi);
	/* NAPI is off; the pool's fast path requires softirqs to be off */
	local_bh_disable();
	qhca_rx_fill(q);
	local_bh_enable();
	/* before the device has a queue that tables may use */
	if ((q->prod == q->cons && !q->xsk) ||
	    (q->split && !qhca_rx_data_ready(q)))
		err = -ENOMEM;
	else
		err = rx_make(q);
	if (err) {
		/* the suspended queue in the device may refer to it */
		if (had_cq)
			qhca_net_cq_quiesce(&q->cq);
		else
			qhca_net_cq_stop(&q->cq);
		rx_drop_all(q);
		return err;
	}
	q->made = true;
	return 0;
}

/*
 * Stop the queue: when this returns 0, the device writes to no buffer, and they
 * are back in the pool. The channel keeps the number, and the CQ stays, until
 * this queue or another is started in its place. If the device refuses, returns
 * an error, and the queue keeps running: tables use it, so it cannot be
 * destroyed. NAPI is off.
 */
int qhca_rx_suspend(struct qhca_rx_queue *q)
{
	struct qhca_eth_qc qc = { .state = QHCA_WQS_RESET };
	int err;

	if (!q->made)
		return 0;
	err = qhca_aq_modify(q->priv->dev, QHCA_CMD_MODIFY_ETH_RQ, q->ch->rqn,
			     QHCA_ETH_RQ_M_STATE, &qc, sizeof(qc));
	if (err && err != -EIO)
		return err;
	q->made = false;
	qhca_net_cq_quiesce(&q->cq);
	rx_drop_all(q);
	return 0;
}

/*
 * Undo qhca_rx_start(): as qhca_rx_suspend(), but destroys the device's
 * objects; no table uses the queue. Does nothing if the queue was not started.
 */
void qhca_rx_stop(struct qhca_rx_queue *q)
{
	struct qhca_channel *ch = q->ch;

	if (ch->rqn != QHCA_ETH_RQ_NONE)
		qhca_aq_destroy_sure(q->priv->dev, QHCA_CMD_DESTROY_ETH_RQ,
				     ch->rqn);
	WRITE_ONCE(ch->rqn, QHCA_ETH_RQ_NONE);
	q->made = false;
	qhca_net_cq_stop(&q->cq);
	rx_drop_all(q);
}
