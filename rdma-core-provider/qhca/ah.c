// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Address handles.  The kernel resolves the destination's MAC address; the
 * address vector is then built here, once, and copied into each WQE.
 */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <ccan/container_of.h>
#include <infiniband/driver.h>

#include "qhca-abi-cmd.h"
#include "qhca-verbs.h"
#include "qhca-wqe.h"

/* Builds the device's address vector; @attr has a GRH. */
static void qhca_av_fill(struct qhca_av *av, const struct ibv_ah_attr *attr,
			 const uint8_t dmac[6])
{
	memset(av, 0, sizeof(*av));
	memcpy(av->dgid, attr->grh.dgid.raw, sizeof(av->dgid));
	memcpy(av->dmac, dmac, sizeof(av->dmac));
	av->sgid_index = htole16(attr->grh.sgid_index);
	av->flow_label = htole32(attr->grh.flow_label & 0xfffff);
	av->traffic_class = attr->grh.traffic_class;
	av->hop_limit = attr->grh.hop_limit;
	av->sl = attr->sl;
	/* The flow label selects the path, as for connected QPs. */
	if (attr->grh.flow_label)
		av->udp_sport = htole16(ibv_flow_label_to_udp_sport(
						attr->grh.flow_label));
}

struct ibv_ah *qhca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	struct qhca_cmd_create_ah_resp resp = {};
	struct qhca_ah *ah;
	int ret;

	/* In RoCE the GID is the only address. */
	if (!attr->is_global) {
		errno = EINVAL;
		return NULL;
	}
	ah = calloc(1, sizeof(*ah));
	if (!ah)
		return NULL;
	ret = ibv_cmd_create_ah(pd, &ah->ibv_ah, attr, &resp.ibv_resp,
				sizeof(resp));
	if (ret) {
		free(ah);
		errno = ret;
		return NULL;
	}
	qhca_av_fill(&ah->av, attr, resp.dmac);
	return &ah->ibv_ah;
}

int qhca_destroy_ah(struct ibv_ah *ibv_ah)
{
	int ret;

	ret = ibv_cmd_destroy_ah(ibv_ah);
	if (ret)
		return ret;
	free(container_of(ibv_ah, struct qhca_ah, ibv_ah));
	return 0;
}
