/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive coalescing.  A model written from the manual cuts all received
 * packets again; the result must be the frames that arrived, bit by bit.
 */
#include "ethfix.h"
#include "bigpkt.h"
#include "emit.h"
#include "nomem.h"
#include "reborn.h"

#define GRO QHCA_ETH_Q_F_GRO
#define HDS QHCA_ETH_Q_F_HDS
#define FRAME_MAX 9300u
#define PACKET_MAX 66000u
#define SENT_MAX 2200u
#define ACK 0x10
#define PSH 0x08
#define ECE 0x40
#define CWR 0x80
#define FLOWS 8

/* Frames that arrived, without their tags. */
static struct {
    uint8_t b[FRAME_MAX];
    size_t len;
    uint16_t vlan;
    uint64_t when;
    bool seen;                  /* it was received, or is known to be lost */
    bool loose;                 /* spoilt: may be of any flow */
} sent[SENT_MAX];
static unsigned sent_to;

/* The results of take(). */
static struct {
    unsigned cqes, wqes, frames, merged, merged_frames, skipped, split;
    uint32_t size, segs, len, flags;    /* of the last one */
    unsigned first;             /* frame of the last one: index in sent */
} got;

/* ---- frames ---- */

static unsigned get16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

static uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

/* Where the headers of an untagged TCP frame are, perhaps in a tunnel. */
struct lay {
    unsigned outer;             /* 0: no tunnel */
    unsigned l3, l4, hdr;       /* hdr: where the payload begins */
};

static bool is_v4(const uint8_t *f, unsigned at)
{
    return f[at] >> 4 == 4;
}

static struct lay layout(const uint8_t *f)
{
    struct lay l = { .l3 = 14 };
    uint8_t next;
    unsigned at;

    for (;;) {
        at = l.l3 + (is_v4(f, l.l3) ? (f[l.l3] & 15) * 4u : 40);
        next = f[l.l3 + (is_v4(f, l.l3) ? 9 : 6)];
        while (next == 0 || next == 60 || next == 43) {
            next = f[at];
            at += 8 + f[at + 1] * 8u;
        }
        if (l.outer || (next != 4 && next != 41)) {
            break;
        }
        l.outer = l.l3;
        l.l3 = at;
    }
    l.l4 = at;
    l.hdr = at + (f[at + 12] >> 4) * 4u;
    return l;
}

/* Set length and checksum of the IP header at @at, of a frame of @len bytes. */
static void repair_ip(uint8_t *f, unsigned at, size_t len)
{
    uint8_t *ip = f + at;

    if (is_v4(f, at)) {
        big_put16(ip + 2, (uint32_t)len - at);
        big_put16(ip + 10, 0);
        big_put16(ip + 10, ~big_sum(ip, (ip[0] & 15) * 4u, 0));
    } else {
        big_put16(ip + 4, (uint32_t)len - at - 40);
    }
}

/* Set lengths and checksums of the untagged TCP frame of @len bytes. */
static void repair(uint8_t *f, size_t len)
{
    struct lay l = layout(f);
    uint32_t l4_len = (uint32_t)len - l.l4;
    uint32_t sum = is_v4(f, l.l3) ? big_sum(f + l.l3 + 12, 8, 6) :
                                    big_sum(f + l.l3 + 8, 32, 6);

    if (l.outer) {
        repair_ip(f, l.outer, len);
    }
    repair_ip(f, l.l3, len);
    big_put16(f + l.l4 + 16, 0);
    big_put16(f + l.l4 + 16, ~big_sum(f + l.l4, l4_len, sum + l4_len));
}

static void count_id(uint8_t *f, unsigned at, unsigned i, bool same)
{
    if (is_v4(f, at) && !same) {
        big_put16(f + at + 4, get16(f + at + 4) + i);
    }
}

/* Cut the packet @p, of @c: write frame @i, and return its length. */
static size_t cut_again(const uint8_t *p, const struct qhca_eth_cqe *c,
                        unsigned i, uint8_t *f)
{
    struct lay l = layout(p);
    size_t from = (size_t)i * c->gso_size, left = c->byte_len - l.hdr - from;
    size_t part = left < c->gso_size ? left : c->gso_size;
    bool same = c->flags & QHCA_CQE_F_SAME_ID;

    memcpy(f, p, l.hdr);
    memcpy(f + l.hdr, p + l.hdr + from, part);
    if (l.outer) {
        count_id(f, l.outer, i, same);
        same = c->flags & QHCA_CQE_F_SAME_INNER_ID;
    }
    count_id(f, l.l3, i, same);
    big_put32(f + l.l4 + 4, get32(p + l.l4 + 4) + (uint32_t)from);
    if (i + 1 < c->gso_segs) {
        f[l.l4 + 13] &= (uint8_t)~PSH;
    }
    if (i && !(c->flags & QHCA_CQE_F_CWR)) {
        f[l.l4 + 13] &= (uint8_t)~CWR;
    }
    repair(f, l.hdr + part);
    return l.hdr + part;
}

/* A flow: headers, and where it is. */
struct flow {
    struct big b;
    unsigned number;
    uint32_t from;
    uint8_t tunnel;             /* version of IP around it; 0: none */
    bool same_id, same_outer_id;
    uint16_t outer_id;
};

static void flow_make(struct flow *w, struct rng *r, bool v6)
{
    big_random(&w->b, r, BIG_PAYLOAD_MAX);
    w->b.v6 = v6;
    w->b.tcp = true;
    w->b.opts = w->b.exts = 0;
    w->b.tagged = rng_pct(r, 30);
    w->b.flags = ACK;
    w->number = 0;
    w->from = 0;
    w->tunnel = 0;
    w->same_id = rng_pct(r, 30);
    w->same_outer_id = rng_pct(r, 30);
    w->outer_id = (uint16_t)rng_u32(r);
    /* reserved bits of TCP are 0 by construction */
}

/* The next frame, untagged, of @len bytes of payload; returns its length. */
static size_t flow_next(struct flow *w, uint8_t *f, uint32_t len)
{
    bool tagged = w->b.tagged;
    unsigned number;
    size_t n;

    if (w->from + len > BIG_PAYLOAD_MAX) {
        w->b.seq += w->from;
        w->b.id = (uint16_t)(w->b.id + (w->same_id ? 0 : w->number));
        w->outer_id = (uint16_t)(w->outer_id +
                                 (w->same_outer_id ? 0 : w->number));
        w->from = 0;
        w->number = 0;
    }
    w->b.tagged = false;
    number = w->number++;
    n = big_frame(&w->b, f, w->same_id ? 0 : number, w->from, len);
    w->b.tagged = tagged;
    w->from += len;
    return w->tunnel ? big_wrap(f, n, w->tunnel == 6, w->b.junk + 200,
                                w->outer_id + (w->same_outer_id ? 0 : number)) :
                       n;
}

static uint64_t now(struct unit *u)
{
    return u->e->ops.clock(u->e->opaque);
}

/* The untagged frame arrives, with the flow's tag and @pad bytes more. */
static void arrive(struct unit *u, const struct flow *w, const uint8_t *f,
                   size_t len, size_t pad)
{
    static uint8_t wire[FRAME_MAX + 4];
    unsigned tag = w->b.tagged ? 4 : 0;
    uint8_t *exact;

    assert_true(sent_to < SENT_MAX && len + pad <= FRAME_MAX);
    memcpy(sent[sent_to].b, f, len);
    memset(sent[sent_to].b + len, 0x5a, pad);
    sent[sent_to].len = len + pad;
    sent[sent_to].vlan = tag ? w->b.tci : QHCA_VLAN_NONE;
    sent[sent_to].when = now(u);
    sent[sent_to].seen = sent[sent_to].loose = false;
    memcpy(wire, f, 12);
    big_put16(wire + 12, 0x8100);
    big_put16(wire + 14, w->b.tci);
    memcpy(wire + 12 + tag, sent[sent_to].b + 12, len + pad - 12);
    sent_to++;
    exact = malloc(len + pad + tag);
    assert_non_null(exact);
    memcpy(exact, wire, len + pad + tag);
    world_inject(&u->w, 0, exact, len + pad + tag);
    free(exact);
}

