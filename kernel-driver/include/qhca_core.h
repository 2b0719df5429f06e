/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface of the core (PCI function, admin queue, event queues, buffer
 * tables) for the net_device, which is in the same module, and for qhca_ib.ko.
 *
 * Lifetime: qhca_ib binds to the auxiliary device "qhca.ib". Everything here
 * may be used from its probe until its remove returns. When the device dies or
 * is pulled out, commands fail with -EIO at once; the auxiliary device is
 * removed some time later; until then calls are safe.
 */
#ifndef QHCA_CORE_H
#define QHCA_CORE_H

#include <linux/auxiliary_bus.h>
#include <linux/io.h>
#include <linux/notifier.h>
#include <linux/pci.h>
#include <linux/types.h>
#include <rdma/qhca-hw.h>

#include "qhca_buf_table.h"
#include "qhca_ring.h"

/* No io-64-nonatomic here: the device ignores doorbell writes of 4 bytes. */
#ifndef CONFIG_64BIT
#error "qhca needs a 64-bit kernel: a doorbell is one 8-byte store"
#endif

struct devlink_health_reporter_ops;
struct net_device;
struct qhca_debug;

#define QHCA_DRV_NAME		"qhca"

/* struct qhca_dev_caps in CPU byte order; see there */
struct qhca_caps {
	u64 features;
	u8 node_guid[8];
	u64 max_mr_size;
	u64 page_size_cap;
	u32 max_qp;
	u32 max_cq;
	u32 max_srq;
	u32 max_mr;
	u32 max_pd;
	u32 max_uar;
	u32 max_eq;
	u32 max_qp_wr;
	u32 max_cqe;
	u32 max_srq_wr;
	u32 max_sge;
	u32 max_inline;
	u32 max_gid;
	u32 max_eth_queues;
	u32 max_eq_depth;
	u32 max_rd_atomic;
	u32 max_msg_size;
	u32 fw_version;
	u64 dm_size;
};

struct qhca_core;	/* private to core/ */

/**
 * struct qhca_dev - one adapter
 * @pdev: the PCI function; use &pdev->dev for all DMA mapping
 * @netdev: the net_device
 * @core: private
 * @regs: BAR 0
 * @db: doorbell page 0 (the kernel's UAR), an __iomem of one page
 * @db_phys: bus address of BAR 2, for mmap of doorbell pages
 * @dm_phys: bus address of BAR 4, caps.dm_size bytes of device memory
 * @db_shift: log2 of the stride of doorbell pages; at least PAGE_SHIFT, except
 *	on kernels with pages over 64 KiB, which are not supported
 * @num_comp_vectors: completion EQs; comp_vector is 0 .. this - 1
 * @caps: limits from QUERY_DEVICE
 * @debug: state of debug/
 */
struct qhca_dev {
	struct pci_dev *pdev;
	struct net_device *netdev;
	struct qhca_core *core;
	void __iomem *regs;
	void __iomem *db;
	phys_addr_t db_phys;
	phys_addr_t dm_phys;
	u8 db_shift;
	u32 num_comp_vectors;
	struct qhca_caps caps;
	struct qhca_debug *debug;
};

/* for all DMA mapping */
static inline struct device *qhca_dma_dev(const struct qhca_dev *dev)
{
	return &dev->pdev->dev;
}

/* the firmware version as text: "major.minor.patch" */
static inline void qhca_fw_version(const struct qhca_dev *dev, char *text,
				   size_t size)
{
	u32 v = dev->caps.fw_version;

	snprintf(text, size, "%u.%u.%u", v >> 24, (v >> 16) & 0xff, v & 0xffff);
}

/* the auxiliary device; qhca_ib finds it with container_of() */
struct qhca_adev {
	struct auxiliary_device adev;
	struct qhca_dev *dev;
};

#define QHCA_ADEV_NAME_IB	"ib"		/* auxiliary id "qhca.ib" */

static inline struct qhca_dev *qhca_adev_to_dev(struct auxiliary_device *adev)
{
	return container_of(adev, struct qhca_adev, adev)->dev;
}

/* ----------------------------------------------------- admin commands -- */

#define QHCA_AQ_MAX_DATA	2048	/* bytes of input, and of output */

/**
 * struct qhca_aq_req - one admin command
 * @opcode: QHCA_CMD_*
 * @status: out: QHCA_ST_*; valid when qhca_aq_exec() returned other than
 *	-EIO, -EMSGSIZE
 * @obj: in: object number; out: number of the created object, else unchanged
 * @mask: for modify commands
 * @arg: command specific
 * @in: input structure or NULL
 * @out: buffer for the output structure, or NULL; untouched on error
 * @in_len: bytes at @in, at most QHCA_AQ_MAX_DATA
 * @out_len: bytes at @out, at most QHCA_AQ_MAX_DATA
 * @result: out: the completion's result
 */
