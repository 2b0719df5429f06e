/* SPDX-License-Identifier: GPL-2.0 */
/* Shared by the files of the receive path. */
#ifndef QHCA_RX_H
#define QHCA_RX_H

#include <net/xdp.h>

#include "netdev.h"

struct bpf_prog;

/* What one poll has received. */
struct qhca_rx_count {
	u32 packets;
	u32 bytes;
	u32 csum_ok;
	u32 csum_none;
	u32 split;
	u32 large_packets;
	u32 large_bytes;
	u32 large_wire_packets;
	u32 large_wire_bytes;
	u32 xdp_packets;
	u32 xdp_drops;
	u32 xdp_tx;
	u32 xdp_redirects;
	u32 xsk_packets;
};

/* A frame as a program sees it, and the device's information about it. */
struct qhca_xdp_buff {
	struct xdp_buff xdp;
	const struct qhca_eth_cqe *cqe;	/* while the program runs */
	__be16 protocol;	/* EtherType, as received */
	struct xdp_buff *next;	/* next AF_XDP buffer of a frame sent back */
};

/* rx.c */
struct page *qhca_rx_take(struct qhca_rx_queue *q, u32 len);

/* rx_xdp.c */
bool qhca_xdp_run(struct qhca_rx_queue *q, struct bpf_prog *prog,
		  struct xdp_buff *xdp, struct qhca_rx_count *count);
struct sk_buff *qhca_xdp_rx(struct qhca_rx_queue *q, struct bpf_prog *prog,
			    const struct qhca_eth_cqe *cqe,
			    struct qhca_rx_count *count);
void qhca_xdp_flush(struct qhca_rx_queue *q, const struct qhca_rx_count *count);
extern const struct xdp_metadata_ops qhca_xdp_metadata_ops;

#endif /* QHCA_RX_H */
