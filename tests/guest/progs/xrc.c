// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xrc FILE: three processes and one XRC domain, named by FILE.
 *
 * The first makes a target QP and an SRQ; the second opens the target and has
 * an SRQ of its own; the third, the parent, sends to both SRQs through its one
 * initiator. Then the first exits: the target stays for the second, and
 * messages to the destroyed SRQ fail.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "qv.h"

#define MESSAGES 20
#define SIZE 3000

static void tell(int fd, uint32_t v)
{
	if (write(fd, &v, sizeof(v)) != sizeof(v))
		qv_die("write to another process", errno);
}

static uint32_t hear(int fd)
{
	uint32_t v;

	if (recv(fd, &v, sizeof(v), MSG_WAITALL) != sizeof(v))
		qv_die("another process is gone", EPIPE);
	return v;
}

/* A receiver: a domain, an SRQ of it with a CQ, some memory. */
struct receiver {
	struct qv_dev dev;
	struct ibv_xrcd *xrcd;
	struct ibv_srq *srq;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint32_t srqn;
};

static void receiver_open(struct receiver *r, const char *file)
{
	struct ibv_xrcd_init_attr xi = {
		.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
		.fd = open(file, O_RDWR | O_CREAT, 0600), .oflags = O_CREAT,
	};
	struct ibv_srq_init_attr_ex si = {
		.attr = { .max_wr = 2 * MESSAGES, .max_sge = 1 },
		.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD |
			     IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_CQ,
		.srq_type = IBV_SRQT_XRC,
	};
	int i, ret;

	qv_open(&r->dev);
	if (xi.fd < 0)
		qv_die(file, errno);
	r->xrcd = ibv_open_xrcd(r->dev.ctx, &xi);
	if (!r->xrcd)
		qv_die("ibv_open_xrcd", errno);
	r->cq = ibv_create_cq(r->dev.ctx, 256, NULL, NULL, 0);
	if (!r->cq)
		qv_die("ibv_create_cq", errno);
	si.pd = r->dev.pd;
	si.xrcd = r->xrcd;
	si.cq = r->cq;
	r->srq = ibv_create_srq_ex(r->dev.ctx, &si);
	if (!r->srq)
		qv_die("ibv_create_srq_ex", errno);
	ret = ibv_get_srq_num(r->srq, &r->srqn);
	if (ret)
		qv_die("ibv_get_srq_num", ret);
	r->mr = qv_mr(&r->dev, 2 * MESSAGES * SIZE, IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; i < 2 * MESSAGES; i++) {
		struct ibv_sge sge = {
			.addr = (uintptr_t)r->mr->addr + i * SIZE,
			.length = SIZE, .lkey = r->mr->lkey,
		};
		struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge,
					  .num_sge = 1 }, *bad;

		ret = ibv_post_srq_recv(r->srq, &wr, &bad);
		if (ret)
			qv_die("ibv_post_srq_recv", ret);
	}
}

static void receiver_close(struct receiver *r)
{
	int ret = ibv_destroy_srq(r->srq);

	if (ret)
		qv_die("ibv_destroy_srq", ret);
	ret = ibv_close_xrcd(r->xrcd);
	if (ret)
		qv_die("ibv_close_xrcd", ret);
	ibv_destroy_cq(r->cq);
	ibv_dereg_mr(r->mr);
}

/* @n messages with a tag each; returns how many were correct. */
static int receive(struct receiver *r, uint32_t qpn, int n)
{
	int good = 0, i, j;
	struct ibv_wc wc;

	for (i = 0; i < n; i++) {
		const uint8_t *p;

		if (!qv_wait(r->cq, &wc, 20000))
			qv_die("no message came", ETIMEDOUT);
		p = (uint8_t *)r->mr->addr + wc.wr_id * SIZE;
		for (j = 0; j < SIZE && p[j] == (uint8_t)(j + p[0]); j++)
			;
		good += wc.status == IBV_WC_SUCCESS && wc.qp_num == qpn &&
			wc.opcode == IBV_WC_RECV && wc.byte_len == SIZE &&
			ntohl(wc.imm_data) == r->srqn && j == SIZE;
	}
	return good;
}

/* The first process: creates the target. */
static void target(const char *file, int fd)
{
	struct qv_qp q = { .init.qp_type = IBV_QPT_XRC_RECV };
	struct receiver r;
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_RECV,
		.comp_mask = IBV_QP_INIT_ATTR_XRCD,
	};

	receiver_open(&r, file);
	init.xrcd = r.xrcd;
	q.qp = ibv_create_qp_ex(r.dev.ctx, &init);
	if (!q.qp)
		qv_die("create the target", errno);
	qv_qp_init(&q, IBV_ACCESS_REMOTE_WRITE);
	tell(fd, q.qp->qp_num);
	tell(fd, r.srqn);
	qv_qp_connect(&r.dev, &q, hear(fd));
	tell(fd, 1);
	tell(fd, receive(&r, q.qp->qp_num, MESSAGES));
	hear(fd);
	/* in order, or by exit: the kernel frees it all */
	if (hear(fd)) {
		if (ibv_destroy_qp(q.qp))
			qv_die("destroy the target's handle", errno);
		receiver_close(&r);
	}
	exit(0);
}

