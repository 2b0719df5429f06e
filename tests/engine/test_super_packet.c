/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Super-frames of RoCEv2: packets of a message that pass the wire as one.  They
 * are cut here by a model of its own, and what comes out must be what an
 * adapter without super-frames sends.
 */
#include <inttypes.h>

#include "peer.h"
#include "reborn.h"
#include "adapter/adapter.h"
#include "transport/roce.h"
#include "rule.h"

#define MTU 256u
#define SIG QHCA_WQE_F_SIGNALED
#define BIG 65600u
#define HEAD 42u                /* Ethernet, IPv4, UDP */
#define TRAILER 8u

static unsigned supers;         /* super-frames seen on the wire */
static uint8_t data[BIG];

/* ---- the model ---- */

static bool begins(unsigned op)
{
    return op == SEND_ONLY || op == SEND_ONLY_IMM || op == SEND_ONLY_INV ||
           op == WRITE_ONLY || op == WRITE_ONLY_IMM || op == RESP_ONLY ||
           op == SEND_FIRST || op == WRITE_FIRST || op == RESP_FIRST;
}

/* The opcode with the beginning taken off, if it had one. */
static unsigned rest_of(unsigned op)
{
    switch (op) {
    case SEND_ONLY:
        return SEND_LAST;
    case SEND_ONLY_IMM:
        return SEND_LAST_IMM;
    case SEND_ONLY_INV:
        return SEND_LAST_INV;
    case SEND_FIRST:
        return SEND_MIDDLE;
    case WRITE_ONLY:
        return WRITE_LAST;
    case WRITE_ONLY_IMM:
        return WRITE_LAST_IMM;
    case WRITE_FIRST:
        return WRITE_MIDDLE;
    case RESP_ONLY:
        return RESP_LAST;
    case RESP_FIRST:
        return RESP_MIDDLE;
    default:
        return op;
    }
}

static unsigned middle_of(unsigned op)
{
    unsigned rest = rest_of(op);

    return rest == WRITE_LAST || rest == WRITE_LAST_IMM ||
           rest == WRITE_MIDDLE ? WRITE_MIDDLE :
           rest == RESP_LAST || rest == RESP_MIDDLE ? RESP_MIDDLE :
                                                      SEND_MIDDLE;
}

static unsigned first_of(unsigned op)
{
    unsigned middle = middle_of(op);

    return middle == WRITE_MIDDLE ? WRITE_FIRST :
           middle == RESP_MIDDLE ? RESP_FIRST : SEND_FIRST;
}

static unsigned ext_of(unsigned op)
{
    unsigned n = 0;

    n += op == WRITE_FIRST || op == WRITE_ONLY || op == WRITE_ONLY_IMM ? 16 :
                                                                         0;
    n += op == RESP_FIRST || op == RESP_LAST || op == RESP_ONLY ? 4 : 0;
    n += op == SEND_LAST_IMM || op == SEND_ONLY_IMM || op == WRITE_LAST_IMM ||
         op == WRITE_ONLY_IMM || op == SEND_LAST_INV ||
         op == SEND_ONLY_INV ? 4 : 0;
    return n;
}

/* Make @b, of @len bytes without ICRC, a correct packet. */
static size_t seal(uint8_t *b, size_t len)
{
    uint8_t *ip = b + 14;
    uint32_t sum = 0, crc;
    unsigned i;

    peer_put16(b + 38, (unsigned)(len + 4 - 34));
    peer_put16(ip + 2, (unsigned)(len + 4 - 14));
    peer_put16(ip + 10, 0);
    for (i = 0; i < 20; i += 2) {
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    }
    sum = (sum & 0xffff) + (sum >> 16);
    peer_put16(ip + 10, ~(sum + (sum >> 16)) & 0xffff);
    crc = peer_icrc(ip, len - 14);
    for (i = 0; i < 4; i++) {
        b[len + i] = (uint8_t)(crc >> (8 * i));
    }
    return len + 4;
}

static bool is_super(const uint8_t *frame, size_t len)
{
    return len > HEAD + 12 + TRAILER && !memcmp(frame + len - 8, "QSFG", 4);
}

