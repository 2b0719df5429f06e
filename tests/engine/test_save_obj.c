/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A saved state is not trusted.  One field of the adapter or of an object is
 * corrupted in memory and saved: loading must refuse that, with a reason.
 */
#include "unit.h"
#include "reborn.h"
#include "transport/tag_qp.h"

#define IOVA 0x500000000000ull
#define ETH_SHIFT 3

struct objects {
    struct unit *u;
    struct gcq cq;
    struct gmr mr;
    struct gsrq srq, tm;
    struct gbuf esq, erq, wq;
    uint64_t dbrec, wq_dbrec;
    uint32_t esqn, erqn, mwk, fast, wqn;
};

static void make(struct objects *o, struct unit *u)
{
    struct qhca_mpt w = { .flags = QHCA_MR_F_MW1, .pd = u->g.pd };
    struct qhca_mpt fast = { .flags = QHCA_MR_F_FAST_REG, .pd = u->g.pd,
                             .max_entries = qhca_le32(2) };
    struct gtm_init ti = {
        .cq = &o->cq, .max_tags = 8, .ops_shift = 4, .ops_stride = 6,
    };
    struct qhca_mac list = { .mac = "\x33\x33\0\0\0\x01" };
    struct gtm_op op = {
        .opcode = QHCA_WQE_TAG_ADD, .handle = 3, .tag = 7, .num_sge = 1,
        .sge[0] = { IOVA, 64, 0 },
    };
    struct qhca_wqc wqc = { .shift = 3, .stride = 5, .uar = u->g.uar,
                            .pd = u->g.pd };
    struct qhca_eth_qc c;
    uint32_t n;

    memset(o, 0, sizeof(*o));
    o->u = u;
    gcq_create(&o->cq, &u->g, 4, NULL, 1);
    gmr_create(&o->mr, &u->g, 8192, IOVA, QHCA_ACCESS_MASK, NULL);
    gsrq_create(&o->srq, &u->g, 3, 6, NULL, NULL);
    gsrq_create_tm(&o->tm, &u->g, 3, 6, NULL, NULL, &ti);
    op.sge[0].lkey = o->mr.key;
    assert_true(gtm_post(&o->tm, &op, &n));
    gtm_ring(&o->tm);
    world_settle(&u->w, 1000000);
    assert_int_equal(gtm_result(&o->tm, n), QHCA_TM_DONE);
    o->mwk = guest_create(&u->g, QHCA_CMD_CREATE_MW, &w, sizeof(w));
    o->fast = guest_create(&u->g, QHCA_CMD_CREATE_MR, &fast, sizeof(fast));
    gbuf_make(&o->esq, u->m, 64 << ETH_SHIFT, &gbuf_direct, true, 0,
              &u->g.rng);
    gbuf_make(&o->erq, u->m, 16 << ETH_SHIFT, &gbuf_direct, true, 0,
              &u->g.rng);
    o->dbrec = guest_dbrec(&u->g, false);
    memset(&c, 0, sizeof(c));
    c.buf = o->esq.d;
    c.cqn = o->cq.cqn;
    c.shift = ETH_SHIFT;
    c.stride = 6;
    o->esqn = guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    c.buf = o->erq.d;
    c.stride = 4;
    c.dbrec = o->dbrec;
    o->erqn = guest_create(&u->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
    gbuf_make(&o->wq, u->m, 32 << 3, &gbuf_direct, true, 0, &u->g.rng);
    o->wq_dbrec = guest_dbrec(&u->g, false);
    wqc.buf = o->wq.d;
    wqc.cqn = o->cq.cqn;
    wqc.dbrec = o->wq_dbrec;
    o->wqn = guest_create(&u->g, QHCA_CMD_CREATE_WQ, &wqc, sizeof(wqc));
    assert_int_equal(unit_cmd(u, QHCA_CMD_SET_MC_LIST, 0, 0, &list,
                              sizeof(list), NULL), QHCA_ST_OK);
}

static void unmake(struct objects *o)
{
    struct guest *g = &o->u->g;

    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_ETH_SQ, o->esqn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_ETH_RQ, o->erqn),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_WQ, o->wqn),
                     QHCA_ST_OK);
    gbuf_free(&o->wq);
    guest_dbrec_free(g, o->wq_dbrec);
    gbuf_free(&o->esq);
    gbuf_free(&o->erq);
    guest_dbrec_free(g, o->dbrec);
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_MR, o->mwk),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_DESTROY_MR, o->fast),
                     QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&o->tm), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&o->srq), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&o->mr), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&o->cq), QHCA_ST_OK);
}

