/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Queue pairs as seen by the admin queue and doorbells: contexts, the
 * transitions of IBA 10.3.1, receive rings, doorbell owners and indices.
 */
#include "unit.h"

#define M(name) QHCA_QP_M_ ## name

struct pair {
    struct gcq cq;
    struct gqp qp;
    uint32_t xrcd;              /* of an XRC target, else 0 */
};

static void make(struct unit *u, struct pair *p, uint8_t type)
{
    struct gqp_init init = {
        .type = type, .sq_shift = 3, .sq_stride = 7, .rq_shift = 3,
        .rq_stride = 6, .scq = &p->cq, .rcq = &p->cq,
    };

    gcq_create(&p->cq, &u->g, 6, NULL, 1);
    p->xrcd = 0;
    if (type == QHCA_QPT_XRC_INI || type == QHCA_QPT_XRC_TGT) {
        init.rcq = NULL;
        init.rq_stride = 0;
    }
    if (type == QHCA_QPT_XRC_TGT) {
        p->xrcd = guest_create(&u->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
        init.xrcd = p->xrcd;
        init.scq = NULL;
        init.sq_stride = 0;
    }
    gqp_create(&p->qp, &u->g, &init);
}

static void unmake(struct pair *p)
{
    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&p->cq), QHCA_ST_OK);
    if (p->xrcd) {
        assert_int_equal(guest_simple(p->qp.g, QHCA_CMD_FREE_XRCD, p->xrcd),
                         QHCA_ST_OK);
    }
}

static struct qhca_qp *qp_of(struct unit *u, struct pair *p)
{
    return qhca_qp_get(u->e, p->qp.qpn);
}

/* A context with every attribute valid, for a loopback connection. */
static struct qhca_qpc attributes(struct unit *u)
{
    struct qhca_qpc c = {
        .dest_qpn = 0x123, .qkey = 0x11111111, .sq_psn = 1, .rq_psn = 2,
        .access = 0xf, .path_mtu = 3, .timeout = 14, .retry_cnt = 7,
        .rnr_retry = 7, .min_rnr_timer = 12, .max_rd_atomic = 1,
        .max_dest_rd_atomic = 1, .en_sqd_event = 1,
    };

    guest_av(&u->g, u->n, 0, &c.av);
    return c;
}

static uint8_t modify(struct unit *u, struct pair *p, struct qhca_qpc *c,
                      uint64_t mask, uint64_t *at)
{
    return unit_cmd(u, QHCA_CMD_MODIFY_QP, p->qp.qpn, mask, c, sizeof(*c),
                    at);
}

/*
 * The table again, written independently of the engine's: from, to, and the
 * attributes of RC, UC, UD, XRC_INI and XRC_TGT that are required (m) and
 * optional (o).
 */
