/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two engines in two threads, with a memory link, under ThreadSanitizer:
 * traffic both ways, links that are cut and replaced, and memory that is taken
 * back while the peer copies from it.
 *
 * A guest writes to its memory as soon as it may: after a completion, or after
 * the command that takes it back.  The engine's order must then suffice, for it
 * is the only one (twin.h).
 *
 * --spoil: the guest writes too early, which must be reported.
 */
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "die.h"
#include "twin.h"

#define MTU 1024u
#define SLOT 32768u             /* most bytes of a message */
#define WINDOW 4u               /* requests on their way */
#define RECVS (2 * WINDOW)
#define LANDING (4 * WINDOW)    /* slots that the peer writes to */
/* The region: what is sent, what the peer reads, and what arrives. */
#define SEND_AT 0u
#define CONST_AT (SEND_AT + WINDOW * SLOT)
#define READ_AT (CONST_AT + SLOT)
#define RECV_AT (READ_AT + WINDOW * SLOT)
#define WRITE_AT (RECV_AT + RECVS * SLOT)
#define REGION (WRITE_AT + LANDING * SLOT)
#define IOVA 0x500000000000ull
#define LOAN_IOVA 0x600000000064ull
#define PARTS 4u                /* requests for memory that is taken back ... */
#define PART (16u * MTU)        /* ... and bytes of each, in a record */
#define LOAN (PARTS * PART)
#define MOST_CUTS 3u            /* of one side in a round; retries are 7 */
#define MS 1000000ull

#define TRAFFIC 8u              /* rounds, half of them with cuts */
#define REQUESTS 64u
#define LOANS 40u               /* rounds of each way */

/*
 * What the peer does when memory is taken back: it is in the middle of a copy,
 * or has not looked at its ring, with or without the link being cut; or
 * whatever comes first.
 */
enum way { COPIES, CUT_COPY, SLEEPS, CUT_OFF, RACES, WAYS };

/* SET: the peer is in the middle of a copy, or asleep. */
enum word { QPN, KEY, LOAN_KEY, READY, UP, SET, DONE, OVER, GOT, TGT,
            SRQN };

/* Streams of bytes: pattern_bytes(). */
enum { OLD = 1000, LENT, TAKEN };

struct side {
    struct twin t;              /* must be first */
    struct guest g;
    struct gcq cq;
    struct gqp qp;
    struct gqp tgt;             /* XRC: qp only sends; this one receives ... */
    struct gsrq srq;            /* ... to this SRQ ... */
    uint32_t xrcd;              /* ... of this domain */
    uint32_t far_srqn;
    struct gmr mr, loan;
    uint32_t window;            /* of the loan; 0: none */
    struct rng rng;
    uint32_t rkey;
    /* traffic */
    bool chaos, barred;
    unsigned cuts, bars;
    uint32_t posted, completed, sent, got;
    uint32_t msg[WINDOW];       /* number of the message, or a READ */
    uint32_t read_len[WINDOW];
    /* the copy that is made to last until the owner waits for its end */
    uint32_t hold;
    uint32_t held_waits;        /* of the owner, before */
    /* how many requests should complete, and the first that failed */
    unsigned left;
    uint8_t status;
    uint64_t wake_at;           /* of a nap, ns */
    uint64_t named;             /* records that named memory, before */
    uint64_t partial, whole;    /* loans that have come */
};

#define NO_MSG UINT32_MAX

static bool spoil;

static struct side *self(struct twin *t)
{
    return (struct side *)t;
}

/* The stream of message @k of side @me in this round. */
static uint64_t stream(const struct side *s, unsigned me, uint32_t k)
{
    return (uint64_t)(s->t.round * 2 + me + 1) << 32 | k;
}

/* ---- connections ---- */

static bool heard_ready(struct twin *t)
{
    return twin_hears(t, READY);
}

static bool heard_qp(struct twin *t)
{
    return twin_hears(t, QPN) && twin_hears(t, KEY);
}

