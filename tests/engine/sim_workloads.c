/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Workloads: what runs together in one simulated network. */
#include <string.h>

#include "rule.h"
#include "sim.h"

static struct guest *some_guest(struct sim *s)
{
    return &s->g[rng_below(&s->rng, s->w.nodes)];
}

static void some_pairs(struct sim *s, unsigned pairs, unsigned messages,
                       uint64_t max_msg, bool eager)
{
    while (pairs--) {
        struct guest *a = some_guest(s), *b = some_guest(s);
        struct rc_profile p = {
            .type = QHCA_QPT_RC,
            .messages = (unsigned)rng_range(&s->rng, 1, messages),
            .max_msg = max_msg >= 1 << 20 ?
                       rng_range(&s->rng, max_msg / 4, max_msg) :
                       1 + rng_log(&s->rng, max_msg),
            .eager_recv = eager,
            .plain = rng_pct(&s->rng, 15),
        };

        if (!eager && rng_pct(&s->rng, 40)) {
            p.max_msg = 1 + rng_log(&s->rng, 16384);
            (rng_pct(&s->rng, 50) ? rc_srq_group : rc_xrc_group)
                (s, a, b, (unsigned)rng_range(&s->rng, 1, 3), &p);
        } else {
            rc_pair(s, a, b, &p);
        }
    }
}

/* All kinds of RC traffic, without loss. */
static void build_rc(struct sim *s)
{
    s->attackable = true;
    wire_random(&s->w.wire, &s->rng, false);
    some_pairs(s, (unsigned)rng_range(&s->rng, 1, 6), 120, 60000, false);
}

/* Receives are always posted, so no RNR NAK may be sent. */
static void build_ready(struct sim *s)
{
    wire_random(&s->w.wire, &s->rng, false);
    s->no_rnr = true;
    some_pairs(s, (unsigned)rng_range(&s->rng, 1, 4), 150, 20000, true);
}

/* Unplug the cable and plug it in again. */
static void flap(void *opaque, uint64_t arg)
{
    struct sim *s = opaque;
    unsigned node = (unsigned)(arg >> 32) % s->w.nodes;
    bool down = arg & 1;

    node_set_link(&s->w.node[node], !down);
    if (down) {                 /* shorter than any retry limit */
        world_call(&s->w, s->w.now + rng_below(&s->rng, 2000000), flap, s,
                   arg & ~1ULL);
    }
}

static void build_lossy(struct sim *s)
{
    unsigned flaps = rng_pct(&s->rng, 25) ?
                     (unsigned)rng_range(&s->rng, 1, 5) : 0;

    s->attackable = true;
    s->lossy = true;
    wire_random(&s->w.wire, &s->rng, true);
    while (flaps--) {
        world_call(&s->w, rng_log(&s->rng, 10000000), flap, s,
                   rng_u64(&s->rng) | 1);
    }
    some_pairs(s, (unsigned)rng_range(&s->rng, 1, 5), 80, 60000, false);
}

/*
 * The wire is good, but injected faults affect packets as a bad wire does:
 * whatever holds with loss must hold.  Losses are random: if every 97th packet
 * were lost, it could be the last of a 97-packet message each time it is
 * retransmitted.
 */
