/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: a READ is answered although as many records refer to memory as
 * are remembered.  Its data is copied.
 */
#include "memlinkfix.h"

enum { QPS = 10, EACH = 30, APART = 3072 };

static void read_copied(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct qhca_memlink *l;
    struct gqp qp[2][QPS];
    uint64_t refs, copied;
    unsigned i, k;

    (void)state;
    for (k = 0; k < QPS; k++) {
        fix_qp(f, 0, QHCA_QPT_RC, &qp[0][k]);
        fix_qp(f, 1, QHCA_QPT_RC, &qp[1][k]);
        fix_connect(f, 0, &qp[0][k], 1, &qp[1][k]);
    }
    fix_go_up(f);
    l = fix_link(f, 1, 0);
    fix_doze(f, 0, 1);
    for (k = 0; k < QPS; k++) {
        for (i = 0; i < EACH; i++) {
            fix_post_on(f, 1, &qp[1][k], (struct gwr){
                            .opcode = QHCA_WQE_RDMA_WRITE, .wr_id = i },
                        APART * (k * EACH + i), 2 * MTU);
        }
    }
    fix_run(f, 1000 * US);
    refs = l->sent_refs;
    copied = l->sent;
    assert_int_equal(refs, QHCA_MEMLINK_REFS);
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 7 },
             APART * QPS * EACH, 2 * MTU);
    fix_run(f, 100 * US);
    assert_int_equal(l->sent_refs, refs);
    assert_true(l->sent > copied);
    /* it was copied before this */
    fix_spoil(f, 1, APART * QPS * EACH, 2 * MTU);
    fix_look(f, 0, 1);
    fix_run(f, 1000 * US);
    fix_cqe(f, 0, 7, QHCA_WC_SUCCESS);
    fix_has(f, 0, 1, APART * QPS * EACH, 2 * MTU);
    for (i = 0; i < QPS * EACH; i++) {
        fix_has(f, 0, 1, APART * i, 2 * MTU);
    }
    assert_int_equal(f->packets, 0);
    assert_int_equal(f->w.cuts, 0);
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_TIMEOUTS), 0);
    for (k = 0; k < QPS; k++) {
        assert_int_equal(gqp_destroy(&qp[0][k]), QHCA_ST_OK);
        assert_int_equal(gqp_destroy(&qp[1][k]), QHCA_ST_OK);
    }
    fix_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(read_copied),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
