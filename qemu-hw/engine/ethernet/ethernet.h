/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet function: its queues and port, raw packet QPs, flow steering,
 * RSS.
 */
#ifndef QHCA_ETHERNET_H
#define QHCA_ETHERNET_H

#include "transport/transport.h"
#include "ethernet/eth_lso.h"
#include "ethernet/eth_wqe.h"
#include "ethernet/gro.h"
#include "ethernet/shaper.h"
#include "ethernet/steer.h"
#include "ethernet/super_frame.h"

struct qhca_eth_frame;          /* flow.h */

/* Room for a super-frame with VLAN tag and trailer. */
#define QHCA_ETH_FRAME_BUF  (QHCA_ETH_HLEN + QHCA_VLAN_HLEN +           \
                             QHCA_ETH_SUPER_IP_MAX + QHCA_SUPER_TRAILER)

struct qhca_eth_q {
    uint32_t num;
    struct qhca_event_src ev;
    struct qhca_cq *cq;
    struct qhca_wqe_ring ring;
    struct qhca_wqe_ring data;  /* with QHCA_ETH_Q_F_HDS: of payload */
    bool is_sq;
    uint8_t flags;              /* QHCA_ETH_Q_F_* */
    uint8_t state;              /* QHCA_WQS_*; an SQ is never in RESET */
    uint8_t syndrome;           /* in ERR: why */
    uint32_t hds_thresh;
    uint32_t users;             /* RQ: entries of RQTs that refer to it */
    uint64_t dropped;           /* RQ: see struct qhca_eth_qc */
    struct qhca_turn turn;      /* SQ: ready while it has work */
    struct qhca_lso lso;        /* SQ: the WQE at the tail, if large */
};

/* A receive queue that belongs to no QP: RSS spreads frames over many. */
struct qhca_wq {
    struct qhca_qpn_owner owner;
    uint32_t wqn;
    struct qhca_event_src ev;
    uint8_t state;              /* QHCA_WQS_* */
    uint8_t flags;              /* QHCA_WQ_F_* */
    uint8_t syndrome;           /* in ERR: why */
    uint32_t pd, uar;
    struct qhca_cq *cq;
    struct qhca_wqe_ring ring;
    struct qhca_recv recv;
    uint64_t cookie, rx_packets;
    uint32_t users;             /* entries of RQTs that refer to it */
    struct qhca_list flush;     /* in ERR, with WQEs: in e->eth->wq_flush */
};

/* This layer's part of the adapter. */
struct qhca_ethernet {
    struct qhca_idr eth_sqs, eth_rqs;
    struct qhca_list eth_ready; /* turns of the port's members with work */
    struct qhca_idr shapers;
    struct qhca_shaper_waits shaper_waits;
    struct qhca_flows *flows;   /* flow.c; NULL if there are no rules */
    struct qhca_idr flow_idr;
    struct qhca_idr rqts;
    struct qhca_list wq_flush;  /* WQs whose WQEs are to be flushed */
    /* port */
    bool promisc, allmulti;
    bool loopback;              /* sent frames are received */
    bool pause_rx;              /* PAUSE frames are obeyed */
    uint32_t eth_rqn;
    struct qhca_qp *eth_qp;     /* RSS QP in place of eth_rqn, or NULL */
    uint64_t mc_hash[QHCA_HASH_SLOTS];      /* addresses, 0: none */
    /* frame being built, behind room for a tag that is inserted */
    uint8_t eth_frame[QHCA_VLAN_HLEN + QHCA_ETH_FRAME_BUF];
    uint8_t cut[QHCA_ETH_MAX_FRAME];        /* frame out of a super-frame */
    uint8_t merged[QHCA_ETH_FRAME_BUF];     /* merged packet to deliver */
    struct qhca_gro gro;
};

/* Do frames of the Ethernet function wait for the wire? */
static inline bool qhca_eth_blocked(const struct qhca *e)
{
    return e->tx_blocked && !e->eth->loopback;
}

