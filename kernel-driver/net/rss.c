// SPDX-License-Identifier: GPL-2.0
/*
 * Receive side scaling: each RSS context is a QP of type RSS over an
 * indirection table of receive queues. The port's QP has the default context;
 * filters select the others.
 *
 * The administrator's settings are kept here; the device's objects are created
 * when the queues have started and destroyed before they stop. All under
 * qhca_netdev_lock().
 */
#include <linux/ethtool.h>
#include <linux/random.h>
#include <linux/slab.h>

#include "netdev.h"
#include "rss.h"

static_assert(QHCA_RSS_QUEUES == QHCA_MAX_CHANNELS);

#define RSS_BY_ADDRS	(QHCA_HASH_BY_SRC_IP | QHCA_HASH_BY_DST_IP)
#define RSS_FIELDS_DEF	(QHCA_HASH_BY_MASK << QHCA_HASH_TCP4_SHIFT |	\
			 QHCA_HASH_BY_MASK << QHCA_HASH_UDP4_SHIFT |	\
			 RSS_BY_ADDRS << QHCA_HASH_IPV4_SHIFT |		\
			 QHCA_HASH_BY_MASK << QHCA_HASH_TCP6_SHIFT |	\
			 QHCA_HASH_BY_MASK << QHCA_HASH_UDP6_SHIFT |	\
			 RSS_BY_ADDRS << QHCA_HASH_IPV6_SHIFT)

static const u8 rss_shifts[] = {
	QHCA_HASH_TCP4_SHIFT, QHCA_HASH_UDP4_SHIFT, QHCA_HASH_IPV4_SHIFT,
	QHCA_HASH_TCP6_SHIFT, QHCA_HASH_UDP6_SHIFT, QHCA_HASH_IPV6_SHIFT,
};

/* Spread over the first @n queues. */
void qhca_rss_set_default(struct qhca_rss_ctx *rss, u32 n)
{
	u32 i;

	for (i = 0; i < QHCA_RSS_ENTRIES; i++)
		rss->indir[i] = ethtool_rxfh_indir_default(i, n);
}

/* A context with a random key, over the first @n queues. */
void qhca_rss_init(struct qhca_rss_ctx *rss, u32 n)
{
	memset(rss, 0, sizeof(*rss));
	INIT_LIST_HEAD(&rss->list);
	rss->fields = RSS_FIELDS_DEF;
	get_random_bytes(rss->key, sizeof(rss->key));
	qhca_rss_set_default(rss, n);
}

/* The context with ID @id; 0 is the default one. NULL if there is none. */
struct qhca_rss_ctx *qhca_rss_find(struct qhca_netdev *priv, u32 id)
{
	struct qhca_rss_ctx *rss;

	if (!id)
		return &priv->rss;
	list_for_each_entry(rss, &priv->rss_list, list) {
		if (rss->id == id)
			return rss;
	}
	return NULL;
}

/* The highest queue that the context's table names. */
u32 qhca_rss_last_queue(const struct qhca_rss_ctx *rss)
{
	u32 i, last = 0;

	for (i = 0; i < QHCA_RSS_ENTRIES; i++)
		last = max(last, rss->indir[i]);
	return last;
}

/* Does each type of frame hash source and destination, or neither? */
bool qhca_rss_fields_symmetric(u32 fields)
{
	int i;

	/* each direction has a flow label of its own */
	if (fields & (QHCA_HASH_LABEL_TCP6 | QHCA_HASH_LABEL_UDP6 |
		      QHCA_HASH_LABEL_IPV6))
		return false;
	for (i = 0; i < ARRAY_SIZE(rss_shifts); i++) {
		u32 f = fields >> rss_shifts[i];

		if (!(f & QHCA_HASH_BY_SRC_IP) != !(f & QHCA_HASH_BY_DST_IP) ||
		    !(f & QHCA_HASH_BY_SRC_PORT) !=
		    !(f & QHCA_HASH_BY_DST_PORT))
			return false;
	}
	return true;
}

