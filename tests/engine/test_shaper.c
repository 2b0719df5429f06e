/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shapers: rates, bursts, shares, waiting, and what must not be possible. */
#include <string.h>

#include "unit.h"
#include "bigpkt.h"
#include "emit.h"
#include "reborn.h"
#include "observe/inspect.h"

#define SHIFT 9
#define DEPTH (1u << SHIFT)
#define STRIDE 6
#define SQS 4
#define FRAME 1514u
#define MS 1000000ull
#define SECOND 1000000000ull

struct sq {
    uint32_t num, prod;
    struct gbuf ring;
    uint64_t mem;
    uint32_t len;               /* of its frames; 0: random */
};

struct fix {
    struct unit *u;
    struct gcq cq;
    struct sq q[SQS];
    unsigned n;
};

/* The frames sent, by queue, and the last of each. */
static uint64_t bytes[SQS], frames[SQS], last[SQS];

static bool tap(struct world *w, unsigned src, uint8_t *frame, size_t *len)
{
    unsigned i = frame[11];

    (void)src;
    assert_true(i < SQS);
    bytes[i] += *len;
    frames[i]++;
    last[i] = w->now;
    return false;
}

static void forget(void)
{
    memset(bytes, 0, sizeof(bytes));
    memset(frames, 0, sizeof(frames));
}

static void make(struct fix *f, struct unit *u, unsigned n)
{
    struct qhca_eth_qc c;
    uint8_t *frame;
    unsigned i;

    memset(f, 0, sizeof(*f));
    f->u = u;
    f->n = n;
    gcq_create(&f->cq, &u->g, 10, NULL, 1);
    for (i = 0; i < n; i++) {
        struct sq *q = &f->q[i];

        gbuf_make(&q->ring, u->m, DEPTH << STRIDE, &gbuf_direct, true, 0,
                  &u->g.rng);
        gbuf_allow(&q->ring, 0, q->ring.len, GMEM_R);
        q->mem = gmem_alloc(u->m, 2048, 12, 0);
        frame = gmem_ptr(u->m, q->mem, 2048);
        frame[0] = 4;
        frame[11] = (uint8_t)i;
        gmem_allow(u->m, q->mem, 2048, GMEM_R);
        q->len = FRAME;
        memset(&c, 0, sizeof(c));
        c.buf = q->ring.d;
        c.cqn = f->cq.cqn;
        c.shift = SHIFT;
        c.stride = STRIDE;
        q->num = guest_create(&u->g, QHCA_CMD_CREATE_ETH_SQ, &c, sizeof(c));
    }
    u->w.wire.filter = tap;
    forget();
}

static void unmake(struct fix *f)
{
    unsigned i;

    for (i = 0; i < f->n; i++) {
        assert_int_equal(guest_simple(&f->u->g, QHCA_CMD_DESTROY_ETH_SQ,
                                      f->q[i].num), QHCA_ST_OK);
        gbuf_free(&f->q[i].ring);
        gmem_release(f->u->m, f->q[i].mem, 2048);
    }
    assert_int_equal(gcq_destroy(&f->cq), QHCA_ST_OK);
    f->u->e = f->u->n->e;
}

static struct qhca_eth_q *inside(struct fix *f, unsigned i)
{
    return qhca_idr_get(&f->u->n->e->eth->eth_sqs, f->q[i].num);
}

static void post(struct fix *f, unsigned i)
{
    struct sq *q = &f->q[i];
    struct qhca_eth_wqe h = { .opcode = QHCA_WQE_ETH_SEND, .num_sge = 1 };
    struct qhca_eth_seg seg = { .addr = q->mem, .len = q->len };
    uint64_t off = (uint64_t)(q->prod++ & (DEPTH - 1)) << STRIDE;

    if (!seg.len) {
        seg.len = (uint32_t)rng_range(&f->u->g.rng, 60, FRAME);
    }
    gbuf_write(&q->ring, off, &h, sizeof(h));
    gbuf_write(&q->ring, off + sizeof(h), &seg, sizeof(seg));
}

static void ring(struct fix *f, unsigned i)
{
    guest_doorbell(&f->u->g, 0, QHCA_DB_ETH_SQ, f->q[i].num |
                   (uint64_t)f->q[i].prod << QHCA_DB_INDEX_SHIFT);
}

static void post_n(struct fix *f, unsigned i, unsigned n)
{
    while (n--) {
        post(f, i);
    }
    ring(f, i);
}

/* All queues of @mask always have something to send, for @ns. */
static void pump(struct fix *f, unsigned mask, uint64_t ns)
{
    uint64_t end = f->u->w.now + ns;
    unsigned i;

    for (;;) {
        for (i = 0; i < f->n; i++) {
            if (mask >> i & 1 &&
                f->q[i].prod - inside(f, i)->ring.tail < DEPTH / 2) {
                while (f->q[i].prod - inside(f, i)->ring.tail < DEPTH) {
                    post(f, i);
                }
                ring(f, i);
            }
        }
        if (f->u->w.now >= end) {
            return;
        }
        world_run_until(&f->u->w, f->u->w.now + MS < end ?
                        f->u->w.now + MS : end);
    }
}

