// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * steady PORT [SERVER]
 *
 * Messages in both directions over an RC QP to the same program in another
 * guest. SERVER is the address of the other program; without it, it waits on
 * PORT, and a line on its standard input ends both, when all that was sent has
 * come.
 *
 * Each message must come once and in order, with its bytes; each request must
 * complete once and in order. Every fourth message is followed by a FETCH_ADD of
 * 1, whose result tells how often the earlier ones were executed. The program
 * sleeps until the next completion event. "ready" on stdout means that it is
 * connected; "progress N" follows from time to time; at the end it prints a JSON
 * object.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qv.h"

#define WINDOW		16u		/* messages on their way */
#define RECVS		(2 * WINDOW)
#define SLOT		8192u		/* most bytes of a message */
#define ADD_EACH	4u		/* messages */
#define ADD_ID		(1ULL << 63)	/* wr_id of a FETCH_ADD */
#define STUCK_MS	300000

struct head {
	uint64_t seq;
	uint32_t len, last;
};

/* The region: what is sent, what comes, results of FETCH_ADDs, the counter. */
#define RECV_AT		(WINDOW * SLOT)
#define RESULT_AT	(RECV_AT + RECVS * SLOT)
#define COUNTER_AT	(RESULT_AT + WINDOW * 8)
#define REGION		(COUNTER_AT + 8)

struct end {
	struct qv_dev dev;
	struct qv_qp q;
	struct ibv_comp_channel *events;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *mem;
	uint64_t far;			/* the peer's region */
	uint32_t far_key;
	uint64_t sent, completed, got, adds;
	uint64_t next_id;		/* of the next completion */
	bool ending;			/* the last message was sent ... */
	bool over;			/* ... and the peer's has come */
};

static uint32_t length(uint64_t seq)
{
	uint32_t n = (uint32_t)(seq * 2654435761u >> 7) % SLOT;

	return n < sizeof(struct head) ? sizeof(struct head) : n;
}

static uint8_t pattern(uint64_t seq, uint32_t i)
{
	return seq * 31 + i * 7 + (i >> 8);
}

static struct ibv_sge sge_of(struct end *e, uint32_t at, uint32_t len)
{
	return (struct ibv_sge){
		.addr = (uintptr_t)e->mem + at, .length = len,
		.lkey = e->mr->lkey,
	};
}

static void post_recv(struct end *e, uint64_t n)
{
	struct ibv_sge sge = sge_of(e, RECV_AT + n % RECVS * SLOT, SLOT);
	int err = qv_recv(&e->q, n, &sge, 1);

	if (err)
		qv_die("ibv_post_recv", err);
}

static void post_add(struct end *e)
{
	uint64_t n = e->sent / ADD_EACH - 1;
	struct ibv_sge sge = sge_of(e, RESULT_AT + n % WINDOW * 8, 8);
	struct ibv_send_wr *bad, wr = {
		.wr_id = ADD_ID | n, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.atomic = {
			.remote_addr = e->far + COUNTER_AT,
			.rkey = e->far_key, .compare_add = 1,
		},
	};
	int err = ibv_post_send(e->q.qp, &wr, &bad);

	if (err)
		qv_die("ibv_post_send", err);
}

static void post_next(struct end *e, bool last)
{
	uint64_t seq = e->sent++;
	uint8_t *slot = e->mem + seq % WINDOW * SLOT;
	struct head h = { seq, length(seq), last };
	struct ibv_sge sge = sge_of(e, seq % WINDOW * SLOT, h.len);
	uint32_t i;
	int err;

	memcpy(slot, &h, sizeof(h));
	for (i = sizeof(h); i < h.len; i++)
		slot[i] = pattern(seq, i);
	err = qv_send(&e->q, IBV_WR_SEND, seq, &sge, 1, 0, 0);
	if (err)
		qv_die("ibv_post_send", err);
	if (e->sent % ADD_EACH == 0)
		post_add(e);
	e->ending |= last;
}

static void received(struct end *e, const struct ibv_wc *wc)
{
	const uint8_t *slot = e->mem + RECV_AT + e->got % RECVS * SLOT;
	struct head h;
	uint32_t i;

	memcpy(&h, slot, sizeof(h));
	if (wc->wr_id != e->got || h.seq != e->got || h.len != length(h.seq) ||
	    wc->byte_len != h.len)
		qv_wrong("message %llu in place of %llu",
			 (unsigned long long)h.seq,
			 (unsigned long long)e->got);
	for (i = sizeof(h); i < h.len && !*qv_why; i++)
		if (slot[i] != pattern(h.seq, i))
			qv_wrong("byte %u of message %llu", i,
				 (unsigned long long)h.seq);
	e->over |= h.last;
	e->got++;
	post_recv(e, e->got + RECVS - 1);
	if (e->got % 1000 == 0) {
		printf("progress %llu\n", (unsigned long long)e->got);
		fflush(stdout);
	}
}

static void added(struct end *e)
{
	uint64_t old;

	memcpy(&old, e->mem + RESULT_AT + e->adds % WINDOW * 8, 8);
	if (old != e->adds)
		qv_wrong("FETCH_ADD %llu found %llu",
			 (unsigned long long)e->adds, (unsigned long long)old);
	e->adds++;
}

