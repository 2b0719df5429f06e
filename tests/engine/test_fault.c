/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fault injection: each fault does what the real error would, and no more. */
#include "peer.h"
#include "rule.h"
#include "observe/breakpoint.h"
#include "adapter/adapter.h"

#define MTU 256
#define SIG QHCA_WQE_F_SIGNALED
#define TIMEOUT 4500000         /* ns: longer than the ACK timer */

static uint64_t hits(struct qhca *e, uint32_t id)
{
    const struct qhca_fault_rule *f = qhca_fault_next(e, id - 1);

    assert_int_equal(f->id, id);
    return f->hits;
}

static void post(struct peer *p, unsigned n, uint64_t wr_id, uint32_t len)
{
    while (n--) {
        struct gwr wr = {
            .opcode = QHCA_WQE_SEND, .wr_id = wr_id++, .flags = SIG,
        };

        peer_post(p, wr, 0, len);
    }
}

static uint64_t stat(struct peer *p, unsigned index)
{
    return qhca_stat(p->e, index);
}

/* A request arrives, with data of the stream. */
static void request(struct peer *p, uint32_t psn, uint32_t len)
{
    peer_tx(p, .op = SEND_ONLY, .psn = p->a.rq_psn + psn, .ackreq = true,
            .data = peer_data(100, len), .len = len);
}

/* ---- packets sent ---- */

/* The second is lost, and recovery works as always. */
static void drop_out(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn, id;

    (void)state;
    assert_int_equal(p->e->fault_sites, 0);
    id = rule_add(p->e, RULE(DROP, .nth = 2));
    post(p, 3, 1, 10);
    peer_expect(p, SEND_ONLY, psn);
    peer_expect(p, SEND_ONLY, psn + 2);
    peer_expect_nothing(p);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_TX_PACKETS), 3);
    assert_int_equal(hits(p->e, id), 1);
    assert_int_equal(qhca_fault_next(p->e, 0)->matches, 3);
    peer_ack(p, psn, 0x1f);
    peer_ack(p, psn + 1, 0x60);         /* NAK: sequence */
    peer_expect(p, SEND_ONLY, psn + 1);
    peer_expect(p, SEND_ONLY, psn + 2);
    peer_ack(p, psn + 2, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, 0);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, 0);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, 0);
    assert_true(qhca_fault_remove(p->e, id));
    assert_false(qhca_fault_remove(p->e, id));
    assert_int_equal(p->e->fault_sites, 0);
    peer_free(p);
}

/* Everything is lost: the retries run out. */
static void dead_wire(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    rule_add(p->e, rule_for("request", RULE(DROP)));
    post(p, 1, 7, 10);
    world_run(&p->w, 12 * (uint64_t)TIMEOUT);
    peer_expect_nothing(p);
    peer_cqe(p, scq, 7, QHCA_WC_RETRY_EXC_ERR, QHCA_SYN_TIMEOUT);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_TIMEOUTS), 4);
    assert_int_equal(hits(p->e, 1), 4);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_free(p);
}

static void delay_out(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn;
    const struct pframe *f;

    (void)state;
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_NS | QHCA_FLT_COUNT,
             .ns = 100000, .count = 1));
    post(p, 2, 1, 10);
    peer_expect(p, SEND_ONLY, psn + 1);
    peer_expect_nothing(p);
    assert_int_equal(qhca_fault_held(p->e), 1);
    world_run(&p->w, 90000);
    peer_expect_nothing(p);
    world_run(&p->w, 10000);
    f = peer_expect(p, SEND_ONLY, psn);
    assert_in_range(f->t, 100000, p->w.now);
    assert_int_equal(qhca_fault_held(p->e), 0);
    /* removing the rule ends it */
    qhca_fault_remove(p->e, 0);
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_NS, .ns = 3600000000000ull));
    post(p, 2, 3, 10);
    peer_expect_nothing(p);
    qhca_fault_remove(p->e, 0);
    peer_expect(p, SEND_ONLY, psn + 2);
    peer_expect(p, SEND_ONLY, psn + 3);
    assert_int_equal(p->e->fault_sites, 0);
    peer_free(p);
}

static void duplicate_out(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn;

    (void)state;
    rule_add(p->e, RULE(DUPLICATE, .fields = QHCA_FLT_PACKETS, .packets = 2,
             .nth = 1));
    post(p, 2, 1, 10);
    peer_expect(p, SEND_ONLY, psn);
    peer_expect(p, SEND_ONLY, psn);
    peer_expect(p, SEND_ONLY, psn);
    peer_expect(p, SEND_ONLY, psn + 1);
    peer_expect_nothing(p);
    peer_free(p);
}

/* Every packet is swapped with the next; two overtake one; none follows. */
static void reorder_out(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn, id;

    (void)state;
    id = rule_add(p->e, RULE(REORDER));
    post(p, 4, 1, 10);
    peer_expect(p, SEND_ONLY, psn + 1);
    peer_expect(p, SEND_ONLY, psn);
    peer_expect(p, SEND_ONLY, psn + 3);
    peer_expect(p, SEND_ONLY, psn + 2);
    peer_expect_nothing(p);
    qhca_fault_remove(p->e, id);
    rule_add(p->e, RULE(REORDER, .fields = QHCA_FLT_PACKETS, .packets = 2,
             .nth = 1));
    post(p, 3, 5, 10);
    peer_expect(p, SEND_ONLY, psn + 5);
    peer_expect(p, SEND_ONLY, psn + 6);
    peer_expect(p, SEND_ONLY, psn + 4);
    peer_expect_nothing(p);
    qhca_fault_remove(p->e, 0);
    /* nothing follows: it is sent alone after a while */
    rule_add(p->e, RULE(REORDER, .fields = QHCA_FLT_NS, .nth = 1,
             .ns = 50000));
    post(p, 1, 8, 10);
    peer_expect_nothing(p);
    world_run(&p->w, 50000);
    peer_expect(p, SEND_ONLY, psn + 7);
    peer_free(p);
}

/* A filter that also accepts frames with a wrong ICRC. */
static uint8_t spoilt[4400];
static size_t spoilt_len;

static bool take_spoilt(struct world *w, unsigned src, uint8_t *frame,
                        size_t *len)
{
    (void)w;
    (void)src;
    memcpy(spoilt, frame, *len);
    spoilt_len = *len;
    return false;
}

static bool icrc_right(void)
{
    uint32_t crc = peer_icrc(spoilt + 14, spoilt_len - 18), i;

    for (i = 0; i < 4; i++) {
        if (spoilt[spoilt_len - 4 + i] != (uint8_t)(crc >> (8 * i))) {
            return false;
        }
    }
    return true;
}

static unsigned bits_differ(const uint8_t *a, const uint8_t *b, size_t len)
{
    unsigned n = 0;
    size_t i;

    for (i = 0; i < len; i++) {
        n += (unsigned)__builtin_popcount(a[i] ^ b[i]);
    }
    return n;
}