static struct qhca_shaperc context(uint64_t rate, uint32_t burst,
                                   uint32_t parent)
{
    return (struct qhca_shaperc){
        .rate = rate, .burst = burst, .parent = parent, .weight = 1,
    };
}

static uint32_t shaper(struct fix *f, uint64_t rate, uint32_t burst,
                       uint32_t parent, uint8_t weight)
{
    struct qhca_shaperc c = context(rate, burst, parent);

    c.weight = weight;
    return guest_create(&f->u->g, QHCA_CMD_CREATE_SHAPER, &c, sizeof(c));
}

static uint8_t change(struct fix *f, uint32_t num, uint64_t mask,
                      struct qhca_shaperc c)
{
    return unit_cmd(f->u, QHCA_CMD_MODIFY_SHAPER, num, mask, &c, sizeof(c),
                    NULL);
}

static uint8_t attach(struct fix *f, unsigned i, uint32_t num)
{
    struct qhca_eth_qc c = { .shaper = num };

    return unit_cmd(f->u, QHCA_CMD_MODIFY_ETH_SQ, f->q[i].num,
                    QHCA_ETH_SQ_M_SHAPER, &c, sizeof(c), NULL);
}

static uint8_t drop(struct fix *f, uint32_t num)
{
    return guest_simple(&f->u->g, QHCA_CMD_DESTROY_SHAPER, num);
}

static struct qhca_shaperc query(struct fix *f, uint32_t num)
{
    struct qhca_shaperc c;

    guest_query(&f->u->g, QHCA_CMD_QUERY_SHAPER, num, &c, sizeof(c));
    return c;
}

static struct qhca_eth_qc query_sq(struct fix *f, unsigned i)
{
    struct qhca_eth_qc c;

    guest_query(&f->u->g, QHCA_CMD_QUERY_ETH_SQ, f->q[i].num, &c, sizeof(c));
    return c;
}

/* @got bytes are those of @rate in @ns, except for a frame. */
static void expect_rate(uint64_t got, uint64_t rate, uint64_t ns)
{
    uint64_t want = rate / 8 * ns / SECOND;

    CHECK(got + FRAME >= want && got <= want + FRAME,
          "%llu bytes at %llu bit/s, and not %llu", (unsigned long long)got,
          (unsigned long long)rate, (unsigned long long)want);
}

static void expect_share(uint64_t got, uint64_t all, unsigned part,
                         unsigned of)
{
    uint64_t want = all * part / of, off = got > want ? got - want :
                                                        want - got;

    CHECK(off <= want / 50, "%llu of %llu bytes, and not %u of %u",
          (unsigned long long)got, (unsigned long long)all, part, of);
}

/* ---- rates ---- */

static void rates(void **state)
{
    static const uint64_t rate[] = { 64000, 10000000, 333333336, 800000000 };
    struct fix f;
    unsigned i;
    uint32_t s;

    make(&f, *state, 1);
    for (i = 0; i < 4; i++) {
        s = shaper(&f, rate[i], 0, QHCA_SHAPER_NONE, 1);
        assert_int_equal(attach(&f, 0, s), QHCA_ST_OK);
        f.q[0].len = i & 1 ? 0 : FRAME;
        forget();
        pump(&f, 1, 3 * SECOND);
        expect_rate(bytes[0], rate[i], 3 * SECOND);
        assert_int_equal(query(&f, s).bytes, bytes[0]);
        assert_int_equal(query(&f, s).frames, frames[0]);
        assert_int_equal(query_sq(&f, 0).waits, 1);
        assert_int_equal(query(&f, s).waits, 1);
        assert_int_equal(attach(&f, 0, QHCA_SHAPER_NONE), QHCA_ST_OK);
        assert_int_equal(drop(&f, s), QHCA_ST_OK);
        world_run(&f.u->w, 10 * MS);
        assert_int_equal(query_sq(&f, 0).waits, 0);
        assert_int_equal(inside(&f, 0)->ring.tail, f.q[0].prod);
    }
    unmake(&f);
}

/* Saved tokens are used at once, and no more than these. */
static void bursts(void **state)
{
    uint64_t start;
    struct fix f;
    uint32_t s;

    make(&f, *state, 1);
    s = shaper(&f, 1000000, 100000, QHCA_SHAPER_NONE, 1);
    assert_int_equal(attach(&f, 0, s), QHCA_ST_OK);
    assert_int_equal(query(&f, s).tokens, 100000);
    post_n(&f, 0, 200);
    world_run(&f.u->w, MS);
    assert_true(bytes[0] >= 100000 && bytes[0] <= 100000 + 2 * FRAME);
    start = bytes[0];
    world_run(&f.u->w, SECOND);
    expect_rate(bytes[0] - start, 1000000, SECOND);
    /* it fills in 0.8 s, and no further */
    world_run(&f.u->w, 2 * SECOND);
    assert_int_equal(inside(&f, 0)->ring.tail, 200);
    assert_int_equal(query(&f, s).tokens, 100000);
    assert_int_equal(query(&f, s).debt, 0);
    forget();
    post_n(&f, 0, 200);
    world_run(&f.u->w, MS);
    assert_true(bytes[0] >= 100000 && bytes[0] <= 100000 + 2 * FRAME);
    assert_true(query(&f, s).debt && !query(&f, s).tokens);
    /* with less room, what was saved up is lost */
    world_run(&f.u->w, 3 * SECOND);
    assert_int_equal(change(&f, s, QHCA_SHAPER_M_RATE,
                            context(1000000, 3000, 0)), QHCA_ST_OK);
    assert_int_equal(query(&f, s).tokens, 3000);
    unmake(&f);
    assert_int_equal(drop(&f, s), QHCA_ST_OK);
}

