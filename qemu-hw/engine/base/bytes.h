/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Byte order: unaligned loads and stores, both endiannesses, no casts. */
#ifndef QHCA_BYTES_H
#define QHCA_BYTES_H

#include <stdint.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define qhca_le16(x) ((uint16_t)(x))
#define qhca_le32(x) ((uint32_t)(x))
#define qhca_le64(x) ((uint64_t)(x))
#define qhca_be16(x) __builtin_bswap16(x)
#define qhca_be32(x) __builtin_bswap32(x)
#define qhca_be64(x) __builtin_bswap64(x)
#else
#define qhca_le16(x) __builtin_bswap16(x)
#define qhca_le32(x) __builtin_bswap32(x)
#define qhca_le64(x) __builtin_bswap64(x)
#define qhca_be16(x) ((uint16_t)(x))
#define qhca_be32(x) ((uint32_t)(x))
#define qhca_be64(x) ((uint64_t)(x))
#endif

static inline uint16_t qhca_get_be16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, 2);
    return qhca_be16(v);
}

static inline uint32_t qhca_get_be32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return qhca_be32(v);
}

static inline uint64_t qhca_get_be64(const void *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return qhca_be64(v);
}

static inline uint16_t qhca_get_le16(const void *p)
{
    uint16_t v;

    memcpy(&v, p, 2);
    return qhca_le16(v);
}

static inline uint32_t qhca_get_le32(const void *p)
{
    uint32_t v;

    memcpy(&v, p, 4);
    return qhca_le32(v);
}

static inline uint64_t qhca_get_le64(const void *p)
{
    uint64_t v;

    memcpy(&v, p, 8);
    return qhca_le64(v);
}

static inline void qhca_put_be16(void *p, uint16_t v)
{
    v = qhca_be16(v);
    memcpy(p, &v, 2);
}

static inline void qhca_put_be32(void *p, uint32_t v)
{
    v = qhca_be32(v);
    memcpy(p, &v, 4);
}

static inline void qhca_put_be64(void *p, uint64_t v)
{
    v = qhca_be64(v);
    memcpy(p, &v, 8);
}

static inline void qhca_put_le32(void *p, uint32_t v)
{
    v = qhca_le32(v);
    memcpy(p, &v, 4);
}

#endif /* QHCA_BYTES_H */
