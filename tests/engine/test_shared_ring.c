/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings in shared memory: one end tested against the other, each against an end
 * that breaks the rules, and both at once in two threads, also under
 * ThreadSanitizer (see the Makefile).  The ring ends where its allocation ends.
 */
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "memlink/shared_ring.h"
#include "rng.h"

#define DATA QHCA_SHRING_DATA
#define HEAD ((uint32_t)sizeof(struct qhca_shring_record))
#define OK QHCA_SHRING_OK
#define NONE QHCA_SHRING_NONE
#define BROKEN QHCA_SHRING_BROKEN

struct ends {
    struct qhca_shring *ring;
    struct qhca_shring_tx tx;
    struct qhca_shring_rx rx;
};

/* Both ends at byte @pos of all that was ever sent. */
static void ends_at(struct ends *s, uint32_t pos)
{
    s->tx.prod = s->tx.sent = s->rx.cons = pos;
    s->ring->prod = s->ring->cons = pos;
}

static int setup(void **state)
{
    struct ends *s = calloc(1, sizeof(*s));

    s->ring = aligned_alloc(4096, sizeof(*s->ring));
    memset(s->ring, 0, sizeof(*s->ring));
    s->tx.ring = s->rx.ring = s->ring;
    *state = s;
    return 0;
}

static int teardown(void **state)
{
    struct ends *s = *state;

    free(s->ring);
    free(s);
    return 0;
}

/* Send a record of @len bytes that ends with @num; returns where it is. */
static uint32_t put_as(struct ends *s, uint32_t len, uint32_t num,
                       enum qhca_shring_state state)
{
    struct qhca_shring_record *rec;
    uint32_t pos;

    assert_int_equal(qhca_shring_reserve(&s->tx, len, &rec), OK);
    assert_true((uint8_t *)rec >= s->ring->data);
    assert_true((uint8_t *)rec + len <= s->ring->data + DATA);
    pos = qhca_shring_at(&s->tx);
    rec->payload = num;
    memcpy((uint8_t *)rec + len - 4, &num, 4);
    qhca_shring_send(&s->tx, rec, len, state);
    return pos;
}

static uint32_t put(struct ends *s, uint32_t len, uint32_t num)
{
    return put_as(s, len, num, QHCA_SHRING_INLINE);
}

/* The next record is that one. */
static void take(struct ends *s, uint32_t len, uint32_t num)
{
    uint32_t got;

    assert_int_equal(qhca_shring_next(&s->rx), OK);
    assert_int_equal(s->rx.rec.len, (len + 63) & ~63u);
    assert_int_equal(s->rx.rec.payload, num);
    memcpy(&got, (uint8_t *)s->rx.at + len - 4, 4);
    assert_int_equal(got, num);
    qhca_shring_done(&s->rx);
}

static void nothing(void **state)
{
    struct ends *s = *state;

    assert_int_equal(qhca_shring_next(&s->rx), NONE);
    assert_true(qhca_shring_drained(&s->tx));
}

/* Random sizes, many times around: in order, each in one piece. */
static void in_order(void **state)
{
    struct ends *s = *state;
    uint32_t len[4096], sent = 0, taken = 0, skips = 0, at;
    struct qhca_shring_record *rec;
    struct rng r;

    rng_init(&r, 1);
    /* the indices wrap, too */
    ends_at(s, 0u - 3 * DATA - 64 * 7);
    while (taken < 4096) {
        if (sent < 4096 && rng_pct(&r, 52)) {
            len[sent] = HEAD + (uint32_t)rng_below(&r, 40000);
            switch (qhca_shring_reserve(&s->tx, len[sent], &rec)) {
            case OK:
                at = s->tx.sent % DATA;
                skips += s->tx.prod != s->tx.sent;
                if (s->tx.prod != s->tx.sent) {
                    assert_true(DATA - at < len[sent]);
                }
                put(s, len[sent], sent);
                sent++;
                break;
            case NONE:
                assert_true(taken < sent);
                break;
            default:
                fail();
            }
        } else if (taken < sent) {
            take(s, len[taken], taken);
            taken++;
        } else {
            assert_int_equal(qhca_shring_next(&s->rx), NONE);
        }
        assert_int_equal(qhca_shring_drained(&s->tx), taken == sent);
    }
    assert_true(skips > 50);
    assert_true(s->ring->prod < 0u - 4 * DATA);
}

