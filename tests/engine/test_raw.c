/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Raw packet QPs: sending, receiving, errors, delivery to ourselves. */
#include "rawfix.h"
#include "verdict.h"
#include "transport/roce.h"

#define SIG QHCA_WQE_F_SIGNALED

static const uint8_t group[6] = { 1, 0x50, 0x56, 0x19, 0x20, 0xa7 };
static const uint8_t other[6] = { 2, 0, 0, 0, 0, 0x77 };

static void expect_send(struct side *s, uint8_t status, uint8_t syndrome)
{
    struct qhca_cqe c;

    assert_true(gcq_poll(&s->cq, &c));
    assert_int_equal(c.opcode, QHCA_CQE_OP_SEND);
    assert_int_equal(c.wr_id, 1000);
    assert_int_equal(c.status, status);
    assert_int_equal(c.syndrome, syndrome);
}

/*
 * To a peer: to its QP if a rule matches, otherwise to its Ethernet function.
 */
static void wire(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    uint8_t frame[FRAME];
    struct qhca_flow r = flow_dmac(&b->qp[1], b->g.n->mac);
    struct qhca_cqe c;
    uint32_t num;

    make_frame(frame, b->g.n->mac);
    post_all(b);
    send_raw(f, a, &a->qp[0], frame, FRAME, SIG);
    expect_send(a, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 0);
    assert_int_equal(got_eth(b), 1);
    r.tag = 0x12345678;
    num = add_flow(b, &r);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_raw(b, frame, FRAME, &c), 2);
    assert_int_equal(c.src_qpn, 0x12345678);
    assert_int_equal(c.flags & QHCA_CQE_F_VLAN, 0);
    assert_int_equal(got_eth(b), 0);
    assert_int_equal(stat(b, QHCA_STAT_RAW_RX_PACKETS), 1);
    assert_int_equal(stat(b, QHCA_STAT_RAW_RX_BYTES), FRAME);
    assert_int_equal(stat(a, QHCA_STAT_RAW_TX_PACKETS), 2);
    /* a QP with a rule cannot be destroyed */
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_QP, b->qp[1].qpn),
                     QHCA_ST_BUSY);
    del_flow(b, num);
    post_recv(b, &b->qp[1]);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 0);
    assert_int_equal(got_eth(b), 1);
}

/* Packets for the RDMA engine are not matched by rules. */
static void roce_first(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_flow r = flow_to(&b->qp[0], QHCA_FLOW_NORMAL);
    uint8_t frame[FRAME];
    uint32_t num = add_flow(b, &r);     /* matches everything */
    uint64_t bad;

    make_frame(frame, b->g.n->mac);
    memcpy(frame + 30, "\x0a\x63\0\x02", 4);
    put16(frame + 36, QHCA_ROCE_UDP_PORT);
    post_all(b);
    bad = stat(b, QHCA_STAT_ROCE_RX_MALFORMED);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 0);
    assert_int_equal(stat(b, QHCA_STAT_ROCE_RX_MALFORMED), bad + 1);
    put16(frame + 36, QHCA_ROCE_UDP_PORT + 1);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 1);
    del_flow(b, num);
}

/* Groups: the wire and our own flows; our own address: inside only. */
static void inside(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_flow ra = flow_dmac(&a->qp[1], group);
    struct qhca_flow rb = flow_dmac(&b->qp[2], group);
    struct qhca_flow own = flow_dmac(&a->qp[2], a->g.n->mac);
    uint32_t na = add_flow(a, &ra), nb = add_flow(b, &rb), no;
    uint8_t frame[FRAME];
    uint64_t frames;

    make_frame(frame, group);
    post_all(a);
    post_all(b);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_raw(a, frame, FRAME, NULL), 2);
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 4);
    /* the sender itself, if it has the rule */
    post_recv(a, &a->qp[1]);
    post_recv(b, &b->qp[2]);
    send_raw(f, a, &a->qp[1], frame, FRAME, 0);
    assert_int_equal(got_raw(a, frame, FRAME, NULL), 2);
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 4);
    assert_int_equal(got_eth(a), 0);
    /* own address */
    make_frame(frame, a->g.n->mac);
    frames = f->w.frames;
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_eth(a), 1);
    no = add_flow(a, &own);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_eth(a), 0);
    assert_int_equal(got_raw(a, frame, FRAME, NULL), 4);
    assert_int_equal(f->w.frames, frames);
    /* an unknown address: sent out, ignoring a rule for it here */
    del_flow(a, no);
    own = flow_dmac(&a->qp[2], other);
    no = add_flow(a, &own);
    post_recv(a, &a->qp[2]);
    make_frame(frame, other);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_raw(a, frame, FRAME, NULL), 0);
    assert_int_equal(f->w.frames, frames + 1);
    del_flow(a, na);
    del_flow(b, nb);
    del_flow(a, no);
}

