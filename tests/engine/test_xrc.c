/* SPDX-License-Identifier: GPL-2.0-or-later */
/* XRC: domains, initiator and target, packet by packet. */
#include "peer.h"
#include "steps.h"
#include "godp.h"
#include "adapter/adapter.h"

#define MTU 256
#define SIG QHCA_WQE_F_SIGNALED
#define X(op) (CLASS_XRC | (op))

/* A target with two SRQs of its domain, each with its own PD and CQ. */
struct target {
    struct peer *p;
    uint32_t xrcd, pd[2];
    struct gcq cq[2];
    struct gmr mr[2];
    struct gsrq srq[2];
    struct gqp own;             /* the QP peer_new() made */
    uint32_t s;                 /* next PSN to it */
};

static uint8_t data[4096];

static void target_qp(struct target *t)
{
    struct gqp_init qi = { .type = QHCA_QPT_XRC_TGT, .xrcd = t->xrcd };
    struct peer *p = t->p;

    gqp_create(&p->qp, &p->g, &qi);
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    t->s = p->a.rq_psn;
}

static void target_new(struct target *t)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t pd = p->g.pd;
    unsigned i;

    memset(t, 0, sizeof(*t));
    t->p = p;
    t->own = p->qp;
    t->xrcd = guest_create(&p->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    for (i = 0; i < 2; i++) {
        t->pd[i] = guest_create(&p->g, QHCA_CMD_ALLOC_PD, NULL, 0);
        gcq_create(&t->cq[i], &p->g, 4, NULL, 1);
        p->g.pd = t->pd[i];
        gmr_create(&t->mr[i], &p->g, 65536, PEER_IOVA, QHCA_ACCESS_MASK,
                   NULL);
        p->g.pd = pd;
        gbuf_allow(&t->mr[i].buf, 0, 65536, GMEM_RW);
        gsrq_create_xrc(&t->srq[i], &p->g, 4, 6, t->pd[i], t->xrcd,
                        &t->cq[i]);
    }
    target_qp(t);
}

static void srq_free(struct target *t, unsigned i)
{
    assert_int_equal(gsrq_destroy(&t->srq[i]), QHCA_ST_OK);
    t->srq[i].srqn = 0;
}

static void target_free(struct target *t)
{
    struct peer *p = t->p;
    unsigned i;

    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    for (i = 0; i < 2; i++) {
        if (t->srq[i].srqn) {
            srq_free(t, i);
        }
        assert_int_equal(gmr_destroy(&t->mr[i]), QHCA_ST_OK);
        assert_int_equal(gcq_destroy(&t->cq[i]), QHCA_ST_OK);
        assert_int_equal(guest_simple(&p->g, QHCA_CMD_FREE_PD, t->pd[i]),
                         QHCA_ST_OK);
    }
    assert_int_equal(guest_simple(&p->g, QHCA_CMD_FREE_XRCD, t->xrcd),
                     QHCA_ST_OK);
    p->qp = t->own;
    peer_free(p);
}

static uint32_t post(struct target *t, unsigned i, uint64_t wr_id,
                     uint32_t len)
{
    struct qhca_sge sge = {
        .addr = PEER_IOVA + 1024, .len = len, .lkey = t->mr[i].key,
    };
    uint32_t wqe;

    assert_true(gsrq_post(&t->srq[i], wr_id, &sge, 1, &wqe));
    return wqe;
}

/* The next CQE of SRQ @i's CQ. */
#define srq_cqe(t, i, id, wqe, st, syn) do { \
    struct peer *p_ = (t)->p; \
    peer_run(p_); \
    assert_true(gcq_poll(&(t)->cq[i], &p_->cqe)); \
    assert_int_equal(p_->cqe.wr_id, id); \
    assert_int_equal(p_->cqe.status, st); \
    assert_int_equal(p_->cqe.syndrome, syn); \
    assert_int_equal(p_->cqe.qpn, p_->qp.qpn); \
    assert_int_equal(p_->cqe.src_qpn, (t)->srq[i].srqn); \
    assert_int_equal(p_->cqe.wqe_index, wqe); \
    assert_int_equal(p_->cqe.flags & \
                     (QHCA_CQE_F_SRQ | QHCA_CQE_F_SRQN), \
                     QHCA_CQE_F_SRQ | QHCA_CQE_F_SRQN); \
} while (0)

static void no_srq_cqe(struct target *t)
{
    unsigned i;

    peer_run(t->p);
    for (i = 0; i < 2; i++) {
        assert_false(gcq_poll(&t->cq[i], &t->p->cqe));
    }
}

static void answers(struct target *t, uint8_t syn, uint32_t psn)
{
    const struct pframe *f = peer_expect(t->p, X(ACK), psn);

    assert_int_equal(f->ext[0], syn);
}

