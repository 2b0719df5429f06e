/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On-demand paging, fault by fault: what waits, what continues, what is
 * reported.
 */
#include "peer.h"
#include "godp.h"
#include "adapter/adapter.h"

#define MTU 256
#define LEN (64u << 12)
#define IOVA 0x700000000123ull

static const struct gbuf_shape flat = {
    .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12,
};
static const struct gbuf_shape tree = {
    .form = QHCA_BUF_TREE, .hops = 3, .page_shift = 12, .table_shift = 12,
};

struct t {
    struct peer *p;
    struct godp o;
    struct gmr mr;
    uint64_t faults;            /* events so far */
};

static void begin(struct t *t, uint8_t type, const struct gbuf_shape *shape)
{
    memset(t, 0, sizeof(*t));
    t->p = peer_new(type, NULL);
    godp_create(&t->o, &t->mr, &t->p->g, LEN, IOVA,
                QHCA_ACCESS_MASK, shape);
    gbuf_allow(&t->mr.buf, 0, LEN, GMEM_RW);
    gbuf_fill(&t->mr.buf, 0, 9, 0, LEN);
}

static void end(struct t *t)
{
    assert_int_equal(godp_destroy(&t->o), QHCA_ST_OK);
    assert_int_equal(qhca_stat(t->p->e, QHCA_STAT_TABLE_ERRORS), 0);
    assert_int_equal(qhca_stat(t->p->e, QHCA_STAT_DMA_ERRORS), 0);
    peer_free(t->p);
}

static const uint8_t *bytes(uint64_t off, size_t len)
{
    static uint8_t b[8192];

    pattern_bytes(9, off, b, len);
    return b;
}

/* There is one new event, and the QP waits exactly there. */
static struct qhca_page_fault fault(struct t *t, unsigned side, uint64_t off,
                               uint64_t len, bool write)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct qhca_qpc c;

    peer_run(t->p);
    guest_poll_eq(&t->p->g, 0);
    assert_int_equal(t->p->g.async_count[QHCA_EV_PAGE_FAULT], ++t->faults);
    assert_int_equal(qhca_stat(t->p->e, QHCA_STAT_PAGE_FAULTS), t->faults);
    guest_faults(&t->p->g, t->p->qp.qpn, f);
    assert_int_equal(f[side].flags, QHCA_PAGE_FAULT_VALID |
                                    (write ? QHCA_PAGE_FAULT_WRITE : 0));
    assert_int_equal(f[side].key, t->mr.key);
    assert_int_equal(f[side].addr, IOVA + off);
    assert_int_equal(f[side].len, len);
    guest_query(&t->p->g, QHCA_CMD_QUERY_QP, t->p->qp.qpn, &c, sizeof(c));
    if (side <= QHCA_PAGE_FAULT_LAND) {
        assert_int_equal(c.req_state, QHCA_REQ_WAIT_PAGE);
    } else {
        assert_int_equal(c.rsp_state, QHCA_RSP_WAIT_PAGE);
    }
    return f[side];
}

static void no_fault(struct t *t)
{
    peer_run(t->p);
    guest_poll_eq(&t->p->g, 0);
    assert_int_equal(t->p->g.async_count[QHCA_EV_PAGE_FAULT], t->faults);
}

static void resume(struct t *t, unsigned side, const struct qhca_page_fault *f,
                   bool failed)
{
    assert_int_equal(guest_resume(&t->p->g, t->p->qp.qpn, side, f->token,
                                  failed), QHCA_ST_OK);
}

static void provide(struct t *t, unsigned side, const struct qhca_page_fault *f)
{
    godp_in(&t->o, f->addr - IOVA, f->len, f->flags & QHCA_PAGE_FAULT_WRITE);
    resume(t, side, f, false);
}

static void post(struct t *t, struct gwr wr, uint64_t off, uint32_t len)
{
    wr.num_sge = 1;
    wr.sge[0] = (struct qhca_sge){ IOVA + off, len, t->mr.key };
    wr.flags |= QHCA_WQE_F_SIGNALED;
    peer_post(t->p, wr, 0, 0);
}

#define READ_OR_WRITE .rkey = 1, .remote_addr = 0x1000

/* Data to send: the packet waits, earlier ones have been sent. */
static void local_read(void **state)
{
    struct peer *p;
    struct t t;
    struct qhca_page_fault f;
    const struct pframe *fr;
    uint32_t s;
    unsigned i;

    (void)state;
    begin(&t, QHCA_QPT_RC, &tree);
    p = t.p;
    s = p->a.sq_psn;
    /* the first page has 4096 - 0x123 bytes; the message starts 256 before */
    godp_in(&t.o, 0, 1, false);
    post(&t, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 1,
                           READ_OR_WRITE }, 4096 - 0x123 - 256, 1000);
    fr = peer_expect(p, WRITE_FIRST, s);
    assert_memory_equal(fr->ext + 16, bytes(4096 - 0x123 - 256, 256), 256);
    peer_expect_nothing(p);
    f = fault(&t, QHCA_PAGE_FAULT_SEND, 4096 - 0x123, 1000 - 256, false);
    /* time passes: waiting must not cause a timeout */
    world_run(&p->w, 1000000000);
    peer_expect_nothing(p);
    peer_no_cqe(p, scq);
    /* only this side can be resumed */
    assert_int_equal(guest_resume(&p->g, p->qp.qpn, QHCA_PAGE_FAULT_SEND,
                                  f.token + 1, false), QHCA_ST_BAD_STATE);
    assert_int_equal(guest_resume(&p->g, p->qp.qpn, QHCA_PAGE_FAULT_LAND,
                                  f.token, false), QHCA_ST_BAD_STATE);
    assert_int_equal(guest_resume(&p->g, p->qp.qpn, 4, f.token, false),
                     QHCA_ST_BAD_PARAM);
    assert_int_equal(guest_resume(&p->g, p->qp.qpn + 5, 0, f.token, false),
                     QHCA_ST_BAD_OBJ);
    /* resumed without the page: the same fault again */
    resume(&t, QHCA_PAGE_FAULT_SEND, &f, false);
    f = fault(&t, QHCA_PAGE_FAULT_SEND, 4096 - 0x123, 1000 - 256, false);
    provide(&t, QHCA_PAGE_FAULT_SEND, &f);
    for (i = 1; i < 4; i++) {
        fr = peer_expect(p, i < 3 ? WRITE_MIDDLE : WRITE_LAST, s + i);
        assert_memory_equal(fr->ext, bytes(4096 - 0x123 + (i - 1) * 256,
                                           256), i < 3 ? 256 : 1000 - 768);
    }
    assert_int_equal(guest_resume(&p->g, p->qp.qpn, QHCA_PAGE_FAULT_SEND,
                                  f.token, false), QHCA_ST_BAD_STATE);
    peer_ack(p, s + 3, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    no_fault(&t);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_TIMEOUTS), 0);
    end(&t);
}

