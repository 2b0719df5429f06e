// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Tag matching between two processes.  The receiver has a TM SRQ and so needs
 * an adapter with tag matching; the sender is an ordinary RC QP of any adapter.
 *
 *	tm			receiver; waits for the sender's TCP connection
 *	tm HOST			sender
 *
 * $IBDEV, $GIDX: the adapter.  Prints one JSON object; a difference from what
 * must be ends it with status 1.
 */
#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <infiniband/tm_types.h>
#include <infiniband/verbs.h>

#include "qv.h"

#define PORT	18600

#define REGION		(8u << 20)
#define WQE_BYTES	4096u
#define WQES		32
#define ROUNDS		100
#define BURST		16
#define SLOT		65536u

/* What is sent first, by wr_id of the receiver. */
#define SMALL		100u
#define LONG		100000u
#define LARGE		(1u << 20)

struct end {
	uint32_t qpn, psn;
	uint8_t gid[16];
};

struct wc {
	uint64_t wr_id, tag;
	uint32_t priv, len;
	enum ibv_wc_status status;
	enum ibv_wc_opcode opcode;
	unsigned int flags;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq_ex *cq;
static struct ibv_cq *scq;
static struct ibv_srq *srq;
static struct ibv_qp *qp;
static struct ibv_mr *mr;
static uint8_t *mem;
static int sock;
static uint8_t gid_index;
static const char *step = "start";

static void fail(const char *what, long got, long want)
{
	fprintf(stderr, "%s: %s: %ld, not %ld\n", step, what, got, want);
	exit(1);
}

#define EQ(got, want) do {						\
	long g_ = (long)(got), w_ = (long)(want);			\
	if (g_ != w_)							\
		fail(#got, g_, w_);					\
} while (0)

static uint8_t pattern(uint32_t id, uint32_t i)
{
	return (uint8_t)(id * 31 + i * 7 + (i >> 8) + (i >> 16));
}

static void fill(uint8_t *p, uint32_t id, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		p[i] = pattern(id, i);
}

static void verify(const uint8_t *p, uint32_t id, uint32_t len)
{
	uint32_t i;

	for (i = 0; i < len; i++)
		if (p[i] != pattern(id, i))
			fail("first wrong byte", i, -1);
}

/* ---- synchronization with the other process ---- */

static void token_put(void)
{
	qv_tell(sock, "x", 1);
}

static void token_get(void)
{
	char c;

	qv_hear(sock, &c, 1);
}

/* ---- verbs ---- */

static void open_device(void)
{
	const char *name = getenv("IBDEV");
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (!name || !strcmp(ibv_get_device_name(list[i]), name))
			break;
	if (!list || !list[i])
		qv_die("device", ENODEV);
	ctx = ibv_open_device(list[i]);
	if (!ctx)
		qv_die("ibv_open_device", errno);
	gid_index = getenv("GIDX") ? atoi(getenv("GIDX")) : 0;
	pd = ibv_alloc_pd(ctx);
	mem = aligned_alloc(4096, REGION);
	memset(mem, 0, REGION);
	mr = ibv_reg_mr(pd, mem, REGION, IBV_ACCESS_LOCAL_WRITE |
			IBV_ACCESS_REMOTE_READ);
	if (!pd || !mr)
		qv_die("ibv_reg_mr", errno);
}

static void connect_qp(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				 .qp_access_flags = IBV_ACCESS_REMOTE_READ };
	struct end mine = { .qpn = qp->qp_num, .psn = qp->qp_num & 0xffff },
		   peer;
	union ibv_gid gid;

	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX |
			  IBV_QP_PORT | IBV_QP_ACCESS_FLAGS))
		qv_die("to INIT", errno);
	if (ibv_query_gid(ctx, 1, gid_index, &gid))
		qv_die("ibv_query_gid", errno);
	memcpy(mine.gid, &gid, 16);
	qv_tell(sock, &mine, sizeof(mine));
	qv_hear(sock, &peer, sizeof(peer));
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = peer.qpn;
	a.rq_psn = peer.psn;
	a.max_dest_rd_atomic = 4;
	a.min_rnr_timer = 12;
	a.ah_attr.is_global = 1;
	a.ah_attr.port_num = 1;
	a.ah_attr.grh.sgid_index = gid_index;
	a.ah_attr.grh.hop_limit = 64;
	memcpy(&a.ah_attr.grh.dgid, peer.gid, 16);
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
			  IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			  IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER))
		qv_die("to RTR", errno);
	memset(&a, 0, sizeof(a));
	a.qp_state = IBV_QPS_RTS;
	a.sq_psn = mine.psn;
	a.timeout = 18;
	a.retry_cnt = 7;
	a.rnr_retry = 7;
	a.max_rd_atomic = 4;
	if (ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN |
			  IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			  IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC))
		qv_die("to RTS", errno);
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* The next completion of the TM SRQ's CQ. */
static struct wc next(void)
{
	struct ibv_poll_cq_attr attr = {};
	struct ibv_wc_tm_info info;
	double end = now() + 20;
	struct wc wc;