/* To the last byte, and not one more. */
static void full(void **state)
{
    struct ends *s = *state;
    struct qhca_shring_record *rec;
    uint32_t i, n = DATA / 256;

    for (i = 0; i < n; i++) {
        put(s, 256, i);
    }
    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &rec), NONE);
    assert_false(qhca_shring_want_room(&s->tx, HEAD));
    take(s, 256, 0);
    /* room for this one, not for a larger one */
    assert_int_equal(qhca_shring_reserve(&s->tx, 257, &rec), NONE);
    assert_true(qhca_shring_want_room(&s->tx, 256));
    put(s, 256, n);
    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &rec), NONE);
    for (i = 1; i <= n; i++) {
        take(s, 256, i);
    }
    assert_int_equal(qhca_shring_next(&s->rx), NONE);
    assert_true(qhca_shring_drained(&s->tx));
}

/* The room left at the end is used if it suffices, and skipped if not. */
static void to_the_end(void **state)
{
    struct ends *s = *state;
    uint32_t left, need;

    for (left = 64; left <= 512; left += 64) {
        for (need = HEAD; need <= 512; need += 64) {
            ends_at(s, 5 * DATA - left);
            assert_int_equal(put(s, need, left),
                             left < need ? 5 * DATA : 5 * DATA - left);
            put(s, HEAD, need);
            take(s, need, left);
            take(s, HEAD, need);
            assert_int_equal(qhca_shring_next(&s->rx), NONE);
            assert_int_equal(s->ring->cons, s->ring->prod);
        }
    }
}

/* A SKIP takes room, too. */
static void no_room_behind_a_skip(void **state)
{
    struct ends *s = *state;
    struct qhca_shring_record *rec;

    ends_at(s, DATA - 512);
    put(s, 256, 1);
    /* 256 bytes to the end; from the beginning DATA - 512 */
    assert_int_equal(qhca_shring_reserve(&s->tx, DATA - 512 + 64, &rec), NONE);
    assert_int_equal(qhca_shring_reserve(&s->tx, DATA - 512, &rec), OK);
    assert_ptr_equal(rec, s->ring->data);
    take(s, 256, 1);
}

/* Room that is not used: the other end sees nothing of it. */
static void reserved_only(void **state)
{
    struct ends *s = *state;
    struct qhca_shring_record *rec, *same;

    ends_at(s, DATA - 128);
    assert_int_equal(qhca_shring_reserve(&s->tx, 1000, &rec), OK);
    assert_ptr_equal(rec, s->ring->data);
    assert_int_equal(qhca_shring_next(&s->rx), NONE);
    assert_true(qhca_shring_drained(&s->tx));
    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &same), OK);
    assert_ptr_equal(rec, same);
    assert_int_equal(put(s, 1000, 7), DATA);
    assert_false(qhca_shring_drained(&s->tx));
    take(s, 1000, 7);
    assert_true(qhca_shring_drained(&s->tx));
    /* and without a SKIP */
    assert_int_equal(qhca_shring_reserve(&s->tx, 1000, &rec), OK);
    assert_int_equal(qhca_shring_next(&s->rx), NONE);
    assert_true(qhca_shring_drained(&s->tx));
    assert_int_equal(put(s, 500, 8), DATA + 1024);
    take(s, 500, 8);
}

/* The receiver claims to have consumed what was never sent, or less again. */
static void cons_that_lies(void **state)
{
    struct ends *s = *state;
    struct qhca_shring_record *rec;
    uint32_t pos;

    ends_at(s, 7 * DATA);
    pos = put_as(s, HEAD, 1, QHCA_SHRING_REFS);
    assert_false(qhca_shring_consumed(&s->tx, pos));
    s->ring->cons = s->tx.prod + 64;
    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &rec), BROKEN);
    assert_false(qhca_shring_drained(&s->tx));
    assert_true(qhca_shring_consumed(&s->tx, pos));
    s->ring->cons = s->tx.prod - DATA - 64;
    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &rec), BROKEN);
    assert_false(qhca_shring_drained(&s->tx));
    assert_false(qhca_shring_want_room(&s->tx, HEAD));
    /* any other value is possible, and harms only this end */
    s->ring->cons = s->tx.prod - 1;
    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &rec), OK);
    s->ring->cons = s->tx.prod - DATA;
    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &rec), NONE);
}

