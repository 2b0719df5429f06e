/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Parser of Ethernet, VLAN, IP, TCP and UDP headers. */
#ifndef QHCA_HEADERS_H
#define QHCA_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define QHCA_ETH_HLEN       14
#define QHCA_ETH_SHORTEST   60  /* without FCS: a frame is padded to it */
#define QHCA_VLAN_HLEN      4
#define QHCA_IP4_HLEN       20
#define QHCA_IP6_HLEN       40
#define QHCA_IP6_EXT_MAX    8   /* extension headers that are parsed */

#define QHCA_ETHERTYPE_IP4  0x0800
#define QHCA_ETHERTYPE_VLAN 0x8100
#define QHCA_ETHERTYPE_IP6  0x86dd
#define QHCA_ETHERTYPE_SERVICE_VLAN 0x88a8
#define QHCA_ETHERTYPE_CONTROL  0x8808  /* MAC control */
#define QHCA_CONTROL_PAUSE  1   /* its opcode: PAUSE */

#define QHCA_PROTO_IP4      4   /* IPv4 in IP */
#define QHCA_PROTO_TCP      6
#define QHCA_PROTO_UDP      17
#define QHCA_PROTO_IP6      41  /* IPv6 in IP */

#define QHCA_IP4_OFFSET     0x1fff  /* of frag; not 0: not the first */
#define QHCA_IP4_FRAGMENT   0x3fff  /* of frag; not 0: a fragment */

struct qhca_headers {
    bool tagged;                /* has a VLAN tag; only the first is parsed */
    uint16_t tci;               /* of that tag */
    uint16_t ethertype;         /* after the tag */
    const uint8_t *l3;          /* first byte after the ethertype */
    size_t l3_len;              /* from l3 to the end of the frame */
    uint8_t version;            /* 4 or 6; 0: no complete IP header */
    /* valid only if version is not 0: */
    uint8_t proto;              /* IPv6: of its next header, of any type */
    uint16_t frag;              /* IPv4 flags and fragment offset; IPv6: 0 */
    size_t ip_len;              /* IP header; IPv4: including options */
    bool whole;                 /* the frame holds the full IP length */
    size_t payload;             /* bytes after the IP header, if whole */
    bool fragment;              /* part of a packet */
    bool routed;                /* IPv6: on its way to another destination */
    /* what follows IP and the extension headers that are parsed: */
    uint8_t upper;              /* its protocol */
    size_t upper_at;            /* from l3; 0: end of the headers not found */
    /* TCP or UDP; IPv6: after hop-by-hop, routing, destination options */
    uint8_t l4_proto;           /* 0: other, no ports, or a later fragment */
    /* valid only if l4_proto is not 0: */
    const uint8_t *l4;
    size_t l4_len;              /* to the end of the packet or, if not whole, */
                                /* of the frame; at least 4 */
    size_t l4_hlen;             /* exact length of the TCP or UDP header; */
                                /* 0: a fragment, or inconsistent lengths */
};

/** Parse a frame of @len >= 14 bytes; @h gets pointers into @frame. */
void qhca_headers_parse(const uint8_t *frame, size_t len,
                        struct qhca_headers *h);

/**
 * The same for headers of a packet yet to be made: whatever the length fields
 * of IP and UDP hold, the packet is taken to end after @len bytes.
 */
void qhca_headers_parse_unsized(const uint8_t *frame, size_t len,
                                struct qhca_headers *h);

/** The same for an IP packet of either version; Ethernet's fields are 0. */
void qhca_headers_parse_ip_unsized(const uint8_t *ip, size_t len,
                                   struct qhca_headers *h);

/**
 * Parse the IP packet in the IP packet @h: a tunnel of RFC 2003 or RFC 2473.
 * False if its header is not directly followed by one, or if it is incomplete;
 * @inner is then undefined.  Ethernet's fields of @inner are 0.
 */
bool qhca_headers_parse_inner(const struct qhca_headers *h,
                              struct qhca_headers *inner);

/** Is it an extension header of IPv6 that is parsed? */
bool qhca_headers_is_ext(uint8_t proto);

/** Does the frame end within its VLAN tag? */
static inline bool qhca_headers_cut(const struct qhca_headers *h)
{
    return !h->tagged && h->ethertype == QHCA_ETHERTYPE_VLAN;
}

/** Is the IPv6 address (or GID) @addr an IPv4-mapped one (RFC 4291)? */
static inline bool qhca_ip6_is_ip4(const uint8_t addr[16])
{
    static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };

    return !memcmp(addr, prefix, sizeof(prefix));
}

#endif /* QHCA_HEADERS_H */
