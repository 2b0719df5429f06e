/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What DMA is for. */
#ifndef QHCA_DMA_KIND_H
#define QHCA_DMA_KIND_H

/* Purpose of a DMA access or of a buffer. */
enum qhca_dma {
    QHCA_DMA_COMMAND,           /* admin queue; number: of the object */
    QHCA_DMA_TABLE,             /* buffer table; number: of its object */
    QHCA_DMA_WQE,               /* number: QPN or SRQN */
    QHCA_DMA_CQE,               /* number: CQN */
    QHCA_DMA_EQE,               /* or an EQ's record; number: EQN */
    QHCA_DMA_RECORD,            /* doorbell record; number: QPN, SRQN or CQN */
    QHCA_DMA_DATA,              /* payload; number: QPN; tables: key */
    QHCA_DMA_ETH,               /* all DMA of an Ethernet queue; number: its */
    QHCA_DMAS
};

#endif /* QHCA_DMA_KIND_H */
