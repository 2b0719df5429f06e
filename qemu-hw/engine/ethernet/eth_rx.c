/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet receive: address filter, VLAN tag, checksum verdict, header/data
 * split, and scattering the frame into receive buffers.
 */
#include "ethernet/flow.h"

#define MAX_BUFFERS         64  /* per frame and ring */
#define ADDRESSES           12  /* bytes of a frame before the VLAN tag */

/* Buffers found in a ring, from its tail on, that are not yet consumed. */
struct buffers {
    struct qhca_eth_seg seg[MAX_BUFFERS];
    unsigned n;
    uint8_t syndrome;           /* why the queue failed */
};

enum rx_result { RX_OK, RX_NO_BUFFER, RX_BAD_BUFFER, RX_DEAD };

union eth_cqe {
    struct qhca_eth_cqe eth;
    struct qhca_cqe any;
};

static enum rx_result eth_rx_dead(struct buffers *b, uint8_t syndrome)
{
    b->syndrome = syndrome;
    return RX_DEAD;
}

/* Read the receive WQE b->n entries past the tail. */
static enum rx_result eth_rx_peek(struct qhca *e, uint32_t num,
                                  struct qhca_wqe_ring *r, struct buffers *b)
{
    uint32_t depth = 1u << r->shift, index = r->tail + b->n, head;
    uint64_t off = index & (depth - 1), addr, run;
    uint8_t syn;

    if (index == r->head) {
        if (!qhca_dbrec_read(e, QHCA_DMA_ETH, num, r->dbrec, &head)) {
            return eth_rx_dead(b, QHCA_SYN_WQE_DMA);
        }
        if (head - r->tail > depth || head - r->tail < b->n) {
            qhca_guest_error(e, QHCA_STAT_DB_BAD_INDEX, num,
                             "Ethernet doorbell record beyond the ring");
            return eth_rx_dead(b, QHCA_SYN_DB_INDEX);
        }
        r->head = head;
        if (index == head) {
            return RX_NO_BUFFER;
        }
    }
    syn = qhca_buf_table_walk(e, &r->buf, off << r->stride, num, &addr, &run);
    if (!syn &&
        !qhca_dma_read(e, QHCA_DMA_ETH, num, addr, &b->seg[b->n],
                       sizeof(b->seg[0]))) {
        syn = QHCA_SYN_WQE_DMA;
    }
    return syn ? eth_rx_dead(b, syn) : RX_OK;
}

/* Find buffers for @len bytes, without consuming them. */
static enum rx_result eth_rx_collect(struct qhca *e, uint32_t num,
                                     struct qhca_wqe_ring *r, size_t len,
                                     struct buffers *b)
{
    enum rx_result result;
    uint32_t size;

    b->syndrome = QHCA_SYN_NONE;
    for (b->n = 0; len; b->n++) {
        if (b->n == MAX_BUFFERS) {
            return RX_BAD_BUFFER;
        }
        result = eth_rx_peek(e, num, r, b);
        if (result != RX_OK) {
            return result;
        }
        size = qhca_le32(b->seg[b->n].len);
        if (!size) {
            b->n++;
            return RX_BAD_BUFFER;
        }
        len -= size < len ? size : len;
    }
    return RX_OK;
}

/* Bytes of the tag, which is not stored. */
static size_t tag_len(const struct qhca_eth_frame *f)
{
    return f->h.tagged ? QHCA_VLAN_HLEN : 0;
}

/* Store @len bytes from byte @at of the frame without its tag. */
static bool eth_rx_store(struct qhca *e, const struct qhca_eth_q *q,
                         uint64_t addr, const struct qhca_eth_frame *f,
                         size_t at, size_t len)
{
    size_t before = at < ADDRESSES && tag_len(f) ? ADDRESSES - at : 0;

    before = before < len ? before : len;
    if ((before && !qhca_dma_write(e, QHCA_DMA_ETH, q->num, addr,
                                   f->data + at, before)) ||
        (before < len && !qhca_dma_write(e, QHCA_DMA_ETH, q->num,
                                         addr + before, f->data +
                                         tag_len(f) + at + before,
                                         len - before))) {
        return false;
    }
    if (qhca_tracing(e)) {
        qhca_eth_trace_data(e, q, addr, len, true);
    }
    return true;
}

