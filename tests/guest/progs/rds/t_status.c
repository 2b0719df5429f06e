// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * RDS_CMSG_RDMA_STATUS: what is reported about an RDMA operation, and to whom.
 *
 * An operation that fails ends the connection; RDS makes a new one.  Linux 6.12
 * does so only after all regions exposed over the old one are released, and the
 * message that exposed a region holds it until it is acknowledged.  So a test
 * gets its request acknowledged (test_exchange()) before it makes an operation
 * fail, and releases the region before it continues.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

/* How long to wait for a notification that must not come. */
#define SILENCE	100

/* An RDMA WRITE of a page to @cookie by the other end, with @flags and @token. */
static bool operate(struct test *t, uint64_t cookie, uint64_t flags,
		    uint64_t token)
{
	static struct remote_command c;

	memset(&c, 0, sizeof(c));
	c.seed = 8;
	c.len = 12;
	c.cookie = cookie;
	c.token = token;
	c.flags = RDS_RDMA_READWRITE | flags;
	c.local.nr = 1;
	c.local.len[0] = PAGE;
	return EXPECT_ERR(t, test_remote(t, REMOTE_RDMA, &c), 0);
}

static bool note(struct test *t, uint64_t token, int status)
{
	return EXPECT_ERR(t, test_remote(t, REMOTE_NOTE, NULL), 0) &&
	       EXPECT(t, t->a.token, token) && EXPECT(t, t->a.status, status);
}

static bool quiet(struct test *t)
{
	static struct remote_command c = { .len = SILENCE };

	return EXPECT_ERR(t, test_remote(t, REMOTE_QUIET, &c), -ETIMEDOUT);
}

static bool recverr(struct test *t, bool on)
{
	static struct remote_command c;

	c.len = on;
	return EXPECT_ERR(t, test_remote(t, REMOTE_RECVERR, &c), 0);
}

/* Operations at a time, whose notifications may come together. */
#define MANY	20

/*
 * The manual page has tokens of 32 bits, the kernel of 64.  Of those that one
 * recvmsg() brings, it has the last first.
 */
static void tokens(struct test *t)
{
	static const uint64_t token[] = { 0, 1, 0xffffffff,
					  0x8000000000000001, UINT64_MAX };
	uint64_t cookie;
	unsigned int told = 0;
	size_t i;

	if (!test_lend(t, 0, PAGE, 0, &cookie))
		return;
	for (i = 0; i < ARRAY_SIZE(token) && !t->failed; i++)
		if (operate(t, cookie, RDS_RDMA_NOTIFY_ME, token[i]) &&
		    test_ack(t, 12, 8))
			note(t, token[i], RDS_RDMA_SUCCESS);
	for (i = 0; i < MANY && !t->failed; i++)
		operate(t, cookie, RDS_RDMA_NOTIFY_ME, i);
	for (i = 0; i < MANY && !t->failed; i++) {
		if (!test_ack(t, 12, 8) ||
		    !EXPECT_ERR(t, test_remote(t, REMOTE_NOTE, NULL), 0) ||
		    !EXPECT(t, t->a.token < MANY, true))
			break;
		EXPECT(t, t->a.status, RDS_RDMA_SUCCESS);
		EXPECT(t, told & 1u << t->a.token, 0);
		told |= 1u << t->a.token;
	}
	EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), 0);
}

/* Success is reported only on request, and once. */
static void unasked(struct test *t)
{
	uint64_t cookie;

	if (!test_lend(t, 0, PAGE, 0, &cookie))
		return;
	if (operate(t, cookie, 0, 1) && test_ack(t, 12, 8) && quiet(t) &&
	    recverr(t, true) && operate(t, cookie, 0, 2) &&
	    test_ack(t, 12, 8) && quiet(t) &&
	    operate(t, cookie, RDS_RDMA_NOTIFY_ME, 3) && test_ack(t, 12, 8) &&
	    note(t, 3, RDS_RDMA_SUCCESS))
		quiet(t);
	EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), 0);
}

/* The status that is reported for @token, or -1. */
static int noted(struct test *t, uint64_t token)
{
	if (!EXPECT_ERR(t, test_remote(t, REMOTE_NOTE, NULL), 0) ||
	    !EXPECT(t, t->a.token, token))
		return -1;
	return t->a.status;
}

/* How long a notification may take that does not wait for anything. */
#define SOON	10000

/*
 * The same for an access to the region @cookie, which is released.  If RDS ended
 * the connection first (see refused()), it reports that on the next connection,
 * which it does not make before the region is released.
 */
static int noted_and_freed(struct test *t, uint64_t token, uint64_t cookie)
{
	static struct remote_command c = { .len = SOON };
	int err = test_remote(t, REMOTE_NOTE, &c);
	struct remote_answer a = t->a;

	if (!EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie,
					    RDS_RDMA_INVALIDATE), 0) ||
	    !test_exchange(t))
		return -1;
	if (err == -ETIMEDOUT)
		return noted(t, token);
	if (!EXPECT_ERR(t, err, 0) || !EXPECT(t, a.token, token))
		return -1;
	return a.status;
}

