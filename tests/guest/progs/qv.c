// SPDX-License-Identifier: GPL-2.0-or-later
/* Helpers of the guest test programs; see qv.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "qv.h"

void qv_die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err));
	exit(2);
}

FILE *qv_maps_open(void)
{
	FILE *f = fopen("/proc/self/maps", "r");

	if (!f)
		qv_die("/proc/self/maps", errno);
	return f;
}

bool qv_maps_next(FILE *maps, struct qv_map *m)
{
	unsigned long start, end;
	char line[512], perms[5];
	int path = 0;

	if (!fgets(line, sizeof(line), maps))
		return false;
	/* address, rights, offset, device, inode; then perhaps a name */
	if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %n", &start, &end, perms,
		   &path) != 3)
		qv_die("a line of /proc/self/maps", EPROTO);
	m->start = start;
	m->end = end;
	m->read = perms[0] == 'r';
	m->write = perms[1] == 'w';
	line[strcspn(line, "\n")] = '\0';
	snprintf(m->path, sizeof(m->path), "%s", path ? line + path : "");
	return true;
}

/*
 * The doorbell page is the one mapping of the uverbs character device in this
 * process that can be written.
 */
static volatile uint64_t *find_doorbell_page(void)
{
	uintptr_t found = 0;
	FILE *maps = qv_maps_open();
	struct qv_map m;

	while (qv_maps_next(maps, &m))
		if (strstr(m.path, "/dev/infiniband/uverbs") && m.write)
			found = m.start;
	fclose(maps);
	return (volatile uint64_t *)found;
}

void qv_open(struct qv_dev *d)
{
	const char *name = getenv("IBDEV");
	const char *gidx = getenv("GIDX");
	struct ibv_device **list;
	int i, n;

	memset(d, 0, sizeof(*d));
	list = ibv_get_device_list(&n);
	if (!list)
		qv_die("ibv_get_device_list", errno);
	for (i = 0; i < n; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			break;
	if (i == n)
		qv_die(name ? name : "any RDMA device", ENODEV);
	d->ctx = ibv_open_device(list[i]);
	if (!d->ctx)
		qv_die("ibv_open_device", errno);
	ibv_free_device_list(list);
	d->gid_index = gidx ? atoi(gidx) : 0;
	if (ibv_query_gid(d->ctx, 1, d->gid_index, &d->gid))
		qv_die("ibv_query_gid", errno);
	d->pd = ibv_alloc_pd(d->ctx);
	if (!d->pd)
		qv_die("ibv_alloc_pd", errno);
	d->db = find_doorbell_page();
}

void qv_qp_create_srq(struct qv_dev *d, struct qv_qp *q, enum ibv_qp_type type,
		      const struct ibv_qp_cap *cap, struct ibv_srq *srq)
{
	int depth = cap->max_send_wr > cap->max_recv_wr ?
		cap->max_send_wr : cap->max_recv_wr;

	memset(q, 0, sizeof(*q));
	/* twice the requested room: the QP may get more than requested */
	q->scq = ibv_create_cq(d->ctx, 2 * depth + 128, NULL, NULL, 0);
	q->rcq = ibv_create_cq(d->ctx, 2 * depth + 128, NULL, NULL, 0);
	if (!q->scq || !q->rcq)
		qv_die("ibv_create_cq", errno);
	q->init.send_cq = q->scq;
	q->init.recv_cq = q->rcq;
	q->init.srq = srq;
	q->init.qp_type = type;
	q->init.cap = *cap;
	q->qp = ibv_create_qp(d->pd, &q->init);
	if (!q->qp)
		qv_die("ibv_create_qp", errno);
}

void qv_qp_create(struct qv_dev *d, struct qv_qp *q, enum ibv_qp_type type,
		  const struct ibv_qp_cap *cap)
{
	qv_qp_create_srq(d, q, type, cap, NULL);
}

void qv_qp_destroy(struct qv_qp *q)
{
	int ret = ibv_destroy_qp(q->qp);

	if (ret)
		qv_die("ibv_destroy_qp", ret);
	ret = ibv_destroy_cq(q->scq);
	if (ret)
		qv_die("ibv_destroy_cq", ret);
	ret = ibv_destroy_cq(q->rcq);
	if (ret)
		qv_die("ibv_destroy_cq", ret);
}

void qv_qp_init(struct qv_qp *q, int access)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = access,
		.qkey = QV_QKEY,
	};
	int ret = ibv_modify_qp(q->qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
				IBV_QP_PKEY_INDEX |
				(q->init.qp_type == IBV_QPT_UD ?
				 IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));

	if (ret)
		qv_die("modify QP to INIT", ret);
}

struct qv_path qv_path_to(struct qv_dev *d, uint32_t dqpn)
{
	struct qv_path path = {
		.gid = d->gid, .qpn = dqpn, .timeout = 18, .retry_cnt = 7,
		.rnr_retry = 7, .min_rnr_timer = 12,
	};

	return path;
}