/* Cut packet @k of @n out of a super-frame; returns its length. */
static size_t cut(const uint8_t *frame, size_t len, unsigned k, unsigned n,
                  unsigned size, uint8_t *to)
{
    const uint8_t *bth = frame + HEAD;
    unsigned whole = bth[0] & OP_MASK, op, pad = bth[1] >> 4 & 3, part;
    const uint8_t *ext = bth + 12, *payload = ext + ext_of(whole);
    size_t total = (size_t)(frame + len - TRAILER - 4 - payload) - pad, at;
    bool last = k + 1 == n;

    op = !k && begins(whole) ? first_of(whole) :
         last ? rest_of(whole) : middle_of(whole);
    memcpy(to, frame, HEAD + 12);
    to[HEAD] = (uint8_t)((bth[0] & CLASS_MASK) | op);
    part = last ? (unsigned)total - k * size : size;
    pad = -part & 3;
    to[HEAD + 1] = (uint8_t)((last ? bth[1] & 0x80 : 0) |
                             (bth[1] & 0x4f) | pad << 4);
    peer_put32(to + HEAD + 8, ((peer_be32(bth + 8) + k) & 0xffffff) |
               (last && (bth[8] & 0x80) ? 0x80000000u : 0));
    at = HEAD + 12;
    if (op == WRITE_FIRST) {
        memcpy(to + at, ext, 16);
        at += 16;
    } else if (ext_of(op)) {
        memcpy(to + at, payload - 4, 4);
        at += 4;
    }
    memcpy(to + at, payload + (size_t)k * size, part);
    memset(to + at + part, 0, pad);
    return seal(to, at + part + pad);
}

static bool cutting(struct world *w, unsigned src, uint8_t *frame, size_t *len)
{
    unsigned n, size, k;
    uint8_t one[4400];
    size_t l;

    if (!is_super(frame, *len)) {
        return peer_filter(w, src, frame, len);
    }
    supers++;
    /* the whole is a correct packet */
    assert_int_equal(peer_icrc(frame + 14, *len - TRAILER - 14 - 4),
                     frame[*len - 12] | (uint32_t)frame[*len - 11] << 8 |
                     (uint32_t)frame[*len - 10] << 16 |
                     (uint32_t)frame[*len - 9] << 24);
    size = (unsigned)frame[*len - 4] << 8 | frame[*len - 3];
    n = (unsigned)frame[*len - 2] << 8 | frame[*len - 1];
    assert_true(n >= 2 && n <= QHCA_ETH_SUPER_SEGS_MAX);
    for (k = 0; k < n; k++) {
        l = cut(frame, *len, k, n, size, one);
        peer_filter(w, src, one, &l);
    }
    return false;
}

static struct peer *super_peer(uint8_t type, const struct gqp_attr *a)
{
    struct qhca_config cfg;
    struct peer *p;

    memset(&cfg, 0, sizeof(cfg));
    qhca_config_default(&cfg);
    cfg.num_vectors = WORLD_VECTORS;
    cfg.dm_size = GMEM_SPAN;
    cfg.super_frames = true;
    p = peer_new_as(type, a, &cfg);
    p->w.wire.filter = cutting;
    supers = 0;
    return p;
}

/* ---- sending ---- */

/* All but AckReq and the ICRC must be the same. */
static void same_frame(const struct pframe *a, const struct pframe *b)
{
    uint8_t x[4400], y[4400];

    assert_int_equal(a->len, b->len);
    memcpy(x, a->b, a->len);
    memcpy(y, b->b, b->len);
    x[HEAD + 8] &= 0x7f;
    y[HEAD + 8] &= 0x7f;
    assert_memory_equal(x, y, a->len - 4);
}

/* Except that memory is looked up once for each read. */
static void same_stats(struct peer *a, struct peer *b)
{
    unsigned i;

    for (i = 0; i < QHCA_STAT_COUNT; i++) {
        if (i != QHCA_STAT_TABLE_WALKS &&
            qhca_stat(a->e, i) != qhca_stat(b->e, i)) {
            fail_msg("counter %u is %" PRIu64 " and %" PRIu64, i,
                     qhca_stat(a->e, i), qhca_stat(b->e, i));
        }
    }
}

/*
 * Each kind of message, of each number of packets, looks like that of an
 * adapter without super-frames, when it is cut; and is counted like that.
 */
