/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Resizing a CQ.  The CQEs not yet polled, up to 256 MiB, are copied to the new
 * ring, so the command works in pieces: it yields when its share is used up and
 * continues in a later qhca_run().  CQEs added meanwhile go to the old ring and
 * are copied as well.
 */
#include "queues/queues.h"

#define COPY_PIECE          64      /* CQEs: a page */

SAVED_SIZE(struct qhca_cq_resize, 384, admin, 2);

static uint8_t begin_resize(struct qhca *e, struct qhca_cmd *c,
                            struct qhca_cq *cq)
{
    struct qhca_cq_resize *r = &e->q->resize;
    const struct qhca_cqc *in = c->in;
    uint8_t st;

    if (in->shift > QHCA_MAX_CQ_SHIFT) {
        return qhca_bad(c, offsetof(struct qhca_cqc, shift));
    }
    st = qhca_buf_table_init(&r->to, &in->buf,
                             sizeof(struct qhca_cqe) << in->shift, true);
    if (st) {
        return st;
    }
    if (!qhca_dbrec_read(e, QHCA_DMA_RECORD, cq->cqn, cq->dbrec, &r->cons)) {
        return QHCA_ST_DMA_ERROR;
    }
    r->to.kind = QHCA_DMA_CQE;
    r->shift = in->shift;
    r->pos = r->cons;
    /* Use a private copy of the table: the CQ's cached walk stays intact. */
    r->from = cq->buf;
    return QHCA_ST_OK;
}

/* Is the resize still possible? */
static uint8_t cq_check_resize(struct qhca_cmd *c, const struct qhca_cq *cq,
                               const struct qhca_cq_resize *r)
{
    if (cq->state != QHCA_CQ_OK) {
        return QHCA_ST_BAD_STATE;
    }
    if (cq->prod - r->cons > 1u << cq->shift) {
        return QHCA_ST_BAD_STATE;       /* the record is bogus */
    }
    return cq->prod - r->cons > 1u << r->shift ?
           qhca_bad(c, offsetof(struct qhca_cqc, shift)) : QHCA_ST_OK;
}

/* How many entries of a ring of 1 << @shift are at @slot, in @run bytes? */
static uint32_t piece_len(uint64_t run, uint32_t slot, uint8_t shift)
{
    uint32_t n = (1u << shift) - slot;

    return run / sizeof(struct qhca_cqe) < n ?
           (uint32_t)(run / sizeof(struct qhca_cqe)) : n;
}

/* Copy CQEs starting at r->pos, at most a page of them. */
static uint8_t copy_piece(struct qhca *e, struct qhca_cq *cq,
                          struct qhca_cq_resize *r)
{
    uint32_t left = cq->prod - r->pos, n, m, i, slot;
    struct qhca_cqe piece[COPY_PIECE];
    uint64_t from, to, run;

    slot = r->pos & ((1u << cq->shift) - 1);
    if (qhca_buf_table_walk(e, &r->from, slot * 64ULL, cq->cqn, &from, &run)) {
        return QHCA_ST_DMA_ERROR;
    }
    n = piece_len(run, slot, cq->shift);
    slot = r->pos & ((1u << r->shift) - 1);
    if (qhca_buf_table_walk(e, &r->to, slot * 64ULL, cq->cqn, &to, &run)) {
        return QHCA_ST_DMA_ERROR;
    }
    m = piece_len(run, slot, r->shift);
    n = n < m ? n : m;
    n = n < left ? n : left;
    n = n < COPY_PIECE ? n : COPY_PIECE;
    if (!qhca_dma_read(e, QHCA_DMA_CQE, cq->cqn, from, piece,
                       n * sizeof(piece[0]))) {
        return QHCA_ST_DMA_ERROR;
    }
    for (i = 0; i < n; i++) {
        piece[i].phase = !(((r->pos + i) >> r->shift) & 1);
    }
    if (!qhca_dma_write(e, QHCA_DMA_CQE, cq->cqn, to, piece,
                        n * sizeof(piece[0]))) {
        return QHCA_ST_DMA_ERROR;
    }
    r->pos += n;
    return QHCA_ST_OK;
}

uint8_t qhca_cq_resize(struct qhca *e, struct qhca_cmd *c, struct qhca_cq *cq)
{
    struct qhca_cq_resize *r = &e->q->resize;
    uint8_t st = c->again ? QHCA_ST_OK : begin_resize(e, c, cq);

    if (!st) {
        st = cq_check_resize(c, cq, r);
    }
    while (!st && r->pos != cq->prod) {
        if (qhca_command_spent(e)) {
            return QHCA_ST_AGAIN;
        }
        st = copy_piece(e, cq, r);
    }
    if (st) {
        return st;
    }
    cq->buf = r->to;
    cq->shift = r->shift;
    cq->cons = r->cons;
    return QHCA_ST_OK;
}

void qhca_io_cq_resize(struct qhca_io *io, const struct qhca_cq *cq)
{
    struct qhca_cq_resize *r = &io->e->q->resize;

    IO(io, r->shift);
    IO(io, r->cons);
    IO(io, r->pos);
    NEED(io, r->shift <= QHCA_MAX_CQ_SHIFT, "its new size is out of range");
    qhca_io_buf(io, &r->to, io->failed ? 0 :
                sizeof(struct qhca_cqe) << r->shift, true);
    NEED(io, r->to.len, "it has no new buffer");
    NEED(io, r->pos - r->cons <= cq->prod - r->cons,
         "more CQEs copied than present");
    if (!io->saving && !io->failed) {
        r->from = cq->buf;
        qhca_buf_table_forget(&r->from);
    }
}
