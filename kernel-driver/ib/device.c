// SPDX-License-Identifier: GPL-2.0
/* Attributes of the adapter: limits, identity, firmware version. */
#include "qhca_ib.h"

#define CAP_INT(x)	((int)min_t(u32, (x), S32_MAX))

/*
 * Operations for which a page fault is only a delay. UC and UD lose messages
 * that arrive during a fault, so they are reported for sending only.
 */
static void qhca_device_odp_caps(struct ib_odp_caps *caps, bool xrc)
{
	caps->general_caps = IB_ODP_SUPPORT | IB_ODP_SUPPORT_IMPLICIT;
	caps->per_transport_caps.rc_odp_caps =
		IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
		IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
		IB_ODP_SUPPORT_ATOMIC | IB_ODP_SUPPORT_SRQ_RECV;
	caps->per_transport_caps.xrc_odp_caps = xrc ?
		caps->per_transport_caps.rc_odp_caps & ~IB_ODP_SUPPORT_RECV : 0;
	caps->per_transport_caps.uc_odp_caps = IB_ODP_SUPPORT_SEND;
	caps->per_transport_caps.ud_odp_caps = IB_ODP_SUPPORT_SEND;
}

/**
 * qhca_ib_query_device - ib_device_ops.query_device
 * @ibdev: device
 * @attr: filled in from the device's QUERY_DEVICE
 * @udata: must be empty, the driver adds no response; NULL when the core calls
 *	this during registration
 *
 * Return: 0 or -EOPNOTSUPP.
 */
