/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inspection: contexts, rings, windows and tables as they are, without side
 * effects.
 */
#include "unit.h"
#include "peer.h"
#include "emit.h"
#include "observe/decode.h"

#define MTU 256
#define SIG QHCA_WQE_F_SIGNALED

/* Every byte of a structure belongs to a field or is reserved. */
static void layouts(void **state)
{
    const struct qhca_struct_layout *l;
    const struct qhca_field *f;
    size_t at;

    (void)state;
    for (l = qhca_struct_layouts; l->name; l++) {
        at = 0;
        for (f = l->fields; f->name; f++) {
            CHECK(f->off == at, "struct %s: bytes %zu to %u are missing in "
                  "decode_fields.c", l->name, at, f->off);
            at += f->size;
        }
        CHECK(at == l->size, "struct %s: the end is missing", l->name);
    }
}

/* No two codes of a kind have the same value, and texts are not truncated. */
static void names(void **state)
{
    static const struct qhca_name *const tables[] = {
        qhca_names_qp_type, qhca_names_wqe_op, qhca_names_cqe_op,
        qhca_names_wc, qhca_names_syn, qhca_names_event, qhca_names_cmd,
        qhca_names_st, qhca_names_bth, qhca_names_stat,
    };
    const struct qhca_name *n;
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
        for (n = tables[i]; n->name; n++) {
            assert_ptr_equal(qhca_name_of(tables[i], n->val), n->name);
        }
    }
}

/* Inspection may read anything: the red zones are for the device's work. */
static const char *look(struct peer *p, struct seen *s,
                        enum qhca_object object, uint32_t number)
{
    const char *wrong;

    p->n->mem.unchecked = true;
    wrong = qhca_inspect(p->e, object, number, seen_start(s));
    p->n->mem.unchecked = false;
    assert_int_equal(s->depth, 0);
    return wrong;
}

static const char *ring(struct peer *p, struct seen *s,
                        const struct qhca_ring_query *l)
{
    const char *wrong;

    p->n->mem.unchecked = true;
    wrong = qhca_inspect_ring(p->e, l, seen_start(s));
    p->n->mem.unchecked = false;
    assert_int_equal(s->depth, 0);
    return wrong;
}

