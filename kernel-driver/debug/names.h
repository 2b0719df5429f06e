/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Names of the numbers of qhca-hw.h, for the text of trace events.
 */
#ifndef QHCA_DEBUG_NAMES_H
#define QHCA_DEBUG_NAMES_H

#include <rdma/qhca-hw.h>

#define show_qhca_cmd(val) \
	__print_symbolic(val, \
		{ QHCA_CMD_NOP, "NOP" }, \
		{ QHCA_CMD_QUERY_DEVICE, "QUERY_DEVICE" }, \
		{ QHCA_CMD_QUERY_PORT, "QUERY_PORT" }, \
		{ QHCA_CMD_MODIFY_PORT, "MODIFY_PORT" }, \
		{ QHCA_CMD_QUERY_STATS, "QUERY_STATS" }, \
		{ QHCA_CMD_SET_GID, "SET_GID" }, \
		{ QHCA_CMD_QUERY_GID, "QUERY_GID" }, \
		{ QHCA_CMD_SET_MC_LIST, "SET_MC_LIST" }, \
		{ QHCA_CMD_ALLOC_UAR, "ALLOC_UAR" }, \
		{ QHCA_CMD_FREE_UAR, "FREE_UAR" }, \
		{ QHCA_CMD_ALLOC_PD, "ALLOC_PD" }, \
		{ QHCA_CMD_FREE_PD, "FREE_PD" }, \
		{ QHCA_CMD_ALLOC_XRCD, "ALLOC_XRCD" }, \
		{ QHCA_CMD_FREE_XRCD, "FREE_XRCD" }, \
		{ QHCA_CMD_CREATE_EQ, "CREATE_EQ" }, \
		{ QHCA_CMD_DESTROY_EQ, "DESTROY_EQ" }, \
		{ QHCA_CMD_QUERY_EQ, "QUERY_EQ" }, \
		{ QHCA_CMD_CREATE_CQ, "CREATE_CQ" }, \
		{ QHCA_CMD_MODIFY_CQ, "MODIFY_CQ" }, \
		{ QHCA_CMD_DESTROY_CQ, "DESTROY_CQ" }, \
		{ QHCA_CMD_QUERY_CQ, "QUERY_CQ" }, \
		{ QHCA_CMD_CREATE_SRQ, "CREATE_SRQ" }, \
		{ QHCA_CMD_MODIFY_SRQ, "MODIFY_SRQ" }, \
		{ QHCA_CMD_DESTROY_SRQ, "DESTROY_SRQ" }, \
		{ QHCA_CMD_QUERY_SRQ, "QUERY_SRQ" }, \
		{ QHCA_CMD_CREATE_QP, "CREATE_QP" }, \
		{ QHCA_CMD_MODIFY_QP, "MODIFY_QP" }, \
		{ QHCA_CMD_DESTROY_QP, "DESTROY_QP" }, \
		{ QHCA_CMD_QUERY_QP, "QUERY_QP" }, \
		{ QHCA_CMD_QUERY_PAGE_FAULT, "QUERY_PAGE_FAULT" }, \
		{ QHCA_CMD_RESUME_PAGE_FAULT, "RESUME_PAGE_FAULT" }, \
		{ QHCA_CMD_ATTACH_MC, "ATTACH_MC" }, \
		{ QHCA_CMD_DETACH_MC, "DETACH_MC" }, \
		{ QHCA_CMD_CREATE_MR, "CREATE_MR" }, \
		{ QHCA_CMD_DESTROY_MR, "DESTROY_MR" }, \
		{ QHCA_CMD_QUERY_MR, "QUERY_MR" }, \
		{ QHCA_CMD_MODIFY_MR, "MODIFY_MR" }, \
		{ QHCA_CMD_CREATE_MW, "CREATE_MW" }, \
		{ QHCA_CMD_CREATE_ETH_SQ, "CREATE_ETH_SQ" }, \
		{ QHCA_CMD_DESTROY_ETH_SQ, "DESTROY_ETH_SQ" }, \
		{ QHCA_CMD_CREATE_ETH_RQ, "CREATE_ETH_RQ" }, \
		{ QHCA_CMD_DESTROY_ETH_RQ, "DESTROY_ETH_RQ" }, \
		{ QHCA_CMD_MODIFY_ETH_RQ, "MODIFY_ETH_RQ" }, \
		{ QHCA_CMD_QUERY_ETH_RQ, "QUERY_ETH_RQ" }, \
		{ QHCA_CMD_QUERY_ETH_SQ, "QUERY_ETH_SQ" }, \
		{ QHCA_CMD_MODIFY_ETH_SQ, "MODIFY_ETH_SQ" }, \
		{ QHCA_CMD_CREATE_WQ, "CREATE_WQ" }, \
		{ QHCA_CMD_MODIFY_WQ, "MODIFY_WQ" }, \
		{ QHCA_CMD_DESTROY_WQ, "DESTROY_WQ" }, \
		{ QHCA_CMD_QUERY_WQ, "QUERY_WQ" }, \
		{ QHCA_CMD_CREATE_RQT, "CREATE_RQT" }, \
		{ QHCA_CMD_DESTROY_RQT, "DESTROY_RQT" }, \
		{ QHCA_CMD_CREATE_FLOW, "CREATE_FLOW" }, \
		{ QHCA_CMD_DESTROY_FLOW, "DESTROY_FLOW" }, \
		{ QHCA_CMD_CREATE_SHAPER, "CREATE_SHAPER" }, \
		{ QHCA_CMD_DESTROY_SHAPER, "DESTROY_SHAPER" }, \
		{ QHCA_CMD_MODIFY_SHAPER, "MODIFY_SHAPER" }, \
		{ QHCA_CMD_QUERY_SHAPER, "QUERY_SHAPER" })

