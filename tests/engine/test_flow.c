/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Flow steering: which rule gets a frame. */
#include "rawfix.h"

static const uint8_t group[6] = { 1, 0x50, 0x56, 0x19, 0x20, 0xa7 };
static const uint8_t other[6] = { 2, 0, 0, 0, 0, 0x77 };

/* Handmade frames arrive at side 1, from no sender. */
static unsigned arrive(struct fix *f, const uint8_t *frame, size_t len)
{
    unsigned i, bits;

    world_inject(&f->w, 1, frame, len);
    world_run(&f->w, 1000);
    bits = got_raw(&f->s[1], frame, len, NULL);
    for (i = 0; i < QPS; i++) {
        if (bits & 1u << i) {
            post_recv(&f->s[1], &f->s[1].qp[i]);
        }
    }
    return bits;
}

/* Each field of a match decides alone. */
static void fields(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    static const struct {
        unsigned off, len;
    } field[] = {
        { offsetof(struct qhca_flow_match, dmac), 6 },
        { offsetof(struct qhca_flow_match, smac), 6 },
        { offsetof(struct qhca_flow_match, ethertype), 2 },
        { offsetof(struct qhca_flow_match, vlan), 2 },
        { offsetof(struct qhca_flow_match, src_ip), 16 },
        { offsetof(struct qhca_flow_match, dst_ip), 16 },
        { offsetof(struct qhca_flow_match, src_port), 2 },
        { offsetof(struct qhca_flow_match, dst_port), 2 },
        { offsetof(struct qhca_flow_match, proto), 1 },
        { offsetof(struct qhca_flow_match, tos), 1 },
        { offsetof(struct qhca_flow_match, ttl), 1 },
        { offsetof(struct qhca_flow_match, ip_flags), 1 },
        { offsetof(struct qhca_flow_match, flow_label), 4 },
        { offsetof(struct qhca_flow_match, l3), 1 },
        { offsetof(struct qhca_flow_match, l4), 1 },
        { offsetof(struct qhca_flow_match, tagged), 1 },
    };
    uint8_t frame[FRAME + 4];
    struct qhca_flow_match k;
    unsigned i, v6;

    post_all(b);
    for (v6 = 0; v6 < 2; v6++) {
        uint8_t *ip = frame + 18;

        make_frame(frame, group);
        memmove(frame + 16, frame + 12, FRAME - 12);
        put16(frame + 12, 0x8100);
        put16(frame + 14, 0x6123);
        if (v6) {
            put16(frame + 16, 0x86dd);
            memset(ip, 0x31, 40);
            ip[0] = 0x6a;
            ip[1] = 0xb1;
            put16(ip + 4, 40);
            ip[6] = 6;
        } else {
            ip[1] = 0x1c;
            ip[6] = 0x40;
        }
        /* the rule's fields, from the frame's bytes alone */
        memset(&k, 0, sizeof(k));
        memcpy(k.dmac, frame, 12);
        put16((uint8_t *)&k.ethertype, v6 ? 0x86dd : 0x0800);
        put16((uint8_t *)&k.vlan, 0x6123);
        if (v6) {
            memset(k.src_ip, 0x31, 32);
            memcpy(&k.flow_label, "\0\x01\x31\x31", 4);
            memcpy(&k.src_port, ip + 40, 4);
        } else {
            memcpy(k.src_ip + 12, ip + 12, 4);
            memcpy(k.dst_ip + 12, ip + 16, 4);
            put16((uint8_t *)&k.src_port, 1000);
            put16((uint8_t *)&k.dst_port, 2000);
            k.ip_flags = 2;
        }
        k.proto = k.l4 = v6 ? 6 : 17;
        k.tos = v6 ? 0xab : 0x1c;
        k.ttl = v6 ? 0x31 : 64;
        k.l3 = v6 ? 6 : 4;
        k.tagged = 1;
        for (i = 0; i < sizeof(field) / sizeof(field[0]); i++) {
            struct qhca_flow r = flow_to(&b->qp[0], QHCA_FLOW_NORMAL);
            uint32_t num;

            memcpy((uint8_t *)&r.value + field[i].off,
                   (uint8_t *)&k + field[i].off, field[i].len);
            memset((uint8_t *)&r.mask + field[i].off, 0xff, field[i].len);
            num = add_flow(b, &r);
            assert_int_equal(arrive(f, frame, sizeof(frame)), 1);
            del_flow(b, num);
            /* one bit off, in the last byte */
            ((uint8_t *)&r.value)[field[i].off + field[i].len - 1] ^= 1;
            num = add_flow(b, &r);
            assert_int_equal(arrive(f, frame, sizeof(frame)), 0);
            del_flow(b, num);
            /* ... which is masked out */
            ((uint8_t *)&r.mask)[field[i].off + field[i].len - 1] = 0xfe;
            num = add_flow(b, &r);
            assert_int_equal(arrive(f, frame, sizeof(frame)), 1);
            del_flow(b, num);
        }
        memset(frame + 18, 0, 40);
    }
}

