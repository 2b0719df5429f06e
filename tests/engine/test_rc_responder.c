/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The RC responder, packet by packet. */
#include "peer.h"
#include "reborn.h"
#include "steps.h"
#include "adapter/adapter.h"
#include "transport/rc.h"

#define MTU 256

static uint8_t data[4096];

static uint32_t psn0(const struct peer *p)
{
    return p->a.rq_psn;
}

static void is_in_memory(struct peer *p, uint64_t off, const void *want,
                         size_t len)
{
    uint8_t got[4096];

    gbuf_read(&p->mr.buf, off, got, len);
    assert_memory_equal(got, want, len);
}

static void untouched(struct peer *p)
{
    assert_int_equal(gbuf_verify(&p->mr.buf, 0, 7, 0, PEER_BUF), PEER_BUF);
}

/* SEND in several packets into several SGEs; ACK only on request. */
static void send(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_sge sge[3];
    uint32_t s = psn0(p);
    unsigned i;

    (void)state;
    for (i = 0; i < 3; i++) {
        sge[i].addr = PEER_IOVA + 1000 * i;
        sge[i].len = i == 1 ? 0 : 300;
        sge[i].lkey = p->mr.key;
    }
    assert_true(gqp_post_recv(&p->qp, 11, sge, 3));
    peer_tx(p, .op = SEND_FIRST, .psn = s, .data = data, .len = MTU);
    peer_expect_nothing(p);
    peer_tx(p, .op = SEND_MIDDLE, .psn = s + 1, .data = data + MTU,
            .len = MTU, .ackreq = true);
    peer_expect_aeth(p, 0x1f, s + 1);
    peer_no_cqe(p, rcq);
    peer_tx(p, .op = SEND_LAST_IMM, .psn = s + 2, .data = data + 2 * MTU,
            .len = 9, .imm = 0x01020304, .se = true, .ackreq = true);
    peer_cqe(p, rcq, 11, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 2 * MTU + 9);
    assert_int_equal(p->cqe.opcode, QHCA_CQE_OP_RECV);
    assert_int_equal(p->cqe.flags, QHCA_CQE_F_IMM | QHCA_CQE_F_SOLICITED);
    assert_memory_equal(&p->cqe.imm, "\1\2\3\4", 4);
    is_in_memory(p, 0, data, 300);
    is_in_memory(p, 2000, data + 300, 2 * MTU + 9 - 300);
    {
        const struct pframe *f = peer_expect_aeth(p, 0x1f, s + 2);

        assert_int_equal(peer_be32(f->ext) & 0xffffff, 1);  /* MSN */
    }
    peer_free(p);
}

/* Pending ACKs are coalesced. */
static void coalesced_acks(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint8_t b[4400];
    size_t len;
    unsigned i;

    (void)state;
    p->w.wire.refuse = 65536;           /* nothing is sent for now */
    for (i = 0; i < 10; i++) {
        struct pkt k = { .op = WRITE_ONLY, .psn = psn0(p) + i,
                         .ackreq = true };

        len = peer_build(p, &k, b);
        world_inject(&p->w, 0, b, len);
        world_run(&p->w, 10);
    }
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
    peer_expect_aeth(p, 0x1f, psn0(p) + 9);
    peer_expect_nothing(p);
    peer_free(p);
}

/*
 * The message has come and its CQE been read: software may destroy the QP
 * before the acknowledge has left.  The peer gets it all the same.
 */
static void acknowledged_by_the_dead(void **state)
{
    static const int ways[] = { QHCA_QPS_RESET, QHCA_QPS_ERR, -1 };
    struct qhca_qpc c = { 0 };
    struct peer *p;
    uint8_t b[4400];
    size_t len;
    unsigned i;

    (void)state;
    for (i = 0; i < 4 * sizeof(ways) / sizeof(ways[0]); i++) {
        bool blocked = i & 1, saved = i & 2;
        int to = ways[i / 4];
        struct pkt k = { .op = SEND_ONLY, .data = data, .len = MTU,
                         .ackreq = true };

        p = peer_new(QHCA_QPT_RC, NULL);
        peer_recv(p, 1, 0, 4096);
        k.psn = psn0(p);
        p->w.wire.refuse = blocked ? 65536 : 0;
        len = peer_build(p, &k, b);
        world_inject(&p->w, 0, b, len);
        if (blocked) {
            world_run(&p->w, 10);       /* it has found the wire blocked */
        }
        peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        if (to < 0) {
            assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
            p->qp.qpn = 0;
        } else {
            c.state = (uint8_t)to;
            assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_STATE),
                             QHCA_ST_OK);
        }
        if (saved) {                    /* the loaded adapter sends it */
            node_reborn(p->n, &p->e->ops);
            p->e = p->n->e;
        }
        p->w.wire.refuse = 0;
        world_run(&p->w, 1000000);
        peer_expect_aeth(p, 0x1f, psn0(p));
        peer_expect_nothing(p);
        assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_ACK_TX), 1);
        peer_free(p);
    }
}

