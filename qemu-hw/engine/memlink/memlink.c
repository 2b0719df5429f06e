/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The memory links of an adapter: which exist, what they wait for, and when
 * packets use them.
 */
#include <stdlib.h>

#include "memlink/memlink.h"

#define MAX_LINKS       64
/*
 * How long the second marker may take, while packets wait: shorter than the ACK
 * timeouts that applications use.  It is sent again meanwhile, as it may get
 * lost.
 */
#define HOLD_NS         1000000ULL
#define HOLD_TRIES      10

/* A marker: a frame with an EtherType for local experiments (IEEE 802). */
#define MARKER_TYPE     0x88b5
#define MARKER_MAGIC    0x71684d4c      /* qhML */
#define MARKER_LEN      60

_Static_assert(QHCA_MEMLINK_RING_BYTES == sizeof(struct qhca_shring),
               "the environment is told another size");
_Static_assert(sizeof(struct qhca_shring_record) +
               QHCA_MEMLINK_SEGS * sizeof(struct qhca_shring_seg) <=
               QHCA_MEMLINK_ROOM, "no room for all segments of a record");
_Static_assert(8 * QHCA_MEMLINK_ROOM <= QHCA_SHRING_DATA,
               "a ring has room for a few records only");

static struct qhca_list *link_hash(struct qhca *e, const uint8_t mac[6])
{
    return &e->ml->hash[(mac[3] ^ mac[4] ^ mac[5]) % QHCA_MEMLINK_HASH];
}

static struct qhca_memlink *memlink_get(struct qhca *e, unsigned id)
{
    struct qhca_list *i;

    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (l->id == id) {
            return l;
        }
    }
    return NULL;
}

void qhca_memlinks_init(struct qhca *e,
                        void (*took_back)(struct qhca *e, uint32_t qpn))
{
    unsigned i;

    e->ml->took_back = took_back;
    qhca_list_init(&e->ml->all);
    qhca_list_init(&e->ml->woken);
    for (i = 0; i < QHCA_MEMLINK_HASH; i++) {
        qhca_list_init(&e->ml->hash[i]);
    }
}

uint64_t qhca_memlink_received(struct qhca *e, unsigned id)
{
    const struct qhca_memlink *l = memlink_get(e, id);

    return l ? l->received : 0;
}

/* ---- waiting ---- */

/*
 * Make the QPs that wait for @l run.  The deadline stays until they get what
 * they waited for; otherwise a peer that keeps ringing its doorbell could delay
 * them indefinitely.
 */
static void wake_waiting(struct qhca *e, struct qhca_memlink *l)
{
    if (!qhca_list_empty(&l->waiting)) {
        qhca_list_splice_tail(&e->ml->woken, &l->waiting);
        qhca_kick(e);
    }
}

void qhca_memlinks_wake(struct qhca *e)
{
    struct qhca_list *i;

    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        wake_waiting(e, qhca_container(i, struct qhca_memlink, link));
    }
}

/* Make the QP that is being run wait for @l, for at most @patience ns. */
static enum qhca_memlink_way link_wait(struct qhca *e, struct qhca_memlink *l,
                                       uint64_t patience)
{
    if (!l->deadline) {
        l->deadline = qhca_now(e) + patience;
        l->seen_cons = atomic_load(&l->tx.ring->cons);
    }
    e->tx_wait = &l->waiting;
    e->ml->waiting = true;
    return QHCA_WAY_WAIT;
}

uint64_t qhca_memlinks_deadline(const struct qhca *e)
{
    uint64_t first = UINT64_MAX;
    struct qhca_list *i;

    if (!e->ml->waiting) {
        return first;
    }
    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (l->deadline && l->deadline < first) {
            first = l->deadline;
        }
        if (l->unsettled && l->settle_deadline < first) {
            first = l->settle_deadline;
        }
    }
    return first;
}

/*
 * The value of the next marker (splitmix64).  A peer that does not see it on
 * the wire could otherwise claim to have seen it.
 */
static uint32_t next_marker(struct qhca_memlink *l)
{
    uint32_t num;

    do {
        uint64_t z = l->secret += 0x9e3779b97f4a7c15;

        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
        z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
        num = (z ^ (z >> 31)) >> 32;
    } while (!num || num == l->marker);
    return num;
}

