// SPDX-License-Identifier: GPL-2.0-or-later
/* Sends commands to the other end of a test. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <arpa/inet.h>
#include <netinet/tcp.h>

#include "remote.h"

size_t pieces_bytes(const struct pieces *p)
{
	size_t sum = 0;
	uint32_t i;

	for (i = 0; i < p->nr; i++)
		sum += p->len[i];
	return sum;
}

void remote_put(int fd, const void *data, size_t len)
{
	const char *p = data;
	ssize_t n;

	for (; len; len -= n, p += n) {
		n = write(fd, p, len);
		if (n <= 0)
			die("to the other end");
	}
}

bool remote_get(int fd, void *data, size_t len)
{
	char *p = data;
	ssize_t n;

	for (; len; len -= n, p += n) {
		n = read(fd, p, len);
		if (n < 0)
			die("from the other end");
		if (!n)
			return false;
	}
	return true;
}

int remote_connect(const char *address, in_port_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;

	if (fd < 0 || inet_pton(AF_INET, address, &to.sin_addr) != 1 ||
	    connect(fd, (void *)&to, sizeof(to)) ||
	    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)))
		die(address);
	return fd;
}

void remote_call(int fd, const struct remote_command *c,
		 struct remote_answer *a)
{
	remote_put(fd, c, sizeof(*c));
	if (!remote_get(fd, a, sizeof(*a))) {
		fputs("the other end has ended\n", stderr);
		exit(2);
	}
}
