/* SPDX-License-Identifier: GPL-2.0-or-later */
/* FLUSH, ATOMIC WRITE and masked atomics, packet by packet. */
#include "peer.h"

#define SIG QHCA_WQE_F_SIGNALED
#define GLOBAL QHCA_FLUSH_T_GLOBAL
#define PERSISTENT QHCA_FLUSH_T_PERSISTENT
#define WHOLE (QHCA_FLUSH_L_MR << QHCA_FLUSH_L_SHIFT)
#define RTO (4096ull << 10)     /* timeout code 10 */

static uint32_t psn0(const struct peer *p)
{
    return p->a.rq_psn;
}

static uint64_t word(struct peer *p, uint64_t off)
{
    uint64_t v;

    gbuf_read(&p->mr.buf, off, &v, 8);
    return v;
}

static void set_word(struct peer *p, uint64_t off, uint64_t v)
{
    gbuf_write(&p->mr.buf, off, &v, 8);
}

/* An empty READ response. */
static void empty_response(struct peer *p, uint32_t psn)
{
    const struct pframe *f = peer_expect(p, RESP_ONLY, psn);

    assert_int_equal(f->body, 4);
    assert_int_equal(f->ext[0], 0x1f);
}

/* ---- responder ---- */

static void flush(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p), i;
    const struct pframe *f;

    (void)state;
    /* a range, the whole region wherever one points, nothing at all */
    peer_tx(p, .op = FLUSH, .psn = s, .feth = GLOBAL, .va = PEER_IOVA + 5,
            .rkey = p->mr.key, .dmalen = PEER_BUF - 5);
    empty_response(p, s);
    peer_tx(p, .op = FLUSH, .psn = s + 1, .feth = GLOBAL | WHOLE,
            .rkey = p->mr.key, .dmalen = 0xffffffff);
    empty_response(p, s + 1);
    peer_tx(p, .op = FLUSH, .psn = s + 2, .feth = GLOBAL,
            .va = PEER_IOVA, .rkey = p->mr.key);
    empty_response(p, s + 2);
    /* reserved fields of the FETH are ignored */
    peer_tx(p, .op = FLUSH, .psn = s + 3, .feth = GLOBAL | 0xffffffc0,
            .va = PEER_IOVA, .rkey = p->mr.key, .dmalen = 1);
    f = peer_expect(p, RESP_ONLY, s + 3);
    assert_int_equal(peer_be32(f->ext) & 0xffffff, 4);  /* MSN */
    /* it does not count against the READ limit */
    assert_int_equal(p->a.max_dest_rd_atomic, 4);
    p->w.wire.refuse = 65536;
    for (i = 0; i < 6; i++) {
        struct pkt k = { .op = FLUSH, .psn = s + 4 + i, .feth = GLOBAL,
                         .rkey = p->mr.key, .va = PEER_IOVA, .dmalen = 8 };
        uint8_t b[4400];

        world_inject(&p->w, 0, b, peer_build(p, &k, b));
        world_run(&p->w, 10);
    }
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
    for (i = 0; i < 6; i++) {
        empty_response(p, s + 4 + i);
    }
    peer_expect_nothing(p);
    /* again: answered, and only once if requested twice meanwhile */
    peer_tx(p, .op = FLUSH, .psn = s + 9, .feth = GLOBAL,
            .rkey = p->mr.key ^ 0x55);
    empty_response(p, s + 9);
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    peer_free(p);
}

/*
 * Soft-RoCE's variant of the ICRC is accepted for a FLUSH, and only for that.
 */
static void flush_of_soft_roce(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p);

    (void)state;
    peer_tx(p, .op = FLUSH, .psn = s, .feth = GLOBAL, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 8, .twice = true);
    empty_response(p, s);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_ICRC_ERRORS), 0);
    peer_tx(p, .op = WRITE_ONLY, .psn = s + 1, .va = PEER_IOVA,
            .rkey = p->mr.key, .ackreq = true, .twice = true);
    peer_expect_nothing(p);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_ICRC_ERRORS), 1);
    /* it gets its own variant back at once */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FLUSH, .wr_id = 1,
                               .flags = SIG, .arg1 = GLOBAL }, 0, 0);
    assert_true(peer_expect(p, FLUSH, p->a.sq_psn)->twice);
    peer_tx(p, .op = RESP_ONLY, .psn = p->a.sq_psn, .syn = 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_tx(p, .op = FLUSH, .psn = s + 1, .feth = GLOBAL, .va = PEER_IOVA,
            .rkey = p->mr.key);
    empty_response(p, s + 1);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FLUSH, .wr_id = 2,
                               .flags = SIG, .arg1 = GLOBAL }, 0, 0);
    assert_false(peer_expect(p, FLUSH, p->a.sq_psn + 1)->twice);
    peer_free(p);
}

