/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A saved state as a sequence of records, one for each object, which can be
 * removed, copied, moved to other sections and renumbered; references can be
 * added and removed.  Counts and the lengths of sections are kept right.
 *
 * Fields say what they are, records do not.  Where those of a section are is
 * found by saving the section again, with one object at a time.
 */
#ifndef QHCA_TEST_SAVED_H
#define QHCA_TEST_SAVED_H

#include <stdlib.h>
#include <string.h>

#include "die.h"
#include "adapter/adapter.h"

#define SAVED_HEAD 19           /* bytes of a section before its fields */
#define SAVED_AT_VERSION 9
#define SAVED_AT_LEN 14
#define SAVED_U32 5             /* bytes of a 32-bit field */
#define SAVED_RECS 256

struct saved_rec {
    const char *section;
    const struct qhca_idr *idr; /* NULL: it has no number */
    uint32_t num;               /* the first field, or in that of a key */
    uint8_t shift;
    uint32_t at, len;
    uint32_t list;              /* where the number of records is */
    uint32_t numbers;           /* where those of the table are: max, ... */
};

struct saved {
    struct qhca *e;             /* as it is saved, and unchanged since */
    uint8_t *b;
    size_t len;
    struct saved_rec rec[SAVED_RECS];
    unsigned recs;
};

/* ---- fields ---- */

/* The 32-bit field at @at. */
static inline uint32_t saved_u32(const struct saved *s, size_t at)
{
    CHECK(at + SAVED_U32 <= s->len && s->b[at] == 4, "no field of 32 bits");
    return qhca_get_le32(s->b + at + 1);
}

static inline void saved_set_u32(struct saved *s, size_t at, uint32_t v)
{
    saved_u32(s, at);
    qhca_put_le32(s->b + at + 1, v);
}

/* What is behind @n fields at @at. */
static inline size_t saved_skip(const struct saved *s, size_t at, unsigned n)
{
    while (n--) {
        CHECK(at < s->len, "the state ends");
        switch (s->b[at]) {
        case 'B':
            at += 1 + SAVED_U32 + saved_u32(s, at + 1);
            break;
        case 'b':
            at += 2;
            break;
        default:
            CHECK(s->b[at] && s->b[at] <= 8, "byte %zu of the state is of no "
                  "type: %u", at, s->b[at]);
            at += 1u + s->b[at];
        }
    }
    return at;
}

/* ---- sections ---- */

static inline size_t saved_section_end(const struct saved *s, size_t section)
{
    return section + SAVED_HEAD + saved_u32(s, section + SAVED_AT_LEN);
}

/* The section named @name, which must be there. */
static inline size_t saved_section(const struct saved *s, const char *name)
{
    char padded[9] = "";
    size_t at;

    strncpy(padded, name, 8);
    for (at = 0; at < s->len; at = saved_section_end(s, at)) {
        if (!memcmp(s->b + at + 1, padded, 8)) {
            return at;
        }
    }
    die("there is no section %s", name);
}

/* ---- changing it ---- */

/* @to bytes instead of @from at @at, within a section. */
static inline void saved_splice(struct saved *s, size_t at, size_t from,
                                const void *bytes, size_t to)
{
    uint32_t diff = (uint32_t)(to - from);
    size_t sec, end;
    uint8_t *b = s->b;
    unsigned i;

    for (sec = 0; (end = saved_section_end(s, sec)) < at; sec = end) {
    }
    CHECK(at >= sec + SAVED_HEAD && at + from <= end, "not in a section");
    saved_set_u32(s, sec + SAVED_AT_LEN,
                  saved_u32(s, sec + SAVED_AT_LEN) + diff);
    if (to > from) {
        b = realloc(s->b, s->len + to - from);
        CHECK(b, "no memory");
        s->b = b;
    }
    memmove(b + at + to, b + at + from, s->len - at - from);
    if (to) {
        memcpy(b + at, bytes, to);
    }
    s->len += to - from;
    for (i = 0; i < s->recs; i++) {
        struct saved_rec *r = &s->rec[i];

        /* what is put between two records belongs to neither */
        r->len += (r->at < at || (r->at == at && from)) &&
                  at < r->at + r->len ? diff : 0;
        r->at += r->at >= at + from ? diff : 0;
        r->list += r->list >= at + from ? diff : 0;
        r->numbers += r->numbers >= at + from ? diff : 0;
    }
}

