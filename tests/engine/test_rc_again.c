/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Requests of RC that the device looks at again: WQEs that have changed or
 * cannot be read any more, limits of what is in flight, and what ends while
 * an answer is processed.
 */
#include "peer.h"
#include "adapter/adapter.h"
#include "transport/rc.h"

#define MTU 256
#define SIG QHCA_WQE_F_SIGNALED
#define SCQ_SHIFT 10            /* see peer_new() */

static uint32_t psn0(const struct peer *p)
{
    return p->a.sq_psn;
}

/* A WR with two SGEs of @len bytes: the device needs the WQE to execute it. */
static struct gwr two(const struct peer *p, uint8_t opcode, uint64_t wr_id,
                      uint32_t len)
{
    struct gwr wr = { .opcode = opcode, .wr_id = wr_id, .num_sge = 2,
                      .flags = SIG, .remote_addr = 64, .rkey = 1 };
    unsigned i;

    for (i = 0; i < 2; i++) {
        wr.sge[i] = (struct qhca_sge){ PEER_IOVA + i * len, len, p->mr.key };
    }
    return wr;
}

static uint64_t lost;

static bool is_lost(void *opaque, uint64_t addr)
{
    (void)opaque;
    return addr - lost < 256;
}

/* What happens to a WQE: it is changed, or it or its ring's table is lost. */
enum { CHANGED, UNREADABLE, UNMAPPED, SPOILS };

/*
 * The ring is a list of pages, of which eight are cached: WQE FIRST is in the
 * last of the first eight, the next one is not.
 */
enum { FIRST = 8 * (4096 >> 8) - 1 };

/* A peer whose next WQE is number FIRST. */
static struct peer *peer_paged(void)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gqp_init qi = {
        .type = QHCA_QPT_RC, .sq_shift = 9, .sq_stride = 8, .rq_shift = 6,
        .rq_stride = 7, .scq = &p->scq, .rcq = &p->rcq, .sq = &gbuf_flat4k,
    };
    uint32_t i, start = psn0(p) - FIRST;

    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    gqp_create(&p->qp, &p->g, &qi);
    p->a.sq_psn = start;
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    gqp_to_rts(&p->qp, &p->a);
    for (i = 0; i < FIRST; i++) {
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND }, 0, 4);
        peer_expect(p, SEND_ONLY, start + i);
        peer_ack(p, start + i, 0x1f);
    }
    p->a.sq_psn = start + FIRST;
    return p;
}

/* From now on WQE @index is another one, or cannot be read. */
static void spoil(struct peer *p, uint32_t index, unsigned how)
{
    uint64_t off = (uint64_t)index << p->qp.sq_stride;
    uint32_t key = 0;
    uint16_t num = 7;

    if (how == CHANGED) {
        gqp_sq_poke(&p->qp, index, 2, &num, 2);
        gqp_sq_poke(&p->qp, index, 0x28, &key, 4);
    } else {
        lost = how == UNMAPPED ? p->qp.sq.d.addr :
                                 gbuf_addr(&p->qp.sq, off, NULL);
        p->n->mem.may_fail = is_lost;
        p->n->mem.fail_64k = 65536;
    }
}

/* WQE @wr_id failed like this, and so did the queue if it was lost. */
static void expect_spoilt(struct peer *p, uint64_t wr_id, unsigned how)
{
    peer_cqe(p, scq, wr_id, QHCA_WC_LOC_QP_OP_ERR,
             how == CHANGED ? QHCA_SYN_WQE_LENGTH : QHCA_SYN_WQE_DMA);
    guest_poll_eq(&p->g, 0);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_FATAL], how != CHANGED);
}

/* ---- WQEs that are fetched again ---- */

/* A masked atomic that is resent: its masks are in the WQE. */
static void masks_lost(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < SPOILS; i++) {
        struct peer *p = peer_paged();
        struct gwr wr = { .opcode = QHCA_WQE_MASKED_FETCH_ADD, .wr_id = 1,
                          .flags = SIG, .remote_addr = 64, .rkey = 1,
                          .mask = 0xff };

        peer_post(p, wr, 0, 8);
        peer_expect(p, CLASS_OWN | FETCH_ADD, psn0(p));
        peer_post(p, two(p, QHCA_WQE_SEND, 2, 100), 0, 0);
        peer_expect(p, SEND_ONLY, psn0(p) + 1);
        spoil(p, FIRST, i);
        peer_ack(p, psn0(p), 0x60);
        expect_spoilt(p, 1, i);
        peer_cqe(p, scq, 2, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        peer_expect_nothing(p);
        p->n->mem.fail_64k = 0;
        peer_free(p);
    }
}