static void completion(struct end *e, const struct ibv_wc *wc)
{
	if (wc->status != IBV_WC_SUCCESS) {
		qv_wrong("%s after %llu messages",
			 ibv_wc_status_str(wc->status),
			 (unsigned long long)e->got);
		return;
	}
	if (wc->opcode & IBV_WC_RECV) {
		received(e, wc);
		return;
	}
	if (wc->wr_id != e->next_id)
		qv_wrong("completion %#llx in place of %#llx",
			 (unsigned long long)wc->wr_id,
			 (unsigned long long)e->next_id);
	if (wc->wr_id & ADD_ID) {
		added(e);
		e->next_id = e->completed;
	} else if (++e->completed % ADD_EACH) {
		e->next_id = e->completed;
	} else {
		e->next_id = ADD_ID | (e->completed / ADD_EACH - 1);
	}
}

/* Everything has completed, and all that the peer has sent has come. */
static bool done(const struct end *e)
{
	return *qv_why || (e->ending && e->over && e->completed == e->sent &&
			   e->adds == e->sent / ADD_EACH);
}

/* Sleep until the next event, or a line on stdin: then false. */
static bool sleeps(struct end *e, bool listen)
{
	struct pollfd fds[2] = {
		{ .fd = e->events->fd, .events = POLLIN },
		{ .fd = listen ? 0 : -1, .events = POLLIN },
	};
	struct ibv_cq *cq;
	void *context;
	int n = poll(fds, 2, STUCK_MS);

	if (n < 0)
		qv_die("poll", errno);
	if (!n)
		qv_wrong("nothing for %u s, after %llu sent, %llu completed, "
			 "%llu received", STUCK_MS / 1000,
			 (unsigned long long)e->sent,
			 (unsigned long long)e->completed,
			 (unsigned long long)e->got);
	if (fds[0].revents) {
		if (ibv_get_cq_event(e->events, &cq, &context))
			qv_die("ibv_get_cq_event", errno);
		ibv_ack_cq_events(cq, 1);
	}
	return !fds[1].revents;
}

static void run(struct end *e, bool listen)
{
	struct ibv_wc wc;
	bool go = true;
	int n;

	while (!done(e)) {
		if (ibv_req_notify_cq(e->cq, 0))
			qv_die("ibv_req_notify_cq", errno);
		while ((n = ibv_poll_cq(e->cq, 1, &wc)) > 0 && !*qv_why)
			completion(e, &wc);
		if (n < 0)
			qv_die("ibv_poll_cq", errno);
		while (!e->ending && e->sent - e->completed < WINDOW)
			post_next(e, !go || e->over);
		if (!done(e))
			go &= sleeps(e, go && listen);
	}
}

static void make(struct end *e)
{
	struct ibv_qp_init_attr attr = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 2 * WINDOW, .max_recv_wr = RECVS,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	qv_open(&e->dev);
	e->mr = qv_mr(&e->dev, REGION, IBV_ACCESS_LOCAL_WRITE |
		      IBV_ACCESS_REMOTE_ATOMIC);
	e->mem = e->mr->addr;
	memset(e->mem, 0, REGION);
	e->events = ibv_create_comp_channel(e->dev.ctx);
	if (!e->events)
		qv_die("ibv_create_comp_channel", errno);
	e->cq = ibv_create_cq(e->dev.ctx, 4 * WINDOW + RECVS, NULL, e->events,
			      0);
	if (!e->cq)
		qv_die("ibv_create_cq", errno);
	attr.send_cq = attr.recv_cq = e->cq;
	e->q.qp = ibv_create_qp(e->dev.pd, &attr);
	if (!e->q.qp)
		qv_die("ibv_create_qp", errno);
	e->q.init = attr;
}

static void meet(struct end *e, int fd)
{
	struct qv_path path = qv_path_to(&e->dev, e->q.qp->qp_num);
	uint64_t addr = (uintptr_t)e->mem;
	uint64_t n;

	qv_tell(fd, &path, sizeof(path));
	qv_tell(fd, &addr, sizeof(addr));
	qv_tell(fd, &e->mr->rkey, sizeof(e->mr->rkey));
	qv_hear(fd, &path, sizeof(path));
	qv_hear(fd, &e->far, sizeof(e->far));
	qv_hear(fd, &e->far_key, sizeof(e->far_key));
	qv_qp_init(&e->q, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
	qv_qp_connect_path(&e->dev, &e->q, &path);
	for (n = 0; n < RECVS; n++)
		post_recv(e, n);
	qv_meet(fd);
	close(fd);
}

int main(int argc, char **argv)
{
	struct end e = { .next_id = 0 };

	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: steady PORT [SERVER]\n");
		return 2;
	}
	make(&e);
	meet(&e, qv_link(argc == 3 ? argv[2] : NULL, atoi(argv[1])));
	printf("ready\n");
	fflush(stdout);
	run(&e, argc == 2);
	printf("{\"sent\": %llu, \"received\": %llu, \"adds\": %llu, "
	       "\"wrong\": \"%s\"}\n", (unsigned long long)e.sent,
	       (unsigned long long)e.got, (unsigned long long)e.adds, qv_why);
	return *qv_why ? 1 : 0;
}