static void next_arrives(struct unit *u, struct flow *w, uint32_t len)
{
    uint8_t f[FRAME_MAX];
    size_t n = flow_next(w, f, len);

    arrive(u, w, f, n, 0);
}

/* ---- what is received ---- */

static bool same_addr(const uint8_t *a, const uint8_t *b, unsigned at)
{
    return is_v4(a, at) ? !memcmp(a + at + 12, b + at + 12, 8) :
                          !memcmp(a + at + 8, b + at + 8, 32);
}

/* Are both frames of one flow?  Headers are where they were made. */
static bool one_flow(unsigned i, unsigned k)
{
    const uint8_t *a = sent[i].b, *b = sent[k].b;
    struct lay l, m;

    if (sent[i].loose || sent[k].loose) {
        return false;
    }
    l = layout(a);
    m = layout(b);
    return l.outer == m.outer && l.l3 == m.l3 && l.l4 == m.l4 &&
           get16(a + 12) == get16(b + 12) &&
           !memcmp(a + l.l4, b + l.l4, 4) && same_addr(a, b, l.l3) &&
           (!l.outer || same_addr(a, b, l.outer));
}

/* Of a split or merged frame only the IP packet is stored. */
static bool is_sent(unsigned i, const uint8_t *f, size_t len, uint16_t vlan,
                    bool trimmed)
{
    const uint8_t *ip = sent[i].b + 14;
    size_t want = !trimmed ? sent[i].len : is_v4(ip, 0) ?
                  14 + get16(ip + 2) : 54 + get16(ip + 4);

    return !sent[i].seen && want == len && sent[i].vlan == vlan &&
           !memcmp(sent[i].b, f, len);
}

/*
 * One frame, which is the next that arrived of its flow; or a later one if
 * @lossy.
 */
static void frame_is_next(const uint8_t *f, size_t len, uint16_t vlan,
                          bool trimmed, bool lossy)
{
    unsigned i, k;

    for (i = 0; i < sent_to && !is_sent(i, f, len, vlan, trimmed); i++) {
    }
    assert_true(i < sent_to);
    for (k = 0; k < i; k++) {
        if (!sent[k].seen && one_flow(k, i)) {
            assert_true(lossy);
            sent[k].seen = true;
            got.skipped++;
        }
    }
    sent[i].seen = true;
    got.first = i;
    got.frames++;
}

static void take_one(struct erq *q, const struct qhca_eth_cqe *c, bool lossy)
{
    static uint8_t p[PACKET_MAX], f[FRAME_MAX];
    uint32_t head = c->header_len ? c->header_len : c->byte_len;
    unsigned i, first = 0;
    struct lay l;
    size_t len;

    assert_int_equal(c->status, QHCA_WC_SUCCESS);
    assert_true(c->byte_len <= 14 + 65535);
    erq_read(q->u, &q->ring, c->wqe_index, c->num_wqe, p, head);
    if (c->header_len) {
        erq_read(q->u, &q->data, c->data_index, c->num_data, p + head,
                 c->byte_len - head);
        got.split++;
    }
    got.cqes++;
    got.wqes += c->num_wqe;
    got.size = c->gso_size;
    got.segs = c->gso_segs;
    got.len = c->byte_len;
    got.flags = c->flags;
    if (!c->gso_segs) {
        assert_int_equal(c->gso_size, 0);
        assert_false(c->flags & (QHCA_CQE_F_SAME_ID | QHCA_CQE_F_CWR |
                                 QHCA_CQE_F_SAME_INNER_ID));
        frame_is_next(p, c->byte_len, c->vlan, c->header_len, lossy);
        /* earlier: it was held with others, and there was no room for all */
        assert_true(c->timestamp <= sent[got.first].when);
        return;
    }
    l = layout(p);
    assert_true((c->flags & QHCA_CQE_F_L3_OK) && (c->flags & QHCA_CQE_F_L4_OK));
    assert_true(c->gso_segs >= 2 && c->gso_segs <= 128);
    assert_int_equal(c->gso_segs, (c->byte_len - l.hdr + c->gso_size - 1) /
                     c->gso_size);
    if (c->header_len) {
        assert_int_equal(c->header_len, l.hdr);
    }
    got.merged++;
    got.merged_frames += c->gso_segs;
    for (i = 0; i < c->gso_segs; i++) {
        len = cut_again(p, c, i, f);
        frame_is_next(f, len, c->vlan, true, lossy);
        first = i ? first : got.first;
    }
    /* the first one came when the packet did */
    assert_true(c->timestamp == sent[first].when);
    got.first = first;
    /* the headers are those of the whole packet */
    memcpy(f, p, l.hdr);
    repair(p, c->byte_len);
    assert_memory_equal(f, p, l.hdr);
}

/* Take what was received so far. */
static void take(struct erq *q, bool lossy)
{
    struct qhca_eth_cqe c;

    memset(&got, 0, sizeof(got));
    while (erq_poll(q, &c)) {
        take_one(q, &c, lossy);
    }
}

/* All that arrived was received. */
static void all_seen(void)
{
    unsigned i;

    for (i = 0; i < sent_to; i++) {
        assert_true(sent[i].seen);
    }
    sent_to = 0;
}

/* The engine runs; everything that arrived is there. */
static void take_all(struct erq *q)
{
    node_drain(q->u->n);
    take(q, false);
    all_seen();
}

/* Fill the rings up with @n buffers of @len bytes in all; by a command. */
static void post(struct erq *q, unsigned n, uint32_t len)
{
    struct qhca_eth_qc c = erq_query(q);

    while (q->ring.prod - c.tail < n) {
        erq_post(q->u, &q->ring, len, 0);
    }
    while ((c.flags & HDS) && q->data.prod - c.data_tail < n) {
        erq_post(q->u, &q->data, len, 0);
    }
}

static void begin(struct unit *u, struct erq *q, uint8_t flags)
{
    struct qhca_port all = { .promisc = 1 };

    u->e->cfg.gro_hold = 0;
    world_run(&u->w, 1);        /* at 0 there is no time to tell */
    erq_make(u, q, flags);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q->num), QHCA_ST_OK);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, QHCA_PORT_M_PROMISC,
                              &all, sizeof(all), NULL), QHCA_ST_OK);
    sent_to = 0;
    post(q, ERQ_DEPTH, 8000);
}

/* ---- any frames ---- */

enum change {
    SAME, SHORT, PUSH, OTHER_LEN, HEADER, SPOILT, PADDED, LOST, TWICE, EMPTY,
    CHANGES
};

/* Does byte @at of an IP header determine where the next header begins? */
static bool places_ip(const uint8_t *ip, size_t at)
{
    return !at || (ip[0] >> 4 == 4 ? at == 6 || at == 7 || at == 9 : at == 6);
}

static bool places(const uint8_t *f, size_t at)
{
    struct lay l = layout(f);

    return at == 12 || at == 13 || at == l.l4 + 12u ||
           (l.outer && at >= l.outer && at < l.l3 &&
            places_ip(f + l.outer, at - l.outer)) ||
           (at >= l.l3 && at < l.l4 && places_ip(f + l.l3, at - l.l3));
}