struct qhca_aq_req {
	u8 opcode;
	u8 status;
	u32 obj;
	u64 mask;
	u64 arg;
	const void *in;
	void *out;
	u32 in_len;
	u32 out_len;
	u64 result;
};

/**
 * qhca_aq_exec - run an admin command and wait for its completion
 * @dev: device
 * @req: the command; also receives the answer
 *
 * Sleeps uninterruptibly.  Any number of callers at once.
 *
 * Return: 0; by the status of the device -EOPNOTSUPP (unknown, unsupported),
 * -EINVAL (bad parameter, state or table), -ENOENT (no such object), -EBUSY,
 * -ENOMEM (no resources), -EFAULT (DMA); -EIO when the device is dead, gone or
 * did not answer, in which case it is declared dead; -EMSGSIZE if a length is
 * too large.
 */
int qhca_aq_exec(struct qhca_dev *dev, struct qhca_aq_req *req);

/**
 * qhca_aq_create_arg - create an object
 * @dev: device
 * @opcode: QHCA_CMD_CREATE_*, QHCA_CMD_ALLOC_*
 * @arg: command specific
 * @in: input structure or NULL
 * @in_len: its bytes
 * @obj: out: number of the new object, at most QHCA_DB_NUM_MASK; for an MR or
 *	memory window its 32-bit key; untouched on error
 *
 * Return: as qhca_aq_exec(). If the device returns an invalid number, it is
 * declared dead, and the result is -EIO.
 */
int qhca_aq_create_arg(struct qhca_dev *dev, u8 opcode, u64 arg, const void *in,
		       u32 in_len, u32 *obj);

static inline int qhca_aq_create(struct qhca_dev *dev, u8 opcode,
				 const void *in, u32 in_len, u32 *obj)
{
	return qhca_aq_create_arg(dev, opcode, 0, in, in_len, obj);
}

/* MODIFY_*, SET_* */
static inline int qhca_aq_modify(struct qhca_dev *dev, u8 opcode, u32 obj,
				 u64 mask, const void *in, u32 in_len)
{
	struct qhca_aq_req req = {
		.opcode = opcode, .obj = obj, .mask = mask,
		.in = in, .in_len = in_len,
	};

	return qhca_aq_exec(dev, &req);
}

/* QUERY_* */
static inline int qhca_aq_query(struct qhca_dev *dev, u8 opcode, u32 obj,
				void *out, u32 out_len)
{
	struct qhca_aq_req req = {
		.opcode = opcode, .obj = obj, .out = out, .out_len = out_len,
	};

	return qhca_aq_exec(dev, &req);
}

/* DESTROY_*, FREE_* */
static inline int qhca_aq_destroy(struct qhca_dev *dev, u8 opcode, u32 obj)
{
	struct qhca_aq_req req = { .opcode = opcode, .obj = obj };

	return qhca_aq_exec(dev, &req);
}

/**
 * qhca_aq_destroy_sure - destroy an object whose memory is freed in any case
 * @dev: device
 * @opcode: QHCA_CMD_DESTROY_*
 * @obj: its number
 *
 * When this returns, the device does no DMA for the object. If it refuses the
 * command, or does not know the object, it is declared dead, which takes the
 * adapter away from all users. Callers that can keep the object and try again
 * later use qhca_aq_destroy(), and qhca_aq_destroyed() for invalid answers.
 */
void qhca_aq_destroy_sure(struct qhca_dev *dev, u8 opcode, u32 obj);

/* The same when the command has already been answered with @err. */
void qhca_aq_destroyed(struct qhca_dev *dev, u8 opcode, u32 obj, int err);

/*
 * True once the device is dead (fatal error, admin timeout) or gone.  It does
 * no more DMA: it has been reset or has left the bus.  So after a destroy
 * command has failed with -EIO, memory may be freed.
 */
bool qhca_dev_dead(struct qhca_dev *dev);

/*
 * Declare the device dead, because it has written invalid data.  @why is a
 * constant.  Any context, also under spinlocks; on return it does no more DMA,
 * unless another caller is declaring it dead.  A work item does the rest.
 */
void qhca_dev_kill(struct qhca_dev *dev, const char *why);

/* The same; sleeps until it is dead, also if another caller declares it so. */
void qhca_dev_kill_sure(struct qhca_dev *dev, const char *why);

/* names of the counters of QUERY_STATS; NULL for unused indexes */
extern const char * const qhca_stat_names[QHCA_STAT_COUNT];

/* ------------------------------------------------------------- events -- */

/*
 * Asynchronous events: the action is the QHCA_EV_* type, the data a struct
 * qhca_eqe * (little-endian, a copy, valid during the call).  Handlers run in a
 * thread, one at a time, may sleep and may run admin commands.  QHCA_EV_CQ is
 * not among them; QHCA_EV_DEVICE_FATAL comes once, also when the driver
 * detected the death.  After unregister no handler runs.
 */
