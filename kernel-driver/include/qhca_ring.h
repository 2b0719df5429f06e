/* SPDX-License-Identifier: GPL-2.0 */
/* Rings that the device writes; also compiled in user space. */
#ifndef QHCA_RING_H
#define QHCA_RING_H

#ifdef __KERNEL__
#include <linux/types.h>
#endif

/*
 * True if the device has written the ring entry for counter @index: its phase
 * is 1 in the first lap, 0 in the second, ...
 */
static inline bool qhca_phase_ok(u8 phase, u32 index, u8 shift)
{
	return (phase & 1) != ((index >> shift) & 1);
}

#endif /* QHCA_RING_H */