/* Send marker @num; false: the wire is busy. */
static bool memlink_send_marker(struct qhca *e, struct qhca_memlink *l,
                                uint32_t num)
{
    uint8_t frame[MARKER_LEN] = { 0 };

    memcpy(frame, l->mac, 6);
    memcpy(frame + 6, e->mac, 6);
    qhca_put_be16(frame + 12, MARKER_TYPE);
    qhca_put_be32(frame + 14, MARKER_MAGIC);
    qhca_put_be64(frame + 18, l->token);
    qhca_put_be32(frame + 26, num);
    /* the ends as the hellos have them: they may have other addresses now */
    memcpy(frame + 30, e->cfg.mac, 6);
    memcpy(frame + 36, l->mac, 6);
    if (!qhca_tx(e, frame, sizeof(frame))) {
        return false;
    }
    l->marker = num;
    return true;
}

static void link_late(struct qhca *e, struct qhca_memlink *l, uint64_t now)
{
    uint32_t cons = atomic_load(&l->tx.ring->cons);

    if (l->state == QHCA_MEMLINK_HOLD && --l->tries) {
        l->deadline = now + HOLD_NS;
        memlink_send_marker(e, l, l->marker);
    } else if (l->state == QHCA_MEMLINK_HOLD) {
        l->state = QHCA_MEMLINK_WIRE;
        l->deadline = 0;
        l->retry_at = now + QHCA_MEMLINK_PATIENCE_NS;
        wake_waiting(e, l);
    } else if (qhca_list_empty(&l->waiting)) {
        l->deadline = 0;        /* the QPs that waited are gone */
    } else if (cons != l->seen_cons) {
        l->seen_cons = cons;
        l->deadline = now + QHCA_MEMLINK_PATIENCE_NS;
    } else {
        qhca_memlink_cut(e, l, "the peer does not receive");
    }
}

bool qhca_memlink_settle(struct qhca *e, struct qhca_memlink *l)
{
    if (!qhca_shring_want_consumed(&l->tx, l->settle_pos)) {
        return false;
    }
    l->unsettled = false;
    wake_waiting(e, l);
    return true;
}

void qhca_memlink_give_up(struct qhca *e, struct qhca_memlink *l)
{
    qhca_memlink_cut(e, l, "the peer does not finish a copy");
    l->ref_tail = l->ref_head;
    l->unsettled = false;
    wake_waiting(e, l);         /* if it was cut earlier */
}

void qhca_memlinks_timer(struct qhca *e, uint64_t now)
{
    struct qhca_list *i;

    if (!e->ml->waiting) {
        return;
    }
    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (l->unsettled && l->settle_deadline <= now &&
            !qhca_memlink_settle(e, l)) {
            qhca_memlink_give_up(e, l);
        }
        if (l->deadline && l->deadline <= now) {
            link_late(e, l, now);
        }
    }
}

/* ---- revoked while the peer was copying ---- */

bool qhca_memlinks_settled(struct qhca *e)
{
    struct qhca_list *i;

    if (!e->ml->unsettled) {
        return true;
    }
    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (l->unsettled && !qhca_memlink_settle(e, l)) {
            return false;
        }
    }
    e->ml->unsettled = false;
    return true;
}

void qhca_memlinks_hurry(struct qhca *e)
{
    uint64_t latest = qhca_now(e) + QHCA_MEMLINK_HURRY_NS;
    struct qhca_list *i;

    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (l->unsettled && l->settle_deadline > latest) {
            l->settle_deadline = latest;
        }
    }
}

bool qhca_memlinks_settled_for_qp(struct qhca *e, uint32_t qpn)
{
    struct qhca_list *i;

    if (qhca_memlinks_settled(e)) {
        return true;
    }
    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (l->unsettled && qhca_memlink_copies(l, qpn) &&
            !qhca_memlink_settle(e, l)) {
            e->tx_wait = &l->waiting;
            return false;
        }
    }
    return true;
}

/* ---- the life of a link ---- */

unsigned qhca_memlink_attach(struct qhca *e,
                             const struct qhca_memlink_config *c)
{
    struct qhca_memlink *l;

    if (e->ml->n == MAX_LINKS || !e->ops.memlink_bell || !e->ops.dma_share) {
        return 0;
    }
    l = calloc(1, sizeof(*l) + c->regions * sizeof(l->region[0]));
    if (!l) {
        return 0;
    }
    l->id = ++e->ml->last_id;
    memcpy(l->mac, c->mac, sizeof(l->mac));
    l->token = c->token;
    l->secret = c->secret;
    l->tx.ring = c->tx;
    l->rx.ring = c->rx;
    l->regions = c->regions;
    memcpy(l->region, c->region, c->regions * sizeof(l->region[0]));
    l->pending = true;
    qhca_list_init(&l->waiting);
    qhca_list_add_tail(&e->ml->all, &l->link);
    qhca_list_add_tail(link_hash(e, l->mac), &l->same_hash);
    e->ml->n++;
    e->ml->pending = true;
    atomic_store(&l->rx.ring->refuses, !e->ml->usable);
    qhca_kick(e);
    return l->id;
}

