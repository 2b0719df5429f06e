// SPDX-License-Identifier: GPL-2.0
/*
 * hw_counters of the port (sysfs, "rdma statistic"). Uses the names of other
 * RoCE drivers where they exist.
 */
#include "qhca_ib.h"

/* priv: which one it is in the array that QUERY_STATS returns */
#define COUNTER(name_, stat_) \
	{ .name = (name_), .priv = (void *)(uintptr_t)(stat_) }

static const struct rdma_stat_desc descs[] = {
	COUNTER("rx_pkts", QHCA_STAT_ROCE_RX_PACKETS),
	COUNTER("rx_bytes", QHCA_STAT_ROCE_RX_BYTES),
	COUNTER("tx_pkts", QHCA_STAT_ROCE_TX_PACKETS),
	COUNTER("tx_bytes", QHCA_STAT_ROCE_TX_BYTES),
	COUNTER("rx_icrc_errors", QHCA_STAT_ROCE_ICRC_ERRORS),
	COUNTER("rx_malformed", QHCA_STAT_ROCE_RX_MALFORMED),
	COUNTER("rx_no_qp", QHCA_STAT_ROCE_RX_NO_QP),
	COUNTER("out_of_sequence", QHCA_STAT_ROCE_OUT_OF_SEQUENCE),
	COUNTER("duplicate_request", QHCA_STAT_ROCE_DUPLICATE),
	COUNTER("send_rnr_err", QHCA_STAT_ROCE_RNR_NAK_TX),
	COUNTER("rnr_nak_retry_err", QHCA_STAT_ROCE_RNR_NAK_RX),
	COUNTER("send_seq_err", QHCA_STAT_ROCE_SEQ_NAK_TX),
	COUNTER("packet_seq_err", QHCA_STAT_ROCE_SEQ_NAK_RX),
	COUNTER("local_ack_timeout_err", QHCA_STAT_ROCE_TIMEOUTS),
	COUNTER("retransmits", QHCA_STAT_ROCE_RETRANSMITS),
	COUNTER("resp_remote_access_errors", QHCA_STAT_ROCE_ACCESS_ERRORS),
	COUNTER("resp_invalid_request_errors", QHCA_STAT_ROCE_INV_REQ_ERRORS),
	COUNTER("resp_operation_errors", QHCA_STAT_ROCE_OP_ERRORS),
	COUNTER("retry_exceeded_err", QHCA_STAT_ROCE_RETRY_EXCEEDED),
	COUNTER("retry_rnr_exceeded_err", QHCA_STAT_ROCE_RNR_EXCEEDED),
	COUNTER("tx_acks", QHCA_STAT_ROCE_ACK_TX),
	COUNTER("rx_acks", QHCA_STAT_ROCE_ACK_RX),
	COUNTER("ud_dropped", QHCA_STAT_UD_DROPPED),
	COUNTER("rx_multicast", QHCA_STAT_ROCE_RX_MULTICAST),
	COUNTER("page_faults", QHCA_STAT_PAGE_FAULTS),
	COUNTER("page_fault_drops", QHCA_STAT_PAGE_FAULT_DROPS),
};

/* ib_device_ops.alloc_hw_port_stats */
struct rdma_hw_stats *qhca_ib_alloc_hw_port_stats(struct ib_device *ibdev,
						  u32 port)
{
	return rdma_alloc_hw_stats_struct(descs, ARRAY_SIZE(descs),
					  RDMA_HW_STATS_DEFAULT_LIFESPAN);
}

/* QHCA_STAT_* of the counter with this index */
u32 qhca_ib_stat_number(int index)
{
	return (uintptr_t)descs[index].priv;
}

/*
 * ib_device_ops.counter_alloc_stats: the same list as the port's, as the core
 * adds up by index; counters that QPs lack are disabled
 */
struct rdma_hw_stats *qhca_ib_counter_alloc_stats(struct rdma_counter *counter)
{
	struct rdma_hw_stats *stats;
	int i;

	stats = rdma_alloc_hw_stats_struct(descs, ARRAY_SIZE(descs),
					   RDMA_HW_STATS_DEFAULT_LIFESPAN);
	for (i = 0; stats && i < ARRAY_SIZE(descs); i++) {
		if (!qhca_ib_qp_has_stat(qhca_ib_stat_number(i)))
			set_bit(i, stats->is_disabled);
	}
	return stats;
}

/*
 * ib_device_ops.get_hw_stats: all counters, without the shares of QP counters,
 * which the core adds. Returns their number or an error.
 */
int qhca_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
			 u32 port, int index)
{
	__le64 values[QHCA_STAT_COUNT];
	u64 share[QHCA_STAT_COUNT];
	int i, err;

	if (port != QHCA_IB_PORT || !stats)
		return -EINVAL;
	err = qhca_ib_counters_share(to_qdev(ibdev), values, share);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(descs); i++)
		stats->value[i] = share[qhca_ib_stat_number(i)];
	return ARRAY_SIZE(descs);
}
