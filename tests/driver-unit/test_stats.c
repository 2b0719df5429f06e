/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Each counter of the header has its name in the driver: the makefile generates
 * stat_list.h from the header.
 */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <rdma/qhca-hw.h>

extern const char * const qhca_stat_names[QHCA_STAT_COUNT];

static const struct {
    const char *macro;
    unsigned index;
} list[] = {
#include "stat_list.h"
};

static void test_names(void **state)
{
    size_t i, j, n = sizeof(list) / sizeof(list[0]), named = 0;

    assert_true(n > 40);
    for (i = 0; i < n; i++) {
        const char *name = qhca_stat_names[list[i].index];

        if (!name) {
            fail_msg("%s has no name", list[i].macro);
        }
        assert_int_equal(strlen(name), strlen(list[i].macro));
        for (j = 0; name[j]; j++) {
            assert_int_equal(name[j], tolower(list[i].macro[j]));
        }
        assert_true(strlen(name) < 32); /* ETH_GSTRING_LEN */
    }
    for (i = 0; i < QHCA_STAT_COUNT; i++) {
        named += !!qhca_stat_names[i];
    }
    assert_int_equal(named, n);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_names) };

    return cmocka_run_group_tests_name("statistics", tests, NULL, NULL);
}
