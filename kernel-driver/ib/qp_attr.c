// SPDX-License-Identifier: GPL-2.0
/* Queue pairs: the attributes of the verbs, and the fields of a QPC. */
#include "qhca_ib.h"

/* the values are the same: QPC states, path MTU codes */
static_assert(QHCA_QPS_RESET == IB_QPS_RESET);
static_assert(QHCA_QPS_ERR == IB_QPS_ERR);
static_assert(QHCA_QPS_SQE == IB_QPS_SQE);

/* The device's ranges; it checks them too, but does not say which failed. */
static int qp_check_numbers(const struct qhca_caps *caps,
			    const struct ib_qp_attr *attr, int mask)
{
	if (((mask & IB_QP_PORT) && attr->port_num != QHCA_IB_PORT) ||
	    ((mask & IB_QP_PKEY_INDEX) && attr->pkey_index) ||
	    ((mask & IB_QP_PATH_MTU) && (attr->path_mtu < IB_MTU_256 ||
					 attr->path_mtu > IB_MTU_4096)) ||
	    ((mask & IB_QP_TIMEOUT) && attr->timeout > 31) ||
	    ((mask & IB_QP_RETRY_CNT) && attr->retry_cnt > 7) ||
	    ((mask & IB_QP_RNR_RETRY) && attr->rnr_retry > 7) ||
	    ((mask & IB_QP_MIN_RNR_TIMER) && attr->min_rnr_timer > 31) ||
	    ((mask & IB_QP_MAX_DEST_RD_ATOMIC) &&
	     attr->max_dest_rd_atomic > caps->max_rd_atomic) ||
	    ((mask & IB_QP_DEST_QPN) && attr->dest_qp_num > 0xffffff))
		return -EINVAL;
	return 0;
}

/* the verbs' mask and the device's, for numeric attributes */
static const struct {
	int verbs;
	u64 dev;
} number_masks[] = {
	{ IB_QP_PKEY_INDEX, QHCA_QP_M_PKEY_INDEX },
	{ IB_QP_QKEY, QHCA_QP_M_QKEY },
	{ IB_QP_PATH_MTU, QHCA_QP_M_PATH_MTU },
	{ IB_QP_TIMEOUT, QHCA_QP_M_TIMEOUT },
	{ IB_QP_RETRY_CNT, QHCA_QP_M_RETRY_CNT },
	{ IB_QP_RNR_RETRY, QHCA_QP_M_RNR_RETRY },
	{ IB_QP_RQ_PSN, QHCA_QP_M_RQ_PSN },
	{ IB_QP_SQ_PSN, QHCA_QP_M_SQ_PSN },
	{ IB_QP_MAX_QP_RD_ATOMIC, QHCA_QP_M_MAX_RD_ATOMIC },
	{ IB_QP_MAX_DEST_RD_ATOMIC, QHCA_QP_M_MAX_DEST_RD_ATOMIC },
	{ IB_QP_MIN_RNR_TIMER, QHCA_QP_M_MIN_RNR_TIMER },
	{ IB_QP_DEST_QPN, QHCA_QP_M_DEST_QPN },
	{ IB_QP_EN_SQD_ASYNC_NOTIFY, QHCA_QP_M_SQD_EVENT },
};

/* The device reads only the fields selected by the mask. Returns that mask. */
static u64 qp_fill_numbers(const struct qhca_caps *caps, struct qhca_qpc *qpc,
			   const struct ib_qp_attr *attr, int mask)
{
	u64 dev_mask = 0;
	int i;

	for (i = 0; i < ARRAY_SIZE(number_masks); i++) {
		if (mask & number_masks[i].verbs)
			dev_mask |= number_masks[i].dev;
	}
	if (mask & IB_QP_QKEY)
		qpc->qkey = cpu_to_le32(attr->qkey);
	if (mask & IB_QP_PATH_MTU)
		qpc->path_mtu = attr->path_mtu;
	if (mask & IB_QP_TIMEOUT)
		qpc->timeout = attr->timeout;
	if (mask & IB_QP_RETRY_CNT)
		qpc->retry_cnt = attr->retry_cnt;
	if (mask & IB_QP_RNR_RETRY)
		qpc->rnr_retry = attr->rnr_retry;
	/* consumers pass PSNs of more than 24 bits; the rest is ignored */
	if (mask & IB_QP_RQ_PSN)
		qpc->rq_psn = cpu_to_le32(attr->rq_psn & 0xffffff);
	if (mask & IB_QP_SQ_PSN)
		qpc->sq_psn = cpu_to_le32(attr->sq_psn & 0xffffff);
	/*
	 * Limit of the peer for requests in flight; fewer is always fine.
	 * perftest asks for the peer's maximum, which is 128 for Soft-RoCE.
	 */
	if (mask & IB_QP_MAX_QP_RD_ATOMIC)
		qpc->max_rd_atomic = min_t(u32, attr->max_rd_atomic,
					   caps->max_rd_atomic);
	if (mask & IB_QP_MAX_DEST_RD_ATOMIC)
		qpc->max_dest_rd_atomic = attr->max_dest_rd_atomic;
	if (mask & IB_QP_MIN_RNR_TIMER)
		qpc->min_rnr_timer = attr->min_rnr_timer;
	if (mask & IB_QP_DEST_QPN)
		qpc->dest_qpn = cpu_to_le32(attr->dest_qp_num);
	if (mask & IB_QP_EN_SQD_ASYNC_NOTIFY)
		qpc->en_sqd_event = !!attr->en_sqd_async_notify;
	return dev_mask;
}

