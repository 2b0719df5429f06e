/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Large sends of Ethernet send queues. */
#include "unit.h"
#include "bigpkt.h"
#include "reborn.h"
#include "emit.h"

#define SHIFT 3
#define DEPTH (1u << SHIFT)
#define STRIDE 9
#define MEM (1u << 17)          /* of each queue, for data */
#define LSO QHCA_WQE_F_ETH_LSO
#define VLAN QHCA_WQE_F_ETH_VLAN
#define SIGNALED QHCA_WQE_F_SIGNALED

/* A send queue with its CQ. */
struct sq {
    struct unit *u;
    struct gcq cq;
    struct gbuf ring;
    uint64_t mem;
    uint32_t num, prod;
};

/* All frames sent so far. */
static struct {
    uint8_t *b;
    size_t len;
} *wire;
static unsigned wire_n, wire_cap;
static unsigned wire_stop;      /* busy after this many frames; 0: never */

static bool tap(struct world *w, unsigned src, uint8_t *frame, size_t *len)
{
    (void)src;
    if (wire_n == wire_cap) {
        wire_cap = wire_cap ? 2 * wire_cap : 64;
        wire = realloc(wire, wire_cap * sizeof(*wire));
        assert_non_null(wire);
    }
    wire[wire_n].b = malloc(*len);
    assert_non_null(wire[wire_n].b);
    memcpy(wire[wire_n].b, frame, *len);
    wire[wire_n++].len = *len;
    if (wire_n == wire_stop) {
        w->wire.refuse = 65536;
    }
    return false;
}

static void wire_forget(void)
{
    while (wire_n) {
        free(wire[--wire_n].b);
    }
    free(wire);
    wire = NULL;
    wire_cap = 0;
    wire_stop = 0;
}

static void make(struct sq *q, struct unit *u)
{
    struct qhca_eth_qc c;

    memset(q, 0, sizeof(*q));
    q->u = u;
    gcq_create(&q->cq, &u->g, 6, NULL, 1);
    gbuf_make(&q->ring, u->m, DEPTH << STRIDE, &gbuf_flat4k, true, 0,
              &u->g.rng);
    gbuf_allow(&q->ring, 0, q->ring.len, GMEM_R);
    q->mem = gmem_alloc(u->m, MEM, 12, 0);
    memset(&c, 0, sizeof(c));
    c.buf = q->ring.d;
    c.cqn = q->cq.cqn;
    c.shift = SHIFT;
    c.stride = STRIDE;
    q->num = guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    u->w.wire.filter = tap;
    wire_forget();
}

static void unmake(struct sq *q)
{
    assert_int_equal(guest_simple(&q->u->g, QHCA_CMD_DESTROY_ETH_SQ, q->num),
                     QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&q->cq), QHCA_ST_OK);
    gbuf_free(&q->ring);
    gmem_release(q->u->m, q->mem, MEM);
    wire_forget();
}

static struct qhca_eth_q *inside(const struct sq *q)
{
    return qhca_idr_get(&q->u->n->e->eth->eth_sqs, q->num);
}

static void put(struct sq *q, uint64_t off, const void *src, size_t len)
{
    if (len) {
        memcpy(gmem_ptr(q->u->m, q->mem + off, len), src, len);
        gmem_allow(q->u->m, q->mem + off, len, GMEM_R);
    }
}

static void post(struct sq *q, const struct qhca_eth_wqe *h,
                 const struct qhca_eth_seg *seg)
{
    uint64_t off = (uint64_t)(q->prod++ & (DEPTH - 1)) << STRIDE;

    gbuf_write(&q->ring, off, h, sizeof(*h));
    gbuf_write(&q->ring, off + sizeof(*h), seg, h->num_sge * sizeof(*seg));
}

static void ring(struct sq *q)
{
    guest_doorbell(&q->u->g, 0, QHCA_DB_ETH_SQ, q->num |
                   (uint64_t)q->prod << QHCA_DB_INDEX_SHIFT);
}

/*
 * Post @b as a large send: headers and payload are one stretch of bytes, cut
 * into segments at random.  Returns hdr_len.
 */
static unsigned post_big(struct sq *q, const struct big *b, uint16_t mss,
                         uint8_t flags)
{
    struct rng *r = &q->u->g.rng;
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .flags = LSO | flags, .mss = mss,
        .vlan = 0x2abc, .inner_l3 = big_inner_l3(b),
    };
    static uint8_t all[BIG_HDR_MAX + BIG_PAYLOAD_MAX];
    struct qhca_eth_seg seg[QHCA_ETH_MAX_SGE];
    unsigned n = (unsigned)rng_range(r, 1, QHCA_ETH_MAX_SGE), i;
    size_t len, off, part;

    h.hdr_len = (uint16_t)big_headers(b, all, r);
    memcpy(all + h.hdr_len, b->payload, b->len);
    len = h.hdr_len + b->len;
    /* only what was posted may be read */
    gmem_deny(q->u->m, q->mem, MEM, GMEM_R);
    put(q, 0, all, len);
    for (i = 0, off = 0; i < n; i++, off += part) {
        part = i == n - 1 ? len - off : rng_pct(r, 10) ? 0 :
               rng_pct(r, 50) ? rng_log(r, len - off) :
                                rng_below(r, len - off + 1);
        seg[i] = (struct qhca_eth_seg){ .addr = q->mem + off,
                                        .len = (uint32_t)part };
    }
    h.num_sge = (uint16_t)n;
    post(q, &h, seg);
    return h.hdr_len;
}

