/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Unreliable datagrams, packet by packet. */
#include "peer.h"
#include "observe/breakpoint_internal.h"

#define QKEY 0x11111111u
#define SIG QHCA_WQE_F_SIGNALED

static uint64_t dropped(struct peer *p)
{
    return qhca_stat(p->e, QHCA_STAT_UD_DROPPED);
}

static void post(struct peer *p, uint64_t wr_id, uint32_t qkey, uint32_t len,
                 uint8_t flags)
{
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .wr_id = wr_id, .flags = flags,
        .dest_qpn = PEER_QPN, .qkey = qkey,
    };

    guest_av(&p->g, &p->w.node[1], 0, &wr.av);
    peer_post(p, wr, 0, len);
}

static void send(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND_IMM, .wr_id = 2, .flags = SIG,
        .dest_qpn = PEER_QPN, .qkey = 0x80000000, .imm = 0x04030201,
    };
    const struct pframe *f;
    uint32_t s = p->a.sq_psn;

    (void)state;
    post(p, 1, 0x1234, 10, SIG | QHCA_WQE_F_SOLICITED);
    f = peer_expect(p, UD_ONLY, s);
    assert_true(f->se);
    assert_int_equal(peer_be32(f->ext), 0x1234);
    assert_int_equal(peer_be32(f->ext + 4), p->qp.qpn);
    assert_memory_equal(f->ext + 8, peer_data(0, 10), 10);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    /* bit 31 of the Q_Key: the QP's own is used; IPv6 and a VLAN */
    guest_av(&p->g, &p->w.node[1], 2, &wr.av);
    wr.av.sl = 5;
    wr.av.traffic_class = 0x61;
    p->w.wire.filter = NULL;            /* peer_filter() knows no tags */
    peer_post(p, wr, 0, 4);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* GRH, source, immediate data. */
static void receive(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct pkt k = { .op = UD_ONLY_IMM, .psn = 77, .rkey = QKEY,
                     .imm = 0x01020304, .data = "datagram", .len = 8 };
    uint8_t got[48], frame[4400], zero[20] = { 0 };

    (void)state;
    peer_recv(p, 1, 0, 48);
    peer_build(p, &k, frame);
    peer_send(p, k);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 48);
    assert_int_equal(p->cqe.src_qpn, PEER_QPN);
    assert_int_equal(p->cqe.flags & (QHCA_CQE_F_GRH | QHCA_CQE_F_IMM |
                                     QHCA_CQE_F_SMAC | QHCA_CQE_F_VLAN),
                     QHCA_CQE_F_GRH | QHCA_CQE_F_IMM | QHCA_CQE_F_SMAC);
    assert_int_equal(p->cqe.net_type, QHCA_NET_IPV4);
    assert_memory_equal(p->cqe.smac, p->w.node[1].mac, 6);
    gbuf_read(&p->mr.buf, 0, got, 48);
    assert_memory_equal(got, zero, 20);
    assert_memory_equal(got + 20, frame + 14, 20);
    assert_memory_equal(got + 40, "datagram", 8);
    /* PSNs of datagrams are ignored */
    peer_recv(p, 2, 0, 48);
    k.psn = 5;
    k.op = UD_ONLY;
    peer_send(p, k);
    peer_cqe(p, rcq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_expect_nothing(p);
    peer_free(p);
}

/* Inject @k with a VLAN tag @tci. */
static void send_tagged(struct peer *p, struct pkt k, uint16_t tci)
{
    uint8_t b[4404];
    size_t len = peer_build(p, &k, b + 4);

    memmove(b, b + 4, 12);
    peer_put16(b + 12, 0x8100);
    peer_put16(b + 14, tci);
    world_inject(&p->w, 0, b, len + 4);
    peer_run(p);
}