static void rss_fill_hash(struct qhca_qpc *qpc, const struct qhca_rss_ctx *rss)
{
	u32 fields = QHCA_HASH_BY_TYPE | rss->fields;

	if (rss->input_xfrm & RXH_XFRM_SYM_XOR)
		fields |= QHCA_HASH_SYM_XOR;
	if (rss->input_xfrm & QHCA_RXH_XFRM_OR_XOR)
		fields |= QHCA_HASH_SYM_OR_XOR;
	qpc->rx_hash_fields = cpu_to_le32(fields);
	qpc->rx_hash_func = QHCA_HASH_TOEPLITZ;
	memcpy(qpc->rx_hash_key, rss->key, sizeof(qpc->rx_hash_key));
}

/* Create a table of @n entries: @base plus one of @queues. 0 or an error. */
static int rss_make_rqt(struct qhca_netdev *priv, const u32 *queues, u32 n,
			u32 base, u32 *rqtn)
{
	__le32 rqns[QHCA_RSS_ENTRIES];
	u32 i;

	for (i = 0; i < n; i++) {
		if (base + queues[i] >= priv->num_ch)
			return -EINVAL;
		rqns[i] = cpu_to_le32(priv->ch[base + queues[i]].rqn);
	}
	return qhca_aq_create_arg(priv->dev, QHCA_CMD_CREATE_RQT,
				  QHCA_RQT_ETH_RQ, rqns, n * sizeof(*rqns),
				  rqtn);
}

/*
 * Create an RSS QP over @n queues of channels, each @base plus one of @queues,
 * with the hash of @rss. 0 or an error.
 */
static int rss_make_qp(struct qhca_netdev *priv, const struct qhca_rss_ctx *rss,
		       const u32 *queues, u32 n, u32 base,
		       struct qhca_rss_qp *qp)
{
	struct qhca_qpc *qpc;
	int err;

	qpc = kzalloc(sizeof(*qpc), GFP_KERNEL);
	if (!qpc)
		return -ENOMEM;
	err = rss_make_rqt(priv, queues, n, base, &qp->rqtn);
	if (err)
		goto out;
	qpc->type = QHCA_QPT_RSS;
	qpc->pd = cpu_to_le32(priv->pdn);
	qpc->rqtn = cpu_to_le32(qp->rqtn);
	rss_fill_hash(qpc, rss);
	err = qhca_aq_create(priv->dev, QHCA_CMD_CREATE_QP, qpc, sizeof(*qpc),
			     &qp->qpn);
	if (err)
		qhca_aq_destroy_sure(priv->dev, QHCA_CMD_DESTROY_RQT, qp->rqtn);
	else
		qp->made = true;
out:
	kfree(qpc);
	return err;
}

/* Create the QP of a context with @base added to each entry. 0 or an error. */
static int rss_make_ctx_qp(struct qhca_netdev *priv, struct qhca_rss_ctx *rss,
			   u32 base)
{
	return rss_make_qp(priv, rss, rss->indir, QHCA_RSS_ENTRIES, base,
			   &rss->qp[base]);
}

/* Undo rss_make_qp(); no flow uses it. Does nothing if there is no QP. */
static void rss_unmake_qp(struct qhca_netdev *priv, struct qhca_rss_qp *qp)
{
	if (!qp->made)
		return;
	qhca_aq_destroy_sure(priv->dev, QHCA_CMD_DESTROY_QP, qp->qpn);
	qhca_aq_destroy_sure(priv->dev, QHCA_CMD_DESTROY_RQT, qp->rqtn);
	qp->made = false;
}

/*
 * Set hash and table of one of a context's QPs to those of @want, with @base
 * added to each entry, in one step.
 */
