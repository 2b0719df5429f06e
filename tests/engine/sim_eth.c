/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet function under random frames, from every adapter to another one
 * or to all; some are cut out of large sends.  A frame arrives unchanged, in
 * order and complete, and each frame is either received or counted as dropped.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define HEAD 26                 /* MACs, type, number of the frame, length */
#define BODY_MAX 9000
#define SLOT 9216
#define TX_SLOT 32768
#define ETHERTYPE 0x88b5        /* for local experiments */
#define TCP_HEAD 54             /* headers of a large send: IPv4, TCP */
#define LARGE_MAX 30000         /* its payload */

struct note {                   /* a frame that was sent */
    unsigned src;
    uint16_t vlan;
    uint32_t len;               /* without a tag; of the payload, if large */
    uint16_t mss;               /* a large send: else 0 */
    bool all;
    unsigned dst;
};

struct eth;

struct eth_all {
    struct eth *member[WORLD_NODES];
    unsigned members, alive;
    struct note *note;
    uint64_t notes, cap;
    uint64_t expected, got;     /* deliveries */
};

struct rxbuf {
    uint64_t addr;
    uint32_t len;
};

struct eth {
    struct ep *ep;
    struct eth_all *all;
    unsigned index;
    struct gbuf sq, rq;
    uint32_t sqn, rqn;
    uint8_t sq_shift, sq_stride, rq_shift;
    uint32_t sq_prod, sq_cons, rq_prod, rq_cons;
    uint64_t dbrec, tx, rx;     /* DMA addresses */
    struct rxbuf *buf;
    bool *signalled;
    uint32_t rx_len;            /* of every receive buffer */
    bool super;                 /* receives super-frames whole */
    uint32_t to_send, unsignalled;
    uint64_t last[WORLD_NODES]; /* place() of the latest frame from each */
};

static unsigned max_seg(const struct eth *x)
{
    unsigned n = ((1u << x->sq_stride) - 16) / 16;

    return n > QHCA_ETH_MAX_SGE ? QHCA_ETH_MAX_SGE : n;
}

static void post_rx(struct eth *x)
{
    struct gmem *m = x->ep->g->m;
    uint32_t mask = (1u << x->rq_shift) - 1;

    while (!((x->rq_prod - x->rq_cons) >> x->rq_shift)) {
        uint32_t i = x->rq_prod & mask;
        struct qhca_eth_seg s = { .addr = x->rx + (uint64_t)i * SLOT + 1,
                                  .len = x->rx_len };

        gbuf_write(&x->rq, (uint64_t)i << 4, &s, sizeof(s));
        gmem_allow(m, s.addr, s.len, GMEM_W);
        x->buf[i] = (struct rxbuf){ s.addr, s.len };
        x->rq_prod++;
    }
    guest_dbrec_set(x->ep->g, x->dbrec, x->rq_prod);
}

/* A frame's place in the order of all: number, and offset in the payload. */
static uint64_t place(uint64_t id, uint32_t from)
{
    return (id << 32 | from) + 1;
}

static void put_be(uint8_t *p, uint32_t v, unsigned bytes)
{
    while (bytes--) {
        *p++ = (uint8_t)(v >> 8 * bytes);
    }
}

static uint32_t get_be(const uint8_t *p, unsigned bytes)
{
    uint32_t v = 0;

    while (bytes--) {
        v = v << 8 | *p++;
    }
    return v;
}

/* A frame of its own; returns its length. */
static uint32_t fill_plain(uint8_t *f, uint64_t id, const struct note *note)
{
    put_be(f + 12, ETHERTYPE, 2);
    memcpy(f + 14, &id, 8);
    memcpy(f + 22, &note->len, 4);
    pattern_bytes(id, 0, f + HEAD, note->len - HEAD);
    return note->len;
}

/*
 * A TCP segment whose sequence number, unlike any real one, says which it is;
 * lengths and checksums are left to the device.
 */
static uint32_t fill_large(uint8_t *f, uint64_t id, const struct note *note)
{
    memset(f + 12, 0, TCP_HEAD - 12);
    put_be(f + 12, 0x0800, 2);
    put_be(f + 14, 0x4500, 2);
    put_be(f + 18, (uint32_t)id, 2);
    f[22] = 64;
    f[23] = 6;
    put_be(f + 26, 0x0a000000u + note->src, 4);
    put_be(f + 30, 0x0a000000u + note->dst, 4);
    put_be(f + 34, 5001, 2);
    put_be(f + 36, 5002, 2);
    put_be(f + 38, (uint32_t)id << 16, 4);
    put_be(f + 46, 0x50f9, 2);
    pattern_bytes(id, 0, f + TCP_HEAD, note->len);
    return TCP_HEAD + note->len;
}

