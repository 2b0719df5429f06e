/* SPDX-License-Identifier: GPL-2.0 */
/* The interface of the net_device for the rest of qhca.ko. */
#ifndef QHCA_NET_H
#define QHCA_NET_H

#include "qhca_core.h"

extern const struct qhca_client qhca_net_client;

#endif /* QHCA_NET_H */