/* Nothing happens while a queue waits. */
static void patience(void **state)
{
    struct unit *u = *state;
    uint64_t timers, runs;
    struct fix f;
    uint32_t s;

    make(&f, u, 1);
    s = shaper(&f, 1000, 0, QHCA_SHAPER_NONE, 1);
    assert_int_equal(attach(&f, 0, s), QHCA_ST_OK);
    post_n(&f, 0, 100);
    world_run(&u->w, MS);
    timers = u->n->timers;
    runs = u->n->runs;
    world_run(&u->w, 200 * SECOND);
    expect_rate(bytes[0], 1000, 200 * SECOND);
    assert_true(u->n->timers - timers <= 2 * frames[0]);
    assert_true(u->n->runs - runs <= 2 * frames[0]);
    unmake(&f);
    assert_int_equal(drop(&f, s), QHCA_ST_OK);
}

/* ---- shares ---- */

static void weights(void **state)
{
    uint32_t node, leaf[3];
    struct fix f;
    uint64_t all;
    unsigned i;

    make(&f, *state, 4);
    node = shaper(&f, 80000000, 3000, QHCA_SHAPER_NONE, 1);
    for (i = 0; i < 3; i++) {
        leaf[i] = shaper(&f, 0, 0, node, (uint8_t)(1 + i * i)); /* 1, 2, 5 */
        assert_int_equal(attach(&f, i, leaf[i]), QHCA_ST_OK);
    }
    f.q[1].len = 0;
    f.q[2].len = 300;
    pump(&f, 7, 2 * SECOND);
    all = bytes[0] + bytes[1] + bytes[2];
    expect_rate(all - 3000, 80000000, 2 * SECOND);
    for (i = 0; i < 3; i++) {
        expect_share(bytes[i], all, 1 + i * i, 8);
    }
    /* a queue that pauses leaves its share to the others */
    for (i = 0; i < 3; i++) {
        f.q[i].prod = inside(&f, i)->ring.head;
    }
    while (inside(&f, 1)->ring.tail != f.q[1].prod) {
        pump(&f, 5, 10 * MS);
    }
    forget();
    pump(&f, 5, SECOND);
    all = bytes[0] + bytes[2];
    assert_int_equal(bytes[1], 0);
    expect_share(bytes[0], all, 1, 6);
    expect_share(bytes[2], all, 5, 6);
    /* and another weight holds at once */
    assert_int_equal(change(&f, leaf[0], QHCA_SHAPER_M_WEIGHT,
                            (struct qhca_shaperc){ .weight = 10 }),
                     QHCA_ST_OK);
    forget();
    pump(&f, 5, SECOND);
    expect_share(bytes[0], bytes[0] + bytes[2], 10, 15);
    unmake(&f);
    for (i = 0; i < 3; i++) {
        assert_int_equal(drop(&f, leaf[i]), QHCA_ST_OK);
    }
    assert_int_equal(drop(&f, node), QHCA_ST_OK);
}

/* SQs share in equal parts, whatever they send. */
static void members(void **state)
{
    struct fix f;
    uint32_t s;
    unsigned i;

    make(&f, *state, 4);
    s = shaper(&f, 40000000, 0, QHCA_SHAPER_NONE, 1);
    for (i = 0; i < 3; i++) {
        assert_int_equal(attach(&f, i, s), QHCA_ST_OK);
    }
    assert_int_equal(query(&f, s).members, 3);
    f.q[1].len = 100;
    f.q[2].len = 0;
    pump(&f, 7, 2 * SECOND);
    for (i = 0; i < 3; i++) {
        expect_share(bytes[i], bytes[0] + bytes[1] + bytes[2], 1, 3);
    }
    /* the port's own members are not held up */
    post_n(&f, 3, 50);
    world_run(&f.u->w, 10000);
    assert_int_equal(frames[3], 50);
    unmake(&f);
    assert_int_equal(drop(&f, s), QHCA_ST_OK);
}

