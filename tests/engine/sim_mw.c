/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Scripted cases of memory that changes under traffic: windows, and modified
 * regions.
 */
#include <string.h>

#include "sim_mw.h"

#define LW QHCA_ACCESS_LOCAL_WRITE
#define RW QHCA_ACCESS_REMOTE_WRITE
#define RR QHCA_ACCESS_REMOTE_READ
#define AREA 9000u

/* One signaled request by @x, and its completion. */
static void must_send(struct fx *f, struct side *x, const struct gwr *w,
                      uint8_t status, const char *what)
{
    struct gwr copy = *w;
    struct qhca_cqe c;

    copy.flags |= QHCA_WQE_F_SIGNALED;
    CHECK(gqp_post_send(&x->qp, &copy), "full");
    gqp_ring(&x->qp);
    CHECK(fx_wait(f, &x->scq, &c, FX_LONG), "%s: no completion", what);
    CHECK(c.status == status, "%s: %s, syndrome %#x, want %s", what,
          sim_wc_name(c.status), c.syndrome, sim_wc_name(status));
    x->qp.sq_cons = c.wqe_index + 1;
}

struct window {
    struct gmr mr;
    uint32_t key;
    bool type2, zero;
    uint64_t from, len;
};

/* Bind it to some range under the next key; only that range may be accessed. */
static void bind(struct fx *f, struct window *win)
{
    struct gwr w = { .opcode = QHCA_WQE_BIND_MW };
    uint32_t key = (win->key & ~0xffu) | ((win->key + 1) & 0xff);

    win->zero = win->type2 && rng_pct(f->r, 50);
    win->from = rng_below(f->r, AREA);
    win->len = rng_range(f->r, 1, AREA - win->from);
    gbuf_allow(&win->mr.buf, win->from, win->len, GMEM_RW);
    w.arg0 = win->mr.iova + win->from;
    w.arg1 = win->len;
    w.remote_addr = win->mr.key;
    w.rkey = key;
    w.rarg = RW | RR | (win->zero ? QHCA_BIND_ZERO_BASED : 0);
    must_send(f, &f->b, &w, QHCA_WC_SUCCESS, "BIND_MW");
    win->key = key;
}

/* The peer writes and reads the last bytes of the window. */
static void use(struct fx *f, const struct window *win, unsigned id)
{
    uint64_t n = win->len < 3000 ? win->len : 3000;
    uint64_t at = win->len - n;
    struct gwr w = fx_good_wr(f, QHCA_WQE_RDMA_WRITE, (uint32_t)n);

    gbuf_fill(&f->a.src.buf, 0, id, 0, n);
    w.rkey = win->key;
    w.remote_addr = (win->zero ? 0 : win->mr.iova + win->from) + at;
    must_send(f, &f->a, &w, QHCA_WC_SUCCESS, "WRITE through a window");
    CHECK(gbuf_verify(&win->mr.buf, win->from + at, id, 0, n) == n,
          "WRITE through a window: wrong place");
    w.opcode = QHCA_WQE_RDMA_READ;
    w.sge[0].addr = f->a.dst.iova;
    w.sge[0].lkey = f->a.dst.key;
    must_send(f, &f->a, &w, QHCA_WC_SUCCESS, "READ through a window");
    CHECK(gbuf_verify(&f->a.dst.buf, 0, id, 0, n) == n,
          "READ through a window: wrong bytes");
}

/* Type 2: by its own QP, or by the peer. */
static void invalidate(struct fx *f, const struct window *win)
{
    struct gwr w = { .opcode = QHCA_WQE_LOCAL_INV, .imm = win->key };
    struct qhca_cqe c;

    if (rng_pct(f->r, 50)) {
        must_send(f, &f->b, &w, QHCA_WC_SUCCESS, "LOCAL_INV of a window");
        return;
    }
    fx_post_recv(f, 100, f->b.dst.key);
    w = fx_good_wr(f, QHCA_WQE_SEND_INV, (uint32_t)rng_below(f->r, 100));
    w.imm = win->key;
    must_send(f, &f->a, &w, QHCA_WC_SUCCESS, "SEND_INV of a window");
    CHECK(fx_wait(f, &f->b.rcq, &c, FX_LONG), "no receive");
    CHECK(c.status == QHCA_WC_SUCCESS && (c.flags & QHCA_CQE_F_INV) &&
          c.imm == win->key, "SEND_INV: status %u flags %#x key %#x",
          c.status, c.flags, c.imm);
    f->b.qp.rq_cons++;
}

