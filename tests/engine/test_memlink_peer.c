/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: peers that do not receive, that break the rules, that are
 * reset; and links that end while QPs wait for them.
 */
#include "memlinkfix.h"
#include "reborn.h"

#define LEN 8192u               /* of the message that is tampered with */

static unsigned cuts;

static void count_cut(void *opaque, unsigned id, const char *why)
{
    (void)opaque;
    (void)id;
    assert_non_null(why);
    cuts++;
}

/* ---- peers that do not receive ---- */

/* Fill the ring of side @from until its QP, of type UC, waits. */
#define FILL 1600u              /* messages */

static struct fix *fill(unsigned from)
{
    struct fix *f = fix_new(QHCA_QPT_UC, true);
    struct qhca_memlink *l;
    unsigned i;

    fix_go_up(f);
    l = fix_link(f, from, !from);
    fix_doze(f, !from, from);
    for (i = 0; i < FILL; i++) {
        fix_write(f, from, i, i % 900 * MTU, MTU);
    }
    fix_run(f, 1 * MS);
    assert_true(l->tx.ring->prod - l->tx.ring->cons >
                QHCA_SHRING_DATA - 2 * QHCA_MEMLINK_ROOM);
    assert_false(qhca_list_empty(&l->waiting));
    return f;
}

/* All messages of fill() were sent. */
static void all_sent(struct fix *f, unsigned from)
{
    unsigned i;

    for (i = 0; i < FILL; i++) {
        fix_cqe(f, from, i, QHCA_WC_SUCCESS);
    }
    fix_no_cqe(f, from);
}

/* An RC QP pair between two sides, to check that they continue. */
static void others_go_on(struct fix *f, unsigned i, unsigned j)
{
    uint64_t at = 200000 + 20000 * i + 5;
    struct gqp qp[2];

    fix_qp(f, i, QHCA_QPT_RC, &qp[0]);
    fix_qp(f, j, QHCA_QPT_RC, &qp[1]);
    fix_connect(f, i, &qp[0], j, &qp[1]);
    fix_post_on(f, i, &qp[0], (struct gwr){
                    .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 0x999,
                    .remote_addr = IOVA + at, .rkey = f->s[j].mr.key },
                at, 9000);
    fix_run(f, 1 * MS);
    fix_cqe(f, i, 0x999, QHCA_WC_SUCCESS);
    fix_has(f, j, i, at, 9000);
    assert_int_equal(gqp_destroy(&qp[0]), QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&qp[1]), QHCA_ST_OK);
}

static void ring_bell(void *opaque, uint64_t times)
{
    struct fix *f = opaque;

    if (fix_link(f, 0, 1)) {
        node_memlink_bell(f->s[0].n, fix_link(f, 0, 1)->id);
    }
    if (times) {
        world_call(&f->w, f->w.now + 100 * MS, ring_bell, f, times - 1);
    }
}

/*
 * Others continue; after a while it is cut off, even if it rings, and the wire
 * is used.
 */
static void never_receives(void **state)
{
    struct qhca_qpc c;
    struct fix *f;
    unsigned rings, i;

    (void)state;
    for (rings = 0; rings < 2; rings++) {
        f = fill(0);
        if (rings) {
            ring_bell(f, 100);
        }
        for (i = 0; i < FILL && gcq_poll(&f->s[0].cq, &f->cqe); i++) {
        }
        assert_true(i > 500 && i < FILL);
        others_go_on(f, 0, 2);
        others_go_on(f, 2, 1);
        world_memlink_down(&f->w, 0, 2);
        others_go_on(f, 0, 2);
        assert_int_equal(f->w.cuts, 0);
        fix_run(f, 900 * MS);
        assert_int_equal(f->w.cuts, 0);
        fix_no_cqe(f, 0);
        fix_run(f, 200 * MS);
        assert_int_equal(f->w.cuts, 1);
        assert_null(fix_link(f, 0, 1));
        f->packets = 0;
        fix_run(f, 100 * MS);
        for (; i < FILL; i++) {
            fix_cqe(f, 0, i, QHCA_WC_SUCCESS);
        }
        guest_query(&f->s[0].g, QHCA_CMD_QUERY_QP, f->s[0].qp.qpn, &c,
                    sizeof(c));
        assert_int_equal(c.state, QHCA_QPS_RTS);
        others_go_on(f, 0, 1);
        fix_free(f);
    }
}

