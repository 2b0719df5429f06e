/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The form of super-frames. */
#include "ethernet/super_frame.h"

/* The shortest frame of Ethernet, tagged: the wire may have padded it. */
#define PADDED              (QHCA_ETH_SHORTEST + QHCA_VLAN_HLEN)

static uint32_t super_segs(uint32_t payload, uint16_t size)
{
    return (payload + size - 1) / size;
}

bool qhca_super_parse(const uint8_t *frame, size_t len,
                      const struct qhca_headers *h, struct qhca_super *s)
{
    uint16_t size, segs;
    size_t end;

    s->segs = 0;
    if (!qhca_large_from(frame, h, &s->l) ||
        s->l.hdr_len > QHCA_ETH_LSO_HDR_MAX) {
        return false;
    }
    end = s->l.l4 + h->l4_len;
    if (end <= s->l.hdr_len || end - s->l.l3 > QHCA_ETH_SUPER_IP_MAX ||
        (end + QHCA_SUPER_TRAILER != len &&
         (end + QHCA_SUPER_TRAILER > len || len > PADDED))) {
        return false;
    }
    if (!qhca_super_read(frame + end, &size, &segs) ||
        super_segs((uint32_t)(end - s->l.hdr_len), size) != segs ||
        s->l.hdr_len + size > QHCA_ETH_MAX_FRAME ||
        qhca_large_is_roce(&s->l, frame)) {
        return false;
    }
    s->len = (uint32_t)end;
    s->size = size;
    s->segs = segs;
    return true;
}

uint32_t qhca_super_chunk(const struct qhca_large *l, const uint8_t *hdr,
                          uint16_t size)
{
    uint32_t n = (QHCA_ETH_SUPER_IP_MAX - (l->hdr_len - l->l3)) / size;

    n = n < QHCA_ETH_SUPER_SEGS_MAX ? n : QHCA_ETH_SUPER_SEGS_MAX;
    /* A receiver looks for the trailer where the outermost packet ends. */
    return !n || l->outer_version || qhca_large_is_roce(l, hdr) ? size :
                                                                  n * size;
}
