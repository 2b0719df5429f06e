// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/* Flow steering: the kernel parses the rules and passes them to the device. */
#include <errno.h>
#include <stdlib.h>

#include <infiniband/driver.h>

#include "qhca-verbs.h"

struct ibv_flow *qhca_create_flow(struct ibv_qp *qp,
				  struct ibv_flow_attr *attr)
{
	struct ibv_flow *flow;
	int ret;

	flow = calloc(1, sizeof(*flow));
	if (!flow)
		return NULL;
	ret = ibv_cmd_create_flow(qp, flow, attr, NULL, 0);
	if (ret) {
		free(flow);
		errno = ret;
		return NULL;
	}
	return flow;
}

int qhca_destroy_flow(struct ibv_flow *flow)
{
	int ret = ibv_cmd_destroy_flow(flow);

	if (!ret)
		free(flow);
	return ret;
}