/* The context is as the driver programmed it, decoded and raw. */
static void context(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct seen s = { 0 };
    struct qhca_qpc qpc;
    char raw[2 * sizeof(qpc) + 1];
    size_t i;

    (void)state;
    assert_null(look(p, &s, QHCA_OBJ_QP, p->qp.qpn));
    SEEN(&s, "object", "qp");
    SEEN(&s, "context.type_name", "RC");
    SEEN(&s, "context.state_name", "RTS");
    SEEN(&s, "context.dest_qpn", "1911");
    SEEN(&s, "context.sq_psn", "16777214");
    SEEN(&s, "context.retry_cnt", "3");
    SEEN(&s, "context.sq_shift", "9");
    SEEN(&s, "context.av.dgid", "::ffff:10.99.0.2");
    SEEN(&s, "requester.state_name", "IDLE");
    SEEN(&s, "requester.retransmission.timer_running", "false");
    guest_query(&p->g, QHCA_CMD_QUERY_QP, p->qp.qpn, &qpc, sizeof(qpc));
    for (i = 0; i < sizeof(qpc); i++) {
        sprintf(raw + 2 * i, "%02x", ((uint8_t *)&qpc)[i]);
    }
    SEEN(&s, "raw", raw);
    assert_non_null(look(p, &s, QHCA_OBJ_QP, 12345));
    assert_non_null(look(p, &s, QHCA_OBJ_MCG, 0));
    assert_null(look(p, &s, QHCA_OBJ_DEVICE, 0));
    SEEN(&s, "objects.qp", "1");
    SEEN(&s, "counters.roce-tx-packets", "0");
    assert_null(look(p, &s, QHCA_OBJ_CQ, p->scq.cqn));
    SEEN(&s, "context.shift", "10");
    SEEN(&s, "users", "1");
    assert_null(look(p, &s, QHCA_OBJ_MR, p->mr.key));
    SEEN(&s, "context.iova", "0x500000000000");
    assert_null(look(p, &s, QHCA_OBJ_EQ, 0));
    assert_null(look(p, &s, QHCA_OBJ_PD, p->mr.pd));
    assert_null(look(p, &s, QHCA_OBJ_UAR, p->qp.uar));
    assert_null(look(p, &s, QHCA_OBJ_GID, 1));
    SEEN(&s, "context.type_name", "ROCE_V2");
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* Each kind of ring: its shape, decoded entries, missing rings. */
static void rings(void **state)
{
    static const struct {
        enum qhca_object object;
        enum qhca_ring ring;
    } none[] = {
        { QHCA_OBJ_QP, QHCA_RING_INDEX }, { QHCA_OBJ_QP, QHCA_RING_CQ },
        { QHCA_OBJ_SRQ, QHCA_RING_OPS }, { QHCA_OBJ_SRQ, QHCA_RING_SQ },
        { QHCA_OBJ_CQ, QHCA_RING_SQ }, { QHCA_OBJ_EQ, QHCA_RING_CQ },
        { QHCA_OBJ_MR, QHCA_RING_MR }, { QHCA_OBJ_ETH_SQ, QHCA_RING_SQ },
        { QHCA_OBJ_ETH_RQ, QHCA_RING_RQ }, { QHCA_OBJ_WQ, QHCA_RING_RQ },
    };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_ring_query l = { .object = QHCA_OBJ_SRQ };
    struct qhca_sge sge = { .addr = 0x500000000040, .len = 77 };
    struct seen s = { 0 };
    struct gsrq srq;
    uint32_t wqe;
    char path[32];
    unsigned i;

    (void)state;
    sge.lkey = p->mr.key;
    gsrq_create(&srq, &p->g, 3, 6, NULL, NULL);
    gsrq_post(&srq, 0xab, &sge, 1, &wqe);

    l.number = srq.srqn;
    l.ring = qhca_ring_default(QHCA_OBJ_SRQ);
    assert_null(ring(p, &s, &l));
    SEEN(&s, "ring", "srq");
    SEEN(&s, "depth", "8");
    SEEN(&s, "stride", "64");
    snprintf(path, sizeof(path), "entries.%u.wr_id", wqe);
    SEEN(&s, path, "0xab");
    snprintf(path, sizeof(path), "entries.%u.sges.0.addr", wqe);
    SEEN(&s, path, "0x500000000040");
    l.ring = QHCA_RING_INDEX;
    assert_null(ring(p, &s, &l));
    SEEN(&s, "ring", "index");
    SEEN(&s, "stride", "4");
    SEEN(&s, "consumer", "0");

    l = (struct qhca_ring_query){ .object = QHCA_OBJ_EQ };
    l.ring = qhca_ring_default(QHCA_OBJ_EQ);
    assert_null(ring(p, &s, &l));
    SEEN(&s, "ring", "eq");
    SEEN(&s, "stride", "16");
    l = (struct qhca_ring_query){ .object = QHCA_OBJ_QP,
                                 .number = p->qp.qpn,
                                 .ring = QHCA_RING_RQ };
    assert_null(ring(p, &s, &l));
    SEEN(&s, "ring", "rq");

    for (i = 0; i < sizeof(none) / sizeof(none[0]); i++) {
        l = (struct qhca_ring_query){ .object = none[i].object,
                                     .ring = none[i].ring,
                                     .number = i < 2 ? p->qp.qpn :
                                         i < 4 ? srq.srqn : 0 };
        assert_non_null(ring(p, &s, &l));
        l.number = 12345;
        assert_non_null(ring(p, &s, &l));
    }
    assert_int_equal(qhca_ring_default(QHCA_OBJ_MR), QHCA_RING_MR);
    assert_int_equal(qhca_ring_default(QHCA_OBJ_MW), QHCA_RING_MR);
    assert_int_equal(qhca_ring_default(QHCA_OBJ_WQ), QHCA_RING_RQ);
    assert_int_equal(qhca_ring_default(QHCA_OBJ_ETH_RQ), QHCA_RING_RQ);
    assert_int_equal(qhca_ring_default(QHCA_OBJ_CQ), QHCA_RING_CQ);
    assert_int_equal(qhca_ring_default(QHCA_OBJ_ETH_SQ), QHCA_RING_SQ);
    assert_null(qhca_ring_name(QHCA_RINGS));
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* Packets sent and unacknowledged: the window, the timer, the marks. */
static void window(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_ring_query l = {
        .object = QHCA_OBJ_QP, .number = p->qp.qpn, .ring = QHCA_RING_SQ,
    };
    struct seen s = { 0 };
    uint64_t reads = p->n->mem.reads, walks;

    (void)state;
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 0xab,
                               .flags = SIG }, 100, 2 * MTU + 3);
    peer_expect(p, SEND_FIRST, 0xfffffe);
    peer_expect(p, SEND_MIDDLE, 0xffffff);
    peer_expect(p, SEND_LAST, 0);
    /* a READ with half of its data */
    peer_post(p, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 0xcd,
                               .flags = SIG, .remote_addr = 0x1000,
                               .rkey = 77 }, 0, 2 * MTU);
    peer_expect(p, READ_REQ, 1);
    walks = qhca_stat(p->e, QHCA_STAT_TABLE_WALKS);
    assert_null(look(p, &s, QHCA_OBJ_QP, p->qp.qpn));
    SEEN(&s, "requester.state_name", "WAIT_ACK");
    SEEN(&s, "requester.outstanding_psns", "5");
    SEEN(&s, "requester.reads_outstanding", "1");
    SEEN(&s, "requester.retransmission.timer", "ack");
    SEEN(&s, "requester.retransmission.timer_code", "10");
    SEEN(&s, "requester.window.0.wr_id", "0xab");
    SEEN(&s, "requester.window.0.opcode_name", "SEND");
    SEEN(&s, "requester.window.0.psns", "3");
    SEEN(&s, "requester.window.1.wr_id", "0xcd");
    SEEN(&s, "requester.window.1.opcode_name", "RDMA_READ");
    SEEN(&s, "requester.window.1.first_psn", "1");
    SEEN(&s, "requester.reads.0.index", "1");
    SEEN(&s, "requester.reads.0.opcode_name", "RDMA_READ");
    SEEN(&s, "requester.reads.0.first_psn", "1");
    SEEN(&s, "requester.reads.0.last_psn", "2");
    SEEN(&s, "requester.reads.0.responses_awaited", "2");
    assert_null(seen_get(&s, "requester.reads.1.index"));
    assert_null(seen_get(&s, "requester.window.2.wr_id"));

    assert_null(ring(p, &s, &l));
    SEEN(&s, "producer", "2");
    SEEN(&s, "next", "2");
    SEEN(&s, "consumer", "0");
    SEEN(&s, "entries.0.mark", "in-flight");
    SEEN(&s, "entries.0.opcode_name", "SEND");
    SEEN(&s, "entries.0.wr_id", "0xab");
    SEEN(&s, "entries.0.sges.0.len", "515");
    SEEN(&s, "entries.1.remote.rkey", "0x4d");
    SEEN(&s, "entries.2.mark", "free");
    /* none of this counts as the device's work */
    assert_int_equal(qhca_stat(p->e, QHCA_STAT_TABLE_WALKS), walks);
    assert_true(p->n->mem.reads > reads);

    peer_ack(p, 0, 0x1f);
    peer_cqe(p, scq, 0xab, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_null(ring(p, &s, &l));
    SEEN(&s, "entries.0.mark", "free");
    l.ring = QHCA_RING_CQ;
    assert_non_null(ring(p, &s, &l));
    l.object = QHCA_OBJ_CQ;
    l.number = p->scq.cqn;
    assert_null(ring(p, &s, &l));
    SEEN(&s, "producer", "1");
    SEEN(&s, "entries.0.wr_id", "0xab");
    SEEN(&s, "entries.0.status_name", "SUCCESS");
    assert_null(qhca_inspect_all(p->e, QHCA_OBJ_QP, 0, 10, seen_start(&s)));
    SEEN(&s, "objects.0.sq_tail", "1");
    SEEN(&s, "more", "false");
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

/* Whatever software wrote to a WQE, it is shown, with no access past it. */
static void hostile(void **state)
{
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct qhca_ring_query l = {
        .object = QHCA_OBJ_QP, .number = p->qp.qpn, .ranged = true,
        .count = 1,
    };
    struct seen s = { 0 };
    uint8_t wqe[256];
    unsigned i, j;

    (void)state;
    for (i = 0; i < 300; i++) {
        for (j = 0; j < sizeof(wqe); j++) {
            wqe[j] = (uint8_t)rng_below(&p->g.rng, 256);
        }
        wqe[0] = i & 1 ? (uint8_t)(i / 2) : QHCA_WQE_SEND;
        gqp_sq_poke(&p->qp, 0, 0, wqe, sizeof(wqe));
        l.ring = QHCA_RING_SQ;
        assert_null(ring(p, &s, &l));
        gqp_rq_poke(&p->qp, 0, 0, wqe, 128);
        l.ring = QHCA_RING_RQ;
        assert_null(ring(p, &s, &l));
    }
    /* any index, any count */
    l.index = 0xfffffff0;
    l.count = UINT32_MAX;
    assert_null(ring(p, &s, &l));
    assert_non_null(seen_get(&s, "entries.63.slot"));
    assert_null(seen_get(&s, "entries.64.slot"));
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

static const struct gbuf_shape shapes[] = {
    { QHCA_BUF_DIRECT, 0, 0, 0 }, { QHCA_BUF_LIST, 0, 0, 0 },
    { QHCA_BUF_FLAT, 1, 12, 0 }, { QHCA_BUF_FLAT, 1, 16, 0 },
    { QHCA_BUF_TREE, 1, 12, 12 }, { QHCA_BUF_TREE, 2, 13, 14 },
    { QHCA_BUF_TREE, 3, 12, 12 }, { QHCA_BUF_TREE, 3, 16, 13 },
};

#define LEN (500u * 4096u)

/* The walk shown is that of the engine, in every form of table. */
static void walks(void **state)
{
    struct unit *u = *state;
    struct seen s = { 0 };
    struct gmr mr;
    char want[32];
    uint64_t off, entry;
    unsigned i, j;

    u->m->unchecked = true;
    for (i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        gmr_create(&mr, &u->g, LEN, 0x40000000, QHCA_ACCESS_MASK,
                   &shapes[i]);
        for (j = 0; j < 50; j++) {
            struct qhca_walk_look l = {
                .object = QHCA_OBJ_MR, .number = mr.key,
                .by = QHCA_WALK_VA, .bytes = 16, .entries = 8,
            };

            off = rng_below(&u->g.rng, LEN);
            l.at = mr.iova + off;
            assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
            snprintf(want, sizeof(want), "0x%llx",
                     (unsigned long long)gbuf_addr(&mr.buf, off, NULL));
            SEEN(&s, "address", want);
            assert_non_null(seen_get(&s, "bytes"));
            if (shapes[i].form == QHCA_BUF_FLAT ||
                shapes[i].form == QHCA_BUF_TREE) {
                char path[32];

                entry = gbuf_entry_addr(&mr.buf, off);
                snprintf(want, sizeof(want), "0x%llx",
                         (unsigned long long)entry);
                snprintf(path, sizeof(path), "hops.%u.at",
                         shapes[i].hops - 1);
                SEEN(&s, path, want);
                assert_non_null(strstr(s.text, "marked = true"));
            }
        }
        assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    }
    seen_start(&s);
    free(s.text);
}

/* An invalid entry is shown as such. */
static void broken(void **state)
{
    struct unit *u = *state;
    static const struct gbuf_shape tree = { QHCA_BUF_TREE, 2, 12, 12 };
    struct seen s = { 0 };
    struct gmr mr;
    struct qhca_walk_look l = {
        .object = QHCA_OBJ_MR, .by = QHCA_WALK_OFFSET, .at = 400 * 4096,
        .bytes = 16, .entries = 4,
    };
    uint64_t *entry;

    u->m->unchecked = true;
    gmr_create(&mr, &u->g, LEN, 0, QHCA_ACCESS_MASK, &tree);
    l.number = mr.key;
    entry = gmem_ptr(u->m, gbuf_entry_addr(&mr.buf, l.at), 8);
    *entry &= ~QHCA_BTE_VALID;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "error", "the entry is not valid");
    SEEN(&s, "hops.1.valid", "false");
    *entry |= QHCA_BTE_VALID | QHCA_BTE_TABLE;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "error", "the entry names a table, not a page");
    l.at = LEN;
    assert_non_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    l.by = QHCA_WALK_INDEX;
    assert_non_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    seen_start(&s);
    free(s.text);
}

