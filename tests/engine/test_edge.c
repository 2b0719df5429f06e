/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Edge cases of objects: limits reached, configurations refused, unreadable
 * rings, many events at once, a reset with everything in use.
 */
#include "unit.h"
#include "verdict.h"

static void configurations(void **state)
{
    static const struct qhca_ops ops;   /* none is called */
    struct qhca_config ok = { .mac = { 2, 0, 0, 0, 0, 1 } }, c;
    const char *err;
    struct qhca *e;

    (void)state;
    qhca_config_default(&ok);
    e = qhca_new(&ok, &ops, NULL, &err);
    assert_non_null(e);
    assert_null(err);
    qhca_free(e);
    qhca_free(NULL);
#define REFUSED(set) do {                               \
        c = ok;                                         \
        set;                                            \
        err = NULL;                                     \
        assert_null(qhca_new(&c, &ops, NULL, &err));    \
        assert_non_null(err);                           \
    } while (0)
    REFUSED(c.mac[0] = 1);
    REFUSED(memset(c.mac, 0, 6));
    REFUSED(c.num_vectors = 0);
    REFUSED(c.num_vectors = 2049);
    REFUSED(c.max_qp = 8);
    REFUSED(c.max_qp = 1000);
    REFUSED(c.max_cq = 1 << 21);
    REFUSED(c.max_srq = 0);
    REFUSED(c.max_mr = UINT32_MAX);
    REFUSED(c.max_pd = 17);
    REFUSED(c.max_eq = 1);
    REFUSED(c.max_eq = 8192);
    REFUSED(c.max_gid = 0);
    REFUSED(c.max_gid = 257);
    REFUSED(c.max_eth_queues = 3);
    REFUSED(c.max_eth_queues = 512);
    REFUSED(c.dm_size = 2048);
    REFUSED(c.dm_size = 12288);
    REFUSED(c.dm_size = 1ULL << 37);
    REFUSED(c.min_ack_timeout = 32);
    REFUSED(c.gro_hold = 1000001);
}

/* An adapter with 16 of everything. */
static int setup_small(void **state)
{
    static const struct guest_config cfg = {
        .db_shift = 16, .aq_shift = 4, .eqs = 2, .eq_shift = 8,
    };
    struct qhca_config small = {
        .num_vectors = 4, .max_qp = 16, .max_cq = 16, .max_srq = 16,
        .max_mr = 16, .max_pd = 16, .max_eq = 4, .max_gid = 4,
        .max_eth_queues = 2,
    };
    struct unit *u = calloc(1, sizeof(*u));

    world_init(&u->w, 1, 1, &small);
    u->n = &u->w.node[0];
    u->e = u->n->e;
    u->m = &u->n->mem;
    guest_start(&u->g, u->n, 1, &cfg);
    *state = u;
    return 0;
}

/* Run @op with @in until it is refused; returns how many were created. */
static uint32_t exhaust(struct unit *u, uint8_t op, const void *in,
                        uint32_t len)
{
    uint32_t n = 0;
    uint8_t st;

    do {
        st = unit_cmd(u, op, 0, 0, in, len, NULL);
        n += st == QHCA_ST_OK;
        assert_true(n <= 1024);
    } while (st == QHCA_ST_OK);
    assert_int_equal(st, QHCA_ST_NO_RESOURCES);
    return n;
}

