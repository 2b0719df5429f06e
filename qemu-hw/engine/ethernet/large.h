/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A TCP segment or UDP datagram that is cut into several frames. */
#ifndef QHCA_LARGE_H
#define QHCA_LARGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

/** Where the headers of a large packet are, in bytes from its start. */
struct qhca_large {
    uint16_t l3, l4;
    uint16_t hdr_len;           /* end of the TCP or UDP header */
    uint8_t version;            /* of IP: 4 or 6 */
    uint8_t proto;              /* QHCA_PROTO_TCP or QHCA_PROTO_UDP */
    /* only in a tunnel; else 0 */
    uint8_t outer_version;      /* of the IP header around that at l3 */
    uint16_t outer;             /* where it is */
    uint16_t outer_l4;          /* what follows it and its extension headers */
    bool outer_udp;             /* this is UDP */
    /*
     * Only for packets that were merged from frames; else 0.  IPv4: all frames
     * have the same identification; else it counts up.
     */
    bool same_id, same_outer_id;
    bool cwr;                   /* TCP: CWR is in all frames, or in the first */
};

/** One frame of a large packet: which part of the payload it has. */
struct qhca_large_part {
    uint32_t number;            /* frames before it */
    uint32_t from, len;         /* its bytes, of the payload */
    uint32_t total;             /* bytes of the whole payload */
};

/**
 * Find the headers of a large packet in the @len bytes at @hdr: Ethernet, one
 * VLAN tag unless !@tag, IPv4 or IPv6 and not a fragment, TCP or UDP.  Packet
 * lengths and checksums are not checked.  Returns false if there are other
 * headers, or not all of these.
 */
bool qhca_large_parse(const uint8_t *hdr, size_t len, bool tag,
                      struct qhca_large *l);

/**
 * The same for a packet in a tunnel, whose IP header is at @inner_l3.  In front
 * of it are Ethernet, IPv4 or IPv6 (not a fragment), perhaps UDP, and anything
 * else.
 */
bool qhca_large_parse_tunnel(const uint8_t *hdr, size_t len, bool tag,
                             uint16_t inner_l3, struct qhca_large *l);

/**
 * The same from the parsed headers @h of @frame, so that its lengths are
 * consistent, too.
 */
bool qhca_large_from(const uint8_t *frame, const struct qhca_headers *h,
                     struct qhca_large *l);

/** Where the outermost IP header is. */
static inline uint16_t qhca_large_ip(const struct qhca_large *l)
{
    return l->outer_version ? l->outer : l->l3;
}

/**
 * Are the checksums right: of IPv4, and of TCP or UDP?  @len: of the frame, up
 * to the end of the packet.
 */
bool qhca_large_sum_ok(const struct qhca_large *l, const uint8_t *frame,
                       size_t len);

/** Is it RoCEv2, by the destination port? */
bool qhca_large_is_roce(const struct qhca_large *l, const uint8_t *frame);

/**
 * Turn @hdr, the headers of the large packet @l, into those of part @p:
 * lengths, identification, sequence number and flags, but not checksums.
 */
void qhca_large_headers(const struct qhca_large *l, uint8_t *hdr,
                        const struct qhca_large_part *p);

/**
 * Turn the @frame, which has the headers of the large packet @l and the payload
 * of part @p behind them, into a frame of its own: lengths, identification,
 * sequence number, flags, checksums.
 */
void qhca_large_finish(const struct qhca_large *l, uint8_t *frame,
                       const struct qhca_large_part *p);

#endif /* QHCA_LARGE_H */
