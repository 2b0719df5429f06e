// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From the number of a QP, or of an SRQ with a CQ of its own, to the object,
 * for polling: two loads, no lock, no search.
 */
#include <errno.h>
#include <stdlib.h>

#include "qhca.h"

/* Enters @obj; ctx->qp_mutex is held.  Returns 0 or ENOMEM. */
int qhca_table_set(struct qhca_num_table *table, uint32_t num, void *obj)
{
	void ***leaf;

	leaf = &table->leaf[(num & QHCA_QPN_MASK) >> QHCA_TABLE_SHIFT];
	if (!*leaf) {
		/* Kept until the context goes: pollers may be reading it. */
		*leaf = calloc(QHCA_TABLE_SIZE, sizeof(**leaf));
		if (!*leaf)
			return ENOMEM;
	}
	(*leaf)[num & (QHCA_TABLE_SIZE - 1)] = obj;
	return 0;
}

/* Removes what has the number; ctx->qp_mutex is held. */
void qhca_table_clear(struct qhca_num_table *table, uint32_t num)
{
	void **leaf;

	leaf = table->leaf[(num & QHCA_QPN_MASK) >> QHCA_TABLE_SHIFT];
	if (leaf)
		leaf[num & (QHCA_TABLE_SIZE - 1)] = NULL;
}

/* Frees the table, when nothing is left in it. */
void qhca_table_free(struct qhca_num_table *table)
{
	unsigned int i;

	for (i = 0; i < QHCA_TABLE_SIZE; i++)
		free(table->leaf[i]);
}