static bool heard_target(struct twin *t)
{
    return heard_qp(t) && twin_hears(t, TGT) && twin_hears(t, SRQN);
}

static bool heard_up(struct twin *t)
{
    return twin_hears(t, UP);
}

static bool heard_over(struct twin *t)
{
    return twin_hears(t, OVER);
}

static bool heard_set(struct twin *t)
{
    return twin_hears(t, SET);
}

static bool heard_loan(struct twin *t)
{
    return twin_hears(t, LOAN_KEY);
}

static void post_recv(struct side *s, uint32_t k)
{
    struct qhca_sge sge = {
        IOVA + RECV_AT + k % RECVS * SLOT, SLOT, s->mr.key
    };

    uint32_t wqe;

    if (s->qp.type == QHCA_QPT_XRC_INI) {
        CHECK(gsrq_post(&s->srq, k, &sge, 1, &wqe), "the SRQ is full");
        return;
    }
    CHECK(gqp_post_recv(&s->qp, k, &sge, 1), "the receive queue is full");
}

/* The half of an XRC connection that receives. */
static void create_target(struct side *s)
{
    s->xrcd = guest_create(&s->g, QHCA_CMD_ALLOC_XRCD, NULL, 0);
    gsrq_create_xrc(&s->srq, &s->g, 4, 6, s->g.pd, s->xrcd, &s->cq);
    gqp_create(&s->tgt, &s->g, &(struct gqp_init) {
        .type = QHCA_QPT_XRC_TGT, .xrcd = s->xrcd,
    });
    twin_say(&s->t, TGT, s->tgt.qpn);
    twin_say(&s->t, SRQN, s->srq.srqn);
    twin_until(&s->t, heard_target);
    s->far_srqn = twin_heard(&s->t, SRQN);
}

static void destroy_target(struct side *s)
{
    CHECK(gqp_destroy(&s->tgt) == QHCA_ST_OK &&
          gsrq_destroy(&s->srq) == QHCA_ST_OK &&
          guest_simple(&s->g, QHCA_CMD_FREE_XRCD, s->xrcd) == QHCA_ST_OK,
          "the target is busy");
}

static void connect_qp(struct side *s, uint8_t type)
{
    bool xrc = type == QHCA_QPT_XRC_INI;
    struct gqp_init in = {
        .type = type, .sq_shift = 4, .sq_stride = 8, .rq_shift = 4,
        .rq_stride = xrc ? 0 : 6, .scq = &s->cq, .rcq = xrc ? NULL : &s->cq,
    };
    struct gqp_attr a;
    uint32_t k;

    gqp_create(&s->qp, &s->g, &in);
    twin_say(&s->t, QPN, s->qp.qpn);
    twin_say(&s->t, KEY, s->mr.key);
    twin_until(&s->t, heard_qp);
    gqp_attr_default(&a);
    a.dest_qpn = twin_heard(&s->t, QPN);
    s->rkey = twin_heard(&s->t, KEY);
    if (xrc) {
        create_target(s);
        gqp_to_init(&s->tgt, &a);
        gqp_to_rtr(&s->tgt, &s->t.w.node[!s->t.me], &a);
        gqp_to_rts(&s->tgt, &a);
        a.dest_qpn = twin_heard(&s->t, TGT);
    }
    gqp_to_init(&s->qp, &a);
    gqp_to_rtr(&s->qp, &s->t.w.node[!s->t.me], &a);
    for (k = 0; k < RECVS; k++) {
        post_recv(s, k);
    }
    gqp_to_rts(&s->qp, &a);
    twin_say(&s->t, READY, 0);
    twin_until(&s->t, heard_ready);
}

