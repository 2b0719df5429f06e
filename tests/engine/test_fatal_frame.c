/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The fatal state ends what is under way, also within one frame, one command or
 * one look at the clock: nothing follows the CQE whose event cannot be written.
 */
#include "bigpkt.h"
#include "ethfix.h"

#define QPS 3
#define SLOT 2048
#define IOVA 0x500000000000ull
#define QKEY 0x11111111u

static struct qhca_ops ops;
static uint64_t events;         /* where the device writes them */
static unsigned tries;          /* to write one */
static struct big big;
static uint8_t frame[WORLD_SUPER_MAX];

struct ends {
    struct unit *u;
    struct gcq cq;              /* of the QPs */
    struct gmr mr;
    struct gqp qp[QPS];
    struct erq q;               /* the port's */
};

static bool events_fail(void *opaque, uint64_t addr, const void *buf,
                        size_t len)
{
    if (addr - events < 16 << 6) {
        tries++;
        return false;
    }
    return ops.dma_write(opaque, addr, buf, len);
}

static void make(struct ends *f, struct unit *u, uint8_t type, uint8_t flags)
{
    struct gqp_init in = {
        .type = type, .sq_shift = 4, .sq_stride = 8, .rq_shift = 4,
        .rq_stride = 6, .scq = &f->cq, .rcq = &f->cq,
    };
    struct qhca_sge sge = { .len = SLOT };
    struct gqp_attr a;
    unsigned i;

    memset(f, 0, sizeof(*f));
    f->u = u;
    gcq_create(&f->cq, &u->g, 6, NULL, 1);
    gmr_create(&f->mr, &u->g, (QPS + 1) * SLOT, IOVA, QHCA_ACCESS_MASK, NULL);
    gbuf_allow(&f->mr.buf, 0, (QPS + 1) * SLOT, GMEM_RW);
    sge.lkey = f->mr.key;
    gqp_attr_default(&a);
    a.qkey = QKEY;
    for (i = 0; i < QPS; i++) {
        gqp_create(&f->qp[i], &u->g, &in);
        if (type == QHCA_QPT_RAW) {
            gqp_state(&f->qp[i], QHCA_QPS_INIT);
            gqp_state(&f->qp[i], QHCA_QPS_RTR);
            gqp_state(&f->qp[i], QHCA_QPS_RTS);
        } else {
            gqp_to_init(&f->qp[i], &a);
            gqp_to_rtr(&f->qp[i], u->n, &a);
            gqp_to_rts(&f->qp[i], &a);
        }
        sge.addr = IOVA + (i + 1) * SLOT;
        assert_true(gqp_post_recv(&f->qp[i], i, &sge, 1));
    }
    erq_make(u, &f->q, flags);
    for (i = 0; i < ERQ_DEPTH; i++) {
        erq_post(u, &f->q.ring, 8190, 0);
    }
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, f->q.num), QHCA_ST_OK);
}

/* From now on, the first event is fatal. */
static void no_events(struct ends *f)
{
    gcq_arm(&f->cq, false);
    gcq_arm(&f->q.cq, false);
    events = gbuf_addr(&f->u->g.eq[1].buf, 0, NULL);
    tries = 0;
    ops = f->u->e->ops;
    f->u->e->ops.dma_write = events_fail;
}

static unsigned count(struct gcq *cq)
{
    struct qhca_cqe c;
    unsigned n = 0;

    while (gcq_poll(cq, &c)) {
        n++;
    }
    return n;
}

/* It was fatal, and nothing followed.  Frees @f. */
static void only_one(struct ends *f)
{
    unsigned i;

    world_run(&f->u->w, 1000000000);
    assert_int_equal(f->u->e->fatal, QHCA_FATAL_EQ);
    assert_int_equal(tries, 1);
    assert_int_equal(count(&f->cq) + count(&f->q.cq), 1);
    f->u->e->ops.dma_write = ops.dma_write;
    qhca_reset(f->u->e);
    for (i = 0; i < QPS; i++) {
        gbuf_free(&f->qp[i].sq);
        gbuf_free(&f->qp[i].rq);
    }
    gmr_drop(&f->mr);
    gbuf_free(&f->cq.buf);
    erq_ring_free(f->u, &f->q.ring);
    erq_ring_free(f->u, &f->q.data);
    gbuf_free(&f->q.cq.buf);
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
}

static void arrives(struct unit *u, uint32_t len)
{
    world_inject(&u->w, 0, frame, big_frame(&big, frame, 0, 0, len));
}

