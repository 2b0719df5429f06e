// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
/*
 * Static probe points; each exists once in the code, so that a tracer needs
 * only one breakpoint for it.  The order of arguments is an interface: add at
 * the end.
 */
#include <endian.h>
#include <stdint.h>

#include <rdma/qhca-hw.h>

#include "qhca-wqe.h"
#include "trace.h"

#ifdef HAVE_SYS_SDT_H

#define _SDT_HAS_SEMAPHORES 1
#include <sys/sdt.h>

#define QHCA_TRACE_DEFINE(point)                                               \
	unsigned short qhca_##point##_semaphore                                \
		__attribute__((used, section(".probes")))
QHCA_TRACE_DEFINE(wqe);
QHCA_TRACE_DEFINE(recv_wqe);
QHCA_TRACE_DEFINE(doorbell);
QHCA_TRACE_DEFINE(poll);

/* @num comes from the WQE, which the device can write: @max at most. */
static uint64_t qhca_trace_sges_len(const void *at, uint32_t num,
				    uint32_t max)
{
	const struct qhca_sge *sge = at;
	uint64_t len = 0;

	if (num > max)
		num = max;
	while (num--)
		len += le32toh(sge++->len);
	return len;
}

void qhca_trace_wqe_at(uint32_t qpn, uint32_t index,
		       const struct qhca_wqe_rules *rules, const void *slot)
{
	const struct qhca_wqe_ctrl *ctrl = slot;
	uint32_t num = le16toh(ctrl->num_sge);
	uint64_t wr_id = le64toh(ctrl->wr_id);
	uint32_t opcode = ctrl->opcode;
	uint32_t flags = ctrl->flags;
	uint64_t bytes;

	bytes = flags & QHCA_WQE_F_INLINE ? num :
		qhca_trace_sges_len((const char *)slot + qhca_wqe_header(rules),
				    num, rules->max_sge);
	STAP_PROBE6(qhca, wqe, qpn, index, opcode, flags, wr_id, bytes);
}

void qhca_trace_recv_wqe_at(uint32_t num, uint32_t index, uint32_t max_sge,
			    const void *slot)
{
	const struct qhca_rq_wqe *wqe = slot;
	uint64_t wr_id = le64toh(wqe->wr_id);
	uint64_t bytes = qhca_trace_sges_len(wqe + 1, le16toh(wqe->num_sge),
					     max_sge);

	STAP_PROBE4(qhca, recv_wqe, num, index, wr_id, bytes);
}

void qhca_trace_doorbell_at(uint32_t offset, uint32_t num, uint32_t index)
{
	STAP_PROBE3(qhca, doorbell, offset, num, index);
}

void qhca_trace_poll_at(uint32_t cqn, uint32_t ci, const struct qhca_cqe *cqe)
{
	uint32_t qpn = le32toh(cqe->qpn);
	uint32_t wqe = le32toh(cqe->wqe_index);
	uint32_t opcode = cqe->opcode;
	uint32_t status = cqe->status;
	uint64_t wr_id = le64toh(cqe->wr_id);
	uint32_t bytes = le32toh(cqe->byte_len);

	STAP_PROBE8(qhca, poll, cqn, ci, qpn, wqe, opcode, status, wr_id,
		    bytes);
}

#else

void qhca_trace_wqe_at(uint32_t qpn, uint32_t index,
		       const struct qhca_wqe_rules *rules, const void *slot)
{
}

void qhca_trace_recv_wqe_at(uint32_t num, uint32_t index, uint32_t max_sge,
			    const void *slot)
{
}

void qhca_trace_doorbell_at(uint32_t offset, uint32_t num, uint32_t index)
{
}

void qhca_trace_poll_at(uint32_t cqn, uint32_t ci, const struct qhca_cqe *cqe)
{
}

#endif
