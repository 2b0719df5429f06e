/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of raw packet QPs and datagrams to multicast groups, throughout the
 * network, in parallel to other traffic.  Each message has a number.  A
 * receiver with a rule for the frame, or in the group, gets it: exactly once if
 * the wire loses nothing; no other receiver ever does.  Members come and go
 * between rounds.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

#define KINDS 3                 /* groups, of each sort */
#define RECEIVERS 10            /* QPs */
#define DEPTH 32
#define SLOT 512
#define MESSAGES 240
#define HEADER 14
#define GRH 40
#define QKEY 0x11111111

struct rx {
    struct guest *g;
    bool raw;                   /* else UD */
    bool block;                 /* UD: not its own */
    struct gcq cq;
    struct gqp qp;
    struct gmr mr;
    int kind;                   /* of group; -1: in none */
    uint32_t flow;
    uint32_t posted;
};

struct message {
    bool raw;
    int kind;
    unsigned len, from;         /* bytes; receiver that sent it */
    uint32_t due, got;          /* receivers, as bits */
};

struct all {
    struct sim *s;
    struct rx rx[RECEIVERS];
    struct message m[MESSAGES];
    unsigned messages;
    uint64_t received;
};

static void group_gid(int kind, uint8_t gid[16])
{
    memset(gid, 0, 16);
    if (kind == 2) {
        gid[0] = 0xff;
        gid[1] = 0x0e;
    } else {
        gid[10] = gid[11] = 0xff;
        gid[12] = 239;
        gid[13] = (uint8_t)(kind << 7);     /* two groups share a MAC address */
    }
    gid[15] = 9;
}

static void raw_mac(int kind, uint8_t mac[6])
{
    memcpy(mac, "\x03\0\0\0\0", 5);
    mac[5] = (uint8_t)kind;
}

static void join(struct rx *r, int kind)
{
    struct qhca_flow f;
    struct qhca_mcg mcg;
    struct gcmd c = { .in = &mcg, .in_len = sizeof(mcg), .obj = r->qp.qpn };

    if (r->raw && r->kind >= 0) {
        CHECK(guest_simple(r->g, QHCA_CMD_DESTROY_FLOW, r->flow) ==
              QHCA_ST_OK, "DESTROY_FLOW");
    }
    if (r->raw && kind >= 0) {
        memset(&f, 0, sizeof(f));
        f.qpn = r->qp.qpn;
        raw_mac(kind, f.value.dmac);
        memset(f.mask.dmac, 0xff, 6);
        r->flow = guest_create(r->g, QHCA_CMD_CREATE_FLOW, &f, sizeof(f));
    }
    memset(&mcg, 0, sizeof(mcg));
    if (!r->raw && r->kind >= 0) {
        c.op = QHCA_CMD_DETACH_MC;
        group_gid(r->kind, mcg.mgid);
        guest_must(r->g, &c);
    }
    if (!r->raw && kind >= 0) {
        c.op = QHCA_CMD_ATTACH_MC;
        group_gid(kind, mcg.mgid);
        guest_must(r->g, &c);
    }
    r->kind = kind;
}

static void post_recv(struct rx *r)
{
    uint32_t slot = r->posted++ % DEPTH;
    struct qhca_sge sge = {
        .addr = r->mr.iova + slot * SLOT, .len = SLOT, .lkey = r->mr.key,
    };

    CHECK(gqp_post_recv(&r->qp, slot, &sge, 1), "full");
}