/* One that receives, but slowly, is not cut off. */
static void receives_slowly(void **state)
{
    struct fix *f = fill(0);
    struct qhca_shring *r = world_memlink_ring(&f->w, 0, 1);
    unsigned i;

    (void)state;
    for (i = 0; i < 5; i++) {
        struct qhca_shring_record *rec = (void *)&r->data[r->cons];

        fix_run(f, 700 * MS);
        /* as if the peer had consumed one */
        r->cons += rec->len;
        fix_link(f, 1, 0)->rx.cons = r->cons;
    }
    assert_int_equal(f->w.cuts, 0);
    fix_look(f, 1, 0);
    fix_run(f, 1 * MS);
    all_sent(f, 0);
    assert_int_equal(f->packets, 0);
    fix_free(f);
}

/* It was cut off, and its environment does not detach it for long. */
static void cut(void **state)
{
    struct fix *f = fill(0);

    (void)state;
    f->s[0].e->ops.memlink_cut = count_cut;
    cuts = 0;
    qhca_memlink_cut(f->s[0].e, fix_link(f, 0, 1), "test");
    qhca_memlink_cut(f->s[0].e, fix_link(f, 0, 1), "again");
    assert_int_equal(cuts, 1);
    fix_run(f, 10 * MS);
    all_sent(f, 0);
    assert_true(f->packets > 100);
    assert_non_null(fix_link(f, 0, 1));
    fix_free(f);
}

/* The link is taken away while a QP waits for it. */
static void detached(void **state)
{
    struct fix *f = fill(0);

    (void)state;
    world_memlink_down(&f->w, 0, 1);
    fix_run(f, 10 * MS);
    all_sent(f, 0);
    assert_true(f->packets > 100);
    assert_int_equal(f->w.cuts, 0);
    /* UC: what was in the ring is lost, and the message that had begun */
    fix_has(f, 1, 0, 700 * MTU - MTU, MTU);
    world_memlink_up(&f->w, 0, 1);
    fix_run(f, 1 * MS);
    fix_go_up(f);
    fix_free(f);
}

/* Saved and loaded while a QP waits: the new adapter has no links. */
static void saved(void **state)
{
    struct fix *f = fill(0);
    const struct qhca_ops ops = f->s[0].e->ops;

    (void)state;
    node_reborn(f->s[0].n, &ops);
    f->s[0].e = f->s[0].n->e;
    assert_null(fix_link(f, 0, 1));
    fix_run(f, 10 * MS);
    all_sent(f, 0);
    assert_true(f->packets > 100);
    fix_free(f);
}

/* The adapter that was saved continues as well. */
static void saved_only(void **state)
{
    struct fix *f = fill(0);
    struct qhca_config cfg = f->s[0].e->cfg;

    (void)state;
    assert_string_equal(node_loads(f->s[0].n, &cfg), "");
    fix_run(f, 1 * MS);
    assert_int_equal(f->packets, 0);
    fix_look(f, 1, 0);
    fix_run(f, 1 * MS);
    all_sent(f, 0);
    assert_int_equal(f->packets, 0);
    fix_free(f);
}

/* An adapter that is freed requests nothing any more, though a QP waits. */
static void freed_meanwhile(void **state)
{
    static struct fix *f;       /* its software stays: it has no adapter */

    (void)state;
    f = fill(0);
    assert_false(f->s[0].n->kicked);
    qhca_free(f->s[0].e);
    assert_false(f->s[0].n->kicked);
}

