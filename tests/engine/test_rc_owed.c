/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Responses that are owed while the wire is blocked: as many as there is room
 * for, and what becomes of them if their QP or our address is gone.
 */
#include "peer.h"
#include "adapter/adapter.h"
#include "transport/rc.h"

#define SLOT(i) (PEER_IOVA + 64 * (uint64_t)(i))

static uint8_t built[4400];

static uint32_t psn0(const struct peer *p)
{
    return p->a.rq_psn;
}

/* A packet while the wire is blocked. */
static void arrives(struct peer *p, struct pkt k)
{
    k.rkey = p->mr.key;
    world_inject(&p->w, 0, built, peer_build(p, &k, built));
    world_run(&p->w, 10);
}

static void unblock(struct peer *p)
{
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
}

/*
 * A peer asks for all it got, again and again.  The queue of responses is full,
 * and a new request is dropped before it has changed anything: it is executed
 * when it is resent.  There is always room for a NAK, but not for two.
 */
static void full(void **state)
{
    static const struct {
        struct pkt k;
        uint8_t answer;
    } t[] = {
        { { .op = READ_REQ, .dmalen = 8 }, RESP_ONLY },
        { { .op = FETCH_ADD, .swap = 1 }, ATOMIC_ACK },
        { { .op = ATOMIC_WRITE, .dmalen = 8, .data = "87654321", .len = 8 },
          RESP_ONLY },
        { { .op = FLUSH, .feth = QHCA_FLUSH_T_GLOBAL, .dmalen = 8 },
          RESP_ONLY },
    };
    uint32_t i, j, n = QHCA_RSPQ - 1;
    struct qhca_xport *xp;
    struct peer *p;
    struct pkt k;

    (void)state;
    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        p = peer_new(QHCA_QPT_RC, NULL);
        xp = qhca_qp_get(p->e, p->qp.qpn)->xp;
        for (j = 0; j < n; j++) {
            peer_tx(p, .op = READ_REQ, .psn = psn0(p) + j, .va = SLOT(j),
                    .rkey = p->mr.key, .dmalen = 8);
            peer_expect(p, RESP_ONLY, psn0(p) + j);
        }
        p->w.wire.refuse = 65536;
        for (j = 0; j < n; j++) {
            arrives(p, (struct pkt){ .op = READ_REQ, .psn = psn0(p) + j,
                                     .va = SLOT(j), .dmalen = 8 });
        }
        assert_int_equal(xp->rspq_head - xp->rspq_tail, n);
        k = t[i].k;
        k.psn = psn0(p) + n;
        k.va = SLOT(100);
        arrives(p, k);
        assert_int_equal(xp->exp_psn, (psn0(p) + n) & 0xffffff);
        assert_int_equal(xp->msn, n);
        assert_int_equal(gbuf_verify(&p->mr.buf, 0, 7, 0, PEER_BUF),
                         PEER_BUF);
        /* the next one shows that it is missing */
        arrives(p, (struct pkt){ .op = SEND_ONLY, .psn = k.psn + 1 });
        assert_int_equal(xp->rspq_head - xp->rspq_tail, QHCA_RSPQ);
        arrives(p, k);
        arrives(p, (struct pkt){ .op = SEND_ONLY, .psn = k.psn + 1 });
        assert_int_equal(xp->rspq_head - xp->rspq_tail, QHCA_RSPQ);
        assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_SEQ_NAK_TX), 1);
        unblock(p);
        for (j = 0; j < n; j++) {
            peer_expect(p, RESP_ONLY, psn0(p) + j);
        }
        peer_expect_aeth(p, 0x60, k.psn);
        k.rkey = p->mr.key;
        peer_send(p, k);
        peer_expect(p, t[i].answer, k.psn);
        peer_expect_nothing(p);
        peer_free(p);
    }
}

/* Our own address is removed: what is owed cannot be sent, later it can. */
static void no_address(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_xport *xp = qhca_qp_get(p->e, p->qp.qpn)->xp;
    struct qhca_gid gid = { .type = QHCA_GID_NONE };
    struct gcmd c = { .op = QHCA_CMD_SET_GID, .obj = p->a.gid_index,
                      .in = &gid, .in_len = sizeof(gid) };
    uint32_t i;

    (void)state;
    p->w.wire.refuse = 65536;
    for (i = 0; i < 3; i++) {
        arrives(p, (struct pkt){ .op = FETCH_ADD, .psn = psn0(p) + i,
                                 .va = SLOT(0), .swap = 1 });
    }
    assert_int_equal(xp->rd_pending, 3);
    assert_int_equal(guest_cmd(&p->g, &c), QHCA_ST_OK);
    unblock(p);
    peer_expect_nothing(p);
    assert_int_equal(xp->rspq_head, xp->rspq_tail);
    assert_int_equal(xp->rd_pending, 0);
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    /* the address is back: the peer asks again */
    guest_gid(0, p->a.gid_index, gid.gid);
    memcpy(gid.mac, p->n->mac, 6);
    gid.vlan = QHCA_VLAN_NONE;
    gid.type = QHCA_GID_ROCE_V2;
    assert_int_equal(guest_cmd(&p->g, &c), QHCA_ST_OK);
    for (i = 0; i < 3; i++) {
        peer_tx(p, .op = FETCH_ADD, .psn = psn0(p) + i, .va = SLOT(0),
                .rkey = p->mr.key, .swap = 1);
        peer_expect(p, ATOMIC_ACK, psn0(p) + i);
    }
    peer_free(p);
}

/* Nor can a peer of ours be told by a QP that ends then; nothing waits. */
static void no_last_words(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_gid gid = { .type = QHCA_GID_NONE };
    struct gcmd c = { .op = QHCA_CMD_SET_GID, .obj = p->a.gid_index,
                      .in = &gid, .in_len = sizeof(gid) };

    (void)state;
    p->w.wire.refuse = 65536;
    arrives(p, (struct pkt){ .op = FETCH_ADD, .psn = psn0(p), .va = SLOT(0),
                             .swap = 1 });
    assert_int_equal(guest_cmd(&p->g, &c), QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    p->qp.qpn = 0;
    assert_int_equal(p->e->xd->last_ack_head, 0);
    unblock(p);
    peer_expect_nothing(p);
    peer_free(p);
}

/* The last ACKs of many connections are kept, but not of any number. */
static void many_last_acks(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t i;

    (void)state;
    p->w.wire.refuse = 65536;
    for (i = 0; i < QHCA_LAST_ACKS + 2; i++) {
        arrives(p, (struct pkt){ .op = WRITE_ONLY, .psn = p->a.rq_psn,
                                 .va = SLOT(i), .dmalen = 4, .data = "data",
                                 .len = 4, .ackreq = true });
        assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
        gqp_clear(&p->qp);
        p->a.rq_psn = 1000 + i;
        gqp_to_init(&p->qp, &p->a);
        gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
        gqp_to_rts(&p->qp, &p->a);
    }
    unblock(p);
    peer_expect_aeth(p, 0x1f, 0xfffff0);
    for (i = 0; i < QHCA_LAST_ACKS - 1; i++) {
        peer_expect_aeth(p, 0x1f, 1000 + i);
    }
    peer_expect_nothing(p);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_ACK_TX), QHCA_LAST_ACKS);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(full),
        cmocka_unit_test(no_address),
        cmocka_unit_test(no_last_words),
        cmocka_unit_test(many_last_acks),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