/* ---- revoking ---- */

static void revoked(void **state)
{
    struct ends *s = *state;
    uint32_t a, b, c, d;

    a = put_as(s, HEAD, 1, QHCA_SHRING_REFS);
    b = put_as(s, HEAD, 2, QHCA_SHRING_REFS);
    c = put_as(s, HEAD, 3, QHCA_SHRING_INLINE);
    d = put_as(s, HEAD, 4, QHCA_SHRING_REFS);
    /* before, while and after it is received */
    assert_int_equal(qhca_shring_revoke(&s->tx, b), QHCA_SHRING_REVOKED);
    assert_int_equal(qhca_shring_next(&s->rx), OK);
    assert_int_equal(s->rx.state, QHCA_SHRING_COPYING);
    assert_int_equal(qhca_shring_revoke(&s->tx, a), QHCA_SHRING_COPYING);
    assert_int_equal(qhca_shring_revoke(&s->tx, a), QHCA_SHRING_COPYING);
    assert_false(qhca_shring_consumed(&s->tx, a));
    qhca_shring_done(&s->rx);
    assert_int_equal(qhca_shring_revoke(&s->tx, a), QHCA_SHRING_DONE);
    assert_true(qhca_shring_consumed(&s->tx, a));
    assert_false(qhca_shring_consumed(&s->tx, b));
    /* again */
    assert_int_equal(qhca_shring_revoke(&s->tx, b), QHCA_SHRING_DONE);
    assert_int_equal(qhca_shring_next(&s->rx), OK);
    assert_int_equal(s->rx.state, QHCA_SHRING_REVOKED);
    assert_int_equal(s->rx.rec.payload, 2);
    qhca_shring_done(&s->rx);
    assert_int_equal(s->rx.at->state, QHCA_SHRING_REVOKED);
    /* nothing to revoke */
    assert_int_equal(qhca_shring_revoke(&s->tx, c), QHCA_SHRING_DONE);
    assert_int_equal(qhca_shring_next(&s->rx), OK);
    assert_int_equal(s->rx.state, QHCA_SHRING_INLINE);
    qhca_shring_done(&s->rx);
    /* revoked after its receiver has read it: then it is COPYING */
    assert_int_equal(qhca_shring_revoke(&s->tx, d), QHCA_SHRING_REVOKED);
    s->rx.at = NULL;
    assert_int_equal(qhca_shring_next(&s->rx), OK);
    assert_int_equal(s->rx.state, QHCA_SHRING_REVOKED);
    qhca_shring_done(&s->rx);
    assert_true(qhca_shring_consumed(&s->tx, d));
}

/* The last of many, and one that is about to wrap. */
static void consumed(void **state)
{
    struct ends *s = *state;
    uint32_t pos[3], i, k;

    ends_at(s, 0u - 512);
    for (i = 0; i < 3; i++) {
        pos[i] = put(s, 256, i);
    }
    for (i = 0; i < 3; i++) {
        for (k = 0; k < 3; k++) {
            assert_int_equal(qhca_shring_consumed(&s->tx, pos[k]), k < i);
        }
        take(s, 256, i);
    }
    assert_true(qhca_shring_consumed(&s->tx, pos[2]));
}

/* ---- bells ---- */

