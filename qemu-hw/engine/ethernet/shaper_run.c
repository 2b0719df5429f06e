/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Running shapers: turns, buckets and waiting. */
#include "ethernet/ethernet.h"

/* Bytes of credit that a member of weight 1 gets when its turn comes. */
#define TURN_BYTES          2048

/* ---- waiting: a binary heap, so that no search is needed ---- */

static bool wakes_first(const struct qhca_shaper *a,
                        const struct qhca_shaper *b)
{
    return a->until != b->until ? a->until < b->until : a->num < b->num;
}

static void shaper_wait_put(struct qhca_shaper_waits *w, uint32_t pos,
                            struct qhca_shaper *s)
{
    w->heap[pos] = s;
    s->wait_pos = pos;
}

static void shaper_wait_up(struct qhca_shaper_waits *w, uint32_t pos,
                           struct qhca_shaper *s)
{
    uint32_t up;

    while (pos) {
        up = (pos - 1) / 2;
        if (wakes_first(w->heap[up], s)) {
            break;
        }
        shaper_wait_put(w, pos, w->heap[up]);
        pos = up;
    }
    shaper_wait_put(w, pos, s);
}

static void shaper_wait_down(struct qhca_shaper_waits *w, uint32_t pos,
                             struct qhca_shaper *s)
{
    uint32_t down;

    while ((down = 2 * pos + 1) < w->n) {
        if (down + 1 < w->n && wakes_first(w->heap[down + 1], w->heap[down])) {
            down++;
        }
        if (wakes_first(s, w->heap[down])) {
            break;
        }
        shaper_wait_put(w, pos, w->heap[down]);
        pos = down;
    }
    shaper_wait_put(w, pos, s);
}

static bool shaper_waits(const struct qhca_shaper *s)
{
    return s->wait_pos != QHCA_SHAPER_AWAKE;
}

/* End the wait of @s, if it waits; it may have to be made ready. */
static void shaper_wait_end(struct qhca_shaper_waits *w, struct qhca_shaper *s)
{
    uint32_t pos = s->wait_pos;
    struct qhca_shaper *last;

    if (!shaper_waits(s)) {
        return;
    }
    s->wait_pos = QHCA_SHAPER_AWAKE;
    last = w->heap[--w->n];
    if (last == s) {
        return;
    }
    if (wakes_first(last, s)) {
        shaper_wait_up(w, pos, last);
    } else {
        shaper_wait_down(w, pos, last);
    }
}

/* ---- ready members ---- */

void qhca_turn_init(struct qhca_turn *t, bool is_shaper)
{
    qhca_list_init(&t->ready);
    t->up = NULL;
    t->credit = 0;
    t->weight = 1;
    t->is_shaper = is_shaper;
}

static int32_t shaper_turn_quantum(const struct qhca_turn *t)
{
    return TURN_BYTES * t->weight;
}

void qhca_turn_add(struct qhca *e, struct qhca_turn *t)
{
    struct qhca_shaper *up;

    while (qhca_list_empty(&t->ready)) {
        up = t->up;
        if (!up) {
            qhca_list_add_tail(&e->eth->eth_ready, &t->ready);
            break;
        }
        /* A member that pauses keeps its debt, but no credit. */
        t->credit = shaper_turn_quantum(t) + (t->credit < 0 ? t->credit : 0);
        qhca_list_add_tail(&up->ready, &t->ready);
        if (shaper_waits(up)) {
            break;
        }
        t = &up->turn;
    }
}

void qhca_turn_del(struct qhca *e, struct qhca_turn *t)
{
    struct qhca_shaper *s = t->up;

    qhca_list_del(&t->ready);
    for (; s && qhca_list_empty(&s->ready); s = s->turn.up) {
        shaper_wait_end(&e->eth->shaper_waits, s);
        qhca_list_del(&s->turn.ready);
    }
}

void qhca_turn_move(struct qhca *e, struct qhca_turn *t,
                    struct qhca_shaper *up)
{
    bool ready = !qhca_list_empty(&t->ready);

    if (up == t->up) {
        return;
    }
    qhca_turn_del(e, t);
    if (t->up) {
        t->up->members--;
    }
    t->up = up;
    if (up) {
        up->members++;
    }
    t->credit = 0;
    if (ready) {
        qhca_turn_add(e, t);
    }
}

const struct qhca_shaper *qhca_turn_waits(const struct qhca_turn *t)
{
    for (; t->up && !qhca_list_empty(&t->ready); t = &t->up->turn) {
        if (shaper_waits(t->up)) {
            return t->up;
        }
    }
    return NULL;
}

/* ---- the bucket ---- */