static void super_frame(void **state)
{
    struct unit *u = *state;
    static struct ends f;
    size_t n;

    make(&f, u, QHCA_QPT_RAW, 0);
    make_flow(u, 1, 5000);
    n = big_frame(&big, frame, 0, 0, 5000);
    memcpy(frame + n, "QSFG", 4);
    big_put16(frame + n + 4, 1000);
    big_put16(frame + n + 6, 5);
    no_events(&f);
    world_inject(&u->w, 0, frame, n + 8);
    only_one(&f);
}

/* Rules: @more of @type for other QPs, and then the port's queue. */
static void copies(struct unit *u, uint8_t type, uint8_t flags, unsigned more)
{
    struct qhca_flow r = { .type = type, .flags = flags };
    static struct ends f;
    unsigned i;

    make(&f, u, QHCA_QPT_RAW, 0);
    for (i = 0; i < more; i++) {
        r.qpn = f.qp[i].qpn;
        guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &r, sizeof(r));
    }
    make_flow(u, 1, 100);
    no_events(&f);
    arrives(u, 100);
    only_one(&f);
}

static void sniffers(void **state)
{
    copies(*state, QHCA_FLOW_SNIFFER, 0, QPS);
}

static void sniffer_and_port(void **state)
{
    copies(*state, QHCA_FLOW_SNIFFER, 0, 1);
}

static void twins(void **state)
{
    copies(*state, QHCA_FLOW_NORMAL, 0, QPS);
}

static void not_trapped(void **state)
{
    copies(*state, QHCA_FLOW_NORMAL, QHCA_FLOW_F_DONT_TRAP, 1);
}

/* The port's queue is of an RSS QP. */
static void sniffer_and_rss(void **state)
{
    struct unit *u = *state;
    struct qhca_flow r = { .type = QHCA_FLOW_SNIFFER };
    static struct ends f;
    struct erss rss;

    make(&f, u, QHCA_QPT_RAW, 0);
    r.qpn = f.qp[0].qpn;
    guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &r, sizeof(r));
    erss_make(u, &rss, &f.q, 1, 0, QHCA_HASH_SRC_IPV4);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_QPN, rss.qpn), QHCA_ST_OK);
    make_flow(u, 1, 100);
    no_events(&f);
    arrives(u, 100);
    only_one(&f);
}

/* A loopback packet goes to a sniffer first. */
static void sniffer_and_roce(void **state)
{
    struct unit *u = *state;
    struct qhca_flow r = { .type = QHCA_FLOW_SNIFFER };
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .num_sge = 1, .qkey = QKEY,
    };
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .sq_shift = 2, .sq_stride = 8, .rq_shift = 2,
        .rq_stride = 6,
    };
    struct qhca_sge sge = { .addr = IOVA, .len = SLOT };
    static struct ends f;
    struct gqp qp;

    make(&f, u, QHCA_QPT_UD, 0);
    in.scq = in.rcq = &f.cq;
    gqp_create(&qp, &u->g, &in);
    gqp_state(&qp, QHCA_QPS_INIT);
    gqp_state(&qp, QHCA_QPS_RTR);
    sge.lkey = f.mr.key;
    assert_true(gqp_post_recv(&qp, 1, &sge, 1));
    r.qpn = qp.qpn;
    guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &r, sizeof(r));
    guest_av(&u->g, u->n, 0, &wr.av);
    wr.dest_qpn = f.qp[1].qpn;
    wr.sge[0] = (struct qhca_sge){ IOVA, 64, f.mr.key };
    assert_true(gqp_post_send(&f.qp[0], &wr));
    no_events(&f);
    gqp_ring(&f.qp[0]);
    only_one(&f);
    gbuf_free(&qp.sq);
    gbuf_free(&qp.rq);
}

/* Each member of a group has a receive. */
static void group(void **state)
{
    struct qhca_mcg mcg = { .mgid = { 0xff, 0x0e, [15] = 9 } };
    struct unit *u = *state;
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .num_sge = 1, .qkey = QKEY,
        .dest_qpn = 0xffffff,
    };
    static struct ends f;
    unsigned i;

    make(&f, u, QHCA_QPT_UD, 0);
    for (i = 0; i < QPS; i++) {
        assert_int_equal(unit_cmd(u, QHCA_CMD_ATTACH_MC, f.qp[i].qpn, 0, &mcg,
                                  sizeof(mcg), NULL), QHCA_ST_OK);
    }
    guest_av(&u->g, u->n, 1, &wr.av);
    memcpy(wr.av.dgid, mcg.mgid, 16);
    memcpy(wr.av.dmac, "\x33\x33\0\0\0\x09", 6);
    wr.sge[0] = (struct qhca_sge){ IOVA, 64, f.mr.key };
    assert_true(gqp_post_send(&f.qp[0], &wr));
    no_events(&f);
    gqp_ring(&f.qp[0]);
    only_one(&f);
}