static void new_record_bell(void **state)
{
    struct ends *s = *state;
    struct qhca_shring_record *rec;

    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &rec), OK);
    qhca_shring_send(&s->tx, rec, HEAD, QHCA_SHRING_INLINE);
    assert_false(qhca_shring_wake(&s->tx));
    /* it does not sleep while there is one */
    assert_false(qhca_shring_sleep(&s->rx));
    assert_int_equal(s->ring->sleeps, 0);
    assert_int_equal(qhca_shring_next(&s->rx), OK);
    qhca_shring_done(&s->rx);
    assert_true(qhca_shring_sleep(&s->rx));
    /* to ask whether it sleeps is not to wake it */
    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &rec), OK);
    qhca_shring_send(&s->tx, rec, HEAD, QHCA_SHRING_INLINE);
    assert_true(qhca_shring_sleeps(&s->tx));
    /* one bell, not two */
    assert_int_equal(qhca_shring_reserve(&s->tx, HEAD, &rec), OK);
    qhca_shring_send(&s->tx, rec, HEAD, QHCA_SHRING_INLINE);
    assert_true(qhca_shring_wake(&s->tx));
    assert_false(qhca_shring_sleeps(&s->tx));
    assert_false(qhca_shring_wake(&s->tx));
}

static void room_bell(void **state)
{
    struct ends *s = *state;

    put(s, HEAD, 1);
    assert_int_equal(qhca_shring_next(&s->rx), OK);
    qhca_shring_done(&s->rx);
    assert_false(qhca_shring_room_wanted(&s->rx));
    put(s, DATA / 2, 2);
    assert_false(qhca_shring_want_room(&s->tx, DATA - 1024));
    take(s, DATA / 2, 2);
    assert_true(qhca_shring_room_wanted(&s->rx));
    assert_false(qhca_shring_room_wanted(&s->rx));
    /* the same for a sender that waits for an empty ring */
    put(s, HEAD, 3);
    assert_false(qhca_shring_drained(&s->tx));
    take(s, HEAD, 3);
    assert_true(qhca_shring_room_wanted(&s->rx));
    assert_true(qhca_shring_drained(&s->tx));
}

/* ---- a sender that breaks the rules ---- */

struct bad {
    uint32_t prod;              /* bytes sent */
    uint32_t len, state;        /* of the first record */
    uint32_t left;              /* bytes to the end of the data */
    uint32_t next_len, next_state;
};

static void malformed(void **state)
{
    static const struct bad bad[] = {
        { .prod = 256, .len = 0, .state = QHCA_SHRING_INLINE },
        { .prod = 256, .len = 0, .state = QHCA_SHRING_SKIP },
        { .prod = 256, .len = 255, .state = QHCA_SHRING_INLINE },
        { .prod = 256, .len = 192 + 32, .state = QHCA_SHRING_REFS },
        { .prod = 256, .len = 320, .state = QHCA_SHRING_INLINE },
        { .prod = 256, .len = 0xffffffc0, .state = QHCA_SHRING_INLINE },
        { .prod = 256, .len = 0x80000000, .state = QHCA_SHRING_SKIP },
        { .prod = 256, .len = 128, .state = QHCA_SHRING_INLINE },
        { .prod = 256, .len = 64, .state = QHCA_SHRING_REFS },
        { .prod = 128, .len = 128, .state = QHCA_SHRING_REVOKED },
        { .prod = 256, .len = 256, .state = 0 },
        { .prod = 256, .len = 256, .state = QHCA_SHRING_DONE },
        { .prod = 256, .len = 256, .state = QHCA_SHRING_REVOKED + 1 },
        { .prod = 256, .len = 256, .state = 0xffffffff },
        /* indices */
        { .prod = 256 + 32, .len = 256, .state = QHCA_SHRING_INLINE },
        { .prod = 1, .len = 256, .state = QHCA_SHRING_INLINE },
        { .prod = DATA + 64, .len = 256, .state = QHCA_SHRING_INLINE },
        { .prod = 0x80000000, .len = 256, .state = QHCA_SHRING_INLINE },
        { .prod = 0u - 64, .len = 256, .state = QHCA_SHRING_INLINE },
        /* at the end of the data */
        { .prod = 512, .left = 256, .len = 320, .state = QHCA_SHRING_INLINE },
        { .prod = 512, .left = 256, .len = 512, .state = QHCA_SHRING_REFS },
        { .prod = 512, .left = 64, .len = 192, .state = QHCA_SHRING_INLINE },
        { .prod = 512, .left = 64, .len = 64, .state = QHCA_SHRING_INLINE },
        { .prod = 512, .left = 128, .len = 128, .state = QHCA_SHRING_REFS },
        { .prod = 512, .left = 64, .len = 128, .state = QHCA_SHRING_SKIP },
        /* and behind a SKIP */
        { .prod = 512, .left = 64, .len = 64, .state = QHCA_SHRING_SKIP,
          .next_len = 64, .next_state = QHCA_SHRING_SKIP },
        { .prod = 512, .left = 64, .len = 64, .state = QHCA_SHRING_SKIP,
          .next_len = 512, .next_state = QHCA_SHRING_INLINE },
        { .prod = 512, .len = 64, .state = QHCA_SHRING_SKIP,
          .next_len = 64, .next_state = QHCA_SHRING_SKIP },
    };
    struct ends *s = *state;
    unsigned i, times;

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        const struct bad *b = &bad[i];
        uint32_t at = b->left ? 3 * DATA - b->left : 2 * DATA;
        struct qhca_shring_record *rec, *next;

        memset(s->ring->data, 0, DATA);
        ends_at(s, at);
        rec = (void *)&s->ring->data[at % DATA];
        next = (void *)&s->ring->data[(at + b->len) % DATA];
        if (b->next_len) {
            next->len = b->next_len;
            next->state = b->next_state;
        }
        rec->len = b->len;
        rec->state = b->state;
        s->ring->prod = at + b->prod;
        for (times = 0; times < 2; times++) {
            if (qhca_shring_next(&s->rx) != BROKEN) {
                fail_msg("malformed record %u is taken", i);
            }
            /* at most a SKIP was consumed, and nothing was changed */
            assert_true(s->rx.cons - at <= 128);
            assert_int_equal(s->ring->cons, s->rx.cons);
            if (b->state != QHCA_SHRING_SKIP) {
                assert_int_equal(s->rx.cons, at);
                assert_int_equal(rec->state, b->state);
            } else if (times == 0 && b->next_state == QHCA_SHRING_SKIP) {
                /* two more are two too many as well */
                break;
            }
        }
    }
}

