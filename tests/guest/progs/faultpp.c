// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * faultpp [OPTIONS] [ADDRESS]: messages between two guests, one at a time, and
 * their outcome.  Without ADDRESS it waits for the peer.
 *
 *   --op send|write|read  what the one with ADDRESS does (default: send, which
 *                         the other answers with a send)
 *   --len N --iters N     bytes (default 64) and messages (default 10)
 *   --timeout CODE        default 20, 4 s: no delay of a busy host comes near
 *   --retry N --rnr-retry N --rnr-timer CODE
 *   --rkey DELTA          name a key that is not the other's
 *   --odp range|implicit  its memory is paged on demand
 *   --events              sleep until a completion event comes, do not poll
 *   --wait MS             for each completion (default 60000)
 *
 * Prints one JSON object: messages "done", the "status" of the last completion
 * (-1: none came), messages with "wrong" bytes, asynchronous "events", the
 * "state" of the QP.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qv.h"

#define PORT	18601
#define HALF	(1 << 20)

struct hello {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

static struct qv_dev dev;
static struct qv_qp q;
static struct ibv_mr *mr;
static uint8_t *memory;	/* the second half is for what is received */
static struct ibv_comp_channel *channel;
static int len = 64, iters = 10, wait_ms, wrong;
static int fd = -1;	/* the connection to the peer */

static const struct ibv_qp_cap cap = {
	.max_send_wr = 8, .max_recv_wr = 8, .max_send_sge = 1, .max_recv_sge = 1,
};

static void create_with_events(void)
{
	channel = ibv_create_comp_channel(dev.ctx);
	if (!channel)
		qv_die("ibv_create_comp_channel", errno);
	q.scq = ibv_create_cq(dev.ctx, 32, NULL, channel, 0);
	q.rcq = ibv_create_cq(dev.ctx, 32, NULL, channel, 0);
	if (!q.scq || !q.rcq)
		qv_die("ibv_create_cq", errno);
	q.init.send_cq = q.scq;
	q.init.recv_cq = q.rcq;
	q.init.qp_type = IBV_QPT_RC;
	q.init.cap = cap;
	q.qp = ibv_create_qp(dev.pd, &q.init);
	if (!q.qp)
		qv_die("ibv_create_qp", errno);
}

static uint8_t byte_of(int message, int i)
{
	return (uint8_t)(message * 31 + i * 7);
}

static void fill(uint8_t *p, int message)
{
	int i;

	for (i = 0; i < len; i++)
		p[i] = byte_of(message, i);
}

static void check(const uint8_t *p, int message)
{
	int i;

	for (i = 0; i < len; i++) {
		if (p[i] != byte_of(message, i)) {
			wrong++;
			return;
		}
	}
}

/*
 * Has the peer stopped sending? It says so, or its end of the connection is
 * closed.
 */
static bool other_done(void)
{
	return poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) > 0;
}

/* Polling reports it when the device is gone. */
static void arm(struct ibv_cq *cq)
{
	int err = ibv_req_notify_cq(cq, 0);

	if (err && err != EIO)
		qv_die("ibv_req_notify_cq", err);
}

/*
 * The next completion of @cq: its status, or -1 when none has come in wait_ms,
 * or when it would be a receive and the peer is done: everything it has sent
 * that arrived was completed before the peer learned of it.
 */
static int next(struct ibv_cq *cq)
{
	struct pollfd p[] = {
		{ .fd = channel ? channel->fd : -1, .events = POLLIN },
		{ .fd = cq == q.rcq ? fd : -1, .events = POLLIN },
	};
	long end = qv_now() + wait_ms;
	struct ibv_wc wc;
	struct ibv_cq *which;
	void *opaque;

	if (channel) {
		/* Completions from before it was armed raise no event. */
		arm(cq);
		while (!qv_wait(cq, &wc, 0)) {
			if (qv_gone)
				return -1;
			if (poll(p, 2, wait_ms) <= 0)
				return -1;
			if (!p[0].revents)
				return qv_wait(cq, &wc, 0) ? (int)wc.status : -1;
			if (ibv_get_cq_event(channel, &which, &opaque))
				qv_die("ibv_get_cq_event", errno);
			ibv_ack_cq_events(which, 1);
			arm(cq);
		}
		return (int)wc.status;
	}
	while (!qv_wait(cq, &wc, 20)) {
		if (qv_gone)
			return -1;
		if (cq == q.rcq && other_done())
			return qv_wait(cq, &wc, 0) ? (int)wc.status : -1;
		if (qv_now() >= end)
			return -1;
	}
	return (int)wc.status;
}

static void post_recv(void)
{
	struct ibv_sge s = { (uintptr_t)memory + HALF, len, mr->lkey };

	int err = qv_recv(&q, 1, &s, 1);

	if (err && err != EIO)
		qv_die("ibv_post_recv", err);
}

static int send_one(enum ibv_wr_opcode op, int message, const struct hello *to)
{
	struct ibv_sge s = { (uintptr_t)memory, len, mr->lkey };
	int status;

	if (op != IBV_WR_RDMA_READ)
		fill(memory, message);
	if (qv_send(&q, op, message, &s, 1, to->addr, to->rkey))
		return -2;
	status = next(q.scq);
	if (!status && op == IBV_WR_RDMA_READ)
		check(memory, 0);
	return status;
}

static int receive_one(int message)
{
	int status = next(q.rcq);

	if (!status) {
		check(memory + HALF, message);
		post_recv();
	}
	return status;
}

