/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Tag matching, packet by packet; the peer is the sender of the messages. */
#include "peer.h"
#include "adapter/adapter.h"
#include "godp.h"
#include "reborn.h"
#include "steps.h"
#include "transport/tag_qp.h"

#define MTU 256
#define TAGS 40
#define CAP 512                 /* bytes of each buffer */
#define ANY 0
#define EXACT UINT64_MAX

/* Layout of the region. */
#define TAG_AT(n) (CAP * (uint64_t)(n))
#define RECV_AT(n) (0x40000 + CAP * (uint64_t)(n))

static uint8_t data[4096];

struct tm {
    struct peer *p;
    struct gsrq srq;
    uint32_t told;              /* unexpected messages reported by us */
    uint32_t psn;               /* of the next packet we send */
    uint32_t posted;            /* receive WQEs */
};

static void create_qp(struct tm *t)
{
    struct peer *p = t->p;
    struct gqp_init qi = {
        .type = QHCA_QPT_RC, .scq = &p->scq, .rcq = &p->scq,
        .srq = &t->srq,
    };

    gqp_create(&p->qp, &p->g, &qi);
    gqp_to_init(&p->qp, &p->a);
    gqp_to_rtr(&p->qp, &p->w.node[1], &p->a);
    gqp_to_rts(&p->qp, &p->a);
    t->psn = p->a.rq_psn;
}

static void open_with(struct tm *t, uint8_t max_rd, uint32_t tags)
{
    struct gqp_attr a;
    struct gtm_init ti = {
        .max_tags = tags, .ops_shift = 4, .ops_stride = 7,
    };
    unsigned i;

    for (i = 0; i < sizeof(data); i++) {
        data[i] = (uint8_t)(i * 7 + (i >> 8));
    }
    memset(t, 0, sizeof(*t));
    peer_attr_default(&a);
    a.max_rd_atomic = max_rd;
    t->p = peer_new(QHCA_QPT_RC, &a);
    assert_int_equal(gqp_destroy(&t->p->qp), QHCA_ST_OK);
    ti.cq = &t->p->rcq;
    gsrq_create_tm(&t->srq, &t->p->g, 6, 6, NULL, NULL, &ti);
    create_qp(t);
}

static void open(struct tm *t)
{
    open_with(t, 4, TAGS);
}

static void close(struct tm *t)
{
    struct peer *p = t->p;

    assert_int_equal(gqp_destroy(&p->qp), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&t->srq), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&p->mr), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&p->scq), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&p->rcq), QHCA_ST_OK);
    guest_stop(&p->g);
    world_fini(&p->w);
    free(p->f);
    free(p);
}

static struct qhca_srqc query(struct tm *t)
{
    struct qhca_srqc c;

    guest_query(&t->p->g, QHCA_CMD_QUERY_SRQ, t->srq.srqn, &c, sizeof(c));
    return c;
}

/* ---- operations ---- */

static uint32_t op(struct tm *t, struct gtm_op o)
{
    uint32_t n;

    assert_true(gtm_post(&t->srq, &o, &n));
    gtm_ring(&t->srq);
    peer_run(t->p);
    return gtm_result(&t->srq, n);
}

static uint32_t add(struct tm *t, uint32_t handle, uint64_t tag,
                    uint64_t mask)
{
    struct gtm_op o = {
        .opcode = QHCA_WQE_TAG_ADD, .handle = handle, .tag = tag,
        .mask = mask, .recv_wr_id = 0x7a60000 + handle, .num_sge = 1,
        .sge[0] = { .addr = PEER_IOVA + TAG_AT(handle & 0xffff), .len = CAP,
                    .lkey = t->p->mr.key },
    };

    return op(t, o);
}

static uint32_t sync(struct tm *t, uint32_t unexp)
{
    return op(t, (struct gtm_op){ .opcode = QHCA_WQE_TAG_SYNC,
                                  .unexp = unexp });
}

static uint32_t del(struct tm *t, uint32_t handle, uint8_t flags)
{
    return op(t, (struct gtm_op){ .opcode = QHCA_WQE_TAG_DEL, .wr_id = 99,
                                  .handle = handle, .flags = flags });
}

static void post_recv(struct tm *t)
{
    struct qhca_sge sge = {
        .addr = PEER_IOVA + RECV_AT(t->posted), .len = CAP,
        .lkey = t->p->mr.key,
    };
    uint32_t wqe;

    assert_true(gsrq_post(&t->srq, 0x5e0000 + t->posted, &sge, 1, &wqe));
    t->posted++;
}

/* ---- messages ---- */

static size_t eager(uint8_t *b, uint64_t tag, uint32_t ctx, uint32_t len)
{
    memset(b, 0, 16);
    b[0] = QHCA_TMH_EAGER;
    peer_put32(b + 4, ctx);
    peer_put64(b + 8, tag);
    memcpy(b + 16, data, len);
    return 16 + len;
}

static size_t rndv(uint8_t *b, uint64_t tag, uint32_t ctx, uint64_t va,
                   uint32_t rkey, uint32_t len)
{
    eager(b, tag, ctx, 0);
    b[0] = QHCA_TMH_RNDV;
    peer_put64(b + 16, va);
    peer_put32(b + 24, rkey);
    peer_put32(b + 28, len);
    return 32;
}

static void send_one(struct tm *t, const uint8_t *b, size_t len)
{
    peer_tx(t->p, .op = SEND_ONLY, .psn = t->psn, .data = b, .len = len,
            .ackreq = true);
    t->psn = (t->psn + 1) & 0xffffff;
}

/* An eager message of @len bytes in one packet. */
static void send_eager(struct tm *t, uint64_t tag, uint32_t ctx,
                       uint32_t len)
{
    uint8_t b[MTU];

    send_one(t, b, eager(b, tag, ctx, len));
}

static void acked(struct tm *t)
{
    peer_expect_aeth(t->p, 0x1f, t->psn - 1);
}

/* ---- completions ---- */

static struct qhca_tm_cqe cqe(struct tm *t, uint8_t opcode, uint8_t status,
                              uint16_t flags)
{
    struct qhca_tm_cqe c;

    peer_run(t->p);
    assert_true(gcq_poll(&t->p->rcq, &t->p->cqe));
    memcpy(&c, &t->p->cqe, sizeof(c));
    assert_int_equal(c.opcode, opcode);
    assert_int_equal(c.status, status);
    assert_int_equal(c.flags, flags | QHCA_CQE_F_SRQN);
    assert_int_equal(c.srqn, t->srq.srqn);
    if (flags & QHCA_CQE_F_SRQ) {
        gsrq_release(&t->srq, c.wqe_index);
    }
    return c;
}

static void tagged(struct tm *t, uint32_t handle, uint64_t tag, uint32_t ctx,
                   uint32_t len)
{
    struct qhca_tm_cqe c = cqe(t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
                               QHCA_CQE_F_TM_MATCH |
                               QHCA_CQE_F_TM_DATA_VALID);

    assert_int_equal(c.wr_id, 0x7a60000 + handle);
    assert_int_equal(c.wqe_index, handle);
    assert_int_equal(c.qpn, t->p->qp.qpn);
    assert_int_equal(c.byte_len, len);
    assert_int_equal(peer_be64((uint8_t *)&c.tag), tag);
    assert_int_equal(peer_be32((uint8_t *)&c.app_ctx), ctx);
}

static struct qhca_tm_cqe unexpected(struct tm *t, uint32_t len)
{
    struct qhca_tm_cqe c = cqe(t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
                               QHCA_CQE_F_SRQ);