/* Frame @i on the wire is @f, with the tag of post_big() if @vlan. */
static void expect(unsigned i, const uint8_t *f, size_t len, bool vlan)
{
    const uint8_t *got;
    unsigned tag = vlan ? 4 : 0;

    assert_true(i < wire_n);
    got = wire[i].b;
    assert_int_equal(wire[i].len, len + tag);
    assert_memory_equal(got, f, 12);
    if (vlan) {
        assert_memory_equal(got + 12, "\x81\x00\x2a\xbc", 4);
    }
    assert_memory_equal(got + 12 + tag, f + 12, len - 12);
}

/* The frames from @at on are @b, cut at @mss; returns how many. */
static unsigned expect_cut(const struct big *b, uint16_t mss, unsigned at,
                           bool vlan)
{
    static uint8_t f[BIG_HDR_MAX + BIG_PAYLOAD_MAX];
    uint32_t from, len;
    unsigned n = 0;
    size_t bytes;

    for (from = 0; from < b->len; from += len) {
        len = b->len - from < mss ? b->len - from : mss;
        bytes = big_frame(b, f, n, from, len);
        expect(at + n++, f, bytes, vlan);
    }
    return n;
}

static void expect_cqe(struct sq *q, uint8_t status, uint8_t syndrome)
{
    struct qhca_cqe cqe;

    assert_true(gcq_poll(&q->cq, &cqe));
    assert_int_equal(cqe.status, status);
    assert_int_equal(cqe.syndrome, syndrome);
    assert_int_equal(cqe.opcode, QHCA_CQE_OP_ETH_SEND);
    assert_int_equal(cqe.qpn, q->num);
    assert_false(gcq_poll(&q->cq, &cqe));
}

/*
 * Any headers, payload, mss and segments, against the test's own frames;
 * @tunnels: percentage of packets in a tunnel.
 */
static void cuts(struct unit *u, unsigned rounds, unsigned tunnels)
{
    static struct big b;
    struct rng *r = &u->g.rng;
    uint64_t bytes = 0, frames = 0;
    struct sq q;
    unsigned i, k, n, seen = 0;
    uint32_t hdr_len;
    uint16_t mss;
    bool vlan;

    make(&q, u);
    for (i = 0; i < rounds; i++) {
        big_random(&b, r, 1 + (uint32_t)rng_log(r, BIG_PAYLOAD_MAX - 1));
        if (rng_pct(r, tunnels)) {
            big_tunnel(&b, r);
        }
        vlan = !b.tagged && rng_pct(r, 40);
        hdr_len = big_hdr_len(&b);
        mss = (uint16_t)rng_range(r, 1 + b.len / 500, QHCA_ETH_MAX_FRAME - 4 -
                                                      hdr_len);
        if (rng_pct(r, 50)) {
            mss = (uint16_t)(1 + b.len / 500 + rng_log(r, 1460));
        }
        assert_int_equal(post_big(&q, &b, mss, SIGNALED | (vlan ? VLAN : 0)),
                         hdr_len);
        ring(&q);
        assert_true(world_settle(&u->w, 100000000));
        n = expect_cut(&b, mss, seen, vlan);
        for (k = seen; k < seen + n; k++) {
            bytes += wire[k].len;
        }
        frames += n;
        seen += n;
        assert_int_equal(wire_n, seen);
        expect_cqe(&q, QHCA_WC_SUCCESS, 0);
        if (seen > 5000) {
            wire_forget();
            seen = 0;
        }
    }
    u->e = u->n->e;
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_PACKETS), frames);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_BYTES), bytes);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_ERRORS), 0);
    unmake(&q);
}

static void cut(void **state)
{
    struct unit *u = *state;

    assert_true(qhca_features(u->e) & QHCA_FEAT_ETH_LSO);
    cuts(u, 300, 0);
}

static void cut_tunnel(void **state)
{
    struct unit *u = *state;

    assert_true(qhca_features(u->e) & QHCA_FEAT_ETH_TUNNEL);
    cuts(u, 300, 100);
}

/* The same on a wire that is busy now and then. */
static void cut_busy(void **state)
{
    struct unit *u = *state;

    u->w.wire.refuse = 8000;
    cuts(u, 60, 50);
    assert_true(u->n->refused > 100);
}

/* The same, saved and loaded at any moment. */
static void cut_reborn(void **state)
{
    struct unit *u = *state;

    u->w.wire.refuse = 8000;
    u->w.reborn = 2;
    cuts(u, 60, 50);
    assert_true(u->w.births > 50);
    u->w.reborn = 0;
}

