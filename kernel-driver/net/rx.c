// SPDX-License-Identifier: GPL-2.0
/*
 * Ethernet receive: page-pool buffers, one per receive WQE. A frame larger than
 * one buffer takes several in a row; the first becomes the skb's head without a
 * copy, the others its fragments. If a frame was split, its headers are copied,
 * and its data buffers become fragments. A packet that holds many frames counts
 * as one frame here.
 */
#include <linux/dma-mapping.h>
#include <linux/if_vlan.h>
#include <net/page_pool/helpers.h>

#include "rx.h"
#include "xdp.h"
#include "xsk.h"

#define RX_FILL_BATCH	16

/* Give the next @n buffers back to the pool. */
static void rx_drop(struct qhca_rx_queue *q, u32 n)
{
	if (q->xsk) {
		qhca_xsk_drop(q, n);
		return;
	}
	while (n--) {
		page_pool_put_full_page(q->pool, *qhca_rx_page(q, q->cons),
					true);
		*qhca_rx_page(q, q->cons) = NULL;
		q->cons++;
	}
}

/* Take the next buffer, @len bytes of it for the CPU. */
struct page *qhca_rx_take(struct qhca_rx_queue *q, u32 len)
{
	struct page *page = *qhca_rx_page(q, q->cons);

	*qhca_rx_page(q, q->cons) = NULL;
	q->cons++;
	dma_sync_single_range_for_cpu(qhca_dma_dev(q->priv->dev),
				      page_pool_get_dma_addr(page),
				      q->headroom, len,
				      page_pool_get_dma_dir(q->pool));
	return page;
}

static struct sk_buff *rx_build(struct qhca_rx_queue *q, u32 nbufs, u32 len)
{
	u32 part = min_t(u32, len, q->buf_len);
	struct sk_buff *skb;
	struct page *page;
	u32 i;

	page = *qhca_rx_page(q, q->cons);
	skb = napi_build_skb(page_address(page), q->buf_size);
	if (unlikely(!skb)) {
		rx_drop(q, nbufs);
		return NULL;
	}
	qhca_rx_take(q, part);
	skb_mark_for_recycle(skb);
	skb_reserve(skb, q->headroom);
	__skb_put(skb, part);
	for (i = 1; i < nbufs; i++) {
		len -= part;
		part = min_t(u32, len, q->buf_len);
		page = qhca_rx_take(q, part);
		skb_add_rx_frag(skb, i - 1, page, q->headroom, part,
				q->buf_size);
	}
	return skb;
}

/*
 * A frame that was split: @head bytes in @nbufs buffers, which go to the linear
 * part, and the rest of @len bytes in @ndata data buffers.
 */
static struct sk_buff *rx_build_split(struct qhca_rx_queue *q, u32 nbufs,
				      u32 head, u32 ndata, u32 len)
{
	struct sk_buff *skb = napi_alloc_skb(&q->ch->napi, head);
	u32 part, left = head;
	struct page *page;

	if (unlikely(!skb)) {
		rx_drop(q, nbufs);
		qhca_rx_data_drop(q, ndata);
		return NULL;
	}
	for (; nbufs; nbufs--) {
		part = min_t(u32, left, q->buf_len);
		page = qhca_rx_take(q, part);
		skb_put_data(skb, page_address(page) + q->headroom, part);
		page_pool_put_full_page(q->pool, page, true);
		left -= part;
	}
	skb_mark_for_recycle(skb);
	qhca_rx_data_add(q, skb, ndata, len - head);
	return skb;
}

/* Do @len bytes need @n buffers of @size bytes? At most a ring of them. */
static bool rx_takes(u32 len, u32 n, u32 size)
{
	return n && len <= n * size && len > (n - 1) * size;
}

/* Are these the numbers of buffers that the frame's parts need? */
static bool rx_fits(const struct qhca_rx_queue *q, u32 nbufs, u32 head,
		    u32 ndata, u32 len)
{
	if (!head)
		return !ndata && rx_takes(len, nbufs, q->buf_len);
	return q->split && head < len && rx_takes(head, nbufs, q->buf_len) &&
	       rx_takes(len - head, ndata, q->data.buf_len);
}

/* Is the frame valid for the stack? It may be longer than the MTU allows. */
static bool rx_wanted(u32 nbufs, u32 head, u32 ndata, u32 len)
{
	return (head ?: len) >= ETH_HLEN && nbufs <= QHCA_RX_MAX_BUFS &&
	       ndata <= MAX_SKB_FRAGS;
}

static void rx_hash(struct net_device *netdev, struct sk_buff *skb,
		    const struct qhca_eth_cqe *cqe)
{
	if (!(netdev->features & NETIF_F_RXHASH))
		return;
	if (cqe->hash_type == QHCA_HASH_TYPE_L4)
		skb_set_hash(skb, le32_to_cpu(cqe->rss_hash),
			     PKT_HASH_TYPE_L4);
	else if (cqe->hash_type == QHCA_HASH_TYPE_L3)
		skb_set_hash(skb, le32_to_cpu(cqe->rss_hash),
			     PKT_HASH_TYPE_L3);
}

