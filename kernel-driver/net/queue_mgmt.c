// SPDX-License-Identifier: GPL-2.0
/*
 * Lets the stack replace one receive queue while the others run, for example
 * when a memory provider is bound to it. The queue keeps its number in the
 * device, so tables and filters remain valid.
 */
#include <linux/log2.h>
#include <net/netdev_queues.h>

#include "netdev.h"

/* of a buffer of the data ring, bytes */
#define QHCA_DATA_SIZE_MAX	SZ_64K

/* What the core keeps for the driver between the steps. */
struct queue_mem {
	struct qhca_rx_queue *q;
};

static int qhca_queue_mem_alloc(struct net_device *netdev, QHCA_QCFG_PARAM
				void *per_queue_mem, int index)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct queue_mem *mem = per_queue_mem;
	struct qhca_rx_queue *q;
	int err;

	q = qhca_rx_alloc(&priv->ch[index], &priv->params);
	if (IS_ERR(q))
		return PTR_ERR(q);
	err = q->split ? qhca_rx_data_check(q, priv->ch[index].rx) : 0;
	if (err) {
		qhca_rx_free(q);
		return err;
	}
	mem->q = q;
	return 0;
}

/* A queue that could not be restarted stays with its channel, stopped. */
static void qhca_queue_mem_free(struct net_device *netdev, void *per_queue_mem)
{
	struct queue_mem *mem = per_queue_mem;

	if (mem->q && mem->q != mem->q->ch->rx)
		qhca_rx_free(mem->q);
	mem->q = NULL;
}

static int qhca_queue_start(struct net_device *netdev, QHCA_QCFG_PARAM
			    void *per_queue_mem, int index)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_channel *ch = &priv->ch[index];
	struct queue_mem *mem = per_queue_mem;
	bool again = mem->q == ch->rx;
	int err;

	err = qhca_rx_start(mem->q, &priv->params.rx_coalesce[index]);
	if (err && !again)
		return err;	/* the core restarts the old one */
	ch->rx = mem->q;
	/* the channel can at least send */
	qhca_channel_enable(ch);
	if (err) {
		netdev_err(netdev, "receive queue %d not restarted: %d\n",
			   index, err);
		qhca_health_report(priv->dev, QHCA_NETDEV_REPORT_RX);
	}
	return err;
}

static int qhca_queue_stop(struct net_device *netdev, void *per_queue_mem,
			   int index)
{
	struct qhca_netdev *priv = netdev_priv(netdev);
	struct qhca_channel *ch = &priv->ch[index];
	struct queue_mem *mem = per_queue_mem;
	int err;

	/*
	 * A device that was reset has no queues until it works again. A dead
	 * one uses no memory, but could start neither a new queue nor this one.
	 */
	if (!priv->up || qhca_dev_dead(priv->dev))
		return -ENETDOWN;
	qhca_channel_disable(ch);
	err = qhca_rx_suspend(ch->rx);
	if (err) {
		qhca_channel_enable(ch);
		return err;
	}
	mem->q = ch->rx;
	return 0;
}

#ifdef QHCA_PAGE_SIZE_BY_QUEUE
static void qhca_queue_default_config(struct net_device *netdev,
				      struct netdev_queue_config *qcfg)
{
	qcfg->rx_page_size = PAGE_SIZE;
}

static int qhca_queue_check_config(struct net_device *netdev,
				   struct netdev_queue_config *qcfg,
				   struct netlink_ext_ack *extack)
{
	u32 size = qcfg->rx_page_size;

	if (is_power_of_2(size) && size >= PAGE_SIZE &&
	    size <= QHCA_DATA_SIZE_MAX)
		return 0;
	NL_SET_ERR_MSG_FMT(extack,
			   "the page size must be a power of two from %lu to %u",
			   PAGE_SIZE, QHCA_DATA_SIZE_MAX);
	return -EINVAL;
}
#endif

const struct netdev_queue_mgmt_ops qhca_queue_mgmt_ops = {
	.ndo_queue_mem_size = sizeof(struct queue_mem),
	.ndo_queue_mem_alloc = qhca_queue_mem_alloc,
	.ndo_queue_mem_free = qhca_queue_mem_free,
	.ndo_queue_start = qhca_queue_start,
	.ndo_queue_stop = qhca_queue_stop,
#ifdef QHCA_PAGE_SIZE_BY_QUEUE
	.ndo_default_qcfg = qhca_queue_default_config,
	.ndo_validate_qcfg = qhca_queue_check_config,
	.supported_params = QCFG_RX_PAGE_SIZE,
#endif
};
