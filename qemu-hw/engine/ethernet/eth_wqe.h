/* SPDX-License-Identifier: GPL-2.0-or-later */
/* WQEs of Ethernet send queues. */
#ifndef QHCA_ETH_WQE_H
#define QHCA_ETH_WQE_H

#include "engine.h"

#define QHCA_ETH_MAX_WQE    512

/* An Ethernet send WQE. */
struct qhca_eth_tx_wqe {
    struct qhca_eth_wqe h;
    struct qhca_eth_seg seg[QHCA_ETH_MAX_WQE / sizeof(struct qhca_eth_seg) -
                            1];
};

_Static_assert(sizeof(struct qhca_eth_tx_wqe) == QHCA_ETH_MAX_WQE, "one WQE");

/* Why no frame could be built: a completion status and the reason. */
struct qhca_eth_failure {
    uint8_t status, syndrome;
};

#endif /* QHCA_ETH_WQE_H */
