// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Extended polling: the application reads the fields that it needs from the
 * CQE.  The lock is held from start_poll to end_poll.
 *
 * The application may answer a completion by a new request before it asks for
 * the next one, and that must not overflow the CQ.  So the CQE is copied, and
 * its slot returned to the device at once.
 */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/qhca-hw.h>

#include "qhca-clock.h"
#include "qhca-context.h"
#include "qhca-cq.h"
#include "qhca-lock.h"
#include "qhca-poll.h"
#include "trace.h"

/* Moves to the next CQE.  Returns 0, or ENOENT when there is none. */
static int qhca_next_poll(struct ibv_cq_ex *ibv_cq)
{
	struct qhca_cq *cq = to_qcq_ex(ibv_cq);
	struct qhca_retired retired = {};
	uint32_t left = 1U << cq->shift;
	struct qhca_cqe *cqe;
	uint32_t ci;
	bool known;

	do {
		ci = atomic_load_explicit(&cq->ci, memory_order_relaxed);
		cqe = qhca_cq_peek(cq, ci);
		/* A lap at most, as in qhca_poll_cq(). */
		if (!cqe || !left--)
			return ENOENT;
		cq->cur = *cqe;
		known = qhca_cqe_retire(cq, &cq->cur, ci, &retired);
		qhca_cq_advance(cq, ci + 1, &retired);
	} while (!known);

	qhca_trace_poll(cq->cqn, ci, &cq->cur);
	ibv_cq->wr_id = le64toh(cq->cur.wr_id);
	ibv_cq->status = cq->cur.status;
	return 0;
}

static void qhca_end_poll(struct ibv_cq_ex *ibv_cq)
{
	qhca_unlock(&to_qcq_ex(ibv_cq)->lock);
}

static int qhca_start_poll(struct ibv_cq_ex *ibv_cq,
			   struct ibv_poll_cq_attr *attr)
{
	struct qhca_cq *cq = to_qcq_ex(ibv_cq);
	int ret;

	if (attr->comp_mask)
		return EINVAL;
	qhca_lock(&cq->lock);
	ret = qhca_next_poll(ibv_cq);
	if (!ret)
		return 0;
	qhca_unlock(&cq->lock);
	if (qhca_is_gone(ibv_cq->context) && qhca_cq_gone(cq))
		return EIO;
	return ret;
}

static enum ibv_wc_opcode qhca_read_opcode(struct ibv_cq_ex *cq)
{
	return qhca_cqe_wc_opcode(&to_qcq_ex(cq)->cur);
}

static uint32_t qhca_read_vendor_err(struct ibv_cq_ex *cq)
{
	return to_qcq_ex(cq)->cur.syndrome;
}

static unsigned int qhca_read_wc_flags(struct ibv_cq_ex *cq)
{
	return qhca_cqe_wc_flags(&to_qcq_ex(cq)->cur);
}

static uint32_t qhca_read_byte_len(struct ibv_cq_ex *cq)
{
	return le32toh(to_qcq_ex(cq)->cur.byte_len);
}

/* With IBV_WC_WITH_INV, the key in the same field, in host order. */
static __be32 qhca_read_imm_data(struct ibv_cq_ex *cq)
{
	const struct qhca_cqe *cqe = &to_qcq_ex(cq)->cur;

	if (le16toh(cqe->flags) & QHCA_CQE_F_INV)
		return (__force __be32)le32toh((__force __le32)cqe->imm);
	return cqe->imm;
}

static uint32_t qhca_read_qp_num(struct ibv_cq_ex *cq)
{
	return le32toh(to_qcq_ex(cq)->cur.qpn);
}

static uint32_t qhca_read_src_qp(struct ibv_cq_ex *cq)
{
	return qhca_cqe_src_qp(&to_qcq_ex(cq)->cur);
}

/* RoCE has no LID. */
static uint32_t qhca_read_slid(struct ibv_cq_ex *cq)
{
	return 0;
}

