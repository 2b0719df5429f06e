/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Private to this folder, and to debug/: the objects of qhca_ib.ko and the
 * interfaces between its files.
 *
 * Numbers of objects are the device's. Each type has an xarray from number to
 * object: events and completions of kernel CQs find their object there.
 */
#ifndef QHCA_IB_H
#define QHCA_IB_H

#include <linux/completion.h>
#include <linux/dmapool.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <rdma/ib_umem.h>
#include <rdma/ib_verbs.h>
#include <rdma/qhca-abi.h>
#include <rdma/qhca-hw.h>
#include <rdma/uverbs_ioctl.h>

#include "qhca_compat.h"
#include "qhca_core.h"
#include "qhca_ib_debug.h"

#define QHCA_IB_PORT		1

/* maximum pages of a fast registration: the page list fills one 4 KiB page */
#define QHCA_IB_MAX_FAST_REG	512U

/* ranges of struct qhca_qpc and struct qhca_srqc */
#define QHCA_SQ_STRIDE_MIN	6
#define QHCA_SQ_STRIDE_MAX	10
#define QHCA_RQ_STRIDE_MIN	5
#define QHCA_RQ_STRIDE_MAX	9
#define QHCA_OPS_STRIDE_MIN	6
#define QHCA_OPS_STRIDE_MAX	9
#define QHCA_WQ_SHIFT_MAX	15
#define QHCA_CQ_SHIFT_MAX	22

/* counters of a QP */
#define QHCA_IB_QP_STATS	7

/* ------------------------------------------------------------- objects -- */

/**
 * struct qhca_ib_dev - one ib_device
 * @ibdev: what the core sees
 * @qdev: the adapter
 * @status_maps: the status pages of all contexts
 * @gone: the device is dead, for contexts to come
 * @dbrec_chunks: pages with doorbell records of kernel queues
 * @user_memory: the device can use applications' memory, see umem.c
 * @qps: QPN -> struct qhca_ib_qp
 * @cqs: CQN -> struct qhca_ib_cq
 * @srqs: SRQN -> struct qhca_ib_srq
 * @mrs: key index -> struct qhca_ib_mr
 * @wqs: WQN -> struct qhca_ib_wq
 * @qpn_leaving: QPs and WQs being destroyed, whose numbers may be reused
 * @qpn_wait: waitqueue for one of them to leave, see qhca_ib_qpn_add()
 * @mr_lock: an MR in @mrs is not freed while it is held
 * @dm_pages: a bit for each page of device memory, set if it has an owner
 * @counters: counters of QPs, by number
 * @counted: what all of them have counted
 * @next_key: low byte of the next key
 * @events: asynchronous events of the device
 * @netdev_nb: carrier and state of the net_device
 * @port_active: the state reported by the last event or the next one; under
 *	rtnl
 * @port_changed: @port_active has changed before @registered; under rtnl
 * @registered: the ib_device may get events; set and cleared under
 *	@fatal_lock, and under rtnl or when the net_device can send no event
 * @fatal_told: consumers know that the device is dead
 * @flush_work: calls the CQs of all kernel QPs of a dead device
 * @flush_wq: runs it: what frees memory may wait for it
 * @odp_wq: page faults and prefetching
 * @debug: state of debug/
 */
struct qhca_ib_dev {
	struct ib_device ibdev;
	struct qhca_dev *qdev;
	struct mutex status_lock;	/* protects status_maps and gone */
	struct list_head status_maps;	/* struct qhca_ib_mmap */
	bool gone;
	struct mutex dbrec_lock;	/* protects dbrec_chunks */
	struct list_head dbrec_chunks;
	bool user_memory;
	struct xarray qps;
	struct xarray cqs;
	struct xarray srqs;
	struct xarray mrs;
	struct xarray wqs;
	atomic_t qpn_leaving;
	wait_queue_head_t qpn_wait;
	struct mutex mr_lock;	/* see above */
	struct mutex dm_lock;	/* protects dm_pages */
	unsigned long *dm_pages;
	struct mutex counters_lock;	/* protects what follows, and qp->stats */
	struct xarray counters;
	u64 counted[QHCA_IB_QP_STATS];
	atomic_t next_key;
	struct notifier_block events;
	struct notifier_block netdev_nb;
	bool port_active;
	bool port_changed;
	struct mutex fatal_lock;	/* protects registered and fatal_told */
	bool registered;
	bool fatal_told;
	struct work_struct flush_work;
	struct workqueue_struct *flush_wq;
	struct workqueue_struct *odp_wq;
	struct qhca_ib_debug *debug;
};

