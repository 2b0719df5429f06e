// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * smc eid NAME | serve PORT | send ADDRESS PORT BYTES | why: a stream over SMC
 * sockets. "eid" gives this host an EID: RoCEv2 needs SMC-Rv2, which needs an
 * EID. "serve" and "send" print the bytes they moved and their checksum, as one
 * JSON object; "why" the reasons (SMC_CLC_DECL_*) for which this host has
 * fallen back to TCP so far.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <linux/genetlink.h>
#include <linux/smc.h>

#ifndef AF_SMC
#define AF_SMC	43
#endif

#define BLOCK	60000

struct message {
	struct nlmsghdr nl;
	struct genlmsghdr genl;
	char attrs[4000];
};

static void die(const char *what)
{
	perror(what);
	exit(2);
}

static void put(struct message *m, int type, const char *data, size_t len)
{
	struct nlattr *a = (void *)((char *)m + NLMSG_ALIGN(m->nl.nlmsg_len));

	a->nla_type = type;
	a->nla_len = NLA_HDRLEN + len;
	memcpy((char *)a + NLA_HDRLEN, data, len);
	m->nl.nlmsg_len = NLMSG_ALIGN(m->nl.nlmsg_len) + NLA_ALIGN(a->nla_len);
}

/* Send @m, and read the answer into it. */
static void ask(int fd, struct message *m)
{
	if (send(fd, m, m->nl.nlmsg_len, 0) < 0)
		die("netlink");
	if (recv(fd, m, sizeof(*m), 0) < (ssize_t)sizeof(m->nl))
		die("netlink");
	if (m->nl.nlmsg_type == NLMSG_ERROR) {
		int err = *(int *)NLMSG_DATA(&m->nl);

		if (err) {
			errno = -err;
			die("the kernel refuses");
		}
	}
}

static void begin(struct message *m, int family, int command, int version)
{
	memset(m, 0, sizeof(*m));
	m->nl.nlmsg_len = NLMSG_LENGTH(GENL_HDRLEN);
	m->nl.nlmsg_type = family;
	m->nl.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
	m->genl.cmd = command;
	m->genl.version = version;
}

static int family_of(int fd, const char *name)
{
	struct message m;
	struct nlattr *a;
	char *end;

	begin(&m, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, 1);
	m.nl.nlmsg_flags = NLM_F_REQUEST;
	put(&m, CTRL_ATTR_FAMILY_NAME, name, strlen(name) + 1);
	ask(fd, &m);
	end = (char *)&m + m.nl.nlmsg_len;
	for (a = (void *)m.attrs; (char *)a < end;
	     a = (void *)((char *)a + NLA_ALIGN(a->nla_len)))
		if (a->nla_type == CTRL_ATTR_FAMILY_ID)
			return *(uint16_t *)((char *)a + NLA_HDRLEN);
	errno = ENOENT;
	die(name);
	return 0;
}

/* EIDs have 32 characters, the last ones blank; the kernel wants a NUL too. */
static void add_eid(const char *name)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), family;
	struct message m;
	char eid[33];

	if (fd < 0)
		die("netlink");
	snprintf(eid, sizeof(eid), "%-32s", name);
	family = family_of(fd, SMC_GENL_FAMILY_NAME);
	begin(&m, family, SMC_NETLINK_ADD_UEID, SMC_GENL_FAMILY_VERSION);
	put(&m, SMC_NLA_EID_TABLE_ENTRY, eid, sizeof(eid));
	ask(fd, &m);
	close(fd);
}

/* All u32 that are reasons, however deep they are nested. */
static void reasons(const char *p, const char *end)
{
	const struct nlattr *a = (const void *)p;

	for (; p + NLA_HDRLEN < end && a->nla_len >= NLA_HDRLEN;
	     p += NLA_ALIGN(a->nla_len), a = (const void *)p) {
		if (a->nla_type & NLA_F_NESTED)
			reasons(p + NLA_HDRLEN, p + a->nla_len);
		else if (a->nla_type == SMC_NLA_FBACK_STATS_RSN_CODE &&
			 a->nla_len == NLA_HDRLEN + 4)
			printf("%#x\n", *(const uint32_t *)(p + NLA_HDRLEN));
	}
}

