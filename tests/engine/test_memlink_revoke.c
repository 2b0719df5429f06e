/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: memory that records refer to is revoked before they are
 * received.  The peer never sees what software writes there afterwards.
 */
#include "memlinkfix.h"
#include "godp.h"

#define OTHER 0x80000u          /* another part of the region */

/* It was revoked, and the memory has other contents now. */
static void taken_back(struct late *t)
{
    assert_int_equal(t->rec->state, QHCA_SHRING_REVOKED);
    assert_int_equal(t->f->w.cuts, 0);
}

/* The receiver's memory is unchanged. */
static void saw_nothing(struct late *t)
{
    fix_has(t->f, !t->from, !t->from, 0, LATE_LEN);
}

/* Now it receives, and nothing had to wait for a timer. */
static void look(struct late *t)
{
    struct fix *f = t->f;

    fix_look(f, !t->from, t->from);
    if (fix_link(f, !t->from, t->from)) {
        assert_int_equal(fix_link(f, !t->from, t->from)->lost, 1);
    }
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_TIMEOUTS), 0);
}

/* ---- regions and windows ---- */

static void destroy_mr(void **state)
{
    struct late t;
    struct fix *f;

    (void)state;
    late_begin(&t, false);
    f = t.f;
    assert_int_equal(guest_simple(&f->s[0].g, QHCA_CMD_DESTROY_MR,
                                  f->s[0].mr.key), QHCA_ST_OK);
    taken_back(&t);
    fix_spoil(f, 0, 0, LATE_LEN);
    look(&t);
    /* the peer asks for it again, and the region is gone */
    fix_cqe(f, 0, 1, QHCA_WC_LOC_PROT_ERR);
    saw_nothing(&t);
    fix_drop(f);
}

/* Another region's records are not touched. */
static void other_mr(void **state)
{
    struct gmr other;
    struct late t;
    struct fix *f;

    (void)state;
    late_begin(&t, false);
    f = t.f;
    gmr_create(&other, &f->s[0].g, 8192, IOVA, QHCA_ACCESS_MASK, NULL);
    assert_int_equal(gmr_destroy(&other), QHCA_ST_OK);
    assert_int_equal(t.rec->state, QHCA_SHRING_REFS);
    fix_look(f, 1, 0);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    fix_has(f, 1, 0, 0, LATE_LEN);
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_RETRANSMITS), 0);
    /* consumed: there is nothing to revoke */
    assert_int_equal(gmr_destroy(&f->s[0].mr), QHCA_ST_OK);
    f->s[0].mr.key = 0;
    assert_int_equal(t.l->revoked, 0);
    assert_int_equal(t.l->ref_head, t.l->ref_tail);
    fix_free(f);
}

/* The QP continues with the memory that the region has now. */
static void modify_mr(void **state)
{
    struct qhca_mpt m = { 0 };
    struct late t;
    struct fix *f;
    struct gbuf to;
    struct gcmd c;

    (void)state;
    late_begin(&t, false);
    f = t.f;
    gbuf_make(&to, &f->s[0].n->mem, BUF, &gbuf_direct, false, IOVA,
              &f->s[0].g.rng);
    gbuf_allow(&to, 0, BUF, GMEM_RW);
    gbuf_fill(&to, 0, 9, 0, BUF);
    m.buf = to.d;
    m.iova = IOVA;
    m.len = BUF;
    c = (struct gcmd){ .op = QHCA_CMD_MODIFY_MR, .obj = f->s[0].mr.key,
                       .in = &m, .in_len = sizeof(m),
                       .mask = QHCA_MR_M_TRANS };
    guest_must(&f->s[0].g, &c);
    taken_back(&t);
    fix_spoil(f, 0, 0, LATE_LEN);
    gbuf_deny(&f->s[0].mr.buf, 0, BUF, GMEM_RW);
    look(&t);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    assert_int_equal(gbuf_verify(&f->s[1].mr.buf, 0, 9, 0, LATE_LEN), LATE_LEN);
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_RETRANSMITS),
                     LATE_LEN / MTU);
    assert_int_equal(gmr_destroy(&f->s[0].mr), QHCA_ST_OK);
    f->s[0].mr.key = 0;
    gbuf_free(&to);
    fix_free(f);
}

