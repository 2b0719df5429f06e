/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of a fake guest.
 *
 * A sparse space of 64 GiB of DMA addresses.  Pages are mapped by gmem_alloc(),
 * scattered by the seed.  Two bits per byte specify whether the device may read
 * and write it: everything around a buffer is a red zone.  An access of the
 * device to an unmapped page fails as on a real bus; an access to a mapped byte
 * without permission is a bug in the device and ends the test.
 */
#ifndef QHCA_TEST_GMEM_H
#define QHCA_TEST_GMEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rng.h"

#define GMEM_PAGE 4096u
#define GMEM_SPAN (1ULL << 36)

#define GMEM_R 1u               /* the device may read */
#define GMEM_W 2u               /* the device may write */
#define GMEM_RW 3u

struct gmem {
    uint64_t base;              /* DMA address of the first byte */
    uint8_t *data;
    uint64_t *may[2];           /* a bit per byte: read, write */
    uint64_t *mapped;           /* a bit per page */
    uint64_t *touched;          /* a bit per page: may be nonzero */
    uint64_t *allowed;          /* a bit per page: may have permissions */
    struct rng rng;
    unsigned fail_64k;          /* device accesses that fail, in 65536 ... */
    bool (*may_fail)(void *opaque, uint64_t addr);      /* ... of these */
    void *may_fail_opaque;
    bool unchecked;             /* no permissions (bench, fuzzers) */
    const char *name;
    /* statistics */
    uint64_t reads, read_bytes, writes, write_bytes, faults, injected;
    uint64_t mapped_pages;
    unsigned uses;              /* number of guests that have used this space */
    /* if set: called before each device access */
    void (*watch)(void *opaque, uint64_t addr, size_t len, bool write);
    void *watch_opaque;
};

/* @base is the first DMA address, a multiple of 4 GiB. */
void gmem_init(struct gmem *m, uint64_t base, uint64_t seed,
               const char *name);
void gmem_fini(struct gmem *m);

/*
 * Map at least @len bytes, contiguous, at an address aligned to 1 <<
 * @align_shift (12..31) plus @lead.  Pages before it are not mapped.  The
 * memory reads as 0 and the device has no permissions yet.  Ends the test if
 * there is no room.
 */
uint64_t gmem_alloc(struct gmem *m, uint64_t len, unsigned align_shift,
                    uint64_t lead);
/* As gmem_alloc(); returns 0 if there is no room. */
uint64_t gmem_try_alloc(struct gmem *m, uint64_t len, unsigned align_shift,
                        uint64_t lead);
/* Unmap what gmem_alloc() returned. */
void gmem_release(struct gmem *m, uint64_t addr, uint64_t len);
/* Copy @len mapped bytes to @to, with the device's permissions. */
void gmem_copy(struct gmem *m, uint64_t from, uint64_t to, uint64_t len);
/* Set the device's permissions. */
void gmem_allow(struct gmem *m, uint64_t addr, uint64_t len, unsigned bits);
void gmem_deny(struct gmem *m, uint64_t addr, uint64_t len, unsigned bits);
/* The CPU's view; ends the test unless all of it is mapped. */
void *gmem_ptr(struct gmem *m, uint64_t addr, uint64_t len);
/* The first mapped page at or behind *@addr; false: none. */
bool gmem_next_page(const struct gmem *m, uint64_t *addr);
/* Map the page at @addr, which is not mapped. */
void gmem_map_page(struct gmem *m, uint64_t addr);
/* An address with no byte mapped within @len. */
uint64_t gmem_unmapped(struct gmem *m, uint64_t len);

/* The device's accesses: false as on a bus error. */
bool gmem_dev_read(struct gmem *m, uint64_t addr, void *buf, size_t len);
bool gmem_dev_write(struct gmem *m, uint64_t addr, const void *buf,
                    size_t len);
/* May the device let others read this?  *@off: its place in m->data. */
bool gmem_dev_share(struct gmem *m, uint64_t addr, size_t len, uint64_t *off);
bool gmem_dev_cas64(struct gmem *m, uint64_t addr, uint64_t cmp,
                    uint64_t swap, uint64_t *old);

#endif