#define show_qhca_st(val) \
	__print_symbolic(val, \
		{ QHCA_ST_OK, "OK" }, \
		{ QHCA_ST_BAD_OPCODE, "BAD_OPCODE" }, \
		{ QHCA_ST_UNSUPPORTED, "UNSUPPORTED" }, \
		{ QHCA_ST_BAD_PARAM, "BAD_PARAM" }, \
		{ QHCA_ST_BAD_OBJ, "BAD_OBJ" }, \
		{ QHCA_ST_BAD_STATE, "BAD_STATE" }, \
		{ QHCA_ST_BUSY, "BUSY" }, \
		{ QHCA_ST_NO_RESOURCES, "NO_RESOURCES" }, \
		{ QHCA_ST_DMA_ERROR, "DMA_ERROR" }, \
		{ QHCA_ST_BAD_TABLE, "BAD_TABLE" })

#define show_qhca_ev(val) \
	__print_symbolic(val, \
		{ QHCA_EV_CQ, "CQ" }, \
		{ QHCA_EV_CQ_ERR, "CQ_ERR" }, \
		{ QHCA_EV_QP_FATAL, "QP_FATAL" }, \
		{ QHCA_EV_QP_REQ_ERR, "QP_REQ_ERR" }, \
		{ QHCA_EV_QP_ACCESS_ERR, "QP_ACCESS_ERR" }, \
		{ QHCA_EV_COMM_EST, "COMM_EST" }, \
		{ QHCA_EV_SQ_DRAINED, "SQ_DRAINED" }, \
		{ QHCA_EV_LAST_WQE, "LAST_WQE" }, \
		{ QHCA_EV_SRQ_ERR, "SRQ_ERR" }, \
		{ QHCA_EV_SRQ_LIMIT, "SRQ_LIMIT" }, \
		{ QHCA_EV_ETH_SQ_ERR, "ETH_SQ_ERR" }, \
		{ QHCA_EV_ETH_RQ_ERR, "ETH_RQ_ERR" }, \
		{ QHCA_EV_PORT, "PORT" }, \
		{ QHCA_EV_DEVICE_FATAL, "DEVICE_FATAL" }, \
		{ QHCA_EV_PAGE_FAULT, "PAGE_FAULT" })

#define show_qhca_qpt(val) \
	__print_symbolic(val, \
		{ QHCA_QPT_RC, "RC" }, \
		{ QHCA_QPT_UC, "UC" }, \
		{ QHCA_QPT_UD, "UD" }, \
		{ QHCA_QPT_GSI, "GSI" }, \
		{ QHCA_QPT_XRC_INI, "XRC_INI" }, \
		{ QHCA_QPT_XRC_TGT, "XRC_TGT" }, \
		{ QHCA_QPT_RAW, "RAW" }, \
		{ QHCA_QPT_RSS, "RSS" })

#define show_qhca_qps(val) \
	__print_symbolic(val, \
		{ QHCA_QPS_RESET, "RESET" }, \
		{ QHCA_QPS_INIT, "INIT" }, \
		{ QHCA_QPS_RTR, "RTR" }, \
		{ QHCA_QPS_RTS, "RTS" }, \
		{ QHCA_QPS_SQD, "SQD" }, \
		{ QHCA_QPS_SQE, "SQE" }, \
		{ QHCA_QPS_ERR, "ERR" })

