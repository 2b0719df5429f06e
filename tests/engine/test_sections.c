/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sections of a saved state: each release loads what earlier ones have saved.
 * A section that is newer, unknown, missing or of a wrong length is refused,
 * and the message names it.
 *
 * Releases of a small invented adapter represent those of the real one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "base/save.h"
#include "die.h"

#define HEAD 19                 /* bytes before the fields of a section */
#define AT_VERSION 10           /* of them */
#define AT_LEN 15

static struct {
    uint32_t a, b, fresh;
    bool c;
} now;

static void io_first(struct qhca_io *io)
{
    IO(io, now.a);
}

static void io_second(struct qhca_io *io)
{
    IO_SINCE(io, 2, now.c);
    IO(io, now.b);
}

static void io_fresh(struct qhca_io *io)
{
    IO(io, now.fresh);
}

static void io_greedy(struct qhca_io *io)
{
    io_second(io);
    IO(io, now.fresh);
}

/* As if it had written 4 GiB. */
static void io_huge(struct qhca_io *io)
{
    io->len += (size_t)UINT32_MAX + 1;
}

static void io_end(struct qhca_io *io)
{
    (void)io;
}

/* Release 1 and 2: a field more in the second section, and a section more. */
static const struct qhca_section old[] = {
    { "first", 1, 1, io_first },
    { "second", 1, 1, io_second },
    { "end", 1, 1, io_end },
};
static const struct qhca_section new[] = {
    { "first", 1, 1, io_first },
    { "fresh", 1, QHCA_SECTION_NEW, io_fresh },
    { "second", 2, 1, io_second },
    { "end", 1, 1, io_end },
};

/* A release's sections, and the bytes that it has saved. */
struct saved {
    uint8_t *b;
    size_t len;
};

static struct saved save(const struct qhca_section *s, unsigned n)
{
    struct qhca_io io = { .saving = true };

    now.a = 0x01020304;
    now.b = 5;
    now.c = true;
    now.fresh = 6;
    qhca_io_sections(&io, s, n);
    CHECK(!io.failed, "not saved");
    return (struct saved){ io.out, io.len };
}

/* The reason why @s is refused, or NULL: it is loaded. */
static const char *load(const struct saved *s, const struct qhca_section *by,
                        unsigned n)
{
    static char text[256];
    struct qhca_io io = { .in = s->b, .len = s->len };

    memset(&now, 0, sizeof(now));
    now.fresh = 77;             /* as after a reset */
    qhca_io_sections(&io, by, n);
    if (!io.failed) {
        assert_int_equal(io.pos, io.len);
        return NULL;
    }
    snprintf(text, sizeof(text), "%s: %s", io.what, io.why);
    return text;
}

#define SAVE(release) save(release, sizeof(release) / sizeof(release[0]))
#define LOAD(s, release) load(s, release, sizeof(release) / sizeof(release[0]))

/* The section named @name. */
static uint8_t *find(const struct saved *s, const char *name)
{
    char mark[9] = "S";
    size_t i;

    strncpy(mark + 1, name, 8);
    for (i = 0; i + HEAD <= s->len; i++) {
        if (!memcmp(s->b + i, mark, sizeof(mark))) {
            return s->b + i;
        }
    }
    die("section %s is not there", name);
}

static void same_release(void **state)
{
    struct saved s = SAVE(new);

    (void)state;
    assert_null(LOAD(&s, new));
    assert_int_equal(now.a, 0x01020304);
    assert_int_equal(now.b, 5);
    assert_true(now.c);
    assert_int_equal(now.fresh, 6);
    free(s.b);
}

/* Parts missing in an older state stay as they were: a field, a section. */
static void older_release(void **state)
{
    struct saved s = SAVE(old);

    (void)state;
    assert_null(LOAD(&s, new));
    assert_int_equal(now.a, 0x01020304);
    assert_int_equal(now.b, 5);
    assert_false(now.c);
    assert_int_equal(now.fresh, 77);
    free(s.b);
}

/* A newer state is refused for its sections, or for their versions. */
static void newer_release(void **state)
{
    static const struct qhca_section raised[] = {
        { "first", 1, 1, io_first },
        { "second", 2, 1, io_second },
        { "end", 1, 1, io_end },
    };
    struct saved s = SAVE(new);

    (void)state;
    assert_string_equal(LOAD(&s, old), "second: an unknown section comes "
                        "here: fresh, version 1: the state is of a newer "
                        "release");
    free(s.b);
    s = SAVE(raised);
    assert_string_equal(LOAD(&s, old), "second: the section has version 2, "
                        "and this release reads 1 to 1: the state is of a "
                        "newer release");
    free(s.b);
}

