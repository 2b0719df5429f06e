/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet function: its queues and port, raw packet QPs, flow steering,
 * RSS.
 */
#ifndef QHCA_ETHERNET_H
#define QHCA_ETHERNET_H

#include "transport/roce.h"

#define QHCA_ETH_FRAME_BUF  (QHCA_ETH_MAX_FRAME + 8)

struct qhca_eth_q {
    uint32_t num;
    struct qhca_event_src ev;
    struct qhca_cq *cq;
    struct qhca_table buf;
    uint64_t dbrec;
    uint8_t shift, stride;
    uint32_t head, tail;
    bool is_sq;
    bool dead;                  /* its CQ or its ring failed */
    struct qhca_list ready;     /* SQ with work: in e->eth->eth_ready */
};

/* This layer's part of the adapter. */
struct qhca_ethernet {
    struct qhca_idr eth_sqs, eth_rqs;
    struct qhca_list eth_ready; /* send queues with work */
    struct qhca_flows *flows;   /* flow.c; NULL if there are no rules */
    struct qhca_idr flow_table, rqts;
    /* port */
    bool promisc, allmulti;
    uint32_t eth_rqn;
    uint64_t mc_hash[QHCA_HASH_SLOTS];      /* addresses, 0: none */
    uint8_t eth_frame[QHCA_ETH_FRAME_BUF];  /* frame being built or parsed */
};

/* ---- QP types of this layer ---- */
extern const struct qhca_qp_ops qhca_raw_qp_ops, qhca_rss_qp_ops;
extern const struct qhca_qp_ops qhca_wq_ops;

/* ---- eth_q.c ---- */
void qhca_eth_q_free(struct qhca *e, struct qhca_eth_q *q);
/* Stop the queue for good and report why to software (QHCA_SYN_*). */
void qhca_eth_q_fail(struct qhca *e, struct qhca_eth_q *q, uint8_t syndrome);

/* ---- port.c ---- */
bool qhca_mac_accept(struct qhca *e, const uint8_t *dmac);
/* Set the multicast filter to @n <= QHCA_MC_LIST_MAX group addresses. */
void qhca_mc_set(struct qhca *e, const struct qhca_mac *in, unsigned n);
/* Restore the reset values. */
void qhca_port_reset(struct qhca *e);

/* ---- eth_rx.c, eth_tx.c ---- */
void qhca_eth_rx(struct qhca *e, const uint8_t *frame, size_t len);
/* Send at most @budget frames of Ethernet queues; returns frames sent. */
unsigned qhca_eth_run(struct qhca *e, unsigned budget);

/* ---- flow.c ---- */
/**
 * Steer a non-RoCE frame, from the wire or (@own) sent to a group by one of our
 * QPs, to the QPs that the rules name.  Returns true if a rule took it, false
 * if it goes to the Ethernet function.  Requires e->eth->flows.
 */
bool qhca_flow_rx(struct qhca *e, const uint8_t *frame, size_t len, bool own);

/* ---- commands ---- */
/* port.c */
qhca_cmd_fn qhca_cmd_query_port, qhca_cmd_modify_port, qhca_cmd_set_mc_list;
/* flow.c */
qhca_cmd_fn qhca_cmd_create_flow, qhca_cmd_destroy_flow;
/* rss.c, rwq.c */
qhca_cmd_fn qhca_cmd_create_rqt, qhca_cmd_destroy_rqt;
qhca_cmd_fn qhca_cmd_create_wq, qhca_cmd_modify_wq, qhca_cmd_destroy_wq;
qhca_cmd_fn qhca_cmd_query_wq;
/* eth_q.c */
qhca_cmd_fn qhca_cmd_create_eth_sq, qhca_cmd_destroy_eth_sq;
qhca_cmd_fn qhca_cmd_create_eth_rq, qhca_cmd_destroy_eth_rq;
/* Destroy all objects of a kind; nothing may refer to them. */
void qhca_flows_free(struct qhca *e);
void qhca_rqts_free(struct qhca *e);
void qhca_eth_qs_free(struct qhca *e);

/* ---- saved state ---- */
void qhca_io_eth(struct qhca_io *io);
void qhca_io_rqts(struct qhca_io *io);
void qhca_io_flows(struct qhca_io *io);

#endif /* QHCA_ETHERNET_H */