/* The next frame of a flow, perhaps with something unusual. */
static void random_frame(struct unit *u, struct flow *w, uint32_t size)
{
    struct rng *r = &u->g.rng;
    enum change how = rng_pct(r, 75) ? SAME : rng_below(r, CHANGES);
    uint32_t len = how == SHORT ? 1 + (uint32_t)rng_below(r, size) :
                   how == OTHER_LEN ? 1 + (uint32_t)rng_below(r, 2000) :
                   how == EMPTY ? 0 : size;
    uint8_t f[FRAME_MAX];
    size_t n = flow_next(w, f, len), at;
    struct lay l = layout(f);

    switch (how) {
    case PUSH:
        f[l.l4 + 13] |= PSH;
        repair(f, n);
        break;
    case HEADER:                /* any bit, except those that locate headers */
        do {
            at = 1 + rng_below(r, l.hdr - 1);
        } while (places(f, at));
        f[at] ^= (uint8_t)(1u << rng_below(r, 8));
        repair(f, n);
        break;
    case SPOILT:
        f[14 + rng_below(r, n - 14)] ^= 4;
        break;
    default:
        break;
    }
    if (how == LOST) {
        return;
    }
    arrive(u, w, f, n, how == PADDED ? 1 + rng_below(r, 9) : 0);
    sent[sent_to - 1].loose = how == SPOILT;
    if (how == TWICE) {
        arrive(u, w, f, n, 0);
    }
}

/* How traffic() is. */
struct how {
    uint8_t flags;              /* of the queue */
    unsigned rounds;
    unsigned buffers;           /* posted each time */
    uint32_t len;               /* bytes of each */
    bool lossy;                 /* they do not suffice */
    uint32_t hold;              /* gro_hold */
};

/* Several flows, in runs; half of them in tunnels. */
static void traffic(struct unit *u, const struct how *h)
{
    static struct flow w[FLOWS];
    struct rng *r = &u->g.rng;
    unsigned i, n, k, merged = 0, plain = 0, all = 0, seen = 0;
    uint64_t packets = 0, frames = 0;
    uint32_t size;
    struct erq q;

    begin(u, &q, h->flags);
    u->e->cfg.gro_hold = h->hold;
    for (i = 0; i < FLOWS; i++) {
        flow_make(&w[i], r, i & 1);
        w[i].tunnel = i < 4 ? 0 : i < 6 ? 4 : 6;
    }
    for (i = 0; i < h->rounds; i++) {
        post(&q, h->buffers, h->len);
        size = 1 + (uint32_t)(rng_pct(r, 30) ? rng_below(r, 7700) :
                                               rng_below(r, 1448));
        k = (unsigned)rng_below(r, FLOWS);
        for (n = 1 + (unsigned)rng_below(r, 8); n; n--) {
            random_frame(u, &w[k], size);
            k = rng_pct(r, 25) ? (unsigned)rng_below(r, FLOWS) : k;
            if (h->hold) {
                world_run(&u->w, rng_below(r, h->hold * 400));
            }
        }
        world_run(&u->w, h->hold * 1000ULL);
        node_drain(u->n);
        all += sent_to;
        take(&q, h->lossy);
        if (!h->lossy) {
            all_seen();
        }
        sent_to = 0;
        seen += got.frames;
        merged += got.merged;
        plain += got.cqes - got.merged;
        packets += got.merged;
        frames += got.merged_frames;
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_GRO_PACKETS), packets);
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_GRO_FRAMES), frames);
    }
    assert_true(plain > h->rounds / 8);
    assert_true(h->flags & GRO ? merged > h->rounds / 8 : !merged);
    assert_true(h->lossy ? seen < all : seen == all);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), all - seen);
    assert_int_equal(erq_query(&q).dropped, all - seen);
    erq_free(&q);
}

static void any_frames(void **state)
{
    traffic(*state, &(struct how){ GRO, 3000, ERQ_DEPTH, 8000, false, 0 });
}

static void any_frames_split(void **state)
{
    traffic(*state, &(struct how){ GRO | HDS, 3000, ERQ_DEPTH, 8000, false,
                                   0 });
}

static void any_frames_held(void **state)
{
    traffic(*state, &(struct how){ GRO, 3000, ERQ_DEPTH, 8000, false, 50 });
}

static void any_frames_not_merged(void **state)
{
    traffic(*state, &(struct how){ 0, 500, ERQ_DEPTH, 8000, false, 0 });
}

/* A packet for which there is no room arrives as frames, as many as fit. */
static void short_of_buffers(void **state)
{
    traffic(*state, &(struct how){ GRO, 3000, 5, 1900, true, 0 });
}

static void short_of_buffers_split(void **state)
{
    traffic(*state, &(struct how){ GRO | HDS, 3000, 5, 1900, true, 0 });
}

/* ---- exactly what is merged ---- */

/* A fresh flow over IPv4 or IPv6. */
static void calm(struct unit *u, struct flow *w, bool v6)
{
    flow_make(w, &u->g.rng, v6);
    w->b.tagged = false;
    w->same_id = w->same_outer_id = false;
    w->b.tcp_opts = 12;
}

static void merges(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    unsigned v6, n, i;
    struct erq q;

    assert_true(qhca_features(u->e) & QHCA_FEAT_ETH_GRO);
    begin(u, &q, GRO);
    for (v6 = 0; v6 < 2; v6++) {
        for (n = 1; n <= 40; n++) {
            calm(u, &w, v6);
            w.b.id = 0xfff0;    /* wraps, as does the next */
            w.b.seq = 0xffffff00;
            post(&q, ERQ_DEPTH, 8000);
            for (i = 0; i < n; i++) {
                next_arrives(u, &w, i == 39 ? 7 : 1400);
                assert_true(u->n->kicked || i == 39);
            }
            take(&q, false);
            assert_int_equal(got.cqes, n == 40);
            if (n < 40) {
                take_all(&q);
            }
            assert_int_equal(got.cqes, 1);
            assert_int_equal(got.segs, n == 1 ? 0 : n);
            assert_int_equal(got.size, n == 1 ? 0 : 1400);
            sent_to = 0;
        }
    }
    erq_free(&q);
}

/* Without memory for packets, frames are received as they come. */
static void no_memory(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    struct erq q;
    unsigned i;

    begin(u, &q, GRO);
    calm(u, &w, false);
    assert_null(u->e->eth->gro.store);
    nomem_at(2);                /* the first is arrive()'s */
    next_arrives(u, &w, 1400);
    assert_true(nomem_end());
    assert_null(u->e->eth->gro.store);
    take(&q, false);
    assert_true(got.cqes == 1 && !got.segs);
    for (i = 0; i < 2; i++) {
        next_arrives(u, &w, 1400);
    }
    take_all(&q);
    assert_true(got.cqes == 1 && got.segs == 2);
    erq_free(&q);
}

/* Limits: of frames, and of bytes. */
static void limits(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    struct erq q;
    unsigned i;

    begin(u, &q, GRO);
    calm(u, &w, false);
    for (i = 0; i < 129; i++) {
        next_arrives(u, &w, 100);
    }
    take(&q, false);            /* without a run */
    assert_true(got.cqes == 1 && got.segs == 128);
    take_all(&q);
    assert_true(got.cqes == 1 && !got.segs);
    /* 20 + 32 + 7 * 9140 = 64032: no other one fits into 65535 */
    calm(u, &w, false);
    post(&q, ERQ_DEPTH, 8000);
    for (i = 0; i < 8; i++) {
        next_arrives(u, &w, 9140);
    }
    take(&q, false);
    assert_true(got.cqes == 1 && got.segs == 7 &&
                got.len == 14 + 20 + 32 + 7 * 9140);
    take_all(&q);
    assert_true(got.cqes == 1 && !got.segs);
    /* IPv6: 65535 bytes with its header, no byte more */
    for (i = 0; i < 2; i++) {
        calm(u, &w, true);
        post(&q, ERQ_DEPTH, 8000);
        w.b.tcp_opts = i ? 4 : 0;
        /* 65535 - 60 = 25 * 2619; with four bytes of options 24 fit */
        for (unsigned k = 0; k < 25; k++) {
            next_arrives(u, &w, 2619);
        }
        take(&q, false);
        assert_int_equal(got.segs, 25 - i);
        take_all(&q);
        assert_int_equal(got.cqes, i);
    }
    erq_free(&q);
}

