/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Registers and admin queue: their function, and their response to hostile
 * software.
 */
#include "unit.h"

static const uint8_t opcodes[] = {
    QHCA_CMD_NOP, QHCA_CMD_QUERY_DEVICE, QHCA_CMD_QUERY_PORT,
    QHCA_CMD_MODIFY_PORT, QHCA_CMD_QUERY_STATS, QHCA_CMD_SET_GID,
    QHCA_CMD_QUERY_GID, QHCA_CMD_SET_MC_LIST, QHCA_CMD_ALLOC_UAR,
    QHCA_CMD_FREE_UAR, QHCA_CMD_ALLOC_PD, QHCA_CMD_FREE_PD,
    QHCA_CMD_ALLOC_XRCD, QHCA_CMD_FREE_XRCD,
    QHCA_CMD_CREATE_EQ, QHCA_CMD_DESTROY_EQ, QHCA_CMD_QUERY_EQ,
    QHCA_CMD_CREATE_CQ, QHCA_CMD_MODIFY_CQ, QHCA_CMD_DESTROY_CQ,
    QHCA_CMD_QUERY_CQ, QHCA_CMD_CREATE_SRQ, QHCA_CMD_MODIFY_SRQ,
    QHCA_CMD_DESTROY_SRQ, QHCA_CMD_QUERY_SRQ, QHCA_CMD_CREATE_QP,
    QHCA_CMD_MODIFY_QP, QHCA_CMD_DESTROY_QP, QHCA_CMD_QUERY_QP,
    QHCA_CMD_QUERY_PAGE_FAULT, QHCA_CMD_RESUME_PAGE_FAULT,
    QHCA_CMD_ATTACH_MC, QHCA_CMD_DETACH_MC,
    QHCA_CMD_CREATE_WQ, QHCA_CMD_MODIFY_WQ, QHCA_CMD_DESTROY_WQ,
    QHCA_CMD_QUERY_WQ, QHCA_CMD_CREATE_RQT, QHCA_CMD_DESTROY_RQT,
    QHCA_CMD_CREATE_FLOW, QHCA_CMD_DESTROY_FLOW,
    QHCA_CMD_CREATE_MR, QHCA_CMD_DESTROY_MR, QHCA_CMD_QUERY_MR,
    QHCA_CMD_MODIFY_MR, QHCA_CMD_CREATE_MW,
    QHCA_CMD_CREATE_ETH_SQ, QHCA_CMD_DESTROY_ETH_SQ, QHCA_CMD_CREATE_ETH_RQ,
    QHCA_CMD_DESTROY_ETH_RQ, QHCA_CMD_MODIFY_ETH_RQ, QHCA_CMD_QUERY_ETH_RQ,
    QHCA_CMD_QUERY_ETH_SQ, QHCA_CMD_MODIFY_ETH_SQ,
    QHCA_CMD_CREATE_SHAPER, QHCA_CMD_DESTROY_SHAPER, QHCA_CMD_MODIFY_SHAPER,
    QHCA_CMD_QUERY_SHAPER,
};

static bool known(unsigned op)
{
    unsigned i;

    for (i = 0; i < sizeof(opcodes); i++) {
        if (opcodes[i] == op) {
            return true;
        }
    }
    return false;
}

static void unknown_opcodes(void **state)
{
    struct unit *u = *state;
    unsigned op;

    for (op = 0; op < 256; op++) {
        if (!known(op)) {
            assert_int_equal(guest_simple(&u->g, (uint8_t)op, 0),
                             QHCA_ST_BAD_OPCODE);
        }
    }
}

static uint32_t status(struct unit *u)
{
    return (uint32_t)node_reg_read(u->n, QHCA_REG_STATUS, 4);
}

/* Submit a raw command; returns its status. */
static uint8_t raw(struct unit *u, struct qhca_aq_cmd *cmd)
{
    struct guest *g = &u->g;
    uint32_t mask = (1u << g->aq_shift) - 1;
    struct qhca_aq_cqe *cqe;

    memcpy(gmem_ptr(g->m, g->asq + 64 * (g->asq_prod & mask), 64), cmd, 64);
    node_reg_write(u->n, QHCA_REG_ASQ_DB, ++g->asq_prod, 4);
    cqe = gmem_ptr(g->m, g->acq + 16 * (g->acq_cons & mask), 16);
    assert_int_equal(cqe->phase, !(g->acq_cons >> g->aq_shift & 1));
    assert_int_equal(cqe->cmd_id, cmd->cmd_id);
    g->acq_cons++;
    return cqe->status;
}

