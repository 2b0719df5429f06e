/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Multicast groups: members, the wire, delivery to ourselves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest.h"
#include "adapter/adapter.h"
#include "steps.h"
#include "emit.h"
#include "observe/inspect.h"

#define QKEY 0x11111111u
#define IOVA 0x500000000000ull
#define SLOT 256
#define GRH 40
#define SIDES 2
#define QPS 3                   /* per side */

struct side {
    struct guest g;
    struct gcq cq;
    struct gmr mr;
    struct gqp qp[QPS];
    unsigned posted;
};

struct fix {
    struct world w;
    struct side s[SIDES];
};

static const uint8_t group4[16] = {
    [10] = 0xff, [11] = 0xff, [12] = 239, [13] = 129, [14] = 2, [15] = 3
};
static const uint8_t group6[16] = {
    0xff, 0x0e, [12] = 1, [13] = 2, [14] = 3, [15] = 4
};

static uint8_t mc_cmd(struct side *s, unsigned qp, uint8_t op,
                      const uint8_t *gid)
{
    struct qhca_mcg in;
    struct gcmd c = {
        .op = op, .obj = s->qp[qp].qpn, .in = &in, .in_len = sizeof(in),
    };

    memset(&in, 0, sizeof(in));
    memcpy(in.mgid, gid, 16);
    return guest_cmd(&s->g, &c);
}

#define ATTACH(s, qp, gid) mc_cmd(s, qp, QHCA_CMD_ATTACH_MC, gid)
#define DETACH(s, qp, gid) mc_cmd(s, qp, QHCA_CMD_DETACH_MC, gid)

static void make_qp(struct side *s, unsigned i, uint8_t flags)
{
    struct gqp_init in = {
        .type = QHCA_QPT_UD, .flags = flags, .sq_shift = 4, .sq_stride = 7,
        .rq_shift = 4, .rq_stride = 5, .scq = &s->cq, .rcq = &s->cq,
    };
    struct gqp_attr a;

    gqp_attr_default(&a);
    a.qkey = QKEY;
    gqp_create(&s->qp[i], &s->g, &in);
    gqp_to_init(&s->qp[i], &a);
    gqp_to_rtr(&s->qp[i], NULL, &a);
    gqp_to_rts(&s->qp[i], &a);
}

static int setup(void **state)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    struct fix *f = calloc(1, sizeof(*f));
    unsigned i, j;

    world_init(&f->w, SIDES, 1, NULL);
    wire_perfect(&f->w.wire);
    for (i = 0; i < SIDES; i++) {
        struct side *s = &f->s[i];

        guest_start(&s->g, &f->w.node[i], 1, &cfg);
        gcq_create(&s->cq, &s->g, 8, NULL, 1);
        gmr_create(&s->mr, &s->g, 64 * SLOT, IOVA, QHCA_ACCESS_MASK, NULL);
        gbuf_allow(&s->mr.buf, 0, 64 * SLOT, GMEM_RW);
        for (j = 0; j < QPS; j++) {
            make_qp(s, j, 0);
        }
    }
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fix *f = *state;
    unsigned i, j;

    for (i = 0; i < SIDES; i++) {
        struct side *s = &f->s[i];

        for (j = 0; j < QPS; j++) {
            DETACH(s, j, group4);
            DETACH(s, j, group6);
            assert_int_equal(gqp_destroy(&s->qp[j]), QHCA_ST_OK);
        }
        assert_int_equal(gmr_destroy(&s->mr), QHCA_ST_OK);
        assert_int_equal(gcq_destroy(&s->cq), QHCA_ST_OK);
        guest_stop(&s->g);
    }
    world_fini(&f->w);
    free(f);
    return 0;
}

/* A receive at each QP of a side; slot n of the region is wr_id n. */
static void post_recvs(struct side *s)
{
    unsigned i;

    for (i = 0; i < QPS; i++) {
        struct qhca_sge sge = {
            .addr = IOVA + ++s->posted * SLOT, .len = SLOT,
            .lkey = s->mr.key,
        };

        assert_true(s->posted < 64);
        assert_true(gqp_post_recv(&s->qp[i], s->posted, &sge, 1));
    }
}

