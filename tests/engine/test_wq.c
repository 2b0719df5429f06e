/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WQs: receives that fail, wait or are too short, and a CQ that is full. */
#include "rawfix.h"
#include "rule.h"

#define WQ_SHIFT 3
#define STRIDE 32

static const uint8_t group[6] = { 1, 0x50, 0x56, 0x19, 0x20, 0xa7 };

/* A WQ in RDY, and the table, RSS QP and rule by which frames get to it. */
struct wq {
    struct fix *f;
    struct side *s;
    struct gcq cq;
    struct gbuf ring;
    uint64_t dbrec;
    uint32_t wqn, rqtn, qpn, flow, prod;
};

static uint8_t modify(struct wq *w, struct qhca_wqc c, uint64_t mask,
                      uint64_t *at)
{
    struct gcmd m = {
        .op = QHCA_CMD_MODIFY_WQ, .obj = w->wqn, .in = &c,
        .in_len = sizeof(c), .mask = mask,
    };
    uint8_t st = guest_cmd(&w->s->g, &m);

    if (at) {
        *at = m.result;
    }
    return st;
}

static uint8_t go(struct wq *w, uint8_t to)
{
    return modify(w, (struct qhca_wqc){ .state = to }, QHCA_WQ_M_STATE, NULL);
}

static struct qhca_wqc query(struct wq *w)
{
    struct qhca_wqc c;

    guest_query(&w->s->g, QHCA_CMD_QUERY_WQ, w->wqn, &c, sizeof(c));
    return c;
}

static void make(struct fix *f, struct wq *w)
{
    struct side *s = &f->s[1];
    struct gqp as = { 0 };
    struct qhca_wqc c;
    struct qhca_qpc q;
    struct qhca_flow r;

    memset(w, 0, sizeof(*w));
    w->f = f;
    w->s = s;
    gcq_create(&w->cq, &s->g, 1, NULL, 1);
    gbuf_make(&w->ring, s->g.m, STRIDE << WQ_SHIFT, &gbuf_direct, true, 0,
              &s->g.rng);
    gbuf_allow(&w->ring, 0, w->ring.len, GMEM_R);
    w->dbrec = guest_dbrec(&s->g, true);
    c = (struct qhca_wqc){
        .buf = w->ring.d, .dbrec = w->dbrec, .pd = s->g.pd, .uar = s->g.uar,
        .cqn = w->cq.cqn, .shift = WQ_SHIFT, .stride = 5,
    };
    w->wqn = guest_create(&s->g, QHCA_CMD_CREATE_WQ, &c, sizeof(c));
    w->rqtn = guest_create(&s->g, QHCA_CMD_CREATE_RQT, &w->wqn, 4);
    q = guest_rss_context(&s->g, w->rqtn, 0);
    w->qpn = as.qpn = guest_create(&s->g, QHCA_CMD_CREATE_QP, &q, sizeof(q));
    r = flow_dmac(&as, group);
    w->flow = add_flow(s, &r);
    assert_int_equal(go(w, QHCA_WQS_RDY), QHCA_ST_OK);
}

static void unmake(struct wq *w)
{
    struct guest *g = &w->s->g;

    del_flow(w->s, w->flow);
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_QP, w->qpn), QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_RQT, w->rqtn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_WQ, w->wqn), QHCA_ST_OK);
    gbuf_free(&w->ring);
    guest_dbrec_free(g, w->dbrec);
    assert_int_equal(gcq_destroy(&w->cq), QHCA_ST_OK);
}

/* Post a receive of @len bytes with region @lkey. */
static void post(struct wq *w, uint32_t len, uint32_t lkey, uint16_t num_sge)
{
    struct {
        struct qhca_rq_wqe h;
        struct qhca_sge sge;
    } wqe = {
        .h = { .wr_id = w->prod, .num_sge = num_sge },
        .sge = { .addr = IOVA + SLOT, .len = len, .lkey = lkey },
    };

    gbuf_write(&w->ring, w->prod % (1 << WQ_SHIFT) * STRIDE, &wqe,
               sizeof(wqe));
    guest_dbrec_set(&w->s->g, w->dbrec, ++w->prod);
}

