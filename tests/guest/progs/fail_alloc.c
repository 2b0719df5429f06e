// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * fail_alloc: makes and destroys each kind of object, again and again, and each
 * time another allocation of the kernel fails: the first, the second, and so
 * on, until there are no more (/proc/self/fail-nth; the debug kernel has it).
 * Creating an object must fail with ENOMEM, destroying one must succeed. Prints
 * one JSON object: for each kind the number of allocations that failed while it
 * was created and while it was destroyed, and what was wrong.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "qv.h"

#define MEM	(1 << 20)
/* No call allocates that often. */
#define LIMIT	2000

static struct qv_dev dev;
static struct ibv_cq *cq;
static struct ibv_srq *srq;
static struct ibv_xrcd *xrcd;
static struct ibv_qp *raw;
static struct ibv_qp *ud;
static struct ibv_wq *wq;
static struct ibv_rwq_ind_table *table;
static struct ibv_dm *dm;
static void *mem;
static void *lazy;		/* has no pages until someone asks for them */
static int dmabuf;
static int arm_fd;

/* The objects of a kind; one at a time. */
static void *made;

/* ------------------------------------------------------------- injection -- */

static void arm(int n)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", n);

	if (pwrite(arm_fd, text, len, 0) != len)
		qv_die("write /proc/thread-self/fail-nth", errno);
}

/* Has the requested allocation failed? */
static bool disarm(void)
{
	char text[16] = "";
	int left;

	if (pread(arm_fd, text, sizeof(text) - 1, 0) <= 0)
		qv_die("read /proc/thread-self/fail-nth", errno);
	left = atoi(text);
	arm(0);
	return left == 0;
}

/* ----------------------------------------------------------------- kinds -- */

/* For those whose result is a pointer. */
#define MAKE(name, call)						\
	static int make_##name(void)					\
	{								\
		errno = 0;						\
		made = call;						\
		return made ? 0 : errno ? errno : -1;			\
	}

#define UNDO(name, type, call)						\
	static int undo_##name(void)					\
	{								\
		return call((struct type *)made);			\
	}

static const struct ibv_qp_cap cap = {
	.max_send_wr = 300, .max_recv_wr = 300,
	.max_send_sge = 2, .max_recv_sge = 2, .max_inline_data = 64,
};

static struct ibv_qp *make_qp(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = type, .send_cq = cq, .recv_cq = cq, .cap = cap,
	};

	return ibv_create_qp(dev.pd, &attr);
}

static struct ibv_qp *make_xrc(enum ibv_qp_type type)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = type, .pd = dev.pd, .xrcd = xrcd, .cap = cap,
	};

	if (type == IBV_QPT_XRC_SEND) {
		attr.send_cq = cq;
		attr.cap.max_recv_wr = attr.cap.max_recv_sge = 0;
		attr.comp_mask = IBV_QP_INIT_ATTR_PD;
	} else {
		memset(&attr.cap, 0, sizeof(attr.cap));
		attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
	}
	return ibv_create_qp_ex(dev.ctx, &attr);
}

static struct ibv_qp *make_rss(void)
{
	static uint8_t key[40] = { 1, 2, 3 };
	struct ibv_qp_init_attr_ex attr = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = dev.pd,
		.rwq_ind_tbl = table,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 |
					       IBV_RX_HASH_DST_IPV4,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
	};

	return ibv_create_qp_ex(dev.ctx, &attr);
}

static struct ibv_srq *make_srq_of(enum ibv_srq_type type)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 300, .max_sge = 2 }, .srq_type = type,
		.pd = dev.pd, .cq = cq, .xrcd = xrcd,
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ,
	};

	if (type == IBV_SRQT_XRC)
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_XRCD;
	if (type == IBV_SRQT_TM) {
		attr.tm_cap.max_num_tags = 16;
		attr.tm_cap.max_ops = 16;
		attr.comp_mask |= IBV_SRQ_INIT_ATTR_TM;
	}
	return ibv_create_srq_ex(dev.ctx, &attr);
}