/* The second process: shares it. */
static void sharer(const char *file, int fd)
{
	struct ibv_qp_open_attr attr = {
		.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
			     IBV_QP_OPEN_ATTR_TYPE,
		.qp_type = IBV_QPT_XRC_RECV,
	};
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr now;
	struct receiver r;
	struct ibv_qp *qp;
	int ret;

	receiver_open(&r, file);
	attr.qp_num = hear(fd);
	attr.xrcd = r.xrcd;
	qp = ibv_open_qp(r.dev.ctx, &attr);
	if (!qp)
		qv_die("ibv_open_qp", errno);
	tell(fd, r.srqn);
	tell(fd, receive(&r, attr.qp_num, MESSAGES));
	tell(fd, receive(&r, attr.qp_num, 5));
	hear(fd);
	/* Linux reports events of a target only to its creator */
	ret = ibv_query_qp(qp, &now, IBV_QP_STATE, &init);
	if (ret)
		qv_die("ibv_query_qp", ret);
	tell(fd, now.qp_state);
	ret = ibv_destroy_qp(qp);
	if (ret)
		qv_die("destroy the opened target", ret);
	receiver_close(&r);
	exit(0);
}

/* Start a process; returns our end of the connection to it. */
static int process(void (*run)(const char *, int), const char *file,
		   pid_t *pid)
{
	int fd[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd))
		qv_die("socketpair", errno);
	*pid = fork();
	if (*pid < 0)
		qv_die("fork", errno);
	if (!*pid) {
		close(fd[0]);
		run(file, fd[1]);
	}
	close(fd[1]);
	return fd[0];
}

static void ended(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) != pid || status)
		qv_die("another process failed", ECHILD);
}

struct initiator {
	struct qv_dev dev;
	struct qv_qp q;
	struct ibv_qp_ex *ex;
	struct ibv_mr *mr;
};

static void initiator_open(struct initiator *i)
{
	struct ibv_qp_init_attr_ex init = {
		.qp_type = IBV_QPT_XRC_SEND,
		.cap = { .max_send_wr = 64, .max_send_sge = 1 },
		.comp_mask = IBV_QP_INIT_ATTR_PD |
			     IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.send_ops_flags = IBV_QP_EX_WITH_SEND_WITH_IMM,
	};

	memset(i, 0, sizeof(*i));
	i->q.init.qp_type = IBV_QPT_XRC_SEND;
	qv_open(&i->dev);
	i->q.scq = ibv_create_cq(i->dev.ctx, 256, NULL, NULL, 0);
	if (!i->q.scq)
		qv_die("ibv_create_cq", errno);
	init.pd = i->dev.pd;
	init.send_cq = i->q.scq;
	i->q.qp = ibv_create_qp_ex(i->dev.ctx, &init);
	if (!i->q.qp)
		qv_die("create the initiator", errno);
	i->ex = ibv_qp_to_qp_ex(i->q.qp);
	i->mr = qv_mr(&i->dev, SIZE, IBV_ACCESS_LOCAL_WRITE);
	qv_qp_init(&i->q, 0);
}

/* One message to SRQ @srqn; the status of its completion. */
static int send_to(struct initiator *i, uint32_t srqn, uint8_t tag)
{
	uint8_t *p = i->mr->addr;
	struct ibv_wc wc;
	int j, ret;

	for (j = 0; j < SIZE; j++)
		p[j] = j + tag;
	ibv_wr_start(i->ex);
	i->ex->wr_id = tag;
	i->ex->wr_flags = IBV_SEND_SIGNALED;
	ibv_wr_send_imm(i->ex, htonl(srqn));
	ibv_wr_set_xrc_srqn(i->ex, srqn);
	ibv_wr_set_sge(i->ex, i->mr->lkey, (uintptr_t)p, SIZE);
	ret = ibv_wr_complete(i->ex);
	if (ret)
		qv_die("ibv_wr_complete", ret);
	if (!qv_wait(i->q.scq, &wc, 20000) || wc.wr_id != tag)
		qv_die("completion", ETIMEDOUT);
	return wc.status;
}

int main(int argc, char **argv)
{
	const char *file = argc > 1 ? argv[1] : "/tmp/xrcd";
	bool orderly = argc > 2;
	int t, s, n, sent = 0, later = 0, gone;
	uint32_t tgt, srqn[2];
	struct initiator i;
	pid_t tp, sp;

	t = process(target, file, &tp);
	s = process(sharer, file, &sp);
	tgt = hear(t);
	srqn[0] = hear(t);
	tell(s, tgt);
	srqn[1] = hear(s);
	initiator_open(&i);
	tell(t, i.q.qp->qp_num);
	hear(t);
	qv_qp_connect(&i.dev, &i.q, tgt);
	for (n = 0; n < 2 * MESSAGES; n++)
		sent += !send_to(&i, srqn[n & 1], n);
	printf("{\"sent\": %d, \"first\": %u, \"second\": %u, ", sent,
	       hear(t), hear(s));
	tell(t, 1);
	tell(t, orderly);
	ended(tp);
	for (n = 0; n < 5; n++)
		later += !send_to(&i, srqn[1], n);
	printf("\"later\": %d, \"second_later\": %u, ", later, hear(s));
	gone = send_to(&i, srqn[0], 99);
	tell(s, 1);
	printf("\"gone\": \"%s\", \"in_error\": %s}\n",
	       ibv_wc_status_str(gone),
	       hear(s) == IBV_QPS_ERR ? "true" : "false");
	ended(sp);
	return 0;
}