/* Truncated and odd frames have no layers, and are not read past their end. */
static void odd_frames(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca_flow r = flow_to(&b->qp[0], QHCA_FLOW_NORMAL);
    uint8_t frame[FRAME];
    uint32_t num;
    size_t len;

    post_all(b);
    r.value.l4 = 17;
    r.mask.l4 = 0xff;
    num = add_flow(b, &r);
    make_frame(frame, group);
    for (len = 14; len <= FRAME; len++) {
        uint8_t *copy = malloc(len);    /* the sanitizer sees its end */

        memcpy(copy, frame, len);
        world_inject(&f->w, 1, copy, len);
        world_run(&f->w, 1000);
        /* ports lie in the first 4 bytes */
        assert_int_equal(got_raw(b, copy, len, NULL), len >= 38);
        if (len >= 38) {
            post_recv(b, &b->qp[0]);
        }
        free(copy);
    }
    put16(frame + 20, 0x0001);          /* a later fragment */
    assert_int_equal(arrive(f, frame, FRAME), 0);
    put16(frame + 20, 0x2000);          /* the first one */
    assert_int_equal(arrive(f, frame, FRAME), 1);
    frame[14] = 0x44;                   /* header shorter than it can be */
    assert_int_equal(arrive(f, frame, FRAME), 0);
    frame[14] = 0x4f;                   /* options */
    assert_int_equal(arrive(f, frame, FRAME), 1);
    del_flow(b, num);
}

static void priorities(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca_flow r[3];
    uint8_t frame[FRAME];
    uint32_t num[3], i;

    post_all(b);
    make_frame(frame, group);
    /* different masks, so different groups; the priority decides */
    r[0] = flow_dmac(&b->qp[0], group);
    r[0].priority = 20;
    r[1] = flow_to(&b->qp[1], QHCA_FLOW_NORMAL);
    r[1].value.l4 = 17;
    r[1].mask.l4 = 0xff;
    r[1].priority = 10;
    r[2] = flow_to(&b->qp[2], QHCA_FLOW_NORMAL);
    r[2].priority = 0xffff;
    for (i = 0; i < 3; i++) {
        num[i] = add_flow(b, &r[i]);
    }
    assert_int_equal(arrive(f, frame, FRAME), 2);
    del_flow(b, num[1]);
    assert_int_equal(arrive(f, frame, FRAME), 1);
    del_flow(b, num[0]);
    assert_int_equal(arrive(f, frame, FRAME), 4);
    /* with equal priority the older one */
    r[1].priority = 0xffff;
    num[1] = add_flow(b, &r[1]);
    assert_int_equal(arrive(f, frame, FRAME), 4);
    del_flow(b, num[2]);
    num[2] = add_flow(b, &r[2]);
    assert_int_equal(arrive(f, frame, FRAME), 2);
    del_flow(b, num[1]);
    del_flow(b, num[2]);
}