/* Unmapped memory is reported, whether of a table or of a page. */
static void unreadable(void **state)
{
    static const struct gbuf_shape form[] = {
        { QHCA_BUF_TREE, 2, 12, 12 }, { QHCA_BUF_LIST, 0, 0, 0 },
    };
    struct unit *u = *state;
    struct seen s = { 0 };
    struct gmr mr;
    unsigned i;

    u->m->unchecked = true;
    for (i = 0; i < 2; i++) {
        struct qhca_walk_look l = {
            .object = QHCA_OBJ_MR, .by = QHCA_WALK_OFFSET, .bytes = 16,
        };
        struct qhca_tree_look t = { .object = QHCA_OBJ_MR, .max = 16 };
        struct qhca_mr *m;

        gmr_create(&mr, &u->g, LEN, 0, QHCA_ACCESS_MASK, &form[i]);
        l.number = t.number = mr.key;
        assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
        assert_null(seen_get(&s, "error"));
        assert_non_null(seen_get(&s, "bytes"));
        /* a page at the end of the address space */
        if (i == 0) {
            uint64_t *entry = gmem_ptr(u->m, gbuf_entry_addr(&mr.buf, 0), 8);
            uint64_t was = *entry;

            *entry |= QHCA_BTE_ADDR_MASK & ~0xfffULL;
            assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
            SEEN(&s, "error", "the memory cannot be read");
            assert_null(seen_get(&s, "bytes"));
            *entry = was & ~QHCA_BTE_VALID;
            assert_null(qhca_inspect_tree(u->e, &t, seen_start(&s)));
            assert_non_null(strstr(s.text, "= the entry is not valid"));
            *entry = was;
        }
        /* the whole table */
        m = qhca_mr_get_cmd(u->e, mr.key);
        m->buf.addr |= 1ULL << 50;
        assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
        SEEN(&s, "error", i ? "the list cannot be read" :
                              "the table cannot be read");
        assert_null(qhca_inspect_tree(u->e, &t, seen_start(&s)));
        assert_int_equal(s.depth, 0);
        assert_int_equal(!!strstr(s.text, "= the table cannot be read"), !i);
        m->buf.addr &= ~(1ULL << 50);
        assert_null(qhca_inspect_tree(u->e, &t, seen_start(&s)));
        assert_null(strstr(s.text, "cannot be read"));
        assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    }
    seen_start(&s);
    free(s.text);
}

