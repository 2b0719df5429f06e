/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive coalescing.  Whatever is received is cut again by a model written
 * from the manual, and must be the frames that arrived, bit by bit.
 */
#include "ethfix.h"
#include "bigpkt.h"
#include "emit.h"
#include "reborn.h"

#define GRO QHCA_ETH_Q_F_GRO
#define HDS QHCA_ETH_Q_F_HDS
#define FRAME_MAX 9300u
#define PACKET_MAX 66000u
#define SENT_MAX 512u
#define ACK 0x10
#define PSH 0x08

/* Frames that arrived and were not seen yet, without their tags. */
static struct {
    uint8_t b[FRAME_MAX];
    size_t len;
    uint16_t vlan;
} sent[SENT_MAX];
static unsigned sent_from, sent_to;

/* What take_all() found. */
static struct {
    unsigned cqes, frames, merged, merged_frames, skipped, split;
    uint32_t size, segs, len;   /* of the last one */
} got;

/* ---- frames ---- */

static unsigned get16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

/* Lengths of the headers of an untagged TCP frame. */
static unsigned ip_hlen(const uint8_t *f)
{
    return get16(f + 12) == 0x0800 ? 20 : 40;
}

static unsigned all_hlen(const uint8_t *f)
{
    unsigned l4 = 14 + ip_hlen(f);

    return l4 + (f[l4 + 12] >> 4) * 4;
}

/* Set lengths and checksums of the untagged TCP frame of @len bytes. */
static void repair(uint8_t *f, size_t len)
{
    bool v4 = ip_hlen(f) == 20;
    uint8_t *ip = f + 14, *tcp = ip + ip_hlen(f);
    uint32_t l4_len = (uint32_t)(len - 14 - ip_hlen(f)), sum;

    if (v4) {
        big_put16(ip + 2, (uint32_t)len - 14);
        big_put16(ip + 10, 0);
        big_put16(ip + 10, ~big_sum(ip, 20, 0));
        sum = big_sum(ip + 12, 8, 6);
    } else {
        big_put16(ip + 4, l4_len);
        sum = big_sum(ip + 8, 32, 6);
    }
    big_put16(tcp + 16, 0);
    big_put16(tcp + 16, ~big_sum(tcp, l4_len, sum + l4_len));
}

/* Cut the packet @p: write frame @i of @segs, and return its length. */
static size_t cut_again(const uint8_t *p, size_t len, uint32_t size, unsigned i,
                        unsigned segs, uint8_t *f)
{
    unsigned hdr = all_hlen(p), l4 = 14 + ip_hlen(p);
    size_t from = (size_t)i * size, left = len - hdr - from;
    size_t part = left < size ? left : size;

    memcpy(f, p, hdr);
    memcpy(f + hdr, p + hdr + from, part);
    if (ip_hlen(p) == 20) {
        big_put16(f + 18, get16(p + 18) + i);
    }
    big_put32(f + l4 + 4, (((uint32_t)get16(p + l4 + 4) << 16) |
                           get16(p + l4 + 6)) + (uint32_t)from);
    if (i + 1 < segs) {
        f[l4 + 13] &= (uint8_t)~PSH;
    }
    repair(f, hdr + part);
    return hdr + part;
}

/* A flow: headers, and where it is. */
struct flow {
    struct big b;
    unsigned number;
    uint32_t from;
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
    /* reserved bits of TCP are 0 by construction */
}

