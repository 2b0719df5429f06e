/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Static probe points (USDT), for gdb, SystemTap, bpftrace and the kernel's
 * uprobes.  A disabled point costs one load and one branch that is not taken;
 * trace.c reads the arguments.  Without <sys/sdt.h>, none of this is built.
 */
#ifndef QHCA_TRACE_H
#define QHCA_TRACE_H

#include <stdint.h>

struct qhca_cqe;
struct qhca_wqe_rules;

#ifdef HAVE_SYS_SDT_H

#include <util/compiler.h>

/* Semaphore of the point, incremented by each tracer. */
#define QHCA_TRACE_COUNTER(point)                                              \
	extern unsigned short qhca_##point##_semaphore                         \
		__attribute__((visibility("hidden")))
QHCA_TRACE_COUNTER(wqe);
QHCA_TRACE_COUNTER(recv_wqe);
QHCA_TRACE_COUNTER(doorbell);
QHCA_TRACE_COUNTER(poll);

#define qhca_traced(point)                                                     \
	unlikely(*(volatile unsigned short *)&qhca_##point##_semaphore)

#else

#define qhca_traced(point) 0

#endif

/* A send WQE was written; its doorbell comes later.  @rules: of the queue. */
void qhca_trace_wqe_at(uint32_t qpn, uint32_t index,
		       const struct qhca_wqe_rules *rules, const void *slot);
/*
 * A receive WQE; @num: QPN, WQN or SRQN, @index: as in a CQE, @max_sge: of the
 * queue.
 */
void qhca_trace_recv_wqe_at(uint32_t num, uint32_t index, uint32_t max_sge,
			    const void *slot);
/* A doorbell is about to be rung: its offset, QHCA_DB_*, and its value. */
void qhca_trace_doorbell_at(uint32_t offset, uint32_t num, uint32_t index);
/* The application gets the completion of the CQE with counter @ci. */
void qhca_trace_poll_at(uint32_t cqn, uint32_t ci, const struct qhca_cqe *cqe);

#define qhca_trace_wqe(...)                                                    \
	do {                                                                   \
		if (qhca_traced(wqe))                                          \
			qhca_trace_wqe_at(__VA_ARGS__);                        \
	} while (0)
#define qhca_trace_recv_wqe(...)                                               \
	do {                                                                   \
		if (qhca_traced(recv_wqe))                                     \
			qhca_trace_recv_wqe_at(__VA_ARGS__);                   \
	} while (0)
#define qhca_trace_doorbell(...)                                               \
	do {                                                                   \
		if (qhca_traced(doorbell))                                     \
			qhca_trace_doorbell_at(__VA_ARGS__);                   \
	} while (0)
#define qhca_trace_poll(...)                                                   \
	do {                                                                   \
		if (qhca_traced(poll))                                         \
			qhca_trace_poll_at(__VA_ARGS__);                       \
	} while (0)

#endif /* QHCA_TRACE_H */