static void make(struct all *a, struct rx *r)
{
    struct sim *s = a->s;
    struct gqp_init in = {
        .sq_shift = 4, .sq_stride = 9, .rq_shift = 5, .rq_stride = 5,
    };
    struct gbuf_shape shape;
    struct gqp_attr at;
    unsigned i;

    r->g = &s->g[rng_below(&s->rng, s->w.nodes)];
    r->raw = rng_pct(&s->rng, 50);
    r->block = !r->raw && rng_pct(&s->rng, 30);
    r->kind = -1;
    gcq_create(&r->cq, r->g, 7, NULL, 1);
    gbuf_shape_random(&shape, &r->g->rng, (DEPTH + 1) * SLOT);
    gmr_create(&r->mr, r->g, (DEPTH + 1) * SLOT, 0x7000000,
               QHCA_ACCESS_LOCAL_WRITE, &shape);
    gbuf_allow(&r->mr.buf, 0, (DEPTH + 1) * SLOT, GMEM_RW);
    in.scq = in.rcq = &r->cq;
    in.type = r->raw ? QHCA_QPT_RAW : QHCA_QPT_UD;
    in.flags = r->block ? QHCA_QP_F_BLOCK_MC_LOOP : 0;
    gqp_create(&r->qp, r->g, &in);
    if (r->raw) {
        for (i = QHCA_QPS_INIT; i <= QHCA_QPS_RTS; i++) {
            CHECK(gqp_state(&r->qp, (uint8_t)i) == QHCA_ST_OK, "RAW state");
        }
    } else {
        gqp_attr_default(&at);
        at.qkey = QKEY;
        gqp_to_init(&r->qp, &at);
        gqp_to_rtr(&r->qp, NULL, &at);
        gqp_to_rts(&r->qp, &at);
    }
    for (i = 0; i < DEPTH; i++) {
        post_recv(r);
    }
}

static void unmake(struct rx *r)
{
    join(r, -1);
    CHECK(gqp_destroy(&r->qp) == QHCA_ST_OK, "DESTROY_QP");
    CHECK(gmr_destroy(&r->mr) == QHCA_ST_OK, "DESTROY_MR");
    CHECK(gcq_destroy(&r->cq) == QHCA_ST_OK, "DESTROY_CQ");
}

static void check_one(struct all *a, unsigned who, const struct qhca_cqe *c)
{
    struct rx *r = &a->rx[who];
    unsigned skip = r->raw ? HEADER : GRH;
    uint8_t b[SLOT], want[SLOT];
    struct wire *wire = &a->s->w.wire;
    struct message *m;
    uint32_t id;

    CHECK(c->status == QHCA_WC_SUCCESS, "receive: %s, syndrome %#x",
          sim_wc_name(c->status), c->syndrome);
    CHECK(c->opcode == (r->raw ? QHCA_CQE_OP_RAW_RECV : QHCA_CQE_OP_RECV),
          "opcode %#x", c->opcode);
    CHECK(c->byte_len >= skip && c->byte_len <= SLOT, "%u bytes",
          c->byte_len);
    gbuf_read(&r->mr.buf, c->wr_id * SLOT, b, c->byte_len);
    post_recv(r);
    if (r->raw && (wire->corrupt || wire->truncate)) {
        return;                 /* frames have no checksum */
    }
    CHECK(c->byte_len >= skip + 4, "%u bytes", c->byte_len);
    memcpy(&id, b + skip, 4);
    CHECK(id < a->messages, "message %u was never sent", id);
    m = &a->m[id];
    CHECK(m->raw == r->raw && m->due & 1u << who, "message %u of kind %d is "
          "not for receiver %u of kind %d", id, m->kind, who, r->kind);
    CHECK(!(m->got & 1u << who) || wire->dup, "message %u came twice", id);
    m->got |= 1u << who;
    CHECK(c->byte_len == skip + m->len ||
          (r->raw && wire->pad && c->byte_len == 60 && m->len < 46),
          "%u bytes instead of %u", c->byte_len - skip, m->len);
    pattern_bytes(id, 4, want, m->len - 4);
    CHECK(!memcmp(b + skip + 4, want, m->len - 4), "wrong bytes");
    CHECK(r->raw || c->src_qpn == a->rx[m->from].qp.qpn, "from %#x",
          c->src_qpn);
    a->received++;
}

static void drain(struct all *a)
{
    struct qhca_cqe c;
    unsigned i;

    for (i = 0; i < RECEIVERS; i++) {
        struct rx *r = &a->rx[i];

        while (gcq_poll(&r->cq, &c)) {
            if (c.opcode & 0x80) {
                r->qp.rq_cons = c.wqe_index + 1;
                check_one(a, i, &c);
            } else {
                CHECK(c.status == QHCA_WC_SUCCESS, "send: %s, %#x",
                      sim_wc_name(c.status), c.syndrome);
                r->qp.sq_cons = c.wqe_index + 1;
            }
        }
    }
}

