/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invariant CRC of RoCEv2 packets (IBA annex A17.3.3): CRC-32 as
 * Ethernet's, over the packet as if it began with the 8 bytes of an InfiniBand
 * LRH, all ones, and as if every field a router may change were all ones.
 */
#include <isa-l/crc.h>

#include "roce.h"

#define LRH_ONES 8

uint32_t qhca_icrc(const uint8_t *ip, bool v6, size_t len)
{
    uint8_t head[LRH_ONES + QHCA_IP6_HLEN + QHCA_UDP_HLEN + QHCA_BTH_LEN];
    size_t hlen = v6 ? QHCA_IP6_HLEN : QHCA_IP4_HLEN;
    size_t masked = hlen + QHCA_UDP_HLEN + QHCA_BTH_LEN;
    uint8_t *h = head + LRH_ONES;
    uint32_t crc;

    memset(head, 0xff, LRH_ONES);
    memcpy(h, ip, masked);
    if (v6) {
        h[0] |= 0x0f;           /* traffic class */
        h[1] = 0xff;            /* traffic class, flow label */
        h[2] = 0xff;
        h[3] = 0xff;
        h[7] = 0xff;            /* hop limit */
    } else {
        h[1] = 0xff;            /* type of service */
        h[8] = 0xff;            /* time to live */
        h[10] = 0xff;           /* header checksum */
        h[11] = 0xff;
    }
    h[hlen + 6] = 0xff;         /* UDP checksum */
    h[hlen + 7] = 0xff;
    h[hlen + QHCA_UDP_HLEN + 4] = 0xff; /* BTH resv8a: FECN, BECN */
    crc = crc32_gzip_refl(0, head, LRH_ONES + masked);
    if (len > masked) {
        crc = crc32_gzip_refl(crc, ip + masked, len - masked);
    }
    return crc;
}
