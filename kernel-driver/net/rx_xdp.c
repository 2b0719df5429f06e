// SPDX-License-Identifier: GPL-2.0
/* XDP: a program sees received frames first, and decides their fate. */
#include <linux/bpf_trace.h>
#include <linux/filter.h>
#include <linux/if_vlan.h>
#include <net/page_pool/helpers.h>
#include <net/xdp_sock_drv.h>

#include "rx.h"
#include "xdp.h"
#include "xsk.h"

/*
 * Send the frame back, with the tag that the device has stripped, as the stack
 * does for programs that it runs itself. False: it still belongs to the caller.
 */
static bool rx_xdp_tx(struct qhca_rx_queue *q, struct xdp_buff *xdp)
{
	const struct qhca_eth_cqe *cqe = ((struct qhca_xdp_buff *)xdp)->cqe;
	bool own = xdp->rxq->mem.type == MEM_TYPE_PAGE_POOL;
	struct qhca_eth_wqe offloads = {};
	struct xdp_frame *frame;

	if (le16_to_cpu(cqe->flags) & QHCA_CQE_F_VLAN) {
		offloads.flags = QHCA_WQE_F_ETH_VLAN;
		offloads.vlan = cqe->vlan;
	}
	if (q->xsk)
		return qhca_xsk_tx_back(q->ch, xdp, &offloads);
	frame = xdp_convert_buff_to_frame(xdp);
	return frame && qhca_xdp_tx(q->ch, frame, own, &offloads);
}

/**
 * qhca_xdp_run - run the program on a frame
 * @q: its queue
 * @prog: program
 * @xdp: frame, in buffers of the queue
 * @count: counts the result
 *
 * In NAPI context; qhca_xdp_flush() follows before it ends. The frame is in a
 * struct qhca_xdp_buff, whose @cqe is set.
 *
 * Return: true if the frame is for the stack; else it has been consumed.
 */
bool qhca_xdp_run(struct qhca_rx_queue *q, struct bpf_prog *prog,
		  struct xdp_buff *xdp, struct qhca_rx_count *count)
{
	struct net_device *netdev = q->priv->netdev;
	u32 act;

	/* the program may change the frame, or move its begin */
	((struct qhca_xdp_buff *)xdp)->protocol =
		((const struct ethhdr *)xdp->data)->h_proto;
	act = bpf_prog_run_xdp(prog, xdp);
	count->xdp_packets++;
	switch (act) {
	case XDP_PASS:
		return true;
	case XDP_TX:
		if (unlikely(!rx_xdp_tx(q, xdp)))
			break;
		count->xdp_tx++;
		return false;
	case XDP_REDIRECT:
		if (unlikely(xdp_do_redirect(netdev, xdp, prog)))
			break;
		count->xdp_redirects++;
		return false;
	case XDP_DROP:
		goto drop;
	case XDP_ABORTED:
		break;
	default:
		bpf_warn_invalid_xdp_action(netdev, prog, act);
		break;
	}
	trace_xdp_exception(netdev, prog, act);
drop:
	if (q->xsk)
		xsk_buff_free(xdp);
	else
		xdp_return_buff(xdp);
	count->xdp_drops++;
	return false;
}

/* Turn the buffers of the next frame into one for a program. */
static void rx_xdp_gather(struct qhca_rx_queue *q, struct xdp_buff *xdp,
			  u32 nbufs, u32 len)
{
	u32 part = min_t(u32, len, q->buf_len);
	struct page *page = qhca_rx_take(q, part);
	struct skb_shared_info *info;

	xdp_init_buff(xdp, PAGE_SIZE, &q->xdp_rxq);
	xdp_prepare_buff(xdp, page_address(page), q->headroom, part, true);
	if (nbufs == 1)
		return;
	xdp_buff_set_frags_flag(xdp);
	info = xdp_get_shared_info_from_buff(xdp);
	info->nr_frags = 0;
	info->xdp_frags_size = len - part;
	while (--nbufs) {
		len -= part;
		part = min_t(u32, len, q->buf_len);
		page = qhca_rx_take(q, part);
		if (page_is_pfmemalloc(page))
			xdp_buff_set_frag_pfmemalloc(xdp);
		skb_frag_fill_page_desc(&info->frags[info->nr_frags++], page,
					q->headroom, part);
	}
}

/* NULL if memory is short; the frame is dropped then. */
static struct sk_buff *rx_xdp_build(struct xdp_buff *xdp)
{
	u32 meta = xdp->data - xdp->data_meta;
	u32 nr_frags = 0, size = 0;
	struct sk_buff *skb;