/* A message from a QP; false: its send queue is full. */
static bool send(struct all *a, unsigned from)
{
    struct rx *r = &a->rx[from];
    struct rng *rng = &a->s->rng;
    struct message *m = &a->m[a->messages];
    struct gwr w = {
        .wr_id = a->messages, .flags = QHCA_WQE_F_SIGNALED |
                                       QHCA_WQE_F_INLINE,
    };
    uint8_t b[SLOT];
    unsigned i, head = r->raw ? HEADER : 0;
    uint32_t id = a->messages;

    memset(m, 0, sizeof(*m));
    m->raw = r->raw;
    m->from = from;
    m->kind = (int)rng_below(rng, KINDS);
    m->len = (unsigned)rng_range(rng, 4, 300);
    for (i = 0; i < RECEIVERS; i++) {
        struct rx *x = &a->rx[i];

        if (x->raw == r->raw && x->kind == m->kind &&
            !(x->block && i == from)) {
            m->due |= 1u << i;
        }
    }
    if (r->raw) {
        raw_mac(m->kind, b);
        memcpy(b + 6, r->g->n->mac, 6);
        b[12] = 0x88;           /* an ethertype for experiments */
        b[13] = 0xb5;
        w.opcode = QHCA_WQE_RAW_SEND;
    } else {
        w.opcode = QHCA_WQE_SEND;
        w.dest_qpn = QHCA_QPN_MULTICAST;
        w.qkey = QKEY;
        w.av.sgid_index = m->kind == 2;
        group_gid(m->kind, w.av.dgid);
        memcpy(w.av.dmac, m->kind == 2 ? "\x33\x33\0\0\0\x09" :
               "\x01\0\x5e\0\0\x09", 6);
    }
    memcpy(b + head, &id, 4);
    pattern_bytes(id, 4, b + head + 4, m->len - 4);
    w.inl = b;
    w.inl_len = head + m->len;
    if (!gqp_post_send(&r->qp, &w)) {
        return false;
    }
    a->messages++;
    gqp_ring(&r->qp);
    return true;
}

/* Let all frames arrive. */
static void quiet(struct all *a)
{
    unsigned i;

    for (i = 0; i < 20; i++) {
        world_run(&a->s->w, 100000);
        drain(a);
    }
}

void raw_script(struct sim *s)
{
    struct all *a = calloc(1, sizeof(*a));
    struct rng *r = &s->rng;
    bool loss = s->w.wire.drop || s->w.wire.corrupt || s->w.wire.truncate ||
                s->w.wire.reorder;
    unsigned i, n;

    CHECK(a, "no memory");
    a->s = s;
    for (i = 0; i < RECEIVERS; i++) {
        make(a, &a->rx[i]);
    }
    while (a->messages < MESSAGES - 8) {
        /* members may only change while no messages are in flight */
        quiet(a);
        for (i = 0; i < RECEIVERS; i++) {
            if (rng_pct(r, 40)) {
                join(&a->rx[i], (int)rng_range(r, 0, KINDS) - 1);
            }
        }
        n = (unsigned)rng_range(r, 1, 30);
        while (n-- && a->messages < MESSAGES) {
            send(a, (unsigned)rng_below(r, RECEIVERS));
            if (rng_pct(r, 60)) {
                world_run(&s->w, rng_log(r, 30000));
                drain(a);
            }
        }
    }
    quiet(a);
    quiet(a);
    for (i = 0; i < a->messages && !loss; i++) {
        CHECK(a->m[i].got == a->m[i].due, "message %u (%s, kind %d): got by "
              "%#x instead of %#x", i, a->m[i].raw ? "raw" : "UD",
              a->m[i].kind, a->m[i].got, a->m[i].due);
    }
    for (i = 0; i < RECEIVERS; i++) {
        unmake(&a->rx[i]);
    }
    s->messages += a->received;
    free(a);
}
