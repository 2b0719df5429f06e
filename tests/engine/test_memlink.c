/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: the way that packets take, and the memory that records refer
 * to.
 */
#include "memlinkfix.h"
#include "godp.h"
#include "reborn.h"
#include "observe/breakpoint.h"
#include "rule.h"

#define state_of(f, i, j) (fix_link(f, i, j)->state)
#define WRITE(id) (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = (id) }

static struct qhca_shring *ring(struct fix *f, unsigned from, unsigned to)
{
    return world_memlink_ring(&f->w, from, to);
}

static uint32_t unread(struct fix *f, unsigned from, unsigned to)
{
    return ring(f, from, to)->prod - ring(f, from, to)->cons;
}

/* ---- from the wire to the link ---- */

/* The wire until the second marker was seen, and then the link only. */
static void goes_over(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    unsigned i;

    (void)state;
    f->w.wire.latency_ns = 10 * US;
    fix_write(f, 0, 1, 0, 3000);
    fix_run(f, 5 * US);
    assert_int_equal(f->packets, 3);
    assert_int_equal(f->markers, 1);
    assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_PROBE);
    /* the first is under way still: the next takes the wire, too */
    fix_write(f, 0, 2, 3000, 1000);
    fix_run(f, 2 * US);
    assert_int_equal(f->packets, 4);
    fix_run(f, 40 * US);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    fix_cqe(f, 0, 2, QHCA_WC_SUCCESS);
    /* both directions have one marker, and ACKs have used the wire */
    assert_int_equal(f->markers, 2);
    i = f->packets;
    fix_write(f, 0, 3, 4000, 5000);
    fix_run(f, 9 * US);
    assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_HOLD);
    assert_int_equal(f->markers, 3);
    assert_int_equal(f->packets, i);
    assert_int_equal(ring(f, 0, 1)->prod, 0);
    fix_run(f, 10 * US);
    assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_UP);
    assert_int_equal(f->packets, i);
    assert_true(ring(f, 0, 1)->prod > 0);
    fix_run(f, 100 * US);
    fix_cqe(f, 0, 3, QHCA_WC_SUCCESS);
    fix_has(f, 1, 0, 0, 9000);
    fix_go_up(f);
    for (i = 0; i < 100; i++) {
        fix_write(f, i & 1, i, 10000 + 100 * i, 100);
    }
    fix_run(f, 100 * US);
    for (i = 0; i < 100; i++) {
        fix_cqe(f, i & 1, i, QHCA_WC_SUCCESS);
        fix_has(f, !(i & 1), i & 1, 10000 + 100 * i, 100);
    }
    assert_int_equal(f->packets, 0);
    assert_int_equal(f->markers, 0);
    assert_int_equal(f->w.cuts, 0);
    fix_free(f);
}

/* Without the first marker nothing waits; it is sent again after a while. */
static void first_marker_lost(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    unsigned i;

    (void)state;
    f->lose_marker = 1 << 1;
    for (i = 0; i < 10; i++) {
        fix_write(f, 0, i, 0, 100);
        fix_run(f, 50 * MS);
        fix_cqe(f, 0, i, QHCA_WC_SUCCESS);
    }
    assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_PROBE);
    assert_int_equal(f->markers, 2);            /* the ACKs have one, too */
    fix_run(f, 600 * MS);
    fix_go_up(f);
    assert_int_equal(f->last_marker, 3);
    fix_free(f);
}

/* What a peer claims to have seen does not count, unless it can have. */
static void marker_guessed(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    unsigned i;

    (void)state;
    f->lose_marker = ~0u;
    for (i = 0; i < 100; i++) {
        fix_write(f, 0, i, 0, 100);
        ring(f, 0, 1)->marker = i;
        fix_run(f, 50 * MS);
        fix_cqe(f, 0, i, QHCA_WC_SUCCESS);
        assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_PROBE);
    }
    assert_true(f->markers > 4);
    fix_free(f);
}

static void ring_bell(void *opaque, uint64_t times)
{
    struct fix *f = opaque;

    if (fix_link(f, 0, 1)) {
        node_memlink_bell(f->s[0].n, fix_link(f, 0, 1)->id);
    }
    if (times) {
        world_call(&f->w, f->w.now + 300 * US, ring_bell, f, times - 1);
    }
}

