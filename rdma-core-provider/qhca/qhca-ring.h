/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Ring arithmetic.  No state and no memory access, so that it can be tested
 * alone.
 *
 * A counter counts entries since the ring was created and is never masked; it
 * wraps at 2^32.  As every depth divides 2^32, slot, phase and fill level are
 * correct across the wrap without a special case.
 */
#ifndef QHCA_RING_H
#define QHCA_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the smallest n with 1 << n >= @v; 0 for @v of 0 and 1. */
static inline unsigned int qhca_log2_up(uint64_t v)
{
	unsigned int n = 0;

	while (n < 63 && (1ULL << n) < v)
		n++;
	return n;
}

/* Returns the slot of @counter in a ring of 1 << @shift entries. */
static inline uint32_t qhca_slot(uint32_t counter, unsigned int shift)
{
	return counter & ((1U << shift) - 1);
}

/*
 * Returns the value of the phase bit in the entry for @counter: 1 in the first
 * lap, 0 in the second, and so on.
 */
static inline uint8_t qhca_phase(uint32_t counter, unsigned int shift)
{
	return ~(counter >> shift) & 1;
}

/* Returns true if a ring with these counters has no free entry. */
static inline bool qhca_ring_full(uint32_t head, uint32_t tail,
				  unsigned int shift)
{
	return head - tail >= (1U << shift);
}

/*
 * Chooses the depth of a ring.
 *
 * @wanted: requested entries; 0 counts as 1
 * @limit: maximum depth of the device
 * @stride: log2 of the bytes of an entry
 * @page: page size in bytes, a power of two
 * @shift: out: log2 of the depth
 * @len: out: bytes to allocate, a multiple of @page
 *
 * A ring takes whole pages anyway, so the depth grows until they are full.
 * Returns false if the device does not support such a ring.
 */
static inline bool qhca_ring_size(uint64_t wanted, uint32_t limit,
				  unsigned int stride, size_t page,
				  uint8_t *shift, size_t *len)
{
	unsigned int n = qhca_log2_up(wanted);
	size_t bytes;

	if (wanted > limit || (1ULL << n) > limit)
		return false;
	while ((2ULL << n) <= limit && ((size_t)2 << (n + stride)) <= page)
		n++;
	bytes = (size_t)1 << (n + stride);
	*shift = n;
	*len = (bytes + page - 1) & ~(page - 1);
	return true;
}

#endif /* QHCA_RING_H */