/*
 * In turn: a field, its new value, and the reason expected.  Numbers of
 * referenced objects are kept: saving looks them up.
 */
#define SPOILT(X)                                                            \
    X(e->ad->ctrl, 0x80, "a register has unknown bits")                      \
    X(e->ad->aq_ctrl, 0x80, "a register has unknown bits")                   \
    X(e->fatal, 99, "the fatal state is unknown")                            \
    X(e->ready_flag, false, "it cannot be enabled like this")                \
    X(e->ad->db_shift, 60, "it cannot be enabled like this")                 \
    X(e->ad->asq_prod, e->ad->asq_cons + 17,                                 \
      "more commands than the admin queue")                                  \
    X(e->cfg.max_qp, 7, "other limits of objects")                           \
    X(e->cfg.speed, 7, "another speed or device memory")                     \
    X(e->cfg.num_vectors, 1, "another number of vectors")                    \
    X(e->cfg.mac[5], 0xee, "another MAC address")                            \
    X(e->mac[0], 1, "its address is no unicast address")                     \
    X(e->mtu, 60000, "its MTU is out of range")                              \
    X(e->mtu, QHCA_MIN_MTU - 1, "its MTU is out of range")                   \
    X(e->eth->eth_rqn, 12, "its receive queue does not exist")               \
    X(*filter(e), 0x020000000001, "is not a multicast address")                 \
    X(eq->shift, 0, "no command could have created it")                      \
    X(eq->vector, 60000, "no command could have created it")                 \
    X(eq->flags, 2, "no command could have created it")                      \
    X(eq->dbrec, 8, "no command could have created it")                      \
    X(eq->notify, true, "its armed flag contradicts its other flags")        \
    X(eq->prod, eq->cons + (1u << eq->shift) + 1, "more events than it")     \
    X(cq->shift, 30, "no command could have created it")                     \
    X(cq->uar, 9999, "no command could have created it")                     \
    X(cq->dbrec, 4, "no command could have created it")                      \
    X(cq->state, 9, "its state is unknown")                                  \
    X(cq->arm, 9, "its state is unknown")                                    \
    X(eq->eqn, 0xffff, "an object's number is taken or out of range")        \
    X(cq->prod, cq->cons + 17, "more completions than it holds")             \
    X(srq->shift, 20, "no command could have created it")                    \
    X(srq->stride, 4, "no command could have created it")                    \
    X(srq->pd, 9999, "no command could have created it")                     \
    X(srq->dbrec, 2, "no command could have created it")                     \
    X(srq->flags, 0x80, "no command could have created it")                  \
    X(srq->flags, QHCA_SRQ_F_XRC, "no command could have created it")        \
    X(srq->state, 7, "its state is unknown")                                 \
    X(srq->limit, 9, "no command could have created it")                     \
    X(srq->head, srq->tail + 9, "more receives than it holds")               \
    X(tm->ops_head, tm->ops_tail + 17, "more tag operations than the ring")  \
    X(tm->inactive, 5, "the first inactive tag is not in the list")          \
    X(tm->tags[3].handle, 4, "no command could have added a tag")            \
    X(tm->tags[3].num_sge, QHCA_TM_MAX_SGE + 1, "could have added a tag")    \
    X(tm->tags[3].num_sge, 2, "no command could have added a tag")           \
    X(tm->max_tags, 3, "a tag is out of range or there twice")               \
    X(mr->pd, 9999, "its PD does not exist")                                 \
    X(mr->state, 9, "its state is unknown")                                  \
    X(mr->access, 1u << 31, "no command could have created it")              \
    X(mr->len, 8192 * 2, "no command could have created it")                 \
    X(mr->len, 0, "no command could have created it")                        \
    X(mr->iova, 0ull - 4096, "no command could have created it")             \
    X(mr->state, QHCA_MR_FREE, "no command could have created it")           \
    X(mr->flags, QHCA_MR_F_PHYS, "no command could have created it")         \
    X(mr->flags, QHCA_MR_F_FAST_REG, "no command could have created it")     \
    X(mr->flags, QHCA_MR_F_ODP | QHCA_MR_F_DM, "could have created it")      \
    X(mr->key, 0xffffffu, "an object's number is taken or out of range")     \
    X(mw->mr.key, 0xffffffu, "an object's number is taken or out of range")  \
    X(mr->flags, 0x80, "no command could have created it")                   \
    X(fast->state, QHCA_MR_VALID, "no command could have created it")        \
    X(fast->max_entries, 0, "no command could have created it")              \
    X(fast->max_entries, 65536, "no command could have created it")          \
    X(mw->mr.flags, QHCA_MR_F_MW1 | QHCA_MR_F_MW2, "it is no window")        \
    X(mw->mr.state, QHCA_MR_VALID, "it is half bound")                       \
    X(esq->ring.shift, 20, "its size is out of range")                       \
    X(esq->ring.stride, 5, "no command could have created it")               \
    X(esq->ring.head, esq->ring.tail + 9, "more WQEs than it holds")         \
    X(esq->state, QHCA_WQS_RESET, "its state is unknown")                    \
    X(esq->flags, QHCA_ETH_Q_F_HDS,                                          \
      "it lacks a buffer, or has one that it must not have")                 \
    X(erq->ring.dbrec, erq->ring.dbrec + 1,                                  \
      "no command could have created it")                                    \
    X(erq->state, 3, "its state is unknown")                                 \
    X(erq->data.stride, 5, "no command could have created it")               \
    X(erq->hds_thresh, 1, "no command could have created it")                \
    X(erq->data.shift, 1, "no command could have created it")                \
    X(erq->data.head, 1, "more WQEs than it holds")                          \
    X(erq->flags, 0x80, "no command could have created it")                  \
    X(erq->num, 0xffff, "an object's number is taken or out of range")       \
    X(wq->state, 3, "no command could have created it")                      \
    X(wq->flags, 2, "no command could have created it")                      \
    X(wq->pd, 9999, "no command could have created it")                      \
    X(wq->uar, 9999, "no command could have created it")                     \
    X(wq->ring.shift, 20, "its size is out of range")                        \
    X(wq->ring.shift, 4, "a buffer table is not allowed")                    \
    X(wq->ring.stride, 4, "no command could have created it")                \
    X(wq->ring.stride, 10, "its size is out of range")                       \
    X(wq->ring.dbrec, wq->ring.dbrec + 4,                                    \
      "no command could have created it")                                    \
    X(wq->ring.head, 1, "it is not in use, but has WQEs")                    \
    X(wq->ring.head, 9, "more WQEs than it holds")                           \
    X(wq->recv.held, true, "it is not in use, but has WQEs")                 \
    X(wq->wqn, 0, "no command could have created it")                        \
    X(wq->wqn, 1, "no command could have created it")                        \
    X(wq->wqn, 0xffff, "an object's number is taken or out of range")

