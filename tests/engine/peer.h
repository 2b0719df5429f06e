/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fixture of the transport's unit tests: node 0 is an adapter with one QP, and
 * the test itself is its peer, which sees each frame the adapter sends and
 * replies with frames of its own.  The frames are built here from the
 * specification, without any code of the engine.
 */
#ifndef QHCA_TEST_PEER_H
#define QHCA_TEST_PEER_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest.h"

#define PEER_FRAMES 2048
#define PEER_QPN 0x777u         /* the QPN we pretend to have */
#define PEER_BUF (1u << 20)
#define PEER_IOVA 0x500000000000ull

enum {                          /* BTH opcodes, IBA table 35 */
    SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY,
    SEND_ONLY_IMM, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM,
    WRITE_ONLY, WRITE_ONLY_IMM, READ_REQ, RESP_FIRST, RESP_MIDDLE, RESP_LAST,
    RESP_ONLY, ACK, ATOMIC_ACK, CMP_SWAP, FETCH_ADD,
    SEND_LAST_INV = 0x16, SEND_ONLY_INV = 0x17, FLUSH = 0x1c,
    ATOMIC_WRITE = 0x1d, OP_MASK = 0x1f, CLASS_UD = 0x60, CLASS_XRC = 0xa0,
    CLASS_OWN = 0xc0, CLASS_MASK = 0xe0,
    UD_ONLY = 0x64, UD_ONLY_IMM = 0x65
};

struct pframe {                 /* a parsed frame of the adapter */
    uint8_t b[4400];
    size_t len;
    uint64_t t;                 /* when, ns */
    uint8_t op, pad;
    bool se, ackreq;
    bool twice;                 /* Soft-RoCE's ICRC of a FLUSH */
    uint32_t qpn, psn;
    const uint8_t *ext;         /* after the BTH */
    size_t body;                /* bytes from there to the ICRC */
};

struct peer {
    struct world w;             /* must be first, for the filter */
    struct guest g;
    struct node *n;
    struct qhca *e;
    struct gcq scq, rcq;
    struct gqp qp;
    struct gmr mr;              /* all access rights, PEER_IOVA */
    struct gqp_attr a;
    struct pframe *f;           /* ring of PEER_FRAMES */
    unsigned head, tail;
    struct qhca_cqe cqe;        /* the last CQE polled */
};

static inline uint32_t peer_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | p[2] << 8 | p[3];
}

static inline uint64_t peer_be64(const uint8_t *p)
{
    return (uint64_t)peer_be32(p) << 32 | peer_be32(p + 4);
}

static inline void peer_put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void peer_put32(uint8_t *p, uint32_t v)
{
    peer_put16(p, v >> 16);
    peer_put16(p + 2, v & 0xffff);
}

static inline void peer_put64(uint8_t *p, uint64_t v)
{
    peer_put32(p, (uint32_t)(v >> 32));
    peer_put32(p + 4, (uint32_t)v);
}

/* CRC-32 bit by bit. */
static inline uint32_t peer_crc(uint32_t crc, const uint8_t *p, size_t n)
{
    unsigned i;

    while (n--) {
        crc ^= *p++;
        for (i = 0; i < 8; i++) {
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
        }
    }
    return crc;
}

/* ICRC of an IPv4 RoCEv2 packet (annex A17.3.3), @len without the ICRC. */
static inline uint32_t peer_icrc(const uint8_t *ip, size_t len)
{
    static const uint8_t ones[8] = {
        255, 255, 255, 255, 255, 255, 255, 255
    };
    uint8_t h[40];
    uint32_t crc;

    memcpy(h, ip, 40);
    h[1] = h[8] = h[10] = h[11] = 0xff;
    h[26] = h[27] = h[32] = 0xff;
    crc = peer_crc(0xffffffffu, ones, 8);
    crc = peer_crc(crc, h, 40);
    return ~peer_crc(crc, ip + 40, len - 40);
}

