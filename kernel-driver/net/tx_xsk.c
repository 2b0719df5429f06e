// SPDX-License-Identifier: GPL-2.0
/*
 * Sending from the buffers of an AF_XDP pool: frames that an application has
 * put into its ring, and frames that a program sends back. They use the stack's
 * queue, under its lock; completions are reported to the pool in posting order.
 */
#include <net/xdp_sock_drv.h>

#include "qhca_compat.h"
#include "tx.h"
#include "xsk.h"

/* leave this much of the ring to the stack */
#define XSK_TX_RESERVE(q)	(BIT((q)->shift) / 4)

static void xsk_tx_csum(u16 csum_start, u16 csum_offset, void *priv)
{
	struct qhca_eth_wqe *wqe = priv;

	/* the device checks whether they are inside the frame */
	wqe->flags |= QHCA_WQE_F_ETH_CSUM;
	wqe->csum_start = cpu_to_le16(csum_start);
	wqe->csum_offset = cpu_to_le16(csum_offset);
}

/* The timestamp of each completion; @priv: a ktime_t. */
static u64 xsk_tx_time(void *priv)
{
	return ktime_to_ns(*(ktime_t *)priv);
}

const struct xsk_tx_metadata_ops qhca_xsk_tx_metadata_ops = {
	.tmo_fill_timestamp = xsk_tx_time,
	.tmo_request_checksum = xsk_tx_csum,
};

/* The frame is complete: write its WQE. The caller has checked for room. */
static void xsk_tx_post(struct qhca_tx_queue *q)
{
	struct qhca_xsk_part *p = &q->xsk_part;
	struct qhca_tx_buf buf = {
		.compl = p->compl,
		.kind = QHCA_TX_XSK,
		.packets = 1,
		.nsegs = p->nsegs,
		.descs = p->descs,
		.bytes = p->bytes,
		.stamp = p->compl.tx_timestamp,
	};

	memcpy(qhca_tx_segs(q), p->segs, p->nsegs * sizeof(*p->segs));
	qhca_tx_post(q, &buf, &p->offloads);
	p->descs = 0;
}

/* Take one descriptor. A frame may have several, from more than one poll. */
static void xsk_tx_desc(struct qhca_tx_queue *q, const struct xdp_desc *desc)
{
	struct qhca_xsk_part *p = &q->xsk_part;
	dma_addr_t dma = xsk_buff_raw_get_dma(q->xsk, desc->addr);

	if (p->begin) {
		memset(&p->offloads, 0, sizeof(p->offloads));
		qhca_xsk_tx_metadata(q->xsk, desc, &qhca_xsk_tx_metadata_ops,
				     &p->offloads, &p->compl);
		p->nsegs = 0;
		p->bytes = 0;
	}
	p->descs++;
	if (likely(p->nsegs < QHCA_ETH_MAX_SGE)) {
		xsk_buff_raw_dma_sync_for_device(q->xsk, dma, desc->len);
		p->segs[p->nsegs].addr = dma;
		p->segs[p->nsegs].len = desc->len;
		p->bytes += desc->len;
	}
	/* more than the maximum: drop the frame */
	p->nsegs = min(p->nsegs + 1, QHCA_ETH_MAX_SGE + 1);
	p->begin = xsk_is_eop_desc(desc);
	if (!p->begin)
		return;
	if (likely(p->nsegs <= QHCA_ETH_MAX_SGE))
		xsk_tx_post(q);
	else	/* its descriptors complete with the next frame's */
		qhca_stat_inc(&q->stats->sync, &q->stats->xdp_drops);
}

/* Post at most a budget. True if there may be more. Under the lock. */
static bool xsk_tx_some(struct qhca_tx_queue *q)
{
	u32 room = qhca_tx_room(q), old = q->prod, n, i;

	if (room <= XSK_TX_RESERVE(q))
		return false;	/* until something completes */
	n = xsk_tx_peek_release_desc_batch(q->xsk,
					   min(room - XSK_TX_RESERVE(q),
					       QHCA_XSK_TX_BUDGET));
	if (!n)
		return false;
	for (i = 0; i < n; i++)
		xsk_tx_desc(q, &q->xsk->tx_descs[i]);
	qhca_tx_flush(q);
	u64_stats_update_begin(&q->stats->sync);
	u64_stats_add(&q->stats->xsk_packets, q->prod - old);
	u64_stats_update_end(&q->stats->sync);
	return n == QHCA_XSK_TX_BUDGET;
}

/**
 * qhca_xsk_tx - send what applications have put into their rings
 * @q: send queue, with a pool
 *
 * In the channel's NAPI. An application that wakes the driver up need not do so
 * while something is in flight, as its completion calls this.
 *
 * Return: true if there may be more to send at once.
 */
bool qhca_xsk_tx(struct qhca_tx_queue *q)
{
	bool told = xsk_uses_need_wakeup(q->xsk), more;

	if (unlikely(!q->made))
		return false;
	__netif_tx_lock(q->txq, smp_processor_id());
	/* the application must see this before the last check */
	if (told && q->prod == q->cons)
		xsk_set_tx_need_wakeup(q->xsk);
	more = xsk_tx_some(q);
	if (told && q->prod != q->cons)
		xsk_clear_tx_need_wakeup(q->xsk);
	__netif_tx_unlock(q->txq);
	return more;
}

