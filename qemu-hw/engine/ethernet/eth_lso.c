/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Large sends of Ethernet send queues.  The WQE and its headers are copied and
 * checked once; then each turn of the queue builds one frame, which may be a
 * super-frame.
 */
#include "ethernet/ethernet.h"

static bool lso_fail(struct qhca_eth_failure *f, uint8_t status,
                     uint8_t syndrome)
{
    f->status = status;
    f->syndrome = syndrome;
    return false;
}

static size_t lso_tag(const struct qhca_lso *s)
{
    return s->w.h.flags & QHCA_WQE_F_ETH_VLAN ? QHCA_VLAN_HLEN : 0;
}

/* Move the cursor by @n bytes, which the segments hold. */
static void lso_skip(struct qhca_lso *s, uint32_t n)
{
    uint32_t left;

    while (n) {
        left = qhca_le32(s->w.seg[s->seg].len) - s->seg_off;
        if (n < left) {
            s->seg_off += n;
            return;
        }
        n -= left;
        s->seg++;
        s->seg_off = 0;
    }
}

/*
 * Read @n bytes, which the segments hold, from the cursor on; does not move it.
 */
static bool lso_read(struct qhca *e, const struct qhca_eth_q *q, uint8_t *to,
                     uint32_t n)
{
    const struct qhca_lso *s = &q->lso;
    uint32_t off = s->seg_off, part;
    uint64_t addr;
    unsigned i;

    for (i = s->seg; n; i++, off = 0) {
        part = qhca_le32(s->w.seg[i].len) - off;
        part = part < n ? part : n;
        if (!part) {
            continue;
        }
        addr = qhca_le64(s->w.seg[i].addr) + off;
        if (!qhca_dma_read(e, QHCA_DMA_ETH, q->num, addr, to, part)) {
            return false;
        }
        if (qhca_tracing(e)) {
            qhca_eth_trace_data(e, q, addr, part, false);
        }
        to += part;
        n -= part;
    }
    return true;
}

/* Find the lengths in the WQE: false if they break the rules. */
static bool lso_measure(struct qhca_lso *s)
{
    unsigned i, n = qhca_le16(s->w.h.num_sge);
    uint32_t hdr_len = qhca_le16(s->w.h.hdr_len);
    uint64_t total = 0, first;

    for (i = 0; i < n; i++) {
        total += qhca_le32(s->w.seg[i].len);
    }
    s->mss = qhca_le16(s->w.h.mss);
    if (!s->mss || hdr_len > QHCA_ETH_LSO_HDR_MAX || total <= hdr_len ||
        total - hdr_len > QHCA_ETH_LSO_MAX) {
        return false;
    }
    s->total = (uint32_t)total - hdr_len;
    first = s->total < s->mss ? s->total : s->mss;
    return hdr_len + first + lso_tag(s) <= QHCA_ETH_MAX_FRAME;
}

static bool lso_parse(struct qhca_lso *s)
{
    uint16_t hdr_len = qhca_le16(s->w.h.hdr_len);
    uint16_t inner_l3 = qhca_le16(s->w.h.inner_l3);
    bool tag = !lso_tag(s);

    return (inner_l3 ? qhca_large_parse_tunnel(s->hdr, hdr_len, tag, inner_l3,
                                               &s->l) :
                       qhca_large_parse(s->hdr, hdr_len, tag, &s->l)) &&
           s->l.hdr_len == hdr_len;
}

/*
 * Bytes of payload of the next frame.  Faults and steps work on single frames,
 * so these are sent while any of them is active.
 */
static uint32_t lso_next(const struct qhca *e, const struct qhca_lso *s)
{
    bool single = !e->cfg.super_frames || e->debugging ||
                  qhca_faulty(e, QHCA_FLT_AT_FRAME);
    uint32_t most = single ? s->mss :
                             qhca_super_chunk(&s->l, s->hdr, s->mss);

    return s->total - s->sent < most ? s->total - s->sent : most;
}

bool qhca_lso_begin(struct qhca *e, struct qhca_eth_q *q,
                    const struct qhca_eth_tx_wqe *w,
                    struct qhca_eth_failure *f)
{
    struct qhca_lso *s = &q->lso;

    memset(s, 0, sizeof(*s));
    memcpy(&s->w, w, (size_t)1 << q->ring.stride);
    if (!lso_measure(s)) {
        return lso_fail(f, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH);
    }
    if (!lso_read(e, q, s->hdr, qhca_le16(w->h.hdr_len))) {
        return lso_fail(f, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
    }
    if (!lso_parse(s)) {
        return lso_fail(f, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH);
    }
    lso_skip(s, s->l.hdr_len);
    s->active = true;
    return true;
}

bool qhca_lso_build(struct qhca *e, struct qhca_eth_q *q, uint8_t *frame,
                    size_t *len, uint16_t *frames, struct qhca_eth_failure *f)
{
    const struct qhca_lso *s = &q->lso;
    struct qhca_large_part p = {
        .number = s->sent / s->mss, .from = s->sent, .len = lso_next(e, s),
        .total = s->total,
    };

    memcpy(frame, s->hdr, s->l.hdr_len);
    if (!lso_read(e, q, frame + s->l.hdr_len, p.len)) {
        q->lso.active = false;
        return lso_fail(f, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
    }
    qhca_large_finish(&s->l, frame, &p);
    *len = s->l.hdr_len + p.len;
    *frames = (uint16_t)((p.len + s->mss - 1) / s->mss);
    if (*frames > 1) {
        qhca_super_trailer(frame + *len, s->mss, *frames);
    }
    return true;
}

size_t qhca_lso_headers(const struct qhca_eth_q *q)
{
    return q->lso.l.hdr_len + lso_tag(&q->lso);
}

bool qhca_lso_sent(struct qhca_eth_q *q, size_t len)
{
    struct qhca_lso *s = &q->lso;
    uint32_t n = (uint32_t)(len - qhca_lso_headers(q));

    lso_skip(s, n);
    s->sent += n;
    s->active = s->sent < s->total;
    return !s->active;
}

/* ---- saved state ---- */

SAVED_SIZE(struct qhca_lso, 816, ethq, 3);

void qhca_io_lso(struct qhca_io *io, struct qhca_eth_q *q)
{
    struct qhca_lso *s = &q->lso;
    struct qhca_eth_failure f;

    IO(io, s->active);
    if (!s->active || io->failed) {
        return;
    }
    qhca_io_bytes(io, &s->w, sizeof(s->w));
    if (io->version < 3) {
        s->w.h.inner_l3 = 0;    /* these bytes were reserved, and ignored */
    }
    qhca_io_bytes(io, s->hdr, sizeof(s->hdr));
    IO(io, s->sent);
    NEED(io, q->ring.head != q->ring.tail,
         "a large send that is not in the ring");
    NEED(io, qhca_eth_tx_check(q, &s->w, &f) &&
         (s->w.h.flags & QHCA_WQE_F_ETH_LSO) && lso_measure(s) &&
         lso_parse(s),
         "a large send that cannot have begun");
    NEED(io, s->sent < s->total && !(s->sent % s->mss),
         "a large send that stops within a frame");
    if (!io->saving && !io->failed) {
        lso_skip(s, s->l.hdr_len + s->sent);
    }
}
