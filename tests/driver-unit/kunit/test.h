/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * KUnit for user space, based on cmocka: the subset that the driver's tests of
 * pure functions use. Each program is one suite; memory allocated by a case is
 * freed after it, and the first failure ends the case.
 */
#ifndef KUNIT_TEST_H
#define KUNIT_TEST_H

#include <endian.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define U64_MAX                 UINT64_MAX
#define le32_to_cpu(x)          le32toh(x)
#define le64_to_cpu(x)          le64toh(x)
#define cpu_to_le32(x)          htole32(x)
#define cpu_to_le64(x)          htole64(x)
#define container_of(p, type, member) \
    ((type *)((char *)(p) - offsetof(type, member)))

#define MODULE_DESCRIPTION(text)    _Static_assert(1, text)
#define MODULE_LICENSE(text)        _Static_assert(1, text)

#define KUNIT_CASES_MAX         32

struct kunit {
    void (*run_case)(struct kunit *test);
    void **mem;
    size_t num_mem;
};

struct kunit_case {
    void (*run_case)(struct kunit *test);
    const char *name;
};

struct kunit_suite {
    const char *name;
    struct kunit_case *test_cases;
};

#define KUNIT_CASE(function)    { .run_case = function, .name = #function }

#define GFP_KERNEL              0

static inline void *kunit_kcalloc(struct kunit *test, size_t n, size_t size,
                                  int gfp)
{
    void *p = calloc(n, size);

    assert_non_null(p);
    test->mem = realloc(test->mem, (test->num_mem + 1) * sizeof(*test->mem));
    assert_non_null(test->mem);
    test->mem[test->num_mem++] = p;
    return p;
}

static inline void *kunit_kzalloc(struct kunit *test, size_t size, int gfp)
{
    return kunit_kcalloc(test, 1, size, gfp);
}

static inline void kunit_kfree(struct kunit *test, const void *p)
{
    size_t i;

    for (i = 0; i < test->num_mem && test->mem[i] != p; i++) {
    }
    assert_true(i < test->num_mem);
    free(test->mem[i]);
    test->mem[i] = test->mem[--test->num_mem];
}

#define KUNIT_FAIL(test, ...)                                               \
    do {                                                                    \
        (void)(test);                                                       \
        fail_msg(__VA_ARGS__);                                              \
    } while (0)

#define KUNIT_COMPARE_(test, a, op, b, ...)                                 \
    do {                                                                    \
        __typeof__(a) a_ = (a);                                             \
        __typeof__(b) b_ = (b);                                             \
                                                                            \
        (void)(test);                                                       \
        if (!(a_ op b_)) {                                                  \
            print_error("%s is %#llx, %s is %#llx: ", #a,                   \
                        (unsigned long long)a_, #b,                         \
                        (unsigned long long)b_);                            \
            fail_msg(__VA_ARGS__);                                          \
        }                                                                   \
    } while (0)

#define KUNIT_EXPECT_EQ_MSG(test, a, b, ...) \
    KUNIT_COMPARE_(test, a, ==, b, __VA_ARGS__)
#define KUNIT_EXPECT_EQ(test, a, b) \
    KUNIT_COMPARE_(test, a, ==, b, "%s", "they differ")
#define KUNIT_EXPECT_LT(test, a, b) \
    KUNIT_COMPARE_(test, a, <, b, "%s", "that is not less")
#define KUNIT_EXPECT_TRUE(test, x)  KUNIT_EXPECT_EQ(test, !!(x), 1)
#define KUNIT_EXPECT_FALSE(test, x) KUNIT_EXPECT_EQ(test, !!(x), 0)
#define KUNIT_EXPECT_MEMEQ(test, a, b, size) \
    ((void)(test), assert_memory_equal(a, b, size))
#define KUNIT_ASSERT_EQ                 KUNIT_EXPECT_EQ
#define KUNIT_ASSERT_LT                 KUNIT_EXPECT_LT
#define KUNIT_ASSERT_TRUE               KUNIT_EXPECT_TRUE
#define KUNIT_ASSERT_FALSE              KUNIT_EXPECT_FALSE
#define KUNIT_ASSERT_NOT_NULL(test, p)  ((void)(test), assert_non_null(p))

static inline int kunit_begin(void **state)
{
    const struct kunit_case *c = *state;
    struct kunit *test = calloc(1, sizeof(*test));

    if (!test) {
        return -1;
    }
    test->run_case = c->run_case;
    *state = test;
    return 0;
}

static inline int kunit_end(void **state)
{
    struct kunit *test = *state;

    while (test->num_mem) {
        free(test->mem[--test->num_mem]);
    }
    free(test->mem);
    free(test);
    return 0;
}

static inline void kunit_run_case(void **state)
{
    struct kunit *test = *state;

    test->run_case(test);
}

/* cmocka passes the case to the setup, and its result to the rest. */
static inline int kunit_run_suite(const struct kunit_suite *suite)
{
    struct CMUnitTest tests[KUNIT_CASES_MAX] = { { 0 } };
    size_t n;

    for (n = 0; suite->test_cases[n].name; n++) {
        assert_true(n < KUNIT_CASES_MAX);
        tests[n] = (struct CMUnitTest) {
            suite->test_cases[n].name, kunit_run_case, kunit_begin, kunit_end,
            &suite->test_cases[n],
        };
    }
    return _cmocka_run_group_tests(suite->name, tests, n, NULL, NULL);
}

#define kunit_test_suite(suite)                                             \
    int main(void)                                                          \
    {                                                                       \
        return kunit_run_suite(&(suite));                                   \
    }                                                                       \
    _Static_assert(1, "takes the semicolon")

#endif /* KUNIT_TEST_H */