static inline void saved_insert_u32(struct saved *s, size_t at, uint32_t v)
{
    uint8_t field[SAVED_U32] = { 4 };

    qhca_put_le32(field + 1, v);
    saved_splice(s, at, 0, field, sizeof(field));
}

/* Remove the reference at @at: a flag, and the number behind it. */
static inline void saved_unref(struct saved *s, size_t at)
{
    CHECK(s->b[at] == 'b' && s->b[at + 1] == 1 && s->b[at + 2] == 4,
          "no reference");
    s->b[at + 1] = 0;
    saved_splice(s, at + 2, SAVED_U32, NULL, 0);
}

/* Make one to object @num of a flag that is not set. */
static inline void saved_ref(struct saved *s, size_t at, uint32_t num)
{
    CHECK(s->b[at] == 'b' && !s->b[at + 1], "no flag, or it is set");
    s->b[at + 1] = 1;
    saved_insert_u32(s, at + 2, num);
}

/* ---- records ---- */

static inline struct saved_rec *saved_rec(struct saved *s, const char *section,
                                          uint32_t num)
{
    unsigned i;

    for (i = 0; i < s->recs; i++) {
        if (!strcmp(s->rec[i].section, section) && s->rec[i].num == num) {
            return &s->rec[i];
        }
    }
    die("section %s has no record %u", section, num);
}

/* Any record of section @section, for what its list has; there is one. */
static inline struct saved_rec *saved_list(struct saved *s,
                                           const char *section)
{
    unsigned i;

    for (i = 0; i < s->recs; i++) {
        if (!strcmp(s->rec[i].section, section)) {
            return &s->rec[i];
        }
    }
    die("section %s has no record", section);
}

/* Number @num of the table of @r is not in use any more. */
static inline void saved_give_back(struct saved *s, const struct saved_rec *r,
                                   uint32_t num)
{
    size_t count = r->numbers + 2 * SAVED_U32;
    uint32_t n = saved_u32(s, count);

    if (num >= r->idr->first) {
        saved_set_u32(s, count, n + 1);
        saved_insert_u32(s, count + SAVED_U32 * (1 + n), num);
    }
}

/* It is in use: below the first that is given out, free, or the next. */
static inline void saved_take(struct saved *s, const struct saved_rec *r,
                              uint32_t num)
{
    size_t fresh = r->numbers + SAVED_U32, count = fresh + SAVED_U32, at;
    uint32_t n = saved_u32(s, count), i;

    if (num == saved_u32(s, fresh)) {
        saved_set_u32(s, fresh, num + 1);
    }
    for (i = 0; i < n; i++) {
        at = count + SAVED_U32 * (1 + i);
        if (saved_u32(s, at) == num) {
            saved_set_u32(s, count, n - 1);
            saved_splice(s, at, SAVED_U32, NULL, 0);
            return;
        }
    }
}

static inline void saved_set_num(struct saved *s, struct saved_rec *r,
                                 uint32_t num)
{
    uint32_t low = (1u << r->shift) - 1;

    r->num = num;
    saved_set_u32(s, r->at, num << r->shift | (saved_u32(s, r->at) & low));
}

/* A list has @by records more. */
static inline void saved_more(struct saved *s, size_t list, int by)
{
    saved_set_u32(s, list, saved_u32(s, list) + (uint32_t)by);
}

/* Remove record @r, whose number becomes free; it stays in the list of them. */
static inline void saved_drop(struct saved *s, struct saved_rec *r)
{
    saved_splice(s, r->at, r->len, NULL, 0);
    saved_more(s, r->list, -1);
    if (r->idr) {
        saved_give_back(s, r, r->num);
    }
}

/*
 * Append @len bytes at @rec, a record of the table of @to, to the list of @to;
 * its number becomes @num.
 */
static inline void saved_add(struct saved *s, const struct saved_rec *to,
                             const uint8_t *rec, size_t len, uint32_t num)
{
    struct saved_rec x = *to;
    size_t at = to->at + to->len;

    CHECK(s->recs < SAVED_RECS, "too many records");
    saved_splice(s, at, 0, rec, len);
    saved_more(s, x.list, 1);
    x.at = (uint32_t)at;
    x.len = (uint32_t)len;
    s->rec[s->recs++] = x;
    if (x.idr) {
        saved_set_num(s, &s->rec[s->recs - 1], num);
        saved_take(s, &x, num);
    }
}