static void arrive(struct wq *w)
{
    uint8_t frame[FRAME];

    make_frame(frame, group);
    world_inject(&w->f->w, 1, frame, FRAME);
    world_run(&w->f->w, 100000);
}

/* The next completion, and none after it. */
static void completes(struct wq *w, uint32_t index, uint8_t status,
                      uint8_t syndrome)
{
    struct qhca_cqe c;

    assert_true(gcq_poll(&w->cq, &c));
    assert_int_equal(c.qpn, w->wqn);
    assert_int_equal(c.wr_id, index);
    assert_int_equal(c.wqe_index, index);
    assert_int_equal(c.status, status);
    assert_int_equal(c.syndrome, syndrome);
}

static void nothing(struct wq *w)
{
    struct qhca_cqe c;

    assert_false(gcq_poll(&w->cq, &c));
}

/* Frames that do not fit are dropped; the receive waits for one that does. */
static void too_short(void **state)
{
    struct fix *f = *state;
    uint64_t dropped = stat(&f->s[1], QHCA_STAT_RAW_RX_DROPPED);
    uint8_t frame[2 * FRAME];
    struct wq w;

    make(f, &w);
    post(&w, FRAME, w.s->mr.key, 1);
    memset(frame, 0, sizeof(frame));
    make_frame(frame, group);
    world_inject(&f->w, 1, frame, sizeof(frame));
    world_inject(&f->w, 1, frame, FRAME + 1);
    world_run(&f->w, 100000);
    nothing(&w);
    assert_int_equal(stat(w.s, QHCA_STAT_RAW_RX_DROPPED), dropped + 2);
    arrive(&w);
    completes(&w, 0, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    arrive(&w);
    nothing(&w);
    assert_int_equal(stat(w.s, QHCA_STAT_RAW_RX_DROPPED), dropped + 3);
    assert_int_equal(query(&w).state, QHCA_WQS_RDY);
    unmake(&w);
}

/* An injected lack of receives: the frame is dropped, and nothing consumed. */
static void no_receive(void **state)
{
    struct fix *f = *state;
    struct qhca *e = f->s[1].g.n->e;
    uint64_t dropped = stat(&f->s[1], QHCA_STAT_RAW_RX_DROPPED);
    struct wq w;

    make(f, &w);
    post(&w, SLOT, w.s->mr.key, 1);
    rule_add(e, RULE(RNR, .fields = QHCA_FLT_NUMBER, .number = w.wqn));
    arrive(&w);
    nothing(&w);
    assert_int_equal(stat(w.s, QHCA_STAT_RAW_RX_DROPPED), dropped + 1);
    qhca_fault_remove(e, 0);
    arrive(&w);
    completes(&w, 0, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    unmake(&w);
}

/* A bad receive completes with its reason, and the others are flushed. */
static void bad_receive(void **state)
{
    static const struct {
        uint32_t lkey;
        uint16_t num_sge;
        uint8_t status, syndrome;
    } bad[] = {
        { 0xabcd00, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_KEY_INVALID },
        { 0, 2, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE },
    };
    struct fix *f = *state;
    struct wq w;
    unsigned i;

    for (i = 0; i < 2; i++) {
        uint64_t fatal = f->s[1].g.async_count[QHCA_EV_QP_FATAL];

        make(f, &w);
        post(&w, SLOT, bad[i].lkey, bad[i].num_sge);
        post(&w, SLOT, w.s->mr.key, 1);
        arrive(&w);
        completes(&w, 0, bad[i].status, bad[i].syndrome);
        completes(&w, 1, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        nothing(&w);
        assert_int_equal(query(&w).state, QHCA_WQS_ERR);
        assert_int_equal(query(&w).syndrome, bad[i].syndrome);
        /* the completion says it */
        assert_int_equal(w.s->g.async_count[QHCA_EV_QP_FATAL], fatal);
        unmake(&w);
    }
}

/*
 * The CQ is full with two: the third completion, of a frame (@bad: of a receive
 * that fails), cannot be reported but by an event.
 */
static void overflow(struct fix *f, bool bad)
{
    uint64_t fatal = f->s[1].g.async_count[QHCA_EV_QP_FATAL];
    struct wq w;
    unsigned i;

    make(f, &w);
    for (i = 0; i < 4; i++) {
        post(&w, SLOT, i == 2 && bad ? 0xabcd00 : w.s->mr.key, 1);
    }
    for (i = 0; i < 3; i++) {
        assert_int_equal(query(&w).state, QHCA_WQS_RDY);
        arrive(&w);
    }
    assert_int_equal(query(&w).state, QHCA_WQS_ERR);
    assert_int_equal(query(&w).syndrome, QHCA_SYN_CQ_OVERFLOW);
    assert_int_equal(w.s->g.async_count[QHCA_EV_QP_FATAL], fatal + 1);
    completes(&w, 0, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    completes(&w, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    nothing(&w);
    unmake(&w);
}

static void cq_full(void **state)
{
    overflow(*state, false);
    overflow(*state, true);
}

/* So is it while the WQ is flushed: it has failed already. */
static void cq_full_of_flushed(void **state)
{
    struct fix *f = *state;
    uint64_t fatal = f->s[1].g.async_count[QHCA_EV_QP_FATAL];
    struct wq w;
    unsigned i;

    make(f, &w);
    for (i = 0; i < 4; i++) {
        post(&w, SLOT, w.s->mr.key, 1);
    }
    assert_int_equal(go(&w, QHCA_WQS_ERR), QHCA_ST_OK);
    world_run(&f->w, 100000);
    completes(&w, 0, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    completes(&w, 1, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    nothing(&w);
    assert_int_equal(query(&w).state, QHCA_WQS_ERR);
    assert_int_equal(query(&w).syndrome, QHCA_SYN_NONE);
    assert_int_equal(w.s->g.async_count[QHCA_EV_QP_FATAL], fatal);
    unmake(&w);
}

static bool is_it(void *opaque, uint64_t addr)
{
    return addr == *(uint64_t *)opaque;
}

static bool in_record(void *opaque, uint64_t addr)
{
    return addr - *(uint64_t *)opaque < 8;
}

/* Its record and its ring are not readable. */
static void no_memory(void **state)
{
    struct fix *f = *state;
    struct gmem *m = f->s[1].g.m;
    uint64_t bad, at;
    struct wq w;
    unsigned i;

    m->may_fail_opaque = &bad;
    for (i = 0; i < 2; i++) {
        uint64_t fatal = f->s[1].g.async_count[QHCA_EV_QP_FATAL];

        make(f, &w);
        bad = i ? w.dbrec : gbuf_addr(&w.ring, 0, NULL);
        m->may_fail = is_it;
        post(&w, SLOT, w.s->mr.key, 1);
        m->fail_64k = 65536;
        arrive(&w);
        m->fail_64k = 0;
        world_run(&f->w, 100000);
        nothing(&w);
        assert_int_equal(query(&w).state, QHCA_WQS_ERR);
        assert_int_equal(query(&w).syndrome, QHCA_SYN_WQE_DMA);
        assert_int_equal(w.s->g.async_count[QHCA_EV_QP_FATAL], fatal + 1);
        /* nor can the record's flag be cleared to make it ready again */
        assert_int_equal(go(&w, QHCA_WQS_RESET), QHCA_ST_OK);
        bad = w.dbrec;
        m->may_fail = in_record;
        m->fail_64k = 65536;
        assert_int_equal(go(&w, QHCA_WQS_RDY), QHCA_ST_DMA_ERROR);
        m->fail_64k = 0;
        assert_int_equal(query(&w).state, QHCA_WQS_RESET);
        assert_int_equal(go(&w, QHCA_WQS_RDY), QHCA_ST_OK);
        unmake(&w);
    }
    make(f, &w);
    assert_int_equal(modify(&w, (struct qhca_wqc){ .flags = 2 },
                            QHCA_WQ_M_FLAGS, &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_wqc, flags));
    assert_int_equal(query(&w).flags, 0);
    unmake(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIX(too_short),
        FIX(no_receive),
        FIX(bad_receive),
        FIX(cq_full),
        FIX(cq_full_of_flushed),
        FIX(no_memory),
    };

    return cmocka_run_group_tests_name("wq", tests, NULL, NULL);
}
