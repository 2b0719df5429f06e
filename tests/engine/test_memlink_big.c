/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: records of up to 1 MiB, the window that they need, and what
 * happens when they are lost, revoked, or when the wire is used again.
 */
#include "memlinkfix.h"
#include "godp.h"
#include "reborn.h"
#include "transport/rc.h"

#define BIG 4096u               /* path MTU */
#define PACKETS (BUF / BIG)     /* of a message of BUF bytes */

_Static_assert(PACKETS == QHCA_MEMLINK_PACKETS, "the largest record");
_Static_assert(2 * PACKETS == QHCA_WINDOW_LINK, "two of them");

/* Two more QPs, which are connected with the largest path MTU. */
struct big {
    struct fix *f;
    struct gqp qp[2];
};

static struct qhca_xport *xport(struct big *b, unsigned i)
{
    return qhca_qp_get(b->f->s[i].e, b->qp[i].qpn)->xp;
}

static uint32_t outstanding(struct big *b)
{
    return qhca_psn_dist(xport(b, 0)->snd_psn, xport(b, 0)->una_psn);
}

static void post(struct big *b, uint8_t opcode, uint64_t wr_id, uint64_t off,
                 uint32_t len)
{
    fix_post_on(b->f, 0, &b->qp[0], (struct gwr){ .opcode = opcode,
                                                  .wr_id = wr_id }, off, len);
}

/* Both regions have their own contents again. */
static void refill(struct big *b)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        gbuf_fill(&b->f->s[i].mr.buf, 0, i + 1, 0, BUF);
    }
}

/* Nothing was acknowledged yet: the window of side 0 grows to its maximum. */
static void open_window(struct big *b)
{
    unsigned i;

    for (i = 0; xport(b, 0)->wnd < QHCA_WINDOW_PKTS; i++) {
        assert_true(i < 8);
        post(b, QHCA_WQE_RDMA_WRITE, i, 0, BUF);
        fix_run(b->f, 1 * MS);
        fix_cqe(b->f, 0, i, QHCA_WC_SUCCESS);
    }
    refill(b);
    b->f->packets = 0;
    b->f->s[0].read = b->f->s[1].read = 0;
}

/* Regions are single pages. */
static const struct gbuf_shape *big_shape = &gbuf_flat4k;

static void big_connect(struct big *b, uint8_t retry_cnt)
{
    struct gqp_attr at;
    unsigned i;

    fix_attr(&at);
    at.path_mtu = 5;
    at.retry_cnt = retry_cnt;
    for (i = 0; i < 2; i++) {
        fix_qp(b->f, i, QHCA_QPT_RC, &b->qp[i]);
    }
    for (i = 0; i < 2; i++) {
        at.dest_qpn = b->qp[!i].qpn;
        gqp_to_init(&b->qp[i], &at);
        gqp_to_rtr(&b->qp[i], b->f->s[!i].n, &at);
        gqp_to_rts(&b->qp[i], &at);
    }
}

static void big_begin(struct big *b, uint8_t retry_cnt)
{
    struct qhca_port port = { .mtu = 9216 };
    unsigned i;

    b->f = fix_new(QHCA_QPT_RC, true);
    fix_go_up(b->f);
    for (i = 0; i < 2; i++) {
        struct side *s = &b->f->s[i];
        struct gcmd c = { .op = QHCA_CMD_MODIFY_PORT, .in = &port,
                          .in_len = sizeof(port), .mask = QHCA_PORT_M_MTU };

        guest_must(&s->g, &c);
        assert_int_equal(gmr_destroy(&s->mr), QHCA_ST_OK);
        fix_region(b->f, i, big_shape);
    }
    big_connect(b, retry_cnt);
    open_window(b);
}

