/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tag matching with software as in an MPI library: it posts receives, gives a
 * prefix of them to the device, and handles messages the device finds
 * unexpected.  What must hold are MPI's rules:
 * - a message goes to the oldest posted receive that matches;
 * - of two messages of one sender that match the same receive, the first sent
 *   gets it;
 * - an entry of the device can always be taken back for a message reported as
 *   unexpected: the device has not given it to a later message meanwhile.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim_fx.h"

#define MAX_SENDERS 3
#define SLOT 8192u              /* of a message at the sender */
#define HEAD 64u                /* room for its headers */
#define SLOTS 12u
#define CAP 6144u               /* maximum message size */
#define ENTRIES 8u              /* of the device's list */
#define POSTED 24u              /* receives that software may have posted */
#define WQES 16u                /* receive WQEs of the SRQ */
#define WQE_CAP (CAP + HEAD)
#define LIMIT_NS 100000000000ULL
#define NONE 0xffffffffu

/* Network order; the host is little-endian. */
static uint32_t be_to_host32(uint32_t v)
{
    return __builtin_bswap32(v);
}

static uint64_t be_to_host64(uint64_t v)
{
    return __builtin_bswap64(v);
}

static void put_be32(uint8_t *p, uint32_t v)
{
    v = __builtin_bswap32(v);
    memcpy(p, &v, 4);
}

static void put_be64(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, 8);
}

struct tms;

struct msg {
    unsigned sender;
    uint32_t seq, len;
    uint64_t tag;
    uint8_t opcode;             /* QHCA_TMH_* */
    unsigned slot;
    bool sent;                  /* the SEND is acknowledged */
    bool taken;                 /* it has a receiver */
    bool done;                  /* received */
    bool by_device;             /* a rendezvous carried out by the device */
};

struct sender {
    struct tms *t;
    struct guest *g;
    struct gcq scq, rcq;
    struct gqp qp;              /* of the sender */
    struct gqp rx;              /* its end, on the TM SRQ */
    struct gmr src;
    uint32_t slot[SLOTS];       /* message in it, or NONE */
    uint32_t seq, fins;
};

enum { R_FREE, R_SW, R_HW, R_TAKEN };

struct rcv {
    uint8_t state;
    uint64_t tag, mask, age;
    uint32_t handle, cap;
    uint32_t msg;               /* TAKEN */
};

struct tms {
    struct sim *s;
    struct rng *r;
    struct guest *g;            /* the receiver */
    struct gcq cq, none;        /* the SRQ's; the QPs' own: unused */
    struct gsrq srq;
    struct gmr tags, wqes;
    struct sender sender[MAX_SENDERS];
    unsigned senders;
    struct msg *msg;
    uint32_t msgs, max_msgs, consumed;
    struct rcv rcv[POSTED];
    uint64_t age;
    bool busy[ENTRIES];
    uint16_t gen;
    uint32_t handled, told;     /* unexpected messages */
    uint32_t queue[4096];       /* unmatched messages, in order */
    unsigned queued;
    uint64_t stream;            /* of payloads */
    uint64_t end;
};

static void tick(struct tms *t)
{
    CHECK(t->s->w.now < t->end, "tag matching: no end: %u of %u messages",
          t->consumed, t->max_msgs);
    world_run(&t->s->w, 1 + rng_log(t->r, 30000));
}

/* ---- receives ---- */

static bool fits(const struct rcv *v, uint64_t tag)
{
    return (tag & v->mask) == v->tag;
}

/* The oldest posted receive older than @before that matches @tag. */
static struct rcv *oldest(struct tms *t, uint64_t tag, uint64_t before)
{
    struct rcv *best = NULL;
    unsigned i;

    for (i = 0; i < POSTED; i++) {
        struct rcv *v = &t->rcv[i];

        if ((v->state == R_SW || v->state == R_HW) && fits(v, tag) &&
            v->age < before && (!best || v->age < best->age)) {
            best = v;
        }
    }
    return best;
}