/* A result that is owed, and nothing once the adapter has failed. */
static void last_words(void **state)
{
    struct pkt k = { .op = FETCH_ADD, .va = PEER_IOVA, .swap = 3,
                     .ackreq = true };
    struct peer *p;
    uint8_t b[4400];
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        p = peer_new(QHCA_QPT_RC, NULL);
        k.psn = psn0(p);
        k.rkey = p->mr.key;
        p->w.wire.refuse = 65536;
        world_inject(&p->w, 0, b, peer_build(p, &k, b));
        world_run(&p->w, 10);
        assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
        p->qp.qpn = 0;
        if (i) {
            qhca_fatal(p->e, QHCA_FATAL_INTERNAL);
        }
        p->w.wire.refuse = 0;
        world_run(&p->w, 1000000);
        if (i) {
            peer_expect_nothing(p);
            qhca_reset(p->e);
            p->qp = (struct gqp) { 0 };
            peer_drop(p);
        } else {
            peer_expect(p, ATOMIC_ACK, psn0(p));
            peer_free(p);
        }
    }
}

/* One NAK per gap; the packet that fills it is accepted. */
static void out_of_sequence(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p);

    (void)state;
    peer_recv(p, 1, 0, 4096);
    peer_recv(p, 2, 0, 4096);
    peer_tx(p, .op = SEND_ONLY, .psn = s + 1, .ackreq = true);
    peer_expect_aeth(p, 0x60, s);
    peer_tx(p, .op = SEND_ONLY, .psn = s + 2, .ackreq = true);
    peer_tx(p, .op = SEND_ONLY, .psn = s + 1, .ackreq = true);
    peer_expect_nothing(p);
    peer_no_cqe(p, rcq);
    peer_tx(p, .op = SEND_ONLY, .psn = s);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_tx(p, .op = SEND_ONLY, .psn = s + 2);
    peer_expect_aeth(p, 0x60, s + 1);   /* a new gap, a new NAK */
    peer_tx(p, .op = SEND_ONLY, .psn = s + 1, .ackreq = true);
    peer_cqe(p, rcq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_expect_aeth(p, 0x1f, s + 1);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_SEQ_NAK_TX), 2);
    peer_free(p);
}

/* A duplicate is acknowledged with the newest PSN and changes nothing. */
static void duplicates(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p);

    (void)state;
    peer_recv(p, 1, 0, 4096);
    peer_tx(p, .op = WRITE_ONLY, .psn = s, .va = PEER_IOVA + 500,
            .rkey = p->mr.key, .dmalen = 4, .data = "AAAA", .len = 4);
    peer_tx(p, .op = SEND_ONLY, .psn = s + 1, .data = "x", .len = 1,
            .ackreq = true);
    peer_expect_aeth(p, 0x1f, s + 1);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_tx(p, .op = WRITE_ONLY, .psn = s, .va = PEER_IOVA + 500,
            .rkey = p->mr.key, .dmalen = 4, .data = "BBBB", .len = 4,
            .ackreq = true);
    peer_expect_aeth(p, 0x1f, s + 1);
    is_in_memory(p, 500, "AAAA", 4);
    peer_tx(p, .op = SEND_ONLY, .psn = s + 1, .data = "x", .len = 1,
            .ackreq = true);
    peer_expect_aeth(p, 0x1f, s + 1);
    peer_no_cqe(p, rcq);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_DUPLICATE), 2);
    peer_free(p);
}

/* RNR at the first packet of a SEND and the last of a WRITE_IMM. */
static void not_ready(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p);

    (void)state;
    peer_tx(p, .op = SEND_ONLY, .psn = s, .data = "y", .len = 1);
    peer_expect_aeth(p, 0x20 | 12, s);
    peer_tx(p, .op = SEND_ONLY, .psn = s + 1);  /* was in flight */
    peer_expect_nothing(p);
    peer_recv(p, 1, 0, 16);
    peer_tx(p, .op = SEND_ONLY, .psn = s, .data = "y", .len = 1,
            .ackreq = true);
    peer_expect_aeth(p, 0x1f, s);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);

    peer_tx(p, .op = WRITE_FIRST, .psn = s + 1, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = MTU + 5, .data = data, .len = MTU);
    peer_tx(p, .op = WRITE_LAST_IMM, .psn = s + 2, .data = data + MTU,
            .len = 5, .imm = 7, .ackreq = true);
    peer_expect_aeth(p, 0x20 | 12, s + 2);
    peer_recv(p, 2, 0, 0);
    peer_tx(p, .op = WRITE_LAST_IMM, .psn = s + 2, .data = data + MTU,
            .len = 5, .imm = 7, .ackreq = true);
    peer_expect_aeth(p, 0x1f, s + 2);
    peer_cqe(p, rcq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.opcode, QHCA_CQE_OP_RECV_RDMA_IMM);
    assert_int_equal(p->cqe.byte_len, MTU + 5);
    is_in_memory(p, 0, data, MTU + 5);
    /* a WRITE without immediate data needs none */
    peer_tx(p, .op = WRITE_ONLY, .psn = s + 3, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 1, .data = "z", .len = 1,
            .ackreq = true);
    peer_expect_aeth(p, 0x1f, s + 3);
    peer_free(p);
}