static struct ibv_wq *make_wq_of(void)
{
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = 300, .max_sge = 1,
		.pd = dev.pd, .cq = cq,
	};

	return ibv_create_wq(dev.ctx, &attr);
}

static struct ibv_rwq_ind_table *make_table_of(void)
{
	struct ibv_rwq_ind_table_init_attr attr = {
		.ind_tbl = &wq,
	};

	return ibv_create_rwq_ind_table(dev.ctx, &attr);
}

static struct ibv_xrcd *make_xrcd_of(void)
{
	struct ibv_xrcd_init_attr attr = {
		.fd = -1, .oflags = O_CREAT,
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
	};

	return ibv_open_xrcd(dev.ctx, &attr);
}

static struct ibv_dm *make_dm_of(void)
{
	struct ibv_alloc_dm_attr attr = { .length = 4096 };

	return ibv_alloc_dm(dev.ctx, &attr);
}

static struct ibv_ah *make_ah_of(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = {
			.dgid = dev.gid, .sgid_index = dev.gid_index,
			.hop_limit = 64,
		},
	};

	return ibv_create_ah(dev.pd, &attr);
}

static struct ibv_flow *make_flow_of(void)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} flow = {
		.attr = {
			.type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(flow),
			.num_of_specs = 1, .port = 1,
		},
		.eth = {
			.type = IBV_FLOW_SPEC_ETH, .size = sizeof(flow.eth),
			.val.dst_mac = { 2, 3, 4, 5, 6, 7 },
			.mask.dst_mac = { 255, 255, 255, 255, 255, 255 },
		},
	};

	return ibv_create_flow(raw, &flow.attr);
}

#define RIGHTS	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)

MAKE(context, ibv_open_device(dev.ctx->device))
UNDO(context, ibv_context, ibv_close_device)
MAKE(pd, ibv_alloc_pd(dev.ctx))
UNDO(pd, ibv_pd, ibv_dealloc_pd)
MAKE(mr, ibv_reg_mr(dev.pd, mem, MEM, RIGHTS))
UNDO(mr, ibv_mr, ibv_dereg_mr)
MAKE(odp_mr, ibv_reg_mr(dev.pd, mem, MEM, RIGHTS | IBV_ACCESS_ON_DEMAND))
MAKE(implicit_mr, ibv_reg_mr(dev.pd, NULL, SIZE_MAX,
			     RIGHTS | IBV_ACCESS_ON_DEMAND))
MAKE(dm_mr, ibv_reg_dm_mr(dev.pd, dm, 0, 4096, IBV_ACCESS_LOCAL_WRITE |
			  IBV_ACCESS_ZERO_BASED))
MAKE(mw_1, ibv_alloc_mw(dev.pd, IBV_MW_TYPE_1))
MAKE(mw_2, ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2))
MAKE(dmabuf_mr, ibv_reg_dmabuf_mr(dev.pd, 0, MEM, (uintptr_t)mem, dmabuf,
				  RIGHTS))