static void corrupt_out(void **state)
{
    static const uint8_t actions[] = {
        QHCA_FLT_CORRUPT, QHCA_FLT_CORRUPT_ICRC, QHCA_FLT_CORRUPT_PAYLOAD
    };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    unsigned i, psn = p->a.sq_psn;

    (void)state;
    for (i = 0; i < 3; i++) {
        unsigned data;

        rule_add(p->e, (struct qhca_fault_rule){ .action = actions[i] });
        p->w.wire.filter = take_spoilt;
        post(p, 1, i, 100);
        peer_run(p);
        data = bits_differ(spoilt + 54, peer_data(0, 100), 100);
        assert_int_equal(icrc_right(), i == 2);
        assert_int_equal(data + (i == 1), i == 1 ? 1 : data ? 1 : 0);
        assert_true(i != 2 || data == 1);
        qhca_fault_remove(p->e, 0);
        p->w.wire.filter = peer_filter;
        /* the retransmission is correct */
        world_run(&p->w, TIMEOUT);
        peer_expect(p, SEND_ONLY, psn + i);
        peer_ack(p, psn + i, 0x1f);
        peer_cqe(p, scq, i, QHCA_WC_SUCCESS, 0);
        p->tail = p->head;
    }
    /* packets without payload are not affected */
    rule_add(p->e, RULE(CORRUPT_PAYLOAD));
    request(p, 0, 10);
    peer_expect_aeth(p, 0x2c, p->a.rq_psn);     /* RNR: with a correct ICRC */
    assert_int_equal(qhca_fault_next(p->e, 0)->matches, 0);
    peer_free(p);
}

/* The responder executes the request, but sends no response. */
static void no_ack(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    rule_add(p->e, RULE(NO_ACK));
    peer_recv(p, 5, 1000, 100);
    request(p, 0, 40);
    peer_expect_nothing(p);
    peer_cqe(p, rcq, 5, QHCA_WC_SUCCESS, 0);
    post(p, 1, 1, 10);                  /* requests continue */
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    qhca_fault_remove(p->e, 0);
    request(p, 0, 40);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn);
    peer_free(p);
}

/* The wire is busy: nothing is lost, and the order is kept. */
static void refused(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn, i;

    (void)state;
    rule_add(p->e, RULE(DUPLICATE, .fields = QHCA_FLT_DIRECTION,
             .direction = QHCA_FLT_OUT));
    p->w.wire.refuse = 30000;
    post(p, 20, 1, 10);
    world_run(&p->w, 3000000);
    for (i = 0; i < 20; i++) {
        peer_expect(p, SEND_ONLY, psn + i);
        peer_expect(p, SEND_ONLY, psn + i);
    }
    assert_int_equal(peer_waiting(p), 0);
    assert_true(p->n->refused > 5);
    peer_ack(p, psn + 19, 0x1f);
    peer_free(p);
}

/* What was received passes, even if the wire takes nothing. */
static void busy_one_way(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    char got[4];

    (void)state;
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_NS | QHCA_FLT_DIRECTION |
             QHCA_FLT_COUNT, .direction = QHCA_FLT_OUT, .ns = 1000000,
             .count = 1));
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_NS | QHCA_FLT_DIRECTION,
             .direction = QHCA_FLT_IN, .ns = 1000000));
    post(p, 1, 1, 10);
    peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 4, .data = "abcd", .len = 4,
            .ackreq = true);
    assert_int_equal(qhca_fault_held(p->e), 2);
    p->w.wire.refuse = 65536;
    world_run(&p->w, 1100000);
    gbuf_read(&p->mr.buf, 0, got, 4);
    assert_memory_equal(got, "abcd", 4);
    peer_expect_nothing(p);
    p->w.wire.refuse = 0;
    world_run(&p->w, 100000);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn);
    assert_int_equal(qhca_fault_held(p->e), 0);
    peer_free(p);
}

/* ---- packets received ---- */

static void packets_in(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.rq_psn, id;
    uint8_t got[100];

    (void)state;
    peer_recv(p, 1, 1000, 100);
    peer_recv(p, 2, 2000, 100);
    peer_recv(p, 3, 3000, 100);
    id = rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_DIRECTION,
                  .direction = QHCA_FLT_IN, .nth = 1));
    request(p, 0, 40);
    peer_expect_nothing(p);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_RX_PACKETS), 0);
    request(p, 0, 40);
    peer_expect_aeth(p, 0x1f, psn);
    qhca_fault_remove(p->e, id);

    id = rule_add(p->e, RULE(CORRUPT, .fields = QHCA_FLT_DIRECTION,
                  .direction = QHCA_FLT_IN, .nth = 1));
    request(p, 1, 40);
    peer_expect_nothing(p);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_ICRC_ERRORS), 1);
    qhca_fault_remove(p->e, id);

    id = rule_add(p->e, RULE(CORRUPT_PAYLOAD, .fields = QHCA_FLT_DIRECTION,
                  .direction = QHCA_FLT_IN, .nth = 1));
    request(p, 1, 40);
    peer_expect_aeth(p, 0x1f, psn + 1);
    gbuf_read(&p->mr.buf, 2000, got, 40);
    assert_int_equal(bits_differ(got, peer_data(100, 40), 40), 1);
    qhca_fault_remove(p->e, id);

    id = rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_DIRECTION | QHCA_FLT_NS,
                  .direction = QHCA_FLT_IN, .ns = 20000, .nth = 1));
    request(p, 2, 40);
    peer_expect_nothing(p);
    world_run(&p->w, 20000);
    peer_expect_aeth(p, 0x1f, psn + 2);
    qhca_fault_remove(p->e, id);

    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, 0);
    peer_cqe(p, rcq, 2, QHCA_WC_SUCCESS, 0);
    peer_cqe(p, rcq, 3, QHCA_WC_SUCCESS, 0);
    peer_free(p);
}

static void order_in(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.rq_psn;

    (void)state;
    peer_recv(p, 1, 1000, 100);
    peer_recv(p, 2, 2000, 100);
    peer_recv(p, 3, 3000, 100);
    rule_add(p->e, RULE(REORDER, .fields = QHCA_FLT_DIRECTION,
             .direction = QHCA_FLT_IN, .nth = 1));
    request(p, 0, 40);
    peer_expect_nothing(p);
    request(p, 1, 40);
    /* 1 arrived first: a gap; then 0, and 1 is expected */
    peer_expect_aeth(p, 0x60, psn);
    peer_expect_aeth(p, 0x1f, psn);
    qhca_fault_remove(p->e, 0);
    rule_add(p->e, RULE(DUPLICATE, .fields = QHCA_FLT_DIRECTION,
             .direction = QHCA_FLT_IN, .nth = 1));
    request(p, 1, 40);
    peer_expect_aeth(p, 0x1f, psn + 1);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_DUPLICATE), 1);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, 0);
    peer_cqe(p, rcq, 2, QHCA_WC_SUCCESS, 0);
    peer_no_cqe(p, rcq);
    peer_free(p);
}