	while (ibv_start_poll(cq, &attr))
		if (now() > end)
			fail("completions", 0, 1);
	ibv_wc_read_tm_info(cq, &info);
	wc.wr_id = cq->wr_id;
	wc.status = cq->status;
	wc.opcode = ibv_wc_read_opcode(cq);
	wc.flags = ibv_wc_read_wc_flags(cq);
	wc.len = ibv_wc_read_byte_len(cq);
	wc.tag = info.tag;
	wc.priv = info.priv;
	ibv_end_poll(cq);
	return wc;
}

static struct wc expect(uint64_t wr_id, enum ibv_wc_opcode opcode,
			unsigned int flags)
{
	struct wc wc = next();

	EQ(wc.status, IBV_WC_SUCCESS);
	EQ(wc.opcode, opcode);
	EQ(wc.wr_id, wr_id);
	EQ(wc.flags, flags);
	return wc;
}

static int ops(struct ibv_ops_wr *wr)
{
	struct ibv_ops_wr *bad = NULL;

	return ibv_post_srq_ops(srq, wr, &bad);
}

/* Returns the handle. */
static uint32_t add(uint64_t tag, uint64_t wr_id, uint8_t *p, uint32_t len,
		    int flags)
{
	struct ibv_sge sge[2] = {
		{ .addr = (uintptr_t)p, .length = len / 2, .lkey = mr->lkey },
		{ .addr = (uintptr_t)p + len / 2, .length = len - len / 2,
		  .lkey = mr->lkey },
	};
	struct ibv_ops_wr wr = {
		.wr_id = 1000, .opcode = IBV_WR_TAG_ADD, .flags = flags,
	};
	int err;

	wr.tm.add.recv_wr_id = wr_id;
	wr.tm.add.sg_list = sge;
	wr.tm.add.num_sge = 2;
	wr.tm.add.tag = tag;
	wr.tm.add.mask = ~0ULL;
	err = ops(&wr);
	if (err)
		qv_die("TAG_ADD", err);
	return wr.tm.handle;
}

static void sync_count(uint32_t count)
{
	struct ibv_ops_wr wr = { .wr_id = 1001, .opcode = IBV_WR_TAG_SYNC,
				 .flags = IBV_OPS_SIGNALED | IBV_OPS_TM_SYNC };

	wr.tm.unexpected_cnt = count;
	EQ(ops(&wr), 0);
	expect(1001, IBV_WC_TM_SYNC, 0);
}

static uint8_t *wqe_mem(unsigned int i)
{
	return mem + REGION - (i + 1) * WQE_BYTES;
}

