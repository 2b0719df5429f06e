/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fault injection at frames of the Ethernet function and of raw packet QPs. */
#include "rawfix.h"
#include "rule.h"

#define AT      (QHCA_FLT_AT | QHCA_FLT_NUMBER)
#define FRAMES  .at = QHCA_FLT_AT_FRAME, .number = 0x0800
#define IN      (AT | QHCA_FLT_DIRECTION)
#define LATE    1000000         /* ns */

static const uint8_t group[6] = { 1, 0x50, 0x56, 0x19, 0x20, 0xa7 };

static void send_n(struct fix *f, uint8_t *frame, unsigned n)
{
    struct side *s = &f->s[0];

    /* byte 50 of each has its number */
    for (; n; n--, frame[50]++) {
        send_raw(f, s, &s->qp[0], frame, FRAME, 0);
    }
}

/* The next frame that the Ethernet function of @s has got: its number, or -1. */
static int got(struct side *s, uint8_t copy[FRAME])
{
    struct qhca_eth_cqe c;
    struct qhca_cqe any;
    uint64_t at;

    if (!gcq_poll(&s->eth_cq, &any)) {
        return -1;
    }
    memcpy(&c, &any, sizeof(c));
    assert_int_equal(c.status, QHCA_WC_SUCCESS);
    assert_int_equal(c.byte_len, FRAME);
    at = s->eth_data + c.wqe_index % ETH_DEPTH * SLOT;
    memcpy(copy, gmem_ptr(s->g.m, at, FRAME), FRAME);
    eth_post(s);
    return copy[50];
}

static void expect(struct side *s, const char *numbers)
{
    uint8_t copy[FRAME];

    for (; *numbers; numbers++) {
        assert_int_equal(got(s, copy), *numbers - '0');
    }
    assert_int_equal(got(s, copy), -1);
}

static void begin(struct fix *f, uint8_t *frame, unsigned to)
{
    make_frame(frame, f->s[to].g.n->mac);
    frame[50] = 0;
}

static uint64_t hits(struct side *s)
{
    return qhca_fault_next(s->g.n->e, 0)->hits;
}

/* ---- either end, one after the other ---- */

static struct side *end_of(struct fix *f, unsigned in,
                           struct qhca_fault_rule rule)
{
    struct side *s = &f->s[in];

    rule.fields |= IN;
    rule.direction = in ? QHCA_FLT_IN : QHCA_FLT_OUT;
    assert_int_equal(s->g.n->e->fault_sites, 0);
    rule_add(s->g.n->e, rule);
    return s;
}

static void end(struct side *s, uint64_t n)
{
    assert_int_equal(hits(s), n);
    assert_true(qhca_fault_remove(s->g.n->e, 0));
    assert_int_equal(qhca_fault_held(s->g.n->e), 0);
    assert_int_equal(s->g.n->e->fault_sites, 0);
}

/* It counts as sent, and never as received. */
static void drop(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1], *s;
    uint8_t frame[FRAME];
    unsigned in;

    for (in = 0; in < 2; in++) {
        begin(f, frame, 1);
        s = end_of(f, in, RULE(DROP, FRAMES, .nth = 2));
        send_n(f, frame, 3);
        expect(b, "02");
        end(s, 1);
    }
    assert_int_equal(stat(a, QHCA_STAT_RAW_TX_PACKETS), 6);
    assert_int_equal(stat(a, QHCA_STAT_PORT_TX_FRAMES), 5);
    assert_int_equal(stat(b, QHCA_STAT_PORT_RX_FRAMES), 5);
    assert_int_equal(stat(b, QHCA_STAT_ETH_RX_PACKETS), 4);
}

static void delay(void **state)
{
    struct fix *f = *state;
    struct side *s;
    uint8_t frame[FRAME];
    unsigned in;

    for (in = 0; in < 2; in++) {
        begin(f, frame, 1);
        s = end_of(f, in, RULE(DELAY, FRAMES, .fields = QHCA_FLT_NS |
                               QHCA_FLT_COUNT, .ns = LATE, .count = 1));
        send_n(f, frame, 2);
        expect(&f->s[1], "1");
        assert_int_equal(qhca_fault_held(s->g.n->e), 1);
        world_run(&f->w, LATE);
        expect(&f->s[1], "0");
        end(s, 1);
        /* one that is held when the rule goes is delivered then */
        s = end_of(f, in, RULE(DELAY, FRAMES, .fields = QHCA_FLT_NS,
                               .ns = LATE));
        send_n(f, frame, 2);
        expect(&f->s[1], "");
        end(s, 2);
        world_run(&f->w, LATE);
        expect(&f->s[1], "23");
    }
}