/*
 * Fill in the segments of @xdp and its fragments, which are linked into a
 * chain.
 */
static u16 xsk_tx_chain(struct qhca_tx_queue *q, struct xdp_buff *xdp)
{
	struct qhca_xdp_buff *last = (struct qhca_xdp_buff *)xdp;
	struct qhca_tx_seg *segs = qhca_tx_segs(q);
	struct skb_shared_info *info = NULL;
	struct xdp_buff *frag;
	u32 nr_frags = 0, i;

	if (xdp_buff_has_frags(xdp)) {
		info = xdp_get_shared_info_from_buff(xdp);
		nr_frags = info->nr_frags;
	}
	/* a program may have moved the head; the address is that without */
	segs[0].addr = xsk_buff_xdp_get_dma(xdp) +
		       (xdp->data - xdp->data_hard_start) - XDP_PACKET_HEADROOM;
	segs[0].len = xdp->data_end - xdp->data;
	last->next = NULL;
	for (i = 0; i < nr_frags; i++) {
		frag = xsk_buff_get_frag(xdp);
		segs[i + 1].addr = xsk_buff_xdp_get_dma(frag);
		segs[i + 1].len = skb_frag_size(&info->frags[i]);
		last->next = frag;
		last = (struct qhca_xdp_buff *)frag;
		last->next = NULL;
	}
	/* each buffer is freed separately */
	xdp_buff_clear_frags_flag(xdp);
	for (i = 0; i <= nr_frags; i++)
		xsk_buff_raw_dma_sync_for_device(q->xsk, segs[i].addr,
						 segs[i].len);
	return nr_frags + 1;
}

/**
 * qhca_xsk_tx_back - send back a frame in buffers of the channel's pool
 * @ch: channel
 * @xdp: the frame
 * @offloads: flags and fields of its WQE
 *
 * In the channel's NAPI; qhca_xdp_tx_flush() follows.
 *
 * Return: false if there is no room; the caller keeps the frame.
 */
bool qhca_xsk_tx_back(struct qhca_channel *ch, struct xdp_buff *xdp,
		      const struct qhca_eth_wqe *offloads)
{
	struct qhca_tx_queue *q = ch->tx;
	struct qhca_tx_buf buf = {
		.xdp = xdp,
		.kind = QHCA_TX_XSK_BUFF,
		.packets = 1,
		.bytes = xdp_get_buff_len(xdp),
	};
	u32 nfrags = 0;
	bool sent;

	if (xdp_buff_has_frags(xdp))
		nfrags = xdp_get_shared_info_from_buff(xdp)->nr_frags;
	__netif_tx_lock(q->txq, smp_processor_id());
	sent = q->made && qhca_tx_room(q) && nfrags < QHCA_ETH_MAX_SGE;
	if (likely(sent)) {
		buf.nsegs = xsk_tx_chain(q, xdp);
		qhca_tx_post(q, &buf, offloads);
		qhca_stat_inc(&q->stats->sync, &q->stats->xdp_xmit);
	} else {
		qhca_stat_inc(&q->stats->sync, &q->stats->xdp_drops);
	}
	__netif_tx_unlock(q->txq);
	return sent;
}

/*
 * The frame of @buf has been sent, or never will. Returns how many descriptors
 * that completes, for qhca_xsk_tx_completed().
 */
u32 qhca_xsk_tx_release(struct qhca_tx_buf *buf)
{
	struct xdp_buff *xdp, *next;

	if (buf->kind == QHCA_TX_XSK)
		return buf->descs;
	for (xdp = buf->xdp; xdp; xdp = next) {
		next = ((struct qhca_xdp_buff *)xdp)->next;
		xsk_buff_free(xdp);
	}
	return 0;
}

/* Tell the application when its frame was sent. */
void qhca_xsk_tx_stamp(struct qhca_tx_queue *q, struct qhca_tx_buf *buf,
		       u64 cycles)
{
	ktime_t time = qhca_ptp_time(&q->priv->ptp, cycles);

	xsk_tx_metadata_complete(&buf->compl, &qhca_xsk_tx_metadata_ops, &time);
	qhca_stat_inc(&q->stats->sync, &q->stats->stamped);
}

/* Return @descs more completed descriptors to applications. */
void qhca_xsk_tx_completed(struct qhca_tx_queue *q, u32 descs)
{
	xsk_tx_completed(q->xsk, descs);
}

/* The queue was stopped: return the descriptors of an incomplete frame. */
void qhca_xsk_tx_forget(struct qhca_tx_queue *q)
{
	struct qhca_xsk_part *p = &q->xsk_part;

	if (q->xsk && p->descs)
		xsk_tx_completed(q->xsk, p->descs);
	memset(p, 0, sizeof(*p));
	p->begin = true;
}
