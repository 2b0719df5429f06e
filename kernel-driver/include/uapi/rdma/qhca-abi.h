/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR Linux-OpenIB) */
/*
 * qhca-abi.h - the interface between libqhca and the qhca_ib driver, through
 * the uverbs system calls.  Host byte order; sizes are multiples of 8.
 */
#ifndef QHCA_ABI_H
#define QHCA_ABI_H

#include <linux/types.h>
#include <rdma/ib_user_ioctl_cmds.h>

#define QHCA_UVERBS_ABI_VERSION		1

/* alloc_ucontext */
struct qhca_alloc_ucontext_req {
	__aligned_u64 comp_mask;	/* 0 */
};

enum qhca_ucontext_resp_mask {
	QHCA_UCONTEXT_RESP_STATUS = 1 << 0,	/* there is a status page */
	QHCA_UCONTEXT_RESP_SQ_RECORD = 1 << 1,	/* create_qp knows sq_dbrec_addr */
};

struct qhca_alloc_ucontext_resp {
	__aligned_u64 comp_mask;	/* QHCA_UCONTEXT_RESP_* */
	__aligned_u64 db_mmap_key;	/* offset to mmap() the doorbell page */
	__u32	db_mmap_size;		/* bytes: one doorbell page */
	__u32	max_qp_wr;
	__u32	max_cqe;
	__u32	max_srq_wr;
	__u32	max_sge;
	__u32	max_inline;
	__aligned_u64 features;		/* QHCA_FEAT_* */
	/* with QHCA_UCONTEXT_RESP_STATUS; an older driver ends here */
	__aligned_u64 status_mmap_key;	/* offset to mmap() struct qhca_status_page */
	__u32	status_mmap_size;	/* bytes: one page, for reading only */
	__u32	rsvd;			/* 0 */
};

/*
 * A page of the kernel for each context, which maps it.  The only way to learn
 * without a system call that the device has died, been reset or removed, also
 * by a move to another network namespace: work without a completion by then
 * gets none.  Completions written before @works became 0 can still be polled.
 */
struct qhca_status_page {
	__u32	works;			/* 1 while the context works, 0 permanently afterwards */
	__u32	rsvd;
};

/* alloc_pd */
struct qhca_alloc_pd_resp {
	__u32	pdn;
	__u32	comp_mask;	/* 0 */
};

/* create_cq */
struct qhca_create_cq_req {
	__aligned_u64 buf_addr;		/* page aligned */
	__aligned_u64 buf_len;		/* bytes; multiple of the page size, >= depth * 64 */
	__aligned_u64 dbrec_addr;	/* struct qhca_dbrec, 8-byte aligned */
	__u32	shift;			/* log2 of the depth in the buffer */
	__u32	comp_mask;		/* 0 */
};

struct qhca_create_cq_resp {
	__u32	cqn;
	__u32	comp_mask;		/* 0 */
};

/* resize_cq: see QHCA_CQ_M_RESIZE for what driver and device do */
struct qhca_resize_cq_req {
	__aligned_u64 buf_addr;		/* page aligned */
	__aligned_u64 buf_len;		/* as in struct qhca_create_cq_req */
	__u32	shift;			/* log2 of the new depth */
	__u32	comp_mask;		/* 0 */
};

/* create_srq */
struct qhca_create_srq_req {
	__aligned_u64 buf_addr;		/* WQE array, page aligned */
	__aligned_u64 buf_len;
	__aligned_u64 idx_addr;		/* index ring, page aligned */
	__aligned_u64 idx_len;
	__aligned_u64 dbrec_addr;
	__u8	shift;			/* log2 of the depth */
	__u8	stride;			/* log2 of WQE bytes */
	__u8	rsvd[2];
	__u32	comp_mask;		/* 0 */
	/* tag matching; else 0, or absent */
	__aligned_u64 ops_addr;		/* operation ring, page aligned */
	__aligned_u64 ops_len;
	__u8	ops_shift;		/* log2 of the depth */
	__u8	ops_stride;		/* log2 of bytes of an operation */
	__u8	rsvd2[6];
};

struct qhca_create_srq_resp {
	__u32	srqn;
	__u32	comp_mask;		/* 0 */
};

/* modify_srq with IB_SRQ_MAX_WR: see QHCA_SRQ_M_RESIZE */
struct qhca_modify_srq_req {
	__aligned_u64 buf_addr;		/* WQE array, page aligned */
	__aligned_u64 buf_len;
	__aligned_u64 idx_addr;		/* index ring, page aligned */
	__aligned_u64 idx_len;
	__u8	shift;			/* log2 of the new depth */
	__u8	rsvd[3];
	__u32	comp_mask;		/* 0 */
};

