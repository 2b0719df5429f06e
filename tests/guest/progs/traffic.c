// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * traffic [-b] PORT SERVER QPS MRS MS SIZE:ACTIVE...
 *
 * RDMA WRITEs over many QPs to the same program in another guest. SERVER is the
 * address of the other program; with "-" it waits on PORT and only exposes its
 * memory, unless -b makes both write. QPS QPs are connected, and each side
 * registers MRS MRs, all of which are used in turn.
 *
 * "ready" on stdout means that all is connected. Then each SIGUSR1 starts the
 * next one of the phases, with the first after the last: for MS milliseconds
 * ACTIVE of the QPs, evenly spread, write SIZE bytes each time. A phase ends
 * with a line of JSON when nothing is in flight any more: the writes and the
 * microseconds of the time that counts, in which all QPs are at work; and the
 * writes of the whole phase. SIGTERM ends the program.
 *
 * Whatever QPS is, each QP does the same: it posts a list of WRs, the last one
 * signalled, and the next list when that has completed.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "qv.h"

#define AREA		(16u << 20)	/* all MRs lie in this memory */
#define STEP		4096		/* and begin at multiples of this */
#define MAX_LIST	16		/* WRs of a list of small writes */
#define MAX_LISTS	4		/* lists of a QP under way */
#define CROWD		1000		/* with more QPs, one list each */
#define PHASES		16
#define STUCK_MS	60000

struct far_mr {
	uint64_t addr;
	uint32_t rkey;
};

struct phase {
	uint32_t size, active, list, lists;
};

struct end {
	struct qv_dev dev;
	struct ibv_cq *cq;
	struct ibv_qp **qps;
	struct ibv_mr **mrs;
	struct far_mr *far;
	uint32_t nqp, nmr, next_mr;
};

static uint64_t now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}

static void make_mrs(struct end *e, uint32_t length)
{
	const uint32_t places = (AREA - length) / STEP + 1;
	uint8_t *area;
	uint32_t i;

	area = mmap(NULL, AREA, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		qv_die("mmap", errno);
	memset(area, 0x5a, AREA);
	e->mrs = calloc(e->nmr, sizeof(*e->mrs));
	e->far = calloc(e->nmr, sizeof(*e->far));
	if (!e->mrs || !e->far)
		qv_die("calloc", errno);
	for (i = 0; i < e->nmr; i++) {
		e->mrs[i] = ibv_reg_mr(e->dev.pd, area + i % places * STEP,
				       length, IBV_ACCESS_LOCAL_WRITE |
				       IBV_ACCESS_REMOTE_WRITE);
		if (!e->mrs[i])
			qv_die("ibv_reg_mr", errno);
	}
}

static void make_qps(struct end *e)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = MAX_LIST * MAX_LISTS,
			.max_recv_wr = 1,
			.max_send_sge = 1,
			.max_recv_sge = 1,
		},
	};
	uint32_t i;

	/* a CQE for each list */
	e->cq = ibv_create_cq(e->dev.ctx, e->nqp * MAX_LISTS, NULL, NULL, 0);
	if (!e->cq)
		qv_die("ibv_create_cq", errno);
	attr.send_cq = attr.recv_cq = e->cq;
	e->qps = calloc(e->nqp, sizeof(*e->qps));
	if (!e->qps)
		qv_die("calloc", errno);
	for (i = 0; i < e->nqp; i++) {
		e->qps[i] = ibv_create_qp(e->dev.pd, &attr);
		if (!e->qps[i])
			qv_die("ibv_create_qp", errno);
	}
}

/* Exchange @n bytes at @p with those of the other side. */
static void swap(int fd, void *p, size_t n)
{
	size_t part;

	/* Both send first, so each part must fit into the socket buffer. */
	for (; n; n -= part, p = (char *)p + part) {
		part = n < 4096 ? n : 4096;
		qv_tell(fd, p, part);
		qv_hear(fd, p, part);
	}
}

/* Exchange GID, QPNs and MRs with the other side, and connect. */
static void meet(struct end *e, int fd)
{
	struct qv_path path = qv_path_to(&e->dev, 0);
	uint32_t *qpn = calloc(e->nqp, sizeof(*qpn));
	struct qv_qp q = { .init.qp_type = IBV_QPT_RC };
	uint32_t i;

	if (!qpn)
		qv_die("calloc", errno);
	for (i = 0; i < e->nqp; i++)
		qpn[i] = e->qps[i]->qp_num;
	for (i = 0; i < e->nmr; i++) {
		e->far[i].addr = (uintptr_t)e->mrs[i]->addr;
		e->far[i].rkey = e->mrs[i]->rkey;
	}
	swap(fd, qpn, e->nqp * sizeof(*qpn));
	swap(fd, e->far, e->nmr * sizeof(*e->far));
	path.mtu = IBV_MTU_4096;
	swap(fd, &path.gid, sizeof(path.gid));
	for (i = 0; i < e->nqp; i++) {
		q.qp = e->qps[i];
		path.qpn = qpn[i];
		qv_qp_init(&q, IBV_ACCESS_REMOTE_WRITE);
		qv_qp_connect_path(&e->dev, &q, &path);
	}
	free(qpn);
	qv_meet(fd);
}