static void stored(struct target *t, unsigned i, uint64_t off,
                   const void *want, size_t len)
{
    uint8_t got[4096];

    gbuf_read(&t->mr[i].buf, off, got, len);
    assert_memory_equal(got, want, len);
}

/* The target has refused a request at t->s and is in ERR. */
static void refused(struct target *t, uint8_t nak, uint8_t event)
{
    struct peer *p = t->p;

    answers(t, nak, t->s);
    peer_expect_nothing(p);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_REQ_ERR],
                     event == QHCA_EV_QP_REQ_ERR);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_ACCESS_ERR],
                     event == QHCA_EV_QP_ACCESS_ERR);
    assert_int_equal(p->g.async_count[QHCA_EV_LAST_WQE], 0);
}

/* Messages to two SRQs through one target. */
static void receives(void **state)
{
    struct target t;
    uint32_t wqe[2], srqn[2];
    struct peer *p;

    (void)state;
    target_new(&t);
    p = t.p;
    srqn[0] = t.srq[0].srqn;
    srqn[1] = t.srq[1].srqn;
    wqe[0] = post(&t, 0, 10, 2000);
    wqe[1] = post(&t, 1, 11, 2000);
    peer_tx(p, .op = X(SEND_FIRST), .psn = t.s, .srqn = srqn[1],
            .data = data, .len = MTU);
    peer_tx(p, .op = X(SEND_MIDDLE), .psn = t.s + 1, .srqn = srqn[1],
            .data = data + MTU, .len = MTU);
    no_srq_cqe(&t);
    peer_tx(p, .op = X(SEND_LAST_IMM), .psn = t.s + 2, .srqn = srqn[1],
            .data = data + 2 * MTU, .len = 7, .imm = 0x01020304, .se = true,
            .ackreq = true);
    answers(&t, 0x1f, t.s + 2);
    srq_cqe(&t, 1, 11, wqe[1], QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 2 * MTU + 7);
    assert_int_equal(p->cqe.opcode, QHCA_CQE_OP_RECV);
    assert_true(p->cqe.flags & QHCA_CQE_F_IMM);
    assert_true(p->cqe.flags & QHCA_CQE_F_SOLICITED);
    stored(&t, 1, 1024, data, 2 * MTU + 7);
    no_srq_cqe(&t);
    /* only now is there a receive for the other */
    peer_tx(p, .op = X(WRITE_ONLY_IMM), .psn = t.s + 3, .srqn = srqn[0],
            .va = PEER_IOVA + 8, .rkey = t.mr[0].key, .dmalen = 5,
            .data = "hello", .len = 5, .imm = 1, .ackreq = true);
    answers(&t, 0x1f, t.s + 3);
    srq_cqe(&t, 0, 10, wqe[0], QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.opcode, QHCA_CQE_OP_RECV_RDMA_IMM);
    stored(&t, 0, 8, "hello", 5);
    /* both are empty: RNR NAK, until the SRQ has a receive */
    peer_tx(p, .op = X(SEND_ONLY), .psn = t.s + 4, .srqn = srqn[0],
            .ackreq = true);
    answers(&t, 0x20 | p->a.min_rnr_timer, t.s + 4);
    wqe[1] = post(&t, 1, 12, 10);
    peer_tx(p, .op = X(SEND_ONLY), .psn = t.s + 4, .srqn = srqn[0],
            .ackreq = true);
    answers(&t, 0x20 | p->a.min_rnr_timer, t.s + 4);
    wqe[0] = post(&t, 0, 13, 10);
    peer_tx(p, .op = X(SEND_ONLY), .psn = t.s + 4, .srqn = srqn[0],
            .ackreq = true);
    answers(&t, 0x1f, t.s + 4);
    srq_cqe(&t, 0, 13, wqe[0], QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_no_cqe(p, rcq);
    target_free(&t);
}

/* READ, atomic, FLUSH and ATOMIC WRITE; each in the PD of its SRQ. */
static void remote_memory(void **state)
{
    struct target t;
    const struct pframe *f;
    uint64_t word = 40;
    struct peer *p;
    unsigned i;

    (void)state;
    target_new(&t);
    p = t.p;
    for (i = 0; i < 2; i++) {
        gbuf_write(&t.mr[i].buf, 64, &word, 8);
        gbuf_write(&t.mr[i].buf, 512, i ? "second" : "primus", 6);
        peer_tx(p, .op = X(READ_REQ), .psn = t.s, .srqn = t.srq[i].srqn,
                .va = PEER_IOVA + 512, .rkey = t.mr[i].key, .dmalen = 6);
        f = peer_expect(p, X(RESP_ONLY), t.s++);
        assert_memory_equal(f->ext + 4, i ? "second" : "primus", 6);
        peer_tx(p, .op = X(FETCH_ADD), .psn = t.s, .srqn = t.srq[i].srqn,
                .va = PEER_IOVA + 64, .rkey = t.mr[i].key, .swap = i + 2);
        f = peer_expect(p, X(ATOMIC_ACK), t.s++);
        assert_true(peer_be64(f->ext + 4) == 40);
        peer_tx(p, .op = X(ATOMIC_WRITE), .psn = t.s, .srqn = t.srq[i].srqn,
                .va = PEER_IOVA + 72, .rkey = t.mr[i].key, .dmalen = 8,
                .data = "8 bytes!", .len = 8);
        f = peer_expect(p, X(RESP_ONLY), t.s++);
        assert_int_equal(f->body, 4);
        peer_tx(p, .op = X(FLUSH), .psn = t.s, .srqn = t.srq[i].srqn,
                .feth = QHCA_FLUSH_T_GLOBAL, .va = PEER_IOVA,
                .rkey = t.mr[i].key, .dmalen = 100);
        f = peer_expect(p, X(RESP_ONLY), t.s++);
        assert_int_equal(f->body, 4);
        stored(&t, i, 64, &(uint64_t){ 42 + i }, 8);
        stored(&t, i, 72, "8 bytes!", 8);
    }
    no_srq_cqe(&t);
    /* the key of one SRQ's PD in a request for the other */
    peer_tx(p, .op = X(WRITE_ONLY), .psn = t.s, .srqn = t.srq[0].srqn,
            .va = PEER_IOVA, .rkey = t.mr[1].key, .dmalen = 1, .data = "x",
            .len = 1, .ackreq = true);
    refused(&t, 0x62, QHCA_EV_QP_ACCESS_ERR);
    target_free(&t);
}

/* SRQs that a request must not specify. */
static void wrong_srqs(void **state)
{
    enum { NONE, BASIC, FOREIGN, DESTROYED, CHANGED, KINDS };
    static const uint8_t ops[] = {
        SEND_ONLY, WRITE_ONLY, READ_REQ, FETCH_ADD, FLUSH, ATOMIC_WRITE
    };
    unsigned kind, i;

    (void)state;
    for (kind = 0; kind < KINDS; kind++) {
        for (i = 0; i < sizeof(ops); i++) {
            uint32_t xrcd = 0, n = 0;
            struct target t;
            struct gsrq srq;
            struct peer *p;

            target_new(&t);
            p = t.p;
            post(&t, 0, 1, 1000);
            switch (kind) {
            case NONE:
                n = i & 1 ? 0 : 0xfffff0;
                break;
            case BASIC:
                gsrq_create(&srq, &p->g, 2, 5, NULL, NULL);
                n = srq.srqn;
                break;
            case FOREIGN:
                xrcd = guest_create(&p->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
                gsrq_create_xrc(&srq, &p->g, 2, 5, t.pd[0], xrcd, &t.cq[0]);
                n = srq.srqn;
                break;
            case DESTROYED:
                n = t.srq[1].srqn;
                srq_free(&t, 1);
                break;
            case CHANGED:
                peer_tx(p, .op = X(SEND_FIRST), .psn = t.s++,
                        .srqn = t.srq[0].srqn, .data = data, .len = MTU);
                n = t.srq[1].srqn;
                break;
            }
            peer_tx(p, .op = X(kind == CHANGED ? SEND_LAST : ops[i]),
                    .psn = t.s, .srqn = n, .va = PEER_IOVA,
                    .rkey = t.mr[0].key, .feth = 1,
                    .dmalen = ops[i] == WRITE_ONLY ||
                              ops[i] == ATOMIC_WRITE ? 8 : 0,
                    .data = data,
                    .len = ops[i] == WRITE_ONLY || ops[i] == ATOMIC_WRITE ||
                           kind == CHANGED ? 8 : 0);
            refused(&t, 0x61, QHCA_EV_QP_REQ_ERR);
            if (kind == CHANGED) {
                /* the receive it held goes to the CQ of that SRQ */
                peer_run(p);
                assert_true(gcq_poll(&t.cq[0], &p->cqe));
                assert_int_equal(p->cqe.wr_id, 1);
                assert_int_equal(p->cqe.status, QHCA_WC_WR_FLUSH_ERR);
                assert_int_equal(p->cqe.src_qpn, t.srq[0].srqn);
            }
            no_srq_cqe(&t);
            if (kind == BASIC || kind == FOREIGN) {
                assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
            }
            if (kind == FOREIGN) {
                assert_int_equal(guest_simple(&p->g, QHCA_CMD_FREE_XRCD,
                                              xrcd), QHCA_ST_OK);
            }
            target_free(&t);
        }
    }
}

/* An SRQ is destroyed while the target receives a message for it. */
static void srq_vanishes(void **state)
{
    struct target t;
    uint32_t n, wqe;
    struct peer *p;

    (void)state;
    target_new(&t);
    p = t.p;
    n = t.srq[0].srqn;
    post(&t, 0, 1, 1000);
    wqe = post(&t, 1, 2, 1000);
    peer_tx(p, .op = X(SEND_FIRST), .psn = t.s++, .srqn = n, .data = data,
            .len = MTU);
    srq_free(&t, 0);
    no_srq_cqe(&t);
    peer_tx(p, .op = X(SEND_LAST), .psn = t.s, .srqn = n, .data = data,
            .len = 9, .ackreq = true);
    refused(&t, 0x61, QHCA_EV_QP_REQ_ERR);
    no_srq_cqe(&t);             /* no receive is flushed */
    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    /* the other SRQ and its WQE are unchanged */
    target_qp(&t);
    peer_tx(p, .op = X(SEND_ONLY), .psn = t.s, .srqn = t.srq[1].srqn,
            .data = data, .len = 9, .ackreq = true);
    answers(&t, 0x1f, t.s);
    srq_cqe(&t, 1, 2, wqe, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    target_free(&t);
}

/* The same when the domain's counter of sweeps wraps. */
static void srq_vanishes_at_wrap(void **state)
{
    struct qhca_xrcd *x;
    struct qhca_qp *qp;
    struct target t;
    struct peer *p;

    (void)state;
    target_new(&t);
    p = t.p;
    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    x = qhca_idr_get(&p->e->q->xrcds, t.xrcd);
    x->sweep = UINT32_MAX;
    target_qp(&t);
    qp = qhca_qp_get(p->e, p->qp.qpn);
    post(&t, 0, 1, 1000);
    peer_tx(p, .op = X(SEND_FIRST), .psn = t.s, .srqn = t.srq[0].srqn,
            .data = data, .len = MTU);
    assert_non_null(qp->srq);
    srq_free(&t, 0);
    assert_int_equal(x->sweep, 0);
    assert_null(qp->srq);
    target_free(&t);
}

/* It is destroyed while a READ for it is being answered. */
static void srq_vanishes_in_read(void **state)
{
    struct target t;
    struct pkt k = { .op = X(READ_REQ), .va = PEER_IOVA, .dmalen = 5 * MTU };
    uint8_t b[4400];
    struct peer *p;

    (void)state;
    target_new(&t);
    p = t.p;
    k.psn = t.s;
    k.srqn = t.srq[0].srqn;
    k.rkey = t.mr[0].key;
    p->w.wire.refuse = 65536;
    world_inject(&p->w, 0, b, peer_build(p, &k, b));
    world_run(&p->w, 10);
    srq_free(&t, 0);
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
    refused(&t, 0x62, QHCA_EV_QP_ACCESS_ERR);
    target_free(&t);
}

/* A READ repeated while a message for another SRQ is in progress. */
static void read_again(void **state)
{
    struct target t;
    const struct pframe *f;
    struct pkt k;
    struct peer *p;
    uint32_t wqe;

    (void)state;
    target_new(&t);
    p = t.p;
    wqe = post(&t, 1, 5, 1000);
    gbuf_write(&t.mr[0].buf, 0, data, 2 * MTU);
    k = (struct pkt){
        .op = X(READ_REQ), .psn = t.s, .srqn = t.srq[0].srqn,
        .va = PEER_IOVA, .rkey = t.mr[0].key, .dmalen = 2 * MTU,
    };
    peer_send(p, k);
    peer_expect(p, X(RESP_FIRST), t.s);
    peer_expect(p, X(RESP_LAST), t.s + 1);
    peer_tx(p, .op = X(SEND_FIRST), .psn = t.s + 2, .srqn = t.srq[1].srqn,
            .data = data, .len = MTU);
    k.psn++;
    k.va += MTU;
    k.dmalen -= MTU;
    peer_send(p, k);
    f = peer_expect(p, X(RESP_ONLY), t.s + 1);
    assert_memory_equal(f->ext + 4, data + MTU, MTU);
    peer_tx(p, .op = X(SEND_LAST), .psn = t.s + 3, .srqn = t.srq[1].srqn,
            .data = data, .len = 1, .ackreq = true);
    answers(&t, 0x1f, t.s + 3);
    srq_cqe(&t, 1, 5, wqe, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    stored(&t, 1, 1024, data, MTU);
    /* without that SRQ the duplicate gets no answer; the target survives */
    srq_free(&t, 0);
    peer_send(p, k);
    peer_expect_nothing(p);
    assert_int_equal(peer_state(p), QHCA_QPS_RTR);
    target_free(&t);
}

/* To ERR and to RESET while holding a receive. */
static void held_receive(void **state)
{
    struct target t;
    uint32_t wqe;
    struct peer *p;

    (void)state;
    target_new(&t);
    p = t.p;
    wqe = post(&t, 0, 31, 1000);
    peer_tx(p, .op = X(SEND_FIRST), .psn = t.s, .srqn = t.srq[0].srqn,
            .data = data, .len = MTU);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_ERR), QHCA_ST_OK);
    srq_cqe(&t, 0, 31, wqe, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    no_srq_cqe(&t);
    assert_int_equal(p->g.async_count[QHCA_EV_LAST_WQE], 0);

    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    post(&t, 0, 32, 1000);
    peer_tx(p, .op = X(SEND_FIRST), .psn = t.s, .srqn = t.srq[0].srqn,
            .data = data, .len = MTU);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
    no_srq_cqe(&t);
    target_free(&t);
}

/* Errors reported to an SRQ's CQ: missing memory, message too long. */
static void bad_receives(void **state)
{
    struct target t;
    uint32_t wqe;
    struct peer *p;

    (void)state;
    target_new(&t);
    p = t.p;
    wqe = post(&t, 1, 7, 10);
    peer_tx(p, .op = X(SEND_ONLY), .psn = t.s, .srqn = t.srq[1].srqn,
            .data = data, .len = 11, .ackreq = true);
    answers(&t, 0x61, t.s);
    srq_cqe(&t, 1, 7, wqe, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_RQ_LENGTH);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    target_free(&t);

    /* an lkey of another PD than the SRQ's */
    target_new(&t);
    p = t.p;
    t.mr[1].key ^= t.mr[0].key;
    t.mr[0].key ^= t.mr[1].key;
    t.mr[1].key ^= t.mr[0].key;
    wqe = post(&t, 1, 8, 10);
    peer_tx(p, .op = X(SEND_ONLY), .psn = t.s, .srqn = t.srq[1].srqn,
            .data = data, .len = 1, .ackreq = true);
    answers(&t, 0x63, t.s);
    srq_cqe(&t, 1, 8, wqe, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_KEY_PD);
    t.mr[1].key ^= t.mr[0].key;
    t.mr[0].key ^= t.mr[1].key;
    t.mr[1].key ^= t.mr[0].key;
    target_free(&t);
}

/* Which requests are valid on which QP types. */
static void classes(void **state)
{
    static const uint8_t strangers[] = {
        SEND_ONLY, WRITE_ONLY, READ_REQ, CLASS_OWN | FETCH_ADD,
        X(RESP_ONLY), X(ACK), X(ATOMIC_ACK), ACK
    };
    struct target t;
    struct peer *p;
    unsigned i;

    (void)state;
    target_new(&t);
    p = t.p;
    gqp_to_rts(&p->qp, &p->a);
    for (i = 0; i < sizeof(strangers); i++) {
        peer_tx(p, .op = strangers[i], .psn = t.s, .ackreq = true);
        peer_expect_nothing(p);
        assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RX_MALFORMED),
                         i + 1);
    }
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    target_free(&t);
    p = peer_new(QHCA_QPT_XRC_INI, NULL);
    peer_tx(p, .op = X(SEND_ONLY), .psn = p->a.rq_psn, .ackreq = true);
    peer_tx(p, .op = X(READ_REQ), .psn = p->a.rq_psn);
    peer_tx(p, .op = SEND_ONLY, .psn = p->a.rq_psn, .ackreq = true);
    peer_expect_nothing(p);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RX_MALFORMED), 3);
    peer_free(p);
}

