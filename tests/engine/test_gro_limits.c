/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive coalescing at its limits: no place, a queue that fails when a place
 * is needed, more deliveries than one call may make, and headers that are not
 * merged.
 */
#define ERQ_CQ_SHIFT 8
#include "ethfix.h"
#include "bigpkt.h"

#define GRO QHCA_ETH_Q_F_GRO
#define ACK 0x10
#define LONG 9000u              /* bytes of payload */

static struct big big;
static uint8_t frame[WORLD_FRAME_MAX];

/* A queue that merges, and headers of a plain flow. */
static void begin(struct unit *u, struct erq *q, bool v6)
{
    struct qhca_port all = { .promisc = 1 };

    u->e->cfg.gro_hold = 1000;
    world_run(&u->w, 1);
    erq_make(u, q, GRO);
    assert_int_equal(erq_port(u, QHCA_PORT_M_ETH_RQN, q->num), QHCA_ST_OK);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_PORT, 0, QHCA_PORT_M_PROMISC,
                              &all, sizeof(all), NULL), QHCA_ST_OK);
    big_random(&big, &u->g.rng, BIG_PAYLOAD_MAX);
    big.tcp = true;
    big.v6 = v6;
    big.tagged = false;
    big.opts = big.exts = 0;
    big.tcp_opts = 12;
    big.flags = ACK;
}

/* The first frame of flow @port, with @len bytes of payload, arrives. */
static size_t arrives(struct unit *u, unsigned port, uint32_t len)
{
    size_t n;

    big.ports[0] = (uint16_t)port;
    n = big_frame(&big, frame, 0, 0, len);
    world_inject(&u->w, 0, frame, n);
    return n;
}

static unsigned held(struct unit *u)
{
    return u->e->eth->gro.held;
}

/* Fill the memory with long packets of one frame; returns how many. */
static unsigned fill(struct unit *u)
{
    unsigned n = 0;
    uint32_t pieces = (big_hdr_len(&big) + LONG + QHCA_GRO_PIECE - 1) /
                      QHCA_GRO_PIECE;

    for (n = 0; u->e->eth->gro.pieces_left >= pieces; n++) {
        arrives(u, n, LONG);
        assert_int_equal(held(u), n + 1);
    }
    return n;
}

/* The memory is used up: the oldest packet goes. */
static void no_memory_for_first(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_cqe c;
    unsigned n, i;
    struct erq q;
    size_t len;
    uint8_t got[128];

    begin(u, &q, true);
    for (i = 0; i < ERQ_DEPTH; i++) {
        erq_post(u, &q.ring, 8190, 0);
    }
    n = fill(u);
    assert_false(erq_poll(&q, &c));
    for (i = 0; i < 4; i++) {
        len = arrives(u, n + i, LONG);
        assert_int_equal(held(u), n);
        assert_true(erq_poll(&q, &c));
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
        assert_int_equal(c.byte_len, len);
        assert_int_equal(c.gso_segs, 0);
        /* its source port says which it is */
        memcpy(got, gmem_ptr(u->m, q.ring.seg[c.wqe_index % ERQ_DEPTH].addr,
                             sizeof(got)), sizeof(got));
        assert_int_equal(got[big_l4(&big)] << 8 | got[big_l4(&big) + 1], i);
        assert_false(erq_poll(&q, &c));
    }
    /* a short one still has room */
    arrives(u, n + i, 100);
    assert_int_equal(held(u), n + 1);
    assert_false(erq_poll(&q, &c));
    erq_free(&q);
}

/* The oldest packet goes, and with it its queue fails: the others are lost. */
static void fails_for_first(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_cqe c;
    struct erq q;
    unsigned n;

    begin(u, &q, false);
    n = fill(u);
    guest_dbrec_set(&u->g, q.ring.dbrec, 5000);
    arrives(u, n, LONG);
    assert_int_equal(held(u), 0);
    assert_int_equal(u->e->eth->gro.pieces_left, QHCA_GRO_PIECES);
    assert_false(erq_poll(&q, &c));
    assert_int_equal(erq_query(&q).state, QHCA_WQS_ERR);
    /* all of them, and the new one; the oldest is an error */
    assert_int_equal(erq_query(&q).dropped, n);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_RX_ERRORS), 1);
    erq_free(&q);
}