static inline bool peer_filter(struct world *w, unsigned src, uint8_t *frame,
                               size_t *len)
{
    struct peer *p = (struct peer *)w;
    struct pframe *f = &p->f[p->head % PEER_FRAMES];
    const uint8_t *bth = frame + 42;

    assert_int_equal(src, 0);
    assert_true(p->head - p->tail < PEER_FRAMES);
    assert_true(*len <= sizeof(f->b) && *len >= 58);
    memcpy(f->b, frame, *len);
    f->len = *len;
    f->t = w->now;
    f->op = bth[0];
    f->se = bth[1] & 0x80;
    f->pad = bth[1] >> 4 & 3;
    f->qpn = peer_be32(bth + 4) & 0xffffff;
    f->ackreq = bth[8] & 0x80;
    f->psn = peer_be32(bth + 8) & 0xffffff;
    f->ext = f->b + 54;
    f->body = *len - 58;
    /* the ICRC, computed independently */
    {
        uint32_t crc = peer_icrc(frame + 14, *len - 14 - 4);
        const uint8_t *e = frame + *len - 4;
        uint32_t got = (uint32_t)e[3] << 24 | (uint32_t)e[2] << 16 |
                       (uint32_t)e[1] << 8 | e[0];

        f->twice = f->op == FLUSH && got != crc;
        if (f->twice) {
            crc = ~peer_crc(~crc, bth, (size_t)(e - bth));
        }
        assert_int_equal(crc, got);
    }
    p->head++;
    return false;               /* not delivered to anyone */
}

static inline void peer_attr_default(struct gqp_attr *a)
{
    gqp_attr_default(a);
    a->path_mtu = 1;            /* 256 bytes: many packets from little data */
    a->timeout = 10;            /* 4.19 ms */
    a->retry_cnt = 3;
    a->rnr_retry = 3;
    a->min_rnr_timer = 12;      /* 0.64 ms */
    a->sq_psn = 0xfffffe;       /* wraps soon */
    a->rq_psn = 0xfffff0;
    a->dest_qpn = PEER_QPN;
}

/* @a, @adapter NULL: the defaults.  @flags: QHCA_QP_F_*. */
static inline struct peer *peer_new_with(uint8_t type, const struct gqp_attr *a,
                                         const struct qhca_config *adapter,
                                         uint8_t flags)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    struct peer *p = calloc(1, sizeof(*p));
    struct gqp_init qi = {
        .type = type, .flags = flags, .sq_shift = 9, .sq_stride = 8, .rq_shift = 6,
        .rq_stride = 7,
    };

    p->f = calloc(PEER_FRAMES, sizeof(*p->f));
    world_init(&p->w, 2, 1, adapter);
    wire_perfect(&p->w.wire);
    p->w.wire.filter = peer_filter;
    p->n = &p->w.node[0];
    p->e = p->n->e;
    guest_start(&p->g, p->n, 1, &cfg);
    gcq_create(&p->scq, &p->g, 10, NULL, 1);
    gcq_create(&p->rcq, &p->g, 8, NULL, 1);
    gmr_create(&p->mr, &p->g, PEER_BUF, PEER_IOVA, QHCA_ACCESS_MASK, NULL);
    gbuf_allow(&p->mr.buf, 0, PEER_BUF, GMEM_RW);
    gbuf_fill(&p->mr.buf, 0, 7, 0, PEER_BUF);
    qi.scq = &p->scq;
    qi.rcq = &p->rcq;
    if (type == QHCA_QPT_XRC_INI) {
        qi.rcq = NULL;
        qi.rq_shift = qi.rq_stride = 0;
    }
    gqp_create(&p->qp, &p->g, &qi);
    peer_attr_default(&p->a);
    if (a) {
        p->a = *a;
    }
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    gqp_to_rts(&p->qp, &p->a);
    return p;
}

static inline struct peer *peer_new_as(uint8_t type, const struct gqp_attr *a,
                                       const struct qhca_config *adapter)
{
    return peer_new_with(type, a, adapter, 0);
}

static inline struct peer *peer_new(uint8_t type, const struct gqp_attr *a)
{
    return peer_new_as(type, a, NULL);
}

static inline void peer_free(struct peer *p)
{
    /* 0: the test has destroyed it */
    if (p->qp.qpn) {
        assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    }
    assert_int_equal(gmr_destroy(&p->mr), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&p->scq), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&p->rcq), QHCA_ST_OK);
    guest_stop(&p->g);
    world_fini(&p->w);
    free(p->f);
    free(p);
}

/* Free it after a reset: the adapter has forgotten everything. */
static inline void peer_drop(struct peer *p)
{
    gbuf_free(&p->qp.sq);
    gbuf_free(&p->qp.rq);
    gbuf_free(&p->scq.buf);
    gbuf_free(&p->rcq.buf);
    gmr_drop(&p->mr);
    guest_drop(&p->g);
    world_fini(&p->w);
    free(p->f);
    free(p);
}