static void big_end(struct big *b)
{
    unsigned i;

    for (i = 0; i < 2; i++) {
        struct qhca_qpc c;

        guest_query(&b->f->s[i].g, QHCA_CMD_QUERY_QP, b->qp[i].qpn, &c,
                    sizeof(c));
        assert_int_equal(c.state, QHCA_QPS_RTS);
        assert_int_equal(gqp_destroy(&b->qp[i]), QHCA_ST_OK);
    }
    assert_int_equal(b->f->w.cuts, 0);
    fix_free(b->f);
}

/* ---- records ---- */

/* A message of 1 MiB is one record, which represents all of its packets. */
static void one_record(void **state)
{
    static const uint8_t opcodes[] = {
        QHCA_WQE_RDMA_WRITE, QHCA_WQE_SEND, QHCA_WQE_RDMA_READ,
    };
    struct big b;
    unsigned i;

    (void)state;
    big_begin(&b, 7);
    for (i = 0; i < sizeof(opcodes); i++) {
        bool reads = opcodes[i] == QHCA_WQE_RDMA_READ;
        struct qhca_memlink *l = fix_link(b.f, reads, !reads);
        uint64_t refs = l->sent_refs;
        uint64_t sent = fix_stat(b.f, reads, QHCA_STAT_ROCE_TX_PACKETS);
        uint64_t got = fix_stat(b.f, !reads, QHCA_STAT_ROCE_RX_PACKETS);
        struct qhca_sge sge = { IOVA, BUF, b.f->s[1].mr.key };

        refill(&b);
        if (opcodes[i] == QHCA_WQE_SEND) {
            assert_true(gqp_post_recv(&b.qp[1], 8, &sge, 1));
        }
        post(&b, opcodes[i], 7, 0, BUF);
        fix_run(b.f, 1 * MS);
        fix_cqe(b.f, 0, 7, QHCA_WC_SUCCESS);
        if (opcodes[i] == QHCA_WQE_SEND) {
            fix_cqe(b.f, 1, 8, QHCA_WC_SUCCESS);
        }
        fix_has(b.f, !reads, reads, 0, BUF);
        assert_int_equal(l->sent_refs - refs, 1);
        assert_int_equal(fix_stat(b.f, reads, QHCA_STAT_ROCE_TX_PACKETS) -
                         sent, PACKETS);
        assert_int_equal(fix_stat(b.f, !reads, QHCA_STAT_ROCE_RX_PACKETS) -
                         got, PACKETS);
    }
    /* no payload was copied on the side that has it */
    assert_int_equal(b.f->s[0].read, 0);
    assert_int_equal(b.f->s[1].read, 0);
    assert_int_equal(b.f->packets, 0);
    big_end(&b);
}

/* A single packet is referred to, too, unless it is short. */
static void one_packet(void **state)
{
    static const uint32_t lens[] = {
        QHCA_MEMLINK_REFS_MIN - 1, QHCA_MEMLINK_REFS_MIN, BIG,
    };
    struct big b;
    unsigned i, reads;

    (void)state;
    big_begin(&b, 7);
    for (i = 0; i < 6; i++) {
        uint32_t len = lens[i / 2];
        struct qhca_memlink *l;
        uint64_t refs;

        reads = i & 1;
        l = fix_link(b.f, reads, !reads);
        refs = l->sent_refs;
        b.f->s[reads].read = 0;
        post(&b, reads ? QHCA_WQE_RDMA_READ : QHCA_WQE_RDMA_WRITE, i, 10001,
             len);
        fix_run(b.f, 1 * MS);
        fix_cqe(b.f, 0, i, QHCA_WC_SUCCESS);
        fix_has(b.f, !reads, reads, 10001, len);
        assert_int_equal(l->sent_refs - refs, i / 2 != 0);
        assert_int_equal(b.f->s[reads].read, i / 2 ? 0 : len);
        refill(&b);
    }
    big_end(&b);
}

/* ---- the longest call ---- */

/* As in test_cost.c: memory accesses and their bytes in one call. */
#define CALLS_MAX 14000u
#define BYTES_MAX (4u << 20)
#define PAIRS 4u

static struct {
    struct qhca_ops ops;
    uint64_t calls, bytes, most_calls, most_bytes;
} cost;

