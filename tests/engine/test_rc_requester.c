/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The RC requester and the acknowledgments it gets, packet by packet. */
#include "peer.h"
#include "adapter/adapter.h"

#define MTU 256
#define RTO (4096ull << 10)     /* timeout code 10 */
#define SIG QHCA_WQE_F_SIGNALED

static uint32_t psn0(const struct peer *p)
{
    return p->a.sq_psn;
}

/* Segmentation, opcodes, PSN wrap, AckReq, immediate data, payload. */
static void segmentation(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    const struct pframe *f;
    uint32_t s = psn0(p);

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND_IMM, .wr_id = 1,
                               .imm = 0x04030201,
                               .flags = SIG | QHCA_WQE_F_SOLICITED },
              100, 2 * MTU + 3);
    f = peer_expect(p, SEND_FIRST, s);
    assert_false(f->ackreq || f->se);
    assert_int_equal(f->body, MTU);
    assert_memory_equal(f->ext, peer_data(100, MTU), MTU);
    f = peer_expect(p, SEND_MIDDLE, s + 1);
    assert_false(f->ackreq || f->se);
    f = peer_expect(p, SEND_LAST_IMM, s + 2);
    assert_true(f->ackreq && f->se);
    assert_int_equal(f->pad, 1);
    assert_memory_equal(f->ext, "\1\2\3\4", 4);
    assert_memory_equal(f->ext + 4, peer_data(100 + 2 * MTU, 3), 3);
    peer_expect_nothing(p);
    peer_no_cqe(p, scq);
    peer_ack(p, s + 2, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);

    /* exactly two path MTUs: no empty last packet */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 2,
                               .flags = SIG, .remote_addr = 0x1122334455667788,
                               .rkey = 0xabcd }, 0, 2 * MTU);
    f = peer_expect(p, WRITE_FIRST, s + 3);
    assert_true(peer_be64(f->ext) == 0x1122334455667788);
    assert_int_equal(peer_be32(f->ext + 8), 0xabcd);
    assert_int_equal(peer_be32(f->ext + 12), 2 * MTU);
    f = peer_expect(p, WRITE_LAST, s + 4);
    assert_int_equal(f->body, MTU);
    /* an empty message is a packet, too */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE_IMM,
                               .wr_id = 3, .flags = SIG, .imm = 0xffffffff },
              0, 0);
    f = peer_expect(p, WRITE_ONLY_IMM, s + 5);
    assert_int_equal(f->body, 20);
    peer_ack(p, s + 5, 0x1f);   /* one ACK for both */
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* SGEs of odd sizes, an empty one among them; inline data. */
static void gather(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    static const uint32_t len[] = { 1, 255, 0, 300, 7 };
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .wr_id = 9, .flags = SIG };
    uint8_t want[563], got[563];
    const struct pframe *f;
    uint32_t off = 0, i;

    (void)state;
    for (i = 0; i < 5; i++) {
        wr.sge[i].addr = PEER_IOVA + 1000 * i;
        wr.sge[i].len = len[i];
        wr.sge[i].lkey = p->mr.key;
        memcpy(want + off, peer_data(1000 * i, len[i]), len[i]);
        off += len[i];
    }
    wr.num_sge = 5;
    peer_post(p, wr, 0, 0);
    f = peer_expect(p, SEND_FIRST, psn0(p));
    memcpy(got, f->ext, MTU);
    f = peer_expect(p, SEND_MIDDLE, psn0(p) + 1);
    memcpy(got + MTU, f->ext, MTU);
    f = peer_expect(p, SEND_LAST, psn0(p) + 2);
    assert_int_equal(f->body, 52);
    memcpy(got + 2 * MTU, f->ext, 51);
    assert_memory_equal(got, want, 563);
    /* the last again: its position in the list is found again */
    peer_ack(p, psn0(p) + 1, 0x60);
    peer_expect(p, SEND_MIDDLE, psn0(p) + 1);
    f = peer_expect(p, SEND_LAST, psn0(p) + 2);
    assert_memory_equal(f->ext, want + 2 * MTU, 51);

    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 10,
                               .flags = SIG | QHCA_WQE_F_INLINE,
                               .inl = "inline!", .inl_len = 7 }, 0, 0);
    f = peer_expect(p, SEND_ONLY, psn0(p) + 3);
    assert_memory_equal(f->ext, "inline!", 7);
    peer_ack(p, psn0(p) + 3, 0x1f);
    peer_cqe(p, scq, 9, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_cqe(p, scq, 10, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* NAK sequence error: go back, once per NAK however often it arrives. */
static void sequence_nak(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p), i;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 5 * MTU);
    for (i = 0; i < 5; i++) {
        peer_next(p);
    }
    peer_ack(p, s + 2, 0x60);
    peer_ack(p, s + 2, 0x60);
    peer_ack(p, s + 2, 0x60);
    peer_expect(p, SEND_MIDDLE, s + 2);
    peer_expect(p, SEND_MIDDLE, s + 3);
    peer_expect(p, SEND_LAST, s + 4);
    peer_expect_nothing(p);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RETRANSMITS), 3);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_SEQ_NAK_RX), 3);
    /* an old ACK, and one for a PSN never sent */
    peer_ack(p, s, 0x1f);
    peer_ack(p, s + 5, 0x1f);
    peer_ack(p, s + 100, 0x63);
    peer_no_cqe(p, scq);
    peer_ack(p, s + 4, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/*
 * No ACK: retransmitted after each timeout, then an error, flushes.  Each
 * timeout lasts twice as long as the one before, up to four times the first,
 * and leaves a quarter of the window: 64, 16, 4 and 1 packets.
 */
static void timeout(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    static const unsigned after[] = { 0, 1, 3, 7, 11 };
    uint64_t t0;
    uint32_t s = psn0(p), i;

    (void)state;
    t0 = p->w.now;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1 }, 0, 8);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 2 }, 0, 8);
    for (i = 0; i <= p->a.retry_cnt; i++) {
        const struct pframe *f = peer_expect(p, SEND_ONLY, s);

        if (i) {
            assert_true(f->t >= t0 + after[i] * RTO);
            assert_true(f->t < t0 + after[i] * RTO + 20000);
        }
        if (i < 3) {
            peer_expect(p, SEND_ONLY, s + 1);
        }
        peer_expect_nothing(p);
        peer_no_cqe(p, scq);
        world_run_until(&p->w, t0 + after[i + 1] * RTO + 10000);
    }
    peer_cqe(p, scq, 1, QHCA_WC_RETRY_EXC_ERR, QHCA_SYN_TIMEOUT);
    peer_cqe(p, scq, 2, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RETRY_EXCEEDED), 1);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_TIMEOUTS), 4);
    /* what is posted now is flushed, too */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 3 }, 0, 8);
    peer_cqe(p, scq, 3, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    peer_expect_nothing(p);
    peer_free(p);
}

