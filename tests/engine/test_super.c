/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Super-frames: large sends that pass the wire whole. */
#include "unit.h"
#include "bigpkt.h"
#include "reborn.h"
#include "rule.h"
#include "observe/breakpoint.h"

#define SHIFT 8                 /* of the rings */
#define DEPTH (1u << SHIFT)
#define SEGS 30u                /* of a send WQE */
#define TX_MEM (1u << 17)
#define SLOT 2048u              /* bytes of a receive buffer */
#define FRAME_MAX 65600u
#define TRAILER 8u
#define LSO QHCA_WQE_F_ETH_LSO
#define SUPER QHCA_ETH_Q_F_SUPER
#define SIGNALED QHCA_WQE_F_SIGNALED

/* A send queue and a receive queue for the port. */
struct eth {
    struct unit *u;
    struct gcq scq, rcq;
    struct gbuf sq, rq;
    uint64_t tx, rx, dbrec;
    uint32_t sqn, rqn, sq_prod, rq_prod, rq_cons;
};

/* All frames sent so far. */
static struct {
    uint8_t b[FRAME_MAX];
    size_t len;
} wire[200];
static unsigned wire_n;

static bool tap(struct world *w, unsigned src, uint8_t *frame, size_t *len)
{
    (void)w;
    (void)src;
    assert_true(wire_n < 200);
    memcpy(wire[wire_n].b, frame, *len);
    wire[wire_n++].len = *len;
    return false;
}

static int super_setup(void **state)
{
    struct qhca_config cfg;

    memset(&cfg, 0, sizeof(cfg));
    qhca_config_default(&cfg);
    cfg.num_vectors = WORLD_VECTORS;
    cfg.dm_size = GMEM_SPAN;
    cfg.super_frames = true;
    return unit_setup_as(state, &cfg);
}

#define SUPER_UNIT(f) \
    cmocka_unit_test_setup_teardown(f, super_setup, unit_teardown)

static struct qhca_eth_q *rq_inside(struct eth *t)
{
    return qhca_idr_get(&t->u->n->e->eth->eth_rqs, t->rqn);
}

static void post_recv(struct eth *t, unsigned n)
{
    struct gmem *m = t->u->m;

    while (n-- && t->rq_prod - t->rq_cons < DEPTH) {
        uint32_t i = t->rq_prod++ & (DEPTH - 1);
        struct qhca_eth_seg seg = { .addr = t->rx + (uint64_t)i * SLOT,
                                    .len = SLOT };

        gmem_allow(m, seg.addr, SLOT, GMEM_W);
        gbuf_write(&t->rq, i * 16, &seg, sizeof(seg));
    }
    guest_dbrec_set(&t->u->g, t->dbrec, t->rq_prod);
}

static void make(struct eth *t, struct unit *u, uint8_t flags)
{
    struct qhca_port port = { .promisc = 1 };
    struct qhca_eth_qc c;

    memset(t, 0, sizeof(*t));
    t->u = u;
    gcq_create(&t->scq, &u->g, 6, NULL, 1);
    gcq_create(&t->rcq, &u->g, 9, NULL, 1);
    gbuf_make(&t->sq, u->m, 512 * 4, &gbuf_flat4k, true, 0, &u->g.rng);
    gbuf_make(&t->rq, u->m, DEPTH * 16, &gbuf_flat4k, true, 0, &u->g.rng);
    gbuf_allow(&t->sq, 0, t->sq.len, GMEM_R);
    gbuf_allow(&t->rq, 0, t->rq.len, GMEM_R);
    t->tx = gmem_alloc(u->m, TX_MEM, 12, 0);
    t->rx = gmem_alloc(u->m, DEPTH * SLOT, 12, 0);
    t->dbrec = guest_dbrec(&u->g, false);
    memset(&c, 0, sizeof(c));
    c.buf = t->sq.d;
    c.cqn = t->scq.cqn;
    c.shift = 2;
    c.stride = 9;
    t->sqn = guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    memset(&c, 0, sizeof(c));
    c.buf = t->rq.d;
    c.dbrec = t->dbrec;
    c.cqn = t->rcq.cqn;
    c.shift = SHIFT;
    c.stride = 4;
    c.flags = flags;
    t->rqn = guest_create(&u->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
    port.eth_rqn = t->rqn;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0,
                              QHCA_PORT_M_ETH_RQN | QHCA_PORT_M_PROMISC,
                              &port, sizeof(port), NULL), QHCA_ST_OK);
    u->w.wire.filter = tap;
    wire_n = 0;
}

