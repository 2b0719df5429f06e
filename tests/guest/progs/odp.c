// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * odp CASE [ARGUMENT]: on-demand paging as an application sees it. Two
 * connected QPs of this process; what one sends the other gets, while the
 * memory comes, goes and moves.
 *
 *   fork            copy-on-write: the adapter writes the parent's page
 *   churn SECONDS   pages are dropped, replaced and moved under traffic, at
 *                   least so long
 *   swap MIB all is swapped out, and swapped in when used slow FILE one QP
 *   waits for a slow page, others go on gone memory that was unmapped, or is
 *   for reading only implicit one MR for everything; tables go with the memory
 *   prefetch no page fault after it; what is refused atomics atomics on pages
 *   that come and go orphan pages of a process that is gone
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "qv.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define PAGE 4096ul
#define ALL (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	     IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

static struct qv_dev dev;
static const struct ibv_qp_cap cap = {
	.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 4,
	.max_recv_sge = 4,
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void *map(size_t len)
{
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		qv_die("mmap", errno);
	return p;
}

static struct ibv_mr *reg(void *p, size_t len, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, p, len,
				       access | IBV_ACCESS_ON_DEMAND);

	if (!mr)
		qv_die("ibv_reg_mr on demand", errno);
	return mr;
}

/* One operation of @q, and its status. */
static int go(struct qv_qp *q, enum ibv_wr_opcode op, void *local,
	      size_t len, struct ibv_mr *mr, void *remote, uint32_t rkey)
{
	struct ibv_sge s = {
		.addr = (uintptr_t)local, .length = len, .lkey = mr->lkey,
	};
	struct ibv_wc wc;
	int err;

	err = qv_send(q, op, 1, &s, 1, (uintptr_t)remote, rkey);
	if (err)
		qv_die("ibv_post_send", err);
	if (!qv_wait(q->scq, &wc, 30000))
		qv_die("no completion", ETIMEDOUT);
	return wc.status;
}

static void must(struct qv_qp *q, enum ibv_wr_opcode op, void *local,
		 size_t len, struct ibv_mr *mr, void *remote, uint32_t rkey)
{
	int status = go(q, op, local, len, mr, remote, rkey);

	if (status)
		qv_die(ibv_wc_status_str(status), EIO);
}

/* Words that encode their place and @seed. */
static void fill(void *p, size_t len, uint32_t seed)
{
	uint32_t *w = p;
	size_t i;

	for (i = 0; i < len / 4; i++)
		w[i] = seed * 2654435761u + i;
}

static bool is(const void *p, size_t len, uint32_t seed)
{
	const uint32_t *w = p;
	size_t i;

	for (i = 0; i < len / 4; i++) {
		if (w[i] != (uint32_t)(seed * 2654435761u + i))
			return false;
	}
	return true;
}

static int case_fork(void)
{
	const size_t len = 64 * PAGE;
	uint8_t *mem = map(len), *src = map(len);
	struct ibv_mr *mr, *smr;
	bool before, parent, child;
	struct qv_qp a, b;
	int to[2], status;
	char c = 0;
	pid_t pid;

	qv_rc_pair(&dev, &a, &b, &cap);
	mr = reg(mem, len, ALL);
	smr = reg(src, len, IBV_ACCESS_LOCAL_WRITE);
	fill(src, len, 1);
	must(&a, IBV_WR_RDMA_WRITE, src, len, smr, mem, mr->rkey);
	if (pipe(to))
		qv_die("pipe", errno);
	pid = fork();
	if (pid < 0)
		qv_die("fork", errno);
	if (!pid) {
		/* the child keeps the contents from the time of the fork */
		if (read(to[0], &c, 1) != 1)
			_exit(2);
		_exit(is(mem, len, 1) ? 0 : 1);
	}
	memset(src, 0, len);
	must(&a, IBV_WR_RDMA_READ, src, len, smr, mem, mr->rkey);
	before = is(src, len, 1);
	fill(src, len, 2);
	must(&a, IBV_WR_RDMA_WRITE, src, len, smr, mem, mr->rkey);
	parent = is(mem, len, 2);
	if (write(to[1], &c, 1) != 1 || waitpid(pid, &status, 0) != pid)
		qv_die("child", errno);
	child = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	printf("{\"read\": %d, \"parent\": %d, \"child\": %d}\n", before,
	       parent, child);
	return 0;
}

/* ---- churn ---- */

struct churn {
	uint8_t *mem;
	size_t len;
	volatile bool stop;
	volatile uint64_t rounds;
};

