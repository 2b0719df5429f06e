/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * libqhca: objects and the functions its files share.
 */
#ifndef QHCA_H
#define QHCA_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ccan/list.h>
#include <infiniband/driver.h>
#include <infiniband/verbs.h>
#include <rdma/qhca-abi.h>
#include <rdma/qhca-hw.h>
#include <util/compiler.h>
#include <util/udma_barrier.h>

#include "qhca-lock.h"
#include "qhca-ring.h"
#include "qhca-wqe.h"
#include "trace.h"

/* See CMakeLists.txt, which leaves the provider out. */
#if SIZEOF_LONG != 8
#error "qhca needs a 64-bit architecture: a doorbell is one 8-byte store"
#endif

#define QHCA_CQE_SHIFT		6	/* log2 of sizeof(struct qhca_cqe) */

/* QPNs are 24 bits: the table has two levels of 12 bits. */
#define QHCA_QPN_MASK		0xffffffU
#define QHCA_IDR_SHIFT		12
#define QHCA_IDR_SIZE		(1U << QHCA_IDR_SHIFT)

/*
 * What a ring is for: resource_type of the allocators an application can give
 * a parent domain.
 */
enum qhca_resource {
	QHCA_RES_SQ = 1,
	QHCA_RES_RQ,
	QHCA_RES_CQ,
	QHCA_RES_SRQ,
	QHCA_RES_SRQ_INDEX,
	QHCA_RES_SRQ_OPS,
};

/* Memory of a ring: whole pages of its own, pinned by the kernel. */
struct qhca_queue_buf {
	void			*addr;
	size_t			len;		/* what the kernel is given */
	size_t			map_len;	/* what is mapped */
	struct qhca_pd		*owner;		/* its allocator made it */
	enum qhca_resource	type;
};

/* From a number to an object, see idr.c. */
struct qhca_idr {
	void			**leaf[QHCA_IDR_SIZE];
};

struct qhca_device {
	struct verbs_device	vdev;
};

struct qhca_context {
	struct verbs_context	vctx;
	void			*db;		/* doorbell page */
	size_t			db_len;
	const struct qhca_status_page *status;	/* the kernel's, see status.c */
	size_t			status_len;	/* 0: it has none */
	size_t			page_size;
	uint64_t		features;	/* QHCA_FEAT_* */
	uint32_t		max_qp_wr;
	uint32_t		max_cqe;
	uint32_t		max_srq_wr;
	uint32_t		max_sge;
	uint32_t		max_inline;
	bool			huge;		/* rings in huge pages */

	/*
	 * Held while a QP or such an SRQ comes or goes, so that a QPN the kernel hands out
	 * again cannot be mixed up with its former owner.  Polling reads the
	 * table without it: a QP is in the table before it can complete
	 * anything, and leaves it after its last CQE was cleaned away.
	 */
	pthread_mutex_t		qp_mutex;
	struct qhca_idr		qps;
	struct qhca_idr		srqs;		/* those with a CQ of their own */

	pthread_mutex_t		dbrec_mutex;
	struct list_head	dbrec_pages;

	/* the wall clock less the device's, ns; and when the kernel said so */
	_Atomic uint64_t	wall_offset;
	_Atomic uint64_t	wall_asked;	/* CLOCK_MONOTONIC, ns; 0: never */
};

struct qhca_td {
	struct ibv_td		ibv_td;
	atomic_int		refs;
};

struct qhca_pd {
	struct ibv_pd		ibv_pd;
	atomic_int		refs;		/* parent domains on it */
	/* of a parent domain only */
	struct qhca_pd		*protection;
	struct qhca_td		*td;		/* may be NULL */
	void			*(*alloc)(struct ibv_pd *pd, void *pd_context,
					  size_t size, size_t alignment,
					  uint64_t resource_type);
	void			(*free)(struct ibv_pd *pd, void *pd_context,
					void *ptr, uint64_t resource_type);
	void			*pd_context;
};

struct qhca_cq {
	struct verbs_cq		vcq;
	struct qhca_lock	lock;
	struct qhca_cqe		*ring;
	uint8_t			shift;		/* log2 of the depth */
	atomic_uint		ci;		/* consumer index */
	uint32_t		cqn;
	struct qhca_dbrec	*dbrec;
	struct qhca_qp		*last_qp;	/* of the CQE before */
	struct qhca_cqe		cur;		/* extended polling: this CQE */
	struct qhca_pd		*parent;	/* parent domain, may be NULL */
	struct qhca_queue_buf	buf;
};

