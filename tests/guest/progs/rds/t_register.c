// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory is exposed to the peer and released: RDS_GET_MR, RDS_CMSG_RDMA_MAP,
 * RDS_CMSG_RDMA_DEST, RDS_FREE_MR.
 *
 * Where Linux 6.12 differs from the manual page rds-rdma(7), the tests follow
 * the kernel and say so.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <sys/mman.h>

#include "test.h"

static int get_mr(const struct endpoint *e, const struct rds_get_mr_args *args)
{
	if (setsockopt(e->fd, SOL_RDS, RDS_GET_MR, args, sizeof(*args)))
		return -errno;
	return 0;
}

static int get_mr_for_dest(const struct test *t)
{
	struct rds_get_mr_args map = test_map(t, 0, PAGE, 0);
	struct rds_get_mr_for_dest_args args = { .vec = map.vec };

	memcpy(&args.dest_addr, &t->there, sizeof(t->there));
	if (setsockopt(t->end.fd, SOL_RDS, RDS_GET_MR_FOR_DEST, &args,
		       sizeof(args)))
		return -errno;
	return 0;
}

/* ------------------------------- before and after the very first connection */

static void get_mr_unbound(struct test *t)
{
	struct rds_get_mr_args args = test_map(t, 0, PAGE, 0);
	struct endpoint e = { .fd = socket(AF_RDS, SOCK_SEQPACKET, 0) };

	EXPECT_ERR(t, get_mr(&e, &args), -ENOTCONN);
	EXPECT_ERR(t, endpoint_free_mr(&e, 0, RDS_RDMA_INVALIDATE), -EINVAL);
	endpoint_close(&e);
}

/* RDS learns which device an address belongs to when it connects. */
static void get_mr_unconnected(struct test *t)
{
	struct rds_get_mr_args args = test_map(t, 0, PAGE, 0);

	EXPECT_ERR(t, get_mr(&t->end, &args), -ENODEV);
	EXPECT_ERR(t, get_mr_for_dest(t), -ENODEV);
}

/* A request with RDMA_MAP makes the connection that it needs. */
static void map_unconnected(struct test *t)
{
	struct rds_get_mr_args args = test_map(t, 0, PAGE, 0);
	int64_t deadline = now_ms() + PATIENCE;
	uint64_t cookie = 0;
	int err;

	args.cookie_addr = (uintptr_t)&cookie;
	err = test_request(t, &args);
	EXPECT_ERR(t, err, -EAGAIN);
	while (err == -EAGAIN && now_ms() < deadline) {
		usleep(20000);
		err = test_request(t, &args);
	}
	EXPECT_ERR(t, err, 0);
	EXPECT(t, t->a.cookie, cookie);
	EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), 0);
}

/*
 * A socket option specifies no connection, so there is no QP to register with:
 * with FRWR, RDS offers only RDMA_MAP.  The manual page is of the time of FMR.
 */
static void get_mr_connected(struct test *t)
{
	struct rds_get_mr_args args = test_map(t, 0, PAGE, 0);

	if (!test_exchange(t))
		return;
	EXPECT_ERR(t, get_mr(&t->end, &args), -EOPNOTSUPP);
	EXPECT_ERR(t, get_mr_for_dest(t), -EOPNOTSUPP);
}

static const struct test_case first[] = {
	{ "GET_MR and FREE_MR of an unbound socket: ENOTCONN, EINVAL",
	  get_mr_unbound },
	{ "GET_MR before a connection: ENODEV", get_mr_unconnected },
	{ "RDMA_MAP before a connection: EAGAIN, then it connects",
	  map_unconnected },
	{ "GET_MR with a connection: EOPNOTSUPP", get_mr_connected },
};

const struct test_group group_first = { "first", first, ARRAY_SIZE(first) };

/* ------------------------------------------------------------------ cookies */

static void map_is_dest(struct test *t)
{
	static const size_t at[] = { 0, 1, 123, PAGE - 1, PAGE, 3 * PAGE + 8 };
	uint64_t cookie;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(at); i++) {
		cookie = 0;
		if (!test_lend(t, at[i], 5000, 0, &cookie))
			return;
		EXPECT(t, t->a.has_cookie, true);
		EXPECT(t, t->a.cookie, cookie);
		/* rkey, and the offset in the first page */
		EXPECT(t, cookie >> 32, at[i] % PAGE);
		EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), 0);
	}
}

static int send_dest(struct test *t, uint64_t cookie)
{
	static struct remote_command c = { .seed = 6 };
	struct control control = { 0 };
	char request[10];
	int err;

	pattern_fill(request, sizeof(request), 0, 6);
	control_add(&control, RDS_CMSG_RDMA_DEST, &cookie, sizeof(cookie));
	err = endpoint_send(&t->end, &t->there, request, sizeof(request),
			    &control, 0);
	if (!err)
		EXPECT_ERR(t, test_remote(t, REMOTE_RECEIVE, &c), 0);
	return err;
}

