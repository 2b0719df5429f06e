/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets out of a super-frame of RoCEv2, one by one: what those see who look
 * at the wire, and how a payload in several pieces is read.
 */
#include "peer.h"
#include "adapter/adapter.h"
#include "transport/roce.h"

#define MTU 256u
#define TRAILER 8u
#define PAYLOAD (4 * MTU + 10)

static uint8_t data[PAYLOAD];

/* Append the trailer for @n packets; returns the new length. */
static size_t trailer(uint8_t *b, size_t len, unsigned n)
{
    memcpy(b + len, "QSFG", 4);
    peer_put16(b + len + 4, MTU);
    peer_put16(b + len + 6, n);
    return len + TRAILER;
}

/* ---- each packet ---- */

static struct {
    uint8_t b[4400];
    size_t len;
} seen[8];
static unsigned seen_n;

static void see(void *opaque, const void *frame, size_t len)
{
    assert_ptr_equal(opaque, seen);
    assert_true(seen_n < 8 && len <= sizeof(seen[0].b));
    memcpy(seen[seen_n].b, frame, len);
    seen[seen_n++].len = len;
}

static void each(const uint8_t *b, size_t len)
{
    seen_n = 0;
    qhca_each_packet(b, len, see, seen);
}

/* Of a super-frame, its packets; of anything else, the frame as it is. */
static void each_packet(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct pkt k = { .op = SEND_ONLY_IMM, .psn = 0xfffffe, .data = data,
                     .len = PAYLOAD, .ackreq = true, .se = true,
                     .imm = 0x1234 };
    uint8_t b[4400], one[4400], *few;
    unsigned i;
    size_t len;

    (void)state;
    len = trailer(b, peer_build(p, &k, b), 5);
    each(b, len);
    assert_int_equal(seen_n, 5);
    for (i = 0; i < 5; i++) {
        struct pkt part = {
            .op = !i ? SEND_FIRST : i < 4 ? SEND_MIDDLE : SEND_LAST_IMM,
            .psn = k.psn + i, .data = data + i * MTU,
            .len = i < 4 ? MTU : PAYLOAD - 4 * MTU, .ackreq = i == 4,
            .se = i == 4, .imm = 0x1234,
        };

        len = peer_build(p, &part, one);
        assert_int_equal(seen[i].len, len);
        assert_memory_equal(seen[i].b, one, len);
    }
    /* damaged on its way: the packets would be valid, which it is not */
    len = trailer(b, peer_build(p, &k, b), 5);
    b[500] ^= 1;
    each(b, len);
    assert_int_equal(seen_n, 1);
    assert_int_equal(seen[0].len, len);
    assert_memory_equal(seen[0].b, b, len);
    /* a packet */
    len = peer_build(p, &k, b);
    each(b, len);
    assert_int_equal(seen_n, 1);
    assert_int_equal(seen[0].len, len);
    /* less than an Ethernet header */
    few = malloc(13);
    memcpy(few, b, 13);
    each(few, 13);
    assert_int_equal(seen_n, 1);
    assert_int_equal(seen[0].len, 13);
    assert_memory_equal(seen[0].b, b, 13);
    free(few);
    peer_free(p);
}

/* No room for a BTH and an ICRC between UDP and the trailer. */
static void too_short(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_super_packet s;
    struct qhca_headers h;
    uint8_t b[4400];
    unsigned n;

    (void)state;
    peer_build(p, &(struct pkt){ .op = SEND_ONLY, .data = data,
                                 .len = PAYLOAD }, b);
    for (n = 0; n < 12 + 4; n++) {
        peer_put16(b + 16, 20 + 8 + n);
        peer_put16(b + 38, 8 + n);
        trailer(b, 42 + n, 2);
        qhca_headers_parse(b, 42 + n + TRAILER, &h);
        assert_int_equal(h.l4_len, 8 + n);
        assert_false(qhca_super_packet_find(b, 42 + n + TRAILER, &h, &s));
    }
    peer_free(p);
}

