/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Trace events show the names of the header, and all of them: the makefile
 * generates name_list.h from the header.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>
#include <cmocka.h>

#include <rdma/qhca-hw.h>

struct name {
    unsigned long value;
    const char *name;
};

/* In the kernel this macro makes text; here it makes the table. */
#define __print_symbolic(val, ...) \
    (((const struct name[]) { __VA_ARGS__, { val, NULL } }))

#include "names.h"

static const struct {
    const char *group;
    struct name name;
} list[] = {
#include "name_list.h"
};

static void check(const char *group, const struct name *names)
{
    size_t i, j, n = 0;

    for (i = 0; i < sizeof(list) / sizeof(list[0]); i++) {
        const struct name *want = &list[i].name;

        if (strcmp(list[i].group, group)) {
            continue;
        }
        n++;
        for (j = 0; names[j].name && names[j].value != want->value; j++) {
        }
        if (!names[j].name) {
            fail_msg("QHCA_%s_%s has no name", group, want->name);
        }
        assert_int_equal(strcasecmp(names[j].name, want->name), 0);
    }
    assert_true(n > 2);
    for (j = 0; names[j].name; j++) {
    }
    assert_int_equal(j, n);
}

static void test_names(void **state)
{
    check("CMD", show_qhca_cmd(0));
    check("ST", show_qhca_st(0));
    check("EV", show_qhca_ev(0));
    check("QPT", show_qhca_qpt(0));
    check("QPS", show_qhca_qps(0));
    check("WQE", show_qhca_wqe(0));
    check("CQE_OP", show_qhca_cqe_op(0));
    check("BUF", show_qhca_buf(0));
    check("DB", show_qhca_db(0));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

    return cmocka_run_group_tests_name("names", tests, NULL, NULL);
}