struct change_at {
    const char *what;
    int at;                     /* negative: from the TCP header, plus 100 */
    uint8_t flip;
};

#define TCP(at) ((at) - 100)

/* A change in the headers of the second of three frames: none are merged. */
static void rules(void **state)
{
    static const struct change_at v4[] = {
        { "destination", 5, 1 }, { "source", 11, 1 }, { "ToS", 15, 4 },
        { "ECN", 15, 1 }, { "identification", 18, 1 },
        { "don't fragment", 20, 0x40 }, { "evil bit", 20, 0x80 },
        { "TTL", 22, 1 }, { "source address", 29, 1 },
        { "destination address", 33, 1 },
    };
    static const struct change_at v6[] = {
        { "traffic class", 15, 0x10 }, { "flow label", 17, 1 },
        { "hop limit", 21, 1 }, { "source address", 37, 1 },
        { "destination address", 53, 1 },
    };
    static const struct change_at tcp[] = {
        { "source port", TCP(1), 1 }, { "destination port", TCP(3), 1 },
        { "sequence", TCP(7), 1 }, { "acknowledgment", TCP(11), 1 },
        { "window", TCP(15), 1 }, { "urgent pointer", TCP(19), 1 },
        { "options", TCP(31), 1 }, { "accurate ECN", TCP(12), 1 },
        { "FIN", TCP(13), 1 }, { "SYN", TCP(13), 2 }, { "RST", TCP(13), 4 },
        { "no ACK", TCP(13), 0x10 }, { "URG", TCP(13), 0x20 },
        { "ECE", TCP(13), 0x40 }, { "CWR", TCP(13), 0x80 },
    };
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    struct erq q;
    unsigned k, i, n, same;
    size_t len, at;

    begin(u, &q, GRO);
    for (k = 0; k < 4; k++) {
        const struct change_at *c = k & 2 ? tcp : k ? v6 : v4;

        n = k & 2 ? sizeof(tcp) / sizeof(tcp[0]) :
            k ? sizeof(v6) / sizeof(v6[0]) : sizeof(v4) / sizeof(v4[0]);
        for (i = 0; i < n; i++, c++) {
            calm(u, &w, k & 1);
            post(&q, ERQ_DEPTH, 8000);
            next_arrives(u, &w, 500);
            len = flow_next(&w, f, 500);
            at = c->at < 0 ? (size_t)((int)layout(f).l4 + c->at + 100) :
                             (size_t)c->at;
            f[at] ^= c->flip;
            repair(f, len);
            arrive(u, &w, f, len, 0);
            next_arrives(u, &w, 500);
            take_all(&q);
            if (got.cqes != 3) {
                fail_msg("%s: merged", c->what);
            }
            /* nor are two with the flag, except those of ECN */
            calm(u, &w, k & 1);
            post(&q, ERQ_DEPTH, 8000);
            if (at == layout(f).l4 + 13u) {
                for (same = 0; same < 2; same++) {
                    len = flow_next(&w, f, 500);
                    f[at] ^= c->flip;
                    repair(f, len);
                    arrive(u, &w, f, len, 0);
                }
                take_all(&q);
                if (got.cqes != (c->flip & (ECE | CWR) ? 1 : 2)) {
                    fail_msg("%s in all: %u packets", c->what, got.cqes);
                }
                assert_int_equal(!(got.flags & QHCA_CQE_F_CWR),
                                 c->flip != CWR);
            }
        }
    }
    erq_free(&q);
}

/* PSH completes a packet; a frame with PSH begins none. */
static void push(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    struct erq q;
    unsigned i;
    size_t len;

    begin(u, &q, GRO);
    calm(u, &w, false);
    for (i = 0; i < 6; i++) {
        len = flow_next(&w, f, 300);
        if (i == 2 || i == 3) {
            f[34 + 13] |= PSH;
            repair(f, len);
        }
        arrive(u, &w, f, len, 0);
        /* 0 1 2 | 3 | 4 5 */
        take(&q, false);
        assert_int_equal(got.cqes, i == 2 || i == 3);
        assert_int_equal(got.segs, i == 2 ? 3 : 0);
    }
    take_all(&q);
    assert_true(got.cqes == 1 && got.segs == 2);
    erq_free(&q);
}

/* Frames that cutting would not reproduce, or that are not acceptable. */
static void unsuitable(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    unsigned k, i, odd;
    struct erq q;
    size_t len;

    begin(u, &q, GRO);
    for (k = 0; k < 6; k++) {
        calm(u, &w, false);
        post(&q, ERQ_DEPTH, 8000);
        w.b.opts = k == 4 ? 4 : 0;
        w.b.tcp = k != 5;
        for (i = 0, odd = 0; i < 2; i++) {
            len = flow_next(&w, f, 200);
            if (k == 0) {
                f[len - 1] ^= 1;                /* TCP's checksum */
            } else if (k == 1) {
                f[25] ^= 1;                     /* IP's */
            } else if (k == 2) {
                /* both sums are 0xffff in place of 0 */
                big_put16(f + len - 2, 0);
                repair(f, len);
                big_put16(f + len - 2, get16(f + 34 + 16));
                big_put16(f + 34 + 16, 0xffff);
                odd++;
            }
            arrive(u, &w, f, len, k == 3 ? 5 : 0);
        }
        assert_int_equal(odd, k == 2 ? 2 : 0);
        take_all(&q);
        assert_int_equal(got.cqes, 2);
    }
    erq_free(&q);
}

/* Frames of several flows, in two queues: each flow is merged separately. */
static void many_at_once(void **state)
{
    struct unit *u = *state;
    static struct flow w[12];
    struct qhca_eth_cqe c;
    struct erq q[2];
    struct erss r;
    unsigned i, k, packets = 0;

    begin(u, &q[0], GRO);
    erq_make(u, &q[1], GRO);
    post(&q[1], ERQ_DEPTH, 8000);
    erss_make(u, &r, q, 2, 3, QHCA_HASH_SRC_PORT_TCP);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, r.qpn), QHCA_ST_OK);
    for (i = 0; i < 12; i++) {
        calm(u, &w[i], i & 1);
    }
    for (k = 0; k < 5; k++) {
        for (i = 0; i < 12; i++) {
            next_arrives(u, &w[i], 600);
            assert_false(erq_poll(&q[0], &c) || erq_poll(&q[1], &c));
        }
    }
    node_drain(u->n);
    for (k = 0; k < 2; k++) {
        take(&q[k], false);
        assert_true(got.cqes && got.merged == got.cqes);
        packets += got.cqes;
    }
    assert_int_equal(packets, 12);
    all_seen();
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    erss_free(&r);
    erq_free(&q[0]);
    erq_free(&q[1]);
}

/* The flow @w, but with another number as its source port. */
static void of_port(struct flow *w, const struct flow *like, unsigned port)
{
    *w = *like;
    w->b.ports[0] = (uint16_t)port;
}

/* As many buffers as were used. */
static void repost(struct erq *q)
{
    for (; got.wqes; got.wqes--) {
        erq_post(q->u, &q->ring, 8000, 0);
    }
}