/* Both have finished with this round. */
static void disconnect(struct side *s)
{
    struct qhca_cqe cqe;

    twin_say(&s->t, OVER, 0);
    twin_until(&s->t, heard_over);
    if (s->qp.qpn) {
        CHECK(gqp_destroy(&s->qp) == QHCA_ST_OK, "DESTROY_QP");
        s->qp.qpn = 0;
    }
    if (s->tgt.qpn) {
        destroy_target(s);
        s->tgt.qpn = 0;
    }
    while (gcq_poll(&s->cq, &cqe)) {
    }
}

static void put(struct side *s, uint8_t opcode, uint64_t laddr,
                uint32_t lkey, uint64_t raddr, uint32_t rkey, uint32_t len)
{
    struct gwr wr = {
        .opcode = opcode, .flags = QHCA_WQE_F_SIGNALED, .remote_addr = raddr,
        .rkey = rkey, .srqn = s->far_srqn, .num_sge = 1,
        .sge[0] = { laddr, len, lkey },
    };

    CHECK(gqp_post_send(&s->qp, &wr), "the send queue is full");
}

static void post(struct side *s, uint8_t opcode, uint64_t laddr,
                 uint32_t lkey, uint64_t raddr, uint32_t rkey, uint32_t len)
{
    put(s, opcode, laddr, lkey, raddr, rkey, len);
    gqp_ring(&s->qp);
}

/* ---- traffic ---- */

static void check_bytes(const struct side *s, uint64_t at, uint64_t id,
                        uint32_t len, const char *what)
{
    CHECK(gbuf_verify(&s->mr.buf, at, id, 0, len) == len,
          "wrong bytes by %s in round %u", what, s->t.round);
}

static void post_next(struct side *s)
{
    uint32_t i = s->posted++ % WINDOW;
    uint32_t len = (uint32_t)rng_range(&s->rng, 1, SLOT);
    bool write = rng_pct(&s->rng, 50);

    s->msg[i] = NO_MSG;
    if (s->qp.type != QHCA_QPT_UC && rng_pct(&s->rng, 25)) {
        s->read_len[i] = len;
        post(s, QHCA_WQE_RDMA_READ, IOVA + READ_AT + i * SLOT, s->mr.key,
             IOVA + CONST_AT, s->rkey, len);
        return;
    }
    s->msg[i] = s->sent++;
    /* the peer no longer reads what this slot had: it has completed */
    gbuf_fill(&s->mr.buf, SEND_AT + i * SLOT, stream(s, s->t.me, s->msg[i]),
              0, len);
    post(s, write ? QHCA_WQE_RDMA_WRITE_IMM : QHCA_WQE_SEND,
         IOVA + SEND_AT + i * SLOT, s->mr.key,
         IOVA + WRITE_AT + s->msg[i] % LANDING * SLOT, s->rkey, len);
}

static void completion(struct side *s, const struct qhca_cqe *c)
{
    uint32_t i = s->completed % WINDOW;

    CHECK(c->status == QHCA_WC_SUCCESS, "status %u in round %u", c->status,
          s->t.round);
    switch (c->opcode) {
    case QHCA_CQE_OP_RECV:
    case QHCA_CQE_OP_RECV_RDMA_IMM:
        check_bytes(s, c->opcode == QHCA_CQE_OP_RECV ?
                    RECV_AT + s->got % RECVS * SLOT :
                    WRITE_AT + s->got % LANDING * SLOT,
                    stream(s, !s->t.me, s->got), c->byte_len, "the peer");
        if (s->qp.type == QHCA_QPT_XRC_INI) {
            gsrq_release(&s->srq, c->wqe_index);
        }
        post_recv(s, s->got + RECVS);
        s->qp.rq_cons++;
        s->got++;
        return;
    case QHCA_CQE_OP_RDMA_READ:
        CHECK(s->msg[i] == NO_MSG, "completions out of order");
        check_bytes(s, READ_AT + i * SLOT, !s->t.me + 1, s->read_len[i],
                    "a READ");
        break;
    default:
        CHECK(s->msg[i] != NO_MSG, "completions out of order");
        break;
    }
    s->qp.sq_cons++;
    s->completed++;
}