struct qhca_sq {
	struct qhca_lock	lock;
	char			*ring;
	uint8_t			shift;		/* log2 of the depth */
	uint8_t			stride;		/* log2 of WQE bytes */
	uint32_t		head;		/* under the lock */
	atomic_uint		tail;		/* written when polling */
	struct qhca_dbrec	*dbrec;		/* or NULL */
	struct qhca_wqe_rules	rules;
	/* extended posting, between wr_start and wr_complete */
	uint32_t		new_head;
	void			*cur;		/* the WQE being built */
	uint32_t		inline_len;	/* data in it */
	int			err;
	struct qhca_queue_buf	buf;
};

struct qhca_rq {
	struct qhca_lock	lock;
	char			*ring;
	uint8_t			shift;
	uint8_t			stride;
	uint32_t		head;		/* under the lock */
	atomic_uint		tail;		/* written when polling */
	uint32_t		max_sge;
	struct qhca_dbrec	*dbrec;
	struct qhca_queue_buf	buf;
};

struct qhca_tm_entry {
	uint32_t		handle;		/* of its present or next use */
	uint32_t		next;		/* free list, as in qhca_srq.next */
};

/* Tag matching of an SRQ, see tag_matching.c; under the SRQ's lock. */
struct qhca_tm {
	char			*ring;		/* operations */
	uint8_t			shift;
	uint8_t			stride;
	uint32_t		head;
	uint32_t		tail;		/* oldest not known as executed */
	uint32_t		max_tags;
	uint32_t		first_free;	/* entry, or QHCA_SRQ_END */
	struct qhca_queue_buf	buf;
	struct qhca_tm_entry	entry[];
};

struct qhca_srq {
	struct verbs_srq	vsrq;
	struct qhca_lock	lock;
	char			*ring;		/* WQEs by number */
	__le32			*index;		/* index ring */
	uint8_t			shift;
	uint8_t			stride;
	uint32_t		head;		/* of the index ring */
	uint32_t		max_sge;
	uint32_t		srqn;
	uint32_t		*next;		/* free list by WQE number */
	uint32_t		first_free;	/* QHCA_SRQ_END: none */
	struct qhca_cq		*cq;		/* its own, or NULL */
	struct qhca_tm		*tm;		/* tag matching, or NULL */
	struct qhca_pd		*parent;	/* parent domain, may be NULL */
	struct qhca_dbrec	*dbrec;
	struct qhca_queue_buf	buf;
	struct qhca_queue_buf	index_buf;
};

#define QHCA_SRQ_END		0xffffffffU	/* end of the free list */
#define QHCA_SRQ_BUSY		0xfffffffeU	/* posted, not in the list */

struct qhca_qp {
	struct verbs_qp		vqp;
	uint32_t		qpn;
	struct qhca_sq		sq;
	struct qhca_rq		rq;		/* unused with an SRQ */
	struct qhca_srq		*srq;
	struct qhca_cq		*send_cq;	/* NULL: XRC target */
	struct qhca_cq		*recv_cq;	/* NULL: XRC */
	struct ibv_qp_cap	cap;		/* what the rings really hold */
	struct qhca_pd		*parent;	/* parent domain, may be NULL */
};

/* A receive queue of its own, see wq.c. */
struct qhca_wq {
	struct ibv_wq		ibv_wq;
	struct qhca_qp		as_qp;		/* only the receive side */
};

static inline struct qhca_context *to_qctx(struct ibv_context *ctx)
{
	return container_of(ctx, struct qhca_context, vctx.context);
}

static inline struct qhca_pd *to_qpd(struct ibv_pd *pd)
{
	return container_of(pd, struct qhca_pd, ibv_pd);
}

static inline struct qhca_cq *to_qcq(struct ibv_cq *cq)
{
	return container_of(cq, struct qhca_cq, vcq.cq);
}

static inline struct qhca_cq *to_qcq_ex(struct ibv_cq_ex *cq)
{
	return container_of(cq, struct qhca_cq, vcq.cq_ex);
}

static inline struct qhca_srq *to_qsrq(struct ibv_srq *srq)
{
	return container_of(srq, struct qhca_srq, vsrq.srq);
}

static inline struct qhca_wq *to_qwq(struct ibv_wq *wq)
{
	return container_of(wq, struct qhca_wq, ibv_wq);
}

static inline struct qhca_qp *to_qqp(struct ibv_qp *qp)
{
	return container_of(qp, struct qhca_qp, vqp.qp);
}

static inline struct qhca_qp *to_qqp_ex(struct ibv_qp_ex *qp)
{
	return container_of(qp, struct qhca_qp, vqp.qp_ex);
}

#include "qhca-doorbell.h"

/* status.c */
int qhca_status_map(struct qhca_context *ctx, int cmd_fd, uint64_t key,
		    size_t len);
void qhca_status_unmap(struct qhca_context *ctx);
int qhca_cq_gone(struct qhca_cq *cq);