static void build_faults(struct sim *s)
{
    static const struct {
        const char *opcode;     /* or NULL */
        struct qhca_fault_rule rule;
    } rules[] = {
        { NULL, { .action = QHCA_FLT_DROP, .fields = QHCA_FLT_CHANCE,
            .chance = 10000 } },
        { "request", { .action = QHCA_FLT_DROP, .fields = QHCA_FLT_CHANCE,
            .chance = 10000 } },
        { "response", { .action = QHCA_FLT_DROP, .fields = QHCA_FLT_CHANCE,
            .chance = 20000 } },
        { NULL, { .action = QHCA_FLT_CORRUPT, .fields = QHCA_FLT_CHANCE,
            .chance = 10000 } },
        { NULL, { .action = QHCA_FLT_CORRUPT_ICRC, .fields = QHCA_FLT_CHANCE |
            QHCA_FLT_DIRECTION, .chance = 5000, .direction = QHCA_FLT_IN } },
        { NULL, { .action = QHCA_FLT_CORRUPT, .fields = QHCA_FLT_CHANCE |
            QHCA_FLT_DIRECTION, .chance = 5000, .direction = QHCA_FLT_IN |
            QHCA_FLT_OUT } },
        { NULL, { .action = QHCA_FLT_DUPLICATE, .fields = QHCA_FLT_CHANCE,
            .chance = 20000 } },
        { NULL, { .action = QHCA_FLT_DUPLICATE, .fields = QHCA_FLT_PACKETS,
            .packets = 3, .every = 41 } },
        { NULL, { .action = QHCA_FLT_REORDER, .fields = QHCA_FLT_CHANCE |
            QHCA_FLT_NS, .chance = 20000, .ns = 100000 } },
        { NULL, { .action = QHCA_FLT_REORDER, .fields = QHCA_FLT_PACKETS |
            QHCA_FLT_NS | QHCA_FLT_DIRECTION, .packets = 3, .every = 23,
            .ns = 50000, .direction = QHCA_FLT_IN } },
        { NULL, { .action = QHCA_FLT_DELAY, .fields = QHCA_FLT_NS |
            QHCA_FLT_CHANCE, .ns = 30000, .chance = 50000 } },
        { NULL, { .action = QHCA_FLT_DELAY, .fields = QHCA_FLT_NS |
            QHCA_FLT_DIRECTION, .ns = 200000, .every = 151,
            .direction = QHCA_FLT_IN } },
        { NULL, { .action = QHCA_FLT_NO_ACK, .fields = QHCA_FLT_CHANCE,
            .chance = 20000 } },
        { NULL, { .action = QHCA_FLT_RNR, .every = 29 } },
        { NULL, { .action = QHCA_FLT_HOLD_INTERRUPT, .fields = QHCA_FLT_NS,
            .every = 7, .ns = 20000 } },
        { NULL, { .action = QHCA_FLT_LINK_DOWN, .fields = QHCA_FLT_AT |
            QHCA_FLT_NS | QHCA_FLT_COUNT, .at = QHCA_FLT_AT_PACKET, .nth = 50,
            .ns = 1000000, .count = 2 } },
    };
    unsigned i, n, k;

    s->lossy = true;
    s->injects = true;
    wire_random(&s->w.wire, &s->rng, false);
    for (i = 0; i < s->w.nodes; i++) {
        CHECK(!qhca_fault_seed(s->w.node[i].e, rng_u64(&s->rng)),
              "no memory");
        s->g[i].irqs_held = true;
        for (n = (unsigned)rng_range(&s->rng, 0, 6); n; n--) {
            k = (unsigned)rng_below(&s->rng, sizeof(rules) / sizeof(rules[0]));
            rule_add(s->w.node[i].e, rules[k].opcode ?
                     rule_for(rules[k].opcode, rules[k].rule) : rules[k].rule);
        }
    }
    some_pairs(s, (unsigned)rng_range(&s->rng, 1, 5), 80, 60000, false);
}

/*
 * ACKs arrive later than the timer expires: everything is retransmitted,
 * arrives several times, and is executed once.
 */
static void build_late(struct sim *s)
{
    s->attackable = true;
    s->lossy = rng_pct(&s->rng, 30);
    wire_random(&s->w.wire, &s->rng, s->lossy);
    s->w.wire.speed_mbps = 0;
    s->w.wire.drop /= 4;
    s->w.wire.corrupt = s->w.wire.truncate = 0;
    s->w.wire.latency_ns = rng_range(&s->rng, 50000, 250000);
    s->timeout = (uint8_t)rng_range(&s->rng, 5, 7);     /* 131..524 us */
    some_pairs(s, (unsigned)rng_range(&s->rng, 1, 4), 60, 30000, false);
}

/*
 * One adapter is far slower than its peer, with room for only a few frames:
 * that costs time, not the connection.  With one packet of each QP in flight it
 * keeps up easily.
 */
static void build_slow(struct sim *s)
{
    struct node *n = &s->w.node[1];
    unsigned pairs = 8;

    s->lossy = true;            /* frames are dropped for lack of room */
    wire_perfect(&s->w.wire);
    s->timeout = (uint8_t)rng_range(&s->rng, 10, 12);   /* 4..17 ms */
    n->frame_ns = (4096ull << s->timeout) / rng_range(&s->rng, 60, 200);
    n->rx_room = rng_pct(&s->rng, 40) ? 0 :
                 (unsigned)rng_range(&s->rng, 24, 128);
    while (pairs--) {
        struct rc_profile p = {
            .type = QHCA_QPT_RC,
            .messages = 12,
            .max_msg = 65536,
            .eager_recv = true,
        };

        rc_pair(s, &s->g[0], &s->g[1], &p);
    }
}

