// SPDX-License-Identifier: GPL-2.0-or-later
/* An RDS socket: open, send and receive with control messages. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "rds.h"

/* The limits of a message are RDS's, not those of the socket's buffers. */
#define BUFFER	(4 << 20)

static int set(int fd, int level, int option, int value)
{
	if (setsockopt(fd, level, option, &value, sizeof(value)))
		return -errno;
	return 0;
}

int endpoint_open(struct endpoint *e, struct in_addr address, in_port_t port,
		  int transport)
{
	socklen_t len = sizeof(e->self);
	int err;

	memset(e, 0, sizeof(*e));
	e->fd = socket(AF_RDS, SOCK_SEQPACKET, 0);
	if (e->fd < 0)
		return -errno;
	e->self.sin_family = AF_INET;
	e->self.sin_addr = address;
	e->self.sin_port = htons(port);
	err = set(e->fd, SOL_RDS, SO_RDS_TRANSPORT, transport);
	if (!err)
		err = set(e->fd, SOL_SOCKET, SO_SNDBUFFORCE, BUFFER);
	if (!err)
		err = set(e->fd, SOL_SOCKET, SO_RCVBUFFORCE, BUFFER);
	if (!err && (bind(e->fd, (void *)&e->self, sizeof(e->self)) ||
		     getsockname(e->fd, (void *)&e->self, &len)))
		err = -errno;
	if (err)
		endpoint_close(e);
	return err;
}

void endpoint_close(struct endpoint *e)
{
	if (e->fd >= 0)
		close(e->fd);
	e->fd = -1;
}

void control_add(struct control *c, int type, const void *data, size_t len)
{
	struct cmsghdr *h = (void *)(c->data + c->len);

	if (c->len + CMSG_SPACE(len) > sizeof(c->data))
		abort();
	memset(h, 0, CMSG_SPACE(len));
	h->cmsg_level = SOL_RDS;
	h->cmsg_type = type;
	h->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(h), data, len);
	c->len += CMSG_SPACE(len);
}

int endpoint_send_first(const struct endpoint *e, const struct sockaddr_in *to,
			const void *data, size_t len, const struct control *c,
			int flags)
{
	struct iovec v = { .iov_base = (void *)data, .iov_len = len };
	struct msghdr m = {
		.msg_name = (void *)to,
		.msg_namelen = sizeof(*to),
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = c ? (void *)c->data : NULL,
		.msg_controllen = c ? c->len : 0,
	};
	ssize_t n = sendmsg(e->fd, &m, flags);

	if (n < 0)
		return -errno;
	return (size_t)n == len ? 0 : -EIO;
}

int endpoint_send(const struct endpoint *e, const struct sockaddr_in *to,
		  const void *data, size_t len, const struct control *c,
		  int flags)
{
	return endpoint_send_first(e, to, data, len, c, flags | MSG_DONTWAIT);
}

/* Take what recvmsg() has: 1 a message, 0 notifications only. */
static int take(struct endpoint *e, void *data, size_t size, struct message *m)
{
	_Alignas(struct cmsghdr) char control[1024];
	struct iovec v = { .iov_base = data, .iov_len = size };
	struct msghdr h = {
		.msg_name = &m->from,
		.msg_namelen = sizeof(m->from),
		.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *c;
	bool only_notes = false;
	ssize_t n;

	n = recvmsg(e->fd, &h, MSG_DONTWAIT);
	if (n < 0)
		return -errno;
	if (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return -EMSGSIZE;
	m->len = n;
	m->has_cookie = false;
	for (c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
		if (c->cmsg_level != SOL_RDS)
			continue;
		if (c->cmsg_type == RDS_CMSG_RDMA_DEST) {
			m->has_cookie = true;
			memcpy(&m->cookie, CMSG_DATA(c), sizeof(m->cookie));
		} else if (c->cmsg_type == RDS_CMSG_RDMA_STATUS) {
			only_notes = true;
			if (e->nr_notes == ARRAY_SIZE(e->notes))
				return -ENOBUFS;
			memcpy(&e->notes[e->nr_notes++], CMSG_DATA(c),
			       sizeof(e->notes[0]));
		}
	}
	return !only_notes;
}

static bool readable(const struct endpoint *e, int64_t deadline)
{
	struct pollfd p = { .fd = e->fd, .events = POLLIN };
	int64_t left = deadline - now_ms();

	return poll(&p, 1, left > 0 ? left : 0) > 0;
}

int endpoint_receive(struct endpoint *e, void *data, size_t size,
		     struct message *m, int ms)
{
	int64_t deadline = now_ms() + ms;
	int got;

	/* poll() also wakes up for the peer's congestion map, without data */
	while (readable(e, deadline)) {
		got = take(e, data, size, m);
		if (got > 0)
			return 0;
		if (got < 0 && got != -EAGAIN)
			return got;
	}
	return -ETIMEDOUT;
}

int endpoint_note(struct endpoint *e, struct rds_rdma_notify *note, int ms)
{
	int64_t deadline = now_ms() + ms;
	struct message m;
	int got;

	while (!e->nr_notes) {
		if (!readable(e, deadline))
			return -ETIMEDOUT;
		got = take(e, NULL, 0, &m);
		if (got > 0)
			return -EBADMSG;
		if (got < 0 && got != -EAGAIN)
			return got;
	}
	*note = e->notes[0];
	memmove(e->notes, e->notes + 1, --e->nr_notes * sizeof(e->notes[0]));
	return 0;
}

int endpoint_set(const struct endpoint *e, int option, int value)
{
	return set(e->fd, SOL_RDS, option, value);
}

int endpoint_free_mr(const struct endpoint *e, uint64_t cookie,
		     uint64_t flags)
{
	struct rds_free_mr_args args = { .cookie = cookie, .flags = flags };

	if (setsockopt(e->fd, SOL_RDS, RDS_FREE_MR, &args, sizeof(args)))
		return -errno;
	return 0;
}

uint64_t endpoint_counter(const struct endpoint *e, const char *name)
{
	struct rds_info_counter c[256];
	socklen_t len = sizeof(c);
	uint64_t sum = 0;
	size_t i;

	/*
	 * the kernel returns the size of one entry, and reports the length of
	 * all
	 */
	if (getsockopt(e->fd, SOL_RDS, RDS_INFO_COUNTERS, c, &len) !=
	    sizeof(c[0]))
		die("RDS_INFO_COUNTERS");
	for (i = 0; i < len / sizeof(c[0]); i++)
		if (!strcmp((const char *)c[i].name, name))
			sum += c[i].value;
	return sum;
}
