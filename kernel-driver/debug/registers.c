// SPDX-License-Identifier: GPL-2.0
/* The registers that debugfs and dumps show. */
#include <linux/io.h>

#include "debug.h"

const struct qhca_debug_reg qhca_debug_regs[] = {
	{ "id", QHCA_REG_ID, 4 },
	{ "version", QHCA_REG_VERSION, 4 },
	{ "features", QHCA_REG_FEATURES, 8 },
	{ "ctrl", QHCA_REG_CTRL, 4 },
	{ "status", QHCA_REG_STATUS, 4 },
	{ "db_shift", QHCA_REG_DB_SHIFT, 4 },
	{ "db_pages", QHCA_REG_DB_PAGES, 4 },
	{ "clock", QHCA_REG_CLOCK, 8 },
	{ "asq_base", QHCA_REG_ASQ_BASE, 8 },
	{ "acq_base", QHCA_REG_ACQ_BASE, 8 },
	{ "aq_shift", QHCA_REG_AQ_SHIFT, 4 },
	{ "aq_ctrl", QHCA_REG_AQ_CTRL, 4 },
	{ "vectors", QHCA_REG_VECTORS, 4 },
};

const unsigned int qhca_debug_num_regs = ARRAY_SIZE(qhca_debug_regs);

static_assert(ARRAY_SIZE(qhca_debug_regs) <= QHCA_DEBUG_REGS_MAX);

/* Read all of qhca_debug_regs[]. Any context. */
void qhca_debug_read_regs(struct qhca_dev *dev, u64 *values)
{
	unsigned int i;

	for (i = 0; i < qhca_debug_num_regs; i++) {
		void __iomem *reg = dev->regs + qhca_debug_regs[i].offset;

		values[i] = qhca_debug_regs[i].size == 8 ? readq(reg)
							 : readl(reg);
	}
}
