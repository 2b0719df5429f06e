/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The maximum work of one call of the engine.  QEMU's big lock is held
 * meanwhile, so whatever a guest or a peer requests, there is a limit: on
 * accesses to memory, on their bytes and on frames.  Each scene asks for as
 * much as its kind of work allows; what is left must be done by later calls.
 *
 * The test does its own counting, in the adapter's table of operations; it does
 * not use the engine's accounts.
 */
#include <stdio.h>

#include "bigpkt.h"
#include "unit.h"

/* The budget of one call.  Copies: of frames, for raw packet QPs. */
#define CALLS_MAX   14000u
#define BYTES_MAX   (4u << 20)
#define FRAMES_MAX  512u
#define COPIES_MAX  16384u

#define IOVA        0x500000000000ull
#define PAGE        4096u
#define REGION      (1u << 20)
#define SGES        30u

/* Each access to a page of its own takes three more. */
static const struct gbuf_shape tree = { QHCA_BUF_TREE, 3, 12, 12 };

struct cost {
    uint64_t calls, bytes, frames, copies;
};

static struct {
    struct qhca_ops ops;        /* counted calls are passed on to these */
    struct cost now, most;
    uint64_t copies[WORLD_NODES];       /* before this call */
    unsigned engine_calls;
} t;

static void count(size_t bytes)
{
    t.now.calls++;
    t.now.bytes += bytes;
}

static bool count_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    count(len);
    return t.ops.dma_read(opaque, addr, buf, len);
}

static bool count_write(void *opaque, uint64_t addr, const void *buf,
                        size_t len)
{
    count(len);
    return t.ops.dma_write(opaque, addr, buf, len);
}

static bool count_store64(void *opaque, uint64_t addr, uint64_t val)
{
    count(8);
    return t.ops.dma_store64(opaque, addr, val);
}

static bool count_cas64(void *opaque, uint64_t addr, uint64_t cmp,
                        uint64_t swap, uint64_t *old)
{
    count(8);
    return t.ops.dma_cas64(opaque, addr, cmp, swap, old);
}

static bool count_dm_read(void *opaque, uint64_t off, void *buf, size_t len)
{
    count(len);
    return t.ops.dm_read(opaque, off, buf, len);
}

static bool count_dm_write(void *opaque, uint64_t off, const void *buf,
                           size_t len)
{
    count(len);
    return t.ops.dm_write(opaque, off, buf, len);
}

static bool count_dm_cas64(void *opaque, uint64_t off, uint64_t cmp,
                           uint64_t swap, uint64_t *old)
{
    count(8);
    return t.ops.dm_cas64(opaque, off, cmp, swap, old);
}

static enum qhca_wire count_send(void *opaque, const void *frame, size_t len)
{
    t.now.frames++;
    return t.ops.send(opaque, frame, len);
}

static void most(uint64_t *most, uint64_t now)
{
    *most = now > *most ? now : *most;
}

/* Copies of frames for raw packet QPs of @n so far, received or not. */
static uint64_t copies(const struct node *n)
{
    return qhca_stat(n->e, QHCA_STAT_RAW_RX_PACKETS) +
           qhca_stat(n->e, QHCA_STAT_RAW_RX_DROPPED);
}

static void called(struct node *n)
{
    uint64_t *before = &t.copies[n->id];

    t.now.copies = copies(n) - *before;
    *before += t.now.copies;
    t.engine_calls++;
    most(&t.most.calls, t.now.calls);
    most(&t.most.bytes, t.now.bytes);
    most(&t.most.frames, t.now.frames);
    most(&t.most.copies, t.now.copies);
    t.now = (struct cost){ 0 };
}

/* Count from now on, on all nodes, which have the same operations. */
static void watch(struct world *w)
{
    unsigned i;

    memset(&t, 0, sizeof(t));
    t.ops = w->node[0].e->ops;
    for (i = 0; i < w->nodes; i++) {
        struct qhca_ops *ops = &w->node[i].e->ops;

        ops->dma_read = count_read;
        ops->dma_write = count_write;
        ops->dma_store64 = count_store64;
        ops->dma_cas64 = count_cas64;
        ops->dm_read = count_dm_read;
        ops->dm_write = count_dm_write;
        ops->dm_cas64 = count_dm_cas64;
        ops->send = count_send;
        t.copies[i] = copies(&w->node[i]);
        w->node[i].on_call = called;
    }
}

static void within_budget(const char *scene)
{
    printf("%s: %u calls of the engine, at most %u accesses, %u bytes, "
           "%u frames, %u copies\n", scene, t.engine_calls,
           (unsigned)t.most.calls, (unsigned)t.most.bytes,
           (unsigned)t.most.frames, (unsigned)t.most.copies);
    assert_in_range(t.most.calls, 0, CALLS_MAX);
    assert_in_range(t.most.bytes, 0, BYTES_MAX);
    assert_in_range(t.most.frames, 0, FRAMES_MAX);
    assert_in_range(t.most.copies, 0, COPIES_MAX);
}

