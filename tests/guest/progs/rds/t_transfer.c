// SPDX-License-Identifier: GPL-2.0-or-later
/* RDS_CMSG_RDMA_ARGS: RDMA READ and WRITE, each byte verified. */
#include <string.h>

#include "test.h"

/* A region at @at in the owner's memory, and the part of it to transfer. */
struct shape {
	size_t at, len;
	size_t offset;
	uint32_t nr, misalign;		/* pieces of the peer's memory */
	uint32_t piece[8];		/* their lengths, again and again */
};

static const struct shape shapes[] = {
	{ .at = 0, .len = PAGE, .nr = 1, .piece = { PAGE } },
	{ .at = 0, .len = 1, .nr = 1, .piece = { 1 } },
	{ .at = PAGE - 1, .len = 2, .nr = 1, .misalign = 7, .piece = { 2 } },
	{ .at = 123, .len = 10000, .offset = 777, .nr = 1, .misalign = 5,
	  .piece = { 9000 } },
	{ .at = 77, .len = 20000, .offset = 1, .nr = 1, .misalign = PAGE - 3,
	  .piece = { 19999 } },
	{ .at = 4095, .len = 60000, .offset = 4095, .nr = 7, .misalign = 33,
	  .piece = { 1, PAGE - 1, PAGE + 1, 3, 2 * PAGE, 100, 12345 } },
	/* more pieces than a WQE has, and than some of them */
	{ .at = 9, .len = 100000, .nr = 512, .misalign = 100,
	  .piece = { 100, 1, 77, 200, 3, 150, 64, 199 } },
	/* all that is allowed, from anywhere to anywhere */
	{ .at = 1, .len = 1 << 20, .nr = 1, .misalign = 4001,
	  .piece = { 1 << 20 } },
};

static struct remote_command command(const struct shape *s, bool write)
{
	struct remote_command c = {
		.seed = 40 + write,
		.len = 24,
		.token = 0x1122334455667788,
		.flags = RDS_RDMA_NOTIFY_ME |
			 (write ? RDS_RDMA_READWRITE : RDS_RDMA_FENCE),
		.remote_offset = s->offset,
		.local = { .nr = s->nr, .misalign = s->misalign },
	};
	size_t kinds = 0, i;

	while (kinds < ARRAY_SIZE(s->piece) && s->piece[kinds])
		kinds++;
	for (i = 0; i < s->nr; i++)
		c.local.len[i] = s->piece[i % kinds];
	return c;
}

static void transfer(struct test *t, const struct shape *s, bool write)
{
	static struct remote_command c;
	uint8_t *target = t->region + s->at + s->offset;
	size_t bytes;

	c = command(s, write);
	bytes = pieces_bytes(&c.local);
	memset(t->region, UNTOUCHED, REGION);
	if (!write)
		pattern_fill(t->region + s->at, s->len, 0, c.seed);
	if (!test_lend(t, s->at, s->len, RDS_RDMA_READWRITE, &c.cookie) ||
	    !EXPECT_ERR(t, test_remote(t, REMOTE_RDMA, &c), 0) ||
	    !test_ack(t, c.len, c.seed))
		return;
	/* the message says that the data is there */
	if (write) {
		EXPECT(t, pattern_wrong(target, bytes, 0, c.seed), 0);
		EXPECT(t, touched(t->region, target - t->region), 0);
		EXPECT(t, touched(target + bytes, t->region + REGION -
						  target - bytes), 0);
	}
	EXPECT_ERR(t, test_remote(t, REMOTE_NOTE, NULL), 0);
	EXPECT(t, t->a.token, c.token);
	EXPECT(t, t->a.status, RDS_RDMA_SUCCESS);
	if (!write) {
		EXPECT_ERR(t, test_remote(t, REMOTE_CHECK, &c), 0);
		EXPECT(t, t->a.wrong, 0);
	}
	EXPECT_ERR(t, endpoint_free_mr(&t->end, c.cookie, 0), 0);
}

static void writes(struct test *t)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(shapes) && !t->failed; i++)
		transfer(t, &shapes[i], true);
}