/* The second is sent again, however often the peer rings meanwhile. */
static void second_marker_lost(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);

    (void)state;
    fix_write(f, 0, 1, 0, 100);
    fix_run(f, 100 * US);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    f->packets = f->markers = 0;
    f->lose_marker = 1 << 2;
    ring_bell(f, 100);
    fix_write(f, 0, 2, 1000, 100);
    fix_run(f, 900 * US);
    assert_int_equal(f->markers, 1);
    fix_run(f, 2 * MS);
    assert_int_equal(f->markers, 3);
    assert_int_equal(f->packets, 0);
    assert_int_equal(unread(f, 0, 1), 0);
    fix_no_cqe(f, 0);
    f->lose_marker = 0;
    fix_run(f, 2 * MS);
    /* (the peer's ACK has its own) */
    assert_true(f->markers <= 5);
    assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_UP);
    fix_cqe(f, 0, 2, QHCA_WC_SUCCESS);
    fix_has(f, 1, 0, 1000, 100);
    fix_free(f);
}

/* And given up at last: the wire is used, and another attempt made later. */
static void second_marker_never(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    unsigned i;

    (void)state;
    f->lose_marker = 1 << 2;
    for (i = 0; i < 2; i++) {
        fix_write(f, 0, i, 0, 100);
        fix_run(f, 100 * US);
    }
    fix_cqe(f, 0, 0, QHCA_WC_SUCCESS);
    fix_no_cqe(f, 0);
    assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_HOLD);
    ring_bell(f, 100);
    fix_run(f, 20 * MS);
    assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_WIRE);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_TIMEOUTS), 0);
    i = f->markers;
    fix_write(f, 0, 2, 0, 100);
    fix_run(f, 100 * US);
    fix_cqe(f, 0, 2, QHCA_WC_SUCCESS);
    assert_int_equal(f->markers, i);
    fix_run(f, 1000 * MS);
    fix_go_up(f);
    fix_free(f);
}

/* The link waits for a marker, but no QP for the link: nothing stays behind. */
static void second_marker_for_nobody(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);

    (void)state;
    f->lose_marker = 1 << 2;
    fix_write(f, 0, 0, 0, 100);
    fix_run(f, 100 * US);
    fix_write(f, 0, 0, 0, 100);
    fix_run(f, 100 * US);
    assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_HOLD);
    assert_int_equal(gqp_destroy(&f->s[0].qp), QHCA_ST_OK);
    f->s[0].qp.qpn = 0;
    assert_true(world_settle(&f->w, 60000 * MS));
    assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_WIRE);
    assert_int_equal(f->w.cuts, 0);
    fix_free(f);
}

/* A marker that is not one for our links is a frame like any other. */
static void stranger(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    uint64_t token = fix_link(f, 0, 1)->token;
    uint8_t b[60] = { 0 };
    unsigned i, k;

    (void)state;
    memcpy(b, f->s[0].n->mac, 6);
    memcpy(b + 6, f->s[1].n->mac, 6);
    memcpy(b + 12, "\x88\xb5qhML", 6);
    for (i = 0; i < 8; i++) {
        b[18 + i] = (uint8_t)(token >> (56 - 8 * i));
    }
    b[29] = 77;
    memcpy(b + 30, f->s[1].n->mac, 6);
    memcpy(b + 36, f->s[0].n->mac, 6);
    for (i = 12; i < 42; i++) {
        if (i >= 26 && i < 30) {
            continue;           /* the number */
        }
        b[i] ^= 1;
        assert_false(qhca_memlink_marker(f->s[0].e, b, sizeof(b)));
        k = (unsigned)fix_stat(f, 0, QHCA_STAT_ETH_RX_DROPPED);
        world_inject(&f->w, 0, b, sizeof(b));
        assert_int_equal(fix_stat(f, 0, QHCA_STAT_ETH_RX_DROPPED), k + 1);
        b[i] ^= 1;
    }
    assert_false(qhca_memlink_marker(f->s[0].e, b, sizeof(b) - 1));
    assert_int_equal(ring(f, 1, 0)->marker, 0);
    assert_int_equal(f->w.bells, 0);
    world_inject(&f->w, 0, b, sizeof(b));
    assert_int_equal(ring(f, 1, 0)->marker, 77);
    assert_int_equal(ring(f, 0, 1)->marker, 0);
    assert_int_equal(ring(f, 2, 0)->marker, 0);
    assert_int_equal(f->w.bells, 1);
    fix_free(f);
}

