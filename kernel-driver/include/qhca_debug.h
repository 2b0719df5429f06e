/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hooks of debug/: the debugging aids that core and net call (debugfs,
 * dumps), and both modules (layouts).  The trace points are in qhca_trace.h.
 * With CONFIG_QHCA_DEBUG=n all hooks are empty, and debug/ is not compiled.
 */
#ifndef QHCA_DEBUG_H
#define QHCA_DEBUG_H

#include <linux/kconfig.h>
#include <linux/types.h>

#include "qhca_buf_table.h"

struct devlink_fmsg;
struct devlink_health_reporter;
struct netlink_ext_ack;
struct qhca_dev;

/* For operations that only debug/ implements. */
#define qhca_debug_ptr(op)	(IS_ENABLED(CONFIG_QHCA_DEBUG) ? (op) : NULL)

/* diagnose shows the current state, a dump all that helps to find the cause */
int qhca_debug_device_diagnose(struct devlink_health_reporter *r,
			       struct devlink_fmsg *m,
			       struct netlink_ext_ack *extack);
int qhca_debug_device_dump(struct devlink_health_reporter *r,
			   struct devlink_fmsg *m, void *ctx,
			   struct netlink_ext_ack *extack);
int qhca_debug_eq_diagnose(struct devlink_health_reporter *r,
			   struct devlink_fmsg *m,
			   struct netlink_ext_ack *extack);
int qhca_debug_eq_dump(struct devlink_health_reporter *r,
		       struct devlink_fmsg *m, void *ctx,
		       struct netlink_ext_ack *extack);
int qhca_debug_tx_diagnose(struct devlink_health_reporter *r,
			   struct devlink_fmsg *m,
			   struct netlink_ext_ack *extack);
int qhca_debug_tx_dump(struct devlink_health_reporter *r,
		       struct devlink_fmsg *m, void *ctx,
		       struct netlink_ext_ack *extack);
int qhca_debug_rx_diagnose(struct devlink_health_reporter *r,
			   struct devlink_fmsg *m,
			   struct netlink_ext_ack *extack);
int qhca_debug_rx_dump(struct devlink_health_reporter *r,
		       struct devlink_fmsg *m, void *ctx,
		       struct netlink_ext_ack *extack);

#ifdef CONFIG_QHCA_DEBUG

/* Init and exit of the module qhca.ko. */
void qhca_debug_init(void);
void qhca_debug_exit(void);

/*
 * An adapter was found: called before anything else. 0; -EINVAL if the module
 * parameter layout= is bad; -ENOMEM.
 */
int qhca_debug_create(struct qhca_dev *dev);
void qhca_debug_destroy(struct qhca_dev *dev);

/*
 * It works, and has a net_device: create its files.  Removing them waits for
 * readers.
 */
void qhca_debug_add_files(struct qhca_dev *dev);
void qhca_debug_remove_files(struct qhca_dev *dev);

/* It is dead, and is about to be reset.  Any context. */
void qhca_debug_died(struct qhca_dev *dev);

/*
 * The layout forced for new objects of @scope (QHCA_SCOPE_USER or _KERNEL);
 * form QHCA_LAYOUT_AUTO if none is.
 *
 * Set by module parameter layout= or by debugfs:
 *   echo "FORM [hops=N] [page_shift=N] [table_shift=N] [scope=user|kernel|all]"
 *	> /sys/kernel/debug/qhca/<pci address>/layout
 * FORM: auto, direct, list, flat, tree.  scope is user if not given.
 */
void qhca_debug_layout(struct qhca_dev *dev, u8 scope, struct qhca_layout *l);

#else

static inline void qhca_debug_init(void) {}
static inline void qhca_debug_exit(void) {}

static inline int qhca_debug_create(struct qhca_dev *dev)
{
	return 0;
}

static inline void qhca_debug_destroy(struct qhca_dev *dev) {}
static inline void qhca_debug_add_files(struct qhca_dev *dev) {}
static inline void qhca_debug_remove_files(struct qhca_dev *dev) {}
static inline void qhca_debug_died(struct qhca_dev *dev) {}

static inline void qhca_debug_layout(struct qhca_dev *dev, u8 scope,
				     struct qhca_layout *l)
{
	*l = (struct qhca_layout) { .form = QHCA_LAYOUT_AUTO, .scope = scope };
}

#endif

#endif /* QHCA_DEBUG_H */