/* an object of events: destroy waits until no handler uses it */
struct qhca_ib_ref {
	refcount_t count;
	struct completion gone;
};

enum qhca_ib_mmap_kind {
	QHCA_IB_MMAP_DB,
	QHCA_IB_MMAP_DM,
	QHCA_IB_MMAP_STATUS,
};

/**
 * struct qhca_ib_mmap - what a process can map
 * @entry: lives as long as there is a mapping
 * @dev: device
 * @kind: doorbell page, device memory or the status page
 * @phys: physical address; unused for the status page
 * @status: the status page
 * @status_entry: in its device's status_maps
 * @uar: doorbell page
 * @first_page: device memory: its first page
 * @npages: device memory: number of pages
 */
struct qhca_ib_mmap {
	struct rdma_user_mmap_entry entry;
	struct qhca_ib_dev *dev;
	enum qhca_ib_mmap_kind kind;
	phys_addr_t phys;
	struct qhca_status_page *status;
	struct list_head status_entry;
	u32 uar;
	unsigned long first_page;
	unsigned long npages;
};

/**
 * struct qhca_ib_dm - device memory of an application
 * @ibdm: what the core sees
 * @map: keeps its pages
 * @offset: offset in the device's memory
 */
struct qhca_ib_dm {
	struct ib_dm ibdm;
	struct qhca_ib_mmap *map;
	u64 offset;
};

struct qhca_ib_ucontext {
	struct ib_ucontext ibuc;
	struct qhca_ib_mmap *db;
	struct qhca_ib_mmap *status;
	u32 uar;
	struct mutex dbrec_lock;	/* protects dbrec_pages */
	struct list_head dbrec_pages;	/* struct qhca_ib_dbrec_page */
};

struct qhca_ib_pd {
	struct ib_pd ibpd;
	u32 pdn;
};

struct qhca_ib_xrcd {
	struct ib_xrcd ibxrcd;
	u32 xrcd;
};

struct qhca_ib_ah {
	struct ib_ah ibah;
	struct qhca_av av;
};

/* A pinned page of doorbell records of one process. */
struct qhca_ib_dbrec_page {
	struct list_head list;
	struct mm_struct *mm;
	unsigned long va;
	struct ib_umem *umem;
	u32 users;
};

/**
 * struct qhca_ib_dbrec - a doorbell record
 * @rec: CPU address; kernel queues only
 * @dma: DMA address
 * @page: user queues: the page that holds it
 */
struct qhca_ib_dbrec {
	struct qhca_dbrec *rec;
	dma_addr_t dma;
	struct qhca_ib_dbrec_page *page;
};

/**
 * struct qhca_ib_queue_buf - the memory of a queue and its table
 * @umem: user memory, or NULL
 * @table: its table
 * @kbuf: kernel queues: memory and table
 * @access: IB_ACCESS_* @umem was pinned with
 */
struct qhca_ib_queue_buf {
	struct ib_umem *umem;
	struct qhca_buf_table table;
	struct qhca_queue_buf kbuf;
	int access;
};

struct qhca_ib_cq {
	struct ib_cq ibcq;
	struct qhca_core_cq core;
	struct qhca_ib_ref ref;
	struct qhca_ib_queue_buf buf;
	struct qhca_ib_dbrec dbrec;
	u32 cqn;
	u8 shift;
	bool user;
	struct mutex resize;	/* protects buf and shift of user CQs */
	struct qhca_debug_files debug;
	/* kernel CQs */
	int armed;		/* its user waits for an event; by xchg() */
	struct xarray qps;	/* QPN -> kernel QP that uses it; erased under lock */
	spinlock_t lock;	/* protects what follows; taken before ring.lock */
	u32 ci;
	struct list_head send_qps;	/* kernel QPs, by their scq_entry */
	struct list_head recv_qps;
};

/**
 * struct qhca_ib_wr - a work request that a kernel user has posted
 * @wr_id: its user may dereference it, so it must not come from the device
 * @len: receives: bytes that fit
 *
 * In memory that the device cannot reach.
 */