/* Drops, replaces and moves pages; their contents do not matter. */
static void *churner(void *arg)
{
	struct churn *c = arg;
	unsigned int seed = 1;

	while (!c->stop) {
		size_t page = rand_r(&seed) % (c->len / PAGE);
		size_t n = 1 + rand_r(&seed) % 16;
		uint8_t *at = c->mem + page * PAGE;
		void *p;

		if (page + n > c->len / PAGE)
			n = c->len / PAGE - page;
		switch (rand_r(&seed) % 4) {
		case 0:
			if (madvise(at, n * PAGE, MADV_DONTNEED))
				qv_die("MADV_DONTNEED", errno);
			break;
		case 1:
			p = mmap(at, n * PAGE, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
			if (p != at)
				qv_die("mmap over", errno);
			break;
		case 2:
			/* other pages take their place */
			p = map(n * PAGE);
			memset(p, 0x55, n * PAGE);
			if (mremap(p, n * PAGE, n * PAGE,
				   MREMAP_MAYMOVE | MREMAP_FIXED, at) != at)
				qv_die("mremap", errno);
			break;
		case 3:
			madvise(at, n * PAGE, MADV_PAGEOUT);
			break;
		}
		c->rounds++;
	}
	return NULL;
}

static int case_churn(int seconds)
{
	const size_t len = 512 * PAGE;
	struct churn c = { .mem = map(len), .len = len };
	uint64_t end = now_ns() + seconds * 1000000000ull, ops = 0;
	uint8_t *src = map(len);
	struct ibv_mr *mr, *smr;
	unsigned int i;
	bool good = true;
	struct qv_qp a, b;
	pthread_t t;

	qv_rc_pair(&dev, &a, &b, &cap);
	mr = reg(c.mem, len, ALL);
	smr = reg(src, len, ALL);
	if (pthread_create(&t, NULL, churner, &c))
		qv_die("pthread_create", errno);
	while (now_ns() < end || ops < 50 || c.rounds < 200) {
		size_t off = (ops * 7919 % 400) * PAGE + ops % 4000;
		size_t n = 1 + ops * 104729 % (100 * PAGE);
		struct ibv_sge r = {
			.addr = (uintptr_t)c.mem + off, .length = n,
			.lkey = mr->lkey,
		};

		switch (ops % 4) {
		case 0:
			must(&a, IBV_WR_RDMA_WRITE, src, n, smr, c.mem + off,
			     mr->rkey);
			break;
		case 1:
			must(&a, IBV_WR_RDMA_READ, src, n, smr, c.mem + off,
			     mr->rkey);
			break;
		case 2:
			/* it is our own side that moves */
			must(&a, IBV_WR_RDMA_READ, c.mem + off, n, mr, src,
			     smr->rkey);
			break;
		default: {
			struct ibv_wc wc;

			if (qv_recv(&b, 1, &r, 1))
				qv_die("ibv_post_recv", errno);
			must(&a, IBV_WR_SEND, c.mem + off, n, mr, NULL, 0);
			if (!qv_wait(b.rcq, &wc, 30000) || wc.status)
				qv_die("receive", EIO);
		}
		}
		ops++;
	}
	c.stop = true;
	pthread_join(t, NULL);
	/* new writes are seen, wherever the pages are */
	for (i = 0; i < 20; i++) {
		fill(src, len, i);
		must(&a, IBV_WR_RDMA_WRITE, src, len, smr, c.mem, mr->rkey);
		good = good && is(c.mem, len, i);
		memset(src, 0, len);
		must(&a, IBV_WR_RDMA_READ, src, len, smr, c.mem, mr->rkey);
		good = good && is(src, len, i);
		madvise(c.mem + i * 8 * PAGE, 8 * PAGE, MADV_DONTNEED);
	}
	printf("{\"ops\": %llu, \"churns\": %llu, \"good\": %d}\n",
	       (unsigned long long)ops, (unsigned long long)c.rounds, good);
	return 0;
}

static int case_swap(int mib)
{
	const size_t len = (size_t)mib << 20, part = 1 << 20;
	uint8_t *mem = map(len), *buf = map(part);
	struct ibv_mr *mr, *bmr;
	bool good = true;
	struct qv_qp a, b;
	long swapped;
	size_t i;

	qv_rc_pair(&dev, &a, &b, &cap);
	mr = reg(mem, len, ALL);
	bmr = ibv_reg_mr(dev.pd, buf, part, ALL);
	if (!bmr)
		qv_die("ibv_reg_mr", errno);
	/* written only by the adapter: that must mark it dirty */
	for (i = 0; i < len; i += part) {
		fill(buf, part, i / part + 1);
		must(&a, IBV_WR_RDMA_WRITE, buf, part, bmr, mem + i, mr->rkey);
	}
	if (madvise(mem, len, MADV_PAGEOUT))
		qv_die("MADV_PAGEOUT", errno);
	swapped = qv_vm("VmSwap");
	for (i = 0; i < len; i += part) {
		memset(buf, 0, part);
		must(&a, IBV_WR_RDMA_READ, buf, part, bmr, mem + i, mr->rkey);
		good = good && is(buf, part, i / part + 1);
	}
	printf("{\"kib\": %zu, \"swapped\": %ld, \"good\": %d}\n", len >> 10,
	       swapped, good);
	return 0;
}

/* ---- slow ---- */

struct slow {
	struct qv_qp a, b;
	enum ibv_wr_opcode op;
	void *local, *remote;
	struct ibv_mr *mr;
	uint32_t rkey;
	uint64_t ns;
	volatile bool done;
	int status;
};

static void *slow_one(void *arg)
{
	struct slow *s = arg;
	uint64_t t = now_ns();

	s->status = go(&s->a, s->op, s->local, 64, s->mr, s->remote, s->rkey);
	s->ns = now_ns() - t;
	s->done = true;
	return NULL;
}

/* A timeout so short that all retries end long before the page is present. */
static void hurry(struct qv_qp *q)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_SQD };
	int err = ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);

	if (!err) {
		attr.timeout = 12;	/* 17 ms */
		err = ibv_modify_qp(q->qp, &attr,
				    IBV_QP_STATE | IBV_QP_TIMEOUT);
	}
	if (!err) {
		attr.qp_state = IBV_QPS_RTS;
		err = ibv_modify_qp(q->qp, &attr, IBV_QP_STATE);
	}
	if (err)
		qv_die("ibv_modify_qp", err);
}