/* Several merged packets must go before a frame. */
static void merged(void **state)
{
    struct unit *u = *state;
    static struct ends f;
    unsigned i;

    u->e->cfg.gro_hold = 1000;
    make(&f, u, QHCA_QPT_RAW, QHCA_ETH_Q_F_GRO);
    for (i = 0; i < 3; i++) {
        make_flow(u, i, 1000);
        arrives(u, 500);
    }
    no_events(&f);
    big_frame(&big, frame, 0, 0, 500);
    frame[20] |= 0x20;          /* a fragment: of any of these flows */
    world_inject(&u->w, 0, frame, 554);
    only_one(&f);
}

/* A long segment needs the memory of several merged packets. */
static void merged_for_room(void **state)
{
    struct unit *u = *state;
    static struct ends f;
    unsigned i;

    u->e->cfg.gro_hold = 1000;
    make(&f, u, QHCA_QPT_RAW, QHCA_ETH_Q_F_GRO);
    for (i = 0; u->e->eth->gro.pieces_left; i++) {
        make_flow(u, i, 2000);
        arrives(u, 500);
    }
    make_flow(u, i, 20000);
    no_events(&f);
    arrives(u, 9000);
    only_one(&f);
}

/* A WQ ends, and its receives are flushed. */
static void wq(void **state)
{
    enum { SHIFT = 3, STRIDE = 5 };
    struct unit *u = *state;
    struct qhca_wqc c = {
        .pd = u->g.pd, .uar = u->g.uar, .shift = SHIFT, .stride = STRIDE,
    };
    static struct ends f;
    struct gbuf ring;
    uint32_t wqn;
    uint8_t st;

    make(&f, u, QHCA_QPT_RAW, 0);
    gbuf_make(&ring, u->m, 1 << (SHIFT + STRIDE), &gbuf_direct, true, 0,
              &u->g.rng);
    gbuf_allow(&ring, 0, ring.len, GMEM_R);
    c.buf = ring.d;
    c.dbrec = guest_dbrec(&u->g, true);
    c.cqn = f.cq.cqn;
    wqn = guest_create(&u->g, QHCA_CMD_CREATE_WQ, &c, sizeof(c));
    guest_dbrec_set(&u->g, c.dbrec, 1 << SHIFT);
    for (st = QHCA_WQS_RDY; st <= QHCA_WQS_ERR; st++) {
        struct qhca_wqc to = { .state = st };

        if (st == QHCA_WQS_ERR) {
            no_events(&f);
        }
        assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_WQ, wqn,
                                  QHCA_WQ_M_STATE, &to, sizeof(to), NULL),
                         QHCA_ST_OK);
    }
    only_one(&f);
    gbuf_free(&ring);
}

/* Operations of a tag list, each with a CQE. */
static void tags(void **state)
{
    struct unit *u = *state;
    static struct ends f;
    struct gtm_init ti = {
        .cq = &f.cq, .max_tags = 8, .ops_shift = 3, .ops_stride = 7,
    };
    struct gtm_op op = {
        .opcode = QHCA_WQE_TAG_DEL, .flags = QHCA_WQE_F_SIGNALED,
    };
    struct gsrq srq;
    unsigned i;

    make(&f, u, QHCA_QPT_RAW, 0);
    gsrq_create_tm(&srq, &u->g, 3, 6, NULL, NULL, &ti);
    for (i = 0; i < 8; i++) {
        assert_true(gtm_post(&srq, &op, NULL));
    }
    no_events(&f);
    gtm_ring(&srq);
    only_one(&f);
    gbuf_free(&srq.buf);
    gbuf_free(&srq.idx);
    gbuf_free(&srq.ops);
    free(srq.free);
}

static int setup(void **state)
{
    struct qhca_config cfg = { 0 };

    qhca_config_default(&cfg);
    cfg.super_frames = true;
    return unit_setup_as(state, &cfg);
}

#define FATAL(f) cmocka_unit_test_setup_teardown(f, setup, unit_abandon)

int main(void)
{
    const struct CMUnitTest tests[] = {
        FATAL(super_frame),
        FATAL(sniffers),
        FATAL(sniffer_and_port),
        FATAL(twins),
        FATAL(not_trapped),
        FATAL(sniffer_and_rss),
        FATAL(sniffer_and_roce),
        FATAL(group),
        FATAL(merged),
        FATAL(merged_for_room),
        FATAL(wq),
        FATAL(tags),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
