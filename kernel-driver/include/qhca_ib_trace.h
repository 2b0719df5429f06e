/* SPDX-License-Identifier: GPL-2.0 */
/* Trace events of qhca_ib.ko. */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM qhca_ib

#if !defined(QHCA_IB_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define QHCA_IB_TRACE_H

#include <linux/tracepoint.h>

#ifndef CONFIG_QHCA_DEBUG
#undef TRACE_EVENT
#define TRACE_EVENT(name, proto, ...)					\
	static inline void trace_##name(proto) {}			\
	static inline bool trace_##name##_enabled(void) { return false; }
#undef DECLARE_EVENT_CLASS
#define DECLARE_EVENT_CLASS(...)
#undef DEFINE_EVENT
#define DEFINE_EVENT(class, name, proto, ...)				\
	static inline void trace_##name(proto) {}			\
	static inline bool trace_##name##_enabled(void) { return false; }
#endif

struct qhca_buf_table;
struct qhca_cqe;
struct qhca_ib_cq;
struct qhca_ib_dev;
struct qhca_ib_mr;
struct qhca_ib_qp;
struct qhca_ib_srq;
struct qhca_mpt;
struct qhca_qpc;
struct qhca_wqe_ctrl;

/* Numbers of missing objects are 0, and so are sizes of missing queues. */
TRACE_EVENT(qhca_create_qp,
	TP_PROTO(const struct qhca_ib_dev *dev, const struct qhca_ib_qp *qp,
		 const struct qhca_qpc *qpc),
	TP_ARGS(dev, qp, qpc),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, qpn)
		__field(u8, type)
		__field(bool, user)
		__field(u32, pd)
		__field(u32, uar)
		__field(u32, scqn)
		__field(u32, rcqn)
		__field(u32, srqn)
		__field(u32, sq_depth)
		__field(u32, sq_stride)
		__field(u32, rq_depth)
		__field(u32, rq_stride)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->qpn;
		__entry->type = qpc->type;
		__entry->user = qp->user;
		__entry->pd = le32_to_cpu(qpc->pd);
		__entry->uar = le32_to_cpu(qpc->uar);
		__entry->scqn = le32_to_cpu(qpc->send_cqn);
		__entry->rcqn = le32_to_cpu(qpc->recv_cqn);
		__entry->srqn = le32_to_cpu(qpc->srqn);
		__entry->sq_depth = qpc->sq_stride ? BIT(qpc->sq_shift) : 0;
		__entry->sq_stride = qpc->sq_stride ? BIT(qpc->sq_stride) : 0;
		__entry->rq_depth = qpc->rq_stride ? BIT(qpc->rq_shift) : 0;
		__entry->rq_stride = qpc->rq_stride ? BIT(qpc->rq_stride) : 0;
	),
	TP_printk("dev=%s qpn=%#x type=%s user=%d pd=%u uar=%u scqn=%u rcqn=%u srqn=%u sq_depth=%u sq_stride=%u rq_depth=%u rq_stride=%u",
		  __get_str(dev), __entry->qpn, show_qhca_qpt(__entry->type),
		  __entry->user, __entry->pd, __entry->uar, __entry->scqn,
		  __entry->rcqn, __entry->srqn, __entry->sq_depth,
		  __entry->sq_stride, __entry->rq_depth, __entry->rq_stride)
);

/*
 * mask: IB_QP_*; attributes outside it are 0. to equals from if the state
 * stays.
 */