/* In loopback no frame leaves, whatever its destination. */
static void loopback(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    struct qhca_port p = { .loopback = 1 };
    struct qhca_flow r = flow_dmac(&a->qp[1], other);
    uint32_t no = add_flow(a, &r);
    uint64_t frames = f->w.frames;
    uint8_t frame[FRAME];
    struct gcmd m = {
        .op = QHCA_CMD_MODIFY_PORT, .mask = QHCA_PORT_M_LOOPBACK,
        .in = &p, .in_len = sizeof(p),
    };

    assert_int_equal(guest_cmd(&a->g, &m), QHCA_ST_OK);
    post_recv(a, &a->qp[1]);
    make_frame(frame, other);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_raw(a, frame, FRAME, NULL), 2);
    make_frame(frame, a->g.n->mac);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_eth(a), 1);
    assert_int_equal(f->w.frames, frames);
    del_flow(a, no);
}

/* A tagged frame to ourselves, through the Ethernet function's VLAN path. */
static void own_tagged(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    uint8_t frame[FRAME], t[FRAME + 4], got[FRAME];
    struct qhca_cqe c;

    make_frame(frame, a->g.n->mac);
    memcpy(t, frame, 12);
    put16(t + 12, 0x8100);
    put16(t + 14, 0x6005);
    memcpy(t + 16, frame + 12, FRAME - 12);
    send_raw(f, a, &a->qp[0], t, sizeof(t), 0);
    assert_true(gcq_poll(&a->eth_cq, &c));
    assert_int_equal(c.vlan, 0x6005);
    assert_int_equal(c.byte_len, FRAME);
    memcpy(got, gmem_ptr(a->g.m, a->eth_data, FRAME), FRAME);
    assert_memory_equal(got, frame, FRAME);
}

static void strip_vlan(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    uint8_t frame[FRAME], t[FRAME + 4];
    struct qhca_flow r;
    struct qhca_cqe c;
    uint32_t keep, num;

    assert_int_equal(gqp_destroy(&b->qp[0]), QHCA_ST_OK);
    make_raw(b, 0, QHCA_QP_F_STRIP_VLAN);
    r = flow_dmac(&b->qp[0], group);
    num = add_flow(b, &r);
    make_frame(frame, group);
    memcpy(t, frame, 12);
    put16(t + 12, 0x8100);
    put16(t + 14, 0xac0c);
    memcpy(t + 16, frame + 12, FRAME - 12);
    post_all(b);
    send_raw(f, a, &a->qp[0], t, sizeof(t), QHCA_WQE_F_ETH_CSUM);
    qhca_csum_fill(frame, FRAME);
    assert_int_equal(got_raw(b, frame, FRAME, &c), 1);
    assert_true(c.flags & QHCA_CQE_F_VLAN);
    assert_int_equal(c.vlan, 0xac0c);
    assert_true(c.flags & QHCA_CQE_F_L3_OK && c.flags & QHCA_CQE_F_L4_OK);
    del_flow(b, num);
    /* another keeps the tag; checksums after it are checked */
    r = flow_dmac(&b->qp[1], group);
    keep = add_flow(b, &r);
    memcpy(t + 16, frame + 12, FRAME - 12);
    send_raw(f, a, &a->qp[0], t, sizeof(t), 0);
    assert_int_equal(got_raw(b, t, sizeof(t), &c), 2);
    assert_false(c.flags & QHCA_CQE_F_VLAN);
    assert_true(c.flags & QHCA_CQE_F_L3_OK && c.flags & QHCA_CQE_F_L4_OK);
    del_flow(b, keep);
}

