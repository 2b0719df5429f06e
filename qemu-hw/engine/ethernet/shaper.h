/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shapers (manual, 17.7): which queue may send next.
 *
 * The members of the port, SQs and shapers, take turns frame by frame.  The
 * members of a shaper do so by their weights: each has a credit in bytes, may
 * send while it is positive, and gets more each time that its turn comes.
 *
 * A member is ready, that is in its shaper's list or the port's, while it has
 * something to send: an SQ with work; a shaper with a ready member, unless it
 * waits.  A shaper whose bucket is in debt when its turn comes waits in the
 * heap below until the debt is paid off.  So do all members below it, without
 * any further work.
 */
#ifndef QHCA_SHAPER_H
#define QHCA_SHAPER_H

#include "engine.h"
#include "base/base.h"

struct qhca_eth_q;
struct qhca_shaper;

#define QHCA_MAX_SHAPERS    256     /* number 0 is unused */
#define QHCA_SHAPER_AWAKE   UINT32_MAX

/* A member of the port, or of a shaper. */
struct qhca_turn {
    struct qhca_list ready;
    struct qhca_shaper *up;     /* NULL: the port */
    int32_t credit;             /* bytes; not of the port's members */
    uint8_t weight;
    bool is_shaper;             /* else an SQ */
};

struct qhca_shaper {
    uint32_t num;
    struct qhca_turn turn;
    struct qhca_list ready;     /* turns of its members */
    uint32_t members;
    /* the bucket */
    uint64_t rate;              /* bits per second; 0: none */
    uint32_t burst;
    int64_t tokens;             /* see QHCA_SHAPER_BYTE */
    uint64_t since;             /* when tokens was set */
    /* while it waits */
    uint32_t wait_pos;          /* in the heap, or QHCA_SHAPER_AWAKE */
    uint64_t until;
    /* statistics */
    uint64_t frames, bytes, held;
};

/* Tokens of one byte: the rate is in tokens per nanosecond. */
#define QHCA_SHAPER_BYTE    INT64_C(8000000000)

/* Waiting shapers: a heap by time, and by number at the same time. */
struct qhca_shaper_waits {
    struct qhca_shaper *heap[QHCA_MAX_SHAPERS];
    uint32_t n;
};

/* ---- shaper_run.c ---- */
/* Initialize the turn of a member of @up that is not ready. */
void qhca_turn_init(struct qhca_turn *t, bool is_shaper);
/** @t has something to send.  Does nothing if it is ready. */
void qhca_turn_add(struct qhca *e, struct qhca_turn *t);
/** @t has nothing to send, or must not send. */
void qhca_turn_del(struct qhca *e, struct qhca_turn *t);
/** Make @t, which may be ready, a member of @up, or of the port (NULL). */
void qhca_turn_move(struct qhca *e, struct qhca_turn *t,
                    struct qhca_shaper *up);
/** The SQ that sends the next frame; NULL: none may now. */
struct qhca_eth_q *qhca_turn_next(struct qhca *e);
/** @q has sent @frames frames with @bytes in total. */
void qhca_turn_sent(struct qhca_eth_q *q, uint32_t bytes, uint32_t frames);
/** @q has had its turn, whether or not it has sent. */
void qhca_turn_over(struct qhca *e, struct qhca_eth_q *q);
/** The shaper that holds @t back though it is ready, or NULL. */
const struct qhca_shaper *qhca_turn_waits(const struct qhca_turn *t);

/* Bring the bucket of @s up to date. */
void qhca_shaper_fill(struct qhca_shaper *s, uint64_t now);
/** When a frame of @s may leave, in ns; not before @now. */
uint64_t qhca_shaper_opens(const struct qhca_shaper *s, uint64_t now);
/* Make @s wait until s->until, which is set. */
void qhca_shaper_sleep(struct qhca *e, struct qhca_shaper *s);
/** @s neither waits nor is ready any more. */
void qhca_shaper_quiet(struct qhca *e, struct qhca_shaper *s);
/** End the wait of @s, if it waits: its bucket decides again. */
void qhca_shaper_wake(struct qhca *e, struct qhca_shaper *s);
/** Wake shapers whose time has come. */
void qhca_shaper_timer(struct qhca *e, uint64_t now);
/** When qhca_shaper_timer() is needed, in ns; UINT64_MAX: never. */
uint64_t qhca_shaper_deadline(const struct qhca *e);

/* ---- shaper.c ---- */
/* Is the context in range?  If not, *@at gets the offset of the wrong field. */
bool qhca_shaper_ok(const struct qhca_shaperc *c, size_t *at);
/* May @s become a member of @up, or of the port (NULL)? */
bool qhca_shaper_may_move(struct qhca *e, struct qhca_shaper *s,
                          struct qhca_shaper *up);
/** Fill in the context of @s at time @now; *@out is zeroed. */
void qhca_shaper_query(const struct qhca_shaper *s, uint64_t now,
                       struct qhca_shaperc *out);

/* ---- save_shaper.c: the port's members with work, by numbers ---- */
uint32_t qhca_turn_num(struct qhca_list *ready);
struct qhca_list *qhca_turn_link(struct qhca *e, uint32_t num);
/**
 * After loading: is every shaper that must be ready either ready or waiting?
 */
bool qhca_shapers_loaded_ok(struct qhca *e);

#endif /* QHCA_SHAPER_H */