/* A ring is walked by its entries; invalid questions are refused. */
static void ring_walks(void **state)
{
    struct unit *u = *state;
    struct qhca_walk_look l = {
        .object = QHCA_OBJ_CQ, .ring = QHCA_RING_CQ, .by = QHCA_WALK_INDEX,
        .at = 3, .bytes = 64,
    };
    struct qhca_tree_look t = {
        .object = QHCA_OBJ_CQ, .ring = QHCA_RING_CQ, .max = 16,
    };
    struct seen s = { 0 };
    struct gcq cq;
    char want[24];

    u->m->unchecked = true;
    gcq_create(&cq, &u->g, 2, &gbuf_direct, 1);
    l.number = t.number = cq.cqn;
    snprintf(want, sizeof(want), "0x%llx",
             (unsigned long long)gbuf_addr(&cq.buf, 3 * 64, NULL));
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "address", want);
    l.at = 7;                   /* indices wrap */
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "address", want);
    assert_null(qhca_inspect_tree(u->e, &t, seen_start(&s)));
    SEEN(&s, "ring", "cq");
    snprintf(want, sizeof(want), "0x%llx",
             (unsigned long long)gbuf_addr(&cq.buf, 0, NULL));
    SEEN(&s, "address", want);
    SEEN(&s, "more", "false");
    l.by = QHCA_WALK_VA;
    assert_non_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    l.by = QHCA_WALK_OFFSET;
    l.at = 4 * 64;
    assert_non_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    l.at = t.number = l.number = 999;
    assert_non_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    assert_non_null(qhca_inspect_tree(u->e, &t, seen_start(&s)));
    assert_string_equal(s.text, "");
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    seen_start(&s);
    free(s.text);
}

