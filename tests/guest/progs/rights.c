// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * rights: access rights.  Every operation on memory with every set of rights of
 * the region and of the QP, and on regions of another protection domain.
 * Prints one JSON object: the number of cases tried, and those that deviate
 * from the specification (chapters 10.6.3 and 9.7.4.1):
 *
 *  - a QP that does not grant an operation answers "invalid request";
 *  - a region that does not grant it leads to "remote access error";
 *  - local memory without write permission, or of another domain, gives the
 *    requester (or the receiver) a local protection error;
 *  - and a refused request has changed nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qv.h"

#define LEN	4096
#define RW	IBV_ACCESS_REMOTE_WRITE
#define RR	IBV_ACCESS_REMOTE_READ
#define RA	IBV_ACCESS_REMOTE_ATOMIC
#define LW	IBV_ACCESS_LOCAL_WRITE

static const struct {
	const char *name;
	enum ibv_wr_opcode op;
	int need;
} ops[] = {
	{ "write", IBV_WR_RDMA_WRITE, RW },
	{ "write imm", IBV_WR_RDMA_WRITE_WITH_IMM, RW },
	{ "read", IBV_WR_RDMA_READ, RR },
	{ "compare and swap", IBV_WR_ATOMIC_CMP_AND_SWP, RA },
	{ "fetch and add", IBV_WR_ATOMIC_FETCH_AND_ADD, RA },
};

#define NOPS	(sizeof(ops) / sizeof(ops[0]))

static struct qv_dev dev;
static int tried, bad;

static void report(const char *name, const char *what, int a, int b, int got,
		   int want)
{
	printf("%s\"%s; %s %#x %#x: status %d, not %d\"", bad ? ",\n  " : "",
	       name, what, a, b, got, want);
	bad++;
}

/* An MR whose memory can be checked whatever its rights are. */
static struct ibv_mr *region(struct ibv_pd *pd, uint8_t *mem, int access)
{
	struct ibv_mr *mr = ibv_reg_mr(pd, mem, LEN, access);

	if (!mr)
		qv_die("ibv_reg_mr", errno);
	return mr;
}

static void pair(struct qv_qp *a, struct qv_qp *b, int access)
{
	const struct ibv_qp_cap cap = {
		.max_send_wr = 4, .max_recv_wr = 4,
		.max_send_sge = 1, .max_recv_sge = 1,
	};

	qv_qp_create(&dev, a, IBV_QPT_RC, &cap);
	qv_qp_create(&dev, b, IBV_QPT_RC, &cap);
	qv_qp_init(a, 0);
	qv_qp_init(b, access);
	qv_qp_connect(&dev, a, b->qp->qp_num);
	qv_qp_connect(&dev, b, a->qp->qp_num);
}

static bool atomic(enum ibv_wr_opcode op)
{
	return op == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       op == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

/* One request from @src to @dst; the status of its completion. */
static int request(enum ibv_wr_opcode op, struct qv_qp *a, struct qv_qp *b,
		   struct ibv_mr *src, struct ibv_mr *dst)
{
	struct ibv_sge sge = { (uintptr_t)src->addr, 8, src->lkey };
	struct ibv_send_wr *bad_wr, wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = op,
		.send_flags = IBV_SEND_SIGNALED,
	};
	struct ibv_wc wc;

	if (atomic(op)) {
		wr.wr.atomic.remote_addr = (uintptr_t)dst->addr;
		wr.wr.atomic.rkey = dst->rkey;
		wr.wr.atomic.compare_add = 0;
		wr.wr.atomic.swap = 5;
		if (op == IBV_WR_ATOMIC_FETCH_AND_ADD)
			wr.wr.atomic.compare_add = 5;
	} else {
		wr.wr.rdma.remote_addr = (uintptr_t)dst->addr;
		wr.wr.rdma.rkey = dst->rkey;
	}
	if (op == IBV_WR_RDMA_WRITE_WITH_IMM && qv_recv(b, 1, NULL, 0))
		qv_die("ibv_post_recv", errno);
	if (ibv_post_send(a->qp, &wr, &bad_wr))
		qv_die("ibv_post_send", errno);
	return qv_wait(a->scq, &wc, 10000) ? (int)wc.status : -1;
}

static int no_more_events(void)
{
	int n = 0;

	while (qv_async(&dev, 0) >= 0)
		n++;
	return n;
}

/* All rights of the region with all rights of the QP. */
static void remote_rights(void)
{
	uint8_t *to = aligned_alloc(LEN, LEN);
	struct ibv_mr *src = qv_mr(&dev, LEN, LW);
	int sets[] = { 0, RW, RR, RW | RR, RA, RA | RW, RA | RR, RA | RW | RR };
	unsigned o, m, q;

	for (m = 0; m < 8; m++) {
		/* remote writing needs local writing: else no region */
		struct ibv_mr *dst = region(dev.pd, to, sets[m] | LW);

		for (q = 0; q < 8; q++) {
			for (o = 0; o < NOPS; o++) {
				int want = !(sets[q] & ops[o].need) ?
					IBV_WC_REM_INV_REQ_ERR :
					!(sets[m] & ops[o].need) ?
					IBV_WC_REM_ACCESS_ERR : IBV_WC_SUCCESS;
				uint64_t word, after = 5;
				struct qv_qp a, b;
				int got;

				memset(to, 0, LEN);
				memcpy(src->addr, &after, 8);
				pair(&a, &b, sets[q]);
				got = request(ops[o].op, &a, &b, src, dst);
				tried++;
				if (got != want)
					report(ops[o].name, "rights of MR, QP",
					       sets[m], sets[q], got, want);
				memcpy(&word, to, 8);
				if (word != (want || ops[o].need == RR ? 0 : 5))
					report(ops[o].name, "memory, rights",
					       sets[m], sets[q], word, after);
				memcpy(&word, src->addr, 8);
				if (want && word != 5)
					report(ops[o].name, "local memory",
					       sets[m], sets[q], word, 5);
				qv_qp_destroy(&a);
				qv_qp_destroy(&b);
			}
		}
		if (ibv_dereg_mr(dst))
			qv_die("ibv_dereg_mr", errno);
	}
	no_more_events();
}