/* The next frame, untagged, of @len bytes of payload; returns its length. */
static size_t flow_next(struct flow *w, uint8_t *f, uint32_t len)
{
    bool tagged = w->b.tagged;
    size_t n;

    if (w->from + len > BIG_PAYLOAD_MAX) {
        w->b.seq += w->from;
        w->b.id = (uint16_t)(w->b.id + w->number);
        w->from = 0;
        w->number = 0;
    }
    w->b.tagged = false;
    n = big_frame(&w->b, f, w->number++, w->from, len);
    w->b.tagged = tagged;
    w->from += len;
    return n;
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

/* Of a split frame only the IP packet is stored. */
static bool is_sent(unsigned i, const uint8_t *f, size_t len, uint16_t vlan,
                    bool split)
{
    const uint8_t *ip = sent[i].b + 14;
    size_t want = !split ? sent[i].len : ip_hlen(sent[i].b) == 20 ?
                  14 + get16(ip + 2) : 54 + get16(ip + 4);

    return want == len && sent[i].vlan == vlan && !memcmp(sent[i].b, f, len);
}

/* One frame, which is the next that arrived; or a later one if @lossy. */
static void frame_is_next(const uint8_t *f, size_t len, uint16_t vlan,
                          bool split, bool lossy)
{
    while (lossy && sent_from < sent_to &&
           !is_sent(sent_from, f, len, vlan, split)) {
        sent_from++;
        got.skipped++;
    }
    assert_true(sent_from < sent_to);
    assert_true(is_sent(sent_from, f, len, vlan, split));
    sent_from++;
    got.frames++;
}

static void take_one(struct erq *q, const struct qhca_eth_cqe *c, bool lossy)
{
    static uint8_t p[PACKET_MAX], f[FRAME_MAX];
    uint32_t head = c->header_len ? c->header_len : c->byte_len;
    unsigned i;
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
    got.size = c->gso_size;
    got.segs = c->gso_segs;
    got.len = c->byte_len;
    if (!c->gso_segs) {
        assert_int_equal(c->gso_size, 0);
        frame_is_next(p, c->byte_len, c->vlan, c->header_len, lossy);
        return;
    }
    assert_true((c->flags & QHCA_CQE_F_L3_OK) && (c->flags & QHCA_CQE_F_L4_OK));
    assert_true(c->gso_segs >= 2 && c->gso_segs <= 128);
    assert_int_equal(c->gso_segs, (c->byte_len - all_hlen(p) + c->gso_size -
                                   1) / c->gso_size);
    if (c->header_len) {
        assert_int_equal(c->header_len, all_hlen(p));
    }
    got.merged++;
    got.merged_frames += c->gso_segs;
    for (i = 0; i < c->gso_segs; i++) {
        len = cut_again(p, c->byte_len, c->gso_size, i, c->gso_segs, f);
        frame_is_next(f, len, c->vlan, true, lossy);
    }
    /* the headers are those of the whole packet */
    memcpy(f, p, all_hlen(p));
    repair(p, c->byte_len);
    assert_memory_equal(f, p, all_hlen(p));
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

/* The engine runs; everything that arrived is there. */
static void take_all(struct erq *q)
{
    node_drain(q->u->n);
    take(q, false);
    assert_int_equal(sent_from, sent_to);
    sent_from = sent_to = 0;
}

/* Fill the rings up with @n buffers of @len bytes in all. */
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

    erq_make(u, q, flags);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q->num), QHCA_ST_OK);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, QHCA_PORT_M_PROMISC,
                              &all, sizeof(all), NULL), QHCA_ST_OK);
    sent_from = sent_to = 0;
    post(q, ERQ_DEPTH, 8000);
}

/* ---- any frames ---- */

enum change {
    SAME, SHORT, PUSH, OTHER_LEN, HEADER, SPOILT, PADDED, LOST, TWICE, EMPTY,
    CHANGES
};

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

    switch (how) {
    case PUSH:
        f[14 + ip_hlen(f) + 13] |= PSH;
        repair(f, n);
        break;
    case HEADER:                /* any bit, but what says where headers are */
        do {
            at = 1 + rng_below(r, all_hlen(f) - 1);
        } while (at == 12 || at == 13 || at == 14 || at == 20 || at == 21 ||
                 at == 23 || at == 14 + ip_hlen(f) + 12u);
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
    if (how == TWICE) {
        arrive(u, w, f, n, 0);
    }
}

