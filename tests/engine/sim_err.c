/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Deliberate errors, one at a time, between two dedicated QPs while other QPs
 * continue undisturbed: which side gets which status, event and state; and what
 * was posted after the error is flushed, in order.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim_fx.h"

static struct fx *dropping;     /* for the filter, which has no argument */

/* ---- the faults ---- */

struct fault {
    const char *name;
    uint8_t op;                 /* of the bad WQE; 0xff: any, or see below */
    uint8_t status;             /* at the requester */
    uint8_t rstatus;            /* of the receive at the responder; 0: none */
    uint8_t revent;             /* at the responder; 0: the QP survives */
    void (*spoil)(struct fx *f, struct gwr *w);
};

static void bad_lkey(struct fx *f, struct gwr *w)
{
    w->sge[0].lkey ^= 1u << rng_below(f->r, 32);
}

static void lkey_zero(struct fx *f, struct gwr *w)
{
    (void)f;
    w->sge[0].lkey = QHCA_LKEY_RESERVED;
}

static void lkey_end(struct fx *f, struct gwr *w)
{
    uint64_t over = rng_range(f->r, 1, w->sge[0].len);

    w->sge[0].addr += FX_AREA - w->sge[0].len + over;
}

static void lkey_begin(struct fx *f, struct gwr *w)
{
    w->sge[0].addr -= rng_range(f->r, 1, 100);
}

static void lkey_wrap(struct fx *f, struct gwr *w)
{
    w->sge[0].addr = 0 - rng_range(f->r, 1, w->sge[0].len);
}

static void lkey_read_only(struct fx *f, struct gwr *w)
{
    w->sge[0].addr = f->a.src.iova;
    w->sge[0].lkey = f->a.src.key;
}

static void bad_rkey(struct fx *f, struct gwr *w)
{
    w->rkey ^= 1u << rng_below(f->r, 32);
}

static void rkey_end(struct fx *f, struct gwr *w)
{
    w->remote_addr += FX_AREA - w->sge[0].len +
                      rng_range(f->r, 1, w->sge[0].len);
    if (w->opcode == QHCA_WQE_COMP_SWAP || w->opcode == QHCA_WQE_FETCH_ADD) {
        w->remote_addr = f->b.rem.iova + FX_AREA;
    }
}

static void rkey_wrap(struct fx *f, struct gwr *w)
{
    w->remote_addr = (0 - rng_range(f->r, 1, w->sge[0].len)) & ~7ULL;
}

static void rkey_no_right(struct fx *f, struct gwr *w)
{
    w->rkey = f->b.dst.key;
    w->remote_addr = f->b.dst.iova;
}

static void misaligned(struct fx *f, struct gwr *w)
{
    w->remote_addr += rng_range(f->r, 1, 7);
}

static void bad_opcode(struct fx *f, struct gwr *w)
{
    static const uint8_t bad[] = { 0x03, 0x07, 0x0b, 0x11, 0x1c, 0x2f, 0x3f,
                                   QHCA_WQE_ETH_SEND, 0x80, 0xff };

    w->opcode = bad[rng_below(f->r, sizeof(bad))];
}

static void bad_flags(struct fx *f, struct gwr *w)
{
    (void)f;
    w->flags |= 0x80;
}

static void inline_read(struct fx *f, struct gwr *w)
{
    static const uint8_t data[8];

    (void)f;
    w->flags |= QHCA_WQE_F_INLINE;
    w->inl = data;
    w->inl_len = 8;
}

static void too_long(struct fx *f, struct gwr *w)
{
    w->num_sge = (unsigned)rng_range(f->r, 2, 10);
    for (unsigned i = 0; i < w->num_sge; i++) {
        w->sge[i] = w->sge[0];
        w->sge[i].len = 0xffffffff;
    }
}

static void recv_small(struct fx *f, struct gwr *w)
{
    (void)f;
    w->sge[0].len = FX_RECV_CAP + 1 + (uint32_t)rng_below(f->r, 5000);
}

static void flush_end(struct fx *f, struct gwr *w)
{
    w->remote_addr += FX_AREA - w->arg0 + rng_range(f->r, 1, w->arg0);
}

static void flush_persistent(struct fx *f, struct gwr *w)
{
    (void)f;
    w->arg1 |= QHCA_FLUSH_T_PERSISTENT;
}

static void flush_bad(struct fx *f, struct gwr *w)
{
    static const uint8_t bad[] = { 0x00, 0x04, 0x21, 0x30, 0x80 };

    w->arg1 = bad[rng_below(f->r, sizeof(bad))];
}

static void flush_data(struct fx *f, struct gwr *w)
{
    (void)f;
    w->num_sge = 1;
}

