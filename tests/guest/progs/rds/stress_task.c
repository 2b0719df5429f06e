// SPDX-License-Identifier: GPL-2.0-or-later
/* A task of rdsstress: an RDS socket and its traffic. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "stress.h"

/* How long a task sleeps when nothing comes, and when it may not send. */
#define NAP_MS	20

atomic_bool stress_drain, stress_stop;
atomic_uint stress_idle;

int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

uint32_t stress_seed(const struct header *h, bool rdma)
{
	return h->seq * 8 + (uint32_t)h->from * 0x10001 + h->to * 0x301 +
	       h->op + (rdma ? 4 : 0);
}

void wrong(const struct task *t, const char *what, const struct header *h)
{
	fprintf(stderr, "task %u: wrong: %s (errno %d): ", t->id, what, errno);
	fprintf(stderr, "op %u, %u to %u, slot %u, seq %u, rdma %u\n", h->op,
		h->from, h->to, h->slot, h->seq, h->rdma);
	/* threads are at work: no atexit() */
	_exit(3);
}

void task_open(struct task *t, const struct options *o, uint16_t id,
	       struct in_addr self, struct in_addr there, in_port_t port)
{
	size_t slots = o->tasks * o->depth, i;
	int err;

	t->o = o;
	t->id = id;
	t->port = port + 1;
	t->there = there;
	pthread_mutex_init(&t->lock, NULL);
	err = endpoint_open(&t->end, self, t->port + id, RDS_TRANS_IB);
	if (err) {
		errno = -err;
		die("RDS socket");
	}
	t->data = memory(1 << 20);
	t->request = calloc(slots, sizeof(*t->request));
	t->service = calloc(slots, sizeof(*t->service));
	if (!t->request || !t->service)
		die("memory");
	for (i = 0; o->rdma_bytes && i < slots; i++) {
		/* not at the begin of a page */
		t->request[i].region = memory(o->rdma_bytes + 64) + 8 * (i % 8);
		t->service[i].local = memory(o->rdma_bytes + 64) + 4 * (i % 8);
	}
}

/* ------------------------------------------------------------------ sending */

/* Send the message of @h; false if the socket accepts nothing now. */
static bool transmit(struct task *t, const struct header *h,
		     const struct control *c)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_addr = t->there,
		.sin_port = htons(t->port + h->to),
	};
	int64_t begin;
	int err;

	memcpy(t->data, h, sizeof(*h));
	if (t->o->verify)
		pattern_fill(t->data + sizeof(*h), h->len - sizeof(*h), 0,
			     stress_seed(h, false));
	begin = now_us();
	err = endpoint_send(&t->end, &to, t->data, h->len, c->len ? c : NULL, 0);
	/* no room, the peer's socket is congested, or no connection yet */
	if (err == -EAGAIN || err == -ENOBUFS)
		return false;
	if (err) {
		errno = -err;
		wrong(t, "sendmsg()", h);
	}
	pthread_mutex_lock(&t->lock);
	t->counts.send_us += now_us() - begin;
	t->counts.message_bytes += h->len;
	if (h->op == OP_REQUEST)
		t->counts.requests_sent++;
	else
		t->counts.acks_sent++;
	pthread_mutex_unlock(&t->lock);
	return true;
}

static bool send_request(struct task *t, uint16_t to, uint16_t slot)
{
	struct request *r = &t->request[to * t->o->depth + slot];
	struct control c = { 0 };
	struct header h = {
		.seq = t->next_seq[to],
		.len = t->o->request_bytes,
		.from = t->id, .to = to, .slot = slot,
		.op = OP_REQUEST,
	};

	r->seq = h.seq;
	rdma_prepare(t, r, &h);
	rdma_lend(t, r, &c);
	r->sent_us = now_us();
	if (!transmit(t, &h, &c))
		return false;
	r->busy = true;
	t->next_seq[to]++;
	return true;
}

static bool send_ack(struct task *t, struct service *s)
{
	struct control c = { 0 };
	struct header h = s->request;

	h.op = OP_ACK;
	h.from = s->request.to;
	h.to = s->request.from;
	h.len = t->o->ack_bytes;
	if (h.rdma != RDMA_NONE)
		rdma_serve(t, s, &c);
	if (!transmit(t, &h, &c))
		return false;
	s->pending = false;
	if (h.rdma == RDMA_NONE)
		return true;
	s->busy = true;
	s->done = s->request;
	pthread_mutex_lock(&t->lock);
	if (h.rdma == RDMA_READ)
		t->counts.read_bytes += t->o->rdma_bytes;
	else
		t->counts.written_bytes += t->o->rdma_bytes;
	pthread_mutex_unlock(&t->lock);
	return true;
}