static const struct rule {
    uint8_t from, to;
    uint64_t m[5], o[5];
} rules[] = {
    { QHCA_QPS_RESET, QHCA_QPS_RESET, { 0 }, { 0 } },
    { QHCA_QPS_RESET, QHCA_QPS_INIT,
      { M(PKEY_INDEX) | M(ACCESS), M(PKEY_INDEX) | M(ACCESS),
        M(PKEY_INDEX) | M(QKEY), M(PKEY_INDEX) | M(ACCESS),
        M(PKEY_INDEX) | M(ACCESS) }, { 0 } },
    { QHCA_QPS_INIT, QHCA_QPS_RESET, { 0 }, { 0 } },
    { QHCA_QPS_INIT, QHCA_QPS_ERR, { 0 }, { 0 } },
    { QHCA_QPS_INIT, QHCA_QPS_INIT, { 0 },
      { M(PKEY_INDEX) | M(ACCESS), M(PKEY_INDEX) | M(ACCESS),
        M(PKEY_INDEX) | M(QKEY), M(PKEY_INDEX) | M(ACCESS),
        M(PKEY_INDEX) | M(ACCESS) } },
    { QHCA_QPS_INIT, QHCA_QPS_RTR,
      { M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN) |
        M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER),
        M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN), 0,
        M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN),
        M(AV) | M(PATH_MTU) | M(DEST_QPN) | M(RQ_PSN) |
        M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER) },
      { M(PKEY_INDEX) | M(ACCESS), M(PKEY_INDEX) | M(ACCESS),
        M(PKEY_INDEX) | M(QKEY), M(PKEY_INDEX) | M(ACCESS),
        M(PKEY_INDEX) | M(ACCESS) } },
    { QHCA_QPS_RTR, QHCA_QPS_RESET, { 0 }, { 0 } },
    { QHCA_QPS_RTR, QHCA_QPS_ERR, { 0 }, { 0 } },
    { QHCA_QPS_RTR, QHCA_QPS_RTS,
      { M(SQ_PSN) | M(TIMEOUT) | M(RETRY_CNT) | M(RNR_RETRY) |
        M(MAX_RD_ATOMIC), M(SQ_PSN), M(SQ_PSN),
        M(SQ_PSN) | M(TIMEOUT) | M(RETRY_CNT) | M(RNR_RETRY) |
        M(MAX_RD_ATOMIC), M(SQ_PSN) | M(TIMEOUT) },
      { M(ACCESS) | M(MIN_RNR_TIMER), M(ACCESS), M(QKEY), M(ACCESS),
        M(ACCESS) | M(MIN_RNR_TIMER) } },
    { QHCA_QPS_RTS, QHCA_QPS_RESET, { 0 }, { 0 } },
    { QHCA_QPS_RTS, QHCA_QPS_ERR, { 0 }, { 0 } },
    { QHCA_QPS_RTS, QHCA_QPS_RTS, { 0 },
      { M(ACCESS) | M(MIN_RNR_TIMER), M(ACCESS), M(QKEY), M(ACCESS),
        M(ACCESS) | M(MIN_RNR_TIMER) } },
    { QHCA_QPS_RTS, QHCA_QPS_SQD, { 0 },
      { M(SQD_EVENT), M(SQD_EVENT), M(SQD_EVENT), M(SQD_EVENT),
        M(SQD_EVENT) } },
    { QHCA_QPS_SQD, QHCA_QPS_RESET, { 0 }, { 0 } },
    { QHCA_QPS_SQD, QHCA_QPS_ERR, { 0 }, { 0 } },
    { QHCA_QPS_SQD, QHCA_QPS_RTS, { 0 },
      { M(ACCESS) | M(MIN_RNR_TIMER), M(ACCESS), M(QKEY), M(ACCESS),
        M(ACCESS) | M(MIN_RNR_TIMER) } },
    { QHCA_QPS_SQD, QHCA_QPS_SQD, { 0 },
      { M(PKEY_INDEX) | M(ACCESS) | M(AV) | M(TIMEOUT) | M(RETRY_CNT) |
        M(RNR_RETRY) | M(MAX_RD_ATOMIC) | M(MAX_DEST_RD_ATOMIC) |
        M(MIN_RNR_TIMER), M(PKEY_INDEX) | M(ACCESS) | M(AV),
        M(PKEY_INDEX) | M(QKEY),
        M(PKEY_INDEX) | M(ACCESS) | M(AV) | M(TIMEOUT) | M(RETRY_CNT) |
        M(RNR_RETRY) | M(MAX_RD_ATOMIC),
        M(PKEY_INDEX) | M(ACCESS) | M(AV) | M(TIMEOUT) |
        M(MAX_DEST_RD_ATOMIC) | M(MIN_RNR_TIMER) } },
    { QHCA_QPS_SQE, QHCA_QPS_RESET, { 0 }, { 0 } },
    { QHCA_QPS_SQE, QHCA_QPS_ERR, { 0 }, { 0 } },
    { QHCA_QPS_SQE, QHCA_QPS_RTS, { 0 }, { 0, M(ACCESS), M(QKEY) } },
    { QHCA_QPS_ERR, QHCA_QPS_RESET, { 0 }, { 0 } },
    { QHCA_QPS_ERR, QHCA_QPS_ERR, { 0 }, { 0 } },
};

static const struct rule *find_rule(uint8_t from, uint8_t to)
{
    unsigned i;

    for (i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        if (rules[i].from == from && rules[i].to == to) {
            return &rules[i];
        }
    }
    return NULL;
}