/* It may claim that we copy: then it is not revoked, and nothing else. */
static void strange(void **state)
{
    struct ends *s = *state;
    struct qhca_shring_record *rec = (void *)s->ring->data;
    uint32_t pos = put_as(s, HEAD, 1, QHCA_SHRING_REFS);

    rec->state = QHCA_SHRING_COPYING;
    assert_int_equal(qhca_shring_revoke(&s->tx, pos), QHCA_SHRING_COPYING);
    assert_int_equal(qhca_shring_next(&s->rx), OK);
    assert_int_equal(s->rx.state, QHCA_SHRING_COPYING);
    /* the length is what it was when it was read */
    rec->len = 64 * 1024;
    rec->state = QHCA_SHRING_SKIP;
    qhca_shring_done(&s->rx);
    assert_int_equal(s->rx.cons, HEAD);
    assert_int_equal(qhca_shring_next(&s->rx), NONE);
}

/* ---- two threads ---- */

#define RECORDS 30000u
#define SLOTS 64u
#define SLOT_LEN 64u

struct stress {
    struct ends s;
    sem_t work, room;           /* the bells */
    uint32_t slot[SLOTS][SLOT_LEN];     /* the memory of REFS */
    uint32_t copied, lost, sum;
    bool wrong;
};

static void *consumer(void *opaque)
{
    struct stress *t = opaque;
    struct qhca_shring_rx *rx = &t->s.rx;
    uint32_t next = 0, i, got, slot;

    while (next < RECORDS) {
        switch (qhca_shring_next(rx)) {
        case OK:
            t->wrong |= rx->rec.payload != next;
            if (rx->state == QHCA_SHRING_INLINE) {
                memcpy(&got, (uint8_t *)rx->at + rx->rec.len - 4, 4);
                t->wrong |= got != next;
            } else if (rx->state == QHCA_SHRING_COPYING) {
                memcpy(&slot, rx->at + 1, sizeof(slot));
                for (i = 0; i < SLOT_LEN; i++) {
                    t->wrong |= t->slot[slot % SLOTS][i] != next;
                }
                t->copied++;
            } else {
                t->lost++;
            }
            next++;
            qhca_shring_done(rx);
            break;
        case NONE:
            if (qhca_shring_room_wanted(rx)) {
                sem_post(&t->room);
            }
            if (qhca_shring_sleep(rx)) {
                sem_wait(&t->work);
            }
            break;
        default:
            t->wrong = true;
            return NULL;
        }
    }
    if (qhca_shring_room_wanted(rx)) {
        sem_post(&t->room);
    }
    return NULL;
}