/* The initiator specifies the SRQ in every packet of a request. */
static void initiator(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_XRC_INI, NULL);
    uint32_t s = p->a.sq_psn, i;
    const struct pframe *f;
    uint8_t got[8];

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND_IMM, .wr_id = 1,
                               .flags = SIG, .srqn = 0x123456,
                               .imm = 0x04030201 }, 100, 2 * MTU + 3);
    for (i = 0; i < 3; i++) {
        static const uint8_t ops[] = {
            X(SEND_FIRST), X(SEND_MIDDLE), X(SEND_LAST_IMM)
        };
        uint32_t n = i == 2 ? 3 : MTU;

        f = peer_expect(p, ops[i], s + i);
        assert_int_equal(peer_be32(f->ext), 0x123456);
        assert_int_equal(f->body, i == 2 ? 4 + 4 + 4 : 4 + MTU);
        assert_memory_equal(f->ext + (i == 2 ? 8 : 4),
                            peer_data(100 + i * MTU, n), n);
    }
    assert_memory_equal(f->ext + 4, "\1\2\3\4", 4);
    peer_tx(p, .op = X(ACK), .psn = s + 2, .syn = 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);

    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 2,
                               .flags = SIG, .srqn = 1, .rkey = 0xabcd,
                               .remote_addr = 0x1122334455667788 }, 0, 4);
    f = peer_expect(p, X(WRITE_ONLY), s + 3);
    assert_int_equal(peer_be32(f->ext), 1);
    assert_true(peer_be64(f->ext + 4) == 0x1122334455667788);
    assert_int_equal(peer_be32(f->ext + 12), 0xabcd);
    assert_int_equal(peer_be32(f->ext + 16), 4);
    assert_int_equal(f->body, 24);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 3,
                               .flags = SIG, .srqn = 0xffffff }, 512, 8);
    f = peer_expect(p, X(READ_REQ), s + 4);
    assert_int_equal(peer_be32(f->ext), 0xffffff);
    peer_tx(p, .op = X(RESP_ONLY), .psn = s + 4, .syn = 0x1f,
            .data = "response", .len = 8);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    gbuf_read(&p->mr.buf, 512, got, 8);
    assert_memory_equal(got, "response", 8);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_FETCH_ADD, .wr_id = 4,
                               .flags = SIG, .srqn = 2, .remote_addr = 64,
                               .rkey = 5, .arg0 = 6 }, 520, 8);
    f = peer_expect(p, X(FETCH_ADD), s + 5);
    assert_int_equal(peer_be32(f->ext), 2);
    assert_int_equal(f->body, 4 + 28);
    assert_true(peer_be64(f->ext + 4 + 12) == 6);
    peer_tx(p, .op = X(ATOMIC_ACK), .psn = s + 5, .syn = 0x1f, .swap = 9);
    peer_cqe(p, scq, 4, QHCA_WC_SUCCESS, QHCA_SYN_NONE);

    /* RC responses are not for it */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 5,
                               .flags = SIG, .srqn = 3 }, 0, 1);
    peer_expect(p, X(SEND_ONLY), s + 6);
    peer_ack(p, s + 6, 0x1f);
    peer_no_cqe(p, scq);
    peer_tx(p, .op = X(ACK), .psn = s + 6, .syn = 0x61);
    peer_cqe(p, scq, 5, QHCA_WC_REM_INV_REQ_ERR, QHCA_SYN_NAK_INV_REQ);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_free(p);
}

