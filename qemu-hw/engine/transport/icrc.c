/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The invariant CRC of RoCEv2 packets (IBA annex A17.3.3): the CRC-32 of
 * Ethernet over the packet, as if preceded by 8 bytes of ones in place of an
 * InfiniBand LRH and with all fields that a router may change set to ones.
 * ISA-L computes it several times faster than zlib, which every QEMU has.
 */
#ifdef QHCA_ISAL
#include <isa-l/crc.h>
#else
#include <zlib.h>
#endif

#include "transport/rc.h"

/* CRC-32 of those 8 bytes. */
#define CRC_OF_LRH  0x2144df1cU
#define MASKED_MAX  (QHCA_IP6_HLEN + QHCA_UDP_HLEN + QHCA_BTH_LEN)
/* Up to this many bytes after the masked headers are copied: one CRC run. */
#define SHORT       96

static uint32_t icrc_add(uint32_t crc, const uint8_t *p, size_t len)
{
#ifdef QHCA_ISAL
    return crc32_gzip_refl(crc, p, len);
#else
    return (uint32_t)crc32_z(crc, p, len);
#endif
}

uint32_t qhca_icrc(const uint8_t *ip, bool v6, size_t len)
{
    uint8_t h[MASKED_MAX + SHORT];
    size_t hlen = v6 ? QHCA_IP6_HLEN : QHCA_IP4_HLEN;
    size_t masked = hlen + QHCA_UDP_HLEN + QHCA_BTH_LEN;
    size_t first = len - masked <= SHORT ? len : masked;
    uint32_t crc;

    memcpy(h, ip, first);
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
    crc = icrc_add(CRC_OF_LRH, h, first);
    if (len > first) {
        crc = icrc_add(crc, ip + first, len - first);
    }
    return crc;
}

/*
 * Soft-RoCE does not know where the payload of a FLUSH begins, assumes offset 0
 * and so includes the headers twice (seen in Linux 6.12).  We accept both
 * ICRCs; an unanswered FLUSH is resent with the other ICRC, alternately, until
 * one is answered.
 */
uint32_t qhca_icrc_twice(uint32_t crc, const uint8_t *bth, size_t len)
{
    return icrc_add(crc, bth, len);
}
