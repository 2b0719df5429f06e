/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The names of the codes of the hardware interface. */
#include "observe/decode.h"
#include "transport/rc.h"

#define N(prefix, name) { prefix##name, #name }
#define END             { 0, NULL }

const struct qhca_name qhca_names_feature[] = {
    N(QHCA_FEAT_, RC), N(QHCA_FEAT_, UC), N(QHCA_FEAT_, UD),
    N(QHCA_FEAT_, SRQ), N(QHCA_FEAT_, ATOMIC), N(QHCA_FEAT_, FAST_REG),
    N(QHCA_FEAT_, LIST_FORM), N(QHCA_FEAT_, ETH_CSUM), N(QHCA_FEAT_, XRC),
    N(QHCA_FEAT_, MW), N(QHCA_FEAT_, REREG),
    N(QHCA_FEAT_, DM), N(QHCA_FEAT_, ODP), N(QHCA_FEAT_, RAW_PACKET),
    N(QHCA_FEAT_, FLOW), N(QHCA_FEAT_, RSS),
    N(QHCA_FEAT_, MCAST),
    N(QHCA_FEAT_, TAG_MATCHING), N(QHCA_FEAT_, FLUSH),
    N(QHCA_FEAT_, ATOMIC_WRITE), N(QHCA_FEAT_, MASKED_ATOMIC),
    N(QHCA_FEAT_, CQ_RESIZE), N(QHCA_FEAT_, SRQ_RESIZE),
    N(QHCA_FEAT_, ETH_LSO), N(QHCA_FEAT_, ETH_RSS), N(QHCA_FEAT_, ETH_HDS),
    N(QHCA_FEAT_, ETH_SUPER), N(QHCA_FEAT_, ETH_GRO),
    N(QHCA_FEAT_, PORT_STATS), N(QHCA_FEAT_, EQ_RECORD),
    N(QHCA_FEAT_, SQ_RECORD), N(QHCA_FEAT_, ETH_TUNNEL),
    N(QHCA_FEAT_, ETH_SHAPER), N(QHCA_FEAT_, ETH_HASH_LABEL),
    N(QHCA_FEAT_, ETH_LOOPBACK), N(QHCA_FEAT_, ETH_UNPAD),
    N(QHCA_FEAT_, PAUSE),
    END
};

const struct qhca_name qhca_names_qp_type[] = {
    N(QHCA_QPT_, RC), N(QHCA_QPT_, UC), N(QHCA_QPT_, UD), N(QHCA_QPT_, GSI),
    N(QHCA_QPT_, XRC_INI), N(QHCA_QPT_, XRC_TGT), N(QHCA_QPT_, RAW),
    N(QHCA_QPT_, RSS),
    END
};

const struct qhca_name qhca_names_qp_state[] = {
    N(QHCA_QPS_, RESET), N(QHCA_QPS_, INIT), N(QHCA_QPS_, RTR),
    N(QHCA_QPS_, RTS), N(QHCA_QPS_, SQD), N(QHCA_QPS_, SQE),
    N(QHCA_QPS_, ERR),
    END
};

const struct qhca_name qhca_names_qp_flag[] = {
    N(QHCA_QP_F_, SRQ), N(QHCA_QP_F_, PRIVILEGED), N(QHCA_QP_F_, SQ_RECORD),
    N(QHCA_QP_F_, BLOCK_MC_LOOP), N(QHCA_QP_F_, STRIP_VLAN),
    END
};

const struct qhca_name qhca_names_req_state[] = {
    N(QHCA_REQ_, IDLE), N(QHCA_REQ_, ACTIVE), N(QHCA_REQ_, WAIT_ACK),
    N(QHCA_REQ_, WAIT_RNR), N(QHCA_REQ_, WAIT_FENCE), N(QHCA_REQ_, WAIT_RD),
    N(QHCA_REQ_, WAIT_PAGE), N(QHCA_REQ_, WAIT_CREDITS),
    END
};

