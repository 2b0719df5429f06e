/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Changes of the structure of a saved state, which leave all else right: those
 * of single fields hardly ever lead there.
 */
#ifndef QHCA_TEST_FUZZ_SAVE_EDIT_H
#define QHCA_TEST_FUZZ_SAVE_EDIT_H

#include "fuzz.h"
#include "saved.h"

/*
 * A flag that is @set, one of the first 8 of @r: those that say whether there
 * is a reference, which follows.  0: it has none.
 */
static size_t edit_flag_of(const struct saved *s, const struct saved_rec *r,
                           bool set, uint8_t pick)
{
    size_t at, next, found[8], end = r->at + r->len;
    unsigned n = 0;

    for (at = r->at; at < end && n < 8; at = next) {
        next = saved_skip(s, at, 1);
        if (s->b[at] == 'b' && s->b[at + 1] == set &&
            (!set || (next < end && s->b[next] == 4))) {
            found[n++] = at;
        }
    }
    return n ? found[pick % n] : 0;
}

/* The same of @r or, if it has none, of the next record that does. */
static size_t edit_flag(const struct saved *s, const struct saved_rec *r,
                        bool set, uint8_t pick)
{
    size_t at = 0;
    unsigned i;

    for (i = 0; i < s->recs && !at; i++) {
        at = edit_flag_of(s, &s->rec[(r - s->rec + i) % s->recs], set, pick);
    }
    return at;
}

/* Record @r in the list of @to, with its number if that is the same table. */
static void edit_move(struct saved *s, struct saved_rec *r,
                      const struct saved_rec *to)
{
    bool same = r->idr == to->idr;

    if (!r->idr || !to->idr) {
        return;
    }
    saved_copy(s, r, to, same ? r->num :
                         saved_u32(s, to->numbers + SAVED_U32));
    saved_splice(s, r->at, r->len, NULL, 0);
    saved_more(s, r->list, -1);
    if (!same) {
        saved_give_back(s, r, r->num);
    }
}

static void edit_renumber(struct saved *s, struct saved_rec *r, uint32_t num)
{
    if (r->idr) {
        saved_give_back(s, r, r->num);
        saved_set_num(s, r, num);
        saved_take(s, r, num);
    }
}

/* A WQ with the ring of QP @qpn, as older releases have saved it. */
static void edit_old_wq(struct saved *s, uint32_t qpn,
                        const struct saved_rec *to, uint8_t pick)
{
    const struct qhca_qp *qp = qhca_qp_get(s->e, qpn);
    struct qhca_wq wq;
    uint8_t *rec;
    size_t len;

    memset(&wq, 0, sizeof(wq));
    wq.wqn = qpn;
    wq.state = pick % 3;
    wq.pd = qp->pd;
    wq.uar = qp->uar;
    wq.cq = qp->rcq;
    wq.ring = qp->rq;
    if (wq.state == QHCA_WQS_RESET) {
        wq.ring.head = wq.ring.tail = 0;
    }
    rec = saved_old_wq(s->e, &wq, QHCA_WRITES_qp, &len);
    saved_add(s, to, rec, len, saved_u32(s, to->numbers + SAVED_U32));
    free(rec);
}

/* Without the two fields of a QP that version 2 lacks: sq_dbrec, sq_awake. */
static void edit_older_qp(struct saved *s, const struct saved_rec *r)
{
    size_t at = r->at, end = r->at + r->len, next;
    unsigned words = 0;         /* of 64 bits, one after the other */

    for (; at < end; at = next) {
        next = saved_skip(s, at, 1);
        if (s->b[at] == 'b' && words == 3) {
            saved_splice(s, at - 9, 9 + 2, NULL, 0);
            return;
        }
        words = s->b[at] == 8 ? words + 1 : 0;
    }
}

/* Sections "qp" and "rss" as an older release has saved them. */
static void edit_older(struct saved *s)
{
    static const char *const names[] = { "qp", "rss" };
    size_t at;
    unsigned i, k;

    for (k = 0; k < 2; k++) {
        at = saved_section(s, names[k]) + SAVED_AT_VERSION;
        if (saved_u32(s, at) != 3) {
            return;
        }
        saved_set_u32(s, at, 2);
        for (i = 0; i < s->recs; i++) {
            if (!strcmp(s->rec[i].section, names[k])) {
                edit_older_qp(s, &s->rec[i]);
            }
        }
    }
}

/* One change; @qpn: of a QP with a receive ring of its own. */
static void edit(struct fz *f, struct saved *s, uint32_t qpn)
{
    uint8_t op = fz_u8(f), pick = fz_u8(f);
    struct saved_rec *r = &s->rec[fz_u8(f) % s->recs];
    struct saved_rec *to = &s->rec[pick % s->recs];
    size_t at;

    if (!r->len) {
        return;                 /* it has been removed */
    }
    switch (op % 12) {
    case 0:
    case 1:
        at = edit_flag(s, r, true, pick);
        if (at) {
            saved_unref(s, at);
        }
        break;
    case 2:
    case 3:
        at = edit_flag(s, r, false, pick);
        if (at) {
            saved_ref(s, at, 1 + (fz_u8(f) & 3));
        }
        break;
    case 4:
        saved_drop(s, r);
        break;
    case 5:
    case 6:                     /* numbers that objects do not have */
        saved_copy(s, r, r, pick & 1);
        break;
    case 7:                     /* the next */
        saved_copy(s, r, r, r->idr ? saved_u32(s, r->numbers + SAVED_U32) : 0);
        break;
    case 8:
        edit_move(s, r, to);
        break;
    case 9:
        edit_renumber(s, r, pick & 7);
        break;
    case 10:
        edit_old_wq(s, qpn, saved_list(s, pick & 1 ? "rss" : "qp"), pick >> 1);
        break;
    default:
        edit_older(s);
    }
}

#endif