static bool cost_read(void *opaque, uint64_t addr, void *buf, size_t len)
{
    cost.calls++;
    cost.bytes += len;
    return cost.ops.dma_read(opaque, addr, buf, len);
}

static bool cost_write(void *opaque, uint64_t addr, const void *buf,
                       size_t len)
{
    cost.calls++;
    cost.bytes += len;
    return cost.ops.dma_write(opaque, addr, buf, len);
}

static bool cost_share(void *opaque, uint64_t addr, size_t len,
                       uint32_t *region, uint64_t *off)
{
    cost.calls++;
    return cost.ops.dma_share(opaque, addr, len, region, off);
}

static void cost_called(struct node *n)
{
    (void)n;
    cost.most_calls = cost.calls > cost.most_calls ? cost.calls :
                                                     cost.most_calls;
    cost.most_bytes = cost.bytes > cost.most_bytes ? cost.bytes :
                                                     cost.most_bytes;
    cost.calls = cost.bytes = 0;
}

/*
 * Several QPs move as much as they can, both ways.  No packet keeps to a page
 * on either side, and each page takes a walk through all of its table.
 */
static void longest(void **state)
{
    static const struct gbuf_shape tree = { QHCA_BUF_TREE, 3, 12, 12 };
    struct big b, pair[PAIRS];
    uint64_t refs;
    unsigned i, k;

    (void)state;
    big_shape = &tree;
    big_begin(&b, 7);
    big_shape = &gbuf_flat4k;
    memset(&cost, 0, sizeof(cost));
    cost.ops = b.f->s[0].e->ops;
    for (i = 0; i < 2; i++) {
        struct qhca_ops *ops = &b.f->s[i].e->ops;

        ops->dma_read = cost_read;
        ops->dma_write = cost_write;
        ops->dma_share = cost_share;
        b.f->s[i].n->on_call = cost_called;
    }
    refs = fix_link(b.f, 0, 1)->sent_refs;
    for (k = 0; k < PAIRS; k++) {
        pair[k].f = b.f;
        big_connect(&pair[k], 7);
        for (i = 0; i < 2; i++) {
            xport(&pair[k], i)->wnd = QHCA_WINDOW_PKTS;
        }
    }
    for (k = 0; k < 4 * PAIRS; k++) {
        i = k & 1;
        fix_post_on(b.f, i, &pair[k / 4].qp[i], (struct gwr){
                        .opcode = k & 2 ? QHCA_WQE_RDMA_READ :
                                          QHCA_WQE_RDMA_WRITE }, 1, BUF - 2);
    }
    fix_run(b.f, 50 * MS);
    for (k = 0; k < 4 * PAIRS; k++) {
        fix_cqe(b.f, k & 1, 0, QHCA_WC_SUCCESS);
    }
    /* a WRITE and the answer to a READ for each pair */
    assert_int_equal(fix_link(b.f, 0, 1)->sent_refs - refs, 2 * PAIRS);
    assert_in_range(cost.most_calls, 1000, CALLS_MAX);
    assert_in_range(cost.most_bytes, BUF, BYTES_MAX);
    for (k = 0; k < PAIRS; k++) {
        for (i = 0; i < 2; i++) {
            assert_int_equal(gqp_destroy(&pair[k].qp[i]), QHCA_ST_OK);
        }
    }
    big_end(&b);
}

/* ---- the window ---- */