/* Exact headers, by hand: what a reader can check against the RFCs. */
static void by_hand(void **state)
{
    struct unit *u = *state;
    static const uint8_t hdr[54] =
        "\x02\0\0\0\0\x09\x02\0\0\0\0\x01\x08\0"
        "\x45\0\0\0\xff\xff\x40\0\x40\x06\0\0\x0a\0\0\x01\x0a\0\0\x02"
        "\x04\xd2\0\x50\xff\xff\xff\xfe\0\0\0\x07\x50\xf9\x10\0\0\0\0\0";
    uint8_t all[60];
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .flags = LSO, .mss = 2, .hdr_len = 54,
        .num_sge = 1,
    };
    struct qhca_eth_seg seg = { .len = 59 };
    struct qhca_cqe cqe;
    struct sq q;

    make(&q, u);
    memcpy(all, hdr, 54);
    memcpy(all + 54, "abcde", 5);
    put(&q, 0, all, 59);
    seg.addr = q.mem;
    post(&q, &h, &seg);
    ring(&q);
    world_settle(&u->w, 1000000);
    assert_int_equal(wire_n, 3);
    assert_int_equal(wire[0].len, 56);
    assert_int_equal(wire[2].len, 55);
    /* total length 42, then 41; the identification wraps */
    assert_memory_equal(wire[0].b + 16, "\x00\x2a\xff\xff", 4);
    assert_memory_equal(wire[1].b + 16, "\x00\x2a\x00\x00", 4);
    assert_memory_equal(wire[2].b + 16, "\x00\x29\x00\x01", 4);
    assert_memory_equal(wire[0].b + 24, "\x26\xcc", 2);
    /* the sequence number wraps; CWR, PSH and FIN; URG and ACK stay */
    assert_memory_equal(wire[0].b + 38, "\xff\xff\xff\xfe", 4);
    assert_memory_equal(wire[1].b + 38, "\x00\x00\x00\x00", 4);
    assert_memory_equal(wire[2].b + 38, "\x00\x00\x00\x02", 4);
    assert_int_equal(wire[0].b[47], 0xf0);
    assert_int_equal(wire[1].b[47], 0x70);
    assert_int_equal(wire[2].b[47], 0x79);
    assert_memory_equal(wire[1].b + 54, "cd", 2);
    assert_memory_equal(wire[2].b + 54, "e", 1);
    assert_false(gcq_poll(&q.cq, &cqe));        /* not signalled */
    unmake(&q);
}

/* ---- the rules ---- */

struct rule {
    const char *what;
    unsigned at;                /* byte of the headers */
    uint8_t v;
};

/* Send @b with header bytes changed; refused, and no frame leaves. */
static void refused(struct sq *q, const struct big *b, const struct rule *r)
{
    uint64_t errors = unit_stat(q->u, QHCA_STAT_ETH_TX_ERRORS);
    uint8_t *hdr;

    post_big(q, b, 100, 0);
    hdr = gmem_ptr(q->u->m, q->mem, BIG_HDR_MAX);
    hdr[r->at] = r->v;
    ring(q);
    assert_true(world_settle(&q->u->w, 1000000));
    if (wire_n) {
        fail_msg("%s: a frame is sent", r->what);
    }
    expect_cqe(q, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH);
    assert_int_equal(unit_stat(q->u, QHCA_STAT_ETH_TX_ERRORS), errors + 1);
}

/* Headers other than the manual's. */
static void bad_headers(void **state)
{
    static const struct rule tcp4[] = {
        { "ARP", 13, 6 }, { "a tag within", 12, 0x81 },
        { "version 6", 14, 0x65 }, { "IHL 4", 14, 0x44 },
        { "IHL too long", 14, 0x4f }, { "IHL one off", 14, 0x46 },
        { "more fragments", 20, 0x20 }, { "later fragment", 21, 1 },
        { "ICMP", 23, 1 }, { "UDP with a TCP header", 23, 17 },
        { "data offset 4", 46, 0x40 }, { "data offset one more", 46, 0x60 },
        { "data offset 15", 46, 0xf0 },
    };
    static const struct rule udp6[] = {
        { "version 4", 14, 0x45 }, { "TCP with a UDP header", 20, 6 },
        { "fragment header", 20, 44 }, { "ESP", 20, 50 }, { "AH", 20, 51 },
        { "no next header", 20, 59 }, { "ICMPv6", 20, 58 },
        { "extension header that is none", 20, 0 }, { "IPv4", 12, 8 },
    };
    static const struct rule ext[] = {
        { "fragment header behind another", 54, 44 },
        { "extension header too long", 55, 200 },
        { "extension header one unit too long", 55, 1 },
        { "chain beyond the headers", 62, 60 },
    };
    struct unit *u = *state;
    static struct big b;
    struct sq q;
    unsigned i;

    make(&q, u);
    big_random(&b, &u->g.rng, 1000);
    b.tagged = b.v6 = false;
    b.tcp = true;
    b.opts = b.exts = b.tcp_opts = 0;
    for (i = 0; i < sizeof(tcp4) / sizeof(tcp4[0]); i++) {
        refused(&q, &b, &tcp4[i]);
    }
    b.v6 = true;
    b.tcp = false;
    for (i = 0; i < sizeof(udp6) / sizeof(udp6[0]); i++) {
        refused(&q, &b, &udp6[i]);
    }
    b.exts = 2;
    b.ext[0] = b.ext[1] = 8;
    for (i = 0; i < sizeof(ext) / sizeof(ext[0]); i++) {
        refused(&q, &b, &ext[i]);
    }
    /* eight extension headers, not nine */
    b.exts = 9;
    for (i = 0; i < b.exts; i++) {
        b.ext[i] = 8;
    }
    refused(&q, &b, &(struct rule){ "nine extension headers", 14, 0x60 });
    b.exts = 8;
    post_big(&q, &b, 100, SIGNALED);
    ring(&q);
    world_settle(&u->w, 1000000);
    expect_cqe(&q, QHCA_WC_SUCCESS, 0);
    assert_int_equal(expect_cut(&b, 100, 0, false), 10);
    wire_forget();
    b.exts = 2;
    /* only one tag */
    b.tagged = true;
    refused(&q, &b, &(struct rule){ "two tags", 17, 0 });
    b.tci = 0x88a8;
    refused(&q, &b, &(struct rule){ "another tag", 12, 0x88 });
    /* and none together with ETH_VLAN */
    post_big(&q, &b, 100, VLAN);
    ring(&q);
    world_settle(&u->w, 1000000);
    expect_cqe(&q, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH);
    assert_int_equal(wire_n, 0);
    /* the queue continues */
    post_big(&q, &b, 100, SIGNALED);
    ring(&q);
    world_settle(&u->w, 1000000);
    expect_cqe(&q, QHCA_WC_SUCCESS, 0);
    assert_int_equal(expect_cut(&b, 100, 0, false), 10);
    unmake(&q);
}