    assert_int_equal(c.byte_len, len);
    assert_true(c.tag == 0 && c.app_ctx == 0);
    return c;
}

static void no_cqe(struct tm *t)
{
    struct qhca_cqe c;

    peer_run(t->p);
    assert_false(gcq_poll(&t->p->rcq, &c));
    assert_false(gcq_poll(&t->p->scq, &c));
}

static void in_memory(struct tm *t, uint64_t off, const void *want,
                      size_t len)
{
    uint8_t got[4096];

    gbuf_read(&t->p->mr.buf, off, got, len);
    assert_memory_equal(got, want, len);
}

/* ---- tests ---- */

static uint8_t create(struct tm *t, const struct qhca_srqc *c,
                      uint64_t *result)
{
    struct gcmd cmd = { .op = QHCA_CMD_CREATE_SRQ, .in = c,
                        .in_len = sizeof(*c) };
    uint8_t st = guest_cmd(&t->p->g, &cmd);

    *result = cmd.result;
    if (!st) {
        assert_int_equal(guest_simple(&t->p->g, QHCA_CMD_DESTROY_SRQ,
                                      cmd.robj), QHCA_ST_OK);
    }
    return st;
}

#define REFUSED(field, value, status) do { \
    struct qhca_srqc bad_ = good; \
    uint64_t r_; \
    bad_.field = value; \
    assert_int_equal(create(&t, &bad_, &r_), status); \
    assert_int_equal(r_, offsetof(struct qhca_srqc, field)); \
} while (0)

static void contexts(void **state)
{
    struct qhca_qpc qpc = { 0 }, q;
    struct qhca_srqc good, c;
    struct gcmd cmd = { .op = QHCA_CMD_CREATE_QP, .in = &qpc,
                        .in_len = sizeof(qpc) };
    uint32_t made[300], n;
    struct tm t;
    uint64_t r;

    (void)state;
    open(&t);
    c = query(&t);
    assert_int_equal(c.flags, QHCA_SRQ_F_TM);
    assert_int_equal(c.cqn, t.p->rcq.cqn);
    assert_int_equal(c.max_tags, TAGS);
    assert_int_equal(c.ops_shift, 4);
    assert_int_equal(c.ops_stride, 7);
    assert_memory_equal(&c.ops, &t.srq.ops.d, sizeof(c.ops));
    good = c;
    good.srqn = good.state = 0;
    assert_int_equal(create(&t, &good, &r), QHCA_ST_OK);
    REFUSED(cqn, 0xffff, QHCA_ST_BAD_OBJ);
    REFUSED(ops_shift, 16, QHCA_ST_BAD_PARAM);
    REFUSED(ops_stride, 5, QHCA_ST_BAD_PARAM);
    REFUSED(ops_stride, 10, QHCA_ST_BAD_PARAM);
    REFUSED(max_tags, 0, QHCA_ST_BAD_PARAM);
    REFUSED(max_tags, QHCA_TM_MAX_TAGS + 1, QHCA_ST_BAD_PARAM);
    REFUSED(flags, 0x80, QHCA_ST_BAD_PARAM);
    c = good;
    c.ops.len = 64;
    assert_int_equal(create(&t, &c, &r), QHCA_ST_BAD_TABLE);

    /* a guest cannot make us keep an arbitrary number of entries */
    good.max_tags = QHCA_TM_MAX_TAGS;
    for (n = 0; n < 300; n++) {
        struct gcmd k = { .op = QHCA_CMD_CREATE_SRQ, .in = &good,
                          .in_len = sizeof(good) };

        if (guest_cmd(&t.p->g, &k)) {
            break;
        }
        made[n] = k.robj;
    }
    assert_int_equal(n, 262144 / QHCA_TM_MAX_TAGS - 1);
    assert_int_equal(create(&t, &good, &r), QHCA_ST_NO_RESOURCES);
    while (n--) {
        assert_int_equal(guest_simple(&t.p->g, QHCA_CMD_DESTROY_SRQ,
                                      made[n]), QHCA_ST_OK);
    }
    assert_int_equal(create(&t, &good, &r), QHCA_ST_OK);

    /* QPs: RC, without SQ; the CQ stays while the SRQ does */
    qpc.pd = t.p->g.pd;
    qpc.uar = t.p->g.uar;
    qpc.send_cqn = qpc.recv_cqn = t.p->scq.cqn;
    qpc.flags = QHCA_QP_F_SRQ;
    qpc.srqn = t.srq.srqn;
    qpc.type = QHCA_QPT_UC;
    assert_int_equal(guest_cmd(&t.p->g, &cmd), QHCA_ST_BAD_PARAM);
    assert_int_equal(cmd.result, offsetof(struct qhca_qpc, type));
    qpc.type = QHCA_QPT_RC;
    qpc.sq_stride = 7;
    assert_int_equal(guest_cmd(&t.p->g, &cmd), QHCA_ST_BAD_PARAM);
    assert_int_equal(cmd.result, offsetof(struct qhca_qpc, sq_stride));
    guest_query(&t.p->g, QHCA_CMD_QUERY_QP, t.p->qp.qpn, &q, sizeof(q));
    assert_int_equal(q.sq_stride, 0);
    assert_int_equal(q.srqn, t.srq.srqn);
    assert_int_equal(gsrq_destroy(&t.srq), QHCA_ST_BUSY);
    assert_int_equal(gcq_destroy(&t.p->rcq), QHCA_ST_BUSY);
    /* its send queue has no doorbell */
    guest_doorbell(&t.p->g, t.p->g.uar, QHCA_DB_SQ,
                   t.p->qp.qpn | 1ULL << QHCA_DB_INDEX_SHIFT);
    assert_int_equal(qhca_stat(t.p->e, QHCA_STAT_DB_BAD_STATE), 1);
    close(&t);
}

/* The oldest matching entry, once; the data without the header. */
static void eager_match(void **state)
{
    uint8_t b[MTU];
    struct tm t;
    size_t len;

    (void)state;
    open(&t);
    assert_int_equal(add(&t, 3, 0x1234, EXACT), QHCA_TM_DONE);
    assert_int_equal(add(&t, 1, 0x34, 0xff), QHCA_TM_DONE);
    assert_int_equal(add(&t, 0x50000, 0, ANY), QHCA_TM_DONE);
    assert_int_equal(add(&t, 2, 0x1234, EXACT), QHCA_TM_DONE);
    assert_int_equal(query(&t).tags, 4);
    send_eager(&t, 0x1234, 0xc0ffee, 100);
    acked(&t);
    tagged(&t, 3, 0x1234, 0xc0ffee, 100);
    in_memory(&t, TAG_AT(3), data, 100);
    send_eager(&t, 0x1234, 1, 0);
    acked(&t);
    tagged(&t, 1, 0x1234, 1, 0);
    send_eager(&t, 0x99, 2, 7);
    acked(&t);
    tagged(&t, 0x50000, 0x99, 2, 7);
    in_memory(&t, TAG_AT(0), data, 7);
    assert_int_equal(query(&t).tags, 1);
    /* with immediate and solicited */
    len = eager(b, 0x1234, 3, 5);
    peer_tx(t.p, .op = SEND_ONLY_IMM, .psn = t.psn++, .data = b, .len = len,
            .imm = 0x01020304, .se = true);
    cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS, QHCA_CQE_F_TM_MATCH |
        QHCA_CQE_F_TM_DATA_VALID | QHCA_CQE_F_IMM | QHCA_CQE_F_SOLICITED);
    assert_memory_equal(&t.p->cqe.imm, "\1\2\3\4", 4);
    /* an entry serves one message; its number may be reused */
    assert_int_equal(add(&t, 3, 0x77, EXACT), QHCA_TM_DONE);
    send_eager(&t, 0x77, 9, 8);
    acked(&t);
    tagged(&t, 3, 0x77, 9, 8);
    no_cqe(&t);
    close(&t);
}

