// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * extops [SERVER]: FLUSH and ATOMIC WRITE between two adapters of any make.
 *
 * Without SERVER: gives one client access to three pieces of memory, checks
 * them when the client is done, and prints the result. With SERVER: is that
 * client. Each prints one JSON object.
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <infiniband/verbs.h>

#define PORT "18517"
#define LEN (64 * 1024)
#define PSN 0xfffff0		/* wraps soon */
#define WORDS 64
#define LENT (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | \
	      IBV_ACCESS_REMOTE_READ)

/* What the ends exchange; both have the same byte order. */
struct hello {
	union ibv_gid gid;
	uint32_t qpn;
	/* memory one can flush, memory one cannot, the end of a region */
	uint32_t rkey, plain_rkey;
	uint64_t addr, plain_addr;
};

static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_cq *cq;
static struct ibv_qp *qp;
static union ibv_gid gid;
static int gidx;

static void die(const char *what, int err)
{
	fprintf(stderr, "%s: %s\n", what, strerror(err));
	exit(2);
}

static void open_device(void)
{
	const char *name = getenv("IBDEV"), *g = getenv("GIDX");
	struct ibv_device **list = ibv_get_device_list(NULL);
	int i;

	for (i = 0; list && list[i]; i++)
		if (name && !strcmp(ibv_get_device_name(list[i]), name))
			ctx = ibv_open_device(list[i]);
	if (!ctx)
		die("opening $IBDEV", errno);
	gidx = g ? atoi(g) : 0;
	if (ibv_query_gid(ctx, 1, gidx, &gid))
		die("ibv_query_gid", errno);
	pd = ibv_alloc_pd(ctx);
	cq = ibv_create_cq(ctx, 256, NULL, NULL, 0);
	if (!pd || !cq)
		die("PD and CQ", errno);
}

static struct ibv_mr *memory(int access)
{
	struct ibv_mr *mr;
	void *p = mmap(NULL, LEN, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		die("mmap", errno);
	mr = ibv_reg_mr(pd, p, LEN, access);
	if (!mr)
		die("ibv_reg_mr", errno);
	return mr;
}

/* Ordinary memory is not persistent: the result of registering it as such. */
static const char *persistent(void)
{
	static char page[4096] __attribute__((aligned(4096)));
	struct ibv_mr *mr = ibv_reg_mr(pd, page, sizeof(page),
				       LENT | IBV_ACCESS_FLUSH_PERSISTENT);

	return mr ? "no error" : strerror(errno);
}

static void make_qp(void)
{
	struct ibv_qp_init_attr_ex init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .pd = pd,
		.cap = { .max_send_wr = 128, .max_recv_wr = 1,
			 .max_send_sge = 1, .max_recv_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE |
				  IBV_QP_EX_WITH_RDMA_READ |
				  IBV_QP_EX_WITH_FLUSH |
				  IBV_QP_EX_WITH_ATOMIC_WRITE,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT, .port_num = 1,
		.qp_access_flags = LENT | IBV_ACCESS_FLUSH_GLOBAL |
				   IBV_ACCESS_FLUSH_PERSISTENT,
	};
	int ret;

	qp = ibv_create_qp_ex(ctx, &init);
	if (!qp)
		die("ibv_create_qp_ex", errno);
	ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
			    IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS);
	if (ret)
		die("modify QP to INIT", ret);
}

static void connect_qp(const struct hello *peer)
{
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = peer->qpn,
		.rq_psn = PSN,
		.max_dest_rd_atomic = 4,
		.min_rnr_timer = 12,
		.ah_attr = {
			.is_global = 1,
			.port_num = 1,
			.grh = { .dgid = peer->gid, .sgid_index = gidx,
				 .hop_limit = 64 },
		},
	};
	int ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_AV |
				IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
				IBV_QP_MIN_RNR_TIMER);

	if (ret)
		die("modify QP to RTR", ret);
	memset(&attr, 0, sizeof(attr));
	attr.qp_state = IBV_QPS_RTS;
	attr.timeout = 16;
	attr.retry_cnt = 7;
	attr.rnr_retry = 7;
	attr.sq_psn = PSN;
	attr.max_rd_atomic = 4;
	ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_TIMEOUT |
			    IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			    IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
	if (ret)
		die("modify QP to RTS", ret);
}

static int tcp(const char *server)
{
	struct addrinfo hint = { .ai_family = AF_INET,
				 .ai_socktype = SOCK_STREAM,
				 .ai_flags = server ? 0 : AI_PASSIVE };
	struct addrinfo *ai;
	int fd, one = 1;

	if (getaddrinfo(server, PORT, &hint, &ai))
		die("getaddrinfo", EINVAL);
	fd = socket(ai->ai_family, ai->ai_socktype, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (server) {
		if (connect(fd, ai->ai_addr, ai->ai_addrlen))
			die("connect", errno);
		return fd;
	}
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) || listen(fd, 1))
		die("listen", errno);
	fd = accept(fd, NULL, NULL);
	if (fd < 0)
		die("accept", errno);
	return fd;
}

static void swap_hello(int fd, const struct hello *mine, struct hello *theirs)
{
	if (write(fd, mine, sizeof(*mine)) != sizeof(*mine) ||
	    recv(fd, theirs, sizeof(*theirs), MSG_WAITALL) != sizeof(*theirs))
		die("exchange", EPROTO);
}

/* One byte each way: a barrier. */
static void meet(int fd)
{
	char c = 'x';

	if (write(fd, &c, 1) != 1 || recv(fd, &c, 1, MSG_WAITALL) != 1)
		die("meet", EPROTO);
}

static struct ibv_wc next(void)
{
	struct ibv_wc wc;
	int n, spins = 0;

