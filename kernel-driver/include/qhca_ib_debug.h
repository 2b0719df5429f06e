/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The hooks of debug/ that ib calls: debugfs files of objects.  The trace points
 * are in qhca_ib_trace.h.  With CONFIG_QHCA_DEBUG=n all hooks are empty.
 */
#ifndef QHCA_IB_DEBUG_H
#define QHCA_IB_DEBUG_H

struct dentry;
struct qhca_ib_cq;
struct qhca_ib_dev;
struct qhca_ib_qp;
struct qhca_ib_srq;

/* the debugfs files of an RDMA object */
struct qhca_debug_files {
#ifdef CONFIG_QHCA_DEBUG
	struct dentry *info;
	struct dentry *tables;
#endif
};

#ifdef CONFIG_QHCA_DEBUG

/* For an ib_device: before it is registered, and after it is gone. */
void qhca_ib_debug_create(struct qhca_ib_dev *dev);
void qhca_ib_debug_destroy(struct qhca_ib_dev *dev);

/* Objects; after the remove call, no reader is left in the files. */
void qhca_ib_debug_add_qp(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp);
void qhca_ib_debug_add_cq(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq);
void qhca_ib_debug_add_srq(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq);
void qhca_ib_debug_del(struct qhca_debug_files *files);

#else

static inline void qhca_ib_debug_create(struct qhca_ib_dev *dev) {}
static inline void qhca_ib_debug_destroy(struct qhca_ib_dev *dev) {}

static inline void qhca_ib_debug_add_qp(struct qhca_ib_dev *dev,
					struct qhca_ib_qp *qp) {}

static inline void qhca_ib_debug_add_cq(struct qhca_ib_dev *dev,
					struct qhca_ib_cq *cq) {}

static inline void qhca_ib_debug_add_srq(struct qhca_ib_dev *dev,
					 struct qhca_ib_srq *srq) {}

static inline void qhca_ib_debug_del(struct qhca_debug_files *files) {}

#endif

#endif /* QHCA_IB_DEBUG_H */
