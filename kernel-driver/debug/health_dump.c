// SPDX-License-Identifier: GPL-2.0
/*
 * Output of devlink health: "diagnose" shows the current state, a dump has
 * everything that helps to find the cause.
 */
#include <net/devlink.h>

#include "../core/core.h"
#include "../net/netdev.h"
#include "debug.h"

static void dump_hex(struct devlink_fmsg *m, const char *name, u64 value)
{
	char text[24];

	snprintf(text, sizeof(text), "%#llx", value);
	devlink_fmsg_string_pair_put(m, name, text);
}

static void dump_regs(struct devlink_fmsg *m, const char *name,
		      const u64 *values)
{
	unsigned int i;

	devlink_fmsg_pair_nest_start(m, name);
	devlink_fmsg_obj_nest_start(m);
	for (i = 0; i < qhca_debug_num_regs; i++)
		dump_hex(m, qhca_debug_regs[i].name, values[i]);
	devlink_fmsg_obj_nest_end(m);
	devlink_fmsg_pair_nest_end(m);
}

/* ---------------------------------------------------------------- device -- */

static const char *dump_fatal_name(u32 status)
{
	if (!(status & QHCA_STATUS_FATAL))
		return "none";
	switch ((status & QHCA_STATUS_FATAL_MASK) >> QHCA_STATUS_FATAL_SHIFT) {
	case QHCA_FATAL_AQ_DMA:
		return "an admin ring could not be accessed";
	case QHCA_FATAL_AQ_INDEX:
		return "admin doorbell beyond the ring";
	case QHCA_FATAL_AQ_CONFIG:
		return "enabled with bad settings";
	case QHCA_FATAL_EQ:
		return "an event ring could not be written";
	default:
		return "unknown";
	}
}

static const char *dump_state_name(struct qhca_core *core)
{
	if (qhca_dev_dead(&core->dev))
		return test_bit(QHCA_F_STARTED, &core->flags) ? "dead"
							      : "stopped";
	return "works";
}

static void dump_fatal(struct devlink_fmsg *m, const u64 *regs)
{
	unsigned int i;

	for (i = 0; i < qhca_debug_num_regs; i++) {
		if (qhca_debug_regs[i].offset == QHCA_REG_STATUS)
			devlink_fmsg_string_pair_put(m, "fatal",
						     dump_fatal_name(regs[i]));
	}
}

static void dump_device_state(struct qhca_core *core, struct devlink_fmsg *m)
{
	const struct qhca_health *h = &core->health;
	u32 status = readl(core->dev.regs + QHCA_REG_STATUS);

	devlink_fmsg_string_pair_put(m, "state", dump_state_name(core));
	dump_hex(m, "status", status);
	devlink_fmsg_bool_pair_put(m, "link", status & QHCA_STATUS_LINK);
	devlink_fmsg_u32_pair_put(m, "deaths", h->deaths);
	if (h->deaths) {
		devlink_fmsg_string_pair_put(m, "last death", h->why);
		dump_fatal(m, core->dev.debug->last_regs);
	}
	devlink_fmsg_u64_pair_put(m, "commands", core->aq.commands);
	devlink_fmsg_u64_pair_put(m, "late answers", core->aq.late);
}