/* Software has no such page: as if the MR did not allow the access. */
static void local_read_fails(void **state)
{
    struct qhca_page_fault f;
    struct t t;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    post(&t, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 7 }, 0, 100);
    f = fault(&t, QHCA_PAGE_FAULT_SEND, 0, 100, false);
    resume(&t, QHCA_PAGE_FAULT_SEND, &f, true);
    peer_cqe(t.p, scq, 7, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_PAGE_FAULT);
    assert_int_equal(peer_state(t.p), QHCA_QPS_ERR);
    peer_expect_nothing(t.p);
    no_fault(&t);
    end(&t);
}

/* A failure applies to the access that faulted, not to a later one. */
static void failed_then_there(void **state)
{
    struct peer *p;
    struct qhca_page_fault f;
    struct t t;
    uint32_t s;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    s = p->a.sq_psn;
    post(&t, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1 }, 0, 100);
    f = fault(&t, QHCA_PAGE_FAULT_SEND, 0, 100, false);
    godp_in(&t.o, 0, 100, false);       /* the page is there already */
    resume(&t, QHCA_PAGE_FAULT_SEND, &f, true);
    peer_expect(p, SEND_ONLY, s);
    godp_out(&t.o, 0, 100);
    post(&t, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 2 }, 0, 100);
    f = fault(&t, QHCA_PAGE_FAULT_SEND, 0, 100, false);
    provide(&t, QHCA_PAGE_FAULT_SEND, &f);
    peer_expect(p, SEND_ONLY, s + 1);
    peer_ack(p, s + 1, 0x1f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_cqe(p, scq, 2, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    end(&t);
}

/* The response packet is kept; later ones are requested again. */
static void landing(void **state)
{
    struct peer *p;
    struct qhca_page_fault f;
    const struct pframe *fr;
    struct t t;
    uint32_t s;

    (void)state;
    begin(&t, QHCA_QPT_RC, &tree);
    p = t.p;
    s = p->a.sq_psn;
    post(&t, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                           READ_OR_WRITE }, 8192, 700);
    peer_expect(p, READ_REQ, s);
    peer_tx(p, .op = RESP_FIRST, .psn = s, .syn = 0x1f,
            .data = peer_data(0, 256), .len = 256);
    f = fault(&t, QHCA_PAGE_FAULT_LAND, 8192, 700, true);
    peer_tx(p, .op = RESP_MIDDLE, .psn = s + 1, .data = peer_data(256, 256),
            .len = 256);
    peer_tx(p, .op = RESP_LAST, .psn = s + 2, .syn = 0x1f,
            .data = peer_data(512, 188), .len = 188);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_PAGE_FAULT_DROPS), 2);
    world_run(&p->w, 1000000000);
    peer_expect_nothing(p);
    peer_no_cqe(p, scq);
    provide(&t, QHCA_PAGE_FAULT_LAND, &f);
    fr = peer_expect(p, READ_REQ, s + 1);
    assert_int_equal(peer_be64(fr->ext), 0x1000 + 256);
    assert_int_equal(peer_be32(fr->ext + 12), 700 - 256);
    peer_tx(p, .op = RESP_FIRST, .psn = s + 1, .syn = 0x1f,
            .data = peer_data(256, 256), .len = 256);
    peer_tx(p, .op = RESP_LAST, .psn = s + 2, .syn = 0x1f,
            .data = peer_data(512, 188), .len = 188);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(gbuf_verify(&t.mr.buf, 8192, 7, 0, 700), 700);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_TIMEOUTS), 0);
    end(&t);
}

/* A single packet is not even requested again: an atomic's result. */
static void landing_alone(void **state)
{
    struct peer *p;
    struct qhca_page_fault f;
    struct t t;
    uint64_t v;
    uint32_t s;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    s = p->a.sq_psn;
    post(&t, (struct gwr){ .opcode = QHCA_WQE_FETCH_ADD, .wr_id = 1,
                           READ_OR_WRITE }, 0, 8);
    peer_expect(p, FETCH_ADD, s);
    godp_in(&t.o, 0, 8, false);         /* read access is not enough */
    peer_tx(p, .op = ATOMIC_ACK, .psn = s, .syn = 0x1f, .swap = 0x1234);
    f = fault(&t, QHCA_PAGE_FAULT_LAND, 0, 8, true);
    provide(&t, QHCA_PAGE_FAULT_LAND, &f);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_expect_nothing(p);
    gbuf_read(&t.mr.buf, 0, &v, 8);
    assert_int_equal(v, 0x1234);
    end(&t);
}