/* The slot of the only address in the filter. */
static uint64_t *filter(struct qhca *e)
{
    unsigned i;

    for (i = 0; i < QHCA_HASH_SLOTS && !e->eth->mc_hash[i]; i++) {
    }
    assert_true(i < QHCA_HASH_SLOTS);
    return &e->eth->mc_hash[i];
}

static void spoilt(void **state)
{
    struct unit *u = *state;
    struct qhca *e = u->e;
    const struct qhca_config cfg = e->cfg;
    struct objects o;
    struct qhca_eq *eq;
    struct qhca_cq *cq;
    struct qhca_srq *srq;
    struct qhca_tm *tm;
    struct qhca_mr *mr, *fast;
    struct qhca_mw *mw;
    struct qhca_eth_q *esq, *erq;
    struct qhca_wq *wq;
    unsigned bad = 0;

    make(&o, u);
    u->m->unchecked = true;
    eq = qhca_idr_get(&e->q->eqs, 1);
    cq = qhca_idr_get(&e->q->cqs, o.cq.cqn);
    srq = qhca_idr_get(&e->q->srqs, o.srq.srqn);
    tm = ((struct qhca_srq *)qhca_idr_get(&e->q->srqs, o.tm.srqn))->tm;
    mr = qhca_mr_get_cmd(e, o.mr.key);
    fast = qhca_mr_get_cmd(e, o.fast);
    mw = qhca_mr_mw(qhca_mr_get_cmd(e, o.mwk));
    esq = qhca_idr_get(&e->eth->eth_sqs, o.esqn);
    erq = qhca_idr_get(&e->eth->eth_rqs, o.erqn);
    wq = qhca_wq_get(e, o.wqn);
    assert_string_equal(node_loads(u->n, &cfg), "");
#define ONE(field, val, want) do {                                          \
        __typeof__(field) keep = (field);                                   \
        __typeof__(&(field)) at = &(field);                                 \
        const char *why;                                                    \
                                                                            \
        *at = (__typeof__(field))(val);                                     \
        why = node_loads(u->n, &cfg);                                       \
        *at = keep;                                                         \
        if (!strstr(why, want)) {                                           \
            print_error("%s = %s: \"%s\", not \"%s\"\n", #field, #val, why, \
                        want);                                              \
            bad++;                                                          \
        }                                                                   \
    } while (0);
    SPOILT(ONE)
