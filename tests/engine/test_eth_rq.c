/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ethernet queues as objects: contexts, states, queries, saved state. */
#include "base/csum.h"
#include "ethfix.h"

static uint8_t frame[200];

static void make_frame(struct unit *u)
{
    unsigned i;

    for (i = 0; i < sizeof(frame); i++) {
        frame[i] = (uint8_t)(i * 11);
    }
    memcpy(frame, u->n->mac, 6);
    frame[12] = frame[13] = 0x99;
}

static void arrive(struct unit *u)
{
    world_inject(&u->w, 0, frame, sizeof(frame));
}

/* One buffer, one frame, one CQE. */
static void receives(struct erq *q, uint32_t index)
{
    struct qhca_eth_cqe cqe;
    uint8_t got[sizeof(frame)];

    erq_post(q->u, &q->ring, 256, 0);
    arrive(q->u);
    assert_true(erq_poll(q, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_SUCCESS);
    assert_int_equal(cqe.opcode, QHCA_CQE_OP_ETH_RECV);
    assert_int_equal(cqe.num, q->num);
    assert_int_equal(cqe.wqe_index, index);
    assert_int_equal(cqe.num_wqe, 1);
    assert_int_equal(cqe.num_data, 0);
    assert_int_equal(cqe.header_len, 0);
    assert_int_equal(cqe.data_index, 0);
    assert_int_equal(cqe.rss_hash, 0);
    assert_int_equal(cqe.hash_type, QHCA_HASH_TYPE_NONE);
    assert_int_equal(cqe.flow_tag, 0);
    erq_read(q->u, &q->ring, index, 1, got, sizeof(got));
    assert_memory_equal(got, frame, sizeof(got));
    assert_false(erq_poll(q, &cqe));
}

/* All that may change from one query to the next. */
static void looks(struct erq *q, uint8_t st, uint32_t head, uint32_t tail,
                  uint64_t dropped, uint8_t syndrome)
{
    struct qhca_eth_qc want = erq_context(q, 0), c = erq_query(q);

    want.state = st;
    want.head = head;
    want.tail = tail;
    want.dropped = dropped;
    want.syndrome = syndrome;
    assert_memory_equal(&c, &want, sizeof(c));
}

static void states(void **state)
{
    struct unit *u = *state;
    struct erq q;

    make_frame(u);
    erq_make(u, &q, 0);
    looks(&q, QHCA_WQS_RDY, 0, 0, 0, 0);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q.num), QHCA_ST_OK);
    assert_int_equal(erq_state(&q, QHCA_WQS_RDY), QHCA_ST_BAD_STATE);
    receives(&q, 0);
    erq_post(u, &q.ring, 256, 0);
    looks(&q, QHCA_WQS_RDY, 1, 1, 0, 0);
    /* stopped: its memory is no longer the device's, its number stays */
    assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_OK);
    looks(&q, QHCA_WQS_RESET, 0, 0, 0, 0);
    arrive(u);
    arrive(u);
    looks(&q, QHCA_WQS_RESET, 0, 0, 2, 0);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 2);
    assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_OK);
    assert_int_equal(erq_state(&q, QHCA_WQS_ERR), QHCA_ST_BAD_PARAM);
    assert_int_equal(erq_state(&q, 3), QHCA_ST_BAD_PARAM);
    assert_int_equal(erq_state(&q, QHCA_WQS_RDY), QHCA_ST_OK);
    arrive(u);                          /* no buffer */
    looks(&q, QHCA_WQS_RDY, 0, 0, 3, 0);
    receives(&q, 0);
    receives(&q, 1);
    looks(&q, QHCA_WQS_RDY, 2, 2, 3, 0);
    /* ERR: back through RESET only */
    guest_dbrec_set(&u->g, q.ring.dbrec, 2 + ERQ_DEPTH + 1);
    arrive(u);
    looks(&q, QHCA_WQS_ERR, 2, 2, 3, QHCA_SYN_DB_INDEX);
    arrive(u);
    looks(&q, QHCA_WQS_ERR, 2, 2, 4, QHCA_SYN_DB_INDEX);
    world_settle(&u->w, 1000000);
    assert_int_equal(u->g.async_count[QHCA_EV_ETH_RQ_ERR], 1);
    assert_int_equal(erq_state(&q, QHCA_WQS_RDY), QHCA_ST_BAD_STATE);
    assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_OK);
    looks(&q, QHCA_WQS_RESET, 0, 0, 4, 0);
    assert_int_equal(erq_state(&q, QHCA_WQS_RDY), QHCA_ST_OK);
    receives(&q, 0);
    assert_int_equal(u->g.async_count[QHCA_EV_ETH_RQ_ERR], 1);
    erq_free(&q);
    assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_BAD_OBJ);
}