MAKE(lazy_mr, ibv_reg_mr(dev.pd, lazy, MEM, RIGHTS | IBV_ACCESS_ON_DEMAND))
UNDO(mw, ibv_mw, ibv_dealloc_mw)
MAKE(dm, make_dm_of())
UNDO(dm, ibv_dm, ibv_free_dm)
MAKE(cq, ibv_create_cq(dev.ctx, 1000, NULL, NULL, 0))
UNDO(cq, ibv_cq, ibv_destroy_cq)
MAKE(srq, make_srq_of(IBV_SRQT_BASIC))
MAKE(srq_xrc, make_srq_of(IBV_SRQT_XRC))
MAKE(srq_tm, make_srq_of(IBV_SRQT_TM))
UNDO(srq, ibv_srq, ibv_destroy_srq)
MAKE(rc, make_qp(IBV_QPT_RC))
MAKE(uc, make_qp(IBV_QPT_UC))
MAKE(ud, make_qp(IBV_QPT_UD))
MAKE(raw, make_qp(IBV_QPT_RAW_PACKET))
MAKE(xrc_ini, make_xrc(IBV_QPT_XRC_SEND))
MAKE(xrc_tgt, make_xrc(IBV_QPT_XRC_RECV))
MAKE(rss_qp, make_rss())
UNDO(qp, ibv_qp, ibv_destroy_qp)
MAKE(xrcd, make_xrcd_of())
UNDO(xrcd, ibv_xrcd, ibv_close_xrcd)
MAKE(wq, make_wq_of())
UNDO(wq, ibv_wq, ibv_destroy_wq)
MAKE(table, make_table_of())
UNDO(table, ibv_rwq_ind_table, ibv_destroy_rwq_ind_table)
MAKE(ah, make_ah_of())
UNDO(ah, ibv_ah, ibv_destroy_ah)
MAKE(flow, make_flow_of())
UNDO(flow, ibv_flow, ibv_destroy_flow)

/* Those that change an object, which always exists. */
static int make_resized_cq(void)
{
	return ibv_resize_cq(cq, 5000);
}

static int undo_resized_cq(void)
{
	return ibv_resize_cq(cq, 1000);
}

static int resize_srq(uint32_t max_wr)
{
	struct ibv_srq_attr attr = { .max_wr = max_wr };

	return ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR);
}

static int make_resized_srq(void)
{
	return resize_srq(5000);
}

static int undo_resized_srq(void)
{
	return resize_srq(300);
}

static const union ibv_gid group = {
	.raw = { 0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 239, 1, 2, 3 },
};

static int make_attached(void)
{
	return ibv_attach_mcast(ud, &group, 0);
}

static int undo_attached(void)
{
	return ibv_detach_mcast(ud, &group, 0);
}

/* RESET -> RTS and back: a QP connected to itself. */
static int make_connected(void)
{
	struct qv_path path;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	int err;

	err = ibv_modify_qp(made, &attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			    IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);
	if (err)
		return err;
	path = qv_path_to(&dev, ((struct ibv_qp *)made)->qp_num);
	attr = (struct ibv_qp_attr) {
		.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024,
		.dest_qp_num = path.qpn,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = path.gid, .hop_limit = 64,
				.sgid_index = dev.gid_index,
			},
		},
		.max_dest_rd_atomic = 1,
	};
	return ibv_modify_qp(made, &attr, IBV_QP_STATE | IBV_QP_AV |
			     IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			     IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER);
}

static int undo_connected(void)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };

	return ibv_modify_qp(made, &attr, IBV_QP_STATE);
}

static int move_mr(size_t by)
{
	errno = 0;
	if (!ibv_rereg_mr(made, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			  (char *)mem + by, MEM - by, 0))
		return 0;
	return errno ? errno : -1;
}

static int make_moved_mr(void)
{
	return move_mr(4096);
}

static int undo_moved_mr(void)
{
	return move_mr(0);
}

/* Pages of on-demand memory, which the kernel then has to find. */
static int prefetch(struct ibv_mr *mr)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)lazy, .length = MEM, .lkey = mr->lkey,
	};

	return ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			     IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
}

static int forget(void)
{
	return madvise(lazy, MEM, MADV_DONTNEED) ? errno : 0;
}

static int make_prefetched(void)
{
	return prefetch(made);
}

static int undo_prefetched(void)
{
	return forget();
}

/* An implicit MR with a child, which exists as long as the MR. */
static int make_used_implicit(void)
{
	int err = make_implicit_mr();

	if (err)
		return err;
	err = prefetch(made);
	if (err && ibv_dereg_mr(made))
		qv_wrong("used_implicit: cannot be destroyed after a failure");
	return err;
}