/* Two records of 1 MiB are under way, but no more packets than ever on a wire. */
static void window(void **state)
{
    struct qhca_memlink *l;
    struct big b;
    uint64_t refs;
    unsigned i;

    (void)state;
    big_begin(&b, 7);
    l = fix_link(b.f, 0, 1);
    refs = l->sent_refs;
    fix_doze(b.f, 1, 0);
    for (i = 0; i < 3; i++) {
        post(&b, QHCA_WQE_RDMA_WRITE, i, 0, BUF);
    }
    fix_run(b.f, 1 * MS);
    assert_int_equal(l->sent_refs - refs, 2);
    assert_int_equal(outstanding(&b), QHCA_WINDOW_LINK);
    assert_int_equal(xport(&b, 0)->req_state, QHCA_REQ_WAIT_ACK);
    fix_look(b.f, 1, 0);
    fix_run(b.f, 1 * MS);
    for (i = 0; i < 3; i++) {
        fix_cqe(b.f, 0, i, QHCA_WC_SUCCESS);
    }
    fix_has(b.f, 1, 0, 0, BUF);
    assert_int_equal(b.f->packets, 0);
    node_memlinks_allow(b.f->s[0].n, false);
    b.f->w.wire.latency_ns = 10 * MS;
    for (i = 0; i < 3; i++) {
        post(&b, QHCA_WQE_RDMA_WRITE, i, 0, BUF);
    }
    fix_run(b.f, 5 * MS);
    assert_int_equal(b.f->packets, QHCA_WINDOW_PKTS);
    assert_int_equal(outstanding(&b), QHCA_WINDOW_PKTS);
    b.f->w.wire.latency_ns = 1 * US;
    fix_run(b.f, 100 * MS);
    for (i = 0; i < 3; i++) {
        fix_cqe(b.f, 0, i, QHCA_WC_SUCCESS);
    }
    big_end(&b);
}

/* Side 1 takes what is in its ring, and does not execute it. */
static void lose(struct big *b)
{
    struct qhca_shring *r = world_memlink_ring(&b->f->w, 0, 1);

    r->cons = r->prod;
    fix_link(b->f, 1, 0)->rx.cons = r->cons;
}

/*
 * More is under way than fits the window of the wire, which is used from now
 * on: nothing is sent before there is room again.
 */
static void window_shrinks(void **state)
{
    struct qhca_config cfg;
    struct big b;
    unsigned reads, i;

    (void)state;
    for (reads = 0; reads < 2; reads++) {
        uint8_t opcode = reads ? QHCA_WQE_RDMA_READ : QHCA_WQE_RDMA_WRITE;

        big_begin(&b, 7);
        fix_doze(b.f, 1, 0);
        for (i = 0; i < 3; i++) {
            post(&b, opcode, i, 0, BUF);
        }
        fix_run(b.f, 1 * MS);
        assert_int_equal(outstanding(&b), QHCA_WINDOW_LINK);
        /* it can be saved like this, and the new adapter has no link */
        cfg = b.f->s[0].e->cfg;
        assert_string_equal(node_loads(b.f->s[0].n, &cfg), "");
        lose(&b);
        node_memlinks_allow(b.f->s[1].n, false);
        post(&b, opcode, 3, 4096, BIG);
        fix_run(b.f, 1 * MS);
        assert_int_equal(b.f->packets, 0);
        assert_int_equal(outstanding(&b), QHCA_WINDOW_LINK);
        fix_run(b.f, 500 * MS);
        assert_true(b.f->packets > 3 * PACKETS);
        for (i = 0; i < 4; i++) {
            fix_cqe(b.f, 0, i, QHCA_WC_SUCCESS);
        }
        fix_has(b.f, !reads, reads, 0, BUF);
        assert_int_equal(fix_stat(b.f, 1, QHCA_STAT_ROCE_INV_REQ_ERRORS), 0);
        big_end(&b);
    }
}