static void atomic_write(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p);

    (void)state;
    peer_tx(p, .op = ATOMIC_WRITE, .psn = s, .va = PEER_IOVA + 64,
            .rkey = p->mr.key, .dmalen = 8, .data = "01234567", .len = 8);
    empty_response(p, s);
    peer_tx(p, .op = ATOMIC_WRITE, .psn = s + 1, .va = PEER_IOVA + 64,
            .rkey = p->mr.key, .dmalen = 8, .data = "abcdefgh", .len = 8);
    empty_response(p, s + 1);
    assert_true(!memcmp(&(uint64_t){ word(p, 64) }, "abcdefgh", 8));
    /* the first again: answered, but not executed again */
    peer_tx(p, .op = ATOMIC_WRITE, .psn = s, .va = PEER_IOVA + 64,
            .rkey = p->mr.key, .dmalen = 8, .data = "01234567", .len = 8);
    empty_response(p, s);
    assert_true(!memcmp(&(uint64_t){ word(p, 64) }, "abcdefgh", 8));
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_DUPLICATE), 1);
    peer_expect_nothing(p);
    peer_free(p);
}

/* Requests that are answered with a NAK; nothing is written. */
static void refused(void **state)
{
    enum { QP = 1, REGION = 2 };
    static const struct {
        const char *what;
        struct pkt k;
        uint8_t nak;
        unsigned deny;          /* by the QP's access, the region's */
        bool foreign;
    } t[] = {
        { "FLUSH of no kind", { .op = FLUSH }, 0x61, 0, false },
        { "FLUSH of a reserved kind", { .op = FLUSH, .feth = GLOBAL | 4 },
          0x61, 0, false },
        { "FLUSH of level 2", { .op = FLUSH, .feth = GLOBAL | 2 << 4 },
          0x61, 0, false },
        { "FLUSH the QP does not allow", { .op = FLUSH, .feth = GLOBAL },
          0x61, QP, false },
        { "FLUSH to persistence", { .op = FLUSH, .feth = PERSISTENT },
          0x61, 0, false },
        { "FLUSH the region does not allow",
          { .op = FLUSH, .feth = GLOBAL, .dmalen = 4 }, 0x62, REGION,
          false },
        { "FLUSH of all a region that does not allow it",
          { .op = FLUSH, .feth = GLOBAL | WHOLE }, 0x62, REGION, false },
        { "FLUSH beyond the region",
          { .op = FLUSH, .feth = GLOBAL, .va = 8, .dmalen = PEER_BUF },
          0x62, 0, false },
        { "FLUSH of nothing with a wrong key",
          { .op = FLUSH, .feth = GLOBAL }, 0x62, 0, true },
        { "ATOMIC WRITE the QP does not allow",
          { .op = ATOMIC_WRITE, .dmalen = 8, .len = 8 }, 0x61, QP, false },
        { "ATOMIC WRITE the region does not allow",
          { .op = ATOMIC_WRITE, .dmalen = 8, .len = 8 }, 0x62, REGION,
          false },
        { "ATOMIC WRITE not aligned",
          { .op = ATOMIC_WRITE, .va = 4, .dmalen = 8, .len = 8 }, 0x61, 0,
          false },
        { "ATOMIC WRITE of 4 bytes",
          { .op = ATOMIC_WRITE, .dmalen = 4, .len = 4 }, 0x61, 0, false },
        { "ATOMIC WRITE of 16 bytes",
          { .op = ATOMIC_WRITE, .dmalen = 16, .len = 16 }, 0x61, 0, false },
        { "ATOMIC WRITE shorter than it says",
          { .op = ATOMIC_WRITE, .dmalen = 16, .len = 8 }, 0x61, 0, false },
        { "ATOMIC WRITE beyond the region",
          { .op = ATOMIC_WRITE, .va = PEER_BUF, .dmalen = 8, .len = 8 },
          0x62, 0, false },
        { "masked atomic the QP does not allow",
          { .op = CLASS_OWN | CMP_SWAP }, 0x61, QP, false },
        { "masked atomic not aligned",
          { .op = CLASS_OWN | FETCH_ADD, .va = 1 }, 0x61, 0, false },
        { "masked atomic with a wrong key",
          { .op = CLASS_OWN | FETCH_ADD }, 0x62, 0, true },
    };
    static const uint8_t data[16] = "sixteen bytes!!";
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct gqp_attr a;
        struct pkt k = t[i].k;
        struct gmr mr;
        struct peer *p;

        print_message("  %s\n", t[i].what);
        peer_attr_default(&a);
        if (t[i].deny & QP) {
            a.access = QHCA_ACCESS_REMOTE_READ;
        }
        p = peer_new(QHCA_QPT_RC, &a);
        gmr_create(&mr, &p->g, 4096, PEER_IOVA, QHCA_ACCESS_LOCAL_WRITE |
                   QHCA_ACCESS_REMOTE_READ, NULL);
        k.psn = psn0(p);
        k.va += PEER_IOVA;
        k.rkey = t[i].deny & REGION ? mr.key : p->mr.key;
        if (t[i].foreign) {
            k.rkey ^= 0x55;
        }
        k.data = data;
        peer_send(p, k);
        peer_expect_aeth(p, t[i].nak, psn0(p));
        peer_expect_nothing(p);
        assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        assert_int_equal(p->g.async_count[QHCA_EV_QP_REQ_ERR],
                         t[i].nak == 0x61);
        assert_int_equal(p->g.async_count[QHCA_EV_QP_ACCESS_ERR],
                         t[i].nak == 0x62);
        assert_int_equal(gbuf_verify(&p->mr.buf, 0, 7, 0, PEER_BUF),
                         PEER_BUF);
        assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
        peer_free(p);
    }
}

