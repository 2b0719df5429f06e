/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The structure of a saved state is not trusted either: records in the wrong
 * section or with numbers that no object has, and references that are missing.
 */
#include "unit.h"
#include "reborn.h"
#include "saved.h"

/* The end of an RSS QP: its table (flag, number), fields and key. */
#define RSS_TAIL (2 + SAVED_U32 + SAVED_U32 + 1 + SAVED_U32 + 40)

/* Objects of the kinds whose records are edited. */
struct things {
    struct unit *u;
    struct gcq cq;
    struct gqp rc, ud, target;
    struct gsrq xsrq;
    struct gmr mr;
    struct gbuf ring, esq;
    uint64_t dbrec;
    uint32_t xrcd, wqn, rqtn, qpn, flow, shaper, esqn;
    struct qhca_mcg group;
};

static void make_queues(struct things *t, struct guest *g)
{
    struct gqp_init in = { .sq_shift = 2, .sq_stride = 7, .rq_shift = 2,
                           .rq_stride = 6, .scq = &t->cq, .rcq = &t->cq };
    struct gqp_init target = { .type = QHCA_QPT_XRC_TGT };

    gcq_create(&t->cq, g, 4, NULL, 1);
    in.type = QHCA_QPT_RC;
    gqp_create(&t->rc, g, &in);
    in.type = QHCA_QPT_UD;
    gqp_create(&t->ud, g, &in);
    t->xrcd = guest_create(g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    gsrq_create_xrc(&t->xsrq, g, 3, 6, g->pd, t->xrcd, &t->cq);
    target.xrcd = t->xrcd;
    gqp_create(&t->target, g, &target);
}

static void make(struct things *t, struct unit *u)
{
    struct qhca_wqc wqc = { .shift = 3, .stride = 5, .uar = u->g.uar,
                            .pd = u->g.pd };
    struct qhca_shaperc shaper = { .weight = 1 };
    struct qhca_eth_qc sq = { .shift = 3, .stride = 6 };
    struct guest *g = &u->g;
    struct qhca_flow flow;
    struct qhca_qpc rss;

    memset(t, 0, sizeof(*t));
    t->u = u;
    make_queues(t, g);
    gmr_create(&t->mr, g, 4096, 4096, QHCA_ACCESS_MASK, NULL);
    gbuf_make(&t->ring, u->m, 32 << 3, &gbuf_direct, true, 0, &g->rng);
    t->dbrec = guest_dbrec(g, false);
    wqc.buf = t->ring.d;
    wqc.cqn = t->cq.cqn;
    wqc.dbrec = t->dbrec;
    t->wqn = guest_create(g, QHCA_CMD_CREATE_WQ, &wqc, sizeof(wqc));
    t->rqtn = guest_create(g, QHCA_CMD_CREATE_RQT, &t->wqn, 4);
    rss = guest_rss_context(g, t->rqtn, 0);
    t->qpn = guest_create(g, QHCA_CMD_CREATE_QP, &rss, sizeof(rss));
    memset(&flow, 0, sizeof(flow));
    flow.qpn = t->qpn;
    t->flow = guest_create(g, QHCA_CMD_CREATE_FLOW, &flow, sizeof(flow));
    t->shaper = guest_create(g, QHCA_CMD_CREATE_SHAPER, &shaper,
                             sizeof(shaper));
    gbuf_make(&t->esq, u->m, 64 << 3, &gbuf_direct, true, 0, &g->rng);
    sq.buf = t->esq.d;
    sq.cqn = t->cq.cqn;
    t->esqn = guest_create(g, QHCA_CMD_CREATE_ETH_SQ, &sq, sizeof(sq));
    memcpy(t->group.mgid, "\xff\x0e\0\0\0\0\0\0\0\0\0\0\0\0\0\x01", 16);
    assert_int_equal(unit_cmd(u, QHCA_CMD_ATTACH_MC, t->ud.qpn, 0, &t->group,
                              sizeof(t->group), NULL), QHCA_ST_OK);
}

static void unmake(struct things *t)
{
    const struct {
        uint8_t op;
        uint32_t num;
    } end[] = {
        { QHCA_CMD_DESTROY_FLOW, t->flow }, { QHCA_CMD_DESTROY_QP, t->qpn },
        { QHCA_CMD_DESTROY_RQT, t->rqtn }, { QHCA_CMD_DESTROY_WQ, t->wqn },
        { QHCA_CMD_DESTROY_SHAPER, t->shaper },
        { QHCA_CMD_DESTROY_ETH_SQ, t->esqn },
    };
    struct guest *g = &t->u->g;
    unsigned i;

    assert_int_equal(unit_cmd(t->u, QHCA_CMD_DETACH_MC, t->ud.qpn, 0,
                              &t->group, sizeof(t->group), NULL), QHCA_ST_OK);
    for (i = 0; i < sizeof(end) / sizeof(end[0]); i++) {
        assert_int_equal(guest_simple(g, end[i].op, end[i].num), QHCA_ST_OK);
    }
    gbuf_free(&t->ring);
    gbuf_free(&t->esq);
    guest_dbrec_free(g, t->dbrec);
    assert_int_equal(gmr_destroy(&t->mr), QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&t->target), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&t->xsrq), QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_FREE_XRCD, t->xrcd),
                     QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&t->ud), QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&t->rc), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&t->cq), QHCA_ST_OK);
}