static void landing_fails(void **state)
{
    struct qhca_page_fault f;
    struct t t;
    uint32_t s;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    s = t.p->a.sq_psn;
    post(&t, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                           READ_OR_WRITE }, 0, 100);
    peer_expect(t.p, READ_REQ, s);
    peer_tx(t.p, .op = RESP_ONLY, .psn = s, .syn = 0x1f,
            .data = peer_data(0, 100), .len = 100);
    f = fault(&t, QHCA_PAGE_FAULT_LAND, 0, 100, true);
    resume(&t, QHCA_PAGE_FAULT_LAND, &f, true);
    peer_cqe(t.p, scq, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_PAGE_FAULT);
    end(&t);
}

/*
 * A request waits: later ones are dropped and requested by one NAK, while
 * duplicates and our own requests continue.
 */
static void request(void **state)
{
    struct peer *p;
    struct qhca_page_fault f;
    struct t t;
    uint32_t s, q;

    (void)state;
    begin(&t, QHCA_QPT_RC, &tree);
    p = t.p;
    s = p->a.rq_psn;
    q = p->a.sq_psn;
    peer_tx(p, .op = WRITE_ONLY, .psn = s, .va = PEER_IOVA, .rkey = p->mr.key,
            .dmalen = 4, .data = "AAAA", .len = 4, .ackreq = true);
    peer_expect_aeth(p, 0x1f, s);
    peer_tx(p, .op = WRITE_FIRST, .psn = s + 1, .va = IOVA + 4096,
            .rkey = t.mr.key, .dmalen = 600, .data = peer_data(0, MTU),
            .len = MTU);
    f = fault(&t, QHCA_PAGE_FAULT_RECV, 4096, 600, true);
    peer_tx(p, .op = WRITE_MIDDLE, .psn = s + 2, .data = peer_data(MTU, MTU),
            .len = MTU);
    peer_tx(p, .op = WRITE_LAST, .psn = s + 3,
            .data = peer_data(2 * MTU, 88), .len = 88, .ackreq = true);
    peer_expect_nothing(p);             /* no NAK, no RNR */
    /* an earlier duplicate is answered */
    peer_tx(p, .op = WRITE_ONLY, .psn = s, .va = PEER_IOVA, .rkey = p->mr.key,
            .dmalen = 4, .data = "BBBB", .len = 4, .ackreq = true);
    peer_expect_aeth(p, 0x1f, s);
    /* our own requests continue */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 3,
                               .flags = QHCA_WQE_F_SIGNALED }, 0, 10);
    peer_expect(p, SEND_ONLY, q);
    peer_ack(p, q, 0x1f);
    peer_cqe(p, scq, 3, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    peer_expect_aeth(p, 0x60, s + 2);
    peer_tx(p, .op = WRITE_MIDDLE, .psn = s + 2, .data = peer_data(MTU, MTU),
            .len = MTU);
    peer_tx(p, .op = WRITE_LAST, .psn = s + 3,
            .data = peer_data(2 * MTU, 88), .len = 88, .ackreq = true);
    peer_expect_aeth(p, 0x1f, s + 3);
    assert_int_equal(gbuf_verify(&t.mr.buf, 4096, 7, 0, 600), 600);
    no_fault(&t);
    end(&t);
}

/*
 * A single message is only late.  If the peer times out and retransmits it,
 * that copy is executed, and acknowledged as it requests.
 */
static void request_alone(void **state)
{
    struct peer *p;
    struct qhca_page_fault f;
    struct t t;
    uint32_t s;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    s = p->a.rq_psn;
    {
        struct qhca_sge sge = { IOVA + 100, 20000, t.mr.key };

        assert_true(gqp_post_recv(&p->qp, 5, &sge, 1));
    }
    peer_tx(p, .op = SEND_ONLY, .psn = s, .data = "hello", .len = 5);
    f = fault(&t, QHCA_PAGE_FAULT_RECV, 100, 5, true);
    peer_tx(p, .op = SEND_ONLY, .psn = s, .data = "hello", .len = 5,
            .ackreq = true);
    peer_expect_nothing(p);
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    peer_expect_aeth(p, 0x1f, s);
    peer_cqe(p, rcq, 5, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    peer_expect_nothing(p);
    assert_int_equal(p->cqe.byte_len, 5);
    /* an atomic needs write access */
    godp_out(&t.o, 0, LEN);
    godp_in(&t.o, 0, LEN, false);
    peer_tx(p, .op = FETCH_ADD, .psn = s + 1, .va = IOVA + 5,
            .rkey = t.mr.key, .swap = 1);
    f = fault(&t, QHCA_PAGE_FAULT_RECV, 5, 8, true);
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    peer_expect(p, ATOMIC_ACK, s + 1);
    end(&t);
}

/* A slow disk: a peer that asks for the third time gets an RNR NAK. */
static void impatient_peer(void **state)
{
    struct peer *p;
    struct qhca_page_fault f;
    struct t t;
    uint32_t s;
    unsigned i;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    s = p->a.rq_psn;
    peer_tx(p, .op = READ_REQ, .psn = s, .va = IOVA, .rkey = t.mr.key,
            .dmalen = 300);
    f = fault(&t, QHCA_PAGE_FAULT_READ, 0, 300, false);
    peer_tx(p, .op = READ_REQ, .psn = s, .va = IOVA, .rkey = t.mr.key,
            .dmalen = 300);
    peer_expect_nothing(p);
    for (i = 0; i < 3; i++) {
        peer_tx(p, .op = READ_REQ, .psn = s, .va = IOVA, .rkey = t.mr.key,
                .dmalen = 300);
        peer_expect_aeth(p, 0x20 | p->a.min_rnr_timer, s);
        peer_expect_nothing(p);
    }
    provide(&t, QHCA_PAGE_FAULT_READ, &f);
    peer_expect(p, RESP_FIRST, s);
    peer_expect(p, RESP_LAST, s + 1);
    peer_expect_nothing(p);
    peer_tx(p, .op = WRITE_ONLY, .psn = s + 2, .va = IOVA + 8192,
            .rkey = t.mr.key, .dmalen = 1, .data = "x", .len = 1);
    f = fault(&t, QHCA_PAGE_FAULT_RECV, 8192, 1, true);
    for (i = 0; i < 4; i++) {
        peer_tx(p, .op = WRITE_ONLY, .psn = s + 2, .va = IOVA + 8192,
                .rkey = t.mr.key, .dmalen = 1, .data = "x", .len = 1,
                .ackreq = true);
        if (i) {
            peer_expect_aeth(p, 0x20 | p->a.min_rnr_timer, s + 2);
        }
        peer_expect_nothing(p);
    }
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    peer_expect_aeth(p, 0x1f, s + 2);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RNR_NAK_TX), 6);
    end(&t);
}