TRACE_EVENT(qhca_modify_qp,
	TP_PROTO(const struct qhca_ib_dev *dev, const struct qhca_ib_qp *qp,
		 u8 from, u8 to, int mask, const struct qhca_qpc *qpc, int err),
	TP_ARGS(dev, qp, from, to, mask, qpc, err),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, qpn)
		__field(u8, from)
		__field(u8, to)
		__field(u32, mask)
		__field(u32, dest_qpn)
		__field(u32, sq_psn)
		__field(u32, rq_psn)
		__field(u32, mtu)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qp->qpn;
		__entry->from = from;
		__entry->to = to;
		__entry->mask = mask;
		__entry->dest_qpn = le32_to_cpu(qpc->dest_qpn);
		__entry->sq_psn = le32_to_cpu(qpc->sq_psn);
		__entry->rq_psn = le32_to_cpu(qpc->rq_psn);
		__entry->mtu = qpc->path_mtu ?
			       ib_mtu_enum_to_int(qpc->path_mtu) : 0;
		__entry->err = err;
	),
	TP_printk("dev=%s qpn=%#x from=%s to=%s mask=%#x dest_qpn=%#x sq_psn=%#x rq_psn=%#x mtu=%u err=%d",
		  __get_str(dev), __entry->qpn, show_qhca_qps(__entry->from),
		  show_qhca_qps(__entry->to), __entry->mask, __entry->dest_qpn,
		  __entry->sq_psn, __entry->rq_psn, __entry->mtu, __entry->err)
);

TRACE_EVENT(qhca_destroy_qp,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 qpn, int err),
	TP_ARGS(dev, qpn, err),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, qpn)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qpn;
		__entry->err = err;
	),
	TP_printk("dev=%s qpn=%#x err=%d", __get_str(dev), __entry->qpn,
		  __entry->err)
);

TRACE_EVENT(qhca_create_cq,
	TP_PROTO(const struct qhca_ib_dev *dev, const struct qhca_ib_cq *cq,
		 u32 eqn, u32 uar),
	TP_ARGS(dev, cq, eqn, uar),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, cqn)
		__field(u32, depth)
		__field(bool, user)
		__field(u32, eqn)
		__field(u32, uar)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->cqn = cq->cqn;
		__entry->depth = BIT(cq->shift);
		__entry->user = cq->user;
		__entry->eqn = eqn;
		__entry->uar = uar;
	),
	TP_printk("dev=%s cqn=%u depth=%u user=%d eqn=%u uar=%u",
		  __get_str(dev), __entry->cqn, __entry->depth, __entry->user,
		  __entry->eqn, __entry->uar)
);

TRACE_EVENT(qhca_destroy_cq,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 cqn, int err),
	TP_ARGS(dev, cqn, err),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, cqn)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->cqn = cqn;
		__entry->err = err;
	),
	TP_printk("dev=%s cqn=%u err=%d", __get_str(dev), __entry->cqn,
		  __entry->err)
);

TRACE_EVENT(qhca_create_srq,
	TP_PROTO(const struct qhca_ib_dev *dev, const struct qhca_ib_srq *srq),
	TP_ARGS(dev, srq),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, srqn)
		__field(u32, depth)
		__field(u32, stride)
		__field(bool, user)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->srqn = srq->srqn;
		__entry->depth = BIT(srq->shift);
		__entry->stride = BIT(srq->stride);
		__entry->user = srq->user;
	),
	TP_printk("dev=%s srqn=%u depth=%u stride=%u user=%d", __get_str(dev),
		  __entry->srqn, __entry->depth, __entry->stride,
		  __entry->user)
);

TRACE_EVENT(qhca_destroy_srq,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 srqn, int err),
	TP_ARGS(dev, srqn, err),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, srqn)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->srqn = srqn;
		__entry->err = err;
	),
	TP_printk("dev=%s srqn=%u err=%d", __get_str(dev), __entry->srqn,
		  __entry->err)
);

/*
 * An MR of any kind is in the device. pages: pinned CPU pages; 0 for on-demand
 * paging, device memory, fast registration and MRs of all memory.
 */