/* ---- common to the scenes ---- */

static void large_mtu(struct unit *u)
{
    struct qhca_port port = { .mtu = 9216 };

    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, QHCA_PORT_M_MTU,
                              &port, sizeof(port), NULL), QHCA_ST_OK);
}

/* @len bytes in as many SGEs as there can be, each in another page. */
static void scatter(struct qhca_sge *sge, uint32_t key, uint32_t len)
{
    uint32_t part = (len + SGES - 1) / SGES;
    unsigned i;

    for (i = 0; i < SGES; i++) {
        sge[i].addr = IOVA + i * 2 * PAGE + PAGE - part / 2;
        sge[i].len = part < len ? part : len;
        sge[i].lkey = key;
        len -= sge[i].len;
    }
}

static void make_region(struct unit *u, struct gmr *mr)
{
    gmr_create(mr, &u->g, REGION, IOVA, QHCA_ACCESS_MASK, &tree);
    gbuf_allow(&mr->buf, 0, REGION, GMEM_RW);
}

/* A receive queue of @n WQEs, each of which takes @len bytes in small parts. */
static void make_receiver(struct unit *u, struct gqp *qp, struct gcq *cq,
                          const struct gmr *mr, uint8_t type, unsigned n,
                          uint32_t len)
{
    struct gqp_init in = {
        .type = type, .sq_stride = 7, .rq_stride = 9, .sq = &tree, .rq = &tree,
        .scq = cq, .rcq = cq,
    };
    struct qhca_sge sge[SGES];
    struct gqp_attr a;

    while (1u << in.rq_shift < n) {
        in.rq_shift++;
    }
    gcq_create(cq, &u->g, in.rq_shift + 1, &tree, u->g.eq[1].eqn);
    gqp_create(qp, &u->g, &in);
    gqp_attr_default(&a);
    if (type == QHCA_QPT_UD) {
        gqp_to_init(qp, &a);
        gqp_to_rtr(qp, NULL, &a);
        gqp_to_rts(qp, &a);
    } else {
        assert_int_equal(gqp_state(qp, QHCA_QPS_INIT), QHCA_ST_OK);
        assert_int_equal(gqp_state(qp, QHCA_QPS_RTR), QHCA_ST_OK);
        assert_int_equal(gqp_state(qp, QHCA_QPS_RTS), QHCA_ST_OK);
    }
    scatter(sge, mr->key, len);
    while (n--) {
        assert_true(gqp_post_recv(qp, n, sge, SGES));
    }
}

static void free_receiver(struct gqp *qp, struct gcq *cq)
{
    assert_int_equal(gqp_destroy(qp), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(cq), QHCA_ST_OK);
}

static unsigned completions(struct gcq *cq)
{
    struct qhca_cqe c;
    unsigned n = 0;

    while (gcq_poll(cq, &c)) {
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
        n++;
    }
    return n;
}

/* ---- scenes ---- */

#define COPIES 64u              /* members of a group; sniffers of a frame */
#define MESSAGES 40u

/* Each datagram to a group goes to all its members, and each is costly. */
static void multicast(void **state)
{
    static struct gqp qp[COPIES], tx;
    static struct gcq cq[COPIES], tx_cq;
    struct unit *u = *state;
    struct gqp_init in = {
        .type = QHCA_QPT_UD, .sq_shift = 6, .sq_stride = 10, .sq = &tree,
        .scq = &tx_cq, .rcq = &tx_cq,
    };
    struct qhca_mcg mcg = { .mgid = { 0xff, 0x0e, [15] = 9 } };
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .num_sge = SGES,
                      .dest_qpn = 0xffffff };
    struct gqp_attr a;
    unsigned i, got = 0;
    struct gmr mr;

    large_mtu(u);
    make_region(u, &mr);
    gqp_attr_default(&a);
    for (i = 0; i < COPIES; i++) {
        make_receiver(u, &qp[i], &cq[i], &mr, QHCA_QPT_UD, MESSAGES,
                      PAGE + 40);
        assert_int_equal(unit_cmd(u, QHCA_CMD_ATTACH_MC, qp[i].qpn, 0, &mcg,
                                  sizeof(mcg), NULL), QHCA_ST_OK);
    }
    gcq_create(&tx_cq, &u->g, 7, &tree, u->g.eq[1].eqn);
    gqp_create(&tx, &u->g, &in);
    gqp_to_init(&tx, &a);
    gqp_to_rtr(&tx, NULL, &a);
    gqp_to_rts(&tx, &a);
    guest_av(&u->g, u->n, 1, &wr.av);
    memcpy(wr.av.dgid, mcg.mgid, 16);
    memcpy(wr.av.dmac, "\x33\x33\0\0\0\x09", 6);
    wr.qkey = a.qkey;
    scatter(wr.sge, mr.key, PAGE);
    for (i = 0; i < MESSAGES; i++) {
        assert_true(gqp_post_send(&tx, &wr));
    }
    watch(&u->w);
    gqp_ring(&tx);
    assert_true(world_settle(&u->w, 1000000000));
    for (i = 0; i < COPIES; i++) {
        got += completions(&cq[i]);
    }
    assert_int_equal(got, COPIES * MESSAGES);
    within_budget("multicast");
    for (i = 0; i < COPIES; i++) {
        assert_int_equal(unit_cmd(u, QHCA_CMD_DETACH_MC, qp[i].qpn, 0, &mcg,
                                  sizeof(mcg), NULL), QHCA_ST_OK);
        free_receiver(&qp[i], &cq[i]);
    }
    free_receiver(&tx, &tx_cq);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
}

