/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets that are too long, and frames longer than the packet in them: none
 * may be executed that the link could not have carried, and none may lead to a
 * state that cannot be loaded.
 */
#include "peer.h"
#include "godp.h"
#include "transport/rc.h"

#define ROOM 16384u             /* of a frame */
#define LEN (4u << 12)
#define IOVA 0x700000000000ull

static uint8_t bytes[9000];

static uint64_t stat(struct peer *p, unsigned index)
{
    return qhca_stat(p->e, index);
}

/* Send @k followed by @trailer bytes, as Ethernet pads frames. */
static void send_long(struct peer *p, const struct pkt *k, size_t trailer)
{
    static uint8_t b[ROOM];
    size_t len = peer_build(p, k, b);

    memset(b + len, 0x5a, trailer);
    world_inject(&p->w, 0, b, len + trailer);
    peer_run(p);
}

/* The adapter's state loads into the adapter itself. */
static void save_and_load(struct peer *p)
{
    char why[160] = "";
    size_t len;
    void *s;

    assert_true(qhca_save(p->e, &s, &len));
    if (!qhca_load(p->e, s, len, why, sizeof(why))) {
        fail_msg("what was saved does not load: %s", why);
    }
    free(s);
}

static void set_mtu(struct peer *p, uint32_t mtu)
{
    struct qhca_port port = { .mtu = mtu };
    struct gcmd c = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_MTU,
    };

    guest_must(&p->g, &c);
}

static uint32_t ud_qkey(struct peer *p)
{
    struct qhca_qpc c;

    assert_true(qhca_query_qp(p->e, p->qp.qpn, &c));
    return c.qkey;
}

/* A datagram is at most as long as the port's active MTU. */
static void datagram(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_UD, NULL);
    struct pkt k = { .op = UD_ONLY, .rkey = ud_qkey(p), .data = bytes };

    (void)state;
    peer_recv(p, 1, 0, 16384);
    k.len = 8000;
    send_long(p, &k, 0);
    peer_no_cqe(p, rcq);
    k.len = 4097;
    send_long(p, &k, 0);
    peer_no_cqe(p, rcq);
    k.len = 4096;
    send_long(p, &k, 0);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 4096 + 40);
    assert_int_equal(stat(p, QHCA_STAT_UD_DROPPED) +
                     stat(p, QHCA_STAT_ROCE_RX_MALFORMED), 2);
    /* 1500 bytes of Ethernet carry an InfiniBand MTU of 1024 */
    set_mtu(p, 1500);
    peer_recv(p, 2, 0, 16384);
    k.len = 1025;
    send_long(p, &k, 0);
    peer_no_cqe(p, rcq);
    k.len = 1400;
    send_long(p, &k, 0);
    peer_no_cqe(p, rcq);
    assert_int_equal(stat(p, QHCA_STAT_UD_DROPPED), 2);
    k.len = 1024;
    send_long(p, &k, 0);
    peer_cqe(p, rcq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 1024 + 40);
    peer_free(p);
}

/*
 * A packet that no link could carry, even with the largest MTU, is malformed,
 * whatever the service: it does not even get a NAK.
 */
static void beyond_any_mtu(void **state)
{
    struct gqp_attr a;
    struct peer *p;
    struct pkt k;

    (void)state;
    peer_attr_default(&a);
    a.path_mtu = 5;
    p = peer_new(QHCA_QPT_RC, &a);
    peer_recv(p, 1, 0, 16384);
    k = (struct pkt){ .op = SEND_ONLY, .psn = a.rq_psn, .ackreq = true,
                      .data = bytes, .len = 4097 };
    send_long(p, &k, 0);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_RX_MALFORMED), 1);
    peer_expect_nothing(p);
    peer_no_cqe(p, rcq);
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    k.len = 4096;
    send_long(p, &k, 0);
    peer_expect_aeth(p, 0x1f, a.rq_psn);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/*
 * Longer than the path MTU: RC sends a NAK, UC drops (IBA 9.7.4.1.6, 9.8.2.2).
 */
static void beyond_path_mtu(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct pkt k = { .op = SEND_ONLY, .psn = p->a.rq_psn, .ackreq = true,
                     .data = bytes, .len = 257 };

    (void)state;
    peer_recv(p, 1, 0, 16384);
    send_long(p, &k, 0);
    peer_expect_aeth(p, 0x61, p->a.rq_psn);
    peer_cqe(p, rcq, 1, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_free(p);

    p = peer_new(QHCA_QPT_UC, NULL);
    k.op = 0x20 | SEND_ONLY;
    k.psn = p->a.rq_psn;
    peer_recv(p, 1, 0, 16384);
    send_long(p, &k, 0);
    peer_no_cqe(p, rcq);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_RX_MALFORMED), 1);
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    peer_free(p);
}