static void unmake(struct eth *t)
{
    struct unit *u = t->u;

    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_SQ, t->sqn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_RQ, t->rqn),
                     QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&t->scq), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&t->rcq), QHCA_ST_OK);
    gbuf_free(&t->sq);
    gbuf_free(&t->rq);
    gmem_release(u->m, t->tx, TX_MEM);
    gmem_release(u->m, t->rx, DEPTH * SLOT);
    guest_dbrec_free(&u->g, t->dbrec);
}

/* Post @b as a large send, in two segments, and ring. */
static void post_large(struct eth *t, const struct big *b, uint16_t mss)
{
    struct unit *u = t->u;
    static uint8_t all[BIG_HDR_MAX + BIG_PAYLOAD_MAX];
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .flags = LSO | SIGNALED, .mss = mss,
        .num_sge = 2, .inner_l3 = big_inner_l3(b),
    };
    struct qhca_eth_seg seg[2];
    uint64_t off = (t->sq_prod++ & 3) << 9;
    uint32_t len;

    h.hdr_len = (uint16_t)big_headers(b, all, &u->g.rng);
    memcpy(all + h.hdr_len, b->payload, b->len);
    len = h.hdr_len + b->len;
    gmem_deny(u->m, t->tx, TX_MEM, GMEM_R);
    memcpy(gmem_ptr(u->m, t->tx, len), all, len);
    gmem_allow(u->m, t->tx, len, GMEM_R);
    seg[0].addr = t->tx;
    seg[0].len = (uint32_t)rng_below(&u->g.rng, len);
    seg[1].addr = t->tx + seg[0].len;
    seg[1].len = len - seg[0].len;
    gbuf_write(&t->sq, off, &h, sizeof(h));
    gbuf_write(&t->sq, off + sizeof(h), seg, sizeof(seg));
    guest_doorbell(&u->g, 0, QHCA_DB_ETH_SQ, t->sqn |
                   (uint64_t)t->sq_prod << QHCA_DB_INDEX_SHIFT);
}

static void sent(struct eth *t)
{
    struct qhca_cqe cqe;

    assert_true(world_settle(&t->u->w, 100000000));
    assert_true(gcq_poll(&t->scq, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_SUCCESS);
}

static void send(struct eth *t, const struct big *b, uint16_t mss)
{
    post_large(t, b, mss);
    sent(t);
}

static uint32_t segments(uint32_t payload, uint16_t mss)
{
    return (payload + mss - 1) / mss;
}

/* The most payload of a super-frame of @b. */
static uint32_t room(const struct big *b, uint16_t mss)
{
    uint32_t n = (65535 - (big_hdr_len(b) - big_l3(b))) / mss;

    n = n > 128 ? 128 : n;
    return n < 2 || b->outer.is ? mss : n * mss;
}

/*
 * Write the super-frame of @len bytes of payload from @from on, with its
 * trailer if it represents several frames.
 */
static size_t super_frame(const struct big *b, uint8_t *f, uint16_t mss,
                          uint32_t from, uint32_t len)
{
    size_t n = big_frame(b, f, from / mss, from, len);

    if (len <= mss) {
        return n;
    }
    memcpy(f + n, "QSFG", 4);
    big_put16(f + n + 4, mss);
    big_put16(f + n + 6, segments(len, mss));
    return n + TRAILER;
}

static void random_big(struct big *b, struct rng *r, uint16_t *mss)
{
    big_random(b, r, 1 + (uint32_t)(rng_pct(r, 50) ?
               rng_below(r, BIG_PAYLOAD_MAX) :
               rng_log(r, BIG_PAYLOAD_MAX - 1)));
    *mss = (uint16_t)rng_range(r, 1 + b->len / 3000, 1460);
    if (rng_pct(r, 20)) {
        *mss = (uint16_t)rng_range(r, 1460, 8900);
    }
}

/* The expected values of the port's counters. */
struct port {
    uint64_t frames, octets, sizes[7];
};

/* A packet of @len bytes of payload passes in pieces of @mss. */
static void port_add(struct port *p, const struct big *b, uint32_t len,
                     uint16_t mss)
{
    static const uint16_t from[] = { 0, 65, 128, 256, 512, 1024, 1519 };
    size_t part, octets;
    unsigned i;

    for (; len; len -= (uint32_t)part) {
        part = len < mss ? len : mss;
        octets = big_hdr_len(b) + part + 4;
        octets = octets < 64 ? 64 : octets;
        i = 6;
        while (octets < from[i]) {
            i--;
        }
        p->sizes[i]++;
        p->frames++;
        p->octets += octets;
    }
}

static void port_check(struct unit *u, const struct port *p, unsigned frames)
{
    unsigned i;

    assert_int_equal(unit_stat(u, frames), p->frames);
    assert_int_equal(unit_stat(u, frames + 1), p->octets);
    for (i = 0; i < 7; i++) {
        assert_int_equal(unit_stat(u, frames + 4 + i), p->sizes[i]);
    }
}

/*
 * As few frames as possible, each a multiple of the mss; but in a tunnel, all
 * of them.
 */
static void sends(struct unit *u, unsigned rounds)
{
    static struct big b;
    static uint8_t f[FRAME_MAX];
    uint64_t frames = 0, bytes = 0;
    struct port port = { 0 };
    uint32_t from, len;
    struct eth t;
    uint16_t mss;
    unsigned i, n;
    size_t size;

    make(&t, u, 0);
    for (i = 0; i < rounds; i++) {
        random_big(&b, &u->g.rng, &mss);
        if (rng_pct(&u->g.rng, 20)) {
            big_tunnel(&b, &u->g.rng);
            mss = mss < b.len / 150 ? (uint16_t)(b.len / 150) : mss;
        }
        wire_n = 0;
        send(&t, &b, mss);
        for (from = 0, n = 0; from < b.len; from += len, n++) {
            len = b.len - from < room(&b, mss) ? b.len - from :
                                                 room(&b, mss);
            size = super_frame(&b, f, mss, from, len);
            assert_true(n < wire_n);
            assert_int_equal(wire[n].len, size);
            assert_memory_equal(wire[n].b, f, size);
        }
        assert_int_equal(wire_n, n);
        n = segments(b.len, mss);
        frames += n;
        bytes += b.len + (uint64_t)n * big_hdr_len(&b);
        u->e = u->n->e;
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_PACKETS), frames);
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_BYTES), bytes);
        port_add(&port, &b, b.len, mss);
        port_check(u, &port, QHCA_STAT_PORT_TX_FRAMES);
    }
    unmake(&t);
}