const struct qhca_name qhca_names_rsp_state[] = {
    N(QHCA_RSP_, IDLE), N(QHCA_RSP_, MESSAGE), N(QHCA_RSP_, READ),
    N(QHCA_RSP_, NAKED), N(QHCA_RSP_, WAIT_PAGE),
    END
};

const struct qhca_name qhca_names_access[] = {
    N(QHCA_ACCESS_, LOCAL_WRITE), N(QHCA_ACCESS_, REMOTE_WRITE),
    N(QHCA_ACCESS_, REMOTE_READ), N(QHCA_ACCESS_, REMOTE_ATOMIC),
    N(QHCA_ACCESS_, MW_BIND), N(QHCA_ACCESS_, FLUSH_GLOBAL),
    N(QHCA_ACCESS_, FLUSH_PERSISTENT),
    END
};

const struct qhca_name qhca_names_form[] = {
    N(QHCA_BUF_, DIRECT), N(QHCA_BUF_, LIST), N(QHCA_BUF_, FLAT),
    N(QHCA_BUF_, TREE),
    END
};

const struct qhca_name qhca_names_cq_state[] = {
    N(QHCA_CQ_, OK), N(QHCA_CQ_, ERR),
    END
};

const struct qhca_name qhca_names_arm[] = {
    N(QHCA_ARM_, NONE), N(QHCA_ARM_, ANY), N(QHCA_ARM_, SOLICITED),
    END
};

const struct qhca_name qhca_names_eq_flag[] = {
    N(QHCA_EQ_F_, RECORD),
    END
};

const struct qhca_name qhca_names_srq_flag[] = {
    N(QHCA_SRQ_F_, XRC), N(QHCA_SRQ_F_, TM),
    END
};

const struct qhca_name qhca_names_srq_state[] = {
    N(QHCA_SRQ_, OK), N(QHCA_SRQ_, ERR),
    END
};

const struct qhca_name qhca_names_mr_flag[] = {
    N(QHCA_MR_F_, PHYS), N(QHCA_MR_F_, FAST_REG), N(QHCA_MR_F_, DM),
    N(QHCA_MR_F_, ODP), N(QHCA_MR_F_, MW1), N(QHCA_MR_F_, MW2),
    END
};

const struct qhca_name qhca_names_mr_state[] = {
    N(QHCA_MR_, FREE), N(QHCA_MR_, VALID),
    END
};

const struct qhca_name qhca_names_gid_type[] = {
    N(QHCA_GID_, NONE), N(QHCA_GID_, ROCE_V2),
    END
};

const struct qhca_name qhca_names_wqe_op[] = {
    N(QHCA_WQE_, SEND), N(QHCA_WQE_, SEND_IMM), N(QHCA_WQE_, SEND_INV),
    N(QHCA_WQE_, RDMA_WRITE), N(QHCA_WQE_, RDMA_WRITE_IMM),
    N(QHCA_WQE_, ATOMIC_WRITE), N(QHCA_WQE_, RDMA_READ),
    N(QHCA_WQE_, COMP_SWAP), N(QHCA_WQE_, FETCH_ADD),
    N(QHCA_WQE_, MASKED_COMP_SWAP), N(QHCA_WQE_, MASKED_FETCH_ADD),
    N(QHCA_WQE_, LOCAL_INV), N(QHCA_WQE_, REG_MR), N(QHCA_WQE_, BIND_MW),
    N(QHCA_WQE_, FLUSH),
    N(QHCA_WQE_, ETH_SEND), N(QHCA_WQE_, RAW_SEND), N(QHCA_WQE_, TAG_ADD),
    N(QHCA_WQE_, TAG_DEL),
    N(QHCA_WQE_, TAG_SYNC),
    END
};

const struct qhca_name qhca_names_wqe_flag[] = {
    N(QHCA_WQE_F_, SIGNALED), N(QHCA_WQE_F_, SOLICITED),
    N(QHCA_WQE_F_, FENCE), N(QHCA_WQE_F_, INLINE),
    END
};

