/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The Ethernet function under random frames, from every adapter to another one
 * or to all; some are cut out of large sends.  They are received by several
 * queues, which may split headers from payload, take super-frames whole and
 * merge frames.  A frame arrives unchanged, complete and in the order of its
 * flow, and each frame is either received or counted as dropped.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "observe/fault.h"
#include "sim.h"

#define HEAD 26                 /* MACs, type, number of the frame, length */
#define BODY_MAX 9000
#define SLOT 9216
#define TX_SLOT 32768
#define ETHERTYPE 0x88b5        /* for local experiments */
#define TCP_HEAD 54             /* headers of a large send: IPv4, TCP */
#define LARGE_MAX 30000         /* its payload */
#define QUEUES_MAX 4            /* that receive */
#define ENTRIES 8               /* of the indirection table */
#define PORTS 7                 /* of TCP, of flows between two addresses */
#define FLOWS (WORLD_NODES * PORTS)     /* of TCP, from an adapter */

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

/* A ring of receive buffers of rx_len bytes each. */
struct rxring {
    struct gbuf ring;
    uint64_t dbrec, mem;        /* DMA addresses */
    uint32_t prod, cons;
};

struct rxq {
    struct rxring ring, data;   /* data: with QHCA_ETH_Q_F_HDS */
    uint32_t num;
    uint8_t flags;              /* QHCA_ETH_Q_F_* */
    uint32_t hds_thresh;
};

struct eth {
    struct ep *ep;
    struct eth_all *all;
    unsigned index;
    struct gbuf sq;
    uint32_t sqn;
    uint8_t sq_shift, sq_stride, rq_shift;
    uint32_t sq_prod, sq_cons;
    uint64_t tx;                /* DMA address */
    struct rxq q[QUEUES_MAX];
    unsigned queues;
    uint32_t rqtn, qpn;         /* with several queues */
    bool *signalled;
    uint32_t rx_len;            /* of every receive buffer */
    uint32_t to_send, unsignalled;
    uint32_t shaper[2];         /* the SQ's and its parent; 0: none */
    /* place() of the latest frame from each, of each flow; 0: of no flow */
    uint64_t last[WORLD_NODES][1 + FLOWS];
};

static unsigned max_seg(const struct eth *x)
{
    unsigned n = ((1u << x->sq_stride) - 16) / 16;

    return n > QHCA_ETH_MAX_SGE ? QHCA_ETH_MAX_SGE : n;
}

/* The buffer of counter @index. */
static uint64_t rx_addr(const struct eth *x, const struct rxring *r,
                        uint32_t index)
{
    return r->mem + (uint64_t)(index & ((1u << x->rq_shift) - 1)) * SLOT + 1;
}

static void post_ring(struct eth *x, struct rxring *r)
{
    while (!((r->prod - r->cons) >> x->rq_shift)) {
        uint64_t slot = r->prod & ((1u << x->rq_shift) - 1);
        struct qhca_eth_seg s = { .addr = rx_addr(x, r, r->prod),
                                  .len = x->rx_len };

        gbuf_write(&r->ring, slot << 4, &s, sizeof(s));
        gmem_allow(x->ep->g->m, s.addr, s.len, GMEM_W);
        r->prod++;
    }
    guest_dbrec_set(x->ep->g, r->dbrec, r->prod);
}