/* More than one packet: the match is reported at once, the data at the end. */
static void eager_long(void **state)
{
    uint8_t b[2 * MTU];
    struct qhca_tm_cqe c;
    struct tm t;

    (void)state;
    open(&t);
    post_recv(&t);
    add(&t, 5, 42, EXACT);
    eager(b, 42, 8, 2 * MTU - 16);
    peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b, .len = MTU);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS, QHCA_CQE_F_TM_MATCH);
    assert_int_equal(c.wr_id, 0x7a60005);
    assert_int_equal(c.wqe_index, 5);
    assert_int_equal(peer_be32((uint8_t *)&c.app_ctx), 8);
    /* a duplicate of it matches nothing */
    peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b, .len = MTU);
    no_cqe(&t);
    assert_int_equal(del(&t, 5, 0), QHCA_TM_DONE | QHCA_SYN_TM_HANDLE);
    assert_int_equal(add(&t, 5, 1, EXACT), QHCA_TM_DONE | QHCA_SYN_TM_HANDLE);
    cqe(&t, QHCA_CQE_OP_TM_ADD, QHCA_WC_TM_ERR, 0);
    peer_tx(t.p, .op = SEND_MIDDLE, .psn = t.psn + 1, .data = b + MTU,
            .len = MTU);
    no_cqe(&t);
    peer_tx(t.p, .op = SEND_LAST, .psn = t.psn + 2, .data = "end", .len = 3,
            .ackreq = true);
    t.psn += 3;
    acked(&t);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
            QHCA_CQE_F_TM_DATA_VALID);
    assert_int_equal(c.wqe_index, 5);
    assert_int_equal(c.byte_len, 2 * MTU - 16 + 3);
    assert_true(c.tag == 0);
    in_memory(&t, TAG_AT(5), data, 2 * MTU - 16);
    in_memory(&t, TAG_AT(5) + 2 * MTU - 16, "end", 3);
    assert_int_equal(add(&t, 5, 1, EXACT), QHCA_TM_DONE);
    close(&t);
}

/* Longer than the buffer: as with a receive WQE; the entry is returned. */
static void eager_too_long(void **state)
{
    struct gtm_op o = {
        .opcode = QHCA_WQE_TAG_ADD, .handle = 1, .tag = 5, .mask = EXACT,
        .recv_wr_id = 0x7a60001, .num_sge = 1,
    };
    struct qhca_tm_cqe c;
    struct tm t;

    (void)state;
    open(&t);
    o.sge[0] = (struct qhca_sge){ PEER_IOVA, 10, t.p->mr.key };
    op(&t, o);
    send_eager(&t, 5, 0, 11);
    peer_expect_aeth(t.p, 0x61, t.psn - 1);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_LOC_LEN_ERR, 0);
    assert_int_equal(c.wr_id, 0x7a60001);
    assert_int_equal(c.wqe_index, 1);
    assert_int_equal(peer_state(t.p), QHCA_QPS_ERR);
    assert_int_equal(add(&t, 1, 5, EXACT), QHCA_TM_DONE);
    close(&t);
}

/* A key the SRQ's PD does not have. */
static void bad_key(void **state)
{
    struct gtm_op o = {
        .opcode = QHCA_WQE_TAG_ADD, .tag = 5, .mask = EXACT, .num_sge = 1,
    };
    struct tm t;

    (void)state;
    open(&t);
    o.sge[0] = (struct qhca_sge){ PEER_IOVA, 100, t.p->mr.key ^ 1 };
    op(&t, o);
    send_eager(&t, 5, 0, 11);
    peer_expect_aeth(t.p, 0x63, t.psn - 1);
    cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_LOC_PROT_ERR, 0);
    close(&t);
}

/* No match: delivered to the SRQ; entries added from then on are inactive. */
static void counts(void **state)
{
    struct gtm_op o = {
        .opcode = QHCA_WQE_TAG_ADD, .handle = 2, .tag = 8, .mask = EXACT,
        .recv_wr_id = 0x7a60002, .flags = QHCA_WQE_F_SIGNALED,
        .wr_id = 11, .num_sge = 0,
    };
    struct qhca_tm_cqe c;
    uint8_t b[MTU];
    struct tm t;
    size_t len;
    unsigned i;

    (void)state;
    open(&t);
    for (i = 0; i < 8; i++) {
        post_recv(&t);
    }
    add(&t, 1, 7, EXACT);
    send_eager(&t, 8, 0xaa, 20);
    acked(&t);
    c = unexpected(&t, 36);
    assert_int_equal(c.wr_id, 0x5e0000);
    len = eager(b, 8, 0xaa, 20);
    in_memory(&t, RECV_AT(0), b, len);
    assert_int_equal(query(&t).unexp_seen, 1);
    assert_int_equal(query(&t).unexp_told, 0);

    /* this one would match, but it is inactive; the old one is not */
    assert_int_equal(op(&t, o), QHCA_TM_DONE);
    c = cqe(&t, QHCA_CQE_OP_TM_ADD, QHCA_WC_SUCCESS, QHCA_CQE_F_TM_SYNC_REQ);
    assert_int_equal(c.wr_id, 11);
    assert_int_equal(c.qpn, 0);
    send_eager(&t, 8, 0, 0);
    acked(&t);
    unexpected(&t, 16);
    send_eager(&t, 7, 0, 4);
    acked(&t);
    tagged(&t, 1, 7, 0, 4);

    /* a wrong count does not help, the right one does */
    sync(&t, 1);
    send_eager(&t, 8, 0, 0);
    acked(&t);
    unexpected(&t, 16);
    o = (struct gtm_op){ .opcode = QHCA_WQE_TAG_SYNC, .wr_id = 12,
                         .unexp = 3, .flags = QHCA_WQE_F_SIGNALED };
    op(&t, o);
    c = cqe(&t, QHCA_CQE_OP_TM_SYNC, QHCA_WC_SUCCESS, 0);
    assert_int_equal(c.wr_id, 12);
    send_eager(&t, 8, 5, 0);
    acked(&t);
    tagged(&t, 2, 8, 5, 0);

    /* an ADD can report the count too, before it is executed */
    send_eager(&t, 8, 0, 0);
    acked(&t);
    unexpected(&t, 16);
    o = (struct gtm_op){ .opcode = QHCA_WQE_TAG_ADD, .handle = 3, .tag = 9,
                         .mask = EXACT, .recv_wr_id = 0x7a60003,
                         .flags = QHCA_WQE_F_TM_SYNC, .unexp = 4 };
    assert_int_equal(op(&t, o), QHCA_TM_DONE);
    send_eager(&t, 9, 6, 0);
    acked(&t);
    tagged(&t, 3, 9, 6, 0);
    no_cqe(&t);
    close(&t);
}

/* A long unexpected message counts from its first packet. */
static void counts_early(void **state)
{
    uint8_t b[MTU];
    struct tm t;

    (void)state;
    open(&t);
    post_recv(&t);
    eager(b, 1, 0, MTU - 16);
    peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b, .len = MTU);
    assert_int_equal(query(&t).unexp_seen, 1);
    add(&t, 0, 1, EXACT);
    peer_tx(t.p, .op = SEND_LAST, .psn = t.psn + 1, .data = b, .len = 1,
            .ackreq = true);
    t.psn += 2;
    acked(&t);
    unexpected(&t, MTU + 1);
    post_recv(&t);
    send_eager(&t, 1, 0, 0);
    acked(&t);
    unexpected(&t, 16);
    assert_int_equal(query(&t).unexp_seen, 2);
    /* one that fails does not count */
    post_recv(&t);
    peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b, .len = MTU);
    assert_int_equal(query(&t).unexp_seen, 3);
    gqp_state(&t.p->qp, QHCA_QPS_ERR);
    cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_WR_FLUSH_ERR, QHCA_CQE_F_SRQ);
    assert_int_equal(query(&t).unexp_seen, 2);
    close(&t);
}