static void group_av(const uint8_t *gid, unsigned sgid, struct qhca_av *av)
{
    bool v4 = gid[0] != 0xff;

    memset(av, 0, sizeof(*av));
    memcpy(av->dgid, gid, 16);
    memcpy(av->dmac, v4 ? "\x01\x00\x5e" : "\x33\x33\0", 3);
    av->dmac[2] = v4 ? 0x5e : gid[12];
    av->dmac[3] = v4 ? gid[13] & 0x7f : gid[13];
    av->dmac[4] = gid[14];
    av->dmac[5] = gid[15];
    av->sgid_index = (uint16_t)sgid;
    av->hop_limit = 1;
}

static void send_av(struct fix *f, struct side *s, unsigned qp,
                    const struct qhca_av *av, uint32_t dest, uint32_t qkey)
{
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .wr_id = 1000, .num_sge = 1,
        .sge = { { .addr = IOVA, .len = 8, .lkey = s->mr.key } },
        .dest_qpn = dest, .qkey = qkey, .av = *av,
    };

    gbuf_write(&s->mr.buf, 0, "to group", 8);
    assert_true(gqp_post_send(&s->qp[qp], &wr));
    gqp_ring(&s->qp[qp]);
    s->qp[qp].sq_cons = s->qp[qp].sq_prod;
    world_run(&f->w, 100000);
}

static void send_group(struct fix *f, struct side *s, unsigned qp,
                       const uint8_t *gid)
{
    struct qhca_av av;

    group_av(gid, gid[0] == 0xff, &av);
    send_av(f, s, qp, &av, QHCA_QPN_MULTICAST, QKEY);
}

/* The QPs of @s that got the datagram, once, from @from, as bits. */
static unsigned got(struct side *s, const struct gqp *from)
{
    unsigned bits = 0, i;
    struct qhca_cqe c;
    uint8_t data[8];

    while (gcq_poll(&s->cq, &c)) {
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
        assert_int_equal(c.opcode, QHCA_CQE_OP_RECV);
        assert_int_equal(c.byte_len, GRH + 8);
        assert_int_equal(c.src_qpn, from->qpn);
        gbuf_read(&s->mr.buf, c.wr_id * SLOT + GRH, data, 8);
        assert_memory_equal(data, "to group", 8);
        for (i = 0; i < QPS && s->qp[i].qpn != c.qpn; i++) {
        }
        assert_true(i < QPS && !(bits & 1u << i));
        bits |= 1u << i;
    }
    return bits;
}

static uint64_t stat(struct side *s, unsigned index)
{
    return qhca_stat(s->g.n->e, index);
}

/* All members get it, on both sides; others do not. */
static void members(void **state)
{
    static const uint8_t *const gids[] = { group4, group6 };
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    unsigned i;

    for (i = 0; i < 2; i++) {
        uint64_t seen = stat(b, QHCA_STAT_ROCE_RX_MULTICAST);

        post_recvs(a);
        post_recvs(b);
        assert_int_equal(ATTACH(b, 0, gids[i]), QHCA_ST_OK);
        assert_int_equal(ATTACH(b, 2, gids[i]), QHCA_ST_OK);
        assert_int_equal(ATTACH(b, 2, gids[i]), QHCA_ST_OK);
        send_group(f, a, 1, gids[i]);       /* it need not be a member */
        assert_int_equal(got(a, &a->qp[1]), 0);
        assert_int_equal(got(b, &a->qp[1]), 5);
        assert_int_equal(stat(b, QHCA_STAT_ROCE_RX_MULTICAST), seen + 1);
        /* members next to the sender, and the sender itself */
        assert_int_equal(ATTACH(a, 1, gids[i]), QHCA_ST_OK);
        assert_int_equal(ATTACH(a, 2, gids[i]), QHCA_ST_OK);
        post_recvs(b);
        send_group(f, a, 1, gids[i]);
        assert_int_equal(got(a, &a->qp[1]), 6);
        assert_int_equal(got(b, &a->qp[1]), 5);
        assert_int_equal(DETACH(b, 2, gids[i]), QHCA_ST_OK);
        post_recvs(a);
        post_recvs(b);
        send_group(f, b, 1, gids[i]);
        assert_int_equal(got(a, &b->qp[1]), 6);
        assert_int_equal(got(b, &b->qp[1]), 1);
    }
}