static void post_wqe(unsigned int i)
{
	struct ibv_sge sge = { .addr = (uintptr_t)wqe_mem(i),
			       .length = WQE_BYTES, .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	EQ(ibv_post_srq_recv(srq, &wr, &bad), 0);
}

/* ---- receiver ---- */

static void open_receiver(void)
{
	struct ibv_cq_init_attr_ex ca = {
		.cqe = 1024,
		.wc_flags = IBV_WC_EX_WITH_TM_INFO | IBV_WC_STANDARD_FLAGS,
	};
	struct ibv_srq_init_attr_ex sa = {
		.attr = { .max_wr = WQES, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_TM,
		.srq_type = IBV_SRQT_TM,
		.pd = pd,
		.tm_cap = { .max_num_tags = 64, .max_ops = 64 },
	};
	struct ibv_qp_init_attr qa = { .qp_type = IBV_QPT_RC };
	struct ibv_device_attr_ex da = {};
	unsigned int i;

	EQ(ibv_query_device_ex(ctx, NULL, &da), 0);
	EQ(da.tm_caps.flags, IBV_TM_CAP_RC);
	EQ(da.tm_caps.max_sge >= 2, 1);
	EQ(da.tm_caps.max_rndv_hdr_size >= sizeof(struct ibv_tmh) +
	   sizeof(struct ibv_rvh), 1);
	cq = ibv_create_cq_ex(ctx, &ca);
	if (!cq)
		qv_die("ibv_create_cq_ex", errno);
	sa.cq = ibv_cq_ex_to_cq(cq);
	/* limits are limits */
	sa.tm_cap.max_num_tags = da.tm_caps.max_num_tags + 1;
	EQ(!ibv_create_srq_ex(ctx, &sa) && errno == EINVAL, 1);
	sa.tm_cap.max_num_tags = 64;
	srq = ibv_create_srq_ex(ctx, &sa);
	if (!srq)
		qv_die("ibv_create_srq_ex", errno);
	scq = ibv_create_cq(ctx, 8, NULL, NULL, 0);
	qa.send_cq = scq;
	qa.recv_cq = scq;
	qa.srq = srq;
	/* the device uses the send queue */
	qa.cap.max_send_wr = 1;
	EQ(!ibv_create_qp(pd, &qa) && errno == EINVAL, 1);
	qa.cap.max_send_wr = 0;
	qp = ibv_create_qp(pd, &qa);
	if (!qp)
		qv_die("ibv_create_qp", errno);
	/* the SRQ's CQ goes after it */
	EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), EBUSY);
	for (i = 0; i < WQES; i++)
		post_wqe(i);
}

/* Cases that need no sender. */
static void operations(void)
{
	struct ibv_ops_wr del = { .wr_id = 1002, .opcode = IBV_WR_TAG_DEL,
				  .flags = IBV_OPS_SIGNALED };
	struct ibv_ops_wr more = { .opcode = IBV_WR_TAG_ADD };
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND }, *bad;
	uint32_t handle[64], i;
	struct wc wc;

	step = "operations";
	for (i = 0; i < 64; i++)
		handle[i] = add(i, i, mem, 8, 0);
	EQ(ops(&more), ENOMEM);
	for (i = 0; i < 64; i++) {
		del.tm.handle = handle[i];
		EQ(ops(&del), 0);
		expect(1002, IBV_WC_TM_DEL, 0);
	}
	/* the same again: it is gone */
	EQ(ops(&del), 0);
	wc = next();
	EQ(wc.status, IBV_WC_TM_ERR);
	EQ(wc.wr_id, 1002);
	/* removals without a completion free their room */
	del.flags = 0;
	for (i = 0; i < 1000; i++) {
		del.tm.handle = add(i, i, mem, 8, 0);
		EQ(ops(&del), 0);
	}
	EQ(ibv_post_send(qp, &wr, &bad) != 0, 1);
}

