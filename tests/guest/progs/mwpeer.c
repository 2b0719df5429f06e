// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * mwpeer ADDRESS: a memory window between two adapters.
 * mwpeer: waits for one; both print one JSON object with "ok" or what was wrong.
 *
 * The waiting side binds a type 2 window. The other writes and reads through
 * it, takes it back by SEND with invalidate, and finds it closed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qv.h"

#define PORT	18599
#define LEN	65536
#define FROM	5000
#define SPAN	20000

struct hello {
	union ibv_gid gid;
	uint32_t qpn, rkey;
	uint64_t addr;
};

static struct qv_dev dev;
static struct qv_qp q;
static const char *why = "ok";

static void expect(bool right, const char *what)
{
	if (!right && !strcmp(why, "ok"))
		why = what;
}

static int status(struct ibv_cq *cq, struct ibv_wc *wc)
{
	return qv_wait(cq, wc, 20000) ? (int)wc->status : -1;
}

static void serve(int fd, struct ibv_mr *mr)
{
	struct ibv_mw *mw = ibv_alloc_mw(dev.pd, IBV_MW_TYPE_2);
	struct ibv_sge s = { (uintptr_t)mr->addr, 64, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_BIND_MW, .send_flags = IBV_SEND_SIGNALED,
	};
	struct hello h = { .qpn = 0 };
	struct ibv_wc wc;
	int i;

	if (!mw)
		qv_die("ibv_alloc_mw", errno);
	wr.bind_mw.mw = mw;
	wr.bind_mw.rkey = ibv_inc_rkey(mw->rkey);
	wr.bind_mw.bind_info.mr = mr;
	wr.bind_mw.bind_info.addr = (uintptr_t)mr->addr + FROM;
	wr.bind_mw.bind_info.length = SPAN;
	wr.bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE |
					       IBV_ACCESS_REMOTE_READ;
	if (ibv_post_send(q.qp, &wr, &bad))
		qv_die("posting a bind", errno);
	expect(status(q.scq, &wc) == IBV_WC_SUCCESS &&
	       wc.opcode == IBV_WC_BIND_MW, "bind");
	if (qv_recv(&q, 7, &s, 1))
		qv_die("posting a receive", errno);
	h.rkey = wr.bind_mw.rkey;
	h.addr = (uintptr_t)mr->addr + FROM;
	qv_tell(fd, &h, sizeof(h));
	expect(status(q.rcq, &wc) == IBV_WC_SUCCESS && wc.wr_id == 7,
	       "receive with invalidate");
	expect(wc.invalidated_rkey == h.rkey, "the key in the completion");
	/* Soft-RoCE passes the kernel's flag to applications, which differs */
	expect((wc.wc_flags & IBV_WC_WITH_INV) ||
	       !strncmp(ibv_get_device_name(dev.ctx->device), "rxe", 3),
	       "the flag in the completion");
	for (i = 0; i < SPAN; i++)
		expect(((uint8_t *)mr->addr)[FROM + i] == (uint8_t)(i * 7),
		       "data");
	qv_hear(fd, &h, 1);
	qv_qp_destroy(&q);
	expect(!ibv_dealloc_mw(mw), "dealloc");
}

static void use(int fd, struct ibv_mr *mr)
{
	struct ibv_sge s = { (uintptr_t)mr->addr, SPAN, mr->lkey };
	struct ibv_send_wr *bad, wr = {
		.opcode = IBV_WR_SEND_WITH_INV,
		.send_flags = IBV_SEND_SIGNALED, .sg_list = &s, .num_sge = 1,
	};
	uint8_t *p = mr->addr;
	struct ibv_wc wc;
	struct hello h;
	int i;

	qv_hear(fd, &h, sizeof(h));
	for (i = 0; i < SPAN; i++)
		p[i] = i * 7;
	if (qv_send(&q, IBV_WR_RDMA_WRITE, 1, &s, 1, h.addr, h.rkey))
		qv_die("posting a write", errno);
	expect(status(q.scq, &wc) == IBV_WC_SUCCESS, "write");
	s.addr += SPAN;
	if (qv_send(&q, IBV_WR_RDMA_READ, 1, &s, 1, h.addr, h.rkey))
		qv_die("posting a read", errno);
	expect(status(q.scq, &wc) == IBV_WC_SUCCESS, "read");
	expect(!memcmp(p, p + SPAN, SPAN), "data");
	s.length = 10;
	wr.invalidate_rkey = h.rkey;
	if (ibv_post_send(q.qp, &wr, &bad))
		qv_die("posting a send", errno);
	expect(status(q.scq, &wc) == IBV_WC_SUCCESS, "send with invalidate");
	if (qv_send(&q, IBV_WR_RDMA_WRITE, 1, &s, 1, h.addr, h.rkey))
		qv_die("posting a write", errno);
	expect(status(q.scq, &wc) == IBV_WC_REM_ACCESS_ERR, "write afterwards");
	qv_tell(fd, "x", 1);
	qv_qp_destroy(&q);
}

int main(int argc, char **argv)
{
	const struct ibv_qp_cap cap = { .max_send_wr = 8, .max_recv_wr = 8,
					.max_send_sge = 1, .max_recv_sge = 1 };
	const int all = IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	struct hello mine = { .addr = 0 }, yours;
	struct qv_path path;
	struct ibv_mr *mr;
	int fd;

	qv_open(&dev);
	mr = qv_mr(&dev, LEN, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
	qv_qp_create(&dev, &q, IBV_QPT_RC, &cap);
	qv_qp_init(&q, all);
	fd = qv_link(argc > 1 ? argv[1] : NULL, PORT);
	mine.gid = dev.gid;
	mine.qpn = q.qp->qp_num;
	qv_tell(fd, &mine, sizeof(mine));
	qv_hear(fd, &yours, sizeof(yours));
	path = qv_path_to(&dev, yours.qpn);
	path.gid = yours.gid;
	qv_qp_connect_path(&dev, &q, &path);
	/* both must be ready to receive before anything is sent */
	qv_tell(fd, "x", 1);
	qv_hear(fd, &yours, 1);
	if (argc > 1)
		use(fd, mr);
	else
		serve(fd, mr);
	expect(!ibv_dereg_mr(mr), "dereg");
	printf("{\"window\": \"%s\"}\n", why);
	return 0;
}