/* The same with a copy of record @r. */
static inline void saved_copy(struct saved *s, const struct saved_rec *r,
                              const struct saved_rec *to, uint32_t num)
{
    size_t len = r->len;
    uint8_t *rec = malloc(len);

    CHECK(rec, "no memory");
    memcpy(rec, s->b + r->at, len);
    saved_add(s, to, rec, len, num);
    free(rec);
}

/* ---- finding them ---- */

static inline void saved_note(struct saved *s, const char *section,
                              const struct qhca_idr *idr, size_t numbers,
                              size_t list, size_t at, size_t end)
{
    bool key = idr == &s->e->mem->mrs;
    struct saved_rec r = {
        .section = section, .idr = idr, .at = (uint32_t)at,
        .len = (uint32_t)(end - at), .list = (uint32_t)list,
        .numbers = (uint32_t)numbers, .shift = key ? QHCA_KEY_INDEX_SHIFT : 0,
    };

    CHECK(s->recs < SAVED_RECS, "too many records");
    r.num = idr ? saved_u32(s, at) >> r.shift : 0;
    s->rec[s->recs++] = r;
}

/* What is behind the numbers of a table at @at. */
static inline size_t saved_numbers_end(const struct saved *s, size_t at)
{
    return at + SAVED_U32 * (3 + saved_u32(s, at + 2 * SAVED_U32));
}

/* The records of the list at @at have @fields fields each; its end. */
static inline size_t saved_fixed(struct saved *s, const char *section,
                                 const struct qhca_idr *idr, size_t numbers,
                                 size_t at, unsigned fields)
{
    uint32_t n = saved_u32(s, at), i;
    size_t list = at, end;

    for (at += SAVED_U32, i = 0; i < n; i++, at = end) {
        end = saved_skip(s, at, fields);
        saved_note(s, section, idr, numbers, list, at, end);
    }
    return at;
}

/* Bytes of a section that @fn saves. */
static inline size_t saved_size(struct qhca *e, void (*fn)(struct qhca_io *io),
                                uint32_t version)
{
    struct qhca_io io = { .e = e, .saving = true, .version = version };

    fn(&io);
    CHECK(!io.failed, "not saved");
    free(io.out);
    return io.len;
}

/* The list at @at is one of the section that @fn saves; its end. */
static inline size_t saved_measured(struct saved *s, const char *section,
                                    struct qhca_idr *idr, size_t numbers,
                                    size_t at, void (*fn)(struct qhca_io *io),
                                    uint32_t version)
{
    void **all = idr->slot, **one = calloc(idr->size, sizeof(*one));
    size_t list = at, none, len;
    uint32_t n;

    CHECK(one, "no memory");
    idr->slot = one;
    none = saved_size(s->e, fn, version);
    at += SAVED_U32;
    for (n = 0; n < qhca_idr_end(idr); n++) {
        one[n] = all[n];
        len = one[n] ? saved_size(s->e, fn, version) - none : 0;
        one[n] = NULL;
        if (len) {
            saved_note(s, section, idr, numbers, list, at, at + len);
            at += len;
        }
    }
    idr->slot = all;
    free(one);
    return at;
}

#define SAVED_BODY(s, name) (saved_section(s, #name) + SAVED_HEAD)
/* A section that begins with the numbers of its table, or not. */
#define SAVED_FIRST(s, name, idr, fn) saved_measured(s, #name, idr,         \
    SAVED_BODY(s, name), saved_numbers_end(s, SAVED_BODY(s, name)), fn,     \
    QHCA_WRITES_##name)
#define SAVED_LATER(s, name, idr, first, fn) saved_measured(s, #name, idr,  \
    SAVED_BODY(s, first), SAVED_BODY(s, name), fn, QHCA_WRITES_##name)

static inline void saved_find_eth(struct saved *s)
{
    struct qhca_ethernet *eth = s->e->eth;
    size_t at, list, end;
    uint32_t n;

    at = SAVED_FIRST(s, ethq, &eth->eth_sqs, qhca_io_eth_qs);
    saved_measured(s, "ethq", &eth->eth_rqs, at, saved_numbers_end(s, at),
                   qhca_io_eth_qs, QHCA_WRITES_ethq);
    at = SAVED_BODY(s, shaper);
    saved_fixed(s, "shaper", &eth->shapers, at, saved_numbers_end(s, at), 9);
    at = SAVED_BODY(s, rqt);
    list = saved_numbers_end(s, at);
    end = list + SAVED_U32;
    for (n = saved_u32(s, list); n; n--) {
        size_t rec = end;

        end = saved_skip(s, rec, 3 + saved_u32(s, rec + SAVED_U32));
        saved_note(s, "rqt", &eth->rqts, at, list, rec, end);
    }
    at = SAVED_BODY(s, flow);
    list = saved_numbers_end(s, at);
    if (s->b[list + 1]) {       /* there are flows */
        saved_fixed(s, "flow", &eth->flow_idr, at, saved_skip(s, list, 2), 9);
    }
}

