// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mistakes [CASE]: mistakes of other emulated adapters, and easy ones to make.
 * Prints one JSON object: for each case "ok", or what was wrong.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "qv.h"

#define LEN	8192

static struct qv_dev dev;
static struct ibv_mr *src, *dst;

static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ;
static const struct ibv_qp_cap cap = {
	.max_send_wr = 32, .max_recv_wr = 32,
	.max_send_sge = 1, .max_recv_sge = 1,
};

static struct ibv_sge sge(struct ibv_mr *mr, uint32_t len)
{
	struct ibv_sge s = { (uintptr_t)mr->addr, len, mr->lkey };

	return s;
}

static void none_is(struct ibv_cq *cq, int ms, const char *what)
{
	struct ibv_wc wc;

	if (qv_wait(cq, &wc, ms))
		qv_wrong("%s: a completion with status %d", what, wc.status);
}

/* A SEND waits for its receive: it is not complete, and it is not lost. */
static void send_without_receive(void)
{
	struct ibv_sge s = sge(src, 64), t = sge(dst, 64);
	struct qv_qp a, b;

	qv_rc_pair(&dev, &a, &b, &cap);
	memset(src->addr, 0x3c, 64);
	memset(dst->addr, 0, 64);
	if (qv_send(&a, IBV_WR_SEND, 1, &s, 1, 0, 0))
		qv_wrong("posting");
	none_is(a.scq, 500, "before there is a receive");
	if (qv_recv(&b, 2, &t, 1))
		qv_wrong("posting the receive");
	qv_next_is(a.scq, IBV_WC_SUCCESS, "the send");
	qv_next_is(b.rcq, IBV_WC_SUCCESS, "the receive");
	if (memcmp(src->addr, dst->addr, 64))
		qv_wrong("the data is not there");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
}

/* WRITE with immediate waits too, and its immediate comes. */
static void immediate_without_receive(void)
{
	struct ibv_sge s = sge(src, 64);
	struct ibv_send_wr *bad, wr = {
		.sg_list = &s, .num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
		.send_flags = IBV_SEND_SIGNALED, .imm_data = 0xfeedbeef,
		.wr.rdma = { (uintptr_t)dst->addr, dst->rkey },
	};
	struct qv_qp a, b;
	struct ibv_wc wc;

	qv_rc_pair(&dev, &a, &b, &cap);
	if (ibv_post_send(a.qp, &wr, &bad))
		qv_wrong("posting");
	none_is(a.scq, 500, "before there is a receive");
	if (qv_recv(&b, 2, NULL, 0))
		qv_wrong("posting the receive");
	qv_next_is(a.scq, IBV_WC_SUCCESS, "the write");
	if (!qv_wait(b.rcq, &wc, 10000) || wc.status ||
	    wc.imm_data != 0xfeedbeef || wc.byte_len != 64)
		qv_wrong("the immediate is lost");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
}

/* A QP in error returns all that was posted, in order, each once. */
static void flush(void)
{
	struct ibv_sge s = sge(src, 64), t = sge(dst, 64);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };
	struct qv_qp a, b;
	struct ibv_wc wc;
	int i;

	qv_rc_pair(&dev, &a, &b, &cap);
	for (i = 0; i < 8; i++) {
		if (qv_send(&a, IBV_WR_SEND, i, &s, 1, 0, 0) ||
		    qv_recv(&a, 100 + i, &t, 1))
			qv_wrong("posting");
	}
	if (ibv_modify_qp(a.qp, &attr, IBV_QP_STATE))
		qv_wrong("to ERR");
	for (i = 0; i < 8; i++) {
		if (!qv_wait(a.scq, &wc, 5000) || (int)wc.wr_id != i ||
		    wc.status != IBV_WC_WR_FLUSH_ERR)
			qv_wrong("send %d is not flushed", i);
		if (!qv_wait(a.rcq, &wc, 5000) || (int)wc.wr_id != 100 + i ||
		    wc.status != IBV_WC_WR_FLUSH_ERR)
			qv_wrong("receive %d is not flushed", i);
	}
	none_is(a.scq, 100, "more than was posted");
	none_is(a.rcq, 0, "more than was posted");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
}

