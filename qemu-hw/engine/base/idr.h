/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Object numbers: map numbers to pointers. */
#ifndef QHCA_IDR_H
#define QHCA_IDR_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Maps the numbers first .. max-1 to pointers.  A freed number is reused as
 * late as possible: unused numbers are handed out first, then the number freed
 * longest ago.  Numbers below first are assigned on request only.
 */
struct qhca_idr {
    void **slot;
    uint32_t *fifo;             /* freed numbers, oldest first */
    uint32_t size;              /* entries of slot and fifo */
    uint32_t first, max;
    uint32_t fresh;             /* lowest number never handed out */
    uint32_t head, count;       /* of fifo */
    uint32_t used;
};

/* Set up an empty map of @max numbers; false: out of memory. */
bool qhca_idr_init(struct qhca_idr *t, uint32_t max, uint32_t first);
/* Free the map, not the objects in it. */
void qhca_idr_free(struct qhca_idr *t);
/* Forget all numbers; from now on only those below @max (<= size) are valid. */
void qhca_idr_reset(struct qhca_idr *t, uint32_t max);
/* Iterate: for (n = 0; n < qhca_idr_end(t); n++) qhca_idr_get(t, n) */
static inline uint32_t qhca_idr_end(const struct qhca_idr *t)
{
    return t->fresh;
}
/* Assign the next free number to @obj; false: none left. */
bool qhca_idr_add(struct qhca_idr *t, void *obj, uint32_t *num);
/* Assign @num < first (GSI QP, EQ 0); false if it is not free. */
bool qhca_idr_add_at(struct qhca_idr *t, void *obj, uint32_t num);
/* Free @num; returns its object, or NULL if it was unused. */
void *qhca_idr_del(struct qhca_idr *t, uint32_t num);
/* The object with number @num, or NULL. */
static inline void *qhca_idr_get(const struct qhca_idr *t, uint32_t num)
{
    return num < t->max ? t->slot[num] : NULL;
}

#endif /* QHCA_IDR_H */