static void limits(void **state)
{
    struct unit *u = *state;
    struct gbuf b;
    struct qhca_eqc eq = { .shift = 4 };
    struct qhca_cqc cq = { .uar = u->g.uar, .shift = 2 };
    struct qhca_srqc srq = {
        .pd = u->g.pd, .uar = u->g.uar, .shift = 2, .stride = 6,
    };
    struct qhca_qpc qp = {
        .pd = u->g.pd, .uar = u->g.uar, .send_cqn = 1, .recv_cqn = 1,
        .sq_shift = 2, .sq_stride = 6,
    };
    struct qhca_mpt mr = { .pd = u->g.pd, .len = 4096 };
    struct qhca_eth_qc eth = { .cqn = 1, .shift = 4, .stride = 6 };

    assert_int_equal(u->g.caps.features & QHCA_FEAT_DM, 0);
    mr.buf.len = mr.len;
    mr.flags = QHCA_MR_F_DM;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_MR, 0, 0, &mr, sizeof(mr),
                              NULL), QHCA_ST_UNSUPPORTED);
    mr.flags = 0;
    gbuf_make(&b, u->m, 4096, &gbuf_direct, true, 0, &u->g.rng);
    eq.buf = cq.buf = srq.buf = srq.idx = qp.sq = mr.buf = eth.buf = b.d;
    assert_int_equal(exhaust(u, QHCA_CMD_CREATE_EQ, &eq, sizeof(eq)), 4 - 2);
    assert_int_equal(exhaust(u, QHCA_CMD_CREATE_CQ, &cq, sizeof(cq)),
                     u->g.caps.max_cq);
    assert_int_equal(exhaust(u, QHCA_CMD_CREATE_SRQ, &srq, sizeof(srq)),
                     u->g.caps.max_srq);
    assert_int_equal(exhaust(u, QHCA_CMD_CREATE_QP, &qp, sizeof(qp)),
                     u->g.caps.max_qp);
    assert_int_equal(exhaust(u, QHCA_CMD_CREATE_MR, &mr, sizeof(mr)),
                     u->g.caps.max_mr);
    assert_int_equal(exhaust(u, QHCA_CMD_CREATE_ETH_SQ, &eth, sizeof(eth)),
                     2);
    eth.stride = 4;
    assert_int_equal(exhaust(u, QHCA_CMD_CREATE_ETH_RQ, &eth, sizeof(eth)),
                     2);
    assert_int_equal(exhaust(u, QHCA_CMD_ALLOC_PD, NULL, 0),
                     u->g.caps.max_pd - 1);
    /* 1024 pages of 64 KiB; 0 is the kernel's, one belonged to the guest */
    assert_int_equal(u->g.caps.max_uar, 1024);
    assert_int_equal(exhaust(u, QHCA_CMD_ALLOC_UAR, NULL, 0), 1022);
    /* destroy one, create one */
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_QP, 5),
                     QHCA_ST_OK);
    assert_int_equal(exhaust(u, QHCA_CMD_CREATE_QP, &qp, sizeof(qp)), 1);
    gbuf_free(&b);
}

/* A reset destroys everything, and all of it can be created again. */
static void reset_in_use(void **state)
{
    struct unit *u = *state;
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 2, .eqs = 2, .eq_shift = 4,
    };
    struct qhca_eth_qc eth = { .shift = 4, .stride = 6 };
    unsigned i;

    for (i = 0; i < 3; i++) {
        struct gcq cq;
        struct gmr mr;
        struct gsrq srq;
        struct gqp qp;
        struct gqp_init init = {
            .type = QHCA_QPT_GSI, .flags = QHCA_QP_F_SRQ, .sq_shift = 2,
            .sq_stride = 7, .scq = &cq, .rcq = &cq, .srq = &srq,
        };

        gcq_create(&cq, &u->g, 3, NULL, 1);
        gsrq_create(&srq, &u->g, 2, 6, NULL, NULL);
        gqp_create(&qp, &u->g, &init);
        gmr_create(&mr, &u->g, 8192, 0, 0, NULL);
        eth.buf = mr.buf.d;
        eth.cqn = cq.cqn;
        assert_int_equal(guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &eth,
                                      sizeof(eth)), 0);
        assert_int_equal(cq.cqn, 1);
        assert_int_equal(qp.qpn, 1);
        qhca_event(u->e, qhca_idr_get(&u->e->q->eqs, 1),
                   &qhca_qp_get(u->e, 1)->ev, QHCA_EV_COMM_EST, 0);
        node_reg_write(u->n, QHCA_REG_CTRL, 0, 4);
        assert_int_equal(node_reg_read(u->n, QHCA_REG_STATUS, 4),
                         QHCA_STATUS_LINK);
        assert_null(qhca_qp_get(u->e, 1));
        assert_int_equal(u->e->mem->mrs.used, 0);
        assert_int_equal(u->e->mem->uars.used, 0);
        assert_int_equal(unit_stat(u, QHCA_STAT_EQES), 0);
        guest_drop(&u->g);
        gbuf_free(&cq.buf);
        gbuf_free(&srq.buf);
        gbuf_free(&srq.idx);
        free(srq.free);
        gbuf_free(&qp.sq);
        gmr_drop(&mr);
        guest_start(&u->g, u->n, i, &cfg);
    }
}