static struct note *new_note(struct eth *x)
{
    struct eth_all *all = x->all;
    struct rng *r = &x->ep->g->rng;
    uint32_t body = (uint32_t)rng_log(r, BODY_MAX - HEAD);
    struct note *note;

    if (all->notes == all->cap) {
        all->cap = all->cap ? 2 * all->cap : 256;
        all->note = realloc(all->note, all->cap * sizeof(*all->note));
        CHECK(all->note, "no memory");
    }
    if (body < 34) {
        body = 34;              /* no frame is shorter than 60 bytes */
    }
    note = &all->note[all->notes++];
    note->src = x->index;
    note->len = HEAD + body;
    note->all = rng_pct(r, 15);
    note->vlan = rng_pct(r, 30) ? (uint16_t)rng_below(r, 0xffff) :
                 QHCA_VLAN_NONE;
    note->dst = (unsigned)rng_below(r, all->members - 1);
    note->dst += note->dst >= x->index;
    note->mss = 0;
    if (rng_pct(r, 20)) {
        note->len = 1 + (uint32_t)rng_log(r, LARGE_MAX - 1);
        note->mss = (uint16_t)(note->len / 50 + rng_range(r, 40, 2000));
    }
    all->expected += (note->all ? all->members - 1 : 1) *
                     (note->mss ? (note->len + note->mss - 1) / note->mss : 1);
    return note;
}

static bool post_tx(struct eth *x)
{
    struct eth_all *all = x->all;
    struct rng *r = &x->ep->g->rng;
    struct gmem *m = x->ep->g->m;
    uint32_t slot = x->sq_prod & ((1u << x->sq_shift) - 1);
    uint64_t at = x->tx + (uint64_t)slot * TX_SLOT, id = all->notes;
    uint32_t len, rest, part;
    struct {
        struct qhca_eth_wqe h;
        struct qhca_eth_seg seg[QHCA_ETH_MAX_SGE];
    } w;
    unsigned n = 1 + (unsigned)rng_below(r, max_seg(x)), i;
    struct note *note;
    uint8_t *f;

    if ((x->sq_prod - x->sq_cons) >> x->sq_shift) {
        return false;
    }
    note = new_note(x);
    f = gmem_ptr(m, at, TX_SLOT);
    memset(f, 0xff, 6);
    if (!note->all) {
        memcpy(f, all->member[note->dst]->ep->g->n->mac, 6);
    }
    memcpy(f + 6, x->ep->g->n->mac, 6);
    memset(&w, 0, sizeof(w));
    w.h.opcode = QHCA_WQE_ETH_SEND;
    if (note->mss) {
        len = fill_large(f, id, note);
        w.h.flags |= QHCA_WQE_F_ETH_LSO;
        w.h.mss = note->mss;
        w.h.hdr_len = TCP_HEAD;
    } else {
        len = fill_plain(f, id, note);
    }
    gmem_allow(m, at, len, GMEM_R);
    if (note->vlan != QHCA_VLAN_NONE) {
        w.h.flags |= QHCA_WQE_F_ETH_VLAN;
        w.h.vlan = note->vlan;
    }
    if (rng_pct(r, 30) || x->unsignalled + 1 >= 1u << x->sq_shift ||
        x->to_send == 1) {
        w.h.flags |= QHCA_WQE_F_SIGNALED;
        x->unsignalled = 0;
    } else {
        x->unsignalled++;
    }
    x->signalled[slot] = w.h.flags & QHCA_WQE_F_SIGNALED;
    rest = len;
    for (i = 0; i < n; i++) {
        part = i == n - 1 ? rest : (uint32_t)rng_log(r, rest);
        w.seg[i].addr = at + (len - rest);
        w.seg[i].len = part;
        rest -= part;
    }
    w.h.num_sge = (uint16_t)n;
    gbuf_write(&x->sq, (uint64_t)slot << x->sq_stride, &w,
               sizeof(w.h) + n * sizeof(w.seg[0]));
    x->sq_prod++;
    x->to_send--;
    x->ep->s->messages++;
    x->ep->s->bytes += len;
    return true;
}

