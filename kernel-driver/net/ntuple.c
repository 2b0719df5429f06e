// SPDX-License-Identifier: GPL-2.0
/*
 * The rules of ethtool -N: each is a flow in the device to an RSS QP, which has
 * a context's table or a single queue. The location is the priority: if several
 * rules match, the lowest location gets the frame.
 *
 * Rules outlive the queues: flows are created when these have started and
 * destroyed before they stop. All under qhca_netdev_lock().
 */
#include <linux/slab.h>

#include "netdev.h"
#include "ntuple.h"
#include "ntuple_match.h"
#include "rss.h"

/* The context whose table the rule uses, or NULL. */
static struct qhca_rss_ctx *ntuple_context(struct qhca_netdev *priv,
					   const struct qhca_ntuple *r)
{
	if (!(r->fs.flow_type & FLOW_RSS) ||
	    r->fs.ring_cookie == RX_CLS_FLOW_DISC)
		return NULL;
	return qhca_rss_find(priv, r->rss_context);
}

/*
 * Get the destination QP of a rule, for ntuple_untarget() to put back. 0 or an
 * error.
 */
static int ntuple_target(struct qhca_netdev *priv, const struct qhca_ntuple *r,
			 u32 *qpn)
{
	struct qhca_rss_ctx *rss = ntuple_context(priv, r);

	if (r->fs.ring_cookie == RX_CLS_FLOW_DISC) {
		*qpn = priv->rss.qp[0].qpn;	/* any: no queue receives it */
		return 0;
	}
	if (rss)
		return qhca_rss_get_added(priv, rss, r->fs.ring_cookie, qpn);
	if (r->fs.flow_type & FLOW_RSS)
		return -ENOENT;
	return qhca_rss_direct(priv, r->fs.ring_cookie, qpn);
}

static void ntuple_untarget(struct qhca_netdev *priv,
			    const struct qhca_ntuple *r)
{
	struct qhca_rss_ctx *rss = ntuple_context(priv, r);

	if (rss)
		qhca_rss_put_added(priv, rss, r->fs.ring_cookie);
}

/* Create the device's flow of a rule. 0 or an error. */
static int ntuple_make(struct qhca_netdev *priv, struct qhca_ntuple *r)
{
	struct qhca_flow flow = {
		.type = QHCA_FLOW_NORMAL,
		.flags = QHCA_FLOW_F_ADDR_FILTER,
		.priority = cpu_to_le16(r->fs.location),
	};
	u32 qpn;
	int err;

	err = qhca_ntuple_match(&r->fs, &flow.value, &flow.mask);
	if (err)
		return err;
	err = ntuple_target(priv, r, &qpn);
	if (err)
		return err;
	flow.qpn = cpu_to_le32(qpn);
	if (r->fs.ring_cookie == RX_CLS_FLOW_DISC)
		flow.flags |= QHCA_FLOW_F_DROP;
	err = qhca_aq_create(priv->dev, QHCA_CMD_CREATE_FLOW, &flow,
			     sizeof(flow), &r->flow);
	r->made = !err;
	if (err)
		ntuple_untarget(priv, r);
	/* the table is full, or has too many different masks */
	return err == -ENOMEM ? -ENOSPC : err;
}

static void ntuple_unmake(struct qhca_netdev *priv, struct qhca_ntuple *r)
{
	if (!r->made)
		return;
	qhca_aq_destroy_sure(priv->dev, QHCA_CMD_DESTROY_FLOW, r->flow);
	ntuple_untarget(priv, r);
	r->made = false;
}

/*
 * Is the highest queue that the rule leads to below @channels? If it has a
 * context, that is @rss, and the rule's queue is added to each entry.
 */
static bool ntuple_below(const struct qhca_ntuple *r,
			 const struct qhca_rss_ctx *rss, u32 channels)
{
	u64 cookie = r->fs.ring_cookie;

	if (cookie == RX_CLS_FLOW_DISC)
		return true;
	/* a cookie may also name a function */
	return cookie < channels &&
	       (!rss || cookie + qhca_rss_last_queue(rss) < channels);
}

/* Returns 0 if the rule has a valid destination, else an error. */
static int ntuple_check(struct qhca_netdev *priv, const struct qhca_ntuple *r)
{
	const struct qhca_rss_ctx *rss = NULL;
	struct qhca_flow_match value, mask;

	if (r->fs.ring_cookie == RX_CLS_FLOW_WAKE)
		return -EOPNOTSUPP;
	if (r->fs.flow_type & FLOW_RSS) {
		rss = qhca_rss_find(priv, r->rss_context);
		if (!rss)
			return -ENOENT;
	}
	if (!ntuple_below(r, rss, priv->params.channels))
		return -EINVAL;
	return qhca_ntuple_match(&r->fs, &value, &mask);
}

/* Do both rules match the same frames? */
static bool ntuple_same_match(const struct ethtool_rx_flow_spec *a,
			      const struct ethtool_rx_flow_spec *b)
{
	struct qhca_flow_match value[2], mask[2];
	const u8 *v = (const u8 *)&value[0], *w = (const u8 *)&value[1];
	const u8 *m = (const u8 *)&mask[0];
	size_t i;

	if (qhca_ntuple_match(a, &value[0], &mask[0]) ||
	    qhca_ntuple_match(b, &value[1], &mask[1]) ||
	    memcmp(&mask[0], &mask[1], sizeof(mask[0])))
		return false;
	for (i = 0; i < sizeof(value[0]); i++) {
		if ((v[i] ^ w[i]) & m[i])
			return false;
	}
	return true;
}

/*
 * Choose a location for a rule that leaves it to the driver, or return an
 * error. Of two rules for the same frames one would never be used, so a new
 * destination replaces the old one.
 */