/* More flows than there are places: the oldest goes first. */
static void more_than_fit(void **state)
{
    struct unit *u = *state;
    static struct flow like, w;
    unsigned i;
    struct erq q;

    begin(u, &q, GRO);
    u->e->cfg.gro_hold = 1000;
    calm(u, &like, true);
    for (i = 0; i < QHCA_GRO_PACKETS + 200; i++) {
        of_port(&w, &like, i);
        next_arrives(u, &w, 100);
        take(&q, false);
        assert_int_equal(got.cqes, i >= QHCA_GRO_PACKETS);
        assert_true(!got.cqes || got.first == i - QHCA_GRO_PACKETS);
        repost(&q);
    }
    assert_int_equal(u->e->eth->gro.held, QHCA_GRO_PACKETS);
    /* a command: all of them, in their order, as far as there are buffers */
    assert_int_equal(erq_query(&q).dropped, QHCA_GRO_PACKETS - ERQ_DEPTH);
    take(&q, false);
    assert_true(got.cqes == ERQ_DEPTH && got.first == 200 + ERQ_DEPTH - 1);
    erq_free(&q);
}

/* Packets of full size: the memory for them is limited, too. */
static void memory_is_short(void **state)
{
    struct unit *u = *state;
    static struct flow like, w[40];
    unsigned i, k, early = 0, late = 0;
    struct erq q;

    begin(u, &q, GRO);
    u->e->cfg.gro_hold = 1000;
    calm(u, &like, false);
    for (i = 0; i < 40; i++) {
        of_port(&w[i], &like, i);
    }
    for (k = 0; k < 7; k++) {
        for (i = 0; i < 40; i++) {
            next_arrives(u, &w[i], 9000);
            take(&q, false);
            early += got.frames;
            repost(&q);
            world_run(&u->w, 1000);
        }
    }
    for (i = 0; i < 1000; i++) {
        world_run(&u->w, 1000);
        take(&q, false);
        late += got.frames;
        repost(&q);
    }
    all_seen();
    assert_true(early && late && early + late == 7 * 40);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 0);
    assert_int_equal(u->e->eth->gro.pieces_left, QHCA_GRO_PIECES);
    erq_free(&q);
}

/* The timer: each packet has its own time, which later frames do not extend. */
static void held_for_a_time(void **state)
{
    struct unit *u = *state;
    static struct flow w, x;
    struct erq q;

    begin(u, &q, GRO);
    u->e->cfg.gro_hold = 100;
    calm(u, &w, false);
    calm(u, &x, true);
    next_arrives(u, &w, 500);
    world_run(&u->w, 60000);
    next_arrives(u, &x, 500);
    next_arrives(u, &w, 500);
    assert_false(u->n->kicked);
    world_run(&u->w, 39999);
    take(&q, false);
    assert_int_equal(got.cqes, 0);
    world_run(&u->w, 1);
    take(&q, false);
    assert_true(got.cqes == 1 && got.segs == 2);
    next_arrives(u, &x, 500);
    world_run(&u->w, 59999);
    take(&q, false);
    assert_int_equal(got.cqes, 0);
    world_run(&u->w, 1);
    take(&q, false);
    assert_true(got.cqes == 1 && got.segs == 2);
    all_seen();
    erq_free(&q);
}

/* Commands complete what is held, but not the one that moderates events. */
static void commands(void **state)
{
    struct unit *u = *state;
    struct qhca_cqc cqc = { .mod_count = 1 };
    static struct flow w;
    struct erq q;

    begin(u, &q, GRO);
    u->e->cfg.gro_hold = 100;
    calm(u, &w, false);
    next_arrives(u, &w, 500);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_CQ, q.cq.cqn,
                              QHCA_CQ_M_MODERATION, &cqc, sizeof(cqc), NULL),
                     QHCA_ST_OK);
    take(&q, false);
    assert_int_equal(got.cqes, 0);
    next_arrives(u, &w, 500);
    erq_query(&q);
    take(&q, false);
    assert_true(got.cqes == 1 && got.segs == 2);
    erq_free(&q);
}

/* A frame that may belong to any flow held does not overtake it. */
static void not_overtaken(void **state)
{
    struct unit *u = *state;
    static struct flow w, x;
    uint8_t f[FRAME_MAX];
    unsigned k, v6;
    struct erq q;
    size_t len;

    begin(u, &q, GRO);
    for (k = 0; k < 10; k++) {
        v6 = k >= 6;
        calm(u, &w, v6);
        calm(u, &x, v6);
        next_arrives(u, &w, 500);
        len = flow_next(&x, f, 500);
        switch (k) {
        case 0:                 /* the first fragment, a later one */
        case 1:
            big_put16(f + 20, k ? 0x0005 : 0x2000);
            break;
        case 2:                 /* of UDP: no flow of ours */
            big_put16(f + 20, 0x2000);
            f[23] = 17;
            break;
        case 3:                 /* another protocol */
            f[23] = 47;
            break;
        case 4:                 /* a fragment of a tunnel */
            big_put16(f + 20, 0x2000);
            f[23] = 4;
            break;
        case 5:                 /* another flow */
            break;
        case 6:                 /* IPv6: a fragment, no next header */
        case 7:
            memset(f + 54, 0, 8);
            f[20] = k == 6 ? 44 : 59;
            f[54] = 6;
            f[57] = 1;
            break;
        case 8:                 /* hop-by-hop options, then ICMPv6: MLD */
        case 9:                 /* then another one, which is cut off */
            memset(f + 54, 0, 8);
            f[20] = 0;
            f[54] = k == 8 ? 58 : 60;
            f[63] = 255;
            break;
        }
        repair_ip(f, 14, len);
        arrive(u, &x, f, len, 0);
        sent[1].loose = true;
        take(&q, false);
        assert_int_equal(got.cqes, k == 5 ? 0 : k == 2 || k == 3 || k == 7 ||
                         k == 8 ? 1 : 2);
        assert_true(!got.cqes || got.first == 1);
        take_all(&q);
        post(&q, ERQ_DEPTH, 8000);
    }
    erq_free(&q);
}

/* The queue stops while it holds packets: they are dropped, and counted. */
static void queue_fails(void **state)
{
    struct unit *u = *state;
    static struct flow like, w;
    unsigned i;
    struct erq q;

    begin(u, &q, GRO);
    u->e->cfg.gro_hold = 100;
    calm(u, &like, false);
    for (i = 0; i < 6; i++) {
        of_port(&w, &like, i / 2);
        w.from = i & 1 ? 500 : 0;
        w.number = i & 1;
        next_arrives(u, &w, 500);
    }
    guest_dbrec_set(&u->g, q.ring.dbrec, 5000);
    of_port(&w, &like, 9);
    w.b.flags |= PSH;
    w.from = BIG_PAYLOAD_MAX - 500;
    next_arrives(u, &w, 500);
    assert_int_equal(u->e->eth->gro.held, 0);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 6);
    erq_free(&q);
}

/* ---- what Linux expects ---- */

static void padding(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    unsigned tag, pad;
    struct erq q;
    size_t len;

    begin(u, &q, GRO);
    for (tag = 0; tag < 2; tag++) {
        for (pad = 4; pad < 8; pad++) {
            calm(u, &w, false);
            w.b.tcp_opts = 0;
            w.b.tagged = tag;
            next_arrives(u, &w, 100);
            len = flow_next(&w, f, 1);
            arrive(u, &w, f, len, pad);
            take(&q, false);
            /* 55 bytes and 5 of padding; a padded frame is the last */
            assert_int_equal(got.cqes, pad > 5 ? 2 : 1);
            assert_int_equal(got.segs, pad > 5 ? 0 : 2);
            assert_int_equal(got.len, pad > 5 ? 55 + pad : 155);
            /* alone, and it begins none: as it came */
            len = flow_next(&w, f, 1);
            arrive(u, &w, f, len, 5);
            take(&q, false);
            assert_true(got.cqes == 1 && got.len == 60);
            all_seen();
            post(&q, ERQ_DEPTH, 8000);
        }
    }
    erq_free(&q);
}