static void sent_whole(void **state)
{
    struct unit *u = *state;

    assert_true(qhca_features(u->e) & QHCA_FEAT_ETH_SUPER);
    sends(u, 150);
}

static void sent_reborn(void **state)
{
    struct unit *u = *state;

    u->w.wire.refuse = 20000;
    u->w.reborn = 2;
    sends(u, 60);
    u->w.reborn = 0;
    u->e = u->n->e;
    assert_true(u->w.births > 20 && u->n->refused > 20);
}

/* RoCE is not for the net device's segmentation: it stays as it is. */
static void roce_is_not_joined(void **state)
{
    struct unit *u = *state;
    static struct big b;
    static uint8_t f[FRAME_MAX];
    struct eth t;

    make(&t, u, 0);
    big_random(&b, &u->g.rng, 3000);
    b.tcp = false;
    b.ports[1] = 4791;
    send(&t, &b, 1000);
    assert_int_equal(wire_n, 3);
    assert_int_equal(wire[0].len, big_frame(&b, f, 0, 0, 1000));
    assert_memory_equal(wire[0].b, f, wire[0].len);
    unmake(&t);
}

/* ---- receive ---- */

/* Collect the bytes of a completion; returns how many. */
static uint32_t take(struct eth *t, struct qhca_eth_cqe *c, uint8_t *to)
{
    struct qhca_cqe cqe;
    uint32_t done = 0, part, i;

    if (!gcq_poll(&t->rcq, &cqe)) {
        return 0;
    }
    memcpy(c, &cqe, sizeof(cqe));
    assert_int_equal(c->status, QHCA_WC_SUCCESS);
    assert_int_equal(c->opcode, QHCA_CQE_OP_ETH_RECV);
    assert_int_equal(c->wqe_index, t->rq_cons);
    assert_int_equal(c->num_wqe, (c->byte_len + SLOT - 1) / SLOT);
    for (i = 0; i < c->num_wqe; i++) {
        uint64_t at = t->rx + (uint64_t)(t->rq_cons++ & (DEPTH - 1)) * SLOT;

        part = c->byte_len - done < SLOT ? c->byte_len - done : SLOT;
        memcpy(to + done, gmem_ptr(t->u->m, at, part), part);
        gmem_deny(t->u->m, at, SLOT, GMEM_W);
        done += part;
    }
    return done;
}