/* "" if @s is loaded, else why not; @s is closed. */
static const char *loads(struct things *t, struct saved *s)
{
    const char *why = node_loads_state(t->u->n, &t->u->e->cfg, s->b, s->len);

    saved_close(s);
    return why;
}

#define REFUSED(t, s, want) do {                                            \
    const char *why_ = loads(t, s);                                         \
                                                                            \
    if (!strstr(why_, want)) {                                              \
        fail_msg("\"%s\", not \"%s\"", why_, want);                         \
    }                                                                       \
} while (0)

/* Nothing is edited, or what makes no difference. */
static void loaded(void **state)
{
    struct things t;
    struct saved s;
    uint32_t num;

    make(&t, *state);
    saved_open(&s, t.u->e);
    assert_string_equal(loads(&t, &s), "");
    /* one CQ more, which nothing uses, with the next number */
    saved_open(&s, t.u->e);
    num = t.u->e->q->cqs.fresh;
    saved_copy(&s, saved_rec(&s, "cq", t.cq.cqn),
               saved_rec(&s, "cq", t.cq.cqn), num);
    assert_string_equal(loads(&t, &s), "");
    /* and without it again */
    saved_open(&s, t.u->e);
    saved_copy(&s, saved_rec(&s, "cq", t.cq.cqn),
               saved_rec(&s, "cq", t.cq.cqn), num);
    saved_drop(&s, saved_rec(&s, "cq", num));
    assert_string_equal(loads(&t, &s), "");
    unmake(&t);
}

/* QPs with RSS have a section of their own; WQs were QPs only before that. */
static void sections(void **state)
{
    static const char other[] = "another section has QPs of its type";
    struct saved_rec *rc, *rss;
    struct things t;
    struct saved s;
    uint8_t *old;
    size_t len;

    make(&t, *state);
    saved_open(&s, t.u->e);
    rc = saved_rec(&s, "qp", t.rc.qpn);
    rss = saved_rec(&s, "rss", t.qpn);
    saved_copy(&s, rc, rss, t.u->e->q->qps.fresh);
    REFUSED(&t, &s, other);
    /* without its table, which is not there yet */
    saved_open(&s, t.u->e);
    rc = saved_rec(&s, "qp", t.rc.qpn);
    rss = saved_rec(&s, "rss", t.qpn);
    saved_unref(&s, rss->at + rss->len - RSS_TAIL);
    saved_copy(&s, rss, rc, t.u->e->q->qps.fresh);
    REFUSED(&t, &s, other);
    /* a WQ as a QP */
    saved_open(&s, t.u->e);
    old = saved_old_wq(t.u->e, qhca_wq_get(t.u->e, t.wqn),
                       QHCA_WRITES_qp, &len);
    saved_add(&s, saved_rec(&s, "rss", t.qpn), old, len,
              t.u->e->q->qps.fresh);
    REFUSED(&t, &s, other);
    saved_open(&s, t.u->e);
    saved_add(&s, saved_rec(&s, "qp", t.rc.qpn), old, len,
              t.u->e->q->qps.fresh);
    REFUSED(&t, &s, other);
    free(old);
    unmake(&t);
}