/*
 * Once the device has confirmed that a queue is stopped, it accesses neither
 * rings nor records nor buffers, though buffers were posted and frames arrive;
 * nor when the queue restarts with other rings.
 */
static void stopped(void **state)
{
    static const uint8_t flags[] = { 0, QHCA_ETH_Q_F_HDS, QHCA_ETH_Q_F_GRO };
    struct unit *u = *state;
    struct qhca_eth_cqe cqe;
    struct qhca_eth_qc c;
    struct erq q, next;
    unsigned i;

    make_frame(u);
    for (i = 0; i < sizeof(flags); i++) {
        erq_make(u, &q, flags[i]);
        erq_prepare(u, &next);
        next.num = q.num;
        assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q.num),
                         QHCA_ST_OK);
        receives(&q, 0);
        erq_post(u, &q.ring, 256, 0);
        erq_post(u, &q.data, 256, 0);
        assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_OK);
        erq_ring_close(u, &q.ring);
        erq_ring_close(u, &q.data);
        arrive(u);
        world_settle(&u->w, 1000000);
        assert_false(erq_poll(&q, &cqe));
        assert_int_equal(erq_query(&q).dropped, 1);
        c = erq_context(&next, flags[i]);
        c.state = QHCA_WQS_RDY;
        assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_RINGS |
                                    QHCA_ETH_RQ_M_STATE, NULL), QHCA_ST_OK);
        receives(&next, 0);
        erq_ring_open(u, &q.ring);
        erq_ring_open(u, &q.data);
        erq_release(&q);
        erq_free(&next);
    }
}

/* Other rings and another CQ, while the port keeps the queue's number. */
static void other_rings(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_qc c, was;
    struct erq q, next;
    uint64_t at;

    make_frame(u);
    erq_make(u, &q, 0);
    erq_prepare(u, &next);
    next.num = q.num;
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q.num), QHCA_ST_OK);
    receives(&q, 0);
    c = erq_context(&next, 0);
    c.shift = 3;
    c.stride = 9;                       /* not checked */
    assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_RINGS, &at),
                     QHCA_ST_BAD_STATE);
    c.state = QHCA_WQS_RESET;           /* not yet in RESET */
    assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_RINGS |
                                QHCA_ETH_RQ_M_STATE, &at),
                     QHCA_ST_BAD_STATE);
    receives(&q, 1);
    assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_OK);
    was = erq_query(&q);
#define NO(change, want, field) do {                                      \
        struct qhca_eth_qc bad = c, now;                                  \
                                                                          \
        bad.state = QHCA_WQS_RDY;                                         \
        bad.change;                                                       \
        assert_int_equal(erq_modify(&q, &bad, QHCA_ETH_RQ_M_RINGS |       \
                                    QHCA_ETH_RQ_M_STATE, &at), want);     \
        assert_int_equal(at, offsetof(struct qhca_eth_qc, field));        \
        now = erq_query(&q);                                              \
        assert_memory_equal(&now, &was, sizeof(now));                     \
    } while (0)
    NO(shift = 16, QHCA_ST_BAD_PARAM, shift);
    NO(dbrec += 4, QHCA_ST_BAD_PARAM, dbrec);
    NO(flags = 0x80, QHCA_ST_BAD_PARAM, flags);
    NO(data_dbrec = 8, QHCA_ST_BAD_PARAM, data_dbrec);
    NO(data_shift = 1, QHCA_ST_BAD_PARAM, data_shift);
    NO(data_buf.len = 1, QHCA_ST_BAD_PARAM, data_buf);
    NO(cqn = 9999, QHCA_ST_BAD_OBJ, cqn);
    NO(state = QHCA_WQS_ERR, QHCA_ST_BAD_PARAM, state);
    NO(buf.len = 64, QHCA_ST_BAD_TABLE, buf);
