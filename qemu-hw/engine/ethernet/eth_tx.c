/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet send queues.  A frame is gathered into e->eth->eth_frame; if the
 * wire is busy, the WQE stays in the ring and is gathered again later.  The
 * queues take turns frame by frame, also within a large send, or as their
 * shapers decide.
 */
#include "ethernet/flow.h"

#define ETH_HEADER          14
#define VLAN_TAG            4

#define FLAGS (QHCA_WQE_F_SIGNALED | QHCA_WQE_F_SOLICITED |             \
               QHCA_WQE_F_ETH_CSUM | QHCA_WQE_F_ETH_VLAN |              \
               QHCA_WQE_F_ETH_LSO)
/* A large send gets its checksums anyway. */
#define EXCLUSIVE (QHCA_WQE_F_ETH_CSUM | QHCA_WQE_F_ETH_LSO)

static bool eth_tx_fail(struct qhca_eth_failure *f, uint8_t status,
                        uint8_t syndrome)
{
    f->status = status;
    f->syndrome = syndrome;
    return false;
}

bool qhca_eth_tx_check(const struct qhca_eth_q *q,
                       const struct qhca_eth_tx_wqe *w,
                       struct qhca_eth_failure *f)
{
    unsigned n = qhca_le16(w->h.num_sge);
    unsigned room = ((1u << q->ring.stride) - sizeof(w->h)) / sizeof(w->seg[0]);

    if (w->h.opcode != QHCA_WQE_ETH_SEND) {
        return eth_tx_fail(f, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_OPCODE);
    }
    if ((w->h.flags & ~FLAGS) || (w->h.flags & EXCLUSIVE) == EXCLUSIVE) {
        return eth_tx_fail(f, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_FLAGS);
    }
    if (!n || n > room || n > QHCA_ETH_MAX_SGE) {
        return eth_tx_fail(f, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE);
    }
    return true;
}