static uint64_t buffer(struct tms *t, const struct rcv *v)
{
    return (uint64_t)(v - t->rcv) * SLOT;
}

static uint32_t op(struct tms *t, const struct gtm_op *o)
{
    uint32_t n = 0;

    while (!gtm_post(&t->srq, o, &n)) {
        tick(t);
    }
    gtm_ring(&t->srq);
    return n;
}

/* Report the count with this operation. */
static void with_count(struct tms *t, struct gtm_op *o)
{
    o->flags |= QHCA_WQE_F_TM_SYNC;
    o->unexp = t->handled;
    t->told = t->handled;
}

/* Give the oldest receives to the device, as far as it has room. */
static void promote(struct tms *t)
{
    struct rcv *v;
    unsigned i, k;

    for (;;) {
        struct gtm_op o = { .opcode = QHCA_WQE_TAG_ADD, .num_sge = 1 };

        v = NULL;
        for (i = 0; i < POSTED; i++) {
            if (t->rcv[i].state == R_SW &&
                (!v || t->rcv[i].age < v->age)) {
                v = &t->rcv[i];
            }
        }
        for (k = 0; k < ENTRIES && t->busy[k]; k++) {
        }
        if (!v || k == ENTRIES) {
            return;
        }
        t->busy[k] = true;
        v->handle = k | (uint32_t)++t->gen << 16;
        v->state = R_HW;
        o.handle = v->handle;
        o.tag = v->tag;
        o.mask = v->mask;
        o.recv_wr_id = 0xabc00000 + (uint64_t)(v - t->rcv);
        o.sge[0].addr = t->tags.iova + buffer(t, v);
        o.sge[0].len = v->cap;
        o.sge[0].lkey = t->tags.key;
        if (v->cap > 100 && rng_pct(t->r, 40)) {        /* in pieces */
            o.num_sge = 3;
            o.sge[0].len = v->cap / 3;
            o.sge[1] = o.sge[0];
            o.sge[1].addr += o.sge[0].len;
            o.sge[2] = o.sge[1];
            o.sge[2].addr += o.sge[1].len;
            o.sge[2].len = v->cap - 2 * o.sge[0].len;
        }
        if (rng_pct(t->r, 50)) {
            with_count(t, &o);
        }
        if (rng_pct(t->r, 30)) {
            o.flags |= QHCA_WQE_F_SIGNALED;
        }
        op(t, &o);
    }
}

static void consume(struct tms *t, uint32_t id)
{
    struct msg *m = &t->msg[id];

    CHECK(!m->done, "message %u received twice", id);
    m->done = true;
    t->consumed++;
}

/* Check that the payload of @id is at @at in @b. */
static void verify(struct tms *t, const struct gbuf *b, uint64_t at,
                   uint32_t id)
{
    const struct msg *m = &t->msg[id];
    uint64_t good = gbuf_verify(b, at, t->stream + id, 0, m->len);

    CHECK(good == m->len, "message %u: wrong byte %" PRIu64 " of %u", id,
          good, m->len);
}

/* Match @id: no earlier message of the same sender may still be waiting. */
static void take(struct tms *t, struct rcv *v, uint32_t id)
{
    struct msg *m;
    unsigned i;

    CHECK(id < t->msgs, "message %u", id);
    m = &t->msg[id];
    CHECK(!m->taken && fits(v, m->tag),
          "message %u for a receive of tag %#" PRIx64, id, v->tag);
    m->taken = true;
    for (i = 0; i < t->msgs; i++) {
        const struct msg *o = &t->msg[i];

        CHECK(o->taken || o->sender != m->sender || o->seq > m->seq ||
              o->opcode == QHCA_TMH_NO_TAG || !fits(v, o->tag),
              "message %u of a sender overtook %u", id, i);
    }
}

