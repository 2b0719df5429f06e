/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scripted cases besides the errors: fast registration and invalidation,
 * datagrams that fail, a receiver that does not send yet, SRQ events.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sim_fx.h"
#include "sim_mw.h"

/* ---- fast registration ---- */

static uint32_t make_fast_mr(struct guest *g, uint32_t pages)
{
    struct qhca_mpt c;

    memset(&c, 0, sizeof(c));
    c.pd = g->pd;
    c.key = 0x11;
    c.flags = QHCA_MR_F_FAST_REG;
    c.max_entries = pages;
    return guest_create(g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
}

/* Replace a side's QP with a privileged one. */
static void make_privileged(struct side *x)
{
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .flags = QHCA_QP_F_PRIVILEGED,
        .sq_shift = FX_DEPTH_SHIFT, .sq_stride = 8,
        .rq_shift = FX_DEPTH_SHIFT, .rq_stride = 6, .scq = &x->scq,
        .rcq = &x->rcq,
    };

    fx_destroy_qp(x);
    x->destroyed = false;
    gqp_create(&x->qp, x->g, &in);
}

static void must_send(struct fx *f, struct side *x, const struct gwr *w,
                      uint8_t status, const char *what)
{
    struct qhca_cqe c;

    CHECK(gqp_post_send(&x->qp, w), "full");
    gqp_ring(&x->qp);
    CHECK(fx_wait(f, &x->scq, &c, FX_LONG), "%s: no completion", what);
    CHECK(c.status == status, "%s: %s, syndrome %#x, want %s", what,
          sim_wc_name(c.status), c.syndrome, sim_wc_name(status));
    x->qp.sq_cons = c.wqe_index + 1;
}