/* Messages until one fails; returns how many went well. */
static int work(bool first, enum ibv_wr_opcode op, const struct hello *to,
		int *status)
{
	int i;

	*status = 0;
	for (i = 0; i < iters; i++) {
		if (first) {
			*status = send_one(op, i, to);
			if (*status)
				break;
			if (op != IBV_WR_SEND)
				continue;
		}
		*status = receive_one(i);
		if (*status)
			break;
		if (!first) {
			*status = send_one(op, i, to);
			if (*status)
				break;
		}
	}
	return i;
}

/* Memory of both halves; @odp: "range", "implicit" or NULL, then it is pinned. */
static void make_memory(const char *odp)
{
	const int all = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE |
			IBV_ACCESS_LOCAL_WRITE;

	mr = qv_mr(&dev, 2 * HALF, odp ? all | IBV_ACCESS_ON_DEMAND : all);
	memory = mr->addr;
	if (odp && !strcmp(odp, "implicit")) {
		mr = ibv_reg_mr(dev.pd, NULL, SIZE_MAX, all | IBV_ACCESS_ON_DEMAND);
		if (!mr)
			qv_die("ibv_reg_mr", errno);
	}
}

static void report(int done, int status)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	const char *comma = "";
	int type, wait;

	printf("{\"done\": %d, \"status\": %d, \"name\": \"%s\", "
	       "\"wrong\": %d, \"qpn\": %u, \"events\": [", done, status,
	       status < 0 ? "none" : ibv_wc_status_str(status), wrong,
	       q.qp->qp_num);
	if (ibv_query_qp(q.qp, &attr, IBV_QP_STATE, &init))
		attr.qp_state = -1;
	/*
	 * If a QP failed without a completion of its own, there will be an
	 * event, which the peer's message may have overtaken.
	 */
	wait = status ? 1000 : attr.qp_state == IBV_QPS_ERR ? 20000 : 0;
	while ((type = qv_async(&dev, wait)) >= 0) {
		printf("%s\"%s\"", comma, ibv_event_type_str(type));
		comma = ", ";
		wait = status ? 1000 : 0;
	}
	printf("], \"state\": %d}\n", (int)attr.qp_state);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{ "op", 1, NULL, 'o' }, { "len", 1, NULL, 'l' },
		{ "iters", 1, NULL, 'i' }, { "timeout", 1, NULL, 't' },
		{ "retry", 1, NULL, 'r' }, { "rnr-retry", 1, NULL, 'R' },
		{ "rnr-timer", 1, NULL, 'T' }, { "rkey", 1, NULL, 'k' },
		{ "events", 0, NULL, 'e' }, { "wait", 1, NULL, 'w' },
		{ "odp", 1, NULL, 'd' },
		{ NULL, 0, NULL, 0 }
	};
	enum ibv_wr_opcode op = IBV_WR_SEND;
	struct hello mine = { .addr = 0 }, yours;
	struct qv_path path = { .timeout = 20, .retry_cnt = 7,
				.rnr_retry = 7, .min_rnr_timer = 12 };
	int c, status = 0, done = 0, i;
	uint32_t delta = 0;
	bool first, active, events = false;
	const char *odp = NULL;

	wait_ms = 60000 * qv_pace();
	while ((c = getopt_long(argc, argv, "", options, NULL)) != -1) {
		switch (c) {
		case 'o':
			op = !strcmp(optarg, "write") ? IBV_WR_RDMA_WRITE :
			     !strcmp(optarg, "read") ? IBV_WR_RDMA_READ :
			     IBV_WR_SEND;
			break;
		case 'l':
			len = atoi(optarg);
			break;
		case 'i':
			iters = atoi(optarg);
			break;
		case 't':
			path.timeout = atoi(optarg);
			break;
		case 'r':
			path.retry_cnt = atoi(optarg);
			break;
		case 'R':
			path.rnr_retry = atoi(optarg);
			break;
		case 'T':
			path.min_rnr_timer = atoi(optarg);
			break;
		case 'k':
			delta = strtoul(optarg, NULL, 0);
			break;
		case 'e':
			events = true;
			break;
		case 'w':
			wait_ms = atoi(optarg) * qv_pace();
			break;
		case 'd':
			odp = optarg;
			break;
		default:
			return 1;
		}
	}
	if (len < 1 || len > HALF)
		qv_die("--len", EINVAL);
	first = optind < argc;
	active = first || op == IBV_WR_SEND;
	qv_open(&dev);
	make_memory(odp);
	if (events)
		create_with_events();
	else
		qv_qp_create(&dev, &q, IBV_QPT_RC, &cap);
	qv_qp_init(&q, IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
	for (i = 0; i < 2; i++)
		post_recv();
	fd = qv_link(first ? argv[optind] : NULL, PORT);
	if (fd < 0)
		qv_die("accept", errno);
	mine.gid = dev.gid;
	mine.qpn = q.qp->qp_num;
	mine.rkey = mr->rkey;
	mine.addr = (uintptr_t)memory + HALF;
	fill(memory, 0);
	fill(memory + HALF, 0);
	qv_tell(fd, &mine, sizeof(mine));
	qv_hear(fd, &yours, sizeof(yours));
	path.gid = yours.gid;
	path.qpn = yours.qpn;
	qv_qp_connect_path(&dev, &q, &path);
	/* both must be ready to receive before anything is sent */
	qv_tell(fd, "x", 1);
	qv_hear(fd, &c, 1);
	yours.rkey += delta;
	if (active)
		done = work(first, op, &yours, &status);
	/*
	 * The peer may still need an answer: stay until both are done, or until
	 * nothing more can come.
	 */
	send(fd, "x", 1, MSG_NOSIGNAL);
	poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, wait_ms);
	report(done, status);
	return 0;
}