/* Remove an entry from the device's list; it must be there. */
static void withdraw(struct tms *t, struct rcv *v)
{
    struct gtm_op o = { .opcode = QHCA_WQE_TAG_DEL, .handle = v->handle };
    uint32_t n = op(t, &o), res;

    while (!((res = gtm_result(&t->srq, n)) & QHCA_TM_DONE)) {
        tick(t);
    }
    CHECK(res == QHCA_TM_DONE, "entry %#x of an unexpected message is gone",
          v->handle);
    t->busy[v->handle & 0xffff] = false;
}

static void post_wqe(struct tms *t)
{
    struct qhca_sge sge = { .len = WQE_CAP, .lkey = t->wqes.key };
    uint32_t wqe, k;

    /* the slot in the region is that of the WQE, known only later */
    if (t->srq.nfree) {
        CHECK(gsrq_post(&t->srq, 1, &sge, 1, &wqe), "SRQ full");
        sge.addr = t->wqes.iova + (uint64_t)wqe * SLOT;
        k = wqe << t->srq.stride;
        gbuf_write(&t->srq.buf, k + sizeof(struct qhca_rq_wqe), &sge,
                   sizeof(sge));
    }
}

/* An unexpected message at @at: find its receive. */
static void unexpected(struct tms *t, uint64_t at, uint32_t len)
{
    struct qhca_tmh h;
    struct rcv *v;
    uint32_t id;

    gbuf_read(&t->wqes.buf, at, &h, sizeof(h));
    id = be_to_host32(h.app_ctx);
    CHECK(id < t->msgs && t->msg[id].opcode == h.opcode &&
          (h.opcode == QHCA_TMH_EAGER || h.opcode == QHCA_TMH_RNDV),
          "an unexpected message %u, opcode %u", id, h.opcode);
    if (h.opcode == QHCA_TMH_EAGER) {
        CHECK(len == sizeof(h) + t->msg[id].len, "%u bytes", len);
        verify(t, &t->wqes.buf, at + sizeof(h), id);
    }
    t->handled++;
    v = oldest(t, t->msg[id].tag, UINT64_MAX);
    if (!v) {
        CHECK(t->queued < 4096, "too many unexpected messages");
        t->queue[t->queued++] = id;
        return;
    }
    if (v->state == R_HW) {
        withdraw(t, v);
    }
    take(t, v, id);
    consume(t, id);             /* software copies or READs */
    v->state = R_FREE;
}

/*
 * Software cancels a receive.  The device may just have matched the entry: then
 * its completion arrives.
 */
static void cancel(struct tms *t, struct rcv *v)
{
    struct gtm_op o = { .opcode = QHCA_WQE_TAG_DEL, .handle = v->handle };
    uint32_t n, res;

    if (v->state == R_HW) {
        n = op(t, &o);
        while (!((res = gtm_result(&t->srq, n)) & QHCA_TM_DONE)) {
            tick(t);
        }
        if (res != QHCA_TM_DONE) {
            CHECK(res == (QHCA_TM_DONE | QHCA_SYN_TM_HANDLE), "DEL: %#x",
                  res);
            return;
        }
        t->busy[v->handle & 0xffff] = false;
        v->state = R_FREE;
    } else if (v->state == R_SW) {
        v->state = R_FREE;
    }
}

/* ---- completions of the SRQ ---- */

