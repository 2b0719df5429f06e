/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Maps a number to an object. */
#ifndef QHCA_IDR_H
#define QHCA_IDR_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

/* QPNs are 24 bits: the table has two levels of 12 bits. */
#define QHCA_QPN_MASK		0xffffffU
#define QHCA_IDR_SHIFT		12
#define QHCA_IDR_SIZE		(1U << QHCA_IDR_SHIFT)

/*
 * Polling reads the table without the lock: an object is in the table before it
 * can complete anything, and leaves it after its last CQE was removed.  No
 * command to the kernel is given with the lock held.  The kernel may reuse the
 * number of a destroyed object at once: its next owner waits until the former
 * one is gone, which includes that the application acknowledges its events.
 */
struct qhca_idr {
	pthread_mutex_t		lock;
	pthread_cond_t		left;
	unsigned int		leaving;	/* being destroyed */
	_Atomic(void *)		*_Atomic leaf[QHCA_IDR_SIZE];
};

void qhca_idr_init(struct qhca_idr *idr);
int qhca_idr_add(struct qhca_idr *idr, uint32_t num, void *obj);
void qhca_idr_leave(struct qhca_idr *idr);
void qhca_idr_left(struct qhca_idr *idr, uint32_t num, void *obj);
void qhca_idr_free(struct qhca_idr *idr);

/* Acquire: what is found was filled in before it entered the table. */
static inline void *qhca_idr_find(const struct qhca_idr *idr, uint32_t num)
{
	_Atomic(void *) *leaf;

	leaf = atomic_load_explicit(
		&idr->leaf[(num & QHCA_QPN_MASK) >> QHCA_IDR_SHIFT],
		memory_order_acquire);
	if (!leaf)
		return NULL;
	return atomic_load_explicit(&leaf[num & (QHCA_IDR_SIZE - 1)],
				    memory_order_acquire);
}

#endif /* QHCA_IDR_H */