static void as_if_cut(void **state)
{
    static const uint8_t kinds[] = {
        QHCA_WQE_SEND, QHCA_WQE_SEND_IMM, QHCA_WQE_SEND_INV,
        QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_WRITE_IMM,
    };
    static const uint32_t lens[] = {
        0, 1, MTU, MTU + 1, 2 * MTU, 3 * MTU - 1, 31 * MTU, 40 * MTU + 2,
    };
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    struct peer *q = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = p->a.sq_psn, n;
    unsigned kind, i, seen;

    (void)state;
    for (kind = 0; kind < sizeof(kinds); kind++) {
        for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
            struct gwr wr = {
                .opcode = kinds[kind], .wr_id = i, .imm = 0x04030201,
                .flags = SIG | QHCA_WQE_F_SOLICITED, .rkey = 0xabcd,
                .remote_addr = 0x1122334455667788,
            };

            n = lens[i] ? (lens[i] + MTU - 1) / MTU : 1;
            seen = supers;
            peer_post(p, wr, 100 * i, lens[i]);
            peer_post(q, wr, 100 * i, lens[i]);
            peer_run(p);
            peer_run(q);
            assert_int_equal(supers - seen, n > 1);
            assert_int_equal(peer_waiting(p), n);
            assert_int_equal(peer_waiting(q), n);
            while (peer_waiting(q)) {
                same_frame(peer_next(p), peer_next(q));
            }
            s += n;
            peer_ack(p, s - 1, 0x1f);
            peer_ack(q, s - 1, 0x1f);
            peer_cqe(p, scq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
            peer_cqe(q, scq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        }
    }
    same_stats(p, q);
    peer_free(q);
    peer_free(p);
}

/* The window counts packets; AckReq comes in time for it. */
static void window(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    const struct pframe *f = NULL;
    unsigned i;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 1,
                               .flags = SIG }, 0, 300 * MTU);
    peer_run(p);
    assert_int_equal(peer_waiting(p), QHCA_WINDOW_START);
    for (i = 0; i < QHCA_WINDOW_START; i++) {
        f = peer_next(p);
        assert_int_equal(f->psn, (p->a.sq_psn + i) & 0xffffff);
    }
    assert_true(f->ackreq);
    peer_ack(p, f->psn, 0x1f);
    for (; i < 300; i++) {
        f = peer_next(p);
        if (f->ackreq) {
            peer_ack(p, f->psn, 0x1f);
        }
    }
    assert_int_equal(f->op, WRITE_LAST);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_true(supers >= 3);
    peer_free(p);
}

/* Packets are resent one by one: perhaps only super-frames are lost. */
static void again_as_packets(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    uint32_t s = p->a.sq_psn, i;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 9 * MTU);
    for (i = 0; i < 9; i++) {
        peer_next(p);
    }
    assert_int_equal(supers, 1);
    peer_ack(p, s + 4, 0x60);
    peer_expect(p, SEND_MIDDLE, s + 4);
    for (i = 5; i < 8; i++) {
        peer_expect(p, SEND_MIDDLE, s + i);
    }
    peer_expect(p, SEND_LAST, s + 8);
    peer_expect_nothing(p);
    assert_int_equal(supers, 1);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RETRANSMITS), 5);
    peer_ack(p, s + 8, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    /* and what is new leaves as a super-frame again */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 2,
                               .flags = SIG }, 0, 2 * MTU);
    peer_expect(p, SEND_FIRST, s + 9);
    peer_expect(p, SEND_LAST, s + 10);
    assert_int_equal(supers, 2);
    peer_ack(p, s + 10, 0x1f);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* A region that goes in the middle: what is before it is sent, as ever. */
static void as_far_as_it_goes(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .wr_id = 1, .num_sge = 2 };
    uint32_t s = p->a.sq_psn, i;
    struct gmr mr;

    (void)state;
    gmr_create(&mr, &p->g, PEER_BUF, PEER_IOVA, QHCA_ACCESS_MASK, NULL);
    gbuf_allow(&mr.buf, 0, PEER_BUF, GMEM_RW);
    wr.sge[0] = (struct qhca_sge){ .addr = PEER_IOVA, .len = 70 * MTU,
                                   .lkey = p->mr.key };
    wr.sge[1] = (struct qhca_sge){ .addr = PEER_IOVA, .len = 70 * MTU,
                                   .lkey = mr.key };
    peer_post(p, wr, 0, 0);
    for (i = 0; i < QHCA_WINDOW_START; i++) {
        peer_next(p);
    }
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    supers = 0;
    peer_ack(p, s + i - 1, 0x1f);
    for (; i < 70; i++) {
        peer_expect(p, SEND_MIDDLE, s + i);
    }
    assert_int_equal(supers, 0);
    peer_cqe(p, scq, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_KEY_INVALID);
    peer_expect_nothing(p);
    peer_free(p);
}

/* A region of two pages, of which the second is not valid. */
static uint32_t half_a_region(struct peer *p)
{
    uint64_t table = gmem_alloc(&p->n->mem, 4096, 12, 0);
    uint64_t page = gmem_alloc(&p->n->mem, 4096, 12, 0);
    uint64_t entry = page | QHCA_BTE_VALID;
    struct qhca_mpt m = {
        .buf = { .addr = table, .len = 8192, .entries = 2,
                 .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12 },
        .iova = PEER_IOVA, .len = 8192, .pd = p->g.pd,
        .access = QHCA_ACCESS_REMOTE_READ,
    };

    memcpy(gmem_ptr(&p->n->mem, table, 8), &entry, 8);
    gmem_allow(&p->n->mem, table, 16, GMEM_R);
    gmem_allow(&p->n->mem, page, 4096, GMEM_R);
    return guest_create(&p->g, QHCA_CMD_CREATE_MR, &m, sizeof(m));
}