/* Send all that can be sent; true if something waits for room. */
static bool send_all(struct task *t)
{
	size_t slots = t->o->tasks * t->o->depth, i;

	for (i = 0; i < slots; i++)
		if (t->service[i].pending && !t->service[i].busy &&
		    !send_ack(t, &t->service[i]))
			return true;
	for (i = 0; i < slots && !stress_drain; i++)
		if (!t->request[i].busy &&
		    !send_request(t, i / t->o->depth, i % t->o->depth))
			return true;
	return false;
}

/* ---------------------------------------------------------------- receiving */

static void got_request(struct task *t, const struct header *h,
			const struct message *m)
{
	struct service *s = &t->service[h->from * t->o->depth + h->slot];

	if (h->len != t->o->request_bytes)
		wrong(t, "the length of a request", h);
	if (h->seq != t->expect_seq[h->from]++)
		wrong(t, "the order of requests", h);
	if (s->pending)
		wrong(t, "a request comes before its slot is free", h);
	if (m->has_cookie != (h->rdma != RDMA_NONE))
		wrong(t, "the cookie of a request", h);
	s->pending = true;
	s->request = *h;
	s->cookie = m->has_cookie ? m->cookie : 0;
}

static void got_ack(struct task *t, const struct header *h)
{
	struct request *r = &t->request[h->from * t->o->depth + h->slot];
	struct header sent = *h;

	if (h->len != t->o->ack_bytes)
		wrong(t, "the length of an ACK", h);
	if (!r->busy || r->seq != h->seq || r->rdma != h->rdma)
		wrong(t, "an ACK without a request", h);
	sent.op = OP_REQUEST;
	sent.from = h->to;
	sent.to = h->from;
	rdma_return(t, r, &sent);
	r->busy = false;
	pthread_mutex_lock(&t->lock);
	t->counts.rtt_us += now_us() - r->sent_us;
	pthread_mutex_unlock(&t->lock);
}

static void got(struct task *t, const struct message *m)
{
	struct header h = { 0 };

	if (m->len >= sizeof(h))
		memcpy(&h, t->data, sizeof(h));
	if (h.len != m->len || h.to != t->id || h.from >= t->o->tasks ||
	    h.slot >= t->o->depth ||
	    m->from.sin_port != htons(t->port + h.from) ||
	    m->from.sin_addr.s_addr != t->there.s_addr)
		wrong(t, "the head of a message", &h);
	if (t->o->verify && pattern_wrong(t->data + sizeof(h),
					  h.len - sizeof(h), 0,
					  stress_seed(&h, false)))
		wrong(t, "a message", &h);
	if (h.op == OP_REQUEST)
		got_request(t, &h, m);
	else if (h.op == OP_ACK)
		got_ack(t, &h);
	else
		wrong(t, "the kind of a message", &h);
	pthread_mutex_lock(&t->lock);
	t->counts.message_bytes += h.len;
	if (h.op == OP_REQUEST)
		t->counts.requests_received++;
	else
		t->counts.acks_received++;
	pthread_mutex_unlock(&t->lock);
}

/* Receive all pending messages, and handle completed operations. */
static void receive_all(struct task *t)
{
	struct rds_rdma_notify n;
	struct message m;
	int err;

	do {
		err = endpoint_receive(&t->end, t->data, 1 << 20, &m, 0);
		if (!err)
			got(t, &m);
		while (t->end.nr_notes && !endpoint_note(&t->end, &n, 0)) {
			struct service *s = &t->service[n.user_token];

			if (n.user_token >= t->o->tasks * t->o->depth ||
			    !s->busy)
				wrong(t, "a token", &s->done);
			rdma_served(t, s, n.status);
			s->busy = false;
		}
	} while (!err);
	if (err != -ETIMEDOUT) {
		errno = -err;
		wrong(t, "recvmsg()", &(struct header){ 0 });
	}
}

static bool under_way(const struct task *t)
{
	size_t i;

	for (i = 0; i < t->o->tasks * t->o->depth; i++)
		if (t->request[i].busy || t->service[i].pending ||
		    t->service[i].busy)
			return true;
	return false;
}

void *task_run(void *task)
{
	struct task *t = task;
	bool idle = false, full;

	while (!stress_stop) {
		struct pollfd p = { .fd = t->end.fd, .events = POLLIN };

		full = send_all(t);
		poll(&p, 1, NAP_MS);
		receive_all(t);
		/* the poll() above does not sleep while there is input */
		if (full && !(p.revents & POLLIN))
			usleep(1000);
		if (stress_drain && idle == under_way(t)) {
			idle = !idle;
			atomic_fetch_add(&stress_idle, idle ? 1 : -1u);
		}
	}
	return NULL;
}
