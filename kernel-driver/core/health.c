// SPDX-License-Identifier: GPL-2.0
/*
 * devlink health: reports errors of the adapter, and recovers from them.
 *
 * An error sets a bit, in any context; a work item reports it to devlink, which
 * takes a dump and recovers, as configured by the administrator. Recovery takes
 * devlink's lock first, then life_lock, then rtnl: do not wait for the work
 * item while holding one of these.
 */
#include <linux/interrupt.h>
#include <net/devlink.h>

#include "core.h"
#include "qhca_debug.h"

/* a device that dies again this soon after a recovery stays dead */
#define DEVICE_GRACE_MS	60000
#define WATCH_INTERVAL	(2 * HZ)

/* devlink's private part of an instance */
struct qhca_devlink {
	struct qhca_core *core;
};

static struct qhca_core *health_core(struct devlink_health_reporter *r)
{
	return qhca_to_core(devlink_health_reporter_priv(r));
}

/**
 * qhca_health_report - report an error to devlink health
 * @dev: adapter
 * @what: QHCA_REPORT_*, or one of the client's
 *
 * Any context. devlink is notified soon, or once it is registered; repeated
 * reports in between are merged into one.
 */
void qhca_health_report(struct qhca_dev *dev, unsigned int what)
{
	struct qhca_core *core = qhca_to_core(dev);

	set_bit(what, &core->health.pending);
	/* does nothing while it is disabled */
	queue_work(system_unbound_wq, &core->health.work);
}

static const char *health_message(struct qhca_core *core, unsigned int what)
{
	switch (what) {
	case QHCA_REPORT_DEVICE:
		return core->health.why;
	case QHCA_REPORT_EQ:
		return "an interrupt was lost";
	default:
		return core->client->reporters[what -
					       QHCA_REPORT_CLIENT].message;
	}
}

static void health_work(struct work_struct *work)
{
	struct qhca_health *h = container_of(work, struct qhca_health, work);
	struct qhca_core *core = container_of(h, struct qhca_core, health);
	unsigned int i;

	for (i = 0; i < QHCA_REPORTERS_MAX; i++) {
		if (!h->reporter[i] || !test_and_clear_bit(i, &h->pending))
			continue;
		/* a reset may have fixed it already */
		if (i != QHCA_REPORT_DEVICE || qhca_dev_dead(&core->dev))
			devlink_health_report(h->reporter[i],
					      health_message(core, i), NULL);
	}
}

static void health_clear(struct qhca_health *h, unsigned int what)
{
	clear_bit(what, &h->pending);
	if (h->reporter[what])
		devlink_health_reporter_state_update(h->reporter[what],
						     DEVLINK_HEALTH_REPORTER_STATE_HEALTHY);
}

/*
 * Clear the error of what works again; @failed: has it failed meanwhile? Then
 * its report may be what was cleared.
 */
static void health_clear_fixed(struct qhca_core *core, unsigned int what,
			       bool (*failed)(struct qhca_dev *dev,
					      unsigned int what))
{
	health_clear(&core->health, what);
	smp_mb();	/* clear pending before checking */
	if (failed(&core->dev, what))
		qhca_health_report(&core->dev, what);
}

/**
 * qhca_health_renew - the device's queues have been destroyed
 * @core: adapter
 *
 * Clears the errors of what will be created anew. Afterwards it would be too
 * late: the new ones may have errors.
 */
void qhca_health_renew(struct qhca_core *core)
{
	struct qhca_health *h = &core->health;
	unsigned int i;

	for (i = 0; h->up && i < QHCA_REPORTERS_MAX; i++) {
		if (i != QHCA_REPORT_DEVICE)
			health_clear(h, i);
	}
}

static bool health_device_failed(struct qhca_dev *dev, unsigned int what)
{
	return qhca_dev_dead(dev);
}

/**
 * qhca_health_well - the device has been restarted
 * @core: adapter
 *
 * Clears the error for which it was restarted.
 */
void qhca_health_well(struct qhca_core *core)
{
	if (core->health.up)
		health_clear_fixed(core, QHCA_REPORT_DEVICE,
				   health_device_failed);
}

