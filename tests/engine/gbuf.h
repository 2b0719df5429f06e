/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A buffer of the fake guest together with its buffer table, in any form the
 * contract knows (struct qhca_buf): what a driver does with pinned pages.
 */
#ifndef QHCA_TEST_GBUF_H
#define QHCA_TEST_GBUF_H

#include "rdma/qhca-hw.h"
#include "gmem.h"

struct gbuf_shape {
    uint8_t form;               /* QHCA_BUF_* */
    uint8_t hops;               /* TREE: 1..3 */
    uint8_t page_shift;         /* FLAT, TREE */
    uint8_t table_shift;        /* TREE */
};

struct gbuf_chunk {
    uint64_t addr;              /* DMA address */
    uint64_t len;               /* bytes */
    uint64_t off;               /* of the buffer at which it begins */
};

struct gbuf {
    struct gmem *m;
    struct qhca_buf d;          /* what the device is told */
    uint64_t len;
    struct gbuf_chunk *chunk;   /* the memory, in order */
    size_t chunks;
    struct gbuf_chunk *table;   /* the tables; the root is the first */
    size_t tables;
};

/* A shape that can hold @len bytes. */
void gbuf_shape_random(struct gbuf_shape *s, struct rng *r, uint64_t len);
/* The plain ones. */
extern const struct gbuf_shape gbuf_direct, gbuf_flat4k;

/*
 * Make a zeroed buffer of @len bytes.  @queue: begins at a page boundary,
 * segments are pages.  @first: position of byte 0 in page 0 (regions; cut to
 * what the form allows).  The tables may be read by the device, the memory may
 * not be touched: see gbuf_allow().
 */
void gbuf_make(struct gbuf *b, struct gmem *m, uint64_t len,
               const struct gbuf_shape *s, bool queue, uint64_t first,
               struct rng *r);
void gbuf_free(struct gbuf *b);

/* DMA address of byte @off; *@run: contiguous bytes from there (may be NULL) */
uint64_t gbuf_addr(const struct gbuf *b, uint64_t off, uint64_t *run);
/* DMA address of the last-level entry that maps byte @off (not DIRECT). */
uint64_t gbuf_entry_addr(const struct gbuf *b, uint64_t off);
void gbuf_write(struct gbuf *b, uint64_t off, const void *src, uint64_t len);
void gbuf_read(const struct gbuf *b, uint64_t off, void *dst, uint64_t len);
/* Permissions of the device, GMEM_*. */
void gbuf_allow(struct gbuf *b, uint64_t off, uint64_t len, unsigned bits);
void gbuf_deny(struct gbuf *b, uint64_t off, uint64_t len, unsigned bits);

/* Bytes of stream @id from @off on, anywhere the same. */
void pattern_bytes(uint64_t id, uint64_t off, void *dst, uint64_t len);
/* Write the stream into the buffer. */
void gbuf_fill(struct gbuf *b, uint64_t at, uint64_t id, uint64_t off,
               uint64_t len);
/* First byte that differs from the stream, or @len when all is well. */
uint64_t gbuf_verify(const struct gbuf *b, uint64_t at, uint64_t id,
                     uint64_t off, uint64_t len);

#endif
