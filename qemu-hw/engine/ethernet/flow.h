/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow steering, raw packet QPs, WQs and RSS: what these files know of each
 * other.  An adapter without flows has e->eth->flows NULL, and pays no more.
 */
#ifndef QHCA_FLOW_H
#define QHCA_FLOW_H

#include "ethernet/ethernet.h"

struct qhca_rss;

/* ---- flow_key.c ---- */
/** What of a frame of @len >= 14 bytes rules can look at. */
void qhca_flow_parse(const uint8_t *frame, size_t len,
                     struct qhca_flow_match *k);

/* ---- flow.c ---- */
/** Rule @rule, of e->eth->flow_table, as it was made; *@num gets its number. */
void qhca_flow_get(const void *rule, struct qhca_flow *out, uint32_t *num);

/* ---- raw.c ---- */
/** Give a frame to a QP of type RAW or RSS. */
void qhca_raw_rx(struct qhca *e, struct qhca_qp *qp, const uint8_t *frame,
                 size_t len, const struct qhca_flow_match *k, uint32_t tag);

/* ---- rss.c ---- */
/** What the context of @qp, of type RSS, says of that. */
void qhca_rss_query(const struct qhca_qp *qp, struct qhca_qpc *out);
/**
 * Size of indirection table @rqt, of e->eth->rqts; *@users: RSS QPs that use
 * it.
 */
uint32_t qhca_rqt_size(const void *rqt, uint32_t *num, uint32_t *users);
/** The WQ at place @i < size. */
const struct qhca_qp *qhca_rqt_wq(const void *rqt, uint32_t i);
/** The table of @qp, of type RSS. */
const void *qhca_rss_rqt(const struct qhca_qp *qp);
/** The WQ of a frame. */
struct qhca_qp *qhca_rss_pick(const struct qhca_qp *qp,
                              const struct qhca_flow_match *k);
/** Toeplitz hash of @len <= 36 bytes. */
uint32_t qhca_toeplitz(const uint8_t key[40], const uint8_t *in, size_t len);

#endif /* QHCA_FLOW_H */