/* ---- matching ---- */

static void which(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.sq_psn, i, n = 0;

    (void)state;
    /* PSNs wrap at 2^24: this QP starts at 0xfffffe */
    rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_PSN, .psn = 16777215,
             .psn_last = 0));
    post(p, 4, 1, 10);
    peer_expect(p, SEND_ONLY, psn);
    peer_expect(p, SEND_ONLY, psn + 3);
    qhca_fault_remove(p->e, 0);
    rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_PSN, .psn = 5, .psn_last = 5,
             .psn_relative = true));
    post(p, 2, 5, 10);
    peer_expect(p, SEND_ONLY, psn + 4);
    qhca_fault_remove(p->e, 0);
    rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_NUMBER,
             .number = p->qp.qpn + 1));
    rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_PEER, .peer = 1));
    rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_QP_TYPE,
             .qp_type = QHCA_QPT_UC));
    rule_add(p->e, rule_for("ACK", RULE(DROP)));
    rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_DIRECTION,
             .direction = QHCA_FLT_IN));
    rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_SYNDROME, .syndrome = 0x60));
    post(p, 1, 7, 10);
    peer_expect(p, SEND_ONLY, psn + 6);
    for (i = 1; i <= 6; i++) {
        assert_int_equal(qhca_fault_next(p->e, i - 1)->matches, 0);
    }
    qhca_fault_remove(p->e, 0);
    rule_add(p->e, rule_for("send", RULE(DROP, .fields = QHCA_FLT_NUMBER |
             QHCA_FLT_PEER | QHCA_FLT_QP_TYPE, .number = p->qp.qpn,
             .peer = PEER_QPN, .qp_type = QHCA_QPT_RC)));
    post(p, 1, 8, 10);
    peer_expect_nothing(p);
    qhca_fault_remove(p->e, 0);
    rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_COUNT, .skip = 2, .every = 3,
             .count = 2));
    post(p, 12, 9, 10);
    /* of matches 3 to 14 every third, twice: 5 and 8 */
    for (i = 0; i < 12; i++) {
        if (i != 4 && i != 7) {
            peer_expect(p, SEND_ONLY, psn + 8 + i);
        }
    }
    peer_expect_nothing(p);
    qhca_fault_remove(p->e, 0);
    /* A probability, the same with the same seed. */
    for (i = 0; i < 2; i++) {
        unsigned k, lost = 0;
        uint64_t set = 0;
        static uint64_t before;

        qhca_fault_remove(p->e, 0);
        qhca_fault_seed(p->e, 42);
        rule_add(p->e, rule_for("response", RULE(DROP,
                 .fields = QHCA_FLT_CHANCE, .chance = 250000)));
        for (k = 0; k < 60; k++) {
            unsigned w = p->head;

            request(p, 0, 10);          /* RNR each time */
            if (p->head == w) {
                set |= 1ull << k;
                lost++;
            }
        }
        assert_in_range(lost, 5, 28);
        assert_true(!i || set == before);
        before = set;
        n = p->head;
    }
    p->tail = n;
    peer_free(p);
}

/* A NAK is lost, ACKs are not. */
static void by_syndrome(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    rule_add(p->e, RULE(DROP, .fields = QHCA_FLT_SYNDROME, .syndrome = 0x60));
    peer_recv(p, 1, 1000, 100);
    request(p, 1, 10);
    peer_expect_nothing(p);             /* sequence NAK */
    request(p, 0, 10);
    peer_expect_aeth(p, 0x1f, p->a.rq_psn);
    assert_int_equal(hits(p->e, 1), 1);
    peer_free(p);
}

/* ---- other places ---- */

static void rnr(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t psn = p->a.rq_psn;

    (void)state;
    rule_add(p->e, RULE(RNR, .fields = QHCA_FLT_COUNT, .count = 2));
    peer_recv(p, 1, 1000, 100);
    request(p, 0, 10);
    peer_expect_aeth(p, 0x2c, psn);
    request(p, 0, 10);
    peer_expect_aeth(p, 0x2c, psn);
    request(p, 0, 10);
    peer_expect_aeth(p, 0x1f, psn);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, 0);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_RNR_NAK_TX), 2);
    peer_free(p);
}

static struct peer *with(struct qhca_fault_rule rule)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    rule_add(p->e, rule);
    return p;
}

static void dma(void **state)
{
    struct peer *p;
    uint64_t run, addr;

    (void)state;
    p = with(RULE(DMA_ERROR, .fields = QHCA_FLT_KIND, .kind = QHCA_DMA_WQE));
    post(p, 1, 1, 10);
    peer_expect_nothing(p);
    peer_run(p);
    assert_true(gcq_poll(&p->scq, &p->cqe));
    assert_int_equal(p->cqe.status, QHCA_WC_LOC_QP_OP_ERR);
    assert_int_equal(p->cqe.syndrome, QHCA_SYN_WQE_DMA);
    assert_int_equal(stat(p, QHCA_STAT_DMA_ERRORS), 1);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_FATAL], 1);
    qhca_fault_remove(p->e, 0);
    peer_free(p);

    p = with(RULE(DMA_ERROR, .fields = QHCA_FLT_KIND | QHCA_FLT_ACCESS,
             .kind = QHCA_DMA_DATA, .access = QHCA_FLT_READ, .nth = 2));
    post(p, 1, 1, 2 * MTU);
    peer_expect(p, SEND_FIRST, p->a.sq_psn);
    peer_cqe(p, scq, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
    peer_free(p);

    p = with(RULE(DMA_ERROR, .fields = QHCA_FLT_KIND | QHCA_FLT_ACCESS,
             .kind = QHCA_DMA_DATA, .access = QHCA_FLT_WRITE));
    peer_recv(p, 1, 1000, 100);
    request(p, 0, 10);
    peer_expect_aeth(p, 0x63, p->a.rq_psn);     /* NAK: operational error */
    peer_cqe(p, rcq, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
    peer_free(p);

    p = with(RULE(DMA_ERROR, .fields = QHCA_FLT_KIND, .kind = QHCA_DMA_CQE));
    post(p, 1, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_ack(p, p->a.sq_psn, 0x1f);
    peer_no_cqe(p, scq);
    world_run(&p->w, 100000);
    assert_int_equal(p->g.async_count[QHCA_EV_CQ_ERR], 1);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_FATAL], 1);
    peer_free(p);

    p = with(RULE(DMA_ERROR, .fields = QHCA_FLT_KIND,
             .kind = QHCA_DMA_RECORD));
    request(p, 0, 10);
    peer_expect_aeth(p, 0x63, p->a.rq_psn);
    qhca_fault_remove(p->e, 0);
    peer_free(p);

    /* by address: the page after next of the region */
    p = peer_new(QHCA_QPT_RC, NULL);
    addr = gbuf_addr(&p->mr.buf, 8192, &run);
    rule_add(p->e, RULE(DMA_ERROR, .fields = QHCA_FLT_ADDR, .addr = addr,
             .addr_last = addr + 4095));
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1,
                               .flags = SIG }, 4096, 100);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 2,
                               .flags = SIG }, 8191, 2);
    peer_ack(p, p->a.sq_psn, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, 0);
    peer_cqe(p, scq, 2, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
    peer_free(p);

    /* an unspecific rule spares the driver's own accesses */
    p = with(RULE(DMA_ERROR));
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    assert_int_equal(hits(p->e, 1), 0);
    peer_free(p);
}

