// SPDX-License-Identifier: GPL-2.0-or-later
/* The other end of a test: executes commands. */
#include <errno.h>
#include <string.h>
#include <unistd.h>
#include <netinet/tcp.h>

#include "remote.h"

struct server {
	int fd;
	struct in_addr self, client;
	struct endpoint end;
	bool open;
	uint8_t *arena;
	struct rds_iovec piece[MAX_PIECES];
	char data[1 << 20];
};

static struct sockaddr_in client(const struct server *s, uint16_t port)
{
	return (struct sockaddr_in){ .sin_family = AF_INET,
				     .sin_addr = s->client, .sin_port = port };
}

/* Lay @p out in the arena, one behind the other with some bytes between. */
static int lay_out(struct server *s, const struct pieces *p)
{
	uint64_t at = p->misalign;
	uint32_t i;

	for (i = 0; i < p->nr && i < MAX_PIECES; i++) {
		if (at + p->len[i] > ARENA)
			return -EOVERFLOW;
		s->piece[i].addr = (uintptr_t)s->arena + at;
		s->piece[i].bytes = p->len[i];
		at += p->len[i] + p->misalign;
	}
	return 0;
}

static void fill(struct server *s, const struct remote_command *c)
{
	uint64_t from = 0;
	uint32_t i;

	memset(s->arena, UNTOUCHED, ARENA);
	if (!(c->flags & RDS_RDMA_READWRITE))
		return;
	for (i = 0; i < c->local.nr && i < MAX_PIECES; i++) {
		pattern_fill((void *)(uintptr_t)s->piece[i].addr,
			     s->piece[i].bytes, from, c->seed);
		from += s->piece[i].bytes;
	}
}

static int rdma(struct server *s, const struct remote_command *c)
{
	struct sockaddr_in to = client(s, c->port);
	struct rds_rdma_args args = {
		.cookie = c->cookie,
		.remote_vec = { .addr = c->remote_offset,
				.bytes = c->remote_bytes ?:
					 pieces_bytes(&c->local) },
		.local_vec_addr = (uintptr_t)s->piece,
		.nr_local = c->local.nr,
		.flags = c->flags,
		.user_token = c->token,
	};
	struct control control = { 0 };
	int err = lay_out(s, &c->local);

	if (err)
		return err;
	fill(s, c);
	control_add(&control, RDS_CMSG_RDMA_ARGS, &args, sizeof(args));
	pattern_fill(s->data, c->len, 0, c->seed);
	return endpoint_send(&s->end, &to, s->data, c->len, &control, 0);
}

/* Bytes that an RDMA READ left wrong, between the pieces too. */
static uint64_t check(struct server *s, const struct remote_command *c)
{
	uint64_t wrong = 0, from = c->remote_offset;
	uint8_t *end = s->arena;
	uint32_t i;

	if (lay_out(s, &c->local))
		return UINT64_MAX;
	for (i = 0; i < c->local.nr; i++) {
		uint8_t *p = (void *)(uintptr_t)s->piece[i].addr;

		wrong += touched(end, p - end);
		wrong += pattern_wrong(p, s->piece[i].bytes, from, c->seed);
		from += s->piece[i].bytes;
		end = p + s->piece[i].bytes;
	}
	return wrong + touched(end, s->arena + ARENA - end);
}

static void execute(struct server *s, const struct remote_command *c,
		    struct remote_answer *a)
{
	struct sockaddr_in to = client(s, c->port);
	struct rds_rdma_notify note;
	struct message m;

	memset(a, 0, sizeof(*a));
	switch (c->what) {
	case REMOTE_OPEN:
		if (s->open)
			endpoint_close(&s->end);
		a->err = endpoint_open(&s->end, s->self, 0, RDS_TRANS_IB);
		s->open = !a->err;
		a->port = s->end.self.sin_port;
		break;
	case REMOTE_SEND:
		pattern_fill(s->data, c->len, 0, c->seed);
		a->err = endpoint_send(&s->end, &to, s->data, c->len, NULL, 0);
		break;
	case REMOTE_RECEIVE:
		a->err = endpoint_receive(&s->end, s->data, sizeof(s->data),
					  &m, PATIENCE);
		if (a->err)
			break;
		a->len = m.len;
		a->port = m.from.sin_port;
		a->has_cookie = m.has_cookie;
		a->cookie = m.has_cookie ? m.cookie : 0;
		a->wrong = pattern_wrong(s->data, m.len, 0, c->seed);
		break;
	case REMOTE_RDMA:
		a->err = rdma(s, c);
		break;
	case REMOTE_NOTE:
		a->err = endpoint_note(&s->end, &note,
				       c->len ? c->len : PATIENCE);
		if (a->err)
			break;
		a->token = note.user_token;
		a->status = note.status;
		break;
	case REMOTE_QUIET:
		a->err = endpoint_note(&s->end, &note, c->len);
		break;
	case REMOTE_CHECK:
		a->wrong = check(s, c);
		break;
	case REMOTE_RECVERR:
		a->err = endpoint_set(&s->end, RDS_RECVERR, c->len);
		break;
	default:
		a->err = -ENOSYS;
	}
}

void remote_serve(in_port_t port)
{
	static struct server s;
	static struct remote_command c;
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(port) };
	socklen_t len = sizeof(sa);
	struct remote_answer a;
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (void *)&sa, sizeof(sa)) || listen(fd, 1))
		die("listen");
	s.fd = accept(fd, (void *)&sa, &len);
	if (s.fd < 0)
		die("accept");
	s.client = sa.sin_addr;
	if (setsockopt(s.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) ||
	    getsockname(s.fd, (void *)&sa, &len))
		die("accept");
	s.self = sa.sin_addr;
	s.arena = memory(ARENA);
	while (remote_get(s.fd, &c, sizeof(c))) {
		execute(&s, &c, &a);
		remote_put(s.fd, &a, sizeof(a));
	}
}