/*
 * Returns true once the device is gone: posting fails, and what has no
 * completion gets none.  A load of a line that changes once in its life.
 */
static inline bool qhca_is_gone(struct ibv_context *context)
{
	const struct qhca_status_page *status = to_qctx(context)->status;

	return unlikely(!atomic_load_explicit((const _Atomic(uint32_t) *)
					      &status->works,
					      memory_order_relaxed));
}

/* queue_buf.c */
int qhca_queue_buf_map(struct qhca_queue_buf *buf, size_t len, bool huge);
int qhca_queue_buf_alloc(struct qhca_context *ctx, struct qhca_pd *parent,
			 struct qhca_queue_buf *buf, size_t len,
			 enum qhca_resource type);
void qhca_queue_buf_free(struct qhca_queue_buf *buf);

/* dbrec.c */
struct qhca_dbrec *qhca_dbrec_alloc(struct qhca_context *ctx);
void qhca_dbrec_free(struct qhca_context *ctx, struct qhca_dbrec *rec);

/* idr.c */
int qhca_idr_set(struct qhca_idr *idr, uint32_t num, void *obj);
void qhca_idr_clear(struct qhca_idr *idr, uint32_t num);
void qhca_idr_free(struct qhca_idr *idr);

static inline void *qhca_idr_find(const struct qhca_idr *idr, uint32_t num)
{
	void **leaf = idr->leaf[(num & QHCA_QPN_MASK) >> QHCA_IDR_SHIFT];

	return leaf ? leaf[num & (QHCA_IDR_SIZE - 1)] : NULL;
}

/* Returns the QP with this number, or NULL. */
static inline struct qhca_qp *qhca_qp_find(struct qhca_context *ctx,
					   uint32_t qpn)
{
	return qhca_idr_find(&ctx->qps, qpn);
}

/* Returns the SRQ with this number if it has a CQ of its own, or NULL. */
static inline struct qhca_srq *qhca_srq_find(struct qhca_context *ctx,
					     uint32_t srqn)
{
	return qhca_idr_find(&ctx->srqs, srqn);
}

/* pd.c */
struct ibv_pd *qhca_alloc_pd(struct ibv_context *context);
int qhca_dealloc_pd(struct ibv_pd *pd);
struct ibv_td *qhca_alloc_td(struct ibv_context *context,
			     struct ibv_td_init_attr *attr);
int qhca_dealloc_td(struct ibv_td *td);
struct ibv_pd *
qhca_alloc_parent_domain(struct ibv_context *context,
			 struct ibv_parent_domain_init_attr *attr);
struct qhca_pd *qhca_parent_get(struct ibv_pd *pd);
void qhca_parent_put(struct qhca_pd *parent);
bool qhca_pd_unlocked(struct ibv_pd *pd);

struct ibv_pd *qhca_import_pd(struct ibv_context *context, uint32_t handle);
void qhca_unimport_pd(struct ibv_pd *pd);

/* dm.c */
struct ibv_dm *qhca_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr);
int qhca_free_dm(struct ibv_dm *dm);
struct ibv_dm *qhca_import_dm(struct ibv_context *context, uint32_t handle);
void qhca_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *qhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			      uint64_t offset, size_t length,
			      unsigned int access);

/* mr.c */
struct ibv_mr *qhca_reg_mr(struct ibv_pd *pd, void *addr, size_t length,
			   uint64_t hca_va, int access);
struct ibv_mr *qhca_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset,
				  size_t length, uint64_t iova, int fd,
				  int access);
int qhca_dereg_mr(struct verbs_mr *vmr);
int qhca_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *pd,
		  void *addr, size_t length, int access);
struct ibv_mr *qhca_import_mr(struct ibv_pd *pd, uint32_t handle);
void qhca_unimport_mr(struct ibv_mr *mr);
int qhca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice,
		   uint32_t flags, struct ibv_sge *sg_list, uint32_t num_sge);

/* mw.c */
struct ibv_mw *qhca_alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type);
int qhca_dealloc_mw(struct ibv_mw *mw);
int qhca_bind_mw(struct ibv_qp *qp, struct ibv_mw *mw,
		 struct ibv_mw_bind *bind);

/* ah.c */
struct ibv_ah *qhca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int qhca_destroy_ah(struct ibv_ah *ah);
void qhca_av_fill(struct qhca_av *av, const struct ibv_ah_attr *attr,
		  const uint8_t dmac[6]);

/* cq.c */
struct ibv_cq *qhca_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *qhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
int qhca_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int qhca_destroy_cq(struct ibv_cq *cq);
void qhca_cq_clean(struct qhca_cq *cq, struct qhca_qp *qp);
void qhca_cq_clean_srq(struct qhca_cq *cq, struct qhca_srq *srq);