static void read(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    const struct pframe *f;
    uint32_t s = psn0(p), i;

    (void)state;
    peer_tx(p, .op = READ_REQ, .psn = s, .va = PEER_IOVA + 33,
            .rkey = p->mr.key, .dmalen = 3 * MTU + 1);
    peer_tx(p, .op = WRITE_ONLY, .psn = s + 4, .ackreq = true);
    for (i = 0; i < 4; i++) {
        static const uint8_t ops[] = {
            RESP_FIRST, RESP_MIDDLE, RESP_MIDDLE, RESP_LAST
        };
        unsigned ext = ops[i] == RESP_MIDDLE ? 0 : 4;

        f = peer_expect(p, ops[i], s + i);
        if (ext) {
            assert_int_equal(f->ext[0], 0x1f);
        }
        assert_int_equal(f->body - f->pad - ext, i == 3 ? 1 : MTU);
        assert_memory_equal(f->ext + ext, peer_data(33 + i * MTU, 1), 1);
    }
    peer_expect_aeth(p, 0x1f, s + 4);
    /* a part of it again: a new response */
    peer_tx(p, .op = READ_REQ, .psn = s + 2, .va = PEER_IOVA + 33 + 2 * MTU,
            .rkey = p->mr.key, .dmalen = MTU + 1);
    f = peer_expect(p, RESP_FIRST, s + 2);
    assert_memory_equal(f->ext + 4, peer_data(33 + 2 * MTU, MTU), MTU);
    peer_expect(p, RESP_LAST, s + 3);
    /* one that exceeds the original request is ignored */
    peer_tx(p, .op = READ_REQ, .psn = s + 3, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 3 * MTU);
    peer_expect_nothing(p);
    /* no bytes: no key needed */
    peer_tx(p, .op = READ_REQ, .psn = s + 5);
    f = peer_expect(p, RESP_ONLY, s + 5);
    assert_int_equal(f->body, 4);
    peer_free(p);
}

/* The strictest known requester: Soft-RoCE's rules for READ responses. */
struct reader {
    uint32_t psn;               /* next expected PSN */
    uint32_t first, last;       /* of its newest request */
    int op;                     /* previous opcode, -1: none */
};

static void reader_take(struct reader *r, const struct pframe *f)
{
    if (f->psn != r->psn) {
        return;                 /* unexpected: ignored */
    }
    if (r->op < 0) {
        assert_true(f->op == RESP_FIRST || f->op == RESP_ONLY);
    } else if (f->op == RESP_FIRST) {
        assert_int_equal(f->psn, r->first);
    } else if (f->op == RESP_ONLY) {
        assert_int_equal(r->first, r->last);
    }
    assert_int_equal(f->psn == r->last,
                     f->op == RESP_LAST || f->op == RESP_ONLY);
    r->op = f->op;
    r->psn++;
}

/* Packet @lost of a READ response is lost; the rest is requested again. */
static void read_resumed_at(unsigned lost, bool meanwhile)
{
    const uint32_t count = 10, len = (count - 1) * MTU + 7;
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = p->a.rq_psn = 100;
    struct pkt k = { .op = READ_REQ, .psn = s, .va = PEER_IOVA,
                     .rkey = p->mr.key, .dmalen = len };
    struct reader r = { s, s, s + count - 1, -1 };

    qhca_qp_get(p->e, p->qp.qpn)->xp->exp_psn = s;
    p->w.wire.speed_mbps = 100;         /* some 27 us for a packet */
    p->w.wire.queue_ns = 30000;
    peer_send(p, k);
    world_run(&p->w, meanwhile ? 27000 * (lost + 2) : 1000000);
    if (!meanwhile || lost < 4) {
        assert_int_equal(peer_waiting(p) < count, meanwhile);
    }
    while (peer_waiting(p)) {
        const struct pframe *f = peer_next(p);

        if (f->psn != s + lost) {
            reader_take(&r, f);
        }
    }
    assert_int_equal(r.psn, s + lost);
    r.first = k.psn = r.psn;
    k.va += lost * MTU;
    k.dmalen -= lost * MTU;
    peer_send(p, k);
    world_run(&p->w, 1000000);
    while (peer_waiting(p)) {
        reader_take(&r, peer_next(p));
    }
    assert_int_equal(r.psn, s + count);
    peer_free(p);
}

static void read_resumed(void **state)
{
    unsigned lost;

    (void)state;
    for (lost = 0; lost < 10; lost++) {
        read_resumed_at(lost, false);
        read_resumed_at(lost, true);
    }
}

