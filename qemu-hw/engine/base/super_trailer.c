/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The trailer of super-frames. */
#include "base/base.h"
#include "base/super_trailer.h"

/* Big-endian. */
#define MAGIC               0x51534647  /* QSFG */
#define AT_SIZE             4
#define AT_SEGS             6

void qhca_super_trailer(uint8_t *to, uint16_t size, uint16_t segs)
{
    qhca_put_be32(to, MAGIC);
    qhca_put_be16(to + AT_SIZE, size);
    qhca_put_be16(to + AT_SEGS, segs);
}

bool qhca_super_read(const uint8_t *from, uint16_t *size, uint16_t *segs)
{
    *size = qhca_get_be16(from + AT_SIZE);
    *segs = qhca_get_be16(from + AT_SEGS);
    return qhca_get_be32(from) == MAGIC && *size && *segs >= 2 &&
           *segs <= QHCA_ETH_SUPER_SEGS_MAX;
}