static void receive_kinds(void)
{
	uint8_t *small = mem, *lng = mem + SLOT, *large = mem + (1u << 20),
		*tiny = mem + (3u << 20);
	struct ibv_tmh *h;
	int i, seen = 0;
	struct wc wc;

	step = "kinds";
	add(1, 1, small, SMALL, IBV_OPS_SIGNALED);
	expect(1000, IBV_WC_TM_ADD, 0);
	add(2, 2, lng, LONG, 0);
	add(3, 3, large, LARGE, 0);
	add(4, 4, tiny, 64, 0);
	token_put();

	wc = expect(1, IBV_WC_TM_RECV, IBV_WC_TM_MATCH |
		    IBV_WC_TM_DATA_VALID);
	EQ(wc.tag, 1);
	EQ(wc.priv, 0x1001);
	EQ(wc.len, SMALL);
	verify(small, 1, SMALL);
	wc = expect(2, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	EQ(wc.tag, 2);
	wc = expect(2, IBV_WC_TM_RECV, IBV_WC_TM_DATA_VALID);
	EQ(wc.len, LONG);
	verify(lng, 2, LONG);
	wc = expect(3, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	EQ(wc.tag, 3);
	EQ(wc.priv, 0x1003);
	/* the READ runs beside the messages behind it: it may end at any time */
	for (i = 0; i < 3; i++) {
		wc = next();
		if (wc.opcode == IBV_WC_TM_RECV && wc.wr_id == 3) {
			step = "rendezvous";
			EQ(wc.status, IBV_WC_SUCCESS);
			EQ(wc.flags, IBV_WC_TM_DATA_VALID);
			EQ(wc.len, LARGE);
		} else if (seen++ == 0) {
			step = "incomplete rendezvous";
			EQ(wc.status, IBV_WC_TM_RNDV_INCOMPLETE);
			EQ(wc.wr_id, 4);
			h = (void *)tiny;
			EQ(be64toh(h->tag), 4);
			EQ(h->opcode, IBV_TMH_RNDV);
			EQ(be32toh(((struct ibv_rvh *)(h + 1))->len), 5000);
		} else {
			step = "no tag";
			EQ(wc.opcode, IBV_WC_TM_NO_TAG);
			EQ(wc.len, 40);
			EQ(memcmp(wqe_mem(wc.wr_id) + 16, "no tag", 6), 0);
			post_wqe(wc.wr_id);
		}
	}
	step = "large rendezvous";
	verify(large, 3, LARGE);
}

/* Returns how many unexpected messages there were. */
static uint32_t receive_unexpected(void)
{
	struct ibv_tmh *h;
	struct wc wc;

	step = "unexpected";
	token_put();
	wc = next();
	EQ(wc.opcode, IBV_WC_TM_RECV);
	EQ(wc.flags, 0);
	h = (void *)wqe_mem(wc.wr_id);
	EQ(be64toh(h->tag), 77);
	verify((uint8_t *)(h + 1), 5, 50);
	post_wqe(wc.wr_id);
	/* this one must wait until the count was acknowledged */
	add(78, 78, mem, 100, IBV_OPS_SIGNALED);
	expect(1000, IBV_WC_TM_ADD, IBV_WC_TM_SYNC_REQ);
	token_put();
	wc = next();
	EQ(wc.opcode, IBV_WC_TM_RECV);
	EQ(wc.flags, 0);
	post_wqe(wc.wr_id);
	sync_count(2);
	token_put();
	wc = expect(78, IBV_WC_TM_RECV, IBV_WC_TM_MATCH |
		    IBV_WC_TM_DATA_VALID);
	verify(mem, 7, wc.len);
	return 2;
}

static void receive_bursts(void)
{
	uint32_t round, i, left;

	for (round = 0; round < ROUNDS; round++) {
		step = "bursts";
		for (i = 0; i < BURST; i++)
			add(round * BURST + i, i, mem + i * SLOT, SLOT, 0);
		token_put();
		for (left = BURST; left; ) {
			struct wc wc = next();

			EQ(wc.status, IBV_WC_SUCCESS);
			EQ(wc.opcode, IBV_WC_TM_RECV);
			if (wc.flags & IBV_WC_TM_DATA_VALID) {
				left--;
				verify(mem + wc.wr_id * SLOT,
				       round * BURST + wc.wr_id, wc.len);
			}
		}
	}
}

static void receiver(void)
{
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_ERR };
	uint32_t unexpected;
	struct wc wc;

	open_receiver();
	sock = qv_link(NULL, PORT);
	connect_qp();
	operations();
	receive_kinds();
	unexpected = receive_unexpected();
	receive_bursts();
	/* a rendezvous that cannot be read */
	step = "bad rendezvous";
	add(5, 5, mem, 4096, 0);
	token_put();
	expect(5, IBV_WC_TM_RECV, IBV_WC_TM_MATCH);
	wc = next();
	EQ(wc.status, IBV_WC_REM_ACCESS_ERR);
	EQ(wc.wr_id, 5);
	token_put();
	step = "end";
	token_get();
	EQ(ibv_modify_qp(qp, &a, IBV_QP_STATE), 0);
	EQ(ibv_destroy_srq(srq), EBUSY);
	EQ(ibv_destroy_qp(qp), 0);
	EQ(ibv_destroy_srq(srq), 0);
	EQ(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)), 0);
	printf("{\"role\": \"receiver\", \"unexpected\": %u, \"bursts\": %u}\n",
	       unexpected, ROUNDS);
}