/* Checksums are filled in and checked. */
static void checksums(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_flow r = flow_dmac(&b->qp[0], group);
    uint32_t num = add_flow(b, &r);
    uint8_t frame[FRAME], v6[FRAME], got[FRAME];
    struct qhca_csum_verdict v;
    struct qhca_cqe c;

    make_frame(frame, group);
    put16(frame + 24, 0xdead);  /* a wrong one is replaced */
    put16(frame + 40, 0xbeef);
    post_recv(b, &b->qp[0]);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_true(gcq_poll(&b->cq, &c));
    assert_false(c.flags & (QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK));
    post_recv(b, &b->qp[0]);
    send_raw(f, a, &a->qp[0], frame, FRAME, QHCA_WQE_F_ETH_CSUM);
    assert_true(gcq_poll(&b->cq, &c));
    assert_true(c.flags & QHCA_CQE_F_L3_OK && c.flags & QHCA_CQE_F_L4_OK);
    gbuf_read(&b->mr.buf, c.wr_id * SLOT, got, FRAME);
    verdict(got, FRAME, &v);
    assert_true(v.l3_ok && v.l4_ok);
    assert_memory_equal(got + 42, frame + 42, FRAME - 42);
    /* TCP over IPv6 */
    memset(v6, 0, sizeof(v6));
    memcpy(v6, frame, 12);
    put16(v6 + 12, 0x86dd);
    v6[14] = 0x60;
    put16(v6 + 18, FRAME - 54);
    v6[20] = 6;
    v6[22] = 0xfd;
    v6[38] = 0xfe;
    put16(v6 + 54 + 16, 0x1234);
    post_recv(b, &b->qp[0]);
    send_raw(f, a, &a->qp[0], v6, FRAME, QHCA_WQE_F_ETH_CSUM);
    assert_true(gcq_poll(&b->cq, &c));
    assert_true(c.flags & QHCA_CQE_F_L3_OK && c.flags & QHCA_CQE_F_L4_OK);
    b->qp[0].rq_cons = b->qp[0].rq_prod;
    /* headers with a wrong length stay as they are */
    make_frame(frame, group);
    put16(frame + 16, FRAME);
    put16(frame + 40, 0xbeef);
    post_recv(b, &b->qp[0]);
    send_raw(f, a, &a->qp[0], frame, FRAME, QHCA_WQE_F_ETH_CSUM);
    assert_int_equal(got_raw(b, frame, FRAME, &c), 1);
    assert_false(c.flags & (QHCA_CQE_F_L3_OK | QHCA_CQE_F_L4_OK));
    del_flow(b, num);
}

/* A UDP checksum covers what the UDP header counts, if that is possible. */
static void udp_lengths(void **state)
{
    static const struct {
        uint16_t len;           /* in the UDP header */
        uint16_t covers;        /* 0: the checksum stays */
    } t[] = {
        { FRAME - 34, FRAME - 34 }, { FRAME - 35, FRAME - 35 },
        { FRAME - 40, FRAME - 40 }, { 8, 8 }, { 7, 0 }, { 0, 0 },
        { FRAME - 33, 0 }, { 0xffff, 0 },
    };
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_flow r = flow_dmac(&b->qp[0], group);
    uint32_t num = add_flow(b, &r);
    uint8_t frame[FRAME], got[FRAME], pseudo[12];
    struct qhca_cqe c;
    unsigned i;

    for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
        make_frame(frame, group);
        put16(frame + 38, t[i].len);
        put16(frame + 40, 0xbeef);
        post_recv(b, &b->qp[0]);
        send_raw(f, a, &a->qp[0], frame, FRAME, QHCA_WQE_F_ETH_CSUM);
        assert_true(gcq_poll(&b->cq, &c));
        assert_true(c.flags & QHCA_CQE_F_L3_OK);
        gbuf_read(&b->mr.buf, c.wr_id * SLOT, got, FRAME);
        if (!t[i].covers) {
            assert_memory_equal(got + 40, "\xbe\xef", 2);
            continue;
        }
        memcpy(pseudo, frame + 26, 8);
        put16(pseudo + 8, 17);
        put16(pseudo + 10, t[i].len);
        assert_int_equal(qhca_csum(got + 34, t[i].covers,
                                   qhca_csum(pseudo, 12, 0)), 0xffff);
    }
    del_flow(b, num);
}

