/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fault injection: each fault does what the real error would, and no more. */
#include "peer.h"
#include "die.h"
#include "observe/breakpoint.h"
#include "observe/fault.h"
#include "adapter/adapter.h"

#define MTU 256
#define SIG QHCA_WQE_F_SIGNALED
#define TIMEOUT 4500000         /* ns: longer than the ACK timer */

static uint32_t add(struct qhca *e, const char *text)
{
    struct qhca_fault_rule f;
    const char *wrong;
    char err[256];

    CHECK(qhca_fault_parse(text, &f, err, sizeof(err)), "%s: %s", text, err);
    wrong = qhca_fault_add(e, &f);
    CHECK(!wrong, "%s: %s", text, wrong);
    return f.id;
}

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
    id = add(p->e, "drop nth=2");
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
    add(p->e, "drop opcode=request");
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
    add(p->e, "delay time=100us count=1");
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
    add(p->e, "delay time=3600s");
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
    add(p->e, "duplicate packets=2 nth=1");
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
    id = add(p->e, "reorder");
    post(p, 4, 1, 10);
    peer_expect(p, SEND_ONLY, psn + 1);
    peer_expect(p, SEND_ONLY, psn);
    peer_expect(p, SEND_ONLY, psn + 3);
    peer_expect(p, SEND_ONLY, psn + 2);
    peer_expect_nothing(p);
    qhca_fault_remove(p->e, id);
    add(p->e, "reorder packets=2 nth=1");
    post(p, 3, 5, 10);
    peer_expect(p, SEND_ONLY, psn + 5);
    peer_expect(p, SEND_ONLY, psn + 6);
    peer_expect(p, SEND_ONLY, psn + 4);
    peer_expect_nothing(p);
    qhca_fault_remove(p->e, 0);
    /* nothing follows: it is sent alone after a while */
    add(p->e, "reorder nth=1 time=50us");
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
    static const char *const rules[] = {
        "corrupt", "corrupt-icrc", "corrupt-payload"
    };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    unsigned i, psn = p->a.sq_psn;

    (void)state;
    for (i = 0; i < 3; i++) {
        unsigned data;

        add(p->e, rules[i]);
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
    add(p->e, "corrupt-payload");
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
    add(p->e, "no-ack");
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
    add(p->e, "duplicate direction=out");
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
    id = add(p->e, "drop direction=in nth=1");
    request(p, 0, 40);
    peer_expect_nothing(p);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_RX_PACKETS), 0);
    request(p, 0, 40);
    peer_expect_aeth(p, 0x1f, psn);
    qhca_fault_remove(p->e, id);

    id = add(p->e, "corrupt direction=in nth=1");
    request(p, 1, 40);
    peer_expect_nothing(p);
    assert_int_equal(stat(p, QHCA_STAT_ROCE_ICRC_ERRORS), 1);
    qhca_fault_remove(p->e, id);

    id = add(p->e, "corrupt-payload direction=in nth=1");
    request(p, 1, 40);
    peer_expect_aeth(p, 0x1f, psn + 1);
    gbuf_read(&p->mr.buf, 2000, got, 40);
    assert_int_equal(bits_differ(got, peer_data(100, 40), 40), 1);
    qhca_fault_remove(p->e, id);

    id = add(p->e, "delay direction=in time=20us nth=1");
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
    add(p->e, "reorder direction=in nth=1");
    request(p, 0, 40);
    peer_expect_nothing(p);
    request(p, 1, 40);
    /* 1 arrived first: a gap; then 0, and 1 is expected */
    peer_expect_aeth(p, 0x60, psn);
    peer_expect_aeth(p, 0x1f, psn);
    qhca_fault_remove(p->e, 0);
    add(p->e, "duplicate direction=in nth=1");
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
    char text[64];

    (void)state;
    /* PSNs wrap at 2^24: this QP starts at 0xfffffe */
    add(p->e, "drop psn=16777215-0");
    post(p, 4, 1, 10);
    peer_expect(p, SEND_ONLY, psn);
    peer_expect(p, SEND_ONLY, psn + 3);
    qhca_fault_remove(p->e, 0);
    add(p->e, "drop rel-psn=5");
    post(p, 2, 5, 10);
    peer_expect(p, SEND_ONLY, psn + 4);
    qhca_fault_remove(p->e, 0);
    snprintf(text, sizeof(text), "drop qpn=%u", p->qp.qpn + 1);
    add(p->e, text);
    add(p->e, "drop peer=1");
    add(p->e, "drop qp-type=uc");
    add(p->e, "drop opcode=ack,read,0x64");
    add(p->e, "drop direction=in");
    add(p->e, "drop syndrome=0x60");
    post(p, 1, 7, 10);
    peer_expect(p, SEND_ONLY, psn + 6);
    for (i = 1; i <= 6; i++) {
        assert_int_equal(qhca_fault_next(p->e, i - 1)->matches, 0);
    }
    qhca_fault_remove(p->e, 0);
    snprintf(text, sizeof(text), "drop qpn=%u peer=%u qp-type=RC opcode=send",
             p->qp.qpn, PEER_QPN);
    add(p->e, text);
    post(p, 1, 8, 10);
    peer_expect_nothing(p);
    qhca_fault_remove(p->e, 0);
    add(p->e, "drop skip=2 every=3 count=2");
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
        add(p->e, "drop probability=0.25 opcode=response");
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
    add(p->e, "drop syndrome=0x60");
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
    add(p->e, "rnr count=2");
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

