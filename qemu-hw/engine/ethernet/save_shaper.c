/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Saved state: shapers, their members, and whose turn it is.  The turns of the
 * port's members are saved with the other lists of work.
 */
#include <stdlib.h>

#include "ethernet/ethernet.h"

SAVED_SIZE(struct qhca_turn, 32, shaper, 1);
SAVED_SIZE(struct qhca_shaper, 136, shaper, 1);

#define TIME_MAX            (1ULL << 62)
/* More than a super-frame and its headers. */
#define DEBT_MAX            (1 << 20)   /* bytes */
#define CREDIT_MAX          (1 << 20)

static void io_bucket(struct qhca_io *io, void *obj)
{
    struct qhca_shaper tmp = { .wait_pos = QHCA_SHAPER_AWAKE };
    struct qhca_shaper *s = obj ? obj : &tmp;
    struct qhca_shaperc c = { 0 };
    uint64_t tokens;
    size_t bad;

    if (!obj) {
        qhca_turn_init(&s->turn, true);
    }
    IO(io, s->num);
    qhca_io_about(io, "shaper", s->num);
    IO(io, s->rate);
    IO(io, s->burst);
    IO(io, s->turn.weight);
    tokens = (uint64_t)s->tokens;
    IO(io, tokens);
    s->tokens = (int64_t)tokens;
    IO(io, s->since);
    IO(io, s->frames);
    IO(io, s->bytes);
    IO(io, s->held);
    c.rate = qhca_le64(s->rate);
    c.burst = qhca_le32(s->burst);
    c.weight = s->turn.weight;
    NEED(io, qhca_shaper_ok(&c, &bad), "no command could have created it");
    NEED(io, s->tokens <= s->burst * QHCA_SHAPER_BYTE &&
         s->tokens >= -DEBT_MAX * QHCA_SHAPER_BYTE && s->since < TIME_MAX,
         "its bucket cannot be like this");
    if (io->saving || io->failed) {
        return;
    }
    s = malloc(sizeof(*s));
    if (!NEED(io, s, "out of memory")) {
        return;
    }
    *s = tmp;
    qhca_list_init(&s->turn.ready);
    qhca_list_init(&s->ready);
    if (!qhca_io_place(io, &io->e->eth->shapers, s, s->num)) {
        free(s);
    }
}

/* The shaper or port that @t is a member of. */
static void io_up(struct qhca_io *io, struct qhca_turn *t)
{
    struct qhca_shaper *up = t->up;
    uint32_t credit = (uint32_t)t->credit;

    up = qhca_io_ref(io, &io->e->eth->shapers, up, up ? up->num : 0,
                     "its shaper does not exist");
    IO(io, credit);
    if (!io->saving &&
        NEED(io, (int32_t)credit <= CREDIT_MAX &&
             (int32_t)credit >= -DEBT_MAX, "its credit is out of range") &&
        NEED(io, !t->is_shaper || qhca_shaper_may_move(
             io->e, qhca_container(t, struct qhca_shaper, turn), up),
             "it is too far from the port")) {
        qhca_turn_move(io->e, t, up);
        t->credit = (int32_t)credit;
    }
}

static void io_shaper_up(struct qhca_io *io, void *obj)
{
    struct qhca_shaper *s = obj;
    uint32_t num = s ? s->num : 0;

    IO(io, num);
    qhca_io_about(io, "shaper", num);
    s = qhca_idr_get(&io->e->eth->shapers, num);
    if (NEED(io, s, "it does not exist")) {
        io_up(io, &s->turn);
    }
}

static void io_sq_up(struct qhca_io *io, void *obj)
{
    struct qhca_eth_q *q = obj;
    uint32_t num = q ? q->num : 0;

    IO(io, num);
    qhca_io_about(io, "Ethernet SQ", num);
    q = qhca_idr_get(&io->e->eth->eth_sqs, num);
    if (NEED(io, q, "it does not exist")) {
        io_up(io, &q->turn);
    }
}

/* ---- turns ---- */

#define IS_SHAPER           (1u << 31)