static void inline_data(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_flow r = flow_dmac(&b->qp[0], group);
    uint32_t num = add_flow(b, &r);
    struct gwr wr = {
        .opcode = QHCA_WQE_RAW_SEND, .flags = QHCA_WQE_F_INLINE,
        .inl_len = FRAME,
    };
    uint8_t frame[FRAME];

    make_frame(frame, group);
    wr.inl = frame;
    post_recv(b, &b->qp[0]);
    assert_true(gqp_post_send(&a->qp[0], &wr));
    gqp_ring(&a->qp[0]);
    world_run(&f->w, 100000);
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 1);
    del_flow(b, num);
}

/* One invalid WQE and its status; the QP goes to SQE and can recover. */
static void bad_sends(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    struct gqp *qp = &a->qp[0];
    struct qhca_port port = { .mtu = 1000 };
    struct gcmd mtu = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_MTU,
    };
    struct gwr wr = {
        .opcode = QHCA_WQE_RAW_SEND, .wr_id = 1000, .num_sge = 1,
        .sge = { { .addr = IOVA, .len = FRAME, .lkey = a->mr.key } },
    }, bad;
    static const struct {
        uint8_t status, syndrome;
    } want[] = {
        { QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_OPCODE },
        { QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_FLAGS },
        { QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH },
        { QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH },
        { QHCA_WC_LOC_LEN_ERR, QHCA_SYN_WQE_LENGTH },
        { QHCA_WC_LOC_PROT_ERR, QHCA_SYN_KEY_INVALID },
        { QHCA_WC_LOC_PROT_ERR, QHCA_SYN_KEY_BOUNDS },
        { QHCA_WC_LOC_QP_OP_ERR, QHCA_SYN_WQE_SGE },
    };
    uint8_t frame[FRAME];
    uint64_t frames;
    unsigned i;

    make_frame(frame, other);
    gbuf_write(&a->mr.buf, 0, frame, FRAME);
    guest_must(&a->g, &mtu);
    for (i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        uint16_t sges = 1000;

        bad = wr;
        switch (i) {
        case 0:
            bad.opcode = QHCA_WQE_SEND;
            break;
        case 1:
            bad.flags = 0x20;
            break;
        case 2:
            bad.sge[0].len = 13;
            break;
        case 3:
            bad.sge[0].len = 1000 + 15;
            break;
        case 4:
            bad.sge[0].len = 0xffffffff;
            break;
        case 5:
            bad.sge[0].lkey ^= 0x100;
            break;
        case 6:
            bad.sge[0].addr = IOVA + SLOTS * SLOT - 10;
            break;
        }
        frames = f->w.frames;
        assert_true(gqp_post_send(qp, &bad));
        if (i == 7) {
            gqp_sq_poke(qp, qp->sq_prod - 1, 2, &sges, 2);
        }
        assert_true(gqp_post_send(qp, &wr));
        gqp_ring(qp);
        world_run(&f->w, 100000);
        expect_send(a, want[i].status, want[i].syndrome);
        expect_send(a, QHCA_WC_WR_FLUSH_ERR, QHCA_SYN_FLUSH);
        qp->sq_cons = qp->sq_prod;
        assert_int_equal(f->w.frames, frames);
        assert_int_equal(gqp_state(qp, QHCA_QPS_RTS), QHCA_ST_OK);
    }
    /* exactly the MTU */
    wr.sge[0].len = 1000 + 14;
    wr.flags = SIG;
    assert_true(gqp_post_send(qp, &wr));
    gqp_ring(qp);
    world_run(&f->w, 100000);
    expect_send(a, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_int_equal(f->w.frames, frames + 1);
}

