/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sends pages over TCP by MSG_ZEROCOPY and tells where they lie.
 *
 *   zerocopy PAGES			waits for a client, checks what comes
 *   zerocopy PAGES ADDRESS		sends PAGES pages in one call
 *
 * The sender prints their page frames and whether the kernel copied them, the
 * receiver how many bytes came.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "qv.h"

#define PAGE	4096
#define PORT	7707
#define PATIENCE 60000	/* ms, for what comes at once on an idle host */

static unsigned char pattern(size_t at)
{
	return (unsigned char)(at * 7 + at / PAGE);
}

static void receive(size_t length)
{
	static unsigned char buf[1 << 16];
	int fd = qv_link(NULL, PORT);
	size_t have = 0;
	ssize_t n, i;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (i = 0; i < n; i++) {
			if (buf[i] != pattern(have + (size_t)i)) {
				qv_wrong("byte %zu is wrong", have + (size_t)i);
				break;
			}
		}
		have += (size_t)n;
	}
	if (n)
		qv_die("read", errno);
	if (have != length)
		qv_wrong("%zu bytes of %zu", have, length);
	printf("{\"bytes\": %zu, \"wrong\": \"%s\"}\n", have, qv_why);
}

/* Wait for the notifications of all @calls sends; true if one says "copied". */
static bool notified(int fd, unsigned calls)
{
	struct pollfd p = { .fd = fd, .events = 0 };
	struct sock_extended_err *e;
	unsigned done = 0;
	bool copied = false;
	char control[256];
	struct cmsghdr *c;
	struct msghdr m;

	while (done < calls) {
		if (poll(&p, 1, PATIENCE * qv_pace()) <= 0)
			qv_die("no notification", ETIMEDOUT);
		memset(&m, 0, sizeof(m));
		m.msg_control = control;
		m.msg_controllen = sizeof(control);
		if (recvmsg(fd, &m, MSG_ERRQUEUE) < 0) {
			if (errno == EAGAIN)
				continue;
			qv_die("recvmsg of the error queue", errno);
		}
		for (c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
			e = (void *)CMSG_DATA(c);
			if (e->ee_origin != SO_EE_ORIGIN_ZEROCOPY)
				continue;
			done += e->ee_data - e->ee_info + 1;
			copied |= e->ee_code & SO_EE_CODE_ZEROCOPY_COPIED;
		}
	}
	return copied;
}

static void send_pages(const char *server, size_t length)
{
	int fd = qv_link(server, PORT), one = 1;
	unsigned char *page;
	unsigned calls = 0;
	size_t at, left;
	ssize_t n;

	page = mmap(NULL, length, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (page == MAP_FAILED || mlock(page, length))
		qv_die("memory", errno);
	for (at = 0; at < length; at++)
		page[at] = pattern(at);
	if (setsockopt(fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		qv_die("SO_ZEROCOPY", errno);
	for (left = length; left; left -= (size_t)n, calls++) {
		n = send(fd, page + length - left, left, MSG_ZEROCOPY);
		if (n < 0)
			qv_die("send", errno);
	}
	printf("{\"copied\": %s, ", notified(fd, calls) ? "true" : "false");
	printf("\"calls\": %u, \"pfns\": [", calls);
	for (at = 0; at < length; at += PAGE)
		printf("%s%llu", at ? ", " : "",
		       (unsigned long long)qv_pfn(page + at));
	printf("]}\n");
	close(fd);
}

int main(int argc, char **argv)
{
	size_t length;

	if (argc < 2 || argc > 3 || atoi(argv[1]) < 1)
		qv_die("usage: zerocopy PAGES [ADDRESS]", EINVAL);
	length = (size_t)atoi(argv[1]) * PAGE;
	if (argc == 3)
		send_pages(argv[2], length);
	else
		receive(length);
	return 0;
}
