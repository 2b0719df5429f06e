/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a received frame came to its queue. */
#ifndef QHCA_STEER_H
#define QHCA_STEER_H

#include <stdint.h>

struct qhca_steer {
    uint32_t hash;
    uint8_t hash_type;          /* QHCA_HASH_TYPE_* */
    uint32_t tag;               /* of the flow */
};

#endif /* QHCA_STEER_H */