static bool rx_sums_ok(u16 flags)
{
	return flags & QHCA_CQE_F_L3_OK && flags & QHCA_CQE_F_L4_OK;
}

static void rx_offloads(struct qhca_rx_queue *q, struct sk_buff *skb,
			const struct qhca_eth_cqe *cqe, struct qhca_rx_count *count)
{
	struct net_device *netdev = q->priv->netdev;
	u16 flags = le16_to_cpu(cqe->flags);

	/* only the device can check memory that the CPU cannot read */
	if ((netdev->features & NETIF_F_RXCSUM || !skb_frags_readable(skb)) &&
	    rx_sums_ok(flags)) {
		if (!skb_is_gso(skb))
			skb->ip_summed = CHECKSUM_UNNECESSARY;
		count->csum_ok += max_t(u32, cqe->gso_segs, 1);
	} else {
		count->csum_none++;
	}
	if (flags & QHCA_CQE_F_VLAN)
		__vlan_hwaccel_put_tag(skb, htons(ETH_P_8021Q),
				       le16_to_cpu(cqe->vlan));
	rx_hash(netdev, skb, cqe);
	qhca_ptp_rx(&q->priv->ptp, skb, le64_to_cpu(cqe->timestamp));
	skb_record_rx_queue(skb, q->index);
	skb->protocol = eth_type_trans(skb, netdev);
}

/*
 * Turn the skb into a GSO packet of the frames that the device reports, and
 * count them. False if that fails: a damaged frame could not be detected.
 */
static bool rx_large(struct qhca_rx_queue *q, struct sk_buff *skb,
		     const struct qhca_eth_cqe *cqe, struct qhca_rx_count *count)
{
	u32 segs = cqe->gso_segs, hdr = 0;

	if (q->large && rx_sums_ok(le16_to_cpu(cqe->flags)))
		hdr = qhca_rx_large(skb, cqe);
	if (unlikely(!hdr))
		return false;
	count->large_packets++;
	count->large_bytes += skb->len;
	count->large_wire_packets += segs;
	count->large_wire_bytes += skb->len + (segs - 1) * hdr;
	count->packets += segs - 1;
	count->bytes += (segs - 1) * hdr;
	return true;
}

/* The frame of a completion, or NULL if it was dropped. */
static struct sk_buff *rx_get(struct qhca_rx_queue *q,
			      const struct qhca_eth_cqe *cqe,
			      struct qhca_rx_count *count)
{
	struct bpf_prog *prog = READ_ONCE(q->priv->xdp_prog);
	u32 nbufs = le16_to_cpu(cqe->num_wqe);
	u32 head = le16_to_cpu(cqe->header_len);
	u32 len = le32_to_cpu(cqe->byte_len);
	struct sk_buff *skb;

	if (q->xsk)
		return qhca_xsk_rx(q, prog, cqe, count);
	if (prog && q->xdp)
		return qhca_xdp_rx(q, prog, cqe, count);
	if (head)
		skb = rx_build_split(q, nbufs, head, cqe->num_data, len);
	else
		skb = rx_build(q, nbufs, len);
	if (unlikely(!skb))
		qhca_stat_inc(&q->stats->sync, &q->stats->dropped);
	return skb;
}

/*
 * Does the completion begin with the next buffers, and use no more than posted?
 * Otherwise it is unknown which ones the device still has.
 */
static bool rx_in_step(const struct qhca_rx_queue *q,
		       const struct qhca_eth_cqe *cqe)
{
	u32 nbufs = le16_to_cpu(cqe->num_wqe);

	if (le32_to_cpu(cqe->wqe_index) != q->cons || !nbufs ||
	    nbufs > q->prod - q->cons)
		return false;
	return !cqe->num_data ||
	       (le32_to_cpu(cqe->data_index) == q->data.cons &&
		cqe->num_data <= qhca_rx_data_posted(q));
}

/*
 * Handle one completion: one frame, or an error that used up buffers. False if
 * it is invalid; all buffers are still posted then.
 */
static bool rx_one(struct qhca_rx_queue *q, const struct qhca_eth_cqe *cqe,
		   struct qhca_rx_count *count)
{
	u32 nbufs = le16_to_cpu(cqe->num_wqe);
	u32 head = le16_to_cpu(cqe->header_len);
	u32 len = le32_to_cpu(cqe->byte_len);
	u32 ndata = cqe->num_data;
	struct sk_buff *skb;

