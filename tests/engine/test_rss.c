/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WQs, indirection tables, RSS QPs. */
#include "rawfix.h"
#include "emit.h"

/* The key and results published by vendors of network adapters. */
static const uint8_t key[40] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67,
    0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb,
    0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30,
    0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa
};

static void toeplitz(void **state)
{
    static const struct {
        uint8_t in[12];         /* source, destination, ports */
        uint32_t addresses, ports;
    } v4[] = {
        { { 66, 9, 149, 187, 161, 142, 100, 80, 2794 >> 8, 2794 & 255,
            1766 >> 8, 1766 & 255 }, 0x323e8fc2, 0x51ccc178 },
        { { 199, 92, 111, 2, 65, 69, 140, 83, 14230 >> 8, 14230 & 255,
            4739 >> 8, 4739 & 255 }, 0xd718262a, 0xc626b0ea },
    };
    static const uint8_t v6[36] = {
        0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x1f, 0xff, 0, 0, 0, 0, 0, 0, 0,
        0x07, 0x3f, 0xfe, 0x25, 0x01, 0x02, 0x00, 0x00, 0x03, 0, 0, 0, 0, 0,
        0, 0, 0x01, 2794 >> 8, 2794 & 255, 1766 >> 8, 1766 & 255
    };
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        assert_int_equal(qhca_toeplitz(key, v4[i].in, 8), v4[i].addresses);
        assert_int_equal(qhca_toeplitz(key, v4[i].in, 12), v4[i].ports);
    }
    assert_int_equal(qhca_toeplitz(key, v6, 32), 0x2cc18cd5);
    assert_int_equal(qhca_toeplitz(key, v6, 36), 0x40207d3d);
    assert_int_equal(qhca_toeplitz(key, v6, 0), 0);
}

/* ---- WQs by hand ---- */

#define WQ_SHIFT 3
#define WQS 4

struct wq {
    struct side *s;
    uint32_t wqn, prod;
    struct gbuf ring;
    uint64_t dbrec;
};

static struct qhca_wqc context(struct wq *w)
{
    struct qhca_wqc c;

    memset(&c, 0, sizeof(c));
    c.buf = w->ring.d;
    c.dbrec = w->dbrec;
    c.cookie = 0xc00c1e;
    c.pd = w->s->g.pd;
    c.uar = w->s->g.uar;
    c.cqn = w->s->cq.cqn;
    c.shift = WQ_SHIFT;
    c.stride = 5;
    return c;
}

static void wq_make(struct side *s, struct wq *w)
{
    struct qhca_wqc c;

    memset(w, 0, sizeof(*w));
    w->s = s;
    gbuf_make(&w->ring, s->g.m, 32 << WQ_SHIFT, &gbuf_direct, true, 0,
              &s->g.rng);
    gbuf_allow(&w->ring, 0, w->ring.len, GMEM_R);
    w->dbrec = guest_dbrec(&s->g, true);
    c = context(w);
    w->wqn = guest_create(&s->g, QHCA_CMD_CREATE_WQ, &c, sizeof(c));
}

static void wq_free(struct wq *w)
{
    assert_int_equal(guest_simple(&w->s->g, QHCA_CMD_DESTROY_WQ, w->wqn),
                     QHCA_ST_OK);
    gbuf_free(&w->ring);
    guest_dbrec_free(&w->s->g, w->dbrec);
}

/* Flow @num, the RSS QP and the table behind it, and their @n WQs. */
static void free_all(struct side *b, uint32_t num, uint32_t qpn, uint32_t rqtn,
                     struct wq *w, unsigned n)
{
    del_flow(b, num);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_QP, qpn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_OK);
    while (n--) {
        wq_free(w++);
    }
}

static uint8_t wq_state(struct wq *w, uint8_t to)
{
    struct qhca_wqc c = { .state = to };
    struct gcmd m = {
        .op = QHCA_CMD_MODIFY_WQ, .obj = w->wqn, .in = &c,
        .in_len = sizeof(c), .mask = QHCA_WQ_M_STATE,
    };
    uint8_t st = guest_cmd(&w->s->g, &m);

    if (st == QHCA_ST_OK && to == QHCA_WQS_RESET) {
        w->prod = 0;
        guest_dbrec_set(&w->s->g, w->dbrec, 0);
    }
    return st;
}

