/* SPDX-License-Identifier: GPL-2.0 */
/* What the net_device offers to the module that it is a part of, qhca.ko. */
#ifndef QHCA_NET_H
#define QHCA_NET_H

#include "qhca_core.h"

extern const struct qhca_client qhca_net_client;

#endif /* QHCA_NET_H */