	if (xdp_buff_has_frags(xdp)) {
		struct skb_shared_info *info;

		info = xdp_get_shared_info_from_buff(xdp);
		nr_frags = info->nr_frags;
		size = info->xdp_frags_size;
	}
	skb = napi_build_skb(xdp->data_hard_start, xdp->frame_sz);
	if (unlikely(!skb)) {
		xdp_return_buff(xdp);
		return NULL;
	}
	skb_mark_for_recycle(skb);
	skb_reserve(skb, xdp->data - xdp->data_hard_start);
	__skb_put(skb, xdp->data_end - xdp->data);
	if (meta)
		skb_metadata_set(skb, meta);
	if (nr_frags)
		qhca_xdp_skb_frags(skb, nr_frags, size, nr_frags * PAGE_SIZE,
				   xdp);
	return skb;
}

/*
 * Run @prog on the next frame. Returns it if it is for the stack, else NULL.
 * Its numbers of buffers and bytes have been checked.
 */
struct sk_buff *qhca_xdp_rx(struct qhca_rx_queue *q, struct bpf_prog *prog,
			    const struct qhca_eth_cqe *cqe,
			    struct qhca_rx_count *count)
{
	struct qhca_xdp_buff x = { .cqe = cqe };
	u32 len = le32_to_cpu(cqe->byte_len);
	struct sk_buff *skb;

	rx_xdp_gather(q, &x.xdp, le16_to_cpu(cqe->num_wqe), len);
	if (unlikely(xdp_buff_has_frags(&x.xdp) && !prog->aux->xdp_has_frags)) {
		/* longer than the MTU allows */
		xdp_return_buff(&x.xdp);
		count->xdp_drops++;
		goto gone;
	}
	if (!qhca_xdp_run(q, prog, &x.xdp, count))
		goto gone;
	skb = rx_xdp_build(&x.xdp);
	if (unlikely(!skb))
		qhca_stat_inc(&q->stats->sync, &q->stats->dropped);
	return skb;

gone:
	/* it counts as received on the link layer */
	count->packets++;
	count->bytes += len;
	return NULL;
}

/* At the end of a poll: flush what programs have sent or redirected. */
void qhca_xdp_flush(struct qhca_rx_queue *q, const struct qhca_rx_count *count)
{
	if (count->xdp_tx)
		qhca_xdp_tx_flush(q->ch);
	if (count->xdp_redirects)
		xdp_do_flush();
}

/* ---------------------------------------- metadata for programs ---- */

static const struct qhca_eth_cqe *ctx_cqe(const struct xdp_md *ctx)
{
	return ((const struct qhca_xdp_buff *)ctx)->cqe;
}

static int xdp_rx_hash(const struct xdp_md *ctx, u32 *hash,
		       enum xdp_rss_hash_type *rss_type)
{
	const struct qhca_xdp_buff *x = (const void *)ctx;
	const struct qhca_eth_cqe *cqe = ctx_cqe(ctx);

	switch (cqe->hash_type) {
	case QHCA_HASH_TYPE_L4:
		*rss_type = XDP_RSS_TYPE_L4_ANY;
		break;
	case QHCA_HASH_TYPE_L3:
		*rss_type = x->protocol == htons(ETH_P_IPV6) ?
			    XDP_RSS_TYPE_L3_IPV6 : XDP_RSS_TYPE_L3_IPV4;
		break;
	default:
		return -ENODATA;
	}
	*hash = le32_to_cpu(cqe->rss_hash);
	return 0;
}

static int xdp_rx_vlan_tag(const struct xdp_md *ctx, __be16 *vlan_proto,
			   u16 *vlan_tci)
{
	const struct qhca_eth_cqe *cqe = ctx_cqe(ctx);

	if (!(le16_to_cpu(cqe->flags) & QHCA_CQE_F_VLAN))
		return -ENODATA;
	*vlan_proto = htons(ETH_P_8021Q);
	*vlan_tci = le16_to_cpu(cqe->vlan);
	return 0;
}

/* The time on the PTP clock, if received frames are to be stamped. */
static int xdp_rx_timestamp(const struct xdp_md *ctx, u64 *timestamp)
{
	const struct qhca_xdp_buff *x = (const void *)ctx;
	struct qhca_netdev *priv = netdev_priv(x->xdp.rxq->dev);
	u64 cycles = le64_to_cpu(x->cqe->timestamp);

	if (!qhca_ptp_rx_on(&priv->ptp))
		return -ENODATA;
	*timestamp = ktime_to_ns(qhca_ptp_time(&priv->ptp, cycles));
	return 0;
}

const struct xdp_metadata_ops qhca_xdp_metadata_ops = {
	.xmo_rx_timestamp = xdp_rx_timestamp,
	.xmo_rx_hash = xdp_rx_hash,
	.xmo_rx_vlan_tag = xdp_rx_vlan_tag,
};
