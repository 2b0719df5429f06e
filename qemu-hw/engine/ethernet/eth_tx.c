/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet send queues.  A frame is gathered into e->eth->eth_frame; if the
 * wire is busy, the WQE stays in the ring and is gathered again later.
 */
#include "ethernet/ethernet.h"
#include "ethernet/csum.h"

#define MAX_WQE             512
#define ETH_HEADER          14
#define VLAN_TAG            4

#define FLAGS (QHCA_WQE_F_SIGNALED | QHCA_WQE_F_SOLICITED |             \
               QHCA_WQE_F_ETH_CSUM | QHCA_WQE_F_ETH_VLAN)

struct tx {
    struct qhca_eth_wqe h;
    struct qhca_eth_seg seg[MAX_WQE / sizeof(struct qhca_eth_seg) - 1];
};

_Static_assert(sizeof(struct tx) == MAX_WQE, "one WQE");

/* Why no frame could be built: a completion status and the reason. */
struct failure {
    uint8_t status, syndrome;
};

static bool eth_tx_fail(struct failure *f, uint8_t status, uint8_t syndrome)
{
    f->status = status;
    f->syndrome = syndrome;
    return false;
}

static bool eth_tx_check(const struct qhca_eth_q *q, const struct tx *w,
                         struct failure *f)
{
    unsigned n = qhca_le16(w->h.num_sge);
    unsigned room = ((1u << q->stride) - sizeof(w->h)) / sizeof(w->seg[0]);

    if (w->h.opcode != QHCA_WQE_ETH_SEND) {
        return eth_tx_fail(f, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_OPCODE);
    }
    if (w->h.flags & ~FLAGS) {
        return eth_tx_fail(f, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_FLAGS);
    }
    if (!n || n > room || n > QHCA_ETH_MAX_SGE) {
        return eth_tx_fail(f, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE);
    }
    return true;
}

/* Read all segments into @to; *@len gets the total length. */
static bool eth_tx_gather(struct qhca *e, uint32_t num, const struct tx *w,
                   uint8_t *to, size_t max, size_t *len, struct failure *f)
{
    unsigned i, n = qhca_le16(w->h.num_sge);
    uint32_t part;

    *len = 0;
    for (i = 0; i < n; i++) {
        part = qhca_le32(w->seg[i].len);
        if (part > max - *len) {
            return eth_tx_fail(f, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH);
        }
        if (part && !qhca_dma_read(e, QHCA_DMA_ETH, num,
                                   qhca_le64(w->seg[i].addr), to + *len,
                                   part)) {
            return eth_tx_fail(f, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
        }
        *len += part;
    }
    if (*len < ETH_HEADER) {
        return eth_tx_fail(f, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH);
    }
    return true;
}

static bool insert_csum(const struct tx *w, uint8_t *frame, size_t len,
                        struct failure *f)
{
    size_t start = qhca_le16(w->h.csum_start);
    size_t at = start + qhca_le16(w->h.csum_offset);
    uint16_t sum;

    if (start >= len || at + 2 > len) {
        return eth_tx_fail(f, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH);
    }
    sum = (uint16_t)~qhca_csum(frame + start, len - start, 0);
    /* In UDP 0 means "no checksum"; 0xffff is the same number. */
    sum = qhca_le16(sum ? sum : 0xffff);
    memcpy(frame + at, &sum, 2);
    return true;
}

/* Build the frame in e->eth->eth_frame: its start, or NULL with *@f set. */
static uint8_t *eth_tx_build(struct qhca *e, const struct qhca_eth_q *q,
                             const struct tx *w, size_t *len, struct failure *f)
{
    bool vlan = w->h.flags & QHCA_WQE_F_ETH_VLAN;
    uint8_t *frame = e->eth->eth_frame + VLAN_TAG;
    size_t max = QHCA_ETH_MAX_FRAME - (vlan ? VLAN_TAG : 0);

    if (!eth_tx_check(q, w, f) || !eth_tx_gather(e, q->num, w, frame, max, len,
                                                 f) ||
        ((w->h.flags & QHCA_WQE_F_ETH_CSUM) &&
         !insert_csum(w, frame, *len, f))) {
        return NULL;
    }
    if (vlan) {
        frame -= VLAN_TAG;
        memmove(frame, frame + VLAN_TAG, 12);
        qhca_put_be16(frame + 12, QHCA_ETHERTYPE_VLAN);
        qhca_put_be16(frame + 14, qhca_le16(w->h.vlan));
        *len += VLAN_TAG;
    }
    return frame;
}

static void eth_tx_complete(struct qhca *e, struct qhca_eth_q *q,
                            const struct tx *w, const struct failure *f)
{
    struct qhca_cqe cqe = {
        .qpn = qhca_le32(q->num),
        .wqe_index = qhca_le32(q->tail),
        .opcode = QHCA_CQE_OP_ETH_SEND,
        .status = f->status,
        .syndrome = f->syndrome,
    };

    q->tail++;
    if (f->status) {
        qhca_guest_error(e, QHCA_STAT_ETH_TX_ERRORS, q->num,
                         "Ethernet send WQE refused");
    } else if (!(w->h.flags & QHCA_WQE_F_SIGNALED)) {
        return;
    }
    if (!qhca_cq_push(e, q->cq, &cqe, w->h.flags & QHCA_WQE_F_SOLICITED)) {
        qhca_eth_q_fail(e, q, QHCA_SYN_CQ_OVERFLOW);
    }
}

static void trace_tx(struct qhca *e, const struct qhca_eth_q *q, size_t len)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_ETH_TX, .num = q->num, .index = q->tail, .b = len,
    };

    qhca_trace_emit(e, &t);
}

/* Send the WQE at the tail; false if the wire is busy. */
static bool send_one(struct qhca *e, struct qhca_eth_q *q)
{
    uint64_t off = q->tail & ((1u << q->shift) - 1), addr, run;
    struct failure f = { 0, 0 };
    struct tx w;
    uint8_t *frame, syn;
    size_t len;

    syn = qhca_table_walk(e, &q->buf, off << q->stride, q->num, &addr, &run);
    if (!syn && !qhca_dma_read(e, QHCA_DMA_ETH, q->num, addr, &w,
                               1u << q->stride)) {
        syn = QHCA_SYN_WQE_DMA;
    }
    if (syn) {
        qhca_guest_error(e, QHCA_STAT_ETH_TX_ERRORS, q->num,
                         "Ethernet send queue not readable");
        qhca_eth_q_fail(e, q, syn);
        return true;
    }
    frame = eth_tx_build(e, q, &w, &len, &f);
    if (frame) {
        if (!qhca_tx(e, frame, len)) {
            return false;
        }
        qhca_count(e, QHCA_STAT_ETH_TX_PACKETS);
        e->stats[QHCA_STAT_ETH_TX_BYTES] += len;
        if (qhca_tracing(e)) {
            trace_tx(e, q, len);
        }
    }
    eth_tx_complete(e, q, &w, &f);
    return true;
}

unsigned qhca_eth_run(struct qhca *e, unsigned budget)
{
    struct qhca_eth_q *q;
    unsigned n = 0;

    while (n < budget && !e->tx_blocked &&
           !qhca_list_empty(&e->eth->eth_ready)) {
        q = qhca_container(e->eth->eth_ready.next, struct qhca_eth_q, ready);
        qhca_list_del(&q->ready);
        if (send_one(e, q)) {
            n++;
        }
        if (q->head != q->tail && !q->dead) {
            qhca_list_add_tail(&e->eth->eth_ready, &q->ready);
        }
    }
    return n;
}