/* Events cannot be written, or commands read: the device fails. */
static void dma_fatal(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    rule_add(p->e, RULE(DMA_ERROR, .fields = QHCA_FLT_KIND,
             .kind = QHCA_DMA_EQE));
    gcq_arm(&p->scq, false);
    post(p, 1, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_ack(p, p->a.sq_psn, 0x1f);
    assert_int_equal(node_reg_read(p->n, QHCA_REG_STATUS, 4) >>
                     QHCA_STATUS_FATAL_SHIFT, QHCA_FATAL_EQ);
    qhca_reset(p->e);
    peer_drop(p);
}

/*
 * The first CQE of a send queue in memory, after one send; with @seed not 0, as
 * garbage.
 */
static void garbage_cqe(unsigned seed, struct qhca_cqe *cqe)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    if (seed) {
        assert_null(qhca_fault_seed(p->e, seed));
        rule_add(p->e, RULE(GARBAGE, .fields = QHCA_FLT_KIND,
                 .kind = QHCA_DMA_CQE));
    }
    post(p, 1, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_ack(p, p->a.sq_psn, 0x1f);
    assert_true(!seed || hits(p->e, 1) > 0);
    gbuf_read(&p->scq.buf, 0, cqe, sizeof(*cqe));
    peer_free(p);
}

/* What the adapter writes is random: the same for a seed, and nothing else. */
static void garbage(void **state)
{
    struct qhca_cqe good, a, again;
    uint8_t got[10];
    struct peer *p;
    unsigned seed, differ = 0;
    uint64_t id;

    (void)state;
    garbage_cqe(0, &good);
    for (seed = 1; seed <= 20; seed++) {
        garbage_cqe(seed, &a);
        garbage_cqe(seed, &again);
        assert_memory_equal(&a, &again, sizeof(a));
        differ += memcmp(&a, &good, sizeof(a)) != 0;
    }
    assert_true(differ >= 19);

    /* the payload, and only that */
    p = with(RULE(GARBAGE, .fields = QHCA_FLT_KIND, .kind = QHCA_DMA_DATA));
    peer_recv(p, 1, 1000, 100);
    request(p, 0, 10);
    assert_int_equal(hits(p->e, 1), 1);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, 0);
    gbuf_read(&p->mr.buf, 1000, got, sizeof(got));
    assert_memory_not_equal(got, peer_data(0, sizeof(got)), sizeof(got));
    peer_free(p);

    /* an unspecific rule spares the driver's commands */
    p = with(RULE(GARBAGE));
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    assert_int_equal(hits(p->e, 1), 0);
    peer_free(p);

    /* registers, all or one of them */
    p = with(RULE(GARBAGE, .fields = QHCA_FLT_AT | QHCA_FLT_NUMBER,
             .at = QHCA_FLT_AT_REGISTER, .number = 0));
    id = node_reg_read(p->n, QHCA_REG_ID, 4);
    assert_true(id != QHCA_ID_MAGIC);
    assert_int_equal(id >> 32, 0);
    assert_int_equal(node_reg_read(p->n, QHCA_REG_VECTORS, 4),
                     p->e->cfg.num_vectors);
    assert_int_equal(hits(p->e, 1), 1);
    qhca_fault_remove(p->e, 0);
    assert_int_equal(node_reg_read(p->n, QHCA_REG_ID, 4), QHCA_ID_MAGIC);
    peer_free(p);
}

static void table(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct gmr mr;
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .flags = SIG, .num_sge = 1 };

    (void)state;
    gmr_create(&mr, &p->g, 65536, 0x10000, QHCA_ACCESS_MASK,
               &gbuf_flat4k);
    gbuf_allow(&mr.buf, 0, 65536, GMEM_RW);
    rule_add(p->e, RULE(TABLE_ERROR, .fields = QHCA_FLT_NUMBER |
             QHCA_FLT_INDEX, .number = mr.key, .index = 3, .index_last = 4));
    wr.sge[0] = (struct qhca_sge){ .addr = 0x12000, .len = 100,
                                   .lkey = mr.key };
    wr.wr_id = 1;
    peer_post(p, wr, 0, 0);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    wr.sge[0].addr = 0x13ff0;
    wr.wr_id = 2;
    peer_post(p, wr, 0, 0);
    peer_ack(p, p->a.sq_psn, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, 0);
    peer_cqe(p, scq, 2, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_TABLE_INVALID);
    assert_int_equal(stat(p, QHCA_STAT_TABLE_ERRORS), 1);
    assert_int_equal(hits(p->e, 1), 1);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    peer_free(p);
}

/* A rule sees each walk, also within a page, with or without a recording. */
static void table_page(void **state)
{
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .flags = SIG, .num_sge = 1 };
    int traced;

    (void)state;
    for (traced = 0; traced < 2; traced++) {
        struct peer *p = peer_new(QHCA_QPT_RC, NULL);
        uint32_t psn = p->a.sq_psn;
        struct gmr mr;

        qhca_set_tracing(p->e, traced);
        gmr_create(&mr, &p->g, 65536, 0x10000, QHCA_ACCESS_MASK,
                   &gbuf_flat4k);
        gbuf_allow(&mr.buf, 0, 65536, GMEM_RW);
        rule_add(p->e, RULE(TABLE_ERROR, .fields = QHCA_FLT_NUMBER,
                 .number = mr.key, .nth = 3));
        for (wr.wr_id = 1; wr.wr_id <= 3; wr.wr_id++) {
            wr.sge[0] = (struct qhca_sge){ .addr = 0x12000 + 8 * wr.wr_id,
                                           .len = 8, .lkey = mr.key };
            peer_post(p, wr, 0, 0);
        }
        peer_expect(p, SEND_ONLY, psn);
        peer_expect(p, SEND_ONLY, psn + 1);
        peer_ack(p, psn + 1, 0x1f);
        peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, 0);
        peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, 0);
        peer_cqe(p, scq, 3, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_TABLE_INVALID);
        assert_int_equal(hits(p->e, 1), 1);
        assert_int_equal(qhca_fault_next(p->e, 0)->matches, 3);
        assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
        peer_free(p);
    }
}