/* Each bucket on the way counts. */
static void levels(void **state)
{
    uint32_t port, node, a, b;
    struct fix f;

    make(&f, *state, 3);
    port = shaper(&f, 8000000, 0, QHCA_SHAPER_NONE, 1);
    /* what they may not send because of others they save up */
    node = shaper(&f, 6000000, 6000, port, 1);
    a = shaper(&f, 1000000, 6000, node, 200);
    b = shaper(&f, 0, 0, node, 1);
    assert_int_equal(attach(&f, 0, a), QHCA_ST_OK);
    assert_int_equal(attach(&f, 1, b), QHCA_ST_OK);
    assert_int_equal(attach(&f, 2, port), QHCA_ST_OK);
    pump(&f, 7, 4 * SECOND);
    expect_rate(bytes[0] - 6000, 1000000, 4 * SECOND);
    expect_share(bytes[0] + bytes[1], 4000000, 1, 2);   /* as q 2 */
    expect_share(bytes[2], 4000000, 1, 2);
    assert_int_equal(query(&f, node).bytes, bytes[0] + bytes[1]);
    assert_int_equal(query(&f, port).bytes, bytes[0] + bytes[1] + bytes[2]);
    /* without the port's limit the node's holds, and q 2 has none */
    assert_int_equal(change(&f, port, QHCA_SHAPER_M_RATE, context(0, 0, 0)),
                     QHCA_ST_OK);
    pump(&f, 3, SECOND);                    /* what was saved up is gone */
    forget();
    pump(&f, 3, 4 * SECOND);
    expect_rate(bytes[0] + bytes[1], 6000000, 4 * SECOND);
    /* a node below another port: its members go along */
    assert_int_equal(change(&f, node, QHCA_SHAPER_M_PARENT,
                            context(0, 0, QHCA_SHAPER_NONE)), QHCA_ST_OK);
    assert_int_equal(query(&f, port).members, 1);
    forget();
    pump(&f, 3, 4 * SECOND);
    expect_rate(bytes[0] + bytes[1], 6000000, 4 * SECOND);
    expect_rate(bytes[0], 1000000, 4 * SECOND);
    unmake(&f);
    assert_int_equal(drop(&f, node), QHCA_ST_BUSY);
    assert_int_equal(drop(&f, a), QHCA_ST_OK);
    assert_int_equal(drop(&f, b), QHCA_ST_OK);
    assert_int_equal(drop(&f, node), QHCA_ST_OK);
    assert_int_equal(drop(&f, port), QHCA_ST_OK);
}

/* All frames of a large send count, with the headers of each. */
static void large(struct unit *u, uint64_t rate)
{
    static uint8_t all[BIG_HDR_MAX + BIG_PAYLOAD_MAX];
    static struct big b;
    struct qhca_eth_wqe h = {
        .opcode = QHCA_WQE_ETH_SEND, .flags = QHCA_WQE_F_ETH_LSO,
        .num_sge = 1, .mss = 1000,
    };
    struct qhca_eth_seg seg;
    uint64_t mem = gmem_alloc(u->m, 1 << 17, 12, 0), start, sent;
    struct fix f;
    uint32_t s;
    unsigned i;

    make(&f, u, 1);
    u->w.wire.filter = NULL;
    s = shaper(&f, rate, 0, QHCA_SHAPER_NONE, 1);
    assert_int_equal(attach(&f, 0, s), QHCA_ST_OK);
    big_random(&b, &u->g.rng, 50000);
    h.hdr_len = (uint16_t)big_headers(&b, all, &u->g.rng);
    memcpy(all + h.hdr_len, b.payload, b.len);
    memcpy(gmem_ptr(u->m, mem, h.hdr_len + b.len), all, h.hdr_len + b.len);
    gmem_allow(u->m, mem, h.hdr_len + b.len, GMEM_R);
    seg = (struct qhca_eth_seg){ .addr = mem, .len = h.hdr_len + b.len };
    start = u->w.now;
    for (i = 0; i < 20; i++) {
        gbuf_write(&f.q[0].ring, (uint64_t)f.q[0].prod << STRIDE, &h,
                   sizeof(h));
        gbuf_write(&f.q[0].ring, ((uint64_t)f.q[0].prod++ << STRIDE) +
                   sizeof(h), &seg, sizeof(seg));
    }
    ring(&f, 0);
    while (inside(&f, 0)->ring.tail != 20) {
        assert_true(world_step(&u->w));
    }
    sent = 20 * (50000 + 50 * (uint64_t)h.hdr_len);
    assert_int_equal(unit_stat(u, QHCA_STAT_ETH_TX_BYTES), sent);
    assert_int_equal(query(&f, s).bytes, sent);
    assert_int_equal(query(&f, s).frames, 20 * 50);
    /* all but the last super-frame took their time */
    assert_true(u->w.now - start >= (sent - 66000) * 8 * SECOND / rate);
    assert_true(u->w.now - start <= sent * 8 * SECOND / rate + MS);
    unmake(&f);
    assert_int_equal(drop(&f, s), QHCA_ST_OK);
    gmem_release(u->m, mem, 1 << 17);
}

static void large_sends(void **state)
{
    large(*state, 10000000);
}

static int super_setup(void **state)
{
    struct qhca_config cfg;

    qhca_config_default(&cfg);
    cfg.super_frames = true;
    return unit_setup_as(state, &cfg);
}

/* ---- changes while a queue waits ---- */