static int rss_modify(struct qhca_netdev *priv, struct qhca_rss_qp *qp,
		      const struct qhca_rss_ctx *want, u32 base)
{
	struct qhca_qpc *qpc;
	u32 rqtn, old;
	int err;

	qpc = kzalloc(sizeof(*qpc), GFP_KERNEL);
	if (!qpc)
		return -ENOMEM;
	err = rss_make_rqt(priv, want->indir, QHCA_RSS_ENTRIES, base, &rqtn);
	if (err)
		goto out;
	qpc->rqtn = cpu_to_le32(rqtn);
	rss_fill_hash(qpc, want);
	err = qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_QP, qp->qpn,
			     QHCA_QP_M_RX_HASH | QHCA_QP_M_RQTN, qpc,
			     sizeof(*qpc));
	old = err ? rqtn : qp->rqtn;
	if (!err)
		qp->rqtn = rqtn;
	qhca_aq_destroy_sure(priv->dev, QHCA_CMD_DESTROY_RQT, old);
out:
	kfree(qpc);
	return err;
}

/* The same for all QPs of a context. 0, or an error with nothing changed. */
static int rss_modify_all(struct qhca_netdev *priv, struct qhca_rss_ctx *rss,
			  const struct qhca_rss_ctx *want)
{
	int i, err = 0;

	for (i = 0; i < QHCA_RSS_QUEUES; i++) {
		if (rss->qp[i].made)
			err = rss_modify(priv, &rss->qp[i], want, i);
		if (err)
			break;
	}
	if (!err)
		return 0;
	while (i--) {
		if (rss->qp[i].made && rss_modify(priv, &rss->qp[i], rss, i))
			netdev_err(priv->netdev,
				   "RSS context %u: old table not restored\n",
				   rss->id);
	}
	return err;
}

/* Set the hash of the single-queue QPs to that of the default context. */
static void rss_rehash_direct(struct qhca_netdev *priv)
{
	struct qhca_qpc *qpc;
	int err = 0;
	u32 i;

	qpc = kzalloc(sizeof(*qpc), GFP_KERNEL);
	if (!qpc)
		err = -ENOMEM;
	else
		rss_fill_hash(qpc, &priv->rss);
	for (i = 0; i < priv->num_ch && !err; i++) {
		if (priv->ch[i].direct.made)
			err = qhca_aq_modify(priv->dev, QHCA_CMD_MODIFY_QP,
					     priv->ch[i].direct.qpn,
					     QHCA_QP_M_RX_HASH, qpc,
					     sizeof(*qpc));
	}
	if (err)
		netdev_warn(priv->netdev,
			    "filtered frames keep their old hash: %d\n",
			    err);
	kfree(qpc);
}

/*
 * Change a context to the table, key, fields and transformation of @want. 0, or
 * an error with nothing changed.
 */
int qhca_rss_change(struct qhca_netdev *priv, struct qhca_rss_ctx *rss,
		    const struct qhca_rss_ctx *want)
{
	int err = rss_modify_all(priv, rss, want);

	if (err)
		return err;
	memcpy(rss->indir, want->indir, sizeof(rss->indir));
	memcpy(rss->key, want->key, sizeof(rss->key));
	rss->fields = want->fields;
	rss->input_xfrm = want->input_xfrm;
	/* frames that filters send to a queue use the default context's hash */
	if (rss == &priv->rss)
		rss_rehash_direct(priv);
	return 0;
}

/*
 * Get the QP over receive queue @i alone, created if necessary. 0 or an error;
 * the queues are started.
 */
int qhca_rss_direct(struct qhca_netdev *priv, u32 i, u32 *qpn)
{
	struct qhca_rss_qp *qp;
	int err = 0;

	if (i >= priv->num_ch)
		return -EINVAL;
	qp = &priv->ch[i].direct;
	if (!qp->made)
		err = rss_make_qp(priv, &priv->rss, &i, 1, 0, qp);
	if (!err)
		*qpn = qp->qpn;
	return err;
}

