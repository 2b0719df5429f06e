// SPDX-License-Identifier: GPL-2.0
/*
 * Names of the counters that QUERY_STATS returns, as ethtool -S and debugfs
 * show them: those of the header in lower case, without QHCA_STAT_.
 */
#ifdef __KERNEL__
#include "qhca_core.h"
#else
#include <rdma/qhca-hw.h>
extern const char * const qhca_stat_names[QHCA_STAT_COUNT];
#endif

/* NULL where the header gives no meaning to the index. */
const char * const qhca_stat_names[QHCA_STAT_COUNT] = {
	[QHCA_STAT_ETH_RX_PACKETS] = "eth_rx_packets",
	[QHCA_STAT_ETH_RX_BYTES] = "eth_rx_bytes",
	[QHCA_STAT_ETH_RX_DROPPED] = "eth_rx_dropped",
	[QHCA_STAT_ETH_RX_FILTERED] = "eth_rx_filtered",
	[QHCA_STAT_ETH_RX_ERRORS] = "eth_rx_errors",
	[QHCA_STAT_ETH_TX_PACKETS] = "eth_tx_packets",
	[QHCA_STAT_ETH_TX_BYTES] = "eth_tx_bytes",
	[QHCA_STAT_ETH_TX_ERRORS] = "eth_tx_errors",
	[QHCA_STAT_ETH_RX_MULTICAST] = "eth_rx_multicast",
	[QHCA_STAT_RAW_RX_PACKETS] = "raw_rx_packets",
	[QHCA_STAT_RAW_RX_BYTES] = "raw_rx_bytes",
	[QHCA_STAT_RAW_RX_DROPPED] = "raw_rx_dropped",
	[QHCA_STAT_RAW_TX_PACKETS] = "raw_tx_packets",
	[QHCA_STAT_RAW_TX_BYTES] = "raw_tx_bytes",
	[QHCA_STAT_ETH_RX_GRO_PACKETS] = "eth_rx_gro_packets",
	[QHCA_STAT_ETH_RX_GRO_FRAMES] = "eth_rx_gro_frames",
	[QHCA_STAT_ROCE_RX_PACKETS] = "roce_rx_packets",
	[QHCA_STAT_ROCE_RX_BYTES] = "roce_rx_bytes",
	[QHCA_STAT_ROCE_TX_PACKETS] = "roce_tx_packets",
	[QHCA_STAT_ROCE_TX_BYTES] = "roce_tx_bytes",
	[QHCA_STAT_ROCE_ICRC_ERRORS] = "roce_icrc_errors",
	[QHCA_STAT_ROCE_RX_MALFORMED] = "roce_rx_malformed",
	[QHCA_STAT_ROCE_RX_NO_QP] = "roce_rx_no_qp",
	[QHCA_STAT_ROCE_OUT_OF_SEQUENCE] = "roce_out_of_sequence",
	[QHCA_STAT_ROCE_DUPLICATE] = "roce_duplicate",
	[QHCA_STAT_ROCE_RNR_NAK_TX] = "roce_rnr_nak_tx",
	[QHCA_STAT_ROCE_RNR_NAK_RX] = "roce_rnr_nak_rx",
	[QHCA_STAT_ROCE_SEQ_NAK_TX] = "roce_seq_nak_tx",
	[QHCA_STAT_ROCE_SEQ_NAK_RX] = "roce_seq_nak_rx",
	[QHCA_STAT_ROCE_TIMEOUTS] = "roce_timeouts",
	[QHCA_STAT_ROCE_RETRANSMITS] = "roce_retransmits",
	[QHCA_STAT_ROCE_ACCESS_ERRORS] = "roce_access_errors",
	[QHCA_STAT_ROCE_INV_REQ_ERRORS] = "roce_inv_req_errors",
	[QHCA_STAT_ROCE_OP_ERRORS] = "roce_op_errors",
	[QHCA_STAT_ROCE_RETRY_EXCEEDED] = "roce_retry_exceeded",
	[QHCA_STAT_ROCE_RNR_EXCEEDED] = "roce_rnr_exceeded",
	[QHCA_STAT_ROCE_ACK_TX] = "roce_ack_tx",
	[QHCA_STAT_ROCE_ACK_RX] = "roce_ack_rx",
	[QHCA_STAT_UD_DROPPED] = "ud_dropped",
	[QHCA_STAT_PAGE_FAULTS] = "page_faults",
	[QHCA_STAT_PAGE_FAULT_DROPS] = "page_fault_drops",
	[QHCA_STAT_ROCE_RX_MULTICAST] = "roce_rx_multicast",
	[QHCA_STAT_DOORBELLS] = "doorbells",
	[QHCA_STAT_DB_BAD_OBJECT] = "db_bad_object",
	[QHCA_STAT_DB_BAD_OWNER] = "db_bad_owner",
	[QHCA_STAT_DB_BAD_INDEX] = "db_bad_index",
	[QHCA_STAT_DB_BAD_ACCESS] = "db_bad_access",
	[QHCA_STAT_TABLE_FAULTS] = "table_faults",
	[QHCA_STAT_DMA_ERRORS] = "dma_errors",
	[QHCA_STAT_CQ_OVERFLOWS] = "cq_overflows",
	[QHCA_STAT_WQES] = "wqes",
	[QHCA_STAT_CQES] = "cqes",
	[QHCA_STAT_EQES] = "eqes",
	[QHCA_STAT_INTERRUPTS] = "interrupts",
	[QHCA_STAT_TABLE_WALKS] = "table_walks",
	[QHCA_STAT_AQ_COMMANDS] = "aq_commands",
	[QHCA_STAT_AQ_ERRORS] = "aq_errors",
	[QHCA_STAT_DB_BAD_STATE] = "db_bad_state",
};