/* Cut the link, or do not use it for a while. */
static void disturb(struct side *s)
{
    struct qhca_memlink *l = twin_memlink(&s->t);

    if (s->barred || (!s->bars && rng_pct(&s->rng, 20))) {
        s->barred = !s->barred;
        s->bars++;
        node_memlinks_allow(s->t.n, !s->barred);
    } else if (l && s->cuts < MOST_CUTS) {
        s->cuts++;
        qhca_memlink_cut(s->t.n->e, l, "by the test");
    }
}

/* May another message be sent?  UC has no RNR NAK: the peer must have a WQE. */
static bool may_send(struct twin *t)
{
    struct side *s = self(t);

    return s->posted - s->completed < WINDOW &&
           (s->qp.type != QHCA_QPT_UC || s->sent < RECVS ||
            (twin_hears(t, GOT) && s->sent - twin_heard(t, GOT) < RECVS));
}

/* All was sent, and all that the peer has sent has come. */
static bool exchanged(struct twin *t)
{
    struct side *s = self(t);
    struct qhca_cqe c;

    while (gcq_poll(&s->cq, &c)) {
        completion(s, &c);
    }
    if (s->qp.type == QHCA_QPT_UC) {
        twin_say(t, GOT, s->got);
    }
    if (s->chaos && s->posted < REQUESTS && rng_pct(&s->rng, 4)) {
        disturb(s);
    }
    while (s->posted < REQUESTS && may_send(t)) {
        post_next(s);
        if (s->posted == REQUESTS) {
            twin_say(t, DONE, s->sent);
        }
    }
    return s->completed == REQUESTS && twin_hears(t, DONE) &&
           s->got == twin_heard(t, DONE);
}

static void traffic(struct side *s, uint8_t type, bool chaos)
{
    uint64_t late = qhca_stat(s->t.n->e, QHCA_STAT_ROCE_TIMEOUTS);

    s->posted = s->completed = s->sent = s->got = 0;
    s->cuts = s->bars = 0;
    s->chaos = chaos;
    connect_qp(s, type);
    twin_until(&s->t, exchanged);
    if (s->barred) {
        s->barred = false;
        node_memlinks_allow(s->t.n, true);
    }
    disconnect(s);
    CHECK(chaos || qhca_stat(s->t.n->e, QHCA_STAT_ROCE_TIMEOUTS) == late,
          "a bell was lost in round %u", s->t.round);
}

/* ---- memory that is taken back ---- */

/* All requests have completed, or one has failed. */
static bool completed(struct twin *t)
{
    struct side *s = self(t);
    struct qhca_cqe c;

    while (s->left && gcq_poll(&s->cq, &c)) {
        if (!(c.opcode & QHCA_CQE_OP_RECV)) {
            s->qp.sq_cons++;
            s->status = c.status;
            s->left = c.status == QHCA_WC_SUCCESS ? s->left - 1 : 0;
        }
    }
    return !s->left;
}

static uint8_t result(struct side *s, unsigned requests)
{
    s->left = requests;
    twin_until(&s->t, completed);
    return s->status;
}

static void nothing(void *opaque, uint64_t arg)
{
    (void)opaque;
    (void)arg;
}

static bool awake(struct twin *t)
{
    return t->w.now >= self(t)->wake_at;
}

/* Let time pass: an adapter does not try a link again at once. */
static void nap(struct side *s)
{
    s->wake_at = s->t.w.now + 100 * MS;
    world_call(&s->t.w, s->wake_at, nothing, NULL, 0);
    twin_until(&s->t, awake);
}