/*
 * Reset clears everything: no flush, and old completions are not taken for new
 * ones.
 */
static void reset(void)
{
	struct ibv_sge s = sge(src, 64), t = sge(dst, 64);
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_RESET };
	struct qv_qp a, b;
	int i;

	qv_rc_pair(&dev, &a, &b, &cap);
	for (i = 0; i < 4; i++)
		if (qv_recv(&a, 100 + i, &t, 1))
			qv_wrong("posting");
	if (ibv_modify_qp(a.qp, &attr, IBV_QP_STATE) ||
	    ibv_modify_qp(b.qp, &attr, IBV_QP_STATE))
		qv_wrong("to RESET");
	none_is(a.rcq, 200, "after a reset");
	qv_qp_init(&a, rights);
	qv_qp_init(&b, rights);
	qv_qp_connect(&dev, &a, b.qp->qp_num);
	qv_qp_connect(&dev, &b, a.qp->qp_num);
	if (qv_recv(&b, 7, &t, 1) || qv_send(&a, IBV_WR_SEND, 8, &s, 1, 0, 0))
		qv_wrong("posting after a reset");
	qv_next_is(a.scq, IBV_WC_SUCCESS, "a send after a reset");
	qv_next_is(b.rcq, IBV_WC_SUCCESS, "a receive after a reset");
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
}

/*
 * A key is invalid once its region is destroyed, and the next region has
 * another one.
 */
static void key_reuse(void)
{
	uint8_t *mem = aligned_alloc(4096, LEN);
	uint32_t old_rkey = 0, old_lkey = 0;
	struct ibv_sge s = sge(src, 64);
	struct qv_qp a, b;
	int i;

	memset(mem, 0, LEN);
	for (i = 0; i < 40; i++) {
		struct ibv_mr *mr = ibv_reg_mr(dev.pd, mem, LEN, rights);

		if (!mr)
			qv_die("ibv_reg_mr", errno);
		if (mr->rkey == old_rkey || mr->lkey == old_lkey)
			qv_wrong("a key comes again: %#x", mr->rkey);
		if (i == 20 || i == 39) {
			/* the slot may be in use again, the old key is not */
			qv_rc_pair(&dev, &a, &b, &cap);
			if (qv_send(&a, IBV_WR_RDMA_WRITE, 1, &s, 1,
				    (uintptr_t)mem, old_rkey))
				qv_wrong("posting");
			qv_next_is(a.scq, IBV_WC_REM_ACCESS_ERR, "an old R_Key");
			qv_qp_destroy(&a);
			qv_qp_destroy(&b);
			qv_rc_pair(&dev, &a, &b, &cap);
			s.lkey = old_lkey;
			s.addr = (uintptr_t)mem;
			if (qv_send(&a, IBV_WR_RDMA_WRITE, 1, &s, 1,
				    (uintptr_t)dst->addr, dst->rkey))
				qv_wrong("posting");
			qv_next_is(a.scq, IBV_WC_LOC_PROT_ERR, "an old L_Key");
			s = sge(src, 64);
			qv_qp_destroy(&a);
			qv_qp_destroy(&b);
		}
		old_rkey = mr->rkey;
		old_lkey = mr->lkey;
		if (ibv_dereg_mr(mr))
			qv_die("ibv_dereg_mr", errno);
	}
	if (mem[0])
		qv_wrong("memory was written by an old key");
	while (qv_async(&dev, 0) >= 0)
		;
	free(mem);
}