static void changes(void **state)
{
    struct unit *u = *state;
    uint32_t s, fast;
    struct fix f;

    make(&f, u, 2);
    s = shaper(&f, 1, 0, QHCA_SHAPER_NONE, 1);
    fast = shaper(&f, 1000000, 0, QHCA_SHAPER_NONE, 1);
    assert_int_equal(attach(&f, 0, s), QHCA_ST_OK);
    post_n(&f, 0, 10);
    world_run(&u->w, SECOND);
    assert_int_equal(frames[0], 1);         /* the next in three hours */
    assert_int_equal(query_sq(&f, 0).waits, 1);
    assert_int_equal(query_sq(&f, 0).shaper, s);
    /* the debt is in bytes: at another rate it is soon paid off */
    assert_int_equal(change(&f, s, QHCA_SHAPER_M_RATE, context(1000000, 0, 0)),
                     QHCA_ST_OK);
    world_run(&u->w, 11 * MS);
    assert_int_equal(frames[0], 1);
    world_run(&u->w, 2 * MS);
    assert_int_equal(frames[0], 2);
    assert_int_equal(change(&f, s, QHCA_SHAPER_M_RATE, context(1, 0, 0)),
                     QHCA_ST_OK);
    world_run(&u->w, SECOND);
    assert_int_equal(frames[0], 2);
    /* elsewhere it waits for others only */
    assert_int_equal(attach(&f, 0, fast), QHCA_ST_OK);
    world_run(&u->w, 100);
    assert_int_equal(frames[0], 3);
    assert_int_equal(attach(&f, 0, s), QHCA_ST_OK);
    world_run(&u->w, SECOND);
    assert_int_equal(frames[0], 3);
    /* no limit: all that is there leaves */
    assert_int_equal(change(&f, s, QHCA_SHAPER_M_RATE, context(0, 0, 0)),
                     QHCA_ST_OK);
    world_run(&u->w, MS);
    assert_int_equal(frames[0], 10);
    assert_int_equal(query_sq(&f, 0).waits, 0);
    /* a queue that waits can be destroyed, then the shaper */
    assert_int_equal(change(&f, s, QHCA_SHAPER_M_RATE, context(1, 0, 0)),
                     QHCA_ST_OK);
    post_n(&f, 0, 10);
    world_run(&u->w, MS);
    assert_int_equal(frames[0], 11);
    assert_int_equal(drop(&f, s), QHCA_ST_BUSY);
    unmake(&f);
    assert_int_equal(query(&f, s).members, 0);
    assert_int_equal(query(&f, s).waits, 0);
    assert_int_equal(drop(&f, s), QHCA_ST_OK);
    assert_int_equal(drop(&f, s), QHCA_ST_BAD_OBJ);
    assert_int_equal(drop(&f, fast), QHCA_ST_OK);
}

/* Of several that wait, the one whose time comes first is the next. */
static void wakes_in_order(void **state)
{
    static const uint64_t rate[SQS] = { 1211200, 302800, 605600, 201872 };
    struct unit *u = *state;
    uint64_t begin[SQS], wait;
    uint32_t s[SQS];
    struct fix f;
    unsigned i;

    make(&f, u, SQS);
    for (i = 0; i < SQS; i++) {
        s[i] = shaper(&f, rate[i], 0, QHCA_SHAPER_NONE, 1);
        assert_int_equal(attach(&f, i, s[i]), QHCA_ST_OK);
        post_n(&f, i, 2);
    }
    world_run(&u->w, MS);
    for (i = 0; i < SQS; i++) {
        assert_int_equal(frames[i], 1);
        begin[i] = last[i];
    }
    world_run(&u->w, SECOND);
    for (i = 0; i < SQS; i++) {
        assert_int_equal(frames[i], 2);
        wait = FRAME * 8 * SECOND / rate[i];      /* 10, 40, 20, 60 ms */
        assert_in_range(last[i] - begin[i], wait - MS, wait + MS);
    }
    unmake(&f);
    for (i = 0; i < SQS; i++) {
        assert_int_equal(drop(&f, s[i]), QHCA_ST_OK);
    }
}

/* A shaper that waits goes below another that waits, and comes back. */
static void moves(void **state)
{
    struct unit *u = *state;
    uint32_t a, b, c;
    struct fix f;

    make(&f, u, 2);
    a = shaper(&f, 100000, 0, QHCA_SHAPER_NONE, 1);
    b = shaper(&f, 100000, 0, QHCA_SHAPER_NONE, 1);
    c = shaper(&f, 100000, 0, a, 1);
    assert_int_equal(attach(&f, 0, c), QHCA_ST_OK);
    assert_int_equal(attach(&f, 1, b), QHCA_ST_OK);
    post_n(&f, 0, 400);
    post_n(&f, 1, 400);
    world_run(&u->w, MS);
    assert_int_equal(change(&f, c, QHCA_SHAPER_M_PARENT, context(0, 0, b)),
                     QHCA_ST_OK);
    world_run(&u->w, SECOND);
    forget();
    world_run(&u->w, 20 * SECOND);
    expect_rate(bytes[0] + bytes[1], 100000, 20 * SECOND);
    expect_share(bytes[0] + 1000, bytes[0] + bytes[1] + 2000, 1, 2);
    assert_int_equal(query(&f, a).waits, 0);
    assert_int_equal(change(&f, c, QHCA_SHAPER_M_PARENT,
                            context(0, 0, QHCA_SHAPER_NONE)), QHCA_ST_OK);
    forget();
    world_run(&u->w, 10 * SECOND);
    expect_rate(bytes[0], 100000, 10 * SECOND);
    expect_rate(bytes[1], 100000, 10 * SECOND);
    unmake(&f);
    assert_int_equal(drop(&f, c), QHCA_ST_OK);
    assert_int_equal(drop(&f, a), QHCA_ST_OK);
    assert_int_equal(drop(&f, b), QHCA_ST_OK);
}

