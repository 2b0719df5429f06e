// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Extended posting, ibv_wr_*: the same encoders, one step at a time.  The lock
 * is held from wr_start to wr_complete or wr_abort.  After an error the calls
 * up to wr_complete do nothing; it then returns the first error and posts none
 * of the requests.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <ccan/container_of.h>
#include <infiniband/verbs.h>
#include <rdma/qhca-hw.h>

#include "qhca-context.h"
#include "qhca-doorbell.h"
#include "qhca-lock.h"
#include "qhca-post.h"
#include "qhca-qp.h"
#include "qhca-ring.h"
#include "qhca-wqe.h"
#include "trace.h"

static void qhca_wr_start(struct ibv_qp_ex *ibv_qp)
{
	struct qhca_qp *qp = to_qqp_ex(ibv_qp);
	struct qhca_sq *sq = &qp->sq;

	qhca_lock(&sq->lock);
	sq->new_head = sq->head;
	sq->cur = NULL;
	sq->err = ibv_qp->qp_base.state < IBV_QPS_RTS ? EINVAL :
		  qhca_is_gone(ibv_qp->qp_base.context) ? EIO : 0;
}

static int qhca_wr_complete(struct ibv_qp_ex *ibv_qp)
{
	struct qhca_context *ctx = to_qctx(ibv_qp->qp_base.context);
	struct qhca_qp *qp = to_qqp_ex(ibv_qp);
	struct qhca_sq *sq = &qp->sq;
	int ret = sq->err;
	bool ring = false;
	uint32_t index;

	if (!ret && sq->new_head != sq->head) {
		/* Only now are they complete. */
		for (index = sq->head; qhca_traced(wqe) &&
		     index != sq->new_head; index++)
			qhca_trace_wqe_at(qp->qpn, index, &sq->rules,
					  qhca_sq_slot(sq, index));
		index = sq->head = sq->new_head;
		ring = qhca_sq_publish(ctx, sq->dbrec, qp->qpn, index);
	}
	qhca_unlock(&sq->lock);
	if (ring)
		qhca_db_ring(ctx, QHCA_DB_SQ, qp->qpn, 0, index);
	return ret;
}

static void qhca_wr_abort(struct ibv_qp_ex *ibv_qp)
{
	qhca_unlock(&to_qqp_ex(ibv_qp)->sq.lock);
}

/* Takes the next slot for a WQE; NULL after an error. */
static void *qhca_wr_begin(struct ibv_qp_ex *ibv_qp, enum ibv_wr_opcode op)
{
	struct qhca_sq *sq = &to_qqp_ex(ibv_qp)->sq;
	uint32_t tail;

	sq->cur = NULL;
	sq->inline_len = 0;
	if (sq->err)
		return NULL;
	tail = atomic_load_explicit(&sq->tail, memory_order_acquire);
	if (qhca_ring_full(sq->new_head, tail, sq->shift)) {
		sq->err = ENOMEM;
		return NULL;
	}
	if ((ibv_qp->wr_flags & IBV_SEND_IP_CSUM) && !sq->rules.raw) {
		sq->err = EOPNOTSUPP;
		return NULL;
	}
	sq->cur = qhca_sq_slot(sq, sq->new_head);
	sq->new_head++;
	qhca_wqe_begin(&sq->rules, sq->cur, ibv_qp->wr_id,
		       qhca_wqe_opcode(op),
		       qhca_wqe_flags(ibv_qp->wr_flags, sq->rules.sig_all));
	return sq->cur;
}

static void qhca_wr_send(struct ibv_qp_ex *qp)
{
	qhca_wr_begin(qp, IBV_WR_SEND);
}

static void qhca_wr_send_imm(struct ibv_qp_ex *qp, __be32 imm)
{
	struct qhca_wqe_ctrl *ctrl = qhca_wr_begin(qp, IBV_WR_SEND_WITH_IMM);

	if (ctrl)
		ctrl->imm = imm;
}

static void qhca_wr_send_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	void *slot = qhca_wr_begin(qp, IBV_WR_SEND_WITH_INV);

	if (slot)
		qhca_wqe_set_inv(slot, rkey);
}

static void qhca_wr_local_inv(struct ibv_qp_ex *qp, uint32_t rkey)
{
	void *slot = qhca_wr_begin(qp, IBV_WR_LOCAL_INV);

	if (slot)
		qhca_wqe_set_inv(slot, rkey);
}

/* Only type 2: type 1 windows use ibv_bind_mw(). */
static void qhca_wr_bind_mw(struct ibv_qp_ex *qp, struct ibv_mw *mw,
			    uint32_t rkey, const struct ibv_mw_bind_info *info)
{
	void *slot = qhca_wr_begin(qp, IBV_WR_BIND_MW);

	if (slot)
		to_qqp_ex(qp)->sq.err = mw->type == IBV_MW_TYPE_2 ?
			qhca_wqe_set_bind(slot, rkey, info) : EINVAL;
}