static bool eth_rx_scatter(struct qhca *e, const struct qhca_eth_q *q,
                           const struct buffers *b,
                           const struct qhca_eth_frame *f, size_t at,
                           size_t len)
{
    size_t part;
    unsigned i;

    for (i = 0; i < b->n; i++) {
        part = qhca_le32(b->seg[i].len);
        part = part < len ? part : len;
        if (!eth_rx_store(e, q, qhca_le64(b->seg[i].addr), f, at, part)) {
            return false;
        }
        at += part;
        len -= part;
    }
    return true;
}

/* How a frame is stored, and where. */
struct split {
    size_t head, payload;       /* bytes in the ring, in the data ring */
    struct buffers ring, data;
};

/* Bytes of the frame that are stored: all except padding and the tag. */
static size_t eth_rx_len(const struct qhca_eth_q *q,
                         const struct qhca_eth_frame *f)
{
    const struct qhca_headers *h = &f->h;
    size_t len = f->len - tag_len(f), end;

    if (!(q->flags & QHCA_ETH_Q_F_UNPAD) || len > QHCA_ETH_SHORTEST ||
        !h->version || !h->whole) {
        return len;
    }
    end = QHCA_ETH_HLEN + h->ip_len + h->payload;
    return end < len ? end : len;
}

/*
 * Split after the TCP or UDP header, if the queue splits frames and data
 * follows the header.
 */
static void eth_rx_plan(const struct qhca_eth_q *q,
                        const struct qhca_eth_frame *f, struct split *s)
{
    const struct qhca_headers *h = &f->h;

    s->head = eth_rx_len(q, f);
    s->payload = 0;
    s->ring.n = s->data.n = 0;
    if ((q->flags & QHCA_ETH_Q_F_HDS) && s->head > q->hds_thresh &&
        h->l4_proto && h->l4_hlen && h->l4_hlen < h->l4_len) {
        s->head = (size_t)(h->l4 - f->data) + h->l4_hlen - tag_len(f);
        s->payload = h->l4_len - h->l4_hlen;
    }
}

static void eth_rx_error(struct qhca *e, const struct qhca_eth_frame *f)
{
    e->stats[QHCA_STAT_ETH_RX_ERRORS] += qhca_eth_frames(f);
}

static void eth_rx_complete(struct qhca *e, struct qhca_eth_q *q,
                            const struct qhca_eth_frame *f,
                            const struct split *s, union eth_cqe *cqe)
{
    cqe->eth.num = qhca_le32(q->num);
    cqe->eth.wqe_index = qhca_le32(q->ring.tail);
    cqe->eth.opcode = QHCA_CQE_OP_ETH_RECV;
    cqe->eth.num_wqe = qhca_le16((uint16_t)s->ring.n);
    q->ring.tail += s->ring.n;
    if (s->data.n) {
        cqe->eth.data_index = qhca_le32(q->data.tail);
        cqe->eth.num_data = (uint8_t)s->data.n;
        q->data.tail += s->data.n;
    }
    if (cqe->eth.status) {
        eth_rx_error(e, f);
    }
    if (!qhca_cq_push(e, q->cq, &cqe->any, false)) {
        qhca_eth_q_fail(e, q, QHCA_SYN_CQ_OVERFLOW);
    }
}

static void trace_rx(struct qhca *e, const struct qhca_eth_q *q,
                     const struct qhca_eth_cqe *cqe)
{
    struct qhca_trace t = {
        .kind = QHCA_TR_ETH_RX, .num = q->num, .index = q->ring.tail,
        .b = qhca_le32(cqe->byte_len), .a = qhca_le16(cqe->header_len),
        .psn = qhca_le32(cqe->rss_hash), .op = cqe->hash_type,
        .len = cqe->gso_segs,
    };

    if (t.a) {
        t.wqe = q->data.tail;
    }

    qhca_trace_emit(e, &t);
}

/*
 * Flags of a merged packet: how its frames differ.  Their checksums were right,
 * and so are its own, even in a tunnel, which qhca_csum_verdict() does not
 * check.
 */
