/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the ring of a kernel CQ needs from the kernel, for user space. */
#ifndef CQ_RING_USER_H
#define CQ_RING_USER_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint32_t u32;

#define BIT(n)          (1UL << (n))
#define READ_ONCE(x)    (*(volatile __typeof__(x) *)&(x))
#define le32_to_cpu(x)  le32toh(x)
#define dma_rmb()       __atomic_thread_fence(__ATOMIC_ACQUIRE)
#define barrier()       __asm__ volatile("" ::: "memory")

#endif /* CQ_RING_USER_H */
