// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * udsrq: two UD QPs on one shared receive queue, and a third that sends to them
 * in turn; then the limit of the queue, and the destruction of a QP.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "qv.h"

#define N 64
#define GRH 40
#define SIZE 1000
#define SLOT (GRH + SIZE)

static struct qv_dev dev;
static struct ibv_srq *srq;
static struct ibv_mr *mr, *src;
static struct qv_qp rx[2], tx;
static struct ibv_ah *ah;

static void ready(struct ibv_qp *qp)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_INIT, .port_num = 1,
				    .qkey = QV_QKEY };
	int ret = ibv_modify_qp(qp, &attr, IBV_QP_STATE | IBV_QP_PORT |
				IBV_QP_PKEY_INDEX | IBV_QP_QKEY);

	attr.qp_state = IBV_QPS_RTR;
	ret = ret ? ret : ibv_modify_qp(qp, &attr, IBV_QP_STATE);
	attr.qp_state = IBV_QPS_RTS;
	ret = ret ? ret : ibv_modify_qp(qp, &attr,
					IBV_QP_STATE | IBV_QP_SQ_PSN);
	if (ret)
		qv_die("a UD QP to RTS", ret);
}

static void make(struct qv_qp *q, struct ibv_srq *on, struct ibv_cq *rcq)
{
	q->scq = ibv_create_cq(dev.ctx, 256, NULL, NULL, 0);
	if (!q->scq || !rcq)
		qv_die("ibv_create_cq", errno);
	q->rcq = rcq;
	q->init = (struct ibv_qp_init_attr){
		.send_cq = q->scq, .recv_cq = rcq, .srq = on,
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 128, .max_send_sge = 1,
			 .max_recv_wr = on ? 0 : 1,
			 .max_recv_sge = on ? 0 : 1 },
	};
	q->qp = ibv_create_qp(dev.pd, &q->init);
	if (!q->qp)
		qv_die("ibv_create_qp", errno);
	ready(q->qp);
}

static void post(int i)
{
	struct ibv_sge sge = {
		.addr = (uintptr_t)mr->addr + i * SLOT, .length = SLOT,
		.lkey = mr->lkey,
	};
	struct ibv_recv_wr wr = { .wr_id = i, .sg_list = &sge, .num_sge = 1 };
	struct ibv_recv_wr *bad;
	int ret = ibv_post_srq_recv(srq, &wr, &bad);

	if (ret)
		qv_die("ibv_post_srq_recv", ret);
}

static void send_one(int i, uint32_t qpn)
{
	struct ibv_sge sge = { .addr = (uintptr_t)src->addr, .length = SIZE,
			       .lkey = src->lkey };
	struct ibv_send_wr wr = {
		.wr_id = i, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND_WITH_IMM, .imm_data = htonl(i),
		.send_flags = IBV_SEND_SIGNALED,
		.wr.ud = { .ah = ah, .remote_qpn = qpn, .remote_qkey = QV_QKEY },
	}, *bad;
	struct ibv_wc wc;
	int ret;

	memset(src->addr, i, SIZE);
	ret = ibv_post_send(tx.qp, &wr, &bad);
	if (ret)
		qv_die("ibv_post_send", ret);
	if (!qv_wait(tx.scq, &wc, 20000) || wc.status)
		qv_die("completion of a send", EIO);
}

/* Message @i arrived at @qp, in whatever slot. */
static bool arrived(int i, const struct qv_qp *q)
{
	struct ibv_wc wc;
	const uint8_t *p;

	if (!qv_wait(q->rcq, &wc, 20000))
		qv_die("no message came", ETIMEDOUT);
	p = (uint8_t *)mr->addr + wc.wr_id * SLOT + GRH;
	return wc.status == IBV_WC_SUCCESS && wc.qp_num == q->qp->qp_num &&
	       wc.src_qp == tx.qp->qp_num && wc.byte_len == SLOT &&
	       ntohl(wc.imm_data) == (uint32_t)i &&
	       wc.wc_flags & IBV_WC_WITH_IMM && wc.wc_flags & IBV_WC_GRH &&
	       p[0] == (uint8_t)i && p[SIZE - 1] == (uint8_t)i;
}

int main(void)
{
	struct ibv_srq_init_attr si = { .attr = { .max_wr = N, .max_sge = 1 } };
	struct ibv_srq_attr limit = { .srq_limit = N / 2 };
	struct ibv_ah_attr aa = {
		.is_global = 1, .port_num = 1,
		.grh = { .hop_limit = 64 },
	};
	int i, good = 0, last, event, ret;

	qv_open(&dev);
	aa.grh.dgid = dev.gid;
	aa.grh.sgid_index = dev.gid_index;
	ah = ibv_create_ah(dev.pd, &aa);
	srq = ibv_create_srq(dev.pd, &si);
	if (!ah || !srq)
		qv_die("AH and SRQ", errno);
	mr = qv_mr(&dev, N * SLOT, IBV_ACCESS_LOCAL_WRITE);
	src = qv_mr(&dev, SIZE, IBV_ACCESS_LOCAL_WRITE);
	for (i = 0; i < 2; i++)
		make(&rx[i], srq, ibv_create_cq(dev.ctx, 256, NULL, NULL, 0));
	make(&tx, NULL, ibv_create_cq(dev.ctx, 16, NULL, NULL, 0));
	for (i = 0; i < N; i++)
		post(i);
	for (i = 0; i < N / 2; i++) {
		send_one(i, rx[i & 1].qp->qp_num);
		good += arrived(i, &rx[i & 1]);
	}
	/* N/2 are left: one more is below the limit */
	ret = ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT);
	if (ret)
		qv_die("ibv_modify_srq", ret);
	event = qv_async(&dev, 200);
	if (event != -1)
		qv_die("an event too early", EPROTO);
	send_one(i, rx[0].qp->qp_num);
	good += arrived(i++, &rx[0]);
	event = qv_async(&dev, 20000);
	/* destroy one QP: the rest is for the other */
	qv_qp_destroy(&rx[0]);
	for (; i < N; i++) {
		send_one(i, rx[1].qp->qp_num);
		good += arrived(i, &rx[1]);
	}
	/* nothing is left: lost, as UD may */
	send_one(i, rx[1].qp->qp_num);
	post(0);
	send_one(77, rx[1].qp->qp_num);
	last = arrived(77, &rx[1]);
	qv_qp_destroy(&rx[1]);
	qv_qp_destroy(&tx);
	ret = ibv_destroy_srq(srq);
	if (ret)
		qv_die("ibv_destroy_srq", ret);
	printf("{\"good\": %d, \"of\": %d, \"last\": %d, \"event\": \"%s\"}\n",
	       good, N, last, ibv_event_type_str(event));
	return 0;
}
