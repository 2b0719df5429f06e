// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * memory CASE [ARG]: memory regions that change, memory windows, queues that
 * change their size; on loopback.  Prints one JSON object: {"CASE": "ok"}, what
 * was wrong, or for "register" the milliseconds it took.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "qv.h"

#define LEN	(1 << 20)
#define RUN_MS	1500

static struct qv_dev dev;
static struct ibv_mr *src;

static const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
		       IBV_ACCESS_REMOTE_READ;
static const struct ibv_qp_cap cap = {
	.max_send_wr = 32, .max_recv_wr = 32,
	.max_send_sge = 1, .max_recv_sge = 1,
};

/* One RDMA request of @len bytes from the source; its status must be @status */
static void request(struct qv_qp *q, enum ibv_wr_opcode op, uint64_t raddr,
		    uint32_t rkey, uint32_t len, int status, const char *what)
{
	struct ibv_sge s = { (uintptr_t)src->addr, len, src->lkey };

	if (qv_send(q, op, 1, &s, 1, raddr, rkey))
		qv_wrong("%s: posting", what);
	qv_next_is(q->scq, status, what);
}

/* ------------------------------------------------------------- windows -- */

static struct ibv_mw *window(enum ibv_mw_type type)
{
	struct ibv_mw *mw = ibv_alloc_mw(dev.pd, type);

	if (!mw)
		qv_die("ibv_alloc_mw", errno);
	return mw;
}

static void bind2(struct qv_qp *q, struct ibv_mw *mw, struct ibv_mr *mr,
		  uint64_t off, uint64_t len, unsigned int flags, int status)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw, .rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = {
				.mr = mr, .addr = (uintptr_t)mr->addr + off,
				.length = len, .mw_access_flags = flags,
			},
		},
	};
	int ret = ibv_post_send(q->qp, &wr, &bad);

	if (ret)
		qv_wrong("posting a bind: %d", ret);
	qv_next_is(q->scq, status, "bind of type 2");
	mw->rkey = wr.bind_mw.rkey;
}

static void bind1(struct qv_qp *q, struct ibv_mw *mw, struct ibv_mr *mr,
		  uint64_t off, uint64_t len, unsigned int flags)
{
	struct ibv_mw_bind bind = {
		.send_flags = IBV_SEND_SIGNALED,
		.bind_info = {
			.mr = mr, .addr = (uintptr_t)mr->addr + off,
			.length = len, .mw_access_flags = flags,
		},
	};
	int ret = ibv_bind_mw(q->qp, mw, &bind);

	if (ret)
		qv_wrong("ibv_bind_mw: %d", ret);
	qv_next_is(q->scq, IBV_WC_SUCCESS, "bind of type 1");
}

static void local_inv(struct qv_qp *q, uint32_t rkey)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_LOCAL_INV, .send_flags = IBV_SEND_SIGNALED,
		.invalidate_rkey = rkey,
	};

	if (ibv_post_send(q->qp, &wr, &bad))
		qv_wrong("posting an invalidate");
	qv_next_is(q->scq, IBV_WC_SUCCESS, "local invalidate");
}