/* A group of one family only; another group with the same MAC address. */
static void looks(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    struct seen s = { 0 };
    char want[16];

    assert_null(qhca_inspect_all(a->g.n->e, QHCA_OBJ_MCG, 0, 10,
                                 seen_start(&s)));
    assert_null(seen_get(&s, "objects.0.gid"));
    assert_int_equal(ATTACH(a, 0, group4), QHCA_ST_OK);
    assert_int_equal(ATTACH(a, 2, group4), QHCA_ST_OK);
    assert_null(qhca_inspect_all(a->g.n->e, QHCA_OBJ_MCG, 0, 10,
                                 seen_start(&s)));
    SEEN(&s, "object", "mcg");
    SEEN(&s, "objects.0.gid", "::ffff:239.129.2.3");
    snprintf(want, sizeof(want), "%u", a->qp[0].qpn);
    SEEN(&s, "objects.0.qps.0", want);
    snprintf(want, sizeof(want), "%u", a->qp[2].qpn);
    SEEN(&s, "objects.0.qps.1", want);
    assert_null(seen_get(&s, "objects.0.qps.2"));
    assert_null(seen_get(&s, "objects.1.gid"));
    assert_int_equal(ATTACH(a, 1, group6), QHCA_ST_OK);
    assert_null(qhca_inspect_all(a->g.n->e, QHCA_OBJ_MCG, 0, 10,
                                 seen_start(&s)));
    assert_non_null(strstr(s.text, "= ff0e:"));
    assert_null(qhca_inspect(a->g.n->e, QHCA_OBJ_DEVICE, 0,
                             seen_start(&s)));
    SEEN(&s, "objects.mcg", "2");
    seen_start(&s);
    free(s.text);
}

static void other_group(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    uint8_t twin[16];

    memcpy(twin, group4, 16);
    twin[13] ^= 0x80;           /* 239.1.2.3: the same 23 bits */
    post_recvs(b);
    assert_int_equal(ATTACH(b, 0, group4), QHCA_ST_OK);
    send_group(f, a, 0, twin);
    send_group(f, a, 0, group6);
    assert_int_equal(got(b, &a->qp[0]), 0);
    send_group(f, a, 0, group4);
    assert_int_equal(got(b, &a->qp[0]), 1);
}

/* A member also gets datagrams in a VLAN, with the VLAN reported. */
static void in_vlan(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_av av;
    struct qhca_cqe c;

    post_recvs(b);
    assert_int_equal(ATTACH(b, 0, group4), QHCA_ST_OK);
    group_av(group4, 2, &av);
    av.sl = 3;
    send_av(f, a, 0, &av, QHCA_QPN_MULTICAST, QKEY);
    assert_true(gcq_poll(&b->cq, &c));
    assert_int_equal(c.status, QHCA_WC_SUCCESS);
    assert_true(c.flags & QHCA_CQE_F_VLAN);
    assert_int_equal(c.vlan, 3 << 13 | 5);
    assert_int_equal(c.sl, 3);
}

static void block_loopback(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];

    assert_int_equal(gqp_destroy(&a->qp[0]), QHCA_ST_OK);
    make_qp(a, 0, QHCA_QP_F_BLOCK_MC_LOOP);
    assert_int_equal(ATTACH(a, 0, group4), QHCA_ST_OK);
    assert_int_equal(ATTACH(a, 1, group4), QHCA_ST_OK);
    assert_int_equal(ATTACH(b, 0, group4), QHCA_ST_OK);
    post_recvs(a);
    post_recvs(b);
    send_group(f, a, 0, group4);
    assert_int_equal(got(a, &a->qp[0]), 2);
    assert_int_equal(got(b, &a->qp[0]), 1);
    post_recvs(a);
    send_group(f, a, 1, group4);        /* of another it does */
    assert_int_equal(got(a, &a->qp[1]), 3);
    /* a peer with the same QPN is another QP */
    assert_int_equal(a->qp[1].qpn, b->qp[1].qpn);
    post_recvs(a);
    send_group(f, b, 1, group4);
    assert_int_equal(got(a, &b->qp[1]), 3);
}

static uint64_t deliveries;

/* Delivery to a member turns out to cost as much as a call may. */
static void costly(void *opaque, uint64_t addr, size_t len, bool write)
{
    struct side *s = opaque;

    (void)addr;
    if (write && len == 8 && !deliveries++) {
        qhca_cost(s->g.n->e, QHCA_CALL_COST_MAX);
    }
}

