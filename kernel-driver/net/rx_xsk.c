// SPDX-License-Identifier: GPL-2.0
/*
 * Receiving into the buffers of an AF_XDP pool. A program that redirects a
 * frame to its socket hands the buffer over; frames that it passes to the stack
 * are copied, and the buffers return to the pool.
 */
#include <linux/filter.h>
#include <net/xdp_sock_drv.h>

#include "qhca_compat.h"
#include "xdp.h"
#include "xsk.h"

static struct xdp_buff **xsk_buf(struct qhca_rx_queue *q, u32 index)
{
	return &q->xsk_bufs[index & (BIT(q->shift) - 1)];
}

/* The pool-specific part of qhca_rx_alloc(): @q->xsk is the pool. */
void qhca_xsk_rx_init(struct qhca_rx_queue *q)
{
	XSK_CHECK_PRIV_TYPE(struct qhca_xdp_buff);

	q->headroom = 0;	/* the pool's own */
	q->buf_len = min_t(u32, xsk_pool_get_rx_frame_size(q->xsk), SZ_16K);
}

/* Post the buffers of the fill ring. True if the receive ring is full then. */
static bool xsk_post(struct qhca_rx_queue *q)
{
	u32 mask = BIT(q->shift) - 1, slot, n, i;
	struct xdp_buff **bufs;

	while (qhca_rx_room(q)) {
		slot = q->prod & mask;
		bufs = &q->xsk_bufs[slot];
		n = xsk_buff_alloc_batch(q->xsk, bufs,
					 min(qhca_rx_room(q), mask + 1 - slot));
		if (!n)
			return false;
		for (i = 0; i < n; i++)
			qhca_rx_write(&q->buf, slot + i,
				      xsk_buff_xdp_get_dma(bufs[i]),
				      q->buf_len);
		q->prod += n;
	}
	return true;
}

/*
 * Post buffers until the ring is full or the application has provided no more.
 * It is told to wake the driver up when it has more, if it uses need_wakeup. In
 * NAPI context, or with NAPI off.
 */
void qhca_xsk_fill(struct qhca_rx_queue *q)
{
	bool told = xsk_uses_need_wakeup(q->xsk), full;
	u32 old = q->prod;

	/*
	 * No frame arrives at an empty ring and causes a poll. The application
	 * must see the flag before the last check.
	 */
	if (told && q->prod == q->cons)
		xsk_set_rx_need_wakeup(q->xsk);
	full = xsk_post(q);
	if (q->prod != old)
		qhca_rx_publish(q->dbrec, q->prod);
	if (told) {
		if (full)
			xsk_clear_rx_need_wakeup(q->xsk);
		else
			xsk_set_rx_need_wakeup(q->xsk);
	}
	if (q->prod == q->cons)
		qhca_stat_inc(&q->stats->sync, &q->stats->xsk_starved);
}

/*
 * Must the fill ring be polled, because the application does not wake the
 * driver?
 */
bool qhca_xsk_wants_timer(const struct qhca_rx_queue *q)
{
	return qhca_rx_works(q) && !xsk_uses_need_wakeup(q->xsk) &&
	       q->prod - q->cons < QHCA_RX_MAX_BUFS;
}

/* Give the next @n buffers back to the pool. In NAPI context, or with NAPI off. */
void qhca_xsk_drop(struct qhca_rx_queue *q, u32 n)
{
	while (n--) {
		struct xdp_buff **buf = xsk_buf(q, q->cons++);

		xsk_buff_free(*buf);
		*buf = NULL;
	}
}

/* Take the next buffer, with @len bytes of a frame. */
static struct xdp_buff *xsk_take(struct qhca_rx_queue *q, u32 len)
{
	struct xdp_buff **buf = xsk_buf(q, q->cons++);
	struct xdp_buff *xdp = *buf;

	*buf = NULL;
	xsk_buff_set_size(xdp, len);
	xsk_buff_dma_sync_for_cpu(xdp);
	return xdp;
}

/* Turn the buffers of the next frame into an xdp_buff. NULL on failure. */
static struct xdp_buff *xsk_gather(struct qhca_rx_queue *q, u32 nbufs, u32 len)
{
	u32 part = min_t(u32, len, q->buf_len);
	struct xdp_buff *xdp, *frag;

	/* longer than the MTU allows */
	if (unlikely(nbufs > 1 && !(q->xsk->umem->flags & XDP_UMEM_SG_FLAG))) {
		qhca_xsk_drop(q, nbufs);
		return NULL;
	}
	xdp = xsk_take(q, part);
	while (--nbufs) {
		len -= part;
		part = min_t(u32, len, q->buf_len);
		frag = xsk_take(q, part);
		if (likely(qhca_xsk_add_frag(xdp, frag)))
			continue;
		xsk_buff_free(frag);
		xsk_buff_free(xdp);
		qhca_xsk_drop(q, nbufs - 1);
		return NULL;
	}
	return xdp;
}

/* A copy for the stack; NULL if memory is short. Frees the buffers. */
static struct sk_buff *xsk_build(struct qhca_rx_queue *q, struct xdp_buff *xdp)
{
	u32 meta = xdp->data - xdp->data_meta;
	struct skb_shared_info *info;
	struct sk_buff *skb;
	u32 i;

	skb = napi_alloc_skb(&q->ch->napi, meta + xdp_get_buff_len(xdp));
	if (unlikely(!skb))
		goto out;
	skb_put_data(skb, xdp->data_meta, xdp->data_end - xdp->data_meta);
	if (xdp_buff_has_frags(xdp)) {
		info = xdp_get_shared_info_from_buff(xdp);
		for (i = 0; i < info->nr_frags; i++)
			skb_put_data(skb, skb_frag_address(&info->frags[i]),
				     skb_frag_size(&info->frags[i]));
	}
	if (meta) {
		__skb_pull(skb, meta);
		skb_metadata_set(skb, meta);
	}
out:
	xsk_buff_free(xdp);
	return skb;
}

/*
 * Run @prog, if any, on the next frame. Returns it if it is for the stack, else
 * NULL. Its numbers of buffers and bytes have been checked.
 */
struct sk_buff *qhca_xsk_rx(struct qhca_rx_queue *q, struct bpf_prog *prog,
			    const struct qhca_eth_cqe *cqe,
			    struct qhca_rx_count *count)
{
	u32 len = le32_to_cpu(cqe->byte_len);
	struct xdp_buff *xdp;
	struct sk_buff *skb;

	xdp = xsk_gather(q, le16_to_cpu(cqe->num_wqe), len);
	if (unlikely(!xdp))
		goto dropped;
	count->xsk_packets++;
	((struct qhca_xdp_buff *)xdp)->cqe = cqe;
	if (prog) {
		if (unlikely(xdp_buff_has_frags(xdp) &&
			     !prog->aux->xdp_has_frags)) {
			xsk_buff_free(xdp);
			count->xdp_drops++;
			goto gone;
		}
		if (!qhca_xdp_run(q, prog, xdp, count))
			goto gone;
	}
	skb = xsk_build(q, xdp);
	if (likely(skb))
		return skb;
dropped:
	qhca_stat_inc(&q->stats->sync, &q->stats->dropped);
	return NULL;

gone:
	count->packets++;
	count->bytes += len;
	return NULL;
}