struct qhca_ib_wr {
	u64 wr_id;
	u32 len;
};

/**
 * struct qhca_ib_ring - SQ or RQ
 * @buf: ring
 * @wr: kernel QPs: what was posted, by slot
 * @lock: kernel QPs: protects @head, and posting
 * @head: next WQE to write
 * @tail: oldest WQE not completed; written under the CQ's lock
 * @shift: log2 of the depth
 * @stride: log2 of WQE bytes; 0: the queue does not exist
 * @max_sge: SGEs that fit in a WQE
 * @max_inline: SQ: bytes of inline data that fit
 */
struct qhca_ib_ring {
	struct qhca_ib_queue_buf buf;
	struct qhca_ib_wr *wr;
	spinlock_t lock;	/* see above */
	u32 head;
	u32 tail;
	u8 shift;
	u8 stride;
	u32 max_sge;
	u32 max_inline;
};

struct qhca_ib_srq {
	struct ib_srq ibsrq;
	struct qhca_ib_ref ref;
	struct qhca_ib_queue_buf buf;
	struct qhca_ib_queue_buf idx;
	struct qhca_ib_queue_buf ops;		/* tag matching */
	u8 ops_shift;
	u8 ops_stride;			/* 0: no tag matching */
	struct qhca_ib_dbrec dbrec;
	u32 srqn;
	u8 shift;
	u8 stride;
	u32 max_sge;
	bool user;
	struct mutex resize;	/* protects buf, idx and shift of user SRQs */
	struct qhca_debug_files debug;
	/* kernel SRQs */
	spinlock_t lock;	/* protects what follows */
	u32 head;		/* of the index ring */
	struct qhca_ib_wr *wr;	/* by WQE number */
	u32 *next_free;		/* by WQE number; or one of the following */
	u32 first_free;		/* QHCA_IB_SRQ_END: none */
};

#define QHCA_IB_SRQ_END		U32_MAX
#define QHCA_IB_SRQ_POSTED	(U32_MAX - 1)	/* the device has it */
#define QHCA_IB_SRQ_TAKEN	(U32_MAX - 2)	/* completed, not yet free */

struct qhca_ib_qp {
	struct ib_qp ibqp;
	struct qhca_ib_ref ref;
	struct work_struct page_fault_work;
	struct qhca_ib_cq *scq;	/* NULL: XRC target */
	struct qhca_ib_cq *rcq;	/* NULL: XRC */
	struct qhca_ib_srq *srq;
	struct qhca_ib_ring sq;
	struct qhca_ib_ring rq;
	struct qhca_ib_dbrec rq_dbrec;
	struct qhca_ib_dbrec sq_dbrec;
	u32 qpn;
	u8 type;		/* QHCA_QPT_* */
	bool user;
	bool sig_all;
	bool block_mc_loop;
	bool strip_vlan;
	struct mutex mutex;	/* one MODIFY_QP at a time; protects state */
	struct list_head mcasts;	/* struct qhca_ib_mcast */
	enum ib_qp_state state;	/* as last set by modify_qp */
	struct qhca_ib_qp_stats *stats;	/* while bound to a counter */
	struct list_head scq_entry;
	struct list_head rcq_entry;
	struct qhca_debug_files debug;
};

struct qhca_ib_odp;

struct qhca_ib_mw {
	struct ib_mw ibmw;
};

struct qhca_ib_mr {
	struct ib_mr ibmr;
	struct qhca_ib_odp *odp;	/* on-demand paging; else NULL */
	struct ib_umem *umem;
	struct qhca_buf_table table;
	u32 key;
	u32 access;		/* QHCA_ACCESS_* */
	bool zero_based;	/* its addresses begin at 0 */
	bool dm;		/* device memory ... */
	u64 dm_offset;		/* ... from here on */
	/* fast registration */
	__le64 *pages;
	dma_addr_t pages_dma;
	u32 max_pages;
	u32 npages;
};

/* ib_wq: a receive queue of its own */
struct qhca_ib_wq {
	struct ib_wq ibwq;
	struct qhca_ib_ref ref;
	struct qhca_ib_queue_buf buf;
	struct qhca_ib_dbrec dbrec;
	u32 wqn;
};

/* indirection table */
struct qhca_ib_rqt {
	struct ib_rwq_ind_table ibtbl;
	u32 rqtn;
};

