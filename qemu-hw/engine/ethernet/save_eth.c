/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state: Ethernet queues and the port. */
#include <stdlib.h>

#include "ethernet/ethernet.h"

static void save_eth_q(struct qhca_io *io, struct qhca_eth_q *obj, bool is_sq)
{
    struct qhca_eth_q tmp = { .is_sq = is_sq }, *q = obj ? obj : &tmp;
    struct qhca *e = io->e;

    IO(io, q->num);
    qhca_io_about(io, is_sq ? "Ethernet SQ" : "Ethernet RQ", q->num);
    q->cq = qhca_io_must_ref(io, &e->q->cqs, q->cq ? q->cq->cqn : 0,
                             "its CQ does not exist");
    IO(io, q->flags);
    IO(io, q->state);
    IO(io, q->syndrome);
    IO(io, q->hds_thresh);
    IO(io, q->dropped);
    qhca_io_ring(io, &q->ring, true);
    qhca_io_ring(io, &q->data, q->flags & QHCA_ETH_Q_F_HDS);
    NEED(io, !qhca_eth_q_bad(e, q) && q->data.stride == 4,
         "no command could have created it");
    NEED(io, q->state <= QHCA_WQS_ERR && (!is_sq || q->state),
         "its state is unknown");
    NEED(io, q->state || !(q->ring.head | q->ring.tail | q->data.head |
                           q->data.tail), "it is not as after a reset");
    if (is_sq) {
        qhca_io_lso(io, q);
    }
    if (io->saving || io->failed) {
        return;
    }
    q = malloc(sizeof(*q));
    if (!NEED(io, q, "out of memory")) {
        return;
    }
    *q = tmp;
    qhca_turn_init(&q->turn, false);
    qhca_event_init(&q->ev, q->num);
    if (qhca_io_place(io, is_sq ? &e->eth->eth_sqs : &e->eth->eth_rqs, q,
                      q->num)) {
        q->cq->refs++;
    } else {
        free(q);
    }
}

static void save_eth_sq(struct qhca_io *io, void *obj)
{
    save_eth_q(io, obj, true);
}

static void save_eth_rq(struct qhca_io *io, void *obj)
{
    save_eth_q(io, obj, false);
}

/* The multicast filter: saved as addresses, hashed again on load. */
static void mc_list(struct qhca_io *io)
{
    struct qhca *e = io->e;
    struct qhca_mac list[QHCA_HASH_SLOTS / 2];
    uint32_t n = 0, i;

    memset(list, 0, sizeof(list));
    for (i = 0; io->saving && i < QHCA_HASH_SLOTS; i++) {
        if (e->eth->mc_hash[i]) {
            qhca_put_be16(list[n].mac, (uint16_t)(e->eth->mc_hash[i] >> 32));
            qhca_put_be32(list[n].mac + 2, (uint32_t)e->eth->mc_hash[i]);
            n++;
        }
    }
    IO(io, n);
    NEED(io, n <= QHCA_HASH_SLOTS / 2, "too many multicast addresses");
    for (i = 0; i < n && !io->failed; i++) {
        qhca_io_bytes(io, list[i].mac, sizeof(list[i].mac));
        NEED(io, list[i].mac[0] & 1, "an address is not a multicast address");
    }
    if (!io->saving && !io->failed) {
        qhca_mc_set(e, list, n);
    }
}

void qhca_io_eth_qs(struct qhca_io *io)
{
    struct qhca *e = io->e;

    qhca_io_numbers(io, &e->eth->eth_sqs);
    qhca_io_each(io, &e->eth->eth_sqs, NULL, save_eth_sq);
    qhca_io_numbers_end(io, &e->eth->eth_sqs);
    qhca_io_numbers(io, &e->eth->eth_rqs);
    qhca_io_each(io, &e->eth->eth_rqs, NULL, save_eth_rq);
    qhca_io_numbers_end(io, &e->eth->eth_rqs);
}

void qhca_io_port(struct qhca_io *io)
{
    struct qhca *e = io->e;
    struct qhca_qp *qp = e->eth->eth_qp;

    qhca_io_bytes(io, e->mac, sizeof(e->mac));
    IO(io, e->eth->promisc);
    IO(io, e->eth->allmulti);
    IO(io, e->mtu);
    IO(io, e->eth->eth_rqn);
    NEED(io, qhca_mac_ok(e->mac), "its address is no unicast address");
    NEED(io, qhca_mtu_ok(e->mtu), "its MTU is out of range");
    NEED(io, qhca_port_rq_ok(e, e->eth->eth_rqn),
         "its receive queue does not exist");
    qp = qhca_io_qp(io, qp, "its RSS QP does not exist");
    if (!io->saving && qp &&
        NEED(io, qhca_port_qp_ok(qp), "its RSS QP does not use Ethernet RQs")) {
        qhca_port_set_qp(e, qp);
    }
    mc_list(io);
    IO_SINCE(io, 2, e->eth->loopback);
    IO_SINCE(io, 2, e->eth->pause_rx);
    IO_SINCE(io, 2, e->tx_paused);
}
