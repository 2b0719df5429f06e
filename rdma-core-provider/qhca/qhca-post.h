/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Posting of work requests.
 */
#ifndef QHCA_POST_H
#define QHCA_POST_H

#include <stdint.h>

#include <infiniband/verbs.h>

struct qhca_context;
struct qhca_qp;
struct qhca_rq;

/* post.c */
int qhca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr,
		   struct ibv_send_wr **bad_wr);
int qhca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr,
		   struct ibv_recv_wr **bad_wr);
int qhca_rq_post(struct qhca_context *ctx, struct qhca_rq *rq, uint32_t num,
		 struct ibv_recv_wr *wr, struct ibv_recv_wr **bad_wr);
int qhca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr,
		       struct ibv_recv_wr **bad_wr);

/* wr.c */
int qhca_qp_set_ex(struct qhca_qp *qp, uint64_t send_ops);

#endif /* QHCA_POST_H */