/* The column of the table above. */
static unsigned service(uint8_t type)
{
    switch (type) {
    case QHCA_QPT_RC:
        return 0;
    case QHCA_QPT_UC:
        return 1;
    case QHCA_QPT_XRC_INI:
        return 3;
    case QHCA_QPT_XRC_TGT:
        return 4;
    default:
        return 2;
    }
}

/* Set the QP's state directly: only the command is under test. */
static void put_in(struct unit *u, struct pair *p, uint8_t state)
{
    struct qhca_qpc c = attributes(u);
    static const uint8_t way[] = {
        QHCA_QPS_INIT, QHCA_QPS_RTR, QHCA_QPS_RTS, QHCA_QPS_SQD,
    };
    unsigned i, svc = service(p->qp.type);
    uint8_t from = QHCA_QPS_RESET;

    c.state = QHCA_QPS_RESET;
    assert_int_equal(modify(u, p, &c, M(STATE), NULL), QHCA_ST_OK);
    for (i = 0; i < 4 && from != state; i++) {
        if ((state == QHCA_QPS_SQE || state == QHCA_QPS_ERR) &&
            from == QHCA_QPS_RTS) {
            break;
        }
        c.state = way[i];
        assert_int_equal(modify(u, p, &c, M(STATE) |
                                find_rule(from, way[i])->m[svc], NULL),
                         QHCA_ST_OK);
        from = way[i];
    }
    if (state == QHCA_QPS_SQE) {
        qhca_qp_sqe(u->e, qp_of(u, p), QHCA_SYN_WQE_OPCODE);
    } else if (state == QHCA_QPS_ERR) {
        qhca_qp_error(u->e, qp_of(u, p), QHCA_SYN_WQE_OPCODE, 0);
    }
    assert_int_equal(qp_of(u, p)->state, state);
}

static void transitions(void **state)
{
    struct unit *u = *state;
    static const uint8_t types[] = {
        QHCA_QPT_RC, QHCA_QPT_UC, QHCA_QPT_UD, QHCA_QPT_GSI,
        QHCA_QPT_XRC_INI, QHCA_QPT_XRC_TGT,
    };
    const struct rule *r;
    struct qhca_qpc c;
    struct pair p;
    uint64_t bit, at;
    unsigned t, svc;
    uint8_t from, to;

    for (t = 0; t < sizeof(types); t++) {
        svc = service(types[t]);
        make(u, &p, types[t]);
        for (from = 0; from <= QHCA_QPS_ERR; from++) {
            if (from == QHCA_QPS_SQE && svc != 1 && svc != 2) {
                continue;       /* reliable services have no such state */
            }
            for (to = 0; to <= QHCA_QPS_ERR; to++) {
                r = find_rule(from, to);
                c = attributes(u);
                c.state = to;
                put_in(u, &p, from);
                if (!r) {
                    assert_int_equal(modify(u, &p, &c, M(STATE), NULL),
                                     QHCA_ST_BAD_STATE);
                    assert_int_equal(modify(u, &p, &c, M(ALL), NULL),
                                     QHCA_ST_BAD_STATE);
                    assert_int_equal(qp_of(u, &p)->state, from);
                    continue;
                }
                /* each required attribute, missing */
                for (bit = 2; bit < M(ALL); bit <<= 1) {
                    if (!(r->m[svc] & bit)) {
                        continue;
                    }
                    assert_int_equal(modify(u, &p, &c, M(STATE) |
                                            (r->m[svc] & ~bit), NULL),
                                     QHCA_ST_BAD_PARAM);
                    assert_int_equal(qp_of(u, &p)->state, from);
                }
                /* each forbidden attribute, present */
                for (bit = 2; bit < 1 << 17; bit <<= 1) {
                    if ((r->m[svc] | r->o[svc]) & bit) {
                        continue;
                    }
                    assert_int_equal(modify(u, &p, &c, M(STATE) |
                                            r->m[svc] | bit, NULL),
                                     QHCA_ST_BAD_PARAM);
                    assert_int_equal(qp_of(u, &p)->state, from);
                }
                assert_int_equal(modify(u, &p, &c, M(STATE) | r->m[svc],
                                        &at), QHCA_ST_OK);
                put_in(u, &p, from);
                assert_int_equal(modify(u, &p, &c, M(STATE) | r->m[svc] |
                                        r->o[svc], &at), QHCA_ST_OK);
                assert_int_equal(qp_of(u, &p)->state, to);
            }
        }
        unmake(&p);
    }
}