void qv_qp_connect_path(struct qv_dev *d, struct qv_qp *q,
			const struct qv_path *path)
{
	enum ibv_qp_type type = q->init.qp_type;
	/* with XRC each side has its half of what RC has */
	const bool asks = type == IBV_QPT_RC || type == IBV_QPT_XRC_SEND;
	const bool serves = type == IBV_QPT_RC || type == IBV_QPT_XRC_RECV;
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = path->mtu ? path->mtu : IBV_MTU_1024,
		.dest_qp_num = path->qpn,
		.rq_psn = 0x1000,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = path->min_rnr_timer,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = {
				.dgid = path->gid,
				.sgid_index = d->gid_index,
				.hop_limit = 64,
			},
		},
	};
	int mask = IBV_QP_STATE, ret;

	if (type != IBV_QPT_UD)
		mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			IBV_QP_RQ_PSN;
	if (serves)
		mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
	ret = ibv_modify_qp(q->qp, &attr, mask);
	if (ret)
		qv_die("modify QP to RTR", ret);
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = path->timeout;
	attr.retry_cnt = path->retry_cnt;
	attr.rnr_retry = path->rnr_retry;
	attr.sq_psn = 0x1000;
	attr.max_rd_atomic = 4;
	mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
	if (asks || serves)
		mask |= IBV_QP_TIMEOUT;
	if (asks)
		mask |= IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			IBV_QP_MAX_QP_RD_ATOMIC;
	ret = ibv_modify_qp(q->qp, &attr, mask);
	if (ret)
		qv_die("modify QP to RTS", ret);
}

void qv_qp_connect(struct qv_dev *d, struct qv_qp *q, uint32_t dqpn)
{
	struct qv_path path = qv_path_to(d, dqpn);

	qv_qp_connect_path(d, q, &path);
}

void qv_rc_pair(struct qv_dev *d, struct qv_qp *a, struct qv_qp *b,
		const struct ibv_qp_cap *cap)
{
	const int all = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;

	qv_qp_create(d, a, IBV_QPT_RC, cap);
	qv_qp_create(d, b, IBV_QPT_RC, cap);
	qv_qp_init(a, all);
	qv_qp_init(b, all);
	qv_qp_connect(d, a, b->qp->qp_num);
	qv_qp_connect(d, b, a->qp->qp_num);
}

int qv_send(struct qv_qp *q, enum ibv_wr_opcode op, uint64_t wr_id,
	    struct ibv_sge *sge, int num_sge, uint64_t raddr, uint32_t rkey)
{
	struct ibv_send_wr wr = {
		.wr_id = wr_id,
		.sg_list = sge,
		.num_sge = num_sge,
		.opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma.remote_addr = raddr,
		.wr.rdma.rkey = rkey,
	};
	struct ibv_send_wr *bad;
	int ret = ibv_post_send(q->qp, &wr, &bad);

	if (!ret)
		q->posted++;
	return ret;
}

int qv_recv(struct qv_qp *q, uint64_t wr_id, struct ibv_sge *sge, int num)
{
	struct ibv_recv_wr wr = {
		.wr_id = wr_id, .sg_list = sge, .num_sge = num,
	};
	struct ibv_recv_wr *bad;

	return ibv_post_recv(q->qp, &wr, &bad);
}

int qv_link(const char *server, unsigned short port)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, peer;

	if (fd < 0)
		qv_die("socket", errno);
	if (server) {
		if (inet_pton(AF_INET, server, &sa.sin_addr) != 1)
			qv_die(server, EINVAL);
		if (connect(fd, (struct sockaddr *)&sa, sizeof(sa)))
			qv_die("connect", errno);
		return fd;
	}
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (struct sockaddr *)&sa, sizeof(sa)) || listen(fd, 1))
		qv_die("listen", errno);
	peer = accept(fd, NULL, NULL);
	if (peer < 0)
		qv_die("accept", errno);
	close(fd);
	return peer;
}

void qv_tell(int fd, const void *p, size_t n)
{
	if (write(fd, p, n) != (ssize_t)n)
		qv_die("the other end does not listen", errno);
}

void qv_hear(int fd, void *p, size_t n)
{
	if (recv(fd, p, n, MSG_WAITALL) != (ssize_t)n)
		qv_die("the other end is gone", ECONNRESET);
}

void qv_meet(int fd)
{
	char c = 'x';

	qv_tell(fd, &c, 1);
	qv_hear(fd, &c, 1);
}

long qv_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000L + ts.tv_nsec / 1000000;
}

bool qv_gone;

int qv_pace(void)
{
	const char *factor = getenv("QHCA_PACE");

	return factor && atoi(factor) > 0 ? atoi(factor) : 1;
}

bool qv_wait(struct ibv_cq *cq, struct ibv_wc *wc, int ms)
{
	long end = qv_now() + (long)ms * qv_pace();
	bool late;

	/*
	 * Check once more after the timeout: the process may have been delayed.
	 */
	do {
		int n;

		late = qv_now() >= end;
		n = ibv_poll_cq(cq, 1, wc);
		if (n == -EIO) {
			qv_gone = true;
			return false;
		}
		if (n < 0)
			qv_die("ibv_poll_cq", -n);
		if (n)
			return true;
	} while (!late);
	return false;
}

char qv_why[200];