static void wq_post(struct wq *w, uint32_t lkey)
{
    struct {
        struct qhca_rq_wqe h;
        struct qhca_sge sge;
    } wqe = {
        .h = { .wr_id = w->wqn << 8 | w->prod, .num_sge = 1 },
        .sge = { .addr = IOVA + SLOT, .len = SLOT, .lkey = lkey },
    };

    gbuf_write(&w->ring, (w->prod % (1 << WQ_SHIFT)) * 32, &wqe,
               sizeof(wqe));
    guest_dbrec_set(&w->s->g, w->dbrec, ++w->prod);
    if (guest_dbrec_flags(&w->s->g, w->dbrec) & QHCA_DBREC_NOTIFY) {
        guest_doorbell(&w->s->g, w->s->g.uar, QHCA_DB_RQ, w->wqn |
                       (uint64_t)w->prod << QHCA_DB_INDEX_SHIFT);
    }
}

static struct qhca_wqc wq_query(struct wq *w)
{
    struct qhca_wqc c;

    guest_query(&w->s->g, QHCA_CMD_QUERY_WQ, w->wqn, &c, sizeof(c));
    return c;
}

/* Each object that is created can be inspected as its kind. */
static void looks(struct side *b, const uint32_t *wqn, uint32_t rqtn,
                  uint32_t qpn, uint32_t flow)
{
    struct qhca_ring_query l = {
        .object = QHCA_OBJ_WQ, .number = wqn[1], .ring = QHCA_RING_RQ,
    };
    struct qhca *e = b->g.n->e;
    struct seen s = { 0 };
    char want[16];

    b->g.m->unchecked = true;
    assert_null(qhca_inspect(e, QHCA_OBJ_WQ, wqn[1], seen_start(&s)));
    SEEN(&s, "context.state_name", "RDY");
    snprintf(want, sizeof(want), "%u", wqn[1]);
    SEEN(&s, "context.wqn", want);
    assert_non_null(seen_get(&s, "doorbell_record.address"));
    assert_null(qhca_inspect_ring(e, &l, seen_start(&s)));
    assert_non_null(seen_get(&s, "producer"));
    /* not a QP, and a QP is not a WQ */
    assert_non_null(qhca_inspect(e, QHCA_OBJ_QP, wqn[1], seen_start(&s)));
    l.object = QHCA_OBJ_QP;
    assert_non_null(qhca_inspect_ring(e, &l, seen_start(&s)));
    assert_non_null(qhca_inspect(e, QHCA_OBJ_WQ, qpn, seen_start(&s)));
    assert_null(qhca_inspect_all(e, QHCA_OBJ_WQ, 0, 100, seen_start(&s)));
    assert_non_null(seen_get(&s, "objects.3.wqn"));
    assert_null(seen_get(&s, "objects.4.wqn"));

    assert_null(qhca_inspect(e, QHCA_OBJ_RQT, rqtn, seen_start(&s)));
    SEEN(&s, "size", "8");
    SEEN(&s, "users", "1");
    SEEN(&s, "wqs.1", want);
    SEEN(&s, "wqs.6", want);
    assert_null(qhca_inspect(e, QHCA_OBJ_RSS, qpn, seen_start(&s)));
    SEEN(&s, "rss.wqs.1", want);
    SEEN(&s, "rss.hash_names", "SRC_IPV4|DST_IPV4");
    assert_null(qhca_inspect(e, QHCA_OBJ_QP, qpn, seen_start(&s)));
    SEEN(&s, "rss.wqs.6", want);
    assert_null(qhca_inspect_all(e, QHCA_OBJ_RQT, 0, 100, seen_start(&s)));
    SEEN(&s, "objects.0.size", "8");
    SEEN(&s, "objects.0.users", "1");
    assert_null(seen_get(&s, "objects.1.size"));
    assert_null(qhca_inspect_all(e, QHCA_OBJ_RSS, 0, 100, seen_start(&s)));
    assert_non_null(seen_get(&s, "objects.0.rqtn"));
    assert_null(seen_get(&s, "objects.1.rqtn"));

    assert_null(qhca_inspect(e, QHCA_OBJ_FLOW, flow, seen_start(&s)));
    SEEN(&s, "context.type_name", "NORMAL");
    SEEN(&s, "context.tag", "0x4d");
    SEEN(&s, "context.mask.dmac", "ff:ff:ff:ff:ff:ff");
    snprintf(want, sizeof(want), "%u", qpn);
    SEEN(&s, "context.qpn", want);
    assert_null(qhca_inspect_all(e, QHCA_OBJ_FLOW, 0, 100, seen_start(&s)));
    SEEN(&s, "objects.0.qpn", want);
    b->g.m->unchecked = false;
    seen_start(&s);
    free(s.text);
}