/* The adapter's minimum ACK timeout replaces a shorter one of a QP. */
static void timeout_least(void **state)
{
    static const struct { uint8_t least, want; } each[] = {
        { 9, 10 }, { 10, 10 }, { 13, 13 },
    };
    static const unsigned after[] = { 0, 1, 3, 7, 11 };
    unsigned i, n;

    (void)state;
    for (i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        struct peer *p = peer_new(QHCA_QPT_RC, NULL);
        uint64_t t0 = p->w.now, rto = 4096ull << each[i].want;

        p->e->cfg.min_ack_timeout = each[i].least;
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND }, 0, 8);
        for (n = 0; n <= p->a.retry_cnt; n++) {
            peer_expect(p, SEND_ONLY, psn0(p));
            world_run_until(&p->w, t0 + after[n + 1] * rto - 20000);
            peer_expect_nothing(p);
            peer_no_cqe(p, scq);
            world_run_until(&p->w, t0 + after[n + 1] * rto + 10000);
        }
        peer_cqe(p, scq, 0, QHCA_WC_RETRY_EXC_ERR, QHCA_SYN_TIMEOUT);
        peer_free(p);
    }
}

/*
 * A blocked wire during a retransmission: no retry is used up, and no timer
 * fires again and again; the timer restarts with the packet.
 */
static void timeout_wire_blocked(void **state)
{
    struct gqp_attr a;
    struct peer *p;
    uint64_t timers;
    uint32_t s;

    (void)state;
    peer_attr_default(&a);
    a.timeout = 1;              /* 8 us */
    a.retry_cnt = 1;
    p = peer_new(QHCA_QPT_RC, &a);
    s = psn0(p);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1 }, 0, 8);
    peer_expect(p, SEND_ONLY, s);
    p->w.wire.refuse = 65536;
    world_run(&p->w, 100000);
    timers = p->n->timers;
    world_run(&p->w, 10000000);
    assert_in_range(p->n->timers - timers, 0, 2);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_TIMEOUTS), 1);
    assert_int_equal(peer_waiting(p), 0);
    p->w.wire.refuse = 0;
    world_run(&p->w, 5000000);
    peer_expect(p, SEND_ONLY, s);
    peer_cqe(p, scq, 1, QHCA_WC_RETRY_EXC_ERR, QHCA_SYN_TIMEOUT);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_TIMEOUTS), 2);
    peer_free(p);
}

/* Progress restores all retries; the timer restarts. */
static void progress(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p), i;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1 }, 0,
              20 * MTU);
    world_run(&p->w, 1000);
    for (i = 0; i < 19; i++) {
        p->tail = p->head;
        world_run(&p->w, RTO + 10000);          /* a timeout for each */
        peer_expect(p, i ? SEND_MIDDLE : SEND_FIRST, s + i);
        peer_ack(p, s + i, 0x1f);
    }
    p->tail = p->head;
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    peer_ack(p, s + 19, 0x1f);
    world_run(&p->w, 10 * RTO);
    assert_int_equal(peer_waiting(p), 0);
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    peer_free(p);
}

static void rnr(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p), i;
    uint64_t t;

    (void)state;
    /* code 14: 1.28 ms; code 0: 655.36 ms */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 8);
    peer_expect(p, SEND_ONLY, s);
    t = p->w.now;
    peer_ack(p, s, 0x20 | 14);
    world_run_until(&p->w, t + 1279000);
    assert_int_equal(peer_waiting(p), 0);
    world_run(&p->w, 20000);
    peer_expect(p, SEND_ONLY, s);
    t = p->w.now;
    peer_ack(p, s, 0x20);
    world_run_until(&p->w, t + 655300000);
    assert_int_equal(peer_waiting(p), 0);
    world_run(&p->w, 100000);
    peer_expect(p, SEND_ONLY, s);
    peer_ack(p, s, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    /* rnr_retry of them are tolerated */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 2 }, 0, 8);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 3 }, 0, 8);
    for (i = 0; i <= p->a.rnr_retry; i++) {
        peer_no_cqe(p, scq);
        peer_expect(p, SEND_ONLY, s + 1);
        peer_expect(p, SEND_ONLY, s + 2);
        peer_ack(p, s + 1, 0x20 | 1);
        world_run(&p->w, 30000);
    }
    peer_cqe(p, scq, 2, QHCA_WC_RNR_RETRY_EXC_ERR, QHCA_SYN_RNR);
    peer_cqe(p, scq, 3, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RNR_EXCEEDED), 1);
    peer_free(p);
}

/* rnr_retry 7 never ends. */
static void rnr_for_ever(void **state)
{
    struct gqp_attr a;
    struct peer *p;
    unsigned i;

    (void)state;
    peer_attr_default(&a);
    a.rnr_retry = 7;
    p = peer_new(QHCA_QPT_RC, &a);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 8);
    for (i = 0; i < 100; i++) {
        peer_expect(p, SEND_ONLY, psn0(p));
        peer_ack(p, psn0(p), 0x20 | 1);
        world_run(&p->w, 30000);
    }
    peer_expect(p, SEND_ONLY, psn0(p));
    peer_ack(p, psn0(p), 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* Fatal NAKs: status by code; earlier WQEs succeed. */
static void fatal_naks(void **state)
{
    static const struct {
        uint8_t nak, status, syn;
    } t[] = {
        { 0x61, QHCA_WC_REM_INV_REQ_ERR, QHCA_SYN_NAK_INV_REQ },
        { 0x62, QHCA_WC_REM_ACCESS_ERR, QHCA_SYN_NAK_ACCESS },
        { 0x63, QHCA_WC_REM_OP_ERR, QHCA_SYN_NAK_OP },
        { 0x64, QHCA_WC_BAD_RESP_ERR, QHCA_SYN_BAD_PACKET },
        { 0x45, QHCA_WC_BAD_RESP_ERR, QHCA_SYN_BAD_PACKET },
    };
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct peer *p = peer_new(QHCA_QPT_RC, NULL);
        uint32_t s = psn0(p);

        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE,
                                   .wr_id = 1, .flags = SIG }, 0, 600);
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE,
                                   .wr_id = 2 }, 0, 600);
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 3 },
                  0, 6);
        peer_run(p);
        peer_ack(p, s + 3, t[i].nak);
        peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        peer_cqe(p, scq, 2, t[i].status, t[i].syn);
        peer_cqe(p, scq, 3, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        peer_free(p);
    }
}

