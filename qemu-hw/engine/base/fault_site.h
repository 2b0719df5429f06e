/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Fault injection sites. */
#ifndef QHCA_FAULT_SITE_H
#define QHCA_FAULT_SITE_H

/* Sites at which a fault rule is evaluated. */
enum qhca_fault_at {
    QHCA_FLT_AT_NOW,            /* immediately, when the rule is added */
    QHCA_FLT_AT_PACKET,         /* number: QPN; peer: QPN; RoCE packets only */
    QHCA_FLT_AT_RECV,           /* number: QPN */
    QHCA_FLT_AT_DMA,            /* number: of the object; see dma_kind.h */
    QHCA_FLT_AT_TABLE,          /* the same; index: of the page or segment */
    QHCA_FLT_AT_CQE,            /* number: CQN; peer: QPN */
    QHCA_FLT_AT_EVENT,          /* number: EQN; peer: object */
    QHCA_FLT_AT_INTERRUPT,      /* number: vector */
    QHCA_FLT_AT_REGISTER,       /* one is read; number: its offset */
    QHCA_FLT_AT_FRAME,          /* number: EtherType; in: not RoCE packets */
    QHCA_FLT_AT_COMMAND,        /* number: opcode */
    QHCA_FLT_ATS
};

#endif /* QHCA_FAULT_SITE_H */