struct qhca_ib_flow {
	struct ib_flow ibflow;
	u32 num;
};

static inline struct qhca_ib_dev *to_qdev(struct ib_device *ibdev)
{
	return container_of(ibdev, struct qhca_ib_dev, ibdev);
}

static inline struct qhca_ib_ucontext *to_quc(struct ib_ucontext *ibuc)
{
	return container_of(ibuc, struct qhca_ib_ucontext, ibuc);
}

static inline struct qhca_ib_pd *to_qpd(struct ib_pd *ibpd)
{
	return container_of(ibpd, struct qhca_ib_pd, ibpd);
}

static inline struct qhca_ib_xrcd *to_qxrcd(struct ib_xrcd *ibxrcd)
{
	return container_of(ibxrcd, struct qhca_ib_xrcd, ibxrcd);
}

static inline struct qhca_ib_ah *to_qah(struct ib_ah *ibah)
{
	return container_of(ibah, struct qhca_ib_ah, ibah);
}

static inline struct qhca_ib_cq *to_qcq(struct ib_cq *ibcq)
{
	return container_of(ibcq, struct qhca_ib_cq, ibcq);
}

static inline struct qhca_ib_srq *to_qsrq(struct ib_srq *ibsrq)
{
	return container_of(ibsrq, struct qhca_ib_srq, ibsrq);
}

static inline struct qhca_ib_qp *to_qqp(struct ib_qp *ibqp)
{
	return container_of(ibqp, struct qhca_ib_qp, ibqp);
}

static inline struct qhca_ib_dm *to_qdm(struct ib_dm *ibdm)
{
	return container_of(ibdm, struct qhca_ib_dm, ibdm);
}

static inline struct qhca_ib_mr *to_qmr(struct ib_mr *ibmr)
{
	return container_of(ibmr, struct qhca_ib_mr, ibmr);
}

static inline struct qhca_ib_wq *to_qwq(struct ib_wq *ibwq)
{
	return container_of(ibwq, struct qhca_ib_wq, ibwq);
}

static inline struct qhca_ib_rqt *to_qrqt(struct ib_rwq_ind_table *ibtbl)
{
	return container_of(ibtbl, struct qhca_ib_rqt, ibtbl);
}

/* The context behind @udata; NULL for a kernel caller. */
static inline struct qhca_ib_ucontext *udata_to_quc(struct ib_udata *udata)
{
	return rdma_udata_to_drv_context(udata, struct qhca_ib_ucontext, ibuc);
}

/* ------------------------------------------------------------- events.c -- */

static inline void qhca_ib_ref_init(struct qhca_ib_ref *ref)
{
	refcount_set(&ref->count, 1);
	init_completion(&ref->gone);
}

static inline void qhca_ib_ref_put(struct qhca_ib_ref *ref)
{
	if (refcount_dec_and_test(&ref->count))
		complete(&ref->gone);
}

/* Drop the first reference and wait for the others. */
static inline void qhca_ib_ref_kill(struct qhca_ib_ref *ref)
{
	qhca_ib_ref_put(ref);
	wait_for_completion(&ref->gone);
}

int qhca_ib_events_init(struct qhca_ib_dev *dev);
void qhca_ib_events_start(struct qhca_ib_dev *dev);
void qhca_ib_events_exit_netdev(struct qhca_ib_dev *dev);
void qhca_ib_events_exit_device(struct qhca_ib_dev *dev);
#ifdef QHCA_PORT_EVENTS_BY_DRIVER
void qhca_ib_report_port_event(struct ib_device *ibdev,
			       struct net_device *netdev, unsigned long type);
#endif
void qhca_ib_flush_work(struct work_struct *work);
void qhca_ib_flush_kernel(struct qhca_ib_dev *dev);
void qhca_ib_wake_if_dead(struct qhca_ib_dev *dev);
void qhca_ib_flush_users(struct qhca_ib_dev *dev);
int qhca_ib_destroy(struct qhca_ib_dev *dev, u8 opcode, u32 obj);

/* ----------------------------------------------------- umem.c, dbrec.c -- */

struct ib_umem *qhca_ib_umem_get(struct qhca_ib_dev *dev, u64 addr, u64 len,
				 int access);
