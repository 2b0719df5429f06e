/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ethernet queues whose memory is not there, frames that need too many buffers,
 * and what observers see of frames in loopback.
 */
#include "ethfix.h"
#include "ethernet/flow.h"

#define FRAME 100
#define MANY_SHIFT 7            /* more buffers than a frame may need */
#define MOST 64

static uint8_t frame[FRAME];

static void make_frame(struct unit *u)
{
    unsigned i;

    for (i = 0; i < FRAME; i++) {
        frame[i] = (uint8_t)(i * 3 + 1);
    }
    memcpy(frame, u->n->mac, 6);
    frame[12] = frame[13] = 0x99;
}

static void arrive(struct unit *u)
{
    world_inject(&u->w, 0, frame, FRAME);
    world_settle(&u->w, 1000000);
}

static bool is_it(void *opaque, uint64_t addr)
{
    return addr == *(uint64_t *)opaque;
}

/* The access to @addr fails. */
static void unmap(struct unit *u, uint64_t *addr)
{
    u->m->may_fail = is_it;
    u->m->may_fail_opaque = addr;
    u->m->fail_64k = 65536;
}

/* The record or the ring of an RQ is not readable: it fails, with an event. */
static void rq_unreadable(void **state)
{
    struct unit *u = *state;
    uint64_t bad[2];
    struct erq q;
    unsigned i;

    make_frame(u);
    for (i = 0; i < 2; i++) {
        uint64_t errors = unit_stat(u, QHCA_STAT_ETH_RX_ERRORS);

        erq_make(u, &q, 0);
        assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q.num), QHCA_ST_OK);
        erq_post(u, &q.ring, 256, 0);
        bad[0] = q.ring.dbrec;
        bad[1] = gbuf_addr(&q.ring.buf, 0, NULL);
        unmap(u, &bad[i]);
        arrive(u);
        assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), errors + 1);
        assert_int_equal(erq_query(&q).state, QHCA_WQS_ERR);
        assert_int_equal(erq_query(&q).syndrome, QHCA_SYN_WQE_DMA);
        assert_int_equal(erq_query(&q).tail, 0);
        assert_int_equal(u->g.async_count[QHCA_EV_ETH_RQ_ERR], i + 1);
        u->m->fail_64k = 0;
        /* it stays so until it is reset, and says it once */
        arrive(u);
        assert_int_equal(erq_query(&q).dropped, 1);
        qhca_eth_q_fail(u->e, qhca_idr_get(&u->e->eth->eth_rqs, q.num),
                        QHCA_SYN_CQ_OVERFLOW);
        assert_int_equal(erq_query(&q).syndrome, QHCA_SYN_WQE_DMA);
        assert_int_equal(u->g.async_count[QHCA_EV_ETH_RQ_ERR], i + 1);
        erq_free(&q);
    }
}

