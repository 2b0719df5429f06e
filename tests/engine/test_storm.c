/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Random packets with a correct ICRC, close to what the QP expects, while it
 * works: nothing outside its buffers may be accessed (the fake guest's memory
 * checks that), no call may take long, and the adapter keeps serving others.
 */
#include "peer.h"

static const uint8_t ops[] = {
    SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY,
    SEND_ONLY_IMM, WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM,
    WRITE_ONLY, WRITE_ONLY_IMM, READ_REQ, RESP_FIRST, RESP_MIDDLE, RESP_LAST,
    RESP_ONLY, ACK, ATOMIC_ACK, CMP_SWAP, FETCH_ADD, 0x15, SEND_LAST_INV,
    SEND_ONLY_INV, 0x18, 0x1f
};

static uint8_t data[4200];

static uint64_t pick(struct rng *r, const uint64_t *v, unsigned n)
{
    return v[rng_below(r, n)];
}

static void random_packet(struct peer *p, struct rng *r,
                          const struct qhca_qpc *c, uint8_t cls)
{
    const uint64_t lens[] = { 0, 1, 3, 4, 200, 255, 256, 257, 1024, 4096 };
    const uint64_t vas[] = {
        PEER_IOVA, PEER_IOVA + 8, PEER_IOVA + 3, PEER_IOVA + PEER_BUF - 256,
        PEER_IOVA + PEER_BUF, PEER_IOVA - 1, 0, ~0ull, ~0ull - 255
    };
    const uint64_t dlens[] = {
        0, 1, 8, 255, 256, 257, 512, 1000, 10000, PEER_BUF + 1,
        0x7fffffff, 0x80000000, 0xffffffff
    };
    const uint64_t syns[] = {
        0x1f, 0x00, 0x20, 0x2c, 0x60, 0x61, 0x62, 0x63, 0x64, 0x7f, 0x40,
        0x80, 0xff
    };
    struct pkt k = {
        .op = (uint8_t)(ops[rng_below(r, sizeof(ops))] | cls),
        .se = rng_pct(r, 20), .ackreq = rng_pct(r, 50),
        .syn = (uint8_t)pick(r, syns, 13), .msn = (uint32_t)rng_u64(r),
        .va = pick(r, vas, 9), .dmalen = (uint32_t)pick(r, dlens, 13),
        .rkey = rng_pct(r, 90) ? p->mr.key : (uint32_t)rng_u64(r),
        .swap = rng_u64(r), .cmp = rng_u64(r),
        .imm = rng_pct(r, 50) ? p->mr.key : (uint32_t)rng_u64(r),
        .data = data, .len = pick(r, lens, 10),
    };
    uint32_t base = rng_pct(r, 50) ? c->exp_psn : c->una_psn;
    uint8_t b[4400];
    size_t len;

    /* syndromes that end the connection at once should be rare */
    if ((k.syn & 0x60) == 0x60 && k.syn != 0x60 && rng_pct(r, 95)) {
        k.syn = 0x1f;
    }
    k.psn = base + (uint32_t)rng_below(r, 5) - 2;
    if (rng_pct(r, 2)) {
        k.psn = (uint32_t)rng_u64(r);
    }
    if (cls == 0x60) {
        k.rkey = rng_pct(r, 95) ? p->a.qkey : 0;
    }
    len = peer_build(p, &k, b);
    world_inject(&p->w, 0, b, len);
}

static void revive(struct peer *p)
{
    struct qhca_cqe cqe;

    world_run(&p->w, 100000);
    p->tail = p->head;
    while (gcq_poll(&p->scq, &cqe)) {
    }
    while (gcq_poll(&p->rcq, &cqe)) {
    }
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    gqp_to_rts(&p->qp, &p->a);
}

static void post_something(struct peer *p, struct rng *r, bool ud)
{
    static const uint8_t rc[] = {
        QHCA_WQE_SEND, QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_READ,
        QHCA_WQE_FETCH_ADD, QHCA_WQE_RDMA_WRITE_IMM
    };
    struct gwr wr = {
        .opcode = ud || p->qp.type == QHCA_QPT_UC ? QHCA_WQE_SEND :
                  rc[rng_below(r, 5)],
        .flags = QHCA_WQE_F_SIGNALED, .remote_addr = 0x1000,
        .dest_qpn = PEER_QPN, .num_sge = 1,
    };

    guest_av(&p->g, &p->w.node[1], 0, &wr.av);
    wr.sge[0].addr = PEER_IOVA + 4096;
    wr.sge[0].len = 8 + (uint32_t)rng_below(r, ud ? 1000 : 3000);
    wr.sge[0].lkey = p->mr.key;
    if (gqp_post_send(&p->qp, &wr)) {
        gqp_ring(&p->qp);
    }
}

static void storm(uint8_t type, uint8_t cls, unsigned n, uint64_t seed)
{
    struct gqp_attr a;
    struct qhca_qpc c;
    struct qhca_cqe cqe;
    struct rng r;
    struct peer *p;
    unsigned i, deaths = 0;

    peer_attr_default(&a);
    a.retry_cnt = a.rnr_retry = 7;
    p = peer_new(type, &a);
    rng_init(&r, seed);
    for (i = 0; i < n; i++) {
        if (rng_pct(&r, 30)) {
            struct qhca_sge sge = { .addr = PEER_IOVA,
                                    .len = (uint32_t)rng_below(&r, 2000),
                                    .lkey = p->mr.key };

            gqp_post_recv(&p->qp, i, &sge, 1);
        }
        if (rng_pct(&r, 30)) {
            post_something(p, &r, cls == 0x60);
        }
        assert_true(qhca_query_qp(p->e, p->qp.qpn, &c));
        random_packet(p, &r, &c, cls);
        world_run(&p->w, rng_pct(&r, 1) ? 6000000 : 300);
        p->tail = p->head;
        while (gcq_poll(&p->scq, &cqe)) {
            p->qp.sq_cons = cqe.wqe_index + 1;
        }
        while (gcq_poll(&p->rcq, &cqe)) {
            p->qp.rq_cons = cqe.wqe_index + 1;
        }
        gcq_arm(&p->rcq, false);                /* reports the indices */
        gcq_arm(&p->scq, false);
        assert_true(qhca_query_qp(p->e, p->qp.qpn, &c));
        if (c.state == QHCA_QPS_ERR || c.state == QHCA_QPS_SQE) {
            deaths++;
            revive(p);
        }
    }
    print_message("  %u packets, %u times to ERR\n", n, deaths);
    revive(p);
    /* after all that it still works */
    if (type == QHCA_QPT_RC) {
        peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                                   .flags = QHCA_WQE_F_SIGNALED }, 0, 5);
        peer_expect(p, SEND_ONLY, a.sq_psn);
        peer_ack(p, a.sq_psn, 0x1f);
        peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    peer_free(p);
}

/* test_storm [PACKETS [SEED]] */
static unsigned packets = 15000;
static uint64_t first_seed = 1;

static void rc(void **state)
{
    (void)state;
    storm(QHCA_QPT_RC, 0x00, packets, first_seed);
}

static void uc(void **state)
{
    (void)state;
    storm(QHCA_QPT_UC, 0x20, packets / 3, first_seed + 1);
}

static void ud(void **state)
{
    (void)state;
    storm(QHCA_QPT_UD, 0x60, packets / 3, first_seed + 2);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rc),
        cmocka_unit_test(uc),
        cmocka_unit_test(ud),
    };

    if (argc > 1) {
        packets = (unsigned)strtoul(argv[1], NULL, 0);
    }
    if (argc > 2) {
        first_seed = strtoull(argv[2], NULL, 0);
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