/* Each frame that is sent goes to all sniffers, whose buffers are in @mr. */
static void sniff_all(struct unit *u, const char *scene, struct gmr *mr)
{
    static struct gqp qp[COPIES], tx;
    static struct gcq cq[COPIES], tx_cq;
    static uint32_t flow[COPIES];
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .sq_shift = 6, .sq_stride = 10, .sq = &tree,
        .scq = &tx_cq, .rcq = &tx_cq,
    };
    struct gwr wr = { .opcode = QHCA_WQE_RAW_SEND, .num_sge = SGES };
    unsigned i, got = 0;
    uint8_t st;

    large_mtu(u);
    for (i = 0; i < COPIES; i++) {
        struct qhca_flow f = { .type = QHCA_FLOW_SNIFFER };

        make_receiver(u, &qp[i], &cq[i], mr, QHCA_QPT_RAW, MESSAGES, 9030);
        f.qpn = qp[i].qpn;
        flow[i] = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &f, sizeof(f));
    }
    gcq_create(&tx_cq, &u->g, 7, &tree, u->g.eq[1].eqn);
    gqp_create(&tx, &u->g, &in);
    for (st = QHCA_QPS_INIT; st <= QHCA_QPS_RTS; st++) {
        assert_int_equal(gqp_state(&tx, st), QHCA_ST_OK);
    }
    scatter(wr.sge, mr->key, 9000);
    for (i = 0; i < MESSAGES; i++) {
        assert_true(gqp_post_send(&tx, &wr));
    }
    watch(&u->w);
    gqp_ring(&tx);
    assert_true(world_settle(&u->w, 1000000000));
    for (i = 0; i < COPIES; i++) {
        got += completions(&cq[i]);
    }
    assert_int_equal(got, COPIES * MESSAGES);
    within_budget(scene);
    for (i = 0; i < COPIES; i++) {
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, flow[i]),
                         QHCA_ST_OK);
        free_receiver(&qp[i], &cq[i]);
    }
    free_receiver(&tx, &tx_cq);
    assert_int_equal(gmr_destroy(mr), QHCA_ST_OK);
}

static void sniffers(void **state)
{
    struct unit *u = *state;
    struct gmr mr;

    make_region(u, &mr);
    sniff_all(u, "sniffers", &mr);
}

static void device_memory(void **state)
{
    struct unit *u = *state;
    struct gmr mr;

    gmr_create_dm(&mr, &u->g, REGION, IOVA, QHCA_ACCESS_MASK);
    gbuf_allow(&mr.buf, 0, REGION, GMEM_RW);
    sniff_all(u, "device memory", &mr);
}

/* All requests of a QP that ends are completed, of both queues. */
static void flushed_queues(void **state)
{
    enum { SHIFT = 15 };
    struct unit *u = *state;
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = SHIFT, .sq_stride = 6,
        .rq_shift = SHIFT, .rq_stride = 5, .sq = &tree, .rq = &tree,
    };
    struct gwr wr = { .opcode = QHCA_WQE_SEND };
    struct gqp_attr a;
    struct qhca_cqe c;
    struct gqp qp;
    struct gcq cq;
    unsigned i, n = 0;

    gcq_create(&cq, &u->g, SHIFT + 1, &tree, u->g.eq[1].eqn);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    gqp_attr_default(&a);
    gqp_to_init(&qp, &a);
    gqp_to_rtr(&qp, u->n, &a);
    gqp_to_rts(&qp, &a);
    for (i = 0; i < 1u << SHIFT; i++) {
        assert_true(gqp_post_send(&qp, &wr));
        assert_true(gqp_post_recv(&qp, i, NULL, 0));
    }
    watch(&u->w);
    assert_int_equal(gqp_state(&qp, QHCA_QPS_ERR), QHCA_ST_OK);
    gqp_ring(&qp);
    assert_true(world_settle(&u->w, 1000000000));
    while (gcq_poll(&cq, &c)) {
        assert_int_equal(c.status, QHCA_WC_WR_FLUSH_ERR);
        n++;
    }
    assert_int_equal(n, 2u << SHIFT);
    within_budget("flushed queues");
    free_receiver(&qp, &cq);
}

