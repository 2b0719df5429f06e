/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What files of kernel-driver/net need from the kernel, for a build in user
 * space. The headers in linux/ all lead here.
 */
#ifndef KERNEL_USER_H
#define KERNEL_USER_H

#include <stdio.h>
#include <stdlib.h>
#include <linux/errno.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/in.h>

#include "buf_table_user.h"

typedef uint16_t u16;
typedef int64_t s64;
typedef uint64_t dma_addr_t;
typedef uint64_t phys_addr_t;
typedef unsigned int gfp_t;

#ifndef RXH_XFRM_SYM_XOR
#define RXH_XFRM_SYM_XOR        1
#endif

#define __iomem
#define __aligned(n)            __attribute__((aligned(n)))
#define U8_MAX                  UINT8_MAX
#define U16_MAX                 UINT16_MAX
#define HZ                      250
#define MSEC_PER_SEC            1000
#define SZ_64K                  65536
#ifndef GFP_KERNEL
#define GFP_KERNEL              0
#endif
#define CONFIG_64BIT            1

#define static_assert           _Static_assert
#define le16_to_cpu(x)          le16toh(x)
#define le32_to_cpu(x)          le32toh(x)
#define le64_to_cpu(x)          le64toh(x)
#define cpu_to_le16(x)          htole16(x)
#define be32_to_cpu(x)          be32toh(x)
#define cpu_to_be16(x)          htobe16(x)
#define cpu_to_be32(x)          htobe32(x)
#define htons(x)                htobe16(x)
#define htonl(x)                htobe32(x)
#define READ_ONCE(x)            (*(volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v)        (*(volatile __typeof__(x) *)&(x) = (v))
#define min(a, b)               ((a) < (b) ? (a) : (b))
#define max(a, b)               ((a) > (b) ? (a) : (b))
#define min_t(t, a, b)          min((t)(a), (t)(b))
#define clamp_t(t, x, lo, hi)   min(max((t)(x), (t)(lo)), (t)(hi))
#ifndef container_of
#define container_of(p, type, member) \
    ((type *)((char *)(p) - offsetof(type, member)))
#endif

static inline u64 div_u64(u64 n, u32 by)
{
    return n / by;
}

static inline u64 div64_u64(u64 n, u64 by)
{
    return n / by;
}

static inline u32 ethtool_rxfh_indir_default(u32 index, u32 n)
{
    return index % n;
}

static inline void get_random_bytes(void *to, size_t size)
{
    memset(to, 0x5a, size);
}

static inline void writeq(u64 value, volatile void *to)
{
    *(volatile u64 *)to = value;
}

/* ----------------------------------------------------------- memory ------ */

static inline void *kzalloc(size_t size, gfp_t gfp)
{
    return calloc(1, size);
}

static inline void *kmemdup(const void *from, size_t size, gfp_t gfp)
{
    void *to = malloc(size);

    return to ? memcpy(to, from, size) : NULL;
}

static inline void kfree(const void *p)
{
    free((void *)p);
}

/* ------------------------------------------------------------ lists ------ */

struct list_head {
    struct list_head *next, *prev;
};

static inline void INIT_LIST_HEAD(struct list_head *list)
{
    list->next = list;
    list->prev = list;
}

static inline void list_add_tail(struct list_head *entry,
                                 struct list_head *list)
{
    entry->prev = list->prev;
    entry->next = list;
    list->prev->next = entry;
    list->prev = entry;
}

static inline void list_del(struct list_head *entry)
{
    entry->prev->next = entry->next;
    entry->next->prev = entry->prev;
    entry->next = NULL;
    entry->prev = NULL;
}

static inline bool list_empty(const struct list_head *list)
{
    return list->next == list;
}

#define list_for_each_entry(at, list, member)                               \
    for ((at) = container_of((list)->next, __typeof__(*(at)), member);      \
         &(at)->member != (list);                                           \
         (at) = container_of((at)->member.next, __typeof__(*(at)), member))

/* ------------------------------------------- what only has to exist ------ */

struct device { int unused; };
struct pci_dev { struct device dev; };
struct auxiliary_device { struct device dev; };
struct notifier_block { int unused; };
struct devlink_health_reporter_ops { int unused; };

#endif /* KERNEL_USER_H */
