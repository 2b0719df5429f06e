// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * isolation UID: one process has objects of each kind; another, of user UID,
 * gets their numbers, keys and addresses, and tries to access them.
 *
 * The other process prints a JSON object: for each attempt its result, an
 * errno, a completion status or a count. Then the first prints on a separate
 * line what has happened to its objects; "" if nothing has.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <rdma/ib_user_verbs.h>

#include "qv.h"

#define PAGE	4096
#define LEN	4096
#define GRH	40
#define HANDLES	64
#define VICTIMS	3		/* its QPs: two of RC, one of UD */
#define ALL	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
		 IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
		 IBV_ACCESS_MW_BIND)
#define XRC_FILE "/tmp/isolation.xrc"

static const struct ibv_qp_cap cap = {
	.max_send_wr = 16, .max_recv_wr = 16,
	.max_send_sge = 1, .max_recv_sge = 1,
};

/* What the other process gets; more than it could find out. */
struct known {
	uint32_t qpn[VICTIMS], srqn, target;
	uint32_t rkey, mw_rkey;
	uint64_t addr;
	int pid, cmd_fd;
};

static struct qv_dev dev;

static struct ibv_ah *path_to_us(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = {
			.dgid = dev.gid, .sgid_index = dev.gid_index,
			.hop_limit = 64,
		},
	};
	struct ibv_ah *ah = ibv_create_ah(dev.pd, &attr);

	if (!ah)
		qv_die("ibv_create_ah", errno);
	return ah;
}

/* One datagram; waits until it has been sent. */
static void send_ud(struct qv_qp *q, struct ibv_mr *mr, uint32_t qpn,
		    uint32_t qkey)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 64, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { path_to_us(), qpn, qkey },
	};
	struct ibv_wc wc;

	if (ibv_post_send(q->qp, &wr, &bad))
		qv_die("ibv_post_send", errno);
	if (!qv_wait(q->scq, &wc, 20000) || wc.status)
		qv_die("sending a datagram", EIO);
}

static void make_ud(struct qv_qp *q)
{
	qv_qp_create(&dev, q, IBV_QPT_UD, &cap);
	qv_qp_init(q, 0);
	qv_qp_connect(&dev, q, 0);
}

static struct ibv_xrcd *xrc_domain(int fd)
{
	struct ibv_xrcd_init_attr attr = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = fd, .oflags = O_CREAT,
	};
	struct ibv_xrcd *xrcd = ibv_open_xrcd(dev.ctx, &attr);

	if (!xrcd)
		qv_die("ibv_open_xrcd", errno);
	return xrcd;
}

static void make_target(struct qv_qp *q, struct ibv_xrcd *xrcd)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV, .xrcd = xrcd,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};

	memset(q, 0, sizeof(*q));
	q->init.qp_type = IBV_QPT_XRC_RECV;
	q->qp = ibv_create_qp_ex(dev.ctx, &init);
	if (!q->qp)
		qv_die("XRC target", errno);
	qv_qp_init(q, ALL & ~IBV_ACCESS_MW_BIND);
}

/* ------------------------------------------------------- the attacker --- */

static struct known k;
static const char *comma = "{";

static void say(const char *what, int result)
{
	printf("%s\"%s\": %d", comma, what, result);
	comma = ", ";
}

/* A pair whose ends allow everything. */
static void open_pair(struct qv_qp *a, struct qv_qp *b)
{
	qv_qp_create(&dev, a, IBV_QPT_RC, &cap);
	qv_qp_create(&dev, b, IBV_QPT_RC, &cap);
	qv_qp_init(a, ALL & ~IBV_ACCESS_MW_BIND);
	qv_qp_init(b, ALL & ~IBV_ACCESS_MW_BIND);
	qv_qp_connect(&dev, a, b->qp->qp_num);
	qv_qp_connect(&dev, b, a->qp->qp_num);
}

static void close_pair(struct qv_qp *a, struct qv_qp *b)
{
	qv_qp_destroy(a);
	qv_qp_destroy(b);
}

