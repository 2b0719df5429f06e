// SPDX-License-Identifier: GPL-2.0
/* Ethernet transmit: posts an skb as a WQE, and frees it when it is sent. */
#include <linux/dma-mapping.h>
#include <linux/if_vlan.h>
#include <linux/log2.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/netdev_queues.h>

#include "tx.h"
#include "xsk.h"

/* wake the queue when this much is free again */
#define TX_WAKE(q)	(BIT((q)->shift) / 4)

static struct qhca_eth_wqe *tx_wqe(struct qhca_tx_queue *q, u32 index)
{
	u32 slot = index & (BIT(q->shift) - 1);

	return qhca_queue_buf_ptr(&q->buf, (size_t)slot << QHCA_TX_STRIDE);
}

static struct qhca_tx_buf *tx_buf(struct qhca_tx_queue *q, u32 index)
{
	return &q->bufs[index & (BIT(q->shift) - 1)];
}

static struct qhca_tx_seg *tx_segs(struct qhca_tx_queue *q, u32 index)
{
	return &q->segs[(index & (BIT(q->shift) - 1)) *
			(size_t)QHCA_ETH_MAX_SGE];
}

/* The first segment was mapped as one piece, the others are page fragments. */
static void tx_unmap(struct qhca_tx_queue *q, const struct qhca_tx_seg *segs,
		     u16 nsegs)
{
	struct device *dma = qhca_dma_dev(q->priv->dev);
	u16 i;

	for (i = 0; i < nsegs; i++) {
		if (segs[i].lent)
			continue;
		if (i)
			dma_unmap_page(dma, segs[i].addr, segs[i].len,
				       DMA_TO_DEVICE);
		else
			dma_unmap_single(dma, segs[i].addr, segs[i].len,
					 DMA_TO_DEVICE);
	}
}

/*
 * Map @len bytes at @data, and fragments. Returns the number of @segs, or -ENOMEM
 * with nothing left mapped.
 */