/* A completion that is frame @f, which may have a tag. */
static void expect(struct eth *t, const struct big *b, const uint8_t *f,
                   size_t len, uint16_t gso_size, uint32_t segs)
{
    static uint8_t got[FRAME_MAX];
    struct qhca_eth_cqe c;
    unsigned tag = b->tagged ? 4 : 0;

    assert_int_equal(take(t, &c, got), len - tag);
    assert_memory_equal(got, f, 12);
    assert_memory_equal(got + 12, f + 12 + tag, len - tag - 12);
    assert_int_equal(c.vlan, b->tagged ? b->tci : QHCA_VLAN_NONE);
    assert_int_equal(c.gso_size, gso_size);
    assert_int_equal(c.gso_segs, segs);
    assert_true(c.flags & QHCA_CQE_F_L3_OK);
    if (!b->v6 || !b->exts) {
        assert_true(c.flags & QHCA_CQE_F_L4_OK);
    }
}

/* Any super-frame, to a queue that takes it or to one that does not. */
static void receives(struct unit *u, uint8_t flags)
{
    static struct big b;
    static uint8_t f[FRAME_MAX];
    struct rng *r = &u->g.rng;
    uint64_t frames = 0, bytes = 0;
    struct port port = { 0 };
    uint32_t from, len, all;
    struct eth t;
    uint16_t mss;
    unsigned i, n;
    size_t size;

    make(&t, u, flags);
    for (i = 0; i < 100; i++) {
        do {
            random_big(&b, r, &mss);
            mss = mss > 1400 && !flags ? 1400 : mss;
            all = room(&b, mss) < b.len ? room(&b, mss) : b.len;
            b.len = all;
        } while (segments(all, mss) < 2);
        post_recv(&t, DEPTH);
        size = super_frame(&b, f, mss, 0, all);
        world_inject(&u->w, 0, f, size);
        n = segments(all, mss);
        if (flags) {
            expect(&t, &b, f, size - TRAILER, mss, n);
        } else {
            for (from = 0; from < all; from += len) {
                len = all - from < mss ? all - from : mss;
                size = big_frame(&b, f, from / mss, from, len);
                expect(&t, &b, f, size, 0, 0);
            }
        }
        frames += n;
        bytes += all + (uint64_t)n * big_hdr_len(&b);
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_PACKETS), frames);
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_BYTES), bytes);
        port_add(&port, &b, all, mss);
        port_check(u, &port, QHCA_STAT_PORT_RX_FRAMES);
    }
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 0);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 0);
    unmake(&t);
}

static void received_whole(void **state)
{
    receives(*state, SUPER);
}

static void received_cut(void **state)
{
    receives(*state, 0);
}

/* ---- other frames ---- */

/* A plain TCP super-frame of ten frames; returns its length. */
static size_t plain(struct unit *u, struct big *b, uint8_t *f)
{
    big_random(b, &u->g.rng, 9999);
    b->tagged = b->v6 = false;
    b->tcp = true;
    b->opts = b->tcp_opts = 0;
    return super_frame(b, f, 1000, 0, 9999);
}

static void set_mtu(struct unit *u, uint32_t mtu)
{
    struct qhca_port port = { .mtu = mtu };

    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, QHCA_PORT_M_MTU,
                              &port, sizeof(port), NULL), QHCA_ST_OK);
}

/* Not a super-frame: too long for the wire, and counted. */
static void none(void **state)
{
    static const struct {
        const char *what;
        int at;                 /* byte of the frame; negative: from its end */
        uint8_t v;
    } t[] = {
        { "magic", -8, 'q' }, { "magic", -5, 0 }, { "size", -4, 0 },
        { "size", -4, 4 }, { "no frames", -1, 0 }, { "one", -1, 1 },
        { "nine", -1, 9 }, { "eleven", -1, 11 }, { "more", -2, 1 },
        { "ARP", 13, 6 }, { "ICMP", 23, 1 }, { "fragment", 20, 0x20 },
        { "fragment", 21, 5 }, { "IHL", 14, 0x44 },
        { "length", 17, 0 }, { "length", 16, 1 }, { "offset", 46, 0x10 },
        { "tag", 12, 0x81 },
    };
    struct unit *u = *state;
    static uint8_t f[FRAME_MAX];
    static struct big b;
    struct qhca_cqe cqe;
    struct eth eth;
    unsigned i;
    size_t len;

    make(&eth, u, SUPER);
    set_mtu(u, 1500);
    post_recv(&eth, DEPTH);
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        len = plain(u, &b, f);
        f[t[i].at < 0 ? (int)len + t[i].at : t[i].at] = t[i].v;
        world_inject(&u->w, 0, f, len);
        if (gcq_poll(&eth.rcq, &cqe) ||
            unit_stat(u, QHCA_STAT_ETH_RX_ERRORS) != i + 1) {
            print_error("%s (%u) is received\n", t[i].what, i);
            fail();
        }
    }
    /* longer, or cut off, by the wire; and RoCE, which is never one */
    len = plain(u, &b, f);
    world_inject(&u->w, 0, f, len + 1);
    world_inject(&u->w, 0, f, len - 1);
    world_inject(&u->w, 0, f, len - TRAILER);
    b.tcp = false;
    b.ports[1] = 4791;
    len = super_frame(&b, f, 1000, 0, 9999);
    world_inject(&u->w, 0, f, len);
    /* its frames are longer than the port's MTU: by one byte */
    len = plain(u, &b, f);
    set_mtu(u, 1039);
    world_inject(&u->w, 0, f, len);
    assert_false(gcq_poll(&eth.rcq, &cqe));
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), i + 4 + 10);
    set_mtu(u, 1040);
    world_inject(&u->w, 0, f, len);
    expect(&eth, &b, f, len - TRAILER, 1000, 10);
    unmake(&eth);
}