static void duplicate(void **state)
{
    struct fix *f = *state;
    struct side *s;
    uint8_t frame[FRAME];
    unsigned in;

    for (in = 0; in < 2; in++) {
        begin(f, frame, 1);
        s = end_of(f, in, RULE(DUPLICATE, FRAMES, .fields = QHCA_FLT_PACKETS,
                               .packets = 2, .nth = 1));
        send_n(f, frame, 2);
        expect(&f->s[1], "0001");
        end(s, 1);
    }
}

static void reorder(void **state)
{
    struct fix *f = *state;
    struct side *s;
    uint8_t frame[FRAME];
    unsigned in;

    for (in = 0; in < 2; in++) {
        begin(f, frame, 1);
        s = end_of(f, in, RULE(REORDER, FRAMES));
        send_n(f, frame, 4);
        expect(&f->s[1], "1032");
        /* another type of frame does not overtake it */
        send_n(f, frame, 1);
        put16(frame + 12, 0x88b5);
        send_n(f, frame, 1);
        expect(&f->s[1], "5");
        put16(frame + 12, 0x0800);
        end(s, 5);
        world_run(&f->w, LATE);
        expect(&f->s[1], "4");
    }
}

/* A bit behind the type is wrong, and the checksum of IP or UDP with it. */
static void corrupt(void **state)
{
    struct fix *f = *state;
    struct side *s;
    uint8_t frame[FRAME], copy[FRAME];
    unsigned in, i, bits;

    for (in = 0; in < 2; in++) {
        begin(f, frame, 1);
        s = end_of(f, in, RULE(CORRUPT, FRAMES));
        frame[50] = 9;
        send_raw(f, &f->s[0], &f->s[0].qp[0], frame, FRAME, 0);
        assert_int_not_equal(got(&f->s[1], copy), -1);
        assert_memory_equal(copy, frame, 14);
        for (i = 14, bits = 0; i < FRAME; i++) {
            bits += (unsigned)__builtin_popcount(copy[i] ^ frame[i]);
        }
        assert_int_equal(bits, 1);
        expect(&f->s[1], "");
        end(s, 1);
    }
}

/* ---- what matches ---- */

/* The EtherType behind a VLAN tag; both directions; without a number, all. */
static void which(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    uint8_t frame[FRAME], tagged[FRAME + 4];

    begin(f, frame, 1);
    memcpy(tagged, frame, 12);
    put16(tagged + 12, 0x8100);
    put16(tagged + 14, 5);
    memcpy(tagged + 16, frame + 12, FRAME - 12);
    rule_add(a->g.n->e, RULE(DROP, .fields = AT, FRAMES));
    send_raw(f, a, &a->qp[0], tagged, sizeof(tagged), 0);
    expect(b, "");
    put16(tagged + 16, 0x88b5);
    send_raw(f, a, &a->qp[0], tagged, sizeof(tagged), 0);
    expect(b, "0");
    assert_int_equal(qhca_fault_next(a->g.n->e, 0)->matches, 1);
    qhca_fault_remove(a->g.n->e, 0);
    rule_add(a->g.n->e, RULE(DROP, .fields = QHCA_FLT_AT,
                             .at = QHCA_FLT_AT_FRAME));
    send_n(f, frame, 1);
    send_raw(f, a, &a->qp[0], tagged, sizeof(tagged), 0);
    expect(b, "");
    assert_int_equal(hits(a), 2);
    qhca_fault_remove(a->g.n->e, 0);
    /* packets are no frames */
    rule_add(a->g.n->e, RULE(DROP));
    send_n(f, frame, 1);
    expect(b, "1");
    assert_int_equal(qhca_fault_next(a->g.n->e, 0)->matches, 0);
    qhca_fault_remove(a->g.n->e, 0);
}