#define show_qhca_wqe(val) \
	__print_symbolic(val, \
		{ QHCA_WQE_SEND, "SEND" }, \
		{ QHCA_WQE_SEND_IMM, "SEND_IMM" }, \
		{ QHCA_WQE_SEND_INV, "SEND_INV" }, \
		{ QHCA_WQE_RDMA_WRITE, "RDMA_WRITE" }, \
		{ QHCA_WQE_RDMA_WRITE_IMM, "RDMA_WRITE_IMM" }, \
		{ QHCA_WQE_ATOMIC_WRITE, "ATOMIC_WRITE" }, \
		{ QHCA_WQE_RDMA_READ, "RDMA_READ" }, \
		{ QHCA_WQE_COMP_SWAP, "COMP_SWAP" }, \
		{ QHCA_WQE_FETCH_ADD, "FETCH_ADD" }, \
		{ QHCA_WQE_MASKED_COMP_SWAP, "MASKED_COMP_SWAP" }, \
		{ QHCA_WQE_MASKED_FETCH_ADD, "MASKED_FETCH_ADD" }, \
		{ QHCA_WQE_LOCAL_INV, "LOCAL_INV" }, \
		{ QHCA_WQE_REG_MR, "REG_MR" }, \
		{ QHCA_WQE_BIND_MW, "BIND_MW" }, \
		{ QHCA_WQE_FLUSH, "FLUSH" }, \
		{ QHCA_WQE_ETH_SEND, "ETH_SEND" }, \
		{ QHCA_WQE_RAW_SEND, "RAW_SEND" }, \
		{ QHCA_WQE_TAG_ADD, "TAG_ADD" }, \
		{ QHCA_WQE_TAG_DEL, "TAG_DEL" }, \
		{ QHCA_WQE_TAG_SYNC, "TAG_SYNC" })

#define show_qhca_cqe_op(val) \
	__print_symbolic(val, \
		{ QHCA_CQE_OP_SEND, "SEND" }, \
		{ QHCA_CQE_OP_RDMA_WRITE, "RDMA_WRITE" }, \
		{ QHCA_CQE_OP_RDMA_READ, "RDMA_READ" }, \
		{ QHCA_CQE_OP_COMP_SWAP, "COMP_SWAP" }, \
		{ QHCA_CQE_OP_FETCH_ADD, "FETCH_ADD" }, \
		{ QHCA_CQE_OP_LOCAL_INV, "LOCAL_INV" }, \
		{ QHCA_CQE_OP_REG_MR, "REG_MR" }, \
		{ QHCA_CQE_OP_BIND_MW, "BIND_MW" }, \
		{ QHCA_CQE_OP_FLUSH, "FLUSH" }, \
		{ QHCA_CQE_OP_ATOMIC_WRITE, "ATOMIC_WRITE" }, \
		{ QHCA_CQE_OP_MASKED_COMP_SWAP, "MASKED_COMP_SWAP" }, \
		{ QHCA_CQE_OP_MASKED_FETCH_ADD, "MASKED_FETCH_ADD" }, \
		{ QHCA_CQE_OP_ETH_SEND, "ETH_SEND" }, \
		{ QHCA_CQE_OP_RECV, "RECV" }, \
		{ QHCA_CQE_OP_RECV_RDMA_IMM, "RECV_RDMA_IMM" }, \
		{ QHCA_CQE_OP_RAW_RECV, "RAW_RECV" }, \
		{ QHCA_CQE_OP_TM_RECV, "TM_RECV" }, \
		{ QHCA_CQE_OP_TM_NO_TAG, "TM_NO_TAG" }, \
		{ QHCA_CQE_OP_TM_ADD, "TM_ADD" }, \
		{ QHCA_CQE_OP_TM_DEL, "TM_DEL" }, \
		{ QHCA_CQE_OP_TM_SYNC, "TM_SYNC" }, \
		{ QHCA_CQE_OP_ETH_RECV, "ETH_RECV" })

#define show_qhca_buf(val) \
	__print_symbolic(val, \
		{ QHCA_BUF_DIRECT, "direct" }, \
		{ QHCA_BUF_LIST, "list" }, \
		{ QHCA_BUF_FLAT, "flat" }, \
		{ QHCA_BUF_TREE, "tree" })

#define show_qhca_db(val) \
	__print_symbolic(val, \
		{ QHCA_DB_SQ, "SQ" }, \
		{ QHCA_DB_CQ_ARM, "CQ_ARM" }, \
		{ QHCA_DB_EQ, "EQ" }, \
		{ QHCA_DB_ETH_SQ, "ETH_SQ" }, \
		{ QHCA_DB_RQ, "RQ" }, \
		{ QHCA_DB_MR_SYNC, "MR_SYNC" }, \
		{ QHCA_DB_TM, "TM" })

#endif /* QHCA_DEBUG_NAMES_H */