/* READ: request, responses; a lost one is requested again with the rest. */
static void read_lost_response(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint8_t d[1000], got[1000];
    const struct pframe *f;
    uint32_t s = psn0(p), i;

    (void)state;
    for (i = 0; i < 1000; i++) {
        d[i] = (uint8_t)(i * 7);
    }
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 5,
                               .flags = SIG, .remote_addr = 0x1000,
                               .rkey = 0x33 }, 40, 1000);
    f = peer_expect(p, READ_REQ, s);
    assert_int_equal(f->body, 16);
    assert_true(peer_be64(f->ext) == 0x1000);
    assert_int_equal(peer_be32(f->ext + 12), 1000);
    /* the next PSN comes after all responses */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 6,
                               .flags = SIG }, 0, 4);
    peer_expect(p, SEND_ONLY, s + 4);
    peer_tx(p, .op = RESP_FIRST, .psn = s, .syn = 0x1f, .data = d,
            .len = MTU);
    /* s + 1 is lost */
    peer_tx(p, .op = RESP_MIDDLE, .psn = s + 2, .data = d + 2 * MTU,
            .len = MTU);
    f = peer_expect(p, READ_REQ, s + 1);
    assert_true(peer_be64(f->ext) == 0x1000 + MTU);
    assert_int_equal(peer_be32(f->ext + 12), 1000 - MTU);
    peer_expect(p, SEND_ONLY, s + 4);
    peer_tx(p, .op = RESP_LAST, .psn = s + 3, .syn = 0x1f,
            .data = d + 3 * MTU, .len = 1000 - 3 * MTU);
    peer_expect_nothing(p);
    peer_tx(p, .op = RESP_FIRST, .psn = s + 1, .syn = 0x1f, .data = d + MTU,
            .len = MTU);
    /* a duplicate of an accepted one does nothing */
    peer_tx(p, .op = RESP_FIRST, .psn = s, .syn = 0x1f, .data = got,
            .len = MTU);
    peer_tx(p, .op = RESP_MIDDLE, .psn = s + 2, .data = d + 2 * MTU,
            .len = MTU);
    peer_no_cqe(p, scq);
    peer_tx(p, .op = RESP_LAST, .psn = s + 3, .syn = 0x1f,
            .data = d + 3 * MTU, .len = 1000 - 3 * MTU);
    peer_cqe(p, scq, 5, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.opcode, QHCA_CQE_OP_RDMA_READ);
    assert_int_equal(p->cqe.byte_len, 1000);
    gbuf_read(&p->mr.buf, 40, got, 1000);
    assert_memory_equal(got, d, 1000);
    peer_no_cqe(p, scq);
    peer_ack(p, s + 4, 0x1f);
    peer_cqe(p, scq, 6, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* The rest of a READ may begin with First, or continue as if without loss. */
static void read_goes_on(void **state)
{
    static const uint8_t ops[][2] = {
        { RESP_FIRST, RESP_LAST }, { RESP_MIDDLE, RESP_LAST },
        { RESP_FIRST, RESP_ONLY }, { RESP_MIDDLE, RESP_ONLY },
    };
    static const uint8_t d[3 * MTU];
    unsigned i;

    (void)state;
    for (i = 0; i < 4; i++) {
        struct peer *p = peer_new(QHCA_QPT_RC, NULL);
        uint32_t s = psn0(p);

        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                                   .flags = SIG }, 0, 3 * MTU);
        peer_expect(p, READ_REQ, s);
        peer_tx(p, .op = RESP_FIRST, .psn = s, .syn = 0x1f, .data = d,
                .len = MTU);
        peer_tx(p, .op = RESP_LAST, .psn = s + 2, .syn = 0x1f, .data = d,
                .len = MTU);
        peer_expect(p, READ_REQ, s + 1);
        peer_tx(p, .op = ops[i][0], .psn = s + 1, .syn = 0x1f, .data = d,
                .len = MTU);
        peer_tx(p, .op = ops[i][1], .psn = s + 2, .syn = 0x1f, .data = d,
                .len = MTU);
        peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        peer_free(p);
    }
}

/* An ACK for something after a READ: its response was lost. */
static void implied_nak(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p);

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 4);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 2,
                               .flags = SIG }, 0, 4);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 3,
                               .flags = SIG }, 0, 4);
    peer_expect(p, SEND_ONLY, s);
    peer_expect(p, READ_REQ, s + 1);
    peer_expect(p, SEND_ONLY, s + 2);
    peer_ack(p, s + 2, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_no_cqe(p, scq);
    peer_expect(p, READ_REQ, s + 1);
    peer_expect(p, SEND_ONLY, s + 2);
    /* the response acknowledges nothing after it */
    peer_tx(p, .op = RESP_ONLY, .psn = s + 1, .syn = 0x1f, .data = "abcd",
            .len = 4);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_no_cqe(p, scq);
    peer_ack(p, s + 2, 0x1f);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* Invalid responses. */
static void bad_responses(void **state)
{
    static const struct pkt k[] = {
        { .op = RESP_ONLY, .syn = 0x1f, .len = 300 },   /* too long */
        { .op = RESP_FIRST, .syn = 0x1f, .len = MTU - 4 },
        { .op = RESP_LAST, .syn = 0x1f, .len = MTU },   /* too early */
        { .op = RESP_FIRST, .syn = 0x62, .len = MTU },  /* not a NAK */
        { .op = ATOMIC_ACK, .syn = 0x1f },
    };
    static const uint8_t zero[512];
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(k) / sizeof(k[0]); i++) {
        struct peer *p = peer_new(QHCA_QPT_RC, NULL);
        struct pkt bad = k[i];

        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ,
                                   .wr_id = 1 }, 0, 300);
        peer_expect(p, READ_REQ, psn0(p));
        bad.psn = psn0(p);
        bad.data = zero;
        peer_send(p, bad);
        peer_cqe(p, scq, 1, QHCA_WC_BAD_RESP_ERR, QHCA_SYN_BAD_PACKET);
        assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        assert_int_equal(gbuf_verify(&p->mr.buf, 0, 7, 0, PEER_BUF),
                         PEER_BUF);
        peer_free(p);
    }
}

static void atomics(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    const struct pframe *f;
    uint32_t s = psn0(p);
    uint64_t v;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_COMP_SWAP, .wr_id = 1,
                               .flags = SIG, .remote_addr = 0x2008,
                               .rkey = 9, .arg0 = 0x1111, .arg1 = 0x2222 },
              64, 8);
    f = peer_expect(p, CMP_SWAP, s);
    assert_true(peer_be64(f->ext) == 0x2008);
    assert_int_equal(peer_be32(f->ext + 8), 9);
    assert_true(peer_be64(f->ext + 12) == 0x2222);
    assert_true(peer_be64(f->ext + 20) == 0x1111);
    peer_tx(p, .op = ATOMIC_ACK, .psn = s, .syn = 0x1f,
            .swap = 0x0102030405060708);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    gbuf_read(&p->mr.buf, 64, &v, 8);
    assert_true(v == 0x0102030405060708);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FETCH_ADD, .wr_id = 2,
                               .flags = SIG, .arg0 = 5 }, 64, 8);
    f = peer_expect(p, FETCH_ADD, s + 1);
    assert_true(peer_be64(f->ext + 12) == 5);
    peer_tx(p, .op = ATOMIC_ACK, .psn = s + 1, .syn = 0x1f, .swap = 77);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.opcode, QHCA_CQE_OP_FETCH_ADD);
    peer_free(p);
}

