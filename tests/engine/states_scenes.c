/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scenes: the work that two adapters have when they are saved.  Each is small,
 * and has all kinds of objects and of work under way of one part of the device.
 *
 * A scene may be changed, and others added: states that were saved stay.
 */
#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "ethframe.h"
#include "states.h"
#include "adapter/adapter.h"
#include "base/bytes.h"
#include "base/headers.h"

#define IOVA 0x500000000000ull
#define AREA 8192u              /* bytes of a side's region */

/* Parts of a region. */
#define SOURCE 0u               /* a pattern, to send */
#define RECV 2048u              /* receive buffers */
#define TARGET 4096u            /* of the peer's WRITEs and atomics */
#define RESULT 6144u            /* of READs and atomics */

#define A 0
#define B 1

/* The objects of a scene; not all scenes have all. */
struct side {
    struct guest *g;
    struct gcq cq, full;        /* full: one that is resized */
    struct gmr mr;
    struct gqp qp[4];
    struct gsrq srq[2];
};

struct set {
    struct scene *s;
    struct side side[SCENE_NODES];
};

/* Sets live as long as the program, as what they point to. */
static struct set *sets[64];
static unsigned sets_n;

static void add_area(struct scene *s, unsigned node, uint64_t addr,
                     uint32_t len, bool paged)
{
    CHECK(s->areas < SCENE_AREAS, "too many areas");
    s->area[s->areas++] = (struct scene_area){
        .node = node, .addr = addr, .len = len, .paged = paged,
    };
}

static void add_cq(struct scene *s, unsigned node, const struct gcq *cq)
{
    CHECK(s->cqs < SCENE_CQS, "too many CQs");
    s->cq[s->cqs++] = (struct scene_cq){
        .node = node, .addr = gbuf_addr(&cq->buf, 0, NULL),
        .shift = cq->shift,
    };
}

/* Two sides with a CQ, which is armed, and a region each. */
static struct set *open_set(struct scene *s)
{
    static const struct guest_config cfg[] = {
        { .db_shift = 12, .aq_shift = 3, .eqs = 2, .eq_shift = 6 },
        { .db_shift = 12, .aq_shift = 3, .eqs = 2, .eq_shift = 6,
          .records = 2 },
    };
    struct set *t = calloc(1, sizeof(*t));
    uint8_t *p;
    unsigned i, k;

    CHECK(t && sets_n < sizeof(sets) / sizeof(sets[0]), "no memory");
    sets[sets_n++] = t;
    t->s = s;
    for (i = 0; i < SCENE_NODES; i++) {
        struct side *d = &t->side[i];

        d->g = &s->g[i];
        guest_start(d->g, &s->w.node[i], 1 + i, &cfg[i & 1]);
        gcq_create(&d->cq, d->g, 5, NULL, d->g->eq[1].eqn);
        add_cq(s, i, &d->cq);
        gcq_arm(&d->cq, false);
        gmr_create(&d->mr, d->g, AREA, IOVA, QHCA_ACCESS_MASK, NULL);
        add_area(s, i, gbuf_addr(&d->mr.buf, 0, NULL), AREA, false);
        p = gmem_ptr(d->g->m, gbuf_addr(&d->mr.buf, 0, NULL), AREA);
        for (k = 0; k < RECV; k++) {
            p[k] = (uint8_t)(k * 7 + (k >> 8) + i * 100);
        }
    }
    return t;
}

/* ---- QPs ---- */

static void make_qp(struct side *d, unsigned i, uint8_t type,
                    struct gsrq *srq)
{
    gqp_create(&d->qp[i], d->g, &(struct gqp_init){
        .type = type, .sq_shift = 4, .sq_stride = 7, .rq_shift = 3,
        .rq_stride = 5, .scq = &d->cq, .rcq = &d->cq, .srq = srq,
    });
}

/* Connect QP @i of both sides, at a small MTU, shortly before PSN 0. */
static void connect(struct set *t, unsigned i)
{
    struct gqp_attr a;
    unsigned k;

    gqp_attr_default(&a);
    a.path_mtu = 1;
    a.sq_psn = a.rq_psn = 0xfffff8;
    for (k = 0; k < SCENE_NODES; k++) {
        struct gqp *qp = &t->side[k].qp[i];

        a.dest_qpn = t->side[!k].qp[i].qpn;
        gqp_to_init(qp, &a);
        gqp_to_rtr(qp, &t->s->w.node[!k], &a);
        gqp_to_rts(qp, &a);
    }
}

static struct qhca_sge sge(const struct side *d, uint32_t at, uint32_t len)
{
    return (struct qhca_sge){ .addr = IOVA + at, .len = len,
                              .lkey = d->mr.key };
}

static void recv(struct side *d, unsigned i, uint64_t id, uint32_t at,
                 uint32_t len)
{
    struct qhca_sge to = sge(d, at, len);

    CHECK(gqp_post_recv(&d->qp[i], id, &to, 1), "the ring is full");
}

static struct gwr work(const struct set *t, unsigned from, uint8_t opcode,
                       uint64_t id, uint32_t at, uint32_t len, uint32_t to)
{
    return (struct gwr){
        .opcode = opcode, .flags = QHCA_WQE_F_SIGNALED, .wr_id = id,
        .imm = (uint32_t)id, .num_sge = 1,
        .sge[0] = sge(&t->side[from], at, len), .remote_addr = IOVA + to,
        .rkey = t->side[!from].mr.key,
    };
}