static void word_length(struct fx *f, struct gwr *w)
{
    w->sge[0].len = rng_pct(f->r, 50) ? 7 : 9;
}

static const struct fault faults[] = {
    { "bad rkey", QHCA_WQE_FLUSH,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, bad_rkey },
    { "behind the remote region", QHCA_WQE_FLUSH,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, flush_end },
    { "region without remote rights", QHCA_WQE_FLUSH,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, rkey_no_right },
    { "a kind the QP does not allow", QHCA_WQE_FLUSH,
      QHCA_WC_REM_INV_REQ_ERR, 0, QHCA_EV_QP_REQ_ERR, flush_persistent },
    { "bad kind or level", QHCA_WQE_FLUSH,
      QHCA_WC_LOC_QP_OP_ERR, 0, 0, flush_bad },
    { "FLUSH with an SGE", QHCA_WQE_FLUSH,
      QHCA_WC_LOC_QP_OP_ERR, 0, 0, flush_data },
    { "bad rkey", QHCA_WQE_ATOMIC_WRITE,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, bad_rkey },
    { "region without remote rights", QHCA_WQE_ATOMIC_WRITE,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, rkey_no_right },
    { "atomic on an odd address", QHCA_WQE_ATOMIC_WRITE,
      QHCA_WC_REM_INV_REQ_ERR, 0, QHCA_EV_QP_REQ_ERR, misaligned },
    { "not a word", QHCA_WQE_ATOMIC_WRITE,
      QHCA_WC_LOC_LEN_ERR, 0, 0, word_length },
    { "bad lkey", QHCA_WQE_ATOMIC_WRITE,
      QHCA_WC_LOC_PROT_ERR, 0, 0, bad_lkey },
    { "bad rkey", QHCA_WQE_MASKED_FETCH_ADD,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, bad_rkey },
    { "atomic on an odd address", QHCA_WQE_MASKED_COMP_SWAP,
      QHCA_WC_REM_INV_REQ_ERR, 0, QHCA_EV_QP_REQ_ERR, misaligned },
    { "bad lkey", QHCA_WQE_MASKED_COMP_SWAP,
      QHCA_WC_LOC_PROT_ERR, 0, 0, bad_lkey },
    { "bad lkey", QHCA_WQE_SEND,
      QHCA_WC_LOC_PROT_ERR, 0, 0, bad_lkey },
    { "bad lkey", QHCA_WQE_RDMA_WRITE,
      QHCA_WC_LOC_PROT_ERR, 0, 0, bad_lkey },
    { "bad lkey", QHCA_WQE_RDMA_READ,
      QHCA_WC_LOC_PROT_ERR, 0, 0, bad_lkey },
    { "bad lkey", QHCA_WQE_FETCH_ADD,
      QHCA_WC_LOC_PROT_ERR, 0, 0, bad_lkey },
    { "reserved lkey", QHCA_WQE_SEND,
      QHCA_WC_LOC_PROT_ERR, 0, 0, lkey_zero },
    { "behind the region", QHCA_WQE_SEND,
      QHCA_WC_LOC_PROT_ERR, 0, 0, lkey_end },
    { "behind the region", QHCA_WQE_RDMA_READ,
      QHCA_WC_LOC_PROT_ERR, 0, 0, lkey_end },
    { "before the region", QHCA_WQE_RDMA_WRITE,
      QHCA_WC_LOC_PROT_ERR, 0, 0, lkey_begin },
    { "around the end of all addresses", QHCA_WQE_SEND,
      QHCA_WC_LOC_PROT_ERR, 0, 0, lkey_wrap },
    { "READ into a read-only region", QHCA_WQE_RDMA_READ,
      QHCA_WC_LOC_PROT_ERR, 0, 0, lkey_read_only },
    { "atomic into a read-only region", QHCA_WQE_COMP_SWAP,
      QHCA_WC_LOC_PROT_ERR, 0, 0, lkey_read_only },
    { "bad rkey", QHCA_WQE_RDMA_WRITE,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, bad_rkey },
    { "bad rkey", QHCA_WQE_RDMA_WRITE_IMM,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, bad_rkey },
    { "bad rkey", QHCA_WQE_RDMA_READ,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, bad_rkey },
    { "bad rkey", QHCA_WQE_COMP_SWAP,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, bad_rkey },
    { "behind the remote region", QHCA_WQE_RDMA_WRITE,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, rkey_end },
    { "behind the remote region", QHCA_WQE_RDMA_READ,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, rkey_end },
    { "behind the remote region", QHCA_WQE_FETCH_ADD,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, rkey_end },
    { "around the end of all remote addresses", QHCA_WQE_RDMA_WRITE,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, rkey_wrap },
    { "region without remote rights", QHCA_WQE_RDMA_WRITE,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, rkey_no_right },
    { "region without remote rights", QHCA_WQE_RDMA_READ,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, rkey_no_right },
    { "region without remote rights", QHCA_WQE_FETCH_ADD,
      QHCA_WC_REM_ACCESS_ERR, 0, QHCA_EV_QP_ACCESS_ERR, rkey_no_right },
    { "atomic on an odd address", QHCA_WQE_FETCH_ADD,
      QHCA_WC_REM_INV_REQ_ERR, 0, QHCA_EV_QP_REQ_ERR, misaligned },
    { "bad opcode", QHCA_WQE_SEND,
      QHCA_WC_LOC_QP_OP_ERR, 0, 0, bad_opcode },
    { "bad flags", QHCA_WQE_SEND,
      QHCA_WC_LOC_QP_OP_ERR, 0, 0, bad_flags },
    { "inline READ", QHCA_WQE_RDMA_READ,
      QHCA_WC_LOC_QP_OP_ERR, 0, 0, inline_read },
    { "message too long", QHCA_WQE_SEND,
      QHCA_WC_LOC_LEN_ERR, 0, 0, too_long },
    { "receive too small", QHCA_WQE_SEND,
      QHCA_WC_REM_INV_REQ_ERR, QHCA_WC_LOC_LEN_ERR, 0xff, recv_small },
    { "receive too small", QHCA_WQE_SEND_IMM,
      QHCA_WC_REM_INV_REQ_ERR, QHCA_WC_LOC_LEN_ERR, 0xff, recv_small },
};