/* max_rd_atomic, and a fence. */
static void read_limits(void **state)
{
    struct gqp_attr a;
    struct peer *p;
    uint32_t s, i;

    (void)state;
    peer_attr_default(&a);
    a.max_rd_atomic = 2;
    p = peer_new(QHCA_QPT_RC, &a);
    s = psn0(p);
    for (i = 0; i < 3; i++) {
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ,
                                   .wr_id = i, .flags = SIG }, 0, 4);
    }
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 3,
                               .flags = SIG | QHCA_WQE_F_FENCE }, 0, 4);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 4,
                               .flags = SIG }, 0, 4);
    peer_expect(p, READ_REQ, s);
    peer_expect(p, READ_REQ, s + 1);
    peer_expect_nothing(p);
    peer_tx(p, .op = RESP_ONLY, .psn = s, .syn = 0x1f, .data = "0000",
            .len = 4);
    peer_expect(p, READ_REQ, s + 2);
    peer_tx(p, .op = RESP_ONLY, .psn = s + 1, .syn = 0x1f, .data = "0000",
            .len = 4);
    peer_expect_nothing(p);             /* the fence */
    peer_tx(p, .op = RESP_ONLY, .psn = s + 2, .syn = 0x1f, .data = "0000",
            .len = 4);
    peer_expect(p, SEND_ONLY, s + 3);
    peer_expect(p, SEND_ONLY, s + 4);
    peer_ack(p, s + 4, 0x1f);
    for (i = 0; i < 5; i++) {
        peer_cqe(p, scq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    peer_free(p);
}

/*
 * A READ that is waiting when the limit becomes 0 fails, instead of waiting for
 * ever; if the limit is raised it is sent at once.
 */
static void read_limit_changes(void **state)
{
    struct qhca_qpc c = { .max_rd_atomic = 2 };
    struct gqp_attr a;
    struct peer *p;
    uint32_t s, i;

    (void)state;
    peer_attr_default(&a);
    a.max_rd_atomic = 1;
    p = peer_new(QHCA_QPT_RC, &a);
    s = psn0(p);
    for (i = 1; i <= 3; i++) {
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ,
                                   .wr_id = i, .flags = SIG }, 0, 4);
    }
    peer_expect(p, READ_REQ, s);
    peer_expect_nothing(p);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
    assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_MAX_RD_ATOMIC),
                     QHCA_ST_OK);
    peer_expect(p, READ_REQ, s + 1);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RTS), QHCA_ST_OK);
    peer_expect_nothing(p);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
    c.max_rd_atomic = 0;
    assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_MAX_RD_ATOMIC),
                     QHCA_ST_OK);
    peer_no_cqe(p, scq);                /* not early */
    for (i = 0; i < 2; i++) {
        peer_tx(p, .op = RESP_ONLY, .psn = s + i, .syn = 0x1f,
                .data = "0000", .len = 4);
        peer_cqe(p, scq, i + 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    peer_cqe(p, scq, 3, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_RD_ATOMIC);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_free(p);
}

/*
 * A READ that was sent goes on when the limit becomes 0, even if its WQE has to
 * be fetched again for the addresses.
 */
static void read_limit_0_in_flight(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gwr wr = { .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1, .flags = SIG,
                      .num_sge = 2 };
    struct qhca_qpc c = { .max_rd_atomic = 0 };
    uint32_t s = psn0(p), i;

    (void)state;
    for (i = 0; i < 2; i++) {
        wr.sge[i].addr = PEER_IOVA + 64 * i;
        wr.sge[i].len = 2;
        wr.sge[i].lkey = p->mr.key;
    }
    peer_post(p, wr, 0, 0);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 2,
                               .flags = SIG }, 0, 4);
    peer_expect(p, READ_REQ, s);
    peer_expect(p, SEND_ONLY, s + 1);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
    assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_MAX_RD_ATOMIC),
                     QHCA_ST_OK);
    peer_tx(p, .op = RESP_ONLY, .psn = s, .syn = 0x1f, .data = "0000",
            .len = 4);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_ack(p, s + 1, 0x1f);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* A timeout that is set while packets are in flight applies to them. */
static void timeout_set_in_flight(void **state)
{
    struct qhca_qpc c = { .timeout = 10 };
    struct gqp_attr a;
    struct peer *p;
    uint32_t s;

    (void)state;
    peer_attr_default(&a);
    a.timeout = 0;
    p = peer_new(QHCA_QPT_RC, &a);
    s = psn0(p);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 4);
    peer_expect(p, SEND_ONLY, s);
    world_run(&p->w, 1000000000);
    peer_expect_nothing(p);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
    assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_TIMEOUT), QHCA_ST_OK);
    peer_expect_nothing(p);
    world_run(&p->w, 5000000);
    peer_expect(p, SEND_ONLY, s);
    peer_ack(p, s, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* So does one that is changed: to none, to a shorter and to a longer one. */
static void timeout_changed_in_flight(void **state)
{
    static const struct {
        uint8_t from, to;
        unsigned fails;         /* after this time, in RTO; 0: never */
    } each[] = { { 10, 0, 0 }, { 31, 10, 1 }, { 10, 12, 4 } };
    struct gqp_attr a;
    struct qhca_qpc c;
    struct peer *p;
    unsigned i;

    (void)state;
    peer_attr_default(&a);
    a.retry_cnt = 0;
    memset(&c, 0, sizeof(c));
    for (i = 0; i < sizeof(each) / sizeof(each[0]); i++) {
        a.timeout = each[i].from;
        c.timeout = each[i].to;
        p = peer_new(QHCA_QPT_RC, &a);
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                                   .flags = SIG }, 0, 4);
        peer_expect(p, SEND_ONLY, psn0(p));
        assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
        assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_TIMEOUT),
                         QHCA_ST_OK);
        world_run(&p->w, (each[i].fails ? each[i].fails : 10) * RTO - 10000);
        peer_expect_nothing(p);
        peer_no_cqe(p, scq);
        if (each[i].fails) {
            world_run(&p->w, 20000);
            peer_cqe(p, scq, 1, QHCA_WC_RETRY_EXC_ERR, QHCA_SYN_TIMEOUT);
        } else {
            peer_ack(p, psn0(p), 0x1f);
            peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        }
        peer_free(p);
    }
}