int qhca_ib_buf_table_build(struct qhca_ib_dev *dev, struct qhca_buf_table *t,
			    struct ib_umem *umem, u64 iova, u64 len);
int qhca_ib_queue_buf_pin(struct qhca_ib_dev *dev,
			  struct qhca_ib_queue_buf *buf, u64 addr, u64 len,
			  u64 need);
int qhca_ib_queue_buf_alloc(struct qhca_ib_dev *dev,
			    struct qhca_ib_queue_buf *buf, size_t len);
void qhca_ib_queue_buf_free(struct qhca_ib_dev *dev,
			    struct qhca_ib_queue_buf *buf);

static inline const struct qhca_buf_table *
qhca_ib_queue_buf_table(const struct qhca_ib_queue_buf *buf)
{
	return buf->umem ? &buf->table : &buf->kbuf.table;
}

static inline struct qhca_buf
qhca_ib_queue_buf_desc(const struct qhca_ib_queue_buf *buf)
{
	return qhca_ib_queue_buf_table(buf)->desc;
}

int qhca_ib_dbrec_pin(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *uc,
		      struct qhca_ib_dbrec *dbrec, u64 addr);
int qhca_ib_dbrec_alloc(struct qhca_ib_dev *dev, struct qhca_ib_dbrec *dbrec);
void qhca_ib_dbrec_free(struct qhca_ib_dev *dev, struct qhca_ib_ucontext *uc,
			struct qhca_ib_dbrec *dbrec);

/* ---------------------------------------------------- verbs, per object -- */

/* device.c */
int qhca_ib_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			 struct ib_udata *udata);
void qhca_ib_get_dev_fw_str(struct ib_device *ibdev, char *str);
void qhca_ib_init_attrs(struct qhca_ib_dev *dev);

/* port.c */
int qhca_ib_query_port(struct ib_device *ibdev, u32 port,
		       struct ib_port_attr *attr);
int qhca_ib_get_port_immutable(struct ib_device *ibdev, u32 port,
			       struct ib_port_immutable *imm);
int qhca_ib_query_pkey(struct ib_device *ibdev, u32 port, u16 index, u16 *pkey);
enum rdma_link_layer qhca_ib_get_link_layer(struct ib_device *ibdev, u32 port);
bool qhca_ib_port_is_up(struct qhca_ib_dev *dev);

/* gid.c */
int qhca_ib_add_gid(const struct ib_gid_attr *attr, void **context);
int qhca_ib_del_gid(const struct ib_gid_attr *attr, void **context);

/* ucontext.c */
extern const struct uapi_definition qhca_ib_ucontext_defs[];
int qhca_ib_alloc_ucontext(struct ib_ucontext *ibuc, struct ib_udata *udata);
void qhca_ib_dealloc_ucontext(struct ib_ucontext *ibuc);
int qhca_ib_mmap(struct ib_ucontext *ibuc, struct vm_area_struct *vma);
void qhca_ib_mmap_free(struct rdma_user_mmap_entry *entry);
void qhca_ib_status_gone(struct qhca_ib_dev *dev);
void qhca_ib_disassociate_ucontext(struct ib_ucontext *ibuc);
int qhca_ib_query_ucontext(struct ib_ucontext *ibuc,
			   struct uverbs_attr_bundle *attrs);
int qhca_ib_udata_in(struct ib_udata *udata, void *req, size_t size);
int qhca_ib_udata_in_min(struct ib_udata *udata, void *req, size_t least,
			 size_t size);
int qhca_ib_udata_none(struct ib_udata *udata);
int qhca_ib_udata_out(struct ib_udata *udata, void *resp, size_t size);

/* clock.c */
extern const struct uapi_definition qhca_ib_clock_defs[];

/* pd.c */
extern const struct uapi_definition qhca_ib_pd_defs[];
int qhca_ib_alloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);
int qhca_ib_dealloc_pd(struct ib_pd *ibpd, struct ib_udata *udata);

/* xrc.c */
int qhca_ib_alloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);
int qhca_ib_dealloc_xrcd(struct ib_xrcd *ibxrcd, struct ib_udata *udata);

/* ah.c */
int qhca_ib_av_fill(struct qhca_av *av, const struct rdma_ah_attr *attr);
void qhca_ib_av_read(const struct qhca_av *av, struct rdma_ah_attr *attr);
int qhca_ib_create_ah(struct ib_ah *ibah, struct rdma_ah_init_attr *init,
		      struct ib_udata *udata);
