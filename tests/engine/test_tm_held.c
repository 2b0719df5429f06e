/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tag matching: entries held by a QP.  The CQ overflows, the peer replaces the
 * packet that waits for a page, and saved states claim what cannot be.
 */
#include "peer.h"
#include "adapter/adapter.h"
#include "godp.h"
#include "reborn.h"
#include "transport/rc.h"
#include "transport/tag_qp.h"

#define MTU 256
#define TAG 42
#define IOVA 0x600000
#define RCQ_SHIFT 8             /* see peer_new() */

struct tm {
    struct peer *p;
    struct gsrq srq;
    struct qhca_qp *qp;
    uint32_t psn;               /* of the first packet we send */
};

static void open(struct tm *t)
{
    struct gtm_init ti = { .max_tags = 8, .ops_shift = 4, .ops_stride = 7 };
    struct gqp_init qi = { .type = QHCA_QPT_RC };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    t->p = p;
    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    ti.cq = &p->rcq;
    gsrq_create_tm(&t->srq, &p->g, 6, 6, NULL, NULL, &ti);
    qi.scq = qi.rcq = &p->scq;
    qi.srq = &t->srq;
    gqp_create(&p->qp, &p->g, &qi);
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    gqp_to_rts(&p->qp, &p->a);
    t->qp = qhca_qp_get(p->e, p->qp.qpn);
    t->psn = p->a.rq_psn;
}

static void close(struct tm *t)
{
    assert_int_equal(gqp_destroy(&t->p->qp), QHCA_ST_OK);
    t->p->qp.qpn = 0;
    assert_int_equal(gsrq_destroy(&t->srq), QHCA_ST_OK);
    peer_free(t->p);
}

/* Add entry @handle for TAG, a buffer at @addr; returns the result. */
static uint32_t add(struct tm *t, uint32_t handle, uint64_t addr, uint32_t key)
{
    struct gtm_op o = {
        .opcode = QHCA_WQE_TAG_ADD, .handle = handle, .tag = TAG,
        .mask = UINT64_MAX, .recv_wr_id = 100 + handle, .num_sge = 1,
        .sge[0] = { .addr = addr, .len = 4096, .lkey = key },
    };
    uint32_t n;

    assert_true(gtm_post(&t->srq, &o, &n));
    gtm_ring(&t->srq);
    peer_run(t->p);
    return gtm_result(&t->srq, n);
}

static size_t eager(uint8_t *b, size_t len)
{
    memset(b, 0x55, len);
    memset(b, 0, 16);
    b[0] = QHCA_TMH_EAGER;
    peer_put64(b + 8, TAG);
    return len;
}

static size_t rndv(uint8_t *b)
{
    eager(b, 32);
    b[0] = QHCA_TMH_RNDV;
    peer_put64(b + 16, 0x1000);
    peer_put32(b + 24, 1);
    peer_put32(b + 28, 100);
    return 32;
}

/* No room is left in the CQ of the SRQ. */
static void fill_cq(struct tm *t)
{
    struct qhca_cq *cq = t->qp->srq->cq;
    unsigned i;

    for (i = 0; i < 1u << RCQ_SHIFT; i++) {
        assert_true(qhca_cq_push(t->p->e, cq, &(struct qhca_cqe){ 0 },
                                 false));
    }
}

static void overflown(struct tm *t)
{
    assert_int_equal(peer_state(t->p), QHCA_QPS_ERR);
    assert_int_equal(t->qp->syndrome, QHCA_SYN_CQ_OVERFLOW);
    guest_poll_eq(&t->p->g, 0);
    assert_int_equal(t->p->g.async_count[QHCA_EV_QP_FATAL], 1);
}

/* ---- CQ overflow ---- */

/* The match cannot be reported: the message is not accepted. */
static void match_untold(void **state)
{
    uint8_t b[MTU];
    struct tm t;
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        open(&t);
        assert_int_equal(add(&t, 5, PEER_IOVA, t.p->mr.key), QHCA_TM_DONE);
        fill_cq(&t);
        if (i) {
            peer_tx(t.p, .op = SEND_ONLY, .psn = t.psn, .data = b,
                    .len = rndv(b), .ackreq = true);
        } else {
            peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b,
                    .len = eager(b, MTU), .ackreq = true);
        }
        peer_expect_nothing(t.p);       /* neither an ACK nor a READ */
        overflown(&t);
        assert_null(t.qp->tm->tag);
        assert_int_equal(t.qp->srq->tm->tags[5].state, QHCA_TAG_FREE);
        close(&t);
    }
}

/* The data of a rendezvous is there, which cannot be reported: no FIN. */
static void end_untold(void **state)
{
    uint8_t b[MTU];
    struct tm t;

    (void)state;
    open(&t);
    assert_int_equal(add(&t, 5, PEER_IOVA, t.p->mr.key), QHCA_TM_DONE);
    peer_tx(t.p, .op = SEND_ONLY, .psn = t.psn, .data = b, .len = rndv(b),
            .ackreq = true);
    peer_expect_aeth(t.p, 0x1f, t.psn);
    peer_expect(t.p, READ_REQ, t.p->a.sq_psn);
    assert_true(gcq_poll(&t.p->rcq, &t.p->cqe));
    assert_true(t.p->cqe.flags & QHCA_CQE_F_TM_MATCH);
    gcq_arm(&t.p->rcq, false);          /* reports that it was polled */
    fill_cq(&t);
    peer_tx(t.p, .op = RESP_ONLY, .psn = t.p->a.sq_psn, .syn = 0x1f,
            .data = peer_data(50, 100), .len = 100);
    peer_expect_nothing(t.p);
    overflown(&t);
    assert_int_equal(t.qp->tm->reads, 0);
    assert_int_equal(t.qp->srq->tm->tags[5].state, QHCA_TAG_FREE);
    close(&t);
}