/* Valid requests, an invalid one, valid ones again. */
static void run_fault(struct sim *s, const struct fault *ft)
{
    unsigned before = (unsigned)rng_below(&s->rng, 8);
    unsigned after = (unsigned)rng_below(&s->rng, 8), i;
    uint32_t ok = 0, events, bad;
    char name[100];
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    snprintf(name, sizeof(name), "%s (opcode %#x)", ft->name, ft->op);
    fx_connect(&f);
    for (i = 0; i < 20; i++) {
        fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    }
    fx_post_good(&f, before);
    bad = f.a.qp.sq_prod;
    w = fx_good_wr(&f, ft->op, (uint32_t)rng_range(f.r, 1, FX_RECV_CAP));
    ft->spoil(&f, &w);
    fx_post(&f, &w);
    fx_post_good(&f, after);
    for (i = 0; i < before; i++) {
        ok += f.wr[i].recv;
    }
    events = fx_async(&f.b, ft->revent);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, name, bad, ft->status);
    CHECK(fx_state(&f.a) == QHCA_QPS_ERR, "%s: requester in state %u", name,
          fx_state(&f.a));
    fx_expect_recvs(&f, name, ok, ft->rstatus, ft->revent != 0);
    CHECK(fx_state(&f.b) == (ft->revent ? QHCA_QPS_ERR : QHCA_QPS_RTS),
          "%s: responder in state %u", name, fx_state(&f.b));
    if (ft->revent && ft->revent != 0xff) {
        CHECK(fx_async(&f.b, ft->revent) == events + 1,
              "%s: event %#x has not come", name, ft->revent);
    }
    fx_close(&f);
}

/*
 * The peer's QP forbids what the region allows: for such a QP the request is
 * invalid (IBA 9.7.4.1.2), whatever its key.
 */
static void run_qp_access(struct sim *s)
{
    static const uint8_t ops[] = { QHCA_WQE_RDMA_WRITE, QHCA_WQE_RDMA_READ,
                                   QHCA_WQE_FETCH_ADD, QHCA_WQE_FLUSH,
                                   QHCA_WQE_ATOMIC_WRITE,
                                   QHCA_WQE_MASKED_COMP_SWAP };
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    f.battr.access = 0;
    fx_connect(&f);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    w = fx_good_wr(&f, QHCA_WQE_SEND, 100);
    fx_post(&f, &w);
    w = fx_good_wr(&f, ops[rng_below(f.r, sizeof(ops))], 1000);
    fx_post(&f, &w);
    fx_post_good(&f, 2);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "QP without remote rights", 1,
                    QHCA_WC_REM_INV_REQ_ERR);
    fx_expect_recvs(&f, "QP without remote rights", 1, 0, true);
    fx_close(&f);
}