/* Only ATOMIC WRITE counts against the READ limit. */
static void resources(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p), i;
    uint8_t b[4400];

    (void)state;
    p->w.wire.refuse = 65536;
    for (i = 0; i < 5; i++) {
        struct pkt k = { .op = ATOMIC_WRITE, .psn = s + i,
                         .va = PEER_IOVA + 8 * i, .rkey = p->mr.key,
                         .dmalen = 8, .data = "01234567", .len = 8 };

        world_inject(&p->w, 0, b, peer_build(p, &k, b));
        world_run(&p->w, 10);
    }
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
    for (i = 0; i < 4; i++) {
        empty_response(p, s + i);
    }
    peer_expect_aeth(p, 0x61, s + 4);
    assert_int_equal(gbuf_verify(&p->mr.buf, 32, 7, 32, PEER_BUF - 32),
                     PEER_BUF - 32);
    peer_free(p);
}

static void masked(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = psn0(p), i;
    const struct pframe *f;

    (void)state;
    set_word(p, 128, 0x1122334455667788);
    /* compare one byte, swap another */
    peer_tx(p, .op = CLASS_OWN | CMP_SWAP, .psn = s, .va = PEER_IOVA + 128,
            .rkey = p->mr.key, .cmp = 0xff88, .swap = 0xaabbccddeeff0011,
            .mask = 0xff, .swap_mask = 0xff00000000000000);
    f = peer_expect(p, ATOMIC_ACK, s);
    assert_true(peer_be64(f->ext + 4) == 0x1122334455667788);
    assert_true(word(p, 128) == 0xaa22334455667788);
    peer_tx(p, .op = CLASS_OWN | CMP_SWAP, .psn = s + 1,
            .va = PEER_IOVA + 128, .rkey = p->mr.key, .cmp = 0x87,
            .mask = 0xff, .swap_mask = UINT64_MAX);
    f = peer_expect(p, ATOMIC_ACK, s + 1);
    assert_true(peer_be64(f->ext + 4) == 0xaa22334455667788);
    assert_true(word(p, 128) == 0xaa22334455667788);
    /* bytes that do not carry into each other */
    set_word(p, 128, 0x00ff00ff00ff00ff);
    peer_tx(p, .op = CLASS_OWN | FETCH_ADD, .psn = s + 2,
            .va = PEER_IOVA + 128, .rkey = p->mr.key,
            .swap = 0x0101010101010101, .mask = 0x8080808080808080);
    f = peer_expect(p, ATOMIC_ACK, s + 2);
    assert_true(peer_be64(f->ext + 4) == 0x00ff00ff00ff00ff);
    assert_true(word(p, 128) == 0x0100010001000100);
    /* again: the same answer, and not executed again */
    for (i = 0; i < 2; i++) {
        peer_tx(p, .op = CLASS_OWN | FETCH_ADD, .psn = s + 2,
                .va = PEER_IOVA + 128, .rkey = p->mr.key,
                .swap = 0x0101010101010101, .mask = 0x8080808080808080);
        f = peer_expect(p, ATOMIC_ACK, s + 2);
        assert_true(peer_be64(f->ext + 4) == 0x00ff00ff00ff00ff);
    }
    assert_true(word(p, 128) == 0x0100010001000100);
    peer_free(p);
}