/* The rings as they are in memory; a dead device no longer writes to them. */
static void dump_aq(struct qhca_core *core, struct devlink_fmsg *m)
{
	struct qhca_aq_cmd *sq = kcalloc(QHCA_AQ_DEPTH, sizeof(*sq),
					 GFP_KERNEL);
	struct qhca_aq_cqe *cq = kcalloc(QHCA_AQ_DEPTH, sizeof(*cq),
					 GFP_KERNEL);
	struct qhca_aq *aq = &core->aq;
	u32 prod = 0, cons = 0, i, n = 0;

	if (!sq || !cq)
		goto out;
	spin_lock_irq(&aq->lock);
	if (aq->sq && aq->cq) {
		memcpy(sq, aq->sq, QHCA_AQ_DEPTH * sizeof(*sq));
		memcpy(cq, aq->cq, QHCA_AQ_DEPTH * sizeof(*cq));
		prod = aq->prod;
		cons = aq->cons;
		n = min_t(u32, prod, QHCA_AQ_DEPTH);
	}
	spin_unlock_irq(&aq->lock);

	devlink_fmsg_pair_nest_start(m, "aq");
	devlink_fmsg_obj_nest_start(m);
	devlink_fmsg_u32_pair_put(m, "prod", prod);
	devlink_fmsg_u32_pair_put(m, "cons", cons);
	devlink_fmsg_arr_pair_nest_start(m, "commands");
	for (i = prod - n; i != prod; i++) {
		const struct qhca_aq_cmd *c = &sq[i & (QHCA_AQ_DEPTH - 1)];

		devlink_fmsg_obj_nest_start(m);
		devlink_fmsg_u32_pair_put(m, "index", i);
		devlink_fmsg_u32_pair_put(m, "ticket", le16_to_cpu(c->cmd_id));
		dump_hex(m, "opcode", c->opcode);
		dump_hex(m, "obj", le32_to_cpu(c->obj));
		devlink_fmsg_obj_nest_end(m);
	}
	devlink_fmsg_arr_pair_nest_end(m);
	devlink_fmsg_arr_pair_nest_start(m, "answers");
	for (i = cons - min(cons, n); i != cons; i++) {
		const struct qhca_aq_cqe *c = &cq[i & (QHCA_AQ_DEPTH - 1)];

		devlink_fmsg_obj_nest_start(m);
		devlink_fmsg_u32_pair_put(m, "index", i);
		devlink_fmsg_u32_pair_put(m, "ticket", le16_to_cpu(c->cmd_id));
		devlink_fmsg_u32_pair_put(m, "status", c->status);
		dump_hex(m, "obj", le32_to_cpu(c->obj));
		dump_hex(m, "result", le64_to_cpu(c->result));
		devlink_fmsg_obj_nest_end(m);
	}
	devlink_fmsg_arr_pair_nest_end(m);
	devlink_fmsg_obj_nest_end(m);
	devlink_fmsg_pair_nest_end(m);
out:
	kfree(cq);
	kfree(sq);
}

static void dump_stats(struct qhca_core *core, struct devlink_fmsg *m)
{
	__le64 hw[QHCA_STAT_COUNT];
	int i;

	/* not from a dead device */
	if (qhca_aq_query(&core->dev, QHCA_CMD_QUERY_STATS, 0, hw, sizeof(hw)))
		return;
	devlink_fmsg_pair_nest_start(m, "statistics");
	devlink_fmsg_obj_nest_start(m);
	for (i = 0; i < QHCA_STAT_COUNT; i++) {
		if (qhca_stat_names[i])
			devlink_fmsg_u64_pair_put(m, qhca_stat_names[i],
						  le64_to_cpu(hw[i]));
	}
	devlink_fmsg_obj_nest_end(m);
	devlink_fmsg_pair_nest_end(m);
}

/* ------------------------------------------------------------------- EQs -- */

static void dump_table(struct devlink_fmsg *m, const struct qhca_buf_table *t)
{
	struct qhca_debug_field f[QHCA_DEBUG_TABLE_FIELDS];
	unsigned int i;

	qhca_debug_table_fields(t, f);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		if (f[i].text)
			devlink_fmsg_string_pair_put(m, f[i].name, f[i].text);
		else if (f[i].hex)
			dump_hex(m, f[i].name, f[i].value);
		else
			devlink_fmsg_u64_pair_put(m, f[i].name, f[i].value);
	}
}

static void dump_eq(struct qhca_core *core, struct qhca_eq *eq,
		    struct devlink_fmsg *m, bool all)
{
	struct qhca_eqc eqc;

