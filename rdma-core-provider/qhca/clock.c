// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * The device's clock and the wall clock.
 *
 * CQEs are stamped with the device's clock. The wall clock of a completion is
 * that plus the difference of the clocks, which the kernel reports; it is
 * queried again when it is a second old, so that the two do not drift apart.
 */
#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <time.h>

#include <infiniband/cmd_ioctl.h>
#include <rdma/qhca-abi.h>

#include "qhca-abi-cmd.h"
#include "qhca-clock.h"
#include "qhca-context.h"
#include "qhca-cq.h"

#define QHCA_CLOCK_FRESH_NS	1000000000ULL

static int qhca_clock_query(struct ibv_context *context,
			    struct qhca_clocks *clocks)
{
	DECLARE_COMMAND_BUFFER(cmd, UVERBS_OBJECT_DEVICE,
			       QHCA_METHOD_DEVICE_CLOCKS, 1);

	fill_attr_out(cmd, QHCA_ATTR_DEVICE_CLOCKS_RESP, clocks,
		      sizeof(*clocks));
	return execute_ioctl(context, cmd);
}

/*
 * ibv_query_rt_values_ex(): the clock of completion timestamps, in nanoseconds,
 * in tv_nsec alone.  Returns 0 or the kernel's error.
 */
int qhca_query_rt_values(struct ibv_context *context,
			 struct ibv_values_ex *values)
{
	uint32_t wanted = values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK;
	struct qhca_clocks clocks;
	int ret;

	values->comp_mask = 0;
	if (!wanted)
		return 0;
	ret = qhca_clock_query(context, &clocks);
	if (ret)
		return ret;
	values->raw_clock.tv_sec = 0;
	values->raw_clock.tv_nsec = clocks.device;
	values->comp_mask = wanted;
	return 0;
}

static uint64_t qhca_clock_monotonic_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/*
 * Returns the offset from the device's time to the wall clock.  Threads may
 * query the kernel at the same time; each answer is valid.  If the kernel gives
 * none, the last one stays in use.
 */
static uint64_t qhca_clock_wall_offset(struct qhca_context *ctx)
{
	uint64_t now = qhca_clock_monotonic_ns();
	uint64_t asked = atomic_load_explicit(&ctx->wall_asked,
					      memory_order_acquire);
	struct qhca_clocks clocks;

	if ((!asked || now - asked > QHCA_CLOCK_FRESH_NS) &&
	    !qhca_clock_query(&ctx->vctx.context, &clocks)) {
		atomic_store_explicit(&ctx->wall_offset,
				      clocks.real - clocks.device,
				      memory_order_relaxed);
		atomic_store_explicit(&ctx->wall_asked, now,
				      memory_order_release);
	}
	return atomic_load_explicit(&ctx->wall_offset, memory_order_relaxed);
}

/* Nanoseconds since 1970 at which a CQE was written. */
uint64_t qhca_read_completion_wallclock(struct ibv_cq_ex *ibv_cq)
{
	struct qhca_cq *cq = to_qcq_ex(ibv_cq);

	return le64toh(cq->cur.timestamp) +
	       qhca_clock_wall_offset(to_qctx(ibv_cq->context));
}
