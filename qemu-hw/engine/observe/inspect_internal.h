/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shared by the files of inspection (inspect*.c). */
#ifndef QHCA_INSPECT_INTERNAL_H
#define QHCA_INSPECT_INTERNAL_H

#include "adapter/adapter.h"
#include "ethernet/flow.h"
#include "observe/decode.h"
#include "transport/rc.h"
#include "transport/tag_qp.h"

/* One table entry (or segment) on the way to a byte. */
struct qhca_hop {
    uint64_t table;             /* DMA address of the table */
    uint64_t used;              /* number of its entries in use */
    uint64_t index;             /* in the table */
    uint64_t entry;             /* as read; LIST: the address */
    uint64_t len;               /* LIST: second half of the segment */
};

/* The path to a byte, walked from guest memory alone. */
struct qhca_path {
    unsigned hops;
    struct qhca_hop hop[QHCA_BUF_HOPS_MAX];
    const char *error;          /* what is wrong, or NULL */
    uint64_t addr, run;         /* if there is no error */
};

/* Read memory without counting it; @dm: device memory. */
bool qhca_peek(struct qhca *e, bool dm, uint64_t addr, void *buf, size_t len);
void qhca_peek_walk(struct qhca *e, const struct qhca_buf_table *m,
                    uint64_t off, struct qhca_path *p);
/* Read the entry at @off; NULL or an error text.  *@addr gets its address. */
const char *qhca_peek_entry(struct qhca *e, const struct qhca_buf_table *m,
                            uint64_t off, void *buf, size_t len,
                            uint64_t *addr);

/* A ring as inspection sees it. */
struct qhca_ring_info {
    const struct qhca_buf_table *map;
    uint8_t shift, stride;
    uint8_t qp_type;
    uint32_t head;              /* producer */
    uint32_t next;              /* first entry not fetched yet; SQ only */
    uint32_t tail;              /* consumer */
    uint64_t dbrec;             /* DMA address or 0 */
    bool phase;                 /* has phase bits: the device produces */
    bool unordered;             /* has no head and tail */
};

/* Returns NULL, or an error text. */
const char *qhca_ring_find(struct qhca *e, enum qhca_object object,
                           uint32_t number, enum qhca_ring ring,
                           struct qhca_ring_info *r);
/*
 * Find the table to show: a ring's, or an MR's (@mrp).  @phys is a buffer for
 * MRs without a table.  Returns NULL, or an error text.
 */
const char *qhca_inspect_find(struct qhca *e, enum qhca_object object,
                              uint32_t number, enum qhca_ring ring,
                              struct qhca_ring_info *r,
                              struct qhca_buf_table *phys,
                              const struct qhca_mr **mrp);
/* The error in a table entry, or NULL. */
const char *qhca_inspect_entry_error(const struct qhca_buf_table *m,
                                     uint64_t entry, bool leaf);
/* Emit an entry of the table at @table; @len: second half of a LIST segment. */
void qhca_inspect_entry(const struct qhca_emit *em,
                        const struct qhca_buf_table *m, uint64_t table,
                        uint64_t index, uint64_t entry, uint64_t len);

/* Emit what the device keeps in addition to the context. */
void qhca_inspect_qp(struct qhca *e, struct qhca_qp *qp,
                     const struct qhca_emit *em);
/* inspect_flow.c: WQs, indirection tables, RSS, steering rules */
void qhca_inspect_wq(struct qhca *e, struct qhca_wq *wq,
                     const struct qhca_emit *em);
void qhca_inspect_rqt(const void *rqt, const struct qhca_emit *em);
/* The RSS QPs over indirection table @rqt. */
void qhca_inspect_rqt_users(struct qhca *e, const void *rqt,
                            const struct qhca_emit *em);
/* How frames reach Ethernet RQ @q. */
void qhca_inspect_steered(struct qhca *e, const struct qhca_eth_q *q,
                          const struct qhca_emit *em);
void qhca_inspect_rss(const struct qhca_qp *qp, const struct qhca_emit *em);
void qhca_sum_wq(const struct qhca_emit *em, const void *obj);
void qhca_sum_rqt(const struct qhca_emit *em, const void *obj);
void qhca_sum_rss(const struct qhca_emit *em, const void *obj);
void qhca_sum_flow(const struct qhca_emit *em, const void *obj);
uint8_t qhca_inspect_query_flow(struct qhca *e, struct qhca_cmd *c);
/* inspect_shaper.c */
void qhca_sum_shaper(const struct qhca_emit *em, const void *obj);
void qhca_inspect_shaper(struct qhca *e, const struct qhca_shaper *s,
                         const struct qhca_emit *em);
/* The shaper that holds @q back, if any. */
void qhca_inspect_held(const struct qhca_eth_q *q, const struct qhca_emit *em);
void qhca_inspect_tm(const struct qhca_srq *srq, const struct qhca_emit *em);
void qhca_inspect_map(const struct qhca_buf_table *m, const char *name,
                      const struct qhca_emit *em);
void qhca_inspect_dbrec(struct qhca *e, uint64_t addr,
                        const struct qhca_emit *em);

#endif /* QHCA_INSPECT_INTERNAL_H */