static struct peer *with(const char *rule)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    add(p->e, rule);
    return p;
}

static void dma(void **state)
{
    struct peer *p;
    uint64_t run;
    char text[64];

    (void)state;
    p = with("dma-error kind=wqe");
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

    p = with("dma-error kind=data access=read nth=2");
    post(p, 1, 1, 2 * MTU);
    peer_expect(p, SEND_FIRST, p->a.sq_psn);
    peer_cqe(p, scq, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
    peer_free(p);

    p = with("dma-error kind=data access=write");
    peer_recv(p, 1, 1000, 100);
    request(p, 0, 10);
    peer_expect_aeth(p, 0x63, p->a.rq_psn);     /* NAK: operational error */
    peer_cqe(p, rcq, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_DATA_DMA);
    peer_free(p);

    p = with("dma-error kind=cqe");
    post(p, 1, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_ack(p, p->a.sq_psn, 0x1f);
    peer_no_cqe(p, scq);
    world_run(&p->w, 100000);
    assert_int_equal(p->g.async_count[QHCA_EV_CQ_ERR], 1);
    assert_int_equal(p->g.async_count[QHCA_EV_QP_FATAL], 1);
    peer_free(p);

    p = with("dma-error kind=record");
    request(p, 0, 10);
    peer_expect_aeth(p, 0x63, p->a.rq_psn);
    qhca_fault_remove(p->e, 0);
    peer_free(p);

    /* by address: the page after next of the region */
    p = peer_new(QHCA_QPT_RC, NULL);
    snprintf(text, sizeof(text), "dma-error address=%#llx-%#llx",
             (unsigned long long)gbuf_addr(&p->mr.buf, 8192, &run),
             (unsigned long long)gbuf_addr(&p->mr.buf, 8192, &run) + 4095);
    add(p->e, text);
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
    p = with("dma-error");
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    assert_int_equal(hits(p->e, 1), 0);
    peer_free(p);
}

/* Events cannot be written, or commands read: the device fails. */
static void dma_fatal(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    add(p->e, "dma-error kind=eqe");
    gcq_arm(&p->scq, false);
    post(p, 1, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_ack(p, p->a.sq_psn, 0x1f);
    assert_int_equal(node_reg_read(p->n, QHCA_REG_STATUS, 4) >>
                     QHCA_STATUS_FATAL_SHIFT, QHCA_FATAL_EQ);
    qhca_reset(p->e);
    peer_drop(p);
}

/* The first CQE of a send queue in memory, after one send; @rules: or NULL. */
static void garbage_cqe(const char *rules, struct qhca_cqe *cqe)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    char err[256];

    assert_true(!rules || qhca_fault_parse_all(p->e, rules, err, sizeof(err)));
    post(p, 1, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_ack(p, p->a.sq_psn, 0x1f);
    assert_true(!rules || hits(p->e, 1) > 0);
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
    char text[64];
    uint64_t id;

    (void)state;
    garbage_cqe(NULL, &good);
    for (seed = 1; seed <= 20; seed++) {
        snprintf(text, sizeof(text), "seed %u\ngarbage kind=cqe", seed);
        garbage_cqe(text, &a);
        garbage_cqe(text, &again);
        assert_memory_equal(&a, &again, sizeof(a));
        differ += memcmp(&a, &good, sizeof(a)) != 0;
    }
    assert_true(differ >= 19);

    /* the payload, and only that */
    p = with("garbage kind=data");
    peer_recv(p, 1, 1000, 100);
    request(p, 0, 10);
    assert_int_equal(hits(p->e, 1), 1);
    peer_cqe(p, rcq, 1, QHCA_WC_SUCCESS, 0);
    gbuf_read(&p->mr.buf, 1000, got, sizeof(got));
    assert_memory_not_equal(got, peer_data(0, sizeof(got)), sizeof(got));
    peer_free(p);

    /* an unspecific rule spares the driver's commands */
    p = with("garbage");
    assert_int_equal(peer_state(p), QHCA_QPS_RTS);
    assert_int_equal(hits(p->e, 1), 0);
    peer_free(p);

    /* registers, all or one of them */
    p = with("garbage at=register number=0");
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
    char text[64];

    (void)state;
    gmr_create(&mr, &p->g, 65536, 0x10000, QHCA_ACCESS_MASK,
               &gbuf_flat4k);
    gbuf_allow(&mr.buf, 0, 65536, GMEM_RW);
    snprintf(text, sizeof(text), "table-error key=%u index=3-4", mr.key);
    add(p->e, text);
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
    assert_int_equal(stat(p, QHCA_STAT_TABLE_FAULTS), 1);
    assert_int_equal(hits(p->e, 1), 1);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    peer_free(p);
}

static void overflow(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    char text[64];

    (void)state;
    snprintf(text, sizeof(text), "cq-overflow cqn=%u nth=2", p->scq.cqn);
    add(p->e, text);
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
    char text[64];
    unsigned v;

    (void)state;
    one_event(p, 1);
    for (v = WORLD_VECTORS - 1; !p->n->msix[v]; v--) {
    }
    msix = &p->n->msix[v];
    before = *msix;
    snprintf(text, sizeof(text), "hold-interrupt vector=%u time=50us", v);
    add(p->e, text);
    one_event(p, 2);
    assert_int_equal(*msix, before);
    assert_int_equal(qhca_fault_held(p->e), 1);
    world_run(&p->w, 50000);
    assert_int_equal(*msix, before + 1);
    qhca_fault_remove(p->e, 0);
    snprintf(text, sizeof(text), "hold-interrupt vector=%u", v);
    add(p->e, text);
    one_event(p, 3);
    world_run(&p->w, 1000000);
    assert_int_equal(*msix, before + 1);
    qhca_fault_remove(p->e, 0);
    assert_int_equal(*msix, before + 2);
    assert_int_equal(qhca_fault_held(p->e), 0);
    world_run(&p->w, 10000);
    snprintf(text, sizeof(text), "lose-interrupt vector=%u", v);
    add(p->e, text);
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
    add(p->e, "stall-events eqn=1");
    one_event(p, 2);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before);
    qhca_fault_remove(p->e, 0);
    world_run(&p->w, 10000);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before + 1);
    one_event(p, 3);
    assert_int_equal(stat(p, QHCA_STAT_EQES), before + 2);
    peer_free(p);
}

static void fatal(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    uint32_t status;

    (void)state;
    add(p->e, "fatal at=packet nth=2");
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

static void reset(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);

    (void)state;
    add(p->e, "delay direction=both time=1ms");
    add(p->e, "hold-interrupt");
    add(p->e, "reset at=packet direction=in");
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
    add(p->e, "link-down time=2ms");
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
    id = add(p->e, "link-down");
    node_set_link(p->n, false);
    node_set_link(p->n, true);
    assert_false(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    qhca_fault_remove(p->e, id);
    assert_true(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    id = add(p->e, "link-down");
    node_set_link(p->n, false);
    qhca_fault_remove(p->e, id);
    assert_false(node_reg_read(p->n, QHCA_REG_STATUS, 4) & QHCA_STATUS_LINK);
    node_set_link(p->n, true);
    /* a reset of the adapter does not bring the link up */
    add(p->e, "link-down time=5ms");
    peer_free(p);
}

/* A debugger can wait for a fault, and nothing happens while it is stopped. */
static void stops(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_break b = { .on = QHCA_ON_INJECTED, .index = 2,
                            .fields = QHCA_BRK_INDEX };
    struct qhca_fault_rule now = { .action = QHCA_FLT_FATAL };

    (void)state;
    add(p->e, "delay time=100us nth=1");
    add(p->e, "drop nth=3");
    assert_null(qhca_break_add(p->e, &b));
    post(p, 4, 1, 10);
    assert_int_equal(p->n->stops, 1);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 1);
    world_run(&p->w, 1000000);
    peer_expect_nothing(p);
    /* stopped within a rule: a new one takes effect from the next match */
    add(p->e, "duplicate");
    assert_non_null(qhca_fault_add(p->e, &now));
    assert_non_null(qhca_fault_seed(p->e, 1));
    node_continue(p->n);
    world_run(&p->w, 1000);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 3);
    peer_expect(p, SEND_ONLY, p->a.sq_psn + 3);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    peer_expect_nothing(p);
    peer_free(p);
}

/* ---- text ---- */

static void bad_rule(const char *text, const char *hint)
{
    struct qhca_fault_rule f;
    char err[256] = "";
    const char *wrong = err;

    if (qhca_fault_parse(text, &f, err, sizeof(err))) {
        wrong = qhca_fault_check(&f);
        CHECK(wrong, "'%s' is taken", text);
    }
    CHECK(strstr(wrong, hint), "'%s': '%s' has no '%s'", text, wrong, hint);
}

static void text(void **state)
{
    static const char *const good[] = {
        "drop", "drop number=17 psn=5-9 opcode=SEND_ONLY nth=2",
        "delay opcode=response direction=both time=250us",
        "drop rel-psn=0 opcode=0x04,ACK syndrome=0x60 peer=3 qp-type=rc",
        "reorder packets=3 time=1ms skip=1 every=2 count=7",
        "corrupt probability=0.000001", "corrupt probability=1",
        "dma-error kind=wqe address=0x1000-0x1fff access=write number=9",
        "table-error kind=data index=3-7", "cq-overflow cqn=3 peer=9",
        "hold-interrupt vector=2", "stall-events eqn=0",
        "fatal at=dma kind=cqe nth=3", "link-down time=3600s", "reset",
        "rnr qpn=5 count=18446744073709551615",
        "garbage kind=cqe nth=2", "garbage at=register number=8",
    };
    struct qhca_fault_rule f, g;
    char a[QHCA_FAULT_TEXT], b[QHCA_FAULT_TEXT], err[256];
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK(qhca_fault_parse(good[i], &f, err, sizeof(err)), "%s: %s",
              good[i], err);
        CHECK(!qhca_fault_check(&f), "%s: %s", good[i],
              qhca_fault_check(&f));
        qhca_fault_format(&f, a, sizeof(a));
        CHECK(qhca_fault_parse(a, &g, err, sizeof(err)), "%s: %s", a, err);
        assert_null(qhca_fault_check(&g));
        g.fields &= ~(f.fields ^ g.fields) | f.fields;
        qhca_fault_format(&g, b, sizeof(b));
        assert_string_equal(a, b);
    }
    bad_rule("", "action is missing");
    bad_rule("dorp", "duplicate");
    bad_rule("drop 17", "FIELD=VALUE");
    bad_rule("drop qpm=17", "peer");
    bad_rule("drop qpn=x", "number");
    bad_rule("drop qpn=-1", "number");
    bad_rule("drop psn=5-", "FIRST-LAST");
    bad_rule("drop psn=16777216", "16777215");
    bad_rule("drop psn=1 rel-psn=1", "only one of psn");
    bad_rule("drop opcode=SEND_NEVER", "SEND_ONLY");
    bad_rule("drop opcode=256", "255");
    bad_rule("drop opcode=", "SEND_ONLY");
    bad_rule("drop qp-type=rd", "xrc");
    bad_rule("drop direction=up", "both");
    bad_rule("drop probability=1.5", "0 to 1");
    bad_rule("drop probability=0.1234567", "six");
    bad_rule("drop time=1ms", "only delay");
    bad_rule("delay", "1 ns");
    bad_rule("delay time=0", "1 ns");
    bad_rule("delay time=2h", "250us");
    bad_rule("delay time=3601s", "3600");
    bad_rule("drop packets=1", "duplicate and reorder");
    bad_rule("duplicate packets=257", "256");
    bad_rule("drop count=0", "never");
    bad_rule("drop index=3", "at a packet");
    bad_rule("rnr psn=3", "receive");
    bad_rule("dma-error opcode=ack", "DMA");
    bad_rule("dma-error address=2-1", "before it begins");
    bad_rule("drop at=dma", "leave 'at' out");
    bad_rule("fatal nth=3", "give 'at'");
    bad_rule("garbage access=read", "leave 'access' out");
    bad_rule("garbage at=cqe", "leave 'at' out");
    bad_rule("garbage kind=table", "writes no tables");
    bad_rule("garbage at=register kind=cqe", "its offset");
    bad_rule("fatal at=register", "only garbage");
    bad_rule("fatal at=noon", "packet");
}