/* An error in the middle is found, counted and traced once. */
static void one_error(void **state)
{
    struct peer *p, *q, *each[2];
    uint32_t key, i, k, n = 10 * MTU;
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .wr_id = 1, .num_sge = 1 };
    unsigned reads;

    (void)state;
    for (reads = 0; reads < 2; reads++) {
        each[0] = p = super_peer(QHCA_QPT_RC, NULL);
        each[1] = q = peer_new(QHCA_QPT_RC, NULL);
        for (i = 0; i < 2; i++) {
            key = half_a_region(each[i]);
            wr.sge[0] = (struct qhca_sge){
                .addr = PEER_IOVA + 4096 - 6 * MTU, .len = n, .lkey = key,
            };
            if (reads) {
                peer_tx(each[i], .op = READ_REQ, .psn = each[i]->a.rq_psn,
                        .va = PEER_IOVA + 4096 - 6 * MTU, .rkey = key,
                        .dmalen = n);
            } else {
                peer_post(each[i], wr, 0, 0);
            }
            for (k = 0; k < 6; k++) {
                peer_next(each[i]);
            }
            if (!reads) {
                peer_run(each[i]);
                peer_ack(each[i], each[i]->a.sq_psn + 5, 0x1f);
                peer_cqe(each[i], scq, 1, QHCA_WC_LOC_PROT_ERR,
                         QHCA_SYN_TABLE_INVALID);
            }
            peer_run(each[i]);
            assert_int_equal(guest_simple(&each[i]->g, QHCA_CMD_DESTROY_MR,
                                          key), QHCA_ST_OK);
        }
        assert_int_equal(supers, 0);
        assert_int_equal(qhca_stat(p->e, QHCA_STAT_TABLE_ERRORS), 1);
        same_stats(p, q);
        peer_free(p);
        peer_free(q);
    }
}

static void nobody(struct qhca *e, const void *frame, size_t len)
{
    (void)e;
    (void)frame;
    (void)len;
}

/* While packets are observed, single packets are sent. */
static void watched(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    uint32_t s = p->a.sq_psn, id, i;
    unsigned how;

    (void)state;
    for (how = 0; how < 3; how++) {
        id = 0;
        if (how == 0) {
            p->e->sniff = nobody;
        } else if (how == 1) {
            id = rule_add(p->e, rule_for("ACK", RULE(DROP, .nth = 1000)));
        } else {
            p->e->sniff = NULL;
        }
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = how,
                                   .flags = SIG }, 0, 4 * MTU);
        for (i = 0; i < 4; i++) {
            assert_int_equal(peer_next(p)->psn, s++ & 0xffffff);
        }
        if (id) {
            p->e->sniff = NULL;
            assert_true(qhca_fault_remove(p->e, id));
        }
        assert_int_equal(supers, how == 2);
        peer_ack(p, s - 1, 0x1f);
        peer_cqe(p, scq, how, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    peer_free(p);
}

/* UC has no window and no ACKs. */
static void unreliable(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_UC, NULL);
    struct peer *q = peer_new(QHCA_QPT_UC, NULL);
    struct gwr wr = { .opcode = QHCA_WQE_RDMA_WRITE_IMM, .wr_id = 3,
                      .flags = SIG, .rkey = 5, .imm = 1 };

    (void)state;
    peer_post(p, wr, 0, 50 * MTU + 3);
    peer_post(q, wr, 0, 50 * MTU + 3);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_cqe(q, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(peer_waiting(p), 51);
    assert_true(supers);
    while (peer_waiting(q)) {
        same_frame(peer_next(p), peer_next(q));
    }
    same_stats(p, q);
    peer_free(q);
    peer_free(p);
}

/* ---- receiving ---- */

/* Send the packet @k as a super-frame of packets of @size bytes. */
static void tx_super_of(struct peer *p, struct pkt k, unsigned size,
                        unsigned n)
{
    static uint8_t b[BIG + 100];
    size_t len = peer_build(p, &k, b);

    memcpy(b + len, "QSFG", 4);
    peer_put16(b + len + 4, size);
    peer_put16(b + len + 6, n);
    world_inject(&p->w, 0, b, len + TRAILER);
    peer_run(p);
}

static void tx_super(struct peer *p, struct pkt k)
{
    tx_super_of(p, k, MTU, (unsigned)(k.len + MTU - 1) / MTU);
}

/* The same packets, one by one, by the model. */
static void tx_packets(struct peer *p, struct pkt k)
{
    static uint8_t b[BIG + 100];
    size_t len = peer_build(p, &k, b) + TRAILER, l;
    unsigned n = (unsigned)(k.len + MTU - 1) / MTU, i;
    uint8_t one[4400];

    for (i = 0; i < n; i++) {
        l = cut(b, len, i, n, MTU, one);
        world_inject(&p->w, 0, one, l);
        peer_run(p);
    }
}

static void is_in_memory(struct peer *p, uint64_t off, const void *want,
                         size_t len)
{
    static uint8_t got[BIG];

    gbuf_read(&p->mr.buf, off, got, len);
    assert_memory_equal(got, want, len);
}

