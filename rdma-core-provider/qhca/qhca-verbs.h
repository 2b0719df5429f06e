/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Functions that create, modify and destroy objects, file by file; qhca.c has
 * the table of verbs.
 */
#ifndef QHCA_VERBS_H
#define QHCA_VERBS_H

#include <stddef.h>
#include <stdint.h>

#include <infiniband/driver.h>
#include <infiniband/verbs.h>

struct qhca_context;
struct qhca_pd;
struct qhca_qp;
struct qhca_rq;

/* ah.c */
struct ibv_ah *qhca_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int qhca_destroy_ah(struct ibv_ah *ah);

/* cq.c */
struct ibv_cq *qhca_create_cq(struct ibv_context *context, int cqe,
			      struct ibv_comp_channel *channel,
			      int comp_vector);
struct ibv_cq_ex *qhca_create_cq_ex(struct ibv_context *context,
				    struct ibv_cq_init_attr_ex *attr);
int qhca_modify_cq(struct ibv_cq *cq, struct ibv_modify_cq_attr *attr);
int qhca_destroy_cq(struct ibv_cq *cq);

/* dm.c */
struct ibv_dm *qhca_alloc_dm(struct ibv_context *context,
			     struct ibv_alloc_dm_attr *attr);
int qhca_free_dm(struct ibv_dm *dm);
struct ibv_dm *qhca_import_dm(struct ibv_context *context, uint32_t handle);
void qhca_unimport_dm(struct ibv_dm *dm);
struct ibv_mr *qhca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm,
			      uint64_t offset, size_t length,
			      unsigned int access);

/* flow.c */
struct ibv_flow *qhca_create_flow(struct ibv_qp *qp,
				  struct ibv_flow_attr *attr);
int qhca_destroy_flow(struct ibv_flow *flow);

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

/* qp.c */
struct ibv_qp *qhca_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *qhca_create_qp_ex(struct ibv_context *context,
				 struct ibv_qp_init_attr_ex *attr);
int qhca_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int qhca_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init_attr);
int qhca_destroy_qp(struct ibv_qp *qp);
/* also for WQs */
int qhca_rq_make(struct qhca_context *ctx, struct qhca_pd *parent,
		 struct qhca_rq *rq, uint32_t max_wr, uint32_t max_sge);
void qhca_qp_reset(struct qhca_qp *qp);

/* resize.c */
int qhca_resize_cq(struct ibv_cq *cq, int cqe);
int qhca_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);

/* srq.c */
struct ibv_srq *qhca_create_srq(struct ibv_pd *pd,
				struct ibv_srq_init_attr *attr);
struct ibv_srq *qhca_create_srq_ex(struct ibv_context *context,
				   struct ibv_srq_init_attr_ex *attr);
int qhca_get_srq_num(struct ibv_srq *srq, uint32_t *srqn);
int qhca_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int qhca_destroy_srq(struct ibv_srq *srq);

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

#endif /* QHCA_VERBS_H */