static void on_recv(struct tms *t, const struct qhca_tm_cqe *c)
{
    struct rcv *v = NULL;
    uint32_t id;
    unsigned i;

    for (i = 0; i < POSTED; i++) {
        if ((t->rcv[i].state == R_HW || t->rcv[i].state == R_TAKEN) &&
            t->rcv[i].handle == c->wqe_index) {
            v = &t->rcv[i];
        }
    }
    CHECK(v && c->wr_id == 0xabc00000 + (uint64_t)(v - t->rcv),
          "a completion of entry %#x", c->wqe_index);
    if (c->flags & QHCA_CQE_F_TM_MATCH) {
        CHECK(v->state == R_HW, "entry %#x matched twice", c->wqe_index);
        id = be_to_host32(c->app_ctx);
        CHECK(id < t->msgs && be_to_host64(c->tag) == t->msg[id].tag,
              "message %u with tag %#" PRIx64, id, be_to_host64(c->tag));
        CHECK(oldest(t, t->msg[id].tag, UINT64_MAX) == v,
              "message %u: an older receive fits", id);
        take(t, v, id);
        v->state = R_TAKEN;
        v->msg = id;
    }
    CHECK(v->state == R_TAKEN, "data of entry %#x", c->wqe_index);
    id = v->msg;
    if (c->status == QHCA_WC_TM_RNDV_INCOMPLETE) {
        struct qhca_tmh h;

        CHECK(t->msg[id].opcode == QHCA_TMH_RNDV && v->cap < t->msg[id].len,
              "message %u is not too long", id);
        gbuf_read(&t->tags.buf, buffer(t, v), &h, sizeof(h));
        CHECK(be_to_host32(h.app_ctx) == id, "not the headers");
    } else if (c->flags & QHCA_CQE_F_TM_DATA_VALID) {
        CHECK(!c->status && c->byte_len == t->msg[id].len,
              "message %u: status %u, %u bytes", id, c->status, c->byte_len);
        verify(t, &t->tags.buf, buffer(t, v), id);
        t->msg[id].by_device = t->msg[id].opcode == QHCA_TMH_RNDV;
    } else {
        CHECK(!c->status, "message %u: status %u, syndrome %#x", id,
              c->status, c->syndrome);
        return;
    }
    consume(t, id);
    t->busy[v->handle & 0xffff] = false;
    v->state = R_FREE;
}

static void poll_srq(struct tms *t, unsigned max)
{
    union {
        struct qhca_cqe cqe;
        struct qhca_tm_cqe tm;
    } c;

    while (max-- && gcq_poll(&t->cq, &c.cqe)) {
        CHECK(c.tm.srqn == t->srq.srqn && c.tm.flags & QHCA_CQE_F_SRQN,
              "a CQE of SRQ %#x", c.tm.srqn);
        switch (c.tm.opcode) {
        case QHCA_CQE_OP_TM_ADD:
        case QHCA_CQE_OP_TM_SYNC:
            CHECK(!c.tm.status && !c.tm.qpn, "operation: status %u",
                  c.tm.status);
            break;
        case QHCA_CQE_OP_TM_NO_TAG:
        case QHCA_CQE_OP_TM_RECV:
            if (!(c.tm.flags & QHCA_CQE_F_SRQ)) {
                on_recv(t, &c.tm);
                break;
            }
            CHECK(!c.tm.status, "SRQ receive: status %u", c.tm.status);
            if (c.tm.opcode == QHCA_CQE_OP_TM_RECV) {
                unexpected(t, (uint64_t)c.tm.wqe_index * SLOT,
                           c.tm.byte_len);
            } else {
                struct qhca_tmh h;

                gbuf_read(&t->wqes.buf, (uint64_t)c.tm.wqe_index * SLOT, &h,
                          sizeof(h));
                CHECK(h.opcode == QHCA_TMH_NO_TAG, "opcode %u", h.opcode);
                t->msg[be_to_host32(h.app_ctx)].taken = true;
                consume(t, be_to_host32(h.app_ctx));
            }
            gsrq_release(&t->srq, c.tm.wqe_index);
            break;
        default:
            CHECK(false, "CQE opcode %#x", c.tm.opcode);
        }
    }
}

/* ---- senders ---- */

