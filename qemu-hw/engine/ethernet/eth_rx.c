/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet receive: filter, VLAN tag, checksum verdict, and scattering the
 * frame into one or more receive buffers.
 */
#include "ethernet/ethernet.h"
#include "ethernet/csum.h"

#define MAX_BUFFERS         64  /* per frame */
#define ETH_HEADER          14
#define VLAN_TAG            4

struct rx {
    struct qhca_eth_seg seg[MAX_BUFFERS];
    unsigned n;
    uint8_t syndrome;           /* why the queue failed */
};

enum rx_result { RX_OK, RX_NO_BUFFER, RX_BAD_BUFFER, RX_DEAD };

static enum rx_result eth_rx_dead(struct rx *rx, uint8_t syndrome)
{
    rx->syndrome = syndrome;
    return RX_DEAD;
}

/* Read the receive WQE rx->n entries past the tail. */
static enum rx_result eth_rx_peek(struct qhca *e, struct qhca_eth_q *q,
                                  struct rx *rx)
{
    uint32_t depth = 1u << q->shift, index = q->tail + rx->n, head;
    uint64_t off = index & (depth - 1), addr, run;
    uint8_t syn;

    if (index == q->head) {
        if (!qhca_dbrec_read(e, QHCA_DMA_ETH, q->num, q->dbrec, &head)) {
            return eth_rx_dead(rx, QHCA_SYN_WQE_DMA);
        }
        if (head - q->tail > depth || head - q->tail < rx->n) {
            qhca_guest_error(e, QHCA_STAT_DB_BAD_INDEX, q->num,
                             "Ethernet doorbell record beyond the ring");
            return eth_rx_dead(rx, QHCA_SYN_DB_INDEX);
        }
        q->head = head;
        if (index == head) {
            return RX_NO_BUFFER;
        }
    }
    syn = qhca_table_walk(e, &q->buf, off << q->stride, q->num, &addr, &run);
    if (!syn &&
        !qhca_dma_read(e, QHCA_DMA_ETH, q->num, addr, &rx->seg[rx->n],
                       sizeof(rx->seg[0]))) {
        syn = QHCA_SYN_WQE_DMA;
    }
    return syn ? eth_rx_dead(rx, syn) : RX_OK;
}

/* Find buffers for @len bytes, without consuming them. */
static enum rx_result eth_rx_collect(struct qhca *e, struct qhca_eth_q *q,
                                     size_t len, struct rx *rx)
{
    enum rx_result r;
    uint32_t size;

    for (rx->n = 0; len; rx->n++) {
        if (rx->n == MAX_BUFFERS) {
            return RX_BAD_BUFFER;
        }
        r = eth_rx_peek(e, q, rx);
        if (r != RX_OK) {
            return r;
        }
        size = qhca_le32(rx->seg[rx->n].len);
        if (!size) {
            rx->n++;
            return RX_BAD_BUFFER;
        }
        len -= size < len ? size : len;
    }
    return RX_OK;
}

static bool eth_rx_scatter(struct qhca *e, uint32_t num, const struct rx *rx,
                           const uint8_t *from, size_t len)
{
    size_t part;
    unsigned i;

    for (i = 0; i < rx->n; i++) {
        part = qhca_le32(rx->seg[i].len);
        part = part < len ? part : len;
        if (!qhca_dma_write(e, QHCA_DMA_ETH, num,
                            qhca_le64(rx->seg[i].addr), from, part)) {
            return false;
        }
        from += part;
        len -= part;
    }
    return true;
}

static void eth_rx_complete(struct qhca *e, struct qhca_eth_q *q,
                            const struct rx *rx, struct qhca_cqe *cqe)
{
    cqe->qpn = qhca_le32(q->num);
    cqe->wqe_index = qhca_le32(q->tail);
    cqe->opcode = QHCA_CQE_OP_ETH_RECV;
    cqe->num_wqe = qhca_le16(rx->n);
    q->tail += rx->n;
    if (cqe->status) {
        qhca_count(e, QHCA_STAT_ETH_RX_ERRORS);
    }
    if (!qhca_cq_push(e, q->cq, cqe, false)) {
        qhca_eth_q_fail(e, q, QHCA_SYN_CQ_OVERFLOW);
    }
}