int qhca_ib_query_ah(struct ib_ah *ibah, struct rdma_ah_attr *attr);
int qhca_ib_destroy_ah(struct ib_ah *ibah, u32 flags);

/* contexts.c */
void qhca_ib_fill_cqc(struct qhca_cqc *cqc, const struct qhca_ib_cq *cq,
		      u32 eqn, u32 uar);
void qhca_ib_fill_qpc(struct qhca_qpc *qpc, const struct qhca_ib_qp *qp,
		      u32 pdn, u32 uar, u64 cookie);
void qhca_ib_fill_srqc(struct qhca_srqc *srqc, const struct qhca_ib_srq *srq,
		       const struct ib_srq_init_attr *attr, u32 pdn, u32 uar);
void qhca_ib_fill_wqc(struct qhca_wqc *wqc, const struct qhca_ib_wq *wq,
		      const struct qhca_create_wq_req *req, u32 pdn, u32 uar,
		      u32 cqn, u8 flags);

/* cq.c */
int qhca_ib_create_cq(struct ib_cq *ibcq, const struct ib_cq_init_attr *attr,
		      struct uverbs_attr_bundle *attrs);
int qhca_ib_destroy_cq(struct ib_cq *ibcq, struct ib_udata *udata);
int qhca_ib_modify_cq(struct ib_cq *ibcq, u16 count, u16 period);
int qhca_ib_req_notify_cq(struct ib_cq *ibcq, enum ib_cq_notify_flags flags);
void qhca_ib_cq_call(struct qhca_ib_cq *cq);

/* poll.c */
int qhca_ib_poll_cq(struct ib_cq *ibcq, int num, struct ib_wc *wc);
bool qhca_ib_cq_has_cqe(struct qhca_ib_cq *cq);
bool qhca_ib_cq_has_flush(struct qhca_ib_cq *cq);
void qhca_ib_cq_clean(struct qhca_ib_cq *cq, u32 qpn, struct qhca_ib_srq *srq);

/* drain.c */
void qhca_ib_drain_sq(struct ib_qp *ibqp);
void qhca_ib_drain_rq(struct ib_qp *ibqp);

/* qp.c */
int qhca_ib_create_qp(struct ib_qp *ibqp, struct ib_qp_init_attr *attr,
		      struct ib_udata *udata);
int qhca_ib_destroy_qp(struct ib_qp *ibqp, struct ib_udata *udata);
void qhca_ib_qp_clean_cqs(struct qhca_ib_qp *qp);
int qhca_ib_qpn_add(struct qhca_ib_dev *dev, struct xarray *xa, u32 num,
		    void *obj);
void qhca_ib_qpn_leave(struct qhca_ib_dev *dev);
void qhca_ib_qpn_left(struct qhca_ib_dev *dev);

static inline bool qhca_ib_qp_is_ud(const struct qhca_ib_qp *qp)
{
	return qp->type == QHCA_QPT_UD || qp->type == QHCA_QPT_GSI;
}

static inline bool qhca_ib_qp_is_raw(const struct qhca_ib_qp *qp)
{
	return qp->type == QHCA_QPT_RAW || qp->type == QHCA_QPT_RSS;
}

/* qp_attr.c */
int qhca_ib_qp_attr_fill(const struct qhca_caps *caps, struct qhca_qpc *qpc,
			 u64 *dev_mask, const struct ib_qp_attr *attr, int mask);
void qhca_ib_qp_attr_read(const struct qhca_qpc *qpc, struct ib_qp_attr *attr);

/* qp_modify.c */
int qhca_ib_modify_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		      struct ib_udata *udata);
int qhca_ib_query_qp(struct ib_qp *ibqp, struct ib_qp_attr *attr, int mask,
		     struct ib_qp_init_attr *init);

/* mcast.c */
int qhca_ib_attach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);
int qhca_ib_detach_mcast(struct ib_qp *ibqp, union ib_gid *gid, u16 lid);

/* flow.c */
struct ib_flow *qhca_ib_create_flow(struct ib_qp *ibqp,
				    struct ib_flow_attr *attr,
				    struct ib_udata *udata);
int qhca_ib_destroy_flow(struct ib_flow *ibflow);