/* An RC WRITE arrives as one frame, whose packets the sniffers see one by one. */
static void sniffed_super_packets(void **state)
{
    enum { LEN = 60000 };
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    static struct gqp qp[COPIES], rc[2];
    static struct gcq cq[COPIES], rc_cq[2];
    static uint32_t flow[COPIES];
    static struct guest g;
    struct unit u = { 0 };
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = 2, .sq_stride = 7,
    };
    struct gwr wr = { .opcode = QHCA_WQE_RDMA_WRITE, .num_sge = 1,
                      .flags = QHCA_WQE_F_SIGNALED, .remote_addr = IOVA };
    struct qhca_config config = { 0 };
    struct gmr mr[2], parts;
    struct gqp_attr a;
    unsigned i;

    (void)state;
    qhca_config_default(&config);
    config.super_frames = true;
    world_init(&u.w, 2, 1, &config);
    wire_perfect(&u.w.wire);
    u.n = &u.w.node[1];
    u.e = u.n->e;
    u.m = &u.n->mem;
    guest_start(&g, &u.w.node[0], 1, &cfg);
    guest_start(&u.g, u.n, 2, &cfg);
    make_region(&u, &parts);
    for (i = 0; i < COPIES; i++) {
        struct qhca_flow f = { .type = QHCA_FLOW_SNIFFER };

        make_receiver(&u, &qp[i], &cq[i], &parts, QHCA_QPT_RAW, 256, 500);
        f.qpn = qp[i].qpn;
        flow[i] = guest_create(&u.g, QHCA_CMD_CREATE_FLOW, &f, sizeof(f));
    }
    gqp_attr_default(&a);
    a.path_mtu = 1;             /* 256 bytes */
    for (i = 0; i < 2; i++) {
        struct guest *of = i ? &u.g : &g;

        gmr_create(&mr[i], of, LEN, IOVA, QHCA_ACCESS_MASK, NULL);
        gbuf_allow(&mr[i].buf, 0, LEN, GMEM_RW);
        gcq_create(&rc_cq[i], of, 4, NULL, of->eq[1].eqn);
        in.scq = in.rcq = &rc_cq[i];
        gqp_create(&rc[i], of, &in);
    }
    for (i = 0; i < 2; i++) {
        a.dest_qpn = rc[!i].qpn;
        gqp_to_init(&rc[i], &a);
        gqp_to_rtr(&rc[i], &u.w.node[!i], &a);
        gqp_to_rts(&rc[i], &a);
    }
    wr.sge[0] = (struct qhca_sge){ IOVA, LEN, mr[0].key };
    wr.rkey = mr[1].key;
    assert_true(gqp_post_send(&rc[0], &wr));
    watch(&u.w);
    gqp_ring(&rc[0]);
    assert_true(world_settle(&u.w, 1000000000));
    assert_int_equal(completions(&rc_cq[0]), 1);
    /* frames that the sniffers did not get are counted */
    assert_true(unit_stat(&u, QHCA_STAT_RAW_RX_DROPPED) > 0);
    within_budget("sniffed super-packets");
    for (i = 0; i < 2; i++) {
        assert_int_equal(gqp_destroy(&rc[i]), QHCA_ST_OK);
        assert_int_equal(gcq_destroy(&rc_cq[i]), QHCA_ST_OK);
        assert_int_equal(gmr_destroy(&mr[i]), QHCA_ST_OK);
    }
    for (i = 0; i < COPIES; i++) {
        assert_int_equal(guest_simple(&u.g, QHCA_CMD_DESTROY_FLOW, flow[i]),
                         QHCA_ST_OK);
        free_receiver(&qp[i], &cq[i]);
    }
    assert_int_equal(gmr_destroy(&parts), QHCA_ST_OK);
    guest_stop(&g);
    guest_stop(&u.g);
    world_fini(&u.w);
}

/* ---- a search ---- */

#define PAIRS 4u
#define SEEDS 10u

struct ends {
    struct guest g;
    struct gcq cq;
    struct gmr mr;
    struct gqp qp[PAIRS];
};

/* A request of any kind and size, of any number of pieces anywhere. */
static void any_request(struct rng *r, struct gwr *wr, uint32_t lkey,
                        uint32_t rkey)
{
    static const uint8_t opcodes[] = {
        QHCA_WQE_SEND, QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_WRITE_IMM,
        QHCA_WQE_RDMA_READ, QHCA_WQE_FETCH_ADD,
    };
    bool atomic;
    unsigned i;

    memset(wr, 0, sizeof(*wr));
    wr->opcode = opcodes[rng_below(r, sizeof(opcodes))];
    atomic = wr->opcode == QHCA_WQE_FETCH_ADD;
    wr->flags = rng_pct(r, 50) ? QHCA_WQE_F_SIGNALED : 0;
    wr->num_sge = atomic ? 1 : (unsigned)rng_below(r, SGES + 1);
    for (i = 0; i < wr->num_sge; i++) {
        wr->sge[i].lkey = lkey;
        wr->sge[i].len = atomic ? 8 : (uint32_t)rng_below(r, rng_pct(r, 50) ?
                                                          64 : 16384);
        wr->sge[i].addr = IOVA + rng_below(r, REGION - 16384);
    }
    wr->rkey = rkey;
    wr->remote_addr = IOVA + (rng_below(r, REGION / 4) & ~7ull);
}