/* The receive buffer is invalid. */
static void run_bad_recv(struct sim *s)
{
    unsigned before = (unsigned)rng_below(&s->rng, 6), i, kind;
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    fx_connect(&f);
    for (i = 0; i < before; i++) {
        fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
        w = fx_good_wr(&f, QHCA_WQE_SEND,
                       (uint32_t)rng_below(f.r, FX_RECV_CAP));
        fx_post(&f, &w);
    }
    kind = (unsigned)rng_below(f.r, 2);
    fx_post_recv(&f, FX_RECV_CAP, kind ? f.b.src.key : f.b.dst.key ^ 0x100);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    w = fx_good_wr(&f, QHCA_WQE_SEND, (uint32_t)rng_range(f.r, 1, FX_RECV_CAP));
    fx_post(&f, &w);
    fx_post_good(&f, 3);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "bad receive", before, QHCA_WC_REM_OP_ERR);
    fx_expect_recvs(&f, "bad receive", before, QHCA_WC_LOC_PROT_ERR, true);
    CHECK(fx_state(&f.b) == QHCA_QPS_ERR, "responder lives");
    fx_close(&f);
}

/* A receive WQE with more SGEs than its slot holds. */
static void run_recv_sges(struct sim *s)
{
    uint16_t n = (uint16_t)rng_range(&s->rng, 4, 65535);
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    fx_connect(&f);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    gqp_rq_poke(&f.b.qp, 0, 8, &n, 2);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    w = fx_good_wr(&f, QHCA_WQE_SEND, 10);
    fx_post(&f, &w);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "receive with too many SGEs", 0, QHCA_WC_REM_OP_ERR);
    fx_expect_recvs(&f, "receive with too many SGEs", 0,
                    QHCA_WC_LOC_QP_OP_ERR, true);
    fx_close(&f);
}

static void run_send_sges(struct sim *s)
{
    bool inl = rng_pct(&s->rng, 50);
    /* a slot of 256 bytes: 208 after the header */
    uint16_t n = (uint16_t)rng_range(&s->rng, inl ? 209 : 14, 65535);
    uint8_t flags = inl ? QHCA_WQE_F_INLINE : 0;
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    fx_connect(&f);
    fx_post_good(&f, 0);
    w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 100);
    fx_post(&f, &w);
    fx_post(&f, &w);
    gqp_sq_poke(&f.a.qp, 1, 2, &n, 2);
    gqp_sq_poke(&f.a.qp, 1, 1, &flags, 1);
    fx_post_good(&f, 2);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "too many SGEs", 1, QHCA_WC_LOC_QP_OP_ERR);
    fx_close(&f);
}

static void run_rnr(struct sim *s)
{
    unsigned before = (unsigned)rng_below(&s->rng, 4), i;
    static const uint8_t ops[] = { QHCA_WQE_SEND, QHCA_WQE_RDMA_WRITE_IMM };
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    f.attr.rnr_retry = (uint8_t)rng_below(f.r, 7);
    fx_connect(&f);
    for (i = 0; i < before; i++) {
        fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
        w = fx_good_wr(&f, QHCA_WQE_SEND, 3000);
        fx_post(&f, &w);
    }
    w = fx_good_wr(&f, ops[rng_below(f.r, 2)],
                   (uint32_t)rng_below(f.r, FX_RECV_CAP));
    fx_post(&f, &w);
    fx_post_good(&f, 3);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "RNR", before, QHCA_WC_RNR_RETRY_EXC_ERR);
    fx_expect_recvs(&f, "RNR", before, 0, false);
    CHECK(fx_state(&f.b) == QHCA_QPS_RTS, "RNR: responder in state %u",
          fx_state(&f.b));
    fx_close(&f);
}

static bool drop_pair(struct world *w, unsigned src, uint8_t *frame,
                      size_t *len)
{
    char text[256];
    unsigned qpn = 0;
    const char *p;

    (void)src;
    (void)w;
    if (!dropping || !dropping->drop) {
        return true;
    }
    pkt_describe(text, sizeof(text), frame, *len);
    p = strstr(text, "qpn ");
    if (p) {
        sscanf(p, "qpn %x", &qpn);
    }
    return qpn != dropping->b.qp.qpn ||
           memcmp(frame, dropping->b.g->n->mac, 6);
}

