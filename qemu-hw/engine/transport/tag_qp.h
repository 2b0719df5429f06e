/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QPs on a tag matching SRQ: messages are matched when they arrive
 * (tag_recv.c); large ones are fetched by the device (tag_rendezvous.c).
 */
#ifndef QHCA_TAG_QP_H
#define QHCA_TAG_QP_H

#include "queues/tags.h"

/* Slots of a QP's own work, a power of two within the requester's window. */
#define QHCA_TM_SLOTS       64

/* What the receive WQE is that a QP holds. */
enum qhca_tm_kind {
    QHCA_TM_PLAIN,              /* none, or of an RDMA WRITE */
    QHCA_TM_NO_TAG,
    QHCA_TM_UNEXPECTED,         /* counted in seen */
    QHCA_TM_EAGER,              /* an entry */
    QHCA_TM_RNDV,               /* an entry */
    QHCA_TM_INCOMPLETE          /* an entry that is too small */
};

/* Work of the device on the send side: a READ or the FIN behind it. */
struct qhca_tm_job {
    struct qhca_tag *tag;       /* READ; FIN: NULL */
    bool solicited;
    uint8_t headers[QHCA_TM_HEADERS];   /* as they came */
};

/* Of a QP on such an SRQ. */
struct qhca_tm_qp {
    uint8_t kind;               /* enum qhca_tm_kind */
    bool told;                  /* the CQE with MATCH has been written */
    uint32_t reads;             /* each will need a slot for its FIN */
    struct qhca_tag *tag;       /* the entry held */
    uint8_t headers[QHCA_TM_HEADERS];
    struct qhca_tm_job job[QHCA_TM_SLOTS];  /* by SQ counter */
};

/* ---- tag_recv.c ---- */
/*
 * The first packet of a SEND has come: find out where the message goes and
 * hold a receive WQE or an entry for it.  *@data and *@len get what is to be
 * scattered of the packet.  QHCA_SYN_NONE, QHCA_SYN_RNR, or an error.
 */
uint8_t qhca_tm_recv_start(struct qhca *e, struct qhca_qp *qp,
                           const uint8_t **data, uint32_t *len,
                           bool whole);
/*
 * The first packet was scattered: tell a match whose message goes on.  False:
 * the CQ took it not, the QP is in ERR.
 */
bool qhca_tm_recv_more(struct qhca *e, struct qhca_qp *qp);
/* The message is complete; @cqe has the caller's own fields. */
void qhca_tm_recv_done(struct qhca *e, struct qhca_qp *qp,
                       struct qhca_cqe *cqe, bool solicited);
/* Make @cqe that of what the QP holds, which it then does no more. */
void qhca_tm_recv_cqe(struct qhca_qp *qp, struct qhca_cqe *cqe);

/* ---- tag_rendezvous.c ---- */
/* Make the QP one of a TM SRQ; false: no memory. */
bool qhca_tm_qp_init(struct qhca_qp *qp);
/*
 * Give up all entries the QP has.  @tell: with CQEs; else nothing is written.
 */
void qhca_tm_qp_drop(struct qhca *e, struct qhca_qp *qp, bool tell);
void qhca_tm_qp_free(struct qhca_qp *qp);
/* Is there room for one more rendezvous? */
bool qhca_tm_rndv_room(const struct qhca_qp *qp);
/* READ into the entry, as the headers in qp->tm say. */
void qhca_tm_rndv_start(struct qhca *e, struct qhca_qp *qp, bool solicited);
/* The send WQE with counter @index, as if it lay in a ring. */
void qhca_tm_wqe(const struct qhca_qp *qp, uint32_t index, void *wqe);
/*
 * That WQE is done, with @status.  False: a CQE could not be written.
 */
bool qhca_tm_sent(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                  uint8_t status, uint8_t syndrome);

#endif /* QHCA_TAG_QP_H */