#undef ONE
    assert_int_equal(bad, 0);
    assert_string_equal(node_loads(u->n, &cfg), "");
    u->m->unchecked = false;
    unmake(&o);
}

/* A window is bound by a QP that has BIND_MW, not by one of another type. */
static void bound_by_another(void **state)
{
    static const uint8_t types[] = { QHCA_QPT_RC, QHCA_QPT_UD };
    static const char no[] = "no QP could have bound it so";
    struct unit *u = *state;
    const struct qhca_config cfg = u->e->cfg;
    struct gqp_init in = { .sq_shift = 2, .sq_stride = 7 };
    struct qhca_mpt c = { .flags = QHCA_MR_F_MW2, .pd = u->g.pd };
    struct qhca_mw *mw;
    struct gqp qp[2];
    uint32_t window, pd;
    struct gmr mr;
    struct gcq cq;
    unsigned i;

    gcq_create(&cq, &u->g, 4, NULL, 1);
    in.scq = in.rcq = &cq;
    for (i = 0; i < 2; i++) {
        in.type = types[i];
        gqp_create(&qp[i], &u->g, &in);
    }
    gmr_create(&mr, &u->g, 4096, 0x1000,
               QHCA_ACCESS_MW_BIND | QHCA_ACCESS_LOCAL_WRITE, NULL);
    window = guest_create(&u->g, QHCA_CMD_CREATE_MW, &c, sizeof(c));
    assert_int_equal(unit_bind(u, qp[0].qpn, window, mr.key, 0x1000, 64,
                               QHCA_ACCESS_REMOTE_READ), QHCA_SYN_NONE);
    assert_string_equal(node_loads(u->n, &cfg), "");
    mw = qhca_mr_mw(qhca_mr_get_cmd(u->e, window));
    mw->qpn = qp[1].qpn;
    assert_non_null(strstr(node_loads(u->n, &cfg), "cannot bind windows"));
    mw->qpn = qp[0].qpn;
    /* nor without the right to, nor beyond the region */
#define UNBINDABLE(field, val, want) do {                                   \
        __typeof__(field) keep = (field);                                   \
                                                                            \
        (field) = (val);                                                    \
        assert_non_null(strstr(node_loads(u->n, &cfg), want));              \
        (field) = keep;                                                     \
    } while (0)
    UNBINDABLE(mw->bound->access, QHCA_ACCESS_LOCAL_WRITE, no);
    UNBINDABLE(mw->mr.access, QHCA_BIND_ACCESS + 1, no);
    UNBINDABLE(mw->mr.len, 0, no);
    UNBINDABLE(mw->mr.len, 4097, no);
    UNBINDABLE(mw->off, 4096, no);
    UNBINDABLE(mw->mr.iova, 0x1008, no);
    UNBINDABLE(mw->mr.flags, QHCA_MR_F_MW1, "it is half bound");
    pd = guest_create(&u->g, QHCA_CMD_ALLOC_PD, NULL, 0);
    UNBINDABLE(mw->bound->pd, pd, no);
    UNBINDABLE(qhca_qp_get(u->e, qp[0].qpn)->pd, pd, "in another PD");
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_PD, pd), QHCA_ST_OK);
    /* writes need the region to be writable here */
    mw->mr.access = QHCA_ACCESS_REMOTE_WRITE;
    assert_string_equal(node_loads(u->n, &cfg), "");
    UNBINDABLE(mw->bound->access, QHCA_ACCESS_MW_BIND, no);
    /* based on 0 */
    mw->mr.iova = 0;
    assert_string_equal(node_loads(u->n, &cfg), "");
#undef UNBINDABLE
    for (i = 0; i < 2; i++) {
        assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
    }
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, window),
                     QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
}