/* In the middle of messages, and with nothing lost. */
static void to_and_fro(void **state)
{
    struct big b;
    unsigned i, k;

    (void)state;
    big_begin(&b, 0);
    for (k = 0; k < 12; k++) {
        for (i = 0; i < 3; i++) {
            post(&b, k & 1 ? QHCA_WQE_RDMA_READ : QHCA_WQE_RDMA_WRITE, i, 0,
                 BUF);
        }
        fix_run(b.f, (k + 1) * US);
        node_memlinks_allow(b.f->s[k >> 1 & 1].n, false);
        fix_run(b.f, 2 * (k + 1) * US);
        node_memlinks_allow(b.f->s[k >> 1 & 1].n, true);
        fix_run(b.f, 30 * MS);
        for (i = 0; i < 3; i++) {
            fix_cqe(b.f, 0, i, QHCA_WC_SUCCESS);
        }
        fix_has(b.f, !(k & 1), k & 1, 0, BUF);
        refill(&b);
        /* until the next markers are sent */
        fix_run(b.f, 1000 * MS);
    }
    assert_true(b.f->packets > 0);
    assert_int_equal(fix_stat(b.f, 0, QHCA_STAT_ROCE_RETRANSMITS), 0);
    big_end(&b);
}

/* ---- what was revoked ---- */

/* Access to side @i's region is set anew, which revokes what refers to it. */
static void take_back(struct big *b, unsigned i)
{
    struct qhca_mpt m = { .access = QHCA_ACCESS_MASK };
    struct gcmd c = { .op = QHCA_CMD_MODIFY_MR, .obj = b->f->s[i].mr.key,
                      .in = &m, .in_len = sizeof(m),
                      .mask = QHCA_MR_M_ACCESS };

    guest_must(&b->f->s[i].g, &c);
}

/* It is sent again at once, is not copied either, and that is no retry. */
static void resent(void **state)
{
    struct qhca_memlink *l;
    unsigned reads, turn;
    struct big b;

    (void)state;
    for (reads = 0; reads < 2; reads++) {
        big_begin(&b, 0);
        l = fix_link(b.f, reads, !reads);
        for (turn = 1; turn <= 3; turn++) {
            uint64_t refs = l->sent_refs;

            fix_doze(b.f, !reads, reads);
            post(&b, reads ? QHCA_WQE_RDMA_READ : QHCA_WQE_RDMA_WRITE, 1, 0,
                 BUF);
            fix_run(b.f, 100 * US);
            assert_int_equal(l->sent_refs - refs, 1);
            take_back(&b, reads);
            assert_int_equal(l->revoked, turn);
            fix_look(b.f, !reads, reads);
            fix_run(b.f, 1 * MS);
            fix_cqe(b.f, 0, 1, QHCA_WC_SUCCESS);
            fix_has(b.f, !reads, reads, 0, BUF);
            assert_int_equal(l->sent_refs - refs, 1 + PACKETS);
            refill(&b);
            assert_int_equal(xport(&b, 0)->wnd, QHCA_WINDOW_PKTS);
        }
        assert_int_equal(b.f->s[reads].read, 0);
        assert_int_equal(fix_stat(b.f, 0, QHCA_STAT_ROCE_RETRANSMITS),
                         reads ? turn - 1 : (turn - 1) * PACKETS);
        assert_int_equal(fix_stat(b.f, 0, QHCA_STAT_ROCE_TIMEOUTS), 0);
        big_end(&b);
    }
}

/* What is sent again can be revoked as well, before any of it arrives. */
static void resent_again(void **state)
{
    struct qhca_memlink *l;
    unsigned reads, turn;
    struct big b;

    (void)state;
    for (reads = 0; reads < 2; reads++) {
        big_begin(&b, 0);
        l = fix_link(b.f, reads, !reads);
        fix_doze(b.f, !reads, reads);
        post(&b, reads ? QHCA_WQE_RDMA_READ : QHCA_WQE_RDMA_WRITE, 1, 0, BUF);
        fix_run(b.f, 100 * US);
        for (turn = 0; turn < 3; turn++) {
            uint64_t refs = l->sent_refs, lost;
            struct qhca_memlink *to;

            take_back(&b, reads);
            assert_int_equal(l->revoked, 1 + turn * PACKETS);
            /* it sees only what was revoked, and is busy again */
            to = fix_link(b.f, !reads, reads);
            lost = to->lost;
            node_memlink_bell(b.f->s[!reads].n, to->id);
            while (to->lost == lost) {
                fix_run(b.f, 1);
            }
            fix_doze(b.f, !reads, reads);
            fix_run(b.f, 100 * US);
            fix_no_cqe(b.f, 0);
            assert_int_equal(l->sent_refs - refs, PACKETS);
        }
        fix_look(b.f, !reads, reads);
        fix_run(b.f, 1 * MS);
        fix_cqe(b.f, 0, 1, QHCA_WC_SUCCESS);
        fix_has(b.f, !reads, reads, 0, BUF);
        assert_int_equal(xport(&b, 0)->wnd, QHCA_WINDOW_PKTS);
        assert_int_equal(fix_stat(b.f, 0, QHCA_STAT_ROCE_RETRANSMITS),
                         reads ? turn : turn * PACKETS);
        assert_int_equal(fix_stat(b.f, 0, QHCA_STAT_ROCE_TIMEOUTS), 0);
        big_end(&b);
    }
}