void qv_wrong(const char *format, ...)
{
	va_list ap;

	if (qv_why[0])
		return;
	va_start(ap, format);
	vsnprintf(qv_why, sizeof(qv_why), format, ap);
	va_end(ap);
}

void qv_next_is(struct ibv_cq *cq, int status, const char *what)
{
	struct ibv_wc wc;

	if (!qv_wait(cq, &wc, 10000))
		qv_wrong("%s: no completion", what);
	else if ((int)wc.status != status)
		qv_wrong("%s: status %d, not %d", what, wc.status, status);
}

int qv_async(struct qv_dev *d, int ms)
{
	struct pollfd p = { .fd = d->ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	int type;

	if (poll(&p, 1, ms * qv_pace()) != 1)
		return -1;
	if (ibv_get_async_event(d->ctx, &ev))
		qv_die("ibv_get_async_event", errno);
	type = ev.event_type;
	ibv_ack_async_event(&ev);
	return type;
}

/* Look for @magic, 8-byte aligned, in all private writable mappings. */
static unsigned find_words(uint64_t magic, uintptr_t *at, unsigned max)
{
	FILE *maps = qv_maps_open();
	struct qv_map m;
	unsigned n = 0;

	while (n < max && qv_maps_next(maps, &m)) {
		/* rings are anonymous memory; stack and heap hold copies */
		if (!m.read || !m.write || m.path[0])
			continue;
		for (; m.start < m.end && n < max; m.start += 8)
			if (*(volatile uint64_t *)m.start == magic)
				at[n++] = m.start;
	}
	fclose(maps);
	return n;
}

void qv_find_sq(struct qv_qp *q)
{
	const size_t off = offsetof(struct qhca_wqe_ctrl, wr_id);
	static uint64_t serial;
	uintptr_t first[64], second[64];
	uint64_t magic = 0x51ca0000feed0000ULL + (serial += 16);
	struct ibv_wc wc;
	unsigned nf, ns, i, j;
	uint32_t index = q->posted;

	if (qv_send(q, IBV_WR_RDMA_WRITE, magic, NULL, 0, 0, 0) ||
	    qv_send(q, IBV_WR_RDMA_WRITE, magic + 1, NULL, 0, 0, 0))
		qv_die("posting the marker WRs", errno);
	for (i = 0; i < 2; i++)
		if (!qv_wait(q->scq, &wc, 10000) || wc.status)
			qv_die("completion of the marker WRs", EIO);
	nf = find_words(magic, first, 64);
	ns = find_words(magic + 1, second, 64);
	/*
	 * CQEs carry wr_id too: the SQ is where wr_id lies at the offset of a
	 * WQE header in a slot of 64 bytes or more with the opcode before it.
	 */
	for (i = 0; i < nf; i++) {
		for (j = 0; j < ns; j++) {
			uintptr_t slot = first[i] - off;
			intptr_t stride = second[j] - first[i];

			if (stride < 64 || stride > 1024 ||
			    (stride & (stride - 1)) || slot % 64)
				continue;
			if (*(uint8_t *)slot != QHCA_WQE_RDMA_WRITE)
				continue;
			q->sq_stride = stride;
			q->sq_depth = q->init.cap.max_send_wr;
			q->sq = (uint8_t *)slot -
				(size_t)(index % q->sq_depth) * stride;
			return;
		}
	}
	qv_die("SQ ring not found in memory", ENOENT);
}

void *qv_sq_slot(struct qv_qp *q, uint32_t n)
{
	return q->sq + (size_t)(n & (q->sq_depth - 1)) * q->sq_stride;
}

void qv_ring(struct qv_dev *d, uint32_t qpn, uint32_t head)
{
	if (!d->db)
		qv_die("no doorbell page is mapped", ENOENT);
	__sync_synchronize();
	d->db[QHCA_DB_SQ / 8] = (uint64_t)head << QHCA_DB_INDEX_SHIFT | qpn;
}

struct ibv_mr *qv_mr(struct qv_dev *d, size_t len, int access)
{
	struct ibv_mr *mr;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		qv_die("mmap", errno);
	memset(p, 0, len);
	mr = ibv_reg_mr(d->pd, p, len, access);
	if (!mr)
		qv_die("ibv_reg_mr", errno);
	return mr;
}

uint64_t qv_pfn(const void *va)
{
	long page = sysconf(_SC_PAGESIZE);
	uint64_t entry = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY);

	if (fd < 0)
		qv_die("/proc/self/pagemap", errno);
	if (pread(fd, &entry, 8, (uintptr_t)va / page * 8) != 8)
		qv_die("pread pagemap", errno);
	close(fd);
	return entry >> 63 ? entry & ((1ULL << 55) - 1) : 0;
}

long qv_vm(const char *name)
{
	char line[256];
	long kib = -1;
	size_t len = strlen(name);
	FILE *f = fopen("/proc/self/status", "r");

	if (!f)
		qv_die("/proc/self/status", errno);
	while (fgets(line, sizeof(line), f))
		if (!strncmp(line, name, len) && line[len] == ':')
			kib = atol(line + len + 1);
	fclose(f);
	return kib;
}