/* What observers show: which queue waits for which shaper, and until when. */
static void looks(void **state)
{
    struct unit *u = *state;
    struct seen s = { 0 };
    struct fix f;
    uint32_t a, b;

    make(&f, u, 1);
    a = shaper(&f, 1000000, 0, QHCA_SHAPER_NONE, 1);
    b = shaper(&f, 5000000000, 64, a, 9);
    assert_int_equal(attach(&f, 0, b), QHCA_ST_OK);
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_SQ, f.q[0].num,
                             seen_start(&s)));
    SEEN(&s, "context.waits", "0");
    assert_null(strstr(s.text, "held_by"));
    post_n(&f, 0, 3);
    world_run(&u->w, MS);
    assert_null(qhca_inspect(u->e, QHCA_OBJ_ETH_SQ, f.q[0].num,
                             seen_start(&s)));
    SEEN(&s, "context.waits", "1");
    SEEN(&s, "context.shaper", "2");
    SEEN(&s, "held_by", "1");
    assert_null(qhca_inspect(u->e, QHCA_OBJ_SHAPER, a, seen_start(&s)));
    SEEN(&s, "context.waits", "1");
    SEEN(&s, "context.frames", "1");
    SEEN(&s, "context.held", "1");
    SEEN(&s, "shapers.0", "2");
    assert_non_null(strstr(s.text, "until"));
    assert_null(qhca_inspect(u->e, QHCA_OBJ_SHAPER, b, seen_start(&s)));
    SEEN(&s, "context.rate", "5000000000");
    SEEN(&s, "context.parent", "1");
    SEEN(&s, "eth_sqs.0", "0");
    SEEN(&s, "held_by", "1");
    assert_null(qhca_inspect_all(u->e, QHCA_OBJ_SHAPER, 0, 9, seen_start(&s)));
    SEEN(&s, "objects.1.weight", "9");
    SEEN(&s, "objects.0.waits", "true");
    seen_start(&s);
    free(s.text);
    unmake(&f);
    assert_int_equal(drop(&f, b), QHCA_ST_OK);
    assert_int_equal(drop(&f, a), QHCA_ST_OK);
}

/* ---- saving and loading, reset ---- */

/* A tree with all there is; what its queues send in two seconds. */
static void tree(struct unit *u, uint64_t sent[SQS])
{
    uint32_t port, node, leaf[3];
    struct fix f;
    unsigned i;

    make(&f, u, 4);
    port = shaper(&f, 8000000, 5000, QHCA_SHAPER_NONE, 1);
    node = shaper(&f, 6000000, 6000, port, 2);
    leaf[0] = shaper(&f, 1000000, 8000, node, 3);
    leaf[1] = shaper(&f, 0, 0, node, 7);
    leaf[2] = shaper(&f, 300000, 6000, port, 1);
    for (i = 0; i < 3; i++) {
        assert_int_equal(attach(&f, i, leaf[i]), QHCA_ST_OK);
    }
    assert_int_equal(attach(&f, 3, port), QHCA_ST_OK);
    pump(&f, 15, 2 * SECOND);
    memcpy(sent, bytes, sizeof(bytes));
    unmake(&f);
    for (i = 0; i < 3; i++) {
        assert_int_equal(drop(&f, leaf[i]), QHCA_ST_OK);
    }
    assert_int_equal(drop(&f, node), QHCA_ST_OK);
    assert_int_equal(drop(&f, port), QHCA_ST_OK);
}

/* Saved and loaded in the middle of everything: nothing changes. */
static void reborn(void **state)
{
    struct unit *u = *state;
    uint64_t sent[SQS], again[SQS], all;

    tree(u, sent);
    all = sent[0] + sent[1] + sent[2] + sent[3];
    expect_rate(all - 5000, 8000000, 2 * SECOND);
    expect_rate(sent[0] - 8000, 1000000, 2 * SECOND);
    expect_rate(sent[2] - 6000, 300000, 2 * SECOND);
    expect_share(sent[0] + sent[1], all - sent[2], 2, 3);
    u->w.reborn = 3;
    tree(u, again);
    assert_true(u->w.births > 100);
    assert_memory_equal(again, sent, sizeof(sent));
    u->w.reborn = 0;
    u->e = u->n->e;
}

