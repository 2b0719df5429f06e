/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Flow steering, raw packet QPs, WQs and RSS: what these files know of each
 * other.  An adapter without flows has e->flows NULL, which is all it pays.
 */
#ifndef QHCA_FLOW_H
#define QHCA_FLOW_H

#include "roce.h"
#include "admin.h"

/* A WQ is a struct qhca_qp of this type, with a receive queue alone. */
#define QHCA_QPT_WQ         0x80

struct qhca_rss;

/* ---- flow_key.c ---- */
/** What of a frame of @len >= 14 bytes rules can look at. */
void qhca_flow_parse(const uint8_t *frame, size_t len,
                     struct qhca_flow_match *k);

/* ---- flow.c ---- */
/** Copies for the sniffers; call only with e->flows. */
void qhca_flow_sniff(struct qhca *e, const uint8_t *frame, size_t len);
/**
 * A frame that is not the RDMA engine's, from the wire or (@own) from a QP of
 * ours: to the QPs that rules name.  True: somebody took it; false: it is the
 * Ethernet function's.  Call only with e->flows.
 */
bool qhca_flow_rx(struct qhca *e, const uint8_t *frame, size_t len, bool own);

/** Rule @rule, of e->flow_table, as it was made; *@num gets its number. */
void qhca_flow_get(const void *rule, struct qhca_flow *out, uint32_t *num);

/* ---- raw.c ---- */
/** Give a frame to a QP of type RAW or RSS. */
void qhca_raw_rx(struct qhca *e, struct qhca_qp *qp, const uint8_t *frame,
                 size_t len, const struct qhca_flow_match *k, uint32_t tag);

/* ---- rss.c ---- */
/** CREATE_QP of type RSS: is what it asks for possible? */
uint8_t qhca_rss_check(struct qhca *e, struct qhca_cmd *c,
                       const struct qhca_qpc *in);
/** False: no memory. */
bool qhca_rss_init(struct qhca *e, struct qhca_qp *qp,
                   const struct qhca_qpc *in);
void qhca_rss_free(struct qhca_qp *qp);
void qhca_rss_query(const struct qhca_qp *qp, struct qhca_qpc *out);
/** Size of indirection table @rqt, of e->rqts; *@users: RSS QPs that use it. */
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
