/* SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB */
/*
 * Locks of queues.
 */
#ifndef QHCA_LOCK_H
#define QHCA_LOCK_H

#include <pthread.h>
#include <stdbool.h>

/*
 * A spin lock that a thread domain can disable: the application then guarantees
 * that no two threads enter at once.
 */
struct qhca_lock {
	pthread_spinlock_t	spin;
	bool			off;
};

static inline int qhca_lock_init(struct qhca_lock *lock, bool off)
{
	lock->off = off;
	return pthread_spin_init(&lock->spin, PTHREAD_PROCESS_PRIVATE);
}

static inline void qhca_lock_destroy(struct qhca_lock *lock)
{
	pthread_spin_destroy(&lock->spin);
}

static inline void qhca_lock(struct qhca_lock *lock)
{
	if (!lock->off)
		pthread_spin_lock(&lock->spin);
}

static inline void qhca_unlock(struct qhca_lock *lock)
{
	if (!lock->off)
		pthread_spin_unlock(&lock->spin);
}

#endif /* QHCA_LOCK_H */