/* Every command with input that is unmapped, misaligned, too long. */
static void hostile_pointers(void **state)
{
    struct unit *u = *state;
    uint64_t nowhere = gmem_unmapped(u->m, 4096);
    unsigned i, j;

    for (i = 0; i < sizeof(opcodes); i++) {
        struct qhca_aq_cmd cmd = {
            .opcode = opcodes[i], .cmd_id = (uint16_t)i, .obj = 0xffffff,
            .in_len = 512, .out_len = 4096, .in_addr = nowhere,
            .out_addr = nowhere, .mask = UINT64_MAX, .arg = UINT64_MAX,
        };
        static const uint32_t lens[] = {
            0, 1, 8, 63, 64, 65, 96, 128, 160, 512, 2048, 2049, 1u << 31,
            UINT32_MAX,
        };

        switch (opcodes[i]) {
        case QHCA_CMD_NOP:
        case QHCA_CMD_ALLOC_UAR:
        case QHCA_CMD_ALLOC_PD:
        case QHCA_CMD_ALLOC_XRCD:
            continue;
        }
        for (j = 0; j < sizeof(lens) / sizeof(lens[0]); j++) {
            cmd.in_len = cmd.out_len = lens[j];
            if (opcodes[i] == QHCA_CMD_SET_MC_LIST ||
                opcodes[i] == QHCA_CMD_QUERY_STATS) {
                if (!lens[j]) {
                    continue;   /* nothing in, nothing out: allowed */
                }
            }
            assert_int_not_equal(raw(u, &cmd), QHCA_ST_OK);
            cmd.in_addr = cmd.out_addr = u->g.in + 8;
            assert_int_not_equal(raw(u, &cmd), QHCA_ST_OK);
            cmd.in_addr = cmd.out_addr = UINT64_MAX - 63;
            assert_int_not_equal(raw(u, &cmd), QHCA_ST_OK);
            cmd.in_addr = cmd.out_addr = nowhere;
        }
        cmd.flags = 1;
        assert_int_not_equal(raw(u, &cmd), QHCA_ST_OK);
    }
    /* and the adapter still works */
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_NOP, 0), QHCA_ST_OK);
    assert_true(status(u) & QHCA_STATUS_READY);
}

/* Random structures as input of every command: only a status may result. */
static void random_input(void **state)
{
    struct unit *u = *state;
    uint8_t in[512], out[512];
    unsigned i, n;

    for (n = 0; n < 20000; n++) {
        struct gcmd c = { .obj = (uint32_t)rng_log(&u->g.rng, 1 << 24) };

        c.op = opcodes[rng_below(&u->g.rng, sizeof(opcodes))];
        switch (c.op) {         /* they would destroy the fixture */
        case QHCA_CMD_FREE_UAR:
        case QHCA_CMD_FREE_PD:
        case QHCA_CMD_DESTROY_EQ:
        case QHCA_CMD_ALLOC_UAR:
        case QHCA_CMD_ALLOC_PD:
            continue;
        }
        for (i = 0; i < sizeof(in); i++) {
            in[i] = rng_pct(&u->g.rng, 70) ? 0 :
                    (uint8_t)rng_log(&u->g.rng, 255);
        }
        c.in = in;
        c.in_len = (uint32_t)(1 + rng_below(&u->g.rng, sizeof(in)));
        if (rng_pct(&u->g.rng, 90)) {
            static const uint16_t size[] = { 64, 96, 128, 160, 512 };

            c.in_len = size[rng_below(&u->g.rng, 5)];
        }
        c.out = out;
        c.out_len = sizeof(out);
        c.mask = rng_pct(&u->g.rng, 50) ? rng_log(&u->g.rng, 0x1ffff) :
                                          rng_u64(&u->g.rng);
        guest_cmd(&u->g, &c);
    }
    assert_true(status(u) & QHCA_STATUS_READY);
}

static uint8_t fatal_reason(struct unit *u)
{
    uint32_t s = status(u);

    return s & QHCA_STATUS_FATAL && !(s & QHCA_STATUS_READY) ?
           (uint8_t)(s >> QHCA_STATUS_FATAL_SHIFT) : 0;
}