static void poll_sender(struct sender *x)
{
    struct tms *t = x->t;
    struct qhca_cqe c;
    unsigned i;

    while (gcq_poll(&x->scq, &c)) {
        CHECK(!c.status, "SEND: status %u, syndrome %#x", c.status,
              c.syndrome);
        x->qp.sq_cons = c.wqe_index + 1;
        t->msg[c.wr_id].sent = true;
    }
    while (gcq_poll(&x->rcq, &c)) {
        uint8_t h[32];
        uint32_t id;
        struct qhca_sge sge = { x->src.iova + SLOTS * SLOT, 32,
                                x->src.key };

        CHECK(!c.status && c.byte_len == 32, "FIN: status %u", c.status);
        gbuf_read(&x->src.buf, SLOTS * SLOT, h, sizeof(h));
        memcpy(&id, h + 4, 4);
        id = be_to_host32(id);
        CHECK(h[0] == QHCA_TMH_FIN && id < t->msgs &&
              t->msg[id].opcode == QHCA_TMH_RNDV, "FIN of message %u", id);
        x->fins++;
        x->qp.rq_cons++;
        CHECK(gqp_post_recv(&x->qp, 0, &sge, 1), "RQ full");
    }
    for (i = 0; i < SLOTS; i++) {
        if (x->slot[i] != NONE && t->msg[x->slot[i]].sent &&
            t->msg[x->slot[i]].done) {
            x->slot[i] = NONE;
        }
    }
}

static void send_one(struct sender *x)
{
    struct tms *t = x->t;
    uint32_t id = t->msgs, slot;
    struct msg *m = &t->msg[id];
    struct gwr w = { .opcode = QHCA_WQE_SEND, .wr_id = id, .num_sge = 1,
                     .flags = QHCA_WQE_F_SIGNALED };
    uint8_t h[32] = { 0 };

    for (slot = 0; slot < SLOTS && x->slot[slot] != NONE; slot++) {
    }
    if (slot == SLOTS || t->msgs == t->max_msgs) {
        return;
    }
    memset(m, 0, sizeof(*m));
    m->sender = (unsigned)(x - t->sender);
    m->seq = x->seq++;
    m->tag = rng_below(t->r, 6) | rng_below(t->r, 3) << 32;
    m->len = (uint32_t)rng_log(t->r, CAP);
    m->opcode = rng_pct(t->r, 45) ? QHCA_TMH_RNDV :
                rng_pct(t->r, 92) ? QHCA_TMH_EAGER : QHCA_TMH_NO_TAG;
    if ((m->tag & 0xff) == 5) {
        m->opcode = QHCA_TMH_RNDV;
    }
    m->slot = slot;
    x->slot[slot] = id;
    h[0] = m->opcode;
    put_be32(h + 4, id);
    put_be64(h + 8, m->tag);
    put_be64(h + 16, x->src.iova + slot * SLOT + HEAD);
    put_be32(h + 24, x->src.key);
    put_be32(h + 28, m->len);
    gbuf_write(&x->src.buf, slot * SLOT, h, sizeof(h));
    gbuf_fill(&x->src.buf, slot * SLOT + HEAD, t->stream + id, 0, m->len);
    w.sge[0].addr = x->src.iova + slot * SLOT;
    w.sge[0].lkey = x->src.key;
    w.sge[0].len = m->opcode == QHCA_TMH_RNDV ? 32 : 16;
    if (m->opcode != QHCA_TMH_RNDV && m->len) {
        w.num_sge = 2;
        w.sge[1] = w.sge[0];
        w.sge[1].addr += HEAD;
        w.sge[1].len = m->len;
    }
    t->msgs++;
    t->s->messages++;
    t->s->bytes += m->len;
    CHECK(gqp_post_send(&x->qp, &w), "SQ full");
    gqp_ring(&x->qp);
}

/* ---- the application ---- */

