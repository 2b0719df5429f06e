// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * XRC: domains, and target QPs created by other processes.  The kernel tracks
 * the sharers; XRC SRQs are in srq.c.
 */
#include <errno.h>
#include <stdlib.h>

#include <ccan/container_of.h>
#include <infiniband/driver.h>
#include <rdma/qhca-hw.h>

#include "qhca-context.h"
#include "qhca-lock.h"
#include "qhca-qp.h"
#include "qhca-verbs.h"

struct ibv_xrcd *qhca_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *attr)
{
	struct ib_uverbs_open_xrcd_resp resp = {};
	struct ibv_open_xrcd cmd = {};
	struct verbs_xrcd *xrcd;
	int ret;

	if (!(to_qctx(context)->features & QHCA_FEAT_XRC)) {
		errno = EOPNOTSUPP;
		return NULL;
	}
	xrcd = calloc(1, sizeof(*xrcd));
	if (!xrcd)
		return NULL;
	ret = ibv_cmd_open_xrcd(context, xrcd, sizeof(*xrcd), attr, &cmd,
				sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(xrcd);
		errno = ret;
		return NULL;
	}
	return &xrcd->xrcd;
}

int qhca_close_xrcd(struct ibv_xrcd *ibv_xrcd)
{
	struct verbs_xrcd *xrcd = container_of(ibv_xrcd, struct verbs_xrcd,
					       xrcd);
	int ret;

	ret = ibv_cmd_close_xrcd(xrcd);
	if (ret)
		return ret;
	free(xrcd);
	return 0;
}

/* A handle to a target QP; it has no queue of its own here. */
struct ibv_qp *qhca_open_qp(struct ibv_context *context,
			    struct ibv_qp_open_attr *attr)
{
	struct ib_uverbs_create_qp_resp resp = {};
	struct ibv_open_qp cmd = {};
	struct qhca_qp *qp;
	int ret;

	qp = calloc(1, sizeof(*qp));
	if (!qp)
		return NULL;
	ret = ibv_cmd_open_qp(context, &qp->vqp, sizeof(qp->vqp), attr, &cmd,
			      sizeof(cmd), &resp, sizeof(resp));
	if (ret) {
		free(qp);
		errno = ret;
		return NULL;
	}
	qhca_lock_init(&qp->sq.lock, false);
	qhca_lock_init(&qp->rq.lock, false);
	qp->qpn = qp->vqp.qp.qp_num;
	return &qp->vqp.qp;
}
