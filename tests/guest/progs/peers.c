// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * peers GIDX GIDX [SERVER]: two RC QPs, by two GIDs, each connected to one of the
 * same program in the other guest, get the same WR.  The client prints both
 * QPNs, its peers' QPNs and GIDs, and the bytes of both WQEs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "qv.h"

#define PORT	18531

struct end {
	union ibv_gid gid;
	uint32_t qpn;
};

static struct qv_dev dev;
static struct qv_qp q[2];
static struct end peer[2];

static void make(int i, const char *gid_index)
{
	const struct ibv_qp_cap cap = {
		.max_send_wr = 64, .max_recv_wr = 64,
		.max_send_sge = 1, .max_recv_sge = 1,
	};

	dev.gid_index = atoi(gid_index);
	qv_qp_create(&dev, &q[i], IBV_QPT_RC, &cap);
	qv_qp_init(&q[i], IBV_ACCESS_REMOTE_WRITE);
}

static void join(int fd, int i, const char *gid_index)
{
	struct qv_path path;
	struct end end = { .qpn = q[i].qp->qp_num };

	dev.gid_index = atoi(gid_index);
	if (ibv_query_gid(dev.ctx, 1, dev.gid_index, &end.gid))
		qv_die("ibv_query_gid", errno);
	qv_tell(fd, &end, sizeof(end));
	qv_hear(fd, &peer[i], sizeof(peer[i]));
	path = qv_path_to(&dev, peer[i].qpn);
	path.gid = peer[i].gid;
	qv_qp_connect_path(&dev, &q[i], &path);
}

static void wait_for(struct ibv_cq *cq)
{
	struct ibv_wc wc;

	if (!qv_wait(cq, &wc, 60000) || wc.status)
		qv_die("completion", EIO);
}

static void print_end(int i)
{
	const uint8_t *slot = qv_sq_slot(&q[i], q[i].posted - 1);
	char text[INET6_ADDRSTRLEN];
	int j;

	printf("%s{\"qpn\": %u, \"peer\": %u, \"gid\": \"%s\", \"wqe\": \"",
	       i ? ", " : "[", q[i].qp->qp_num, peer[i].qpn,
	       inet_ntop(AF_INET6, &peer[i].gid, text, sizeof(text)));
	for (j = 0; j < 64; j++)
		printf("%02x", slot[j]);
	printf("\"}%s", i ? "]\n" : "");
}

int main(int argc, char **argv)
{
	struct ibv_sge s;
	struct ibv_mr *mr;
	int i, fd;

	if (argc < 3)
		return 1;
	qv_open(&dev);
	mr = qv_mr(&dev, 4096, IBV_ACCESS_LOCAL_WRITE);
	s = (struct ibv_sge){ (uintptr_t)mr->addr, 256, mr->lkey };
	for (i = 0; i < 2; i++)
		make(i, argv[1 + i]);
	fd = qv_link(argv[3], PORT);
	for (i = 0; i < 2; i++) {
		join(fd, i, argv[1 + i]);
		if (qv_recv(&q[i], 7, &s, 1))
			qv_die("ibv_post_recv", errno);
	}
	qv_meet(fd);
	if (!argv[3]) {
		for (i = 0; i < 2; i++)
			wait_for(q[i].rcq);
		printf("{}\n");
	} else {
		for (i = 0; i < 2; i++)
			qv_find_sq(&q[i]);
		for (i = 0; i < 2; i++)
			if (qv_send(&q[i], IBV_WR_SEND, 7, &s, 1, 0, 0))
				qv_die("ibv_post_send", errno);
		for (i = 0; i < 2; i++)
			wait_for(q[i].scq);
		for (i = 0; i < 2; i++)
			print_end(i);
	}
	qv_meet(fd);
	return 0;
}