/* Two adapters at work, in ways that the seed decides. */
static void search(uint64_t seed, struct cost *worst)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    static struct ends end[2];
    struct qhca_config config = { 0 };
    struct gbuf_shape shape;
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = 5, .sq_stride = 10, .rq_shift = 5,
        .rq_stride = 9,
    };
    struct qhca_sge whole = { .addr = IOVA, .len = REGION };
    struct gqp_attr a;
    struct qhca_cqe c;
    struct world w;
    struct gwr wr;
    struct rng r;
    unsigned i, k, n;

    rng_init(&r, seed);
    qhca_config_default(&config);
    config.super_frames = seed & 1;
    world_init(&w, 2, seed, &config);
    wire_perfect(&w.wire);
    gqp_attr_default(&a);
    a.path_mtu = (uint8_t)(1 + rng_below(&r, 5));
    for (i = 0; i < 2; i++) {
        struct ends *x = &end[i];
        struct unit u = { .n = &w.node[i], .e = w.node[i].e };

        guest_start(&x->g, &w.node[i], seed, &cfg);
        u.g = x->g;
        large_mtu(&u);
        x->g = u.g;
        gbuf_shape_random(&shape, &r, REGION);
        gmr_create(&x->mr, &x->g, REGION, IOVA, QHCA_ACCESS_MASK, &shape);
        gbuf_allow(&x->mr.buf, 0, REGION, GMEM_RW);
        gcq_create(&x->cq, &x->g, 10, &tree, x->g.eq[1].eqn);
        in.scq = in.rcq = &x->cq;
        in.sq = in.rq = rng_pct(&r, 50) ? &tree : NULL;
        for (k = 0; k < PAIRS; k++) {
            gqp_create(&x->qp[k], &x->g, &in);
        }
    }
    for (i = 0; i < 2 * PAIRS; i++) {
        struct gqp *qp = &end[i & 1].qp[i / 2];

        a.dest_qpn = end[!(i & 1)].qp[i / 2].qpn;
        gqp_to_init(qp, &a);
        gqp_to_rtr(qp, &w.node[!(i & 1)], &a);
        gqp_to_rts(qp, &a);
        whole.lkey = end[i & 1].mr.key;
        for (n = 0; n < 32; n++) {
            assert_true(gqp_post_recv(qp, n, &whole, 1));
            any_request(&r, &wr, whole.lkey, end[!(i & 1)].mr.key);
            assert_true(gqp_post_send(qp, &wr));
        }
    }
    watch(&w);
    for (i = 0; i < 2 * PAIRS; i++) {
        gqp_ring(&end[i & 1].qp[i / 2]);
    }
    assert_true(world_settle(&w, 1000000000));
    most(&worst->calls, t.most.calls);
    most(&worst->bytes, t.most.bytes);
    most(&worst->frames, t.most.frames);
    most(&worst->copies, t.most.copies);
    for (i = 0; i < 2; i++) {
        while (gcq_poll(&end[i].cq, &c)) {
            assert_int_equal(c.status, QHCA_WC_SUCCESS);
        }
        for (k = 0; k < PAIRS; k++) {
            assert_int_equal(gqp_destroy(&end[i].qp[k]), QHCA_ST_OK);
        }
        assert_int_equal(gcq_destroy(&end[i].cq), QHCA_ST_OK);
        assert_int_equal(gmr_destroy(&end[i].mr), QHCA_ST_OK);
        guest_stop(&end[i].g);
    }
    world_fini(&w);
}

static void connected_traffic(void **state)
{
    struct cost worst = { 0 };
    unsigned calls = 0;
    uint64_t seed;

    (void)state;
    for (seed = 1; seed <= SEEDS; seed++) {
        search(seed, &worst);
        calls += t.engine_calls;
    }
    t.most = worst;
    t.engine_calls = calls;
    within_budget("connected traffic");
}

/* ---- Ethernet receive ---- */

#define RX_SHIFT 15             /* of each ring and of the CQ */
#define FLOWS 1000u
#define PIECE 68u               /* 30 of them hold a frame */
#define TCP_FRAME 2040u
#define TCP_HDR 54u
#define SEGS QHCA_ETH_SUPER_SEGS_MAX

static struct big big;
static uint8_t frame[WORLD_SUPER_MAX];

/* A receive queue with many buffers, all of them the same memory. */
struct rxq {
    struct gcq cq;
    struct gbuf ring[2];        /* the second: of data */
    uint64_t mem, dbrec[2];
    uint32_t num;
};

static int setup_merging(void **state)
{
    struct qhca_config cfg = { 0 };

    qhca_config_default(&cfg);
    cfg.gro_hold = 1000000;
    return unit_setup_as(state, &cfg);
}

