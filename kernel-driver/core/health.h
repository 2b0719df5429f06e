/* SPDX-License-Identifier: GPL-2.0 */
/* devlink health, between its files. */
#ifndef QHCA_HEALTH_H
#define QHCA_HEALTH_H

#include <linux/types.h>
#include <linux/workqueue.h>

struct devlink;
struct devlink_fmsg;
struct devlink_health_reporter;
struct qhca_core;

/* the registers that are worth to be seen, in the order of qhca_regs[] */
#define QHCA_REGS_MAX	16

struct qhca_reg_name {
	const char *name;
	u16 offset;
	u8 size;
};

extern const struct qhca_reg_name qhca_regs[];
extern const unsigned int qhca_num_regs;

enum qhca_reporter {
	QHCA_REPORT_DEVICE,	/* it is dead; recover: reset */
	QHCA_REPORT_EQ,		/* an interrupt was lost; recover: take the events */
	QHCA_REPORT_TX,		/* the net_device's queues; recover: new ones */
	QHCA_REPORT_RX,
	QHCA_REPORTERS
};

/**
 * struct qhca_health - health of an adapter
 * @reporter: devlink's
 * @work: tells devlink what is pending, which also recovers
 * @watch: looks from time to time for what nobody would tell
 * @pending: bit per reporter
 * @up: devlink is registered
 * @why: of the last death
 * @deaths: their number
 * @regs: registers right before the reset that follows a death
 */
struct qhca_health {
	struct devlink_health_reporter *reporter[QHCA_REPORTERS];
	struct work_struct work;
	struct delayed_work watch;
	unsigned long pending;
	bool up;
	const char *why;
	u32 deaths;
	u64 regs[QHCA_REGS_MAX];
};

/* health.c */
void qhca_health_setup(struct qhca_core *core);
int qhca_health_init(struct qhca_core *core);
void qhca_health_exit(struct qhca_core *core);
void qhca_health_report(struct qhca_core *core, enum qhca_reporter what);
void qhca_health_well(struct qhca_core *core);
void qhca_health_watch(struct qhca_core *core, bool on);

/* health_show.c */
void qhca_regs_read(struct qhca_core *core, u64 *values);
void qhca_show_device(struct qhca_core *core, struct devlink_fmsg *m);
void qhca_dump_device(struct qhca_core *core, struct devlink_fmsg *m);
void qhca_show_eqs(struct qhca_core *core, struct devlink_fmsg *m, bool all);
void qhca_show_tx(struct qhca_core *core, struct devlink_fmsg *m, bool all);
void qhca_show_rx(struct qhca_core *core, struct devlink_fmsg *m, bool all);

#endif /* QHCA_HEALTH_H */
