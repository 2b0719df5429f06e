// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * From QP number to QP, for polling: two loads, no lock, no search.
 */
#include <errno.h>
#include <stdlib.h>

#include "qhca.h"

/* Enters @qp; ctx->qp_mutex is held.  Returns 0 or ENOMEM. */
int qhca_qp_table_set(struct qhca_context *ctx, struct qhca_qp *qp)
{
	struct qhca_qp ***leaf;

	leaf = &ctx->qp_table[(qp->qpn & QHCA_QPN_MASK) >> QHCA_TABLE_SHIFT];
	if (!*leaf) {
		/* Kept until the context goes: pollers may be reading it. */
		*leaf = calloc(QHCA_TABLE_SIZE, sizeof(**leaf));
		if (!*leaf)
			return ENOMEM;
	}
	(*leaf)[qp->qpn & (QHCA_TABLE_SIZE - 1)] = qp;
	return 0;
}

/* Removes a QP; ctx->qp_mutex is held. */
void qhca_qp_table_clear(struct qhca_context *ctx, uint32_t qpn)
{
	struct qhca_qp **leaf;

	leaf = ctx->qp_table[(qpn & QHCA_QPN_MASK) >> QHCA_TABLE_SHIFT];
	if (leaf)
		leaf[qpn & (QHCA_TABLE_SIZE - 1)] = NULL;
}

/* Frees the table, when no QP is left. */
void qhca_qp_table_free(struct qhca_context *ctx)
{
	unsigned int i;

	for (i = 0; i < QHCA_TABLE_SIZE; i++)
		free(ctx->qp_table[i]);
}
