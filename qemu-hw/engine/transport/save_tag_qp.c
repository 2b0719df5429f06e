/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Saved state: what a QP on a TM SRQ holds. */
#include "transport/rc.h"
#include "transport/tag_qp.h"

/* A tag entry held by the QP, or none. */
static struct qhca_tag *save_held(struct qhca_io *io, struct qhca_qp *qp,
                                  struct qhca_tag *t)
{
    struct qhca_tm *tm = qp->srq->tm;
    bool is = t;
    uint32_t num = t ? (uint32_t)(t - tm->tags) : 0;

    IO(io, is);
    if (!is) {
        return NULL;
    }
    IO(io, num);
    if (!NEED(io, num < tm->max_tags &&
              (io->saving || tm->tags[num].state == QHCA_TAG_FREE),
              "it holds a tag that is not free")) {
        return NULL;
    }
    qhca_io_tag(io, tm, num);
    if (!io->saving) {
        if (io->failed) {
            return NULL;
        }
        tm->tags[num].state = QHCA_TAG_TAKEN;
    }
    return &tm->tags[num];
}

void qhca_io_tm_qp(struct qhca_io *io, struct qhca_qp *qp)
{
    struct qhca_tm_qp *tq = qp->tm;
    uint32_t i, reads = 0;
    bool entry;

    IO(io, tq->kind);
    IO(io, tq->told);
    qhca_io_bytes(io, tq->headers, sizeof(tq->headers));
    tq->tag = save_held(io, qp, tq->tag);
    entry = tq->kind >= QHCA_TM_EAGER;
    NEED(io, tq->kind <= QHCA_TM_INCOMPLETE && entry == !!tq->tag,
         "it lacks a tag, or has one that it must not have");
    for (i = qp->sq_tail; i != qp->sq_head && !io->failed; i++) {
        struct qhca_tm_job *j = &tq->job[i & (QHCA_TM_SLOTS - 1)];

        j->tag = save_held(io, qp, j->tag);
        IO(io, j->solicited);
        IO_SINCE(io, 3, j->flags);
        IO_SINCE(io, 3, j->imm);
        NEED(io, !(j->flags & ~QHCA_TM_IMM), "a rendezvous has unknown flags");
        qhca_io_bytes(io, j->headers, sizeof(j->headers));
        reads += j->tag != NULL;
    }
    if (!io->saving) {
        tq->reads = reads;
        NEED(io, qp->sq_head - qp->sq_tail + reads <= QHCA_TM_SLOTS,
             "there is no room for the FINs it owes");
    }
}