/* The peer is silent. */
static void run_silence(struct sim *s)
{
    unsigned before = (unsigned)rng_below(&s->rng, 4), i;
    uint64_t t0, one;
    struct gwr w;
    struct fx f;
    uint32_t bad;

    fx_open(&f, s);
    f.attr.retry_cnt = (uint8_t)rng_below(f.r, 8);
    f.attr.timeout = (uint8_t)rng_range(f.r, 9, 11);
    fx_connect(&f);
    for (i = 0; i < before; i++) {
        w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 3000);
        w.flags = QHCA_WQE_F_SIGNALED;
        fx_post(&f, &w);
    }
    if (before) {
        gqp_ring(&f.a.qp);
        fx_expect_sends(&f, "silence", before, QHCA_WC_SUCCESS);
    }
    bad = f.a.qp.sq_prod;
    if (f.a.g == f.b.g) {
        /* its own packets cannot be lost: remove the peer */
        fx_destroy_qp(&f.b);
    } else {
        f.drop = true;
        dropping = &f;
        s->w.wire.filter = drop_pair;
    }
    fx_post_good(&f, 1 + (unsigned)rng_below(f.r, 5));
    t0 = s->w.now;
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "silence", bad, QHCA_WC_RETRY_EXC_ERR);
    one = 4096ULL << f.attr.timeout;
    CHECK(s->w.now - t0 >= one * (f.attr.retry_cnt + 1u),
          "gave up after %" PRIu64 " ns: %u retries of %" PRIu64 " ns",
          s->w.now - t0, f.attr.retry_cnt, one);
    CHECK(s->w.now - t0 <= 4 * one * (f.attr.retry_cnt + 1u) + 2000000,
          "gave up only after %" PRIu64 " ns: %u retries of %" PRIu64 " ns",
          s->w.now - t0, f.attr.retry_cnt, one);
    CHECK(fx_state(&f.a) == QHCA_QPS_ERR, "lives");
    dropping = NULL;
    s->w.wire.filter = NULL;
    fx_close(&f);
}

/* The table of the SQ has a hole. */
static void run_bad_table(struct sim *s)
{
    struct gbuf_shape flat = gbuf_flat4k;
    uint64_t hole = 0, at, old;
    struct gwr w;
    struct fx f;
    uint32_t i, n;
    uint8_t st;

    fx_open(&f, s);
    /* a new requester, with 4 pages of WQEs in a flat table */
    fx_destroy_qp(&f.a);
    f.a.destroyed = false;
    gqp_create(&f.a.qp, f.a.g, &(struct gqp_init){
        .type = QHCA_QPT_RC, .sq_shift = FX_DEPTH_SHIFT, .sq_stride = 9,
        .rq_shift = 1, .rq_stride = 6, .sq = &flat, .scq = &f.a.scq,
        .rcq = &f.a.rcq });
    f.battr.dest_qpn = f.a.qp.qpn;
    fx_connect(&f);
    n = 8 * (uint32_t)rng_range(f.r, 1, 3);     /* first WQE of a page */
    at = gbuf_entry_addr(&f.a.qp.sq, (uint64_t)n << 9);
    memcpy(&old, gmem_ptr(f.a.g->m, at, 8), 8);
    if (rng_pct(f.r, 50)) {
        hole = old | QHCA_BTE_TABLE;
    }
    memcpy(gmem_ptr(f.a.g->m, at, 8), &hole, 8);
    for (i = 0; i < 30; i++) {
        w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 50);
        fx_post(&f, &w);
        if (rng_pct(f.r, 20)) {
            gqp_ring(&f.a.qp);
        }
    }
    gqp_ring(&f.a.qp);
    /* the WQE cannot be read: only its index is known */
    for (i = 0; i < 30; i++) {
        struct qhca_cqe c;

        if (i < n && !(f.wr[i].flags & QHCA_WQE_F_SIGNALED)) {
            continue;
        }
        CHECK(fx_wait(&f, &f.a.scq, &c, FX_LONG), "hole: no completion of %u",
              i);
        CHECK(c.wqe_index == i, "hole: completion of %u, want %u",
              c.wqe_index, i);
        CHECK(i < n ? c.status == QHCA_WC_SUCCESS : i == n ?
              c.status == QHCA_WC_LOC_QP_OP_ERR &&
              c.syndrome == QHCA_SYN_TABLE_INVALID :
              c.status == QHCA_WC_WR_FLUSH_ERR,
              "hole at %u: WQE %u has %s, syndrome %#x", n, i,
              sim_wc_name(c.status), c.syndrome);
    }
    f.a.qp.sq_cons = f.a.qp.sq_prod;
    CHECK(fx_state(&f.a) == QHCA_QPS_ERR, "hole: lives");
    st = gqp_state(&f.a.qp, QHCA_QPS_RESET);
    CHECK(st == QHCA_ST_OK, "to RESET: %u", st);
    memcpy(gmem_ptr(f.a.g->m, at, 8), &old, 8);
    fx_close(&f);
}