/* Regions of another protection domain are inaccessible, on either side. */
static void domains(void)
{
	struct ibv_pd *pd = ibv_alloc_pd(dev.ctx);
	uint8_t *mem = aligned_alloc(LEN, LEN);
	struct ibv_mr *ours = qv_mr(&dev, LEN, LW | RW | RR | RA), *theirs;
	struct qv_qp a, b;
	unsigned o;
	int got;

	if (!pd)
		qv_die("ibv_alloc_pd", errno);
	memset(mem, 0, LEN);
	theirs = region(pd, mem, LW | RW | RR | RA);
	for (o = 0; o < NOPS; o++) {
		pair(&a, &b, RW | RR | RA);
		got = request(ops[o].op, &a, &b, ours, theirs);
		tried++;
		if (got != IBV_WC_REM_ACCESS_ERR || *(uint64_t *)mem)
			report(ops[o].name, "remote domain", 0, 0, got,
			       IBV_WC_REM_ACCESS_ERR);
		qv_qp_destroy(&a);
		qv_qp_destroy(&b);
		pair(&a, &b, RW | RR | RA);
		got = request(ops[o].op, &a, &b, theirs, ours);
		tried++;
		if (got != IBV_WC_LOC_PROT_ERR || *(uint64_t *)mem)
			report(ops[o].name, "local domain", 0, 0, got,
			       IBV_WC_LOC_PROT_ERR);
		qv_qp_destroy(&a);
		qv_qp_destroy(&b);
	}
	if (ibv_dereg_mr(theirs) || ibv_dealloc_pd(pd))
		qv_die("the other domain stays", errno);
	no_more_events();
}

/* A request that writes to local memory needs the right to do so. */
static void local_rights(void)
{
	uint8_t *mem = aligned_alloc(LEN, LEN);
	struct ibv_mr *peer = qv_mr(&dev, LEN, LW | RW | RR | RA), *plain;
	struct ibv_sge sge, to;
	struct qv_qp a, b;
	struct ibv_wc wc;
	unsigned o;
	int got;

	memset(mem, 0, LEN);
	memset(peer->addr, 0x55, LEN);
	plain = region(dev.pd, mem, 0);
	for (o = 0; o < NOPS; o++) {
		bool writes = ops[o].need != RW;
		int want = writes ? IBV_WC_LOC_PROT_ERR : IBV_WC_SUCCESS;

		pair(&a, &b, RW | RR | RA);
		got = request(ops[o].op, &a, &b, plain, peer);
		tried++;
		if (got != want || *(uint64_t *)mem)
			report(ops[o].name, "local write right", 0, 0, got, want);
		qv_qp_destroy(&a);
		qv_qp_destroy(&b);
	}
	/*
	 * a receive buffer that may not be written: the sender gets an error,
	 * too
	 */
	pair(&a, &b, 0);
	sge = (struct ibv_sge){ (uintptr_t)peer->addr, 64, peer->lkey };
	to = (struct ibv_sge){ (uintptr_t)mem, 64, plain->lkey };
	if (qv_recv(&b, 1, &to, 1) || qv_send(&a, IBV_WR_SEND, 2, &sge, 1, 0, 0))
		qv_die("posting", errno);
	tried++;
	got = qv_wait(b.rcq, &wc, 10000) ? (int)wc.status : -1;
	if (got != IBV_WC_LOC_PROT_ERR || *(uint64_t *)mem)
		report("send", "receiver's local write right", 0, 0, got,
		       IBV_WC_LOC_PROT_ERR);
	got = qv_wait(a.scq, &wc, 10000) ? (int)wc.status : -1;
	if (got != IBV_WC_REM_OP_ERR)
		report("send", "sender's status", 0, 0, got, IBV_WC_REM_OP_ERR);
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	no_more_events();
}

/* Requests of 0 bytes do not check the key (C9-88, C10-72). */
static void no_bytes(void)
{
	static const enum ibv_wr_opcode empty[] = {
		IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ,
	};
	struct qv_qp a, b;
	struct ibv_wc wc;
	unsigned o;
	int got;

	pair(&a, &b, RW | RR);
	for (o = 0; o < 2; o++) {
		if (qv_send(&a, empty[o], 3, NULL, 0, 0xdead, 0xbeef))
			qv_die("ibv_post_send", errno);
		got = qv_wait(a.scq, &wc, 10000) ? (int)wc.status : -1;
		tried++;
		if (got)
			report("no bytes", "opcode", empty[o], 0, got, 0);
	}
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
}

/* Remote writing and atomics without local writing make no region. */
static void regions(void)
{
	static const int wrong[] = { RW, RA, RW | RR, RA | RR, RW | RA };
	uint8_t *mem = aligned_alloc(LEN, LEN);
	unsigned i;

	for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		struct ibv_mr *mr = ibv_reg_mr(dev.pd, mem, LEN, wrong[i]);

		tried++;
		if (mr || errno != EINVAL)
			report("region", "rights", wrong[i], 0, mr ? 0 : errno,
			       EINVAL);
	}
}

int main(void)
{
	qv_open(&dev);
	printf("{\"wrong\": [");
	remote_rights();
	domains();
	local_rights();
	no_bytes();
	regions();
	printf("], \"tried\": %d}\n", tried);
	return 0;
}
