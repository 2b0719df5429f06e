/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saved state: tag matching.  A tag entry is on the list, held by one QP, or
 * free; hence its state need not be saved and cannot be inconsistent.
 */
#include <stdlib.h>

#include "queues/queues.h"

void qhca_io_tag(struct qhca_io *io, struct qhca_tm *tm, uint32_t num)
{
    struct qhca_tag *t = &tm->tags[num];
    unsigned i;

    IO(io, t->tag);
    IO(io, t->mask);
    IO(io, t->wr_id);
    IO(io, t->handle);
    IO(io, t->num_sge);
    NEED(io, (t->handle & 0xffff) == num && qhca_tag_fits(tm, t->num_sge),
         "no command could have added a tag");
    for (i = 0; i < t->num_sge && !io->failed; i++) {
        qhca_io_bytes(io, &t->sge[i], sizeof(t->sge[i]));
    }
    if (!io->saving && !io->failed) {
        qhca_tag_measure(t);
    }
}

/* The entries on the list, oldest first. */
static void save_tags(struct qhca_io *io, struct qhca_tm *tm)
{
    uint16_t at = tm->first, num, inactive = tm->inactive;
    uint32_t n = tm->count, i;

    IO(io, n);
    for (i = 0; i < n && !io->failed; i++) {
        num = at;
        IO(io, num);
        if (!NEED(io, num < tm->max_tags &&
                  tm->tags[num].state == QHCA_TAG_FREE,
                  "a tag is out of range or there twice")) {
            break;
        }
        qhca_io_tag(io, tm, num);
        if (io->saving) {
            at = tm->tags[num].next;
        } else if (!io->failed) {
            qhca_tm_append(tm, num);
        }
    }
    IO(io, inactive);
    NEED(io, inactive == QHCA_TM_NONE ||
         (inactive < tm->max_tags &&
          tm->tags[inactive].state == QHCA_TAG_LISTED),
         "the first inactive tag is not in the list");
    if (!io->saving && !io->failed) {
        tm->inactive = inactive;
    }
}

void qhca_io_tm(struct qhca_io *io, struct qhca_srq *srq)
{
    struct qhca_tm *tm = srq->tm;
    struct qhca_srqc c;
    uint8_t status;
    size_t bad;

    memset(&c, 0, sizeof(c));
    if (io->saving) {
        qhca_tm_query(srq, &c);
    }
    qhca_io_bytes(io, &c.ops, sizeof(c.ops));
    IO(io, c.ops_shift);
    IO(io, c.ops_stride);
    IO(io, c.max_tags);
    if (!io->saving) {
        status = io->failed ? QHCA_ST_OK :
                              qhca_tm_create(io->e, srq, &c, &bad);
        NEED(io, status != QHCA_ST_NO_RESOURCES, "out of memory");
        if (!NEED(io, !status, "its tag matching parameters are invalid")) {
            return;
        }
        tm = srq->tm;
    }
    IO(io, tm->ops_head);
    IO(io, tm->ops_tail);
    IO(io, tm->seen);
    IO(io, tm->told);
    NEED(io, tm->ops_head - tm->ops_tail <= 1u << tm->ops_shift,
         "more tag operations than the ring holds");
    save_tags(io, tm);
}