/* What no region can answer, and what software did to a list. */
static void refused_walks(void **state)
{
    static const struct gbuf_shape list = { QHCA_BUF_LIST, 0, 0, 0 };
    struct unit *u = *state;
    struct qhca_mpt w = { .flags = QHCA_MR_F_MW1, .pd = u->g.pd };
    struct qhca_mpt fast = { .flags = QHCA_MR_F_FAST_REG, .pd = u->g.pd,
                             .max_entries = qhca_le32(2) };
    struct qhca_walk_look l = {
        .object = QHCA_OBJ_MR, .by = QHCA_WALK_VA, .bytes = 16, .entries = 4,
    };
    struct seen s = { 0 };
    struct qhca_buf_seg *seg, was;
    struct qhca_mr *m;
    uint32_t window, empty;
    struct gmr mr;

    u->m->unchecked = true;
    gmr_create(&mr, &u->g, LEN, 0x40000000, QHCA_ACCESS_MASK, &list);
    window = guest_create(&u->g, QHCA_CMD_CREATE_MW, &w, sizeof(w));
    empty = guest_create(&u->g, QHCA_CMD_CREATE_MR, &fast, sizeof(fast));
    l.number = window;
    assert_string_equal(qhca_inspect_walk(u->e, &l, seen_start(&s)),
                        "no such object");
    l.number = empty;
    assert_string_equal(qhca_inspect_walk(u->e, &l, seen_start(&s)),
                        "the memory region is not valid now");
    l.number = mr.key;
    l.at = mr.iova - 1;
    assert_string_equal(qhca_inspect_walk(u->e, &l, seen_start(&s)),
                        "the address lies outside of the memory region");
    l.at = mr.iova + LEN;
    assert_string_equal(qhca_inspect_walk(u->e, &l, seen_start(&s)),
                        "the address lies outside of the memory region");
    assert_string_equal(s.text, "");

    m = qhca_mr_get_cmd(u->e, mr.key);
    seg = gmem_ptr(u->m, m->buf.addr, sizeof(*seg));
    was = *seg;
    l.at = mr.iova + 5;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    assert_null(seen_get(&s, "error"));
    seg->len &= ~QHCA_BUF_SEG_VALID;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "error", "a segment is not valid");
    SEEN(&s, "hops.0.valid", "false");
    seg->len = QHCA_BUF_SEG_VALID;      /* empty */
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "error", "a segment is not valid");
    *seg = was;
    /* a list with less than the region */
    seg[m->buf.entries - 1].len = QHCA_BUF_SEG_VALID | 1;
    l.at = mr.iova + LEN - 1;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "error", "the list ends before the byte");
    /* memory that ends behind the address space */
    seg[0].addr = UINT64_MAX - 7;
    l.at = mr.iova;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "error", "the memory cannot be read");
    *seg = was;
    l.bytes = 0;                /* only where it is */
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    assert_non_null(seen_get(&s, "address"));
    assert_null(seen_get(&s, "bytes"));
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, window),
                     QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_MR, empty),
                     QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    seen_start(&s);
    free(s.text);
}