/*
 * Accept the right of a peer to bind, which no packet can request: programs set
 * all flags and use what is supported. The same holds for rights that only MRs
 * have.
 */
#define QP_ACCESS (IB_ACCESS_LOCAL_WRITE | IB_ACCESS_REMOTE_WRITE | \
		   IB_ACCESS_REMOTE_READ | IB_ACCESS_REMOTE_ATOMIC | \
		   IB_ACCESS_MW_BIND | IB_ACCESS_FLUSH_GLOBAL |	\
		   IB_ACCESS_FLUSH_PERSISTENT | IB_ACCESS_ON_DEMAND | \
		   IB_ACCESS_OPTIONAL)

/**
 * qhca_ib_qp_attr_fill - put attributes into a QPC
 * @caps: the device's limits
 * @qpc: the fields that @mask selects are set, except for the state
 * @dev_mask: result: QHCA_QP_M_*, the fields that are set
 * @attr: the attributes
 * @mask: IB_QP_*
 *
 * Return: 0, -EINVAL for a value out of range, -EOPNOTSUPP for unknown rights.
 */
int qhca_ib_qp_attr_fill(const struct qhca_caps *caps, struct qhca_qpc *qpc,
			 u64 *dev_mask, const struct ib_qp_attr *attr, int mask)
{
	int err;

	err = qp_check_numbers(caps, attr, mask);
	if (err)
		return err;
	*dev_mask = qp_fill_numbers(caps, qpc, attr, mask);
	if (mask & IB_QP_ACCESS_FLAGS) {
		if (attr->qp_access_flags & ~QP_ACCESS)
			return -EOPNOTSUPP;
		/* local rights are a matter of MRs */
		qpc->access = cpu_to_le32(qhca_ib_access(attr->qp_access_flags) &
					  ~QHCA_ACCESS_LOCAL_WRITE);
		*dev_mask |= QHCA_QP_M_ACCESS;
	}
	if (mask & IB_QP_AV) {
		err = qhca_ib_av_fill(&qpc->av, &attr->ah_attr);
		if (err)
			return err;
		*dev_mask |= QHCA_QP_M_AV;
	}
	return 0;
}

/**
 * qhca_ib_qp_attr_read - get attributes from a QPC
 * @qpc: from the device
 * @attr: result, all but the address and the capabilities
 */
void qhca_ib_qp_attr_read(const struct qhca_qpc *qpc, struct ib_qp_attr *attr)
{
	attr->qp_state = qpc->state;
	attr->cur_qp_state = qpc->state;
	attr->path_mtu = qpc->path_mtu;
	attr->path_mig_state = IB_MIG_MIGRATED;
	attr->qkey = le32_to_cpu(qpc->qkey);
	attr->rq_psn = le32_to_cpu(qpc->rq_psn);
	attr->sq_psn = le32_to_cpu(qpc->sq_psn);
	attr->dest_qp_num = le32_to_cpu(qpc->dest_qpn);
	/* same bits as in the verbs */
	attr->qp_access_flags = le32_to_cpu(qpc->access) & QHCA_ACCESS_MASK;
	attr->pkey_index = le16_to_cpu(qpc->pkey_index);
	attr->en_sqd_async_notify = qpc->en_sqd_event;
	attr->sq_draining = qpc->state == QHCA_QPS_SQD &&
			    qpc->sq_tail != qpc->sq_next;
	attr->max_rd_atomic = qpc->max_rd_atomic;
	attr->max_dest_rd_atomic = qpc->max_dest_rd_atomic;
	attr->min_rnr_timer = qpc->min_rnr_timer;
	attr->port_num = QHCA_IB_PORT;
	attr->timeout = qpc->timeout;
	attr->retry_cnt = qpc->retry_cnt;
	attr->rnr_retry = qpc->rnr_retry;
}
