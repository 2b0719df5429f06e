/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ring arithmetic, against plain counting. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "qhca-ring.h"

static void test_log2(void **state)
{
    assert_int_equal(qhca_log2_up(0), 0);
    assert_int_equal(qhca_log2_up(1), 0);
    assert_int_equal(qhca_log2_up(2), 1);
    assert_int_equal(qhca_log2_up(3), 2);
    assert_int_equal(qhca_log2_up(1024), 10);
    assert_int_equal(qhca_log2_up(1025), 11);
    assert_int_equal(qhca_log2_up(UINT32_MAX), 32);
}

/* Walks five laps and over the wrap of the counter with a slow model. */
static void test_slot_and_phase(void **state)
{
    unsigned int shift;

    for (shift = 0; shift <= 5; shift++) {
        uint32_t depth = 1U << shift;
        uint32_t counter = -3 * depth;  /* an even number of laps before 0 */
        unsigned int slot = 0, i;
        uint8_t phase = 0;              /* the third lap before lap 0 */

        for (i = 0; i < 6 * depth; i++, counter++) {
            assert_int_equal(qhca_slot(counter, shift), slot);
            assert_int_equal(qhca_phase(counter, shift), phase);
            if (++slot == depth) {
                slot = 0;
                phase = !phase;
            }
        }
        assert_int_equal(qhca_phase(0, shift), 1);
    }
}

static void test_full_and_empty(void **state)
{
    uint32_t tail;

    for (tail = UINT32_MAX - 20; tail != 20; tail++) {
        assert_false(qhca_ring_full(tail, tail, 4));
        assert_false(qhca_ring_full(tail + 15, tail, 4));
        assert_true(qhca_ring_full(tail + 16, tail, 4));
    }
    assert_true(qhca_ring_full(1, 0, 0));
    assert_false(qhca_ring_full(0, 0, 0));
}

static void test_size(void **state)
{
    uint8_t shift;
    size_t len;

    /* 64-byte entries: a page of 4 KiB holds 64, whatever was asked for. */
    assert_true(qhca_ring_size(0, 32768, 6, 4096, &shift, &len));
    assert_int_equal(shift, 6);
    assert_int_equal(len, 4096);
    assert_true(qhca_ring_size(64, 32768, 6, 4096, &shift, &len));
    assert_int_equal(shift, 6);
    assert_true(qhca_ring_size(65, 32768, 6, 4096, &shift, &len));
    assert_int_equal(shift, 7);
    assert_int_equal(len, 8192);
    /* larger pages */
    assert_true(qhca_ring_size(1, 32768, 6, 65536, &shift, &len));
    assert_int_equal(shift, 10);
    assert_int_equal(len, 65536);
    /* the device's limit stops the filling, not the page */
    assert_true(qhca_ring_size(1, 16, 6, 4096, &shift, &len));
    assert_int_equal(shift, 4);
    assert_int_equal(len, 4096);
    /* the limits themselves */
    assert_true(qhca_ring_size(32768, 32768, 6, 4096, &shift, &len));
    assert_int_equal(shift, 15);
    assert_false(qhca_ring_size(32769, 32768, 6, 4096, &shift, &len));
    assert_false(qhca_ring_size(UINT32_MAX, 32768, 6, 4096, &shift, &len));
    /* a limit that is no power of two: 600 fits, but not its ring */
    assert_false(qhca_ring_size(600, 1000, 6, 4096, &shift, &len));
    assert_true(qhca_ring_size(512, 1000, 6, 4096, &shift, &len));
    assert_int_equal(shift, 9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log2),
        cmocka_unit_test(test_slot_and_phase),
        cmocka_unit_test(test_full_and_empty),
        cmocka_unit_test(test_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
