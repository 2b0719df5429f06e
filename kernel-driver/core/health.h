/* SPDX-License-Identifier: GPL-2.0 */
/* devlink health of an adapter. */
#ifndef QHCA_HEALTH_H
#define QHCA_HEALTH_H

#include <linux/mutex.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "qhca_core.h"

struct devlink;
struct devlink_health_reporter;
struct qhca_core;

/**
 * struct qhca_health - health of an adapter
 * @reporter: devlink's reporters, by QHCA_REPORT_*
 * @work: sends pending reports to devlink, which also recovers
 * @watch: polls for what no interrupt reports
 * @pending: bit per reporter
 * @lock: excludes qhca_health_fixed() and unregistering devlink
 * @up: devlink is registered
 * @why: reason of the last death
 * @deaths: number of deaths
 */
struct qhca_health {
	struct devlink_health_reporter *reporter[QHCA_REPORTERS_MAX];
	struct work_struct work;
	struct delayed_work watch;
	unsigned long pending;
	struct mutex lock;	/* see above */
	bool up;
	const char *why;
	u32 deaths;
};

void qhca_health_setup(struct qhca_core *core);
int qhca_health_init(struct qhca_core *core);
void qhca_health_exit(struct qhca_core *core);
void qhca_health_renew(struct qhca_core *core);
void qhca_health_well(struct qhca_core *core);
void qhca_health_watch(struct qhca_core *core, bool on);

#endif /* QHCA_HEALTH_H */