/* Frames not examined yet. */
static inline unsigned peer_waiting(const struct peer *p)
{
    return p->head - p->tail;
}

/* Let the adapter do all it can; a microsecond passes. */
static inline void peer_run(struct peer *p)
{
    world_run(&p->w, 1000);
}

/* The next frame of the adapter; the test ends if there is none. */
static inline const struct pframe *peer_next(struct peer *p)
{
    if (!peer_waiting(p)) {
        peer_run(p);
    }
    assert_true(peer_waiting(p));
    return &p->f[p->tail++ % PEER_FRAMES];
}

/* The next frame must be this one. */
#define peer_expect(p, opcode, number) ({ \
    const struct pframe *f_ = peer_next(p); \
    assert_int_equal(f_->op, opcode); \
    assert_int_equal(f_->psn, (number) & 0xffffff); \
    assert_int_equal(f_->qpn, PEER_QPN); \
    f_; })

/* The next frame must be an ACK or NAK with this AETH syndrome. */
#define peer_expect_aeth(p, syndrome, number) ({ \
    const struct pframe *a_ = peer_expect(p, ACK, number); \
    assert_int_equal(a_->ext[0], syndrome); \
    a_; })

#define peer_expect_nothing(p) do { \
    peer_run(p); \
    assert_int_equal(peer_waiting(p), 0); \
} while (0)

struct pkt {                    /* a packet to the adapter */
    uint8_t op;
    uint32_t psn;
    bool se, ackreq;
    uint8_t syn;                /* AETH */
    uint32_t msn;
    uint64_t va;                /* RETH, AtomicETH */
    uint32_t rkey, dmalen;
    uint64_t swap, cmp;         /* AtomicETH; swap also AtomicAckETH */
    uint64_t mask, swap_mask;   /* of CLASS_OWN */
    uint32_t srqn;              /* XRCETH */
    uint32_t feth;
    bool twice;                 /* Soft-RoCE's ICRC of a FLUSH */
    uint32_t imm;               /* or IETH, or Q_Key */
    const void *data;
    size_t len;
};