/* ---- back to the wire ---- */

/* Not before the ring is empty, so that all arrives in order. */
static void goes_back(void **state)
{
    unsigned by, i;

    (void)state;
    for (by = 0; by < 2; by++) {
        struct fix *f = fix_new(QHCA_QPT_RC, true);

        fix_go_up(f);
        for (i = 0; i < 4; i++) {
            fix_recv(f, 1, i, 8192 * i, 8192);
        }
        fix_doze(f, 1, 0);
        fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 0 },
                 0, 8192);
        fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 1 },
                 8192, 100);
        fix_run(f, 100 * US);
        assert_true(unread(f, 0, 1) > 0);
        /* here it may not be used, or the peer does not want it */
        node_memlinks_allow(f->s[by].n, false);
        fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 2 },
                 16384, 100);
        fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 3 },
                 24576, 8192);
        fix_run(f, 100 * US);
        assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_DRAIN);
        assert_int_equal(f->packets, 0);
        fix_look(f, 1, 0);
        assert_int_equal(state_of(f, 0, 1), QHCA_MEMLINK_WIRE);
        assert_true(f->packets >= 9);
        for (i = 0; i < 4; i++) {
            fix_cqe(f, 0, i, QHCA_WC_SUCCESS);
            fix_cqe(f, 1, i, QHCA_WC_SUCCESS);
            fix_has(f, 1, 0, 8192 * i, i % 3 ? 100 : 8192);
        }
        assert_int_equal(fix_stat(f, 1, QHCA_STAT_ROCE_OUT_OF_SEQUENCE), 0);
        assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_RETRANSMITS), 0);
        /* and back to the link, once that is allowed */
        node_memlinks_allow(f->s[by].n, true);
        fix_run(f, 1000 * MS);
        fix_go_up(f);
        fix_free(f);
    }
}

static void nobody(struct qhca *e, const void *frame, size_t len)
{
    (void)e;
    (void)frame;
    (void)len;
}

static void look_at(struct fix *f, unsigned how)
{
    struct qhca_break b = { 0 };

    switch (how) {
    case 0:
        f->s[0].e->sniff = nobody;
        break;
    case 1:
        rule_add(f->s[0].e, RULE(DROP, .nth = 100000));
        break;
    case 2:
        b.on = QHCA_ON_EVENT;
        assert_null(qhca_break_add(f->s[0].e, &b));
        break;
    case 3:
        node_memlinks_allow(f->s[0].n, false);
        break;
    }
    /* any call: here a doorbell without effect */
    guest_doorbell(&f->s[0].g, f->s[0].g.uar, QHCA_DB_TM, 0x4444);
}

/* Packets that are observed take the wire, in both directions. */
static void observed(void **state)
{
    unsigned how;

    (void)state;
    for (how = 0; how < 4; how++) {
        struct fix *f = fix_new(QHCA_QPT_RC, true);

        fix_go_up(f);
        assert_false(ring(f, 1, 0)->refuses);
        look_at(f, how);
        fix_run(f, 10 * US);
        assert_true(ring(f, 1, 0)->refuses);
        assert_true(ring(f, 2, 0)->refuses);
        assert_false(ring(f, 0, 1)->refuses);
        fix_write(f, 0, 1, 0, 5 * MTU);
        fix_run(f, 100 * US);
        fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
        assert_true(f->packets >= 6);
        f->packets = 0;
        fix_write(f, 1, 2, 20000, 5 * MTU);
        fix_run(f, 100 * US);
        fix_cqe(f, 1, 2, QHCA_WC_SUCCESS);
        assert_true(f->packets >= 6);
        fix_has(f, 1, 0, 0, 5 * MTU);
        fix_has(f, 0, 1, 20000, 5 * MTU);
        fix_drop(f);
    }
}

/* ---- memory that records refer to ---- */

struct kind {
    uint8_t type, opcode, sges;
    uint64_t off;
    uint32_t len;
    bool named;
    bool pages;                 /* a region of scattered pages */
    bool dm, inl;
};