static void ranges(void **state)
{
    struct unit *u = *state;
    struct qhca_qpc ok, c;
    struct pair p;
    uint64_t at;
    const uint64_t init = M(STATE) | M(PKEY_INDEX) | M(ACCESS);
    const uint64_t rtr = M(STATE) | find_rule(QHCA_QPS_INIT,
                                              QHCA_QPS_RTR)->m[0];
    const uint64_t rts = M(STATE) | find_rule(QHCA_QPS_RTR,
                                              QHCA_QPS_RTS)->m[0];

#define REFUSED(to, mask, set, field) do {                              \
        c = ok;                                                         \
        c.state = to;                                                   \
        set;                                                            \
        assert_int_equal(modify(u, &p, &c, mask, &at),                  \
                         QHCA_ST_BAD_PARAM);                            \
        assert_int_equal(at, offsetof(struct qhca_qpc, field));         \
    } while (0)
    make(u, &p, QHCA_QPT_RC);
    ok = attributes(u);
    REFUSED(7, M(STATE), , state);
    REFUSED(255, M(STATE), , state);
    REFUSED(QHCA_QPS_INIT, init, c.pkey_index = 1, pkey_index);
    REFUSED(QHCA_QPS_INIT, init, c.access = 0x20, access);
    REFUSED(QHCA_QPS_INIT, init & ~M(ACCESS), , access);
    put_in(u, &p, QHCA_QPS_INIT);
    REFUSED(QHCA_QPS_RTR, rtr, c.path_mtu = 0, path_mtu);
    REFUSED(QHCA_QPS_RTR, rtr, c.path_mtu = 6, path_mtu);
    REFUSED(QHCA_QPS_RTR, rtr, c.dest_qpn = 1 << 24, dest_qpn);
    REFUSED(QHCA_QPS_RTR, rtr, c.rq_psn = 1 << 24, rq_psn);
    REFUSED(QHCA_QPS_RTR, rtr, c.min_rnr_timer = 32, min_rnr_timer);
    REFUSED(QHCA_QPS_RTR, rtr, c.max_dest_rd_atomic = 17,
            max_dest_rd_atomic);
    REFUSED(QHCA_QPS_RTR, rtr, c.av.sgid_index = 9, av.sgid_index);
    REFUSED(QHCA_QPS_RTR, rtr, c.av.sgid_index = 0xffff, av.sgid_index);
    REFUSED(QHCA_QPS_RTR, rtr, c.av.flags = 1, av.flags);
    REFUSED(QHCA_QPS_RTR, rtr, c.av.flow_label = 1 << 20, av.flow_label);
    REFUSED(QHCA_QPS_RTR, rtr, c.av.sl = 8, av.sl);
    REFUSED(QHCA_QPS_RTR, rtr, c.av.dgid[0] = 0xff, av.dgid);
    put_in(u, &p, QHCA_QPS_RTR);
    REFUSED(QHCA_QPS_RTS, rts, c.timeout = 32, timeout);
    REFUSED(QHCA_QPS_RTS, rts, c.retry_cnt = 8, retry_cnt);
    REFUSED(QHCA_QPS_RTS, rts, c.rnr_retry = 8, rnr_retry);
    REFUSED(QHCA_QPS_RTS, rts, c.sq_psn = 1 << 24, sq_psn);
    REFUSED(QHCA_QPS_RTS, rts, c.max_rd_atomic = 17, max_rd_atomic);
    put_in(u, &p, QHCA_QPS_RTS);
    REFUSED(QHCA_QPS_SQD, M(STATE) | M(SQD_EVENT), c.en_sqd_event = 2,
            en_sqd_event);
    /* a refused command changed nothing */
    assert_true(qhca_query_qp(u->e, p.qp.qpn, &c));
    assert_int_equal(c.timeout, ok.timeout);
    assert_int_equal(c.state, QHCA_QPS_RTS);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_QP, 0xffffff, M(STATE), &c,
                              sizeof(c), NULL), QHCA_ST_BAD_OBJ);
    unmake(&p);
}