/* The same for what a READ has asked for. */
static void modify_mr_read(void **state)
{
    struct qhca_mpt m = { .access = QHCA_ACCESS_MASK };
    struct late t;
    struct fix *f;
    struct gcmd c;

    (void)state;
    late_begin(&t, true);
    f = t.f;
    c = (struct gcmd){ .op = QHCA_CMD_MODIFY_MR, .obj = f->s[1].mr.key,
                       .in = &m, .in_len = sizeof(m),
                       .mask = QHCA_MR_M_ACCESS };
    guest_must(&f->s[1].g, &c);
    taken_back(&t);
    gbuf_fill(&f->s[1].mr.buf, 0, 9, 0, LATE_LEN);
    look(&t);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    assert_int_equal(gbuf_verify(&f->s[0].mr.buf, 0, 9, 0, LATE_LEN), LATE_LEN);
    assert_true(fix_stat(f, 0, QHCA_STAT_ROCE_RETRANSMITS) > 0);
    fix_free(f);
}

/* Pages that go, and return elsewhere. */
static void odp_sync(void **state)
{
    static const struct gbuf_shape flat = {
        .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12,
    };
    struct godp o;
    struct late t = { .f = fix_new(QHCA_QPT_RC, true) };
    struct fix *f = t.f;
    struct gmr mr;

    (void)state;
    fix_go_up(f);
    godp_create(&o, &mr, &f->s[0].g, 65536, IOVA, QHCA_ACCESS_MASK, &flat);
    gbuf_allow(&mr.buf, 0, 65536, GMEM_RW);
    gbuf_fill(&mr.buf, 0, 9, 0, 65536);
    godp_in(&o, 0, 65536, true);
    fix_doze(f, 1, 0);
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 1,
                                 .num_sge = 1,
                                 .sge[0] = { IOVA, LATE_LEN, mr.key } }, 0, LATE_LEN);
    late_sent(&t);
    godp_out(&o, 8192, 4096);
    taken_back(&t);
    godp_in(&o, 8192, 4096, true);
    look(&t);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    assert_int_equal(gbuf_verify(&f->s[1].mr.buf, 0, 9, 0, LATE_LEN), LATE_LEN);
    assert_int_equal(godp_destroy(&o), QHCA_ST_OK);
    fix_free(f);
}

/*
 * Side 0 writes to, or reads into, a page that is not there.  Then the record
 * of its next message comes, without data.  It is asked for as soon as the page
 * is there.
 */
static void while_paging(bool reads)
{
    static const struct gbuf_shape flat = {
        .form = QHCA_BUF_FLAT, .hops = 1, .page_shift = 12,
    };
    unsigned side = reads ? QHCA_PAGE_FAULT_LAND : QHCA_PAGE_FAULT_RECV;
    struct qhca_page_fault pf[QHCA_PAGE_FAULT_SIDES];
    struct late t = { .f = fix_new(QHCA_QPT_RC, true), .from = reads };
    struct gwr wr = {
        .opcode = reads ? QHCA_WQE_RDMA_READ : QHCA_WQE_RDMA_WRITE,
        .wr_id = 1,
    };
    struct qhca_mpt m = { .access = QHCA_ACCESS_MASK };
    struct fix *f = t.f;
    struct side *at = &f->s[!t.from];
    struct gcmd c;
    struct godp o;
    struct gmr mr;

    fix_go_up(f);
    godp_create(&o, &mr, &at->g, 4096, IOVA, QHCA_ACCESS_MASK, &flat);
    gbuf_allow(&mr.buf, 0, 4096, GMEM_RW);
    if (reads) {
        wr.num_sge = 1;
        wr.sge[0] = (struct qhca_sge){ IOVA, 64, mr.key };
    } else {
        wr.remote_addr = IOVA;
        wr.rkey = mr.key;
    }
    fix_doze(f, !t.from, t.from);
    fix_post(f, 0, wr, OTHER, 64);
    fix_post(f, 0, (struct gwr){ .opcode = wr.opcode, .wr_id = 2 }, 0,
             LATE_LEN);
    late_sent(&t);
    c = (struct gcmd){ .op = QHCA_CMD_MODIFY_MR, .obj = f->s[t.from].mr.key,
                       .in = &m, .in_len = sizeof(m),
                       .mask = QHCA_MR_M_ACCESS };
    guest_must(&f->s[t.from].g, &c);
    taken_back(&t);
    look(&t);
    fix_no_cqe(f, 0);
    guest_faults(&at->g, at->qp.qpn, pf);
    assert_int_equal(pf[side].flags,
                     QHCA_PAGE_FAULT_VALID | QHCA_PAGE_FAULT_WRITE);
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_RETRANSMITS), 0);
    godp_in(&o, 0, 64, true);
    assert_int_equal(guest_resume(&at->g, at->qp.qpn, side, pf[side].token,
                                  false), QHCA_ST_OK);
    fix_run(f, 1 * MS);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    fix_cqe(f, 0, 2, QHCA_WC_SUCCESS);
    fix_has(f, !t.from, t.from, 0, LATE_LEN);
    assert_true(fix_stat(f, 0, QHCA_STAT_ROCE_RETRANSMITS) > 0);
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_TIMEOUTS), 0);
    assert_int_equal(godp_destroy(&o), QHCA_ST_OK);
    fix_free(f);
}