/* Build it at @b (4400 bytes and more, if the data is longer); returns the frame's length. */
static inline size_t peer_build(struct peer *p, const struct pkt *k,
                                uint8_t *b)
{
    unsigned op = k->op & OP_MASK, class = k->op & CLASS_MASK;
    unsigned pad = -k->len & 3;
    bool response = op >= RESP_FIRST && op <= ATOMIC_ACK;
    uint8_t *x, *ip = b + 14;
    uint32_t crc, sum = 0;
    size_t len, i;

    memset(b, 0, 96);
    memcpy(b, p->w.node[0].mac, 6);
    memcpy(b + 6, p->w.node[1].mac, 6);
    peer_put16(b + 12, 0x0800);
    x = b + 42;
    x[0] = k->op;
    x[1] = (uint8_t)((k->se ? 0x80 : 0) | 0x40 | pad << 4);
    peer_put16(x + 2, 0xffff);
    peer_put32(x + 4, p->qp.qpn);
    peer_put32(x + 8, (k->ackreq ? 0x80000000u : 0) | (k->psn & 0xffffff));
    x += 12;
    if (class == CLASS_UD) {
        peer_put32(x, k->rkey);         /* DETH: Q_Key */
        peer_put32(x + 4, PEER_QPN);
        x += 8;
    }
    if (class == CLASS_XRC && !response) {
        peer_put32(x, k->srqn);
        x += 4;
    }
    if (op == FLUSH) {
        peer_put32(x, k->feth);
        x += 4;
    }
    if (op == WRITE_FIRST || op == WRITE_ONLY || op == WRITE_ONLY_IMM ||
        op == READ_REQ || op == FLUSH || op == ATOMIC_WRITE) {
        peer_put64(x, k->va);
        peer_put32(x + 8, k->rkey);
        peer_put32(x + 12, k->dmalen);
        x += 16;
    }
    if (op == CMP_SWAP || op == FETCH_ADD) {
        peer_put64(x, k->va);
        peer_put32(x + 8, k->rkey);
        peer_put64(x + 12, k->swap);
        peer_put64(x + 20, k->cmp);
        x += 28;
    }
    if (class == CLASS_OWN) {
        peer_put64(x, k->mask);
        peer_put64(x + 8, k->swap_mask);
        x += 16;
    }
    if (op == ACK || op == ATOMIC_ACK || op == RESP_FIRST ||
        op == RESP_LAST || op == RESP_ONLY) {
        peer_put32(x, (uint32_t)k->syn << 24 | k->msn);
        x += 4;
    }
    if (op == ATOMIC_ACK) {
        peer_put64(x, k->swap);
        x += 8;
    }
    if (op == SEND_LAST_IMM || op == SEND_ONLY_IMM || op == WRITE_LAST_IMM ||
        op == WRITE_ONLY_IMM || op == SEND_LAST_INV ||
        op == SEND_ONLY_INV) {
        peer_put32(x, k->imm);
        x += 4;
    }
    if (k->len) {
        memcpy(x, k->data, k->len);
    }
    memset(x + k->len, 0, pad);
    x += k->len + pad;
    len = (size_t)(x - b) + 4;
    /* UDP */
    peer_put16(b + 34, 0xc001);
    peer_put16(b + 36, 4791);
    peer_put16(b + 38, (unsigned)(len - 34));
    /* IPv4 */
    ip[0] = 0x45;
    peer_put16(ip + 2, (unsigned)(len - 14));
    peer_put16(ip + 6, 0x4000);
    ip[8] = 64;
    ip[9] = 17;
    memcpy(ip + 12, "\x0a\x63\0\x02", 4);
    memcpy(ip + 16, "\x0a\x63\0\x01", 4);
    for (i = 0; i < 20; i += 2) {
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    peer_put16(ip + 10, ~(sum + (sum >> 16)) & 0xffff);
    crc = peer_icrc(ip, (size_t)(x - ip));
    if (k->twice) {
        crc = ~peer_crc(~crc, b + 42, (size_t)(x - b) - 42);
    }
    for (i = 0; i < 4; i++) {
        x[i] = (uint8_t)(crc >> (8 * i));
    }
    return len;
}

static inline void peer_send(struct peer *p, struct pkt k)
{
    uint8_t b[4400];
    size_t len = peer_build(p, &k, b);

    world_inject(&p->w, 0, b, len);
    peer_run(p);
}

#define peer_tx(p, ...) peer_send(p, (struct pkt){ __VA_ARGS__ })

static inline void peer_ack(struct peer *p, uint32_t psn, uint8_t syn)
{
    peer_tx(p, .op = ACK, .psn = psn, .syn = syn);
}

/* Post one send WR over bytes @off .. of the region, and ring. */
static inline void peer_post(struct peer *p, struct gwr wr, uint64_t off,
                             uint32_t len)
{
    if (!wr.num_sge && len) {
        wr.num_sge = 1;
        wr.sge[0].addr = PEER_IOVA + off;
        wr.sge[0].len = len;
        wr.sge[0].lkey = p->mr.key;
    }
    assert_true(gqp_post_send(&p->qp, &wr));
    gqp_ring(&p->qp);
}

static inline void peer_recv(struct peer *p, uint64_t wr_id, uint64_t off,
                             uint32_t len)
{
    struct qhca_sge sge = {
        .addr = PEER_IOVA + off, .len = len, .lkey = p->mr.key,
    };

    assert_true(gqp_post_recv(&p->qp, wr_id, &sge, 1));
}

/* The next CQE of @cq must be this one; it is left in p->cqe. */
#define peer_cqe(p, cq, id, st, syn) do { \
    peer_run(p); \
    assert_true(gcq_poll(&(p)->cq, &(p)->cqe)); \
    assert_int_equal((p)->cqe.wr_id, id); \
    assert_int_equal((p)->cqe.status, st); \
    assert_int_equal((p)->cqe.syndrome, syn); \
    assert_int_equal((p)->cqe.qpn, (p)->qp.qpn); \
} while (0)

#define peer_no_cqe(p, cq) do { \
    peer_run(p); \
    assert_false(gcq_poll(&(p)->cq, &(p)->cqe)); \
} while (0)

static inline uint8_t peer_state(struct peer *p)
{
    struct qhca_qpc c;

    guest_query(&p->g, QHCA_CMD_QUERY_QP, p->qp.qpn, &c, sizeof(c));
    return c.state;
}

/* Bytes of the stream that fills the region. */
static inline const uint8_t *peer_data(uint64_t off, size_t len)
{
    static uint8_t b[8192];

    assert_true(len <= sizeof(b));
    pattern_bytes(7, off, b, len);
    return b;
}

#endif