TRACE_EVENT(qhca_reg_mr,
	TP_PROTO(const struct qhca_ib_dev *dev, const struct qhca_ib_mr *mr,
		 const struct qhca_mpt *mpt),
	TP_ARGS(dev, mr, mpt),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, key)
		__field(u32, pd)
		__field(u32, access)
		__field(u32, flags)
		__field(u64, va)
		__field(u64, iova)
		__field(u64, length)
		__field(u64, pages)
		__field(u8, form)
		__field(u8, hops)
		__field(u8, page_shift)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->key = mr->key;
		__entry->pd = le32_to_cpu(mpt->pd);
		__entry->access = mr->access;
		__entry->flags = mpt->flags;
		__entry->va = mr->umem ? mr->umem->address : 0;
		__entry->iova = le64_to_cpu(mpt->iova);
		__entry->length = le64_to_cpu(mpt->len);
		__entry->pages = mr->umem ? ib_umem_num_pages(mr->umem) : 0;
		__entry->form = mpt->buf.form;
		__entry->hops = mpt->buf.hops;
		__entry->page_shift = mpt->buf.page_shift;
	),
	TP_printk("dev=%s key=%#x pd=%u access=%#x flags=%#x va=%#llx iova=%#llx length=%llu pages=%llu form=%s hops=%u page_shift=%u",
		  __get_str(dev), __entry->key, __entry->pd, __entry->access,
		  __entry->flags, __entry->va, __entry->iova, __entry->length,
		  __entry->pages, show_qhca_buf(__entry->form), __entry->hops,
		  __entry->page_shift)
);

TRACE_EVENT(qhca_dereg_mr,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 key, int err),
	TP_ARGS(dev, key, err),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, key)
		__field(int, err)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->key = key;
		__entry->err = err;
	),
	TP_printk("dev=%s key=%#x err=%d", __get_str(dev), __entry->key,
		  __entry->err)
);

/*
 * A buffer table was built; the object that gets it is the next one of this
 * task. va: of the application, 0 for kernel queues. leaves: pages, or segments
 * of a list. tables: on all levels. addr: as in the descriptor.
 */
TRACE_EVENT(qhca_table,
	TP_PROTO(const struct qhca_ib_dev *dev, u64 va,
		 const struct qhca_buf_table *t),
	TP_ARGS(dev, va, t),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u64, va)
		__field(u64, length)
		__field(u32, first)
		__field(u8, form)
		__field(u8, hops)
		__field(u8, page_shift)
		__field(u8, table_shift)
		__field(u64, leaves)
		__field(u64, tables)
		__field(u64, addr)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->va = va;
		__entry->length = t->plan.len;
		__entry->first = t->plan.first;
		__entry->form = t->plan.form;
		__entry->hops = t->plan.hops;
		__entry->page_shift = t->plan.page_shift;
		__entry->table_shift = t->plan.table_shift;
		__entry->leaves = t->plan.npages;
		__entry->tables = t->nmem;
		__entry->addr = le64_to_cpu(t->desc.addr);
	),
	TP_printk("dev=%s va=%#llx length=%llu first=%#x form=%s hops=%u page_shift=%u table_shift=%u leaves=%llu tables=%llu addr=%#llx",
		  __get_str(dev), __entry->va, __entry->length, __entry->first,
		  show_qhca_buf(__entry->form), __entry->hops,
		  __entry->page_shift, __entry->table_shift, __entry->leaves,
		  __entry->tables, __entry->addr)
);

/* A completion event is handed to the CQ's user. */
TRACE_EVENT(qhca_cq_event,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 cqn),
	TP_ARGS(dev, cqn),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, cqn)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->cqn = cqn;
	),
	TP_printk("dev=%s cqn=%u", __get_str(dev), __entry->cqn)
);

/* An asynchronous event of the device. obj: QPN, CQN or SRQN, by type. */
TRACE_EVENT(qhca_async_event,
	TP_PROTO(const struct qhca_ib_dev *dev, u8 type, u32 obj, u8 syndrome),
	TP_ARGS(dev, type, obj, syndrome),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u8, type)
		__field(u8, syndrome)
		__field(u32, obj)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->type = type;
		__entry->syndrome = syndrome;
		__entry->obj = obj;
	),
	TP_printk("dev=%s type=%s obj=%#x syndrome=%#x", __get_str(dev),
		  show_qhca_ev(__entry->type), __entry->obj,
		  __entry->syndrome)
);