static void post_receive(struct tms *t, bool any)
{
    struct rcv *v = NULL;
    unsigned i;

    for (i = 0; i < POSTED && !v; i++) {
        if (t->rcv[i].state == R_FREE) {
            v = &t->rcv[i];
        }
    }
    if (!v) {
        cancel(t, &t->rcv[rng_below(t->r, POSTED)]);
        return;
    }
    v->mask = any || rng_pct(t->r, 10) ? 0 :
              rng_pct(t->r, 30) ? 0xffffffff : UINT64_MAX;
    v->tag = (rng_below(t->r, 6) | rng_below(t->r, 3) << 32) & v->mask;
    /*
     * Messages with tag value 5 are always rendezvous: those may be too long.
     */
    v->cap = v->mask == UINT64_MAX && (v->tag & 0xff) == 5 &&
             rng_pct(t->r, 50) ? 64 : CAP;
    v->age = t->age++;
    for (i = 0; i < t->queued; i++) {
        uint32_t id = t->queue[i];

        if (fits(v, t->msg[id].tag)) {
            memmove(t->queue + i, t->queue + i + 1,
                    (--t->queued - i) * sizeof(t->queue[0]));
            take(t, v, id);
            consume(t, id);
            return;
        }
    }
    v->state = R_SW;
}

static void open_sender(struct tms *t, struct sender *x)
{
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = 4, .sq_stride = 7, .rq_shift = 6,
        .rq_stride = 5, .scq = &x->scq, .rcq = &x->rcq,
    };
    struct gqp_init rx = {
        .type = QHCA_QPT_RC, .scq = &t->none, .rcq = &t->none,
        .srq = &t->srq,
    };
    struct gbuf_shape shape;
    struct gqp_attr a, b;
    unsigned i;

    x->t = t;
    x->g = fx_guest(t->s);
    gcq_create(&x->scq, x->g, 5, NULL, 1);
    gcq_create(&x->rcq, x->g, 7, NULL, 1);
    gqp_create(&x->qp, x->g, &in);
    gqp_create(&x->rx, t->g, &rx);
    gbuf_shape_random(&shape, t->r, SLOTS * SLOT + 64);
    gmr_create(&x->src, x->g, SLOTS * SLOT + 64, 0x7000000,
               QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_READ, &shape);
    gbuf_allow(&x->src.buf, 0, SLOTS * SLOT, GMEM_R);
    gbuf_allow(&x->src.buf, SLOTS * SLOT, 32, GMEM_RW);
    for (i = 0; i < SLOTS; i++) {
        x->slot[i] = NONE;
    }
    gqp_attr_default(&a);
    a.path_mtu = (uint8_t)rng_range(t->r, 1, 5);
    a.gid_index = (unsigned)rng_below(t->r, GUEST_GIDS);
    a.sq_psn = 0xffffff - (uint32_t)rng_below(t->r, 30);
    a.rq_psn = rng_u32(t->r) & 0xffffff;
    a.timeout = t->s->lossy ? 14 : (uint8_t)rng_range(t->r, 11, 14);
    a.min_rnr_timer = (uint8_t)rng_range(t->r, 1, 12);
    a.max_rd_atomic = (uint8_t)rng_range(t->r, 1, 4);
    b = a;
    b.sq_psn = a.rq_psn;
    b.rq_psn = a.sq_psn;
    a.dest_qpn = x->rx.qpn;
    b.dest_qpn = x->qp.qpn;
    gqp_to_init(&x->qp, &a);
    gqp_to_init(&x->rx, &b);
    gqp_to_rtr(&x->qp, t->g->n, &a);
    gqp_to_rtr(&x->rx, x->g->n, &b);
    gqp_to_rts(&x->qp, &a);
    gqp_to_rts(&x->rx, &b);
    /* one at a time: a FIN that is too early gets an RNR NAK */
    CHECK(gqp_post_recv(&x->qp, 0, &(struct qhca_sge){
              x->src.iova + SLOTS * SLOT, 32, x->src.key }, 1), "RQ full");
}

