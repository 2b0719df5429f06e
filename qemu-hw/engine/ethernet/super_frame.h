/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Super-frames: a large packet that crosses the wire whole, followed by a
 * trailer that specifies into which frames it may be cut.  Its headers are
 * those of a packet of that length, and its checksums are right.
 */
#ifndef QHCA_SUPER_H
#define QHCA_SUPER_H

#include "engine.h"
#include "base/base.h"
#include "ethernet/large.h"

struct qhca_super {
    struct qhca_large l;
    uint32_t len;               /* of the frame, without the trailer */
    uint16_t size;              /* payload bytes of each frame but the last */
    uint16_t segs;              /* frames it represents: 2 .. SEGS_MAX */
};

/**
 * Is the frame of @len bytes, with the headers @h, a super-frame?  Then fills
 * in *@s; else sets s->segs to 0.
 */
bool qhca_super_parse(const uint8_t *frame, size_t len,
                      const struct qhca_headers *h, struct qhca_super *s);

/**
 * The most payload of @size bytes each that a super-frame with the headers @l
 * can have: a multiple of @size, or @size if there must be no super-frame.
 */
uint32_t qhca_super_chunk(const struct qhca_large *l, const uint8_t *hdr,
                          uint16_t size);

#endif /* QHCA_SUPER_H */