static uint32_t rqt_make(struct side *s, const uint32_t *wqn, unsigned n)
{
    return guest_create(&s->g, QHCA_CMD_CREATE_RQT, wqn, 4 * n);
}

static struct qhca_qpc rss_context(struct side *s, uint32_t rqtn,
                                   uint32_t fields)
{
    struct qhca_qpc c = guest_rss_context(&s->g, rqtn, fields);

    memcpy(c.rx_hash_key, key, 40);
    return c;
}

static void arrive(struct fix *f, const uint8_t *frame)
{
    world_inject(&f->w, 1, frame, FRAME);
    world_run(&f->w, 1000);
}

static const uint8_t group[6] = { 1, 0x50, 0x56, 0x19, 0x20, 0xa7 };

static void frame_from(uint8_t *frame, unsigned n)
{
    make_frame(frame, group);
    frame[29] = (uint8_t)n;
    put16(frame + 34, 1000 + n * 7);
}

/* Frames go to the WQ that the hash of the named fields selects. */
static void spread(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    static const uint32_t cases[] = {
        QHCA_HASH_SRC_IPV4 | QHCA_HASH_DST_IPV4, QHCA_HASH_SRC_PORT_UDP,
        QHCA_HASH_MASK, QHCA_HASH_SRC_IPV6 | QHCA_HASH_SRC_PORT_TCP,
    };
    struct wq w[WQS];
    uint32_t wqn[2 * WQS], rqtn, qpn, num, i, k;
    uint8_t frame[FRAME], in[12];

    for (i = 0; i < WQS; i++) {
        wq_make(b, &w[i]);
        assert_int_equal(wq_state(&w[i], QHCA_WQS_RDY), QHCA_ST_OK);
        wqn[i] = wqn[2 * WQS - 1 - i] = w[i].wqn;
    }
    rqtn = rqt_make(b, wqn, 2 * WQS);
    for (k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
        struct qhca_qpc c = rss_context(b, rqtn, cases[k]), q;
        struct gqp as = { 0 };
        struct qhca_flow r;
        unsigned seen = 0;

        qpn = guest_create(&b->g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
        guest_query(&b->g, QHCA_CMD_QUERY_QP, qpn, &q, sizeof(q));
        assert_int_equal(q.state, QHCA_QPS_RTR);
        assert_int_equal(q.rqtn, rqtn);
        assert_int_equal(q.rx_hash_fields, cases[k]);
        assert_memory_equal(q.rx_hash_key, key, 40);
        as.qpn = qpn;
        r = flow_dmac(&as, group);
        r.tag = 77;
        num = add_flow(b, &r);
        if (!k) {
            looks(b, wqn, rqtn, qpn, num);
        }
        for (i = 0; i < 40; i++) {
            struct qhca_cqe e;
            uint32_t hash;
            size_t n = 0;

            /* from half way on, with an adapter that loaded its state */
            f->w.reborn = i >= 20;
            frame_from(frame, i);
            if (k == 0 || k == 2) {
                memcpy(in, frame + 26, 8);
                n = 8;
            }
            if (k == 1 || k == 2) {
                memcpy(in + n, frame + 34, k == 1 ? 2 : 4);
                n += k == 1 ? 2 : 4;
            }
            hash = qhca_toeplitz(key, in, n);
            wq_post(&w[0], b->mr.key);
            wq_post(&w[1], b->mr.key);
            wq_post(&w[2], b->mr.key);
            wq_post(&w[3], b->mr.key);
            if (i < 20) {
                arrive(f, frame);
            } else {
                send_raw(f, &f->s[0], &f->s[0].qp[0], frame, FRAME, 0);
            }
            assert_true(gcq_poll(&b->cq, &e));
            assert_int_equal(e.status, QHCA_WC_SUCCESS);
            assert_int_equal(e.opcode, QHCA_CQE_OP_RAW_RECV);
            assert_int_equal(e.src_qpn, 77);
            assert_int_equal(e.qpn, wqn[hash & (2 * WQS - 1)]);
            assert_int_equal(e.wr_id >> 8, e.qpn);
            seen |= 1u << (hash & (2 * WQS - 1));
            assert_false(gcq_poll(&b->cq, &e));
            /* restart with empty rings, through RESET */
            for (n = 0; n < WQS; n++) {
                assert_int_equal(wq_state(&w[n], QHCA_WQS_RESET),
                                 QHCA_ST_OK);
                assert_int_equal(wq_state(&w[n], QHCA_WQS_RDY), QHCA_ST_OK);
            }
        }
        f->w.reborn = 0;
        /* frames without these fields go to the first WQ */
        assert_int_equal(seen == 1, k == 3);
        del_flow(b, num);
        assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_QP, qpn),
                         QHCA_ST_OK);
    }
    assert_true(f->w.births > 0);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_OK);
    for (i = 0; i < WQS; i++) {
        wq_free(&w[i]);
    }
}