/* As refused(), with another inner_l3. */
static void refused_at(struct sq *q, const struct big *b, uint16_t inner_l3)
{
    uint64_t off = (uint64_t)(q->prod & (DEPTH - 1)) << STRIDE;

    post_big(q, b, 100, 0);
    gbuf_write(&q->ring, off + offsetof(struct qhca_eth_wqe, inner_l3),
               &inner_l3, sizeof(inner_l3));
    ring(q);
    assert_true(world_settle(&q->u->w, 1000000));
    if (wire_n) {
        fail_msg("inner_l3 %u: a frame is sent", inner_l3);
    }
    expect_cqe(q, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH);
}

/* Tunnels other than the manual's. */
static void bad_tunnels(void **state)
{
    /* Ethernet, IPv4, UDP, 8 bytes, at 50 IPv4, at 70 TCP, to 90 */
    static const struct rule udp4[] = {
        { "ARP", 13, 6 }, { "a tag within", 12, 0x81 },
        { "outer version 6", 14, 0x65 }, { "outer IHL 4", 14, 0x44 },
        { "outer header up to the inner one", 14, 0x4f },
        { "outer more fragments", 20, 0x20 }, { "outer fragment", 21, 1 },
        { "inner version 0", 50, 5 }, { "inner version 6", 50, 0x65 },
        { "inner IHL 4", 50, 0x44 }, { "inner IHL one more", 50, 0x46 },
        { "inner more fragments", 56, 0x20 }, { "inner fragment", 57, 1 },
        { "inner GRE", 59, 47 }, { "inner UDP, longer", 59, 17 },
        { "data offset 4", 82, 0x40 }, { "data offset 6", 82, 0x60 },
    };
    /* Ethernet, IPv6, at 54 two extension headers, at 70 IPv6, at 110 UDP */
    static const struct rule ip6[] = {
        { "fragment header", 20, 44 }, { "fragment header, second", 54, 44 },
        { "chain beyond the inner header", 63, 1 },
        { "chain goes on", 62, 60 }, { "no room for UDP", 62, 17 },
        { "inner version 4", 70, 0x45 }, { "inner ESP", 76, 50 },
        { "inner TCP, shorter", 76, 6 }, { "IPv4", 12, 8 },
    };
    static const uint16_t bad[] = {
        1, 13, 14, 33, 34, 41, 49, 51, 69, 70, 89, 90, 91, 255, 256, 257,
        0x8000, 0xffff,
    };
    struct unit *u = *state;
    static struct big b;
    struct sq q;
    unsigned i;

    make(&q, u);
    big_random(&b, &u->g.rng, 1000);
    b.tagged = b.v6 = false;
    b.tcp = true;
    b.opts = b.exts = b.tcp_opts = 0;
    b.outer = (struct big_outer){ .is = true, .proto = 17, .more = 8 };
    assert_int_equal(big_hdr_len(&b), 90);
    for (i = 0; i < sizeof(udp4) / sizeof(udp4[0]); i++) {
        refused(&q, &b, &udp4[i]);
    }
    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        refused_at(&q, &b, bad[i]);
    }
    b.outer.proto = 47;
    refused(&q, &b, &(struct rule){ "GRE, more fragments", 20, 0x20 });
    b.outer.proto = 17;
    /* two tags are one too many; with ETH_VLAN, one */
    b.tagged = true;
    b.tci = 0x88a8;
    refused(&q, &b, &(struct rule){ "another tag", 12, 0x88 });
    post_big(&q, &b, 100, VLAN);
    ring(&q);
    world_settle(&u->w, 1000000);
    expect_cqe(&q, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH);
    assert_int_equal(wire_n, 0);
    b.tagged = b.tcp = false;
    b.v6 = true;
    b.outer = (struct big_outer){ .is = true, .v6 = true, .proto = 41,
                                  .exts = 2, .ext = { 8, 8 } };
    assert_int_equal(big_hdr_len(&b), 118);
    for (i = 0; i < sizeof(ip6) / sizeof(ip6[0]); i++) {
        refused(&q, &b, &ip6[i]);
    }
    /* the queue continues */
    post_big(&q, &b, 100, SIGNALED);
    ring(&q);
    world_settle(&u->w, 1000000);
    expect_cqe(&q, QHCA_WC_SUCCESS, 0);
    assert_int_equal(expect_cut(&b, 100, 0, false), 10);
    unmake(&q);
}