static void write_while_paging(void **state)
{
    (void)state;
    while_paging(false);
}

static void read_while_paging(void **state)
{
    (void)state;
    while_paging(true);
}

enum undo { BY_LOCAL_INV, BY_SEND_INV, BY_UNBIND, BY_DESTROY, BY_QP };

/* Side 0 reads through a window of side 1, which is taken away. */
static void window(enum undo how)
{
    struct late t = { .f = fix_new(QHCA_QPT_RC, true), .from = 1 };
    struct fix *f = t.f;
    struct qhca_mpt m = {
        .pd = f->s[1].g.pd,
        .flags = how == BY_UNBIND ? QHCA_MR_F_MW1 : QHCA_MR_F_MW1 << 1,
    };
    uint32_t mw = guest_create(&f->s[1].g, QHCA_CMD_CREATE_MW, &m, sizeof(m));
    struct gwr bind = {
        .opcode = QHCA_WQE_BIND_MW, .wr_id = 5, .arg0 = IOVA, .arg1 = BUF,
        .remote_addr = f->s[1].mr.key, .rkey = mw + 1,
        .rarg = QHCA_ACCESS_REMOTE_READ,
    };

    fix_go_up(f);
    fix_post(f, 1, bind, 0, 0);
    fix_run(f, 10 * US);
    fix_cqe(f, 1, 5, QHCA_WC_SUCCESS);
    fix_recv(f, 1, 6, OTHER, 64);
    fix_doze(f, 0, 1);
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                                 .remote_addr = IOVA, .rkey = mw + 1 },
             0, LATE_LEN);
    late_sent(&t);
    switch (how) {
    case BY_LOCAL_INV:
        fix_post(f, 1, (struct gwr){ .opcode = QHCA_WQE_LOCAL_INV,
                                     .wr_id = 7, .imm = mw + 1 }, 0, 0);
        fix_run(f, 10 * US);
        break;
    case BY_SEND_INV:
        fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_SEND_INV, .wr_id = 7,
                                     .imm = mw + 1 }, OTHER, 8);
        fix_run(f, 10 * US);
        fix_cqe(f, 1, 6, QHCA_WC_SUCCESS);
        break;
    case BY_UNBIND:
        bind.arg1 = bind.remote_addr = 0;
        bind.remote_addr = f->s[1].mr.key;
        bind.rkey = mw + 2;
        fix_post(f, 1, bind, 0, 0);
        fix_run(f, 10 * US);
        break;
    case BY_DESTROY:
        assert_int_equal(guest_simple(&f->s[1].g, QHCA_CMD_DESTROY_MR,
                                      mw + 1), QHCA_ST_OK);
        break;
    case BY_QP:
        assert_int_equal(gqp_destroy(&f->s[1].qp), QHCA_ST_OK);
        gmr_drop(&f->s[1].mr);
        f->s[1].mr.key = 0;
        f->s[1].qp.qpn = 0;
        break;
    }
    taken_back(&t);
    if (f->s[1].mr.key) {
        fix_spoil(f, 1, 0, LATE_LEN);
    }
    fix_look(f, 0, 1);
    saw_nothing(&t);
    if (how != BY_QP) {
        /*
         * It asks again at once.  A READ that was executed and cannot be again
         * is not answered (IBA 9.7.5.1.4).
         */
        assert_true(fix_stat(f, 0, QHCA_STAT_ROCE_RETRANSMITS) > 0);
        assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_TIMEOUTS), 0);
        fix_run(f, 2000 * MS);
        fix_cqe(f, 0, 1, QHCA_WC_RETRY_EXC_ERR);
        saw_nothing(&t);
    }
    fix_drop(f);
}

static void local_invalidate(void **state)
{
    (void)state;
    window(BY_LOCAL_INV);
}