static int case_slow(const char *file)
{
	const size_t len = 256 * PAGE;
	uint8_t *mem = map(len), *src = map(len), *slow;
	uint64_t ops = 0, longest = 0, t;
	struct ibv_mr *mr, *smr, *slow_mr, *other;
	struct qv_qp a, b;
	struct slow s = { .op = IBV_WR_RDMA_WRITE, .status = -1 };
	struct slow r = { .op = IBV_WR_RDMA_READ, .status = -1 };
	pthread_t thread, thread2;
	int fd = open(file, O_RDONLY);

	if (fd < 0)
		qv_die(file, errno);
	slow = mmap(NULL, len, PROT_READ, MAP_SHARED, fd, 0);
	if (slow == MAP_FAILED)
		qv_die("mmap of the slow file", errno);
	madvise(slow, len, MADV_RANDOM);
	qv_rc_pair(&dev, &a, &b, &cap);
	qv_rc_pair(&dev, &s.a, &s.b, &cap);
	qv_rc_pair(&dev, &r.a, &r.b, &cap);
	hurry(&r.a);
	slow_mr = reg(slow, len, IBV_ACCESS_REMOTE_READ);
	other = qv_mr(&dev, PAGE, ALL);
	/* one waits for data to send, the other's peer for data to be read */
	s.local = slow;
	s.mr = slow_mr;
	s.remote = other->addr;
	s.rkey = other->rkey;
	r.local = other->addr;
	r.mr = other;
	r.remote = slow + 128 * PAGE;
	r.rkey = slow_mr->rkey;
	mr = reg(mem, len, ALL);
	smr = reg(src, len, IBV_ACCESS_LOCAL_WRITE);
	if (pthread_create(&thread, NULL, slow_one, &s) ||
	    pthread_create(&thread2, NULL, slow_one, &r))
		qv_die("pthread_create", errno);
	/* page faults of the other QP, too */
	while (!s.done || !r.done) {
		uint8_t *at = mem + ops % 256 * PAGE;

		t = now_ns();
		must(&a, IBV_WR_RDMA_WRITE, src, 64, smr, at, mr->rkey);
		t = now_ns() - t;
		if (t > longest && !s.done)
			longest = t;
		madvise(at, PAGE, MADV_DONTNEED);
		ops++;
	}
	pthread_join(thread, NULL);
	pthread_join(thread2, NULL);
	printf("{\"status\": [%d, %d], \"slow_ms\": [%llu, %llu], "
	       "\"ops\": %llu, \"longest_ms\": %llu}\n", s.status, r.status,
	       (unsigned long long)s.ns / 1000000,
	       (unsigned long long)r.ns / 1000000, (unsigned long long)ops,
	       (unsigned long long)longest / 1000000);
	return 0;
}

