// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * states: the state machine of QPs against the specification's table ("QP state
 * transition properties", chapter 11.2.5.2).  From each state to each state,
 * RC, UC and UD: a legal transition with what it requires; with each required
 * attribute left out; with each other attribute added.  An illegal one with all
 * attributes that any transition to that state takes.  Then what posting does
 * in each state.  Prints one JSON object: how many were tried, and which
 * deviated.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "qv.h"

#define NSTATES	7	/* RESET INIT RTR RTS SQD SQE ERR, as enum ibv_qp_state */

#define CUR	IBV_QP_CUR_STATE
#define ACC	IBV_QP_ACCESS_FLAGS
#define PKEY	IBV_QP_PKEY_INDEX
#define PORT	IBV_QP_PORT
#define QKEY	IBV_QP_QKEY
#define AV	IBV_QP_AV
#define MTU	IBV_QP_PATH_MTU
#define TMO	IBV_QP_TIMEOUT
#define RETRY	IBV_QP_RETRY_CNT
#define RNR	IBV_QP_RNR_RETRY
#define RQ_PSN	IBV_QP_RQ_PSN
#define SQ_PSN	IBV_QP_SQ_PSN
#define RD	IBV_QP_MAX_QP_RD_ATOMIC
#define DEST_RD	IBV_QP_MAX_DEST_RD_ATOMIC
#define RNR_T	IBV_QP_MIN_RNR_TIMER
#define DEST	IBV_QP_DEST_QPN
#define SQD_EV	IBV_QP_EN_SQD_ASYNC_NOTIFY

static const int attributes[] = {
	CUR, ACC, PKEY, PORT, QKEY, AV, MTU, TMO, RETRY, RNR, RQ_PSN, SQ_PSN,
	RD, DEST_RD, RNR_T, DEST, SQD_EV,
};

#define NATTRS	(sizeof(attributes) / sizeof(attributes[0]))

enum { RC, UC, UD, NTYPES };

static const enum ibv_qp_type qp_types[] = {
	IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD,
};
static const char *const type_names[] = { "RC", "UC", "UD" };
static const char *const state_names[] = {
	"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR",
};

/*
 * Any state may go to RESET and to ERR without attributes - only Linux knows no
 * way from RESET to ERR (ib_modify_qp_is_ok()) - and beside that.  Linux also
 * adds the port when an application changes the address vector in SQD, and then
 * refuses the port of a UC QP, where the specification has the vector only.
 */
static const struct {
	enum ibv_qp_state from, to;
	int required[NTYPES], optional[NTYPES];
	bool never[NTYPES];
} table[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT,
	  { PKEY | PORT | ACC, PKEY | PORT | ACC, PKEY | PORT | QKEY },
	  {}, {} },
	{ IBV_QPS_INIT, IBV_QPS_INIT, {},
	  { PKEY | PORT | ACC, PKEY | PORT | ACC, PKEY | PORT | QKEY }, {} },
	{ IBV_QPS_INIT, IBV_QPS_RTR,
	  { AV | MTU | DEST | RQ_PSN | DEST_RD | RNR_T,
	    AV | MTU | DEST | RQ_PSN, 0 },
	  { PKEY | ACC, PKEY | ACC, PKEY | QKEY }, {} },
	{ IBV_QPS_RTR, IBV_QPS_RTS,
	  { TMO | RETRY | RNR | SQ_PSN | RD, SQ_PSN, SQ_PSN },
	  { CUR | ACC | RNR_T, CUR | ACC, CUR | QKEY }, {} },
	{ IBV_QPS_RTS, IBV_QPS_RTS, {},
	  { CUR | ACC | RNR_T, CUR | ACC, CUR | QKEY }, {} },
	{ IBV_QPS_RTS, IBV_QPS_SQD, {}, { SQD_EV, SQD_EV, SQD_EV }, {} },
	{ IBV_QPS_SQD, IBV_QPS_RTS, {},
	  { CUR | ACC | RNR_T, CUR | ACC, CUR | QKEY }, {} },
	{ IBV_QPS_SQD, IBV_QPS_SQD, {},
	  { PORT | AV | TMO | RETRY | RNR | RD | DEST_RD | ACC | PKEY | RNR_T,
	    ACC | PKEY, PKEY | QKEY }, {} },	/* UC and AV: see below */
	{ IBV_QPS_SQE, IBV_QPS_RTS, {}, { 0, CUR | ACC, CUR | QKEY },
	  { [RC] = true } },
};

