/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: a READ is answered although as many records refer to memory as
 * are remembered.  Its data is copied.
 */
#include "memlinkfix.h"

enum { BEHIND = CROWD_QPS * CROWD_EACH };   /* all of the crowd's */

static void read_copied(void **state)
{
    struct fix *f = fix_new(QHCA_QPT_RC, true);
    struct qhca_memlink *l;
    fix_crowd qp;
    uint64_t refs, copied;
    unsigned i, k;

    (void)state;
    l = fix_crowded(f, 1, qp);
    refs = l->sent_refs;
    copied = l->sent;
    assert_int_equal(refs, QHCA_MEMLINK_REFS);
    fix_post(f, 0, (struct gwr){ .opcode = QHCA_WQE_RDMA_READ, .wr_id = 7 },
             CROWD_APART * BEHIND, 2 * MTU);
    fix_run(f, 100 * US);
    assert_int_equal(l->sent_refs, refs);
    assert_true(l->sent > copied);
    /* it was copied before this */
    fix_spoil(f, 1, CROWD_APART * BEHIND, 2 * MTU);
    fix_look(f, 0, 1);
    fix_run(f, 1000 * US);
    fix_cqe(f, 0, 7, QHCA_WC_SUCCESS);
    fix_has(f, 0, 1, CROWD_APART * BEHIND, 2 * MTU);
    for (i = 0; i < BEHIND; i++) {
        fix_has(f, 0, 1, CROWD_APART * i, 2 * MTU);
    }
    assert_int_equal(f->packets, 0);
    assert_int_equal(f->w.cuts, 0);
    assert_int_equal(fix_stat(f, 0, QHCA_STAT_ROCE_TIMEOUTS), 0);
    for (k = 0; k < CROWD_QPS; k++) {
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