static void overflow(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    rule_add(p->e, RULE(CQ_OVERFLOW, .fields = QHCA_FLT_NUMBER,
             .number = p->scq.cqn, .nth = 2));
    post(p, 2, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 1);
    peer_ack(p, p->a.sq_psn + 1, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, 0);
    peer_no_cqe(p, scq);
    world_run(&p->w, 100000);
    assert_int_equal(stat(p, QHCA_STAT_CQ_OVERFLOWS), 1);
    assert_int_equal(p->g.async_count[QHCA_EV_CQ_ERR], 1);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_FATAL], 1);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_free(p);
}

/* One send from doorbell to CQE with an armed CQ. */
static void one_event(struct peer *p, uint64_t id)
{
    gcq_arm(&p->scq, false);
    post(p, 1, id, 10);
    peer_ack(p, peer_next(p)->psn, 0x1f);
    peer_cqe(p, scq, id, QHCA_WC_SUCCESS, 0);
    world_run(&p->w, 10000);
}

static void interrupts(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint64_t before, *msix;
    unsigned v;

    (void)state;
    one_event(p, 1);
    for (v = WORLD_VECTORS - 1; !p->n->msix[v]; v--) {
    }
    msix = &p->n->msix[v];
    before = *msix;
    rule_add(p->e, RULE(HOLD_INTERRUPT, .fields = QHCA_FLT_NUMBER |
             QHCA_FLT_NS, .number = v, .ns = 50000));
    one_event(p, 2);
    assert_int_equal(*msix, before);
    assert_int_equal(qhca_fault_held(p->e), 1);
    world_run(&p->w, 50000);
    assert_int_equal(*msix, before + 1);
    qhca_fault_remove(p->e, 0);
    rule_add(p->e, RULE(HOLD_INTERRUPT, .fields = QHCA_FLT_NUMBER,
             .number = v));
    one_event(p, 3);
    world_run(&p->w, 1000000);
    assert_int_equal(*msix, before + 1);
    qhca_fault_remove(p->e, 0);
    assert_int_equal(*msix, before + 2);
    assert_int_equal(qhca_fault_held(p->e), 0);
    world_run(&p->w, 10000);
    rule_add(p->e, RULE(LOSE_INTERRUPT, .fields = QHCA_FLT_NUMBER,
             .number = v));
    one_event(p, 4);
    qhca_fault_remove(p->e, 0);
    world_run(&p->w, 1000000);
    assert_int_equal(*msix, before + 2);
    peer_free(p);
}

static void stall(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint64_t before;

    (void)state;
    one_event(p, 1);
    before = stat(p, QHCA_STAT_EQES);
    rule_add(p->e, RULE(STALL_EVENTS, .fields = QHCA_FLT_NUMBER, .number = 1));
    one_event(p, 2);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before);
    qhca_fault_remove(p->e, 0);
    world_run(&p->w, 10000);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before + 1);
    one_event(p, 3);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before + 2);
    peer_free(p);
}

/* An EQ is stalled until the rule that stalls it is removed. */
static void stall_two(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t eq0, eq1, more;
    uint64_t before;

    (void)state;
    eq0 = rule_add(p->e, RULE(STALL_EVENTS, .fields = QHCA_FLT_NUMBER,
                              .number = QHCA_EQN_ASYNC));
    eq1 = rule_add(p->e, RULE(STALL_EVENTS, .fields = QHCA_FLT_NUMBER,
                              .number = 1));
    before = stat(p, QHCA_STAT_EQES);
    one_event(p, 1);
    node_set_link(p->n, false);
    node_set_link(p->n, true);
    world_run(&p->w, 10000);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before);
    qhca_fault_remove(p->e, eq0);
    world_run(&p->w, 10000);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before + 1);
    assert_int_equal(p->g.async_count[QHCA_EV_PORT], 1);
    /* one more rule for the same EQ is not the one that stalls it */
    more = rule_add(p->e, RULE(STALL_EVENTS, .fields = QHCA_FLT_PEER,
                               .peer = p->scq.cqn));
    one_event(p, 2);
    assert_int_equal(hits(p->e, more), 1);
    qhca_fault_remove(p->e, more);
    world_run(&p->w, 10000);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before + 1);
    qhca_fault_remove(p->e, eq1);
    world_run(&p->w, 10000);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before + 2);
    peer_free(p);
}

static void fatal(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t status;

    (void)state;
    rule_add(p->e, RULE(FATAL, .fields = QHCA_FLT_AT, .at = QHCA_FLT_AT_PACKET,
             .nth = 2));
    post(p, 3, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect_nothing(p);
    status = (uint32_t)node_reg_read(p->n, QHCA_REG_STATUS, 4);
    assert_true(status & QHCA_STATUS_FATAL);
    assert_int_equal((status & QHCA_STATUS_FATAL_MASK) >>
                     QHCA_STATUS_FATAL_SHIFT, QHCA_FATAL_INTERNAL);
    world_run(&p->w, 100000);
    assert_int_equal(p->g.async_count[QHCA_EV_DEVICE_FATAL], 1);
    assert_int_equal(hits(p->e, 1), 1);
    qhca_reset(p->e);
    /* the rule still exists, and is used up */
    assert_int_equal(hits(p->e, 1), 1);
    peer_drop(p);
}

/* In the middle of a READ response. */
static void fatal_response(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    rule_add(p->e, RULE(FATAL, .fields = QHCA_FLT_AT | QHCA_FLT_DIRECTION,
             .at = QHCA_FLT_AT_PACKET, .direction = QHCA_FLT_OUT, .nth = 2));
    peer_tx(p, .op = READ_REQ, .psn = p->a.rq_psn, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 4 * MTU);
    peer_expect(p, RESP_FIRST, p->a.rq_psn);
    peer_expect_nothing(p);
    assert_int_equal(p->e->fatal, QHCA_FATAL_INTERNAL);
    qhca_reset(p->e);
    peer_drop(p);
}

static void reset(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_DIRECTION | QHCA_FLT_NS,
             .direction = QHCA_FLT_IN | QHCA_FLT_OUT, .ns = 1000000));
    rule_add(p->e, RULE(HOLD_INTERRUPT));
    rule_add(p->e, RULE(RESET, .fields = QHCA_FLT_AT | QHCA_FLT_DIRECTION,
             .at = QHCA_FLT_AT_PACKET, .direction = QHCA_FLT_IN));
    post(p, 3, 1, 10);
    peer_expect_nothing(p);
    assert_int_equal(qhca_fault_held(p->e), 3);
    request(p, 0, 10);
    assert_int_equal(node_reg_read(p->n, QHCA_REG_CTRL, 4), 0);
    assert_int_equal(node_reg_read(p->n, QHCA_REG_STATUS, 4),
                     QHCA_STATUS_LINK);
    assert_int_equal(qhca_fault_held(p->e), 0);
    world_run(&p->w, 10000000);
    assert_int_equal(peer_waiting(p), 0);
    peer_drop(p);
}

