// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Maps the number of a QP, or of an SRQ with its own CQ, to the object, for
 * polling: two loads, no lock, no search.
 */
#include <errno.h>
#include <stdlib.h>

#include "qhca-idr.h"

/* Enters @obj; ctx->qp_mutex is held.  Returns 0 or ENOMEM. */
int qhca_idr_set(struct qhca_idr *idr, uint32_t num, void *obj)
{
	void ***leaf;

	leaf = &idr->leaf[(num & QHCA_QPN_MASK) >> QHCA_IDR_SHIFT];
	if (!*leaf) {
		/* Kept as long as the context: pollers may be reading it. */
		*leaf = calloc(QHCA_IDR_SIZE, sizeof(**leaf));
		if (!*leaf)
			return ENOMEM;
	}
	(*leaf)[num & (QHCA_IDR_SIZE - 1)] = obj;
	return 0;
}

/* Removes the object with this number; ctx->qp_mutex is held. */
void qhca_idr_clear(struct qhca_idr *idr, uint32_t num)
{
	void **leaf;

	leaf = idr->leaf[(num & QHCA_QPN_MASK) >> QHCA_IDR_SHIFT];
	if (leaf)
		leaf[num & (QHCA_IDR_SIZE - 1)] = NULL;
}

/* Frees the tables, which must be empty. */
void qhca_idr_free(struct qhca_idr *idr)
{
	unsigned int i;

	for (i = 0; i < QHCA_IDR_SIZE; i++)
		free(idr->leaf[i]);
}