/* Write until packets use the link, both ways. */
static void go_up(struct side *s)
{
    unsigned tries;

    for (tries = 0; !twin_memlink(&s->t) ||
                    twin_memlink(&s->t)->state != QHCA_MEMLINK_UP; tries++) {
        CHECK(tries < 100, "the link is not used");
        if (tries > 3) {
            nap(s);
        }
        post(s, QHCA_WQE_RDMA_WRITE, IOVA + CONST_AT, s->mr.key,
             IOVA + READ_AT, s->rkey, 8);
        CHECK(result(s, 1) == QHCA_WC_SUCCESS, "a WRITE fails");
    }
    twin_say(&s->t, UP, 0);
    twin_until(&s->t, heard_up);
}

/*
 * The adapter that copies does not finish before the owner waits for it; or has
 * not waited, which is an error.
 */
static void hold_copy(struct twin *t)
{
    struct side *s = self(t);

    if (s->hold && !--s->hold) {
        twin_say(t, SET, 0);
        while (atomic_load_explicit(&t->peer->waits, memory_order_relaxed) ==
               s->held_waits && !twin_hears(t, DONE)) {
            sched_yield();
        }
    }
}

/* A request that neither moves data nor fails. */
static void request(struct side *s, const struct gwr *w)
{
    struct gwr wr = *w;

    wr.flags |= QHCA_WQE_F_SIGNALED;
    CHECK(gqp_post_send(&s->qp, &wr), "the send queue is full");
    gqp_ring(&s->qp);
    CHECK(result(s, 1) == QHCA_WC_SUCCESS, "status %u", s->status);
}

static void write_again(struct side *s)
{
    gbuf_fill(&s->loan.buf, 0, TAKEN, 0, LOAN);
}

enum take_back { BY_MR, BY_ERR, BY_RESET, BY_QP, BY_INV, TAKE_BACKS };

static void take_back(struct side *s, enum take_back how)
{
    uint8_t st;

    if (spoil) {
        write_again(s);
    }
    switch (how) {
    case BY_MR:
        st = guest_simple(&s->g, QHCA_CMD_DESTROY_MR, s->loan.key);
        break;
    case BY_ERR:
        st = gqp_state(&s->qp, QHCA_QPS_ERR);
        break;
    case BY_RESET:
        st = gqp_state(&s->qp, QHCA_QPS_RESET);
        break;
    case BY_INV:
        request(s, &(struct gwr) {
            .opcode = QHCA_WQE_LOCAL_INV, .imm = s->window
        });
        st = QHCA_ST_OK;
        break;
    default:
        st = gqp_destroy(&s->qp);
        s->qp.qpn = 0;
        break;
    }
    CHECK(st == QHCA_ST_OK, "status %u", st);
    write_again(s);
}

/* Let the peer read the loan through a window. */
static void bind_window(struct side *s)
{
    struct qhca_mpt c = { .pd = s->g.pd, .flags = QHCA_MR_F_MW2 };
    uint32_t key = guest_create(&s->g, QHCA_CMD_CREATE_MW, &c, sizeof(c));

    s->window = (key & ~0xffu) | ((key + 1) & 0xff);
    request(s, &(struct gwr) {
        .opcode = QHCA_WQE_BIND_MW, .arg0 = LOAN_IOVA, .arg1 = LOAN,
        .remote_addr = s->loan.key, .rkey = s->window,
        .rarg = QHCA_ACCESS_REMOTE_READ,
    });
}

static void lend(struct side *s, enum take_back how)
{
    gmr_create(&s->loan, &s->g, LOAN, LOAN_IOVA, QHCA_ACCESS_MASK,
               rng_pct(&s->rng, 50) ? &gbuf_flat4k : NULL);
    gbuf_allow(&s->loan.buf, 0, LOAN, GMEM_RW);
    gbuf_fill(&s->loan.buf, 0, LENT, 0, LOAN);
    if (how == BY_INV) {
        bind_window(s);
    }
    twin_say(&s->t, LOAN_KEY, how == BY_INV ? s->window : s->loan.key);
}

static bool has_named(struct twin *t)
{
    return twin_memlink(t)->sent_refs == self(t)->named + PARTS;
}