/* More events than one batch are pending: the rest follows in later runs. */
static void many_events_wait(void **state)
{
    struct unit *u = *state;
    struct geq *eq = &u->g.eq[1];
    uint32_t depth = 1u << eq->shift, i;
    struct qhca_event_src *src = calloc(depth, sizeof(*src));
    struct qhca_eq *q = qhca_idr_get(&u->e->q->eqs, eq->eqn);

    u->n->on_msix = NULL;
    for (i = 0; i < depth; i++) {
        qhca_event(u->e, q, &u->e->q->port_ev, QHCA_EV_PORT, 0);
    }
    for (i = 0; i < depth; i++) {
        qhca_event_init(&src[i], i);
        qhca_event(u->e, q, &src[i], QHCA_EV_SRQ_LIMIT, 0);
        qhca_event(u->e, q, &src[i], QHCA_EV_SRQ_ERR, QHCA_SYN_WQE_DMA);
        qhca_event(u->e, q, &src[i], QHCA_EV_SRQ_LIMIT, 0);
    }
    assert_int_equal(q->prod, depth);
    guest_doorbell(&u->g, 0, QHCA_DB_EQ, eq->eqn |
                   (uint64_t)depth << QHCA_DB_INDEX_SHIFT);
    assert_true(q->prod < 2 * depth);   /* not all in one call */
    world_settle(&u->w, 10000000);
    assert_int_equal(q->prod, 2 * depth);
    for (i = 0; i < depth; i++) {       /* both of one, then the next's */
        struct qhca_eqe e;

        gbuf_read(&eq->buf, i * sizeof(e), &e, sizeof(e));
        assert_int_equal(e.obj, i / 2);
        assert_int_equal(e.type, i & 1 ? QHCA_EV_SRQ_ERR :
                                         QHCA_EV_SRQ_LIMIT);
        assert_int_equal(e.syndrome, i & 1 ? QHCA_SYN_WQE_DMA : 0);
    }
    /* destroying an EQ drops its pending events */
    eq->cons = 2 * depth;
    qhca_event_forget(&src[depth - 1]);
    guest_stop(&u->g);
    assert_true(qhca_list_empty(&src[depth - 2].link));
    world_fini(&u->w);
    free(src);
    free(u);
}

static uint64_t broken_from, broken_to;

static void break_range(void *opaque, uint64_t addr, size_t len, bool write)
{
    struct unit *u = opaque;

    (void)len;
    (void)write;
    u->m->fail_64k = addr >= broken_from && addr < broken_to ? 65536 : 0;
}

static void repair(struct unit *u)
{
    u->m->watch = NULL;
    u->m->fail_64k = 0;
}

/* Each thing a receive needs, made inaccessible in turn. */
static void srq_memory_gone(void **state)
{
    struct unit *u = *state;
    struct qhca_sge sge = { .addr = 0x1000, .len = 1, .lkey = 7 };
    uint8_t wqe[QHCA_MAX_RQ_WQE];
    uint32_t len, index, w;
    unsigned i;

    for (i = 0; i < 3; i++) {
        struct gcq cq;
        struct gsrq srq;
        struct gqp qp;
        struct gqp_init init = {
            .type = QHCA_QPT_RC, .flags = QHCA_QP_F_SRQ, .sq_shift = 2,
            .sq_stride = 6, .scq = &cq, .rcq = &cq, .srq = &srq,
        };

        gcq_create(&cq, &u->g, 3, NULL, 1);
        gsrq_create(&srq, &u->g, 2, 6, NULL, NULL);
        gqp_create(&qp, &u->g, &init);
        assert_true(gsrq_post(&srq, 1, &sge, 1, &w));
        broken_from = i == 0 ? srq.dbrec :
                      i == 1 ? gbuf_addr(&srq.idx, 0, NULL) :
                               gbuf_addr(&srq.buf, 0, NULL);
        broken_to = broken_from + 64;
        u->m->watch = break_range;
        u->m->watch_opaque = u;
        assert_int_equal(qhca_rq_take(u->e, qhca_qp_get(u->e, qp.qpn), wqe,
                                      &len, &index), QHCA_SYN_WQE_DMA);
        repair(u);
        /* and it stays so */
        assert_int_equal(qhca_rq_take(u->e, qhca_qp_get(u->e, qp.qpn), wqe,
                                      &len, &index), QHCA_SYN_WQE_DMA);
        world_settle(&u->w, 1000000);
        assert_int_equal(u->g.async_count[QHCA_EV_SRQ_ERR], i + 1);
        assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
        assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
        assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    }
}

