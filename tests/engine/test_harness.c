/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The harness itself: does it detect the errors that it is meant to detect?
 * Each case that must end the program runs in a child process.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "guest.h"
#include "die.h"

/* Did @fn end its process with an error message? */
static bool dies(void (*fn)(struct gmem *m))
{
    struct gmem m;
    int status;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (!pid) {
        int null = open("/dev/null", O_WRONLY);

        dup2(null, 1);
        dup2(null, 2);
        gmem_init(&m, 1ULL << 40, 1, "test");
        fn(&m);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 1);
    return WEXITSTATUS(status) == 1;
}

static uint64_t some(struct gmem *m, unsigned bits)
{
    uint64_t a = gmem_alloc(m, 1000, 12, 100);

    gmem_allow(m, a, 1000, bits);
    return a;
}

static void write_inside(struct gmem *m)
{
    uint8_t b[1000] = { 0 };

    gmem_dev_write(m, some(m, GMEM_W), b, 1000);
}

static void write_one_behind(struct gmem *m)
{
    uint8_t b[1001] = { 0 };

    gmem_dev_write(m, some(m, GMEM_RW), b, 1001);
}

static void write_one_before(struct gmem *m)
{
    uint8_t b[2] = { 0 };

    gmem_dev_write(m, some(m, GMEM_RW) - 1, b, 2);
}

static void write_read_only(struct gmem *m)
{
    uint8_t b = 0;

    gmem_dev_write(m, some(m, GMEM_R) + 500, &b, 1);
}

static void read_write_only(struct gmem *m)
{
    uint8_t b;

    gmem_dev_read(m, some(m, GMEM_W) + 500, &b, 1);
}

static void write_after_deny(struct gmem *m)
{
    uint64_t a = some(m, GMEM_RW);
    uint8_t b[64] = { 0 };

    gmem_deny(m, a + 163, 1, GMEM_W);
    gmem_dev_write(m, a + 100, b, 64);
}

static void cas_without_right(struct gmem *m)
{
    uint64_t a = some(m, GMEM_R), old;

    a = (a + 7) & ~7ULL;
    gmem_dev_cas64(m, a, 0, 1, &old);
}

static void permissions(void **state)
{
    (void)state;
    assert_false(dies(write_inside));
    assert_true(dies(write_one_behind));
    assert_true(dies(write_one_before));
    assert_true(dies(write_read_only));
    assert_true(dies(read_write_only));
    assert_true(dies(write_after_deny));
    assert_true(dies(cas_without_right));
}

static void unmapped_memory_fails(void **state)
{
    uint8_t b[16] = { 0 };
    struct gmem m;
    uint64_t a;

    (void)state;
    gmem_init(&m, 0, 2, "test");
    a = gmem_alloc(&m, 4096, 12, 0);
    gmem_allow(&m, a, 4096, GMEM_RW);
    assert_true(gmem_dev_write(&m, a, b, 16));
    assert_false(gmem_dev_write(&m, a + 4090, b, 16));
    assert_false(gmem_dev_read(&m, 0, b, 16));
    assert_false(gmem_dev_read(&m, UINT64_MAX - 3, b, 16));
    assert_int_equal(m.faults, 3);
    gmem_release(&m, a, 4096);
    assert_false(gmem_dev_write(&m, a, b, 16));
    assert_int_equal(m.mapped_pages, 0);
    gmem_fini(&m);
}

static void used_space_is_clean(void **state)
{
    static const uint8_t zero[4096];
    struct gmem m;
    uint64_t a;
    unsigned i;

    (void)state;
    for (i = 0; i < 20; i++) {
        unsigned shift = i & 1 ? 12 : 20;
        /* some go back to the host */
        uint64_t len = i % 5 == 4 ? 20000000 : 300000;

        gmem_init(&m, (uint64_t)i << 40, i % 3, "test");
        a = gmem_alloc(&m, len, shift, 0);
        assert_memory_equal(gmem_ptr(&m, a + 200000, 4096), zero, 4096);
        memset(gmem_ptr(&m, a, len), 0xff, len);
        gmem_allow(&m, a, len, GMEM_RW);
        gmem_release(&m, a, len);
        gmem_fini(&m);
    }
}

/* Each shape, with bytes where the table says. */
static void shapes(void **state)
{
    struct gbuf_shape s;
    struct gmem m;
    struct gbuf b;
    struct rng r;
    unsigned i;

    (void)state;
    rng_init(&r, 7);
    gmem_init(&m, 0, 7, "test");
    for (i = 0; i < 300; i++) {
        uint64_t len = 1 + rng_log(&r, 3 << 20);
        uint64_t at = rng_below(&r, len), n = rng_below(&r, len - at + 1);
        uint64_t k = at + rng_below(&r, n ? n : 1), run;
        uint8_t x;

        gbuf_shape_random(&s, &r, len);
        gbuf_make(&b, &m, len, &s, false, rng_u64(&r), &r);
        gbuf_fill(&b, at, i, 5, n);
        assert_true(gbuf_verify(&b, at, i, 5, n) == n);
        if (n) {
            uint64_t a = gbuf_addr(&b, k, &run);

            assert_true(run >= 1);
            memcpy(&x, gmem_ptr(&m, a, 1), 1);
            x ^= 0x10;
            memcpy(gmem_ptr(&m, a, 1), &x, 1);
            assert_true(gbuf_verify(&b, at, i, 5, n) == k - at);
        }
        gbuf_free(&b);
    }
    assert_int_equal(m.mapped_pages, 0);
    gmem_fini(&m);
}

/* The same seed gives the same run. */
static uint64_t one_run(uint64_t seed)
{
    struct guest g[2];
    uint64_t sum = 0;
    struct world w;
    unsigned i;

    world_init(&w, 2, seed, NULL);
    wire_random(&w.wire, &w.rng, true);
    for (i = 0; i < 2; i++) {
        guest_start(&g[i], &w.node[i], seed + i, NULL);
    }
    world_run(&w, 1000000);
    for (i = 0; i < 2; i++) {
        sum = rng_mix(sum + w.node[i].mem.reads + w.node[i].mem.writes * 7);
        sum = rng_mix(sum + g[i].asq + g[i].eq[0].buf.d.addr);
        guest_stop(&g[i]);
    }
    sum = rng_mix(sum + w.rng.s + w.events);
    world_fini(&w);
    return sum;
}

static void runs_repeat(void **state)
{
    (void)state;
    assert_true(one_run(5) == one_run(5));
    assert_true(one_run(5) != one_run(6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(permissions),
        cmocka_unit_test(unmapped_memory_fails),
        cmocka_unit_test(used_space_is_clean),
        cmocka_unit_test(shapes),
        cmocka_unit_test(runs_repeat),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