/* Several flows, in runs; @buffers of @len bytes are posted each time. */
static void traffic(struct unit *u, uint8_t flags, unsigned rounds,
                    unsigned buffers, uint32_t len, bool lossy)
{
    static struct flow w[4];
    struct rng *r = &u->g.rng;
    unsigned i, n, k, merged = 0, plain = 0, all = 0, seen = 0;
    uint64_t packets = 0, frames = 0;
    uint32_t size;
    struct erq q;

    begin(u, &q, flags);
    for (i = 0; i < 4; i++) {
        flow_make(&w[i], r, i & 1);
    }
    for (i = 0; i < rounds; i++) {
        post(&q, buffers, len);
        size = 1 + (uint32_t)(rng_pct(r, 30) ? rng_below(r, 7700) :
                                               rng_below(r, 1448));
        k = (unsigned)rng_below(r, 4);
        for (n = 1 + (unsigned)rng_below(r, 8); n; n--) {
            random_frame(u, &w[k], size);
            k = rng_pct(r, 10) ? (unsigned)rng_below(r, 4) : k;
        }
        if (lossy) {
            node_drain(u->n);
            all += sent_to;
            take(&q, true);
            seen += got.frames;
            sent_from = sent_to = 0;
        } else {
            take_all(&q);
        }
        merged += got.merged;
        plain += got.cqes - got.merged;
        packets += got.merged;
        frames += got.merged_frames;
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_GRO_PACKETS), packets);
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_GRO_FRAMES), frames);
    }
    assert_true(plain > rounds / 8);
    assert_true(flags & GRO ? merged > rounds / 8 : !merged);
    if (lossy) {
        assert_true(seen < all);
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), all - seen);
        assert_int_equal(erq_query(&q).dropped, all - seen);
    } else {
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 0);
    }
    erq_free(&q);
}

static void any_frames(void **state)
{
    traffic(*state, GRO, 3000, ERQ_DEPTH, 8000, false);
}

static void any_frames_split(void **state)
{
    traffic(*state, GRO | HDS, 3000, ERQ_DEPTH, 8000, false);
}

static void any_frames_not_merged(void **state)
{
    traffic(*state, 0, 500, ERQ_DEPTH, 8000, false);
}

/* A packet that finds no room comes as frames, as many as there is room for. */
static void short_of_buffers(void **state)
{
    traffic(*state, GRO, 3000, 5, 1900, true);
}

static void short_of_buffers_split(void **state)
{
    traffic(*state, GRO | HDS, 3000, 5, 1900, true);
}

/* ---- exactly what is merged ---- */

/* A fresh flow over IPv4 or IPv6. */
static void calm(struct unit *u, struct flow *w, bool v6)
{
    flow_make(w, &u->g.rng, v6);
    w->b.tagged = false;
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
            sent_from = sent_to = 0;
        }
    }
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
        { "ECN", 15, 1 }, { "identification", 19, 1 },
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
    unsigned k, i, n;
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
            at = c->at < 0 ? (size_t)(14 + ip_hlen(f) + c->at + 100) :
                             (size_t)c->at;
            f[at] ^= c->flip;
            repair(f, len);
            arrive(u, &w, f, len, 0);
            next_arrives(u, &w, 500);
            take_all(&q);
            if (got.cqes != 3) {
                fail_msg("%s: merged", c->what);
            }
            /* nor do all three with the change, if they are not to be */
            calm(u, &w, k & 1);
            post(&q, ERQ_DEPTH, 8000);
            if (at == 14u + ip_hlen(f) + 13) {
                w.b.flags ^= c->flip & 0x3f;
                w.b.flags |= c->flip & 0x40;
                next_arrives(u, &w, 500);
                next_arrives(u, &w, 500);
                take_all(&q);
                if (got.cqes != 2 && c->flip != 0x80 && c->flip != 1) {
                    fail_msg("%s in all: merged", c->what);
                }
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

/* Frames that would not come out again as they were, or not be accepted. */
static void unsuitable(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    uint8_t f[FRAME_MAX];
    unsigned k, i, odd;
    struct erq q;
    size_t len;

    begin(u, &q, GRO);
    for (k = 0; k < 7; k++) {
        calm(u, &w, k == 5);
        post(&q, ERQ_DEPTH, 8000);
        w.b.opts = k == 4 ? 4 : 0;
        w.b.exts = k == 5 ? 1 : 0;
        w.b.ext[0] = 8;
        w.b.tcp = k != 6;
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

/* What else arrives or happens completes a packet, and never overtakes it. */
static void order(void **state)
{
    struct unit *u = *state;
    static struct flow w, x;
    struct qhca_eth_cqe c;
    struct erq q[2];
    struct erss r;
    unsigned i, k = 0, turns = 0;

    begin(u, &q[0], GRO);
    erq_make(u, &q[1], GRO);
    /* the tables of both queues: flows of either come to it in their order */
    erss_make(u, &r, q, 2, 3, QHCA_HASH_SRC_PORT_TCP);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, r.qpn), QHCA_ST_OK);
    calm(u, &w, false);
    do {
        calm(u, &x, false);
        sent_from = sent_to = 0;
        post(&q[0], ERQ_DEPTH, 8000);
        post(&q[1], ERQ_DEPTH, 8000);
        for (i = 0; i < 3; i++) {
            next_arrives(u, &w, 600);
            assert_false(erq_poll(&q[0], &c) || erq_poll(&q[1], &c));
        }
        next_arrives(u, &x, 600);
        for (i = 0; i < 2; i++) {
            if (erq_poll(&q[i], &c)) {
                take_one(&q[i], &c, false);
                k = i;
            }
        }
        assert_int_equal(got.segs, 3);
        node_drain(u->n);
        /* the other flow's is in the same queue, or in the other */
        i = erq_poll(&q[k], &c) ? k : !k;
        assert_true(i == k || erq_poll(&q[i], &c));
        take_one(&q[i], &c, false);
        turns |= i == k ? 1 : 2;
    } while (turns != 3);
    /* a command: what is held is there when it is done */
    for (i = 0; i < 3; i++) {
        next_arrives(u, &w, 600);
    }
    erq_query(&q[0]);
    take(&q[k], false);
    assert_true(got.cqes == 1 && got.segs == 3);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, QHCA_ETH_QP_NONE),
                     QHCA_ST_OK);
    erss_free(&r);
    erq_free(&q[0]);
    erq_free(&q[1]);
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
    take_all(&q);
    assert_true(got.cqes == 1 && got.segs == 2);
    next_arrives(u, &w, 600);
    next_arrives(u, &w, 600);
    sent_from = sent_to = 0;
    assert_false(u->e->eth->gro.q);
    assert_int_equal(erq_query(&q).dropped, 2);
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