static void atomics(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint64_t v = 100, other = 55;
    const struct pframe *f;
    uint32_t s = psn0(p);

    (void)state;
    gbuf_write(&p->mr.buf, 64, &v, 8);
    peer_tx(p, .op = FETCH_ADD, .psn = s, .va = PEER_IOVA + 64,
            .rkey = p->mr.key, .swap = 5);
    f = peer_expect(p, ATOMIC_ACK, s);
    assert_int_equal(f->ext[0], 0x1f);
    assert_int_equal(peer_be64(f->ext + 4), 100);
    gbuf_read(&p->mr.buf, 64, &v, 8);
    assert_int_equal(v, 105);
    peer_tx(p, .op = CMP_SWAP, .psn = s + 1, .va = PEER_IOVA + 64,
            .rkey = p->mr.key, .swap = 1, .cmp = 104);
    f = peer_expect(p, ATOMIC_ACK, s + 1);
    assert_int_equal(peer_be64(f->ext + 4), 105);
    gbuf_read(&p->mr.buf, 64, &v, 8);
    assert_int_equal(v, 105);
    peer_tx(p, .op = CMP_SWAP, .psn = s + 2, .va = PEER_IOVA + 64,
            .rkey = p->mr.key, .swap = 1, .cmp = 105);
    f = peer_expect(p, ATOMIC_ACK, s + 2);
    assert_int_equal(peer_be64(f->ext + 4), 105);
    /* the first again: the original answer, no second addition */
    gbuf_write(&p->mr.buf, 64, &other, 8);
    peer_tx(p, .op = FETCH_ADD, .psn = s, .va = PEER_IOVA + 64,
            .rkey = p->mr.key, .swap = 5);
    f = peer_expect(p, ATOMIC_ACK, s);
    assert_int_equal(peer_be64(f->ext + 4), 100);
    gbuf_read(&p->mr.buf, 64, &v, 8);
    assert_int_equal(v, 55);
    peer_free(p);
}

/* An atomic with a PSN used one PSN wrap earlier. */
static void atomic_one_lap_later(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct pkt k = { .op = FETCH_ADD, .psn = psn0(p), .va = PEER_IOVA + 64,
                     .rkey = p->mr.key, .swap = 5 };
    uint64_t v = 100;

    (void)state;
    gbuf_write(&p->mr.buf, 64, &v, 8);
    peer_send(p, k);
    assert_int_equal(peer_be64(peer_expect(p, ATOMIC_ACK, k.psn)->ext + 4),
                     100);
    qhca_qp_get(p->e, p->qp.qpn)->xp->exp_psn = k.psn;
    peer_send(p, k);
    assert_int_equal(peer_be64(peer_expect(p, ATOMIC_ACK, k.psn)->ext + 4),
                     105);
    peer_send(p, k);                    /* a duplicate of the second */
    assert_int_equal(peer_be64(peer_expect(p, ATOMIC_ACK, k.psn)->ext + 4),
                     105);
    gbuf_read(&p->mr.buf, 64, &v, 8);
    assert_int_equal(v, 110);
    peer_free(p);
}

/* More READs at once than negotiated. */
static void too_many_reads(void **state)
{
    struct gqp_attr a;
    struct peer *p;
    uint8_t b[4400];
    unsigned i;

    (void)state;
    peer_attr_default(&a);
    a.max_dest_rd_atomic = 2;
    p = peer_new(QHCA_QPT_RC, &a);
    p->w.wire.refuse = 65536;
    for (i = 0; i < 3; i++) {
        struct pkt k = { .op = READ_REQ, .psn = psn0(p) + i,
                         .va = PEER_IOVA, .rkey = p->mr.key, .dmalen = 4 };

        world_inject(&p->w, 0, b, peer_build(p, &k, b));
        world_run(&p->w, 10);
    }
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
    /* the accepted ones are still answered, in order */
    peer_expect(p, RESP_ONLY, psn0(p));
    peer_expect(p, RESP_ONLY, psn0(p) + 1);
    peer_expect_aeth(p, 0x61, psn0(p) + 2);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_free(p);
}

