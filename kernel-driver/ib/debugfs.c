// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/qhca/PCI/{qps,cqs,srqs}/NUMBER and .../mrs: the memory of
 * each object as the kernel keeps it (umem) and as the device sees it (table).
 * .../tables/{qp,cq,srq}/NUMBER: all entries of the tables as they are in
 * memory. .../tables/mr: those of the MR whose key was written to it.
 */
#include <linux/debugfs.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>

#include "qhca_ib.h"

/* most SG entries and pages shown for one buffer */
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
	const struct qhca_plan *plan = &t->plan;

	seq_printf(m, "\tform: %s\n", qhca_form_name(plan->form));
	seq_printf(m, "\thops: %u\n", plan->hops);
	seq_printf(m, "\tpage_shift: %u\n", plan->page_shift);
	seq_printf(m, "\ttable_shift: %u\n", plan->table_shift);
	seq_printf(m, "\taddr: %#llx\n", le64_to_cpu(t->desc.addr));
	seq_printf(m, "\tlen: %#llx\n", plan->len);
	seq_printf(m, "\tfirst: %#x\n", plan->first);
	seq_printf(m, "\tentries: %llu\n", plan->npages);
	if (plan->form == QHCA_BUF_TREE)
		seq_printf(m, "\ttables: %llu %llu %llu\n", plan->ntables[0],
			   plan->ntables[1], plan->ntables[2]);
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
		qhca_ib_odp_show(m, name, mr);
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
	qhca_buf_table_show(m, qhca_ib_queue_buf_table(buf));
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
	u32 key = READ_ONCE(dev->mr_shown);
	struct qhca_ib_mr *mr;
	int err = 0;

	mutex_lock(&dev->mr_lock);
	mr = xa_load(&dev->mrs, key >> QHCA_KEY_INDEX_SHIFT);
	if (!mr || mr->key != key) {
		err = -ENOENT;
	} else if (!mr->umem && !(mr->odp && mr->table.nmem)) {
		/* no table, or one for fast registration, or many of them */
		err = -EOPNOTSUPP;
	} else {
		seq_printf(m, "mr %#x: ", key);
		qhca_buf_table_show(m, &mr->table);
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
	WRITE_ONCE(dev->mr_shown, key);
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

/* ------------------------------------------------------- come and go -- */

static struct dentry *debugfs_add_file(struct dentry *dir, u32 num, void *obj,
				       const struct file_operations *fops)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", num);
	return debugfs_create_file(name, 0400, dir, obj, fops);
}

void qhca_ib_debugfs_add_qp(struct qhca_ib_dev *dev, struct qhca_ib_qp *qp)
{
	qp->dbg.info = debugfs_add_file(dev->dir_qps, qp->qpn, qp, &qp_fops);
	qp->dbg.tables = debugfs_add_file(dev->dir_qp_tables, qp->qpn, qp,
					  &qp_tables_fops);
}

void qhca_ib_debugfs_add_cq(struct qhca_ib_dev *dev, struct qhca_ib_cq *cq)
{
	cq->dbg.info = debugfs_add_file(dev->dir_cqs, cq->cqn, cq, &cq_fops);
	cq->dbg.tables = debugfs_add_file(dev->dir_cq_tables, cq->cqn, cq,
					  &cq_tables_fops);
}

void qhca_ib_debugfs_add_srq(struct qhca_ib_dev *dev, struct qhca_ib_srq *srq)
{
	srq->dbg.info = debugfs_add_file(dev->dir_srqs, srq->srqn, srq,
					 &srq_fops);
	srq->dbg.tables = debugfs_add_file(dev->dir_srq_tables, srq->srqn, srq,
					   &srq_tables_fops);
}

/* Remove an object's files; nobody reads them any more when this returns. */
void qhca_ib_debugfs_del(struct qhca_ib_dbg *dbg)
{
	debugfs_remove(dbg->tables);
	debugfs_remove(dbg->info);
}

void qhca_ib_debugfs_init(struct qhca_ib_dev *dev)
{
	struct dentry *root = dev->qdev->debugfs;

	dev->dir_qps = debugfs_create_dir("qps", root);
	dev->dir_cqs = debugfs_create_dir("cqs", root);
	dev->dir_srqs = debugfs_create_dir("srqs", root);
	dev->file_mrs = debugfs_create_file("mrs", 0400, root, dev, &mrs_fops);
	dev->dir_tables = debugfs_create_dir("tables", root);
	dev->dir_qp_tables = debugfs_create_dir("qp", dev->dir_tables);
	dev->dir_cq_tables = debugfs_create_dir("cq", dev->dir_tables);
	dev->dir_srq_tables = debugfs_create_dir("srq", dev->dir_tables);
	debugfs_create_file("mr", 0600, dev->dir_tables, dev, &mr_table_fops);
}

void qhca_ib_debugfs_exit(struct qhca_ib_dev *dev)
{
	debugfs_remove(dev->dir_tables);
	debugfs_remove(dev->file_mrs);
	debugfs_remove(dev->dir_srqs);
	debugfs_remove(dev->dir_cqs);
	debugfs_remove(dev->dir_qps);
}