/* Post it to a new pair; the status of its completion. */
static int status_of(struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;
	struct qv_qp a, b;
	struct ibv_wc wc;
	int got = -1;

	wr->send_flags = IBV_SEND_SIGNALED;
	open_pair(&a, &b);
	if (qv_recv(&b, 1, NULL, 0))
		qv_die("ibv_post_recv", errno);
	if (ibv_post_send(a.qp, wr, &bad))
		got = -2;
	else if (qv_wait(a.scq, &wc, 20000))
		got = wc.status;
	close_pair(&a, &b);
	return got;
}

/* Its keys, on the attacker's QPs: at either side, by each kind of request. */
static void keys(void)
{
	struct ibv_mr *mr = qv_mr(&dev, LEN, ALL);
	struct ibv_sge own = { (uintptr_t)mr->addr, 8, mr->lkey };
	struct ibv_sge theirs = { k.addr, 8, k.rkey };
	struct ibv_sge any = { 0x1000, 8, QHCA_LKEY_RESERVED };
	struct ibv_send_wr wr = { .num_sge = 1, .sg_list = &own };
	struct ibv_mr forged = *mr;
	struct qv_qp a, b;
	struct ibv_wc wc;

	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = k.addr;
	wr.wr.rdma.rkey = k.rkey;
	say("write to its region", status_of(&wr));
	wr.wr.rdma.rkey = k.mw_rkey;
	say("write to its window", status_of(&wr));
	wr.opcode = IBV_WR_RDMA_READ;
	say("read its window", status_of(&wr));
	wr.wr.rdma.rkey = k.rkey;
	say("read its region", status_of(&wr));
	wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
	wr.wr.atomic.remote_addr = k.addr;
	wr.wr.atomic.rkey = k.rkey;
	wr.wr.atomic.compare_add = 1;
	say("atomic in its region", status_of(&wr));

	memset(&wr, 0, sizeof(wr));
	wr.num_sge = 1;
	wr.opcode = IBV_WR_RDMA_WRITE;
	wr.wr.rdma.remote_addr = (uintptr_t)mr->addr;
	wr.wr.rdma.rkey = mr->rkey;
	wr.sg_list = &theirs;
	say("send from its region", status_of(&wr));
	wr.sg_list = &any;
	say("send from all memory", status_of(&wr));
	wr.opcode = IBV_WR_RDMA_READ;
	say("read into all memory", status_of(&wr));
	wr.sg_list = &theirs;
	say("read into its region", status_of(&wr));

	open_pair(&a, &b);
	if (qv_recv(&b, 1, &theirs, 1) ||
	    qv_send(&a, IBV_WR_SEND, 2, &own, 1, 0, 0))
		qv_die("posting", errno);
	say("receive into its region",
	    qv_wait(b.rcq, &wc, 20000) ? (int)wc.status : -1);
	close_pair(&a, &b);

	memset(&wr, 0, sizeof(wr));
	wr.opcode = IBV_WR_LOCAL_INV;
	wr.invalidate_rkey = k.mw_rkey;
	say("invalidate its window", status_of(&wr));
	wr.opcode = IBV_WR_SEND_WITH_INV;
	say("have its window invalidated", status_of(&wr));

	forged.lkey = k.rkey;
	memset(&wr, 0, sizeof(wr));
	wr.opcode = IBV_WR_BIND_MW;
	wr.bind_mw.mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
	if (!wr.bind_mw.mw)
		qv_die("ibv_alloc_mw", errno);
	wr.bind_mw.rkey = ibv_inc_rkey(wr.bind_mw.mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info) {
		.mr = &forged, .addr = k.addr, .length = 8,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE,
	};
	say("bind a window to its region", status_of(&wr));
	errno = 0;
	say("register its address", ibv_reg_mr(dev.pd, (void *)k.addr, LEN,
					       ALL) ? 0 : errno);
}

/*
 * Every page of the device file that can be mapped, and every doorbell in it,
 * with the numbers of its objects. The device counts what it refuses.
 */