static inline void saved_find_groups(struct saved *s)
{
    size_t list = SAVED_BODY(s, mcg), at = list + SAVED_U32, end;
    uint32_t n;

    for (n = saved_u32(s, list); n; n--, at = end) {
        end = saved_skip(s, at, 1);
        end = saved_skip(s, end, 1 + 2 * saved_u32(s, end));
        saved_note(s, "mcg", NULL, 0, list, at, end);
    }
}

static inline void saved_find(struct saved *s)
{
    struct qhca_memory *mem = s->e->mem;
    struct qhca_queues *q = s->e->q;
    size_t at = SAVED_BODY(s, numbers);

    at = saved_fixed(s, "uar", &mem->uars, at, saved_numbers_end(s, at), 1);
    saved_fixed(s, "pd", &mem->pds, at, saved_numbers_end(s, at), 1);
    at = SAVED_BODY(s, xrcd);
    saved_fixed(s, "xrcd", &q->xrcds, at, saved_numbers_end(s, at), 1);
    SAVED_FIRST(s, eq, &q->eqs, qhca_io_eqs);
    SAVED_FIRST(s, cq, &q->cqs, qhca_io_cqs);
    SAVED_FIRST(s, srq, &q->srqs, qhca_io_srqs);
    SAVED_FIRST(s, mr, &mem->mrs, qhca_io_mrs);
    SAVED_FIRST(s, qp, &q->qps, qhca_io_qps);
    SAVED_LATER(s, wq, &q->qps, qp, qhca_io_wqs);
    SAVED_LATER(s, mw, &mem->mrs, mr, qhca_io_mws);
    saved_find_eth(s);
    SAVED_LATER(s, rss, &q->qps, qp, qhca_io_rss_qps);
    saved_find_groups(s);
}

/* Save @e, which must not change before saved_close(). */
static inline void saved_open(struct saved *s, struct qhca *e)
{
    void *state;

    s->e = e;
    s->recs = 0;
    CHECK(qhca_save(e, &state, &s->len), "saving: no memory");
    s->b = state;
    saved_find(s);
}

static inline void saved_close(struct saved *s)
{
    free(s->b);
}

/* ---- older states ---- */

/*
 * WQ @wq as it was saved when WQs were QPs; @version: of section "qp".  To be
 * freed.
 */
static inline uint8_t *saved_old_wq(struct qhca *e, const struct qhca_wq *wq,
                                    uint32_t version, size_t *len)
{
    struct qhca_idr *idr = &e->q->qps, was = *idr;
    struct qhca_io io = { .e = e, .saving = true, .version = version };
    struct qhca_qp *qp = qhca_qp_alloc(e, QHCA_QPT_SAVED_WQ);
    size_t skip;
    uint8_t *rec;

    CHECK(qp && qp->ops->init(e, qp, NULL), "no memory");
    qp->qpn = wq->wqn;
    qp->state = wq->state == QHCA_WQS_RESET ? QHCA_QPS_RESET :
                wq->state == QHCA_WQS_ERR ? QHCA_QPS_ERR : QHCA_QPS_RTR;
    qp->pd = wq->pd;
    qp->uar = wq->uar;
    qp->rcq = wq->cq;
    qp->rq = wq->ring;
    qp->path_mtu = 1;
    idr->slot = calloc(idr->size, sizeof(*idr->slot));
    CHECK(idr->slot, "no memory");
    idr->slot[qp->qpn] = &qp->owner;
    idr->count = 0;
    qhca_io_qps(&io);
    CHECK(!io.failed, "not saved");
    free(idr->slot);
    *idr = was;
    skip = 4 * SAVED_U32;       /* numbers, and that it is one */
    *len = io.len - skip;
    rec = malloc(*len);
    CHECK(rec, "no memory");
    memcpy(rec, io.out + skip, *len);
    free(io.out);
    free(qp);                   /* nothing was allocated for it */
    return rec;
}

#endif