/* WQEs that an initiator cannot send. */
static void initiator_refuses(void **state)
{
    static const struct gwr t[] = {
        { .opcode = QHCA_WQE_MASKED_COMP_SWAP },
        { .opcode = QHCA_WQE_MASKED_FETCH_ADD },
    };
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        struct peer *p = peer_new(QHCA_QPT_XRC_INI, NULL);
        struct gwr wr = t[i];

        wr.wr_id = 1;
        peer_post(p, wr, 0, 8);
        peer_run(p);
        assert_true(gcq_poll(&p->scq, &p->cqe));
        assert_int_equal(p->cqe.status, QHCA_WC_LOC_QP_OP_ERR);
        peer_expect_nothing(p);
        assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        peer_free(p);
    }
}

static uint8_t create_srq(struct target *t, struct qhca_srqc *c)
{
    struct gcmd cmd = { .op = QHCA_CMD_CREATE_SRQ, .in = c,
                        .in_len = sizeof(*c) };

    return guest_cmd(&t->p->g, &cmd);
}

static uint8_t create_qp(struct target *t, struct qhca_qpc *c)
{
    struct gcmd cmd = { .op = QHCA_CMD_CREATE_QP, .in = c,
                        .in_len = sizeof(*c) };

    return guest_cmd(&t->p->g, &cmd);
}

