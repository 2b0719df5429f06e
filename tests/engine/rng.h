/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The only source of randomness in the tests: seeded, and small. */
#ifndef QHCA_TEST_RNG_H
#define QHCA_TEST_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t s;
};

/* A good 64-bit mixer: nearby inputs give unrelated outputs. */
static inline uint64_t rng_mix(uint64_t x)
{
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    x *= 0xd6e8feb86659fd93ULL;
    x ^= x >> 32;
    return x;
}

static inline void rng_init(struct rng *r, uint64_t seed)
{
    r->s = rng_mix(seed + 0x632be59bd9b4e019ULL);
}

static inline uint64_t rng_u64(struct rng *r)
{
    r->s += 0x9e3779b97f4a7c15ULL;
    return rng_mix(r->s);
}

static inline uint32_t rng_u32(struct rng *r)
{
    return (uint32_t)(rng_u64(r) >> 32);
}

/* 0 .. n-1; 0 if n is 0 */
static inline uint64_t rng_below(struct rng *r, uint64_t n)
{
    return n ? rng_u64(r) % n : 0;
}

/* lo .. hi, inclusive */
static inline uint64_t rng_range(struct rng *r, uint64_t lo, uint64_t hi)
{
    return lo + rng_below(r, hi - lo + 1);
}

/* True in @pct of 100 cases. */
static inline bool rng_pct(struct rng *r, unsigned pct)
{
    return rng_below(r, 100) < pct;
}

/* True in @n of 65536 cases. */
static inline bool rng_64k(struct rng *r, unsigned n)
{
    return n && (rng_u64(r) & 0xffff) < n;
}

/* 0 .. max, small values as likely as large ones (log scale). */
static inline uint64_t rng_log(struct rng *r, uint64_t max)
{
    unsigned bits = max ? 64 - (unsigned)__builtin_clzll(max) : 0;
    uint64_t m = rng_range(r, 0, bits);
    uint64_t v = m == 64 ? rng_u64(r) : rng_below(r, 1ULL << m);

    return v > max ? max : v;
}

#endif