static void fast_reg(struct sim *s)
{
    bool remote = rng_pct(&s->rng, 50);
    uint32_t key, new_key, pages = (uint32_t)rng_range(&s->rng, 1, 8);
    uint64_t table, page[8], iova, len, good = 0, i;
    struct gwr w;
    struct qhca_cqe c;
    struct gmem *m;
    struct fx f;
    uint8_t data[64], got[64];
    unsigned round;

    fx_open(&f, s);
    make_privileged(&f.a);
    make_privileged(&f.b);
    f.attr.dest_qpn = f.b.qp.qpn;
    f.battr.dest_qpn = f.a.qp.qpn;
    fx_connect(&f);
    m = f.b.g->m;
    key = make_fast_mr(f.b.g, 8);
    table = gmem_alloc(m, 64, 12, 0);
    gmem_allow(m, table, 64, GMEM_R);
    for (i = 0; i < pages; i++) {
        uint64_t e;

        page[i] = gmem_alloc(m, 4096, 12, 0);
        gmem_allow(m, page[i], 4096, GMEM_RW);
        e = page[i] | QHCA_BTE_VALID;
        memcpy(gmem_ptr(m, table + 8 * i, 8), &e, 8);
    }
    new_key = key;
    for (round = 0; round < 3; round++) {
        /* random bytes within the pages, under a new key each time */
        iova = (rng_u64(f.r) >> 8) & ~0xfffULL;
        iova += rng_below(f.r, 4096);
        len = rng_range(f.r, 1, pages * 4096 - (iova & 0xfff));
        new_key = (key & ~0xffu) | ((new_key + 1) & 0xff);
        w = (struct gwr){
            .opcode = QHCA_WQE_REG_MR, .flags = QHCA_WQE_F_SIGNALED,
            .arg0 = iova, .arg1 = len, .remote_addr = table,
            .rkey = new_key,
            .rarg = (QHCA_ACCESS_LOCAL_WRITE | QHCA_ACCESS_REMOTE_WRITE) |
                    12 << 8 | pages << 16,
        };
        must_send(&f, &f.b, &w, QHCA_WC_SUCCESS, "REG_MR");
        /* the last bytes of the region */
        i = len < sizeof(data) ? len : sizeof(data);
        pattern_bytes(round, 0, data, i);
        gbuf_write(&f.a.src.buf, 0, data, i);
        w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, (uint32_t)i);
        w.flags = QHCA_WQE_F_SIGNALED;
        w.rkey = new_key;
        w.remote_addr = iova + len - i;
        must_send(&f, &f.a, &w, QHCA_WC_SUCCESS, "WRITE through REG_MR");
        for (good = 0; good < i; good++) {
            uint64_t at = (iova & 0xfff) + len - i + good;

            memcpy(&got[good], gmem_ptr(m, page[at >> 12] + (at & 0xfff), 1),
                   1);
        }
        CHECK(!memcmp(data, got, i), "WRITE through REG_MR: wrong place");
        if (remote) {
            fx_post_recv(&f, 100, f.b.dst.key);
            w = fx_good_wr(&f, QHCA_WQE_SEND_INV,
                           (uint32_t)rng_below(f.r, 100));
            w.flags = QHCA_WQE_F_SIGNALED;
            w.imm = new_key;
            must_send(&f, &f.a, &w, QHCA_WC_SUCCESS, "SEND_INV");
            CHECK(fx_wait(&f, &f.b.rcq, &c, FX_LONG), "no receive");
            CHECK(c.status == QHCA_WC_SUCCESS &&
                  c.flags & QHCA_CQE_F_INV && c.imm == new_key &&
                  !(c.flags & QHCA_CQE_F_IMM),
                  "SEND_INV: status %u flags %#x key %#x", c.status, c.flags,
                  c.imm);
            f.b.qp.rq_cons++;
        } else {
            w = (struct gwr){ .opcode = QHCA_WQE_LOCAL_INV,
                              .flags = QHCA_WQE_F_SIGNALED |
                                       QHCA_WQE_F_FENCE, .imm = new_key };
            must_send(&f, &f.b, &w, QHCA_WC_SUCCESS, "LOCAL_INV");
        }
    }
    /* an invalid key stays invalid */
    w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 1);
    w.flags = QHCA_WQE_F_SIGNALED;
    w.rkey = new_key;
    w.remote_addr = iova;
    must_send(&f, &f.a, &w, QHCA_WC_REM_ACCESS_ERR, "WRITE after INV");
    CHECK(guest_simple(f.b.g, QHCA_CMD_DESTROY_MR, new_key) == QHCA_ST_OK,
          "DESTROY_MR of a fast registration region");
    gmem_release(m, table, 64);
    for (i = 0; i < pages; i++) {
        gmem_release(m, page[i], 4096);
    }
    fx_close(&f);
}

/* Invalidate what must not be invalidated. */
static void bad_inv(struct sim *s)
{
    bool remote = rng_pct(&s->rng, 50);
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    fx_connect(&f);
    fx_post_recv(&f, 100, f.b.dst.key);
    if (remote) {
        w = fx_good_wr(&f, QHCA_WQE_SEND_INV, 10);
        w.imm = f.b.rem.key;    /* not created for it */
        fx_post(&f, &w);
        fx_post_good(&f, 1);
        gqp_ring(&f.a.qp);
        fx_expect_sends(&f, "SEND_INV of an ordinary key", 0,
                        QHCA_WC_REM_ACCESS_ERR);
        CHECK(fx_state(&f.b) == QHCA_QPS_ERR, "responder lives");
    } else {
        w = (struct gwr){ .opcode = QHCA_WQE_LOCAL_INV,
                          .imm = f.a.rem.key };
        fx_post(&f, &w);
        fx_post_good(&f, 1);
        gqp_ring(&f.a.qp);
        fx_expect_sends(&f, "LOCAL_INV of an ordinary key", 0,
                        QHCA_WC_LOC_QP_OP_ERR);
    }
    fx_close(&f);
}

