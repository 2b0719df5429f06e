/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the planner and encoder of buffer tables need from the kernel, for a
 * build in user space.
 */
#ifndef BUF_TABLE_USER_H
#define BUF_TABLE_USER_H

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <linux/types.h>

typedef uint8_t u8;
typedef uint32_t u32;
typedef uint64_t u64;

#define BIT(n)                  (1UL << (n))
#define BIT_ULL(n)              (1ULL << (n))
#define U32_MAX                 UINT32_MAX
#define ARRAY_SIZE(a)           (sizeof(a) / sizeof((a)[0]))
#define DIV_ROUND_UP(n, d)      (((n) + (d) - 1) / (d))
#define cpu_to_le64(x)          htole64(x)
#define cpu_to_le32(x)          htole32(x)

static inline int fls64(u64 x)
{
    return x ? 64 - __builtin_clzll(x) : 0;
}

#endif /* BUF_TABLE_USER_H */