/* A region's table has a hole. */
static void run_bad_mr_table(struct sim *s)
{
    bool remote = rng_pct(&s->rng, 50);
    struct gbuf_shape flat = gbuf_flat4k;
    struct gmr mr;
    uint64_t zero = 0, at, old;
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    fx_connect(&f);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    gmr_create(&mr, remote ? f.b.g : f.a.g, FX_AREA, 1 << 20,
               QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE, &flat);
    gbuf_allow(&mr.buf, 0, FX_AREA, GMEM_RW);
    at = gbuf_entry_addr(&mr.buf, 4096);
    memcpy(&old, gmem_ptr(mr.g->m, at, 8), 8);
    memcpy(gmem_ptr(mr.g->m, at, 8), &zero, 8);
    w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 8000);
    if (remote) {
        w.remote_addr = mr.iova;
        w.rkey = mr.key;
    } else {
        w.sge[0].addr = mr.iova;
        w.sge[0].lkey = mr.key;
    }
    fx_post(&f, &w);
    fx_post_good(&f, 2);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "hole in a region", 0, remote ? QHCA_WC_REM_OP_ERR :
                    QHCA_WC_LOC_PROT_ERR);
    memcpy(gmem_ptr(mr.g->m, at, 8), &old, 8);
    CHECK(gmr_destroy(&mr) == QHCA_ST_OK, "DESTROY_MR");
    fx_close(&f);
}

/* Invalid doorbells. */
static void run_doorbells(struct sim *s)
{
    uint64_t st0[QHCA_STAT_COUNT], st1[QHCA_STAT_COUNT];
    uint32_t events, i;
    struct guest *g;
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    fx_connect(&f);
    g = f.a.g;
    w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 100);
    w.flags = QHCA_WQE_F_SIGNALED;
    fx_post(&f, &w);
    /* to no object, through another's page, at a wrong offset */
    guest_stats(g, st0);
    guest_doorbell(g, g->uar, QHCA_DB_SQ, 0xfffff0 | 1ULL << 32);
    guest_doorbell(g, 0, QHCA_DB_SQ, f.a.qp.qpn | 1ULL << 32);
    guest_doorbell(g, g->uar, 0x100, f.a.qp.qpn | 1ULL << 32);
    guest_doorbell(g, g->uar, QHCA_DB_EQ, 1 | QHCA_DB_EQ_ARM);
    node_db_write(g->n, ((uint64_t)g->uar << g->db_shift) + QHCA_DB_SQ,
                  f.a.qp.qpn, 4);
    node_db_write(g->n, ((uint64_t)g->uar << g->db_shift) + 4, f.a.qp.qpn,
                  8);
    guest_stats(g, st1);
    CHECK(st1[QHCA_STAT_DB_BAD_OBJECT] == st0[QHCA_STAT_DB_BAD_OBJECT] + 1,
          "bad object not counted");
    CHECK(st1[QHCA_STAT_DB_BAD_OWNER] + st1[QHCA_STAT_DB_BAD_ACCESS] ==
          st0[QHCA_STAT_DB_BAD_OWNER] + st0[QHCA_STAT_DB_BAD_ACCESS] + 5,
          "bad owner %u, bad access %u",
          (unsigned)(st1[QHCA_STAT_DB_BAD_OWNER] -
                     st0[QHCA_STAT_DB_BAD_OWNER]),
          (unsigned)(st1[QHCA_STAT_DB_BAD_ACCESS] -
                     st0[QHCA_STAT_DB_BAD_ACCESS]));
    CHECK(fx_state(&f.a) == QHCA_QPS_RTS, "a bad doorbell harmed the QP");
    /* an index beyond the ring */
    events = fx_async(&f.a, QHCA_EV_QP_FATAL);
    i = FX_DEPTH + 1 + (uint32_t)rng_below(f.r, 1000000);
    if (f.a.qp.sq_dbrec) {
        guest_dbrec_set(g, f.a.qp.sq_dbrec, i);
    }
    guest_doorbell(g, g->uar, QHCA_DB_SQ, f.a.qp.qpn | (uint64_t)i << 32);
    CHECK(fx_state(&f.a) == QHCA_QPS_ERR, "index %u: state %u", i,
          fx_state(&f.a));
    CHECK(fx_async(&f.a, QHCA_EV_QP_FATAL) == events + 1, "no event");
    f.a.qp.sq_cons = f.a.qp.sq_prod;
    fx_close(&f);
}

