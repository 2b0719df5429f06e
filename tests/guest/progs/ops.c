// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ops [ADDRESS]: every operation of user verbs between two hosts, each with its
 * own QPs, in both roles.  Without an address: wait for the other side.
 *
 * The two sides talk over TCP: they exchange what a case needs and step
 * through it together.  The active side posts the request, the passive side is
 * the responder; then they change roles.  Prints one JSON object: for each
 * case and role what this side saw, "ok" or what was wrong.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qv.h"

#define TCP_PORT	18600
#define LEN		65536
#define GRH		40
#define IMM		0x12345678
#define WORD		0x1122334455667788ULL	/* initial value for atomics */
#define ADD		0x0101010101010101ULL
#define LATE_MS		300

enum {
	INLINE = 1,		/* data in the WQE */
	LATE = 2,		/* the receive comes later than the request */
	SRQ = 4,
	WINDOW = 8,		/* a memory window's key */
	BAD_KEY = 16,
	MISMATCH = 32,		/* compare with a value that does not match */
	THREE_SGES = 64,
};

struct op {
	const char *name;
	enum ibv_qp_type type;
	enum ibv_wr_opcode opcode;
	uint32_t len;
	int recv_len;		/* -1: none is posted */
	int flags;
	enum ibv_wc_status local, remote;	/* as the two sides see it */
};

static const int rights = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

#define RC	IBV_QPT_RC
#define UC	IBV_QPT_UC
#define UD	IBV_QPT_UD

static const struct op ops[] = {
	{ "send empty", RC, IBV_WR_SEND, 0, 64, 0, 0, 0 },
	{ "send", RC, IBV_WR_SEND, 777, 1000, 0, 0, 0 },
	{ "send many packets", RC, IBV_WR_SEND, 60001, LEN, 0, 0, 0 },
	{ "send three segments", RC, IBV_WR_SEND, 5001, 5001, THREE_SGES, 0, 0 },
	{ "send inline", RC, IBV_WR_SEND, 33, 33, INLINE, 0, 0 },
	{ "send imm", RC, IBV_WR_SEND_WITH_IMM, 4096, 4096, 0, 0, 0 },
	{ "send inv", RC, IBV_WR_SEND_WITH_INV, 100, 100, WINDOW, 0, 0 },
	{ "send srq", RC, IBV_WR_SEND, 3000, 3000, SRQ, 0, 0 },
	{ "send rnr", RC, IBV_WR_SEND, 3000, 3000, LATE, 0, 0 },
	{ "write", RC, IBV_WR_RDMA_WRITE, 60001, -1, 0, 0, 0 },
	{ "write inline", RC, IBV_WR_RDMA_WRITE, 33, -1, INLINE, 0, 0 },
	{ "write window", RC, IBV_WR_RDMA_WRITE, 2000, -1, WINDOW, 0, 0 },
	{ "write imm", RC, IBV_WR_RDMA_WRITE_WITH_IMM, 5000, 0, 0, 0, 0 },
	{ "write imm empty", RC, IBV_WR_RDMA_WRITE_WITH_IMM, 0, 0, 0, 0, 0 },
	{ "write imm rnr", RC, IBV_WR_RDMA_WRITE_WITH_IMM, 5000, 0, LATE, 0, 0 },
	{ "read", RC, IBV_WR_RDMA_READ, 60001, -1, 0, 0, 0 },
	{ "read three segments", RC, IBV_WR_RDMA_READ, 5001, -1, THREE_SGES, 0, 0 },
	{ "read window", RC, IBV_WR_RDMA_READ, 2000, -1, WINDOW, 0, 0 },
	{ "compare and swap", RC, IBV_WR_ATOMIC_CMP_AND_SWP, 8, -1, 0, 0, 0 },
	{ "compare, no swap", RC, IBV_WR_ATOMIC_CMP_AND_SWP, 8, -1, MISMATCH,
	  0, 0 },
	{ "fetch and add", RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, -1, 0, 0, 0 },
	{ "uc send", UC, IBV_WR_SEND, 5000, 5000, 0, 0, 0 },
	{ "uc send imm", UC, IBV_WR_SEND_WITH_IMM, 5000, 5000, 0, 0, 0 },
	{ "uc write", UC, IBV_WR_RDMA_WRITE, 5000, -1, 0, 0, 0 },
	{ "uc write imm", UC, IBV_WR_RDMA_WRITE_WITH_IMM, 5000, 0, 0, 0, 0 },
	{ "ud send", UD, IBV_WR_SEND, 900, 1000, 0, 0, 0 },
	{ "ud send imm", UD, IBV_WR_SEND_WITH_IMM, 900, 900, 0, 0, 0 },
	{ "write bad key", RC, IBV_WR_RDMA_WRITE, 100, -1, BAD_KEY,
	  IBV_WC_REM_ACCESS_ERR, 0 },
	{ "read bad key", RC, IBV_WR_RDMA_READ, 100, -1, BAD_KEY,
	  IBV_WC_REM_ACCESS_ERR, 0 },
	{ "atomic bad key", RC, IBV_WR_ATOMIC_FETCH_AND_ADD, 8, -1, BAD_KEY,
	  IBV_WC_REM_ACCESS_ERR, 0 },
	{ "send too long", RC, IBV_WR_SEND, 100, 99, 0,
	  IBV_WC_REM_INV_REQ_ERR, IBV_WC_LOC_LEN_ERR },
};