const struct qhca_name qhca_names_eth_wqe_flag[] = {
    N(QHCA_WQE_F_, SIGNALED), N(QHCA_WQE_F_, ETH_CSUM),
    N(QHCA_WQE_F_, ETH_VLAN), N(QHCA_WQE_F_, ETH_LSO),
    END
};

const struct qhca_name qhca_names_tm_wqe_flag[] = {
    N(QHCA_WQE_F_, SIGNALED), N(QHCA_WQE_F_, TM_SYNC),
    END
};

const struct qhca_name qhca_names_cqe_op[] = {
    N(QHCA_CQE_OP_, SEND), N(QHCA_CQE_OP_, RDMA_WRITE),
    N(QHCA_CQE_OP_, RDMA_READ), N(QHCA_CQE_OP_, COMP_SWAP),
    N(QHCA_CQE_OP_, FETCH_ADD), N(QHCA_CQE_OP_, LOCAL_INV),
    N(QHCA_CQE_OP_, BIND_MW),
    N(QHCA_CQE_OP_, REG_MR), N(QHCA_CQE_OP_, FLUSH),
    N(QHCA_CQE_OP_, ATOMIC_WRITE), N(QHCA_CQE_OP_, MASKED_COMP_SWAP),
    N(QHCA_CQE_OP_, MASKED_FETCH_ADD), N(QHCA_CQE_OP_, ETH_SEND),
    N(QHCA_CQE_OP_, RECV), N(QHCA_CQE_OP_, RECV_RDMA_IMM),
    N(QHCA_CQE_OP_, RAW_RECV),
    N(QHCA_CQE_OP_, TM_RECV), N(QHCA_CQE_OP_, TM_NO_TAG),
    N(QHCA_CQE_OP_, TM_ADD), N(QHCA_CQE_OP_, TM_DEL),
    N(QHCA_CQE_OP_, TM_SYNC), N(QHCA_CQE_OP_, ETH_RECV),
    END
};

const struct qhca_name qhca_names_cqe_flag[] = {
    N(QHCA_CQE_F_, GRH), N(QHCA_CQE_F_, IMM), N(QHCA_CQE_F_, INV),
    N(QHCA_CQE_F_, SOLICITED), N(QHCA_CQE_F_, SMAC), N(QHCA_CQE_F_, VLAN),
    N(QHCA_CQE_F_, L3_OK), N(QHCA_CQE_F_, L4_OK), N(QHCA_CQE_F_, SRQ),
    N(QHCA_CQE_F_, SRQN), N(QHCA_CQE_F_, TM_SYNC_REQ),
    N(QHCA_CQE_F_, TM_MATCH), N(QHCA_CQE_F_, TM_DATA_VALID),
    N(QHCA_CQE_F_, CWR), N(QHCA_CQE_F_, SAME_ID),
    N(QHCA_CQE_F_, SAME_INNER_ID),
    END
};

const struct qhca_name qhca_names_wc[] = {
    N(QHCA_WC_, SUCCESS), N(QHCA_WC_, LOC_LEN_ERR),
    N(QHCA_WC_, LOC_QP_OP_ERR), N(QHCA_WC_, LOC_PROT_ERR),
    N(QHCA_WC_, WR_FLUSH_ERR), N(QHCA_WC_, MW_BIND_ERR),
    N(QHCA_WC_, BAD_RESP_ERR), N(QHCA_WC_, LOC_ACCESS_ERR),
    N(QHCA_WC_, REM_INV_REQ_ERR), N(QHCA_WC_, REM_ACCESS_ERR),
    N(QHCA_WC_, REM_OP_ERR), N(QHCA_WC_, RETRY_EXC_ERR),
    N(QHCA_WC_, RNR_RETRY_EXC_ERR), N(QHCA_WC_, FATAL_ERR),
    N(QHCA_WC_, GENERAL_ERR), N(QHCA_WC_, TM_ERR),
    N(QHCA_WC_, TM_RNDV_INCOMPLETE),
    END
};