static void reads(struct test *t)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(shapes) && !t->failed; i++)
		transfer(t, &shapes[i], false);
}

/* The manual page requires equal sizes; the kernel does not. */
static void less_than_remote(struct test *t)
{
	static struct remote_command c;

	memset(&c, 0, sizeof(c));
	c.seed = 3;
	c.len = 8;
	c.flags = RDS_RDMA_READWRITE;
	c.remote_bytes = 5000;
	c.local.nr = 1;
	c.local.len[0] = 1000;
	memset(t->region, UNTOUCHED, REGION);
	if (!test_lend(t, 50, 5000, RDS_RDMA_READWRITE, &c.cookie) ||
	    !EXPECT_ERR(t, test_remote(t, REMOTE_RDMA, &c), 0) ||
	    !test_ack(t, 8, 3))
		return;
	EXPECT(t, pattern_wrong(t->region + 50, 1000, 0, 3), 0);
	EXPECT(t, touched(t->region + 1050, REGION - 1050), 0);
	EXPECT(t, touched(t->region, 50), 0);
	EXPECT_ERR(t, endpoint_free_mr(&t->end, c.cookie, 0), 0);
}

/*
 * With RDS_RDMA_FENCE the message waits for the RDMA READ: its receiver may
 * overwrite what was read.
 */
static void fence(struct test *t)
{
	static struct remote_command c;
	int i;

	memset(&c, 0, sizeof(c));
	c.len = 4;
	c.flags = RDS_RDMA_FENCE | RDS_RDMA_NOTIFY_ME;
	c.local.nr = 2;
	c.local.misalign = 11;
	c.local.len[0] = 100001;
	c.local.len[1] = 200002;
	if (!test_lend(t, 99, 400000, 0, &c.cookie))
		return;
	for (i = 0; i < 10 && !t->failed; i++) {
		c.seed = 60 + i;
		pattern_fill(t->region + 99, 400000, 0, c.seed);
		if (!EXPECT_ERR(t, test_remote(t, REMOTE_RDMA, &c), 0) ||
		    !test_ack(t, c.len, c.seed))
			return;
		memset(t->region, UNTOUCHED, REGION);
		EXPECT_ERR(t, test_remote(t, REMOTE_NOTE, NULL), 0);
		EXPECT(t, t->a.status, RDS_RDMA_SUCCESS);
		EXPECT_ERR(t, test_remote(t, REMOTE_CHECK, &c), 0);
		EXPECT(t, t->a.wrong, 0);
	}
	EXPECT_ERR(t, endpoint_free_mr(&t->end, c.cookie, 0), 0);
}

/* Messages without RDMA, of all special sizes. */
static void messages(struct test *t)
{
	static const uint32_t len[] = { 0, 1, PAGE - 1, PAGE, PAGE + 1, 100000,
					1 << 20 };
	static struct remote_command c;
	static char data[1 << 20];
	size_t i;

	memset(&c, 0, sizeof(c));
	for (i = 0; i < ARRAY_SIZE(len) && !t->failed; i++) {
		c.seed = i;
		c.len = len[i];
		pattern_fill(data, len[i], 0, c.seed);
		if (!EXPECT_ERR(t, endpoint_send(&t->end, &t->there, data,
						 len[i], NULL, 0), 0) ||
		    !EXPECT_ERR(t, test_remote(t, REMOTE_RECEIVE, &c), 0))
			return;
		EXPECT(t, t->a.len, len[i]);
		EXPECT(t, t->a.has_cookie, false);
		EXPECT(t, t->a.wrong, 0);
		EXPECT_ERR(t, test_remote(t, REMOTE_SEND, &c), 0);
		test_ack(t, len[i], c.seed);
	}
}

static const struct test_case cases[] = {
	{ "messages of 0 bytes to 1 MB", messages },
	{ "RDMA WRITE, unaligned, of one and many pieces", writes },
	{ "RDMA READ, unaligned, of one and many pieces", reads },
	{ "less local than remote memory: as much as there is",
	  less_than_remote },
	{ "FENCE: the message does not overtake the RDMA READ", fence },
};

const struct test_group group_transfer = { "transfer", cases,
					   ARRAY_SIZE(cases) };