/* Messages that are not matched. */
static void no_tag(void **state)
{
    static const struct {
        uint8_t opcode;
        size_t len;
    } m[] = {
        { QHCA_TMH_NO_TAG, 40 }, { QHCA_TMH_FIN, 32 }, { 77, 16 },
        { QHCA_TMH_EAGER, 15 }, { QHCA_TMH_EAGER, 0 },
        { QHCA_TMH_RNDV, 31 }, { QHCA_TMH_RNDV, 65 },
    };
    struct qhca_tm_cqe c;
    uint8_t b[MTU];
    struct tm t;
    unsigned i;

    (void)state;
    open(&t);
    add(&t, 0, 0, ANY);
    for (i = 0; i < sizeof(m) / sizeof(m[0]); i++) {
        post_recv(&t);
        memset(b, 0, sizeof(b));
        b[0] = m[i].opcode;
        send_one(&t, b, m[i].len);
        acked(&t);
        c = cqe(&t, QHCA_CQE_OP_TM_NO_TAG, QHCA_WC_SUCCESS, QHCA_CQE_F_SRQ);
        assert_int_equal(c.byte_len, m[i].len);
        in_memory(&t, RECV_AT(i), b, m[i].len);
    }
    /* a rendezvous in two packets */
    post_recv(&t);
    rndv(b, 0, 0, 0, 0, 0);
    peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b, .len = MTU);
    peer_tx(t.p, .op = SEND_LAST, .psn = t.psn + 1, .data = b, .len = 4);
    t.psn += 2;
    cqe(&t, QHCA_CQE_OP_TM_NO_TAG, QHCA_WC_SUCCESS, QHCA_CQE_F_SRQ);
    /* RDMA WRITE with immediate */
    post_recv(&t);
    peer_tx(t.p, .op = WRITE_ONLY_IMM, .psn = t.psn++, .va = PEER_IOVA,
            .rkey = t.p->mr.key);
    cqe(&t, QHCA_CQE_OP_RECV_RDMA_IMM, QHCA_WC_SUCCESS,
        QHCA_CQE_F_SRQ | QHCA_CQE_F_IMM);
    assert_int_equal(query(&t).unexp_seen, 0);
    assert_int_equal(query(&t).tags, 1);
    close(&t);
}

/* Without a receive WQE: RNR NAK, and the message is matched anew. */
static void not_ready(void **state)
{
    struct tm t;

    (void)state;
    open(&t);
    send_eager(&t, 6, 1, 3);
    peer_expect_aeth(t.p, 0x20 | 12, t.psn - 1);
    assert_int_equal(query(&t).unexp_seen, 0);
    add(&t, 0, 6, EXACT);
    t.psn--;
    send_eager(&t, 6, 1, 3);
    acked(&t);
    tagged(&t, 0, 6, 1, 3);
    close(&t);
}

static void operations(void **state)
{
    struct gtm_op o = { .opcode = 0x6f };
    struct tm t;
    unsigned i;

    (void)state;
    open(&t);
    /* DEL: only the whole handle of an entry in the list */
    assert_int_equal(add(&t, 0x70001, 1, EXACT), QHCA_TM_DONE);
    assert_int_equal(del(&t, 1, 0), QHCA_TM_DONE | QHCA_SYN_TM_HANDLE);
    assert_int_equal(del(&t, TAGS, 0), QHCA_TM_DONE | QHCA_SYN_TM_HANDLE);
    no_cqe(&t);                         /* an unsignaled DEL reports nothing */
    assert_int_equal(del(&t, 2, QHCA_WQE_F_SIGNALED),
                     QHCA_TM_DONE | QHCA_SYN_TM_HANDLE);
    assert_int_equal(cqe(&t, QHCA_CQE_OP_TM_DEL, QHCA_WC_TM_ERR, 0).syndrome,
                     QHCA_SYN_TM_HANDLE);
    assert_int_equal(del(&t, 0x70001, QHCA_WQE_F_SIGNALED), QHCA_TM_DONE);
    assert_int_equal(cqe(&t, QHCA_CQE_OP_TM_DEL, QHCA_WC_SUCCESS, 0).wr_id,
                     99);
    assert_int_equal(del(&t, 0x70001, 0), QHCA_TM_DONE | QHCA_SYN_TM_HANDLE);
    /* the middle of the list */
    for (i = 0; i < 3; i++) {
        assert_int_equal(add(&t, i, 4, EXACT), QHCA_TM_DONE);
    }
    assert_int_equal(del(&t, 1, 0), QHCA_TM_DONE);
    send_eager(&t, 4, 0, 0);
    acked(&t);
    tagged(&t, 0, 4, 0, 0);
    send_eager(&t, 4, 0, 0);
    acked(&t);
    tagged(&t, 2, 4, 0, 0);
    assert_int_equal(query(&t).tags, 0);

    /* errors are reported and change nothing */
    assert_int_equal(op(&t, o), QHCA_TM_DONE | QHCA_SYN_WQE_OPCODE);
    assert_int_equal(cqe(&t, QHCA_CQE_OP_TM_SYNC, QHCA_WC_TM_ERR,
                         0).syndrome, QHCA_SYN_WQE_OPCODE);
    o = (struct gtm_op){ .opcode = QHCA_WQE_TAG_SYNC, .flags = 0x80,
                         .unexp = 5 };
    assert_int_equal(op(&t, o), QHCA_TM_DONE | QHCA_SYN_WQE_FLAGS);
    cqe(&t, QHCA_CQE_OP_TM_SYNC, QHCA_WC_TM_ERR, 0);
    o = (struct gtm_op){ .opcode = QHCA_WQE_TAG_ADD, .handle = 0x12300 };
    assert_int_equal(op(&t, o), QHCA_TM_DONE | QHCA_SYN_TM_HANDLE);
    cqe(&t, QHCA_CQE_OP_TM_ADD, QHCA_WC_TM_ERR, 0);
    assert_int_equal(query(&t).unexp_told, 0);
    assert_int_equal(query(&t).tags, 0);

    /* doorbells: through another's page, for a non-TM SRQ */
    guest_doorbell(&t.p->g, 0, QHCA_DB_TM, t.srq.srqn |
                   (uint64_t)(t.srq.ops_prod + 1) << QHCA_DB_INDEX_SHIFT);
    assert_int_equal(qhca_stat(t.p->e, QHCA_STAT_DB_BAD_OWNER), 1);
    guest_doorbell(&t.p->g, t.p->g.uar, QHCA_DB_TM, 0x4444);
    assert_int_equal(qhca_stat(t.p->e, QHCA_STAT_DB_BAD_OBJECT), 1);
    /* an older index */
    guest_doorbell(&t.p->g, t.p->g.uar, QHCA_DB_TM, t.srq.srqn |
                   (uint64_t)(t.srq.ops_prod - 1) << QHCA_DB_INDEX_SHIFT);
    assert_int_equal(query(&t).state, QHCA_SRQ_OK);
    /* an index beyond the ring */
    guest_doorbell(&t.p->g, t.p->g.uar, QHCA_DB_TM, t.srq.srqn |
                   (uint64_t)(t.srq.ops_prod + 17) << QHCA_DB_INDEX_SHIFT);
    assert_int_equal(query(&t).state, QHCA_SRQ_ERR);
    assert_int_equal(qhca_stat(t.p->e, QHCA_STAT_DB_BAD_INDEX), 1);
    peer_run(t.p);
    assert_int_equal(t.p->g.async_count[QHCA_EV_SRQ_ERR], 1);
    /* and its QPs notice */
    send_eager(&t, 4, 0, 0);
    peer_expect_aeth(t.p, 0x63, t.psn - 1);
    assert_int_equal(peer_state(t.p), QHCA_QPS_ERR);
    close(&t);
}