static int setup_super(void **state)
{
    struct qhca_config cfg = { 0 };

    qhca_config_default(&cfg);
    cfg.super_frames = true;
    return unit_setup_as(state, &cfg);
}

static void set_rqn(struct unit *u, uint32_t num)
{
    struct qhca_port port = { .eth_rqn = num };

    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, QHCA_PORT_M_ETH_RQN,
                              &port, sizeof(port), NULL), QHCA_ST_OK);
}

/* The port's queue, with buffers of @piece bytes. */
static void make_rxq(struct unit *u, struct rxq *q, uint8_t flags,
                     uint32_t piece)
{
    struct qhca_eth_qc c = {
        .shift = RX_SHIFT, .stride = 4, .flags = flags,
    };
    struct qhca_eth_seg seg = { .len = piece };
    unsigned i, k;

    large_mtu(u);
    q->mem = seg.addr = gmem_alloc(u->m, PAGE, 12, 0);
    gmem_allow(u->m, q->mem, PAGE, GMEM_W);
    gcq_create(&q->cq, &u->g, RX_SHIFT, &tree, u->g.eq[1].eqn);
    for (k = 0; k < 2; k++) {
        struct gbuf *ring = &q->ring[k];

        gbuf_make(ring, u->m, sizeof(seg) << RX_SHIFT, &tree, true, 0,
                  &u->g.rng);
        gbuf_allow(ring, 0, ring->len, GMEM_R);
        q->dbrec[k] = guest_dbrec(&u->g, false);
        for (i = 0; i < 1u << RX_SHIFT; i++) {
            gbuf_write(ring, i * sizeof(seg), &seg, sizeof(seg));
        }
        guest_dbrec_set(&u->g, q->dbrec[k], 1u << RX_SHIFT);
    }
    c.buf = q->ring[0].d;
    c.dbrec = q->dbrec[0];
    c.cqn = q->cq.cqn;
    if (flags & QHCA_ETH_Q_F_HDS) {
        c.data_buf = q->ring[1].d;
        c.data_dbrec = q->dbrec[1];
        c.data_shift = RX_SHIFT;
    }
    q->num = guest_create(&u->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
    set_rqn(u, q->num);
}

static void free_rxq(struct unit *u, struct rxq *q)
{
    unsigned k;

    set_rqn(u, QHCA_ETH_RQ_NONE);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_RQ, q->num),
                     QHCA_ST_OK);
    for (k = 0; k < 2; k++) {
        gbuf_free(&q->ring[k]);
        guest_dbrec_free(&u->g, q->dbrec[k]);
    }
    gmem_release(u->m, q->mem, PAGE);
    assert_int_equal(gcq_destroy(&q->cq), QHCA_ST_OK);
}

/* A flow of plain TCP to the port, with @len bytes in all. */
static void make_flow(struct unit *u, unsigned id, uint32_t len)
{
    big_random(&big, &u->g.rng, len);
    memcpy(big.dmac, u->n->mac, 6);
    big.tcp = true;
    big.tagged = big.v6 = false;
    big.opts = big.tcp_opts = 0;
    big.ports[0] = (uint16_t)id;
    big.flags = 0x10;           /* ACK */
    assert_int_equal(big_hdr_len(&big), TCP_HDR);
}

/* Packets of many flows are held, and a command wants all of them delivered. */
static void merged_flows(void **state)
{
    struct unit *u = *state;
    struct rxq q;
    unsigned i;

    make_rxq(u, &q, QHCA_ETH_Q_F_GRO, PIECE);
    watch(&u->w);
    for (i = 0; i < FLOWS; i++) {
        make_flow(u, i, 2 * TCP_FRAME);
        world_inject(&u->w, 0, frame, big_frame(&big, frame, 0, 0,
                                                TCP_FRAME - TCP_HDR));
    }
    assert_true(u->e->eth->gro.held > FLOWS * 9 / 10);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_NOP, 0), QHCA_ST_OK);
    assert_int_equal(u->e->eth->gro.held, 0);
    /* frames that were not received were dropped, and counted */
    assert_int_equal(completions(&q.cq) +
                     unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), FLOWS);
    within_budget("merged flows");
    free_rxq(u, &q);
}

/*
 * A super-frame is cut for a queue in whose buffers each byte takes one, and
 * each of the frames takes nearly as many buffers as it may.
 */
static void cut_for_bytes(void **state)
{
    enum { SIZE = 64 };
    struct unit *u = *state;
    struct rxq q;
    unsigned got;
    size_t n;

    make_rxq(u, &q, QHCA_ETH_Q_F_HDS, 1);
    make_flow(u, 1, SEGS * SIZE);
    n = big_frame(&big, frame, 0, 0, SEGS * SIZE);
    memcpy(frame + n, "QSFG", 4);
    big_put16(frame + n + 4, SIZE);
    big_put16(frame + n + 6, SEGS);
    watch(&u->w);
    world_inject(&u->w, 0, frame, n + 8);
    got = completions(&q.cq);
    assert_in_range(got, 1, SEGS - 1);
    assert_int_equal(got + unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), SEGS);
    within_budget("a super-frame for bytes");
    free_rxq(u, &q);
}