	devlink_fmsg_obj_nest_start(m);
	devlink_fmsg_u32_pair_put(m, "eqn", eq->eqn);
	devlink_fmsg_u32_pair_put(m, "vector", eq->vector);
	devlink_fmsg_u32_pair_put(m, "irq", eq->irq);
	devlink_fmsg_u32_pair_put(m, "depth", BIT(eq->shift));
	devlink_fmsg_u32_pair_put(m, "cons", READ_ONCE(eq->cons));
	devlink_fmsg_bool_pair_put(m, "waiting", qhca_eq_waits(eq));
	devlink_fmsg_u64_pair_put(m, "events", eq->events);
	devlink_fmsg_u64_pair_put(m, "stray", eq->stray);
	devlink_fmsg_u64_pair_put(m, "lost interrupts", eq->lost);
	if (!qhca_aq_query(&core->dev, QHCA_CMD_QUERY_EQ, eq->eqn, &eqc,
			   sizeof(eqc))) {
		devlink_fmsg_u32_pair_put(m, "device prod",
					  le32_to_cpu(eqc.prod));
		devlink_fmsg_u32_pair_put(m, "device cons",
					  le32_to_cpu(eqc.cons));
		/* with a record: as the device will read it */
		devlink_fmsg_bool_pair_put(m, "armed", eq->rec ?
					   READ_ONCE(eq->rec->index) ==
					   eqc.prod : eqc.armed);
		devlink_fmsg_bool_pair_put(m, "record", eq->rec);
	}
	if (all)
		dump_table(m, &eq->buf.table);
	devlink_fmsg_obj_nest_end(m);
}

/* @all: also show where their memory is */
static void dump_eqs(struct qhca_core *core, struct devlink_fmsg *m, bool all)
{
	u32 i;

	mutex_lock(&core->start_lock);
	devlink_fmsg_arr_pair_nest_start(m, "eqs");
	for (i = 0; i < core->num_eqs; i++)
		dump_eq(core, &core->eqs[i], m, all);
	devlink_fmsg_arr_pair_nest_end(m);
	mutex_unlock(&core->start_lock);
}

/* -------------------------------------------------- Ethernet queues ------ */

static void dump_net_cq(struct devlink_fmsg *m, const struct qhca_net_cq *cq,
			bool all)
{
	devlink_fmsg_pair_nest_start(m, "cq");
	devlink_fmsg_obj_nest_start(m);
	devlink_fmsg_u32_pair_put(m, "cqn", cq->cq.cqn);
	devlink_fmsg_u32_pair_put(m, "depth", BIT(cq->shift));
	devlink_fmsg_u32_pair_put(m, "cons", READ_ONCE(cq->cons));
	if (all)
		dump_table(m, &cq->buf.table);
	devlink_fmsg_obj_nest_end(m);
	devlink_fmsg_pair_nest_end(m);
}

static void dump_tx_queue(struct devlink_fmsg *m, const struct qhca_tx_queue *q,
			  bool all)
{
	devlink_fmsg_obj_nest_start(m);
	devlink_fmsg_u32_pair_put(m, "index", q->index);
	devlink_fmsg_u32_pair_put(m, "queue", q->num);
	devlink_fmsg_u32_pair_put(m, "depth", BIT(q->shift));
	devlink_fmsg_u32_pair_put(m, "prod", READ_ONCE(q->prod));
	devlink_fmsg_u32_pair_put(m, "rung", READ_ONCE(q->rung));
	devlink_fmsg_u32_pair_put(m, "cons", READ_ONCE(q->cons));
	devlink_fmsg_bool_pair_put(m, "stopped",
				   netif_tx_queue_stopped(q->txq));
	devlink_fmsg_u64_pair_put(m, "busy", u64_stats_read(&q->stats->stop));
	if (all)
		dump_table(m, &q->buf.table);
	dump_net_cq(m, &q->cq, all);
	devlink_fmsg_obj_nest_end(m);
}

