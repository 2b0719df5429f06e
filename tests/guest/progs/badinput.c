// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * badinput CASE: misuse the adapter in one way and report which errors each
 * side gets.
 *
 * Two RC QPs of this process talk to each other (a sends, b receives); a
 * second, idle pair must still work afterwards.  Output, one JSON object:
 *   local  status of a's completion of the bad request, -1: none
 *   remote status of b's completion, -1: none
 *   flushed status of the request posted after the bad one, -1: none
 *   event  first asynchronous event, -1: none
 *   state  a's state at the end (ibv_qp_state)
 *   bystander  1 if the other pair still moves data
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qv.h"

#define LEN 8192

struct result {
	int local, remote, flushed, event;
};

static struct qv_dev dev;
static struct qv_qp a, b, c, d;
static struct qv_qp last, idle;	/* see event_of_case() */
static struct ibv_mr *src, *dst;

static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ |
			  IBV_ACCESS_REMOTE_WRITE;

static struct ibv_sge sge(struct ibv_mr *mr, uint32_t len)
{
	struct ibv_sge s = {
		.addr = (uintptr_t)mr->addr, .length = len, .lkey = mr->lkey,
	};

	return s;
}

/* A raw, correct RDMA write of 64 bytes in the slot of the next index. */
static struct qhca_sq_wqe *raw_write(void)
{
	struct qhca_sq_wqe *w = qv_sq_slot(&a, a.posted);
	struct qhca_sge *s = (struct qhca_sge *)(w + 1);

	memset(w, 0, a.sq_stride);
	w->ctrl.opcode = QHCA_WQE_RDMA_WRITE;
	w->ctrl.flags = QHCA_WQE_F_SIGNALED;
	w->ctrl.num_sge = 1;
	w->ctrl.wr_id = 77;
	w->remote.addr = (uintptr_t)dst->addr;
	w->remote.rkey = dst->rkey;
	s->addr = (uintptr_t)src->addr;
	s->len = 64;
	s->lkey = src->lkey;
	return w;
}

/*
 * The asynchronous event of the case, or -1: events come in the order in which
 * the device raises them, so it would come before the one of a QP that is rung
 * beyond its ring now.
 */
static int event_of_case(void)
{
	struct pollfd p = { .fd = dev.ctx->async_fd, .events = POLLIN };
	struct ibv_async_event ev;
	int type = -1;
	bool ours;

	qv_ring(&dev, last.qp->qp_num, last.posted + 0x100000);
	do {
		if (poll(&p, 1, 60000 * qv_pace()) != 1)
			qv_die("no event of the QP that was rung last", ETIMEDOUT);
		if (ibv_get_async_event(dev.ctx, &ev))
			qv_die("ibv_get_async_event", errno);
		ours = ev.event_type == IBV_EVENT_QP_FATAL &&
		       ev.element.qp == last.qp;
		if (!ours && type < 0)
			type = ev.event_type;
		ibv_ack_async_event(&ev);
	} while (!ours);
	return type;
}

static void collect(struct result *r, bool want_remote, bool follow_up)
{
	struct ibv_sge s = sge(src, 16);
	struct ibv_wc wc;

	r->local = qv_wait(a.scq, &wc, 20000) ? (int)wc.status : -1;
	if (follow_up) {
		int ret = qv_send(&a, IBV_WR_RDMA_WRITE, 88, &s, 1,
				  (uintptr_t)dst->addr, dst->rkey);

		r->flushed = !ret && qv_wait(a.scq, &wc, 20000) ?
			(int)wc.status : -1;
	}
	if (want_remote)
		r->remote = qv_wait(b.rcq, &wc, 20000) ? (int)wc.status : -1;
	r->event = event_of_case();
}

static void bad_qpn(struct result *r)
{
	qv_ring(&dev, 0xabcde, 1);
	/* a's own doorbell still works: no completion is lost or spurious */
	raw_write();
	qv_ring(&dev, a.qp->qp_num, ++a.posted);
	collect(r, false, false);
}

/* Another process rings this QP's doorbell: it must have no effect. */
static void foreign_qpn(struct result *r)
{
	pid_t pid;
	int status;
	struct ibv_wc wc;

	raw_write();
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		qv_die("fork", errno);
	if (!pid) {
		char qpn[16], head[16];

		snprintf(qpn, sizeof(qpn), "%u", a.qp->qp_num);
		snprintf(head, sizeof(head), "%u", a.posted + 1);
		execl("/proc/self/exe", "badinput", "ring", qpn, head, NULL);
		_exit(3);
	}
	if (waitpid(pid, &status, 0) != pid || status)
		qv_die("the ringing process failed", ECHILD);
	r->local = qv_wait(a.scq, &wc, 1000) ? (int)wc.status : -1;
	r->event = event_of_case();
}