static void link_down(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t id;

    (void)state;
    rule_add(p->e, RULE(LINK_DOWN, .fields = QHCA_FLT_NS, .ns = 2000000));
    assert_int_equal(node_reg_read(p->n, QHCA_REG_STATUS, 4),
                     QHCA_STATUS_READY);
    post(p, 1, 1, 10);
    peer_expect_nothing(p);
    world_run(&p->w, 2000000);
    assert_true(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    world_run(&p->w, TIMEOUT);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    assert_int_equal(p->g.async_count[QHCA_EV_PORT], 2);
    peer_ack(p, p->a.sq_psn, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, 0);
    qhca_fault_remove(p->e, 0);
    /* until it is removed, whatever the wire does */
    id = rule_add(p->e, RULE(LINK_DOWN));
    node_set_link(p->n, false);
    node_set_link(p->n, true);
    assert_false(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    qhca_fault_remove(p->e, id);
    assert_true(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    id = rule_add(p->e, RULE(LINK_DOWN));
    node_set_link(p->n, false);
    qhca_fault_remove(p->e, id);
    assert_false(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    node_set_link(p->n, true);
    /* a reset of the adapter does not bring the link up */
    rule_add(p->e, RULE(LINK_DOWN, .fields = QHCA_FLT_NS, .ns = 5000000));
    peer_free(p);
}

/* A loaded state does not bring the link up that a rule holds down. */
static void link_down_loaded(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    char why[160];
    size_t len;
    uint32_t id;
    void *s;

    (void)state;
    assert_true(qhca_save(p->e, &s, &len));
    id = rule_add(p->e, RULE(LINK_DOWN));
    world_run(&p->w, 10000);
    assert_int_equal(p->g.async_count[QHCA_EV_PORT], 1);
    p->g.eq[0].cons--;                  /* as it was when it was saved */
    CHECK(qhca_load(p->e, s, len, why, sizeof(why)), "%s", why);
    assert_false(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    world_run(&p->w, 10000);
    assert_int_equal(p->g.async_count[QHCA_EV_PORT], 2);
    qhca_fault_remove(p->e, id);
    assert_true(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    world_run(&p->w, 10000);
    assert_int_equal(p->g.async_count[QHCA_EV_PORT], 3);
    /* a rule that is over holds nothing down */
    CHECK(qhca_load(p->e, s, len, why, sizeof(why)), "%s", why);
    assert_true(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    /* nor does a state that cannot be loaded bring it up */
    rule_add(p->e, RULE(LINK_DOWN));
    assert_false(qhca_load(p->e, s, len - 1, why, sizeof(why)));
    assert_false(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    free(s);
    peer_drop(p);
}

/* A debugger can wait for a fault, and nothing happens while it is stopped. */
static void stops(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_break b = { .on = QHCA_ON_INJECTED, .index = 2,
                            .fields = QHCA_BRK_INDEX };
    struct qhca_fault_rule now = { .action = QHCA_FLT_FATAL };

    (void)state;
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_NS, .ns = 100000, .nth = 1));
    rule_add(p->e, RULE(DROP, .nth = 3));
    assert_null(qhca_break_add(p->e, &b));
    post(p, 4, 1, 10);
    assert_int_equal(p->n->stops, 1);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 1);
    world_run(&p->w, 1000000);
    peer_expect_nothing(p);
    /* stopped within a rule: a new one takes effect from the next match */
    rule_add(p->e, RULE(DUPLICATE));
    assert_non_null(qhca_fault_add(p->e, &now));
    assert_non_null(qhca_fault_seed(p->e, 1));
    assert_false(qhca_fault_remove(p->e, 0));
    node_continue(p->n);
    world_run(&p->w, 1000);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 3);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 3);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect_nothing(p);
    peer_free(p);
}

/* ---- rules as such ---- */

static void good(struct qhca_fault_rule f)
{
    const char *wrong = qhca_fault_check(&f);

    CHECK(!wrong, "%s: %s", qhca_fault_action_name(f.action), wrong);
}

static void bad(struct qhca_fault_rule f, const char *hint)
{
    const char *wrong = qhca_fault_check(&f);

    CHECK(wrong && strstr(wrong, hint), "%s: '%s' has no '%s'",
          qhca_fault_action_name(f.action), wrong ? wrong : "", hint);
}

static void rules(void **state)
{
    (void)state;
    good(RULE(DROP));
    good(rule_for("SEND_ONLY", RULE(DROP, .fields = QHCA_FLT_NUMBER |
         QHCA_FLT_PSN, .number = 17, .psn = 5, .psn_last = 9, .nth = 2)));
    good(rule_for("response", RULE(DELAY, .fields = QHCA_FLT_DIRECTION |
         QHCA_FLT_NS, .direction = QHCA_FLT_IN | QHCA_FLT_OUT, .ns = 250000)));
    good(rule_for("ACK", RULE(DROP, .fields = QHCA_FLT_PSN |
         QHCA_FLT_SYNDROME | QHCA_FLT_PEER | QHCA_FLT_QP_TYPE, .psn = 0,
         .psn_last = 0, .psn_relative = true, .syndrome = 0x60, .peer = 3,
         .qp_type = QHCA_QPT_RC)));
    good(RULE(REORDER, .fields = QHCA_FLT_PACKETS | QHCA_FLT_NS |
         QHCA_FLT_COUNT, .packets = 3, .ns = 1000000, .skip = 1, .every = 2,
         .count = 7));
    good(RULE(CORRUPT, .fields = QHCA_FLT_CHANCE, .chance = 1));
    good(RULE(CORRUPT, .fields = QHCA_FLT_CHANCE, .chance = 1000000));
    good(RULE(DMA_ERROR, .fields = QHCA_FLT_KIND | QHCA_FLT_ADDR |
         QHCA_FLT_ACCESS | QHCA_FLT_NUMBER, .kind = QHCA_DMA_WQE,
         .addr = 0x1000, .addr_last = 0x1fff, .access = QHCA_FLT_WRITE,
         .number = 9));
    good(RULE(TABLE_ERROR, .fields = QHCA_FLT_KIND | QHCA_FLT_INDEX,
         .kind = QHCA_DMA_DATA, .index = 3, .index_last = 7));
    good(RULE(CQ_OVERFLOW, .fields = QHCA_FLT_NUMBER | QHCA_FLT_PEER,
         .number = 3, .peer = 9));
    good(RULE(HOLD_INTERRUPT, .fields = QHCA_FLT_NUMBER, .number = 2));
    good(RULE(STALL_EVENTS, .fields = QHCA_FLT_NUMBER, .number = 0));
    good(RULE(FATAL, .fields = QHCA_FLT_AT | QHCA_FLT_KIND,
         .at = QHCA_FLT_AT_DMA, .kind = QHCA_DMA_CQE, .nth = 3));
    good(RULE(LINK_DOWN, .fields = QHCA_FLT_NS, .ns = 3600000000000ull));
    good(RULE(RESET));
    good(RULE(RNR, .fields = QHCA_FLT_NUMBER | QHCA_FLT_COUNT, .number = 5,
         .count = UINT64_MAX));
    good(RULE(GARBAGE, .fields = QHCA_FLT_KIND, .kind = QHCA_DMA_CQE,
         .nth = 2));
    good(RULE(GARBAGE, .fields = QHCA_FLT_AT | QHCA_FLT_NUMBER,
         .at = QHCA_FLT_AT_REGISTER, .number = 8));
    bad(RULE(DROP, .fields = QHCA_FLT_PSN, .psn = 16777216,
        .psn_last = 16777216), "'psn' has 24 bits");
    bad(RULE(DROP, .fields = QHCA_FLT_PSN, .psn = 1, .psn_last = 16777216),
        "'psn-last' has 24 bits");
    bad(RULE(DROP, .fields = QHCA_FLT_NS, .ns = 1000000),
        "'time' is only for delay");
    bad(RULE(DELAY), "'time' must be 1");
    bad(RULE(DELAY, .fields = QHCA_FLT_NS, .ns = 0), "'time' must be 1");
    bad(RULE(DELAY, .fields = QHCA_FLT_NS, .ns = 3601000000000ull),
        "3600000000000");
    bad(RULE(DROP, .fields = QHCA_FLT_PACKETS, .packets = 1),
        "'packets' is only for");
    bad(RULE(DUPLICATE, .fields = QHCA_FLT_PACKETS, .packets = 257),
        "'packets' must be 1 to 256");
    bad(RULE(DROP, .fields = QHCA_FLT_COUNT, .count = 0), "'count'");
    bad(RULE(DROP, .fields = QHCA_FLT_CHANCE, .chance = 1000001),
        "'probability'");
    bad(RULE(DROP, .fields = QHCA_FLT_INDEX, .index = 3, .index_last = 3),
        "'index' exists at a table");
    bad(RULE(RNR, .fields = QHCA_FLT_PSN, .psn = 3, .psn_last = 3),
        "'psn' exists at a packet");
    bad(rule_for("ACK", RULE(DMA_ERROR)), "'opcode' exists");
    bad(RULE(DMA_ERROR, .fields = QHCA_FLT_ADDR, .addr = 2, .addr_last = 1),
        "'address-last' is before");
    bad(RULE(TABLE_ERROR, .fields = QHCA_FLT_INDEX, .index = 2,
        .index_last = 1), "'index-last' is before");
    good(RULE(DROP, .fields = QHCA_FLT_AT | QHCA_FLT_NUMBER |
         QHCA_FLT_DIRECTION, .at = QHCA_FLT_AT_FRAME, .number = 0x0806,
         .direction = QHCA_FLT_IN));
    good(RULE(RESET, .fields = QHCA_FLT_AT, .at = QHCA_FLT_AT_FRAME));
    good(RULE(DELAY, .fields = QHCA_FLT_AT | QHCA_FLT_NUMBER | QHCA_FLT_NS,
         .at = QHCA_FLT_AT_COMMAND, .number = QHCA_CMD_NOP, .ns = 1));
    bad(RULE(DROP, .fields = QHCA_FLT_AT, .at = QHCA_FLT_AT_DMA),
        "'at' can only be packet or frame");
    bad(RULE(DELAY, .fields = QHCA_FLT_AT | QHCA_FLT_NS,
        .at = QHCA_FLT_AT_CQE, .ns = 1),
        "'at' can only be packet, frame or command");
    bad(RULE(DELAY, .fields = QHCA_FLT_AT | QHCA_FLT_NS | QHCA_FLT_PEER,
        .at = QHCA_FLT_AT_COMMAND, .ns = 1), "'peer' exists");
    bad(RULE(CORRUPT_ICRC, .fields = QHCA_FLT_AT, .at = QHCA_FLT_AT_FRAME),
        "'at' must be left out");
    bad(rule_for("ACK", RULE(DROP, .fields = QHCA_FLT_AT,
        .at = QHCA_FLT_AT_FRAME)), "'opcode' exists");
    bad(RULE(FATAL, .nth = 3), "give 'at'");
    bad(RULE(FATAL, .fields = QHCA_FLT_QP_TYPE, .qp_type = QHCA_QPT_RC),
        "give 'at'");
    bad(RULE(GARBAGE, .fields = QHCA_FLT_ACCESS, .access = QHCA_FLT_READ),
        "'access' must be left out");
    bad(RULE(GARBAGE, .fields = QHCA_FLT_AT, .at = QHCA_FLT_AT_CQE),
        "'at' must be left out");
    bad(RULE(GARBAGE, .fields = QHCA_FLT_KIND, .kind = QHCA_DMA_TABLE),
        "'kind' cannot be table");
    bad(RULE(GARBAGE, .fields = QHCA_FLT_AT | QHCA_FLT_KIND,
        .at = QHCA_FLT_AT_REGISTER, .kind = QHCA_DMA_CQE), "'kind' exists");
    bad(RULE(FATAL, .fields = QHCA_FLT_AT, .at = QHCA_FLT_AT_REGISTER),
        "for garbage only");
    bad(RULE(STALL_EVENTS, .fields = QHCA_FLT_QP_TYPE, .qp_type = QHCA_QPT_RC),
        "'qp-type' exists");
    bad(RULE(LOSE_INTERRUPT, .fields = QHCA_FLT_PEER, .peer = 1),
        "'peer' exists");
    bad(RULE(RNR, .fields = QHCA_FLT_DIRECTION, .direction = QHCA_FLT_IN),
        "'direction' exists");
    bad(RULE(TABLE_ERROR, .fields = QHCA_FLT_ACCESS, .access = QHCA_FLT_READ),
        "'access' exists");
    bad(RULE(TABLE_ERROR, .fields = QHCA_FLT_ADDR, .addr = 1, .addr_last = 1),
        "'address' exists");
    bad(RULE(RNR, .fields = QHCA_FLT_SYNDROME, .syndrome = 1),
        "'syndrome' exists");
    bad(RULE(RNR, .fields = QHCA_FLT_KIND, .kind = QHCA_DMA_WQE),
        "'kind' exists");
}

/* Give a command without waiting for its answer, which stays in the ring. */
static void post_nop(struct peer *p)
{
    struct qhca_aq_cmd cmd = { .opcode = QHCA_CMD_NOP };
    struct guest *g = &p->g;
    uint32_t slot = g->asq_prod++ & ((1u << g->aq_shift) - 1);

    memcpy(gmem_ptr(g->m, g->asq + sizeof(cmd) * slot, sizeof(cmd)), &cmd,
           sizeof(cmd));
    node_reg_write(g->n, QHCA_REG_ASQ_DB, g->asq_prod, 4);
}

static unsigned answered(struct peer *p)
{
    return p->e->ad->asq_cons;
}

/* A command is late, and so are those behind it; others are not. */
static void late_commands(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint64_t stats[QHCA_STAT_COUNT];
    uint32_t id, n;

    (void)state;
    id = rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_AT | QHCA_FLT_NS |
                  QHCA_FLT_NUMBER, .at = QHCA_FLT_AT_COMMAND,
                  .number = QHCA_CMD_NOP, .ns = 100000, .nth = 1));
    guest_stats(&p->g, stats);
    assert_int_equal(qhca_fault_next(p->e, 0)->matches, 0);
    n = answered(p);
    post_nop(p);
    post_nop(p);
    world_run(&p->w, 90000);
    assert_int_equal(answered(p), n);
    world_run(&p->w, 10000);
    assert_int_equal(answered(p), n + 2);
    assert_int_equal(hits(p->e, id), 1);
    assert_int_equal(qhca_fault_next(p->e, 0)->matches, 2);
    /* one that is late by an hour: until that rule is removed */
    qhca_fault_remove(p->e, id);
    id = rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_AT | QHCA_FLT_NS,
                  .at = QHCA_FLT_AT_COMMAND, .ns = 3600000000000ull));
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_AT | QHCA_FLT_NS,
             .at = QHCA_FLT_AT_COMMAND, .ns = 1000));
    post_nop(p);
    world_run(&p->w, 1000000);
    assert_int_equal(answered(p), n + 2);
    qhca_fault_remove(p->e, id);
    world_run(&p->w, 500);      /* no time for the other rule */
    assert_int_equal(answered(p), n + 3);
    assert_int_equal(qhca_fault_next(p->e, 0)->matches, 1);
    qhca_fault_remove(p->e, 0);
    /* or until a reset; a device that fails waits for nothing */
    rule_add(p->e, RULE(DELAY, .fields = QHCA_FLT_AT | QHCA_FLT_NS,
             .at = QHCA_FLT_AT_COMMAND, .ns = 1000000));
    post_nop(p);
    qhca_fatal(p->e, QHCA_FATAL_INTERNAL);
    world_run(&p->w, 2000000);
    assert_int_equal(answered(p), n + 3);
    assert_int_equal(p->e->ad->timer_set, UINT64_MAX);
    p->e->hooks->reset(p->e);
    assert_false(p->e->hooks->command_waits(p->e));
    peer_drop(p);
}