/* An access to a key that was never given out: its status. */
static int unknown_key(struct test *t)
{
	if (!operate(t, 0xfffffff0, RDS_RDMA_NOTIFY_ME, 70))
		return -1;
	return noted(t, 70);
}

/* An access behind a region's end, which is that of its last page. */
static int behind_end(struct test *t)
{
	static struct remote_command c;
	uint64_t cookie;

	if (!test_lend(t, 100, 2 * PAGE - 100, 0, &cookie) || !test_exchange(t))
		return -1;
	memset(&c, 0, sizeof(c));
	c.cookie = cookie;
	c.remote_offset = PAGE;
	c.token = 71;
	c.flags = RDS_RDMA_NOTIFY_ME;
	c.local.nr = 1;
	c.local.len[0] = PAGE - 100 + 1;
	memset(t->region, UNTOUCHED, REGION);
	if (!EXPECT_ERR(t, test_remote(t, REMOTE_RDMA, &c), 0))
		return -1;
	return noted_and_freed(t, 71, cookie);
}

#define TRIES	50

/*
 * Both ends hear of the error: one by the completion, the lender by an event of
 * its QP, at which RDS ends the connection.  A slow peer may get the message
 * about that before it takes the completion, and then reports DROPPED.
 */
static bool refused(struct test *t, int (*access)(struct test *t), int want)
{
	int status, tries = TRIES;

	do {
		status = access(t);
		if (!test_exchange(t))
			return false;
	} while (status == RDS_RDMA_DROPPED && --tries);
	return EXPECT(t, status, want);
}

static void remote_error(struct test *t)
{
	if (test_exchange(t) && recverr(t, true) &&
	    refused(t, unknown_key, RDS_RDMA_REMOTE_ERROR) && quiet(t))
		refused(t, behind_end, RDS_RDMA_REMOTE_ERROR);
}

/*
 * With RDS_RECVERR alone, the next attempt to send the message, on a new
 * connection, reports that the operation was dropped.
 */
static void dropped(struct test *t)
{
	if (test_exchange(t) && recverr(t, true) &&
	    operate(t, 0xfffffff0, 0, 80) && note(t, 80, RDS_RDMA_DROPPED) &&
	    test_exchange(t) && recverr(t, false) &&
	    operate(t, 0xfffffff0, 0, 81) && quiet(t))
		test_exchange(t);
}

/*
 * The manual page says that this status is not yet generated; it is, for what
 * RDS_CANCEL_SENT_TO takes back.  No host has that address, so nothing is sent.
 */
static void canceled(struct test *t)
{
	struct rds_iovec local = { (uintptr_t)t->region, PAGE };
	struct rds_rdma_args args = {
		.cookie = 4711,
		.remote_vec = { 0, PAGE },
		.local_vec_addr = (uintptr_t)&local,
		.nr_local = 1,
		.flags = RDS_RDMA_NOTIFY_ME,
		.user_token = 90,
	};
	struct sockaddr_in nobody = t->there;
	struct rds_rdma_notify n = { 0 };
	struct control control = { 0 };

	((uint8_t *)&nobody.sin_addr)[3] = 250;
	control_add(&control, RDS_CMSG_RDMA_ARGS, &args, sizeof(args));
	EXPECT_ERR(t, endpoint_send(&t->end, &nobody, "x", 1, &control, 0), 0);
	EXPECT_ERR(t, endpoint_note(&t->end, &n, SILENCE), -ETIMEDOUT);
	if (setsockopt(t->end.fd, SOL_RDS, RDS_CANCEL_SENT_TO, &nobody,
		       sizeof(nobody)))
		EXPECT_ERR(t, -errno, 0);
	EXPECT_ERR(t, endpoint_note(&t->end, &n, PATIENCE), 0);
	EXPECT(t, n.user_token, 90);
	EXPECT(t, n.status, RDS_RDMA_CANCELED);
}

static const struct test_case cases[] = {
	{ "NOTIFY_ME: SUCCESS with the token", tokens },
	{ "success without NOTIFY_ME is not told, and none twice", unasked },
	{ "wrong key, or beyond the region: REMOTE_ERROR", remote_error },
	{ "RECVERR without NOTIFY_ME: DROPPED; without both: nothing",
	  dropped },
	{ "CANCEL_SENT_TO: CANCELED", canceled },
};

const struct test_group group_status = { "status", cases, ARRAY_SIZE(cases) };

/*
 * The peer's operation fails for another reason than its key: the caller of the
 * program arranges this, for regions of more than a page.
 */
static int broken(struct test *t)
{
	uint64_t cookie;

	if (!test_lend(t, 0, 3 * PAGE, 0, &cookie) || !test_exchange(t) ||
	    !operate(t, cookie, RDS_RDMA_NOTIFY_ME, 33))
		return -1;
	return noted_and_freed(t, 33, cookie);
}

static void other_error(struct test *t)
{
	if (test_exchange(t))
		refused(t, broken, RDS_RDMA_OTHER_ERROR);
}

static const struct test_case fault[] = {
	{ "an error that is not of the key: OTHER_ERROR", other_error },
};

const struct test_group group_fault = { "fault", fault, ARRAY_SIZE(fault) };