static void beyond_ring(struct result *r)
{
	struct ibv_wc wc;

	raw_write();
	qv_ring(&dev, a.qp->qp_num, a.posted + a.sq_depth + 1);
	/* a completion would have come before the events did */
	r->event = event_of_case();
	r->local = ibv_poll_cq(a.scq, 1, &wc) ? (int)wc.status : -1;
}

static void bad_opcode(struct result *r)
{
	raw_write()->ctrl.opcode = 0x7b;
	qv_ring(&dev, a.qp->qp_num, ++a.posted);
	collect(r, false, false);
}

static void too_many_sges(struct result *r)
{
	raw_write()->ctrl.num_sge = 1000;
	qv_ring(&dev, a.qp->qp_num, ++a.posted);
	collect(r, false, false);
}

static void bad_lkey(struct result *r)
{
	struct ibv_sge s = sge(src, 64);

	s.lkey ^= 0x55;
	if (qv_send(&a, IBV_WR_RDMA_WRITE, 1, &s, 1, (uintptr_t)dst->addr,
		    dst->rkey))
		qv_die("ibv_post_send", errno);
	collect(r, false, true);
}

static void lkey_bounds(struct result *r)
{
	struct ibv_sge s = sge(src, LEN + 1);

	if (qv_send(&a, IBV_WR_RDMA_WRITE, 1, &s, 1, (uintptr_t)dst->addr,
		    dst->rkey))
		qv_die("ibv_post_send", errno);
	collect(r, false, true);
}

static void bad_rkey(struct result *r)
{
	struct ibv_sge s = sge(src, 64);

	if (qv_send(&a, IBV_WR_RDMA_WRITE, 1, &s, 1, (uintptr_t)dst->addr,
		    dst->rkey ^ 0x55))
		qv_die("ibv_post_send", errno);
	collect(r, false, true);
}

static void rkey_bounds(struct result *r)
{
	struct ibv_sge s = sge(src, 64);

	if (qv_send(&a, IBV_WR_RDMA_READ, 1, &s, 1,
		    (uintptr_t)dst->addr + LEN - 63, dst->rkey))
		qv_die("ibv_post_send", errno);
	collect(r, false, true);
}

/* A receive buffer one byte too small. */
static void short_receive(struct result *r)
{
	struct ibv_sge s = sge(src, 64), t = sge(dst, 63);

	if (qv_recv(&b, 2, &t, 1))
		qv_die("ibv_post_recv", errno);
	if (qv_send(&a, IBV_WR_SEND, 1, &s, 1, 0, 0))
		qv_die("ibv_post_send", errno);
	collect(r, true, true);
}

/* The receive WQE has a key that does not exist. */
static void receive_bad_lkey(struct result *r)
{
	struct ibv_sge s = sge(src, 64), t = sge(dst, 64);

	t.lkey ^= 0x55;
	if (qv_recv(&b, 2, &t, 1))
		qv_die("ibv_post_recv", errno);
	if (qv_send(&a, IBV_WR_SEND, 1, &s, 1, 0, 0))
		qv_die("ibv_post_send", errno);
	collect(r, true, true);
}

/*
 * The MR's memory cannot be reached: the test breaks the table from outside
 * between "ready" and the line it writes to our stdin.
 */
static void broken_mr(struct result *r)
{
	struct ibv_sge s = sge(src, 4096);
	char line[16];

	fprintf(stderr, "ready lkey=%u rkey=%u qpn=%u\n", src->lkey, dst->rkey,
		a.qp->qp_num);
	if (!fgets(line, sizeof(line), stdin))
		qv_die("stdin", EPIPE);
	if (qv_send(&a, IBV_WR_RDMA_WRITE, 1, &s, 1, (uintptr_t)dst->addr,
		    dst->rkey))
		qv_die("ibv_post_send", errno);
	collect(r, false, true);
}

/*
 * The same for the SQ: a WQE cannot be fetched.  The device may keep some of
 * the table it has read, so the entry broken is that of page BROKEN_PAGE, and
 * all WQEs before it must still work.
 */
#define BROKEN_PAGE 8