/* REG_MR is reserved for the kernel. */
static void user_reg_mr(struct sim *s)
{
    struct gwr w;
    struct fx f;
    uint32_t key;

    fx_open(&f, s);
    fx_connect(&f);
    key = make_fast_mr(f.a.g, 4);
    w = (struct gwr){ .opcode = QHCA_WQE_REG_MR, .arg1 = 4096, .rkey = key,
                      .rarg = 1 | 12 << 8 | 1 << 16 };
    fx_post(&f, &w);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "REG_MR by a user", 0, QHCA_WC_LOC_QP_OP_ERR);
    CHECK(guest_simple(f.a.g, QHCA_CMD_DESTROY_MR, key) == QHCA_ST_OK,
          "DESTROY_MR");
    fx_close(&f);
}

/* ---- datagrams that cannot be sent ---- */

static void ud_errors(struct sim *s)
{
    static const uint8_t want[] = {
        QHCA_WC_LOC_PROT_ERR, QHCA_WC_LOC_LEN_ERR, QHCA_WC_LOC_QP_OP_ERR,
        QHCA_WC_LOC_QP_OP_ERR, QHCA_WC_LOC_QP_OP_ERR, QHCA_WC_LOC_QP_OP_ERR
    };
    struct gqp_init in = {
        .type = QHCA_QPT_UD, .sq_shift = 3, .sq_stride = 8, .rq_shift = 3,
        .rq_stride = 5,
    };
    unsigned kind = (unsigned)rng_below(&s->rng, 6), i, n = 0;
    static const uint8_t inl[256];
    struct qhca_cqe c;
    struct gwr w, bad;
    struct gqp qp;
    struct fx f;
    uint8_t st;

    fx_open(&f, s);             /* for its CQs and regions */
    in.scq = &f.a.scq;
    in.rcq = &f.a.rcq;
    gqp_create(&qp, f.a.g, &in);
    gqp_to_init(&qp, &f.attr);
    gqp_to_rtr(&qp, NULL, &f.attr);
    gqp_to_rts(&qp, &f.attr);
    memset(&w, 0, sizeof(w));
    w.opcode = QHCA_WQE_SEND;
    w.flags = QHCA_WQE_F_SIGNALED;
    w.num_sge = 1;
    w.sge[0] = (struct qhca_sge){ f.a.src.iova, 100, f.a.src.key };
    guest_av(f.a.g, f.a.g->n, 0, &w.av);
    w.dest_qpn = qp.qpn;
    w.qkey = f.attr.qkey;
    bad = w;
    bad.flags = 0;
    switch (kind) {
    case 0:
        bad.sge[0].lkey ^= 0x100;
        break;
    case 1:
        bad.sge[0].len = 4097;
        break;
    case 2:
        bad.opcode = QHCA_WQE_RDMA_WRITE;
        break;
    case 3:
        bad.av.sgid_index = (uint16_t)rng_range(f.r, GUEST_GIDS, 65535);
        break;
    case 4:
        bad.flags |= 0x40;
        break;
    default:
        break;                  /* corrupted in the ring, below */
    }
    if (rng_pct(f.r, 30)) {     /* the error is at the end of inline data */
        w.flags |= QHCA_WQE_F_INLINE;
        w.inl = inl;
        w.inl_len = 100;
    }
    CHECK(gqp_post_send(&qp, &w) && gqp_post_send(&qp, &bad) &&
          gqp_post_send(&qp, &w) && gqp_post_send(&qp, &w), "full");
    if (kind == 5) {
        uint16_t sges = (uint16_t)rng_range(f.r, 11, 65535);

        gqp_sq_poke(&qp, 1, 2, &sges, 2);
    }
    gqp_ring(&qp);
    while (n < 4) {
        uint8_t must = n == 0 ? QHCA_WC_SUCCESS : n == 1 ? want[kind] :
                       QHCA_WC_WR_FLUSH_ERR;

        CHECK(fx_wait(&f, &f.a.scq, &c, FX_LONG), "UD: no completion");
        CHECK(c.wqe_index == n && c.status == must,
              "UD error %u: WQE %u has %s, syndrome %#x, want %s", kind,
              c.wqe_index, sim_wc_name(c.status), c.syndrome,
              sim_wc_name(must));
        n++;
    }
    qp.sq_cons = qp.sq_prod;
    {                           /* only the send side has stopped */
        struct qhca_qpc q;

        guest_query(f.a.g, QHCA_CMD_QUERY_QP, qp.qpn, &q, sizeof(q));
        CHECK(q.state == QHCA_QPS_SQE, "UD error %u: state %u", kind,
              q.state);
    }
    st = gqp_state(&qp, QHCA_QPS_RTS);
    CHECK(st == QHCA_ST_OK, "SQE to RTS: status %u", st);
    for (i = 0; i < 3; i++) {
        CHECK(gqp_post_send(&qp, &w), "full");
        gqp_ring(&qp);
        CHECK(fx_wait(&f, &f.a.scq, &c, FX_LONG) &&
              c.status == QHCA_WC_SUCCESS, "UD: after SQE");
        qp.sq_cons++;
    }
    st = gqp_destroy(&qp);
    CHECK(st == QHCA_ST_OK, "DESTROY_QP: status %u", st);
    fx_close(&f);
}