/**
 * qhca_rss_get_added - get a context's QP with a queue added to each entry
 * @priv: net_device; its queues are started
 * @rss: context
 * @base: what is added; 0 gets the context's own QP
 * @qpn: filled in with the QP's number
 *
 * The QP is created if necessary; it follows the context's table and hash until
 * qhca_rss_put_added().
 *
 * Return: 0, -EINVAL (beyond the last queue) or an error of the device.
 */
int qhca_rss_get_added(struct qhca_netdev *priv, struct qhca_rss_ctx *rss,
		       u32 base, u32 *qpn)
{
	struct qhca_rss_qp *qp;
	int err = 0;

	if (base >= QHCA_RSS_QUEUES)
		return -EINVAL;
	qp = &rss->qp[base];
	if (!qp->made)
		err = rss_make_ctx_qp(priv, rss, base);
	if (err)
		return err;
	qp->users++;
	*qpn = qp->qpn;
	return 0;
}

/* Undo qhca_rss_get_added(); the flow that used the QP is gone. */
void qhca_rss_put_added(struct qhca_netdev *priv, struct qhca_rss_ctx *rss,
			u32 base)
{
	struct qhca_rss_qp *qp = &rss->qp[base];

	/* the context's own lives as long as the queues run */
	if (!--qp->users && base)
		rss_unmake_qp(priv, qp);
}

/* Destroy all QPs of a context. */
static void rss_unmake_ctx(struct qhca_netdev *priv, struct qhca_rss_ctx *rss)
{
	int i;

	for (i = 0; i < QHCA_RSS_QUEUES; i++)
		rss_unmake_qp(priv, &rss->qp[i]);
}

/* Add a context, with its QP if the queues are started. 0 or an error. */
int qhca_rss_add(struct qhca_netdev *priv, struct qhca_rss_ctx *rss)
{
	int err = 0;

	if (priv->up)
		err = rss_make_ctx_qp(priv, rss, 0);
	if (!err)
		list_add_tail(&rss->list, &priv->rss_list);
	return err;
}

/* No filter uses it. */
void qhca_rss_remove(struct qhca_netdev *priv, struct qhca_rss_ctx *rss)
{
	list_del(&rss->list);
	rss_unmake_ctx(priv, rss);
}

/*
 * Create the device's objects of all contexts; the queues are started. 0, or an
 * error with nothing left behind.
 */
int qhca_rss_start(struct qhca_netdev *priv)
{
	struct qhca_rss_ctx *rss;
	int err;

	if (!qhca_rss_supported(priv->dev))
		return 0;
	if (!netif_is_rxfh_configured(priv->netdev))
		qhca_rss_set_default(&priv->rss, priv->num_ch);
	err = qhca_aq_create(priv->dev, QHCA_CMD_ALLOC_PD, NULL, 0, &priv->pdn);
	if (err)
		return err;
	priv->have_pd = true;
	err = rss_make_ctx_qp(priv, &priv->rss, 0);
	list_for_each_entry(rss, &priv->rss_list, list) {
		if (err)
			break;
		err = rss_make_ctx_qp(priv, rss, 0);
	}
	if (err)
		qhca_rss_stop(priv);
	return err;
}

/* Undo qhca_rss_start(); the port and all filters no longer use the QPs. */
void qhca_rss_stop(struct qhca_netdev *priv)
{
	struct qhca_rss_ctx *rss;
	u32 i;

	for (i = 0; i < QHCA_MAX_CHANNELS; i++)
		rss_unmake_qp(priv, &priv->ch[i].direct);
	rss_unmake_ctx(priv, &priv->rss);
	list_for_each_entry(rss, &priv->rss_list, list)
		rss_unmake_ctx(priv, rss);
	if (priv->have_pd)
		qhca_aq_destroy_sure(priv->dev, QHCA_CMD_FREE_PD, priv->pdn);
	priv->have_pd = false;
}