/* Device memory is read by offset, and only where there is some. */
static void device_memory(void **state)
{
    struct unit *u = *state;
    struct qhca_walk_look l = {
        .object = QHCA_OBJ_MR, .by = QHCA_WALK_OFFSET, .at = 3, .bytes = 4,
    };
    struct seen s = { 0 };
    struct qhca_mr *m;
    struct gmr mr;
    char want[24];

    u->m->unchecked = true;
    gmr_create_dm(&mr, &u->g, 4096, 0, QHCA_ACCESS_MASK);
    gbuf_write(&mr.buf, 0, "abcdefgh", 8);
    m = qhca_mr_get_cmd(u->e, mr.key);
    l.number = mr.key;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    snprintf(want, sizeof(want), "0x%llx",
             (unsigned long long)m->buf.addr + 3);
    SEEN(&s, "device_memory", want);
    SEEN(&s, "bytes", "64656667");
    assert_null(seen_get(&s, "address"));
    u->e->ops.dm_read = NULL;
    assert_null(qhca_inspect_walk(u->e, &l, seen_start(&s)));
    SEEN(&s, "error", "the memory cannot be read");
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    seen_start(&s);
    free(s.text);
}

/* An emitter that collects the pages or segments of a tree. */
struct leaves {
    bool list, page, more;
    unsigned n, depth;
    uint64_t addr[1024], len[1024], pages;
};