/* All pages of a request count, but only one request. */
static void impatient_by_pages(void **state)
{
    struct qhca_sge sge[3];
    struct qhca_page_fault f;
    struct peer *p;
    struct t t;
    unsigned i, k;
    uint32_t s;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    for (k = 0; k < 2; k++) {
        s = p->a.rq_psn + k;
        for (i = 0; i < 3; i++) {
            sge[i] = (struct qhca_sge){ IOVA + (3 * k + i) * 4096, 10,
                                        t.mr.key };
        }
        assert_true(gqp_post_recv(&p->qp, k, sge, 3));
        for (i = 0; i < 3; i++) {
            if (!i) {
                peer_tx(p, .op = SEND_ONLY, .psn = s,
                        .data = peer_data(0, 30), .len = 30, .ackreq = true);
            }
            f = fault(&t, QHCA_PAGE_FAULT_RECV, (3 * k + i) * 4096, 10, true);
            peer_tx(p, .op = SEND_ONLY, .psn = s, .data = peer_data(0, 30),
                    .len = 30, .ackreq = true);
            if (i) {
                peer_expect_aeth(p, 0x20 | p->a.min_rnr_timer, s);
            }
            peer_expect_nothing(p);
            provide(&t, QHCA_PAGE_FAULT_RECV, &f);
        }
        peer_expect_aeth(p, 0x1f, s);
        peer_cqe(p, rcq, k, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    }
    no_fault(&t);
    end(&t);
}

/* A QP that starts anew has another peer. */
static void impatient_before_reset(void **state)
{
    struct peer *p;
    struct t t;
    unsigned i, k;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    for (k = 0; k < 2; k++) {
        if (k) {
            assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
            gqp_clear(&p->qp);
            gqp_to_init(&p->qp, &p->a);
            gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
            gqp_to_rts(&p->qp, &p->a);
        }
        for (i = 0; i < 2; i++) {
            peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn, .va = IOVA,
                    .rkey = t.mr.key, .dmalen = 1, .data = "x", .len = 1);
            if (!i) {
                fault(&t, QHCA_PAGE_FAULT_RECV, 0, 1, true);
            }
            peer_expect_nothing(p);
        }
    }
    end(&t);
}

/* Request @n packets of the first page from number @at on; @s is number 0. */
static void read_part(struct t *t, uint32_t s, uint32_t at, uint32_t n)
{
    peer_tx(t->p, .op = READ_REQ, .psn = s + at, .va = IOVA + at * MTU,
            .rkey = t->mr.key, .dmalen = n * MTU);
}

/* Its window shrinks with each timeout, so it asks for less each time. */
static void impatient_in_parts(void **state)
{
    static const uint32_t parts[] = { 8, 2, 1, 1 };
    struct peer *p;
    struct qhca_page_fault f;
    struct t t;
    uint32_t s;
    unsigned i;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    s = p->a.rq_psn;
    read_part(&t, s, 0, 16);
    f = fault(&t, QHCA_PAGE_FAULT_READ, 0, 16 * MTU, false);
    for (i = 0; i < 4; i++) {
        read_part(&t, s, 0, parts[i]);
        if (i) {
            peer_expect_aeth(p, 0x20 | p->a.min_rnr_timer, s);
        }
        peer_expect_nothing(p);
        /* what it asks for at the same time does not count */
        read_part(&t, s, parts[i], parts[i]);
        peer_expect_nothing(p);
    }
    provide(&t, QHCA_PAGE_FAULT_READ, &f);
    for (i = 0; i < 16; i++) {
        peer_expect(p, i == 0 ? RESP_FIRST : i < 15 ? RESP_MIDDLE : RESP_LAST,
                    s + i);
    }
    peer_expect_nothing(p);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RNR_NAK_TX), 3);
    end(&t);
}

/* It repeats another READ, which was answered: that has to wait its turn. */
static void impatient_about_another(void **state)
{
    const uint64_t at = 4096 - 0x123;
    struct qhca_page_fault f;
    struct peer *p;
    struct t t;
    uint32_t s;
    unsigned i;

    (void)state;
    begin(&t, QHCA_QPT_RC, &tree);
    p = t.p;
    s = p->a.rq_psn;
    godp_in(&t.o, 0, 1, false);
    peer_tx(p, .op = READ_REQ, .psn = s, .va = IOVA, .rkey = t.mr.key,
            .dmalen = 10);
    peer_expect(p, RESP_ONLY, s);
    peer_tx(p, .op = READ_REQ, .psn = s + 1, .va = IOVA + at,
            .rkey = t.mr.key, .dmalen = 10);
    f = fault(&t, QHCA_PAGE_FAULT_READ, at, 10, false);
    for (i = 0; i < 3; i++) {
        peer_tx(p, .op = READ_REQ, .psn = s, .va = IOVA, .rkey = t.mr.key,
                .dmalen = 10);
        peer_expect_nothing(p);
    }
    provide(&t, QHCA_PAGE_FAULT_READ, &f);
    peer_expect(p, RESP_ONLY, s + 1);
    peer_expect(p, RESP_ONLY, s);
    peer_expect_nothing(p);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_ROCE_RNR_NAK_TX), 0);
    end(&t);
}