int qhca_tx_map(struct qhca_tx_queue *q, void *data, u32 len,
		const skb_frag_t *frags, u32 nfrags, struct qhca_tx_seg *segs)
{
	struct device *dma = qhca_dma_dev(q->priv->dev);
	dma_addr_t addr;
	u32 i;
	int n = 0;

	addr = dma_map_single(dma, data, len, DMA_TO_DEVICE);
	if (dma_mapping_error(dma, addr))
		return -ENOMEM;
	segs[n++] = (struct qhca_tx_seg){ .addr = addr, .len = len };
	for (i = 0; i < nfrags; i++) {
		const skb_frag_t *frag = &frags[i];

		len = skb_frag_size(frag);
		if (!len)
			continue;
		addr = skb_frag_dma_map(dma, frag, 0, len, DMA_TO_DEVICE);
		if (dma_mapping_error(dma, addr)) {
			tx_unmap(q, segs, n);
			return -ENOMEM;
		}
		segs[n++] = (struct qhca_tx_seg){
			.addr = addr,
			.len = len,
			.lent = skb_frag_is_net_iov(frag),
		};
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

/* IPv6 extension headers in a large send */
#define TX_EXT_MAX	8

#define TX_GSO_IPXIP	(SKB_GSO_IPXIP4 | SKB_GSO_IPXIP6)

/* The types of tunnel that the device distinguishes. */
#define TX_GSO_TUNNEL	(SKB_GSO_UDP_TUNNEL | SKB_GSO_UDP_TUNNEL_CSUM | \
			 SKB_GSO_GRE | TX_GSO_IPXIP)

/* The tunnel type of a GSO packet, or 0. */
static u32 tx_tunnel(const struct sk_buff *skb)
{
	return skb_shinfo(skb)->gso_type & TX_GSO_TUNNEL;
}

/* Bytes up to the end of the TCP or UDP header, the inner one in a tunnel. */
static u32 tx_hdr_len(const struct sk_buff *skb)
{
	bool udp = skb_shinfo(skb)->gso_type & SKB_GSO_UDP_L4;

	if (tx_tunnel(skb))
		return udp ? skb_inner_transport_offset(skb) + sizeof(struct udphdr) :
			     skb_inner_tcp_all_headers(skb);
	return udp ? skb_transport_offset(skb) + sizeof(struct udphdr) :
		     skb_tcp_all_headers(skb);
}

/* The offloads that the frame needs. */
static void tx_offloads(struct sk_buff *skb, struct qhca_eth_wqe *wqe)
{
	if (skb_is_gso(skb)) {
		wqe->flags |= QHCA_WQE_F_ETH_LSO;
		wqe->mss = cpu_to_le16(skb_shinfo(skb)->gso_size);
		wqe->hdr_len = cpu_to_le16(tx_hdr_len(skb));
		if (tx_tunnel(skb))
			wqe->inner_l3 =
				cpu_to_le16(skb_inner_network_offset(skb));
	} else if (skb->ip_summed == CHECKSUM_PARTIAL) {
		wqe->flags |= QHCA_WQE_F_ETH_CSUM;
		wqe->csum_start = cpu_to_le16(skb_checksum_start_offset(skb));
		wqe->csum_offset = cpu_to_le16(skb->csum_offset);
	}
	if (skb_vlan_tag_present(skb)) {
		wqe->flags |= QHCA_WQE_F_ETH_VLAN;
		wqe->vlan = cpu_to_le16(skb_vlan_tag_get(skb));
	}
}

/*
 * Write the next WQE, for the frame of @buf, whose segments are in
 * qhca_tx_segs(); with flags and fields of @offloads, if not NULL. The device
 * sends it after qhca_tx_flush(). The caller has checked for room.
 */
void qhca_tx_post(struct qhca_tx_queue *q, const struct qhca_tx_buf *buf,
		  const struct qhca_eth_wqe *offloads)
{
	struct qhca_eth_wqe *wqe = tx_wqe(q, q->prod);

	if (offloads)
		*wqe = *offloads;
	else
		memset(wqe, 0, sizeof(*wqe));
	wqe->opcode = QHCA_WQE_ETH_SEND;
	wqe->flags |= QHCA_WQE_F_SIGNALED;
	wqe->num_sge = cpu_to_le16(buf->nsegs);
	tx_fill_segs(wqe, qhca_tx_segs(q), buf->nsegs);
	*tx_buf(q, q->prod) = *buf;
	q->prod++;
	/* for the watchdog: the stack does this for frames with an skb only */
	txq_trans_cond_update(q->txq);
	if (!netif_txq_maybe_stop(q->txq, qhca_tx_room(q), 1, TX_WAKE(q)))
		qhca_stat_inc(&q->stats->sync, &q->stats->stop);
}

/* Tell the device about all posted WQEs. */
static void tx_ring(struct qhca_tx_queue *q)
{
	if (q->rung == q->prod)
		return;
	q->rung = q->prod;
	qhca_db_ring(q->priv->dev, QHCA_DB_ETH_SQ, q->num, 0, q->prod);
}

/* Frames and bytes on the wire. */
static void tx_fill_size(const struct sk_buff *skb, struct qhca_tx_buf *buf)
{
	buf->packets = 1;
	buf->bytes = skb->len;
	if (!skb_is_gso(skb))
		return;
	buf->packets = skb_shinfo(skb)->gso_segs;
	buf->bytes += (buf->packets - 1) * tx_hdr_len(skb);
}

/* Under the lock of the stack's queue. */
static void tx_count_offloads(struct qhca_tx_queue *q,
			      const struct sk_buff *skb,
			      const struct qhca_tx_buf *buf)
{
	struct qhca_tx_stats *s = q->stats;

	u64_stats_update_begin(&s->sync);
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		u64_stats_inc(&s->needs_csum);
	else
		u64_stats_inc(&s->csum_none);
	if (skb_is_gso(skb)) {
		u64_stats_inc(&s->gso_packets);
		u64_stats_add(&s->gso_bytes, skb->len);
		u64_stats_add(&s->gso_wire_packets, buf->packets);
		u64_stats_add(&s->gso_wire_bytes, buf->bytes);
	}
	u64_stats_update_end(&s->sync);
}

/* Offset of what follows the outer IP header; negative if not found. */
static int tx_outer_end(const struct sk_buff *skb)
{
	int at = skb_network_offset(skb);
	__be16 frag_off;
	u8 proto;

	if (ip_hdr(skb)->version == 4)
		return at + ip_hdrlen(skb);
	proto = ipv6_hdr(skb)->nexthdr;
	return ipv6_skip_exthdr(skb, at + sizeof(struct ipv6hdr), &proto,
				&frag_off);
}

/*
 * The device updates two IP headers in each frame, and repeats what is between
 * them: there must not be a third one. Two types at once mean FOU, or a tunnel
 * in a tunnel.
 */
static bool tx_tunnel_ok(const struct sk_buff *skb)
{
	u32 kinds = tx_tunnel(skb);

	if (!kinds)
		return true;
	if (!is_power_of_2(kinds))
		return false;
	return !(kinds & TX_GSO_IPXIP) ||
	       tx_outer_end(skb) == skb_inner_network_offset(skb);
}

/*
 * Does the device find what follows the IP header @ip at byte @at of the frame?
 * It follows a limited number of IPv6 extension headers, of these types.
 */
static bool tx_ext_ok(const struct sk_buff *skb, const void *ip, int at)
{
	const struct ipv6hdr *ip6 = ip;
	const struct ipv6_opt_hdr *ext;
	struct ipv6_opt_hdr copy;
	u8 proto;
	int n;

	if (ip6->version != 6)
		return true;
	proto = ip6->nexthdr;
	at += sizeof(*ip6);
	for (n = 0; ipv6_ext_hdr(proto); n++) {
		if (n == TX_EXT_MAX ||
		    (proto != NEXTHDR_HOP && proto != NEXTHDR_ROUTING &&
		     proto != NEXTHDR_DEST))
			return false;
		ext = skb_header_pointer(skb, at, sizeof(copy), &copy);
		if (!ext)
			return false;
		proto = ext->nexthdr;
		at += ipv6_optlen(ext);
	}
	return true;
}

static bool tx_l3_ok(const struct sk_buff *skb)
{
	return tx_ext_ok(skb, skb_network_header(skb),
			 skb_network_offset(skb)) &&
	       (!tx_tunnel(skb) ||
		tx_ext_ok(skb, skb_inner_network_header(skb),
			  skb_inner_network_offset(skb)));
}

/*
 * The device finds IP behind Ethernet and at most one 802.1Q tag. An outer tag
 * of another type is part of the frame, or becomes it.
 */
static bool tx_l2_ok(const struct sk_buff *skb)
{
	__be16 tag = skb_vlan_tag_present(skb) ? skb->vlan_proto :
						 skb->protocol;
	__be16 type = vlan_get_protocol(skb);

	return tag != htons(ETH_P_8021AD) &&
	       (type == htons(ETH_P_IP) || type == htons(ETH_P_IPV6));
}

/* ndo_features_check: no offload for headers that the device cannot repeat. */
netdev_features_t qhca_features_check(struct sk_buff *skb,
				      struct net_device *netdev,
				      netdev_features_t features)
{
	if (skb_is_gso(skb) && (!tx_l2_ok(skb) || !tx_l3_ok(skb) ||
				!tx_tunnel_ok(skb) ||
				tx_hdr_len(skb) > QHCA_ETH_LSO_HDR_MAX))
		features &= ~NETIF_F_GSO_MASK;
	return vlan_features_check(skb, features);
}

/* ndo_start_xmit */
netdev_tx_t qhca_xmit(struct sk_buff *skb, struct net_device *netdev)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_tx_queue *q = priv->ch[skb_get_queue_mapping(skb)].tx;
	struct qhca_tx_buf buf = { .skb = skb, .kind = QHCA_TX_SKB };
	struct qhca_eth_wqe offloads = {};
	int nsegs;

	if (unlikely(!qhca_tx_room(q))) {
		/* cannot happen: the queue was stopped earlier */
		netif_tx_stop_queue(q->txq);
		qhca_tx_flush(q);
		return NETDEV_TX_BUSY;
	}
	/* the device needs no padding, and cannot be given a copy of this */
	if (skb_frags_readable(skb) && skb_put_padto(skb, ETH_ZLEN))
		goto dropped;
	if (unlikely(skb_shinfo(skb)->nr_frags >= QHCA_ETH_MAX_SGE)) {
		/* only on kernels with more fragments than the device takes */
		qhca_stat_inc(&q->stats->sync, &q->stats->linearized);
		if (skb_linearize(skb))
			goto drop;
	}

	nsegs = qhca_tx_map(q, skb->data, skb_headlen(skb),
			    skb_shinfo(skb)->frags, skb_shinfo(skb)->nr_frags,
			    qhca_tx_segs(q));
	if (nsegs < 0)
		goto drop;
	buf.nsegs = nsegs;
	tx_fill_size(skb, &buf);
	tx_count_offloads(q, skb, &buf);
	tx_offloads(skb, &offloads);
	buf.stamp = qhca_ptp_tx_begin(&priv->ptp, skb);
	skb_tx_timestamp(skb);
	qhca_tx_post(q, &buf, &offloads);
	if (__netdev_tx_sent_queue(q->txq, buf.bytes, netdev_xmit_more()))
		qhca_tx_flush(q);
	return NETDEV_TX_OK;

drop:
	dev_kfree_skb_any(skb);
dropped:
	qhca_stat_inc(&q->stats->sync, &q->stats->dropped);
	/* earlier ones may have waited for this one's doorbell */
	if (!netdev_xmit_more())
		qhca_tx_flush(q);
	return NETDEV_TX_OK;
}

