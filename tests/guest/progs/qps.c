// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * qps QPS THREADS: the life of that many RC QPs, divided between threads of one
 * context. All are created; then each goes to INIT, RTR and RTS; then all are
 * destroyed. Prints the microseconds per QP that each of these steps took, and
 * how many QPs the device reported in RTS in between.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "qv.h"

#define THREADS_MAX	64

enum { CREATE, CONNECT, DESTROY, STEPS };

struct worker {
	pthread_t thread;
	struct ibv_cq *cq;
	struct qv_qp *qps;
	int n, rts;
};

static struct qv_dev dev;
static pthread_barrier_t barrier;

static double us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1e6 + ts.tv_nsec / 1e3;
}

/* Of a thread all QPs have the same CQ, so that only QPs are measured. */
static void create(struct worker *w, struct qv_qp *q)
{
	q->init = (struct ibv_qp_init_attr) {
		.send_cq = w->cq, .recv_cq = w->cq, .qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 1, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	};
	q->qp = ibv_create_qp(dev.pd, &q->init);
	if (!q->qp)
		qv_die("ibv_create_qp", errno);
}

/* Each is connected to itself. */
static void connect_one(struct qv_qp *q)
{
	qv_qp_init(q, IBV_ACCESS_REMOTE_WRITE);
	qv_qp_connect(&dev, q, q->qp->qp_num);
}

static void destroy(struct qv_qp *q)
{
	int ret = ibv_destroy_qp(q->qp);

	if (ret)
		qv_die("ibv_destroy_qp", ret);
}

/* Not measured: between two steps. */
static void count_rts(struct worker *w)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int i;

	for (i = 0; i < w->n; i++) {
		int ret = ibv_query_qp(w->qps[i].qp, &attr, IBV_QP_STATE,
				       &init);

		if (ret)
			qv_die("ibv_query_qp", ret);
		w->rts += attr.qp_state == IBV_QPS_RTS;
	}
}

static void *work(void *arg)
{
	struct worker *w = arg;
	int step, i;

	for (step = 0; step < STEPS; step++) {
		pthread_barrier_wait(&barrier);
		for (i = 0; i < w->n; i++) {
			if (step == CREATE)
				create(w, &w->qps[i]);
			else if (step == CONNECT)
				connect_one(&w->qps[i]);
			else
				destroy(&w->qps[i]);
		}
		pthread_barrier_wait(&barrier);
		if (step == CONNECT)
			count_rts(w);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	int qps = argc > 1 ? atoi(argv[1]) : 100;
	int threads = argc > 2 ? atoi(argv[2]) : 1;
	struct worker w[THREADS_MAX] = { 0 };
	double begin, took[STEPS];
	int i, step, rts = 0;

	if (threads < 1 || threads > THREADS_MAX || qps < threads)
		return 1;
	qv_open(&dev);
	if (pthread_barrier_init(&barrier, NULL, threads + 1))
		qv_die("pthread_barrier_init", errno);
	for (i = 0; i < threads; i++) {
		w[i].n = qps / threads + (i < qps % threads);
		w[i].qps = calloc(w[i].n, sizeof(*w[i].qps));
		w[i].cq = ibv_create_cq(dev.ctx, 16, NULL, NULL, 0);
		if (!w[i].qps || !w[i].cq)
			qv_die("a thread's CQ", errno);
		errno = pthread_create(&w[i].thread, NULL, work, &w[i]);
		if (errno)
			qv_die("pthread_create", errno);
	}
	for (step = 0; step < STEPS; step++) {
		pthread_barrier_wait(&barrier);
		begin = us();
		pthread_barrier_wait(&barrier);
		took[step] = us() - begin;
	}
	for (i = 0; i < threads; i++) {
		pthread_join(w[i].thread, NULL);
		rts += w[i].rts;
		if (ibv_destroy_cq(w[i].cq))
			qv_die("ibv_destroy_cq", errno);
		free(w[i].qps);
	}
	printf("{\"qps\": %d, \"threads\": %d, \"rts\": %d, \"create\": %.2f, "
	       "\"connect\": %.2f, \"destroy\": %.2f}\n", qps, threads, rts,
	       took[CREATE] / qps, took[CONNECT] / qps, took[DESTROY] / qps);
	return 0;
}