static void post(struct gqp *qp, struct gwr w)
{
    CHECK(gqp_post_send(qp, &w), "the ring is full");
}

static void build_rc(struct scene *s)
{
    struct set *t = open_set(s);
    struct side *a = &t->side[A], *b = &t->side[B];
    struct gwr w;
    unsigned i;

    for (i = 0; i < 2; i++) {
        make_qp(a, i, QHCA_QPT_RC, NULL);
        make_qp(b, i, QHCA_QPT_RC, NULL);
        connect(t, i);
    }
    s->lose = 9;
    for (i = 0; i < 4; i++) {
        recv(b, 0, 0x100 + i, RECV + 512 * i, 512);
    }
    recv(a, 0, 0x200, RECV, 1024);
    recv(b, 1, 0x300, RECV + 1900, 100);
    post(&a->qp[0], work(t, A, QHCA_WQE_SEND, 1, SOURCE, 500, 0));
    post(&a->qp[0], work(t, A, QHCA_WQE_RDMA_WRITE_IMM, 2, 100, 700, TARGET));
    post(&a->qp[0], work(t, A, QHCA_WQE_RDMA_READ, 3, RESULT, 900, SOURCE));
    w = work(t, A, QHCA_WQE_FETCH_ADD, 4, RESULT + 1000, 8, TARGET + 1024);
    w.arg0 = 5;
    post(&a->qp[0], w);
    w.wr_id = 5;
    w.opcode = QHCA_WQE_COMP_SWAP;
    w.sge[0].addr += 8;
    w.arg1 = 77;
    post(&a->qp[0], w);
    post(&a->qp[0], work(t, A, QHCA_WQE_SEND_IMM, 6, 30, 300, 0));
    w = work(t, A, QHCA_WQE_SEND, 7, 40, 80, 0);
    w.flags |= QHCA_WQE_F_FENCE;
    post(&a->qp[0], w);
    post(&b->qp[0], work(t, B, QHCA_WQE_SEND, 8, SOURCE, 1000, 0));
    post(&b->qp[0], work(t, B, QHCA_WQE_RDMA_READ, 9, RESULT, 600, 1000));
    post(&b->qp[0], work(t, B, QHCA_WQE_RDMA_WRITE, 10, 10, 800, TARGET));
    post(&a->qp[1], work(t, A, QHCA_WQE_RDMA_READ, 11, RESULT + 1200, 700,
                         20));
    post(&a->qp[1], work(t, A, QHCA_WQE_SEND, 12, 7, 100, 0));
    gqp_ring(&a->qp[0]);
    gqp_ring(&b->qp[0]);
    gqp_ring(&a->qp[1]);
}

/*
 * Timers run: QP 0 of A waits for the answer to a packet that is lost, QP 1
 * until B has a receive, which it has by now.
 */
static void build_timer(struct scene *s)
{
    struct set *t = open_set(s);
    struct side *a = &t->side[A], *b = &t->side[B];
    unsigned i;

    s->lose = 1;
    for (i = 0; i < 2; i++) {
        make_qp(a, i, QHCA_QPT_RC, NULL);
        make_qp(b, i, QHCA_QPT_RC, NULL);
        connect(t, i);
        post(&a->qp[i], work(t, A, QHCA_WQE_SEND, i, 0, 200 + i, 0));
        gqp_ring(&a->qp[i]);
    }
    recv(b, 0, 0x100, RECV, 500);
    while (!qhca_stat(a->g->n->e, QHCA_STAT_ROCE_RNR_NAK_RX)) {
        CHECK(scene_deliver(s) || world_step(&s->w), "no RNR NAK");
    }
    recv(b, 1, 0x200, RECV + 500, 500);
}

/* ---- datagrams ---- */

