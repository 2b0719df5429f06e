// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * datapath ROUNDS [BATCH]: post and poll between two marks and nothing else.
 *
 * The marks are write() calls of a text to an invalid descriptor, which strace
 * shows; if the driver's debugfs marker file is there, each mark also goes to
 * the device, so that a trace has the user's lane.  Prints the QPN, the peer and
 * the bytes of the last WQE.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "qv.h"

static int marker_fd = -1;

static void open_marker(void)
{
	glob_t g;

	if (!glob("/sys/kernel/debug/qhca/*/marker", 0, NULL, &g))
		marker_fd = open(g.gl_pathv[0], O_WRONLY);
	globfree(&g);
}

static void mark_device(void)
{
	if (marker_fd >= 0 && write(marker_fd, "1\n", 2) != 2)
		qv_die("marker", errno);
}

/* Fails on purpose: it is only for strace. */
static void mark_strace(const char *text)
{
	if (write(-1, text, strlen(text)) >= 0)
		qv_die("write to descriptor -1", 0);
}

int main(int argc, char **argv)
{
	const struct ibv_qp_cap cap = {
		.max_send_wr = 64, .max_recv_wr = 64,
		.max_send_sge = 1, .max_recv_sge = 1,
	};
	int rounds = argc > 1 ? atoi(argv[1]) : 100;
	int batch = argc > 2 ? atoi(argv[2]) : 1;
	struct ibv_send_wr wr[16] = { 0 }, *bad;
	struct ibv_sge s, r;
	struct ibv_mr *src, *dst;
	struct qv_dev dev;
	struct qv_qp a, b;
	struct ibv_wc wc;
	int i, j, moved = 0, err = 0;
	const uint8_t *slot;

	if (batch < 1 || batch > 16 || rounds < 1)
		return 1;
	qv_open(&dev);
	open_marker();
	src = qv_mr(&dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	dst = qv_mr(&dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	qv_rc_pair(&dev, &a, &b, &cap);
	s = (struct ibv_sge){ (uintptr_t)src->addr, 256, src->lkey };
	r = (struct ibv_sge){ (uintptr_t)dst->addr, 256, dst->lkey };
	for (j = 0; j < batch; j++) {
		wr[j].wr_id = j;
		wr[j].sg_list = &s;
		wr[j].num_sge = 1;
		wr[j].opcode = IBV_WR_SEND;
		wr[j].send_flags = IBV_SEND_SIGNALED;
		wr[j].next = j + 1 < batch ? &wr[j + 1] : NULL;
	}
	mark_device();
	mark_strace("BEGIN-DATAPATH");
	for (i = 0; i < rounds && !err; i++) {
		for (j = 0; j < batch; j++)
			err |= qv_recv(&b, j, &r, 1);
		err |= ibv_post_send(a.qp, wr, &bad);
		for (j = 0; j < 2 * batch && !err; ) {
			int n = ibv_poll_cq(j < batch ? a.scq : b.rcq, 1, &wc);

			if (n < 0 || (n && wc.status))
				err = 1;
			j += n;
		}
		moved += batch;
	}
	mark_strace("END-DATAPATH");
	mark_device();
	if (err)
		qv_die("post or completion", EIO);
	a.posted = moved;
	qv_find_sq(&a);
	slot = qv_sq_slot(&a, moved - 1);
	printf("{\"qpn\": %u, \"peer\": %u, \"moved\": %d, \"wqe\": \"",
	       a.qp->qp_num, b.qp->qp_num, moved);
	for (i = 0; i < 64; i++)
		printf("%02x", slot[i]);
	printf("\"}\n");
	return 0;
}