/* While the QP waits for receives of its peer, that wait is not affected. */
static void timeout_changed_in_rnr(void **state)
{
    struct qhca_qpc c = { .timeout = 0 };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p);

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 4);
    peer_expect(p, SEND_ONLY, s);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
    peer_ack(p, s, 0x20 | 1);           /* RNR NAK, 10 us */
    assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_TIMEOUT), QHCA_ST_OK);
    world_run(&p->w, 20000);
    peer_expect(p, SEND_ONLY, s);
    world_run(&p->w, 1000000000);
    peer_expect_nothing(p);             /* it has no timer now */
    peer_ack(p, s, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* So do retries that are set while packets are in flight. */
static void retries_set_in_flight(void **state)
{
    struct qhca_qpc c = { .retry_cnt = 1, .rnr_retry = 7 };
    struct gqp_attr a;
    struct peer *p;
    uint32_t s;

    (void)state;
    peer_attr_default(&a);
    a.retry_cnt = a.rnr_retry = 0;
    p = peer_new(QHCA_QPT_RC, &a);
    s = psn0(p);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 4);
    peer_expect(p, SEND_ONLY, s);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_SQD), QHCA_ST_OK);
    assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_RETRY_CNT |
                                QHCA_QP_M_RNR_RETRY), QHCA_ST_OK);
    peer_ack(p, s, 0x20 | 1);           /* RNR NAK */
    world_run(&p->w, 20000);
    peer_expect(p, SEND_ONLY, s);
    peer_ack(p, s, 0x60);               /* sequence NAK */
    peer_expect(p, SEND_ONLY, s);
    peer_ack(p, s, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* A long message stops at the window and requests ACKs in time. */
static void window(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p), sent, since = 0, last_ack = 0;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 1,
                               .flags = SIG }, 0, 1000 * MTU);
    world_run(&p->w, 100000);
    sent = peer_waiting(p);
    assert_in_range(sent, 64, 512);
    while (peer_waiting(p)) {
        const struct pframe *f = peer_next(p);

        since++;
        if (f->ackreq) {
            since = 0;
            last_ack = f->psn;
        }
        assert_true(since < 64);
    }
    peer_ack(p, last_ack, 0x1f);
    world_run(&p->w, 100000);
    assert_true(peer_waiting(p) > 0);
    peer_expect(p, WRITE_MIDDLE, s + sent);
    peer_free(p);
}

/* The number of packets sent now; none is acknowledged. */
static unsigned burst(struct peer *p)
{
    unsigned n;

    world_run(&p->w, 100000);
    n = peer_waiting(p);
    p->tail = p->head;
    return n;
}

/*
 * The window: 64 packets, plus as many as are acknowledged, up to 256; a lost
 * packet halves it, a timeout quarters it, and ACKs are always requested in
 * time.
 */
static void window_moves(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p), n = 64, i;

    (void)state;
    for (i = 0; i < 2; i++) {
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = i,
                                   .flags = SIG }, 0, 4000 * MTU);
    }
    assert_int_equal(burst(p), 64);
    while (n < 256) {
        peer_ack(p, s + n - 1, 0x1f);
        s += n;
        n *= 2;
        assert_int_equal(burst(p), n);
    }
    peer_ack(p, s + 255, 0x1f);
    s += 256;
    assert_int_equal(burst(p), 256);    /* no more */
    peer_ack(p, s, 0x60);               /* lost */
    assert_int_equal(burst(p), 128);
    peer_ack(p, s + 127, 0x1f);
    s += 128;
    assert_int_equal(burst(p), 129);    /* slow growth from here on */
    world_run(&p->w, RTO);
    assert_int_equal(burst(p), 33);
    world_run(&p->w, 2 * RTO);
    assert_int_equal(burst(p), 9);
    world_run(&p->w, 4 * RTO);
    assert_int_equal(burst(p), 3);
    for (n = 3; n < 48; n *= 2) {       /* fast growth up to half of 129 */
        peer_ack(p, s + n - 1, 0x1f);
        s += n;
        assert_int_equal(burst(p), 2 * n);
    }
    peer_free(p);
}

/*
 * A READ larger than the window is requested in parts; after a timeout only a
 * part of what is missing is requested, within an earlier request.
 */
static void read_parts(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p), i;
    const struct pframe *f;

    (void)state;
    gbuf_fill(&p->mr.buf, 0, 7, 0, PEER_BUF);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                               .flags = SIG, .remote_addr = 0x10000,
                               .rkey = 5 }, 0, 100 * MTU + 7);
    f = peer_expect(p, READ_REQ, s);
    assert_true(peer_be64(f->ext) == 0x10000);
    assert_int_equal(peer_be32(f->ext + 12), 64 * MTU);
    peer_expect_nothing(p);
    for (i = 0; i < 10; i++) {
        peer_tx(p, .op = i ? RESP_MIDDLE : RESP_FIRST, .psn = s + i,
                .syn = 0x1f, .data = peer_data(i * MTU, MTU), .len = MTU);
    }
    /* there is room: the rest, too */
    f = peer_expect(p, READ_REQ, s + 64);
    assert_true(peer_be64(f->ext) == 0x10000 + 64 * MTU);
    assert_int_equal(peer_be32(f->ext + 12), 36 * MTU + 7);
    peer_expect_nothing(p);
    /* no response: a window of 74 packets, a quarter of that */
    world_run(&p->w, RTO + 10000);
    f = peer_expect(p, READ_REQ, s + 10);
    assert_true(peer_be64(f->ext) == 0x10000 + 10 * MTU);
    assert_int_equal(peer_be32(f->ext + 12), 6 * MTU);
    peer_expect_nothing(p);             /* no further one */
    /* the first response arrives after all, all at once */
    for (; i < 64; i++) {
        peer_tx(p, .op = i == 63 ? RESP_LAST : RESP_MIDDLE, .psn = s + i,
                .syn = 0x1f, .data = peer_data(i * MTU, MTU), .len = MTU);
    }
    p->tail = p->head;
    for (; i <= 100; i++) {
        peer_tx(p, .op = i == 100 ? RESP_LAST : i == 64 ? RESP_FIRST :
                RESP_MIDDLE, .psn = s + i, .syn = 0x1f,
                .data = peer_data(i * MTU, MTU), .len = i == 100 ? 7 : MTU);
    }
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* Each part of a READ counts against max_rd_atomic, also when repeated. */
static void read_parts_limit(void **state)
{
    struct gqp_attr a;
    struct peer *p;
    uint32_t s, i;

    (void)state;
    peer_attr_default(&a);
    a.max_rd_atomic = 1;
    p = peer_new(QHCA_QPT_RC, &a);
    s = psn0(p);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                               .flags = SIG }, 0, 70 * MTU);
    peer_expect(p, READ_REQ, s);
    for (i = 0; i < 64; i++) {
        peer_expect_nothing(p);
        peer_tx(p, .op = i == 63 ? RESP_LAST : i ? RESP_MIDDLE : RESP_FIRST,
                .psn = s + i, .syn = 0x1f, .data = peer_data(0, MTU),
                .len = MTU);
    }
    peer_expect(p, READ_REQ, s + 64);
    world_run(&p->w, RTO + 10000);      /* 64 -> 128 -> 32 */
    peer_expect(p, READ_REQ, s + 64);
    world_run(&p->w, 2 * RTO);          /* 8 */
    peer_expect(p, READ_REQ, s + 64);
    world_run(&p->w, 4 * RTO);          /* 2 */
    assert_int_equal(peer_be32(peer_expect(p, READ_REQ, s + 64)->ext + 12),
                     2 * MTU);
    peer_expect_nothing(p);
    peer_tx(p, .op = RESP_FIRST, .psn = s + 64, .syn = 0x1f,
            .data = peer_data(0, MTU), .len = MTU);
    peer_expect_nothing(p);
    peer_tx(p, .op = RESP_LAST, .psn = s + 65, .syn = 0x1f,
            .data = peer_data(0, MTU), .len = MTU);
    peer_expect(p, READ_REQ, s + 66);
    peer_expect_nothing(p);
    peer_free(p);
}