/* ---- sender ---- */

static void post_fin(unsigned int i)
{
	struct ibv_sge sge = { .addr = (uintptr_t)wqe_mem(i), .length = 64,
			       .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	EQ(ibv_post_recv(qp, &wr, &bad), 0);
}

/*
 * Post a message of kind @opcode whose payload is pattern @id of @len bytes,
 * made at @p, which has room for 64 bytes before it.
 */
static void post_msg(uint8_t opcode, uint64_t tag, uint32_t id, uint8_t *p,
		     uint32_t len, uint32_t rkey)
{
	struct ibv_tmh *h = (void *)(p - 64);
	struct ibv_rvh *r = (void *)(h + 1);
	struct ibv_sge sge[2] = {
		{ .addr = (uintptr_t)h, .length = sizeof(*h),
		  .lkey = mr->lkey },
		{ .addr = (uintptr_t)p, .length = len, .lkey = mr->lkey },
	};
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
		.sg_list = sge, .num_sge = 2,
	}, *bad;

	memset(h, 0, 64);
	h->opcode = opcode;
	h->app_ctx = htobe32(0x1000 + id);
	h->tag = htobe64(tag);
	fill(p, id, len);
	if (opcode == IBV_TMH_RNDV) {
		r->va = htobe64((uintptr_t)p);
		r->rkey = htobe32(rkey);
		r->len = htobe32(len);
		sge[0].length += sizeof(*r);
		wr.num_sge = 1;
	}
	EQ(ibv_post_send(qp, &wr, &bad), 0);
}

/* The status of the next completion of a send. */
static enum ibv_wc_status wait_sent(void)
{
	struct ibv_wc wc;

	EQ(qv_wait(scq, &wc, 20000), true);
	return wc.status;
}

/* The same, and it is sent. */
static void send_msg(uint8_t opcode, uint64_t tag, uint32_t id, uint8_t *p,
		     uint32_t len, uint32_t rkey)
{
	post_msg(opcode, tag, id, p, len, rkey);
	EQ(wait_sent(), IBV_WC_SUCCESS);
}

/* The next message to us must be the end of rendezvous @tag. */
static uint64_t take_fin(void)
{
	struct ibv_cq *rcq = qp->recv_cq;
	double end = now() + 20;
	struct ibv_tmh h;
	struct ibv_wc wc;
	int n;

	do {
		n = ibv_poll_cq(rcq, 1, &wc);
	} while (!n && now() < end);
	EQ(n, 1);
	EQ(wc.status, IBV_WC_SUCCESS);
	EQ(wc.byte_len, sizeof(struct ibv_tmh) + sizeof(struct ibv_rvh));
	memcpy(&h, wqe_mem(wc.wr_id), sizeof(h));
	EQ(h.opcode, IBV_TMH_FIN);
	post_fin(wc.wr_id);
	return be64toh(h.tag);
}