static void dest_again(struct test *t)
{
	uint64_t cookie;

	if (!test_lend(t, 100, 5000, 0, &cookie))
		return;
	EXPECT_ERR(t, send_dest(t, cookie), 0);
	EXPECT(t, t->a.has_cookie, true);
	EXPECT(t, t->a.cookie, cookie);
	EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), 0);
	EXPECT_ERR(t, send_dest(t, cookie), -EINVAL);
}

static void unknown_cookie(struct test *t)
{
	EXPECT_ERR(t, send_dest(t, 0x12345678), -EINVAL);
	EXPECT_ERR(t, endpoint_free_mr(&t->end, 0x12345678, 0), -EINVAL);
	EXPECT_ERR(t, endpoint_free_mr(&t->end, 0x12345678,
				       RDS_RDMA_INVALIDATE), -EINVAL);
	test_exchange(t);
}

static int try_map(struct test *t, uint64_t addr, uint64_t bytes)
{
	struct rds_get_mr_args args = { .vec = { addr, bytes } };

	return test_request(t, &args);
}

/*
 * The manual page has EINVAL for too much; the kernel's limit is 1 MB and a
 * page, beyond which it is EMSGSIZE.
 */
static void bad_memory(struct test *t)
{
	uint64_t region = (uintptr_t)t->region;
	uint8_t *hole = memory(2 * PAGE);
	uint64_t cookie;
	struct rds_get_mr_args args = test_map(t, 0, PAGE, 0);

	EXPECT_ERR(t, try_map(t, region, 0), -EINVAL);
	EXPECT_ERR(t, try_map(t, region, -region), -EINVAL);
	EXPECT_ERR(t, try_map(t, region, -1), -EINVAL);
	EXPECT_ERR(t, try_map(t, region, (1 << 20) + PAGE + 1), -EMSGSIZE);
	EXPECT_ERR(t, try_map(t, region + 1, (1 << 20) + PAGE), -EMSGSIZE);
	if (test_lend(t, 1, 1 << 20, 0, &cookie))
		EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), 0);

	args.cookie_addr = 8;
	EXPECT_ERR(t, test_request(t, &args), -EFAULT);
	munmap(hole + PAGE, PAGE);
	EXPECT_ERR(t, try_map(t, (uintptr_t)hole, 2 * PAGE), -EFAULT);
	mprotect(hole, PAGE, PROT_READ);
	EXPECT_ERR(t, try_map(t, (uintptr_t)hole, PAGE), -EFAULT);
	munmap(hole, PAGE);
	test_exchange(t);
}

/* ------------------------------------------------------------------ release */

/* The peer writes @len bytes to @cookie; the status it gets, or -1. */
static int peer_writes(struct test *t, uint64_t cookie, uint32_t len)
{
	static struct remote_command c;

	memset(&c, 0, sizeof(c));
	c.seed = 21;
	c.len = 16;
	c.cookie = cookie;
	c.token = 99;
	c.flags = RDS_RDMA_READWRITE | RDS_RDMA_NOTIFY_ME;
	c.local.nr = 1;
	c.local.len[0] = len;
	if (!EXPECT_ERR(t, test_remote(t, REMOTE_RDMA, &c), 0) ||
	    !EXPECT_ERR(t, test_remote(t, REMOTE_NOTE, NULL), 0) ||
	    !EXPECT(t, t->a.token, 99))
		return -1;
	if (t->a.status != RDS_RDMA_SUCCESS)
		return t->a.status;
	if (!test_ack(t, 16, 21))
		return -1;
	/* the region begins somewhere in the first page */
	EXPECT(t, pattern_wrong(t->region + (cookie >> 32), len, 0, 21), 0);
	return RDS_RDMA_SUCCESS;
}

/*
 * The peer's access is soon refused: what still held the region (a message
 * whose acknowledgment is being processed) is gone shortly.  A new connection
 * is made, and the message that belonged to the access is not delivered.  The
 * status may be DROPPED: see refused() in t_status.c.
 */
static void expect_refused(struct test *t, uint64_t cookie)
{
	int64_t deadline = now_ms() + PATIENCE;
	int status;

	do
		status = peer_writes(t, cookie, PAGE);
	while ((status == RDS_RDMA_SUCCESS || status == RDS_RDMA_DROPPED) &&
	       now_ms() < deadline);
	EXPECT(t, status, RDS_RDMA_REMOTE_ERROR);
	test_exchange(t);
}