/*
 * ACKs that take longer than a quarter of the timeout halve the window, which
 * then grows slowly: others wait for the same peer.
 */
static void late_acknowledge(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p);

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 1,
                               .flags = SIG }, 0, 4000 * MTU);
    assert_int_equal(burst(p), 64);
    world_run(&p->w, RTO / 4);
    peer_ack(p, s + 63, 0x1f);
    assert_int_equal(burst(p), 32);
    world_run(&p->w, RTO / 4 - 200000);
    peer_ack(p, s + 95, 0x1f);
    assert_int_equal(burst(p), 33);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_TIMEOUTS), 0);
    peer_free(p);
}

/* Credits: at most one message more than the peer has receives. */
static void credits(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gwr send = { .opcode = QHCA_WQE_SEND };
    struct gwr write = { .opcode = QHCA_WQE_RDMA_WRITE };
    struct gwr imm = { .opcode = QHCA_WQE_RDMA_WRITE_IMM };
    uint32_t s = psn0(p), i;

    (void)state;
    peer_post(p, send, 0, 4);
    peer_expect(p, SEND_ONLY, s);
    peer_ack(p, s, 2);                  /* two */
    for (i = 0; i < 4; i++) {
        assert_true(gqp_post_send(&p->qp, &send));
    }
    gqp_ring(&p->qp);
    peer_expect(p, SEND_ONLY, s + 1);
    peer_expect(p, SEND_ONLY, s + 2);
    assert_true(peer_expect(p, SEND_ONLY, s + 3)->ackreq);
    peer_expect_nothing(p);
    peer_ack(p, s + 2, 0);
    peer_expect_nothing(p);             /* one has been sent already */
    peer_ack(p, s + 2, 1);              /* the same, and a receive */
    assert_true(peer_expect(p, SEND_ONLY, s + 4)->ackreq);
    peer_expect_nothing(p);
    /* none: the first packet of a SEND, then the rest */
    peer_ack(p, s + 4, 0);
    peer_post(p, send, 0, 3 * MTU);
    assert_true(peer_expect(p, SEND_FIRST, s + 5)->ackreq);
    peer_expect_nothing(p);
    peer_ack(p, s + 5, 0);
    peer_expect(p, SEND_MIDDLE, s + 6);
    peer_expect(p, SEND_LAST, s + 7);
    peer_ack(p, s + 7, 0);
    /* WRITEs use none; one with immediate data may be sent entirely */
    peer_post(p, write, 0, 2 * MTU);
    peer_expect(p, WRITE_FIRST, s + 8);
    peer_expect(p, WRITE_LAST, s + 9);
    peer_post(p, imm, 0, 2 * MTU);
    peer_expect(p, WRITE_FIRST, s + 10);
    assert_true(peer_expect(p, WRITE_LAST_IMM, s + 11)->ackreq);
    peer_post(p, imm, 0, 2 * MTU);
    peer_expect_nothing(p);
    /* no receive: the limit is 0, and the first is sent alone */
    peer_ack(p, s + 11, 0x1e);
    peer_expect(p, WRITE_FIRST, s + 12);
    peer_expect(p, WRITE_LAST_IMM, s + 13);
    for (i = 0; i < 3; i++) {
        peer_post(p, send, 0, 4);
        peer_expect(p, SEND_ONLY, s + 14 + i);
    }
    peer_ack(p, s + 14, 0x20 | 1);
    peer_expect_nothing(p);
    world_run(&p->w, 20000);
    peer_expect(p, SEND_ONLY, s + 14);
    peer_expect_nothing(p);
    /* 31: no limit any more */
    peer_ack(p, s + 14, 0x1f);
    peer_expect(p, SEND_ONLY, s + 15);
    peer_expect(p, SEND_ONLY, s + 16);
    peer_ack(p, s + 16, 0x1f);
    peer_expect_nothing(p);
    peer_free(p);
}

/*
 * SGEs alternating between both ends of a long list of segments: searching it
 * uses up budget, so one turn sends few such messages.
 */
static void long_list(void **state)
{
    const uint64_t len = (uint64_t)QHCA_BUF_LIST_MAX * QHCA_BUF_SEG_MIN;
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .num_sge = 12 };
    struct qhca_mpt m = {
        .buf = { .len = len, .form = QHCA_BUF_LIST,
                 .entries = QHCA_BUF_LIST_MAX },
        .len = len, .pd = p->g.pd,
    };
    struct qhca_buf_seg *seg;
    uint64_t at, table;
    unsigned i, sent;
    uint32_t key;

    (void)state;
    /* segments of minimum length, over contiguous memory */
    at = gmem_alloc(&p->n->mem, len, 12, 0);
    gmem_allow(&p->n->mem, at, len, GMEM_R);
    table = gmem_alloc(&p->n->mem, QHCA_BUF_LIST_MAX * sizeof(*seg), 12, 0);
    gmem_allow(&p->n->mem, table, QHCA_BUF_LIST_MAX * sizeof(*seg), GMEM_R);
    seg = gmem_ptr(&p->n->mem, table, QHCA_BUF_LIST_MAX * sizeof(*seg));
    for (i = 0; i < QHCA_BUF_LIST_MAX; i++) {
        seg[i].addr = at + i * QHCA_BUF_SEG_MIN;
        seg[i].len = QHCA_BUF_SEG_MIN | QHCA_BUF_SEG_VALID;
    }
    m.buf.addr = table;
    key = guest_create(&p->g, QHCA_CMD_CREATE_MR, &m, sizeof(m));
    for (i = 0; i < wr.num_sge; i++) {
        wr.sge[i].addr = i & 1 ? 0 : len - 1;
        wr.sge[i].len = 1;
        wr.sge[i].lkey = key;
    }
    for (i = 0; i < 120; i++) {
        assert_true(gqp_post_send(&p->qp, &wr));
    }
    gqp_ring(&p->qp);
    assert_true(p->n->kicked);
    sent = peer_waiting(p);
    assert_in_range(sent, 1, 32);
    qhca_run(p->e);
    assert_in_range(peer_waiting(p) - sent, 1, 32);
    world_run(&p->w, 100000);
    assert_int_equal(peer_waiting(p), QHCA_WINDOW_START);
    peer_ack(p, psn0(p) + QHCA_WINDOW_START - 1, 0x1f);
    world_run(&p->w, 100000);
    assert_int_equal(peer_waiting(p), 120);
    assert_int_equal(guest_simple(&p->g, QHCA_CMD_DESTROY_MR, key),
                     QHCA_ST_OK);
    gmem_release(&p->n->mem, table, QHCA_BUF_LIST_MAX * sizeof(*seg));
    gmem_release(&p->n->mem, at, len);
    peer_free(p);
}

/*
 * Errors of a WQE are reported after all earlier ones are complete, and also if
 * the failing WQE is not signaled.
 */