/*
 * A long segment, the first of its flow or (@next) the second, needs the memory
 * of several packets.  The oldest are many frames, for a queue like that above:
 * one of them is more than a call may deliver.
 */
static void place_for_long(struct unit *u, const char *scene, bool next)
{
    enum { SIZE = 15, COUNT = SEGS - 1, LONG = 9000, PACKETS = 6 };
    static struct big flow;
    struct qhca_gro *g = &u->e->eth->gro;
    unsigned i, k, got;
    struct qhca_cqe c;
    struct rxq q;

    make_rxq(u, &q, QHCA_ETH_Q_F_GRO | QHCA_ETH_Q_F_HDS, 1);
    for (i = 0; i < PACKETS; i++) {
        make_flow(u, i, SEGS * SIZE);
        for (k = 0; k < COUNT; k++) {
            world_inject(&u->w, 0, frame,
                         big_frame(&big, frame, k, k * SIZE, SIZE));
        }
        assert_int_equal(g->held, i + 1);
    }
    make_flow(u, i++, 3 * LONG);
    flow = big;
    if (next) {
        world_inject(&u->w, 0, frame, big_frame(&flow, frame, 0, 0, LONG));
    }
    for (; g->pieces_left; i++) {
        make_flow(u, i, 2 * TCP_FRAME);
        world_inject(&u->w, 0, frame, big_frame(&big, frame, 0, 0, TCP_FRAME -
                                                TCP_HDR));
    }
    k = g->held;
    assert_false(gcq_poll(&q.cq, &c));
    watch(&u->w);
    world_inject(&u->w, 0, frame, big_frame(&flow, frame, next, next * LONG,
                                            LONG));
    within_budget(scene);
    /*
     * One packet is gone, and a long segment, the first that there is, does not
     * wait for its flow; the queue cannot take it.
     */
    assert_int_equal(g->held, k - 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 1);
    for (got = 0; gcq_poll(&q.cq, &c); got += c.status == QHCA_WC_SUCCESS) {
    }
    assert_in_range(got, 1, COUNT - 1);
    assert_int_equal(got + unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), COUNT);
    free_rxq(u, &q);
}

static void place_for_first(void **state)
{
    place_for_long(*state, "a place for a first segment", false);
}

static void place_for_next(void **state)
{
    place_for_long(*state, "a place for a next segment", true);
}

/* ---- Ethernet send ---- */

#define RULES       64u         /* copies of each frame */
#define SQS         16u
#define SEND_SHIFT  5           /* of each ring */
#define SEND_STRIDE 9
#define SEND_SEGS   30u

/* Fill a send queue: frames of as many pieces as can be, or large sends. */
static uint32_t make_sender(struct unit *u, struct gcq *cq, struct gbuf *ring,
                            uint64_t mem, bool large)
{
    struct qhca_eth_qc c = { .shift = SEND_SHIFT, .stride = SEND_STRIDE };
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .num_sge = SEND_SEGS,
        .flags = large ? QHCA_WQE_F_ETH_LSO : 0,
        .hdr_len = large ? 54 : 0, .mss = large ? 8 : 0,
    };
    struct qhca_eth_seg seg[SEND_SEGS];
    unsigned i;

    gcq_create(cq, &u->g, SEND_SHIFT + 1, &tree, u->g.eq[1].eqn);
    gbuf_make(ring, u->m, 1ull << (SEND_SHIFT + SEND_STRIDE), &tree, true, 0,
              &u->g.rng);
    gbuf_allow(ring, 0, ring->len, GMEM_R);
    for (i = 0; i < SEND_SEGS; i++) {
        seg[i].addr = mem;
        seg[i].len = large ? 2000 : 50;
    }
    for (i = 0; i < 1u << SEND_SHIFT; i++) {
        gbuf_write(ring, (uint64_t)i << SEND_STRIDE, &h, sizeof(h));
        gbuf_write(ring, ((uint64_t)i << SEND_STRIDE) + sizeof(h), seg,
                   sizeof(seg));
    }
    c.buf = ring->d;
    c.cqn = cq->cqn;
    return guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
}

