// SPDX-License-Identifier: GPL-2.0
/*
 * Counters of sets of QPs ("rdma statistic qp"). The device counts for each QP
 * from its creation or reset on; a counter adds up what its QPs have counted
 * while they were bound to it.
 *
 * The core adds the sum of all counters, past and present, to the port's. So
 * the port's own share must exclude what bound QPs have counted: see
 * qhca_ib_counters_share().
 */
#include <linux/slab.h>

#include "qhca_ib.h"
#include <rdma/rdma_counter.h>	/* after ib_verbs.h, which it needs */

static const struct {
	u32 stat;	/* of the port */
	u16 offset;	/* in struct qhca_qpc: a __le64 */
} qp_stats[QHCA_IB_QP_STATS] = {
	{ QHCA_STAT_ROCE_RX_PACKETS, offsetof(struct qhca_qpc, rx_packets) },
	{ QHCA_STAT_ROCE_TX_PACKETS, offsetof(struct qhca_qpc, tx_packets) },
	{ QHCA_STAT_ROCE_DUPLICATE, offsetof(struct qhca_qpc, duplicates) },
	{ QHCA_STAT_ROCE_RNR_NAK_RX, offsetof(struct qhca_qpc, rnr_naks_rx) },
	{ QHCA_STAT_ROCE_SEQ_NAK_RX, offsetof(struct qhca_qpc, seq_naks_rx) },
	{ QHCA_STAT_ROCE_TIMEOUTS, offsetof(struct qhca_qpc, timeouts) },
	{ QHCA_STAT_ROCE_RETRANSMITS, offsetof(struct qhca_qpc, retransmits) },
};

/* a counter; its number in dev->counters is its id */
struct qhca_ib_counter {
	struct list_head qps;	/* of struct qhca_ib_qp_stats */
	u64 value[QHCA_IB_QP_STATS];
};

/* what a bound QP adds */
struct qhca_ib_qp_stats {
	struct list_head list;
	struct qhca_ib_qp *qp;
	struct qhca_ib_counter *counter;
	u64 base[QHCA_IB_QP_STATS];	/* counted already, or before */
};

/* Index of a port's counter in qp_stats; -1: QPs do not have it. */
static int qp_counter_find_stat(u32 stat)
{
	int i;

	for (i = 0; i < QHCA_IB_QP_STATS; i++) {
		if (qp_stats[i].stat == stat)
			return i;
	}
	return -1;
}

bool qhca_ib_qp_has_stat(u32 stat)
{
	return qp_counter_find_stat(stat) >= 0;
}

static int qp_counter_read_qp(struct qhca_ib_qp *qp,
			      u64 values[QHCA_IB_QP_STATS])
{
	struct qhca_qpc qpc;
	int i, err;

	err = qhca_aq_query(to_qdev(qp->ibqp.device)->qdev, QHCA_CMD_QUERY_QP,
			    qp->qpn, &qpc, sizeof(qpc));
	if (err)
		return err;
	for (i = 0; i < QHCA_IB_QP_STATS; i++)
		values[i] = le64_to_cpup((void *)&qpc + qp_stats[i].offset);
	return 0;
}

/*
 * Add what the QP has counted since the last call. The device counts from 0
 * after a reset that the driver did not request, too.
 */
static int qp_counter_fold(struct qhca_ib_dev *dev, struct qhca_ib_qp_stats *s)
{
	u64 now[QHCA_IB_QP_STATS];
	u64 delta;
	int i, err;

	lockdep_assert_held(&dev->counters_lock);
	err = qp_counter_read_qp(s->qp, now);
	if (err)
		return err;
	for (i = 0; i < QHCA_IB_QP_STATS; i++) {
		delta = now[i] >= s->base[i] ? now[i] - s->base[i] : now[i];
		s->counter->value[i] += delta;
		dev->counted[i] += delta;
		s->base[i] = now[i];
	}
	return 0;
}

static int qp_counter_fold_all(struct qhca_ib_dev *dev,
			       struct qhca_ib_counter *counter)
{
	struct qhca_ib_qp_stats *s;
	int err;

	list_for_each_entry(s, &counter->qps, list) {
		err = qp_counter_fold(dev, s);
		if (err)
			return err;
	}
	return 0;
}

/*
 * A QP is about to be reset, and its counters with it. Until
 * qhca_ib_qp_stats_reset_end() they are not read, and the QP is not bound: a
 * value from before the reset cannot be compared with one from after it.
 */
void qhca_ib_qp_stats_reset_begin(struct qhca_ib_qp *qp)
{
	struct qhca_ib_dev *dev = to_qdev(qp->ibqp.device);

	mutex_lock(&dev->counters_lock);
	if (qp->stats)
		qp_counter_fold(dev, qp->stats);
}

/* The device has reset the QP, unless @err. */
void qhca_ib_qp_stats_reset_end(struct qhca_ib_qp *qp, int err)
{
	struct qhca_ib_dev *dev = to_qdev(qp->ibqp.device);

	if (qp->stats && !err)
		memset(qp->stats->base, 0, sizeof(qp->stats->base));
	mutex_unlock(&dev->counters_lock);
}

static struct qhca_ib_counter *qp_counter_new(struct qhca_ib_dev *dev, u32 *id)
{
	struct qhca_ib_counter *c;
	int err;

	c = kzalloc(sizeof(*c), GFP_KERNEL);
	if (!c)
		return ERR_PTR(-ENOMEM);
	INIT_LIST_HEAD(&c->qps);
	err = xa_alloc(&dev->counters, id, c, xa_limit_31b, GFP_KERNEL);
	if (err) {
		kfree(c);
		return ERR_PTR(err);
	}
	return c;
}