/* Invalid domains, SRQs and QPs; objects in use cannot be destroyed. */
static void contexts(void **state)
{
    struct target t;
    struct qhca_srqc s, sok = {
        .uar = 0, .shift = 2, .stride = 5, .flags = QHCA_SRQ_F_XRC,
        .dbrec = 0x1000, .buf = { .addr = 0x2000, .len = 128 },
        .idx = { .addr = 0x3000, .len = 16 },
    };
    struct qhca_qpc q, qok = { .type = QHCA_QPT_XRC_TGT };
    struct guest *g;
    struct peer *p;

    (void)state;
    target_new(&t);
    p = t.p;
    g = &p->g;
    sok.uar = g->uar;
    sok.pd = t.pd[0];
    sok.xrcd = t.xrcd;
    sok.cqn = t.cq[0].cqn;
#define NO_SRQ(set, want) \
    s = sok; set; assert_int_equal(create_srq(&t, &s), want)
    NO_SRQ(s.xrcd = 0, QHCA_ST_BAD_OBJ);
    NO_SRQ(s.xrcd = 4711, QHCA_ST_BAD_OBJ);
    NO_SRQ(s.cqn = 0, QHCA_ST_BAD_OBJ);
    NO_SRQ(s.flags = 0, QHCA_ST_BAD_PARAM);
    NO_SRQ(s.flags = 0; s.xrcd = 0, QHCA_ST_BAD_PARAM);
    NO_SRQ(s.flags |= 4, QHCA_ST_BAD_PARAM);
    NO_SRQ(s.pd = 0, QHCA_ST_BAD_OBJ);
    qok.xrcd = t.xrcd;
#define NO_QP(set, want) \
    q = qok; set; assert_int_equal(create_qp(&t, &q), want)
    NO_QP(q.xrcd = 0, QHCA_ST_BAD_OBJ);
    NO_QP(q.xrcd = 4711, QHCA_ST_BAD_OBJ);
    NO_QP(q.pd = g->pd, QHCA_ST_BAD_PARAM);
    NO_QP(q.uar = g->uar, QHCA_ST_BAD_PARAM);
    NO_QP(q.send_cqn = p->scq.cqn, QHCA_ST_BAD_PARAM);
    NO_QP(q.recv_cqn = p->scq.cqn, QHCA_ST_BAD_PARAM);
    NO_QP(q.sq_stride = 6, QHCA_ST_BAD_PARAM);
    NO_QP(q.rq_stride = 5, QHCA_ST_BAD_PARAM);
    NO_QP(q.flags = QHCA_QP_F_SRQ; q.srqn = t.srq[0].srqn,
          QHCA_ST_BAD_PARAM);
    qok = (struct qhca_qpc){
        .type = QHCA_QPT_RC, .pd = g->pd, .uar = g->uar, .sq_shift = 2,
        .sq_stride = 6, .flags = QHCA_QP_F_SRQ,
        .send_cqn = p->scq.cqn, .recv_cqn = p->rcq.cqn,
        .sq = { .addr = 0x1000, .len = 256 },
    };
    NO_QP(q.srqn = t.srq[0].srqn, QHCA_ST_BAD_PARAM);
    NO_QP(q.flags = 0; q.xrcd = t.xrcd, QHCA_ST_BAD_PARAM);
    /* users keep it alive */
    assert_int_equal(guest_simple(g, QHCA_CMD_FREE_XRCD, t.xrcd),
                     QHCA_ST_BUSY);
    assert_int_equal(gcq_destroy(&t.cq[1]), QHCA_ST_BUSY);
    srq_free(&t, 0);
    srq_free(&t, 1);
    assert_int_equal(guest_simple(g, QHCA_CMD_FREE_XRCD, t.xrcd),
                     QHCA_ST_BUSY);
    assert_int_equal(guest_simple(g, QHCA_CMD_FREE_XRCD, 4711),
                     QHCA_ST_BAD_OBJ);
    target_free(&t);
}

