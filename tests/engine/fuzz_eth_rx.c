/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzz target: Ethernet receive queues.  Frames that are valid, or nearly so,
 * arrive, also as super-frames, in runs that can be merged and in tunnels,
 * while queues are stopped, given other rings and flags and restarted, tables
 * and hashes are exchanged, rules come and go, and the adapter is saved and
 * loaded.  The device may write only to buffers that are posted at that moment.
 */
#include <stdlib.h>

#include "bigpkt.h"
#include "ethframe.h"
#include "fuzz.h"
#include "reborn.h"

#define QUEUES 3
#define SHIFT 2
#define DEPTH (1u << SHIFT)
#define SLOT 4096u
#define NUMBERS 16              /* tables, rules: numbers are below this */

struct ring {
    struct gbuf buf;
    uint64_t dbrec, mem;
    uint32_t prod, cons;
    uint32_t len[DEPTH];
};

struct queue {
    struct gcq cq;
    struct ring ring[2];        /* headers or whole frames; payload */
    uint32_t num;
};

struct eth {
    struct world w;
    struct guest g;
    struct queue q[QUEUES];
    uint32_t qpn;               /* 0: none */
};

static uint8_t cmd(struct eth *t, uint8_t op, uint32_t obj, const void *in,
                   uint32_t len, uint64_t mask, uint64_t arg)
{
    struct gcmd c = {
        .op = op, .obj = obj, .in = len ? in : NULL, .in_len = len,
        .mask = mask, .arg = arg,
    };

    return guest_cmd(&t->g, &c);
}

static void ring_open(struct eth *t, struct ring *r)
{
    gbuf_make(&r->buf, t->g.m, DEPTH * 16, &gbuf_direct, true, 0, &t->g.rng);
    gbuf_allow(&r->buf, 0, r->buf.len, GMEM_R);
    r->dbrec = guest_dbrec(&t->g, false);
    r->mem = gmem_alloc(t->g.m, SLOT * DEPTH, 12, 0);
}

/* Software has all buffers back. */
static void ring_rewind(struct eth *t, struct ring *r)
{
    gmem_deny(t->g.m, r->mem, SLOT * DEPTH, GMEM_W);
    r->prod = r->cons = 0;
    guest_dbrec_set(&t->g, r->dbrec, 0);
}

static void ring_close(struct eth *t, struct ring *r)
{
    gbuf_free(&r->buf);
    guest_dbrec_free(&t->g, r->dbrec);
    gmem_release(t->g.m, r->mem, SLOT * DEPTH);
}

static struct qhca_eth_qc context(struct queue *q, bool hds)
{
    struct qhca_eth_qc c;

    memset(&c, 0, sizeof(c));
    c.buf = q->ring[0].buf.d;
    c.dbrec = q->ring[0].dbrec;
    c.cqn = q->cq.cqn;
    c.shift = SHIFT;
    c.stride = 4;
    if (hds) {
        c.flags = QHCA_ETH_Q_F_HDS;
        c.data_buf = q->ring[1].buf.d;
        c.data_dbrec = q->ring[1].dbrec;
        c.data_shift = SHIFT;
    }
    return c;
}