/* Status at the requester of one operation on memory in some state. */
static int broken(enum ibv_wr_opcode op, int prot, bool local)
{
	const size_t len = 16 * PAGE;
	struct ibv_mr *mr, *omr;
	uint8_t *mem = map(len);
	struct qv_qp a, b;
	struct ibv_wc wc;
	int status;

	qv_rc_pair(&dev, &a, &b, &cap);
	omr = qv_mr(&dev, len, ALL);
	mr = reg(mem, len, ALL);
	memset(mem, 1, len);
	/* it has been used before */
	must(&a, IBV_WR_RDMA_WRITE, omr->addr, len, omr, mem, mr->rkey);
	if (prot < 0 ? munmap(mem, len) : mprotect(mem, len, prot))
		qv_die("munmap or mprotect", errno);
	if (op == IBV_WR_SEND) {
		struct ibv_sge r = {
			.addr = (uintptr_t)(local ? omr->addr : mem),
			.length = len, .lkey = local ? omr->lkey : mr->lkey,
		};

		if (qv_recv(&b, 1, &r, 1))
			qv_die("ibv_post_recv", errno);
	}
	if (local)
		status = go(&a, op, mem, 100, mr, omr->addr, omr->rkey);
	else
		status = go(&a, op, omr->addr, 100, omr, mem, mr->rkey);
	if (op == IBV_WR_SEND && !local && status &&
	    (!qv_wait(b.rcq, &wc, 10000) ||
	     wc.status != IBV_WC_LOC_PROT_ERR))
		status = -1;
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	ibv_dereg_mr(mr);
	ibv_dereg_mr(omr);
	return status;
}

static int case_gone(void)
{
	printf("{\"write_from\": %d, \"read_into\": %d, \"write_to\": %d, "
	       "\"read_of\": %d, \"send_from\": %d, \"receive_into\": %d, ",
	       broken(IBV_WR_RDMA_WRITE, -1, true),
	       broken(IBV_WR_RDMA_READ, -1, true),
	       broken(IBV_WR_RDMA_WRITE, -1, false),
	       broken(IBV_WR_RDMA_READ, -1, false),
	       broken(IBV_WR_SEND, -1, true),
	       broken(IBV_WR_SEND, -1, false));
	printf("\"ro_write_from\": %d, \"ro_read_into\": %d, "
	       "\"ro_write_to\": %d, \"ro_read_of\": %d}\n",
	       broken(IBV_WR_RDMA_WRITE, PROT_READ, true),
	       broken(IBV_WR_RDMA_READ, PROT_READ, true),
	       broken(IBV_WR_RDMA_WRITE, PROT_READ, false),
	       broken(IBV_WR_RDMA_READ, PROT_READ, false));
	return 0;
}

/* Last-level tables the driver keeps for an implicit MR; -1: unknown. */
static long children(uint32_t key)
{
	char line[256], want[32];
	bool found = false;
	long n = -1;
	glob_t g;
	FILE *f;

	snprintf(want, sizeof(want), "mr %#x:\n", key);
	if (glob("/sys/kernel/debug/qhca/*/mrs", 0, NULL, &g))
		return -1;
	f = fopen(g.gl_pathv[0], "r");
	globfree(&g);
	while (f && fgets(line, sizeof(line), f)) {
		if (!strcmp(line, want))
			found = true;
		else if (found && sscanf(line, "\tchildren: %ld", &n) == 1)
			break;
	}
	if (f)
		fclose(f);
	return n;
}