/* A frame cannot wait: members beyond the cost limit do not get it. */
static void too_costly(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    uint64_t dropped = stat(b, QHCA_STAT_UD_DROPPED);
    unsigned i;

    for (i = 0; i < QPS; i++) {
        assert_int_equal(ATTACH(b, i, group4), QHCA_ST_OK);
    }
    post_recvs(b);
    deliveries = 0;
    b->g.m->watch = costly;
    b->g.m->watch_opaque = b;
    send_group(f, a, 0, group4);
    b->g.m->watch = NULL;
    assert_int_equal(got(b, &a->qp[0]), 1);
    assert_int_equal(stat(b, QHCA_STAT_UD_DROPPED), dropped + QPS - 1);
    send_group(f, a, 0, group4);
    assert_int_equal(got(b, &a->qp[0]), (1u << QPS) - 1 - 1);
}

/* Wrong Q_Key, QPN, MAC address: not delivered, nothing breaks. */
static void drops(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_av av;

    post_recvs(b);
    assert_int_equal(ATTACH(b, 0, group4), QHCA_ST_OK);
    group_av(group4, 0, &av);
    send_av(f, a, 0, &av, QHCA_QPN_MULTICAST, QKEY ^ 1);
    assert_int_equal(stat(b, QHCA_STAT_UD_DROPPED), 1);
    send_av(f, a, 0, &av, b->qp[0].qpn, QKEY);
    assert_int_equal(stat(b, QHCA_STAT_ROCE_RX_MALFORMED), 1);
    av.dmac[5] ^= 1;
    send_av(f, a, 0, &av, QHCA_QPN_MULTICAST, QKEY);
    /* to a unicast GID, but to the QPN of groups */
    guest_av(&a->g, b->g.n, 0, &av);
    send_av(f, a, 0, &av, QHCA_QPN_MULTICAST, QKEY);
    assert_int_equal(stat(b, QHCA_STAT_ROCE_RX_NO_QP), 1);
    assert_int_equal(got(b, &a->qp[0]), 0);
    /* a member in RESET is skipped */
    assert_int_equal(ATTACH(b, 1, group4), QHCA_ST_OK);
    assert_int_equal(gqp_state(&b->qp[0], QHCA_QPS_RESET), QHCA_ST_OK);
    send_group(f, a, 0, group4);
    assert_int_equal(got(b, &a->qp[0]), 2);
}

static void commands(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .flags = QHCA_QP_F_BLOCK_MC_LOOP,
        .sq_shift = 1, .sq_stride = 7, .scq = &a->cq, .rcq = &a->cq,
    };
    uint8_t bad[16] = { [10] = 0xff, [11] = 0xff, [12] = 10, [15] = 1 };
    uint32_t qpn = a->qp[0].qpn;
    struct gqp rc;
    struct qhca_qpc qpc;
    struct gcmd c = {
        .op = QHCA_CMD_CREATE_QP, .in = &qpc, .in_len = sizeof(qpc),
    };
    struct qhca_mcg mcg;
    struct gcmd m = { .op = QHCA_CMD_ATTACH_MC, .in = &mcg,
                      .in_len = sizeof(mcg) };

    assert_int_equal(ATTACH(a, 0, bad), QHCA_ST_BAD_PARAM);
    memset(bad, 0, 16);
    assert_int_equal(ATTACH(a, 0, bad), QHCA_ST_BAD_PARAM);
    assert_int_equal(DETACH(a, 0, group4), QHCA_ST_BAD_OBJ);
    assert_int_equal(ATTACH(a, 0, group4), QHCA_ST_OK);
    assert_int_equal(DETACH(a, 1, group4), QHCA_ST_BAD_OBJ);
    assert_int_equal(DETACH(a, 0, group6), QHCA_ST_BAD_OBJ);
    a->qp[0].qpn = 0x7777;
    assert_int_equal(ATTACH(a, 0, group4), QHCA_ST_BAD_OBJ);
    a->qp[0].qpn = qpn;
    /* a member cannot be destroyed */
    assert_int_equal(guest_simple(&a->g, QHCA_CMD_DESTROY_QP,
                                  a->qp[0].qpn), QHCA_ST_BUSY);
    assert_int_equal(DETACH(a, 0, group4), QHCA_ST_OK);
    assert_int_equal(DETACH(a, 0, group4), QHCA_ST_BAD_OBJ);
    /* only UD */
    memset(&qpc, 0, sizeof(qpc));
    qpc.type = QHCA_QPT_RC;
    qpc.flags = QHCA_QP_F_BLOCK_MC_LOOP;
    qpc.pd = a->g.pd;
    qpc.uar = a->g.uar;
    qpc.send_cqn = qpc.recv_cqn = a->cq.cqn;
    assert_int_equal(guest_cmd(&a->g, &c), QHCA_ST_BAD_PARAM);
    assert_int_equal(c.result, offsetof(struct qhca_qpc, flags));
    in.flags = 0;
    gqp_create(&rc, &a->g, &in);
    memset(&mcg, 0, sizeof(mcg));
    memcpy(mcg.mgid, group4, 16);
    m.obj = rc.qpn;
    assert_int_equal(guest_cmd(&a->g, &m), QHCA_ST_BAD_STATE);
    assert_int_equal(gqp_destroy(&rc), QHCA_ST_OK);
}