#undef NO
    assert_int_equal(erq_modify(&q, &c, 1ULL << 3, &at), QHCA_ST_BAD_PARAM);
    c.hds_thresh = 1;
    assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_HDS_THRESH, &at),
                     QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_eth_qc, hds_thresh));
    assert_int_equal(erq_modify(&q, &c, 0, &at), QHCA_ST_OK);
    /* both in one command; the old CQ is free then */
    c.state = QHCA_WQS_RDY;
    assert_int_equal(gcq_destroy(&q.cq), QHCA_ST_BUSY);
    assert_int_equal(erq_modify(&q, &c, QHCA_ETH_RQ_M_RINGS |
                                QHCA_ETH_RQ_M_STATE, &at), QHCA_ST_OK);
    erq_release(&q);
    assert_int_equal(gcq_destroy(&next.cq), QHCA_ST_BUSY);
    c = erq_query(&next);
    assert_int_equal(c.shift, 3);
    assert_int_equal(c.stride, 4);
    assert_int_equal(c.cqn, next.cq.cqn);
    assert_int_equal(c.state, QHCA_WQS_RDY);
    receives(&next, 0);
    /* the port's queue is none once it is gone */
    erq_free(&next);
    arrive(u);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_DROPPED), 1);
}

/* CREATE_ETH_*: each field, and the queries of what was created. */
static void contexts(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_qc ok, c, got;
    struct erq q;
    uint32_t sqn;
    uint64_t at;

    erq_prepare(u, &q);
    ok = erq_context(&q, 0);
#define NO(op, change, want, field) do {                                \
        c = ok;                                                         \
        c.change;                                                       \
        assert_int_equal(unit_cmd(u, op, 0, 0, &c, sizeof(c), &at),     \
                         want);                                         \
        assert_int_equal(at, offsetof(struct qhca_eth_qc, field));      \
    } while (0)
    NO(QHCA_CMD_CREATE_ETH_RQ, shift = 16, QHCA_ST_BAD_PARAM, shift);
    NO(QHCA_CMD_CREATE_ETH_RQ, stride = 5, QHCA_ST_BAD_PARAM, stride);
    NO(QHCA_CMD_CREATE_ETH_RQ, dbrec += 4, QHCA_ST_BAD_PARAM, dbrec);
    NO(QHCA_CMD_CREATE_ETH_RQ, flags = 2, QHCA_ST_BAD_PARAM, flags);
    NO(QHCA_CMD_CREATE_ETH_RQ, state = QHCA_WQS_RDY, QHCA_ST_BAD_PARAM,
       state);
    NO(QHCA_CMD_CREATE_ETH_RQ, hds_thresh = 1, QHCA_ST_BAD_PARAM,
       hds_thresh);
    NO(QHCA_CMD_CREATE_ETH_RQ, data_dbrec = 8, QHCA_ST_BAD_PARAM,
       data_dbrec);
    NO(QHCA_CMD_CREATE_ETH_RQ, cqn = 9999, QHCA_ST_BAD_OBJ, cqn);
    ok.dbrec = 0;
    ok.stride = 6;
    ok.buf.len = 64;
    ok.shift = 0;
    NO(QHCA_CMD_CREATE_ETH_SQ, flags = QHCA_ETH_Q_F_HDS, QHCA_ST_BAD_PARAM,
       flags);
    NO(QHCA_CMD_CREATE_ETH_SQ, data_shift = 1, QHCA_ST_BAD_PARAM,
       data_shift);
#undef NO
    sqn = guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &ok, sizeof(ok));
    guest_query(&u->g, QHCA_CMD_QUERY_ETH_SQ, sqn, &got, sizeof(got));
    ok.state = QHCA_WQS_RDY;
    assert_memory_equal(&got, &ok, sizeof(got));
    /* an SQ's number is not an RQ's */
    assert_int_equal(guest_cmd(&u->g, &(struct gcmd){
                     .op = QHCA_CMD_QUERY_ETH_RQ, .obj = sqn, .out = &got,
                     .out_len = sizeof(got) }), QHCA_ST_BAD_OBJ);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_SQ, sqn),
                     QHCA_ST_OK);
    assert_int_equal(guest_cmd(&u->g, &(struct gcmd){
                     .op = QHCA_CMD_QUERY_ETH_SQ, .obj = sqn, .out = &got,
                     .out_len = sizeof(got) }), QHCA_ST_BAD_OBJ);
    erq_release(&q);
}

