/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object numbers: allocation and lookup, both in constant time. */
#include <stdlib.h>

#include "base/base.h"

bool qhca_idr_init(struct qhca_idr *t, uint32_t max, uint32_t first)
{
    memset(t, 0, sizeof(*t));
    t->slot = calloc(max, sizeof(*t->slot));
    t->fifo = calloc(max, sizeof(*t->fifo));
    if (!t->slot || !t->fifo) {
        qhca_idr_free(t);
        return false;
    }
    t->size = max;
    t->max = max;
    t->first = first;
    t->fresh = first;
    return true;
}

void qhca_idr_free(struct qhca_idr *t)
{
    free(t->slot);
    free(t->fifo);
    memset(t, 0, sizeof(*t));
}

void qhca_idr_reset(struct qhca_idr *t, uint32_t max)
{
    /*
     * Slots from fresh on were never written, and those of numbers that were
     * freed are empty: do not touch megabytes for nothing.
     */
    if (t->used) {
        memset(t->slot, 0, t->fresh * sizeof(*t->slot));
    }
    t->max = max < t->size ? max : t->size;
    t->fresh = t->first;
    t->head = 0;
    t->count = 0;
    t->used = 0;
}

bool qhca_idr_add(struct qhca_idr *t, void *obj, uint32_t *num)
{
    if (t->fresh < t->max) {
        *num = t->fresh++;
    } else if (t->count) {
        *num = t->fifo[t->head];
        t->head = t->head + 1 == t->size ? 0 : t->head + 1;
        t->count--;
    } else {
        return false;
    }
    t->slot[*num] = obj;
    t->used++;
    return true;
}

bool qhca_idr_add_at(struct qhca_idr *t, void *obj, uint32_t num)
{
    if (num >= t->first || num >= t->max || t->slot[num]) {
        return false;
    }
    t->slot[num] = obj;
    t->used++;
    return true;
}

void *qhca_idr_del(struct qhca_idr *t, uint32_t num)
{
    void *obj = qhca_idr_get(t, num);
    uint32_t tail;

    if (!obj) {
        return NULL;
    }
    t->slot[num] = NULL;
    t->used--;
    if (num >= t->first) {
        tail = t->head + t->count;
        t->fifo[tail >= t->size ? tail - t->size : tail] = num;
        t->count++;
    }
    return obj;
}