/* TCP has ports of its own in the hash; other protocols have none. */
static void spread_tcp(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct wq w[2];
    uint32_t wqn[2], rqtn, qpn, num, i, hash;
    uint8_t frame[FRAME];
    struct qhca_qpc c;
    struct qhca_cqe e;
    struct gqp as = { 0 };
    struct qhca_flow r;
    unsigned seen = 0;

    for (i = 0; i < 2; i++) {
        wq_make(b, &w[i]);
        assert_int_equal(wq_state(&w[i], QHCA_WQS_RDY), QHCA_ST_OK);
        wqn[i] = w[i].wqn;
    }
    rqtn = rqt_make(b, wqn, 2);
    c = rss_context(b, rqtn, QHCA_HASH_SRC_PORT_TCP |
                             QHCA_HASH_DST_PORT_TCP);
    as.qpn = qpn = guest_create(&b->g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
    r = flow_dmac(&as, group);
    num = add_flow(b, &r);
    for (i = 0; i < 8; i++) {
        frame_from(frame, i);
        frame[23] = 6;
        put16(frame + 36, 2000 + i * 77);
        hash = qhca_toeplitz(key, frame + 34, 4);
        seen |= 1u << (hash & 1);
        wq_post(&w[0], b->mr.key);
        wq_post(&w[0], b->mr.key);
        wq_post(&w[1], b->mr.key);
        arrive(f, frame);
        assert_true(gcq_poll(&b->cq, &e));
        assert_int_equal(e.qpn, wqn[hash & 1]);
        frame[23] = 17;         /* the same ports, but of UDP */
        arrive(f, frame);
        assert_true(gcq_poll(&b->cq, &e));
        assert_int_equal(e.qpn, wqn[0]);
        assert_int_equal(wq_state(&w[0], QHCA_WQS_RESET), QHCA_ST_OK);
        assert_int_equal(wq_state(&w[1], QHCA_WQS_RESET), QHCA_ST_OK);
        assert_int_equal(wq_state(&w[0], QHCA_WQS_RDY), QHCA_ST_OK);
        assert_int_equal(wq_state(&w[1], QHCA_WQS_RDY), QHCA_ST_OK);
    }
    assert_int_equal(seen, 3);
    free_all(b, num, qpn, rqtn, w, 2);
}

/* A state with @val at @at must not load, for the given reason. */
static void not_loaded(struct qhca *e, uint8_t *saved, size_t len,
                       uint8_t *at, uint32_t val, const char *want)
{
    char why[160] = "";
    uint32_t was;

    memcpy(&was, at, 4);
    memcpy(at, &val, 4);
    assert_false(qhca_load(e, saved, len, why, sizeof(why)));
    CHECK(strstr(why, want), "%s, not: %s", why, want);
    memcpy(at, &was, 4);
    CHECK(qhca_load(e, saved, len, why, sizeof(why)), "%s", why);
}

/* A saved state is not trusted: neither its tables nor its RSS QPs. */
static void hostile_state(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca *e = b->g.n->e;
    uint8_t rqt[17] = { [0] = 4, [5] = 4, [10] = 1, [12] = 4 };
    uint8_t *saved, *at;
    uint32_t wqn[2], rqtn, qpn, size = 2;
    struct qhca_qpc c, q;
    struct wq w;
    size_t len;
    void *s;

    wq_make(b, &w);
    wqn[0] = wqn[1] = w.wqn;
    rqtn = rqt_make(b, wqn, size);
    c = rss_context(b, rqtn, QHCA_HASH_SRC_IPV4);
    qpn = guest_create(&b->g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
    assert_true(qhca_save(e, &s, &len));
    saved = s;

    /* a table: number, size, kind, WQs; each with its type before it */
    memcpy(rqt + 1, &rqtn, 4);
    memcpy(rqt + 6, &size, 4);
    memcpy(rqt + 13, &w.wqn, 4);
    at = memmem(saved, len, rqt, sizeof(rqt));
    assert_non_null(at);
    not_loaded(e, saved, len, at + 6, 0, "its size or kind is out of range");
    not_loaded(e, saved, len, at + 6, 3, "its size or kind is out of range");
    not_loaded(e, saved, len, at + 6, 1u << 31,
               "its size or kind is out of range");
    not_loaded(e, saved, len, at + 11, 2 | 4 << 8,
               "its size or kind is out of range");
    not_loaded(e, saved, len, at + 13, 0xfffff,
               "a queue of it does not exist");
    not_loaded(e, saved, len, at + 13, b->qp[0].qpn,
               "a queue of it does not exist");
    not_loaded(e, saved, len, at + 1, 0xfffff,
               "an object's number is taken or out of range");

    /* an RSS QP: its table, its fields, its key */
    at = memmem(saved, len, key, sizeof(key));
    assert_non_null(at);
    not_loaded(e, saved, len, at - 15, rqtn + 1,
               "its RQ table does not exist");
    not_loaded(e, saved, len, at - 10, QHCA_HASH_MASK + 1,
               "no command could have created it");

    /* after all this, everything exists and can be destroyed */
    free(s);
    guest_query(&b->g, QHCA_CMD_QUERY_QP, qpn, &q, sizeof(q));
    assert_int_equal(q.rqtn, rqtn);
    assert_memory_equal(q.rx_hash_key, key, 40);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_BUSY);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_QP, qpn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_OK);
    wq_free(&w);
}