/* The adapter, or its link, fails at a command. */
static void failing_commands(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t n = answered(p);

    (void)state;
    rule_add(p->e, RULE(LINK_DOWN, .fields = QHCA_FLT_AT | QHCA_FLT_COUNT,
             .at = QHCA_FLT_AT_COMMAND, .count = 1));
    post_nop(p);
    world_run(&p->w, 1000);
    assert_int_equal(answered(p), n + 1);
    assert_false(p->e->link);
    rule_add(p->e, RULE(FATAL, .fields = QHCA_FLT_AT,
             .at = QHCA_FLT_AT_COMMAND, .nth = 2));
    post_nop(p);
    post_nop(p);
    world_run(&p->w, 1000);
    assert_int_equal(answered(p), n + 2);
    assert_false(qhca_active(p->e));
    peer_drop(p);
}

/* Names of opcodes mean those of all transports, groups those they name. */
static void opcodes(void **state)
{
    static const struct {
        const char *name;
        unsigned count;
    } names[] = {
        { "SEND_ONLY", 4 }, { "ACK", 2 }, { "atomic", 6 }, { "read", 2 },
        { "send_only", 0 }, { "SEND_ONLYX", 0 }, { "SEND", 0 }, { "", 0 },
        { "4", 0 },
    };
    unsigned i, op, n;

    (void)state;
    for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        uint32_t opcode[8] = { 0 };
        bool found = qhca_fault_opcode(names[i].name, opcode);

        for (op = n = 0; op < 256; op++) {
            n += opcode[op / 32] >> op % 32 & 1;
        }
        CHECK(n == names[i].count && found == (n > 0), "%s: %u opcodes",
              names[i].name, n);
    }
}