/* Each state survives save and load. */
static void saved(void **state)
{
    struct unit *u = *state;
    struct erq q;
    unsigned i;

    make_frame(u);
    erq_make(u, &q, 0);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q.num), QHCA_ST_OK);
    for (i = 0; i < 3; i++) {
        receives(&q, 0);
        save_and_load(u);
        looks(&q, QHCA_WQS_RDY, 1, 1, 2 * i, 0);
        guest_dbrec_set(&u->g, q.ring.dbrec, 100);
        arrive(u);
        save_and_load(u);
        arrive(u);
        looks(&q, QHCA_WQS_ERR, 1, 1, 2 * i + 1, QHCA_SYN_DB_INDEX);
        assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_OK);
        save_and_load(u);
        arrive(u);
        looks(&q, QHCA_WQS_RESET, 0, 0, 2 * i + 2, 0);
        assert_int_equal(erq_state(&q, QHCA_WQS_RDY), QHCA_ST_OK);
    }
    erq_free(&q);
}

/* A frame of @len bytes with an IP packet of @packet bytes. */
struct padded {
    uint16_t ethertype, len, packet;
    bool tagged;
    uint16_t stored;            /* bytes of it, with QHCA_ETH_Q_F_UNPAD */
};

static size_t padded_make(uint8_t *b, const uint8_t *dmac,
                          const struct padded *p)
{
    uint8_t *l3 = b + 14 + (p->tagged ? 4 : 0);
    unsigned i;

    for (i = 0; i < p->len; i++) {
        b[i] = (uint8_t)(i * 7 + 1);
    }
    memcpy(b, dmac, 6);
    if (p->tagged) {
        qhca_put_be16(b + 12, 0x8100);
    }
    qhca_put_be16(l3 - 2, p->ethertype);
    if (p->ethertype == 0x0800) {
        l3[0] = 0x45;
        l3[9] = 6;
        qhca_put_be16(l3 + 2, p->packet);
    } else {
        l3[0] = 0x60;
        qhca_put_be16(l3 + 4, (uint16_t)(p->packet - 40));
    }
    return p->len;
}

/* Padding is what follows an IP packet in a frame of the shortest length. */
static void padding(void **state)
{
    struct unit *u = *state;
    static const struct padded p[] = {
        { 0x0800, 60, 41, false, 55 }, { 0x0800, 60, 46, false, 60 },
        { 0x0800, 60, 20, false, 34 }, { 0x0800, 64, 41, true, 55 },
        { 0x0800, 60, 41, true, 55 }, { 0x0800, 54, 30, false, 44 },
        { 0x86dd, 60, 40, false, 54 },
        /* longer than it need be, incomplete, no IP */
        { 0x0800, 61, 41, false, 61 }, { 0x0800, 65, 41, true, 61 },
        { 0x0800, 60, 47, false, 60 }, { 0x0800, 60, 19, false, 60 },
        { 0x0806, 60, 41, false, 60 },
    };
    uint8_t b[80], plain[80], got[80];
    struct qhca_eth_cqe c;
    size_t len, all, want;
    unsigned i, flag;
    struct erq q[2];

    erq_make(u, &q[0], 0);
    erq_make(u, &q[1], QHCA_ETH_Q_F_UNPAD);
    assert_int_equal(erq_query(&q[1]).flags, QHCA_ETH_Q_F_UNPAD);
    for (flag = 0; flag < 2; flag++) {
        assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q[flag].num),
                         QHCA_ST_OK);
        for (i = 0; i < sizeof(p) / sizeof(p[0]); i++) {
            len = padded_make(b, u->n->mac, &p[i]);
            all = len - (p[i].tagged ? 4 : 0);
            memcpy(plain, b, 12);
            memcpy(plain + 12, b + (p[i].tagged ? 16 : 12), all - 12);
            want = flag ? p[i].stored : all;
            erq_post(u, &q[flag].ring, 80, 0);
            world_inject(&u->w, 0, b, len);
            assert_true(erq_poll(&q[flag], &c));
            assert_int_equal(c.byte_len, want);
            assert_int_equal(c.csum, qhca_csum(plain + 14, want - 14, 0));
            erq_read(u, &q[flag].ring, c.wqe_index, c.num_wqe, got, want);
            assert_memory_equal(got, plain, want);
        }
    }
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, QHCA_ETH_RQ_NONE),
                     QHCA_ST_OK);
    erq_free(&q[0]);
    erq_free(&q[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(states), UNIT(stopped), UNIT(other_rings), UNIT(contexts),
        UNIT(saved), UNIT(padding),
    };

    return cmocka_run_group_tests_name("eth_rq", tests, NULL, NULL);
}