/*
 * Datagrams with a wrong Q_Key, or longer than the receive, are dropped and
 * counted; the QP is not affected.
 */
static void ud_drops(struct sim *s)
{
    struct gqp_init in = {
        .type = QHCA_QPT_UD, .sq_shift = 3, .sq_stride = 8, .rq_shift = 3,
        .rq_stride = 5,
    };
    struct qhca_sge sge;
    struct qhca_cqe c;
    struct gqp qp;
    struct gwr w;
    struct fx f;
    uint64_t before, after;
    uint8_t st;
    unsigned i;

    fx_open(&f, s);
    in.scq = &f.a.scq;
    in.rcq = &f.a.rcq;
    gqp_create(&qp, f.a.g, &in);
    gqp_to_init(&qp, &f.attr);
    gqp_to_rtr(&qp, NULL, &f.attr);
    gqp_to_rts(&qp, &f.attr);
    sge = (struct qhca_sge){ f.a.dst.iova, 140, f.a.dst.key };
    CHECK(gqp_post_recv(&qp, 1, &sge, 1), "full");
    memset(&w, 0, sizeof(w));
    w.opcode = QHCA_WQE_SEND;
    w.flags = QHCA_WQE_F_SIGNALED;
    w.num_sge = 1;
    guest_av(f.a.g, f.a.g->n, (unsigned)rng_below(f.r, GUEST_GIDS), &w.av);
    w.dest_qpn = qp.qpn;
    before = qhca_stat(f.a.g->n->e, QHCA_STAT_UD_DROPPED);
    for (i = 0; i < 4; i++) {
        /* wrong key, too long, valid, no receive */
        w.qkey = i == 0 ? f.attr.qkey + 1 : f.attr.qkey;
        if (i == 3) {
            w.qkey = 1U << 31 | 5;      /* means the QP's own */
        }
        w.sge[0] = (struct qhca_sge){ f.a.src.iova, i == 1 ? 101 : 100,
                                      f.a.src.key };
        CHECK(gqp_post_send(&qp, &w), "full");
        gqp_ring(&qp);
        CHECK(fx_wait(&f, &f.a.scq, &c, FX_LONG) &&
              c.status == QHCA_WC_SUCCESS, "UD: status %u", c.status);
        qp.sq_cons++;
        world_run(&s->w, 1000000);
        CHECK(gcq_poll(&f.a.rcq, &c) == (i == 2), "datagram %u", i);
        CHECK(i != 2 || (c.status == QHCA_WC_SUCCESS && c.byte_len == 140),
              "datagram: status %u, %u bytes", c.status, c.byte_len);
    }
    qp.rq_cons++;
    after = qhca_stat(f.a.g->n->e, QHCA_STAT_UD_DROPPED);
    CHECK(after == before + 3, "%" PRIu64 " counted as dropped",
          after - before);
    st = gqp_destroy(&qp);
    CHECK(st == QHCA_ST_OK, "DESTROY_QP: status %u", st);
    fx_close(&f);
}