/* A tag with VID 0 has a priority, but is no VLAN. */
static void priority_tag(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct pkt k = { .op = UD_ONLY, .rkey = QKEY, .data = "prio", .len = 4 };
    struct qhca_gid gid = { .vlan = 0, .type = QHCA_GID_ROCE_V2 };
    struct gcmd c = { .op = QHCA_CMD_SET_GID, .in = &gid,
                      .in_len = sizeof(gid) };

    (void)state;
    peer_recv(p, 1, 0, 44);
    send_tagged(p, k, 5 << 13);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_false(p->cqe.flags & QHCA_CQE_F_VLAN);
    assert_int_equal(p->cqe.vlan, QHCA_VLAN_NONE);
    assert_int_equal(p->cqe.sl, 5);
    /* but a GID can be in VLAN 0 */
    guest_gid(0, 0, gid.gid);
    memcpy(gid.mac, p->n->mac, 6);
    guest_must(&p->g, &c);
    peer_recv(p, 2, 0, 44);
    send_tagged(p, k, 3 << 13);
    peer_cqe(p, rcq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_true(p->cqe.flags & QHCA_CQE_F_VLAN);
    assert_int_equal(p->cqe.vlan, 3 << 13);
    assert_int_equal(p->cqe.sl, 3);
    peer_free(p);
}

/* A dropped datagram consumes no receive. */
static void drops(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct pkt k = { .op = UD_ONLY, .rkey = QKEY, .data = "datagram",
                     .len = 8 };

    (void)state;
    peer_send(p, k);
    assert_int_equal(dropped(p), 1);    /* no receive */
    peer_recv(p, 1, 0, 47);
    peer_recv(p, 2, 0, 48);
    k.rkey ^= 1;
    k.len = 7;
    peer_send(p, k);
    assert_int_equal(dropped(p), 2);    /* Q_Key */
    peer_no_cqe(p, rcq);
    k.rkey ^= 1;
    k.len = 8;
    peer_send(p, k);
    assert_int_equal(dropped(p), 3);    /* one byte too long */
    peer_no_cqe(p, rcq);
    assert_int_equal(gbuf_verify(&p->mr.buf, 0, 7, 0, PEER_BUF), PEER_BUF);
    k.len = 7;
    peer_send(p, k);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    k.len = 8;
    peer_send(p, k);
    peer_cqe(p, rcq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    peer_free(p);
}

/* A failing send leads to SQE; the receive side continues; RTS recovers. */
static void send_error(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct pkt k = { .op = UD_ONLY, .rkey = QKEY };

    (void)state;
    peer_recv(p, 9, 0, 100);
    post(p, 1, QKEY, 4096 + 1, 0);
    post(p, 2, QKEY, 4, 0);
    peer_cqe(p, scq, 1, QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH);
    peer_cqe(p, scq, 2, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    assert_int_equal(peer_state(p), QHCA_QPS_SQE);
    peer_expect_nothing(p);
    peer_send(p, k);
    peer_cqe(p, rcq, 9, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RTS), QHCA_ST_OK);
    post(p, 3, QKEY, 4, SIG);
    peer_expect(p, UD_ONLY, p->a.sq_psn);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/*
 * Software leaves SQE while there is still much to flush: what was posted
 * before is flushed, what is posted after is sent.
 */
static void leave_sqe_early(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .wr_id = 1, .dest_qpn = PEER_QPN,
        .qkey = QKEY, .num_sge = 1,
        .sge[0] = { .addr = PEER_IOVA, .len = 4, .lkey = p->mr.key ^ 1 },
    };
    struct qhca_qpc c;
    unsigned i;

    (void)state;
    guest_av(&p->g, &p->w.node[1], 0, &wr.av);
    for (i = 1; i <= 500; i++) {
        wr.wr_id = i;
        assert_true(gqp_post_send(&p->qp, &wr));
        wr.sge[0].lkey = p->mr.key;
    }
    gqp_ring(&p->qp);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RTS), QHCA_ST_OK);
    wr.wr_id = 501;
    wr.flags = SIG;
    assert_true(gqp_post_send(&p->qp, &wr));
    gqp_ring(&p->qp);
    assert_true(qhca_query_qp(p->e, p->qp.qpn, &c));
    assert_int_equal(c.state, QHCA_QPS_RTS);
    assert_in_range(c.sq_tail, 2, 499);     /* or this test shows nothing */
    assert_int_equal(c.sq_head, 501);
    peer_expect(p, UD_ONLY, p->a.sq_psn);
    peer_expect_nothing(p);
    peer_cqe(p, scq, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_KEY_INVALID);
    for (i = 2; i <= 500; i++) {
        peer_cqe(p, scq, i, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    }
    peer_cqe(p, scq, 501, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

static void bad_av(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .wr_id = 1,
                      .dest_qpn = PEER_QPN };

    (void)state;
    guest_av(&p->g, &p->w.node[1], 0, &wr.av);
    wr.av.sgid_index = 99;              /* none there */
    peer_post(p, wr, 0, 4);
    peer_cqe(p, scq, 1, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_AV);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RTS), QHCA_ST_OK);
    wr.wr_id = 2;
    wr.av.sgid_index = 1;               /* IPv6, but to an IPv4 address */
    peer_post(p, wr, 0, 4);
    peer_cqe(p, scq, 2, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_AV);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RTS), QHCA_ST_OK);
    wr.wr_id = 3;
    wr.av.sgid_index = 65535;
    peer_post(p, wr, 0, 4);
    peer_cqe(p, scq, 3, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_AV);
    peer_free(p);
}