/* Few messages of several megabytes. */
static void build_big(struct sim *s)
{
    bool loss = rng_pct(&s->rng, 50);

    s->attackable = true;
    s->lossy = loss;
    wire_random(&s->w.wire, &s->rng, loss);
    some_pairs(s, (unsigned)rng_range(&s->rng, 1, 2), 6, 4 << 20, false);
}

static void build_ud(struct sim *s)
{
    bool loss = rng_pct(&s->rng, 50);

    s->lossy = loss;
    wire_random(&s->w.wire, &s->rng, loss);
    ud_group(s, (unsigned)rng_range(&s->rng, 1, 3), 150,
             !loss && rng_pct(&s->rng, 50));
}

/* Everything at once. */
static void build_mixed(struct sim *s)
{
    bool loss = rng_pct(&s->rng, 70);

    s->lossy = loss;
    wire_random(&s->w.wire, &s->rng, loss);
    ud_group(s, (unsigned)rng_range(&s->rng, 1, 2), 60, false);
    some_pairs(s, (unsigned)rng_range(&s->rng, 1, 12), 40, 100000, false);
}

/* Scripted errors, while RC traffic must not notice. */
static void build_err(struct sim *s)
{
    wire_random(&s->w.wire, &s->rng, false);
    some_pairs(s, (unsigned)rng_range(&s->rng, 0, 3), 100, 30000, false);
}

/* Let fault injection lose, double and delay Ethernet frames, too. */
static void frame_faults(struct sim *s)
{
#define CHANCE(pct) .fields = QHCA_FLT_AT | QHCA_FLT_CHANCE |            \
                              QHCA_FLT_DIRECTION,                        \
                    .at = QHCA_FLT_AT_FRAME, .chance = (pct) * 10000
    static const struct qhca_fault_rule rules[] = {
        RULE(DROP, CHANCE(2)),
        RULE(DUPLICATE, CHANCE(2)),
        RULE(DELAY, CHANCE(4), .ns = 30000),
        RULE(REORDER, CHANCE(4), .ns = 100000),
    };
#undef CHANCE
    unsigned i, n;

    for (i = 0; i < s->w.nodes; i++) {
        n = (unsigned)rng_range(&s->rng, 0, 4);
        if (!n) {
            continue;
        }
        s->injects = true;
        CHECK(!qhca_fault_seed(s->w.node[i].e, rng_u64(&s->rng)),
              "no memory");
        for (; n; n--) {
            struct qhca_fault_rule f = rules[rng_below(&s->rng, 4)];

            s->frame_faults |= 1u << f.action;
            f.fields |= f.ns ? QHCA_FLT_NS : 0;
            f.direction = (uint8_t)rng_range(&s->rng, QHCA_FLT_OUT,
                                             QHCA_FLT_OUT | QHCA_FLT_IN);
            rule_add(s->w.node[i].e, f);
        }
    }
}

/*
 * Ethernet frames and RC traffic share the wire, which may lose, double and
 * delay frames, but does not damage them: only TCP would notice.
 */
static void build_eth(struct sim *s)
{
    s->lossy = rng_pct(&s->rng, 30);
    wire_random(&s->w.wire, &s->rng, s->lossy);
    s->w.wire.corrupt = s->w.wire.truncate = 0;
    if (s->lossy && rng_pct(&s->rng, 50)) {
        frame_faults(s);
    }
    eth_group(s, 300);
    some_pairs(s, (unsigned)rng_range(&s->rng, 0, 3), 50, 30000, false);
}

/* UC: in order, but losses are not repaired. */
static void build_uc(struct sim *s)
{
    unsigned pairs = (unsigned)rng_range(&s->rng, 1, 4);
    bool eager;

    s->attackable = true;
    s->lossy = rng_pct(&s->rng, 60);
    eager = !s->lossy && rng_pct(&s->rng, 50);
    wire_random(&s->w.wire, &s->rng, s->lossy);
    s->w.wire.dup = s->w.wire.reorder = 0;      /* UC does not notice these */
    while (pairs--) {
        struct rc_profile p = {
            .type = QHCA_QPT_UC,
            .messages = (unsigned)rng_range(&s->rng, 1, 100),
            .max_msg = 1 + rng_log(&s->rng, 40000),
            .eager_recv = eager,
        };

        rc_pair(s, some_guest(s), some_guest(s), &p);
    }
}

