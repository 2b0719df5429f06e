/* SPDX-License-Identifier: GPL-2.0 */
/* Private to this folder. */
#ifndef QHCA_DEBUG_PRIV_H
#define QHCA_DEBUG_PRIV_H

#include <linux/mutex.h>

#include "qhca_core.h"
#include "qhca_debug.h"
#include "layout.h"

struct seq_file;

/* ------------------------------------------------- one adapter: qhca.ko -- */

/* the registers worth showing, in the order of qhca_debug_regs[] */
#define QHCA_DEBUG_REGS_MAX	16

/**
 * struct qhca_debug - debugging state of an adapter
 * @dir: /sys/kernel/debug/qhca/<pci address>, may be an error pointer (debugfs
 *	functions accept that)
 * @layout_lock: protects @layout
 * @layout: the form forced on new buffer tables
 * @last_regs: registers right before the reset that followed the last death
 */
struct qhca_debug {
	struct dentry *dir;
	struct mutex layout_lock;	/* see above */
	struct qhca_layout layout;
	u64 last_regs[QHCA_DEBUG_REGS_MAX];
};

struct qhca_debug_reg {
	const char *name;
	u16 offset;
	u8 size;
};

/* registers.c */
extern const struct qhca_debug_reg qhca_debug_regs[];
extern const unsigned int qhca_debug_num_regs;
void qhca_debug_read_regs(struct qhca_dev *dev, u64 *values);

/* debugfs.c */
struct dentry *qhca_debug_dir(struct qhca_dev *dev);

/* ------------------------------------------------------ buffer tables -- */

/* One field of a buffer table's form. */
struct qhca_debug_field {
	const char *name;
	const char *text;	/* or NULL: a number */
	u64 value;
	bool hex;
	bool secret;		/* an address */
};

#define QHCA_DEBUG_TABLE_FIELDS	9

/* buf_table_show.c */
void qhca_debug_table_fields(const struct qhca_buf_table *t,
			     struct qhca_debug_field *fields);
void qhca_debug_table_line(struct seq_file *m, const struct qhca_buf_table *t);
void qhca_debug_table_entries(struct seq_file *m,
			      const struct qhca_buf_table *t);

#endif /* QHCA_DEBUG_PRIV_H */