const struct qhca_name qhca_names_syn[] = {
    N(QHCA_SYN_, NONE), N(QHCA_SYN_, KEY_INVALID), N(QHCA_SYN_, KEY_PD),
    N(QHCA_SYN_, KEY_BOUNDS), N(QHCA_SYN_, KEY_ACCESS),
    N(QHCA_SYN_, QP_ACCESS), N(QHCA_SYN_, KEY_PRIVILEGE),
    N(QHCA_SYN_, PAGE_FAULT), N(QHCA_SYN_, MW_BOUND), N(QHCA_SYN_, MW_QP),
    N(QHCA_SYN_, TABLE_INVALID),
    N(QHCA_SYN_, TABLE_DMA), N(QHCA_SYN_, DATA_DMA), N(QHCA_SYN_, WQE_DMA),
    N(QHCA_SYN_, WQE_OPCODE), N(QHCA_SYN_, WQE_SGE), N(QHCA_SYN_, WQE_LENGTH),
    N(QHCA_SYN_, WQE_FLAGS), N(QHCA_SYN_, WQE_AV), N(QHCA_SYN_, DB_INDEX),
    N(QHCA_SYN_, RQ_LENGTH), N(QHCA_SYN_, TM_HANDLE), N(QHCA_SYN_, PSN_SEQ),
    N(QHCA_SYN_, TIMEOUT), N(QHCA_SYN_, RNR), N(QHCA_SYN_, NAK_INV_REQ),
    N(QHCA_SYN_, NAK_ACCESS), N(QHCA_SYN_, NAK_OP), N(QHCA_SYN_, BAD_PACKET),
    N(QHCA_SYN_, RD_ATOMIC), N(QHCA_SYN_, XRC_SRQ), N(QHCA_SYN_, CQ_OVERFLOW),
    N(QHCA_SYN_, CQ_DMA), N(QHCA_SYN_, FLUSH),
    END
};

const struct qhca_name qhca_names_event[] = {
    N(QHCA_EV_, CQ), N(QHCA_EV_, CQ_ERR), N(QHCA_EV_, QP_FATAL),
    N(QHCA_EV_, QP_REQ_ERR), N(QHCA_EV_, QP_ACCESS_ERR),
    N(QHCA_EV_, COMM_EST), N(QHCA_EV_, SQ_DRAINED), N(QHCA_EV_, LAST_WQE),
    N(QHCA_EV_, SRQ_ERR), N(QHCA_EV_, SRQ_LIMIT), N(QHCA_EV_, ETH_SQ_ERR),
    N(QHCA_EV_, ETH_RQ_ERR), N(QHCA_EV_, PORT), N(QHCA_EV_, DEVICE_FATAL),
    N(QHCA_EV_, PAGE_FAULT),
    END
};