/* What has been completed. */
struct tx_done {
	u32 packets;
	u32 bytes;
	u32 skb_bytes;		/* of which BQL knows */
	u32 descs;		/* of AF_XDP */
};

static void tx_complete_one(struct qhca_tx_queue *q, u32 index, int budget,
			    struct tx_done *done)
{
	struct qhca_tx_buf *buf = tx_buf(q, index);

	if (buf->kind <= QHCA_TX_FRAME)	/* mapped for this */
		tx_unmap(q, tx_segs(q, index), buf->nsegs);
	done->packets += buf->packets;
	done->bytes += buf->bytes;
	if (unlikely(buf->stamp))
		qhca_stat_inc(&q->stats->sync, &q->stats->unstamped);
	buf->stamp = false;
	if (buf->kind == QHCA_TX_SKB) {
		done->skb_bytes += buf->bytes;
		napi_consume_skb(buf->skb, budget);
	} else if (buf->kind >= QHCA_TX_XSK) {
		done->descs += qhca_xsk_tx_release(buf);
	} else {
		xdp_return_frame(buf->frame);
	}
	buf->skb = NULL;
}

/*
 * Tell the sender when the frame was sent. For a large send, this is the last
 * frame.
 */
static void tx_stamp(struct qhca_tx_queue *q, struct qhca_tx_buf *buf,
		     const struct qhca_eth_cqe *cqe)
{
	if (cqe->status != QHCA_WC_SUCCESS)
		return;
	if (buf->kind == QHCA_TX_XSK)
		qhca_xsk_tx_stamp(q, buf, le64_to_cpu(cqe->timestamp));
	else
		qhca_ptp_tx_done(q, buf->skb, le64_to_cpu(cqe->timestamp));
	buf->stamp = false;
}