/* Post it; @f->s[1] (with READ: [0]) gets the data. */
static void post_kind(struct fix *f, const struct kind *k, struct gmr *dm)
{
    static uint8_t inl[64];
    struct gwr wr = { .opcode = k->opcode, .wr_id = 7 };
    uint32_t part = k->len / k->sges, i;

    for (i = 0; i < k->sges; i++) {
        wr.sge[i] = (struct qhca_sge){
            .addr = IOVA + k->off + i * part, .len = part,
            .lkey = k->dm ? dm->key : f->s[0].mr.key,
        };
    }
    wr.num_sge = k->sges;
    wr.sge[i - 1].len += k->len - part * k->sges;
    wr.remote_addr = IOVA + k->off;
    wr.rkey = f->s[1].mr.key;
    if (k->inl) {
        pattern_bytes(1, k->off, inl, k->len);
        wr.flags = QHCA_WQE_F_INLINE;
        wr.num_sge = 0;
        wr.inl = inl;
        wr.inl_len = k->len;
    }
    fix_post(f, 0, wr, k->off, k->len);
}

/* Several packets of a reliable QP: their payload is read by the receiver. */
static void named(void **state)
{
    static const struct kind kinds[] = {
        { QHCA_QPT_RC, QHCA_WQE_RDMA_WRITE, 1, 0, 64 * MTU, true, 0, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_RDMA_WRITE, 1, 77, 9001, true, 0, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_SEND, 1, 4096, 2 * MTU, true, 0, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_SEND_IMM, 1, 1, 40001, true, 0, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_RDMA_WRITE_IMM, 1, 1, 40001, true, 0, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_RDMA_READ, 1, 3, 50003, true, 0, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_RDMA_READ, 3, 3, 50003, true, 0, 0, 0 },
        /* several SGEs, and pages of 4 KiB that no packet keeps to */
        { QHCA_QPT_RC, QHCA_WQE_RDMA_WRITE, 3, 5, 30011, true, 0, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_SEND, 5, 123, 60000, true, 0, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_RDMA_WRITE, 1, 555, 60001, true, true, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_SEND, 7, 4095, 50000, true, true, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_RDMA_READ, 2, 4000, 60000, true, true, 0, 0 },
        /* one packet, or one that need not stay until it is acknowledged */
        { QHCA_QPT_RC, QHCA_WQE_RDMA_WRITE, 1, 0, MTU, false, 0, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_RDMA_READ, 1, 0, MTU, false, 0, 0, 0 },
        { QHCA_QPT_UC, QHCA_WQE_RDMA_WRITE, 1, 9, 60001, false, 0, 0, 0 },
        { QHCA_QPT_UC, QHCA_WQE_SEND, 2, 9, 20001, false, true, 0, 0 },
        { QHCA_QPT_RC, QHCA_WQE_RDMA_WRITE, 1, 0, 40, false, 0, 0, true },
        { QHCA_QPT_RC, QHCA_WQE_RDMA_WRITE, 1, 0, 20000, false, 0, true, 0 },
        { QHCA_QPT_RC, QHCA_WQE_SEND, 2, 7, 20000, false, 0, true, 0 },
    };
    unsigned i;

    (void)state;
    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        const struct kind *k = &kinds[i];
        struct fix *f = fix_new(k->type, true);
        bool reads = k->opcode == QHCA_WQE_RDMA_READ;
        bool recv = k->opcode != QHCA_WQE_RDMA_WRITE && !reads;
        struct qhca_memlink *l;
        uint64_t refs, before;
        struct gmr dm;
        unsigned side;

        fix_go_up(f);
        for (side = 0; k->pages && side < 2; side++) {
            assert_int_equal(gmr_destroy(&f->s[side].mr), QHCA_ST_OK);
            fix_region(f, side, &gbuf_flat4k);
        }
        if (k->dm) {
            gmr_create_dm(&dm, &f->s[0].g, BUF, IOVA, QHCA_ACCESS_MASK);
            gbuf_allow(&dm.buf, 0, BUF, GMEM_RW);
            gbuf_fill(&dm.buf, 0, 1, 0, BUF);
        }
        if (recv) {
            fix_recv(f, 1, 8, k->off, 65536);
        }
        l = fix_link(f, reads, !reads);
        refs = l->sent_refs;
        before = l->sent;
        f->s[0].read = f->s[1].read = 0;
        post_kind(f, k, &dm);
        fix_run(f, 200 * US);
        fix_cqe(f, 0, 7, QHCA_WC_SUCCESS);
        if (recv) {
            fix_cqe(f, 1, 8, QHCA_WC_SUCCESS);
            assert_int_equal(f->cqe.byte_len, k->len);
        }
        fix_has(f, !reads, reads, k->off, k->len);
        assert_true(l->sent > before);
        if ((l->sent_refs > refs) != k->named) {
            fail_msg("kind %u: %u records name their payload", i,
                     (unsigned)(l->sent_refs - refs));
        }
        if (k->named) {
            assert_int_equal(f->s[reads].read, 0);
        } else if (!k->inl && !k->dm) {
            assert_true(f->s[reads].read >= k->len);
        }
        assert_int_equal(f->packets, 0);
        assert_int_equal(f->w.cuts, 0);
        if (k->dm) {
            assert_int_equal(gmr_destroy(&dm), QHCA_ST_OK);
        }
        fix_free(f);
    }
}

