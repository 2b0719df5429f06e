// SPDX-License-Identifier: GPL-2.0-or-later
/* What sendmsg() refuses.  Afterwards the socket always continues to work. */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

static char data[(1 << 20) + 1];

/* ------------------------------------------------- control messages together */

static void add_map(const struct test *t, struct control *c)
{
	struct rds_get_mr_args args = test_map(t, 0, PAGE, 0);

	control_add(c, RDS_CMSG_RDMA_MAP, &args, sizeof(args));
}

static void add_dest(struct control *c, uint64_t cookie)
{
	control_add(c, RDS_CMSG_RDMA_DEST, &cookie, sizeof(cookie));
}

/* An RDMA WRITE of @local bytes, to @remote bytes at an arbitrary address. */
static struct rds_rdma_args write_args(const struct test *t,
				       struct rds_iovec *v, uint64_t local,
				       uint64_t remote)
{
	v->addr = (uintptr_t)t->region;
	v->bytes = local;
	return (struct rds_rdma_args){
		.cookie = 4711,
		.remote_vec = { .bytes = remote },
		.local_vec_addr = (uintptr_t)v,
		.nr_local = 1,
		.flags = RDS_RDMA_READWRITE | RDS_RDMA_NOTIFY_ME,
	};
}

static void add_args(const struct test *t, struct control *c)
{
	static struct rds_iovec v;
	struct rds_rdma_args args = write_args(t, &v, PAGE, PAGE);

	control_add(c, RDS_CMSG_RDMA_ARGS, &args, sizeof(args));
}

static int try(const struct test *t, const struct control *c, size_t len,
	       int flags)
{
	return endpoint_send(&t->end, &t->there, data, len, c, flags);
}

/* MAP, DEST, ARGS: two of them, whichever. */
static void together(struct test *t)
{
	uint64_t cookie;
	int first, second;

	if (!test_exchange(t) || !test_lend(t, 0, PAGE, 0, &cookie))
		return;
	for (first = 0; first < 3; first++) {
		for (second = 0; second < 3; second++) {
			struct control c = { 0 };
			int i;

			for (i = 0; i < 2; i++) {
				switch (i ? second : first) {
				case 0:
					add_map(t, &c);
					break;
				case 1:
					add_dest(&c, cookie);
					break;
				case 2:
					add_args(t, &c);
					break;
				}
			}
			EXPECT_ERR(t, try(t, &c, 10, 0), -EINVAL);
		}
	}
	EXPECT_ERR(t, endpoint_free_mr(&t->end, cookie, 0), 0);
	test_exchange(t);
}

/* ------------------------------------------------- one control message alone */

static int try_args(const struct test *t, const struct rds_rdma_args *args)
{
	struct control c = { 0 };

	control_add(&c, RDS_CMSG_RDMA_ARGS, args, sizeof(*args));
	return try(t, &c, 10, 0);
}

static void bad_args(struct test *t)
{
	struct rds_rdma_args args;
	struct rds_iovec v[2];

	if (!test_exchange(t))
		return;
	args = write_args(t, v, PAGE + 1, PAGE);
	EXPECT_ERR(t, try_args(t, &args), -EINVAL);
	args = write_args(t, v, PAGE, PAGE + 1);
	v[1] = (struct rds_iovec){ v[0].addr, 2 };
	args.nr_local = 2;
	EXPECT_ERR(t, try_args(t, &args), -EINVAL);

	args = write_args(t, v, PAGE, PAGE);
	args.nr_local = 0;
	EXPECT_ERR(t, try_args(t, &args), -EINVAL);
	args.nr_local = 1025;
	EXPECT_ERR(t, try_args(t, &args), -EMSGSIZE);
	args.nr_local = 1;
	args.local_vec_addr = 8;
	EXPECT_ERR(t, try_args(t, &args), -EFAULT);

	args = write_args(t, v, 0, PAGE);
	EXPECT_ERR(t, try_args(t, &args), -EINVAL);
	args = write_args(t, v, UINT64_MAX, PAGE);
	EXPECT_ERR(t, try_args(t, &args), -EINVAL);
	args = write_args(t, v, PAGE, PAGE);
	v[0].addr = 4096;
	EXPECT_ERR(t, try_args(t, &args), -EFAULT);
	test_exchange(t);
}