static int case_implicit(void)
{
	uint8_t on_stack[3000], *heap = malloc(300000), *late;
	struct ibv_mr *mr, *rw;
	uint64_t i, rounds = 1500;
	bool good = true;
	struct qv_qp a, b;
	long before, most = 0, left;
	void *file;
	int fd;

	qv_rc_pair(&dev, &a, &b, &cap);
	mr = ibv_reg_mr(dev.pd, NULL, SIZE_MAX,
			ALL | IBV_ACCESS_ON_DEMAND);
	if (!mr)
		qv_die("implicit MR", errno);
	rw = mr;
	fill(on_stack, sizeof(on_stack), 1);
	must(&a, IBV_WR_RDMA_WRITE, on_stack, sizeof(on_stack), mr, heap + 5,
	     rw->rkey);
	good = !memcmp(heap + 5, on_stack, sizeof(on_stack));
	/* mapped after the MR was made, over the border of two children */
	late = mmap((void *)0x7000fff000ul - 64 * PAGE, 128 * PAGE,
		    PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
	if (late == MAP_FAILED)
		qv_die("mmap", errno);
	late = (uint8_t *)0x7001000000ul - 32 * PAGE;
	fill(heap, 40 * PAGE, 2);
	must(&a, IBV_WR_RDMA_WRITE, heap, 40 * PAGE, mr, late, rw->rkey);
	good = good && is(late, 40 * PAGE, 2);
	/* program text: to be read only */
	fd = open("/proc/self/exe", O_RDONLY);
	file = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	if (fd < 0 || file == MAP_FAILED)
		qv_die("/proc/self/exe", errno);
	must(&a, IBV_WR_RDMA_WRITE, file, PAGE, mr, heap, rw->rkey);
	good = good && !memcmp(heap, file, PAGE);
	must(&a, IBV_WR_RDMA_READ, heap, PAGE, mr, file, rw->rkey);
	/*
	 * 24 GiB of addresses, used and unmapped: the driver must free what it
	 * keeps for them, too.
	 */
	before = children(mr->lkey);
	for (i = 0; i < rounds; i++) {
		uint8_t *p = mmap((void *)(0x100000000000ul + (i << 24)), PAGE,
				  PROT_READ | PROT_WRITE,
				  MAP_PRIVATE | MAP_ANONYMOUS |
				  MAP_FIXED_NOREPLACE, -1, 0);

		if (p == MAP_FAILED)
			qv_die("mmap", errno);
		must(&a, IBV_WR_RDMA_WRITE, on_stack, 64, mr, p, rw->rkey);
		good = good && !memcmp(p, on_stack, 64);
		if (i == rounds / 2)
			most = children(mr->lkey);
		if (munmap(p, PAGE))
			qv_die("munmap", errno);
	}
	for (i = 0; i < 50 && children(mr->lkey) > before; i++)
		usleep(100000);
	left = children(mr->lkey);
	/* nothing is mapped any more: an error, and nothing is kept for it */
	printf("{\"good\": %d, \"before\": %ld, \"most\": %ld, \"left\": %ld, "
	       "\"unmapped\": %d, ", good, before, most, left,
	       go(&a, IBV_WR_RDMA_WRITE, on_stack, 64, mr,
		  (void *)0x100000000000ul, rw->rkey));
	usleep(300000);
	printf("\"then\": %ld}\n", children(mr->lkey));
	return 0;
}

static int advise(struct ibv_pd *pd, int advice, int flags, void *p,
		  size_t len, uint32_t lkey)
{
	struct ibv_sge s = {
		.addr = (uintptr_t)p, .length = len, .lkey = lkey,
	};

	return ibv_advise_mr(pd, advice, flags, &s, 1);
}

/* argument: 0 ask for nothing, 1 prefetch; then one transfer */
static int case_prefetch(int really)
{
	enum { READ = IBV_ADVISE_MR_ADVICE_PREFETCH,
	       WRITE = IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
	       NO_FAULT = IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT,
	       SYNC = IBV_ADVISE_MR_FLAG_FLUSH };
	const size_t len = 1024 * PAGE;
	uint8_t *mem = map(len), *src = map(len);
	struct ibv_mr *mr, *smr, *pinned, *ro;
	struct ibv_pd *other = ibv_alloc_pd(dev.ctx);
	struct qv_qp a, b;
	int err;

	qv_rc_pair(&dev, &a, &b, &cap);
	mr = reg(mem, len, ALL);
	smr = reg(src, len, IBV_ACCESS_LOCAL_WRITE);
	ro = reg(src, len, 0);
	pinned = qv_mr(&dev, len, ALL);
	printf("{\"errors\": [%d, %d, %d, %d, %d, %d, %d, %d], ",
	       advise(dev.pd, READ, SYNC, mem, len, pinned->lkey),
	       advise(dev.pd, READ, SYNC, mem, len, mr->lkey ^ 0x55),
	       advise(dev.pd, READ, SYNC, mem, len + 1, mr->lkey),
	       advise(other, READ, SYNC, mem, len, mr->lkey),
	       advise(dev.pd, WRITE, SYNC, src, len, ro->lkey),
	       advise(dev.pd, 77, SYNC, mem, len, mr->lkey),
	       advise(dev.pd, READ, 0, mem, len, mr->lkey),
	       advise(dev.pd, NO_FAULT, SYNC, src, len, ro->lkey));
	if (really && (err = advise(dev.pd, WRITE, SYNC, mem, len, mr->lkey)))
		qv_die("ibv_advise_mr to write", err);
	if (really && (err = advise(dev.pd, READ, SYNC, src, len, smr->lkey)))
		qv_die("ibv_advise_mr to read", err);
	must(&a, IBV_WR_RDMA_WRITE, src, len, smr, mem, mr->rkey);
	printf("\"lkey\": %u, \"source\": %u}\n", mr->lkey, smr->lkey);
	fflush(stdout);
	/* the test reads the counters now */
	if (really >= 0)
		getchar();
	return 0;
}

static int case_atomics(void)
{
	const size_t len = 64 * PAGE;
	uint64_t *mem = map(len), *res = map(len), i, n = 2000, sum = 0;
	struct ibv_send_wr wr = { 0 }, *bad;
	struct ibv_mr *mr, *rmr;
	struct ibv_sge s;
	struct ibv_qp_attr attr = { .qp_access_flags = ALL };
	struct qv_qp a, b;
	struct ibv_wc wc;
	bool good = true;

	qv_rc_pair(&dev, &a, &b, &cap);
	if (ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS))
		qv_die("ibv_modify_qp", errno);
	mr = reg(mem, len, ALL);
	rmr = reg(res, len, IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; i < n; i++) {
		s = (struct ibv_sge){ (uintptr_t)(res + i % 64 * 512), 8,
				      rmr->lkey };
		wr.sg_list = &s;
		wr.num_sge = 1;
		wr.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr.atomic.remote_addr = (uintptr_t)(mem + i % 7 * 512);
		wr.wr.atomic.rkey = mr->rkey;
		wr.wr.atomic.compare_add = 1;
		if (ibv_post_send(a.qp, &wr, &bad))
			qv_die("ibv_post_send", errno);
		if (!qv_wait(a.scq, &wc, 30000) || wc.status)
			qv_die("atomic", EIO);
		good = good && res[i % 64 * 512] == i / 7;
		/* the page goes to the swap, or just out of the table */
		if (i % 5 == 0)
			madvise(mem, len, MADV_PAGEOUT);
		if (i % 3 == 0)
			madvise(res, len, MADV_DONTNEED);
		if (i % 11 == 0 && (mprotect(mem, len, PROT_READ) ||
				    mprotect(mem, len, PROT_READ | PROT_WRITE)))
			qv_die("mprotect", errno);
	}
	for (i = 0; i < 7; i++)
		sum += mem[i * 512];
	printf("{\"good\": %d, \"sum\": %llu, \"n\": %llu}\n", good,
	       (unsigned long long)sum, (unsigned long long)n);
	return 0;
}

