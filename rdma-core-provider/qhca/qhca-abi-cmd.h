/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* The driver's part of the uverbs commands, combined with the common part. */
#ifndef QHCA_ABI_CMD_H
#define QHCA_ABI_CMD_H

#include <infiniband/kern-abi.h>
#include <kernel-abi/qhca-abi.h>
#include <rdma/qhca-abi.h>

DECLARE_DRV_CMD(qhca_get_context, IB_USER_VERBS_CMD_GET_CONTEXT,
		qhca_alloc_ucontext_req, qhca_alloc_ucontext_resp);
DECLARE_DRV_CMD(qhca_cmd_alloc_pd, IB_USER_VERBS_CMD_ALLOC_PD,
		empty, qhca_alloc_pd_resp);
DECLARE_DRV_CMD(qhca_cmd_create_ah, IB_USER_VERBS_CMD_CREATE_AH,
		empty, qhca_create_ah_resp);
DECLARE_DRV_CMD(qhca_cmd_create_cq_ex, IB_USER_VERBS_EX_CMD_CREATE_CQ,
		qhca_create_cq_req, qhca_create_cq_resp);
DECLARE_DRV_CMD(qhca_cmd_create_srq, IB_USER_VERBS_CMD_CREATE_SRQ,
		qhca_create_srq_req, qhca_create_srq_resp);
DECLARE_DRV_CMD(qhca_cmd_create_srq_ex, IB_USER_VERBS_CMD_CREATE_XSRQ,
		qhca_create_srq_req, qhca_create_srq_resp);
DECLARE_DRV_CMD(qhca_cmd_create_qp_ex, IB_USER_VERBS_EX_CMD_CREATE_QP,
		qhca_create_qp_req, qhca_create_qp_resp);

DECLARE_DRV_CMD(qhca_cmd_resize_cq, IB_USER_VERBS_CMD_RESIZE_CQ,
		qhca_resize_cq_req, empty);
DECLARE_DRV_CMD(qhca_cmd_modify_srq, IB_USER_VERBS_CMD_MODIFY_SRQ,
		qhca_modify_srq_req, empty);
DECLARE_DRV_CMD(qhca_cmd_create_rss_qp, IB_USER_VERBS_EX_CMD_CREATE_QP,
		qhca_create_rss_qp_req, qhca_create_qp_resp);
DECLARE_DRV_CMD(qhca_cmd_create_wq, IB_USER_VERBS_EX_CMD_CREATE_WQ,
		qhca_create_wq_req, qhca_create_wq_resp);

#endif /* QHCA_ABI_CMD_H */
