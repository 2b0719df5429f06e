/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The checks of send WQEs, for QPs of all types. */
#include "queues/queues.h"

/* Types of QPs, as bits. */
#define RELIABLE    (1U << QHCA_QPT_RC | 1U << QHCA_QPT_XRC_INI)
#define CONNECTED   (RELIABLE | 1U << QHCA_QPT_UC)
#define DATAGRAM    (1U << QHCA_QPT_UD | 1U << QHCA_QPT_GSI)

#define READ_FLAGS  (QHCA_WQE_F_SIGNALED | QHCA_WQE_F_SOLICITED | \
                     QHCA_WQE_F_FENCE)
#define FLAGS       (READ_FLAGS | QHCA_WQE_F_INLINE)
/* Local operations ignore flags that they do not know. */
#define LOCAL_FLAGS (0xff & ~QHCA_WQE_F_INLINE)

static const struct wqe_rule {
    uint8_t types;              /* of the QPs that may send it; 0: none */
    uint8_t flags;              /* QHCA_WQE_F_* that it may have */
    uint32_t least, most;       /* bytes of data; most 0: no SGE either */
} wqe_rules[UINT8_MAX + 1] = {
    [QHCA_WQE_SEND] = { CONNECTED | DATAGRAM, FLAGS, 0, QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_SEND_IMM] = { CONNECTED | DATAGRAM, FLAGS, 0, QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_SEND_INV] = { RELIABLE, FLAGS, 0, QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_RDMA_WRITE] = { CONNECTED, FLAGS, 0, QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_RDMA_WRITE_IMM] = { CONNECTED, FLAGS, 0, QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_ATOMIC_WRITE] = { RELIABLE, FLAGS, 8, 8 },
    [QHCA_WQE_RDMA_READ] = { RELIABLE, READ_FLAGS, 0, QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_COMP_SWAP] = { RELIABLE, READ_FLAGS, 8, QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_FETCH_ADD] = { RELIABLE, READ_FLAGS, 8, QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_MASKED_COMP_SWAP] = { 1U << QHCA_QPT_RC, READ_FLAGS, 8,
                                    QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_MASKED_FETCH_ADD] = { 1U << QHCA_QPT_RC, READ_FLAGS, 8,
                                    QHCA_MAX_MSG_SIZE },
    [QHCA_WQE_LOCAL_INV] = { CONNECTED, LOCAL_FLAGS, 0, 0 },
    [QHCA_WQE_REG_MR] = { CONNECTED, LOCAL_FLAGS, 0, 0 },
    [QHCA_WQE_BIND_MW] = { CONNECTED, LOCAL_FLAGS, 0, 0 },
    [QHCA_WQE_FLUSH] = { RELIABLE, READ_FLAGS, 0, 0 },
    [QHCA_WQE_RAW_SEND] = { 1U << QHCA_QPT_RAW, FLAGS | QHCA_WQE_F_ETH_CSUM,
                            QHCA_ETH_HLEN, QHCA_ETH_MAX_FRAME },
};

uint32_t qhca_wqe_header(const struct qhca_qp *qp, uint8_t opcode)
{
    switch (qp->type) {
    case QHCA_QPT_UD:
    case QHCA_QPT_GSI:
        return sizeof(struct qhca_ud_wqe);
    case QHCA_QPT_XRC_INI:
        return sizeof(struct qhca_xrc_wqe);
    default:
        return qhca_wqe_is_masked(opcode) ? sizeof(struct qhca_masked_wqe) :
                                            sizeof(struct qhca_sq_wqe);
    }
}

/* Is there room in a WQE for that many SGEs, or inline bytes? */
static bool wqe_holds(const struct qhca_qp *qp, const struct qhca_wqe_head *h)
{
    uint32_t room = (1U << qp->sq_stride) - qhca_wqe_header(qp, h->opcode);

    return h->flags & QHCA_WQE_F_INLINE ?
           h->num <= room && h->num <= QHCA_MAX_INLINE :
           h->num <= room / sizeof(struct qhca_sge) && h->num <= QHCA_MAX_SGE;
}

void qhca_wqe_unpack(const struct qhca_qp *qp, const uint8_t *wqe,
                     struct qhca_wqe_head *h)
{
    uint64_t len;

    h->opcode = wqe[0];
    h->flags = wqe[1];
    h->num = qhca_get_le16(wqe + 2);
    h->len = 0;
    if (wqe_holds(qp, h)) {
        len = h->flags & QHCA_WQE_F_INLINE ? h->num :
              qhca_sgl_len(wqe + qhca_wqe_header(qp, h->opcode), h->num);
        h->len = len < UINT32_MAX ? (uint32_t)len : UINT32_MAX;
    }
}

uint8_t qhca_wqe_check(const struct qhca_qp *qp, const struct qhca_wqe_head *h,
                       uint8_t *status)
{
    const struct wqe_rule *r = &wqe_rules[h->opcode];

    *status = QHCA_WC_LOC_QP_OP_ERR;
    if (!(r->types & 1U << qp->type)) {
        return QHCA_SYN_WQE_OPCODE;
    }
    /* It contains DMA addresses: kernel queues only. */
    if (h->opcode == QHCA_WQE_REG_MR && !(qp->flags & QHCA_QP_F_PRIVILEGED)) {
        return QHCA_SYN_WQE_OPCODE;
    }
    if (h->flags & ~r->flags) {
        return QHCA_SYN_WQE_FLAGS;
    }
    if ((h->num && !r->most) || !wqe_holds(qp, h)) {
        return QHCA_SYN_WQE_SGE;
    }
    if (h->len < r->least || h->len > r->most) {
        *status = QHCA_WC_LOC_LEN_ERR;
        return QHCA_SYN_WQE_LENGTH;
    }
    return QHCA_SYN_NONE;
}