static int undo_used_implicit(void)
{
	int err = undo_mr();

	return err ? err : forget();
}

static const struct kind {
	const char *name;
	int (*make)(void);
	int (*undo)(void);
	int (*before)(void);	/* makes what is changed */
	int (*after)(void);
	int error;		/* a valid one beside ENOMEM, or 0 */
} kinds[] = {
	{ "context", make_context, undo_context, NULL, NULL, 0 },
	{ "pd", make_pd, undo_pd, NULL, NULL, 0 },
	{ "mr", make_mr, undo_mr, NULL, NULL, 0 },
	{ "odp_mr", make_odp_mr, undo_mr, NULL, NULL, 0 },
	{ "implicit_mr", make_implicit_mr, undo_mr, NULL, NULL, 0 },
	{ "dm_mr", make_dm_mr, undo_mr, NULL, NULL, 0 },
	{ "dmabuf_mr", make_dmabuf_mr, undo_mr, NULL, NULL, 0 },
	/* That of a page that the kernel cannot provide. */
	{ "prefetched", make_prefetched, undo_prefetched, make_lazy_mr,
	  undo_mr, EFAULT },
	{ "used_implicit", make_used_implicit, undo_used_implicit, NULL, NULL,
	  EFAULT },
	{ "moved_mr", make_moved_mr, undo_moved_mr, make_mr, undo_mr, 0 },
	{ "mw_1", make_mw_1, undo_mw, NULL, NULL, 0 },
	{ "mw_2", make_mw_2, undo_mw, NULL, NULL, 0 },
	{ "dm", make_dm, undo_dm, NULL, NULL, 0 },
	{ "cq", make_cq, undo_cq, NULL, NULL, 0 },
	{ "resized_cq", make_resized_cq, undo_resized_cq, NULL, NULL, 0 },
	{ "srq", make_srq, undo_srq, NULL, NULL, 0 },
	{ "srq_xrc", make_srq_xrc, undo_srq, NULL, NULL, 0 },
	{ "srq_tm", make_srq_tm, undo_srq, NULL, NULL, 0 },
	{ "resized_srq", make_resized_srq, undo_resized_srq, NULL, NULL, 0 },
	{ "rc", make_rc, undo_qp, NULL, NULL, 0 },
	{ "uc", make_uc, undo_qp, NULL, NULL, 0 },
	{ "ud", make_ud, undo_qp, NULL, NULL, 0 },
	{ "raw", make_raw, undo_qp, NULL, NULL, 0 },
	{ "xrc_ini", make_xrc_ini, undo_qp, NULL, NULL, 0 },
	{ "xrc_tgt", make_xrc_tgt, undo_qp, NULL, NULL, 0 },
	{ "rss", make_rss_qp, undo_qp, NULL, NULL, 0 },
	{ "connected", make_connected, undo_connected, make_rc, undo_qp, 0 },
	{ "xrcd", make_xrcd, undo_xrcd, NULL, NULL, 0 },
	{ "wq", make_wq, undo_wq, NULL, NULL, 0 },
	{ "table", make_table, undo_table, NULL, NULL, 0 },
	{ "ah", make_ah, undo_ah, NULL, NULL, 0 },
	{ "flow", make_flow, undo_flow, NULL, NULL, 0 },
	{ "attached", make_attached, undo_attached, NULL, NULL, 0 },
};

/* ------------------------------------------------------------- the rounds -- */

/* Create one while allocation number @n fails; false: there are fewer. */
static bool round_make(const struct kind *k, int n)
{
	bool failed;
	int err;

	arm(n);
	err = k->make();
	failed = disarm();
	if (err && !failed)
		qv_wrong("%s: refused without a reason: %s", k->name,
			 strerror(err));
	/* the core's for an mmap() that found no memory for page tables */
	else if (err && err != ENOMEM && err != EAGAIN && err != k->error)
		qv_wrong("%s: allocation %d failed: %s", k->name, n,
			 strerror(err));
	/* This allocation has a fallback, which was used. */
	if (!err && k->undo())
		qv_wrong("%s: cannot be undone after allocation %d failed",
			 k->name, n);
	/* A failed attempt left nothing behind that prevents the next. */
	if (err && (k->make() || k->undo()))
		qv_wrong("%s: cannot be made after allocation %d failed",
			 k->name, n);
	return failed;
}