const struct qhca_name qhca_names_cmd[] = {
    N(QHCA_CMD_, NOP), N(QHCA_CMD_, QUERY_DEVICE), N(QHCA_CMD_, QUERY_PORT),
    N(QHCA_CMD_, MODIFY_PORT), N(QHCA_CMD_, QUERY_STATS),
    N(QHCA_CMD_, SET_GID), N(QHCA_CMD_, QUERY_GID), N(QHCA_CMD_, SET_MC_LIST),
    N(QHCA_CMD_, ALLOC_UAR), N(QHCA_CMD_, FREE_UAR), N(QHCA_CMD_, ALLOC_PD),
    N(QHCA_CMD_, FREE_PD), N(QHCA_CMD_, ALLOC_XRCD), N(QHCA_CMD_, FREE_XRCD),
    N(QHCA_CMD_, CREATE_EQ), N(QHCA_CMD_, DESTROY_EQ), N(QHCA_CMD_, QUERY_EQ),
    N(QHCA_CMD_, CREATE_CQ), N(QHCA_CMD_, MODIFY_CQ),
    N(QHCA_CMD_, DESTROY_CQ), N(QHCA_CMD_, QUERY_CQ),
    N(QHCA_CMD_, CREATE_SRQ), N(QHCA_CMD_, MODIFY_SRQ),
    N(QHCA_CMD_, DESTROY_SRQ), N(QHCA_CMD_, QUERY_SRQ),
    N(QHCA_CMD_, CREATE_QP), N(QHCA_CMD_, MODIFY_QP),
    N(QHCA_CMD_, DESTROY_QP), N(QHCA_CMD_, QUERY_QP),
    N(QHCA_CMD_, QUERY_PAGE_FAULT), N(QHCA_CMD_, RESUME_PAGE_FAULT),
    N(QHCA_CMD_, ATTACH_MC), N(QHCA_CMD_, DETACH_MC), N(QHCA_CMD_, CREATE_MR),
    N(QHCA_CMD_, DESTROY_MR), N(QHCA_CMD_, QUERY_MR), N(QHCA_CMD_, MODIFY_MR),
    N(QHCA_CMD_, CREATE_MW),
    N(QHCA_CMD_, CREATE_ETH_SQ), N(QHCA_CMD_, DESTROY_ETH_SQ),
    N(QHCA_CMD_, CREATE_ETH_RQ), N(QHCA_CMD_, DESTROY_ETH_RQ),
    N(QHCA_CMD_, MODIFY_ETH_RQ), N(QHCA_CMD_, QUERY_ETH_RQ),
    N(QHCA_CMD_, QUERY_ETH_SQ), N(QHCA_CMD_, MODIFY_ETH_SQ),
    N(QHCA_CMD_, CREATE_WQ),
    N(QHCA_CMD_, MODIFY_WQ), N(QHCA_CMD_, DESTROY_WQ),
    N(QHCA_CMD_, QUERY_WQ), N(QHCA_CMD_, CREATE_RQT),
    N(QHCA_CMD_, DESTROY_RQT), N(QHCA_CMD_, CREATE_FLOW),
    N(QHCA_CMD_, DESTROY_FLOW),
    N(QHCA_CMD_, CREATE_SHAPER), N(QHCA_CMD_, DESTROY_SHAPER),
    N(QHCA_CMD_, MODIFY_SHAPER), N(QHCA_CMD_, QUERY_SHAPER),
    END
};

const struct qhca_name qhca_names_st[] = {
    N(QHCA_ST_, OK), N(QHCA_ST_, BAD_OPCODE), N(QHCA_ST_, UNSUPPORTED),
    N(QHCA_ST_, BAD_PARAM), N(QHCA_ST_, BAD_OBJ), N(QHCA_ST_, BAD_STATE),
    N(QHCA_ST_, BUSY), N(QHCA_ST_, NO_RESOURCES), N(QHCA_ST_, DMA_ERROR),
    N(QHCA_ST_, BAD_TABLE),
    END
};

const struct qhca_name qhca_names_db[] = {
    N(QHCA_DB_, SQ), N(QHCA_DB_, CQ_ARM), N(QHCA_DB_, EQ),
    N(QHCA_DB_, ETH_SQ), N(QHCA_DB_, RQ), N(QHCA_DB_, MR_SYNC),
    N(QHCA_DB_, TM),
    END
};

const struct qhca_name qhca_names_page_fault_flag[] = {
    N(QHCA_PAGE_FAULT_, VALID), N(QHCA_PAGE_FAULT_, WRITE),
    END
};

const struct qhca_name qhca_names_fatal[] = {
    N(QHCA_FATAL_, NONE), N(QHCA_FATAL_, AQ_DMA), N(QHCA_FATAL_, AQ_INDEX),
    N(QHCA_FATAL_, AQ_CONFIG), N(QHCA_FATAL_, EQ),
    N(QHCA_FATAL_, INTERNAL),
    END
};

const struct qhca_name qhca_names_net[] = {
    N(QHCA_NET_, IB), N(QHCA_NET_, IPV4), N(QHCA_NET_, IPV6),
    END
};