/* A state that no frames could have led to. */
static void bad_states(void **state)
{
    struct unit *u = *state;
    static struct flow w;
    struct qhca_gro *g = &u->e->eth->gro, good;
    struct erq q;
    unsigned i;

    begin(u, &q, GRO);
    calm(u, &w, false);
    for (i = 0; i < 3; i++) {
        next_arrives(u, &w, 1000);
    }
    assert_string_equal(node_loads(u->n, &u->e->cfg), "");
    good = *g;
#define BAD(change, why)                                                \
    do {                                                                \
        change;                                                         \
        assert_non_null(strstr(node_loads(u->n, &u->e->cfg), why));     \
        *g = good;                                                      \
    } while (0)
    BAD(g->super.segs++, "cannot have been received");
    BAD(g->super.segs = 0, "cannot have been received");
    BAD(g->super.size = 0, "cannot have been received");
    BAD(g->super.size--, "cannot have been received");
    BAD(g->super.len--, "cannot have been received");
    BAD(g->super.len -= 1000, "cannot have been received");
    BAD(g->super.len = 20, "cannot have been received");
    BAD(g->super.len = 13, "cannot have been received");
    BAD(g->frame[13] = 6, "cannot have been received");
    BAD(g->frame[23] = 17, "cannot have been received");
    BAD(g->frame[14] = 0x4f, "cannot have been received");
    BAD((g->super.size = 100, g->super.segs = 128,
         g->super.len = g->super.l.hdr_len + 12800),
        "cannot have been received");
    g->q->flags &= (uint8_t)~GRO;
    assert_non_null(strstr(node_loads(u->n, &u->e->cfg),
                           "cannot have been received"));
    g->q->flags |= GRO;
    assert_string_equal(node_loads(u->n, &u->e->cfg), "");
#undef BAD
    take_all(&q);
    assert_int_equal(got.segs, 3);
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
        UNIT(any_frames_not_merged),
        UNIT(short_of_buffers),
        UNIT(short_of_buffers_split),
        UNIT(merges),
        UNIT(limits),
        UNIT(rules),
        UNIT(push),
        UNIT(unsuitable),
        UNIT(order),
        UNIT(steered_twice),
        UNIT(stopped),
        UNIT_HOSTILE(reset_drops),
        UNIT(saved_and_loaded),
        UNIT(bad_states),
        UNIT(looks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