/* ---- steps ---- */

/* Events of the traffic. */
static struct {
    uint32_t qpn, psn, wqe[4], cqn[2];
} x;

/* Alternating messages to two SRQs: 3 packets, 1 with data in a WRITE, 1, 1. */
static void step_traffic(void)
{
    uint32_t srqn[2];
    struct target t;
    struct peer *p;
    unsigned i;

    target_new(&t);
    p = t.p;
    x.qpn = p->qp.qpn;
    x.psn = t.s;
    for (i = 0; i < 2; i++) {
        srqn[i] = t.srq[i].srqn;
        x.cqn[i] = t.cq[i].cqn;
    }
    for (i = 0; i < 4; i++) {
        x.wqe[i] = post(&t, !(i & 1), 10 + i, 2000);
    }
    steps_begin(p->n);
    peer_tx(p, .op = X(SEND_FIRST), .psn = t.s, .srqn = srqn[1],
            .data = data, .len = MTU);
    peer_tx(p, .op = X(SEND_MIDDLE), .psn = t.s + 1, .srqn = srqn[1],
            .data = data + MTU, .len = MTU);
    peer_tx(p, .op = X(SEND_LAST), .psn = t.s + 2, .srqn = srqn[1],
            .data = data + 2 * MTU, .len = 7);
    peer_tx(p, .op = X(WRITE_ONLY_IMM), .psn = t.s + 3, .srqn = srqn[0],
            .va = PEER_IOVA + 8, .rkey = t.mr[0].key, .dmalen = 5,
            .data = "hello", .len = 5, .imm = 1);
    peer_tx(p, .op = X(SEND_ONLY), .psn = t.s + 4, .srqn = srqn[1],
            .data = data, .len = 9);
    peer_tx(p, .op = X(SEND_ONLY), .psn = t.s + 5, .srqn = srqn[0],
            .ackreq = true);
    peer_run(p);
    steps_end(p->n);
    p->tail = p->head;
    for (i = 0; i < 4; i++) {
        srq_cqe(&t, !(i & 1), 10 + i, x.wqe[i], QHCA_WC_SUCCESS,
                QHCA_SYN_NONE);
    }
    target_free(&t);
}