/* Invalid requests, and the NAK, CQE and event of each. */
static void refused(void **state)
{
    enum { NONE, LEN, PROT, INV };
    static const struct {
        const char *what;
        struct pkt k;           /* va is relative to the region */
        uint8_t nak;
        uint8_t cqe;            /* status of the receive, 0: flushed */
        uint8_t event;
        bool foreign_key;
        bool deny;              /* the QP allows nothing */
    } t[] = {
        { "WRITE beyond the region",
          { .op = WRITE_ONLY, .va = PEER_BUF - 3, .dmalen = 4, .len = 4 },
          0x62, 0, QHCA_EV_QP_ACCESS_ERR, false, false },
        { "WRITE_FIRST whose end lies beyond",
          { .op = WRITE_FIRST, .va = PEER_BUF - 300, .dmalen = 301,
            .len = MTU }, 0x62, 0, QHCA_EV_QP_ACCESS_ERR, false, false },
        { "WRITE around the end of the address space",
          { .op = WRITE_ONLY, .va = -PEER_IOVA - 2, .dmalen = 4, .len = 4 },
          0x62, 0, QHCA_EV_QP_ACCESS_ERR, false, false },
        { "WRITE with a key that does not exist",
          { .op = WRITE_ONLY, .dmalen = 4, .len = 4 },
          0x62, 0, QHCA_EV_QP_ACCESS_ERR, true, false },
        { "READ with it", { .op = READ_REQ, .dmalen = 4 },
          0x62, 0, QHCA_EV_QP_ACCESS_ERR, true, false },
        { "atomic with it", { .op = FETCH_ADD }, 0x62, 0,
          QHCA_EV_QP_ACCESS_ERR, true, false },
        { "atomic not aligned", { .op = FETCH_ADD, .va = 4 }, 0x61, 0,
          QHCA_EV_QP_REQ_ERR, false, false },
        { "WRITE the QP does not allow",
          { .op = WRITE_ONLY, .dmalen = 4, .len = 4 }, 0x61, 0,
          QHCA_EV_QP_REQ_ERR, false, true },
        { "READ the QP does not allow",
          { .op = READ_REQ, .dmalen = 4 }, 0x61, 0, QHCA_EV_QP_REQ_ERR,
          false, true },
        { "atomic the QP does not allow", { .op = CMP_SWAP }, 0x61, 0,
          QHCA_EV_QP_REQ_ERR, false, true },
        { "WRITE shorter than it says",
          { .op = WRITE_ONLY, .dmalen = 8, .len = 4 }, 0x61, 0,
          QHCA_EV_QP_REQ_ERR, false, false },
        { "WRITE longer than it says",
          { .op = WRITE_ONLY, .dmalen = 3, .len = 4 }, 0x61, 0,
          QHCA_EV_QP_REQ_ERR, false, false },
        { "WRITE_FIRST that would be the only",
          { .op = WRITE_FIRST, .dmalen = MTU, .len = MTU }, 0x61, 0,
          QHCA_EV_QP_REQ_ERR, false, false },
        { "READ of more than 2 GiB",
          { .op = READ_REQ, .dmalen = 0x80000001 }, 0x61, 0,
          QHCA_EV_QP_REQ_ERR, false, false },
        { "first packet shorter than the path MTU",
          { .op = SEND_FIRST, .len = MTU - 4 }, 0x61, 0,
          QHCA_EV_QP_REQ_ERR, false, false },
        { "packet longer than the path MTU",
          { .op = SEND_ONLY, .len = MTU + 1 }, 0x61, 0, QHCA_EV_QP_REQ_ERR,
          false, false },
        { "middle without a first", { .op = SEND_MIDDLE, .len = MTU },
          0x61, 0, QHCA_EV_QP_REQ_ERR, false, false },
        { "last without a first", { .op = WRITE_LAST, .len = 4 },
          0x61, 0, QHCA_EV_QP_REQ_ERR, false, false },
        { "SEND longer than the receive", { .op = SEND_ONLY, .len = 101 },
          0x61, QHCA_WC_LOC_LEN_ERR, 0, false, false },
        { "invalidate of a key that does not exist",
          { .op = SEND_ONLY_INV, .imm = 0xdead00, .len = 4 }, 0x62,
          QHCA_WC_REM_INV_REQ_ERR, QHCA_EV_QP_ACCESS_ERR, false, false },
        { "invalidate of an ordinary region",
          { .op = SEND_ONLY_INV, .imm = 1, .len = 4 }, 0x62,
          QHCA_WC_REM_INV_REQ_ERR, QHCA_EV_QP_ACCESS_ERR, false, false },
    };
    static const uint8_t events[] = {
        QHCA_EV_QP_FATAL, QHCA_EV_QP_REQ_ERR, QHCA_EV_QP_ACCESS_ERR
    };
    unsigned i, j;

    (void)state;
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct gqp_attr a;
        struct peer *p;
        struct pkt k = t[i].k;

        print_message("  %s\n", t[i].what);
        peer_attr_default(&a);
        if (t[i].deny) {
            a.access = 0;
        }
        p = peer_new(QHCA_QPT_RC, &a);
        peer_recv(p, 1, 0, 100);
        peer_recv(p, 2, 0, 100);
        k.psn = psn0(p);
        k.va += PEER_IOVA;
        k.rkey = t[i].foreign_key ? p->mr.key ^ 0x55 : p->mr.key;
        if (k.imm == 1) {
            k.imm = p->mr.key;
        }
        k.data = data;
        peer_send(p, k);
        peer_expect_aeth(p, t[i].nak, psn0(p));
        peer_expect_nothing(p);
        assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        if (t[i].cqe) {
            peer_run(p);
            assert_true(gcq_poll(&p->rcq, &p->cqe));
            assert_int_equal(p->cqe.status, t[i].cqe);
            assert_int_equal(p->cqe.wr_id, 1);
        } else {
            peer_cqe(p, rcq, 1, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        }
        peer_cqe(p, rcq, 2, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        for (j = 0; j < sizeof(events); j++) {
            assert_int_equal(p->g.async_count[events[j]],
                             t[i].event == events[j]);
        }
        if (k.op != SEND_ONLY_INV) {
            untouched(p);
        }
        /* the QP no longer responds */
        k.psn++;
        peer_send(p, k);
        peer_expect_nothing(p);
        peer_free(p);
    }
}

/* The receive buffer is invalid: remote operational error. */
static void bad_receives(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_sge sge = { .addr = PEER_IOVA, .len = 64 };
    uint16_t many = 8;

    (void)state;
    sge.lkey = p->mr.key ^ 1;
    assert_true(gqp_post_recv(&p->qp, 1, &sge, 1));
    peer_tx(p, .op = SEND_ONLY, .psn = psn0(p), .data = "q", .len = 1);
    peer_cqe(p, rcq, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_KEY_INVALID);
    peer_expect_aeth(p, 0x63, psn0(p));
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_free(p);

    p = peer_new(QHCA_QPT_RC, NULL);
    peer_recv(p, 1, 0, 64);
    gqp_rq_poke(&p->qp, 0, 8, &many, 2);        /* 7 fit */
    peer_tx(p, .op = SEND_ONLY, .psn = psn0(p), .data = "q", .len = 1);
    peer_cqe(p, rcq, 1, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE);
    peer_expect_aeth(p, 0x63, psn0(p));
    untouched(p);
    peer_free(p);
}

/* There may be room for more than the longest message, but there is none. */
static void longest_send(void **state)
{
    unsigned more;

    (void)state;
    for (more = 0; more < 2; more++) {
        struct peer *p = peer_new(QHCA_QPT_RC, NULL);
        struct qhca_recv *r = &qhca_qp_get(p->e, p->qp.qpn)->xp->recv;
        struct qhca_sge sge[] = {
            { .addr = PEER_IOVA, .len = QHCA_MAX_MSG_SIZE,
              .lkey = p->mr.key },
            { .addr = PEER_IOVA + MTU, .len = 4096, .lkey = p->mr.key },
        };

        assert_true(gqp_post_recv(&p->qp, 1, sge, 2));
        peer_tx(p, .op = SEND_FIRST, .psn = psn0(p), .data = peer_data(0, MTU),
                .len = MTU, .ackreq = true);
        peer_expect_aeth(p, 0x1f, psn0(p));
        /* as if only the last packet were missing: it goes to the same place */
        sge[0].addr = PEER_IOVA - QHCA_MAX_MSG_SIZE + MTU;
        memcpy(r->wqe + sizeof(struct qhca_rq_wqe), &sge[0].addr, 8);
        r->len = QHCA_MAX_MSG_SIZE - MTU;
        if (more) {
            peer_tx(p, .op = SEND_MIDDLE, .psn = psn0(p) + 1,
                    .data = peer_data(0, MTU), .len = MTU, .ackreq = true);
            peer_expect_aeth(p, 0x1f, psn0(p) + 1);
            peer_tx(p, .op = SEND_LAST, .psn = psn0(p) + 2, .data = "q",
                    .len = 1, .ackreq = true);
            peer_expect_aeth(p, 0x61, psn0(p) + 2);
            peer_cqe(p, rcq, 1, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_RQ_LENGTH);
            assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        } else {
            peer_tx(p, .op = SEND_LAST, .psn = psn0(p) + 1,
                    .data = peer_data(0, MTU), .len = MTU, .ackreq = true);
            peer_expect_aeth(p, 0x1f, psn0(p) + 1);
            peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
            assert_int_equal(p->cqe.byte_len, QHCA_MAX_MSG_SIZE);
        }
        peer_free(p);
    }
}

/* A region is destroyed while a READ from it is answered. */
static void region_vanishes(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gmr mr;
    struct pkt k = { .op = READ_REQ, .psn = psn0(p), .dmalen = 4 };
    uint8_t b[4400];

    (void)state;
    gmr_create(&mr, &p->g, 4096, 0x1000, QHCA_ACCESS_MASK, NULL);
    gbuf_allow(&mr.buf, 0, 4096, GMEM_R);
    k.va = 0x1000;
    k.rkey = mr.key;
    p->w.wire.refuse = 65536;
    world_inject(&p->w, 0, b, peer_build(p, &k, b));
    world_run(&p->w, 10);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
    peer_expect_aeth(p, 0x62, psn0(p));
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_free(p);
}

/* ERR: receives posted later are flushed when software rings. */
static void flush_later_receives(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    peer_recv(p, 1, 0, 64);
    assert_int_equal(guest_dbrec_flags(&p->g, p->qp.dbrec), 0);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_ERR), QHCA_ST_OK);
    peer_cqe(p, rcq, 1, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    assert_int_equal(guest_dbrec_flags(&p->g, p->qp.dbrec),
                     QHCA_DBREC_NOTIFY);
    peer_recv(p, 2, 0, 64);
    guest_doorbell(&p->g, p->qp.uar, QHCA_DB_RQ, p->qp.qpn);
    peer_cqe(p, rcq, 2, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    peer_free(p);
}

/* The first request in RTR is reported, once, and answered. */
static void communication_established(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p);

    (void)state;
    assert_int_equal(p->g.async_count[QHCA_EV_COMM_EST], 0);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
    gqp_to_init(&p->qp, &p->a);
    peer_tx(p, .op = WRITE_ONLY, .psn = s, .ackreq = true);
    peer_expect_nothing(p);             /* no response in INIT */
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    peer_tx(p, .op = ACK, .psn = s, .syn = 0x1f);
    assert_int_equal(p->g.async_count[QHCA_EV_COMM_EST], 0);
    peer_tx(p, .op = WRITE_ONLY, .psn = s, .ackreq = true);
    peer_expect_aeth(p, 0x1f, s);
    peer_tx(p, .op = WRITE_ONLY, .psn = s + 1, .ackreq = true);
    peer_expect_aeth(p, 0x1f, s + 1);
    assert_int_equal(p->g.async_count[QHCA_EV_COMM_EST], 1);
    gqp_to_rts(&p->qp, &p->a);
    peer_free(p);
}