static void doorbell_too_far(void **state)
{
    struct unit *u = *state;

    node_reg_write(u->n, QHCA_REG_ASQ_DB, u->g.asq_prod + 17, 4);
    assert_int_equal(fatal_reason(u), QHCA_FATAL_AQ_INDEX);
    /* it reports the error, then does nothing more until the reset */
    node_reg_write(u->n, QHCA_REG_ASQ_DB, u->g.asq_prod + 1, 4);
    assert_int_equal(fatal_reason(u), QHCA_FATAL_AQ_INDEX);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_DEVICE_FATAL], 1);
    node_reg_write(u->n, QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
    assert_int_equal(status(u), QHCA_STATUS_LINK);
}

static void ring_gone(void **state)
{
    struct unit *u = *state;
    uint64_t asq = u->g.asq;

    gmem_release(u->m, asq, 16 * 64);
    node_reg_write(u->n, QHCA_REG_ASQ_DB, u->g.asq_prod + 1, 4);
    assert_int_equal(fatal_reason(u), QHCA_FATAL_AQ_DMA);
    u->g.asq = gmem_alloc(u->m, 16 * 64, 12, 0);
}

/* A command is executed, but its completion cannot be written. */
static void completion_gone(void **state)
{
    struct unit *u = *state;
    struct guest *g = &u->g;
    struct qhca_aq_cmd cmd = { .opcode = QHCA_CMD_ALLOC_PD };
    uint64_t irqs;

    world_settle(&u->w, 1000000);
    irqs = u->n->msix[0];
    gmem_release(u->m, g->acq, 16 * sizeof(struct qhca_aq_cqe));
    memcpy(gmem_ptr(u->m, g->asq + 64 * (g->asq_prod & 15), 64), &cmd, 64);
    node_reg_write(u->n, QHCA_REG_ASQ_DB, g->asq_prod + 1, 4);
    g->acq = gmem_alloc(u->m, 16 * sizeof(struct qhca_aq_cqe), 12, 0);
    assert_int_equal(fatal_reason(u), QHCA_FATAL_AQ_DMA);
    assert_int_equal(u->n->msix[0], irqs);
}

static void enable_with_nonsense(void **state)
{
    struct unit *u = *state;
    static const struct {
        uint32_t aq_shift, db_shift;
        uint64_t asq, acq;
    } bad[] = {
        { 0, 12, 0x1000, 0x2000 }, { 9, 12, 0x1000, 0x2000 },
        { UINT32_MAX, 12, 0x1000, 0x2000 }, { 4, 11, 0x1000, 0x2000 },
        { 4, 17, 0x1000, 0x2000 }, { 4, UINT32_MAX, 0x1000, 0x2000 },
        { 4, 12, 0x1040, 0x2000 }, { 4, 12, 0x1000, 0x2008 },
        { 4, 12, -4096ULL, 0x2000 },
    };
    unsigned i;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        node_reg_write(u->n, QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
        assert_int_equal(node_reg_read(u->n, QHCA_REG_CTRL, 4), 0);
        node_reg_write(u->n, QHCA_REG_AQ_SHIFT, bad[i].aq_shift, 4);
        node_reg_write(u->n, QHCA_REG_DB_SHIFT, bad[i].db_shift, 4);
        node_reg_write(u->n, QHCA_REG_ASQ_BASE, bad[i].asq, 8);
        node_reg_write(u->n, QHCA_REG_ACQ_BASE, bad[i].acq, 8);
        node_reg_write(u->n, QHCA_REG_CTRL, QHCA_CTRL_ENABLE, 4);
        assert_int_equal(fatal_reason(u), QHCA_FATAL_AQ_CONFIG);
        node_reg_write(u->n, QHCA_REG_ASQ_DB, 1, 4);
        node_db_write(u->n, 0, 1, 8);
    }
}

