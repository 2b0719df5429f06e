/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A ring of records in memory that two adapters share: one direction of a
 * memory link.
 *
 * Both ends map it for reading and writing, and neither trusts the other: each
 * end keeps a copy of what it has written itself, and reads what the other end
 * has written only once and checks it.  The ring knows nothing of adapters.  It
 * is all that two processes have in common, so it is the only part of the
 * engine that uses atomic operations.
 */
#ifndef QHCA_SHARED_RING_H
#define QHCA_SHARED_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define QHCA_SHRING_DATA      0x100000u   /* bytes of records; power of two */
#define QHCA_SHRING_ALIGN     64u         /* of records */
/* Headers of a frame, from Ethernet to the end of BTH's extensions. */
#define QHCA_SHRING_HEAD_MAX  160u

/*
 * The state of a record.  SKIP: there is none until the end of the data.  A
 * REFS record refers to memory of the sender: its receiver sets COPYING while
 * it reads that memory, and then DONE; its sender may set REVOKED while it is
 * neither.
 */
enum qhca_shring_state {
    QHCA_SHRING_SKIP = 1,
    QHCA_SHRING_INLINE,
    QHCA_SHRING_REFS,
    QHCA_SHRING_COPYING,
    QHCA_SHRING_DONE,
    QHCA_SHRING_REVOKED,
};

/* Part of a region of the sender's memory; follows a REFS record. */
struct qhca_shring_seg {
    uint64_t off;
    uint32_t len;
    uint32_t region;
};

struct qhca_shring_record {
    _Atomic uint32_t state;     /* enum qhca_shring_state */
    uint32_t len;               /* of the record, a multiple of the alignment */
    uint32_t payload;           /* bytes, of all packets */
    uint16_t head;              /* bytes of head[] */
    uint16_t mtu, packets;      /* path MTU; packets represented */
    uint16_t segs;              /* REFS: number of segments that follow */
    uint8_t rsvd[12];
    uint8_t heads[QHCA_SHRING_HEAD_MAX];
    /* INLINE: the payload; REFS: segments */
};

_Static_assert(sizeof(struct qhca_shring_record) == 192, "a record's layout");

/* The shared memory. */
struct qhca_shring {
    /* written by the sender */
    _Alignas(64) _Atomic uint32_t prod; /* bytes of records ever written */
    _Atomic uint32_t wants_room;        /* ring the bell when there is some */
    /* written by the receiver */
    _Alignas(64) _Atomic uint32_t cons; /* bytes of records ever consumed */
    _Atomic uint32_t sleeps;            /* ring the bell for a new record */
    _Atomic uint32_t refuses;           /* use the ordinary wire for now */
    _Atomic uint32_t marker;            /* last marker seen: memlink.h */
    _Alignas(4096) uint8_t data[QHCA_SHRING_DATA];
};

/* The ends' own views. */
struct qhca_shring_tx {
    struct qhca_shring *ring;
    uint32_t prod;              /* where the next record begins */
    uint32_t sent;              /* the same, or before a SKIP not yet sent */
};

struct qhca_shring_rx {
    struct qhca_shring *ring;
    uint32_t cons;
    /* the record being received, as it was when it was read */
    struct qhca_shring_record *at;
    struct qhca_shring_record rec;
    uint32_t state;             /* of it: INLINE, COPYING or REVOKED */
};

enum qhca_shring_result {
    QHCA_SHRING_OK,
    QHCA_SHRING_NONE,             /* full, or empty */
    QHCA_SHRING_BROKEN            /* the other end has broken the rules */
};

/* ---- the sender's end ---- */

/**
 * Find room for a record of up to @need bytes, contiguous.  OK: *@rec is where
 * to write it; nothing is sent before qhca_shring_send().
 */
enum qhca_shring_result qhca_shring_reserve(struct qhca_shring_tx *t,
                                            uint32_t need,
                                            struct qhca_shring_record **rec);
/**
 * Send the record @rec, of @len bytes, in @state: INLINE or REFS.  Then wake
 * the other end.
 */
void qhca_shring_send(struct qhca_shring_tx *t, struct qhca_shring_record *rec,
                      uint32_t len, enum qhca_shring_state state);
/** Does the other end sleep, without having seen what was sent last? */
bool qhca_shring_sleeps(const struct qhca_shring_tx *t);
/**
 * The same; then ring its bell.  True only once each time it sleeps, as one
 * bell is enough for all records.
 */
bool qhca_shring_wake(struct qhca_shring_tx *t);
/** Where the record that is sent next begins, for qhca_shring_revoke(). */
static inline uint32_t qhca_shring_at(const struct qhca_shring_tx *t)
{
    return t->prod;
}
/** Has everything been consumed?  Else asks for the bell. */
bool qhca_shring_drained(struct qhca_shring_tx *t);
/** Ask for the bell when there is room.  True: there is already. */
bool qhca_shring_want_room(struct qhca_shring_tx *t, uint32_t need);
/** Was the record at @pos consumed?  It may also be long gone. */
bool qhca_shring_consumed(const struct qhca_shring_tx *t, uint32_t pos);
/** The same; if not, ask for the bell. */
bool qhca_shring_want_consumed(struct qhca_shring_tx *t, uint32_t pos);
/**
 * Revoke the REFS record at @pos, which has not been consumed.  Returns its
 * state: REVOKED or DONE; COPYING: until it is consumed.
 */
uint32_t qhca_shring_revoke(struct qhca_shring_tx *t, uint32_t pos);

/* ---- the receiver's end ---- */

/**
 * Read the next record into r->rec; OK: it is within the ring, and nothing else
 * has been checked.  Its payload or segments follow r->at.
 */
enum qhca_shring_result qhca_shring_next(struct qhca_shring_rx *r);
/** The record of qhca_shring_next() has been executed. */
void qhca_shring_done(struct qhca_shring_rx *r);
/** After the last of a batch: does the sender want the bell? */
bool qhca_shring_room_wanted(struct qhca_shring_rx *r);
/** Ask for the bell with the next record.  False: there is one already. */
bool qhca_shring_sleep(struct qhca_shring_rx *r);

#endif /* QHCA_SHARED_RING_H */