/* An SRQ grows with WQEs in it, which keep their numbers and order. */
static void srq_grows(void **state)
{
    struct unit *u = *state;
    struct qhca_sge sge = { .addr = 0x1000, .len = 1, .lkey = 7 };
    uint8_t wqe[QHCA_MAX_RQ_WQE], shift;
    uint32_t len, index, w, order[64], posted = 0, taken = 0;
    uint64_t wr_id, off;
    struct qhca_srqc c;
    struct gcq cq;
    struct gsrq srq;
    struct gqp qp;
    struct gqp_init init = {
        .type = QHCA_QPT_RC, .flags = QHCA_QP_F_SRQ, .sq_shift = 2,
        .sq_stride = 6, .scq = &cq, .rcq = &cq, .srq = &srq,
    };

    gcq_create(&cq, &u->g, 3, NULL, 1);
    gsrq_create(&srq, &u->g, 1, 6, NULL, NULL);
    gqp_create(&qp, &u->g, &init);
    for (shift = 2; shift <= 6; shift++) {
        struct gbuf_shape a, b;

        while (gsrq_post(&srq, posted, &sge, 1, &w)) {
            order[posted++ & 63] = w;
        }
        assert_int_equal(qhca_rq_take(u->e, qhca_qp_get(u->e, qp.qpn), wqe,
                                      &len, &index), QHCA_SYN_NONE);
        assert_int_equal(index, order[taken++ & 63]);
        gbuf_shape_random(&a, &u->g.rng, 64ULL << shift);
        gbuf_shape_random(&b, &u->g.rng, 4ULL << shift);
        assert_int_equal(gsrq_grow(&srq, shift, &a, &b), QHCA_ST_OK);
        guest_query(&u->g, QHCA_CMD_QUERY_SRQ, srq.srqn, &c, sizeof(c));
        assert_int_equal(c.shift, shift);
        assert_int_equal(c.tail, taken);
    }
    while (gsrq_post(&srq, posted, &sge, 1, &w)) {
        order[posted++ & 63] = w;
    }
    /* one completion per WQE was never given back */
    assert_int_equal(posted, 64);
    for (; taken < posted; taken++) {
        assert_int_equal(qhca_rq_take(u->e, qhca_qp_get(u->e, qp.qpn), wqe,
                                      &len, &index), QHCA_SYN_NONE);
        memcpy(&wr_id, wqe, 8);
        assert_int_equal(wr_id, taken);
        assert_int_equal(index, order[taken & 63]);
    }
    assert_int_equal(qhca_rq_take(u->e, qhca_qp_get(u->e, qp.qpn), wqe, &len,
                                  &index), QHCA_SYN_RNR);
    /* not smaller, not with too little memory, not with too high a limit */
    assert_int_equal(gsrq_grow(&srq, 5, NULL, NULL), QHCA_ST_BAD_PARAM);
    c.shift = 7;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_SRQ, srq.srqn,
                              QHCA_SRQ_M_RESIZE, &c, sizeof(c), &off),
                     QHCA_ST_BAD_TABLE);
    c.shift = 6;
    c.limit = 65;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_SRQ, srq.srqn,
                              QHCA_SRQ_M_RESIZE | QHCA_SRQ_M_LIMIT, &c,
                              sizeof(c), &off), QHCA_ST_BAD_PARAM);
    assert_int_equal(off, offsetof(struct qhca_srqc, limit));
    c.limit = 64;                       /* and at once there are fewer */
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_SRQ, srq.srqn,
                              QHCA_SRQ_M_RESIZE | QHCA_SRQ_M_LIMIT, &c,
                              sizeof(c), &off), QHCA_ST_OK);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_SRQ_LIMIT], 1);
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* A CPU that writes to the same word: the addition is not lost. */
static unsigned interference;

static void interfere(void *opaque, uint64_t addr, size_t len, bool write)
{
    struct unit *u = opaque;
    uint64_t v;

    if (len == 8 && !write && interference) {
        interference--;
        memcpy(&v, gmem_ptr(u->m, addr, 8), 8);
        v += 1000;
        memcpy(gmem_ptr(u->m, addr, 8), &v, 8);
    }
}

static void atomic_contention(void **state)
{
    const struct qhca_atomic add5 = { .cmp_add = 5 };
    struct unit *u = *state;
    uint64_t old = 0, v = 0;
    struct gmr mr;

    gmr_create(&mr, &u->g, 4096, 0, QHCA_ACCESS_LOCAL_WRITE |
               QHCA_ACCESS_REMOTE_ATOMIC, NULL);
    gbuf_allow(&mr.buf, 0, 4096, GMEM_RW);
    gbuf_write(&mr.buf, 0, &v, 8);
    u->m->watch = interfere;
    u->m->watch_opaque = u;
    interference = 7;
    assert_int_equal(qhca_mr_atomic(u->e, u->g.pd, mr.key, 0, &add5, &old,
                                    2), QHCA_SYN_NONE);
    assert_int_equal(old, 7000);
    gbuf_read(&mr.buf, 0, &v, 8);
    assert_int_equal(v, 7005);
    /* a CPU that never stops does not block the adapter */
    interference = UINT32_MAX;
    assert_int_equal(qhca_mr_atomic(u->e, u->g.pd, mr.key, 0, &add5, &old,
                                    2), QHCA_SYN_DATA_DMA);
    repair(u);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
}