static void texts(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    char err[256], many[70 * 8] = "";
    unsigned i;

    (void)state;
    assert_true(qhca_fault_parse_all(p->e, "# none\n\n ; ", err, 256));
    assert_null(qhca_fault_next(p->e, 0));
    assert_true(qhca_fault_parse_all(p->e, "seed 7\ndrop nth=3 # third\n"
                                     "rnr;fatal at=dma", err, 256));
    assert_int_equal(qhca_fault_get_seed(p->e), 7);
    assert_int_equal(qhca_fault_next(p->e, 1)->action, QHCA_FLT_RNR);
    assert_int_equal(qhca_fault_next(p->e, 2)->action, QHCA_FLT_FATAL);
    assert_null(qhca_fault_next(p->e, 3));
    /* all or nothing, and the line is reported */
    assert_false(qhca_fault_parse_all(p->e, "drop\n\ndorp", err, 256));
    assert_non_null(strstr(err, "line 3: "));
    assert_null(qhca_fault_next(p->e, 3));
    for (i = 0; i < 65; i++) {
        strcat(many, "drop\n");
    }
    assert_false(qhca_fault_parse_all(p->e, many, err, 256));
    assert_non_null(strstr(err, "64"));
    peer_free(p);
}

static void full(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_fault_rule f;
    char err[64];
    unsigned i;

    (void)state;
    for (i = 0; i < QHCA_FAULTS_MAX; i++) {
        add(p->e, "drop nth=1000000");
    }
    assert_true(qhca_fault_parse("drop", &f, err, sizeof(err)));
    assert_non_null(qhca_fault_add(p->e, &f));
    post(p, 3, 1, 10);
    peer_expect(p, SEND_ONLY, p->a.sq_psn);
    qhca_fault_remove(p->e, 0);
    assert_null(qhca_fault_next(p->e, 0));
    /* more packets are held than there is room for: the rest is lost */
    add(p->e, "duplicate packets=256 direction=out");
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
        cmocka_unit_test(packets_in),
        cmocka_unit_test(order_in),
        cmocka_unit_test(which),
        cmocka_unit_test(by_syndrome),
        cmocka_unit_test(rnr),
        cmocka_unit_test(dma),
        cmocka_unit_test(dma_fatal),
        cmocka_unit_test(garbage),
        cmocka_unit_test(table),
        cmocka_unit_test(overflow),
        cmocka_unit_test(interrupts),
        cmocka_unit_test(stall),
        cmocka_unit_test(fatal),
        cmocka_unit_test(reset),
        cmocka_unit_test(link_down),
        cmocka_unit_test(stops),
        cmocka_unit_test(text),
        cmocka_unit_test(texts),
        cmocka_unit_test(full),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
