// SPDX-License-Identifier: GPL-2.0-or-later
/* Patterns in memory, and time. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/mman.h>

#include "rds.h"

void *memory(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || madvise(p, bytes, MADV_NOHUGEPAGE))
		die("memory");
	return p;
}

/* The 8 bytes of the pattern at position @at, a multiple of 8. */
static uint64_t word(uint64_t at, uint32_t seed)
{
	uint64_t x = (at + 8) * 0x9e3779b97f4a7c15ULL ^ (uint64_t)seed << 20;

	return x ^ x >> 29;
}

static uint8_t byte(uint64_t at, uint32_t seed)
{
	return word(at & ~7ULL, seed) >> 8 * (at & 7);
}

void pattern_fill(void *data, size_t len, uint64_t from, uint32_t seed)
{
	uint8_t *p = data;

	for (; len && from & 7; len--)
		*p++ = byte(from++, seed);
	for (; len >= 8; len -= 8, p += 8, from += 8) {
		uint64_t w = word(from, seed);

		memcpy(p, &w, 8);
	}
	for (; len; len--)
		*p++ = byte(from++, seed);
}

size_t pattern_wrong(const void *data, size_t len, uint64_t from,
		     uint32_t seed)
{
	const uint8_t *p = data;
	size_t wrong = 0;

	for (; len && from & 7; len--)
		wrong += *p++ != byte(from++, seed);
	for (; len >= 8; len -= 8, p += 8, from += 8) {
		uint64_t w = word(from, seed);
		int i;

		if (memcmp(p, &w, 8))
			for (i = 0; i < 8; i++)
				wrong += p[i] != (uint8_t)(w >> 8 * i);
	}
	for (; len; len--)
		wrong += *p++ != byte(from++, seed);
	return wrong;
}

size_t touched(const void *data, size_t len)
{
	const uint8_t *p = data;
	size_t n = 0;

	while (len--)
		n += *p++ != UNTOUCHED;
	return n;
}

int64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000LL + t.tv_nsec / 1000000;
}

void die(const char *what)
{
	perror(what);
	exit(2);
}