static uint16_t merged_flags(const struct qhca_large *l)
{
    bool same = l->outer_version ? l->same_outer_id : l->same_id;
    bool inner = l->outer_version && l->same_id;

    return QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK |
           (same ? QHCA_CQE_F_SAME_ID : 0) |
           (inner ? QHCA_CQE_F_SAME_INNER_ID : 0) |
           (l->cwr ? QHCA_CQE_F_CWR : 0);
}

/* Checksums of the @len bytes that were stored. */
static void eth_rx_judge(const struct qhca_eth_frame *f, size_t len,
                         struct qhca_eth_cqe *cqe)
{
    uint16_t flags = f->h.tagged ? QHCA_CQE_F_VLAN : 0;
    struct qhca_csum_verdict v;

    qhca_csum_verdict(&f->h, len - QHCA_ETH_HLEN, &v);
    cqe->csum = qhca_le32(v.sum);
    flags |= v.l3_ok ? QHCA_CQE_F_L3_OK : 0;
    flags |= v.l4_ok ? QHCA_CQE_F_L4_OK : 0;
    if (f->merged) {
        flags |= merged_flags(&f->super.l);
    }
    cqe->flags = qhca_le16(flags);
}

void qhca_eth_rq_drop(struct qhca *e, struct qhca_eth_q *q, uint32_t frames)
{
    e->stats[QHCA_STAT_ETH_RX_DROPPED] += frames;
    q->dropped += frames;
}

static void eth_rx_count(struct qhca *e, const struct qhca_eth_frame *f)
{
    uint32_t n = qhca_eth_frames(f);

    if (f->merged) {
        qhca_count(e, QHCA_STAT_ETH_RX_GRO_PACKETS);
        e->stats[QHCA_STAT_ETH_RX_GRO_FRAMES] += n;
    }
    e->stats[QHCA_STAT_ETH_RX_PACKETS] += n;
    e->stats[QHCA_STAT_ETH_RX_BYTES] += f->len +
        (n - 1) * (size_t)f->super.l.hdr_len;
    if (f->data[0] & 1) {
        e->stats[QHCA_STAT_ETH_RX_MULTICAST] += n;
    }
}

static void eth_rx_piece(struct qhca *e, void *to,
                         const struct qhca_eth_frame *f,
                         const struct qhca_steer *s)
{
    qhca_eth_rq_put(e, to, f, s);
}

/* Deliver the frames of a super-frame one by one. */
static void eth_rx_cut(struct qhca *e, struct qhca_eth_q *q,
                       const struct qhca_eth_frame *f,
                       const struct qhca_steer *s)
{
    if (!f->merged && !qhca_super_intact(e, f)) {
        eth_rx_error(e, f);
        return;
    }
    qhca_eth_rq_drop(e, q, qhca_super_deliver(e, f, eth_rx_piece, q, s));
}

/* Find buffers for both parts.  If not RX_OK, *@why gets the syndrome. */
static enum rx_result eth_rx_find(struct qhca *e, struct qhca_eth_q *q,
                                  struct split *s, uint8_t *why)
{
    enum rx_result r = eth_rx_collect(e, q->num, &q->ring, s->head, &s->ring);

    *why = s->ring.syndrome;
    if (r == RX_OK && s->payload) {
        r = eth_rx_collect(e, q->num, &q->data, s->payload, &s->data);
        *why = s->data.syndrome;
    }
    return r;
}

/* Store the frame in the buffers found, and complete it. */
static void eth_rx_deliver(struct qhca *e, struct qhca_eth_q *q,
                           const struct qhca_eth_frame *f,
                           const struct split *s, union eth_cqe *cqe)
{
    size_t len = s->head + s->payload;

    if (!eth_rx_scatter(e, q, &s->ring, f, 0, s->head) ||
        !eth_rx_scatter(e, q, &s->data, f, s->head, s->payload)) {
        cqe->eth.status = QHCA_WC_LOC_PROT_ERR;
        cqe->eth.syndrome = QHCA_SYN_DATA_DMA;
        eth_rx_complete(e, q, f, s, cqe);
        return;
    }
    eth_rx_judge(f, len, &cqe->eth);
    cqe->eth.byte_len = qhca_le32((uint32_t)len);
    cqe->eth.header_len = qhca_le16(s->payload ? (uint16_t)s->head : 0);
    if (qhca_tracing(e)) {
        trace_rx(e, q, &cqe->eth);
    }
    eth_rx_count(e, f);
    eth_rx_complete(e, q, f, s, cqe);
}