/* No receive, too small a receive, not in a receiving state: dropped. */
static void drops(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_flow r = flow_dmac(&b->qp[0], group);
    uint32_t num = add_flow(b, &r);
    struct qhca_sge sge = {
        .addr = IOVA + SLOT, .len = FRAME - 1, .lkey = b->mr.key,
    };
    uint8_t frame[FRAME];
    struct qhca_cqe c;

    make_frame(frame, group);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(stat(b, QHCA_STAT_RAW_RX_DROPPED), 1);
    assert_true(gqp_post_recv(&b->qp[0], 1, &sge, 1));
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(stat(b, QHCA_STAT_RAW_RX_DROPPED), 2);
    /* the WQE is still there */
    send_raw(f, a, &a->qp[0], frame, FRAME - 1, 0);
    assert_int_equal(got_raw(b, frame, FRAME - 1, NULL), 1);
    /* its memory is inaccessible: an error of this QP alone */
    sge.lkey ^= 0x100;
    sge.len = FRAME;
    assert_true(gqp_post_recv(&b->qp[0], 2, &sge, 1));
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_true(gcq_poll(&b->cq, &c));
    assert_int_equal(c.status, QHCA_WC_LOC_PROT_ERR);
    assert_int_equal(c.syndrome, QHCA_SYN_KEY_INVALID);
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(stat(b, QHCA_STAT_RAW_RX_DROPPED), 3);
    assert_int_equal(got_eth(b), 0);    /* the rule still takes it */
    del_flow(b, num);
}

/* WQEs of an SRQ have keys of its PD, which need not be that of the QP. */
static void srq_pd(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct gqp_init in = {
        .type = QHCA_QPT_RAW, .sq_shift = 4, .sq_stride = 8,
        .scq = &b->cq, .rcq = &b->cq,
    };
    uint32_t pd = b->g.pd, num, wqe;
    struct qhca_sge sge = { .addr = IOVA, .len = SLOT };
    uint8_t frame[FRAME], got[FRAME];
    struct qhca_flow r;
    struct qhca_cqe c;
    struct gsrq srq;
    struct gmr mr;
    struct gqp qp;

    b->g.pd = guest_create(&b->g, QHCA_CMD_ALLOC_PD, NULL, 0);
    gsrq_create(&srq, &b->g, 4, 6, NULL, NULL);
    gmr_create(&mr, &b->g, SLOT, IOVA, QHCA_ACCESS_MASK, NULL);
    gbuf_allow(&mr.buf, 0, SLOT, GMEM_RW);
    b->g.pd = pd;
    in.srq = &srq;
    gqp_create(&qp, &b->g, &in);
    raw_states(&qp, QHCA_QPS_RTS);
    r = flow_dmac(&qp, group);
    num = add_flow(b, &r);
    make_frame(frame, group);
    sge.lkey = mr.key;
    assert_true(gsrq_post(&srq, 1, &sge, 1, &wqe));
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_true(gcq_poll(&b->cq, &c));
    assert_int_equal(c.status, QHCA_WC_SUCCESS);
    assert_int_equal(c.byte_len, FRAME);
    assert_true(c.flags & QHCA_CQE_F_SRQ);
    gbuf_read(&mr.buf, 0, got, FRAME);
    assert_memory_equal(got, frame, FRAME);
    /* a key of the QP's PD */
    sge.lkey = b->mr.key;
    assert_true(gsrq_post(&srq, 2, &sge, 1, &wqe));
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_true(gcq_poll(&b->cq, &c));
    assert_int_equal(c.status, QHCA_WC_LOC_PROT_ERR);
    assert_int_equal(c.syndrome, QHCA_SYN_KEY_PD);
    del_flow(b, num);
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&mr), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_FREE_PD, mr.pd), QHCA_ST_OK);
}

/* A sender whose own receive fails while it sends. */
static void own_receive_fails(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    struct gqp *qp = &a->qp[0];
    struct qhca_flow r = flow_dmac(qp, group);
    uint32_t num = add_flow(a, &r);
    struct qhca_sge sge = { .addr = IOVA, .len = FRAME, .lkey = 0x12300 };
    struct qhca_cqe c;
    uint8_t frame[FRAME];

    make_frame(frame, group);
    assert_true(gqp_post_recv(qp, 1, &sge, 1));
    send_raw(f, a, qp, frame, FRAME, SIG);
    assert_true(gcq_poll(&a->cq, &c));
    assert_int_equal(c.opcode, QHCA_CQE_OP_RECV);
    assert_int_equal(c.status, QHCA_WC_LOC_PROT_ERR);
    expect_send(a, QHCA_WC_SUCCESS, QHCA_SYN_NONE);
    assert_false(gcq_poll(&a->cq, &c));
    del_flow(a, num);
}

