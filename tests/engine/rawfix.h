/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fixture of the raw packet tests: two adapters on a perfect wire, each with
 * raw packet QPs and an Ethernet receive queue, and handmade frames.
 */
#ifndef QHCA_TEST_RAWFIX_H
#define QHCA_TEST_RAWFIX_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guest.h"
#include "ethernet/flow.h"

#define IOVA 0x500000000000ull
#define SLOT 2048
#define SLOTS 64
#define SIDES 2
#define QPS 3                   /* per side */
#define FRAME 100
#define ETH_DEPTH 4

struct side {
    struct guest g;
    struct gcq cq, eth_cq;
    struct gmr mr;
    struct gqp qp[QPS];
    unsigned posted;
    /* the Ethernet function */
    struct gbuf eth;
    uint64_t eth_dbrec, eth_data;
    uint32_t eth_rqn, eth_prod;
};

struct fix {
    struct world w;
    struct side s[SIDES];
};

static inline uint64_t stat(struct side *s, unsigned index)
{
    return qhca_stat(s->g.n->e, index);
}

static inline void raw_states(struct gqp *qp, uint8_t last)
{
    uint8_t st;

    for (st = QHCA_QPS_INIT; st <= last; st++) {
        assert_int_equal(gqp_state(qp, st), QHCA_ST_OK);
    }
}

static inline void make_raw(struct side *s, unsigned i, uint8_t flags)
{
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .flags = flags, .sq_shift = 4, .sq_stride = 8,
        .rq_shift = 4, .rq_stride = 6, .scq = &s->cq, .rcq = &s->cq,
    };

    gqp_create(&s->qp[i], &s->g, &in);
    raw_states(&s->qp[i], QHCA_QPS_RTS);
}

static inline void eth_post(struct side *s)
{
    struct qhca_eth_seg seg = {
        .addr = s->eth_data + s->eth_prod % ETH_DEPTH * SLOT, .len = SLOT,
    };

    gbuf_write(&s->eth, s->eth_prod % ETH_DEPTH * sizeof(seg), &seg,
               sizeof(seg));
    guest_dbrec_set(&s->g, s->eth_dbrec, ++s->eth_prod);
}

static inline void make_eth(struct side *s)
{
    struct qhca_eth_qc c = { .shift = 2, .stride = 4 };
    struct qhca_port port = { 0 };
    struct gcmd m = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_ETH_RQN,
    };
    unsigned i;

    gcq_create(&s->eth_cq, &s->g, 6, NULL, 1);
    gbuf_make(&s->eth, s->g.m, 16 * ETH_DEPTH, &gbuf_direct, true, 0,
              &s->g.rng);
    gbuf_allow(&s->eth, 0, s->eth.len, GMEM_R);
    s->eth_dbrec = guest_dbrec(&s->g, false);
    s->eth_data = gmem_alloc(s->g.m, SLOT * ETH_DEPTH, 12, 0);
    gmem_allow(s->g.m, s->eth_data, SLOT * ETH_DEPTH, GMEM_W);
    c.buf = s->eth.d;
    c.dbrec = s->eth_dbrec;
    c.cqn = s->eth_cq.cqn;
    s->eth_rqn = guest_create(&s->g, QHCA_CMD_CREATE_ETH_RQ, &c, sizeof(c));
    port.eth_rqn = s->eth_rqn;
    guest_must(&s->g, &m);
    for (i = 0; i < ETH_DEPTH; i++) {
        eth_post(s);
    }
}

static inline int fix_setup(void **state)
{
    static const struct guest_config cfg = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    struct fix *f = calloc(1, sizeof(*f));
    unsigned i, j;

    world_init(&f->w, SIDES, 1, NULL);
    wire_perfect(&f->w.wire);
    for (i = 0; i < SIDES; i++) {
        struct side *s = &f->s[i];

        guest_start(&s->g, &f->w.node[i], 1, &cfg);
        gcq_create(&s->cq, &s->g, 8, NULL, 1);
        gmr_create(&s->mr, &s->g, SLOTS * SLOT, IOVA, QHCA_ACCESS_MASK, NULL);
        gbuf_allow(&s->mr.buf, 0, SLOTS * SLOT, GMEM_RW);
        for (j = 0; j < QPS; j++) {
            make_raw(s, j, 0);
        }
        make_eth(s);
    }
    *state = f;
    return 0;
}

static inline int fix_teardown(void **state)
{
    struct fix *f = *state;
    unsigned i, j;

    for (i = 0; i < SIDES; i++) {
        struct side *s = &f->s[i];

        for (j = 0; j < QPS; j++) {
            assert_int_equal(gqp_destroy(&s->qp[j]), QHCA_ST_OK);
        }
        assert_int_equal(guest_simple(&s->g, QHCA_CMD_DESTROY_ETH_RQ,
                                      s->eth_rqn), QHCA_ST_OK);
        gbuf_free(&s->eth);
        guest_dbrec_free(&s->g, s->eth_dbrec);
        assert_int_equal(gmr_destroy(&s->mr), QHCA_ST_OK);
        assert_int_equal(gcq_destroy(&s->cq), QHCA_ST_OK);
        assert_int_equal(gcq_destroy(&s->eth_cq), QHCA_ST_OK);
        assert_ptr_equal(s->g.n->e->eth->flows, NULL);
        guest_stop(&s->g);
    }
    world_fini(&f->w);
    free(f);
    return 0;
}