static void local_errors(void **state)
{
    static const struct {
        struct gwr wr;
        uint32_t len;
        uint8_t status, syn;
    } t[] = {
        { { .opcode = 0x7f }, 8, QHCA_WC_LOC_QP_OP_ERR,
          QHCA_SYN_WQE_OPCODE },
        { { .opcode = QHCA_WQE_SEND, .flags = 0x80 }, 8,
          QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_FLAGS },
        { { .opcode = QHCA_WQE_COMP_SWAP }, 4, QHCA_WC_LOC_LEN_ERR,
          QHCA_SYN_WQE_LENGTH },
        { { .opcode = QHCA_WQE_SEND }, PEER_BUF + 1, QHCA_WC_LOC_PROT_ERR,
          QHCA_SYN_KEY_BOUNDS },
        { { .opcode = QHCA_WQE_RDMA_READ }, PEER_BUF + 1,
          QHCA_WC_LOC_PROT_ERR, QHCA_SYN_KEY_BOUNDS },
        { { .opcode = QHCA_WQE_REG_MR }, 0, QHCA_WC_LOC_QP_OP_ERR,
          QHCA_SYN_WQE_OPCODE },
        { { .opcode = QHCA_WQE_LOCAL_INV, .imm = 0x12345600 }, 0,
          QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_KEY_INVALID },
        { { .opcode = QHCA_WQE_SEND, .num_sge = 31 }, 8,
          QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE },
    };
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct peer *p = peer_new(QHCA_QPT_RC, NULL);
        struct gwr wr = t[i].wr;
        uint32_t s = psn0(p);
        uint16_t num = (uint16_t)wr.num_sge;

        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                                   .flags = SIG }, 0, 4);
        peer_expect(p, SEND_ONLY, s);
        wr.wr_id = 2;
        wr.num_sge = 0;
        if (num) {              /* more than the stride holds */
            wr.num_sge = 1;
            assert_true(gqp_post_send(&p->qp, &wr));
            gqp_sq_poke(&p->qp, 1, 2, &num, 2);
            gqp_ring(&p->qp);
        } else {
            peer_post(p, wr, 0, t[i].len);
        }
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 3 },
                  0, 4);
        peer_no_cqe(p, scq);
        assert_int_equal(peer_state(p), QHCA_QPS_RTS);
        peer_ack(p, s, 0x1f);
        peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        peer_cqe(p, scq, 2, t[i].status, t[i].syn);
        peer_cqe(p, scq, 3, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        p->tail = p->head;
        peer_free(p);
    }
}

/* A WQE that software changes while in progress does not confuse us. */
static void changed_wqe(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .wr_id = 1, .num_sge = 2 };
    uint32_t s = psn0(p), len = 999;
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        wr.sge[i].addr = PEER_IOVA;
        wr.sge[i].len = 100;
        wr.sge[i].lkey = p->mr.key;
    }
    peer_post(p, wr, 0, 0);
    wr.wr_id = 2;
    peer_post(p, wr, 0, 0);     /* now the first is no longer cached */
    peer_expect(p, SEND_ONLY, s);
    peer_expect(p, SEND_ONLY, s + 1);
    gqp_sq_poke(&p->qp, 0, 0x30 + 8, &len, 4);
    peer_ack(p, s, 0x60);
    peer_cqe(p, scq, 1, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH);
    peer_cqe(p, scq, 2, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    peer_expect_nothing(p);
    peer_free(p);
}

/* SQD: work in progress is finished, then the event; RTS continues. */
static void drain(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qpc c = { .state = QHCA_QPS_SQD, .en_sqd_event = 1 };
    uint32_t s = psn0(p);

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 4);
    peer_expect(p, SEND_ONLY, s);
    assert_int_equal(gqp_modify(&p->qp, &c, QHCA_QP_M_STATE |
                                QHCA_QP_M_SQD_EVENT), QHCA_ST_OK);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 2,
                               .flags = SIG }, 0, 4);
    peer_expect_nothing(p);
    assert_int_equal(p->g.async_count[QHCA_EV_SQ_DRAINED], 0);
    peer_ack(p, s, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_run(p);
    assert_int_equal(p->g.async_count[QHCA_EV_SQ_DRAINED], 1);
    peer_expect_nothing(p);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RTS), QHCA_ST_OK);
    peer_expect(p, SEND_ONLY, s + 1);
    peer_ack(p, s + 1, 0x1f);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* LOCAL_INV waits until everything before it is acknowledged. */
static void local_inv_waits(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_mpt m = { .flags = QHCA_MR_F_FAST_REG, .key = 0x11,
                          .pd = p->g.pd, .max_entries = 4 };
    uint32_t s = psn0(p), key;

    (void)state;
    key = guest_create(&p->g, QHCA_CMD_CREATE_MR, &m, sizeof(m));
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1 }, 0, 4);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_LOCAL_INV, .wr_id = 2,
                               .imm = key, .flags = SIG }, 0, 0);
    peer_expect(p, SEND_ONLY, s);
    peer_no_cqe(p, scq);
    peer_ack(p, s, 0x1f);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.opcode, QHCA_CQE_OP_LOCAL_INV);
    assert_int_equal(guest_simple(&p->g, QHCA_CMD_DESTROY_MR, key),
                     QHCA_ST_OK);
    peer_free(p);
}

/*
 * Unsignaled messages request no ACK while more follow.  If nothing can
 * continue before they are acknowledged, they are sent again with AckReq.
 */
static void unsignaled(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gwr wr = { .opcode = QHCA_WQE_SEND };
    const struct pframe *f;
    uint32_t s = psn0(p), i;

    (void)state;
    /*
     * 40 of them with one doorbell: one in between requests an ACK, and the
     * last
     */
    for (i = 0; i < 40; i++) {
        assert_true(gqp_post_send(&p->qp, &wr));
    }
    gqp_ring(&p->qp);
    for (i = 0; i < 40; i++) {
        f = peer_expect(p, SEND_ONLY, s + i);
        assert_int_equal(f->ackreq, i == 31 || i == 39);
    }
    peer_ack(p, s + 39, 0x1f);
    world_run(&p->w, 2 * RTO);
    peer_expect_nothing(p);
    /* one, followed by a WQE that fails */
    assert_true(gqp_post_send(&p->qp, &wr));
    wr.opcode = 0x7e;
    wr.wr_id = 2;
    assert_true(gqp_post_send(&p->qp, &wr));
    gqp_ring(&p->qp);
    f = peer_expect(p, SEND_ONLY, s + 40);
    assert_false(f->ackreq);
    f = peer_expect(p, SEND_ONLY, s + 40);
    assert_true(f->ackreq);
    peer_expect_nothing(p);
    peer_no_cqe(p, scq);
    peer_ack(p, s + 40, 0x1f);
    peer_cqe(p, scq, 2, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_OPCODE);
    peer_free(p);
}