static void full(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_fault_rule f = { .action = QHCA_FLT_DROP };
    unsigned i;

    (void)state;
    for (i = 0; i < QHCA_FAULTS_MAX; i++) {
        rule_add(p->e, RULE(DROP, .nth = 1000000));
    }
    assert_non_null(qhca_fault_add(p->e, &f));
    post(p, 3, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    qhca_fault_remove(p->e, 0);
    assert_null(qhca_fault_next(p->e, 0));
    /* more packets are held than there is room for: the rest is lost */
    rule_add(p->e, RULE(DUPLICATE, .fields = QHCA_FLT_PACKETS |
             QHCA_FLT_DIRECTION, .packets = 256, .direction = QHCA_FLT_OUT));
    p->w.wire.refuse = 65535;
    post(p, 3, 4, 10);
    assert_true(qhca_fault_held(p->e) <= 512);
    p->w.wire.refuse = 0;
    p->tail = p->head;
    world_run(&p->w, 1000000);
    p->tail = p->head;
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drop_out),
        cmocka_unit_test(dead_wire),
        cmocka_unit_test(delay_out),
        cmocka_unit_test(duplicate_out),
        cmocka_unit_test(reorder_out),
        cmocka_unit_test(corrupt_out),
        cmocka_unit_test(no_ack),
        cmocka_unit_test(refused),
        cmocka_unit_test(busy_one_way),
        cmocka_unit_test(late_commands),
        cmocka_unit_test(failing_commands),
        cmocka_unit_test(packets_in),
        cmocka_unit_test(order_in),
        cmocka_unit_test(which),
        cmocka_unit_test(by_syndrome),
        cmocka_unit_test(rnr),
        cmocka_unit_test(dma),
        cmocka_unit_test(dma_fatal),
        cmocka_unit_test(garbage),
        cmocka_unit_test(table),
        cmocka_unit_test(table_page),
        cmocka_unit_test(overflow),
        cmocka_unit_test(interrupts),
        cmocka_unit_test(stall),
        cmocka_unit_test(stall_two),
        cmocka_unit_test(fatal),
        cmocka_unit_test(fatal_response),
        cmocka_unit_test(reset),
        cmocka_unit_test(link_down),
        cmocka_unit_test(link_down_loaded),
        cmocka_unit_test(stops),
        cmocka_unit_test(rules),
        cmocka_unit_test(opcodes),
        cmocka_unit_test(full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
