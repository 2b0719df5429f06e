/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Polling and arming of completion queues.
 */
#ifndef QHCA_POLL_H
#define QHCA_POLL_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

#include <infiniband/verbs.h>
#include <rdma/qhca-hw.h>

struct qhca_cq;
struct qhca_qp;
struct qhca_srq;

/* poll.c */
int qhca_poll_cq(struct ibv_cq *cq, int num, struct ibv_wc *wc);
int qhca_req_notify_cq(struct ibv_cq *cq, int solicited_only);

/* The sender of a UD receive; others 0. */
static inline uint32_t qhca_cqe_src_qp(const struct qhca_cqe *cqe)
{
	if ((le16toh(cqe->flags) & QHCA_CQE_F_SRQN) ||
	    cqe->opcode == QHCA_CQE_OP_RAW_RECV)
		return 0;
	return le32toh(cqe->src_qpn);
}

/* WQEs whose CQEs were read, until they are returned to their queues. */
struct qhca_retired {
	struct qhca_qp		*qp;		/* sq, rq */
	struct qhca_srq		*srq;		/* NULL: no SRQ */
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

#endif /* QHCA_POLL_H */
