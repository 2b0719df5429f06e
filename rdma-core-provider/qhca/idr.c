// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Maps the number of a QP, or of an SRQ with its own CQ, to the object, for
 * polling: two loads, no lock, no search.
 */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "qhca-idr.h"

void qhca_idr_init(struct qhca_idr *idr)
{
	pthread_mutex_init(&idr->lock, NULL);
	pthread_cond_init(&idr->left, NULL);
}

static int qhca_idr_set(struct qhca_idr *idr, uint32_t num, void *obj)
{
	_Atomic(void *) *_Atomic *slot;
	_Atomic(void *) *leaf;

	slot = &idr->leaf[(num & QHCA_QPN_MASK) >> QHCA_IDR_SHIFT];
	leaf = atomic_load_explicit(slot, memory_order_relaxed);
	if (!leaf) {
		/* Kept as long as the context: pollers may be reading it. */
		leaf = calloc(QHCA_IDR_SIZE, sizeof(*leaf));
		if (!leaf)
			return ENOMEM;
		atomic_store_explicit(slot, leaf, memory_order_release);
	}
	atomic_store_explicit(&leaf[num & (QHCA_IDR_SIZE - 1)], obj,
			      memory_order_release);
	return 0;
}

/*
 * Enters @obj, which has just been created with this number.  Another thread
 * may be between the destruction of the number's former owner and
 * qhca_idr_left(): waits for it.  Returns 0, ENOMEM, or EIO if the owner is not
 * leaving, so the device has used the number twice.
 */
int qhca_idr_add(struct qhca_idr *idr, uint32_t num, void *obj)
{
	int ret;

	pthread_mutex_lock(&idr->lock);
	while (idr->leaving && qhca_idr_find(idr, num))
		pthread_cond_wait(&idr->left, &idr->lock);
	ret = qhca_idr_find(idr, num) ? EIO : qhca_idr_set(idr, num, obj);
	pthread_mutex_unlock(&idr->lock);
	return ret;
}

/* An object is about to be destroyed. */
void qhca_idr_leave(struct qhca_idr *idr)
{
	pthread_mutex_lock(&idr->lock);
	idr->leaving++;
	pthread_mutex_unlock(&idr->lock);
}

/*
 * Follows qhca_idr_leave().  @obj was destroyed, and none of its CQEs remain;
 * NULL if it could not be destroyed.  An object that is not in the table may
 * have the number of one that is.
 */
void qhca_idr_left(struct qhca_idr *idr, uint32_t num, void *obj)
{
	pthread_mutex_lock(&idr->lock);
	if (obj && qhca_idr_find(idr, num) == obj)
		qhca_idr_set(idr, num, NULL);
	idr->leaving--;
	pthread_cond_broadcast(&idr->left);
	pthread_mutex_unlock(&idr->lock);
}

/* Frees the tables, which must be empty. */
void qhca_idr_free(struct qhca_idr *idr)
{
	unsigned int i;

	for (i = 0; i < QHCA_IDR_SIZE; i++)
		free(atomic_load_explicit(&idr->leaf[i],
					  memory_order_relaxed));
	pthread_cond_destroy(&idr->left);
	pthread_mutex_destroy(&idr->lock);
}