static void bad_contexts(void **state)
{
    struct unit *u = *state;
    struct qhca_qpc ok = {
        .type = QHCA_QPT_RC, .pd = u->g.pd, .uar = u->g.uar, .sq_shift = 4,
        .sq_stride = 6, .rq_shift = 4, .rq_stride = 5,
        .rq_dbrec = 0x1000, .sq = { .addr = 0x1000, .len = 1024 },
        .rq = { .addr = 0x2000, .len = 512 },
    }, c;
    struct gcq cq;
    uint64_t at;

#define NO(set, want, field) do {                                       \
        c = ok;                                                         \
        set;                                                            \
        assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_QP, 0, 0, &c,      \
                                  sizeof(c), &at), want);               \
        assert_int_equal(at, offsetof(struct qhca_qpc, field));         \
    } while (0)
    gcq_create(&cq, &u->g, 4, NULL, 1);
    ok.send_cqn = ok.recv_cqn = cq.cqn;
    NO(c.type = 200, QHCA_ST_BAD_PARAM, type);
    NO(c.type = 255, QHCA_ST_BAD_PARAM, type);
    NO(c.state = QHCA_QPS_RTS, QHCA_ST_BAD_PARAM, state);
    NO(c.flags = 4, QHCA_ST_BAD_PARAM, flags);
    NO(c.flags = QHCA_QP_F_PRIVILEGED, QHCA_ST_BAD_PARAM, flags);
    NO(c.pd = 0, QHCA_ST_BAD_OBJ, pd);
    NO(c.uar = 4711, QHCA_ST_BAD_OBJ, uar);
    NO(c.send_cqn = 0, QHCA_ST_BAD_OBJ, send_cqn);
    NO(c.recv_cqn = UINT32_MAX, QHCA_ST_BAD_OBJ, recv_cqn);
    NO(c.flags = QHCA_QP_F_SRQ; c.srqn = 1, QHCA_ST_BAD_OBJ, srqn);
    NO(c.sq_shift = 16, QHCA_ST_BAD_PARAM, sq_shift);
    NO(c.sq_stride = 5, QHCA_ST_BAD_PARAM, sq_stride);
    NO(c.sq_stride = 11, QHCA_ST_BAD_PARAM, sq_stride);
    NO(c.type = QHCA_QPT_UD, QHCA_ST_BAD_PARAM, sq_stride);
    NO(c.rq_shift = 255, QHCA_ST_BAD_PARAM, rq_shift);
    NO(c.rq_stride = 4, QHCA_ST_BAD_PARAM, rq_stride);
    NO(c.rq_stride = 10, QHCA_ST_BAD_PARAM, rq_stride);
    NO(c.rq_dbrec = 0x1004, QHCA_ST_BAD_PARAM, rq_dbrec);
    NO(c.sq_shift = 5, QHCA_ST_BAD_TABLE, qpn);
    NO(c.rq.form = 7, QHCA_ST_BAD_TABLE, qpn);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);     /* no reference */
}

/* One GSI QP, number 1; no other QP gets that number. */
static void gsi(void **state)
{
    struct unit *u = *state;
    struct pair a, b;
    struct qhca_qpc c;

    make(u, &a, QHCA_QPT_GSI);
    assert_int_equal(a.qp.qpn, 1);
    make(u, &b, QHCA_QPT_UD);
    assert_true(b.qp.qpn > 1);
    guest_query(&u->g, QHCA_CMD_QUERY_QP, 1, &c, sizeof(c));
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_QP, 0, 0, &c, sizeof(c),
                              NULL), QHCA_ST_NO_RESOURCES);
    unmake(&a);
    unmake(&b);
}