	if (unlikely(!rx_in_step(q, cqe)))
		return false;
	if (unlikely(cqe->status != QHCA_WC_SUCCESS)) {
		/* counted by the device */
		rx_drop(q, nbufs);
		qhca_rx_data_drop(q, ndata);
		return true;
	}
	if (unlikely(!rx_fits(q, nbufs, head, ndata, len)))
		return false;
	if (unlikely(!rx_wanted(nbufs, head, ndata, len))) {
		qhca_stat_inc(&q->stats->sync, &q->stats->errors);
		rx_drop(q, nbufs);
		qhca_rx_data_drop(q, ndata);
		return true;
	}
	skb = rx_get(q, cqe, count);
	if (!skb)
		return true;
	if (unlikely((cqe->gso_segs && !rx_large(q, skb, cqe, count)) ||
		     (!skb_frags_readable(skb) &&
		      !rx_sums_ok(le16_to_cpu(cqe->flags))))) {
		qhca_stat_inc(&q->stats->sync, &q->stats->errors);
		napi_consume_skb(skb, 1);
		return true;
	}
	rx_offloads(q, skb, cqe, count);
	count->packets++;
	if (head)
		count->split += max_t(u32, cqe->gso_segs, 1);
	count->bytes += len;
	napi_gro_receive(&q->ch->napi, skb);
	return true;
}

/*
 * The device can no longer be trusted: leave it the buffers until the queue is
 * stopped, and have the queues recreated.
 */
static void rx_break(struct qhca_rx_queue *q, const struct qhca_eth_cqe *cqe)
{
	q->broken = true;
	qhca_stat_inc(&q->stats->sync, &q->stats->errors);
	if (net_ratelimit())
		netdev_err(q->priv->netdev,
			   "receive queue %u: %u bytes (headers %u) in %u buffers from %u, %u from %u; posted are %u from %u, %u from %u\n",
			   q->index, le32_to_cpu(cqe->byte_len),
			   le16_to_cpu(cqe->header_len),
			   le16_to_cpu(cqe->num_wqe),
			   le32_to_cpu(cqe->wqe_index), cqe->num_data,
			   le32_to_cpu(cqe->data_index), q->prod - q->cons,
			   q->cons, qhca_rx_data_posted(q), q->data.cons);
	qhca_netdev_report(q->priv, QHCA_NETDEV_REPORT_RX);
}

static void rx_count_add(struct qhca_rx_stats *s, const struct qhca_rx_count *count)
{
	u64_stats_update_begin(&s->sync);
	u64_stats_add(&s->packets, count->packets);
	u64_stats_add(&s->bytes, count->bytes);
	u64_stats_add(&s->split, count->split);
	u64_stats_add(&s->large_packets, count->large_packets);
	u64_stats_add(&s->large_bytes, count->large_bytes);
	u64_stats_add(&s->large_wire_packets, count->large_wire_packets);
	u64_stats_add(&s->large_wire_bytes, count->large_wire_bytes);
	u64_stats_add(&s->csum_unnecessary, count->csum_ok);
	u64_stats_add(&s->csum_none, count->csum_none);
	u64_stats_add(&s->xdp_packets, count->xdp_packets);
	u64_stats_add(&s->xdp_drops, count->xdp_drops);
	u64_stats_add(&s->xdp_tx, count->xdp_tx);
	u64_stats_add(&s->xdp_redirects, count->xdp_redirects);
	u64_stats_add(&s->xsk_packets, count->xsk_packets);
	u64_stats_update_end(&s->sync);
}

/*
 * Pass up at most @budget frames. Returns their number, or @budget to be called
 * again because no buffer could be posted (unless an application has them).
 */
int qhca_rx_poll(struct qhca_rx_queue *q, int budget)
{
	struct qhca_rx_count count = {};
	struct qhca_eth_cqe cqe;
	int done = 0;

	BUILD_BUG_ON(QHCA_RX_MAX_BUFS *
		     QHCA_RX_BUF_LEN(PAGE_SIZE, QHCA_RX_HEADROOM) <
		     ETH_HLEN + QHCA_ETH_SUPER_IP_MAX);
	BUILD_BUG_ON(QHCA_RX_MAX_BUFS *
		     QHCA_RX_BUF_LEN(PAGE_SIZE, QHCA_XDP_HEADROOM) <
		     QHCA_ETH_MAX_FRAME);
	BUILD_BUG_ON(PAGE_SIZE * MAX_SKB_FRAGS < QHCA_ETH_SUPER_IP_MAX);

	if (unlikely(!qhca_rx_works(q)))
		return 0;

	while (done < budget && qhca_net_cq_next(&q->cq, &cqe)) {
		if (unlikely(!rx_one(q, &cqe, &count))) {
			rx_break(q, &cqe);
			break;
		}
		done++;
		if (qhca_rx_room(q) >= RX_FILL_BATCH) {
			/*
			 * The CQ has room for as many completions as there are
			 * buffers: do not repost a buffer before the device
			 * knows that its completion was taken.
			 */
			qhca_net_cq_publish(&q->cq);
			qhca_rx_fill(q);
		}
	}
	if (done) {
		qhca_net_cq_publish(&q->cq);
		rx_count_add(q->stats, &count);
	}
	qhca_xdp_flush(q, &count);
	if (unlikely(q->broken))
		return done;
	qhca_rx_fill(q);
	return q->prod == q->cons && !q->xsk ? budget : done;
}