/* A window has its own rights and bounds; each violation costs a pair. */
static void windows(void)
{
	static const struct {
		const char *what;
		bool type2, zero;
		int flags, op;
		int64_t at;		/* from the window's first byte */
		uint32_t len;
		int status;
	} t[] = {
		{ "write", 0, 0, IBV_ACCESS_REMOTE_WRITE, IBV_WR_RDMA_WRITE,
		  0, 4096, IBV_WC_SUCCESS },
		{ "read", 1, 0, IBV_ACCESS_REMOTE_READ, IBV_WR_RDMA_READ,
		  96, 4000, IBV_WC_SUCCESS },
		{ "zero-based", 1, 1, IBV_ACCESS_REMOTE_WRITE,
		  IBV_WR_RDMA_WRITE, 4095, 1, IBV_WC_SUCCESS },
		{ "no right to read", 0, 0, IBV_ACCESS_REMOTE_WRITE,
		  IBV_WR_RDMA_READ, 0, 1, IBV_WC_REM_ACCESS_ERR },
		{ "no right to write", 1, 1, IBV_ACCESS_REMOTE_READ,
		  IBV_WR_RDMA_WRITE, 0, 1, IBV_WC_REM_ACCESS_ERR },
		{ "before it", 0, 0, IBV_ACCESS_REMOTE_WRITE,
		  IBV_WR_RDMA_WRITE, -1, 2, IBV_WC_REM_ACCESS_ERR },
		{ "behind it", 1, 0, IBV_ACCESS_REMOTE_WRITE,
		  IBV_WR_RDMA_WRITE, 4095, 2, IBV_WC_REM_ACCESS_ERR },
		{ "behind it, zero-based", 1, 1, IBV_ACCESS_REMOTE_WRITE,
		  IBV_WR_RDMA_WRITE, 4096, 1, IBV_WC_REM_ACCESS_ERR },
	};
	struct ibv_mr *mr = qv_mr(&dev, LEN, IBV_ACCESS_LOCAL_WRITE |
				  IBV_ACCESS_MW_BIND);
	unsigned int i;

	for (i = 0; i < sizeof(t) / sizeof(t[0]); i++) {
		struct ibv_mw *mw = window(t[i].type2 ? IBV_MW_TYPE_2 :
					   IBV_MW_TYPE_1);
		uint64_t base = t[i].zero ? 0 : (uintptr_t)mr->addr + 5000;
		int flags = t[i].flags | (t[i].zero ? IBV_ACCESS_ZERO_BASED : 0);
		struct qv_qp a, b;

		qv_rc_pair(&dev, &a, &b, &cap);
		if (t[i].type2)
			bind2(&b, mw, mr, 5000, 4096, flags, IBV_WC_SUCCESS);
		else
			bind1(&b, mw, mr, 5000, 4096, flags);
		memset(src->addr, i + 1, 4096);
		memset(mr->addr, 0x80 + i, LEN);
		request(&a, t[i].op, base + t[i].at, mw->rkey, t[i].len,
			t[i].status, t[i].what);
		if (t[i].status == IBV_WC_SUCCESS &&
		    memcmp(src->addr, (char *)mr->addr + 5000 + t[i].at,
			   t[i].len))
			qv_wrong("%s: other bytes", t[i].what);
		if (ibv_dereg_mr(mr) != EBUSY)
			qv_wrong("%s: its region was deregistered", t[i].what);
		if (ibv_dealloc_mw(mw))
			qv_wrong("%s: ibv_dealloc_mw", t[i].what);
		qv_qp_destroy(&a);
		qv_qp_destroy(&b);
	}
	if (ibv_dereg_mr(mr))
		qv_wrong("dereg after the windows");
}

/* A type 2 window works only on its QP: on no other, and no later one */
static void window_owner(void)
{
	struct ibv_mr *mr = qv_mr(&dev, LEN, IBV_ACCESS_LOCAL_WRITE |
				  IBV_ACCESS_MW_BIND);
	struct ibv_mw *mw = window(IBV_MW_TYPE_2);
	struct qv_qp a, b, c, d;
	uint32_t old;

	qv_rc_pair(&dev, &a, &b, &cap);
	qv_rc_pair(&dev, &c, &d, &cap);
	bind2(&b, mw, mr, 0, 100, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS);
	request(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mr->addr, mw->rkey, 100,
		IBV_WC_SUCCESS, "by its QP");
	request(&c, IBV_WR_RDMA_WRITE, (uintptr_t)mr->addr, mw->rkey, 100,
		IBV_WC_REM_ACCESS_ERR, "by another QP");
	local_inv(&b, mw->rkey);
	old = mw->rkey;
	bind2(&b, mw, mr, 200, 100, IBV_ACCESS_REMOTE_WRITE, IBV_WC_SUCCESS);
	request(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mr->addr + 200, mw->rkey,
		100, IBV_WC_SUCCESS, "bound again");
	/* bound twice: the QP fails, the window is unchanged */
	bind2(&b, mw, mr, 0, 1, IBV_ACCESS_REMOTE_READ, IBV_WC_MW_BIND_ERR);
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	/* its QP is gone: nothing is bound to the region */
	if (ibv_dereg_mr(mr))
		qv_wrong("the window outlives its QP");
	qv_qp_destroy(&c);
	qv_qp_destroy(&d);
	qv_rc_pair(&dev, &a, &b, &cap);
	request(&a, IBV_WR_RDMA_WRITE, 0, old, 1, IBV_WC_REM_ACCESS_ERR,
		"an old key");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	if (ibv_dealloc_mw(mw))
		qv_wrong("ibv_dealloc_mw");
}