const struct qhca_name qhca_names_wq_state[] = {
    N(QHCA_WQS_, RESET), N(QHCA_WQS_, RDY), N(QHCA_WQS_, ERR),
    END
};

const struct qhca_name qhca_names_wq_flag[] = {
    N(QHCA_WQ_F_, STRIP_VLAN),
    END
};

const struct qhca_name qhca_names_hash[] = {
    N(QHCA_HASH_, SRC_IPV4), N(QHCA_HASH_, DST_IPV4),
    N(QHCA_HASH_, SRC_IPV6), N(QHCA_HASH_, DST_IPV6),
    N(QHCA_HASH_, SRC_PORT_TCP), N(QHCA_HASH_, DST_PORT_TCP),
    N(QHCA_HASH_, SRC_PORT_UDP), N(QHCA_HASH_, DST_PORT_UDP),
    END
};

const struct qhca_name qhca_names_hash_mode[] = {
    N(QHCA_HASH_, BY_TYPE), N(QHCA_HASH_, SYM_XOR),
    N(QHCA_HASH_, SYM_OR_XOR), N(QHCA_HASH_, LABEL_TCP6),
    N(QHCA_HASH_, LABEL_UDP6), N(QHCA_HASH_, LABEL_IPV6),
    END
};

const struct qhca_name qhca_names_hash_by[] = {
    N(QHCA_HASH_BY_, SRC_IP), N(QHCA_HASH_BY_, DST_IP),
    N(QHCA_HASH_BY_, SRC_PORT), N(QHCA_HASH_BY_, DST_PORT),
    END
};

const struct qhca_name qhca_names_rqt[] = {
    N(QHCA_RQT_, WQ), N(QHCA_RQT_, ETH_RQ),
    END
};

const struct qhca_name qhca_names_hash_type[] = {
    N(QHCA_HASH_TYPE_, NONE), N(QHCA_HASH_TYPE_, L3), N(QHCA_HASH_TYPE_, L4),
    END
};

const struct qhca_name qhca_names_eth_q_flag[] = {
    N(QHCA_ETH_Q_F_, HDS), N(QHCA_ETH_Q_F_, SUPER), N(QHCA_ETH_Q_F_, GRO),
    N(QHCA_ETH_Q_F_, UNPAD),
    END
};

const struct qhca_name qhca_names_flow_type[] = {
    N(QHCA_FLOW_, NORMAL), N(QHCA_FLOW_, ALL_DEFAULT),
    N(QHCA_FLOW_, MC_DEFAULT), N(QHCA_FLOW_, SNIFFER),
    END
};

const struct qhca_name qhca_names_flow_flag[] = {
    N(QHCA_FLOW_F_, DONT_TRAP), N(QHCA_FLOW_F_, DROP),
    N(QHCA_FLOW_F_, ADDR_FILTER),
    END
};

/* Bits 4:0 of a BTH opcode. */
const struct qhca_name qhca_names_bth[] = {
    N(QHCA_OP_, SEND_FIRST), N(QHCA_OP_, SEND_MIDDLE), N(QHCA_OP_, SEND_LAST),
    N(QHCA_OP_, SEND_LAST_IMM), N(QHCA_OP_, SEND_ONLY),
    N(QHCA_OP_, SEND_ONLY_IMM), N(QHCA_OP_, WRITE_FIRST),
    N(QHCA_OP_, WRITE_MIDDLE), N(QHCA_OP_, WRITE_LAST),
    N(QHCA_OP_, WRITE_LAST_IMM), N(QHCA_OP_, WRITE_ONLY),
    N(QHCA_OP_, WRITE_ONLY_IMM), N(QHCA_OP_, READ_REQUEST),
    N(QHCA_OP_, READ_RESP_FIRST), N(QHCA_OP_, READ_RESP_MIDDLE),
    N(QHCA_OP_, READ_RESP_LAST), N(QHCA_OP_, READ_RESP_ONLY),
    N(QHCA_OP_, ACK), N(QHCA_OP_, ATOMIC_ACK), N(QHCA_OP_, COMP_SWAP),
    N(QHCA_OP_, FETCH_ADD), N(QHCA_OP_, SEND_LAST_INV),
    N(QHCA_OP_, SEND_ONLY_INV),
    N(QHCA_OP_, FLUSH), N(QHCA_OP_, ATOMIC_WRITE),
    END
};