static void query(void **state)
{
    struct unit *u = *state;
    struct qhca_qpc c, want;
    struct pair p;

    make(u, &p, QHCA_QPT_RC);
    put_in(u, &p, QHCA_QPS_RTS);
    want = attributes(u);
    guest_query(&u->g, QHCA_CMD_QUERY_QP, p.qp.qpn, &c, sizeof(c));
    assert_int_equal(c.qpn, p.qp.qpn);
    assert_int_equal(c.type, QHCA_QPT_RC);
    assert_int_equal(c.state, QHCA_QPS_RTS);
    assert_int_equal(c.pd, u->g.pd);
    assert_int_equal(c.uar, u->g.uar);
    assert_int_equal(c.send_cqn, p.cq.cqn);
    assert_int_equal(c.sq_stride, 7);
    assert_memory_equal(&c.sq, &p.qp.sq.d, sizeof(c.sq));
    assert_memory_equal(&c.rq, &p.qp.rq.d, sizeof(c.rq));
    assert_int_equal(c.rq_dbrec, p.qp.dbrec);
    assert_memory_equal(&c.av, &want.av, sizeof(c.av));
    assert_int_equal(c.dest_qpn, want.dest_qpn);
    assert_int_equal(c.sq_psn, want.sq_psn);
    assert_int_equal(c.rq_psn, want.rq_psn);
    assert_int_equal(c.timeout, want.timeout);
    assert_int_equal(c.min_rnr_timer, want.min_rnr_timer);
    assert_int_equal(c.snd_psn, want.sq_psn);
    assert_int_equal(c.exp_psn, want.rq_psn);
    /* RESET forgets everything except what CREATE_QP gave */
    put_in(u, &p, QHCA_QPS_RESET);
    guest_query(&u->g, QHCA_CMD_QUERY_QP, p.qp.qpn, &c, sizeof(c));
    assert_int_equal(c.dest_qpn, 0);
    assert_int_equal(c.access, 0);
    assert_memory_equal(&c.sq, &p.qp.sq.d, sizeof(c.sq));
    unmake(&p);
}

static void bell(struct unit *u, uint32_t uar, uint32_t qpn, uint32_t index)
{
    guest_doorbell(&u->g, uar, QHCA_DB_SQ,
                   qpn | (uint64_t)index << QHCA_DB_INDEX_SHIFT);
}

static void doorbells(void **state)
{
    struct unit *u = *state;
    uint32_t uar2 = guest_create(&u->g, QHCA_CMD_ALLOC_UAR, NULL, 0);
    struct qhca_qpc c;
    struct pair p, other;
    unsigned s;

    make(u, &p, QHCA_QPT_RC);
    make(u, &other, QHCA_QPT_RC);
    put_in(u, &p, QHCA_QPS_RTS);
    put_in(u, &other, QHCA_QPS_RTS);
    /* no such QP */
    bell(u, u->g.uar, 0, 1);
    bell(u, u->g.uar, 0xffffff, 1);
    bell(u, 0, p.qp.qpn + 2, 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OBJECT), 3);
    /* a foreign page, also the kernel's and an unallocated one */
    bell(u, uar2, p.qp.qpn, 1);
    bell(u, 0, p.qp.qpn, 1);
    bell(u, 16383, p.qp.qpn, 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OWNER), 3);
    assert_int_equal(qp_of(u, &p)->sq_head, 0);
    assert_int_equal(qp_of(u, &p)->state, QHCA_QPS_RTS);
    /* sizes and places */
    for (s = 1; s <= 4; s *= 2) {
        node_db_write(u->n, (uint64_t)u->g.uar << 12, p.qp.qpn, s);
    }
    node_db_write(u->n, ((uint64_t)u->g.uar << 12) + 4, p.qp.qpn, 8);
    node_db_write(u->n, ((uint64_t)u->g.uar << 12) + 0x38, p.qp.qpn, 8);
    node_db_write(u->n, ((uint64_t)u->g.uar << 12) + 0xff8, p.qp.qpn, 8);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_ACCESS), 6);
    node_db_write(u->n, QHCA_BAR_DB_SIZE, p.qp.qpn, 8);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OBJECT), 4);
    /* a state that sends nothing */
    put_in(u, &p, QHCA_QPS_RTR);
    bell(u, u->g.uar, p.qp.qpn, 1);
    put_in(u, &p, QHCA_QPS_INIT);
    bell(u, u->g.uar, p.qp.qpn, 1);
    put_in(u, &p, QHCA_QPS_RESET);
    bell(u, u->g.uar, p.qp.qpn, 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_STATE), 3);
    assert_int_equal(qp_of(u, &p)->sq_head, 0);
    /* beyond the ring: only this QP fails */
    put_in(u, &p, QHCA_QPS_RTS);
    bell(u, u->g.uar, p.qp.qpn, 9);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_INDEX), 1);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_QP_FATAL], 1);
    assert_true(qhca_query_qp(u->e, p.qp.qpn, &c));
    assert_int_equal(c.state, QHCA_QPS_ERR);
    assert_int_equal(c.syndrome, QHCA_SYN_DB_INDEX);
    assert_true(qhca_query_qp(u->e, other.qp.qpn, &c));
    assert_int_equal(c.state, QHCA_QPS_RTS);
    /* in ERR again: counted, no second event */
    bell(u, u->g.uar, p.qp.qpn, 0x80000000);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_INDEX), 2);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_QP_FATAL], 1);
    unmake(&p);
    unmake(&other);
    bell(u, u->g.uar, p.qp.qpn, 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_OBJECT), 5);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_UAR, uar2),
                     QHCA_ST_OK);
}