/* A QP that waits is destroyed, or its adapter is reset: no QP waits. */
static void gone_meanwhile(void **state)
{
    struct fix *f;
    unsigned how;

    (void)state;
    for (how = 0; how < 2; how++) {
        f = fill(0);
        if (how) {
            node_flr(f->s[0].n);
        } else {
            assert_int_equal(gqp_destroy(&f->s[0].qp), QHCA_ST_OK);
            f->s[0].qp.qpn = 0;
        }
        assert_true(qhca_list_empty(&fix_link(f, 0, 1)->waiting));
        assert_true(world_settle(&f->w, 60000 * MS));
        assert_int_equal(f->w.cuts, 0);
        fix_drop(f);
    }
}

/*
 * The last ACK of a QP that is destroyed finds a ring that is full for all
 * others, and its message is complete for the peer.
 */
static void last_ack(void **state)
{
    struct fix *f = fill(1);
    struct gqp qp[2];
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        fix_qp(f, i, QHCA_QPT_RC, &qp[i]);
    }
    fix_connect(f, 0, &qp[0], 1, &qp[1]);
    assert_true(gqp_post_recv(&qp[1], 5, &(struct qhca_sge){
                    IOVA, 100, f->s[1].mr.key }, 1));
    fix_post_on(f, 0, &qp[0], (struct gwr){ .opcode = QHCA_WQE_SEND,
                                            .wr_id = 6 }, 0, 100);
    for (i = 0; gcq_poll(&f->s[1].cq, &f->cqe); i++) {
    }
    fix_run(f, 100 * US);
    fix_cqe(f, 1, 5, QHCA_WC_SUCCESS);
    fix_no_cqe(f, 0);
    assert_int_equal(gqp_destroy(&qp[1]), QHCA_ST_OK);
    fix_no_cqe(f, 0);
    assert_int_equal(f->packets, 0);
    fix_look(f, 0, 1);
    fix_cqe(f, 0, 6, QHCA_WC_SUCCESS);
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_RETRANSMITS), 0);
    assert_int_equal(gqp_destroy(&qp[0]), QHCA_ST_OK);
    fix_free(f);
}

/* A peer that was reset drops what comes, and its ring does not fill. */
static void reset_peer(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct qhca_shring *r;

    (void)state;
    fix_go_up(f);
    fix_doze(f, 1, 0);
    fix_write(f, 0, 1, 0, LEN);
    fix_run(f, 10 * US);
    r = world_memlink_ring(&f->w, 0, 1);
    assert_true(r->prod != r->cons);
    node_flr(f->s[1].n);
    fix_look(f, 1, 0);
    assert_int_equal(r->prod, r->cons);
    fix_has(f, 1, 1, 0, LEN);
    assert_int_equal(f->s[1].n->mem.faults, 0);
    /* the sender has lost its peer, as on the wire */
    assert_true(r->refuses);
    fix_run(f, 10000 * MS);
    fix_cqe(f, 0, 1, QHCA_WC_RETRY_EXC_ERR);
    assert_int_equal(f->w.cuts, 0);
    fix_drop(f);
}

/* ---- a peer that breaks the rules ---- */

#define REGION 65536u

/* The test is side 1's end of a link; its region ends where it ends. */
struct hostile {
    struct fix *f;
    struct qhca_shring *tx, *rx;        /* as side 0 knows them */
    uint8_t *region;
    unsigned id;
    /* a correct record: part of a WRITE to side 0, next in sequence */
    struct qhca_shring_record rec;
    struct qhca_shring_seg seg[QHCA_MEMLINK_SEGS + 2];
};

static void attach(struct hostile *h)
{
    struct qhca_memlink_region r = { h->region, REGION };
    struct qhca_memlink_config c = {
        .token = 1, .tx = h->tx, .rx = h->rx, .region = &r, .regions = 1,
    };

    memset(h->tx, 0, sizeof(*h->tx));
    memset(h->rx, 0, sizeof(*h->rx));
    memcpy(c.mac, h->f->s[1].n->mac, 6);
    h->id = qhca_memlink_attach(h->f->s[0].e, &c);
    assert_true(h->id);
    cuts = 0;
}

