/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <stddef.h>

#include "nomem.h"

/* What the linker makes of malloc() and of calls of it. */
void *__real_malloc(size_t len);
void *__real_calloc(size_t n, size_t len);
void *__real_realloc(void *p, size_t len);
void *__wrap_malloc(size_t len);
void *__wrap_calloc(size_t n, size_t len);
void *__wrap_realloc(void *p, size_t len);

static unsigned left;           /* allocations to the one that fails */
static bool failed;

void nomem_at(unsigned n)
{
    left = n;
    failed = false;
}

bool nomem_end(void)
{
    left = 0;
    return failed;
}

static bool fails(void)
{
    if (left && !--left) {
        failed = true;
        return true;
    }
    return false;
}

void *__wrap_malloc(size_t len)
{
    return fails() ? NULL : __real_malloc(len);
}

void *__wrap_calloc(size_t n, size_t len)
{
    return fails() ? NULL : __real_calloc(n, len);
}

void *__wrap_realloc(void *p, size_t len)
{
    return fails() ? NULL : __real_realloc(p, len);
}
