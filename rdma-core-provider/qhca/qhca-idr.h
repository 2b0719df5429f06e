/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Maps a number to an object. */
#ifndef QHCA_IDR_H
#define QHCA_IDR_H

#include <stddef.h>
#include <stdint.h>

/* QPNs are 24 bits: the table has two levels of 12 bits. */
#define QHCA_QPN_MASK		0xffffffU
#define QHCA_IDR_SHIFT		12
#define QHCA_IDR_SIZE		(1U << QHCA_IDR_SHIFT)

struct qhca_idr {
	void			**leaf[QHCA_IDR_SIZE];
};

int qhca_idr_set(struct qhca_idr *idr, uint32_t num, void *obj);
void qhca_idr_clear(struct qhca_idr *idr, uint32_t num);
void qhca_idr_free(struct qhca_idr *idr);

static inline void *qhca_idr_find(const struct qhca_idr *idr, uint32_t num)
{
	void **leaf = idr->leaf[(num & QHCA_QPN_MASK) >> QHCA_IDR_SHIFT];

	return leaf ? leaf[num & (QHCA_IDR_SIZE - 1)] : NULL;
}

#endif /* QHCA_IDR_H */