/* Data has come for a READ whose SGEs are no longer there. */
static void landing_lost(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < SPOILS; i++) {
        struct peer *p = peer_paged();

        peer_post(p, two(p, QHCA_WQE_RDMA_READ, 1, 100), 0, 0);
        peer_expect(p, READ_REQ, psn0(p));
        peer_post(p, two(p, QHCA_WQE_SEND, 2, 100), 0, 0);
        peer_expect(p, SEND_ONLY, psn0(p) + 1);
        spoil(p, FIRST, i);
        peer_tx(p, .op = RESP_ONLY, .psn = psn0(p), .syn = 0x1f,
                .data = peer_data(5, 200), .len = 200);
        expect_spoilt(p, 1, i);
        peer_cqe(p, scq, 2, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        assert_int_equal(gbuf_verify(&p->mr.buf, 0, 7, 0, PEER_BUF),
                         PEER_BUF);
        p->n->mem.fail_64k = 0;
        peer_free(p);
    }
}

/*
 * A fenced bind waits for a READ, and an earlier SEND is resent meanwhile.
 * Then it is executed as it is in the ring now; if that cannot be read, it
 * fails.
 */
static void bind_waits(void **state)
{
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        struct peer *p = peer_new(QHCA_QPT_RC, NULL);
        struct qhca_mpt c = { .flags = QHCA_MR_F_MW2, .pd = p->g.pd };
        uint32_t key = guest_create(&p->g, QHCA_CMD_CREATE_MW, &c, sizeof(c));
        struct gwr bind = { .opcode = QHCA_WQE_BIND_MW, .wr_id = 3,
                            .flags = SIG | QHCA_WQE_F_FENCE,
                            .remote_addr = p->mr.key, .rkey = key ^ 1,
                            .arg0 = PEER_IOVA, .arg1 = 64,
                            .rarg = QHCA_ACCESS_REMOTE_WRITE };

        peer_post(p, two(p, QHCA_WQE_SEND, 1, 100), 0, 0);
        peer_post(p, two(p, QHCA_WQE_RDMA_READ, 2, 100), 0, 0);
        peer_post(p, bind, 0, 0);
        peer_expect(p, SEND_ONLY, psn0(p));
        peer_expect(p, READ_REQ, psn0(p) + 1);
        peer_no_cqe(p, scq);
        peer_ack(p, psn0(p), 0x60);
        peer_expect(p, SEND_ONLY, psn0(p));
        peer_expect(p, READ_REQ, psn0(p) + 1);
        peer_ack(p, psn0(p), 0x1f);
        peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        if (i) {
            spoil(p, 2, UNREADABLE);
        }
        peer_tx(p, .op = RESP_ONLY, .psn = psn0(p) + 1, .syn = 0x1f,
                .data = peer_data(0, 200), .len = 200);
        peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
        if (i) {
            peer_cqe(p, scq, 3, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_DMA);
            assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        } else {
            peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
            peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn, .va = PEER_IOVA,
                    .rkey = key ^ 1, .dmalen = 4, .data = "abcd", .len = 4,
                    .ackreq = true);
            peer_expect_aeth(p, 0x1f, p->a.rq_psn);
        }
        p->n->mem.fail_64k = 0;
        assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
        p->qp.qpn = 0;
        assert_int_equal(guest_simple(&p->g, QHCA_CMD_DESTROY_MR,
                                      i ? key : key ^ 1), QHCA_ST_OK);
        peer_free(p);
    }
}