/* The same with a local invalidate, and with a drain. */
static void unsignaled_then_wait(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_mpt m = { .flags = QHCA_MR_F_FAST_REG, .key = 0x11,
                          .pd = p->g.pd, .max_entries = 4 };
    struct gwr wr = { .opcode = QHCA_WQE_SEND };
    const struct pframe *f;
    uint32_t s = psn0(p), key;

    (void)state;
    key = guest_create(&p->g, QHCA_CMD_CREATE_MR, &m, sizeof(m));
    assert_true(gqp_post_send(&p->qp, &wr));
    wr.opcode = QHCA_WQE_LOCAL_INV;
    wr.imm = key;
    assert_true(gqp_post_send(&p->qp, &wr));
    wr.opcode = QHCA_WQE_SEND;
    wr.flags = SIG;
    wr.wr_id = 3;
    assert_true(gqp_post_send(&p->qp, &wr));
    gqp_ring(&p->qp);
    f = peer_expect(p, SEND_ONLY, s);
    assert_false(f->ackreq);
    f = peer_expect(p, SEND_ONLY, s);
    assert_true(f->ackreq);
    peer_expect_nothing(p);
    peer_ack(p, s, 0x1f);
    peer_expect(p, SEND_ONLY, s + 1);
    peer_ack(p, s + 1, 0x1f);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(guest_simple(&p->g, QHCA_CMD_DESTROY_MR, key),
                     QHCA_ST_OK);
    peer_free(p);
}

static uint64_t lost_wqe;

static void lose_wqe(void *opaque, uint64_t addr, size_t len, bool write)
{
    struct peer *p = opaque;

    (void)len;
    p->n->mem.fail_64k = addr == lost_wqe && !write ? 65536 : 0;
}

/*
 * A WQE that cannot be read: work queue catastrophic error, for datagrams too;
 * the one behind it is flushed, and says so if it cannot be read either.
 */
static void wqe_unreadable(void **state)
{
    static const uint8_t types[] = { QHCA_QPT_RC, QHCA_QPT_UD };
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct peer *p = peer_new(types[i], NULL);
        struct gwr wr = { .opcode = QHCA_WQE_SEND, .wr_id = 7 };

        p->n->mem.watch = lose_wqe;
        p->n->mem.watch_opaque = p;
        lost_wqe = gbuf_addr(&p->qp.sq, 0, NULL);
        assert_true(gqp_post_send(&p->qp, &wr));
        wr.wr_id = 8;
        assert_true(gqp_post_send(&p->qp, &wr));
        gqp_ring(&p->qp);
        peer_cqe(p, scq, 0, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_DMA);
        assert_int_equal(p->cqe.wqe_index, 0);
        peer_cqe(p, scq, 8, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        lost_wqe = gbuf_addr(&p->qp.sq, 2 << p->qp.sq_stride, NULL);
        assert_true(gqp_post_send(&p->qp, &wr));
        gqp_ring(&p->qp);
        peer_cqe(p, scq, 0, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_WQE_DMA);
        assert_int_equal(p->cqe.wqe_index, 2);
        assert_int_equal(p->g.async_count[QHCA_EV_QP_FATAL], 1);
        lost_wqe = 0;
        p->n->mem.fail_64k = 0;
        peer_free(p);
    }
}

/*
 * A window that shrinks while a READ is in progress makes its requests smaller,
 * and still there are never more of them than max_rd_atomic.
 */
static void reads_in_flight(void **state)
{
    struct { uint32_t psn, n; } req[64];
    unsigned head = 0, tail = 0, most = 0;
    struct gqp_attr a;
    struct peer *p;
    struct qhca_qp *qp;
    const struct pframe *fr;
    uint32_t s, n, total = 1024;
    uint32_t done;

    (void)state;
    peer_attr_default(&a);
    a.max_rd_atomic = 2;
    a.timeout = 14;             /* 67 ms */
    p = peer_new(QHCA_QPT_RC, &a);
    qp = qhca_qp_get(p->e, p->qp.qpn);
    qp->xp->wnd = qp->xp->wnd_slow = 200;       /* as after a loss */
    s = a.sq_psn;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                               .flags = QHCA_WQE_F_SIGNALED, .rkey = 1,
                               .remote_addr = 0x1000 }, 0, total * 256);
    peer_run(p);
    for (done = 0; done < total; done++) {
        unsigned op;

        while (peer_waiting(p)) {
            fr = peer_next(p);
            assert_int_equal(fr->op, READ_REQ);
            n = peer_be32(fr->ext + 12) / 256;
            req[head % 64].psn = fr->psn;
            req[head++ % 64].n = n;
            most = head - tail > most ? head - tail : most;
        }
        assert_true(head != tail);
        n = req[tail % 64].n;
        op = req[tail % 64].psn == ((s + done) & 0xffffff) ? RESP_FIRST :
             ((req[tail % 64].psn + n - 1) & 0xffffff) ==
             ((s + done) & 0xffffff) ? RESP_LAST : RESP_MIDDLE;
        /* slow: 128 responses take more than 17 ms */
        if (done < 140) {
            world_run(&p->w, 150000);
        }
        peer_tx(p, .op = op, .psn = s + done, .syn = 0x1f,
                .data = peer_data(0, 256), .len = 256);
        if (op == RESP_LAST) {
            tail++;
        }
    }
    assert_int_equal(most, 2);
    assert_true(qp->xp->wnd < 200);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_in_flight),
        cmocka_unit_test(segmentation),
        cmocka_unit_test(gather),
        cmocka_unit_test(sequence_nak),
        cmocka_unit_test(timeout),
        cmocka_unit_test(timeout_least),
        cmocka_unit_test(timeout_wire_blocked),
        cmocka_unit_test(progress),
        cmocka_unit_test(rnr),
        cmocka_unit_test(rnr_for_ever),
        cmocka_unit_test(fatal_naks),
        cmocka_unit_test(read_lost_response),
        cmocka_unit_test(read_goes_on),
        cmocka_unit_test(implied_nak),
        cmocka_unit_test(bad_responses),
        cmocka_unit_test(atomics),
        cmocka_unit_test(read_limits),
        cmocka_unit_test(read_limit_changes),
        cmocka_unit_test(read_limit_0_in_flight),
        cmocka_unit_test(timeout_set_in_flight),
        cmocka_unit_test(timeout_changed_in_flight),
        cmocka_unit_test(timeout_changed_in_rnr),
        cmocka_unit_test(retries_set_in_flight),
        cmocka_unit_test(window),
        cmocka_unit_test(window_moves),
        cmocka_unit_test(read_parts),
        cmocka_unit_test(read_parts_limit),
        cmocka_unit_test(credits),
        cmocka_unit_test(late_acknowledge),
        cmocka_unit_test(long_list),
        cmocka_unit_test(local_errors),
        cmocka_unit_test(changed_wqe),
        cmocka_unit_test(drain),
        cmocka_unit_test(local_inv_waits),
        cmocka_unit_test(unsignaled),
        cmocka_unit_test(unsignaled_then_wait),
        cmocka_unit_test(wqe_unreadable),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