#ifdef QHCA_COUNTER_INIT_BY_DRIVER
/* ib_device_ops.counter_init: the core calls it, but there is nothing to do */
void qhca_ib_counter_init(struct rdma_counter *counter)
{
}
#endif

/* ib_device_ops.counter_bind_qp; a new counter gets its number here */
int qhca_ib_counter_bind_qp(struct rdma_counter *counter, struct ib_qp *ibqp
			    QHCA_COUNTER_PORT_PARAM)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_ib_qp_stats *s;
	u32 id = counter->id;
	int err;

	s = kzalloc(sizeof(*s), GFP_KERNEL);
	if (!s)
		return -ENOMEM;
	s->qp = qp;
	mutex_lock(&dev->counters_lock);
	/* the core's check does not exclude another caller */
	if (qp->stats) {
		err = -EBUSY;
		goto err_free;
	}
	err = qp_counter_read_qp(qp, s->base);
	if (err)
		goto err_free;
	s->counter = id ? xa_load(&dev->counters, id) : qp_counter_new(dev,
								       &id);
	if (IS_ERR_OR_NULL(s->counter)) {
		err = s->counter ? PTR_ERR(s->counter) : -EINVAL;
		goto err_free;
	}
	list_add_tail(&s->list, &s->counter->qps);
	qp->stats = s;
	counter->id = id;
	ibqp->counter = counter;
	mutex_unlock(&dev->counters_lock);
	return 0;

err_free:
	mutex_unlock(&dev->counters_lock);
	kfree(s);
	return err;
}

/* ib_device_ops.counter_unbind_qp; the counter keeps its values */
int qhca_ib_counter_unbind_qp(struct ib_qp *ibqp QHCA_COUNTER_PORT_PARAM)
{
	struct qhca_ib_dev *dev = to_qdev(ibqp->device);
	struct qhca_ib_qp *qp = to_qqp(ibqp);
	struct qhca_ib_qp_stats *s;

	mutex_lock(&dev->counters_lock);
	s = qp->stats;
	if (s) {
		/* a dead device reports nothing */
		qp_counter_fold(dev, s);
		list_del(&s->list);
		qp->stats = NULL;
	}
	ibqp->counter = NULL;
	mutex_unlock(&dev->counters_lock);
	kfree(s);
	return 0;
}

/* ib_device_ops.counter_dealloc; no QP is bound */
int qhca_ib_counter_dealloc(struct rdma_counter *counter)
{
	struct qhca_ib_dev *dev = to_qdev(counter->device);

	if (!counter->id)
		return 0;
	mutex_lock(&dev->counters_lock);
	kfree(xa_erase(&dev->counters, counter->id));
	mutex_unlock(&dev->counters_lock);
	return 0;
}

/* ib_device_ops.counter_update_stats */
int qhca_ib_counter_update_stats(struct rdma_counter *counter)
{
	struct qhca_ib_dev *dev = to_qdev(counter->device);
	struct qhca_ib_counter *c;
	int i, n, err = 0;

	mutex_lock(&dev->counters_lock);
	c = xa_load(&dev->counters, counter->id);
	if (c) {
		err = qp_counter_fold_all(dev, c);
		for (i = 0; i < counter->stats->num_counters; i++) {
			n = qp_counter_find_stat(qhca_ib_stat_number(i));
			if (n >= 0)
				counter->stats->value[i] = c->value[n];
		}
	}
	mutex_unlock(&dev->counters_lock);
	return err;
}

/**
 * qhca_ib_counters_share - the part of the port's counters outside all counters
 * @dev: device
 * @values: out: what the device has counted, by QHCA_STAT_*
 * @share: out: the same without the values of counters
 *
 * Return: 0 or an error of the command.
 */
int qhca_ib_counters_share(struct qhca_ib_dev *dev,
			   __le64 values[QHCA_STAT_COUNT],
			   u64 share[QHCA_STAT_COUNT])
{
	struct qhca_ib_counter *c;
	unsigned long id;
	u64 all, counted;
	int i, n, err;

	mutex_lock(&dev->counters_lock);
	/* QPs first: then the port's value is at least their sum */
	xa_for_each(&dev->counters, id, c) {
		err = qp_counter_fold_all(dev, c);
		if (err)
			goto out;
	}
	err = qhca_aq_query(dev->qdev, QHCA_CMD_QUERY_STATS, 0, values,
			    QHCA_STAT_COUNT * sizeof(*values));
	if (err)
		goto out;
	for (i = 0; i < QHCA_STAT_COUNT; i++) {
		all = le64_to_cpu(values[i]);
		n = qp_counter_find_stat(i);
		counted = n >= 0 ? dev->counted[n] : 0;
		/* a multicast frame counts once for each QP that received it */
		share[i] = all > counted ? all - counted : 0;
	}
out:
	mutex_unlock(&dev->counters_lock);
	return err;
}

void qhca_ib_counters_init(struct qhca_ib_dev *dev)
{
	mutex_init(&dev->counters_lock);
	xa_init_flags(&dev->counters, XA_FLAGS_ALLOC1);
}

void qhca_ib_counters_exit(struct qhca_ib_dev *dev)
{
	WARN_ON(!xa_empty(&dev->counters));
	xa_destroy(&dev->counters);
	mutex_destroy(&dev->counters_lock);
}