static void hostile_new(struct hostile *h)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct qhca_shring *r;

    memset(h, 0, sizeof(*h));
    h->f = f;
    fix_go_up(f);
    /* what an honest peer would send */
    fix_doze(f, 0, 1);
    r = world_memlink_ring(&f->w, 1, 0);
    fix_write(f, 1, 1, 0, LEN);
    fix_run(f, 10 * US);
    memcpy(&h->rec, &r->data[r->cons], sizeof(h->rec));
    assert_int_equal(h->rec.state, QHCA_SHRING_REFS);
    assert_int_equal(h->rec.packets, LEN / MTU);
    world_memlink_down(&f->w, 0, 1);
    f->s[0].e->ops.memlink_cut = count_cut;
    h->tx = aligned_alloc(4096, sizeof(*h->tx));
    h->rx = aligned_alloc(4096, sizeof(*h->rx));
    h->region = malloc(REGION);
    pattern_bytes(2, 0, h->region, REGION);
    attach(h);
}

static void hostile_free(struct hostile *h)
{
    qhca_memlink_detach(h->f->s[0].e, h->id);
    free(h->tx);
    free(h->rx);
    free(h->region);
    fix_drop(h->f);
}

/* Send @rec with @segs segments, or @body bytes of payload; side 0 receives. */
static void put(struct hostile *h, struct qhca_shring_record rec,
                uint32_t body)
{
    struct qhca_shring_record *at;

    at = (void *)&h->rx->data[h->rx->prod % QHCA_SHRING_DATA];
    memcpy(at, &rec, sizeof(rec));
    memcpy(at + 1, h->seg, body < sizeof(h->seg) ? body : sizeof(h->seg));
    if (!rec.len) {
        at->len = ((uint32_t)sizeof(rec) + body + 63) & ~63u;
    }
    h->rx->prod += ((uint32_t)sizeof(rec) + body + 63) & ~63u;
    node_memlink_bell(h->f->s[0].n, h->id);
    fix_run(h->f, 10 * US);
}

/* The segments of a correct record: two. */
static void segs_of(struct hostile *h)
{
    h->rec.len = 0;
    h->rec.segs = 2;
    h->seg[0] = (struct qhca_shring_seg){ 0, 5000, 0 };
    h->seg[1] = (struct qhca_shring_seg){ 5000, LEN - 5000, 0 };
}

static void break_rec(struct hostile *h, unsigned how,
                      struct qhca_shring_record *rec)
{
    unsigned i;

    switch (how) {
    case 0:
        rec->head = 13;
        break;
    case 1:
        rec->head = QHCA_SHRING_HEAD_MAX + 1;
        break;
    case 2:
        rec->head = 0xffff;
        break;
    case 3:
        rec->head = 0;
        break;
    case 4:
        rec->packets = 0;
        break;
    case 5:
        rec->packets = QHCA_MEMLINK_PACKETS + 1;
        break;
    case 6:
        rec->state = QHCA_SHRING_INLINE;    /* longer than the record */
        break;
    case 7:
        rec->state = QHCA_SHRING_INLINE;
        rec->payload = 0xffffffff;
        break;
    case 8:
        rec->segs = 0;
        break;
    case 9:
        rec->segs = QHCA_MEMLINK_SEGS + 1;
        for (i = 0; i < rec->segs; i++) {
            h->seg[i] = (struct qhca_shring_seg){ i, 1, 0 };
        }
        break;
    case 10:
        rec->segs = 5;          /* in a record that ends after four */
        h->seg[2] = h->seg[3] = h->seg[0];
        break;
    case 11:
        h->seg[1].region = 1;
        break;
    case 12:
        h->seg[0].region = 0xffffffff;
        break;
    case 13:
        h->seg[1].off = REGION + 1;
        break;
    case 14:
        h->seg[1].off = REGION - h->seg[1].len + 1;
        break;
    case 15:
        h->seg[1].off = UINT64_MAX - 10;
        break;
    case 16:
        h->seg[1].len = 0;
        break;
    case 17:
        h->seg[1].len--;        /* less than the payload in all */
        break;
    case 18:
        h->seg[1].len++;        /* more */
        break;
    case 19:
        h->seg[0].len = 0xffffffff;
        break;
    case 20:
        rec->payload++;
        break;
    case 21:
        rec->payload = 0;
        break;
    case 22:
        rec->state = QHCA_SHRING_DONE;
        break;
    case 23:
        rec->state = 77;
        break;
    case 24:
        rec->len = 64;
        break;
    case 25:
        rec->len = 0x10000;
        break;
    case 26:
        rec->segs = 3;
        h->seg[2] = h->seg[1];
        h->seg[1].len = 0;      /* right in all */
        break;
    }
}