static struct qv_dev dev;
static struct ibv_cq *cq;
static struct ibv_mr *mr;
static struct ibv_ah *ah;
static int tried, bad;

static int find(int type, int from, int to)
{
	unsigned i;

	for (i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if ((int)table[i].from == from && (int)table[i].to == to &&
		    !table[i].never[type])
			return i;
	}
	return -1;
}

static struct ibv_qp *make(int type)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = qp_types[type],
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 4,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	struct ibv_qp *qp = ibv_create_qp(dev.pd, &init);

	if (!qp)
		qv_die("ibv_create_qp", errno);
	return qp;
}

/* Valid values; the mask selects those that count. */
static int modify(struct ibv_qp *qp, int from, int to, int mask)
{
	struct ibv_qp_attr attr = {
		.qp_state = to,
		.cur_qp_state = from,
		.path_mtu = IBV_MTU_1024,
		.qkey = QV_QKEY,
		.rq_psn = 5,
		.sq_psn = 6,
		.dest_qp_num = qp->qp_num,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
		.max_rd_atomic = 1,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.port_num = 1,
		.timeout = 14,
		.retry_cnt = 3,
		.rnr_retry = 3,
		.ah_attr = {
			.is_global = 1, .port_num = 1,
			.grh = {
				.dgid = dev.gid, .hop_limit = 64,
				.sgid_index = dev.gid_index,
			},
		},
	};

	return ibv_modify_qp(qp, &attr, mask | IBV_QP_STATE);
}

static int state_of(struct ibv_qp *qp)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	if (ibv_query_qp(qp, &attr, IBV_QP_STATE, &init))
		qv_die("ibv_query_qp", errno);
	return attr.qp_state;
}

static int post(struct ibv_qp *qp, int type, uint32_t lkey)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, 16, lkey };
	struct ibv_send_wr *bad_wr, wr = {
		.wr_id = 1, .sg_list = &sge, .num_sge = 1,
		.opcode = type == UD ? IBV_WR_SEND : IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
	};

	if (type == UD) {
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = qp->qp_num;
		wr.wr.ud.remote_qkey = QV_QKEY;
	}
	return ibv_post_send(qp, &wr, &bad_wr);
}

/* A new QP in @state; a bad send leads to SQE. */
static struct ibv_qp *reach(int type, int state)
{
	static const int way[] = { IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS };
	struct ibv_qp *qp = make(type);
	int from = IBV_QPS_RESET, err = 0;
	struct ibv_wc wc;
	unsigned i;

	for (i = 0; i < 3 && from != state; i++) {
		if (state == IBV_QPS_ERR && from == IBV_QPS_INIT)
			break;
		err |= modify(qp, from, way[i],
			      table[find(type, from, way[i])].required[type]);
		from = way[i];
	}
	if (state == IBV_QPS_SQD || state == IBV_QPS_ERR)
		err |= modify(qp, from, state, 0);
	if (state == IBV_QPS_SQE &&
	    (post(qp, type, mr->lkey ^ 0x77) || !qv_wait(cq, &wc, 10000) ||
	     wc.status != IBV_WC_LOC_PROT_ERR))
		qv_die("no way to SQE", EIO);
	if (err || state_of(qp) != state)
		qv_die("a state is not reached", err);
	return qp;
}

static void expect(int type, int from, int to, int mask, int want)
{
	struct ibv_qp *qp = reach(type, from);
	int got = modify(qp, from, to, mask), end;

	tried++;
	end = state_of(qp);
	if (got != want || end != (want ? from : to)) {
		printf("%s\"%s %s to %s, mask %#x: errno %d, not %d; then %s\"",
		       bad ? ",\n  " : "", type_names[type], state_names[from],
		       state_names[to], mask, got, want, state_names[end]);
		bad++;
	}
	if (ibv_destroy_qp(qp))
		qv_die("ibv_destroy_qp", errno);
}