/* The ring in another form, and more than one lap. */
static void ring_laps(void **state)
{
    struct tm t;
    uint32_t i;

    (void)state;
    open(&t);
    for (i = 0; i < 100; i++) {
        assert_int_equal(add(&t, i % TAGS, i, EXACT), QHCA_TM_DONE);
        send_eager(&t, i, i, i);
        acked(&t);
        tagged(&t, i % TAGS, i, i, i);
    }
    /* a whole ring with one doorbell */
    for (i = 0; i < 16; i++) {
        struct gtm_op o = { .opcode = QHCA_WQE_TAG_SYNC, .unexp = 0 };

        assert_true(gtm_post(&t.srq, &o, NULL));
    }
    gtm_ring(&t.srq);
    peer_run(t.p);
    assert_int_equal(query(&t).ops_tail, t.srq.ops_prod);
    close(&t);
}

/* ---- rendezvous ---- */

/* Answer the READ request the adapter sends next. */
static uint32_t read_request(struct tm *t, uint64_t va, uint32_t rkey,
                             uint32_t len)
{
    const struct pframe *f = peer_next(t->p);

    assert_int_equal(f->op, READ_REQ);
    assert_int_equal(peer_be64(f->ext), va);
    assert_int_equal(peer_be32(f->ext + 8), rkey);
    assert_int_equal(peer_be32(f->ext + 12), len);
    return f->psn;
}

static void matched(struct tm *t, uint32_t handle)
{
    struct qhca_tm_cqe c = cqe(t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
                               QHCA_CQE_F_TM_MATCH);

    assert_int_equal(c.wqe_index, handle);
    assert_int_equal(c.wr_id, 0x7a60000 + handle);
}

static void fin(struct tm *t, uint32_t psn, const uint8_t *headers)
{
    const struct pframe *f = peer_next(t->p);

    assert_int_equal(f->op, SEND_ONLY);
    assert_int_equal(f->psn, psn & 0xffffff);
    assert_int_equal(f->body, 32);
    assert_int_equal(f->ext[0], QHCA_TMH_FIN);
    assert_memory_equal(f->ext + 1, headers + 1, 31);
    peer_ack(t->p, psn & 0xffffff, 0x1f);
}

static void rendezvous(void **state)
{
    struct gtm_op o = {
        .opcode = QHCA_WQE_TAG_ADD, .handle = 4, .tag = 0x44, .mask = 0xff,
        .recv_wr_id = 0x7a60004, .num_sge = 3,
    };
    struct qhca_tm_cqe c;
    uint8_t b[MTU];
    struct tm t;
    uint32_t psn;

    (void)state;
    open(&t);
    o.sge[0] = (struct qhca_sge){ PEER_IOVA + 1000, 100, t.p->mr.key };
    o.sge[1] = (struct qhca_sge){ PEER_IOVA + 3000, 0, 0 };
    o.sge[2] = (struct qhca_sge){ PEER_IOVA + 2000, 400, t.p->mr.key };
    op(&t, o);
    rndv(b, 0x1244, 0xbeef, 0x123456789a, 0x777, 300);
    memset(b + 32, 9, 8);       /* belongs to software, ignored */
    send_one(&t, b, 40);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS, QHCA_CQE_F_TM_MATCH);
    assert_int_equal(peer_be64((uint8_t *)&c.tag), 0x1244);
    assert_int_equal(peer_be32((uint8_t *)&c.app_ctx), 0xbeef);
    acked(&t);
    psn = read_request(&t, 0x123456789a, 0x777, 300);
    assert_int_equal(psn, t.p->a.sq_psn);
    no_cqe(&t);
    /* the timer asks again */
    world_run(&t.p->w, 6000000);
    assert_int_equal(read_request(&t, 0x123456789a, 0x777, 300), psn);
    peer_tx(t.p, .op = RESP_FIRST, .psn = psn, .syn = 0x1f, .data = data,
            .len = MTU);
    no_cqe(&t);
    peer_expect_nothing(t.p);
    peer_tx(t.p, .op = RESP_LAST, .psn = psn + 1, .syn = 0x1f,
            .data = data + MTU, .len = 44);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
            QHCA_CQE_F_TM_DATA_VALID);
    assert_int_equal(c.wqe_index, 4);
    assert_int_equal(c.wr_id, 0x7a60004);
    assert_int_equal(c.byte_len, 300);
    in_memory(&t, 1000, data, 100);
    in_memory(&t, 2000, data + 100, 200);
    fin(&t, psn + 2, b);
    assert_int_equal(add(&t, 4, 1, EXACT), QHCA_TM_DONE);
    no_cqe(&t);
    close(&t);
}

/*
 * What came with a rendezvous request is in the last CQE of the message, also
 * if the adapter is saved and loaded in between.
 */
static void rendezvous_imm(void **state)
{
    struct qhca_tm_cqe c;
    uint8_t b[MTU];
    struct tm t;
    uint32_t psn;

    (void)state;
    open(&t);
    add(&t, 1, 1, EXACT);
    rndv(b, 1, 0, 0x1000, 1, 20);
    peer_tx(t.p, .op = SEND_ONLY_IMM, .psn = t.psn++, .data = b, .len = 32,
            .imm = 0x01020304, .se = true, .ackreq = true);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
            QHCA_CQE_F_TM_MATCH | QHCA_CQE_F_SOLICITED);
    assert_int_equal(c.imm, 0);
    acked(&t);
    psn = read_request(&t, 0x1000, 1, 20);
    node_reborn(t.p->n, &t.p->e->ops);
    t.p->e = t.p->n->e;
    peer_tx(t.p, .op = RESP_ONLY, .psn = psn, .syn = 0x1f, .data = data,
            .len = 20);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
            QHCA_CQE_F_TM_DATA_VALID | QHCA_CQE_F_IMM |
            QHCA_CQE_F_SOLICITED);
    assert_memory_equal(&c.imm, "\1\2\3\4", 4);
    fin(&t, psn + 1, b);
    no_cqe(&t);
    close(&t);
}