static void why(void)
{
	int fd = socket(AF_NETLINK, SOCK_RAW, NETLINK_GENERIC), family;
	struct message m;
	ssize_t n;

	if (fd < 0)
		die("netlink");
	family = family_of(fd, SMC_GENL_FAMILY_NAME);
	begin(&m, family, SMC_NETLINK_GET_FBACK_STATS, SMC_GENL_FAMILY_VERSION);
	m.nl.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	if (send(fd, &m, m.nl.nlmsg_len, 0) < 0)
		die("netlink");
	while ((n = recv(fd, &m, sizeof(m), 0)) > 0) {
		struct nlmsghdr *h = &m.nl;

		for (; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_type == NLMSG_DONE ||
			    h->nlmsg_type == NLMSG_ERROR)
				goto out;
			reasons((char *)h + NLMSG_LENGTH(GENL_HDRLEN),
				(char *)h + h->nlmsg_len);
		}
	}
out:
	close(fd);
}

static uint64_t sum(uint64_t h, const uint8_t *p, size_t n)
{
	for (; n; n--, p++)
		h = (h ^ *p) * 0x100000001b3ULL;
	return h;
}

static int open_socket(struct sockaddr_in *sa, const char *port)
{
	int fd = socket(AF_SMC, SOCK_STREAM, 0), one = 1;

	if (fd < 0)
		die("socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	memset(sa, 0, sizeof(*sa));
	sa->sin_family = AF_INET;
	sa->sin_port = htons(atoi(port));
	return fd;
}

static void serve(const char *port)
{
	static uint8_t block[BLOCK];
	uint64_t h = 0, total = 0;
	struct sockaddr_in sa;
	int fd = open_socket(&sa, port), peer;
	ssize_t n;

	if (bind(fd, (void *)&sa, sizeof(sa)) || listen(fd, 1))
		die("listen");
	peer = accept(fd, NULL, NULL);
	if (peer < 0)
		die("accept");
	while ((n = read(peer, block, sizeof(block))) > 0) {
		h = sum(h, block, n);
		total += n;
	}
	if (n < 0)
		die("read");
	printf("{\"bytes\": %lu, \"sum\": %lu}\n", (unsigned long)total,
	       (unsigned long)h);
}

static void stream(const char *address, const char *port, uint64_t bytes)
{
	static uint8_t block[BLOCK];
	uint64_t h = 0, total = 0;
	struct sockaddr_in sa;
	int fd = open_socket(&sa, port);
	ssize_t n;
	size_t i;

	if (inet_pton(AF_INET, address, &sa.sin_addr) != 1 ||
	    connect(fd, (void *)&sa, sizeof(sa)))
		die("connect");
	while (total < bytes) {
		for (i = 0; i < BLOCK; i++)
			block[i] = (total + i) * 2654435761u >> 13;
		n = write(fd, block, bytes - total < BLOCK ? bytes - total :
			  BLOCK);
		if (n < 0)
			die("write");
		h = sum(h, block, n);
		total += n;
	}
	if (shutdown(fd, SHUT_WR) || read(fd, block, 1))
		die("shutdown");
	printf("{\"bytes\": %lu, \"sum\": %lu}\n", (unsigned long)total,
	       (unsigned long)h);
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "eid"))
		add_eid(argv[2]);
	else if (argc == 3 && !strcmp(argv[1], "serve"))
		serve(argv[2]);
	else if (argc == 5 && !strcmp(argv[1], "send"))
		stream(argv[2], argv[3], atol(argv[4]));
	else if (argc == 2 && !strcmp(argv[1], "why"))
		why();
	else
		return 1;
	return 0;
}