/* create_qp */
struct qhca_create_qp_req {
	__aligned_u64 sq_addr;		/* page aligned; 0: no SQ */
	__aligned_u64 sq_len;
	__aligned_u64 rq_addr;		/* page aligned; 0: no RQ */
	__aligned_u64 rq_len;
	__aligned_u64 dbrec_addr;	/* RQ doorbell record; 0: no RQ */
	__aligned_u64 cookie;		/* the provider's own, shown in QPC.cookie */
	__u8	sq_shift;		/* as in struct qhca_qpc */
	__u8	sq_stride;
	__u8	rq_shift;
	__u8	rq_stride;
	__u32	comp_mask;		/* 0 */
	/* an older provider ends here; with QHCA_UCONTEXT_RESP_SQ_RECORD: */
	__aligned_u64 sq_dbrec_addr;	/* SQ doorbell record (QHCA_QP_F_SQ_RECORD), or 0 */
};

struct qhca_create_qp_resp {
	__u32	qpn;
	__u32	comp_mask;		/* 0 */
};

/* create_qp with an indirection table */
struct qhca_create_rss_qp_req {
	__aligned_u64 cookie;		/* as above */
	__u32	comp_mask;		/* 0 */
	__u32	rx_hash_fields;		/* QHCA_HASH_* */
	__u8	rx_hash_func;		/* QHCA_HASH_TOEPLITZ */
	__u8	rsvd[7];
	__u8	rx_hash_key[40];
};

/* create_wq */
struct qhca_create_wq_req {
	__aligned_u64 buf_addr;		/* page aligned */
	__aligned_u64 buf_len;
	__aligned_u64 dbrec_addr;	/* doorbell record */
	__aligned_u64 cookie;		/* the provider's own */
	__u8	shift;			/* as in struct qhca_wqc */
	__u8	stride;
	__u8	rsvd[2];
	__u32	comp_mask;		/* 0 */
};

struct qhca_create_wq_resp {
	__u32	wqn;
	__u32	comp_mask;		/* 0 */
};

/* create_ah: what the provider needs to build the address vector itself */
struct qhca_create_ah_resp {
	__u8	dmac[6];
	__u8	rsvd[2];
};

/*
 * The ioctl interface: driver-specific attributes of common methods, and
 * driver-specific methods of common objects.  *_KEY is the offset to mmap() the
 * whole object, *_SIZE its size in bytes, both __u64.
 */
enum qhca_query_context_attrs {
	QHCA_ATTR_QUERY_CONTEXT_RESP = (1U << UVERBS_ID_NS_SHIFT),	/* struct qhca_alloc_ucontext_resp */
};

enum qhca_device_methods {
	QHCA_METHOD_DEVICE_CLOCKS = (1U << UVERBS_ID_NS_SHIFT),
};

enum qhca_device_clocks_attrs {
	QHCA_ATTR_DEVICE_CLOCKS_RESP = (1U << UVERBS_ID_NS_SHIFT),	/* struct qhca_clocks */
};

/* two clocks at the same moment */
struct qhca_clocks {
	__aligned_u64 device;		/* QHCA_REG_CLOCK, ns: that of CQEs */
	__aligned_u64 real;		/* ns since 1970 */
};

enum qhca_alloc_dm_attrs {
	QHCA_ATTR_ALLOC_DM_RESP_MMAP_KEY = (1U << UVERBS_ID_NS_SHIFT),
	QHCA_ATTR_ALLOC_DM_RESP_MMAP_SIZE,
};

enum qhca_dm_methods {
	QHCA_METHOD_DM_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum qhca_dm_query_attrs {
	QHCA_ATTR_DM_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	QHCA_ATTR_DM_QUERY_RESP_MMAP_KEY,
	QHCA_ATTR_DM_QUERY_RESP_MMAP_SIZE,
	QHCA_ATTR_DM_QUERY_RESP_LENGTH,		/* __u64, bytes asked for */
};

enum qhca_pd_methods {
	QHCA_METHOD_PD_QUERY = (1U << UVERBS_ID_NS_SHIFT),
};

enum qhca_pd_query_attrs {
	QHCA_ATTR_PD_QUERY_HANDLE = (1U << UVERBS_ID_NS_SHIFT),
	QHCA_ATTR_PD_QUERY_RESP_PDN,		/* __u32 */
};

#endif /* QHCA_ABI_H */