/* Numbers that a state may not have; the adapter is reset then. */
static void states(void **state)
{
    struct unit *u = *state;
    struct qhca_shaper *s, was;
    struct fix f;
    uint32_t a, b;
    unsigned i;

    make(&f, u, 1);
    a = shaper(&f, 1000, 1000, QHCA_SHAPER_NONE, 1);
    b = shaper(&f, 0, 0, a, 1);
    assert_int_equal(attach(&f, 0, b), QHCA_ST_OK);
    post_n(&f, 0, 3);
    world_run(&u->w, MS);
    assert_string_equal(node_loads(u->n, &u->e->cfg), "");
    s = qhca_idr_get(&u->e->eth->shapers, a);
    was = *s;
    for (i = 0; i < 7; i++) {
        switch (i) {
        case 0:
            s->rate = QHCA_SHAPER_RATE_MAX + 1;
            break;
        case 1:
            s->burst = QHCA_SHAPER_BURST_MAX + 1;
            break;
        case 2:
            s->turn.weight = 0;
            break;
        case 3:
            s->tokens = 1001 * QHCA_SHAPER_BYTE;
            break;
        case 4:
            s->tokens = INT64_MIN;
            break;
        case 5:
            s->since = UINT64_MAX;
            break;
        case 6:
            s->until = UINT64_MAX;
            break;
        }
        assert_string_not_equal(node_loads(u->n, &u->e->cfg), "");
        *s = was;
    }
    /* a circle */
    s->turn.up = qhca_idr_get(&u->e->eth->shapers, b);
    assert_string_not_equal(node_loads(u->n, &u->e->cfg), "");
    *s = was;
    /* one that waits but is not in the heap */
    s->wait_pos = QHCA_SHAPER_AWAKE;
    assert_string_not_equal(node_loads(u->n, &u->e->cfg), "");
    *s = was;
    assert_string_equal(node_loads(u->n, &u->e->cfg), "");
    unmake(&f);
    assert_int_equal(drop(&f, b), QHCA_ST_OK);
    assert_int_equal(drop(&f, a), QHCA_ST_OK);
}

/* Whatever a state says, a shaper waits no longer than its debt lasts. */
static void loaded_waits(void **state)
{
    struct unit *u = *state;
    uint64_t debt, before;
    struct qhca_shaper *s;
    char why[160] = "";
    struct fix f;
    uint32_t num;
    void *saved;
    unsigned i;
    size_t len;

    make(&f, u, 1);
    num = shaper(&f, 100000, 0, QHCA_SHAPER_NONE, 1);
    assert_int_equal(attach(&f, 0, num), QHCA_ST_OK);
    post_n(&f, 0, 50);
    world_run(&u->w, MS);
    debt = FRAME * 8 * SECOND / 100000;
    for (i = 0; i < 4; i++) {
        s = qhca_idr_get(&u->e->eth->shapers, num);
        assert_int_not_equal(s->wait_pos, QHCA_SHAPER_AWAKE);
        before = s->until;
        switch (i) {
        case 1:                 /* the time is far away */
            s->until = UINT64_C(1) << 61;
            break;
        case 2:                 /* the clock is behind */
            s->until = s->since = UINT64_C(1) << 61;
            break;
        case 3:                 /* there is no debt */
            s->until = UINT64_C(1) << 61;
            s->tokens = 0;
            break;
        }
        assert_true(qhca_save(u->e, &saved, &len));
        assert_true(qhca_load(u->e, saved, len, why, sizeof(why)));
        free(saved);
        s = qhca_idr_get(&u->e->eth->shapers, num);
        assert_int_not_equal(s->wait_pos, QHCA_SHAPER_AWAKE);
        if (i < 2) {
            assert_int_equal(s->until, before);
        }
        assert_in_range(s->until, u->w.now, u->w.now + (i < 3 ? debt : 0));
        forget();
        world_run(&u->w, 3 * debt);
        assert_in_range(frames[0], 2, 4);
    }
    unmake(&f);
    assert_int_equal(drop(&f, num), QHCA_ST_OK);
}

static void reset(void **state)
{
    struct unit *u = *state;
    struct fix f;
    uint32_t a, b;

    make(&f, u, 1);
    b = shaper(&f, 1000, 1000, QHCA_SHAPER_NONE, 1);
    a = shaper(&f, 1000, 1000, b, 1);
    assert_int_equal(attach(&f, 0, a), QHCA_ST_OK);
    post_n(&f, 0, 3);
    world_run(&u->w, MS);
    assert_int_equal(query_sq(&f, 0).waits, 1);
    forget();
    node_flr(u->n);
    assert_int_equal(u->e->eth->shaper_waits.n, 0);
    assert_int_equal(u->e->eth->shapers.used, 0);
    world_run(&u->w, 100 * SECOND);
    assert_int_equal(frames[0], 0);
    gbuf_free(&f.q[0].ring);
    gbuf_free(&f.cq.buf);
}

/* ---- what is refused ---- */

static void refuse(struct fix *f, struct qhca_shaperc c, size_t at)
{
    uint64_t result;

    assert_int_equal(unit_cmd(f->u, QHCA_CMD_CREATE_SHAPER, 0, 0, &c,
                              sizeof(c), &result), QHCA_ST_BAD_PARAM);
    assert_int_equal(result, at);
}

#define AT(field) offsetof(struct qhca_shaperc, field)