static void qhca_wr_rdma(struct ibv_qp_ex *qp, enum ibv_wr_opcode op,
			 uint32_t rkey, uint64_t addr)
{
	void *slot = qhca_wr_begin(qp, op);

	if (slot)
		qhca_wqe_set_remote(slot, addr, rkey);
}

static void qhca_wr_rdma_write(struct ibv_qp_ex *qp, uint32_t rkey,
			       uint64_t addr)
{
	qhca_wr_rdma(qp, IBV_WR_RDMA_WRITE, rkey, addr);
}

static void qhca_wr_rdma_write_imm(struct ibv_qp_ex *qp, uint32_t rkey,
				   uint64_t addr, __be32 imm)
{
	struct qhca_wqe_ctrl *ctrl;

	qhca_wr_rdma(qp, IBV_WR_RDMA_WRITE_WITH_IMM, rkey, addr);
	ctrl = to_qqp_ex(qp)->sq.cur;
	if (ctrl)
		ctrl->imm = imm;
}

static void qhca_wr_rdma_read(struct ibv_qp_ex *qp, uint32_t rkey,
			      uint64_t addr)
{
	qhca_wr_rdma(qp, IBV_WR_RDMA_READ, rkey, addr);
}

static void qhca_wr_atomic_cmp_swp(struct ibv_qp_ex *qp, uint32_t rkey,
				   uint64_t addr, uint64_t compare,
				   uint64_t swap)
{
	struct qhca_wqe_ctrl *ctrl;

	qhca_wr_rdma(qp, IBV_WR_ATOMIC_CMP_AND_SWP, rkey, addr);
	ctrl = to_qqp_ex(qp)->sq.cur;
	if (ctrl) {
		ctrl->arg0 = htole64(compare);
		ctrl->arg1 = htole64(swap);
	}
}

static void qhca_wr_atomic_fetch_add(struct ibv_qp_ex *qp, uint32_t rkey,
				     uint64_t addr, uint64_t add)
{
	struct qhca_wqe_ctrl *ctrl;

	qhca_wr_rdma(qp, IBV_WR_ATOMIC_FETCH_AND_ADD, rkey, addr);
	ctrl = to_qqp_ex(qp)->sq.cur;
	if (ctrl)
		ctrl->arg0 = htole64(add);
}

static void qhca_wr_atomic_write(struct ibv_qp_ex *qp, uint32_t rkey,
				 uint64_t addr, const void *data)
{
	struct qhca_sq *sq = &to_qqp_ex(qp)->sq;

	qhca_wr_rdma(qp, IBV_WR_ATOMIC_WRITE, rkey, addr);
	if (sq->cur)
		sq->err = qhca_wqe_add_inline(&sq->rules, sq->cur,
					      &sq->inline_len, data, 8);
}

static void qhca_wr_flush(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
			  size_t len, uint8_t type, uint8_t level)
{
	struct qhca_sq *sq = &to_qqp_ex(qp)->sq;

	if (qhca_wr_begin(qp, IBV_WR_FLUSH))
		sq->err = qhca_wqe_set_flush(sq->cur, addr, rkey, len, type,
					     level);
}

static void qhca_wr_set_xrc_srqn(struct ibv_qp_ex *qp, uint32_t srqn)
{
	struct qhca_sq *sq = &to_qqp_ex(qp)->sq;

	if (sq->cur)
		qhca_wqe_set_srqn(sq->cur, srqn);
}

static void qhca_wr_set_ud_addr(struct ibv_qp_ex *qp, struct ibv_ah *ah,
				uint32_t qpn, uint32_t qkey)
{
	struct qhca_sq *sq = &to_qqp_ex(qp)->sq;

	if (sq->cur)
		qhca_wqe_set_ud(sq->cur,
				container_of(ah, struct qhca_ah, ibv_ah), qpn,
				qkey);
}

static void qhca_wr_set_sge_list(struct ibv_qp_ex *qp, size_t num,
				 const struct ibv_sge *list)
{
	struct qhca_sq *sq = &to_qqp_ex(qp)->sq;

	if (sq->cur && !sq->err)
		sq->err = qhca_wqe_set_sges(&sq->rules, sq->cur, list, num);
}

static void qhca_wr_set_sge(struct ibv_qp_ex *qp, uint32_t lkey, uint64_t addr,
			    uint32_t length)
{
	const struct ibv_sge sge = {
		.addr = addr,
		.length = length,
		.lkey = lkey,
	};

	qhca_wr_set_sge_list(qp, 1, &sge);
}