/* An older doorbell that arrives late undoes nothing. */
static void late_doorbell(void **state)
{
    struct unit *u = *state;
    struct pair p;

    make(u, &p, QHCA_QPT_RC);
    put_in(u, &p, QHCA_QPS_RTS);
    put_in(u, &p, QHCA_QPS_SQD);        /* nothing is executed */
    bell(u, u->g.uar, p.qp.qpn, 5);
    bell(u, u->g.uar, p.qp.qpn, 3);
    bell(u, u->g.uar, p.qp.qpn, 5);
    assert_int_equal(qp_of(u, &p)->sq_head, 5);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_INDEX), 0);
    unmake(&p);
}

static void receive_ring(void **state)
{
    struct unit *u = *state;
    uint8_t wqe[QHCA_MAX_RQ_WQE];
    struct qhca_sge sge = { .addr = 0x1000, .len = 1, .lkey = 7 };
    uint32_t len, index, i;
    struct qhca_qp *qp;
    struct pair p;

    make(u, &p, QHCA_QPT_RC);
    put_in(u, &p, QHCA_QPS_RTS);
    qp = qp_of(u, &p);
    assert_int_equal(qhca_rq_take(u->e, qp, wqe, &len, &index),
                     QHCA_SYN_RNR);
    for (i = 0; i < 8; i++) {
        assert_true(gqp_post_recv(&p.qp, 100 + i, &sge, 1));
    }
    for (i = 0; i < 8; i++) {
        assert_int_equal(qhca_rq_take(u->e, qp, wqe, &len, &index), 0);
        assert_int_equal(len, 64);
        assert_int_equal(index, i);
        assert_int_equal(qhca_get_le64(wqe), 100 + i);
    }
    assert_int_equal(qhca_rq_take(u->e, qp, wqe, &len, &index),
                     QHCA_SYN_RNR);
    /* an invalid record, and an unmapped one */
    guest_dbrec_set(&u->g, p.qp.dbrec, 8 + 9);
    assert_int_equal(qhca_rq_take(u->e, qp, wqe, &len, &index),
                     QHCA_SYN_DB_INDEX);
    guest_dbrec_set(&u->g, p.qp.dbrec, 7);
    assert_int_equal(qhca_rq_take(u->e, qp, wqe, &len, &index),
                     QHCA_SYN_DB_INDEX);
    assert_int_equal(unit_stat(u, QHCA_STAT_DB_BAD_INDEX), 2);
    u->m->fail_64k = 65536;
    assert_int_equal(qhca_rq_take(u->e, qp, wqe, &len, &index),
                     QHCA_SYN_WQE_DMA);
    u->m->fail_64k = 0;
    unmake(&p);
}