/* Too many completions: an event, the CQ fails, others do not. */
static void cq_overflow(void)
{
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 4, NULL, NULL, 0);
	struct ibv_sge s = sge(src, 64), t = sge(dst, 64);
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = cap,
	};
	int i, event, events = 0, posted = 0;
	struct qv_qp a = {}, c, d;
	struct ibv_wc wc;

	if (!cq)
		qv_die("ibv_create_cq", errno);
	init.cap.max_send_wr = cq->cqe + 1;
	a.init = init;
	a.qp = ibv_create_qp(dev.pd, &init);
	if (!a.qp)
		qv_die("ibv_create_qp", errno);
	qv_qp_init(&a, rights);
	qv_qp_connect(&dev, &a, a.qp->qp_num);	/* to itself */
	for (i = 0; i <= cq->cqe && !posted; i++) {
		posted = qv_send(&a, IBV_WR_RDMA_WRITE, i, &s, 1,
				 (uintptr_t)dst->addr, dst->rkey);
	}
	if (posted)
		qv_wrong("posting: %s", strerror(posted));
	for (i = 0; i < 100 && !events; i++) {
		event = qv_async(&dev, 50);
		events = event == IBV_EVENT_CQ_ERR;
	}
	if (!events)
		qv_wrong("no event of the CQ");
	/* what was complete before may be taken, or an error comes: no hang */
	for (i = 0; i <= cq->cqe + 1 && ibv_poll_cq(cq, 1, &wc) > 0; i++)
		;
	if (i > cq->cqe)
		qv_wrong("%d completions in a CQ of %d", i, cq->cqe);

	qv_rc_pair(&dev, &c, &d, &cap);
	if (qv_recv(&d, 1, &t, 1) || qv_send(&c, IBV_WR_SEND, 2, &s, 1, 0, 0))
		qv_wrong("posting beside it");
	qv_next_is(c.scq, IBV_WC_SUCCESS, "another CQ");
	qv_qp_destroy(&c);
	qv_qp_destroy(&d);
	if (ibv_destroy_qp(a.qp) || ibv_destroy_cq(cq))
		qv_wrong("the CQ stays");
	while (qv_async(&dev, 0) >= 0)
		;
}

static int next_srq_event(int ms)
{
	int event;

	do {
		event = qv_async(&dev, ms);
	} while (event >= 0 && event != IBV_EVENT_SRQ_LIMIT_REACHED);
	return event == IBV_EVENT_SRQ_LIMIT_REACHED;
}

/* The limit of an SRQ: one event when fewer are left, then it is disarmed. */
static void srq_limit(void)
{
	/* ibv_create_srq() ignores the limit */
	struct ibv_srq_init_attr init = {
		.attr = { .max_wr = 16, .max_sge = 1, .srq_limit = 0xdeadbeef },
	};
	struct ibv_srq_attr attr;
	struct ibv_srq *srq = ibv_create_srq(dev.pd, &init);
	struct ibv_sge s = sge(src, 64), t = sge(dst, 64);
	struct ibv_recv_wr *bad, wr = { .sg_list = &t, .num_sge = 1 };
	struct qv_qp a, b;
	int i;

	if (!srq)
		qv_die("ibv_create_srq", errno);
	qv_qp_create(&dev, &a, IBV_QPT_RC, &cap);
	qv_qp_create_srq(&dev, &b, IBV_QPT_RC, &cap, srq);
	qv_qp_init(&a, rights);
	qv_qp_init(&b, rights);
	qv_qp_connect(&dev, &a, b.qp->qp_num);
	qv_qp_connect(&dev, &b, a.qp->qp_num);
	for (i = 0; i < 8; i++)
		if (ibv_post_srq_recv(srq, &wr, &bad))
			qv_wrong("posting a receive");
	if (ibv_query_srq(srq, &attr) || attr.srq_limit)
		qv_wrong("a new SRQ has a limit: %u", attr.srq_limit);
	attr.srq_limit = 5;
	if (ibv_modify_srq(srq, &attr, IBV_SRQ_LIMIT))
		qv_wrong("arming");
	/* five left: not fewer than the limit yet */
	for (i = 0; i < 3; i++) {
		if (qv_send(&a, IBV_WR_SEND, i, &s, 1, 0, 0))
			qv_wrong("posting");
		qv_next_is(a.scq, IBV_WC_SUCCESS, "a send");
		qv_next_is(b.rcq, IBV_WC_SUCCESS, "a receive");
	}
	if (next_srq_event(300))
		qv_wrong("an event before the limit");
	if (qv_send(&a, IBV_WR_SEND, i, &s, 1, 0, 0))
		qv_wrong("posting");
	qv_next_is(a.scq, IBV_WC_SUCCESS, "a send");
	if (!next_srq_event(3000))
		qv_wrong("no event at the limit");
	if (qv_send(&a, IBV_WR_SEND, i, &s, 1, 0, 0))
		qv_wrong("posting");
	qv_next_is(a.scq, IBV_WC_SUCCESS, "a send");
	if (next_srq_event(300))
		qv_wrong("a second event");
	memset(&attr, 0, sizeof(attr));
	if (ibv_query_srq(srq, &attr) || attr.srq_limit)
		qv_wrong("the limit stays armed: %u", attr.srq_limit);
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	if (ibv_destroy_srq(srq))
		qv_wrong("the SRQ stays");
}