/* n packets, receive WQEs, completions, ... are n; each names its object. */
static void stepped(void **state)
{
    static const uint8_t op[] = {
        X(SEND_FIRST), X(SEND_MIDDLE), X(SEND_LAST), X(WRITE_ONLY_IMM),
        X(SEND_ONLY), X(SEND_ONLY)
    };
    static const uint32_t len[] = { 2 * MTU + 7, 5, 9, 0 };
    const struct qhca_trace *t;
    unsigned i;

    (void)state;
    steps_check(step_traffic);
    steps_packets_in(x.qpn, x.psn, op, 6);
    assert_int_equal(steps_count(QHCA_ON_RECV_WQE), 4);
    assert_int_equal(steps_count(QHCA_ON_CQE), 4);
    for (i = 0; i < 4; i++) {
        t = steps_event(QHCA_ON_RECV_WQE, i);
        assert_int_equal(t->num, x.qpn);
        assert_int_equal(t->index, x.wqe[i]);
        assert_int_equal(t->b, 10 + i);
        t = steps_event(QHCA_ON_CQE, i);
        assert_int_equal(t->num, x.cqn[!(i & 1)]);
        assert_int_equal(t->index, i / 2);
        assert_int_equal(t->peer, x.qpn);
        assert_int_equal(t->wqe, x.wqe[i]);
        assert_int_equal(t->b, 10 + i);
        assert_int_equal(t->len, len[i]);
    }
}

