// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * scale QPS MRS: that many QPs and MRs at once.  Then the last MRs carry data
 * between two QPs made on top, and everything is destroyed again.  Prints the
 * numbers reached, the milliseconds each part took and the bytes that arrived.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "qv.h"

#define PAGE	4096
#define PAGES	256		/* the MRs share these pages */

static long ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000L + ts.tv_nsec / 1000000;
}

static struct ibv_qp *make_qp(struct qv_dev *d, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr attr = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};

	return ibv_create_qp(d->pd, &attr);
}

/* Write a page from the last MR into the one before; bytes that are right. */
static int move(struct qv_dev *d, struct ibv_mr *src, struct ibv_mr *dst)
{
	const struct ibv_qp_cap cap = {
		.max_send_wr = 1, .max_recv_wr = 1,
		.max_send_sge = 1, .max_recv_sge = 1,
	};
	struct ibv_sge sge = { (uintptr_t)src->addr, PAGE, src->lkey };
	struct qv_qp a, b;
	struct ibv_wc wc;
	uint8_t *to = dst->addr;
	int n = 0;

	memset(src->addr, 0x5a, PAGE);
	memset(to, 0, PAGE);
	qv_rc_pair(d, &a, &b, &cap);
	if (qv_send(&a, IBV_WR_RDMA_WRITE, 1, &sge, 1, (uintptr_t)to,
		    dst->rkey))
		qv_die("ibv_post_send", errno);
	if (!qv_wait(a.scq, &wc, 10000) || wc.status)
		qv_die("RDMA write", 0);
	while (n < PAGE && to[n] == 0x5a)
		n++;
	qv_qp_destroy(&a);
	qv_qp_destroy(&b);
	return n;
}

int main(int argc, char **argv)
{
	int nqp = argc > 1 ? atoi(argv[1]) : 100;
	int nmr = argc > 2 ? atoi(argv[2]) : 100;
	long t0, t_qp, t_mr, t_end;
	struct ibv_qp **qps;
	struct ibv_mr **mrs;
	struct ibv_cq *cq;
	struct qv_dev dev;
	uint8_t *buf;
	int i, moved;

	if (nqp < 1 || nmr < 2)
		return 1;
	qv_open(&dev);
	qps = calloc(nqp, sizeof(*qps));
	mrs = calloc(nmr, sizeof(*mrs));
	buf = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE,
		   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!qps || !mrs || buf == MAP_FAILED)
		qv_die("memory", errno);
	cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
	if (!cq)
		qv_die("ibv_create_cq", errno);

	t0 = ms();
	for (i = 0; i < nqp; i++) {
		qps[i] = make_qp(&dev, cq);
		if (!qps[i])
			qv_die("ibv_create_qp", errno);
	}
	t_qp = ms() - t0;
	t0 = ms();
	for (i = 0; i < nmr; i++) {
		mrs[i] = ibv_reg_mr(dev.pd, buf + (i % PAGES) * PAGE, PAGE,
				    IBV_ACCESS_LOCAL_WRITE |
				    IBV_ACCESS_REMOTE_WRITE);
		if (!mrs[i])
			qv_die("ibv_reg_mr", errno);
	}
	t_mr = ms() - t0;
	moved = move(&dev, mrs[nmr - 1], mrs[nmr - 2]);

	t0 = ms();
	for (i = 0; i < nmr; i++) {
		if (ibv_dereg_mr(mrs[i]))
			qv_die("ibv_dereg_mr", errno);
	}
	for (i = 0; i < nqp; i++) {
		if (ibv_destroy_qp(qps[i]))
			qv_die("ibv_destroy_qp", errno);
	}
	t_end = ms() - t0;
	printf("{\"qps\": %d, \"mrs\": %d, \"moved\": %d, \"qp_ms\": %ld, "
	       "\"mr_ms\": %ld, \"destroy_ms\": %ld}\n", nqp, nmr, moved,
	       t_qp, t_mr, t_end);
	return 0;
}