/* The GSI QP: number 1, its own Q_Key. */
static void gsi(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_GSI, NULL);
    struct pkt k = { .op = UD_ONLY, .rkey = 0x80010000, .data = "mad",
                     .len = 3 };
    const struct pframe *f;

    (void)state;
    assert_int_equal(p->qp.qpn, 1);
    peer_recv(p, 1, 0, 100);
    peer_send(p, k);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    post(p, 2, 0x80010000, 4, SIG);
    f = peer_expect(p, UD_ONLY, p->a.sq_psn);
    assert_int_equal(peer_be32(f->ext), 0x80010000);
    assert_int_equal(peer_be32(f->ext + 4), 1);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

#define TURNS 10

static unsigned wqes[2];        /* stops at WQEs of either QP */

static void at_wqe(struct node *n)
{
    const struct qhca_trace *t = &n->e->dbg->why;
    unsigned i = t->b >= TURNS;

    assert_int_equal(t->index, wqes[i]);
    assert_int_equal(t->b, wqes[i] + TURNS * i);
    wqes[i]++;
    assert_null(qhca_break_step(n->e, QHCA_ON_WQE, 1));
    n->go_at_once = true;
}

/* Two QPs take turns waiting for the wire: each WQE is still one step. */
static void stepped_by_turns(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct gqp_init qi = {
        .type = QHCA_QPT_UD, .sq_shift = 4, .sq_stride = 7, .rq_shift = 4,
        .rq_stride = 5, .scq = &p->scq, .rcq = &p->rcq,
    };
    struct gqp qp[2] = { p->qp };
    unsigned i, j;

    (void)state;
    gqp_create(&qp[1], &p->g, &qi);
    gqp_to_init(&qp[1], &p->a);
    gqp_to_rtr(&qp[1], NULL, &p->a);
    gqp_to_rts(&qp[1], &p->a);
    p->n->on_stop = at_wqe;
    assert_null(qhca_break_step(p->e, QHCA_ON_WQE, 1));
    p->w.wire.refuse = 65536;
    for (i = 0; i < 2; i++) {
        p->qp = qp[i];
        for (j = 0; j < TURNS; j++) {
            post(p, TURNS * i + j, 0x1234, 10, SIG);
        }
        qp[i] = p->qp;
    }
    p->qp = qp[0];
    p->w.wire.refuse = 32768;
    world_run(&p->w, 1000000);
    assert_true(p->n->refused > TURNS);
    assert_int_equal(wqes[0], TURNS);
    assert_int_equal(wqes[1], TURNS);
    assert_int_equal(peer_waiting(p), 2 * TURNS);
    p->tail = p->head;
    p->n->on_stop = NULL;
    qhca_break_step_cancel(p->e);
    assert_int_equal(gqp_destroy(&qp[1]), QHCA_ST_OK);
    peer_free(p);
}

/*
 * A QP sends to itself while the wire takes no frame, which another QP waits
 * for.  Its next datagram is for the wire, and waits as well.
 */
static void to_itself_while_blocked(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct gqp_init qi = {
        .type = QHCA_QPT_UD, .sq_shift = 4, .sq_stride = 7, .rq_shift = 4,
        .rq_stride = 5, .scq = &p->scq, .rcq = &p->rcq,
    };
    struct gwr own = {
        .opcode = QHCA_WQE_SEND, .wr_id = 2, .flags = SIG,
        .dest_qpn = p->qp.qpn, .qkey = QKEY,
    };
    struct gqp first, other;

    (void)state;
    gqp_create(&other, &p->g, &qi);
    gqp_to_init(&other, &p->a);
    gqp_to_rtr(&other, NULL, &p->a);
    gqp_to_rts(&other, &p->a);
    peer_recv(p, 1, 8192, 100);
    first = p->qp;
    p->w.wire.refuse = 65536;
    p->qp = other;
    post(p, 1, QKEY, 10, SIG);
    other = p->qp;
    p->qp = first;
    peer_no_cqe(p, scq);
    assert_true(p->e->tx_blocked);
    guest_av(&p->g, p->n, 0, &own.av);
    peer_post(p, own, 0, 10);
    post(p, 3, QKEY, 10, SIG);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_no_cqe(p, scq);
    peer_expect_nothing(p);
    p->w.wire.refuse = 0;
    world_run(&p->w, 1000000);
    assert_int_equal(peer_waiting(p), 2);
    p->tail = p->head;
    assert_int_equal(gqp_destroy(&other), QHCA_ST_OK);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(to_itself_while_blocked),
        cmocka_unit_test(stepped_by_turns),
        cmocka_unit_test(send),
        cmocka_unit_test(receive),
        cmocka_unit_test(priority_tag),
        cmocka_unit_test(drops),
        cmocka_unit_test(send_error),
        cmocka_unit_test(leave_sqe_early),
        cmocka_unit_test(bad_av),
        cmocka_unit_test(gsi),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