/**
 * qhca_health_fixed - what may have been reported was created anew, and works
 * @dev: adapter
 * @what: one of the client's reporters
 * @failed: has the new one failed already? It sets what this reads before it
 *	calls qhca_health_report()
 *
 * Clears its error: with one, devlink would not recover from the next. Sleeps.
 */
void qhca_health_fixed(struct qhca_dev *dev, unsigned int what,
		       bool (*failed)(struct qhca_dev *dev, unsigned int what))
{
	struct qhca_core *core = qhca_to_core(dev);

	if (failed(dev, what))
		return;
	mutex_lock(&core->health.lock);
	if (core->health.up)
		health_clear_fixed(core, what, failed);
	mutex_unlock(&core->health.lock);
}

/* ------------------------------------------------------------- watch ----- */

/*
 * An interrupt was lost if the same event was the oldest one in the EQ at the
 * last check, too. Does not apply while the asynchronous EQ's thread is
 * running.
 */
static bool health_eq_hangs(struct qhca_eq *eq)
{
	u32 cons = READ_ONCE(eq->cons);
	bool waits = !READ_ONCE(eq->busy) && qhca_eq_waits(eq);
	bool hangs = waits && eq->watched && eq->watched_cons == cons;

	eq->watched = waits;
	eq->watched_cons = cons;
	return hangs;
}

/* Check for what no interrupt reports: a failed device, a lost interrupt. */
static void health_watch(struct work_struct *work)
{
	struct qhca_health *h = container_of(to_delayed_work(work),
					     struct qhca_health, watch);
	struct qhca_core *core = container_of(h, struct qhca_core, health);
	u32 i;

	/* qhca_device_stop() stops this before it destroys the EQs */
	if (!qhca_dev_check_alive(&core->dev))
		return;
	for (i = 0; i < core->num_eqs; i++) {
		if (health_eq_hangs(&core->eqs[i])) {
			qhca_health_report(&core->dev, QHCA_REPORT_EQ);
			break;
		}
	}
	queue_delayed_work(system_power_efficient_wq, &h->watch,
			   WATCH_INTERVAL);
}

/* Start or stop the watch; after stopping, it no longer runs. The EQs exist. */
void qhca_health_watch(struct qhca_core *core, bool on)
{
	struct qhca_health *h = &core->health;

	if (on)
		queue_delayed_work(system_power_efficient_wq, &h->watch,
				   WATCH_INTERVAL);
	else
		cancel_delayed_work_sync(&h->watch);
}

/* ------------------------------------------------------------- reporters -- */

static int health_device_recover(struct devlink_health_reporter *r, void *ctx,
				 struct netlink_ext_ack *extack)
{
	int err = qhca_recover(health_core(r));

	if (err == -EBUSY)
		NL_SET_ERR_MSG_MOD(extack,
				   "a reset or system sleep is under way");
	else if (err == -ENODEV)
		NL_SET_ERR_MSG_MOD(extack, "registers do not answer");
	else if (err)
		NL_SET_ERR_MSG_MOD(extack, "the device does not start again");
	return err;
}

static int health_device_test(struct devlink_health_reporter *r,
			      struct netlink_ext_ack *extack)
{
	qhca_kill(health_core(r), "test by devlink");
	return 0;
}

static const struct devlink_health_reporter_ops health_device_ops = {
	.name = "device",
	.recover = health_device_recover,
	.diagnose = qhca_debug_ptr(qhca_debug_device_diagnose),
	.dump = qhca_debug_ptr(qhca_debug_device_dump),
	.test = health_device_test,
	QHCA_HEALTH_GRACE(DEVICE_GRACE_MS)
};

/* Take the pending events, as the interrupt handler would have done. */
static int health_eq_recover(struct devlink_health_reporter *r, void *ctx,
			     struct netlink_ext_ack *extack)
{
	struct qhca_core *core = health_core(r);
	u32 i;

	mutex_lock(&core->start_lock);
	for (i = 0; i < core->num_eqs; i++)
		qhca_eq_rescue(&core->eqs[i]);
	mutex_unlock(&core->start_lock);
	return 0;
}