/* Revoke the memory of record @pos, and write something else there. */
static uint32_t take_back(struct stress *t, uint32_t pos, uint32_t slot)
{
    uint32_t state = QHCA_SHRING_COPYING, i;

    while (state == QHCA_SHRING_COPYING &&
           !qhca_shring_consumed(&t->s.tx, pos)) {
        state = qhca_shring_revoke(&t->s.tx, pos);
    }
    for (i = 0; i < SLOT_LEN; i++) {
        t->slot[slot][i] = 0xdeadbeef;
    }
    return state == QHCA_SHRING_REVOKED;
}

static void send_one(struct stress *t, struct rng *r, uint32_t num,
                     uint32_t *pos, uint32_t *revoked)
{
    bool refs = rng_pct(r, 50);
    uint32_t len = refs ? HEAD + 64 :
                   (HEAD + (uint32_t)rng_log(r, 60000) + 63) & ~63u;
    uint32_t slot = num % SLOTS, i;
    struct qhca_shring_record *rec;

    while (qhca_shring_reserve(&t->s.tx, len, &rec) != OK) {
        if (!qhca_shring_want_room(&t->s.tx, len)) {
            sem_wait(&t->room);
        }
    }
    rec->payload = num;
    if (refs) {
        /* the last record of a slot may still refer to it */
        *revoked += take_back(t, pos[slot], slot);
        for (i = 0; i < SLOT_LEN; i++) {
            t->slot[slot][i] = num;
        }
        memcpy(rec + 1, &slot, sizeof(slot));
        pos[slot] = qhca_shring_at(&t->s.tx);
    } else {
        memcpy((uint8_t *)rec + len - 4, &num, 4);
    }
    qhca_shring_send(&t->s.tx, rec, len, refs ? QHCA_SHRING_REFS :
                                                QHCA_SHRING_INLINE);
    if (qhca_shring_wake(&t->s.tx)) {
        sem_post(&t->work);
    }
    if (refs && rng_pct(r, 10)) {
        *revoked += take_back(t, pos[slot], slot);
    }
}

/* A bell that is lost is a test that hangs: alarm() ends it. */
static void two_threads(void **state)
{
    struct stress *t = calloc(1, sizeof(*t));
    uint32_t pos[SLOTS], i, revoked = 0;
    struct ends *s = *state;
    pthread_t thread;
    struct rng r;

    alarm(300);
    rng_init(&r, 42);
    t->s = *s;
    /* the indices wrap, too */
    ends_at(&t->s, 0u - 4 * DATA);
    for (i = 0; i < SLOTS; i++) {
        pos[i] = t->s.tx.prod - DATA;           /* long consumed */
    }
    sem_init(&t->work, 0, 0);
    sem_init(&t->room, 0, 0);
    assert_int_equal(pthread_create(&thread, NULL, consumer, t), 0);
    for (i = 0; i < RECORDS; i++) {
        send_one(t, &r, i, pos, &revoked);
        /* now and then all of it */
        while (rng_below(&r, 1000) == 0 && !qhca_shring_drained(&t->s.tx)) {
            sem_wait(&t->room);
        }
    }
    pthread_join(thread, NULL);
    alarm(0);
    assert_false(t->wrong);
    assert_int_equal(t->lost, revoked);
    assert_true(t->copied > 0);
    assert_true(qhca_shring_drained(&t->s.tx));
    sem_destroy(&t->work);
    sem_destroy(&t->room);
    free(t);
}

#define RING(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        RING(nothing), RING(in_order), RING(full), RING(to_the_end),
        RING(no_room_behind_a_skip), RING(reserved_only),
        RING(cons_that_lies), RING(revoked), RING(consumed),
        RING(new_record_bell), RING(room_bell), RING(malformed),
        RING(strange), RING(two_threads),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