/*
 * A kernel user's WQE is in the ring. index: counter, not slot. bytes: inline
 * data or sum of the SGEs.
 */
TRACE_EVENT(qhca_post_send,
	TP_PROTO(const struct qhca_ib_dev *dev, const struct qhca_ib_qp *qp,
		 u32 index, const struct ib_send_wr *wr,
		 const struct qhca_wqe_ctrl *ctrl),
	TP_ARGS(dev, qp, index, wr, ctrl),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, qpn)
		__field(u32, index)
		__field(u64, wr_id)
		__field(u8, opcode)
		__field(u8, flags)
		__field(u64, bytes)
	),
	TP_fast_assign(
		u64 bytes = 0;
		int i;

		for (i = 0; i < wr->num_sge; i++)
			bytes += wr->sg_list[i].length;
		__assign_str(dev);
		__entry->qpn = qp->qpn;
		__entry->index = index;
		__entry->wr_id = wr->wr_id;
		__entry->opcode = ctrl->opcode;
		__entry->flags = ctrl->flags;
		__entry->bytes = bytes;
	),
	TP_printk("dev=%s qpn=%#x index=%u wr_id=%#llx opcode=%s flags=%#x bytes=%llu",
		  __get_str(dev), __entry->qpn, __entry->index,
		  __entry->wr_id, show_qhca_wqe(__entry->opcode),
		  __entry->flags, __entry->bytes)
);

DECLARE_EVENT_CLASS(qhca_post_recv_class,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 num, u32 index, u32 wqe,
		 const struct ib_recv_wr *wr),
	TP_ARGS(dev, num, index, wqe, wr),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, num)
		__field(u32, index)
		__field(u32, wqe)
		__field(u64, wr_id)
		__field(u64, bytes)
	),
	TP_fast_assign(
		u64 bytes = 0;
		int i;

		for (i = 0; i < wr->num_sge; i++)
			bytes += wr->sg_list[i].length;
		__assign_str(dev);
		__entry->num = num;
		__entry->index = index;
		__entry->wqe = wqe;
		__entry->wr_id = wr->wr_id;
		__entry->bytes = bytes;
	),
	TP_printk("dev=%s num=%#x index=%u wqe=%u wr_id=%#llx bytes=%llu",
		  __get_str(dev), __entry->num, __entry->index, __entry->wqe,
		  __entry->wr_id, __entry->bytes)
);

/* num: QPN; wqe: slot of the ring */
DEFINE_EVENT(qhca_post_recv_class, qhca_post_recv,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 num, u32 index, u32 wqe,
		 const struct ib_recv_wr *wr),
	TP_ARGS(dev, num, index, wqe, wr)
);

/* num: SRQN; wqe: number of the WQE in the index ring */
DEFINE_EVENT(qhca_post_recv_class, qhca_post_srq_recv,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 num, u32 index, u32 wqe,
		 const struct ib_recv_wr *wr),
	TP_ARGS(dev, num, index, wqe, wr)
);

/*
 * A doorbell of the kernel's page is rung right after this. reg: QHCA_DB_*;
 * num: of the object; index: what the doorbell carries.
 */
TRACE_EVENT(qhca_doorbell,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 reg, u32 num, u64 flags,
		 u32 index),
	TP_ARGS(dev, reg, num, flags, index),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, reg)
		__field(u32, num)
		__field(u64, flags)
		__field(u32, index)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->reg = reg;
		__entry->num = num;
		__entry->flags = flags;
		__entry->index = index;
	),
	TP_printk("dev=%s reg=%s num=%#x flags=%#llx index=%u",
		  __get_str(dev), show_qhca_db(__entry->reg), __entry->num,
		  __entry->flags, __entry->index)
);