/* wq.c */
struct ib_wq *qhca_ib_create_wq(struct ib_pd *ibpd,
				struct ib_wq_init_attr *attr,
				struct ib_udata *udata);
int qhca_ib_modify_wq(struct ib_wq *ibwq, struct ib_wq_attr *attr, u32 mask,
		      struct ib_udata *udata);
int qhca_ib_destroy_wq(struct ib_wq *ibwq, struct ib_udata *udata);
int qhca_ib_create_rwq_ind_table(struct ib_rwq_ind_table *ibtbl,
				 struct ib_rwq_ind_table_init_attr *attr,
				 struct ib_udata *udata);
int qhca_ib_destroy_rwq_ind_table(struct ib_rwq_ind_table *ibtbl);

/* post.c */
int qhca_ib_post_send(struct ib_qp *ibqp, const struct ib_send_wr *wr,
		      const struct ib_send_wr **bad);
int qhca_ib_post_recv(struct ib_qp *ibqp, const struct ib_recv_wr *wr,
		      const struct ib_recv_wr **bad);
void qhca_ib_write_rq_wqe(void *wqe, struct qhca_ib_wr *kept,
			  const struct ib_recv_wr *wr);

/* srq.c */
int qhca_ib_create_srq(struct ib_srq *ibsrq, struct ib_srq_init_attr *attr,
		       struct ib_udata *udata);
int qhca_ib_modify_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr,
		       enum ib_srq_attr_mask mask, struct ib_udata *udata);
int qhca_ib_query_srq(struct ib_srq *ibsrq, struct ib_srq_attr *attr);
int qhca_ib_destroy_srq(struct ib_srq *ibsrq, struct ib_udata *udata);
int qhca_ib_post_srq_recv(struct ib_srq *ibsrq, const struct ib_recv_wr *wr,
			  const struct ib_recv_wr **bad);
bool qhca_ib_srq_take_wqe(struct qhca_ib_srq *srq, u32 index,
			  struct qhca_ib_wr *wr);
void qhca_ib_srq_free_wqe(struct qhca_ib_srq *srq, u32 index);
void qhca_ib_srq_free_wqe_locked(struct qhca_ib_srq *srq, u32 index);

/* resize.c */
int qhca_ib_resize_cq(struct ib_cq *ibcq, QHCA_RESIZE_CQE cqe,
		      struct ib_udata *udata);
int qhca_ib_srq_grow(struct qhca_ib_srq *srq, const struct ib_srq_attr *attr,
		     bool limit, struct ib_udata *udata);

/* mr.c */
struct ib_mr *qhca_ib_get_dma_mr(struct ib_pd *ibpd, int access);
struct ib_mr *qhca_ib_reg_user_mr(struct ib_pd *ibpd, u64 start, u64 length,
				  u64 iova, int access, QHCA_DMAH_PARAM
				  struct ib_udata *udata);
struct ib_mr *qhca_ib_reg_user_mr_dmabuf(struct ib_pd *ibpd, u64 offset,
					 u64 length, u64 iova, int fd,
					 int access, QHCA_DMAH_PARAM
					 struct uverbs_attr_bundle *attrs);
struct ib_mr *qhca_ib_alloc_mr(struct ib_pd *ibpd, enum ib_mr_type type,
			       u32 max_num_sg);
int qhca_ib_map_mr_sg(struct ib_mr *ibmr, struct scatterlist *sg, int nents,
		      unsigned int *offset);
int qhca_ib_dereg_mr(struct ib_mr *ibmr, struct ib_udata *udata);

/* IB_ACCESS_* to QHCA_ACCESS_*: the same bits; optional ones are dropped. */
static inline u32 qhca_ib_access(int access)
{
	return access & QHCA_ACCESS_MASK;
}

struct ib_mr *qhca_ib_reg_dm_mr(struct ib_pd *ibpd, struct ib_dm *ibdm,
				struct ib_dm_mr_attr *attr,
				struct uverbs_attr_bundle *attrs);

/* dm.c */
extern const struct uapi_definition qhca_ib_dm_defs[];
u64 qhca_ib_max_dm_size(const struct qhca_ib_dev *dev);
struct ib_dm *qhca_ib_alloc_dm(struct ib_device *ibdev,
			       struct ib_ucontext *ibuc,
			       struct ib_dm_alloc_attr *attr,
			       struct uverbs_attr_bundle *attrs);