static uint8_t qhca_read_sl(struct ibv_cq_ex *cq)
{
	return qhca_cqe_wc_sl(&to_qcq_ex(cq)->cur);
}

static uint8_t qhca_read_dlid_path_bits(struct ibv_cq_ex *cq)
{
	return 0;
}

/* Nanoseconds of the device's clock. */
static uint64_t qhca_read_completion_ts(struct ibv_cq_ex *cq)
{
	return le64toh(to_qcq_ex(cq)->cur.timestamp);
}

static uint16_t qhca_read_cvlan(struct ibv_cq_ex *cq)
{
	const struct qhca_cqe *cqe = &to_qcq_ex(cq)->cur;

	/* A match has its tag in the same field. */
	if (le16toh(cqe->flags) & QHCA_CQE_F_TM_MATCH)
		return QHCA_VLAN_NONE;
	return le16toh(cqe->vlan);
}

/* Of the message, with IBV_WC_TM_MATCH; else zeros. */
static void qhca_read_tm_info(struct ibv_cq_ex *cq,
			      struct ibv_wc_tm_info *info)
{
	const struct qhca_tm_cqe *cqe = (const void *)&to_qcq_ex(cq)->cur;

	info->tag = 0;
	info->priv = 0;
	if (le16toh(cqe->flags) & QHCA_CQE_F_TM_MATCH) {
		info->tag = be64toh(cqe->tag);
		info->priv = be32toh(cqe->app_ctx);
	}
}

/* The tag of the flow that matched a raw packet; otherwise 0. */
static uint32_t qhca_read_flow_tag(struct ibv_cq_ex *cq)
{
	const struct qhca_cqe *cqe = &to_qcq_ex(cq)->cur;

	return cqe->opcode == QHCA_CQE_OP_RAW_RECV ? le32toh(cqe->src_qpn) : 0;
}

/* Sets the functions of an extended CQ that @wc_flags requests. */
void qhca_cq_set_ex(struct qhca_cq *cq, uint64_t wc_flags)
{
	struct ibv_cq_ex *ex = &cq->vcq.cq_ex;

	ex->start_poll = qhca_start_poll;
	ex->next_poll = qhca_next_poll;
	ex->end_poll = qhca_end_poll;
	ex->read_opcode = qhca_read_opcode;
	ex->read_vendor_err = qhca_read_vendor_err;
	ex->read_wc_flags = qhca_read_wc_flags;
	if (wc_flags & IBV_WC_EX_WITH_BYTE_LEN)
		ex->read_byte_len = qhca_read_byte_len;
	if (wc_flags & IBV_WC_EX_WITH_IMM)
		ex->read_imm_data = qhca_read_imm_data;
	if (wc_flags & IBV_WC_EX_WITH_QP_NUM)
		ex->read_qp_num = qhca_read_qp_num;
	if (wc_flags & IBV_WC_EX_WITH_SRC_QP)
		ex->read_src_qp = qhca_read_src_qp;
	if (wc_flags & IBV_WC_EX_WITH_SLID)
		ex->read_slid = qhca_read_slid;
	if (wc_flags & IBV_WC_EX_WITH_SL)
		ex->read_sl = qhca_read_sl;
	if (wc_flags & IBV_WC_EX_WITH_DLID_PATH_BITS)
		ex->read_dlid_path_bits = qhca_read_dlid_path_bits;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP)
		ex->read_completion_ts = qhca_read_completion_ts;
	if (wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
		ex->read_completion_wallclock_ns =
			qhca_read_completion_wallclock;
	if (wc_flags & IBV_WC_EX_WITH_CVLAN)
		ex->read_cvlan = qhca_read_cvlan;
	if (wc_flags & IBV_WC_EX_WITH_TM_INFO)
		ex->read_tm_info = qhca_read_tm_info;
	if (wc_flags & IBV_WC_EX_WITH_FLOW_TAG)
		ex->read_flow_tag = qhca_read_flow_tag;
}