static void open_all(struct tms *t, struct sim *s)
{
    struct gbuf_shape shape[4];
    struct gtm_init ti = {
        .cq = &t->cq, .max_tags = ENTRIES, .ops = &shape[2],
        .ops_stride = 7,
    };
    unsigned i;

    memset(t, 0, sizeof(*t));
    t->s = s;
    t->r = &s->rng;
    t->g = fx_guest(s);
    t->end = s->w.now + LIMIT_NS;
    t->stream = rng_u64(t->r);
    t->max_msgs = (uint32_t)rng_range(t->r, 20, 250);
    t->msg = calloc(t->max_msgs, sizeof(*t->msg));
    CHECK(t->msg, "no memory");
    ti.ops_shift = (uint8_t)rng_range(t->r, 0, 5);
    gbuf_shape_random(&shape[0], t->r, WQES << 6);
    gbuf_shape_random(&shape[1], t->r, WQES * 4);
    gbuf_shape_random(&shape[2], t->r, 128u << ti.ops_shift);
    gcq_create(&t->cq, t->g, 8, NULL, 1);
    gcq_create(&t->none, t->g, 1, NULL, 1);
    gsrq_create_tm(&t->srq, t->g, 4, 6, &shape[0], &shape[1], &ti);
    gbuf_shape_random(&shape[3], t->r, POSTED * SLOT);
    gmr_create(&t->tags, t->g, POSTED * SLOT, 0x9000000,
               QHCA_ACCESS_LOCAL_WRITE, &shape[3]);
    gmr_create(&t->wqes, t->g, WQES * SLOT, 0xa000000,
               QHCA_ACCESS_LOCAL_WRITE, NULL);
    gbuf_allow(&t->tags.buf, 0, POSTED * SLOT, GMEM_W);
    gbuf_allow(&t->wqes.buf, 0, WQES * SLOT, GMEM_W);
    t->senders = (unsigned)rng_range(t->r, 1, MAX_SENDERS);
    for (i = 0; i < t->senders; i++) {
        open_sender(t, &t->sender[i]);
    }
}

/* Each rendezvous of the device must have sent its FIN. */
static void expect_fins(struct tms *t)
{
    unsigned i, k;

    for (i = 0; i < t->senders; i++) {
        struct sender *x = &t->sender[i];
        uint32_t want = 0;

        for (k = 0; k < t->msgs; k++) {
            want += t->msg[k].sender == i && t->msg[k].by_device;
        }
        while (x->fins < want || x->qp.sq_cons != x->qp.sq_prod) {
            tick(t);
            poll_sender(x);
        }
        CHECK(x->fins == want, "%u FINs, %u rendezvous", x->fins, want);
    }
}

static void close_all(struct tms *t)
{
    struct qhca_srqc c;
    unsigned i;

    guest_query(t->g, QHCA_CMD_QUERY_SRQ, t->srq.srqn, &c, sizeof(c));
    CHECK(c.unexp_seen == t->handled, "%u unexpected messages, not %u",
          c.unexp_seen, t->handled);
    for (i = 0; i < t->senders; i++) {
        struct sender *x = &t->sender[i];

        CHECK(gqp_destroy(&x->qp) == QHCA_ST_OK &&
              gqp_destroy(&x->rx) == QHCA_ST_OK, "DESTROY_QP");
        CHECK(gmr_destroy(&x->src) == QHCA_ST_OK, "DESTROY_MR");
        CHECK(gcq_destroy(&x->scq) == QHCA_ST_OK &&
              gcq_destroy(&x->rcq) == QHCA_ST_OK, "DESTROY_CQ");
    }
    CHECK(gsrq_destroy(&t->srq) == QHCA_ST_OK, "DESTROY_SRQ");
    CHECK(gmr_destroy(&t->tags) == QHCA_ST_OK &&
          gmr_destroy(&t->wqes) == QHCA_ST_OK, "DESTROY_MR");
    CHECK(gcq_destroy(&t->cq) == QHCA_ST_OK &&
          gcq_destroy(&t->none) == QHCA_ST_OK, "DESTROY_CQ");
    free(t->msg);
}

