/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory links: receiving records.  All contents of a record are checked here,
 * except the packet that its headers describe.
 */
#include "memlink/memlink.h"

/* The payload follows the record. */
static bool memlink_take_inline(struct qhca *e, const struct qhca_shring_rx *r)
{
    if (r->rec.payload > r->rec.len - sizeof(r->rec)) {
        return false;
    }
    e->ml->piece[0].data = (const uint8_t *)(r->at + 1);
    e->ml->piece[0].len = r->rec.payload;
    return true;
}

/* The payload is in the peer's memory. */
static bool memlink_take_refs(struct qhca *e, const struct qhca_memlink *l)
{
    const struct qhca_shring_rx *r = &l->rx;
    uint32_t i, left = r->rec.payload;
    struct qhca_shring_seg s;

    if (!r->rec.segs || r->rec.segs > QHCA_MEMLINK_SEGS ||
        r->rec.segs * sizeof(s) > r->rec.len - sizeof(r->rec)) {
        return false;
    }
    qhca_cost(e, r->rec.segs);
    for (i = 0; i < r->rec.segs; i++) {
        const struct qhca_memlink_region *m;

        memcpy(&s, (const char *)(r->at + 1) + i * sizeof(s), sizeof(s));
        if (s.region >= l->regions || !s.len || s.len > left) {
            return false;
        }
        m = &l->region[s.region];
        if (s.off > m->len || s.len > m->len - s.off) {
            return false;
        }
        e->ml->piece[i].data = m->base + s.off;
        e->ml->piece[i].len = s.len;
        left -= s.len;
    }
    return !left;
}

static bool memlink_take_record(struct qhca *e, struct qhca_memlink *l,
                                struct qhca_memlink_frame *f)
{
    const struct qhca_shring_record *rec = &l->rx.rec;

    if (rec->head < QHCA_ETH_HLEN || rec->head > QHCA_SHRING_HEAD_MAX ||
        !rec->packets || rec->packets > QHCA_MEMLINK_PACKETS) {
        return false;
    }
    memcpy(e->ml->head, rec->heads, rec->head);
    memset(e->ml->head + rec->head, 0, 4);
    f->head = e->ml->head;
    f->len = rec->head + 4u;
    f->payload = rec->payload;
    f->mtu = rec->mtu;
    f->packets = rec->packets;
    f->lost = l->rx.state == QHCA_SHRING_REVOKED;
    f->piece = e->ml->piece;
    f->pieces = l->rx.state == QHCA_SHRING_INLINE ? 1 : rec->segs;
    if (f->lost) {
        return true;
    }
    return l->rx.state == QHCA_SHRING_INLINE ? memlink_take_inline(e, &l->rx) :
                                               memlink_take_refs(e, l);
}

bool qhca_memlink_next(struct qhca *e, struct qhca_memlink *l,
                       struct qhca_memlink_frame *f)
{
    enum qhca_shring_result got;

    if (l->dead) {
        return false;
    }
    got = qhca_shring_next(&l->rx);
    if (got == QHCA_SHRING_OK && memlink_take_record(e, l, f)) {
        l->received++;
        l->lost += f->lost;
        return true;
    }
    if (got != QHCA_SHRING_NONE) {
        qhca_memlink_cut(e, l, "the peer has sent a malformed record");
    }
    return false;
}

void qhca_memlink_done(struct qhca *e, struct qhca_memlink *l)
{
    (void)e;
    qhca_shring_done(&l->rx);
}

void qhca_memlink_pause(struct qhca *e, struct qhca_memlink *l)
{
    if (!l->dead) {
        l->pending = !qhca_shring_sleep(&l->rx);
        if (qhca_shring_room_wanted(&l->rx)) {
            e->ops.memlink_bell(e->opaque, l->id);
        }
    }
}
