/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How much memory an idle QP takes. */
#ifndef FOOTPRINT_H
#define FOOTPRINT_H

#include "transport/transport.h"

/* The context, its slot and its entry in the ring of free numbers. */
static inline size_t qp_footprint(void)
{
    return QHCA_XPORT_OFF + sizeof(struct qhca_xport) + sizeof(void *) +
           sizeof(uint32_t);
}

#endif