static int health_eq_test(struct devlink_health_reporter *r,
			  struct netlink_ext_ack *extack)
{
	qhca_health_report(devlink_health_reporter_priv(r), QHCA_REPORT_EQ);
	return 0;
}

static const struct devlink_health_reporter_ops health_eq_ops = {
	.name = "eq",
	.recover = health_eq_recover,
	.diagnose = qhca_debug_ptr(qhca_debug_eq_diagnose),
	.dump = qhca_debug_ptr(qhca_debug_eq_dump),
	.test = health_eq_test,
};

/* ------------------------------------------------------------- instance -- */

static int health_info_get(struct devlink *devlink,
			   struct devlink_info_req *req,
			   struct netlink_ext_ack *extack)
{
	struct qhca_devlink *priv = devlink_priv(devlink);
	char text[32];

	qhca_fw_version(&priv->core->dev, text, sizeof(text));
	return devlink_info_version_running_put(req,
						DEVLINK_INFO_VERSION_GENERIC_FW,
						text);
}

static const struct devlink_ops devlink_ops = {
	.info_get = health_info_get,
};

static void health_destroy_reporters(struct qhca_health *h)
{
	int i;

	for (i = 0; i < QHCA_REPORTERS_MAX; i++) {
		if (h->reporter[i])
			devlink_health_reporter_destroy(h->reporter[i]);
		h->reporter[i] = NULL;
	}
}

static int health_create_reporter(struct qhca_core *core, unsigned int what,
				  const struct devlink_health_reporter_ops *ops,
				  u64 grace)
{
	struct devlink_health_reporter *r;

	r = qhca_health_create(core->devlink, ops, grace, &core->dev);
	if (IS_ERR(r))
		return PTR_ERR(r);
	core->health.reporter[what] = r;
	return 0;
}

static int health_create_reporters(struct qhca_core *core)
{
	const struct qhca_client *client = core->client;
	unsigned int i;
	int err;

	err = health_create_reporter(core, QHCA_REPORT_DEVICE,
				     &health_device_ops, DEVICE_GRACE_MS);
	if (!err)
		err = health_create_reporter(core, QHCA_REPORT_EQ,
					     &health_eq_ops, 0);
	for (i = 0; !err && i < client->num_reporters; i++)
		err = health_create_reporter(core, QHCA_REPORT_CLIENT + i,
					     client->reporters[i].ops,
					     client->reporters[i].grace);
	if (err)
		health_destroy_reporters(&core->health);
	return err;
}

/* Prepare for reports; devlink gets none before qhca_health_init(). */
void qhca_health_setup(struct qhca_core *core)
{
	struct qhca_health *h = &core->health;

	mutex_init(&h->lock);
	INIT_WORK(&h->work, health_work);
	disable_work(&h->work);
	INIT_DELAYED_WORK(&h->watch, health_watch);
}

/**
 * qhca_health_init - register with devlink
 * @core: adapter; it works
 *
 * Return: 0 or an error.
 */
int qhca_health_init(struct qhca_core *core)
{
	struct qhca_health *h = &core->health;
	struct qhca_devlink *priv;
	int err;

	core->devlink = devlink_alloc(&devlink_ops, sizeof(*priv),
				      qhca_dma_dev(&core->dev));
	if (!core->devlink)
		return -ENOMEM;
	priv = devlink_priv(core->devlink);
	priv->core = core;
	err = health_create_reporters(core);
	if (err) {
		devlink_free(core->devlink);
		return err;
	}
	devlink_register(core->devlink);
	mutex_lock(&h->lock);
	h->up = true;
	mutex_unlock(&h->lock);
	enable_work(&h->work);
	if (h->pending)
		queue_work(system_unbound_wq, &h->work);
	return 0;
}

/* Undo qhca_health_init(). No recovery runs after it returns. */
void qhca_health_exit(struct qhca_core *core)
{
	struct qhca_health *h = &core->health;

	disable_work_sync(&h->work);
	mutex_lock(&h->lock);
	h->up = false;
	mutex_unlock(&h->lock);
	devlink_unregister(core->devlink);
	health_destroy_reporters(h);
	devlink_free(core->devlink);
	core->devlink = NULL;
}
