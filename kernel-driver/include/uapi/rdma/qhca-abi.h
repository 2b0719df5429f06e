/* SPDX-License-Identifier: (GPL-2.0 OR Linux-OpenIB) */
/*
 * qhca-abi.h - what libqhca and the qhca_ib driver say to each other through
 * the uverbs system calls.  Host byte order; sizes are multiples of 8.
 */
#ifndef QHCA_ABI_H
#define QHCA_ABI_H

#include <linux/types.h>

#define QHCA_UVERBS_ABI_VERSION		1

/* alloc_ucontext */
struct qhca_alloc_ucontext_req {
	__aligned_u64 comp_mask;	/* 0 */
};

struct qhca_alloc_ucontext_resp {
	__aligned_u64 comp_mask;	/* 0 */
	__aligned_u64 db_mmap_key;	/* offset to mmap() the doorbell page */
	__u32	db_mmap_size;		/* bytes: one doorbell page */
	__u32	max_qp_wr;
	__u32	max_cqe;
	__u32	max_srq_wr;
	__u32	max_sge;
	__u32	max_inline;
	__aligned_u64 features;		/* QHCA_FEAT_* */
};

/* alloc_pd */
struct qhca_alloc_pd_resp {
	__u32	pdn;
	__u32	rsvd;
};

/* create_cq */
struct qhca_create_cq_req {
	__aligned_u64 buf_addr;		/* page aligned */
	__aligned_u64 buf_len;		/* bytes; multiple of the page size, >= depth * 64 */
	__aligned_u64 db_addr;		/* struct qhca_dbrec, 8-byte aligned */
	__u32	shift;			/* log2 of the depth in the buffer */
	__u32	comp_mask;		/* 0 */
};

struct qhca_create_cq_resp {
	__u32	cqn;
	__u32	comp_mask;		/* 0 */
};

/* create_srq */
struct qhca_create_srq_req {
	__aligned_u64 buf_addr;		/* WQE array, page aligned */
	__aligned_u64 buf_len;
	__aligned_u64 idx_addr;		/* index ring, page aligned */
	__aligned_u64 idx_len;
	__aligned_u64 db_addr;
	__u8	shift;			/* log2 of the depth */
	__u8	stride;			/* log2 of WQE bytes */
	__u8	rsvd[2];
	__u32	comp_mask;		/* 0 */
};

struct qhca_create_srq_resp {
	__u32	srqn;
	__u32	comp_mask;		/* 0 */
};

/* create_qp */
struct qhca_create_qp_req {
	__aligned_u64 sq_addr;		/* page aligned; 0: no SQ */
	__aligned_u64 sq_len;
	__aligned_u64 rq_addr;		/* page aligned; 0: no RQ */
	__aligned_u64 rq_len;
	__aligned_u64 db_addr;		/* RQ doorbell record; 0: no RQ */
	__aligned_u64 cookie;		/* the provider's own, shown in QPC.cookie */
	__u8	sq_shift;		/* as in struct qhca_qpc */
	__u8	sq_stride;
	__u8	rq_shift;
	__u8	rq_stride;
	__u32	comp_mask;		/* 0 */
};

struct qhca_create_qp_resp {
	__u32	qpn;
	__u32	comp_mask;		/* 0 */
};

/* create_ah: what the provider needs to build the address vector itself */
struct qhca_create_ah_resp {
	__u8	dmac[6];
	__u8	rsvd[2];
};

#endif /* QHCA_ABI_H */