/* Concurrent READs, up to max_rd_atomic; each has its FIN. */
static void rendezvous_many(void **state)
{
    uint8_t b[3][MTU];
    struct tm t;
    uint32_t psn = 0, i;

    (void)state;
    open_with(&t, 2, TAGS);
    for (i = 0; i < 3; i++) {
        add(&t, i, i, EXACT);
        rndv(b[i], i, i, 0x1000 * i, i, 20 + i);
        send_one(&t, b[i], 32);
        matched(&t, i);
        acked(&t);
        if (i < 2) {
            psn = read_request(&t, 0x1000 * i, i, 20 + i);
        }
    }
    peer_expect_nothing(t.p);
    psn--;                              /* of the first */
    peer_tx(t.p, .op = RESP_ONLY, .psn = psn & 0xffffff, .syn = 0x1f,
            .data = data, .len = 20);
    assert_int_equal(cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
                         QHCA_CQE_F_TM_DATA_VALID).wqe_index, 0);
    read_request(&t, 0x2000, 2, 22);
    fin(&t, psn + 3, b[0]);             /* comes after: no ACK */
    peer_tx(t.p, .op = RESP_ONLY, .psn = (psn + 1) & 0xffffff, .syn = 0x1f,
            .data = data, .len = 21);
    peer_tx(t.p, .op = RESP_ONLY, .psn = (psn + 2) & 0xffffff, .syn = 0x1f,
            .data = data, .len = 22);
    assert_int_equal(cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
                         QHCA_CQE_F_TM_DATA_VALID).wqe_index, 1);
    assert_int_equal(cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
                         QHCA_CQE_F_TM_DATA_VALID).wqe_index, 2);
    close(&t);
}

static void rendezvous_incomplete(void **state)
{
    struct gtm_op o = {
        .opcode = QHCA_WQE_TAG_ADD, .handle = 4, .tag = 4, .mask = EXACT,
        .recv_wr_id = 0x7a60004, .num_sge = 1,
    };
    struct qhca_tm_cqe c;
    uint8_t b[MTU];
    struct tm t;

    (void)state;
    open(&t);
    o.sge[0] = (struct qhca_sge){ PEER_IOVA, 100, t.p->mr.key };
    op(&t, o);
    rndv(b, 4, 1, 0x5000, 9, 101);
    send_one(&t, b, 50);
    acked(&t);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_TM_RNDV_INCOMPLETE,
            QHCA_CQE_F_TM_MATCH);
    assert_int_equal(c.wqe_index, 4);
    assert_int_equal(c.byte_len, 32);
    assert_int_equal(peer_be64((uint8_t *)&c.tag), 4);
    in_memory(&t, 0, b, 32);
    peer_expect_nothing(t.p);
    /* smaller than the headers */
    o.sge[0].len = 20;
    o.sge[0].addr += 64;
    assert_int_equal(op(&t, o), QHCA_TM_DONE);
    send_one(&t, b, 32);
    acked(&t);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_TM_RNDV_INCOMPLETE,
            QHCA_CQE_F_TM_MATCH);
    assert_int_equal(c.byte_len, 20);
    in_memory(&t, 64, b, 20);
    assert_int_equal(peer_state(t.p), QHCA_QPS_RTS);
    /* it fits exactly, or is empty */
    add(&t, 0, 4, EXACT);
    rndv(b, 4, 1, 0x5000, 9, CAP);
    send_one(&t, b, 32);
    acked(&t);
    matched(&t, 0);
    assert_int_equal(read_request(&t, 0x5000, 9, CAP), t.p->a.sq_psn);
    close(&t);
}

/* The sender's memory cannot be read. */
static void rendezvous_refused(void **state)
{
    struct qhca_tm_cqe c;
    uint8_t b[MTU];
    uint32_t psn, i;
    struct tm t;

    (void)state;
    open(&t);
    for (i = 0; i < 3; i++) {
        add(&t, i, i, EXACT);
        rndv(b, i, 0, 0x1000, 1, 20);
        send_one(&t, b, 32);
        matched(&t, i);
        acked(&t);
        psn = read_request(&t, 0x1000, 1, 20);
    }
    peer_ack(t.p, (psn - 2) & 0xffffff, 0x62);
    c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_REM_ACCESS_ERR, 0);
    assert_int_equal(c.wqe_index, 0);
    assert_int_equal(c.wr_id, 0x7a60000);
    for (i = 1; i < 3; i++) {
        c = cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_WR_FLUSH_ERR, 0);
        assert_int_equal(c.wqe_index, i);
    }
    assert_int_equal(peer_state(t.p), QHCA_QPS_ERR);
    for (i = 0; i < 3; i++) {
        assert_int_equal(add(&t, i, i, EXACT), QHCA_TM_DONE);
    }
    no_cqe(&t);
    close(&t);
}

/* A refused FIN: the QP reports it, the entry is long complete. */
static void fin_refused(void **state)
{
    uint8_t b[MTU];
    uint32_t psn;
    struct tm t;

    (void)state;
    open(&t);
    add(&t, 0, 1, EXACT);
    rndv(b, 1, 0, 0x1000, 1, 0);
    send_one(&t, b, 32);
    matched(&t, 0);
    acked(&t);
    psn = read_request(&t, 0x1000, 1, 0);
    peer_tx(t.p, .op = RESP_ONLY, .psn = psn, .syn = 0x1f);
    cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS, QHCA_CQE_F_TM_DATA_VALID);
    assert_int_equal(peer_next(t.p)->op, SEND_ONLY);
    peer_ack(t.p, (psn + 1) & 0xffffff, 0x61);
    assert_int_equal(peer_state(t.p), QHCA_QPS_ERR);
    peer_run(t.p);
    assert_int_equal(t.p->g.async_count[QHCA_EV_QP_FATAL], 1);
    no_cqe(&t);
    close(&t);
}

/* No more than the device can remember: RNR NAK, and later it works. */
static void rendezvous_full(void **state)
{
    uint8_t b[MTU];
    uint32_t psn = 0, i;
    struct tm t;

    (void)state;
    open_with(&t, 1, TAGS);
    for (i = 0; i < 33; i++) {
        add(&t, i, i, EXACT);
        rndv(b, i, 0, 0x1000, i, 8);
        send_one(&t, b, 32);
        if (i < 32) {
            matched(&t, i);
            acked(&t);
        } else {
            peer_expect_aeth(t.p, 0x20 | 12, t.psn - 1);
        }
        if (!i) {
            psn = read_request(&t, 0x1000, 0, 8);
        }
    }
    assert_int_equal(query(&t).tags, 1);
    no_cqe(&t);
    peer_tx(t.p, .op = RESP_ONLY, .psn = psn, .syn = 0x1f, .data = data,
            .len = 8);
    cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS, QHCA_CQE_F_TM_DATA_VALID);
    read_request(&t, 0x1000, 1, 8);
    /* the FIN of the first still takes a slot until it is acknowledged */
    t.psn--;
    send_one(&t, b, 32);
    peer_expect_aeth(t.p, 0x20 | 12, t.psn - 1);
    assert_int_equal(query(&t).tags, 1);
    close(&t);
    /* closing reported the entries: no leaks, see the sanitizer */
}

/* RESET and DESTROY return what the QP had. */
static void given_back(void **state)
{
    uint8_t b[MTU];
    struct tm t;
    unsigned i;

    (void)state;
    open(&t);
    for (i = 0; i < 2; i++) {
        add(&t, 1, 1, EXACT);
        add(&t, 2, 2, EXACT);
        rndv(b, 1, 0, 0x1000, 1, 20);
        send_one(&t, b, 32);
        matched(&t, 1);
        eager(b, 2, 0, MTU - 16);
        peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b, .len = MTU);
        matched(&t, 2);
        if (i) {
            assert_int_equal(gqp_destroy(&t.p->qp), QHCA_ST_OK);
        } else {
            assert_int_equal(gqp_state(&t.p->qp, QHCA_QPS_RESET),
                             QHCA_ST_OK);
        }
        assert_int_equal(cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_WR_FLUSH_ERR,
                             0).wqe_index, 1);
        assert_int_equal(cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_WR_FLUSH_ERR,
                             0).wqe_index, 2);
        no_cqe(&t);
        if (!i) {
            gqp_to_init(&t.p->qp, &t.p->a);
            gqp_to_rtr(&t.p->qp, &t.p->w.node[1], &t.p->a);
            gqp_to_rts(&t.p->qp, &t.p->a);
            t.psn = t.p->a.rq_psn;
        }
    }
    create_qp(&t);
    close(&t);
}