/* The wire may pad a short one. */
static void padded(void **state)
{
    struct unit *u = *state;
    static uint8_t f[FRAME_MAX];
    static struct big b;
    struct eth t;
    size_t len;

    make(&t, u, SUPER);
    post_recv(&t, DEPTH);
    big_random(&b, &u->g.rng, 3);
    b.tagged = b.v6 = b.tcp = false;
    b.opts = 0;
    len = super_frame(&b, f, 2, 0, 3);
    assert_int_equal(len, 42 + 3 + TRAILER);
    memset(f + len, 0, 60 - len);
    world_inject(&u->w, 0, f, 60);
    expect(&t, &b, f, len - TRAILER, 2, 2);
    unmake(&t);
}

/* Payload that was damaged: a queue that takes it sees that, others nothing. */
static void damaged(void **state)
{
    struct unit *u = *state;
    static uint8_t f[FRAME_MAX], got[FRAME_MAX];
    static struct big b;
    struct qhca_eth_cqe c;
    struct qhca_cqe cqe;
    struct eth t;
    size_t len;

    make(&t, u, SUPER);
    post_recv(&t, DEPTH);
    len = plain(u, &b, f);
    f[5000] ^= 4;
    world_inject(&u->w, 0, f, len);
    assert_int_equal(take(&t, &c, got), len - TRAILER);
    assert_true(c.flags & QHCA_CQE_F_L3_OK);
    assert_false(c.flags & QHCA_CQE_F_L4_OK);
    unmake(&t);
    make(&t, u, 0);
    post_recv(&t, DEPTH);
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 10);
    f[5000] ^= 4;
    f[24] ^= 1;                 /* the IPv4 header's */
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 20);
    assert_false(gcq_poll(&t.rcq, &cqe));
    unmake(&t);
}

/* Each receiver that gets none of the frames counts them in its own way. */
static void damaged_copies(void **state)
{
    struct unit *u = *state;
    struct qhca_flow flow = { .type = QHCA_FLOW_SNIFFER };
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .sq_shift = 2, .sq_stride = 8, .rq_shift = 4,
        .rq_stride = 6,
    };
    static uint8_t f[FRAME_MAX], got[FRAME_MAX];
    static struct big b;
    struct qhca_eth_cqe c;
    uint32_t rule[2];
    struct gcq cq;
    struct gqp qp;
    struct eth t;
    unsigned i;
    size_t len;

    make(&t, u, SUPER);
    post_recv(&t, DEPTH);
    gcq_create(&cq, &u->g, 6, NULL, 1);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    flow.qpn = qp.qpn;
    for (i = 0; i < 2; i++) {
        rule[i] = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &flow,
                               sizeof(flow));
    }
    len = plain(u, &b, f);
    f[5000] ^= 4;
    /* the net device gets it, and two sniffers do not */
    world_inject(&u->w, 0, f, len);
    assert_int_equal(take(&t, &c, got), len - TRAILER);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 0);
    assert_int_equal(unit_stat(u, QHCA_STAT_RAW_RX_DROPPED), 20);
    unmake(&t);
    make(&t, u, 0);
    post_recv(&t, DEPTH);
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 10);
    assert_int_equal(unit_stat(u, QHCA_STAT_RAW_RX_DROPPED), 40);
    for (i = 0; i < 2; i++) {
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, rule[i]),
                         QHCA_ST_OK);
    }
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    unmake(&t);
}

