/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object numbers: IDs to pointers. */
#ifndef QHCA_IDR_H
#define QHCA_IDR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Numbers first .. max-1 to pointers.  A freed number is reused as late as
 * possible: never used ones first, then the one freed longest ago.  Numbers
 * below first are given out on request only.
 */
struct qhca_idr {
    void **slot;
    uint32_t *fifo;             /* freed numbers, oldest first */
    uint32_t size;              /* entries of slot and fifo */
    uint32_t first, max;
    uint32_t fresh;             /* the lowest number never given out */
    uint32_t head, count;       /* of the fifo */
    uint32_t used;
};

bool qhca_idr_init(struct qhca_idr *t, uint32_t max, uint32_t first);
void qhca_idr_free(struct qhca_idr *t);
/* Forget all numbers; from now on those below @max (<= size) exist. */
void qhca_idr_reset(struct qhca_idr *t, uint32_t max);
/* Walk: for (n = 0; n < qhca_idr_end(t); n++) qhca_idr_get(t, n) */
static inline uint32_t qhca_idr_end(const struct qhca_idr *t)
{
    return t->fresh;
}
/* Take the oldest free number; false when full. */
bool qhca_idr_add(struct qhca_idr *t, void *obj, uint32_t *num);
/* Take exactly @num < first (GSI QP, EQ 0); false when it is not free. */
bool qhca_idr_add_at(struct qhca_idr *t, void *obj, uint32_t num);
void *qhca_idr_del(struct qhca_idr *t, uint32_t num);
static inline void *qhca_idr_get(const struct qhca_idr *t, uint32_t num)
{
    return num < t->max ? t->slot[num] : NULL;
}

#endif /* QHCA_IDR_H */