/* ---- requester ---- */

static void requests(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = p->a.sq_psn;
    const struct pframe *f;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FLUSH, .wr_id = 1,
                               .flags = SIG, .arg0 = 0xfedcba98,
                               .arg1 = GLOBAL | PERSISTENT | WHOLE,
                               .remote_addr = 0x1122334455667788,
                               .rkey = 0xabcd }, 0, 0);
    f = peer_expect(p, FLUSH, s);
    assert_true(f->ackreq && !f->twice);
    assert_int_equal(f->body, 20);
    assert_int_equal(peer_be32(f->ext), 0x13);
    assert_true(peer_be64(f->ext + 4) == 0x1122334455667788);
    assert_int_equal(peer_be32(f->ext + 12), 0xabcd);
    assert_int_equal(peer_be32(f->ext + 16), 0xfedcba98);
    peer_tx(p, .op = RESP_ONLY, .psn = s, .syn = 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.opcode, QHCA_CQE_OP_FLUSH);

    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_ATOMIC_WRITE, .wr_id = 2,
                               .flags = SIG, .remote_addr = 0x8877665544332210,
                               .rkey = 0xdcba }, 100, 8);
    f = peer_expect(p, ATOMIC_WRITE, s + 1);
    assert_int_equal(f->body, 24);
    assert_true(peer_be64(f->ext) == 0x8877665544332210);
    assert_int_equal(peer_be32(f->ext + 8), 0xdcba);
    assert_int_equal(peer_be32(f->ext + 12), 8);
    assert_memory_equal(f->ext + 16, peer_data(100, 8), 8);
    peer_tx(p, .op = RESP_ONLY, .psn = s + 1, .syn = 0x1f);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.opcode, QHCA_CQE_OP_ATOMIC_WRITE);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_ATOMIC_WRITE, .wr_id = 3,
                               .flags = SIG | QHCA_WQE_F_INLINE,
                               .inl = "8 inline", .inl_len = 8 }, 0, 0);
    f = peer_expect(p, ATOMIC_WRITE, s + 2);
    assert_memory_equal(f->ext + 16, "8 inline", 8);
    peer_tx(p, .op = RESP_ONLY, .psn = s + 2, .syn = 0x1f);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);

    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_MASKED_COMP_SWAP,
                               .wr_id = 4, .flags = SIG, .remote_addr = 64,
                               .rkey = 5, .arg0 = 0x1111, .arg1 = 0x2222,
                               .mask = 0x3333, .swap_mask = 0x4444 },
              200, 8);
    f = peer_expect(p, CLASS_OWN | CMP_SWAP, s + 3);
    assert_int_equal(f->body, 28 + 16);
    assert_true(peer_be64(f->ext) == 64);
    assert_int_equal(peer_be32(f->ext + 8), 5);
    assert_true(peer_be64(f->ext + 12) == 0x2222);      /* swap first */
    assert_true(peer_be64(f->ext + 20) == 0x1111);
    assert_true(peer_be64(f->ext + 28) == 0x3333);
    assert_true(peer_be64(f->ext + 36) == 0x4444);
    peer_tx(p, .op = ATOMIC_ACK, .psn = s + 3, .syn = 0x1f, .swap = 77);
    peer_cqe(p, scq, 4, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_true(word(p, 200) == 77);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_MASKED_FETCH_ADD,
                               .wr_id = 5, .flags = SIG, .arg0 = 0x5555,
                               .mask = 0x6666, .swap_mask = 0x7777 },
              208, 8);
    f = peer_expect(p, CLASS_OWN | FETCH_ADD, s + 4);
    assert_true(peer_be64(f->ext + 12) == 0x5555);
    assert_true(peer_be64(f->ext + 28) == 0x6666);
    assert_true(peer_be64(f->ext + 36) == 0);
    peer_tx(p, .op = ATOMIC_ACK, .psn = s + 4, .syn = 0x1f, .swap = 78);
    peer_cqe(p, scq, 5, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* FLUSH and ATOMIC WRITE stay in order among themselves and with READs. */
static void outstanding(void **state)
{
    struct gqp_attr a;
    struct peer *p;
    uint32_t s, i;

    (void)state;
    peer_attr_default(&a);
    a.max_rd_atomic = 2;
    p = peer_new(QHCA_QPT_RC, &a);
    s = a.sq_psn;
    for (i = 0; i < 3; i++) {
        peer_post(p, (struct gwr){ .opcode = i ? QHCA_WQE_ATOMIC_WRITE :
                                                 QHCA_WQE_FLUSH,
                                   .wr_id = i, .flags = SIG,
                                   .arg1 = i ? 0 : GLOBAL }, 0, i ? 8 : 0);
    }
    peer_expect(p, FLUSH, s);
    peer_expect(p, ATOMIC_WRITE, s + 1);
    peer_expect_nothing(p);             /* two are out */
    peer_tx(p, .op = RESP_ONLY, .psn = s, .syn = 0x1f);
    peer_expect(p, ATOMIC_WRITE, s + 2);
    peer_tx(p, .op = RESP_ONLY, .psn = s + 1, .syn = 0x1f);
    peer_tx(p, .op = RESP_ONLY, .psn = s + 2, .syn = 0x1f);
    for (i = 0; i < 3; i++) {
        peer_cqe(p, scq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    /* fenced behind a FLUSH */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FLUSH, .wr_id = 4,
                               .arg1 = GLOBAL }, 0, 0);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 5,
                               .flags = SIG | QHCA_WQE_F_FENCE }, 0, 4);
    peer_expect(p, FLUSH, s + 3);
    peer_expect_nothing(p);
    peer_tx(p, .op = RESP_ONLY, .psn = s + 3, .syn = 0x1f);
    peer_expect(p, WRITE_ONLY, s + 4);
    peer_ack(p, s + 4, 0x1f);
    peer_cqe(p, scq, 5, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/*
 * An unanswered FLUSH is retried with the other ICRC, which is kept if it
 * works.
 */
static void asked_again(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = p->a.sq_psn;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FLUSH, .wr_id = 1,
                               .flags = SIG, .arg1 = GLOBAL }, 0, 0);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 2,
                               .flags = SIG }, 0, 4);
    assert_false(peer_expect(p, FLUSH, s)->twice);
    peer_expect(p, WRITE_ONLY, s + 1);
    /* what follows shows the loss */
    peer_ack(p, s, 0x60);
    assert_true(peer_expect(p, FLUSH, s)->twice);
    peer_expect(p, WRITE_ONLY, s + 1);
    /* the timer does, and an ACK of the WRITE alone */
    world_run(&p->w, RTO + RTO / 2);
    assert_false(peer_expect(p, FLUSH, s)->twice);
    peer_expect(p, WRITE_ONLY, s + 1);
    world_run(&p->w, 2 * RTO);
    assert_true(peer_expect(p, FLUSH, s)->twice);
    peer_expect(p, WRITE_ONLY, s + 1);
    peer_tx(p, .op = RESP_ONLY, .psn = s, .syn = 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    /* a lost WRITE does not change that */
    peer_ack(p, s + 1, 0x60);
    peer_expect(p, WRITE_ONLY, s + 1);
    peer_ack(p, s + 1, 0x1f);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FLUSH, .wr_id = 3,
                               .flags = SIG, .arg1 = GLOBAL }, 0, 0);
    assert_true(peer_expect(p, FLUSH, s + 2)->twice);
    peer_tx(p, .op = RESP_ONLY, .psn = s + 2, .syn = 0x1f);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* Invalid responses. */
