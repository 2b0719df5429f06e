/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a test fails: loudly, at once, with a command that replays it. */
#ifndef QHCA_TEST_DIE_H
#define QHCA_TEST_DIE_H

#include <stdbool.h>

/* If set, printed below the message: a command that reproduces the failure. */
extern char die_replay[512];
/* Fuzzers need abort(), so that they keep the input. */
extern bool die_aborts;
/* If set, called before exit: prints what the test knows. */
extern void (*die_hook)(void);

/* Print, then end the program with status 1 (or abort). */
void die(const char *fmt, ...)
    __attribute__((noreturn, format(printf, 1, 2)));

/* Die with @... (a format and its arguments) if @cond is false. */
#define CHECK(cond, ...)                                            \
    do {                                                            \
        if (!(cond)) {                                              \
            die_at(__FILE__, __LINE__, #cond, __VA_ARGS__);         \
        }                                                           \
    } while (0)

void die_at(const char *file, int line, const char *cond,
            const char *fmt, ...)
    __attribute__((noreturn, format(printf, 4, 5)));

#endif