/* References that each object of its kind has. */
static void references(void **state)
{
    static const struct {
        const char *section, *why;
        size_t at;
    } refs[] = {
        { "flow", "its QP does not exist", SAVED_U32 },
        { "mcg", "a multicast group member does not exist",
          1 + SAVED_U32 + 16 + SAVED_U32 },
        { "cq", "its EQ does not exist", SAVED_U32 },
        { "ethq", "its CQ does not exist", SAVED_U32 },
    };
    const struct saved_rec *r;
    struct things t;
    struct saved s;
    unsigned i, n;

    make(&t, *state);
    for (i = 0; i < sizeof(refs) / sizeof(refs[0]); i++) {
        saved_open(&s, t.u->e);
        for (n = 0; strcmp(s.rec[n].section, refs[i].section); n++) {
        }
        saved_unref(&s, s.rec[n].at + refs[i].at);
        REFUSED(&t, &s, refs[i].why);
    }
    saved_open(&s, t.u->e);
    r = saved_rec(&s, "wq", t.wqn);
    saved_unref(&s, saved_skip(&s, r->at, 6));
    REFUSED(&t, &s, "its CQ does not exist");
    saved_open(&s, t.u->e);
    r = saved_rec(&s, "rss", t.qpn);
    saved_unref(&s, r->at + r->len - RSS_TAIL);
    REFUSED(&t, &s, "its RQ table does not exist");
    unmake(&t);
}

/* Numbers that mean "none" are given to no object. */
static void low_numbers(void **state)
{
    static const char *const sections[] = {
        "pd", "xrcd", "cq", "srq", "mr", "qp", "wq", "shaper", "rss", "flow",
    };
    struct saved_rec *r;
    struct things t;
    struct saved s;
    unsigned i, n;

    make(&t, *state);
    for (i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        saved_open(&s, t.u->e);
        for (n = 0; strcmp(s.rec[n].section, sections[i]); n++) {
        }
        saved_copy(&s, &s.rec[n], &s.rec[n], 0);
        if (!*loads(&t, &s)) {
            fail_msg("section %s: number 0 is loaded", sections[i]);
        }
    }
    /* for references to nothing that look as if they were to these */
    saved_open(&s, t.u->e);
    r = saved_rec(&s, "cq", t.cq.cqn);
    saved_copy(&s, r, r, 0);
    r = saved_rec(&s, "qp", t.rc.qpn);
    saved_unref(&s, saved_skip(&s, r->at, 6));
    REFUSED(&t, &s, "CQ: an object's number is reserved");
    saved_open(&s, t.u->e);
    r = saved_rec(&s, "xrcd", t.xrcd);
    saved_copy(&s, r, r, 0);
    r = saved_rec(&s, "qp", t.target.qpn);
    saved_unref(&s, saved_skip(&s, r->at, 9));
    REFUSED(&t, &s, "xrcd: an object's number is reserved");
    unmake(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(loaded),
        UNIT_HOSTILE(sections),     /* so that a failure is reported */
        UNIT_HOSTILE(references),
        UNIT_HOSTILE(low_numbers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