/* The same rule for several QPs; rules that pass copies on. */
static void copies(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca_flow r[3];
    uint8_t frame[FRAME];
    uint32_t num[3], i;

    post_all(b);
    make_frame(frame, group);
    for (i = 0; i < 3; i++) {
        r[i] = flow_dmac(&b->qp[i], group);
        num[i] = add_flow(b, &r[i]);
    }
    assert_int_equal(arrive(f, frame, FRAME), 7);
    for (i = 0; i < 3; i++) {
        del_flow(b, num[i]);
    }
    /* 0 gets a copy, 1 takes it, 2 comes after 1 */
    r[0].flags = QHCA_FLOW_F_DONT_TRAP;
    r[1] = flow_to(&b->qp[1], QHCA_FLOW_NORMAL);
    r[1].priority = 1;
    r[2].priority = 2;
    for (i = 0; i < 3; i++) {
        num[i] = add_flow(b, &r[i]);
    }
    assert_int_equal(arrive(f, frame, FRAME), 3);
    del_flow(b, num[1]);
    assert_int_equal(arrive(f, frame, FRAME), 5);
    del_flow(b, num[2]);
    /* only a copy: the Ethernet function gets it, if it accepts it */
    make_frame(frame, b->g.n->mac);
    del_flow(b, num[0]);
    r[0] = flow_to(&b->qp[0], QHCA_FLOW_NORMAL);
    r[0].flags = QHCA_FLOW_F_DONT_TRAP;
    num[0] = add_flow(b, &r[0]);
    assert_int_equal(arrive(f, frame, FRAME), 1);
    assert_int_equal(got_eth(b), 1);
    /* dropped: no receiver gets it */
    r[1] = flow_dmac(&b->qp[1], b->g.n->mac);
    r[1].flags = QHCA_FLOW_F_DROP;
    num[1] = add_flow(b, &r[1]);
    assert_int_equal(arrive(f, frame, FRAME), 1);
    assert_int_equal(got_eth(b), 0);
    del_flow(b, num[0]);
    del_flow(b, num[1]);
}

/* Frames that neither the Ethernet function nor a rule accepts. */
static void defaults(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca_flow all = flow_to(&b->qp[0], QHCA_FLOW_ALL_DEFAULT);
    struct qhca_flow mc = flow_to(&b->qp[1], QHCA_FLOW_MC_DEFAULT);
    struct qhca_flow r = flow_dmac(&b->qp[2], other);
    uint32_t na, nm, nr;
    uint8_t frame[FRAME];

    post_all(b);
    na = add_flow(b, &all);
    nm = add_flow(b, &mc);
    make_frame(frame, group);
    assert_int_equal(arrive(f, frame, FRAME), 2);
    make_frame(frame, other);
    assert_int_equal(arrive(f, frame, FRAME), 1);
    assert_int_equal(got_eth(b), 0);
    make_frame(frame, b->g.n->mac);
    assert_int_equal(arrive(f, frame, FRAME), 0);
    assert_int_equal(got_eth(b), 1);
    nr = add_flow(b, &r);
    make_frame(frame, other);
    assert_int_equal(arrive(f, frame, FRAME), 4);
    del_flow(b, nm);
    make_frame(frame, group);
    assert_int_equal(arrive(f, frame, FRAME), 1);
    del_flow(b, na);
    del_flow(b, nr);
}