static void registers(void **state)
{
    struct unit *u = *state;
    struct node *n = u->n;
    uint64_t clock, bad = unit_stat(u, QHCA_STAT_DB_BAD_ACCESS);
    unsigned size;

    assert_int_equal(node_reg_read(n, QHCA_REG_ID, 4), QHCA_ID_MAGIC);
    assert_int_equal(node_reg_read(n, QHCA_REG_DB_PAGES, 4), 16384);
    assert_int_equal(node_reg_read(n, QHCA_REG_VECTORS, 4), WORLD_VECTORS);
    assert_int_equal(node_reg_read(n, QHCA_REG_FEATURES, 8),
                     u->g.caps.features);
    /* two halves: the low one latches the high one */
    clock = 0x300000000ULL;
    world_run_until(&u->w, clock - 1);
    assert_int_equal(node_reg_read(n, QHCA_REG_CLOCK, 4), 0xffffffff);
    world_run_until(&u->w, clock + 5);
    assert_int_equal(node_reg_read(n, QHCA_REG_CLOCK + 4, 4), 2);
    assert_int_equal(node_reg_read(n, QHCA_REG_CLOCK + 4, 4), 3);
    assert_int_equal(node_reg_read(n, QHCA_REG_CLOCK, 8), clock + 5);
    /* fixed while enabled */
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_ACCESS), bad);
    node_reg_write(n, QHCA_REG_AQ_SHIFT, 7, 4);
    node_reg_write(n, QHCA_REG_DB_SHIFT, 13, 4);
    node_reg_write(n, QHCA_REG_ASQ_BASE, 0x5000, 8);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_ACCESS), bad + 3);
    assert_int_equal(node_reg_read(n, QHCA_REG_AQ_SHIFT, 4), 4);
    assert_int_equal(node_reg_read(n, QHCA_REG_DB_SHIFT, 4), 12);
    assert_int_equal(node_reg_read(n, QHCA_REG_ASQ_BASE, 8), u->g.asq);
    /* wrong size, place, kind */
    for (size = 1; size <= 8; size *= 2) {
        assert_int_equal(node_reg_read(n, 0x3ff8, size), 0);
        assert_int_equal(node_reg_read(n, QHCA_REG_ID + 1, size), 0);
        node_reg_write(n, 0x50, 1, size);
        node_reg_write(n, QHCA_REG_ID, 1, size);
        node_reg_write(n, QHCA_REG_ASQ_DB + 2, 99, size);
    }
    node_reg_write(n, QHCA_REG_CTRL, 0, 1);
    node_reg_write(n, QHCA_REG_CTRL, 0, 8);
    assert_int_equal(node_reg_read(n, QHCA_REG_CTRL, 8), 0);
    assert_true(status(u) & QHCA_STATUS_READY);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_ACCESS),
                     bad + 3 + 20 + 3);
}

static void write_halves(void **state)
{
    struct unit *u = *state;
    struct node *n = u->n;

    node_reg_write(n, QHCA_REG_CTRL, QHCA_CTRL_RESET, 4);
    node_reg_write(n, QHCA_REG_ASQ_BASE, 0x89abc000, 4);
    assert_int_equal(node_reg_read(n, QHCA_REG_ASQ_BASE, 8), 0);
    node_reg_write(n, QHCA_REG_ASQ_BASE + 4, 0x1234567, 4);
    assert_int_equal(node_reg_read(n, QHCA_REG_ASQ_BASE, 8),
                     0x123456789abc000ULL);
    /* the half of another register is not used */
    node_reg_write(n, QHCA_REG_ASQ_BASE, 0xfffff000, 4);
    node_reg_write(n, QHCA_REG_ACQ_BASE + 4, 1, 4);
    assert_int_equal(node_reg_read(n, QHCA_REG_ACQ_BASE, 8), 1ULL << 32);
}

/* References: objects in use cannot be destroyed. */
static void busy(void **state)
{
    struct unit *u = *state;
    struct guest *g = &u->g;
    struct gcq cq;
    struct gqp qp;
    struct gmr mr;
    struct gsrq srq;
    struct gqp_init init = {
        .type = QHCA_QPT_RC, .flags = QHCA_QP_F_SRQ, .sq_shift = 2,
        .sq_stride = 6, .scq = &cq, .rcq = &cq, .srq = &srq,
    };
    struct { uint8_t op; uint32_t obj; } held[] = {
        { QHCA_CMD_FREE_PD, g->pd }, { QHCA_CMD_FREE_UAR, g->uar },
        { QHCA_CMD_DESTROY_EQ, 1 }, { QHCA_CMD_DESTROY_CQ, 0 },
        { QHCA_CMD_DESTROY_SRQ, 0 },
    };
    unsigned i;

    gcq_create(&cq, g, 3, NULL, 1);
    gsrq_create(&srq, g, 2, 6, NULL, NULL);
    gqp_create(&qp, g, &init);
    held[3].obj = cq.cqn;
    held[4].obj = srq.srqn;
    for (i = 0; i < 5; i++) {
        assert_int_equal(guest_simple(g, held[i].op, held[i].obj),
                         QHCA_ST_BUSY);
    }
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_FREE_PD, g->pd),
                     QHCA_ST_BUSY);
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_FREE_UAR, g->uar),
                     QHCA_ST_BUSY);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    gmr_create(&mr, g, 100, 0x1000, 0, NULL);
    assert_int_equal(guest_simple(g, QHCA_CMD_FREE_PD, g->pd),
                     QHCA_ST_BUSY);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    /* cannot be destroyed twice; UAR 0 cannot be freed */
    for (i = 3; i < 5; i++) {
        assert_int_equal(guest_simple(g, held[i].op, held[i].obj),
                         QHCA_ST_BAD_OBJ);
    }
    assert_int_equal(guest_simple(g, QHCA_CMD_FREE_UAR, 0),
                     QHCA_ST_BAD_OBJ);
}