/* A frame may need 64 buffers, not more: it uses those up and is lost. */
static void too_many_buffers(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_seg seg = { .len = 1 };
    struct qhca_eth_cqe cqe;
    struct qhca_eth_qc c;
    struct gbuf ring;
    struct erq q;
    uint32_t i;

    make_frame(u);
    erq_prepare(u, &q);
    gbuf_make(&ring, u->m, 16 << MANY_SHIFT, &gbuf_direct, true, 0,
              &u->g.rng);
    gbuf_allow(&ring, 0, ring.len, GMEM_R);
    gmem_allow(u->m, q.ring.mem, 1 << MANY_SHIFT, GMEM_W);
    for (i = 0; i < 1u << MANY_SHIFT; i++) {
        seg.addr = q.ring.mem + i;
        gbuf_write(&ring, i * 16, &seg, 16);
    }
    c = erq_context(&q, 0);
    c.buf = ring.d;
    c.shift = MANY_SHIFT;
    q.num = guest_create(&u->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
    guest_dbrec_set(&u->g, q.ring.dbrec, 1 << MANY_SHIFT);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q.num), QHCA_ST_OK);
    arrive(u);
    assert_true(erq_poll(&q, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_LOC_LEN_ERR);
    assert_int_equal(cqe.syndrome, QHCA_SYN_WQE_SGE);
    assert_int_equal(cqe.wqe_index, 0);
    assert_int_equal(cqe.num_wqe, MOST);
    /* a frame of as many bytes does fit */
    world_inject(&u->w, 0, frame, MOST);
    assert_true(erq_poll(&q, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_SUCCESS);
    assert_int_equal(cqe.wqe_index, MOST);
    assert_int_equal(cqe.num_wqe, MOST);
    assert_int_equal(cqe.byte_len, MOST);
    assert_memory_equal(gmem_ptr(u->m, q.ring.mem + MOST, MOST), frame, MOST);
    assert_int_equal(erq_query(&q).state, QHCA_WQS_RDY);
    gbuf_free(&ring);
    erq_free(&q);
}

/* From wherever it comes: a frame longer than any is not received. */
static void longer_than_any(void **state)
{
    static uint8_t b[QHCA_ETH_MAX_FRAME + 1];
    struct unit *u = *state;
    uint64_t errors = unit_stat(u, QHCA_STAT_ETH_RX_ERRORS);
    struct qhca_eth_frame f;
    struct qhca_eth_cqe cqe;
    struct erq q;

    make_frame(u);
    memcpy(b, frame, FRAME);
    erq_make(u, &q, 0);
    erq_post(u, &q.ring, 10000, 0);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q.num), QHCA_ST_OK);
    qhca_eth_frame_parse(u->e, &f, b, sizeof(b));
    qhca_eth_rx(u->e, &f);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), errors + 1);
    assert_false(erq_poll(&q, &cqe));
    qhca_eth_frame_parse(u->e, &f, b, sizeof(b) - 1);
    qhca_eth_rx(u->e, &f);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), errors + 1);
    assert_true(erq_poll(&q, &cqe));
    assert_int_equal(cqe.byte_len, sizeof(b) - 1);
    erq_free(&q);
}

/* ---- send queues ---- */

struct esq {
    struct gcq cq;
    struct gbuf ring;
    uint64_t mem;
    uint32_t num;
};

static void esq_make(struct unit *u, struct esq *q)
{
    struct qhca_eth_qc c = { .shift = 2, .stride = 6 };

    gcq_create(&q->cq, &u->g, 4, NULL, 1);
    gbuf_make(&q->ring, u->m, 64 << 2, &gbuf_direct, true, 0, &u->g.rng);
    gbuf_allow(&q->ring, 0, q->ring.len, GMEM_R);
    q->mem = gmem_alloc(u->m, 4096, 12, 0);
    memcpy(gmem_ptr(u->m, q->mem, FRAME), frame, FRAME);
    gmem_allow(u->m, q->mem, FRAME, GMEM_R);
    c.buf = q->ring.d;
    c.cqn = q->cq.cqn;
    q->num = guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
}

static void esq_free(struct unit *u, struct esq *q)
{
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_ETH_SQ, q->num),
                     QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&q->cq), QHCA_ST_OK);
    gbuf_free(&q->ring);
    gmem_release(u->m, q->mem, 4096);
}

/* Send the frame as WQE 0. */
static void esq_send(struct unit *u, struct esq *q)
{
    struct {
        struct qhca_eth_wqe h;
        struct qhca_eth_seg seg;
    } w = {
        .h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1,
               .flags = QHCA_WQE_F_SIGNALED },
        .seg = { .addr = q->mem, .len = FRAME },
    };

    gbuf_write(&q->ring, 0, &w.h, sizeof(w.h));
    gbuf_write(&q->ring, sizeof(w.h), &w.seg, sizeof(w.seg));
    guest_doorbell(&u->g, 0, QHCA_DB_ETH_SQ, q->num |
                   1ULL << QHCA_DB_INDEX_SHIFT);
    world_settle(&u->w, 1000000);
}