#define NOPS	(sizeof(ops) / sizeof(ops[0]))

/* What the sides exchange about a case. */
struct card {
	union ibv_gid gid;
	uint64_t addr;
	uint32_t qpn, rkey;
	uint64_t soft;
};

static struct qv_dev dev;
static struct ibv_mr *mr;
static int tcp;
/*
 * Is this side Soft-RoCE?  It has its own ways: a message too long for the
 * receive is a local QP operation error and a remote operation error there, and
 * it tells an application of an invalidated key by the kernel's flag, which
 * means something else to applications.
 */
static bool soft;

static uint8_t pattern(const struct op *op, uint32_t i)
{
	return i * 13 + i / 251 + (op - ops) * 29 + 1;
}

static void fill(const struct op *op, uint8_t *p)
{
	uint32_t i;

	for (i = 0; i < op->len; i++)
		p[i] = pattern(op, i);
}

static void compare(const struct op *op, const uint8_t *p, const char *what)
{
	uint32_t i;

	for (i = 0; i < op->len; i++) {
		if (p[i] != pattern(op, i)) {
			qv_wrong("%s: byte %u is wrong", what, i);
			return;
		}
	}
	if (p[i])
		qv_wrong("%s: written beyond its end", what);
}

static bool is_atomic(const struct op *op)
{
	return op->opcode == IBV_WR_ATOMIC_CMP_AND_SWP ||
	       op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

static bool has_imm(const struct op *op)
{
	return op->opcode == IBV_WR_SEND_WITH_IMM ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static bool is_write(const struct op *op)
{
	return op->opcode == IBV_WR_RDMA_WRITE ||
	       op->opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

static struct card exchange(const struct card *mine)
{
	struct card other;

	qv_tell(tcp, mine, sizeof(*mine));
	qv_hear(tcp, &other, sizeof(other));
	return other;
}

/* ------------------------------------------------------------ active side */

static struct ibv_ah *make_ah(const struct card *peer)
{
	struct ibv_ah_attr attr = {
		.is_global = 1, .port_num = 1,
		.grh = {
			.dgid = peer->gid, .sgid_index = dev.gid_index,
			.hop_limit = 64,
		},
	};
	struct ibv_ah *ah = ibv_create_ah(dev.pd, &attr);

	if (!ah)
		qv_die("ibv_create_ah", errno);
	return ah;
}

static void request(const struct op *op, struct qv_qp *q,
		    const struct card *peer)
{
	uint8_t *p = mr->addr;
	struct ibv_sge sge[3] = { { (uintptr_t)p, op->len, mr->lkey } };
	struct ibv_send_wr *bad, wr = {
		.wr_id = 0xabc, .sg_list = sge, .num_sge = op->len ? 1 : 0,
		.opcode = op->opcode, .send_flags = IBV_SEND_SIGNALED,
	};
	uint32_t rkey = op->flags & BAD_KEY ? peer->rkey ^ 0x77 : peer->rkey;
	enum ibv_wc_status want;
	struct ibv_ah *ah = NULL;
	struct ibv_wc wc;
	long begin = qv_now();
	uint64_t word;
	int ret;

	if (op->flags & THREE_SGES) {
		sge[0].length = 1;
		sge[1] = (struct ibv_sge){ (uintptr_t)p + 1, 2000, mr->lkey };
		sge[2] = (struct ibv_sge){ (uintptr_t)p + 2001, op->len - 2001,
					   mr->lkey };
		wr.num_sge = 3;
	}
	if (op->flags & INLINE)
		wr.send_flags |= IBV_SEND_INLINE;
	if (op->opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = rkey;
	else if (has_imm(op))
		wr.imm_data = htonl(IMM);
	if (op->type == IBV_QPT_UD) {
		ah = make_ah(peer);
		wr.wr.ud.ah = ah;
		wr.wr.ud.remote_qpn = peer->qpn;
		wr.wr.ud.remote_qkey = QV_QKEY;
	} else if (is_atomic(op)) {
		wr.wr.atomic.remote_addr = peer->addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ?
			ADD : WORD ^ !!(op->flags & MISMATCH);
		wr.wr.atomic.swap = ~WORD;
	} else {
		wr.wr.rdma.remote_addr = peer->addr;
		wr.wr.rdma.rkey = rkey;
	}
	if (op->opcode != IBV_WR_RDMA_READ && !is_atomic(op))
		fill(op, p);

	ret = ibv_post_send(q->qp, &wr, &bad);
	if (ret) {
		qv_wrong("ibv_post_send: %s", strerror(ret));
		return;
	}
	if (op->flags & LATE)
		qv_meet(tcp);
	if (!qv_wait(q->scq, &wc, 10000)) {
		qv_wrong("no completion");
		return;
	}
	want = op->remote && peer->soft ? IBV_WC_REM_OP_ERR : op->local;
	if (wc.status != want || wc.wr_id != 0xabc)
		qv_wrong("status %s", ibv_wc_status_str(wc.status));
	if ((op->flags & LATE) && qv_now() - begin < LATE_MS)
		qv_wrong("complete before there was a receive");
	if (!op->local && op->opcode == IBV_WR_RDMA_READ)
		compare(op, p, "what was read");
	memcpy(&word, p, 8);
	if (!op->local && is_atomic(op) && word != WORD)
		qv_wrong("the atomic returned %#lx", (unsigned long)word);
	if (ah)
		ibv_destroy_ah(ah);
}

static void active(const struct op *op)
{
	const struct ibv_qp_cap cap = {
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 3,
		.max_recv_sge = 3, .max_inline_data = 64,
	};
	struct card mine = { .gid = dev.gid, .soft = soft }, peer;
	struct qv_path path;
	struct qv_qp q;

	qv_qp_create(&dev, &q, op->type, &cap);
	mine.qpn = q.qp->qp_num;
	peer = exchange(&mine);
	path = qv_path_to(&dev, peer.qpn);
	path.gid = peer.gid;
	qv_qp_init(&q, rights);
	qv_qp_connect_path(&dev, &q, &path);
	/* once more, when the other side is ready: now with its key */
	peer = exchange(&mine);
	if (!peer.rkey)
		qv_wrong("the other side has no key");
	else
		request(op, &q, &peer);
	qv_meet(tcp);
	qv_meet(tcp);
	qv_qp_destroy(&q);
}

/* ----------------------------------------------------------- passive side */

/* A window of type 2 on all of our memory; its key, or 0. */
static uint32_t bind_window(struct qv_qp *q, struct ibv_mw *mw,
			    struct ibv_mr *below)
{
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
		.bind_mw = {
			.mw = mw, .rkey = ibv_inc_rkey(mw->rkey),
			.bind_info = {
				.mr = below, .addr = (uintptr_t)mr->addr,
				.length = LEN,
				.mw_access_flags = IBV_ACCESS_REMOTE_READ |
						   IBV_ACCESS_REMOTE_WRITE,
			},
		},
	};
	struct ibv_wc wc;
	int ret = ibv_post_send(q->qp, &wr, &bad);

	if (ret)
		qv_wrong("posting a bind: %s", strerror(ret));
	else if (!qv_wait(q->scq, &wc, 5000) || wc.status)
		qv_wrong("the bind has failed");
	else
		return wr.bind_mw.rkey;
	return 0;
}

static void post_receive(const struct op *op, struct qv_qp *q,
			 struct ibv_srq *srq)
{
	uint32_t extra = op->type == IBV_QPT_UD ? GRH : 0;
	struct ibv_sge sge = { (uintptr_t)mr->addr, op->recv_len + extra,
			       mr->lkey };
	struct ibv_recv_wr *bad, wr = {
		.wr_id = 0xdef, .sg_list = &sge, .num_sge = sge.length ? 1 : 0,
	};
	int ret = srq ? ibv_post_srq_recv(srq, &wr, &bad) :
		  ibv_post_recv(q->qp, &wr, &bad);

	if (ret)
		qv_wrong("posting a receive: %s", strerror(ret));
}

static void check_receive(const struct op *op, struct qv_qp *q, uint32_t key)
{
	uint32_t extra = op->type == IBV_QPT_UD ? GRH : 0;
	enum ibv_wc_status want;
	struct ibv_wc wc;

	if (!qv_wait(q->rcq, &wc, 10000)) {
		qv_wrong("nothing was received");
		return;
	}
	want = op->remote && soft ? IBV_WC_LOC_QP_OP_ERR : op->remote;
	if (wc.status != want || wc.wr_id != 0xdef)
		qv_wrong("status of the receive: %s", ibv_wc_status_str(wc.status));
	if (wc.status)
		return;
	if (wc.opcode != (is_write(op) ? IBV_WC_RECV_RDMA_WITH_IMM : IBV_WC_RECV))
		qv_wrong("opcode of the receive: %d", wc.opcode);
	if (wc.byte_len != op->len + extra)
		qv_wrong("%u bytes received", wc.byte_len);
	if (has_imm(op) != !!(wc.wc_flags & IBV_WC_WITH_IMM) ||
	    (has_imm(op) && wc.imm_data != htonl(IMM)))
		qv_wrong("immediate %#x, flags %#x", ntohl(wc.imm_data),
		      wc.wc_flags);
	if (op->opcode == IBV_WR_SEND_WITH_INV &&
	    (!(wc.wc_flags & (soft ? 1 << 2 : IBV_WC_WITH_INV)) ||
	     wc.invalidated_rkey != key))
		qv_wrong("key %#x invalidated, flags %#x", wc.invalidated_rkey,
		      wc.wc_flags);
	if (!is_write(op))
		compare(op, (uint8_t *)mr->addr + extra, "what was received");
}

/*
 * Wait until the last byte of a write is here: on UC the other side is done when
 * its packets have left, and Soft-RoCE takes them in some time later.
 */
static void wait_written(const struct op *op)
{
	const volatile uint8_t *last = (uint8_t *)mr->addr + op->len - 1;
	long begin = qv_now();

	while (op->len && *last != pattern(op, op->len - 1) &&
	       qv_now() - begin < 10000)
		usleep(1000);
}

static void check_memory(const struct op *op)
{
	uint64_t word;

	memcpy(&word, mr->addr, 8);
	if (op->local == IBV_WC_REM_ACCESS_ERR) {
		if (is_atomic(op) ? word != WORD : op->opcode == IBV_WR_RDMA_WRITE &&
		    word)
			qv_wrong("memory has changed");
	} else if (is_write(op)) {
		if (op->type == IBV_QPT_UC)
			wait_written(op);
		compare(op, mr->addr, "what was written");
	} else if (is_atomic(op)) {
		uint64_t want = op->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD ?
			WORD + ADD : op->flags & MISMATCH ? WORD : ~WORD;

		if (word != want)
			qv_wrong("the atomic left %#lx", (unsigned long)word);
	}
}

static void passive(const struct op *op)
{
	const struct ibv_qp_cap cap = {
		.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 3,
		.max_recv_sge = 3,
	};
	struct ibv_srq_init_attr srq_attr = { .attr = { .max_wr = 4, .max_sge = 1 } };
	struct card mine = { .gid = dev.gid, .soft = soft }, peer;
	const uint64_t word = WORD;
	struct ibv_srq *srq = NULL;
	struct ibv_mr *below = NULL;
	struct ibv_mw *mw = NULL;
	struct qv_path path;
	struct qv_qp q;

	if (op->flags & SRQ) {
		srq = ibv_create_srq(dev.pd, &srq_attr);
		if (!srq)
			qv_die("ibv_create_srq", errno);
	}
	qv_qp_create_srq(&dev, &q, op->type, &cap, srq);
	mine.qpn = q.qp->qp_num;
	peer = exchange(&mine);
	path = qv_path_to(&dev, peer.qpn);
	path.gid = peer.gid;
	qv_qp_init(&q, rights);
	qv_qp_connect_path(&dev, &q, &path);

	memset(mr->addr, 0, LEN);
	if (op->opcode == IBV_WR_RDMA_READ)
		fill(op, mr->addr);
	if (is_atomic(op))
		memcpy(mr->addr, &word, 8);
	if (op->recv_len >= 0 && !(op->flags & LATE))
		post_receive(op, &q, srq);
	mine.addr = (uintptr_t)mr->addr;
	mine.rkey = mr->rkey;
	if (op->flags & WINDOW) {
		below = ibv_reg_mr(dev.pd, mr->addr, LEN,
				   rights | IBV_ACCESS_MW_BIND);
		mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
		if (!below || !mw)
			qv_wrong("making a window: %s", strerror(errno));
		mine.rkey = below && mw ? bind_window(&q, mw, below) : 0;
	}
	exchange(&mine);
	if (op->flags & LATE) {
		qv_meet(tcp);
		usleep(LATE_MS * 1000);
		post_receive(op, &q, srq);
	}
	if (op->recv_len >= 0 && mine.rkey)
		check_receive(op, &q, mine.rkey);
	qv_meet(tcp);
	if (mine.rkey)
		check_memory(op);
	qv_meet(tcp);
	if (mw && ibv_dealloc_mw(mw))
		qv_wrong("ibv_dealloc_mw: %s", strerror(errno));
	if (below && ibv_dereg_mr(below))
		qv_wrong("ibv_dereg_mr: %s", strerror(errno));
	qv_qp_destroy(&q);
	if (srq && ibv_destroy_srq(srq))
		qv_wrong("ibv_destroy_srq: %s", strerror(errno));
}

/* ------------------------------------------------------------------ both */

int main(int argc, char **argv)
{
	bool client = argc > 1;
	const char *comma = "{";
	unsigned i, turn;

	qv_open(&dev);
	soft = !dev.db;
	mr = qv_mr(&dev, LEN, rights);
	tcp = qv_link(client ? argv[1] : NULL, TCP_PORT);
	for (turn = 0; turn < 2; turn++) {
		for (i = 0; i < NOPS; i++) {
			bool act = client == !turn;

			qv_why[0] = '\0';
			memset(mr->addr, 0, LEN);
			act ? active(&ops[i]) : passive(&ops[i]);
			printf("%s\"%s, %s\": \"%s\"", comma, ops[i].name,
			       act ? "active" : "passive", qv_why[0] ? qv_why : "ok");
			comma = ",\n ";
		}
	}
	printf("}\n");
	return 0;
}