/* The form of VXLAN, by hand; the sums are those of RFC 1071. */
static void tunnel_by_hand(void **state)
{
    struct unit *u = *state;
    static const uint8_t hdr[92] =
        "\x02\0\0\0\0\x09\x02\0\0\0\0\x01\x08\0"
        /* IPv4, identification 0x00ff */
        "\x45\0\0\0\x00\xff\x40\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02"
        /* UDP with a checksum to fill in, VXLAN */
        "\x04\xd2\x12\xb5\0\0\0\x01\x08\0\0\0\0\0\x64\0"
        "\x02\0\0\0\0\x08\x02\0\0\0\0\x07\x08\0"
        /* IPv4, identification 0xffff; UDP */
        "\x45\0\0\0\xff\xff\x40\0\x40\x11\0\0\xc0\0\x02\x01\xc0\0\x02\x02"
        "\x04\xd2\0\x50\0\0\0\0";
    uint8_t all[95];
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .flags = LSO, .mss = 2, .hdr_len = 92,
        .inner_l3 = 64, .num_sge = 1,
    };
    struct qhca_eth_seg seg = { .len = 95 };
    struct sq q;

    make(&q, u);
    memcpy(all, hdr, 92);
    memcpy(all + 92, "abc", 3);
    put(&q, 0, all, 95);
    seg.addr = q.mem;
    post(&q, &h, &seg);
    all[40] = all[41] = 0;              /* and one without */
    put(&q, 100, all, 95);
    seg.addr += 100;
    post(&q, &h, &seg);
    ring(&q);
    world_settle(&u->w, 1000000);
    assert_int_equal(wire_n, 4);
    assert_int_equal(wire[0].len, 94);
    assert_int_equal(wire[1].len, 93);
    /* outer total length and identification, UDP length */
    assert_memory_equal(wire[0].b + 16, "\x00\x50\x00\xff", 4);
    assert_memory_equal(wire[1].b + 16, "\x00\x4f\x01\x00", 4);
    assert_memory_equal(wire[0].b + 38, "\x00\x3c", 2);
    assert_memory_equal(wire[1].b + 38, "\x00\x3b", 2);
    /* the bytes in between stay */
    assert_memory_equal(wire[1].b + 42, hdr + 42, 22);
    /* inner total length and identification, UDP length */
    assert_memory_equal(wire[0].b + 66, "\x00\x1e\xff\xff", 4);
    assert_memory_equal(wire[1].b + 66, "\x00\x1d\x00\x00", 4);
    assert_memory_equal(wire[0].b + 88, "\x00\x0a", 2);
    assert_memory_equal(wire[1].b + 88, "\x00\x09", 2);
    /* the sum of a datagram and its pseudo header is 0xffff */
    assert_int_equal(big_sum(wire[0].b + 34, 60, 10 * 256 * 2 + 3 + 17 + 60),
                     0xffff);
    assert_int_equal(big_sum(wire[0].b + 84, 10, 0xc000 * 2 + 0x201 + 0x202 +
                                                17 + 10), 0xffff);
    assert_memory_equal(wire[2].b + 40, "\0\0", 2);
    assert_memory_equal(wire[3].b + 40, "\0\0", 2);
    assert_memory_equal(wire[2].b + 42, wire[0].b + 42, 52);
    assert_memory_equal(wire[3].b + 42, wire[1].b + 42, 51);
    unmake(&q);
}

