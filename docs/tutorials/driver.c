// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A driver for qhca in one file, written from docs/hardware.md alone: no
 * kernel module, no libibverbs.  It finds the adapter, resets it, talks to its
 * admin queue, makes a CQ and a QP, and sends a message to itself.
 *
 * It runs as root in a guest, with the real driver unloaded.  The steps are
 * explained in docs/tutorials/write-your-own-driver.md.
 */
#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rdma/qhca-hw.h>

#define POOL_SIZE	(2 << 20)	/* one huge page: contiguous for the device, too */
#define AQ_SHIFT	4		/* 16 commands */
#define CQ_SHIFT	4
#define WQ_SHIFT	4		/* 16 WQEs in each ring */
#define SQ_STRIDE	6		/* 64 bytes: a WQE with one SGE */
#define RQ_STRIDE	5		/* 32 bytes: the same */

static char folder[300];		/* of the function, in sysfs */
static volatile uint8_t *regs;		/* BAR 0 */
static volatile uint8_t *doorbells;	/* BAR 2 */

/* ------------------------------------------------------------ 1: PCI -- */

static uint32_t sysfs_number(const char *name)
{
	char path[600], text[32] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDONLY);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		err(1, "%s", path);
	close(fd);
	return strtoul(text, NULL, 0);
}

static void find_function(void)
{
	const char *all = "/sys/bus/pci/devices";
	struct dirent *entry;
	DIR *dir = opendir(all);

	if (!dir)
		err(1, "%s", all);
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		snprintf(folder, sizeof(folder), "%s/%s", all, entry->d_name);
		if (sysfs_number("vendor") == QHCA_PCI_VENDOR_ID &&
		    sysfs_number("device") == QHCA_PCI_DEVICE_ID) {
			char driver[400];

			snprintf(driver, sizeof(driver), "%s/driver", folder);
			if (!access(driver, F_OK))
				errx(1, "%s has a driver already: unload it first (qhca-unload)",
				     entry->d_name);
			printf("1 found the function %s\n", entry->d_name);
			closedir(dir);
			return;
		}
	}
	errx(1, "no PCI function %04x:%04x in this machine", QHCA_PCI_VENDOR_ID,
	     QHCA_PCI_DEVICE_ID);
}

/* Memory space, and Bus Master: without it the device does no DMA. */
static void enable_function(void)
{
	char path[400];
	uint16_t command;
	int fd;

	snprintf(path, sizeof(path), "%s/config", folder);
	fd = open(path, O_RDWR);
	if (fd < 0 || pread(fd, &command, 2, 4) != 2)
		err(1, "%s", path);
	command |= 1 << 1 | 1 << 2;
	if (pwrite(fd, &command, 2, 4) != 2)
		err(1, "%s", path);
	close(fd);
}

static volatile uint8_t *map_bar(int bar, size_t size)
{
	char path[400];
	void *at;
	int fd;

	snprintf(path, sizeof(path), "%s/resource%d", folder, bar);
	fd = open(path, O_RDWR | O_SYNC);
	if (fd < 0)
		err(1, "%s", path);
	at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		err(1, "mmap of %s", path);
	close(fd);
	return at;
}

static uint32_t read32(unsigned int reg)
{
	return *(volatile uint32_t *)(regs + reg);
}

static void write32(unsigned int reg, uint32_t value)
{
	*(volatile uint32_t *)(regs + reg) = value;
}

static void write64(unsigned int reg, uint64_t value)
{
	*(volatile uint64_t *)(regs + reg) = value;
}

/* Stores to memory before it are seen by the device before what follows. */
static void write_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_RELEASE);
}

static void read_barrier(void)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
}

/* -------------------------------------------- 2: memory for the device -- */

static uint8_t *pool;		/* a huge page ... */
static uint64_t pool_dma;	/* ... and where the device sees it */
static size_t pool_used;

/*
 * The address that the device must use.  There is no IOMMU, so it is the
 * physical one, which /proc/self/pagemap tells to root.
 */
static uint64_t physical(void *at)
{
	uint64_t entry = 0, page = sysconf(_SC_PAGESIZE);
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0 || pread(fd, &entry, 8, (uintptr_t)at / page * 8) != 8)
		err(1, "/proc/self/pagemap");
	close(fd);
	if (!(entry & ((1ULL << 55) - 1)))
		errx(1, "pagemap tells no page frames: run this as root");
	return (entry & ((1ULL << 55) - 1)) * page;
}

static void make_pool(void)
{
	pool = mmap(NULL, POOL_SIZE, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | MAP_POPULATE, -1, 0);
	if (pool == MAP_FAILED)
		err(1, "no huge page (echo 4 > /proc/sys/vm/nr_hugepages)");
	memset(pool, 0, POOL_SIZE);
	pool_dma = physical(pool);
	printf("2 memory at %p, for the device at %#" PRIx64 "\n", (void *)pool, pool_dma);
}

