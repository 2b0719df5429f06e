/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The one parser of Ethernet, VLAN and IP headers. */
#ifndef QHCA_HEADERS_H
#define QHCA_HEADERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QHCA_ETH_HLEN       14
#define QHCA_VLAN_HLEN      4
#define QHCA_IP4_HLEN       20
#define QHCA_IP6_HLEN       40

#define QHCA_ETHERTYPE_IP4  0x0800
#define QHCA_ETHERTYPE_VLAN 0x8100
#define QHCA_ETHERTYPE_IP6  0x86dd

#define QHCA_PROTO_TCP      6
#define QHCA_PROTO_UDP      17

#define QHCA_IP4_OFFSET     0x1fff  /* of frag: not the first fragment */
#define QHCA_IP4_FRAGMENT   0x3fff  /* more fragments follow, or an offset */

struct qhca_headers {
    bool tagged;                /* it has a VLAN tag: the first one counts */
    uint16_t tci;               /* of that tag */
    uint16_t ethertype;         /* behind it */
    const uint8_t *l3;          /* what follows the ethertype */
    size_t l3_len;              /* from there to the end of the frame */
    uint8_t version;            /* 4 or 6; 0: no complete IP header */
    /* only with a version: */
    uint8_t proto;              /* IPv6: the next header, whatever it is */
    uint16_t frag;              /* IPv4 flags and fragment offset; IPv6: 0 */
    size_t ip_len;              /* of the IP header, with IPv4's options */
    bool whole;                 /* what the IP header announces is there */
    size_t payload;             /* bytes behind the IP header, if whole */
};

/** Take a frame of @len >= 14 bytes apart; @h points into it. */
void qhca_headers_parse(const uint8_t *frame, size_t len,
                        struct qhca_headers *h);

#endif /* QHCA_HEADERS_H */