/*
 * The peer replaces a request that waits for a page, and has a WQE, by one for
 * another SRQ.  The WQE goes back to its own.
 */
static void another_after_fault(void **state)
{
    static const struct gbuf_shape flat = {
        .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12,
    };
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct target t;
    struct godp o;
    struct gmr mr;
    struct peer *p;
    uint32_t pd;

    (void)state;
    target_new(&t);
    p = t.p;
    pd = p->g.pd;
    p->g.pd = t.pd[0];
    godp_create(&o, &mr, &p->g, 65536, 0x700000000000ull, QHCA_ACCESS_MASK,
                &flat);
    p->g.pd = pd;
    post(&t, 0, 31, 1000);
    post(&t, 1, 40, 1000);
    peer_tx(p, .op = X(WRITE_ONLY_IMM), .psn = t.s, .srqn = t.srq[0].srqn,
            .va = 0x700000000000ull, .rkey = mr.key, .dmalen = 100,
            .data = data, .len = 100);
    guest_faults(&p->g, p->qp.qpn, f);
    assert_int_equal(f[QHCA_PAGE_FAULT_RECV].flags,
                     QHCA_PAGE_FAULT_VALID | QHCA_PAGE_FAULT_WRITE);
    peer_tx(p, .op = X(SEND_ONLY), .psn = t.s, .srqn = t.srq[1].srqn,
            .data = data, .len = 100);
    assert_int_equal(guest_resume(&p->g, p->qp.qpn, QHCA_PAGE_FAULT_RECV,
                                  f[QHCA_PAGE_FAULT_RECV].token, false),
                     QHCA_ST_OK);
    peer_run(p);
    assert_true(gcq_poll(&t.cq[0], &p->cqe));
    assert_int_equal(p->cqe.wr_id, 31);
    assert_int_equal(p->cqe.status, QHCA_WC_WR_FLUSH_ERR);
    assert_false(gcq_poll(&t.cq[1], &p->cqe));
    assert_int_equal(godp_destroy(&o), QHCA_ST_OK);
    target_free(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stepped),
        cmocka_unit_test(receives),
        cmocka_unit_test(remote_memory),
        cmocka_unit_test(wrong_srqs),
        cmocka_unit_test(srq_vanishes),
        cmocka_unit_test(srq_vanishes_at_wrap),
        cmocka_unit_test(srq_vanishes_in_read),
        cmocka_unit_test(read_again),
        cmocka_unit_test(held_receive),
        cmocka_unit_test(bad_receives),
        cmocka_unit_test(classes),
        cmocka_unit_test(initiator),
        cmocka_unit_test(initiator_refuses),
        cmocka_unit_test(contexts),
        cmocka_unit_test(another_after_fault),
    };

    pattern_bytes(99, 0, data, sizeof(data));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