/* A sniffer sees all traffic, and takes nothing away. */
static void sniffer(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_flow s = flow_to(&b->qp[2], QHCA_FLOW_SNIFFER);
    struct qhca_flow r = flow_dmac(&b->qp[0], group);
    struct gqp_init in = {
        .type = QHCA_QPT_UD, .sq_shift = 2, .sq_stride = 7, .rq_shift = 2,
        .rq_stride = 5, .scq = &b->eth_cq, .rcq = &b->eth_cq,
    };
    uint32_t ns = add_flow(b, &s), nr = add_flow(b, &r);
    struct gwr wr = { .opcode = QHCA_WQE_SEND, .qkey = 0x11111111 };
    struct gqp_attr attr;
    uint8_t frame[FRAME];
    struct gqp ud;
    struct qhca_cqe c;

    post_all(b);
    make_frame(frame, group);
    assert_int_equal(arrive(f, frame, FRAME), 5);
    make_frame(frame, other);           /* not even ours */
    assert_int_equal(arrive(f, frame, FRAME), 4);
    send_raw(f, b, &b->qp[1], frame, FRAME, 0);         /* sent by us */
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 4);
    post_recv(b, &b->qp[2]);
    /* RoCE, to a peer and back to ourselves: seen once each */
    gqp_attr_default(&attr);
    gqp_create(&ud, &b->g, &in);
    gqp_to_init(&ud, &attr);
    gqp_to_rtr(&ud, NULL, &attr);
    gqp_to_rts(&ud, &attr);
    guest_av(&b->g, a->g.n, 0, &wr.av);
    wr.dest_qpn = 0x77;
    assert_true(gqp_post_send(&ud, &wr));
    gqp_ring(&ud);
    world_run(&f->w, 100000);
    assert_true(gcq_poll(&b->cq, &c));
    assert_int_equal(c.qpn, b->qp[2].qpn);
    assert_int_equal(c.byte_len, 14 + 20 + 8 + 12 + 8 + 4);
    assert_false(gcq_poll(&b->cq, &c));
    post_recv(b, &b->qp[2]);
    guest_av(&b->g, b->g.n, 0, &wr.av);
    wr.dest_qpn = ud.qpn;
    assert_true(gqp_post_send(&ud, &wr));
    gqp_ring(&ud);
    world_run(&f->w, 100000);
    assert_true(gcq_poll(&b->cq, &c));
    assert_int_equal(c.qpn, b->qp[2].qpn);
    assert_false(gcq_poll(&b->cq, &c));
    assert_int_equal(gqp_destroy(&ud), QHCA_ST_OK);
    del_flow(b, ns);
    del_flow(b, nr);
}

static void commands(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct gqp_init in = {
        .type = QHCA_QPT_UD, .sq_shift = 1, .sq_stride = 7, .scq = &b->cq,
        .rcq = &b->cq,
    };
    struct qhca_flow ok = flow_to(&b->qp[0], QHCA_FLOW_NORMAL), r;
    struct gqp ud;
    uint32_t num;
    uint64_t at;

    gqp_create(&ud, &b->g, &in);
    r = flow_to(&ud, QHCA_FLOW_NORMAL);
    assert_int_equal(try_flow(b, &r, NULL), QHCA_ST_BAD_STATE);
    assert_int_equal(gqp_destroy(&ud), QHCA_ST_OK);
    assert_int_equal(try_flow(b, &r, &at), QHCA_ST_BAD_OBJ);
    assert_int_equal(at, offsetof(struct qhca_flow, qpn));
    r = ok;
    r.type = 4;
    assert_int_equal(try_flow(b, &r, &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_flow, type));
    for (num = 0; num < 3; num++) {
        r = ok;
        r.type = num == 0 ? QHCA_FLOW_SNIFFER : QHCA_FLOW_NORMAL;
        r.flags = num == 0 ? QHCA_FLOW_F_DONT_TRAP : num == 1 ? 8 : 7;
        assert_int_equal(try_flow(b, &r, &at), QHCA_ST_BAD_PARAM);
        assert_int_equal(at, offsetof(struct qhca_flow, flags));
    }
    num = add_flow(b, &ok);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_QP,
                                  b->qp[0].qpn), QHCA_ST_BUSY);
    del_flow(b, num);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_FLOW, num),
                     QHCA_ST_BAD_OBJ);
    assert_int_equal(guest_simple(&b->g, QHCA_CMD_DESTROY_FLOW, 0xffffff),
                     QHCA_ST_BAD_OBJ);
}