/* ---- states ---- */

/* The responder is in RTR: it receives and reports it, and sends later. */
static void not_yet_sending(struct sim *s)
{
    struct qhca_cqe c;
    uint32_t events;
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    gqp_to_init(&f.a.qp, &f.attr);
    gqp_to_init(&f.b.qp, &f.battr);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    gqp_to_rtr(&f.a.qp, f.b.g->n, &f.attr);
    gqp_to_rtr(&f.b.qp, f.a.g->n, &f.battr);
    gqp_to_rts(&f.a.qp, &f.attr);
    events = fx_async(&f.b, QHCA_EV_COMM_EST);
    /* in RTR a doorbell is only counted */
    w = fx_good_wr(&f, QHCA_WQE_SEND, 3000);
    w.flags = QHCA_WQE_F_SIGNALED;
    fx_post(&f, &w);
    fx_post_good(&f, 4);
    w = fx_good_wr(&f, QHCA_WQE_RDMA_READ, 5000);
    w.flags = QHCA_WQE_F_SIGNALED;
    fx_post(&f, &w);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    fx_post_recv(&f, FX_RECV_CAP, f.b.dst.key);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "peer in RTR", f.a.qp.sq_prod + 1, 0);
    CHECK(fx_async(&f.b, QHCA_EV_COMM_EST) == events + 1,
          "%u COMM_EST events", fx_async(&f.b, QHCA_EV_COMM_EST) - events);
    CHECK(fx_wait(&f, &f.b.rcq, &c, FX_LONG) &&
          c.status == QHCA_WC_SUCCESS && c.byte_len == 3000,
          "peer in RTR: receive");
    CHECK(fx_state(&f.b) == QHCA_QPS_RTR, "state %u", fx_state(&f.b));
    gqp_to_rts(&f.b.qp, &f.battr);
    fx_close(&f);
}

/* ---- shared receive queues ---- */

static void srq_events(struct sim *s)
{
    uint32_t limit_events, last_events, wqe, i;
    struct qhca_srqc m = { .limit = 3 };
    struct gcmd cmd = { .op = QHCA_CMD_MODIFY_SRQ, .in = &m,
                        .in_len = sizeof(m), .mask = QHCA_SRQ_M_LIMIT };
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = 2, .sq_stride = 6,
    };
    struct gsrq srq;
    struct qhca_cqe c;
    struct gwr w;
    struct fx f;
    uint8_t st;

    fx_open(&f, s);
    fx_destroy_qp(&f.b);
    f.b.destroyed = false;
    gsrq_create(&srq, f.b.g, 3, 5, NULL, &gbuf_flat4k);
    in.scq = &f.b.scq;
    in.rcq = &f.b.rcq;
    in.srq = &srq;
    gqp_create(&f.b.qp, f.b.g, &in);
    f.attr.dest_qpn = f.b.qp.qpn;
    fx_connect(&f);
    CHECK(gsrq_destroy(&srq) == QHCA_ST_BUSY, "SRQ in use");
    for (i = 0; i < 6; i++) {
        struct qhca_sge sge = { f.b.dst.iova + 1000 * i, 1000,
                                f.b.dst.key };

        CHECK(gsrq_post(&srq, i, &sge, 1, &wqe), "full");
    }
    limit_events = fx_async(&f.b, QHCA_EV_SRQ_LIMIT);
    last_events = fx_async(&f.b, QHCA_EV_LAST_WQE);
    cmd.obj = srq.srqn;
    guest_must(f.b.g, &cmd);
    for (i = 0; i < 5; i++) {
        w = fx_good_wr(&f, QHCA_WQE_SEND, 900);
        w.flags = QHCA_WQE_F_SIGNALED;
        must_send(&f, &f.a, &w, QHCA_WC_SUCCESS, "SEND to an SRQ");
        CHECK(fx_wait(&f, &f.b.rcq, &c, FX_LONG) && !c.status &&
              c.wr_id == i && c.flags & QHCA_CQE_F_SRQ, "SRQ receive %u", i);
        gsrq_release(&srq, c.wqe_index);
        world_run(&s->w, 100000);
        /* 3 are left after the third: fewer than 3 after the fourth */
        CHECK(fx_async(&f.b, QHCA_EV_SRQ_LIMIT) - limit_events == (i >= 3),
              "SRQ limit: %u events after %u receives",
              fx_async(&f.b, QHCA_EV_SRQ_LIMIT) - limit_events, i + 1);
    }
    st = gqp_state(&f.b.qp, QHCA_QPS_ERR);
    CHECK(st == QHCA_ST_OK, "to ERR: status %u", st);
    world_run(&s->w, 100000);
    CHECK(fx_async(&f.b, QHCA_EV_LAST_WQE) == last_events + 1,
          "LAST_WQE: %u events",
          fx_async(&f.b, QHCA_EV_LAST_WQE) - last_events);
    CHECK(!gcq_poll(&f.b.rcq, &c), "an SRQ's WQE was flushed");
    fx_destroy_qp(&f.b);
    CHECK(gsrq_destroy(&srq) == QHCA_ST_OK, "DESTROY_SRQ");
    fx_close(&f);
}