/* A kernel's queue: it fills a region, and its peer uses that at once. */
static void fast_register(void **state)
{
    struct peer *p = peer_new_with(QHCA_QPT_RC, NULL, NULL,
                                   QHCA_QP_F_PRIVILEGED);
    struct qhca_mpt c = { .flags = QHCA_MR_F_FAST_REG, .pd = p->g.pd,
                          .max_entries = 2 };
    uint32_t key = guest_create(&p->g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
    uint64_t page = gmem_alloc(&p->n->mem, 4096, 12, 0);
    uint64_t table = gmem_alloc(&p->n->mem, 8, 12, 0);
    uint64_t entry = page | QHCA_BTE_VALID;
    struct gwr reg = {
        .opcode = QHCA_WQE_REG_MR, .wr_id = 1, .flags = SIG, .arg0 = 0x5123,
        .arg1 = 100, .remote_addr = table, .rkey = key,
        .rarg = (QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE) |
                12 << 8 | 1 << 16,
    };

    (void)state;
    memcpy(gmem_ptr(&p->n->mem, table, 8), &entry, 8);
    gmem_allow(&p->n->mem, table, 8, GMEM_R);
    gmem_allow(&p->n->mem, page + 0x123, 100, GMEM_RW);
    peer_post(p, reg, 0, 0);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn, .va = 0x5123 + 96,
            .rkey = key, .dmalen = 4, .data = "last", .len = 4,
            .ackreq = true);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn);
    assert_memory_equal(gmem_ptr(&p->n->mem, page + 0x123 + 96, 4), "last",
                        4);
    /* it is not free now */
    reg.wr_id = 2;
    peer_post(p, reg, 0, 0);
    peer_cqe(p, scq, 2, QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_KEY_INVALID);
    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    p->qp.qpn = 0;
    assert_int_equal(guest_simple(&p->g, QHCA_CMD_DESTROY_MR, key),
                     QHCA_ST_OK);
    gmem_release(&p->n->mem, table, 8);
    gmem_release(&p->n->mem, page, 4096);
    peer_free(p);
}

/* ---- limits of what is in flight ---- */

/* Small messages: their number is limited, not only that of packets. */
static void wqes_in_flight(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    uint32_t i, n = QHCA_WINDOW_WQES + 3;

    (void)state;
    qp->xp->wnd = QHCA_WINDOW_PKTS;     /* as after many ACKs */
    for (i = 0; i < n; i++) {
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = i,
                                   .flags = SIG }, 0, 4);
    }
    for (i = 0; i < QHCA_WINDOW_WQES; i++) {
        peer_expect(p, SEND_ONLY, psn0(p) + i);
    }
    peer_expect_nothing(p);
    peer_ack(p, psn0(p) + 1, 0x1f);
    peer_expect(p, SEND_ONLY, psn0(p) + QHCA_WINDOW_WQES);
    peer_expect(p, SEND_ONLY, psn0(p) + QHCA_WINDOW_WQES + 1);
    peer_expect_nothing(p);
    peer_ack(p, psn0(p) + n - 2, 0x1f);
    peer_expect(p, SEND_ONLY, psn0(p) + n - 1);
    peer_ack(p, psn0(p) + n - 1, 0x1f);
    for (i = 0; i < n; i++) {
        peer_cqe(p, scq, i, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    peer_free(p);
}

/*
 * A loaded state can claim that half of all PSNs are in flight: more would make
 * old ones look new, so the next READ waits.
 */
static void psns_in_flight(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    struct qhca_xport *xp = qp->xp;
    uint32_t far = (psn0(p) + 0x800000 - 16) & 0xffffff, next;
    struct qhca_qpc c;

    (void)state;
    peer_post(p, two(p, QHCA_WQE_RDMA_READ, 1, 100), 0, 0);
    peer_expect(p, READ_REQ, psn0(p));
    next = xp->snd_psn;
    xp->snd_psn = xp->max_psn = far;
    peer_post(p, two(p, QHCA_WQE_RDMA_READ, 2, 100), 0, 0);
    peer_expect_nothing(p);
    guest_query(&p->g, QHCA_CMD_QUERY_QP, p->qp.qpn, &c, sizeof(c));
    assert_int_equal(c.req_state, QHCA_REQ_WAIT_ACK);
    xp->snd_psn = xp->max_psn = next;
    qhca_swqe(qp, 1)->first_psn = next;
    peer_tx(p, .op = RESP_ONLY, .psn = psn0(p), .syn = 0x1f,
            .data = peer_data(0, 200), .len = 200);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_expect(p, READ_REQ, psn0(p) + 1);
    peer_free(p);
}

/* A window grows to its maximum and not beyond, however much one ACK covers. */
static void window_grows(void **state)
{
    struct qhca_xport xp;

    (void)state;
    memset(&xp, 0, sizeof(xp));
    qhca_wnd_start(&xp);
    assert_int_equal(xp.wnd, QHCA_WINDOW_START);
    qhca_wnd_grow(&xp, 10, QHCA_WINDOW_START);
    assert_int_equal(xp.wnd, QHCA_WINDOW_START + 10);
    /* what was in flight over a memory link, before the window shrank */
    qhca_wnd_grow(&xp, 0x20000, 0x20000);
    assert_int_equal(xp.wnd, QHCA_WINDOW_PKTS);
    qhca_wnd_shrink(&xp, false);
    assert_int_equal(xp.wnd, QHCA_WINDOW_PKTS / 2);
    qhca_wnd_grow(&xp, 0x10000, 0x10000);
    assert_int_equal(xp.wnd, QHCA_WINDOW_PKTS / 2 + 1);
    assert_int_equal(xp.wnd_acked, 0);
}

/* A timer that runs although all is acknowledged, as a loaded one may. */
static void timer_for_nothing(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);

    (void)state;
    qhca_timer_start_ack(p->e, qp);
    world_run(&p->w, 1000000000);
    assert_int_equal(qp->xp->deadline, 0);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_TIMEOUTS), 0);
    peer_expect_nothing(p);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 0, 4);
    peer_expect(p, SEND_ONLY, psn0(p));
    peer_ack(p, psn0(p), 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_free(p);
}

