/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory windows, and modified regions. */
#include "unit.h"
#include "emit.h"

#define LW QHCA_ACCESS_LOCAL_WRITE
#define RW QHCA_ACCESS_REMOTE_WRITE
#define RR QHCA_ACCESS_REMOTE_READ
#define RA QHCA_ACCESS_REMOTE_ATOMIC
#define BIND QHCA_ACCESS_MW_BIND
#define IOVA 0x7000123ULL
#define LEN 20000ULL

struct mw_world {
    struct unit *u;
    struct gcq cq;
    struct gqp qp[2];
    struct gmr mr;
};

static void open_qp(struct mw_world *w, unsigned i)
{
    gqp_create(&w->qp[i], &w->u->g, &(struct gqp_init){
        .type = QHCA_QPT_RC, .sq_shift = 2, .sq_stride = 6, .rq_shift = 2,
        .rq_stride = 6, .scq = &w->cq, .rcq = &w->cq,
    });
}

static void open_world(struct mw_world *w, struct unit *u, uint32_t access)
{
    struct gbuf_shape shape;

    w->u = u;
    gcq_create(&w->cq, &u->g, 4, NULL, 1);
    open_qp(w, 0);
    open_qp(w, 1);
    gbuf_shape_random(&shape, &u->g.rng, LEN);
    gmr_create(&w->mr, &u->g, LEN, IOVA, access, &shape);
    gbuf_allow(&w->mr.buf, 0, LEN, GMEM_RW);
}

static void close_world(struct mw_world *w)
{
    assert_int_equal(gqp_destroy(&w->qp[0]), QHCA_ST_OK);
    assert_int_equal(gqp_destroy(&w->qp[1]), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&w->mr), QHCA_ST_OK);
    assert_int_equal(gcq_destroy(&w->cq), QHCA_ST_OK);
}

static uint32_t make_window(struct mw_world *w, uint8_t type)
{
    struct qhca_mpt c = { .flags = type, .pd = w->u->g.pd, .key = 0x44 };
    uint32_t key = guest_create(&w->u->g, QHCA_CMD_CREATE_MW, &c, sizeof(c));

    assert_int_equal(key & 0xff, 0x44);
    return key;
}

static uint8_t destroy(struct mw_world *w, uint32_t key)
{
    return guest_simple(&w->u->g, QHCA_CMD_DESTROY_MR, key);
}

static uint8_t bind(struct mw_world *w, unsigned qp, uint32_t key,
                    uint32_t mr, uint64_t addr, uint64_t len, uint32_t flags)
{
    return unit_bind(w->u, w->qp[qp].qpn, key, mr, addr, len, flags);
}

static uint8_t check(struct mw_world *w, unsigned qp, uint32_t key,
                     uint64_t addr, uint64_t len, uint32_t access)
{
    return qhca_mr_check(w->u->e, w->u->g.pd, false, key, addr, len, access,
                         w->qp[qp].qpn);
}

static uint8_t invalidate(struct mw_world *w, unsigned qp, uint32_t key)
{
    return qhca_mr_invalidate(w->u->e, w->u->g.pd, key, w->qp[qp].qpn);
}

static struct qhca_mpt query(struct mw_world *w, uint32_t key)
{
    struct qhca_mpt m;

    guest_query(&w->u->g, QHCA_CMD_QUERY_MR, key, &m, sizeof(m));
    return m;
}