static void sent(struct eth *x, const struct qhca_cqe *c)
{
    uint32_t slot;

    CHECK(c->status == QHCA_WC_SUCCESS && c->opcode == QHCA_CQE_OP_ETH_SEND &&
          c->qpn == x->sqn, "Ethernet send: %s, opcode %#x",
          sim_wc_name(c->status), c->opcode);
    CHECK(c->wqe_index - x->sq_cons < x->sq_prod - x->sq_cons,
          "Ethernet send %u completes; %u to %u are out", c->wqe_index,
          x->sq_cons, x->sq_prod);
    do {
        slot = x->sq_cons & ((1u << x->sq_shift) - 1);
        CHECK(x->signalled[slot] == (x->sq_cons == c->wqe_index),
              "Ethernet send %u: completion of %u", x->sq_cons,
              c->wqe_index);
        gmem_deny(x->ep->g->m, x->tx + (uint64_t)slot * TX_SLOT, TX_SLOT,
                  GMEM_R);
    } while (x->sq_cons++ != c->wqe_index);
}

/*
 * Check a frame of a large send, or a super-frame, which has all of its
 * payload; returns its place.
 */
static uint64_t got_large(struct eth *x, const struct qhca_eth_cqe *c,
                          const uint8_t *f, uint32_t len,
                          const struct note **note)
{
    uint32_t seq = get_be(f + 38, 4), from = seq & 0xffff, want, least;
    uint64_t id = seq >> 16;
    const struct note *n = &x->all->note[id];
    uint8_t data[LARGE_MAX];

    CHECK(id < x->all->notes && n->mss && from < n->len && !(from % n->mss),
          "a frame of no large send: %#x", seq);
    want = n->len - from < n->mss ? n->len - from : n->mss;
    if (c->gso_segs) {
        want = n->len;
        CHECK(x->super && !from && c->gso_size == n->mss &&
              c->gso_segs == (n->len + n->mss - 1) / n->mss,
              "super-frame of %u of %u bytes, from %u on", c->gso_segs,
              c->gso_size, from);
    } else {
        CHECK(!x->super || n->len <= n->mss, "a super-frame was cut");
    }
    /* the wire pads what is short, with its tag; not what is cut behind it */
    least = !x->ep->s->w.wire.pad ||
            (n->len > n->mss && x->ep->s->w.frame_max == WORLD_SUPER_MAX) ? 0 :
            n->vlan == QHCA_VLAN_NONE ? 60 : 56;
    CHECK(len == (want + TCP_HEAD < least ? least : want + TCP_HEAD),
          "frame of %u bytes, sent %u", len, want + TCP_HEAD);
    CHECK(get_be(f + 16, 2) == want + 40 &&
          get_be(f + 18, 2) == (uint16_t)(id + from / n->mss),
          "length or identification");
    CHECK(f[47] == (0x70 | (from ? 0 : 0x80) |
                    (from + want == n->len ? 9 : 0)), "flags %#x", f[47]);
    CHECK((c->flags & QHCA_CQE_F_L3_OK) && (c->flags & QHCA_CQE_F_L4_OK),
          "checksums of a large send");
    pattern_bytes(id, 0, data, n->len);
    CHECK(!memcmp(f + TCP_HEAD, data + from, want), "frame %" PRIu64 ", %u "
          "is spoilt", id, from);
    *note = n;
    return place(id, from);
}

static uint64_t got_plain(struct eth *x, const uint8_t *f, uint32_t len,
                          const struct note **note)
{
    const struct note *n;
    uint8_t want[BODY_MAX];
    uint32_t flen;
    uint64_t id;

    CHECK(len >= HEAD + 34 && get_be(f + 12, 2) == ETHERTYPE,
          "what is this frame");
    memcpy(&id, f + 14, 8);
    memcpy(&flen, f + 22, 4);
    CHECK(id < x->all->notes, "frame %" PRIu64 " was never sent", id);
    n = &x->all->note[id];
    CHECK(len == n->len && flen == len, "frame of %u bytes, sent %u", len,
          n->len);
    pattern_bytes(id, 0, want, len - HEAD);
    CHECK(!memcmp(f + HEAD, want, len - HEAD), "frame %" PRIu64 " is spoilt",
          id);
    *note = n;
    return place(id, 0);
}