/* ---- what ends meanwhile ---- */

/* A NAK completes the message before it, for which the CQ has no room. */
static void overflow_before_nak(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    uint32_t i;

    (void)state;
    for (i = 0; i < 2; i++) {
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = i,
                                   .flags = SIG }, 0, 4);
        peer_expect(p, SEND_ONLY, psn0(p) + i);
    }
    for (i = 0; i < 1u << SCQ_SHIFT; i++) {
        assert_true(qhca_cq_push(p->e, qp->scq, &(struct qhca_cqe){ 0 },
                                 false));
    }
    peer_ack(p, psn0(p) + 1, 0x20 | 12);        /* RNR NAK */
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    assert_int_equal(qp->syndrome, QHCA_SYN_CQ_OVERFLOW);
    /* it does not wait to resend the second */
    assert_int_equal(qp->rnr_naks_rx, 0);
    assert_int_equal(qp->xp->deadline, 0);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_FATAL], 1);
    peer_expect_nothing(p);
    peer_free(p);
}

/* The record of a busy queue cannot be told that software need not ring. */
static void record_lost(void **state)
{
    struct peer *p = peer_new_with(QHCA_QPT_RC, NULL, NULL,
                                   QHCA_QP_F_SQ_RECORD);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);

    (void)state;
    lost = p->qp.sq_dbrec + 4;
    p->n->mem.may_fail = is_lost;
    p->n->mem.fail_64k = 65536;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .rkey = 1,
                               .remote_addr = 64 }, 0, 100 * MTU);
    peer_run(p);
    p->n->mem.fail_64k = 0;
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    assert_int_equal(qp->syndrome, QHCA_SYN_WQE_DMA);
    peer_cqe(p, scq, 0, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_FATAL], 1);
    p->tail = p->head;
    peer_free(p);
}

/*
 * Its peer is on this adapter, and the ring of frames to ourselves is full: the
 * QP waits, and is not taken for one that waits for the wire.
 */
static void to_itself_later(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_qp *qp = qhca_qp_get(p->e, p->qp.qpn);
    unsigned budget = 32;
    uint8_t *f;

    (void)state;
    memcpy(qp->av.dgid, p->e->xd->gids[p->a.gid_index].gid,
           sizeof(qp->av.dgid));
    memset(qp->av.dmac, 0, sizeof(qp->av.dmac));
    qp->dest_qpn = p->qp.qpn;
    qp->xp->exp_psn = psn0(p);
    peer_recv(p, 7, 4096, 100);
    while ((f = qhca_loop_slot(p->e)) != NULL) {
        memset(f, 0, 64);
        qhca_loop_commit(p->e, 64);
    }
    assert_true(gqp_post_send(&p->qp, &(struct gwr){
                    .opcode = QHCA_WQE_SEND, .wr_id = 1, .flags = SIG,
                    .num_sge = 1, .sge[0] = { PEER_IOVA, 100, p->mr.key } }));
    qp->sq_head++;
    assert_true(qp->ops->run(p->e, qp, &budget));
    assert_int_equal(budget, 31);
    assert_int_equal(qp->xp->snd_psn, psn0(p));
    /* the others leave the ring */
    qhca_qp_schedule(p->e, qp);
    qhca_kick(p->e);
    peer_cqe(p, rcq, 7, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(gbuf_verify(&p->mr.buf, 4096, 7, 0, 100), 100);
    peer_expect_nothing(p);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(masks_lost),
        cmocka_unit_test(landing_lost),
        cmocka_unit_test(bind_waits),
        cmocka_unit_test(fast_register),
        cmocka_unit_test(wqes_in_flight),
        cmocka_unit_test(psns_in_flight),
        cmocka_unit_test(window_grows),
        cmocka_unit_test(timer_for_nothing),
        cmocka_unit_test(overflow_before_nak),
        cmocka_unit_test(record_lost),
        cmocka_unit_test(to_itself_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
