/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * The device's clock and the wall clock.
 */
#ifndef QHCA_CLOCK_H
#define QHCA_CLOCK_H

#include <stdint.h>

#include <infiniband/verbs.h>

int qhca_query_rt_values(struct ibv_context *context,
			 struct ibv_values_ex *values);
uint64_t qhca_read_completion_wallclock(struct ibv_cq_ex *ibv_cq);

#endif /* QHCA_CLOCK_H */