/* CWR ends a packet, and begins one in which all frames have it. */
static void congestion(void **state)
{
    static const uint8_t flags[8] = { 0, CWR, CWR, 0, 0, ECE, ECE, CWR | ECE };
    static const unsigned segs[8] = { 0, 0, 2, 0, 2, 0, 2, 0 };
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    struct erq q;
    unsigned i;
    size_t len;

    begin(u, &q, GRO);
    calm(u, &w, true);
    for (i = 0; i < 8; i++) {
        len = flow_next(&w, f, 300);
        f[layout(f).l4 + 13] |= flags[i];
        repair(f, len);
        arrive(u, &w, f, len, 0);
        take(&q, false);
        assert_int_equal(got.cqes, i == 1 || i == 3 || i == 5 || i == 7);
        assert_int_equal(got.segs, i ? segs[i - 1] : 0);
        assert_int_equal(!!(got.flags & QHCA_CQE_F_CWR), i == 3);
    }
    take_all(&q);
    erq_free(&q);
}

/* Identifications: they stay or count up, and continue as they began. */
static void identifications(void **state)
{
    static const uint8_t ids[6][4] = {
        { 7, 7, 7, 7 }, { 7, 8, 9, 10 }, { 7, 7, 8, 9 }, { 7, 8, 8, 8 },
        { 7, 9, 11, 12 }, { 7, 6, 5, 4 },
    };
    /* packets, and the first of them with one identification */
    static const unsigned packets[6] = { 1, 1, 2, 2, 3, 4 };
    static const bool same[6] = { true, false, false, true, false, false };
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    unsigned k, i, df;
    struct erq q;
    size_t len;

    begin(u, &q, GRO);
    for (k = 0; k < 12; k++) {
        df = k & 1;
        calm(u, &w, false);
        for (i = 0; i < 4; i++) {
            len = flow_next(&w, f, 300);
            big_put16(f + 18, ids[k / 2][i]);
            big_put16(f + 20, df ? 0x4000 : 0);
            repair(f, len);
            arrive(u, &w, f, len, 0);
        }
        take_all(&q);
        assert_int_equal(got.cqes, packets[k / 2]);
        /* of the last packet, which shows it */
        assert_int_equal(!!(got.flags & QHCA_CQE_F_SAME_ID), same[k / 2]);
        post(&q, ERQ_DEPTH, 8000);
    }
    erq_free(&q);
}

static void extension_headers(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    struct erq q;
    unsigned k, i;
    size_t len;

    begin(u, &q, GRO);
    for (k = 0; k < 3; k++) {
        calm(u, &w, true);
        w.b.exts = k ? 1 : 2;
        w.b.ext[0] = 8;
        w.b.ext[1] = 16;
        for (i = 0; i < 3; i++) {
            len = flow_next(&w, f, 300);
            if (k == 2) {
                f[57] = (uint8_t)i;     /* of the option */
            }
            arrive(u, &w, f, len, 0);
        }
        take_all(&q);
        assert_int_equal(got.cqes, k == 2 ? 3 : 1);
        post(&q, ERQ_DEPTH, 8000);
    }
    /* more headers than a large send can have */
    calm(u, &w, true);
    w.b.exts = 1;
    w.b.ext[0] = 256 - 54 - 32 + 8;
    w.b.ext[0] -= w.b.ext[0] % 8;
    next_arrives(u, &w, 300);
    next_arrives(u, &w, 300);
    take_all(&q);
    assert_int_equal(got.cqes, 2);
    erq_free(&q);
}

/*
 * On the way to another destination: the checksum cannot be checked, and no
 * merged packet may say that it is right.
 */
static void routing_header(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    struct erq q;
    unsigned left, i;
    size_t len;

    begin(u, &q, GRO);
    for (left = 0; left < 2; left++) {
        calm(u, &w, true);
        w.b.exts = 3;           /* the third is a routing header */
        w.b.ext[0] = w.b.ext[1] = w.b.ext[2] = 8;
        for (i = 0; i < 3; i++) {
            len = flow_next(&w, f, 300);
            f[73] = (uint8_t)left;
            arrive(u, &w, f, len, 0);
        }
        take_all(&q);
        assert_int_equal(got.cqes, left ? 3 : 1);
        assert_int_equal(!!(got.flags & QHCA_CQE_F_L4_OK), !left);
    }
    erq_free(&q);
}

/* IP in IP: merged like others. */
static void tunnels(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    unsigned k, i, inner;
    struct erq q;
    size_t len;

    begin(u, &q, GRO);
    for (k = 0; k < 16; k++) {
        calm(u, &w, k & 1);
        w.tunnel = k & 2 ? 6 : 4;
        w.same_id = k & 4;
        w.same_outer_id = k & 8;
        for (i = 0; i < 5; i++) {
            next_arrives(u, &w, i < 4 ? 900 : 100);
        }
        take(&q, false);
        assert_true(got.cqes == 1 && got.segs == 5);
        assert_int_equal(!!(got.flags & QHCA_CQE_F_SAME_ID),
                         k & 8 && w.tunnel == 4);
        assert_int_equal(!!(got.flags & QHCA_CQE_F_SAME_INNER_ID),
                         k & 4 && !w.b.v6);
        all_seen();
        post(&q, ERQ_DEPTH, 8000);
        /* all of 65535 bytes, from the outer header on */
        calm(u, &w, k & 1);
        w.tunnel = k & 2 ? 6 : 4;
        inner = 32 + (k & 1 ? 40 : 20) + (k & 2 ? 40 : 20);
        for (i = 0; i < 8; i++) {
            next_arrives(u, &w, i < 7 ? 9000 : 65535 - inner - 63000);
        }
        take(&q, false);
        assert_true(got.cqes == 1 && got.segs == 8 && got.len == 65549);
        all_seen();
        post(&q, ERQ_DEPTH, 8000);
        /* one byte longer */
        calm(u, &w, k & 1);
        w.tunnel = k & 2 ? 6 : 4;
        for (i = 0; i < 8; i++) {
            next_arrives(u, &w, i < 7 ? 9000 : 65536 - inner - 63000);
        }
        take(&q, false);
        assert_true(got.cqes == 1 && got.segs == 7);
        take_all(&q);
        post(&q, ERQ_DEPTH, 8000);
    }
    /* other frames pass unchanged */
    for (k = 0; k < 7; k++) {
        calm(u, &w, false);
        w.tunnel = 4;
        for (i = 0; i < 3; i++) {
            len = flow_next(&w, f, 300);
            switch (k) {
            case 0:             /* the inner packet ends before the outer */
                big_put16(f + 16, (uint32_t)len - 14 + 6);
                memset(f + len, 0, 6);
                len += 6;
                break;
            case 1:             /* GRE */
                f[23] = 47;
                break;
            case 2:             /* another outer address, another TTL */
                f[33] = (uint8_t)i;
                break;
            case 3:
                f[22] = (uint8_t)i;
                break;
            case 4:             /* the inner one is a fragment */
                f[40] |= 0x20;
                repair_ip(f, 34, len);
                break;
            case 5:             /* bad inner checksum of IP */
                f[42] ^= 1;
                break;
            }
            if (k == 6) {       /* bad outer checksum of IP */
                f[24] ^= 1;
            } else if (k) {
                repair_ip(f, 14, len);
            } else {
                big_put16(f + 24, 0);
                big_put16(f + 24, ~big_sum(f + 14, 20, 0));
            }
            arrive(u, &w, f, len, 0);
        }
        take_all(&q);
        assert_int_equal(got.cqes, 3);
        post(&q, ERQ_DEPTH, 8000);
    }
    erq_free(&q);
}

