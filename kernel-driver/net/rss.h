/* SPDX-License-Identifier: GPL-2.0 */
/* Contexts of receive side scaling. */
#ifndef QHCA_RSS_H
#define QHCA_RSS_H

#include <linux/list.h>
#include <linux/types.h>

#include "qhca_core.h"

struct qhca_netdev;

#define QHCA_RSS_ENTRIES	128
#define QHCA_RSS_KEY_LEN	40
#define QHCA_RSS_CONTEXTS	64	/* with the default one */
#define QHCA_RSS_QUEUES		16	/* that an entry can name */

/* The device's objects of a context, or of a single queue. */
struct qhca_rss_qp {
	u32 rqtn;
	u32 qpn;
	u16 users;	/* filters, of one with a queue added */
	bool made;
};

/**
 * struct qhca_rss_ctx - an RSS context
 * @list: in the net_device's rss_list; not the default one
 * @id: the stack's number; 0 is the default one
 * @indir: queue of each entry
 * @key: of the Toeplitz hash
 * @fields: QHCA_HASH_BY_* of each type of frame
 * @input_xfrm: RXH_XFRM_*
 * @qp: the device's objects; [n]: with n added to each entry, while filters use
 *	it
 */
struct qhca_rss_ctx {
	struct list_head list;
	u32 id;
	u32 indir[QHCA_RSS_ENTRIES];
	u8 key[QHCA_RSS_KEY_LEN];
	u32 fields;
	u8 input_xfrm;
	struct qhca_rss_qp qp[QHCA_RSS_QUEUES];
};

static inline bool qhca_rss_supported(const struct qhca_dev *dev)
{
	return dev->caps.features & QHCA_FEAT_ETH_RSS;
}

void qhca_rss_set_default(struct qhca_rss_ctx *rss, u32 n);
void qhca_rss_init(struct qhca_rss_ctx *rss, u32 n);
struct qhca_rss_ctx *qhca_rss_find(struct qhca_netdev *priv, u32 id);
bool qhca_rss_fields_symmetric(u32 fields);
u32 qhca_rss_last_queue(const struct qhca_rss_ctx *rss);
int qhca_rss_change(struct qhca_netdev *priv, struct qhca_rss_ctx *rss,
		    const struct qhca_rss_ctx *want);
int qhca_rss_add(struct qhca_netdev *priv, struct qhca_rss_ctx *rss);
void qhca_rss_remove(struct qhca_netdev *priv, struct qhca_rss_ctx *rss);
int qhca_rss_direct(struct qhca_netdev *priv, u32 i, u32 *qpn);
int qhca_rss_get_added(struct qhca_netdev *priv, struct qhca_rss_ctx *rss,
		       u32 base, u32 *qpn);
void qhca_rss_put_added(struct qhca_netdev *priv, struct qhca_rss_ctx *rss,
			u32 base);
int qhca_rss_start(struct qhca_netdev *priv);
void qhca_rss_stop(struct qhca_netdev *priv);

#endif /* QHCA_RSS_H */
