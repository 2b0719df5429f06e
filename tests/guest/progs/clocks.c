// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * clocks: timestamps of completions.  Prints one JSON object: the number of
 * completions checked, the largest distance of a wall clock stamp from the
 * interval in which the completion must have come, and whether the device's
 * stamps lie between its own clock's values before and after; ns.
 */
#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "qv.h"

#define ROUNDS	40

static struct qv_dev dev;

static int64_t wall(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

static int64_t device(void)
{
	struct ibv_values_ex values = { .comp_mask = IBV_VALUES_MASK_RAW_CLOCK };

	if (ibv_query_rt_values_ex(dev.ctx, &values) ||
	    values.comp_mask != IBV_VALUES_MASK_RAW_CLOCK)
		qv_die("ibv_query_rt_values_ex", errno);
	return values.raw_clock.tv_sec * 1000000000LL + values.raw_clock.tv_nsec;
}

int main(void)
{
	struct ibv_cq_init_attr_ex attr = {
		.cqe = 16,
		.wc_flags = IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK,
	};
	struct qv_qp q = { .init = {
		.qp_type = IBV_QPT_RC,
		.cap = {
			.max_send_wr = 4, .max_recv_wr = 1,
			.max_send_sge = 1, .max_recv_sge = 1,
		},
	} };
	int64_t outside = 0, least = INT64_MAX;
	struct ibv_poll_cq_attr poll_attr = {};
	struct ibv_device_attr_ex caps;
	int i, between = 0;
	struct ibv_cq_ex *cq;

	qv_open(&dev);
	if (ibv_query_device_ex(dev.ctx, NULL, &caps))
		qv_die("ibv_query_device_ex", errno);
	cq = ibv_create_cq_ex(dev.ctx, &attr);
	if (!cq)
		qv_die("ibv_create_cq_ex", errno);
	q.init.send_cq = q.init.recv_cq = ibv_cq_ex_to_cq(cq);
	q.qp = ibv_create_qp(dev.pd, &q.init);
	if (!q.qp)
		qv_die("ibv_create_qp", errno);
	qv_qp_init(&q, IBV_ACCESS_REMOTE_WRITE);
	qv_qp_connect(&dev, &q, q.qp->qp_num);
	for (i = 0; i < ROUNDS; i++) {
		int64_t w0 = wall(), d0 = device(), w, d, d1, w1;
		long end = qv_now() + 5000;

		if (qv_send(&q, IBV_WR_RDMA_WRITE, i, NULL, 0, 0, 0))
			qv_die("ibv_post_send", errno);
		while (ibv_start_poll(cq, &poll_attr))
			if (qv_now() > end)
				qv_die("no completion", ETIMEDOUT);
		if (cq->status)
			qv_die(ibv_wc_status_str(cq->status), EIO);
		d = ibv_wc_read_completion_ts(cq);
		w = ibv_wc_read_completion_wallclock_ns(cq);
		ibv_end_poll(cq);
		d1 = device();
		w1 = wall();
		between += d0 <= d && d <= d1;
		if (w0 - w > outside)
			outside = w0 - w;
		if (w - w1 > outside)
			outside = w - w1;
		if (w1 - w0 < least)
			least = w1 - w0;
		usleep(60000);	/* the difference is queried several times */
	}
	printf("{\"looked_at\": %d, \"between\": %d, \"outside\": %ld, "
	       "\"least\": %ld, \"mask\": %lu, \"khz\": %lu}\n", i, between,
	       (long)outside, (long)least,
	       (unsigned long)caps.completion_timestamp_mask,
	       (unsigned long)caps.hca_core_clock);
	return 0;
}