int qhca_ib_dealloc_dm(struct ib_dm *ibdm, struct uverbs_attr_bundle *attrs);
void qhca_ib_dm_mmap_free(struct qhca_ib_mmap *map);
int qhca_ib_dm_init(struct qhca_ib_dev *dev);
void qhca_ib_dm_exit(struct qhca_ib_dev *dev);

/* odp.c, odp_fault.c */
#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
int qhca_ib_odp_init(struct qhca_ib_mr *mr, u64 start, u64 length, u64 iova,
		     int access, struct qhca_mpt *mpt);
void qhca_ib_odp_set_key(struct qhca_ib_mr *mr);
void qhca_ib_odp_exit(struct qhca_ib_mr *mr);
void qhca_ib_page_fault_work(struct work_struct *work);
void qhca_ib_page_fault(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp);
int qhca_ib_advise_mr(struct ib_pd *pd, enum ib_uverbs_advise_mr_advice advice,
		      u32 flags, struct ib_sge *sge, u32 num_sge,
		      struct uverbs_attr_bundle *attrs);
int qhca_ib_fill_stat_mr_entry(struct sk_buff *msg, struct ib_mr *ibmr);
#else
static inline int qhca_ib_odp_init(struct qhca_ib_mr *mr, u64 start, u64 length,
				   u64 iova, int access, struct qhca_mpt *mpt)
{
	return -EOPNOTSUPP;
}

static inline void qhca_ib_odp_set_key(struct qhca_ib_mr *mr) {}
static inline void qhca_ib_odp_exit(struct qhca_ib_mr *mr) {}

static inline void qhca_ib_page_fault_work(struct work_struct *work) {}

static inline void qhca_ib_page_fault(struct qhca_ib_dev *dev,
				      struct qhca_ib_qp *qp)
{
	qhca_ib_ref_put(&qp->ref);
}
#endif

/* Do both the device and the kernel support on-demand paging? */
static inline bool qhca_ib_has_odp(const struct qhca_ib_dev *dev)
{
	return IS_ENABLED(CONFIG_INFINIBAND_ON_DEMAND_PAGING) &&
	       dev->user_memory && dev->qdev->caps.features & QHCA_FEAT_ODP;
}

struct ib_mr *qhca_ib_rereg_user_mr(struct ib_mr *ibmr, int flags, u64 start,
				    u64 length, u64 iova, int access,
				    struct ib_pd *ibpd, struct ib_udata *udata);

/* mw.c */
int qhca_ib_alloc_mw(struct ib_mw *ibmw, struct ib_udata *udata);
int qhca_ib_dealloc_mw(struct ib_mw *ibmw);

/* port_counters.c */
struct rdma_hw_stats *qhca_ib_alloc_hw_port_stats(struct ib_device *ibdev,
						  u32 port);
int qhca_ib_get_hw_stats(struct ib_device *ibdev, struct rdma_hw_stats *stats,
			 u32 port, int index);
struct rdma_hw_stats *qhca_ib_counter_alloc_stats(struct rdma_counter *counter);
u32 qhca_ib_stat_number(int index);

/* qp_counters.c */
#ifdef QHCA_COUNTER_INIT_BY_DRIVER
void qhca_ib_counter_init(struct rdma_counter *counter);
#endif
int qhca_ib_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp
			    QHCA_COUNTER_PORT_PARAM);
int qhca_ib_counter_unbind_qp(struct ib_qp *ibqp QHCA_COUNTER_PORT_PARAM);
int qhca_ib_counter_dealloc(struct rdma_counter *counter);
int qhca_ib_counter_update_stats(struct rdma_counter *counter);
void qhca_ib_qp_stats_reset_begin(struct qhca_ib_qp *qp);
void qhca_ib_qp_stats_reset_end(struct qhca_ib_qp *qp, int err);
bool qhca_ib_qp_has_stat(u32 stat);
int qhca_ib_counters_share(struct qhca_ib_dev *dev,
			   __le64 values[QHCA_STAT_COUNT],
			   u64 share[QHCA_STAT_COUNT]);
void qhca_ib_counters_init(struct qhca_ib_dev *dev);
void qhca_ib_counters_exit(struct qhca_ib_dev *dev);

#endif /* QHCA_IB_H */