/* The maximum number of rules; each found; then room again. */
static void many_rules(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca_flow r = flow_to(&b->qp[0], QHCA_FLOW_NORMAL);
    static uint32_t num[QHCA_FLOWS_MAX];
    uint8_t frame[FRAME];
    unsigned i;

    memset(&r.mask.dst_port, 0xff, 2);
    for (i = 0; i < QHCA_FLOWS_MAX; i++) {
        put16((uint8_t *)&r.value.dst_port, i);
        r.qpn = b->qp[i % QPS].qpn;
        num[i] = add_flow(b, &r);
    }
    assert_int_equal(try_flow(b, &r, NULL), QHCA_ST_NO_RESOURCES);
    post_all(b);
    make_frame(frame, group);
    for (i = 0; i < 300; i++) {
        unsigned port = i * 13 % QHCA_FLOWS_MAX;

        put16(frame + 36, port);
        assert_int_equal(arrive(f, frame, FRAME), 1u << port % QPS);
    }
    put16(frame + 36, QHCA_FLOWS_MAX);
    assert_int_equal(arrive(f, frame, FRAME), 0);
    for (i = 0; i < QHCA_FLOWS_MAX; i++) {
        del_flow(b, num[i]);
    }
    /* masks are limited, too, and freed again */
    memset(&r.mask, 0, sizeof(r.mask));
    for (i = 0; i < QHCA_FLOW_MASKS_MAX; i++) {
        r.mask.tos = (uint8_t)i;
        num[i] = add_flow(b, &r);
    }
    r.mask.tos = (uint8_t)i;
    assert_int_equal(try_flow(b, &r, NULL), QHCA_ST_NO_RESOURCES);
    del_flow(b, num[5]);
    num[5] = add_flow(b, &r);
    for (i = 0; i < QHCA_FLOW_MASKS_MAX; i++) {
        del_flow(b, num[i]);
    }
}

/* The number of copies of a frame is limited. */
static void copies_end(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca_flow r = flow_dmac(&b->qp[0], group);
    uint32_t num[2 * QHCA_FLOW_COPIES_MAX];
    uint8_t frame[FRAME];
    unsigned i, kind;

    make_frame(frame, group);
    for (kind = 0; kind < 3; kind++) {
        uint64_t before = stat(b, QHCA_STAT_RAW_RX_DROPPED);

        r.flags = kind == 1 ? QHCA_FLOW_F_DONT_TRAP : 0;
        r.type = kind == 2 ? QHCA_FLOW_SNIFFER : QHCA_FLOW_NORMAL;
        for (i = 0; i < 2 * QHCA_FLOW_COPIES_MAX; i++) {
            num[i] = add_flow(b, &r);
        }
        assert_int_equal(arrive(f, frame, FRAME), 0);
        assert_int_equal(stat(b, QHCA_STAT_RAW_RX_DROPPED),
                         before + QHCA_FLOW_COPIES_MAX);
        for (i = 0; i < 2 * QHCA_FLOW_COPIES_MAX; i++) {
            del_flow(b, num[i]);
        }
    }
}

/* Copies end, but the search goes on: a later rule still takes the frame. */
static void copies_and_drop(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca_flow r = flow_dmac(&b->qp[0], b->g.n->mac);
    uint32_t num[QHCA_FLOW_COPIES_MAX + 1];
    uint8_t frame[FRAME];
    unsigned i, first;

    make_frame(frame, b->g.n->mac);
    for (first = 0; first < 2; first++) {
        r.flags = QHCA_FLOW_F_DONT_TRAP;
        r.priority = 0;
        for (i = first; i < QHCA_FLOW_COPIES_MAX; i++) {
            num[i] = add_flow(b, &r);
        }
        r.flags = QHCA_FLOW_F_DROP;
        r.priority = 1;
        num[i] = add_flow(b, &r);
        assert_int_equal(arrive(f, frame, FRAME), 0);
        assert_int_equal(got_eth(b), 0);
        for (i = first; i <= QHCA_FLOW_COPIES_MAX; i++) {
            del_flow(b, num[i]);
        }
    }
}