static void remote_invalidate(void **state)
{
    (void)state;
    window(BY_SEND_INV);
}

static void unbind(void **state)
{
    (void)state;
    window(BY_UNBIND);
}

static void destroy_mw(void **state)
{
    (void)state;
    window(BY_DESTROY);
}

static void unbind_all(void **state)
{
    (void)state;
    window(BY_QP);
}

/* A region that QPs make and unmake. */
static void fast_reg(void **state)
{
    struct late t = { .f = fix_new(QHCA_QPT_RC, true) };
    struct fix *f = t.f;
    struct qhca_mpt m = {
        .pd = f->s[0].g.pd, .flags = QHCA_MR_F_FAST_REG,
        .max_entries = BUF / 4096,
    };
    uint32_t key = guest_create(&f->s[0].g, QHCA_CMD_CREATE_MR, &m, sizeof(m));
    struct qhca_sq_wqe reg = { .ctrl = { .arg0 = IOVA, .arg1 = BUF } };
    struct gqp qp[2];
    unsigned i;

    (void)state;
    for (i = 0; i < 2; i++) {
        fix_qp(f, i, QHCA_QPT_RC, &qp[i]);
    }
    fix_connect(f, 0, &qp[0], 1, &qp[1]);
    assert_int_equal(gmr_destroy(&f->s[0].mr), QHCA_ST_OK);
    fix_region(f, 0, &gbuf_flat4k);
    reg.remote.addr = f->s[0].mr.buf.d.addr;
    reg.remote.rkey = key;
    reg.remote.arg = QHCA_ACCESS_LOCAL_WRITE | 12 << 8 | BUF / 4096 << 16;
    assert_int_equal(qhca_mr_fast_reg(f->s[0].e, f->s[0].g.pd, &reg),
                     QHCA_SYN_NONE);
    fix_go_up(f);
    fix_doze(f, 1, 0);
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = 1,
                                 .num_sge = 1, .sge[0] = { IOVA, LATE_LEN, key } },
             0, LATE_LEN);
    late_sent(&t);
    /* by another QP: its own waits until the WRITE is acknowledged */
    fix_post_on(f, 0, &qp[0], (struct gwr){ .opcode = QHCA_WQE_LOCAL_INV,
                                            .wr_id = 2, .imm = key }, 0, 0);
    fix_run(f, 10 * US);
    fix_cqe(f, 0, 2, QHCA_WC_SUCCESS);
    taken_back(&t);
    fix_spoil(f, 0, 0, LATE_LEN);
    look(&t);
    fix_cqe(f, 0, 1, QHCA_WC_LOC_PROT_ERR);
    saw_nothing(&t);
    for (i = 0; i < 2; i++) {
        assert_int_equal(gqp_destroy(&qp[i]), QHCA_ST_OK);
    }
    fix_drop(f);
}

/* ---- QPs ---- */

static void qp_leaves(unsigned how)
{
    struct late t;
    struct fix *f;
    unsigned reads;

    for (reads = 0; reads < 2; reads++) {
        late_begin(&t, reads);
        f = t.f;
        if (how < 2) {
            assert_int_equal(gqp_state(&f->s[t.from].qp, how ?
                                       QHCA_QPS_RESET : QHCA_QPS_ERR),
                             QHCA_ST_OK);
        } else {
            assert_int_equal(gqp_destroy(&f->s[t.from].qp), QHCA_ST_OK);
            f->s[t.from].qp.qpn = 0;
        }
        taken_back(&t);
        fix_spoil(f, t.from, 0, LATE_LEN);
        fix_look(f, !t.from, t.from);
        saw_nothing(&t);
        fix_drop(f);
    }
}

static void qp_error(void **state)
{
    (void)state;
    qp_leaves(0);
}

static void qp_reset(void **state)
{
    (void)state;
    qp_leaves(1);
}

static void qp_destroyed(void **state)
{
    (void)state;
    qp_leaves(2);
}

/* Another QP's records are not touched. */
static void other_qp(void **state)
{
    struct late t;
    struct gqp qp;

    (void)state;
    late_begin(&t, false);
    fix_qp(t.f, 0, QHCA_QPT_RC, &qp);
    assert_int_equal(gqp_destroy(&qp), QHCA_ST_OK);
    assert_int_equal(t.rec->state, QHCA_SHRING_REFS);
    fix_look(t.f, 1, 0);
    fix_cqe(t.f, 0, 1, QHCA_WC_SUCCESS);
    fix_has(t.f, 1, 0, 0, LATE_LEN);
    fix_free(t.f);
}

