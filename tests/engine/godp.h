/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * On-demand paging as software sees it: a region whose pages come and go.  A
 * removed page moves: it returns at another DMA address, and the old one is
 * unmapped.  So a device that uses a stale table entry is caught, whether it
 * reads or writes.
 */
#ifndef QHCA_TEST_GODP_H
#define QHCA_TEST_GODP_H

#include "guest.h"

struct godp_link {              /* an entry that points to a table */
    uint64_t at, value;
};

struct godp {
    struct gmr *mr;             /* owned by the caller */
    uint8_t *page;              /* by page: 0 absent, 1 read-only, 3 writable */
    uint64_t pages;
    struct godp_link *link;
    size_t links;
    uint64_t in, out;           /* pages brought in and removed */
};

/*
 * Create the ODP region @mr, without pages.  @shape must be FLAT or TREE.
 * Software can access the memory (gbuf_*), but the device cannot.
 */
void godp_create(struct godp *o, struct gmr *mr, struct guest *g,
                 uint64_t len, uint64_t iova, uint32_t access,
                 const struct gbuf_shape *shape);
/* A random shape for an ODP region. */
void godp_shape_random(struct gbuf_shape *s, struct rng *r);
/* Status of DESTROY_MR; frees all memory on success. */
uint8_t godp_destroy(struct godp *o);
/*
 * Make @len bytes from @off accessible to the device, writable if @write.  A
 * page that was read-only may move (copy on write).
 */
void godp_in(struct godp *o, uint64_t off, uint64_t len, bool write);
/* Remove all present pages of these bytes. */
void godp_out(struct godp *o, uint64_t off, uint64_t len);
/* Remove the table that holds the entry of byte @off, with its pages. */
void godp_out_table(struct godp *o, uint64_t off);

/* QUERY_PAGE_FAULT */
void guest_faults(struct guest *g, uint32_t qpn,
                  struct qhca_page_fault f[QHCA_PAGE_FAULT_SIDES]);
/* RESUME_PAGE_FAULT; QHCA_ST_* */
uint8_t guest_resume(struct guest *g, uint32_t qpn, unsigned side,
                     uint32_t token, bool failed);

#endif