/* Dropped and filtered frames count as the frames that they represent. */
static void counted(void **state)
{
    struct unit *u = *state;
    struct qhca_port port = { .promisc = 0 };
    static uint8_t f[FRAME_MAX];
    static struct big b;
    struct eth t;
    size_t len;

    make(&t, u, SUPER);
    len = plain(u, &b, f);
    post_recv(&t, 4);           /* of five that it takes */
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 10);
    assert_int_equal(rq_inside(&t)->dropped, 10);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0,
                              QHCA_PORT_M_PROMISC, &port, sizeof(port),
                              NULL), QHCA_ST_OK);
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_FILTERED), 10);
    f[0] = 0xff;
    memset(f, 0xff, 6);
    post_recv(&t, 1);
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_MULTICAST), 10);
    memcpy(b.dmac, f, 6);
    expect(&t, &b, f, len - TRAILER, 1000, 10);
    /* a queue without the flag takes as many as it has buffers for */
    unmake(&t);
    make(&t, u, 0);
    post_recv(&t, 4);
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 16);
    unmake(&t);
}

/* So do those that a bad buffer, or the port's MTU, makes errors. */
static void errors_counted(void **state)
{
    struct unit *u = *state;
    static uint8_t f[FRAME_MAX];
    static struct big b;
    struct qhca_cqe cqe;
    struct eth t;
    size_t len;

    make(&t, u, SUPER);
    len = plain(u, &b, f);
    /* a buffer without bytes */
    post_recv(&t, 1);
    gbuf_write(&t.rq, 8, "\0\0\0", 4);
    world_inject(&u->w, 0, f, len);
    assert_true(gcq_poll(&t.rcq, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_LOC_LEN_ERR);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 10);
    /* a record beyond the ring: the queue stops */
    guest_dbrec_set(&u->g, t.dbrec, 2 * DEPTH);
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 20);
    /* frames longer than the port's MTU */
    set_mtu(u, 1039);
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 30);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_RX_OVERSIZE), 10);
    unmake(&t);
}

/* A rule gives a raw packet QP the frames, not the super-frame. */
static void raw_gets_frames(void **state)
{
    struct unit *u = *state;
    struct qhca_flow flow = { .type = QHCA_FLOW_SNIFFER };
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .sq_shift = 2, .sq_stride = 8, .rq_shift = 4,
        .rq_stride = 6,
    };
    static uint8_t f[FRAME_MAX];
    static struct big b;
    struct qhca_cqe cqe;
    struct qhca_sge sge;
    struct gcq cq;
    struct gmr mr;
    struct gqp qp;
    struct eth t;
    uint32_t rule;
    unsigned i;
    size_t len;
    uint8_t st;

    make(&t, u, SUPER);
    post_recv(&t, DEPTH);
    gcq_create(&cq, &u->g, 6, NULL, 1);
    gmr_create(&mr, &u->g, 16 * SLOT, 1 << 20, QHCA_ACCESS_MASK, NULL);
    gbuf_allow(&mr.buf, 0, 16 * SLOT, GMEM_RW);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    for (st = QHCA_QPS_INIT; st <= QHCA_QPS_RTS; st++) {
        assert_int_equal(gqp_state(&qp, st), QHCA_ST_OK);
    }
    for (i = 0; i < 16; i++) {
        sge = (struct qhca_sge){ .addr = (1 << 20) + i * SLOT, .len = SLOT,
                                 .lkey = mr.key };
        assert_true(gqp_post_recv(&qp, i, &sge, 1));
    }
    flow.qpn = qp.qpn;
    rule = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &flow, sizeof(flow));
    len = plain(u, &b, f);
    world_inject(&u->w, 0, f, len);
    expect(&t, &b, f, len - TRAILER, 1000, 10);
    for (i = 0; i < 10; i++) {
        static uint8_t got[SLOT];

        len = big_frame(&b, f, i, i * 1000, i == 9 ? 999 : 1000);
        assert_true(gcq_poll(&cq, &cqe));
        assert_int_equal(cqe.byte_len, len);
        assert_true(cqe.flags & QHCA_CQE_F_L4_OK);
        gbuf_read(&mr.buf, i * SLOT, got, len);
        assert_memory_equal(got, f, len);
    }
    assert_false(gcq_poll(&cq, &cqe));
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, rule),
                     QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    unmake(&t);
}

