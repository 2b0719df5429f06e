// SPDX-License-Identifier: GPL-2.0-or-later
/* Shared by all tests of rdstest. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

static void complain(struct test *t, const char *file, int line)
{
	const char *slash = strrchr(file, '/');

	t->failed = true;
	printf("# %s:%d: ", slash ? slash + 1 : file, line);
}

bool test_equal(struct test *t, const char *file, int line, const char *what,
		long long have, long long want)
{
	if (have == want)
		return true;
	complain(t, file, line);
	printf("%s is %lld, not %lld\n", what, have, want);
	return false;
}

static const char *errno_name(int err)
{
	return err ? strerrorname_np(-err) ?: "unknown" : "0";
}

bool test_errno(struct test *t, const char *file, int line, const char *what,
		int have, int want)
{
	if (have == want)
		return true;
	complain(t, file, line);
	printf("%s gives %s, not %s\n", what, errno_name(have),
	       errno_name(want));
	return false;
}

int test_remote(struct test *t, enum remote_what what,
		struct remote_command *c)
{
	static struct remote_command none;

	if (!c) {
		memset(&none, 0, sizeof(none));
		c = &none;
	}
	c->what = what;
	c->port = t->end.self.sin_port;
	remote_call(t->fd, c, &t->a);
	return t->a.err;
}

bool test_exchange(struct test *t)
{
	static struct remote_command c = { .seed = 17, .len = 100 };
	char ping[100];

	pattern_fill(ping, sizeof(ping), 0, 17);
	return EXPECT_ERR(t, endpoint_send(&t->end, &t->there, ping,
					   sizeof(ping), NULL, 0), 0) &&
	       EXPECT_ERR(t, test_remote(t, REMOTE_RECEIVE, &c), 0) &&
	       EXPECT(t, t->a.len, sizeof(ping)) &&
	       EXPECT(t, t->a.wrong, 0) &&
	       EXPECT_ERR(t, test_remote(t, REMOTE_SEND, &c), 0) &&
	       test_ack(t, 100, 17);
}

bool test_ack(struct test *t, size_t len, uint32_t seed)
{
	static char ack[1 << 20];
	struct message m;

	return EXPECT_ERR(t, endpoint_receive(&t->end, ack, sizeof(ack), &m,
					      PATIENCE), 0) &&
	       EXPECT(t, m.len, len) && EXPECT(t, m.has_cookie, false) &&
	       EXPECT(t, m.from.sin_port, t->there.sin_port) &&
	       EXPECT(t, pattern_wrong(ack, len, 0, seed), 0);
}

struct rds_get_mr_args test_map(const struct test *t, size_t at, size_t len,
				uint64_t flags)
{
	return (struct rds_get_mr_args){
		.vec = { .addr = (uintptr_t)t->region + at, .bytes = len },
		.flags = flags,
	};
}

int test_request(struct test *t, const struct rds_get_mr_args *args)
{
	static struct remote_command c = { .seed = 5 };
	struct control control = { 0 };
	char request[64];
	int err;

	control_add(&control, RDS_CMSG_RDMA_MAP, args, sizeof(*args));
	pattern_fill(request, sizeof(request), 0, 5);
	err = endpoint_send(&t->end, &t->there, request, sizeof(request),
			    &control, 0);
	if (err)
		return err;
	if (EXPECT_ERR(t, test_remote(t, REMOTE_RECEIVE, &c), 0) &&
	    EXPECT(t, t->a.len, sizeof(request)))
		EXPECT(t, t->a.wrong, 0);
	return 0;
}

bool test_lend(struct test *t, size_t at, size_t len, uint64_t flags,
	       uint64_t *cookie)
{
	struct rds_get_mr_args args = test_map(t, at, len, flags);

	args.cookie_addr = (uintptr_t)cookie;
	return EXPECT_ERR(t, test_request(t, &args), 0) && !t->failed;
}
