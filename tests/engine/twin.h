/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two adapters with a memory link, each in a thread of its own, as each is in a
 * process of its own otherwise; for ThreadSanitizer.
 *
 * What two processes share is shared here: the rings, and each guest's memory,
 * which the other adapter reads.  ThreadSanitizer takes any lock that both
 * threads use as order between them, and then misses what the engine itself does
 * not order.  Therefore bells, sleeping, time and what the guests tell each
 * other order nothing: they are relaxed atomics and a futex.  Only frames on the
 * wire and the life of links pass a lock; these cross a socket in reality.
 *
 * Nothing depends on how fast a thread is: time passes only while neither has
 * anything to do, and then jumps to the next timer.
 */
#ifndef QHCA_TEST_TWIN_H
#define QHCA_TEST_TWIN_H

#include <pthread.h>
#include <stdatomic.h>

#include "guest.h"
#include "adapter/adapter.h"

#define TWIN_WORDS 11u

struct twin_mail;
struct twin_rings;

struct twin {
    /* Must be first.  Only node[me] takes part, and only its own thread. */
    struct world w;
    unsigned me;
    struct node *n;
    struct twin *peer;
    /* what has happened that the thread has not looked at */
    _Atomic uint32_t pokes;
    _Atomic bool rung;
    _Atomic uint32_t mails;
    pthread_mutex_t lock;
    struct twin_mail *mail, **mail_end;
    _Atomic uint64_t next;      /* its next timer */
    /* the link */
    struct twin_rings *rings;
    unsigned id;                /* as the engine knows it; 0: none */
    bool cut;                   /* by the engine */
    bool parted;                /* the peer was told */
    bool gone;                  /* the peer has told us */
    /* what the guest tells the other one: the round and a value */
    _Atomic uint64_t word[TWIN_WORDS];
    uint32_t round;
    _Atomic uint32_t waits;     /* for the end of a copy */
    /* called before the adapter copies from the other guest's memory */
    void (*on_copy)(struct twin *t);
    bool (*dma_write)(void *opaque, uint64_t addr, const void *buf,
                      size_t len);
    uint64_t copies, cuts, links;
};

/* Create both, not yet linked. */
void twin_init(struct twin *t[2]);
void twin_fini(struct twin *t[2]);
/* Connect them; called by the first. */
void twin_link(struct twin *t);
/* This thread's end of the link; NULL: none, for now. */
struct qhca_memlink *twin_memlink(const struct twin *t);
/* Work until @cond is true, which is asked again after each event. */
void twin_until(struct twin *t, bool (*cond)(struct twin *t));
/* Tell the other guest; it hears what was said in its own round. */
void twin_say(struct twin *t, unsigned word, uint32_t value);
bool twin_hears(const struct twin *t, unsigned word);
/* What it has said; only after twin_hears(). */
uint32_t twin_heard(const struct twin *t, unsigned word);

#endif /* QHCA_TEST_TWIN_H */