static const uint8_t group[16] = {
    [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 1, [14] = 2, [15] = 3
};

static void build_ud(struct scene *s)
{
    struct set *t = open_set(s);
    struct side *a = &t->side[A], *b = &t->side[B];
    struct qhca_mcg in;
    struct gqp_attr at;
    struct gwr w;
    unsigned i;

    gqp_attr_default(&at);
    for (i = 0; i < SCENE_NODES; i++) {
        make_qp(&t->side[i], 0, QHCA_QPT_UD, NULL);
        gqp_to_init(&t->side[i].qp[0], &at);
        gqp_to_rtr(&t->side[i].qp[0], NULL, &at);
        gqp_to_rts(&t->side[i].qp[0], &at);
    }
    memset(&in, 0, sizeof(in));
    memcpy(in.mgid, group, sizeof(in.mgid));
    guest_must(b->g, &(struct gcmd){
        .op = QHCA_CMD_ATTACH_MC, .obj = b->qp[0].qpn, .in = &in,
        .in_len = sizeof(in),
    });
    for (i = 0; i < 7; i++) {
        recv(b, 0, 0x100 + i, RECV + 600 * i, 600);
    }
    for (i = 0; i < 6; i++) {
        w = work(t, A, i & 1 ? QHCA_WQE_SEND_IMM : QHCA_WQE_SEND, i,
                 10 * i, 100 + 50 * i, 0);
        guest_av(a->g, &s->w.node[B], i & 1, &w.av);
        w.dest_qpn = b->qp[0].qpn;
        w.qkey = at.qkey;
        if (i > 3) {
            memcpy(w.av.dgid, group, sizeof(group));
            memcpy(w.av.dmac, "\x01\x00\x5e\x01\x02\x03", 6);
            w.av.sgid_index = 0;
            w.dest_qpn = QHCA_QPN_MULTICAST;
        }
        post(&a->qp[0], w);
    }
    gqp_ring(&a->qp[0]);
}

/* ---- shared receive queues, XRC ---- */

static void fill_srq(struct side *d, unsigned i, uint64_t id, uint32_t at)
{
    struct qhca_sge to;
    uint32_t wqe;
    unsigned k;

    for (k = 0; k < 4; k++) {
        to = sge(d, at + 500 * k, 500);
        CHECK(gsrq_post(&d->srq[i], id + k, &to, 1, &wqe), "full");
    }
}

/* QP 0 of A is an initiator, and that of B its target. */
static void make_xrc(struct set *t, uint32_t xrcd)
{
    struct side *a = &t->side[A], *b = &t->side[B];

    gqp_create(&a->qp[0], a->g, &(struct gqp_init){
        .type = QHCA_QPT_XRC_INI, .sq_shift = 4, .sq_stride = 7,
        .scq = &a->cq,
    });
    gqp_create(&b->qp[0], b->g, &(struct gqp_init){
        .type = QHCA_QPT_XRC_TGT, .xrcd = xrcd,
    });
    connect(t, 0);
}

static void build_srq(struct scene *s)
{
    struct set *t = open_set(s);
    struct side *a = &t->side[A], *b = &t->side[B];
    uint32_t xrcd = guest_create(b->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    struct gwr w;
    unsigned i;

    gsrq_create(&b->srq[0], b->g, 3, 5, NULL, NULL);
    gsrq_create_xrc(&b->srq[1], b->g, 3, 5, b->g->pd, xrcd, &b->cq);
    fill_srq(b, 0, 0x100, RECV);
    fill_srq(b, 1, 0x200, TARGET);
    make_xrc(t, xrcd);
    for (i = 1; i < 3; i++) {
        make_qp(a, i, QHCA_QPT_RC, NULL);
        make_qp(b, i, QHCA_QPT_RC, &b->srq[0]);
        connect(t, i);
    }
    for (i = 0; i < 3; i++) {
        w = work(t, A, QHCA_WQE_SEND, 10 * i, 100 * i, 400 + i, 0);
        w.srqn = b->srq[1].srqn;
        post(&a->qp[i], w);
        w.wr_id++;
        w.opcode = i ? QHCA_WQE_RDMA_READ : QHCA_WQE_SEND_IMM;
        w.sge[0].addr = IOVA + (i ? RESULT + 500 * i : 1000);
        post(&a->qp[i], w);
    }
    for (i = 0; i < 3; i++) {
        gqp_ring(&a->qp[i]);
    }
}

/* ---- tag matching ---- */

/* Write the header of a message for @tag at @at of A's region. */
static void tagged(struct side *a, uint32_t at, uint8_t kind, uint8_t tag)
{
    uint8_t h[16] = { kind, [4] = 9, [15] = tag };

    gbuf_write(&a->mr.buf, at, h, sizeof(h));
}

static void build_tm(struct scene *s)
{
    struct set *t = open_set(s);
    struct side *a = &t->side[A], *b = &t->side[B];
    struct gtm_init ti = {
        .cq = &b->cq, .max_tags = 8, .ops_shift = 3, .ops_stride = 7,
    };
    struct gtm_op op = {
        .opcode = QHCA_WQE_TAG_ADD, .mask = UINT64_MAX, .num_sge = 1,
    };
    uint8_t rvh[16];
    unsigned i;

    gsrq_create_tm(&b->srq[0], b->g, 3, 5, NULL, NULL, &ti);
    fill_srq(b, 0, 0x100, RECV);
    make_qp(a, 0, QHCA_QPT_RC, NULL);
    gqp_create(&b->qp[0], b->g, &(struct gqp_init){
        .type = QHCA_QPT_RC, .scq = &b->cq, .rcq = &b->cq, .srq = &b->srq[0],
    });
    connect(t, 0);
    for (i = 0; i < 4; i++) {
        op.handle = i;
        op.tag = 1 + i;
        op.recv_wr_id = 0x700 + i;
        op.sge[0] = sge(b, TARGET + 1000 * i, 1000);
        CHECK(gtm_post(&b->srq[0], &op, NULL), "full");
    }
    gtm_ring(&b->srq[0]);
    world_run(&s->w, 10000);
    recv(a, 0, 0x200, RECV, 100);       /* what ends a rendezvous */
    tagged(a, 0, QHCA_TMH_EAGER, 2);
    tagged(a, 600, QHCA_TMH_RNDV, 3);
    qhca_put_be64(rvh, IOVA + 700);
    qhca_put_be32(rvh + 8, a->mr.key);
    qhca_put_be32(rvh + 12, 900);
    gbuf_write(&a->mr.buf, 616, rvh, sizeof(rvh));
    tagged(a, 1700, QHCA_TMH_EAGER, 99);        /* no tag matches */
    post(&a->qp[0], work(t, A, QHCA_WQE_SEND, 1, 0, 550, 0));
    post(&a->qp[0], work(t, A, QHCA_WQE_SEND, 2, 600, 32, 0));
    post(&a->qp[0], work(t, A, QHCA_WQE_SEND, 3, 1700, 300, 0));
    gqp_ring(&a->qp[0]);
}

/* ---- missing pages ---- */

/* A region of four pages, all of them missing. */
static uint32_t make_paged(struct scene *s, unsigned node)
{
    struct guest *g = &s->g[node];
    uint64_t table = gmem_alloc(g->m, GMEM_PAGE, 12, 0);
    struct qhca_mpt c;

    memset(&c, 0, sizeof(c));
    c.buf = (struct qhca_buf){
        .addr = table, .len = 4 * GMEM_PAGE, .entries = 4,
        .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12,
    };
    c.iova = 2 * IOVA;
    c.len = 4 * GMEM_PAGE;
    c.pd = g->pd;
    c.access = QHCA_ACCESS_MASK;
    c.flags = QHCA_MR_F_ODP;
    add_area(s, node, table, 4 * GMEM_PAGE, true);
    return guest_create(g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
}

static void build_odp(struct scene *s)
{
    struct set *t = open_set(s);
    struct side *a = &t->side[A], *b = &t->side[B];
    uint32_t key = make_paged(s, B), mine = make_paged(s, A);
    struct qhca_sge to = { .addr = 2 * IOVA + 4096, .len = 900,
                           .lkey = key };
    struct gwr w;
    unsigned i;

    for (i = 0; i < 3; i++) {
        make_qp(a, i, QHCA_QPT_RC, NULL);
        make_qp(b, i, QHCA_QPT_RC, NULL);
        connect(t, i);
    }
    CHECK(gqp_post_recv(&b->qp[0], 0x100, &to, 1), "full");
    post(&a->qp[0], work(t, A, QHCA_WQE_SEND, 1, 3, 800, 0));
    w = work(t, A, QHCA_WQE_RDMA_WRITE, 2, 50, 700, 0);
    w.remote_addr = 2 * IOVA + 4000;
    w.rkey = key;
    post(&a->qp[0], w);
    w = work(t, A, QHCA_WQE_RDMA_READ, 3, RESULT, 600, 0);
    w.remote_addr = 2 * IOVA + 8192;
    w.rkey = key;
    post(&a->qp[1], w);
    /* READ responses go to missing pages; data to send is missing, too */
    w = work(t, A, QHCA_WQE_RDMA_READ, 4, 0, 500, 200);
    w.sge[0] = (struct qhca_sge){ .addr = 2 * IOVA, .len = 500,
                                  .lkey = mine };
    post(&a->qp[2], w);
    w = work(t, B, QHCA_WQE_RDMA_WRITE, 5, 0, 300, TARGET);
    w.sge[0] = (struct qhca_sge){ .addr = 2 * IOVA + 12288, .len = 300,
                                  .lkey = key };
    post(&b->qp[2], w);
    for (i = 0; i < 3; i++) {
        gqp_ring(&a->qp[i]);
    }
    gqp_ring(&b->qp[2]);
}

/* ---- memory windows ---- */

static void build_mw(struct scene *s)
{
    static const uint8_t types[] = { QHCA_MR_F_MW1, QHCA_MR_F_MW2 };
    struct set *t = open_set(s);
    struct side *a = &t->side[A], *b = &t->side[B];
    uint32_t key[3];
    struct gwr w;
    unsigned i;

    make_qp(a, 0, QHCA_QPT_RC, NULL);
    make_qp(b, 0, QHCA_QPT_RC, NULL);
    connect(t, 0);
    for (i = 0; i < 3; i++) {   /* the last one stays free */
        struct qhca_mpt c = { .flags = types[i & 1], .pd = b->g->pd,
                              .key = 0x44 };

        key[i] = guest_create(b->g, QHCA_CMD_CREATE_MW, &c, sizeof(c)) + 1;
    }
    for (i = 0; i < 2; i++) {
        post(&b->qp[0], (struct gwr){
            .opcode = QHCA_WQE_BIND_MW, .flags = QHCA_WQE_F_SIGNALED,
            .wr_id = 0x20 + i, .arg0 = IOVA + TARGET + 1024 * i,
            .arg1 = 1024, .remote_addr = b->mr.key, .rkey = key[i],
            .rarg = QHCA_ACCESS_REMOTE_WRITE | QHCA_ACCESS_REMOTE_READ,
        });
    }
    gqp_ring(&b->qp[0]);
    world_run(&s->w, 10000);
    recv(b, 0, 0x100, RECV, 200);
    for (i = 0; i < 2; i++) {
        w = work(t, A, QHCA_WQE_RDMA_WRITE, i, 60 * i, 900,
                 TARGET + 1024 * i);
        w.rkey = key[i];
        post(&a->qp[0], w);
        w = work(t, A, QHCA_WQE_RDMA_READ, 2 + i, RESULT + 1000 * i, 700,
                 TARGET + 1024 * i);
        w.rkey = key[i];
        post(&a->qp[0], w);
    }
    w = work(t, A, QHCA_WQE_SEND_INV, 4, 0, 100, 0);
    w.imm = key[1];
    post(&a->qp[0], w);
    gqp_ring(&a->qp[0]);
}

/* ---- device memory ---- */

#define DM_AT 1024u             /* where the region starts in it */
#define DM_LEN 2560u
#define DM_IOVA (2 * IOVA)

/* Fill the device memory of @node: a page, which the scene keeps as memory. */
static void fill_dm(struct scene *s, unsigned node)
{
    struct gmem *m = &s->w.node[node].mem;
    uint64_t at = m->base + GMEM_SPAN / 2;
    uint8_t *p;
    unsigned i;

    CHECK(!node_dm_off(&s->w.node[node], at), "device memory is elsewhere");
    gmem_map_page(m, at);
    p = gmem_ptr(m, at, GMEM_PAGE);
    for (i = 0; i < GMEM_PAGE; i++) {
        p[i] = (uint8_t)(i * 11 + (i >> 8) * 3 + node * 50);
    }
    add_area(s, node, at, GMEM_PAGE, false);
}

/* Its middle, as a region. */
static uint32_t dm_region(struct guest *g)
{
    struct qhca_mpt c;

    memset(&c, 0, sizeof(c));
    c.buf = (struct qhca_buf){ .form = QHCA_BUF_DIRECT, .addr = DM_AT,
                               .len = DM_LEN };
    c.iova = DM_IOVA;
    c.len = DM_LEN;
    c.pd = g->pd;
    c.access = QHCA_ACCESS_MASK;
    c.flags = QHCA_MR_F_DM;
    c.key = 0x44;
    return guest_create(g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
}

static struct qhca_sge dm_sge(uint32_t key, uint32_t at, uint32_t len)
{
    return (struct qhca_sge){ .addr = DM_IOVA + at, .len = len, .lkey = key };
}

/*
 * Messages from device memory and into it, at both sides: READs, WRITEs, atomics
 * and a SEND.  The frames on the wire do not have all that it holds.
 */
static void build_dm(struct scene *s)
{
    struct side *a, *b;
    struct qhca_sge to;
    uint32_t key[2];
    struct set *t;
    struct gwr w;

    fill_dm(s, A);              /* before anything else gets these pages */
    fill_dm(s, B);
    t = open_set(s);
    a = &t->side[A];
    b = &t->side[B];
    key[A] = dm_region(a->g);
    key[B] = dm_region(b->g);
    make_qp(a, 0, QHCA_QPT_RC, NULL);
    make_qp(b, 0, QHCA_QPT_RC, NULL);
    connect(t, 0);
    to = dm_sge(key[B], 1000, 700);
    CHECK(gqp_post_recv(&b->qp[0], 0x100, &to, 1), "full");
    w = work(t, A, QHCA_WQE_RDMA_WRITE, 1, 100, 700, 0);
    w.remote_addr = DM_IOVA + 8;
    w.rkey = key[B];
    post(&a->qp[0], w);
    w = work(t, A, QHCA_WQE_SEND, 2, 0, 0, 0);
    w.sge[0] = dm_sge(key[A], 64, 650);
    post(&a->qp[0], w);
    w = work(t, A, QHCA_WQE_FETCH_ADD, 3, RESULT, 8, 0);
    w.remote_addr = DM_IOVA + 800;
    w.rkey = key[B];
    w.arg0 = 5;
    post(&a->qp[0], w);
    w = work(t, A, QHCA_WQE_RDMA_READ, 4, 0, 0, 0);
    w.sge[0] = dm_sge(key[A], 900, 600);
    w.remote_addr = DM_IOVA + 1900;
    w.rkey = key[B];
    post(&a->qp[0], w);
    w = work(t, B, QHCA_WQE_RDMA_READ, 5, RESULT, 600, 0);
    w.remote_addr = DM_IOVA + 1600;
    w.rkey = key[A];
    post(&b->qp[0], w);
    w = work(t, B, QHCA_WQE_RDMA_WRITE, 6, 0, 0, TARGET);
    w.sge[0] = dm_sge(key[B], 2200, 360);
    post(&b->qp[0], w);
    gqp_ring(&a->qp[0]);
    gqp_ring(&b->qp[0]);
}

/* ---- a CQ that is being resized ---- */

#define FULL_SHIFT 8
#define FULL_CQES 150u
#define LIST_MAX 256u
#define LIST_LAST 215u          /* leaves a share for some pages of CQEs */

/* Put a command into the queue; its answer is regarded as read. */
static void command(struct guest *g, const struct qhca_aq_cmd *cmd)
{
    uint32_t slot = g->asq_prod++ & ((1u << g->aq_shift) - 1);

    memcpy(gmem_ptr(g->m, g->asq + slot * sizeof(*cmd), sizeof(*cmd)), cmd,
           sizeof(*cmd));
    g->acq_cons++;
}

/*
 * Resize the CQ @cq, which has FULL_CQES.  So few would be copied at once, but
 * the commands before it use up nearly all that a call may do.
 */
static void resize(struct scene *s, struct gcq *cq)
{
    struct guest *g = cq->g;
    struct qhca_cq_resize *r = &g->n->e->q->resize;
    uint64_t ring = gmem_alloc(g->m, sizeof(struct qhca_cqe) <<
                               (FULL_SHIFT + 1), 12, 0);
    uint32_t slot;
    struct qhca_mac *list = gmem_ptr(g->m, g->in, sizeof(*list) * LIST_MAX);
    struct qhca_cqc *c = gmem_ptr(g->m, g->in + 2048, sizeof(*c));
    struct qhca_aq_cmd cmd;
    unsigned i;

    _Static_assert(sizeof(*list) * LIST_MAX <= 2048, "the mailbox has both");
    for (i = 0; i < LIST_MAX; i++) {
        list[i] = (struct qhca_mac){ .mac = { 0x33, 0x33, [5] = (uint8_t)i } };
    }
    memset(c, 0, sizeof(*c));
    c->buf = (struct qhca_buf){
        .form = QHCA_BUF_DIRECT, .addr = ring,
        .len = sizeof(struct qhca_cqe) << (FULL_SHIFT + 1),
    };
    c->shift = FULL_SHIFT + 1;
    for (i = 0; i < 4; i++) {
        memset(&cmd, 0, sizeof(cmd));
        cmd.opcode = QHCA_CMD_SET_MC_LIST;
        cmd.cmd_id = (uint16_t)i;
        cmd.in_addr = g->in;
        cmd.in_len = sizeof(*list) * (i < 3 ? LIST_MAX : LIST_LAST);
        command(g, &cmd);
    }
    memset(&cmd, 0, sizeof(cmd));
    cmd.opcode = QHCA_CMD_MODIFY_CQ;
    cmd.cmd_id = 77;
    cmd.obj = cq->cqn;
    cmd.in_addr = g->in + 2048;
    cmd.in_len = sizeof(*c);
    cmd.mask = QHCA_CQ_M_RESIZE;
    slot = g->asq_prod & ((1u << g->aq_shift) - 1);
    command(g, &cmd);
    node_reg_write(g->n, QHCA_REG_ASQ_DB, g->asq_prod, 4);
    CHECK(g->n->e->ad->job.busy && r->pos != r->cons &&
          r->pos - r->cons < FULL_CQES, "%u CQEs are copied",
          r->pos - r->cons);
    /* The outcome: what is in the new ring, and the answer. */
    CHECK(s->cqs < SCENE_CQS, "too many CQs");
    s->cq[s->cqs++] = (struct scene_cq){
        .node = g->n->id, .addr = ring, .shift = FULL_SHIFT + 1,
    };
    add_area(s, g->n->id, g->acq + slot * sizeof(struct qhca_aq_cqe),
             sizeof(struct qhca_aq_cqe), false);
}

/* Completions arrive while a resize is half done. */
static void build_resize(struct scene *s)
{
    struct set *t = open_set(s);
    struct side *a = &t->side[A];
    unsigned i;

    gcq_create(&a->full, a->g, FULL_SHIFT, NULL, a->g->eq[1].eqn);
    gqp_create(&a->qp[0], a->g, &(struct gqp_init){
        .type = QHCA_QPT_RC, .sq_shift = FULL_SHIFT, .sq_stride = 7,
        .rq_shift = 3, .rq_stride = 5, .scq = &a->full, .rcq = &a->cq,
    });
    make_qp(&t->side[B], 0, QHCA_QPT_RC, NULL);
    connect(t, 0);
    for (i = 0; i < FULL_CQES; i++) {
        post(&a->qp[0], work(t, A, QHCA_WQE_RDMA_WRITE, i, i, 8,
                             TARGET + 8 * i));
    }
    gqp_ring(&a->qp[0]);
    while (scene_step(s) || world_step(&s->w)) {
    }
    for (; i < FULL_CQES + 10; i++) {
        post(&a->qp[0], work(t, A, QHCA_WQE_RDMA_READ, i, RESULT + 8 * i, 8,
                             i));
    }
    gqp_ring(&a->qp[0]);
    resize(s, &a->full);
}

/* ---- Ethernet frames ---- */

/* A UDP frame of @len bytes at @b, from A to B. */
static void udp_frame(const struct scene *s, uint8_t *b, uint32_t len,
                      uint8_t port)
{
    memset(b, 0, 42);
    memcpy(b, s->w.node[B].mac, 6);
    memcpy(b + 6, s->w.node[A].mac, 6);
    qhca_put_be16(b + 12, 0x0800);
    b[14] = 0x45;
    qhca_put_be16(b + 16, (uint16_t)(len - 14));
    b[22] = 64;
    b[23] = QHCA_PROTO_UDP;
    memcpy(b + 26, "\x0a\0\0\1\x0a\0\0\2", 8);
    qhca_put_be16(b + 34, 1000 + port);
    qhca_put_be16(b + 36, 2000);
    qhca_put_be16(b + 38, (uint16_t)(len - 34));
}

static void raw_qp(struct side *d, unsigned i)
{
    uint8_t st;

    make_qp(d, i, QHCA_QPT_RAW, NULL);
    for (st = QHCA_QPS_INIT; st <= QHCA_QPS_RTS; st++) {
        CHECK(gqp_state(&d->qp[i], st) == QHCA_ST_OK, "MODIFY_QP");
    }
}

static uint32_t add_flow(struct guest *g, uint32_t qpn, uint8_t type,
                         uint8_t proto)
{
    struct qhca_flow f;

    memset(&f, 0, sizeof(f));
    f.qpn = qpn;
    f.type = type;
    f.tag = 0x70 + type;
    if (type == QHCA_FLOW_NORMAL) {
        f.value.l4 = proto;
        f.mask.l4 = 0xff;
        f.priority = proto;
    }
    return guest_create(g, QHCA_CMD_CREATE_FLOW, &f, sizeof(f));
}

static void build_raw(struct scene *s)
{
    struct set *t = open_set(s);
    struct side *a = &t->side[A], *b = &t->side[B];
    uint8_t frame[42];
    unsigned i;

    raw_qp(a, 0);
    raw_qp(b, 0);
    raw_qp(b, 1);
    add_flow(b->g, b->qp[0].qpn, QHCA_FLOW_NORMAL, QHCA_PROTO_UDP);
    add_flow(b->g, b->qp[1].qpn, QHCA_FLOW_SNIFFER, 0);
    add_flow(b->g, b->qp[1].qpn, QHCA_FLOW_ALL_DEFAULT, 0);
    for (i = 0; i < 6; i++) {
        recv(b, 0, 0x100 + i, RECV + 400 * i, 400);
        recv(b, 1, 0x200 + i, RECV + 2400 + 400 * i, 400);
        udp_frame(s, frame, 100 + 30 * i, (uint8_t)i);
        gbuf_write(&a->mr.buf, 300 * i, frame, sizeof(frame));
        post(&a->qp[0], work(t, A, QHCA_WQE_RAW_SEND, i, 300 * i,
                             100 + 30 * i, 0));
    }
    gqp_ring(&a->qp[0]);
}

/* ---- Ethernet queues ---- */

#define RQ_SHIFT 4
#define RQ_BUF 1024u
#define RQ_PAGES (1u + (RQ_BUF << RQ_SHIFT) / GMEM_PAGE)

/*
 * An Ethernet RQ with all its buffers posted: a page for rings and records,
 * then the buffers, which with header/data split belong to both rings.
 */
static uint32_t eth_rq(struct set *t, unsigned node, uint8_t flags)
{
    struct side *d = &t->side[node];
    uint64_t at = gmem_alloc(d->g->m, RQ_PAGES * GMEM_PAGE, 12, 0);
    struct qhca_eth_seg *seg = gmem_ptr(d->g->m, at, GMEM_PAGE);
    uint32_t *dbrec = gmem_ptr(d->g->m, at + 2048, 16);
    bool split = flags & QHCA_ETH_Q_F_HDS;
    uint8_t shift = split ? RQ_SHIFT - 1 : RQ_SHIFT;
    struct qhca_eth_qc c;
    unsigned i;

    for (i = 0; i < 1u << RQ_SHIFT; i++) {
        seg[i] = (struct qhca_eth_seg){
            .addr = at + GMEM_PAGE + i * RQ_BUF, .len = RQ_BUF,
        };
    }
    dbrec[0] = dbrec[2] = 1u << shift;
    memset(&c, 0, sizeof(c));
    c.buf = (struct qhca_buf){ .form = QHCA_BUF_DIRECT, .addr = at,
                               .len = 16u << shift };
    c.dbrec = at + 2048;
    c.cqn = d->cq.cqn;
    c.shift = shift;
    c.stride = 4;
    c.flags = flags;
    if (split) {
        c.data_buf = c.buf;
        c.data_buf.addr += c.buf.len;
        c.data_dbrec = at + 2056;
        c.data_shift = shift;
    }
    add_area(t->s, node, at + GMEM_PAGE, RQ_BUF << RQ_SHIFT, false);
    return guest_create(d->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
}

static void set_port(struct guest *g, uint64_t mask, uint32_t num)
{
    struct qhca_port port = { .eth_rqn = num, .eth_qpn = num };

    guest_must(g, &(struct gcmd){
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = mask,
    });
}

/* A large send of TCP: @len bytes of payload, WQE @i of the ring at @ring. */
static void large(struct set *t, uint64_t ring, unsigned i, uint32_t len)
{
    struct side *a = &t->side[A];
    uint64_t at = gbuf_addr(&a->mr.buf, RECV + 2048 * i, NULL);
    uint8_t *f = gmem_ptr(a->g->m, at, 54);
    struct {
        struct qhca_eth_wqe h;
        struct qhca_eth_seg seg;
    } w;

    udp_frame(t->s, f, 54 + len, (uint8_t)i);
    memset(f + 38, 0, 16);
    f[23] = QHCA_PROTO_TCP;
    f[46] = 0x50;
    f[47] = 0x10;               /* ACK */
    memset(&w, 0, sizeof(w));
    w.h.opcode = QHCA_WQE_ETH_SEND;
    w.h.flags = QHCA_WQE_F_ETH_LSO | QHCA_WQE_F_SIGNALED;
    w.h.num_sge = 1;
    w.h.mss = 200;
    w.h.hdr_len = 54;
    w.seg = (struct qhca_eth_seg){ .addr = at, .len = 54 + len };
    memcpy(gmem_ptr(a->g->m, ring + (i << 7), sizeof(w)), &w, sizeof(w));
}

/* Two large sends of A, through @shaper; B merges their frames. */
static void send_through(struct set *t, uint32_t shaper)
{
    struct side *a = &t->side[A], *b = &t->side[B];
    uint64_t ring = gmem_alloc(a->g->m, GMEM_PAGE, 12, 0);
    struct qhca_mac list = { .mac = "\x33\x33\0\0\0\x01" };
    struct qhca_eth_qc c;
    uint32_t sqn;

    memset(&c, 0, sizeof(c));
    c.buf = (struct qhca_buf){ .form = QHCA_BUF_DIRECT, .addr = ring,
                               .len = 1024 };
    c.cqn = a->cq.cqn;
    c.shift = 3;
    c.stride = 7;
    c.shaper = shaper;
    sqn = guest_create(a->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    set_port(b->g, QHCA_PORT_M_ETH_RQN, eth_rq(t, B, QHCA_ETH_Q_F_GRO));
    guest_must(b->g, &(struct gcmd){
        .op = QHCA_CMD_SET_MC_LIST, .in = &list, .in_len = sizeof(list),
    });
    large(t, ring, 0, 1900);
    large(t, ring, 1, 1500);
    t->s->w.wire.refuse = shaper ? 0 : 16384;      /* a frame in four */
    guest_doorbell(a->g, 0, QHCA_DB_ETH_SQ,
                   sqn | 2ULL << QHCA_DB_INDEX_SHIFT);
}

/* The wire does not accept them at once. */
static void build_eth(struct scene *s)
{
    send_through(open_set(s), QHCA_SHAPER_NONE);
}

/* A shaper does not let them through at once, nor does its parent. */
static void build_shaper(struct scene *s)
{
    struct set *t = open_set(s);
    struct guest *g = t->side[A].g;
    struct qhca_shaperc c = { .rate = 20000000, .burst = 300, .weight = 1 };

    c.parent = guest_create(g, QHCA_CMD_CREATE_SHAPER, &c, sizeof(c));
    c.rate = 10000000;
    c.weight = 7;
    send_through(t, guest_create(g, QHCA_CMD_CREATE_SHAPER, &c, sizeof(c)));
}

/* An RQ table of @n queues of this kind, and an RSS QP over it. */
static uint32_t spread(struct guest *g, uint64_t kind, const uint32_t *num,
                       unsigned n)
{
    struct gcmd table = {
        .op = QHCA_CMD_CREATE_RQT, .in = num, .in_len = 4 * n, .arg = kind,
    };
    struct qhca_qpc c;
    unsigned i;

    c = guest_rss_context(g, guest_must(g, &table), QHCA_HASH_SRC_IPV4 |
                          QHCA_HASH_DST_IPV4);
    for (i = 0; i < sizeof(c.rx_hash_key); i++) {
        c.rx_hash_key[i] = (uint8_t)(i * 37 + 11);
    }
    return guest_create(g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
}

/* A WQ of @d in RDY with four receives. */
static uint32_t make_wq(struct side *d, uint64_t id, uint32_t at)
{
    uint64_t ring = gmem_alloc(d->g->m, GMEM_PAGE, 12, 0);
    struct qhca_wqc c;
    uint32_t wqn;
    unsigned i;

    memset(&c, 0, sizeof(c));
    c.buf = (struct qhca_buf){ .form = QHCA_BUF_DIRECT, .addr = ring,
                               .len = 128 };
    c.dbrec = ring + 2048;
    c.pd = d->g->pd;
    c.uar = d->g->uar;
    c.cqn = d->cq.cqn;
    c.shift = 2;
    c.stride = 5;
    for (i = 0; i < 4; i++) {
        struct {
            struct qhca_rq_wqe h;
            struct qhca_sge sge;
        } w = {
            .h = { .wr_id = id + i, .num_sge = 1 },
            .sge = sge(d, at + 500 * i, 500),
        };

        memcpy(gmem_ptr(d->g->m, ring + 32 * i, 32), &w, 32);
    }
    guest_dbrec_set(d->g, c.dbrec, 4);
    wqn = guest_create(d->g, QHCA_CMD_CREATE_WQ, &c, sizeof(c));
    c.state = QHCA_WQS_RDY;
    guest_must(d->g, &(struct gcmd){
        .op = QHCA_CMD_MODIFY_WQ, .obj = wqn, .in = &c, .in_len = sizeof(c),
        .mask = QHCA_WQ_M_STATE,
    });
    return wqn;
}

/* B spreads UDP over its WQs, all else over its Ethernet RQs. */
static void build_rss(struct scene *s)
{
    struct set *t = open_set(s);
    struct side *b = &t->side[B];
    uint32_t rq[4], wq[2];
    struct made m;
    uint8_t f[600];
    struct rng r;
    unsigned i;

    rq[0] = rq[3] = eth_rq(t, B, 0);
    rq[1] = eth_rq(t, B, QHCA_ETH_Q_F_HDS);
    rq[2] = eth_rq(t, B, 0);
    wq[0] = make_wq(b, 0x100, RECV);
    wq[1] = make_wq(b, 0x200, TARGET);
    set_port(b->g, QHCA_PORT_M_ETH_QPN, spread(b->g, QHCA_RQT_ETH_RQ, rq, 4));
    add_flow(b->g, spread(b->g, QHCA_RQT_WQ, wq, 2), QHCA_FLOW_NORMAL,
             QHCA_PROTO_UDP);
    rng_init(&r, 4);
    for (i = 0; i < 12; i++) {
        memset(f, (int)i, sizeof(f));
        udp_frame(s, f, 60 + 30 * i, (uint8_t)i);
        f[29] = (uint8_t)(1 + i * 13);
        if (i < 6) {
            scene_put(s, A, f, 60 + 30 * i);
        }
        do {
            made_frame(&m, &r, s->w.node[B].mac, NOTHING);
        } while (m.len > 700);
        scene_put(s, A, m.b, (uint32_t)m.len);
    }
}

const struct scene_kind scene_kinds[] = {
    { "rc", build_rc, 11 },
    { "timer", build_timer, 0 },
    { "ud", build_ud, 3 },
    { "srq", build_srq, 4 },
    { "tm", build_tm, 6 },
    { "odp", build_odp, 8 },
    { "mw", build_mw, 7 },
    { "dm", build_dm, 6 },
    { "resize", build_resize, 0 },
    { "raw", build_raw, 3 },
    { "eth", build_eth, 5 },
    { "shaper", build_shaper, 5 },
    { "rss", build_rss, 7 },
    { NULL, NULL, 0 }
};
