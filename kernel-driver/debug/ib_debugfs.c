// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/qhca/PCI/{qps,cqs,srqs}/NUMBER and .../mrs: the memory of
 * each object as the kernel keeps it (umem) and as the device sees it (table).
 * .../tables/{qp,cq,srq}/NUMBER: all entries of the tables as they are in
 * memory. .../tables/mr: those of the MR whose key was written to it.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
#include "../ib/odp.h"
#else
#include "../ib/qhca_ib.h"
#endif
#include "debug.h"
#include "ib_debug.h"

/* maximum number of SG entries and pages shown for one buffer */
#define SHOW_MAX	4096

static void debugfs_show_umem(struct seq_file *m, const char *name,
			      struct ib_umem *umem, int access)
{
	struct scatterlist *sg;
	unsigned int i;

	seq_printf(m, "%s:\n", name);
	seq_printf(m, "\tva: %#lx\n", umem->address);
	seq_printf(m, "\tlength: %#zx\n", umem->length);
	seq_printf(m, "\taccess: %#x\n", access);
	seq_printf(m, "\tsg_entries: %u\n", umem->sgt_append.sgt.nents);
	for_each_sgtable_dma_sg(&umem->sgt_append.sgt, sg, i) {
		u64 addr = sg_dma_address(sg);

		if (i == SHOW_MAX) {
			seq_puts(m, "\tsg: ...\n");
			break;
		}
		seq_printf(m, "\tsg: %#llx + %#x\n", addr, sg_dma_len(sg));
	}
}

static void debugfs_show_table(struct seq_file *m,
			       const struct qhca_buf_table *t)
{
	struct qhca_debug_field f[QHCA_DEBUG_TABLE_FIELDS];
	unsigned int i;

	qhca_debug_table_fields(t, f);
	for (i = 0; i < ARRAY_SIZE(f); i++) {
		if (f[i].text)
			seq_printf(m, "\t%s: %s\n", f[i].name, f[i].text);
		else
			seq_printf(m, f[i].hex ? "\t%s: %#llx\n"
					       : "\t%s: %llu\n",
				   f[i].name, f[i].value);
	}
}

static void debugfs_show_buf(struct seq_file *m, const char *name,
			     const struct qhca_ib_queue_buf *buf)
{
	if (buf->umem)
		debugfs_show_umem(m, name, buf->umem, buf->access);
	else
		seq_printf(m, "%s:\n\tlength: %#zx\n", name, buf->kbuf.len);
	debugfs_show_table(m, qhca_ib_queue_buf_table(buf));
}

static void debugfs_show_ring(struct seq_file *m, const char *name,
			      const struct qhca_ib_ring *wq)
{
	if (!wq->stride)
		return;
	debugfs_show_buf(m, name, &wq->buf);
	seq_printf(m, "\tdepth: %lu\n", BIT(wq->shift));
	seq_printf(m, "\tstride: %lu\n", BIT(wq->stride));
}