/* Each kind of message, as a whole and in parts. */
static void executed(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    struct peer *q = peer_new(QHCA_QPT_RC, NULL);
    uint32_t s = p->a.rq_psn, len = 5 * MTU + 7;
    struct peer *each[] = { p, q };
    unsigned i, w;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct peer *x = each[i];
        void (*tx)(struct peer *, struct pkt) = i ? tx_packets : tx_super;

        peer_recv(x, 11, 0, 100000);
        tx(x, (struct pkt){ .op = SEND_ONLY_IMM, .psn = s, .data = data,
                            .len = len, .imm = 0x01020304, .se = true,
                            .ackreq = true });
        peer_cqe(x, rcq, 11, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        assert_int_equal(x->cqe.byte_len, len);
        assert_int_equal(x->cqe.flags,
                         QHCA_CQE_F_IMM | QHCA_CQE_F_SOLICITED);
        assert_memory_equal(&x->cqe.imm, "\1\2\3\4", 4);
        is_in_memory(x, 0, data, len);
        peer_expect_aeth(x, 0x1f, s + 5);
        tx(x, (struct pkt){ .op = WRITE_FIRST, .psn = s + 6,
                            .va = PEER_IOVA + 5000, .rkey = x->mr.key,
                            .dmalen = 9 * MTU, .data = data + 100,
                            .len = 3 * MTU });
        tx(x, (struct pkt){ .op = WRITE_MIDDLE, .psn = s + 9,
                            .data = data + 100 + 3 * MTU, .len = 2 * MTU,
                            .ackreq = true });
        peer_expect_aeth(x, 0x1f, s + 10);
        peer_recv(x, 12, 0, 0);
        tx(x, (struct pkt){ .op = WRITE_LAST_IMM, .psn = s + 11, .imm = 7,
                            .data = data + 100 + 5 * MTU, .len = 4 * MTU,
                            .ackreq = true });
        peer_cqe(x, rcq, 12, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        assert_int_equal(x->cqe.byte_len, 9 * MTU);
        is_in_memory(x, 5000, data + 100, 9 * MTU);
        peer_expect_aeth(x, 0x1f, s + 14);
        /* as duplicates: acknowledged, not executed */
        for (w = 0; w < 9 * MTU; w += 256) {
            gbuf_fill(&x->mr.buf, 5000 + w, 7, 5000 + w, 256);
        }
        tx(x, (struct pkt){ .op = WRITE_ONLY, .psn = s + 6,
                            .va = PEER_IOVA + 5000, .rkey = x->mr.key,
                            .dmalen = 9 * MTU, .data = data + 100,
                            .len = 9 * MTU, .ackreq = true });
        peer_expect_aeth(x, 0x1f, s + 14);
        assert_int_equal(gbuf_verify(&x->mr.buf, 5000, 7, 5000, 9 * MTU),
                         9 * MTU);
    }
    same_stats(p, q);
    peer_free(q);
    peer_free(p);
}

/* An error in the middle occurs at that packet. */
static void refused(void **state)
{
    struct peer *p;
    uint32_t s;

    (void)state;
    /* no receive: one RNR NAK, the rest is dropped */
    p = super_peer(QHCA_QPT_RC, NULL);
    s = p->a.rq_psn;
    tx_super(p, (struct pkt){ .op = SEND_ONLY, .psn = s, .data = data,
                              .len = 4 * MTU });
    peer_expect_aeth(p, 0x20 | p->a.min_rnr_timer, s);
    peer_expect_nothing(p);
    /* a gap before it: one NAK */
    peer_recv(p, 1, 0, 4 * MTU);
    peer_tx(p, .op = SEND_FIRST, .psn = s, .data = data, .len = MTU);
    tx_super(p, (struct pkt){ .op = SEND_LAST, .psn = s + 2, .data = data,
                              .len = 2 * MTU });
    peer_expect_aeth(p, 0x60, s + 1);
    peer_expect_nothing(p);
    /* the beginning is known already, the end is new */
    tx_super(p, (struct pkt){ .op = SEND_ONLY, .psn = s, .data = data,
                              .len = 4 * MTU, .ackreq = true });
    peer_expect_aeth(p, 0x1f, s + 3);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    is_in_memory(p, 0, data, 4 * MTU);
    /* the receive is too short for the third packet */
    peer_recv(p, 2, 0, 2 * MTU + 10);
    tx_super(p, (struct pkt){ .op = SEND_ONLY, .psn = s + 4, .data = data,
                              .len = 5 * MTU });
    peer_expect_aeth(p, 0x61, s + 6);
    peer_expect_nothing(p);
    peer_cqe(p, rcq, 2, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_RQ_LENGTH);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_free(p);

    /* packets of another size than the QP's */
    p = super_peer(QHCA_QPT_RC, NULL);
    peer_recv(p, 1, 0, 10000);
    tx_super_of(p, (struct pkt){ .op = SEND_ONLY, .psn = p->a.rq_psn,
                                 .data = data, .len = 1024 }, 512, 2);
    peer_expect_aeth(p, 0x61, p->a.rq_psn);
    peer_free(p);
}

/*
 * No form of it does harm.  Anything else is a packet followed by some bytes:
 * too long for the port or for the QP, or dropped as malformed.
 */
static void malformed(void **state)
{
    static const struct {
        uint8_t op;
        unsigned len, size, n;
    } bad[] = {
        { SEND_ONLY, 4 * MTU, MTU, 3 }, { SEND_ONLY, 4 * MTU, MTU, 5 },
        { SEND_ONLY, 4 * MTU, MTU, 1 }, { SEND_ONLY, 4 * MTU, MTU, 0 },
        { SEND_ONLY, 4 * MTU, 300, 4 }, { SEND_ONLY, 129 * MTU, MTU, 129 },
        { SEND_ONLY, 4 * MTU, 0, 4 }, { SEND_ONLY, 4 * 128, 128, 4 },
        { SEND_ONLY, 16384, 8192, 2 }, { WRITE_ONLY, 4 * MTU, MTU, 3 },
        { ACK, 2 * MTU, MTU, 2 }, { READ_REQ, 2 * MTU, MTU, 2 },
        { UD_ONLY, 2 * MTU, MTU, 2 }, { CMP_SWAP, 2 * MTU, MTU, 2 },
        { FLUSH, 2 * MTU, MTU, 2 }, { ATOMIC_WRITE, 2 * MTU, MTU, 2 },
        { 0x1f, 2 * MTU, MTU, 2 }, { CLASS_OWN | FETCH_ADD, 2 * MTU, MTU, 2 },
    };
    static uint8_t b[BIG + 100];
    const struct pframe *f;
    struct peer *p;
    uint64_t rx;
    uint32_t s;
    unsigned i;
    size_t len;

    (void)state;
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        p = super_peer(QHCA_QPT_RC, NULL);
        peer_recv(p, 1, 0, 40000);
        tx_super_of(p, (struct pkt){ .op = bad[i].op, .psn = p->a.rq_psn,
                                     .data = data, .len = bad[i].len,
                                     .va = PEER_IOVA, .rkey = p->mr.key,
                                     .dmalen = bad[i].len },
                    bad[i].size, bad[i].n);
        if (peer_waiting(p)) {
            f = peer_expect(p, ACK, p->a.rq_psn);
            assert_int_equal(f->ext[0], 0x61);
        }
        assert_int_equal(peer_waiting(p), 0);
        assert_int_equal(gbuf_verify(&p->mr.buf, 0, 7, 0, PEER_BUF),
                         PEER_BUF);
        peer_free(p);
    }
    p = super_peer(QHCA_QPT_RC, NULL);
    s = p->a.rq_psn;
    peer_recv(p, 1, 0, 4 * MTU);
    rx = qhca_stat(p->e, QHCA_STAT_ROCE_RX_PACKETS);
    /* damaged on its way: dropped as a whole, also if it would be cut */
    for (i = 0; i < 2; i++) {
        p->e->sniff = i ? nobody : NULL;
        len = peer_build(p, &(struct pkt){ .op = SEND_ONLY, .psn = s,
                                           .data = data, .len = 4 * MTU }, b);
        memcpy(b + len, "QSFG\1\0\0\4", 8);
        b[500] ^= 1;
        world_inject(&p->w, 0, b, len + TRAILER);
        peer_expect_nothing(p);
        assert_true(qhca_stat(p->e, QHCA_STAT_ROCE_ICRC_ERRORS) > i);
    }
    p->e->sniff = NULL;
    /* too long for the port's MTU when it is cut */
    p->e->mtu = MTU;
    tx_super(p, (struct pkt){ .op = SEND_ONLY, .psn = s, .data = data,
                              .len = 4 * MTU });
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RX_PACKETS), rx);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_PORT_RX_OVERSIZE), 4);
    p->e->mtu = 9000;
    /* and the right one is right */
    tx_super(p, (struct pkt){ .op = SEND_ONLY, .psn = s, .data = data,
                              .len = 4 * MTU, .ackreq = true });
    peer_expect_aeth(p, 0x1f, s + 3);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* Is the frame of @len bytes, with @extra bytes inserted at @at, taken for one? */