static void bad_responses(void **state)
{
    static const struct {
        uint8_t opcode;
        struct pkt k;
    } t[] = {
        { QHCA_WQE_FLUSH, { .op = RESP_ONLY, .syn = 0x1f, .data = "data",
                            .len = 4 } },
        { QHCA_WQE_FLUSH, { .op = RESP_FIRST, .syn = 0x1f } },
        { QHCA_WQE_FLUSH, { .op = ATOMIC_ACK, .syn = 0x1f } },
        { QHCA_WQE_ATOMIC_WRITE, { .op = RESP_ONLY, .syn = 0x1f,
                                   .data = "12345678", .len = 8 } },
        { QHCA_WQE_ATOMIC_WRITE, { .op = ATOMIC_ACK, .syn = 0x1f } },
        { QHCA_WQE_MASKED_FETCH_ADD, { .op = RESP_ONLY, .syn = 0x1f } },
    };
    static const struct {
        uint8_t nak, status, syn;
    } naks[] = {
        { 0x61, QHCA_WC_REM_INV_REQ_ERR, QHCA_SYN_NAK_INV_REQ },
        { 0x62, QHCA_WC_REM_ACCESS_ERR, QHCA_SYN_NAK_ACCESS },
        { 0x63, QHCA_WC_REM_OP_ERR, QHCA_SYN_NAK_OP },
    };
    struct peer *p;
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct pkt k = t[i].k;

        p = peer_new(QHCA_QPT_RC, NULL);
        peer_post(p, (struct gwr){ .opcode = t[i].opcode, .wr_id = 1,
                                   .arg1 = t[i].opcode == QHCA_WQE_FLUSH ?
                                           GLOBAL : 0 },
                  0, t[i].opcode == QHCA_WQE_FLUSH ? 0 : 8);
        peer_next(p);
        k.psn = p->a.sq_psn;
        peer_send(p, k);
        peer_cqe(p, scq, 1, QHCA_WC_BAD_RESP_ERR, QHCA_SYN_BAD_PACKET);
        peer_free(p);
    }
    for (i = 0; i < 3; i++) {
        p = peer_new(QHCA_QPT_RC, NULL);
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FLUSH, .wr_id = 1,
                                   .arg1 = GLOBAL }, 0, 0);
        peer_next(p);
        peer_ack(p, p->a.sq_psn, naks[i].nak);
        peer_cqe(p, scq, 1, naks[i].status, naks[i].syn);
        peer_free(p);
    }
    /* a bare ACK does not complete it: it is requested again */
    p = peer_new(QHCA_QPT_RC, NULL);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FLUSH, .wr_id = 1,
                               .flags = SIG, .arg1 = GLOBAL }, 0, 0);
    peer_expect(p, FLUSH, p->a.sq_psn);
    peer_ack(p, p->a.sq_psn, 0x1f);
    peer_expect(p, FLUSH, p->a.sq_psn);
    peer_tx(p, .op = RESP_ONLY, .psn = p->a.sq_psn, .syn = 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* Invalid WQEs. */
static void bad_wqes(void **state)
{
    static const struct {
        struct gwr wr;
        uint32_t len;
    } t[] = {
        { { .opcode = QHCA_WQE_FLUSH }, 0 },
        { { .opcode = QHCA_WQE_FLUSH, .arg1 = 4 }, 0 },
        { { .opcode = QHCA_WQE_FLUSH, .arg1 = GLOBAL | 2 << 4 }, 0 },
        { { .opcode = QHCA_WQE_FLUSH, .arg1 = GLOBAL | 1 << 6 }, 0 },
        { { .opcode = QHCA_WQE_FLUSH, .arg1 = GLOBAL,
            .arg0 = 0x100000000 }, 0 },
        { { .opcode = QHCA_WQE_FLUSH, .arg1 = GLOBAL }, 8 },
        { { .opcode = QHCA_WQE_ATOMIC_WRITE }, 0 },
        { { .opcode = QHCA_WQE_ATOMIC_WRITE }, 4 },
        { { .opcode = QHCA_WQE_ATOMIC_WRITE }, 9 },
        { { .opcode = QHCA_WQE_MASKED_COMP_SWAP }, 4 },
        { { .opcode = QHCA_WQE_MASKED_FETCH_ADD }, 7 },
    };
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct peer *p = peer_new(QHCA_QPT_RC, NULL);

        print_message("  case %u\n", i);
        peer_post(p, t[i].wr, 0, t[i].len);
        peer_run(p);
        assert_true(gcq_poll(&p->scq, &p->cqe));
        assert_true(p->cqe.status == QHCA_WC_LOC_QP_OP_ERR ||
                    p->cqe.status == QHCA_WC_LOC_LEN_ERR);
        peer_expect_nothing(p);
        assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        peer_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flush),
        cmocka_unit_test(flush_of_soft_roce),
        cmocka_unit_test(atomic_write),
        cmocka_unit_test(refused),
        cmocka_unit_test(resources),
        cmocka_unit_test(masked),
        cmocka_unit_test(requests),
        cmocka_unit_test(outstanding),
        cmocka_unit_test(asked_again),
        cmocka_unit_test(bad_responses),
        cmocka_unit_test(bad_wqes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
