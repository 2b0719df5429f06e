/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ring of a CQ: which entries are valid, and how to remove those of one QP.
 * Pure: it also compiles in user space.
 */
#ifndef QHCA_IB_CQ_RING_H
#define QHCA_IB_CQ_RING_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include "cq_ring_user.h"
#endif
#include <rdma/qhca-hw.h>

#include "qhca_ring.h"

/**
 * struct qhca_cq_ring - the entries of a CQ
 * @at: the entry in a slot, 0 .. depth - 1
 * @dropped: called for each entry that qhca_cq_ring_clean() removes
 * @shift: log2 of the depth
 *
 * Embed it and use container_of() in the callbacks.
 */
struct qhca_cq_ring {
	struct qhca_cqe *(*at)(struct qhca_cq_ring *ring, u32 slot);
	void (*dropped)(struct qhca_cq_ring *ring, const struct qhca_cqe *cqe);
	u8 shift;
};

u32 qhca_cq_ring_clean(struct qhca_cq_ring *ring, u32 ci, u32 qpn);

#endif /* QHCA_IB_CQ_RING_H */
