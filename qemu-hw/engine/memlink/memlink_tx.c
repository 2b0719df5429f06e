/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Memory links: sending records, and revoking what they refer to. */
#include "memlink/memlink.h"

/*
 * See memlink_ack_waits(): acknowledgments that one request may answer, turns
 * that are needed, and how many waits are worth one in vain, which takes that
 * much longer than a wakeup.
 */
#define ACKS_MAX    4
#define TURNS       8u
#define DOUBTS_MAX  13
#define WAITS_WORTH 100

/*
 * Forget records that no longer refer to memory.  This is done for each record
 * sent, so that no position is remembered for so long that it recurs.
 */
static void memlink_forget_consumed(struct qhca_memlink *l)
{
    /* Records are consumed in order. */
    while (l->ref_tail != l->ref_head &&
           qhca_shring_consumed(&l->tx, l->ref[l->ref_tail %
                                             QHCA_MEMLINK_REFS].pos)) {
        l->ref_tail++;
    }
}

bool qhca_memlink_refs_begin(struct qhca *e, struct qhca_memlink *l,
                             uint32_t qpn, bool asks)
{
    struct qhca_memlink_refs *r = &e->ml->out;

    memlink_forget_consumed(l);
    r->unfit = l->ref_head - l->ref_tail == QHCA_MEMLINK_REFS;
    r->segs = 0;
    r->keys = 0;
    r->qpn = qpn;
    r->asks = asks;
    return !r->unfit;
}

void qhca_memlink_refs_add(struct qhca *e, uint64_t addr, uint32_t len)
{
    struct qhca_memlink_refs *r = &e->ml->out;
    struct qhca_shring_seg *s = &r->seg[r->segs];
    uint32_t region;
    uint64_t off;

    qhca_cost(e, 1);
    if (r->unfit || !e->ops.dma_share(e->opaque, addr, len, &region, &off)) {
        r->unfit = true;
        return;
    }
    if (r->segs && s[-1].region == region && s[-1].off + s[-1].len == off) {
        s[-1].len += len;
        return;
    }
    if (r->segs == QHCA_MEMLINK_SEGS) {
        r->unfit = true;
        return;
    }
    *s = (struct qhca_shring_seg) { .off = off, .len = len, .region = region };
    r->segs++;
}

void qhca_memlink_refs_key(struct qhca *e, uint32_t index)
{
    struct qhca_memlink_refs *r = &e->ml->out;
    uint32_t i;

    for (i = 0; i < r->keys; i++) {
        if (r->key[i] == index) {
            return;
        }
    }
    if (r->keys == QHCA_MEMLINK_KEYS) {
        r->unfit = true;
    } else {
        r->key[r->keys++] = index;
    }
}

/* Remember what the next record refers to. */
static void memlink_remember(struct qhca *e, struct qhca_memlink *l)
{
    const struct qhca_memlink_refs *r = &e->ml->out;
    struct qhca_memlink_ref *ref = &l->ref[l->ref_head++ % QHCA_MEMLINK_REFS];

    ref->pos = qhca_shring_at(&l->tx);
    ref->qpn = r->qpn;
    ref->asks = r->asks;
    ref->keys = r->keys;
    memcpy(ref->key, r->key, r->keys * sizeof(r->key[0]));
    e->ml->refs = true;
    l->sent_refs++;
}

/* A request was sent: count those in a row that followed acknowledgments. */
static void memlink_count_turn(struct qhca_memlink *l)
{
    l->turns = l->acks && l->acks <= ACKS_MAX ? l->turns + 1 : 0;
    l->acks = 0;
}

/*
 * May the acknowledgment just sent wait for the bell of the next record?  To
 * wake a peer costs more than all the rest of a small message.  Two programs
 * that send to each other in turn need no bell for acknowledgments: that of the
 * answer, or of the next question, is enough.  But an acknowledgment that waits
 * in vain delays a program that sends only when its last message is
 * acknowledged: if that happens too often, it takes twice as many turns until
 * one waits again.
 */
static bool memlink_ack_waits(struct qhca *e, struct qhca_memlink *l)
{
    if (++l->acks > ACKS_MAX || l->turns < TURNS << l->doubts ||
        !e->ops.memlink_bell_soon || !qhca_shring_sleeps(&l->tx)) {
        return false;
    }
    if (!e->ops.memlink_bell_soon(e->opaque, l->id)) {
        l->doubts = l->waits >= WAITS_WORTH ? 0 :
                    l->doubts + (l->doubts < DOUBTS_MAX);
        l->turns = 0;
        l->waits = 0;
        return false;
    }
    l->waits++;
    return true;
}

void qhca_memlink_send(struct qhca *e, struct qhca_memlink *l,
                       const uint8_t *head, uint32_t len, uint32_t payload,
                       uint16_t mtu, uint16_t packets, bool refs,
                       enum qhca_memlink_kind kind)
{
    const struct qhca_memlink_refs *r = &e->ml->out;
    struct qhca_shring_record *rec = l->rec;
    uint32_t body = payload;

