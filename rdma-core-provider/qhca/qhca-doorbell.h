/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/* Doorbells and doorbell records: they tell the device the index of a queue. */
#ifndef QHCA_DOORBELL_H
#define QHCA_DOORBELL_H

#include <config.h>

#include <endian.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/qhca-hw.h>
#include <util/compiler.h>
#include <util/mmio.h>
#include <util/udma_barrier.h>

#include "qhca-context.h"
#include "trace.h"

/* CMakeLists.txt does not build the provider there. */
#if SIZEOF_LONG != 8
#error "qhca needs a 64-bit architecture: a doorbell is one 8-byte store"
#endif

/* dbrec.c */
struct qhca_dbrec *qhca_dbrec_alloc(struct qhca_context *ctx);
void qhca_dbrec_free(struct qhca_context *ctx, struct qhca_dbrec *rec);

/*
 * Rings a doorbell: one 8-byte store.  Everything the device will read must
 * have been stored before; the barrier makes it visible first.
 *
 * Unless the queue has a doorbell record, the caller holds its lock, and its
 * doorbells must reach the device in lock order.  On x86 and arm64 uncached
 * stores are ordered anyway; elsewhere they are flushed before the lock is
 * released.
 */
static inline void qhca_db_ring(struct qhca_context *ctx, unsigned int offset,
				uint32_t num, uint64_t flags, uint32_t index)
{
	qhca_trace_doorbell(offset, num, index);
	udma_to_device_barrier();
	mmio_write64_le((char *)ctx->db + offset,
			htole64((num & QHCA_DB_NUM_MASK) | flags |
				(uint64_t)index << QHCA_DB_INDEX_SHIFT));
#if !defined(__x86_64__) && !defined(__i386__) && !defined(__aarch64__)
	mmio_flush_writes();
#endif
}

/* Orders a store before a later load, for both the device and the CPUs. */
static inline void qhca_full_barrier(void)
{
#if defined(__aarch64__)
	asm volatile("dmb osh" ::: "memory");
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/*
 * Stores the index of a doorbell record.  Loads and stores before it - the
 * WQEs written, the CQEs read - come before it for the device too.  Neither
 * barrier needs to order loads before a later store (those of RISC-V do not):
 * the release does.
 */
static inline void qhca_dbrec_store(struct qhca_dbrec *rec, uint32_t index)
{
	udma_from_device_barrier();
	udma_to_device_barrier();
	atomic_store_explicit((__force _Atomic(uint32_t) *)&rec->index,
			      (__force uint32_t)htole32(index),
			      memory_order_release);
}

/* Returns the flags of a doorbell record, which the device writes. */
static inline uint32_t qhca_dbrec_flags(struct qhca_dbrec *rec)
{
	uint32_t flags;

	flags = atomic_load_explicit((__force _Atomic(uint32_t) *)&rec->flags,
				     memory_order_relaxed);
	return le32toh((__force __le32)flags);
}

/*
 * Publishes the index of a posting queue, whose record has flags.  Returns true
 * if the device requests a doorbell.  Either it sees the new index when it
 * reads it after setting NOTIFY, or this function sees NOTIFY.
 */
static inline bool qhca_dbrec_publish(struct qhca_dbrec *rec, uint32_t index)
{
	qhca_dbrec_store(rec, index);
	qhca_full_barrier();
	return qhca_dbrec_flags(rec) & QHCA_DBREC_NOTIFY;
}

/*
 * Announces sends up to @head; the caller holds the SQ's lock.  Returns true if
 * the caller has to ring after releasing the lock: with a record the order of
 * doorbells does not matter.  Without one, this function rings.
 */
static inline bool qhca_sq_publish(struct qhca_context *ctx,
				   struct qhca_dbrec *rec, uint32_t qpn,
				   uint32_t head)
{
	if (!rec) {
		qhca_db_ring(ctx, QHCA_DB_SQ, qpn, 0, head);
		return false;
	}
	return qhca_dbrec_publish(rec, head);
}

#endif /* QHCA_DOORBELL_H */