/* Copies that are too many at one time count in the same way. */
static void copies_counted(void **state)
{
    struct unit *u = *state;
    struct qhca_flow flow = { .type = QHCA_FLOW_SNIFFER };
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .sq_shift = 2, .sq_stride = 8, .rq_shift = 4,
        .rq_stride = 6,
    };
    struct qhca_port port = { .promisc = 0 };
    uint32_t rule[2 * QHCA_FLOW_COPIES_MAX], i;
    static uint8_t f[FRAME_MAX];
    static struct big b;
    struct gcq cq;
    struct gqp qp;
    struct eth t;
    uint8_t st;

    make(&t, u, SUPER);
    gcq_create(&cq, &u->g, 6, NULL, 1);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    for (st = QHCA_QPS_INIT; st <= QHCA_QPS_RTS; st++) {
        assert_int_equal(gqp_state(&qp, st), QHCA_ST_OK);
    }
    flow.qpn = qp.qpn;
    for (i = 0; i < 2 * QHCA_FLOW_COPIES_MAX; i++) {
        flow.type = i & 1 ? QHCA_FLOW_SNIFFER : QHCA_FLOW_ALL_DEFAULT;
        rule[i] = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &flow,
                               sizeof(flow));
    }
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0,
                              QHCA_PORT_M_PROMISC, &port, sizeof(port),
                              NULL), QHCA_ST_OK);
    plain(u, &b, f);
    world_inject(&u->w, 0, f, super_frame(&b, f, 78, 0, 128 * 78));
    /* no copy finds a receive WQE */
    assert_int_equal(unit_stat(u, QHCA_STAT_RAW_RX_DROPPED),
                     2 * QHCA_FLOW_COPIES_MAX * 128);
    for (i = 0; i < 2 * QHCA_FLOW_COPIES_MAX; i++) {
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, rule[i]),
                         QHCA_ST_OK);
    }
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    unmake(&t);
}

/* ---- without the property ---- */

static void off(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_qc c = { .shift = 2, .stride = 4, .flags = SUPER };
    struct qhca_config cfg;
    static uint8_t f[FRAME_MAX];
    static struct big b;
    struct qhca_cqe cqe;
    struct eth t;
    size_t len;

    assert_false(qhca_features(u->e) & QHCA_FEAT_ETH_SUPER);
    make(&t, u, 0);
    post_recv(&t, DEPTH);
    len = plain(u, &b, f);
    world_inject(&u->w, 0, f, len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 1);
    assert_false(gcq_poll(&t.rcq, &cqe));
    send(&t, &b, 1000);
    assert_int_equal(wire_n, 10);
    c.buf = t.rq.d;
    c.dbrec = t.dbrec;
    c.cqn = t.rcq.cqn;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_ETH_RQ, 0, 0, &c, sizeof(c),
                              NULL), QHCA_ST_BAD_PARAM);
    cfg = u->e->cfg;
    cfg.super_frames = true;
    assert_non_null(strstr(node_loads(u->n, &cfg), "super-frames"));
    unmake(&t);
}

/* A send queue has no such flag. */
static void not_of_sq(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_qc c = { .shift = 2, .stride = 9, .flags = SUPER };
    struct eth t;

    make(&t, u, SUPER);
    c.buf = t.sq.d;
    c.cqn = t.scq.cqn;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_ETH_SQ, 0, 0, &c, sizeof(c),
                              NULL), QHCA_ST_BAD_PARAM);
    unmake(&t);
}

/* ---- faults and stops work on single frames ---- */

/* Poll all receive completions; how many frames were received. */
static unsigned received(struct eth *t)
{
    struct qhca_eth_cqe c;
    struct qhca_cqe any;
    unsigned n = 0;

    while (gcq_poll(&t->rcq, &any)) {
        memcpy(&c, &any, sizeof(c));
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
        assert_int_equal(c.gso_segs, 0);
        t->rq_cons += c.num_wqe;
        n++;
    }
    return n;
}

static void faulty(void **state)
{
    struct qhca_fault_rule in = RULE(DROP, .fields = QHCA_FLT_AT |
        QHCA_FLT_DIRECTION, .at = QHCA_FLT_AT_FRAME,
        .direction = QHCA_FLT_IN, .nth = 2);
    struct qhca_port port = { .loopback = 1 };
    struct unit *u = *state;
    static uint8_t f[FRAME_MAX];
    static struct big b;
    struct eth t;
    size_t len;

    make(&t, u, SUPER);
    post_recv(&t, DEPTH);
    len = plain(u, &b, f);
    send(&t, &b, 1000);
    assert_int_equal(wire_n, 1);
    rule_add(u->n->e, RULE(DROP, .fields = QHCA_FLT_AT,
                           .at = QHCA_FLT_AT_FRAME, .nth = 3));
    send(&t, &b, 1000);
    assert_int_equal(wire_n, 10);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_PACKETS), 20);
    qhca_fault_remove(u->n->e, 0);
    send(&t, &b, 1000);
    assert_int_equal(wire_n, 11);
    rule_add(u->n->e, in);
    world_inject(&u->w, 0, f, len);
    assert_int_equal(received(&t), 9);
    /* cutting one with a wrong checksum would make right ones */
    f[5000] ^= 4;
    world_inject(&u->w, 0, f, len);
    assert_int_equal(received(&t), 0);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 10);
    qhca_fault_remove(u->n->e, 0);
    /* in loopback a frame leaves, and comes back at once */
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0,
                              QHCA_PORT_M_LOOPBACK, &port, sizeof(port),
                              NULL), QHCA_ST_OK);
    in.action = QHCA_FLT_DUPLICATE;
    in.direction = QHCA_FLT_OUT;
    rule_add(u->n->e, in);
    post_recv(&t, DEPTH);
    send(&t, &b, 1000);
    assert_int_equal(received(&t), 11);
    assert_int_equal(wire_n, 11);
    unmake(&t);
}