    memlink_forget_consumed(l);
    rec->payload = payload;
    rec->head = (uint16_t)len;
    rec->mtu = mtu;
    rec->packets = packets;
    rec->segs = 0;
    memcpy(rec->heads, head, len);
    if (refs) {
        rec->segs = (uint16_t)r->segs;
        body = r->segs * (uint32_t)sizeof(r->seg[0]);
        memcpy(rec + 1, r->seg, body);
        memlink_remember(e, l);
    }
    l->sent++;
    l->rec = NULL;
    qhca_shring_send(&l->tx, rec, (uint32_t)sizeof(*rec) + body,
                     refs ? QHCA_SHRING_REFS : QHCA_SHRING_INLINE);
    if (kind == QHCA_MEMLINK_REQUEST) {
        memlink_count_turn(l);
    }
    if ((kind != QHCA_MEMLINK_ACK || !memlink_ack_waits(e, l)) &&
        qhca_shring_wake(&l->tx)) {
        e->ops.memlink_bell(e->opaque, l->id);
    }
}

/* ---- revoking ---- */

/* Remember that the peer is copying the record at @pos. */
static void memlink_unsettle(struct qhca *e, struct qhca_memlink *l,
                             uint32_t pos)
{
    if (!l->unsettled) {
        l->unsettled = true;
        l->settle_deadline = qhca_now(e) + QHCA_MEMLINK_PATIENCE_NS;
        l->settle_pos = pos;
    } else if ((int32_t)(pos - l->settle_pos) > 0) {
        l->settle_pos = pos;
    }
    e->ml->unsettled = true;
    e->ml->waiting = true;
}

/* Let the peer finish, for at most as long as the environment waits. */
static void memlink_settle(struct qhca *e, struct qhca_memlink *l)
{
    while (l->unsettled && !qhca_memlink_settle(e, l)) {
        if (!e->ops.memlink_wait(e->opaque, l->id)) {
            qhca_memlink_give_up(e, l);
        }
    }
}

/* Revoke the record of @ref; true: the peer is copying what it refers to. */
static bool memlink_revoke(struct qhca *e, struct qhca_memlink *l,
                           const struct qhca_memlink_ref *ref)
{
    uint32_t state = qhca_shring_revoke(&l->tx, ref->pos);

    if (state == QHCA_SHRING_COPYING) {
        memlink_unsettle(e, l, ref->pos);
    }
    if (state == QHCA_SHRING_REVOKED) {
        l->revoked++;
        if (ref->asks) {
            e->ml->took_back(e, ref->qpn);
        }
    }
    return state == QHCA_SHRING_COPYING;
}

#define REFS_PER_ACCESS     8   /* refs examined at the cost of one */

enum match { MATCH_ALL, MATCH_KEY, MATCH_QP };

static bool ref_matches(const struct qhca_memlink_ref *ref, enum match what,
                        uint32_t num)
{
    uint32_t i;

    for (i = 0; what == MATCH_KEY && i < ref->keys; i++) {
        if (ref->key[i] == num) {
            return true;
        }
    }
    return what == MATCH_ALL || (what == MATCH_QP && ref->qpn == num);
}

static void revoke_matching(struct qhca *e, enum match what, uint32_t num)
{
    uint32_t looked_at = 0, k;
    bool refs = false, copying = false;
    struct qhca_list *i;

    if (!e->ml->refs) {
        return;
    }
    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        for (k = l->ref_tail; k != l->ref_head; k++) {
            const struct qhca_memlink_ref *ref = &l->ref[k %
                                                         QHCA_MEMLINK_REFS];

            looked_at++;
            if (qhca_shring_consumed(&l->tx, ref->pos)) {
                l->ref_tail = k + 1;
            } else if (ref_matches(ref, what, num)) {
                l->settling |= memlink_revoke(e, l, ref);
            }
        }
        copying |= l->settling;
        l->settling &= !e->ml->defer;
        refs |= l->ref_tail != l->ref_head;
    }
    e->ml->refs = refs;
    qhca_cost(e, looked_at / REFS_PER_ACCESS);
    e->ml->deferred |= copying && e->ml->defer;
    /* Only now: while one peer is waited for, the others end their copies. */
    for (i = e->ml->all.next; copying && i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (l->settling) {
            l->settling = false;
            memlink_settle(e, l);
        }
    }
}

void qhca_memlink_abandon(struct qhca *e, struct qhca_memlink *l)
{
    uint32_t k;

    memlink_forget_consumed(l);
    for (k = l->ref_tail; k != l->ref_head; k++) {
        memlink_revoke(e, l, &l->ref[k % QHCA_MEMLINK_REFS]);
    }
}

bool qhca_memlink_copies(struct qhca_memlink *l, uint32_t qpn)
{
    uint32_t k;

    memlink_forget_consumed(l);
    for (k = l->ref_tail; k != l->ref_head; k++) {
        const struct qhca_memlink_ref *ref = &l->ref[k % QHCA_MEMLINK_REFS];

        if (ref->qpn == qpn &&
            qhca_shring_revoke(&l->tx, ref->pos) == QHCA_SHRING_COPYING) {
            return true;
        }
    }
    return false;
}

void qhca_memlink_revoke_key(struct qhca *e, uint32_t index)
{
    revoke_matching(e, MATCH_KEY, index);
}

void qhca_memlink_revoke_qp(struct qhca *e, uint32_t qpn)
{
    revoke_matching(e, MATCH_QP, qpn);
}

void qhca_memlink_revoke_all(struct qhca *e)
{
    revoke_matching(e, MATCH_ALL, 0);
}