static bool found_with(const uint8_t *frame, size_t len, size_t at,
                       const uint8_t *extra, size_t n)
{
    static uint8_t b[2 * BIG];
    struct qhca_super_packet s;
    struct qhca_headers h;

    memcpy(b, frame, at);
    memcpy(b + at, extra, n);
    memcpy(b + at + n, frame + at, len - at);
    if (b[14] >> 4 == 6) {
        peer_put16(b + 18, ((unsigned)b[18] << 8 | b[19]) + (unsigned)n);
        b[20] = n ? 0 : 17;             /* hop-by-hop options */
    } else {
        b[14] = (uint8_t)(0x45 + n / 4);
        peer_put16(b + 16, ((unsigned)b[16] << 8 | b[17]) + (unsigned)n);
    }
    qhca_headers_parse(b, len + n, &h);
    assert_int_equal(h.l4_hlen, 8);
    return qhca_super_packet_find(b, len + n, &h, &s);
}

/*
 * A packet that is cut has the headers of the super-frame; so they must not be
 * longer than those of a packet can be.
 */
static void no_options(void **state)
{
    static uint8_t four[BIG + 100], six[BIG + 100], ext[2048];
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    struct pkt k = { .op = SEND_ONLY, .data = data, .len = 4 * MTU };
    size_t len = peer_build(p, &k, four);

    (void)state;
    memcpy(four + len, "QSFG\1\0\0\4", TRAILER);
    len += TRAILER;
    memset(ext, 1, 40);                 /* IPv4: no operation */
    assert_true(found_with(four, len, 34, ext, 0));
    assert_false(found_with(four, len, 34, ext, 4));
    assert_false(found_with(four, len, 34, ext, 40));

    memcpy(six, four, 12);
    memcpy(six + 12, "\x86\xdd\x60\0\0\0", 6);
    memcpy(six + 18, four + 38, 2);     /* the length of UDP */
    memset(six + 20, 0, 34);
    memcpy(six + 54, four + 34, len - 34);
    len += 20;
    ext[0] = 17;                        /* UDP follows */
    ext[1] = sizeof(ext) / 8 - 1;
    assert_true(found_with(six, len, 54, ext, 0));
    assert_false(found_with(six, len, 54, ext, sizeof(ext)));
    ext[1] = 0;
    assert_false(found_with(six, len, 54, ext, 8));
    peer_free(p);
}