static void use_once(struct test *t)
{
	uint64_t once, kept;

	if (!test_lend(t, 0, PAGE, RDS_RDMA_USE_ONCE, &once) ||
	    !EXPECT(t, peer_writes(t, once, PAGE), RDS_RDMA_SUCCESS) ||
	    !test_lend(t, 0, PAGE, 0, &kept) ||
	    !EXPECT(t, peer_writes(t, kept, PAGE), RDS_RDMA_SUCCESS))
		return;
	/* released when the peer's message arrived, or still there */
	EXPECT_ERR(t, endpoint_free_mr(&t->end, once, 0), -EINVAL);
	EXPECT_ERR(t, endpoint_free_mr(&t->end, kept, 0), 0);
	if (test_lend(t, 0, PAGE, RDS_RDMA_USE_ONCE, &once))
		EXPECT_ERR(t, endpoint_free_mr(&t->end, once, 0), 0);
}

static void use_once_invalidate(struct test *t)
{
	uint64_t cookie;

	if (test_lend(t, 0, PAGE, RDS_RDMA_USE_ONCE | RDS_RDMA_INVALIDATE,
		      &cookie) &&
	    EXPECT(t, peer_writes(t, cookie, PAGE), RDS_RDMA_SUCCESS))
		expect_refused(t, cookie);
}

static void invalidate(struct test *t)
{
	uint64_t cookie;

	if (!test_lend(t, 0, 3 * PAGE, 0, &cookie) || !test_exchange(t))
		return;
	EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, RDS_RDMA_INVALIDATE),
		   0);
	expect_refused(t, cookie);
}

/*
 * Without RDS_RDMA_INVALIDATE the peer has access for some time longer.  Cookie
 * 0 ends that; the manual page requires RDS_RDMA_INVALIDATE with it, the kernel
 * does not check.
 */
static void flush(struct test *t)
{
	uint64_t cookie;

	if (!test_lend(t, 0, 3 * PAGE, 0, &cookie) || !test_exchange(t))
		return;
	EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), 0);
	EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), -EINVAL);
	EXPECT(t, peer_writes(t, cookie, PAGE), RDS_RDMA_SUCCESS);
	EXPECT_ERR(t, endpoint_free_mr(&t->end, 0, 0), 0);
	expect_refused(t, cookie);
}

/* Each has a key of its own. */
static void many(struct test *t)
{
	static uint64_t cookie[200];
	size_t i, k;

	for (i = 0; i < ARRAY_SIZE(cookie); i++)
		if (!test_lend(t, i * PAGE, PAGE, 0, &cookie[i]))
			return;
	for (i = 0; i < ARRAY_SIZE(cookie); i++)
		for (k = 0; k < i; k++)
			if (cookie[i] == cookie[k])
				EXPECT(t, i, k);
	for (i = 0; i < ARRAY_SIZE(cookie); i++)
		EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie[i], 0), 0);
}

static const struct test_case cases[] = {
	{ "RDMA_MAP: the cookie reaches the peer as RDMA_DEST", map_is_dest },
	{ "RDMA_DEST: the cookie once more; not after FREE_MR", dest_again },
	{ "unknown cookies: EINVAL", unknown_cookie },
	{ "bad memory: EINVAL, EMSGSIZE, EFAULT", bad_memory },
	{ "USE_ONCE: released when the ACK arrives", use_once },
	{ "USE_ONCE and INVALIDATE: the peer loses access with the ACK",
	  use_once_invalidate },
	{ "FREE_MR with INVALIDATE: the peer gets REMOTE_ERROR", invalidate },
	{ "FREE_MR without: the peer has access until cookie 0 flushes",
	  flush },
	{ "200 regions at a time", many },
};

const struct test_group group_register = { "register", cases,
					   ARRAY_SIZE(cases) };

/* ------------------------------------------------------------- out of luck */

/*
 * The DMA mapping of a region of more than 256 pages fails, once: the caller of
 * the program arranges this.
 */
static void busy(struct test *t)
{
	struct rds_get_mr_args args = test_map(t, 1, 1 << 20, 0);
	uint64_t cookie;

	if (!test_exchange(t))
		return;
	EXPECT_ERR(t, test_request(t, &args), -EBUSY);
	if (test_lend(t, 1, 1 << 20, 0, &cookie) &&
	    EXPECT(t, peer_writes(t, cookie, PAGE), RDS_RDMA_SUCCESS))
		EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), 0);
	test_exchange(t);
}

static const struct test_case unlucky[] = {
	{ "a mapping for DMA fails: EBUSY", busy },
};

const struct test_group group_busy = { "busy", unlucky, ARRAY_SIZE(unlucky) };