static void shared_ring(void **state)
{
    struct unit *u = *state;
    struct gqp_init init = {
        .type = QHCA_QPT_RC, .flags = QHCA_QP_F_SRQ, .sq_shift = 2,
        .sq_stride = 6,
    };
    struct qhca_sge sge = { .addr = 0x1000, .len = 1, .lkey = 7 };
    struct qhca_srqc c = { .limit = 3 };
    uint32_t len, index, i, w[8], bad = 8;
    uint8_t wqe[QHCA_MAX_RQ_WQE];
    struct gsrq srq;
    struct qhca_qp *qp;
    struct gcq cq;
    struct gqp q;

    gcq_create(&cq, &u->g, 4, NULL, 1);
    gsrq_create(&srq, &u->g, 3, 6, NULL, NULL);
    init.scq = init.rcq = &cq;
    init.srq = &srq;
    gqp_create(&q, &u->g, &init);
    qp = qhca_qp_get(u->e, q.qpn);
    for (i = 0; i < 6; i++) {
        assert_true(gsrq_post(&srq, 200 + i, &sge, 1, &w[i]));
    }
    /* armed with 6 there: no event yet */
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_SRQ, srq.srqn,
                              QHCA_SRQ_M_LIMIT, &c, sizeof(c), NULL),
                     QHCA_ST_OK);
    for (i = 0; i < 6; i++) {
        assert_int_equal(qhca_rq_take(u->e, qp, wqe, &len, &index), 0);
        assert_int_equal(index, w[i]);
        assert_int_equal(qhca_get_le64(wqe), 200 + i);
        gsrq_release(&srq, index);
        world_settle(&u->w, 1000000);
        /* fewer than 3 are left after the fourth; one event */
        assert_int_equal(u->g.async_count[QHCA_EV_SRQ_LIMIT], i >= 3);
    }
    assert_int_equal(qhca_rq_take(u->e, qp, wqe, &len, &index),
                     QHCA_SYN_RNR);
    guest_query(&u->g, QHCA_CMD_QUERY_SRQ, srq.srqn, &c, sizeof(c));
    assert_int_equal(c.limit, 0);
    assert_int_equal(c.tail, 6);
    /* armed when fewer are there: event at once */
    c.limit = 1;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_SRQ, srq.srqn,
                              QHCA_SRQ_M_LIMIT, &c, sizeof(c), NULL),
                     QHCA_ST_OK);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_SRQ_LIMIT], 2);
    c.limit = 9;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_SRQ, srq.srqn,
                              QHCA_SRQ_M_LIMIT, &c, sizeof(c), NULL),
                     QHCA_ST_BAD_PARAM);
    /* an index ring that refers to no WQE is an error */
    assert_true(gsrq_post(&srq, 300, &sge, 1, &w[0]));
    gbuf_write(&srq.idx, (6 & 7) * 4, &bad, 4);
    assert_int_equal(qhca_rq_take(u->e, qp, wqe, &len, &index),
                     QHCA_SYN_DB_INDEX);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_SRQ_ERR], 1);
    guest_query(&u->g, QHCA_CMD_QUERY_SRQ, srq.srqn, &c, sizeof(c));
    assert_int_equal(c.state, QHCA_SRQ_ERR);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_SRQ, srq.srqn,
                              QHCA_SRQ_M_LIMIT, &c, sizeof(c), NULL),
                     QHCA_ST_BAD_STATE);
    assert_int_equal(gqp_destroy(&q), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/*
 * The transition from RESET to INIT clears NOTIFY; if it fails, nothing
 * happens.
 */
static void notify_cleared(void **state)
{
    struct unit *u = *state;
    struct qhca_qpc c = attributes(u);
    uint32_t flags = QHCA_DBREC_NOTIFY;
    struct pair p;

    make(u, &p, QHCA_QPT_RC);
    memcpy(gmem_ptr(u->m, p.qp.dbrec + 4, 4), &flags, 4);
    c.state = QHCA_QPS_INIT;
    assert_int_equal(modify(u, &p, &c, M(STATE) | M(PKEY_INDEX) | M(ACCESS),
                            NULL), QHCA_ST_OK);
    assert_int_equal(guest_dbrec_flags(&u->g, p.qp.dbrec), 0);
    unmake(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(transitions),
        UNIT(ranges),
        UNIT(bad_contexts),
        UNIT(gsi),
        UNIT(query),
        UNIT(doorbells),
        UNIT(late_doorbell),
        UNIT(receive_ring),
        UNIT(shared_ring),
        UNIT(notify_cleared),
    };

    return cmocka_run_group_tests_name("qp", tests, NULL, NULL);
}