static void post(struct end *e, const struct phase *p, uint32_t nth)
{
	struct ibv_send_wr wr[MAX_LIST] = { 0 }, *bad;
	struct ibv_sge sge[MAX_LIST];
	uint32_t i;
	int ret;

	for (i = 0; i < p->list; i++) {
		const uint32_t mr = e->next_mr;

		e->next_mr = mr + 1 == e->nmr ? 0 : mr + 1;
		sge[i].addr = (uintptr_t)e->mrs[mr]->addr;
		sge[i].length = p->size;
		sge[i].lkey = e->mrs[mr]->lkey;
		wr[i].wr_id = nth;
		wr[i].sg_list = &sge[i];
		wr[i].num_sge = 1;
		wr[i].opcode = IBV_WR_RDMA_WRITE;
		wr[i].wr.rdma.remote_addr = e->far[mr].addr;
		wr[i].wr.rdma.rkey = e->far[mr].rkey;
		wr[i].next = &wr[i + 1];
	}
	wr[i - 1].next = NULL;
	wr[i - 1].send_flags = IBV_SEND_SIGNALED;
	ret = ibv_post_send(e->qps[(uint64_t)nth * e->nqp / p->active], wr,
			    &bad);
	if (ret)
		qv_die("ibv_post_send", ret);
}

static void run(struct end *e, const struct phase *p, unsigned int ms)
{
	uint64_t all = 0, counted = 0, begin = 0, end = 0, heard = now_us();
	uint32_t under_way = 0, i, k;
	struct ibv_wc wc[64];
	int n;

	for (k = 0; k < p->lists; k++) {
		for (i = 0; i < p->active; i++, under_way++)
			post(e, p, i);
	}
	while (under_way) {
		uint64_t now;

		n = ibv_poll_cq(e->cq, 64, wc);
		if (n < 0)
			qv_die("ibv_poll_cq", -n);
		now = now_us();
		if (n)
			heard = now;
		else if (now - heard > STUCK_MS * 1000ULL)
			qv_die("completions", ETIMEDOUT);
		for (k = 0; k < (uint32_t)n; k++) {
			if (wc[k].status)
				qv_die(ibv_wc_status_str(wc[k].status), EIO);
			under_way--;
			all += p->list;
			if (!end) {
				post(e, p, wc[k].wr_id);
				under_way++;
			}
		}
		/* What counts begins when all that was posted first is done. */
		if (!begin && all >= (uint64_t)p->active * p->lists * p->list) {
			begin = now;
			counted = all;
		} else if (begin && !end && now - begin >= ms * 1000ULL) {
			end = now;
			counted = all - counted;
		}
	}
	printf("{\"size\": %u, \"active\": %u, \"writes\": %llu, \"us\": %llu, "
	       "\"all\": %llu}\n", p->size, p->active,
	       (unsigned long long)counted, (unsigned long long)(end - begin),
	       (unsigned long long)all);
}

int main(int argc, char **argv)
{
	struct phase phases[PHASES];
	uint32_t longest = 0;
	struct end e = { 0 };
	bool both, serves;
	unsigned int ms;
	sigset_t set;
	int n, i, fd, got;

	both = argc > 1 && !strcmp(argv[1], "-b");
	argv += both;
	argc -= both;
	n = argc - 6;
	if (n < 1 || n > PHASES)
		return 1;
	serves = !strcmp(argv[2], "-");
	e.nqp = atoi(argv[3]);
	e.nmr = atoi(argv[4]);
	ms = atoi(argv[5]);
	for (i = 0; i < n; i++) {
		struct phase *p = &phases[i];

		if (sscanf(argv[6 + i], "%u:%u", &p->size, &p->active) != 2 ||
		    !p->active || p->active > e.nqp || p->size > AREA)
			return 1;
		/* Large ones fill the wire in lists of a few. */
		p->list = p->size < 4096 ? MAX_LIST : MAX_LISTS;
		p->lists = p->active > CROWD ? 1 : MAX_LISTS;
		if (p->size > longest)
			longest = p->size;
	}
	if (!e.nqp || !e.nmr || !ms || !longest)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);

	qv_open(&e.dev);
	/* Both create what they need at the same time. */
	fd = qv_link(serves ? NULL : argv[2], atoi(argv[1]));
	make_mrs(&e, longest);
	make_qps(&e);
	meet(&e, fd);
	puts("ready");
	for (i = 0; ; i = (i + 1) % n) {
		if (sigwait(&set, &got) || got == SIGTERM)
			return 0;
		if (!serves || both)
			run(&e, &phases[i], ms);
	}
}