/* A state in which an RSS QP is to run: it has no work, and goes on. */
static void ready_in_state(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca *e = b->g.n->e;
    struct gqp as = { 0 };
    uint32_t rqtn, num;
    uint8_t frame[FRAME];
    struct qhca_flow r;
    struct qhca_qpc q;
    struct qhca_cqe c;
    char why[160] = "";
    struct qhca_qp *qp;
    struct wq w;
    size_t len;
    void *s;

    wq_make(b, &w);
    assert_int_equal(wq_state(&w, QHCA_WQS_RDY), QHCA_ST_OK);
    rqtn = rqt_make(b, &w.wqn, 1);
    q = rss_context(b, rqtn, 0);
    as.qpn = guest_create(&b->g, QHCA_CMD_CREATE_QP, &q, sizeof(q));
    r = flow_dmac(&as, group);
    num = add_flow(b, &r);
    qp = qhca_qp_get(e, as.qpn);
    qhca_list_add_tail(&e->q->ready, &qp->ready);
    assert_true(qhca_save(e, &s, &len));
    CHECK(qhca_load(e, s, len, why, sizeof(why)), "%s", why);
    free(s);
    qp = qhca_qp_get(e, as.qpn);
    assert_false(qhca_list_empty(&qp->ready));
    world_run(&f->w, 1000000);
    assert_true(qhca_list_empty(&qp->ready));
    assert_true(qhca_list_empty(&e->q->ready));
    wq_post(&w, b->mr.key);
    make_frame(frame, group);
    arrive(f, frame);
    assert_true(gcq_poll(&b->cq, &c));
    assert_int_equal(c.qpn, w.wqn);
    assert_int_equal(c.status, QHCA_WC_SUCCESS);
    free_all(b, num, as.qpn, rqtn, &w, 1);
}

