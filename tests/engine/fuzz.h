/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the fuzz targets: the input as a stream, a small adapter. */
#ifndef QHCA_TEST_FUZZ_H
#define QHCA_TEST_FUZZ_H

#include <string.h>

#include "die.h"
#include "guest.h"

struct fz {
    const uint8_t *p, *end;
};

static inline bool fz_more(const struct fz *f)
{
    return f->p < f->end;
}

static inline uint8_t fz_u8(struct fz *f)
{
    return f->p < f->end ? *f->p++ : 0;
}

static inline uint16_t fz_u16(struct fz *f)
{
    uint16_t v = fz_u8(f);

    return (uint16_t)(v | fz_u8(f) << 8);
}

static inline uint32_t fz_u32(struct fz *f)
{
    uint32_t v = fz_u16(f);

    return v | (uint32_t)fz_u16(f) << 16;
}

static inline uint64_t fz_u64(struct fz *f)
{
    uint64_t v = fz_u32(f);

    return v | (uint64_t)fz_u32(f) << 32;
}

/* Copy up to @n bytes; returns how many there were. */
static inline size_t fz_bytes(struct fz *f, void *dst, size_t n)
{
    size_t have = (size_t)(f->end - f->p);

    n = n < have ? n : have;
    memcpy(dst, f->p, n);
    f->p += n;
    return n;
}

/* Overwrite @n bytes of something valid with a few bytes of the input. */
static inline void fz_spoil(struct fz *f, void *dst, size_t n)
{
    unsigned k = fz_u8(f) & 7;

    while (k-- && fz_more(f)) {
        size_t at = fz_u16(f) % n, len = fz_u8(f) & 15;

        fz_bytes(f, (uint8_t *)dst + at, len < n - at ? len : n - at);
    }
}

/* Make most addresses, which are small or wild, point into [base, + len). */
static inline uint64_t fz_addr(struct fz *f, uint64_t base, uint64_t len)
{
    uint64_t v = fz_u32(f);

    return v >> 28 == 15 ? v << 32 | v : base + (v & ~63u) % len;
}

static inline void fuzz_config(struct qhca_config *c)
{
    memset(c, 0, sizeof(*c));
    qhca_config_default(c);
    c->num_vectors = WORLD_VECTORS;
    c->max_qp = 32;
    c->max_cq = 32;
    c->max_srq = 32;
    c->max_mr = 64;
    c->max_pd = 32;
    c->max_eq = 8;
    c->max_gid = 16;
    c->max_eth_queues = 4;
    c->dm_size = GMEM_SPAN;
    c->reset_budget = 1;        /* objects of a reset are freed later */
}

static inline bool fuzz_swallow(struct world *w, unsigned src,
                                uint8_t *frame, size_t *len)
{
    (void)w;
    (void)src;
    (void)frame;
    (void)len;
    return false;
}

static const struct guest_config fuzz_guest = {
    .db_shift = 12, .aq_shift = 2, .eqs = 2, .eq_shift = 3, .irq_ns = 100,
    .records = 2,
};

/* An adapter with its driver; @cfg NULL: of fuzz_config(). */
static inline void fuzz_open(struct world *w, struct guest *g,
                             const struct qhca_config *cfg)
{
    struct qhca_config usual;

    die_aborts = true;
    fuzz_config(&usual);
    world_init(w, 1, 1, cfg ? cfg : &usual);
    w->wire.filter = fuzz_swallow;
    guest_start(g, &w->node[0], 1, &fuzz_guest);
}

/* The target: one run from power-on to power-off. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
