/* SPDX-License-Identifier: GPL-2.0 */
/* Private to this folder, and to debug/. */
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

/* ------------------------------------------------------- admin queue -- */

#define QHCA_AQ_SHIFT		5
#define QHCA_AQ_DEPTH		BIT(QHCA_AQ_SHIFT)

/* One command in flight: its DMA buffers and its answer. */
struct qhca_aq_slot {
	struct completion done;
	void *buf;		/* input, then output, QHCA_AQ_MAX_DATA each */
	dma_addr_t dma;
	struct qhca_aq_cqe cqe;
	u64 posted;		/* time of posting if tracing is on; else 0 */
	u8 opcode;
	bool pending;		/* posted, no answer yet; under aq.lock */
	int err;		/* -EIO if the device died meanwhile */
};

struct qhca_aq {
	spinlock_t lock;	/* rings, counters, slot states */
	struct semaphore free;	/* counts free slots */
	unsigned long busy;	/* bit per slot */
	u32 prod;
	u32 cons;
	struct mutex reg_lock;	/* stores to its registers; taken before lock */
	u32 rung;		/* last index that the device got; under reg_lock */
	struct qhca_aq_cmd *sq;
	dma_addr_t sq_dma;
	struct qhca_aq_cqe *cq;
	dma_addr_t cq_dma;
	bool use_irq;		/* there is an interrupt; under reg_lock */
	u32 waiters;		/* how many wait for it; under reg_lock */
	unsigned long waited;	/* jiffies, see aq_waited(); under reg_lock */
	unsigned long waited_at;	/* when that was updated */
	u64 commands;
	u64 late;		/* found by polling, not by the interrupt */
	struct qhca_aq_slot slot[QHCA_AQ_DEPTH];
};

/* ------------------------------------------------------------ events -- */

struct qhca_eq {
	struct qhca_core *core;
	struct qhca_queue_buf buf;
	struct qhca_dbrec *rec;	/* for the consumer index; NULL: by doorbell */
	u32 eqn;
	u32 cons;
	u8 shift;
	bool made;		/* the device knows it */
	bool has_irq;
	bool busy;		/* the asynchronous EQ's thread is running */
	struct mutex rescue_lock;	/* held while events are taken without an interrupt */
	bool watched;		/* an event was pending at the last check ... */
	u32 watched_cons;	/* ... and it was this one; see health.c */
	u16 vector;
	int irq;
	u64 events;
	u64 stray;		/* for CQs that are not registered */
	u64 lost;		/* events taken without an interrupt */
	char name[40];
};

enum {
	QHCA_F_DEAD,		/* commands and doorbells have no effect */
	QHCA_F_KILLED,		/* being declared dead, or declared */
	QHCA_F_STARTED,		/* qhca_hw_start() succeeded */
};

struct qhca_core {
	struct qhca_dev dev;
	unsigned long flags;
	struct qhca_aq aq;
	struct mutex start_lock; /* starting, stopping; taken before rtnl */
	struct qhca_eq *eqs;	/* [0] is the asynchronous one */
	void *eq_recs;		/* their records; NULL: they have none */
	dma_addr_t eq_recs_dma;
	size_t eq_recs_len;
	u32 num_eqs;
	u32 num_irqs;
	struct xarray cqs;	/* CQN -> struct qhca_core_cq */
	struct blocking_notifier_head events;
	struct work_struct fatal_work;
	struct devlink *devlink;
	const struct qhca_client *client;	/* the net_device */
	struct qhca_health health;
	struct mutex life_lock;	/* all of start and stop; after devlink's */
	bool enabled;		/* pci_enable_device() is to be undone */
	bool off;		/* stopped for a reset or for sleep; under life_lock */
	struct qhca_adev *adev;
};

static inline struct qhca_core *qhca_to_core(struct qhca_dev *dev)
{
	return dev->core;
}

/* device.c */
void qhca_kill(struct qhca_core *core, const char *why);
int qhca_recover(struct qhca_core *core);
int qhca_device_start(struct qhca_core *core);
void qhca_device_stop(struct qhca_core *core);
void qhca_device_quiesce(struct qhca_core *core);
int qhca_device_wake(struct qhca_core *core);
void qhca_device_fatal_work(struct work_struct *work);

/* bar.c */
int qhca_map_bars(struct qhca_core *core);
void qhca_unmap_bars(struct qhca_core *core);

/* auxiliary.c */
int qhca_adev_add(struct qhca_core *core);
void qhca_adev_del(struct qhca_core *core);

/* admin_queue.c */
void qhca_aq_init(struct qhca_core *core);
int qhca_aq_start(struct qhca_core *core);
void qhca_aq_stop(struct qhca_core *core);
void qhca_aq_reap(struct qhca_core *core);
void qhca_aq_use_irq(struct qhca_core *core, bool use);
void qhca_aq_abort(struct qhca_core *core);

/* eq.c */
int qhca_irq_init(struct qhca_core *core);
void qhca_irq_free(struct qhca_core *core);
int qhca_eqs_init(struct qhca_core *core);
void qhca_eqs_free(struct qhca_core *core);
bool qhca_eq_waits(struct qhca_eq *eq);
void qhca_eq_rescue(struct qhca_eq *eq);

#endif /* QHCA_CORE_PRIV_H */