static bool heard_done(struct twin *t)
{
    return twin_hears(t, DONE);
}

static bool sleeps(enum way way)
{
    return way == SLEEPS || way == CUT_OFF;
}

static bool copies(enum way way)
{
    return way == COPIES || way == CUT_COPY;
}

/* The side that owns the memory. */
static void own(struct side *s, bool reads, enum way way, enum take_back how)
{
    struct qhca_memlink *l = twin_memlink(&s->t);
    uint64_t revoked = l->revoked;
    uint32_t waits = s->t.waits;
    volatile uint64_t spin;
    unsigned i;

    s->named = l->sent_refs;
    lend(s, how);
    while (sleeps(way) && !heard_set(&s->t)) {
        sched_yield();          /* and answers no READ yet */
    }
    for (i = 0; i < PARTS && !reads; i++) {
        put(s, QHCA_WQE_RDMA_WRITE, LOAN_IOVA + i * PART, s->loan.key,
            IOVA + WRITE_AT + i * PART, s->rkey, PART);
    }
    gqp_ring(&s->qp);
    if (sleeps(way)) {
        twin_until(&s->t, has_named);
    } else if (copies(way) || reads) {
        twin_until(&s->t, heard_set);
    }
    for (spin = way == RACES ? rng_log(&s->rng, 200000) : 0; spin; spin--) {
    }
    if (way == CUT_OFF || way == CUT_COPY) {
        qhca_memlink_cut(s->t.n->e, l, "by the test");
    }
    take_back(s, how);
    CHECK(!sleeps(way) || l->revoked - revoked == PARTS,
          "%u records were revoked", (unsigned)(l->revoked - revoked));
    CHECK(!copies(way) || s->t.waits != waits,
          "a copy was not waited for in round %u", s->t.round);
    twin_say(&s->t, DONE, 0);
    if (!reads && how == BY_MR && result(s, PARTS) != QHCA_WC_SUCCESS) {
        CHECK(s->status == QHCA_WC_LOC_PROT_ERR, "status %u", s->status);
    }
    disconnect(s);
    if (how == BY_INV) {
        CHECK(guest_simple(&s->g, QHCA_CMD_DESTROY_MR, s->window) ==
              QHCA_ST_OK, "DESTROY_MR of a window");
    }
    if (how != BY_MR) {
        CHECK(gmr_destroy(&s->loan) == QHCA_ST_OK, "DESTROY_MR");
    } else {
        gmr_drop(&s->loan);
    }
}

/* The side whose adapter copies. */
static void borrow(struct side *s, bool reads, enum way way)
{
    uint64_t n, left;
    unsigned i;

    if (reads) {
        twin_until(&s->t, heard_loan);
        for (i = 0; i < PARTS; i++) {
            put(s, QHCA_WQE_RDMA_READ, IOVA + WRITE_AT + i * PART, s->mr.key,
                LOAN_IOVA + i * PART, twin_heard(&s->t, LOAN_KEY), PART);
        }
        gqp_ring(&s->qp);
    }
    if (!copies(way)) {
        twin_say(&s->t, SET, 0);
    }
    while (sleeps(way) && !heard_done(&s->t)) {
        sched_yield();
    }
    twin_until(&s->t, heard_done);
    if (reads && result(s, PARTS) == QHCA_WC_SUCCESS) {
        CHECK(!sleeps(way), "a READ of memory that was taken back");
    }
    /* A part of it is here, and nothing that was written later. */
    n = gbuf_verify(&s->mr.buf, WRITE_AT, LENT, 0, LOAN);
    left = LOAN - n;
    CHECK(n % MTU == 0 && (way == RACES || !n == sleeps(way)),
          "%u bytes have come in round %u", (unsigned)n, s->t.round);
    CHECK(gbuf_verify(&s->mr.buf, WRITE_AT + n, OLD, n, left) == left,
          "bytes of later in round %u", s->t.round);
    s->partial += n && left;
    s->whole += !left;
    disconnect(s);
}