static void dump_rx_queue(struct devlink_fmsg *m, const struct qhca_rx_queue *q,
			  bool all)
{
	devlink_fmsg_obj_nest_start(m);
	devlink_fmsg_u32_pair_put(m, "index", q->index);
	devlink_fmsg_u32_pair_put(m, "queue", q->ch->rqn);
	devlink_fmsg_u32_pair_put(m, "depth", BIT(q->shift));
	devlink_fmsg_u32_pair_put(m, "prod", READ_ONCE(q->prod));
	devlink_fmsg_u32_pair_put(m, "cons", READ_ONCE(q->cons));
	devlink_fmsg_u64_pair_put(m, "no memory",
				  u64_stats_read(&q->stats->alloc_failed));
	if (all)
		dump_table(m, &q->buf.table);
	dump_net_cq(m, &q->cq, all);
	devlink_fmsg_obj_nest_end(m);
}

/* @all: also show where their memory is */
static void dump_net(struct qhca_core *core, struct devlink_fmsg *m, bool tx,
		     bool all)
{
	struct qhca_netdev *priv = netdev_priv(core->dev.netdev);
	u32 i;

	qhca_netdev_lock(priv->netdev);
	devlink_fmsg_bool_pair_put(m, "up", priv->up);
	devlink_fmsg_arr_pair_nest_start(m, "queues");
	for (i = 0; priv->up && i < priv->num_ch; i++) {
		if (tx)
			dump_tx_queue(m, priv->ch[i].tx, all);
		else
			dump_rx_queue(m, priv->ch[i].rx, all);
	}
	devlink_fmsg_arr_pair_nest_end(m);
	qhca_netdev_unlock(priv->netdev);
}

/* ------------------------------------------------------ for devlink ------ */

static void dump_device(struct qhca_core *core, struct devlink_fmsg *m)
{
	u64 regs[QHCA_DEBUG_REGS_MAX];

	dump_device_state(core, m);
	qhca_debug_read_regs(&core->dev, regs);
	dump_regs(m, "registers", regs);
	if (core->health.deaths)
		dump_regs(m, "registers at the last death",
			  core->dev.debug->last_regs);
	dump_aq(core, m);
	dump_eqs(core, m, true);
	dump_stats(core, m);
}

static struct qhca_core *dump_core(struct devlink_health_reporter *r)
{
	return qhca_to_core(devlink_health_reporter_priv(r));
}

int qhca_debug_device_diagnose(struct devlink_health_reporter *r,
			       struct devlink_fmsg *m,
			       struct netlink_ext_ack *extack)
{
	dump_device_state(dump_core(r), m);
	return 0;
}

int qhca_debug_device_dump(struct devlink_health_reporter *r,
			   struct devlink_fmsg *m, void *ctx,
			   struct netlink_ext_ack *extack)
{
	dump_device(dump_core(r), m);
	return 0;
}

int qhca_debug_eq_diagnose(struct devlink_health_reporter *r,
			   struct devlink_fmsg *m,
			   struct netlink_ext_ack *extack)
{
	dump_eqs(dump_core(r), m, false);
	return 0;
}

int qhca_debug_eq_dump(struct devlink_health_reporter *r,
		       struct devlink_fmsg *m, void *ctx,
		       struct netlink_ext_ack *extack)
{
	dump_eqs(dump_core(r), m, true);
	return 0;
}

int qhca_debug_tx_diagnose(struct devlink_health_reporter *r,
			   struct devlink_fmsg *m,
			   struct netlink_ext_ack *extack)
{
	dump_net(dump_core(r), m, true, false);
	return 0;
}

int qhca_debug_tx_dump(struct devlink_health_reporter *r,
		       struct devlink_fmsg *m, void *ctx,
		       struct netlink_ext_ack *extack)
{
	dump_net(dump_core(r), m, true, true);
	return 0;
}

int qhca_debug_rx_diagnose(struct devlink_health_reporter *r,
			   struct devlink_fmsg *m,
			   struct netlink_ext_ack *extack)
{
	dump_net(dump_core(r), m, false, false);
	return 0;
}

int qhca_debug_rx_dump(struct devlink_health_reporter *r,
		       struct devlink_fmsg *m, void *ctx,
		       struct netlink_ext_ack *extack)
{
	dump_net(dump_core(r), m, false, true);
	return 0;
}