/* A reset of the adapter in the middle writes nothing. */
static void adapter_reset(void **state)
{
    uint8_t b[MTU];
    struct tm t;

    (void)state;
    open(&t);
    add(&t, 1, 1, EXACT);
    add(&t, 2, 2, EXACT);
    rndv(b, 1, 0, 0x1000, 1, 20);
    send_one(&t, b, 32);
    matched(&t, 1);
    gbuf_deny(&t.p->rcq.buf, 0, t.p->rcq.buf.len, GMEM_W);
    qhca_reset(t.p->e);
    guest_drop(&t.p->g);
    gbuf_free(&t.srq.buf);
    gbuf_free(&t.srq.idx);
    gbuf_free(&t.srq.ops);
    gbuf_free(&t.p->scq.buf);
    gbuf_free(&t.p->rcq.buf);
    gbuf_free(&t.p->mr.buf);
    free(t.srq.free);
    world_fini(&t.p->w);
    free(t.p->f);
    free(t.p);
}

/* READs start when the QP may send. */
static void before_rts(void **state)
{
    struct gqp_init qi = { .type = QHCA_QPT_RC };
    uint8_t b[MTU];
    struct tm t;

    (void)state;
    open(&t);
    assert_int_equal(gqp_destroy(&t.p->qp), QHCA_ST_OK);
    qi.scq = qi.rcq = &t.p->scq;
    qi.srq = &t.srq;
    gqp_create(&t.p->qp, &t.p->g, &qi);
    gqp_to_init(&t.p->qp, &t.p->a);
    gqp_to_rtr(&t.p->qp, &t.p->w.node[1], &t.p->a);
    add(&t, 1, 1, EXACT);
    rndv(b, 1, 0, 0x1000, 1, 20);
    send_one(&t, b, 32);
    matched(&t, 1);
    acked(&t);
    peer_expect_nothing(t.p);
    gqp_to_rts(&t.p->qp, &t.p->a);
    read_request(&t, 0x1000, 1, 20);
    close(&t);
}

/*
 * The buffer's page is missing: the message arrives again, and goes to the same
 * entry, though another would match as well.
 */
static void page_fault(void **state)
{
    struct gtm_op o = {
        .opcode = QHCA_WQE_TAG_ADD, .tag = 5, .mask = EXACT, .num_sge = 1,
    };
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct godp odp;
    struct gmr mr;
    struct tm t;
    uint8_t b[MTU];
    size_t len = eager(b, 5, 3, 100);
    unsigned i;

    (void)state;
    open(&t);
    godp_create(&odp, &mr, &t.p->g, 8192, 0x600000, QHCA_ACCESS_LOCAL_WRITE,
                &gbuf_flat4k);
    gbuf_allow(&mr.buf, 0, 8192, GMEM_RW);
    for (i = 0; i < 2; i++) {
        o.handle = i;
        o.recv_wr_id = 0x7a60000 + i;
        o.sge[0] = (struct qhca_sge){ 0x600000 + i * 4096, 4096, mr.key };
        op(&t, o);
    }
    for (i = 0; i < 2; i++) {
        peer_tx(t.p, .op = SEND_ONLY, .psn = t.psn, .data = b, .len = len,
                .ackreq = true);
        peer_expect_nothing(t.p);
        no_cqe(&t);
        assert_int_equal(query(&t).tags, 1 - i);
        guest_faults(&t.p->g, t.p->qp.qpn, f);
        assert_true(f[QHCA_PAGE_FAULT_RECV].flags & QHCA_PAGE_FAULT_VALID);
        godp_in(&odp, 4096 * i, 4096, true);
        assert_int_equal(guest_resume(&t.p->g, t.p->qp.qpn,
                                      QHCA_PAGE_FAULT_RECV,
                                      f[QHCA_PAGE_FAULT_RECV].token, false),
                         QHCA_ST_OK);
        peer_run(t.p);
        while (peer_waiting(t.p)) {
            assert_int_equal(peer_next(t.p)->op, ACK);  /* NAKs */
        }
        len = eager(b, 5, 3, 100);
        send_one(&t, b, len);
        acked(&t);
        tagged(&t, i, 5, 3, 100);
    }
    gqp_state(&t.p->qp, QHCA_QPS_RESET);
    assert_int_equal(godp_destroy(&odp), QHCA_ST_OK);
    close(&t);
}

/* ---- steps ---- */

static struct {
    uint32_t qpn, cqn, psn, sq_psn, unexp;
} seen;

/*
 * Eager with one and with three packets, one without a match, and two
 * rendezvous, whose READs have three packets and one response packet.
 */
static void step_traffic(void)
{
    uint8_t b[2 * MTU], h[2][MTU];
    struct tm t;
    uint32_t psn;
    unsigned i;

    open(&t);
    post_recv(&t);
    seen.qpn = t.p->qp.qpn;
    seen.cqn = t.p->rcq.cqn;
    seen.psn = t.psn;
    seen.sq_psn = t.p->a.sq_psn;
    for (i = 0; i < 4; i++) {
        assert_int_equal(add(&t, 0x30000 + 7 * i, 100 + i, EXACT),
                         QHCA_TM_DONE);
    }
    steps_begin(t.p->n);
    send_eager(&t, 102, 1, 20);
    acked(&t);
    tagged(&t, 0x30000 + 14, 102, 1, 20);
    send_eager(&t, 55, 2, 30);
    acked(&t);
    seen.unexp = unexpected(&t, 46).wqe_index;
    eager(b, 100, 8, 2 * MTU - 16);
    peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b, .len = MTU);
    peer_tx(t.p, .op = SEND_MIDDLE, .psn = t.psn + 1, .data = b + MTU,
            .len = MTU);
    peer_tx(t.p, .op = SEND_LAST, .psn = t.psn + 2, .data = "end", .len = 3,
            .ackreq = true);
    t.psn += 3;
    acked(&t);
    matched(&t, 0x30000);
    cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS, QHCA_CQE_F_TM_DATA_VALID);
    rndv(h[0], 103, 1, 0x123456000, 0x777, 2 * MTU);
    send_one(&t, h[0], 32);
    matched(&t, 0x30000 + 21);
    acked(&t);
    psn = read_request(&t, 0x123456000, 0x777, 2 * MTU);
    rndv(h[1], 101, 2, 0x1000, 0x778, 9);
    send_one(&t, h[1], 32);
    matched(&t, 0x30000 + 7);
    acked(&t);
    assert_int_equal(read_request(&t, 0x1000, 0x778, 9),
                     (psn + 2) & 0xffffff);
    peer_tx(t.p, .op = RESP_FIRST, .psn = psn, .syn = 0x1f, .data = data,
            .len = MTU);
    peer_tx(t.p, .op = RESP_LAST, .psn = psn + 1, .syn = 0x1f, .data = data,
            .len = MTU);
    peer_tx(t.p, .op = RESP_ONLY, .psn = psn + 2, .syn = 0x1f, .data = data,
            .len = 9);
    for (i = 0; i < 2; i++) {
        cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS,
            QHCA_CQE_F_TM_DATA_VALID);
    }
    fin(&t, psn + 3, h[0]);
    fin(&t, psn + 4, h[1]);
    no_cqe(&t);
    steps_end(t.p->n);
    close(&t);
}