/* It also lacks what was sent before the page that is not there. */
static void impatient_further_back(void **state)
{
    const uint64_t from = 4096 - 0x123 - 4 * MTU;
    struct qhca_page_fault f;
    struct peer *p;
    struct t t;
    uint32_t s;
    unsigned i;

    (void)state;
    begin(&t, QHCA_QPT_RC, &tree);
    p = t.p;
    s = p->a.rq_psn;
    godp_in(&t.o, 0, 1, false);
    peer_tx(p, .op = READ_REQ, .psn = s, .va = IOVA + from,
            .rkey = t.mr.key, .dmalen = 7 * MTU + 10);
    for (i = 0; i < 4; i++) {
        peer_expect(p, i ? RESP_MIDDLE : RESP_FIRST, s + i);
    }
    f = fault(&t, QHCA_PAGE_FAULT_READ, from + 4 * MTU, 3 * MTU + 10, false);
    for (i = 0; i < 2; i++) {
        peer_tx(p, .op = READ_REQ, .psn = s + 2, .va = IOVA + from + 2 * MTU,
                .rkey = t.mr.key, .dmalen = 4 * MTU);
        if (i) {
            peer_expect_aeth(p, 0x20 | p->a.min_rnr_timer, s + 2);
        }
        peer_expect_nothing(p);
    }
    provide(&t, QHCA_PAGE_FAULT_READ, &f);
    for (i = 2; i < 8; i++) {
        const struct pframe *fr = peer_expect(p, i == 2 ? RESP_FIRST :
                                              i < 7 ? RESP_MIDDLE : RESP_LAST,
                                              s + i);

        assert_memory_equal(fr->ext + (i == 2 || i == 7 ? 4 : 0),
                            bytes(from + i * MTU, MTU), i < 7 ? MTU : 10);
    }
    peer_expect_nothing(p);
    end(&t);
}

/* A peer that goes back on and on does not make one READ of several. */
static void impatient_without_end(void **state)
{
    struct qhca_page_fault f;
    struct peer *p;
    struct qhca_resp *r;
    struct qhca_xport *xp;
    struct t t;
    uint32_t s;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    s = p->a.rq_psn;
    read_part(&t, s, 0, 4);
    f = fault(&t, QHCA_PAGE_FAULT_READ, 0, 4 * MTU, false);
    xp = qhca_qp_get(p->e, p->qp.qpn)->xp;
    r = &xp->rspq[xp->rspq_tail % QHCA_RSPQ];
    r->left = QHCA_MAX_MSG_SIZE;
    r->psn = s + 1;
    read_part(&t, s, 0, 2);
    assert_int_equal(r->psn, s);
    assert_int_equal(r->left, 2 * MTU);
    provide(&t, QHCA_PAGE_FAULT_READ, &f);
    peer_expect(p, RESP_FIRST, s);
    peer_expect(p, RESP_LAST, s + 1);
    peer_expect_nothing(p);
    end(&t);
}

static void request_fails(void **state)
{
    static const bool sends[] = { false, true };
    struct qhca_page_fault f;
    struct peer *p;
    struct t t;
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        begin(&t, QHCA_QPT_RC, &flat);
        p = t.p;
        if (sends[i]) {
            struct qhca_sge sge = { IOVA, 100, t.mr.key };

            assert_true(gqp_post_recv(&p->qp, 5, &sge, 1));
            peer_tx(p, .op = SEND_ONLY, .psn = p->a.rq_psn, .data = "x",
                    .len = 1);
        } else {
            peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn, .va = IOVA,
                    .rkey = t.mr.key, .dmalen = 1, .data = "x", .len = 1);
        }
        f = fault(&t, QHCA_PAGE_FAULT_RECV, 0, 1, true);
        resume(&t, QHCA_PAGE_FAULT_RECV, &f, true);
        if (sends[i]) {
            peer_expect_aeth(p, 0x63, p->a.rq_psn);
            peer_cqe(p, rcq, 5, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_PAGE_FAULT);
        } else {
            peer_expect_aeth(p, 0x62, p->a.rq_psn);
            assert_int_equal(p->g.async_count[QHCA_EV_QP_ACCESS_ERR], 1);
        }
        assert_int_equal(peer_state(p), QHCA_QPS_ERR);
        end(&t);
    }
}