/* Statistics, named as in QMP and QOM. */
const struct qhca_name qhca_names_stat[] = {
    { QHCA_STAT_ETH_RX_PACKETS, "eth-rx-packets" },
    { QHCA_STAT_ETH_RX_BYTES, "eth-rx-bytes" },
    { QHCA_STAT_ETH_RX_DROPPED, "eth-rx-dropped" },
    { QHCA_STAT_ETH_RX_FILTERED, "eth-rx-filtered" },
    { QHCA_STAT_ETH_RX_ERRORS, "eth-rx-errors" },
    { QHCA_STAT_ETH_TX_PACKETS, "eth-tx-packets" },
    { QHCA_STAT_ETH_TX_BYTES, "eth-tx-bytes" },
    { QHCA_STAT_ETH_TX_ERRORS, "eth-tx-errors" },
    { QHCA_STAT_ETH_RX_MULTICAST, "eth-rx-multicast" },
    { QHCA_STAT_RAW_RX_PACKETS, "raw-rx-packets" },
    { QHCA_STAT_RAW_RX_BYTES, "raw-rx-bytes" },
    { QHCA_STAT_RAW_RX_DROPPED, "raw-rx-dropped" },
    { QHCA_STAT_RAW_TX_PACKETS, "raw-tx-packets" },
    { QHCA_STAT_RAW_TX_BYTES, "raw-tx-bytes" },
    { QHCA_STAT_ETH_RX_GRO_PACKETS, "eth-rx-gro-packets" },
    { QHCA_STAT_ETH_RX_GRO_FRAMES, "eth-rx-gro-frames" },
    { QHCA_STAT_ROCE_RX_PACKETS, "roce-rx-packets" },
    { QHCA_STAT_ROCE_RX_BYTES, "roce-rx-bytes" },
    { QHCA_STAT_ROCE_TX_PACKETS, "roce-tx-packets" },
    { QHCA_STAT_ROCE_TX_BYTES, "roce-tx-bytes" },
    { QHCA_STAT_ROCE_ICRC_ERRORS, "roce-icrc-errors" },
    { QHCA_STAT_ROCE_RX_MALFORMED, "roce-rx-malformed" },
    { QHCA_STAT_ROCE_RX_NO_QP, "roce-rx-no-qp" },
    { QHCA_STAT_ROCE_OUT_OF_SEQUENCE, "roce-out-of-sequence" },
    { QHCA_STAT_ROCE_DUPLICATE, "roce-duplicate" },
    { QHCA_STAT_ROCE_RNR_NAK_TX, "roce-rnr-nak-tx" },
    { QHCA_STAT_ROCE_RNR_NAK_RX, "roce-rnr-nak-rx" },
    { QHCA_STAT_ROCE_SEQ_NAK_TX, "roce-seq-nak-tx" },
    { QHCA_STAT_ROCE_SEQ_NAK_RX, "roce-seq-nak-rx" },
    { QHCA_STAT_ROCE_TIMEOUTS, "roce-timeouts" },
    { QHCA_STAT_ROCE_RETRANSMITS, "roce-retransmits" },
    { QHCA_STAT_ROCE_ACCESS_ERRORS, "roce-access-errors" },
    { QHCA_STAT_ROCE_INV_REQ_ERRORS, "roce-inv-req-errors" },
    { QHCA_STAT_ROCE_OP_ERRORS, "roce-op-errors" },
    { QHCA_STAT_ROCE_RETRY_EXCEEDED, "roce-retry-exceeded" },
    { QHCA_STAT_ROCE_RNR_EXCEEDED, "roce-rnr-exceeded" },
    { QHCA_STAT_ROCE_ACK_TX, "roce-ack-tx" },
    { QHCA_STAT_ROCE_ACK_RX, "roce-ack-rx" },
    { QHCA_STAT_UD_DROPPED, "ud-dropped" },
    { QHCA_STAT_ROCE_RX_MULTICAST, "roce-rx-multicast" },
    { QHCA_STAT_PAGE_FAULTS, "page-faults" },
    { QHCA_STAT_PAGE_FAULT_DROPS, "page-fault-drops" },
    { QHCA_STAT_DOORBELLS, "doorbells" },
    { QHCA_STAT_DB_BAD_OBJECT, "db-bad-object" },
    { QHCA_STAT_DB_BAD_OWNER, "db-bad-owner" },
    { QHCA_STAT_DB_BAD_INDEX, "db-bad-index" },
    { QHCA_STAT_DB_BAD_ACCESS, "db-bad-access" },
    { QHCA_STAT_TABLE_ERRORS, "table-errors" },
    { QHCA_STAT_DMA_ERRORS, "dma-errors" },
    { QHCA_STAT_CQ_OVERFLOWS, "cq-overflows" },
    { QHCA_STAT_WQES, "wqes" },
    { QHCA_STAT_CQES, "cqes" },
    { QHCA_STAT_EQES, "eqes" },
    { QHCA_STAT_INTERRUPTS, "interrupts" },
    { QHCA_STAT_TABLE_WALKS, "table-walks" },
    { QHCA_STAT_AQ_COMMANDS, "aq-commands" },
    { QHCA_STAT_AQ_ERRORS, "aq-errors" },
    { QHCA_STAT_DB_BAD_STATE, "db-bad-state" },
    { QHCA_STAT_PORT_RX_FRAMES, "port-rx-frames" },
    { QHCA_STAT_PORT_RX_OCTETS, "port-rx-octets" },
    { QHCA_STAT_PORT_RX_MULTICAST, "port-rx-multicast" },
    { QHCA_STAT_PORT_RX_BROADCAST, "port-rx-broadcast" },
    { QHCA_STAT_PORT_RX_64, "port-rx-64" },
    { QHCA_STAT_PORT_RX_127, "port-rx-127" },
    { QHCA_STAT_PORT_RX_255, "port-rx-255" },
    { QHCA_STAT_PORT_RX_511, "port-rx-511" },
    { QHCA_STAT_PORT_RX_1023, "port-rx-1023" },
    { QHCA_STAT_PORT_RX_1518, "port-rx-1518" },
    { QHCA_STAT_PORT_RX_LARGE, "port-rx-large" },
    { QHCA_STAT_PORT_RX_UNDERSIZE, "port-rx-undersize" },
    { QHCA_STAT_PORT_RX_OVERSIZE, "port-rx-oversize" },
    { QHCA_STAT_PORT_RX_CONTROL, "port-rx-control" },
    { QHCA_STAT_PORT_RX_PAUSE, "port-rx-pause" },
    { QHCA_STAT_PORT_TX_FRAMES, "port-tx-frames" },
    { QHCA_STAT_PORT_TX_OCTETS, "port-tx-octets" },
    { QHCA_STAT_PORT_TX_MULTICAST, "port-tx-multicast" },
    { QHCA_STAT_PORT_TX_BROADCAST, "port-tx-broadcast" },
    { QHCA_STAT_PORT_TX_64, "port-tx-64" },
    { QHCA_STAT_PORT_TX_127, "port-tx-127" },
    { QHCA_STAT_PORT_TX_255, "port-tx-255" },
    { QHCA_STAT_PORT_TX_511, "port-tx-511" },
    { QHCA_STAT_PORT_TX_1023, "port-tx-1023" },
    { QHCA_STAT_PORT_TX_1518, "port-tx-1518" },
    { QHCA_STAT_PORT_TX_LARGE, "port-tx-large" },
    { QHCA_STAT_PORT_TX_CONTROL, "port-tx-control" },
    { QHCA_STAT_PORT_TX_PAUSE, "port-tx-pause" },
    END
};