/* Cleared memory, aligned to 4 KiB; never freed. */
static void *take(size_t size)
{
	void *at = pool + pool_used;

	pool_used += (size + 4095) & ~4095UL;
	if (pool_used > POOL_SIZE)
		errx(1, "the pool is too small");
	return at;
}

static uint64_t dma(const void *at)
{
	return pool_dma + ((const uint8_t *)at - pool);
}

/* The simplest buffer table: none.  The buffer is contiguous. */
static struct qhca_buf direct(const void *at, size_t len)
{
	return (struct qhca_buf) {
		.addr = dma(at), .len = len, .form = QHCA_BUF_DIRECT,
	};
}

/* ------------------------------------------- 3: reset and admin queue -- */

static struct qhca_aq_cmd *asq;
static volatile struct qhca_aq_cqe *acq;
static uint32_t commands;	/* given so far; never masked */
static void *in, *out;		/* input and output of a command */

static void start_device(void)
{
	uint32_t version = read32(QHCA_REG_VERSION), depth = 1 << AQ_SHIFT;

	if (read32(QHCA_REG_ID) != QHCA_ID_MAGIC)
		errx(1, "that is no qhca: register ID is %#x", read32(QHCA_REG_ID));
	if (version >> 16 != QHCA_VERSION_MAJOR)
		errx(1, "interface version %u is not known here", version >> 16);
	write32(QHCA_REG_CTRL, QHCA_CTRL_RESET);

	asq = take(depth * sizeof(*asq));
	acq = take(depth * sizeof(*acq));
	in = take(4096);
	out = take(4096);
	write64(QHCA_REG_ASQ_BASE, dma(asq));
	write64(QHCA_REG_ACQ_BASE, dma((const void *)acq));
	write32(QHCA_REG_AQ_SHIFT, AQ_SHIFT);
	write32(QHCA_REG_DB_SHIFT, 12);
	write32(QHCA_REG_CTRL, QHCA_CTRL_ENABLE);
	if (!(read32(QHCA_REG_STATUS) & QHCA_STATUS_READY))
		errx(1, "the device is not ready: status %#x", read32(QHCA_REG_STATUS));
	printf("3 version %u.%u, reset, ready\n", version >> 16, version & 0xffff);
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

/*
 * Execute a command and wait for its completion.  @in_len bytes of input are
 * at `in`; output goes to `out`.  Returns the object's number.
 */
static uint32_t command(uint8_t opcode, uint32_t obj, size_t in_len, uint64_t mask)
{
	uint32_t slot = commands & ((1 << AQ_SHIFT) - 1);
	uint8_t phase = !(commands >> AQ_SHIFT & 1);
	double end = seconds() + 10;

	asq[slot] = (struct qhca_aq_cmd) {
		.opcode = opcode, .cmd_id = commands, .obj = obj, .mask = mask,
		.in_addr = dma(in), .in_len = in_len,
		.out_addr = dma(out), .out_len = 4096,
	};
	write_barrier();
	write32(QHCA_REG_ASQ_DB, ++commands);

	while ((acq[slot].phase & 1) != phase) {
		uint32_t status = read32(QHCA_REG_STATUS);

		if (status & QHCA_STATUS_FATAL)
			errx(1, "the device has given up: fatal reason %u",
			     (status & QHCA_STATUS_FATAL_MASK) >> QHCA_STATUS_FATAL_SHIFT);
		if (seconds() > end)
			errx(1, "command %#x is not answered", opcode);
	}
	read_barrier();
	if (acq[slot].status != QHCA_ST_OK)
		errx(1, "command %#x failed: status %u, field at %#" PRIx64, opcode,
		     acq[slot].status, (uint64_t)acq[slot].result);
	memset(in, 0, 4096);
	return acq[slot].obj;
}

/* ------------------------------------------------- 4: who are we? -- */

static const uint8_t gid[16] = { [10] = 0xff, 0xff, 10, 99, 0, 1 };
static uint8_t mac[6];

static void know_thyself(void)
{
	const struct qhca_dev_caps *caps = out;
	const struct qhca_port *port = out;
	struct qhca_gid *entry = in;

	command(QHCA_CMD_QUERY_DEVICE, 0, 0, 0);
	printf("4 the device has %u QPs, %u CQs, WQEs with %u SGEs\n", caps->max_qp,
	       caps->max_cq, caps->max_sge);
	command(QHCA_CMD_QUERY_PORT, 0, 0, 0);
	memcpy(mac, port->mac, sizeof(mac));

	memcpy(entry->gid, gid, sizeof(gid));
	memcpy(entry->mac, mac, sizeof(mac));
	entry->vlan = QHCA_VLAN_NONE;
	entry->type = QHCA_GID_ROCE_V2;
	command(QHCA_CMD_SET_GID, 0, sizeof(*entry), 0);
}

/* -------------------------------------------------- 5: first CQ and QP -- */

static volatile struct qhca_cqe *cq;
static uint8_t *sq, *rq;
static volatile struct qhca_dbrec *cq_rec, *rq_rec;
static uint32_t pd, cqn, qpn, consumed;
static bool quiet;

static void make_cq(void)
{
	struct qhca_eqc *eqc = in;
	struct qhca_cqc *cqc = in;
	size_t len = 64 * sizeof(struct qhca_eqe);
	uint32_t eqn;

	/* It is not read, but the first EQ is for asynchronous events. */
	eqc->buf = direct(take(len), len);
	eqc->shift = 6;
	eqn = command(QHCA_CMD_CREATE_EQ, 0, sizeof(*eqc), 0);

	len = sizeof(*cq) << CQ_SHIFT;
	cq = take(len);
	cq_rec = take(sizeof(*cq_rec));
	cqc->buf = direct((const void *)cq, len);
	cqc->dbrec = dma((const void *)cq_rec);
	cqc->eqn = eqn;
	cqc->shift = CQ_SHIFT;
	cqn = command(QHCA_CMD_CREATE_CQ, 0, sizeof(*cqc), 0);
}

static void make_qp(void)
{
	struct qhca_qpc *qpc = in;

	pd = command(QHCA_CMD_ALLOC_PD, 0, 0, 0);
	sq = take(1 << (WQ_SHIFT + SQ_STRIDE));
	rq = take(1 << (WQ_SHIFT + RQ_STRIDE));
	rq_rec = take(sizeof(*rq_rec));

	qpc->type = QHCA_QPT_RC;
	qpc->pd = pd;
	qpc->send_cqn = cqn;
	qpc->recv_cqn = cqn;
	qpc->sq_shift = WQ_SHIFT;
	qpc->rq_shift = WQ_SHIFT;
	qpc->sq_stride = SQ_STRIDE;
	qpc->rq_stride = RQ_STRIDE;
	qpc->sq = direct(sq, 1 << (WQ_SHIFT + SQ_STRIDE));
	qpc->rq = direct(rq, 1 << (WQ_SHIFT + RQ_STRIDE));
	qpc->rq_dbrec = dma((const void *)rq_rec);
	qpn = command(QHCA_CMD_CREATE_QP, 0, sizeof(*qpc), 0);
	printf("5 CQ %u, QP %u\n", cqn, qpn);
}

/* RESET to INIT to RTR to RTS.  The peer is the QP itself. */
static void connect_to_self(void)
{
	struct qhca_qpc *qpc = in;

	qpc->state = QHCA_QPS_INIT;
	command(QHCA_CMD_MODIFY_QP, qpn, sizeof(*qpc),
		QHCA_QP_M_STATE | QHCA_QP_M_PKEY_INDEX | QHCA_QP_M_ACCESS);

	qpc->state = QHCA_QPS_RTR;
	memcpy(qpc->av.dgid, gid, sizeof(gid));
	memcpy(qpc->av.dmac, mac, sizeof(mac));
	qpc->av.hop_limit = 64;
	qpc->dest_qpn = qpn;
	qpc->rq_psn = 1000;
	qpc->path_mtu = 3;
	qpc->min_rnr_timer = 12;
	command(QHCA_CMD_MODIFY_QP, qpn, sizeof(*qpc),
		QHCA_QP_M_STATE | QHCA_QP_M_AV | QHCA_QP_M_DEST_QPN | QHCA_QP_M_RQ_PSN |
		QHCA_QP_M_PATH_MTU | QHCA_QP_M_MIN_RNR_TIMER | QHCA_QP_M_MAX_DEST_RD_ATOMIC);

	qpc->state = QHCA_QPS_RTS;
	qpc->sq_psn = 1000;
	qpc->timeout = 14;
	qpc->retry_cnt = 7;
	qpc->rnr_retry = 7;
	command(QHCA_CMD_MODIFY_QP, qpn, sizeof(*qpc),
		QHCA_QP_M_STATE | QHCA_QP_M_SQ_PSN | QHCA_QP_M_TIMEOUT | QHCA_QP_M_RETRY_CNT |
		QHCA_QP_M_RNR_RETRY | QHCA_QP_M_MAX_RD_ATOMIC);
	printf("6 QP %u is connected to itself\n", qpn);
}

/* ---------------------------------------------------- 7: a message -- */

static uint32_t register_memory(const void *at, size_t len)
{
	struct qhca_mpt *mpt = in;

	mpt->buf = direct(at, len);
	mpt->iova = (uintptr_t)at;	/* WQEs name it by our own addresses */
	mpt->len = len;
	mpt->key = 0x5a;
	mpt->pd = pd;
	mpt->access = QHCA_ACCESS_LOCAL_WRITE;
	return command(QHCA_CMD_CREATE_MR, 0, sizeof(*mpt), 0);
}

/* A receive is posted without a word to the device: it reads the record. */
static void post_receive(uint32_t index, void *at, uint32_t len, uint32_t key)
{
	uint32_t slot = index & ((1 << WQ_SHIFT) - 1);
	struct qhca_rq_wqe *wqe = (void *)(rq + (slot << RQ_STRIDE));
	struct qhca_sge *sge = (void *)(wqe + 1);

	*wqe = (struct qhca_rq_wqe) { .wr_id = 0x100 + index, .num_sge = 1 };
	*sge = (struct qhca_sge) { .addr = (uintptr_t)at, .len = len, .lkey = key };
	write_barrier();
	rq_rec->index = index + 1;
}

static void post_send(uint32_t index, const void *at, uint32_t len, uint32_t key)
{
	uint32_t slot = index & ((1 << WQ_SHIFT) - 1);
	struct qhca_sq_wqe *wqe = (void *)(sq + (slot << SQ_STRIDE));
	struct qhca_sge *sge = (void *)(wqe + 1);

	*wqe = (struct qhca_sq_wqe) { .ctrl = {
		.opcode = QHCA_WQE_SEND, .flags = QHCA_WQE_F_SIGNALED,
		.num_sge = 1, .wr_id = 0x200 + index,
	} };
	*sge = (struct qhca_sge) { .addr = (uintptr_t)at, .len = len, .lkey = key };
	write_barrier();
	/* The doorbell, in page 0: one store of 8 bytes. */
	*(volatile uint64_t *)(doorbells + QHCA_DB_SQ) =
		qpn | (uint64_t)(index + 1) << QHCA_DB_INDEX_SHIFT;
}

static void wait_completion(void)
{
	uint32_t slot = consumed & ((1 << CQ_SHIFT) - 1);
	uint8_t phase = !(consumed >> CQ_SHIFT & 1);
	volatile struct qhca_cqe *e = &cq[slot];
	double end = seconds() + 10;

	while ((e->phase & 1) != phase)
		if (seconds() > end)
			errx(1, "no completion: QP syndrome? try QHCA_CMD_QUERY_QP");
	read_barrier();
	if (!quiet)
		printf("  completion: %s, status %u, wr_id %#" PRIx64 ", %u bytes\n",
		       e->opcode == QHCA_CQE_OP_RECV ? "receive" : "send", e->status,
		       (uint64_t)e->wr_id, e->opcode == QHCA_CQE_OP_RECV ? e->byte_len : 0);
	if (e->status != QHCA_WC_SUCCESS)
		errx(1, "it failed with syndrome %#x", e->syndrome);
	cq_rec->index = ++consumed;
}

int main(void)
{
	static const char text[] = "hello, adapter";
	uint32_t key, rounds = 40;	/* more than any ring holds */
	char *from, *to;

	setvbuf(stdout, NULL, _IOLBF, 0);
	find_function();
	enable_function();
	regs = map_bar(QHCA_BAR_REGS, QHCA_BAR_REGS_SIZE);
	doorbells = map_bar(QHCA_BAR_DB, 4096);
	make_pool();
	start_device();
	know_thyself();
	make_cq();
	make_qp();
	connect_to_self();

	from = take(4096);
	to = take(4096);
	key = register_memory(from, 8192);
	printf("7 send \"%s\", %zu bytes\n", text, sizeof(text));
	memcpy(from, text, sizeof(text));
	post_receive(0, to, 4096, key);
	post_send(0, from, sizeof(text), key);
	wait_completion();
	wait_completion();
	if (memcmp(to, text, sizeof(text)))
		errx(1, "the wrong data came: \"%.20s\"", to);
	printf("8 received \"%s\"\n", to);

	quiet = true;
	for (uint32_t n = 1; n < rounds; n++) {
		snprintf(from, 4096, "message %u", n);
		post_receive(n, to, 4096, key);
		post_send(n, from, 4096, key);
		wait_completion();
		wait_completion();
		if (memcmp(from, to, 4096))
			errx(1, "message %u is damaged", n);
	}
	printf("9 %u messages more: every ring has wrapped\n", rounds - 1);

	/* After a reset there is no DMA: the memory is ours again. */
	write32(QHCA_REG_CTRL, QHCA_CTRL_RESET);
	return 0;
}