/* The link is cut, and nothing else is harmed. */
static void malformed(void **state)
{
    struct hostile h;
    unsigned how;

    (void)state;
    hostile_new(&h);
    for (how = 0; how < 27; how++) {
        struct qhca_shring_record rec;

        segs_of(&h);
        rec = h.rec;
        break_rec(&h, how, &rec);
        put(&h, rec, (how == 9 ? rec.segs : 4) * sizeof(h.seg[0]));
        if (cuts != 1) {
            fail_msg("malformed record %u: %u cuts", how, cuts);
        }
        fix_has(h.f, 0, 0, 0, LEN);
        /* nothing is received from it any more, nor sent to it */
        put(&h, h.rec, 2 * sizeof(h.seg[0]));
        assert_int_equal(cuts, 1);
        fix_has(h.f, 0, 0, 0, LEN);
        assert_int_equal(h.tx->prod, 0);
        assert_int_equal(fix_link(h.f, 0, 2)->dead, false);
        qhca_memlink_detach(h.f->s[0].e, h.id);
        attach(&h);
    }
    /* and the one that was tampered with is correct */
    segs_of(&h);
    put(&h, h.rec, 2 * sizeof(h.seg[0]));
    assert_int_equal(cuts, 0);
    fix_has(h.f, 0, 1, 0, LEN);
    hostile_free(&h);
}

/* A correct record that is not a correct packet is counted, as on the wire. */
static void malformed_packet(void **state)
{
    struct hostile h;
    unsigned how, bth = 14 + 20 + 8;
    uint64_t before;

    (void)state;
    hostile_new(&h);
    for (how = 0; how < 14; how++) {
        struct qhca_shring_record rec;
        uint32_t segs = 2;

        segs_of(&h);
        rec = h.rec;
        switch (how) {
        case 0:
            rec.heads[bth] = 0x1f;              /* no such operation */
            break;
        case 1:
            rec.heads[bth] = 0x64;              /* datagrams are alone */
            break;
        case 2:
            rec.heads[bth] = 0x0c;              /* nor has a READ payload */
            break;
        case 3:
            rec.heads[bth + 1] |= 0x10;         /* pad */
            break;
        case 4:
            rec.mtu = 1000;
            break;
        case 5:
            rec.mtu = 0;
            break;
        case 6:
            rec.mtu = 4096;                     /* fewer packets */
            break;
        case 7:
            rec.mtu = 512;                      /* more */
            break;
        case 8:
            rec.packets = 1;                    /* too much for one */
            break;
        case 9:
            rec.heads[36]++;                    /* not RoCE's port */
            break;
        case 10:
            rec.heads[14] = 0x46;               /* IP options */
            break;
        case 11:
            rec.heads[17] += 4;                 /* longer than it is */
            break;
        case 12:
            rec.head -= 4;
            break;
        case 13:
            rec.head = 14;
            break;
        }
        before = fix_stat(h.f, 0, QHCA_STAT_ROCE_RX_MALFORMED);
        put(&h, rec, segs * sizeof(h.seg[0]));
        assert_int_equal(cuts, 0);
        if (fix_stat(h.f, 0, QHCA_STAT_ROCE_RX_MALFORMED) != before + 1) {
            fail_msg("packet %u is not malformed", how);
        }
        fix_has(h.f, 0, 0, 0, LEN);
    }
    segs_of(&h);
    put(&h, h.rec, 2 * sizeof(h.seg[0]));
    assert_int_equal(cuts, 0);
    fix_has(h.f, 0, 1, 0, LEN);
    hostile_free(&h);
}

