/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the files of the send path. All under the lock of the stack's
 * queue.
 */
#ifndef QHCA_TX_H
#define QHCA_TX_H

#include "netdev.h"

static inline u32 qhca_tx_room(const struct qhca_tx_queue *q)
{
	return BIT(q->shift) - (q->prod - q->cons);
}

/* Where the segments of the next WQE go, QHCA_ETH_MAX_SGE at most. */
static inline struct qhca_tx_seg *qhca_tx_segs(struct qhca_tx_queue *q)
{
	return &q->segs[(q->prod & (BIT(q->shift) - 1)) *
			(size_t)QHCA_ETH_MAX_SGE];
}

int qhca_tx_map(struct qhca_tx_queue *q, void *data, u32 len,
		const skb_frag_t *frags, u32 nfrags, struct qhca_tx_seg *segs);
void qhca_tx_post(struct qhca_tx_queue *q, const struct qhca_tx_buf *buf,
		  const struct qhca_eth_wqe *offloads);
void qhca_tx_flush(struct qhca_tx_queue *q);

#endif /* QHCA_TX_H */