/* A region is destroyed under a stream of requests. */
static void run_mr_gone(struct sim *s)
{
    bool remote = rng_pct(&s->rng, 50), read = rng_pct(&s->rng, 50);
    uint8_t op = read ? QHCA_WQE_RDMA_READ : QHCA_WQE_RDMA_WRITE;
    struct qhca_cqe c;
    struct gmr *mr;
    struct gwr w;
    struct fx f;
    uint32_t i, bad = FX_DEPTH;
    uint8_t want = remote ? QHCA_WC_REM_ACCESS_ERR : QHCA_WC_LOC_PROT_ERR;

    fx_open(&f, s);
    fx_connect(&f);
    mr = remote ? &f.b.rem : read ? &f.a.dst : &f.a.src;
    for (i = 0; i < FX_DEPTH; i++) {
        w = fx_good_wr(&f, op, (uint32_t)rng_range(f.r, 4000, FX_AREA));
        w.flags = QHCA_WQE_F_SIGNALED;
        fx_post(&f, &w);
    }
    gqp_ring(&f.a.qp);
    world_run(&s->w, rng_log(f.r, 100000));
    /* no access after this command: unmap the memory at once */
    CHECK(gmr_destroy(mr) == QHCA_ST_OK, "DESTROY_MR");
    for (i = 0; i < FX_DEPTH; i++) {
        CHECK(fx_wait(&f, &f.a.scq, &c, FX_LONG), "MR gone: WQE %u", i);
        CHECK(c.wqe_index == i, "MR gone: WQE %u, want %u", c.wqe_index, i);
        if (c.status && bad == FX_DEPTH) {
            bad = i;
            CHECK(c.status == want, "MR gone: %s, want %s",
                  sim_wc_name(c.status), sim_wc_name(want));
        } else if (bad != FX_DEPTH) {
            CHECK(c.status == QHCA_WC_WR_FLUSH_ERR, "MR gone: %s",
                  sim_wc_name(c.status));
        }
    }
    f.a.qp.sq_cons = f.a.qp.sq_prod;
    fx_close(&f);
}

/* A side is destroyed in the middle of the work. */
static void run_leave(struct sim *s)
{
    static const uint8_t states[] = { QHCA_QPS_ERR, QHCA_QPS_RESET, 0xff };
    uint8_t how = states[rng_below(&s->rng, 3)], st;
    bool remote = rng_pct(&s->rng, 50), broken = false;
    struct side *x;
    struct qhca_cqe c;
    struct gwr w;
    struct fx f;
    uint32_t i, next = 0;

    fx_open(&f, s);
    fx_connect(&f);
    x = remote ? &f.b : &f.a;
    for (i = 0; i < FX_DEPTH; i++) {
        fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    }
    fx_post_good(&f, FX_DEPTH - 1);
    w = fx_good_wr(&f, fx_some_op(&f), 100);
    w.flags |= QHCA_WQE_F_SIGNALED;     /* so that the end is reported */
    fx_post(&f, &w);
    gqp_ring(&f.a.qp);
    world_run(&s->w, rng_log(f.r, 60000));
    if (how == 0xff) {
        fx_destroy_qp(x);
    } else {
        st = gqp_state(&x->qp, how);
        CHECK(st == QHCA_ST_OK, "to state %u: status %u", how, st);
    }
    if (!remote && how != QHCA_QPS_ERR) {
        /* earlier completions are in the CQ, in order; nothing follows */
        while (gcq_poll(&f.a.scq, &c)) {
            CHECK(c.status == QHCA_WC_SUCCESS && c.wqe_index >= next,
                  "leave: WQE %u %s", c.wqe_index, sim_wc_name(c.status));
            next = c.wqe_index + 1;
        }
        world_run(&s->w, 20000000);
        CHECK(!gcq_poll(&f.a.scq, &c), "a completion after the end");
    } else {
        /* each WQE has a completion, except unsignaled successes */
        for (i = 0; i < FX_DEPTH; i++) {
            CHECK(fx_wait(&f, &f.a.scq, &c, FX_LONG),
                  "leave: no completion of %u", i);
            while (i != c.wqe_index) {
                CHECK(i < FX_DEPTH && !broken &&
                      !(f.wr[i].flags & QHCA_WQE_F_SIGNALED),
                      "leave: WQE %u missing", i);
                i++;
            }
            CHECK(c.wr_id == f.wr[i].wr_id, "leave: wr_id of %u", i);
            if (c.status == QHCA_WC_SUCCESS) {
                CHECK(!broken, "leave: success after an error");
            } else if (!broken) {
                broken = true;
                CHECK(c.status == (remote ? QHCA_WC_RETRY_EXC_ERR :
                                   QHCA_WC_WR_FLUSH_ERR),
                      "leave: first error is %s, syndrome %#x",
                      sim_wc_name(c.status), c.syndrome);
            } else {
                CHECK(c.status == QHCA_WC_WR_FLUSH_ERR, "leave: then %s",
                      sim_wc_name(c.status));
            }
        }
    }
    f.a.qp.sq_cons = f.a.qp.sq_prod;
    fx_close(&f);
}