static void post_rx(struct eth *x)
{
    unsigned i;

    for (i = 0; i < x->queues; i++) {
        post_ring(x, &x->q[i].ring);
        if (x->q[i].flags & QHCA_ETH_Q_F_HDS) {
            post_ring(x, &x->q[i].data);
        }
    }
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

/* Frames without URG and the like can be merged. */
static uint8_t tcp_flags(uint64_t id)
{
    static const uint8_t flags[4] = { 0xf9, 0x18, 0xd8, 0x10 };

    return flags[id % 4];
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
    put_be(f + 34, 5001 + (uint32_t)id % PORTS, 2);
    put_be(f + 36, 5002, 2);
    put_be(f + 38, (uint32_t)id << 16, 4);
    put_be(f + 46, 0x5000 | tcp_flags(id), 2);
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
 * The payload of a frame of a large send, from @from on: of several frames if
 * it is a super-frame, which has all of it, or was merged.
 */
static uint32_t payload(const struct eth *x, const struct rxq *q,
                        const struct qhca_eth_cqe *c, const struct note *n,
                        uint32_t from)
{
    uint32_t left = n->len - from, len = c->byte_len - TCP_HEAD;

    if (!c->gso_segs) {
        CHECK(x->ep->s->lossy || !(q->flags & QHCA_ETH_Q_F_SUPER) ||
              n->len <= n->mss, "a super-frame was cut");
        return left < n->mss ? left : n->mss;
    }
    CHECK(q->flags & (QHCA_ETH_Q_F_SUPER | QHCA_ETH_Q_F_GRO) &&
          len <= left && (len == left || !(len % n->mss)) &&
          c->gso_segs > 1 && c->gso_size == n->mss &&
          c->gso_segs == (len + n->mss - 1) / n->mss &&
          (q->flags & QHCA_ETH_Q_F_GRO || len == n->len),
          "packet of %u frames of %u bytes, from %u on", c->gso_segs,
          c->gso_size, from);
    return len;
}

/* Check a frame of a large send, or several; returns its place. */
static uint64_t got_large(struct eth *x, const struct rxq *q,
                          const struct qhca_eth_cqe *c, const uint8_t *f,
                          const struct note **note)
{
    uint32_t seq = get_be(f + 38, 4), from = seq & 0xffff, want, least;
    uint64_t id = seq >> 16;
    const struct note *n = &x->all->note[id];
    uint8_t data[LARGE_MAX], flags = tcp_flags(id);

    CHECK(id < x->all->notes && n->mss && from < n->len && !(from % n->mss),
          "a frame of no large send: %#x", seq);
    want = payload(x, q, c, n, from);
    /*
     * The wire pads what is short, with its tag; not what is cut behind it.
     * Padding is not stored with the payload.
     */
    least = !x->ep->s->w.wire.pad || c->header_len || c->gso_segs ||
            (n->len > n->mss && x->ep->s->w.frame_max == WORLD_SUPER_MAX) ? 0 :
            n->vlan == QHCA_VLAN_NONE ? 60 : 56;
    CHECK(c->byte_len == (want + TCP_HEAD < least ? least : want + TCP_HEAD),
          "frame of %u bytes, sent %u", c->byte_len, want + TCP_HEAD);
    CHECK(get_be(f + 16, 2) == want + 40 &&
          get_be(f + 18, 2) == (uint16_t)(id + from / n->mss),
          "length or identification");
    CHECK(f[47] == ((flags & 0x70) | (from ? 0 : flags & 0x80) |
                    (from + want == n->len ? flags & 9 : 0)),
          "flags %#x", f[47]);
    CHECK((c->flags & QHCA_CQE_F_L3_OK) && (c->flags & QHCA_CQE_F_L4_OK),
          "checksums of a large send");
    CHECK(!(q->flags & QHCA_ETH_Q_F_HDS) == !c->header_len ||
          c->byte_len <= q->hds_thresh || c->byte_len == least,
          "%u bytes, %u of them headers", c->byte_len, c->header_len);
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

/* Take @n buffers back, which have @len bytes of a frame. */
static void take_buffers(struct eth *x, struct rxring *r, uint32_t index,
                         unsigned n, uint8_t *to, uint32_t len)
{
    struct gmem *m = x->ep->g->m;
    uint64_t at;
    uint32_t part;

    CHECK(index == r->cons, "Ethernet receive in buffer %u, next is %u", index,
          r->cons);
    CHECK(n == (len + x->rx_len - 1) / x->rx_len && n <= r->prod - r->cons,
          "%u bytes in %u buffers of %u", len, n, x->rx_len);
    for (; n; n--, len -= part, to += part) {
        at = rx_addr(x, r, r->cons++);
        part = len < x->rx_len ? len : x->rx_len;
        memcpy(to, gmem_ptr(m, at, part), part);
        gmem_deny(m, at, x->rx_len, GMEM_W);
    }
}

static struct rxq *queue_of(struct eth *x, uint32_t num)
{
    unsigned i;

    for (i = 0; i < x->queues && x->q[i].num != num; i++) {
    }
    CHECK(i < x->queues, "a completion of queue %u", num);
    return &x->q[i];
}

/* A flow stays in order; others may overtake it while it is merged. */
static unsigned flow_of(const struct note *n, uint64_t at)
{
    unsigned port = (unsigned)((at - 1) >> 32) % PORTS;

    return n->mss ? 1 + n->dst * PORTS + port : 0;
}

static void received(struct eth *x, const struct qhca_eth_cqe *c)
{
    struct rxq *q = queue_of(x, c->num);
    uint8_t f[LARGE_MAX + 64];
    uint32_t len = c->byte_len, head = c->header_len ? c->header_len : len;
    const struct note *note;
    uint64_t at, *last;

    CHECK(c->status == QHCA_WC_SUCCESS && c->opcode == QHCA_CQE_OP_ETH_RECV,
          "Ethernet receive: %s, opcode %#x", sim_wc_name(c->status),
          c->opcode);
    CHECK(len >= TCP_HEAD && len <= (c->gso_segs ? TCP_HEAD + LARGE_MAX :
                                     BODY_MAX), "a frame of %u bytes", len);
    CHECK(head == len || (q->flags & QHCA_ETH_Q_F_HDS && head == TCP_HEAD),
          "split after %u bytes", head);
    take_buffers(x, &q->ring, c->wqe_index, c->num_wqe, f, head);
    if (c->header_len) {
        take_buffers(x, &q->data, c->data_index, c->num_data, f + head,
                     len - head);
    }
    at = get_be(f + 12, 2) == 0x0800 ? got_large(x, q, c, f, &note) :
                                       got_plain(x, f, len, &note);
    CHECK((note->all || note->dst == x->index) && note->src != x->index,
          "a frame for another adapter");
    CHECK(c->vlan == note->vlan && !(c->flags & QHCA_CQE_F_VLAN) ==
          (note->vlan == QHCA_VLAN_NONE), "tag %#x, sent %#x", c->vlan,
          note->vlan);
    CHECK(c->hash_type == (x->queues > 1 && f[12] == 8 ?
                           QHCA_HASH_TYPE_L4 : QHCA_HASH_TYPE_NONE),
          "hash type %u", c->hash_type);
    last = &x->last[note->src][flow_of(note, at)];
    CHECK(*last < at || x->ep->s->w.wire.dup || x->ep->s->w.wire.reorder ||
          (x->ep->s->frame_faults & ~(1u << QHCA_FLT_DROP)),
          "frames out of order");
    *last = at;
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
    unsigned i;

    fprintf(stderr, "Ethernet %s: %u to send, SQ %u..%u, RQs",
            ep->g->m->name, x->to_send, x->sq_cons, x->sq_prod);
    for (i = 0; i < x->queues; i++) {
        fprintf(stderr, " %u..%u", x->q[i].ring.cons, x->q[i].ring.prod);
    }
    fprintf(stderr, "\n");
}

/* With loss fewer frames may arrive, with duplication any number. */
static bool adds_up(const struct eth_all *all, const struct sim *s,
                    uint64_t dropped)
{
    bool drop = s->w.wire.drop || (s->frame_faults & 1u << QHCA_FLT_DROP);
    bool dup = s->w.wire.dup || (s->frame_faults & 1u << QHCA_FLT_DUPLICATE);

    return all->got + dropped == all->expected ||
           (drop && all->got + dropped < all->expected) || dup;
}

static void free_ring(struct eth *x, struct rxring *r)
{
    gbuf_free(&r->ring);
    gmem_release(x->ep->g->m, r->mem, (uint64_t)SLOT << x->rq_shift);
    guest_dbrec_free(x->ep->g, r->dbrec);
}

static void stop_receiving(struct eth *x)
{
    struct guest *g = x->ep->g;
    struct qhca_port port = { .eth_qpn = QHCA_ETH_QP_NONE };
    struct gcmd cmd = { .op = QHCA_CMD_MODIFY_PORT, .in = &port,
                        .in_len = sizeof(port),
                        .mask = QHCA_PORT_M_ETH_QPN };
    unsigned i;

    if (x->queues > 1) {
        guest_must(g, &cmd);
        CHECK(guest_simple(g, QHCA_CMD_DESTROY_QP, x->qpn) == QHCA_ST_OK &&
              guest_simple(g, QHCA_CMD_DESTROY_RQT, x->rqtn) == QHCA_ST_OK,
              "DESTROY of RSS");
    }
    for (i = 0; i < x->queues; i++) {
        CHECK(guest_simple(g, QHCA_CMD_DESTROY_ETH_RQ, x->q[i].num) ==
              QHCA_ST_OK, "DESTROY_ETH_RQ");
        free_ring(x, &x->q[i].ring);
        free_ring(x, &x->q[i].data);
    }
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
        CHECK(adds_up(all, ep->s, dropped), "%" PRIu64 " frames to "
              "arrive, %" PRIu64 " did, %" PRIu64 " counted as dropped",
              all->expected, all->got, dropped);
    }
    CHECK(guest_simple(ep->g, QHCA_CMD_DESTROY_ETH_SQ, x->sqn) ==
          QHCA_ST_OK, "DESTROY_ETH_SQ");
    for (i = 0; i < 2; i++) {
        CHECK(!x->shaper[i] ||
              guest_simple(ep->g, QHCA_CMD_DESTROY_SHAPER, x->shaper[i]) ==
              QHCA_ST_OK, "DESTROY_SHAPER");
    }
    stop_receiving(x);
    gbuf_free(&x->sq);
    gmem_release(ep->g->m, x->tx, (uint64_t)TX_SLOT << x->sq_shift);
    ep->app = NULL;
    if (!--all->alive) {
        for (i = 0; i < all->members; i++) {
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

static void make_ring(struct eth *x, struct rxring *r)
{
    make_queue(x, &r->ring, x->rq_shift, 4);
    r->mem = gmem_alloc(x->ep->g->m, (uint64_t)SLOT << x->rq_shift, 12, 0);
    r->dbrec = guest_dbrec(x->ep->g, false);
}

static void make_rq(struct eth *x, struct rxq *q)
{
    struct guest *g = x->ep->g;
    struct rng *r = &g->rng;
    struct qhca_eth_qc c;

    make_ring(x, &q->ring);
    make_ring(x, &q->data);
    memset(&c, 0, sizeof(c));
    c.buf = q->ring.ring.d;
    c.dbrec = q->ring.dbrec;
    c.cqn = x->ep->rcq->cq.cqn;
    c.shift = x->rq_shift;
    c.stride = 4;
    /* one that takes 64 KiB in at most 64 buffers */
    if (x->ep->s->w.frame_max == WORLD_SUPER_MAX && x->rx_len >= 512 &&
        rng_pct(r, 50)) {
        c.flags |= QHCA_ETH_Q_F_SUPER;
    }
    c.flags |= rng_pct(r, 50) ? QHCA_ETH_Q_F_GRO : 0;
    if (rng_pct(r, 50)) {
        c.flags |= QHCA_ETH_Q_F_HDS;
        c.data_buf = q->data.ring.d;
        c.data_dbrec = q->data.dbrec;
        c.data_shift = x->rq_shift;
        q->hds_thresh = (uint32_t)rng_below(r, 300);
        c.hds_thresh = q->hds_thresh;
    }
    q->flags = c.flags;
    q->num = guest_create(g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
}

/* Spread the port's frames over all queues; returns the mask for the port. */
static uint64_t make_rss(struct eth *x, struct qhca_port *port)
{
    struct guest *g = x->ep->g;
    uint32_t num[ENTRIES];
    struct gcmd cmd = { .op = QHCA_CMD_CREATE_RQT, .arg = QHCA_RQT_ETH_RQ,
                        .in = num, .in_len = sizeof(num) };
    struct qhca_qpc c;
    unsigned i;

    for (i = 0; i < ENTRIES; i++) {
        num[i] = x->q[rng_below(&g->rng, x->queues)].num;
    }
    x->rqtn = guest_must(g, &cmd);
    c = guest_rss_context(g, x->rqtn, QHCA_HASH_MASK);
    for (i = 0; i < sizeof(c.rx_hash_key); i++) {
        c.rx_hash_key[i] = (uint8_t)rng_u32(&g->rng);
    }
    x->qpn = guest_create(g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
    port->eth_qpn = x->qpn;
    return QHCA_PORT_M_ETH_QPN;
}

static void make_receiver(struct eth *x)
{
    struct guest *g = x->ep->g;
    struct qhca_port port;
    struct gcmd cmd = { .op = QHCA_CMD_MODIFY_PORT, .in = &port,
                        .in_len = sizeof(port),
                        .mask = QHCA_PORT_M_ETH_RQN };
    unsigned i;

    for (i = 0; i < x->queues; i++) {
        make_rq(x, &x->q[i]);
    }
    memset(&port, 0, sizeof(port));
    port.eth_rqn = x->q[0].num;
    if (x->queues > 1) {
        cmd.mask = make_rss(x, &port);
    }
    guest_must(g, &cmd);
    post_rx(x);
}

/*
 * Mostly the SQ is in a shaper, and often that in another: it waits
 * often, but never long.  They have random numbers of their own.
 */
static void make_shapers(struct eth *x)
{
    struct guest *g = x->ep->g;
    struct qhca_shaperc c;
    struct rng r;
    unsigned i;

    rng_init(&r, x->to_send * 8 + x->index);
    for (i = 2; i-- && rng_pct(&r, 70);) {
        memset(&c, 0, sizeof(c));
        c.rate = rng_range(&r, 1, 20) * 1000000000;
        c.burst = (uint32_t)rng_below(&r, 100000);
        c.weight = (uint8_t)rng_range(&r, 1, 255);
        c.parent = x->shaper[1];
        x->shaper[i] = guest_create(g, QHCA_CMD_CREATE_SHAPER, &c, sizeof(c));
    }
}

static void make(struct sim *s, struct eth_all *all, struct guest *g,
                 unsigned frames)
{
    struct rng *r = &g->rng;
    struct ep *ep = sim_ep(s, g);
    struct eth *x = calloc(1, sizeof(*x));
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
    x->queues = (unsigned)rng_range(r, 1, QUEUES_MAX);
    make_queue(x, &x->sq, x->sq_shift, x->sq_stride);
    x->tx = gmem_alloc(g->m, (uint64_t)TX_SLOT << x->sq_shift, 12, 0);
    x->signalled = calloc(1u << x->sq_shift, sizeof(*x->signalled));
    CHECK(x->signalled, "no memory");
    ep->scq = sim_cq(s, g, (enum cq_mode)rng_below(r, 3),
                     1u << x->sq_shift);
    ep->rcq = sim_cq(s, g, (enum cq_mode)rng_below(r, 3),
                     x->queues << x->rq_shift);
    ep->scq->room = ep->rcq->room = 0;
    ep->scq->owner = ep->rcq->owner = ep;
    memset(&c, 0, sizeof(c));
    c.buf = x->sq.d;
    c.cqn = ep->scq->cq.cqn;
    c.shift = x->sq_shift;
    c.stride = x->sq_stride;
    make_shapers(x);
    c.shaper = x->shaper[0];
    x->sqn = guest_create(g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    make_receiver(x);
}

void eth_group(struct sim *s, unsigned frames)
{
    struct eth_all *all = calloc(1, sizeof(*all));
    unsigned i;

    CHECK(all, "no memory");
    s->no_deaths = true;
    for (i = 0; i < s->w.nodes; i++) {
        make(s, all, &s->g[i], frames);
    }
}