/* ---- QP types of this layer ---- */
extern const struct qhca_qp_ops qhca_raw_qp_ops;
extern const struct qhca_qp_ops qhca_rss_qp_ops;

/* ---- eth_q.c ---- */
void qhca_eth_q_free(struct qhca *e, struct qhca_eth_q *q);
/**
 * The first field of struct qhca_eth_qc that is out of range in @q, as an
 * offset; 0: none.  Buffers, CQ and state are not checked.
 */
size_t qhca_eth_q_bad(const struct qhca *e, const struct qhca_eth_q *q);
/** Fill in the context of @q; *@out is zeroed. */
void qhca_eth_q_query(const struct qhca_eth_q *q, struct qhca_eth_qc *out);
/* Move the queue to ERR and report why to software (QHCA_SYN_*). */
void qhca_eth_q_fail(struct qhca *e, struct qhca_eth_q *q, uint8_t syndrome);

/* Trace that bytes of a frame were read or written at @addr. */
void qhca_eth_trace_data(struct qhca *e, const struct qhca_eth_q *q,
                         uint64_t addr, size_t len, bool write);

/* ---- port.c ---- */
bool qhca_mac_accept(struct qhca *e, const uint8_t *dmac);
/* Set the multicast filter to @n <= QHCA_MC_LIST_MAX group addresses. */
void qhca_mc_set(struct qhca *e, const struct qhca_mac *in, unsigned n);
/* Restore the reset values. */
void qhca_port_reset(struct qhca *e);
/* May RQ @rqn (QHCA_ETH_RQ_NONE: none), or @qp, receive for the port? */
bool qhca_port_rq_ok(const struct qhca *e, uint32_t rqn);
bool qhca_port_qp_ok(const struct qhca_qp *qp);
/* Let @qp, for which qhca_port_qp_ok() holds, or NULL receive for the port. */
void qhca_port_set_qp(struct qhca *e, struct qhca_qp *qp);

/* ---- eth_rx.c, eth_tx.c ---- */
/**
 * Receive a parsed frame that is not RoCE, from the wire or sent by one of our
 * raw packet QPs to the port: rules may take it, then the port.
 */
void qhca_eth_rx(struct qhca *e, struct qhca_eth_frame *f);
/** Offer the rules a parsed frame that our raw packet QP sent to a group. */
void qhca_eth_rx_own(struct qhca *e, struct qhca_eth_frame *f);
/** Receive a frame, with its trailer, that we send to ourselves. */
void qhca_eth_loop(struct qhca *e, const uint8_t *frame, size_t len);
/*
 * Send at most @budget frames of Ethernet queues; returns frames sent.  A
 * super-frame counts as many frames as its bytes would fill, and may exceed
 * @budget.
 */
unsigned qhca_eth_run(struct qhca *e, unsigned budget);
/* The SQ @q has work: it takes its turn, unless it does so already. */
void qhca_eth_wake(struct qhca *e, struct qhca_eth_q *q);
/* Is @w a WQE that @q may hold?  If not, sets *@f.  Reads no data. */
bool qhca_eth_tx_check(const struct qhca_eth_q *q,
                       const struct qhca_eth_tx_wqe *w,
                       struct qhca_eth_failure *f);

/* ---- eth_gro.c ---- */
/**
 * Before commands: deliver all that is held.  False: this call of the engine
 * has reached its cost limit, and some of it is still held.
 */
bool qhca_gro_flush(struct qhca *e);
/** Deliver what has been held for long enough; to end each run. */
void qhca_gro_run(struct qhca *e);
/** Drop what is held for @q, which has stopped, and count it. */
void qhca_gro_stop(struct qhca *e, struct qhca_eth_q *q);
/** Forget all that is held. */
void qhca_gro_forget(struct qhca *e);
/** Is anything held that the next run delivers? */
bool qhca_gro_pending(const struct qhca *e);
/** When qhca_gro_run() is needed, in ns; UINT64_MAX: never. */
uint64_t qhca_gro_deadline(struct qhca *e);