static void doorbells(void)
{
	static const int regs[] = {
		QHCA_DB_SQ, QHCA_DB_RQ, QHCA_DB_TM, QHCA_DB_EQ, QHCA_DB_ETH_SQ,
		QHCA_DB_MR_SYNC,
	};
	int fd = dev.ctx->cmd_fd, mapped = 0, twice = 0;
	uint64_t page;
	unsigned i, n;

	for (page = 0; page < 4096; page++) {
		volatile uint64_t *db = mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED,
					     fd, page * PAGE);
		void *two = mmap(NULL, 2 * PAGE, PROT_READ, MAP_SHARED, fd,
				 page * PAGE);

		twice += two != MAP_FAILED;
		if (db == MAP_FAILED)
			continue;
		mapped++;
		/*
		 * SQ and RQ are refused, as their QPs belong to another process
		 */
		for (i = 0; i < VICTIMS; i++)
			for (n = 0; n < 2; n++)
				db[regs[n] / 8] = (uint64_t)1000 << 32 |
						  k.qpn[i];
		/* so are the kernel's own, whatever the number */
		for (n = 3; n < 6; n++)
			db[regs[n] / 8] = (uint64_t)1 << 32 | 1;
		db[QHCA_DB_TM / 8] = (uint64_t)1 << 32 | k.srqn;
		for (i = 0; i < 256; i++)
			db[QHCA_DB_CQ_ARM / 8] = i;
		munmap((void *)db, PAGE);
	}
	say("doorbell pages", mapped);
	say("more than a page", twice);
}

/* The page of the device file that can be mapped, but only for reading. */
static uint64_t find_status_page(void)
{
	int fd = dev.ctx->cmd_fd;
	uint64_t page;
	void *p;

	for (page = 0; page < 4096; page++) {
		p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, page * PAGE);
		if (p == MAP_FAILED)
			continue;
		munmap(p, PAGE);
		p = mmap(NULL, PAGE, PROT_WRITE, MAP_SHARED, fd, page * PAGE);
		if (p == MAP_FAILED)
			return page;
		munmap(p, PAGE);
	}
	qv_die("no status page", ENOENT);
}

/* The kernel's page: the process that maps it cannot write to it. */
static void status_page(void)
{
	uint64_t at = find_status_page() * PAGE;
	int fd = dev.ctx->cmd_fd, mem = open("/proc/self/mem", O_RDWR);
	uint8_t byte = 0xff;
	char *p;

	if (mem < 0)
		qv_die("/proc/self/mem", errno);
	say("status: map writable", mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
					 MAP_SHARED, fd, at) == MAP_FAILED ?
				    errno : 0);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, at);
	if (p == MAP_FAILED)
		qv_die("the status page", errno);
	say("status: mprotect",
	    mprotect(p, PAGE, PROT_READ | PROT_WRITE) ? errno : 0);
	errno = 0;
	say("status: register", ibv_reg_mr(dev.pd, p, PAGE,
					   IBV_ACCESS_LOCAL_WRITE) ? 0 : errno);
	say("status: /proc/self/mem",
	    pwrite(mem, &byte, 1, (uintptr_t)p) == 1 ? 0 : errno);
	munmap(p, PAGE);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, at);
	say("status: written in a private mapping",
	    p != MAP_FAILED && pwrite(mem, &byte, 1, (uintptr_t)p) == 1);
	close(mem);
}

/* Its UD QP, with a Q_Key of ours; and the kernel's, with the kernel's. */
static void datagrams(void)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 0x80010000,
	};
	struct ibv_mr *mr = qv_mr(&dev, LEN, ALL);
	struct qv_qp q;

	make_ud(&q);
	send_ud(&q, mr, k.qpn[2], QV_QKEY + 1);
	send_ud(&q, mr, 1, 0x80010000);
	qv_qp_destroy(&q);
	qv_qp_create(&dev, &q, IBV_QPT_UD, &cap);
	say("a privileged Q_Key",
	    ibv_modify_qp(q.qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
			  IBV_QP_PKEY_INDEX | IBV_QP_QKEY));
	qv_qp_destroy(&q);
}