/* A completion goes to a kernel user. ci: counter of the CQE, not slot. */
TRACE_EVENT(qhca_poll_cq,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 cqn, u32 ci,
		 const struct qhca_cqe *cqe),
	TP_ARGS(dev, cqn, ci, cqe),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, cqn)
		__field(u32, ci)
		__field(u32, qpn)
		__field(u32, index)
		__field(u64, wr_id)
		__field(u8, opcode)
		__field(u8, status)
		__field(u8, syndrome)
		__field(u32, bytes)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->cqn = cqn;
		__entry->ci = ci;
		__entry->qpn = le32_to_cpu(cqe->qpn);
		__entry->index = le32_to_cpu(cqe->wqe_index);
		__entry->wr_id = le64_to_cpu(cqe->wr_id);
		__entry->opcode = cqe->opcode;
		__entry->status = cqe->status;
		__entry->syndrome = cqe->syndrome;
		__entry->bytes = le32_to_cpu(cqe->byte_len);
	),
	TP_printk("dev=%s cqn=%u ci=%u qpn=%#x index=%u wr_id=%#llx opcode=%s status=%u syndrome=%#x bytes=%u",
		  __get_str(dev), __entry->cqn, __entry->ci, __entry->qpn,
		  __entry->index, __entry->wr_id,
		  show_qhca_cqe_op(__entry->opcode), __entry->status,
		  __entry->syndrome, __entry->bytes)
);

/* The device is dead, and the driver flushes a kernel user's WR. */
TRACE_EVENT(qhca_flush_wr,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 qpn, bool send, u32 index,
		 u64 wr_id),
	TP_ARGS(dev, qpn, send, index, wr_id),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, qpn)
		__field(bool, send)
		__field(u32, index)
		__field(u64, wr_id)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->qpn = qpn;
		__entry->send = send;
		__entry->index = index;
		__entry->wr_id = wr_id;
	),
	TP_printk("dev=%s qpn=%#x send=%d index=%u wr_id=%#llx",
		  __get_str(dev), __entry->qpn, __entry->send, __entry->index,
		  __entry->wr_id)
);

/* A page fault of a QP was handled. ret: pages made present, or an error. */
TRACE_EVENT(qhca_page_fault,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 key, u64 addr, u64 length,
		 bool write, int ret),
	TP_ARGS(dev, key, addr, length, write, ret),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, key)
		__field(u64, addr)
		__field(u64, length)
		__field(bool, write)
		__field(int, ret)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->key = key;
		__entry->addr = addr;
		__entry->length = length;
		__entry->write = write;
		__entry->ret = ret;
	),
	TP_printk("dev=%s key=%#x addr=%#llx length=%llu write=%d ret=%d",
		  __get_str(dev), __entry->key, __entry->addr,
		  __entry->length, __entry->write, __entry->ret)
);

/* The kernel invalidates pages of an on-demand paging MR. */
TRACE_EVENT(qhca_invalidate,
	TP_PROTO(const struct qhca_ib_dev *dev, u32 key, u64 start, u64 end,
		 u64 pages),
	TP_ARGS(dev, key, start, end, pages),
	TP_STRUCT__entry(
		__string(dev, dev_name(&dev->ibdev.dev))
		__field(u32, key)
		__field(u64, start)
		__field(u64, end)
		__field(u64, pages)
	),
	TP_fast_assign(
		__assign_str(dev);
		__entry->key = key;
		__entry->start = start;
		__entry->end = end;
		__entry->pages = pages;
	),
	TP_printk("dev=%s key=%#x start=%#llx end=%#llx pages=%llu",
		  __get_str(dev), __entry->key, __entry->start, __entry->end,
		  __entry->pages)
);

#endif /* QHCA_IB_TRACE_H */

#ifdef CONFIG_QHCA_DEBUG
#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE qhca_ib_trace
#include <trace/define_trace.h>
#endif