/* ---- the table of flows ---- */

#define MODEL 300

/* The table against a list. */
static void table(void **state)
{
    static struct {
        struct qhca_gro_packet *p;
        struct qhca_gro_key key;
        uint8_t bytes[9000];
        uint32_t len;
    } m[MODEL];
    static uint8_t data[9000], back[9000];
    static struct qhca_gro g;
    struct rng *r = &((struct unit *)*state)->g.rng;
    struct qhca_gro_packet *old;
    unsigned n, i;
    uint32_t len;

    memset(m, 0, sizeof(m));
    qhca_gro_init(&g);
    for (n = 0; n < 20000; n++) {
        i = (unsigned)rng_below(r, MODEL);
        big_put16(m[i].key.ports, i);
        assert_true(qhca_gro_find(&g, &m[i].key) == m[i].p);
        len = 1 + (uint32_t)rng_below(r, m[i].p ? 3000 : 5000);
        if (m[i].p && (m[i].len + len > sizeof(m[i].bytes) ||
                       rng_pct(r, 20))) {
            assert_int_equal(m[i].p->super.len, m[i].len);
            qhca_gro_gather(&g, m[i].p, back);
            assert_memory_equal(back, m[i].bytes, m[i].len);
            qhca_gro_remove(&g, m[i].p);
            m[i].p = NULL;
            m[i].len = 0;
            continue;
        }
        if (!qhca_gro_room(&g, m[i].p, len)) {
            assert_true(g.pieces_left < 4);
            old = qhca_gro_oldest(&g);
            for (i = 0; m[i].p != old; i++) {
            }
            qhca_gro_remove(&g, old);
            m[i].p = NULL;
            m[i].len = 0;
            continue;
        }
        if (!m[i].p) {
            assert_null(qhca_gro_in_the_way(&g, &m[i].key));
            m[i].p = qhca_gro_new(&g, &m[i].key);
        }
        memset(data, (int)n, len);
        qhca_gro_append(&g, m[i].p, data, len);
        memcpy(m[i].bytes + m[i].len, data, len);
        m[i].len += len;
        assert_int_equal(*qhca_gro_headers(&g, m[i].p), *m[i].bytes);
    }
    for (i = 0; i < MODEL; i++) {
        if (m[i].p) {
            qhca_gro_remove(&g, m[i].p);
        }
    }
    assert_int_equal(g.pieces_left, QHCA_GRO_PIECES);
    assert_int_equal(g.held, 0);
    qhca_gro_free(&g);
}

/* Flows whose hashes collide: the oldest of them goes, the table stays. */
static void collisions(void **state)
{
    struct qhca_gro_packet *p, *first = NULL;
    struct qhca_gro_key key = { .version = 4 };
    static struct qhca_gro g;
    unsigned i, n = 0;

    (void)state;
    qhca_gro_init(&g);
    for (i = 0; n < QHCA_GRO_CHAIN_MAX; i++) {
        big_put32(key.ports, i);
        assert_null(qhca_gro_in_the_way(&g, &key));
        p = qhca_gro_new(&g, &key);
        first = first ? first : p;
        if (p->chain == first->chain) {
            n++;
        } else {
            qhca_gro_remove(&g, p);
        }
    }
    do {
        big_put32(key.ports, i++);
        p = qhca_gro_in_the_way(&g, &key);
        if (!p) {
            assert_true(qhca_gro_new(&g, &key)->chain != first->chain);
        }
    } while (!p && g.held < QHCA_GRO_PACKETS);
    assert_true(p == first);
    qhca_gro_free(&g);
}

/* A rule gives the queue a copy of each frame: what differs stays apart. */
static void steered_twice(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    struct qhca_eth_cqe c;
    struct erss by_port, by_rule;
    struct qhca_flow rule;
    struct erq q;
    uint32_t num;
    unsigned i, k;

    begin(u, &q, GRO);
    erss_make(u, &by_port, &q, 1, 0, QHCA_HASH_SRC_PORT_TCP);
    erss_make(u, &by_rule, &q, 1, 0, QHCA_HASH_DST_PORT_TCP);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, by_port.qpn), QHCA_ST_OK);
    for (k = 0; k < 2; k++) {
        calm(u, &w, k);
        w.b.ports[0] = 1000;
        w.b.ports[1] = 2000;
        memset(&rule, 0, sizeof(rule));
        /* another hash, or another tag */
        rule.qpn = k ? by_port.qpn : by_rule.qpn;
        rule.flags = QHCA_FLOW_F_DONT_TRAP;
        rule.tag = k * 9;
        num = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &rule, sizeof(rule));
        post(&q, ERQ_DEPTH, 8000);
        for (i = 0; i < 4; i++) {
            next_arrives(u, &w, 100);
        }
        node_drain(u->n);
        for (i = 0; i < 8; i++) {
            assert_true(erq_poll(&q, &c));
            assert_int_equal(c.gso_segs, 0);
            assert_int_equal(c.flow_tag, i & 1 ? 0 : k * 9);
        }
        assert_false(erq_poll(&q, &c));
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, num),
                         QHCA_ST_OK);
    }
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    erss_free(&by_rule);
    erss_free(&by_port);
    erq_free(&q);
}

/* A queue that is stopped, destroyed or reset while frames are held. */
static void stopped(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    struct erq q;

    begin(u, &q, GRO);
    calm(u, &w, false);
    next_arrives(u, &w, 600);
    next_arrives(u, &w, 600);
    assert_int_equal(erq_modify(&q, &(struct qhca_eth_qc){ 0 },
                                QHCA_ETH_RQ_M_STATE, NULL), QHCA_ST_OK);
    erq_ring_close(u, &q.ring);
    take_all(&q);
    assert_true(got.cqes == 1 && got.segs == 2);
    next_arrives(u, &w, 600);
    next_arrives(u, &w, 600);
    sent_to = 0;
    assert_false(qhca_gro_pending(u->e));
    assert_int_equal(erq_query(&q).dropped, 2);
    erq_ring_open(u, &q.ring);
    erq_rewind(u, &q.ring);
    assert_int_equal(erq_state(&q, QHCA_WQS_RDY), QHCA_ST_OK);
    post(&q, ERQ_DEPTH, 8000);
    next_arrives(u, &w, 600);
    assert_true(qhca_gro_pending(u->e));
    erq_free(&q);
    assert_false(qhca_gro_pending(u->e));
}

static void reset_drops(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    struct erq q;

    begin(u, &q, GRO);
    calm(u, &w, false);
    next_arrives(u, &w, 600);
    assert_true(qhca_gro_pending(u->e));
    qhca_reset(u->e);
    assert_false(qhca_gro_pending(u->e));
    node_drain(u->n);
    gbuf_free(&q.ring.buf);
    gbuf_free(&q.data.buf);
    gbuf_free(&q.cq.buf);
}

static unsigned stores;
static struct qhca_ops ops;

/* Of the first CQE's event. */
static bool second_store_fails(void *opaque, uint64_t addr, uint64_t val)
{
    return ++stores != 2 && ops.dma_store64(opaque, addr, val);
}