/* Rounds of each side as the owner, of WRITEs and READs, by each command. */
static void loan_round(struct side *s, unsigned i, enum way way)
{
    bool reads = i / 2 & 1;
    bool owner = (i & 1) == s->t.me;
    enum take_back how = i / 4 % TAKE_BACKS;

    if (how == BY_INV && !reads) {
        how = BY_MR;            /* the owner has no window to send from */
    }
    gbuf_fill(&s->mr.buf, WRITE_AT, OLD, 0, LOAN);
    s->hold = copies(way) && !owner ?
              (uint32_t)rng_range(&s->rng, 1, 32) : 0;
    s->held_waits = atomic_load_explicit(&s->t.peer->waits,
                                         memory_order_relaxed);
    connect_qp(s, QHCA_QPT_RC);
    go_up(s);
    if (owner) {
        own(s, reads, way, how);
    } else {
        borrow(s, reads, way);
    }
}

/* ---- life ---- */

static void *run(void *opaque)
{
    static const struct guest_config gc = {
        .db_shift = 12, .aq_shift = 4, .eqs = 2, .eq_shift = 6,
    };
    struct side *s = opaque;
    unsigned i;

    rng_init(&s->rng, s->t.me + 1);
    s->t.on_copy = hold_copy;
    guest_start(&s->g, s->t.n, 1, &gc);
    gcq_create(&s->cq, &s->g, 8, NULL, 1);
    gmr_create(&s->mr, &s->g, REGION, IOVA, QHCA_ACCESS_MASK, &gbuf_flat4k);
    gbuf_allow(&s->mr.buf, 0, REGION, GMEM_RW);
    gbuf_fill(&s->mr.buf, CONST_AT, s->t.me + 1, 0, SLOT);
    if (s->t.me == 0) {
        twin_link(&s->t);
    }
    for (i = 0; i < TRAFFIC; i++) {
        s->t.round++;
        traffic(s, QHCA_QPT_RC, i >= TRAFFIC / 2);
    }
    for (i = 0; i < 2; i++) {
        s->t.round++;
        traffic(s, QHCA_QPT_XRC_INI, i);
    }
    s->t.round++;
    traffic(s, QHCA_QPT_UC, false);
    for (i = 0; i < WAYS * LOANS; i++) {
        s->t.round++;
        loan_round(s, i / WAYS, i % WAYS);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    struct side *side = calloc(2, sizeof(*side));
    struct twin *t[2];
    pthread_t thread[2];
    unsigned i;

    spoil = argc == 2 && !strcmp(argv[1], "--spoil");
    alarm(300);                 /* of a hang, not of a slow machine */
    CHECK(side, "no memory");
    for (i = 0; i < 2; i++) {
        t[i] = &side[i].t;
    }
    twin_init(t);
    for (i = 0; i < 2; i++) {
        CHECK(!pthread_create(&thread[i], NULL, run, &side[i]), "no thread");
    }
    for (i = 0; i < 2; i++) {
        pthread_join(thread[i], NULL);
    }
    for (i = 0; i < 2; i++) {
        struct side *s = &side[i];

        printf("%c: %llu copies, %llu links, %llu cut here, waited %u times, "
               "%llu loans came whole, %llu in part\n", 'a' + i,
               (unsigned long long)s->t.copies,
               (unsigned long long)s->t.links, (unsigned long long)s->t.cuts,
               (unsigned)s->t.waits, (unsigned long long)s->whole,
               (unsigned long long)s->partial);
        CHECK(s->t.copies && s->t.links > 1 && s->partial + s->whole,
              "the test tests nothing");
        qhca_reset(s->t.n->e);
        gmr_drop(&s->mr);
        gbuf_free(&s->cq.buf);
        guest_drop(&s->g);
    }
    twin_fini(t);
    free(side);
    return 0;
}