/*
 * A child asks for pages of its parent's memory, after the parent is gone. So as
 * not to hold that in another way, there are neither CQ nor QP.
 */
static int case_orphan(void)
{
	static uint8_t page[4096];
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, NULL, SIZE_MAX,
				       ALL | IBV_ACCESS_ON_DEMAND);
	pid_t parent = getpid(), child;
	struct ibv_sge sge;
	int err;

	if (!mr)
		qv_die("implicit MR", errno);
	child = fork();
	if (child < 0)
		qv_die("fork", errno);
	if (child)
		_exit(0);
	while (getppid() == parent)
		usleep(1000);
	sge.addr = (uintptr_t)page;
	sge.length = sizeof(page);
	sge.lkey = mr->lkey;
	err = ibv_advise_mr(dev.pd, IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE,
			    IBV_ADVISE_MR_FLAG_FLUSH, &sge, 1);
	printf("{\"refused\": %d}\n", err);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	qv_open(&dev);
	if (!strcmp(what, "fork"))
		return case_fork();
	if (!strcmp(what, "churn"))
		return case_churn(n ? n : 5);
	if (!strcmp(what, "swap"))
		return case_swap(n ? n : 32);
	if (!strcmp(what, "slow") && argc > 2)
		return case_slow(argv[2]);
	if (!strcmp(what, "gone"))
		return case_gone();
	if (!strcmp(what, "implicit"))
		return case_implicit();
	if (!strcmp(what, "prefetch"))
		return case_prefetch(n);
	if (!strcmp(what, "atomics"))
		return case_atomics();
	if (!strcmp(what, "orphan"))
		return case_orphan();
	qv_die("no such case", EINVAL);
}