/* Regions that REG_MR has registered, and those of all memory. */
static void special_regions(void **state)
{
    struct unit *u = *state;
    const struct qhca_config cfg = u->e->cfg;
    static const char no[] = "no command could have created it";
    struct qhca_mpt c = { .flags = QHCA_MR_F_PHYS, .pd = u->g.pd };
    struct qhca_sq_wqe wqe = {
        .ctrl = { .opcode = QHCA_WQE_REG_MR, .arg0 = IOVA, .arg1 = 8192 },
    };
    uint32_t phys, fast;
    struct qhca_mr *mr;
    struct gbuf b;

    phys = guest_create(&u->g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
    assert_string_equal(node_loads(u->n, &cfg), "");
    mr = qhca_mr_get_cmd(u->e, phys);
    mr->len--;
    assert_non_null(strstr(node_loads(u->n, &cfg), no));
    mr->len++;
    assert_string_equal(node_loads(u->n, &cfg), "");

    gbuf_make(&b, u->m, 8192, &gbuf_flat4k, false, 0, &u->g.rng);
    c = (struct qhca_mpt){ .flags = QHCA_MR_F_FAST_REG, .pd = u->g.pd,
                           .max_entries = 2 };
    fast = guest_create(&u->g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
    wqe.remote.addr = b.d.addr;
    wqe.remote.rkey = fast;
    wqe.remote.arg = 12 << 8 | 2 << 16;
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &wqe), QHCA_SYN_NONE);
    assert_string_equal(node_loads(u->n, &cfg), "");
    mr = qhca_mr_get_cmd(u->e, fast);
    mr->max_entries = 1;
    assert_non_null(strstr(node_loads(u->n, &cfg), no));
    mr->max_entries = 2;
    assert_string_equal(node_loads(u->n, &cfg), "");
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, fast),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, phys),
                     QHCA_ST_OK);
    gbuf_free(&b);
}

/* Only a WQ in ERR flushes. */
static void flushes_too_early(void **state)
{
    struct unit *u = *state;
    const struct qhca_config cfg = u->e->cfg;
    struct objects o;
    struct qhca_wq *wq;

    make(&o, u);
    wq = qhca_wq_get(u->e, o.wqn);
    qhca_list_add_tail(&u->e->eth->wq_flush, &wq->flush);
    assert_non_null(strstr(node_loads(u->n, &cfg),
                           "its receives are flushed outside of ERR"));
    wq->state = QHCA_WQS_ERR;
    assert_string_equal(node_loads(u->n, &cfg), "");
    wq->state = QHCA_WQS_RESET;
    qhca_list_del(&wq->flush);
    unmake(&o);
}

/* In older states a WQ is a QP, in one of three states. */
static void wq_as_qp(void **state)
{
    struct unit *u = *state;
    struct objects o;
    struct qhca_wq *wq;
    struct qhca_xport xp;
    struct qhca_qp qp;
    unsigned st;

    make(&o, u);
    wq = qhca_wq_get(u->e, o.wqn);
    memset(&qp, 0, sizeof(qp));
    memset(&xp, 0, sizeof(xp));
    qp.qpn = wq->wqn;
    qp.pd = wq->pd;
    qp.uar = wq->uar;
    qp.rcq = wq->cq;
    qp.rq = wq->ring;
    qp.xp = &xp;
    for (st = QHCA_QPS_RESET; st <= QHCA_QPS_ERR; st++) {
        qp.state = (uint8_t)st;
        assert_int_equal(qhca_saved_wq_ops.valid(u->e, &qp),
                         st == QHCA_QPS_RESET || st == QHCA_QPS_RTR ||
                         st == QHCA_QPS_ERR);
    }
    qp.state = QHCA_QPS_RTR;
    qp.sq_stride = 6;
    assert_false(qhca_saved_wq_ops.valid(u->e, &qp));
    unmake(&o);
}

/* After each fatal error there is a state, which can be loaded. */
static void fatal_errors(void **state)
{
    struct unit *u = *state;
    const struct qhca_config cfg = u->e->cfg;
    uint8_t reason;

    for (reason = QHCA_FATAL_AQ_DMA; reason <= QHCA_FATAL_INTERNAL; reason++) {
        u->e->fatal = QHCA_FATAL_NONE;
        qhca_fatal(u->e, reason);
        assert_int_equal(u->e->fatal, reason);
        assert_string_equal(node_loads(u->n, &cfg), "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(bound_by_another),
        UNIT(special_regions),
        UNIT(flushes_too_early),
        UNIT(wq_as_qp),
        UNIT_HOSTILE(fatal_errors),
        UNIT_HOSTILE(spoilt),       /* so that a failure is reported */
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