/* ---- wq.c ---- */
/* The WQ with number @wqn, or NULL. */
static inline struct qhca_wq *qhca_wq_get(struct qhca *e, uint32_t wqn)
{
    struct qhca_qpn_owner *o = qhca_idr_get(&e->q->qps, wqn);

    return o && o->is_wq ? qhca_container(o, struct qhca_wq, owner) : NULL;
}
/** Could commands have made @wq?  Its ring has no buffer yet. */
bool qhca_wq_valid(struct qhca *e, const struct qhca_wq *wq);
/* Take the references of a new WQ with a number. */
void qhca_wq_attach(struct qhca *e, struct qhca_wq *wq);
/** QHCA_DB_RQ: in ERR, flush the receives posted since. */
void qhca_wq_doorbell(struct qhca *e, struct qhca_wq *wq);
/** Is there a WQE to flush? */
static inline bool qhca_wqs_pending(const struct qhca *e)
{
    return !qhca_list_empty(&e->eth->wq_flush);
}
/**
 * Flush at most @budget WQEs; returns how many.  A WQ without any counts as 1.
 */
unsigned qhca_wqs_flush(struct qhca *e, unsigned budget);

/* ---- commands ---- */
/* port.c */
qhca_cmd_fn qhca_cmd_query_port, qhca_cmd_modify_port, qhca_cmd_set_mc_list;
/* flow.c */
qhca_cmd_fn qhca_cmd_create_flow, qhca_cmd_destroy_flow;
/* rss.c, wq.c */
qhca_cmd_fn qhca_cmd_create_rqt, qhca_cmd_destroy_rqt;
qhca_cmd_fn qhca_cmd_create_wq, qhca_cmd_modify_wq, qhca_cmd_destroy_wq;
qhca_cmd_fn qhca_cmd_query_wq;
/* eth_q.c */
qhca_cmd_fn qhca_cmd_create_eth_sq, qhca_cmd_destroy_eth_sq;
qhca_cmd_fn qhca_cmd_query_eth_sq;
qhca_cmd_fn qhca_cmd_modify_eth_sq;
qhca_cmd_fn qhca_cmd_create_eth_rq, qhca_cmd_destroy_eth_rq;
qhca_cmd_fn qhca_cmd_modify_eth_rq, qhca_cmd_query_eth_rq;
/* shaper.c */
qhca_cmd_fn qhca_cmd_create_shaper, qhca_cmd_destroy_shaper;
qhca_cmd_fn qhca_cmd_modify_shaper, qhca_cmd_query_shaper;
/* Destroy object @num, which nothing refers to; false: there is none. */
bool qhca_flow_discard(struct qhca *e, uint32_t num);
bool qhca_rqt_discard(struct qhca *e, uint32_t num);
bool qhca_wq_discard(struct qhca *e, uint32_t num);
bool qhca_eth_sq_discard(struct qhca *e, uint32_t num);
bool qhca_eth_rq_discard(struct qhca *e, uint32_t num);
bool qhca_shaper_discard(struct qhca *e, uint32_t num);
/* Take shaper @num out of others; false: there is none. */
bool qhca_shaper_isolate(struct qhca *e, uint32_t num);

/* ---- saved state ---- */
void qhca_io_eth_qs(struct qhca_io *io);
void qhca_io_shapers(struct qhca_io *io);
void qhca_io_port(struct qhca_io *io);
void qhca_io_gro(struct qhca_io *io);
void qhca_io_wqs(struct qhca_io *io);
/* Older states contain WQs as QPs of a special type: convert them. */
void qhca_io_wqs_of_qps(struct qhca_io *io);
extern const struct qhca_qp_ops qhca_saved_wq_ops;
void qhca_io_rqts(struct qhca_io *io);
void qhca_io_flows(struct qhca_io *io);

#endif /* QHCA_ETHERNET_H */