/* The maximum number of groups, all found again. */
static void many_groups(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    uint8_t gid[16];
    unsigned i;

    memcpy(gid, group4, 16);
    for (i = 0; i < QHCA_MC_GROUPS_MAX; i++) {
        gid[14] = (uint8_t)(i >> 8);
        gid[15] = (uint8_t)i;
        assert_int_equal(ATTACH(b, 0, gid), QHCA_ST_OK);
    }
    assert_int_equal(ATTACH(b, 0, group6), QHCA_ST_NO_RESOURCES);
    assert_int_equal(ATTACH(b, 1, gid), QHCA_ST_OK);
    post_recvs(b);
    send_group(f, a, 0, gid);
    assert_int_equal(got(b, &a->qp[0]), 3);
    assert_int_equal(DETACH(b, 1, gid), QHCA_ST_OK);
    for (i = 0; i < QHCA_MC_GROUPS_MAX; i++) {
        gid[14] = (uint8_t)(i >> 8);
        gid[15] = (uint8_t)i;
        assert_int_equal(DETACH(b, 0, gid), QHCA_ST_OK);
    }
    assert_int_equal(b->g.n->e->xd->mc_groups, 0);
}

static void many_members(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    static struct gqp qp[QHCA_MC_QPS_MAX];
    struct gqp_init in = {
        .type = QHCA_QPT_UD, .sq_shift = 1, .sq_stride = 7,
        .scq = &a->cq, .rcq = &a->cq,
    };
    struct qhca_mcg mcg;
    struct gcmd m = { .op = QHCA_CMD_ATTACH_MC, .in = &mcg,
                      .in_len = sizeof(mcg) };
    unsigned i;

    memset(&mcg, 0, sizeof(mcg));
    memcpy(mcg.mgid, group6, 16);
    for (i = 0; i < QHCA_MC_QPS_MAX; i++) {
        gqp_create(&qp[i], &a->g, &in);
        m.obj = qp[i].qpn;
        assert_int_equal(guest_cmd(&a->g, &m), QHCA_ST_OK);
    }
    assert_int_equal(ATTACH(a, 0, group6), QHCA_ST_NO_RESOURCES);
    m.op = QHCA_CMD_DETACH_MC;
    for (i = 0; i < QHCA_MC_QPS_MAX; i++) {
        m.obj = qp[i].qpn;
        assert_int_equal(guest_cmd(&a->g, &m), QHCA_ST_OK);
        assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
    }
}

/* A reset with members: nothing is left. */
static void reset(void **state)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    struct fix *f = calloc(1, sizeof(*f));
    struct qhca_mcg mcg = { .mgid = { 0xff, 2, [15] = 1 } };
    struct gcmd m = { .op = QHCA_CMD_ATTACH_MC, .in = &mcg,
                      .in_len = sizeof(mcg) };
    struct qhca_cqc cqc = { .eqn = 1 };
    struct qhca_qpc qpc = { .type = QHCA_QPT_UD };
    struct guest *g = &f->s[0].g;

    (void)state;
    world_init(&f->w, 1, 1, NULL);
    guest_start(g, &f->w.node[0], 1, &cfg);
    cqc.buf.addr = gmem_alloc(g->m, 4096, 12, 0);
    cqc.buf.len = 64;
    qpc.pd = g->pd;
    qpc.send_cqn = qpc.recv_cqn = guest_create(g, QHCA_CMD_CREATE_CQ, &cqc,
                                               sizeof(cqc));
    m.obj = guest_create(g, QHCA_CMD_CREATE_QP, &qpc, sizeof(qpc));
    assert_int_equal(guest_cmd(g, &m), QHCA_ST_OK);
    qhca_reset(g->n->e);
    assert_int_equal(g->n->e->xd->mc_groups, 0);
    guest_drop(g);
    world_fini(&f->w);
    free(f);
}

