/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings in shared memory.  Indices count bytes and are never masked.
 *
 * An end that wants to be woken sets its flag, then checks the ring once more.
 * The other end updates the ring, then checks the flag.  With a full barrier in
 * between, at least one of them sees what the other has stored.
 */
#include <string.h>

#include "memlink/shared_ring.h"

static struct qhca_shring_record *record_at(struct qhca_shring *ring,
                                            uint32_t pos)
{
    return (struct qhca_shring_record *)&ring->data[pos % QHCA_SHRING_DATA];
}

/* ---- the sender's end ---- */

static enum qhca_shring_result ring_used(const struct qhca_shring_tx *t,
                                         uint32_t *used)
{
    *used = t->prod - atomic_load_explicit(&t->ring->cons,
                                           memory_order_acquire);
    return *used > QHCA_SHRING_DATA ? QHCA_SHRING_BROKEN : QHCA_SHRING_OK;
}

enum qhca_shring_result qhca_shring_reserve(struct qhca_shring_tx *t,
                                            uint32_t need,
                                            struct qhca_shring_record **rec)
{
    uint32_t left = QHCA_SHRING_DATA - t->prod % QHCA_SHRING_DATA, used;
    struct qhca_shring_record *skip;

    if (ring_used(t, &used) != QHCA_SHRING_OK) {
        return QHCA_SHRING_BROKEN;
    }
    if (left < need) {
        if (QHCA_SHRING_DATA - used < left + need) {
            return QHCA_SHRING_NONE;
        }
        skip = record_at(t->ring, t->prod);
        skip->len = left;
        atomic_store_explicit(&skip->state, QHCA_SHRING_SKIP,
                              memory_order_relaxed);
        t->prod += left;
    } else if (QHCA_SHRING_DATA - used < need) {
        return QHCA_SHRING_NONE;
    }
    *rec = record_at(t->ring, t->prod);
    return QHCA_SHRING_OK;
}

void qhca_shring_send(struct qhca_shring_tx *t, struct qhca_shring_record *rec,
                      uint32_t len, enum qhca_shring_state state)
{
    len = (len + QHCA_SHRING_ALIGN - 1) & ~(QHCA_SHRING_ALIGN - 1);
    rec->len = len;
    atomic_store_explicit(&rec->state, state, memory_order_relaxed);
    t->prod += len;
    t->sent = t->prod;
    atomic_store_explicit(&t->ring->prod, t->sent, memory_order_release);
    atomic_thread_fence(memory_order_seq_cst);
}

bool qhca_shring_sleeps(const struct qhca_shring_tx *t)
{
    return atomic_load_explicit(&t->ring->sleeps, memory_order_relaxed);
}

bool qhca_shring_wake(struct qhca_shring_tx *t)
{
    return qhca_shring_sleeps(t) && atomic_exchange(&t->ring->sleeps, 0);
}

bool qhca_shring_drained(struct qhca_shring_tx *t)
{
    atomic_store_explicit(&t->ring->wants_room, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&t->ring->cons, memory_order_acquire) ==
           t->sent;
}

