/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The Internet checksum (RFC 1071). */
#ifndef QHCA_CSUM_H
#define QHCA_CSUM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/headers.h"

/**
 * The ones' complement sum, folded to 16 bits and not complemented, of @len
 * bytes taken as little-endian 16-bit words; an odd last byte is the low half
 * of a word.  @seed is an earlier sum (over an even number of bytes), or 0.
 */
uint16_t qhca_csum(const void *buf, size_t len, uint16_t seed);

/** The checksum results that an Ethernet receive completion reports. */
struct qhca_csum_verdict {
    uint16_t sum;               /* of all bytes after the ethertype */
    int l3_ok;                  /* IPv4 header checksum correct, or IPv6 */
    int l4_ok;                  /* TCP or UDP checksum correct */
};

/**
 * Check the checksums of a frame with the headers @h.  @len: number of bytes
 * from h->l3 on, at least to the end of the IP packet if h->whole.
 */
void qhca_csum_verdict(const struct qhca_headers *h, size_t len,
                       struct qhca_csum_verdict *v);

/**
 * Fill in the IPv4 header checksum and the TCP or UDP checksum of a frame of
 * @len >= 14 bytes, tagged or not.  Does not change a frame that is truncated
 * or not IP, nor the checksum of a UDP datagram whose length is impossible.
 */
void qhca_csum_fill(uint8_t *frame, size_t len);

/**
 * Is the checksum of the IPv4 header of @len bytes right?  True for IPv6, which
 * has none.
 */
bool qhca_csum_ip_ok(const uint8_t *ip, uint8_t version, size_t len);

/** Fill in the checksum of an IPv4 header; nothing for IPv6. */
void qhca_csum_fill_ip(uint8_t *ip, uint8_t version, size_t len);

/**
 * Is the checksum of a TCP segment or UDP datagram of @len bytes right?
 * Parameters as below.  False if there is none.
 */
bool qhca_csum_l4_ok(const uint8_t *ip, uint8_t version, const uint8_t *l4,
                     size_t len, uint8_t proto);

/**
 * Fill in the checksum of a TCP segment or UDP datagram of @len bytes; @proto
 * is QHCA_PROTO_*.  The IP header at @ip, of @version 4 or 6, has the
 * addresses.  Changes nothing if the protocol is another or there is no room
 * for a checksum.
 */
void qhca_csum_fill_l4(const uint8_t *ip, uint8_t version, uint8_t *l4,
                       size_t len, uint8_t proto);

#endif /* QHCA_CSUM_H */