static void qhca_wr_set_inline_data_list(struct ibv_qp_ex *qp, size_t num,
					 const struct ibv_data_buf *list)
{
	struct qhca_sq *sq = &to_qqp_ex(qp)->sq;
	size_t i;

	if (!sq->cur || sq->err)
		return;
	sq->err = qhca_wqe_add_inline(&sq->rules, sq->cur, &sq->inline_len,
				      NULL, 0);
	for (i = 0; !sq->err && i < num; i++)
		sq->err = qhca_wqe_add_inline(&sq->rules, sq->cur,
					      &sq->inline_len, list[i].addr,
					      list[i].length);
}

static void qhca_wr_set_inline_data(struct ibv_qp_ex *qp, void *addr,
				    size_t length)
{
	const struct ibv_data_buf buf = {
		.addr = addr,
		.length = length,
	};

	qhca_wr_set_inline_data_list(qp, 1, &buf);
}

/*
 * Sets the functions of an extended QP.
 *
 * @send_ops: enum ibv_qp_create_send_ops_flags, as requested
 *
 * Returns 0, or EOPNOTSUPP if the queue does not allow one of them.
 */
int qhca_qp_set_ex(struct qhca_qp *qp, uint64_t send_ops)
{
	struct ibv_qp_ex *ex = &qp->vqp.qp_ex;
	uint32_t ops = qp->sq.rules.ops;
	uint64_t have = 0;

	ex->wr_start = qhca_wr_start;
	ex->wr_complete = qhca_wr_complete;
	ex->wr_abort = qhca_wr_abort;
	ex->wr_set_sge = qhca_wr_set_sge;
	ex->wr_set_sge_list = qhca_wr_set_sge_list;
	ex->wr_set_inline_data = qhca_wr_set_inline_data;
	ex->wr_set_inline_data_list = qhca_wr_set_inline_data_list;
	if (qp->sq.rules.ud)
		ex->wr_set_ud_addr = qhca_wr_set_ud_addr;
	if (qp->sq.rules.xrc)
		ex->wr_set_xrc_srqn = qhca_wr_set_xrc_srqn;

	if (ops & 1U << IBV_WR_SEND) {
		have |= IBV_QP_EX_WITH_SEND;
		ex->wr_send = qhca_wr_send;
	}
	if (ops & 1U << IBV_WR_SEND_WITH_IMM) {
		have |= IBV_QP_EX_WITH_SEND_WITH_IMM;
		ex->wr_send_imm = qhca_wr_send_imm;
	}
	if (ops & 1U << IBV_WR_SEND_WITH_INV) {
		have |= IBV_QP_EX_WITH_SEND_WITH_INV;
		ex->wr_send_inv = qhca_wr_send_inv;
	}
	if (ops & 1U << IBV_WR_LOCAL_INV) {
		have |= IBV_QP_EX_WITH_LOCAL_INV;
		ex->wr_local_inv = qhca_wr_local_inv;
	}
	if (ops & 1U << IBV_WR_BIND_MW) {
		have |= IBV_QP_EX_WITH_BIND_MW;
		ex->wr_bind_mw = qhca_wr_bind_mw;
	}
	if (ops & 1U << IBV_WR_RDMA_WRITE) {
		have |= IBV_QP_EX_WITH_RDMA_WRITE;
		ex->wr_rdma_write = qhca_wr_rdma_write;
	}
	if (ops & 1U << IBV_WR_RDMA_WRITE_WITH_IMM) {
		have |= IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM;
		ex->wr_rdma_write_imm = qhca_wr_rdma_write_imm;
	}
	if (ops & 1U << IBV_WR_RDMA_READ) {
		have |= IBV_QP_EX_WITH_RDMA_READ;
		ex->wr_rdma_read = qhca_wr_rdma_read;
	}
	if (ops & 1U << IBV_WR_ATOMIC_CMP_AND_SWP) {
		have |= IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP;
		ex->wr_atomic_cmp_swp = qhca_wr_atomic_cmp_swp;
	}
	if (ops & 1U << IBV_WR_ATOMIC_FETCH_AND_ADD) {
		have |= IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
		ex->wr_atomic_fetch_add = qhca_wr_atomic_fetch_add;
	}
	if (ops & 1U << IBV_WR_FLUSH) {
		have |= IBV_QP_EX_WITH_FLUSH;
		ex->wr_flush = qhca_wr_flush;
	}
	if (ops & 1U << IBV_WR_ATOMIC_WRITE) {
		have |= IBV_QP_EX_WITH_ATOMIC_WRITE;
		ex->wr_atomic_write = qhca_wr_atomic_write;
	}
	return send_ops & ~have ? EOPNOTSUPP : 0;
}