/* n steps are n, with and without list entries; each names its object. */
static void stepped(void **state)
{
    static const struct { uint8_t psn, op; } in[] = {
        { 0, SEND_ONLY }, { 1, SEND_ONLY }, { 2, SEND_FIRST },
        { 3, SEND_MIDDLE }, { 4, SEND_LAST }, { 5, SEND_ONLY },
        { 6, SEND_ONLY }, { 0, RESP_FIRST }, { 1, RESP_LAST },
        { 2, RESP_ONLY }, { 3, ACK }, { 4, ACK },
    };
    static const struct { uint8_t op, psn; uint32_t handle; } wqe[] = {
        { QHCA_WQE_RDMA_READ, 0, 0x30015 },
        { QHCA_WQE_RDMA_READ, 2, 0x30007 },
        { QHCA_WQE_SEND, 3, 0 }, { QHCA_WQE_SEND, 4, 0 },
    };
    /* 0: no entry, but a receive WQE of the SRQ */
    static const uint32_t taken[] = { 0x3000e, 0, 0x30000, 0x30015, 0x30007 };
    static const struct { uint32_t handle, len; } done[] = {
        { 0x3000e, 20 }, { 0, 46 }, { 0x30000, MTU - 16 },
        { 0x30000, 2 * MTU - 16 + 3 }, { 0x30015, 0 }, { 0x30007, 0 },
        { 0x30015, 2 * MTU }, { 0x30007, 9 },
    };
    const struct qhca_trace *t;
    unsigned i;

    (void)state;
    steps_check(step_traffic);
    assert_int_equal(steps_count(QHCA_ON_PACKET_IN), 12);
    for (i = 0; i < 12; i++) {
        t = steps_event(QHCA_ON_PACKET_IN, i);
        assert_int_equal(t->num, seen.qpn);
        assert_int_equal(t->peer, PEER_QPN);
        assert_int_equal(t->psn, ((i < 7 ? seen.psn : seen.sq_psn) +
                                  in[i].psn) & 0xffffff);
        assert_int_equal(t->a, in[i].op);
    }
    assert_int_equal(steps_count(QHCA_ON_WQE), 4);
    for (i = 0; i < 4; i++) {
        t = steps_event(QHCA_ON_WQE, i);
        assert_int_equal(t->num, seen.qpn);
        assert_int_equal(t->index, i);
        assert_int_equal(t->a, wqe[i].op);
        assert_int_equal(t->b, wqe[i].handle ? 0x7a60000 + wqe[i].handle : 0);
        assert_int_equal(t->psn, (seen.sq_psn + wqe[i].psn) & 0xffffff);
    }
    assert_int_equal(steps_count(QHCA_ON_RECV_WQE), 5);
    for (i = 0; i < 5; i++) {
        t = steps_event(QHCA_ON_RECV_WQE, i);
        assert_int_equal(t->num, seen.qpn);
        assert_int_equal(t->index, taken[i] ? taken[i] : seen.unexp);
        assert_int_equal(t->b, taken[i] ? 0x7a60000 + taken[i] : 0x5e0000);
    }
    assert_int_equal(steps_count(QHCA_ON_CQE), 8);
    for (i = 0; i < 8; i++) {
        t = steps_event(QHCA_ON_CQE, i);
        assert_int_equal(t->num, seen.cqn);
        assert_int_equal(t->peer, seen.qpn);
        assert_int_equal(t->index, i);
        assert_int_equal(t->wqe, i == 1 ? seen.unexp : done[i].handle);
        assert_int_equal(t->len, done[i].len);
        assert_int_equal(t->op, QHCA_CQE_OP_TM_RECV);
    }
}

/* A WRITE that waits for a page has a receive WQE. The peer replaces it. */
static void another_after_fault(void **state)
{
    struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES];
    struct godp odp;
    struct gmr mr;
    struct tm t;
    uint8_t b[MTU];
    unsigned n = 0;

    (void)state;
    open(&t);
    godp_create(&odp, &mr, &t.p->g, 8192, 0x600000, QHCA_ACCESS_MASK,
                &gbuf_flat4k);
    post_recv(&t);
    add(&t, 0, 5, EXACT);
    peer_tx(t.p, .op = WRITE_ONLY_IMM, .psn = t.psn, .va = 0x600000,
            .rkey = mr.key, .dmalen = 100, .data = data, .len = 100);
    guest_faults(&t.p->g, t.p->qp.qpn, f);
    assert_true(f[QHCA_PAGE_FAULT_RECV].flags & QHCA_PAGE_FAULT_VALID);
    send_one(&t, b, eager(b, 5, 3, 100));       /* in its place */
    assert_int_equal(guest_resume(&t.p->g, t.p->qp.qpn,
                                  QHCA_PAGE_FAULT_RECV,
                                  f[QHCA_PAGE_FAULT_RECV].token, false),
                     QHCA_ST_OK);
    peer_run(t.p);
    memset(b, 0, sizeof(b));
    send_one(&t, b, 16);                        /* NO_TAG */
    peer_run(t.p);
    gqp_state(&t.p->qp, QHCA_QPS_ERR);
    peer_run(t.p);
    while (gcq_poll(&t.p->rcq, &t.p->cqe)) {
        n += (t.p->cqe.flags & QHCA_CQE_F_SRQ) != 0;
    }
    /* It was taken from the ring, so a CQE returns it. */
    assert_int_equal(query(&t).tail, 1);
    assert_int_equal(n, 1);
    assert_int_equal(godp_destroy(&odp), QHCA_ST_OK);
    close(&t);
}

/*
 * A rendezvous begins with the one packet that requests it, so no QP that works
 * holds an entry for one: it would begin without regard to the slots left.
 */
static void saved_rendezvous(void **state)
{
    struct tm t;
    struct qhca_qp *qp;
    uint8_t b[MTU];

    (void)state;
    open(&t);
    add(&t, 5, 42, EXACT);
    eager(b, 42, 8, MTU - 16);
    peer_tx(t.p, .op = SEND_FIRST, .psn = t.psn, .data = b, .len = MTU);
    cqe(&t, QHCA_CQE_OP_TM_RECV, QHCA_WC_SUCCESS, QHCA_CQE_F_TM_MATCH);
    qp = qhca_qp_get(t.p->e, t.p->qp.qpn);
    assert_int_equal(qp->tm->kind, QHCA_TM_EAGER);
    assert_string_equal(node_loads(t.p->n, &t.p->e->cfg), "");
    qp->tm->kind = QHCA_TM_RNDV;
    assert_string_not_equal(node_loads(t.p->n, &t.p->e->cfg), "");
    qp->tm->kind = QHCA_TM_EAGER;
    close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stepped),
        cmocka_unit_test(contexts),
        cmocka_unit_test(eager_match),
        cmocka_unit_test(eager_long),
        cmocka_unit_test(eager_too_long),
        cmocka_unit_test(bad_key),
        cmocka_unit_test(counts),
        cmocka_unit_test(counts_early),
        cmocka_unit_test(no_tag),
        cmocka_unit_test(not_ready),
        cmocka_unit_test(operations),
        cmocka_unit_test(ring_laps),
        cmocka_unit_test(rendezvous),
        cmocka_unit_test(rendezvous_imm),
        cmocka_unit_test(rendezvous_many),
        cmocka_unit_test(rendezvous_incomplete),
        cmocka_unit_test(rendezvous_refused),
        cmocka_unit_test(fin_refused),
        cmocka_unit_test(rendezvous_full),
        cmocka_unit_test(given_back),
        cmocka_unit_test(adapter_reset),
        cmocka_unit_test(before_rts),
        cmocka_unit_test(page_fault),
        cmocka_unit_test(another_after_fault),
        cmocka_unit_test(saved_rendezvous),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
