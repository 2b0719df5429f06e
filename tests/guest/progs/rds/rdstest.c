// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rdstest serve | rdstest run ADDRESS GROUP...: the interface of RDS over RDMA,
 * line by line. "serve" is the other end of one "run", which prints TAP. "run"
 * exposes memory, the other end accesses it; for the other direction, swap the
 * two.
 *
 * Groups: first (before anything else since RDS was loaded), register,
 * transfer, status, refused.  The caller makes the adapter fail accesses to
 * regions for "fault", and a DMA mapping fail for "busy".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

#define PORT	4100

static const struct test_group *const groups[] = {
	&group_first, &group_register, &group_transfer, &group_status,
	&group_refused, &group_fault, &group_busy,
};

static const struct test_group *group(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(groups); i++)
		if (!strcmp(groups[i]->name, name))
			return groups[i];
	fprintf(stderr, "rdstest: no group %s\n", name);
	exit(1);
}

static bool run(struct test *t, const struct test_case *c, unsigned int number)
{
	int64_t begin = now_ms();

	t->failed = false;
	memset(t->region, UNTOUCHED, REGION);
	if (EXPECT_ERR(t, endpoint_open(&t->end, t->self, 0, RDS_TRANS_IB), 0)) {
		if (EXPECT_ERR(t, test_remote(t, REMOTE_OPEN, NULL), 0)) {
			t->there.sin_port = t->a.port;
			c->run(t);
		}
		endpoint_close(&t->end);
	}
	printf("%sok %u - %s # %lld ms\n", t->failed ? "not " : "", number,
	       c->name, (long long)(now_ms() - begin));
	fflush(stdout);
	return !t->failed;
}

static int run_all(const char *address, char **names)
{
	static struct test t;
	struct sockaddr_in sa;
	socklen_t len = sizeof(sa);
	unsigned int number = 0, bad = 0;
	char **name;
	size_t i;

	for (name = names; *name; name++)
		number += group(*name)->nr;
	printf("1..%u\n", number);
	t.fd = remote_connect(address, PORT);
	if (getpeername(t.fd, (void *)&t.there, &len) ||
	    getsockname(t.fd, (void *)&sa, &len))
		die("addresses");
	t.self = sa.sin_addr;
	t.region = memory(REGION);
	number = 0;
	for (name = names; *name; name++)
		for (i = 0; i < group(*name)->nr; i++)
			bad += !run(&t, &group(*name)->cases[i], ++number);
	close(t.fd);
	return bad ? 3 : 0;
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "serve")) {
		remote_serve(PORT);
		return 0;
	}
	if (argc >= 4 && !strcmp(argv[1], "run"))
		return run_all(argv[2], argv + 3);
	fputs("rdstest serve | run ADDRESS GROUP...\n", stderr);
	return 1;
}
