// SPDX-License-Identifier: GPL-2.0
/*
 * Address vectors, in address handles and in connected QPs. The device keeps
 * no list of address handles: a WQE carries its address vector.
 */
#include <rdma/ib_cache.h>

#include "qhca_ib.h"

#define DEFAULT_HOP_LIMIT	64

/**
 * qhca_ib_av_fill - make the device's address vector
 * @av: result
 * @attr: RoCE address with the destination MAC resolved
 *
 * Return: 0, or -EINVAL if it is not a RoCEv2 address of our port.
 */
int qhca_ib_av_fill(struct qhca_av *av, const struct rdma_ah_attr *attr)
{
	const struct ib_global_route *grh;

	if (attr->type != RDMA_AH_ATTR_TYPE_ROCE ||
	    !(rdma_ah_get_ah_flags(attr) & IB_AH_GRH) ||
	    rdma_ah_get_port_num(attr) != QHCA_IB_PORT)
		return -EINVAL;
	grh = rdma_ah_read_grh(attr);
	if (grh->sgid_attr &&
	    grh->sgid_attr->gid_type != IB_GID_TYPE_ROCE_UDP_ENCAP)
		return -EINVAL;

	memset(av, 0, sizeof(*av));
	memcpy(av->dgid, grh->dgid.raw, sizeof(av->dgid));
	memcpy(av->dmac, attr->roce.dmac, sizeof(av->dmac));
	av->sgid_index = cpu_to_le16(grh->sgid_index);
	av->flow_label = cpu_to_le32(grh->flow_label & 0xfffff);
	av->traffic_class = grh->traffic_class;
	av->hop_limit = grh->hop_limit ? grh->hop_limit : DEFAULT_HOP_LIMIT;
	av->sl = rdma_ah_get_sl(attr) & 7;
	/* without a flow label, the QPNs determine the UDP port */
	if (grh->flow_label)
		av->udp_sport = cpu_to_le16(rdma_flow_label_to_udp_sport(grh->flow_label));
	return 0;
}

/* The reverse, for queries; takes no reference to the GID. */
void qhca_ib_av_read(const struct qhca_av *av, struct rdma_ah_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
	attr->type = RDMA_AH_ATTR_TYPE_ROCE;
	rdma_ah_set_grh(attr, NULL, le32_to_cpu(av->flow_label),
			le16_to_cpu(av->sgid_index), av->hop_limit,
			av->traffic_class);
	rdma_ah_set_dgid_raw(attr, (void *)av->dgid);
	rdma_ah_set_sl(attr, av->sl);
	rdma_ah_set_port_num(attr, QHCA_IB_PORT);
	rdma_ah_set_ah_flags(attr, IB_AH_GRH);
	memcpy(attr->roce.dmac, av->dmac, sizeof(av->dmac));
}

/*
 * ib_device_ops.create_ah, create_user_ah. The core has resolved the
 * destination MAC; it is returned to an application, which builds its own WQEs.
 * Does not sleep for kernel callers.
 */
int qhca_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		      struct ib_udata *udata)
{
	struct qhca_ib_ah *ah = to_qah(ibah);
	struct qhca_create_ah_resp resp = {};
	int err;

	if (qhca_ib_udata_none(udata))
		return -EOPNOTSUPP;
	err = qhca_ib_av_fill(&ah->av, init->ah_attr);
	if (err || !udata)
		return err;
	memcpy(resp.dmac, ah->av.dmac, sizeof(resp.dmac));
	return qhca_ib_udata_out(udata, &resp, sizeof(resp));
}

/* ib_device_ops.query_ah */
int qhca_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr)
{
	qhca_ib_av_read(&to_qah(ibah)->av, attr);
	return 0;
}

/* ib_device_ops.destroy_ah */
int qhca_ib_destroy_ah(struct ib_ah *ibah, u32 flags)
{
	return 0;
}
