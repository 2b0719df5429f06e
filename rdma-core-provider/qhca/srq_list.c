// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The list of an SRQ's free WQEs.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#include "qhca-lock.h"
#include "qhca-srq.h"

/* Creates the free list, with all WQEs in it.  Returns 0 or ENOMEM. */
int qhca_srq_list_init(struct qhca_srq *srq)
{
	uint32_t depth = 1U << srq->shift;
	uint32_t i;

	srq->next = calloc(depth, sizeof(*srq->next));
	if (!srq->next)
		return ENOMEM;
	for (i = 0; i < depth; i++)
		srq->next[i] = i + 1 < depth ? i + 1 : QHCA_SRQ_END;
	srq->first_free = 0;
	return 0;
}

/*
 * Puts a WQE back into the free list; the lock is held.  A bogus or repeated
 * number from the device would corrupt the list, so it is ignored.
 */
void qhca_srq_give_back_locked(struct qhca_srq *srq, uint32_t number)
{
	if (number < 1U << srq->shift &&
	    srq->next[number] == QHCA_SRQ_BUSY) {
		srq->next[number] = srq->first_free;
		srq->first_free = number;
	}
}

void qhca_srq_give_back(struct qhca_srq *srq, uint32_t number)
{
	qhca_lock(&srq->lock);
	qhca_srq_give_back_locked(srq, number);
	qhca_unlock(&srq->lock);
}
