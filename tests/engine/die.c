/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "die.h"

char die_replay[512];
bool die_aborts;
void (*die_hook)(void);

static void __attribute__((noreturn)) end(void)
{
    static bool again;

    if (die_hook && !again) {
        again = true;
        die_hook();
    }
    if (die_replay[0]) {
        fprintf(stderr, "replay: %s\n", die_replay);
    }
    fflush(NULL);
    if (die_aborts) {
        abort();
    }
    _exit(1);
}

void die(const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fprintf(stderr, "FAILED: ");
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    end();
}

void die_at(const char *file, int line, const char *cond,
            const char *fmt, ...)
{
    va_list ap;

    fflush(stdout);
    fprintf(stderr, "FAILED: %s:%d: not (%s): ", file, line, cond);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    end();
}