/* Numbers are reused as late as possible. */
static void numbers(void **state)
{
    struct unit *u = *state;
    struct qhca_idr t;
    uint32_t n, i, j;
    int obj;

    (void)u;
    assert_true(qhca_idr_init(&t, 16, 2));
    for (i = 2; i < 16; i++) {
        assert_true(qhca_idr_add(&t, &obj, &n));
        assert_int_equal(n, i);
    }
    assert_false(qhca_idr_add(&t, &obj, &n));
    assert_true(qhca_idr_add_at(&t, &obj, 1));
    assert_false(qhca_idr_add_at(&t, &obj, 1));
    assert_false(qhca_idr_add_at(&t, &obj, 5));
    assert_null(qhca_idr_del(&t, 16));
    assert_null(qhca_idr_del(&t, UINT32_MAX));
    assert_null(qhca_idr_get(&t, 0));
    for (j = 0; j < 5; j++) {
        for (i = 9; i >= 4; i--) {
            assert_ptr_equal(qhca_idr_del(&t, i), &obj);
            assert_null(qhca_idr_del(&t, i));
        }
        for (i = 9; i >= 4; i--) {
            assert_true(qhca_idr_add(&t, &obj, &n));
            assert_int_equal(n, i);
        }
    }
    qhca_idr_reset(&t, 8);
    for (i = 2; i < 8; i++) {
        assert_true(qhca_idr_add(&t, &obj, &n));
        assert_int_equal(n, i);
    }
    assert_false(qhca_idr_add(&t, &obj, &n));
    qhca_idr_free(&t);
}

/* A full ring of commands at once: all are answered, in order. */
static void batch(void **state)
{
    struct unit *u = *state;
    struct guest *g = &u->g;
    struct qhca_aq_cqe *cqe;
    struct qhca_aq_cmd cmd = { .opcode = QHCA_CMD_NOP };
    uint32_t i, slot;

    for (i = 0; i < 16; i++) {
        cmd.cmd_id = (uint16_t)(1000 + i);
        slot = (g->asq_prod + i) & 15;
        memcpy(gmem_ptr(g->m, g->asq + 64 * slot, 64), &cmd, 64);
    }
    g->asq_prod += 16;
    node_reg_write(u->n, QHCA_REG_AQ_CTRL, QHCA_AQ_CTRL_IRQ, 4);
    u->n->msix[0] = 0;
    node_reg_write(u->n, QHCA_REG_ASQ_DB, g->asq_prod, 4);
    world_settle(&u->w, 1000000);
    for (i = 0; i < 16; i++) {
        cqe = gmem_ptr(g->m, g->acq + 16 * (g->acq_cons & 15), 16);
        assert_int_equal(cqe->cmd_id, 1000 + i);
        assert_int_equal(cqe->phase, !(g->acq_cons >> 4 & 1));
        g->acq_cons++;
    }
    assert_int_equal(u->n->msix[0], 16);
    node_reg_write(u->n, QHCA_REG_AQ_CTRL, 0, 4);
}

static void stats_cut_short(void **state)
{
    struct unit *u = *state;
    uint64_t out[3] = { 0 };
    struct gcmd c = {
        .op = QHCA_CMD_QUERY_STATS, .out = out, .out_len = 16,
    };

    assert_int_equal(guest_cmd(&u->g, &c), QHCA_ST_OK);
    assert_int_equal(out[0], 0);        /* was 0xa5... before */
    assert_int_equal(out[2], 0);
}