/* The address of a zero-based region counts from its first byte, anywhere. */
static void zero_based(void)
{
	char *mem = malloc(LEN);
	struct ibv_mr *mr = ibv_reg_mr(dev.pd, mem + 1234, 50000,
				       all | IBV_ACCESS_ZERO_BASED);
	struct ibv_sge s = { .addr = 49000, .length = 1000 };
	struct qv_qp a, b;

	if (!mr)
		qv_die("zero-based ibv_reg_mr", errno);
	qv_rc_pair(&dev, &a, &b, &cap);
	memset(src->addr, 0x21, 1000);
	memset(mem, 0, LEN);
	request(&a, IBV_WR_RDMA_WRITE, 49000, mr->rkey, 1000, IBV_WC_SUCCESS,
		"the last bytes");
	if (memcmp(mem + 1234 + 49000, src->addr, 1000) || mem[1234 + 50000])
		qv_wrong("written elsewhere");
	/* by its own side, too */
	s.lkey = mr->lkey;
	memset(src->addr, 0x42, 1000);
	if (qv_send(&a, IBV_WR_RDMA_READ, 1, &s, 1, (uintptr_t)src->addr,
		    src->rkey))
		qv_wrong("posting a read");
	qv_next_is(a.scq, IBV_WC_SUCCESS, "a read into it");
	if (memcmp(mem + 1234 + 49000, src->addr, 1000))
		qv_wrong("read to elsewhere");
	request(&a, IBV_WR_RDMA_WRITE, 49000, mr->rkey, 1001,
		IBV_WC_REM_ACCESS_ERR, "beyond the end");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	if (ibv_dereg_mr(mr))
		qv_wrong("dereg");
	free(mem);
}

/* ----------------------------------------------------- under traffic -- */

struct traffic {
	struct qv_qp a, b;
	struct ibv_mr *mr;
	atomic_bool stop;
	unsigned long done;
};

/* WRITEs without a pause; every one must succeed, in order. */
static void *stream(void *arg)
{
	struct traffic *t = arg;
	struct ibv_sge s = { (uintptr_t)src->addr, 3000, src->lkey };
	unsigned long posted = 0;
	struct ibv_wc wc;

	while (!qv_why[0]) {
		while (!t->stop && posted - t->done < cap.max_send_wr) {
			if (qv_send(&t->a, IBV_WR_RDMA_WRITE, posted, &s, 1,
				    (uintptr_t)t->mr->addr, t->mr->rkey)) {
				qv_wrong("posting");
				return NULL;
			}
			posted++;
		}
		if (t->done == posted)
			break;
		if (!qv_wait(t->a.scq, &wc, 10000)) {
			qv_wrong("write %lu of %lu: no completion", t->done,
			      posted);
		} else if (wc.status || wc.wr_id != t->done) {
			qv_wrong("write %lu: status %d, wr_id %lu", t->done,
			      wc.status, (unsigned long)wc.wr_id);
		}
		t->done++;
	}
	return NULL;
}

static void start(struct traffic *t, pthread_t *thread)
{
	memset(t, 0, sizeof(*t));
	qv_rc_pair(&dev, &t->a, &t->b, &cap);
	t->mr = qv_mr(&dev, LEN, all);
	if (pthread_create(thread, NULL, stream, t))
		qv_die("pthread_create", errno);
}

static void finish(struct traffic *t, pthread_t thread)
{
	t->stop = true;
	pthread_join(thread, NULL);
	if (t->done < 200)
		qv_wrong("only %lu writes went by", t->done);
	qv_qp_destroy(&t->a);
	qv_qp_destroy(&t->b);
	if (ibv_dereg_mr(t->mr))
		qv_wrong("dereg");
}

/* At least @least changes, and until @end; taking too long is an error. */
static bool go_on(long end, int n, int least)
{
	if (qv_now() > end + 30000 * qv_pace())
		qv_wrong("only %d changes in half a minute and more", n);
	return !qv_why[0] && (n < least || qv_now() < end);
}

/* In a child the same address is other memory: it cannot be pinned instead. */
static void rereg_in_child(struct ibv_mr *mr, int access)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		_exit(!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL,
				    0, access) || errno != EOPNOTSUPP);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		qv_wrong("a child makes memory of its parent writable");
}

/*
 * Other pages, rights and PDs for a region under traffic.  The address stays, so
 * no WRITE may fail; what is written after the call is in the new pages.
 */
