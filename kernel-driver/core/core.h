/* SPDX-License-Identifier: GPL-2.0 */
/* Private to qhca.ko. */
#ifndef QHCA_CORE_PRIV_H
#define QHCA_CORE_PRIV_H

#include <linux/completion.h>
#include <linux/interrupt.h>
#include <linux/mutex.h>
#include <linux/semaphore.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "health.h"
#include "qhca_compat.h"
#include "qhca_core.h"

#define QHCA_DRV_NAME		"qhca"

/* ------------------------------------------------------- admin queue -- */

#define QHCA_AQ_SHIFT		5
#define QHCA_AQ_DEPTH		BIT(QHCA_AQ_SHIFT)

/* One command in flight: its DMA buffers and its answer. */
struct qhca_aq_slot {
	struct completion done;
	void *buf;		/* input, then output, QHCA_AQ_MAX_DATA each */
	dma_addr_t dma;
	struct qhca_aq_cqe cqe;
	u64 posted;		/* when, if somebody traces; else 0 */
	u8 opcode;
	bool pending;		/* posted, no answer yet; under aq.lock */
	int err;		/* -EIO when the device died under it */
};

struct qhca_aq {
	spinlock_t lock;	/* rings, counters, slot states */
	struct semaphore free;	/* counts free slots */
	unsigned long busy;	/* bit per slot */
	u32 prod;
	u32 cons;
	struct qhca_aq_cmd *sq;
	dma_addr_t sq_dma;
	struct qhca_aq_cqe *cq;
	dma_addr_t cq_dma;
	bool use_irq;
	u64 commands;
	u64 late;		/* found by looking, not by the interrupt */
	struct qhca_aq_slot slot[QHCA_AQ_DEPTH];
};

/* ------------------------------------------------------------ events -- */

struct qhca_eq {
	struct qhca_core *core;
	struct qhca_queue_buf buf;
	u32 eqn;
	u32 cons;
	u8 shift;
	bool made;		/* the device knows it */
	bool has_irq;
	bool busy;		/* the asynchronous EQ's thread is at work */
	struct mutex rescue_lock;	/* held while events are taken without an interrupt */
	bool watched;		/* an event waited at the last look ... */
	u32 watched_cons;	/* ... and it was this one; see health.c */
	u16 vector;
	int irq;
	u64 events;
	u64 stray;		/* for CQs nobody has registered */
	u64 lost;		/* events taken without an interrupt */
	char name[40];
};

enum {
	QHCA_F_DEAD,		/* no command, no doorbell has effect any more */
	QHCA_F_KILLED,		/* somebody is making it dead, or has */
	QHCA_F_STARTED,		/* qhca_hw_start() succeeded */
};

struct qhca_core {
	struct qhca_dev dev;
	unsigned long flags;
	struct qhca_aq aq;
	struct mutex start_lock; /* starting, stopping; taken before rtnl */
	struct qhca_eq *eqs;	/* [0] is the asynchronous one */
	u32 num_eqs;
	u32 num_irqs;
	struct xarray cqs;	/* CQN -> struct qhca_core_cq */
	struct blocking_notifier_head events;
	struct work_struct fatal_work;
	struct devlink *devlink;
	struct qhca_health health;
	struct mutex life_lock;	/* all of start and stop; after devlink's */
	bool enabled;		/* pci_enable_device() is to be undone */
	bool off;		/* stopped for a reset or for sleep; under life_lock */
	struct qhca_adev *adev;
	struct mutex layout_lock;	/* protects layout */
	struct qhca_layout layout;
};

static inline struct qhca_core *qhca_to_core(struct qhca_dev *dev)
{
	return dev->core;
}

static inline struct device *qhca_dma_dev(struct qhca_core *core)
{
	return &core->dev.pdev->dev;
}

/* pci.c */
void qhca_kill(struct qhca_core *core, const char *why);
bool qhca_check_alive(struct qhca_core *core);
int qhca_recover(struct qhca_core *core);

/* aq.c */
void qhca_aq_init(struct qhca_core *core);
int qhca_aq_start(struct qhca_core *core);
void qhca_aq_stop(struct qhca_core *core);
void qhca_aq_reap(struct qhca_core *core);
void qhca_aq_abort(struct qhca_core *core);

/* eq.c */
int qhca_irq_init(struct qhca_core *core);
void qhca_irq_free(struct qhca_core *core);
int qhca_eqs_init(struct qhca_core *core);
void qhca_eqs_free(struct qhca_core *core);
bool qhca_eq_waits(struct qhca_eq *eq);
void qhca_eq_rescue(struct qhca_eq *eq);

/* netdev.c */
int qhca_netdev_create(struct qhca_core *core);
void qhca_netdev_destroy(struct qhca_core *core);
void qhca_netdev_pause(struct qhca_core *core);
int qhca_netdev_resume(struct qhca_core *core);
void qhca_netdev_link(struct qhca_core *core);
void qhca_netdev_queue_error(struct qhca_core *core,
			     const struct qhca_eqe *eqe);
void qhca_netdev_dead(struct qhca_core *core);
int qhca_netdev_remake(struct qhca_core *core);

/* stats.c */
extern const char * const qhca_stat_names[QHCA_STAT_COUNT];

/* debugfs.c */
void qhca_debugfs_init(void);
void qhca_debugfs_exit(void);
void qhca_debugfs_add(struct qhca_core *core);
void qhca_debugfs_remove(struct qhca_core *core);

#endif /* QHCA_CORE_PRIV_H */