/* States: valid transitions, and what each does with WQEs. */
static void states(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    static const uint8_t ok[3][3] = {
        { 1, 1, 0 }, { 1, 1, 1 }, { 1, 0, 1 }
    };
    struct wq w;
    struct qhca_cqe e;
    unsigned from, to, i;
    struct qhca_wqc c;

    wq_make(b, &w);
    c = wq_query(&w);
    assert_int_equal(c.wqn, w.wqn);
    assert_int_equal(c.cookie, 0xc00c1e);
    assert_int_equal(c.state, QHCA_WQS_RESET);
    assert_int_equal(c.cqn, b->cq.cqn);
    assert_memory_equal(&c.buf, &w.ring.d, sizeof(c.buf));
    for (from = 0; from < 3; from++) {
        for (to = 0; to < 4; to++) {
            assert_int_equal(wq_state(&w, QHCA_WQS_RESET), QHCA_ST_OK);
            if (from) {
                assert_int_equal(wq_state(&w, QHCA_WQS_RDY), QHCA_ST_OK);
            }
            if (from == 2) {
                assert_int_equal(wq_state(&w, QHCA_WQS_ERR), QHCA_ST_OK);
            }
            assert_int_equal(wq_state(&w, to), to == 3 ? QHCA_ST_BAD_PARAM :
                             ok[from][to] ? QHCA_ST_OK : QHCA_ST_BAD_STATE);
            assert_int_equal(wq_query(&w).state,
                             to < 3 && ok[from][to] ? to : from);
        }
    }
    /* ERR flushes what is posted now and later, in a new adapter, too */
    for (f->w.reborn = 0; f->w.reborn < 2; f->w.reborn++) {
        assert_int_equal(wq_state(&w, QHCA_WQS_RESET), QHCA_ST_OK);
        assert_int_equal(wq_state(&w, QHCA_WQS_RDY), QHCA_ST_OK);
        wq_post(&w, b->mr.key);
        wq_post(&w, b->mr.key);
        assert_int_equal(wq_state(&w, QHCA_WQS_ERR), QHCA_ST_OK);
        world_run(&f->w, 1000);
        wq_post(&w, b->mr.key);
        world_run(&f->w, 1000);
        for (i = 0; i < 3; i++) {
            assert_true(gcq_poll(&b->cq, &e));
            assert_int_equal(e.status, QHCA_WC_WR_FLUSH_ERR);
            assert_int_equal(e.qpn, w.wqn);
            assert_int_equal(e.wqe_index, i);
            assert_true(e.opcode & 0x80);
        }
        assert_false(gcq_poll(&b->cq, &e));
    }
    f->w.reborn = 0;
    assert_int_equal(guest_dbrec_flags(&b->g, w.dbrec), QHCA_DBREC_NOTIFY);
    assert_int_equal(wq_state(&w, QHCA_WQS_RESET), QHCA_ST_OK);
    assert_int_equal(wq_state(&w, QHCA_WQS_RDY), QHCA_ST_OK);
    assert_int_equal(guest_dbrec_flags(&b->g, w.dbrec), 0);
    wq_free(&w);
}

/* A frame's tag goes to the CQE if the WQ says so. */
static void strip_vlan(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca_wqc m = { .flags = QHCA_WQ_F_STRIP_VLAN };
    struct gcmd c = {
        .op = QHCA_CMD_MODIFY_WQ, .in = &m, .in_len = sizeof(m),
        .mask = QHCA_WQ_M_FLAGS,
    };
    struct gqp as = { 0 };
    struct qhca_qpc q;
    struct qhca_flow r;
    struct qhca_cqe e;
    uint32_t rqtn, num;
    uint8_t frame[FRAME];
    struct wq w;
    int strip;

    wq_make(b, &w);
    assert_int_equal(wq_state(&w, QHCA_WQS_RDY), QHCA_ST_OK);
    rqtn = rqt_make(b, &w.wqn, 1);
    q = rss_context(b, rqtn, 0);
    as.qpn = guest_create(&b->g, QHCA_CMD_CREATE_QP, &q, sizeof(q));
    r = flow_dmac(&as, group);
    num = add_flow(b, &r);
    make_frame(frame, group);
    put16(frame + 12, 0x8100);
    put16(frame + 14, 0x2009);
    for (strip = 0; strip < 2; strip++) {
        wq_post(&w, b->mr.key);
        arrive(f, frame);
        assert_true(gcq_poll(&b->cq, &e));
        assert_int_equal(!!(e.flags & QHCA_CQE_F_VLAN), strip);
        assert_int_equal(e.byte_len, FRAME - 4 * strip);
        assert_int_equal(e.vlan, strip ? 0x2009 : QHCA_VLAN_NONE);
        c.obj = w.wqn;
        guest_must(&b->g, &c);
        assert_int_equal(wq_query(&w).flags, QHCA_WQ_F_STRIP_VLAN);
    }
    free_all(b, num, as.qpn, rqtn, &w, 1);
}