/* Segments of any length, and one payload for each way to cut them. */
static void scattered(void **state)
{
    struct hostile h;
    struct rng r;
    uint32_t left, n, at;

    (void)state;
    hostile_new(&h);
    rng_init(&r, 3);
    segs_of(&h);
    for (n = 0, left = LEN, at = 0; left; n++) {
        uint32_t len = n < QHCA_MEMLINK_SEGS - 1 ?
                       1 + (uint32_t)rng_below(&r, 100) : left;

        len = len < left ? len : left;
        h.seg[n] = (struct qhca_shring_seg){ at, len, 0 };
        at += len;
        left -= len;
    }
    h.rec.segs = (uint16_t)n;
    put(&h, h.rec, n * sizeof(h.seg[0]));
    assert_int_equal(cuts, 0);
    fix_has(h.f, 0, 1, 0, LEN);
    hostile_free(&h);
}

/* Its headers are what they were when they were checked. */
static struct hostile *flipped;

static void flip(void *opaque, uint64_t addr, size_t len, bool write)
{
    (void)opaque;
    (void)addr;
    (void)len;
    if (flipped && write) {
        struct qhca_shring_record *rec = (void *)flipped->rx->data;
        struct qhca_shring_seg *seg = (void *)(rec + 1);

        memset(rec->heads, 0xff, sizeof(rec->heads));
        rec->payload = rec->len = 0xfffffff0;
        rec->packets = rec->segs = rec->head = rec->mtu = 0xffff;
        memset(seg, 0xff, 2 * sizeof(*seg));
        flipped->rx->cons = 0x12345678;
    }
}

static void changed_meanwhile(void **state)
{
    struct hostile h;

    (void)state;
    hostile_new(&h);
    segs_of(&h);
    flipped = &h;
    h.f->s[0].n->mem.watch = flip;
    put(&h, h.rec, 2 * sizeof(h.seg[0]));
    h.f->s[0].n->mem.watch = NULL;
    flipped = NULL;
    fix_has(h.f, 0, 1, 0, LEN);
    assert_int_equal(cuts, 0);
    assert_int_equal(h.rx->cons, h.rx->prod);
    hostile_free(&h);
}

/* It lies about what it has consumed. */
static void cons_lies(void **state)
{
    static const uint32_t lie[] = { 64, 0x80000000, 0u - 0x200000 };
    struct hostile h;
    unsigned i;

    (void)state;
    hostile_new(&h);
    for (i = 0; i < sizeof(lie) / sizeof(lie[0]); i++) {
        struct qhca_memlink *l = fix_link(h.f, 0, 1);

        l->state = QHCA_MEMLINK_UP;
        h.rx->refuses = h.tx->refuses = 0;
        h.tx->cons = l->tx.prod + lie[i];
        fix_write(h.f, 0, 40 + i, 30000, 2000);
        fix_run(h.f, 1 * MS);
        assert_int_equal(cuts, 1);
        assert_int_equal(l->dead, true);
        /* the message takes the wire */
        fix_cqe(h.f, 0, 40 + i, QHCA_WC_SUCCESS);
        fix_has(h.f, 1, 0, 30000, 2000);
        qhca_memlink_detach(h.f->s[0].e, h.id);
        attach(&h);
    }
    hostile_free(&h);
}