/* Data of a request that spans pages and starts anywhere arrives whole. */
static void any_alignment(void)
{
	uint8_t *from = src->addr, *to = dst->addr;
	struct qv_qp a, b;
	unsigned i, k;

	qv_rc_pair(&dev, &a, &b, &cap);
	for (i = 0; i < LEN; i++)
		from[i] = i * 11 + i / 256;
	for (k = 0; k < 64; k++) {
		uint32_t off = 4096 - 40 + k, at = 4096 - 7 * k, len = 1 + 61 * k;
		struct ibv_sge s = { (uintptr_t)from + off, len, src->lkey };

		if (len > LEN - off)
			len = s.length = LEN - off;
		if (len > LEN - at)
			len = s.length = LEN - at;
		memset(to, 0, LEN);
		if (qv_send(&a, IBV_WR_RDMA_WRITE, 1, &s, 1,
			    (uintptr_t)to + at, dst->rkey))
			qv_wrong("posting");
		qv_next_is(a.scq, IBV_WC_SUCCESS, "a write");
		if (memcmp(to + at, from + off, len) || to[at - 1] ||
		    (at + len < LEN && to[at + len]))
			qv_wrong("write of %u bytes from %u to %u", len, off, at);
	}
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
}

/* Objects in use cannot be destroyed. */
static void busy(void)
{
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct ibv_pd *pd = ibv_alloc_pd(dev.ctx);
	struct ibv_cq *cq = ibv_create_cq(dev.ctx, 4, NULL, NULL, 0);
	struct ibv_srq *srq = pd ? ibv_create_srq(pd, &srq_attr) : NULL;
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .srq = srq,
		.qp_type = IBV_QPT_RC, .cap = cap,
	};
	struct ibv_qp *qp = srq && cq ? ibv_create_qp(pd, &init) : NULL;

	if (!qp)
		qv_die("making objects", errno);
	if (ibv_dealloc_pd(pd) != EBUSY)
		qv_wrong("a PD in use goes");
	if (ibv_destroy_cq(cq) != EBUSY)
		qv_wrong("a CQ in use goes");
	if (ibv_destroy_srq(srq) != EBUSY)
		qv_wrong("an SRQ in use goes");
	if (ibv_destroy_qp(qp) || ibv_destroy_srq(srq) || ibv_destroy_cq(cq) ||
	    ibv_dealloc_pd(pd))
		qv_wrong("an unused object stays");
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "send_without_receive", send_without_receive },
	{ "immediate_without_receive", immediate_without_receive },
	{ "flush", flush },
	{ "reset", reset },
	{ "key_reuse", key_reuse },
	{ "cq_overflow", cq_overflow },
	{ "srq_limit", srq_limit },
	{ "any_alignment", any_alignment },
	{ "busy", busy },
};

int main(int argc, char **argv)
{
	const char *comma = "{";
	unsigned i;

	qv_open(&dev);
	src = qv_mr(&dev, LEN, rights);
	dst = qv_mr(&dev, LEN, rights);
	for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (argc > 1 && strcmp(cases[i].name, argv[1]))
			continue;
		qv_why[0] = '\0';
		cases[i].run();
		printf("%s\"%s\": \"%s\"", comma, cases[i].name,
		       qv_why[0] ? qv_why : "ok");
		fflush(stdout);
		comma = ",\n ";
	}
	printf("}\n");
	return 0;
}
