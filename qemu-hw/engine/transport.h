/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transport's half of the engine: RoCEv2 packets, requester, responder,
 * UD, timers, loopback.  Included by internal.h.
 */
#ifndef QHCA_TRANSPORT_H
#define QHCA_TRANSPORT_H

/* The transport's part of a QP. */
struct qhca_xport {
    uint32_t snd_psn, una_psn, exp_psn, msn;
};

/* The transport's part of the adapter. */
struct qhca_xport_dev {
    uint8_t unused;
};

struct qhca;
struct qhca_qp;
struct qhca_qpc;

/* Called by the object side: */

bool qhca_xport_dev_init(struct qhca *e);   /* false: no memory */
void qhca_xport_dev_free(struct qhca *e);
/** Forget all frames under way, timers, loopback (adapter reset). */
void qhca_xport_dev_reset(struct qhca *e);

/** QP made (state RESET) or about to vanish (give back everything). */
bool qhca_xport_init(struct qhca *e, struct qhca_qp *qp);
void qhca_xport_free(struct qhca *e, struct qhca_qp *qp);
/**
 * The QP went from @old to qp->state by a command, attributes are in place:
 * start, stop or clear the machines.
 */
void qhca_xport_state(struct qhca *e, struct qhca_qp *qp, uint8_t old);
/** qp->state became ERR or SQE: stop timers, flush what must be flushed. */
void qhca_xport_error(struct qhca *e, struct qhca_qp *qp);
/** Doorbell: qp->sq_head moved (checked). QP may be in ERR: flush. */
void qhca_xport_sq_doorbell(struct qhca *e, struct qhca_qp *qp);
/** QHCA_DB_RQ: in ERR flush the receives posted since. */
void qhca_xport_rq_doorbell(struct qhca *e, struct qhca_qp *qp);
/**
 * Do work of one QP: owed ACKs and READ responses first, then requests.
 * Sends at most *@budget packets and takes them off it.  Returns true if
 * there is more to do right now (stay on the ready list).
 */
bool qhca_xport_run(struct qhca *e, struct qhca_qp *qp, unsigned *budget);
/**
 * A frame from the wire or from loopback: true if it was a RoCEv2 packet for a
 * GID of ours and has been dealt with (also if dropped); false: it is the
 * Ethernet function's.
 */
bool qhca_roce_rx(struct qhca *e, const uint8_t *frame, size_t len);
/** Deliver frames sent to ourselves, at most @budget; returns how many. */
unsigned qhca_loopback_run(struct qhca *e, unsigned budget);
bool qhca_loopback_pending(struct qhca *e);
/** Earliest deadline of any QP, UINT64_MAX: none. */
uint64_t qhca_xport_deadline(struct qhca *e);
/** Handle QPs whose deadline has passed, a bounded batch. */
void qhca_xport_timer(struct qhca *e, uint64_t now);
/** Fill the read-only transport fields of @out. */
void qhca_xport_query(struct qhca *e, struct qhca_qp *qp,
                      struct qhca_qpc *out);

#endif /* QHCA_TRANSPORT_H */