/* Remove @l, for which no QP waits any more. */
static void link_remove(struct qhca *e, struct qhca_memlink *l)
{
    qhca_memlink_abandon(e, l);
    qhca_list_del(&l->link);
    qhca_list_del(&l->same_hash);
    e->ml->n--;
    free(l);
}

void qhca_memlink_detach(struct qhca *e, unsigned id)
{
    struct qhca_memlink *l = memlink_get(e, id);

    if (l) {
        wake_waiting(e, l);
        link_remove(e, l);
        qhca_kick(e);
    }
}

void qhca_memlinks_free(struct qhca *e)
{
    struct qhca_memlink *l;

    while (!qhca_list_empty(&e->ml->all)) {
        l = qhca_container(e->ml->all.next, struct qhca_memlink, link);
        /* no kick: the QPs are freed, too */
        qhca_list_splice_tail(&e->ml->woken, &l->waiting);
        link_remove(e, l);
    }
}

void qhca_memlinks_reset(struct qhca *e)
{
    e->ml->deferred = false;
    qhca_memlinks_update(e);
    if (e->ml->pending) {
        qhca_kick(e);           /* to drop what is in the rings */
    }
}

/* It is no longer used, and unsettled if the peer is copying. */
static void link_end(struct qhca *e, struct qhca_memlink *l)
{
    l->dead = true;
    l->state = QHCA_MEMLINK_WIRE;
    l->pending = false;
    l->deadline = 0;
    qhca_memlink_abandon(e, l);
    qhca_list_del(&l->same_hash);
    wake_waiting(e, l);
}

void qhca_memlink_cut(struct qhca *e, struct qhca_memlink *l, const char *why)
{
    if (!l->dead) {
        link_end(e, l);
        e->ops.memlink_cut(e->opaque, l->id, why);
    }
}

void qhca_memlink_end(struct qhca *e, unsigned id)
{
    struct qhca_memlink *l = memlink_get(e, id);

    if (l && !l->dead) {
        link_end(e, l);
        qhca_kick(e);
    }
}

void qhca_memlink_bell(struct qhca *e, unsigned id)
{
    struct qhca_memlink *l = memlink_get(e, id);

    if (l && !l->dead) {
        l->pending = true;
        e->ml->pending = true;
        wake_waiting(e, l);
        qhca_kick(e);
    }
}

/* Observers and fault rules need the packets on the wire, one by one. */
static bool memlinks_usable(const struct qhca *e)
{
    return e->ml->allowed && e->link && !e->fault_sites && !e->debugging &&
           !e->sniff && qhca_active(e);
}

void qhca_memlinks_revoke(struct qhca *e)
{
    qhca_memlink_revoke_all(e);
}

void qhca_memlinks_allow(struct qhca *e, bool allowed)
{
    e->ml->allowed = allowed;
    qhca_memlinks_update(e);
}

void qhca_memlinks_update(struct qhca *e)
{
    bool usable = memlinks_usable(e), changed = usable != e->ml->usable;
    struct qhca_list *i;

    if (!e->ml->n || (!changed && !e->ml->waiting)) {
        return;
    }
    e->ml->usable = usable;
    e->ml->waiting = false;
    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        if (changed) {
            atomic_store(&l->rx.ring->refuses, !usable);
            wake_waiting(e, l);
        }
        e->ml->waiting |= l->deadline || l->unsettled ||
                          !qhca_list_empty(&l->waiting);
    }
}

/* ---- markers, and the way that packets take ---- */

bool qhca_memlink_marker(struct qhca *e, const uint8_t *frame, size_t len)
{
    struct qhca_list *i;

    if (!e->ml->n || len < MARKER_LEN ||
        qhca_get_be16(frame + 12) != MARKER_TYPE ||
        qhca_get_be32(frame + 14) != MARKER_MAGIC) {
        return false;
    }
    for (i = e->ml->all.next; i != &e->ml->all; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink, link);

        /* A peer may use the token of one link for another. */
        if (l->token == qhca_get_be64(frame + 18) && !l->dead &&
            !memcmp(frame + 30, l->mac, 6) &&
            !memcmp(frame + 36, e->cfg.mac, 6)) {
            atomic_store(&l->rx.ring->marker, qhca_get_be32(frame + 26));
            e->ops.memlink_bell(e->opaque, l->id);
            return true;
        }
    }
    return false;
}