static void send_bursts(void)
{
	uint32_t round, i, k, fins, len;

	step = "bursts";
	for (round = 0; round < ROUNDS; round++) {
		token_get();
		fins = 0;
		/* in another order than the tags were added */
		for (k = 0; k < BURST; k++) {
			i = (k * 5 + round) % BURST;
			len = (round * 997 + i * 131) % (SLOT - 64);
			send_msg(i & 1 ? IBV_TMH_RNDV : IBV_TMH_EAGER,
				 round * BURST + i, round * BURST + i,
				 mem + i * SLOT + 64, len, mr->rkey);
			fins += i & 1;
		}
		while (fins--)
			take_fin();
	}
}

static void sender(const char *host)
{
	struct ibv_qp_init_attr qa = {
		.qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_recv_wr = 16,
			 .max_send_sge = 2, .max_recv_sge = 1 },
	};
	enum ibv_wc_status status;
	struct ibv_cq *rcq;
	unsigned int i;

	scq = ibv_create_cq(ctx, 32, NULL, NULL, 0);
	rcq = ibv_create_cq(ctx, 32, NULL, NULL, 0);
	qa.send_cq = scq;
	qa.recv_cq = rcq;
	qp = ibv_create_qp(pd, &qa);
	if (!scq || !rcq || !qp)
		qv_die("ibv_create_qp", errno);
	sock = qv_link(host, PORT);
	connect_qp();
	for (i = 0; i < BURST; i++)
		post_fin(i);

	step = "kinds";
	token_get();
	send_msg(IBV_TMH_EAGER, 1, 1, mem + 64, SMALL, 0);
	send_msg(IBV_TMH_EAGER, 2, 2, mem + SLOT, LONG, 0);
	send_msg(IBV_TMH_RNDV, 3, 3, mem + (1u << 20), LARGE, mr->rkey);
	send_msg(IBV_TMH_RNDV, 4, 4, mem + (3u << 20), 5000, mr->rkey);
	memcpy(mem + (4u << 20), "no tag", 6);
	{
		struct ibv_sge sge = { .addr = (uintptr_t)mem + (4u << 20) - 16,
				       .length = 40, .lkey = mr->lkey };
		struct ibv_send_wr wr = {
			.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
			.send_flags = IBV_SEND_SIGNALED,
		}, *bad;
		struct ibv_wc wc;

		memset(mem + (4u << 20) - 16, 0, 16);
		EQ(ibv_post_send(qp, &wr, &bad), 0);
		EQ(qv_wait(scq, &wc, 20000), true);
		EQ(wc.status, IBV_WC_SUCCESS);
	}
	EQ(take_fin(), 3);

	step = "unexpected";
	token_get();
	send_msg(IBV_TMH_EAGER, 77, 5, mem + 64, 50, 0);
	token_get();
	send_msg(IBV_TMH_EAGER, 78, 6, mem + 64, 60, 0);
	token_get();
	send_msg(IBV_TMH_EAGER, 78, 7, mem + 64, 70, 0);
	send_bursts();
	step = "bad rendezvous";
	token_get();
	post_msg(IBV_TMH_RNDV, 5, 8, mem + 64, 100, mr->rkey ^ 0xffff00);
	/*
	 * It arrives.  Whether its acknowledge or the READ with the bad key,
	 * which ends the QP, is seen first is up to the adapter's threads.
	 */
	status = wait_sent();
	if (status != IBV_WC_SUCCESS)
		EQ(status, IBV_WC_WR_FLUSH_ERR);
	/* The QP must exist until the READ was answered. */
	token_get();
	token_put();
	printf("{\"role\": \"sender\", \"bursts\": %u}\n", ROUNDS);
}

int main(int argc, char **argv)
{
	open_device();
	if (argc > 1)
		sender(argv[1]);
	else
		receiver();
	return 0;
}