/* May the queue get the super-frame whole? */
static bool eth_rx_whole(const struct qhca_eth_q *q,
                         const struct qhca_eth_frame *f)
{
    return !f->super.segs || f->merged || (q->flags & QHCA_ETH_Q_F_SUPER);
}

void qhca_eth_rq_put(struct qhca *e, struct qhca_eth_q *q,
                     const struct qhca_eth_frame *f,
                     const struct qhca_steer *steer)
{
    enum rx_result r;
    union eth_cqe cqe = {
        .eth = {
            .vlan = qhca_le16(f->h.tagged ? f->h.tci : QHCA_VLAN_NONE),
            .rss_hash = qhca_le32(steer->hash),
            .hash_type = steer->hash_type, .flow_tag = qhca_le32(steer->tag),
            .timestamp = qhca_le64(f->came),
            .gso_size = qhca_le16(f->super.segs ? f->super.size : 0),
            .gso_segs = (uint8_t)f->super.segs,
        },
    };
    struct split s;
    uint8_t why;

    if (!qhca_active(e)) {
        return;                 /* since another frame or copy */
    }
    if (q->state != QHCA_WQS_RDY) {
        qhca_eth_rq_drop(e, q, qhca_eth_frames(f));
        return;
    }
    if (!eth_rx_whole(q, f)) {
        eth_rx_cut(e, q, f, steer);
        return;
    }
    eth_rx_plan(q, f, &s);
    r = eth_rx_find(e, q, &s, &why);
    if (f->merged && (r == RX_NO_BUFFER || r == RX_BAD_BUFFER)) {
        /* nothing is consumed yet: deliver as many of its frames as fit */
        eth_rx_cut(e, q, f, steer);
        return;
    }
    switch (r) {
    case RX_OK:
        eth_rx_deliver(e, q, f, &s, &cqe);
        break;
    case RX_NO_BUFFER:
        qhca_eth_rq_drop(e, q, qhca_eth_frames(f));
        break;
    case RX_BAD_BUFFER:
        cqe.eth.status = QHCA_WC_LOC_LEN_ERR;
        cqe.eth.syndrome = QHCA_SYN_WQE_SGE;
        eth_rx_complete(e, q, f, &s, &cqe);
        break;
    case RX_DEAD:
        eth_rx_error(e, f);
        qhca_eth_q_fail(e, q, why);
        break;
    }
}

void qhca_eth_rq_rx(struct qhca *e, struct qhca_eth_q *q,
                    const struct qhca_eth_frame *f, const struct qhca_steer *s)
{
    if (!qhca_gro_take(e, q, f, s)) {
        qhca_eth_rq_put(e, q, f, s);
    }
}

/* The port's own queue, or the one that its RSS QP picks. */
static void port_rx(struct qhca *e, const struct qhca_eth_frame *f)
{
    static const struct qhca_steer nothing;
    struct qhca_eth_q *q = qhca_idr_get(&e->eth->eth_rqs, e->eth->eth_rqn);

    if (!qhca_mac_accept(e, f->data)) {
        e->stats[QHCA_STAT_ETH_RX_FILTERED] += qhca_eth_frames(f);
    } else if (e->eth->eth_qp) {
        qhca_raw_rx(e, e->eth->eth_qp, f, 0);
    } else if (q) {
        qhca_eth_rq_rx(e, q, f, &nothing);
    } else {
        e->stats[QHCA_STAT_ETH_RX_DROPPED] += qhca_eth_frames(f);
    }
}

void qhca_eth_rx(struct qhca *e, struct qhca_eth_frame *f)
{
    if (!f->super.segs && f->len > QHCA_ETH_MAX_FRAME) {
        qhca_count(e, QHCA_STAT_ETH_RX_ERRORS);
        return;
    }
    qhca_eth_frame_key(f);
    if (!e->eth->flows || !qhca_flow_rx(e, f, false)) {
        port_rx(e, f);
    }
}

void qhca_eth_rx_own(struct qhca *e, struct qhca_eth_frame *f)
{
    if (e->eth->flows) {
        qhca_eth_frame_key(f);
        qhca_flow_rx(e, f, true);
    }
}
