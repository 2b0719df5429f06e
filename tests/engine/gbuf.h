/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A buffer of the fake guest with its buffer table, in any form of struct
 * qhca_buf, as a driver creates it from pinned pages.
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
    uint64_t off;               /* offset of the chunk in the buffer */
};

struct gbuf {
    struct gmem *m;
    struct qhca_buf d;          /* the descriptor given to the device */
    uint64_t len;
    struct gbuf_chunk *chunk;   /* the memory, in order */
    size_t chunks;
    struct gbuf_chunk *table;   /* the tables, the root first */
    size_t tables;
};

/* A random shape that can hold @len bytes. */
void gbuf_shape_random(struct gbuf_shape *s, struct rng *r, uint64_t len);
/* Simple shapes. */
extern const struct gbuf_shape gbuf_direct, gbuf_flat4k;

/*
 * Create a zeroed buffer of @len bytes.  @queue: starts at a page boundary,
 * segments are pages.  @first: position of byte 0 in page 0 (regions; limited
 * to what the form allows).  The device may read the tables but not access the
 * memory: see gbuf_allow().
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
/* Set the device's permissions, GMEM_*. */
void gbuf_allow(struct gbuf *b, uint64_t off, uint64_t len, unsigned bits);
void gbuf_deny(struct gbuf *b, uint64_t off, uint64_t len, unsigned bits);

/* Bytes of stream @id from @off on: a pure function of both. */
void pattern_bytes(uint64_t id, uint64_t off, void *dst, uint64_t len);
/* Write the stream into the buffer. */
void gbuf_fill(struct gbuf *b, uint64_t at, uint64_t id, uint64_t off,
               uint64_t len);
/* Offset of the first byte that differs from the stream, or @len if none. */
uint64_t gbuf_verify(const struct gbuf *b, uint64_t at, uint64_t id,
                     uint64_t off, uint64_t len);

#endif