	do {
		n = ibv_poll_cq(cq, 1, &wc);
		if (n < 0)
			die("ibv_poll_cq", errno);
		if (!n)
			usleep(100);
	} while (!n && ++spins < 100000);
	if (!n)
		die("completion", ETIMEDOUT);
	return wc;
}

static void expect(uint64_t id, enum ibv_wc_opcode op)
{
	struct ibv_wc wc = next();

	if (wc.wr_id != id || wc.status || wc.opcode != op) {
		fprintf(stderr, "completion of %lu is of %lu: status %d (%s), "
			"opcode %d, not %d\n", (unsigned long)id,
			(unsigned long)wc.wr_id, wc.status,
			ibv_wc_status_str(wc.status), wc.opcode, op);
		exit(2);
	}
}

static struct ibv_qp_ex *start(uint64_t id)
{
	struct ibv_qp_ex *ex = ibv_qp_to_qp_ex(qp);

	ibv_wr_start(ex);
	ex->wr_id = id;
	ex->wr_flags = IBV_SEND_SIGNALED;
	return ex;
}

static void post(struct ibv_qp_ex *ex)
{
	int ret = ibv_wr_complete(ex);

	if (ret)
		die("ibv_wr_complete", ret);
}

static uint64_t word(unsigned i)
{
	return 0x0123456789abcdefULL * (i + 1);
}

static void work(const struct hello *peer, struct ibv_mr *mr, int fd)
{
	const uint8_t global = IBV_FLUSH_GLOBAL;
	uint8_t *p = mr->addr;
	struct ibv_qp_ex *ex;
	struct ibv_wc wc;
	unsigned i;

	for (i = 0; i < LEN; i++)
		p[i] = i * 7 + i / 251;
	/* a write, all of it flushed, a word behind it: one batch */
	ex = start(1);
	ibv_wr_rdma_write(ex, peer->rkey, peer->addr);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)p, LEN - 8 * WORDS);
	ex->wr_id = 2;
	ibv_wr_flush(ex, peer->rkey, peer->addr, LEN, global,
		     IBV_FLUSH_RANGE);
	for (i = 0; i < WORDS; i++) {
		uint64_t v = word(i);

		ex->wr_id = 3 + i;
		ibv_wr_atomic_write(ex, peer->rkey,
				    peer->addr + LEN - 8 * WORDS + 8 * i, &v);
	}
	ex->wr_id = 100;
	ibv_wr_flush(ex, peer->rkey, 0, 0, global, IBV_FLUSH_MR);
	post(ex);
	expect(1, IBV_WC_RDMA_WRITE);
	expect(2, IBV_WC_FLUSH);
	for (i = 0; i < WORDS; i++)
		expect(3 + i, IBV_WC_ATOMIC_WRITE);
	expect(100, IBV_WC_FLUSH);
	/* read all of it back behind a flush */
	memset(p, 0, LEN);
	ex = start(101);
	ibv_wr_flush(ex, peer->rkey, peer->addr + 4096, 100, global,
		     IBV_FLUSH_RANGE);
	ex->wr_id = 102;
	ibv_wr_rdma_read(ex, peer->rkey, peer->addr);
	ibv_wr_set_sge(ex, mr->lkey, (uintptr_t)p, LEN);
	post(ex);
	expect(101, IBV_WC_FLUSH);
	expect(102, IBV_WC_RDMA_READ);
	for (i = 0; i < LEN - 8 * WORDS; i++)
		if (p[i] != (uint8_t)(i * 7 + i / 251))
			die("bytes read back", EIO);
	for (i = 0; i < WORDS; i++)
		if (memcmp(p + LEN - 8 * WORDS + 8 * i, &(uint64_t){ word(i) },
			   8))
			die("words read back", EIO);
	meet(fd);			/* the server may check */
	/* what one may not flush */
	ex = start(200);
	ibv_wr_flush(ex, peer->plain_rkey, peer->plain_addr, 64, global,
		     IBV_FLUSH_RANGE);
	post(ex);
	wc = next();
	if (wc.wr_id != 200)
		die("the last completion", EPROTO);
	printf("{\"ok\": true, \"forbidden\": \"%s\", \"persistent\": \"%s\"}\n",
	       ibv_wc_status_str(wc.status), persistent());
}

static void serve(struct ibv_mr *mr, int fd)
{
	uint8_t *p = mr->addr;
	unsigned i, wrong = 0;

	meet(fd);
	for (i = 0; i < LEN - 8 * WORDS; i++)
		wrong += p[i] != (uint8_t)(i * 7 + i / 251);
	for (i = 0; i < WORDS; i++)
		wrong += !!memcmp(p + LEN - 8 * WORDS + 8 * i,
				  &(uint64_t){ word(i) }, 8);
	printf("{\"ok\": %s, \"wrong\": %u}\n", wrong ? "false" : "true",
	       wrong);
}

int main(int argc, char **argv)
{
	struct hello mine = { 0 }, theirs;
	struct ibv_mr *mr, *plain;
	int fd;

	open_device();
	mr = memory(LENT | IBV_ACCESS_FLUSH_GLOBAL);
	plain = memory(LENT);
	make_qp();
	fd = tcp(argc > 1 ? argv[1] : NULL);
	mine.gid = gid;
	mine.qpn = qp->qp_num;
	mine.rkey = mr->rkey;
	mine.addr = (uintptr_t)mr->addr;
	mine.plain_rkey = plain->rkey;
	mine.plain_addr = (uintptr_t)plain->addr;
	swap_hello(fd, &mine, &theirs);
	connect_qp(&theirs);
	meet(fd);
	if (argc > 1)
		work(&theirs, mr, fd);
	else
		serve(mr, fd);
	meet(fd);			/* the QPs stay until both are done */
	return 0;
}