static void tx_count_sent(struct qhca_tx_queue *q, const struct tx_done *done)
{
	struct qhca_tx_stats *s = q->stats;

	u64_stats_update_begin(&s->sync);
	u64_stats_add(&s->packets, done->packets);
	u64_stats_add(&s->bytes, done->bytes);
	u64_stats_update_end(&s->sync);
}

/*
 * Take completions of sent frames, a lap of the ring at most. Returns true if
 * there may be more. @budget is NAPI's, or 0 elsewhere. Under the lock of the
 * stack's queue.
 */
static bool tx_reap(struct qhca_tx_queue *q, int budget)
{
	u32 left = BIT(q->shift), cons = q->cons;
	struct net_device *netdev = q->priv->netdev;
	bool taken = false, more = false;
	struct tx_done done = {};
	struct qhca_eth_cqe cqe;

	while (left-- && (more = qhca_net_cq_next(&q->cq, &cqe))) {
		u32 index = le32_to_cpu(cqe.wqe_index);
		u32 n = index - cons + 1;

		taken = true;
		if (unlikely(cqe.status != QHCA_WC_SUCCESS)) {
			qhca_stat_inc(&q->stats->sync, &q->stats->errors);
			netdev_dbg(netdev, "send: status %u syndrome %#x\n",
				   cqe.status, cqe.syndrome);
		}
		/* the device cannot have sent what it was not told about */
		if (unlikely(!n || n > q->rung - cons)) {
			netdev_warn_once(netdev,
					 "completion of send WQE %u, which was not posted\n",
					 index);
			continue;
		}
		if (unlikely(tx_buf(q, index)->stamp))
			tx_stamp(q, tx_buf(q, index), &cqe);
		while (n--)
			tx_complete_one(q, cons++, budget, &done);
	}
	/* including invalid ones: they do not come again */
	if (taken)
		qhca_net_cq_publish(&q->cq);
	if (cons == q->cons)
		return more;
	/* qhca_tx_poll() reads it without the lock */
	WRITE_ONCE(q->cons, cons);
	/* the queue makes progress, even if slow */
	txq_trans_cond_update(q->txq);
	tx_count_sent(q, &done);
	if (done.descs)
		qhca_xsk_tx_completed(q, done.descs);
	if (!__netif_txq_completed_wake(q->txq, done.packets, done.skb_bytes,
					qhca_tx_room(q), TX_WAKE(q),
					!READ_ONCE(q->priv->up) || !q->made))
		qhca_stat_inc(&q->stats->sync, &q->stats->wake);
	return more;
}

