/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Shapers: contexts and commands. */
#include <stdlib.h>

#include "ethernet/ethernet.h"

#define SHAPER_MASK (QHCA_SHAPER_M_RATE | QHCA_SHAPER_M_PARENT |        \
                     QHCA_SHAPER_M_WEIGHT)

bool qhca_shaper_ok(const struct qhca_shaperc *c, size_t *at)
{
    static const uint8_t zero[sizeof(c->rsvd0)];

    if (qhca_le64(c->rate) > QHCA_SHAPER_RATE_MAX) {
        *at = offsetof(struct qhca_shaperc, rate);
    } else if (qhca_le32(c->burst) > QHCA_SHAPER_BURST_MAX) {
        *at = offsetof(struct qhca_shaperc, burst);
    } else if (!c->weight) {
        *at = offsetof(struct qhca_shaperc, weight);
    } else if (memcmp(c->rsvd0, zero, sizeof(c->rsvd0))) {
        *at = offsetof(struct qhca_shaperc, rsvd0);
    } else if (memcmp(c->rsvd1, zero, sizeof(c->rsvd1))) {
        *at = offsetof(struct qhca_shaperc, rsvd1);
    } else {
        return true;
    }
    return false;
}

/* Does every path from a shaper reach the port, in few enough steps? */
static bool shapers_end(const struct qhca *e)
{
    const struct qhca_shaper *s;
    unsigned levels;
    uint32_t n;

    for (n = 0; n < qhca_idr_end(&e->eth->shapers); n++) {
        s = qhca_idr_get(&e->eth->shapers, n);
        for (levels = 0; s; s = s->turn.up) {
            if (++levels > QHCA_SHAPER_DEPTH_MAX) {
                return false;
            }
        }
    }
    return true;
}

/* Find the parent; *@up is NULL for the port.  False: it does not exist. */
static bool shaper_find_parent(const struct qhca *e,
                               const struct qhca_shaperc *in,
                               struct qhca_shaper **up)
{
    uint32_t num = qhca_le32(in->parent);

    *up = qhca_idr_get(&e->eth->shapers, num);
    return *up || num == QHCA_SHAPER_NONE;
}

bool qhca_shaper_may_move(struct qhca *e, struct qhca_shaper *s,
                          struct qhca_shaper *up)
{
    struct qhca_shaper *was = s->turn.up;
    bool ok;

    s->turn.up = up;
    ok = shapers_end(e);
    s->turn.up = was;
    qhca_cost(e, e->eth->shapers.used);
    return ok;
}

uint8_t qhca_cmd_create_shaper(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_shaperc *in = c->in;
    struct qhca_shaper *s, *up;
    size_t bad;

    if (!qhca_shaper_ok(in, &bad)) {
        return qhca_bad(c, bad);
    }
    if (!shaper_find_parent(e, in, &up)) {
        return qhca_bad_obj(c, offsetof(struct qhca_shaperc, parent));
    }
    s = calloc(1, sizeof(*s));
    if (!s || !qhca_idr_add(&e->eth->shapers, s, &s->num)) {
        free(s);
        return QHCA_ST_NO_RESOURCES;
    }
    qhca_turn_init(&s->turn, true);
    qhca_list_init(&s->ready);
    if (!qhca_shaper_may_move(e, s, up)) {
        qhca_idr_del(&e->eth->shapers, s->num);
        free(s);
        return qhca_bad(c, offsetof(struct qhca_shaperc, parent));
    }
    s->turn.weight = in->weight;
    s->rate = qhca_le64(in->rate);
    s->burst = qhca_le32(in->burst);
    s->tokens = s->burst * QHCA_SHAPER_BYTE;
    s->since = qhca_now(e);
    s->wait_pos = QHCA_SHAPER_AWAKE;
    qhca_turn_move(e, &s->turn, up);
    c->obj = s->num;
    return QHCA_ST_OK;
}

static void shaper_free(struct qhca *e, struct qhca_shaper *s)
{
    qhca_shaper_quiet(e, s);
    qhca_turn_move(e, &s->turn, NULL);
    qhca_idr_del(&e->eth->shapers, s->num);
    free(s);
}