/* A window is shown as one, with its region, and with the region. */
static void looks(struct mw_world *w, uint32_t key)
{
    struct qhca_walk_look l = {
        .object = QHCA_OBJ_MW, .number = key, .by = QHCA_WALK_OFFSET,
    };
    struct qhca *e = w->u->e;
    struct seen s = { 0 };
    char want[20];

    assert_null(qhca_inspect(e, QHCA_OBJ_MW, key, seen_start(&s)));
    snprintf(want, sizeof(want), "0x%x", w->mr.key);
    SEEN(&s, "region.key", want);
    SEEN(&s, "region.offset", "0x64");
    SEEN(&s, "region.va", "0x7000187");
    assert_null(qhca_inspect_all(e, QHCA_OBJ_MW, 0, 9, seen_start(&s)));
    SEEN(&s, "objects.0.mr", want);
    assert_null(seen_get(&s, "objects.1.key"));
    assert_non_null(qhca_inspect(e, QHCA_OBJ_MW, w->mr.key, seen_start(&s)));
    assert_non_null(qhca_inspect(e, QHCA_OBJ_MR, key, seen_start(&s)));
    assert_non_null(qhca_inspect_walk(e, &l, seen_start(&s)));
    assert_null(qhca_inspect(e, QHCA_OBJ_MR, w->mr.key, seen_start(&s)));
    snprintf(want, sizeof(want), "0x%x", key);
    SEEN(&s, "windows.0", want);
    assert_null(qhca_inspect_all(e, QHCA_OBJ_MR, 0, 9, seen_start(&s)));
    assert_null(seen_get(&s, "objects.1.key"));
    seen_start(&s);
    free(s.text);
}