/* Pages come when used, and go at any time. */
static void build_odp(struct sim *s)
{
    bool loss = rng_pct(&s->rng, 40);
    unsigned uc = (unsigned)rng_range(&s->rng, 0, 1);

    s->attackable = true;
    s->lossy = loss;
    wire_random(&s->w.wire, &s->rng, loss);
    s->odp_pct = (unsigned)rng_range(&s->rng, 30, 100);
    if (rng_pct(&s->rng, 40)) { /* peers run out of retries */
        s->w.wire.speed_mbps = 0;
        s->timeout = (uint8_t)rng_range(&s->rng, 5, 7);
    }
    some_pairs(s, (unsigned)rng_range(&s->rng, 1, 5), 60, 60000, false);
    if (!loss) {
        ud_group(s, 1, 30, false);
        while (uc--) {
            struct rc_profile p = {
                .type = QHCA_QPT_UC, .messages = 30,
                .max_msg = 1 + rng_log(&s->rng, 20000), .eager_recv = true,
            };

            rc_pair(s, some_guest(s), some_guest(s), &p);
        }
    }
    odp_start(s);
}

/* Tag matching, with RC traffic. */
static void build_tm(struct sim *s)
{
    s->lossy = rng_pct(&s->rng, 60);
    wire_random(&s->w.wire, &s->rng, s->lossy);
    some_pairs(s, (unsigned)rng_range(&s->rng, 0, 2), 60, 20000, false);
}

/* Accesses to guest memory fail at random. */
static void build_chaos(struct sim *s)
{
    s->hostile = true;
    s->lossy = rng_pct(&s->rng, 50);
    wire_random(&s->w.wire, &s->rng, s->lossy);
}

/* Scripted frames and groups, with RC traffic. */
static void build_raw(struct sim *s)
{
    bool loss = rng_pct(&s->rng, 50);

    s->lossy = loss;
    wire_random(&s->w.wire, &s->rng, loss);
    some_pairs(s, (unsigned)rng_range(&s->rng, 0, 2), 40, 20000, false);
}

/* What is done, and its outcome, do not depend on time: see --compare. */
static void build_plan(struct sim *s)
{
    s->attackable = true;
    s->lossy = rng_pct(&s->rng, 50);
    wire_random(&s->w.wire, &s->rng, s->lossy);
    if (rng_pct(&s->rng, 30)) {
        s->odp_pct = (unsigned)rng_range(&s->rng, 30, 100);
    }
    plan_pairs(s, (unsigned)rng_range(&s->rng, 1, 6));
    if (s->odp_pct) {
        odp_start(s);
    }
}

const struct sim_workload sim_workloads[] = {
    { "rc", "RC, all operations, a wire that loses nothing",
      build_rc, NULL, false },
    { "ready", "the same, and receives are always posted",
      build_ready, NULL, false },
    { "lossy", "RC on a wire that loses, doubles, delays, spoils",
      build_lossy, NULL, false },
    { "faults", "RC, and injected faults in the adapters", build_faults,
      NULL, false },
    { "late", "RC, timers shorter than the round trip",
      build_late, NULL, false },
    { "slow", "RC with a peer that is slow and loses what it has no room for",
      build_slow, NULL, false },
    { "big", "messages of megabytes", build_big, NULL, false },
    { "ud", "datagrams, on good and bad wires", build_ud, NULL, false },
    { "eth", "Ethernet frames beside RC", build_eth, NULL, false },
    { "uc", "UC pairs", build_uc, NULL, false },
    { "odp", "regions whose pages come and go", build_odp, NULL, false },
    { "raw", "raw packets and multicast groups", build_raw, raw_script, false },
    { "tm", "tag matching as an MPI library uses it",
      build_tm, tm_script, false },
    { "chaos", "guest memory that fails at random", build_chaos,
      chaos_script, false },
    { "mixed", "many QPs of both kinds", build_mixed, NULL, false },
    { "err", "errors on purpose beside good traffic", build_err,
      err_script, true },
    { "plan", "work that is planned: the same whatever carries it",
      build_plan, NULL, false },
    { NULL, NULL, NULL, NULL, false }
};