/* A datagram is copied; to a group or to itself it takes no link. */
static void datagrams(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct gwr wr = {
        .opcode = QHCA_WQE_SEND, .wr_id = 1, .flags = SIG,
        .qkey = 0x11111111, .num_sge = 1,
    };
    struct gqp_attr a;
    struct gqp qp[2];
    uint8_t got[2][2][40];      /* by family; over the link, by the wire */
    unsigned i, v6;

    (void)state;
    fix_go_up(f);
    fix_attr(&a);
    for (i = 0; i < 2; i++) {
        fix_qp(f, i, QHCA_QPT_UD, &qp[i]);
        gqp_to_init(&qp[i], &a);
        gqp_to_rtr(&qp[i], NULL, &a);
        gqp_to_rts(&qp[i], &a);
    }
    wr.sge[0] = (struct qhca_sge){ IOVA + 3000, MTU, f->s[0].mr.key };
    for (i = 0; i < 2; i++) {           /* to the other, and to itself */
        uint64_t sent = fix_link(f, 0, 1)->sent;

        f->s[0].read = 0;
        wr.dest_qpn = qp[!i].qpn;
        assert_true(gqp_post_recv(&qp[!i], 2, &(struct qhca_sge){
                        IOVA + 3000 - 40, 2000, f->s[!i].mr.key }, 1));
        guest_av(&f->s[0].g, f->s[!i].n, 0, &wr.av);
        assert_true(gqp_post_send(&qp[0], &wr));
        gqp_ring(&qp[0]);
        fix_run(f, 100 * US);
        fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
        fix_cqe(f, !i, 2, QHCA_WC_SUCCESS);
        assert_int_equal(f->cqe.byte_len, MTU + 40);
        fix_has(f, !i, 0, 3000, MTU);
        assert_int_equal(fix_link(f, 0, 1)->sent, sent + !i);
        assert_true(f->s[0].read >= MTU);
    }
    assert_int_equal(f->packets, 0);
    /* the GRH is that of the wire, with its lengths and checksum */
    wr.dest_qpn = qp[1].qpn;
    for (i = 0; i < 2; i++) {
        for (v6 = 0; v6 < 2; v6++) {
            wr.sge[0].len = 333;
            guest_av(&f->s[0].g, f->s[1].n, v6, &wr.av);
            assert_true(gqp_post_recv(&qp[1], 2, &(struct qhca_sge){
                            IOVA, 2000, f->s[1].mr.key }, 1));
            assert_true(gqp_post_send(&qp[0], &wr));
            gqp_ring(&qp[0]);
            fix_run(f, 100 * US);
            fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
            fix_cqe(f, 1, 2, QHCA_WC_SUCCESS);
            gbuf_read(&f->s[1].mr.buf, 0, got[v6][i], 40);
        }
        assert_int_equal(f->packets, 2 * i);
        node_memlinks_allow(f->s[0].n, false);
    }
    assert_memory_equal(got[0][0], got[0][1], 40);
    assert_memory_equal(got[1][0], got[1][1], 40);
    for (i = 0; i < 2; i++) {
        assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
    }
    fix_free(f);
}