static void type1(void **state)
{
    struct mw_world w;
    uint8_t byte = 0x77, got = 0;
    struct qhca_mpt m;
    uint32_t key;

    open_world(&w, *state, LW | BIND);
    key = make_window(&w, QHCA_MR_F_MW1);
    assert_int_equal(check(&w, 0, key, IOVA, 1, RW), QHCA_SYN_KEY_INVALID);
    assert_int_equal(query(&w, key).state, QHCA_MR_FREE);
    key++;
    assert_int_equal(bind(&w, 0, key, w.mr.key, IOVA + 100, 50, RW | RR),
                     QHCA_SYN_NONE);
    looks(&w, key);
    /* exactly this range, these rights, this key; from any QP of the PD */
    assert_int_equal(check(&w, 0, key, IOVA + 100, 50, RW), QHCA_SYN_NONE);
    assert_int_equal(check(&w, 1, key, IOVA + 100, 50, RR), QHCA_SYN_NONE);
    assert_int_equal(check(&w, 0, key, IOVA + 99, 1, RW),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(&w, 0, key, IOVA + 149, 2, RW),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(&w, 0, key, IOVA + 104, 8, RA),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(check(&w, 0, key - 1, IOVA + 100, 1, RW),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(qhca_mr_check(w.u->e, w.u->g.pd + 1, false, key,
                                   IOVA + 100, 1, RW, 2), QHCA_SYN_KEY_PD);
    /* it is not an L_Key, and the region's own key gives a peer no access */
    assert_int_equal(check(&w, 0, key, IOVA + 100, 1, 0),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(check(&w, 0, key, IOVA + 100, 1, LW),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(check(&w, 0, w.mr.key, IOVA + 100, 1, RW),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(qhca_mr_write(w.u->e, w.u->g.pd, false, key, IOVA + 149,
                                   &byte, 1, RW, w.qp[0].qpn), 0);
    gbuf_read(&w.mr.buf, 149, &got, 1);
    assert_int_equal(got, byte);
    m = query(&w, key);
    assert_int_equal(m.state, QHCA_MR_VALID);
    assert_int_equal(m.mw_mr_key, w.mr.key);
    assert_int_equal(m.mw_qpn, 0);
    assert_int_equal(m.len, 50);
    assert_int_equal(m.iova, IOVA + 100);
    /* the region can be neither destroyed nor modified */
    assert_int_equal(destroy(&w, w.mr.key), QHCA_ST_BUSY);
    assert_int_equal(unit_cmd(w.u, QHCA_CMD_MODIFY_MR, w.mr.key,
                              QHCA_MR_M_ACCESS, &(struct qhca_mpt){
                                  .access = LW }, sizeof(m), NULL),
                     QHCA_ST_BUSY);
    /* type 1 is rebound, not invalidated; a failed bind changes nothing */
    assert_int_equal(invalidate(&w, 0, key), QHCA_SYN_KEY_ACCESS);
    assert_int_equal(bind(&w, 0, key + 1, w.mr.key, IOVA, LEN + 1, RW),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(check(&w, 0, key, IOVA + 100, 50, RW), QHCA_SYN_NONE);
    assert_int_equal(bind(&w, 1, key + 1, w.mr.key, IOVA, LEN, RR),
                     QHCA_SYN_NONE);
    assert_int_equal(check(&w, 0, key, IOVA + 100, 1, RW),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(check(&w, 0, key + 1, IOVA, LEN, RR), QHCA_SYN_NONE);
    assert_int_equal(bind(&w, 1, key + 2, 0, 0, 0, 0), QHCA_SYN_NONE);
    assert_int_equal(check(&w, 0, key + 1, IOVA, 1, RR),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(check(&w, 0, key + 2, IOVA, 1, RR),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(destroy(&w, key), QHCA_ST_OK);
    close_world(&w);
}

static void type2(void **state)
{
    struct mw_world w;
    uint64_t old, word = 41;
    struct qhca_atomic add = { .cmp_add = 1 };
    struct qhca_mpt m;
    uint32_t key;

    open_world(&w, *state, LW | BIND);
    key = make_window(&w, QHCA_MR_F_MW2) + 1;
    /* zero-based: 0 is a byte that is 8-byte aligned in memory */
    old = -gbuf_addr(&w.mr.buf, 0, NULL) & 7;
    gbuf_write(&w.mr.buf, old, &word, 8);
    assert_int_equal(bind(&w, 0, key, w.mr.key, IOVA + old, 4000,
                          RA | RW | QHCA_BIND_ZERO_BASED), QHCA_SYN_NONE);
    assert_int_equal(check(&w, 0, key, 0, 4000, RW), QHCA_SYN_NONE);
    assert_int_equal(check(&w, 0, key, 3999, 2, RW), QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(qhca_mr_atomic(w.u->e, w.u->g.pd, key, 0, &add, &old,
                                    w.qp[0].qpn), QHCA_SYN_NONE);
    assert_int_equal(old, 41);
    /* only the QP that bound it */
    assert_int_equal(check(&w, 1, key, 0, 1, RW), QHCA_SYN_MW_QP);
    assert_int_equal(invalidate(&w, 1, key), QHCA_SYN_MW_QP);
    m = query(&w, key);
    assert_int_equal(m.mw_qpn, w.qp[0].qpn);
    /* not twice */
    assert_int_equal(bind(&w, 0, key + 1, w.mr.key, IOVA, 1, RW),
                     QHCA_SYN_MW_BOUND);
    assert_int_equal(invalidate(&w, 0, key + 1), QHCA_SYN_KEY_INVALID);
    assert_int_equal(invalidate(&w, 0, key), QHCA_SYN_NONE);
    assert_int_equal(check(&w, 0, key, 0, 1, RW), QHCA_SYN_KEY_INVALID);
    assert_int_equal(invalidate(&w, 0, key), QHCA_SYN_NONE);
    assert_int_equal(bind(&w, 0, key + 1, w.mr.key, IOVA, 0, RW),
                     QHCA_SYN_KEY_BOUNDS);
    /* the QP is destroyed: a new one with its number has no access */
    assert_int_equal(bind(&w, 0, key + 1, w.mr.key, IOVA, 10, RR),
                     QHCA_SYN_NONE);
    assert_int_equal(destroy(&w, w.mr.key), QHCA_ST_BUSY);
    assert_int_equal(gqp_destroy(&w.qp[0]), QHCA_ST_OK);
    assert_int_equal(query(&w, key).state, QHCA_MR_FREE);
    open_qp(&w, 0);
    assert_int_equal(check(&w, 0, key + 1, IOVA, 1, RR),
                     QHCA_SYN_KEY_INVALID);
    /* destroyed while bound */
    assert_int_equal(bind(&w, 0, key + 2, w.mr.key, IOVA, 10, RR),
                     QHCA_SYN_NONE);
    assert_int_equal(destroy(&w, key), QHCA_ST_OK);
    assert_int_equal(check(&w, 0, key + 2, IOVA, 1, RR),
                     QHCA_SYN_KEY_INVALID);
    close_world(&w);
}

static void refused(void **state)
{
    struct unit *u = *state;
    struct gmr plain, readonly;
    uint32_t one, two, pd, other, foreign;
    struct mw_world w;
    struct gcmd c = { .op = QHCA_CMD_ALLOC_PD };
    struct qhca_mpt m;
    uint64_t off;

    open_world(&w, u, LW | BIND);
    gmr_create(&plain, &u->g, 4096, 0, LW, NULL);
    gmr_create(&readonly, &u->g, 4096, 0, BIND, NULL);
    one = make_window(&w, QHCA_MR_F_MW1);
    two = make_window(&w, QHCA_MR_F_MW2);
    pd = guest_must(&u->g, &c);
    m = (struct qhca_mpt){ .flags = QHCA_MR_F_MW1, .pd = pd };
    other = guest_create(&u->g, QHCA_CMD_CREATE_MW, &m, sizeof(m));

    /* the window */
    assert_int_equal(bind(&w, 0, 0xfffff00, w.mr.key, IOVA, 1, RR),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(bind(&w, 0, w.mr.key, w.mr.key, IOVA, 1, RR),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(bind(&w, 0, other, w.mr.key, IOVA, 1, RR),
                     QHCA_SYN_KEY_PD);
    /* the region */
    assert_int_equal(bind(&w, 0, one, w.mr.key + 1, IOVA, 1, RR),
                     QHCA_SYN_KEY_INVALID);
    assert_int_equal(bind(&w, 0, one, plain.key, 0, 1, RR),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(bind(&w, 0, one, readonly.key, 0, 1, RW),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(bind(&w, 0, one, readonly.key, 0, 8, RA),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(bind(&w, 0, one, w.mr.key, IOVA - 1, 2, RR),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(bind(&w, 0, one, w.mr.key, IOVA + LEN, 1, RR),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(bind(&w, 0, one, w.mr.key, IOVA + 1, UINT64_MAX, RR),
                     QHCA_SYN_KEY_BOUNDS);
    m = (struct qhca_mpt){ .buf = plain.buf.d, .len = plain.len, .pd = pd,
                           .access = LW | BIND };
    foreign = guest_create(&u->g, QHCA_CMD_CREATE_MR, &m, sizeof(m));
    assert_int_equal(bind(&w, 0, one, foreign, 0, 1, RR), QHCA_SYN_KEY_PD);
    assert_int_equal(destroy(&w, foreign), QHCA_ST_OK);
    /* a window on a window */
    assert_int_equal(bind(&w, 0, one, readonly.key, 0, 100, RR),
                     QHCA_SYN_NONE);
    assert_int_equal(bind(&w, 0, two, one, 0, 10, RR), QHCA_SYN_KEY_INVALID);
    /* flags */
    assert_int_equal(bind(&w, 0, one, w.mr.key, IOVA, 1,
                          RR | QHCA_BIND_ZERO_BASED), QHCA_SYN_KEY_ACCESS);
    assert_int_equal(bind(&w, 0, two, w.mr.key, IOVA, 1, RR | LW),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(bind(&w, 0, two, w.mr.key, IOVA, 1,
                          QHCA_ACCESS_FLUSH_GLOBAL), QHCA_SYN_KEY_ACCESS);
    /* commands */
    m = (struct qhca_mpt){ .pd = pd };
    m.flags = QHCA_MR_F_MW1 | QHCA_MR_F_MW2;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_MW, 0, 0, &m, sizeof(m),
                              &off), QHCA_ST_BAD_PARAM);
    assert_int_equal(off, offsetof(struct qhca_mpt, flags));
    m.flags = 0;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_MW, 0, 0, &m, sizeof(m),
                              &off), QHCA_ST_BAD_PARAM);
    m.flags = QHCA_MR_F_MW2;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_MR, 0, 0, &m, sizeof(m),
                              &off), QHCA_ST_BAD_PARAM);
    m.access = RR;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_MW, 0, 0, &m, sizeof(m),
                              &off), QHCA_ST_BAD_PARAM);
    m.access = 0;
    m.pd = 0x555;
    assert_int_equal(unit_cmd(u, QHCA_CMD_CREATE_MW, 0, 0, &m, sizeof(m),
                              &off), QHCA_ST_BAD_OBJ);
    assert_int_equal(unit_cmd(u, QHCA_CMD_MODIFY_MR, one, QHCA_MR_M_ACCESS,
                              &m, sizeof(m), &off), QHCA_ST_BAD_STATE);

    assert_int_equal(destroy(&w, one), QHCA_ST_OK);
    assert_int_equal(destroy(&w, two), QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_PD, pd),
                     QHCA_ST_BUSY);
    assert_int_equal(destroy(&w, other), QHCA_ST_OK);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_PD, pd), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&plain), QHCA_ST_OK);
    assert_int_equal(gmr_destroy(&readonly), QHCA_ST_OK);
    close_world(&w);
}

/* A fast registration MR with windows cannot be invalidated. */
static void on_fast_mr(void **state)
{
    struct unit *u = *state;
    struct qhca_mpt c = { .flags = QHCA_MR_F_FAST_REG, .pd = u->g.pd,
                          .max_entries = 4 };
    struct qhca_sq_wqe wqe;
    struct mw_world w;
    struct gbuf b;
    uint32_t key, window;

    open_world(&w, u, LW);
    gbuf_make(&b, u->m, 8192, &gbuf_flat4k, false, 0, &u->g.rng);
    key = guest_create(&u->g, QHCA_CMD_CREATE_MR, &c, sizeof(c));
    window = make_window(&w, QHCA_MR_F_MW2);
    /* a free region cannot be bound to */
    assert_int_equal(bind(&w, 0, window, key, 0, 1, RR),
                     QHCA_SYN_KEY_INVALID);
    memset(&wqe, 0, sizeof(wqe));
    wqe.ctrl.arg1 = 8192;
    wqe.remote.addr = b.d.addr;
    wqe.remote.rkey = key;
    wqe.remote.arg = (LW | BIND) | 12 << 8 | 2 << 16;
    assert_int_equal(qhca_mr_fast_reg(u->e, u->g.pd, &wqe), QHCA_SYN_NONE);
    assert_int_equal(bind(&w, 0, window, key, 4096, 4096, RR), QHCA_SYN_NONE);
    assert_int_equal(invalidate(&w, 0, key), QHCA_SYN_MW_BOUND);
    assert_int_equal(check(&w, 0, window, 4096, 4096, RR), QHCA_SYN_NONE);
    assert_int_equal(invalidate(&w, 0, window), QHCA_SYN_NONE);
    assert_int_equal(invalidate(&w, 0, key), QHCA_SYN_NONE);
    assert_int_equal(destroy(&w, window), QHCA_ST_OK);
    assert_int_equal(destroy(&w, key), QHCA_ST_OK);
    gbuf_free(&b);
    close_world(&w);
}

/* A reset frees everything: region and windows in any order. */
static void reset(void **state)
{
    struct mw_world w;
    unsigned i;

    open_world(&w, *state, LW | BIND);
    for (i = 0; i < 10; i++) {
        uint32_t key = make_window(&w, i & 1 ? QHCA_MR_F_MW1 :
                                               QHCA_MR_F_MW2);

        assert_int_equal(bind(&w, i & 3 ? 0 : 1, key, w.mr.key, IOVA, 1, RR),
                         QHCA_SYN_NONE);
    }
    gbuf_free(&w.mr.buf);
    for (i = 0; i < 2; i++) {
        gbuf_free(&w.qp[i].sq);
        gbuf_free(&w.qp[i].rq);
        guest_dbrec_free(&w.u->g, w.qp[i].dbrec);
    }
    gbuf_free(&w.cq.buf);
    guest_dbrec_free(&w.u->g, w.cq.dbrec);
}

static uint8_t modify(struct mw_world *w, uint64_t mask,
                      const struct qhca_mpt *m, uint64_t *off)
{
    return unit_cmd(w->u, QHCA_CMD_MODIFY_MR, w->mr.key, mask, m, sizeof(*m),
                    off);
}

static void modify_mr(void **state)
{
    struct unit *u = *state;
    struct gcmd c = { .op = QHCA_CMD_ALLOC_PD };
    struct qhca_mpt m = { 0 }, before, after;
    struct gbuf_shape shape;
    struct mw_world w;
    struct gbuf to;
    uint64_t off;
    uint8_t byte = 0x19, got = 0;
    uint32_t pd;

    open_world(&w, u, LW | RR);
    pd = guest_must(&u->g, &c);
    before = query(&w, w.mr.key);
    /* refused, and nothing has changed */
    m.access = RW;
    assert_int_equal(modify(&w, QHCA_MR_M_ACCESS, &m, &off),
                     QHCA_ST_BAD_PARAM);
    assert_int_equal(off, offsetof(struct qhca_mpt, access));
    m.access = LW | RW;
    m.pd = 0x777;
    assert_int_equal(modify(&w, QHCA_MR_M_ACCESS | QHCA_MR_M_PD, &m, &off),
                     QHCA_ST_BAD_OBJ);
    m.pd = pd;
    m.buf = w.mr.buf.d;
    m.len = LEN - 1;
    assert_int_equal(modify(&w, QHCA_MR_M_ACCESS | QHCA_MR_M_PD |
                            QHCA_MR_M_TRANS, &m, &off), QHCA_ST_BAD_PARAM);
    assert_int_equal(off, offsetof(struct qhca_mpt, len));
    m.buf.form = 9;
    m.len = LEN;
    assert_int_equal(modify(&w, QHCA_MR_M_ACCESS | QHCA_MR_M_PD |
                            QHCA_MR_M_TRANS, &m, &off), QHCA_ST_BAD_TABLE);
    assert_int_equal(modify(&w, 1 << 3, &m, &off), QHCA_ST_BAD_PARAM);
    after = query(&w, w.mr.key);
    assert_memory_equal(&before, &after, sizeof(before));
    /* rights */
    assert_int_equal(check(&w, 0, w.mr.key, IOVA, LEN, RR), QHCA_SYN_NONE);
    assert_int_equal(modify(&w, QHCA_MR_M_ACCESS, &m, &off), QHCA_ST_OK);
    assert_int_equal(check(&w, 0, w.mr.key, IOVA, LEN, RR),
                     QHCA_SYN_KEY_ACCESS);
    assert_int_equal(check(&w, 0, w.mr.key, IOVA, LEN, RW), QHCA_SYN_NONE);
    /* PD: both count their regions correctly */
    assert_int_equal(modify(&w, QHCA_MR_M_PD, &m, &off), QHCA_ST_OK);
    assert_int_equal(check(&w, 0, w.mr.key, IOVA, 1, RW), QHCA_SYN_KEY_PD);
    assert_int_equal(qhca_mr_check(u->e, pd, false, w.mr.key, IOVA, 1, RW, 2),
                     QHCA_SYN_NONE);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_PD, pd),
                     QHCA_ST_BUSY);
    /* memory, and PD back, in one */
    gbuf_shape_random(&shape, &u->g.rng, 9000);
    gbuf_make(&to, u->m, 9000, &shape, false, 0x9000777, &u->g.rng);
    gbuf_allow(&to, 0, 9000, GMEM_RW);
    m.pd = u->g.pd;
    m.buf = to.d;
    m.iova = 0x9000777;
    m.len = 9000;
    assert_int_equal(modify(&w, QHCA_MR_M_PD | QHCA_MR_M_TRANS, &m, &off),
                     QHCA_ST_OK);
    gbuf_deny(&w.mr.buf, 0, LEN, GMEM_RW);      /* no access any more */
    assert_int_equal(check(&w, 0, w.mr.key, IOVA, 1, RW),
                     QHCA_SYN_KEY_BOUNDS);
    assert_int_equal(qhca_mr_write(u->e, u->g.pd, false, w.mr.key,
                                   0x9000777 + 8999, &byte, 1, RW, 2), 0);
    gbuf_read(&to, 8999, &got, 1);
    assert_int_equal(got, byte);
    assert_int_equal(guest_simple(&u->g, QHCA_CMD_FREE_PD, pd), QHCA_ST_OK);
    close_world(&w);
    gbuf_free(&to);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(type1),
        UNIT(type2),
        UNIT(refused),
        UNIT(on_fast_mr),
        UNIT_HOSTILE(reset),
        UNIT(modify_mr),
    };

    return cmocka_run_group_tests_name("mw", tests, NULL, NULL);
}
