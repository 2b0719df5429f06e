// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * connections COUNT [ADDRESS]: COUNT simultaneous rdma_cm connections between
 * two programs; without an address it is the server.  Each connection has its
 * own QP; when all are up, a message that identifies the connection is sent
 * over each and comes back changed.  Prints one JSON object: connections that
 * were up at once, those whose data was right, seconds, and how much the
 * program's memory has grown, in KiB.
 */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "qv.h"

#define PORT	"7471"
#define SIZE	256
#define DEPTH	64		/* requests to connect under way */

struct connection {
	struct rdma_cm_id *id;
	uint8_t *buf;		/* SIZE to send, SIZE to receive */
	uint32_t number;
};

static struct connection *table;
static struct rdma_event_channel *channel;
static struct ibv_cq *cq;
static struct ibv_pd *pd;
static struct ibv_mr *mr;
static uint8_t *memory;
static unsigned count, up, good, gone;
static bool server;

static uint8_t pattern(uint32_t number, unsigned i)
{
	return number * 7 + number / 256 + i * 3;
}

/* Objects all connections share, when the first one knows the device. */
static void share(struct rdma_cm_id *id)
{
	if (pd)
		return;
	pd = ibv_alloc_pd(id->verbs);
	if (!pd)
		qv_die("ibv_alloc_pd", errno);
	cq = ibv_create_cq(id->verbs, 4 * count, NULL, NULL, 0);
	if (!cq)
		qv_die("ibv_create_cq", errno);
	mr = ibv_reg_mr(pd, memory, (size_t)count * 2 * SIZE,
			IBV_ACCESS_LOCAL_WRITE);
	if (!mr)
		qv_die("ibv_reg_mr", errno);
}

static struct ibv_sge half(struct connection *c, int which)
{
	struct ibv_sge sge = {
		(uintptr_t)c->buf + which * SIZE, SIZE, mr->lkey,
	};

	return sge;
}

static void prepare(struct connection *c)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ibv_sge sge = half(c, 1);
	struct ibv_recv_wr *bad, wr = {
		.wr_id = c->number, .sg_list = &sge, .num_sge = 1,
	};

	if (rdma_create_qp(c->id, pd, &attr))
		qv_die("rdma_create_qp", errno);
	if (ibv_post_recv(c->id->qp, &wr, &bad))
		qv_die("ibv_post_recv", errno);
}

static void post_send(struct connection *c)
{
	struct ibv_sge sge = half(c, 0);
	struct ibv_send_wr *bad, wr = {
		.wr_id = c->number, .sg_list = &sge, .num_sge = 1,
		.opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED,
	};

	if (ibv_post_send(c->id->qp, &wr, &bad))
		qv_die("ibv_post_send", errno);
}

static struct rdma_conn_param parameters(uint32_t *number)
{
	struct rdma_conn_param p = {
		.private_data = number, .private_data_len = sizeof(*number),
		.responder_resources = 1, .initiator_depth = 1,
		.retry_count = 7, .rnr_retry_count = 7,
	};

	return p;
}

static void resolve(struct connection *c, const char *address)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *res;

	if (rdma_create_id(channel, &c->id, c, RDMA_PS_TCP))
		qv_die("rdma_create_id", errno);
	if (rdma_getaddrinfo(address, PORT, &hints, &res))
		qv_die("rdma_getaddrinfo", errno);
	if (rdma_resolve_addr(c->id, NULL, res->ai_dst_addr, 5000))
		qv_die("rdma_resolve_addr", errno);
	rdma_freeaddrinfo(res);
}

/* One event of the connection manager; how many more may begin. */
static void event(struct rdma_cm_event *ev)
{
	struct connection *c = ev->id->context;
	struct rdma_conn_param p;
	uint32_t number;

	switch (ev->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(c->id, 5000))
			qv_die("rdma_resolve_route", errno);
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		share(c->id);
		prepare(c);
		p = parameters(&c->number);
		if (rdma_connect(c->id, &p))
			qv_die("rdma_connect", errno);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		memcpy(&number, ev->param.conn.private_data, sizeof(number));
		if (number >= count || table[number].id)
			qv_die("an unexpected connection", EPROTO);
		c = &table[number];
		c->id = ev->id;
		ev->id->context = c;
		share(c->id);
		prepare(c);
		p = parameters(&c->number);
		if (rdma_accept(c->id, &p))
			qv_die("rdma_accept", errno);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		up++;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		gone++;
		rdma_disconnect(c->id);	/* answers; when we began, no more */
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fprintf(stderr, "%s, status %d, after %u connections\n",
			rdma_event_str(ev->event), ev->status, up);
		qv_die("connection manager", EPROTO);
	}
}