static void xrc(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct guest *g = &f->s[1].g;
    uint32_t xrcd = guest_create(g, QHCA_CMD_ALLOC_XRCD, NULL, 0), wqe;
    struct gqp_init ini = {
        .type = QHCA_QPT_XRC_INI, .sq_shift = 4, .sq_stride = 7,
        .scq = &f->s[0].cq,
    };
    struct gqp_init tgt = { .type = QHCA_QPT_XRC_TGT, .xrcd = xrcd };
    struct gqp a, b;
    struct gsrq srq;

    (void)state;
    fix_go_up(f);
    gsrq_create_xrc(&srq, g, 4, 6, g->pd, xrcd, &f->s[1].cq);
    gqp_create(&a, &f->s[0].g, &ini);
    gqp_create(&b, g, &tgt);
    fix_connect(f, 0, &a, 1, &b);
    assert_true(gsrq_post(&srq, 9, &(struct qhca_sge){
                    IOVA + 500, 40000, f->s[1].mr.key }, 1, &wqe));
    f->s[0].read = 0;
    fix_post_on(f, 0, &a, (struct gwr){ .opcode = QHCA_WQE_SEND, .wr_id = 8,
                                        .srqn = srq.srqn }, 500, 40000);
    fix_run(f, 100 * US);
    fix_cqe(f, 0, 8, QHCA_WC_SUCCESS);
    fix_cqe(f, 1, 9, QHCA_WC_SUCCESS);
    fix_has(f, 1, 0, 500, 40000);
    assert_int_equal(f->s[0].read, 0);
    assert_int_equal(f->packets, 0);
    assert_int_equal(gqp_destroy(&a), QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&b), QHCA_ST_OK);
    gsrq_release(&srq, wqe);
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    assert_int_equal(guest_simple(g, QHCA_CMD_FREE_XRCD, xrcd), QHCA_ST_OK);
    fix_free(f);
}

/* All counters count as on the wire. */
static void counted_alike(void **state)
{
    struct fix *f[2];
    uint64_t n[2][2][QHCA_STAT_COUNT];
    unsigned i, side, k;

    (void)state;
    for (i = 0; i < 2; i++) {
        f[i] = fix_new(QHCA_QPT_RC, true);
        fix_go_up(f[i]);
        if (i) {
            node_memlinks_allow(f[i]->s[0].n, false);
            node_memlinks_allow(f[i]->s[1].n, false);
        }
        for (side = 0; side < 2; side++) {
            guest_stats(&f[i]->s[side].g, n[i][side]);
        }
        for (k = 0; k < 12; k++) {
            struct gwr wr = {
                .opcode = k % 3 == 0 ? QHCA_WQE_RDMA_WRITE :
                          k % 3 == 1 ? QHCA_WQE_RDMA_READ : QHCA_WQE_SEND_IMM,
                .wr_id = k,
            };

            if (wr.opcode == QHCA_WQE_SEND_IMM) {
                fix_recv(f[i], !(k & 1), 100, 0, BUF);
            }
            fix_post(f[i], k & 1, wr, 0, 1 + k * 1777);
            fix_run(f[i], 200 * US);
            if (wr.opcode == QHCA_WQE_SEND_IMM) {
                fix_cqe(f[i], !(k & 1), 100, QHCA_WC_SUCCESS);
            }
            fix_cqe(f[i], k & 1, k, QHCA_WC_SUCCESS);
        }
        assert_true(i ? f[i]->packets > 20 : !f[i]->packets);
        assert_int_equal(f[i]->markers, 0);
    }
    for (k = 0; k < QHCA_STAT_COUNT; k++) {
        uint64_t d[2][2];

        for (i = 0; i < 2; i++) {
            for (side = 0; side < 2; side++) {
                d[i][side] = qhca_stat(f[i]->s[side].e, k) - n[i][side][k];
            }
        }
        /* Except that memory is looked up once for each read. */
        if (k != QHCA_STAT_TABLE_WALKS && memcmp(d[0], d[1], sizeof(d[0]))) {
            fail_msg("counter %u: %u and %u, on the wire %u and %u", k,
                     (unsigned)d[0][0], (unsigned)d[0][1],
                     (unsigned)d[1][0], (unsigned)d[1][1]);
        }
    }
    for (i = 0; i < 2; i++) {
        fix_drop(f[i]);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(goes_over), cmocka_unit_test(first_marker_lost),
        cmocka_unit_test(marker_guessed),
        cmocka_unit_test(second_marker_lost),
        cmocka_unit_test(second_marker_never),
        cmocka_unit_test(second_marker_for_nobody),
        cmocka_unit_test(stranger), cmocka_unit_test(goes_back),
        cmocka_unit_test(observed), cmocka_unit_test(named),
        cmocka_unit_test(datagrams), cmocka_unit_test(xrc),
        cmocka_unit_test(counted_alike),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
