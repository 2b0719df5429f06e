// SPDX-License-Identifier: GPL-2.0
/* Reports of the net_device to devlink health: queues that have stopped. */
#include <net/devlink.h>

#include "netdev.h"
#include "qhca_debug.h"

/*
 * Queues that stop so soon after they were recreated stay stopped until the
 * administrator runs "recover", or something else replaces the queues: otherwise
 * a bad device would have them recreated all the time.
 */
#define QUEUE_GRACE_MS	500

/* Recreate the queues, for both directions. */
static int qhca_netdev_health_recover(struct devlink_health_reporter *r,
				      void *ctx, struct netlink_ext_ack *extack)
{
	int err = qhca_netdev_remake(devlink_health_reporter_priv(r));

	if (err)
		NL_SET_ERR_MSG_MOD(extack, "queues not remade");
	return err;
}

static int qhca_netdev_health_tx_test(struct devlink_health_reporter *r,
				      struct netlink_ext_ack *extack)
{
	qhca_health_report(devlink_health_reporter_priv(r),
			   QHCA_NETDEV_REPORT_TX);
	return 0;
}

static const struct devlink_health_reporter_ops netdev_health_tx_ops = {
	.name = "tx",
	.recover = qhca_netdev_health_recover,
	.diagnose = qhca_debug_ptr(qhca_debug_tx_diagnose),
	.dump = qhca_debug_ptr(qhca_debug_tx_dump),
	.test = qhca_netdev_health_tx_test,
	QHCA_HEALTH_GRACE(QUEUE_GRACE_MS)
};

static int qhca_netdev_health_rx_test(struct devlink_health_reporter *r,
				      struct netlink_ext_ack *extack)
{
	qhca_health_report(devlink_health_reporter_priv(r),
			   QHCA_NETDEV_REPORT_RX);
	return 0;
}

static const struct devlink_health_reporter_ops netdev_health_rx_ops = {
	.name = "rx",
	.recover = qhca_netdev_health_recover,
	.diagnose = qhca_debug_ptr(qhca_debug_rx_diagnose),
	.dump = qhca_debug_ptr(qhca_debug_rx_dump),
	.test = qhca_netdev_health_rx_test,
	QHCA_HEALTH_GRACE(QUEUE_GRACE_MS)
};

const struct qhca_reporter qhca_netdev_reporters[QHCA_NETDEV_REPORTERS] = {
	{
		.ops = &netdev_health_tx_ops,
		.message = "the send queue has stopped",
		.grace = QUEUE_GRACE_MS,
	}, {
		.ops = &netdev_health_rx_ops,
		.message = "the receive queue has stopped",
		.grace = QUEUE_GRACE_MS,
	},
};