void qhca_shaper_fill(struct qhca_shaper *s, uint64_t now)
{
    int64_t full = s->burst * QHCA_SHAPER_BYTE;
    /* after a state was loaded the clock may be behind */
    uint64_t ns = now > s->since ? now - s->since : 0;

    if (!s->rate || ns > (uint64_t)(full - s->tokens) / s->rate) {
        s->tokens = full;
    } else {
        s->tokens += (int64_t)(ns * s->rate);
    }
    s->since = now;
}

/* When the debt that the bucket of @s had at s->since is paid off. */
static uint64_t shaper_debt_ends(const struct qhca_shaper *s)
{
    return s->since + ((uint64_t)-s->tokens + s->rate - 1) / s->rate;
}

uint64_t qhca_shaper_opens(const struct qhca_shaper *s, uint64_t now)
{
    struct qhca_shaper at = *s;

    qhca_shaper_fill(&at, now);
    return at.tokens < 0 ? shaper_debt_ends(&at) : now;
}

/* May a frame of @s leave?  If not, sets s->until. */
static bool shaper_open(struct qhca *e, struct qhca_shaper *s)
{
    if (!s->rate) {
        return true;
    }
    qhca_shaper_fill(s, qhca_now(e));
    if (s->tokens >= 0) {
        return true;
    }
    s->until = shaper_debt_ends(s);
    return false;
}

void qhca_shaper_sleep(struct qhca *e, struct qhca_shaper *s)
{
    struct qhca_shaper_waits *w = &e->eth->shaper_waits;

    shaper_wait_up(w, w->n++, s);
}

void qhca_shaper_quiet(struct qhca *e, struct qhca_shaper *s)
{
    shaper_wait_end(&e->eth->shaper_waits, s);
    qhca_turn_del(e, &s->turn);
}

void qhca_shaper_wake(struct qhca *e, struct qhca_shaper *s)
{
    if (shaper_waits(s)) {
        shaper_wait_end(&e->eth->shaper_waits, s);
        qhca_turn_add(e, &s->turn);
    }
}

void qhca_shaper_timer(struct qhca *e, uint64_t now)
{
    struct qhca_shaper_waits *w = &e->eth->shaper_waits;

    while (w->n && w->heap[0]->until <= now) {
        qhca_shaper_wake(e, w->heap[0]);
    }
}

uint64_t qhca_shaper_deadline(const struct qhca *e)
{
    const struct qhca_shaper_waits *w = &e->eth->shaper_waits;

    return w->n ? w->heap[0]->until : UINT64_MAX;
}

/* ---- turns ---- */

/* Move @t to the end of the list @of. */
static void shaper_turn_rotate(struct qhca_list *of, struct qhca_turn *t)
{
    qhca_list_del(&t->ready);
    qhca_list_add_tail(of, &t->ready);
}

/*
 * Each step ends the wait for the next frame, makes a shaper wait, or gives a
 * member credit, which it owes for bytes that it has sent.
 */
struct qhca_eth_q *qhca_turn_next(struct qhca *e)
{
    struct qhca_list *of = &e->eth->eth_ready;
    struct qhca_shaper *s;
    struct qhca_turn *t;

    while (!qhca_list_empty(of)) {
        t = qhca_container(of->next, struct qhca_turn, ready);
        if (t->up && t->credit <= 0) {
            t->credit += shaper_turn_quantum(t);
            shaper_turn_rotate(of, t);
            continue;
        }
        if (!t->is_shaper) {
            return qhca_container(t, struct qhca_eth_q, turn);
        }
        s = qhca_container(t, struct qhca_shaper, turn);
        of = &s->ready;
        if (!shaper_open(e, s)) {
            qhca_turn_del(e, t);
            qhca_shaper_sleep(e, s);
            s->held++;
            of = &e->eth->eth_ready;
        }
    }
    return NULL;
}

void qhca_turn_sent(struct qhca_eth_q *q, uint32_t bytes, uint32_t frames)
{
    struct qhca_turn *t;
    struct qhca_shaper *s;

    for (t = &q->turn; t->up; t = &s->turn) {
        s = t->up;
        t->credit -= (int32_t)bytes;
        if (s->rate) {
            s->tokens -= bytes * QHCA_SHAPER_BYTE;
        }
        s->bytes += bytes;
        s->frames += frames;
    }
}

void qhca_turn_over(struct qhca *e, struct qhca_eth_q *q)
{
    struct qhca_turn *t = &q->turn;

    if (q->ring.head == q->ring.tail || q->state != QHCA_WQS_RDY) {
        qhca_turn_del(e, t);
    }
    while (t->up) {
        t = &t->up->turn;
    }
    if (!qhca_list_empty(&t->ready)) {
        shaper_turn_rotate(&e->eth->eth_ready, t);
    }
}