/* Its XRC SRQ, by way of a target QP of ours; its target, as ours. */
static void xrc(void)
{
	struct ibv_xrcd *xrcd = xrc_domain(-1);
	struct ibv_mr *mr = qv_mr(&dev, LEN, ALL);
	struct ibv_sge sge = { (uintptr_t)mr->addr, 8, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.num_sge = 1, .sg_list = &sge, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = k.srqn,
	};
	struct ibv_qp_open_attr open_attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_num = k.target, .xrcd = xrcd, .qp_type = IBV_QPT_XRC_RECV,
	};
	struct qv_qp ini, target;
	struct ibv_wc wc;
	int fd;

	qv_qp_create(&dev, &ini, IBV_QPT_XRC_SEND, &cap);
	qv_qp_init(&ini, 0);
	make_target(&target, xrcd);
	qv_qp_connect(&dev, &ini, target.qp->qp_num);
	qv_qp_connect(&dev, &target, ini.qp->qp_num);
	if (ibv_post_send(ini.qp, &wr, &bad))
		qv_die("ibv_post_send", errno);
	say("send to its SRQ",
	    qv_wait(ini.scq, &wc, 20000) ? (int)wc.status : -1);
	errno = 0;
	say("open its target", ibv_open_qp(dev.ctx, &open_attr) ? 0 : errno);
	fd = open(XRC_FILE, O_RDWR);
	say("open its domain", fd < 0 ? errno : 0);
}

/* The attacker's context has none of its objects, whatever their handles. */
static int old_command(struct ibv_context *ctx, uint32_t number,
		       const void *in, size_t in_len, size_t out_len)
{
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		uint8_t data[128];
	} cmd = {
		.hdr = {
			.command = number,
			.in_words = (sizeof(cmd.hdr) + in_len) / 4,
			.out_words = out_len / 4,
		},
	};
	ssize_t len = sizeof(cmd.hdr) + in_len;

	memcpy(cmd.data, in, in_len);
	return write(ctx->cmd_fd, &cmd, len) == len ? 0 : errno;
}

/* The same with our own handles: there is no other reason for refusal. */
static void own_handles(void)
{
	struct ib_uverbs_query_qp_resp resp;
	struct ib_uverbs_query_qp query = { .response = (uintptr_t)&resp };
	struct ibv_pd *pd = ibv_import_pd(dev.ctx, dev.pd->handle);
	struct qv_qp q;

	make_ud(&q);
	query.qp_handle = q.qp->handle;
	say("a command by one's own handle",
	    old_command(dev.ctx, IB_USER_VERBS_CMD_QUERY_QP, &query,
			sizeof(query), sizeof(resp)));
	say("an import by one's own handle", pd != NULL);
	qv_qp_destroy(&q);
}

static void handles(void)
{
	struct ibv_context *ctx = ibv_open_device(dev.ctx->device);
	int done = 0, imported = 0;
	uint32_t h;

	if (!ctx)
		qv_die("ibv_open_device", errno);
	for (h = 0; h < HANDLES; h++) {
		struct ib_uverbs_destroy_qp_resp qp_resp;
		struct ib_uverbs_destroy_cq_resp cq_resp;
		struct ib_uverbs_destroy_srq_resp srq_resp;
		struct ib_uverbs_query_qp_resp query_resp;
		struct ib_uverbs_destroy_qp qp = { (uintptr_t)&qp_resp, h, 0 };
		struct ib_uverbs_destroy_cq cq = { (uintptr_t)&cq_resp, h, 0 };
		struct ib_uverbs_destroy_srq srq = {
			(uintptr_t)&srq_resp, h, 0
		};
		struct ib_uverbs_query_qp query = {
			.response = (uintptr_t)&query_resp, .qp_handle = h,
		};
		struct ib_uverbs_dereg_mr mr = { h };
		struct ib_uverbs_dealloc_mw mw = { h };
		struct ib_uverbs_dealloc_pd pd = { h };
		struct ibv_pd *ipd = ibv_import_pd(ctx, h);

		imported += ipd != NULL;
		imported += ibv_import_dm(ctx, h) != NULL;
		imported += ibv_import_mr(dev.pd, 0x1000 + h) != NULL;
#define TRY(nr, in, out_len) (!old_command(ctx, IB_USER_VERBS_CMD_##nr, &(in), \
					   sizeof(in), out_len))
		done += TRY(QUERY_QP, query, sizeof(query_resp));
		done += TRY(DESTROY_QP, qp, sizeof(qp_resp));
		done += TRY(DESTROY_SRQ, srq, sizeof(srq_resp));
		done += TRY(DESTROY_CQ, cq, sizeof(cq_resp));
		done += TRY(DEREG_MR, mr, 0);
		done += TRY(DEALLOC_MW, mw, 0);
		done += TRY(DEALLOC_PD, pd, 0);
	}
	say("commands by its handles", done);
	own_handles();
	say("imports by its handles", imported);
	ibv_close_device(ctx);
}