/* Read all segments into @to; *@len gets the total length. */
static bool eth_tx_gather(struct qhca *e, const struct qhca_eth_q *q,
                          const struct qhca_eth_tx_wqe *w, uint8_t *to,
                          size_t max, size_t *len, struct qhca_eth_failure *f)
{
    unsigned i, n = qhca_le16(w->h.num_sge);
    uint64_t addr;
    uint32_t part;

    *len = 0;
    for (i = 0; i < n; i++) {
        part = qhca_le32(w->seg[i].len);
        if (part > max - *len) {
            return eth_tx_fail(f, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH);
        }
        if (!part) {
            continue;
        }
        addr = qhca_le64(w->seg[i].addr);
        if (!qhca_dma_read(e, QHCA_DMA_ETH, q->num, addr, to + *len, part)) {
            return eth_tx_fail(f, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
        }
        if (qhca_tracing(e)) {
            qhca_eth_trace_data(e, q, addr, part, false);
        }
        *len += part;
    }
    if (*len < ETH_HEADER) {
        return eth_tx_fail(f, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH);
    }
    return true;
}

static bool insert_csum(const struct qhca_eth_tx_wqe *w, uint8_t *frame,
                        size_t len, struct qhca_eth_failure *f)
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

/*
 * Build the frame of @w, or the next one if it is large, in e->eth->eth_frame:
 * its start, or NULL with *@f set.  *@frames gets how many it represents; if it
 * is a super-frame, a trailer follows its *@len bytes.
 */
static uint8_t *eth_tx_build(struct qhca *e, struct qhca_eth_q *q,
                             const struct qhca_eth_tx_wqe *w, size_t *len,
                             uint16_t *frames, struct qhca_eth_failure *f)
{
    bool vlan = w->h.flags & QHCA_WQE_F_ETH_VLAN;
    uint8_t *frame = e->eth->eth_frame + VLAN_TAG;
    size_t max = QHCA_ETH_MAX_FRAME - (vlan ? VLAN_TAG : 0);

    *frames = 1;
    if (!q->lso.active && !qhca_eth_tx_check(q, w, f)) {
        return NULL;
    }
    if (w->h.flags & QHCA_WQE_F_ETH_LSO) {
        if ((!q->lso.active && !qhca_lso_begin(e, q, w, f)) ||
            !qhca_lso_build(e, q, frame, len, frames, f)) {
            return NULL;
        }
    } else if (!eth_tx_gather(e, q, w, frame, max, len, f) ||
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
                            const struct qhca_eth_tx_wqe *w,
                            const struct qhca_eth_failure *f)
{
    struct qhca_cqe cqe = {
        .qpn = qhca_le32(q->num),
        .wqe_index = qhca_le32(q->ring.tail),
        .opcode = QHCA_CQE_OP_ETH_SEND,
        .status = f->status,
        .syndrome = f->syndrome,
    };

    q->ring.tail++;
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

static void eth_tx_count(struct qhca *e, struct qhca_eth_q *q, size_t len,
                         uint16_t frames)
{
    uint32_t bytes = (uint32_t)len;
    struct qhca_trace t = {
        .kind = QHCA_TR_ETH_TX, .num = q->num, .index = q->ring.tail, .b = len,
        .len = frames > 1 ? frames : 0,
    };

    if (frames > 1) {
        bytes += (frames - 1) * (uint32_t)qhca_lso_headers(q);
    }
    e->stats[QHCA_STAT_ETH_TX_PACKETS] += frames;
    e->stats[QHCA_STAT_ETH_TX_BYTES] += bytes;
    qhca_turn_sent(q, bytes, frames);
    if (qhca_tracing(e)) {
        qhca_trace_emit(e, &t);
    }
}

/* Read the WQE at the tail; if that fails, the queue fails. */
static bool eth_tx_fetch(struct qhca *e, struct qhca_eth_q *q,
                         struct qhca_eth_tx_wqe *w)
{
    uint64_t off = q->ring.tail & ((1u << q->ring.shift) - 1), addr, run;
    uint8_t syn;

    qhca_count(e, QHCA_STAT_WQES);
    syn = qhca_buf_table_walk(e, &q->ring.buf, off << q->ring.stride, q->num,
                              &addr, &run);
    if (!syn && !qhca_dma_read(e, QHCA_DMA_ETH, q->num, addr, w,
                               1u << q->ring.stride)) {
        syn = QHCA_SYN_WQE_DMA;
    }
    if (syn) {
        qhca_guest_error(e, QHCA_STAT_ETH_TX_ERRORS, q->num,
                         "Ethernet send queue not readable");
        qhca_eth_q_fail(e, q, syn);
    }
    return !syn;
}

void qhca_eth_loop(struct qhca *e, const uint8_t *frame, size_t len)
{
    struct qhca_eth_frame f;

    if (e->sniff) {
        e->sniff(e, frame, len);
    }
    qhca_eth_frame_parse(e, &f, frame, len);
    if (qhca_headers_cut(&f.h) || !qhca_eth_fits(e, &f)) {
        e->stats[QHCA_STAT_ETH_RX_ERRORS] += qhca_eth_frames(&f);
        return;
    }
    qhca_eth_rx(e, &f);
}

/* Send what eth_tx_build() has built; false if the wire is busy. */
static bool eth_tx_send(struct qhca *e, const struct qhca_eth_q *q,
                        const uint8_t *frame, size_t len, uint16_t frames)
{
    struct qhca_wire_frames as = { .n = frames };

    if (qhca_faulty(e, QHCA_FLT_AT_FRAME)) {
        e->hooks->frame_tx(e, frame, len, e->eth->loopback, false);
        return true;
    }
    if (e->eth->loopback) {
        qhca_eth_loop(e, frame, len + (frames > 1 ? QHCA_SUPER_TRAILER : 0));
        return true;
    }
    if (frames == 1) {
        return qhca_tx(e, frame, len);
    }
    as.first = as.len = qhca_lso_headers(q) + q->lso.mss;
    as.last = len - (frames - 1) * (size_t)q->lso.mss;
    return qhca_tx_super(e, frame, len + QHCA_SUPER_TRAILER, &as);
}

/*
 * Send the next frame of the WQE at the tail.  Returns its cost, in frames of
 * the greatest length, or 0 if the wire is busy.
 */
static unsigned eth_tx_frame(struct qhca *e, struct qhca_eth_q *q)
{
    unsigned cost = 1;
    struct qhca_eth_failure f = { 0, 0 };
    struct qhca_eth_tx_wqe fetched, *w = &q->lso.w;
    uint16_t frames;
    uint8_t *frame;
    size_t len;

    if (!q->lso.active) {
        w = &fetched;
        if (!eth_tx_fetch(e, q, w)) {
            return cost;
        }
    }
    frame = eth_tx_build(e, q, w, &len, &frames, &f);
    if (frame) {
        if (!eth_tx_send(e, q, frame, len, frames)) {
            return 0;
        }
        cost += (unsigned)len / QHCA_ETH_MAX_FRAME;
        eth_tx_count(e, q, len, frames);
        if (q->lso.active && !qhca_lso_sent(q, len)) {
            return cost;
        }
    }
    eth_tx_complete(e, q, w, &f);
    return cost;
}

void qhca_eth_wake(struct qhca *e, struct qhca_eth_q *q)
{
    if (q->state == QHCA_WQS_RDY) {
        qhca_turn_add(e, &q->turn);
    }
}

unsigned qhca_eth_run(struct qhca *e, unsigned budget)
{
    struct qhca_eth_q *q;
    unsigned n = 0;

    while (n < budget && !qhca_eth_blocked(e) && !qhca_call_spent(e) &&
           qhca_active(e)) {
        q = qhca_turn_next(e);
        if (!q) {
            break;
        }
        n += eth_tx_frame(e, q);
        qhca_turn_over(e, q);
    }
    return n;
}
