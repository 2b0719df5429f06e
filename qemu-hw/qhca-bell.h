/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A thread that answers the bells of an adapter's memory links.
 *
 * The main loop has many descriptors to check before it answers one; a thread
 * that has nothing else to do wakes up sooner.  But if it is woken for each of
 * many messages, it takes the CPU time that they need: it pauses after a bell
 * while messages arrive in quick succession.
 *
 * It is not an IOThread, because the engine may access the registers of any
 * other device, whose code may need the main loop's AioContext: that is what a
 * thread that has the BQL and no AioContext has, like a vCPU's.
 */
#ifndef QHCA_BELL_H
#define QHCA_BELL_H

#include "qom/object.h"

typedef struct QhcaBells QhcaBells;

/* What a bell says; there may be none of it. */
typedef struct QhcaBell {
    uint16_t cpu;               /* where it was sent */
} QhcaBell;

/* What the thread calls, with the BQL held. */
typedef struct QhcaBellFns {
    /**
     * The socket with number @id has something to read; the number may be one
     * that was removed.
     * Return: how many messages have arrived since the last call.
     */
    uint64_t (*ring)(void *opaque, uint64_t id);
    /**
     * Is there work that the calls of ring() have left?  If @now, do a part of
     * it first.  Others may have the BQL between two calls.
     */
    bool (*more)(void *opaque, bool now);
    /**
     * The socket with number @id, which was to be rung later, cannot be; the
     * number may be one that was removed, or that another socket has got since.
     */
    void (*lost)(void *opaque, uint64_t id);
} QhcaBellFns;

/**
 * Start the thread; NULL with errno if there are no more descriptors.
 * @owner: an object to which @opaque belongs; the thread holds a reference
 */
QhcaBells *qhca_bells_new(Object *owner, const QhcaBellFns *fn, void *opaque);
/** Read from @fd, as number @id, neither 0 nor -1; false with errno. */
bool qhca_bells_add(QhcaBells *b, int fd, uint64_t id);
/** Call before @fd is closed; nothing rings it any more.  With the BQL held. */
void qhca_bells_remove(QhcaBells *b, int fd);
/** Is the thread in a call of QhcaBellFns?  With the BQL held. */
bool qhca_bells_answering(const QhcaBells *b);
/**
 * Within such a call: ring the socket @fd, with number @id, as soon as the
 * thread has released the BQL.  A vCPU that was given data often needs the BQL
 * at once, and waking another process takes longer than all the rest.
 * Return: false if the caller has to ring, because this is no such call.
 */
bool qhca_bells_ring_later(QhcaBells *b, int fd, uint64_t id);
/**
 * With the BQL held: let the thread ring the socket @fd, with number @id, in
 * one to two milliseconds, unless qhca_bells_rung() says before that this is
 * not necessary any more.  If it had to be rung, *@late becomes true, by
 * qatomic_set(); @late is valid until qhca_bells_remove().
 * Return: false if the caller has to ring.
 */
bool qhca_bells_ring_soon(QhcaBells *b, int fd, uint64_t id, bool *late);
/** The socket @fd is being rung for another reason.  With the BQL held. */
void qhca_bells_rung(QhcaBells *b, int fd);
/** The thread was rung by @cpu, as the peer says; within a call of ring(). */
void qhca_bells_rung_at(QhcaBells *b, unsigned cpu);
/** Ring the socket @fd now; false: it is broken. */
bool qhca_bells_send(int fd);
/** No more calls; the thread ends.  With the BQL held. */
void qhca_bells_free(QhcaBells *b);

#endif /* QHCA_BELL_H */