static void refused(void **state)
{
    struct unit *u = *state;
    struct qhca_shaperc c;
    struct qhca_eth_qc qc;
    uint32_t way[QHCA_SHAPER_DEPTH_MAX + 1], s, i;
    uint64_t at;
    struct fix f;

    make(&f, u, 1);
    refuse(&f, context(QHCA_SHAPER_RATE_MAX + 1, 0, 0), AT(rate));
    refuse(&f, context(UINT64_MAX, 0, 0), AT(rate));
    refuse(&f, context(1, QHCA_SHAPER_BURST_MAX + 1, 0), AT(burst));
    c = context(1, 0, 0);
    c.weight = 0;
    refuse(&f, c, AT(weight));
    c = context(1, 0, 0);
    c.rsvd0[5] = 1;
    refuse(&f, c, AT(rsvd0));
    c = context(1, 0, 0);
    c.rsvd1[0] = 1;
    refuse(&f, c, AT(rsvd1));
    c = context(1, 0, 77);
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_SHAPER, 0, 0, &c, sizeof(c),
                              &at), QHCA_ST_BAD_OBJ);
    assert_int_equal(at, AT(parent));
    assert_int_equal(attach(&f, 0, 77), QHCA_ST_BAD_OBJ);
    assert_int_equal(attach(&f, 0, UINT32_MAX), QHCA_ST_BAD_OBJ);
    memset(&qc, 0, sizeof(qc));
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_ETH_SQ, f.q[0].num, 2, &qc,
                              sizeof(qc), NULL), QHCA_ST_BAD_PARAM);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_ETH_SQ, 99, 1, &qc,
                              sizeof(qc), NULL), QHCA_ST_BAD_OBJ);

    /* too long a way, and circles */
    for (i = 0; i < QHCA_SHAPER_DEPTH_MAX; i++) {
        way[i] = shaper(&f, 1000, 0, i ? way[i - 1] : QHCA_SHAPER_NONE, 1);
    }
    refuse(&f, context(1, 0, way[i - 1]), AT(parent));
    s = shaper(&f, 1000, 0, QHCA_SHAPER_NONE, 1);
    for (i = 0; i < QHCA_SHAPER_DEPTH_MAX; i++) {
        assert_int_equal(change(&f, way[0], QHCA_SHAPER_M_PARENT,
                                context(0, 0, way[i])), QHCA_ST_BAD_PARAM);
    }
    assert_int_equal(change(&f, way[0], QHCA_SHAPER_M_PARENT,
                            context(0, 0, s)), QHCA_ST_BAD_PARAM);
    assert_int_equal(query(&f, way[0]).parent, QHCA_SHAPER_NONE);
    assert_int_equal(change(&f, way[1], QHCA_SHAPER_M_PARENT,
                            context(0, 0, s)), QHCA_ST_OK);
    assert_int_equal(change(&f, s, 1 << 3, context(0, 0, 0)),
                     QHCA_ST_BAD_PARAM);
    assert_int_equal(change(&f, 200, QHCA_SHAPER_M_RATE, context(0, 0, 0)),
                     QHCA_ST_BAD_OBJ);
    /* a command that fails changes nothing */
    c = context(5, 6, 99);
    assert_int_equal(change(&f, s, QHCA_SHAPER_M_RATE | QHCA_SHAPER_M_PARENT,
                            c), QHCA_ST_BAD_OBJ);
    assert_int_equal(query(&f, s).rate, 1000);
    assert_int_equal(change(&f, s, QHCA_SHAPER_M_WEIGHT,
                            (struct qhca_shaperc){ 0 }), QHCA_ST_BAD_PARAM);
    /* at the end of the longest way */
    assert_int_equal(attach(&f, 0, way[QHCA_SHAPER_DEPTH_MAX - 1]),
                     QHCA_ST_OK);
    post_n(&f, 0, 2);
    world_run(&u->w, SECOND);
    assert_int_equal(frames[0], 1);

    /* as many as there can be */
    for (i = QHCA_SHAPER_DEPTH_MAX + 1; i < u->g.caps.max_shapers; i++) {
        shaper(&f, 0, 0, QHCA_SHAPER_NONE, 1);
    }
    c = context(0, 0, 0);
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_SHAPER, 0, 0, &c, sizeof(c),
                              NULL), QHCA_ST_NO_RESOURCES);
    gbuf_free(&f.q[0].ring);
    gbuf_free(&f.cq.buf);
}

/* Receive queues have none. */
static void receive(void **state)
{
    struct unit *u = *state;
    struct qhca_eth_qc c;
    struct fix f;
    uint64_t at;
    uint32_t s;

    make(&f, u, 0);
    s = shaper(&f, 1000, 0, QHCA_SHAPER_NONE, 1);
    memset(&c, 0, sizeof(c));
    c.buf.form = QHCA_BUF_DIRECT;
    c.buf.addr = 1 << 20;
    c.buf.len = 16;
    c.cqn = f.cq.cqn;
    c.stride = 4;
    c.dbrec = 1 << 20;
    c.shaper = s;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_ETH_RQ, 0, 0, &c, sizeof(c),
                              &at), QHCA_ST_BAD_PARAM);
    assert_int_equal(at, offsetof(struct qhca_eth_qc, shaper));
    unmake(&f);
    assert_int_equal(drop(&f, s), QHCA_ST_OK);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        UNIT(rates),
        UNIT(bursts),
        UNIT(patience),
        UNIT(weights),
        UNIT(members),
        UNIT(levels),
        UNIT(large_sends),
        cmocka_unit_test_setup_teardown(large_sends, super_setup,
                                        unit_teardown),
        UNIT(changes),
        UNIT(wakes_in_order),
        UNIT(moves),
        UNIT(looks),
        UNIT(reborn),
        UNIT(states),
        UNIT(loaded_waits),
        UNIT_HOSTILE(reset),
        UNIT_HOSTILE(refused),
        UNIT(receive),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