/*
 * A frame that was cut out of a super-frame, for a fault, is intact when a
 * packet that was merged before is cut as well, since its ring is too short.
 */
static void cut_meanwhile(void **state)
{
    struct unit *u = *state;
    static uint8_t f[FRAME_MAX], got[FRAME_MAX];
    struct qhca_eth_cqe c;
    static struct big b;
    struct eth t;
    size_t len;

    u->e->cfg.gro_hold = 1000;
    world_run(&u->w, 1);        /* at 0 there is no time to tell */
    make(&t, u, QHCA_ETH_Q_F_GRO);
    rule_add(u->n->e, RULE(DROP, .fields = QHCA_FLT_AT | QHCA_FLT_DIRECTION,
                           .at = QHCA_FLT_AT_FRAME, .direction = QHCA_FLT_IN,
                           .nth = 1000));
    plain(u, &b, f);
    b.flags = 0x10;             /* ACK */
    b.len = 9000;               /* a shorter frame would end the packet */
    len = super_frame(&b, f, 1000, 0, b.len);
    post_recv(&t, 4);           /* of the five that the packet takes */
    qhca_receive(u->e, f, len);
    assert_int_equal(received(&t), 0);
    /* another sequence number: the first packet is delivered, this is held */
    b.seq += 1000000;
    len = super_frame(&b, f, 1000, 0, b.len);
    qhca_receive(u->e, f, len);
    assert_int_equal(received(&t), 4);
    post_recv(&t, DEPTH);
    world_run(&u->w, 2000000);
    assert_int_equal(take(&t, &c, got), len - TRAILER);
    assert_memory_equal(got, f, len - TRAILER);
    qhca_fault_remove(u->n->e, 0);
    unmake(&t);
}

/* Three steps are three frames; then, without steps, the rest goes whole. */
static void stepped(void **state)
{
    struct qhca_break other = { .on = QHCA_ON_MARKER };
    struct unit *u = *state;
    static uint8_t f[FRAME_MAX];
    static struct big b;
    struct eth t;

    make(&t, u, SUPER);
    plain(u, &b, f);
    assert_null(qhca_break_step(u->n->e, QHCA_ON_FRAME, 3));
    post_large(&t, &b, 1000);
    world_run(&u->w, 100000);
    assert_true(qhca_break_stopped(u->n->e));
    assert_int_equal(wire_n, 3);
    node_continue(u->n);
    sent(&t);
    assert_int_equal(wire_n, 4);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_PACKETS), 10);
    /* any break: it might be one for the next frame */
    assert_null(qhca_break_add(u->n->e, &other));
    send(&t, &b, 1000);
    assert_int_equal(wire_n, 14);
    assert_true(qhca_break_remove(u->n->e, 0));
    unmake(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SUPER_UNIT(sent_whole),
        SUPER_UNIT(sent_reborn),
        SUPER_UNIT(roce_is_not_joined),
        SUPER_UNIT(received_whole),
        SUPER_UNIT(received_cut),
        SUPER_UNIT(none),
        SUPER_UNIT(padded),
        SUPER_UNIT(damaged),
        SUPER_UNIT(damaged_copies),
        SUPER_UNIT(counted),
        SUPER_UNIT(errors_counted),
        SUPER_UNIT(raw_gets_frames),
        SUPER_UNIT(copies_counted),
        SUPER_UNIT(not_of_sq),
        SUPER_UNIT(faulty),
        SUPER_UNIT(cut_meanwhile),
        SUPER_UNIT(stepped),
        UNIT(off),
    };

    return cmocka_run_group_tests_name("super", tests, NULL, NULL);
}