static void adapter_reset(void **state)
{
    struct late t;
    unsigned reads;

    (void)state;
    for (reads = 0; reads < 2; reads++) {
        late_begin(&t, reads);
        node_flr(t.f->s[t.from].n);
        taken_back(&t);
        fix_spoil(t.f, t.from, 0, LATE_LEN);
        fix_look(t.f, !t.from, t.from);
        saw_nothing(&t);
        /* and it wants no more records for now */
        assert_true(world_memlink_ring(&t.f->w, !t.from, t.from)->refuses);
        fix_drop(t.f);
    }
}

/*
 * The link is cut or detached, and the peer does not know yet: the records in
 * its ring no longer refer to memory.  The copy that does not end is beyond
 * help.
 */
static struct late *cutting;

static void cut_seen(void *opaque, unsigned id, const char *why)
{
    (void)opaque;
    (void)why;
    assert_int_equal(id, cutting->l->id);
    assert_int_equal(late_record(cutting->l, 0)->state, QHCA_SHRING_REVOKED);
    assert_int_equal(late_record(cutting->l, 1)->state, cutting->rec == NULL ?
                     QHCA_SHRING_COPYING : QHCA_SHRING_REVOKED);
    cutting = NULL;
}

static void end_of_link(void **state)
{
    struct qhca_shring_record *rec[2];
    struct late t;
    unsigned how;

    (void)state;
    for (how = 0; how < 3; how++) {
        late_begin(&t, false);
        /* one that the peer is copying, maybe, and one more */
        fix_write(t.f, 0, 2, OTHER, LATE_LEN);
        fix_run(t.f, 10 * US);
        rec[0] = late_record(t.l, 1);
        rec[1] = late_record(t.l, 0);
        assert_int_equal(rec[1]->state, QHCA_SHRING_REFS);
        if (how == 0) {
            t.rec = NULL;
            rec[0]->state = QHCA_SHRING_COPYING;
        }
        cutting = &t;
        if (how < 2) {
            t.f->s[0].e->ops.memlink_cut = cut_seen;
            if (how == 0) {
                assert_int_equal(guest_simple(&t.f->s[0].g,
                                              QHCA_CMD_DESTROY_MR,
                                              t.f->s[0].mr.key), QHCA_ST_OK);
            } else {
                qhca_memlink_cut(t.f->s[0].e, t.l, "test");
            }
            assert_null(cutting);
            assert_true(t.l->dead);
        } else {
            qhca_memlink_detach(t.f->s[0].e, t.l->id);
            assert_null(fix_link(t.f, 0, 1));
            assert_int_equal(rec[0]->state, QHCA_SHRING_REVOKED);
            assert_int_equal(rec[1]->state, QHCA_SHRING_REVOKED);
        }
        if (how) {
            gqp_state(&t.f->s[0].qp, QHCA_QPS_ERR);
            fix_spoil(t.f, 0, 0, LATE_LEN);
            fix_spoil(t.f, 0, OTHER, LATE_LEN);
            fix_look(t.f, 1, 0);
            saw_nothing(&t);
            fix_has(t.f, 1, 1, OTHER, LATE_LEN);
        }
        fix_drop(t.f);
    }
}

/*
 * A position is not remembered for longer than it is unique: 4 GiB later,
 * another record is there.
 */
static void long_ago(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct qhca_memlink *l;

    (void)state;
    fix_go_up(f);
    fix_write(f, 0, 1, 0, LATE_LEN);
    fix_run(f, 100 * US);
    fix_cqe(f, 0, 1, QHCA_WC_SUCCESS);
    l = fix_link(f, 0, 1);
    assert_int_equal(l->sent_refs, 1);
    fix_write(f, 0, 2, 0, 16);
    fix_run(f, 100 * US);
    assert_int_equal(l->ref_head, 1);
    assert_int_equal(l->ref_tail, 1);
    fix_free(f);
}

