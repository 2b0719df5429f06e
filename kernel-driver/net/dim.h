/* SPDX-License-Identifier: GPL-2.0 */
/* Adaptive event moderation, by the kernel's algorithm (lib/dim). */
#ifndef QHCA_DIM_H
#define QHCA_DIM_H

#include <linux/dim.h>
#include <linux/ethtool.h>

struct qhca_channel;
struct qhca_coalesce;

#if IS_REACHABLE(CONFIG_DIMLIB)
#define QHCA_COALESCE_ADAPTIVE	ETHTOOL_COALESCE_USE_ADAPTIVE
void qhca_dim_init(struct qhca_channel *ch);
void qhca_dim_start(struct qhca_channel *ch);
void qhca_dim_stop(struct qhca_channel *ch);
void qhca_dim_cancel(struct qhca_channel *ch);
void qhca_dim_poll(struct qhca_channel *ch);
void qhca_dim_rx_now(const struct qhca_channel *ch, struct qhca_coalesce *c);
void qhca_dim_tx_now(const struct qhca_channel *ch, struct qhca_coalesce *c);
#else
/* a kernel without lib/dim: nothing is adaptive */
#define QHCA_COALESCE_ADAPTIVE	0
static inline void qhca_dim_init(struct qhca_channel *ch)
{
}

static inline void qhca_dim_start(struct qhca_channel *ch)
{
}

static inline void qhca_dim_stop(struct qhca_channel *ch)
{
}

static inline void qhca_dim_cancel(struct qhca_channel *ch)
{
}

static inline void qhca_dim_poll(struct qhca_channel *ch)
{
}

static inline void qhca_dim_rx_now(const struct qhca_channel *ch,
				   struct qhca_coalesce *c)
{
}

static inline void qhca_dim_tx_now(const struct qhca_channel *ch,
				   struct qhca_coalesce *c)
{
}
#endif

#endif /* QHCA_DIM_H */