/* Pages that go while a record refers to them. */
static void odp_sync(void **state)
{
    static const struct gbuf_shape flat = {
        .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12,
    };
    struct godp o;
    struct gmr mr;
    struct big b;
    unsigned i;

    (void)state;
    big_begin(&b, 0);
    godp_create(&o, &mr, &b.f->s[0].g, LATE_LEN, IOVA, QHCA_ACCESS_MASK,
                &flat);
    gbuf_allow(&mr.buf, 0, LATE_LEN, GMEM_RW);
    gbuf_fill(&mr.buf, 0, 9, 0, LATE_LEN);
    godp_in(&o, 0, LATE_LEN, true);
    for (i = 0; i < 8; i++) {
        fix_doze(b.f, 1, 0);
        fix_post_on(b.f, 0, &b.qp[0], (struct gwr){
                        .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = i,
                        .num_sge = 1, .sge[0] = { IOVA, LATE_LEN, mr.key } },
                    0, LATE_LEN);
        fix_run(b.f, 100 * US);
        godp_out(&o, 4096 * i, 4096);
        assert_int_equal(fix_link(b.f, 0, 1)->revoked, i + 1);
        godp_in(&o, 4096 * i, 4096, true);
        fix_look(b.f, 1, 0);
        fix_run(b.f, 1 * MS);
        fix_cqe(b.f, 0, i, QHCA_WC_SUCCESS);
        assert_int_equal(gbuf_verify(&b.f->s[1].mr.buf, 0, 9, 0, LATE_LEN),
                         LATE_LEN);
        refill(&b);
    }
    assert_int_equal(godp_destroy(&o), QHCA_ST_OK);
    big_end(&b);
}

/* The same after a revocation: what is lost without one is a retry. */
static void lost(void **state)
{
    unsigned revoked, i;
    struct big b;

    (void)state;
    for (revoked = 0; revoked < 2; revoked++) {
        big_begin(&b, 0);
        for (i = 0; i <= revoked; i++) {
            fix_doze(b.f, 1, 0);
            post(&b, QHCA_WQE_RDMA_WRITE, i, 0, BUF);
            fix_run(b.f, 100 * US);
            if (i < revoked) {
                take_back(&b, 0);
                fix_look(b.f, 1, 0);
                fix_run(b.f, 1 * MS);
                fix_cqe(b.f, 0, i, QHCA_WC_SUCCESS);
            } else {
                lose(&b);
                fix_run(b.f, 500 * MS);
                fix_cqe(b.f, 0, i, QHCA_WC_RETRY_EXC_ERR);
            }
        }
        for (i = 0; i < 2; i++) {
            assert_int_equal(gqp_destroy(&b.qp[i]), QHCA_ST_OK);
        }
        fix_free(b.f);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_record), cmocka_unit_test(one_packet),
        cmocka_unit_test(longest),
        cmocka_unit_test(window), cmocka_unit_test(window_shrinks),
        cmocka_unit_test(to_and_fro), cmocka_unit_test(resent),
        cmocka_unit_test(resent_again), cmocka_unit_test(odp_sync), cmocka_unit_test(lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