static void legal(int type, int from, int to, int required, int optional)
{
	unsigned i;

	expect(type, from, to, required, 0);
	expect(type, from, to, required | optional, 0);
	for (i = 0; i < NATTRS; i++) {
		int a = attributes[i];

		if (required & a)
			expect(type, from, to, required & ~a, EINVAL);
		else if (!(optional & a))
			expect(type, from, to, required | a, EINVAL);
	}
}

static void transitions(int type)
{
	int from, to, other, i;

	for (from = 0; from < NSTATES; from++) {
		if (from == IBV_QPS_SQE && type == RC)
			continue;	/* an RC QP is never there */
		for (to = 0; to < NSTATES; to++) {
			i = find(type, from, to);
			if (to == IBV_QPS_RESET ||
			    (to == IBV_QPS_ERR && from != IBV_QPS_RESET)) {
				legal(type, from, to, 0, 0);
			} else if (i >= 0) {
				legal(type, from, to, table[i].required[type],
				      table[i].optional[type]);
			} else {
				expect(type, from, to, 0, EINVAL);
				for (other = 0; other < NSTATES; other++) {
					i = find(type, other, to);
					if (i >= 0 && table[i].required[type])
						expect(type, from, to,
						       table[i].required[type],
						       EINVAL);
				}
			}
		}
	}
}

/*
 * Sends are accepted from RTS on, receives from INIT on; in ERR they are
 * flushed.
 */
static void posting(int type)
{
	struct ibv_recv_wr *bad_recv, recv = { .wr_id = 2 };
	int from, want_send, want_recv, got_send, got_recv, n;
	struct ibv_wc wc;

	for (from = 0; from < NSTATES; from++) {
		struct ibv_qp *qp;

		if (from == IBV_QPS_SQE && type == RC)
			continue;
		qp = reach(type, from);
		want_send = from < IBV_QPS_RTS ? EINVAL : 0;
		want_recv = from < IBV_QPS_INIT ? EINVAL : 0;
		got_recv = ibv_post_recv(qp, &recv, &bad_recv);
		got_send = post(qp, type, mr->lkey);
		/*
		 * What comes of it: in ERR both are flushed; in SQE the send
		 * is; in SQD it waits; in RTS it is done (an empty RESET-side
		 * peer: the QP talks to itself).
		 */
		n = 0;
		while (n < 2 && qv_wait(cq, &wc, n || from == IBV_QPS_ERR ||
					from == IBV_QPS_SQE ? 2000 : 300)) {
			bool flushed = from == IBV_QPS_ERR ||
				       (from == IBV_QPS_SQE && wc.wr_id == 1);

			if (from < IBV_QPS_RTS || from == IBV_QPS_SQD ||
			    (flushed && wc.status != IBV_WC_WR_FLUSH_ERR)) {
				printf("%s\"%s: a completion in %s, status %d\"",
				       bad++ ? ",\n  " : "", type_names[type],
				       state_names[from], wc.status);
			}
			n++;
			if (from == IBV_QPS_SQE || from == IBV_QPS_RTS)
				break;
		}
		tried++;
		if (got_send != want_send || got_recv != want_recv ||
		    (from == IBV_QPS_ERR && n != 2) ||
		    (from == IBV_QPS_SQE && n != 1)) {
			printf("%s\"%s: posting in %s: send %d, receive %d, %d completions\"",
			       bad++ ? ",\n  " : "", type_names[type],
			       state_names[from], got_send, got_recv, n);
		}
		if (ibv_destroy_qp(qp))
			qv_die("ibv_destroy_qp", errno);
		while (ibv_poll_cq(cq, 1, &wc) > 0)
			;
	}
}

int main(void)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
	};
	int type;

	qv_open(&dev);
	mr = qv_mr(&dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	cq = ibv_create_cq(dev.ctx, 64, NULL, NULL, 0);
	if (!cq)
		qv_die("ibv_create_cq", errno);
	attr.grh.dgid = dev.gid;
	attr.grh.sgid_index = dev.gid_index;
	attr.grh.hop_limit = 64;
	ah = ibv_create_ah(dev.pd, &attr);
	if (!ah)
		qv_die("ibv_create_ah", errno);
	printf("{\"wrong\": [");
	for (type = 0; type < NTYPES; type++) {
		transitions(type);
		posting(type);
	}
	printf("], \"tried\": %d}\n", tried);
	return 0;
}