/* ---- READ ---- */

static void read_responses(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    struct peer *q = peer_new(QHCA_QPT_RC, NULL);
    struct peer *each[] = { p, q };
    uint32_t s = p->a.rq_psn, len = 100 * MTU + 5, i;

    (void)state;
    for (i = 0; i < 2; i++) {
        peer_tx(each[i], .op = READ_REQ, .psn = s, .va = PEER_IOVA + 3,
                .rkey = each[i]->mr.key, .dmalen = len);
        world_run(&each[i]->w, 100000);
    }
    assert_true(supers);
    assert_int_equal(peer_waiting(p), 101);
    assert_int_equal(peer_waiting(q), 101);
    while (peer_waiting(q)) {
        same_frame(peer_next(p), peer_next(q));
    }
    same_stats(p, q);
    /* requested again: as packets */
    supers = 0;
    peer_tx(p, .op = READ_REQ, .psn = s + 99, .va = PEER_IOVA + 3 + 99 * MTU,
            .rkey = p->mr.key, .dmalen = MTU + 5);
    peer_expect(p, RESP_FIRST, s + 99);
    peer_expect(p, RESP_LAST, s + 100);
    assert_int_equal(supers, 0);
    peer_free(q);
    peer_free(p);
}

/* The wire is blocked after one frame. */
static bool cutting_one(struct world *w, unsigned src, uint8_t *frame,
                        size_t *len)
{
    w->wire.refuse = 65536;
    return cutting(w, src, frame, len);
}

/* A READ that is requested again while it is being answered. */
static void read_restarted(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    struct pkt k = { .op = READ_REQ, .psn = p->a.rq_psn, .va = PEER_IOVA,
                     .rkey = p->mr.key, .dmalen = 300 * MTU };
    uint8_t b[4400];
    uint32_t i;

    (void)state;
    p->w.wire.filter = cutting_one;
    world_inject(&p->w, 0, b, peer_build(p, &k, b));
    world_run(&p->w, 10);
    assert_int_equal(supers, 1);
    assert_in_range(peer_waiting(p), 2, 298);
    p->tail = p->head;
    k.psn++;
    k.va += MTU;
    k.dmalen -= MTU;
    world_inject(&p->w, 0, b, peer_build(p, &k, b));
    p->w.wire.filter = cutting;
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
    assert_int_equal(peer_waiting(p), 299);
    for (i = 1; i < 300; i++) {
        peer_expect(p, i == 1 ? RESP_FIRST : i < 299 ? RESP_MIDDLE : RESP_LAST,
                    k.psn - 1 + i);
    }
    assert_int_equal(supers, 1);
    peer_free(p);
}