static bool is_it(void *opaque, uint64_t addr)
{
    return addr == *(uint64_t *)opaque;
}

/* A send WQE that cannot be read: it fails, and the next ones are flushed. */
static void unreadable(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    struct gqp *qp = &a->qp[0];
    uint64_t bad = gbuf_addr(&qp->sq, 0, NULL), frames = f->w.frames;
    struct gwr wr = {
        .opcode = QHCA_WQE_RAW_SEND, .wr_id = 1000, .num_sge = 1,
        .sge = { { .addr = IOVA, .len = FRAME, .lkey = a->mr.key } },
    };
    struct qhca_qpc c;
    struct qhca_cqe cqe;

    a->g.m->may_fail = is_it;
    a->g.m->may_fail_opaque = &bad;
    assert_true(gqp_post_send(qp, &wr));
    assert_true(gqp_post_send(qp, &wr));
    a->g.m->fail_64k = 65536;
    gqp_ring(qp);
    a->g.m->fail_64k = 0;
    world_run(&f->w, 100000);
    assert_int_equal(f->w.frames, frames);
    guest_query(&a->g, QHCA_CMD_QUERY_QP, qp->qpn, &c, sizeof(c));
    assert_int_equal(c.state, QHCA_QPS_ERR);
    assert_true(gcq_poll(&a->cq, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_LOC_QP_OP_ERR);
    assert_int_equal(cqe.syndrome, QHCA_SYN_WQE_DMA);
    assert_int_equal(cqe.wqe_index, 0);
    assert_true(gcq_poll(&a->cq, &cqe));
    assert_int_equal(cqe.status, QHCA_WC_WR_FLUSH_ERR);
    assert_int_equal(cqe.wqe_index, 1);
    assert_false(gcq_poll(&a->cq, &cqe));
}

/* A RoCE packet to a raw packet QP is not delivered. */
static void not_a_roce_qp(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct gqp_init in = {
        .type = QHCA_QPT_UD, .sq_shift = 2, .sq_stride = 7, .scq = &a->cq,
        .rcq = &a->cq,
    };
    struct gqp_attr attr;
    struct gqp ud;
    struct gwr wr = { .opcode = QHCA_WQE_SEND };

    gqp_attr_default(&attr);
    gqp_create(&ud, &a->g, &in);
    gqp_to_init(&ud, &attr);
    gqp_to_rtr(&ud, NULL, &attr);
    gqp_to_rts(&ud, &attr);
    post_all(b);
    guest_av(&a->g, b->g.n, 0, &wr.av);
    wr.dest_qpn = b->qp[0].qpn;
    assert_true(gqp_post_send(&ud, &wr));
    gqp_ring(&ud);
    world_run(&f->w, 100000);
    assert_int_equal(stat(b, QHCA_STAT_ROCE_RX_MALFORMED), 1);
    assert_int_equal(got_raw(b, NULL, 0, NULL), 0);
    assert_int_equal(gqp_destroy(&ud), QHCA_ST_OK);
}

/* Does the frame of @len bytes with this ethertype complete with success? */
static bool sends(struct fix *f, uint16_t type, uint32_t len)
{
    struct side *a = &f->s[0];
    uint8_t frame[SLOT];
    struct qhca_cqe c;

    make_frame(frame, other);
    memset(frame + FRAME, 0, sizeof(frame) - FRAME);
    memmove(frame + 16, frame + 12, FRAME - 16);
    put16(frame + 12, type);
    put16(frame + 14, 5);
    send_raw(f, a, &a->qp[0], frame, len, SIG);
    assert_true(gcq_poll(&a->cq, &c));
    if (c.status == QHCA_WC_SUCCESS) {
        return true;
    }
    assert_int_equal(c.status, QHCA_WC_LOC_LEN_ERR);
    assert_int_equal(gqp_state(&a->qp[0], QHCA_QPS_RTS), QHCA_ST_OK);
    return false;
}

/* The port's MTU: one VLAN tag, of either kind, does not count. */
static void mtu(void **state)
{
    struct fix *f = *state;
    struct qhca_port port = { .mtu = 1000 };
    struct gcmd c = {
        .op = QHCA_CMD_MODIFY_PORT, .in = &port, .in_len = sizeof(port),
        .mask = QHCA_PORT_M_MTU,
    };

    guest_must(&f->s[0].g, &c);
    assert_true(sends(f, 0x88b5, 1014));
    assert_false(sends(f, 0x88b5, 1015));
    assert_true(sends(f, 0x8100, 1018));
    assert_false(sends(f, 0x8100, 1019));
    assert_true(sends(f, 0x88a8, 1018));
    assert_false(sends(f, 0x88a8, 1019));
}

/* A frame that ends within its tag is refused, as from the wire. */
static void own_cut(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    uint64_t errors = stat(a, QHCA_STAT_ETH_RX_ERRORS);
    uint8_t frame[FRAME];
    unsigned len;

    make_frame(frame, a->g.n->mac);
    put16(frame + 12, 0x8100);
    for (len = 14; len < 18; len++) {
        send_raw(f, a, &a->qp[0], frame, len, 0);
        world_inject(&f->w, 0, frame, len);
    }
    assert_int_equal(got_eth(a), 0);
    assert_int_equal(stat(a, QHCA_STAT_ETH_RX_ERRORS), errors + 8);
}

/*
 * In loopback a QP does not wait for the wire, even if it has a turn when the
 * work of one call is used up: here by the sniffers of RoCE packets.
 */
static void loopback_is_not_blocked(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0];
    struct qhca *e = a->g.n->e;
    struct qhca_flow r = flow_to(&a->qp[2], QHCA_FLOW_SNIFFER);
    struct qhca_port p = { .loopback = 1 };
    struct gcmd m = {
        .op = QHCA_CMD_MODIFY_PORT, .mask = QHCA_PORT_M_LOOPBACK,
        .in = &p, .in_len = sizeof(p),
    };
    struct gwr wr = {
        .opcode = QHCA_WQE_RAW_SEND, .num_sge = 1,
        .sge = { { .addr = IOVA, .len = FRAME, .lkey = a->mr.key } },
    };
    uint32_t num[QHCA_FLOW_COPIES_MAX];
    uint8_t frame[FRAME], *slot;
    unsigned i;

    make_frame(frame, other);
    gbuf_write(&a->mr.buf, 0, frame, FRAME);
    for (i = 0; i < QHCA_FLOW_COPIES_MAX; i++) {
        num[i] = add_flow(a, &r);
    }
    e->tx_blocked = true;       /* until qhca_tx_ready() */
    for (i = 0; i < 2; i++) {
        assert_true(gqp_post_send(&a->qp[0], &wr));
    }
    gqp_ring(&a->qp[0]);
    a->qp[0].sq_cons = a->qp[0].sq_prod;
    assert_int_equal(stat(a, QHCA_STAT_RAW_TX_PACKETS), 0);
    e->xd->parting = true;      /* use the reserve, too */
    while ((slot = qhca_loop_slot(e)) != NULL) {
        memcpy(slot, frame, FRAME);
        qhca_loop_commit(e, FRAME);
    }
    e->xd->parting = false;
    guest_must(&a->g, &m);
    world_run(&f->w, 1000000);
    assert_int_equal(stat(a, QHCA_STAT_RAW_TX_PACKETS), 2);
    e->tx_blocked = false;
    for (i = 0; i < QHCA_FLOW_COPIES_MAX; i++) {
        del_flow(a, num[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIX(wire), FIX(roce_first), FIX(inside), FIX(loopback), FIX(own_tagged),
        FIX(strip_vlan), FIX(checksums), FIX(udp_lengths), FIX(inline_data),
        FIX(bad_sends), FIX(unreadable),
        FIX(drops), FIX(srq_pd), FIX(own_receive_fails), FIX(not_a_roce_qp),
        FIX(mtu),
        FIX(own_cut), FIX(loopback_is_not_blocked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