static void rereg(void)
{
	struct ibv_pd *other = ibv_alloc_pd(dev.ctx);
	struct traffic t;
	pthread_t thread;
	long end;
	int n = 0;

	start(&t, &thread);
	for (end = qv_now() + RUN_MS; go_on(end, n, 10); n++) {
		void *p = mmap(t.mr->addr, LEN, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		int ret;

		if (p != t.mr->addr)
			qv_die("mmap", errno);
		ret = ibv_rereg_mr(t.mr, IBV_REREG_MR_CHANGE_TRANSLATION |
				   (n & 1 ? IBV_REREG_MR_CHANGE_ACCESS : 0),
				   NULL, p, LEN, n & 1 ? all : 0);
		if (ret)
			qv_wrong("rereg %d: %d, %s", n, ret, strerror(errno));
	}
	finish(&t, thread);
	if (qv_why[0])
		return;

	/* each change alone, and its effect */
	struct ibv_mr *mr = qv_mr(&dev, LEN, all);
	struct qv_qp a, b;

	qv_rc_pair(&dev, &a, &b, &cap);
	memset(src->addr, 0x5d, 64);
	request(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mr->addr, mr->rkey, 64,
		IBV_WC_SUCCESS, "before");
	if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, NULL, 0, 0))
		qv_wrong("rereg to another PD");
	request(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mr->addr, mr->rkey, 64,
		IBV_WC_REM_ACCESS_ERR, "from another PD");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	if (ibv_dealloc_pd(other) != EBUSY)
		qv_wrong("a PD with a region was freed");
	/* bad arguments change nothing */
	if (!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL,
			  (void *)(1UL << 46), LEN, 0))
		qv_wrong("rereg to no memory");
	if (!ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
			  IBV_ACCESS_REMOTE_WRITE))
		qv_wrong("remote write without local write");
	if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD |
			 IBV_REREG_MR_CHANGE_ACCESS, dev.pd, NULL, 0,
			 IBV_ACCESS_REMOTE_READ))
		qv_wrong("rereg back, for reading");
	qv_rc_pair(&dev, &a, &b, &cap);
	request(&a, IBV_WR_RDMA_READ, (uintptr_t)mr->addr, mr->rkey, 64,
		IBV_WC_SUCCESS, "a read");
	if (*(char *)src->addr != 0x5d)
		qv_wrong("the region was changed");
	request(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mr->addr, mr->rkey, 64,
		IBV_WC_REM_ACCESS_ERR, "a write");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	if (ibv_dereg_mr(mr) || ibv_dealloc_pd(other))
		qv_wrong("cleaning up");

	/* memory that could be read only, registered as such, then written */
	mr = qv_mr(&dev, LEN, IBV_ACCESS_REMOTE_READ);
	rereg_in_child(mr, all);
	if (ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, all))
		qv_wrong("rereg for writing");
	qv_rc_pair(&dev, &a, &b, &cap);
	memset(src->addr, 0x6e, 64);
	request(&a, IBV_WR_RDMA_WRITE, (uintptr_t)mr->addr + 100, mr->rkey, 64,
		IBV_WC_SUCCESS, "a write after rereg");
	if (memcmp((char *)mr->addr + 100, src->addr, 64))
		qv_wrong("a write after rereg went elsewhere");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	ibv_dereg_mr(mr);
}

/* The CQ of a stream gets larger and smaller; nothing is lost. */
static void cq_resize(void)
{
	static const int sizes[] = { 64, 1000, 200, 4096, 100, 70000, 128 };
	struct traffic t;
	pthread_t thread;
	long end;
	int n = 0;

	start(&t, &thread);
	for (end = qv_now() + RUN_MS; go_on(end, n, 20); n++) {
		int want = sizes[n % 7];
		int ret = ibv_resize_cq(t.a.scq, want);

		if (ret)
			qv_wrong("resize %d to %d: %d", n, want, ret);
		else if (t.a.scq->cqe < want)
			qv_wrong("resize to %d gave %d", want, t.a.scq->cqe);
		usleep(1000);
	}
	finish(&t, thread);
}