/* Responses to our own READ; a lost beginning is asked for again. */
static void read_data(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    uint32_t s = p->a.sq_psn, len = 6 * MTU + 2;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                               .flags = SIG, .rkey = 3 }, 1000, len);
    peer_expect(p, READ_REQ, s);
    tx_super(p, (struct pkt){ .op = RESP_FIRST, .psn = s, .syn = 0x1f,
                              .data = data, .len = 2 * MTU });
    /* two are lost */
    tx_super(p, (struct pkt){ .op = RESP_LAST, .psn = s + 4, .syn = 0x1f,
                              .data = data + 4 * MTU, .len = 2 * MTU + 2 });
    peer_expect(p, READ_REQ, s + 2);
    peer_no_cqe(p, scq);
    tx_super(p, (struct pkt){ .op = RESP_ONLY, .psn = s + 2, .syn = 0x1f,
                              .data = data + 2 * MTU, .len = 4 * MTU + 2 });
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    is_in_memory(p, 1000, data, len);
    peer_expect_nothing(p);
    peer_free(p);
}

/* ---- observers of received packets ---- */

static struct {
    uint8_t b[4400];
    size_t len;
} sniffed[64];
static unsigned sniffed_n;

static void sniff(struct qhca *e, const void *frame, size_t len)
{
    (void)e;
    assert_true(sniffed_n < 64 && len <= sizeof(sniffed[0].b));
    memcpy(sniffed[sniffed_n].b, frame, len);
    sniffed[sniffed_n++].len = len;
}

/* A sniffer sees the frames, and rules for packets see the packets. */
static void cut_for_who_looks(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    struct pkt k = { .op = SEND_ONLY, .psn = p->a.rq_psn, .data = data,
                     .len = 5 * MTU + 1, .ackreq = true };
    static uint8_t b[BIG + 100];
    size_t len = peer_build(p, &k, b) + TRAILER, l;
    uint8_t one[4400];
    unsigned i;

    (void)state;
    peer_recv(p, 1, 0, 10 * MTU);
    sniffed_n = 0;
    p->e->sniff = sniff;
    tx_super(p, k);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    p->e->sniff = NULL;
    assert_int_equal(sniffed_n, 6 + 1);         /* and our ACK */
    for (i = 0; i < 6; i++) {
        l = cut(b, len, i, 6, MTU, one);
        assert_int_equal(sniffed[i].len, l);
        assert_memory_equal(sniffed[i].b, one, l);
    }
    peer_next(p);
    /* not for us: what a promiscuous port would get, one by one */
    p->e->sniff = sniff;
    sniffed_n = 0;
    b[14 + 19] ^= 1;                            /* another IP address */
    l = seal(b, len - TRAILER - 4);
    assert_int_equal(l, len - TRAILER);
    memcpy(b + l, "QSFG\1\0\0\6", 8);
    world_inject(&p->w, 0, b, len);
    peer_expect_nothing(p);
    p->e->sniff = NULL;
    assert_int_equal(sniffed_n, 6);
    peer_free(p);
}

static unsigned writes;

/* As a user who stops the adapter at the third packet, and adds a rule. */
static void third(void *opaque, uint64_t addr, size_t len, bool write)
{
    struct peer *p = opaque;

    (void)addr;
    (void)len;
    if (write && ++writes == 3) {
        rule_add(p->e, RULE(DROP,
                 .fields = QHCA_FLT_DIRECTION | QHCA_FLT_COUNT,
                 .direction = QHCA_FLT_IN, .count = 1));
    }
}

/* A rule added in the middle applies to the remaining packets. */
static void rule_in_the_middle(void **state)
{
    struct peer *p = super_peer(QHCA_QPT_RC, NULL);
    uint32_t s = p->a.rq_psn;

    (void)state;
    writes = 0;
    p->n->mem.watch = third;
    p->n->mem.watch_opaque = p;
    tx_super(p, (struct pkt){ .op = WRITE_ONLY, .psn = s, .va = PEER_IOVA,
                              .rkey = p->mr.key, .dmalen = 8 * MTU,
                              .data = data, .len = 8 * MTU });
    p->n->mem.watch = NULL;
    /* the fourth is lost, and the fifth shows it */
    peer_expect_aeth(p, 0x60, s + 3);
    peer_expect_nothing(p);
    is_in_memory(p, 0, data, 3 * MTU);
    assert_int_equal(qhca_fault_next(p->e, 0)->hits, 1);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_if_cut),
        cmocka_unit_test(window),
        cmocka_unit_test(again_as_packets),
        cmocka_unit_test(as_far_as_it_goes),
        cmocka_unit_test(one_error),
        cmocka_unit_test(watched),
        cmocka_unit_test(unreliable),
        cmocka_unit_test(executed),
        cmocka_unit_test(refused),
        cmocka_unit_test(malformed),
        cmocka_unit_test(no_options),
        cmocka_unit_test(read_responses),
        cmocka_unit_test(read_restarted),
        cmocka_unit_test(read_data),
        cmocka_unit_test(cut_for_who_looks),
        cmocka_unit_test(rule_in_the_middle),
    };
    unsigned i;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 31 + (i >> 8));
    }
    return cmocka_run_group_tests_name("super_packet", tests, NULL, NULL);
}