/* poll.c */
int qhca_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
int qhca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
struct qhca_cqe *qhca_cq_peek(struct qhca_cq *cq, uint32_t ci);
/* The sender of a UD receive; others 0. */
static inline uint32_t qhca_cqe_src_qp(const struct qhca_cqe *cqe)
{
	if ((le16toh(cqe->flags) & QHCA_CQE_F_SRQN) ||
	    cqe->opcode == QHCA_CQE_OP_RAW_RECV)
		return 0;
	return le32toh(cqe->src_qpn);
}

/* WQEs whose CQEs were read, until they are given back to their queues. */
struct qhca_retired {
	struct qhca_qp		*qp;		/* sq, rq */
	struct qhca_srq		*srq;		/* NULL: none of an SRQ */
	uint32_t		sq_tail;
	uint32_t		rq_tail;
	uint32_t		number;		/* of the SRQ's */
	bool			sq;
	bool			rq;
	bool			tag;		/* the number is a tag's handle */
};

bool qhca_cqe_retire(struct qhca_cq *cq, struct qhca_cqe *cqe, uint32_t ci,
		     struct qhca_retired *retired);
void qhca_cq_advance(struct qhca_cq *cq, uint32_t ci,
		     struct qhca_retired *retired);
enum ibv_wc_opcode qhca_cqe_wc_opcode(const struct qhca_cqe *cqe);
unsigned int qhca_cqe_wc_flags(const struct qhca_cqe *cqe);
uint8_t qhca_cqe_wc_sl(const struct qhca_cqe *cqe);

/* poll-ex.c */
void qhca_cq_set_ex(struct qhca_cq *cq, uint64_t wc_flags);

/* clock.c */
int qhca_query_rt_values(struct ibv_context *context,
			 struct ibv_values_ex *values);
uint64_t qhca_read_completion_wallclock(struct ibv_cq_ex *ibv_cq);

/* tag_matching.c */
int qhca_tm_make(struct qhca_context *ctx, struct qhca_srq *srq,
		 uint32_t max_tags, uint32_t max_ops);
void qhca_tm_free(struct qhca_tm *tm);
void qhca_tm_give_back(struct qhca_srq *srq, uint32_t handle);
int qhca_post_srq_ops(struct ibv_srq *srq, struct ibv_ops_wr *wr,
		      struct ibv_ops_wr **bad_wr);

/* srq.c */
struct ibv_srq *qhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr);
struct ibv_srq *qhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr);
int qhca_get_srq_num(struct ibv_srq *srq, uint32_t *srqn);
int qhca_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int qhca_destroy_srq(struct ibv_srq *srq);
int qhca_srq_list_init(struct qhca_srq *srq);
void qhca_srq_give_back(struct qhca_srq *srq, uint32_t number);
void qhca_srq_give_back_locked(struct qhca_srq *srq, uint32_t number);

/* qp.c */
struct ibv_qp *qhca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *qhca_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr);
int qhca_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int qhca_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int qhca_destroy_qp(struct ibv_qp *qp);
int qhca_rq_make(struct qhca_context *ctx, struct qhca_pd *parent,
		 struct qhca_rq *rq, uint32_t max_wr, uint32_t max_sge);
void qhca_qp_reset(struct qhca_qp *qp);

/* flow.c */
struct ibv_flow *qhca_create_flow(struct ibv_qp *qp,
				  struct ibv_flow_attr *attr);
int qhca_destroy_flow(struct ibv_flow *flow);

/* wq.c */
struct ibv_wq *qhca_create_wq(struct ibv_context *context,
			      struct ibv_wq_init_attr *attr);
int qhca_modify_wq(struct ibv_wq *wq, struct ibv_wq_attr *attr);
int qhca_destroy_wq(struct ibv_wq *wq);
struct ibv_rwq_ind_table *
qhca_create_rwq_ind_table(struct ibv_context *context,
			  struct ibv_rwq_ind_table_init_attr *attr);
int qhca_destroy_rwq_ind_table(struct ibv_rwq_ind_table *table);

/* xrc.c */
struct ibv_xrcd *qhca_open_xrcd(struct ibv_context *context,
				struct ibv_xrcd_init_attr *attr);
int qhca_close_xrcd(struct ibv_xrcd *xrcd);
struct ibv_qp *qhca_open_qp(struct ibv_context *context,
			    struct ibv_qp_open_attr *attr);

/* post.c */
int qhca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int qhca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);
int qhca_rq_post(struct qhca_context *ctx, struct qhca_rq *rq, uint32_t num,
		 struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int qhca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);

/* resize.c */
int qhca_resize_cq(struct ibv_cq *cq, int cqe);
int qhca_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);

/* wr.c */
int qhca_qp_set_ex(struct qhca_qp *qp, uint64_t send_ops);

#endif /* QHCA_H */