static void gids(void **state)
{
    /* zero and multicast */
    static const uint8_t none[][16] = {
        { 0 }, { 0xff, 0x0e, [15] = 1 }, { [10] = 0xff, 0xff },
        { [10] = 0xff, 0xff, 239, 255, 255, 255 },
        { [10] = 0xff, 0xff, 224, 0, 0, 1 },
    };
    struct unit *u = *state;
    struct qhca_gid g = {
        .gid = { 0xfe, 0x80, 1 }, .mac = { 2, 1 }, .type = QHCA_GID_ROCE_V2,
        .vlan = QHCA_VLAN_NONE,
    }, out;
    uint8_t gid[16];
    uint32_t i, max = u->g.caps.max_gid;
    uint64_t at;

    for (i = 4; i < max; i++) {
        g.gid[15] = (uint8_t)i;
        assert_int_equal(unit_cmd(u, QHCA_CMD_SET_GID, i, 0, &g, sizeof(g),
                                  NULL), QHCA_ST_OK);
    }
    for (i = 0; i < 4; i++) {
        guest_gid(0, i, gid);
        assert_int_equal(qhca_gid_find(u->e, gid, i & 2 ? 5 :
                                       QHCA_VLAN_NONE), i);
        assert_int_equal(qhca_gid_find(u->e, gid, 6), -1);
    }
    for (i = 4; i < max; i++) {
        g.gid[15] = (uint8_t)i;
        assert_int_equal(qhca_gid_find(u->e, g.gid, QHCA_VLAN_NONE), i);
    }
    g.gid[15] = 3;
    assert_int_equal(qhca_gid_find(u->e, g.gid, QHCA_VLAN_NONE), -1);
    /* one is removed, the others stay */
    g.type = QHCA_GID_NONE;
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_GID, 9, 0, &g, sizeof(g),
                              NULL), QHCA_ST_OK);
    g.gid[15] = 9;
    assert_int_equal(qhca_gid_find(u->e, g.gid, QHCA_VLAN_NONE), -1);
    g.gid[15] = 10;
    assert_int_equal(qhca_gid_find(u->e, g.gid, QHCA_VLAN_NONE), 10);
    /* the same address on two VLANs */
    g.type = QHCA_GID_ROCE_V2;
    g.vlan = 77;
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_GID, 9, 0, &g, sizeof(g),
                              NULL), QHCA_ST_OK);
    assert_int_equal(qhca_gid_find(u->e, g.gid, QHCA_VLAN_NONE), 10);
    assert_int_equal(qhca_gid_find(u->e, g.gid, 77), 9);
    g.type = QHCA_GID_NONE;
    guest_query(&u->g, QHCA_CMD_QUERY_GID, 10, &out, sizeof(out));
    assert_memory_equal(out.gid, g.gid, 16);
    assert_int_equal(out.type, QHCA_GID_ROCE_V2);
    /* nonsense */
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_GID, max, 0, &g, sizeof(g),
                              NULL), QHCA_ST_BAD_OBJ);
    g.type = 2;
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_GID, 9, 0, &g, sizeof(g),
                              &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_gid, type));
    g.type = QHCA_GID_ROCE_V2;
    g.vlan = 4095;
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_GID, 9, 0, &g, sizeof(g),
                              &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_gid, vlan));
    g.vlan = 5;
    for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        memcpy(g.gid, none[i], sizeof(g.gid));
        assert_int_equal(unit_cmd(u, QHCA_CMD_SET_GID, 9, 0, &g, sizeof(g),
                                  &at), QHCA_ST_BAD_PARAM);
        assert_int_equal(at, offsetof(struct qhca_gid, gid));
    }
    g.gid[12] = 223;            /* the last that is not multicast */
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_GID, 9, 0, &g, sizeof(g),
                              &at), QHCA_ST_OK);
    g.mac[0] = 1;
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_GID, 9, 0, &g, sizeof(g),
                              &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_gid, mac));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(unknown_opcodes),
        UNIT_HOSTILE(hostile_pointers),
        UNIT_HOSTILE(random_input),
        UNIT_HOSTILE(doorbell_too_far),
        UNIT_HOSTILE(ring_gone),
        UNIT_HOSTILE(completion_gone),
        UNIT_HOSTILE(enable_with_nonsense),
        UNIT(registers),
        UNIT_HOSTILE(write_halves),
        UNIT(busy),
        UNIT(numbers),
        UNIT(batch),
        UNIT(stats_cut_short),
        UNIT(gids),
    };

    return cmocka_run_group_tests_name("admin", tests, NULL, NULL);
}
