/* SPDX-License-Identifier: GPL-2.0 */
/* Private to this folder: debugging state of an ib_device. */
#ifndef QHCA_IB_DEBUG_PRIV_H
#define QHCA_IB_DEBUG_PRIV_H

#include <linux/list.h>
#include <rdma/ib_verbs.h>

/**
 * struct qhca_ib_debug - debugging state of an ib_device
 * @dev: the device
 * @list: in qhca_ib_devices
 * @qps, @cqs, @srqs: debugfs directories with a file for each object
 * @mrs: debugfs file for all MRs
 * @tables, @qp_tables, @cq_tables, @srq_tables: debugfs directories
 * @mr_shown: key of the MR whose table is shown
 */
struct qhca_ib_debug {
	struct qhca_ib_dev *dev;
	struct list_head list;
	struct dentry *qps;
	struct dentry *cqs;
	struct dentry *srqs;
	struct dentry *mrs;
	struct dentry *tables;
	struct dentry *qp_tables;
	struct dentry *cq_tables;
	struct dentry *srq_tables;
	u32 mr_shown;
};

/* ib_restrack.c */
extern const struct ib_device_ops qhca_ib_restrack_ops;

#endif /* QHCA_IB_DEBUG_PRIV_H */