static bool round_undo(const struct kind *k, int n)
{
	bool failed;
	int err;

	if (k->make()) {
		qv_wrong("%s: cannot be made", k->name);
		return false;
	}
	arm(n);
	err = k->undo();
	failed = disarm();
	if (err && !failed)
		qv_wrong("%s: not undone, without a reason: %s", k->name,
			 strerror(err));
	/* It still exists, and can be destroyed when memory is available. */
	if (err && k->undo())
		qv_wrong("%s: cannot be undone any more", k->name);
	return failed;
}

static void all_rounds(const struct kind *k, int *make, int *undo)
{
	*make = *undo = 0;
	if (k->before && k->before()) {
		qv_wrong("%s: what it begins with cannot be made", k->name);
		return;
	}
	while (*make < LIMIT && !qv_why[0] && round_make(k, *make + 1))
		++*make;
	while (*undo < LIMIT && !qv_why[0] && round_undo(k, *undo + 1))
		++*undo;
	if (*make == LIMIT || *undo == LIMIT)
		qv_wrong("%s: %d allocations", k->name, LIMIT);
	if (k->after && k->after())
		qv_wrong("%s: what it begins with cannot be destroyed",
			 k->name);
}

/* A dma-buf of memory that another driver could have. */
static void make_dmabuf(void)
{
	struct udmabuf_create create = { .size = MEM };
	int memory = memfd_create("fail_alloc", MFD_ALLOW_SEALING);
	int device = open("/dev/udmabuf", O_RDWR);

	create.memfd = memory;
	if (memory < 0 || device < 0 || ftruncate(memory, MEM) ||
	    fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK))
		qv_die("udmabuf", errno);
	dmabuf = ioctl(device, UDMABUF_CREATE, &create);
	if (dmabuf < 0)
		qv_die("UDMABUF_CREATE", errno);
	close(device);
	close(memory);
}

/* Objects that the kinds refer to. */
static void prepare(void)
{
	qv_open(&dev);
	mem = mmap(NULL, MEM, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	lazy = mmap(NULL, MEM, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (mem == MAP_FAILED || lazy == MAP_FAILED)
		qv_die("mmap", errno);
	make_dmabuf();
	cq = ibv_create_cq(dev.ctx, 1000, NULL, NULL, 0);
	srq = cq ? make_srq_of(IBV_SRQT_BASIC) : NULL;
	xrcd = make_xrcd_of();
	raw = make_qp(IBV_QPT_RAW_PACKET);
	ud = make_qp(IBV_QPT_UD);
	wq = make_wq_of();
	table = wq ? make_table_of() : NULL;
	dm = make_dm_of();
	if (!srq || !xrcd || !raw || !ud || !table || !dm)
		qv_die("prepare", errno);
	arm_fd = open("/proc/thread-self/fail-nth", O_RDWR);
	if (arm_fd < 0)
		qv_die("/proc/thread-self/fail-nth", errno);
}

int main(int argc, char **argv)
{
	size_t i, total = 0;
	int make, undo;

	prepare();
	printf("{");
	for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]) && !qv_why[0]; i++) {
		if (argc > 1 && strcmp(argv[1], kinds[i].name))
			continue;
		all_rounds(&kinds[i], &make, &undo);
		printf("\"%s\": [%d, %d], ", kinds[i].name, make, undo);
		total += make + undo;
	}
	printf("\"failed\": %zu, \"why\": \"%s\"}\n", total, qv_why);
	return 0;
}