/* READ responses wait in the queue; requests are executed meanwhile. */
static void read_response(void **state)
{
    struct peer *p;
    const struct pframe *fr;
    struct qhca_page_fault f;
    struct t t;
    uint32_t s;

    (void)state;
    begin(&t, QHCA_QPT_RC, &tree);
    p = t.p;
    s = p->a.rq_psn;
    godp_in(&t.o, 0, 1, false);
    peer_tx(p, .op = READ_REQ, .psn = s, .va = IOVA + 4096 - 0x123 - MTU,
            .rkey = t.mr.key, .dmalen = 600);
    fr = peer_expect(p, RESP_FIRST, s);
    assert_memory_equal(fr->ext + 4, bytes(4096 - 0x123 - MTU, MTU), MTU);
    f = fault(&t, QHCA_PAGE_FAULT_READ, 4096 - 0x123, 600 - MTU, false);
    peer_tx(p, .op = WRITE_ONLY, .psn = s + 3, .va = PEER_IOVA,
            .rkey = p->mr.key, .dmalen = 4, .data = "AAAA", .len = 4,
            .ackreq = true);
    peer_expect_nothing(p);             /* its ACK comes after the response */
    {
        uint8_t got[4];

        gbuf_read(&p->mr.buf, 0, got, 4);
        assert_memory_equal(got, "AAAA", 4);
    }
    provide(&t, QHCA_PAGE_FAULT_READ, &f);
    fr = peer_expect(p, RESP_MIDDLE, s + 1);
    assert_memory_equal(fr->ext, bytes(4096 - 0x123, MTU), MTU);
    peer_expect(p, RESP_LAST, s + 2);
    peer_expect_aeth(p, 0x1f, s + 3);
    /* and if there is no page: access error, at the PSN it is due */
    peer_tx(p, .op = READ_REQ, .psn = s + 4, .va = IOVA + 3 * 4096,
            .rkey = t.mr.key, .dmalen = 1);
    f = fault(&t, QHCA_PAGE_FAULT_READ, 3 * 4096, 1, false);
    resume(&t, QHCA_PAGE_FAULT_READ, &f, true);
    peer_expect_aeth(p, 0x62, s + 4);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    end(&t);
}

/* A response that is due before a NAK still waits in ERR, and the NAK with it. */
static void read_before_nak(void **state)
{
    struct qhca_page_fault f;
    struct peer *p;
    struct t t;
    uint32_t s;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    s = p->a.rq_psn;
    peer_tx(p, .op = READ_REQ, .psn = s, .va = IOVA, .rkey = t.mr.key,
            .dmalen = 2 * MTU);
    f = fault(&t, QHCA_PAGE_FAULT_READ, 0, 2 * MTU, false);
    peer_tx(p, .op = SEND_LAST, .psn = s + 2, .data = "x", .len = 1);
    assert_int_equal(peer_state(p), QHCA_QPS_ERR);
    peer_expect_nothing(p);
    provide(&t, QHCA_PAGE_FAULT_READ, &f);
    peer_expect(p, RESP_FIRST, s);
    peer_expect(p, RESP_LAST, s + 1);
    peer_expect_aeth(p, 0x61, s + 2);
    peer_expect_nothing(p);
    end(&t);
}

/* Both directions wait at once, and resume one by one. */
static void all_sides(void **state)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct peer *p;
    struct t t;
    uint32_t s, q;

    (void)state;
    begin(&t, QHCA_QPT_RC, &tree);
    p = t.p;
    s = p->a.rq_psn;
    q = p->a.sq_psn;
    post(&t, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                           READ_OR_WRITE }, 0, 10);
    post(&t, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 2 }, 4096, 10);
    peer_expect(p, READ_REQ, q);
    fault(&t, QHCA_PAGE_FAULT_SEND, 4096, 10, false);
    peer_tx(p, .op = RESP_ONLY, .psn = q, .syn = 0x1f, .data = "0123456789",
            .len = 10);
    fault(&t, QHCA_PAGE_FAULT_LAND, 0, 10, true);
    peer_tx(p, .op = READ_REQ, .psn = s, .va = IOVA + 8192,
            .rkey = t.mr.key, .dmalen = 10);
    fault(&t, QHCA_PAGE_FAULT_READ, 8192, 10, false);
    peer_tx(p, .op = WRITE_ONLY, .psn = s + 1, .va = IOVA + 5 * 4096,
            .rkey = t.mr.key, .dmalen = 10, .data = "0123456789",
            .len = 10, .ackreq = true);
    fault(&t, QHCA_PAGE_FAULT_RECV, 5 * 4096, 10, true);
    guest_faults(&p->g, p->qp.qpn, f);
    provide(&t, QHCA_PAGE_FAULT_LAND, &f[QHCA_PAGE_FAULT_LAND]);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    provide(&t, QHCA_PAGE_FAULT_RECV, &f[QHCA_PAGE_FAULT_RECV]);
    peer_expect_nothing(p);
    provide(&t, QHCA_PAGE_FAULT_SEND, &f[QHCA_PAGE_FAULT_SEND]);
    peer_expect(p, SEND_ONLY, q + 1);
    provide(&t, QHCA_PAGE_FAULT_READ, &f[QHCA_PAGE_FAULT_READ]);
    peer_expect(p, RESP_ONLY, s);
    peer_expect_aeth(p, 0x1f, s + 1);
    guest_faults(&p->g, p->qp.qpn, f);
    assert_int_equal(f[0].flags | f[1].flags | f[2].flags | f[3].flags, 0);
    end(&t);
}

/* RESET, ERR and DESTROY end all waiting; a late answer is refused. */
static void waiting_ends(void **state)
{
    struct qhca_page_fault f;
    struct peer *p;
    struct t t;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    post(&t, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1 }, 0, 10);
    f = fault(&t, QHCA_PAGE_FAULT_SEND, 0, 10, false);
    peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn, .va = IOVA,
            .rkey = t.mr.key, .dmalen = 1, .data = "x", .len = 1);
    fault(&t, QHCA_PAGE_FAULT_RECV, 0, 1, true);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_ERR), QHCA_ST_OK);
    peer_cqe(p, scq, 1, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
    assert_int_equal(guest_resume(&p->g, p->qp.qpn, QHCA_PAGE_FAULT_SEND,
                                  f.token, false), QHCA_ST_BAD_STATE);
    assert_int_equal(gqp_state(&p->qp, QHCA_QPS_RESET), QHCA_ST_OK);
    gqp_clear(&p->qp);
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    gqp_to_rts(&p->qp, &p->a);
    post(&t, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1 }, 0, 10);
    fault(&t, QHCA_PAGE_FAULT_SEND, 0, 10, false);
    peer_tx(p, .op = WRITE_ONLY, .psn = p->a.rq_psn, .va = IOVA,
            .rkey = t.mr.key, .dmalen = 1, .data = "x", .len = 1);
    fault(&t, QHCA_PAGE_FAULT_RECV, 0, 1, true);
    end(&t);                            /* destroyed with everything waiting */
}