/* A WQ fails alone: the others of its table continue. */
static void one_fails(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct wq w[2];
    uint32_t wqn[2], rqtn, qpn, num, i, fatal;
    struct qhca_qpc c;
    struct gqp as = { 0 };
    struct qhca_flow r;
    struct qhca_cqe e;
    uint8_t frame[FRAME];
    unsigned got[2] = { 0 };

    for (i = 0; i < 2; i++) {
        wq_make(b, &w[i]);
        assert_int_equal(wq_state(&w[i], QHCA_WQS_RDY), QHCA_ST_OK);
        wqn[i] = w[i].wqn;
    }
    rqtn = rqt_make(b, wqn, 2);
    c = rss_context(b, rqtn, QHCA_HASH_SRC_IPV4);
    qpn = guest_create(&b->g, QHCA_CMD_CREATE_QP, &c, sizeof(c));
    as.qpn = qpn;
    r = flow_dmac(&as, group);
    num = add_flow(b, &r);
    /* an index beyond the ring is fatal for WQ 0 */
    guest_dbrec_set(&b->g, w[0].dbrec, 100);
    for (i = 0; i < 8; i++) {
        wq_post(&w[1], b->mr.key);
    }
    fatal = b->g.async_count[QHCA_EV_QP_FATAL];
    for (i = 0; i < 8; i++) {
        frame_from(frame, i);
        arrive(f, frame);
        while (gcq_poll(&b->cq, &e)) {
            assert_int_equal(e.status, QHCA_WC_SUCCESS);
            got[e.qpn == wqn[1]]++;
        }
    }
    world_run(&f->w, 1000000);
    assert_int_equal(got[0], 0);
    assert_in_range(got[1], 1, 7);
    assert_int_equal(wq_query(&w[0]).state, QHCA_WQS_ERR);
    assert_int_equal(wq_query(&w[0]).syndrome, QHCA_SYN_DB_INDEX);
    assert_int_equal(wq_query(&w[1]).state, QHCA_WQS_RDY);
    guest_poll_eq(&b->g, 0);
    assert_int_equal(b->g.async_count[QHCA_EV_QP_FATAL], fatal + 1);
    free_all(b, num, qpn, rqtn, w, 2);
}

static uint8_t cmd(struct side *s, uint8_t op, uint32_t obj, const void *in,
                   uint32_t len, uint64_t mask, uint64_t *at)
{
    struct gcmd c = {
        .op = op, .obj = obj, .in = in, .in_len = len, .mask = mask,
    };
    uint8_t st = guest_cmd(&s->g, &c);

    *at = c.result;
    return st;
}

static void commands(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    uint32_t wqn[3], rqtn, qpn;
    struct qhca_wqc c, ok;
    struct qhca_qpc q, qok;
    struct wq w;
    uint64_t at;

    wq_make(b, &w);
    ok = context(&w);
#define NO(change, want, field) do {                                      \
        c = ok;                                                           \
        change;                                                           \
        assert_int_equal(cmd(b, QHCA_CMD_CREATE_WQ, 0, &c, sizeof(c), 0,  \
                             &at), want);                                 \
        assert_int_equal(at, offsetof(struct qhca_wqc, field));           \
    } while (0)
    NO(c.shift = 16, QHCA_ST_BAD_PARAM, shift);
    NO(c.stride = 4, QHCA_ST_BAD_PARAM, stride);
    NO(c.stride = 10, QHCA_ST_BAD_PARAM, stride);
    NO(c.flags = 2, QHCA_ST_BAD_PARAM, flags);
    NO(c.state = QHCA_WQS_RDY, QHCA_ST_BAD_PARAM, state);
    NO(c.dbrec += 4, QHCA_ST_BAD_PARAM, dbrec);
    NO(c.pd = 9999, QHCA_ST_BAD_OBJ, pd);
    NO(c.uar = 9999, QHCA_ST_BAD_OBJ, uar);
    NO(c.cqn = 9999, QHCA_ST_BAD_OBJ, cqn);
#undef NO
    c = ok;
    c.buf.len = 64;
    assert_int_equal(cmd(b, QHCA_CMD_CREATE_WQ, 0, &c, sizeof(c), 0, &at),
                     QHCA_ST_BAD_TABLE);
    /* a WQ is not a QP, a QP is not a WQ */
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_QP, w.wqn),
                     QHCA_ST_BAD_OBJ);
    memset(&q, 0, sizeof(q));
    q.state = QHCA_QPS_INIT;
    assert_int_equal(cmd(b, QHCA_CMD_MODIFY_QP, w.wqn, &q, sizeof(q),
                         QHCA_QP_M_STATE, &at), QHCA_ST_BAD_OBJ);
    assert_false(qhca_query_qp(b->g.n->e, w.wqn, &q));
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_WQ,
                                  b->qp[0].qpn), QHCA_ST_BAD_OBJ);
    assert_int_equal(cmd(b, QHCA_CMD_MODIFY_WQ, w.wqn, &ok, sizeof(ok),
                         1 << 7, &at), QHCA_ST_BAD_PARAM);
    /* tables */
    wqn[0] = wqn[1] = wqn[2] = w.wqn;
    assert_int_equal(cmd(b, QHCA_CMD_CREATE_RQT, 0, wqn, 12, 0, &at),
                     QHCA_ST_BAD_PARAM);
    assert_int_equal(cmd(b, QHCA_CMD_CREATE_RQT, 0, wqn, 6, 0, &at),
                     QHCA_ST_BAD_PARAM);
    assert_int_equal(cmd(b, QHCA_CMD_CREATE_RQT, 0, NULL, 0, 0, &at),
                     QHCA_ST_BAD_PARAM);
    wqn[1] = b->qp[0].qpn;
    assert_int_equal(cmd(b, QHCA_CMD_CREATE_RQT, 0, wqn, 8, 0, &at),
                     QHCA_ST_BAD_OBJ);
    assert_int_equal(at, 4);
    rqtn = rqt_make(b, wqn, 1);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_WQ, w.wqn),
                     QHCA_ST_BUSY);
    /* QPs */
    qok = rss_context(b, rqtn, 1);
