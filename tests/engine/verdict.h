/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The engine's verdict on the checksums of a frame. */
#ifndef QHCA_TEST_VERDICT_H
#define QHCA_TEST_VERDICT_H

#include "base/csum.h"

/* @len is at least 14. */
static inline void verdict(const uint8_t *frame, size_t len,
                           struct qhca_csum_verdict *v)
{
    struct qhca_headers h;

    qhca_headers_parse(frame, len, &h);
    qhca_csum_verdict(&h, h.l3_len, v);
}

#endif