/* Replace @p's QP, which is returned, with one on an SRQ. */
static struct gqp srq_open(struct peer *p, struct gsrq *srq)
{
    struct gqp_init qi = {
        .type = QHCA_QPT_RC, .sq_shift = 4, .sq_stride = 6, .srq = srq,
        .scq = &p->scq, .rcq = &p->rcq,
    };
    struct gqp old = p->qp;

    gsrq_create(srq, &p->g, 4, 6, NULL, NULL);
    gqp_create(&p->qp, &p->g, &qi);
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    gqp_to_rts(&p->qp, &p->a);
    return old;
}

/* Close both, and @p with its original QP. */
static void srq_close(struct peer *p, struct gsrq *srq, const struct gqp *old)
{
    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(srq), QHCA_ST_OK);
    p->qp = *old;
    peer_free(p);
}

/* A QP on an SRQ: the receive it holds is flushed, then LAST_WQE. */
static void last_wqe(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_sge sge = { .addr = PEER_IOVA, .len = 1000,
                            .lkey = p->mr.key };
    struct gsrq srq;
    struct gqp old = srq_open(p, &srq);
    uint32_t wqe[2], s = psn0(p);

    (void)state;
    assert_true(gsrq_post(&srq, 21, &sge, 1, &wqe[0]));
    assert_true(gsrq_post(&srq, 22, &sge, 1, &wqe[1]));
    peer_tx(p, .op = SEND_FIRST, .psn = s, .data = data, .len = MTU);
    peer_no_cqe(p, rcq);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_ERR), QHCA_ST_OK);
    peer_cqe(p, rcq, 21, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    assert_int_equal(p->cqe.wqe_index, wqe[0]);
    assert_true(p->cqe.flags & QHCA_CQE_F_SRQ);
    assert_int_equal(p->g.async_count[QHCA_EV_LAST_WQE], 1);
    peer_no_cqe(p, rcq);                /* the other one is not ours */
    srq_close(p, &srq, &old);
}