/* More records than are remembered: the rest is copied. */
static void many(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct qhca_memlink *l;
    fix_crowd qp;
    unsigned i, k;

    (void)state;
    l = fix_crowded(f, 0, qp);
    assert_int_equal(l->sent_refs, QHCA_MEMLINK_REFS);
    assert_true(l->sent > QHCA_MEMLINK_REFS + 10);
    assert_int_equal(gqp_destroy(&qp[0][0]), QHCA_ST_OK);
    assert_int_equal(l->revoked, CROWD_EACH);
    fix_look(f, 1, 0);
    fix_run(f, 1000 * US);
    for (k = 1; k < CROWD_QPS; k++) {
        for (i = 0; i < CROWD_EACH; i++) {
            fix_has(f, 1, 0, CROWD_APART * (k * CROWD_EACH + i), 2 * MTU);
        }
    }
    fix_has(f, 1, 1, 0, CROWD_EACH * CROWD_APART);
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_TIMEOUTS), 0);
    for (k = 0; k < CROWD_QPS; k++) {
        assert_int_equal(gqp_destroy(&qp[1][k]), QHCA_ST_OK);
        if (k) {
            assert_int_equal(gqp_destroy(&qp[0][k]), QHCA_ST_OK);
        }
    }
    fix_free(f);
}

/* A region of all memory, or a window of it. */
static void phys(bool win)
{
    struct late t = { .f = fix_new(QHCA_QPT_RC, true), .from = 1 };
    struct fix *f = t.f;
    struct qhca_mpt m = { .pd = f->s[1].g.pd, .flags = QHCA_MR_F_PHYS,
                          .access = QHCA_ACCESS_MASK };
    struct qhca_mpt wm = { .pd = f->s[1].g.pd, .flags = QHCA_MR_F_MW1 << 1 };
    uint32_t phys = guest_create(&f->s[1].g, QHCA_CMD_CREATE_MR, &m, sizeof(m));
    uint32_t mw = guest_create(&f->s[1].g, QHCA_CMD_CREATE_MW, &wm, sizeof(wm));
    uint64_t at;
    struct gwr bind;

    assert_int_equal(gmr_destroy(&f->s[1].mr), QHCA_ST_OK);
    fix_region(f, 1, &gbuf_direct);
    at = f->s[1].mr.buf.d.addr + f->s[1].mr.buf.d.first;
    bind = (struct gwr){
        .opcode = QHCA_WQE_BIND_MW, .wr_id = 5, .arg0 = at, .arg1 = BUF,
        .remote_addr = phys, .rkey = mw + 1, .rarg = QHCA_ACCESS_REMOTE_READ,
    };
    fix_go_up(f);
    if (win) {
        fix_post(f, 1, bind, 0, 0);
        fix_run(f, 10 * US);
        fix_cqe(f, 1, 5, QHCA_WC_SUCCESS);
    }
    fix_doze(f, 0, 1);
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 1,
                                 .remote_addr = at,
                                 .rkey = win ? mw + 1 : phys },
             0, LATE_LEN);
    late_sent(&t);
    if (win) {
        fix_post(f, 1, (struct gwr){ .opcode = QHCA_WQE_LOCAL_INV,
                                     .wr_id = 7, .imm = mw + 1 }, 0, 0);
        fix_run(f, 10 * US);
        fix_cqe(f, 1, 7, QHCA_WC_SUCCESS);
    } else {
        assert_int_equal(guest_simple(&f->s[1].g, QHCA_CMD_DESTROY_MR, phys),
                         QHCA_ST_OK);
    }
    fix_spoil(f, 1, 0, LATE_LEN);
    assert_int_equal(t.rec->state, QHCA_SHRING_REVOKED);
    fix_look(f, 0, 1);
    saw_nothing(&t);
    fix_drop(f);
}

static void phys_region(void **state)
{
    (void)state;
    phys(false);
}

static void phys_window(void **state)
{
    (void)state;
    phys(true);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(destroy_mr), cmocka_unit_test(other_mr),
        cmocka_unit_test(modify_mr), cmocka_unit_test(modify_mr_read),
        cmocka_unit_test(odp_sync), cmocka_unit_test(write_while_paging),
        cmocka_unit_test(read_while_paging), cmocka_unit_test(local_invalidate),
        cmocka_unit_test(remote_invalidate), cmocka_unit_test(unbind),
        cmocka_unit_test(destroy_mw), cmocka_unit_test(unbind_all),
        cmocka_unit_test(fast_reg), cmocka_unit_test(qp_error),
        cmocka_unit_test(qp_reset), cmocka_unit_test(qp_destroyed),
        cmocka_unit_test(other_qp), cmocka_unit_test(adapter_reset),
                cmocka_unit_test(end_of_link), cmocka_unit_test(long_ago),
        cmocka_unit_test(many),
        cmocka_unit_test(phys_region),
        cmocka_unit_test(phys_window),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