/* The device becomes fatal: no more packets are delivered. */
static void fatal_ends(void **state)
{
    struct unit *u = *state;
    static struct flow like, w;
    struct qhca_eth_cqe c;
    struct erq q;
    unsigned i;

    begin(u, &q, GRO);
    calm(u, &like, false);
    for (i = 0; i < 3; i++) {
        of_port(&w, &like, i);
        next_arrives(u, &w, 500);
    }
    assert_int_equal(u->e->eth->gro.held, 3);
    ops = u->e->ops;
    u->e->ops.dma_store64 = second_store_fails;
    stores = 0;
    gcq_arm(&q.cq, false);
    u->e->ops = ops;
    assert_int_equal(u->e->fatal, QHCA_FATAL_EQ);
    assert_true(erq_poll(&q, &c));
    assert_false(erq_poll(&q, &c));
    /* the rest is forgotten when the engine is called again */
    assert_int_equal(u->e->eth->gro.held, 2);
    node_reg_write(u->n, QHCA_REG_ASQ_DB, 0, 4);
    assert_int_equal(u->e->eth->gro.held, 0);
    qhca_reset(u->e);
    gbuf_free(&q.ring.buf);
    gbuf_free(&q.data.buf);
    gbuf_free(&q.cq.buf);
}

/* ---- saved state, observers ---- */

static void saved_and_loaded(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    struct erq q;
    unsigned i;

    begin(u, &q, GRO | HDS);
    calm(u, &w, true);
    for (i = 0; i < 5; i++) {
        next_arrives(u, &w, 1000);
        save_and_load(u);
        assert_true(qhca_gro_pending(u->e) && u->n->kicked);
    }
    take_all(&q);
    assert_true(got.cqes == 1 && got.segs == 5 && got.split == 1);
    erq_free(&q);
}

/* With a time: it continues where it was. */
static void saved_with_a_time(void **state)
{
    struct unit *u = *state;
    static struct flow w[3];
    struct erq q;
    unsigned i, k;

    begin(u, &q, GRO);
    u->e->cfg.gro_hold = 100;
    for (k = 0; k < 3; k++) {
        calm(u, &w[k], k & 1);
        w[k].tunnel = k == 2 ? 4 : 0;
        w[k].same_id = k == 2;
        world_run(&u->w, 10000);
        for (i = 0; i < 3; i++) {
            next_arrives(u, &w[k], 1000);
            save_and_load(u);
            u->e->cfg.gro_hold = 100;
            assert_int_equal(u->e->eth->gro.held, k + 1);
        }
    }
    for (k = 0; k < 3; k++) {
        world_run(&u->w, k ? 9999 : 79999);
        take(&q, false);
        assert_int_equal(got.cqes, 0);
        world_run(&u->w, 1);
        take(&q, false);
        assert_true(got.cqes == 1 && got.segs == 3);
    }
    all_seen();
    erq_free(&q);
}

/* A state that no frames could have produced. */
static void bad_states(void **state)
{
    struct unit *u = *state;
    static struct flow w, x;
    struct qhca_gro *g = &u->e->eth->gro;
    static struct qhca_gro_store good;
    struct qhca_gro_packet *p, *o;
    struct erq q;
    uint8_t *b;
    unsigned i;

    begin(u, &q, GRO);
    u->e->cfg.gro_hold = 1000;
    calm(u, &w, false);
    calm(u, &x, true);
    for (i = 0; i < 3; i++) {
        next_arrives(u, &w, 1000);
        next_arrives(u, &x, 1000);
    }
    assert_int_equal(g->held, 2);
    assert_string_equal(node_loads(u->n, &u->e->cfg), "");
    p = &g->store->packet[0];
    o = &g->store->packet[1];
    b = g->store->piece[0];
    good = *g->store;
#define BAD(change, why)                                                \
    do {                                                                \
        change;                                                         \
        assert_non_null(strstr(node_loads(u->n, &u->e->cfg), why));     \
        *g->store = good;                                               \
    } while (0)
    BAD(p->super.segs++, "cannot have been received");
    BAD(p->super.segs = 0, "cannot have been received");
    BAD(p->super.size = 0, "cannot have been received");
    BAD(p->super.size--, "cannot have been received");
    BAD(p->super.len--, "cannot have been received");
    BAD(p->super.len -= 1000, "cannot have been received");
    BAD(p->super.len = 20, "cannot have been received");
    BAD(p->super.len = 13, "cannot have been received");
    BAD(b[13] = 6, "cannot have been received");
    BAD(b[23] = 17, "cannot have been received");
    BAD(b[14] = 0x4f, "cannot have been received");
    BAD(b[100] ^= 1, "cannot have been received");
    BAD(b[40] ^= 1, "cannot have been received");
    BAD((p->super.size = 100, p->super.segs = 128,
         p->super.len = p->super.l.hdr_len + 12800),
        "cannot have been received");
    BAD((p->super.size = 100, p->super.segs = 129,
         p->super.len = p->super.l.hdr_len + 12900),
        "cannot have been received");
    BAD((p->super.size = 100, p->super.segs = 256,
         p->super.len = p->super.l.hdr_len + 25600),
        "cannot have been received");
    BAD(o->super.l.same_id = true, "cannot have been received");
    BAD(o->super.l.same_outer_id = true, "cannot have been received");
    BAD((p->super.segs = 1, p->super.len = p->super.l.hdr_len + 1000,
         p->super.l.same_id = true), "cannot have been received");
    BAD(p->since = 1ULL << 62, "out of order");
    BAD(p->since = o->since + 1, "out of order");
    BAD(o->since--, "out of order");
    /* the same packet twice */
    BAD((o->first = p->first, o->super = p->super), "than there is room");
    p->q->flags &= (uint8_t)~GRO;
    assert_non_null(strstr(node_loads(u->n, &u->e->cfg),
                           "cannot have been received"));
    p->q->flags |= GRO;
    assert_string_equal(node_loads(u->n, &u->e->cfg), "");
#undef BAD
    erq_query(&q);
    take_all(&q);
    assert_true(got.cqes == 2 && got.segs == 3);
    erq_free(&q);
}

static void looks(void **state)
{
    struct unit *u = *state;
    struct seen s = { 0 };
    static struct flow w;
    struct erq q;

    begin(u, &q, GRO);
    calm(u, &w, false);
    next_arrives(u, &w, 1000);
    next_arrives(u, &w, 1000);
    u->m->unchecked = true;
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_RQ, q.num, seen_start(&s)));
    SEEN(&s, "merging.packets", "1");
    SEEN(&s, "merging.frames", "2");
    SEEN(&s, "merging.bytes", "2066");
    take_all(&q);
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_RQ, q.num, seen_start(&s)));
    assert_null(seen_get(&s, "merging.frames"));
    free(s.text);
    u->m->unchecked = false;
    erq_free(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(any_frames),
        UNIT(any_frames_split),
        UNIT(any_frames_held),
        UNIT(any_frames_not_merged),
        UNIT(short_of_buffers),
        UNIT(short_of_buffers_split),
        UNIT(merges),
        UNIT(no_memory),
        UNIT(limits),
        UNIT(rules),
        UNIT(push),
        UNIT(unsuitable),
        UNIT(many_at_once),
        UNIT(more_than_fit),
        UNIT(memory_is_short),
        UNIT(held_for_a_time),
        UNIT(commands),
        UNIT(not_overtaken),
        UNIT_HOSTILE(queue_fails),
        UNIT(padding),
        UNIT(congestion),
        UNIT(identifications),
        UNIT(extension_headers),
        UNIT(routing_header),
        UNIT(tunnels),
        UNIT(table),
        UNIT(collisions),
        UNIT(steered_twice),
        UNIT(stopped),
        UNIT_HOSTILE(reset_drops),
        UNIT_HOSTILE(fatal_ends),
        UNIT(saved_and_loaded),
        UNIT(saved_with_a_time),
        UNIT(bad_states),
        UNIT(looks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
