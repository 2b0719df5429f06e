/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Large sends (QHCA_WQE_F_ETH_LSO): the WQE at the tail of a send queue. */
#ifndef QHCA_ETH_LSO_H
#define QHCA_ETH_LSO_H

#include "engine.h"
#include "ethernet/eth_wqe.h"
#include "ethernet/large.h"

struct qhca_eth_q;
struct qhca_io;

/*
 * A large send in progress.  WQE and headers are read once, when it begins:
 * later changes of the guest's memory have no effect.
 */
struct qhca_lso {
    bool active;
    struct qhca_eth_tx_wqe w;
    uint8_t hdr[QHCA_ETH_LSO_HDR_MAX];
    uint32_t sent;              /* bytes of payload in frames that have left */
    /* computed from these */
    struct qhca_large l;
    uint32_t total;             /* bytes of payload */
    uint16_t mss;
    /* where the payload continues: segment of the WQE, and bytes into it */
    uint16_t seg;
    uint32_t seg_off;
};

/**
 * Begin the large send @w, a checked WQE at the tail of @q.  Returns false with
 * *@f set if it is refused.
 */
bool qhca_lso_begin(struct qhca *e, struct qhca_eth_q *q,
                    const struct qhca_eth_tx_wqe *w,
                    struct qhca_eth_failure *f);
/**
 * Build the next frame of @q's large send at @frame, without the tag that the
 * WQE may want inserted: *@len bytes, followed by a trailer if it is a
 * super-frame; *@frames gets how many frames it represents.  It is then sent
 * and passed to qhca_lso_sent(), or built again later.  Returns false with *@f
 * set if the payload cannot be read, which ends the large send.
 */
bool qhca_lso_build(struct qhca *e, struct qhca_eth_q *q, uint8_t *frame,
                    size_t *len, uint16_t *frames,
                    struct qhca_eth_failure *f);
/** Bytes of the headers in each frame of @q's large send, with the tag. */
size_t qhca_lso_headers(const struct qhca_eth_q *q);
/**
 * The frame built last has left: @len bytes with the tag, without a trailer.
 * Returns true if it was the last one.
 */
bool qhca_lso_sent(struct qhca_eth_q *q, size_t len);

/* Save or load q->lso, after the other fields of @q. */
void qhca_io_lso(struct qhca_io *io, struct qhca_eth_q *q);

#endif /* QHCA_ETH_LSO_H */