static int ntuple_choose(struct qhca_netdev *priv,
			 const struct ethtool_rx_flow_spec *fs)
{
	u32 location = fs->location;
	int i;

	if (!(location & RX_CLS_LOC_SPECIAL))
		return location < QHCA_NTUPLE_MAX ? (int)location : -EINVAL;
	if (location != RX_CLS_LOC_ANY && location != RX_CLS_LOC_FIRST &&
	    location != RX_CLS_LOC_LAST)
		return -EINVAL;
	for (i = 0; i < QHCA_NTUPLE_MAX; i++) {
		if (priv->ntuple[i] &&
		    ntuple_same_match(&priv->ntuple[i]->fs, fs))
			return i;
	}
	if (location == RX_CLS_LOC_LAST) {
		for (i = QHCA_NTUPLE_MAX - 1; i >= 0; i--) {
			if (!priv->ntuple[i])
				return i;
		}
		return -ENOSPC;
	}
	for (i = 0; i < QHCA_NTUPLE_MAX; i++) {
		if (!priv->ntuple[i])
			return i;
	}
	return -ENOSPC;
}

/**
 * qhca_ntuple_insert - add a rule
 * @priv: net_device
 * @fs: the rule; its location may be special, and becomes the one chosen
 * @rss_context: with FLOW_RSS: the destination context
 *
 * A rule at the same location is replaced, and if the driver chooses, a rule for
 * the same frames.
 *
 * Return: 0, -EINVAL (location, queue, contradiction), -ENOENT (no such
 * context), -EOPNOTSUPP (a match or an action that the device lacks), -ENOSPC
 * (no location, or the device's table is full), -ENOMEM, -EIO; on error nothing
 * has changed.
 */
int qhca_ntuple_insert(struct qhca_netdev *priv,
		       struct ethtool_rx_flow_spec *fs, u32 rss_context)
{
	int loc = ntuple_choose(priv, fs);
	struct qhca_ntuple *r, *old;
	int err;

	if (loc < 0)
		return loc;
	r = kzalloc(sizeof(*r), GFP_KERNEL);
	if (!r)
		return -ENOMEM;
	r->fs = *fs;
	r->fs.location = loc;
	r->rss_context = rss_context;
	err = ntuple_check(priv, r);
	if (err)
		goto err;
	old = priv->ntuple[loc];
	if (priv->up) {
		/* not both at once: equal rules would each get the frame */
		if (old)
			ntuple_unmake(priv, old);
		err = ntuple_make(priv, r);
		if (err) {
			if (old && ntuple_make(priv, old))
				netdev_err(priv->netdev,
					   "filter %d not restored\n", loc);
			goto err;
		}
	}
	priv->ntuple[loc] = r;
	kfree(old);
	fs->location = loc;
	return 0;
err:
	kfree(r);
	return err;
}

/* Delete the rule at @location. 0, -EINVAL or -ENOENT. */
int qhca_ntuple_delete(struct qhca_netdev *priv, u32 location)
{
	struct qhca_ntuple *r;

	if (location >= QHCA_NTUPLE_MAX)
		return -EINVAL;
	r = priv->ntuple[location];
	if (!r)
		return -ENOENT;
	ntuple_unmake(priv, r);
	priv->ntuple[location] = NULL;
	kfree(r);
	return 0;
}

/* Is this context the destination of a rule? */
bool qhca_ntuple_uses(struct qhca_netdev *priv, u32 rss_context)
{
	const struct qhca_ntuple *r;
	int i;

	for (i = 0; i < QHCA_NTUPLE_MAX; i++) {
		r = priv->ntuple[i];
		if (r && r->fs.flow_type & FLOW_RSS &&
		    r->rss_context == rss_context)
			return true;
	}
	return false;
}

/*
 * Would all rules of the context that @rss describes lead to queues below
 * @channels? Its table may be one that is yet to be set.
 */
bool qhca_ntuple_fits(struct qhca_netdev *priv, const struct qhca_rss_ctx *rss,
		      u32 channels)
{
	const struct qhca_ntuple *r;
	int i;

	for (i = 0; i < QHCA_NTUPLE_MAX; i++) {
		r = priv->ntuple[i];
		if (r && r->fs.flow_type & FLOW_RSS &&
		    r->rss_context == rss->id &&
		    !ntuple_below(r, rss, channels))
			return false;
	}
	return true;
}

u32 qhca_ntuple_count(struct qhca_netdev *priv)
{
	u32 n = 0;
	int i;

	for (i = 0; i < QHCA_NTUPLE_MAX; i++)
		n += !!priv->ntuple[i];
	return n;
}

/* Create the flows of all rules; the RSS contexts have started. */
void qhca_ntuple_start(struct qhca_netdev *priv)
{
	struct qhca_ntuple *r;
	int i, err;

	for (i = 0; i < QHCA_NTUPLE_MAX; i++) {
		r = priv->ntuple[i];
		err = r ? ntuple_make(priv, r) : 0;
		/* the remaining rules still apply */
		if (err)
			netdev_err(priv->netdev, "filter %d not set: %d\n", i,
				   err);
	}
}

/* Undo qhca_ntuple_start(); the rules stay. */
void qhca_ntuple_stop(struct qhca_netdev *priv)
{
	int i;

	for (i = 0; i < QHCA_NTUPLE_MAX; i++) {
		if (priv->ntuple[i])
			ntuple_unmake(priv, priv->ntuple[i]);
	}
}

/* Delete all rules. */
void qhca_ntuple_flush(struct qhca_netdev *priv)
{
	u32 i;

	for (i = 0; i < QHCA_NTUPLE_MAX; i++) {
		if (priv->ntuple[i])
			qhca_ntuple_delete(priv, i);
	}
}
