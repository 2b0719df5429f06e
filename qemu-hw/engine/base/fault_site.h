/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fault injection sites, and the purposes of DMA accesses. */
#ifndef QHCA_FAULT_SITE_H
#define QHCA_FAULT_SITE_H

/* Sites at which a fault rule is evaluated. */
enum qhca_fault_at {
    QHCA_FLT_AT_NOW,            /* immediately, when the rule is added */
    QHCA_FLT_AT_PACKET,         /* number: QPN; peer: QPN; RoCE packets only */
    QHCA_FLT_AT_RECV,           /* number: QPN */
    QHCA_FLT_AT_DMA,            /* number: of the object; see qhca_dma */
    QHCA_FLT_AT_TABLE,          /* the same; index: of the page or segment */
    QHCA_FLT_AT_CQE,            /* number: CQN; peer: QPN */
    QHCA_FLT_AT_EVENT,          /* number: EQN; peer: object */
    QHCA_FLT_AT_INTERRUPT,      /* number: vector */
    QHCA_FLT_AT_REGISTER,       /* one is read; number: its offset */
    QHCA_FLT_ATS
};

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

#endif /* QHCA_FAULT_SITE_H */