int qhca_event_register(struct qhca_dev *dev, struct notifier_block *nb);
void qhca_event_unregister(struct qhca_dev *dev, struct notifier_block *nb);

/**
 * struct qhca_core_cq - the core's part of a CQ
 * @cqn: its number
 * @comp_vector: 0 .. num_comp_vectors - 1; its EQ is qhca_comp_vector_eqn()
 * @comp: called for each completion event, in hard interrupt context
 *
 * Embed it and use container_of().
 */
struct qhca_core_cq {
	u32 cqn;
	u32 comp_vector;
	void (*comp)(struct qhca_core_cq *cq);
};

/* EQ number for struct qhca_cqc.eqn, and the Linux interrupt number */
u32 qhca_comp_vector_eqn(struct qhca_dev *dev, u32 comp_vector);
int qhca_comp_vector_irq(struct qhca_dev *dev, u32 comp_vector);

/*
 * Register after CREATE_CQ and before the CQ is armed; -ENOMEM, or -EBUSY if the
 * vector has a CQ of this number that does not leave: the previous owner of the
 * number may be about to.  Unregister after DESTROY_CQ; @comp does not run after
 * this returns.  Both sleep.
 */
int qhca_cq_register(struct qhca_dev *dev, struct qhca_core_cq *cq);
void qhca_cq_unregister(struct qhca_dev *dev, struct qhca_core_cq *cq);

/* ---------------------------------------------------------- doorbells -- */

/*
 * Doorbell pages for applications.  *@phys is the bus address to mmap
 * (uncached, 1 << dev->db_shift bytes).  Free after the last mapping is gone.
 */
int qhca_uar_alloc(struct qhca_dev *dev, u32 *uar, phys_addr_t *phys);
void qhca_uar_free(struct qhca_dev *dev, u32 uar);

/*
 * Ring a doorbell of the kernel's page.  @reg: QHCA_DB_*, @flags:
 * QHCA_DB_SOLICITED, QHCA_DB_EQ_ARM.  All earlier stores to memory are ordered
 * before it (by writeq).
 */
static inline void qhca_db_ring(struct qhca_dev *dev, u32 reg, u32 num,
				u64 flags, u32 index)
{
	writeq((num & QHCA_DB_NUM_MASK) | flags |
	       ((u64)index << QHCA_DB_INDEX_SHIFT), dev->db + reg);
}

/* ------------------------------------------- the client, in qhca.ko -- */

/*
 * Reporters of devlink health: a number for each, which takes a dump and
 * recovers.
 */
enum {
	QHCA_REPORT_DEVICE,	/* it is dead; recovery: reset */
	QHCA_REPORT_EQ,		/* interrupt lost; recovery: take the events */
	QHCA_REPORT_CLIENT,	/* the first of the client's */
	QHCA_REPORTERS_MAX = QHCA_REPORT_CLIENT + 2
};

/**
 * struct qhca_reporter - a reporter of the client
 * @ops: devlink's; the private pointer is the struct qhca_dev
 * @message: text of the error
 * @grace: minimum milliseconds between recoveries; newer kernels have it in
 *	@ops
 */
struct qhca_reporter {
	const struct devlink_health_reporter_ops *ops;
	const char *message;
	u64 grace;
};

/**
 * struct qhca_client - the user of the core in this module
 * @reporters: its reporters, numbered from QHCA_REPORT_CLIENT
 * @num_reporters: their number
 * @create: the device works: create what lives until @destroy. 0 or an error
 * @destroy: undo @create, whether the device works or not
 * @pause: stop all use of the device before a reset, until @resume
 * @resume: the device was reset and works. 0 or an error
 * @event: an asynchronous event, before the registered notifiers; in
 *	the thread that takes events
 * @dead: the device is dead
 *
 * All may sleep. @event and @dead may also be called before @create.
 */
struct qhca_client {
	const struct qhca_reporter *reporters;
	unsigned int num_reporters;
	int (*create)(struct qhca_dev *dev);
	void (*destroy)(struct qhca_dev *dev);
	void (*pause)(struct qhca_dev *dev);
	int (*resume)(struct qhca_dev *dev);
	void (*event)(struct qhca_dev *dev, const struct qhca_eqe *eqe);
	void (*dead)(struct qhca_dev *dev);
};

int qhca_core_register(const struct qhca_client *client);
void qhca_core_unregister(void);

/*
 * Check that the device is present and healthy; declares it dead if not. Any
 * context.
 */
bool qhca_dev_check_alive(struct qhca_dev *dev);

void qhca_dev_flush_events(struct qhca_dev *dev);
void qhca_health_report(struct qhca_dev *dev, unsigned int what);
void qhca_health_fixed(struct qhca_dev *dev, unsigned int what,
		       bool (*failed)(struct qhca_dev *dev, unsigned int what));

#endif /* QHCA_CORE_H */