/* Post a receive of a slot to one QP; wr_id is the slot's number. */
static inline void post_recv(struct side *s, struct gqp *qp)
{
    struct qhca_sge sge = { .len = SLOT, .lkey = s->mr.key };

    s->posted = s->posted % (SLOTS - 1) + 1;
    sge.addr = IOVA + s->posted * SLOT;
    assert_true(gqp_post_recv(qp, s->posted, &sge, 1));
}

static inline void post_all(struct side *s)
{
    unsigned i;

    for (i = 0; i < QPS; i++) {
        post_recv(s, &s->qp[i]);
    }
}

/* ---- frames ---- */

static inline void put16(uint8_t *p, unsigned v)
{
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

/* UDP over IPv4, ports 1000 to 2000, 10.0.0.1 to 10.0.0.2. */
static inline void make_frame(uint8_t *b, const uint8_t *dmac)
{
    unsigned i;

    memset(b, 0, FRAME);
    memcpy(b, dmac, 6);
    memcpy(b + 6, "\x02\0\0\0\0\x99", 6);
    put16(b + 12, 0x0800);
    b[14] = 0x45;
    put16(b + 16, FRAME - 14);
    b[22] = 64;
    b[23] = 17;
    memcpy(b + 26, "\x0a\0\0\x01\x0a\0\0\x02", 8);
    put16(b + 34, 1000);
    put16(b + 36, 2000);
    put16(b + 38, FRAME - 34);
    for (i = 42; i < FRAME; i++) {
        b[i] = (uint8_t)i;
    }
}

/* Post a frame to a QP, ring, and let it arrive. */
static inline void send_raw(struct fix *f, struct side *s, struct gqp *qp,
                            const uint8_t *frame, uint32_t len,
                            uint8_t flags)
{
    struct gwr wr = {
        .opcode = QHCA_WQE_RAW_SEND, .wr_id = 1000, .flags = flags,
        .num_sge = 2,
        .sge = {
            { .addr = IOVA, .len = len < 10 ? len : 10, .lkey = s->mr.key },
            { .addr = IOVA + 10, .len = len < 10 ? 0 : len - 10,
              .lkey = s->mr.key },
        },
    };

    gbuf_write(&s->mr.buf, 0, frame, len);
    assert_true(gqp_post_send(qp, &wr));
    gqp_ring(qp);
    qp->sq_cons = qp->sq_prod;
    world_run(&f->w, 100000);
}

/*
 * Take all receive completions: the QPs that got @frame, once each, as bits.
 * *@last gets the last CQE unless NULL.
 */
static inline unsigned got_raw(struct side *s, const uint8_t *frame,
                               size_t len, struct qhca_cqe *last)
{
    unsigned bits = 0, i;
    struct qhca_cqe c;
    uint8_t b[SLOT];

    while (gcq_poll(&s->cq, &c)) {
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
        assert_int_equal(c.opcode, QHCA_CQE_OP_RAW_RECV);
        assert_int_equal(c.byte_len, len);
        gbuf_read(&s->mr.buf, c.wr_id * SLOT, b, len);
        assert_memory_equal(b, frame, len);
        for (i = 0; i < QPS && s->qp[i].qpn != c.qpn; i++) {
        }
        assert_true(i < QPS && !(bits & 1u << i));
        bits |= 1u << i;
        s->qp[i].rq_cons = c.wqe_index + 1;
        if (last) {
            *last = c;
        }
    }
    return bits;
}

/* Frames the Ethernet function has received since the last call. */
static inline unsigned got_eth(struct side *s)
{
    struct qhca_cqe c;
    unsigned n = 0;

    while (gcq_poll(&s->eth_cq, &c)) {
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
        eth_post(s);
        n++;
    }
    return n;
}

/* ---- rules ---- */

static inline struct qhca_flow flow_to(const struct gqp *qp, uint8_t type)
{
    struct qhca_flow f;

    memset(&f, 0, sizeof(f));
    f.qpn = qp->qpn;
    f.type = type;
    return f;
}

static inline uint8_t try_flow(struct side *s, const struct qhca_flow *f,
                               uint64_t *at)
{
    struct gcmd c = {
        .op = QHCA_CMD_CREATE_FLOW, .in = f, .in_len = sizeof(*f),
    };
    uint8_t st = guest_cmd(&s->g, &c);

    if (at) {
        *at = c.result;
    }
    return st;
}

static inline uint32_t add_flow(struct side *s, const struct qhca_flow *f)
{
    return guest_create(&s->g, QHCA_CMD_CREATE_FLOW, f, sizeof(*f));
}

static inline void del_flow(struct side *s, uint32_t num)
{
    assert_int_equal(guest_simple(&s->g, QHCA_CMD_DESTROY_FLOW, num),
                     QHCA_ST_OK);
}

/* A rule for a destination MAC address. */
static inline struct qhca_flow flow_dmac(const struct gqp *qp,
                                         const uint8_t *dmac)
{
    struct qhca_flow f = flow_to(qp, QHCA_FLOW_NORMAL);

    memcpy(f.value.dmac, dmac, 6);
    memset(f.mask.dmac, 0xff, 6);
    return f;
}

#define FIX(f) cmocka_unit_test_setup_teardown(f, fix_setup, fix_teardown)

#endif