/* ---- a payload in pieces ---- */

static struct qhca_payload in_pieces(struct qhca_piece *piece, uint32_t pieces,
                                     uint8_t *bounce)
{
    static const uint32_t len[] = { 300, 212, 100, 1, 99, PAYLOAD };
    uint32_t i, at = 0;

    for (i = 0; i < pieces; i++) {
        piece[i].data = data + at;
        piece[i].len = len[i] < PAYLOAD - at ? len[i] : PAYLOAD - at;
        at += piece[i].len;
    }
    assert_int_equal(at, PAYLOAD);
    return (struct qhca_payload){ .piece = piece, .pieces = pieces,
                                  .bounce = bounce };
}

/* The packets of a message may be looked at in any order. */
static void any_order(void **state)
{
    static const uint8_t order[] = { 0, 1, 2, 3, 4, 4, 3, 2, 1, 0, 2, 0, 4, 1,
                                     3 };
    uint8_t frame[54] = { [12] = 8, [14] = 0x45, [42] = WRITE_MIDDLE };
    struct qhca_piece piece[6];
    uint8_t bounce[MTU];
    struct qhca_payload pay = in_pieces(piece, 6, bounce);
    struct qhca_super_packet s = {
        .eth = frame, .ip = frame + 14, .bth = frame + 42, .shared = &pay,
        .payload_len = PAYLOAD, .size = MTU, .n = 5,
    };
    struct qhca_part part;
    unsigned i, k;

    (void)state;
    for (i = 0; i < sizeof(order); i++) {
        k = order[i];
        memset(bounce, 0, sizeof(bounce));
        qhca_super_packet_part(&s, k, &part);
        assert_int_equal(part.len, k < 4 ? MTU : PAYLOAD - 4 * MTU);
        assert_memory_equal(part.data, data + k * MTU, part.len);
        /* only those that straddle pieces are copied */
        assert_int_equal(part.data == bounce, k == 1 || k == 2);
    }
}

/* ---- what is counted ---- */

static unsigned sent;

static bool taken(struct world *w, unsigned src, uint8_t *frame, size_t *len)
{
    (void)w;
    (void)src;
    (void)frame;
    (void)len;
    sent++;
    return false;
}

/* The packets of a super-frame are counted, also without a trace of each. */
static void counted(void **state)
{
    static const struct { uint32_t len, packets, bytes; } t[] = {
        { 4 * MTU + 10, 5, 330 + 3 * 314 + 70 }, { MTU + 1, 2, 330 + 62 },
        { 2, 1, 58 + 16 + 4 },
    };
    struct qhca_config cfg;
    struct peer *p;
    unsigned i, trace;

    (void)state;
    memset(&cfg, 0, sizeof(cfg));
    qhca_config_default(&cfg);
    cfg.num_vectors = WORLD_VECTORS;
    cfg.dm_size = GMEM_SPAN;
    cfg.super_frames = true;
    for (trace = 0; trace < 2; trace++) {
        p = peer_new_as(QHCA_QPT_RC, NULL, &cfg);
        p->w.wire.filter = taken;
        p->e->tracing = trace;
        for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
            uint64_t n = qhca_stat(p->e, QHCA_STAT_ROCE_TX_PACKETS);
            uint64_t bytes = qhca_stat(p->e, QHCA_STAT_ROCE_TX_BYTES);

            sent = 0;
            peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE,
                                       .rkey = 1, .remote_addr = 64 }, 0,
                      t[i].len);
            peer_run(p);
            assert_int_equal(sent, 1);
            assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_TX_PACKETS) - n,
                             t[i].packets);
            assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_TX_BYTES) - bytes,
                             t[i].bytes);
        }
        peer_free(p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_packet),
        cmocka_unit_test(too_short),
        cmocka_unit_test(any_order),
        cmocka_unit_test(counted),
    };
    unsigned i;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 31 + (i >> 8));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