#define FILTERED 190            /* rules that do not apply, ... */
#define GO_ON 40                /* that give copies and go on, ... */
#define BEHIND (QHCA_FLOWS_MAX - FILTERED - GO_ON - 1)  /* and later ones */

/*
 * Rules whose match is the same are one list, of which a frame searches only a
 * part.  Here that ends among the rules behind the one that takes the frame:
 * what they would have received counts as lost.
 */
static void search_ends(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca_flow r = flow_dmac(&b->qp[0], other);
    static uint32_t num[QHCA_FLOWS_MAX];
    uint64_t dropped = stat(b, QHCA_STAT_RAW_RX_DROPPED);
    uint8_t frame[FRAME];
    unsigned i, n = 0;

    r.flags = QHCA_FLOW_F_ADDR_FILTER;
    for (i = 0; i < FILTERED; i++) {
        num[n++] = add_flow(b, &r);
    }
    r.priority = 1;
    r.flags = QHCA_FLOW_F_DONT_TRAP;
    for (i = 0; i < GO_ON; i++) {
        num[n++] = add_flow(b, &r);
    }
    r.priority = 2;
    r.flags = 0;
    num[n++] = add_flow(b, &r);
    r.priority = 3;
    for (i = 0; i < BEHIND; i++) {
        num[n++] = add_flow(b, &r);
    }
    make_frame(frame, other);
    assert_int_equal(arrive(f, frame, FRAME), 0);
    assert_int_equal(stat(b, QHCA_STAT_RAW_RX_DROPPED),
                     dropped + GO_ON + 1 + 1);
    /* with fewer of them it does not end */
    for (i = 0; i < BEHIND / 2; i++) {
        del_flow(b, num[--n]);
    }
    assert_int_equal(arrive(f, frame, FRAME), 0);
    assert_int_equal(stat(b, QHCA_STAT_RAW_RX_DROPPED),
                     dropped + 2 * (GO_ON + 1) + 1);
    while (n) {
        del_flow(b, num[--n]);
    }
}

/* A state with one mask more than there may be. */
static void masks_in_state(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    struct qhca *e = b->g.n->e;
    struct qhca_flow r = flow_dmac(&b->qp[0], group);
    uint32_t num[QHCA_FLOW_MASKS_MAX + 1];
    char why[160] = "";
    uint8_t *at, *end;
    unsigned i;
    size_t len;
    void *s;

    r.value.ttl = 9;
    r.mask.ttl = 0xff;
    for (i = 0; i < QHCA_FLOW_MASKS_MAX; i++) {
        r.mask.tos = (uint8_t)(i + 1);
        num[i] = add_flow(b, &r);
    }
    r.value.ttl = 10;
    num[i] = add_flow(b, &r);           /* with the mask of the last one */
    assert_true(qhca_save(e, &s, &len));
    at = s;
    end = at + len;
    at = memmem(at, len, &r.mask, sizeof(r.mask));
    assert_non_null(at);
    at = memmem(at + 1, (size_t)(end - at - 1), &r.mask, sizeof(r.mask));
    assert_non_null(at);
    at += offsetof(struct qhca_flow_match, tos);
    ++*at;
    assert_false(qhca_load(e, s, len, why, sizeof(why)));
    assert_non_null(strstr(why, "there are too many masks"));
    assert_null(e->eth->flows);
    --*at;
    assert_true(qhca_load(e, s, len, why, sizeof(why)));
    free(s);
    for (i = 0; i <= QHCA_FLOW_MASKS_MAX; i++) {
        del_flow(b, num[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIX(fields), FIX(odd_frames), FIX(priorities), FIX(copies),
        FIX(defaults), FIX(sniffer), FIX(commands), FIX(many_rules),
        FIX(copies_end), FIX(copies_and_drop),
        FIX(search_ends), FIX(masks_in_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