uint32_t qhca_turn_num(struct qhca_list *ready)
{
    struct qhca_turn *t = qhca_container(ready, struct qhca_turn, ready);

    return t->is_shaper ?
           qhca_container(t, struct qhca_shaper, turn)->num | IS_SHAPER :
           qhca_container(t, struct qhca_eth_q, turn)->num;
}

/* Member @num, if it may be ready; its parent is not checked. */
static struct qhca_turn *shaper_turn_by_num(struct qhca *e, uint32_t num)
{
    struct qhca_shaper *s;
    struct qhca_eth_q *q;

    if (num & IS_SHAPER) {
        s = qhca_idr_get(&e->eth->shapers, num & ~IS_SHAPER);
        return s ? &s->turn : NULL;
    }
    q = qhca_idr_get(&e->eth->eth_sqs, num);
    return q && q->state == QHCA_WQS_RDY && q->ring.head != q->ring.tail ?
           &q->turn : NULL;
}

struct qhca_list *qhca_turn_link(struct qhca *e, uint32_t num)
{
    struct qhca_turn *t = shaper_turn_by_num(e, num);

    return t && !t->up ? &t->ready : NULL;
}

static void io_ready(struct qhca_io *io, void *obj)
{
    struct qhca_shaper *s = obj;
    bool waits = s && s->wait_pos != QHCA_SHAPER_AWAKE;
    uint32_t num = s ? s->num : 0, n = 0, i;
    uint64_t until = waits ? s->until : 0, opens;
    struct qhca_list *l;
    struct qhca_turn *t;

    IO(io, num);
    qhca_io_about(io, "shaper", num);
    s = qhca_idr_get(&io->e->eth->shapers, num);
    if (!NEED(io, s && qhca_list_empty(&s->ready) &&
              s->wait_pos == QHCA_SHAPER_AWAKE,
              "it does not exist, or is there twice")) {
        return;
    }
    IO(io, waits);
    IO(io, until);
    if (!io->saving && waits && NEED(io, until < TIME_MAX,
                                     "it waits for too long")) {
        /* nothing waits for longer than its debt lasts */
        opens = qhca_shaper_opens(s, qhca_now(io->e));
        s->until = until < opens ? until : opens;
        qhca_shaper_sleep(io->e, s);
    }
    for (l = s->ready.next; io->saving && l != &s->ready; l = l->next) {
        n++;
    }
    IO(io, n);
    l = s->ready.next;
    for (i = 0; i < n && !io->failed; i++) {
        if (io->saving) {
            num = qhca_turn_num(l);
            l = l->next;
        }
        IO(io, num);
        if (io->saving) {
            continue;
        }
        t = shaper_turn_by_num(io->e, num);
        if (NEED(io, t && t->up == s && qhca_list_empty(&t->ready),
                 "the wrong member is ready, or one twice")) {
            qhca_list_add_tail(&s->ready, &t->ready);
        }
    }
}

bool qhca_shapers_loaded_ok(struct qhca *e)
{
    const struct qhca_shaper *s;
    bool ready, waits;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(&e->eth->shapers); n++) {
        s = qhca_idr_get(&e->eth->shapers, n);
        if (!s) {
            continue;
        }
        ready = !qhca_list_empty(&s->turn.ready);
        waits = s->wait_pos != QHCA_SHAPER_AWAKE;
        if ((ready && waits) ||
            (ready || waits) != !qhca_list_empty(&s->ready)) {
            return false;
        }
    }
    return true;
}

void qhca_io_shapers(struct qhca_io *io)
{
    struct qhca_ethernet *eth = io->e->eth;

    qhca_io_numbers(io, &eth->shapers);
    qhca_io_each(io, &eth->shapers, NULL, io_bucket);
    qhca_io_numbers_end(io, &eth->shapers);
    qhca_io_each(io, &eth->shapers, NULL, io_shaper_up);
    qhca_io_each(io, &eth->eth_sqs, NULL, io_sq_up);
    qhca_io_each(io, &eth->shapers, NULL, io_ready);
}
