/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tag list of an SRQ, oldest entry first.  Active entries precede inactive
 * ones: entries become inactive only when added, and all become active at once.
 */
#include <stdlib.h>

#include "queues/queues.h"

#define TAGS_PER_ACCESS     8   /* entries compared at the cost of one */

static uint8_t tag_check(const struct qhca_srqc *in, size_t *bad)
{
    uint32_t max_tags = qhca_le32(in->max_tags);

    if (in->ops_shift > QHCA_MAX_WQ_SHIFT) {
        *bad = offsetof(struct qhca_srqc, ops_shift);
    } else if (in->ops_stride < 6 || in->ops_stride > 9) {
        *bad = offsetof(struct qhca_srqc, ops_stride);
    } else if (!max_tags || max_tags > QHCA_TM_MAX_TAGS) {
        *bad = offsetof(struct qhca_srqc, max_tags);
    } else {
        return QHCA_ST_OK;
    }
    return QHCA_ST_BAD_PARAM;
}

uint8_t qhca_tm_create(struct qhca *e, struct qhca_srq *srq,
                       const struct qhca_srqc *in, size_t *bad)
{
    uint32_t max_tags = qhca_le32(in->max_tags);
    uint8_t st = tag_check(in, bad);
    struct qhca_tm *tm;

    if (st) {
        return st;
    }
    if (max_tags > QHCA_TM_TOTAL_TAGS - e->q->tm_tags) {
        return QHCA_ST_NO_RESOURCES;
    }
    tm = calloc(1, sizeof(*tm) + max_tags * sizeof(tm->tags[0]));
    if (!tm) {
        return QHCA_ST_NO_RESOURCES;
    }
    st = qhca_buf_table_init(&tm->ops, &in->ops,
                             1ULL << (in->ops_shift + in->ops_stride), true);
    if (st) {
        free(tm);
        return st;
    }
    tm->srq = srq;
    tm->ops_shift = in->ops_shift;
    tm->ops_stride = in->ops_stride;
    tm->max_tags = max_tags;
    tm->first = tm->last = tm->inactive = QHCA_TM_NONE;
    qhca_list_init(&tm->work);
    e->q->tm_tags += max_tags;
    srq->tm = tm;
    return QHCA_ST_OK;
}

void qhca_tm_free(struct qhca *e, struct qhca_srq *srq)
{
    struct qhca_tm *tm = srq->tm;

    if (tm) {
        qhca_list_del(&tm->work);
        e->q->tm_tags -= tm->max_tags;
        srq->tm = NULL;
        free(tm);
    }
}

void qhca_tm_query(const struct qhca_srq *srq, struct qhca_srqc *out)
{
    const struct qhca_tm *tm = srq->tm;

    qhca_buf_table_describe(&tm->ops, &out->ops);
    out->ops_shift = tm->ops_shift;
    out->ops_stride = tm->ops_stride;
    out->max_tags = qhca_le32(tm->max_tags);
    out->ops_head = qhca_le32(tm->ops_head);
    out->ops_tail = qhca_le32(tm->ops_tail);
    out->tags = qhca_le32(tm->count);
    out->unexp_seen = qhca_le32(tm->seen);
    out->unexp_told = qhca_le32(tm->told);
}

void qhca_tm_append(struct qhca_tm *tm, uint16_t num)
{
    struct qhca_tag *t = &tm->tags[num];

    t->state = QHCA_TAG_LISTED;
    t->next = QHCA_TM_NONE;
    t->prev = tm->last;
    if (tm->last == QHCA_TM_NONE) {
        tm->first = num;
    } else {
        tm->tags[tm->last].next = num;
    }
    tm->last = num;
    tm->count++;
    if (tm->seen != tm->told && tm->inactive == QHCA_TM_NONE) {
        tm->inactive = num;
    }
}

void qhca_tm_unlink(struct qhca_tm *tm, struct qhca_tag *t)
{
    if (tm->inactive == t - tm->tags) {
        tm->inactive = t->next;
    }
    if (t->prev == QHCA_TM_NONE) {
        tm->first = t->next;
    } else {
        tm->tags[t->prev].next = t->next;
    }
    if (t->next == QHCA_TM_NONE) {
        tm->last = t->prev;
    } else {
        tm->tags[t->next].prev = t->prev;
    }
    tm->count--;
}

struct qhca_tag *qhca_tm_match(struct qhca *e, struct qhca_tm *tm,
                               uint64_t tag)
{
    struct qhca_tag *found = NULL;
    uint32_t looked_at = 0;
    uint16_t i;

    for (i = tm->first; i != QHCA_TM_NONE && i != tm->inactive && !found;
         i = tm->tags[i].next) {
        looked_at++;
        if ((tag & tm->tags[i].mask) == tm->tags[i].tag) {
            found = &tm->tags[i];
        }
    }
    qhca_cost(e, looked_at / TAGS_PER_ACCESS);
    return found;
}