uint8_t qhca_cmd_destroy_shaper(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_shaper *s = qhca_idr_get(&e->eth->shapers, c->obj);

    if (!s) {
        return QHCA_ST_BAD_OBJ;
    }
    if (s->members) {
        return QHCA_ST_BUSY;
    }
    shaper_free(e, s);
    return QHCA_ST_OK;
}

/* Its tokens or debt remain, as far as they fit the new bucket. */
static void shaper_set_rate(struct qhca *e, struct qhca_shaper *s,
                            uint64_t rate, uint32_t burst)
{
    qhca_shaper_fill(s, qhca_now(e));
    s->rate = rate;
    s->burst = burst;
    if (!rate || s->tokens > burst * QHCA_SHAPER_BYTE) {
        s->tokens = burst * QHCA_SHAPER_BYTE;
    }
    qhca_shaper_wake(e, s);
}

uint8_t qhca_cmd_modify_shaper(struct qhca *e, struct qhca_cmd *c)
{
    struct qhca_shaper *s = qhca_idr_get(&e->eth->shapers, c->obj), *up;
    const struct qhca_shaperc *in = c->in;
    struct qhca_shaperc next = *in;
    size_t bad;

    if (!s) {
        return QHCA_ST_BAD_OBJ;
    }
    if (c->mask & ~SHAPER_MASK) {
        return QHCA_ST_BAD_PARAM;
    }
    if (!(c->mask & QHCA_SHAPER_M_WEIGHT)) {
        next.weight = s->turn.weight;
    }
    if (!(c->mask & QHCA_SHAPER_M_RATE)) {
        next.rate = qhca_le64(s->rate);
        next.burst = qhca_le32(s->burst);
    }
    if (!qhca_shaper_ok(&next, &bad)) {
        return qhca_bad(c, bad);
    }
    up = s->turn.up;
    if ((c->mask & QHCA_SHAPER_M_PARENT) && !shaper_find_parent(e, in, &up)) {
        return qhca_bad_obj(c, offsetof(struct qhca_shaperc, parent));
    }
    if (up != s->turn.up && !qhca_shaper_may_move(e, s, up)) {
        return qhca_bad(c, offsetof(struct qhca_shaperc, parent));
    }
    s->turn.weight = next.weight;
    if (c->mask & QHCA_SHAPER_M_RATE) {
        shaper_set_rate(e, s, qhca_le64(in->rate), qhca_le32(in->burst));
    }
    qhca_turn_move(e, &s->turn, up);
    return QHCA_ST_OK;
}

void qhca_shaper_query(const struct qhca_shaper *s, uint64_t now,
                       struct qhca_shaperc *out)
{
    struct qhca_shaper at = *s;
    int64_t byte = QHCA_SHAPER_BYTE;

    qhca_shaper_fill(&at, now);
    out->rate = qhca_le64(s->rate);
    out->burst = qhca_le32(s->burst);
    out->parent = qhca_le32(s->turn.up ? s->turn.up->num : QHCA_SHAPER_NONE);
    out->weight = s->turn.weight;
    out->waits = s->wait_pos != QHCA_SHAPER_AWAKE;
    out->members = qhca_le32(s->members);
    if (at.tokens < 0) {
        out->debt = qhca_le32((uint32_t)((byte - 1 - at.tokens) / byte));
    } else {
        out->tokens = qhca_le32((uint32_t)(at.tokens / byte));
    }
    out->frames = qhca_le64(s->frames);
    out->bytes = qhca_le64(s->bytes);
    out->held = qhca_le64(s->held);
}

uint8_t qhca_cmd_query_shaper(struct qhca *e, struct qhca_cmd *c)
{
    const struct qhca_shaper *s = qhca_idr_get(&e->eth->shapers, c->obj);

    if (!s) {
        return QHCA_ST_BAD_OBJ;
    }
    qhca_shaper_query(s, qhca_now(e), c->out);
    return QHCA_ST_OK;
}

bool qhca_shaper_isolate(struct qhca *e, uint32_t num)
{
    struct qhca_shaper *s = qhca_idr_get(&e->eth->shapers, num);

    if (s) {
        qhca_shaper_quiet(e, s);
        qhca_turn_move(e, &s->turn, NULL);
    }
    return s;
}

bool qhca_shaper_discard(struct qhca *e, uint32_t num)
{
    struct qhca_shaper *s = qhca_idr_get(&e->eth->shapers, num);

    if (s) {
        shaper_free(e, s);
    }
    return s;
}