/* Drain the send queue, then continue. */
static void run_drain(struct sim *s)
{
    struct qhca_qpc c;
    uint32_t events;
    struct fx f;
    uint8_t st;
    unsigned i;

    fx_open(&f, s);
    fx_connect(&f);
    for (i = 0; i < 20; i++) {
        fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    }
    fx_post_good(&f, 10);
    gqp_ring(&f.a.qp);
    world_run(&s->w, rng_log(f.r, 20000));
    events = fx_async(&f.a, QHCA_EV_SQ_DRAINED);
    memset(&c, 0, sizeof(c));
    c.state = QHCA_QPS_SQD;
    c.en_sqd_event = 1;
    st = gqp_modify(&f.a.qp, &c, QHCA_QP_M_STATE | QHCA_QP_M_SQD_EVENT);
    CHECK(st == QHCA_ST_OK, "to SQD: status %u", st);
    fx_post_good(&f, 5);
    gqp_ring(&f.a.qp);
    for (i = 0; i < 10000; i++) {
        if (fx_async(&f.a, QHCA_EV_SQ_DRAINED) != events) {
            break;
        }
        world_run(&s->w, 10000);
    }
    CHECK(fx_async(&f.a, QHCA_EV_SQ_DRAINED) == events + 1, "%u events",
          fx_async(&f.a, QHCA_EV_SQ_DRAINED) - events);
    guest_query(f.a.g, QHCA_CMD_QUERY_QP, f.a.qp.qpn, &c, sizeof(c));
    CHECK(c.state == QHCA_QPS_SQD && c.sq_next == c.sq_tail,
          "drained, but WQEs %u to %u are out", c.sq_tail, c.sq_next);
    st = gqp_state(&f.a.qp, QHCA_QPS_RTS);
    CHECK(st == QHCA_ST_OK, "SQD to RTS: status %u", st);
    fx_post_good(&f, 3);
    gqp_ring(&f.a.qp);
    /* "bad" is past the end: all succeed; the last one is signaled */
    i = f.a.qp.sq_prod;
    {
        struct gwr w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 1);

        w.flags = QHCA_WQE_F_SIGNALED;
        fx_post(&f, &w);
        gqp_ring(&f.a.qp);
    }
    fx_expect_sends(&f, "drain", i + 1, 0);
    fx_close(&f);
}

/* More completions than the CQ can hold. */
static void run_cq_overflow(struct sim *s)
{
    uint32_t ev_cq, ev_qp, i;
    struct qhca_cqe c;
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    fx_connect(&f);
    ev_cq = fx_async(&f.a, QHCA_EV_CQ_ERR);
    ev_qp = fx_async(&f.a, QHCA_EV_QP_FATAL);
    f.a.scq.lazy = 1000000;     /* never report a poll to the device */
    for (i = 0; i < 2 * FX_DEPTH + 3; i++) {
        w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 10);
        w.flags = QHCA_WQE_F_SIGNALED;
        fx_post(&f, &w);
        gqp_ring(&f.a.qp);
        world_run(&s->w, 200000);
        if (i < 2 * FX_DEPTH) {
            CHECK(fx_wait(&f, &f.a.scq, &c, FX_LONG), "CQE %u", i);
        }
        f.a.qp.sq_cons = f.a.qp.sq_prod;
    }
    CHECK(fx_state(&f.a) == QHCA_QPS_ERR, "overflow: state %u",
          fx_state(&f.a));
    CHECK(fx_async(&f.a, QHCA_EV_CQ_ERR) == ev_cq + 1 &&
          fx_async(&f.a, QHCA_EV_QP_FATAL) == ev_qp + 1,
          "overflow: %u CQ events, %u QP events",
          fx_async(&f.a, QHCA_EV_CQ_ERR) - ev_cq,
          fx_async(&f.a, QHCA_EV_QP_FATAL) - ev_qp);
    CHECK(!gcq_poll(&f.a.scq, &c), "a CQE was overwritten");
    fx_close(&f);
}

#define N_FAULTS (sizeof(faults) / sizeof(faults[0]))
#define N_SPECIALS (sizeof(specials) / sizeof(specials[0]))

static void (*const specials[])(struct sim *s) = {
    run_qp_access, run_bad_recv, run_recv_sges, run_send_sges, run_rnr,
    run_silence, run_bad_table, run_bad_mr_table, run_doorbells,
    run_mr_gone, run_leave, run_leave, run_leave, run_drain,
    run_cq_overflow,
};

void err_script(struct sim *s)
{
    unsigned n = 12, k;

    while (n--) {
        k = (unsigned)rng_below(&s->rng, N_FAULTS + 2 * N_SPECIALS +
                                2 * sim_extras_n);
        if (k < N_FAULTS) {
            run_fault(s, &faults[k]);
        } else if (k < N_FAULTS + 2 * N_SPECIALS) {
            specials[(k - N_FAULTS) / 2](s);
        } else {
            sim_extras[(k - N_FAULTS) / 2 - N_SPECIALS](s);
        }
    }
}