/* Its file descriptor, by /proc: a file of our own at best. */
static void import_device(void)
{
	struct ibv_context *ctx;
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", k.pid, k.cmd_fd);
	fd = open(path, O_RDWR);
	say("open its file", fd < 0 ? errno : 0);
	if (fd < 0)
		return;
	errno = 0;
	ctx = ibv_import_device(fd);
	say("import its context", ctx ? 0 : errno);
}

/*
 * Device memory: data of former owners is cleared, memory of others not
 * accessible.
 */
static void device_memory(void)
{
	struct ibv_alloc_dm_attr attr = {};
	struct ibv_device_attr_ex caps;
	bool seen = false;
	size_t size;
	struct ibv_dm *dm;
	uint8_t *copy;

	if (ibv_query_device_ex(dev.ctx, NULL, &caps))
		qv_die("ibv_query_device_ex", errno);
	copy = malloc(caps.max_dm_size);
	for (size = caps.max_dm_size; size >= PAGE; size /= 2) {
		attr.length = size;
		for (;;) {
			dm = ibv_alloc_dm(dev.ctx, &attr);
			if (!dm)
				break;
			ibv_memcpy_from_dm(copy, dm, 0, size);
			seen |= copy[0] || memcmp(copy, copy + 1, size - 1);
		}
	}
	say("bytes of device memory", seen);
}

/* Handmade frames, and rules for frames of others. */
static void raw(void)
{
	struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = {
			.size = sizeof(rule), .num_of_specs = 1, .port = 1,
		},
		.eth = {
			.type = IBV_FLOW_SPEC_ETH,
			.size = sizeof(rule.eth),
		},
	};
	struct ibv_qp_init_attr init = { .cap = cap };
	struct qv_qp q;

	make_ud(&q);
	init.qp_type = IBV_QPT_RAW_PACKET;
	init.send_cq = q.scq;
	init.recv_cq = q.rcq;
	errno = 0;
	say("a raw packet QP", ibv_create_qp(dev.pd, &init) ? 0 : errno);
	errno = 0;
	say("a flow", ibv_create_flow(q.qp, &rule.attr) ? 0 : errno);
}

/* How many of the files below this folder can be opened. */
static int can_open(const char *folder, const char *prefix)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	char path[512];
	int n = 0, fd;

	if (!dir)
		return 0;
	while ((entry = readdir(dir))) {
		if (strncmp(entry->d_name, prefix, strlen(prefix)) ||
		    entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		fd = open(path, O_RDONLY);
		if (fd >= 0) {
			close(fd);
			n++;
		}
	}
	closedir(dir);
	return n;
}

static void files(void)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/class/infiniband/%s/device",
		 getenv("IBDEV"));
	say("BARs by sysfs", can_open(path, "resource0") +
			     can_open(path, "resource2") +
			     can_open(path, "resource4"));
	say("files of debugfs", can_open("/sys/kernel/debug", "") +
				can_open("/sys/kernel/debug/qhca", ""));
}

static int attack(const char *told)
{
	uint8_t *p = (uint8_t *)&k;
	size_t i;

	for (i = 0; i < sizeof(k); i++)
		if (sscanf(told + 2 * i, "%2hhx", &p[i]) != 1)
			qv_die(told, EINVAL);
	qv_open(&dev);
	keys();
	doorbells();
	status_page();
	datagrams();
	xrc();
	handles();
	import_device();
	device_memory();
	if (getuid()) {
		raw();
		files();
	}
	printf("}\n");
	return 0;
}

/* --------------------------------------------------------- the victim --- */

static struct ibv_mr *secret, *buffer;

/*
 * A WQE that is ready but was not announced: with a doorbell it would overwrite
 * the secret, through the window.
 */