/* An SRQ that is too small grows while messages arrive; all come, in order. */
static void srq_resize(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 8,
						    .max_sge = 1 } };
	struct ibv_srq *srq = ibv_create_srq(dev.pd, &init);
	struct ibv_mr *mr = qv_mr(&dev, LEN, all);
	struct ibv_srq_attr attr = init.attr;
	struct qv_qp a, b;
	unsigned int posted = 0, sent = 0, got = 0, done = 0;
	struct ibv_recv_wr *bad;
	bool full = false;
	struct ibv_wc wc;

	if (!srq)
		qv_die("ibv_create_srq", errno);
	qv_qp_create(&dev, &a, IBV_QPT_RC, &cap);
	qv_qp_create_srq(&dev, &b, IBV_QPT_RC, &cap, srq);
	qv_qp_init(&a, all);
	qv_qp_init(&b, all);
	qv_qp_connect(&dev, &a, b.qp->qp_num);
	qv_qp_connect(&dev, &b, a.qp->qp_num);
	while (got < 5000 && !qv_why[0]) {
		struct ibv_sge to = { (uintptr_t)mr->addr + posted % 4096 * 64,
				      64, mr->lkey };
		struct ibv_recv_wr wr = { .wr_id = posted, .sg_list = &to,
					  .num_sge = 1 };
		struct ibv_sge s = { (uintptr_t)src->addr, 64, src->lkey };

		if (!ibv_post_srq_recv(srq, &wr, &bad)) {
			posted++;
		} else if (attr.max_wr < 4096) {
			attr.max_wr *= 2;
			if (ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR))
				qv_wrong("no room for %u", attr.max_wr);
			ibv_query_srq(srq, &attr);
		} else {
			full = true;
		}
		if (sent - done < cap.max_send_wr && sent < posted &&
		    ((posted & 3) || full)) {
			if (qv_send(&a, IBV_WR_SEND, sent, &s, 1, 0, 0))
				qv_wrong("posting");
			sent++;
		}
		while (ibv_poll_cq(a.scq, 1, &wc) == 1) {
			if (wc.status || wc.wr_id != done)
				qv_wrong("send %u: %d", done, wc.status);
			done++;
		}
		while (ibv_poll_cq(b.rcq, 1, &wc) == 1) {
			if (wc.status || wc.wr_id != got)
				qv_wrong("receive %u: status %d wr_id %lu", got,
				      wc.status, (unsigned long)wc.wr_id);
			got++;
		}
	}
	if (attr.max_wr < 1024)
		qv_wrong("it grew to %u only", attr.max_wr);
	/* less than is posted, and less than nothing */
	attr.max_wr = posted - got - 1;
	if (posted - got > 1 &&
	    ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) != EINVAL)
		qv_wrong("less than what is posted");
	attr.max_wr = 1 << 30;
	if (ibv_modify_srq(srq, &attr, IBV_SRQ_MAX_WR) != EINVAL)
		qv_wrong("more than there can be");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	if (ibv_destroy_srq(srq) || ibv_dereg_mr(mr))
		qv_wrong("cleaning up");
}

/* ------------------------------------------------------- registration -- */

static double now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

/* Best of five registrations of @mib MiB that are already in memory. */
static void measure(size_t mib, bool huge)
{
	size_t len = mib << 20, i;
	double best = 1e9, took;
	char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		qv_die("mmap", errno);
	madvise(p, len, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	for (i = 0; i < len; i += 4096)
		p[i] = 1;
	for (i = 0; i < 5; i++) {
		double begin = now_ms();
		struct ibv_mr *mr = ibv_reg_mr(dev.pd, p, len, all);

		took = now_ms() - begin;
		if (!mr)
			qv_die("ibv_reg_mr", errno);
		if (took < best)
			best = took;
		if (ibv_dereg_mr(mr))
			qv_die("ibv_dereg_mr", errno);
	}
	printf("{\"register\": %.3f}\n", best);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} cases[] = {
		{ "windows", windows }, { "window_owner", window_owner },
		{ "zero_based", zero_based }, { "rereg", rereg },
		{ "cq_resize", cq_resize }, { "srq_resize", srq_resize },
	};
	const char *name = argc > 1 ? argv[1] : "";
	unsigned int i;

	qv_open(&dev);
	if (!strcmp(name, "register") && argc > 3) {
		measure(atoi(argv[2]), !strcmp(argv[3], "huge"));
		return 0;
	}
	src = qv_mr(&dev, LEN, all);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(cases[i].name, name))
			continue;
		cases[i].run();
		printf("{\"%s\": \"%s\"}\n", name, qv_why[0] ? qv_why : "ok");
		return 0;
	}
	fprintf(stderr, "no case %s\n", name);
	return 2;
}