/* The port's frames are spread over all queues. */
static void spread(struct eth *t)
{
    const uint32_t num[4] = {
        t->q[0].num, t->q[1].num, t->q[2].num, t->q[1].num,
    };
    struct gcmd m = {
        .op = QHCA_CMD_CREATE_RQT, .arg = QHCA_RQT_ETH_RQ, .in = num,
        .in_len = sizeof(num),
    };
    struct qhca_port port = { .promisc = 1 };
    struct qhca_qpc c;
    unsigned i;

    guest_must(&t->g, &m);
    c = guest_rss_context(&t->g, m.robj, QHCA_HASH_MASK);
    for (i = 0; i < sizeof(c.rx_hash_key); i++) {
        c.rx_hash_key[i] = (uint8_t)(i * 29 + 3);
    }
    t->qpn = guest_create(&t->g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
    port.eth_qpn = t->qpn;
    m = (struct gcmd){
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_ETH_QPN | QHCA_PORT_M_PROMISC,
    };
    guest_must(&t->g, &m);
}

/* @how: bits of the world in which the input plays. */
static void open_all(struct eth *t, uint8_t how)
{
    struct qhca_config cfg;
    struct qhca_eth_qc c;
    unsigned i;

    memset(t, 0, sizeof(*t));
    fuzz_config(&cfg);
    cfg.super_frames = how & 1;
    cfg.gro_hold = how & 8 ? 2 : 0;
    fuzz_open(&t->w, &t->g, &cfg);
    for (i = 0; i < QUEUES; i++) {
        gcq_create(&t->q[i].cq, &t->g, 6, NULL, t->g.eq[1].eqn);
        ring_open(t, &t->q[i].ring[0]);
        ring_open(t, &t->q[i].ring[1]);
        c = context(&t->q[i], i);
        c.flags |= how & 4 ? QHCA_ETH_Q_F_GRO : 0;
        c.flags |= how & 16 ? QHCA_ETH_Q_F_UNPAD : 0;
        c.flags |= how & 1 && i == 1 ? QHCA_ETH_Q_F_SUPER : 0;
        t->q[i].num = guest_create(&t->g, QHCA_CMD_CREATE_ETH_RQ, &c,
                                   sizeof(c));
    }
    if (how & 2) {
        spread(t);
    }
}

static struct qhca_eth_qc query(struct eth *t, const struct queue *q)
{
    struct qhca_eth_qc c;

    guest_query(&t->g, QHCA_CMD_QUERY_ETH_RQ, q->num, &c, sizeof(c));
    return c;
}

/* Take @n buffers back; returns the bytes that fitted, at most @len. */
static size_t take(struct eth *t, struct ring *r, uint32_t index, unsigned n,
                   size_t len)
{
    size_t room = 0;

    CHECK(index == r->cons, "WQE %u is used, not %u", index, r->cons);
    CHECK(n <= r->prod - r->cons, "%u WQEs used, %u posted", n,
          r->prod - r->cons);
    while (n--) {
        CHECK(room < len || !len, "a buffer more than needed");
        room += r->len[r->cons % DEPTH];
        gmem_deny(t->g.m, r->mem + r->cons % DEPTH * SLOT, SLOT, GMEM_W);
        r->cons++;
    }
    CHECK(room >= len, "%zu bytes in buffers of %zu", len, room);
    return room;
}

static void poll(struct eth *t, struct queue *q)
{
    struct qhca_eth_cqe c;
    struct qhca_cqe any;

    while (gcq_poll(&q->cq, &any)) {
        memcpy(&c, &any, sizeof(c));
        CHECK(c.num == q->num && c.opcode == QHCA_CQE_OP_ETH_RECV,
              "a CQE of queue %u, opcode %u", c.num, c.opcode);
        CHECK(c.header_len <= c.byte_len, "%u bytes of headers in %u",
              c.header_len, c.byte_len);
        CHECK(!c.header_len || c.status || c.num_data, "a split without data");
        CHECK(c.header_len || c.status || !c.num_data, "data without a split");
        CHECK(!c.gso_segs == !c.gso_size && c.gso_segs != 1 &&
              (c.status || !c.gso_segs ||
               c.byte_len > c.gso_size * (c.gso_segs - 1u)),
              "%u frames of %u bytes in %u", c.gso_segs, c.gso_size,
              c.byte_len);
        take(t, &q->ring[0], c.wqe_index, c.num_wqe,
             c.header_len ? c.header_len : c.byte_len);
        if (c.num_data) {
            take(t, &q->ring[1], c.data_index, c.num_data,
                 c.header_len ? c.byte_len - c.header_len : 0);
        }
    }
}

static void post(struct eth *t, struct fz *f)
{
    uint8_t k = fz_u8(f);
    struct ring *r = &t->q[k % QUEUES].ring[k >> 2 & 1];
    uint32_t slot = r->prod % DEPTH;
    struct qhca_eth_seg seg = { .addr = r->mem + slot * SLOT };

    if (r->prod - r->cons == DEPTH) {
        return;
    }
    seg.len = r->len[slot] = k & 8 ? 1u + fz_u8(f) : 1 + fz_u16(f) % SLOT;
    gmem_allow(t->g.m, seg.addr, seg.len, GMEM_W);
    if (k >= 0xf8) {            /* no memory, or no bytes */
        seg.addr = gmem_unmapped(t->g.m, SLOT);
        seg.len = r->len[slot] = k & 1 ? SLOT : 0;
    }
    gbuf_write(&r->buf, slot * 16, &seg, sizeof(seg));
    guest_dbrec_set(&t->g, r->dbrec, ++r->prod + (k == 0xf0 ? 100 : 0));
}

/* Any change of a queue; removes the permissions that the device loses. */
static void modify(struct eth *t, struct fz *f)
{
    uint8_t k = fz_u8(f), how = fz_u8(f), st;
    struct queue *q = &t->q[k % QUEUES];
    struct qhca_eth_qc c = context(q, k & 4);
    uint64_t mask = how & 7;

    c.state = how >> 3 & 1;
    c.hds_thresh = k & 8 ? fz_u16(f) % 600 : 0;
    c.flags |= k & 16 ? QHCA_ETH_Q_F_GRO : 0;
    c.flags |= k & 32 ? QHCA_ETH_Q_F_SUPER : 0;
    c.flags |= k & 64 ? QHCA_ETH_Q_F_UNPAD : 0;
    if (how & 0x80) {
        fz_spoil(f, &c, sizeof(c));
        /* these must not change, whatever the command says */
        c.buf = q->ring[0].buf.d;
        c.dbrec = q->ring[0].dbrec;
        c.cqn = q->cq.cqn;
        c.shift = SHIFT;
        if (c.flags & QHCA_ETH_Q_F_HDS) {
            c.data_buf = q->ring[1].buf.d;
            c.data_dbrec = q->ring[1].dbrec;
            c.data_shift = SHIFT;
        }
    }
    poll(t, q);
    st = cmd(t, QHCA_CMD_MODIFY_ETH_RQ, q->num, &c, sizeof(c), mask, 0);
    CHECK(st == QHCA_ST_OK || st == QHCA_ST_BAD_PARAM ||
          st == QHCA_ST_BAD_STATE || st == QHCA_ST_BAD_TABLE ||
          st == QHCA_ST_BAD_OBJ, "MODIFY_ETH_RQ: %u", st);
    poll(t, q);         /* what was held back came before the command */
    if (query(t, q).state == QHCA_WQS_RESET) {
        ring_rewind(t, &q->ring[0]);
        ring_rewind(t, &q->ring[1]);
    }
}

static void tables(struct eth *t, struct fz *f)
{
    uint8_t k = fz_u8(f), i, n = (uint8_t)(1u << (k >> 5 & 3));
    uint32_t num[8];

    if (k & 16) {
        cmd(t, QHCA_CMD_DESTROY_RQT, k & 15, NULL, 0, 0, 0);
        return;
    }
    for (i = 0; i < n; i++) {
        num[i] = fz_u8(f) & 3;
    }
    cmd(t, QHCA_CMD_CREATE_RQT, 0, num, 4 * n, 0, k < 0xe0);
}

/* The fields of a hash: mostly allowed ones. */
static uint32_t fields(struct fz *f)
{
    uint32_t v = fz_u32(f), two = v & 0x555555u & ~0x400400u;

    return v >> 30 == 0 ? v : v >> 30 == 1 ? v & QHCA_HASH_MASK :
           QHCA_HASH_BY_TYPE | two | two << 1 |
           (v & (1u << 29) ? 1u << (24 + (v >> 28 & 1)) : 0);
}

static void rss(struct eth *t, struct fz *f)
{
    struct qhca_port port = { .eth_rqn = fz_u8(f) & 3 };
    uint8_t k = fz_u8(f);
    struct qhca_qpc c = guest_rss_context(&t->g, k % NUMBERS, fields(f));
    struct gcmd m;

    fz_bytes(f, c.rx_hash_key, 8);
    switch (k >> 4 & 7) {
    case 0:
        if (!t->qpn) {
            m = (struct gcmd){ .op = QHCA_CMD_CREATE_QP, .in = &c,
                               .in_len = sizeof(c) };
            t->qpn = guest_cmd(&t->g, &m) == QHCA_ST_OK ? m.robj : 0;
        }
        break;
    case 1:
        if (cmd(t, QHCA_CMD_DESTROY_QP, t->qpn, NULL, 0, 0, 0) ==
            QHCA_ST_OK) {
            t->qpn = 0;
        }
        break;
    case 2:
        port.eth_qpn = k & 128 ? QHCA_ETH_QP_NONE : t->qpn;
        cmd(t, QHCA_CMD_MODIFY_PORT, 0, &port, sizeof(port),
            QHCA_PORT_M_ETH_QPN, 0);
        break;
    case 3:
        cmd(t, QHCA_CMD_MODIFY_PORT, 0, &port, sizeof(port),
            QHCA_PORT_M_ETH_RQN, 0);
        break;
    default:
        cmd(t, QHCA_CMD_MODIFY_QP, t->qpn, &c, sizeof(c),
            (uint64_t)(k >> 4 & 3) << 16, 0);
    }
}

static void flow(struct eth *t, struct fz *f)
{
    uint8_t k = fz_u8(f);
    struct qhca_flow c;

    if (k & 16) {
        cmd(t, QHCA_CMD_DESTROY_FLOW, k & 15, NULL, 0, 0, 0);
        return;
    }
    memset(&c, 0, sizeof(c));
    c.qpn = t->qpn;
    c.tag = k;
    c.type = k >> 6;
    c.flags = c.type ? 0 : k & 7;
    c.mask.l4 = k & 8 ? 0xff : 0;
    c.value.l4 = k & 32 ? 6 : 17;
    cmd(t, QHCA_CMD_CREATE_FLOW, 0, &c, sizeof(c), 0, 0);
}

static void arrive(struct eth *t, const uint8_t *b, size_t len)
{
    uint8_t *exact = malloc(len);       /* the sanitizer sees its end */

    CHECK(exact, "no memory");
    memcpy(exact, b, len);
    world_inject(&t->w, 0, exact, len);
    free(exact);
}

/* A large packet, as a super-frame or as its frames; one may be spoilt. */
static void large(struct eth *t, struct fz *f, uint8_t k)
{
    unsigned n = 1 + fz_u8(f) % 12, odd = fz_u8(f), i;
    static uint8_t b[BIG_HDR_MAX + BIG_PAYLOAD_MAX + 8];
    uint16_t mss = (uint16_t)(1 + fz_u16(f) % 1500);
    static struct big p;
    struct rng r;
    size_t len;

    rng_init(&r, fz_u8(f));
    big_random(&p, &r, n * mss - (odd & 64 ? rng_below(&r, mss) : 0));
    memcpy(p.dmac, t->w.node[0].mac, 6);
    if (k & 32) {               /* what can be merged */
        p.tcp = true;
        p.opts = 0;
        p.flags = 0x10 | (p.flags & 8);
        p.tagged &= !(k & 128);
    }
    if (k & 64) {
        len = big_frame(&p, b, 0, 0, p.len);
        memcpy(b + len, "QSFG", 4);
        big_put16(b + len + 4, mss);
        big_put16(b + len + 6, n);
        len += 8;
        if (odd & 128) {
            fz_spoil(f, odd & 1 ? b + len - 8 : b, odd & 1 ? 8 : 100);
        }
        arrive(t, b, len);
        return;
    }
    for (i = 0; i < n; i++) {
        len = p.len - i * mss < mss ? p.len - i * mss : mss;
        len = big_frame(&p, b, i, i * mss, (uint32_t)len);
        if ((k & 160) == 160) {
            len = big_wrap(b, len, odd & 32, p.junk + 200, i);
        }
        if (odd & 128 && (odd & 15) == i) {
            fz_spoil(f, b, len < 100 ? len : 100);
        }
        arrive(t, b, len);
    }
}

static void frame(struct eth *t, struct fz *f)
{
    uint8_t k = fz_u8(f);
    static struct made m;
    struct rng r;
    unsigned i;

    if (k & 16) {
        large(t, f, k);
        return;
    }
    rng_init(&r, fz_u16(f));
    made_frame(&m, &r, t->w.node[0].mac, k & 1 ? NOTHING : k % ODDS);
    if (k & 2) {
        fz_spoil(f, m.b + 6, m.len > 100 ? 94 : m.len - 6);
    }
    if (k & 4) {
        m.b[0] ^= 1;
    }
    arrive(t, m.b, m.len);
    for (i = 0; k & 8 && i < QUEUES; i++) {
        poll(t, &t->q[i]);
    }
}

static void close_all(struct eth *t)
{
    struct qhca_port port = { .eth_qpn = QHCA_ETH_QP_NONE };
    unsigned i;

    CHECK(cmd(t, QHCA_CMD_MODIFY_PORT, 0, &port, sizeof(port),
              QHCA_PORT_M_ETH_QPN, 0) == QHCA_ST_OK, "MODIFY_PORT");
    for (i = 0; i < QHCA_FLOWS_MAX; i++) {
        if (cmd(t, QHCA_CMD_DESTROY_FLOW, i, NULL, 0, 0, 0) != QHCA_ST_OK &&
            i > 400) {
            break;
        }
    }
    CHECK(!t->qpn || cmd(t, QHCA_CMD_DESTROY_QP, t->qpn, NULL, 0, 0, 0) ==
          QHCA_ST_OK, "DESTROY_QP");
    for (i = 0; i < 400; i++) {
        cmd(t, QHCA_CMD_DESTROY_RQT, i, NULL, 0, 0, 0);
    }
    for (i = 0; i < QUEUES; i++) {
        CHECK(cmd(t, QHCA_CMD_DESTROY_ETH_RQ, t->q[i].num, NULL, 0, 0, 0) ==
              QHCA_ST_OK, "DESTROY_ETH_RQ");
        poll(t, &t->q[i]);
        CHECK(gcq_destroy(&t->q[i].cq) == QHCA_ST_OK, "DESTROY_CQ");
        ring_close(t, &t->q[i].ring[0]);
        ring_close(t, &t->q[i].ring[1]);
    }
    guest_stop(&t->g);
    CHECK(!t->w.node[0].mem.mapped_pages, "the test leaks");
    world_fini(&t->w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fz f = { data, data + size };
    static struct eth t;
    unsigned i;
    uint8_t k;

    open_all(&t, size ? data[size - 1] : 0);
    for (i = 0; fz_more(&f) && i < 400; i++) {
        k = fz_u8(&f);
        switch (k & 15) {
        case 0:
        case 1:
        case 2:
        case 3:
        case 4:
            frame(&t, &f);
            break;
        case 5:
        case 6:
        case 7:
        case 8:
            post(&t, &f);
            break;
        case 9:
        case 10:
            modify(&t, &f);
            break;
        case 11:
            tables(&t, &f);
            break;
        case 12:
        case 13:
            rss(&t, &f);
            break;
        case 14:
            flow(&t, &f);
            break;
        default:
            t.w.reborn = k >> 6;
            world_run(&t.w, 1u << (k >> 3 & 7));
        }
    }
    t.w.reborn = 0;
    CHECK(world_settle(&t.w, 100000000000ULL), "the adapter never rests");
    close_all(&t);
    return 0;
}