/* Matched entries of destroyed QPs complete with an error, once each. */
static void kill_all(struct tms *t)
{
    unsigned taken = 0, i;
    struct qhca_tm_cqe tm;
    struct qhca_cqe c;

    for (i = 0; i < t->senders; i++) {
        CHECK(gqp_state(&t->sender[i].rx, QHCA_QPS_ERR) == QHCA_ST_OK,
              "to ERR");
    }
    world_run(&t->s->w, 1000000);
    while (gcq_poll(&t->cq, &c)) {
        memcpy(&tm, &c, sizeof(tm));
        if (tm.flags & QHCA_CQE_F_SRQ) {
            if (tm.opcode == QHCA_CQE_OP_TM_RECV && !tm.status) {
                t->handled++;
            }
            gsrq_release(&t->srq, tm.wqe_index);
            continue;
        }
        if (tm.opcode != QHCA_CQE_OP_TM_RECV) {
            continue;
        }
        for (i = 0; i < POSTED; i++) {
            struct rcv *v = &t->rcv[i];

            if ((v->state == R_HW || v->state == R_TAKEN) &&
                v->handle == tm.wqe_index) {
                v->state = tm.status ||
                           tm.flags & QHCA_CQE_F_TM_DATA_VALID ? R_FREE :
                                                                 R_TAKEN;
                t->busy[v->handle & 0xffff] = v->state != R_FREE;
                break;
            }
        }
        CHECK(i < POSTED, "a completion of entry %#x", tm.wqe_index);
    }
    for (i = 0; i < POSTED; i++) {
        taken += t->rcv[i].state == R_TAKEN;
    }
    CHECK(!taken, "%u entries never ended", taken);
    /* the device agrees which numbers are free */
    for (i = 0; i < ENTRIES; i++) {
        struct gtm_op o = { .opcode = QHCA_WQE_TAG_ADD, .handle = i };
        uint32_t n = op(t, &o);

        while (!(gtm_result(&t->srq, n) & QHCA_TM_DONE)) {
            tick(t);
        }
        CHECK((gtm_result(&t->srq, n) == QHCA_TM_DONE) == !t->busy[i],
              "entry %u: %#x", i, gtm_result(&t->srq, n));
    }
}

void tm_script(struct sim *s)
{
    bool deadly = rng_pct(&s->rng, 30);
    struct tms *t = malloc(sizeof(*t));
    uint32_t until;
    unsigned i;

    CHECK(t, "no memory");
    open_all(t, s);
    until = deadly ? (uint32_t)rng_below(t->r, t->max_msgs) : t->max_msgs;
    while (t->consumed < until) {
        if (rng_pct(t->r, 50)) {
            send_one(&t->sender[rng_below(t->r, t->senders)]);
        }
        if (rng_pct(t->r, 40)) {
            post_receive(t, t->msgs == t->max_msgs);
        }
        if (rng_pct(t->r, 60)) {
            post_wqe(t);
        }
        if (rng_pct(t->r, 50)) {
            promote(t);
        }
        if (rng_pct(t->r, 40)) {
            poll_srq(t, 1 + (unsigned)rng_below(t->r, 4));
        }
        if (t->told != t->handled && rng_pct(t->r, 30)) {
            struct gtm_op o = { .opcode = QHCA_WQE_TAG_SYNC };

            with_count(t, &o);
            o.flags = rng_pct(t->r, 50) ? QHCA_WQE_F_SIGNALED : 0;
            op(t, &o);
        }
        for (i = 0; i < t->senders; i++) {
            poll_sender(&t->sender[i]);
        }
        if (rng_pct(t->r, 50)) {
            tick(t);
        }
    }
    if (deadly) {
        kill_all(t);
    } else {
        expect_fins(t);
    }
    close_all(t);
    free(t);
}