static int qp_show(struct seq_file *m, void *unused)
{
	struct qhca_ib_qp *qp = m->private;

	seq_printf(m, "qpn: %#x\n", qp->qpn);
	debugfs_show_ring(m, "sq", &qp->sq);
	debugfs_show_ring(m, "rq", &qp->rq);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(qp);

static int cq_show(struct seq_file *m, void *unused)
{
	struct qhca_ib_cq *cq = m->private;

	seq_printf(m, "cqn: %#x\n", cq->cqn);
	mutex_lock(&cq->resize);
	debugfs_show_buf(m, "cq", &cq->buf);
	seq_printf(m, "\tdepth: %lu\n", BIT(cq->shift));
	mutex_unlock(&cq->resize);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cq);

static int srq_show(struct seq_file *m, void *unused)
{
	struct qhca_ib_srq *srq = m->private;

	seq_printf(m, "srqn: %#x\n", srq->srqn);
	mutex_lock(&srq->resize);
	debugfs_show_buf(m, "srq", &srq->buf);
	seq_printf(m, "\tdepth: %lu\n", BIT(srq->shift));
	seq_printf(m, "\tstride: %lu\n", BIT(srq->stride));
	debugfs_show_buf(m, "index", &srq->idx);
	mutex_unlock(&srq->resize);
	if (srq->ops_stride)
		debugfs_show_buf(m, "ops", &srq->ops);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(srq);

/* --------------------------------------- MRs: too many for a file each -- */

#ifdef CONFIG_INFINIBAND_ON_DEMAND_PAGING
static void debugfs_show_odp(struct seq_file *m, const char *name,
			     struct qhca_ib_mr *mr)
{
	struct qhca_ib_odp *odp = mr->odp;
	unsigned long children = 0, i;
	void *c;

	seq_printf(m, "%s:\n", name);
	seq_printf(m, "\ton demand: %s\n",
		   odp->implicit ? "all memory" : "a range");
	seq_printf(m, "\tva: %#llx\n\tlength: %#llx\n\tiova: %#llx\n",
		   odp->start, odp->length, odp->iova);
	seq_printf(m, "\taccess: %#x\n", mr->access);
	if (odp->implicit) {
		xa_for_each(&odp->children, i, c)
			children++;
		seq_printf(m, "\tchildren: %lu\n", children);
	} else {
		seq_printf(m, "\tpages: %d\n", odp->range.umem->npages);
	}
	seq_printf(m, "\tpage_faults: %lld\n", atomic64_read(&odp->faults));
	seq_printf(m, "\tpage_invalidations: %lld\n",
		   atomic64_read(&odp->invalidations));
	seq_printf(m, "\tpage_prefetch: %lld\n",
		   atomic64_read(&odp->prefetched));
}
#else
static void debugfs_show_odp(struct seq_file *m, const char *name,
			     struct qhca_ib_mr *mr)
{
}
#endif

static void *mrs_find(struct seq_file *m, loff_t *pos)
{
	struct qhca_ib_dev *dev = m->private;
	unsigned long index = *pos;
	struct qhca_ib_mr *mr;

	mr = xa_find(&dev->mrs, &index, ULONG_MAX, XA_PRESENT);
	*pos = index;
	return mr;
}

static void *mrs_start(struct seq_file *m, loff_t *pos)
{
	struct qhca_ib_dev *dev = m->private;

	mutex_lock(&dev->mr_lock);
	return mrs_find(m, pos);
}

static void *mrs_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return mrs_find(m, pos);
}

static void mrs_stop(struct seq_file *m, void *v)
{
	struct qhca_ib_dev *dev = m->private;

	mutex_unlock(&dev->mr_lock);
}

static int mrs_show(struct seq_file *m, void *v)
{
	struct qhca_ib_mr *mr = v;
	char name[16];

	snprintf(name, sizeof(name), "mr %#x", mr->key);
	if (mr->umem) {
		debugfs_show_umem(m, name, mr->umem, mr->access);
		debugfs_show_table(m, &mr->table);
		seq_printf(m, "\tiova: %#llx\n", mr->ibmr.iova);
	} else if (mr->odp) {
		debugfs_show_odp(m, name, mr);
	} else if (mr->dm) {
		seq_printf(m, "%s:\n\tdevice memory: %#llx + %#llx\n", name,
			   mr->dm_offset, mr->ibmr.length);
	} else if (mr->pages) {
		seq_printf(m, "%s:\n\tfast_reg: %u pages\n", name,
			   mr->max_pages);
	} else {
		seq_printf(m, "%s:\n\tall memory\n", name);
	}
	return 0;
}

static const struct seq_operations mrs_sops = {
	.start = mrs_start,
	.next = mrs_next,
	.stop = mrs_stop,
	.show = mrs_show,
};
DEFINE_SEQ_ATTRIBUTE(mrs);

/* ------------------------------------------------------------- tables -- */

static void debugfs_show_entries(struct seq_file *m, const char *name,
				 const struct qhca_ib_queue_buf *buf)
{
	seq_printf(m, "%s: ", name);
	qhca_debug_table_entries(m, qhca_ib_queue_buf_table(buf));
}

static int qp_tables_show(struct seq_file *m, void *unused)
{
	struct qhca_ib_qp *qp = m->private;

	if (qp->sq.stride)
		debugfs_show_entries(m, "sq", &qp->sq.buf);
	if (qp->rq.stride)
		debugfs_show_entries(m, "rq", &qp->rq.buf);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(qp_tables);

static int cq_tables_show(struct seq_file *m, void *unused)
{
	struct qhca_ib_cq *cq = m->private;

	mutex_lock(&cq->resize);
	debugfs_show_entries(m, "cq", &cq->buf);
	mutex_unlock(&cq->resize);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(cq_tables);

static int srq_tables_show(struct seq_file *m, void *unused)
{
	struct qhca_ib_srq *srq = m->private;

	mutex_lock(&srq->resize);
	debugfs_show_entries(m, "srq", &srq->buf);
	debugfs_show_entries(m, "index", &srq->idx);
	mutex_unlock(&srq->resize);
	if (srq->ops_stride)
		debugfs_show_entries(m, "ops", &srq->ops);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(srq_tables);

static int mr_table_show(struct seq_file *m, void *unused)
{
	struct qhca_ib_dev *dev = m->private;
	u32 key = READ_ONCE(dev->debug->mr_shown);
	struct qhca_ib_mr *mr;
	int err = 0;

	mutex_lock(&dev->mr_lock);
	mr = xa_load(&dev->mrs, key >> QHCA_KEY_INDEX_SHIFT);
	if (!mr || mr->key != key) {
		err = -ENOENT;
	} else if (!mr->umem && !(mr->odp && mr->table.nmem)) {
		/* no table, or one for fast registration, or many tables */
		err = -EOPNOTSUPP;
	} else {
		seq_printf(m, "mr %#x: ", key);
		qhca_debug_table_entries(m, &mr->table);
	}
	mutex_unlock(&dev->mr_lock);
	return err;
}

static int mr_table_open(struct inode *inode, struct file *file)
{
	return single_open(file, mr_table_show, inode->i_private);
}

static ssize_t mr_table_write(struct file *file, const char __user *ubuf,
			      size_t len, loff_t *pos)
{
	struct seq_file *m = file->private_data;
	struct qhca_ib_dev *dev = m->private;
	u32 key;
	int err;

	err = kstrtou32_from_user(ubuf, len, 0, &key);
	if (err)
		return err;
	WRITE_ONCE(dev->debug->mr_shown, key);
	return len;
}

static const struct file_operations mr_table_fops = {
	.owner = THIS_MODULE,
	.open = mr_table_open,
	.read = seq_read,
	.write = mr_table_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/* ---------------------------------------------------------------- hooks -- */

/* all devices: the entry point for a debugger that only reads memory */
static LIST_HEAD(qhca_ib_devices);
static DEFINE_MUTEX(devices_lock);

static struct dentry *debugfs_add_file(struct dentry *dir, u32 num, void *obj,
				       const struct file_operations *fops)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", num);
	return debugfs_create_file(name, 0400, dir, obj, fops);
}

void qhca_ib_debug_add_qp(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	if (!dev->debug)
		return;
	qp->debug.info = debugfs_add_file(dev->debug->qps, qp->qpn, qp,
					  &qp_fops);
	qp->debug.tables = debugfs_add_file(dev->debug->qp_tables, qp->qpn, qp,
					    &qp_tables_fops);
}

void qhca_ib_debug_add_cq(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq)
{
	if (!dev->debug)
		return;
	cq->debug.info = debugfs_add_file(dev->debug->cqs, cq->cqn, cq,
					  &cq_fops);
	cq->debug.tables = debugfs_add_file(dev->debug->cq_tables, cq->cqn, cq,
					    &cq_tables_fops);
}

void qhca_ib_debug_add_srq(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq)
{
	if (!dev->debug)
		return;
	srq->debug.info = debugfs_add_file(dev->debug->srqs, srq->srqn, srq,
					   &srq_fops);
	srq->debug.tables = debugfs_add_file(dev->debug->srq_tables, srq->srqn,
					     srq, &srq_tables_fops);
}

void qhca_ib_debug_del(struct qhca_debug_files *files)
{
	debugfs_remove(files->tables);
	debugfs_remove(files->info);
}

/* If allocation fails, the device has no debugging state. */
void qhca_ib_debug_create(struct qhca_ib_dev *dev)
{
	struct dentry *root = qhca_debug_dir(dev->qdev);
	struct qhca_ib_debug *debug;

	ib_set_device_ops(&dev->ibdev, &qhca_ib_restrack_ops);
	debug = kzalloc(sizeof(*debug), GFP_KERNEL);
	if (!debug)
		return;
	debug->dev = dev;
	debug->qps = debugfs_create_dir("qps", root);
	debug->cqs = debugfs_create_dir("cqs", root);
	debug->srqs = debugfs_create_dir("srqs", root);
	dev->debug = debug;
	debug->mrs = debugfs_create_file("mrs", 0400, root, dev, &mrs_fops);
	debug->tables = debugfs_create_dir("tables", root);
	debug->qp_tables = debugfs_create_dir("qp", debug->tables);
	debug->cq_tables = debugfs_create_dir("cq", debug->tables);
	debug->srq_tables = debugfs_create_dir("srq", debug->tables);
	debugfs_create_file("mr", 0600, debug->tables, dev, &mr_table_fops);
	mutex_lock(&devices_lock);
	list_add_tail(&debug->list, &qhca_ib_devices);
	mutex_unlock(&devices_lock);
}

void qhca_ib_debug_destroy(struct qhca_ib_dev *dev)
{
	struct qhca_ib_debug *debug = dev->debug;

	if (!debug)
		return;
	mutex_lock(&devices_lock);
	list_del(&debug->list);
	mutex_unlock(&devices_lock);
	debugfs_remove(debug->tables);
	debugfs_remove(debug->mrs);
	debugfs_remove(debug->srqs);
	debugfs_remove(debug->cqs);
	debugfs_remove(debug->qps);
	dev->debug = NULL;
	kfree(debug);
}