static void malformed(struct test *t)
{
	static const int types[] = { RDS_CMSG_RDMA_ARGS, RDS_CMSG_RDMA_DEST,
				     RDS_CMSG_RDMA_MAP };
	size_t i;

	if (!test_exchange(t))
		return;
	for (i = 0; i < ARRAY_SIZE(types); i++) {
		struct control c = { 0 };

		control_add(&c, types[i], data, 4);
		EXPECT_ERR(t, try(t, &c, 10, 0), -EINVAL);
	}
	for (i = 0; i < 2; i++) {
		struct control c = { 0 };

		control_add(&c, i ? RDS_CMSG_RDMA_STATUS : 77, data, 16);
		EXPECT_ERR(t, try(t, &c, 10, 0), -EINVAL);
	}
	test_exchange(t);
}

/* -------------------------------------------------------------------- sizes */

static void too_long(struct test *t)
{
	struct rds_rdma_args args;
	struct rds_iovec v;
	int small = 5000;

	if (!test_exchange(t))
		return;
	EXPECT_ERR(t, try(t, NULL, (1 << 20) + 1, 0), -EMSGSIZE);
	/* the size of the peer's memory counts, not the local one */
	args = write_args(t, &v, PAGE, (1 << 20) + 1);
	EXPECT_ERR(t, try_args(t, &args), -EMSGSIZE);
	if (setsockopt(t->end.fd, SOL_SOCKET, SO_SNDBUF, &small,
		       sizeof(small)))
		EXPECT_ERR(t, -errno, 0);
	EXPECT_ERR(t, try(t, NULL, small + 1, 0), -EMSGSIZE);
	test_exchange(t);
}

/* --------------------------------------------------------------- MSG_ZEROCOPY */

/* Linux has it for RDS over TCP only: rdszcopy. */
static void zerocopy(struct test *t)
{
	struct control c = { 0 };
	uint32_t cookie = 5;
	int one = 1;

	if (!test_exchange(t))
		return;
	control_add(&c, RDS_CMSG_ZCOPY_COOKIE, &cookie, sizeof(cookie));
	/* before SO_ZEROCOPY the flag is ignored, and the cookie is for nothing */
	EXPECT_ERR(t, try(t, &c, PAGE, MSG_ZEROCOPY), -EINVAL);
	if (setsockopt(t->end.fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof(one)))
		EXPECT_ERR(t, -errno, 0);
	EXPECT_ERR(t, try(t, &c, PAGE, MSG_ZEROCOPY), -EOPNOTSUPP);
	EXPECT_ERR(t, try(t, NULL, PAGE, MSG_ZEROCOPY), -EOPNOTSUPP);
	EXPECT_ERR(t, try(t, &c, PAGE, 0), -EINVAL);
	test_exchange(t);
}

static void flags(struct test *t)
{
	EXPECT_ERR(t, try(t, NULL, 10, MSG_OOB), -EOPNOTSUPP);
	EXPECT_ERR(t, try(t, NULL, 10, MSG_MORE), -EOPNOTSUPP);
	test_exchange(t);
}

static const struct test_case cases[] = {
	{ "MAP, DEST and ARGS together, or one twice: EINVAL", together },
	{ "RDMA_ARGS: local beyond remote memory and the like: EINVAL",
	  bad_args },
	{ "control messages too short or unknown: EINVAL", malformed },
	{ "more than 1 MB, or than the send buffer: EMSGSIZE", too_long },
	{ "MSG_ZEROCOPY: EOPNOTSUPP", zerocopy },
	{ "flags of other sockets: EOPNOTSUPP", flags },
};

const struct test_group group_refused = { "refused", cases,
					  ARRAY_SIZE(cases) };