/* ---- steps through receives of an SRQ ---- */

static struct {
    uint32_t qpn, srqn, cqn, psn, wqe[4];
} srq_seen;

/* Four messages of 1, 3, 1 and 1 packets; the SRQ's WQEs out of order. */
static void srq_traffic(void)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_sge sge = { .addr = PEER_IOVA, .len = 1000,
                            .lkey = p->mr.key };
    struct gsrq srq;
    struct gqp old = srq_open(p, &srq);
    uint32_t s = psn0(p), spare[3];
    unsigned i;

    srq_seen.qpn = p->qp.qpn;
    srq_seen.srqn = srq.srqn;
    srq_seen.cqn = p->rcq.cqn;
    srq_seen.psn = s;
    for (i = 0; i < 3; i++) {
        assert_true(gsrq_post(&srq, 0, &sge, 1, &spare[i]));
    }
    for (i = 0; i < 3; i++) {
        peer_tx(p, .op = SEND_ONLY, .psn = s + i, .ackreq = true);
        peer_cqe(p, rcq, 0, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    /* returned in reverse order, and so taken again */
    gsrq_release(&srq, spare[0]);
    gsrq_release(&srq, spare[2]);
    gsrq_release(&srq, spare[1]);
    for (i = 0; i < 4; i++) {
        assert_true(gsrq_post(&srq, 30 + i, &sge, 1, &srq_seen.wqe[i]));
    }
    s = srq_seen.psn = (s + 3) & 0xffffff;
    p->tail = p->head;
    steps_begin(p->n);
    peer_tx(p, .op = SEND_ONLY, .psn = s, .data = data, .len = 1);
    peer_tx(p, .op = SEND_FIRST, .psn = s + 1, .data = data, .len = MTU);
    peer_tx(p, .op = SEND_MIDDLE, .psn = s + 2, .data = data, .len = MTU);
    peer_tx(p, .op = SEND_LAST, .psn = s + 3, .data = data, .len = 3);
    peer_tx(p, .op = WRITE_ONLY_IMM, .psn = s + 4, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 4, .data = data, .len = 4);
    peer_tx(p, .op = SEND_ONLY_IMM, .psn = s + 5, .ackreq = true);
    peer_run(p);
    steps_end(p->n);
    p->tail = p->head;
    for (i = 0; i < 4; i++) {
        peer_cqe(p, rcq, 30 + i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    srq_close(p, &srq, &old);
}

static void srq_stepped(void **state)
{
    static const uint8_t op[] = {
        SEND_ONLY, SEND_FIRST, SEND_MIDDLE, SEND_LAST, WRITE_ONLY_IMM,
        SEND_ONLY_IMM
    };
    const struct qhca_trace *t;
    unsigned i;

    (void)state;
    steps_check(srq_traffic);
    steps_packets_in(srq_seen.qpn, srq_seen.psn, op, 6);
    assert_int_equal(steps_count(QHCA_ON_RECV_WQE), 4);
    assert_int_equal(steps_count(QHCA_ON_CQE), 4);
    for (i = 0; i < 4; i++) {
        t = steps_event(QHCA_ON_RECV_WQE, i);
        assert_int_equal(t->num, srq_seen.qpn);
        assert_int_equal(t->index, srq_seen.wqe[i]);
        assert_int_equal(t->b, 30 + i);
        t = steps_event(QHCA_ON_CQE, i);
        assert_int_equal(t->num, srq_seen.cqn);
        assert_int_equal(t->index, 3 + i);
        assert_int_equal(t->peer, srq_seen.qpn);
        assert_int_equal(t->wqe, srq_seen.wqe[i]);
        assert_int_equal(t->b, 30 + i);
    }
    /* the order is not that of a counter */
    assert_true(srq_seen.wqe[1] < srq_seen.wqe[0] ||
                srq_seen.wqe[2] < srq_seen.wqe[1]);
}

/* A READ repeated while it is being answered is answered once. */
static void read_again_meanwhile(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct pkt k = { .op = READ_REQ, .psn = psn0(p), .va = PEER_IOVA,
                     .rkey = p->mr.key, .dmalen = 100 * MTU };
    uint8_t b[4400];
    unsigned i;

    (void)state;
    p->w.wire.refuse = 65536;
    for (i = 0; i < 50; i++) {
        world_inject(&p->w, 0, b, peer_build(p, &k, b));
        world_run(&p->w, 10);
    }
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
    assert_int_equal(peer_waiting(p), 100);
    peer_expect(p, RESP_FIRST, psn0(p));
    p->tail = p->head;
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_DUPLICATE), 49);
    peer_free(p);
}

/* The same if its peer is on this adapter, and the loopback ring is full. */
static void acknowledged_to_itself(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    struct qhca_xport_dev *xd = p->e->xd;
    uint64_t acks = qhca_stat(p->e, QHCA_STAT_ROCE_ACK_TX);
    uint8_t *f;

    (void)state;
    memcpy(qp->av.dgid, xd->gids[p->a.gid_index].gid, sizeof(qp->av.dgid));
    memset(qp->av.dmac, 0, sizeof(qp->av.dmac));
    while ((f = qhca_loop_slot(p->e)) != NULL) {
        memset(f, 0, 64);
        qhca_loop_commit(p->e, 64);
    }
    qhca_owe_ack(p->e, qp, psn0(p));
    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    p->qp.qpn = 0;
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_ACK_TX), acks + 1);
    peer_run(p);
    assert_int_equal(peer_waiting(p), 0);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send),
        cmocka_unit_test(coalesced_acks),
        cmocka_unit_test(acknowledged_by_the_dead),
        cmocka_unit_test(last_words),
        cmocka_unit_test(acknowledged_to_itself),
        cmocka_unit_test(out_of_sequence),
        cmocka_unit_test(duplicates),
        cmocka_unit_test(not_ready),
        cmocka_unit_test(read),
        cmocka_unit_test(read_resumed),
        cmocka_unit_test(atomics),
        cmocka_unit_test(atomic_one_lap_later),
        cmocka_unit_test(too_many_reads),
        cmocka_unit_test(refused),
        cmocka_unit_test(bad_receives),
        cmocka_unit_test(longest_send),
        cmocka_unit_test(region_vanishes),
        cmocka_unit_test(flush_later_receives),
        cmocka_unit_test(communication_established),
        cmocka_unit_test(last_wqe),
        cmocka_unit_test(srq_stepped),
        cmocka_unit_test(read_again_meanwhile),
    };

    pattern_bytes(99, 0, data, sizeof(data));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