static void send_all(struct unit *u, const char *scene, bool large)
{
    static struct gbuf ring[SQS];
    static struct gcq cq[SQS];
    uint64_t mem = gmem_alloc(u->m, PAGE, 12, 0), before;
    uint32_t sqn[SQS];
    uint8_t head[54] = { 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 7, 8, 0,
                         0x45, [20] = 0x40, 0, 64, 6, [46] = 0x50, 0x10 };
    unsigned i;

    large_mtu(u);
    memcpy(gmem_ptr(u->m, mem, PAGE), head, sizeof(head));
    gmem_allow(u->m, mem, PAGE, GMEM_R);
    for (i = 0; i < SQS; i++) {
        sqn[i] = make_sender(u, &cq[i], &ring[i], mem, large);
    }
    before = unit_stat(u, QHCA_STAT_PORT_TX_FRAMES);
    watch(&u->w);
    for (i = 0; i < SQS; i++) {
        guest_doorbell(&u->g, 0, QHCA_DB_ETH_SQ, sqn[i] |
                       1ull << (SEND_SHIFT + QHCA_DB_INDEX_SHIFT));
    }
    assert_true(world_settle(&u->w, 10000000000));
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_FRAMES) - before,
                     (SQS << SEND_SHIFT) *
                     (large ? (SEND_SEGS * 2000 - 54 + 7) / 8 : 1));
    within_budget(scene);
    for (i = 0; i < SQS; i++) {
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_SQ, sqn[i]),
                         QHCA_ST_OK);
        assert_int_equal(gcq_destroy(&cq[i]), QHCA_ST_OK);
        gbuf_free(&ring[i]);
    }
    gmem_release(u->m, mem, PAGE);
}

static void frames_of_pieces(void **state)
{
    send_all(*state, "frames of many pieces", false);
}

static void large_sends(void **state)
{
    send_all(*state, "large sends", true);
}

/*
 * One large send to the port itself, of as many frames as can be: as few
 * super-frames as can be, which are cut for each of the sniffers.
 */
static void sniffed_large_send(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_qc c = { .shift = 0, .stride = SEND_STRIDE };
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .num_sge = 2,
        .flags = QHCA_WQE_F_ETH_LSO, .hdr_len = 54, .mss = 1,
    };
    struct qhca_eth_seg seg[2] = { { .len = 54 }, { .len = 65536 } };
    struct qhca_port port = { .loopback = 1 };
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .sq_shift = 2, .sq_stride = 8, .rq_shift = 2,
        .rq_stride = 6,
    };
    struct qhca_flow flow = { .type = QHCA_FLOW_SNIFFER };
    uint8_t head[54] = { 2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 7, 8, 0,
                         0x45, [20] = 0x40, 0, 64, 6, [46] = 0x50, 0x10 };
    uint64_t mem = gmem_alloc(u->m, 1 << 17, 12, 0);
    uint32_t rule[RULES], sqn;
    struct gbuf ring;
    struct gcq cq;
    struct gqp qp;
    unsigned i;

    memcpy(gmem_ptr(u->m, mem, sizeof(head)), head, sizeof(head));
    gmem_allow(u->m, mem, 1 << 17, GMEM_R);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0,
                              QHCA_PORT_M_LOOPBACK, &port, sizeof(port),
                              NULL), QHCA_ST_OK);
    gcq_create(&cq, &u->g, 2, NULL, u->g.eq[1].eqn);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    flow.qpn = qp.qpn;          /* it receives nothing, in RESET */
    for (i = 0; i < RULES; i++) {
        rule[i] = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &flow,
                               sizeof(flow));
    }
    gbuf_make(&ring, u->m, 1 << SEND_STRIDE, &gbuf_direct, true, 0,
              &u->g.rng);
    gbuf_allow(&ring, 0, ring.len, GMEM_R);
    seg[0].addr = mem;
    seg[1].addr = mem + 64;
    gbuf_write(&ring, 0, &h, sizeof(h));
    gbuf_write(&ring, sizeof(h), seg, sizeof(seg));
    c.buf = ring.d;
    c.cqn = cq.cqn;
    sqn = guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    watch(&u->w);
    guest_doorbell(&u->g, 0, QHCA_DB_ETH_SQ,
                   sqn | UINT64_C(1) << QHCA_DB_INDEX_SHIFT);
    assert_true(world_settle(&u->w, 1000000000));
    /* none was lost on the way to a receiver */
    assert_int_equal(unit_stat(u, QHCA_STAT_RAW_RX_DROPPED), 65536 * RULES);
    within_budget("sniffed large send");
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_SQ, sqn),
                     QHCA_ST_OK);
    for (i = 0; i < RULES; i++) {
        assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, rule[i]),
                         QHCA_ST_OK);
    }
    free_receiver(&qp, &cq);
    gbuf_free(&ring);
    gmem_release(u->m, mem, 1 << 17);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(multicast),
        UNIT(sniffers),
        UNIT(device_memory),
        UNIT(flushed_queues),
        cmocka_unit_test(sniffed_super_packets),
        cmocka_unit_test(connected_traffic),
        cmocka_unit_test_setup_teardown(merged_flows, setup_merging,
                                        unit_teardown),
        cmocka_unit_test_setup_teardown(cut_for_bytes, setup_super,
                                        unit_teardown),
        cmocka_unit_test_setup_teardown(place_for_first, setup_merging,
                                        unit_teardown),
        cmocka_unit_test_setup_teardown(place_for_next, setup_merging,
                                        unit_teardown),
        UNIT(frames_of_pieces),
        UNIT(large_sends),
        cmocka_unit_test_setup_teardown(sniffed_large_send, setup_super,
                                        unit_teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