static void take_event(void)
{
	struct rdma_cm_event *ev, copy;
	uint8_t private[64] = { 0 };

	if (rdma_get_cm_event(channel, &ev))
		qv_die("rdma_get_cm_event", errno);
	copy = *ev;
	if (ev->event == RDMA_CM_EVENT_CONNECT_REQUEST) {
		/* rdma_accept() requires the event to be acknowledged */
		memcpy(private, ev->param.conn.private_data, sizeof(uint32_t));
		copy.param.conn.private_data = private;
	}
	rdma_ack_cm_event(ev);
	event(&copy);
}

static void check(struct connection *c)
{
	unsigned i, add = server ? 0 : 1;

	for (i = 0; i < SIZE; i++)
		if (c->buf[SIZE + i] != (uint8_t)(pattern(c->number, i) + add))
			return;
	good++;
}

/* The server answers each message; the client sends them all and waits. */
static void talk(void)
{
	unsigned i, k, sent = 0, received = 0;
	long end = qv_now() + 60000 * qv_pace();
	struct ibv_wc wc;

	for (i = 0; !server && i < count; i++) {
		for (k = 0; k < SIZE; k++)
			table[i].buf[k] = pattern(i, k);
		post_send(&table[i]);
	}
	while (sent < count || received < count) {
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n < 0 || qv_now() > end)
			qv_die("messages do not come", ETIMEDOUT);
		if (!n)
			continue;
		if (wc.status)
			qv_die(ibv_wc_status_str(wc.status), EIO);
		if (!(wc.opcode & IBV_WC_RECV)) {
			sent++;
			continue;
		}
		received++;
		check(&table[wc.wr_id]);
		for (k = 0; server && k < SIZE; k++)
			table[wc.wr_id].buf[k] =
				table[wc.wr_id].buf[SIZE + k] + 1;
		if (server)
			post_send(&table[wc.wr_id]);
	}
}

static void serve(void)
{
	struct rdma_addrinfo hints = {
		.ai_flags = RAI_PASSIVE, .ai_port_space = RDMA_PS_TCP,
	}, *res;
	struct rdma_cm_id *listener;

	if (rdma_getaddrinfo(NULL, PORT, &hints, &res))
		qv_die("rdma_getaddrinfo", errno);
	if (rdma_create_id(channel, &listener, NULL, RDMA_PS_TCP))
		qv_die("rdma_create_id", errno);
	if (rdma_bind_addr(listener, res->ai_src_addr) ||
	    rdma_listen(listener, count))
		qv_die("rdma_listen", errno);
	fprintf(stderr, "listening\n");
	while (up < count)
		take_event();
	talk();
	while (gone < count)
		take_event();
}

static void ask(const char *address)
{
	unsigned begun = 0;

	while (up < count) {
		for (; begun < count && begun < up + DEPTH; begun++)
			resolve(&table[begun], address);
		take_event();
	}
	talk();
}

int main(int argc, char **argv)
{
	long begin, grown;
	unsigned i;

	if (argc < 2 || atoi(argv[1]) < 1) {
		fprintf(stderr, "usage: connections COUNT [ADDRESS]\n");
		return 1;
	}
	count = atoi(argv[1]);
	server = argc < 3;
	grown = -qv_vm("VmRSS");
	table = calloc(count, sizeof(*table));
	memory = aligned_alloc(4096, ((size_t)count * 2 * SIZE + 4095) & ~4095UL);
	channel = rdma_create_event_channel();
	if (!table || !memory || !channel)
		qv_die("memory", errno);
	for (i = 0; i < count; i++) {
		table[i].number = i;
		table[i].buf = memory + (size_t)i * 2 * SIZE;
	}
	begin = qv_now();
	server ? serve() : ask(argv[2]);
	grown += qv_vm("VmRSS");
	printf("{\"up\": %u, \"good\": %u, \"ms\": %ld, \"grown_kib\": %ld}\n",
	       up, good, qv_now() - begin, grown);
	fflush(stdout);
	for (i = 0; i < count; i++) {
		if (!server)
			rdma_disconnect(table[i].id);
	}
	/* a request to disconnect may be lost, and is resent only until then */
	while (!server && gone < count)
		take_event();
	for (i = 0; i < count; i++) {
		rdma_destroy_qp(table[i].id);
		if (rdma_destroy_id(table[i].id))
			qv_die("rdma_destroy_id", errno);
	}
	return 0;
}
