/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory that runs out, for the binaries that the Makefile links with --wrap.
 * Only calls of the engine may be in between: the rest of the harness ends the
 * test when it gets no memory.
 */
#ifndef QHCA_TEST_NOMEM_H
#define QHCA_TEST_NOMEM_H

#include <stdbool.h>

/* Of the allocations from now on, number @n (from 1) fails, and only that. */
void nomem_at(unsigned n);
/* No other fails; has it failed? */
bool nomem_end(void);

#endif