/* ---- after a page fault ---- */

/*
 * The first packet of a message waits for a page.  The peer sends another one
 * in its place: one without a header, or a WRITE.
 */
static void replaced(void **state)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct qhca_tm_cqe c;
    struct godp odp;
    struct gmr mr;
    uint8_t b[MTU];
    struct tm t;
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        open(&t);
        godp_create(&odp, &mr, &t.p->g, 8192, IOVA, QHCA_ACCESS_MASK,
                    &gbuf_flat4k);
        gbuf_allow(&mr.buf, 0, 8192, GMEM_RW);
        assert_int_equal(add(&t, 5, IOVA, mr.key), QHCA_TM_DONE);
        peer_tx(t.p, .op = SEND_ONLY, .psn = t.psn, .data = b,
                .len = eager(b, 100), .ackreq = true);
        assert_int_equal(t.qp->tm->kind, QHCA_TM_EAGER);
        if (i) {
            peer_tx(t.p, .op = WRITE_ONLY_IMM, .psn = t.psn,
                    .va = PEER_IOVA + 64, .rkey = t.p->mr.key, .dmalen = 8,
                    .data = "12345678", .len = 8);
        } else {
            peer_tx(t.p, .op = SEND_ONLY, .psn = t.psn, .data = b, .len = 15);
        }
        guest_faults(&t.p->g, t.p->qp.qpn, f);
        godp_in(&odp, 0, 4096, true);
        assert_int_equal(guest_resume(&t.p->g, t.p->qp.qpn,
                                      QHCA_PAGE_FAULT_RECV,
                                      f[QHCA_PAGE_FAULT_RECV].token, false),
                         QHCA_ST_OK);
        peer_expect_aeth(t.p, i ? 0x61 : 0x63, t.psn);
        assert_int_equal(peer_state(t.p), QHCA_QPS_ERR);
        assert_int_equal(t.qp->syndrome, QHCA_SYN_BAD_PACKET);
        assert_int_equal(gbuf_verify(&t.p->mr.buf, 0, 7, 0, PEER_BUF),
                         PEER_BUF);
        /* the entry comes back, with an error */
        peer_run(t.p);
        assert_true(gcq_poll(&t.p->rcq, &t.p->cqe));
        memcpy(&c, &t.p->cqe, sizeof(c));
        assert_int_equal(c.wr_id, 105);
        assert_int_equal(c.status, i ? QHCA_WC_WR_FLUSH_ERR :
                                       QHCA_WC_LOC_PROT_ERR);
        assert_false(gcq_poll(&t.p->rcq, &t.p->cqe));
        assert_int_equal(godp_destroy(&odp), QHCA_ST_OK);
        close(&t);
    }
}

/* ---- saved states ---- */

static bool refused(struct tm *t, const char *why)
{
    const char *got = node_loads(t->p->n, &t->p->e->cfg);

    if (why ? !strstr(got, why) : *got) {
        print_error("refused for: %s\n", got);
        return false;
    }
    return true;
}

/* What a QP holds exists, is held once, and goes with its state. */
static void saved(void **state)
{
    struct qhca_tm_job *job;
    struct qhca_tag *tag;
    uint8_t b[MTU];
    struct tm t;

    (void)state;
    open(&t);
    assert_int_equal(add(&t, 5, PEER_IOVA, t.p->mr.key), QHCA_TM_DONE);
    peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b,
            .len = eager(b, MTU));
    tag = t.qp->tm->tag;
    job = &t.qp->tm->job[t.qp->sq_head & (QHCA_TM_SLOTS - 1)];
    assert_ptr_equal(tag, &t.qp->srq->tm->tags[5]);
    assert_true(refused(&t, NULL));
    /* held twice: for the message, and for a READ */
    t.qp->sq_head++;
    job->tag = tag;
    assert_true(refused(&t, "it holds a tag that is not free"));
    job->tag = NULL;
    t.qp->sq_head--;
    /* no command has added it */
    tag->num_sge = QHCA_TM_MAX_SGE + 1;
    assert_true(refused(&t, "no command could have added a tag"));
    tag->num_sge = 1;
    /* without its receive */
    t.qp->xp->recv.held = false;
    t.qp->xp->rsp_op = QHCA_RSPOP_NONE;
    assert_true(refused(&t, "it holds a tag, but no receive"));
    t.qp->xp->recv.held = true;
    t.qp->xp->rsp_op = QHCA_RSPOP_SEND;
    assert_true(refused(&t, NULL));
    close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(match_untold),
        cmocka_unit_test(end_untold),
        cmocka_unit_test(replaced),
        cmocka_unit_test(saved),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
