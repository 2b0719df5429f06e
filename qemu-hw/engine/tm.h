/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tag matching: an SRQ with QHCA_SRQ_F_TM has a list of tags with buffers
 * (tm_list.c), changed by operations from a ring (tm_ops.c).  Messages are
 * matched when they arrive (tm_recv.c); large ones are fetched by the device
 * (tm_rndv.c).
 */
#ifndef QHCA_TM_H
#define QHCA_TM_H

#include "internal.h"

/* Entries of all lists together: bounds what guests can make us keep. */
#define QHCA_TM_TOTAL_TAGS  262144
/* Slots of a QP's own work, a power of two within the requester's window. */
#define QHCA_TM_SLOTS       64
#define QHCA_TM_NONE        0xffff

#define QHCA_TM_HEADERS     (sizeof(struct qhca_tmh) + \
                             sizeof(struct qhca_rvh))

enum qhca_tag_state {
    QHCA_TAG_FREE,
    QHCA_TAG_LISTED,
    QHCA_TAG_TAKEN              /* its message is being received */
};

struct qhca_tag {
    uint64_t tag, mask, wr_id;
    uint32_t handle;
    uint32_t cap;               /* bytes of the buffer, at most UINT32_MAX */
    uint16_t prev, next;        /* in the list; QHCA_TM_NONE */
    uint8_t state;              /* enum qhca_tag_state */
    uint8_t num_sge;
    struct qhca_sge sge[QHCA_TM_MAX_SGE];   /* as in memory */
};

/* Of an SRQ. */
struct qhca_tm {
    struct qhca_srq *srq;
    struct qhca_list work;      /* in e->tm_work: operations to execute */
    struct qhca_buf_map ops;
    uint8_t ops_shift, ops_stride;
    uint32_t ops_head, ops_tail;
    uint32_t max_tags, count;   /* count: in the list */
    uint16_t first, last;
    uint16_t inactive;          /* the first inactive one: none behind it is */
    uint32_t seen, told;        /* unexpected messages */
    struct qhca_tag tags[];
};

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

/* ---- tm_list.c ---- */
/*
 * Make the list of @srq as @in says.  QHCA_ST_*; *@bad gets the offset of a
 * field that is wrong.
 */
uint8_t qhca_tm_create(struct qhca *e, struct qhca_srq *srq,
                       const struct qhca_srqc *in, size_t *bad);
void qhca_tm_free(struct qhca *e, struct qhca_srq *srq);
void qhca_tm_query(const struct qhca_srq *srq, struct qhca_srqc *out);
/* Append the entry with number @num, which is free and filled in. */
void qhca_tm_append(struct qhca_tm *tm, uint16_t num);
/* Take an entry out of the list. */
void qhca_tm_unlink(struct qhca_tm *tm, struct qhca_tag *t);
/* The oldest active entry that @tag matches, or NULL. */
struct qhca_tag *qhca_tm_match(struct qhca_tm *tm, uint64_t tag);
/* The counts may be equal now. */
static inline void qhca_tm_sync(struct qhca_tm *tm)
{
    if (tm->seen == tm->told) {
        tm->inactive = QHCA_TM_NONE;
    }
}

/* ---- tm_ops.c ---- */
/* QHCA_DB_TM: @index is the producer index of the operation ring. */
void qhca_tm_doorbell(struct qhca *e, struct qhca_srq *srq, uint32_t index);
/* Execute operations that wait, at most @budget; returns how many. */
unsigned qhca_tm_run(struct qhca *e, unsigned budget);

/* ---- tm_recv.c ---- */
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

/* ---- tm_rndv.c ---- */
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

#endif /* QHCA_TM_H */