static void broken_sq(struct result *r)
{
	uint32_t end = BROKEN_PAGE * sysconf(_SC_PAGESIZE) / a.sq_stride;
	struct ibv_wc wc;
	char line[16];
	uint32_t i;

	fprintf(stderr, "ready qpn=%u\n", a.qp->qp_num);
	if (!fgets(line, sizeof(line), stdin))
		qv_die("stdin", EPIPE);
	for (i = a.posted; i < end; i++) {
		raw_write();
		qv_ring(&dev, a.qp->qp_num, ++a.posted);
		if (!qv_wait(a.scq, &wc, 20000) || wc.status)
			qv_die("a WQE before the broken page failed", EIO);
	}
	raw_write();
	qv_ring(&dev, a.qp->qp_num, ++a.posted);
	collect(r, false, false);
}

static const struct {
	const char *name;
	void (*run)(struct result *r);
} cases[] = {
	{ "bad_qpn", bad_qpn },
	{ "foreign_qpn", foreign_qpn },
	{ "beyond_ring", beyond_ring },
	{ "bad_opcode", bad_opcode },
	{ "too_many_sges", too_many_sges },
	{ "bad_lkey", bad_lkey },
	{ "lkey_bounds", lkey_bounds },
	{ "bad_rkey", bad_rkey },
	{ "rkey_bounds", rkey_bounds },
	{ "short_receive", short_receive },
	{ "receive_bad_lkey", receive_bad_lkey },
	{ "broken_mr", broken_mr },
	{ "broken_sq", broken_sq },
};

static int bystander(void)
{
	struct ibv_sge s = sge(src, LEN), t = sge(dst, LEN);
	struct ibv_wc wc;
	int i;

	for (i = 0; i < LEN; i++)
		((uint8_t *)src->addr)[i] = i * 7 + i / 256;
	memset(dst->addr, 0, LEN);
	if (qv_recv(&d, 5, &t, 1) || qv_send(&c, IBV_WR_SEND, 6, &s, 1, 0, 0))
		return 0;
	if (!qv_wait(c.scq, &wc, 10000) || wc.status)
		return 0;
	if (!qv_wait(d.rcq, &wc, 10000) || wc.status || wc.byte_len != LEN)
		return 0;
	return !memcmp(src->addr, dst->addr, LEN);
}

int main(int argc, char **argv)
{
	/* rings of several pages, for broken_sq */
	const struct ibv_qp_cap cap = {
		.max_send_wr = 1024, .max_recv_wr = 32,
		.max_send_sge = 1, .max_recv_sge = 1,
	};
	struct result r = { -1, -1, -1, -1 };
	struct ibv_qp_init_attr ia;
	struct ibv_qp_attr attr;
	struct ibv_mr *by_src, *by_dst;
	unsigned i;
	int ok;

	if (argc < 2) {
		fprintf(stderr, "usage: badinput CASE\n");
		return 1;
	}
	/* the index in the doorbell counts */
	setenv("QHCA_ALWAYS_RING", "1", 1);
	qv_open(&dev);
	if (!strcmp(argv[1], "ring") && argc == 4) {
		/* ring a QP of another process through our own page */
		qv_ring(&dev, atoi(argv[2]), atoi(argv[3]));
		return 0;
	}
	src = qv_mr(&dev, LEN, rights);
	dst = qv_mr(&dev, LEN, rights);
	qv_rc_pair(&dev, &a, &b, &cap);
	qv_rc_pair(&dev, &c, &d, &cap);
	qv_rc_pair(&dev, &last, &idle, &cap);
	qv_find_sq(&a);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (!strcmp(cases[i].name, argv[1]))
			break;
	if (i == sizeof(cases) / sizeof(cases[0])) {
		fprintf(stderr, "badinput: no case '%s'\n", argv[1]);
		return 1;
	}
	cases[i].run(&r);
	if (ibv_query_qp(a.qp, &attr, IBV_QP_STATE, &ia))
		qv_die("ibv_query_qp", errno);
	/* fresh memory: the case may have broken the old one */
	by_src = qv_mr(&dev, LEN, rights);
	by_dst = qv_mr(&dev, LEN, rights);
	src = by_src;
	dst = by_dst;
	ok = bystander();
	printf("{\"local\": %d, \"remote\": %d, \"flushed\": %d, "
	       "\"event\": %d, \"state\": %d, \"bystander\": %d}\n",
	       r.local, r.remote, r.flushed, r.event, attr.qp_state, ok);
	return 0;
}
