/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of flow steering, raw packet QPs, WQs and RSS share.  An
 * adapter without rules has e->eth->flows NULL and pays nothing more.
 */
#ifndef QHCA_FLOW_H
#define QHCA_FLOW_H

#include "ethernet/ethernet.h"

struct qhca_rss;

/* ---- flow_key.c ---- */
/** Extract what rules match on from a frame of @len >= 14 bytes. */
void qhca_flow_parse(const uint8_t *frame, size_t len,
                     struct qhca_flow_match *k);

/* ---- flow.c ---- */
/** Rule @rule, of e->eth->flow_table, as created; *@num gets its number. */
void qhca_flow_get(const void *rule, struct qhca_flow *out, uint32_t *num);

/* ---- raw.c ---- */
/** Deliver a frame to a QP of type RAW or RSS. */
void qhca_raw_rx(struct qhca *e, struct qhca_qp *qp, const uint8_t *frame,
                 size_t len, const struct qhca_flow_match *k, uint32_t tag);

/* ---- rss.c ---- */
/** Fill in the RSS fields of the context of @qp, of type RSS. */
void qhca_rss_query(const struct qhca_qp *qp, struct qhca_qpc *out);
/**
 * Size of the indirection table @rqt, of e->eth->rqts; *@users gets the number
 * of RSS QPs that use it.
 */
uint32_t qhca_rqt_size(const void *rqt, uint32_t *num, uint32_t *users);
/** The WQ in entry @i < size. */
const struct qhca_qp *qhca_rqt_wq(const void *rqt, uint32_t i);
/** The indirection table of @qp, of type RSS. */
const void *qhca_rss_rqt(const struct qhca_qp *qp);
/** The WQ that receives a frame. */
struct qhca_qp *qhca_rss_pick(const struct qhca_qp *qp,
                              const struct qhca_flow_match *k);
/** Toeplitz hash of @len <= 36 bytes. */
uint32_t qhca_toeplitz(const uint8_t key[40], const uint8_t *in, size_t len);

#endif /* QHCA_FLOW_H */
