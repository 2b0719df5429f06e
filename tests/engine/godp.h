/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On-demand paging as software sees it: a region whose pages come and go.
 *
 * A page that is taken away moves: it comes back at another DMA address, and
 * at the old one nothing is mapped any more.  So a device that uses a table
 * entry for too long is found out, whether it reads or writes.
 */
#ifndef QHCA_TEST_GODP_H
#define QHCA_TEST_GODP_H

#include "guest.h"

struct godp_link {              /* an entry that names a table */
    uint64_t at, value;
};

struct godp {
    struct gmr *mr;             /* the caller's */
    uint8_t *page;              /* by page: 0 absent, 1 to read, 3 to write */
    uint64_t pages;
    struct godp_link *link;
    size_t links;
    uint64_t in, out;           /* pages that came and went */
};

/*
 * Make the ODP region @mr, without pages.  @shape must be FLAT or TREE.  The memory
 * is there for the software (gbuf_*), only the device has no way to it.
 */
void godp_create(struct godp *o, struct gmr *mr, struct guest *g,
                 uint64_t len, uint64_t iova, uint32_t access,
                 const struct gbuf_shape *shape);
/* A shape it can have. */
void godp_shape_random(struct gbuf_shape *s, struct rng *r);
/* Status of DESTROY_MR; on success all memory is given back. */
uint8_t godp_destroy(struct godp *o);
/*
 * Let the device reach @len bytes from byte @off on, also to write them.  A
 * page that could only be read before moves by chance (copy on write).
 */
void godp_in(struct godp *o, uint64_t off, uint64_t len, bool write);
/* Take away all pages of these bytes that are there. */
void godp_out(struct godp *o, uint64_t off, uint64_t len);
/* Take away the table that holds the entry of byte @off, with its pages. */
void godp_out_table(struct godp *o, uint64_t off);

/* QUERY_FAULT */
void guest_faults(struct guest *g, uint32_t qpn,
                  struct qhca_fault f[QHCA_FAULT_SIDES]);
/* RESUME_FAULT; QHCA_ST_* */
uint8_t guest_resume(struct guest *g, uint32_t qpn, unsigned side,
                     uint32_t token, bool failed);

#endif
