/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QPs on a TM SRQ: messages are matched when they arrive (tag_recv.c); large
 * ones are fetched by the device (tag_rendezvous.c).
 */
#ifndef QHCA_TAG_QP_H
#define QHCA_TAG_QP_H

#include "queues/queues.h"

/* Slots for a QP's own WQEs; a power of two within the requester's window. */
#define QHCA_TM_SLOTS       64

/* The purpose of the receive held by the QP. */
enum qhca_tm_kind {
    QHCA_TM_PLAIN,              /* none, or an RDMA WRITE's */
    QHCA_TM_NO_TAG,
    QHCA_TM_UNEXPECTED,         /* message without a match, counted in seen */
    QHCA_TM_EAGER,              /* matched entry */
    QHCA_TM_RNDV,               /* matched entry */
    QHCA_TM_INCOMPLETE          /* matched entry that is too small */
};

/* Work of the device on the send side: a READ, or the FIN after it. */
struct qhca_tm_job {
    struct qhca_tag *tag;       /* of a READ; NULL: FIN */
    bool solicited;
    uint16_t flags;             /* QHCA_TM_IMM: @imm is valid */
    uint8_t headers[QHCA_TM_HEADERS];   /* as received */
    uint32_t imm;               /* as in its last CQE */
};

/* The flags of a CQE that say what its imm is. */
#define QHCA_TM_IMM         (QHCA_CQE_F_IMM | QHCA_CQE_F_INV)

/* Tag matching state of a QP on such an SRQ. */
struct qhca_tm_qp {
    uint8_t kind;               /* enum qhca_tm_kind */
    bool told;                  /* a CQE with MATCH has been written */
    uint32_t reads;             /* READs; each will need a slot for its FIN */
    struct qhca_tag *tag;       /* the entry held */
    uint8_t headers[QHCA_TM_HEADERS];
    struct qhca_tm_job job[QHCA_TM_SLOTS];  /* by SQ counter */
};

/* ---- tag_recv.c ---- */
/*
 * The first packet of a SEND arrived: match the message and take a receive WQE
 * or a tag entry for it.  *@data and *@len get the part of the packet to
 * scatter.  Returns QHCA_SYN_NONE, QHCA_SYN_RNR, or an error.
 */
uint8_t qhca_tm_recv_start(struct qhca *e, struct qhca_qp *qp,
                           const uint8_t **data, uint32_t *len,
                           bool whole);
/*
 * The first packet was scattered and more will follow: report an eager match.
 * False: the CQ failed and the QP is in ERR.
 */
bool qhca_tm_recv_more(struct qhca *e, struct qhca_qp *qp);
/* Complete a message; the caller has set its own fields in @cqe. */
void qhca_tm_recv_done(struct qhca *e, struct qhca_qp *qp,
                       struct qhca_cqe *cqe, bool solicited);
/* Fill in @cqe for what the QP holds, and release that. */
void qhca_tm_recv_cqe(struct qhca_qp *qp, struct qhca_cqe *cqe);

/* ---- tag_rendezvous.c ---- */
/* Set up @qp for a TM SRQ; false: out of memory. */
bool qhca_tm_qp_init(struct qhca_qp *qp);
/* Release all entries of the QP.  @tell: with CQEs; else none are written. */
void qhca_tm_qp_drop(struct qhca *e, struct qhca_qp *qp, bool tell);
/* Free the tag matching state of @qp. */
void qhca_tm_qp_free(struct qhca_qp *qp);
/* Can one more rendezvous be started? */
bool qhca_tm_rndv_room(const struct qhca_qp *qp);
/*
 * Start a READ into the entry held, as described by the headers in qp->tm;
 * @cqe has what the request came with.
 */
void qhca_tm_rndv_start(struct qhca *e, struct qhca_qp *qp,
                        const struct qhca_cqe *cqe, bool solicited);
/* Build send WQE @index, which is not in a ring. */
void qhca_tm_wqe(const struct qhca_qp *qp, uint32_t index, void *wqe);
/*
 * Send WQE @index completed with @status.  False: a CQE could not be written.
 */
bool qhca_tm_sent(struct qhca *e, struct qhca_qp *qp, uint32_t index,
                  uint8_t status, uint8_t syndrome);

#endif /* QHCA_TAG_QP_H */
