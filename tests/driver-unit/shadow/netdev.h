/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Instead of kernel-driver/net/netdev.h: the parts of the net_device that the
 * tested files use, with the same names.
 */
#ifndef QHCA_NETDEV_H
#define QHCA_NETDEV_H

#include "kernel_user.h"
#include "qhca_core.h"

#include "ntuple.h"
#include "rss.h"

struct qhca_shapers;

#define QHCA_MAX_CHANNELS       16U
#define QHCA_WATCHDOG_TIMEOUT   (10 * HZ)
#define QHCA_RXH_XFRM_OR_XOR    2

struct net_device {
    int watchdog_timeo;
    bool rxfh_configured;
    void *priv[];
};

static inline void *netdev_priv(const struct net_device *netdev)
{
    return (void *)netdev->priv;
}

static inline bool netif_is_rxfh_configured(const struct net_device *netdev)
{
    return netdev->rxfh_configured;
}

#define netdev_err(netdev, ...)     ((void)(netdev))
#define netdev_warn(netdev, ...)    ((void)(netdev))

struct qhca_net_params {
    u32 channels;
};

struct qhca_tx_queue {
    u32 num;
    u32 shaper;
    u8 index;
    bool made;
};

struct qhca_channel {
    struct qhca_tx_queue *tx;
    u32 rqn;
    struct qhca_rss_qp direct;
};

struct qhca_netdev {
    struct qhca_dev *dev;
    struct net_device *netdev;
    struct qhca_channel ch[QHCA_MAX_CHANNELS];
    u32 num_ch;
    bool up;
    struct qhca_net_params params;
    struct qhca_rss_ctx rss;
    struct list_head rss_list;
    u32 pdn;
    bool have_pd;
    struct qhca_ntuple *ntuple[QHCA_NTUPLE_MAX];
    struct qhca_shapers *shapers;
};

#endif /* QHCA_NETDEV_H */
