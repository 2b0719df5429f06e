/* SPDX-License-Identifier: GPL-2.0 */
/* A net_device on the device of fake_device.h. */
#ifndef QHCA_FAKE_NETDEV_H
#define QHCA_FAKE_NETDEV_H

#include "fake_device.h"

#include "../net/netdev.h"

/**
 * qhca_fake_netdev - create a net_device without queues in the device
 * @test: frees it
 * @fake: its device
 * @channels: how many it has
 *
 * Return: its private part.
 */
static inline struct qhca_netdev *qhca_fake_netdev(struct kunit *test,
						   struct qhca_fake *fake,
						   u32 channels)
{
	size_t size = sizeof(struct net_device) + sizeof(struct qhca_netdev);
	struct net_device *netdev = kunit_kzalloc(test, size + 256, GFP_KERNEL);
	struct qhca_netdev *priv;

	KUNIT_ASSERT_NOT_NULL(test, netdev);
	priv = netdev_priv(netdev);
	priv->netdev = netdev;
	priv->dev = &fake->dev;
	priv->num_ch = channels;
	return priv;
}

#endif /* QHCA_FAKE_NETDEV_H */