/* A frame may be longer than its packet: the rest is not part of it. */
static void trailer(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct pkt k = { .op = SEND_ONLY, .psn = p->a.rq_psn, .ackreq = true,
                     .data = bytes, .len = 8 };

    (void)state;
    peer_recv(p, 1, 0, 100);
    send_long(p, &k, 5000);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 8);
    /* only the packet counts */
    assert_int_equal(stat(p, QHCA_STAT_ROCE_RX_BYTES), 58 + 8);
    peer_free(p);
}

struct odp_peer {
    struct peer *p;
    struct godp o;
    struct gmr mr;
};

static void odp_begin(struct odp_peer *t, uint8_t type)
{
    static const struct gbuf_shape flat = {
        .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12,
    };

    memset(t, 0, sizeof(*t));
    t->p = peer_new(type, NULL);
    godp_create(&t->o, &t->mr, &t->p->g, LEN, IOVA, QHCA_ACCESS_MASK, &flat);
    gbuf_allow(&t->mr.buf, 0, LEN, GMEM_RW);
}

static void odp_end(struct odp_peer *t)
{
    assert_int_equal(godp_destroy(&t->o), QHCA_ST_OK);
    peer_free(t->p);
}

static void odp_recv(struct odp_peer *t, uint64_t wr_id)
{
    struct qhca_sge sge = { .addr = IOVA, .len = LEN, .lkey = t->mr.key };

    assert_true(gqp_post_recv(&t->p->qp, wr_id, &sge, 1));
}

/* The receive's page is brought in, and the waiting side resumes. */
static void odp_go_on(struct odp_peer *t)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];

    guest_faults(&t->p->g, t->p->qp.qpn, f);
    assert_true(f[QHCA_PAGE_FAULT_RECV].flags & QHCA_PAGE_FAULT_VALID);
    godp_in(&t->o, 0, LEN, true);
    assert_int_equal(guest_resume(&t->p->g, t->p->qp.qpn, QHCA_PAGE_FAULT_RECV,
                                  f[QHCA_PAGE_FAULT_RECV].token, false),
                     QHCA_ST_OK);
    peer_run(t->p);
}

/* A padded packet hits a missing page: it is kept, saved and loaded. */
static void padded_and_kept(void **state)
{
    struct odp_peer t;
    struct peer *p;
    struct pkt k;

    (void)state;
    odp_begin(&t, QHCA_QPT_RC);
    p = t.p;
    k = (struct pkt){ .op = SEND_ONLY, .psn = p->a.rq_psn, .ackreq = true,
                      .data = "8 bytes", .len = 8 };
    odp_recv(&t, 1);
    send_long(p, &k, 5000);
    assert_int_equal(stat(p, QHCA_STAT_PAGE_FAULTS), 1);
    save_and_load(p);
    /* it arrives again, padded again */
    send_long(p, &k, 6000);
    save_and_load(p);
    odp_go_on(&t);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 8);
    odp_end(&t);
}

/* Another, much too long packet arrives with the PSN of the kept one. */
static void swapped_for_a_long_one(void **state)
{
    struct odp_peer t;
    struct peer *p;
    struct pkt k;

    (void)state;
    odp_begin(&t, QHCA_QPT_RC);
    p = t.p;
    k = (struct pkt){ .op = SEND_ONLY, .psn = p->a.rq_psn, .ackreq = true,
                      .data = bytes, .len = 8 };
    odp_recv(&t, 1);
    send_long(p, &k, 0);
    k.len = 8000;
    send_long(p, &k, 0);
    save_and_load(p);
    odp_go_on(&t);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 8);
    odp_end(&t);
}

/* The longest datagram hits a missing page. */
static void datagram_kept(void **state)
{
    struct odp_peer t;
    struct peer *p;
    struct pkt k;

    (void)state;
    odp_begin(&t, QHCA_QPT_UD);
    p = t.p;
    k = (struct pkt){ .op = UD_ONLY, .rkey = ud_qkey(p), .data = bytes,
                      .len = 8000 };
    odp_recv(&t, 1);
    send_long(p, &k, 0);
    save_and_load(p);
    assert_int_equal(stat(p, QHCA_STAT_PAGE_FAULTS), 0);
    k.len = 4096;
    send_long(p, &k, 300);
    assert_int_equal(stat(p, QHCA_STAT_PAGE_FAULTS), 1);
    save_and_load(p);
    odp_go_on(&t);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 4096 + 40);
    odp_end(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(datagram),
        cmocka_unit_test(beyond_any_mtu),
        cmocka_unit_test(beyond_path_mtu),
        cmocka_unit_test(trailer),
        cmocka_unit_test(padded_and_kept),
        cmocka_unit_test(swapped_for_a_long_one),
        cmocka_unit_test(datagram_kept),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