/* A state that is older than what is still read. */
static void too_old(void **state)
{
    static const struct qhca_section later[] = {
        { "first", 3, 2, io_first },
        { "second", 2, 1, io_second },
        { "end", 1, 1, io_end },
    };
    struct saved s = SAVE(old);

    (void)state;
    assert_string_equal(LOAD(&s, later), "first: the section has version 1, "
                        "and this release reads 2 to 3: the state is of one "
                        "too old");
    free(s.b);
}

/* A field that came without a new version is found by the length. */
static void version_not_raised(void **state)
{
    static const struct qhca_section more[] = {
        { "first", 1, 1, io_first },
        { "second", 1, 1, io_greedy },
        { "end", 1, 1, io_end },
    };
    struct saved s = SAVE(old);

    (void)state;
    assert_string_equal(LOAD(&s, more), "second: the section ends too early");
    free(s.b);
    s = SAVE(more);
    assert_string_equal(LOAD(&s, old), "second: the section is longer than "
                        "its fields");
    free(s.b);
}

/* A section cannot be missing, come twice, or come in another's place. */
static void out_of_place(void **state)
{
    static const struct qhca_section none[] = {
        { "first", 1, 1, io_first },
        { "end", 1, 1, io_end },
    };
    static const struct qhca_section twice[] = {
        { "first", 1, 1, io_first },
        { "first", 1, 1, io_first },
        { "second", 1, 1, io_second },
        { "end", 1, 1, io_end },
    };
    static const struct qhca_section open[] = {
        { "first", 1, 1, io_first },
        { "second", 2, 1, io_second },
        { "fresh", 1, QHCA_SECTION_NEW, io_fresh },
    };
    struct saved s = SAVE(none);

    (void)state;
    assert_string_equal(LOAD(&s, new), "second: another section comes here: "
                        "end");
    free(s.b);
    s = SAVE(twice);
    assert_string_equal(LOAD(&s, new), "second: another section comes here: "
                        "first");
    free(s.b);
    s = SAVE(old);
    assert_string_equal(LOAD(&s, open), "fresh: an unknown section comes "
                        "here: end, version 1: the state is of a newer "
                        "release");
    s.len -= HEAD;              /* without "end" */
    assert_null(LOAD(&s, open));
    assert_int_equal(now.fresh, 77);
    free(s.b);
}

/* Lengths, names and versions are not trusted. */
static void hostile(void **state)
{
    static const uint32_t lens[] = { 0, 4, 6, 1000, 0x7fffffff, 0x80000000,
                                     0xfffffff0, 0xffffffff };
    struct saved s = SAVE(old);
    uint8_t *at = find(&s, "first");
    uint32_t was, zero = 0;
    unsigned i;

    (void)state;
    assert_int_equal(at[AT_LEN - 1], 4);
    memcpy(&was, at + AT_LEN, 4);
    assert_int_equal(was, 5);
    for (i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
        memcpy(at + AT_LEN, &lens[i], 4);
        assert_string_equal(LOAD(&s, old), lens[i] == 6 ?
                            "first: the section is longer than its fields" :
                            lens[i] < 6 ?
                            "first: the section ends too early" :
                            "first: the state ends too early");
    }
    memcpy(at + AT_LEN, &was, 4);
    memcpy(&was, at + AT_VERSION, 4);
    memcpy(at + AT_VERSION, &zero, 4);
    assert_non_null(strstr(LOAD(&s, old), "version 0"));
    memcpy(at + AT_VERSION, &was, 4);
    memcpy(at + 1, "\x1b[2J\xff\xff\xff\xff", 8);
    assert_string_equal(LOAD(&s, old), "first: an unknown section comes "
                        "here: ?[2J????, version 1: the state is of a newer "
                        "release");
    memcpy(at + 1, "first\0x", 8);
    assert_null(LOAD(&s, old));
    s.len = (size_t)(find(&s, "second") - s.b);
    assert_string_equal(LOAD(&s, old), "second: the state ends too early");
    free(s.b);
}

/* A section whose length does not fit its field is not saved. */
static void too_long(void **state)
{
    static const struct qhca_section huge[] = {
        { "first", 1, 1, io_huge },
        { "end", 1, 1, io_end },
    };
    struct qhca_io io = { .saving = true };

    (void)state;
    qhca_io_sections(&io, huge, 2);
    assert_true(io.failed);
    free(io.out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_release),
        cmocka_unit_test(older_release),
        cmocka_unit_test(newer_release),
        cmocka_unit_test(too_old),
        cmocka_unit_test(version_not_raised),
        cmocka_unit_test(out_of_place),
        cmocka_unit_test(hostile),
        cmocka_unit_test(too_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