/* The index ring names a WQE that does not exist. */
static void srq_bad_index(struct sim *s)
{
    struct gqp_init in = {
        .type = QHCA_QPT_RC, .sq_shift = 2, .sq_stride = 6,
    };
    struct qhca_srqc state;
    uint32_t events, wqe, bad = 8 + rng_u32(&s->rng) % 1000000;
    struct gsrq srq;
    struct gwr w;
    struct fx f;

    fx_open(&f, s);
    fx_destroy_qp(&f.b);
    f.b.destroyed = false;
    gsrq_create(&srq, f.b.g, 3, 5, NULL, NULL);
    in.scq = &f.b.scq;
    in.rcq = &f.b.rcq;
    in.srq = &srq;
    gqp_create(&f.b.qp, f.b.g, &in);
    f.attr.dest_qpn = f.b.qp.qpn;
    fx_connect(&f);
    events = fx_async(&f.b, QHCA_EV_SRQ_ERR);
    CHECK(gsrq_post(&srq, 1, &(struct qhca_sge){ f.b.dst.iova, 1000,
                                                 f.b.dst.key }, 1, &wqe),
          "full");
    gbuf_write(&srq.idx, 0, &bad, 4);
    w = fx_good_wr(&f, QHCA_WQE_SEND, 100);
    fx_post(&f, &w);
    gqp_ring(&f.a.qp);
    fx_expect_sends(&f, "bad SRQ index", 0, QHCA_WC_REM_OP_ERR);
    CHECK(fx_state(&f.b) == QHCA_QPS_ERR, "bad SRQ index: lives");
    CHECK(fx_async(&f.b, QHCA_EV_SRQ_ERR) == events + 1, "no event");
    guest_query(f.b.g, QHCA_CMD_QUERY_SRQ, srq.srqn, &state, sizeof(state));
    CHECK(state.state == QHCA_SRQ_ERR, "SRQ in state %u", state.state);
    fx_destroy_qp(&f.b);
    CHECK(gsrq_destroy(&srq) == QHCA_ST_OK, "DESTROY_SRQ");
    fx_close(&f);
}

void (*const sim_extras[])(struct sim *s) = {
    fast_reg, bad_inv, user_reg_mr, ud_errors, ud_drops, not_yet_sending,
    srq_events, srq_bad_index, sim_windows, sim_bad_bind, sim_rereg,
};
const unsigned sim_extras_n = sizeof(sim_extras) / sizeof(sim_extras[0]);