/* The device must not use removed pages, nor miss new ones. */
static void invalidation(void **state)
{
    struct peer *p;
    struct qhca_page_fault f;
    struct t t;
    uint32_t s;
    unsigned i;

    (void)state;
    begin(&t, QHCA_QPT_RC, &tree);
    p = t.p;
    s = p->a.rq_psn;
    /* two pages of one block of entries, the leaf in the cache */
    godp_in(&t.o, 0, 2 * 4096, true);
    for (i = 0; i < 3; i++) {
        peer_tx(p, .op = WRITE_ONLY, .psn = s + i, .va = IOVA,
                .rkey = t.mr.key, .dmalen = 2, .data = "xy", .len = 2,
                .ackreq = true);
        if (i) {
            f = fault(&t, QHCA_PAGE_FAULT_RECV, 0, 2, true);
            if (i == 1) {
                godp_out_table(&t.o, 0);
            }
            provide(&t, QHCA_PAGE_FAULT_RECV, &f);
        }
        peer_expect_aeth(p, 0x1f, s + i);
        godp_out(&t.o, 0, 1);
    }
    /* the neighbour was in the same block and is gone too */
    godp_out(&t.o, 4096, 1);
    peer_tx(p, .op = READ_REQ, .psn = s + 3, .va = IOVA + 4096,
            .rkey = t.mr.key, .dmalen = 4);
    f = fault(&t, QHCA_PAGE_FAULT_READ, 4096, 4, false);
    provide(&t, QHCA_PAGE_FAULT_READ, &f);
    peer_expect(p, RESP_ONLY, s + 3);
    /* read access does not allow writing, also if the leaf is cached */
    peer_tx(p, .op = WRITE_ONLY, .psn = s + 4, .va = IOVA + 4096,
            .rkey = t.mr.key, .dmalen = 2, .data = "xy", .len = 2);
    f = fault(&t, QHCA_PAGE_FAULT_RECV, 4096, 2, true);
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_DB_BAD_OBJECT), 0);
    /* a key that does not exist (any more) is no error, a user's page is */
    guest_doorbell(&p->g, 0, QHCA_DB_MR_SYNC, 0xffffff);
    guest_doorbell(&p->g, 0, QHCA_DB_MR_SYNC, p->mr.key >> 8);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_DB_BAD_OBJECT), 0);
    guest_doorbell(&p->g, p->g.uar, QHCA_DB_MR_SYNC, t.mr.key >> 8);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_DB_BAD_OWNER), 1);
    end(&t);
}