static void leaf_begin(void *opaque, const char *name, bool list)
{
    struct leaves *l = opaque;

    (void)name;
    (void)list;
    l->depth++;
}

static void leaf_end(void *opaque)
{
    struct leaves *l = opaque;

    l->depth--;
}

static void leaf_num(void *opaque, const char *name, uint64_t val, bool hex)
{
    struct leaves *l = opaque;

    (void)hex;
    if (!strcmp(name, "address") && (l->list || l->page)) {
        l->addr[l->n++] = val;
        l->page = false;
    } else if (!strcmp(name, "length")) {
        l->len[l->n - 1] = val;
    } else if (!strcmp(name, "pages")) {
        l->pages = val;
    }
}

static void leaf_flag(void *opaque, const char *name, bool val)
{
    struct leaves *l = opaque;

    if (!strcmp(name, "more")) {
        l->more = val;
    }
}

static void leaf_text(void *opaque, const char *name, const char *text)
{
    struct leaves *l = opaque;

    CHECK(strcmp(name, "error"), "%s", text);
    l->page |= !strcmp(name, "kind") && !strcmp(text, "page");
}

/* The tree has every page of the buffer, in order, in every form of table. */
static void trees(void **state)
{
    struct unit *u = *state;
    struct leaves *l = calloc(1, sizeof(*l));
    const struct qhca_emit em = {
        .opaque = l, .begin = leaf_begin, .end = leaf_end, .num = leaf_num,
        .flag = leaf_flag, .text = leaf_text,
    };
    struct gmr mr;
    unsigned i, n;

    u->m->unchecked = true;
    for (i = 1; i < sizeof(shapes) / sizeof(shapes[0]); i++) {
        struct qhca_tree_look look = { .object = QHCA_OBJ_MR, .max = 16 };
        uint64_t off = 0, seen = 0;

        gmr_create(&mr, &u->g, LEN, 0x40000000, QHCA_ACCESS_MASK,
                   &shapes[i]);
        look.number = mr.key;
        do {                    /* in pieces, as one would page through it */
            memset(l, 0, sizeof(*l));
            l->list = shapes[i].form == QHCA_BUF_LIST;
            assert_null(qhca_inspect_tree(u->e, &look, &em));
            assert_int_equal(l->depth, 0);
            assert_true(l->n > 0 && l->n <= 16);
            for (n = 0; n < l->n; n++) {
                uint64_t page = 1ULL << shapes[i].page_shift;
                uint64_t run, addr = gbuf_addr(&mr.buf, off, &run);

                if (l->list) {
                    assert_true(l->addr[n] == addr);
                    off += l->len[n];
                } else {
                    assert_true(l->addr[n] == (addr & ~(page - 1)));
                    off += page - (addr & (page - 1));
                }
            }
            look.from += l->n;
            seen += l->n;
        } while (l->more);
        assert_true(off >= LEN);
        assert_true(l->list || seen == l->pages);
        assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    }
    free(l);
}