static void received(struct eth *x, const struct qhca_eth_cqe *c)
{
    struct gmem *m = x->ep->g->m;
    uint8_t f[LARGE_MAX + 64];
    uint32_t len = c->byte_len, done = 0, i;
    const struct note *note;
    uint64_t at;

    CHECK(c->status == QHCA_WC_SUCCESS && c->opcode == QHCA_CQE_OP_ETH_RECV &&
          c->num == x->rqn, "Ethernet receive: %s, opcode %#x",
          sim_wc_name(c->status), c->opcode);
    CHECK(c->wqe_index == x->rq_cons, "Ethernet receive in buffer %u, next "
          "is %u", c->wqe_index, x->rq_cons);
    CHECK(len <= (c->gso_segs ? TCP_HEAD + LARGE_MAX : BODY_MAX),
          "a frame of %u bytes", len);
    CHECK(c->num_wqe == (len + x->rx_len - 1) / x->rx_len &&
          c->num_wqe <= x->rq_prod - x->rq_cons,
          "%u bytes in %u buffers of %u", len, c->num_wqe, x->rx_len);
    for (i = 0; i < c->num_wqe; i++) {
        struct rxbuf *b = &x->buf[x->rq_cons++ & ((1u << x->rq_shift) - 1)];
        uint32_t n = b->len < len - done ? b->len : len - done;

        memcpy(f + done, gmem_ptr(m, b->addr, n), n);
        gmem_deny(m, b->addr, b->len, GMEM_W);
        done += n;
    }
    CHECK(len >= TCP_HEAD, "a frame of %u bytes", len);
    at = get_be(f + 12, 2) == 0x0800 ? got_large(x, c, f, len, &note) :
                                       got_plain(x, f, len, &note);
    CHECK((note->all || note->dst == x->index) && note->src != x->index,
          "a frame for somebody else");
    CHECK(c->vlan == note->vlan && !(c->flags & QHCA_CQE_F_VLAN) ==
          (note->vlan == QHCA_VLAN_NONE), "tag %#x, sent %#x", c->vlan,
          note->vlan);
    CHECK(x->last[note->src] < at, "frames out of order");
    x->last[note->src] = at;
    x->all->got += c->gso_segs ? c->gso_segs : 1;
}

static void eth_cqe(struct ep *ep, const struct qhca_cqe *c)
{
    struct qhca_eth_cqe eth;

    if (c->opcode & 0x80) {
        memcpy(&eth, c, sizeof(eth));
        received(ep->app, &eth);
    } else {
        sent(ep->app, c);
    }
}

static void eth_pump(struct ep *ep)
{
    struct eth *x = ep->app;
    struct rng *r = &ep->g->rng;
    unsigned n = 1 + (unsigned)rng_log(r, 1u << x->sq_shift);
    uint32_t before = x->sq_prod;

    if (!rng_pct(r, 20)) {
        post_rx(x);
    }
    while (n-- && x->to_send && post_tx(x)) {
    }
    if (x->sq_prod != before) {
        guest_doorbell(ep->g, 0, QHCA_DB_ETH_SQ, x->sqn |
                       (uint64_t)x->sq_prod << QHCA_DB_INDEX_SHIFT);
    }
    if (x->to_send) {
        sim_tick(ep, 1 + rng_log(r, 40000));
    }
}

static bool eth_idle(struct ep *ep)
{
    struct eth *x = ep->app;

    return !x->to_send && x->sq_prod == x->sq_cons;
}

static void eth_dump(struct ep *ep)
{
    struct eth *x = ep->app;

    fprintf(stderr, "Ethernet %s: %u to send, SQ %u..%u, RQ %u..%u\n",
            ep->g->m->name, x->to_send, x->sq_cons, x->sq_prod, x->rq_cons,
            x->rq_prod);
}

static void eth_finish(struct ep *ep)
{
    struct eth *x = ep->app;
    struct eth_all *all = x->all;
    uint64_t dropped = 0, st[QHCA_STAT_COUNT];
    unsigned i;

    if (all->alive == all->members) {
        world_run(&ep->s->w, 2000000);
        for (i = 0; i < all->members; i++) {
            sim_drain(all->member[i]->ep->scq);
            sim_drain(all->member[i]->ep->rcq);
            guest_stats(all->member[i]->ep->g, st);
            dropped += st[QHCA_STAT_ETH_RX_DROPPED];
            CHECK(!st[QHCA_STAT_ETH_RX_ERRORS] &&
                  !st[QHCA_STAT_ETH_TX_ERRORS], "Ethernet errors");
        }
        CHECK(all->got + dropped == all->expected, "%" PRIu64 " frames to "
              "arrive, %" PRIu64 " did, %" PRIu64 " counted as dropped",
              all->expected, all->got, dropped);
    }
    CHECK(guest_simple(ep->g, QHCA_CMD_DESTROY_ETH_SQ, x->sqn) ==
          QHCA_ST_OK &&
          guest_simple(ep->g, QHCA_CMD_DESTROY_ETH_RQ, x->rqn) ==
          QHCA_ST_OK, "DESTROY_ETH");
    gbuf_free(&x->sq);
    gbuf_free(&x->rq);
    gmem_release(ep->g->m, x->tx, (uint64_t)TX_SLOT << x->sq_shift);
    gmem_release(ep->g->m, x->rx, (uint64_t)SLOT << x->rq_shift);
    guest_dbrec_free(ep->g, x->dbrec);
    ep->app = NULL;
    if (!--all->alive) {
        for (i = 0; i < all->members; i++) {
            free(all->member[i]->buf);
            free(all->member[i]->signalled);
            free(all->member[i]);
        }
        free(all->note);
        free(all);
    }
}