static void trace_rx(struct qhca *e, const struct qhca_eth_q *q, size_t len)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_ETH_RX, .num = q->num, .index = q->tail, .b = len,
    };

    qhca_trace_emit(e, &t);
}

static void eth_rx_judge(const uint8_t *frame, size_t len, struct qhca_cqe *cqe)
{
    struct qhca_csum_verdict v;
    uint16_t flags = qhca_le16(cqe->flags);

    qhca_csum_verdict(frame, len, &v);
    cqe->csum = qhca_le32(v.sum);
    flags |= v.l3_ok ? QHCA_CQE_F_L3_OK : 0;
    flags |= v.l4_ok ? QHCA_CQE_F_L4_OK : 0;
    cqe->flags = qhca_le16(flags);
}

/* Deliver an untagged frame; @cqe holds what is already known. */
static void eth_rx_deliver(struct qhca *e, struct qhca_eth_q *q,
                    const uint8_t *frame, size_t len, struct qhca_cqe *cqe)
{
    struct rx rx;

    switch (eth_rx_collect(e, q, len, &rx)) {
    case RX_OK:
        break;
    case RX_NO_BUFFER:
        qhca_count(e, QHCA_STAT_ETH_RX_DROPPED);
        return;
    case RX_BAD_BUFFER:
        cqe->status = QHCA_WC_LOC_LEN_ERR;
        cqe->syndrome = QHCA_SYN_WQE_SGE;
        eth_rx_complete(e, q, &rx, cqe);
        return;
    case RX_DEAD:
        qhca_count(e, QHCA_STAT_ETH_RX_ERRORS);
        qhca_eth_q_fail(e, q, rx.syndrome);
        return;
    }
    if (!eth_rx_scatter(e, q->num, &rx, frame, len)) {
        cqe->status = QHCA_WC_LOC_PROT_ERR;
        cqe->syndrome = QHCA_SYN_DATA_DMA;
        eth_rx_complete(e, q, &rx, cqe);
        return;
    }
    eth_rx_judge(frame, len, cqe);
    cqe->byte_len = qhca_le32((uint32_t)len);
    if (qhca_tracing(e)) {
        trace_rx(e, q, len);
    }
    qhca_count(e, QHCA_STAT_ETH_RX_PACKETS);
    e->stats[QHCA_STAT_ETH_RX_BYTES] += len;
    if (frame[0] & 1) {
        qhca_count(e, QHCA_STAT_ETH_RX_MULTICAST);
    }
    eth_rx_complete(e, q, &rx, cqe);
}

void qhca_eth_rx(struct qhca *e, const uint8_t *frame, size_t len)
{
    struct qhca_eth_q *q = qhca_idr_get(&e->eth->eth_rqs, e->eth->eth_rqn);
    struct qhca_cqe cqe = { .vlan = qhca_le16(QHCA_VLAN_NONE) };

    if (len < ETH_HEADER || len > QHCA_ETH_MAX_FRAME) {
        qhca_count(e, QHCA_STAT_ETH_RX_ERRORS);
        return;
    }
    if (!qhca_mac_accept(e, frame)) {
        qhca_count(e, QHCA_STAT_ETH_RX_FILTERED);
        return;
    }
    if (!q || q->dead) {
        qhca_count(e, QHCA_STAT_ETH_RX_DROPPED);
        return;
    }
    if (qhca_get_be16(frame + 12) == QHCA_ETHERTYPE_VLAN &&
        len >= ETH_HEADER + VLAN_TAG) {
        cqe.vlan = qhca_le16(qhca_get_be16(frame + 14));
        cqe.flags = qhca_le16(QHCA_CQE_F_VLAN);
        len -= VLAN_TAG;
        /* May overlap: one of our raw packet QPs sent it from this buffer. */
        memmove(e->eth->eth_frame, frame, 12);
        memmove(e->eth->eth_frame + 12, frame + 12 + VLAN_TAG, len - 12);
        frame = e->eth->eth_frame;
    }
    eth_rx_deliver(e, q, frame, len, &cqe);
}