static void prepare(struct qv_qp *a)
{
	struct qhca_sq_wqe *w;
	struct qhca_sge *s;

	qv_find_sq(a);
	w = qv_sq_slot(a, a->posted);
	s = (struct qhca_sge *)(w + 1);
	memset(w, 0, a->sq_stride);
	w->ctrl.opcode = QHCA_WQE_RDMA_WRITE;
	w->ctrl.flags = QHCA_WQE_F_SIGNALED;
	w->ctrl.num_sge = 1;
	w->ctrl.wr_id = 77;
	w->remote.addr = (uintptr_t)secret->addr;
	w->remote.rkey = k.mw_rkey;
	s->addr = (uintptr_t)buffer->addr;
	s->len = LEN;
	s->lkey = buffer->lkey;
}

static void run_attacker(int uid)
{
	const uint8_t *p = (const uint8_t *)&k;
	char told[2 * sizeof(k) + 1];
	int status;
	size_t i;
	pid_t pid;

	for (i = 0; i < sizeof(k); i++)
		sprintf(told + 2 * i, "%02x", p[i]);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		qv_die("fork", errno);
	if (!pid) {
		if (uid && (setgroups(0, NULL) || setgid(uid) || setuid(uid)))
			qv_die("setuid", errno);
		execl("/proc/self/exe", "isolation", "attack", told, NULL);
		qv_die("exec", errno);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		qv_die("the other process failed", ECHILD);
}

static struct ibv_srq *make_srq(struct ibv_xrcd *xrcd, struct ibv_cq *cq)
{
	struct ibv_srq_init_attr_ex attr = {
		.attr = { .max_wr = 4, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC, .pd = dev.pd, .xrcd = xrcd, .cq = cq,
	};
	struct ibv_sge sge = { (uintptr_t)buffer->addr, 64, buffer->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_srq *srq = ibv_create_srq_ex(dev.ctx, &attr);

	if (!srq || ibv_post_srq_recv(srq, &wr, &bad) ||
	    ibv_get_srq_num(srq, &k.srqn))
		qv_die("XRC SRQ", errno);
	return srq;
}

/* A window to the secret, which @b's peer may write through. */
static struct ibv_mw *make_window(struct qv_qp *b)
{
	struct ibv_mw *mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
	};

	if (!mw)
		qv_die("ibv_alloc_mw", errno);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info = (struct ibv_mw_bind_info) {
		.mr = secret, .addr = (uintptr_t)secret->addr, .length = LEN,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ,
	};
	if (ibv_post_send(b->qp, &wr, &bad))
		qv_die("ibv_post_send", errno);
	qv_next_is(b->scq, IBV_WC_SUCCESS, "binding");
	k.mw_rkey = wr.bind_mw.rkey;
	return mw;
}

static struct ibv_dm *secret_in_device_memory(const uint8_t *bytes)
{
	struct ibv_alloc_dm_attr attr = { .length = 16 * PAGE };
	struct ibv_dm *gone = ibv_alloc_dm(dev.ctx, &attr), *dm;
	int i;

	attr.length = PAGE;
	dm = ibv_alloc_dm(dev.ctx, &attr);
	if (!dm || !gone)
		qv_die("ibv_alloc_dm", errno);
	for (i = 0; i < 16; i++)
		ibv_memcpy_to_dm(gone, i * PAGE, bytes, PAGE);
	ibv_memcpy_to_dm(dm, 0, bytes, PAGE);
	ibv_free_dm(gone);
	return dm;
}

/* A completion that is not polled: an event as soon as the CQ is armed. */
static void leave_completion(struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD, .cap = cap, .send_cq = cq, .recv_cq = cq,
	};
	struct ibv_sge sge = { (uintptr_t)buffer->addr, 64, buffer->lkey };
	struct ibv_send_wr *bad, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct qv_qp q = { .init = init };

	q.qp = ibv_create_qp(dev.pd, &init);
	if (!q.qp)
		qv_die("ibv_create_qp", errno);
	qv_qp_init(&q, 0);
	qv_qp_connect(&dev, &q, 0);
	wr.wr.ud.ah = path_to_us();
	wr.wr.ud.remote_qpn = q.qp->qp_num;
	if (ibv_post_send(q.qp, &wr, &bad))
		qv_die("ibv_post_send", errno);
}

static bool all_are(const uint8_t *p, uint8_t value)
{
	size_t i;

	for (i = 0; i < LEN && p[i] == value; i++)
		;
	return i == LEN;
}

static void no_completion(struct ibv_cq *cq, const char *what)
{
	struct ibv_wc wc;

	if (ibv_poll_cq(cq, 1, &wc))
		qv_wrong("%s has a completion", what);
}

int main(int argc, char **argv)
{
	struct ibv_comp_channel *channel;
	struct qv_qp a, b, ud, target;
	struct pollfd fd = { .events = POLLIN };
	uint8_t copy[PAGE];
	struct ibv_cq *srq_cq, *quiet;
	struct ibv_xrcd *xrcd;
	struct ibv_sge sge;
	struct ibv_dm *dm;

	if (argc == 3 && !strcmp(argv[1], "attack"))
		return attack(argv[2]);
	if (argc != 2) {
		fprintf(stderr, "usage: isolation UID\n");
		return 1;
	}
	/* the index in the doorbell counts */
	setenv("QHCA_ALWAYS_RING", "1", 1);
	qv_open(&dev);
	secret = qv_mr(&dev, LEN, ALL);
	buffer = qv_mr(&dev, LEN, ALL);
	memset(secret->addr, 0x5a, LEN);
	qv_rc_pair(&dev, &a, &b, &cap);
	make_ud(&ud);
	sge = (struct ibv_sge){ (uintptr_t)buffer->addr, 64 + GRH,
				buffer->lkey };
	if (qv_recv(&ud, 1, &sge, 1))
		qv_die("ibv_post_recv", errno);
	xrcd = xrc_domain(open(XRC_FILE, O_RDWR | O_CREAT | O_TRUNC, 0600));
	srq_cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	make_srq(xrcd, srq_cq);
	make_target(&target, xrcd);
	make_window(&b);
	dm = secret_in_device_memory(secret->addr);
	channel = ibv_create_comp_channel(dev.ctx);
	quiet = ibv_create_cq(dev.ctx, 16, NULL, channel, 0);
	if (!srq_cq || !channel || !quiet)
		qv_die("CQs", errno);
	leave_completion(quiet);
	prepare(&a);

	k.qpn[0] = a.qp->qp_num;
	k.qpn[1] = b.qp->qp_num;
	k.qpn[2] = ud.qp->qp_num;
	k.target = target.qp->qp_num;
	k.rkey = secret->rkey;
	k.addr = (uintptr_t)secret->addr;
	k.pid = getpid();
	k.cmd_fd = dev.ctx->cmd_fd;
	run_attacker(atoi(argv[1]));

	/* nothing has happened to any of it ... */
	no_completion(a.scq, "the prepared request");
	no_completion(b.rcq, "its peer");
	no_completion(ud.rcq, "the UD QP");
	no_completion(srq_cq, "the SRQ");
	if (!all_are(secret->addr, 0x5a))
		qv_wrong("the region was written");
	memset(copy, 0, PAGE);
	ibv_memcpy_from_dm(copy, dm, 0, PAGE);
	if (!all_are(copy, 0x5a))
		qv_wrong("the device memory was written");
	fd.fd = channel->fd;
	if (poll(&fd, 1, 0))
		qv_wrong("a CQ was armed");
	if (qv_async(&dev, 0) >= 0)
		qv_wrong("an asynchronous event");

	/* ... and all of it works */
	memset(buffer->addr, 0x11, LEN);
	qv_ring(&dev, a.qp->qp_num, ++a.posted);
	qv_next_is(a.scq, IBV_WC_SUCCESS, "the prepared request");
	if (!all_are(secret->addr, 0x11))
		qv_wrong("the window does not work");
	send_ud(&ud, buffer, ud.qp->qp_num, QV_QKEY);
	qv_next_is(ud.rcq, IBV_WC_SUCCESS, "a datagram");
	printf("{\"victim\": \"%s\"}\n", qv_why);
	return 0;
}