static void sq_unreadable(void **state)
{
    struct unit *u = *state;
    uint64_t bad, sent = unit_stat(u, QHCA_STAT_PORT_TX_FRAMES);
    struct qhca_eth_qc c;
    struct qhca_cqe cqe;
    struct esq q;

    make_frame(u);
    esq_make(u, &q);
    bad = gbuf_addr(&q.ring, 0, NULL);
    unmap(u, &bad);
    esq_send(u, &q);
    u->m->fail_64k = 0;
    guest_query(&u->g, QHCA_CMD_QUERY_ETH_SQ, q.num, &c, sizeof(c));
    assert_int_equal(c.state, QHCA_WQS_ERR);
    assert_int_equal(c.syndrome, QHCA_SYN_WQE_DMA);
    assert_int_equal(u->g.async_count[QHCA_EV_ETH_SQ_ERR], 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_ERRORS), 1);
    assert_int_equal(unit_stat(u, QHCA_STAT_PORT_TX_FRAMES), sent);
    assert_false(gcq_poll(&q.cq, &cqe));
    esq_free(u, &q);
}

/* A sniffer sees a frame that is looped back, once. */
static void sniffed(void **state)
{
    struct unit *u = *state;
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .rq_shift = 2, .rq_stride = 6, .sq_shift = 2,
        .sq_stride = 6,
    };
    struct qhca_port p = { .loopback = 1 };
    struct qhca_flow flow = { .type = QHCA_FLOW_SNIFFER };
    struct qhca_sge sge = { .addr = 0x1000, .len = 256 };
    struct qhca_cqe cqe;
    struct gcq cq;
    struct gmr mr;
    struct gqp qp;
    struct esq q;
    uint32_t rule;
    uint8_t st, b[FRAME];

    make_frame(u);
    esq_make(u, &q);
    gcq_create(&cq, &u->g, 4, NULL, 1);
    gmr_create(&mr, &u->g, 4096, 0x1000, QHCA_ACCESS_LOCAL_WRITE, NULL);
    gbuf_allow(&mr.buf, 0, 4096, GMEM_W);
    in.scq = in.rcq = &cq;
    gqp_create(&qp, &u->g, &in);
    for (st = QHCA_QPS_INIT; st <= QHCA_QPS_RTS; st++) {
        assert_int_equal(gqp_state(&qp, st), QHCA_ST_OK);
    }
    sge.lkey = mr.key;
    assert_true(gqp_post_recv(&qp, 5, &sge, 1));
    assert_true(gqp_post_recv(&qp, 6, &sge, 1));
    flow.qpn = qp.qpn;
    rule = guest_create(&u->g, QHCA_CMD_CREATE_FLOW, &flow, sizeof(flow));
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, QHCA_PORT_M_LOOPBACK,
                              &p, sizeof(p), NULL), QHCA_ST_OK);
    esq_send(u, &q);
    assert_true(gcq_poll(&q.cq, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_SUCCESS);
    assert_true(gcq_poll(&cq, &cqe));
    assert_int_equal(cqe.opcode, QHCA_CQE_OP_RAW_RECV);
    assert_int_equal(cqe.wr_id, 5);
    assert_int_equal(cqe.byte_len, FRAME);
    gbuf_read(&mr.buf, 0, b, FRAME);
    assert_memory_equal(b, frame, FRAME);
    assert_false(gcq_poll(&cq, &cqe));
    p.loopback = 0;
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, QHCA_PORT_M_LOOPBACK,
                              &p, sizeof(p), NULL), QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_DESTROY_FLOW, rule),
                     QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&cq), QHCA_ST_OK);
    esq_free(u, &q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(rq_unreadable),
        UNIT(too_many_buffers),
        UNIT(longer_than_any),
        UNIT(sq_unreadable),
        UNIT(sniffed),
    };

    return cmocka_run_group_tests_name("eth_fail", tests, NULL, NULL);
}