static bool marker_seen(const struct qhca_memlink *l)
{
    return atomic_load(&l->tx.ring->marker) == l->marker;
}

/* The wire is in use: can the link be used instead? */
static enum qhca_memlink_way memlink_way(struct qhca *e, struct qhca_memlink *l)
{
    uint64_t now;

    if (l->state == QHCA_MEMLINK_PROBE && marker_seen(l)) {
        if (!memlink_send_marker(e, l, next_marker(l))) {
            return QHCA_WAY_WIRE;
        }
        l->state = QHCA_MEMLINK_HOLD;
        l->tries = HOLD_TRIES;
        return link_wait(e, l, HOLD_NS);
    }
    now = qhca_now(e);
    if (now >= l->retry_at && memlink_send_marker(e, l, next_marker(l))) {
        l->state = QHCA_MEMLINK_PROBE;
        l->retry_at = now + QHCA_MEMLINK_PATIENCE_NS;
    }
    return QHCA_WAY_WIRE;
}

/* Find room for a record. */
static enum qhca_memlink_way memlink_take_room(struct qhca *e,
                                               struct qhca_memlink *l,
                                               bool parting)
{
    /* Some room is reserved for packets that cannot wait. */
    uint32_t need = parting ? sizeof(*l->rec) : QHCA_MEMLINK_ROOM;

    switch (qhca_shring_reserve(&l->tx, need, &l->rec)) {
    case QHCA_SHRING_OK:
        break;
    case QHCA_SHRING_NONE:
        /* GCOVR_EXCL_START: only if the peer makes room at this moment */
        if (qhca_shring_want_room(&l->tx, need) &&
            qhca_shring_reserve(&l->tx, need, &l->rec) == QHCA_SHRING_OK) {
            break;
        }
        /* GCOVR_EXCL_STOP */
        return link_wait(e, l, QHCA_MEMLINK_PATIENCE_NS);
    default:
        qhca_memlink_cut(e, l, "the peer has broken the ring's rules");
        return QHCA_WAY_WIRE;
    }
    if (!parting) {
        l->deadline = 0;
    }
    return QHCA_WAY_LINK;
}

static struct qhca_memlink *memlink_find(struct qhca *e, const uint8_t mac[6])
{
    struct qhca_list *head = link_hash(e, mac), *i;

    for (i = head->next; i != head; i = i->next) {
        struct qhca_memlink *l = qhca_container(i, struct qhca_memlink,
                                                same_hash);

        if (!memcmp(l->mac, mac, 6)) {
            return l;
        }
    }
    return NULL;
}

/* Do both ends want packets to take it? */
static bool link_wanted(const struct qhca *e, const struct qhca_memlink *l)
{
    return memlinks_usable(e) && !atomic_load(&l->tx.ring->refuses);
}

bool qhca_memlink_is_up(struct qhca *e, const uint8_t mac[6])
{
    const struct qhca_memlink *l = e->ml->n ? memlink_find(e, mac) : NULL;

    return l && l->state == QHCA_MEMLINK_UP && link_wanted(e, l);
}

enum qhca_memlink_way qhca_memlink_way(struct qhca *e, const uint8_t mac[6],
                                       bool parting, struct qhca_memlink **lp)
{
    struct qhca_memlink *l;
    bool wanted;

    if (!e->ml->n) {
        return QHCA_WAY_WIRE;
    }
    l = memlink_find(e, mac);
    if (!l) {
        return QHCA_WAY_WIRE;
    }
    *lp = l;
    wanted = link_wanted(e, l);
    switch (l->state) {
    case QHCA_MEMLINK_HOLD:
        if (marker_seen(l)) {
            l->state = QHCA_MEMLINK_UP;
            l->deadline = 0;
            break;
        }
        return parting ? QHCA_WAY_WIRE : link_wait(e, l, HOLD_NS);
    case QHCA_MEMLINK_UP:
    case QHCA_MEMLINK_DRAIN:
        break;
    default:
        return wanted && !parting ? memlink_way(e, l) : QHCA_WAY_WIRE;
    }
    if (wanted) {
        l->state = QHCA_MEMLINK_UP;
    } else if (qhca_shring_drained(&l->tx)) {
        l->state = QHCA_MEMLINK_WIRE;
        l->deadline = 0;
        return QHCA_WAY_WIRE;
    } else {
        l->state = QHCA_MEMLINK_DRAIN;
        if (!parting) {
            return link_wait(e, l, QHCA_MEMLINK_PATIENCE_NS);
        }
    }
    return memlink_take_room(e, l, parting);
}