/* A datagram waits too; the receive that was taken is not lost. */
static void datagrams(void **state)
{
    struct peer *p;
    struct qhca_page_fault f;
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .wr_id = 1, .dest_qpn = 9,
                      .qkey = 5 };
    struct qhca_sge sge;
    struct t t;

    (void)state;
    begin(&t, QHCA_QPT_UD, &tree);
    p = t.p;
    guest_av(&p->g, &p->w.node[1], 0, &wr.av);
    post(&t, wr, 0, 100);
    f = fault(&t, QHCA_PAGE_FAULT_SEND, 0, 100, false);
    peer_expect_nothing(p);
    provide(&t, QHCA_PAGE_FAULT_SEND, &f);
    assert_int_equal(peer_next(p)->op, UD_ONLY);
    peer_cqe(p, scq, 1, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    sge = (struct qhca_sge){ IOVA + 8192, 200, t.mr.key };
    assert_true(gqp_post_recv(&p->qp, 5, &sge, 1));
    assert_true(gqp_post_recv(&p->qp, 6, &sge, 1));
    peer_tx(p, .op = UD_ONLY, .psn = 1, .rkey = p->a.qkey, .data = "one",
            .len = 3);
    f = fault(&t, QHCA_PAGE_FAULT_RECV, 8192, 200, true);
    peer_tx(p, .op = UD_ONLY, .psn = 2, .rkey = p->a.qkey, .data = "two",
            .len = 3);
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_PAGE_FAULT_DROPS), 1);
    provide(&t, QHCA_PAGE_FAULT_RECV, &f);
    peer_cqe(p, rcq, 5, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(p->cqe.byte_len, 43);
    peer_tx(p, .op = UD_ONLY, .psn = 3, .rkey = p->a.qkey, .data = "three",
            .len = 5);
    peer_cqe(p, rcq, 6, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    /* no page at all */
    godp_out(&t.o, 0, LEN);
    post(&t, wr, 0, 100);
    f = fault(&t, QHCA_PAGE_FAULT_SEND, 0, 100, false);
    resume(&t, QHCA_PAGE_FAULT_SEND, &f, true);
    peer_cqe(p, scq, 1, QHCA_WC_LOC_PROT_ERR, QHCA_SYN_PAGE_FAULT);
    assert_int_equal(peer_state(p), QHCA_QPS_SQE);
    end(&t);
}

static unsigned raw_frames;

static bool count_frames(struct world *w, unsigned src, uint8_t *frame,
                         size_t *len)
{
    (void)w;
    (void)src;
    assert_int_equal(*len, 200);
    assert_memory_equal(frame, bytes(500, 200), 200);
    raw_frames++;
    return false;
}

/* Frames of a raw packet QP wait, and continue in order. */
static void raw_packets(void **state)
{
    struct gqp_init qi = {
        .type = QHCA_QPT_RAW, .sq_shift = 4, .sq_stride = 7, .rq_shift = 4,
        .rq_stride = 5,
    };
    struct gwr wr = { .opcode = QHCA_WQE_RAW_SEND,
                      .flags = QHCA_WQE_F_SIGNALED };
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct qhca_cqe c;
    struct gqp qp;
    struct peer *p;
    struct t t;
    unsigned i;

    (void)state;
    begin(&t, QHCA_QPT_RC, &flat);
    p = t.p;
    p->w.wire.filter = count_frames;
    raw_frames = 0;
    qi.scq = &p->scq;
    qi.rcq = &p->rcq;
    gqp_create(&qp, &p->g, &qi);
    assert_int_equal(gqp_state(&qp, QHCA_QPS_INIT), QHCA_ST_OK);
    assert_int_equal(gqp_state(&qp, QHCA_QPS_RTR), QHCA_ST_OK);
    assert_int_equal(gqp_state(&qp, QHCA_QPS_RTS), QHCA_ST_OK);
    wr.num_sge = 1;
    wr.sge[0] = (struct qhca_sge){ IOVA + 500, 200, t.mr.key };
    for (i = 0; i < 3; i++) {
        wr.wr_id = i;
        assert_true(gqp_post_send(&qp, &wr));
    }
    gqp_ring(&qp);
    peer_run(p);
    guest_poll_eq(&p->g, 0);
    assert_int_equal(p->g.async_count[QHCA_EV_PAGE_FAULT], 1);
    assert_int_equal(raw_frames, 0);
    guest_faults(&p->g, qp.qpn, f);
    assert_int_equal(f[QHCA_PAGE_FAULT_SEND].flags, QHCA_PAGE_FAULT_VALID);
    assert_int_equal(f[QHCA_PAGE_FAULT_SEND].addr, IOVA + 500);
    godp_in(&t.o, 500, 200, false);
    assert_int_equal(guest_resume(&p->g, qp.qpn, QHCA_PAGE_FAULT_SEND,
                                  f[QHCA_PAGE_FAULT_SEND].token, false),
                     QHCA_ST_OK);
    peer_run(p);
    assert_int_equal(raw_frames, 3);
    for (i = 0; i < 3; i++) {
        assert_true(gcq_poll(&p->scq, &c));
        assert_int_equal(c.wr_id, i);
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
    }
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    end(&t);
}

/* The tables that CREATE_MR accepts, and its return values. */
static void create(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_mpt m = {
        .buf = { .addr = 0x10000, .len = 4096, .form = QHCA_BUF_DIRECT },
        .iova = 0, .len = 4096, .flags = QHCA_MR_F_ODP,
    }, out;
    struct gcmd c = { .op = QHCA_CMD_CREATE_MR, .in = &m,
                      .in_len = sizeof(m) };
    uint32_t key;

    (void)state;
    m.pd = p->g.pd;
    assert_int_equal(guest_cmd(&p->g, &c), QHCA_ST_BAD_TABLE);
    m.buf.form = QHCA_BUF_LIST;
    m.buf.entries = 1;
    assert_int_equal(guest_cmd(&p->g, &c), QHCA_ST_BAD_TABLE);
    m.flags = QHCA_MR_F_ODP | QHCA_MR_F_PHYS;
    assert_int_equal(guest_cmd(&p->g, &c), QHCA_ST_BAD_PARAM);
    m.flags = QHCA_MR_F_ODP | QHCA_MR_F_FAST_REG;
    assert_int_equal(guest_cmd(&p->g, &c), QHCA_ST_BAD_PARAM);
    assert_int_equal(c.result, offsetof(struct qhca_mpt, flags));
    /* a whole process: 2^48 bytes, 3 levels of 32 KiB tables */
    m.flags = QHCA_MR_F_ODP;
    m.buf = (struct qhca_buf){
        .addr = 0x10000, .len = 1ull << 48, .form = QHCA_BUF_TREE,
        .hops = 3, .page_shift = 12, .table_shift = 15,
    };
    m.len = 1ull << 48;
    key = guest_must(&p->g, &c);
    guest_query(&p->g, QHCA_CMD_QUERY_MR, key, &out, sizeof(out));
    assert_int_equal(out.flags, QHCA_MR_F_ODP);
    assert_int_equal(out.state, QHCA_MR_VALID);
    assert_int_equal(guest_simple(&p->g, QHCA_CMD_DESTROY_MR, key),
                     QHCA_ST_OK);
    assert_int_equal(p->g.caps.features & QHCA_FEAT_ODP, QHCA_FEAT_ODP);
    peer_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create),
        cmocka_unit_test(local_read),
        cmocka_unit_test(local_read_fails),
        cmocka_unit_test(failed_then_there),
        cmocka_unit_test(landing),
        cmocka_unit_test(landing_alone),
        cmocka_unit_test(landing_fails),
        cmocka_unit_test(request),
        cmocka_unit_test(request_alone),
        cmocka_unit_test(request_fails),
        cmocka_unit_test(impatient_peer),
        cmocka_unit_test(impatient_by_pages),
        cmocka_unit_test(impatient_before_reset),
        cmocka_unit_test(impatient_in_parts),
        cmocka_unit_test(impatient_about_another),
        cmocka_unit_test(impatient_further_back),
        cmocka_unit_test(impatient_without_end),
        cmocka_unit_test(read_response),
        cmocka_unit_test(read_before_nak),
        cmocka_unit_test(all_sides),
        cmocka_unit_test(waiting_ends),
        cmocka_unit_test(invalidation),
        cmocka_unit_test(datagrams),
        cmocka_unit_test(raw_packets),
    };

    return cmocka_run_group_tests_name("odp", tests, NULL, NULL);
}