/*
 * Everything a command creates can be inspected: each CREATE, ALLOC, SET and
 * ATTACH has an object of that name, and all can be listed.
 */
static void every_object(void **state)
{
    static const char *const verbs[] = { "CREATE_", "ALLOC_" };
    struct peer *p = peer_new(QHCA_QPT_RC, NULL);
    struct seen s = { 0 };
    const struct qhca_name *n;
    unsigned i, j, found = 0;
    enum qhca_object o;

    (void)state;
    for (n = qhca_names_cmd; n->name; n++) {
        for (i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++) {
            char name[32];

            if (strncmp(n->name, verbs[i], strlen(verbs[i]))) {
                continue;
            }
            snprintf(name, sizeof(name), "%s", n->name + strlen(verbs[i]));
            for (j = 0; name[j]; j++) {
                name[j] = name[j] == '_' ? '-' : (char)(name[j] | 0x20);
            }
            for (o = 0; o < QHCA_OBJECTS; o++) {
                if (!strcmp(name, qhca_object_name(o))) {
                    break;
                }
            }
            CHECK(o < QHCA_OBJECTS, "%s makes what cannot be looked at",
                  n->name);
            found++;
        }
    }
    assert_true(found >= 14);
    for (o = 1; o < QHCA_OBJECTS; o++) {
        assert_null(qhca_inspect_all(p->e, o, 0, 10, seen_start(&s)));
        assert_int_equal(s.depth, 0);
        SEEN(&s, "object", qhca_object_name(o));
        assert_non_null(look(p, &s, o, 0xffffff));
    }
    assert_null(look(p, &s, QHCA_OBJ_QP, p->qp.qpn));
    SEEN(&s, "path.source.type_name", "ROCE_V2");
    SEEN(&s, "path.destination.dgid", "::ffff:10.99.0.2");
    SEEN(&s, "path.mtu_bytes", "256");
    seen_start(&s);
    free(s.text);
    peer_free(p);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts),
        cmocka_unit_test(names),
        cmocka_unit_test(context),
        cmocka_unit_test(rings),
        cmocka_unit_test(window),
        cmocka_unit_test(hostile),
        UNIT(walks),
        UNIT(broken),
        UNIT(unreadable),
        UNIT(ring_walks),
        UNIT(refused_walks),
        UNIT(device_memory),
        UNIT(trees),
        cmocka_unit_test(every_object),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
