/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A receive WQE, from the first packet of a message to the completion. */
#include "queues/queues.h"

#define RECV_HEADER sizeof(struct qhca_rq_wqe)

uint8_t qhca_recv_hold(struct qhca_recv *r, uint32_t len)
{
    uint64_t cap;
    uint16_t num;

    r->held = true;
    r->cap = 0;
    r->sges = 0;
    memcpy(&num, r->wqe + offsetof(struct qhca_rq_wqe, num_sge), sizeof(num));
    num = qhca_le16(num);
    if (len < RECV_HEADER || len > sizeof(r->wqe) || num > QHCA_MAX_SGE ||
        num > (len - RECV_HEADER) / sizeof(struct qhca_sge)) {
        return QHCA_SYN_WQE_SGE;
    }
    cap = qhca_sgl_len(r->wqe + RECV_HEADER, num);
    r->sges = num;
    r->cap = cap > UINT32_MAX ? UINT32_MAX : (uint32_t)cap;
    return QHCA_SYN_NONE;
}

uint8_t qhca_recv_store(struct qhca *e, struct qhca_recv *r,
                        struct qhca_sgl_user user, const void *buf,
                        uint32_t len)
{
    uint8_t syn;

    if (len > r->cap - r->len ||
        (uint64_t)r->len + len > QHCA_MAX_MSG_SIZE) {
        return QHCA_SYN_RQ_LENGTH;
    }
    /* with write set, the buffer is only read */
    syn = qhca_sgl_copy(e, user, r->wqe + RECV_HEADER, r->sges, &r->pos,
                        r->len, (void *)buf, len, true);
    if (!syn) {
        r->len += len;
    }
    return syn;
}

void qhca_recv_cqe(const struct qhca_recv *r, uint32_t num,
                   struct qhca_cqe *cqe, uint8_t opcode, uint8_t status,
                   uint8_t syndrome)
{
    memcpy(&cqe->wr_id, r->wqe, sizeof(cqe->wr_id));
    cqe->qpn = qhca_le32(num);
    cqe->wqe_index = qhca_le32(r->index);
    cqe->opcode = opcode;
    cqe->status = status;
    cqe->syndrome = syndrome;
}
