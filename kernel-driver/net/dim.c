// SPDX-License-Identifier: GPL-2.0
/*
 * Adaptive event moderation. After each poll that leaves nothing, the kernel's
 * algorithm (lib/dim) gets the numbers of events, packets and bytes since the
 * last run, and sometimes requests a different moderation. Setting it takes an
 * admin command, which sleeps, so a work item issues it.
 */
#include "netdev.h"

/* the device's timer starts with the first completion after an event */
#define DIM_MODE	DIM_CQ_PERIOD_MODE_START_FROM_EQE
/* initial profile: that of net_dim_get_def_rx_moderation() */
#define DIM_FIRST	1

static void dim_set(struct qhca_coalesce *c, struct dim_cq_moder m)
{
	if (!c->adaptive)
		return;
	c->count = m.pkts;
	c->usec = m.usec;
}

/*
 * Current moderation @c of the receive CQ; a fixed one is left unchanged. The
 * algorithm is stopped, except in its own work item: it waits for that.
 */
void qhca_dim_rx_now(const struct qhca_channel *ch, struct qhca_coalesce *c)
{
	dim_set(c, net_dim_get_rx_moderation(DIM_MODE, ch->rx_dim.profile_ix));
}

void qhca_dim_tx_now(const struct qhca_channel *ch, struct qhca_coalesce *c)
{
	dim_set(c, net_dim_get_tx_moderation(DIM_MODE, ch->tx_dim.profile_ix));
}

static void dim_apply(struct dim *dim, struct qhca_net_cq *cq,
		      const struct qhca_coalesce *c)
{
	if (qhca_net_cq_moderate(cq, c))
		netdev_dbg(cq->ch->priv->netdev, "channel %u not moderated\n",
			   cq->ch->index);
	dim->state = DIM_START_MEASURE;
}

static void dim_rx_work(struct work_struct *work)
{
	struct qhca_channel *ch = container_of(work, struct qhca_channel,
					       rx_dim.work);
	struct qhca_coalesce c = { .adaptive = true };

	qhca_dim_rx_now(ch, &c);
	dim_apply(&ch->rx_dim, &ch->rx->cq, &c);
}

static void dim_tx_work(struct work_struct *work)
{
	struct qhca_channel *ch = container_of(work, struct qhca_channel,
					       tx_dim.work);
	struct qhca_coalesce c = { .adaptive = true };

	qhca_dim_tx_now(ch, &c);
	dim_apply(&ch->tx_dim, &ch->tx->cq, &c);
}

/* Once in the life of a channel. */
void qhca_dim_init(struct qhca_channel *ch)
{
	ch->rx_dim.mode = DIM_MODE;
	ch->tx_dim.mode = DIM_MODE;
	ch->rx_dim.profile_ix = DIM_FIRST;
	ch->tx_dim.profile_ix = DIM_FIRST;
	INIT_WORK(&ch->rx_dim.work, dim_rx_work);
	INIT_WORK(&ch->tx_dim.work, dim_tx_work);
}

/*
 * Run the algorithm from now on, for moderation that is adaptive. NAPI is off,
 * or the algorithm was stopped. Under qhca_netdev_lock(), as all but NAPI and
 * the work items.
 */
void qhca_dim_start(struct qhca_channel *ch)
{
	const struct qhca_net_params *p = &ch->priv->params;

	WRITE_ONCE(ch->rx_adaptive, p->rx_coalesce[ch->index].adaptive);
	WRITE_ONCE(ch->tx_adaptive, p->tx_coalesce[ch->index].adaptive);
}

/*
 * NAPI runs the algorithm no more, except for a poll that is under way: after
 * synchronize_net() qhca_dim_cancel() ends the rest.
 */
void qhca_dim_stop(struct qhca_channel *ch)
{
	WRITE_ONCE(ch->rx_adaptive, false);
	WRITE_ONCE(ch->tx_adaptive, false);
}

static void dim_cancel(struct dim *dim)
{
	/* a work item that did not run leaves this undone */
	if (cancel_work_sync(&dim->work))
		dim->state = DIM_START_MEASURE;
}

/*
 * After this returns, no work item runs, and none will: NAPI is off, or the
 * algorithm was stopped. Sleeps.
 */
void qhca_dim_cancel(struct qhca_channel *ch)
{
	dim_cancel(&ch->rx_dim);
	dim_cancel(&ch->tx_dim);
}

static void dim_look(struct dim *dim, const struct qhca_net_cq *cq, u64 packets,
		     u64 bytes)
{
	struct dim_sample sample = {};

	dim_update_sample(READ_ONCE(cq->events), packets, bytes, &sample);
	qhca_net_dim(dim, &sample);
}

/*
 * In NAPI context, which is the only writer of the statistics of @ch->rx. The
 * send statistics also count what completed at the doorbell, without an event.
 */
void qhca_dim_poll(struct qhca_channel *ch)
{
	if (READ_ONCE(ch->rx_adaptive) && ch->rx->made)
		dim_look(&ch->rx_dim, &ch->rx->cq,
			 u64_stats_read(&ch->rx->stats->packets),
			 u64_stats_read(&ch->rx->stats->bytes));
	if (READ_ONCE(ch->tx_adaptive))
		dim_look(&ch->tx_dim, &ch->tx->cq,
			 u64_stats_read(&ch->tx->stats->packets),
			 u64_stats_read(&ch->tx->stats->bytes));
}