/* Nothing is sent while the link is down, and nothing received. */
static void link_down(void **state)
{
    struct unit *u = *state;
    uint8_t frame[60] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

    qhca_set_link(u->e, false);
    assert_true(qhca_tx(u->e, frame, sizeof(frame)));
    assert_int_equal(u->n->tx_frames, 0);
    world_inject(&u->w, 0, frame, sizeof(frame));
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 0);
    qhca_set_link(u->e, true);
    world_inject(&u->w, 0, frame, sizeof(frame));
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 1);
    assert_true(qhca_tx(u->e, frame, sizeof(frame)));
    assert_int_equal(u->n->tx_frames, 1);
}

/* TCP over IPv6, with the pseudo header of RFC 8200. */
static void ipv6_verdict(void **state)
{
    uint8_t f[14 + 40 + 33], pseudo[40];
    struct qhca_csum_verdict v;
    uint16_t sum;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(f); i++) {
        f[i] = (uint8_t)(i * 11);
    }
    memcpy(f + 12, "\x86\xdd\x60\x00\x00\x00\x00\x21\x06\x40", 10);
    memset(f + 70, 0, 2);
    memcpy(pseudo, f + 22, 32);
    memcpy(pseudo + 32, "\0\0\0\x21\0\0\0\x06", 8);
    sum = (uint16_t)~qhca_csum(f + 54, 33, qhca_csum(pseudo, 40, 0));
    memcpy(f + 70, &sum, 2);
    verdict(f, sizeof(f), &v);
    assert_true(v.l3_ok && v.l4_ok);
    assert_int_equal(v.sum, qhca_csum(f + 14, sizeof(f) - 14, 0));
    assert_true(qhca_csum_l4_ok(f + 14, 6, f + 54, 33, QHCA_PROTO_TCP));
    assert_false(qhca_csum_l4_ok(f + 14, 6, f + 54, 33, 132)); /* SCTP */
    f[86] ^= 4;
    verdict(f, sizeof(f), &v);
    assert_true(v.l3_ok && !v.l4_ok);
    f[18] = 0xff;                       /* longer than the frame */
    verdict(f, sizeof(f), &v);
    assert_true(!v.l3_ok && !v.l4_ok);
    f[14] = 0x40;                       /* not version 6 */
    verdict(f, sizeof(f), &v);
    assert_true(!v.l3_ok && !v.l4_ok);
    for (i = 14; i < sizeof(f); i++) {  /* cut anywhere */
        uint8_t *cut = malloc(i);

        memcpy(cut, f, i);
        cut[13] = i & 1 ? 0xdd : 0;
        cut[12] = i & 1 ? 0x86 : 8;
        verdict(cut, i, &v);
        free(cut);
    }
}

/* An adapter is freed in parts, what a reset has put aside first. */
static void freed_in_parts(void **state)
{
    struct unit *u = *state;
    unsigned i, parts = 0;

    for (i = 0; i < 600; i++) {
        guest_create(&u->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    }
    qhca_reset(u->e);
    guest_drop(&u->g);
    assert_non_null(u->e->ad->remains);
    while (u->e->ad->remains) {
        assert_false(qhca_free_part(u->e, 100));
        parts++;
    }
    assert_in_range(parts, 6, 12);
    for (parts = 1; !qhca_free_part(u->e, 100); parts++) {
        assert_true(parts < 12);
    }
    u->n->e = NULL;
    world_fini(&u->w);
    free(u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(configurations),
        cmocka_unit_test_setup_teardown(limits, setup_small, unit_abandon),
        UNIT(reset_in_use),
        cmocka_unit_test_setup_teardown(many_events_wait, setup_small, NULL),
        UNIT(srq_memory_gone),
        UNIT(srq_grows),
        UNIT(atomic_contention),
        UNIT(link_down),
        cmocka_unit_test(ipv6_verdict),
        cmocka_unit_test_setup_teardown(freed_in_parts, unit_setup, NULL),
    };

    return cmocka_run_group_tests_name("edge", tests, NULL, NULL);
}