/* ---- steps ---- */

static struct {
    uint32_t qpn[QPS], src, cqn, psn;
} mc;

/* Two datagrams from the other side to a group of two or all three QPs. */
static void step_traffic(void)
{
    void *state;
    struct fix *f;
    struct side *s;
    unsigned i;

    assert_int_equal(setup(&state), 0);
    f = state;
    s = &f->s[0];
    for (i = 0; i < QPS; i++) {
        mc.qpn[i] = s->qp[i].qpn;
        assert_int_equal(ATTACH(s, i, group4), QHCA_ST_OK);
        if (i != 1) {
            assert_int_equal(ATTACH(s, i, group6), QHCA_ST_OK);
        }
    }
    post_recvs(s);
    post_recvs(s);
    mc.src = f->s[1].qp[2].qpn;
    mc.cqn = s->cq.cqn;
    steps_begin(s->g.n);
    send_group(f, &f->s[1], 2, group4);
    send_group(f, &f->s[1], 2, group6);
    steps_end(s->g.n);
    teardown(&state);
}

/*
 * A frame is a packet for each member: as many steps, each of which shows the
 * QP that gets it; only that QP's receive is taken and completed then.
 */
static void stepped(void **state)
{
    static const uint8_t member[] = { 0, 1, 2, 0, 2 };
    const struct qhca_trace *t;
    unsigned i, of[QPS] = { 0 }, at = 0, kind;

    (void)state;
    steps_check(step_traffic);
    assert_int_equal(steps_count(QHCA_ON_PACKET_IN), 5);
    assert_int_equal(steps_count(QHCA_ON_RECV_WQE), 5);
    assert_int_equal(steps_count(QHCA_ON_CQE), 5);
    for (i = 0; i < 5; i++) {
        uint32_t qpn = mc.qpn[member[i]];

        t = steps_event(QHCA_ON_PACKET_IN, i);
        assert_int_equal(t->num, qpn);
        assert_int_equal(t->peer, mc.src);
        assert_int_equal(t->a, 0x64);
        assert_int_equal(t->psn, steps_event(QHCA_ON_PACKET_IN,
                                             i < 3 ? 0 : 3)->psn);
        t = steps_event(QHCA_ON_RECV_WQE, i);
        assert_int_equal(t->num, qpn);
        assert_int_equal(t->index, of[member[i]]);
        assert_int_equal(t->b, 1 + member[i] + QPS * of[member[i]]);
        t = steps_event(QHCA_ON_CQE, i);
        assert_int_equal(t->num, mc.cqn);
        assert_int_equal(t->index, i);
        assert_int_equal(t->peer, qpn);
        assert_int_equal(t->wqe, of[member[i]]);
        assert_int_equal(t->len, GRH + 8);
        of[member[i]]++;
    }
    assert_int_equal((steps_event(QHCA_ON_PACKET_IN, 0)->psn + 1) & 0xffffff,
                     steps_event(QHCA_ON_PACKET_IN, 3)->psn);
    /* packet, receive, completion; then the next member's */
    for (i = 0; i < steps.events; i++) {
        kind = steps.event[i].kind;
        if (kind == QHCA_TR_RX || kind == QHCA_TR_RECV_WQE ||
            kind == QHCA_TR_CQE) {
            assert_int_equal(kind, at % 3 == 0 ? QHCA_TR_RX : at % 3 == 1 ?
                             QHCA_TR_RECV_WQE : QHCA_TR_CQE);
            at++;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(members, setup, teardown),
        cmocka_unit_test_setup_teardown(looks, setup, teardown),
        cmocka_unit_test_setup_teardown(other_group, setup, teardown),
        cmocka_unit_test_setup_teardown(in_vlan, setup, teardown),
        cmocka_unit_test_setup_teardown(block_loopback, setup, teardown),
        cmocka_unit_test_setup_teardown(too_costly, setup, teardown),
        cmocka_unit_test_setup_teardown(drops, setup, teardown),
        cmocka_unit_test_setup_teardown(commands, setup, teardown),
        cmocka_unit_test_setup_teardown(many_groups, setup, teardown),
        cmocka_unit_test_setup_teardown(many_members, setup, teardown),
        cmocka_unit_test(stepped),
        cmocka_unit_test(reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