/* Lengths in the WQE: the greatest that are allowed, and one more. */
static void lengths(void **state)
{
    static const struct {
        uint8_t flags;
        uint16_t mss, hdr_len, num_sge;
        uint32_t len[2];        /* of the segments */
        unsigned frames;        /* 0: refused ... */
        uint8_t syndrome;       /* ... with this */
    } t[] = {
        { LSO, 1460, 54, 1, { 54 + 65536 }, 45, 0 },
        { LSO, 1460, 54, 1, { 54 + 65537 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 1460, 54, 2, { UINT32_MAX, 55 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 1460, 54, 2, { UINT32_MAX, UINT32_MAX }, 0,
          QHCA_SYN_WQE_LENGTH },
        { LSO, 1, 54, 1, { 54 + 100 }, 100, 0 },
        { LSO, 65535, 54, 1, { 54 + 100 }, 1, 0 },
        { LSO, 0, 54, 1, { 54 + 100 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 10, 54, 1, { 55 }, 1, 0 },
        { LSO, 10, 54, 1, { 54 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 10, 54, 2, { 0, 0 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 10, 53, 1, { 100 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 10, 55, 1, { 100 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 10, 0, 1, { 100 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 10, 17, 1, { 100 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 10, 256, 1, { 300 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 10, 257, 1, { 300 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 10, 0xffff, 1, { 65536 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 9180, 54, 1, { 54 + 9181 }, 2, 0 },
        { LSO, 9181, 54, 1, { 54 + 9181 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO, 9181, 54, 1, { 54 + 9180 }, 1, 0 },
        { LSO | VLAN, 9176, 54, 1, { 54 + 9177 }, 2, 0 },
        { LSO | VLAN, 9177, 54, 1, { 54 + 9177 }, 0, QHCA_SYN_WQE_LENGTH },
        { LSO | QHCA_WQE_F_ETH_CSUM, 10, 54, 1, { 100 }, 0,
          QHCA_SYN_WQE_FLAGS },
        { LSO | 0x80, 10, 54, 1, { 100 }, 0, QHCA_SYN_WQE_FLAGS },
        { LSO, 10, 54, 0, { 100 }, 0, QHCA_SYN_WQE_SGE },
        { LSO, 10, 54, 31, { 100 }, 0, QHCA_SYN_WQE_SGE },
    };
    struct unit *u = *state;
    static struct big b;
    struct qhca_eth_seg seg[31] = { { 0 } };
    struct qhca_eth_wqe h;
    uint8_t hdr[BIG_HDR_MAX];
    struct sq q;
    unsigned i, seen = 0;

    make(&q, u);
    big_random(&b, &u->g.rng, 0);
    b.tagged = b.v6 = false;
    b.tcp = true;
    b.opts = b.tcp_opts = 0;
    gmem_allow(u->m, q.mem, MEM, GMEM_R);
    assert_int_equal(big_headers(&b, hdr, &u->g.rng), 54);
    memcpy(gmem_ptr(u->m, q.mem, 54), hdr, 54);
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        h = (struct qhca_eth_wqe){
            .opcode = QHCA_WQE_ETH_SEND, .flags = t[i].flags | SIGNALED,
            .mss = t[i].mss, .hdr_len = t[i].hdr_len,
            .num_sge = t[i].num_sge, .vlan = 5,
        };
        seg[0] = (struct qhca_eth_seg){ .addr = q.mem, .len = t[i].len[0] };
        seg[1] = (struct qhca_eth_seg){ .addr = q.mem, .len = t[i].len[1] };
        post(&q, &h, seg);
        ring(&q);
        assert_true(world_settle(&u->w, 100000000));
        if (wire_n - seen != t[i].frames) {
            fail_msg("case %u: %u frames", i, wire_n - seen);
        }
        seen = wire_n;
        expect_cqe(&q, t[i].frames ? QHCA_WC_SUCCESS : QHCA_WC_LOC_QP_OP_ERR,
                   t[i].syndrome);
    }
    unmake(&q);
}

/* Headers of exactly QHCA_ETH_LSO_HDR_MAX bytes, and 8 more. */
static void longest_headers(void **state)
{
    struct unit *u = *state;
    static struct big b;
    struct sq q;

    make(&q, u);
    big_random(&b, &u->g.rng, 5000);
    b.tagged = b.tcp = false;
    b.v6 = true;
    b.exts = 2;
    b.ext[0] = 96;              /* 14 + 40 + 96 + 96 + 8 = 254 */
    b.ext[1] = 96;
    post_big(&q, &b, 1400, SIGNALED);
    ring(&q);
    world_settle(&u->w, 1000000);
    expect_cqe(&q, QHCA_WC_SUCCESS, 0);
    assert_int_equal(expect_cut(&b, 1400, 0, false), 4);
    wire_forget();
    b.tcp = true;
    b.tcp_opts = 4;             /* 14 + 40 + 88 + 88 + 24 = 254 */
    b.ext[0] = b.ext[1] = 88;
    b.v6 = true;
    b.tagged = false;
    post_big(&q, &b, 1400, SIGNALED);
    ring(&q);
    world_settle(&u->w, 1000000);
    expect_cqe(&q, QHCA_WC_SUCCESS, 0);
    assert_int_equal(expect_cut(&b, 1400, 0, false), 4);
    wire_forget();
    b.tcp_opts = 8;             /* 258 */
    post_big(&q, &b, 1400, SIGNALED);
    ring(&q);
    world_settle(&u->w, 1000000);
    expect_cqe(&q, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_LENGTH);
    assert_int_equal(wire_n, 0);
    unmake(&q);
}

/* ---- turns ---- */

/* A queue with a large send does not keep others waiting. */
static void turns(void **state)
{
    struct unit *u = *state;
    static struct big b;
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .flags = SIGNALED, .num_sge = 1,
    };
    struct qhca_eth_seg seg = { .len = 77 };
    static const uint8_t small[77] = { 2, 0, 0, 0, 0, 9, 2 };
    struct sq big, other;
    unsigned i, at;

    make(&big, u);
    make(&other, u);
    big_random(&b, &u->g.rng, 60000);
    b.tagged = false;
    put(&other, 0, small, 77);
    seg.addr = other.mem;
    wire_stop = 3;
    post_big(&big, &b, 1000, SIGNALED);
    ring(&big);
    world_run(&u->w, 100000);
    assert_int_equal(wire_n, 3);
    /* now it waits for the wire, 57 frames before its end */
    for (i = 0; i < 2; i++) {
        post(&other, &h, &seg);
    }
    ring(&other);
    u->w.wire.refuse = 0;
    world_settle(&u->w, 10000000);
    assert_int_equal(wire_n, 62);
    for (i = 0, at = 0; i < wire_n; i++) {
        at += wire[i].len == 77 ? i : 0;
    }
    assert_true(at <= 3 + 1 + 3 + 3);
    unmake(&other);
    unmake(&big);
}

/* One run of the engine sends at most its budget. */
static void budget(void **state)
{
    struct unit *u = *state;
    static struct big b;
    struct sq q;
    unsigned n;

    make(&q, u);
    big_random(&b, &u->g.rng, 20000);
    post_big(&q, &b, 1, SIGNALED);
    inside(&q)->ring.head++;
    q.prod = inside(&q)->ring.head;
    qhca_list_add_tail(&u->e->eth->eth_ready, &inside(&q)->turn.ready);
    n = qhca_eth_run(u->e, 7);
    assert_int_equal(n, 7);
    assert_int_equal(wire_n, 7);
    assert_int_equal(inside(&q)->ring.tail, 0);
    assert_true(qhca_eth_run(u->e, 1) == 1 && wire_n == 8);
    qhca_run(u->e);
    assert_true(wire_n > 8 && wire_n <= 8 + 2 * u->e->cfg.run_budget);
    assert_true(inside(&q)->lso.active);
    node_drain(u->n);
    world_settle(&u->w, 1000000000);
    assert_int_equal(wire_n, 20000);
    assert_int_equal(expect_cut(&b, 1, 0, false), 20000);
    expect_cqe(&q, QHCA_WC_SUCCESS, 0);
    unmake(&q);
}

/* ---- a large send that waits for the wire ---- */

/* Send @b in ten frames, of which @n leave; returns the headers' length. */
static unsigned begin(struct sq *q, const struct big *b, unsigned n)
{
    unsigned hdr;

    wire_stop = n;
    hdr = post_big(q, b, 1000, SIGNALED);
    ring(q);
    world_run(&q->u->w, 100000);
    assert_int_equal(wire_n, n);
    return hdr;
}

/* The wire is free again: the others leave. */
static void complete(struct sq *q, const struct big *b)
{
    q->u->w.wire.refuse = 0;
    world_settle(&q->u->w, 1000000);
    assert_int_equal(wire_n, 10);
    assert_int_equal(expect_cut(b, 1000, 0, false), 10);
    expect_cqe(q, QHCA_WC_SUCCESS, 0);
    unmake(q);
}

/* ---- hostile guests ---- */

/* Once begun, changes of headers and WQE have no effect. */
static void changed(void **state)
{
    struct unit *u = *state;
    static struct big b;
    uint8_t junk[1 << STRIDE];
    struct sq q;
    unsigned hdr, i, k;

    for (k = 0; k < 20; k++) {
        make(&q, u);
        big_random(&b, &u->g.rng, 10000);
        hdr = begin(&q, &b, 1 + k % 5);
        for (i = 0; i < sizeof(junk); i++) {
            junk[i] = (uint8_t)rng_u32(&u->g.rng);
        }
        put(&q, 0, junk, hdr);
        gbuf_write(&q.ring, 0, junk, sizeof(junk));
        complete(&q, &b);
    }
}

/* Memory that goes away: an error after the frames that were sent. */
static void unreadable(void **state)
{
    struct unit *u = *state;
    static struct big b;
    struct qhca_eth_seg seg[2];
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .flags = LSO, .mss = 1000, .num_sge = 2,
    };
    static uint8_t all[BIG_HDR_MAX + 10000];
    struct sq q;

    make(&q, u);
    big_random(&b, &u->g.rng, 10000);
    h.hdr_len = (uint16_t)big_headers(&b, all, &u->g.rng);
    memcpy(all + h.hdr_len, b.payload, 10000);
    /* the second segment begins in the fourth frame */
    put(&q, 0, all, h.hdr_len + 3999);
    seg[0] = (struct qhca_eth_seg){ .addr = q.mem, .len = h.hdr_len + 3999 };
    seg[1] = (struct qhca_eth_seg){ .addr = gmem_unmapped(u->m, 6001),
                                    .len = 6001 };
    post(&q, &h, seg);
    ring(&q);
    world_settle(&u->w, 1000000);
    assert_int_equal(wire_n, 3);
    expect_cqe(&q, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
    assert_false(inside(&q)->lso.active);
    /* the headers themselves */
    seg[0] = seg[1];
    seg[1].len = 1;
    post(&q, &h, seg);
    ring(&q);
    world_settle(&u->w, 1000000);
    assert_int_equal(wire_n, 3);
    expect_cqe(&q, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
    wire_forget();
    post_big(&q, &b, 1000, SIGNALED);
    ring(&q);
    world_settle(&u->w, 1000000);
    expect_cqe(&q, QHCA_WC_SUCCESS, 0);
    assert_int_equal(expect_cut(&b, 1000, 0, false), 10);
    unmake(&q);
}

/* Stop in the middle of a large send: busy wire, four of ten frames sent. */
static void halfway(struct sq *q, struct unit *u, struct big *b)
{
    make(q, u);
    big_random(b, &u->g.rng, 10000);
    b->tagged = b->v6 = false;
    b->opts = 0;
    begin(q, b, 4);
    assert_true(inside(q)->lso.active);
    assert_int_equal(inside(q)->lso.sent, 4000);
}

/* A queue destroyed in the middle reads and sends nothing more. */
static void destroyed(void **state)
{
    struct unit *u = *state;
    static struct big b;
    struct sq q;

    halfway(&q, u, &b);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_SQ, q.num),
                     QHCA_ST_OK);
    gmem_deny(u->m, q.mem, MEM, GMEM_R);        /* a read ends the test */
    u->w.wire.refuse = 0;
    world_settle(&u->w, 1000000);
    assert_int_equal(wire_n, 4);
    assert_int_equal(gcq_destroy(&q.cq), QHCA_ST_OK);
    gbuf_free(&q.ring);
    gmem_release(u->m, q.mem, MEM);
    /* its successor begins anew */
    make(&q, u);
    post_big(&q, &b, 1000, SIGNALED);
    ring(&q);
    world_settle(&u->w, 1000000);
    assert_int_equal(expect_cut(&b, 1000, 0, false), 10);
    expect_cqe(&q, QHCA_WC_SUCCESS, 0);
    unmake(&q);
}

/* A saved position that cannot be is refused. */
static void spoilt(void **state)
{
    struct unit *u = *state;
    struct qhca_lso keep, *s;
    struct qhca_eth_q *sq;
    static struct big b;
    struct sq q;

#define BAD(set, want) do {                                             \
        set;                                                            \
        if (!strstr(node_loads(u->n, &u->e->cfg), want)) {              \
            fail_msg(#set " is loaded, or refused with another reason"); \
        }                                                               \
        *s = keep;                                                      \
    } while (0)
    halfway(&q, u, &b);
    sq = inside(&q);
    s = &sq->lso;
    keep = *s;
    assert_string_equal(node_loads(u->n, &u->e->cfg), "");
    BAD(s->sent = 4001, "stops within a frame");
    BAD(s->sent = 10000, "stops within a frame");
    BAD(s->sent = 0xffffffff, "stops within a frame");
    BAD(s->w.h.opcode = QHCA_WQE_RAW_SEND, "cannot have begun");
    BAD(s->w.h.flags = 0, "cannot have begun");
    BAD(s->w.h.flags |= QHCA_WQE_F_ETH_CSUM, "cannot have begun");
    BAD(s->w.h.num_sge = 0, "cannot have begun");
    BAD(s->w.h.num_sge = 32, "cannot have begun");
    BAD(s->w.h.mss = 0, "cannot have begun");
    BAD(s->w.h.mss = 9999, "cannot have begun");
    BAD(s->w.h.hdr_len = 300, "cannot have begun");
    BAD(s->w.h.hdr_len--, "cannot have begun");
    BAD(s->w.seg[0].len = 200000, "cannot have begun");
    BAD(s->hdr[12] = 1, "cannot have begun");
    BAD(s->hdr[14] = 0x4f, "cannot have begun");
    BAD(s->w.h.inner_l3 = 34, "cannot have begun");
    sq->ring.tail++;
    BAD((void)0, "not in the ring");
    sq->ring.tail--;
    complete(&q, &b);
#undef BAD
}

/*
 * Section "ethq" of version 2 is from a release without tunnels: a guest could
 * have any value in the place of inner_l3.
 */
static void older(void **state)
{
    static const char section[] = "Sethq\0\0\0\0";
    struct unit *u = *state;
    const struct qhca_eth_q *was;
    uint8_t *saved, *at;
    struct qhca *e;
    static struct big b;
    const char *err;
    char why[160];
    struct sq q;
    size_t len;

    halfway(&q, u, &b);
    inside(&q)->lso.w.h.inner_l3 = 34;
    assert_true(qhca_save(u->e, (void **)&saved, &len));
    at = memmem(saved, len, section, 9);
    assert_non_null(at);
    assert_int_equal(at[10], 3);
    at[10] = 2;
    e = qhca_new(&u->e->cfg, &u->e->ops, u->n, &err);
    assert_non_null(e);
    assert_true(qhca_load(e, saved, len, why, sizeof(why)));
    was = qhca_idr_get(&e->eth->eth_sqs, q.num);
    assert_true(was->lso.active);
    assert_int_equal(was->lso.w.h.inner_l3, 0);
    assert_int_equal(was->lso.l.outer_version, 0);
    qhca_free(e);
    free(saved);
    inside(&q)->lso.w.h.inner_l3 = 0;
    complete(&q, &b);
}

/* The view of an observer. */
static void looks(void **state)
{
    struct unit *u = *state;
    struct seen s = { 0 };
    static struct big b;
    struct sq q;

    halfway(&q, u, &b);
    u->m->unchecked = true;
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_SQ, q.num, seen_start(&s)));
    SEEN(&s, "large_send.payload", "10000");
    SEEN(&s, "large_send.sent", "4000");
    SEEN(&s, "large_send.mss", "1000");
    assert_null(seen_get(&s, "large_send.inner_l3"));
    u->w.wire.refuse = 0;
    world_settle(&u->w, 1000000);
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_SQ, q.num, seen_start(&s)));
    assert_null(seen_get(&s, "large_send.sent"));
    /* in a tunnel */
    b.outer = (struct big_outer){ .is = true, .proto = 47, .more = 4 };
    wire_forget();
    begin(&q, &b, 2);
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_SQ, q.num, seen_start(&s)));
    SEEN(&s, "large_send.inner_l3", "38");
    free(s.text);
    u->m->unchecked = false;
    u->w.wire.refuse = 0;
    world_settle(&u->w, 1000000);
    unmake(&q);
}

/* A link that goes down loses frames, but not the queue. */
static void link_down(void **state)
{
    struct unit *u = *state;
    static struct big b;
    struct sq q;

    halfway(&q, u, &b);
    node_set_link(u->n, false);
    u->w.wire.refuse = 0;
    world_settle(&u->w, 1000000);
    assert_int_equal(wire_n, 4);
    expect_cqe(&q, QHCA_WC_SUCCESS, 0);
    node_set_link(u->n, true);
    unmake(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(cut),
        UNIT(cut_tunnel),
        UNIT(cut_busy),
        UNIT(cut_reborn),
        UNIT(by_hand),
        UNIT(bad_headers),
        UNIT(bad_tunnels),
        UNIT(tunnel_by_hand),
        UNIT(lengths),
        UNIT(longest_headers),
        UNIT(turns),
        UNIT(budget),
        UNIT(changed),
        UNIT(unreadable),
        UNIT(destroyed),
        UNIT(spoilt),
        UNIT(older),
        UNIT(looks),
        UNIT(link_down),
    };

    return cmocka_run_group_tests_name("lso", tests, NULL, NULL);
}