/* ---- tag matching ---- */

/*
 * A message with headers is copied before they are examined: its sender changes
 * it as soon as the receiver's adapter has touched its own memory.
 */
static struct fix *tm_fix;

static void change_payload(void *opaque, uint64_t addr, size_t len, bool write)
{
    struct qhca_shring *r = world_memlink_ring(&tm_fix->w, 0, 1);
    struct qhca_shring_record *rec;

    (void)opaque;
    (void)addr;
    (void)len;
    (void)write;
    rec = fix_link(tm_fix, 1, 0)->rx.at;
    if (rec && rec == (void *)&r->data[r->cons % QHCA_SHRING_DATA]) {
        if (rec->state == QHCA_SHRING_INLINE && rec->payload == 100) {
            memset(rec + 1, 1, 100);
        } else if (rec->state == QHCA_SHRING_COPYING) {
            fix_spoil(tm_fix, 0, 0, MTU);
        }
    }
}

static void tag_matching(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct gtm_init ti = { .max_tags = 8, .ops_shift = 4, .ops_stride = 7,
                           .cq = &f->s[1].cq };
    uint32_t lens[] = { 100, 3 * MTU }, wqe;
    struct gqp_init qi = { .type = QHCA_QPT_RC };
    struct gsrq srq;
    struct gqp qp[2];
    unsigned i;

    (void)state;
    gsrq_create_tm(&srq, &f->s[1].g, 6, 6, NULL, NULL, &ti);
    qi.scq = qi.rcq = &f->s[1].cq;
    qi.srq = &srq;
    fix_qp(f, 0, QHCA_QPT_RC, &qp[0]);
    gqp_create(&qp[1], &f->s[1].g, &qi);
    fix_connect(f, 0, &qp[0], 1, &qp[1]);
    fix_go_up(f);
    tm_fix = f;
    for (i = 0; i < 2; i++) {
        uint8_t h[16] = { QHCA_TMH_NO_TAG };

        gbuf_fill(&f->s[0].mr.buf, 0, 1, 0, LEN);
        gbuf_write(&f->s[0].mr.buf, 0, h, sizeof(h));
        assert_true(gsrq_post(&srq, 5, &(struct qhca_sge){
                        IOVA, LEN, f->s[1].mr.key }, 1, &wqe));
        f->s[1].n->mem.watch = change_payload;
        fix_post_on(f, 0, &qp[0], (struct gwr){ .opcode = QHCA_WQE_SEND,
                                                .wr_id = 6 }, 0, lens[i]);
        fix_run(f, 100 * US);
        f->s[1].n->mem.watch = NULL;
        fix_cqe(f, 0, 6, QHCA_WC_SUCCESS);
        fix_cqe(f, 1, 5, QHCA_WC_SUCCESS);
        assert_int_equal(gbuf_verify(&f->s[1].mr.buf, 16, 1, 16, 84), 84);
        gsrq_release(&srq, wqe);
    }
    assert_int_equal(f->packets, 0);
    assert_int_equal(gqp_destroy(&qp[0]), QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&qp[1]), QHCA_ST_OK);
    assert_int_equal(gsrq_destroy(&srq), QHCA_ST_OK);
    fix_free(f);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(never_receives), cmocka_unit_test(receives_slowly),
        cmocka_unit_test(cut), cmocka_unit_test(detached),
        cmocka_unit_test(saved), cmocka_unit_test(freed_meanwhile),
        cmocka_unit_test(saved_only), cmocka_unit_test(gone_meanwhile),
        cmocka_unit_test(last_ack), cmocka_unit_test(reset_peer),
        cmocka_unit_test(malformed), cmocka_unit_test(malformed_packet),
        cmocka_unit_test(scattered), cmocka_unit_test(changed_meanwhile),
        cmocka_unit_test(cons_lies), cmocka_unit_test(tag_matching),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