/* To the own address: it does not leave.  To a group: both ways. */
static void inside(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    struct qhca_flow ra = flow_dmac(&a->qp[1], group);
    struct qhca_flow rb = flow_dmac(&b->qp[2], group);
    uint32_t na, nb;
    uint8_t frame[FRAME];
    uint64_t frames = f->w.frames;

    begin(f, frame, 0);
    rule_add(a->g.n->e, RULE(DUPLICATE, .fields = AT | QHCA_FLT_PACKETS, FRAMES,
                             .packets = 1, .nth = 1));
    rule_add(a->g.n->e, RULE(DROP, .fields = AT, FRAMES, .nth = 2));
    rule_add(a->g.n->e, RULE(DELAY, .fields = AT | QHCA_FLT_NS, FRAMES,
                             .ns = LATE, .nth = 3));
    send_n(f, frame, 3);
    expect(a, "00");
    world_run(&f->w, LATE);
    expect(a, "2");
    assert_int_equal(f->w.frames, frames);
    qhca_fault_remove(a->g.n->e, 0);
    na = add_flow(a, &ra);
    nb = add_flow(b, &rb);
    post_all(a);
    post_all(b);
    begin(f, frame, 0);
    memcpy(frame, group, 6);
    rule_add(a->g.n->e, RULE(DELAY, .fields = AT | QHCA_FLT_NS, FRAMES,
                             .ns = LATE));
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_raw(a, frame, FRAME, NULL), 0);
    world_run(&f->w, 2 * LATE);
    assert_int_equal(got_raw(a, frame, FRAME, NULL), 2);
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 4);
    qhca_fault_remove(a->g.n->e, 0);
    post_all(a);
    post_all(b);
    rule_add(a->g.n->e, RULE(DROP, .fields = AT, FRAMES, .nth = 2));
    send_raw(f, a, &a->qp[0], frame, FRAME, 0);
    assert_int_equal(got_raw(a, frame, FRAME, NULL), 2);
    assert_int_equal(got_raw(b, frame, FRAME, NULL), 4);
    qhca_fault_remove(a->g.n->e, 0);
    del_flow(a, na);
    del_flow(b, nb);
}

/* ---- the wire, resets, failures ---- */

/* The wire is busy: nothing is lost, and the order is kept. */
static void busy(void **state)
{
    struct fix *f = *state;
    struct side *a = &f->s[0], *b = &f->s[1];
    uint8_t frame[FRAME];
    uint64_t frames;

    begin(f, frame, 1);
    rule_add(a->g.n->e, RULE(REORDER, .fields = AT, FRAMES, .nth = 1));
    send_n(f, frame, 1);
    frames = f->w.frames;
    f->w.wire.refuse = 65535;
    /* it overtakes the first, but the wire takes neither */
    send_n(f, frame, 1);
    assert_int_equal(f->w.frames, frames);
    assert_int_equal(qhca_fault_held(a->g.n->e), 2);
    f->w.wire.refuse = 0;
    world_run(&f->w, LATE);
    expect(b, "10");
    end(a, 1);
}

static void reset(void **state)
{
    struct fix *f = *state;
    struct side *b = &f->s[1];
    uint8_t frame[FRAME];

    begin(f, frame, 1);
    rule_add(b->g.n->e, RULE(DELAY, .fields = IN | QHCA_FLT_NS, FRAMES,
                             .direction = QHCA_FLT_IN, .ns = LATE));
    send_n(f, frame, 2);
    assert_int_equal(qhca_fault_held(b->g.n->e), 2);
    b->g.n->e->hooks->reset(b->g.n->e);
    assert_int_equal(qhca_fault_held(b->g.n->e), 0);
    world_run(&f->w, 2 * LATE);
    expect(b, "");
    qhca_fault_remove(b->g.n->e, 0);
    /* the link is pulled with the frame that finds it so */
    rule_add(b->g.n->e, RULE(LINK_DOWN, .fields = IN | QHCA_FLT_NS, FRAMES,
                             .direction = QHCA_FLT_IN, .ns = LATE, .nth = 2));
    send_n(f, frame, 2);
    expect(b, "2");
    assert_false(b->g.n->e->link);
    world_run(&f->w, LATE);
    assert_true(b->g.n->e->link);
    qhca_fault_remove(b->g.n->e, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FIX(drop), FIX(delay), FIX(duplicate), FIX(reorder), FIX(corrupt),
        FIX(which), FIX(inside), FIX(busy), FIX(reset),
    };

    return cmocka_run_group_tests_name("fault_frame", tests, NULL, NULL);
}