/* Does the device have sends to complete? Racy without the lock. */
static bool tx_pending(const struct qhca_tx_queue *q)
{
	return READ_ONCE(q->rung) != READ_ONCE(q->cons);
}

/*
 * May completions be taken here? Not those of frames without an skb from
 * netpoll with interrupts off: their buffers belong to page pools.
 */
static bool tx_may_reap(struct qhca_tx_queue *q)
{
	u32 i;

	if (likely(!irqs_disabled()))
		return true;
	for (i = q->cons; i != q->rung; i++) {
		if (tx_buf(q, i)->kind != QHCA_TX_SKB)
			return false;
	}
	return true;
}

/* Request an event if sends are in flight; a pending request stays valid. */
static void tx_arm(struct qhca_tx_queue *q)
{
	if (tx_pending(q) && !READ_ONCE(q->cq.armed))
		qhca_net_cq_arm(&q->cq);
}

/**
 * qhca_tx_flush - tell the device about all posted WQEs
 * @q: send queue
 *
 * As long as the wire accepts them, the device sends frames before the store to
 * the doorbell completes, so most are complete on return: take them here,
 * without an event. The rest is left to NAPI. An AF_XDP queue leaves everything
 * to NAPI, as its buffers are returned only there.
 *
 * Under the lock of the stack's queue.
 */
void qhca_tx_flush(struct qhca_tx_queue *q)
{
	tx_ring(q);
	if (q->xsk)
		return;
	if (tx_may_reap(q))
		tx_reap(q, 0);
	/* pairs with napi_schedule() of an event, which disarms the CQ */
	smp_mb();
	tx_arm(q);
}

/**
 * qhca_tx_poll - take completions of sent frames
 * @q: send queue
 * @budget: of NAPI; 0 from netpoll, which may have interrupted a sender
 *
 * In NAPI context.
 *
 * Return: true if there may be more.
 */
bool qhca_tx_poll(struct qhca_tx_queue *q, int budget)
{
	bool more;

	if (!tx_pending(q))
		return false;
	if (budget)
		__netif_tx_lock(q->txq, smp_processor_id());
	else if (!__netif_tx_trylock(q->txq))
		return true;
	more = tx_may_reap(q) && tx_reap(q, budget);
	__netif_tx_unlock(q->txq);
	return more;
}

/**
 * qhca_tx_arm - ask for an event when a send completes, at the end of NAPI
 * @q: send queue
 *
 * If no send is in flight, qhca_tx_flush() does it for later ones.
 */
void qhca_tx_arm(struct qhca_tx_queue *q)
{
	if (!q->xsk && !tx_pending(q))
		return;
	__netif_tx_lock(q->txq, smp_processor_id());
	if (!q->xsk)
		tx_arm(q);
	else if (q->made)
		qhca_net_cq_arm(&q->cq);
	__netif_tx_unlock(q->txq);
}

/* Drop all incomplete frames; the device no longer knows them. */
void qhca_tx_drop_all(struct qhca_tx_queue *q)
{
	struct tx_done done = {};

	for (; q->cons != q->prod; q->cons++) {
		tx_complete_one(q, q->cons, 0, &done);
		qhca_stat_inc(&q->stats->sync, &q->stats->dropped);
	}
	q->rung = q->prod;
	if (done.descs)
		qhca_xsk_tx_completed(q, done.descs);
}
