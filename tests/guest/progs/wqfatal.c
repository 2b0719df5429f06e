// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A WQ of an RSS QP whose CQ overflows. A raw packet QP sends frames to a group;
 * the RSS QP has the rule for it.
 *
 * Prints {"event": N, "wq": 0 or 1}: the asynchronous event after that of the
 * CQ, and whether it names the WQ; {"event": -1} if there was none.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "qv.h"

#define LEN	64
#define DEPTH	1024

static const uint8_t group[6] = { 3, 0, 0, 0, 0, 0x43 };
static struct qv_dev dev;
static struct ibv_mr *mr;
static struct ibv_wq *wq;

static void make_receiver(void)
{
	static uint8_t key[40] = { 1, 2, 3 };
	static struct {
		struct ibv_flow_attr attr;
		struct ibv_flow_spec_eth eth;
	} rule = {
		.attr = { .type = IBV_FLOW_ATTR_NORMAL, .size = sizeof(rule),
			  .num_of_specs = 1, .port = 1 },
		.eth = { .type = IBV_FLOW_SPEC_ETH, .size = sizeof(rule.eth) },
	};
	struct ibv_wq_attr ready = { .attr_mask = IBV_WQ_ATTR_STATE,
				     .wq_state = IBV_WQS_RDY };
	struct ibv_rwq_ind_table_init_attr table = { .ind_tbl = &wq };
	struct ibv_wq_init_attr attr = {
		.wq_type = IBV_WQT_RQ, .max_wr = DEPTH, .max_sge = 1,
		.pd = dev.pd,
	};
	struct ibv_qp_init_attr_ex rss = {
		.qp_type = IBV_QPT_RAW_PACKET, .pd = dev.pd,
		.rx_hash_conf = {
			.rx_hash_function = IBV_RX_HASH_FUNC_TOEPLITZ,
			.rx_hash_key_len = sizeof(key), .rx_hash_key = key,
			.rx_hash_fields_mask = IBV_RX_HASH_SRC_IPV4 |
					       IBV_RX_HASH_DST_IPV4,
		},
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_IND_TABLE |
			     IBV_QP_INIT_ATTR_RX_HASH,
	};
	struct ibv_sge sge = { .addr = (uintptr_t)mr->addr, .length = 4096,
			       .lkey = mr->lkey };
	struct ibv_recv_wr wr = { .sg_list = &sge, .num_sge = 1 }, *bad;
	struct ibv_qp *qp;
	int i;

	attr.cq = ibv_create_cq(dev.ctx, 1, NULL, NULL, 0);
	if (!attr.cq)
		qv_die("create_cq", errno);
	wq = ibv_create_wq(dev.ctx, &attr);
	if (!wq || ibv_modify_wq(wq, &ready))
		qv_die("WQ", errno);
	rss.rwq_ind_tbl = ibv_create_rwq_ind_table(dev.ctx, &table);
	if (!rss.rwq_ind_tbl)
		qv_die("create_rwq_ind_table", errno);
	qp = ibv_create_qp_ex(dev.ctx, &rss);
	if (!qp)
		qv_die("RSS QP", errno);
	memcpy(rule.eth.val.dst_mac, group, 6);
	memset(rule.eth.mask.dst_mac, 0xff, 6);
	if (!ibv_create_flow(qp, &rule.attr))
		qv_die("create_flow", errno);
	for (i = 0; i < DEPTH; i++) {
		if (ibv_post_wq_recv(wq, &wr, &bad))
			qv_die("post_wq_recv", errno);
	}
}

static void send_frames(void)
{
	uint8_t frame[LEN] = { [12] = 0x88, 0xb6 };
	struct ibv_sge sge = { .addr = (uintptr_t)frame, .length = LEN };
	struct ibv_send_wr wr = {
		.opcode = IBV_WR_SEND, .sg_list = &sge, .num_sge = 1,
		.send_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED,
	}, *bad;
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };
	struct ibv_qp_cap cap = { .max_send_wr = 4, .max_recv_wr = 1,
				  .max_send_sge = 1, .max_recv_sge = 1,
				  .max_inline_data = LEN };
	struct qv_qp q;
	struct ibv_wc wc;
	int i;

	qv_qp_create(&dev, &q, IBV_QPT_RAW_PACKET, &cap);
	if (ibv_modify_qp(q.qp, &a, IBV_QP_STATE | IBV_QP_PORT))
		qv_die("INIT", errno);
	a.qp_state = IBV_QPS_RTR;
	if (ibv_modify_qp(q.qp, &a, IBV_QP_STATE))
		qv_die("RTR", errno);
	a.qp_state = IBV_QPS_RTS;
	if (ibv_modify_qp(q.qp, &a, IBV_QP_STATE))
		qv_die("RTS", errno);
	memcpy(frame, group, 6);
	for (i = 0; i < DEPTH; i++) {
		if (ibv_post_send(q.qp, &wr, &bad) ||
		    !qv_wait(q.scq, &wc, 30000) || wc.status)
			qv_die("send", EIO);
	}
}

int main(void)
{
	struct ibv_async_event e = { .event_type = -1 };
	struct pollfd fd = { .events = POLLIN };
	bool ours = false;

	qv_open(&dev);
	mr = qv_mr(&dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	make_receiver();
	send_frames();
	fd.fd = dev.ctx->async_fd;
	while (poll(&fd, 1, 30000 * qv_pace()) == 1 &&
	       !ibv_get_async_event(dev.ctx, &e)) {
		ibv_ack_async_event(&e);
		if (e.event_type != IBV_EVENT_CQ_ERR)
			break;
		e.event_type = -1;
	}
	if (e.event_type == IBV_EVENT_WQ_FATAL)
		ours = e.element.wq == wq;
	printf("{\"event\": %d, \"wq\": %d}\n", e.event_type, ours);
	return 0;
}
