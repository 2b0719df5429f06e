/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tests of rdstest.  A test has an RDS socket of its own at both ends, and
 * prints one line of TAP.
 */
#ifndef QHCA_TEST_RDS_TEST_H
#define QHCA_TEST_RDS_TEST_H

#include "remote.h"

struct test {
	int fd;				/* to the other end */
	struct in_addr self;
	struct endpoint end;
	struct sockaddr_in there;	/* the other end's RDS socket */
	struct remote_answer a;		/* its last answer */
	uint8_t *region;		/* REGION bytes for RDMA */
	bool failed;
};

#define REGION	(2u << 20)
#define PAGE	4096u

struct test_case {
	const char *name;
	void (*run)(struct test *t);
};

struct test_group {
	const char *name;
	const struct test_case *cases;
	size_t nr;
};

extern const struct test_group group_first, group_register, group_transfer,
	group_status, group_refused, group_fault, group_busy;

/* Compare numbers, or errnos; false, with a line that tells both, if not equal. */
bool test_equal(struct test *t, const char *file, int line, const char *what,
		long long have, long long want);
bool test_errno(struct test *t, const char *file, int line, const char *what,
		int have, int want);

#define EXPECT(t, have, want) \
	test_equal(t, __FILE__, __LINE__, #have, (long long)(have), \
		   (long long)(want))
#define EXPECT_ERR(t, have, want) \
	test_errno(t, __FILE__, __LINE__, #have, have, want)

/* Call the other end; what it answered is in t->a.  Returns t->a.err. */
int test_remote(struct test *t, enum remote_what what,
		struct remote_command *c);

/*
 * One message each way, with the sockets of the test.  Afterwards there is a
 * connection, and everything sent earlier has been acknowledged.
 */
bool test_exchange(struct test *t);

/* An RDS_CMSG_RDMA_MAP of @len bytes at offset @at of the region. */
struct rds_get_mr_args test_map(const struct test *t, size_t at, size_t len,
				uint64_t flags);

/*
 * Send a request with @args in an RDS_CMSG_RDMA_MAP, and let the other end
 * receive it; the cookie is in t->a.  -EAGAIN while there is no connection.
 */
int test_request(struct test *t, const struct rds_get_mr_args *args);

/* test_request(), which must succeed, of @len bytes of the region. */
bool test_lend(struct test *t, size_t at, size_t len, uint64_t flags,
	       uint64_t *cookie);

/* Wait for the other end's message with pattern @seed. */
bool test_ack(struct test *t, size_t len, uint32_t seed);

#endif