#define NO(change, want, field) do {                                      \
        q = qok;                                                          \
        change;                                                           \
        assert_int_equal(cmd(b, QHCA_CMD_CREATE_QP, 0, &q, sizeof(q), 0,  \
                             &at), want);                                 \
        assert_int_equal(at, offsetof(struct qhca_qpc, field));           \
    } while (0)
    NO(q.rqtn = 99, QHCA_ST_BAD_OBJ, rqtn);
    NO(q.pd = 9999, QHCA_ST_BAD_OBJ, pd);
    NO(q.rx_hash_fields = 0x100, QHCA_ST_BAD_PARAM, rx_hash_fields);
    NO(q.rx_hash_func = 0, QHCA_ST_BAD_PARAM, rx_hash_func);
    NO(q.sq_stride = 6, QHCA_ST_BAD_PARAM, sq_stride);
    NO(q.rq_stride = 6, QHCA_ST_BAD_PARAM, rq_stride);
    NO(q.flags = QHCA_QP_F_SRQ, QHCA_ST_BAD_PARAM, flags);
#undef NO
    qpn = guest_create(&b->g, QHCA_CMD_CREATE_QP, &qok, sizeof(qok));
    q.state = QHCA_QPS_ERR;
    assert_int_equal(cmd(b, QHCA_CMD_MODIFY_QP, qpn, &q, sizeof(q),
                         QHCA_QP_M_STATE, &at), QHCA_ST_BAD_STATE);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_BUSY);
    /* a send doorbell for something that cannot send */
    guest_doorbell(&b->g, b->g.uar, QHCA_DB_SQ, qpn | 1ULL << 32);
    guest_doorbell(&b->g, b->g.uar, QHCA_DB_SQ, w.wqn | 1ULL << 32);
    assert_int_equal(stat(b, QHCA_STAT_DB_BAD_STATE), 2);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_QP, qpn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_RQT, rqtn),
                     QHCA_ST_OK);
    wq_free(&w);
}

/* A reset with all of it in use. */
static void reset(void **state)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    struct fix *f = calloc(1, sizeof(*f));
    struct qhca_cqc cqc = { .eqn = 1 };
    struct side *s = &f->s[0];
    struct guest *g = &s->g;
    struct qhca_wqc c;
    struct qhca_qpc q;
    struct gqp as = { 0 };
    struct qhca_flow r;
    uint32_t wqn, rqtn;

    (void)state;
    world_init(&f->w, 1, 1, NULL);
    guest_start(g, &f->w.node[0], 1, &cfg);
    cqc.buf.addr = gmem_alloc(g->m, 4096, 12, 0);
    cqc.buf.len = 64;
    memset(&c, 0, sizeof(c));
    c.buf.addr = gmem_alloc(g->m, 4096, 12, 0);
    c.buf.len = 64;
    c.shift = 1;
    c.stride = 5;
    c.pd = g->pd;
    c.cqn = guest_create(g, QHCA_CMD_CREATE_CQ, &cqc, sizeof(cqc));
    wqn = guest_create(g, QHCA_CMD_CREATE_WQ, &c, sizeof(c));
    rqtn = rqt_make(s, &wqn, 1);
    q = rss_context(s, rqtn, 1);
    as.qpn = guest_create(g, QHCA_CMD_CREATE_QP, &q, sizeof(q));
    r = flow_to(&as, QHCA_FLOW_NORMAL);
    add_flow(s, &r);
    qhca_reset(g->n->e);
    assert_ptr_equal(g->n->e->eth->flows, NULL);
    guest_drop(g);
    world_fini(&f->w);
    free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(toeplitz), FIX(spread), FIX(spread_tcp),
        FIX(hostile_state), FIX(ready_in_state), FIX(states), FIX(strip_vlan),
        FIX(one_fails),
        FIX(commands), cmocka_unit_test(reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
