// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/qhca/<pci address>/: registers, caps, stats, queues;
 * layout, the form forced on new buffer tables; and marker, which puts a mark
 * into the device's trace.
 */
#include <linux/debugfs.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "../core/core.h"
#include "../net/netdev.h"
#include "debug.h"
#include "qhca_compat.h"
#include "qhca_trace.h"

static char *layout = "auto";
module_param(layout, charp, 0444);
MODULE_PARM_DESC(layout,
		 "form of buffer tables: auto|direct|list|flat|tree [hops=N] [page_shift=N] [table_shift=N] [scope=user|kernel|all]");

static struct dentry *root;

static int registers_show(struct seq_file *s, void *unused)
{
	struct qhca_core *core = s->private;
	u64 values[QHCA_DEBUG_REGS_MAX];
	unsigned int i;

	qhca_debug_read_regs(&core->dev, values);
	for (i = 0; i < qhca_debug_num_regs; i++)
		seq_printf(s, "%04x %-9s %#llx\n", qhca_debug_regs[i].offset,
			   qhca_debug_regs[i].name, values[i]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(registers);

static const struct {
	const char *name;
	size_t offset;
} caps_u32[] = {
	{ "max_qp", offsetof(struct qhca_caps, max_qp) },
	{ "max_cq", offsetof(struct qhca_caps, max_cq) },
	{ "max_srq", offsetof(struct qhca_caps, max_srq) },
	{ "max_mr", offsetof(struct qhca_caps, max_mr) },
	{ "max_pd", offsetof(struct qhca_caps, max_pd) },
	{ "max_uar", offsetof(struct qhca_caps, max_uar) },
	{ "max_eq", offsetof(struct qhca_caps, max_eq) },
	{ "max_qp_wr", offsetof(struct qhca_caps, max_qp_wr) },
	{ "max_cqe", offsetof(struct qhca_caps, max_cqe) },
	{ "max_srq_wr", offsetof(struct qhca_caps, max_srq_wr) },
	{ "max_sge", offsetof(struct qhca_caps, max_sge) },
	{ "max_inline", offsetof(struct qhca_caps, max_inline) },
	{ "max_gid", offsetof(struct qhca_caps, max_gid) },
	{ "max_eth_queues", offsetof(struct qhca_caps, max_eth_queues) },
	{ "max_eq_depth", offsetof(struct qhca_caps, max_eq_depth) },
	{ "max_rd_atomic", offsetof(struct qhca_caps, max_rd_atomic) },
	{ "max_msg_size", offsetof(struct qhca_caps, max_msg_size) },
};

static int caps_show(struct seq_file *s, void *unused)
{
	struct qhca_core *core = s->private;
	const struct qhca_caps *c = &core->dev.caps;
	int i;

	seq_printf(s, "features %#llx\n", c->features);
	seq_printf(s, "node_guid %8phN\n", c->node_guid);
	seq_printf(s, "max_mr_size %#llx\n", c->max_mr_size);
	seq_printf(s, "page_size_cap %#llx\n", c->page_size_cap);
	for (i = 0; i < ARRAY_SIZE(caps_u32); i++)
		seq_printf(s, "%s %u\n", caps_u32[i].name,
			   *(const u32 *)((const char *)c +
					  caps_u32[i].offset));
	seq_printf(s, "fw_version %#x\n", c->fw_version);
	seq_printf(s, "dm_size %#llx\n", c->dm_size);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(caps);

static int stats_show(struct seq_file *s, void *unused)
{
	struct qhca_core *core = s->private;
	__le64 hw[QHCA_STAT_COUNT];
	int i, err;

	err = qhca_aq_query(&core->dev, QHCA_CMD_QUERY_STATS, 0, hw,
			    sizeof(hw));
	if (err)
		return err;
	for (i = 0; i < QHCA_STAT_COUNT; i++) {
		if (qhca_stat_names[i])
			seq_printf(s, "%s %llu\n", qhca_stat_names[i],
				   le64_to_cpu(hw[i]));
	}
	seq_printf(s, "drv_aq_late %llu\n", core->aq.late);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(stats);

static void debugfs_show_queue_buf(struct seq_file *s,
				   const struct qhca_queue_buf *buf)
{
	seq_putc(s, ' ');
	qhca_debug_table_line(s, &buf->table);
	seq_putc(s, '\n');
}

static void debugfs_show_tx(struct seq_file *s, const struct qhca_tx_queue *q)
{
	seq_printf(s, "tx_cq %u cons %u", q->cq.cq.cqn, q->cq.cons);
	debugfs_show_queue_buf(s, &q->cq.buf);
	seq_printf(s, "tx_sq %u prod %u cons %u", q->num, q->prod, q->cons);
	debugfs_show_queue_buf(s, &q->buf);
}

static void debugfs_show_rx(struct seq_file *s, const struct qhca_rx_queue *q)
{
	seq_printf(s, "rx_cq %u cons %u", q->cq.cq.cqn, q->cq.cons);
	debugfs_show_queue_buf(s, &q->cq.buf);
	seq_printf(s, "rx_rq %u prod %u cons %u", q->ch->rqn, q->prod, q->cons);
	debugfs_show_queue_buf(s, &q->buf);
}

/* Shows the kernel's own queues and how the device finds their memory. */
static int queues_show(struct seq_file *s, void *unused)
{
	struct qhca_core *core = s->private;
	struct qhca_netdev *priv = netdev_priv(core->dev.netdev);
	u32 i;

	/* block resets and ifdown */
	mutex_lock(&core->start_lock);
	qhca_netdev_lock(priv->netdev);
	for (i = 0; i < core->num_eqs; i++) {
		struct qhca_eq *eq = &core->eqs[i];

		seq_printf(s, "eq %u vector %u cons %u events %llu stray %llu",
			   eq->eqn, eq->vector, eq->cons, eq->events,
			   eq->stray);
		debugfs_show_queue_buf(s, &eq->buf);
	}
	for (i = 0; priv->up && i < priv->num_ch; i++) {
		debugfs_show_tx(s, priv->ch[i].tx);
		debugfs_show_rx(s, priv->ch[i].rx);
	}
	qhca_netdev_unlock(priv->netdev);
	mutex_unlock(&core->start_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(queues);

void qhca_debug_layout(struct qhca_dev *dev, u8 scope, struct qhca_layout *l)
{
	mutex_lock(&dev->debug->layout_lock);
	*l = dev->debug->layout;
	mutex_unlock(&dev->debug->layout_lock);
	if (l->scope & scope)
		return;
	memset(l, 0, sizeof(*l));
	l->form = QHCA_LAYOUT_AUTO;
	l->scope = scope;
}
EXPORT_SYMBOL_GPL(qhca_debug_layout);

static int layout_show(struct seq_file *s, void *unused)
{
	struct qhca_core *core = s->private;
	struct qhca_debug *debug = core->dev.debug;
	char buf[96];

	mutex_lock(&debug->layout_lock);
	qhca_layout_print(&debug->layout, buf, sizeof(buf));
	mutex_unlock(&debug->layout_lock);
	seq_puts(s, buf);
	return 0;
}

static int layout_open(struct inode *inode, struct file *file)
{
	return single_open(file, layout_show, inode->i_private);
}

static ssize_t layout_write(struct file *file, const char __user *ubuf,
			    size_t len, loff_t *pos)
{
	struct seq_file *s = file->private_data;
	struct qhca_core *core = s->private;
	struct qhca_layout l;
	char buf[96];
	int err;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, len))
		return -EFAULT;
	buf[len] = 0;
	err = qhca_layout_parse(buf, &l);
	if (err)
		return err;
	mutex_lock(&core->dev.debug->layout_lock);
	core->dev.debug->layout = l;
	mutex_unlock(&core->dev.debug->layout_lock);
	return len;
}

static const struct file_operations layout_fops = {
	.owner = THIS_MODULE,
	.open = layout_open,
	.read = seq_read,
	.write = layout_write,
	.llseek = seq_lseek,
	.release = single_release,
};

/*
 * Mark the traces of guest and device with the same value. The time in the
 * guest is known to within one store: nothing can interrupt it.
 */
static void marker_ring(struct qhca_core *core, u64 val, const char *text)
{
	unsigned long irq;
	u64 before, after;

	local_irq_save(irq);
	trace_qhca_marker_begin(core, val);
	before = ktime_get_mono_fast_ns();
	writeq(val, core->dev.regs + QHCA_REG_MARKER);
	after = ktime_get_mono_fast_ns();
	trace_qhca_marker(core, val, text, before, after);
	local_irq_restore(irq);
}

/* Text as a number: its first 8 bytes, the first one lowest. */
static u64 marker_text_value(const char *text)
{
	__le64 val = 0;

	memcpy(&val, text, strnlen(text, sizeof(val)));
	return le64_to_cpu(val);
}

/*
 * A number goes to the device as it is; "now" as this kernel's monotonic clock
 * in ns; other text by marker_text_value().
 */
static ssize_t marker_write(struct file *file, const char __user *ubuf,
			    size_t len, loff_t *pos)
{
	struct qhca_core *core = file->private_data;
	char buf[64] = {};
	char *text;
	u64 val;

	if (len >= sizeof(buf))
		return -EINVAL;
	if (copy_from_user(buf, ubuf, len))
		return -EFAULT;
	text = strim(buf);
	if (!*text)
		return -EINVAL;
	if (!strcmp(text, "now"))
		val = ktime_get_mono_fast_ns();
	else if (kstrtou64(text, 0, &val))
		val = marker_text_value(text);
	marker_ring(core, val, text);
	return len;
}

static const struct file_operations marker_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = marker_write,
	.llseek = noop_llseek,
};

/* ---------------------------------------------------------------- hooks -- */

int qhca_debug_create(struct qhca_dev *dev)
{
	struct qhca_debug *debug = kzalloc(sizeof(*debug), GFP_KERNEL);
	int err;

	if (!debug)
		return -ENOMEM;
	err = qhca_layout_parse(layout, &debug->layout);
	if (err) {
		kfree(debug);
		return dev_err_probe(qhca_dma_dev(dev), err,
				     "bad parameter layout=\"%s\"\n", layout);
	}
	mutex_init(&debug->layout_lock);
	dev->debug = debug;
	return 0;
}

void qhca_debug_destroy(struct qhca_dev *dev)
{
	mutex_destroy(&dev->debug->layout_lock);
	kfree(dev->debug);
	dev->debug = NULL;
}

void qhca_debug_add_files(struct qhca_dev *dev)
{
	struct qhca_core *core = qhca_to_core(dev);
	struct dentry *d;

	d = debugfs_create_dir(pci_name(dev->pdev), root);
	dev->debug->dir = d;
	debugfs_create_file("registers", 0400, d, core, &registers_fops);
	debugfs_create_file("caps", 0400, d, core, &caps_fops);
	debugfs_create_file("stats", 0400, d, core, &stats_fops);
	debugfs_create_file("queues", 0400, d, core, &queues_fops);
	debugfs_create_file("layout", 0600, d, core, &layout_fops);
	debugfs_create_file("marker", 0200, d, core, &marker_fops);
}

void qhca_debug_remove_files(struct qhca_dev *dev)
{
	debugfs_remove(dev->debug->dir);
	dev->debug->dir = NULL;
}

struct dentry *qhca_debug_dir(struct qhca_dev *dev)
{
	return dev->debug->dir;
}
EXPORT_SYMBOL_GPL(qhca_debug_dir);

void qhca_debug_died(struct qhca_dev *dev)
{
	qhca_debug_read_regs(dev, dev->debug->last_regs);
}

void qhca_debug_init(void)
{
	root = debugfs_create_dir(QHCA_DRV_NAME, NULL);
}

void qhca_debug_exit(void)
{
	debugfs_remove(root);
}
