// SPDX-License-Identifier: GPL-2.0
/* The contexts with which the device creates queues. */
#include "qhca_ib.h"

/**
 * qhca_ib_fill_cqc - the context for CREATE_CQ
 * @cqc: all zero
 * @cq: the CQ, with its buffer and doorbell record
 * @eqn: EQ of its completion events
 * @uar: doorbell page that may arm it
 */
void qhca_ib_fill_cqc(struct qhca_cqc *cqc, const struct qhca_ib_cq *cq,
		      u32 eqn, u32 uar)
{
	cqc->buf = qhca_ib_queue_buf_desc(&cq->buf);
	cqc->dbrec = cpu_to_le64(cq->dbrec.dma);
	cqc->eqn = cpu_to_le32(eqn);
	cqc->uar = cpu_to_le32(uar);
	cqc->shift = cq->shift;
}

/**
 * qhca_ib_fill_qpc - the context for CREATE_QP, of all types but RSS
 * @qpc: all zero
 * @qp: the QP, with its buffers, doorbell records, CQs and SRQ
 * @pdn: its PD; 0: an XRC target
 * @uar: doorbell page that may ring it; 0: the driver's
 * @cookie: the provider's
 */
void qhca_ib_fill_qpc(struct qhca_qpc *qpc, const struct qhca_ib_qp *qp,
		      u32 pdn, u32 uar, u64 cookie)
{
	qpc->type = qp->type;
	qpc->state = QHCA_QPS_RESET;
	if (!qp->user)
		qpc->flags |= QHCA_QP_F_PRIVILEGED;
	if (qp->block_mc_loop)
		qpc->flags |= QHCA_QP_F_BLOCK_MC_LOOP;
	if (qp->strip_vlan)
		qpc->flags |= QHCA_QP_F_STRIP_VLAN;
	qpc->pd = cpu_to_le32(pdn);
	qpc->uar = cpu_to_le32(uar);
	if (qp->scq)
		qpc->send_cqn = cpu_to_le32(qp->scq->cqn);
	if (qp->rcq)
		qpc->recv_cqn = cpu_to_le32(qp->rcq->cqn);
	if (qp->srq) {
		qpc->flags |= QHCA_QP_F_SRQ;
		qpc->srqn = cpu_to_le32(qp->srq->srqn);
	}
	if (qp->sq.stride) {
		qpc->sq_shift = qp->sq.shift;
		qpc->sq_stride = qp->sq.stride;
		qpc->sq = qhca_ib_queue_buf_desc(&qp->sq.buf);
	}
	if (qp->sq_dbrec.rec || qp->sq_dbrec.page) {
		qpc->flags |= QHCA_QP_F_SQ_RECORD;
		qpc->sq_dbrec = cpu_to_le64(qp->sq_dbrec.dma);
	}
	if (qp->rq.stride) {
		qpc->rq_shift = qp->rq.shift;
		qpc->rq_stride = qp->rq.stride;
		qpc->rq = qhca_ib_queue_buf_desc(&qp->rq.buf);
		qpc->rq_dbrec = cpu_to_le64(qp->rq_dbrec.dma);
	}
	qpc->cookie = cpu_to_le64(cookie);
}

/**
 * qhca_ib_fill_srqc - the context for CREATE_SRQ
 * @srqc: all zero
 * @srq: the SRQ, with its buffers and doorbell record
 * @attr: its type, with the CQ, XRC domain and tag list that this needs; the
 *	limit means nothing here, and may be anything
 * @pdn: its PD
 * @uar: doorbell page that may ring it; 0: the driver's
 */
void qhca_ib_fill_srqc(struct qhca_srqc *srqc, const struct qhca_ib_srq *srq,
		       const struct ib_srq_init_attr *attr, u32 pdn, u32 uar)
{
	srqc->buf = qhca_ib_queue_buf_desc(&srq->buf);
	srqc->idx = qhca_ib_queue_buf_desc(&srq->idx);
	srqc->dbrec = cpu_to_le64(srq->dbrec.dma);
	srqc->pd = cpu_to_le32(pdn);
	srqc->uar = cpu_to_le32(uar);
	srqc->shift = srq->shift;
	srqc->stride = srq->stride;
	if (ib_srq_has_cq(attr->srq_type))
		srqc->cqn = cpu_to_le32(to_qcq(attr->ext.cq)->cqn);
	if (attr->srq_type == IB_SRQT_XRC) {
		srqc->flags |= QHCA_SRQ_F_XRC;
		srqc->xrcd = cpu_to_le32(to_qxrcd(attr->ext.xrc.xrcd)->xrcd);
	}
	if (attr->srq_type == IB_SRQT_TM) {
		srqc->flags |= QHCA_SRQ_F_TM;
		srqc->max_tags = cpu_to_le32(attr->ext.tag_matching.max_num_tags);
		srqc->ops = qhca_ib_queue_buf_desc(&srq->ops);
		srqc->ops_shift = srq->ops_shift;
		srqc->ops_stride = srq->ops_stride;
	}
}

/**
 * qhca_ib_fill_wqc - the context for CREATE_WQ
 * @wqc: all zero
 * @wq: the WQ, with its buffer and doorbell record
 * @req: the provider's request: ring and cookie
 * @pdn: its PD
 * @uar: doorbell page that may ring it
 * @cqn: its CQ
 * @flags: QHCA_WQ_F_*
 */
void qhca_ib_fill_wqc(struct qhca_wqc *wqc, const struct qhca_ib_wq *wq,
		      const struct qhca_create_wq_req *req, u32 pdn, u32 uar,
		      u32 cqn, u8 flags)
{
	wqc->buf = qhca_ib_queue_buf_desc(&wq->buf);
	wqc->dbrec = cpu_to_le64(wq->dbrec.dma);
	wqc->cookie = cpu_to_le64(req->cookie);
	wqc->pd = cpu_to_le32(pdn);
	wqc->uar = cpu_to_le32(uar);
	wqc->cqn = cpu_to_le32(cqn);
	wqc->shift = req->shift;
	wqc->stride = req->stride;
	wqc->flags = flags;
	wqc->state = QHCA_WQS_RESET;
}