int qhca_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			 struct ib_udata *udata)
{
	const struct qhca_dev *qdev = to_qdev(ibdev)->qdev;
	const struct qhca_caps *caps = &qdev->caps;

	if (qhca_ib_udata_none(udata))
		return -EOPNOTSUPP;

	memset(attr, 0, sizeof(*attr));
	attr->fw_ver = caps->fw_version;
	memcpy(&attr->sys_image_guid, caps->node_guid, 8);
	attr->vendor_id = qdev->pdev->vendor;
	attr->vendor_part_id = qdev->pdev->device;
	attr->hw_ver = qdev->pdev->revision;
	attr->max_mr_size = caps->max_mr_size;
	attr->page_size_cap = caps->page_size_cap;
	attr->device_cap_flags = IB_DEVICE_SYS_IMAGE_GUID |
				 IB_DEVICE_RC_RNR_NAK_GEN |
				 IB_DEVICE_CURR_QP_STATE_MOD |
				 IB_DEVICE_PORT_ACTIVE_EVENT;
	attr->kernel_cap_flags = IBK_LOCAL_DMA_LKEY;
	if (caps->features & QHCA_FEAT_FAST_REG) {
		attr->device_cap_flags |= IB_DEVICE_MEM_MGT_EXTENSIONS;
		attr->max_fast_reg_page_list_len = QHCA_IB_MAX_FAST_REG;
	}
	if (qhca_ib_has_odp(to_qdev(ibdev))) {
		attr->kernel_cap_flags |= IBK_ON_DEMAND_PAGING;
		qhca_device_odp_caps(&attr->odp_caps,
				     caps->features & QHCA_FEAT_XRC);
	}
	attr->max_qp = CAP_INT(caps->max_qp);
	attr->max_qp_wr = CAP_INT(caps->max_qp_wr);
	attr->max_send_sge = CAP_INT(caps->max_sge);
	attr->max_recv_sge = CAP_INT(caps->max_sge);
	attr->max_sge_rd = CAP_INT(caps->max_sge);
	attr->max_cq = CAP_INT(caps->max_cq);
	attr->max_cqe = CAP_INT(caps->max_cqe);
	attr->max_mr = CAP_INT(caps->max_mr);
	if (caps->features & QHCA_FEAT_MW) {
		attr->device_cap_flags |= IB_DEVICE_MEM_WINDOW |
					  IB_DEVICE_MEM_WINDOW_TYPE_2B;
		attr->max_mw = CAP_INT(caps->max_mr);	/* one table */
	}
	attr->max_pd = CAP_INT(caps->max_pd);
	/* address handles live in memory only */
	attr->max_ah = S32_MAX;
	attr->max_qp_rd_atom = CAP_INT(caps->max_rd_atomic);
	attr->max_qp_init_rd_atom = CAP_INT(caps->max_rd_atomic);
	attr->max_res_rd_atom = (int)min_t(u64, S32_MAX,
					   (u64)caps->max_rd_atomic *
					   caps->max_qp);
	attr->atomic_cap = caps->features & QHCA_FEAT_ATOMIC ? IB_ATOMIC_HCA
							     : IB_ATOMIC_NONE;
	attr->masked_atomic_cap = caps->features & QHCA_FEAT_MASKED_ATOMIC ?
				  IB_ATOMIC_HCA : IB_ATOMIC_NONE;
	if (caps->features & QHCA_FEAT_XRC)
		attr->device_cap_flags |= IB_DEVICE_XRC;
	/* registration checks whether memory is persistent */
	if (caps->features & QHCA_FEAT_FLUSH)
		attr->device_cap_flags |= IB_DEVICE_FLUSH_GLOBAL |
					  IB_DEVICE_FLUSH_PERSISTENT;
	if (caps->features & QHCA_FEAT_ATOMIC_WRITE)
		attr->device_cap_flags |= IB_DEVICE_ATOMIC_WRITE;
	if (caps->features & QHCA_FEAT_SRQ) {
		attr->max_srq = CAP_INT(caps->max_srq);
		if (caps->features & QHCA_FEAT_SRQ_RESIZE)
			attr->device_cap_flags |= IB_DEVICE_SRQ_RESIZE;
		attr->max_srq_wr = CAP_INT(caps->max_srq_wr);
		attr->max_srq_sge = CAP_INT(caps->max_sge);
	}
	if (caps->features & QHCA_FEAT_RAW_PACKET) {
		attr->device_cap_flags |= IB_DEVICE_RAW_IP_CSUM;
		attr->raw_packet_caps = IB_RAW_PACKET_CAP_IP_CSUM |
					IB_RAW_PACKET_CAP_CVLAN_STRIPPING;
	}
	if (caps->features & QHCA_FEAT_FLOW)
		attr->device_cap_flags |= IB_DEVICE_MANAGED_FLOW_STEERING;
	if (caps->features & QHCA_FEAT_RSS) {
		attr->rss_caps.supported_qpts = BIT(IB_QPT_RAW_PACKET);
		attr->rss_caps.max_rwq_indirection_tables = QHCA_RQTS_MAX;
		attr->rss_caps.max_rwq_indirection_table_size =
			QHCA_RQT_WQS_MAX;
		attr->max_wq_type_rq = CAP_INT(caps->max_qp);
	}
	if (caps->features & QHCA_FEAT_MCAST) {
		attr->max_mcast_grp = QHCA_MC_GROUPS_MAX;
		attr->max_mcast_qp_attach = QHCA_MC_QPS_MAX;
		attr->max_total_mcast_qp_attach = QHCA_MC_GROUPS_MAX *
						  QHCA_MC_QPS_MAX;
	}
	attr->max_dm_size = qhca_ib_max_dm_size(to_qdev(ibdev));
	if (caps->features & QHCA_FEAT_TAG_MATCHING) {
		attr->tm_caps.max_rndv_hdr_size = QHCA_TM_MAX_RNDV;
		attr->tm_caps.max_num_tags = QHCA_TM_MAX_TAGS;
		attr->tm_caps.max_ops = BIT(QHCA_WQ_SHIFT_MAX);
		attr->tm_caps.max_sge = QHCA_TM_MAX_SGE;
		attr->tm_caps.flags = IB_TM_CAP_RNDV_RC;
	}
	attr->max_pkeys = 1;
	attr->local_ca_ack_delay = 15;
	/* CQEs carry the device clock, which counts nanoseconds */
	attr->timestamp_mask = U64_MAX;
	attr->hca_core_clock = 1000000;
	attr->cq_caps.max_cq_moderation_count = U16_MAX;
	attr->cq_caps.max_cq_moderation_period = U16_MAX;
	return 0;
}

/* ib_device_ops.get_dev_fw_str: "major.minor.patch" */
void qhca_ib_get_dev_fw_str(struct ib_device *ibdev, char *str)
{
	qhca_fw_version(to_qdev(ibdev)->qdev, str, IB_FW_VERSION_NAME_MAX);
}

/* The fields of struct ib_device itself; before registering. */
void qhca_ib_init_attrs(struct qhca_ib_dev *dev)
{
	struct ib_device *ibdev = &dev->ibdev;

	ibdev->node_type = RDMA_NODE_IB_CA;
	memcpy(&ibdev->node_guid, dev->qdev->caps.node_guid, 8);
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = dev->qdev->num_comp_vectors;
	ibdev->local_dma_lkey = QHCA_LKEY_RESERVED;
	ibdev->dev.parent = &dev->qdev->pdev->dev;
	strscpy(ibdev->node_desc, "qhca", sizeof(ibdev->node_desc));
}