#define MANY_SHIFT 13
#define TINY 4u                 /* bytes of each buffer */
#define FLOWS 140u

/*
 * A frame that nothing may overtake, and more buffers for what is held than
 * one call can fill: the rest is lost, and none of it comes later.
 */
static void more_than_a_call(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_seg seg = { .len = TINY };
    struct qhca_eth_cqe c;
    struct qhca_eth_qc qc;
    struct gbuf ring;
    unsigned i, came;
    struct erq q;
    size_t len;

    begin(u, &q, false);
    gbuf_make(&ring, u->m, 16 << MANY_SHIFT, &gbuf_direct, true, 0,
              &u->g.rng);
    gbuf_allow(&ring, 0, ring.len, GMEM_R);
    gmem_allow(u->m, q.ring.mem, TINY << MANY_SHIFT, GMEM_W);
    for (i = 0; i < 1u << MANY_SHIFT; i++) {
        seg.addr = q.ring.mem + i * TINY;
        gbuf_write(&ring, i * 16, &seg, 16);
    }
    assert_int_equal(erq_state(&q, QHCA_WQS_RESET), QHCA_ST_OK);
    gmem_allow(u->m, q.ring.mem, TINY << MANY_SHIFT, GMEM_W);
    qc = erq_context(&q, GRO);
    qc.buf = ring.d;
    qc.shift = MANY_SHIFT;
    qc.state = QHCA_WQS_RDY;
    assert_int_equal(erq_modify(&q, &qc, QHCA_ETH_RQ_M_RINGS |
                                QHCA_ETH_RQ_M_STATE, NULL), QHCA_ST_OK);
    guest_dbrec_set(&u->g, q.ring.dbrec, 1 << MANY_SHIFT);
    for (i = 0; i < FLOWS; i++) {
        arrives(u, i, 150);
    }
    assert_int_equal(held(u), FLOWS);
    assert_false(erq_poll(&q, &c));
    /* a fragment: of which flow it is is unknown */
    len = big_frame(&big, frame, 0, 0, 100);
    frame[20] |= 0x20;
    world_inject(&u->w, 0, frame, len);
    assert_int_equal(held(u), 0);
    for (came = 0; erq_poll(&q, &c); came++) {
        assert_int_equal(c.status, QHCA_WC_SUCCESS);
        assert_int_equal(c.gso_segs, 0);
    }
    assert_in_range(came, 2, FLOWS);
    assert_int_equal(c.byte_len, len);          /* the fragment is the last */
    assert_int_equal(erq_query(&q).dropped, FLOWS + 1 - came);
    world_run(&u->w, 100000000);
    assert_false(erq_poll(&q, &c));
    gbuf_free(&ring);
    erq_free(&q);
}

/* Options of the outer IPv4 header of a tunnel: each frame for itself. */
static void outer_options(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_cqe c;
    unsigned opts, i, n;
    struct erq q;
    size_t len;

    begin(u, &q, true);
    for (opts = 0; opts <= 4; opts += 4) {
        big.outer = (struct big_outer){ .is = true, .opts = opts,
                                        .proto = 41 };
        for (i = 0; i < 4; i++) {
            erq_post(u, &q.ring, 2000, 0);
        }
        for (i = 0; i < 4; i++) {
            len = big_frame(&big, frame, i, i * 300, 300);
            world_inject(&u->w, 0, frame, len);
        }
        assert_int_equal(held(u), !opts);
        world_run(&u->w, 2000000);
        for (n = 0; erq_poll(&q, &c); n++) {
            assert_int_equal(c.status, QHCA_WC_SUCCESS);
            assert_int_equal(c.gso_segs, opts ? 0 : 4);
            if (opts) {
                assert_int_equal(c.byte_len, len);
            }
        }
        assert_int_equal(n, opts ? 4 : 1);
    }
    erq_free(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(no_memory_for_first),
        UNIT(fails_for_first),
        UNIT(more_than_a_call),
        UNIT(outer_options),
    };

    return cmocka_run_group_tests_name("gro_limits", tests, NULL, NULL);
}