void sim_windows(struct sim *s)
{
    struct gwr unbind = { .opcode = QHCA_WQE_BIND_MW };
    struct qhca_mpt c = { 0 };
    struct gbuf_shape shape;
    struct window win = { 0 };
    struct gwr w;
    struct fx f;
    unsigned round;

    fx_open(&f, s);
    fx_connect(&f);
    win.type2 = rng_pct(f.r, 50);
    gbuf_shape_random(&shape, f.r, AREA);
    gmr_create(&win.mr, f.b.g, AREA, rng_u64(f.r) >> 9,
               LW | QHCA_ACCESS_MW_BIND, &shape);
    c.pd = f.b.g->pd;
    c.flags = win.type2 ? QHCA_MR_F_MW2 : QHCA_MR_F_MW1;
    win.key = guest_create(f.b.g, QHCA_CMD_CREATE_MW, &c, sizeof(c));
    for (round = 0; round < 4; round++) {
        bind(&f, &win);
        use(&f, &win, round);
        CHECK(guest_simple(f.b.g, QHCA_CMD_DESTROY_MR, win.mr.key) ==
              QHCA_ST_BUSY, "DESTROY_MR of a region with a window");
        if (win.type2) {
            invalidate(&f, &win);
        }
        gbuf_deny(&win.mr.buf, 0, AREA, GMEM_RW);
    }
    if (!win.type2) {
        unbind.rkey = win.key;
        must_send(&f, &f.b, &unbind, QHCA_WC_SUCCESS, "BIND_MW to nothing");
    }
    w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 1);
    w.rkey = win.key;
    w.remote_addr = win.zero ? 0 : win.mr.iova + win.from;
    must_send(&f, &f.a, &w, QHCA_WC_REM_ACCESS_ERR, "WRITE without a window");
    CHECK(guest_simple(f.b.g, QHCA_CMD_DESTROY_MR, win.key) == QHCA_ST_OK &&
          gmr_destroy(&win.mr) == QHCA_ST_OK, "DESTROY_MR after the window");
    fx_close(&f);
}

/* An invalid bind moves the QP to ERR, with a status of its own. */
void sim_bad_bind(struct sim *s)
{
    struct gwr w = { .opcode = QHCA_WQE_BIND_MW, .arg1 = 1 };
    struct qhca_cqe c;
    struct fx f;

    fx_open(&f, s);
    fx_connect(&f);
    w.flags = QHCA_WQE_F_SIGNALED;
    w.arg0 = f.b.rem.iova;
    w.remote_addr = f.b.rem.key;
    w.rkey = f.b.rem.key;               /* a region, not a window */
    must_send(&f, &f.b, &w, QHCA_WC_MW_BIND_ERR, "BIND_MW of a region");
    CHECK(fx_state(&f.b) == QHCA_QPS_ERR, "still alive after a bad bind");
    while (fx_wait(&f, &f.b.scq, &c, 1000)) {
        f.b.qp.sq_cons = c.wqe_index + 1;
    }
    fx_close(&f);
}

/*
 * A region is given other memory again and again while a peer writes to it: no
 * request fails, none accesses memory that was removed, and data written after
 * the command is in the new memory.
 */
void sim_rereg(struct sim *s)
{
    struct gmr *mr;
    struct fx f;
    unsigned round, i, n = 0;
    uint64_t at;

    fx_open(&f, s);
    fx_connect(&f);
    mr = &f.b.rem;
    for (round = 0; round < 6; round++) {
        uint32_t first = f.a.qp.sq_prod;
        struct qhca_mpt m = { 0 };
        struct gbuf_shape shape;
        struct qhca_cqe c;
        struct gbuf to;

        for (i = 0; i < FX_DEPTH / 2; i++) {
            struct gwr w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE,
                                      (uint32_t)rng_below(f.r, 6000));

            w.flags = QHCA_WQE_F_SIGNALED;
            CHECK(gqp_post_send(&f.a.qp, &w), "full");
        }
        gqp_ring(&f.a.qp);
        world_run(&s->w, rng_log(f.r, 60000));
        gbuf_shape_random(&shape, f.r, FX_AREA);
        gbuf_make(&to, f.b.g->m, FX_AREA, &shape, false, mr->iova, f.r);
        gbuf_allow(&to, 0, FX_AREA, GMEM_RW);
        m.buf = to.d;
        m.iova = mr->iova;
        m.len = mr->len;
        guest_must(f.b.g, &(struct gcmd){ .op = QHCA_CMD_MODIFY_MR,
                   .obj = mr->key, .in = &m, .in_len = sizeof(m),
                   .mask = QHCA_MR_M_TRANS });
        gbuf_free(&mr->buf);
        mr->buf = to;
        for (i = 0; i < FX_DEPTH / 2; i++) {
            CHECK(fx_wait(&f, &f.a.scq, &c, FX_LONG), "no completion");
            CHECK(c.status == QHCA_WC_SUCCESS, "WRITE while its region "
                  "changes: %s", sim_wc_name(c.status));
            f.a.qp.sq_cons = c.wqe_index + 1;
        }
        CHECK(f.a.qp.sq_cons == first + FX_DEPTH / 2, "completions");
        {
            struct gwr w = fx_good_wr(&f, QHCA_WQE_RDMA_WRITE, 500);

            at = rng_below(f.r, FX_AREA - 500);
            gbuf_fill(&f.a.src.buf, 0, ++n, 0, 500);
            w.remote_addr += at;
            must_send(&f, &f.a, &w, QHCA_WC_SUCCESS, "WRITE afterwards");
            CHECK(gbuf_verify(&mr->buf, at, n, 0, 500) == 500,
                  "WRITE after MODIFY_MR: wrong place");
        }
    }
    fx_close(&f);
}