static void make_queue(struct eth *x, struct gbuf *b, uint8_t shift,
                       uint8_t stride)
{
    struct guest *g = x->ep->g;
    struct gbuf_shape shape;

    gbuf_shape_random(&shape, &g->rng, 1ULL << (shift + stride));
    gbuf_make(b, g->m, 1ULL << (shift + stride), &shape, true, 0, &g->rng);
    gbuf_allow(b, 0, b->len, GMEM_R);
}

static void make(struct sim *s, struct eth_all *all, struct guest *g,
                 unsigned frames)
{
    struct rng *r = &g->rng;
    struct ep *ep = sim_ep(s, g);
    struct eth *x = calloc(1, sizeof(*x));
    struct qhca_port port;
    struct gcmd cmd = { .op = QHCA_CMD_MODIFY_PORT, .in = &port,
                        .in_len = sizeof(port),
                        .mask = QHCA_PORT_M_ETH_RQN };
    struct qhca_eth_qc c;

    CHECK(x, "no memory");
    ep->app = x;
    ep->on_cqe = eth_cqe;
    ep->pump = eth_pump;
    ep->idle = eth_idle;
    ep->dump = eth_dump;
    ep->finish = eth_finish;
    x->ep = ep;
    x->all = all;
    x->index = all->members++;
    all->member[x->index] = x;
    all->alive++;
    x->to_send = (uint32_t)rng_below(r, frames) + 1;
    x->sq_shift = (uint8_t)rng_range(r, 0, 6);
    x->sq_stride = (uint8_t)rng_range(r, 6, 9);
    /* a frame takes at most 64 buffers */
    x->rx_len = (uint32_t)rng_range(r, BODY_MAX / 64 + 1, 9000);
    x->rq_shift = (uint8_t)rng_range(r, 7, 8);
    x->super = s->w.frame_max == WORLD_SUPER_MAX && x->rx_len >= 512 &&
               rng_pct(r, 50);
    make_queue(x, &x->sq, x->sq_shift, x->sq_stride);
    make_queue(x, &x->rq, x->rq_shift, 4);
    x->tx = gmem_alloc(g->m, (uint64_t)TX_SLOT << x->sq_shift, 12, 0);
    x->rx = gmem_alloc(g->m, (uint64_t)SLOT << x->rq_shift, 12, 0);
    x->dbrec = guest_dbrec(g, false);
    x->buf = calloc(1u << x->rq_shift, sizeof(*x->buf));
    x->signalled = calloc(1u << x->sq_shift, sizeof(*x->signalled));
    CHECK(x->buf && x->signalled, "no memory");
    ep->scq = sim_cq(s, g, (enum cq_mode)rng_below(r, 3),
                     1u << x->sq_shift);
    ep->rcq = sim_cq(s, g, (enum cq_mode)rng_below(r, 3),
                     1u << x->rq_shift);
    ep->scq->room = ep->rcq->room = 0;
    ep->scq->owner = ep->rcq->owner = ep;
    memset(&c, 0, sizeof(c));
    c.buf = x->sq.d;
    c.cqn = ep->scq->cq.cqn;
    c.shift = x->sq_shift;
    c.stride = x->sq_stride;
    x->sqn = guest_create(g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    memset(&c, 0, sizeof(c));
    c.buf = x->rq.d;
    c.dbrec = x->dbrec;
    c.cqn = ep->rcq->cq.cqn;
    c.shift = x->rq_shift;
    c.stride = 4;
    c.flags = x->super ? QHCA_ETH_Q_F_SUPER : 0;
    x->rqn = guest_create(g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
    memset(&port, 0, sizeof(port));
    port.eth_rqn = x->rqn;
    guest_must(g, &cmd);
    post_rx(x);
}

void eth_group(struct sim *s, unsigned frames)
{
    struct eth_all *all = calloc(1, sizeof(*all));
    unsigned i;

    CHECK(all, "no memory");
    for (i = 0; i < s->w.nodes; i++) {
        make(s, all, &s->g[i], frames);
    }
}
