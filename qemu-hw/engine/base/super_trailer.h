/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The trailer of a super-frame, a frame that crosses the wire whole and
 * represents several.  It follows the packet and specifies into how many frames
 * of which size the packet is cut.
 */
#ifndef QHCA_BASE_SUPER_H
#define QHCA_BASE_SUPER_H

#include <stdbool.h>
#include <stdint.h>

#define QHCA_SUPER_TRAILER  8   /* bytes */

/** Write the trailer of @segs frames, all but the last of @size bytes. */
void qhca_super_trailer(uint8_t *to, uint16_t size, uint16_t segs);
/**
 * Read the 8 bytes at @from.  Returns false if they are not a trailer; else
 * sets *@size, which is not 0, and *@segs, 2 .. QHCA_ETH_SUPER_SEGS_MAX.
 */
bool qhca_super_read(const uint8_t *from, uint16_t *size, uint16_t *segs);

#endif /* QHCA_BASE_SUPER_H */
