// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rdszcopy serve | rdszcopy send ADDRESS MESSAGES BYTES [copy]: messages with
 * MSG_ZEROCOPY over RDS, which Linux has over TCP only.  Each is sent with a
 * cookie; its buffer is used again when the cookie has come back.  "copy" sends
 * the same without MSG_ZEROCOPY.  Both print a JSON object; copied are the bytes
 * that the kernel's RDS says it has copied from users.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "remote.h"

#define CONTROL_PORT	4101
#define RDS_PORT	4102
#define BUFFERS		16

struct job {
	uint32_t messages, bytes;
};

static void must(int err, const char *what)
{
	if (!err)
		return;
	errno = -err;
	die(what);
}

/* ----------------------------------------------------------------- receiver */

static void serve(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
				  .sin_port = htons(CONTROL_PORT) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1, peer;
	static char data[1 << 20];
	socklen_t len = sizeof(sa);
	struct endpoint e;
	struct message m;
	uint64_t wrong = 0;
	struct job job;
	uint32_t i;

	if (fd < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
	    bind(fd, (void *)&sa, sizeof(sa)) || listen(fd, 1))
		die("listen");
	peer = accept(fd, NULL, NULL);
	if (peer < 0 || getsockname(peer, (void *)&sa, &len))
		die("accept");
	if (!remote_get(peer, &job, sizeof(job)))
		die("job");
	must(endpoint_open(&e, sa.sin_addr, RDS_PORT, RDS_TRANS_TCP), "RDS");
	remote_put(peer, &one, 1);
	for (i = 0; i < job.messages; i++) {
		must(endpoint_receive(&e, data, sizeof(data), &m, PATIENCE),
		     "message");
		wrong += m.len != job.bytes;
		wrong += pattern_wrong(data, m.len, 0, i);
	}
	remote_put(peer, &one, 1);
	printf("{\"received\": %u, \"wrong\": %llu}\n", i,
	       (unsigned long long)wrong);
}

/* ------------------------------------------------------------------- sender */

struct sender {
	struct endpoint e;
	struct sockaddr_in to;
	uint8_t *buffer[BUFFERS];
	uint32_t cookie[BUFFERS];	/* 0: free */
	uint32_t completed;
	struct job job;
};

static void complete(struct sender *s, uint32_t cookie)
{
	int i;

	for (i = 0; i < BUFFERS; i++) {
		if (s->cookie[i] == cookie) {
			s->cookie[i] = 0;
			s->completed++;
			return;
		}
	}
	fprintf(stderr, "unexpected cookie %u\n", cookie);
	exit(3);
}

/* Take the cookies that have come back; wait for the first. */
static void completions(struct sender *s)
{
	_Alignas(struct cmsghdr) char
		control[CMSG_SPACE(sizeof(struct rds_zcopy_cookies))];
	struct pollfd p = { .fd = s->e.fd, .events = POLLIN };
	struct msghdr h;
	struct cmsghdr *c;
	uint32_t i;

	if (poll(&p, 1, PATIENCE) <= 0) {
		fprintf(stderr, "no cookie comes back\n");
		exit(3);
	}
	for (;;) {
		h = (struct msghdr){ .msg_control = control,
				     .msg_controllen = sizeof(control) };
		if (recvmsg(s->e.fd, &h, MSG_DONTWAIT) < 0) {
			if (errno == EAGAIN)
				return;
			die("recvmsg");
		}
		for (c = CMSG_FIRSTHDR(&h); c; c = CMSG_NXTHDR(&h, c)) {
			struct rds_zcopy_cookies done;

			if (c->cmsg_level != SOL_RDS ||
			    c->cmsg_type != RDS_CMSG_ZCOPY_COMPLETION)
				continue;
			memcpy(&done, CMSG_DATA(c), sizeof(done));
			for (i = 0; i < done.num; i++)
				complete(s, done.cookies[i]);
		}
	}
}

static int free_buffer(struct sender *s)
{
	int i;

	for (;;) {
		for (i = 0; i < BUFFERS; i++)
			if (!s->cookie[i])
				return i;
		completions(s);
	}
}

static void send_one(struct sender *s, uint32_t number, bool zerocopy)
{
	uint32_t cookie = number + 1;
	struct control c = { 0 };
	int b = free_buffer(s), err;

	pattern_fill(s->buffer[b], s->job.bytes, 0, number);
	control_add(&c, RDS_CMSG_ZCOPY_COOKIE, &cookie, sizeof(cookie));
	for (;;) {
		struct pollfd p = { .fd = s->e.fd, .events = POLLOUT };

		err = (number ? endpoint_send : endpoint_send_first)(
			&s->e, &s->to, s->buffer[b], s->job.bytes,
			zerocopy ? &c : NULL, zerocopy ? MSG_ZEROCOPY : 0);
		if (err != -EAGAIN && err != -ENOBUFS)
			break;
		poll(&p, 1, 100);
	}
	must(err, "sendmsg");
	if (zerocopy)
		s->cookie[b] = cookie;
}

static void send_all(const char *address, uint32_t messages, uint32_t bytes,
		     bool zerocopy)
{
	int fd = remote_connect(address, CONTROL_PORT), one = 1, i;
	struct sender s = { .job = { messages, bytes } };
	struct sockaddr_in self;
	socklen_t len = sizeof(self);
	uint64_t copied;
	uint32_t k;

	if (getsockname(fd, (void *)&self, &len) ||
	    getpeername(fd, (void *)&s.to, &len))
		die("addresses");
	s.to.sin_port = htons(RDS_PORT);
	must(endpoint_open(&s.e, self.sin_addr, 0, RDS_TRANS_TCP), "RDS");
	if (setsockopt(s.e.fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		die("SO_ZEROCOPY");
	for (i = 0; i < BUFFERS; i++)
		s.buffer[i] = memory(bytes);
	remote_put(fd, &s.job, sizeof(s.job));
	if (!remote_get(fd, &one, 1))
		die("the other end");
	copied = endpoint_counter(&s.e, "copy_from_user");
	for (k = 0; k < messages; k++)
		send_one(&s, k, zerocopy);
	while (zerocopy && s.completed < messages)
		completions(&s);
	if (!remote_get(fd, &one, 1))
		die("the other end");
	copied = endpoint_counter(&s.e, "copy_from_user") - copied;
	printf("{\"sent\": %u, \"completed\": %u, \"copied\": %llu}\n", k,
	       s.completed, (unsigned long long)copied);
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve")) {
		serve();
		return 0;
	}
	if ((argc == 5 || argc == 6) && !strcmp(argv[1], "send") &&
	    (argc == 5 || !strcmp(argv[5], "copy"))) {
		uint32_t bytes = atoi(argv[4]);

		if (bytes && bytes <= 1 << 20) {
			send_all(argv[2], atoi(argv[3]), bytes, argc == 5);
			return 0;
		}
	}
	fputs("rdszcopy serve | send ADDRESS MESSAGES BYTES [copy]\n", stderr);
	return 1;
}
