// SPDX-License-Identifier: GPL-2.0
/* See cq_ring.h. */
#ifdef __KERNEL__
#include <linux/bits.h>
#include <linux/compiler.h>
#include <asm/byteorder.h>
#include <asm/barrier.h>
#endif

#include "cq_ring.h"

/**
 * qhca_cq_ring_clean - remove the CQEs of a QP from a ring
 * @ring: the ring
 * @ci: consumer index: the oldest CQE not polled
 * @qpn: the QP; the device writes no more CQEs for it
 *
 * The CQEs of other QPs move towards the newest and keep their order. The
 * device may keep writing behind those that were valid at the start.
 *
 * This holds for a device that follows the contract. Whatever another device
 * writes, the function reads no more than a lap and writes nothing outside the
 * ring.
 *
 * Return: number of CQEs taken out; the new consumer index is @ci plus that.
 */
u32 qhca_cq_ring_clean(struct qhca_cq_ring *ring, u32 ci, u32 qpn)
{
	u32 mask = BIT(ring->shift) - 1;
	struct qhca_cqe *cqe, copy;
	u32 prod, to, freed = 0;

	for (prod = ci; prod - ci <= mask; prod++) {
		cqe = ring->at(ring, prod & mask);
		if (!qhca_phase_ok(READ_ONCE(cqe->phase), prod, ring->shift))
			break;
	}
	dma_rmb();	/* read the phases before the rest of the CQEs */

	while (prod-- != ci) {
		copy = *ring->at(ring, prod & mask);
		barrier();	/* the device cannot change it any more */
		if (le32_to_cpu(copy.qpn) == qpn) {
			ring->dropped(ring, &copy);
			freed++;
		} else if (freed) {
			to = prod + freed;
			/* it may end up in another lap */
			copy.phase = !((to >> ring->shift) & 1);
			*ring->at(ring, to & mask) = copy;
		}
	}
	return freed;
}