bool qhca_shring_want_room(struct qhca_shring_tx *t, uint32_t need)
{
    struct qhca_shring_record *rec;

    atomic_store_explicit(&t->ring->wants_room, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return qhca_shring_reserve(t, need, &rec) == QHCA_SHRING_OK;
}

bool qhca_shring_consumed(const struct qhca_shring_tx *t, uint32_t pos)
{
    uint32_t used;

    return ring_used(t, &used) != QHCA_SHRING_OK || t->prod - pos > used;
}

bool qhca_shring_want_consumed(struct qhca_shring_tx *t, uint32_t pos)
{
    atomic_store_explicit(&t->ring->wants_room, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    return qhca_shring_consumed(t, pos);
}

uint32_t qhca_shring_revoke(struct qhca_shring_tx *t, uint32_t pos)
{
    uint32_t state = QHCA_SHRING_REFS;

    if (atomic_compare_exchange_strong(&record_at(t->ring, pos)->state,
                                       &state, QHCA_SHRING_REVOKED)) {
        return QHCA_SHRING_REVOKED;
    }
    return state == QHCA_SHRING_COPYING ? state : QHCA_SHRING_DONE;
}

/* ---- the receiver's end ---- */

/* Read what is at r->cons; @there bytes have been sent. */
static enum qhca_shring_result read_record(struct qhca_shring_rx *r,
                                           uint32_t there)
{
    uint32_t left = QHCA_SHRING_DATA - r->cons % QHCA_SHRING_DATA, state;

    r->at = record_at(r->ring, r->cons);
    if (left < sizeof(r->rec)) {
        /* Too little for anything but a SKIP. */
        memcpy(&r->rec.len, &r->at->len, sizeof(r->rec.len));
    } else {
        memcpy((char *)&r->rec + sizeof(r->rec.state),
               (char *)r->at + sizeof(r->at->state),
               sizeof(r->rec) - sizeof(r->rec.state));
    }
    state = atomic_load_explicit(&r->at->state, memory_order_acquire);
    left = left < there ? left : there;
    if (!r->rec.len || r->rec.len % QHCA_SHRING_ALIGN || r->rec.len > left ||
        (state != QHCA_SHRING_SKIP && r->rec.len < sizeof(r->rec))) {
        return QHCA_SHRING_BROKEN;
    }
    if (state == QHCA_SHRING_REFS &&
        atomic_compare_exchange_strong(&r->at->state, &state,
                                       QHCA_SHRING_COPYING)) {
        state = QHCA_SHRING_COPYING;
    }
    r->state = state;
    return QHCA_SHRING_OK;
}

enum qhca_shring_result qhca_shring_next(struct qhca_shring_rx *r)
{
    uint32_t there;
    unsigned i;

    /* A record, which a SKIP may precede. */
    for (i = 0; i < 2; i++) {
        there = atomic_load_explicit(&r->ring->prod, memory_order_acquire) -
                r->cons;
        if (there > QHCA_SHRING_DATA || there % QHCA_SHRING_ALIGN) {
            return QHCA_SHRING_BROKEN;
        }
        if (!there) {
            return QHCA_SHRING_NONE;
        }
        if (read_record(r, there) != QHCA_SHRING_OK) {
            return QHCA_SHRING_BROKEN;
        }
        if (r->state == QHCA_SHRING_SKIP) {
            r->cons += r->rec.len;
            atomic_store_explicit(&r->ring->cons, r->cons,
                                  memory_order_release);
            continue;
        }
        return r->state == QHCA_SHRING_INLINE ||
               r->state == QHCA_SHRING_COPYING ||
               r->state == QHCA_SHRING_REVOKED ? QHCA_SHRING_OK :
                                               QHCA_SHRING_BROKEN;
    }
    return QHCA_SHRING_BROKEN;
}

void qhca_shring_done(struct qhca_shring_rx *r)
{
    if (r->state == QHCA_SHRING_COPYING) {
        atomic_store_explicit(&r->at->state, QHCA_SHRING_DONE,
                              memory_order_release);
    }
    r->cons += r->rec.len;
    atomic_store_explicit(&r->ring->cons, r->cons, memory_order_release);
}

bool qhca_shring_room_wanted(struct qhca_shring_rx *r)
{
    atomic_thread_fence(memory_order_seq_cst);
    return atomic_load_explicit(&r->ring->wants_room, memory_order_relaxed) &&
           atomic_exchange(&r->ring->wants_room, 0);
}

bool qhca_shring_sleep(struct qhca_shring_rx *r)
{
    atomic_store_explicit(&r->ring->sleeps, 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&r->ring->prod, memory_order_relaxed) ==
        r->cons) {
        return true;
    }
    atomic_store_explicit(&r->ring->sleeps, 0, memory_order_relaxed);
    return false;
}
